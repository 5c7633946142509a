/* How products and attention are to lie in memory, so that who reads them copies nothing: see fuse.h.
 *
 *   y = MatMul(p, v)               [n, heads, tokens, width]
 *   t = Transpose(y, 0 2 1 3)      [n, tokens, heads, width]: a view
 *   z = Reshape(t)                 [n, tokens, heads * width]: a copy, unless t lies row-major; so y is made in the order 0 2 1 3 */

#include "../src/permute.h"
#include "device.h"
#include "exec.h"
#include "fast.h"
#include "fuse.h"
#include "kernels_fast.h"

static rl_kernel_fn *reader_of(const rl_exec *x, const rl_step *const *step_of, rl_use use) {
    const rl_step *s = step_of[use.node.i];
    return s && use.slot < rl_nod(x->g, use.node)->nin ? rl_step_fn(s) : NULL;
}

/* The one Transpose that reads v, where only Reshapes read what it makes. */
static const rl_nodeinfo *merging(const rl_exec *x, const rl_step *const *step_of, rl_value v) {
    const rl_valinfo *y = rl_val(x->g, v);
    if (y->is_output || y->nuse != 1 || reader_of(x, step_of, y->use[0]) != rl_ref_transpose) return NULL;
    const rl_nodeinfo *n = rl_nod(x->g, y->use[0].node);
    const rl_valinfo *t = rl_val(x->g, n->out[0]);
    if (t->is_output || !t->nuse) return NULL;
    for (uint32_t i = 0; i < t->nuse; i++)
        if (reader_of(x, step_of, t->use[i]) != rl_ref_reshape) return NULL;
    return n;
}

/* perm, where it leaves the last dim where it is: rows stay rows. */
static rl_order order_of(const rl_nodeinfo *transpose, uint32_t rank, rl_arena *tmp) {
    const rl_attr *a = rl_attr_find(transpose, "perm");
    if (!a || a->kind != RL_ATTR_INTS || a->n != rank || rank < 3 || a->ints[rank - 1] != rank - 1) return (rl_order){0};
    return rl_is_permutation(a->ints, rank, tmp) ? (rl_order){a->ints, rank} : (rl_order){0};
}

/* Its kernel, or a device's, makes rows wherever they are to lie. */
static bool makes_rows(const rl_exec *x, const rl_step *s) {
    const rl_kernel *k = s->kernel.n ? s->kernel.p[0] : NULL;
    if (k && rl_device_has(x->rt, k)) k = rl_kernel_find(&rl_backend_fast, s->info); /* which names the op */
    return k && (k->fn == rl_fast_matmul || k->fn == rl_fast_attention || k->fn == rl_fast_attention_op);
}

const int64_t *rl_order_for(rl_order o, uint32_t rank) { return o.rank == rank ? o.dim : NULL; }

void rl_choose_orders(rl_exec *x) {
    rl_arena tmp;
    rl_arena_init(&tmp, x->g->ctx);
    const rl_step **step_of = rl_new(&tmp, const rl_step *, x->g->nnode);
    for (uint32_t i = 0; i < x->nstep; i++) step_of[x->step[i].node.i] = &x->step[i];
    for (uint32_t i = 0; i < x->nstep; i++) {
        rl_step *s = &x->step[i];
        if (!rl_has(s->info->out[0]) || !makes_rows(x, s)) continue;
        const rl_nodeinfo *n = merging(x, step_of, s->info->out[0]);
        uint32_t rank = rl_val(x->g, s->info->out[0])->rank;
        if (n && rank <= 8) s->order = order_of(n, rank, &tmp);
    }
    rl_arena_free(&tmp);
}
