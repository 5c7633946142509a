/* Matrix products on the device: MatMul and Gemm, by cuBLASLt where it is there, else by own tiles; operands of any strides. What was joined to
 * them (runtime/fuse.h) is the library's epilogue where it has that, else kernel posts. Of few rows (k_few_rows.h) own kernels do all of it. */

#include "../runtime/einsum.h"
#include "../runtime/fast.h"
#include "../runtime/kernels.h"
#include "../runtime/ref_matmul.h"
#include "backend.h"
#include "libs.h"
#include "posts.h"

typedef struct { rl_call *c; rl_gpu_kernel k; rl_dtype type, made; rl_p_matmul p; uint32_t size; rl_gpu_posts posts; bool joined; } product;

/* ---- few rows ---- */

/* For teams that have so many vectors of b: more lanes than 8 where there would be few blocks, or more than a lane reads at once. across: two teams of a
 * block have neighbours of a row of b, which is read by sectors of 32 bytes. */
static uint32_t few_lanes(uint64_t teams, uint64_t vectors, uint32_t bytes, bool across) {
    enum { ENOUGH = 256 * RL_THREADS };
    uint32_t lanes = 8, most = across ? RL_THREADS / 2 : RL_THREADS;
    while (lanes < most && lanes < vectors && (teams * lanes < ENOUGH || vectors * bytes > lanes * RL_FEW_AHEAD)) lanes *= 2;
    return lanes;
}

/* Beyond so many elements of b, or bytes for a lane, the library is as good, or better. */
enum { MOST_FEW = 1 << 21, MOST_SHARE = 8 * RL_FEW_AHEAD };

/* By kernel few_rows or few_across, with all that follows. */
static rl_status by_few_rows(const product *j, const rl_lt_job *q, bool *did) {
    const rl_p_matmul *p = &q->p;
    bool across = p->b_k != 1;
    rl_gpu_kernel kernel = rl_gpu_of_short(across ? RL_GPU_few_across_f32 : RL_GPU_few_rows_f32, q->type);
    uint32_t wide = across ? RL_FEW_ACROSS : 16 / j->size, teams = across ? (p->n + wide - 1) / wide : p->n, vectors = across ? p->k : (p->k + wide - 1) / wide;
    uint32_t lanes = few_lanes(teams, vectors, wide * j->size, across), per_block = RL_THREADS / lanes;
    *did = kernel != RL_NGPU && q->made == q->type && q->nbatch == 1 && p->m <= RL_FEW_ROWS && p->a_k == 1 && (!across || p->b_n == 1) && p->c_n == 1
           && (uint64_t)p->n * p->k <= MOST_FEW && (uint64_t)vectors * wide * j->size <= lanes * MOST_SHARE;
    if (!*did) return RL_OK;
    rl_p_few_rows f = {.y = p->c, .a = p->a, .b = p->b, .bias = p->bias, .m = p->m, .n = p->n, .k = p->k, .lanes = lanes, .npost = q->npost,
                       .a_m = p->a_m, .b_step = across ? p->b_k : p->b_n, .y_m = p->c_m, .bias_m = p->bias_m, .bias_n = p->bias_n, .alpha = p->alpha,
                       .beta = p->beta};
    uintptr_t at = across ? (uintptr_t)f.b : (uintptr_t)f.a | (uintptr_t)f.b;
    f.wide = at % (wide * j->size) == 0 && (f.b_step | (across ? p->n : f.a_m | p->k)) % wide == 0;
    for (uint32_t i = 0; i < q->npost; i++) {
        f.post[i] = q->post[i];
        if (q->operand[i]) f.operand[f.post[i].operand] = q->operand[i];
    }
    return rl_gpu_launch(rl_gpu_of(j->c->rt), kernel, (teams + per_block - 1) / per_block, &f, sizeof f);
}

/* ---- others ---- */

/* Few rows by own kernel, others by the library with all that follows, else by it alone, else by own tiles; what is left is kernel posts'. */
static rl_status launch(void *arg, const rl_loops *l, uint32_t first, const int64_t *at) {
    product *j = arg;
    rl_lt_job q = {.p = j->p, .type = j->type, .made = j->made, .nbatch = 1, .npost = j->joined ? j->posts.n : 0};
    bool did = false;
    q.p.batch = rl_walk_of(l, first);
    for (uint32_t i = 0; i < q.p.batch.rank; i++) q.nbatch *= q.p.batch.dim[i].d;
    q.p.c = (char *)q.p.c + at[0] * (rl_elem_bits(j->made) / 8), q.p.a = (const char *)q.p.a + at[1] * j->size, q.p.b = (const char *)q.p.b + at[2] * j->size;
    for (uint32_t i = 0; i < q.npost; i++) {
        q.post[i] = j->posts.post[i];
        q.operand[i] = j->posts.in[i] ? (const char *)rl_data(j->posts.in[i]) + at[0] * j->size : NULL;
    }
    RL_TRY(by_few_rows(j, &q, &did));
    if (!did) RL_TRY(rl_lt_matmul(j->c, &q, &did));
    if (did) return RL_OK;
    if (q.npost) { /* once more, for the product alone */
        j->joined = false;
        q.npost = 0;
        RL_TRY(rl_lt_matmul(j->c, &q, &did));
    }
    return did ? RL_OK : rl_gpu_launch(rl_gpu_of(j->c->rt), j->k, q.p.tiles_m.d * q.p.tiles_n.d * q.nbatch, &q.p, sizeof q.p);
}

/* batch: operands c, a, b; y: what is made. The batches, cut so that one launch has less than 2^31 blocks, are cut where the loops are. */
static rl_status run(product *j, const rl_loops *batch, const rl_tensor *y) {
    enum { SIDE = 64 };
    rl_p_matmul *p = &j->p;
    j->made = y->dtype;
    p->tiles_m = rl_divisor_of((p->m + SIDE - 1) / SIDE), p->tiles_n = rl_divisor_of((p->n + SIDE - 1) / SIDE);
    if (rl_loops_count(batch) * p->tiles_m.d * p->tiles_n.d >= INT32_MAX) return rl_call_decline(j->c);
    j->joined = j->posts.n && !rl_loops_outer(batch) && rl_gpu_posts_lie_like(&j->posts, y);
    RL_TRY(rl_loops_parts(batch, launch, j));
    return j->joined ? RL_OK : rl_gpu_run_posts(j->c, &j->posts, y);
}

static bool takes(const rl_tensor *a, const rl_tensor *b) {
    return a->dtype == b->dtype && rl_gpu_of_float(RL_GPU_matmul_f32, a->dtype) != RL_NGPU && rl_numel(a) < INT32_MAX && rl_numel(b) < INT32_MAX;
}

static int64_t batch_step(const rl_tensor *t, uint32_t nbatch, uint32_t i) {
    uint32_t lead = nbatch - (t->rank - 2);
    return i < lead || t->dim[i - lead] == 1 ? 0 : t->stride[i - lead];
}

/* y = alpha a b, batch by batch, with the bias that j->p has and the posts; `row`: from one row of y to the next. */
static rl_status multiply(product *j, const rl_tensor *a, const rl_tensor *b, const rl_tensor *y, int64_t row, double alpha) {
    rl_p_matmul *p = &j->p;
    uint32_t n = RL_MAX(a->rank, b->rank) - 2, m = a->rank - 2, k = b->rank - 2;
    rl_loops batch = {.rank = n, .noperand = 3};
    for (uint32_t i = 0; i < n; i++) {
        batch.dim[i] = y->dim[i];
        batch.step[0][i] = y->stride[i], batch.step[1][i] = batch_step(a, n, i), batch.step[2][i] = batch_step(b, n, i);
    }
    rl_loops_merge(&batch);
    j->type = a->dtype, j->size = rl_elem_bits(a->dtype) / 8;
    j->k = a->dtype == y->dtype ? rl_gpu_of_float(RL_GPU_matmul_f32, a->dtype) : a->dtype == RL_F16 ? RL_GPU_matmul_f16_f32 : RL_GPU_matmul_bf16_f32;
    p->c = rl_data(y), p->a = rl_data(a), p->b = rl_data(b), p->alpha = alpha;
    p->m = (uint32_t)a->dim[m], p->n = (uint32_t)b->dim[k + 1], p->k = (uint32_t)a->dim[m + 1];
    p->a_m = a->stride[m], p->a_k = a->stride[m + 1], p->b_k = b->stride[k], p->b_n = b->stride[k + 1], p->c_m = row, p->c_n = 1;
    return run(j, &batch, y);
}

/* What was folded into the product is a bias for each column. */
static void add_bias(rl_p_matmul *p, const rl_tensor *bias) {
    if (bias) p->bias = rl_data(bias), p->bias_m = 0, p->bias_n = 1, p->beta = 1;
}

/* An operand as FusedMatMul wants it. */
static rl_tensor side_of(const rl_call *c, const rl_tensor *t, const char *turns, const char *ahead) {
    return c->arg ? rl_matrix_laid(t, rl_attr_int(c->node, turns, 0) != 0, rl_attr_int(c->node, ahead, 0) != 0) : *t;
}

/* MatMul, and (arg 1) com.microsoft's FusedMatMul: alpha * A' * B'. */
rl_status rl_gpu_op_matmul(rl_call *c) {
    uint32_t rank;
    int64_t dim[RL_RANK];
    product j = {.c = c};
    const rl_tensor *w, *bias;
    if (c->step->joined) return rl_gpu_joined_attention(c);
    RL_TRY(rl_call_need(c, 2));
    if (!takes(rl_call_in(c, 0), rl_call_in(c, 1))) return rl_call_decline(c);
    rl_tensor a = side_of(c, rl_call_in(c, 0), "transA", "transBatchA"), b = side_of(c, rl_call_in(c, 1), "transB", "transBatchB");
    RL_TRY(rl_matmul_dims(c, &a, &b, &rank, dim));
    if (rl_product(dim, rank) >= INT32_MAX) return rl_call_decline(c);
    if (!rl_gpu_posts_of(c, dim, rank, &j.posts) || !rl_gpu_columns(c, 1, 0, &w, &bias)) return rl_call_decline(c);
    a = side_of(c, rl_call_here(c, 0), "transA", "transBatchA"), b = side_of(c, w, "transB", "transBatchB");
    bool rows = a.rank > 1 && b.rank > 2; /* batches of matrices: rows lie where they are wanted */
    a = rl_matrix_of(&a, true), b = rl_matrix_of(&b, false);
    rl_tensor *y = rl_call_make_in(c, 0, a.dtype, rank, dim, rows ? rl_order_for(c->step->order, rank) : NULL), flat;
    if (rl_numel(y) == 0) return RL_OK;
    if (b.rank == 2 && a.rank > 2 && rl_view_reshape(&a, 2, (int64_t[]){rl_numel(&a) / RL_MAX(a.dim[a.rank - 1], 1), a.dim[a.rank - 1]}, &flat)) a = flat;
    add_bias(&j.p, bias);
    return multiply(&j, &a, &b, y, rows ? y->stride[rank - 2] : b.dim[b.rank - 1], c->arg ? rl_attr_float(c->node, "alpha", 1) : 1);
}

rl_status rl_gpu_product(rl_call *c, const rl_tensor *a, const rl_tensor *b, const rl_tensor *y, double alpha) {
    product j = {.c = c};
    if (rl_numel(y) == 0) return RL_OK;
    if (!takes(a, b) || rl_numel(y) >= INT32_MAX) return rl_call_decline(c);
    return multiply(&j, a, b, y, y->stride[y->rank - 2], alpha);
}

rl_status rl_gpu_rows_by_columns(rl_call *c, const rl_tensor *a, const rl_tensor *b, const rl_tensor *bias, const rl_gpu_posts *posts, const rl_tensor *y) {
    product j = {.c = c, .posts = *posts};
    add_bias(&j.p, bias);
    return multiply(&j, a, b, y, b->dim[1], 1);
}

static rl_status product_of(rl_call *c, const rl_tensor *a, const rl_tensor *b, const rl_tensor *y) {
    return rl_gpu_product(c, a, b, y, 1);
}

rl_status rl_gpu_einsum(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    return rl_einsum(c, rl_call_in(c, 0)->dtype, product_of);
}

rl_status rl_gpu_op_gemm(rl_call *c) {
    static const int64_t swap[] = {1, 0};
    RL_TRY(rl_call_need(c, 2));
    const rl_tensor *x = rl_call_in(c, 0), *w = rl_call_in(c, 1), *z = rl_call_in(c, 2);
    bool turned = rl_attr_int(c->node, "transB", 0) != 0;
    float beta = rl_attr_float(c->node, "beta", 1);
    product j = {.c = c};
    const rl_tensor *columns, *whole;
    if (x->rank != 2 || w->rank != 2 || !takes(x, w) || (z && z->dtype != x->dtype)) return rl_call_decline(c);
    if (!rl_gpu_columns(c, turned ? 0 : 1, beta, &columns, &whole)) return rl_call_decline(c);
    rl_tensor a = *rl_call_here(c, 0), b = *columns, bias = {0};
    if (rl_attr_int(c->node, "transA", 0)) a = rl_view_transpose(&a, swap);
    if (turned) b = rl_view_transpose(&b, swap);
    if (a.dim[1] != b.dim[0]) return rl_call_fail(c, RL_EMODEL, "%lld columns by %lld rows", (long long)a.dim[1], (long long)b.dim[0]);
    int64_t dim[2] = {a.dim[0], b.dim[1]};
    if (whole) z = NULL; /* it is in there */
    if (dim[0] * dim[1] >= INT32_MAX || !rl_gpu_posts_of(c, dim, 2, &j.posts) || (z && !rl_view_expand(rl_call_here(c, 2), 2, dim, &bias))) return rl_call_decline(c);
    rl_tensor *y = rl_call_make(c, 0, a.dtype, 2, dim);
    if (rl_numel(y) == 0) return RL_OK;
    bool apart = bias.stride[1] == 0 || y->dtype == RL_F64; /* a bias that the library's epilogue has not: it would do nothing of the product either */
    if (z && apart && beta == 1 && dim[0] > RL_FEW_ROWS && rl_gpu_add_first(&j.posts, &bias)) z = NULL;
    if (z) j.p.bias = rl_data(&bias), j.p.bias_m = bias.stride[0], j.p.bias_n = bias.stride[1], j.p.beta = beta;
    add_bias(&j.p, whole);
    return multiply(&j, &a, &b, y, dim[1], rl_attr_float(c->node, "alpha", 1));
}
