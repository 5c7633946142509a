/* A permutation as a nest of the move kernel: see permute.h. */
#include "permute.h"

#include "move.h"

void rl_permute(void *out, const void *in, uint32_t rank, const int64_t *dim, const uint32_t *perm, uint32_t bits) {
    rl_nest b = {.to = out, .from = in, .bits = bits, .n = rank};
    int64_t stride[RL_PERMUTE_MAXRANK], step = 1;
    for (uint32_t i = rank; i-- > 0; step *= dim[i]) stride[i] = step;
    step = 1;
    for (uint32_t i = rank; i-- > 0; step *= dim[perm[i]]) b.loop[i] = (rl_loop){dim[perm[i]], step, stride[perm[i]]};
    rl_nest_move(&b, NULL);
}

bool rl_is_permutation(const int64_t *p, uint32_t n, rl_arena *tmp) {
    bool *seen = rl_new(tmp, bool, n);
    for (uint32_t i = 0; i < n; i++) {
        if (p[i] < 0 || p[i] >= (int64_t)n || seen[p[i]]) return false;
        seen[p[i]] = true;
    }
    return true;
}
