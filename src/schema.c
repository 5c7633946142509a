/* Holds nodes against the rows of schemas.def: see schema.h. */
#include "schema.h"

#include <stdlib.h>
#include <string.h>

#include "ops.h"
#include "permute.h"

/* The words of each op of the table: NULL for what is no operator. */
static const char *const of_op[RL_NOP] = {
#define SCHEMA(id, versions, words) [RL_OP_##id] = words,
#define SCHEMA_OTHER(domain, type, versions, words)
#include "schemas.def"
#undef SCHEMA
#undef SCHEMA_OTHER
};

static const struct { const char *domain, *type, *words; } others[] = {
#define SCHEMA(id, versions, words)
#define SCHEMA_OTHER(domain, type, versions, words) {domain, type, words},
#include "schemas.def"
#undef SCHEMA
#undef SCHEMA_OTHER
};

static const struct { const char *domain; int64_t newest; } domains[] = {
    {"", 28}, {"ai.onnx.ml", 5}, {"ai.onnx.preview", 1}, {"ai.onnx.preview.training", 1}, {"com.microsoft", 1},
};

int64_t rl_schema_newest(rl_str domain) {
    for (size_t i = 0; i < RL_LEN(domains); i++)
        if (strcmp(domains[i].domain, domain) == 0) return domains[i].newest;
    return 0;
}

typedef struct { const char *name, *what; size_t n; char sign; } word;

/* The next word that holds for the version; false after the last. */
static bool next_word(const char **words, uint32_t version, word *w) {
    while (**words) {
        uint32_t from = 0, until = UINT32_MAX;
        const char *s = *words;
        char *end = (char *)(uintptr_t)s;
        if (*s >= '0' && *s <= '9') {
            from = (uint32_t)strtoul(s, &end, 10);
            s = end + 1;
        }
        w->name = s;
        while (*s != '=' && *s != ':') s++;
        w->n = (size_t)(s - w->name);
        w->sign = *s;
        w->what = s + 1;
        while (*s && *s != ' ' && *s != '<') s++;
        if (*s == '<') {
            until = (uint32_t)strtoul(s + 1, &end, 10);
            s = end;
        }
        *words = s + (*s == ' ');
        if (version >= from && version < until) return true;
    }
    return false;
}

static const char kinds[] = {[RL_ATTR_FLOAT] = 'f',  [RL_ATTR_INT] = 'i',    [RL_ATTR_STRING] = 's', [RL_ATTR_TENSOR] = 't',
                             [RL_ATTR_GRAPH] = 'g', [RL_ATTR_FLOATS] = 'F', [RL_ATTR_INTS] = 'I',   [RL_ATTR_STRINGS] = 'S'};

static bool is_of_kind(const rl_attr *a, char kind) {
    return a->ref || ((size_t)a->kind < sizeof kinds ? kinds[a->kind] : 'o') == kind;
}

/* Whether the attribute is among the words from there on; then on to those after it. */
static bool has_attr(const char **words, uint32_t version, const rl_attr *a) {
    for (word w; next_word(words, version, &w);)
        if (w.sign == ':' && strncmp(a->name, w.name, w.n) == 0 && !a->name[w.n]) return is_of_kind(a, *w.what);
    return false;
}

static uint32_t present(const rl_value *v, uint32_t n) {
    while (n > 0 && !rl_has(v[n - 1])) n--;
    return n;
}

/* `least-most`, or one number for both; * for any number. */
static rl_schema_count count_of(const char *what) {
    char *end;
    if (*what == '*') return (rl_schema_count){0, UINT32_MAX};
    uint32_t least = (uint32_t)strtoul(what, &end, 10);
    if (*end != '-') return (rl_schema_count){least, least};
    return (rl_schema_count){least, end[1] == '*' ? UINT32_MAX : (uint32_t)strtoul(end + 1, NULL, 10)};
}

static void find_counts(const char *words, uint32_t version, rl_schema_count *in, rl_schema_count *out) {
    for (word w; next_word(&words, version, &w) && w.sign == '=';) *(*w.name == 'i' ? in : out) = count_of(w.what);
    out->least = 0; /* what nobody reads may be left out */
}

/* The first that must be there and is not; RL_NONE where all are. Of any number none is left out. */
static uint32_t first_missing(rl_schema_count c, const rl_value *v, uint32_t n) {
    uint32_t all = c.least && c.most == UINT32_MAX ? RL_MAX(n, c.least) : c.least;
    for (uint32_t i = 0; i < all; i++)
        if (i >= n || !rl_has(v[i])) return i;
    return RL_NONE;
}

static bool takes_so_many(rl_schema_count in, rl_schema_count out, const rl_nodeinfo *n) {
    return present(n->in, n->nin) <= in.most && present(n->out, n->nout) <= out.most && first_missing(in, n->in, n->nin) == RL_NONE;
}

/* The first attribute that the words do not have, or that is there before. Most files have them sorted, as the words are. */
static const rl_attr *strange_attr(const char *words, const rl_nodeinfo *n) {
    const char *at = words;
    for (uint32_t i = 0; i < n->nattr; i++) {
        const rl_attr *a = &n->attr[i];
        if (!has_attr(&at, n->since, a)) {
            at = words;
            if (!has_attr(&at, n->since, a)) return a;
        }
        for (uint32_t k = 0; k < i; k++)
            if (n->attr[k].name == a->name) return a;
    }
    return NULL;
}

static bool is_like(const rl_schema_seen *seen, const rl_nodeinfo *n) {
    if (seen->since != n->since || seen->nattr != n->nattr) return false;
    for (uint32_t i = 0; i < n->nattr; i++) {
        const rl_attr *a = &n->attr[i], *b = &seen->attr[i];
        if (a->name != b->name || a->kind != b->kind || a->ref != b->ref) return false;
    }
    return true;
}

/* Of com.microsoft, whose ops change without another version, a missing input says only that the op is not the one that is known. */
static bool is_wrong(rl_op op, const rl_nodeinfo *n, rl_schema_count in, rl_text *why) {
    const rl_attr *perm = op == RL_OP_Transpose ? rl_attr_ints(n, "perm") : NULL;
    uint32_t missing = *n->domain || in.most == UINT32_MAX ? RL_NONE : first_missing(in, n->in, n->nin);
    if (missing != RL_NONE) rl_put(why, "has no input %u", missing);
    else if (perm && !rl_is_permutation(perm->ints, perm->n, why->mem)) rl_put(why, "perm is no permutation");
    return why->n > 0;
}

rl_op rl_schema_op(rl_op op, const rl_nodeinfo *n, rl_schema_seen *seen, rl_text *why) {
    const char *words = of_op[op];
    if (!words) return RL_OP_OPAQUE;
    bool known = seen && is_like(&seen[op], n);
    rl_schema_seen now = known ? seen[op] : (rl_schema_seen){.attr = n->attr, .nattr = n->nattr, .since = n->since};
    if (!known) find_counts(words, n->since, &now.in, &now.out);
    if (is_wrong(op, n, now.in, why) || !takes_so_many(now.in, now.out, n) || (!known && strange_attr(words, n))) return RL_OP_OPAQUE;
    if (seen) seen[op] = now;
    return op;
}

static const char *words_of(const rl_nodeinfo *n) {
    rl_op op = rl_op_named(n->domain, n->type);
    if (op != RL_OP_OPAQUE) return of_op[op];
    for (size_t i = 0; i < RL_LEN(others); i++)
        if (strcmp(others[i].domain, n->domain) == 0 && strcmp(others[i].type, n->type) == 0) return others[i].words;
    return NULL;
}

bool rl_schema_knows(const rl_nodeinfo *n, rl_text *why) {
    const char *words = words_of(n);
    uint32_t nin = present(n->in, n->nin), nout = present(n->out, n->nout);
    rl_schema_count in = {0}, out = {0};
    const rl_attr *a;
    if (words) find_counts(words, n->since, &in, &out);
    if (n->since > rl_schema_newest(n->domain) || !words)
        rl_put(why, "%s-%u: known are operators of '%s' up to version %lld", n->type, n->since, *n->domain ? n->domain : "ai.onnx",
               (long long)rl_schema_newest(n->domain));
    else if (nin > in.most || nout > out.most)
        rl_put(why, "%s-%u is not known to have %u inputs and %u outputs", n->type, n->since, nin, nout);
    else if (first_missing(in, n->in, n->nin) != RL_NONE)
        rl_put(why, "%s-%u is not known to do without input %u", n->type, n->since, first_missing(in, n->in, n->nin));
    else if ((a = strange_attr(words, n)) && rl_attr_find(n, a->name) != a)
        rl_put(why, "%s-%u has an attribute '%.100s' twice: which is meant is not known", n->type, n->since, a->name);
    else if (a)
        rl_put(why, "%s-%u is not known to have an attribute '%.100s' of this type", n->type, n->since, a->name);
    else
        return true;
    return false;
}
