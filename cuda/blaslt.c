/* Matrix products by cuBLASLt: operands as they lie (side.h), transposed or not, heads side by side; a bias in the epilogue. */
#include <string.h>

#include "libs_internal.h"
#include "side.h"

typedef struct {
    rl_libs *l;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c, d; /* c: the bias as a matrix, or d */
    cublasLtMatmulPreference_t wish;
    const void *bias;
    double alpha, beta;
} job;

static cudaDataType_t data_type(rl_dtype t) {
    return t == RL_F64 ? CUDA_R_64F : t == RL_F16 ? CUDA_R_16F : t == RL_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static bool set_desc(job *j, cublasLtMatmulDescAttributes_t what, const void *p, size_t n) {
    return j->l->cublasLtMatmulDescSetAttribute(j->desc, what, p, n) == CUBLAS_STATUS_SUCCESS;
}

static bool make_layout(job *j, cublasLtMatrixLayout_t *out, cudaDataType_t t, const rl_side *s, int32_t nbatch, int64_t step) {
    const rl_libs *l = j->l;
    return l->cublasLtMatrixLayoutCreate(out, t, s->rows, s->columns, s->ld) == CUBLAS_STATUS_SUCCESS
           && l->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &nbatch, sizeof nbatch) == CUBLAS_STATUS_SUCCESS
           && l->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step) == CUBLAS_STATUS_SUCCESS;
}

/* A bias for each column of c goes into the epilogue, a whole matrix is added as c; others: not here. */
static bool add_bias(job *j, const rl_p_matmul *p, cudaDataType_t t, int32_t nbatch) {
    if (!p->bias) return make_layout(j, &j->c, t, &(rl_side){false, p->n, p->m, p->c_m}, nbatch, p->batch.rank ? p->batch.step[0][0] : 0);
    if (nbatch != 1 || (p->bias_n != 1 && p->n != 1)) return false;
    if (p->bias_m == 0 && p->beta == 1) {
        cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
        return set_desc(j, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue)
               && set_desc(j, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p->bias, sizeof p->bias)
               && make_layout(j, &j->c, t, &(rl_side){false, p->n, p->m, p->c_m}, 1, 0);
    }
    if (p->bias_m < (int64_t)p->n) return false;
    j->bias = p->bias;
    j->beta = p->beta;
    return make_layout(j, &j->c, t, &(rl_side){false, p->n, p->m, p->bias_m}, 1, 0);
}

static bool prepare(job *j, const rl_p_matmul *p, rl_dtype type, int32_t nbatch, const rl_side *a, const rl_side *b) {
    const rl_libs *l = j->l;
    cudaDataType_t t = data_type(type), scale = type == RL_F64 ? CUDA_R_64F : CUDA_R_32F;
    cublasComputeType_t compute = type == RL_F64 ? CUBLAS_COMPUTE_64F : type == RL_F32 && l->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    cublasOperation_t first = b->turned ? CUBLAS_OP_T : CUBLAS_OP_N, second = a->turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    int64_t step[3] = {0};
    for (uint32_t o = 0; o < 3 && p->batch.rank; o++) step[o] = p->batch.step[o][0];
    return l->cublasLtMatmulDescCreate(&j->desc, compute, scale) == CUBLAS_STATUS_SUCCESS
           && set_desc(j, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first) && set_desc(j, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second)
           && make_layout(j, &j->a, t, b, nbatch, step[2]) && make_layout(j, &j->b, t, a, nbatch, step[1])
           && make_layout(j, &j->d, t, &(rl_side){false, p->n, p->m, p->c_m}, nbatch, step[0]) && add_bias(j, p, t, nbatch)
           && l->cublasLtMatmulPreferenceCreate(&j->wish) == CUBLAS_STATUS_SUCCESS
           && l->cublasLtMatmulPreferenceSetAttribute(j->wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &l->nworkspace, sizeof l->nworkspace)
                  == CUBLAS_STATUS_SUCCESS;
}

static rl_status multiply(rl_call *call, job *j, const rl_p_matmul *p, rl_dtype type, bool *did) {
    const rl_libs *l = j->l;
    cublasLtMatmulHeuristicResult_t found;
    int n = 0;
    float alpha = (float)p->alpha, beta = (float)j->beta;
    const void *scales[2] = {type == RL_F64 ? (const void *)&p->alpha : &alpha, type == RL_F64 ? (const void *)&j->beta : &beta};
    if (l->cublasLtMatmulAlgoGetHeuristic(l->lt, j->desc, j->a, j->b, j->c, j->d, j->wish, 1, &found, &n) != CUBLAS_STATUS_SUCCESS || n == 0)
        return RL_OK;
    cublasStatus_t s = l->cublasLtMatmul(l->lt, j->desc, scales[0], p->b, j->a, p->a, j->b, scales[1], j->bias ? j->bias : p->c, j->c, p->c, j->d,
                                         &found.algo, l->workspace, l->nworkspace, rl_gpu_stream(l->g));
    *did = s == CUBLAS_STATUS_SUCCESS;
    if (*did) call->step->ran = "cuBLASLt";
    else rl_call_note(call, "cuBLASLt: %s", l->cublasLtGetStatusString(s));
    return RL_OK;
}

static void end(job *j) {
    cublasLtMatrixLayout_t all[] = {j->a, j->b, j->c, j->d};
    for (size_t i = 0; i < RL_LEN(all); i++)
        if (all[i]) j->l->cublasLtMatrixLayoutDestroy(all[i]);
    if (j->desc) j->l->cublasLtMatmulDescDestroy(j->desc);
    if (j->wish) j->l->cublasLtMatmulPreferenceDestroy(j->wish);
}

/* Strided batches have one step; outer ones are a loop here. */
static rl_status outer_batches(rl_call *call, const rl_p_matmul *p, rl_dtype t, uint32_t nbatch, bool *did) {
    uint32_t n = p->batch.dim[0].d, size = rl_dtype_bits(t) / 8;
    rl_p_matmul part = *p;
    part.batch.rank = p->batch.rank - 1;
    memmove(part.batch.dim, p->batch.dim + 1, part.batch.rank * sizeof *p->batch.dim);
    for (uint32_t o = 0; o < 3; o++) memmove(part.batch.step[o], p->batch.step[o] + 1, part.batch.rank * sizeof *p->batch.step[o]);
    for (uint32_t i = 0; i < n; i++) {
        part.c = (char *)p->c + i * p->batch.step[0][0] * size;
        part.a = (const char *)p->a + i * p->batch.step[1][0] * size;
        part.b = (const char *)p->b + i * p->batch.step[2][0] * size;
        RL_TRY(rl_lt_matmul(call, &part, t, nbatch / n, did));
        if (!*did) return i ? rl_call_fail(call, RL_EINTERNAL, "cuBLASLt took one batch and not the next") : RL_OK;
    }
    return RL_OK;
}

rl_status rl_lt_matmul(rl_call *call, const rl_p_matmul *p, rl_dtype t, uint32_t nbatch, bool *did) {
    rl_libs *l = rl_libs_of(call->rt);
    rl_side a, b;
    *did = false;
    if (!l || !l->lt || rl_call_noted(call) || p->k == 0 || p->c_n != 1 || nbatch == 0) return RL_OK;
    if (p->batch.rank > 1) return outer_batches(call, p, t, nbatch, did);
    if (!rl_side_of(p->n, p->b_n, p->k, p->b_k, true, &b) || !rl_side_of(p->m, p->a_m, p->k, p->a_k, false, &a)) return RL_OK;
    job j = {.l = l};
    rl_status s = prepare(&j, p, t, (int32_t)nbatch, &a, &b) ? multiply(call, &j, p, t, did) : RL_OK;
    end(&j);
    return s;
}
