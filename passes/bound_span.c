/* A bound of a component by spans of its ops (solve_span.c), in terms of the plan: for bound.c, where a restricted problem takes too long to be solved as a whole.
 *
 * Needs: the restricted plan, with every configuration.  Keeps: all plans. */
#include "bound.h"

/* Tests set it low, so that small problems have spans. */
#ifndef RL_SPAN_OPS
#define RL_SPAN_OPS 24
#endif
/* Ops of a span.  First FEW; twice as many, up to MOST, where that does not do and has taken no more than 1 / SPARE of the time. */
enum { FEW = RL_SPAN_OPS, MOST = 4 * RL_SPAN_OPS, SPARE = 8 };

rl_members rl_members_of(const rl_plan *q, const rl_plan *p, const bool *open, rl_arena *mem) {
    struct { uint32_t *p; uint32_t n, cap; } op = {0}, cls = {0}, comp = {0};
    uint32_t *last = rl_new(mem, uint32_t, q->ncomp); /* 1 + the last op that it has */
    rl_members x = {.place = rl_new(mem, uint32_t, q->cls.n), .was = rl_new(mem, uint32_t, q->op.n)};
    for (uint32_t k = 0, n = 0; k < p->op.n; k++)
        if (rl_touches(p, &p->op.p[k], open)) x.was[n++] = k;
    for (uint32_t k = 0; k < q->op.n; k++)
        for (uint32_t o = 0; o < q->op.p[k].noperand; o++) {
            const rl_operand *pin = &q->op.p[k].operand[o];
            uint32_t c = q->cls.p[pin->cls].comp;
            if (!pin->pin || last[c] == k + 1) continue;
            last[c] = k + 1;
            rl_push(mem, op, k);
            rl_push(mem, comp, c);
        }
    x.opbeg = rl_sort_by_key(mem, q->ncomp, comp.p, op.p, op.n, sizeof *op.p);
    comp.n = 0;
    for (uint32_t c = 0; c < q->cls.n; c++) {
        if (q->cls.p[c].comp >= q->ncomp) continue;
        rl_push(mem, cls, c);
        rl_push(mem, comp, q->cls.p[c].comp);
    }
    x.clsbeg = rl_sort_by_key(mem, q->ncomp, comp.p, cls.p, cls.n, sizeof *cls.p);
    for (uint32_t i = 0; i < cls.n; i++) x.place[cls.p[i]] = i - x.clsbeg[q->cls.p[cls.p[i]].comp];
    x.op = op.p;
    x.cls = cls.p;
    return x;
}

/* The component alone: its values by their places in it, and behind them one for all others, which costs nothing. */
static rl_problem problem_of(const rl_plan *q, const rl_problem *all, uint32_t comp, const rl_members *m, rl_arena *tmp) {
    uint32_t nval = m->clsbeg[comp + 1] - m->clsbeg[comp], nop = m->opbeg[comp + 1] - m->opbeg[comp], *norder = rl_new(tmp, uint32_t, nval + 1);
    const uint32_t *cls = m->cls + m->clsbeg[comp];
    int64_t *weight = rl_new(tmp, int64_t, nval + 1);
    rl_choice *op = rl_new(tmp, rl_choice, nop);
    for (uint32_t v = 0; v < nval; v++) weight[v] = all->weight[cls[v]], norder[v] = all->norder[cls[v]];
    norder[nval] = 1;
    for (uint32_t i = 0; i < nop; i++) {
        op[i] = all->op[m->op[m->opbeg[comp] + i]];
        uint32_t *value = rl_copy(tmp, op[i].value, op[i].npin * sizeof *value);
        for (uint32_t k = 0; k < op[i].npin; k++) value[k] = q->cls.p[value[k]].comp == comp ? m->place[value[k]] : nval;
        op[i].value = value;
    }
    return (rl_problem){.nval = nval + 1, .nop = nop, .weight = weight, .norder = norder, .op = op};
}

/* Where each span ends, in p->op. */
static void find_ends(const rl_members *m, uint32_t comp, rl_opspans *x) {
    for (uint32_t i = 0, at = m->opbeg[comp]; i < x->n; i++) {
        at += x->span[i].nop;
        x->span[i].nop = m->was[m->op[at - 1]] + 1;
    }
}

/* Values as classes, and orders by their places in the dictionary.  False where there are too many. */
static bool find_places(const rl_plan *q, const uint32_t *cls, rl_opspans *x) {
    enum { MOST_ATOM = 8 }; /* as of folds */
    for (uint32_t i = 0; i < x->n; i++)
        for (uint32_t k = 0; k < x->span[i].nweigh; k++) {
            rl_weigh *w = &x->span[i].weigh[k];
            w->value = cls[w->value];
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

bool rl_bound_by_spans(rl_prover *v, const rl_plan *q, const rl_problem *problem, uint32_t comp, const rl_members *m, rl_least *least,
                       const rl_opspans **spans) {
    const rl_bound_scale *s = &v->scale;
    if (s->bytes_first || !s->exact) return false;
    const uint32_t *cls = m->cls + m->clsbeg[comp];
    rl_problem one = problem_of(q, problem, comp, m, v->tmp);
    rl_spanning spanning;
    rl_opspans best = {0}, x;
    rl_least known = v->known[comp];
    int64_t most = 0, enough = s->price ? known.count : rl_bound_weight(s, known);
    double start = rl_work_seconds();
    for (uint32_t i = 0; i + 1 < one.nval; i++) most = RL_MAX(most, q->cls.p[cls[i]].bytes);
    *least = (rl_least){0};
    bool open = true;
    if (rl_span_begin(v->tmp, &one, &spanning) != RL_OK) return false;
    for (uint32_t about = FEW; about <= MOST && open && rl_work_seconds() - start <= (v->deadline - start) / SPARE; about *= 2) {
        rl_solve_spans(v->p->mem, &spanning, about, enough, v->deadline, &x);
        if (x.n && x.bound > best.bound) best = x;
        if (best.bound > 0) *least = least_of(s, best.bound, most, known);
        open = least->count < known.count || (least->bytes == 0 && known.bytes > 0);
    }
    if (best.bound <= 0 || !find_places(q, cls, &best) || !count_in_bytes(s, &best)) return false;
    find_ends(m, comp, &best);
    *spans = rl_copy(v->p->mem, &best, sizeof best);
    return true;
}
