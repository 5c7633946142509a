/* Equations of Einsum: see equation.h. */
#include "equation.h"
#include <string.h>

enum { LETTERS = 52 };

typedef struct {
    const uint8_t *p, *end;
    rl_equation *e;
    uint32_t count[128]; /* of each letter, in the inputs */
    bool dots;           /* in some input */
} reader;

static bool starts_with(const reader *r, const char *s) {
    size_t n = strlen(s);
    return (size_t)(r->end - r->p) >= n && memcmp(r->p, s, n) == 0;
}

/* Letters and dots of one term, up to "," or "->"; ... is one '.'. */
static bool read_term(reader *r, rl_arena *mem, uint32_t term) {
    const uint8_t *end = r->p;
    while (end < r->end && *end != ',' && *end != '-') end++;
    uint8_t *raw = rl_new(mem, uint8_t, (size_t)(end - r->p) + 1);
    uint32_t n = 0;
    for (; r->p < end; r->p++) {
        if (*r->p == ' ') continue;
        if (*r->p == '.') {
            if (!starts_with(r, "...") || memchr(raw, '.', n)) return false;
            r->p += 2;
        } else if (!rl_is_letter(*r->p)) return false;
        raw[n++] = *r->p;
    }
    r->e->letter[term] = raw;
    r->e->rank[term] = n;
    return true;
}

/* The terms of the inputs, and whether a result follows. */
static bool read_terms(reader *r, rl_arena *mem, bool *told) {
    rl_equation *e = r->e;
    for (uint32_t i = 0; i + 1 < e->nterm; i++) {
        if (!read_term(r, mem, i)) return false;
        if (i + 2 == e->nterm) break;
        if (r->p == r->end || *r->p++ != ',') return false;
    }
    *told = r->p < r->end;
    if (!*told) return true;
    if (!starts_with(r, "->")) return false;
    r->p += 2;
    return read_term(r, mem, e->nterm - 1) && r->p == r->end;
}

/* Letters that no term has. */
static bool name_dots(reader *r, uint32_t n) {
    static const char all[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (uint32_t i = 0; i < LETTERS && r->e->ndots < n; i++)
        if (r->count[(uint8_t)all[i]] == 0) r->e->dots[r->e->ndots++] = (uint8_t)all[i];
    return r->e->ndots == n;
}

/* How many dims ... is in an input of that rank; false where the letters do not fit. */
static bool count_dots(const reader *r, uint32_t term, uint32_t rank, uint32_t *n) {
    bool dots = memchr(r->e->letter[term], '.', r->e->rank[term]) != NULL;
    uint32_t letters = r->e->rank[term] - dots;
    *n = dots && rank >= letters ? rank - letters : 0;
    return dots ? rank >= letters : rank == letters;
}

/* Puts the last n letters of dots in the place of '.'. */
static void spread_dots(const rl_equation *e, rl_arena *mem, uint32_t term, uint32_t n) {
    const uint8_t *raw = e->letter[term];
    uint8_t *out = rl_new(mem, uint8_t, e->rank[term] + n + 1);
    uint32_t k = 0;
    for (uint32_t i = 0; i < e->rank[term]; i++) {
        if (raw[i] != '.') out[k++] = raw[i];
        for (uint32_t j = 0; raw[i] == '.' && j < n; j++) out[k++] = e->dots[e->ndots - n + j];
    }
    e->letter[term] = out;
    e->rank[term] = k;
}

static void sorted_result(const reader *r, rl_arena *mem) {
    uint8_t *out = rl_new(mem, uint8_t, LETTERS + 1);
    uint32_t n = 0;
    if (r->dots) out[n++] = '.';
    for (uint8_t c = 'A'; c <= 'z'; c++)
        if (r->count[c] == 1) out[n++] = c;
    r->e->letter[r->e->nterm - 1] = out;
    r->e->rank[r->e->nterm - 1] = n;
}

/* Each letter of the result once, and in some input. */
static bool result_fits(const reader *r) {
    const uint8_t *y = r->e->letter[r->e->nterm - 1];
    uint32_t n = r->e->rank[r->e->nterm - 1];
    for (uint32_t i = 0; i < n; i++)
        if (memchr(y, y[i], i) || (y[i] == '.' ? !r->dots : r->count[y[i]] == 0)) return false;
    return !r->e->ndots || memchr(y, '.', n);
}

bool rl_equation_read(const rl_graph *g, const rl_nodeinfo *n, rl_arena *mem, rl_equation *e) {
    const rl_attr *a = rl_attr_find(n, "equation");
    if (n->nout != 1 || n->nin == 0 || !a || a->kind != RL_ATTR_STRING) return false;
    *e = (rl_equation){.nterm = n->nin + 1, .letter = rl_new(mem, uint8_t *, n->nin + 1), .rank = rl_new(mem, uint32_t, n->nin + 1)};
    reader r = {.p = (const uint8_t *)a->s.p, .end = (const uint8_t *)a->s.p + a->s.n, .e = e};
    bool told;
    uint32_t most = 0, *ndots = rl_new(mem, uint32_t, n->nin);
    if (!read_terms(&r, mem, &told)) return false;
    for (uint32_t i = 0; i < n->nin; i++) {
        uint32_t rank = rl_has(n->in[i]) ? rl_val(g, n->in[i])->rank : RL_NORANK;
        if (rank == RL_NORANK || !count_dots(&r, i, rank, &ndots[i])) return false;
        most = RL_MAX(most, ndots[i]);
        for (uint32_t k = 0; k < e->rank[i]; k++) r.count[e->letter[i][k] & 127] += 1;
    }
    r.dots = r.count['.'] > 0;
    if (!told) sorted_result(&r, mem);
    if (most > LETTERS || !name_dots(&r, most) || !result_fits(&r)) return false;
    for (uint32_t i = 0; i < e->nterm; i++) spread_dots(e, mem, i, i < n->nin ? ndots[i] : most);
    return true;
}

bool rl_equation_permutes(const rl_graph *g, const rl_nodeinfo *n, rl_arena *mem, const int64_t **perm, uint32_t *rank) {
    rl_equation e;
    if (n->nin != 1 || !rl_equation_read(g, n, mem, &e) || e.rank[0] != e.rank[1]) return false;
    int64_t *p = rl_new(mem, int64_t, e.rank[1] + 1);
    for (uint32_t i = 0; i < e.rank[1]; i++) /* as many letters, none twice in the result: none twice in the input */
        p[i] = (const uint8_t *)memchr(e.letter[0], e.letter[1][i], e.rank[0]) - e.letter[0];
    *perm = p;
    *rank = e.rank[1];
    return true;
}

bool rl_equation_is_dots(const rl_equation *e, uint8_t letter) { return memchr(e->dots, letter, e->ndots) != NULL; }
