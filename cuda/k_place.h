/* Element by element by where an element stands, C++ for the host and the device (k_move.h says how kernels are written).
 *
 *   triangle<V>  Trilu, one_hot<V>  OneHot, by size of the element      rotary<T>  RotaryEmbedding, a pair per number
 *   grid<T>      GridSample: four channels of a place per thread, whose taps are found once for them */
#ifndef RL_CUDA_K_PLACE_H
#define RL_CUDA_K_PLACE_H
#include "k_move.h"

template <class V> struct rl_triangle {
    typedef rl_p_triangle Params;
    typedef rl_nothing Shared, Local;
    RL_STEP(rl_p_triangle) {
        RL_EACH(k, p) {
            int64_t at[3];
            V v;
            rl_walk_at(&p.w, k, 3, at);
            memset(&v, 0, sizeof v);
            if (p.upper ? at[2] >= p.diagonal : at[2] <= p.diagonal) v = ((const V *)p.from)[at[1]];
            ((V *)p.to)[at[0]] = v;
        }
    }
};

template <class V> struct rl_one_hot {
    typedef rl_p_one_hot Params;
    typedef rl_nothing Shared, Local;
    RL_STEP(rl_p_one_hot) {
        RL_EACH(k, p) {
            int64_t at[3];
            rl_walk_at(&p.w, k, 3, at);
            int64_t i = p.wide ? ((const int64_t *)p.index)[at[1]] : ((const int32_t *)p.index)[at[1]];
            ((V *)p.to)[at[0]] = ((const V *)p.values)[(i < 0 ? i + p.depth : i) == at[2]];
        }
    }
};

template <class T> struct rl_rotary {
    typedef rl_p_rotary Params;
    typedef rl_nothing Shared, Local;
    typedef typename rl_computed<T>::type C;
    RL_STEP(rl_p_rotary) {
        RL_EACH(k, p) {
            int64_t at[4];
            rl_walk_at(&p.w, k, 4, at);
            int64_t place = at[2];
            if (p.position) {
                int64_t row = p.position[at[3]];
                place = row >= -p.places && row < p.places ? place + row * p.half : -1;
            }
            if (place < 0 || place >= p.places) {
                *p.wrong = p.node;
                continue;
            }
            C cosine = rl_load(((const T *)p.cosine)[place]), sine = rl_load(((const T *)p.sine)[place]);
            C a = rl_load(((const T *)p.from)[at[1]]), b = rl_load(((const T *)p.from)[at[1] + p.from_pair]);
            rl_store((T *)p.to + at[0], cosine * a - sine * b);
            rl_store((T *)p.to + at[0] + p.to_pair, sine * a + cosine * b);
        }
    }
};

/* First each thread's taps, in f64 as the CPU has them: which element, or -1, and its weight; then what they make. */
template <class T> struct rl_grid {
    typedef rl_p_grid Params;
    typedef rl_nothing Local;
    typedef typename rl_computed<T>::type C;
    enum { AXES = RL_MOST_SPATIAL, EACH = RL_GRID_CHANNELS, MOST = 4 };
    struct Shared { int32_t at[AXES * MOST][RL_THREADS]; C weight[AXES * MOST][RL_THREADS]; };

    RL_MEMBER uint32_t steps(const Params &) { return 2; }
    RL_MEMBER uint32_t taps(const Params &p, uint32_t axis) { return axis + p.r >= AXES ? p.mode.ntap : 1; }

    /* The grid names the last axis first. */
    RL_MEMBER void find(const Params &p, Shared &s, int64_t point, uint32_t thread) {
        RL_ROLLED
        for (uint32_t axis = 0; axis < AXES; axis++) {
            s.at[axis * MOST][thread] = 0, s.weight[axis * MOST][thread] = 1;
            if (axis + p.r < AXES) continue;
            int64_t k = point + AXES - 1 - axis;
            rl_grid_place q = rl_grid_at(&p.mode, p.wide ? ((const double *)p.grid)[k] : (double)((const float *)p.grid)[k], p.in[axis]);
            RL_ROLLED
            for (uint32_t t = 0; t < p.mode.ntap; t++) {
                s.at[axis * MOST + t][thread] = (int32_t)rl_grid_index(&p.mode, q.base, t, p.in[axis]);
                s.weight[axis * MOST + t][thread] = (C)rl_grid_weight(&p.mode, q.share, t);
            }
        }
    }

    /* Adds the tap's step, and makes the weight its factor; false: it lies outside. */
    RL_MEMBER bool tap(const Params &p, const Shared &s, uint32_t axis, uint32_t t, uint32_t thread, int64_t *at, C *weight) {
        int32_t i = s.at[axis * MOST + t][thread];
        *at += i * p.step[axis], *weight *= s.weight[axis * MOST + t][thread];
        return i >= 0;
    }

    RL_MEMBER void add(const Params &p, const T *x, uint32_t n, C weight, C (&sum)[EACH]) {
        RL_UNROLL
        for (uint32_t e = 0; e < EACH; e++)
            if (e < n) sum[e] += weight * rl_load(x[e * p.from_c]);
    }

    RL_MEMBER void sum_up(const Params &p, const Shared &s, int64_t image, uint32_t n, uint32_t thread, C (&sum)[EACH]) {
        RL_ROLLED
        for (uint32_t i = 0; i < taps(p, 0); i++) {
            int64_t x0 = image;
            C w0 = 1;
            if (!tap(p, s, 0, i, thread, &x0, &w0)) continue;
            RL_ROLLED
            for (uint32_t j = 0; j < taps(p, 1); j++) {
                int64_t x1 = x0;
                C w1 = w0;
                if (!tap(p, s, 1, j, thread, &x1, &w1)) continue;
                for (uint32_t k = 0; k < taps(p, 2); k++) {
                    int64_t x2 = x1;
                    C w2 = w1;
                    if (tap(p, s, 2, k, thread, &x2, &w2)) add(p, (const T *)p.from + x2, n, w2, sum);
                }
            }
        }
    }

    RL_MEMBER void step(uint32_t phase, const Params &p, Shared &s, Local &, uint32_t block, uint32_t thread) {
        uint32_t number = block * RL_THREADS + thread;
        int64_t at[4];
        C sum[EACH] = {};
        if (number >= p.count) return;
        rl_walk_at(&p.w, number, 4, at);
        if (phase == 0) {
            find(p, s, at[2], thread);
            return;
        }
        uint32_t n = p.channels - (uint32_t)at[3];
        sum_up(p, s, at[1], n, thread, sum);
        RL_UNROLL
        for (uint32_t e = 0; e < EACH; e++)
            if (e < n) rl_store((T *)p.to + at[0] + e * p.to_c, sum[e]);
    }
};

#endif
