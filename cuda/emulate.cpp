/* Kernels without a device: every thread of every block, step by step (k_move.h says how kernels are written for that).
 *
 * Within a step threads may not depend on each other's order: even ones run them up, odd ones down.  What a device would refuse ends the process: an
 * address that is no multiple of what is read or written there (CMakeLists.txt compiles this file so). What a block shares holds no numbers at first. */
#include <vector>

#include "k_each.h"
#include "k_nn.h"
#include "k_recode.h"
#include "k_reduce.h"

template <class K> static void run_kernel(uint32_t nblock, const void *param) {
    static_assert(sizeof(typename K::Shared) <= 48 << 10, "what a block may share without being asked");
    typename K::Params p;
    memcpy(&p, param, sizeof p);
    std::vector<typename K::Local> local(RL_THREADS);
    typename K::Shared shared;
    uint32_t n = K::steps(p);
    for (uint32_t block = 0; block < nblock; block++) {
        memset(&shared, 0xff, sizeof shared);
        memset(local.data(), 0xff, RL_THREADS * sizeof local[0]);
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t k = 0; k < RL_THREADS; k++) {
                uint32_t thread = (block + i) % 2 ? RL_THREADS - 1 - k : k;
                K::step(i, p, shared, local[thread], block, thread);
            }
        }
    }
}

typedef void run_fn(uint32_t nblock, const void *param);
static run_fn *const all[] = {
#define GPU(name, kernel, params) run_kernel<kernel>,
#include "kernels.inc"
#undef GPU
};

extern "C" void rl_emulate(uint32_t kernel, uint32_t nblock, const void *param);
extern "C" void rl_emulate(uint32_t kernel, uint32_t nblock, const void *param) {
    all[kernel](nblock, param);
}
