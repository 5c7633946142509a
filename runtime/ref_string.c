/* Strings: StringConcat, StringSplit, StringNormalizer. */
#include <locale.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include "element.h"
#include "kernels.h"

static rl_str string_at(const rl_tensor *t, int64_t at) {
    return ((const rl_str *)t->mem->p)[at];
}

rl_status rl_ref_string_concat(rl_call *c) {
    rl_tensor *y, a, b;
    int64_t i[RL_RANK] = {0};
    RL_TRY(rl_make_broadcast(c, RL_STRING, 2, &y));
    if (rl_call_in(c, 1)->dtype != RL_STRING) return rl_call_fail(c, RL_EMODEL, "input 1 is of another type");
    rl_view_expand(rl_call_in(c, 0), y->rank, y->dim, &a);
    rl_view_expand(rl_call_in(c, 1), y->rank, y->dim, &b);
    rl_text t = {.mem = c->tmp};
    for (int64_t k = 0, n = rl_numel(y); k < n; k++) {
        rl_str x = string_at(&a, rl_place(&a, i)), z = string_at(&b, rl_place(&b, i));
        t.n = 0;
        rl_put_bytes(&t, x, strlen(x));
        rl_put_bytes(&t, z, strlen(z));
        ((rl_str *)rl_data(y))[k] = rl_intern(c->g->ctx, t.p ? t.p : "", t.n);
        rl_next_index(y->rank, y->dim, i);
    }
    return RL_OK;
}

/* ---- StringSplit ---- */

typedef struct { rl_str *p; uint32_t n, cap; } strings;

static const char blanks[] = " \t\n\v\f\r";

/* Appends at most `most` + 1 parts. Without a delimiter blanks are one, however many, and those around the string are none. */
static void split(rl_call *c, const char *s, rl_str delimiter, int64_t most, strings *out) {
    rl_ctx *ctx = c->g->ctx;
    bool by_blanks = !*delimiter;
    for (int64_t i = 0;; i++) {
        const char *end = NULL;
        if (by_blanks) s += strspn(s, blanks);
        if (by_blanks && !*s) return;
        if (i < most) end = by_blanks ? s + strcspn(s, blanks) : strstr(s, delimiter);
        rl_push(c->tmp, *out, rl_intern(ctx, s, end ? (size_t)(end - s) : strlen(s)));
        if (!end) return;
        s = end + strlen(delimiter);
    }
}

rl_status rl_ref_string_split(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_dense(c, 0);
    const rl_attr *a = rl_attr_find(c->node, "delimiter");
    rl_str delimiter = a && a->kind == RL_ATTR_STRING && a->s.n ? rl_intern(c->g->ctx, (const char *)a->s.p, a->s.n) : rl_internz(c->g->ctx, "");
    int64_t n = rl_numel(x), most = rl_attr_int(c->node, "maxsplit", -1), width = 0, dim[RL_RANK];
    strings part = {0};
    rl_tensor *count = rl_call_make(c, 1, RL_I64, x->rank, x->dim);
    int64_t *k = rl_data(count);
    if (x->rank + 1 > RL_RANK) return rl_call_fail(c, RL_ELIMIT, "rank over the limit of %d", RL_RANK);
    for (int64_t i = 0; i < n; i++) {
        uint32_t had = part.n;
        split(c, ((const rl_str *)rl_data(x))[i], delimiter, most < 0 ? INT64_MAX : most, &part);
        k[i] = part.n - had;
        width = RL_MAX(width, k[i]);
    }
    memcpy(dim, x->dim, sizeof dim);
    dim[x->rank] = width;
    RL_TRY(rl_call_dims(c, x->rank + 1, dim));
    rl_str *y = rl_data(rl_call_make(c, 0, RL_STRING, x->rank + 1, dim));
    for (int64_t i = 0, at = 0; i < n; at += k[i++])
        if (k[i]) memcpy(y + i * width, part.p + at, (size_t)k[i] * sizeof *y);
    return RL_OK;
}

/* ---- StringNormalizer ---- */

typedef enum { KEEP, LOWER, UPPER } change;

/* The code point at s and its length; bytes that are no UTF-8 stand for themselves. */
static uint32_t read_point(const char *s, uint32_t *n) {
    const uint8_t *p = (const uint8_t *)s;
    uint32_t more = p[0] >= 0xf0 ? 3 : p[0] >= 0xe0 ? 2 : p[0] >= 0xc0 ? 1 : 0, x = more ? p[0] & (0x3fu >> more) : p[0];
    *n = 1;
    for (uint32_t i = 1; i <= more; i++) {
        if ((p[i] & 0xc0) != 0x80) return p[0];
        x = x << 6 | (p[i] & 0x3f);
    }
    *n = 1 + more;
    return x;
}

static void put_point(rl_text *t, uint32_t x) {
    char s[4];
    uint32_t more = x < 0x80 ? 0 : x < 0x800 ? 1 : x < 0x10000 ? 2 : 3;
    s[0] = (char)(more ? (0xff00u >> (more + 1) & 0xff) | x >> 6 * more : x);
    for (uint32_t i = 1; i <= more; i++) s[i] = (char)(0x80 | (x >> 6 * (more - i) & 0x3f));
    rl_put_bytes(t, s, more + 1);
}

static rl_str change_case(rl_call *c, const char *s, size_t size, change how, locale_t l) {
    rl_text t = {.mem = c->tmp};
    const char *zero_ended = rl_intern(c->g->ctx, s, size);
    for (uint32_t n; how != KEEP && *zero_ended; zero_ended += n) {
        uint32_t x = read_point(zero_ended, &n);
        if (n == 1 && x >= 0x80) rl_put_bytes(&t, zero_ended, 1);
        else put_point(&t, (uint32_t)(how == LOWER ? towlower_l((wint_t)x, l) : towupper_l((wint_t)x, l)));
    }
    return how == KEEP ? zero_ended : rl_intern(c->g->ctx, t.p ? t.p : "", t.n);
}

static bool is_stopword(rl_call *c, rl_str s, const rl_attr *stop, bool exact, locale_t l) {
    rl_str word = change_case(c, s, strlen(s), exact ? KEEP : LOWER, l);
    for (uint32_t i = 0; stop && stop->kind == RL_ATTR_STRINGS && i < stop->n; i++)
        if (word == change_case(c, (const char *)stop->strings[i].p, stop->strings[i].n, exact ? KEEP : LOWER, l)) return true;
    return false;
}

static void normalize(rl_call *c, const rl_tensor *x, change how, locale_t l) {
    const rl_attr *stop = rl_attr_find(c->node, "stopwords");
    bool exact = rl_attr_int(c->node, "is_case_sensitive", 0) != 0;
    strings kept = {0};
    for (int64_t i = 0; i < rl_numel(x); i++) {
        rl_str s = ((const rl_str *)rl_data(x))[i];
        if (!is_stopword(c, s, stop, exact, l)) rl_push(c->tmp, kept, change_case(c, s, strlen(s), how, l));
    }
    int64_t n = RL_MAX(kept.n, 1u); /* nothing left: one empty string */
    rl_tensor *y = rl_call_make(c, 0, RL_STRING, x->rank, x->rank == 1 ? &n : (const int64_t[]){1, n});
    if (kept.n) memcpy(rl_data(y), kept.p, kept.n * sizeof *kept.p);
}

/* Letters change as Unicode says; what `locale` would change otherwise (Turkish i) is not done. */
rl_status rl_ref_string_normalizer(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_dense(c, 0);
    bool lower = rl_attr_is(c->node, "case_change_action", "LOWER"), upper = rl_attr_is(c->node, "case_change_action", "UPPER");
    change how = lower ? LOWER : upper ? UPPER : KEEP;
    if (x->rank != 1 && (x->rank != 2 || x->dim[0] != 1)) return rl_call_fail(c, RL_EMODEL, "wants [C] or [1,C]");
    locale_t l = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (!l) return rl_call_fail(c, RL_ELIMIT, "this system has no C.UTF-8");
    normalize(c, x, how, l);
    freelocale(l);
    return RL_OK;
}
