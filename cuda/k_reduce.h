/* Sums over axes, and over lines, C++ for the host and the device.
 *
 * What is added up to one number has a team of a block's threads, 1, 8, 32 or 256 of them (lanes).  A lane adds up its share, then the team does, in
 * shared memory: each of its first 8 (of 256: 16) lanes what the lanes that far apart have, and then whoever wants the sum those 8 (or 16).
 *
 *   32 lanes, 8 teams, `along`: threads 0 .. 31 are team 0, neighbours in memory of one sum      `across`: threads 0 .. 7 are lane 0 of teams 0 .. 7,
 *   neighbours in memory of eight sums
 *
 * The order of a sum depends on the dims only.
 *
 *   reduce<T>           Reduce*: a team per output; where outputs are few, several, and a second launch adds up what these have
 *   arg<T>              ArgMax, ArgMin: a team per output              log_sum_exp<T>   ReduceLogSumExp, in one pass
 *   range               DynamicQuantizeLinear's scale and zero point, likewise
 *   lines<T, L, EACH>   Softmax, LogSoftmax, the normalizations: a team of L lanes per line, which holds EACH elements per lane (0: reads it each time)
 *   lines<.., scores<T>>  the same softmax of what Attention does to its scores first
 *   moments_of<T>, parted<T>  normalizations of few lines that are long, by parts of a line: what a part comes to, then, in a second launch, its elements */
#ifndef RL_CUDA_K_REDUCE_H
#define RL_CUDA_K_REDUCE_H
#include <math.h>

#include "k_move.h"
#include "ops.h"

template <class A> RL_HD A rl_reduce_none(uint32_t op, A lowest, A highest) {
    return op == RL_GPU_PROD ? (A)1 : op == RL_GPU_MAX ? lowest : op == RL_GPU_MIN ? highest : (A)0;
}

template <class A> RL_HD A rl_reduce_take(uint32_t op, A a, A v) {
    switch (op) {
    case RL_GPU_L1: return a + (v < (A)0 ? (A)0 - v : v);
    case RL_GPU_L2: case RL_GPU_RMS: case RL_GPU_SUM_SQUARE: return a + v * v;
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

/* ---- teams ---- */

enum { RL_CELLS = 288 }; /* 32 teams of 8, 8 of 32, 1 of 256, each with one cell to spare, so that teams begin in other banks */
typedef struct { uint32_t team, lane; } rl_seat;
RL_HD rl_seat rl_seat_of(uint32_t lanes, bool across, uint32_t thread) {
    uint32_t teams = RL_THREADS / lanes;
    rl_seat s = {across ? thread % teams : thread / lanes, across ? thread / teams : thread % lanes};
    return s;
}

template <class A> RL_HD A *rl_team_cells(A *cell, uint32_t lanes, uint32_t team) { return cell + team * (lanes + 1); }
RL_HD uint32_t rl_team_half(uint32_t lanes) { return lanes > 32 ? 16 : 8; }

/* The step between a lane's own sum, in its cell, and rl_team_sum; eight cells are added up as they are. */
RL_HD bool rl_team_folds(uint32_t lanes) { return lanes > 8; }
template <class A> RL_HD void rl_team_fold(uint32_t op, A *cell, uint32_t lanes, uint32_t lane) {
    uint32_t half = rl_team_half(lanes);
    if (lane >= half) return;
    A a = cell[lane];
    for (uint32_t k = lane + half; k < lanes; k += half) a = rl_reduce_join(op, a, cell[k]);
    cell[lane] = a;
}

template <class A> RL_HD A rl_team_sum(uint32_t op, const A *cell, uint32_t lanes) {
    A a = cell[0];
    for (uint32_t k = 1; k < rl_team_half(lanes); k++) a = rl_reduce_join(op, a, cell[k]);
    return a;
}

/* ---- over axes ---- */

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
    case RL_GPU_RMS: return sqrt(a / n);
    case RL_GPU_LOG_SUM: return log(a);
    default: return a;
    }
}
RL_HD int64_t rl_reduce_end(uint32_t op, int64_t a, uint32_t n) { return op == RL_GPU_MEAN ? a / (int64_t)n : a; }
RL_HD uint64_t rl_reduce_end(uint32_t op, uint64_t a, uint32_t n) { return op == RL_GPU_MEAN ? a / n : a; }

/* What a reduction carries: numbers that are added up (or multiplied, or the largest of which is sought) ... */
template <class X> struct rl_sums {
    typedef X T;
    typedef typename rl_summed<typename rl_computed<T>::type>::type A;
    RL_MEMBER A none(uint32_t op) { return rl_reduce_none<A>(op, rl_limits<A>::low(), rl_limits<A>::high()); }
    RL_MEMBER A take(uint32_t op, A a, T x, uint32_t) { return rl_reduce_take(op, a, (A)rl_load(x)); }
    RL_MEMBER void store(const rl_p_reduce &p, int64_t to, A a) { rl_store((T *)p.to + to, rl_reduce_end(p.op, a, p.n)); }
};

/* ... or the largest or smallest one so far, and its number; a NaN is the extreme. */
template <class C> struct rl_best { C value; uint32_t number; };
template <class C> RL_HD rl_best<C> rl_reduce_join(uint32_t op, rl_best<C> a, rl_best<C> b) {
    bool nan = b.value != b.value, had = a.value != a.value, last = (op & RL_GPU_TIES_LAST) != 0;
    bool better = (op & ~(uint32_t)RL_GPU_TIES_LAST) == RL_GPU_MAX ? b.value > a.value : b.value < a.value;
    if (a.number == UINT32_MAX || b.number == UINT32_MAX) return b.number == UINT32_MAX ? a : b;
    if ((nan && had) || a.value == b.value) return (b.number > a.number) == last ? b : a;
    return nan || (better && !had) ? b : a;
}
template <class X> struct rl_bests {
    typedef X T;
    typedef rl_best<typename rl_computed<T>::type> A;
    RL_MEMBER A none(uint32_t) {
        A a = {0, UINT32_MAX};
        return a;
    }
    RL_MEMBER A take(uint32_t op, A a, T x, uint32_t number) {
        A b = {rl_load(x), number};
        return rl_reduce_join(op, a, b);
    }
    RL_MEMBER void store(const rl_p_reduce &p, int64_t to, A a) { ((int64_t *)p.to)[to] = a.number; }
};

/* ... or the sum of powers, as far as it goes beyond the power of the largest one so far. */
template <class C> struct rl_power_sum { C top; double sum; };
template <class C> RL_HD rl_power_sum<C> rl_reduce_join(uint32_t, rl_power_sum<C> a, rl_power_sum<C> b) {
    bool less = a.top < b.top;
    rl_power_sum<C> more = less ? b : a, other = less ? a : b;
    if (other.sum != 0) more.sum += other.top == more.top ? other.sum : other.sum * (double)exp(other.top - more.top);
    return more;
}
template <class X> struct rl_power_sums {
    typedef X T;
    typedef typename rl_computed<T>::type C;
    typedef rl_power_sum<C> A;
    RL_MEMBER A none(uint32_t) {
        A a = {-(C)INFINITY, 0};
        return a;
    }
    RL_MEMBER A take(uint32_t op, A a, T x, uint32_t) {
        A b = {rl_load(x), 1};
        if (b.top == -(C)INFINITY) return a;
        return rl_reduce_join(op, a, b);
    }
    RL_MEMBER void store(const rl_p_reduce &p, int64_t to, A a) { rl_store((T *)p.to + to, (C)((double)a.top + log(a.sum))); }
};

/* ... or the range of f32 numbers, 0 in it, of which DynamicQuantizeLinear makes its scale and zero point; what is no number is passed over. */
struct rl_range { float least, most; };
RL_HD rl_range rl_reduce_join(uint32_t, rl_range a, rl_range b) {
    rl_range both = {fminf(a.least, b.least), fmaxf(a.most, b.most)};
    return both;
}
struct rl_ranges {
    typedef float T;
    typedef rl_range A;
    RL_MEMBER A none(uint32_t) {
        A a = {0, 0};
        return a;
    }
    RL_MEMBER A take(uint32_t op, A a, T x, uint32_t) {
        A b = {x, x};
        return rl_reduce_join(op, a, b);
    }
    RL_MEMBER void store(const rl_p_reduce &p, int64_t to, A a) { ((uint8_t *)p.zero)[to] = rl_dynamic_scale(a.least, a.most, (float *)p.to + to); }
};

template <class OP> struct rl_reduces {
    typedef rl_p_reduce Params;
    typedef typename OP::T T;
    typedef typename OP::A A;
    struct Shared { A cell[RL_CELLS]; };
    typedef rl_nothing Local;
    enum { AHEAD = sizeof(A) > 8 ? 2 : 4 };

    RL_MEMBER uint32_t steps(const Params &p) { return p.lanes == 1 ? 1 : rl_team_folds(p.lanes) ? 3 : 2; }

    RL_MEMBER A take(uint32_t op, A a, T x, uint32_t number) { return OP::take(op, a, x, number); }
    RL_MEMBER A take_sum(uint32_t op, A a, A x, uint32_t) { return rl_reduce_join(op, a, x); }

    /* Elements first, first + lanes, ... before `end`; AHEAD loads are under way before the first of them is waited for. X: T, or A, sums of a launch before. */
    template <class X, A (*TAKE)(uint32_t, A, X, uint32_t)> RL_MEMBER A gather(const Params &p, const X *x, uint32_t first, uint32_t end) {
        A a = OP::none(p.op);
        for (uint32_t k = first; k < end; k += AHEAD * p.lanes) {
            X ahead[AHEAD];
            RL_UNROLL
            for (uint32_t e = 0; e < AHEAD; e++) {
                int64_t at[1];
                if (k + e * p.lanes >= end) continue;
                rl_walk_at(&p.gone, k + e * p.lanes, 1, at);
                ahead[e] = x[at[0]];
            }
            RL_UNROLL
            for (uint32_t e = 0; e < AHEAD; e++)
                if (k + e * p.lanes < end) a = TAKE(p.op, a, ahead[e], k + e * p.lanes);
        }
        return a;
    }

    RL_MEMBER A share(const Params &p, int64_t from, uint32_t part, uint32_t lane) {
        uint32_t begin = part * p.share, end = p.each - begin < p.share ? p.each : begin + p.share;
        if (p.again) return gather<A, take_sum>(p, (const A *)p.from + from, begin + lane, end);
        return gather<T, take>(p, (const T *)p.from + from, begin + lane, end);
    }

    RL_MEMBER void finish(const Params &p, uint32_t out, uint32_t part, int64_t to, A a) {
        if (p.partial) ((A *)p.to)[(int64_t)part * p.count + out] = a;
        else OP::store(p, to, a);
    }

    RL_MEMBER void step(uint32_t phase, const Params &p, Shared &s, Local &, uint32_t block, uint32_t thread) {
        rl_seat seat = rl_seat_of(p.lanes, p.across, thread);
        uint32_t part = rl_divide(block, p.blocks), out = (block - part * p.blocks.d) * (RL_THREADS / p.lanes) + seat.team;
        int64_t at[2];
        if (out >= p.count) return;
        rl_walk_at(&p.kept, out, 2, at);
        if (p.lanes == 1) {
            finish(p, out, part, at[0], share(p, at[1], part, 0));
            return;
        }
        A *cell = rl_team_cells(s.cell, p.lanes, seat.team);
        if (phase == 0) cell[seat.lane] = share(p, at[1], part, seat.lane);
        else if (phase == 1 && rl_team_folds(p.lanes)) rl_team_fold(p.op, cell, p.lanes, seat.lane);
        else if (seat.lane == 0) finish(p, out, part, at[0], rl_team_sum(p.op, cell, p.lanes));
    }
};
template <class T> using rl_reduce = rl_reduces<rl_sums<T>>;
template <class T> using rl_arg = rl_reduces<rl_bests<T>>;
template <class T> using rl_log_sum_exp = rl_reduces<rl_power_sums<T>>;
typedef rl_reduces<rl_ranges> rl_range_of_all;

/* ---- over lines ---- */

/* What a normalization does to a line's elements. */
template <class C> struct rl_norm { const C *scale, *bias; C inverse; };
/* squares: of the elements less the mean, added up */
template <class C> RL_HD rl_norm<C> rl_norm_of(const rl_p_rows &p, uint32_t line, double squares) {
    uint64_t each = rl_divide(p.n, p.each);
    rl_norm<C> o = {(const C *)p.scale + (p.scale_rows ? line % p.scale_rows : 0) * each, (const C *)p.bias + (p.bias_rows ? line % p.bias_rows : 0) * each,
                    (C)(1 / sqrt(squares / p.n + p.epsilon))};
    return o;
}
/* Of element k, less the mean. */
template <class C> RL_HD C rl_norm_each(const rl_p_rows &p, const rl_norm<C> &o, uint32_t k, C v) {
    uint32_t at = rl_divide(k, p.each);
    v = v * o.inverse * o.scale[at];
    return p.bias ? v + o.bias[at] : v;
}

/* What a line's sums are carried in: long ones in double. */
template <class C, uint32_t EACH> struct rl_line_sum { typedef C type; };
template <class C> struct rl_line_sum<C, 0> { typedef double type; };

/* A line's elements: as they lie ... */
template <class T> struct rl_plain {
    typedef typename rl_computed<T>::type C;
    enum { SCORES = 0, OPERANDS = 2 };
    struct Line { const T *x; };
    RL_MEMBER Line line(const rl_p_rows &p, uint32_t, const int64_t *at) {
        Line l = {(const T *)p.from + at[1]};
        return l;
    }
    RL_MEMBER C load(const rl_p_rows &p, const Line &l, uint32_t k) { return rl_load(l.x[k * p.from_step]); }
};

/* ... or as scores of attention. */
template <class T> struct rl_scores {
    typedef typename rl_computed<T>::type C;
    enum { SCORES = 1, OPERANDS = RL_OPERANDS }; /* softmax only */
    struct Line { int64_t x, by[RL_MOST_SCORE_OPS]; uint32_t from, to; };
    RL_MEMBER Line line(const rl_p_rows &p, uint32_t number, const int64_t *at) {
        const rl_p_scores &s = p.scores;
        uint32_t i = number - rl_divide(number, s.queries) * s.queries.d;
        int64_t from, to;
        rl_seen(&s.sight, s.valid ? s.valid + rl_divide(number, s.per_batch) : (const int64_t *)0, s.first + i, &from, &to);
        Line l = {at[1], {at[2], at[3]}, (uint32_t)from, (uint32_t)to};
        return l;
    }
    RL_MEMBER C apply(const rl_p_score_op &o, int64_t at, C v) {
        if (!o.of_bools) return v + (C)rl_load(((const T *)o.by)[at]);
        return (((const uint8_t *)o.by)[at] != 0) == (o.keep != 0) ? v : (C)o.other;
    }
    RL_MEMBER C load(const rl_p_rows &p, const Line &l, uint32_t k) {
        const rl_p_scores &s = p.scores;
        if (k < l.from || k >= l.to) return -(C)INFINITY;
        int64_t at = l.x + k * p.from_step;
        C v = s.narrow ? rl_load(((const T *)p.from)[at]) : ((const C *)p.from)[at], cap = (C)s.cap;
        if (cap > 0) v = cap * (C)tanh(v / cap);
        RL_UNROLL
        for (uint32_t i = 0; i < RL_MOST_SCORE_OPS; i++)
            if (i < s.nop) v = apply(s.op[i], l.by[i] + k * s.op[i].step, v);
        return v;
    }
};

/* The largest, the sum of powers, then each element; or mean, variance, each element. */
template <class T, uint32_t LANES, uint32_t EACH, class X = rl_plain<T>> struct rl_lines {
    typedef rl_p_rows Params;
    typedef typename rl_computed<T>::type C;
    typedef typename rl_line_sum<C, EACH>::type A;
    typedef typename X::Line Line;
    struct Shared { A first[RL_CELLS], second[RL_CELLS]; };
    struct Local { C x[EACH ? EACH : 1]; };

    RL_MEMBER uint32_t steps(const Params &) { return rl_team_folds(LANES) ? 5 : 3; }
    RL_MEMBER bool is_norm(const Params &p) { return !X::SCORES && p.op >= RL_GPU_LAYER_NORM; }
    RL_MEMBER uint32_t op_of_first(const Params &p) { return is_norm(p) ? RL_GPU_SUM : RL_GPU_MAX; }

#define RL_EACH_OF_LINE(e, k)                                                                                        \
    RL_UNROLL                                                                                                        \
    for (uint32_t e = 0, k = lane; EACH ? e < EACH : k < p.n; e++, k += LANES)                                       \
        if (k < p.n)

    RL_MEMBER A first_sum(const Params &p, Local &l, const Line &x, uint32_t lane) {
        A a = is_norm(p) ? (A)0 : -(A)INFINITY;
        if (EACH) {
            RL_EACH_OF_LINE(e, k) l.x[e] = X::load(p, x, k);
        }
        RL_EACH_OF_LINE(e, k) a = rl_reduce_take(op_of_first(p), a, EACH ? (A)l.x[e] : (A)X::load(p, x, k));
        return a;
    }

    /* Less the largest, or the mean: what is held is that from then on. */
    RL_MEMBER A second_sum(const Params &p, Local &l, const Line &x, uint32_t lane, C first) {
        A a = 0;
        RL_EACH_OF_LINE(e, k) {
            C v = (EACH ? l.x[e] : X::load(p, x, k)) - first;
            if (EACH) l.x[e] = v;
            a += is_norm(p) ? (A)v * (A)v : (A)exp(v);
        }
        return a;
    }

    RL_MEMBER void finish(const Params &p, const Local &l, const Line &x, T *y, uint32_t line, uint32_t lane, C first, A second) {
        C less = (C)log(second), whole = X::SCORES && p.scores.blind_is_zero && second == 0 ? (C)0 : (C)(1 / second);
        rl_norm<C> norm = rl_norm_of<C>(p, line, (double)second);
        RL_EACH_OF_LINE(e, k) {
            C v = EACH ? l.x[e] : X::load(p, x, k) - first;
            if (X::SCORES || p.op == RL_GPU_SOFTMAX) v = (C)exp(v) * whole;
            else if (p.op == RL_GPU_LOG_SOFTMAX) v = v - less;
            else v = rl_norm_each(p, norm, k, v);
            rl_store(y + k * p.to_step, v);
        }
    }
#undef RL_EACH_OF_LINE

    RL_MEMBER C first_of(const Params &p, const A *cell) {
        if (!X::SCORES && p.op == RL_GPU_RMS_NORM) return 0;
        A a = rl_team_sum(op_of_first(p), cell, LANES);
        if (X::SCORES && a == -(A)INFINITY) return 0;
        return (C)(is_norm(p) ? a / (A)p.n : a);
    }

    RL_MEMBER void step(uint32_t phase, const Params &p, Shared &s, Local &l, uint32_t block, uint32_t thread) {
        rl_seat seat = rl_seat_of(LANES, p.across, thread);
        uint32_t line = block * (RL_THREADS / LANES) + seat.team;
        A *first = rl_team_cells(s.first, LANES, seat.team), *second = rl_team_cells(s.second, LANES, seat.team);
        int64_t at[X::OPERANDS];
        if (line >= p.count) return;
        rl_walk_at(&p.kept, line, X::OPERANDS, at);
        Line x = X::line(p, line, at);
        if (!rl_team_folds(LANES)) phase *= 2;
        if (phase == 0) first[seat.lane] = first_sum(p, l, x, seat.lane);
        else if (phase == 1) rl_team_fold(op_of_first(p), first, LANES, seat.lane);
        else if (phase == 2) second[seat.lane] = second_sum(p, l, x, seat.lane, first_of(p, first));
        else if (phase == 3) rl_team_fold((uint32_t)RL_GPU_SUM, second, LANES, seat.lane);
        else finish(p, l, x, (T *)p.to + at[0], line, seat.lane, first_of(p, first), rl_team_sum((uint32_t)RL_GPU_SUM, second, LANES));
    }
};
template <class T> using rl_lines8 = rl_lines<T, 8, 8>;
template <class T> using rl_lines32 = rl_lines<T, 32, 8>;
template <class T> using rl_lines256 = rl_lines<T, 256, 8>;
template <class T> using rl_long_lines = rl_lines<T, 256, 0>;
template <class T> using rl_scores8 = rl_lines<T, 8, 8, rl_scores<T>>;
template <class T> using rl_scores32 = rl_lines<T, 32, 8, rl_scores<T>>;
template <class T> using rl_scores256 = rl_lines<T, 256, 8, rl_scores<T>>;
template <class T> using rl_long_scores = rl_lines<T, 256, 0, rl_scores<T>>;

/* ---- over parts of lines ---- */

/* RL_PIECE neighbours, or the last ones of a part: EACH of a lane, by 16 bytes (wide: then all that there are are whole vectors), or a block's width apart. */
template <class T> struct rl_held {
    typedef typename rl_computed<T>::type C;
    enum { EACH = RL_PIECE / RL_THREADS, WIDE = rl_vector<T>::WIDE };
    rl_vector<T> v[EACH / WIDE];

    /* Which of the neighbours a lane's i-th is. */
    static RL_INSIDE uint32_t place(bool wide, uint32_t lane, uint32_t i) {
        return wide ? (i / WIDE * RL_THREADS + lane) * WIDE + i % WIDE : i * RL_THREADS + lane;
    }
    RL_INSIDE C get(uint32_t i) const { return rl_load(v[i / WIDE].each[i % WIDE]); }
    RL_INSIDE void set(uint32_t i, C x) { rl_store(&v[i / WIDE].each[i % WIDE], x); }

    RL_INSIDE void fetch(const T *from, uint32_t n, bool wide, uint32_t lane) {
        RL_UNROLL
        for (uint32_t i = 0; i < EACH; i++) {
            uint32_t k = place(wide, lane, i);
            if (k >= n) continue;
            if (!wide) v[i / WIDE].each[i % WIDE] = from[k];
            else if (i % WIDE == 0) v[i / WIDE].all = *(const rl_wide16 *)(from + k);
        }
    }
    RL_INSIDE void put(T *to, uint32_t n, bool wide, uint32_t lane) const {
        RL_UNROLL
        for (uint32_t i = 0; i < EACH; i++) {
            uint32_t k = place(wide, lane, i);
            if (k >= n) continue;
            if (!wide) to[k] = v[i / WIDE].each[i % WIDE];
            else if (i % WIDE == 0) *(rl_wide16 *)(to + k) = v[i / WIDE].all;
        }
    }
};

struct rl_part { uint32_t number, line, begin, n; };
RL_HD uint32_t rl_part_begin(const rl_p_rows &p, uint32_t i) { return i * p.share; }
RL_HD uint32_t rl_part_size(const rl_p_rows &p, uint32_t i) { return p.n - rl_part_begin(p, i) < p.share ? p.n - rl_part_begin(p, i) : p.share; }

#define RL_EACH_PIECE(done, part) for (uint32_t done = 0; done < part.n; done += RL_PIECE)
#define RL_EACH_OF_PIECE(i, k, left)                                                                                 \
    RL_UNROLL                                                                                                        \
    for (uint32_t i = 0, k; i < rl_held<T>::EACH; i++)                                                              \
        if ((k = rl_held<T>::place(p.wide, lane, i)) < left)

/* A block's two sums, of which the second knows what the first came to, a mean, and what is done with them.  OP: of which elements a lane adds up what. */
template <class OP> struct rl_over_parts {
    typedef rl_p_rows Params;
    typedef typename OP::T T;
    struct Shared { double first[RL_CELLS], second[RL_CELLS]; };
    typedef rl_held<T> Local;

    RL_MEMBER uint32_t steps(const Params &) { return 5; }
    RL_MEMBER double mean(const Params &p, const rl_part &part, const double *cell) {
        return p.op == RL_GPU_RMS_NORM ? 0 : rl_team_sum((uint32_t)RL_GPU_SUM, cell, RL_THREADS) / OP::divisor(p, part);
    }

    RL_MEMBER void step(uint32_t phase, const Params &p, Shared &s, Local &l, uint32_t block, uint32_t lane) {
        int64_t at[2];
        uint32_t line = rl_divide(block, p.parts), i = block - line * p.parts.d;
        rl_part part = {block, line, rl_part_begin(p, i), rl_part_size(p, i)};
        rl_walk_at(&p.kept, line, 2, at);
        const T *x = (const T *)p.from + at[1] + part.begin;
        if (phase == 0) {
            if (p.share == RL_PIECE) l.fetch(x, part.n, p.wide, lane);
            s.first[lane] = OP::first(p, l, part, x, lane);
        } else if (phase == 1) rl_team_fold((uint32_t)RL_GPU_SUM, s.first, RL_THREADS, lane);
        else if (phase == 2) s.second[lane] = OP::second(p, l, part, x, lane, mean(p, part, s.first));
        else if (phase == 3) rl_team_fold((uint32_t)RL_GPU_SUM, s.second, RL_THREADS, lane);
        else OP::finish(p, l, part, x, (T *)p.to + at[0] + part.begin, lane, mean(p, part, s.first), rl_team_sum((uint32_t)RL_GPU_SUM, s.second, RL_THREADS));
    }
};

/* The number of a part's elements is known; their mean and how far they are from it is to be. */
template <class X> struct rl_part_moments {
    typedef X T;
    RL_MEMBER uint32_t divisor(const rl_p_rows &, const rl_part &part) { return part.n; }

    RL_MEMBER double first(const rl_p_rows &p, rl_held<T> &l, const rl_part &part, const T *x, uint32_t lane) {
        double a = 0;
        RL_EACH_PIECE(done, part) {
            if (p.share != RL_PIECE) l.fetch(x + done, part.n - done, p.wide, lane);
            RL_EACH_OF_PIECE(i, k, part.n - done) a += (double)l.get(i);
        }
        return a;
    }
    RL_MEMBER double second(const rl_p_rows &p, rl_held<T> &l, const rl_part &part, const T *x, uint32_t lane, double mean) {
        double a = 0;
        RL_EACH_PIECE(done, part) {
            if (p.share != RL_PIECE) l.fetch(x + done, part.n - done, p.wide, lane);
            RL_EACH_OF_PIECE(i, k, part.n - done) {
                double v = (double)l.get(i) - mean;
                a += v * v;
            }
        }
        return a;
    }
    RL_MEMBER void finish(const rl_p_rows &p, const rl_held<T> &, const rl_part &part, const T *, T *, uint32_t lane, double mean, double squares) {
        rl_moments m = {mean, squares};
        if (lane == 0) p.moments[part.number] = m;
    }
};

/* The moments of all parts of a line come to the line's own: its mean is that of means, and a part's elements are also as far from it as the part's mean is. */
template <class X> struct rl_part_normed {
    typedef X T;
    typedef typename rl_computed<T>::type C;
    RL_MEMBER uint32_t divisor(const rl_p_rows &p, const rl_part &) { return p.n; }

    RL_MEMBER double first(const rl_p_rows &p, const rl_held<T> &, const rl_part &part, const T *, uint32_t lane) {
        const rl_moments *m = p.moments + part.line * p.parts.d;
        double a = 0;
        for (uint32_t i = lane; i < p.parts.d; i += RL_THREADS) a += rl_part_size(p, i) * m[i].mean;
        return a;
    }
    RL_MEMBER double second(const rl_p_rows &p, const rl_held<T> &, const rl_part &part, const T *, uint32_t lane, double mean) {
        const rl_moments *m = p.moments + part.line * p.parts.d;
        double a = 0;
        for (uint32_t i = lane; i < p.parts.d; i += RL_THREADS) a += m[i].squares + rl_part_size(p, i) * (m[i].mean - mean) * (m[i].mean - mean);
        return a;
    }
    RL_MEMBER void finish(const rl_p_rows &p, rl_held<T> &l, const rl_part &part, const T *x, T *y, uint32_t lane, double mean, double squares) {
        rl_norm<C> norm = rl_norm_of<C>(p, part.line, squares);
        RL_EACH_PIECE(done, part) {
            if (p.share != RL_PIECE) l.fetch(x + done, part.n - done, p.wide, lane);
            RL_EACH_OF_PIECE(i, k, part.n - done) l.set(i, rl_norm_each(p, norm, part.begin + done + k, l.get(i) - (C)mean));
            l.put(y + done, part.n - done, p.wide, lane);
        }
    }
};
#undef RL_EACH_PIECE
#undef RL_EACH_OF_PIECE
template <class T> using rl_moments_of = rl_over_parts<rl_part_moments<T>>;
template <class T> using rl_parted = rl_over_parts<rl_part_normed<T>>;

#endif
