/* The cheapest choice of one configuration per op (problem.md, section 2).
 *
 * Candidates come from candidates.c; solve.c finds the least total.  Costs are lexicographic in one int64: conversions, then
 * bytes moved, then how far ops stray from the input (objective "bytes": bytes, then conversions; objective "time": the time
 * of the conversions and of what is charged, by the target's rows); never more conversions than the model has (hold).  For the
 * objective "nodes" a target with charges is solved by time as well, and may keep what the model has (quickest, below).
 *
 * Needs: the plan of legal.  Keeps: the graph.  Leaves: rl_oplegal.chosen. */
#include "charge.h"
#include <string.h>

/* ---- the problem ---- */

/* dearer: what each conversion costs beyond its time or bytes, in their units. */
typedef struct { int64_t conversion, unit, byte_shift, dearer; bool bytes_first, by_time; int64_t nop_bits; const rl_target *target; } scale;

static int64_t bits_of(double x)
{
    int64_t b = 0;
    while (x >= 1) { x /= 2; b++; }
    return b;
}

static int64_t gcd(int64_t a, int64_t b) { return b ? gcd(b, a % b) : a; }

/* Costs are compared within a component only, and no choice of interest has more conversions than the model as it stands: that is
 * how far bytes may grow before they reach the count, and the ops' own ones before they reach the bytes.  Where 60 bits are too few,
 * bytes are rounded. */
static scale make_scale(const rl_plan *p, bool bytes_first)
{
    rl_arena tmp;
    rl_arena_init(&tmp, p->g->ctx);
    int64_t unit = 0, count = 1, bytes = 1, nop = 1;
    rl_least *stands = rl_new(&tmp, rl_least, p->ncomp);
    int64_t *most = rl_new(&tmp, int64_t, p->ncomp), *own = rl_new(&tmp, int64_t, p->ncomp);
    rl_plan_costs(p, rl_new(&tmp, uint32_t, p->op.n), stands, &tmp);
    for (uint32_t c = 0; c < p->cls.n; c++) {
        unit = gcd(unit, p->cls.p[c].bytes);
        most[p->cls.p[c].comp] = RL_MAX(most[p->cls.p[c].comp], p->cls.p[c].bytes);
    }
    unit = RL_MAX(unit, 1);
    for (uint32_t k = 0; k < p->op.n; k++)
        if (p->op.p[k].comp != RL_NONE) own[p->op.p[k].comp] += 8;
    for (uint32_t k = 0; k < p->ncomp; k++) {
        count = RL_MAX(count, stands[k].count);
        bytes = RL_MAX(bytes, stands[k].count * (most[k] / unit));
        nop = RL_MAX(nop, own[k]);
    }
    rl_arena_free(&tmp);
    double all = bytes_first ? (double)bytes * p->cls.n : 4.0 * (p->cls.n + p->op.n);
    scale s = {.unit = unit, .bytes_first = bytes_first, .target = p->target, .nop_bits = bits_of((double)nop)};
    s.conversion = bits_of((double)(bytes_first ? count : bytes));
    s.byte_shift = RL_MAX(0, bits_of(all) + s.conversion + s.nop_bits - 60);
    if (!bytes_first) s.conversion = RL_MAX(0, s.conversion - s.byte_shift);
    return s;
}

/* Costs are times, as exact as 60 bits allow. */
static scale time_scale(const rl_plan *p, int64_t dearer)
{
    double total = 1;
    scale s = {.by_time = true, .dearer = dearer, .nop_bits = bits_of(8.0 * p->op.n + 1), .target = p->target};
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        int64_t most = 0;
        for (uint32_t c = 0; c < op->config.n; c++) most = RL_MAX(most, op->config.p[c].charge);
        total += (double)most * (double)rl_charge_unit(p, op);
        for (uint32_t o = 0; o < op->noperand; o++) total += (double)rl_move_time(p, op->operand[o].cls) + (double)dearer;
    }
    s.byte_shift = RL_MAX(0, bits_of(total) + s.nop_bits - 60);
    return s;
}

static int64_t weight_of(const scale *s, const rl_cls *c)
{
    if (s->by_time) return (((RL_MAX(1, rl_target_move(s->target, c->bytes, 10)) + s->dearer) >> s->byte_shift) + (s->byte_shift > 0)) << s->nop_bits;
    int64_t bytes = (c->bytes + s->dearer) / s->unit >> s->byte_shift;
    if (s->bytes_first) return (((bytes > 0 ? bytes : 1) << s->conversion) + 1) << s->nop_bits;
    return (((int64_t)1 << s->conversion) + bytes) << s->nop_bits;
}

/* The problem of some of the ops: of twins the first (twins.c), and where the model as it stands costs something; or of all. */
typedef struct { rl_arena mem; rl_problem q; uint32_t *op; } part;

static bool is_worked_on(const rl_plan *p, uint32_t cls)
{
    const rl_cls *c = &p->cls.p[cls];
    return c->like == cls && p->active[c->comp];
}

static bool takes_part(const rl_plan *p, uint32_t k)
{
    const rl_oplegal *op = &p->op.p[k];
    if (rl_may_move(op) && op->like != k) return false;
    for (uint32_t o = 0; o < op->noperand; o++)
        if (op->operand[o].pin && is_worked_on(p, op->operand[o].cls)) return true;
    return false;
}

/* How a problem is posed. */
typedef struct {
    bool mild;            /* a form is charged only for what it costs beyond the one that the model has */
    bool plain;           /* forms cost nothing */
    bool all;             /* ops and classes that nothing is worked on for, too */
    const rl_node *cheap; /* [class] moved by a Conv (own_moves); NULL: none is */
    const bool *comp;     /* [component] which take part; NULL: all */
} posing;

static rl_choice choice_of(const rl_plan *p, const scale *s, const posing *how, rl_oplegal *o, rl_arena *mem)
{
    /* One conversion: the unit of a charge whatever the objective, since charges are ratios of time. */
    int64_t tenth = s->by_time ? rl_charge_unit(p, o) >> s->byte_shift << s->nop_bits : ((int64_t)1 << (s->conversion + s->nop_bits)) / 10;
    uint32_t *value = rl_new(mem, uint32_t, o->npin + 1), n = 0;
    for (uint32_t i = 0; i < o->noperand; i++)
        if (o->operand[i].pin) value[n++] = o->operand[i].cls;
    int64_t *cost = rl_new(mem, int64_t, o->config.n);
    for (uint32_t c = 0; c < o->config.n && !how->plain; c++) {
        cost[c] = c ? 1 + o->form[o->config.p[c].form].cost : 0;
        cost[c] += tenth * (how->mild ? RL_MAX(0, o->config.p[c].charge - o->config.p[0].charge) : o->config.p[c].charge);
    }
    return (rl_choice){n, o->config.n, value, o->pinorder.p, cost};
}

static void problem_of(rl_plan *p, const scale *s, const posing *how, part *out)
{
    rl_arena_init(&out->mem, p->g->ctx);
    int64_t *weight = rl_new(&out->mem, int64_t, p->cls.n);
    uint32_t *norder = rl_new(&out->mem, uint32_t, p->cls.n), n = 0;
    rl_choice *op = rl_new(&out->mem, rl_choice, p->op.n);
    out->op = rl_new(&out->mem, uint32_t, p->op.n);
    for (uint32_t c = 0; c < p->cls.n; c++) {
        weight[c] = p->cls.p[c].constant || !(how->all || is_worked_on(p, c)) ? 0 : weight_of(s, &p->cls.p[c]);
        if (how->cheap && how->cheap[c].i != RL_NONE) weight[c] = weight[c] / 10 * p->target->move[RL_MOVE_FROM_CONV];
        norder[c] = RL_MAX(1u, p->cls.p[c].order.n);
    }
    for (uint32_t k = 0; k < p->op.n; k++) {
        if (!how->all && !takes_part(p, k)) continue;
        if (how->comp && (p->op.p[k].comp == RL_NONE || !how->comp[p->op.p[k].comp])) continue;
        op[n] = choice_of(p, s, how, &p->op.p[k], &out->mem);
        out->op[n++] = k;
    }
    out->q = (rl_problem){p->cls.n, n, weight, norder, op, rl_new(&out->mem, uint32_t, n)};
}

/* sol.cfg becomes that of all ops; the problem is gone. */
static rl_status solve(rl_plan *p, part *x, double limit, rl_solution *sol)
{
    RL_TRY(rl_solve(p->mem, &x->q, limit, sol));
    uint32_t *cfg = rl_new(p->mem, uint32_t, p->op.n);
    for (uint32_t i = 0; i < x->q.nop; i++) cfg[x->op[i]] = sol->cfg[i];
    for (uint32_t k = 0; k < p->op.n; k++)
        if (rl_may_move(&p->op.p[k])) cfg[k] = cfg[p->op.p[k].like];
    sol->cfg = cfg;
    rl_arena_free(&x->mem);
    return RL_OK;
}

/* What the conversions of an assignment come to, and what is charged. */
typedef struct { int64_t time, count, bytes; } tally;

/* In each component, and at last of what is in none; from the definition. */
static tally *conversions_in(const rl_plan *p, const uint32_t *cfg, rl_arena *tmp)
{
    tally *sum = rl_new(tmp, tally, p->ncomp + 1);
    const uint32_t *start = rl_order_starts(p, tmp);
    bool *seen = rl_new(tmp, bool, start[p->cls.n]), *any = rl_new(tmp, bool, p->cls.n);
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        uint32_t pin = 0;
        sum[RL_MIN(op->comp, p->ncomp)].time += op->config.p[cfg[k]].charge * rl_charge_unit(p, op);
        for (uint32_t o = 0; o < op->noperand; o++) {
            if (!op->operand[o].pin) continue;
            uint32_t cls = op->operand[o].cls, order = op->pinorder.p[cfg[k] * op->npin + pin++];
            if (seen[start[cls] + order]) continue;
            seen[start[cls] + order] = true;
            if (any[cls]) {
                tally *t = &sum[RL_MIN(p->cls.p[cls].comp, p->ncomp)];
                t->count++;
                t->bytes += p->cls.p[cls].bytes;
                t->time += rl_move_time(p, cls);
            }
            any[cls] = true;
        }
    }
    return sum;
}

/* Of the whole; *time, if not NULL: what they take, and what is charged. */
static int64_t conversions(const rl_plan *p, const uint32_t *cfg, rl_arena *tmp, int64_t *time)
{
    int64_t n = 0, t = 0;
    const tally *sum = conversions_in(p, cfg, tmp);
    for (uint32_t c = 0; c <= p->ncomp; c++) {
        n += sum[c].count;
        t += sum[c].time;
    }
    if (time) *time = t;
    return n;
}

void rl_plan_stand(rl_plan *p)
{
    rl_outside_demands(p);
    rl_logical_configs(p);
}

int64_t rl_plan_time(rl_plan *p)
{
    int64_t time;
    rl_plan_stand(p);
    conversions(p, rl_new(p->mem, uint32_t, p->op.n), p->mem, &time);
    return rl_target_ns(p->target, time);
}

/* ---- no more conversions than before ---- */

/* The problem once more, with dearer conversions: by an eighth of what the largest costs, by all of that, by so much that only their
 * number counts. */
static scale dearer(const rl_plan *p, const scale *s, uint32_t way)
{
    int64_t most = 0;
    for (uint32_t c = 0; c < p->cls.n; c++) most = RL_MAX(most, s->by_time ? rl_move_time(p, c) : p->cls.p[c].bytes);
    if (way == 2) return make_scale(p, false);
    if (s->by_time) return time_scale(p, way ? most : most / 8);
    scale d = *s;
    d.dearer = way ? most : most / 8;
    return d;
}

/* Where the whole would have more conversions than the model, each component that has takes the cheapest that was found without: the
 * model's own, or one of those that the problem with dearer conversions leads to. */
static rl_status hold(rl_plan *p, const scale *s, double limit, uint32_t *cfg, rl_arena *tmp)
{
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
        scale d = dearer(p, s, way);
        part x;
        rl_solution sol;
        problem_of(p, &d, &(posing){.all = s->by_time, .plain = way == 2, .comp = over}, &x);
        RL_TRY(solve(p, &x, limit, &sol));
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
static rl_status least_time(rl_plan *p, double limit, rl_solution *sol, rl_outcome *out)
{
    scale s = time_scale(p, 0);
    part x;
    int64_t before;
    problem_of(p, &s, &(posing){.all = true}, &x);
    RL_TRY(solve(p, &x, limit, sol));
    conversions(p, rl_new(p->mem, uint32_t, p->op.n), p->mem, &before);
    out->time_before = rl_target_ns(p->target, before);
    return hold(p, &s, limit, sol->cfg, p->mem);
}

/* ---- a target with charges: is it worth it? ---- */

static bool is_op(const rl_graph *g, rl_node n, rl_op op) { return n.i != RL_NONE && rl_nod(g, n)->op == op; }

/* Does the Transpose put the channels of what a Conv makes last? */
static bool behind_conv(const rl_graph *g, const rl_nodeinfo *n)
{
    const rl_attr *perm = rl_attr_find(n, "perm");
    if (!perm || perm->n < 3 || !is_op(g, rl_val(g, n->in[0])->def, RL_OP_Conv)) return false;
    for (uint32_t i = 0; i < perm->n; i++)
        if (perm->ints[i] != (i == 0 ? 0 : i + 1 == perm->n ? 1 : i + 1)) return false;
    return true;
}

/* What a component may save: the model's own Transposes. */
typedef struct {
    int64_t *cost; /* [class] what they take */
    rl_node *conv; /* [class] one that is behind_conv, RL_NONODE */
} own_moves;

static own_moves moves_before(const rl_plan *p, rl_arena *mem)
{
    const rl_graph *g = p->g;
    own_moves m = {rl_new(mem, int64_t, p->cls.n), rl_new(mem, rl_node, p->cls.n)};
    for (uint32_t c = 0; c < p->cls.n; c++) m.conv[c] = RL_NONODE;
    for (uint32_t k = 0; k < g->order.n; k++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[k]);
        if (n->op != RL_OP_Transpose || !p->moving[g->order.p[k].i]) continue;
        const rl_member *x = &p->member[n->in[0].i];
        const rl_valinfo *y = rl_val(g, n->out[0]);
        bool only_matmul = !y->is_output, conv = behind_conv(g, n);
        for (uint32_t i = 0; i < y->nuse; i++) only_matmul &= is_op(g, y->use[i].node, RL_OP_MatMul);
        m.cost[x->cls] += rl_move_cost(p, &p->cls.p[x->cls], x->seq, p->member[n->out[0].i].seq, only_matmul, conv);
        if (conv) m.conv[x->cls] = g->order.p[k];
    }
    return m;
}

/* Is that the move of the class's Transpose behind a Conv? */
static bool moves_as(const rl_plan *p, rl_node transpose, const uint8_t *from, const uint8_t *to)
{
    if (transpose.i == RL_NONE) return false;
    const rl_nodeinfo *n = rl_nod(p->g, transpose);
    const rl_member *x = &p->member[n->in[0].i], *y = &p->member[n->out[0].i];
    return memcmp(from, x->seq, x->natom) == 0 && memcmp(to, y->seq, x->natom) == 0;
}

/* One order that some op names at a class. */
typedef struct { uint32_t cls, order; bool made, only_matmul; } naming;
typedef struct { naming *p; uint32_t n, cap; } namings;

static void name_orders(rl_plan *p, const uint32_t *cfg, rl_arena *tmp, namings *all)
{
    const uint32_t *start = rl_order_starts(p, tmp);
    uint32_t *place = rl_new(tmp, uint32_t, start[p->cls.n]); /* 1 + its naming */
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        uint32_t pin = 0;
        for (uint32_t o = 0; o < op->noperand; o++) {
            if (!op->operand[o].pin) continue;
            uint32_t cls = op->operand[o].cls, order = op->pinorder.p[cfg[k] * op->npin + pin++];
            if (!place[start[cls] + order]) {
                rl_push(tmp, *all, ((naming){cls, order, false, true}));
                place[start[cls] + order] = all->n;
            }
            uint32_t i = place[start[cls] + order] - 1;
            bool makes = op->operand[o].out || rl_same(op->operand[o].tensor, p->cls.p[cls].first);
            /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a place that is set has a naming */
            all->p[i].made |= makes && (op->operand[o].out || op->node.i == RL_NONE);
            all->p[i].only_matmul &= is_op(p->g, op->node, RL_OP_MatMul);
        }
    }
}

static tally *tally_of(rl_plan *p, const own_moves *own, const uint32_t *cfg, rl_arena *tmp)
{
    tally *t = rl_new(tmp, tally, p->ncomp);
    const uint8_t **made = rl_new(tmp, const uint8_t *, p->cls.n);
    uint32_t *first = rl_new(tmp, uint32_t, p->cls.n); /* 1 + the naming that is free */
    namings all = {0};
    name_orders(p, cfg, tmp, &all);
    for (uint32_t i = 0; i < all.n; i++)
        if (all.p[i].made && !made[all.p[i].cls]) {
            made[all.p[i].cls] = p->cls.p[all.p[i].cls].order.p[all.p[i].order].p;
            first[all.p[i].cls] = i + 1;
        }
    for (uint32_t i = 0; i < all.n; i++) {
        rl_cls *c = &p->cls.p[all.p[i].cls];
        if (!made[all.p[i].cls] || first[all.p[i].cls] == i + 1) continue;
        const uint8_t *from = made[all.p[i].cls], *to = c->order.p[all.p[i].order].p;
        t[c->comp].time += rl_move_cost(p, c, from, to, all.p[i].only_matmul, moves_as(p, own->conv[all.p[i].cls], from, to));
        t[c->comp].bytes += c->bytes;
        t[c->comp].count++;
    }
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        if (op->comp == RL_NONE || op->noperand == 0) continue;
        t[op->comp].time += (op->config.p[cfg[k]].charge - op->config.p[0].charge) * p->cls.p[rl_charged_class(p, op)].bytes;
    }
    return t;
}

/* The components where some form of the model's own is charged; elsewhere "beyond the model's own" is in full. */
static bool *charged_already(const rl_plan *p, rl_arena *mem)
{
    bool *comp = rl_new(mem, bool, p->ncomp);
    for (uint32_t k = 0; k < p->op.n; k++)
        if (p->op.p[k].comp != RL_NONE && p->op.p[k].config.p[0].charge) comp[p->op.p[k].comp] = true;
    return comp;
}

/* Conversions are few, but not all alike.  For a target with charges the problem is solved by time and by count, with charges
 * in full and only beyond the model's own; each component takes the quickest of these that adds neither conversions nor
 * bytes, and stays as it is where none is clearly quicker than the model's own Transposes. */
static rl_status quickest(rl_plan *p, const scale *by_count, const own_moves *before, double limit, uint32_t *cfg, rl_arena *tmp)
{
    int64_t *best = rl_new(tmp, int64_t, p->ncomp);
    const tally *was = tally_of(p, before, cfg, tmp);
    const scale by_time = time_scale(p, 0);
    const bool *charged = charged_already(p, tmp);
    part x;
    rl_solution sol;
    for (uint32_t c = 0; c < p->cls.n; c++) best[p->cls.p[c].comp] += before->cost[c];
    for (uint32_t c = 0; c < p->ncomp; c++) best[c] -= best[c] / 100 * RL_WORTH_IT;
    for (uint32_t way = 0; way < 4; way++) {
        scale s = way < 2 ? by_time : *by_count;
        problem_of(p, &s, &(posing){.mild = way & 1, .cheap = s.by_time ? before->conv : NULL, .comp = way & 1 ? charged : NULL}, &x);
        RL_TRY(solve(p, &x, limit, &sol));
        const tally *now = tally_of(p, before, sol.cfg, tmp);
        bool *take = rl_new(tmp, bool, p->ncomp);
        for (uint32_t c = 0; c < p->ncomp; c++) {
            take[c] = now[c].time < best[c] && now[c].count <= was[c].count && now[c].bytes <= was[c].bytes;
            if (take[c]) best[c] = now[c].time;
        }
        for (uint32_t k = 0; k < p->op.n; k++)
            if (p->op.p[k].comp != RL_NONE && take[p->op.p[k].comp]) cfg[k] = sol.cfg[k];
    }
    return RL_OK;
}

/* What candidates.c leaves of a plan. */
typedef struct { rl_cls *cls; rl_oplegal *op; bool *full; } candidates;

static candidates candidates_of(const rl_plan *p, rl_arena *mem)
{
    return (candidates){rl_copy(mem, p->cls.p, p->cls.n * sizeof *p->cls.p), rl_copy(mem, p->op.p, p->op.n * sizeof *p->op.p),
                        rl_copy(mem, p->full, p->ncomp * sizeof *p->full)};
}

static void restore(rl_plan *p, const candidates *x)
{
    memcpy(p->cls.p, x->cls, p->cls.n * sizeof *x->cls);
    memcpy(p->op.p, x->op, p->op.n * sizeof *x->op);
    memcpy(p->full, x->full, p->ncomp * sizeof *x->full);
}

/* The fewest conversions once more, where more candidates may show that the bound can be reached. */
static rl_status widen(rl_plan *p, const scale *s, bool plain, double limit, rl_solution *sol, rl_arena *tmp)
{
    part x;
    rl_solution next;
    bool any = false;
    for (uint32_t c = 0; c < p->ncomp; c++) any |= p->unproved[c];
    if (!any) return RL_OK;
    const candidates before = candidates_of(p, tmp);
    if (rl_candidates_widen(p, p->unproved)) {
        problem_of(p, s, &(posing){.plain = plain}, &x);
        RL_TRY(solve(p, &x, limit, &next));
        if (next.cost > sol->cost) restore(p, &before);
        else *sol = next;
    }
    return rl_bound_again(p, sol->cfg, sol->optimal && s->byte_shift == 0, s->bytes_first, !plain, limit);
}

/* The fewest conversions (objective bytes: the fewest bytes), whatever the target charges, and in round 0 what none can beat. */
static rl_status fewest(rl_pass_run *r, const scale *s, bool plain, double limit, rl_solution *sol, rl_arena *tmp)
{
    rl_plan *p = r->plan;
    part x;
    problem_of(p, s, &(posing){.plain = plain}, &x);
    RL_TRY(solve(p, &x, limit, sol));
    if (r->round == 0) {
        RL_TRY(rl_bound(p, sol->cfg, sol->optimal && s->byte_shift == 0, s->bytes_first, !plain, limit));
        RL_TRY(widen(p, s, plain, limit, sol, tmp));
    }
    r->out->conv_before = conversions(p, rl_new(tmp, uint32_t, p->op.n), tmp, NULL);
    return RL_OK;
}

static rl_status assign(rl_pass_run *r, rl_arena *tmp)
{
    rl_plan *p = r->plan;
    r->out->improved = false;
    rl_outside_demands(p);
    bool timed = r->opt->objective && strcmp(r->opt->objective, "time") == 0, bytes_first = r->opt->objective && strcmp(r->opt->objective, "bytes") == 0;
    bool charged = rl_target_charges(p->target) && !bytes_first && !timed;
    const own_moves before = moves_before(p, tmp);
    rl_candidates(p, charged ? before.cost : rl_new(tmp, int64_t, p->cls.n), timed);
    double limit = r->opt->time_limit > 0 ? r->opt->time_limit : 5;
    scale s = make_scale(p, bytes_first);
    rl_solution sol;
    RL_TRY(fewest(r, &s, charged || timed, limit, &sol, tmp));
    if (charged) {
        memset(sol.cfg, 0, p->op.n * sizeof *sol.cfg);
        RL_TRY(quickest(p, &s, &before, limit, sol.cfg, tmp));
    }
    if (timed) RL_TRY(least_time(p, limit, &sol, r->out));
    if (bytes_first) RL_TRY(hold(p, &s, limit, sol.cfg, tmp));
    if (r->round == 0 && (timed || charged)) RL_TRY(rl_bound_quick(p, sol.cfg, timed, limit));
    for (uint32_t k = 0; k < p->op.n; k++) {
        p->op.p[k].chosen = sol.cfg[k];
        r->out->improved |= sol.cfg[k] != 0;
    }
    r->out->conv_after = conversions(p, sol.cfg, tmp, NULL);
    r->large = p->large;
    return RL_OK;
}

rl_status rl_pass_assign(rl_pass_run *r)
{
    rl_arena tmp;
    rl_arena_init(&tmp, r->g->ctx);
    rl_status s = assign(r, &tmp);
    rl_arena_free(&tmp);
    return s;
}
