/* The labels of one op: what the rules of legal_labels.def build them with. */
#include "legal_labels.h"

uint32_t rl_labels_operand(rl_labels *b, uint32_t slot, bool out) {
    rl_value v = out ? rl_out(b->n, slot) : rl_in(b->n, slot);
    if (!rl_has(v) || rl_labels_rank(b, v) == RL_NORANK || rl_labels_rank(b, v) > RL_MAXATOM) {
        b->ok = false;
        return 0;
    }
    b->op->operand[b->op->noperand] = (rl_operand){.tensor = v, .slot = slot, .out = out};
    return b->op->noperand++;
}

uint32_t rl_labels_add(rl_labels *b, rl_role role, uint32_t group) {
    uint32_t max = b->n->nin + b->n->nout;
    if (b->nlabel == RL_MAXLABEL) {
        b->ok = false;
        return 0;
    }
    rl_label *l = &b->label[b->nlabel];
    *l = (rl_label){.role = role, .group = group, .tail = RL_NONE};
    l->unit = rl_new(b->p->draft, uint32_t, 3 * (size_t)max);
    l->after = l->unit + max;
    l->dim = (int32_t *)(l->after + max);
    for (uint32_t i = 0; i < max; i++) {
        l->dim[i] = -1;
        l->unit[i] = l->after[i] = RL_NONE;
    }
    return b->nlabel++;
}

void rl_labels_at(rl_labels *b, uint32_t label, uint32_t operand, uint32_t dim) {
    if (!b->ok) return;
    if (label >= b->nlabel || dim >= rl_labels_rank(b, b->op->operand[operand].tensor)) { /* ranks that do not fit, as in a file that says so */
        b->ok = false;
        return;
    }
    b->label[label].dim[operand] = (int32_t)dim;
    b->label[label].unit[operand] = b->p->member[b->op->operand[operand].tensor.i].unit[dim];
}

bool rl_labels_like_input(rl_labels *b, uint32_t nout) {
    uint32_t x = rl_labels_operand(b, 0, false);
    if (!b->ok) return false;
    uint32_t rank = rl_labels_rank(b, b->n->in[0]);
    for (uint32_t d = 0; d < rank; d++) rl_labels_at(b, rl_labels_add(b, RL_T_FREE, 0), x, d);
    for (uint32_t k = 0; k < nout && b->ok; k++) {
        if (!rl_has(rl_out(b->n, k))) continue;
        uint32_t y = rl_labels_operand(b, k, true);
        if (b->ok && rl_labels_rank(b, b->n->out[k]) != rank) b->ok = false;
        for (uint32_t d = 0; d < rank && b->ok; d++) rl_labels_at(b, d, y, d);
    }
    return b->ok;
}

bool rl_labels_agree(const rl_labels *b, uint32_t label) {
    rl_dim size = 1;
    for (uint32_t o = 0; o < b->op->noperand; o++) {
        uint32_t unit = b->label[label].unit[o];
        if (unit == RL_NONE) continue;
        rl_dim s = b->p->unit.p[unit].size;
        if (size != 1 && s != size) return false;
        size = s;
    }
    return true;
}

bool rl_labels_stored(const rl_labels *b, rl_value v) {
    const rl_valinfo *x = rl_val(b->g, v);
    return x->data || rl_can_permute_bytes(b->g, x);
}

bool rl_labels_constant(const rl_labels *b, rl_value v) {
    for (uint32_t k = 0; k < 16; k++) {
        const rl_valinfo *x = rl_val(b->g, v);
        if (rl_labels_stored(b, v)) return true;
        if (x->def.i == RL_NONE || rl_op_class(rl_nod(b->g, x->def)->op) != RL_MOVING) return false;
        v = rl_nod(b->g, x->def)->in[0];
    }
    return false;
}
