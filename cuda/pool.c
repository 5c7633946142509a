/* Memory for tensors on the device: see pool.h. */
#include "pool.h"

#include <stdlib.h>

enum { LEAST = 256, NCLASS = 8 * 48 };

typedef struct block { struct block *next; void *p; } block;
struct rl_gpu_pool {
    rl_gpu *g;
    block *idle[NCLASS]; /* by class of size */
    block *empty;        /* list cells without a block */
    block *later[NCLASS]; /* given back while each is taken once */
    size_t held;
    bool pinned, once;
};

/* Class k: (8 + k % 8) / 8 * 256 * 2^(k / 8) bytes. */
static size_t size_of(uint32_t k) {
    return ((size_t)LEAST << k / 8) / 8 * (8 + k % 8);
}

static uint32_t class_of(size_t nbyte) {
    uint32_t k = 0;
    while (k + 8 < NCLASS && size_of(k + 8) <= nbyte) k += 8;
    while (k + 1 < NCLASS && size_of(k) < nbyte) k++;
    return k;
}

/* The first classes are closer than the alignment: theirs is rounded up. */
size_t rl_gpu_pool_size(size_t nbyte) {
    return (size_of(class_of(nbyte)) + LEAST - 1) / LEAST * LEAST;
}

rl_gpu_pool *rl_gpu_pool_new(rl_gpu *g) {
    rl_gpu_pool *p = calloc(1, sizeof *p);
    if (p) p->g = g;
    return p;
}

static void give_back(rl_gpu_pool *p) {
    for (uint32_t k = 0; k < NCLASS; k++) {
        for (block *b; (b = p->idle[k]);) {
            p->idle[k] = b->next;
            rl_gpu_free(p->g, b->p, rl_gpu_pool_size(size_of(k)));
            p->held -= rl_gpu_pool_size(size_of(k));
            b->next = p->empty;
            p->empty = b;
        }
    }
}

void rl_gpu_pool_free(rl_gpu_pool *p) {
    if (!p) return;
    rl_gpu_pool_once(p, false);
    give_back(p);
    for (block *b = p->empty, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(p);
}

void *rl_gpu_pool_take(rl_gpu_pool *p, size_t nbyte) {
    uint32_t k = class_of(nbyte);
    size_t size = rl_gpu_pool_size(nbyte);
    block *b = p->idle[k];
    if (b) {
        p->idle[k] = b->next;
        b->next = p->empty;
        p->empty = b;
        return b->p;
    }
    void *at = rl_gpu_alloc(p->g, size);
    if (!at && !p->pinned && rl_gpu_sync(p->g) == RL_OK) {
        give_back(p);
        at = rl_gpu_alloc(p->g, size);
    }
    if (at) p->held += size;
    return at;
}

void rl_gpu_pool_give(rl_gpu_pool *p, void *at, size_t nbyte) {
    uint32_t k = class_of(nbyte);
    block *b = p->empty ? p->empty : malloc(sizeof *b);
    if (!b) { /* no cell to remember it by */
        rl_gpu_free(p->g, at, rl_gpu_pool_size(nbyte));
        p->held -= rl_gpu_pool_size(nbyte);
        return;
    }
    if (p->empty) p->empty = b->next;
    block **list = p->once ? &p->later[k] : &p->idle[k];
    *b = (block){*list, at};
    *list = b;
}

void rl_gpu_pool_pin(rl_gpu_pool *p, bool pinned) {
    p->pinned = pinned;
}

void rl_gpu_pool_once(rl_gpu_pool *p, bool once) {
    p->once = once;
    for (uint32_t k = 0; k < NCLASS && !once; k++) {
        for (block *b; (b = p->later[k]);) {
            p->later[k] = b->next;
            b->next = p->idle[k];
            p->idle[k] = b;
        }
    }
}

size_t rl_gpu_pool_held(const rl_gpu_pool *p) {
    return p->held;
}
