/* Swaps that MatMul takes in: by time, in the components of p->swaps, a MatMul of two variables reads an operand in the order that its form says, or
 * with the last two groups of that swapped, which a runtime's MatMul does by itself (docs/proof.md, section 5).
 *
 *   MatMul a[b,M,K] w[b,K,N] -> y[b,M,N]     also a: b K M, w: b N K, or both */
#include "charge.h"
#include <string.h>

bool rl_may_swap(const rl_plan *p, const rl_oplegal *op) {
    bool product = op->node.i != RL_NONE && rl_nod(p->g, op->node)->op == RL_OP_MatMul && op->operand[0].pin && op->operand[1].pin;
    return product && !op->fixed && p->target->move[RL_MOVE_INTO_MATMUL] == 0;
}

void rl_may_swap_in(const rl_plan *p, bool *comp) {
    for (uint32_t k = 0; k < p->op.n; k++)
        if (p->op.p[k].comp != RL_NONE && rl_may_swap(p, &p->op.p[k])) comp[p->op.p[k].comp] = true;
}

bool rl_takes_in(const rl_plan *p, const rl_oplegal *op) { return p->swaps && op->comp != RL_NONE && p->swaps[op->comp] && rl_may_swap(p, op); }

bool rl_swap_last(uint8_t *seq) {
    uint32_t n = 0;
    while (n < RL_MAXGROUP && seq[n] != RL_END) n++;
    if (n < 2) return false;
    uint8_t last = seq[n - 1];
    seq[n - 1] = seq[n - 2];
    seq[n - 2] = last;
    return true;
}

/* The operands of `way`, a bit for each; false where one has nothing to swap. */
static bool swap_operands(const rl_oplegal *op, uint32_t way, uint8_t (*seq)[RL_MAXGROUP]) {
    bool all = true;
    for (uint32_t o = 0; o < 2; o++)
        if (way >> o & 1) all &= op->operand[o].pin && rl_swap_last(seq[o]);
    return all;
}

void rl_take_in(rl_plan *p, rl_oplegal *op) {
    const rl_form *was = op->form;
    uint32_t n = op->nform;
    if (!rl_takes_in(p, op)) return;
    op->form = rl_new(p->mem, rl_form, (size_t)n * 4);
    memcpy(op->form, was, n * sizeof *was);
    for (uint32_t f = 0; f < n; f++)
        for (uint32_t way = 1; way < 4; way++) {
            rl_form *x = &op->form[op->nform];
            *x = was[f];
            x->seq = rl_copy(p->mem, was[f].seq, op->noperand * sizeof *x->seq);
            x->untaken = &op->form[f];
            op->nform += swap_operands(op, way, x->seq);
        }
}

/* ---- candidates ---- */

static uint32_t token_at(const rl_oplegal *op, uint32_t operand, uint8_t atom) {
    uint32_t t = 0;
    while (t < op->ntoken && !(op->token[t].natom[operand] && memchr(op->token[t].atom[operand], atom, op->token[t].natom[operand]))) t++;
    return t;
}

/* Whether the form writes the orders that an op names; then token has its tokens, group after group. */
static bool writes(const rl_plan *p, const rl_oplegal *op, uint32_t form, const uint8_t *const *order, uint8_t *token) {
    const rl_form *f = &op->form[form];
    uint32_t n[RL_MAXGROUP] = {0};
    bool placed[256] = {false};
    uint8_t out[RL_MAXATOM + 1];
    for (uint32_t o = op->noperand; o-- > 0;)
        for (uint32_t i = 0; op->operand[o].pin && i < p->cls.p[op->operand[o].cls].natom; i++) {
            uint32_t t = token_at(op, o, order[o][i]);
            if (t == op->ntoken) return false;
            if (!placed[t]) token[f->start[f->group[t]] + n[f->group[t]]++] = (uint8_t)t;
            placed[t] = true;
        }
    for (uint32_t t = 0; t < op->ntoken; t++)
        if (!placed[t]) token[f->start[f->group[t]] + n[f->group[t]]++] = (uint8_t)t;
    for (uint32_t o = 0; o < op->noperand; o++) {
        if (!op->operand[o].pin) continue;
        uint32_t natom = rl_config_order(op, &(rl_config){form, token, 0}, o, out);
        if (natom != p->cls.p[op->operand[o].cls].natom || !rl_same_bytes(out, order[o], natom)) return false;
    }
    return true;
}

/* Adds what config c becomes where some operands are swapped. */
static void add_swapped(rl_plan *q, rl_oplegal *op, uint32_t c, rl_config config) {
    rl_form f = op->form[config.form];
    uint8_t out[RL_MAXATOM + 1], seq[3][RL_MAXGROUP];
    f.seq = seq;
    const rl_oplegal x = {.token = op->token, .form = &f};
    for (uint32_t way = 1; way < 4; way++) {
        memcpy(seq, op->form[config.form].seq, op->noperand * sizeof *seq);
        if (!swap_operands(op, way, seq)) continue;
        rl_push(q->mem, op->config, config);
        RL_EACH_PIN(op, o, pin) {
            rl_config_order(&x, &(rl_config){0, config.token, 0}, o, out);
            uint32_t order = way >> o & 1 ? rl_order_intern(q, op->operand[o].cls, out) : rl_pin_order(op, c, pin);
            rl_push(q->mem, op->pinorder, order);
        }
    }
}

/* The form and tokens of configuration 0, the model as it stands. */
static bool own_config(const rl_plan *p, const rl_oplegal *op, rl_config *c) {
    const uint8_t *order[3] = {NULL};
    uint8_t *token = rl_new(p->mem, uint8_t, op->ntoken + 1);
    for (uint32_t o = 0, pin = 0; o < 3; o++)
        if (op->operand[o].pin) order[o] = p->cls.p[op->operand[o].cls].order.p[op->pinorder.p[pin++]].p;
    for (uint32_t f = 0; f < op->nform; f++) {
        if (!writes(p, op, f, order, token)) continue;
        *c = (rl_config){f, token, c->charge};
        return true;
    }
    return false;
}

void rl_drop_charged(rl_plan *q) {
    for (uint32_t k = 0; k < q->op.n; k++) {
        rl_oplegal *op = &q->op.p[k];
        const rl_oplegal was = *op;
        bool any = false;
        for (uint32_t c = 0; c < was.config.n; c++) any |= was.config.p[c].charge > was.config.p[0].charge;
        if (!any) continue;
        op->config.p = rl_new(q->mem, rl_config, was.config.n);
        op->pinorder.p = rl_new(q->mem, uint32_t, was.pinorder.n);
        op->config.n = op->pinorder.n = 0;
        for (uint32_t c = 0; c < was.config.n; c++) {
            if (was.config.p[c].charge > was.config.p[0].charge) continue;
            op->config.p[op->config.n++] = was.config.p[c];
            memcpy(op->pinorder.p + op->pinorder.n, was.pinorder.p + c * op->npin, op->npin * sizeof *op->pinorder.p);
            op->pinorder.n += op->npin;
        }
    }
}

void rl_take_in_all(rl_plan *q) {
    q->taken = true;
    q->cls.p = rl_copy(q->mem, q->cls.p, q->cls.n * sizeof *q->cls.p);
    for (uint32_t c = 0; c < q->cls.n; c++) {
        rl_cls *x = &q->cls.p[c];
        x->index = NULL;
        if (x->order.n) x->order.p = rl_copy(q->mem, x->order.p, x->order.n * sizeof *x->order.p);
        x->order.cap = x->order.n;
    }
    for (uint32_t k = 0; k < q->op.n; k++) {
        rl_oplegal *op = &q->op.p[k];
        if (!rl_takes_in(q, op)) continue;
        uint32_t n = op->config.n;
        op->config.p = rl_copy(q->mem, op->config.p, n * sizeof *op->config.p);
        op->pinorder.p = rl_copy(q->mem, op->pinorder.p, op->pinorder.n * sizeof *op->pinorder.p);
        op->config.cap = n;
        op->pinorder.cap = op->pinorder.n;
        for (uint32_t c = 0; c < n; c++) {
            rl_config x = op->config.p[c];
            if (x.form != RL_NONE || own_config(q, op, &x)) add_swapped(q, op, c, x);
        }
    }
}

void rl_untake_all(const rl_plan *q, const rl_plan *p, uint32_t *cfg) {
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_config x = q->op.p[k].config.p[cfg[k]];
        const rl_oplegal *op = &p->op.p[k];
        uint32_t i = x.form == RL_NONE ? 0 : op->config.n - 1;
        while (i && (op->config.p[i].form != x.form || op->config.p[i].token != x.token)) i--;
        cfg[k] = i; /* what is of none other was made of the model's own */
    }
}

/* ---- what an assignment takes in ---- */

/* The order that the op names at an operand with the last two groups of the form swapped, if some other op names it; else RL_NONE. */
static uint32_t swapped(const rl_plan *p, const rl_oplegal *op, uint32_t form, const uint8_t *token, uint32_t operand, const bool *named) {
    const rl_cls *c = &p->cls.p[op->operand[operand].cls];
    uint8_t out[RL_MAXATOM + 1], seq[3][RL_MAXGROUP];
    rl_form f = op->form[form];
    memcpy(seq, f.seq, op->noperand * sizeof *seq);
    if (!rl_swap_last(seq[operand])) return RL_NONE;
    f.seq = seq;
    rl_oplegal x = *op;
    x.form = &f;
    rl_config_order(&x, &(rl_config){0, token, 0}, operand, out);
    for (uint32_t i = 0; i < c->order.n; i++)
        if (named[i] && rl_same_bytes(c->order.p[i].p, out, c->natom)) return i;
    return RL_NONE;
}

static void take_in(const rl_plan *p, const uint32_t *cfg, uint32_t k, const uint32_t *start, const bool *named, rl_taken *out, rl_arena *mem) {
    const rl_oplegal *op = &p->op.p[k];
    const uint8_t *order[3] = {NULL};
    uint32_t place[3] = {0};
    uint8_t *token = rl_new(mem, uint8_t, op->ntoken + 1);
    for (uint32_t o = 0, pin = 0; o < 3; o++) {
        if (!op->operand[o].pin) continue;
        place[o] = rl_pin_order(op, cfg[k], pin++);
        order[o] = p->cls.p[op->operand[o].cls].order.p[place[o]].p;
    }
    for (uint32_t f = 0; f < op->nform && !out->any; f++) {
        if (!writes(p, op, f, order, token)) continue;
        for (uint32_t o = 0; o < 2; o++) {
            uint32_t at = start[op->operand[o].cls];
            out->order[o] = op->operand[o].pin && !named[at + place[o]] ? swapped(p, op, f, token, o, named + at) : RL_NONE;
            out->any |= out->order[o] != RL_NONE;
        }
        out->form = f;
        out->token = token;
    }
}

rl_taken *rl_taken_of(const rl_plan *p, const uint32_t *cfg, rl_arena *mem) {
    const uint32_t *start = rl_order_starts(p, mem);
    bool *named = rl_new(mem, bool, start[p->cls.n] + 1u); /* by what cannot take it in */
    rl_taken *taken = rl_new(mem, rl_taken, p->op.n + 1u);
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        bool takes = rl_takes_in(p, op);
        RL_EACH_PIN(op, o, pin) named[start[op->operand[o].cls] + rl_pin_order(op, cfg[k], pin)] |= !takes || o == 2;
    }
    for (uint32_t k = 0; k < p->op.n; k++) {
        taken[k] = (rl_taken){.order = {RL_NONE, RL_NONE}};
        if (rl_takes_in(p, &p->op.p[k])) take_in(p, cfg, k, start, named, &taken[k], mem);
    }
    return taken;
}
