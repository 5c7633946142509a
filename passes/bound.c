/* What no assignment can beat: a lower bound over every configuration of the tables, not over the candidates alone (docs/proof.md).
 *
 * Each value keeps a few of its atoms, orders and tokens are restricted to those, and all configurations of what is left are
 * enumerated.  Any assignment of the whole restricts to one that costs no more, so the optimum of the restriction is a lower bound
 * for the whole.  Which atoms to keep is a guess (keep.c), and only the result says how good it was: three are tried first, then
 * more, and one of each role, or part; at last what did best, and one label more.  What is left is folded: most orders are never better than
 * another (rl_problem_fold).  What takes too long to be solved as a whole is bounded by spans of its ops (bound_span.c).
 * A component whose configurations are all candidates needs none of this, but the fewer atoms, the shorter the proof.  Where the bound is
 * below what is known, the choice that it comes from may lead to a cheaper one (lift.c).
 *
 * Needs: candidates and their optimum.  Keeps: the plan, but for cls.keep.  Leaves: rl_plan.least, spans, lifted. */
#include "bound.h"
#include "charge.h"
#include "keep.h"
#include <string.h>

/* ---- the problem, in exact costs ---- */

uint32_t rl_bits_of(double x) {
    uint32_t n = 0;
    while (x >= 1) {
        x /= 2;
        n++;
    }
    return n;
}

/* No total of interest exceeds that of `was`: bytes beyond it may spill into the count. */
static rl_bound_scale scale_of(const rl_plan *p, rl_least was, bool bytes_first) {
    rl_bound_scale s = {.bytes_first = bytes_first, .exact = true};
    int64_t most = 0;
    for (uint32_t c = 0; c < p->cls.n; c++) {
        s.unit = rl_gcd(s.unit, p->cls.p[c].bytes);
        most = RL_MAX(most, p->cls.p[c].bytes);
    }
    s.unit = RL_MAX(s.unit, 1);
    double pairs = 4.0 * p->cls.n + 4.0 * p->op.n;
    uint32_t count = rl_bits_of(pairs), bytes = rl_bits_of((double)was.count * (double)most / (double)s.unit + 1);
    s.up = bytes_first ? rl_bits_of((double)was.count + 1) : bytes;
    uint32_t width = bytes_first ? rl_bits_of(pairs * (double)most / (double)s.unit) + s.up : bytes + count;
    if (width > 61) {
        s.exact = false;
        s.unit <<= RL_MIN(width - 61, 40u);
        s.up -= bytes_first ? 0 : RL_MIN(width - 61, s.up);
    }
    return s;
}

int64_t rl_bound_weight(const rl_bound_scale *s, rl_least x) {
    int64_t bytes = x.bytes / s->unit;
    return s->bytes_first ? (bytes << s->up) + x.count : (x.count << s->up) + bytes;
}

static int64_t *charges_of(const rl_plan *q, const rl_oplegal *o) {
    int64_t unit = rl_charge_unit(q, o), *cost = rl_new(q->mem, int64_t, o->config.n);
    for (uint32_t k = 0; k < o->config.n; k++) cost[k] = o->config.p[k].charge * unit;
    return cost;
}

rl_choice rl_op_choice(const rl_oplegal *op, const int64_t *cost, rl_arena *mem) {
    uint32_t *value = rl_new(mem, uint32_t, op->npin + 1), n = 0;
    for (uint32_t o = 0; o < op->noperand; o++)
        if (op->operand[o].pin) value[n++] = op->operand[o].cls;
    return (rl_choice){n, op->config.n, value, op->pinorder.p, cost};
}

void rl_bound_problem(const rl_plan *q, const rl_bound_scale *s, const bool *open, rl_problem *out) {
    int64_t *weight = rl_new(q->mem, int64_t, q->cls.n);
    uint32_t *norder = rl_new(q->mem, uint32_t, q->cls.n);
    rl_choice *op = rl_new(q->mem, rl_choice, q->op.n);
    for (uint32_t c = 0; c < q->cls.n; c++) {
        const rl_cls *k = &q->cls.p[c];
        if (k->order.n == 0 || k->constant || !open[k->comp]) weight[c] = 0;
        else weight[c] = s->price ? rl_move_time(q, c) + s->price[k->comp] : rl_bound_weight(s, (rl_least){1, k->bytes});
        norder[c] = RL_MAX(1u, k->order.n);
    }
    for (uint32_t i = 0; i < q->op.n; i++) {
        const rl_oplegal *o = &q->op.p[i];
        op[i] = rl_op_choice(o, s->price ? charges_of(q, o) : NULL, q->mem);
    }
    *out = (rl_problem){.nval = q->cls.n, .nop = q->op.n, .weight = weight, .norder = norder, .op = op};
}

bool rl_touches(const rl_plan *p, const rl_oplegal *op, const bool *comp) {
    for (uint32_t o = 0; o < op->noperand; o++)
        if (op->operand[o].pin && comp[p->cls.p[op->operand[o].cls].comp]) return true;
    return false;
}

uint32_t *rl_order_starts(const rl_plan *p, rl_arena *mem) {
    uint32_t *start = rl_new(mem, uint32_t, (size_t)p->cls.n + 1);
    for (uint32_t c = 0; c < p->cls.n; c++) start[c + 1] = start[c] + p->cls.p[c].order.n;
    return start;
}

/* ---- from attempt to attempt ---- */

/* wide: for components where some class has more than MANYATOM atoms, too: with so many, what is kept class by class fits together badly. */
enum { MANYATOM = 12 };
typedef struct { uint32_t mostkept; rl_keepway way; bool wide, folded; } attempt; /* folded: by the orders of folded candidates, where there are such */
static const attempt attempts[] = {{3, RL_KEEP_PLAIN, true, false},  {4, RL_KEEP_PLAIN, false, true},   {4, RL_KEEP_PLAIN, false, false},
                                   {5, RL_KEEP_ROLES, true, false},  {5, RL_KEEP_SHARED, true, false},  {5, RL_KEEP_TWINS, false, false},
                                   {6, RL_KEEP_TWINS, false, false}, {5, RL_KEEP_FULL, false, false}};

/* Of what is open when all else is done, if it has no more ops than that: it takes long.  The first only where not even the first of
 * count and bytes is reached. */
static const struct { attempt a; uint32_t mostop; bool first; } last_attempts[] = {
    {{5, RL_KEEP_SHARED, true, false}, 1024, true}, {{5, RL_KEEP_PARTS, true, false}, 1024, true}, {{6, RL_KEEP_PARTS, true, false}, 128, false}};

static bool is_less(const rl_bound_scale *s, rl_least a, rl_least b) {
    if (s->bytes_first) return a.bytes != b.bytes ? a.bytes < b.bytes : a.count < b.count;
    return a.count != b.count ? a.count < b.count : a.bytes < b.bytes;
}

/* Is the first of count and bytes not reached? */
static bool is_far(const rl_prover *v, uint32_t comp, rl_least now) {
    rl_least known = v->known[comp];
    return v->scale.bytes_first ? now.bytes < known.bytes : now.count < known.count;
}

static void add_lesser(rl_plan *p, uint32_t comp, rl_least least, const rl_kept *kept, const rl_opspans *spans) {
    struct rl_lesser x = {comp, least, rl_copy(p->mem, kept, p->cls.n * sizeof *kept), spans};
    rl_push(p->mem, p->lesser, x);
}

/* What is known of a component is about to be replaced. */
static void keep_lesser(rl_prover *v, uint32_t comp, const rl_kept *kept) {
    if (!v->scale.price && v->settled[comp] && v->p->least[comp].count > 0) add_lesser(v->p, comp, v->p->least[comp], kept, v->p->spans[comp]);
}

/* Notes the optimum of the restriction where it is a better bound than what is known; elsewhere what was kept before stays. */
static void note(rl_prover *v, const rl_least *least, const rl_kept *before) {
    rl_plan *p = v->p;
    bool *better = rl_new(v->tmp, bool, p->ncomp);
    for (uint32_t k = 0; k < p->ncomp; k++) {
        better[k] = v->open[k] && least && (!v->settled[k] || is_less(&v->scale, p->least[k], least[k]));
        if (!better[k]) continue;
        keep_lesser(v, k, before);
        p->least[k] = v->scale.exact ? least[k] : (rl_least){v->scale.bytes_first ? 0 : least[k].count, 0};
        p->spans[k] = v->spans[k];
    }
    for (uint32_t c = 0; c < p->cls.n; c++) {
        rl_cls *x = &p->cls.p[c];
        if (!x->constant && v->open[x->comp] && !better[x->comp]) x->kept = before[c];
    }
    for (uint32_t k = 0; k < p->ncomp; k++) {
        v->settled[k] |= better[k];
        if (better[k] && (p->spans[k] ? !is_far(v, k, p->least[k]) : !is_less(&v->scale, p->least[k], v->known[k]))) v->open[k] = false;
    }
}

/* A fold of the restricted problem, and another one of what it leaves: again, NULL where there is none.  halves: that leaves half of the configurations at
 * most; untold: it changes orders of a value that keeps all of its atoms, which a certificate cannot say. */
typedef struct { uint32_t **to, **again; bool halves, untold; } folds;

/* The problem folded.  place: [op] for each configuration that is left where it was before; all: no fold that was found had to be dropped for the
 * certificate, so the solver need not look for any. */
typedef struct { rl_problem problem; uint32_t **place; folds f; bool all; } folded;

static uint32_t count_configs(const rl_problem *p) {
    uint32_t n = 0;
    for (uint32_t o = 0; o < p->nop; o++) n += p->op[o].ncfg;
    return n;
}

/* Where many configurations are left, and costs are those of the certificate, folds again. */
static rl_status fold_again(rl_prover *v, rl_plan *q, rl_problem *problem, folds *f, uint32_t **place) {
    enum { MANY = 256 };
    uint32_t before = count_configs(problem), **second = rl_new(v->tmp, uint32_t *, q->op.n);
    if (before < MANY || v->scale.price || !v->scale.exact) return RL_OK;
    uint32_t **again = rl_new(v->tmp, uint32_t *, q->cls.n);
    RL_TRY(rl_problem_fold(v->tmp, problem, true, v->deadline, again));
    rl_fold_apply(v->tmp, problem, again, second);
    for (uint32_t o = 0; o < problem->nop; o++)
        for (uint32_t c = 0; c < problem->op[o].ncfg; c++) place[o][c] = place[o][second[o][c]];
    uint32_t after = count_configs(problem);
    if (after < before) f->again = again;
    f->halves = after <= before / 2;
    for (uint32_t c = 0; c < q->cls.n; c++)
        for (uint32_t k = 0; again[c] && !q->cls.p[c].kept.atom && k < q->cls.p[c].order.n; k++) f->untold |= again[c][k] != k;
    return RL_OK;
}

/* Where that of single orders leaves many configurations to an op, one of neighbours may leave fewer, if it is the first. */
static rl_status fold(rl_prover *v, rl_plan *q, const rl_problem *problem, uint32_t **to) {
    enum { MANY = 1024, MANY_TO_ONE = 4 };
    RL_TRY(rl_problem_fold(v->tmp, problem, false, v->deadline, to));
    uint32_t left = rl_fold_leaves(problem, to);
    if (left <= RL_MAX((uint32_t)MANY, MANY_TO_ONE * problem->nop)) return RL_OK;
    uint32_t **first = rl_new(v->tmp, uint32_t *, q->cls.n), **next = rl_new(v->tmp, uint32_t *, q->cls.n);
    rl_fold_neighbours(q, problem, v->deadline, first, v->tmp);
    if (rl_fold_leaves(problem, first) > count_configs(problem) / 3 * 2) return RL_OK;
    rl_problem rest = *problem;
    rest.op = rl_copy(v->tmp, rest.op, rest.nop * sizeof *rest.op);
    rl_fold_apply(v->tmp, &rest, first, rl_new(v->tmp, uint32_t *, rest.nop));
    RL_TRY(rl_problem_fold(v->tmp, &rest, false, v->deadline, next));
    rl_fold_then(q, first, next);
    if (rl_fold_leaves(problem, first) < left) memcpy(to, first, q->cls.n * sizeof *to);
    return RL_OK;
}

static folded make_folded(rl_prover *v, rl_plan *q) {
    folded x = {.place = rl_new(v->tmp, uint32_t *, q->op.n), .f.to = rl_new(v->tmp, uint32_t *, q->cls.n)};
    rl_bound_problem(q, &v->scale, v->open, &x.problem);
    return x;
}

static rl_status fold_restricted(rl_prover *v, rl_plan *q, folded *x) {
    *x = make_folded(v, q);
    RL_TRY(fold(v, q, &x->problem, x->f.to));
    x->all = rl_fold_drop(q, &x->problem, x->f.to, v->tmp);
    rl_fold_apply(v->tmp, &x->problem, x->f.to, x->place);
    return fold_again(v, q, &x->problem, &x->f, x->place);
}

static rl_status solve_folded(rl_prover *v, const folded *x, double deadline, rl_solution *sol) {
    RL_TRY(rl_solve_folded(v->tmp, &x->problem, x->all, RL_MAX(deadline - rl_work_seconds(), 0.0), sol));
    for (uint32_t o = 0; o < x->problem.nop; o++) sol->cfg[o] = x->place[o][sol->cfg[o]];
    return RL_OK;
}

/* What is known of the open components, in weights: their restriction does not cost more.  0 where that is not told. */
static int64_t known_weight(const rl_prover *v) {
    rl_least sum = {0, 0};
    for (uint32_t k = 0; v->known && k < v->p->ncomp; k++) {
        sum.count += v->open[k] ? v->known[k].count : 0;
        sum.bytes += v->open[k] ? v->known[k].bytes : 0;
    }
    return v->scale.price || !v->scale.exact ? 0 : rl_bound_weight(&v->scale, sum);
}

/* Bounds by spans, where there are any.  Returns whether they are enough. */
static bool bound_by_spans(rl_prover *v, const rl_plan *q, const folded *x, rl_least **least) {
    rl_least *all = rl_new(v->tmp, rl_least, q->ncomp);
    bool enough = true;
    if (x->f.untold) return false;
    const rl_members members = rl_members_of(q, v->p, v->open, v->tmp);
    for (uint32_t k = 0; k < q->ncomp; k++) {
        if (!v->open[k]) continue;
        bool has = rl_bound_by_spans(v, q, &x->problem, k, &members, &all[k], &v->spans[k]);
        if (has) *least = all;
        enough &= has && !is_far(v, k, all[k]);
    }
    return enough;
}

/* Of so many configurations few problems are done in a part of the time. Tests set it low, so that small ones are bounded by spans. */
#ifndef RL_SPAN_MANY
#define RL_SPAN_MANY (1 << 14)
#endif

/* Is there nothing below what is known? */
static bool is_reached(const folded *x, const rl_solution *sol) { return x->problem.upper && sol->bound >= x->problem.upper; }

/* As a whole, if that is done in some part of the time; else by spans; and where these are not enough, as a whole again. */
static rl_status solve_restricted(rl_prover *v, const rl_plan *q, const folded *x, rl_solution *sol, rl_least **least) {
    enum { QUICK = 4 };
    static const double least_quick = 0.3;
    double now = rl_work_seconds();
    bool few = count_configs(&x->problem) < RL_SPAN_MANY;
    *sol = (rl_solution){0};
    if (few) RL_TRY(solve_folded(v, x, RL_MIN(now + RL_MAX((v->deadline - now) / QUICK, least_quick), v->deadline), sol));
    if (sol->optimal || is_reached(x, sol) || bound_by_spans(v, q, x, least) || (*least && !few)) return RL_OK;
    now = rl_work_seconds();
    return solve_folded(v, x, *least ? now + (v->deadline - now) / 2 : v->deadline, sol); /* atoms that are kept otherwise may do better */
}

/* Leaves what is found, or NULL. */
static rl_status bound_restricted(rl_prover *v, rl_plan *q, rl_least **least) {
    rl_solution sol;
    folded x;
    double now = rl_work_seconds();
    RL_TRY(fold_restricted(v, q, &x));
    v->folding = rl_work_seconds() - now;
    x.problem.upper = known_weight(v);
    RL_TRY(solve_restricted(v, q, &x, &sol, least));
    bool reached = is_reached(&x, &sol), solved = sol.optimal || reached;
    if (solved) *least = reached ? rl_copy(v->tmp, v->known, q->ncomp * sizeof **least) : rl_new(v->tmp, rl_least, q->ncomp);
    /* Where it is solved as a whole, a second fold that does not halve what there is would be no help to a checker. */
    if (*least) rl_fold_note(v->p, q, v->open, x.f.to, solved && !x.f.halves ? NULL : x.f.again);
    if (!solved) return RL_OK;
    memset(v->spans, 0, q->ncomp * sizeof *v->spans);
    if (reached) return RL_OK;
    if (v->scale.price) rl_plan_times(q, sol.cfg, v->scale.price, *least, v->tmp);
    else rl_plan_costs(q, sol.cfg, *least, v->tmp);
    return RL_OK;
}

/* Is there more time than the last attempt took only to be made? */
static bool has_time(const rl_prover *v) { return v->deadline - rl_work_seconds() > v->folding; }

/* Was this kept of these components before?  Then it was not enough, or there was too little time for it, and now there is less. */
static bool was_tried(rl_prover *v) {
    uint64_t h = 0;
    for (uint32_t c = 0; c < v->p->cls.n; c++) {
        const rl_cls *x = &v->p->cls.p[c];
        if (!rl_is_open(x, v->open)) continue;
        uint64_t key[] = {h, c, x->kept.n, x->kept.atom ? rl_hash_bytes(x->kept.atom, x->kept.n) : 0};
        h = rl_hash_bytes(key, sizeof key);
    }
    bool tried = rl_hash_get(&v->tried, h) != RL_NONE;
    rl_hash_put(&v->tried, h, 1);
    return tried;
}

/* What is kept now; before: what was. */
static rl_status try_kept(rl_prover *v, const rl_kept *before) {
    rl_plan q;
    rl_least *least = NULL;
    memset(v->spans, 0, v->p->ncomp * sizeof *v->spans);
    if (has_time(v) && !was_tried(v) && rl_restrict_plan(v->p, v->open, v->scale.price != NULL, &q, v->tmp)) RL_TRY(bound_restricted(v, &q, &least));
    note(v, least, before);
    return RL_OK;
}

static const rl_kept *kept_now(const rl_prover *v) {
    rl_kept *kept = rl_new(v->tmp, rl_kept, v->p->cls.n);
    for (uint32_t c = 0; c < v->p->cls.n; c++) kept[c] = v->p->cls.p[c].kept;
    return kept;
}

static rl_status try_restricted(rl_prover *v, attempt a) {
    rl_plan *p = v->p;
    const rl_kept *before = kept_now(v);
    const rl_saved *now = a.folded ? rl_candidates_save(p, v->tmp) : NULL;
    if (a.folded) rl_candidates_restore(p, p->left, v->open);
    rl_bound_keep(p, v->open, a.mostkept, a.way);
    if (a.folded) rl_candidates_restore(p, now, NULL);
    return try_kept(v, before);
}

/* Keeps what the best bound of a component keeps, and one label more, as long as some label makes the bound better. */
static rl_status try_labels(rl_prover *v, uint32_t comp) {
    enum { MOSTKEPT = 7 };
    bool *all = v->open, *one = rl_new(v->tmp, bool, v->p->ncomp), better = true;
    rl_status s = RL_OK;
    one[comp] = true;
    v->open = one;
    while (better && s == RL_OK) {
        better = false;
        for (uint32_t i = 0; one[comp] && s == RL_OK && rl_work_seconds() < v->deadline; i++) {
            const rl_kept *before = kept_now(v);
            const rl_least was = v->p->least[comp];
            if (!rl_bound_keep_more(v->p, one, i, MOSTKEPT)) break;
            s = try_kept(v, before);
            better |= is_less(&v->scale, was, v->p->least[comp]);
        }
    }
    v->open = all;
    all[comp] = one[comp];
    return s;
}

static bool any(const bool *x, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (x[i]) return true;
    return false;
}

/* The attempt, on some of the components that are open. */
static rl_status try_on(rl_prover *v, attempt a, const bool *chosen) {
    bool *all = v->open, *some = rl_new(v->tmp, bool, v->p->ncomp);
    for (uint32_t k = 0; k < v->p->ncomp; k++) some[k] = all[k] && chosen[k];
    if (!any(some, v->p->ncomp)) return RL_OK;
    v->open = some;
    rl_status s = try_restricted(v, a);
    v->open = all;
    for (uint32_t k = 0; k < v->p->ncomp; k++) all[k] &= some[k] || !chosen[k];
    return s;
}

static rl_status try_attempt(rl_prover *v, attempt a) {
    bool *chosen = rl_new(v->tmp, bool, v->p->ncomp);
    for (uint32_t k = 0; k < v->p->ncomp; k++) chosen[k] = (a.wide || !v->wide[k]) && (!a.folded || (v->p->folded[k] && v->full));
    return try_on(v, a, chosen);
}

/* Where a restriction has proved what the solver has of folded candidates, too, a checker may find the latter easier. */
static void add_folded(rl_prover *v, const bool *was_open) {
    rl_plan *p = v->p;
    for (uint32_t k = 0; k < p->ncomp; k++)
        if (was_open[k] && !v->open[k] && p->folded[k]) add_lesser(p, k, v->full[k], p->whole, NULL);
}

/* What no restriction has proved, the solver has where all configurations were candidates, or none but those that a fold took out. */
static void take_full(rl_prover *v) {
    rl_plan *p = v->p;
    rl_kept *kept = rl_new(p->mem, rl_kept, p->cls.n);
    bool *taken = rl_new(v->tmp, bool, p->ncomp);
    for (uint32_t c = 0; c < p->cls.n; c++) kept[c] = p->cls.p[c].kept;
    for (uint32_t k = 0; k < p->ncomp; k++) {
        taken[k] = v->open[k] && (p->full[k] || p->folded[k]);
        if (!taken[k]) continue;
        keep_lesser(v, k, kept);
        p->least[k] = v->full[k];
        p->spans[k] = NULL;
        v->settled[k] = true;
        v->open[k] = false;
    }
    for (uint32_t c = 0; c < p->cls.n; c++)
        if (taken[p->cls.p[c].comp]) p->cls.p[c].kept = p->folded[p->cls.p[c].comp] ? p->whole[c] : (rl_kept){0};
}

/* Twins have the bound of the first, and keep what it keeps. */
static void tell_twins(rl_plan *p) {
    for (uint32_t k = 0; k < p->ncomp; k++) {
        p->least[k] = p->least[p->twin[k]];
        p->spans[k] = p->spans[p->twin[k]];
        p->unproved[k] = p->unproved[p->twin[k]];
    }
    for (uint32_t c = 0; c < p->cls.n; c++) p->cls.p[c].kept = p->cls.p[p->cls.p[c].like].kept;
}

rl_prover rl_prover_of(rl_plan *p, bool *open, double limit, rl_arena *tmp) {
    rl_prover v = {.p = p, .open = open, .deadline = rl_work_seconds() + limit, .tmp = tmp, .tried.mem = p->mem};
    v.settled = rl_new(p->mem, bool, p->ncomp);
    v.spans = rl_new(p->mem, const rl_opspans *, p->ncomp);
    v.wide = rl_new(p->mem, bool, p->ncomp);
    for (uint32_t c = 0; c < p->cls.n; c++) v.wide[p->cls.p[c].comp] |= !p->cls.p[c].constant && p->cls.p[c].natom > MANYATOM;
    return v;
}

rl_status rl_prover_run(rl_prover *v) {
    rl_arena *outer = v->tmp, tmp;
    rl_arena_init(&tmp, v->p->g->ctx);
    v->tmp = &tmp;
    rl_status s = RL_OK;
    const bool *was_open = rl_copy(outer, v->open, v->p->ncomp * sizeof *v->open);
    uint32_t nattempt = RL_LEN(attempts) - !v->scale.price; /* the last is for charges */
    for (uint32_t i = 0; i < nattempt && any(v->open, v->p->ncomp) && s == RL_OK; i++) {
        double end = v->deadline, now = rl_work_seconds();
        v->deadline = now + (end - now) * 2 / 3; /* the next ones may do better */
        s = try_attempt(v, attempts[i]);
        v->deadline = end;
        rl_arena_free(&tmp);
    }
    v->tmp = outer;
    if (v->full) {
        add_folded(v, was_open);
        take_full(v);
    }
    return s;
}

/* Is the bound at least half of what is known?  Else so few atoms are kept that its choice says little of the whole. */
static bool is_near(const rl_prover *v, uint32_t comp) {
    rl_least now = v->p->least[comp], known = v->known[comp];
    if (!v->scale.exact) return true;
    return v->scale.bytes_first ? now.bytes >= known.bytes / 2 : now.count >= known.count / 2;
}

/* Where the bound is below what is known, the choice that it comes from may show a cheaper one. */
static rl_status lift_open(rl_prover *v, const uint32_t *cfg) {
    rl_plan *p = v->p, q;
    rl_solution sol;
    bool *all = v->open, *some = rl_new(v->tmp, bool, p->ncomp);
    for (uint32_t k = 0; k < p->ncomp; k++) some[k] = all[k] && v->settled[k] && !p->folded[k] && is_near(v, k);
    if (!any(some, p->ncomp) || !rl_restrict_plan(p, some, false, &q, v->tmp)) return RL_OK;
    v->open = some;
    folded x = make_folded(v, &q);
    rl_fold_noted(&q, x.f.to, v->tmp);
    rl_fold_apply(v->tmp, &x.problem, x.f.to, x.place);
    rl_status s = RL_OK;
    if (rl_lift_costs(&q, &x.problem)) s = solve_folded(v, &x, v->deadline, &sol);
    else sol = (rl_solution){0};
    if (s == RL_OK && sol.optimal) rl_lift(p, cfg, &q, sol.cfg, some);
    v->open = all;
    return s;
}

rl_status rl_bound(rl_plan *p, const uint32_t *cfg, bool optimal, bool bytes_first, bool lift, double limit) {
    rl_arena tmp;
    rl_arena_init(&tmp, p->g->ctx);
    rl_least was = {0, 0}, *known = rl_new(p->mem, rl_least, p->ncomp);
    p->unproved = rl_new(p->mem, bool, p->ncomp);
    p->least = rl_new(p->mem, rl_least, p->ncomp);
    p->spans = rl_new(p->mem, const rl_opspans *, p->ncomp);
    rl_prover v = rl_prover_of(p, p->unproved, limit, &tmp);
    rl_plan_costs(p, cfg, known, &tmp);
    for (uint32_t k = 0; k < p->ncomp; k++) {
        v.open[k] = p->active[k] && p->twin[k] == k && known[k].count > 0;
        if (!v.open[k]) p->least[k] = known[k];
        else was = (rl_least){was.count + known[k].count, was.bytes + known[k].bytes};
    }
    rl_arena_free(&tmp);
    v.known = known;
    v.full = optimal ? known : NULL;
    v.scale = scale_of(p, was, bytes_first);
    rl_status s = rl_prover_run(&v);
    if (s == RL_OK && lift) s = lift_open(&v, cfg);
    rl_arena_free(&tmp);
    tell_twins(p);
    return s;
}

static rl_status try_last(rl_prover *v, const uint32_t *nop, uint32_t i) {
    rl_plan *p = v->p;
    bool *chosen = rl_new(v->tmp, bool, p->ncomp);
    for (uint32_t k = 0; k < p->ncomp; k++) chosen[k] = nop[k] <= last_attempts[i].mostop && (!last_attempts[i].first || is_far(v, k, p->least[k]));
    return try_on(v, last_attempts[i].a, chosen);
}

static rl_status try_finer(rl_prover *v) {
    enum { MOSTOP = 512 }; /* it takes a bound for each label */
    rl_plan *p = v->p;
    rl_status s = RL_OK;
    uint32_t *nop = rl_new(v->tmp, uint32_t, p->ncomp);
    for (uint32_t k = 0; k < p->op.n; k++)
        if (rl_may_move(&p->op.p[k])) nop[p->op.p[k].comp]++;
    for (uint32_t i = 0; i < RL_LEN(last_attempts) && s == RL_OK; i++) s = try_last(v, nop, i);
    for (uint32_t k = 0; k < p->ncomp && s == RL_OK; k++)
        if (v->open[k] && v->settled[k] && nop[k] <= MOSTOP && is_far(v, k, p->least[k]) && is_near(v, k)) s = try_labels(v, k);
    return s;
}

rl_status rl_bound_again(rl_plan *p, const uint32_t *cfg, bool optimal, bool bytes_first, bool finer, double limit) {
    rl_arena tmp;
    rl_arena_init(&tmp, p->g->ctx);
    rl_least was = {0, 0}, *known = rl_new(&tmp, rl_least, p->ncomp);
    rl_prover v = rl_prover_of(p, p->unproved, limit, &tmp);
    rl_plan_costs(p, cfg, known, &tmp);
    v.known = known;
    v.full = known;
    v.scale.bytes_first = bytes_first;
    for (uint32_t k = 0; k < p->ncomp; k++) {
        v.open[k] &= p->twin[k] == k && is_less(&v.scale, p->least[k], known[k]);
        v.settled[k] = p->least[k].count > 0;
        if (v.open[k]) was = (rl_least){was.count + known[k].count, was.bytes + known[k].bytes};
    }
    if (optimal) take_full(&v);
    v.scale = scale_of(p, was, bytes_first);
    rl_status s = finer ? try_finer(&v) : RL_OK;
    tell_twins(p);
    rl_arena_free(&tmp);
    return s;
}
