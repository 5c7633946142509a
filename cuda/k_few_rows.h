/* Products of a few rows, C++ for the host and the device, with the bias and all that was joined to them in the same launch: squeeze and excitation, gates
 * and heads of one image, for which a library takes two launches, and a third one for what it has no name for.
 *
 *   few_rows<T>     each column of b has its neighbours along k, as the weights of a convolution or of a Gemm with transB do
 *   few_across<T>   each row of b has its columns side by side, as a MatMul's
 *
 * A column, or RL_FEW_ACROSS of them, has a team of 8 to 256 lanes (k_reduce.h), among whom k is divided, vector after vector of b: 16 bytes along k, or that
 * many columns. What was read of b is multiplied by all rows of a. The order of a sum depends on the dims only: what does not lie by whole vectors is read
 * element by element by the same lanes. */
#ifndef RL_CUDA_K_FEW_ROWS_H
#define RL_CUDA_K_FEW_ROWS_H
#include "k_conv.h"
#include "k_reduce.h"

template <class T, bool ACROSS> struct rl_few {
    typedef rl_p_few_rows Params;
    typedef typename rl_computed<T>::type C;
    enum { ROWS = RL_FEW_ROWS, WIDE = ACROSS ? (uint32_t)RL_FEW_ACROSS : 16 / (uint32_t)sizeof(T) /* elements of a vector of b */, COLUMNS = ACROSS ? WIDE : 1 /* of a team */,
           FACTORS = ACROSS ? 1 : WIDE /* of a row of a, for a vector of b */, AHEAD = RL_FEW_AHEAD / (WIDE * sizeof(T)) /* vectors of b under way */,
           OWN = ACROSS ? 2 : 1 /* outputs of a lane: all rows and columns of a team by 8 lanes or more */ };
    struct Shared { C part[ROWS * COLUMNS][RL_CELLS]; };
    struct Local { C bias[OWN]; }; /* read while b is */

    RL_MEMBER uint32_t steps(const Params &) { return 3; }
    RL_MEMBER uint32_t teams(const Params &p) { return (p.n + COLUMNS - 1) / COLUMNS; }
    RL_MEMBER uint32_t left(uint32_t begin, uint32_t end) { return begin < end ? end - begin : 0; }

    /* As many neighbours as there are left, then zeros; WHOLE: all W or none. */
    template <bool WHOLE, uint32_t W> RL_MEMBER rl_bunch<T, W> some(const T *from, uint32_t n) {
        rl_bunch<T, W> v = {};
        if (WHOLE) {
            if (n) v.get(from);
        } else {
            T each[W]; /* what is put together at once would be waited for one by one */
            RL_UNROLL
            for (uint32_t i = 0; i < W; i++) each[i] = i < n ? from[i] : T();
            RL_UNROLL
            for (uint32_t i = 0; i < W; i++) v.each[i] = each[i];
        }
        return v;
    }

    /* Of the team's vectors of b every `lanes`-th from `lane` on, times what they meet in each row of a. */
    template <bool WHOLE> RL_MEMBER void multiply(const Params &p, uint32_t team, uint32_t lane, C (&sum)[ROWS][COLUMNS]) {
        const T *b = (const T *)p.b + team * (ACROSS ? (int64_t)WIDE : p.b_step);
        const int64_t step = ACROSS ? p.b_step : (int64_t)WIDE;
        const uint32_t end = (p.k + FACTORS - 1) / FACTORS;
        for (uint32_t first = lane; first < end; first += AHEAD * p.lanes) {
            rl_bunch<T, WIDE> x[AHEAD];
            rl_bunch<T, FACTORS> y[AHEAD];
            RL_UNROLL
            for (uint32_t e = 0; e < AHEAD; e++) {
                uint32_t at = first + e * p.lanes, n = left(at * FACTORS, p.k);
                x[e] = some<WHOLE, WIDE>(b + at * step, ACROSS && n ? left(team * COLUMNS, p.n) : n);
            }
            RL_UNROLL
            for (uint32_t r = 0; r < ROWS; r++) {
                if (r >= p.m) continue;
                RL_UNROLL
                for (uint32_t e = 0; e < AHEAD; e++) {
                    uint32_t at = (first + e * p.lanes) * FACTORS;
                    y[e] = some<WHOLE || ACROSS, FACTORS>((const T *)p.a + r * p.a_m + at, left(at, p.k));
                }
                RL_UNROLL
                for (uint32_t e = 0; e < AHEAD; e++) {
                    if (first + e * p.lanes >= end) continue;
                    RL_UNROLL
                    for (uint32_t i = 0; i < WIDE; i++) sum[r][i % COLUMNS] += (C)rl_load(y[e].each[i % FACTORS]) * (C)rl_load(x[e].each[i]);
                }
            }
        }
    }

    /* Output number u of a lane; false: there is none. */
    struct Place { uint32_t number, row, column; };
    RL_MEMBER bool find(const Params &p, uint32_t team, uint32_t lane, uint32_t u, Place *o) {
        o->number = lane + u * p.lanes, o->row = o->number / COLUMNS, o->column = team * COLUMNS + o->number % COLUMNS;
        return o->row < p.m && o->column < p.n;
    }

    RL_MEMBER C bias(const Params &p, const Place &o) { return (C)p.beta * (C)rl_load(((const T *)p.bias)[o.row * p.bias_m + o.column * p.bias_n]); }

    RL_MEMBER void finish(const Params &p, const Place &o, C sum, C more) {
        C y[1] = {(C)p.alpha * sum + more};
        int64_t at = o.row * p.y_m + o.column;
        RL_ROLLED
        for (uint32_t i = 0; i < p.npost; i++) {
            const C w[1] = {p.post[i].operand ? (C)rl_load(((const T *)p.operand[p.post[i].operand])[at]) : (C)0};
            rl_row_each<1, C>(p.post[i], y, w);
        }
        rl_store((T *)p.y + at, y[0]);
    }

    RL_MEMBER void step(uint32_t phase, const Params &p, Shared &s, Local &l, uint32_t block, uint32_t thread) {
        rl_seat seat = rl_seat_of(p.lanes, ACROSS, thread);
        uint32_t team = block * (RL_THREADS / p.lanes) + seat.team, half = rl_team_half(p.lanes), n = p.m * COLUMNS;
        Place o;
        if (team >= teams(p)) return;
        if (phase == 0) {
            C sum[ROWS][COLUMNS] = {};
            RL_UNROLL
            for (uint32_t u = 0; u < OWN; u++)
                l.bias[u] = p.bias && find(p, team, seat.lane, u, &o) ? bias(p, o) : (C)0;
            if (p.wide) multiply<true>(p, team, seat.lane, sum);
            else multiply<false>(p, team, seat.lane, sum);
            RL_UNROLL
            for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
                if (i < n) rl_team_cells(s.part[i], p.lanes, seat.team)[seat.lane] = sum[i / COLUMNS][i % COLUMNS];
        } else if (phase == 1 && rl_team_folds(p.lanes)) {
            for (uint32_t i = seat.lane / half; i < n; i += p.lanes / half)
                rl_team_fold(RL_GPU_SUM, rl_team_cells(s.part[i], p.lanes, seat.team), p.lanes, seat.lane % half);
        } else if (phase == 2) {
            RL_UNROLL
            for (uint32_t u = 0; u < OWN; u++) {
                if (!find(p, team, seat.lane, u, &o)) continue;
                finish(p, o, rl_team_sum(RL_GPU_SUM, rl_team_cells(s.part[o.number], p.lanes, seat.team), p.lanes), l.bias[u]);
            }
        }
    }
};
template <class T> using rl_few_rows = rl_few<T, false>;
template <class T> using rl_few_across = rl_few<T, true>;

#endif
