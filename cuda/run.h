/* A launch of a kernel on the host, C++ (k_move.h says how kernels are written for that): every thread of every block, step by step.
 *
 * Within a step threads may not depend on each other's order: even ones run them up, odd ones down.  What a block shares holds no numbers at first. */
#ifndef RL_CUDA_RUN_H
#define RL_CUDA_RUN_H
#include <vector>

#include "k_recode.h"
#include "watch.h"

/* What looks like a race and is none:
 *   `wrong`: each thread that finds an index out of range writes the same there, the launch's node
 *   elements of 2 and 4 bits: rl_bits_set sets those that share a byte by atomics on the device
 * ScatterElements and ScatterND with the same index twice are races, and ONNX leaves open which element stays: no test has them. */
template <class P> auto rl_any_writer(const P &p, int) -> decltype((const void *)p.wrong) { return p.wrong; }
template <class P> const void *rl_any_writer(const P &, long) { return nullptr; }
template <class P> auto rl_sets_bits(const P &p, int) -> decltype(p.to_type, true) { return p.to_type == RL_TYPE_U4 || p.to_type == RL_TYPE_I4; }
template <class P> bool rl_sets_bits(const P &, long) { return false; }
static inline bool rl_sets_bits(const rl_p_bits &p, int) { return !p.dense_to; }

alignas(64) static char rl_shared_room[RL_WATCH_SHARED];

template <class K> void rl_run_kernel(uint32_t nblock, const void *param) {
    static_assert(sizeof(typename K::Shared) <= 48 << 10, "what a block may share without being asked");
    typename K::Shared &shared = *(typename K::Shared *)(rl_shared_room + RL_WATCH_MARGIN);
    typename K::Params p;
    memcpy(&p, param, sizeof p);
    std::vector<typename K::Local> local(RL_THREADS);
    rl_watch_launch l = {rl_shared_room, sizeof shared, __builtin_frame_address(0), rl_any_writer(p, 0), rl_sets_bits(p, 0)};
    uint32_t n = K::steps(p);
    rl_watch_begin(&l);
    for (uint32_t block = 0; block < nblock; block++) {
        memset(&shared, 0xff, sizeof shared);
        memset(local.data(), 0xff, RL_THREADS * sizeof local[0]);
        rl_watch_block(block);
        for (uint32_t i = 0, end; i < n; i = end) {
            end = i + 1 < n && rl_watch_drops(i) ? i + 2 : i + 1;
            rl_watch_step(i);
            for (uint32_t k = 0; k < RL_THREADS; k++) {
                uint32_t thread = (block + i) % 2 ? RL_THREADS - 1 - k : k;
                rl_watch_thread(thread, &local[thread], sizeof local[0]);
                for (uint32_t s = i; s < end; s++) K::step(s, p, shared, local[thread], block, thread);
            }
            rl_watch_end();
        }
    }
}

#endif
