/* Along an axis, C++ for the host and the device (k_move.h says how kernels are written).
 *
 *   scan<T>    CumSum, CumProd: a team of 1, 32 or 256 threads per line; a lane adds up its share, then what lies before it, then goes through its share
 *   topk       a block sorts RL_TOPK_SLOTS elements, of one part of a line or of several lines, in shared memory (bitonic: Batcher 1968), and keeps the
 *              best; of longer lines those of all parts are sorted again.  Of equal elements the first is better, a NaN is larger than all */
#ifndef RL_CUDA_K_AXIS_H
#define RL_CUDA_K_AXIS_H
#include "k_recode.h"
#include "k_reduce.h"

/* ---- scan ---- */

template <class T> struct rl_scan_sum { typedef uint64_t type; }; /* of integers: wraps */
template <> struct rl_scan_sum<float> { typedef double type; };
template <> struct rl_scan_sum<double> { typedef double type; };

template <class T> struct rl_scan {
    typedef rl_p_scan Params;
    typedef typename rl_scan_sum<typename rl_computed<T>::type>::type A;
    struct Shared { A cell[RL_CELLS]; };
    typedef rl_nothing Local;

    RL_MEMBER uint32_t steps(const Params &p) { return p.lanes == 1 ? 1 : 2; }
    RL_MEMBER A join(const Params &p, A a, A b) { return p.multiplies ? a * b : a + b; }
    RL_MEMBER uint32_t place(const Params &p, uint32_t k) { return p.reverse ? p.n - 1 - k : k; }
    RL_MEMBER A load(const Params &p, const T *x, uint32_t k) { return (A)rl_load(x[place(p, k) * p.from_step]); }

    RL_MEMBER A share(const Params &p, const T *x, uint32_t first, uint32_t end, A a) {
        for (uint32_t k = first; k < end; k++) a = join(p, a, load(p, x, k));
        return a;
    }

    RL_MEMBER void write(const Params &p, const T *x, T *y, uint32_t first, uint32_t end, A a) {
        for (uint32_t k = first; k < end; k++) {
            A before = a;
            a = join(p, a, load(p, x, k));
            rl_store(y + place(p, k) * p.to_step, p.exclusive ? before : a);
        }
    }

    RL_MEMBER void step(uint32_t phase, const Params &p, Shared &s, Local &, uint32_t block, uint32_t thread) {
        rl_seat seat = rl_seat_of(p.lanes, false, thread);
        uint32_t line = block * (RL_THREADS / p.lanes) + seat.team, first = seat.lane * p.share, end = first + p.share < p.n ? first + p.share : p.n;
        A a = p.multiplies ? (A)1 : (A)0, *cell = rl_team_cells(s.cell, p.lanes, seat.team);
        int64_t at[2];
        if (line >= p.count) return;
        rl_walk_at(&p.kept, line, 2, at);
        const T *x = (const T *)p.from + at[1];
        if (phase + 1 < steps(p)) {
            cell[seat.lane] = share(p, x, first, end, a);
            return;
        }
        for (uint32_t k = 0; k < seat.lane; k++) a = join(p, a, cell[k]);
        write(p, x, (T *)p.to + at[0], first, end, a);
    }
};

/* ---- topk ---- */

/* A number as a word: the larger, the larger; zeros of both signs are one, NaNs the largest. */
RL_HD uint64_t rl_ordered(rl_any a, bool is_signed) {
    const uint64_t top = (uint64_t)1 << 63;
    uint64_t b;
    if (!a.real) return is_signed ? (uint64_t)a.i ^ top : (uint64_t)a.i;
    if (a.f != a.f) return UINT64_MAX;
    double f = a.f + 0.0; /* -0 becomes 0 */
    memcpy(&b, &f, sizeof b);
    return b & top ? ~b : b | top;
}

RL_HD void rl_copy_element(void *to, int64_t i, const void *from, int64_t k, uint32_t size) {
    switch (size) {
    case 1: ((uint8_t *)to)[i] = ((const uint8_t *)from)[k]; break;
    case 2: ((uint16_t *)to)[i] = ((const uint16_t *)from)[k]; break;
    case 4: ((uint32_t *)to)[i] = ((const uint32_t *)from)[k]; break;
    default: ((uint64_t *)to)[i] = ((const uint64_t *)from)[k];
    }
}

/* What is to come first is small: a word, and, where words are equal, a number. Slots without an element are last. */
struct rl_topk {
    typedef rl_p_topk Params;
    struct Shared { uint64_t word[RL_TOPK_SLOTS]; uint32_t number[RL_TOPK_SLOTS]; };
    typedef rl_nothing Local;
    struct Place { uint32_t line, part, element; }; /* of a slot */

    RL_MEMBER uint32_t log_width(const Params &p) {
        uint32_t n = 0;
        while (1u << n < p.width) n++;
        return n;
    }
    RL_MEMBER uint32_t steps(const Params &p) {
        uint32_t n = log_width(p);
        return n * (n + 1) / 2 + 2;
    }

    RL_MEMBER Place place_of(const Params &p, uint32_t block, uint32_t slot) {
        uint32_t i = slot & (p.width - 1), unit = block * (RL_TOPK_SLOTS / p.width) + slot / p.width, line = rl_divide(unit, p.parts);
        Place q = {line, unit - line * p.parts.d, i};
        return q;
    }

    RL_MEMBER void load(const Params &p, Shared &s, uint32_t block, uint32_t slot) {
        Place q = place_of(p, block, slot);
        uint32_t k = q.part * p.width + q.element;
        uint64_t word = UINT64_MAX;
        uint32_t number = UINT32_MAX;
        if (q.line < p.count && k < p.n) {
            if (p.again) {
                word = p.best_before[(int64_t)q.line * p.n + k], number = p.number_before[(int64_t)q.line * p.n + k];
            } else {
                int64_t at[2];
                rl_walk_at(&p.kept, q.line, 2, at);
                word = rl_ordered(rl_any_load(p.from, at[1] + k * p.from_step, p.type), p.type != RL_TYPE_U64);
                if (p.largest) word = ~word;
                number = k;
            }
        }
        s.word[slot] = word, s.number[slot] = number;
    }

    RL_MEMBER void compare(const Params &p, Shared &s, uint32_t pair, uint32_t size, uint32_t apart) {
        uint32_t i = 2 * pair - (pair & (apart - 1)), k = i + apart;
        bool rises = size == p.width || !(i & size);
        bool after = s.word[i] > s.word[k] || (s.word[i] == s.word[k] && s.number[i] > s.number[k]);
        if (after != rises) return;
        uint64_t word = s.word[i];
        uint32_t number = s.number[i];
        s.word[i] = s.word[k], s.number[i] = s.number[k];
        s.word[k] = word, s.number[k] = number;
    }

    RL_MEMBER void store(const Params &p, const Shared &s, uint32_t block, uint32_t slot) {
        Place q = place_of(p, block, slot);
        int64_t at[3];
        if (q.line >= p.count || q.element >= p.k) return;
        if (p.partial) {
            int64_t to = ((int64_t)q.line * p.parts.d + q.part) * p.k + q.element;
            p.best[to] = s.word[slot], p.number[to] = s.number[slot];
            return;
        }
        rl_walk_at(&p.kept, q.line, 3, at);
        rl_copy_element(p.values, at[0] + q.element * p.values_step, p.from, at[1] + s.number[slot] * p.from_step, p.size);
        p.indices[at[2] + q.element * p.indices_step] = s.number[slot];
    }

    /* Step 1 + k of the sort: sorted runs of `size` from runs half as long, elements `apart` compared. */
    RL_MEMBER void step(uint32_t phase, const Params &p, Shared &s, Local &, uint32_t block, uint32_t thread) {
        uint32_t size = 2, apart, k = phase - 1, n = 1;
        if (phase == 0 || phase + 1 == steps(p)) {
            for (uint32_t slot = thread; slot < RL_TOPK_SLOTS; slot += RL_THREADS) {
                if (phase) store(p, s, block, slot);
                else load(p, s, block, slot);
            }
            return;
        }
        while (k >= n) k -= n, n++, size *= 2;
        apart = size / 2 >> k;
        for (uint32_t pair = thread; pair < RL_TOPK_SLOTS / 2; pair += RL_THREADS) compare(p, s, pair, size, apart);
    }
};

#endif
