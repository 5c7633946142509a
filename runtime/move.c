/* The one strided copy: every conversion, gather of a view and fill goes through here.
 *
 * Dims of 1 go, neighbours that are contiguous on both sides are joined, and the loops are ordered so that the destination is
 * written as straight as possible; what is left is an outer walk over rows and one inner loop of a fixed element size. */
#include <string.h>

#include "device.h"
#include "number.h"

typedef struct {
    uint32_t rank, bits;
    int64_t dim[RL_RANK], to[RL_RANK], from[RL_RANK]; /* strides in elements */
    int64_t to0, from0;
    char *dst;
    const char *src;
} plan;

static int64_t size_of(int64_t x) {
    return x < 0 ? -x : x;
}

/* Outermost: the largest destination stride. */
static void sort_dims(plan *p) {
    for (uint32_t i = 1; i < p->rank; i++) {
        for (uint32_t k = i; k && size_of(p->to[k - 1]) < size_of(p->to[k]); k--) {
            int64_t d = p->dim[k], t = p->to[k], f = p->from[k];
            p->dim[k] = p->dim[k - 1], p->to[k] = p->to[k - 1], p->from[k] = p->from[k - 1];
            p->dim[k - 1] = d, p->to[k - 1] = t, p->from[k - 1] = f;
        }
    }
}

static void make_plan(plan *p, const rl_tensor *dst, const rl_tensor *src) {
    uint32_t n = 0;
    *p = (plan){.bits = rl_elem_bits(dst->dtype), .to0 = dst->offset, .from0 = src->offset, .dst = dst->mem->p, .src = src->mem->p};
    for (uint32_t i = 0; i < dst->rank; i++) {
        if (dst->dim[i] == 1) continue;
        p->dim[n] = dst->dim[i], p->to[n] = dst->stride[i], p->from[n++] = src->stride[i];
    }
    p->rank = n;
    sort_dims(p);
    n = 0;
    for (uint32_t i = 0; i < p->rank; i++) {
        int64_t d = p->dim[i], t = p->to[i], f = p->from[i];
        if (n && p->to[n - 1] == t * d && p->from[n - 1] == f * d) p->dim[n - 1] *= d, p->to[n - 1] = t, p->from[n - 1] = f;
        else p->dim[n] = d, p->to[n] = t, p->from[n++] = f;
    }
    if (n == 0) p->dim[n++] = 1;
    p->rank = n;
}

/* Constant sizes let the compiler make each memcpy one load and one store. */
#define ROW(size) for (int64_t i = 0; i < n; i++) memcpy(to + i * ts * (size), from + i * fs * (size), (size))

static void copy_row(const plan *p, int64_t to_at, int64_t from_at) {
    uint32_t last = p->rank - 1;
    int64_t n = p->dim[last], ts = p->to[last], fs = p->from[last];
    if (p->bits < 8) {
        for (int64_t i = 0; i < n; i++) rl_set_bits(p->dst, to_at + i * ts, p->bits, rl_get_bits(p->src, from_at + i * fs, p->bits));
        return;
    }
    int64_t size = p->bits / 8;
    char *to = p->dst + to_at * size;
    const char *from = p->src + from_at * size;
    if (ts == 1 && fs == 1) {
        memcpy(to, from, (size_t)(n * size));
        return;
    }
    switch (size) {
    case 1: ROW(1); break;
    case 2: ROW(2); break;
    case 4: ROW(4); break;
    case 8: ROW(8); break;
    default: ROW(16); break;
    }
}

/* Rows from .. to-1 of all rows, counted row-major over the outer dims. */
static void copy_rows(void *arg, int64_t first, int64_t end) {
    const plan *p = arg;
    int64_t index[RL_RANK] = {0}, t = p->to0, f = p->from0, left = first;
    uint32_t outer = p->rank - 1;
    for (uint32_t i = outer; i-- > 0; left /= p->dim[i]) {
        index[i] = left % p->dim[i];
        t += index[i] * p->to[i];
        f += index[i] * p->from[i];
    }
    for (int64_t r = first; r < end; r++) {
        copy_row(p, t, f);
        for (uint32_t i = outer; i-- > 0;) {
            t += p->to[i], f += p->from[i];
            if (++index[i] < p->dim[i]) break;
            index[i] = 0;
            t -= p->to[i] * p->dim[i], f -= p->from[i] * p->dim[i];
        }
    }
}

void rl_move(rl_rt *rt, const rl_tensor *dst, const rl_tensor *src) {
    plan p;
    int64_t rows = 1, n = rl_numel(dst);
    if (n == 0 || rl_device_moves(rt, dst, src)) return;
    make_plan(&p, dst, src);
    for (uint32_t i = 0; i + 1 < p.rank; i++) rows *= p.dim[i];
    rt->moved += rl_bytes_of(dst->dtype, n);
    /* Two rows of small elements may share a byte: one thread. */
    rl_parallel(rt, rows, p.bits < 8 ? rows : RL_MAX(1, 65536 / p.dim[p.rank - 1]), copy_rows, &p);
}

void rl_fill(rl_rt *rt, const rl_tensor *dst, const void *value) {
    if (rl_device_fills(rt, dst, value)) return;
    rl_storage s = {.rt = rt, .on = &rl_backend_cpu, .p = (void *)(uintptr_t)value, .ref = 1, .borrowed = true};
    rl_tensor one = {.kind = RL_TENSOR, .dtype = dst->dtype, .mem = &s}, all;
    uint64_t moved = rt->moved;
    if (rl_view_expand(&one, dst->rank, dst->dim, &all)) rl_move(rt, dst, &all);
    rt->moved = moved;
}
