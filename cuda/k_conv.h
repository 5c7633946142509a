/* Convolutions' kernels, C++ for the host and the device.
 *
 *   conv<T>        any strides, an output per thread, also transposed and by groups: what stands in where cuDNN does not
 *   depthwise<T>   each channel by itself, channels-last, with all that follows: instead of cuDNN, which has little for it; depthwise_rows of few places
 *   posts<T>       activations and sums after a convolution, or of element-wise ops alone, in one pass */
#ifndef RL_CUDA_K_CONV_H
#define RL_CUDA_K_CONV_H
#include <math.h>

#include "../runtime/rows.h"
#include "k_move.h"

template <class T> struct rl_conv {
    typedef rl_p_conv Params;
    typedef rl_nothing Shared, Local;
    typedef typename rl_computed<T>::type C;
    struct Place { int32_t at[RL_MOST_SPATIAL]; };

    /* The input's place of tap t for this output; false: none. */
    RL_MEMBER bool reach(const Params &p, const Place &o, const int32_t *t, int64_t *x) {
        *x = 0;
        for (uint32_t i = 0; i < p.r; i++) {
            int32_t k = p.transposed ? o.at[i] + p.before[i] - t[i] * p.dilation[i] : o.at[i] * p.stride[i] - p.before[i] + t[i] * p.dilation[i];
            if (p.transposed && k % p.stride[i]) return false;
            if (p.transposed) k /= p.stride[i];
            if (k < 0 || k >= p.in[i]) return false;
            *x += k * p.x_step[i];
        }
        return true;
    }

    RL_MEMBER C sum(const Params &p, const T *x, const T *w, const Place &o) {
        C a = 0;
        int32_t t[RL_MOST_SPATIAL] = {0};
        for (;;) {
            int64_t at, wat = 0;
            for (uint32_t i = 0; i < p.r; i++) wat += t[i] * p.w_step[i];
            if (reach(p, o, t, &at))
                for (uint32_t c = 0; c < p.cin; c++) a += (C)rl_load(x[at + c * p.x_c]) * (C)rl_load(w[wat + c * p.w_i]);
            uint32_t i = p.r;
            while (i && ++t[i - 1] == p.kernel[i - 1]) t[--i] = 0;
            if (!i) return a;
        }
    }

    RL_STEP(rl_p_conv) {
        RL_EACH(k, p) {
            Place o;
            uint32_t left = k;
            int64_t to = 0;
            for (uint32_t i = p.r; i-- > 0;) {
                uint32_t q = rl_divide(left, p.out[i]);
                o.at[i] = (int32_t)(left - q * p.out[i].d);
                to += o.at[i] * p.y_step[i];
                left = q;
            }
            uint32_t n = rl_divide(left, p.channels), c = left - n * p.channels.d, g = rl_divide(c, p.per_group);
            const T *x = (const T *)p.x + n * p.x_n + (int64_t)g * p.cin * p.x_c;
            /* transposed: the weights are [channels in, channels out of a group, ...] */
            const T *w = (const T *)p.w + (p.transposed ? (int64_t)g * p.cin * p.w_i + (c - g * p.per_group.d) * p.w_o : c * p.w_o);
            C y = sum(p, x, w, o);
            if (p.bias) y += (C)rl_load(((const T *)p.bias)[c]);
            rl_store((T *)p.y + n * p.y_n + c * p.y_c + to, y);
        }
    }
};

/* y = op(y, w) for N numbers: as the CPU's rows (runtime/rows.inc) have it; those that may follow a convolution. */
#define RL_POST_EACH(made)                                                                                           \
    RL_UNROLL                                                                                                        \
    for (uint32_t i = 0; i < N; i++) {                                                                               \
        const C v = y[i];                                                                                            \
        y[i] = made;                                                                                                 \
    }                                                                                                                \
    return;
template <uint32_t N, class C> RL_HD void rl_post_each(const rl_p_post &o, C (&y)[N], const C (&w)[N]) {
    const C p = (C)o.p, q = (C)o.q;
    switch (o.op) {
    case RL_ROW_RELU: RL_POST_EACH(v < 0 ? (C)0 : v)
    case RL_ROW_LEAKY_RELU: RL_POST_EACH(v < 0 ? p * v : v)
    case RL_ROW_CLIP: RL_POST_EACH((v < p ? p : v) > q ? q : v < p ? p : v)
    case RL_ROW_SIGMOID: RL_POST_EACH(1 / (1 + (C)exp(-v)))
    case RL_ROW_SILU: RL_POST_EACH(v / (1 + (C)exp(-p * v)))
    case RL_ROW_HARD_SIGMOID: RL_POST_EACH(p * v + q < 0 ? (C)0 : p * v + q > 1 ? (C)1 : p * v + q)
    case RL_ROW_HARD_SWISH: RL_POST_EACH(v * (v < -3 ? (C)0 : v > 3 ? (C)1 : v * (C)(1.0 / 6) + (C)0.5))
    case RL_ROW_TANH: RL_POST_EACH((C)tanh(v))
    case RL_ROW_GELU: RL_POST_EACH((C)0.5 * v * (1 + (C)erf(v * (C)0.70710678118654752)))
    case RL_ROW_GELU_TANH: RL_POST_EACH((C)0.5 * v * (1 + (C)tanh((C)0.7978845608028654 * (v + (C)0.044715 * v * v * v))))
    case RL_ROW_ELU: RL_POST_EACH(v < 0 ? p * ((C)exp(v) - 1) : v)
    case RL_ROW_LINEAR: RL_POST_EACH(p * v + q)
    case RL_ROW_MUL: RL_POST_EACH(v * w[i])
    default: RL_POST_EACH(v + w[i]) /* RL_ROW_ADD */
    }
}
/* All of them. COPY: y = w. */
template <uint32_t N, class C> RL_HD void rl_row_each(const rl_p_post &o, C (&y)[N], const C (&w)[N]) {
    switch (o.op) {
    case RL_ROW_COPY: RL_POST_EACH((void(v), w[i]))
    case RL_ROW_ERF: RL_POST_EACH((C)erf(v))
    case RL_ROW_EXP: RL_POST_EACH((C)exp(v))
    case RL_ROW_CELU: RL_POST_EACH(v < 0 ? (C)o.p * ((C)exp(v / (C)o.p) - 1) : v)
    case RL_ROW_SELU: RL_POST_EACH((C)o.q * (v < 0 ? (C)o.p * ((C)exp(v) - 1) : v))
    case RL_ROW_THRESHOLD: RL_POST_EACH(v > (C)o.p ? v : (C)0)
    case RL_ROW_SOFTSIGN: RL_POST_EACH(v / (1 + (C)fabs(v)))
    case RL_ROW_MISH: RL_POST_EACH(v * (C)tanh((v > 0 ? v : (C)0) + (C)log1p(exp(-fabs(v)))))
    case RL_ROW_SIN: RL_POST_EACH((C)sin(v))
    case RL_ROW_COS: RL_POST_EACH((C)cos(v))
    case RL_ROW_ASIN: RL_POST_EACH((C)asin(v))
    case RL_ROW_ACOS: RL_POST_EACH((C)acos(v))
    case RL_ROW_ATAN: RL_POST_EACH((C)atan(v))
    case RL_ROW_SQRT: RL_POST_EACH((C)sqrt(v))
    case RL_ROW_ABS: RL_POST_EACH((C)fabs(v))
    case RL_ROW_NEG: RL_POST_EACH(-v)
    case RL_ROW_SIGN: RL_POST_EACH(v > 0 ? (C)1 : v < 0 ? (C)-1 : v)
    case RL_ROW_RECIPROCAL: RL_POST_EACH(1 / v)
    case RL_ROW_SQUARE: RL_POST_EACH(v * v)
    case RL_ROW_CUBE: RL_POST_EACH(v * v * v)
    case RL_ROW_ROUND: RL_POST_EACH((C)rint(v / (C)o.p))
    case RL_ROW_FLOOR: RL_POST_EACH((C)floor(v))
    case RL_ROW_CEIL: RL_POST_EACH((C)ceil(v))
    case RL_ROW_SUB: RL_POST_EACH(v - w[i])
    case RL_ROW_DIV: RL_POST_EACH(v / w[i])
    case RL_ROW_MAX: RL_POST_EACH(v != v ? v : w[i] != w[i] ? w[i] : v < w[i] ? w[i] : v)
    case RL_ROW_MIN: RL_POST_EACH(v != v ? v : w[i] != w[i] ? w[i] : v > w[i] ? w[i] : v)
    case RL_ROW_RSUB: RL_POST_EACH(w[i] - v)
    case RL_ROW_RDIV: RL_POST_EACH(w[i] / v)
    case RL_ROW_PRELU: RL_POST_EACH(v < 0 ? v * w[i] : v)
    default: rl_post_each<N, C>(o, y, w);
    }
}
#undef RL_POST_EACH

/* The places' columns of one tap are those of another tap further on, moved by one place: with a dilation of 1 of the tap that is a stride further.  So a
 * row of the window goes by `phases`, each beginning with the columns of one tap and going on by `jump` taps and one column:
 *
 *   window of 3, stride 2, columns of 4 places:   tap 0: 0 2 4 6   tap 2: 2 4 6 8   (jump 2)   tap 1: 1 3 5 7 */
template <class T> struct rl_channels {
    typedef rl_p_depthwise Params;
    typedef rl_nothing Local;
    typedef typename rl_computed<T>::type C;
    enum { WIDE = RL_DEPTHWISE_CHANNELS, PLACES = RL_DEPTHWISE_PLACES };
    typedef rl_bunch<T, WIDE> Bunch;

    typedef typename Bunch::Word Word;

    RL_MEMBER Word word(const T *from) { return *(const Word *)from; }
    RL_MEMBER void widen(C (&to)[WIDE], const Word &x) {
        Bunch b;
        b.all = x;
        RL_UNROLL
        for (uint32_t e = 0; e < WIDE; e++) to[e] = rl_load(b.each[e]);
    }

    /* What lies at x[at], column k; zeros around the row. */
    RL_MEMBER Word column(const Params &p, int32_t at, int32_t k, bool wanted) {
        Word found = {};
        if (wanted && (uint32_t)k < (uint32_t)p.in[1]) found = word((const T *)p.x + at);
        return found;
    }

    /* From column k, at x[at], and the weights at w on. The next column is under way, as words, while these are multiplied; the oldest column is overwritten, so
     * that none has to be moved. */
    RL_MEMBER void add_phase(const Params &p, int32_t at, int32_t w, int32_t k, int32_t tap, C (&sum)[PLACES][WIDE]) {
        C own[PLACES][WIDE], by[WIDE];
        Word first[PLACES];
        widen(by, word((const T *)p.w + w));
        RL_UNROLL
        for (uint32_t j = 0; j < PLACES; j++, k += p.stride[1], at += p.x_step) first[j] = column(p, at, k, true);
        RL_UNROLL
        for (uint32_t j = 0; j < PLACES; j++) widen(own[j], first[j]);
        for (;;) {
            RL_UNROLL
            for (uint32_t u = 0; u < PLACES; u++) {
                tap += p.jump;
                bool more = tap < p.kernel[1];
                Word next = column(p, at, k, more);
                RL_UNROLL
                for (uint32_t j = 0; j < PLACES; j++) {
                    RL_UNROLL
                    for (uint32_t e = 0; e < WIDE; e++) sum[j][e] += own[(u + j) % PLACES][e] * by[e];
                }
                if (!more) return;
                k += p.stride[1], at += p.x_step, w += p.w_step;
                widen(own[u], next);
                widen(by, word((const T *)p.w + w));
            }
        }
    }

    RL_MEMBER void finish(const Params &p, C (&y)[WIDE], uint32_t at) {
        C w[WIDE] = {0};
        Bunch made;
        RL_ROLLED
        for (uint32_t i = 0; i < p.npost; i++) {
            uint32_t o = p.post[i].operand;
            if (o) widen(w, word((const T *)p.operand[o] + at));
            rl_post_each<WIDE, C>(p.post[i], y, w);
        }
        RL_UNROLL
        for (uint32_t e = 0; e < WIDE; e++) rl_store(&made.each[e], y[e]);
        made.put((T *)p.y + at);
    }

    /* The first of the places; none: past an end. */
    struct Place { uint32_t channel, column, row; int32_t image; bool is; };
    RL_MEMBER Place place_of(const Params &p, uint32_t number) {
        int64_t at[4];
        rl_walk_at(&p.walk, number, 4, at);
        Place t = {(uint32_t)at[0] * WIDE, (uint32_t)at[1], (uint32_t)at[2], (int32_t)at[3], false};
        t.is = number < p.count && t.channel < p.channels && t.column < p.out[1] && t.row < p.out[0];
        return t;
    }
    RL_MEMBER uint32_t output(const Params &p, const Place &t) { return (uint32_t)t.image * p.y_n + t.row * p.y_step[0] + t.column * p.y_step[1] + t.channel; }

    /* Rows first, first + by ... of the window. */
    RL_MEMBER void add_rows(const Params &p, const Place &t, int32_t first, int32_t by, C (&sum)[PLACES][WIDE]) {
        RL_ROLLED
        for (int32_t r = first; r < p.kernel[0]; r += by) {
            int32_t h = (int32_t)t.row * p.stride[0] - p.before[0] + r * p.dilation[0];
            if ((uint32_t)h >= (uint32_t)p.in[0]) continue;
            RL_ROLLED
            for (int32_t tap = 0; tap < p.phases; tap++) {
                int32_t k = (int32_t)t.column * p.stride[1] - p.before[1] + tap * p.dilation[1];
                int32_t w = (r * p.kernel[1] + tap) * (int32_t)p.channels + (int32_t)t.channel;
                add_phase(p, ((t.image * p.in[0] + h) * p.in[1] + k) * (int32_t)p.channels + (int32_t)t.channel, w, k, tap, sum);
            }
        }
    }
};

template <class T> struct rl_depthwise : rl_channels<T> {
    typedef rl_nothing Shared, Local;
    typedef rl_channels<T> K;
    typedef typename K::C C;
    RL_STEP(rl_p_depthwise) {
        typename K::Place t = K::place_of(p, block * RL_THREADS + thread);
        if (!t.is) return;
        C sum[K::PLACES][K::WIDE] = {};
        if (p.bias) {
            RL_UNROLL
            for (uint32_t j = 0; j < K::PLACES; j++) K::widen(sum[j], K::word((const T *)p.bias + t.channel));
        }
        K::add_rows(p, t, 0, 1, sum);
        uint32_t to = K::output(p, t);
        RL_ROLLED
        for (uint32_t j = 0; j < K::PLACES && t.column + j < p.out[1]; j++, to += p.y_step[1]) {
            K::finish(p, sum[0], to);
            RL_UNROLL
            for (uint32_t i = 0; i + 1 < K::PLACES; i++) { /* what is indexed lies in memory: the next one becomes the first */
                RL_UNROLL
                for (uint32_t e = 0; e < K::WIDE; e++) sum[i][e] = sum[i + 1][e];
            }
        }
    }
};

/* Of few places: threads share the rows of a window, so that one does not wait for row after row; then each has its part of the places. */
template <class T> struct rl_depthwise_rows : rl_channels<T> {
    typedef rl_channels<T> K;
    typedef typename K::C C;
    typedef rl_p_depthwise Params;
    typedef rl_nothing Local;
    struct Shared { C part[K::PLACES][K::WIDE][RL_THREADS]; };
    RL_MEMBER uint32_t steps(const Params &) { return 2; }
    RL_MEMBER void step(uint32_t phase, const Params &p, Shared &s, Local &, uint32_t block, uint32_t thread) {
        const uint32_t each = RL_THREADS / p.shared, mine = thread / each, lane = thread % each;
        typename K::Place t = K::place_of(p, block * each + lane);
        if (!t.is) return;
        if (phase == 0) {
            C sum[K::PLACES][K::WIDE] = {};
            K::add_rows(p, t, (int32_t)mine, (int32_t)p.shared, sum);
            RL_UNROLL
            for (uint32_t j = 0; j < K::PLACES; j++) {
                RL_UNROLL
                for (uint32_t e = 0; e < K::WIDE; e++) s.part[j][e][thread] = sum[j][e];
            }
            return;
        }
        RL_ROLLED
        for (uint32_t j = mine; j < K::PLACES && t.column + j < p.out[1]; j += p.shared) {
            C y[K::WIDE] = {0};
            if (p.bias) K::widen(y, K::word((const T *)p.bias + t.channel));
            for (uint32_t k = lane; k < RL_THREADS; k += each) {
                RL_UNROLL
                for (uint32_t e = 0; e < K::WIDE; e++) y[e] += s.part[j][e][k];
            }
            K::finish(p, y, K::output(p, t) + j * p.y_step[1]);
        }
    }
};

template <class T> struct rl_posts {
    typedef rl_p_posts Params;
    typedef rl_nothing Shared, Local;
    typedef typename rl_computed<T>::type C;

    /* One op after the other, each with its operand; an array that is indexed would lie in memory. */
    RL_MEMBER C all(const Params &p, C y, const C (&in)[RL_OPERANDS - 1]) {
        C made[1] = {y};
        for (uint32_t i = 0; i < p.npost; i++) {
            uint32_t o = p.post[i].operand;
            const C w[1] = {o == 3 ? in[2] : o == 2 ? in[1] : in[0]};
            rl_row_each<1, C>(p.post[i], made, w);
        }
        return made[0];
    }

    RL_MEMBER void wide(const Params &p, uint32_t number) {
        constexpr uint32_t WIDE = rl_vector<T>::WIDE;
        int64_t at[RL_OPERANDS];
        uint32_t n = rl_vector<T>::left(number, p.count);
        rl_vector<T> y, in[RL_OPERANDS - 1];
        C v[WIDE], w[WIDE];
        if (!n) return;
        rl_walk_at(&p.w, number, RL_OPERANDS, at);
        y.clear();
        if (p.in[0]) y.fetch((const T *)p.in[0] + at[0], false, n);
        RL_UNROLL
        for (uint32_t o = 1; o < RL_OPERANDS; o++) {
            in[o - 1].clear();
            if (p.in[o]) in[o - 1].fetch((const T *)p.in[o] + at[o], p.one[o], n);
        }
        RL_UNROLL
        for (uint32_t e = 0; e < WIDE; e++) v[e] = rl_load(y.each[e]);
        RL_ROLLED
        for (uint32_t i = 0; i < p.npost; i++) {
            uint32_t o = p.post[i].operand;
            RL_UNROLL
            for (uint32_t e = 0; e < WIDE; e++) w[e] = rl_load(o == 3 ? in[2].each[e] : o == 2 ? in[1].each[e] : in[0].each[e]);
            rl_row_each<WIDE, C>(p.post[i], v, w);
        }
        RL_UNROLL
        for (uint32_t e = 0; e < WIDE; e++) rl_store(&y.each[e], v[e]);
        y.put((T *)p.to + at[0], n);
    }

    RL_STEP(rl_p_posts) {
        if (p.wide) {
            wide(p, block * RL_THREADS + thread);
            return;
        }
        RL_EACH(k, p) {
            int64_t at[RL_OPERANDS];
            rl_walk_at(&p.w, k, RL_OPERANDS, at);
            C in[RL_OPERANDS - 1];
            RL_UNROLL
            for (uint32_t o = 1; o < RL_OPERANDS; o++) in[o - 1] = p.in[o] ? (C)rl_load(((const T *)p.in[o])[at[o]]) : (C)0;
            rl_store((T *)p.to + at[0], all(p, p.in[0] ? (C)rl_load(((const T *)p.in[0])[at[0]]) : (C)0, in));
        }
    }
};

#endif
