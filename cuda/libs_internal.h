/* What libs.c, blaslt.c and dnn.c share: the libraries' functions, found with dlsym, and the device's workspace. */
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
    F(cudnnBackendExecute) F(cudnnGetVersion)                                                                         \
    F(cudnnCreateTensorDescriptor) F(cudnnDestroyTensorDescriptor) F(cudnnSetTensorNdDescriptor) F(cudnnTransformTensor)

typedef struct rl_dnn_plan rl_dnn_plan;
struct rl_libs {
    rl_gpu *g;
    void *lt_file, *dnn_file;
    cublasLtHandle_t lt;  /* NULL: not there */
    cudnnHandle_t dnn;
    rl_dnn_plan *plans;   /* dnn.c's */
    void *workspace;
    size_t nworkspace;
    char said[400];       /* rl_libs_say */
    bool tf32;            /* RELAYOUT_TF32=1: float32 products may be made of 10 bits */
#define F(name) __typeof__(&name) name;
    RL_LT_FUNCTIONS(F)
    RL_DNN_FUNCTIONS(F)
#undef F
};
void rl_dnn_forget(rl_libs *l);

#endif
