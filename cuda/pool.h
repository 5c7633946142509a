/* Memory for tensors on the device: what is freed is kept for the next of its size, in the order of the stream.
 *
 * Sizes go up in eighths of a power of two.  A recording writes again where its values lay when it was made: while there is one
 * nothing is given back to the device, and what must outlive a run does not come from here. */
#ifndef RL_CUDA_POOL_H
#define RL_CUDA_POOL_H
#include "driver.h"

typedef struct rl_gpu_pool rl_gpu_pool;
rl_gpu_pool *rl_gpu_pool_new(rl_gpu *g); /* NULL: no memory */
void rl_gpu_pool_free(rl_gpu_pool *p);   /* and all that it holds; what is handed out must be back */
void *rl_gpu_pool_take(rl_gpu_pool *p, size_t nbyte); /* NULL: none left, also after all that lay idle was given back */
void rl_gpu_pool_give(rl_gpu_pool *p, void *at, size_t nbyte);
void rl_gpu_pool_pin(rl_gpu_pool *p, bool pinned); /* is there a recording? */
/* once: what is given back is not taken again until it is off, so that none of it is written for the second time. */
void rl_gpu_pool_once(rl_gpu_pool *p, bool once);
size_t rl_gpu_pool_held(const rl_gpu_pool *p); /* bytes taken of the device */
size_t rl_gpu_pool_size(size_t nbyte); /* what is taken for so many */

#endif
