/* Several models in one call of optimize: each in a process of its own, so that one that fails, or takes the process with it, stops
 * no other.
 *
 *   relayout optimize a.onnx b.onnx -o out/ --jobs 2      out/a.onnx, out/b.onnx, and one table
 *
 * The processes write what they found to memory that all share; the first writes the table, and with --csv and --json what
 * programs read.  The exit status is the worst of the models': 1 (our own mistake) before all, else the largest. */
#ifndef RL_CMD_BATCH_H
#define RL_CMD_BATCH_H
#include "cmd.h"

/* What one model's process found. */
typedef struct rl_batchrow {
    rl_status status;
    bool done;            /* it has said so; false: it died */
    bool changed, proved; /* proved: conv_bound is reached */
    int64_t conv_before, conv_after, conv_bound;
    uint64_t in_bytes, out_bytes;
    double seconds;
    int json;             /* a file that takes the report; -1: none is wanted */
    char error[1024];
} rl_batchrow;

/* l->file to the folder l->out. */
rl_status rl_batch(rl_line *l);
/* In a model's process: keeps the report. */
rl_status rl_batch_keep(const rl_line *l, const rl_report *r);
/* Is path a folder, or named as one ("out/")? */
bool rl_is_dir(const char *path);
/* Makes the folder l->out where there is none. */
rl_status rl_make_dir(const rl_line *l);
/* dir/NAME.onnx, NAME as in's; in mem. */
const char *rl_path_in(rl_arena *mem, const char *dir, const char *in);

#endif
