/* A bound of a component by spans of its ops (solve_span.c), in terms of the plan: for bound.c, where a restricted problem takes too long to be solved as a whole.
 *
 * Needs: the restricted plan, with every configuration.  Keeps: all plans. */
#include "bound.h"

/* Tests set it low, so that small problems have spans. */
#ifndef RL_SPAN_OPS
#define RL_SPAN_OPS 24
#endif
enum { FEW = RL_SPAN_OPS, MOST = 4 * RL_SPAN_OPS, SPARE = 8 }; /* ops of a span: twice as many, where fewer do not do and took no more than that part of the time */

/* The component alone. */
static rl_problem problem_of(const rl_plan *q, const rl_problem *all, uint32_t comp, rl_arena *tmp) {
    bool *one = rl_new(tmp, bool, q->ncomp);
    rl_choice *op = rl_new(tmp, rl_choice, all->nop);
    int64_t *weight = rl_copy(tmp, all->weight, all->nval * sizeof *weight);
    rl_problem x = {.nval = all->nval, .weight = weight, .norder = all->norder, .op = op};
    one[comp] = true;
    for (uint32_t c = 0; c < q->cls.n; c++)
        if (q->cls.p[c].comp != comp) weight[c] = 0;
    for (uint32_t k = 0; k < all->nop; k++)
        if (rl_touches(q, &q->op.p[k], one)) op[x.nop++] = all->op[k];
    return x;
}

/* Where each span ends, in p->op. */
static void find_ends(const rl_plan *p, uint32_t comp, rl_opspans *x, rl_arena *tmp) {
    bool *one = rl_new(tmp, bool, p->ncomp);
    uint32_t i = 0, n = 0;
    one[comp] = true;
    for (uint32_t k = 0; k < p->op.n && i < x->n; k++) {
        n += rl_touches(p, &p->op.p[k], one);
        if (n < x->span[i].nop) continue;
        x->span[i++].nop = k + 1;
        n = 0;
    }
}

/* Orders by their places in the dictionary.  False where there are too many. */
static bool find_places(const rl_plan *q, rl_opspans *x) {
    enum { MOST_ATOM = 8 }; /* as of folds */
    for (uint32_t i = 0; i < x->n; i++)
        for (uint32_t k = 0; k < x->span[i].nweigh; k++) {
            rl_weigh *w = &x->span[i].weigh[k];
            const rl_cls *c = &q->cls.p[w->value];
            if (c->natom > MOST_ATOM) return false;
            w->order = rl_order_place(c->order.p[w->order].p, c->natom);
        }
    return true;
}

/* Costs as the certificate has them: in bytes.  False where these would be too large. */
static bool count_in_bytes(const rl_bound_scale *s, rl_opspans *x) {
    if (s->price) {
        x->conversion = 1;
        return true;
    }
    x->conversion = s->unit << s->up;
    if ((double)x->bound * (double)s->unit > 0x1p59 || (double)x->conversion > 0x1p59) return false;
    for (uint32_t i = 0; i < x->n; i++) {
        x->span[i].least *= s->unit;
        for (uint32_t k = 0; k < x->span[i].nweigh; k++) x->span[i].weigh[k].weight *= s->unit;
    }
    return true;
}

/* The least count, and then bytes, that a choice of this weight or more has: no conversion moves more than `most`. */
static rl_least least_of(const rl_bound_scale *s, int64_t weight, int64_t most, rl_least known) {
    if (s->price) return (rl_least){weight, 0};
    rl_least x = {weight >> s->up, (weight & ((INT64_C(1) << s->up) - 1)) * s->unit};
    if (weight >= rl_bound_weight(s, known)) return known;
    if (x.bytes > rl_mul(x.count, most)) x = (rl_least){x.count + 1, 0};
    return x.count < known.count ? (rl_least){x.count, 0} : x; /* of bytes nothing is said then */
}

bool rl_bound_by_spans(rl_prover *v, const rl_plan *q, const rl_problem *problem, uint32_t comp, rl_least *least, const rl_opspans **spans) {
    const rl_bound_scale *s = &v->scale;
    if (s->bytes_first || !s->exact) return false;
    rl_problem one = problem_of(q, problem, comp, v->tmp);
    rl_spanning spanning;
    rl_opspans best = {0}, x;
    rl_least known = v->known[comp];
    int64_t most = 0, enough = s->price ? known.count : rl_bound_weight(s, known);
    double start = rl_work_seconds();
    for (uint32_t c = 0; c < q->cls.n; c++)
        if (q->cls.p[c].comp == comp) most = RL_MAX(most, q->cls.p[c].bytes);
    *least = (rl_least){0};
    bool open = true;
    if (rl_span_begin(v->tmp, &one, &spanning) != RL_OK) return false;
    for (uint32_t about = FEW; about <= MOST && open && rl_work_seconds() - start <= (v->deadline - start) / SPARE; about *= 2) {
        rl_solve_spans(v->p->mem, &spanning, about, enough, v->deadline, &x);
        if (x.n && x.bound > best.bound) best = x;
        if (best.bound > 0) *least = least_of(s, best.bound, most, known);
        open = least->count < known.count || (least->bytes == 0 && known.bytes > 0);
    }
    if (best.bound <= 0 || !find_places(q, &best) || !count_in_bytes(s, &best)) return false;
    find_ends(v->p, comp, &best, v->tmp);
    *spans = rl_copy(v->p->mem, &best, sizeof best);
    return true;
}
