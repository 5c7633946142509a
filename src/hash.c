/* Hashes of bytes, and the map: see hash.h. */
#include "hash.h"

#include <string.h>

static uint64_t mix(uint64_t x) {
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

uint64_t rl_hash_bytes(const void *p, size_t n) {
    const unsigned char *s = p;
    uint64_t h = mix(n + 0x9e3779b97f4a7c15u), w;
    for (; n >= 8; s += 8, n -= 8) {
        memcpy(&w, s, 8);
        h = (h ^ w) * 0x9fb21c651e98df25u;
        h ^= h >> 29;
    }
    w = 0;
    if (n) memcpy(&w, s, n);
    return mix(h ^ w);
}

/* Key 0 marks an empty slot, so key 0 itself has the slot after the last; h->n counts the others. */
static struct rl_hashslot *hash_slot(struct rl_hashslot *slot, uint32_t cap, uint64_t k) {
    if (!k) return &slot[cap];
    uint32_t i = (uint32_t)mix(k) & (cap - 1);
    while (slot[i].key && slot[i].key != k) i = (i + 1) & (cap - 1);
    return &slot[i];
}

static void hash_grow(rl_hash *h) {
    if (h->cap > UINT32_MAX / 4) rl_no_memory(h->mem->ctx);
    uint32_t cap = h->cap ? h->cap * 2 : 16;
    struct rl_hashslot *slot = rl_new(h->mem, struct rl_hashslot, cap + 1);
    slot[cap].val = h->cap ? h->slot[h->cap].val : RL_NONE;
    for (uint32_t k = 0; k < h->cap; k++)
        if (h->slot[k].key) *hash_slot(slot, cap, h->slot[k].key) = h->slot[k];
    rl_drop(h->mem, h->slot, (h->cap + 1) * sizeof *slot);
    h->slot = slot;
    h->cap = cap;
}

uint32_t rl_hash_get(const rl_hash *h, uint64_t key) {
    if (!h->cap) return RL_NONE;
    const struct rl_hashslot *s = hash_slot(h->slot, h->cap, key);
    return s->key == key ? s->val : RL_NONE;
}

void rl_hash_put(rl_hash *h, uint64_t key, uint32_t val) {
    if (rl_hash_full(h->n, h->cap)) hash_grow(h);
    struct rl_hashslot *s = hash_slot(h->slot, h->cap, key);
    h->n += s->key != key;
    *s = (struct rl_hashslot){key, val};
}
