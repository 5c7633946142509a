/* Which keys a query of Attention sees, for the CPU and for devices' kernels: C and C++. */
#ifndef RL_SEEN_H
#define RL_SEEN_H
#include <stdint.h>

#ifdef __CUDACC__
#define RL_SEEN static __host__ __device__ __forceinline__
#else
#define RL_SEEN static inline
#endif

enum { RL_SEEN_BITS = 40 }; /* numbers here are between -2^40 and 2^40: longer ones mean the same */
RL_SEEN int64_t rl_seen_bounded(int64_t n) {
    const int64_t most = (int64_t)1 << RL_SEEN_BITS;
    return n > most ? most : n < -most ? -most : n;
}

/* Query i is token past + i; or, where each batch says how many keys are no padding, the last query is the last of these. */
typedef struct {
    int64_t queries, keys;  /* keys: as many as there are, or, if that is less, as the mask has */
    int64_t past;
    int64_t left, right;    /* so many keys before and behind the query's own; negative: all.  Causal: 0 behind */
} rl_sight;

/* Keys *from .. *to - 1; valid: keys of this batch that are no padding, NULL: all. */
RL_SEEN void rl_seen(const rl_sight *s, const int64_t *valid, int64_t i, int64_t *from, int64_t *to) {
    int64_t n = valid ? rl_seen_bounded(*valid) : s->keys, at = valid ? n + i - s->queries : s->past + i;
    *from = s->left < 0 || at < s->left ? 0 : at - s->left;
    *to = n < s->keys ? n : s->keys;
    if (s->right >= 0 && at + s->right + 1 < *to) *to = at + s->right + 1;
    if (*to < 0) *to = 0;
    if (*from > *to) *from = *to;
}

#endif
