/* Sizes that must be equal though they were computed in different ways (dim.h: rl_dimrules).
 *
 * a = b is solved for a symbol that stands alone in a term of a - b, which is then written as the rest:
 *   H = 2*floor((H+1)/2)     H is written as 2*floor((H+1)/2): an image whose sizes are even
 *   A = H, 2*?3 = 4*N        A is written as H, ?3 as 2*N
 * The symbol floor((H+1)/2) stays what it is, though its name has an H: a rule is used once, not on what it puts. */
#include "dim_internal.h"

enum {
    MAXNEST = 8,  /* divisions inside divisions */
    MAXRULE = 64, /* each is looked at for each size */
};

static void put_normal(rl_ctx *ctx, const rl_dimrules *r, const rl_dimterm *t, uint32_t n, uint32_t depth, rl_dimwork *out);

static void put_dim(const rl_ctx *ctx, rl_dim d, rl_dimwork *out) {
    rl_dim_start(out);
    if (rl_dim_known(d)) rl_dim_add_const(ctx, out, d);
    for (uint32_t i = 0; !rl_dim_known(d) && i < rl_dim_poly(ctx, d)->n; i++) rl_dim_add_term(ctx, out, &rl_dim_poly(ctx, d)->t[i]);
}

/* What stands for a symbol; a division is made of what stands for its dividend. */
static void put_symbol(rl_ctx *ctx, const rl_dimrules *r, uint32_t sym, uint32_t depth, rl_dimwork *out) {
    const rl_dimsym s = ctx->dims->sym.p[sym];
    rl_dimterm alone = {.c = 1, .nsym = 1, .sym = {sym}};
    for (uint32_t i = 0; i < r->n; i++)
        if (r->p[i].sym == sym) {
            put_dim(ctx, r->p[i].is, out);
            return;
        }
    rl_dim_start(out);
    if (s.kind != FLOOR || depth == MAXNEST) {
        rl_dim_add_term(ctx, out, &alone);
        return;
    }
    const rl_dimpoly p = ctx->dims->poly.p[s.num];
    put_normal(ctx, r, p.t, p.n, depth + 1, out);
    rl_dim_floor(ctx, out, s.k);
}

static void put_normal(rl_ctx *ctx, const rl_dimrules *r, const rl_dimterm *t, uint32_t n, uint32_t depth, rl_dimwork *out) {
    rl_dimwork product, symbol, next;
    rl_dim_start(out);
    for (uint32_t i = 0; i < n; i++) {
        rl_dim_start(&product);
        rl_dim_add_const(ctx, &product, t[i].c);
        for (uint32_t j = 0; j < t[i].nsym; j++) {
            put_symbol(ctx, r, t[i].sym[j], depth, &symbol);
            rl_dim_multiply(ctx, &product, &symbol, &next);
            product = next;
        }
        out->bad |= product.bad;
        for (uint32_t j = 0; j < product.n; j++) rl_dim_add_term(ctx, out, &product.t[j]);
    }
}

rl_dim rl_dim_normal(rl_ctx *ctx, const rl_dimrules *r, rl_dim d) {
    if (rl_dim_known(d) || r->n == 0) return d;
    rl_dimwork w;
    put_normal(ctx, r, rl_dim_poly(ctx, d)->t, rl_dim_poly(ctx, d)->n, 0, &w);
    return w.bad ? d : rl_dim_finish(ctx, &w);
}

/* ---- a new rule ---- */

/* Those that say least go first. */
static uint32_t rank_of(const rl_dimsym *s) {
    return s->kind == FRESH ? 0 : s->kind == FLOOR ? 3 : s->name[0] == '?' ? 1 : 2;
}

/* Does the term's one symbol stand in no other term? */
static bool stands_alone(const rl_dimwork *w, uint32_t i) {
    const rl_dimterm *x = &w->t[i];
    if (x->nsym != 1 || (x->c != 1 && x->c != -1)) return false;
    for (uint32_t k = 0; k < w->n; k++)
        for (uint32_t j = 0; k != i && j < w->t[k].nsym; j++)
            if (w->t[k].sym[j] == x->sym[0]) return false;
    return true;
}

/* Written by the rules, what stands for each symbol stays what it is. */
static bool is_settled(rl_ctx *ctx, const rl_dimrules *r) {
    for (uint32_t i = 0; i < r->n; i++)
        if (rl_dim_normal(ctx, r, r->p[i].is) != r->p[i].is) return false;
    return true;
}

/* Adds the rule for the symbol of term i of w, which is 0; false, and nothing changed, where the rules then lead on and on. */
static bool add_rule(rl_ctx *ctx, rl_arena *mem, rl_dimrules *r, const rl_dimwork *w, uint32_t i) {
    rl_dimwork rest;
    rl_dim_start(&rest);
    for (uint32_t k = 0; k < w->n; k++) {
        rl_dimterm t = w->t[k];
        if (k == i) continue;
        if (w->t[i].c > 0 && __builtin_sub_overflow((int64_t)0, t.c, &t.c)) return false;
        rl_dim_add_term(ctx, &rest, &t);
    }
    if (rest.bad || rest.n == 0 || rest.t[0].nsym == 0) return false; /* a number: the model runs with that size alone */
    rl_dimrule one = {w->t[i].sym[0], rl_dim_finish(ctx, &rest)};
    rl_dimrules with = {0}, just = {&one, 1, 1};
    for (uint32_t k = 0; k < r->n; k++) rl_push(mem, with, ((rl_dimrule){r->p[k].sym, rl_dim_normal(ctx, &just, r->p[k].is)}));
    rl_push(mem, with, one);
    if (!is_settled(ctx, &with)) return false;
    *r = with;
    return true;
}

/* Of 4*A = 8*B, A = 2*B is left. */
static void divide_common(rl_dimwork *w) {
    int64_t common = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->t[i].c == INT64_MIN) return;
        common = rl_gcd(common, w->t[i].c);
    }
    for (uint32_t i = 0; common > 1 && i < w->n; i++) w->t[i].c /= common;
}

bool rl_dim_equate(rl_ctx *ctx, rl_arena *mem, rl_dimrules *r, rl_dim a, rl_dim b) {
    rl_dimwork x, y;
    put_dim(ctx, rl_dim_normal(ctx, r, a), &x);
    put_dim(ctx, rl_dim_normal(ctx, r, b), &y);
    for (uint32_t i = 0; i < y.n; i++) {
        rl_dimterm t = y.t[i];
        if (__builtin_sub_overflow((int64_t)0, t.c, &t.c)) return false;
        rl_dim_add_term(ctx, &x, &t);
    }
    if (x.bad || r->n == MAXRULE) return false;
    divide_common(&x);
    for (uint32_t rank = 0; rank < 4; rank++)
        for (uint32_t i = 0; i < x.n; i++)
            if (stands_alone(&x, i) && rank_of(&ctx->dims->sym.p[x.t[i].sym[0]]) == rank && add_rule(ctx, mem, r, &x, i)) return true;
    return false;
}
