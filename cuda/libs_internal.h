/* What libs.c, blaslt.c and dnn.c share: the libraries' functions, found with dlsym. */
#ifndef RL_CUDA_LIBS_INTERNAL_H
#define RL_CUDA_LIBS_INTERNAL_H
#include <cublasLt.h>
#include <cudnn_backend.h>
#include <cudnn_ops.h>

#include "libs.h"

#define RL_LT_FUNCTIONS(F)                                                                                           \
    F(cublasLtCreate) F(cublasLtDestroy) F(cublasLtGetVersion) F(cublasLtGetStatusString)                            \
    F(cublasLtMatmul) F(cublasLtMatmulAlgoGetHeuristic)                                                              \
    F(cublasLtMatmulDescCreate) F(cublasLtMatmulDescDestroy) F(cublasLtMatmulDescSetAttribute)                       \
    F(cublasLtMatrixLayoutCreate) F(cublasLtMatrixLayoutDestroy) F(cublasLtMatrixLayoutSetAttribute)                 \
    F(cublasLtMatmulPreferenceCreate) F(cublasLtMatmulPreferenceDestroy) F(cublasLtMatmulPreferenceSetAttribute)
#define RL_DNN_FUNCTIONS(F)                                                                                          \
    F(cudnnCreate) F(cudnnDestroy) F(cudnnSetStream) F(cudnnGetErrorString) F(cudnnBackendCreateDescriptor)          \
    F(cudnnBackendDestroyDescriptor) F(cudnnBackendSetAttribute) F(cudnnBackendGetAttribute) F(cudnnBackendFinalize) \
    F(cudnnBackendExecute) F(cudnnGetVersion) F(cudnnGetLastErrorString)
/* transform.c's, which no model needs; NULL where cuDNN has them no more. */
#define RL_DNN_TRANSFORM_FUNCTIONS(F) F(cudnnCreateTensorDescriptor) F(cudnnDestroyTensorDescriptor) F(cudnnSetTensorNdDescriptor) F(cudnnTransformTensor)

typedef struct rl_dnn_plan rl_dnn_plan;
typedef struct rl_lt_choice rl_lt_choice;
struct rl_libs {
    rl_gpu *g;
    void *lt_file, *dnn_file;
    cublasLtHandle_t lt;  /* NULL: not there */
    cudnnHandle_t dnn;
    rl_dnn_plan *plans;   /* dnn.c's */
    rl_lt_choice *choices; /* blaslt.c's */
    cudnnBackendDescriptor_t pretended; /* a device that is not here (rl_dnn_pretend); NULL: the handle's */
    double trying;        /* seconds that trials of engines have taken */
    char said[400];       /* rl_libs_say */
    bool tf32;            /* RELAYOUT_TF32=1: float32 products may be made of 10 bits */
#define F(name) __typeof__(&name) name;
    RL_LT_FUNCTIONS(F)
    RL_DNN_FUNCTIONS(F)
    RL_DNN_TRANSFORM_FUNCTIONS(F)
#undef F
};
/* What a library works in, until the call is done; NULL: nothing. */
static inline void *rl_libs_workspace(rl_call *c, int64_t nbyte) {
    return nbyte > 0 ? rl_data(rl_call_temp(c, RL_U8, 1, &nbyte)) : NULL;
}

void rl_dnn_forget(rl_libs *l);
void rl_lt_forget(rl_libs *l);

/* For tests without a GPU (tests/unit/gpu_dnn.c): cuDNN 9.8 and newer choose engines for a device that is told in words, and compile their kernels. */
bool rl_dnn_pretend(rl_libs *l, const char *json);
typedef struct {
    uint32_t taken, engines; /* configurations that cuDNN names for the graph; those that try_engine would try */
    bool fallback;           /* the heuristics proper had none of these */
    bool made;               /* one of these became a plan, or would have, but that its kernel found no driver to be loaded by */
    char why[200];           /* what cuDNN said last */
} rl_dnn_answer;
void rl_dnn_ask_conv(rl_libs *l, const rl_dnn_conv_job *j, rl_dnn_answer *a);
void rl_dnn_ask_pool(rl_libs *l, const rl_dnn_pool_job *j, rl_dnn_answer *a);
void rl_dnn_ask_norm(rl_libs *l, const rl_dnn_norm_job *j, rl_dnn_answer *a);

#endif
