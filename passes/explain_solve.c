/* The ops around a conversion as a problem for solve.h: a second opinion on conflicts, and the cheapest way without a conversion
 * that nothing forces. */
#include "explain.h"

#define CONVERSION ((int64_t)1 << 32) /* above all charges */

/* Places numbered as they are met. */
typedef struct { rl_explainer *x; rl_hash index; rl_exids place; } numbering;

static uint32_t number_of(numbering *n, uint32_t place) {
    uint32_t i = rl_hash_get(&n->index, (uint64_t)place + 1);
    if (i != RL_NONE) return i;
    rl_hash_put(&n->index, (uint64_t)place + 1, n->place.n);
    rl_push(n->x->now, n->place, place);
    return n->place.n - 1;
}

static rl_choice choice_of(numbering *n, rl_exjoin j, uint32_t k) {
    const rl_oplegal *l = &n->x->p->op.p[k];
    uint32_t *value = rl_new(n->x->now, uint32_t, l->npin + 1);
    int64_t *cost = rl_new(n->x->now, int64_t, l->config.n);
    for (uint32_t pin = 0; pin < l->npin; pin++) value[pin] = number_of(n, n->x->at[k][pin] == j.place ? j.base : n->x->at[k][pin]);
    for (uint32_t c = 0; c < l->config.n; c++) cost[c] = l->config.p[c].charge;
    return (rl_choice){l->npin, l->config.n, value, l->pinorder.p, cost};
}

/* The joined place is one value of the problem, and so is every other place: what is least has no conversion if it can. */
static rl_status solve(rl_explainer *x, rl_exjoin j, const rl_exids *op, rl_solution *sol) {
    numbering n = {.x = x, .index.mem = x->now};
    rl_choice *choice = rl_new(x->now, rl_choice, op->n);
    for (uint32_t i = 0; i < op->n; i++) choice[i] = choice_of(&n, j, op->p[i]);
    uint32_t *norder = rl_new(x->now, uint32_t, n.place.n + 1);
    int64_t *weight = rl_new(x->now, int64_t, n.place.n + 1);
    for (uint32_t i = 0; i < n.place.n; i++) {
        norder[i] = x->p->cls.p[x->place.p[n.place.p[i]].cls].order.n;
        weight[i] = CONVERSION;
    }
    rl_problem q = {.nval = n.place.n, .nop = op->n, .weight = weight, .norder = norder, .op = choice};
    return rl_solve(x->now, &q, 1, sol);
}

rl_status rl_explain_confirm(rl_explainer *x, rl_exjoin j, const rl_exids *op) {
    rl_solution sol;
    RL_TRY(solve(x, j, op, &sol));
    if (sol.cost >= CONVERSION) return RL_OK;
    return rl_fail(x->g->ctx, RL_EINTERNAL, "the reason found for the conversion of '%s' does not hold",
                   rl_extensor_of(x, x->p->cls.p[x->place.p[j.base].cls].first).name);
}

rl_status rl_explain_charges(rl_explainer *x, rl_exsearch *s, rl_exjoin j, rl_exconversion *out) {
    rl_exids op = {0};
    rl_solution sol;
    rl_exsearch_reach(s, j, &op);
    RL_TRY(solve(x, j, &op, &sol));
    for (uint32_t i = 0; i < op.n; i++) {
        const rl_oplegal *l = &x->p->op.p[op.p[i]];
        int64_t more = l->config.p[sol.cfg[i]].charge - l->config.p[x->cfg[op.p[i]]].charge;
        if (more > 0) rl_push(x->mem, out->charge, ((rl_excharge){rl_exnode_of(x, l->node), more}));
    }
    return RL_OK;
}
