/* The CUDA backend (runtime/rt.h: rl_backend), on driver.h.  What its ops (op_*.c, rows in kernels.def) share. */
#ifndef RL_CUDA_BACKEND_H
#define RL_CUDA_BACKEND_H
#include "../runtime/device.h"
#include "../runtime/native.h"
#include "move.h"
#include "ops.h"

extern const rl_backend rl_backend_cuda;
extern const rl_native_ways rl_gpu_ways; /* native.c */

rl_gpu *rl_gpu_of(const rl_rt *rt);
/* Where a kernel notes that an index is out of range, with the node's number plus one; looked at when the run is over. */
uint32_t *rl_gpu_wrong(const rl_call *c);

/* Loops over dims with the steps of n tensors (NULL: 0) that have these dims. */
rl_loops rl_loops_of(uint32_t rank, const int64_t *dim, const rl_tensor *const *t, uint32_t n);
/* The loops, merged, as a kernel's walk, of *count numbers; false: more than one launch has, or more dims than a walk. None: no walk is made. */
bool rl_gpu_walk_of(rl_loops *l, rl_walk *w, uint32_t *count);
/* Output 0, of these dims, in the order of memory of the first input that has them, so that what lies channels-last stays so; else row-major. */
rl_tensor *rl_gpu_make_like(rl_call *c, rl_dtype t, uint32_t rank, const int64_t *dim, const rl_tensor *const *in, uint32_t nin);
/* Leaves the node to the CPU: return rl_call_decline(c). */
rl_status rl_call_decline(rl_call *c);

/* The kernel of this type in a family that has f32, f64, f16, bf16 in a row; RL_NGPU: none. */
rl_gpu_kernel rl_gpu_of_float(rl_gpu_kernel f32, rl_dtype t);
rl_gpu_kernel rl_gpu_of_short(rl_gpu_kernel f32, rl_dtype t); /* that has f32, f16, bf16 */
rl_dtype rl_gpu_computed(rl_dtype t); /* f64 for f64, f32 for the other floats */

/* t, on the device, as this type, row-major; a temporary of the node where it is not that already. */
const rl_tensor *rl_gpu_cast(rl_call *c, const rl_tensor *t, rl_dtype type);
rl_status rl_gpu_cast_to(rl_call *c, const rl_tensor *to, const rl_tensor *from);

/* y = alpha a b, batch by batch: a [.., m, k], b [.., k, n], whose dims in front broadcast, y [.., m, n], its last stride 1; any other strides. One float
 * type, but that y may be f32 of shorter ones (op_product.c). */
rl_status rl_gpu_product(rl_call *c, const rl_tensor *a, const rl_tensor *b, const rl_tensor *y, double alpha);
/* DynamicQuantizeLinear's scale and zero point of x, f32, with any strides: one number each (op_reduce.c). */
rl_status rl_gpu_dynamic_scale(rl_call *c, const rl_tensor *x, const rl_tensor *scale, const rl_tensor *zero);
/* y = op(in...), a rl_pointwise: all on the device, the inputs broadcast to y's dims, of y's type (op_each.c). */
rl_status rl_gpu_each(rl_call *c, int op, const rl_tensor *y, const rl_tensor *const *in, uint32_t nin, const double *param);
/* y, on the device, is this number everywhere. */
void rl_gpu_fill_number(rl_call *c, const rl_tensor *y, double x);
/* A number for all, on the device. */
const rl_tensor *rl_gpu_number(rl_call *c, rl_dtype t, double x);
/* OneHot: y is values[1] where the index along `axis` is `index`, which has 1 for that dim, else values[0]; values: on the device (op_place.c). */
rl_status rl_gpu_one_hot_of(rl_call *c, const rl_tensor *y, const rl_tensor *index, const void *values, uint32_t axis);
/* Kernel rows, or, where p->scores.queries.d is not 0, kernel scores, for lines of this type; the walk is made of `kept` (op_lines.c). */
rl_status rl_gpu_run_rows(rl_call *c, rl_p_rows *p, const rl_loops *kept, rl_dtype t);
/* Element-wise ops that were joined (runtime/fuse.h; posts.c). */
rl_kernel_fn rl_gpu_chain;
/* A MatMul whose step is joined attention (runtime/fuse.h). */
rl_status rl_gpu_joined_attention(rl_call *c);

#define KERNEL(domain, type, since, until, types, fn, arg) rl_kernel_fn fn;
#include "kernels.def"
#undef KERNEL

#endif
