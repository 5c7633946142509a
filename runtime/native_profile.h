/* The command profile: measures a model's layouts, has the best choice found, and runs it beside the model without a plan. */
#ifndef RL_NATIVE_PROFILE_H
#define RL_NATIVE_PROFILE_H
#include "native_probe.h"

/* No best choice needs the op's configuration cfg, as `by` does as well. */
typedef struct { uint32_t op, cfg, by; } rl_profile_drop;

typedef struct rl_profile {
    /* asked */
    bool table;              /* costs by the static table */
    uint32_t runs;           /* of each comparison; 0: as many as a second has room for */
    rl_status (*solve)(void *user, struct rl_profile *p); /* fills in chosen, predicted, bound, optimal: the runtime has no solver */
    void *user;
    /* found; all in g's arena */
    bool fast;               /* false: no oneDNN, and nothing below */
    rl_probe probe;
    uint32_t *chosen;        /* [op] its configuration */
    struct { rl_profile_drop *p; uint32_t n, cap; } drop; /* in the order in which they were left out */
    int64_t predicted, bound; /* ns; bound == predicted where it is the least */
    bool optimal, checked;   /* checked: found again by other means than the solver's */
    bool as_is;              /* nothing is chosen but what runs without a plan */
    int64_t whole;           /* ns of a run without a plan, measured before one with it; 0: by the table */
    const char *machine;
    rl_text plan;
    uint32_t nblocked, nmove, compared; /* values in blocks and moves of the plan; runs of the comparison */
    double plan_ms, plan_least_ms, default_ms, default_least_ms; /* medians and the least, runs taking turns */
} rl_profile;

rl_status rl_profile_model(rl_graph *g, const rl_runopt *o, rl_profile *p);
void rl_profile_json(const rl_profile *p, const char *model, rl_text *t);
void rl_profile_table(const rl_profile *p, rl_text *t);

#endif
