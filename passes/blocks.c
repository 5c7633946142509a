/* Layouts with blocks for a GPU: see blocks.h. */
#include "blocks.h"

#include <inttypes.h>

#include "../src/ops.h"
#include "solve.h"

/* [N,C,H,W] of known dims, and no constant. */
static bool is_image(const rl_graph *g, rl_value v) {
    if (!rl_has(v)) return false;
    const rl_valinfo *x = rl_val(g, v);
    if (x->rank != 4 || x->data || x->is_init) return false;
    for (uint32_t i = 0; i < 4; i++)
        if (x->dim[i] <= 0) return false;
    return true;
}

/* ---- ops ---- */

typedef enum { FIXED, CONV, SAME } kind;

static kind kind_of(const rl_graph *g, const rl_nodeinfo *n) {
    bool conv = n->op == RL_OP_Conv || n->op == RL_OP_ConvTranspose || n->op == RL_OP_QLinearConv || n->op == RL_OP_ConvInteger;
    if (!n->nin || !n->nout || !is_image(g, n->in[0]) || !is_image(g, n->out[0])) return FIXED;
    if (conv) return CONV;
    rl_class c = rl_op_class(n->op);
    return c == RL_POINTWISE || c == RL_QDQ || c == RL_BATCHNORM || c == RL_POOL || c == RL_GLOBALPOOL ? SAME : FIXED;
}

/* taps 0: its weights are not known. */
static rl_blocks_conv conv_of(const rl_graph *g, const rl_nodeinfo *n) {
    const rl_layer *layer = rl_op_layer(n->op);
    rl_value at = rl_in(n, layer ? layer->weight : 1);
    const rl_valinfo *w = rl_has(at) ? rl_val(g, at) : NULL, *x = rl_val(g, n->in[0]), *y = rl_val(g, n->out[0]);
    rl_blocks_conv c = {x->dtype, y->dtype, x->dim, y->dim, rl_attr_int(n, "group", 1), 1, n->op == RL_OP_ConvTranspose};
    for (uint32_t i = 2; w && w->rank == 4 && i < 4; i++) c.taps *= RL_MAX(w->dim[i], 0);
    if (!w || w->rank != 4) c.taps = 0;
    return c;
}

static int64_t walk_ns(const rl_graph *g, const rl_nodeinfo *n, rl_blocks_layout l) {
    const rl_valinfo *x = rl_val(g, n->in[0]), *y = rl_val(g, n->out[0]);
    return rl_blocks_walk_ns(rl_blocks_bytes(x->dtype, x->dim, l) + rl_blocks_bytes(y->dtype, y->dim, l));
}

int64_t rl_blocks_cost(const rl_graph *g, const rl_nodeinfo *n, rl_blocks_layout l) {
    kind k = kind_of(g, n);
    if (k == FIXED) return l == RL_BLOCKS_NCHW ? 0 : -1;
    if (!rl_blocks_has(rl_val(g, n->in[0])->dtype, l) || !rl_blocks_has(rl_val(g, n->out[0])->dtype, l)) return -1;
    if (k == SAME) return walk_ns(g, n, l);
    rl_blocks_conv c = conv_of(g, n);
    int64_t by_library = rl_blocks_conv_ns(&c, l, l, true), own = rl_blocks_conv_ns(&c, l, l, false);
    if (c.taps <= 0 || c.group < 1) return l == RL_BLOCKS_NCHW ? walk_ns(g, n, l) : -1;
    return by_library < 0 || (own >= 0 && own < by_library) ? own : by_library;
}

int64_t rl_blocks_move_cost(const rl_graph *g, rl_value v) {
    const rl_valinfo *x = rl_val(g, v);
    return rl_blocks_walk_ns(2 * rl_blocks_bytes(x->dtype, x->dim, RL_BLOCKS_NCHW));
}

/* ---- the problem ---- */

typedef struct {
    const rl_graph *g;
    rl_arena *mem;
    uint32_t *value_of;  /* [value of the graph] its number in the problem; RL_NONE: it has none */
    struct { rl_value *p; uint32_t n, cap; } value;
    struct { rl_choice *p; uint32_t n, cap; } op;
    struct { uint32_t *p; uint32_t n, cap; } node; /* of each op; RL_NONE: the outside */
} builder;

static uint32_t number_of(builder *b, rl_value v) {
    if (b->value_of[v.i] == RL_NONE) {
        b->value_of[v.i] = b->value.n;
        rl_push(b->mem, b->value, v);
    }
    return b->value_of[v.i];
}

/* An op that takes these values in one layout each time, all the same: those that cost is not -1 for. */
static void add_op(builder *b, uint32_t node, const rl_value *v, uint32_t n, const int64_t *cost) {
    uint32_t *pin = rl_new(b->mem, uint32_t, n), *order = rl_new(b->mem, uint32_t, (size_t)n * RL_NBLOCKS), ncfg = 0;
    int64_t *price = rl_new(b->mem, int64_t, RL_NBLOCKS);
    for (uint32_t i = 0; i < n; i++) pin[i] = number_of(b, v[i]);
    for (uint32_t l = 0; l < RL_NBLOCKS; l++) {
        if (cost[l] < 0) continue;
        for (uint32_t i = 0; i < n; i++) order[ncfg * n + i] = l;
        price[ncfg++] = cost[l];
    }
    rl_choice c = {n, ncfg, pin, order, price};
    rl_push(b->mem, b->op, c);
    rl_push(b->mem, b->node, node);
}

static void add_rows(builder *b, rl_value v) {
    static const int64_t rows[RL_NBLOCKS] = {[RL_BLOCKS_NHWC] = -1, -1, -1, -1, -1};
    if (is_image(b->g, v)) add_op(b, RL_NONE, &v, 1, rows);
}

static void add_node(builder *b, rl_node at) {
    const rl_nodeinfo *n = rl_nod(b->g, at);
    kind k = kind_of(b->g, n);
    if (k == FIXED) {
        for (uint32_t i = 0; i < n->nin; i++) add_rows(b, n->in[i]);
        for (uint32_t i = 0; i < n->nout; i++) add_rows(b, n->out[i]);
        return;
    }
    rl_value *pin = rl_new(b->mem, rl_value, n->nin + 1);
    int64_t cost[RL_NBLOCKS];
    uint32_t npin = 0;
    pin[npin++] = n->out[0];
    for (uint32_t i = 0; i < n->nin; i++) {
        if (!is_image(b->g, n->in[i])) continue;
        if (i == 0 || (k == SAME && rl_same_shape(rl_val(b->g, n->in[i]), rl_val(b->g, n->out[0])))) pin[npin++] = n->in[i];
        else add_rows(b, n->in[i]); /* what is broadcast */
    }
    for (uint32_t l = 0; l < RL_NBLOCKS; l++) {
        cost[l] = rl_blocks_cost(b->g, n, (rl_blocks_layout)l);
        for (uint32_t i = 0; i < npin; i++)
            if (!rl_blocks_has(rl_val(b->g, pin[i])->dtype, (rl_blocks_layout)l)) cost[l] = -1;
    }
    cost[RL_BLOCKS_NCHW] = RL_MAX(cost[RL_BLOCKS_NCHW], 0); /* somehow */
    add_op(b, at.i, pin, npin, cost);
}

static rl_problem problem_of(builder *b) {
    const rl_graph *g = b->g;
    for (uint32_t i = 0; i < g->input.n; i++) add_rows(b, g->input.p[i]);
    for (uint32_t i = 0; i < g->order.n; i++) add_node(b, g->order.p[i]);
    for (uint32_t i = 0; i < g->output.n; i++) add_rows(b, g->output.p[i]);
    int64_t *weight = rl_new(b->mem, int64_t, b->value.n + 1);
    uint32_t *norder = rl_new(b->mem, uint32_t, b->value.n + 1);
    for (uint32_t i = 0; i < b->value.n; i++) weight[i] = rl_blocks_move_cost(g, b->value.p[i]), norder[i] = RL_NBLOCKS;
    return (rl_problem){.nval = b->value.n, .nop = b->op.n, .weight = weight, .norder = norder, .op = b->op.p,
                        .start = rl_new(b->mem, uint32_t, b->op.n + 1)}; /* nchw is every op's first */
}

/* ---- the answer ---- */

static rl_blocks_layout layout_at(const rl_choice *c, uint32_t cfg, uint32_t pin) {
    return (rl_blocks_layout)c->order[cfg * c->npin + pin];
}

static void add_moves(const builder *b, const rl_problem *p, const uint32_t *cfg, rl_blocks *out) {
    uint32_t *seen = rl_new(b->mem, uint32_t, p->nval + 1), *made = rl_new(b->mem, uint32_t, p->nval + 1);
    struct { rl_blocks_move *p; uint32_t n, cap; } move = {0};
    for (uint32_t o = 0; o < p->nop; o++)
        for (uint32_t i = 0; i < p->op[o].npin; i++) {
            uint32_t v = p->op[o].value[i], l = layout_at(&p->op[o], cfg[o], i);
            if (!seen[v]) made[v] = l; /* its maker comes first */
            if (seen[v] && !(seen[v] & 1u << l)) rl_push(b->mem, move, ((rl_blocks_move){b->value.p[v], (rl_blocks_layout)made[v], (rl_blocks_layout)l}));
            seen[v] |= 1u << l;
        }
    out->move = move.p, out->nmove = move.n;
}

rl_status rl_blocks_choose(const rl_graph *g, rl_arena *mem, double seconds, rl_blocks *out) {
    builder b = {.g = g, .mem = mem, .value_of = rl_new(mem, uint32_t, g->nval + 1)};
    struct { rl_blocks_op *p; uint32_t n, cap; } op = {0};
    rl_solution s;
    for (uint32_t i = 0; i < g->nval; i++) b.value_of[i] = RL_NONE;
    rl_problem p = problem_of(&b);
    *out = (rl_blocks){0};
    out->rows_ns = rl_problem_cost(&p, mem, p.start);
    RL_TRY(rl_solve(mem, &p, seconds, &s));
    for (uint32_t o = 0; o < p.nop; o++) {
        if (b.node.p[o] == RL_NONE) continue;
        rl_blocks_layout l = layout_at(&p.op[o], s.cfg[o], 0);
        rl_push(mem, op, ((rl_blocks_op){{b.node.p[o]}, l}));
    }
    add_moves(&b, &p, s.cfg, out);
    out->op = op.p, out->nop = op.n;
    out->ns = s.cost, out->bound = s.bound, out->optimal = s.optimal;
    return RL_OK;
}

void rl_blocks_print(const rl_graph *g, const rl_blocks *b, rl_text *t) {
    rl_put(t, "estimated for an H200, not measured: %.3f ms, %.3f ms all in nchw; %s\n", (double)b->ns * 1e-6, (double)b->rows_ns * 1e-6,
           b->optimal ? "no choice is quicker (proved)" : "not proved");
    rl_put(t, "conversions: %" PRIu32 "\n", b->nmove);
    for (uint32_t i = 0; i < b->nmove; i++) {
        const rl_valinfo *v = rl_val(g, b->move[i].value);
        rl_put(t, "  %-40s %s -> %s\n", v->name ? v->name : "", rl_blocks_name(b->move[i].from), rl_blocks_name(b->move[i].to));
    }
    rl_put(t, "ops: %" PRIu32 "\n", b->nop);
    for (uint32_t i = 0; i < b->nop; i++) {
        const rl_nodeinfo *n = rl_nod(g, b->op[i].node);
        rl_put(t, "  %-40s %-20s %s\n", n->name ? n->name : "", n->type, rl_blocks_name(b->op[i].layout));
    }
}
