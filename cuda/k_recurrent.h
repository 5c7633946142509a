/* Cells of recurrent networks, C++ for the host and the device: one step of all sequences and directions; the CPU's own activations
 * (runtime/activation.inc).
 *
 *   recurrent<T>       LSTM, GRU, RNN, whose products are there; sums, activations and an LSTM's cell in float32 where T is shorter
 *   recurrent_few<T>   the same with the product of the states, of a few sequences: a warp for all gates of a unit, each lane a share of each sum */
#ifndef RL_CUDA_K_RECURRENT_H
#define RL_CUDA_K_RECURRENT_H
#include <math.h>

#include "k_move.h"

#define RL_F32_MATH(name) name##f
#define RL_F64_MATH(name) name
#define T float
#define M(name) RL_F32_MATH(name)
#define ACT RL_HD float rl_act
#include "../runtime/activation.inc"
#undef T
#undef M
#undef ACT
#define T double
#define M(name) RL_F64_MATH(name)
#define ACT RL_HD double rl_act
#include "../runtime/activation.inc"
#undef T
#undef M
#undef ACT
#undef RL_F32_MATH
#undef RL_F64_MATH

template <class T> struct rl_cell {
    typedef typename rl_computed<T>::type C;

    /* token: -1 where the sequence has ended. x, bias: where the unit's first gate stands. */
    struct Unit { uint32_t dir, batch, j; int32_t token; int64_t x, bias; };

    RL_MEMBER int32_t token_of(const rl_p_recurrent &p, uint32_t dir, uint32_t batch) {
        int32_t end = p.ends ? p.ends[batch] : (int32_t)p.length;
        if (p.wrong && (end < 0 || end > (int32_t)p.length)) rl_note_wrong(p.wrong, p.node);
        if (end > (int32_t)p.length) end = (int32_t)p.length;
        if ((int32_t)p.step >= end) return -1;
        return dir || p.reverse ? end - 1 - (int32_t)p.step : (int32_t)p.step;
    }

    RL_MEMBER Unit unit_of(const rl_p_recurrent &p, uint32_t dir, uint32_t batch, uint32_t j) {
        uint32_t all = p.gates * p.hidden.d;
        Unit u = {dir, batch, j, token_of(p, dir, batch), 0, (int64_t)dir * 2 * all + j};
        u.x = u.token * p.x_step[0] + batch * p.x_step[1] + (int64_t)dir * all + j;
        return u;
    }

    RL_MEMBER C at(const void *p, int64_t i) { return rl_load(((const T *)p)[i]); }

    /* What the token gives to gate g, and what h gives; product: of each gate. */
    RL_MEMBER C of_x(const rl_p_recurrent &p, const Unit &u, uint32_t g) {
        return at(p.x, u.x + g * p.hidden.d) + (p.bias ? at(p.bias, u.bias + g * p.hidden.d) : (C)0);
    }
    RL_MEMBER C of_h(const rl_p_recurrent &p, const Unit &u, const C (&product)[RL_GATES], uint32_t g) {
        return product[g] + (p.bias ? at(p.bias, u.bias + (p.gates + g) * p.hidden.d) : (C)0);
    }
    RL_MEMBER C gate(const rl_p_recurrent &p, const Unit &u, const C (&product)[RL_GATES], uint32_t g) { return of_x(p, u, g) + of_h(p, u, product, g); }

    /* A gate's activation: what goes in is clipped. */
    RL_MEMBER C apply(const rl_p_recurrent &p, const Unit &u, uint32_t which, C x) {
        C most = (C)p.clip;
        if (most > 0) x = x > most ? most : x < -most ? -most : x;
        return rl_act(&p.act[u.dir][which], x);
    }

    RL_MEMBER int64_t place(const int64_t *step, const Unit &u) { return u.dir * step[0] + u.batch * step[1] + u.j; }

    RL_MEMBER C lstm(const rl_p_recurrent &p, const Unit &u, const C (&product)[RL_GATES], C *cell) {
        C in = gate(p, u, product, 0), out = gate(p, u, product, 1), forget = gate(p, u, product, 2), next = gate(p, u, product, 3), c = *cell;
        int64_t peep = (int64_t)u.dir * 3 * p.hidden.d + u.j;
        if (p.peephole) in += at(p.peephole, peep) * c, forget += at(p.peephole, peep + 2 * (int64_t)p.hidden.d) * c;
        in = apply(p, u, 0, in), next = apply(p, u, 1, next);
        forget = p.couples ? 1 - in : apply(p, u, 0, forget);
        *cell = c = forget * c + in * next;
        if (p.peephole) out += at(p.peephole, peep + p.hidden.d) * c;
        return apply(p, u, 0, out) * rl_act(&p.act[u.dir][2], c);
    }

    RL_MEMBER C gru(const rl_p_recurrent &p, const Unit &u, const C (&product)[RL_GATES], C h) {
        C update = apply(p, u, 0, gate(p, u, product, 0)), next = of_x(p, u, 2);
        next += (p.linear ? apply(p, u, 0, gate(p, u, product, 1)) : (C)1) * of_h(p, u, product, 2);
        return (1 - update) * apply(p, u, 1, next) + update * h;
    }

    RL_MEMBER C h_of(const rl_p_recurrent &p, const Unit &u) { return p.h.from ? at(p.h.from, place(p.h.from_step, u)) : (C)0; }
    RL_MEMBER C c_of(const rl_p_recurrent &p, const Unit &u) {
        if (p.op != RL_LSTM || !p.c.from) return 0;
        return p.step ? ((const C *)p.c.from)[place(p.c.from_step, u)] : at(p.c.from, place(p.c.from_step, u));
    }

    RL_MEMBER void put(const rl_p_recurrent &p, const Unit &u, C h, C cell) {
        int64_t token = u.token < 0 ? (int64_t)p.step : u.token; /* behind a sequence's end stand zeros */
        rl_store((T *)p.h.to + place(p.h.to_step, u), h);
        if (p.op == RL_LSTM) ((C *)p.c.to)[place(p.c.to_step, u)] = cell;
        if (p.y) rl_store((T *)p.y + token * p.y_step[0] + u.dir * p.y_step[1] + u.batch * p.y_step[2] + u.j, u.token < 0 ? (C)0 : h);
    }

    RL_MEMBER void run(const rl_p_recurrent &p, const Unit &u, const C (&product)[RL_GATES]) {
        C h = h_of(p, u), cell = c_of(p, u);
        if (p.reset) {
            int64_t to = ((int64_t)u.dir * p.batch.d + u.batch) * p.hidden.d + u.j;
            rl_store((T *)p.reset + to, u.token < 0 ? (C)0 : apply(p, u, 0, gate(p, u, product, 1)) * h);
            return;
        }
        if (u.token >= 0)
            h = p.op == RL_LSTM ? lstm(p, u, product, &cell) : p.op == RL_GRU ? gru(p, u, product, h) : apply(p, u, 0, gate(p, u, product, 0));
        put(p, u, h, cell);
    }
};

template <class T> struct rl_recurrent_step {
    typedef rl_p_recurrent Params;
    typedef rl_nothing Shared, Local;
    typedef typename rl_computed<T>::type C;

    RL_STEP(rl_p_recurrent) {
        uint32_t number = block * RL_THREADS + thread, row = rl_divide(number, p.hidden), dir = rl_divide(row, p.batch);
        C product[RL_GATES];
        if (number >= p.count) return;
        RL_UNROLL
        for (uint32_t g = 0; g < RL_GATES; g++) {
            int64_t at = ((int64_t)row * p.gates + g) * p.hidden.d + number - row * p.hidden.d;
            product[g] = p.asked >> g & 1 ? rl_cell<T>::at(p.product, at) : (C)0;
        }
        rl_cell<T>::run(p, rl_cell<T>::unit_of(p, dir, row - dir * p.batch.d, number - row * p.hidden.d), product);
    }
};

template <class T> struct rl_recurrent_few {
    typedef rl_p_recurrent Params;
    typedef typename rl_computed<T>::type C;
    typedef rl_vector<T> Vector;
    enum { FEW = RL_RECURRENT_FEW, LANES = RL_RECURRENT_LANES, TEAMS = RL_THREADS / LANES, WIDE = Vector::WIDE, PITCH = RL_THREADS + 1 /* no two lanes in one bank */ };
    struct Shared { C part[RL_GATES * FEW][PITCH]; };
    typedef rl_nothing Local;

    RL_MEMBER uint32_t steps(const Params &) { return 3; }

    /* What this lane adds to the products of the gates in `asked` with each sequence's h: elements k and n - 1 more. */
    RL_MEMBER void add(const Params &p, uint32_t asked, const T *w, const T *h, int64_t h_step, uint32_t k, uint32_t n, C (&sum)[RL_GATES][FEW]) {
        Vector a[RL_GATES], b;
        RL_UNROLL
        for (uint32_t g = 0; g < RL_GATES; g++) {
            a[g].clear();
            if (asked >> g & 1) a[g].fetch(w + (int64_t)g * p.hidden.d * p.hidden.d + k, false, n);
        }
        RL_UNROLL
        for (uint32_t s = 0; s < FEW; s++) {
            if (s >= p.batch.d) continue;
            b.clear();
            b.fetch(h + s * h_step + k, false, n);
            RL_UNROLL
            for (uint32_t g = 0; g < RL_GATES; g++) {
                RL_UNROLL
                for (uint32_t e = 0; e < WIDE; e++)
                    if (e < n) sum[g][s] += (C)rl_load(a[g].each[e]) * (C)rl_load(b.each[e]);
            }
        }
    }

    /* Lanes side by side read what lies side by side. */
    RL_MEMBER void multiply(const Params &p, uint32_t asked, const T *w, const T *h, int64_t h_step, uint32_t lane, C (&sum)[RL_GATES][FEW]) {
        if (p.wide)
            for (uint32_t k = lane * WIDE; k < p.hidden.d; k += LANES * WIDE) add(p, asked, w, h, h_step, k, WIDE, sum);
        else
            for (uint32_t k = lane; k < p.hidden.d; k += LANES) add(p, asked, w, h, h_step, k, 1, sum);
    }

    RL_MEMBER void parts(const Params &p, Shared &s, uint32_t dir, uint32_t j, uint32_t thread) {
        C sum[RL_GATES][FEW];
        uint32_t lane = thread % LANES, size = p.hidden.d, own = p.kept ? 4 : 0; /* gates whose product is of something else than h */
        const T *w = (const T *)p.weights + ((int64_t)dir * p.gates * size + j) * size;
        RL_UNROLL
        for (uint32_t g = 0; g < RL_GATES; g++)
            RL_UNROLL
            for (uint32_t b = 0; b < FEW; b++) sum[g][b] = 0;
        multiply(p, p.asked & ~own, w, (const T *)p.h.from + dir * p.h.from_step[0], p.h.from_step[1], lane, sum);
        if (own) multiply(p, own, w, (const T *)p.kept + (int64_t)dir * p.batch.d * size, size, lane, sum);
        RL_UNROLL
        for (uint32_t g = 0; g < RL_GATES; g++)
            RL_UNROLL
            for (uint32_t b = 0; b < FEW; b++) s.part[g * FEW + b][thread] = sum[g][b];
    }

    RL_MEMBER void step(uint32_t phase, const Params &p, Shared &s, rl_nothing &, uint32_t block, uint32_t thread) {
        uint32_t number = block * TEAMS + thread / LANES, lane = thread % LANES, first = thread - lane, dir = rl_divide(number, p.hidden);
        if (number >= p.count) return;
        if (phase == 0) parts(p, s, dir, number - dir * p.hidden.d, thread);
        else if (phase == 1 && lane < RL_GATES * FEW) {
            C sum = 0;
            for (uint32_t i = 0; i < LANES; i++) sum += s.part[lane][first + i];
            s.part[lane][first] = sum;
        } else if (phase == 2 && lane < p.batch.d) {
            C product[RL_GATES];
            RL_UNROLL
            for (uint32_t g = 0; g < RL_GATES; g++) product[g] = s.part[g * FEW + lane][first];
            rl_cell<T>::run(p, rl_cell<T>::unit_of(p, dir, lane, number - dir * p.hidden.d), product);
        }
    }
};

#endif
