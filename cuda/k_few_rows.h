/* Products of a few rows, C++ for the host and the device, with the bias and all that was joined to them in the same launch: squeeze and excitation, gates
 * and heads of one image, for which a library takes two launches, and a third one for what it has no name for.
 *
 *   few_rows<T>     each column of b has its neighbours along k, as the weights of a convolution or of a Gemm with transB do
 *   few_across<T>   each row of b has its columns side by side, as a MatMul's: 16 bytes of them at a time
 *
 * A column, or 16 bytes of columns, has a team of 8 to 256 lanes (k_reduce.h), among whom k is divided: more where there are few columns. What was read of b
 * is multiplied by all rows of a. The order of a sum depends on the dims only: what does not lie by whole vectors is read one by one by the same lanes. */
#ifndef RL_CUDA_K_FEW_ROWS_H
#define RL_CUDA_K_FEW_ROWS_H
#include "k_conv.h"
#include "k_reduce.h"

template <class T, bool ACROSS> struct rl_few {
    typedef rl_p_few_rows Params;
    typedef typename rl_computed<T>::type C;
    typedef rl_vector<T> Vector;
    enum { ROWS = RL_FEW_ROWS, WIDE = Vector::WIDE, COLUMNS = ACROSS ? WIDE : 1 /* of a team */, AHEAD = 4 /* loads of b that are under way */ };
    struct Shared { C part[ROWS * COLUMNS][RL_CELLS]; };
    typedef rl_nothing Local;

    RL_MEMBER uint32_t steps(const Params &) { return 3; }
    RL_MEMBER uint32_t vectors(const Params &p) { return ACROSS ? p.k : (p.k + WIDE - 1) / WIDE; } /* of b, of a team */
    RL_MEMBER uint32_t teams(const Params &p) { return ACROSS ? (p.n + WIDE - 1) / WIDE : p.n; }

    /* n neighbours, then zeros. */
    RL_MEMBER Vector some(const Params &p, const T *from, uint32_t n) {
        Vector v;
        v.clear();
        if (p.wide) v.fetch(from, false, n);
        else {
            RL_UNROLL
            for (uint32_t e = 0; e < WIDE; e++)
                if (e < n) v.each[e] = from[e];
        }
        return v;
    }

    /* Vector number `at` of b times what it meets in a row of a. */
    RL_MEMBER void add(const Params &p, const Vector &b, const T *a, uint32_t at, C (&sum)[COLUMNS]) {
        if (ACROSS) {
            C x = rl_load(a[at]);
            RL_UNROLL
            for (uint32_t i = 0; i < COLUMNS; i++) sum[i] += x * (C)rl_load(b.each[i]);
        } else {
            Vector x = some(p, a + at * WIDE, Vector::left(at, p.k));
            RL_UNROLL
            for (uint32_t i = 0; i < WIDE; i++) sum[0] += (C)rl_load(x.each[i]) * (C)rl_load(b.each[i]);
        }
    }

    /* Every `lanes`-th vector from `lane` on. */
    RL_MEMBER void multiply(const Params &p, uint32_t team, uint32_t lane, C (&sum)[ROWS][COLUMNS]) {
        const T *b = (const T *)p.b + (ACROSS ? (int64_t)team * WIDE : team * p.b_step);
        uint32_t n = vectors(p);
        for (uint32_t first = lane; first < n; first += AHEAD * p.lanes) {
            Vector x[AHEAD];
            RL_UNROLL
            for (uint32_t e = 0; e < AHEAD; e++) {
                uint32_t at = first + e * p.lanes;
                if (at < n) x[e] = some(p, b + at * (ACROSS ? p.b_step : (int64_t)WIDE), ACROSS ? Vector::left(team, p.n) : Vector::left(at, p.k));
            }
            RL_UNROLL
            for (uint32_t r = 0; r < ROWS; r++) {
                RL_UNROLL
                for (uint32_t e = 0; e < AHEAD; e++)
                    if (r < p.m && first + e * p.lanes < n) add(p, x[e], (const T *)p.a + r * p.a_m, first + e * p.lanes, sum[r]);
            }
        }
    }

    RL_MEMBER void finish(const Params &p, C sum, uint32_t row, uint32_t column) {
        C y[1] = {(C)p.alpha * sum};
        int64_t at = row * p.y_m + column;
        if (p.bias) y[0] += (C)p.beta * (C)rl_load(((const T *)p.bias)[row * p.bias_m + column * p.bias_n]);
        RL_ROLLED
        for (uint32_t i = 0; i < p.npost; i++) {
            const C w[1] = {p.post[i].operand ? (C)rl_load(((const T *)p.operand[p.post[i].operand])[at]) : (C)0};
            rl_row_each<1, C>(p.post[i], y, w);
        }
        rl_store((T *)p.y + at, y[0]);
    }

    RL_MEMBER void step(uint32_t phase, const Params &p, Shared &s, Local &, uint32_t block, uint32_t thread) {
        rl_seat seat = rl_seat_of(p.lanes, ACROSS, thread);
        uint32_t team = block * (RL_THREADS / p.lanes) + seat.team, half = rl_team_half(p.lanes), n = p.m * COLUMNS;
        if (team >= teams(p)) return;
        if (phase == 0) {
            C sum[ROWS][COLUMNS] = {};
            multiply(p, team, seat.lane, sum);
            RL_UNROLL
            for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
                if (i < n) rl_team_cells(s.part[i], p.lanes, seat.team)[seat.lane] = sum[i / COLUMNS][i % COLUMNS];
        } else if (phase == 1 && rl_team_folds(p.lanes)) {
            for (uint32_t i = seat.lane / half; i < n; i += p.lanes / half)
                rl_team_fold(RL_GPU_SUM, rl_team_cells(s.part[i], p.lanes, seat.team), p.lanes, seat.lane % half);
        } else if (phase == 2) {
            for (uint32_t i = seat.lane; i < n; i += p.lanes) {
                uint32_t row = i / COLUMNS, column = team * COLUMNS + i % COLUMNS;
                if (column < p.n) finish(p, rl_team_sum(RL_GPU_SUM, rl_team_cells(s.part[i], p.lanes, seat.team), p.lanes), row, column);
            }
        }
    }
};
template <class T> using rl_few_rows = rl_few<T, false>;
template <class T> using rl_few_across = rl_few<T, true>;

#endif
