/* LSTM, GRU and RNN on the device: one product for the inputs of all steps, then step by step one for the states of both directions and kernel
 * recurrent, or, of a few sequences, kernel recurrent_few for both.  Nothing waits between the steps: a recording has them all.
 *
 *   x W'  [steps, batch, dirs * gates]      in the order of rows that x has in memory
 *   h R'  [dirs, batch, gates]
 *
 * A GRU whose reset comes before the product (linear_before_reset 0) has two of each in a step. */
#include <string.h>

#include "../runtime/fast.h"
#include "../runtime/kernels.h"
#include "../runtime/recurrent.h"
#include "backend.h"

typedef struct {
    rl_call *c;
    rl_recurrent_node n;
    rl_dtype type;
    rl_p_recurrent p;
    bool few;
    rl_tensor h[2], first, weights, product, reset; /* h [dirs, batch, hidden]: what one step writes the next one reads; first: RL_ABSENT: zeros */
} recurrent;

/* One type, lengths as the op has them, nothing empty, numbers of elements that kernels take. */
static bool takes(const rl_call *c, const rl_recurrent_node *n) {
    rl_dtype type = rl_call_in(c, 0)->dtype;
    for (uint32_t i = 1; i < c->nin; i++) {
        const rl_tensor *t = rl_call_in(c, i);
        if (t && (t->dtype != (i == 4 ? RL_I32 : type) || rl_numel(t) >= INT32_MAX)) return false;
    }
    int64_t size[] = {n->length, n->batch, n->ndir, n->count * n->hidden}, all = n->input; /* x W' is the largest; Y is smaller */
    for (size_t i = 0; i < RL_LEN(size); i++)
        if (__builtin_mul_overflow(all, size[i], &all)) return false;
    return all > 0 && all / n->input < INT32_MAX && n->length * n->batch < INT32_MAX / n->input;
}

/* ---- products ---- */

static const rl_tensor *dense(rl_call *c, uint32_t i) {
    return rl_here_dense(c, rl_call_here(c, i));
}

/* Rows of x in the order that they have in memory, if one step leads through all: as they come, or the batch and the steps the other way around. */
static bool rows_of(const rl_tensor *x, bool *turns, rl_tensor *rows) {
    static const int64_t swap[] = {1, 0, 2};
    rl_tensor turned = rl_view_transpose(x, swap);
    int64_t dim[] = {1, x->dim[0] * x->dim[1], x->dim[2]};
    bool straight = rl_view_reshape(x, 3, dim, rows);
    *turns = !straight && rl_view_reshape(&turned, 3, dim, rows);
    return straight || *turns;
}

/* x W' for all steps, both directions: [steps, batch, dirs * gates]. Where no step leads through the rows, a product for each of x's outer dim. */
static rl_status multiply_inputs(recurrent *r) {
    static const int64_t swap[] = {1, 0, 2}, columns[] = {0, 2, 1};
    rl_call *c = r->c;
    const rl_tensor *x = rl_call_here(c, 0), *w = dense(c, 1);
    int64_t n = w->dim[0] * w->dim[1];
    bool turns;
    rl_tensor rows, y, view;
    if (!rows_of(x, &turns, &rows)) rows = *x;
    const rl_tensor *all = rl_call_temp(c, r->type, 3, (int64_t[]){x->dim[turns], x->dim[!turns], n});
    rl_view_reshape(all, 3, (int64_t[]){rows.dim[0], rows.dim[1], n}, &y);
    rl_view_reshape(w, 3, (int64_t[]){1, n, w->dim[2]}, &view);
    rl_tensor b = rl_view_transpose(&view, columns);
    b.dim[0] = rows.dim[0], b.stride[0] = 0;
    RL_TRY(rl_gpu_product(c, &rows, &b, &y, 1));
    rl_tensor in_place = turns ? rl_view_transpose(all, swap) : *all, steps = rl_recurrent_view(&r->n, 0, &in_place);
    r->p.x = rl_data(&steps), r->p.x_step[0] = steps.stride[0], r->p.x_step[1] = steps.stride[1];
    return RL_OK;
}

/* h R' of gates from .. from + n, of all directions. */
static rl_status multiply_states(const recurrent *r, const rl_tensor *h, int64_t from, int64_t n) {
    static const int64_t columns[] = {0, 2, 1};
    int64_t each = r->n.hidden;
    rl_tensor turned = rl_view_transpose(&r->weights, columns), b = rl_view_slice(&turned, 2, from * each, 1, n * each);
    rl_tensor y = rl_view_slice(&r->product, 2, from * each, 1, n * each);
    return rl_gpu_product(r->c, h, &b, &y, 1);
}

/* ---- states and outputs ---- */

/* What step after step writes: output i, or (i RL_NONE) something of this type that lies as that does. */
static rl_tensor make_state(const recurrent *r, uint32_t i, rl_dtype type) {
    const rl_recurrent_node *n = &r->n;
    int64_t dirs = n->ndir, dim[] = {n->batch_first ? n->batch : dirs, n->batch_first ? dirs : n->batch, n->hidden};
    return i == RL_NONE ? *rl_call_temp(r->c, type, 3, dim) : *rl_call_make(r->c, i, type, 3, dim);
}

/* t [dirs, batch, hidden]; what is not there: zeros */
static void set_from(rl_p_state *s, const rl_tensor *t) {
    if (t->kind == RL_ABSENT) s->from = NULL;
    else s->from = rl_data(t), s->from_step[0] = t->stride[0], s->from_step[1] = t->stride[1];
}

static void set_to(rl_p_state *s, const rl_tensor *t) {
    s->to = rl_data(t), s->to_step[0] = t->stride[0], s->to_step[1] = t->stride[1];
}

/* Input i, or what was made for it, with the directions first. */
static rl_tensor state_view(const recurrent *r, uint32_t i, const rl_tensor *t) {
    return t ? rl_recurrent_view(&r->n, i, t) : (rl_tensor){.kind = RL_ABSENT};
}

/* The directions of a step side by side: a Transpose and a Reshape, which is what mostly follows, are views then. */
static void make_steps(recurrent *r) {
    static const int64_t sides[] = {0, 2, 1, 3}, steps_first[] = {1, 2, 0, 3};
    const rl_recurrent_node *n = &r->n;
    int64_t dirs = n->ndir, usual[] = {n->length, dirs, n->batch, n->hidden}, other[] = {n->batch, n->length, dirs, n->hidden};
    if (!rl_call_wants(r->c, 0)) return;
    rl_tensor *y = rl_call_make_in(r->c, 0, r->type, 4, n->batch_first ? other : usual, n->batch_first ? NULL : sides);
    rl_tensor view = n->batch_first ? rl_view_transpose(y, steps_first) : *y;
    r->p.y = rl_data(&view);
    for (uint32_t i = 0; i < 3; i++) r->p.y_step[i] = view.stride[i];
}

/* ---- steps ---- */

/* Whole vectors of h's elements and of the weights'. */
static bool is_wide(const recurrent *r) {
    uint32_t size = rl_elem_bits(r->type) / 8;
    uintptr_t at = (uintptr_t)r->p.weights | (uintptr_t)r->p.h.from | (uintptr_t)r->p.kept;
    return at % 16 == 0 && r->n.hidden * size % 16 == 0;
}

/* For few sequences; not of doubles. */
static rl_gpu_kernel few_kernel(rl_dtype t) {
    return t == RL_F32 ? RL_GPU_recurrent_few_f32 : t == RL_F16 ? RL_GPU_recurrent_few_f16 : t == RL_BF16 ? RL_GPU_recurrent_few_bf16 : RL_NGPU;
}

/* The gates in `asked` have a product with h, by kernel recurrent_few or before. */
static rl_status launch(recurrent *r, uint32_t asked) {
    rl_p_recurrent *p = &r->p;
    bool few = r->few && asked;
    rl_gpu_kernel k = few ? few_kernel(r->type) : rl_gpu_of_float(RL_GPU_recurrent_f32, r->type);
    p->asked = asked, p->wide = is_wide(r), p->count = (uint32_t)(r->n.ndir * r->n.hidden * (few ? 1 : r->n.batch));
    return rl_gpu_launch(rl_gpu_of(r->c->rt), k, rl_gpu_thread_blocks(few ? (int64_t)p->count * RL_RECURRENT_LANES : p->count), p, sizeof *p);
}

/* With the products of h with gates from .. from + n's weights; asked: those that the kernel wants. */
static rl_status multiply_and_launch(recurrent *r, const rl_tensor *h, int64_t from, int64_t n, uint32_t asked) {
    if (!r->few) RL_TRY(multiply_states(r, h, from, n));
    return launch(r, asked);
}

static rl_status run_step(recurrent *r, const rl_tensor *h) {
    if (h->kind == RL_ABSENT) return launch(r, 0);
    if (r->c->arg != RL_GRU || r->n.linear) return multiply_and_launch(r, h, 0, r->n.count, (1u << r->n.count) - 1);
    r->p.reset = rl_data(&r->reset);
    RL_TRY(multiply_and_launch(r, h, 0, 2, 1u << 1));
    r->p.kept = r->p.reset, r->p.reset = NULL;
    RL_TRY(multiply_and_launch(r, &r->reset, 2, 1, 1u | 1u << 2));
    r->p.kept = NULL;
    return RL_OK;
}

/* The last one writes h[0], output 1. */
static rl_status run_steps(recurrent *r) {
    rl_p_recurrent *p = &r->p;
    const rl_tensor *h = &r->first;
    for (p->step = 0; p->step < p->length; p->step++) {
        const rl_tensor *next = &r->h[(p->length - 1 - p->step) % 2];
        set_from(&p->h, h), set_to(&p->h, next);
        RL_TRY(run_step(r, h));
        h = next;
        p->c.from = p->c.to, memcpy(p->c.from_step, p->c.to_step, sizeof p->c.from_step);
        p->wrong = NULL; /* lengths are looked at once */
    }
    return RL_OK;
}

/* ---- the op ---- */

static const void *data_of(const rl_tensor *t) {
    return t ? rl_data(t) : NULL;
}

static void set_params(recurrent *r) {
    const rl_recurrent_node *n = &r->n;
    rl_call *c = r->c;
    rl_p_recurrent *p = &r->p;
    p->op = (uint32_t)c->arg, p->gates = (uint32_t)n->count, p->length = (uint32_t)n->length;
    p->hidden = rl_divisor_of((uint32_t)n->hidden), p->batch = rl_divisor_of((uint32_t)n->batch);
    p->reverse = n->reverse, p->couples = n->couples, p->linear = n->linear, p->clip = n->clip;
    p->bias = data_of(dense(c, 3)), p->peephole = c->arg == RL_LSTM ? data_of(dense(c, 7)) : NULL, p->ends = data_of(dense(c, 4));
    if (p->ends) p->wrong = rl_gpu_wrong(c), p->node = c->step->node.i + 1;
    memcpy(p->act, n->act, sizeof p->act);
}

static void make_states(recurrent *r, rl_tensor *cell) {
    rl_call *c = r->c;
    rl_dtype wide = rl_gpu_computed(r->type);
    rl_tensor last = make_state(r, 1, r->type), other = r->n.length > 1 ? make_state(r, RL_NONE, r->type) : last;
    r->h[0] = state_view(r, 5, &last), r->h[1] = state_view(r, 5, &other), r->first = state_view(r, 5, dense(c, 5));
    if (c->arg != RL_LSTM) return;
    *cell = make_state(r, wide == r->type ? 2 : RL_NONE, wide);
    rl_tensor to = state_view(r, 6, cell), from = state_view(r, 6, dense(c, 6));
    set_to(&r->p.c, &to), set_from(&r->p.c, &from);
}

rl_status rl_gpu_recurrent(rl_call *c) {
    recurrent r = {.c = c};
    rl_tensor cell = {.kind = RL_ABSENT};
    RL_TRY(rl_recurrent_read(c, &r.n));
    if (!takes(c, &r.n)) return rl_call_decline(c);
    int64_t dim[] = {r.n.ndir, r.n.batch, r.n.count * r.n.hidden}, units[] = {dim[0], dim[1], r.n.hidden};
    r.type = rl_call_in(c, 0)->dtype, r.few = r.n.batch <= RL_RECURRENT_FEW && few_kernel(r.type) != RL_NGPU;
    set_params(&r);
    RL_TRY(multiply_inputs(&r));
    if (c->declined) return RL_OK;
    make_steps(&r);
    make_states(&r, &cell);
    r.weights = *dense(c, 2), r.p.weights = rl_data(&r.weights);
    if (!r.few) r.product = *rl_call_temp(c, r.type, 3, dim), r.p.product = rl_data(&r.product);
    if (c->arg == RL_GRU && !r.n.linear) r.reset = *rl_call_temp(c, r.type, 3, units);
    RL_TRY(run_steps(&r));
    if (cell.kind == RL_ABSENT || cell.dtype == r.type || !rl_call_wants(c, 2)) return RL_OK;
    return rl_gpu_cast_to(c, rl_call_make(c, 2, r.type, 3, cell.dim), &cell);
}
