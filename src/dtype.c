/* Element types: see dtype.h. */
#include "dtype.h"

#include <string.h>

static const struct { const char *name; uint32_t bits; } dtypes[] = {
    [RL_UNDEF] = {"undef", 0},                 [RL_F32] = {"f32", 32},                    [RL_U8] = {"u8", 8},
    [RL_I8] = {"i8", 8},                       [RL_U16] = {"u16", 16},                    [RL_I16] = {"i16", 16},
    [RL_I32] = {"i32", 32},                    [RL_I64] = {"i64", 64},                    [RL_STRING] = {"string", 0},
    [RL_BOOL] = {"bool", 8},                   [RL_F16] = {"f16", 16},                    [RL_F64] = {"f64", 64},
    [RL_U32] = {"u32", 32},                    [RL_U64] = {"u64", 64},                    [RL_C64] = {"c64", 64},
    [RL_C128] = {"c128", 128},                 [RL_BF16] = {"bf16", 16},                  [RL_F8E4M3FN] = {"f8e4m3fn", 8},
    [RL_F8E4M3FNUZ] = {"f8e4m3fnuz", 8},       [RL_F8E5M2] = {"f8e5m2", 8},               [RL_F8E5M2FNUZ] = {"f8e5m2fnuz", 8},
    [RL_U4] = {"u4", 4},                       [RL_I4] = {"i4", 4},                       [RL_F4E2M1] = {"f4e2m1", 4},
    [RL_F8E8M0] = {"f8e8m0", 8},               [RL_U2] = {"u2", 2},                       [RL_I2] = {"i2", 2},
};

uint32_t rl_dtype_bits(rl_dtype t) {
    return (size_t)t < RL_LEN(dtypes) ? dtypes[t].bits : 0;
}

const char *rl_dtype_name(rl_dtype t) {
    return (size_t)t < RL_LEN(dtypes) ? dtypes[t].name : "undef";
}

rl_dtype rl_dtype_parse(const char *s, size_t n) {
    for (size_t i = 0; i < RL_LEN(dtypes); i++)
        if (strlen(dtypes[i].name) == n && rl_same_bytes(dtypes[i].name, s, n)) return (rl_dtype)i;
    return RL_UNDEF;
}
