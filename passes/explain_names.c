/* Nodes and tensors in the words of the model as read.
 *
 * The plan is of the flat graph (flat.h), where a body's tensor may have got another name than its own, and an If, Loop or
 * Scan is two nodes.  Here each is told by its own name and the body that it stands in:
 *   Leave(c, v, w)   ->   `z` = If, whose then_branch ends in `v` of that body */
#include "explain.h"
#include "flat.h"

#include <string.h>

static const char *first_output(const rl_graph *g, const rl_nodeinfo *n) {
    for (uint32_t i = 0; i < n->nout; i++)
        if (rl_has(n->out[i])) return rl_val(g, n->out[i])->name;
    return NULL;
}

static const char *name_of(const rl_nodeinfo *n) { return n->name && *n->name ? n->name : NULL; }

rl_exnode rl_exnode_in(const rl_graph *g, const rl_nodeinfo *n, const rl_exbody *body) {
    return (rl_exnode){name_of(n), n->type, first_output(g, n), body};
}

static const rl_exbody *body_of(const rl_explainer *x, uint32_t region);

/* The If, Loop or Scan itself, in the graph that it stands in. */
static rl_exnode control_of(const rl_explainer *x, uint32_t control) {
    const rl_control *c = &x->g->flat->control.p[control];
    const rl_graph *g = x->g->flat->region.p[c->region].g;
    return rl_exnode_in(g, rl_nod(g, c->node), body_of(x, c->region));
}

static const rl_exbody *body_of(const rl_explainer *x, uint32_t region) {
    if (region == 0 || x->body[region]) return x->body[region];
    uint32_t control = x->g->flat->region.p[region].control; /* NOLINT(clang-analyzer-core.NullDereference): regions but 0 are in flat */
    const rl_control *c = &x->g->flat->control.p[control];
    rl_exbody *b = rl_new(x->mem, rl_exbody, 1);
    b->part = c->op != RL_OP_If ? "body" : region == c->body ? "then_branch" : "else_branch";
    b->of = control_of(x, control);
    return x->body[region] = b;
}

bool rl_exnode_is_end(const rl_explainer *x, rl_node n) {
    rl_op op = rl_nod(x->g, n)->op;
    return op == RL_OP_ENTER || op == RL_OP_LEAVE;
}

static uint32_t control_at(const rl_explainer *x, rl_node n) { return x->g->flat->place.p[rl_nod(x->g, n)->origin].control; }

rl_exnode rl_exnode_of(const rl_explainer *x, rl_node n) {
    const rl_nodeinfo *k = rl_nod(x->g, n);
    rl_exnode r = {name_of(k), k->origin < x->ntype ? x->type[k->origin] : k->type, NULL, body_of(x, rl_flat_region(x->g, k->origin))};
    if (rl_exnode_is_end(x, n)) return control_of(x, control_at(x, n));
    for (uint32_t i = 0; i < k->nout && !r.output; i++)
        if (rl_has(k->out[i])) r.output = rl_extensor_of(x, k->out[i]).name;
    return r;
}

rl_extensor rl_extensor_of(const rl_explainer *x, rl_value v) {
    const rl_flat *f = x->g->flat;
    const char *name = rl_val(x->g, v)->name;
    uint32_t region = rl_flat_value_region(x->g, v);
    if (f && v.i < f->nval && rl_has(f->home[v.i].v)) {
        region = f->home[v.i].region;
        name = rl_val(f->region.p[region].g, f->home[v.i].v)->name;
    }
    return (rl_extensor){name ? name : "?", body_of(x, region)};
}

static bool same_word(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

bool rl_exnode_same(const rl_exnode *a, const rl_exnode *b) {
    return a->body == b->body && same_word(a->name, b->name) && same_word(a->op, b->op) && same_word(a->output, b->output);
}

bool rl_extensor_same(const rl_extensor *a, const rl_extensor *b) { return a->body == b->body && strcmp(a->name, b->name) == 0; }

uint32_t rl_exnode_ops(const rl_explainer *x, rl_node n) {
    if (rl_nod(x->g, n)->op == RL_OP_ENTER) n = x->g->flat->control.p[control_at(x, n)].leave;
    return x->p->opof[n.i];
}
