/* Steps that need not wait for each other: see branches.h. */
#include "branches.h"

#include <stdlib.h>

typedef struct { uintptr_t from, end; uint32_t step; bool write; } span;
typedef struct { uint64_t *before; uint32_t depth; } done_step; /* before: a bit for each step so far */
struct rl_branches {
    rl_arena mem;
    struct { span *p; uint32_t n, cap; } span;
    struct { done_step *p; uint32_t n, cap; } step;
    struct { uint32_t *p; uint32_t n, cap; } after; /* of the step at work */
    uint32_t first;                                 /* of its spans */
};

rl_branches *rl_branches_new(rl_ctx *ctx) {
    rl_arena mem;
    rl_arena_init(&mem, ctx);
    rl_branches *b = rl_new(&mem, rl_branches, 1);
    b->mem = mem;
    return b;
}

void rl_branches_free(rl_branches *b) {
    if (!b) return;
    rl_arena mem = b->mem;
    rl_arena_free(&mem);
}

static bool is_before(const rl_branches *b, uint32_t k, uint32_t of) {
    return k < of && b->step.p[of].before[k / 64] >> k % 64 & 1;
}

static bool touch(const span *a, const span *b) {
    return a->from < b->end && b->from < a->end;
}

void rl_branches_note(rl_branches *b, const void *p, size_t nbyte, bool write) {
    uintptr_t from = (uintptr_t)p;
    if (nbyte) rl_push(&b->mem, b->span, ((span){from, from + nbyte, b->step.n, write}));
}

/* The latest first, so that what comes before it is seen to. */
static void come_after(rl_branches *b, uint32_t k) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < b->after.n; i++) {
        uint32_t have = b->after.p[i];
        if (have == k || is_before(b, k, have)) return;
        if (!is_before(b, have, k)) b->after.p[kept++] = have;
    }
    b->after.n = kept;
    rl_push(&b->mem, b->after, k);
}

uint32_t rl_branches_before(rl_branches *b, const uint32_t **step) {
    b->after.n = 0;
    for (uint32_t i = b->first; i < b->span.n; i++)
        for (uint32_t k = b->first; k-- > 0 && !b->span.p[i].write;)
            if (b->span.p[k].write && touch(&b->span.p[k], &b->span.p[i])) come_after(b, b->span.p[k].step);
    *step = b->after.p;
    return b->after.n;
}

void rl_branches_done(rl_branches *b, bool did) {
    uint32_t n = b->step.n;
    if (did) {
        done_step s = {.before = rl_new(&b->mem, uint64_t, n / 64 + 1), .depth = 1};
        for (uint32_t i = 0; i < b->after.n; i++) {
            uint32_t k = b->after.p[i];
            for (uint32_t w = 0; w <= k / 64; w++) s.before[w] |= b->step.p[k].before[w];
            s.before[k / 64] |= (uint64_t)1 << k % 64;
            s.depth = RL_MAX(s.depth, b->step.p[k].depth + 1);
        }
        rl_push(&b->mem, b->step, s);
    } else b->span.n = b->first;
    b->first = b->span.n;
    b->after.n = 0;
}

static int by_place(const void *a, const void *b) {
    const span *x = a, *y = b;
    return x->from != y->from ? (x->from < y->from ? -1 : 1) : (x->step > y->step) - (x->step < y->step);
}

bool rl_branches_hold(rl_branches *b) {
    qsort(b->span.p, b->span.n, sizeof *b->span.p, by_place);
    for (uint32_t i = 0; i < b->span.n; i++)
        for (uint32_t k = i + 1; k < b->span.n && b->span.p[k].from < b->span.p[i].end; k++) {
            const span *x = &b->span.p[i], *y = &b->span.p[k];
            bool ordered = x->step == y->step || is_before(b, x->step, y->step) || is_before(b, y->step, x->step);
            if ((x->write || y->write) && !ordered) return false;
        }
    return true;
}

void rl_branches_count(const rl_branches *b, uint32_t *nstep, uint32_t *longest) {
    *nstep = b->step.n, *longest = 0;
    for (uint32_t i = 0; i < b->step.n; i++) *longest = RL_MAX(*longest, b->step.p[i].depth);
}

/* ---- of a call ---- */

typedef struct { const char *from, *end; } bytes;

/* From the first to the last byte of a tensor on the device; none: it has none there. */
static bytes bytes_of(const rl_call *c, const rl_tensor *t) {
    int64_t least = 0, most = 0, bits;
    if (!t || t->kind != RL_TENSOR || !t->mem || t->mem->on != c->rt->device || !rl_numel(t)) return (bytes){0};
    for (uint32_t i = 0; i < t->rank; i++) *(t->stride[i] < 0 ? &least : &most) += (t->dim[i] - 1) * t->stride[i];
    bits = rl_elem_bits(t->dtype);
    const char *p = t->mem->p;
    return (bytes){p + (t->offset + least) * bits / 8, p + ((t->offset + most + 1) * bits + 7) / 8};
}

static void note(const rl_call *c, bytes b, bool write) {
    rl_branches_note(c->rt->branches, b.from, (size_t)(b.end - b.from), write);
}

static bool lies_in(bytes a, bytes b) {
    return a.from >= b.from && a.end <= b.end;
}

/* What a step wrote of an output: nothing that is a view of an input, nor a Concat's pieces that stood there. */
static void note_output(const rl_call *c, const rl_tensor *y) {
    bytes all = bytes_of(c, y), in;
    const char *at = all.from;
    for (uint32_t i = 0; i < c->nin; i++) {
        in = bytes_of(c, rl_call_in(c, i));
        if (in.from && rl_call_in(c, i)->mem == y->mem && lies_in(all, in)) return;
    }
    for (bytes next; at < all.end; at = next.end) {
        next = (bytes){all.end, all.end};
        for (uint32_t i = 0; i < c->nin; i++) {
            in = bytes_of(c, rl_call_in(c, i));
            if (in.from >= at && in.from < next.from && lies_in(in, all)) next = in;
        }
        note(c, (bytes){at, next.from}, true);
    }
}

rl_status rl_branches_begin(rl_call *c) {
    const uint32_t *step;
    for (uint32_t i = 0; i < c->nin; i++) note(c, bytes_of(c, rl_call_in(c, i)), false);
    uint32_t n = rl_branches_before(c->rt->branches, &step);
    return c->rt->device->after(c->rt, step, n);
}

rl_status rl_branches_end(rl_call *c) {
    bool did;
    RL_TRY(c->rt->device->step_end(c->rt, &did));
    for (uint32_t i = 0; i < c->nout; i++) note_output(c, &c->out[i]);
    for (uint32_t i = 0; i < c->step->temp.n; i++) {
        const rl_tensor *t = c->step->temp.p[i];
        if (t->mem && !t->mem->borrowed && t->mem->ref == 1) note(c, bytes_of(c, t), true);
    }
    rl_branches_done(c->rt->branches, did);
    return RL_OK;
}
