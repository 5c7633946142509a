/* Control flow: nodes with bodies, but for Scan (ref_scan.c). */
#include <string.h>

#include "element.h"
#include "kernels.h"
#include "stack.h"

rl_status rl_ref_if(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *t = rl_call_as(c, 0, RL_BOOL);
    if (rl_numel(t) != 1) return rl_call_fail(c, RL_EMODEL, "the condition has %lld elements", (long long)rl_numel(t));
    rl_tensor *out = rl_new(c->tmp, rl_tensor, c->nout);
    RL_TRY(rl_call_body(c, rl_is_true(t, 0) ? "then_branch" : "else_branch", NULL, 0, out, c->nout));
    for (uint32_t i = 0; i < c->nout; i++) rl_call_give(c, i, out[i]);
    return RL_OK;
}

/* ---- stacking ---- */

rl_tensor rl_view_without(const rl_tensor *t, uint32_t axis) {
    rl_tensor x = *t;
    x.rank--;
    memmove(x.dim + axis, x.dim + axis + 1, (x.rank - axis) * sizeof *x.dim);
    memmove(x.stride + axis, x.stride + axis + 1, (x.rank - axis) * sizeof *x.stride);
    return x;
}

static rl_status stack_dims(rl_call *c, const rl_tensor *item, int64_t n, int64_t axis, uint32_t *at, int64_t *dim) {
    RL_TRY(rl_call_axis(c, axis, item->rank + 1, at));
    if (item->rank + 1 > RL_RANK) return rl_call_fail(c, RL_ELIMIT, "rank over the limit of %d", RL_RANK);
    memcpy(dim, item->dim, *at * sizeof *dim);
    memcpy(dim + *at + 1, item->dim + *at, (item->rank - *at) * sizeof *dim);
    dim[*at] = n;
    return rl_call_dims(c, item->rank + 1, dim);
}

rl_status rl_call_stack(rl_call *c, uint32_t output, const rl_tensor *item, uint32_t n, int64_t axis, bool reversed) {
    uint32_t at;
    int64_t dim[RL_RANK];
    for (uint32_t i = 0; i < n; i++)
        if (item[i].kind != RL_TENSOR || item[i].dtype != item->dtype || !rl_same_dims(&item[i], item))
            return rl_call_fail(c, RL_EMODEL, "output %u: its parts differ in type or shape", output);
    RL_TRY(stack_dims(c, item, n, axis, &at, dim));
    rl_tensor *y = rl_call_make(c, output, item->dtype, item->rank + 1, dim);
    for (uint32_t i = 0; i < n; i++) {
        rl_tensor slice = rl_view_slice(y, at, reversed ? n - 1 - i : i, 1, 1), to = rl_view_without(&slice, at);
        rl_tensor_move(c->rt, &to, &item[i]);
    }
    return RL_OK;
}

/* Dims that the body does not declare are 0: there are no elements anyway. */
static rl_status stack_none(rl_call *c, uint32_t output, int64_t axis, const rl_graph *body, uint32_t port) {
    const rl_valinfo *v = rl_val(body, body->output.p[port]);
    rl_tensor item = {.kind = RL_TENSOR, .dtype = v->dtype, .rank = v->rank == RL_NORANK ? 0 : v->rank};
    uint32_t at;
    int64_t dim[RL_RANK];
    if (v->dtype == RL_UNDEF || item.rank > RL_RANK)
        return rl_call_fail(c, RL_ELIMIT, "output %u: no runs, and its type is not declared", output);
    for (uint32_t i = 0; i < item.rank; i++) item.dim[i] = RL_MAX(v->dim[i], 0);
    RL_TRY(stack_dims(c, &item, 0, axis, &at, dim));
    rl_call_make(c, output, item.dtype, item.rank + 1, dim);
    return RL_OK;
}

rl_status rl_call_stack_made(rl_call *c, uint32_t output, rl_tensors *items, int64_t axis, bool reversed, const rl_graph *body,
                             uint32_t port) {
    if (!items->n) return stack_none(c, output, axis, body, port);
    RL_TRY(rl_call_stack(c, output, items->p, items->n, axis, reversed));
    for (uint32_t i = 0; i < items->n; i++) rl_tensor_drop(&items->p[i]);
    return RL_OK;
}

/* ---- Loop ---- */

static rl_status read_bool(rl_call *c, const rl_tensor *t, bool *x) {
    if (t->kind != RL_TENSOR || t->dtype != RL_BOOL || rl_numel(t) != 1) return rl_call_fail(c, RL_EMODEL, "the condition is not one bool");
    *x = rl_is_true(t, 0);
    return RL_OK;
}

typedef struct { uint32_t nstate, nscan; rl_tensor *in, *out; rl_tensors *made; } loop;

/* One run of the body: its states become the next run's inputs. */
static rl_status loop_once(rl_call *c, loop *l, int64_t i, bool *more) {
    uint32_t nin = 2 + l->nstate, nout = 1 + l->nstate + l->nscan;
    l->in[0] = rl_tensor_new(c->rt, RL_I64, 0, NULL);
    l->in[1] = rl_tensor_new(c->rt, RL_BOOL, 0, NULL);
    *(int64_t *)rl_data(&l->in[0]) = i;
    *(bool *)rl_data(&l->in[1]) = *more;
    RL_TRY(rl_call_body(c, "body", l->in, nin, l->out, nout));
    RL_TRY(read_bool(c, &l->out[0], more));
    rl_tensor_drop(&l->out[0]);
    for (uint32_t k = 0; k < nin; k++) rl_tensor_drop(&l->in[k]);
    for (uint32_t k = 0; k < l->nstate; k++) l->in[2 + k] = l->out[1 + k];
    for (uint32_t k = 0; k < l->nscan; k++) rl_push(c->tmp, l->made[k], l->out[1 + l->nstate + k]);
    return RL_OK;
}

rl_status rl_ref_loop(rl_call *c) {
    const rl_graph *body = rl_call_graph(c, "body");
    loop l = {.nstate = c->nin > 2 ? c->nin - 2 : 0};
    int64_t most;
    bool more = true;
    RL_TRY(rl_call_int(c, 0, INT64_MAX, &most));
    if (rl_call_in(c, 1)) RL_TRY(read_bool(c, rl_call_in(c, 1), &more));
    if (!body || body->input.n != 2 + l.nstate || body->output.n < 1 + l.nstate || c->nout > body->output.n - 1)
        return rl_call_fail(c, RL_EMODEL, "the body's inputs and outputs do not fit the node's");
    l.nscan = body->output.n - 1 - l.nstate;
    l.in = rl_new(c->tmp, rl_tensor, body->input.n);
    l.out = rl_new(c->tmp, rl_tensor, body->output.n);
    l.made = rl_new(c->tmp, rl_tensors, l.nscan + 1);
    for (uint32_t k = 0; k < l.nstate; k++)
        if (c->in[2 + k]) l.in[2 + k] = rl_tensor_keep(c->in[2 + k]);
    for (int64_t i = 0; i < most && more; i++) RL_TRY(loop_once(c, &l, i, &more));
    for (uint32_t k = 0; k < l.nstate; k++) rl_call_give(c, k, l.in[2 + k]);
    for (uint32_t k = 0; k < l.nscan; k++) RL_TRY(rl_call_stack_made(c, l.nstate + k, &l.made[k], 0, false, body, 1 + l.nstate + k));
    return RL_OK;
}

/* ---- SequenceMap ---- */

static rl_status map_items(rl_call *c, int64_t n, rl_tensor *in, rl_tensor *out, rl_tensors *made) {
    for (int64_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < c->nin; k++) {
            const rl_tensor *x = rl_call_in(c, k);
            if (x->kind == RL_SEQUENCE && x->dim[0] != n) return rl_call_fail(c, RL_EMODEL, "input %u: a sequence of another length", k);
            in[k] = x->kind == RL_SEQUENCE ? *rl_item(x, i) : *x;
        }
        RL_TRY(rl_call_body(c, "body", in, c->nin, out, c->nout));
        for (uint32_t k = 0; k < c->nout; k++) rl_push(c->tmp, made[k], out[k]);
    }
    return RL_OK;
}

rl_status rl_ref_sequence_map(rl_call *c) {
    const rl_graph *body = rl_call_graph(c, "body");
    RL_TRY(rl_call_need(c, RL_MAX(c->nin, 1u)));
    if (rl_call_in(c, 0)->kind != RL_SEQUENCE) return rl_call_fail(c, RL_EMODEL, "input 0 is no sequence");
    if (!body || body->input.n != c->nin || body->output.n != c->nout)
        return rl_call_fail(c, RL_EMODEL, "the body's inputs and outputs do not fit the node's");
    rl_tensors *made = rl_new(c->tmp, rl_tensors, c->nout);
    rl_tensor *in = rl_new(c->tmp, rl_tensor, c->nin), *out = rl_new(c->tmp, rl_tensor, c->nout);
    RL_TRY(map_items(c, rl_call_in(c, 0)->dim[0], in, out, made));
    for (uint32_t k = 0; k < c->nout; k++) {
        rl_dtype t = made[k].n ? made[k].p[0].dtype : rl_val(body, body->output.p[k])->dtype;
        rl_call_give(c, k, rl_sequence_new(c->rt, t, made[k].p, made[k].n));
    }
    return RL_OK;
}
