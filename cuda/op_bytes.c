/* Products of bytes on the device: QLinearMatMul, MatMulInteger, com.microsoft's MatMulIntegerToFloat and DynamicQuantizeMatMul, by cuBLASLt's integer tensor cores where it takes them (sizes that 4 divides), else by
 * own tiles; sums in 32 bits, exact.
 *
 * Unsigned bytes are made signed, x ^ 0x80 = x - 128, and their zero points with them.  What the zero points add is made up for after the product:
 *
 *   sum of (a - z)(b - w)  =  sum of a b  -  z * (b's column)  -  w * (a's row)  +  k z w
 *
 * z is one number, w one for each column or for all; both and all scales are constants, but that zero points, one each, may be made in the run, and so may scales
 * of what becomes floats.  A constant b is laid out once, its columns as rows, as the library wants it. */

#include "../runtime/fast.h"
#include "../runtime/kernels.h"
#include "../runtime/quantize.h"
#include "../runtime/ref_matmul.h"
#include "../runtime/ref_pointwise.h"
#include "libs.h"
#include "numbers.h"

/* What the host made of the step's constants, in the graph's memory. NULL: nothing to do. */
typedef struct {
    int8_t *w;                 /* b's columns as rows; NULL: b is no constant */
    int32_t *zero, *sums;      /* by column: b's zero point (NULL: made in the run); the sum of a constant b */
    float *scale;
    int32_t a_zero, y_zero;
    int64_t n;
} made;

static bool makes_floats(const rl_call *c) {
    return c->arg == RL_GPU_TO_FLOAT || c->arg == RL_GPU_DYNAMIC;
}

static bool takes_scale(const rl_call *c, uint32_t at, int64_t n) {
    const rl_tensor *s = rl_gpu_input(c, at);
    return makes_floats(c) && s ? s->dtype == RL_F32 && (rl_numel(s) == 1 || rl_numel(s) == n) : rl_gpu_takes_numbers(c, at, RL_F32, n);
}

static bool takes(const rl_call *c, const rl_gpu_places *p) {
    const rl_tensor *a = rl_call_in(c, p->x), *b = rl_call_in(c, p->w), *z = rl_gpu_input(c, p->y_zero), *bias = makes_floats(c) ? rl_gpu_input(c, p->bias) : NULL;
    if (!a || !b || (c->arg == RL_GPU_DYNAMIC ? a->dtype != RL_F32 : !rl_gpu_is_byte(a->dtype)) || !rl_gpu_is_byte(b->dtype) || a->rank < 2 || b->rank < 2 || (p->y_zero != RL_NONE && (!z || !rl_gpu_is_byte(z->dtype)))) return false;
    int64_t n = b->dim[b->rank - 1];
    return rl_numel(a) < INT32_MAX && rl_numel(b) < INT32_MAX && rl_numel(a) > 0 && rl_numel(b) > 0 && rl_gpu_takes_zero(c, p->x_zero, a->dtype)
           && (rl_gpu_takes_numbers(c, p->w_zero, b->dtype, n) || rl_gpu_takes_zero(c, p->w_zero, b->dtype)) && takes_scale(c, p->x_scale, 1) && takes_scale(c, p->w_scale, n)
           && (!bias || (bias->dtype == RL_F32 && rl_numel(bias) == n))
           && rl_gpu_takes_numbers(c, p->y_scale, RL_F32, 1) && rl_gpu_takes_numbers(c, p->y_zero, z ? z->dtype : RL_U8, 1);
}

static int32_t signed_zero(rl_call *c, uint32_t at, rl_dtype t, uint32_t i) {
    return (int32_t)rl_gpu_number_at(c, at, i, 0) - (t == RL_U8 ? 128 : 0);
}

/* b, a constant matrix: its columns as rows, signed, and their sums. */
static void make_columns(rl_call *c, rl_arena *mem, const rl_gpu_places *p, made *m) {
    const rl_tensor *b = rl_call_dense(c, p->w);
    int64_t k = b->dim[0];
    const uint8_t *from = rl_data(b);
    m->w = rl_new(mem, int8_t, m->n * k);
    m->sums = rl_new(mem, int32_t, m->n);
    for (int64_t j = 0; j < m->n; j++) {
        int64_t sum = 0;
        for (int64_t i = 0; i < k; i++) {
            m->w[j * k + i] = (int8_t)(from[i * m->n + j] ^ (b->dtype == RL_U8 ? 0x80 : 0));
            sum += m->w[j * k + i];
        }
        m->sums[j] = (int32_t)(uint32_t)sum;
    }
}

static bool zero_comes(const rl_call *c, const rl_gpu_places *p) {
    return c->arg == RL_GPU_DYNAMIC || rl_gpu_is_made(c, p->x_zero);
}

/* On the host, once for the step. */
static const made *make(rl_call *c, const rl_gpu_places *p) {
    rl_arena *mem = &c->frame->x->g->mem;
    const rl_tensor *b = rl_call_in(c, p->w);
    made *m = rl_new(mem, made, 1);
    m->n = b->dim[b->rank - 1];
    if (!zero_comes(c, p)) m->a_zero = signed_zero(c, p->x_zero, rl_call_in(c, p->x)->dtype, 0);
    m->y_zero = (int32_t)rl_gpu_number_at(c, p->y_zero, 0, 0);
    if (!rl_gpu_is_made(c, p->w_zero)) m->zero = rl_new(mem, int32_t, m->n);
    for (uint32_t j = 0; m->zero && j < (uint32_t)m->n; j++) m->zero[j] = signed_zero(c, p->w_zero, b->dtype, j);
    if (rl_call_is_constant(c, p->w) && b->rank == 2) make_columns(c, mem, p, m);
    if (p->y_scale == RL_NONE) return m;
    m->scale = rl_new(mem, float, m->n);
    for (uint32_t j = 0; j < (uint32_t)m->n; j++)
        m->scale[j] = (float)rl_gpu_number_at(c, p->x_scale, 0, 1) * (float)rl_gpu_number_at(c, p->w_scale, j, 1) / (float)rl_gpu_number_at(c, p->y_scale, 0, 1);
    return m;
}

static const made *made_of(rl_call *c, const rl_gpu_places *p) {
    const rl_backend *was = c->rt->on;
    c->rt->on = &rl_backend_cpu;
    if (!c->step->made) c->step->made = make(c, p);
    c->rt->on = was;
    return c->step->made;
}

/* The first matrix on the device, in bytes, and what is read there: its zero point, if the run makes that, and, of what becomes floats, its scale. */
typedef struct { const rl_tensor *x, *zero, *scale; } left;

static rl_status left_of(rl_call *c, const rl_gpu_places *p, left *a) {
    const rl_tensor *x = rl_call_here(c, p->x);
    *a = (left){x, rl_gpu_is_made(c, p->x_zero) ? rl_call_here(c, p->x_zero) : NULL, c->arg == RL_GPU_TO_FLOAT ? rl_call_here(c, p->x_scale) : NULL};
    if (c->arg != RL_GPU_DYNAMIC) return RL_OK;
    *a = (left){rl_call_temp(c, RL_U8, x->rank, x->dim), rl_call_temp(c, RL_U8, 0, NULL), rl_call_temp(c, RL_F32, 0, NULL)};
    return rl_gpu_quantized(c, x, a->x, a->scale, a->zero);
}

/* t, on the device, as signed bytes; a row-major temporary where they were not. */
static rl_status as_signed(rl_call *c, const rl_tensor *t, rl_tensor *out) {
    static const uint8_t top = 0x80;
    *out = *t;
    if (t->dtype == RL_I8) return RL_OK;
    t = rl_here_dense(c, t);
    *out = *rl_call_temp(c, RL_I8, t->rank, t->dim);
    rl_p_each p = {.to = rl_data(out), .in = {rl_data(t), rl_call_keep(c, &top, 1, true)}, .count = (uint32_t)rl_numel(t), .op = RL_PW_BIT_XOR, .nin = 2,
                   .one = {0, 1}};
    rl_loops l = {.rank = 1, .noperand = 3, .dim = {p.count}, .step = {{1}, {1}, {0}}};
    uint32_t blocks = rl_gpu_widen(&l, 1, 2, (uint64_t[]){(uintptr_t)p.to, (uintptr_t)p.in[0]}, &p.wide);
    p.w = rl_walk_of(&l, 0);
    return rl_gpu_launch(rl_gpu_of(c->rt), RL_GPU_each_u8, blocks, &p, sizeof p);
}

/* b, [..., k, n], with the neighbours along k, as the library wants it. */
static rl_tensor turned(rl_call *c, const rl_tensor *b) {
    if (b->stride[b->rank - 2] == 1 || !rl_libs_of(c->rt)) return *b;
    rl_tensor wanted = rl_matrix_laid(b, true, false), view = rl_matrix_laid(rl_call_temp(c, RL_I8, b->rank, wanted.dim), true, false);
    rl_tensor_move(c->rt, &view, b);
    return view;
}

typedef struct { rl_call *c; rl_lt_job q; } product;

static rl_status launch(void *arg, const rl_loops *l, uint32_t first, const int64_t *at) {
    const product *j = arg;
    rl_lt_job q = j->q;
    bool did;
    q.p.batch = rl_walk_of(l, first);
    q.nbatch = 1;
    for (uint32_t i = 0; i < q.p.batch.rank; i++) q.nbatch *= q.p.batch.dim[i].d;
    q.p.c = (int32_t *)q.p.c + at[0], q.p.a = (const int8_t *)q.p.a + at[1], q.p.b = (const int8_t *)q.p.b + at[2];
    RL_TRY(rl_lt_matmul(j->c, &q, &did));
    return did ? RL_OK : rl_gpu_launch(rl_gpu_of(j->c->rt), RL_GPU_matmul_i8, q.p.tiles_m.d * q.p.tiles_n.d * q.nbatch, &q.p, sizeof q.p);
}

/* sum[..., m, n], row-major, of a[..., m, k] and b[..., k, n]. */
static rl_status multiply(rl_call *c, const rl_tensor *a, const rl_tensor *b, const rl_tensor *sum) {
    enum { SIDE = 64 };
    uint32_t nbatch = sum->rank - 2;
    product j = {.c = c, .q = {.type = RL_I8, .made = RL_I32}};
    rl_tensor flat;
    rl_loops batch = {.noperand = 3};
    if (b->rank == 2 && rl_view_reshape(a, 2, (int64_t[]){rl_numel(a) / a->dim[a->rank - 1], a->dim[a->rank - 1]}, &flat)) a = &flat, nbatch = 0;
    uint32_t ra = a->rank, rb = b->rank;
    j.q.p = (rl_p_matmul){.c = rl_data(sum), .a = rl_data(a), .b = rl_data(b), .m = (uint32_t)a->dim[ra - 2], .n = (uint32_t)b->dim[rb - 1], .k = (uint32_t)a->dim[ra - 1],
                          .a_m = a->stride[ra - 2], .a_k = a->stride[ra - 1], .b_k = b->stride[rb - 2], .b_n = b->stride[rb - 1], .c_m = b->dim[rb - 1], .c_n = 1, .alpha = 1};
    j.q.p.tiles_m = rl_divisor_of((j.q.p.m + SIDE - 1) / SIDE), j.q.p.tiles_n = rl_divisor_of((j.q.p.n + SIDE - 1) / SIDE);
    for (uint32_t i = 0; i < nbatch; i++, batch.rank++) {
        uint32_t la = nbatch - (ra - 2), lb = nbatch - (rb - 2);
        batch.dim[i] = sum->dim[i], batch.step[0][i] = sum->stride[i];
        batch.step[1][i] = i < la || a->dim[i - la] == 1 ? 0 : a->stride[i - la], batch.step[2][i] = i < lb || b->dim[i - lb] == 1 ? 0 : b->stride[i - lb];
    }
    rl_loops_merge(&batch);
    return rl_loops_parts(&batch, launch, &j);
}

/* Of lines of t along `axis`, in the order of the other dims. */
static rl_status sums_of(rl_call *c, const rl_tensor *t, uint32_t axis, const void **out) {
    int64_t dim[RL_RANK] = {0};
    rl_loops l = {.noperand = 1};
    for (uint32_t i = 0; i < t->rank; i++)
        if (i != axis) dim[l.rank] = l.dim[l.rank] = t->dim[i], l.step[0][l.rank++] = t->stride[i];
    rl_tensor *y = rl_call_temp(c, RL_I32, l.rank, dim);
    rl_loops_merge(&l);
    if (l.rank > RL_DIMS) return rl_call_fail(c, RL_ELIMIT, "more than %d dims", RL_DIMS);
    rl_p_byte_sums p = {.to = rl_data(y), .from = rl_data(t), .count = (uint32_t)rl_numel(y), .n = (uint32_t)t->dim[axis], .step = t->stride[axis], .w = rl_walk_of(&l, 0)};
    uintptr_t at = (uintptr_t)p.from | p.n;
    for (uint32_t i = 0; i < l.rank; i++) at |= (uintptr_t)l.step[0][i];
    p.wide = p.step == 1 && at % 16 == 0;
    *out = p.to;
    return rl_gpu_launch(rl_gpu_of(c->rt), RL_GPU_byte_sums, rl_gpu_blocks(p.count), &p, sizeof p);
}

/* Whose columns can be summed up: one matrix, or one for each of the output's. */
static bool has_sums(const rl_tensor *b, uint32_t rank, const int64_t *dim) {
    bool same = b->rank == rank;
    for (uint32_t i = 0; same && i + 2 < rank; i++) same = b->dim[i] == dim[i];
    return b->rank == 2 || same;
}

static bool any(const int32_t *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (x[i]) return true;
    return false;
}

/* The operands as signed bytes, b with its columns as the library wants them. */
static rl_status operands(rl_call *c, const rl_gpu_places *p, const made *m, const rl_tensor *x, rl_tensor *a, rl_tensor *b) {
    RL_TRY(as_signed(c, x, a));
    if (!m->w) {
        RL_TRY(as_signed(c, rl_call_here(c, p->w), b));
        *b = turned(c, b);
        return RL_OK;
    }
    int64_t k = a->dim[a->rank - 1];
    rl_tensor w = rl_tensor_borrow(c->rt, RL_I8, 2, (int64_t[]){m->n, k}, m->w, (size_t)(m->n * k));
    *b = rl_view_transpose(rl_call_kept(c, &w), (int64_t[]){1, 0});
    rl_tensor_drop(&w);
    return RL_OK;
}

/* t, which the run made; NULL: this number. */
static rl_p_zero zero_of(const rl_tensor *t, int32_t value) {
    return t ? (rl_p_zero){.at = rl_data(t), .flip = t->dtype == RL_U8 ? 0x80 : 0} : (rl_p_zero){.value = value};
}

/* What follows the product: zero points and scales. */
static rl_status finish(rl_call *c, const rl_gpu_places *p, const made *m, const left *l, const rl_tensor *a, const rl_tensor *b, const rl_tensor *sum,
                        const rl_tensor *y, bool rows, bool sums) {
    size_t n = (size_t)m->n;
    double range[2] = {0, 0};
    int64_t height = b->rank > 2 ? y->dim[y->rank - 2] : rl_numel(y) / m->n;
    if (m->scale) rl_range_of(y->dtype, &range[0], &range[1]);
    rl_p_byte_end e = {.to = rl_data(y), .from = rl_data(sum), .count = (uint32_t)rl_numel(y), .k = (uint32_t)a->dim[a->rank - 1],
                       .columns = rl_divisor_of((uint32_t)n), .height = rl_divisor_of((uint32_t)height), .y_zero = m->y_zero,
                       .a_zero = zero_of(l->zero, m->a_zero), .b_zero = zero_of(m->zero ? NULL : rl_call_here(c, p->w_zero), 0), .least = (int32_t)range[0], .most = (int32_t)range[1]};
    if (m->scale) e.scale = rl_call_keep(c, m->scale, n * sizeof *m->scale, true);
    if (l->scale) {
        const rl_tensor *scale = rl_here_dense(c, rl_call_here(c, p->w_scale)), *bias = rl_here_dense(c, rl_call_here(c, p->bias));
        e.a_scale = rl_data(l->scale), e.scale = rl_data(scale), e.scale_step = rl_numel(scale) > 1, e.bias = bias ? rl_data(bias) : NULL;
    }
    if (rows && m->zero) e.zero = rl_call_keep(c, m->zero, n * sizeof *m->zero, true);
    if (rows) RL_TRY(sums_of(c, a, a->rank - 1, &e.rows));
    if (sums && m->sums) e.sums = rl_call_keep(c, m->sums, n * sizeof *m->sums, true);
    else if (sums) RL_TRY(sums_of(c, b, b->rank - 2, &e.sums));
    return rl_gpu_launch(rl_gpu_of(c->rt), RL_GPU_byte_end, rl_gpu_blocks(e.count), &e, sizeof e);
}

rl_status rl_gpu_matmul_bytes(rl_call *c) {
    const rl_gpu_places *p;
    uint32_t rank;
    int64_t dim[RL_RANK];
    rl_tensor a, b;
    left l;
    RL_TRY(rl_gpu_places_of(c, &p));
    if (!takes(c, p)) return rl_call_decline(c);
    const rl_tensor *z = rl_gpu_input(c, p->y_zero);
    RL_TRY(rl_matmul_dims(c, rl_call_in(c, p->x), rl_call_in(c, p->w), &rank, dim));
    const made *m = made_of(c, p);
    bool rows = !m->zero || any(m->zero, m->n), sums = m->a_zero || zero_comes(c, p), rest = m->scale || rows || sums || makes_floats(c);
    if ((rows && rank > rl_call_in(c, p->x)->rank) || (sums && !m->sums && !has_sums(rl_call_in(c, p->w), rank, dim)) || rl_product(dim, rank) >= INT32_MAX)
        return rl_call_decline(c);
    RL_TRY(left_of(c, p, &l));
    RL_TRY(operands(c, p, m, l.x, &a, &b));
    rl_tensor *y = rl_call_make(c, 0, z ? z->dtype : makes_floats(c) ? RL_F32 : RL_I32, rank, dim), *sum = rest ? rl_call_temp(c, RL_I32, rank, dim) : y;
    RL_TRY(multiply(c, &a, &b, sum));
    return rest ? finish(c, p, m, &l, &a, &b, sum, y, rows, sums) : RL_OK;
}
