/* See sizes.h. */
#include "sizes.h"

#include <stdlib.h>

#include "../src/ops.h"

/* ---- the symbols ---- */

rl_sizes rl_sizes_of(const rl_graph *g, rl_arena *mem) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < g->input.n; i++)
        if (rl_val(g, g->input.p[i])->rank != RL_NORANK) most += rl_val(g, g->input.p[i])->rank;
    rl_sizes s = {rl_new(mem, rl_str, most), rl_new(mem, bool, most), 0, {.mem = mem}};
    for (uint32_t i = 0; i < g->input.n; i++) {
        const rl_valinfo *x = rl_val(g, g->input.p[i]);
        for (uint32_t k = 0; x->rank != RL_NORANK && k < x->rank; k++) {
            rl_str name = rl_dim_name(g->ctx, x->dim[k]);
            if (!name || rl_hash_get(&s.value, (uint64_t)(uintptr_t)name) != RL_NONE) continue;
            s.name[s.n] = name;
            rl_sizes_set(&s, s.n++, 1);
        }
    }
    return s;
}

void rl_sizes_set(rl_sizes *s, uint32_t i, uint32_t number) { rl_hash_put(&s->value, (uint64_t)(uintptr_t)s->name[i], number); }

uint32_t rl_sizes_get(const rl_sizes *s, uint32_t i) { return rl_hash_get(&s->value, (uint64_t)(uintptr_t)s->name[i]); }

/* ---- what must hold ---- */

typedef enum { IS_THERE, IS_SMALL, ARE_EQUAL, BROADCAST } condition;
enum { MOST_ELEMENTS = 1 << 26 }; /* of an input */

typedef struct { condition what; rl_dim a, b; } rule;
typedef struct { const rl_graph *g; rl_arena *mem; const rl_sizes *size; rl_hash large; struct { rule *p; uint32_t n, cap; } rule; } rules;

/* Only what the symbols of the inputs tell. */
static void add(rules *r, condition what, rl_dim a, rl_dim b) {
    int64_t x;
    if (a == b || !rl_dim_eval(r->g->ctx, a, &r->large, &x) || !rl_dim_eval(r->g->ctx, b, &r->large, &x)) return;
    rl_push(r->mem, r->rule, ((rule){what, a, b}));
}

static void add_value(rules *r, const rl_valinfo *v) {
    for (uint32_t i = 0; v->rank != RL_NORANK && i < v->rank; i++)
        if (!rl_dim_known(v->dim[i])) add(r, IS_THERE, v->dim[i], 1);
}

static rl_dim elements(const rules *r, const rl_valinfo *v) { return rl_dim_prod(r->g->ctx, v->dim, v->rank); }

static void add_pair(rules *r, rl_class cls, const rl_valinfo *a, const rl_valinfo *b, uint32_t axis) {
    uint32_t rank = RL_MIN(a->rank, b->rank);
    for (uint32_t i = 1; i <= rank; i++) {
        rl_dim x = a->dim[a->rank - i], y = b->dim[b->rank - i];
        if (cls == RL_POINTWISE) add(r, BROADCAST, x, y);
        else if (a->rank - i != axis) add(r, ARE_EQUAL, x, y);
    }
}

static void add_node(rules *r, const rl_graph *g, const rl_nodeinfo *n) {
    rl_class cls = rl_op_class(n->op);
    uint32_t axis = RL_NONE;
    if (cls == RL_CONCAT && !rl_op_axis(g, n, &axis)) return;
    const rl_valinfo *x = rl_has(rl_in(n, 0)) ? rl_val(g, n->in[0]) : NULL, *y = rl_has(rl_out(n, 0)) ? rl_val(g, n->out[0]) : NULL;
    if (!x || !y || x->rank == RL_NORANK || y->rank == RL_NORANK) return;
    if (cls == RL_MOVING) add(r, ARE_EQUAL, elements(r, x), elements(r, y));
    for (uint32_t k = 1; k < n->nin && (cls == RL_CONCAT || cls == RL_POINTWISE); k++)
        if (rl_has(n->in[k]) && rl_val(g, n->in[k])->rank != RL_NORANK) add_pair(r, cls, x, rl_val(g, n->in[k]), axis);
}

static void add_graph(rules *r, const rl_graph *g) {
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        add_node(r, g, n);
        for (uint32_t k = 0; k < n->nout; k++)
            if (rl_has(n->out[k])) add_value(r, rl_val(g, n->out[k]));
        for (uint32_t k = 0; k < n->nattr; k++)
            if (n->attr[k].graph) add_graph(r, n->attr[k].graph);
    }
}

static int by_content(const void *x, const void *y) {
    const rule *a = x, *b = y;
    if (a->what != b->what) return a->what < b->what ? -1 : 1;
    return a->a != b->a ? (a->a < b->a ? -1 : 1) : (a->b > b->b) - (a->b < b->b);
}

static rules rules_of(const rl_graph *g, const rl_sizes *s, rl_arena *mem) {
    enum { LARGE = 1000003 }; /* few expressions of sizes are negative there */
    rules r = {.g = g, .mem = mem, .size = s, .large = {.mem = mem}};
    for (uint32_t i = 0; i < s->n; i++) rl_hash_put(&r.large, (uint64_t)(uintptr_t)s->name[i], LARGE);
    add_graph(&r, g);
    for (uint32_t i = 0; i < g->input.n; i++)
        if (rl_val(g, g->input.p[i])->rank != RL_NORANK) add(&r, IS_SMALL, elements(&r, rl_val(g, g->input.p[i])), 1);
    if (r.rule.n) qsort(r.rule.p, r.rule.n, sizeof *r.rule.p, by_content);
    uint32_t n = 0;
    for (uint32_t i = 0; i < r.rule.n; i++)
        if (!n || by_content(&r.rule.p[n - 1], &r.rule.p[i]) != 0) r.rule.p[n++] = r.rule.p[i];
    r.rule.n = n;
    return r;
}

/* rl_dim_eval: false also where it is negative. */
static bool holds(const rules *r, const rule *c) {
    int64_t a, b;
    if (!rl_dim_eval(r->g->ctx, c->a, &r->size->value, &a) || !rl_dim_eval(r->g->ctx, c->b, &r->size->value, &b)) return false;
    switch (c->what) {
    case IS_THERE: return a > 0;
    case IS_SMALL: return a <= MOST_ELEMENTS;
    case ARE_EQUAL: return a == b;
    default: return a == b || a == 1 || b == 1;
    }
}

static uint32_t failing(const rules *r) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->rule.n; i++) n += !holds(r, &r->rule.p[i]);
    return n;
}

/* ---- the search ---- */

/* What windows leave, what halves several times, what sounds and images have. */
static const uint32_t number[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 320, 400, 512, 640, 1024, 2048, 4096, 8192, 16384, 65536};

static void try(const rules *r, rl_sizes *s, uint32_t i, uint32_t x, uint32_t *best, uint32_t *least) {
    rl_sizes_set(s, i, x);
    uint32_t n = failing(r);
    if (n < *least) *least = n, *best = x;
}

/* Also what others have, and the sum of two: a key's length is that of the past and of what is new. */
static void fit_symbol(const rules *r, rl_sizes *s, uint32_t i, uint32_t *least) {
    enum { FEW = 12 };
    uint32_t best = rl_sizes_get(s, i);
    for (uint32_t j = 0; j < s->n && *least; j++)
        if (j != i) try(r, s, i, rl_sizes_get(s, j), &best, least);
    for (uint32_t k = 0; k < RL_LEN(number) && *least; k++) try(r, s, i, number[k], &best, least);
    for (uint32_t j = 0; j < s->n && s->n <= FEW && *least; j++)
        for (uint32_t k = 0; k < j && *least && j != i; k++)
            if (k != i) try(r, s, i, rl_sizes_get(s, j) + rl_sizes_get(s, k), &best, least);
    rl_sizes_set(s, i, best);
}

void rl_sizes_fit(const rl_graph *g, rl_sizes *s) {
    enum { TURNS = 3, MANY = 64 };
    bool open = false;
    for (uint32_t i = 0; i < s->n; i++) open |= !s->fixed[i];
    if (!open || s->n > MANY) return;
    rules r = rules_of(g, s, s->value.mem);
    uint32_t least = failing(&r);
    for (uint32_t turn = 0, before = RL_NONE; turn < TURNS && least && least < before; turn++) {
        before = least;
        for (uint32_t i = 0; i < s->n && least; i++)
            if (!s->fixed[i]) fit_symbol(&r, s, i, &least);
    }
}
