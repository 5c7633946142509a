/* The CUDA backend: its table, memory, copies and recordings. */
#include "backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../runtime/fast.h"
#include "../runtime/kernels.h"
#include "../runtime/recurrent_ops.h"
#include "../runtime/ref_attention.h"
#include "../runtime/ref_axis.h"
#include "../runtime/ref_fused.h"
#include "../runtime/ref_pointwise.h"
#include "libs.h"
#include "pool.h"

/* What the device keeps until the end; found by the host's address where the bytes there last, else by the bytes. */
typedef struct kept { struct kept *next; void *p; const void *host; void *copy; size_t nbyte; } kept;
typedef struct recording { struct recording *next; rl_gpu_graph *graph; } recording;
/* Of a recording of branches: what was recorded last of each step, node[from] .. node[from + n - 1], and what the step at work comes after. */
typedef struct {
    rl_arena mem;
    struct { rl_gpu_node *p; uint32_t n, cap; } node, before;
    struct { struct { uint32_t from, n; } *p; uint32_t n, cap; } end;
} branches;
typedef struct {
    rl_gpu *g;
    rl_gpu_pool *pool;
    rl_libs *libs;
    kept **slot;
    uint32_t nslot, nkept;
    size_t room; /* for what is kept only where there is some */
    recording *recordings;
    branches branches;
    uint32_t *wrong;
    const rl_graph *graph;
    char title[600];
} state;

rl_gpu *rl_gpu_of(const rl_rt *rt) {
    return ((const state *)rt->state)->g;
}

rl_libs *rl_libs_of(const rl_rt *rt) {
    return ((const state *)rt->state)->libs;
}

uint32_t *rl_gpu_wrong(const rl_call *c) {
    state *s = c->rt->state;
    s->graph = c->g;
    return s->wrong;
}

/* ---- memory ---- */

static void *cuda_alloc(rl_rt *rt, size_t nbyte) {
    return rl_gpu_pool_take(((state *)rt->state)->pool, RL_MAX(nbyte, 1));
}

static void cuda_free(rl_rt *rt, void *p, size_t nbyte) {
    rl_gpu_pool_give(((state *)rt->state)->pool, p, RL_MAX(nbyte, 1));
}

static rl_status cuda_put(rl_rt *rt, void *to, const void *host, size_t nbyte) {
    return rl_gpu_put(rl_gpu_of(rt), to, host, nbyte);
}

static rl_status cuda_get(rl_rt *rt, void *host, const void *from, size_t nbyte) {
    return rl_gpu_get(rl_gpu_of(rt), host, from, nbyte);
}

static uint64_t key_of(const void *host, size_t nbyte, bool lasts) {
    return lasts ? (uint64_t)(uintptr_t)host * 0x9e3779b97f4a7c15u ^ nbyte : rl_hash_bytes(host, nbyte);
}

static bool is_same(const kept *k, const void *host, size_t nbyte, bool lasts) {
    if (k->nbyte != nbyte || lasts != !k->copy) return false;
    return lasts ? k->host == host : rl_same_bytes(k->copy, host, nbyte);
}

static bool grow_slots(state *s) {
    uint32_t n = s->nslot ? 2 * s->nslot : 256;
    kept **slot = calloc(n, sizeof *slot);
    if (!slot) return false;
    for (uint32_t i = 0; i < s->nslot; i++) {
        for (kept *k = s->slot[i], *next; k; k = next) {
            next = k->next;
            uint64_t at = key_of(k->copy ? k->copy : k->host, k->nbyte, !k->copy) % n;
            k->next = slot[at];
            slot[at] = k;
        }
    }
    free(s->slot);
    s->slot = slot;
    s->nslot = n;
    return true;
}

/* How much of what each run makes anew may be kept. A small block takes more of the device than it has bytes. */
enum { MOST_KEPT = 64 << 20, LEAST_BLOCK = 512 };

static kept *new_kept(state *s, const void *host, size_t nbyte, bool lasts) {
    kept *k = calloc(1, sizeof *k);
    if (!k) return NULL;
    *k = (kept){.host = host, .nbyte = nbyte, .p = rl_gpu_alloc(s->g, nbyte), .copy = lasts ? NULL : malloc(nbyte)};
    if (k->copy) memcpy(k->copy, host, nbyte);
    if (k->p && (lasts || k->copy) && rl_gpu_put_new(s->g, k->p, host, nbyte) == RL_OK) return k;
    if (k->p) rl_gpu_free(s->g, k->p, nbyte);
    free(k->copy);
    free(k);
    return NULL;
}

/* Not from the pool: a recording may write again where the pool's memory was free when it was made. */
static void *cuda_keep(rl_rt *rt, const void *host, size_t nbyte, rl_keeping how) {
    state *s = rt->state;
    bool lasts = how == RL_KEEP_CONSTANT;
    size_t takes = how == RL_KEEP_IF_ROOM ? RL_MAX(nbyte, (size_t)LEAST_BLOCK) : 0;
    if (s->nkept >= s->nslot && !grow_slots(s)) return NULL;
    kept **slot = &s->slot[key_of(host, nbyte, lasts) % s->nslot];
    for (const kept *k = *slot; k; k = k->next)
        if (is_same(k, host, nbyte, lasts)) return k->p;
    kept *k = takes <= s->room ? new_kept(s, host, nbyte, lasts) : NULL;
    if (!k) return NULL;
    s->room -= takes;
    k->next = *slot;
    *slot = k;
    s->nkept++;
    return k->p;
}

/* ---- moves ---- */

rl_loops rl_loops_of(uint32_t rank, const int64_t *dim, const rl_tensor *const *t, uint32_t n) {
    rl_loops l = {.rank = rank, .noperand = n};
    for (uint32_t i = 0; i < rank; i++) {
        l.dim[i] = dim[i];
        for (uint32_t o = 0; o < n; o++) l.step[o][i] = t[o] ? t[o]->stride[i] : 0;
    }
    return l;
}

bool rl_gpu_walk_of(rl_loops *l, rl_walk *w, uint32_t *count) {
    rl_loops_merge(l);
    int64_t n = rl_loops_count(l);
    bool fits = n < INT32_MAX && l->rank <= RL_DIMS;
    *count = (uint32_t)n;
    if (n && fits) *w = rl_walk_of(l, 0);
    return !n || fits;
}

rl_tensor *rl_gpu_make_like(rl_call *c, rl_dtype t, uint32_t rank, const int64_t *dim, const rl_tensor *const *in, uint32_t nin) {
    int64_t perm[RL_RANK];
    for (uint32_t i = 0; i < nin; i++) {
        if (in[i]->rank != rank || !rl_same_bytes(in[i]->dim, dim, rank * sizeof *dim)) continue;
        return rl_call_make_in(c, 0, t, rank, dim, rl_memory_order(in[i], perm) ? perm : NULL);
    }
    return rl_call_make(c, 0, t, rank, dim);
}

static rl_status cuda_move(rl_rt *rt, const rl_tensor *dst, const rl_tensor *src) {
    rl_loops l = rl_loops_of(dst->rank, dst->dim, (const rl_tensor *[]){dst, src}, 2);
    return rl_gpu_move(rl_gpu_of(rt), &l, rl_elem_bits(dst->dtype), dst->mem->p, dst->offset, src->mem->p, src->offset);
}

static rl_status cuda_move_all(rl_rt *rt, uint32_t n, const rl_tensor *dst, const rl_tensor *src) {
    rl_gpu_part *part = calloc(n, sizeof *part);
    if (!part) return RL_ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        part[i] = (rl_gpu_part){rl_loops_of(dst[i].rank, dst[i].dim, (const rl_tensor *[]){&dst[i], &src[i]}, 2), dst[i].mem->p, dst[i].offset, src[i].mem->p, src[i].offset};
    rl_status s = rl_gpu_move_all(rl_gpu_of(rt), rl_elem_bits(dst->dtype), n, part);
    free(part);
    return s;
}

static rl_status cuda_fill(rl_rt *rt, const rl_tensor *dst, const void *value) {
    rl_loops l = rl_loops_of(dst->rank, dst->dim, (const rl_tensor *[]){dst}, 1);
    return rl_gpu_fill(rl_gpu_of(rt), &l, rl_elem_bits(dst->dtype), dst->mem->p, dst->offset, value);
}

static rl_status cuda_convert(rl_rt *rt, const rl_desc *to, void *out, const rl_desc *from, const void *in) {
    return rl_gpu_convert(rl_gpu_of(rt), to, out, from, in);
}

/* ---- runs ---- */

/* Has a kernel met an index out of range? */
static rl_status check_wrong(rl_rt *rt, state *s) {
    uint32_t node, none = 0;
    RL_TRY(rl_gpu_get(s->g, &node, s->wrong, sizeof node));
    if (!node) return RL_OK;
    RL_TRY(rl_gpu_put(s->g, s->wrong, &none, sizeof none));
    return rl_fail(rt->ctx, RL_EMODEL, "%s: an index is out of range", rl_node_label(rl_nod(s->graph, (rl_node){node - 1})).s);
}

/* To fetch what a kernel may have met is to wait for the stream. */
static rl_status cuda_sync(rl_rt *rt) {
    state *s = rt->state;
    return s->graph ? check_wrong(rt, s) : rl_gpu_sync(s->g);
}

static rl_status cuda_record(rl_rt *rt) {
    return rl_gpu_record(rl_gpu_of(rt));
}

/* The room is asked for at once, and given back for the recording: where there is too little, the run must go on without it. */
static rl_status cuda_record_branches(rl_rt *rt, size_t nbyte) {
    state *s = rt->state;
    void *room = rl_gpu_has_nodes(s->g) ? rl_gpu_alloc(s->g, nbyte) : NULL;
    if (!room) return rl_fail(rt->ctx, RL_ELIMIT, "the device does not record branches, or has no %zu bytes left for them", nbyte);
    rl_gpu_free(s->g, room, nbyte);
    rl_arena_init(&s->branches.mem, rt->ctx);
    RL_TRY(rl_gpu_record(s->g));
    rl_gpu_pool_once(s->pool, true);
    return RL_OK;
}

static rl_status cuda_after(rl_rt *rt, const uint32_t *step, uint32_t n) {
    branches *b = &((state *)rt->state)->branches;
    bool last = n == 1 && step[0] + 1 == b->end.n && b->end.p[step[0]].n == 1;
    b->before.n = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < b->end.p[step[i]].n; k++) rl_push(&b->mem, b->before, b->node.p[b->end.p[step[i]].from + k]);
    return rl_gpu_come_after(rl_gpu_of(rt), b->before.p, b->before.n, last);
}

static rl_status cuda_step_end(rl_rt *rt, bool *did) {
    branches *b = &((state *)rt->state)->branches;
    const rl_gpu_node *node;
    uint32_t n;
    RL_TRY(rl_gpu_come_before(rl_gpu_of(rt), &node, &n));
    *did = n != b->before.n;
    for (uint32_t i = 0; i < n && !*did; i++) *did = node[i].node != b->before.p[i].node;
    if (!*did) return RL_OK;
    rl_push(&b->mem, b->end, ((__typeof__(*b->end.p)){b->node.n, n}));
    for (uint32_t i = 0; i < n; i++) rl_push(&b->mem, b->node, node[i]);
    return RL_OK;
}

static rl_status cuda_record_end(rl_rt *rt, void **out) {
    state *s = rt->state;
    recording *r = calloc(1, sizeof *r);
    rl_gpu_graph *graph;
    *out = NULL;
    rl_status status = rl_gpu_record_end(s->g, &graph);
    rl_gpu_pool_once(s->pool, false);
    rl_arena_free(&s->branches.mem);
    s->branches = (branches){0};
    if (status != RL_OK) {
        free(r);
        return status;
    }
    if (!r) {
        rl_gpu_forget(s->g, graph);
        return rl_fail(rt->ctx, RL_ENOMEM, "out of memory");
    }
    *r = (recording){s->recordings, graph};
    s->recordings = r;
    rl_gpu_pool_pin(s->pool, true);
    *out = r;
    return RL_OK;
}

static rl_status cuda_replay(rl_rt *rt, void *made) {
    return rl_gpu_replay(rl_gpu_of(rt), ((recording *)made)->graph);
}

static void cuda_forget(rl_rt *rt, void *made) {
    state *s = rt->state;
    recording *r = made, **at = &s->recordings;
    while (*at != r) at = &(*at)->next;
    *at = r->next;
    rl_gpu_forget(s->g, r->graph);
    free(r);
    if (!s->recordings) rl_gpu_pool_pin(s->pool, false);
}

static rl_status cuda_mark(rl_rt *rt, uint32_t i) {
    return rl_gpu_mark(rl_gpu_of(rt), i);
}

static rl_status cuda_between(rl_rt *rt, uint32_t i, double *seconds) {
    return rl_gpu_between(rl_gpu_of(rt), i, seconds);
}

static const char *cuda_describe(rl_rt *rt) {
    return ((const state *)rt->state)->title;
}

/* ---- beginning and end ---- */

static void cuda_close(rl_rt *rt) {
    state *s = rt->state;
    rl_gpu *g = s->g;
    while (s->recordings) cuda_forget(rt, s->recordings);
    for (uint32_t i = 0; i < s->nslot; i++) {
        for (kept *k = s->slot[i], *next; k; k = next) {
            next = k->next;
            rl_gpu_free(g, k->p, k->nbyte);
            free(k->copy);
            free(k);
        }
    }
    free(s->slot);
    rl_libs_close(s->libs);
    if (s->wrong) rl_gpu_free(g, s->wrong, sizeof *s->wrong);
    rl_gpu_pool_free(s->pool);
    rl_gpu_close(g);
    free(s);
    rt->state = NULL;
}

static rl_status start(rl_rt *rt, state *s) {
    uint32_t none = 0;
    RL_TRY(rl_gpu_open(rt->ctx, &s->g));
    s->pool = rl_gpu_pool_new(s->g);
    s->wrong = rl_gpu_alloc(s->g, sizeof *s->wrong);
    if (!s->pool || !s->wrong) return rl_fail(rt->ctx, RL_ENOMEM, "no memory left on the device");
    s->libs = rl_libs_open(s->g);
    const char *wait = getenv("RELAYOUT_CUDA_SYNC");
    rt->stepwise = wait && strcmp(wait, "1") == 0;
    bool emulated = rl_gpu_is_emulated(s->g);
    snprintf(s->title, sizeof s->title, "%s%s%s", rl_gpu_name(s->g), emulated ? "" : "; ", emulated ? "" : rl_libs_say(s->libs));
    return rl_gpu_put(s->g, s->wrong, &none, sizeof none);
}

static rl_status cuda_open(rl_rt *rt) {
    state *s = calloc(1, sizeof *s);
    if (!s) return rl_fail(rt->ctx, RL_ENOMEM, "out of memory");
    rt->state = s;
    s->room = MOST_KEPT;
    rl_status status = start(rt, s);
    if (status != RL_OK) cuda_close(rt);
    return status;
}

static const rl_kernel table[] = {
#define KERNEL(domain, type, since, until, types, fn, arg) {domain, #type, since, until, types, fn, arg},
#include "kernels.def"
#undef KERNEL
};

static const rl_kernel chain = {.types = RL_T(RL_F32) | RL_T(RL_F16) | RL_T(RL_BF16), .fn = rl_gpu_chain};

const rl_backend rl_backend_cuda = {
    .name = "cuda", .kernel = table, .nkernel = RL_LEN(table), .chain = &chain, .alloc = cuda_alloc, .free = cuda_free, .put = cuda_put, .get = cuda_get,
    .sync = cuda_sync, .open = cuda_open, .close = cuda_close, .move = cuda_move, .move_all = cuda_move_all, .fill = cuda_fill, .convert = cuda_convert, .keep = cuda_keep,
    .record = cuda_record, .record_branches = cuda_record_branches, .after = cuda_after, .step_end = cuda_step_end, .record_end = cuda_record_end, .replay = cuda_replay,
    .forget = cuda_forget, .mark = cuda_mark, .between = cuda_between, .describe = cuda_describe, .ways = &rl_gpu_ways};

/* ---- what ops share ---- */

rl_status rl_call_decline(rl_call *c) {
    c->declined = true;
    return RL_OK;
}

rl_gpu_kernel rl_gpu_of_float(rl_gpu_kernel f32, rl_dtype t) {
    uint32_t k = t == RL_F32 ? 0 : t == RL_F64 ? 1 : t == RL_F16 ? 2 : t == RL_BF16 ? 3 : 4;
    return k == 4 ? RL_NGPU : (rl_gpu_kernel)((uint32_t)f32 + k);
}

rl_gpu_kernel rl_gpu_of_short(rl_gpu_kernel f32, rl_dtype t) {
    uint32_t k = t == RL_F32 ? 0 : t == RL_F16 ? 1 : t == RL_BF16 ? 2 : 3;
    return k == 3 ? RL_NGPU : (rl_gpu_kernel)((uint32_t)f32 + k);
}

rl_dtype rl_gpu_computed(rl_dtype t) {
    return t == RL_F64 ? RL_F64 : RL_F32;
}
