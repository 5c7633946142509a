/* Matrix products by cuBLASLt: operands as they lie (side.h), transposed or not, heads side by side; in the epilogue what follows.
 *
 * Batches have one step from each to the next, or (heads of several images) a list of addresses.
 *
 *   D = act(alpha A B + beta C + bias)      bias: one number for each column; C: a whole matrix, which may be another branch's sum;
 *                                           act: Relu, or Gelu by tanh, which is what the library computes by that name
 *   int8: sums in 32 bits, A' B only, sizes that 4 divides, no epilogue: the caller does what follows (op_bytes.c)
 *
 * What algorithm the library's heuristic names is kept by shape. */
#include <stdlib.h>
#include <string.h>

#include "../runtime/rows.h"
#include "libs_internal.h"
#include "side.h"

/* What is asked for, without addresses; compared by bytes. */
typedef struct {
    rl_dtype type, made;          /* of A and B, of C and D */
    int32_t nbatch, by_address;   /* by_address: no step leads through the batches */
    cublasOperation_t first, second;
    cublasLtEpilogue_t epilogue;
    uint64_t rows[4], columns[4]; /* of A, B, C, D */
    int64_t ld[4], step[4];
    uint32_t align[5];            /* what divides each address and the bias's, at most 256; the library takes 256 where it is not told */
} key;

struct rl_lt_choice { rl_lt_choice *next; key key; bool any; cublasLtMatmulAlgo_t algo; int64_t nworkspace; };

typedef struct {
    rl_libs *l;
    key key;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t layout[4];
    const void *bias, *c; /* c: the whole matrix that is added; NULL: none */
    const void *at[4];    /* A, B, C, D, or, by_address, where each batch has its own */
    double beta;
} job;

/* ---- what is asked for ---- */

static void set_side(job *j, uint32_t i, const rl_side *s, int64_t step) {
    j->key.rows[i] = s->rows, j->key.columns[i] = s->columns, j->key.ld[i] = s->ld, j->key.step[i] = step;
}

/* A bias for each column goes into the epilogue; a whole matrix is C; others: not here. */
static bool take_bias(job *j, const rl_p_matmul *p, int64_t *ld) {
    if (!p->bias) return true;
    if (p->bias_n != 1 && p->n != 1) return false;
    if (p->bias_m == 0 && p->beta == 1) {
        j->bias = p->bias;
        return true;
    }
    if (j->key.nbatch != 1 || p->bias_m < (int64_t)p->n) return false;
    j->c = p->bias, j->beta = p->beta, *ld = p->bias_m;
    return true;
}

/* The other branch's sum as C, then one activation; false: more, or others. */
static bool take_posts(job *j, const rl_lt_job *q, cublasLtEpilogue_t *act) {
    uint32_t i = 0;
    if (i < q->npost && q->post[i].op == RL_ROW_ADD && !j->c) j->c = q->operand[i++], j->beta = 1;
    if (i < q->npost && q->post[i].op == RL_ROW_RELU) *act = CUBLASLT_EPILOGUE_RELU, i++;
    else if (i < q->npost && q->post[i].op == RL_ROW_GELU_TANH) *act = CUBLASLT_EPILOGUE_GELU, i++;
    return i == q->npost;
}

static cublasLtEpilogue_t with_bias(cublasLtEpilogue_t act) {
    return act == CUBLASLT_EPILOGUE_RELU ? CUBLASLT_EPILOGUE_RELU_BIAS : act == CUBLASLT_EPILOGUE_GELU ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
}

static uint32_t alignment(const void *p) {
    uint32_t n = 256;
    while ((uintptr_t)p % n) n /= 2;
    return n;
}

/* c', which is what the library makes: its A is b, its B is a. */
static bool describe(job *j, const rl_lt_job *q) {
    const rl_p_matmul *p = &q->p;
    rl_side a, b, c = {false, p->n, p->m, p->c_m};
    int64_t step[3] = {0}, ld = p->c_m;
    cublasLtEpilogue_t act = CUBLASLT_EPILOGUE_DEFAULT;
    if (!rl_side_of(p->n, p->b_n, p->k, p->b_k, q->type != RL_I8, &b) || !rl_side_of(p->m, p->a_m, p->k, p->a_k, false, &a)) return false;
    if (q->type == RL_I8 && (a.turned || b.turned)) return false; /* neighbours that do not lie along k */
    if (q->type == RL_I8) b.turned = true;
    for (uint32_t o = 0; o < 3 && p->batch.rank && !j->key.by_address; o++) step[o] = p->batch.step[o][0];
    j->key.type = q->type, j->key.made = q->made, j->key.nbatch = (int32_t)q->nbatch;
    j->key.first = b.turned ? CUBLAS_OP_T : CUBLAS_OP_N, j->key.second = a.turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    if (!take_bias(j, p, &ld) || !take_posts(j, q, &act)) return false;
    set_side(j, 0, &b, step[2]), set_side(j, 1, &a, step[1]), set_side(j, 3, &c, step[0]);
    c.ld = ld;
    set_side(j, 2, &c, step[0]);
    j->key.epilogue = j->bias ? with_bias(act) : act;
    j->at[0] = p->b, j->at[1] = p->a, j->at[2] = j->c ? j->c : p->c, j->at[3] = p->c;
    for (uint32_t i = 0; i < 4; i++) j->key.align[i] = alignment(j->at[i]);
    j->key.align[4] = j->bias ? alignment(j->bias) : 0; /* the heuristic reads the pointer */
    return true;
}

/* ---- the library's descriptors ---- */

static cudaDataType_t data_type(rl_dtype t) {
    return t == RL_F64 ? CUDA_R_64F : t == RL_F16 ? CUDA_R_16F : t == RL_BF16 ? CUDA_R_16BF : t == RL_I8 ? CUDA_R_8I : t == RL_I32 ? CUDA_R_32I : CUDA_R_32F;
}

static bool set_desc(job *j, cublasLtMatmulDescAttributes_t what, const void *p, size_t n) {
    return j->l->cublasLtMatmulDescSetAttribute(j->desc, what, p, n) == CUBLAS_STATUS_SUCCESS;
}

/* Batches by address came with CUDA 13. */
static bool set_mode(job *j, uint32_t i) {
#if CUBLAS_VERSION >= 130000
    const uint32_t mode = CUBLASLT_BATCH_MODE_POINTER_ARRAY;
    return !j->key.by_address
           || j->l->cublasLtMatrixLayoutSetAttribute(j->layout[i], CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, &mode, sizeof mode) == CUBLAS_STATUS_SUCCESS;
#else
    return !j->key.by_address;
#endif
}

static bool make_layout(job *j, uint32_t i) {
    const rl_libs *l = j->l;
    const key *k = &j->key;
    cudaDataType_t t = data_type(i > 1 ? k->made : k->type);
    return l->cublasLtMatrixLayoutCreate(&j->layout[i], t, k->rows[i], k->columns[i], k->ld[i]) == CUBLAS_STATUS_SUCCESS && set_mode(j, i)
           && l->cublasLtMatrixLayoutSetAttribute(j->layout[i], CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &k->nbatch, sizeof k->nbatch) == CUBLAS_STATUS_SUCCESS
           && l->cublasLtMatrixLayoutSetAttribute(j->layout[i], CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &k->step[i], sizeof k->step[i]) == CUBLAS_STATUS_SUCCESS;
}

static bool prepare(job *j) {
    const rl_libs *l = j->l;
    const key *k = &j->key;
    cudaDataType_t scale = k->type == RL_I8 ? CUDA_R_32I : k->type == RL_F64 ? CUDA_R_64F : CUDA_R_32F;
    cublasComputeType_t compute = k->type == RL_I8 ? CUBLAS_COMPUTE_32I : k->type == RL_F64 ? CUBLAS_COMPUTE_64F
                                : k->type == RL_F32 && l->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    if (l->cublasLtMatmulDescCreate(&j->desc, compute, scale) != CUBLAS_STATUS_SUCCESS) return false;
    if (!set_desc(j, CUBLASLT_MATMUL_DESC_TRANSA, &k->first, sizeof k->first) || !set_desc(j, CUBLASLT_MATMUL_DESC_TRANSB, &k->second, sizeof k->second)
        || !set_desc(j, CUBLASLT_MATMUL_DESC_EPILOGUE, &k->epilogue, sizeof k->epilogue)
        || (j->bias && !set_desc(j, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &j->bias, sizeof j->bias)))
        return false;
    for (uint32_t i = 0; i < 4; i++)
        if (!make_layout(j, i)) return false;
    return true;
}

static void end(job *j) {
    for (size_t i = 0; i < 4; i++)
        if (j->layout[i]) j->l->cublasLtMatrixLayoutDestroy(j->layout[i]);
    if (j->desc) j->l->cublasLtMatmulDescDestroy(j->desc);
}

/* ---- algorithms, by shape ---- */

static bool set_wish(const job *j, cublasLtMatmulPreference_t wish) {
    const uint64_t most = 32 << 20; /* bytes of workspace */
    static const cublasLtMatmulPreferenceAttributes_t align[] = {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                                                                 CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const rl_libs *l = j->l;
    bool all = l->cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most) == CUBLAS_STATUS_SUCCESS;
    for (uint32_t i = 0; i < 4 && all; i++)
        all = l->cublasLtMatmulPreferenceSetAttribute(wish, align[i], &j->key.align[i], sizeof j->key.align[i]) == CUBLAS_STATUS_SUCCESS;
    return all;
}

static bool ask(const job *j, rl_lt_choice *c) {
    const rl_libs *l = j->l;
    cublasLtMatmulPreference_t wish = NULL;
    cublasLtMatmulHeuristicResult_t found;
    int n = 0;
    if (l->cublasLtMatmulPreferenceCreate(&wish) != CUBLAS_STATUS_SUCCESS) return false;
    bool any = set_wish(j, wish)
               && l->cublasLtMatmulAlgoGetHeuristic(l->lt, j->desc, j->layout[0], j->layout[1], j->layout[2], j->layout[3], wish, 1, &found, &n) == CUBLAS_STATUS_SUCCESS
               && n > 0 && found.state == CUBLAS_STATUS_SUCCESS; /* else nothing in it is valid */
    if (any) c->algo = found.algo, c->nworkspace = (int64_t)found.workspaceSize;
    l->cublasLtMatmulPreferenceDestroy(wish);
    return any;
}

static rl_lt_choice *choice_of(const job *j) {
    for (rl_lt_choice *c = j->l->choices; c; c = c->next)
        if (rl_same_bytes(&c->key, &j->key, sizeof c->key)) return c;
    rl_lt_choice *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    memcpy(&c->key, &j->key, sizeof c->key);
    c->any = ask(j, c);
    c->next = j->l->choices;
    j->l->choices = c;
    return c;
}

void rl_lt_forget(rl_libs *l) {
    for (rl_lt_choice *c = l->choices, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    l->choices = NULL;
}

/* ---- batches ---- */

static uint32_t size_of(const rl_lt_job *q, uint32_t i) {
    return rl_dtype_bits(i > 1 ? q->made : q->type) / 8;
}

/* Where each batch has matrix i, in the node's memory; *all: the bits of all these addresses. */
static const char **addresses(rl_call *call, const rl_lt_job *q, const job *j, uint32_t i, uintptr_t *all) {
    const rl_walk *batch = &q->p.batch;
    const int64_t *step = batch->step[i == 0 ? 2 : i == 1 ? 1 : 0];
    const char **at = rl_new(call->tmp, const char *, q->nbatch);
    *all = 0;
    for (uint32_t k = 0; k < q->nbatch; k++) {
        uint32_t left = k;
        int64_t elements = 0;
        for (uint32_t d = batch->rank; d-- > 0; left /= batch->dim[d].d) elements += left % batch->dim[d].d * step[d];
        at[k] = (const char *)j->at[i] + elements * size_of(q, i);
        *all |= (uintptr_t)at[k];
    }
    return at;
}

/* ---- products ---- */

static void multiply(rl_call *call, job *j, const rl_p_matmul *p, bool *did) {
    const rl_libs *l = j->l;
    rl_lt_choice *best = choice_of(j);
    float scale[2] = {(float)p->alpha, (float)j->beta};
    double wide[2] = {p->alpha, j->beta};
    int32_t whole[2] = {1, 0};
    const void *alpha = scale, *beta = scale + 1;
    if (j->key.type == RL_F64) alpha = wide, beta = wide + 1;
    if (j->key.type == RL_I8) alpha = whole, beta = whole + 1;
    if (!best || !best->any) return;
    for (uint32_t i = 0; i < 4 && j->key.by_address; i++) j->at[i] = rl_call_keep(call, j->at[i], (size_t)j->key.nbatch * sizeof(void *), false);
    void *workspace = rl_libs_workspace(call, best->nworkspace);
    cublasStatus_t s = l->cublasLtMatmul(l->lt, j->desc, alpha, j->at[0], j->layout[0], j->at[1], j->layout[1], beta, j->at[2], j->layout[2], (void *)(uintptr_t)j->at[3],
                                         j->layout[3], &best->algo, workspace, (size_t)best->nworkspace, rl_gpu_stream(l->g));
    *did = s == CUBLAS_STATUS_SUCCESS;
    if (*did) call->step->ran = "cuBLASLt";
    else if (j->key.by_address) best->any = false; /* there is another way */
    else rl_call_note(call, "cuBLASLt: %s", l->cublasLtGetStatusString(s));
}

static const void *further(const void *p, int64_t elements, uint32_t size) {
    return p ? (const char *)p + elements * size : NULL;
}

/* In one call: batches with one step, or by address. */
static rl_status in_one(rl_call *call, const rl_lt_job *q, bool by_address, bool *did) {
    job j;
    memset(&j, 0, sizeof j); /* gaps too: keys are compared by bytes */
    j.l = rl_libs_of(call->rt);
    j.key.by_address = by_address;
    if (describe(&j, q) && prepare(&j)) {
        for (uint32_t i = 0; i < 4 && by_address; i++) {
            uintptr_t all;
            j.at[i] = addresses(call, q, &j, i, &all);
            j.key.align[i] = alignment((const void *)all);
        }
        multiply(call, &j, &q->p, did);
    }
    end(&j);
    return RL_OK;
}

/* Strided batches have one step: the dim of the fewest others is a loop here. */
static rl_status outer_batches(rl_call *call, const rl_lt_job *q, bool *did) {
    const rl_walk *batch = &q->p.batch;
    uint32_t d = 0;
    for (uint32_t i = 1; i < batch->rank; i++)
        if (batch->dim[i].d < batch->dim[d].d) d = i;
    uint32_t n = batch->dim[d].d, size = size_of(q, 0), after = batch->rank - d - 1;
    rl_lt_job part = *q;
    part.nbatch = q->nbatch / n;
    part.p.batch.rank = batch->rank - 1;
    memmove(part.p.batch.dim + d, batch->dim + d + 1, after * sizeof *batch->dim);
    for (uint32_t o = 0; o < 3; o++) memmove(part.p.batch.step[o] + d, batch->step[o] + d + 1, after * sizeof *batch->step[o]);
    for (uint32_t i = 0; i < n; i++) {
        part.p.c = (char *)q->p.c + i * batch->step[0][d] * size_of(q, 3);
        part.p.a = further(q->p.a, i * batch->step[1][d], size), part.p.b = further(q->p.b, i * batch->step[2][d], size);
        for (uint32_t k = 0; k < q->npost; k++) part.operand[k] = further(q->operand[k], i * batch->step[0][d], size);
        RL_TRY(rl_lt_matmul(call, &part, did));
        if (!*did) return RL_OK; /* of what was made nothing is read: another kernel makes all of it again */
    }
    return RL_OK;
}

rl_status rl_lt_matmul(rl_call *call, const rl_lt_job *q, bool *did) {
    const rl_libs *l = rl_libs_of(call->rt);
    *did = false;
    if (!l || !l->lt || rl_call_noted(call) || q->p.k == 0 || q->p.c_n != 1 || q->nbatch == 0) return RL_OK;
    RL_TRY(in_one(call, q, q->p.batch.rank > 1, did));
    return *did || q->p.batch.rank <= 1 ? RL_OK : outer_batches(call, q, did);
}
