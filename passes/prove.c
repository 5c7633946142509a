/* The certificate of an assignment (docs/proof.md), made of what legal, assign and bound left, checked by code that did not search.
 *
 * Values of the certificate are the classes that some pin names.  An op with one token at most can only do what the model does, so it
 * is written as fixed.  A component that costs something and has ops that could do otherwise becomes a part; its ops are taken in the
 * order of the graph, in which few values are open at a time.
 *
 * Needs: the plan after assign.  Keeps: everything. */
#include "bound.h"
#include "charge.h"
#include "../src/cert.h"
#include "../src/dim.h"
#include <string.h>

/* Most states of one component's table: some 100 MB. */
enum { MOSTSTATES = 1 << 20 };

typedef struct {
    const rl_plan *p;
    rl_arena *mem;
    uint32_t *value; /* [ncls] its number in the certificate, RL_NONE */
    uint32_t *op;    /* [nop] likewise */
    uint32_t *operand; /* of the op at hand: the operand of each pin */
    uint8_t *place;  /* and of each token its number in the certificate, RL_END for one that no pin has */
    rl_hash known;   /* tokens of the plan: the first op of the certificate that has them, and so the same forms (legal_share.c) */
    rl_cert c, time; /* time: the second part */
    rl_hash open;    /* 1 + the number of an open size: how many others the file has before it */
} maker;

static bool is_fixed(const rl_oplegal *op) { return op->fixed || op->ntoken <= 1; }

/* ---- values ---- */

/* Open sizes ("?17") are numbered as they come in the file, so that it does not hang on what was inferred before. */
static void put_renumbered(maker *m, const rl_text *from, rl_text *t)
{
    for (size_t i = 0, quoted = 0; i < from->n;) {
        char ch = from->p[i++];
        uint64_t number = 0;
        size_t digits = i;
        rl_put_bytes(t, &ch, 1);
        if (ch == '\\' && quoted && i < from->n) rl_put_bytes(t, from->p + i++, 1);
        quoted ^= ch == '\'';
        for (; ch == '?' && !quoted && i < from->n && from->p[i] >= '0' && from->p[i] <= '9'; i++) number = number * 10 + (uint64_t)(from->p[i] - '0');
        if (i == digits || ch != '?') continue;
        uint32_t at = rl_hash_get(&m->open, number + 1);
        if (at == RL_NONE) rl_hash_put(&m->open, number + 1, at = m->open.n);
        rl_put(t, "%u", at);
    }
    rl_put_bytes(t, "", 1);
}

static void symbols(maker *m, const rl_cls *c, rl_cert_value *v)
{
    bool known = true;
    for (uint32_t a = 0; a < c->natom; a++) known &= rl_dim_known(c->size[a]);
    v->size = c->size;
    if (known) return;
    int64_t *size = rl_new(m->mem, int64_t, c->natom);
    const char **symbol = rl_new(m->mem, const char *, c->natom);
    for (uint32_t a = 0; a < c->natom; a++) {
        size[a] = rl_dim_known(c->size[a]) ? c->size[a] : -1;
        if (size[a] >= 0) continue;
        rl_text t = {.mem = m->mem}, printed = {.mem = m->mem};
        rl_dim_print(&printed, m->p->g->ctx, c->size[a]);
        put_renumbered(m, &printed, &t);
        symbol[a] = t.p;
    }
    v->size = size;
    v->symbol = symbol;
}

static void make_values(maker *m)
{
    const rl_plan *p = m->p;
    rl_cert_value *v = rl_new(m->mem, rl_cert_value, p->cls.n + 1);
    m->value = rl_new(m->mem, uint32_t, p->cls.n);
    for (uint32_t k = 0; k < p->op.n; k++)
        for (uint32_t o = 0; o < p->op.p[k].noperand; o++)
            if (p->op.p[k].operand[o].pin) m->value[p->op.p[k].operand[o].cls] = 1;
    for (uint32_t c = 0; c < p->cls.n; c++) {
        const rl_cls *x = &p->cls.p[c];
        if (!m->value[c]) {
            m->value[c] = RL_NONE;
            continue;
        }
        rl_str name = rl_val(p->g, x->first)->name;
        rl_cert_value *y = &v[m->value[c] = m->c.nvalue++];
        *y = (rl_cert_value){.name = name ? name : "", .bytes = x->bytes, .natom = x->natom};
        symbols(m, x, y);
        if (!x->kept.atom || p->least[x->comp].count == 0) continue;
        y->keep = x->kept.atom;
        y->nkeep = x->kept.n;
        y->fold = x->kept.fold;
    }
    m->c.value = v;
}

/* ---- ops ---- */

/* The operand of each pin. */
static uint32_t pins_of(const rl_oplegal *op, uint32_t *operand)
{
    uint32_t n = 0;
    for (uint32_t o = 0; o < op->noperand; o++)
        if (op->operand[o].pin) operand[n++] = o;
    return n;
}

static void make_pins(const maker *m, const rl_oplegal *op, rl_cert_op *y)
{
    rl_cert_pin *pin = rl_new(m->mem, rl_cert_pin, y->npin);
    for (uint32_t i = 0; i < y->npin; i++) {
        const rl_operand *x = &op->operand[m->operand[i]];
        rl_str name = rl_val(m->p->g, x->tensor)->name;
        pin[i] = (rl_cert_pin){m->value[x->cls], name ? name : "", m->p->member[x->tensor.i].seq};
    }
    y->pin = pin;
}

/* Fills m->place. Returns how many tokens the certificate has. */
static uint32_t place_tokens(const maker *m, const rl_oplegal *op)
{
    uint32_t n = 0;
    for (uint32_t t = 0; t < op->ntoken; t++) {
        m->place[t] = RL_END;
        for (uint32_t i = 0; i < op->npin && m->place[t] == RL_END; i++)
            if (op->token[t].natom[m->operand[i]]) m->place[t] = (uint8_t)n++;
    }
    return n;
}

static void make_tokens(const maker *m, const rl_oplegal *op, rl_cert_op *y)
{
    rl_cert_token *token = rl_new(m->mem, rl_cert_token, y->ntoken);
    for (uint32_t t = 0; t < op->ntoken; t++) {
        if (m->place[t] == RL_END) continue;
        const uint8_t **at = rl_new(m->mem, const uint8_t *, y->npin);
        uint8_t *n = rl_new(m->mem, uint8_t, y->npin);
        for (uint32_t i = 0; i < y->npin; i++) {
            at[i] = op->token[t].atom[m->operand[i]];
            n[i] = op->token[t].natom[m->operand[i]];
        }
        token[m->place[t]] = (rl_cert_token){at, n};
    }
    y->token = token;
}

static void make_forms(const maker *m, const rl_oplegal *op, rl_cert_op *y)
{
    rl_cert_form *form = rl_new(m->mem, rl_cert_form, op->nform + 1);
    for (uint32_t f = 0; f < op->nform; f++) {
        uint8_t *group = rl_new(m->mem, uint8_t, y->ntoken + 1), *seq = rl_new(m->mem, uint8_t, y->npin * RL_MAXGROUP + 1);
        uint32_t *start = rl_new(m->mem, uint32_t, y->npin + 2), n = 0;
        for (uint32_t t = 0; t < op->ntoken; t++)
            if (m->place[t] != RL_END) group[m->place[t]] = op->form[f].group[t];
        for (uint32_t i = 0; i < y->npin; i++) {
            const uint8_t *s = op->form[f].seq[m->operand[i]];
            start[i] = n;
            for (uint32_t g = 0; g < RL_MAXGROUP && s[g] != RL_END; g++) seq[n++] = s[g];
        }
        start[y->npin] = n;
        form[f] = (rl_cert_form){group, start, seq};
    }
    y->form = form;
}

static void make_choice(const maker *m, const rl_oplegal *op, rl_cert_op *y)
{
    const rl_config *c = &op->config.p[op->chosen];
    y->chosen = RL_NONE;
    if (op->chosen == 0) return;
    uint8_t *perm = rl_new(m->mem, uint8_t, op->ntoken + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < op->form[c->form].start[RL_MAXGROUP]; i++)
        if (m->place[c->token[i]] != RL_END) perm[n++] = m->place[c->token[i]];
    y->chosen = c->form;
    y->perm = perm;
}

/* Tokens and forms, once for all ops that share them in the plan. */
static void make_table(maker *m, const rl_oplegal *op, rl_cert_op *y)
{
    uint64_t key = (uint64_t)(uintptr_t)op->token;
    uint32_t first = rl_hash_get(&m->known, key);
    y->nform = op->nform;
    if (first != RL_NONE) {
        y->token = m->c.op[first].token;
        y->form = m->c.op[first].form;
        return;
    }
    make_tokens(m, op, y);
    make_forms(m, op, y);
    rl_hash_put(&m->known, key, (uint32_t)(y - m->c.op));
}

static void make_op(maker *m, const rl_oplegal *op, rl_cert_op *y)
{
    const rl_graph *g = m->p->g;
    *y = (rl_cert_op){.kind = op->demand, .fixed = is_fixed(op), .npin = pins_of(op, m->operand), .chosen = RL_NONE};
    make_pins(m, op, y);
    y->name = y->pin[0].tensor;
    if (op->node.i != RL_NONE) {
        const rl_nodeinfo *n = rl_nod(g, op->node);
        rl_str name = NULL;
        for (uint32_t i = 0; i < n->nout && !name; i++)
            if (rl_has(n->out[i])) name = rl_val(g, n->out[i])->name;
        y->kind = RL_CERT_NODE;
        y->name = name ? name : "";
        y->type = n->domain && *n->domain ? rl_internf(g->ctx, "%s::%s", n->domain, n->type) : n->type;
    }
    if (y->fixed) return;
    y->ntoken = place_tokens(m, op);
    make_table(m, op, y);
    make_choice(m, op, y);
}

static void make_ops(maker *m)
{
    const rl_plan *p = m->p;
    rl_cert_op *op = rl_new(m->mem, rl_cert_op, p->op.n + 1);
    uint32_t noperand = 0, ntoken = 0;
    for (uint32_t k = 0; k < p->op.n; k++) {
        noperand = RL_MAX(noperand, p->op.p[k].noperand);
        ntoken = RL_MAX(ntoken, p->op.p[k].ntoken);
    }
    m->operand = rl_new(m->mem, uint32_t, noperand);
    m->place = rl_new(m->mem, uint8_t, ntoken);
    m->op = rl_new(m->mem, uint32_t, p->op.n);
    m->c.op = op;
    for (uint32_t k = 0; k < p->op.n; k++) {
        m->op[k] = RL_NONE;
        if (p->op.p[k].npin == 0) continue;
        m->op[k] = m->c.nop;
        make_op(m, &p->op.p[k], &op[m->c.nop++]);
    }
}

/* ---- parts and the claim ---- */

/* The bound of a component, and whether it has a part. */
typedef bool has_part(const rl_plan *p, uint32_t comp, rl_cert_part *out);

static bool count_part(const rl_plan *p, uint32_t k, rl_cert_part *out)
{
    out->least = (rl_cert_cost){p->least[k].count, p->least[k].bytes};
    return p->least[k].count > 0;
}

static bool time_part(const rl_plan *p, uint32_t k, rl_cert_part *out)
{
    if (!p->quick || !p->quick[k].known) return false;
    out->least = (rl_cert_cost){p->quick[k].bound, 0};
    out->price = p->quick[k].price;
    return true;
}

/* comp, if not NULL: [part] its component. */
static void make_parts(maker *m, has_part *has, rl_cert *c, uint32_t *comp)
{
    const rl_plan *p = m->p;
    uint32_t *n = rl_new(m->mem, uint32_t, p->ncomp), *part = rl_new(m->mem, uint32_t, p->ncomp), total = 0;
    for (uint32_t k = 0; k < p->op.n; k++)
        if (m->op[k] != RL_NONE && !m->c.op[m->op[k]].fixed) n[p->op.p[k].comp]++;
    rl_cert_part *out = rl_new(m->mem, rl_cert_part, p->ncomp + 1);
    for (uint32_t k = 0; k < p->ncomp; k++) {
        part[k] = RL_NONE;
        if (n[k] == 0 || !has(p, k, &out[total])) continue;
        if (comp) comp[total] = k;
        out[total].op = rl_new(m->mem, uint32_t, n[k]);
        part[k] = total++;
    }
    for (uint32_t k = 0; k < p->op.n; k++) {
        if (m->op[k] == RL_NONE || m->c.op[m->op[k]].fixed || part[p->op.p[k].comp] == RL_NONE) continue;
        rl_cert_part *x = &out[part[p->op.p[k].comp]];
        ((uint32_t *)x->op)[x->nop++] = m->op[k];
    }
    c->part = out;
    c->npart = total;
}

static void make_claim(maker *m, bool stands)
{
    const rl_plan *p = m->p;
    uint32_t *cfg = rl_new(m->mem, uint32_t, p->op.n);
    rl_least *cost = rl_new(m->mem, rl_least, p->ncomp);
    for (uint32_t k = 0; k < p->op.n; k++) cfg[k] = stands ? 0 : p->op.p[k].chosen;
    rl_plan_costs(p, cfg, cost, m->mem);
    m->c.cost = m->c.bound = (rl_cert_cost){0, 0};
    for (uint32_t k = 0; k < p->ncomp; k++) {
        m->c.cost.count += cost[k].count;
        m->c.cost.bytes += cost[k].bytes;
        m->c.bound.count += p->least[k].count;
        m->c.bound.bytes += p->least[k].bytes;
    }
}

/* Moving Transposes of tensors that are in no value. */
static uint32_t outside(const rl_plan *p)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->g->order.n; k++) {
        const rl_nodeinfo *x = rl_nod(p->g, p->g->order.p[k]);
        if (x->op != RL_OP_Transpose || !rl_has(rl_in(x, 0))) continue;
        uint32_t c = p->member[x->in[0].i].cls;
        n += (c == RL_NONE || p->cls.p[c].constant) && rl_transpose_moves(p->g, x);
    }
    return n;
}

/* ---- the second part: times ---- */

static void make_charge(const maker *m, const rl_oplegal *op, rl_cert_op *y)
{
    const rl_plan *p = m->p;
    rl_charge_rule r = rl_charge_rule_of(p, op);
    if (y->fixed || r.rule == RL_CERT_FREE) return;
    int64_t *form = rl_new(m->mem, int64_t, op->nform + 1), most = 0;
    bool *marked = rl_new(m->mem, bool, op->ntoken + 1);
    uint32_t n = 0, *operand = rl_new(m->mem, uint32_t, op->noperand + 1);
    pins_of(op, operand);
    y->charge = (rl_cert_charge){.rule = r.rule, .bytes = p->cls.p[rl_charged_class(p, op)].bytes, .tenths = r.tenths, .form = form, .marked = marked};
    if (r.rule == RL_CERT_FORMS) y->charge.tenths = rl_config_charge(p, op, &(rl_config){RL_NONE, NULL, 0});
    for (uint32_t f = 0; f < op->nform && r.rule == RL_CERT_FORMS; f++)
        most = RL_MAX(most, form[f] = rl_config_charge(p, op, &(rl_config){f, NULL, 0}));
    for (uint32_t t = 0; t < op->ntoken; t++) { /* as in make_tokens: those that some pin has */
        bool any = false;
        for (uint32_t i = 0; i < y->npin; i++) any |= op->token[t].natom[operand[i]] > 0;
        if (!any) continue;
        bool here = op->token[t].natom[0] > 0 && op->label[op->token[t].label].role == r.role;
        marked[n++] = here && (r.rule == RL_CERT_AFTER || rl_is_cut_short(p, op, &op->token[t]));
    }
    if (RL_MAX(most, y->charge.tenths) == 0) y->charge.rule = RL_CERT_FREE;
}

static void make_charges(maker *m)
{
    m->c.fixed = m->p->target->move[RL_MOVE_FIXED];
    m->c.rate = m->p->target->move[RL_MOVE_RATE];
    for (uint32_t k = 0; k < m->p->op.n; k++)
        if (m->op[k] != RL_NONE) make_charge(m, &m->p->op.p[k], (rl_cert_op *)&m->c.op[m->op[k]]);
}

/* What fixed ops make the classes take that are in no part. */
static int64_t fixed_times(const maker *m, const bool *in_part)
{
    const rl_plan *p = m->p;
    const uint32_t *start = rl_order_starts(p, m->mem);
    bool *seen = rl_new(m->mem, bool, start[p->cls.n]), *any = rl_new(m->mem, bool, p->cls.n);
    int64_t sum = 0;
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        uint32_t pin = 0;
        for (uint32_t o = 0; o < op->noperand && is_fixed(op); o++) {
            if (!op->operand[o].pin) continue;
            uint32_t c = op->operand[o].cls, order = op->pinorder.p[pin++];
            if (in_part[p->cls.p[c].comp] || seen[start[c] + order]) continue;
            seen[start[c] + order] = true;
            sum += any[c] ? rl_move_time(p, c) : 0;
            any[c] = true;
        }
    }
    return sum;
}

/* Of the choice in m->c, which then has it. */
static void make_time(maker *m, bool stands)
{
    const rl_plan *p = m->p;
    uint32_t *cfg = rl_new(m->mem, uint32_t, p->op.n), *comp = rl_new(m->mem, uint32_t, p->ncomp);
    rl_least *time = rl_new(m->mem, rl_least, p->ncomp);
    rl_cert_value *v = rl_copy(m->mem, m->c.value, (m->c.nvalue + 1u) * sizeof *v);
    bool *in_part = rl_new(m->mem, bool, p->ncomp);
    rl_cert *t = &m->time;
    *t = (rl_cert){.by_time = true, .fixed = m->c.fixed, .rate = m->c.rate, .nvalue = m->c.nvalue, .nop = m->c.nop, .value = v, .op = m->c.op};
    make_parts(m, time_part, t, comp);
    for (uint32_t k = 0; k < t->npart; k++) in_part[comp[k]] = true;
    for (uint32_t c = 0; c < p->cls.n; c++) {
        const rl_cls *x = &p->cls.p[c];
        if (m->value[c] == RL_NONE) continue;
        rl_kept none = {0}, kept = in_part[x->comp] ? p->timed[c] : none;
        rl_cert_value *y = &v[m->value[c]];
        y->keep = kept.atom;
        y->nkeep = kept.atom ? kept.n : 0;
        y->fold = kept.atom ? kept.fold : NULL;
    }
    for (uint32_t k = 0; k < p->op.n; k++) cfg[k] = stands ? 0 : p->op.p[k].chosen;
    rl_plan_times(p, cfg, NULL, time, m->mem);
    t->bound.count = fixed_times(m, in_part);
    for (uint32_t k = 0; k < p->ncomp; k++) t->cost.count += time[k].count;
    for (uint32_t k = 0; k < t->npart; k++) {
        ((rl_cert_part *)t->part)[k].cost = time[comp[k]].count;
        t->bound.count += t->part[k].least.count;
    }
    m->c.time = t;
}

static bool any_quick(const rl_plan *p)
{
    for (uint32_t k = 0; p->quick && k < p->ncomp; k++)
        if (p->quick[k].known) return true;
    return false;
}

/* ---- the whole ---- */

/* The certificate of the model left as it stands: the same bound, nothing chosen. */
static void leave_as_it_stands(maker *m)
{
    rl_cert_op *op = rl_copy(m->mem, m->c.op, (m->c.nop + 1u) * sizeof *op);
    for (uint32_t k = 0; k < m->c.nop; k++) op[k].chosen = RL_NONE;
    m->c.op = op;
    make_claim(m, true);
    if (m->c.time) make_time(m, true);
}

/* Two seconds, or the time limit if that is less: the largest real models take 1.5. */
static uint64_t most_work(const rl_passopt *o)
{
    double seconds = o->time_limit > 0 ? RL_MIN(o->time_limit, 2.0) : 2.0;
    return (uint64_t)(seconds * (double)RL_CERT_SECOND);
}

/* The second part is left out where it was not decided. */
static rl_status prove_time(rl_pass_run *r, maker *m)
{
    bool wanted = r->opt->objective && strcmp(r->opt->objective, "time") == 0;
    if (!r->out->proof.checked || !(wanted || any_quick(m->p))) return RL_OK;
    make_charges(m);
    make_time(m, false);
    rl_status s = rl_cert_check(r->g->ctx, &m->time, MOSTSTATES, most_work(r->opt));
    if (s != RL_OK && s != RL_EPROOF) return s;
    r->out->proof.timed = s == RL_OK;
    if (s == RL_OK) return RL_OK;
    rl_log(r->g->ctx, RL_LOG_DEBUG, "prove: times: %s", r->g->ctx->error);
    m->c.time = NULL;
    m->c.rate = 0;
    for (uint32_t k = 0; k < m->c.nop; k++) ((rl_cert_op *)m->c.op)[k].charge.rule = RL_CERT_FREE;
    return RL_OK;
}

static rl_status prove(rl_pass_run *r, rl_arena *mem)
{
    maker m = {.p = r->plan, .mem = mem, .known.mem = mem, .open.mem = mem};
    rl_proof *x = &r->out->proof;
    m.c.bytes_first = r->opt->objective && strcmp(r->opt->objective, "bytes") == 0;
    m.c.noutside = outside(r->plan);
    make_values(&m);
    make_ops(&m);
    make_parts(&m, count_part, &m.c, NULL);
    make_claim(&m, false);
    *x = (rl_proof){.made = true, .count = m.c.cost.count, .bytes = m.c.cost.bytes, .bound = m.c.bound.count, .bound_bytes = m.c.bound.bytes,
                    .outside = m.c.noutside};
    rl_status s = rl_cert_check(r->g->ctx, &m.c, MOSTSTATES, most_work(r->opt));
    if (s != RL_OK && s != RL_EPROOF) return s;
    x->checked = s == RL_OK;
    if (!x->checked) x->why = rl_internz(r->g->ctx, r->g->ctx->error);
    RL_TRY(prove_time(r, &m));
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

rl_status rl_pass_prove(rl_pass_run *r)
{
    rl_arena mem;
    rl_arena_init(&mem, r->g->ctx);
    rl_status s = prove(r, &mem);
    rl_arena_free(&mem);
    return s;
}

void rl_prove_problem(rl_pass_run *r, bool bytes_first, bool timed, rl_text *out)
{
    maker m = {.p = r->plan, .mem = r->tmp, .known.mem = r->tmp, .open.mem = r->tmp};
    m.c.bytes_first = bytes_first;
    m.c.noutside = outside(r->plan);
    rl_plan_stand(r->plan);
    make_values(&m);
    make_ops(&m);
    if (timed) make_charges(&m);
    rl_cert_print_graph(&m.c, out);
}
