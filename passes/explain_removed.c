/* Where the model's own Transposes went.
 *
 * A tensor is *turned* where its value is made in another order than its own.  A Transpose that is not needed has a turned side;
 * from there the turned tensors are walked, through ops that turned with them, to where that ends:
 *   x -> Transpose a -> u -> Relu -> v -> Transpose b -> y      u and v are turned (they stay as x is): a cancelled with b
 *   x -> Transpose a -> u -> ReduceMean -> v                    u is turned, v is not: ReduceMean absorbed a
 *   x -> Transpose a -> u -> Add (v of another conversion)      a went into that conversion
 *
 * Needs: the plan and its places (explain.h).  Keeps: everything. */
#include "explain.h"

typedef struct { rl_value v; uint32_t place, from; rl_node via; } visit;

typedef struct {
    const rl_explainer *x;
    uint32_t *seen, epoch;    /* [value] */
    const uint32_t *kept;     /* [node] 1 + the conversion that a Transpose stays as, or 0 */
    struct { visit *p; uint32_t n, cap; } queue;
    rl_node start;
    bool down;                /* whether the walk began below the Transpose */
    uint32_t opposite, alike, absorber, moved; /* places in queue where it ended so; RL_NONE */
    rl_node opposite_at, alike_at, absorber_at;
    uint32_t absorbing;       /* op */
    uint32_t conversion;
} walk;

static const uint8_t *order_of(const rl_explainer *x, uint32_t place) {
    return x->p->cls.p[x->place.p[place].cls].order.p[x->place.p[place].order].p;
}

static bool is_turned(const rl_explainer *x, rl_value v, uint32_t place) {
    const rl_member *m = &x->p->member[v.i];
    return !rl_same_bytes(m->seq, order_of(x, place), m->natom);
}

static void come_to(walk *w, rl_value v, uint32_t place, uint32_t from, rl_node via) {
    if (w->seen[v.i] == w->epoch) return;
    w->seen[v.i] = w->epoch;
    rl_push(w->x->tmp, w->queue, ((visit){v, place, from, via}));
}

static void go_into(walk *w, uint32_t at, uint32_t conversion) {
    if (w->moved != RL_NONE) return;
    w->moved = at;
    w->conversion = conversion;
}

/* ---- inside a class ---- */

/* Across a movement node from a turned tensor to the tensor on its other side. */
static void cross(walk *w, uint32_t at, rl_node n, rl_value other, bool down) {
    visit now = w->queue.p[at];
    const rl_member *a = &w->x->p->member[now.v.i], *b = &w->x->p->member[other.i];
    if (n.i == w->start.i || n.i == now.via.i) return;
    if (!rl_same_bytes(a->seq, b->seq, a->natom)) { /* a Transpose that moves data */
        if (w->kept[n.i]) {
            go_into(w, at, w->kept[n.i] - 1);
            return;
        }
        bool opposite = down == w->down;
        if (opposite && w->opposite == RL_NONE) {
            w->opposite = at;
            w->opposite_at = n;
        } else if (w->alike == RL_NONE) {
            w->alike = at;
            w->alike_at = n;
        }
        if (!is_turned(w->x, other, now.place)) return;
    }
    come_to(w, other, now.place, at, n);
}

static void within_class(walk *w, uint32_t at) {
    const rl_explainer *x = w->x;
    rl_value v = w->queue.p[at].v;
    const rl_valinfo *t = rl_val(x->g, v);
    if (t->def.i != RL_NONE && x->p->moving[t->def.i]) cross(w, at, t->def, rl_nod(x->g, t->def)->in[0], false);
    for (uint32_t i = 0; i < t->nuse; i++)
        if (t->use[i].slot == 0 && x->p->moving[t->use[i].node.i]) cross(w, at, t->use[i].node, rl_nod(x->g, t->use[i].node)->out[0], true);
}

/* ---- through ops ---- */

static void through_op(walk *w, uint32_t at, uint32_t k) {
    const rl_explainer *x = w->x;
    const rl_oplegal *op = &x->p->op.p[k];
    visit now = w->queue.p[at];
    bool here = false, more = false;
    RL_EACH_PIN(op, o, pin) {
        bool mine = rl_same(op->operand[o].tensor, now.v);
        here |= mine && x->at[k][pin] == now.place;
        if (mine && x->at[k][pin] != now.place)
            go_into(w, at, RL_MIN(x->place.p[x->at[k][pin]].conversion, x->place.p[now.place].conversion));
    }
    if (!here) return;
    RL_EACH_PIN(op, o, pin) {
        uint32_t place = x->at[k][pin];
        if (rl_same(op->operand[o].tensor, now.v) || !is_turned(x, op->operand[o].tensor, place)) continue;
        more = true;
        come_to(w, op->operand[o].tensor, place, at, op->node);
    }
    if (more || w->absorber != RL_NONE) return;
    w->absorber = at;
    w->absorber_at = op->node;
    w->absorbing = k;
}

static void through_node(walk *w, uint32_t at, rl_node n) {
    const rl_plan *p = w->x->p;
    uint32_t first = rl_exnode_ops(w->x, n);
    if (first == RL_NONE) return;
    for (uint32_t k = first; k < p->op.n && p->op.p[k].node.i == p->op.p[first].node.i; k++) through_op(w, at, k);
}

static void through_ops(walk *w, uint32_t at) {
    const rl_explainer *x = w->x;
    const rl_valinfo *t = rl_val(x->g, w->queue.p[at].v);
    uint32_t place = w->queue.p[at].place;
    if (!x->place.p[place].made) { /* it is made by a conversion */
        go_into(w, at, x->place.p[place].conversion);
        return;
    }
    if (t->def.i != RL_NONE) through_node(w, at, t->def);
    for (uint32_t i = 0; i < t->nuse; i++) through_node(w, at, t->use[i].node);
}

/* ---- one Transpose ---- */

static void trace_back(const walk *w, uint32_t at, rl_node end, rl_expath *path) {
    rl_exids way = {0};
    for (uint32_t i = at; i != RL_NONE; i = w->queue.p[i].from) rl_push(w->x->tmp, way, i);
    rl_exstep_node(w->x, path, w->start);
    while (way.n) {
        const visit *v = &w->queue.p[way.p[--way.n]];
        if (v->from != RL_NONE) rl_exstep_node(w->x, path, v->via);
        rl_exstep_tensor(w->x, path, v->v);
    }
    rl_exstep_node(w->x, path, end);
}

static const char *form_of(const rl_explainer *x, uint32_t k) {
    const rl_oplegal *op = &x->p->op.p[k];
    const rl_config *c = &op->config.p[x->cfg[k]];
    if (c->form == RL_NONE) return NULL;
    switch (op->form[c->form].kind) {
    case RL_FORM_GEMM: return "a Gemm that transposes";
    case RL_FORM_SWAPPED: return "a MatMul with its operands exchanged";
    case RL_FORM_PARTS: return "a MatMul with each part of its weights";
    case RL_FORM_MATMUL: return "a MatMul over the axis where it lies";
    default: return NULL;
    }
}

static void find_end(walk *w, rl_extranspose *out) {
    for (uint32_t i = 0; i < w->queue.n && w->opposite == RL_NONE; i++) {
        within_class(w, i);
        through_ops(w, i);
    }
    rl_node end = w->opposite != RL_NONE ? w->opposite_at : w->absorber != RL_NONE ? w->absorber_at : w->alike_at;
    uint32_t at = w->opposite != RL_NONE ? w->opposite : w->absorber != RL_NONE ? w->absorber : w->alike;
    if (w->opposite == RL_NONE && w->absorber == RL_NONE && w->moved != RL_NONE) {
        out->fate = RL_EX_MOVED;
        rl_push(w->x->mem, out->conversion, w->x->first + w->conversion);
        return;
    }
    out->fate = RL_EX_GONE;
    if (at == RL_NONE) return;
    bool absorbed = w->opposite == RL_NONE && w->absorber != RL_NONE;
    out->fate = absorbed ? RL_EX_ABSORBED : RL_EX_CANCELLED;
    if (absorbed) out->form = form_of(w->x, w->absorbing);
    rl_push(w->x->mem, out->with, rl_exnode_of(w->x, end));
    trace_back(w, at, end, &out->path);
}

static bool is_below(const rl_explainer *x, rl_value v, rl_value top) {
    for (;;) {
        if (rl_same(v, top)) return true;
        rl_node d = rl_val(x->g, v)->def;
        if (d.i == RL_NONE || !x->p->moving[d.i]) return false;
        v = rl_nod(x->g, d)->in[0];
    }
}

/* The conversions that readers below the Transpose need. *read: someone reads it at all. */
static void kept_as(const rl_explainer *x, const rl_exids *place, rl_value out, rl_extranspose *t, bool *read) {
    for (uint32_t i = 0; i < place->n; i++) {
        const rl_explace *v = &x->place.p[place->p[i]];
        for (uint32_t k = 0; k < v->npin; k++) {
            const rl_expin *pin = &x->pin[v->first + k];
            const rl_operand *o = &x->p->op.p[pin->op].operand[pin->operand];
            if (o->out || !is_below(x, o->tensor, out)) continue;
            *read = true;
            if (v->conversion == RL_NONE) continue;
            rl_push(x->mem, t->conversion, x->first + v->conversion);
            break;
        }
    }
}

/* What can be said of it alone: RL_EX_MOVED where the walk has to tell. */
static void own_fate(const rl_explainer *x, const rl_exids *place, rl_node n, rl_extranspose *t) {
    rl_value out = rl_nod(x->g, n)->out[0];
    uint32_t cls = x->p->member[out.i].cls;
    bool read = false;
    if (x->p->cls.p[cls].constant) {
        t->fate = RL_EX_FOLDED;
        return;
    }
    kept_as(x, &place[cls], out, t, &read);
    t->fate = t->conversion.n ? RL_EX_KEPT : read && x->base[cls] != RL_NONE ? RL_EX_MOVED : RL_EX_GONE;
}

/* It is in the graph still, but not in the plan: a tensor of unknown rank, or with too many axes, has no orders there, and its input and
 * output are two where their sizes are not known to be the same. */
static bool is_outside(const rl_explainer *x, rl_node n) {
    const rl_nodeinfo *k = rl_nod(x->g, n);
    if (rl_transpose_bytes(x->g, k) < 0) return false;
    uint32_t cls = x->p->member[k->in[0].i].cls;
    return cls == RL_NONE || !x->p->cls.p[cls].constant;
}

static void follow(walk *w, rl_node n, rl_extranspose *t) {
    const rl_explainer *x = w->x;
    rl_value a = rl_nod(x->g, n)->in[0], b = rl_nod(x->g, n)->out[0];
    uint32_t made = x->base[x->p->member[b.i].cls], epoch = w->epoch + 1;
    *w = (walk){.x = x, .seen = w->seen, .kept = w->kept, .epoch = epoch, .start = n,
                .opposite = RL_NONE, .alike = RL_NONE, .absorber = RL_NONE, .moved = RL_NONE};
    w->down = is_turned(x, b, made);
    come_to(w, w->down ? b : a, made, RL_NONE, RL_NONODE);
    find_end(w, t);
}

void rl_explain_transposes(const rl_explainer *x, const rl_exoriginal *list, uint32_t nt, rl_explanation *out) {
    rl_exids *place = rl_new(x->tmp, rl_exids, x->p->cls.n + 1);
    bool *live = rl_new(x->tmp, bool, x->g->nnode + 1);
    uint32_t *kept = rl_new(x->tmp, uint32_t, x->g->nnode + 1), before = out->transpose.n;
    walk w = {.x = x, .seen = rl_new(x->tmp, uint32_t, x->g->nval + 1), .kept = kept};
    for (uint32_t i = 0; i < x->place.n; i++) rl_push(x->tmp, place[x->place.p[i].cls], i);
    for (uint32_t k = 0; k < x->g->order.n; k++) live[x->g->order.p[k].i] = true;
    for (uint32_t i = 0; i < nt; i++) {
        rl_extranspose t = {.node = list[i].node, .fate = list[i].unused ? RL_EX_UNUSED : RL_EX_FOLDED};
        rl_node n = rl_has(list[i].out) ? rl_val(x->g, list[i].out)->def : RL_NONODE;
        bool there = n.i != RL_NONE && live[n.i];
        if (!rl_has(list[i].out)) t.fate = RL_EX_CLOSED;
        else if (there && x->p->moving[n.i]) own_fate(x, place, n, &t);
        else if (there && rl_nod(x->g, n)->op == RL_OP_OPAQUE) t.fate = RL_EX_OPAQUE;
        else if (there && is_outside(x, n)) t.fate = RL_EX_OUTSIDE;
        if (t.conversion.n) kept[n.i] = t.conversion.p[0] - x->first + 1;
        rl_push(x->mem, out->transpose, t);
    }
    for (uint32_t i = 0; i < nt; i++)
        if (out->transpose.p[before + i].fate == RL_EX_MOVED) follow(&w, rl_val(x->g, list[i].out)->def, &out->transpose.p[before + i]);
}
