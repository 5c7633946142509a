/* What lies where, and one node (see device.h); runs of a whole graph: device_run.c. */
#include "device_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fast.h"
#include "kernels.h"
#include "native.h"

/* A device that is lost gives no memory, either, and does not say so there. */
_Noreturn void rl_device_no_memory(rl_rt *rt, size_t nbyte) {
    char why[sizeof rt->ctx->error];
    rl_device_end_recording(rt);
    rl_label at = rt->at ? rl_node_label(rt->at) : (rl_label){""};
    bool lost = rt->device->sync(rt) == RL_EINTERNAL;
    memcpy(why, rt->ctx->error, sizeof why);
    if (lost) rl_fail(rt->ctx, RL_EINTERNAL, "%s%s%.490s", at.s, rt->at ? ": " : "", why);
    else rl_fail(rt->ctx, RL_ENOMEM, "%s%sno memory left on the device for %zu bytes", at.s, rt->at ? ": " : "", nbyte);
    rt->at = NULL;
    rt->on = &rl_backend_cpu;
    rl_no_memory_for(rt->ctx);
}

/* ---- copies between the two ---- */

static void note(rl_rt *rt, rl_status s) {
    if (s != RL_OK && rt->failed == RL_OK) rt->failed = s;
}

static rl_tensor new_on(rl_rt *rt, const rl_backend *b, const rl_tensor *like) {
    const rl_backend *was = rt->on;
    rt->on = b;
    rl_tensor y = rl_tensor_new(rt, like->dtype, like->rank, like->dim);
    rt->on = was;
    return y;
}

static void copy_across(rl_rt *rt, const rl_tensor *dst, const rl_tensor *src) {
    size_t nbyte = rl_bytes_of(src->dtype, rl_numel(src));
    if (!nbyte) return;
    if (dst->mem->on == rt->device) {
        note(rt, rt->device->put(rt, rl_data(dst), rl_data(src), nbyte));
        rt->put += nbyte;
    } else {
        note(rt, rt->device->get(rt, rl_data(dst), rl_data(src), nbyte));
        rt->got += nbyte;
    }
}

rl_tensor rl_tensor_on(rl_rt *rt, const rl_tensor *t, const rl_backend *b) {
    /* The CPU's memory is of several kinds: a constant's bytes that were not aligned in the file lie in pages. */
    if (!rt->device || t->kind != RL_TENSOR || t->dtype == RL_STRING || (t->mem->on == rt->device) == (b == rt->device)) return rl_tensor_keep(t);
    const rl_backend *was = rt->on;
    rt->on = t->mem->on;
    rl_tensor dense = rl_contiguous(rt, t);
    rt->on = was;
    rl_tensor y = new_on(rt, b, t);
    copy_across(rt, &y, &dense);
    rl_tensor_drop(&dense);
    return y;
}

/* ---- what goes there once ---- */

static void *keep(rl_rt *rt, const void *host, size_t nbyte, rl_keeping how) {
    void *p = rt->device->keep(rt, host, nbyte, how);
    if (!p) rl_device_no_memory(rt, nbyte);
    return p;
}

void *rl_call_keep(rl_call *c, const void *host, size_t nbyte, bool lasts) {
    return keep(c->rt, host, nbyte, lasts ? RL_KEEP_CONSTANT : RL_KEEP_COPY);
}

/* t, whose bytes are kept at p. */
static rl_tensor kept_there(rl_rt *rt, const rl_tensor *t, void *p, size_t nbyte) {
    rl_tensor y = rl_tensor_borrow(rt, t->dtype, t->rank, t->dim, p, nbyte);
    y.mem->on = rt->device;
    return y;
}

/* A constant's storage goes there once, as it is: a view of it stays one. */
static rl_tensor kept_constant(rl_rt *rt, const rl_tensor *t) {
    rl_tensor y = kept_there(rt, t, keep(rt, t->mem->p, t->mem->nbyte, RL_KEEP_CONSTANT), t->mem->nbyte);
    memcpy(y.stride, t->stride, sizeof y.stride);
    y.offset = t->offset;
    return y;
}

const rl_tensor *rl_call_kept(rl_call *c, const rl_tensor *t) {
    return rl_call_hold(c, kept_constant(c->rt, t));
}

/* ---- moves ---- */

static void move_there(rl_rt *rt, const rl_tensor *dst, const rl_tensor *src) {
    rt->moved += rl_bytes_of(dst->dtype, rl_numel(dst));
    note(rt, rt->device->move(rt, dst, src));
}

bool rl_device_moves(rl_rt *rt, const rl_tensor *dst, const rl_tensor *src) {
    const rl_backend *d = rt->device, *to = dst->mem->on, *from = src->mem->on;
    if (!d || (to != d && from != d)) return false;
    if (to == from) {
        move_there(rt, dst, src);
        return true;
    }
    if (to == d && src->mem->lasts && rl_numel(src)) {
        rl_tensor there = kept_constant(rt, src);
        move_there(rt, dst, &there);
        rl_tensor_drop(&there);
        return true;
    }
    if (rl_is_dense(dst) && rl_is_dense(src)) {
        copy_across(rt, dst, src);
        return true;
    }
    rl_tensor there = rl_tensor_on(rt, src, to);
    rl_tensor_move(rt, dst, &there);
    rl_tensor_drop(&there);
    return true;
}

bool rl_device_moves_all(rl_rt *rt, uint32_t n, const rl_tensor *dst, const rl_tensor *src) {
    for (uint32_t i = 0; i < n; i++)
        if (!rt->device || dst[i].mem->on != rt->device || src[i].mem->on != rt->device) return false;
    for (uint32_t i = 0; i < n; i++) rt->moved += rl_bytes_of(dst[i].dtype, rl_numel(&dst[i]));
    note(rt, rt->device->move_all(rt, n, dst, src));
    return true;
}

bool rl_device_fills(rl_rt *rt, const rl_tensor *dst, const void *value) {
    if (!rt->device || dst->mem->on != rt->device) return false;
    note(rt, rt->device->fill(rt, dst, value));
    return true;
}

bool rl_device_converts(rl_rt *rt, const rl_tensor *dst, const rl_desc *to, const rl_tensor *src, const rl_desc *from) {
    const rl_backend *d = rt->device;
    if (!d || !d->convert || dst->mem->on != d || src->mem->on != d || rl_numel(dst) >= INT32_MAX) return false;
    if (d->convert(rt, to, dst->mem->p, from, src->mem->p) != RL_OK) return false;
    rt->moved += rl_bytes_of(dst->dtype, rl_numel(dst));
    return true;
}

rl_status rl_device_open(rl_rt *rt) {
    return rt->device && !rt->state ? rt->device->open(rt) : RL_OK;
}

/* ---- inputs ---- */

enum { KNOWN = 1 << 16 /* bytes; what is larger is kept only where it is a constant */ };

/* What the CPU made in the device's place goes there for all that read it. */
static const rl_tensor *go_back(rl_call *c, uint32_t i) {
    rl_tensor *slot = &c->frame->slot[c->node->in[i].i], there = rl_tensor_on(c->rt, slot, c->rt->device);
    rl_tensor_drop(slot);
    *slot = there;
    return slot;
}

const rl_tensor *rl_call_here(rl_call *c, uint32_t i) {
    const rl_tensor *t = rl_call_in(c, i);
    if (!t || t->kind != RL_TENSOR || t->mem->on == c->rt->device) return t;
    if (t->mem->came && t == &c->frame->slot[c->node->in[i].i]) return go_back(c, i);
    size_t nbyte = rl_bytes_of(t->dtype, rl_numel(t));
    if (nbyte && t->mem->lasts) return rl_call_kept(c, t);
    const rl_backend *was = c->rt->on;
    c->rt->on = &rl_backend_cpu;
    rl_tensor dense = rl_contiguous(c->rt, t);
    c->rt->on = was;
    void *p = nbyte && nbyte <= KNOWN ? c->rt->device->keep(c->rt, rl_data(&dense), nbyte, RL_KEEP_IF_ROOM) : NULL;
    rl_tensor y = p ? kept_there(c->rt, &dense, p, nbyte) : rl_tensor_on(c->rt, &dense, c->rt->device);
    rl_tensor_drop(&dense);
    return rl_call_hold(c, y);
}

const rl_tensor *rl_here_dense(rl_call *c, const rl_tensor *t) {
    return !t || rl_is_dense(t) ? t : rl_call_hold(c, rl_contiguous(c->rt, t));
}

const rl_tensor *rl_device_number(rl_call *c, uint32_t i, rl_dtype t) {
    const rl_tensor *x = rl_call_hold(c, rl_tensor_on(c->rt, rl_call_in(c, i), &rl_backend_cpu));
    if (x->kind != RL_TENSOR || x->dtype == t) return x;
    rl_tensor *y = rl_call_host_temp(c, t, x->rank, x->dim);
    rl_convert(c->rt, y, x, true);
    return y;
}

/* ---- one node ---- */

bool rl_device_has(const rl_rt *rt, const rl_kernel *k) {
    const rl_backend *d = rt->device;
    return d && (k == d->chain || (k >= d->kernel && k < d->kernel + d->nkernel));
}

static bool is_there(const rl_call *c, const rl_tensor *t) {
    return t && t->kind == RL_TENSOR && t->mem->on == c->rt->device;
}

static bool any_there(const rl_call *c) {
    for (uint32_t i = 0; i < c->nin; i++)
        if (is_there(c, rl_call_in(c, i))) return true;
    return false;
}

static bool any_came(const rl_call *c) {
    for (uint32_t i = 0; i < c->nin; i++)
        if (rl_call_in(c, i) && rl_call_in(c, i)->mem->came) return true;
    return false;
}

bool rl_device_wants(const rl_call *c) {
    return any_there(c) || any_came(c);
}

bool rl_device_takes(const rl_tensor *t) {
    return t->kind == RL_TENSOR && t->dtype != RL_STRING && !(t->dtype == RL_I64 && t->rank <= 1 && rl_numel(t) <= 8);
}

void rl_call_note(rl_call *c, const char *fmt, ...) {
    char text[400];
    va_list ap;
    if (c->step->note) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    c->step->note = rl_copy(&c->frame->x->g->mem, text, strlen(text) + 1);
}

bool rl_call_noted(const rl_call *c) {
    return c->step->note != NULL;
}

bool rl_device_failed(rl_status s) {
    return s == RL_EINTERNAL || s == RL_ENOMEM;
}

/* How the node's kernel ended; what the device says gets the node's name, and what went wrong there before. */
static rl_status done(rl_rt *rt, const rl_call *c, rl_status s) {
    char why[500];
    rl_label label = rl_node_label(c->node);
    rt->on = &rl_backend_cpu;
    if (s == RL_OK) s = rt->failed;
    if (!rl_device_failed(s) || strncmp(rt->ctx->error, label.s, strlen(label.s)) == 0) return s;
    snprintf(why, sizeof why, "%.490s", rt->ctx->error);
    return rl_call_fail(c, s, "%s%s%.300s%s", why, c->step->note ? " (before that: " : "", c->step->note ? c->step->note : "", c->step->note ? ")" : "");
}

/* After a failure: is the node the CPU's from now on? Not where its inputs may be spoilt, or the device does not answer any more. */
static bool leaves(rl_call *c) {
    rl_rt *rt = c->rt;
    rl_label label = rl_node_label(c->node);
    char why[sizeof rt->ctx->error];
    if (c->over) return false;
    memcpy(why, rt->ctx->error, sizeof why);
    if (rt->device->sync(rt) != RL_OK) {
        memcpy(rt->ctx->error, why, sizeof why);
        return false;
    }
    rt->failed = RL_OK;
    for (uint32_t i = 0; i < c->nout; i++) rl_tensor_drop(&c->out[i]);
    size_t skip = strncmp(why, label.s, strlen(label.s)) == 0 ? strlen(label.s) + 2 : 0; /* "label: " */
    rl_call_note(c, "%s", why + skip);
    c->step->left = true;
    return true;
}

/* A library's step that launched own kernels as well is not the library's alone: what follows a convolution that cuDNN has no name for, say. */
static void note_own(rl_step *s, const rl_rt *rt, uint64_t launched) {
    char both[80];
    if (rt->ctx->launched == launched || strcmp(s->ran, rt->device->name) == 0) return;
    snprintf(both, sizeof both, "%s+own", s->ran);
    s->ran = rl_internz(rt->ctx, both);
}

rl_status rl_device_kernel(rl_step *s, rl_call *c, const rl_kernel *k) {
    rl_rt *rt = c->rt;
    uint64_t launched = rt->ctx->launched;
    rt->on = rt->device;
    c->arg = k->arg;
    c->declined = false;
    s->place = RL_RAN_DEVICE;
    s->ran = rt->device->name;
    rt->at = c->node;
    rl_status status = done(rt, c, s->native ? rl_native_device(c, k) : k->fn(c));
    rt->at = NULL;
    note_own(s, rt, launched);
    if (status == RL_OK && rt->stepwise && !c->declined) status = rl_device_wait(c);
    if (!rl_device_failed(status) || !leaves(c)) return status;
    c->declined = true;
    return RL_OK;
}

/* What the CPU's kernel wants with its inputs: their dims only; to look at them another way, or to move them; their elements. */
typedef enum { DIMS, MOVES, ELEMENTS } reading;

static reading reading_of(const rl_kernel *k) {
    static const struct { rl_kernel_fn *fn; reading r; } rows[] = {
        {rl_ref_shape, DIMS}, {rl_ref_size, DIMS}, {rl_ref_identity, MOVES}, {rl_ref_reshape, MOVES}, {rl_ref_flatten, MOVES},
        {rl_ref_squeeze, MOVES}, {rl_ref_unsqueeze, MOVES}, {rl_ref_transpose, MOVES}, {rl_ref_expand, MOVES}, {rl_ref_slice, MOVES},
        {rl_ref_split, MOVES}, {rl_ref_depth_space, MOVES}, {rl_ref_concat, MOVES}, {rl_ref_tile, MOVES}, {rl_ref_center_crop_pad, MOVES},
        {rl_ref_bit_cast, MOVES}, {rl_ref_reverse_sequence, MOVES}, {rl_ref_tensor_scatter, MOVES}, {rl_native_move, MOVES}, {rl_native_concat, MOVES}};
    for (size_t i = 0; i < RL_LEN(rows); i++)
        if (rows[i].fn == k->fn) return rows[i].r;
    return ELEMENTS;
}

/* On the host in the order of memory that it has there: a plan's blocks lie as it says. */
static rl_tensor brought(rl_rt *rt, const rl_tensor *t) {
    int64_t perm[RL_RANK], back[RL_RANK];
    if (!rl_memory_order(t, perm)) return rl_tensor_on(rt, t, &rl_backend_cpu);
    for (uint32_t i = 0; i < t->rank; i++) back[perm[i]] = i;
    rl_tensor dense = rl_view_transpose(t, perm), there = rl_tensor_on(rt, &dense, &rl_backend_cpu);
    return rl_view_transpose(&there, back);
}

static void bring_inputs(rl_call *c) {
    for (uint32_t i = 0; i < c->nin; i++) {
        const rl_tensor *t = rl_call_in(c, i);
        if (is_there(c, t)) ((const rl_tensor **)(uintptr_t)c->in)[i] = rl_call_hold(c, brought(c->rt, t));
    }
}

static rl_status host_kernel(rl_step *s, rl_call *c, const rl_kernel *k, reading r) {
    bool there = any_there(c), came = !c->frame->up && (any_came(c) || (there && r == ELEMENTS));
    s->place = r == ELEMENTS && (there || came) ? RL_RAN_FALLBACK : there ? RL_RAN_VIEW : RL_RAN_HOST;
    if (there && r == ELEMENTS) bring_inputs(c);
    c->rt->on = there && r == MOVES ? c->rt->device : &rl_backend_cpu;
    rl_status status = done(c->rt, c, k->fn(c));
    for (uint32_t i = 0; came && i < c->nout; i++)
        if (rl_device_takes(&c->out[i])) c->out[i].mem->came = !c->out[i].mem->borrowed;
    return status;
}

rl_status rl_device_host_kernel(rl_step *s, rl_call *c, const rl_kernel *k) {
    reading r = c->frame->up || s->left ? ELEMENTS : reading_of(k);
    rl_status status = host_kernel(s, c, k, r);
    if (r == ELEMENTS || !rl_device_failed(status) || !leaves(c)) return status;
    return host_kernel(s, c, k, ELEMENTS);
}

rl_status rl_device_mark(rl_rt *rt, uint32_t i) {
    return rt->device ? rt->device->mark(rt, i) : RL_OK;
}

rl_status rl_device_wait(rl_call *c) {
    return c->rt->device ? done(c->rt, c, c->rt->device->sync(c->rt)) : RL_OK;
}
