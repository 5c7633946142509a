/* Networks' kernels, C++ for the host and the device, for any strides: what stands in where cuDNN and cuBLASLt do not.
 *
 *   affine<T>   BatchNormalization and what was joined to it        lrn<T>      LRN
 *   pool<T>     MaxPool, AveragePool, up to three spatial dims
 *   resize<T>   up to three axes by tables       pad<V>      constant, reflect, edge, wrap
 *   matmul<T>   tiles of 64 * 64 in shared memory, 4 * 4 outputs per thread
 *   dp4a        convolutions of bytes, between all layouts that keep four channels of a place in a word (dp4a.h) */
#ifndef RL_CUDA_K_NN_H
#define RL_CUDA_K_NN_H
#include <math.h>

#include "k_conv.h"
#include "ops.h"

template <class T> struct rl_affine {
    typedef rl_p_affine Params;
    typedef rl_nothing Shared, Local;
    typedef typename rl_computed<T>::type C;

    enum { WIDE = rl_vector<T>::WIDE };
    RL_MEMBER C of(const Params &p, C x, int64_t channel) {
        C by = ((const C *)p.scale)[channel], more = ((const C *)p.bias)[channel];
        if (!p.mean) return x * by + more;
        return (x - ((const C *)p.mean)[channel]) * (by / (C)sqrt((double)((const C *)p.var)[channel] + p.epsilon)) + more;
    }

    RL_MEMBER void wide(const Params &p, uint32_t number) {
        int64_t at[3];
        uint32_t n = rl_vector<T>::left(number, p.count);
        rl_vector<T> x;
        if (!n) return;
        rl_walk_at(&p.w, number, 3, at);
        x.clear();
        x.fetch((const T *)p.from + at[1], false, n);
        C v[WIDE];
        RL_UNROLL
        for (uint32_t e = 0; e < WIDE; e++) v[e] = of(p, rl_load(x.each[e]), at[2] + (e < n ? e : 0) * p.by);
        RL_ROLLED
        for (uint32_t i = 0; i < p.npost; i++) {
            C w[WIDE] = {0};
            if (p.post[i].operand) {
                x.fetch((const T *)p.in[p.post[i].operand] + at[0], false, n);
                RL_UNROLL
                for (uint32_t e = 0; e < WIDE; e++) w[e] = rl_load(x.each[e]);
            }
            rl_row_each<WIDE, C>(p.post[i], v, w);
        }
        RL_UNROLL
        for (uint32_t e = 0; e < WIDE; e++) rl_store(&x.each[e], v[e]);
        x.put((T *)p.to + at[0], n);
    }

    RL_STEP(rl_p_affine) {
        if (p.wide) {
            wide(p, block * RL_THREADS + thread);
            return;
        }
        RL_EACH(k, p) {
            int64_t at[3];
            rl_walk_at(&p.w, k, 3, at);
            C v[1] = {of(p, rl_load(((const T *)p.from)[at[1]]), at[2])};
            for (uint32_t i = 0; i < p.npost; i++) {
                const C w[1] = {p.post[i].operand ? (C)rl_load(((const T *)p.in[p.post[i].operand])[at[0]]) : (C)0};
                rl_row_each<1, C>(p.post[i], v, w);
            }
            rl_store((T *)p.to + at[0], v[0]);
        }
    }
};

template <class T> struct rl_lrn {
    typedef rl_p_lrn Params;
    typedef rl_nothing Shared, Local;
    typedef typename rl_computed<T>::type C;

    RL_STEP(rl_p_lrn) {
        RL_EACH(k, p) {
            int64_t at[3];
            rl_walk_at(&p.w, k, 3, at);
            const T *x = (const T *)p.from + at[1];
            uint32_t c = (uint32_t)at[2], below = c < p.before ? c : p.before, above = p.channels - 1 - c < p.after ? p.channels - 1 - c : p.after;
            C sum = 0;
            for (uint32_t i = 0; i <= below + above; i++) {
                C v = rl_load(x[((int64_t)i - below) * p.step]);
                sum += v * v;
            }
            rl_store((T *)p.to + at[0], rl_load(*x) / (C)pow((C)p.bias + (C)p.scale * sum, (C)p.beta));
        }
    }
};

/* Where a maximum begins. */
template <class T> struct rl_least { RL_MEMBER T of() { return -(T)INFINITY; } };
template <> struct rl_least<int8_t> { RL_MEMBER int8_t of() { return -128; } };
template <> struct rl_least<uint8_t> { RL_MEMBER uint8_t of() { return 0; } };

template <class T> struct rl_pools {
    typedef rl_p_pool Params;
    typedef rl_nothing Shared, Local;
    typedef typename rl_computed<T>::type C;
    struct Window { int32_t from[RL_MOST_SPATIAL]; uint32_t counted, c; int64_t to; };

    /* Where output number k's window begins, and how many of its taps an average counts. Dims that are not there are passed over, so that the loops can be
     * unrolled: what is indexed by a number that is known only then lies in memory. */
    RL_MEMBER uint32_t place(const Params &p, uint32_t number, Window *w) {
        uint32_t k = rl_divide(number, p.channels);
        w->counted = 1, w->c = number - k * p.channels.d, w->to = w->c * p.to_c;
        RL_UNROLL
        for (uint32_t i = RL_MOST_SPATIAL; i-- > 0;) {
            if (i >= p.r) continue;
            uint32_t q = rl_divide(k, p.out[i]), n = 0;
            w->to += (k - q * p.out[i].d) * p.to_step[i];
            w->from[i] = (int32_t)(k - q * p.out[i].d) * p.stride[i] - p.before[i];
            RL_ROLLED
            for (int32_t t = 0; t < (int32_t)p.window[i].d; t++) {
                int32_t at = w->from[i] + t * p.dilation[i];
                n += p.count_pad ? at < p.in[i] + p.after[i] : at >= 0 && at < p.in[i];
            }
            w->counted *= n;
            k = q;
        }
        return k;
    }

    /* False: tap t lies beyond x. */
    RL_MEMBER bool tap(const Params &p, const Window &w, uint32_t t, int64_t *at) {
        bool inside = true;
        *at = 0;
        RL_UNROLL
        for (uint32_t i = RL_MOST_SPATIAL; i-- > 0;) {
            if (i >= p.r) continue;
            uint32_t q = rl_divide(t, p.window[i]);
            int32_t k = w.from[i] + (int32_t)(t - q * p.window[i].d) * p.dilation[i];
            t = q;
            inside = inside && k >= 0 && k < p.in[i];
            *at += k * p.step[i];
        }
        return inside;
    }
    RL_MEMBER C first(const Params &p) { return p.op == RL_GPU_POOL_MAX ? rl_least<C>::of() : (C)0; }
    RL_MEMBER C joined(const Params &p, C a, C v) { return p.op == RL_GPU_POOL_AVERAGE ? a + v : v > a ? v : a; }
    RL_MEMBER C last(const Params &p, const Window &w, C a) { return p.op == RL_GPU_POOL_AVERAGE ? a / (C)w.counted : a; }

    RL_MEMBER C take(const Params &p, const T *x, const Window &w) {
        C a = first(p);
        int64_t at;
        for (uint32_t t = 0; t < p.taps; t++)
            if (tap(p, w, t, &at)) a = joined(p, a, rl_load(x[at]));
        return last(p, w, a);
    }

    /* 16 bytes of channels: `channels` counts these. */
    RL_MEMBER void wide(const Params &p, uint32_t number) {
        typedef rl_vector<T> Vector;
        if (number >= p.count) return;
        Window w;
        Vector v;
        C a[Vector::WIDE];
        int64_t at[2], tapped;
        rl_walk_at(&p.outer, place(p, number, &w), 2, at);
        const T *x = (const T *)p.from + at[1] + w.c * p.from_c;
        RL_UNROLL
        for (uint32_t e = 0; e < Vector::WIDE; e++) a[e] = first(p);
        for (uint32_t t = 0; t < p.taps; t++) {
            if (!tap(p, w, t, &tapped)) continue;
            v.fetch(x + tapped, false, Vector::WIDE);
            RL_UNROLL
            for (uint32_t e = 0; e < Vector::WIDE; e++) a[e] = joined(p, a[e], rl_load(v.each[e]));
        }
        RL_UNROLL
        for (uint32_t e = 0; e < Vector::WIDE; e++) rl_store(&v.each[e], last(p, w, a[e]));
        v.put((T *)p.to + at[0] + w.to, Vector::WIDE);
    }

    RL_STEP(rl_p_pool) {
        if (p.wide) {
            wide(p, block * RL_THREADS + thread);
            return;
        }
        RL_EACH(k, p) {
            Window w;
            int64_t at[2];
            rl_walk_at(&p.outer, place(p, k, &w), 2, at);
            rl_store((T *)p.to + at[0] + w.to, take(p, (const T *)p.from + at[1] + w.c * p.from_c, w));
        }
    }
};

template <class C> struct rl_tap_of { typedef rl_tap_f32 type; };
template <> struct rl_tap_of<double> { typedef rl_tap_f64 type; };

template <class T> struct rl_resizes {
    typedef rl_p_resize Params;
    typedef rl_nothing Shared, Local;
    typedef typename rl_computed<T>::type C;
    typedef typename rl_tap_of<C>::type Tap;
    struct Spot { int64_t at; C by; }; /* of x, and its weight */

    /* Tap t of this place along an axis, from the spot that the axes before it have made. */
    RL_MEMBER Spot next(const Params &p, uint32_t axis, int64_t place, uint32_t t, const Spot &s) {
        Tap tap = ((const Tap *)p.taps)[p.first[axis] + (uint32_t)place * p.ntap[axis] + t];
        Spot then = {s.at + tap.at * p.step[axis], s.by * (C)tap.weight};
        return then;
    }

    /* E numbers of W neighbours each: tap after tap, one of each number under way at a time. */
    template <uint32_t E, uint32_t W> RL_MEMBER void some(const Params &p, uint32_t block, uint32_t thread) {
        uint32_t first = block * (RL_THREADS * E) + thread, n = p.count / W;
        int64_t at[E][4];
        C sum[E][W];
        Spot s[3][E];
        rl_bunch<T, W> x[E];
        rl_walk_each<4>(&p.w, first, at);
        RL_UNROLL
        for (uint32_t e = 0; e < E; e++) {
            RL_UNROLL
            for (uint32_t i = 0; i < W; i++) sum[e][i] = 0;
        }
        RL_ROLLED
        for (uint32_t i = 0; i < p.ntap[0]; i++) {
            RL_UNROLL
            for (uint32_t e = 0; e < E; e++)
                if (rl_has_each(first, e, n)) s[0][e] = next(p, 0, at[e][2] & 0xffffffff, i, Spot{at[e][1], 1});
            RL_ROLLED
            for (uint32_t j = 0; j < p.ntap[1]; j++) {
                RL_UNROLL
                for (uint32_t e = 0; e < E; e++)
                    if (rl_has_each(first, e, n)) s[1][e] = next(p, 1, at[e][2] >> 32, j, s[0][e]);
                RL_BY_TWO
                for (uint32_t k = 0; k < p.ntap[2]; k++) {
                    RL_UNROLL
                    for (uint32_t e = 0; e < E; e++) {
                        if (!rl_has_each(first, e, n)) continue;
                        s[2][e] = next(p, 2, at[e][3], k, s[1][e]);
                        x[e].get((const T *)p.from + s[2][e].at);
                    }
                    RL_UNROLL
                    for (uint32_t e = 0; e < E; e++) {
                        if (!rl_has_each(first, e, n)) continue;
                        RL_UNROLL
                        for (uint32_t c = 0; c < W; c++) sum[e][c] += s[2][e].by * (C)rl_load(x[e].each[c]);
                    }
                }
            }
        }
        RL_UNROLL
        for (uint32_t e = 0; e < E; e++) {
            RL_UNROLL
            for (uint32_t c = 0; c < W; c++) rl_store(&x[e].each[c], sum[e][c]);
            if (rl_has_each(first, e, n)) x[e].put((T *)p.to + at[e][0]);
        }
    }

    RL_STEP(rl_p_resize) {
        if (p.wide) some<1, 16 / sizeof(T)>(p, block, thread);
        else some<RL_RESIZED_AT_ONCE, 1>(p, block, thread);
    }
};

template <class V> struct rl_pads {
    typedef rl_p_pad Params;
    typedef rl_nothing Shared, Local;

    /* Which place of a dim of n a place around it takes its element from; n itself: none. */
    RL_MEMBER int64_t source(uint32_t mode, int64_t i, int64_t n) {
        if (i >= 0 && i < n) return i;
        if (mode == RL_GPU_PAD_CONSTANT) return n;
        if (n <= 1 || (mode == RL_GPU_PAD_EDGE && i < 0)) return 0;
        if (mode == RL_GPU_PAD_EDGE) return n - 1;
        if (mode == RL_GPU_PAD_WRAP) return ((i % n) + n) % n;
        int64_t period = 2 * (n - 1), k = ((i % period) + period) % period;
        return k < n ? k : period - k;
    }

    RL_STEP(rl_p_pad) {
        RL_EACH(k, p) {
            uint32_t left = k;
            int64_t to = 0, from = 0;
            bool inside = true;
            for (uint32_t i = p.rank; i-- > 0;) {
                uint32_t q = rl_divide(left, p.dim[i]), at = left - q * p.dim[i].d;
                int64_t s = source(p.mode, (int64_t)at - p.before[i], p.in[i]);
                inside = inside && s < p.in[i];
                to += at * p.to_step[i];
                from += s * p.from_step[i];
                left = q;
            }
            if (inside) ((V *)p.to)[to] = ((const V *)p.from)[from];
            else ((V *)p.to)[to] = rl_value<V>(p.value);
        }
    }
};

/* ---- products ---- */

/* O: of c; bytes are multiplied as what they make, 32 bits. */
template <class T, class O = T> struct rl_matmul {
    typedef rl_p_matmul Params;
    typedef typename rl_computed<O>::type C;
    enum { SIDE = 64, DEPTH = 16, OWN = 4, ROW = SIDE + 1 };
    struct Shared { C a[DEPTH * ROW], b[DEPTH * ROW]; };
    struct Local { C sum[OWN][OWN]; };

    RL_MEMBER uint32_t tiles(const Params &p) { return p.k ? (p.k + DEPTH - 1) / DEPTH : 1; }
    RL_MEMBER uint32_t steps(const Params &p) { return 2 * tiles(p); }

    /* DEPTH * SIDE elements from row `row` on and depth `k` on; neighbours in memory to neighbouring threads. */
    RL_MEMBER void load(C *cell, const T *x, uint32_t row, uint32_t nrow, int64_t by_row, uint32_t k, uint32_t nk, int64_t by_k, uint32_t thread) {
        for (uint32_t e = thread; e < DEPTH * SIDE; e += RL_THREADS) {
            uint32_t i = by_k == 1 ? e / DEPTH : e % SIDE, j = by_k == 1 ? e % DEPTH : e / SIDE;
            bool inside = row + i < nrow && k + j < nk;
            cell[j * ROW + i] = inside ? (C)rl_load(x[(row + i) * by_row + (k + j) * by_k]) : (C)0;
        }
    }

    RL_MEMBER void multiply(const Shared &s, Local &l, uint32_t thread) {
        uint32_t i = thread / 16, j = thread % 16;
        for (uint32_t k = 0; k < DEPTH; k++)
            for (uint32_t u = 0; u < OWN; u++)
                for (uint32_t v = 0; v < OWN; v++) l.sum[u][v] += s.a[k * ROW + i + 16 * u] * s.b[k * ROW + j + 16 * v];
    }

    RL_MEMBER void store(const Params &p, const Local &l, O *c, uint32_t row, uint32_t column, uint32_t thread) {
        for (uint32_t u = 0; u < OWN; u++) {
            for (uint32_t v = 0; v < OWN; v++) {
                uint32_t i = row + thread / 16 + 16 * u, j = column + thread % 16 + 16 * v;
                if (i >= p.m || j >= p.n) continue;
                C y = (C)p.alpha * l.sum[u][v];
                if (p.bias) y += (C)p.beta * (C)rl_load(((const O *)p.bias)[i * p.bias_m + j * p.bias_n]);
                rl_store(c + i * p.c_m + j * p.c_n, y);
            }
        }
    }

    RL_MEMBER void step(uint32_t phase, const Params &p, Shared &s, Local &l, uint32_t block, uint32_t thread) {
        uint32_t q = rl_divide(block, p.tiles_n), batch = rl_divide(q, p.tiles_m);
        uint32_t column = (block - q * p.tiles_n.d) * SIDE, row = (q - batch * p.tiles_m.d) * SIDE, k = phase / 2 * DEPTH;
        int64_t at[3];
        rl_walk_at(&p.batch, batch, 3, at);
        if (phase == 0)
            for (uint32_t u = 0; u < OWN; u++)
                for (uint32_t v = 0; v < OWN; v++) l.sum[u][v] = 0;
        if (phase % 2 == 0) {
            load(s.a, (const T *)p.a + at[1], row, p.m, p.a_m, k, p.k, p.a_k, thread);
            load(s.b, (const T *)p.b + at[2], column, p.n, p.b_n, k, p.k, p.b_k, thread);
            return;
        }
        multiply(s, l, thread);
        if (phase + 1 == steps(p)) store(p, l, (O *)p.c + at[0], row, column, thread);
    }
};

typedef rl_matmul<int8_t, int32_t> rl_matmul_of_bytes;
template <class T> using rl_matmul_to_f32 = rl_matmul<T, float>;

RL_HD int32_t rl_dot4(int32_t a, int32_t b, int32_t sum) {
#if defined(__CUDA_ARCH__)
    return __dp4a(a, b, sum);
#else
    for (int i = 0; i < 4; i++) sum += (int8_t)((uint32_t)a >> 8 * i) * (int8_t)((uint32_t)b >> 8 * i);
    return sum;
#endif
}

/* A thread per line: the sum of its n signed bytes. */
struct rl_byte_sums {
    typedef rl_p_byte_sums Params;
    typedef rl_nothing Shared, Local;
    RL_STEP(rl_p_byte_sums) {
        RL_EACH(k, p) {
            int64_t at[1];
            int32_t sum = 0;
            rl_walk_at(&p.w, k, 1, at);
            const int8_t *x = (const int8_t *)p.from + at[0];
            for (uint32_t i = 0; p.wide && i < p.n; i += 16) {
                rl_wide16 some = *(const rl_wide16 *)(x + i);
                for (uint32_t e = 0; e < 4; e++) sum = rl_dot4((int32_t)some.x[e], 0x01010101, sum);
            }
            for (uint32_t i = 0; !p.wide && i < p.n; i++) sum += x[i * p.step];
            ((int32_t *)p.to)[k] = sum;
        }
    }
};

RL_HD int32_t rl_zero_of(const rl_p_zero &z) { return z.at ? (int8_t)(*z.at ^ z.flip) : z.value; }

/* What follows a product of bytes: zero points, then 32 bits, or the scale of the column, rounded and cut. */
struct rl_byte_end {
    typedef rl_p_byte_end Params;
    typedef rl_nothing Shared, Local;
    RL_STEP(rl_p_byte_end) {
        RL_EACH(k, p) {
            uint32_t row = rl_divide(k, p.columns), column = k - row * p.columns.d;
            uint32_t v = (uint32_t)((const int32_t *)p.from)[k], zero = 0;
            if (p.rows) zero = p.zero ? (uint32_t)((const int32_t *)p.zero)[column] : (uint32_t)rl_zero_of(p.b_zero);
            if (p.rows) v -= (uint32_t)((const int32_t *)p.rows)[row] * zero;
            if (p.sums) {
                uint32_t sum = (uint32_t)((const int32_t *)p.sums)[rl_divide(row, p.height) * p.columns.d + column];
                v -= (uint32_t)rl_zero_of(p.a_zero) * (sum - p.k * zero);
            }
            if (!p.scale) {
                ((int32_t *)p.to)[k] = (int32_t)v;
                continue;
            }
            if (p.a_scale) {
                float y = (float)(int32_t)v * (*p.a_scale * ((const float *)p.scale)[column * p.scale_step]);
                ((float *)p.to)[k] = p.bias ? y + p.bias[column] : y;
                continue;
            }
            float y = rintf((float)(int32_t)v * ((const float *)p.scale)[column]) + (float)p.y_zero;
            ((uint8_t *)p.to)[k] = (uint8_t)(int32_t)(y < (float)p.least ? (float)p.least : y > (float)p.most ? (float)p.most : y);
        }
    }
};

/* A thread makes four channels of one place; its neighbours are neighbours in y. */
struct rl_dp4a_conv {
    typedef rl_p_dp4a Params;
    typedef rl_nothing Shared, Local;

    RL_MEMBER int64_t channel(const rl_divisor &per_block, int64_t block, int64_t step, uint32_t c) {
        uint32_t b = rl_divide(c, per_block);
        return b * block + (c - b * per_block.d) * step;
    }

    RL_MEMBER void sum_up(const Params &p, int64_t image, int32_t row, int32_t column, uint32_t quad, int32_t *sum) {
        uint32_t first = rl_divide(quad, p.quads) * p.depth;
        uint32_t pad = p.x_zero ? *p.x_zero * (p.words ? 0x01010101u : 1) : p.pad;
        const int32_t *w = (const int32_t *)p.w + (int64_t)quad * p.taps * p.depth * 4;
        for (uint32_t t = 0; t < p.taps; t++) {
            uint32_t r = rl_divide(t, p.s);
            int32_t h = row * p.stride[0] - p.before[0] + (int32_t)r * p.dilation[0];
            int32_t v = column * p.stride[1] - p.before[1] + (int32_t)(t - r * p.s.d) * p.dilation[1];
            bool inside = h >= 0 && v >= 0 && h < p.in[0] && v < p.in[1];
            int64_t at = image + h * p.x_h + v * p.x_w;
            for (uint32_t c = 0; c < p.depth; c++, w += 4) {
                uint32_t a = pad;
                if (inside) {
                    int64_t k = at + channel(p.x_per_block, p.x_block, p.x_c, first + c);
                    a = p.words ? ((const uint32_t *)p.x)[k] : ((const uint8_t *)p.x)[k];
                }
                for (uint32_t e = 0; e < 4; e++) sum[e] = rl_dot4((int32_t)(a ^ p.flip), w[e], sum[e]);
            }
        }
    }

    RL_MEMBER int32_t finish(const Params &p, int32_t sum, uint32_t output) {
        if (p.bias) {
            uint32_t by = p.x_zero ? (uint32_t)(int32_t)(int8_t)(*p.x_zero ^ p.flip) : 1;
            sum = (int32_t)((uint32_t)sum + by * (uint32_t)((const int32_t *)p.bias)[output]);
        }
        if (p.wide) return sum;
        float y = rintf((float)sum * (p.scale ? ((const float *)p.scale)[output] : 1.0f)) + (float)p.zero;
        return y < (float)p.least ? p.least : y > (float)p.most ? p.most : (int32_t)y;
    }

    RL_STEP(rl_p_dp4a) {
        RL_EACH(k, p) {
            int64_t at[4];
            int32_t sum[4] = {0, 0, 0, 0};
            rl_walk_at(&p.walk, k, 4, at);
            uint32_t quad = (uint32_t)at[3], g = rl_divide(quad, p.quads), o = (quad - g * p.quads.d) * 4, word = 0;
            sum_up(p, at[1], (int32_t)(at[2] >> 32), (int32_t)(at[2] & 0xffffffff), quad, sum);
            for (uint32_t e = 0; e < 4 && o + e < p.per_group; e++) {
                int32_t y = finish(p, sum[e], 4 * quad + e);
                int64_t to = at[0] + channel(p.y_per_block, p.y_block, p.y_c, g * p.per_group + o + e);
                if (p.wide) ((int32_t *)p.y)[to] = y;
                else if (!p.packs) ((uint8_t *)p.y)[to] = (uint8_t)y;
                else word |= (uint32_t)(uint8_t)y << 8 * e;
            }
            if (p.packs) *(uint32_t *)((uint8_t *)p.y + at[0] + channel(p.y_per_block, p.y_block, p.y_c, g * p.per_group + o)) = word;
        }
    }
};

#endif
