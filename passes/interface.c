/* Inputs and outputs in other orders: see interface.h.
 *
 * A new input x takes the name, and x in the model's own order becomes a value inside, made by a Transpose; an output likewise the
 * other way round.  Bodies that capture the old value know it by its new name.  Where the order is free, the port is an op of the
 * assignment whose configurations are the orders of its dims (rl_port_op), and costs nothing. */
#include "interface.h"

#include <string.h>

#include "../src/desc.h"
#include "../src/layout.h"
#include "../src/shape.h"
#include "plan.h"

static const char *kind(const rl_port *x) {
    return x->output ? "output" : "input";
}

static rl_status refuse(rl_ctx *ctx, const rl_port *x, const char *why) {
    return rl_fail(ctx, RL_EUSAGE, "%s layout '%.100s': %s", kind(x), x->item, why);
}

/* Does a buffer's layout stand there: a type, then sizes? */
static bool is_buffer(const char *s) {
    size_t n = strcspn(s, "[=");
    return s[n] == '[' && rl_desc_dtype(s, n) != RL_UNDEF;
}

/* Names may have a = themselves, and the strides of a buffer have one. */
static const char *find_equals(const char *item) {
    for (const char *eq = strchr(item, '='); eq; eq = strchr(eq + 1, '='))
        if (is_buffer(eq + 1)) return eq;
    return strrchr(item, '=');
}

rl_status rl_interface_add(rl_interface *io, bool output, const char *item) {
    rl_ctx *ctx = io->mem->ctx;
    const char *eq = find_equals(item);
    rl_port x = {.item = rl_internz(ctx, item), .output = output};
    if (!eq || eq == item || !eq[1]) return refuse(ctx, &x, "is not NAME=ORDER, where ORDER is nhwc, acdb, nhwc->nchw, keep, free ...");
    x.name = rl_intern(ctx, item, (size_t)(eq - item));
    x.order = x.item + (eq - item) + 1;
    x.free = strcmp(x.order, "free") == 0;
    for (uint32_t i = 0; i < io->port.n; i++)
        if (io->port.p[i].name == x.name && io->port.p[i].output == output) return refuse(ctx, &x, "its layout was given before");
    rl_push(io->mem, io->port, x);
    return RL_OK;
}

/* ---- does it fit? ---- */

static const rl_port *find_port(const rl_interface *io, rl_str name, bool output) {
    for (uint32_t i = 0; i < io->port.n; i++)
        if (io->port.p[i].name == name && io->port.p[i].output == output) return &io->port.p[i];
    return NULL;
}

/* The k-th input or output of that name. */
static rl_value find_value(const rl_graph *g, const rl_port *x) {
    uint32_t n = x->output ? g->output.n : g->input.n;
    const rl_value *v = x->output ? g->output.p : g->input.p;
    for (uint32_t i = 0; i < n; i++)
        if (rl_val(g, v[i])->name == x->name) return v[i];
    return RL_NOVALUE;
}

/* One value under one name cannot lie in two orders. */
static rl_status check_both(rl_ctx *ctx, const rl_interface *io, const rl_port *x) {
    const rl_port *other = find_port(io, x->name, !x->output);
    if (other && !other->free && !x->free && strcmp(other->order, x->order) == 0) return RL_OK;
    return refuse(ctx, x, "it is input and output at once: both need the same order, and it cannot be free");
}

static rl_status check_port(const rl_graph *g, const rl_interface *io, const rl_port *x, rl_value *v) {
    *v = find_value(g, x);
    if (!rl_has(*v)) return refuse(g->ctx, x, x->output ? "no output has this name" : "no input has this name");
    const rl_valinfo *val = rl_val(g, *v);
    if (val->rank == RL_NORANK) return refuse(g->ctx, x, "its rank is not known");
    if (val->rank > RL_PORTRANK) return refuse(g->ctx, x, "it has too many dims");
    if (val->is_init || val->raw.p) return refuse(g->ctx, x, x->output ? "it is a constant" : "it has a default value in the model");
    return val->is_input && val->is_output ? check_both(g->ctx, io, x) : RL_OK;
}

/* "nhwc->nchw": what the dims are called, and the order that they get. */
static bool read_arrow(const char *s, const char *arrow, uint32_t rank, uint32_t *perm) {
    const char *to = arrow + 2;
    uint64_t seen = 0;
    if ((size_t)(arrow - s) != rank || strlen(to) != rank) return false;
    for (uint32_t i = 0; i < rank; i++) {
        const char *at = memchr(s, to[i], rank);
        if (!at || seen >> (at - s) & 1) return false;
        perm[i] = (uint32_t)(at - s);
        seen |= (uint64_t)1 << perm[i];
    }
    return true;
}

/* Its dims from the largest stride to the smallest; those of one element, and those that repeat, stay where they are. */
static void order_of_strides(const rl_desc *d, uint32_t *perm) {
    uint8_t order[RL_DESC_DIGITS];
    uint32_t n = 0, k = 0;
    rl_desc_order(d, order);
    for (uint32_t i = 0; i < d->rank; i++)
        if (d->dim[order[i]] != 1 && d->digit[order[i]].stride != 0) order[n++] = order[i];
    for (uint32_t i = 0; i < d->rank; i++) perm[i] = d->dim[i] != 1 && d->digit[i].stride != 0 ? order[k++] : i;
}

/* The caller's buffer: gaps in it are the session's business. */
static rl_status read_buffer(const rl_graph *g, rl_port *x, rl_value v) {
    rl_desc d;
    rl_error e = {""};
    const rl_valinfo *val = rl_val(g, v);
    rl_status s = rl_desc_parse(x->order, &d, &e);
    if (s == RL_OK) s = rl_desc_check(&d, x->output, &e);
    if (s != RL_OK) return refuse(g->ctx, x, rl_internf(g->ctx, "%s", e.text));
    if (!rl_desc_is_strided(&d)) return refuse(g->ctx, x, "it has blocks or padding, for which a model's inputs and outputs have no dims");
    bool fits = (rl_dtype)d.dtype == val->dtype && d.rank == val->rank;
    for (uint32_t i = 0; fits && i < d.rank; i++) fits = !rl_dim_known(val->dim[i]) || val->dim[i] == d.dim[i];
    if (!fits) return refuse(g->ctx, x, "the model has it with another type or other sizes");
    order_of_strides(&d, x->perm);
    return RL_OK;
}

static rl_status read_order(rl_graph *g, rl_port *x, rl_value v) {
    const char *why, *arrow = strstr(x->order, "->");
    uint32_t rank = x->rank = rl_val(g, v)->rank;
    if (is_buffer(x->order)) return read_buffer(g, x, v);
    if (arrow) {
        if (read_arrow(x->order, arrow, rank, x->perm)) return RL_OK;
        return refuse(g->ctx, x, rl_internf(g->ctx, "on both sides of -> stand the same %u letters, one for each dim", rank));
    }
    if (strcmp(x->order, "keep") == 0) {
        for (uint32_t i = 0; i < rank; i++) x->perm[i] = i;
        return RL_OK;
    }
    if (rl_layout_parse_perm(&g->mem, x->order, rank, x->perm, &why)) return RL_OK;
    rl_str rank_too = rl_internf(g->ctx, "%s (it has rank %u)", why, rank);
    return refuse(g->ctx, x, rank_too);
}

/* ---- the change ---- */

static void replace_port(rl_value *list, uint32_t n, rl_value old, rl_value now) {
    for (uint32_t i = 0; i < n; i++)
        if (rl_same(list[i], old)) list[i] = now;
}

static void add_transpose(rl_graph *g, const rl_port *x, rl_value from, rl_value to) {
    int64_t perm[RL_PORTRANK];
    for (uint32_t i = 0; i < x->rank; i++) {
        if (x->output) perm[i] = x->perm[i];
        else perm[x->perm[i]] = i;
    }
    rl_node n = rl_graph_add(g, RL_OP_Transpose, rl_graph_fresh_name(g, "rl_interface"), 1, &from, 1, &to);
    rl_attr a = rl_attr_of_ints(g, "perm", perm, x->rank);
    rl_graph_set_attrs(g, n, &a, 1);
}

/* old: the value in the model's own order, inside from now on. One that is input and output is changed as input. */
static void change(rl_graph *g, const rl_port *x, rl_value old) {
    rl_dim dim[RL_PORTRANK];
    rl_str name = rl_val(g, old)->name;
    rl_graph_rename(g, old, rl_graph_fresh_name(g, name));
    rl_value now = rl_graph_value(g, name);
    for (uint32_t i = 0; i < x->rank; i++) dim[i] = rl_val(g, old)->dim[x->perm[i]];
    rl_graph_set_type(g, now, rl_val(g, old)->dtype, x->rank, dim);
    rl_push(&g->mem, g->turned, ((rl_turn){now, rl_copy(&g->mem, x->perm, x->rank * sizeof *x->perm)}));
    rl_valinfo *was = rl_val(g, old), *is = rl_val(g, now);
    is->is_input = was->is_input && !x->output;
    is->is_output = was->is_output;
    was->is_input &= x->output;
    was->is_output = false;
    if (!x->output) replace_port(g->input.p, g->input.n, old, now);
    replace_port(g->output.p, g->output.n, old, now);
    add_transpose(g, x, x->output ? old : now, x->output ? now : old);
}

/* Whether other bytes result: dims of size 1 aside, the dims have another sequence. */
static bool moves(const rl_graph *g, rl_value v, const rl_port *x) {
    uint32_t last = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (rl_val(g, v)->dim[x->perm[i]] == 1) continue;
        if (x->perm[i] < last) return true;
        last = x->perm[i];
    }
    return false;
}

static rl_status apply_port(rl_graph *g, const rl_interface *io, rl_port *x) {
    rl_value v;
    RL_TRY(check_port(g, io, x, &v));
    if (!x->free) RL_TRY(read_order(g, x, v));
    x->changed = false;
    for (uint32_t i = 0; i < x->rank; i++) x->changed |= x->perm[i] != i;
    x->moves = x->changed && moves(g, v, x);
    return RL_OK;
}

static rl_status apply_all(rl_graph *g, rl_interface *io) {
    RL_TRY(rl_shape_infer(g));
    for (uint32_t i = 0; i < io->port.n; i++) RL_TRY(apply_port(g, io, &io->port.p[i]));
    for (uint32_t i = 0; i < io->port.n; i++) {
        const rl_port *x = &io->port.p[i];
        rl_value v = find_value(g, x);
        bool done = x->output && rl_val(g, v)->is_input; /* with the input of the same name */
        if (x->changed && !done) change(g, x, v);
    }
    return rl_graph_sort(g);
}

rl_status rl_interface_apply(rl_graph *g, rl_interface *io) {
    if (RL_PROTECT(g->ctx)) return RL_ENOMEM;
    return apply_all(g, io);
}

/* ---- the choice ---- */

bool rl_port_is_free(const rl_plan *p, rl_value v, bool output) {
    const rl_port *x = p->io ? find_port(p->io, rl_val(p->g, v)->name, output) : NULL;
    return x && x->free;
}

/* One token per dim that has atoms, all of them in one group: any order of whole dims. */
void rl_port_op(rl_plan *p, rl_value v) {
    const rl_member *m = &p->member[v.i];
    uint32_t rank = rl_val(p->g, v)->rank;
    rl_oplegal op = {.node = RL_NONODE, .noperand = 1, .npin = 1, .comp = RL_NONE};
    op.operand = rl_new(p->mem, rl_operand, 1);
    op.operand[0] = (rl_operand){.tensor = v, .pin = true, .cls = m->cls};
    op.label = rl_new(p->mem, rl_label, rank + 1);
    op.token = rl_new(p->mem, rl_token, rank + 1);
    for (int32_t d = 0; d < (int32_t)rank; d++) {
        uint32_t n = (uint32_t)(m->dimstart[d + 1] - m->dimstart[d]);
        if (n == 0) continue;
        rl_label *l = &op.label[op.nlabel];
        *l = (rl_label){.role = RL_T_AXIS, .tail = RL_NONE};
        l->dim = rl_copy(p->mem, &d, sizeof d);
        rl_token *t = &op.token[op.ntoken++];
        t->label = op.nlabel++;
        t->atom = rl_copy(p->mem, &(uint8_t *){m->seq + m->dimstart[d]}, sizeof *t->atom);
        t->natom = rl_copy(p->mem, &(uint8_t){(uint8_t)n}, 1);
    }
    rl_plain_form(p, &op);
    rl_push(p->mem, p->op, op);
}

/* The order chosen: dims of size 1 stay where they are. */
static void read_choice(const rl_plan *p, const rl_oplegal *op, rl_port *x) {
    const rl_valinfo *val = rl_val(p->g, op->operand[0].tensor);
    uint32_t at = 0;
    x->rank = val->rank;
    for (uint32_t i = 0; i < x->rank; i++) x->perm[i] = i;
    if (op->chosen == 0) return;
    const uint8_t *token = op->config.p[op->chosen].token;
    for (uint32_t i = 0; i < x->rank; i++)
        if (val->dim[i] != 1) x->perm[i] = (uint32_t)op->label[op->token[token[at++]].label].dim[0];
}

static rl_status solve(rl_pass_run *r, const rl_interface *io) {
    r->io = io;
    RL_TRY(rl_pass_legal(r));
    return rl_pass_assign(r);
}

/* What the solver has shown to be needed: of what was chosen, in no component less than its bound. */
static int64_t least_of(const rl_pass_run *r) {
    const rl_plan *p = r->plan;
    int64_t least = r->out->conv_after;
    rl_arena tmp;
    rl_arena_init(&tmp, p->g->ctx);
    rl_least *cost = rl_new(&tmp, rl_least, p->ncomp);
    rl_plan_costs(p, rl_plan_chosen(p, &tmp), cost, &tmp);
    for (uint32_t k = 0; k < p->ncomp; k++) least -= cost[k].count - p->least[k].count;
    rl_arena_free(&tmp);
    return least;
}

static rl_status choose(rl_pass_run *r, void *what) {
    rl_interface *io = what;
    bool any = false;
    RL_TRY(rl_alike_infer(r->g, r->tmp));
    for (uint32_t i = 0; i < io->port.n; i++) {
        rl_value v;
        RL_TRY(check_port(r->g, io, &io->port.p[i], &v));
        if (io->port.p[i].free) any = true;
        else RL_TRY(read_order(r->g, &io->port.p[i], v));
    }
    rl_stats_of(r->g, &io->before);
    r->g = rl_flat_make(r->g);
    RL_TRY(rl_pass_normalize(r));
    RL_TRY(rl_pass_fold(r));
    RL_TRY(solve(r, NULL));
    io->conv_before = r->out->conv_before;
    io->conv_without = r->out->conv_after;
    io->bound_without = least_of(r);
    if (!any) return RL_OK;
    RL_TRY(solve(r, io));
    for (uint32_t k = 0; k < r->plan->op.n; k++) {
        const rl_oplegal *op = &r->plan->op.p[k];
        if (op->node.i != RL_NONE || op->fixed) continue;
        rl_value v = op->operand[0].tensor;
        for (uint32_t i = 0; i < io->port.n; i++) {
            rl_port *x = &io->port.p[i];
            if (x->free && rl_same(find_value(r->g, x), v)) read_choice(r->plan, op, x);
        }
    }
    return RL_OK;
}

rl_status rl_interface_choose(rl_graph *g, const rl_passopt *o, rl_interface *io) {
    rl_outcome out;
    return rl_run_job(g, o, &out, choose, io);
}

/* ---- what became of it ---- */

uint32_t rl_interface_changed(const rl_interface *io) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < io->port.n; i++) n += io->port.p[i].changed;
    return n;
}

uint32_t rl_interface_handed(const rl_interface *io) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < io->port.n; i++) n += io->port.p[i].moves;
    return n;
}

rl_str rl_port_order(rl_ctx *ctx, const rl_port *port) {
    char s[RL_PORTRANK];
    for (uint32_t i = 0; i < port->rank; i++) s[i] = (char)('a' + port->perm[i]);
    return rl_intern(ctx, s, port->rank);
}
