/* The cheapest choice of one configuration per op (docs/proof.md, section 1).
 *
 * Candidates come from candidates.c; pose.c makes the problem, and solve.c finds the least total: of conversions and then bytes (objective
 * "bytes": bytes, then conversions; objective "time": the time of the conversions and of what is charged, by the target's rows); never more
 * conversions than the model has (hold).  For the objective "nodes" a target with charges is solved by time as well, and may keep what the model
 * has (quickest, below).
 *
 * Needs: the plan of legal.  Keeps: the graph.  Leaves: rl_oplegal.chosen. */
#include "charge.h"
#include "pose.h"
#include <string.h>

/* ---- the time that solving may take ---- */

/* Of the run, in all its rounds: each solve may take most of what is left, and the last ones a little in any case. */
typedef struct { double end, least; } budget;

static budget budget_of(const rl_pass_run *r) {
    double limit = r->opt->time_limit > 0 ? r->opt->time_limit : 5;
    return (budget){rl_work_seconds() + limit - (r->solved ? *r->solved : 0), limit / 20};
}

static double part_of(const budget *b) { return RL_MAX((b->end - rl_work_seconds()) * 0.6, b->least); }

/* ---- what an assignment comes to ---- */

/* What the conversions of an assignment come to, and what is charged. */
typedef struct { int64_t time, count, bytes, charged; } tally; /* charged: of the time, beyond the model's own (tally_of) */

/* In each component, and at last of what is in none; from the definition. */
static tally *conversions_in(const rl_plan *p, const uint32_t *cfg, rl_arena *tmp) {
    tally *sum = rl_new(tmp, tally, p->ncomp + 1);
    const rl_conversions all = rl_conversions_of(p, cfg, NULL, tmp);
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        sum[RL_MIN(op->comp, p->ncomp)].time += rl_charge_time(p, op, cfg[k]);
    }
    for (uint32_t i = 0; i < all.n; i++) {
        const rl_cls *c = &p->cls.p[all.p[i]];
        tally *t = &sum[RL_MIN(c->comp, p->ncomp)];
        t->count++;
        t->bytes += c->bytes;
        t->time += rl_move_time(p, all.p[i]);
    }
    return sum;
}

/* Of the whole; *time, if not NULL: what they take, and what is charged. */
static int64_t conversions(const rl_plan *p, const uint32_t *cfg, rl_arena *tmp, int64_t *time) {
    int64_t n = 0, t = 0;
    const tally *sum = conversions_in(p, cfg, tmp);
    for (uint32_t c = 0; c <= p->ncomp; c++) {
        n += sum[c].count;
        t += sum[c].time;
    }
    if (time) *time = t;
    return n;
}

void rl_plan_stand(rl_plan *p) {
    rl_outside_demands(p);
    rl_logical_configs(p);
}

int64_t rl_plan_time(rl_plan *p, int64_t saved) {
    int64_t time;
    rl_plan_stand(p);
    conversions(p, rl_new(p->mem, uint32_t, p->op.n), p->mem, &time);
    return rl_target_ns(p->target, time - 10 * saved);
}

/* ---- no more conversions than before ---- */

/* Where the whole would have more conversions than the model, each component that has takes the cheapest that was found without: the
 * model's own, or one of those that the problem with dearer conversions leads to. */
static rl_status hold(rl_plan *p, const rl_scale *s, const budget *b, uint32_t *cfg, rl_arena *tmp) {
    const tally *stands = conversions_in(p, rl_new(tmp, uint32_t, p->op.n), tmp), *now = conversions_in(p, cfg, tmp);
    bool *over = rl_new(tmp, bool, p->ncomp), *take = rl_new(tmp, bool, p->ncomp);
    int64_t *best = rl_new(tmp, int64_t, p->ncomp), more = 0;
    for (uint32_t c = 0; c < p->ncomp; c++) {
        more += now[c].count - stands[c].count;
        over[c] = now[c].count > stands[c].count;
        best[c] = s->by_time ? stands[c].time : stands[c].bytes;
    }
    if (more <= 0) return RL_OK;
    for (uint32_t k = 0; k < p->op.n; k++)
        if (p->op.p[k].comp != RL_NONE && over[p->op.p[k].comp]) cfg[k] = 0;
    for (uint32_t way = 0; way < 3; way++) {
        rl_scale d = rl_dearer_scale(p, s, way);
        rl_posed x;
        rl_solution sol;
        rl_pose(p, &d, &(rl_posing){.all = s->by_time, .plain = way == 2, .comp = over}, &x);
        RL_TRY(rl_posed_solve(p, &x, part_of(b), &sol));
        now = conversions_in(p, sol.cfg, tmp);
        for (uint32_t c = 0; c < p->ncomp; c++) {
            int64_t cost = s->by_time ? now[c].time : now[c].bytes;
            take[c] = over[c] && now[c].count <= stands[c].count && cost < best[c];
            if (take[c]) best[c] = cost;
        }
        for (uint32_t k = 0; k < p->op.n; k++)
            if (p->op.p[k].comp != RL_NONE && take[p->op.p[k].comp]) cfg[k] = sol.cfg[k];
    }
    return RL_OK;
}

/* The least time of as many conversions as the model has, or fewer; the bound is that of any number. */
static rl_status least_time(rl_plan *p, const budget *b, rl_solution *sol, rl_outcome *out) {
    rl_scale s = rl_time_scale(p, 0);
    rl_posed x;
    int64_t before;
    rl_pose(p, &s, &(rl_posing){.all = true}, &x);
    RL_TRY(rl_posed_solve(p, &x, part_of(b), sol));
    conversions(p, rl_new(p->mem, uint32_t, p->op.n), p->mem, &before);
    out->time_before = rl_target_ns(p->target, before);
    return hold(p, &s, b, sol->cfg, p->mem);
}

/* ---- a target with charges: is it worth it? ---- */

static bool is_op(const rl_graph *g, rl_node n, rl_op op) { return n.i != RL_NONE && rl_nod(g, n)->op == op; }

/* Does a convolution make v, or the bytes or floats that it is of? */
static bool is_of_conv(const rl_graph *g, rl_value v) {
    rl_node def = rl_val(g, v)->def;
    while (is_op(g, def, RL_OP_QuantizeLinear) || is_op(g, def, RL_OP_DequantizeLinear)) def = rl_val(g, rl_nod(g, def)->in[0])->def;
    return def.i != RL_NONE && rl_op_is_conv(rl_nod(g, def)->op);
}

/* Does the Transpose put the channels of an image that a convolution makes last?  Only images: none of onnxruntime's has the channels last in 3-D or 5-D
 * tensors. */
static bool behind_conv(const rl_graph *g, const rl_nodeinfo *n) {
    const rl_attr *perm = rl_attr_find(n, "perm");
    if (!perm || perm->n != 4 || !is_of_conv(g, n->in[0])) return false;
    for (uint32_t i = 0; i < perm->n; i++)
        if (perm->ints[i] != (i == 0 ? 0 : i + 1 == perm->n ? 1 : i + 1)) return false;
    return true;
}

/* Does the Transpose swap its last two dims, and no others, as a product takes in? */
static bool swaps_rows_and_columns(const rl_graph *g, const rl_nodeinfo *n) {
    const rl_attr *perm = rl_attr_find(n, "perm");
    uint32_t rank = rl_val(g, n->in[0])->rank;
    bool same = perm ? perm->n == rank : rank == 2;
    for (uint32_t i = 0; i < rank && same && perm; i++) same = perm->ints[i] == (i + 2 < rank ? i : 2 * rank - 3 - i);
    return same;
}

/* What a component may save: the model's own Transposes. */
typedef struct {
    int64_t *cost; /* [class] what they take */
    rl_node *conv; /* [class] one that is behind_conv, RL_NONODE */
    rl_node *odd;  /* [class] one that no product takes in, RL_NONODE */
} own_moves;

static own_moves moves_before(const rl_plan *p, rl_arena *mem) {
    const rl_graph *g = p->g;
    own_moves m = {rl_new(mem, int64_t, p->cls.n), rl_new(mem, rl_node, p->cls.n), rl_new(mem, rl_node, p->cls.n)};
    for (uint32_t c = 0; c < p->cls.n; c++) m.conv[c] = m.odd[c] = RL_NONODE;
    for (uint32_t k = 0; k < g->order.n; k++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[k]);
        if (n->op != RL_OP_Transpose || !p->moving[g->order.p[k].i]) continue;
        const rl_member *x = &p->member[n->in[0].i];
        const rl_valinfo *y = rl_val(g, n->out[0]);
        bool swaps = swaps_rows_and_columns(g, n), only_matmul = !y->is_output && swaps, conv = behind_conv(g, n);
        for (uint32_t i = 0; i < y->nuse; i++) only_matmul &= is_op(g, y->use[i].node, RL_OP_MatMul) && y->use[i].slot == 1;
        m.cost[x->cls] += rl_move_cost(p, &p->cls.p[x->cls], x->seq, p->member[n->out[0].i].seq, only_matmul, conv);
        if (conv) m.conv[x->cls] = g->order.p[k];
        if (!swaps) m.odd[x->cls] = g->order.p[k];
    }
    return m;
}

/* Is that the move of this Transpose of the class? */
static bool moves_as(const rl_plan *p, rl_node transpose, const uint8_t *from, const uint8_t *to) {
    if (transpose.i == RL_NONE) return false;
    const rl_nodeinfo *n = rl_nod(p->g, transpose);
    const rl_member *x = &p->member[n->in[0].i], *y = &p->member[n->out[0].i];
    return rl_same_bytes(from, x->seq, x->natom) && rl_same_bytes(to, y->seq, x->natom);
}

/* One order that some op names at a class. */
typedef struct { uint32_t cls, order; bool made, only_matmul; } naming;
typedef struct { naming *p; uint32_t n, cap; } namings;

static void name_orders(rl_plan *p, const uint32_t *cfg, rl_arena *tmp, namings *all) {
    const uint32_t *start = rl_order_starts(p, tmp);
    uint32_t *place = rl_new(tmp, uint32_t, start[p->cls.n]); /* 1 + its naming */
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        RL_EACH_PIN(op, o, pin) {
            uint32_t cls = op->operand[o].cls, order = rl_pin_order(op, cfg[k], pin);
            if (!place[start[cls] + order]) {
                rl_push(tmp, *all, ((naming){cls, order, false, true}));
                place[start[cls] + order] = all->n;
            }
            uint32_t i = place[start[cls] + order] - 1;
            bool makes = op->operand[o].out || rl_same(op->operand[o].tensor, p->cls.p[cls].first);
            /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a place that is set has a naming */
            all->p[i].made |= makes && (op->operand[o].out || op->node.i == RL_NONE);
            all->p[i].only_matmul &= is_op(p->g, op->node, RL_OP_MatMul) && o == 1;
        }
    }
}

/* A conversion to an order that some op names, and how long it takes. */
typedef struct { uint32_t cls, order; int64_t time; } timed_move;
typedef struct { timed_move *p; uint32_t n, cap; } timed_moves;

static timed_moves moves_of(rl_plan *p, const own_moves *own, const uint32_t *cfg, rl_arena *tmp) {
    const uint8_t **made = rl_new(tmp, const uint8_t *, p->cls.n);
    uint32_t *first = rl_new(tmp, uint32_t, p->cls.n); /* 1 + the naming that is free */
    namings all = {0};
    timed_moves moves = {0};
    name_orders(p, cfg, tmp, &all);
    for (uint32_t i = 0; i < all.n; i++)
        if (all.p[i].made && !made[all.p[i].cls]) {
            made[all.p[i].cls] = p->cls.p[all.p[i].cls].order.p[all.p[i].order].p;
            first[all.p[i].cls] = i + 1;
        }
    for (uint32_t i = 0; i < all.n; i++) {
        const naming *x = &all.p[i];
        const rl_cls *c = &p->cls.p[x->cls];
        if (!made[x->cls] || first[x->cls] == i + 1) continue;
        const uint8_t *from = made[x->cls], *to = c->order.p[x->order].p;
        bool taken = x->only_matmul && !moves_as(p, own->odd[x->cls], from, to);
        int64_t time = rl_move_cost(p, c, from, to, taken, moves_as(p, own->conv[x->cls], from, to));
        rl_push(tmp, moves, ((timed_move){x->cls, x->order, time}));
    }
    return moves;
}

/* fixed: of what is charged, too. */
static tally *tally_of(rl_plan *p, const own_moves *own, const uint32_t *cfg, bool fixed, rl_arena *tmp) {
    tally *t = rl_new(tmp, tally, p->ncomp);
    const timed_moves moves = moves_of(p, own, cfg, tmp);
    for (uint32_t i = 0; i < moves.n; i++) {
        const rl_cls *c = &p->cls.p[moves.p[i].cls];
        t[c->comp].time += moves.p[i].time;
        t[c->comp].bytes += c->bytes;
        t[c->comp].count++;
    }
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        if (op->comp == RL_NONE || op->noperand == 0) continue;
        int64_t unit = fixed ? rl_charge_unit(p, op) : p->cls.p[rl_charged_class(p, op)].bytes;
        t[op->comp].charged += (op->config.p[cfg[k]].charge - op->config.p[0].charge) * unit;
    }
    for (uint32_t c = 0; c < p->ncomp; c++) t[c].time += t[c].charged;
    return t;
}

/* Notes the conversions of cfg that take longer than the problem has it. Returns whether there is one that was not known. *most: by how much they do. */
static bool note_slow(rl_plan *p, const own_moves *own, const uint32_t *cfg, int64_t *slow, int64_t *most, rl_arena *tmp) {
    const uint32_t *start = rl_order_starts(p, tmp);
    const timed_moves moves = moves_of(p, own, cfg, tmp);
    bool any = false;
    for (uint32_t i = 0; i < moves.n; i++) {
        const timed_move *m = &moves.p[i];
        int64_t posed = rl_move_time(p, m->cls), *known = &slow[start[m->cls] + m->order];
        if (own->conv[m->cls].i != RL_NONE) posed = posed / 10 * p->target->move[RL_MOVE_FROM_CONV];
        if (m->time - posed <= *known) continue;
        *known = m->time - posed;
        *most = RL_MAX(*most, *known);
        any = true;
    }
    return any;
}

/* The components where some form of the model's own is charged; elsewhere "beyond the model's own" is in full. */
static bool *charged_already(const rl_plan *p, rl_arena *mem) {
    bool *comp = rl_new(mem, bool, p->ncomp);
    for (uint32_t k = 0; k < p->op.n; k++)
        if (p->op.p[k].comp != RL_NONE && p->op.p[k].config.p[0].charge) comp[p->op.p[k].comp] = true;
    return comp;
}

/* A choice for each component, and what is asked of a better one. */
typedef struct {
    const own_moves *before;
    uint32_t *cfg;
    int64_t *best;     /* [ncomp] less time */
    tally *has;        /* [ncomp] or no more time and fewer conversions */
    const tally *most; /* [ncomp] and never more conversions and bytes */
} quick;

/* By time, in the components of `swaps`, where products take swaps in.  What that saves is small beside what forms are charged, and these
 * are no more exact than that: there are no forms charged beyond the model's own. */
static rl_status solve_swapped(const rl_plan *p, bool *swaps, const own_moves *before, const budget *b, rl_solution *sol, rl_arena *tmp) {
    rl_plan q = *p;
    rl_posed x;
    q.mem = tmp;
    q.swaps = swaps;
    q.op.p = rl_copy(tmp, q.op.p, q.op.n * sizeof *q.op.p);
    rl_drop_charged(&q);
    rl_take_in_all(&q);
    const rl_scale s = rl_time_scale(&q, 0);
    rl_pose(&q, &s, &(rl_posing){.cheap = before->conv, .comp = swaps}, &x);
    RL_TRY(rl_posed_solve(&q, &x, part_of(b), sol));
    rl_untake_all(&q, p, sol->cfg);
    return RL_OK;
}

/* Takes the components of `which` (NULL: all) in which cfg is better: quicker; or with fewer conversions in the same time, as where those left out take
 * none. Forms that are charged instead are no gain: they move the data themselves. */
static void take_better(rl_plan *p, quick *x, const uint32_t *cfg, const bool *which, bool fixed, rl_arena *tmp) {
    const tally *now = tally_of(p, x->before, cfg, fixed, tmp);
    bool *take = rl_new(tmp, bool, p->ncomp);
    for (uint32_t c = 0; c < p->ncomp; c++) {
        bool quicker = now[c].time < x->best[c];
        bool fewer = now[c].count < x->has[c].count && now[c].time <= x->has[c].time && now[c].charged <= x->has[c].charged;
        take[c] = (quicker || fewer) && now[c].count <= x->most[c].count && now[c].bytes <= x->most[c].bytes && (!which || which[c]);
        if (take[c]) x->has[c] = now[c];
        if (take[c] && quicker) x->best[c] = now[c].time;
    }
    for (uint32_t k = 0; k < p->op.n; k++)
        if (p->op.p[k].comp != RL_NONE && take[p->op.p[k].comp]) x->cfg[k] = cfg[k];
}

/* A swap that a product takes in is a Transpose in the file all the same: there are no more of them than in what was taken without. */
static rl_status quicker_with_swaps(rl_plan *p, quick *x, const budget *b, rl_arena *tmp) {
    bool *swaps = rl_new(tmp, bool, p->ncomp), any = false;
    rl_solution sol;
    rl_may_swap_in(p, swaps);
    for (uint32_t c = 0; c < p->ncomp; c++) any |= swaps[c] = swaps[c] && p->active[c];
    if (!any) return RL_OK;
    RL_TRY(solve_swapped(p, swaps, x->before, b, &sol, tmp));
    x->most = tally_of(p, x->before, x->cfg, false, tmp);
    take_better(p, x, sol.cfg, swaps, false, tmp);
    return RL_OK;
}

/* Einsums in the forms that are charged least, in the orders that they have. */
static void cheapen(const rl_plan *p, uint32_t *cfg) {
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        const uint32_t *order = op->pinorder.p + cfg[k] * op->npin;
        for (uint32_t i = 1; i < op->config.n && op->part; i++)
            if (op->config.p[i].charge < op->config.p[cfg[k]].charge && rl_same_bytes(op->pinorder.p + i * op->npin, order, op->npin * sizeof *order)) cfg[k] = i;
    }
}

/* Where nothing was found that is quicker than the model as it stands, cfg, the quickest were conversions of as many bytes all as quick, may have slow ones: the
 * problem is solved knowing these, for a few rounds. */
static rl_status quickest_knowing_slow(rl_plan *p, quick *q, const uint32_t *cfg, const budget *b, rl_arena *tmp) {
    enum { ROUNDS = 4 };
    int64_t most = 0, *slow = rl_new(tmp, int64_t, rl_order_starts(p, tmp)[p->cls.n]);
    bool *left = rl_copy(tmp, p->active, p->ncomp * sizeof *left), any = false;
    for (uint32_t k = 0; k < p->op.n; k++)
        if (p->op.p[k].comp != RL_NONE && q->cfg[k]) left[p->op.p[k].comp] = false;
    for (uint32_t c = 0; c < p->ncomp; c++) any |= left[c];
    for (uint32_t round = 0; any && round < ROUNDS && note_slow(p, q->before, cfg, slow, &most, tmp); round++) {
        rl_scale s = rl_time_scale(p, most); /* with room for what is slow */
        rl_posed x;
        rl_solution sol;
        s.dearer = 0;
        rl_pose(p, &s, &(rl_posing){.cheap = q->before->conv, .comp = left, .slow = slow}, &x);
        RL_TRY(rl_posed_solve(p, &x, part_of(b), &sol));
        cheapen(p, sol.cfg);
        take_better(p, q, sol.cfg, left, false, tmp);
        cfg = sol.cfg;
    }
    return RL_OK;
}

/* Conversions are few, but not all alike.  For a target with charges the problem is solved by time and by count, with charges in full and only beyond the
 * model's own, by count without (cfg, as it comes), and by time with swaps.  Each component takes the quickest of these that adds neither conversions nor
 * bytes, where one is clearly quicker than the model's own Transposes; else the one with the fewest conversions that is no slower; where there is none,
 * either, that by time is asked again (quickest_knowing_slow).  bounds: times are bounded, and what that meets is looked at, too. */
static rl_status quickest(rl_plan *p, const rl_scale *by_count, const own_moves *before, const budget *b, bool bounds, uint32_t *cfg, rl_arena *tmp) {
    uint32_t *fewest = rl_copy(tmp, cfg, p->op.n * sizeof *cfg), *stands = rl_new(tmp, uint32_t, p->op.n);
    memset(cfg, 0, p->op.n * sizeof *cfg);
    cheapen(p, fewest);
    cheapen(p, stands);
    const tally *most = tally_of(p, before, cfg, false, tmp);
    quick q = {before, cfg, rl_new(tmp, int64_t, p->ncomp), rl_copy(tmp, most, p->ncomp * sizeof *most), most};
    const rl_scale by_time = rl_time_scale(p, 0);
    const bool *charged = charged_already(p, tmp);
    const uint32_t *ordinary = NULL;
    rl_posed x;
    rl_solution sol;
    for (uint32_t c = 0; c < p->cls.n; c++) q.best[p->cls.p[c].comp] += before->cost[c];
    for (uint32_t c = 0; c < p->ncomp; c++) q.has[c].time = q.best[c], q.best[c] -= q.best[c] / 100 * RL_WORTH_IT;
    for (uint32_t way = 0; way < 4; way++) {
        rl_scale s = way < 2 ? by_time : *by_count;
        rl_pose(p, &s, &(rl_posing){.mild = way & 1, .cheap = s.by_time ? before->conv : NULL, .comp = way & 1 ? charged : NULL}, &x);
        RL_TRY(rl_posed_solve(p, &x, part_of(b), &sol));
        cheapen(p, sol.cfg);
        take_better(p, &q, sol.cfg, NULL, false, tmp);
        if (way == 0) ordinary = sol.cfg;
    }
    take_better(p, &q, stands, NULL, false, tmp);
    take_better(p, &q, fewest, NULL, true, tmp);
    RL_TRY(quickest_knowing_slow(p, &q, ordinary, b, tmp));
    RL_TRY(quicker_with_swaps(p, &q, b, tmp));
    if (!bounds) return RL_OK;
    uint32_t *found = rl_new(tmp, uint32_t, p->op.n);
    RL_TRY(rl_bound_quick(p, cfg, false, part_of(b), found));
    take_better(p, &q, found, NULL, false, tmp);
    return RL_OK;
}

/* The same with more candidates: of the components chosen all configurations, where these are few, or what p->lifted leads to.  *before: those that there
 * were; NULL: there are no more. */
static rl_status solve_with_more(rl_plan *p, const bool *chosen, const rl_scale *s, bool plain, const budget *b, rl_solution *next, const rl_saved **before, rl_arena *tmp) {
    rl_posed x;
    const rl_saved *few = rl_candidates_save(p, tmp);
    *before = NULL;
    if (!rl_candidates_widen(p, chosen)) return RL_OK;
    *before = few;
    rl_pose(p, s, &(rl_posing){.plain = plain}, &x);
    return rl_posed_solve(p, &x, part_of(b), next);
}

/* *sol becomes what more candidates have, if that costs no more. */
static rl_status solve_wider(rl_plan *p, const bool *chosen, const rl_scale *s, bool plain, const budget *b, rl_solution *sol, rl_arena *tmp) {
    rl_solution next;
    const rl_saved *before;
    RL_TRY(solve_with_more(p, chosen, s, plain, b, &next, &before, tmp));
    if (before && next.cost > sol->cost) rl_candidates_restore(p, before, NULL);
    else if (before) *sol = next;
    return RL_OK;
}

/* Noted, as long as the graph is what it is. */
static void note_led(rl_pass_run *r, const rl_namings *all) {
    rl_arena *mem = &r->g->mem;
    rl_namings *to = rl_new(mem, rl_namings, 1);
    for (uint32_t i = 0; i < all->n; i++) {
        rl_naming x = all->p[i];
        rl_push(mem, *to, ((rl_naming){x.cls, x.natom, rl_copy(mem, x.order, x.natom + 1u)}));
    }
    r->led = to;
}

/* The fewest conversions once more, where more candidates may show that the bound can be reached. */
static rl_status widen(rl_pass_run *r, const rl_scale *s, bool plain, const budget *b, rl_solution *sol, rl_arena *tmp) {
    rl_plan *p = r->plan;
    bool any = false;
    for (uint32_t c = 0; c < p->ncomp; c++) any |= p->unproved[c];
    if (!any) return RL_OK;
    const rl_namings lifted = p->lifted;
    const int64_t before = sol->cost;
    RL_TRY(solve_wider(p, p->unproved, s, plain, b, sol, tmp));
    if (sol->cost < before && lifted.n) note_led(r, &lifted);
    return rl_bound_again(p, sol->cfg, sol->optimal && s->byte_shift == 0, s->bytes_first, !plain, part_of(b));
}

/* A copy of the graph is planned as the graph was: with the candidates that the bound led to there. */
static rl_status begin_as_led(rl_pass_run *r, const rl_scale *s, bool plain, const budget *b, rl_solution *sol, rl_arena *tmp) {
    rl_plan *p = r->plan;
    for (uint32_t i = 0; i < r->led->n; i++) {
        rl_naming x = r->led->p[i];
        if (x.cls >= p->cls.n || p->cls.p[x.cls].natom != x.natom) return RL_OK; /* it is another one */
    }
    p->lifted = *r->led;
    return solve_wider(p, rl_new(tmp, bool, p->ncomp), s, plain, b, sol, tmp);
}

/* The fewest conversions (objective bytes: the fewest bytes), whatever the target charges, and in round 0 what none can beat. */
static rl_status fewest(rl_pass_run *r, const rl_scale *s, bool plain, const budget *b, rl_solution *sol, rl_arena *tmp) {
    rl_plan *p = r->plan;
    rl_posed x;
    const rl_saved *before = rl_candidates_fold(p, plain, tmp);
    rl_pose(p, s, &(rl_posing){.plain = plain}, &x);
    RL_TRY(rl_posed_solve(p, &x, part_of(b), sol));
    if (before) rl_candidates_unfold(p, before, sol->optimal, sol->cfg);
    if (r->round == 0) {
        r->led = NULL;
        RL_TRY(rl_bound(p, sol->cfg, sol->optimal && s->byte_shift == 0, s->bytes_first, !plain, part_of(b)));
        RL_TRY(widen(r, s, plain, b, sol, tmp));
    } else if (r->led) RL_TRY(begin_as_led(r, s, plain, b, sol, tmp));
    r->out->conv_before = conversions(p, rl_new(tmp, uint32_t, p->op.n), tmp, NULL);
    return RL_OK;
}

/* By time, or by count for a target that charges, whose own_moves these are; in round 0 with bounds of times. */
static rl_status choose_by_time(rl_pass_run *r, const rl_scale *s, const own_moves *charged, const budget *b, rl_solution *sol, rl_arena *tmp) {
    rl_plan *p = r->plan;
    if (charged) return quickest(p, s, charged, b, r->round == 0, sol->cfg, tmp);
    RL_TRY(least_time(p, b, sol, r->out));
    if (r->round) return RL_OK;
    uint32_t *found = rl_new(tmp, uint32_t, p->op.n);
    RL_TRY(rl_bound_quick(p, sol->cfg, true, part_of(b), found));
    if (conversions(p, found, tmp, NULL) <= r->out->conv_before) sol->cfg = found; /* one component may have had more, as another had fewer */
    return RL_OK;
}

/* The same once more, where the bounds do not show of some components that nothing is quicker, with all of their configurations as candidates. */
static rl_status choose_from_all(rl_pass_run *r, const rl_scale *s, const own_moves *charged, const budget *b, rl_solution *sol, rl_arena *tmp) {
    rl_plan *p = r->plan;
    bool *slow = rl_new(tmp, bool, p->ncomp), worse = false;
    rl_solution next;
    const rl_saved *few;
    if (!rl_any_slow(p, sol->cfg, !charged, slow, tmp)) return RL_OK;
    const rl_plan bounds = *p;
    const tally *was = charged ? tally_of(p, charged, sol->cfg, false, tmp) : conversions_in(p, sol->cfg, tmp);
    for (uint32_t c = 0; c < p->ncomp; c++) p->folded[c] &= !slow[c]; /* that was by count */
    RL_TRY(solve_with_more(p, slow, s, true, b, &next, &few, tmp));
    if (!few) return RL_OK;
    RL_TRY(choose_by_time(r, s, charged, b, &next, tmp));
    const tally *now = charged ? tally_of(p, charged, next.cfg, false, tmp) : conversions_in(p, next.cfg, tmp);
    for (uint32_t c = 0; c < p->ncomp; c++) worse |= now[c].time > was[c].time;
    if (!worse) *sol = next;
    else {
        rl_candidates_restore(p, few, NULL);
        p->quick = bounds.quick, p->timed = bounds.timed, p->swaps = bounds.swaps;
    }
    return RL_OK;
}

static rl_status assign(rl_pass_run *r, rl_arena *tmp) {
    rl_plan *p = r->plan;
    r->out->improved = false;
    rl_outside_demands(p);
    bool timed = r->opt->objective && strcmp(r->opt->objective, "time") == 0, bytes_first = r->opt->objective && strcmp(r->opt->objective, "bytes") == 0;
    bool charged = rl_target_charges(p->target) && !bytes_first && !timed;
    const own_moves before = moves_before(p, tmp);
    rl_candidates(p, charged ? before.cost : rl_new(tmp, int64_t, p->cls.n), timed);
    const budget b = budget_of(r);
    rl_scale s = rl_scale_of(p, bytes_first);
    rl_solution sol;
    RL_TRY(fewest(r, &s, charged || timed, &b, &sol, tmp));
    if (charged || timed) {
        const own_moves *own = charged ? &before : NULL;
        RL_TRY(choose_by_time(r, &s, own, &b, &sol, tmp));
        if (r->round == 0) RL_TRY(choose_from_all(r, &s, own, &b, &sol, tmp));
    }
    if (bytes_first) RL_TRY(hold(p, &s, &b, sol.cfg, tmp));
    for (uint32_t k = 0; k < p->op.n; k++) {
        p->op.p[k].chosen = sol.cfg[k];
        r->out->improved |= sol.cfg[k] != 0;
    }
    r->out->conv_after = conversions(p, sol.cfg, tmp, NULL);
    r->large = p->large;
    return RL_OK;
}

rl_status rl_pass_assign(rl_pass_run *r) {
    rl_arena tmp;
    rl_arena_init(&tmp, r->g->ctx);
    double start = rl_work_seconds();
    rl_status s = assign(r, &tmp);
    if (r->solved) *r->solved += rl_work_seconds() - start;
    rl_arena_free(&tmp);
    return s;
}
