/* What was joined to a convolution, a product or an element-wise op (runtime/fuse.h), on the device; and its constants, made once for the joined scale and
 * for the order that channels-last wants.
 *
 *   rl_gpu_posts p;
 *   if (!rl_gpu_posts_of(c, dim, rank, &p)) return rl_call_decline(c);      more operands than kernel posts takes: the parts run
 *   ...the convolution makes y...
 *   RL_TRY(rl_gpu_run_posts(c, &p, y));                                     y = relu(y + other), say, in one pass */
#ifndef RL_CUDA_POSTS_H
#define RL_CUDA_POSTS_H
#include "../runtime/fuse.h"
#include "backend.h"

typedef struct { uint32_t n, nin; rl_p_post post[RL_MOST_POSTS]; const rl_tensor *in[RL_MOST_POSTS]; /* NULL: of a unary one */ } rl_gpu_posts;

/* The step's posts, none where it is one node, their operands on the device, as strided as they are or as they broadcast. */
bool rl_gpu_posts_of(rl_call *c, const int64_t *dim, uint32_t rank, rl_gpu_posts *p);
/* Before all others: t, of y's dims, is added. False: no room. */
bool rl_gpu_add_first(rl_gpu_posts *p, const rl_tensor *t);
/* Likewise bias[c], to channel c of what has y's dims. */
bool rl_gpu_add_bias(rl_call *c, rl_gpu_posts *p, const rl_tensor *bias, const rl_tensor *y);
bool rl_gpu_posts_lie_like(const rl_gpu_posts *p, const rl_tensor *y);
/* The operands that lie otherwise than y are copied, so that they do not; but for those that have a number for each channel. */
void rl_gpu_posts_like(rl_call *c, rl_gpu_posts *p, const rl_tensor *y);
rl_status rl_gpu_run_posts(rl_call *c, const rl_gpu_posts *p, const rl_tensor *y);
/* Output 0: x * scale + shift, numbers of the host's, for each channel of x, then the posts (op_nn.c). */
rl_status rl_gpu_scale_channels(rl_call *c, const rl_tensor *x, const float *scale, const float *shift, const rl_gpu_posts *p);

/* How weights lie: as dims say; channels-last; what belongs to a tap together. */
typedef enum { RL_GPU_ROW_MAJOR, RL_GPU_LAST, RL_GPU_BY_TAP } rl_gpu_order;
/* The step's weights, in this order whatever they were given in, and bias (NULL: none) on the device, with its joined scale and shift. False: not
 * constants. */
bool rl_gpu_weights(rl_call *c, bool transposed, int64_t group, rl_gpu_order order, const rl_tensor **weights, const rl_tensor **bias);

/* The step's matrix (input 1; columns: the dim that becomes the output's last) with its joined scale, and the bias for each column that this makes of
 * input 2 times beta (0: the op has no such input) and the joined shift; *bias NULL: nothing was joined, input 2 is the caller's. False: not constants. */
bool rl_gpu_columns(rl_call *c, uint32_t columns, float beta, const rl_tensor **weights, const rl_tensor **bias);

/* y, whose memory is the rows of a [m, k] times b [k, n], each after the other: with a bias for each column (NULL: none), then the posts (op_product.c). */
rl_status rl_gpu_rows_by_columns(rl_call *c, const rl_tensor *a, const rl_tensor *b, const rl_tensor *bias, const rl_gpu_posts *posts, const rl_tensor *y);

/* Input i (of the first RL_MOST_WIDENED; NULL: left out) on the device as this type, row-major: a constant's numbers are made once. */
enum { RL_MOST_WIDENED = 4 };
const rl_tensor *rl_gpu_widened(rl_call *c, uint32_t i, rl_dtype type);

/* Should convolutions of this type lie so? Where cuDNN wants it; an emulated device tries it with the shorter floats. */
bool rl_gpu_wants_channels_last(const rl_call *c, rl_dtype t);
/* t itself, or a copy of it that lives until the node is done. */
const rl_tensor *rl_gpu_aligned(rl_call *c, const rl_tensor *t, rl_gpu_order o); /* from a multiple of 16 bytes on, as cuDNN wants it; a copy lies so */
const rl_tensor *rl_gpu_channels_last(rl_call *c, const rl_tensor *t);
const rl_tensor *rl_gpu_row_major(rl_call *c, const rl_tensor *t);
const int64_t *rl_gpu_last_order(uint32_t rank, int64_t *perm); /* 0, 2, 3, ..., 1 */

#endif
