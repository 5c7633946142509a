/* Which layouts a step may have, and what it runs with them: see native.h. */
#include <string.h>

#include "fuse.h"
#include "kernels_fast.h"
#include "native.h"

/* ---- what is known of a value ---- */

/* Of a type that plans speak of. */
static bool is_planned(const rl_exec *x, rl_value v) {
    const rl_valinfo *t = rl_val(x->g, v);
    return rl_native_ways_of(x->rt)->types & RL_T(t->dtype) && t->rank != RL_NORANK;
}

static bool same_dims(const rl_exec *x, rl_value v, rl_value w) {
    return rl_same_shape(rl_val(x->g, v), rl_val(x->g, w));
}

/* Can it be blocked at all? */
static bool has_channels(const rl_exec *x, rl_value v) {
    const rl_valinfo *t = rl_val(x->g, v);
    return is_planned(x, v) && (t->rank == 4 || t->rank == 5) && rl_dim_known(t->dim[1]) && t->dim[1] > 0;
}

static bool is_pin(const rl_exec *x, rl_value v) {
    const rl_valinfo *t = rl_has(v) ? rl_val(x->g, v) : NULL;
    return t && is_planned(x, v) && t->rank >= 3 && t->rank <= RL_LAY_RANK && x->constant[v.i].kind == RL_ABSENT && x->outer[v.i] == RL_NONE;
}

uint32_t rl_native_pins(const rl_exec *x, const rl_step *s, rl_pin *pin) {
    const rl_nodeinfo *n = s->info;
    uint32_t k = 0;
    if (n->nin + n->nout > RL_PINS || n->ncap) return 0;
    for (uint32_t i = 0; i < n->nin; i++)
        if (is_pin(x, n->in[i])) pin[k++] = (rl_pin){i, false, n->in[i]};
    for (uint32_t i = 0; i < n->nout; i++)
        if (is_pin(x, n->out[i])) pin[k++] = (rl_pin){i, true, n->out[i]};
    return k;
}

/* ---- kinds ---- */

static bool same_rank(const rl_exec *x, const rl_nodeinfo *n) {
    return rl_val(x->g, n->in[0])->rank == rl_val(x->g, n->out[0])->rank;
}

static bool is_constant(const rl_exec *x, rl_value v) {
    return !rl_has(v) || x->constant[v.i].kind != RL_ABSENT;
}

static bool is_one_number(const rl_exec *x, rl_value v) {
    const rl_tensor *t = &x->constant[v.i];
    return t->kind == RL_TENSOR && rl_numel(t) == 1;
}

static bool all_have_channels(const rl_exec *x, const rl_nodeinfo *n) {
    for (uint32_t i = 0; i < n->nin; i++)
        if (!rl_has(n->in[i]) || !has_channels(x, n->in[i])) return false;
    return true;
}

/* An input of the output's dims; all ranks known, and types planned, but on a device that of one number. */
static bool is_chain(const rl_exec *x, const rl_nodeinfo *n) {
    bool whole = false;
    for (uint32_t i = 0; i < n->nin; i++) {
        if (!rl_has(n->in[i]) || (x->rt->device && is_one_number(x, n->in[i]))) continue;
        if (!is_planned(x, n->in[i]) || rl_val(x->g, n->in[i])->rank > rl_val(x->g, n->out[0])->rank) return false;
        whole = whole || (same_dims(x, n->in[i], n->out[0]) && !is_constant(x, n->in[i]));
    }
    return whole;
}

static int64_t concat_axis(const rl_exec *x, const rl_nodeinfo *n) {
    int64_t axis = rl_attr_int(n, "axis", 1);
    return axis < 0 ? axis + rl_val(x->g, n->out[0])->rank : axis;
}

/* A reduction over all dims but the first two, which stay as dims of 1. */
static bool reduces_space(const rl_exec *x, const rl_nodeinfo *n) {
    const rl_attr *a = rl_attr_ints(n, "axes");
    const rl_tensor *t = rl_has(rl_in(n, 1)) ? &x->constant[n->in[1].i] : NULL;
    const int64_t *axes = a ? a->ints : NULL;
    int64_t rank = rl_val(x->g, n->in[0])->rank, count = a ? a->n : 0;
    uint32_t seen = 0;
    if (!a && t && t->kind == RL_TENSOR && t->dtype == RL_I64 && t->rank == 1 && rl_is_dense(t)) axes = rl_data(t), count = t->dim[0];
    if (!axes || count != rank - 2 || !rl_attr_int(n, "keepdims", 1)) return false;
    for (int64_t i = 0; i < count; i++) {
        int64_t k = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (k < 2 || k >= rank) return false;
        seen |= 1u << k;
    }
    return seen == (1u << rank) - 4;
}

/* Of one spatial dim, strided only; depthwise ones are seen with two (fast_conv.c). */
static bool is_conv_1d(const rl_exec *x, const rl_nodeinfo *n) {
    const rl_valinfo *w = n->nin > 1 && rl_has(n->in[1]) ? rl_val(x->g, n->in[1]) : NULL;
    int64_t group = rl_attr_int(n, "group", 1);
    return w && rl_val(x->g, n->out[0])->rank == 3 && is_planned(x, n->out[0]) && w->rank == 3 && (group == 1 || !rl_dim_known(w->dim[1]) || w->dim[1] > 1);
}

static bool is_batched_product(const rl_exec *x, const rl_nodeinfo *n) {
    return n->nin >= 2 && is_pin(x, n->out[0]) && rl_has(n->in[1]) && is_planned(x, n->in[1]) && rl_val(x->g, n->in[1])->rank >= 3;
}

static bool blocks_on_cpu(rl_dtype t, const rl_lay *lay) {
    rl_lay same = rl_lay_blocked(lay->rank, lay->block);
    return t == RL_F32 && (lay->block == 8 || lay->block == 16) && rl_lay_same(lay, &same);
}

static const rl_native_row cpu_rows[] = {
    {rl_fast_matmul, RL_NATIVE_PRODUCT}, {rl_fast_conv, RL_NATIVE_CONV}, {rl_fast_conv_transpose, RL_NATIVE_CONV}, {rl_fast_pool, RL_NATIVE_POOL},
    {rl_fast_reduce, RL_NATIVE_GLOBAL}, {rl_fast_global_pool, RL_NATIVE_GLOBAL}, {rl_fast_unary, RL_NATIVE_CHAIN}, {rl_fast_binary, RL_NATIVE_CHAIN},
    {rl_fast_chain, RL_NATIVE_CHAIN}, {rl_ref_concat, RL_NATIVE_CONCAT}};
static const rl_native_ways of_cpu = {.types = RL_T(RL_F32), .row = cpu_rows, .nrow = RL_LEN(cpu_rows), .blocks = blocks_on_cpu};

const rl_native_ways *rl_native_ways_of(const rl_rt *rt) {
    return rt->device ? rt->device->ways : &of_cpu;
}

/* What its kernel is; whether the step is one, its values say. */
static rl_native_kind listed(const rl_exec *x, const rl_step *s) {
    const rl_native_ways *w = rl_native_ways_of(x->rt);
    for (uint32_t i = 0; i < w->nrow; i++)
        if (w->row[i].fn == rl_step_fn(s)) return w->row[i].kind;
    return RL_NATIVE_NONE;
}

/* Its weights are constants; so is the rest, but what was joined to it. */
static bool is_fixed(const rl_exec *x, const rl_nodeinfo *n) {
    bool floats = strncmp(n->type, "Conv", 4) == 0;
    for (uint32_t i = 2; i < n->nin && (i < 3 || !floats); i++)
        if (!is_constant(x, n->in[i])) return false;
    return n->nin >= 2 && rl_has(n->in[1]) && is_constant(x, n->in[1]);
}

rl_native_kind rl_native_kind_of(const rl_exec *x, const rl_step *s) {
    const rl_nodeinfo *n = s->info;
    rl_native_kind kind = listed(x, s);
    bool is = kind != RL_NATIVE_NONE && n->nin && n->nout && rl_has(n->in[0]) && rl_has(n->out[0]);
    if (!is) return RL_NATIVE_NONE;
    bool in = is_pin(x, n->in[0]) && has_channels(x, n->in[0]), out = has_channels(x, n->out[0]);
    switch (kind) {
    case RL_NATIVE_PRODUCT: is = is_batched_product(x, n); break;
    case RL_NATIVE_CONV: is = (out || is_conv_1d(x, n)) && is_fixed(x, n) && same_rank(x, n) && is_pin(x, n->in[0]); break;
    case RL_NATIVE_POOL: is = out && n->nout == 1 && same_rank(x, n) && in; break;
    case RL_NATIVE_GLOBAL: is = out && in && (strncmp(n->type, "Reduce", 6) != 0 || reduces_space(x, n)); break;
    case RL_NATIVE_CHAIN: is = out && is_chain(x, n); break;
    case RL_NATIVE_CONCAT: is = out && concat_axis(x, n) == 1 && all_have_channels(x, n); break;
    default: break;
    }
    return is ? kind : RL_NATIVE_NONE;
}

/* ---- what is allowed ---- */

/* The pin that must lie as the output does. */
static bool follows(const rl_exec *x, rl_native_kind kind, const rl_step *s, const rl_pin *p) {
    switch (kind) {
    case RL_NATIVE_CONV: return p->slot >= 3;
    case RL_NATIVE_POOL: case RL_NATIVE_CONCAT: return true;
    case RL_NATIVE_CHAIN: return same_dims(x, p->v, s->info->out[0]);
    default: return false;
    }
}

bool rl_native_allows(const rl_exec *x, const rl_step *s, const rl_pin *pin, uint32_t npin, const rl_lay *lay) {
    rl_native_kind kind = rl_native_kind_of(x, s);
    bool any = false;
    for (uint32_t i = 0; i < npin; i++) {
        const rl_valinfo *v = rl_val(x->g, pin[i].v);
        if (lay[i].rank != v->rank) return false;
        if (lay[i].block && (!has_channels(x, pin[i].v) || !rl_native_ways_of(x->rt)->blocks(v->dtype, &lay[i]))) return false;
        any = any || lay[i].block;
    }
    if (!any) return true;
    const rl_lay *out = &lay[npin - 1];
    if (kind == RL_NATIVE_NONE || !npin || !pin[npin - 1].out || (kind == RL_NATIVE_GLOBAL && out->block)) return false;
    if (kind == RL_NATIVE_GLOBAL && lay[0].perm[0] != 0) return false;
    for (uint32_t i = 0; i + 1 < npin; i++) {
        if (pin[i].out) return false;
        bool free = (kind == RL_NATIVE_CONV || kind == RL_NATIVE_GLOBAL) && pin[i].slot == 0;
        if (lay[i].block && !free && !follows(x, kind, s, &pin[i])) return false;
        if (follows(x, kind, s, &pin[i]) && !rl_lay_same(&lay[i], out)) return false;
    }
    return true;
}

/* ---- what runs then ---- */

static float *padded(const rl_exec *x, const float *from, int64_t n, int64_t all) {
    float *to = rl_new(&x->g->mem, float, all);
    if (from) memcpy(to, from, (size_t)n * sizeof *to);
    return to;
}

/* The scales and shifts of a chain, a number for each lane. */
static struct rl_fused *blocked_fused(const rl_exec *x, const rl_fused *f, uint32_t block) {
    if (!f || !f->scale) return NULL;
    rl_fused *to = rl_copy(&x->g->mem, f, sizeof *f);
    to->nchannel = (f->nchannel + block - 1) / block * block;
    to->scale = padded(x, f->scale, f->nchannel, to->nchannel);
    to->shift = padded(x, f->shift, f->nchannel, to->nchannel);
    return to;
}

rl_native *rl_native_of(const rl_exec *x, const rl_step *s, const rl_pin *pin, uint32_t npin, const rl_lay *lay) {
    rl_native_kind kind = rl_native_kind_of(x, s);
    bool any = false;
    if (kind == RL_NATIVE_NONE || !npin || !pin[npin - 1].out || pin[0].out) return NULL;
    int64_t *channels = rl_new(&x->g->mem, int64_t, s->info->nin);
    for (uint32_t i = 0; i + 1 < npin; i++) {
        any = any || lay[i].block;
        if (lay[i].block) channels[pin[i].slot] = rl_val(x->g, pin[i].v)->dim[1];
    }
    if (!any && !lay[npin - 1].block && kind != RL_NATIVE_CONV && kind != RL_NATIVE_POOL) return NULL;
    rl_native *n = rl_new(&x->g->mem, rl_native, 1);
    *n = (rl_native){.kind = kind, .in = lay[0], .out = lay[npin - 1], .channels = channels, .nout = rl_val(x->g, s->info->out[0])->dim[1],
                     .inner = s->kernel.p[0], .was = s->info, .device = x->rt->device != NULL};
    if (kind == RL_NATIVE_CHAIN) n->fused = blocked_fused(x, s->fused, n->out.block);
    return n;
}

rl_order rl_native_order(rl_arena *mem, const rl_lay *out) {
    rl_lay rows = rl_lay_rows(out->rank);
    if (rl_lay_same(out, &rows)) return (rl_order){0};
    int64_t *order = rl_new(mem, int64_t, out->rank);
    for (uint32_t i = 0; i < out->rank; i++) order[i] = out->perm[i];
    return (rl_order){order, out->rank};
}

bool rl_native_is_move(const rl_step *s) {
    return s->native && s->native->kind == RL_NATIVE_MOVE;
}

bool rl_native_only_moves(const rl_native *n) {
    return n->kind == RL_NATIVE_MOVE || n->kind == RL_NATIVE_CONCAT;
}

const rl_kernel *rl_native_kernel(const rl_native *n) {
    static const rl_kernel own[] = {
        [RL_NATIVE_CHAIN] = {.types = RL_T(RL_F32), .fn = rl_native_chain},
        [RL_NATIVE_CONCAT] = {.fn = rl_native_concat},
        [RL_NATIVE_GLOBAL] = {.types = RL_T(RL_F32), .fn = rl_native_global_pool},
        [RL_NATIVE_MOVE] = {.fn = rl_native_move},
    };
    if (n->device && !rl_native_only_moves(n)) return NULL;
    return n->kind == RL_NATIVE_CONV || n->kind == RL_NATIVE_POOL ? n->inner : &own[n->kind];
}
