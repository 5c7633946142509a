/* The numbers of the device's ops that are not the CPU's own: for kernels, and for cuda/kernels.def. C and C++. */
#ifndef RL_CUDA_OPS_H
#define RL_CUDA_OPS_H

typedef enum {
    RL_GPU_SUM, RL_GPU_MEAN, RL_GPU_L1, RL_GPU_L2, RL_GPU_SUM_SQUARE, RL_GPU_LOG_SUM, RL_GPU_PROD, RL_GPU_MAX, RL_GPU_MIN, RL_GPU_LOG_SUM_EXP,
    RL_GPU_RMS /* of MeanVarianceNormalization: the root of the mean square */
} rl_gpu_reduce;
enum { RL_GPU_TIES_LAST = 64 }; /* with RL_GPU_MAX or RL_GPU_MIN, of ArgMax and ArgMin: of equal ones the last */
typedef enum { RL_GPU_SOFTMAX, RL_GPU_LOG_SOFTMAX, RL_GPU_LAYER_NORM, RL_GPU_RMS_NORM } rl_gpu_rows;
/* Ops of bytes: MatMulInteger and ConvInteger; QLinearMatMul and QLinearConv; MatMulIntegerToFloat; DynamicQuantizeMatMul */
typedef enum { RL_GPU_INTEGER, RL_GPU_QLINEAR, RL_GPU_TO_FLOAT, RL_GPU_DYNAMIC } rl_gpu_of_bytes;
typedef enum { RL_GPU_POOL_MAX, RL_GPU_POOL_AVERAGE } rl_gpu_pooling;
typedef enum { RL_GPU_PAD_CONSTANT, RL_GPU_PAD_REFLECT, RL_GPU_PAD_EDGE, RL_GPU_PAD_WRAP } rl_gpu_pad;

#endif
