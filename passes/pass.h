/* Passes and the pipeline that runs them.  passes.def lists them; run_pass.c verifies, dumps, times and disables. */
#ifndef RL_PASS_H
#define RL_PASS_H
#include "../src/cert.h"
#include "../src/explain.h"
#include "../src/ir.h"
#include "../src/stats.h"
#include "../src/target.h"

typedef struct rl_interface rl_interface; /* interface.h */
typedef struct rl_plan rl_plan; /* plan.h: what legal finds, assign decides, insert and lower carry out */

typedef struct {
    const char *target;      /* "generic", "onnx", ... or the path of a file (target.h); NULL: generic */
    const char *objective;   /* "nodes", "bytes" or "time"; NULL: nodes */
    double time_limit;       /* seconds for the solver, in the whole run */
    bool verify_each;
    bool proof;              /* make the text of the certificate */
    const char *print_after; /* pass name, or NULL */
    void (*print)(void *user, const char *text, size_t n); /* where dumps go */
    void *user;
    const char *disable;     /* comma-separated pass names, or NULL */
} rl_passopt;

/* What the certificate (docs/proof.md) says of the choice: conversions and bytes, and what no assignment can beat. */
typedef struct {
    bool made, checked;    /* checked: src/cert.c agrees */
    int64_t count, bytes, bound, bound_bytes, stands, stands_bytes; /* stands: of the model as it stands */
    bool timed;            /* the second part holds, too: times, in its units; of the assignment, and of the model as it stands */
    int64_t time, stands_time, time_bound;
    int64_t charged, stands_charged; /* of the times */
    rl_cert_shown shown, stands_shown;
    uint32_t outside;      /* Transposes that move data of tensors that are in no value */
    rl_str why;            /* why it was not checked */
    rl_text text[2];       /* if asked for: the file; the file where the model stays as it stands. In the graph's memory */
} rl_proof;

/* gap: the bound is checked, and lower than what was reached. */
typedef enum { RL_PROVED_NOT, RL_PROVED_GAP, RL_PROVED_OPTIMAL } rl_proved;

/* What the pipeline found; times in seconds. */
typedef struct {
    int64_t conv_before, conv_after; /* conversions that the model as read, and as rewritten, needs (docs/proof.md, section 1) */
    int64_t conv_bound;              /* no assignment has fewer; checked, else 0 */
    int64_t bytes_bound;             /* none of so many moves fewer bytes (objective bytes: none moves fewer) */
    rl_proved proved;
    int64_t time_before, time_after, time_bound; /* ns by the target's rows; only for the objective "time", else 0 */
    rl_cert_shown shown;             /* what is shown of conv_after; 0 where nothing was proved */
    int64_t outside;                 /* of after's conversions: at most so many that nothing is proved of (rl_proof); 0 where nothing was proved */
    rl_proof proof;
    bool improved;                   /* the solver found something cheaper than the graph as it stood */
    bool rewrote;                    /* lower wrote the graph anew */
    bool moved;                      /* movement wrote a form */
    bool cheaper;                    /* lower wrote an Einsum in a form that the target charges less */
    int64_t apart;                   /* nodes of other kinds that stand for a Transpose each (movement.c) */
    bool changed;                    /* false: the input is already as good; write its bytes */
    rl_stats before, after;          /* counted; equal where nothing changed */
    int64_t steps_before;            /* rl_steps_now of what was read */
    struct { const char *pass; double seconds; } time[16];
    uint32_t ntime;
} rl_outcome;

/* Optimizes g in place, and the bodies in it with it (flat.h).  The whole pipeline, in the order of passes.def. */
rl_status rl_optimize(rl_graph *g, const rl_passopt *o, rl_outcome *out);
/* Infers shapes, then runs the passes of a comma-separated list, as given.  RL_EUSAGE names a pass that does not exist. */
rl_status rl_run_passes(rl_graph *g, const char *comma_list, const rl_passopt *o, rl_outcome *out);

/* Why conversions stay (explain.h). Fills in what is explained of g, which is as read and of no use afterwards; `done`, the same
 * model after rl_optimize, says of each graph which plan: its own, or the solver's. */
rl_status rl_explain(rl_graph *g, rl_graph *done, const rl_passopt *o, rl_arena *mem, rl_explanation *out);

/* The problems that a certificate is of, as those of a model: values, ops, tokens and forms, nothing chosen; where the certificate speaks of
 * times, also what the target charges. text: [1 + nfunction] of the model's graph, then of each function that it has a part for, whose types are
 * those of the calls in `written`, the result. Both graphs are of no use afterwards; their functions must be the same, by name. */
rl_status rl_restate(rl_graph *g, rl_graph *written, const rl_passopt *o, const rl_cert *c, rl_text *text);

typedef struct {
    rl_graph *g;
    const rl_passopt *opt;
    const rl_target *target; /* what opt names */
    const rl_interface *io;  /* inputs and outputs whose order is free, or NULL */
    rl_arena *tmp;
    struct rl_calls *calls;  /* of the main graph, if it has functions (functions.h) */
    rl_plan *plan;
    rl_outcome *out;
    double *solved; /* seconds that solving has taken so far, of all graphs and rounds, or NULL */
    uint32_t round; /* how often the plan has been made before */
    bool closed;  /* bodies stay as they are: they could not be written */
    const bool *pick; /* [node] of the plan to make: ops that make their result in any order (pick.c); NULL: none */
    bool picked;  /* the plan is one of these */
    bool trial;   /* g is a copy, which stays open (pipeline.c: try_all) */
    bool plainly; /* of it: without such plans */
    bool joined;  /* units: of two equal nodes one was left */
    bool anew;    /* the plan was made again and was better */
    bool large;   /* so many candidates that the plan is made only once */
    const struct rl_namings *led; /* the orders that the bound of round 0 led to, which a copy is planned with; NULL: none, or the graph is another one by now */
    bool gave_up; /* set by a pass that left the graph half-written: the input is kept */
} rl_pass_run;
/* Runs a job with what passes need set up around it. */
rl_status rl_run_job(rl_graph *g, const rl_passopt *o, rl_outcome *out, rl_status (*job)(rl_pass_run *r, void *what), void *what);
/* normalize.c: Einsums that only permute become the Transposes that they are. */
rl_status rl_normalize_einsums(rl_pass_run *r);
/* judge.c: is this the objective? What the graph takes as it stands, in ns by the target's rows; named: Einsums as the Transposes that they are. Counts
 * the result, from what out->before and the times say decides whether it is better (out->changed; if not, g keeps its bytes), and says what is proved of it. */
bool rl_by_objective(const rl_pass_run *r, const char *name);
rl_status rl_time_now(rl_pass_run *r, bool named, int64_t *time);
int64_t rl_steps_now(const rl_pass_run *r); /* rl_stats_steps of g; 0 for a target that does not charge */
void rl_judge(rl_pass_run *r);
/* pick.c, after assign: does the count alone decide, of a graph of which copies may be carried out and counted (pipeline.c)? */
bool rl_may_try(const rl_pass_run *r);
/* prove.c, after legal: what rl_restate says. */
void rl_prove_problem(rl_pass_run *r, bool bytes_first, bool timed, rl_text *out);
/* alike.c: infers the types of a model's graph, with sizes that every run needs equal as one; and gives its inputs their own sizes again. */
rl_status rl_alike_infer(rl_graph *g, rl_arena *tmp);
rl_status rl_alike_restore(rl_graph *g);
#define PASS(name, summary) rl_status rl_pass_##name(rl_pass_run *r);
#include "passes.def"
#undef PASS

#endif
