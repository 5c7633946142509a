/* The commands run and verify, as functions. */
#ifndef RL_RUN_CMD_H
#define RL_RUN_CMD_H
#include "rt.h"
#include "values.h"

enum { RL_CHOSEN = 400 };

typedef struct {
    const char *const *input; /* "x=file", ninput of them; inputs not named are random, or their defaults */
    uint32_t ninput;
    const char *output_dir;   /* NULL: outputs are described on stdout only */
    bool dump_all;            /* write every value, not outputs only */
    uint32_t threads, runs;   /* 0: 1; bench: see there */
    void (*progress)(void *user, uint32_t done, uint32_t all); /* before each node; bench: after each run; NULL: nobody is told */
    void *user;               /* of progress */
    bool reference;           /* run, bench: reference kernels only */
    const char *device;       /* "cuda"; NULL: the CPU */
    rl_span plan;             /* run, bench: the text of a plan that the model must take (native.h); p NULL: its own, if it has one */
    bool no_plan;             /* run, bench: none */
    const rl_backend *(*find)(const char *name); /* the devices of the program; NULL: none */
    char *chosen;             /* of RL_CHOSEN bytes: gets the shapes chosen where the model leaves sizes open, as options have them; NULL: none */
    uint64_t seed;
    double rtol, atol;        /* verify; atol negative: 1e-6, or rtol of the median of what is not zero where that is more */
    bool corners;             /* verify: two runs more, with the numbers at the edges of the float types (values.h) among the others */
} rl_runopt;

/* Where a comparison stood when it ended. */
typedef enum { RL_AT_FIRST, RL_AT_SECOND, RL_AT_OUTPUTS, RL_AT_MEMORY } rl_verify_at;

/* Runs g once. What it prints goes to `out`: a line per output, peak memory. */
rl_status rl_run_model(rl_graph *g, const rl_runopt *o, rl_text *out);
/* Runs both on the same inputs, o->runs times with other seeds. RL_EDIFFER: the message names the first output and element. */
rl_status rl_verify_models(rl_graph *a, rl_graph *b, const rl_runopt *o, rl_text *out);
/* The same; *at: which model was at work, to know whose failure it is. */
rl_status rl_verify_models_at(rl_graph *a, rl_graph *b, const rl_runopt *o, rl_text *out, rl_verify_at *at);
/* fn with a runtime for o's device (fast: with fast kernels where that is the CPU, unless o wants the reference), which goes when it is done.
 * RL_ELIMIT where the program has no such device, RL_ENOMEM also where memory ran out on the way. */
typedef rl_status rl_with_rt_fn(rl_rt *rt, rl_graph *g, const rl_runopt *o, void *arg);
rl_status rl_with_rt(rl_graph *g, const rl_runopt *o, bool fast, rl_with_rt_fn *fn, void *arg);
/* in: one for each input of g, from the files that o names, its default (RL_ABSENT), or seeded random values, of the sizes that sizes.h finds where
 * the model leaves them open. */
rl_status rl_run_inputs(rl_rt *rt, rl_graph *g, const rl_runopt *o, uint64_t seed, rl_tensor *in);

#endif
