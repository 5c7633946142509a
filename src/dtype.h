/* Element types of tensors, by the numbers and in the sense of ONNX's TensorProto.DataType. */
#ifndef RL_DTYPE_H
#define RL_DTYPE_H
#include "base.h"

typedef enum {
    RL_UNDEF = 0, RL_F32 = 1, RL_U8 = 2, RL_I8 = 3, RL_U16 = 4, RL_I16 = 5, RL_I32 = 6, RL_I64 = 7, RL_STRING = 8,
    RL_BOOL = 9, RL_F16 = 10, RL_F64 = 11, RL_U32 = 12, RL_U64 = 13, RL_C64 = 14, RL_C128 = 15, RL_BF16 = 16,
    RL_F8E4M3FN = 17, RL_F8E4M3FNUZ = 18, RL_F8E5M2 = 19, RL_F8E5M2FNUZ = 20, RL_U4 = 21, RL_I4 = 22, RL_F4E2M1 = 23,
    RL_F8E8M0 = 24, RL_U2 = 25, RL_I2 = 26
} rl_dtype;
uint32_t rl_dtype_bits(rl_dtype t);       /* 32 for RL_F32; 0 for strings and RL_UNDEF */
const char *rl_dtype_name(rl_dtype t);    /* "f32"; "undef" for what it does not know */
static inline bool rl_dtype_is_c_float(rl_dtype t) { return t == RL_F32 || t == RL_F64; } /* float or double of C */
rl_dtype rl_dtype_parse(const char *s, size_t n);

#endif
