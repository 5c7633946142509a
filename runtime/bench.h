/* The command bench: how long a model takes, where, and how many bytes it moves.
 *
 * Latency is measured in runs of their own; the runs that time each node come after them and do not count.  A node with a body
 * (Loop, If) is one node: what its body does is in its time. */
#ifndef RL_BENCH_H
#define RL_BENCH_H
#include "run_cmd.h"

typedef struct {
    rl_str op, kernel;     /* what ran it: an implementation of oneDNN, "rows", "reference" ... */
    uint32_t nnode;
    double ms;             /* of one run, mean */
    uint64_t bytes, copied; /* of one run: inputs and outputs of nodes that make new values; what strided copies wrote */
    bool moves;            /* the op only moves data (src/ops.h) */
    uint32_t nfell;        /* of the nodes: on the CPU for want of a kernel of the device, with copies */
} rl_bench_op;

/* One step of a run: a node, or some that run as one (then the one that leads). */
typedef struct {
    rl_str node, op, kernel;
    double ms; /* of one run, mean */
    uint64_t copied;
} rl_bench_step;

typedef struct {
    uint32_t runs, threads;
    bool fast;             /* with oneDNN */
    double median_ms, min_ms, mean_ms, movement; /* movement: share of the nodes' time in ops that only move data */
    uint64_t bytes, copied;
    const char *device;    /* NULL: the CPU */
    const char *failed;    /* lines about nodes where the device or a library failed; NULL: none */
    bool replayed;         /* the device did each run after the second as one recorded graph */
    const char *branches;  /* with that: what came of recording branches (device.h); NULL: not tried */
    double device_ms;      /* with that: of this graph, by the device's clock; inputs and outputs are there. The median */
    uint64_t put, got;     /* bytes to the device and from it, in a run that times each node */
    size_t peak, arena, least, work, kept, input, delivered; /* of values: see rl_rt; in peak, the caller's: inputs, outputs that did not lie row-major */
    rl_bench_op *op;           /* the slowest first */
    uint32_t nop;
    rl_bench_step *step; /* in the order of the run */
    uint32_t nstep;
} rl_bench;

/* o->runs 0: about a second, 5 to 200 runs. *b lives in g's arena. */
rl_status rl_bench_model(rl_graph *g, const rl_runopt *o, rl_bench *b);

/* Seconds from some point on. alone: of the processor that this thread has had, which other work on the machine does not change. */
double rl_bench_now(bool alone);
/* May it be so of this runtime? Other threads and devices work on their own. */
bool rl_bench_alone(const rl_rt *rt);
/* One run of a prepared graph; its outputs go. */
rl_status rl_bench_once(rl_exec *x, const rl_tensor *in, rl_tensor *out, bool alone, double *seconds);
/* The median and the least of n times, in ms. */
void rl_bench_times(rl_arena *mem, const double *time, uint32_t n, double *median, double *least);

/* bench_report.c, of the program */
void rl_bench_json(const rl_bench *b, const char *model, rl_text *t);
void rl_bench_table(const rl_bench *b, rl_text *t);

#endif
