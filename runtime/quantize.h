/* What quantized ops share: scales and zero points along an axis, ranges, rounding to a quantized type. */
#ifndef RL_QUANTIZE_H
#define RL_QUANTIZE_H
#include "dynamic_scale.h"
#include "wide.h"

static inline bool rl_is_byte(rl_dtype t) {
    return t == RL_I8 || t == RL_U8;
}
/* Element i of a dense tensor of bytes. */
static inline int rl_byte_at(const rl_tensor *t, int64_t i) {
    return t->dtype == RL_I8 ? ((const int8_t *)rl_data(t))[i] : ((const uint8_t *)rl_data(t))[i];
}
/* A vector as a tensor of rank `rank` whose elements lie along `axis`; one element as a scalar; anything else as it is. */
rl_tensor rl_along(const rl_tensor *t, uint32_t rank, uint32_t axis);
/* The numbers of an integer type. */
void rl_range_of(rl_dtype t, double *least, double *most);
/* Output i of type t = rint(sum * multiplier) + zero point (NULL: 0), cut to t's range: for dims of sum, the others broadcast. */
rl_status rl_requantize(rl_call *c, uint32_t i, rl_dtype t, const rl_tensor *sum, const rl_tensor *multiplier, const rl_tensor *zero);
/* Input i minus its zero point, as i32: that is input `zero` where it is there; a vector lies along `axis`. */
rl_status rl_centered(rl_call *c, uint32_t i, uint32_t zero, uint32_t axis, const rl_tensor **out);

/* Input i, f32, as DynamicQuantizeLinear has it, less the zero point, as i32; and its scale. */
rl_status rl_dynamic_centered(rl_call *c, uint32_t i, const rl_tensor **out, const rl_tensor **scale);

#endif
