/* Element by element on the device: one operand, two, many; Clip, Where, Cast. What the CPU's ref_pointwise.c says holds here. */
#include <string.h>

#include "../runtime/number.h"
#include "../runtime/kernels.h"
#include "../runtime/ref_fused.h"
#include "../runtime/ref_pointwise.h"
#include "backend.h"

static rl_gpu_kernel each_kernel(rl_dtype t) {
    switch (t) {
    case RL_I8: return RL_GPU_each_i8;
    case RL_I16: return RL_GPU_each_i16;
    case RL_I32: return RL_GPU_each_i32;
    case RL_I64: return RL_GPU_each_i64;
    case RL_U8: case RL_BOOL: return RL_GPU_each_u8;
    case RL_U16: return RL_GPU_each_u16;
    case RL_U32: return RL_GPU_each_u32;
    case RL_U64: return RL_GPU_each_u64;
    default: return rl_gpu_of_float(RL_GPU_each_f32, t);
    }
}

typedef struct { rl_gpu *g; rl_gpu_kernel k; rl_p_each p; uint32_t size, out_size; } job;

static rl_status launch(void *arg, const rl_loops *l, uint32_t first, const int64_t *at) {
    const job *j = arg;
    rl_p_each p = j->p;
    p.w = rl_walk_of(l, first);
    uint32_t n = 1;
    for (uint32_t i = 0; i < p.w.rank; i++) n *= p.w.dim[i].d;
    if (!p.wide) p.count = n;
    p.to = (char *)p.to + at[0] * j->out_size;
    for (uint32_t o = 0; o < p.nin; o++) p.in[o] = (const char *)p.in[o] + at[1 + o] * (o == 2 ? 1 : j->size) /* Where's condition */;
    return rl_gpu_launch(j->g, j->k, p.wide ? rl_gpu_thread_blocks(n) : rl_gpu_blocks(n), &p, sizeof p);
}

/* By 16 bytes, where they can be taken so; of Where's condition as many elements, wherever they lie. */
static void widen(rl_loops *l, job *j) {
    uint64_t address[RL_OPERANDS] = {(uint64_t)(uintptr_t)j->p.to};
    for (uint32_t o = 0; o < j->p.nin; o++) address[1 + o] = (uint64_t)(uintptr_t)j->p.in[o];
    if (rl_loops_outer(l)) return;
    j->p.count = (uint32_t)rl_loops_count(l);
    rl_gpu_widen(l, j->size, RL_MIN(l->noperand, 3), address, &j->p.wide);
    for (uint32_t o = 0; j->p.wide && o < j->p.nin; o++) j->p.one[o] = l->step[1 + o][l->rank - 1] == 0;
}

rl_status rl_gpu_each(rl_call *c, int op, const rl_tensor *y, const rl_tensor *const *in, uint32_t nin, const double *param) {
    rl_dtype t = in[0]->dtype;
    const rl_tensor *all[RL_OPERANDS] = {y};
    rl_tensor view[3];
    job j = {.g = rl_gpu_of(c->rt), .k = each_kernel(t), .p = {.to = rl_data(y), .op = (uint32_t)op, .nin = nin}};
    if (j.k == RL_NGPU) return rl_call_decline(c);
    if (param) memcpy(j.p.param, param, sizeof j.p.param);
    for (uint32_t i = 0; i < nin; i++) {
        if (!rl_view_expand(in[i], y->rank, y->dim, &view[i])) return rl_call_fail(c, RL_EMODEL, "an input does not broadcast");
        all[1 + i] = &view[i];
        j.p.in[i] = rl_data(&view[i]);
    }
    if (!rl_numel(y)) return RL_OK;
    rl_loops l = rl_loops_of(y->rank, y->dim, all, 1 + nin);
    rl_loops_sort(&l);
    rl_loops_merge(&l);
    j.size = rl_elem_bits(t) / 8, j.out_size = rl_elem_bits(y->dtype) / 8;
    widen(&l, &j);
    return rl_loops_parts(&l, launch, &j);
}

/* Which types kernel cast takes. */
static bool casts(rl_dtype t) {
    return t == RL_F32 || t == RL_F64 || t == RL_F16 || t == RL_BF16 || t == RL_BOOL || t == RL_I8 || t == RL_U8 || t == RL_I16 || t == RL_U16
           || t == RL_I32 || t == RL_U32 || t == RL_I64;
}

void rl_gpu_fill_number(rl_call *c, const rl_tensor *y, double x) {
    uint64_t value = 0;
    rl_convert_run((rl_run){y->dtype, (char *)&value, 0, 1}, (rl_run){RL_F64, (char *)&x, 0, 1}, 1, true);
    rl_fill(c->rt, y, &value);
}

const rl_tensor *rl_gpu_number(rl_call *c, rl_dtype t, double x) {
    const rl_tensor *y = rl_call_temp(c, t, 0, NULL);
    rl_gpu_fill_number(c, y, x);
    return y;
}

/* ---- one and two operands ---- */

/* Without training: the mask is all true. */
rl_status rl_gpu_dropout(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_here(c, 0), *training = rl_call_as(c, 2, RL_BOOL);
    if (training && (rl_numel(training) != 1 || *(const bool *)rl_data(training))) return rl_call_decline(c);
    rl_call_share(c, 0, *x);
    if (rl_call_wants(c, 1)) rl_gpu_fill_number(c, rl_call_make(c, 1, c->node->since < 10 ? x->dtype : RL_BOOL, x->rank, x->dim), 1);
    return RL_OK;
}

rl_status rl_gpu_unary(rl_call *c) {
    double param[2] = {0};
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_here(c, 0);
    int op = rl_pointwise_op(c);
    rl_pointwise_params(c, param);
    rl_tensor *y = rl_gpu_make_like(c, rl_pointwise_makes_bool(op) ? RL_BOOL : x->dtype, x->rank, x->dim, &x, 1);
    return rl_gpu_each(c, op, y, (const rl_tensor *[]){x}, 1, param);
}

rl_status rl_gpu_binary(rl_call *c) {
    RL_TRY(rl_call_need(c, 2));
    uint32_t rank = 0;
    int64_t dim[RL_RANK] = {0};
    const rl_tensor *a = rl_call_in(c, 0), *b = rl_call_in(c, 1);
    if (c->node->since < 7 || a->kind != RL_TENSOR || b->kind != RL_TENSOR) return rl_call_decline(c);
    bool powers = c->arg == RL_PW_POW && rl_is_float(a->dtype) && casts(b->dtype); /* the exponent has a type of its own */
    if (a->dtype != b->dtype && !powers) return rl_call_decline(c);
    int op = rl_pointwise_op(c);
    RL_TRY(rl_call_broadcast(c, &rank, dim, a));
    RL_TRY(rl_call_broadcast(c, &rank, dim, b));
    a = rl_call_here(c, 0), b = rl_call_here(c, 1);
    if (b->dtype != a->dtype) b = rl_gpu_cast(c, b, a->dtype);
    rl_tensor *y = rl_gpu_make_like(c, rl_pointwise_makes_bool(op) ? RL_BOOL : a->dtype, rank, dim, (const rl_tensor *[]){a, b}, 2);
    return rl_gpu_each(c, op, y, (const rl_tensor *[]){a, b}, 2, NULL);
}

/* ---- SwiGLU; com.microsoft's BiasGelu, FastGelu (of a sum, where there is a bias), QuickGelu ---- */

rl_status rl_gpu_fused(rl_call *c) {
    static const int ops[] = {[RL_FU_SWIGLU] = RL_PW_SWISH, [RL_FU_BIAS_GELU] = RL_PW_GELU, [RL_FU_FAST_GELU] = RL_PW_GELU_TANH, [RL_FU_QUICK_GELU] = RL_PW_SWISH};
    bool gated = c->arg == RL_FU_SWIGLU;
    double param[2] = {rl_attr_float(c->node, "alpha", gated ? 1 : 1.702f)};
    RL_TRY(rl_call_need(c, gated || c->arg == RL_FU_BIAS_GELU ? 2 : 1));
    const rl_tensor *x = rl_call_here(c, 0), *z = rl_call_here(c, 1);
    if (z && (z->dtype != x->dtype || c->arg == RL_FU_QUICK_GELU)) return rl_call_decline(c);
    rl_tensor *y = rl_gpu_make_like(c, x->dtype, x->rank, x->dim, &x, 1);
    if (z && !gated) {
        RL_TRY(rl_gpu_each(c, RL_PW_ADD, y, (const rl_tensor *[]){x, z}, 2, NULL));
        x = y;
    }
    RL_TRY(rl_gpu_each(c, ops[c->arg], y, &x, 1, param));
    return gated ? rl_gpu_each(c, RL_PW_MUL, y, (const rl_tensor *[]){y, z}, 2, NULL) : RL_OK;
}

/* ---- Sum, Mean, Max, Min, Clip, Where ---- */


/* arg RL_PW_NOP: Mean */
rl_status rl_gpu_variadic(rl_call *c) {
    uint32_t rank = 0;
    int64_t dim[RL_RANK] = {0};
    RL_TRY(rl_call_need(c, c->nin));
    rl_dtype t = rl_call_in(c, 0)->dtype;
    bool mean = c->arg == RL_PW_NOP;
    for (uint32_t i = 0; i < c->nin; i++) {
        if (rl_call_in(c, i)->dtype != t) return rl_call_decline(c);
        RL_TRY(rl_call_broadcast(c, &rank, dim, rl_call_in(c, i)));
    }
    rl_tensor *y = rl_call_make(c, 0, t, rank, dim), first;
    rl_view_expand(rl_call_here(c, 0), rank, dim, &first);
    if (c->nin == 1) rl_tensor_move(c->rt, y, &first);
    for (uint32_t i = 1; i < c->nin; i++)
        RL_TRY(rl_gpu_each(c, mean ? RL_PW_ADD : c->arg, y, (const rl_tensor *[]){i == 1 ? &first : y, rl_call_here(c, i)}, 2, NULL));
    return mean ? rl_gpu_each(c, RL_PW_DIV, y, (const rl_tensor *[]){y, rl_gpu_number(c, t, c->nin)}, 2, NULL) : RL_OK;
}

rl_status rl_gpu_clip(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_here(c, 0), *bound[2] = {rl_call_here(c, 1), rl_call_here(c, 2)};
    for (uint32_t i = 0; i < 2; i++) {
        const char *name = i ? "max" : "min";
        if (c->node->since < 11 && rl_attr_find(c->node, name)) bound[i] = rl_gpu_number(c, x->dtype, rl_attr_float(c->node, name, 0));
        if (bound[i] && (bound[i]->dtype != x->dtype || rl_numel(bound[i]) != 1)) return rl_call_decline(c);
    }
    if (!bound[0] && !bound[1]) {
        rl_call_share(c, 0, *x);
        return RL_OK;
    }
    rl_tensor *y = rl_gpu_make_like(c, x->dtype, x->rank, x->dim, &x, 1);
    for (uint32_t i = 0; i < 2; i++) {
        if (!bound[i]) continue;
        rl_tensor one = *bound[i];
        one.rank = 0;
        RL_TRY(rl_gpu_each(c, i ? RL_PW_MIN : RL_PW_MAX, y, (const rl_tensor *[]){i && bound[0] ? y : x, &one}, 2, NULL));
    }
    return RL_OK;
}

rl_status rl_gpu_where(rl_call *c) {
    uint32_t rank = 0;
    int64_t dim[RL_RANK] = {0};
    RL_TRY(rl_call_need(c, 3));
    rl_dtype t = rl_call_in(c, 1)->dtype;
    if (rl_call_in(c, 0)->dtype != RL_BOOL || rl_call_in(c, 2)->dtype != t || t == RL_STRING || rl_elem_bits(t) < 8) return rl_call_decline(c);
    for (uint32_t i = 0; i < 3; i++) RL_TRY(rl_call_broadcast(c, &rank, dim, rl_call_in(c, i)));
    rl_tensor view[3], *y = rl_call_make(c, 0, t, rank, dim);
    const rl_tensor *all[RL_OPERANDS] = {y, &view[1], &view[2], &view[0]};
    uint32_t size = rl_elem_bits(t) / 8;
    job j = {.g = rl_gpu_of(c->rt), .k = rl_gpu_of_size(RL_GPU_where1, size), .p = {.to = rl_data(y), .nin = 3}, .size = size, .out_size = size};
    for (uint32_t i = 0; i < 3; i++) {
        rl_view_expand(rl_call_here(c, i), rank, dim, &view[i]);
        j.p.in[(i + 2) % 3] = rl_data(&view[i]);
    }
    if (!rl_numel(y)) return RL_OK;
    rl_loops l = rl_loops_of(rank, dim, all, 4);
    rl_loops_merge(&l);
    widen(&l, &j);
    return rl_loops_parts(&l, launch, &j);
}

/* ---- Cast ---- */

typedef struct { rl_gpu *g; rl_p_cast p; uint32_t to_size, from_size; } cast;

static rl_status launch_cast(void *arg, const rl_loops *l, uint32_t first, const int64_t *at) {
    const cast *j = arg;
    rl_p_cast p = j->p;
    p.w = rl_walk_of(l, first);
    p.count = 1;
    for (uint32_t i = 0; i < p.w.rank; i++) p.count *= p.w.dim[i].d;
    p.to = (char *)p.to + at[0] * j->to_size;
    p.from = (const char *)p.from + at[1] * j->from_size;
    return rl_gpu_launch(j->g, RL_GPU_cast, rl_gpu_blocks(p.count), &p, sizeof p);
}

/* Kernel floats for these types; RL_NGPU: none. */
static rl_gpu_kernel floats_kernel(rl_dtype to, rl_dtype from) {
    static const struct { rl_dtype to, from; rl_gpu_kernel k; } kinds[] = {
        {RL_F32, RL_F16, RL_GPU_f16_to_f32}, {RL_F32, RL_BF16, RL_GPU_bf16_to_f32}, {RL_F16, RL_F32, RL_GPU_f32_to_f16},
        {RL_F16, RL_BF16, RL_GPU_bf16_to_f16}, {RL_BF16, RL_F32, RL_GPU_f32_to_bf16}, {RL_BF16, RL_F16, RL_GPU_f16_to_bf16}};
    for (size_t i = 0; i < RL_LEN(kinds); i++)
        if (kinds[i].to == to && kinds[i].from == from) return kinds[i].k;
    return RL_NGPU;
}

rl_status rl_gpu_cast_to(rl_call *c, const rl_tensor *to, const rl_tensor *from) {
    enum { EIGHT = 8 };
    rl_gpu_kernel k = floats_kernel(to->dtype, from->dtype);
    cast j = {.g = rl_gpu_of(c->rt), .p = {.to = rl_data(to), .from = rl_data(from), .to_type = (int32_t)to->dtype, .from_type = (int32_t)from->dtype},
              .to_size = rl_elem_bits(to->dtype) / 8, .from_size = rl_elem_bits(from->dtype) / 8};
    if (!rl_numel(to)) return RL_OK;
    rl_loops l = rl_loops_of(to->rank, to->dim, (const rl_tensor *[]){to, from}, 2);
    rl_loops_sort(&l);
    rl_loops_merge(&l);
    bool dense = l.rank == 1 && l.step[0][0] == 1 && l.step[1][0] == 1 && l.dim[0] < INT32_MAX;
    if (k == RL_NGPU || !dense || (uintptr_t)j.p.to % (EIGHT * j.to_size) || (uintptr_t)j.p.from % (EIGHT * j.from_size)) return rl_loops_parts(&l, launch_cast, &j);
    j.p.count = (uint32_t)l.dim[0];
    return rl_gpu_launch(j.g, k, rl_gpu_thread_blocks((l.dim[0] + EIGHT - 1) / EIGHT), &j.p, sizeof j.p);
}

const rl_tensor *rl_gpu_cast(rl_call *c, const rl_tensor *t, rl_dtype type) {
    if (!t || t->dtype == type) return rl_here_dense(c, t);
    rl_tensor *y = rl_call_temp(c, type, t->rank, t->dim);
    rl_status s = rl_gpu_cast_to(c, y, t);
    if (s != RL_OK) c->rt->failed = s;
    return y;
}

rl_status rl_gpu_op_cast(rl_call *c) {
    RL_TRY(rl_call_need(c, c->arg ? 2 : 1));
    const rl_tensor *x = rl_call_in(c, 0);
    rl_dtype to = c->arg ? rl_call_in(c, 1)->dtype : (rl_dtype)rl_attr_int(c->node, "to", RL_UNDEF); /* CastLike, Cast */
    if (!casts(x->dtype) || !casts(to)) return rl_call_decline(c);
    x = rl_call_here(c, 0);
    if (to == x->dtype) {
        rl_call_share(c, 0, *x);
        return RL_OK;
    }
    return rl_gpu_cast_to(c, rl_gpu_make_like(c, to, x->rank, x->dim, &x, 1), x);
}
