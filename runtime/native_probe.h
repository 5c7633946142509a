/* What each step of a model costs in each layout that it may have, measured where it runs: the problem that a plan solves.
 *
 * The model is run once.  Before each step its kernel runs on the step's real inputs, moved to one layout after the other; what the backend
 * only has a plain loop for (oneDNN's `ref`) is left out.  What comes out is a configuration: layouts of the pins (native.h) and ns.
 *
 *   op "conv1"   x abcd, y acdb       410 us        jit_avx512_core
 *                x abcd, y aBcd16b    350 us        the pairs that the kernel runs on, and no others
 *                x acdb, y acdb       380 us
 *   move x       abcd -> acdb          40 us
 *
 * A choice of one configuration for each op costs their sum, and for each value a move to each layout that is read and not made. */
#ifndef RL_NATIVE_PROBE_H
#define RL_NATIVE_PROBE_H
#include "native.h"
#include "native_whole.h"
#include "run_cmd.h"

/* lay: [npin], places in rl_probe.lay; plain: rl_native_op; as_is: the kernel and the layouts of a run without a plan */
typedef struct { uint32_t *lay; int64_t ns; rl_str impl; bool plain, as_is; } rl_probe_cfg;

typedef struct {
    uint32_t step;            /* RL_NONE: an input or output of the graph, or who makes a value of whom nothing is known */
    bool outside;             /* no plan speaks of it: one of these, or a step whose outputs lie in no order (Expand), of which only inputs are pins */
    rl_str type, name;
    uint32_t npin;
    const rl_pin *pin;
    int64_t here;             /* ns in a run without a plan; 0 where another step does its work */
    struct { rl_probe_cfg *p; uint32_t n, cap; } cfg;
} rl_probe_op;

typedef struct { uint32_t value, from, to; int64_t ns; } rl_probe_move;

#define RL_PROBE_NOISE 0.03   /* times of a kernel that differ by a smaller part are the same */
#define RL_PROBE_CHANCE 0.005 /* so are times of a model, the least of many in turn */

typedef struct {
    rl_arena *mem;
    rl_exec *x;
    struct { rl_lay *p; uint32_t n, cap; } lay;
    struct { rl_probe_op *p; uint32_t n, cap; } op;
    struct { rl_probe_move *p; uint32_t n, cap; } move;
    rl_hash move_at;          /* of value and layouts -> its place */
    int64_t fixed;            /* ns of a run beside the ops' */
    int64_t whole, around;    /* ns of a run without a plan, and around a step, which a move has, too; 0 by a table */
    uint32_t measured, known; /* costs that were measured now; that the cache or the table had */
} rl_probe;

/* ns of moving the value; 0 where from is to. */
int64_t rl_probe_move_cost(const rl_probe *p, uint32_t value, uint32_t from, uint32_t to);

typedef struct rl_costs rl_costs;
/* x: prepared without a plan, as plans speak of it; whole: what it takes so, by x's steps (-1: another does it). NULL: costs by a static table,
 * nothing is measured. */
rl_status rl_probe_run(rl_exec *x, const rl_tensor *in, rl_costs *costs, const rl_whole *whole, rl_probe *out);
/* The model takes so long now, without a plan: what its steps take changes in proportion, moves stay. */
void rl_probe_scale(rl_probe *p, int64_t whole);
/* Costs of what was chosen ([op] a configuration), as runs by that plan have them: native_refine.c. x[0] by the plan, x[1] without one,
 * and what they take, in turn. */
void rl_probe_refine(rl_probe *p, const uint32_t *chosen, rl_exec *const *x, const rl_whole *whole);

/* ---- costs that were measured before (native_cache.c) ---- */

typedef struct { int64_t ns; rl_str impl; rl_lay out[4]; uint32_t nout; } rl_cost_row; /* impl NULL: it has no optimized kernel there */

struct rl_costs {
    rl_arena *mem;
    const char *machine;
    rl_text path;             /* n 0: there is no folder, nothing is kept */
    rl_hash at;
    struct { uint64_t *key; rl_cost_row *row; uint32_t n, cap; } all;
    bool changed;
};
/* The file of this machine in $XDG_CACHE_HOME/relayout or ~/.cache/relayout; what is damaged or of another machine is left, with a line. */
void rl_costs_open(rl_rt *rt, rl_arena *mem, rl_costs *c);
const rl_cost_row *rl_costs_find(const rl_costs *c, uint64_t key);
void rl_costs_put(rl_costs *c, uint64_t key, const rl_cost_row *row);
/* Writes the file where it changed; that it cannot be written is no failure, but a line. */
void rl_costs_close(rl_rt *rt, rl_costs *c);

#endif
