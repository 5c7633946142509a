/* Kernels of steps with blocked values: see native.h.  Pointwise loops walk over a blocked tensor as over any other, once operands that
 * broadcast are laid out in lanes too; what they write into lanes without a channel is set to zero. */
#include <string.h>

#include "device.h"
#include "fast.h"
#include "home.h"
#include "native.h"

/* ---- what comes in ---- */

/* A blocked input is as its step was told: sizes that a model only claims end here. */
static rl_status check_input(const rl_call *c, const rl_native *n, const rl_lay *lay, uint32_t i) {
    const rl_tensor *t = rl_call_in(c, i);
    if (!n->channels[i]) return RL_OK;
    if (!t || t->dtype != rl_val(c->g, c->node->in[i])->dtype || !rl_lay_holds(lay, t, n->channels[i]))
        return rl_call_fail(c, RL_EMODEL, "input %u is not blocked as the plan says", i);
    return RL_OK;
}

static rl_status check_inputs(const rl_call *c, const rl_native *n, const rl_lay *lay) {
    for (uint32_t i = 0; i < c->nin; i++) RL_TRY(check_input(c, n, lay, i));
    return RL_OK;
}

rl_status rl_native_check(const rl_call *c) {
    const rl_native *n = c->step->native;
    const rl_tensor *x = rl_call_in(c, 0);
    if (!n) return RL_OK;
    if (x && x->rank != n->in.rank + (n->channels[0] ? 1u : 0u)) return rl_call_fail(c, RL_EMODEL, "input 0 has another rank than the plan says");
    for (uint32_t i = 0; i < c->nin; i++) RL_TRY(check_input(c, n, i == 0 ? &n->in : &n->out, i));
    return RL_OK;
}

/* The operand t of a chain whose output has `rank` dims, with its channels in lanes. */
static const rl_tensor *in_lanes(rl_call *c, const rl_tensor *t, const rl_lay *lay) {
    int64_t dim[RL_LAY_RANK + 1];
    uint32_t rank = lay->rank;
    rl_tensor *x = rl_new(c->tmp, rl_tensor, 1);
    *x = *t;
    for (uint32_t i = rank; i-- > 0;) {
        bool has = i + t->rank >= rank;
        x->dim[i] = has ? t->dim[i + t->rank - rank] : 1;
        x->stride[i] = has ? t->stride[i + t->rank - rank] : 0;
    }
    x->rank = rank;
    if (x->dim[1] == 1) {
        x->rank++;
        x->dim[rank] = 1, x->stride[rank] = 0;
        return x;
    }
    rl_lay_dims(lay, x->dim, dim);
    rl_tensor *to = rl_call_temp(c, t->dtype, rank + 1, dim);
    rl_lay_copy(c->rt, to, lay->block, 0, x, 0, x->dim[1]);
    rl_lay_clear(c->rt, to, x->dim[1]);
    return to;
}

/* Runs the strided kernel on these inputs. */
static rl_status run_inner(rl_call *c, const rl_native *n, const rl_tensor *const *in) {
    const rl_tensor *const *was = c->in;
    c->in = in;
    c->arg = n->inner->arg;
    rl_status s = n->inner->fn(c);
    c->in = was;
    return s;
}

/* ---- kernels ---- */

rl_status rl_native_chain(rl_call *c) {
    const rl_native *n = c->step->native;
    const rl_tensor **in = rl_new(c->tmp, const rl_tensor *, c->nin + 1);
    RL_TRY(check_inputs(c, n, &n->out));
    for (uint32_t i = 0; i < c->nin; i++) {
        const rl_tensor *t = c->rt->device ? rl_call_here(c, i) : rl_call_in(c, i);
        if (t && (t->dtype != rl_val(c->g, c->node->in[i])->dtype || t->rank > n->out.rank + 1u))
            return rl_call_fail(c, RL_EMODEL, "input %u is not as the plan says", i);
        bool as_is = !t || n->channels[i] || rl_numel(t) == 1;
        if (!as_is && t->rank > n->out.rank) return rl_call_fail(c, RL_EMODEL, "input %u has more dims than the plan says", i);
        in[i] = as_is ? c->in[i] : in_lanes(c, t, &n->out);
    }
    RL_TRY(run_inner(c, n, in));
    if (c->declined) return RL_OK;
    const rl_tensor *y = &c->out[0];
    if (!rl_lay_holds(&n->out, y, n->nout))
        return rl_call_fail(c, RL_EMODEL, "the output is not blocked as the plan says");
    rl_lay_clear(c->rt, y, n->nout);
    return RL_OK;
}

rl_status rl_native_concat(rl_call *c) {
    const rl_native *n = c->step->native;
    const rl_tensor *first = rl_call_in(c, 0);
    uint32_t rank = n->out.rank;
    int64_t dim[RL_LAY_RANK + 1], at = 0, count;
    RL_TRY(rl_call_need(c, c->nin));
    RL_TRY(check_inputs(c, n, &n->out));
    memcpy(dim, first->dim, rank * sizeof *dim);
    for (uint32_t i = 0; i < c->nin; i++) {
        const rl_tensor *t = rl_call_in(c, i);
        count = n->channels[i] ? n->channels[i] : t->dim[1];
        if (t->dtype != first->dtype || t->rank != rank + (n->channels[i] > 0)) return rl_call_fail(c, RL_EMODEL, "input %u has another rank or type", i);
        for (uint32_t k = 0; k < rank; k++)
            if (k != 1 && t->dim[k] != dim[k]) return rl_call_fail(c, RL_EMODEL, "input %u has %lld in dim %u, not %lld", i, (long long)t->dim[k], k, (long long)dim[k]);
        at += count;
    }
    if (at != n->nout) return rl_call_fail(c, RL_EMODEL, "%lld channels, and the plan says %lld", (long long)at, (long long)n->nout);
    dim[1] = n->nout;
    int64_t lanes[RL_LAY_RANK + 1];
    rl_lay_dims(&n->out, dim, lanes);
    const rl_tensor *y = rl_home_give(c, first->dtype, rank + 1, lanes) ? &c->out[0] : rl_lay_make(c, 0, first->dtype, &n->out, dim);
    at = 0;
    for (uint32_t i = 0; i < c->nin; i++, at += count) {
        const rl_tensor *t = rl_call_in(c, i);
        count = n->channels[i] ? n->channels[i] : t->dim[1];
        rl_tensor part = rl_view_slice(y, 1, at / n->out.block, 1, t->dim[1]);
        if (n->channels[i] && at % n->out.block == 0 && rl_home_holds(&part, t)) continue;
        rl_lay_copy(c->rt, y, n->out.block, at, rl_home_apart(c, y, t), n->channels[i] ? n->out.block : 0, count);
    }
    rl_lay_clear(c->rt, y, n->nout);
    c->step->ran = "blocks";
    return RL_OK;
}

/* [N, blocks, H, W, lanes] is the channels-last [N blocks, lanes, H, W]. */
rl_status rl_native_global_pool(rl_call *c) {
    const rl_native *n = c->step->native;
    RL_TRY(check_inputs(c, n, &n->in));
    const rl_tensor *t = rl_call_in(c, 0);
    uint32_t rank = n->in.rank;
    rl_tensor x = *t, y;
    x.rank = rank;
    x.dim[0] = t->dim[0] * t->dim[1], x.stride[0] = t->stride[1];
    x.dim[1] = t->dim[rank], x.stride[1] = t->stride[rank];
    const rl_tensor **in = rl_copy(c->tmp, c->in, c->nin * sizeof *in);
    in[0] = &x;
    RL_TRY(run_inner(c, n, in));
    if (c->declined) return RL_OK;
    int64_t dim[RL_LAY_RANK] = {t->dim[0], t->dim[1] * t->dim[rank]};
    for (uint32_t i = 2; i < rank; i++) dim[i] = 1;
    rl_tensor made = rl_contiguous(c->rt, &c->out[0]);
    rl_view_reshape(&made, rank, dim, &y);
    y = rl_view_slice(&y, 1, 0, 1, n->nout);
    rl_call_give(c, 0, y);
    return RL_OK;
}

/* A strided tensor that lies so already is a view. */
static bool lies_so(const rl_tensor *t, const rl_lay *lay) {
    int64_t perm[RL_RANK], step = 1;
    if (!rl_memory_order(t, perm)) return false;
    for (uint32_t i = lay->rank; i-- > 0; step *= t->dim[lay->perm[i]])
        if (t->dim[lay->perm[i]] != 1 && t->stride[lay->perm[i]] != step) return false;
    return true;
}

rl_status rl_native_move(rl_call *c) {
    const rl_native *n = c->step->native;
    RL_TRY(rl_call_need(c, 1));
    RL_TRY(check_inputs(c, n, &n->in));
    const rl_tensor *x = rl_call_in(c, 0);
    bool has = n->in.block || n->out.block; /* channels */
    rl_tensor from = n->in.block ? rl_lay_logical(x, n->nout) : *x;
    if (x->dtype != rl_val(c->g, c->node->in[0])->dtype || from.rank != n->out.rank || (has && from.dim[1] != n->nout))
        return rl_call_fail(c, RL_EMODEL, "the value is not as the plan says");
    c->step->ran = "move";
    rl_lay any;
    bool as_comes = rl_lay_same(&n->in, &n->out) && !rl_lay_of(x, &any); /* a broadcast: the plan speaks of row-major for want of a name */
    if (!has && (as_comes || lies_so(x, &n->out))) {
        rl_call_share(c, 0, *x);
        return RL_OK;
    }
    const rl_tensor *y = rl_lay_make(c, 0, x->dtype, &n->out, from.dim);
    if (rl_numel(y)) rl_lay_move(c->rt, y, &n->out, x, &n->in, n->nout);
    return RL_OK;
}

rl_status rl_native_plain(rl_call *c) {
    rl_native *n = c->step->native;
    const rl_tensor **in = rl_new(c->tmp, const rl_tensor *, c->nin + 1);
    const rl_lay *lay = n->kind == RL_NATIVE_CONV ? NULL : &n->out;
    if (n->strict) return rl_call_fail(c, RL_ELIMIT, "it has no optimized kernel in these layouts");
    for (uint32_t i = 0; i < c->nin; i++) {
        in[i] = c->in[i];
        if (!n->channels[i]) continue;
        const rl_lay *of = lay ? lay : i == 0 ? &n->in : &n->out;
        rl_tensor t = rl_lay_logical(c->in[i], n->channels[i]);
        rl_tensor *to = rl_call_temp(c, RL_F32, t.rank, t.dim);
        rl_lay_copy(c->rt, to, 0, 0, c->in[i], of->block, n->channels[i]);
        in[i] = to;
    }
    c->step->native = NULL;
    rl_status s = run_inner(c, n, in);
    c->step->native = n;
    c->step->ran = "plain";
    if (s != RL_OK || !n->out.block) return s;
    rl_tensor made = c->out[0];
    c->out[0] = (rl_tensor){0};
    int64_t dim[RL_LAY_RANK + 1];
    if (made.rank != n->out.rank || made.dim[1] != n->nout) return rl_call_fail(c, RL_EMODEL, "the output is not as the plan says");
    rl_lay_dims(&n->out, made.dim, dim);
    rl_tensor *y = rl_call_make(c, 0, RL_F32, n->out.rank + 1u, dim);
    rl_lay_copy(c->rt, y, n->out.block, 0, &made, 0, n->nout);
    rl_lay_clear(c->rt, y, n->nout);
    rl_tensor_drop(&made);
    return RL_OK;
}
