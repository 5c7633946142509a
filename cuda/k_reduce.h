/* Sums over axes, and over lines, C++ for the host and the device.
 *
 * A block of RL_THREADS threads carries a sum each, in the type the CPU carries (double for floats, 64 bits for integers), and adds
 * them up as a tree in shared memory: 128 to 128, 64 to 64 ...  The order of a sum depends on the dims only.
 *
 *   reduce<T>     Reduce*: a block per output, or a thread per output where outputs are neighbours in memory and inputs are not
 *   rows<T>       Softmax, LogSoftmax; the normalizations: a block per line */
#ifndef RL_CUDA_K_REDUCE_H
#define RL_CUDA_K_REDUCE_H
#include <math.h>

#include "k_move.h"
#include "ops.h"

enum { RL_TREE = 8 }; /* steps until RL_THREADS sums are one */

template <class A> RL_HD A rl_reduce_none(uint32_t op, A lowest, A highest) {
    return op == RL_GPU_PROD ? (A)1 : op == RL_GPU_MAX ? lowest : op == RL_GPU_MIN ? highest : (A)0;
}

template <class A> RL_HD A rl_reduce_take(uint32_t op, A a, A v) {
    switch (op) {
    case RL_GPU_L1: return a + (v < (A)0 ? (A)0 - v : v);
    case RL_GPU_L2: case RL_GPU_SUM_SQUARE: return a + v * v;
    case RL_GPU_PROD: return a * v;
    case RL_GPU_MAX: return v > a || v != v ? v : a;
    case RL_GPU_MIN: return v < a || v != v ? v : a;
    default: return a + v;
    }
}

template <class A> RL_HD A rl_reduce_join(uint32_t op, A a, A b) {
    switch (op) {
    case RL_GPU_PROD: return a * b;
    case RL_GPU_MAX: return b > a || b != b ? b : a;
    case RL_GPU_MIN: return b < a || b != b ? b : a;
    default: return a + b;
    }
}

/* Half of the threads take what the other half has; after step RL_TREE cell 0 has it all. */
template <class A> RL_HD void rl_tree_step(uint32_t op, A *cell, uint32_t step, uint32_t thread) {
    uint32_t half = RL_THREADS >> step;
    if (thread < half) cell[thread] = rl_reduce_join(op, cell[thread], cell[thread + half]);
}

template <class A> struct rl_limits;
template <> struct rl_limits<double> {
    RL_MEMBER double low() { return -INFINITY; }
    RL_MEMBER double high() { return INFINITY; }
};
template <> struct rl_limits<int64_t> {
    RL_MEMBER int64_t low() { return INT64_MIN; }
    RL_MEMBER int64_t high() { return INT64_MAX; }
};
template <> struct rl_limits<uint64_t> {
    RL_MEMBER uint64_t low() { return 0; }
    RL_MEMBER uint64_t high() { return UINT64_MAX; }
};

RL_HD double rl_reduce_end(uint32_t op, double a, uint32_t n) {
    switch (op) {
    case RL_GPU_MEAN: return a / n;
    case RL_GPU_L2: return sqrt(a);
    case RL_GPU_LOG_SUM: return log(a);
    default: return a;
    }
}
RL_HD int64_t rl_reduce_end(uint32_t op, int64_t a, uint32_t n) { return op == RL_GPU_MEAN ? a / (int64_t)n : a; }
RL_HD uint64_t rl_reduce_end(uint32_t op, uint64_t a, uint32_t n) { return op == RL_GPU_MEAN ? a / n : a; }

template <class T> struct rl_reduce {
    typedef rl_p_reduce Params;
    typedef typename rl_summed<typename rl_computed<T>::type>::type S;
    typedef S A;
    struct Shared { A cell[RL_THREADS]; };
    typedef rl_nothing Local;

    RL_MEMBER uint32_t steps(const Params &p) { return p.by_thread ? 1 : RL_TREE + 2; }

    RL_MEMBER A gather(const Params &p, uint32_t out, uint32_t first, uint32_t by) {
        int64_t at[2], more[1];
        A a = rl_reduce_none<A>(p.op, rl_limits<A>::low(), rl_limits<A>::high());
        rl_walk_at(&p.kept, out, 2, at);
        const T *x = (const T *)p.from + at[1];
        for (uint32_t k = first; k < p.each; k += by) {
            rl_walk_at(&p.gone, k, 1, more);
            a = rl_reduce_take(p.op, a, (A)rl_load(x[more[0]]));
        }
        return a;
    }

    RL_MEMBER void finish(const Params &p, uint32_t out, A a) {
        int64_t at[2];
        rl_walk_at(&p.kept, out, 2, at);
        rl_store((T *)p.to + at[0], rl_reduce_end(p.op, a, p.each));
    }

    RL_MEMBER void step(uint32_t phase, const Params &p, Shared &s, Local &, uint32_t block, uint32_t thread) {
        if (p.by_thread) {
            uint32_t out = block * RL_THREADS + thread;
            if (out < p.count) finish(p, out, gather(p, out, 0, 1));
        } else if (phase == 0) s.cell[thread] = gather(p, block, thread, RL_THREADS);
        else if (phase <= RL_TREE) rl_tree_step(p.op, s.cell, phase, thread);
        else if (thread == 0) finish(p, block, s.cell[0]);
    }
};

/* Lines: the largest, the sum of powers, then each element; or mean, variance, each element. */
template <class T> struct rl_lines {
    typedef rl_p_rows Params;
    typedef typename rl_computed<T>::type C;
    struct Shared { double cell[RL_THREADS], first, second; };
    typedef rl_nothing Local;
    enum { PART = RL_TREE + 2 }; /* steps of one sum: each thread's, the tree, keeping it */

    RL_MEMBER uint32_t steps(const Params &) { return 2 * PART + 1; }
    RL_MEMBER bool is_norm(const Params &p) { return p.op >= RL_GPU_LAYER_NORM; }

    RL_MEMBER const T *line(const Params &p, uint32_t block, T **to) {
        int64_t at[2];
        rl_walk_at(&p.kept, block, 2, at);
        *to = (T *)p.to + at[0];
        return (const T *)p.from + at[1];
    }

    RL_MEMBER double first_sum(const Params &p, const T *x, uint32_t thread) {
        double a = is_norm(p) ? 0 : -INFINITY;
        for (uint32_t k = thread; k < p.n; k += RL_THREADS)
            a = rl_reduce_take(is_norm(p) ? RL_GPU_SUM : RL_GPU_MAX, a, (double)rl_load(x[k * p.from_step]));
        return a;
    }

    RL_MEMBER double second_sum(const Params &p, const T *x, uint32_t thread, double first) {
        double a = 0;
        for (uint32_t k = thread; k < p.n; k += RL_THREADS) {
            C v = rl_load(x[k * p.from_step]);
            if (is_norm(p)) a += ((double)v - first) * ((double)v - first);
            else a += (double)exp(v - (C)first);
        }
        return a;
    }

    RL_MEMBER void finish(const Params &p, const T *x, T *y, const Shared &s, uint32_t block, uint32_t thread) {
        C top = (C)s.first, less = (C)log(s.second), inverse = (C)(1 / sqrt(s.second / p.n + p.epsilon));
        const C *w = (const C *)p.scale + (uint64_t)(p.scale_rows ? block % p.scale_rows : 0) * rl_divide(p.n, p.each);
        const C *b = (const C *)p.bias + (uint64_t)(p.bias_rows ? block % p.bias_rows : 0) * rl_divide(p.n, p.each);
        for (uint32_t k = thread; k < p.n; k += RL_THREADS) {
            C v = rl_load(x[k * p.from_step]);
            if (p.op == RL_GPU_SOFTMAX) v = exp(v - top) / (C)s.second;
            else if (p.op == RL_GPU_LOG_SOFTMAX) v = v - top - less;
            else {
                uint32_t at = rl_divide(k, p.each);
                v = (v - top) * inverse * w[at];
                if (p.bias) v += b[at];
            }
            rl_store(y + k * p.to_step, v);
        }
        if (thread == 0 && p.mean) ((C *)p.mean)[block] = top;
        if (thread == 0 && p.inverse) ((C *)p.inverse)[block] = inverse;
    }

    RL_MEMBER void keep_first(const Params &p, Shared &s) {
        s.first = !is_norm(p) ? s.cell[0] : p.op == RL_GPU_RMS_NORM ? 0 : (double)(C)(s.cell[0] / p.n);
    }

    RL_MEMBER void step(uint32_t phase, const Params &p, Shared &s, Local &, uint32_t block, uint32_t thread) {
        T *y;
        const T *x = line(p, block, &y);
        uint32_t part = phase / PART, at = phase % PART;
        if (part == 2) finish(p, x, y, s, block, thread);
        else if (at == 0) s.cell[thread] = part ? second_sum(p, x, thread, s.first) : first_sum(p, x, thread);
        else if (at <= RL_TREE) rl_tree_step(part || is_norm(p) ? (uint32_t)RL_GPU_SUM : (uint32_t)RL_GPU_MAX, s.cell, at, thread);
        else if (thread == 0 && part) s.second = s.cell[0];
        else if (thread == 0) keep_first(p, s);
    }
};

#endif
