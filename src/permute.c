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

void rl_permute_ones(uint32_t rank, const bool *one, const uint32_t *moved, uint32_t *perm) {
    uint32_t at = 0, k = 0, n = 0, end = rank;
    for (uint32_t i = 0; i < rank; i++) n += !one[i];
    for (; at < rank && (one[at] || moved[k] == at); at++) {
        k += !one[at];
        perm[at] = at;
    }
    uint32_t still = at;
    while (end > still && one[end - 1]) end--;
    for (uint32_t i = end; still == 0 && i < rank; i++) perm[at++] = i;
    for (; k < n; k++) {
        uint32_t first = moved[k];
        while (first > still && one[first - 1]) first--;
        for (; first <= moved[k]; first++) perm[at++] = first;
    }
    for (; still > 0 && end < rank; end++) perm[at++] = end;
}
