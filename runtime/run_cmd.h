/* The commands run and verify, as functions. */
#ifndef RL_RUN_CMD_H
#define RL_RUN_CMD_H
#include "rt.h"

typedef struct {
    const char *const *input; /* "x=file", ninput of them; inputs not named are random, or their defaults */
    uint32_t ninput;
    const char *output_dir;   /* NULL: outputs are described on stdout only */
    bool dump_all;            /* write every value, not outputs only */
    uint32_t threads, runs;   /* 0: 1; bench: see there */
    void (*progress)(uint32_t done, uint32_t all); /* bench: after each run, once a second has passed; NULL: nobody is told */
    uint64_t seed;
    double rtol, atol;        /* verify */
} rl_runopt;

/* Runs g once. What it prints goes to `out`: a line per output, peak memory. */
rl_status rl_run_model(rl_graph *g, const rl_runopt *o, rl_text *out);
/* Runs both on the same inputs, o->runs times with other seeds. RL_EDIFFER: the message names the first output and element. */
rl_status rl_verify_models(rl_graph *a, rl_graph *b, const rl_runopt *o, rl_text *out);
/* in: one for each input of g, from the files that o names, its default (RL_ABSENT), or seeded random values. */
rl_status rl_run_inputs(rl_rt *rt, rl_graph *g, const rl_runopt *o, uint64_t seed, rl_tensor *in);

#endif
