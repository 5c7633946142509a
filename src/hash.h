/* A map from 64-bit keys to 32-bit values, open-addressed; absent keys give RL_NONE.
 *
 *   rl_hash h = {.mem = &arena};                 empty
 *   rl_hash_put(&h, 42, 7);                      rl_hash_get(&h, 42) == 7, rl_hash_get(&h, 43) == RL_NONE */
#ifndef RL_HASH_H
#define RL_HASH_H
#include "base.h"

typedef struct { rl_arena *mem; struct rl_hashslot { uint64_t key; uint32_t val; } *slot; uint32_t n, cap; } rl_hash; /* key 0: empty */
uint32_t rl_hash_get(const rl_hash *h, uint64_t key);
void rl_hash_put(rl_hash *h, uint64_t key, uint32_t val); /* replaces */
uint64_t rl_hash_bytes(const void *p, size_t n);
/* Is an open-addressed table of cap slots, n of them in use, to grow? */
static inline bool rl_hash_full(uint32_t n, uint32_t cap) { return n >= cap / 8 * 5; }

#endif
