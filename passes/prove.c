/* The certificate of an assignment (docs/proof.md), made of what legal, assign and bound left, checked by code that did not search.
 *
 * A component that costs something and has ops that could do otherwise becomes a part; its ops are taken in the order of the graph, in
 * which few values are open at a time.  A part that the checker cannot decide is left out, and its values have the bound that
 * fixed ops give them.
 *
 * Needs: the plan after assign.  Keeps: everything, but for what is claimed of the times of parts that are left out. */
#include "charge.h"
#include "bound.h"
#include "prove.h"
#include "prove_order.h"
#include <stdlib.h>
#include <string.h>

/* Most states of one component's table: some 100 MB. */
enum { MOSTSTATES = 1 << 20 };
/* Most times that a part is left out. */
enum { MOSTDROPS = 8 };

/* ---- parts and the claim ---- */

/* The bound of a component, and whether it has a part. */
typedef bool has_part(const rl_prove_maker *m, uint32_t comp, rl_cert_part *out, const rl_opspans **spans);

static bool count_part(const rl_prove_maker *m, uint32_t k, rl_cert_part *out, const rl_opspans **spans) {
    out->least = (rl_cert_cost){m->least[k].count, m->least[k].bytes};
    *spans = m->spans[k];
    return m->least[k].count > 0 && !m->dropped[k];
}

static bool time_part(const rl_prove_maker *m, uint32_t k, rl_cert_part *out, const rl_opspans **spans) {
    const rl_plan *p = m->p;
    if (!p->quick || !p->quick[k].known || m->slow[k]) return false;
    out->least = (rl_cert_cost){p->quick[k].bound, 0};
    out->price = p->quick[k].price;
    out->swaps = p->quick[k].swaps;
    *spans = p->quick[k].spans;
    return true;
}

static int compare_weighs(const void *a, const void *b) {
    const rl_cert_weigh *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Is it an op of a part? */
static bool is_listed(const rl_prove_maker *m, uint32_t op) { return m->op[op] != RL_NONE && !m->c.op[m->op[op]].fixed; }

/* of: [ncls] of a class of the first twin the one in this component. */
static rl_cert_span span_of(const rl_prove_maker *m, const rl_opspan *from, const uint32_t *of) {
    rl_cert_weigh *weigh = rl_new(m->mem, rl_cert_weigh, from->nweigh);
    for (uint32_t i = 0; i < from->nweigh; i++) weigh[i] = (rl_cert_weigh){m->value[of[from->weigh[i].value]], from->weigh[i].order, from->weigh[i].weight};
    if (from->nweigh) qsort(weigh, from->nweigh, sizeof *weigh, compare_weighs);
    return (rl_cert_span){.least = from->least, .nweigh = from->nweigh, .weigh = weigh};
}

/* The spans of the first of the component's twins; those without ops of the part cost nothing. */
static void set_spans(const rl_prove_maker *m, uint32_t comp, const rl_opspans *spans, rl_cert_part *part) {
    const rl_plan *p = m->p;
    rl_cert_span *out = rl_new(m->mem, rl_cert_span, spans->n);
    uint32_t *of = rl_new(m->mem, uint32_t, p->cls.n);
    for (uint32_t c = 0; c < p->cls.n; c++)
        if (p->cls.p[c].comp == comp) of[p->cls.p[c].like] = c;
    part->conversion = spans->conversion;
    for (uint32_t i = 0, k = 0; i < spans->n; i++) {
        rl_cert_span x = span_of(m, &spans->span[i], of);
        for (; k < spans->span[i].nop; k++) x.nop += p->op.p[k].comp == p->twin[comp] && is_listed(m, k);
        if (x.nop) out[part->nspan++] = x;
    }
    part->span = out;
}

/* Returns for each part its component.  arranged: [ncomp] not in the sequence of the graph. */
static const uint32_t *make_parts(rl_prove_maker *m, has_part *has, const bool *arranged, rl_cert *c) {
    const rl_plan *p = m->p;
    uint32_t *n = rl_new(m->mem, uint32_t, p->ncomp), *part = rl_new(m->mem, uint32_t, p->ncomp), total = 0;
    uint32_t *comp = rl_new(m->mem, uint32_t, p->ncomp + 1);
    for (uint32_t k = 0; k < p->op.n; k++)
        if (is_listed(m, k)) n[p->op.p[k].comp]++;
    rl_cert_part one;
    const rl_opspans *of_one;
    for (uint32_t k = 0; k < p->ncomp; k++) {
        part[k] = RL_NONE;
        if (n[k] == 0 || !has(m, k, &one, &of_one)) continue;
        comp[total] = k;
        part[k] = total++;
    }
    rl_cert_part *out = rl_new(m->mem, rl_cert_part, total + 1);
    const rl_opspans **spans = rl_new(m->mem, const rl_opspans *, total + 1);
    for (uint32_t i = 0; i < total; i++) {
        has(m, comp[i], &out[i], &spans[i]);
        out[i].op = rl_new(m->mem, uint32_t, n[comp[i]]);
    }
    for (uint32_t k = 0; k < p->op.n; k++) {
        if (!is_listed(m, k) || part[p->op.p[k].comp] == RL_NONE) continue;
        rl_cert_part *x = &out[part[p->op.p[k].comp]];
        ((uint32_t *)x->op)[x->nop++] = m->op[k];
    }
    for (uint32_t k = 0; k < total; k++) {
        if (spans[k]) set_spans(m, comp[k], spans[k], &out[k]);
        else if (arranged[comp[k]]) rl_prove_arrange(m->mem, c, &out[k], rl_work_seconds() + 1);
    }
    c->part = out;
    c->npart = total;
    return comp;
}

/* What c bounds: its parts, and what fixed ops make the classes cost that are in none.  comp: [part] its component. */
static rl_cert_cost bound_of(const rl_prove_maker *m, const rl_cert *c, const uint32_t *comp) {
    const rl_plan *p = m->p;
    const uint32_t *start = rl_order_starts(p, m->mem);
    bool *seen = rl_new(m->mem, bool, start[p->cls.n]), *any = rl_new(m->mem, bool, p->cls.n), *in_part = rl_new(m->mem, bool, p->ncomp);
    rl_cert_cost sum = {0, 0};
    for (uint32_t k = 0; k < c->npart; k++) {
        in_part[comp[k]] = true;
        sum.count += c->part[k].least.count;
        sum.bytes += c->part[k].least.bytes;
    }
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        if (!rl_is_idle(op)) continue;
        RL_EACH_PIN(op, o, pin) {
            uint32_t cls = op->operand[o].cls, order = rl_pin_order(op, 0, pin);
            if (in_part[p->cls.p[cls].comp] || seen[start[cls] + order]) continue;
            seen[start[cls] + order] = true;
            if (any[cls]) {
                sum.count += c->by_time ? rl_move_time(p, cls) : 1;
                sum.bytes += c->by_time ? 0 : p->cls.p[cls].bytes;
            }
            any[cls] = true;
        }
    }
    return sum;
}

/* What the assignment costs, or the model as it stands. */
static void make_cost(rl_prove_maker *m, bool stands) {
    const rl_plan *p = m->p;
    const uint32_t *cfg = stands ? rl_new(m->mem, uint32_t, p->op.n) : rl_plan_chosen(p, m->mem);
    rl_least *cost = rl_new(m->mem, rl_least, p->ncomp);
    rl_plan_costs(p, cfg, cost, m->mem);
    m->c.cost = (rl_cert_cost){0, 0};
    for (uint32_t k = 0; k < p->ncomp; k++) {
        m->c.cost.count += cost[k].count;
        m->c.cost.bytes += cost[k].bytes;
    }
}

/* The first part: what is bounded, with the atoms that are kept for it. Returns for each part its component. */
static const uint32_t *make_count(rl_prove_maker *m) {
    const rl_plan *p = m->p;
    const uint32_t *comp = make_parts(m, count_part, m->arranged[0], &m->c);
    m->c.bound = bound_of(m, &m->c, comp);
    for (uint32_t c = 0; c < p->cls.n; c++) {
        if (m->value[c] == RL_NONE || !m->dropped[p->cls.p[c].comp]) continue;
        rl_prove_keep((rl_cert_value *)&m->c.value[m->value[c]], (rl_kept){0});
    }
    return comp;
}

/* Moving Transposes of tensors that are in no value, or whose input and output are two: of sizes that are not known to be the same; and
 * those in bodies that stay closed. */
static uint32_t outside(const rl_plan *p) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->g->order.n; k++) {
        const rl_nodeinfo *x = rl_nod(p->g, p->g->order.p[k]);
        for (uint32_t i = 0; i < x->nattr; i++) {
            rl_stats body = {0};
            if (x->attr[i].graph) rl_stats_of(x->attr[i].graph, &body);
            n += (uint32_t)rl_stats_conversions(&body);
        }
        if (x->op != RL_OP_Transpose || !rl_has(rl_in(x, 0))) continue;
        uint32_t c = p->member[x->in[0].i].cls;
        n += (c == RL_NONE || p->cls.p[c].constant || !p->moving[p->g->order.p[k].i]) && rl_transpose_moves(p->g, x);
    }
    return n;
}

/* ---- the second part: times ---- */

/* Of the choice in m->c, which then has it, or of the model as it stands. Returns for each part its component. */
static const uint32_t *make_time(rl_prove_maker *m, bool stands) {
    const rl_plan *p = m->p;
    rl_least *time = rl_new(m->mem, rl_least, p->ncomp);
    rl_cert_value *v = rl_copy(m->mem, m->c.value, (m->c.nvalue + 1u) * sizeof *v);
    bool *in_part = rl_new(m->mem, bool, p->ncomp);
    rl_cert *t = &m->time;
    *t = (rl_cert){.by_time = true, .fixed = m->c.fixed, .rate = m->c.rate, .nvalue = m->c.nvalue, .nop = m->c.nop, .value = v, .op = m->c.op};
    const uint32_t *comp = make_parts(m, time_part, m->arranged[1], t);
    for (uint32_t k = 0; k < t->npart; k++) in_part[comp[k]] = true;
    for (uint32_t c = 0; c < p->cls.n; c++) {
        const rl_cls *x = &p->cls.p[c];
        if (m->value[c] == RL_NONE) continue;
        rl_prove_keep(&v[m->value[c]], in_part[x->comp] ? p->timed[c] : (rl_kept){0});
    }
    const uint32_t *cfg = stands ? rl_new(m->mem, uint32_t, p->op.n) : rl_plan_chosen(p, m->mem);
    for (uint32_t k = 0; p->swaps && k < p->ncomp; k++) p->swaps[k] = in_part[k] && p->quick[k].swaps;
    rl_prove_swaps(m, cfg);
    rl_plan_times(p, cfg, NULL, time, m->mem);
    t->bound = bound_of(m, t, comp);
    for (uint32_t k = 0; k < p->ncomp; k++) t->cost.count += time[k].count;
    for (uint32_t k = 0; k < t->npart; k++) ((rl_cert_part *)t->part)[k].cost = time[comp[k]].count;
    m->c.time = t;
    return comp;
}

static const uint32_t *make_chosen_time(rl_prove_maker *m) { return make_time(m, false); }

static int64_t charged_by(const rl_plan *p, const uint32_t *cfg) {
    int64_t n = 0;
    for (uint32_t k = 0; k < p->op.n; k++) n += rl_charge_time(p, &p->op.p[k], cfg[k]);
    return n;
}

static bool any_quick(const rl_plan *p) {
    for (uint32_t k = 0; p->quick && k < p->ncomp; k++)
        if (p->quick[k].known) return true;
    return false;
}

/* ---- the whole ---- */

/* The certificate of the model left as it stands: the same bound, nothing chosen. */
static void leave_as_it_stands(rl_prove_maker *m) {
    for (uint32_t k = 0; k < m->c.nop; k++) ((rl_cert_op *)m->c.op)[k].chosen = RL_NONE;
    make_cost(m, true);
    if (m->c.time) make_time(m, true);
}

/* Two seconds, or the time limit if that is less: the largest real models take 1.5. */
static uint64_t most_work(const rl_passopt *o) {
    double seconds = o->time_limit > 0 ? RL_MIN(o->time_limit, 2.0) : 2.0;
    return (uint64_t)(seconds * (double)RL_CERT_SECOND);
}

/* Of a component whose bound cannot be decided, the best other one, if there is any: its twins have it, too. */
static bool take_lesser(rl_prove_maker *m, uint32_t comp) {
    const rl_plan *p = m->p;
    uint32_t first = p->twin[comp], i = m->from[first];
    for (; i > 0 && p->lesser.p[i - 1].comp != first; i--) continue;
    if (i == 0) return false;
    m->from[first] = i - 1;
    for (uint32_t k = 0; k < p->ncomp; k++)
        if (p->twin[k] == first) m->least[k] = p->lesser.p[i - 1].least, m->spans[k] = p->lesser.p[i - 1].spans;
    for (uint32_t c = 0; c < p->cls.n; c++) {
        if (m->value[c] == RL_NONE || p->cls.p[c].comp == RL_NONE || p->twin[p->cls.p[c].comp] != first) continue;
        rl_prove_keep((rl_cert_value *)&m->c.value[m->value[c]], p->lesser.p[i - 1].kept[p->cls.p[c].like]);
    }
    return true;
}

static void set_twins(const rl_plan *p, uint32_t comp, bool *of, bool is) {
    for (uint32_t k = 0; k < p->ncomp; k++)
        if (p->twin[k] == p->twin[comp]) of[k] = is;
}

/* Left out there is no part: the bound is what fixed ops name. */
static void leave_out_count(rl_prove_maker *m, uint32_t comp) {
    if (!take_lesser(m, comp)) set_twins(m->p, comp, m->dropped, true);
}

static void leave_out_time(rl_prove_maker *m, uint32_t comp) { set_twins(m->p, comp, m->slow, true); }

/* Makes c and checks it; what cannot be decided is taken in another sequence, then replaced or left out, and then there is half as much work to be
 * done. */
static rl_status check_parts(rl_pass_run *r, rl_prove_maker *m, const rl_cert *c, const uint32_t *make(rl_prove_maker *m),
                             void leave(rl_prove_maker *m, uint32_t comp)) {
    uint64_t work = most_work(r->opt);
    bool *arranged = m->arranged[c->by_time], *was_arranged = rl_new(m->mem, bool, m->p->ncomp);
    for (uint32_t i = 0;;) {
        uint32_t part;
        const uint32_t *comp = make(m);
        rl_status s = rl_cert_check(r->g->ctx, c, MOSTSTATES, work, &part);
        if (s == RL_OK || part == RL_NONE || i == MOSTDROPS) return s;
        bool again = !was_arranged[comp[part]] && !c->part[part].nspan;
        rl_log(r->g->ctx, RL_LOG_DEBUG, "prove: %s: %s", r->g->ctx->error, again ? "arranged" : "left out");
        set_twins(m->p, comp[part], was_arranged, true);
        set_twins(m->p, comp[part], arranged, again);
        if (again) continue;
        leave(m, comp[part]);
        work /= 2;
        i++;
    }
}

static rl_status prove_time(rl_pass_run *r, rl_prove_maker *m) {
    bool wanted = r->opt->objective && strcmp(r->opt->objective, "time") == 0;
    if (!r->out->proof.checked || !(wanted || any_quick(m->p))) return RL_OK;
    rl_prove_charges(m);
    rl_status s = check_parts(r, m, &m->time, make_chosen_time, leave_out_time);
    if (s != RL_OK && s != RL_EPROOF) return s;
    r->out->proof.timed = s == RL_OK && (wanted || m->time.npart);
    if (r->out->proof.timed) return RL_OK;
    if (s != RL_OK) rl_log(r->g->ctx, RL_LOG_DEBUG, "prove: times: %s", r->g->ctx->error);
    m->c.time = NULL;
    m->c.rate = 0;
    for (uint32_t k = 0; k < m->c.nop; k++) {
        ((rl_cert_op *)m->c.op)[k].charge.rule = RL_CERT_FREE;
        ((rl_cert_op *)m->c.op)[k].swaps = NULL;
    }
    return RL_OK;
}

static rl_status prove(rl_pass_run *r, rl_arena *mem) {
    rl_prove_maker m = {.p = r->plan, .mem = mem, .known.mem = mem, .open.mem = mem};
    rl_proof *x = &r->out->proof;
    m.dropped = rl_new(mem, bool, r->plan->ncomp), m.slow = rl_new(mem, bool, r->plan->ncomp);
    for (uint32_t i = 0; i < 2; i++) m.arranged[i] = rl_new(mem, bool, r->plan->ncomp);
    m.least = rl_copy(mem, r->plan->least, r->plan->ncomp * sizeof *m.least), m.spans = rl_copy(mem, r->plan->spans, r->plan->ncomp * sizeof *m.spans);
    m.from = rl_new(mem, uint32_t, r->plan->ncomp);
    for (uint32_t k = 0; k < r->plan->ncomp; k++) m.from[k] = r->plan->lesser.n;
    m.c.bytes_first = r->opt->objective && strcmp(r->opt->objective, "bytes") == 0;
    m.c.noutside = outside(r->plan);
    rl_prove_values(&m);
    rl_prove_ops(&m);
    make_cost(&m, false);
    rl_status s = check_parts(r, &m, &m.c, make_count, leave_out_count);
    if (s != RL_OK && s != RL_EPROOF) return s;
    *x = (rl_proof){.made = true, .count = m.c.cost.count, .bytes = m.c.cost.bytes, .bound = m.c.bound.count, .bound_bytes = m.c.bound.bytes,
                    .outside = m.c.noutside, .checked = s == RL_OK};
    if (!x->checked) x->why = rl_internz(r->g->ctx, r->g->ctx->error);
    RL_TRY(prove_time(r, &m));
    x->charged = charged_by(m.p, rl_plan_chosen(m.p, mem));
    x->stands_charged = charged_by(m.p, rl_new(mem, uint32_t, m.p->op.n));
    x->time = m.time.cost.count;
    x->time_bound = m.time.bound.count;
    for (uint32_t i = 0; i < 2; i++) {
        x->text[i].mem = &r->g->mem;
        if (r->opt->proof) rl_cert_print_graph(&m.c, &x->text[i]);
        if (x->checked) rl_cert_show(r->g->ctx, &m.c, i ? &x->stands_shown : &x->shown);
        if (i == 0) leave_as_it_stands(&m);
    }
    x->stands = m.c.cost.count;
    x->stands_bytes = m.c.cost.bytes;
    x->stands_time = m.time.cost.count;
    return RL_OK;
}

rl_status rl_pass_prove(rl_pass_run *r) {
    rl_arena mem;
    rl_arena_init(&mem, r->g->ctx);
    rl_status s = prove(r, &mem);
    rl_arena_free(&mem);
    return s;
}

void rl_prove_problem(rl_pass_run *r, bool bytes_first, bool timed, rl_text *out) {
    rl_prove_maker m = {.p = r->plan, .mem = r->tmp, .known.mem = r->tmp, .open.mem = r->tmp};
    m.c.bytes_first = bytes_first;
    m.c.noutside = outside(r->plan);
    rl_plan_stand(r->plan);
    rl_prove_values(&m);
    rl_prove_ops(&m);
    if (timed) rl_prove_charges(&m);
    rl_cert_print_graph(&m.c, out);
}
