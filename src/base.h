/* Memory, strings, vectors, errors: what every other file of relayout uses.
 *
 * Memory comes from arenas and is freed whole, never object by object.  There are three lifetimes:
 *   ctx->mem   interned strings, dimension expressions; lives as long as the context
 *   graph->mem nodes, values, attributes of one model
 *   tmp        what one pass computes; the pipeline resets it after each pass
 * An arena that cannot grow (no memory, or the context's limit) does not return: it jumps to the public entry,
 * which returns RL_ENOMEM.  So nobody checks for NULL, and nothing but arena memory may be held across a call
 * that allocates (files are closed at the entry).
 *
 *   rl_arena tmp;  rl_arena_init(&tmp, ctx);
 *   int *x = rl_new(&tmp, int, 100);            zeroed
 *   struct { int *p; uint32_t n, cap; } v = {0};
 *   rl_push(&tmp, v, 42);                       v.p[0] == 42, v.n == 1
 *   rl_arena_free(&tmp);
 */
#ifndef RL_BASE_H
#define RL_BASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../include/relayout.h"

#define RL_ENOMEM RL_ELIMIT
enum { RL_MOSTCOUNT = 1000000 }; /* threads, runs and what else is counted, as somebody asks for them */

typedef struct rl_ctx rl_ctx;
typedef const char *rl_str; /* interned: two strings are equal iff the pointers are; NULL is "no name" */

typedef struct rl_chunk rl_chunk;
typedef struct {
    rl_ctx *ctx;
    rl_chunk *chunk; /* newest first */
    char *next;      /* in the newest: what is given out next */
    size_t room;     /* bytes from there on that are 0 already */
} rl_arena;

#define RL_NSPARE 9
struct rl_ctx {
    rl_arena mem;
    rl_context host;     /* the caller's functions; all NULL where there are none */
    bool stopped;        /* host.stop has said so; it is not asked again */
    char error[1024];    /* the last message of rl_fail */
    jmp_buf oom;         /* where a failed allocation goes; set by RL_PROTECT */
    size_t nbyte, limit; /* bytes held by all arenas; the most that they may hold, 0: no limit */
    size_t per_byte;     /* by so much a model's bytes raise the limit */
    bool over;           /* the allocation that failed was over the limit */
    bool told;           /* error says already which allocation failed */
    rl_chunk *spare[RL_NSPARE]; /* freed, by the sizes that arenas grow by (base.c) */
    size_t nspare;       /* bytes of these; not in nbyte */
    rl_chunk *all;       /* the chunks of every arena: what a jump left behind is freed with the context */
    struct rl_strtab { struct rl_strslot *slot; uint32_t n, cap; } strings;
    uint32_t nowner;     /* who keeps notes on strings: numbers given out so far */
    struct rl_dimtab *dims; /* dim.c */
    uint64_t launched;   /* own kernels, and copies on the device, that a device was asked for (cuda/driver.h) */
};

/* Makes a context; NULL when there is no memory.  limit 0: no limit.  Free with rl_ctx_free, which frees every arena of
 * the context too (so free graphs first: what they map is not in an arena). */
rl_ctx *rl_ctx_new(size_t limit);
/* The same with the caller's functions (NULL: none), copied from the part of the struct that the caller knows. */
rl_ctx *rl_ctx_new_for(size_t limit, const rl_context *host);
void rl_ctx_free(rl_ctx *ctx);

/* For models from anywhere, before the first is read: what a small file can claim is bounded.  max_memory: as limit above; 0: `base`
 * bytes and RL_MEMORY_PER_BYTE for each byte of the models read and of their external data. */
#define RL_MEMORY_BASE ((size_t)1 << 30)
#define RL_MEMORY_RUN (8 * RL_MEMORY_BASE) /* what a model computes may be much larger than its file */
enum { RL_MEMORY_PER_BYTE = 32 };
void rl_ctx_bound(rl_ctx *ctx, size_t max_memory, size_t base);
/* A model of nbyte bytes, or external data of it, has been mapped. */
void rl_ctx_allow(rl_ctx *ctx, size_t nbyte);

/* rl_ctx_keep: what arenas hold now stays. rl_ctx_drop_rest: what they took since then is freed, whatever became of them (a jump leaves some
 * behind that nobody has any more), but for ctx->mem; those that anybody still has must hold nothing of it. */
void rl_ctx_keep(rl_ctx *ctx);
void rl_ctx_drop_rest(rl_ctx *ctx);

/* True the first time; true again with *status* RL_ENOMEM when an allocation inside failed.  Once per public entry:
 *   if (RL_PROTECT(ctx)) return RL_ENOMEM; */
#define RL_PROTECT(ctx) (setjmp((ctx)->oom) != 0 && (rl_fail_memory(ctx), 1))
rl_status rl_fail_memory(rl_ctx *ctx); /* rl_fail: out of memory, or over the limit */

/* The jump itself, for memory that is not an arena's. */
_Noreturn void rl_no_memory(rl_ctx *ctx);
_Noreturn void rl_over_limit(rl_ctx *ctx); /* the same, for what would be more than ctx->limit */
_Noreturn void rl_no_memory_for(rl_ctx *ctx); /* the same, after an rl_fail that says for what */

/* ---- the caller's functions ---- */

/* Zeroed bytes by the caller's allocator or libc's, NULL where there are none; freed by rl_host_free with the same size. */
void *rl_host_alloc(const rl_context *host, size_t nbyte);
void rl_host_free(const rl_context *host, void *p, size_t nbyte);
/* Has the caller asked to stop? */
bool rl_stopped(rl_ctx *ctx);
/* The deadline is over (rl_work_seconds), or the caller asks to stop: a search ends with what it has, and the next rl_begin fails. */
bool rl_time_up(rl_ctx *ctx, double deadline);
/* A step begins: the caller is told. RL_ESTOPPED where it asks to stop. */
rl_status rl_begin(rl_ctx *ctx, const char *step);
void rl_log(rl_ctx *ctx, rl_log_level level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

void rl_arena_init(rl_arena *a, rl_ctx *ctx);
void rl_arena_free(rl_arena *a); /* frees everything; the arena may be used again */

enum { RL_ALIGN = 8 }; /* nothing in an arena asks for more: most of it is small, and a walk over it is as fast as it is short */
void *rl_alloc_more(rl_arena *a, size_t nbyte); /* rl_alloc, where the room is too small */

/* nbyte zeroed bytes, aligned to RL_ALIGN; of 0 bytes, too, each has a place of its own. */
static inline void *rl_alloc(rl_arena *a, size_t nbyte) {
    if (nbyte - 1 >= a->room) return rl_alloc_more(a, nbyte);
    void *p = a->next;
    nbyte = (nbyte + RL_ALIGN - 1) & ~(size_t)(RL_ALIGN - 1);
    a->next += nbyte;
    a->room -= nbyte;
    return p;
}

/* As above, checked for overflow. */
static inline void *rl_alloc_array(rl_arena *a, size_t n, size_t size) {
    size_t nbyte;
    return rl_alloc(a, __builtin_mul_overflow(n, size, &nbyte) ? SIZE_MAX : nbyte);
}

/* A larger copy, zeroed from nold on; or old itself, where there is room behind it. */
void *rl_grow(rl_arena *a, void *old, size_t nold, size_t nnew, size_t size);
/* The same, and a large old is freed: nobody else has it. */
void *rl_regrow(rl_arena *a, void *old, size_t nold, size_t nnew, size_t size);
/* Gives back what has a chunk of its own; anything else stays until the arena is freed. */
void rl_drop(rl_arena *a, void *p, size_t nbyte);
#define rl_new(a, T, n) ((T *)rl_alloc_array((a), (size_t)(n), sizeof(T)))
void *rl_copy(rl_arena *a, const void *p, size_t nbyte);

/* A vector is any struct with members p, n, cap.  rl_push_own: for one that may become large, and that nobody points into. */
#define rl_push(a, v, x) rl_push_with(rl_grow, a, v, x)
#define rl_push_own(a, v, x) rl_push_with(rl_regrow, a, v, x)
#define rl_push_with(grow, a, v, x)                                                                                  \
    do {                                                                                                             \
        if ((v).n == (v).cap) {                                                                                      \
            uint32_t newcap_ = (v).cap ? (v).cap * 2 : 8;                                                            \
            (v).p = grow((a), (v).p, (v).cap, newcap_, sizeof *(v).p);                                               \
            (v).cap = newcap_;                                                                                       \
        }                                                                                                            \
        (v).p[(v).n++] = (x);                                                                                        \
    } while (0)

/* The one copy of the n bytes at s in this context, with a 0 after it. */
rl_str rl_intern(rl_ctx *ctx, const char *s, size_t n);
rl_str rl_internz(rl_ctx *ctx, const char *s);
/* It will be asked for, after others: its slot, which is anywhere in a large table, is fetched meanwhile. */
void rl_intern_soon(const rl_ctx *ctx, const char *s, size_t n);
void rl_intern_expect(rl_ctx *ctx, uint32_t n); /* so many more will come: their table need not grow */
rl_str rl_internf(rl_ctx *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* One number that an owner keeps on the string itself, where the next look at it finds it: a table of its own costs a cache miss more. */
typedef struct { uint32_t owner, value; } rl_note; /* owner 0: nobody's */
rl_note *rl_str_note(rl_str s);
/* Already interned, or NULL. */
rl_str rl_intern_find(const rl_ctx *ctx, const char *s, size_t n);

/* Names come from the model, and from whoever names files: they neither steer the terminal nor look like lines of ours. Control characters
 * become ?, those of two bytes (U+0080 to U+009F) too. What rl_fail stores and rl_log says is made so. */
void rl_make_plain(char *s);
/* Stores the message and returns status: `return rl_fail(ctx, RL_EMODEL, "node '%s' (Conv): ...", ...)`.
 * The message names object, place, what was found and what was wanted, in one line: control characters of a name become ?. */
rl_status rl_fail(rl_ctx *ctx, rl_status status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
#ifdef __clang_analyzer__ /* which looks into no other file: what fails does not return RL_OK */
#define rl_fail(ctx, status, ...) ((rl_fail)((ctx), (status), __VA_ARGS__), (status))
#endif
#define RL_TRY(call)                                                                                                 \
    do {                                                                                                             \
        rl_status try_ = (call);                                                                                     \
        if (try_ != RL_OK) return try_;                                                                              \
    } while (0)

/* A growing text. */
typedef struct { rl_arena *mem; char *p; size_t n, cap; } rl_text;
void rl_put(rl_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void rl_text_room(rl_text *t, size_t n); /* for n bytes more and a 0 */
static inline void rl_put_bytes(rl_text *t, const void *p, size_t n) {
    if (n >= t->cap - t->n) rl_text_room(t, n);
    if (n) memcpy(t->p + t->n, p, n);
    t->n += n;
    t->p[t->n] = 0;
}
/* The number's own bytes: for texts that are only compared. */
static inline void rl_put_number(rl_text *t, int64_t x) { rl_put_bytes(t, &x, sizeof x); }
/* What makes a word the plural: "2 runs". */
static inline const char *rl_plural(int64_t n) { return n == 1 ? "" : "s"; }
/* A name from a model, in a text for people, without control characters. */
void rl_put_name(rl_text *t, const char *name);
/* The whole file as the text (which has its mem set). RL_EIO: "path: why". */
rl_status rl_file_read(const char *path, rl_text *t);

#define RL_NONE UINT32_MAX /* no index, no number */

double rl_seconds(void); /* monotonic */
/* That this thread has worked. What a search may take is counted in these: a busy machine makes it slower, and its result no other. */
double rl_work_seconds(void);

/* Sums and products of counts, bytes and costs that a model may claim: what does not fit is the largest (or least) number. */
static inline int64_t rl_add(int64_t a, int64_t b) {
    int64_t r;
    if (!__builtin_add_overflow(a, b, &r)) return r;
    return a < 0 ? INT64_MIN : INT64_MAX;
}

static inline int64_t rl_mul(int64_t a, int64_t b) {
    int64_t r;
    if (!__builtin_mul_overflow(a, b, &r)) return r;
    return (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
}

/* a / b rounded down, b > 0. */
static inline int64_t rl_floor_div(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

/* The greatest common divisor, not negative. */
static inline int64_t rl_gcd(int64_t a, int64_t b) {
    while (b) {
        int64_t t = a % b;
        a = b;
        b = t;
    }
    return a < 0 ? -a : a;
}

/* Whether both have the same n bytes; of none the addresses may be NULL, which memcmp forbids. */
static inline bool rl_same_bytes(const void *a, const void *b, size_t n) { return n == 0 || memcmp(a, b, n) == 0; }

static inline bool rl_is_letter(int c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* The place that stands for all that x was joined with; up[x] == x: x itself. Ways that are walked become shorter. */
static inline uint32_t rl_root(uint32_t *up, uint32_t x) {
    while (up[x] != x) x = up[x] = up[up[x]];
    return x;
}

/* Sorts n items of `size` bytes by their keys, all below nkey; of one key they stay in their sequence (a counting sort).
 * Returns beg[nkey + 1]: those of key k are then item[beg[k]] .. item[beg[k + 1] - 1].
 *   key 2 0 2, item a b c -> item b a c, beg 0 1 1 3 (3 keys) */
uint32_t *rl_sort_by_key(rl_arena *mem, uint32_t nkey, const uint32_t *key, void *item, uint32_t n, size_t size);

#define RL_MIN(a, b) ((a) < (b) ? (a) : (b))
#define RL_MAX(a, b) ((a) > (b) ? (a) : (b))
#define RL_LEN(x) (sizeof(x) / sizeof *(x))

#endif
