/* The graph of a certificate, of what legal and assign left: values, ops with their tokens, forms and choices, and what they are charged
 * (docs/proof.md, section 3).
 *
 * Values of the certificate are the classes that some pin names.  An op with one token at most can only do what the model does, so it
 * is written as fixed.
 *
 * Needs: the plan.  Keeps: everything. */
#include "charge.h"
#include "prove.h"
#include "../src/dim.h"

/* ---- values ---- */

/* Open sizes are numbered as they come in the file, so that it does not hang on what was inferred before. */
static void symbols(rl_prove_maker *m, const rl_cls *c, rl_cert_value *v) {
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
        rl_dim_renumber(&t, printed.p, printed.n, &m->open);
        rl_put_bytes(&t, "", 1);
        symbol[a] = t.p;
    }
    v->size = size;
    v->symbol = symbol;
}

void rl_prove_values(rl_prove_maker *m) {
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
        if (x->kept.atom && p->least[x->comp].count) rl_prove_keep(y, x->kept);
    }
    m->c.value = v;
}

/* ---- ops ---- */

/* The operand of each pin. */
static uint32_t pins_of(const rl_oplegal *op, uint32_t *operand) {
    uint32_t n = 0;
    for (uint32_t o = 0; o < op->noperand; o++)
        if (op->operand[o].pin) operand[n++] = o;
    return n;
}

static void make_pins(const rl_prove_maker *m, const rl_oplegal *op, rl_cert_op *y) {
    rl_cert_pin *pin = rl_new(m->mem, rl_cert_pin, y->npin);
    for (uint32_t i = 0; i < y->npin; i++) {
        const rl_operand *x = &op->operand[m->operand[i]];
        rl_str name = rl_val(m->p->g, x->tensor)->name;
        pin[i] = (rl_cert_pin){m->value[x->cls], name ? name : "", m->p->member[x->tensor.i].seq};
    }
    y->pin = pin;
}

/* Fills m->place. Returns how many tokens the certificate has. */
static uint32_t place_tokens(const rl_prove_maker *m, const rl_oplegal *op) {
    uint32_t n = 0;
    for (uint32_t t = 0; t < op->ntoken; t++) {
        m->place[t] = RL_END;
        for (uint32_t i = 0; i < op->npin && m->place[t] == RL_END; i++)
            if (op->token[t].natom[m->operand[i]]) m->place[t] = (uint8_t)n++;
    }
    return n;
}

static void make_tokens(const rl_prove_maker *m, const rl_oplegal *op, rl_cert_op *y) {
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

static void make_forms(const rl_prove_maker *m, const rl_oplegal *op, rl_cert_op *y) {
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

/* Tokens in sequence as the certificate numbers them; groups rise. */
static void put_perm(const rl_prove_maker *m, const rl_oplegal *op, uint32_t form, const uint8_t *token, uint8_t *perm) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < op->form[form].start[RL_MAXGROUP]; i++)
        if (m->place[token[i]] != RL_END) perm[n++] = m->place[token[i]];
}

static void make_choice(const rl_prove_maker *m, const rl_oplegal *op, rl_cert_op *y) {
    const rl_config *c = &op->config.p[op->chosen];
    y->chosen = RL_NONE;
    if (op->chosen == 0) return;
    uint8_t *perm = rl_new(m->mem, uint8_t, op->ntoken + 1);
    put_perm(m, op, c->form, c->token, perm);
    y->chosen = c->form;
    y->perm = perm;
}

/* Tokens and forms, once for all ops that share them in the plan. */
static void make_table(rl_prove_maker *m, const rl_oplegal *op, rl_cert_op *y) {
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

static void make_op(rl_prove_maker *m, const rl_oplegal *op, rl_cert_op *y) {
    const rl_graph *g = m->p->g;
    *y = (rl_cert_op){.kind = op->demand, .fixed = rl_is_idle(op), .npin = pins_of(op, m->operand), .chosen = RL_NONE};
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

void rl_prove_ops(rl_prove_maker *m) {
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

/* ---- charges ---- */

static void make_charge(const rl_prove_maker *m, const rl_oplegal *op, rl_cert_op *y) {
    const rl_plan *p = m->p;
    const rl_charges *x = op->charges;
    if (y->fixed || !x) return;
    bool *marked = rl_new(m->mem, bool, op->ntoken + 1);
    uint32_t n = 0, *operand = rl_new(m->mem, uint32_t, op->noperand + 1);
    pins_of(op, operand);
    y->charge = (rl_cert_charge){.rule = x->rule, .bytes = p->cls.p[rl_charged_class(p, op)].bytes, .tenths = x->tenths, .form = x->form, .marked = marked};
    for (uint32_t t = 0; t < op->ntoken; t++) { /* as in make_tokens: those that some pin has */
        bool any = false;
        for (uint32_t i = 0; i < y->npin; i++) any |= op->token[t].natom[operand[i]] > 0;
        if (any) marked[n++] = x->marked[t];
    }
}

/* ---- swaps that products take in ---- */

static void make_swaps(const rl_prove_maker *m, const rl_oplegal *op, rl_cert_op *y) {
    if (y->fixed || !rl_may_swap(m->p, op)) return;
    bool *pin = rl_new(m->mem, bool, y->npin + 1), any = false;
    uint32_t n = 0;
    for (uint32_t o = 0; o < op->noperand; o++)
        if (op->operand[o].pin) any |= pin[n++] = o < 2;
    y->swaps = any ? pin : NULL;
}

void rl_prove_swaps(rl_prove_maker *m, const uint32_t *cfg) {
    const rl_plan *p = m->p;
    const rl_taken *taken = rl_taken_of(p, cfg, m->mem);
    rl_cert_swap *swap = rl_new(m->mem, rl_cert_swap, m->c.nop + 1);
    m->time.nswap = 0;
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        if (!taken[k].any || m->op[k] == RL_NONE || m->c.op[m->op[k]].fixed) continue;
        uint8_t *perm = rl_new(m->mem, uint8_t, op->ntoken + 1);
        bool *pin = rl_new(m->mem, bool, op->npin + 1);
        uint32_t n = 0;
        pins_of(op, m->operand);
        place_tokens(m, op);
        put_perm(m, op, taken[k].form, taken[k].token, perm);
        for (uint32_t o = 0; o < op->noperand; o++)
            if (op->operand[o].pin) pin[n++] = o < 2 && taken[k].order[o] != RL_NONE;
        swap[m->time.nswap++] = (rl_cert_swap){m->op[k], taken[k].form, perm, pin};
    }
    m->time.swap = swap;
}

void rl_prove_charges(rl_prove_maker *m) {
    m->c.fixed = m->p->target->move[RL_MOVE_FIXED];
    m->c.rate = m->p->target->move[RL_MOVE_RATE];
    for (uint32_t k = 0; k < m->p->op.n; k++)
        if (m->op[k] != RL_NONE) {
            make_charge(m, &m->p->op.p[k], (rl_cert_op *)&m->c.op[m->op[k]]);
            make_swaps(m, &m->p->op.p[k], (rl_cert_op *)&m->c.op[m->op[k]]);
        }
}
