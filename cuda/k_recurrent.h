/* Cells of recurrent networks, C++ for the host and the device: one step of all sequences and directions, a unit per thread; the CPU's own
 * activations (runtime/activation.inc).
 *
 *   recurrent<T>   LSTM, GRU, RNN; sums, activations and an LSTM's cell in float32 where T is shorter */
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

template <class T> struct rl_recurrent_step {
    typedef rl_p_recurrent Params;
    typedef rl_nothing Shared, Local;
    typedef typename rl_computed<T>::type C;

    /* token: -1 where the sequence has ended. x, product, bias: where the unit's first gate stands. */
    struct Unit { uint32_t dir, batch, j; int32_t token; int64_t x, product, bias; };

    RL_MEMBER int32_t token_of(const Params &p, uint32_t dir, uint32_t batch) {
        int32_t end = p.ends ? p.ends[batch] : (int32_t)p.length;
        if (p.wrong && (end < 0 || end > (int32_t)p.length)) rl_note_wrong(p.wrong, p.node);
        if (end > (int32_t)p.length) end = (int32_t)p.length;
        if ((int32_t)p.step >= end) return -1;
        return dir || p.reverse ? end - 1 - (int32_t)p.step : (int32_t)p.step;
    }

    RL_MEMBER Unit unit_of(const Params &p, uint32_t number) {
        uint32_t row = rl_divide(number, p.hidden), dir = rl_divide(row, p.batch), all = p.gates * p.hidden.d;
        Unit u;
        u.dir = dir, u.batch = row - dir * p.batch.d, u.j = number - row * p.hidden.d;
        u.token = token_of(p, dir, u.batch);
        u.x = u.token * p.x_step[0] + u.batch * p.x_step[1] + (int64_t)dir * all + u.j;
        u.product = (int64_t)row * all + u.j;
        u.bias = (int64_t)dir * 2 * all + u.j;
        return u;
    }

    RL_MEMBER C at(const void *p, int64_t i) { return rl_load(((const T *)p)[i]); }

    /* What the token gives to gate g, and what h gives. */
    RL_MEMBER C of_x(const Params &p, const Unit &u, uint32_t g) {
        return at(p.x, u.x + g * p.hidden.d) + (p.bias ? at(p.bias, u.bias + g * p.hidden.d) : (C)0);
    }
    RL_MEMBER C of_h(const Params &p, const Unit &u, uint32_t g) {
        return (p.product ? at(p.product, u.product + g * p.hidden.d) : (C)0) + (p.bias ? at(p.bias, u.bias + (p.gates + g) * p.hidden.d) : (C)0);
    }
    RL_MEMBER C gate(const Params &p, const Unit &u, uint32_t g) { return of_x(p, u, g) + of_h(p, u, g); }

    /* A gate's activation: what goes in is clipped. */
    RL_MEMBER C apply(const Params &p, const Unit &u, uint32_t which, C x) {
        C most = (C)p.clip;
        if (most > 0) x = x > most ? most : x < -most ? -most : x;
        return rl_act(&p.act[u.dir][which], x);
    }

    RL_MEMBER int64_t place(const int64_t *step, const Unit &u) { return u.dir * step[0] + u.batch * step[1] + u.j; }
    template <class S> RL_MEMBER C state(const Params &p, const rl_p_state &s, const Unit &u) {
        if (p.step) return rl_load(((const S *)s.to)[place(s.to_step, u)]);
        return s.first ? at(s.first, place(s.first_step, u)) : (C)0;
    }

    RL_MEMBER C lstm(const Params &p, const Unit &u, C *cell) {
        C in = gate(p, u, 0), out = gate(p, u, 1), forget = gate(p, u, 2), next = gate(p, u, 3), c = *cell;
        int64_t peep = (int64_t)u.dir * 3 * p.hidden.d + u.j;
        if (p.peephole) in += at(p.peephole, peep) * c, forget += at(p.peephole, peep + 2 * (int64_t)p.hidden.d) * c;
        in = apply(p, u, 0, in), next = apply(p, u, 1, next);
        forget = p.couples ? 1 - in : apply(p, u, 0, forget);
        *cell = c = forget * c + in * next;
        if (p.peephole) out += at(p.peephole, peep + p.hidden.d) * c;
        return apply(p, u, 0, out) * rl_act(&p.act[u.dir][2], c);
    }

    RL_MEMBER C gru(const Params &p, const Unit &u, C h) {
        C update = apply(p, u, 0, gate(p, u, 0)), next = of_x(p, u, 2);
        next += (p.linear ? apply(p, u, 0, gate(p, u, 1)) : (C)1) * of_h(p, u, 2);
        return (1 - update) * apply(p, u, 1, next) + update * h;
    }

    RL_MEMBER void put(const Params &p, const Unit &u, C h) {
        rl_store((T *)p.h.to + place(p.h.to_step, u), h);
        int64_t token = u.token < 0 ? (int64_t)p.step : u.token; /* behind a sequence's end stand zeros */
        if (p.y) rl_store((T *)p.y + token * p.y_step[0] + u.dir * p.y_step[1] + u.batch * p.y_step[2] + u.j, u.token < 0 ? (C)0 : h);
    }

    RL_STEP(rl_p_recurrent) {
        uint32_t number = block * RL_THREADS + thread;
        if (number >= p.count) return;
        Unit u = unit_of(p, number);
        C h = state<T>(p, p.h, u), cell = p.op == RL_LSTM ? state<C>(p, p.c, u) : (C)0;
        if (p.reset) {
            rl_store((T *)p.reset + number, u.token < 0 ? (C)0 : apply(p, u, 0, gate(p, u, 1)) * h);
            return;
        }
        if (u.token >= 0) h = p.op == RL_LSTM ? lstm(p, u, &cell) : p.op == RL_GRU ? gru(p, u, h) : apply(p, u, 0, gate(p, u, 0));
        if (p.op == RL_LSTM) ((C *)p.c.to)[place(p.c.to_step, u)] = cell;
        put(p, u, h);
    }
};

#endif
