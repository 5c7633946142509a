/* The certificate of a plan (docs/proof.md, section 6): what each op of a model costs in each layout, what is chosen, and why no choice costs less.
 *
 *   relayout.plan-proof/1
 *   machine AMD EPYC, avx512, oneDNN 3.2.0, 1 thread      as in the plan
 *   graph 2 5a0b1c2d3e4f5061
 *   fixed 37253                                           ns of a run beside its ops and moves
 *   layouts abcd acdb                                     0, 1
 *   op - input                                            no step: an input or output of the model
 *   pin out 0                                             value 0 is made by it
 *   cfg 0 0                                               ns, and a layout for each pin
 *   chosen 0
 *   op 0 Conv                                             step 0 of the model
 *   pin in 0
 *   pin out 1
 *   cfg 350 0 1
 *   cfg 300 1 1 plain                                     the kernel that runs without a plan
 *   chosen 0
 *   op - output
 *   pin in 1
 *   cfg 0 0
 *   chosen 0
 *   outside 1 Expand                                      a step of which the plan does not speak; only what it reads has pins
 *   ...
 *   move 0 0 1 80                                         value 0 from layout 0 to layout 1, ns
 *   move 1 1 0 60
 *   drop 1 1 0                                            op 1: configuration 0 does as well as configuration 1, whatever else is chosen
 *   claim 37663
 *   end
 *
 * native_cert_text.c writes and reads the file, native_cert.c checks it and shares no code with what chose. */
#ifndef RL_NATIVE_CERT_H
#define RL_NATIVE_CERT_H
#include "native_profile.h"

typedef struct { int64_t ns; const uint32_t *lay; bool plain; } rl_plan_cert_config; /* lay: [npin], layouts by number; plain: rl_native_op */
typedef struct { uint32_t value; bool out; } rl_plan_cert_pin;
typedef struct {
    uint32_t step, npin, ncfg, chosen; /* step RL_NONE: an input or output of the model */
    bool outside;                      /* one of these, or a step of which the plan does not speak and which has pins for what it reads only */
    const char *type;
    const rl_plan_cert_pin *pin;
    const rl_plan_cert_config *cfg;
} rl_plan_cert_op;
typedef struct { uint32_t value, from, to; int64_t ns; } rl_plan_cert_move;

typedef struct {
    const char *machine, *graph; /* the rest of these lines */
    int64_t fixed, claim;
    uint32_t nlay, nvalue, nop, nmove, ndrop;
    const rl_lay *lay;
    const rl_plan_cert_op *op;   /* a value is made before it is read */
    const rl_plan_cert_move *move;
    const rl_profile_drop *drop;
} rl_plan_cert;

#define RL_PLAN_CERT_HEAD "relayout.plan-proof/1\n"
void rl_plan_cert_print(const rl_profile *p, rl_text *t);
/* out is in mem. RL_EPROOF with the line. */
rl_status rl_plan_cert_parse(rl_ctx *ctx, rl_arena *mem, const char *text, size_t n, rl_plan_cert *out);

/* RL_OK: the choice costs what is claimed, and none costs less. */
rl_status rl_plan_cert_check(rl_ctx *ctx, const rl_plan_cert *c);
/* The plan's text without names of outputs, as the choice says it. */
void rl_plan_cert_plan(const rl_plan_cert *c, rl_text *t);
/* Are the ops and values those of x, prepared without a plan? RL_EPROOF where not. */
rl_status rl_plan_cert_fits(const rl_plan_cert *c, const rl_exec *x);

#endif
