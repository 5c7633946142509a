/* What would remove a conversion: one demand of its conflict is relaxed at a time, and the conflict is solved again.
 *
 * What is reported makes this conflict go away.  It says nothing of others that the same op may be part of. */
#include "charge.h"
#include "explain.h"

#include <string.h>

typedef struct {
    rl_explainer *x;
    rl_exsearch *s;
    rl_exjoin join;
    const rl_exids *op;
    const rl_exnames *names;
    rl_exconversion *out;
} remedies;

/* ---- other configurations of one op ---- */

/* The place of an order in its class, RL_NONE if no op of the model has use for it. */
static uint32_t find_order(const rl_plan *p, uint32_t cls, const uint8_t *order) {
    const rl_cls *c = &p->cls.p[cls];
    for (uint32_t i = 0; i < c->order.n; i++)
        if (rl_same_bytes(c->order.p[i].p, order, c->natom)) return i;
    return RL_NONE;
}

/* The same for the pin at hand; where it meets no other op any order will do. False: the order is new, and it matters. */
static bool push_order(const remedies *r, uint32_t k, uint32_t pin, uint32_t cls, const uint8_t *order, rl_exids *row) {
    uint32_t i = find_order(r->x->p, cls, order);
    if (i == RL_NONE && rl_expin_meets(r->x, r->join, k, pin)) return false;
    rl_push(r->x->now, *row, i == RL_NONE ? 0 : i);
    return true;
}

/* Channels last: the atoms of dim 1 behind all others. */
static void channels_last(const rl_member *m, uint32_t rank, uint8_t *out) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->natom; i++)
        if (rank < 3 || i < m->dimstart[1] || i >= m->dimstart[2]) out[n++] = m->seq[i];
    for (uint32_t i = m->dimstart[1]; rank >= 3 && i < m->dimstart[2]; i++) out[n++] = m->seq[i];
}

/* The op as it is, and with its images channels-last. */
static bool image_rows(const remedies *r, uint32_t k, rl_exids *row) {
    const rl_plan *p = r->x->p;
    const rl_oplegal *op = &p->op.p[k];
    uint8_t order[RL_MAXATOM + 1];
    for (uint32_t i = 0; i < op->npin; i++) rl_push(r->x->now, *row, op->pinorder.p[i]);
    RL_EACH_PIN(op, o, pin) {
        bool image = op->operand[o].out || op->operand[o].slot == 0;
        const rl_member *m = &p->member[op->operand[o].tensor.i];
        channels_last(m, image ? rl_val(r->x->g, op->operand[o].tensor)->rank : 0, order);
        if (!push_order(r, k, pin, m->cls, order, row)) return false;
    }
    return true;
}

/* The orders of one configuration with its groups in other sequences; nothing where an order is new. */
static void push_row(const remedies *r, uint32_t k, const rl_oplegal *op, const rl_config *c, rl_exids *row) {
    uint8_t order[RL_MAXATOM + 1];
    uint32_t start = row->n;
    RL_EACH_PIN(op, o, pin) {
        rl_config_order(op, c, o, order);
        if (push_order(r, k, pin, op->operand[o].cls, order, row)) continue;
        row->n = start;
        return;
    }
}

/* A MatMul that takes each operand, and makes its result, with its last two groups either way. */
static void flag_rows(const remedies *r, uint32_t k, rl_exids *row) {
    rl_oplegal op = r->x->p->op.p[k];
    for (uint32_t i = 0; i < op.config.n; i++) {
        const rl_config *c = &op.config.p[i];
        if (c->form == RL_NONE) continue;
        for (uint32_t way = 0; way < 8; way++) {
            rl_form f = op.form[c->form];
            uint8_t seq[3][RL_MAXGROUP];
            memcpy(seq, f.seq, sizeof seq);
            for (uint32_t o = 0; o < 3; o++)
                if (way >> o & 1) rl_swap_last(seq[o]);
            f.seq = seq;
            rl_oplegal flagged = op;
            flagged.form = &f;
            push_row(r, k, &flagged, &(rl_config){0, c->token, 0}, row);
        }
    }
}

/* The order of one operand decides, which has all tokens: they lie as their first atoms do there. */
static void free_row(const remedies *r, uint32_t k, uint32_t by, const uint8_t *order, uint32_t natom, rl_exids *row) {
    const rl_oplegal *op = &r->x->p->op.p[k];
    uint8_t token[RL_MAXATOM + 1], (*seq)[RL_MAXGROUP] = rl_alloc_array(r->x->now, op->noperand, sizeof *seq);
    uint32_t n = 0;
    for (uint32_t i = 0; i < natom; i++)
        for (uint32_t t = 0; t < op->ntoken; t++)
            if (op->token[t].natom[by] && op->token[t].atom[by][0] == order[i]) token[n++] = (uint8_t)t;
    rl_form f = {.seq = seq};
    for (uint32_t g = 1; g <= RL_MAXGROUP; g++) f.start[g] = n;
    for (uint32_t o = 0; o < op->noperand; o++) {
        seq[o][0] = 0;
        seq[o][1] = RL_END;
    }
    rl_oplegal one = *op;
    one.form = &f;
    push_row(r, k, &one, &(rl_config){0, token, 0}, row);
}

static bool has_all_tokens(const rl_oplegal *op, uint32_t operand) {
    for (uint32_t t = 0; t < op->ntoken; t++)
        if (!op->token[t].natom[operand]) return false;
    return true;
}

/* Any order, the same for all operands: a normalization in parts, an element-wise op. */
static void free_rows(const remedies *r, uint32_t k, rl_exids *row) {
    const rl_oplegal *op = &r->x->p->op.p[k];
    uint32_t by = 0;
    while (by < op->noperand && !has_all_tokens(op, by)) by++;
    if (by == op->noperand) return;
    const rl_cls *c = &r->x->p->cls.p[op->operand[by].cls];
    for (uint32_t i = 0; i < c->order.n; i++) free_row(r, k, by, c->order.p[i].p, c->natom, row);
}

/* ---- reporting ---- */

static uint32_t operand_at(const rl_oplegal *op, uint32_t pin) {
    uint32_t o = 0;
    for (uint32_t n = 0; o < op->noperand; o++)
        if (op->operand[o].pin && n++ == pin) break;
    return o;
}

static void add_remedy(const remedies *r, uint32_t k, rl_exremedykind kind, uint32_t pin, uint32_t order, bool axes) {
    const rl_explainer *x = r->x;
    const rl_oplegal *op = &x->p->op.p[k];
    rl_value v = op->operand[operand_at(op, pin)].tensor;
    rl_exremedy a = {.kind = kind, .tensor = rl_extensor_of(x, v)};
    rl_exwhat what;
    rl_node n = rl_exnode_at(x, k, &what);
    const rl_cls *c = &x->p->cls.p[x->p->member[v.i].cls];
    if (n.i != RL_NONE) a.node = rl_exnode_of(x, n);
    if (order != RL_NONE) a.order = rl_exwords(r->names, x->p->member[v.i].cls, c->order.p[order].p, c->natom);
    if (order != RL_NONE && axes) {
        rl_exnames own;
        rl_exnames_of_tensor(x, v, &own);
        a.axes = rl_exwords(&own, x->p->member[v.i].cls, c->order.p[order].p, c->natom);
    }
    for (uint32_t i = 0; i < r->out->remedy.n; i++) {
        const rl_exremedy *b = &r->out->remedy.p[i];
        bool same = rl_exnode_same(&b->node, &a.node) && (n.i != RL_NONE || rl_extensor_same(&b->tensor, &a.tensor));
        if (same && b->kind == kind) return; /* by another pin */
    }
    rl_push(x->mem, r->out->remedy, a);
}

static bool helps(const remedies *r, uint32_t k, const rl_exids *row, uint32_t pin, uint32_t *order) {
    rl_exrelax relax = {k, row->n / RL_MAX(1u, r->x->p->op.p[k].npin), row->p};
    uint32_t place = r->x->at[k][pin];
    *order = RL_NONE;
    return rl_exsearch_relaxed(r->s, r->join, r->op, &relax, &place, 1, order) == RL_EX_FITS;
}

static void fixed_node(const remedies *r, uint32_t k, uint32_t pin) {
    rl_exids row = {0};
    uint32_t order;
    const rl_nodeinfo *n = rl_nod(r->x->g, r->x->p->op.p[k].node);
    if (!rl_is_spatial(n)) {
        if (helps(r, k, &row, pin, &order)) add_remedy(r, k, RL_EX_KERNEL, pin, order, true);
    } else if (image_rows(r, k, &row) && helps(r, k, &row, pin, &order)) {
        add_remedy(r, k, RL_EX_TARGET_ORDER, pin, order, false);
    }
}

static void relax(const remedies *r, uint32_t k, uint32_t pin) {
    rl_exwhat what;
    rl_exids row = {0};
    uint32_t order;
    const rl_oplegal *op = &r->x->p->op.p[k];
    rl_exnode_at(r->x, k, &what);
    if (what == RL_EX_FIXED) fixed_node(r, k, pin);
    else if (what == RL_EX_INPUT || what == RL_EX_OUTPUT) {
        if (helps(r, k, &row, pin, &order))
            add_remedy(r, k, what == RL_EX_INPUT ? RL_EX_INPUT_LAYOUT : RL_EX_OUTPUT_LAYOUT, pin, order, true);
    } else if (what == RL_EX_FORM) {
        rl_op kind = rl_nod(r->x->g, op->node)->op;
        rl_class cls = rl_op_class(kind);
        if (kind == RL_OP_MatMul) flag_rows(r, k, &row);
        else if (cls == RL_NORM) free_rows(r, k, &row);
        if (row.n && helps(r, k, &row, pin, &order)) add_remedy(r, k, cls == RL_NORM ? RL_EX_REWRITE : RL_EX_TARGET_FLAGS, pin, order, false);
    }
}

void rl_explain_remedies(rl_explainer *x, rl_exsearch *s, rl_exjoin j, const rl_exids *op, const rl_exnames *names, rl_exconversion *out) {
    remedies r = {x, s, j, op, names, out};
    for (uint32_t i = 0; i < op->n; i++)
        for (uint32_t pin = 0; pin < x->p->op.p[op->p[i]].npin; pin++)
            if (rl_expin_meets(x, j, op->p[i], pin)) relax(&r, op->p[i], pin);
}

static uint32_t meeting_pins(const rl_explainer *x, rl_exjoin j, uint32_t k) {
    uint32_t n = 0;
    for (uint32_t pin = 0; pin < x->p->op.p[k].npin; pin++) n += rl_expin_meets(x, j, k, pin);
    return n;
}

/* At one pin it takes any order.  At several it is given all orders that its classes have. */
bool rl_exop_limited(rl_explainer *x, rl_exsearch *s, rl_exjoin j, const rl_exids *op, uint32_t k) {
    remedies r = {x, s, j, op, NULL, NULL};
    const rl_oplegal *l = &x->p->op.p[k];
    rl_exids row = {0};
    uint32_t order;
    if (meeting_pins(x, j, k) < 2) return true;
    for (uint32_t i = 0; i < l->config.n * l->npin; i++) rl_push(x->now, row, l->pinorder.p[i]);
    free_rows(&r, k, &row);
    return helps(&r, k, &row, 0, &order);
}
