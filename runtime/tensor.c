/* Storages, tensors and views: see rt.h. */
#include <stdlib.h>
#include <string.h>

#include "device_internal.h"
#include "number_runs.h"

uint32_t rl_elem_bits(rl_dtype t) {
    return t == RL_STRING ? (uint32_t)(8 * sizeof(rl_str)) : rl_dtype_bits(t);
}

int64_t rl_numel(const rl_tensor *t) {
    return rl_product(t->dim, t->rank);
}

bool rl_goes_back(const rl_tensor *t) {
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dim[i] > 1 && t->stride[i] < 0) return true;
    return false;
}

size_t rl_bytes_of(rl_dtype t, int64_t numel) {
    return ((size_t)numel * rl_elem_bits(t) + 7) / 8;
}

bool rl_same_dims(const rl_tensor *a, const rl_tensor *b) {
    return a->rank == b->rank && rl_same_bytes(a->dim, b->dim, a->rank * sizeof *a->dim);
}

bool rl_is_dense(const rl_tensor *t) {
    int64_t step = 1;
    if (t->offset * rl_elem_bits(t->dtype) % 8) return false;
    for (uint32_t i = t->rank; i-- > 0;) {
        if (t->dim[i] == 0) return true;
        if (t->dim[i] != 1 && t->stride[i] != step) return false;
        step *= t->dim[i];
    }
    return true;
}

/* ---- storages ---- */

static rl_storage *storage_of(rl_rt *rt, void *p, size_t nbyte) {
    rl_storage *s = rl_host_alloc(&rt->ctx->host, sizeof *s);
    if (!s) rl_no_memory(rt->ctx);
    *s = (rl_storage){.rt = rt, .next = rt->all, .on = rt->on, .p = p, .nbyte = nbyte, .ref = 1};
    if (rt->all) rt->all->prev = s;
    rt->all = s;
    return s;
}

static void *take_bytes(rl_rt *rt, const rl_backend *on, size_t nbyte) {
    if (rt->ctx->limit && nbyte > rt->ctx->limit - RL_MIN(rt->ctx->limit, rt->live)) {
        rl_device_end_recording(rt);
        rl_over_limit(rt->ctx);
    }
    void *p = on->alloc(rt, nbyte);
    if (!p && on == rt->device) rl_device_no_memory(rt, nbyte);
    if (!p) rl_no_memory(rt->ctx);
    rt->live += nbyte;
    rt->peak = RL_MAX(rt->peak, rt->live);
    rt->high = RL_MAX(rt->high, rt->live);
    return p;
}

static rl_storage *storage_new(rl_rt *rt, size_t nbyte) {
    rl_storage *s = storage_of(rt, NULL, nbyte);
    s->p = take_bytes(rt, rt->on, nbyte);
    rt->made += nbyte;
    return s;
}

bool rl_tensor_widen(rl_rt *rt, const rl_tensor *t, rl_dtype to, rl_tensor *out) {
    if (to != RL_F32 || (t->dtype != RL_F16 && t->dtype != RL_BF16) || !t->mem->borrowed) return false;
    *out = *t;
    out->dtype = to;
    out->mem = storage_of(rt, t->mem->p, t->mem->nbyte * (sizeof(float) / sizeof(uint16_t)));
    out->mem->borrowed = out->mem->loose = true;
    out->mem->narrow = t->dtype;
    return true;
}

/* n floats of as many shorter ones, wherever these begin. */
static void read_shorter(float *to, const char *from, size_t n, rl_dtype t) {
    const rl_number_run *convert = rl_number_run_of(RL_F32, t);
    uint16_t some[2048];
    for (size_t k; n > 0; n -= k, to += k, from += k * sizeof *some) {
        k = RL_MIN(n, RL_LEN(some));
        memcpy(some, from, k * sizeof *some);
        convert->run(to, some, (int64_t)k);
    }
}

void rl_storage_fetch(rl_storage *s) {
    if (!s->loose || !s->borrowed) return;
    s->on = &rl_backend_pages;
    void *p = take_bytes(s->rt, s->on, s->nbyte);
    if (s->narrow) read_shorter(p, s->p, s->nbyte / sizeof(float), s->narrow);
    else memcpy(p, s->p, s->nbyte);
    s->source = s->p;
    s->p = p;
    s->borrowed = false;
    s->rt->constants += s->nbyte;
}

void rl_storage_unfetch(rl_storage *s) {
    if (!s->loose || s->borrowed) return;
    s->on->free(s->rt, s->p, s->nbyte);
    s->p = (void *)(uintptr_t)s->source;
    s->borrowed = true;
    s->on = &rl_backend_cpu;
    s->rt->live -= s->nbyte;
    s->rt->constants -= s->nbyte;
}

/* NULL where it does not fit or something alive is in the way. */
static rl_storage *storage_in(rl_rt *rt, rl_storage *base, size_t at, size_t nbyte) {
    char *p = (char *)base->p + at;
    if (at > base->nbyte || nbyte > base->nbyte - at) return NULL;
    for (const rl_storage *o = base->part; o; o = o->after)
        if ((char *)o->p < p + nbyte && p < (char *)o->p + o->nbyte) return NULL;
    rl_storage *s = storage_of(rt, p, nbyte);
    s->base = base;
    s->after = base->part;
    base->part = s;
    base->ref++;
    rt->made += nbyte;
    return s;
}

static void storage_drop(rl_storage *s);

static void leave_base(rl_storage *s) {
    rl_storage **link = &s->base->part;
    while (*link != s) link = &(*link)->after;
    *link = s->after;
    storage_drop(s->base);
}

static void storage_drop(rl_storage *s) {
    if (--s->ref) return;
    rl_rt *rt = s->rt;
    if (s->prev) s->prev->next = s->next;
    else rt->all = s->next;
    if (s->next) s->next->prev = s->prev;
    if (s->items)
        for (size_t i = 0; i < s->nbyte / sizeof(rl_tensor); i++) rl_tensor_drop((rl_tensor *)s->p + i);
    if (s->base) leave_base(s);
    else if (!s->borrowed && s->p) {
        s->on->free(rt, s->p, s->nbyte);
        rt->live -= s->nbyte;
    }
    rl_host_free(&rt->ctx->host, s, sizeof *s);
}

/* ---- tensors ---- */

static rl_tensor describe(rl_dtype t, uint32_t rank, const int64_t *dim) {
    rl_tensor x = {.kind = RL_TENSOR, .dtype = t, .rank = rank};
    int64_t step = 1;
    for (uint32_t i = rank; i-- > 0;) {
        x.dim[i] = dim[i];
        x.stride[i] = step;
        step *= dim[i];
    }
    return x;
}

static void clear_strings(const rl_tensor *t) {
    rl_str *s = t->mem->p, empty = rl_internz(t->mem->rt->ctx, "");
    for (size_t i = 0; i < t->mem->nbyte / sizeof *s; i++) s[i] = empty;
}

/* The other dims of a tensor without elements must have a product too: the strides. */
static size_t checked_bytes(rl_rt *rt, rl_dtype t, uint32_t rank, const int64_t *dim) {
    int64_t numel = 1, nbit;
    for (uint32_t i = 0; i < rank; i++)
        if (dim[i] < 0 || __builtin_mul_overflow(numel, RL_MAX(dim[i], 1), &numel)) rl_no_memory(rt->ctx);
    if (rank > RL_RANK || __builtin_mul_overflow(numel, (int64_t)rl_elem_bits(t), &nbit)) rl_no_memory(rt->ctx);
    for (uint32_t i = 0; i < rank; i++)
        if (dim[i] == 0) return 0;
    return rl_bytes_of(t, numel);
}

rl_tensor rl_tensor_new(rl_rt *rt, rl_dtype t, uint32_t rank, const int64_t *dim) {
    size_t nbyte = checked_bytes(rt, t, rank, dim);
    rl_tensor x = describe(t, rank, dim);
    x.mem = storage_new(rt, nbyte);
    if (t == RL_STRING) clear_strings(&x);
    return x;
}

rl_tensor rl_tensor_new_in(rl_rt *rt, rl_storage *base, size_t at, rl_dtype t, uint32_t rank, const int64_t *dim) {
    size_t nbyte = checked_bytes(rt, t, rank, dim);
    rl_tensor x = describe(t, rank, dim);
    x.mem = storage_in(rt, base, at, nbyte);
    if (!x.mem) return rl_tensor_new(rt, t, rank, dim);
    if (t == RL_STRING) clear_strings(&x);
    return x;
}

rl_tensor rl_tensor_borrow(rl_rt *rt, rl_dtype t, uint32_t rank, const int64_t *dim, const void *p, size_t nbyte) {
    rl_tensor x = describe(t, rank, dim);
    x.mem = storage_of(rt, (void *)(uintptr_t)(p ? p : ""), nbyte); /* read only, by convention: no kernel writes its inputs */
    x.mem->borrowed = true;
    x.mem->on = &rl_backend_cpu;
    return x;
}

rl_tensor rl_sequence_new(rl_rt *rt, rl_dtype t, const rl_tensor *item, int64_t n) {
    rl_tensor x = describe(t, 1, &n);
    x.kind = RL_SEQUENCE;
    x.mem = storage_new(rt, (size_t)n * sizeof(rl_tensor));
    if (n) memcpy(x.mem->p, item, (size_t)n * sizeof *item);
    x.mem->items = true;
    return x;
}

rl_tensor rl_tensor_keep(const rl_tensor *t) {
    if (t->mem) t->mem->ref++;
    return *t;
}

void rl_tensor_drop(rl_tensor *t) {
    if (t->mem) storage_drop(t->mem);
    t->kind = RL_ABSENT, t->dtype = RL_UNDEF, t->rank = 0; /* the dims, half a KiB, are nobody's without a rank */
    t->offset = 0, t->mem = NULL;
}

rl_tensor rl_contiguous(rl_rt *rt, const rl_tensor *t) {
    if (t->kind != RL_TENSOR || rl_is_dense(t)) return rl_tensor_keep(t);
    rl_tensor x = rl_tensor_new(rt, t->dtype, t->rank, t->dim);
    rl_tensor_move(rt, &x, t);
    return x;
}

size_t rl_deliver(rl_rt *rt, rl_tensor *t) {
    if (t->kind != RL_TENSOR || rl_is_dense(t)) return 0;
    rl_tensor dense = rl_contiguous(rt, t);
    rl_tensor_drop(t);
    *t = dense;
    return t->mem->nbyte;
}

/* ---- views ---- */

rl_tensor rl_view_transpose(const rl_tensor *t, const int64_t *perm) {
    rl_tensor x;
    x.kind = t->kind, x.dtype = t->dtype, x.rank = t->rank, x.offset = t->offset, x.mem = t->mem;
    for (uint32_t i = 0; i < t->rank; i++) {
        x.dim[i] = t->dim[perm[i]];
        x.stride[i] = t->stride[perm[i]];
    }
    return x;
}

rl_tensor rl_view_slice(const rl_tensor *t, uint32_t axis, int64_t start, int64_t step, int64_t count) {
    rl_tensor x = *t;
    x.dim[axis] = count;
    if (count) x.offset += start * t->stride[axis];
    x.stride[axis] = count > 1 ? t->stride[axis] * step : t->stride[axis]; /* of one element the step may be any number */
    return x;
}

bool rl_view_expand(const rl_tensor *t, uint32_t rank, const int64_t *dim, rl_tensor *out) {
    if (t->rank > rank) return false;
    uint32_t lead = rank - t->rank;
    for (uint32_t i = lead; i < rank; i++)
        if (t->dim[i - lead] != 1 && t->dim[i - lead] != dim[i]) return false;
    for (uint32_t i = rank; i-- > 0;) { /* from the last one on: *out may be *t */
        out->stride[i] = i < lead || t->dim[i - lead] == 1 ? 0 : t->stride[i - lead];
        out->dim[i] = dim[i];
    }
    out->kind = t->kind, out->dtype = t->dtype, out->offset = t->offset, out->mem = t->mem;
    out->rank = rank;
    return true;
}

/* Drops dims of 1 and joins neighbours that lie one after the other. */
static void merge_dims(rl_tensor *t) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->dim[i] == 1) continue;
        if (n && t->stride[n - 1] == t->stride[i] * t->dim[i]) {
            t->dim[n - 1] *= t->dim[i];
            t->stride[n - 1] = t->stride[i];
            continue;
        }
        t->dim[n] = t->dim[i];
        t->stride[n++] = t->stride[i];
    }
    t->rank = n;
}

/* Each merged dim must be cut exactly by the new dims, from the innermost on. */
bool rl_view_reshape(const rl_tensor *t, uint32_t rank, const int64_t *dim, rl_tensor *out) {
    rl_tensor from;
    int64_t step = 1, left = 1;
    rl_tensor_set(&from, t); /* *out may be *t */
    out->kind = from.kind, out->dtype = from.dtype, out->offset = from.offset, out->mem = from.mem;
    out->rank = rank;
    for (uint32_t i = rank; i-- > 0; step *= dim[i]) out->dim[i] = dim[i], out->stride[i] = step;
    if (rl_numel(&from) == 0) return true;
    merge_dims(&from);
    uint32_t k = from.rank;
    step = 1;
    for (uint32_t i = rank; i-- > 0;) {
        if (dim[i] == 1) continue;
        if (left == 1) {
            if (k == 0) return false;
            left = from.dim[--k];
            step = from.stride[k];
        }
        if (left % dim[i]) return false;
        out->stride[i] = step;
        step *= dim[i];
        left /= dim[i];
    }
    return left == 1 && k == 0;
}
