/* Sequences: see sequence.h. */
#include "sequence.h"
#include "eval.h"

/* The numbers of a constant that no caller replaces. */
static bool ints(const rl_graph *g, rl_value v, rl_arena *mem, const int64_t **x, uint32_t *n) {
    return rl_has(v) && rl_eval_constant(g, v) && rl_const_ints(g, v, mem, x, n);
}

/* Pieces of one size, the last of what is left. */
static bool cut_evenly(rl_dim whole, int64_t size, rl_arena *mem, rl_cuts *c) {
    if (!rl_dim_known(whole) || whole < 1 || size < 1 || (whole - 1) / size >= RL_SEQUENCE_MOST) return false;
    c->n = (uint32_t)((whole - 1) / size + 1);
    int64_t *each = rl_new(mem, int64_t, c->n);
    for (uint32_t i = 0; i < c->n; i++) each[i] = i + 1 < c->n ? size : whole - size * i;
    c->size = each;
    return true;
}

static bool add_up(rl_dim whole, const rl_cuts *c) {
    int64_t sum = 0;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->size[i] < 1 || c->size[i] > INT64_MAX - sum) return false;
        else sum += c->size[i];
    return c->n && c->n <= RL_SEQUENCE_MOST && (!rl_dim_known(whole) || whole == sum);
}

bool rl_sequence_cuts(const rl_graph *g, const rl_nodeinfo *n, rl_arena *mem, rl_cuts *c) {
    const rl_valinfo *x = rl_has(rl_in(n, 0)) ? rl_val(g, n->in[0]) : NULL;
    const int64_t *size;
    uint32_t count;
    int64_t axis = rl_attr_int(n, "axis", 0);
    if (!x || x->rank == RL_NORANK) return false;
    axis += axis < 0 ? x->rank : 0;
    if (axis < 0 || axis >= x->rank) return false;
    rl_dim whole = x->dim[axis];
    bool given = rl_has(rl_in(n, 1));
    *c = (rl_cuts){.axis = (uint32_t)axis, .keeps = given || rl_attr_int(n, "keepdims", 1) == 1};
    if (!given) return cut_evenly(whole, 1, mem, c);
    if (!ints(g, n->in[1], mem, &size, &count)) return false;
    if (rl_val(g, n->in[1])->rank == 0) return count == 1 && cut_evenly(whole, *size, mem, c);
    c->n = count;
    c->size = size;
    return add_up(whole, c);
}

bool rl_sequence_place(const rl_graph *g, rl_value at, uint32_t n, rl_arena *mem, uint32_t *place) {
    const int64_t *x;
    uint32_t count;
    if (!ints(g, at, mem, &x, &count) || count != 1 || *x < -(int64_t)n || *x >= n) return false;
    *place = (uint32_t)(*x < 0 ? *x + n : *x);
    return true;
}
