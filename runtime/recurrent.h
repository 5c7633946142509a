/* LSTM, GRU, RNN, and com.microsoft's DynamicQuantizeLSTM: what a node says, for all devices; and one direction on the CPU, which ref_recurrent.c prepares and recurrent.inc runs.
 *
 * A step's gates of all batch rows stand in `gate`, count * hidden numbers per row: first x W' + the biases of the row's token, then
 * h R' is added, then the cell makes them the new h (and c).  A row whose sequence has ended keeps its state. */
#ifndef RL_RECURRENT_H
#define RL_RECURRENT_H
#include "kernels.h"
#include "panels.h"
#include "recurrent_ops.h"

/* What the node says, checked. */
typedef struct {
    uint32_t ndir;
    int64_t length, batch, input, hidden, count; /* length: steps; count: gates */
    bool batch_first, reverse, couples, linear;  /* couples: input_forget; linear: linear_before_reset */
    bool dynamic;                                /* DynamicQuantizeLSTM: weights are bytes, [directions, K, gates]; inputs and states become bytes, too */
    double clip;                                 /* 0: none */
    rl_activation act[2][3];
} rl_recurrent_node;
rl_status rl_recurrent_read(const rl_call *c, rl_recurrent_node *n);
/* t, which is input i, or has its dims, with the steps or directions first and then the batch; weights with the gates before K. */
rl_tensor rl_recurrent_view(const rl_recurrent_node *n, uint32_t i, const rl_tensor *t);

typedef struct {
    int op;
    int64_t batch, hidden, count; /* count: gates */
    bool reverse, couples, linear;        /* these, and what follows, as of rl_recurrent_node */
    double clip;
    rl_activation act[3];
    const rl_rows *rows;                  /* NULL: no fast kernels, or another type than f32 */
    bool plain;                           /* an LSTM without any options: rows->lstm */
    rl_panels panels[3];                  /* with rows: W, R of the gates whose product is of h itself, a GRU's third gate's R */
    const int64_t *ends;                  /* length of each row's sequence */
    const void *gates_of;                 /* x W' + biases, [length, batch, count * hidden] */
    const void *peephole;                 /* i, o, f; NULL: none */
    void *gate, *h, *c, *work;            /* of this step; work: [batch, hidden] */
    void *y;                              /* [length, .., batch, hidden], y_step apart; NULL: not wanted */
    int64_t y_step, step;
    int phase;                            /* of a GRU: 0 makes z, r and what h's product is of; 1 the rest */
} rl_recurrent;

/* The token of batch row b in this step, or -1 where its sequence has ended. */
static inline int64_t rl_recurrent_token(const rl_recurrent *r, int64_t b) {
    if (r->step >= r->ends[b]) return -1;
    return r->reverse ? r->ends[b] - 1 - r->step : r->step;
}

#endif
