/* What a kernel asks of its node: inputs, outputs, attributes, messages (rt.h). */
#include <stdio.h>
#include <string.h>

#include "../src/onnx.h"
#include "../src/onnx_fields.h"
#include "../src/wire.h"
#include "device.h"
#include "exec.h"
#include "fast.h"
#include "home.h"
#include "kernels.h"
#include "plan.h"

const rl_tensor *rl_call_in(const rl_call *c, uint32_t i) {
    return i < c->nin && c->in[i] && c->in[i]->kind != RL_ABSENT ? c->in[i] : NULL;
}

rl_tensor *rl_call_hold(rl_call *c, rl_tensor t) {
    rl_tensor *p = rl_new(c->tmp, rl_tensor, 1);
    *p = t;
    rl_push(c->tmp, c->step->temp, p);
    return p;
}

const rl_tensor *rl_call_dense(rl_call *c, uint32_t i) {
    const rl_tensor *t = rl_call_in(c, i);
    if (!t || t->kind != RL_TENSOR || rl_is_dense(t)) return t;
    return rl_call_hold(c, rl_contiguous(c->rt, t));
}

/* Zeros stand for it until the kernel is done; then the run fails. */
static const rl_tensor *no_number(rl_call *c, uint32_t i, rl_dtype t) {
    const rl_tensor *x = rl_call_in(c, i);
    c->wrong = i + 1;
    rl_tensor *y = x->kind == RL_TENSOR ? rl_call_host_temp(c, t, x->rank, x->dim) : rl_call_host_temp(c, t, 0, NULL);
    if (t != RL_STRING) memset(y->mem->p, 0, y->mem->nbyte);
    return y;
}

const rl_tensor *rl_call_as(rl_call *c, uint32_t i, rl_dtype t) {
    const rl_tensor *x = rl_call_in(c, i);
    bool same = !x || (x->kind == RL_TENSOR && x->dtype == t);
    if (!same && (x->kind != RL_TENSOR || !rl_is_number(x->dtype) || !rl_is_number(t))) return no_number(c, i, t);
    if (x && x->mem && c->rt->device && x->mem->on == c->rt->device) return rl_device_number(c, i, t);
    if (same && (!x || rl_is_dense(x))) return x;
    rl_tensor *y = rl_call_host_temp(c, t, x->rank, x->dim);
    rl_convert(c->rt, y, x, true);
    return y;
}

rl_tensor *rl_call_temp(rl_call *c, rl_dtype t, uint32_t rank, const int64_t *dim) {
    return rl_call_hold(c, rl_tensor_new(c->rt, t, rank, dim));
}

rl_tensor *rl_call_host_temp(rl_call *c, rl_dtype t, uint32_t rank, const int64_t *dim) {
    const rl_backend *was = c->rt->on;
    if (c->rt->device) c->rt->on = &rl_backend_cpu;
    rl_tensor *y = rl_call_temp(c, t, rank, dim);
    c->rt->on = was;
    return y;
}

bool rl_call_wants(const rl_call *c, uint32_t i) {
    return i < c->nout && rl_has(c->node->out[i]);
}

void rl_call_give(rl_call *c, uint32_t i, rl_tensor t) {
    if (i >= c->nout) {
        rl_tensor_drop(&t);
        return;
    }
    rl_tensor_drop(&c->out[i]);
    rl_tensor_set(&c->out[i], &t);
}

/* Does x have these dims, one after the other in this order of memory (NULL: row-major)? */
static bool lies_so(const rl_tensor *x, uint32_t rank, const int64_t *dim, const int64_t *perm) {
    if (x->kind != RL_TENSOR || x->rank != rank || !rl_same_bytes(x->dim, dim, rank * sizeof *dim)) return false;
    rl_tensor turned = perm ? rl_view_transpose(x, perm) : *x;
    return rl_is_dense(&turned);
}

/* Where the caller wants output i, if it lies so there; else NULL. */
static const rl_tensor *wanted_place(const rl_call *c, uint32_t i, rl_dtype t, uint32_t rank, const int64_t *dim, const int64_t *perm) {
    const rl_tensor *all = c->frame->up ? NULL : c->frame->x->place;
    if (!all || c->rt->device || !rl_call_wants(c, i)) return NULL; /* it is the host's */
    const rl_tensor *at = &all[c->node->out[i].i];
    return at->dtype == t && lies_so(at, rank, dim, perm) ? at : NULL;
}

rl_tensor rl_call_make_value(const rl_call *c, rl_value v, rl_dtype t, uint32_t rank, const int64_t *dim, const int64_t *perm) {
    int64_t turned[RL_RANK], back[RL_RANK];
    for (uint32_t k = 0; perm && k < rank; k++) turned[k] = dim[perm[k]], back[perm[k]] = k;
    if (perm) dim = turned;
    rl_memplan *p = c->frame->up || c->rt->branches ? NULL : c->frame->x->plan;
    uint32_t b = p && p->arena && rl_has(v) ? p->block_of[v.i] : RL_NONE;
    if (b != RL_NONE && p->arena->on != c->rt->on) b = RL_NONE;
    rl_tensor y = b == RL_NONE ? rl_tensor_new(c->rt, t, rank, dim) : rl_tensor_new_in(c->rt, p->arena, p->block[b].at, t, rank, dim);
    if (b != RL_NONE && !y.mem->base) p->missed++;
    return perm ? rl_view_transpose(&y, back) : y;
}

/* Where the caller wants it, in the buffer of a Concat, or where the plan has a place for it. */
static rl_tensor new_output(const rl_call *c, uint32_t i, rl_dtype t, uint32_t rank, const int64_t *dim, const int64_t *perm) {
    const rl_tensor *at = wanted_place(c, i, t, rank, dim, perm);
    rl_tensor home;
    if (at) return rl_tensor_keep(at);
    if (rl_home_take(c, i, t, rank, dim, perm, &home)) return home;
    return rl_call_make_value(c, i < c->nout ? c->node->out[i] : RL_NOVALUE, t, rank, dim, perm);
}

rl_tensor *rl_call_make_in(rl_call *c, uint32_t i, rl_dtype t, uint32_t rank, const int64_t *dim, const int64_t *perm) {
    rl_tensor y = new_output(c, i, t, rank, dim, perm);
    if (i >= c->nout) return rl_call_hold(c, y);
    rl_call_give(c, i, y);
    return &c->out[i];
}

rl_tensor *rl_call_make(rl_call *c, uint32_t i, rl_dtype t, uint32_t rank, const int64_t *dim) {
    return rl_call_make_in(c, i, t, rank, dim, NULL);
}

/* A value of this frame that no later node reads: constants, outer values and graph outputs are none. */
static bool ends_here(const rl_call *c, uint32_t i) {
    uint32_t v = c->node->in[i].i;
    if (c->in[i] != &c->frame->slot[v]) return false;
    for (uint32_t k = 0; k < c->step->last.n; k++)
        if (c->step->last.p[k] == v) return true;
    return false;
}

void rl_call_fetch(const rl_call *c) {
    for (uint32_t i = 0; i < c->nin; i++)
        if (rl_call_in(c, i)) rl_storage_fetch(c->in[i]->mem);
}

/* Where nobody else reads them. */
void rl_call_packed(const rl_call *c, uint32_t i) {
    rl_storage *s = c->in[i]->mem;
    if (s->readers != 1) return;
    rl_storage_unfetch(s);
    if (s->borrowed) rl_onnx_forget(c->g, s->p, s->narrow ? s->nbyte / sizeof(float) * sizeof(uint16_t) : s->nbyte);
}

/* Nobody else reads input i or will: an output of type t may take its storage. */
static bool may_write(const rl_call *c, uint32_t i, rl_dtype t) {
    const rl_tensor *x = rl_call_in(c, i);
    return x && x->kind == RL_TENSOR && x->mem->on == c->rt->on && x->mem->ref == 1 && !c->rt->branches && !x->mem->borrowed && ends_here(c, i) &&
           rl_elem_bits(x->dtype) == rl_elem_bits(t) && (x->dtype == RL_STRING) == (t == RL_STRING);
}

rl_tensor *rl_call_make_over_in(rl_call *c, uint32_t nover, rl_dtype t, uint32_t rank, const int64_t *dim, const int64_t *perm) {
    bool placed = wanted_place(c, 0, t, rank, dim, perm);
    rl_tensor home;
    if (!placed && rl_home_take(c, 0, t, rank, dim, perm, &home)) {
        rl_call_give(c, 0, home);
        return &c->out[0];
    }
    for (uint32_t i = 0; i < RL_MIN(nover, c->nin) && !placed; i++) {
        const rl_tensor *x = rl_call_in(c, i);
        if (!x || !may_write(c, i, t) || !lies_so(x, rank, dim, perm)) continue;
        rl_tensor y = *x;
        y.dtype = t;
        rl_call_share(c, 0, y);
        c->rt->made += x->mem->nbyte;
        c->over = true;
        return &c->out[0];
    }
    return rl_call_make_in(c, 0, t, rank, dim, perm);
}

rl_tensor *rl_call_make_over(rl_call *c, uint32_t nover, rl_dtype t, uint32_t rank, const int64_t *dim) {
    return rl_call_make_over_in(c, nover, t, rank, dim, NULL);
}

void rl_call_share(rl_call *c, uint32_t i, rl_tensor view) {
    if (view.mem) view.mem->ref++;
    rl_call_give(c, i, view);
}

rl_status (rl_call_fail)(const rl_call *c, rl_status status, const char *fmt, ...) {
    char text[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return rl_fail(c->g->ctx, status, "%s: %s", rl_node_label(c->node).s, text);
}

rl_status rl_call_need(const rl_call *c, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!rl_call_in(c, i)) return rl_call_fail(c, RL_EMODEL, "input %u is missing", i);
    return RL_OK;
}

rl_status rl_call_ints(rl_call *c, const char *name, uint32_t slot, const int64_t **x, uint32_t *n) {
    *x = NULL;
    *n = 0;
    if (slot != RL_NONE && rl_call_in(c, slot)) {
        const rl_tensor *t = rl_call_as(c, slot, RL_I64);
        *n = (uint32_t)rl_numel(t);
        *x = rl_data(t);
        return t->rank <= 1 ? RL_OK : rl_call_fail(c, RL_EMODEL, "input %u has rank %u, wants 1", slot, t->rank);
    }
    const rl_attr *a = name ? rl_attr_find(c->node, name) : NULL;
    if (!a) return RL_OK;
    if (a->kind != RL_ATTR_INTS && a->kind != RL_ATTR_INT) return rl_call_fail(c, RL_EMODEL, "attribute '%s' is no list of integers", name);
    *n = a->kind == RL_ATTR_INT ? 1 : a->n;
    *x = a->kind == RL_ATTR_INT ? &a->i : a->ints;
    return RL_OK;
}

rl_status rl_call_tensor(rl_call *c, const char *name, const rl_tensor **out) {
    const rl_attr *a = rl_attr_find(c->node, name);
    *out = NULL;
    if (!a) return RL_OK;
    if (a->kind != RL_ATTR_TENSOR) return rl_call_fail(c, RL_EMODEL, "attribute '%s' is no tensor", name);
    rl_const k = *a->tensor;
    const rl_span *s = NULL;
    if (!k.data && a->raw.p) RL_TRY(rl_onnx_tensor((rl_graph *)(uintptr_t)c->g, rl_wire_part(a->raw, ATTR_T), &k, &s));
    if (!k.data && !s) return rl_call_fail(c, RL_ELIMIT, "attribute '%s': a tensor of this kind does not run", name);
    RL_TRY(rl_call_dims(c, k.rank, k.dim));
    rl_tensor *t = rl_call_temp(c, k.dtype, k.rank, k.dim);
    for (int64_t i = 0; s && i < rl_numel(t); i++) ((rl_str *)rl_data(t))[i] = rl_intern(c->g->ctx, (const char *)s[i].p, s[i].n);
    if (!s && k.nbyte) memcpy(rl_data(t), k.data, k.nbyte);
    *out = t;
    return RL_OK;
}

rl_status rl_call_axis(const rl_call *c, int64_t axis, uint32_t rank, uint32_t *out) {
    int64_t r = rank;
    if (axis < -r || axis >= r) return rl_call_fail(c, RL_EMODEL, "axis %lld is out of range for rank %u", (long long)axis, rank);
    *out = (uint32_t)(axis < 0 ? axis + r : axis);
    return RL_OK;
}

rl_status rl_call_attr_axis(const rl_call *c, const char *name, int64_t dflt, uint32_t *out) {
    RL_TRY(rl_call_need(c, 1));
    return rl_call_axis(c, rl_attr_int(c->node, name, dflt), c->in[0]->rank, out);
}

rl_status rl_call_dims(const rl_call *c, uint32_t rank, const int64_t *dim) {
    int64_t n = 16; /* bytes of the largest element */
    if (rank > RL_RANK) return rl_call_fail(c, RL_ELIMIT, "rank %u is over the limit of %d", rank, RL_RANK);
    for (uint32_t i = 0; i < rank; i++) {
        if (dim[i] < 0) return rl_call_fail(c, RL_EMODEL, "dim %u is %lld", i, (long long)dim[i]);
        if (__builtin_mul_overflow(n, RL_MAX(dim[i], 1), &n)) return rl_call_fail(c, RL_ELIMIT, "more elements than can be counted");
    }
    return RL_OK;
}

rl_status rl_call_broadcast(const rl_call *c, uint32_t *rank, int64_t *dim, const rl_tensor *t) {
    if (t->rank > *rank) {
        uint32_t lead = t->rank - *rank;
        memmove(dim + lead, dim, *rank * sizeof *dim);
        for (uint32_t i = 0; i < lead; i++) dim[i] = 1;
        *rank = t->rank;
    }
    for (uint32_t i = 0; i < t->rank; i++) {
        int64_t *d = &dim[*rank - t->rank + i], x = t->dim[i];
        if (*d == 1) *d = x;
        else if (x != 1 && x != *d)
            return rl_call_fail(c, RL_EMODEL, "dims %lld and %lld do not broadcast", (long long)*d, (long long)x);
    }
    return RL_OK;
}
