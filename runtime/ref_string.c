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

/* Writes x at s; the number of bytes. */
static uint32_t put_point(char *s, uint32_t x) {
    uint32_t more = x < 0x80 ? 0 : x < 0x800 ? 1 : x < 0x10000 ? 2 : 3;
    s[0] = (char)(more ? (0xff00u >> (more + 1) & 0xff) | x >> 6 * more : x);
    for (uint32_t i = 1; i <= more; i++) s[i] = (char)(0x80 | (x >> 6 * (more - i) & 0x3f));
    return more + 1;
}

/* s in `to`, which has room for 4 bytes of each of its own. */
static size_t put_changed(char *to, const char *s, change how, locale_t l) {
    char *end = to;
    for (uint32_t n; *s; s += n) {
        uint32_t x = read_point(s, &n);
        if (n == 1 && x >= 0x80) *end++ = *s;
        else end += put_point(end, (uint32_t)(how == LOWER ? towlower_l((wint_t)x, l) : towupper_l((wint_t)x, l)));
    }
    return (size_t)(end - to);
}

/* n strings changed, as names; all room is there before the locale, as an allocation may not come back. */
static rl_status change_case(rl_call *c, const rl_str *s, int64_t n, change how, const rl_str **out) {
    size_t most = 0, at = 0;
    *out = s;
    if (how == KEEP) return RL_OK;
    size_t *size = rl_alloc_array(c->tmp, (size_t)n, sizeof *size);
    for (int64_t i = 0; i < n; i++) most += 4 * strlen(s[i]);
    char *all = rl_alloc_array(c->tmp, most, 1);
    rl_str *changed = rl_alloc_array(c->tmp, (size_t)n, sizeof *changed);
    locale_t l = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (!l) return rl_call_fail(c, RL_ELIMIT, "this system has no C.UTF-8");
    for (int64_t i = 0; i < n; i++) at += size[i] = put_changed(all + at, s[i], how, l);
    freelocale(l);
    for (int64_t i = 0; i < n; all += size[i++]) changed[i] = rl_intern(c->g->ctx, all, size[i]);
    *out = changed;
    return RL_OK;
}

static bool is_among(rl_str s, const rl_str *list, uint32_t n) {
    while (n > 0 && list[n - 1] != s) n--;
    return n > 0;
}

/* Letters change as Unicode says; what `locale` would change otherwise (Turkish i) is not done. */
rl_status rl_ref_string_normalizer(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_dense(c, 0);
    const rl_attr *a = rl_attr_find(c->node, "stopwords");
    bool lower = rl_attr_is(c->node, "case_change_action", "LOWER"), upper = rl_attr_is(c->node, "case_change_action", "UPPER");
    strings stop = {0}, kept = {0};
    const rl_str *changed, *word, *stopword;
    if (x->rank != 1 && (x->rank != 2 || x->dim[0] != 1)) return rl_call_fail(c, RL_EMODEL, "wants [C] or [1,C]");
    for (uint32_t i = 0; a && a->kind == RL_ATTR_STRINGS && i < a->n; i++)
        rl_push(c->tmp, stop, rl_intern(c->g->ctx, (const char *)a->strings[i].p, a->strings[i].n));
    RL_TRY(change_case(c, rl_data(x), rl_numel(x), lower ? LOWER : upper ? UPPER : KEEP, &changed));
    change folds = stop.n && !rl_attr_int(c->node, "is_case_sensitive", 0) ? LOWER : KEEP;
    RL_TRY(change_case(c, rl_data(x), rl_numel(x), folds, &word));
    RL_TRY(change_case(c, stop.p, stop.n, folds, &stopword));
    for (int64_t i = 0; i < rl_numel(x); i++)
        if (!is_among(word[i], stopword, stop.n)) rl_push(c->tmp, kept, changed[i]);
    int64_t n = RL_MAX(kept.n, 1u); /* nothing left: one empty string */
    rl_tensor *y = rl_call_make(c, 0, RL_STRING, x->rank, x->rank == 1 ? &n : (const int64_t[]){1, n});
    if (kept.n) memcpy(rl_data(y), kept.p, kept.n * sizeof *kept.p);
    return RL_OK;
}
