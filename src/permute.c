/* The copy of permute.h: dims that stay neighbours are merged and dims of size 1 dropped, which leaves few loops; then either
 * runs of bytes are copied whole, or (the innermost dims differ) tiles of 16 x 16 elements, so that both sides stay in cache. */
#include "permute.h"

#include <string.h>

/* The output's loops, outermost first. */
typedef struct {
    uint32_t n;
    int64_t size[RL_PERMUTE_MAXRANK + 1], stride[RL_PERMUTE_MAXRANK + 1]; /* stride: elements in the input */
} loops;

static loops plan(uint32_t rank, const int64_t *dim, const uint32_t *perm) {
    loops l = {0};
    int64_t stride[RL_PERMUTE_MAXRANK], s = 1;
    for (uint32_t i = rank; i-- > 0; s *= dim[i]) stride[i] = s;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t size = dim[perm[i]];
        if (size == 1) continue;
        if (l.n && l.stride[l.n - 1] == size * stride[perm[i]]) {
            l.size[l.n - 1] *= size;
            l.stride[l.n - 1] = stride[perm[i]];
        } else {
            l.size[l.n] = size;
            l.stride[l.n++] = stride[perm[i]];
        }
    }
    return l;
}

/* Adds one to the counter over loops [0, n); returns the input offset that belongs to it, or -1 after the last. */
static int64_t next(const loops *l, uint32_t n, int64_t *count, int64_t at) {
    for (uint32_t i = n; i-- > 0;) {
        at += l->stride[i];
        if (++count[i] < l->size[i]) return at;
        at -= l->stride[i] * count[i];
        count[i] = 0;
    }
    return -1;
}

static void copy_runs(char *out, const char *in, const loops *l, size_t elem) {
    int64_t count[RL_PERMUTE_MAXRANK + 1] = {0};
    size_t run = (size_t)l->size[l->n - 1] * elem;
    for (int64_t at = 0; at >= 0; at = next(l, l->n - 1, count, at), out += run) memcpy(out, in + (size_t)at * elem, run);
}

static void copy_elem(char *out, const char *in, size_t elem) {
    switch (elem) { /* constant sizes become one move */
    case 1: *out = *in; return;
    case 2: memcpy(out, in, 2); return;
    case 4: memcpy(out, in, 4); return;
    case 8: memcpy(out, in, 8); return;
    default: memcpy(out, in, elem);
    }
}

/* A plane: out[i * so + j] = in[i * si + j * sj] for i < ni, j < nj. */
static void copy_plane(char *out, const char *in, int64_t ni, int64_t nj, int64_t so, int64_t si, int64_t sj, size_t elem) {
    enum { TILE = 16 };
    for (int64_t i0 = 0; i0 < ni; i0 += TILE) {
        for (int64_t j0 = 0; j0 < nj; j0 += TILE) {
            int64_t i1 = RL_MIN(i0 + TILE, ni), j1 = RL_MIN(j0 + TILE, nj);
            for (int64_t i = i0; i < i1; i++)
                for (int64_t j = j0; j < j1; j++)
                    copy_elem(out + (size_t)(i * so + j) * elem, in + (size_t)(i * si + j * sj) * elem, elem);
        }
    }
}

/* The innermost output loop strides in the input: pair it with the loop that is innermost there. */
static void copy_planes(char *out, const char *in, const loops *l, size_t elem) {
    uint32_t inner = 0, last = l->n - 1;
    while (inner < last && l->stride[inner] != 1) inner++;
    int64_t step[RL_PERMUTE_MAXRANK + 1], s = 1; /* in the output */
    for (uint32_t i = l->n; i-- > 0; s *= l->size[i]) step[i] = s;
    loops outer = *l;
    outer.n = last;
    if (inner < last) outer.size[inner] = 1;
    int64_t count[RL_PERMUTE_MAXRANK + 1] = {0}, at = 0;
    while (at >= 0) {
        int64_t to = 0;
        for (uint32_t i = 0; i < last; i++) to += count[i] * step[i];
        bool plane = inner < last;
        copy_plane(out + (size_t)to * elem, in + (size_t)at * elem, plane ? l->size[inner] : 1, l->size[last], step[inner],
                   plane ? 1 : 0, l->stride[last], elem);
        at = next(&outer, last, count, at);
    }
}

/* Elements smaller than a byte, one by one. */
static void copy_bits(uint8_t *out, const uint8_t *in, const loops *l, uint32_t bits) {
    int64_t count[RL_PERMUTE_MAXRANK + 1] = {0};
    uint32_t per = 8 / bits, mask = (1u << bits) - 1u;
    size_t k = 0;
    for (int64_t at = 0; at >= 0; at = next(l, l->n, count, at), k++) {
        uint32_t x = (uint32_t)in[(size_t)at / per] >> ((size_t)at % per * bits) & mask;
        uint32_t shift = (uint32_t)(k % per) * bits;
        out[k / per] = (uint8_t)((shift ? out[k / per] : 0u) | x << shift);
    }
}

void rl_permute(void *out, const void *in, uint32_t rank, const int64_t *dim, const uint32_t *perm, uint32_t bits) {
    for (uint32_t i = 0; i < rank; i++)
        if (dim[i] == 0) return;
    loops l = plan(rank, dim, perm);
    size_t elem = bits / 8;
    if (l.n == 0) l = (loops){.n = 1, .size = {1}, .stride = {1}};
    if (bits < 8) copy_bits(out, in, &l, bits);
    else if (l.stride[l.n - 1] == 1) copy_runs(out, in, &l, elem);
    else copy_planes(out, in, &l, elem);
}
