/* cuBLASLt's functions (libcublasLt.so.13) as its documentation has them, on the emulated device: see stand_in.h.
 *
 * Refused, as there: bytes other than op(A) = A', op(B) = B with sizes and leading dimensions that 4 divides and no epilogue; addresses that 16 does
 * not divide where bytes are. */
#include <cublasLt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stand_in.h"

typedef struct { cudaDataType_t type; uint64_t rows, columns; int64_t ld, step; int32_t nbatch, by_address; } matrix;
typedef struct { cublasComputeType_t compute; cudaDataType_t scale, bias_type; cublasOperation_t a, b; cublasLtEpilogue_t epilogue; const void *bias; } desc;
enum { WORKSPACE = 1024 }; /* bytes that every algorithm works in */
typedef struct { uint32_t align[4]; } wishes; /* of A, B, C, D; also what an algorithm is */
typedef struct { desc d; matrix a, b, c, y; const void *pa, *pb, *pc; void *py, *workspace; double alpha, beta; unsigned align[4]; } job;

#define LT(name, ...)                                                                                                \
    STAND_IN cublasStatus_t name(__VA_ARGS__);                                                                       \
    cublasStatus_t name(__VA_ARGS__)
#define FAULT()                                                                                                      \
    do {                                                                                                             \
        int fault_ = stand_in_fault(__func__);                                                                       \
        if (fault_) return (cublasStatus_t)fault_;                                                                   \
    } while (0)

STAND_IN size_t cublasLtGetVersion(void);
size_t cublasLtGetVersion(void) { return STAND_IN_VERSION * 10000; }
STAND_IN const char *cublasLtGetStatusString(cublasStatus_t s);
const char *cublasLtGetStatusString(cublasStatus_t s) {
    return s == CUBLAS_STATUS_EXECUTION_FAILED ? "CUBLAS_STATUS_EXECUTION_FAILED" : s == CUBLAS_STATUS_ALLOC_FAILED ? "CUBLAS_STATUS_ALLOC_FAILED" : "CUBLAS_STATUS_NOT_SUPPORTED";
}

LT(cublasLtCreate, cublasLtHandle_t *h) {
    static int some;
    FAULT();
    int of_driver = STAND_IN_VERSION > 12 ? stand_in_fault("newer than the driver") : 0;
    if (of_driver) return (cublasStatus_t)of_driver;
    *h = (cublasLtHandle_t)&some;
    return CUBLAS_STATUS_SUCCESS;
}

LT(cublasLtDestroy, cublasLtHandle_t h) { return h ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE; }

LT(cublasLtMatmulDescCreate, cublasLtMatmulDesc_t *d, cublasComputeType_t compute, cudaDataType_t scale) {
    FAULT();
    desc *x = calloc(1, sizeof *x);
    if (!x) return CUBLAS_STATUS_ALLOC_FAILED;
    *x = (desc){.compute = compute, .scale = scale, .bias_type = (cudaDataType_t)-1, .epilogue = CUBLASLT_EPILOGUE_DEFAULT};
    *d = (cublasLtMatmulDesc_t)x;
    return CUBLAS_STATUS_SUCCESS;
}

LT(cublasLtMatmulDescDestroy, cublasLtMatmulDesc_t d) {
    free(d);
    return CUBLAS_STATUS_SUCCESS;
}

LT(cublasLtMatmulDescSetAttribute, cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t what, const void *p, size_t n) {
    desc *x = (desc *)d;
    FAULT();
    switch (what) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return n == sizeof x->a ? (memcpy(&x->a, p, n), CUBLAS_STATUS_SUCCESS) : CUBLAS_STATUS_INVALID_VALUE;
    case CUBLASLT_MATMUL_DESC_TRANSB: return n == sizeof x->b ? (memcpy(&x->b, p, n), CUBLAS_STATUS_SUCCESS) : CUBLAS_STATUS_INVALID_VALUE;
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return n == sizeof x->epilogue ? (memcpy(&x->epilogue, p, n), CUBLAS_STATUS_SUCCESS) : CUBLAS_STATUS_INVALID_VALUE;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return n == sizeof x->bias ? (memcpy(&x->bias, p, n), CUBLAS_STATUS_SUCCESS) : CUBLAS_STATUS_INVALID_VALUE;
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}

LT(cublasLtMatrixLayoutCreate, cublasLtMatrixLayout_t *l, cudaDataType type, uint64_t rows, uint64_t columns, int64_t ld) {
    FAULT();
    matrix *m = calloc(1, sizeof *m);
    if (!m) return CUBLAS_STATUS_ALLOC_FAILED;
    *m = (matrix){type, rows, columns, ld, 0, 1, 0};
    *l = (cublasLtMatrixLayout_t)m;
    return CUBLAS_STATUS_SUCCESS;
}

LT(cublasLtMatrixLayoutDestroy, cublasLtMatrixLayout_t l) {
    free(l);
    return CUBLAS_STATUS_SUCCESS;
}

LT(cublasLtMatrixLayoutSetAttribute, cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t what, const void *p, size_t n) {
    matrix *m = (matrix *)l;
    FAULT();
    if (what == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && n == sizeof m->nbatch) memcpy(&m->nbatch, p, n);
    else if (what == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && n == sizeof m->step) memcpy(&m->step, p, n);
    else if (what == CUBLASLT_MATRIX_LAYOUT_BATCH_MODE && n == sizeof m->by_address && !stand_in_fault("by_address")) memcpy(&m->by_address, p, n);
    else return CUBLAS_STATUS_NOT_SUPPORTED;
    return CUBLAS_STATUS_SUCCESS;
}

LT(cublasLtMatmulPreferenceCreate, cublasLtMatmulPreference_t *wish) {
    FAULT();
    wishes *w = malloc(sizeof *w);
    if (w) *w = (wishes){{256, 256, 256, 256}};
    *wish = (cublasLtMatmulPreference_t)w;
    return *wish ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

LT(cublasLtMatmulPreferenceDestroy, cublasLtMatmulPreference_t wish) {
    free(wish);
    return CUBLAS_STATUS_SUCCESS;
}

LT(cublasLtMatmulPreferenceSetAttribute, cublasLtMatmulPreference_t wish, cublasLtMatmulPreferenceAttributes_t what, const void *p, size_t n) {
    FAULT();
    uint32_t i = (uint32_t)(what - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
    if (what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return n == 8 && p ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
    if (i > 3 || n != 4) return CUBLAS_STATUS_NOT_SUPPORTED;
    memcpy(&((wishes *)wish)->align[i], p, n);
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- what is there ---- */

static int is_epilogue(cublasLtEpilogue_t e) {
    return e == CUBLASLT_EPILOGUE_DEFAULT || e == CUBLASLT_EPILOGUE_RELU || e == CUBLASLT_EPILOGUE_BIAS || e == CUBLASLT_EPILOGUE_RELU_BIAS
           || e == CUBLASLT_EPILOGUE_GELU || e == CUBLASLT_EPILOGUE_GELU_BIAS;
}

static uint64_t dim(const matrix *m, int columns, int turned) {
    return columns != turned ? m->columns : m->rows;
}

static int fits(const matrix *m, const matrix *y) {
    return m->ld >= (int64_t)m->rows && m->nbatch == y->nbatch && m->by_address == y->by_address && (y->nbatch == 1 || m->step >= 0);
}

static int takes(const desc *d, const matrix *a, const matrix *b, const matrix *c, const matrix *y) {
    int ta = d->a == CUBLAS_OP_T, tb = d->b == CUBLAS_OP_T, bytes = a->type == CUDA_R_8I;
    uint64_t m = dim(a, 0, ta), n = dim(b, 1, tb), k = dim(a, 1, ta);
    if (k != dim(b, 0, tb) || y->rows != m || y->columns != n || c->rows != m || c->columns != n || a->type != b->type || c->type != y->type) return 0;
    if (!fits(a, y) || !fits(b, y) || !fits(c, y) || !fits(y, y) || !is_epilogue(d->epilogue)) return 0;
    int wider = y->type == CUDA_R_32F && (a->type == CUDA_R_16F || a->type == CUDA_R_16BF);
    if (!bytes) return (a->type == y->type || wider) && d->scale == (a->type == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F) && (a->type != CUDA_R_64F || d->epilogue == CUBLASLT_EPILOGUE_DEFAULT);
    return ta && !tb && d->compute == CUBLAS_COMPUTE_32I && d->scale == CUDA_R_32I && y->type == CUDA_R_32I && d->epilogue == CUBLASLT_EPILOGUE_DEFAULT
           && m % 4 == 0 && k % 4 == 0 && a->ld % 4 == 0 && b->ld % 4 == 0;
}

LT(cublasLtMatmulAlgoGetHeuristic, cublasLtHandle_t h, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
   cublasLtMatrixLayout_t y, cublasLtMatmulPreference_t wish, int most, cublasLtMatmulHeuristicResult_t *found, int *n) {
    FAULT();
    *n = 0;
    stand_in_say("cuBLASLt heuristic");
    if (!h || !wish || most < 1 || !takes((desc *)d, (matrix *)a, (matrix *)b, (matrix *)c, (matrix *)y)) return CUBLAS_STATUS_NOT_SUPPORTED;
    memset(found, 0, sizeof *found);
    memcpy(&found->algo, wish, sizeof(wishes));
    found->workspaceSize = WORKSPACE;
    *n = 1;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- products ---- */

static stand_in_type type_of(cudaDataType_t t) {
    return t == CUDA_R_64F ? SI_F64 : t == CUDA_R_16F ? SI_F16 : t == CUDA_R_16BF ? SI_BF16 : t == CUDA_R_8I ? SI_I8 : t == CUDA_R_32I ? SI_I32 : SI_F32;
}

static double end_of(const desc *d, double v, uint64_t row, stand_in_type t) {
    cublasLtEpilogue_t e = d->epilogue;
    if (e == CUBLASLT_EPILOGUE_BIAS || e == CUBLASLT_EPILOGUE_RELU_BIAS || e == CUBLASLT_EPILOGUE_GELU_BIAS) v += stand_in_load(d->bias, (long long)row, t);
    if (e == CUBLASLT_EPILOGUE_RELU || e == CUBLASLT_EPILOGUE_RELU_BIAS) v = v > 0 ? v : 0; /* a NaN is lost, too */
    if (e == CUBLASLT_EPILOGUE_GELU || e == CUBLASLT_EPILOGUE_GELU_BIAS) v = 0.5 * v * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
    return v;
}

/* Batch k's matrix; an address that is less aligned than was promised is taken for none. */
static void *batch_of(const matrix *m, const void *p, int64_t k, stand_in_type t, unsigned align) {
    static const unsigned size[] = {[SI_F32] = 4, [SI_F64] = 8, [SI_F16] = 2, [SI_BF16] = 2, [SI_I8] = 1, [SI_U8] = 1, [SI_I32] = 4};
    void *at = m->by_address ? ((void *const *)p)[k] : (char *)(uintptr_t)p + k * m->step * size[t];
    return m->by_address && (uintptr_t)at % align ? NULL : at;
}

static void multiply(void *arg) {
    const job *j = arg;
    stand_in_type t = type_of(j->a.type), to = type_of(j->y.type);
    int ta = j->d.a == CUBLAS_OP_T, tb = j->d.b == CUBLAS_OP_T;
    uint64_t k = dim(&j->a, 1, ta);
    memset(j->workspace, 0xff, WORKSPACE); /* nobody else has it */
    for (int64_t batch = 0; batch < j->y.nbatch; batch++) {
        const void *a = batch_of(&j->a, j->pa, batch, t, j->align[0]), *b = batch_of(&j->b, j->pb, batch, t, j->align[1]);
        const void *c = batch_of(&j->c, j->pc, batch, to, j->align[2]);
        void *y = batch_of(&j->y, j->py, batch, to, j->align[3]);
        for (uint64_t col = 0; col < j->y.columns; col++)
            for (uint64_t row = 0; row < j->y.rows; row++) {
                double sum = 0, more = 0;
                for (uint64_t i = 0; i < k; i++)
                    sum += stand_in_load(a, (int64_t)(ta ? i : row) + (int64_t)(ta ? row : i) * j->a.ld, t)
                           * stand_in_load(b, (int64_t)(tb ? col : i) + (int64_t)(tb ? i : col) * j->b.ld, t);
                if (j->beta != 0) more = j->beta * stand_in_load(c, (int64_t)row + (int64_t)col * j->c.ld, to);
                stand_in_store(y, (int64_t)row + (int64_t)col * j->y.ld, to, end_of(&j->d, j->alpha * sum + more, row, to));
            }
    }
}

/* Are the addresses as the algorithm was told? */
static int are_aligned(const cublasLtMatmulAlgo_t *algo, int by_address, const void *const *at) {
    wishes w;
    memcpy(&w, algo, sizeof w);
    if (by_address) return 1; /* these are looked at one by one */
    for (uint32_t i = 0; i < 4; i++)
        if (w.align[i] < 1 || w.align[i] > 256 || (uintptr_t)at[i] % w.align[i]) return 0;
    return 1;
}

static double scale_of(const void *p, cudaDataType_t t) {
    return stand_in_load(p, 0, type_of(t));
}

LT(cublasLtMatmul, cublasLtHandle_t h, cublasLtMatmulDesc_t d, const void *alpha, const void *a, cublasLtMatrixLayout_t la, const void *b, cublasLtMatrixLayout_t lb,
   const void *beta, const void *c, cublasLtMatrixLayout_t lc, void *y, cublasLtMatrixLayout_t ly, const cublasLtMatmulAlgo_t *algo, void *workspace,
   size_t nworkspace, cudaStream_t stream) {
    FAULT();
    job j = {*(desc *)d, *(matrix *)la, *(matrix *)lb, *(matrix *)lc, *(matrix *)ly, a, b, c, y, workspace, scale_of(alpha, ((desc *)d)->scale), scale_of(beta, ((desc *)d)->scale), {0}};
    if (algo) memcpy(j.align, algo, sizeof j.align);
    if (!h || !stream || !algo || !are_aligned(algo, j.y.by_address, (const void *[]){a, b, c, y}) || !workspace || nworkspace != WORKSPACE || !takes(&j.d, &j.a, &j.b, &j.c, &j.y)) return CUBLAS_STATUS_INVALID_VALUE;
    if (j.y.by_address && stand_in_fault("by_address_matmul")) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (j.a.type == CUDA_R_8I && !j.a.by_address && ((uintptr_t)a | (uintptr_t)b | (uintptr_t)y) % 16) return CUBLAS_STATUS_NOT_SUPPORTED;
    stand_in_say("cuBLASLt %lux%lux%lu batch %d%s A%s B%s ld %ld %ld %ld %ld epilogue %d%s alpha %g beta %g types %d %d", (unsigned long)j.y.rows,
                 (unsigned long)j.y.columns, (unsigned long)dim(&j.a, 1, j.d.a == CUBLAS_OP_T), j.y.nbatch, j.y.by_address ? " by address" : "", j.d.a == CUBLAS_OP_T ? "'" : "",
                 j.d.b == CUBLAS_OP_T ? "'" : "", (long)j.a.ld, (long)j.b.ld, (long)j.c.ld, (long)j.y.ld, (int)j.d.epilogue, c == y ? "" : " C", j.alpha, j.beta,
                 (int)j.a.type, (int)j.y.type);
    return stand_in_do(multiply, &j, sizeof j) ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}
