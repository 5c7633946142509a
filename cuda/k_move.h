/* Kernels that move data, C++ for the host and the device.
 *
 * A kernel is a struct: Params, what its block shares, what a thread keeps between steps, and step(), what one thread does between two
 * barriers.  On the device run_kernel (device.cu) puts __syncthreads() between the steps; on the host emulate.cpp runs every thread of
 * a block for step 0, then for step 1: the same code, so that tests of it need no device.
 *
 *   strided<V>   element by element (V: a vector of 1 to 16 bytes); neighbours of `to` are neighbours in a warp
 *   join<V>      several such copies in one launch, as Concat makes them
 *   pack<V>      16 bytes of `to`, which is dense, from elements that lie anywhere
 *   tile<V>, any_tile<V>    `to` and `from` have their neighbours along different dims: k_tile.h; few planes: k_interleave.h, k_weave.h
 *   bits         elements of 2 or 4 bits
 *   fill<V>      one element everywhere
 *   select<V>    gather and scatter, along an axis or by tuples of indices; select_bits: gather, of elements of 2 or 4 bits
 *   pick<V>      gather along the last axis, 16 bytes of `to` at a time */
#ifndef RL_CUDA_K_MOVE_H
#define RL_CUDA_K_MOVE_H
#include "number.h"
#include "params.h"

#define RL_STEP(Params)                                                                                              \
    RL_MEMBER uint32_t steps(const Params &) { return 1; }                                                           \
    RL_MEMBER void step(uint32_t, const Params &p, Shared &, Local &, uint32_t block, uint32_t thread)
#ifdef __CUDACC__
#define RL_MEMBER static __host__ __device__ __forceinline__
#else
#define RL_MEMBER static inline
#endif
struct rl_nothing {};

/* Element numbers of a thread: RL_PER_THREAD, a block's width apart. */
#define RL_EACH(k, p)                                                                                                \
    for (uint32_t k = block * (RL_THREADS * RL_PER_THREAD) + thread, e_ = 0; e_ < RL_PER_THREAD && k < (p).count; e_++, k += RL_THREADS)

/* The same numbers as an array, so that a kernel can begin all its loads before its first store: k[e] is below p.count where e < n. */
RL_HD uint32_t rl_first_of(uint32_t block, uint32_t thread) { return block * (RL_THREADS * RL_PER_THREAD) + thread; }
RL_HD bool rl_has_each(uint32_t first, uint32_t e, uint32_t count) { return first + e * RL_THREADS < count; }

/* Offsets of these numbers for N operands, dim by dim: what a dim needs is read once for all of them. */
template <uint32_t N, uint32_t E> RL_HD void rl_walk_each(const rl_walk *w, uint32_t first, int64_t (&at)[E][N]) {
    uint32_t left[E];
    RL_UNROLL
    for (uint32_t e = 0; e < E; e++) {
        left[e] = first + e * RL_THREADS;
        RL_UNROLL
        for (uint32_t o = 0; o < N; o++) at[e][o] = 0;
    }
    for (uint32_t i = w->rank; i-- > 0;) {
        rl_divisor d = w->dim[i];
        int64_t step[N];
        RL_UNROLL
        for (uint32_t o = 0; o < N; o++) step[o] = w->step[o][i];
        RL_UNROLL
        for (uint32_t e = 0; e < E; e++) {
            uint32_t q = i ? rl_divide(left[e], d) : 0, r = left[e] - q * d.d;
            RL_UNROLL
            for (uint32_t o = 0; o < N; o++) at[e][o] += r * step[o];
            left[e] = q;
        }
    }
}

template <class V> struct rl_strided {
    typedef rl_p_copy Params;
    typedef rl_nothing Shared, Local;
    RL_STEP(rl_p_copy) {
        uint32_t first = rl_first_of(block, thread);
        int64_t at[RL_PER_THREAD][2];
        V x[RL_PER_THREAD];
        rl_walk_each<2>(&p.w, first, at);
        RL_UNROLL
        for (uint32_t e = 0; e < RL_PER_THREAD; e++)
            if (rl_has_each(first, e, p.count)) x[e] = ((const V *)p.from)[at[e][1]];
        RL_UNROLL
        for (uint32_t e = 0; e < RL_PER_THREAD; e++)
            if (rl_has_each(first, e, p.count)) ((V *)p.to)[at[e][0]] = x[e];
    }
};

template <class V> struct rl_join {
    typedef rl_p_join Params;
    typedef rl_nothing Shared, Local;
    RL_STEP(rl_p_join) {
        uint32_t i = 0;
        while (i + 1 < p.n && block >= p.part[i + 1].first) i++;
        const rl_p_part &part = p.part[i];
        uint32_t first = rl_first_of(block - part.first, thread);
        int64_t at[RL_PER_THREAD][2];
        V x[RL_PER_THREAD];
        RL_UNROLL
        for (uint32_t e = 0; e < RL_PER_THREAD; e++) {
            uint32_t k = first + e * RL_THREADS, q = rl_divide(k, part.dim[2]), o = rl_divide(q, part.dim[1]);
            RL_UNROLL
            for (uint32_t side = 0; side < 2; side++)
                at[e][side] = (k - q * part.dim[2].d) * part.step[side][2] + (q - o * part.dim[1].d) * part.step[side][1] + o * part.step[side][0];
            if (rl_has_each(first, e, part.count)) x[e] = ((const V *)part.from)[at[e][1]];
        }
        RL_UNROLL
        for (uint32_t e = 0; e < RL_PER_THREAD; e++)
            if (rl_has_each(first, e, part.count)) ((V *)part.to)[at[e][0]] = x[e];
    }
};

/* Numbers neighbouring each other are read with steps of the last dim, and of the one before it where that ends, and once of what comes after both:
 * the host sees to it that these two have WIDE elements or more, and that 32 bits hold every offset. */
template <class V> struct rl_pack {
    typedef rl_p_copy Params;
    typedef rl_nothing Shared, Local;
    enum { WIDE = 16 / sizeof(V) };
    struct alignas(16) Vector { V each[WIDE]; };

    RL_MEMBER uint32_t from_of(const Params &p, uint32_t number) {
        int64_t at[2];
        rl_walk_at(&p.w, number, 2, at);
        return (uint32_t)at[1];
    }

    /* Element i of row j of `rows`, each n long: where it is read, how far the next one is and the next row's first, and where what comes after the last row is. */
    struct Place { uint32_t i, j, n, rows, at, step, next, then; };
    RL_MEMBER Place find(const Params &p, uint32_t first) {
        Place t;
        uint32_t last = p.w.rank - 1;
        t.n = p.w.dim[last].d, t.rows = p.w.rank > 1 ? p.w.dim[last - 1].d : UINT32_MAX / t.n;
        uint32_t row = rl_divide(first, p.w.dim[last]);
        t.i = first - row * t.n, t.j = p.w.rank > 2 ? row - rl_divide(row, p.w.dim[last - 1]) * t.rows : row;
        t.step = (uint32_t)p.w.step[1][last];
        t.next = (uint32_t)(p.w.rank > 1 ? p.w.step[1][last - 1] : 0) - (t.n - 1) * t.step;
        t.at = from_of(p, first), t.then = 0;
        uint64_t end = (uint64_t)(row - t.j + t.rows) * t.n;
        if (end < first + WIDE && end < p.count) t.then = from_of(p, (uint32_t)end);
        return t;
    }

    RL_MEMBER void gather(const Params &p, Place t, Vector *x, uint32_t n) {
        RL_UNROLL
        for (uint32_t e = 0; e < WIDE; e++) {
            if (e < n) x->each[e] = ((const V *)p.from)[(int32_t)t.at];
            bool turns = ++t.i == t.n;
            t.at += turns ? t.next : t.step;
            if (turns) t.i = 0, t.j++;
            if (t.j == t.rows) t.j = 0, t.at = t.then;
        }
    }

    RL_STEP(rl_p_copy) {
        uint32_t first = (block * RL_THREADS + thread) * WIDE;
        if (first >= p.count) return;
        Vector x;
        V *to = (V *)p.to + first;
        Place t = find(p, first);
        if (first + WIDE <= p.count) {
            gather(p, t, &x, WIDE);
            *(Vector *)to = x;
            return;
        }
        gather(p, t, &x, p.count - first);
        RL_UNROLL
        for (uint32_t e = 0; e < WIDE; e++)
            if (first + e < p.count) to[e] = x.each[e];
    }
};

/* W elements that a thread moves at a time. */
template <class V, uint32_t W> struct alignas(W * sizeof(V)) rl_piece { V each[W]; };

/* The same of any type, loaded and stored as one word: pieces of structs would go element by element. */
template <uint32_t SIZE> struct rl_word { typedef rl_wide16 type; };
template <> struct rl_word<1> { typedef uint8_t type; };
template <> struct rl_word<2> { typedef uint16_t type; };
template <> struct rl_word<4> { typedef uint32_t type; };
template <> struct rl_word<8> { typedef rl_piece<uint32_t, 2> type; };
template <class T, uint32_t W> union rl_bunch {
    typedef typename rl_word<W * sizeof(T)>::type Word;
    Word all;
    T each[W];
    RL_INSIDE void get(const T *from) { all = *(const Word *)from; }
    RL_INSIDE void put(T *to) const {
        uint64_t b;
        if (sizeof all != 8) *(Word *)to = all;
        else memcpy(&b, &all, sizeof all), *(uint64_t *)to = b;
    }
};

RL_HD uint32_t rl_bits_get(const void *p, int64_t k, uint32_t bits) {
    uint32_t per = 8 / bits;
    return (uint32_t)((const uint8_t *)p)[k / per] >> (uint32_t)(k % per) * bits & ((1u << bits) - 1);
}

/* Another thread may own the byte's other elements. */
RL_HD void rl_bits_set(void *p, int64_t k, uint32_t bits, uint32_t x) {
    uint32_t per = 8 / bits;
    int64_t byte = k / per;
    uint32_t shift = (uint32_t)(k % per) * bits, mask = (1u << bits) - 1;
#ifdef __CUDA_ARCH__
    uintptr_t at = (uintptr_t)p + (uintptr_t)byte;
    uint32_t *word = (uint32_t *)(at & ~(uintptr_t)3);
    shift += (uint32_t)(at & 3) * 8;
    atomicAnd(word, ~(mask << shift));
    atomicOr(word, x << shift);
#else
    uint8_t *b = (uint8_t *)p + byte;
    *b = (uint8_t)((*b & ~(mask << shift)) | x << shift);
#endif
}

struct rl_bits {
    typedef rl_p_bits Params;
    typedef rl_nothing Shared, Local;
    RL_STEP(rl_p_bits) {
        uint32_t per = p.dense_to ? 8 / p.bits : 1, n = (p.count + per - 1) / per;
        for (uint32_t e = 0, k = block * (RL_THREADS * RL_PER_THREAD) + thread; e < RL_PER_THREAD && k < n; e++, k += RL_THREADS) {
            uint32_t byte = 0;
            for (uint32_t i = 0; i < per && k * per + i < p.count; i++) {
                int64_t at[2];
                rl_walk_at(&p.w, k * per + i, 2, at);
                uint32_t x = rl_bits_get(p.from, p.from0 + at[1], p.bits);
                if (p.dense_to) byte |= x << i * p.bits;
                else rl_bits_set(p.to, p.to0 + at[0], p.bits, x);
            }
            if (p.dense_to) ((uint8_t *)p.to)[p.to0 / per + k] = (uint8_t)byte;
        }
    }
};

/* An element that the host gave: copied by memcpy straight to where it goes it would be stored byte by byte. */
template <class V> RL_HD V rl_value(const uint32_t *value) {
    V v;
    memcpy(&v, value, sizeof v);
    return v;
}

template <class V> struct rl_fills {
    typedef rl_p_fill Params;
    typedef rl_nothing Shared, Local;
    RL_STEP(rl_p_fill) {
        RL_EACH(k, p) {
            int64_t at[1];
            rl_walk_at(&p.w, k, 1, at);
            ((V *)p.to)[at[0]] = rl_value<V>(p.value);
        }
    }
};

RL_HD void rl_note_wrong(uint32_t *wrong, uint32_t node) {
    *wrong = node; /* whichever thread is last: any of them is right */
}

template <class V> struct rl_select {
    typedef rl_p_select Params;
    typedef rl_nothing Shared, Local;
    /* False: out of range. */
    RL_MEMBER bool find(const Params &p, int64_t place, int64_t *at) {
        for (uint32_t i = 0; i < p.n; i++) {
            int64_t x = p.wide ? ((const int64_t *)p.index)[place + i * p.each] : ((const int32_t *)p.index)[place + i * p.each];
            if (x < 0) x += p.dim[i];
            if (x < 0 || x >= p.dim[i]) return false;
            *at += x * p.step[i];
        }
        return true;
    }
    /* All indices, then all elements: neither waits for the other's stores. */
    RL_STEP(rl_p_select) {
        uint32_t first = rl_first_of(block, thread);
        int64_t at[RL_PER_THREAD][3];
        bool found[RL_PER_THREAD];
        V x[RL_PER_THREAD];
        rl_walk_each<3>(&p.w, first, at);
        RL_UNROLL
        for (uint32_t e = 0; e < RL_PER_THREAD; e++) found[e] = rl_has_each(first, e, p.count) && find(p, at[e][2], &at[e][1]);
        RL_UNROLL
        for (uint32_t e = 0; e < RL_PER_THREAD; e++)
            if (found[e]) x[e] = ((const V *)p.from)[p.scatter ? at[e][0] : at[e][1]];
        RL_UNROLL
        for (uint32_t e = 0; e < RL_PER_THREAD; e++) {
            if (found[e]) ((V *)p.to)[p.scatter ? at[e][1] : at[e][0]] = x[e];
            else if (rl_has_each(first, e, p.count)) rl_note_wrong(p.wrong, p.node);
        }
    }
};

/* The same along the last dim, where neighbours have indices of their own: they are read once for several rows, whose loads are all under way before the first
 * is waited for. */
template <class V> struct rl_pick {
    typedef rl_p_pick Params;
    typedef rl_nothing Shared, Local;
    enum { WIDE = 16 / sizeof(V), WORDS = WIDE < 4 ? 1 : WIDE / 4 };
    union Indices { rl_wide16 all[WORDS]; int32_t each[4 * WORDS]; };
    typedef rl_vector<V> Wide;

    RL_MEMBER int64_t index_of(const Params &p, const Indices &x, uint32_t first, uint32_t e) {
        return p.by_vector ? x.each[e] : p.wide ? ((const int64_t *)p.index)[first + e] : ((const int32_t *)p.index)[first + e];
    }
    RL_STEP(rl_p_pick) {
        uint32_t k = block * RL_THREADS + thread;
        if (k >= p.count) return;
        uint32_t group = rl_divide(k, p.across), first = (k - group * p.across.d) * WIDE;
        Indices x;
        int32_t at[WIDE];
        RL_UNROLL
        for (uint32_t w = 0; w < WORDS; w++)
            if (p.by_vector) x.all[w] = ((const rl_wide16 *)((const int32_t *)p.index + first))[w];
        RL_UNROLL
        for (uint32_t e = 0; e < WIDE; e++) {
            int64_t i = index_of(p, x, first, e);
            if (i < 0) i += p.dim;
            if (i < 0 || i >= p.dim) i = 0, rl_note_wrong(p.wrong, p.node);
            at[e] = (int32_t)i * p.step;
        }
        Wide y[RL_PER_THREAD];
        int64_t row[RL_PER_THREAD][2];
        RL_UNROLL
        for (uint32_t r = 0; r < RL_PER_THREAD; r++) {
            if (group * RL_PER_THREAD + r >= p.rows) continue;
            rl_walk_at(&p.w, group * RL_PER_THREAD + r, 2, row[r]);
            RL_UNROLL
            for (uint32_t e = 0; e < WIDE; e++) y[r].each[e] = ((const V *)p.from + row[r][1])[at[e]];
        }
        RL_UNROLL
        for (uint32_t r = 0; r < RL_PER_THREAD; r++)
            if (group * RL_PER_THREAD + r < p.rows) *(rl_wide16 *)((V *)p.to + row[r][0] + first) = y[r].all;
    }
};

/* The same for elements of 2 or 4 bits, gathered: a thread owns a byte of `to`. */
struct rl_select_bits {
    typedef rl_p_select Params;
    typedef rl_nothing Shared, Local;
    RL_STEP(rl_p_select) {
        uint32_t per = 8 / p.bits, n = (p.count + per - 1) / per;
        for (uint32_t e = 0, k = block * (RL_THREADS * RL_PER_THREAD) + thread; e < RL_PER_THREAD && k < n; e++, k += RL_THREADS) {
            uint32_t byte = 0;
            for (uint32_t i = 0; i < per && k * per + i < p.count; i++) {
                int64_t at[3];
                rl_walk_at(&p.w, k * per + i, 3, at);
                if (!rl_select<uint8_t>::find(p, at[2], &at[1])) rl_note_wrong(p.wrong, p.node);
                else byte |= rl_bits_get(p.from, p.from0 + at[1], p.bits) << i * p.bits;
            }
            ((uint8_t *)p.to)[k] = (uint8_t)byte;
        }
    }
};

#endif
