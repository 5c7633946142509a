/* What the command compare knows of one optimizer. */
#ifndef RL_CMD_COMPARE_H
#define RL_CMD_COMPARE_H
#include "cmd.h"

enum { RL_MOSTPEERS = 32 };

typedef struct {
    char peer[32], label[48], version[32];
    char model[512];     /* what it wrote; "": it has a form of its own, or failed */
    char outputs[1088];  /* "same", "differ: ...", "not checked: ...", or "" */
    char error[1088];    /* "", or why there is no result */
    double seconds;      /* below 0: none */
    int64_t transposes, moving, bytes; /* below 0: not known */
} rl_peer;

typedef struct { rl_peer p[RL_MOSTPEERS]; uint32_t n; } rl_peers;

/* Runs the optimizers that l->peers names (NULL: all) on l->in, by python/relayout/optimizers.py, which is part of this program; their
 * models go to dir. Where no Python can be run, *out stays as it is, and *why says so. */
rl_status rl_peers_run(rl_line *l, const char *dir, rl_peers *out, const char **why);

#endif
