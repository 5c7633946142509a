/* Every kernel of kernels.inc as a function of the device: "rl_k_" and its name. nvcc makes one image of it, which driver.c loads. */
#include "k_axis.h"
#include "k_each.h"
#include "k_few_rows.h"
#include "k_interleave.h"
#include "k_nn.h"
#include "k_odd_tile.h"
#include "k_place.h"
#include "k_recode.h"
#include "k_recurrent.h"
#include "k_reduce.h"
#include "k_weave.h"

/* From compute capability 9.0 on a launch may begin when all blocks of the one before it have (driver.c): it has its place by then, and waits here until
 * that one has ended, and all it wrote is there. Every kernel does so first, so that what ended before that one has ended, too. */
static __device__ __forceinline__ void wait_for_launch_before() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory");
#endif
}

template <class K> static __device__ __forceinline__ void run_kernel(const typename K::Params &p) {
    __shared__ typename K::Shared shared;
    typename K::Local local;
    wait_for_launch_before();
    uint32_t n = K::steps(p);
    RL_UNROLL /* where the number of steps is known: each is compiled for itself */
    for (uint32_t i = 0; i < n; i++) {
        if (i) __syncthreads();
        K::step(i, p, shared, local, blockIdx.x, threadIdx.x);
    }
}

/* Threads of a multiprocessor: Turing's, those of the smaller Amperes, Ada and the smaller Blackwells, and all others'. */
#if __CUDA_ARCH__ == 750
enum { RL_ROOM = 1024 };
#elif __CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 870 || __CUDA_ARCH__ == 880 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1100
enum { RL_ROOM = 1536 };
#else
enum { RL_ROOM = 2048 };
#endif
static constexpr int at_most_room(int blocks) { return blocks * RL_THREADS > RL_ROOM ? RL_ROOM / RL_THREADS : blocks; }

/* Blocks that a multiprocessor has room for at a time, at least: more have fewer registers each. */
template <class K> struct rl_blocks { enum { LEAST = 4 }; };
template <> struct rl_blocks<rl_word_tile<uint8_t>> { enum { LEAST = at_most_room(5) }; };
template <> struct rl_blocks<rl_word_tile<uint16_t>> { enum { LEAST = at_most_room(8) }; };

#define GPU(name, kernel, params)                                                                                    \
    extern "C" __global__ void __launch_bounds__(RL_THREADS, rl_blocks<kernel>::LEAST) rl_k_##name(const __grid_constant__ params p) { run_kernel<kernel>(p); }
#include "kernels.inc"
#undef GPU
