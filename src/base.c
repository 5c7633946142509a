/* Arenas, interned strings, messages, growing text: see base.h.
 *
 * An arena is a list of zeroed chunks, newest first; chunks double from 4 KiB to 1 MiB, and a large request gets a chunk of its
 * own behind the newest, so that it does not waste the room left there.  Of each size one freed chunk is kept for the next arena, as
 * many live for one node only, and all of the largest: to get them anew from the system costs more than what is done in them.  What
 * was used in them is zeroed piece by piece as it is given out, so that it is in the cache then.  All chunks of a context are also in one list
 * (ctx->all): when an allocation fails and jumps, the arenas of the functions jumped over stay behind, and the context frees
 * them at its end.  Under AddressSanitizer every allocation is a chunk, so that reading past one is seen. */
#include "base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "hash.h"

#if defined(ONE_CHUNK_EACH) /* tests/unit/oom.c: every allocation may fail */
#elif defined(__SANITIZE_ADDRESS__)
#define ONE_CHUNK_EACH 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ONE_CHUNK_EACH 1
#endif
#endif
#ifndef ONE_CHUNK_EACH
#define ONE_CHUNK_EACH 0
#endif

enum { CHUNK_MIN = 4096, CHUNK_MAX = 1 << 20, AHEAD = 512, FIRST_STRINGS = 256 };

struct rl_chunk {
    rl_chunk *older, *newer; /* in the same arena */
    rl_chunk *prev, *next;  /* in ctx->all */
    size_t size;            /* bytes of data */
    size_t dirty;           /* how many of them, where none is given out, may not be 0 */
    bool kept;              /* rl_ctx_drop_rest leaves it */
    _Alignas(16) char data[];
};

/* ---- the caller's functions ---- */

void *rl_host_alloc(const rl_context *host, size_t nbyte) {
    if (!host->allocate) return calloc(1, nbyte);
    void *p = host->allocate(host->user, nbyte);
    return p ? memset(p, 0, nbyte) : NULL;
}

void rl_host_free(const rl_context *host, void *p, size_t nbyte) {
    if (!host->allocate) free(p);
    else if (p) host->release(host->user, p, nbyte);
}

bool rl_stopped(rl_ctx *ctx) {
    if (!ctx->stopped && ctx->host.stop) ctx->stopped = ctx->host.stop(ctx->host.user) != 0;
    return ctx->stopped;
}

bool rl_time_up(rl_ctx *ctx, double deadline) {
    return rl_work_seconds() >= deadline || rl_stopped(ctx);
}

rl_status rl_begin(rl_ctx *ctx, const char *step) {
    if (rl_stopped(ctx)) return rl_fail(ctx, RL_ESTOPPED, "stopped by the caller, before step '%s'", step);
    if (ctx->host.progress) ctx->host.progress(ctx->host.user, step);
    return RL_OK;
}

void rl_make_plain(char *s) {
    for (unsigned char *c = (unsigned char *)s; *c; c++) {
        bool two = c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0;
        if (two) *c++ = '?';
        if (two || *c < 0x20 || *c == 0x7f) *c = '?';
    }
}

void rl_log(rl_ctx *ctx, rl_log_level level, const char *fmt, ...) {
    char text[512];
    va_list ap;
    if (!ctx->host.log) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    rl_make_plain(text);
    ctx->host.log(ctx->host.user, level, text);
}

/* ---- contexts and arenas ---- */

rl_ctx *rl_ctx_new(size_t limit) {
    return rl_ctx_new_for(limit, NULL);
}

rl_ctx *rl_ctx_new_for(size_t limit, const rl_context *host) {
    rl_context known = {0};
    if (host) memcpy(&known, host, RL_MIN(host->struct_size, sizeof known));
    rl_ctx *ctx = rl_host_alloc(&known, sizeof *ctx);
    if (!ctx) return NULL;
    ctx->host = known;
    ctx->limit = limit;
    rl_arena_init(&ctx->mem, ctx);
    return ctx;
}

void rl_ctx_bound(rl_ctx *ctx, size_t max_memory, size_t base) {
    ctx->limit = max_memory ? max_memory : base;
    ctx->per_byte = max_memory ? 0 : RL_MEMORY_PER_BYTE;
}

void rl_ctx_allow(rl_ctx *ctx, size_t nbyte) {
    size_t more;
    if (__builtin_mul_overflow(nbyte, ctx->per_byte, &more) || __builtin_add_overflow(ctx->limit, more, &ctx->limit)) ctx->limit = SIZE_MAX;
}

static void drop_spares(rl_ctx *ctx) {
    for (uint32_t i = 0; i < RL_NSPARE; i++)
        for (rl_chunk *c; (c = ctx->spare[i]);) {
            ctx->spare[i] = c->older;
            rl_host_free(&ctx->host, c, sizeof *c + c->size);
        }
    ctx->nspare = 0;
}

void rl_ctx_free(rl_ctx *ctx) {
    if (!ctx) return;
    for (rl_chunk *c = ctx->all, *next; c; c = next) {
        next = c->next;
        rl_host_free(&ctx->host, c, sizeof *c + c->size);
    }
    rl_context host = ctx->host;
    drop_spares(ctx);
    rl_host_free(&host, ctx, sizeof *ctx);
}

void rl_arena_init(rl_arena *a, rl_ctx *ctx) {
    a->ctx = ctx;
    a->chunk = NULL;
    a->next = NULL;
    a->room = 0;
}

/* The place of chunks of this size in ctx->spare; RL_NSPARE: none is kept. */
static uint32_t spare_place(size_t size) {
    uint32_t i = 0;
    while (i < RL_NSPARE && size != (size_t)CHUNK_MIN << i) i++;
    return ONE_CHUNK_EACH ? RL_NSPARE : i;
}

/* Its first `dirty` bytes have been used. */
static void free_chunk(rl_ctx *ctx, rl_chunk *c, size_t dirty) {
    if (c->prev) c->prev->next = c->next;
    else ctx->all = c->next;
    if (c->next) c->next->prev = c->prev;
    ctx->nbyte -= c->size;
    uint32_t i = spare_place(c->size);
    c->dirty = RL_MAX(c->dirty, dirty);
    if (i == RL_NSPARE || (ctx->spare[i] && c->size < CHUNK_MAX)) {
        rl_host_free(&ctx->host, c, sizeof *c + c->size);
        return;
    }
    c->older = ctx->spare[i];
    ctx->spare[i] = c;
    ctx->nspare += c->size;
}

void rl_arena_free(rl_arena *a) {
    rl_ctx *ctx = a->ctx;
    for (rl_chunk *c = a->chunk, *older; c; c = older) {
        older = c->older;
        free_chunk(ctx, c, c == a->chunk ? (size_t)(a->next - c->data) : c->size);
    }
    rl_arena_init(a, ctx);
}

void rl_ctx_keep(rl_ctx *ctx) {
    for (rl_chunk *c = ctx->all; c; c = c->next) c->kept = true;
}

void rl_ctx_drop_rest(rl_ctx *ctx) {
    for (rl_chunk *c = ctx->mem.chunk; c; c = c->older) c->kept = true;
    for (rl_chunk *c = ctx->all, *next; c; c = next) {
        next = c->next;
        if (!c->kept) free_chunk(ctx, c, c->size);
    }
}

_Noreturn void rl_no_memory(rl_ctx *ctx) {
    longjmp(ctx->oom, 1);
}

_Noreturn void rl_over_limit(rl_ctx *ctx) {
    ctx->over = true;
    rl_no_memory(ctx);
}

_Noreturn void rl_no_memory_for(rl_ctx *ctx) {
    ctx->told = true;
    rl_no_memory(ctx);
}

rl_status rl_fail_memory(rl_ctx *ctx) {
    bool over = ctx->over, told = ctx->told;
    ctx->over = ctx->told = false;
    if (told) return RL_ENOMEM;
    return over ? rl_fail(ctx, RL_ENOMEM, "over the limit of %zu bytes of memory", ctx->limit) : rl_fail(ctx, RL_ENOMEM, "out of memory");
}

static rl_chunk *new_chunk(rl_ctx *ctx, size_t size) {
    if (size > SIZE_MAX / 2 || (ctx->limit && (ctx->nbyte > ctx->limit || size > ctx->limit - ctx->nbyte))) rl_over_limit(ctx);
    uint32_t i = spare_place(size);
    rl_chunk *c = i < RL_NSPARE ? ctx->spare[i] : NULL;
    if (c) {
        ctx->spare[i] = c->older;
        ctx->nspare -= size;
        c->older = c->newer = c->prev = NULL;
    } else {
        if (ctx->limit && ctx->nspare > ctx->limit - ctx->nbyte - size) drop_spares(ctx);
        c = rl_host_alloc(&ctx->host, sizeof *c + size);
        if (!c) rl_no_memory(ctx);
    }
    c->size = size;
    c->kept = false;
    c->next = ctx->all;
    if (c->next) c->next->prev = c;
    ctx->all = c;
    ctx->nbyte += size;
    return c;
}

/* More than that never shares a chunk. */
static bool has_own_chunk(size_t nbyte) {
    return ONE_CHUNK_EACH || nbyte > CHUNK_MAX / 2;
}

static size_t aligned(size_t n) {
    return (n + RL_ALIGN - 1) & ~(size_t)(RL_ALIGN - 1);
}

/* The newest chunk has nbyte more: zeroes them, and somewhat beyond, where they were used before. */
static void make_room(rl_arena *a, size_t nbyte) {
    rl_chunk *c = a->chunk;
    size_t from = (size_t)(a->next - c->data), ready = from + a->room, to = RL_MIN(from + nbyte + AHEAD, c->size);
    if (ready < c->dirty) memset(c->data + ready, 0, RL_MIN(to, c->dirty) - ready);
    a->room = RL_MIN((to < c->dirty ? to : c->size) - from, (size_t)CHUNK_MAX / 2);
}

static void *take(rl_arena *a, size_t nbyte) {
    void *p = a->next;
    if (nbyte > a->room) make_room(a, nbyte);
    a->next += nbyte;
    a->room -= nbyte;
    return p;
}

/* nbyte bytes in a new chunk; a large one goes behind the newest. */
static void *alloc_chunk(rl_arena *a, size_t nbyte) {
    size_t size = a->chunk ? RL_MIN(a->chunk->size * 2, (size_t)CHUNK_MAX) : CHUNK_MIN;
    bool own = ONE_CHUNK_EACH || nbyte > size / 2;
    rl_chunk *c = new_chunk(a->ctx, own ? nbyte : size);
    rl_chunk **place = own && a->chunk ? &a->chunk->older : &a->chunk;
    c->newer = own ? a->chunk : NULL;
    c->older = *place;
    if (c->older) c->older->newer = c;
    *place = c;
    if (a->chunk == c) {
        a->next = c->data;
        a->room = 0;
    }
    if (!own) return take(a, nbyte);
    if (a->chunk == c) a->next += nbyte;
    memset(c->data, 0, RL_MIN(nbyte, c->dirty));
    return c->data;
}

void *rl_alloc_more(rl_arena *a, size_t nbyte) {
    if (nbyte > SIZE_MAX / 4) rl_no_memory(a->ctx);
    if (!ONE_CHUNK_EACH) nbyte = aligned(nbyte);
    nbyte = RL_MAX(nbyte, (size_t)(ONE_CHUNK_EACH ? 1 : RL_ALIGN));
    if (!a->chunk || has_own_chunk(nbyte) || nbyte > (size_t)(a->chunk->data + a->chunk->size - a->next)) return alloc_chunk(a, nbyte);
    return take(a, nbyte);
}

/* True when old is the newest allocation and its chunk has room for nnew bytes in all; it then has them. */
static bool grow_in_place(rl_arena *a, const void *old, size_t nold, size_t nnew) {
    if (ONE_CHUNK_EACH || !a->chunk || !old || has_own_chunk(nnew)) return false;
    size_t end = (size_t)(a->next - a->chunk->data), start = end - RL_MIN(end, aligned(nold ? nold : 1));
    if (a->chunk->data + start != (const char *)old || aligned(nnew) > a->chunk->size - start) return false;
    take(a, start + aligned(nnew) - end);
    return true;
}

void *rl_grow(rl_arena *a, void *old, size_t nold, size_t nnew, size_t size) {
    if (size && (nnew > SIZE_MAX / 4 / size || nnew < nold)) rl_no_memory(a->ctx);
    if (grow_in_place(a, old, nold * size, nnew * size)) return old;
    void *p = rl_alloc(a, nnew * size);
    if (nold) memcpy(p, old, nold * size);
    return p;
}

void rl_drop(rl_arena *a, void *p, size_t nbyte) {
    if (!p || !has_own_chunk(nbyte)) return;
    rl_chunk *c = (rl_chunk *)(void *)((char *)p - offsetof(rl_chunk, data));
    if (!c->newer) return; /* the arena's first */
    c->newer->older = c->older;
    if (c->older) c->older->newer = c->newer;
    free_chunk(a->ctx, c, c->size);
}

void *rl_regrow(rl_arena *a, void *old, size_t nold, size_t nnew, size_t size) {
    void *p = rl_grow(a, old, nold, nnew, size);
    if (p != old) rl_drop(a, old, nold * size);
    return p;
}

void *rl_copy(rl_arena *a, const void *p, size_t nbyte) {
    void *q = rl_alloc(a, nbyte);
    if (nbyte) memcpy(q, p, nbyte);
    return q;
}

/* An interned string; an rl_str points at s. */
typedef struct { uint32_t n; rl_note note; char s[]; } entry;

static entry *entry_of(rl_str s) {
    return (entry *)(uintptr_t)(s - offsetof(entry, s)); /* arena memory, const only to those who read the string */
}

rl_note *rl_str_note(rl_str s) {
    return &entry_of(s)->note;
}

/* The hash stands beside the string: others need not be looked at, which are anywhere in memory. */
struct rl_strslot { rl_str s; uint64_t hash; };

/* The slot of the string, or the empty slot where it belongs. */
static struct rl_strslot *find_slot(const struct rl_strtab *t, uint64_t hash, const char *s, size_t n) {
    uint32_t i = (uint32_t)hash & (t->cap - 1);
    for (; t->slot[i].s; i = (i + 1) & (t->cap - 1)) {
        if (t->slot[i].hash != hash) continue;
        const entry *e = entry_of(t->slot[i].s);
        if (e->n == n && rl_same_bytes(e->s, s, n)) break;
    }
    return &t->slot[i];
}

static void grow_strings(rl_ctx *ctx, uint32_t cap) {
    struct rl_strtab *t = &ctx->strings;
    struct rl_strslot *slot = rl_new(&ctx->mem, struct rl_strslot, cap);
    for (uint32_t k = 0; k < t->cap; k++) {
        if (!t->slot[k].s) continue;
        uint32_t i = (uint32_t)t->slot[k].hash & (cap - 1);
        while (slot[i].s) i = (i + 1) & (cap - 1);
        slot[i] = t->slot[k];
    }
    rl_drop(&ctx->mem, t->slot, t->cap * sizeof *slot);
    t->slot = slot;
    t->cap = cap;
}

void rl_intern_expect(rl_ctx *ctx, uint32_t n) {
    const struct rl_strtab *t = &ctx->strings;
    uint32_t cap = t->cap ? t->cap : FIRST_STRINGS;
    if (n > UINT32_MAX / 8 - RL_MIN(t->n, UINT32_MAX / 8)) return;
    while (rl_hash_full(t->n + n, cap)) cap *= 2;
    if (cap > t->cap) grow_strings(ctx, cap);
}

rl_str rl_intern(rl_ctx *ctx, const char *s, size_t n) {
    struct rl_strtab *t = &ctx->strings;
    if (rl_hash_full(t->n, t->cap)) {
        if (t->cap > UINT32_MAX / 4) rl_no_memory(ctx);
        grow_strings(ctx, t->cap ? t->cap * 2 : FIRST_STRINGS);
    }
    if (!n) s = "";
    uint64_t hash = rl_hash_bytes(s, n);
    struct rl_strslot *slot = find_slot(t, hash, s, n);
    if (slot->s) return slot->s;
    if (n >= UINT32_MAX) rl_no_memory(ctx);
    entry *e = rl_alloc(&ctx->mem, offsetof(entry, s) + n + 1);
    e->n = (uint32_t)n;
    memcpy(e->s, s, n);
    t->n++;
    *slot = (struct rl_strslot){e->s, hash};
    return e->s;
}

void rl_intern_soon(const rl_ctx *ctx, const char *s, size_t n) {
    const struct rl_strtab *t = &ctx->strings;
    if (t->cap && n) __builtin_prefetch(&t->slot[(uint32_t)rl_hash_bytes(s, n) & (t->cap - 1)]);
}

rl_str rl_internz(rl_ctx *ctx, const char *s) {
    return rl_intern(ctx, s, strlen(s));
}

rl_str rl_internf(rl_ctx *ctx, const char *fmt, ...) {
    char small[256];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n < 0) n = 0;
    if ((size_t)n < sizeof small) return rl_intern(ctx, small, (size_t)n);
    char *big = rl_alloc(&ctx->mem, (size_t)n + 1);
    va_start(ap, fmt);
    vsnprintf(big, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return rl_intern(ctx, big, (size_t)n);
}

rl_str rl_intern_find(const rl_ctx *ctx, const char *s, size_t n) {
    const struct rl_strtab *t = &ctx->strings;
    if (!t->cap) return NULL;
    if (!n) s = "";
    return find_slot(t, rl_hash_bytes(s, n), s, n)->s;
}

rl_status (rl_fail)(rl_ctx *ctx, rl_status status, const char *fmt, ...) {
    char m[sizeof ctx->error]; /* the arguments may point into ctx->error */
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(m, sizeof m, fmt, ap);
    va_end(ap);
    if (n < 0) m[0] = 0;
    rl_make_plain(m);
    memcpy(ctx->error, m, sizeof m);
    return status;
}

void rl_text_room(rl_text *t, size_t n) {
    if (n > SIZE_MAX / 8) rl_no_memory(t->mem->ctx);
    if (n + 1 <= t->cap - t->n) return;
    size_t cap = RL_MAX(t->cap * 2, RL_MAX(t->n + n + 1, (size_t)64));
    t->p = rl_grow(t->mem, t->p, t->cap, cap, 1);
    t->cap = cap;
}

void rl_put(rl_text *t, const char *fmt, ...) {
    va_list ap;
    rl_text_room(t, 64);
    va_start(ap, fmt);
    int n = vsnprintf(t->p + t->n, t->cap - t->n, fmt, ap);
    va_end(ap);
    if (n < 0) return;
    if ((size_t)n >= t->cap - t->n) {
        rl_text_room(t, (size_t)n);
        va_start(ap, fmt);
        vsnprintf(t->p + t->n, t->cap - t->n, fmt, ap);
        va_end(ap);
    }
    t->n += (size_t)n;
}

void rl_put_name(rl_text *t, const char *name) {
    size_t at = t->n;
    rl_put_bytes(t, name, strlen(name));
    rl_make_plain(t->p + at);
}

rl_status rl_file_read(const char *path, rl_text *t) {
    rl_ctx *ctx = t->mem->ctx;
    FILE *f = fopen(path, "rb");
    char buf[4096];
    if (!f) return rl_fail(ctx, RL_EIO, "%s: %s", path, strerror(errno));
    struct stat st;
    if (fstat(fileno(f), &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        fclose(f); /* there would be no second reading */
        return rl_fail(ctx, RL_EIO, "%s: not a regular file", path);
    }
    size_t n, size = 0;
    while ((n = fread(buf, 1, sizeof buf, f)) > 0) size += n; /* nothing is allocated while the file is open */
    bool bad = ferror(f) != 0;
    int error = errno;
    fclose(f);
    if (bad) return rl_fail(ctx, RL_EIO, "%s: %s", path, strerror(error));
    t->p = rl_alloc(t->mem, size + 1);
    f = fopen(path, "rb");
    if (f) {
        t->n = fread(t->p, 1, size, f);
        fclose(f);
    }
    return f && t->n == size ? RL_OK : rl_fail(ctx, RL_EIO, "%s: changed while it was read", path);
}

uint32_t *rl_sort_by_key(rl_arena *mem, uint32_t nkey, const uint32_t *key, void *item, uint32_t n, size_t size) {
    uint32_t *beg = rl_new(mem, uint32_t, (size_t)nkey + 2); /* while it is filled, beg[k + 1] is where the next of key k goes */
    for (uint32_t i = 0; i < n; i++) beg[key[i] + 2]++;
    for (uint32_t k = 0; k < nkey; k++) beg[k + 2] += beg[k + 1];
    char *to = item, *from = rl_copy(mem, item, n * size);
    for (uint32_t i = 0; i < n; i++) memcpy(to + beg[key[i] + 1]++ * size, from + i * size, size);
    rl_drop(mem, from, n * size);
    return beg;
}

static double read_clock(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double rl_seconds(void) { return read_clock(CLOCK_MONOTONIC); }

double rl_work_seconds(void) { return read_clock(CLOCK_THREAD_CPUTIME_ID); }
