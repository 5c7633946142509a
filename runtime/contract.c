/* The caller's buffers as inputs and outputs: see contract.h. */
#include "contract.h"

rl_status rl_buffer_check(rl_ctx *ctx, const char *name, const rl_buffer *b, bool written) {
    rl_error e = {""};
    rl_status s = rl_desc_check(&b->layout, written, &e);
    if (s != RL_OK) return rl_fail(ctx, s, "'%.100s': %s", name, e.text);
    if (b->nbyte < (size_t)rl_desc_bytes(&b->layout))
        return rl_fail(ctx, RL_EUSAGE, "'%.100s': the buffer has %zu bytes, its layout needs %lld", name, b->nbyte,
                       (long long)rl_desc_bytes(&b->layout));
    return RL_OK;
}

static rl_tensor view_of(rl_rt *rt, const rl_buffer *b) {
    const rl_desc *d = &b->layout;
    rl_tensor t = rl_tensor_borrow(rt, (rl_dtype)d->dtype, d->rank, d->dim, b->p, b->nbyte);
    for (uint32_t a = 0; a < d->rank; a++) t.stride[a] = d->digit[a].stride;
    t.offset = d->offset;
    return t;
}

rl_status rl_buffer_read(rl_rt *rt, const rl_buffer *b, rl_tensor *out) {
    const rl_desc *d = &b->layout;
    rl_desc row;
    rl_error e = {""};
    if (rl_desc_is_strided(d)) {
        *out = view_of(rt, b);
        return RL_OK;
    }
    rl_status s = rl_desc_strided(d->dtype, d->rank, d->dim, NULL, 0, &row, &e);
    if (s != RL_OK) return rl_fail(rt->ctx, s, "%s", e.text);
    *out = rl_tensor_new(rt, (rl_dtype)d->dtype, d->rank, d->dim);
    s = rl_desc_convert(&row, out->mem->p, out->mem->nbyte, d, b->p, b->nbyte, &e);
    return s == RL_OK ? s : rl_fail(rt->ctx, s, "%s", e.text);
}

rl_tensor rl_buffer_place(rl_rt *rt, const rl_buffer *b) {
    return b->p && rl_desc_is_strided(&b->layout) ? view_of(rt, b) : (rl_tensor){0};
}

static bool same_type(const rl_desc *d, const rl_tensor *t) {
    return t->kind == RL_TENSOR && (rl_dtype)d->dtype == t->dtype && d->rank == t->rank &&
        rl_same_bytes(d->dim, t->dim, d->rank * sizeof *d->dim);
}

static rl_status write_blocks(rl_rt *rt, const rl_buffer *b, const rl_tensor *t) {
    rl_desc row;
    rl_error e = {""};
    rl_tensor dense = rl_contiguous(rt, t);
    rl_status s = rl_desc_strided((int32_t)t->dtype, t->rank, t->dim, NULL, 0, &row, &e);
    if (s == RL_OK) s = rl_desc_convert(&b->layout, b->p, b->nbyte, &row, rl_data(&dense), (size_t)rl_desc_bytes(&row), &e);
    rl_tensor_drop(&dense);
    return s == RL_OK ? s : rl_fail(rt->ctx, s, "%s", e.text);
}

/* Made there: rl_buffer_place. */
static bool is_there(const rl_tensor *t, const rl_tensor *to) {
    bool same = t->mem->p == to->mem->p && t->offset == to->offset;
    for (uint32_t a = 0; a < t->rank; a++) same = same && (t->dim[a] == 1 || t->stride[a] == to->stride[a]);
    return same;
}

rl_status rl_buffer_write(rl_rt *rt, const char *name, const rl_buffer *b, const rl_tensor *t) {
    if (!same_type(&b->layout, t)) return rl_fail(rt->ctx, RL_EUSAGE, "output '%.100s' has other sizes or another type than its buffer", name);
    if (!rl_desc_is_strided(&b->layout)) return write_blocks(rt, b, t);
    rl_tensor to = view_of(rt, b);
    if (!is_there(t, &to)) rl_tensor_move(rt, &to, t);
    rl_tensor_drop(&to);
    return RL_OK;
}
