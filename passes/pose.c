/* The assignment as a problem for the solver: see pose.h. */
#include "bound.h"
#include "charge.h"
#include "pose.h"

#define MOST_TIE 100 /* what a charge counts for at most where it only decides among equals */

/* Costs are compared within a component only, and no choice of interest has more conversions than the model as it stands: that is
 * how far bytes may grow before they reach the count, and the ops' own ones before they reach the bytes.  Where 60 bits are too few,
 * bytes are rounded. */
rl_scale rl_scale_of(const rl_plan *p, bool bytes_first) {
    rl_arena tmp;
    rl_arena_init(&tmp, p->g->ctx);
    int64_t unit = 0, count = 1, bytes = 1, nop = 1;
    rl_least *stands = rl_new(&tmp, rl_least, p->ncomp);
    int64_t *most = rl_new(&tmp, int64_t, p->ncomp), *own = rl_new(&tmp, int64_t, p->ncomp);
    rl_plan_costs(p, rl_new(&tmp, uint32_t, p->op.n), stands, &tmp);
    for (uint32_t c = 0; c < p->cls.n; c++) {
        unit = rl_gcd(unit, p->cls.p[c].bytes);
        most[p->cls.p[c].comp] = RL_MAX(most[p->cls.p[c].comp], p->cls.p[c].bytes);
    }
    unit = RL_MAX(unit, 1);
    for (uint32_t k = 0; k < p->op.n; k++)
        if (p->op.p[k].comp != RL_NONE) own[p->op.p[k].comp] += 8 + (bytes_first ? MOST_TIE : 0);
    for (uint32_t k = 0; k < p->ncomp; k++) {
        count = RL_MAX(count, stands[k].count);
        bytes = RL_MAX(bytes, stands[k].count * (most[k] / unit));
        nop = RL_MAX(nop, own[k]);
    }
    rl_arena_free(&tmp);
    double all = bytes_first ? (double)bytes * p->cls.n : 4.0 * (p->cls.n + p->op.n);
    rl_scale s = {.unit = unit, .bytes_first = bytes_first, .target = p->target, .nop_bits = rl_bits_of((double)nop) + 1};
    s.conversion = rl_bits_of((double)(bytes_first ? count : bytes));
    s.byte_shift = RL_MAX(0, rl_bits_of(all) + s.conversion + s.nop_bits - 60);
    if (!bytes_first) s.conversion = RL_MAX(0, s.conversion - s.byte_shift);
    return s;
}

rl_scale rl_time_scale(const rl_plan *p, int64_t dearer) {
    double total = 1;
    rl_scale s = {.by_time = true, .dearer = dearer, .nop_bits = rl_bits_of(8.0 * p->op.n + 1) + 1, .target = p->target};
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        int64_t most = 0;
        for (uint32_t c = 0; c < op->config.n; c++) most = RL_MAX(most, op->config.p[c].charge);
        total += (double)most * (double)rl_charge_unit(p, op);
        for (uint32_t o = 0; o < op->noperand; o++) total += (double)rl_move_time(p, op->operand[o].cls) + (double)dearer;
    }
    s.byte_shift = RL_MAX(0, rl_bits_of(total) + s.nop_bits - 60);
    return s;
}

rl_scale rl_dearer_scale(const rl_plan *p, const rl_scale *s, uint32_t way) {
    int64_t most = 0;
    for (uint32_t c = 0; c < p->cls.n; c++) most = RL_MAX(most, s->by_time ? rl_move_time(p, c) : p->cls.p[c].bytes);
    if (way == 2) return rl_scale_of(p, false);
    if (s->by_time) return rl_time_scale(p, way ? most : most / 8);
    rl_scale d = *s;
    d.dearer = way ? most : most / 8;
    return d;
}

static int64_t weight_of(const rl_scale *s, const rl_cls *c) {
    if (s->by_time) return (((RL_MAX(1, rl_target_move(s->target, c->bytes, 10)) + s->dearer) >> s->byte_shift) + (s->byte_shift > 0)) << s->nop_bits;
    int64_t bytes = (c->bytes + s->dearer) / s->unit >> s->byte_shift;
    if (s->bytes_first) return (((bytes > 0 ? bytes : 1) << s->conversion) + 1) << s->nop_bits;
    return (((int64_t)1 << s->conversion) + bytes) << s->nop_bits;
}

static bool is_worked_on(const rl_plan *p, uint32_t cls) {
    const rl_cls *c = &p->cls.p[cls];
    return c->like == cls && p->active[c->comp];
}

static bool takes_part(const rl_plan *p, uint32_t k) {
    const rl_oplegal *op = &p->op.p[k];
    if (rl_may_move(op) && op->like != k) return false;
    for (uint32_t o = 0; o < op->noperand; o++)
        if (op->operand[o].pin && is_worked_on(p, op->operand[o].cls)) return true;
    return false;
}

/* The slow conversions that a configuration may be for. */
static int64_t slowness(const rl_oplegal *o, uint32_t config, const int64_t *slow, const uint32_t *start) {
    int64_t sum = 0;
    RL_EACH_PIN(o, i, pin) sum += slow[start[o->operand[i].cls] + rl_pin_order(o, config, pin)];
    return sum;
}

static rl_choice choice_of(const rl_plan *p, const rl_scale *s, const rl_posing *how, const uint32_t *start, rl_oplegal *o, rl_arena *mem) {
    /* A charge of 10 is one conversion's time.  Of bytes times say nothing: there they decide among equals. */
    int64_t tenth = s->by_time ? rl_charge_unit(p, o) >> s->byte_shift << s->nop_bits : ((int64_t)1 << (s->conversion + s->nop_bits)) / 10;
    int64_t *cost = rl_new(mem, int64_t, o->config.n);
    for (uint32_t c = 0; c < o->config.n && !how->plain; c++) {
        cost[c] = c ? 1 + o->form[o->config.p[c].form].cost : 0;
        int64_t charge = how->mild ? RL_MAX(0, o->config.p[c].charge - o->config.p[0].charge) : o->config.p[c].charge;
        cost[c] += s->bytes_first ? RL_MIN(charge, MOST_TIE) : tenth * charge;
        if (how->slow) cost[c] += slowness(o, c, how->slow, start) >> s->byte_shift << s->nop_bits;
    }
    return rl_op_choice(o, cost, mem);
}

void rl_pose(rl_plan *p, const rl_scale *s, const rl_posing *how, rl_posed *out) {
    rl_arena_init(&out->mem, p->g->ctx);
    int64_t *weight = rl_new(&out->mem, int64_t, p->cls.n);
    uint32_t *norder = rl_new(&out->mem, uint32_t, p->cls.n), n = 0;
    rl_choice *op = rl_new(&out->mem, rl_choice, p->op.n);
    const uint32_t *start = how->slow ? rl_order_starts(p, &out->mem) : NULL;
    out->op = rl_new(&out->mem, uint32_t, p->op.n);
    for (uint32_t c = 0; c < p->cls.n; c++) {
        weight[c] = p->cls.p[c].constant || !(how->all || is_worked_on(p, c)) ? 0 : weight_of(s, &p->cls.p[c]);
        if (how->cheap && how->cheap[c].i != RL_NONE) weight[c] = weight[c] / 10 * p->target->move[RL_MOVE_FROM_CONV];
        norder[c] = RL_MAX(1u, p->cls.p[c].order.n);
    }
    for (uint32_t k = 0; k < p->op.n; k++) {
        if (!how->all && !takes_part(p, k)) continue;
        if (how->comp && !rl_touches(p, &p->op.p[k], how->comp)) continue;
        op[n] = choice_of(p, s, how, start, &p->op.p[k], &out->mem);
        out->op[n++] = k;
    }
    out->q = (rl_problem){.nval = p->cls.n, .nop = n, .weight = weight, .norder = norder, .op = op, .start = rl_new(&out->mem, uint32_t, n),
                          .slack = (int64_t)1 << (s->nop_bits - 1)};
}

rl_status rl_posed_solve(rl_plan *p, rl_posed *x, double limit, rl_solution *sol) {
    RL_TRY(rl_solve(p->mem, &x->q, limit, sol));
    uint32_t *cfg = rl_new(p->mem, uint32_t, p->op.n);
    for (uint32_t i = 0; i < x->q.nop; i++) cfg[x->op[i]] = sol->cfg[i];
    for (uint32_t k = 0; k < p->op.n; k++)
        if (rl_may_move(&p->op.p[k])) cfg[k] = cfg[p->op.p[k].like];
    sol->cfg = cfg;
    rl_arena_free(&x->mem);
    return RL_OK;
}
