/* Recipes (model.h) of nodes with bodies, of sequences and of optionals.  A body's nodes are the records that follow, and what they
 * read comes from the body or from any graph around it. */
#include "model.h"
#include "model_args.h"

enum { SCALAR = 1u << RL_BOOL, BODY_NODES = 4 };
static const uint32_t numbers = 1u << RL_F32 | 1u << RL_F16 | 1u << RL_F64 | 1u << RL_I64 | 1u << RL_I32 | 1u << RL_I8 | 1u << RL_U8 |
                                1u << RL_BOOL;

static rl_graph *open_body(model *m) {
    rl_graph *b = rl_graph_new(m->ctx);
    b->parent = m->g;
    b->name = model_name(m);
    m->g = b;
    return b;
}

static rl_graph *close_body(model *m) {
    rl_graph *b = m->g;
    m->g = b->parent;
    return b;
}

static rl_value body_input(model *m, rl_dtype t, uint32_t rank, const rl_dim *dim) {
    rl_value v = rl_graph_value(m->g, model_name(m));
    rl_graph_set_type(m->g, v, t, rank, dim);
    model_val(m, v)->is_input = true;
    rl_push(&m->g->mem, m->g->input, v);
    return v;
}

static void body_output(model *m, rl_value v) {
    model_val(m, v)->is_output = true;
    rl_push(&m->g->mem, m->g->output, v);
}

/* A copy of v that the body makes itself: an input or what it captures is no output everywhere. */
static rl_value own(model *m, rl_value v) {
    bool made = model_val(m, v)->def.i != RL_NONE && !model_val(m, v)->is_output;
    return made ? v : model_add_op(m, RL_OP_Identity, &v, 1, 1);
}

/* The body's last value of such a type, its own. */
static rl_value last_made(model *m, uint32_t types, uint32_t least, uint32_t most, int flags) {
    for (uint32_t i = m->g->nval; i-- > 0;)
        if (model_fits(m, (rl_value){i}, types, least, most, flags | MODEL_MADE) && !m->g->val[i].is_output) return (rl_value){i};
    return own(m, model_take(m, types, least, most, flags));
}

static uint32_t body_length(model *m) {
    return model_pick(m, BODY_NODES + 1);
}

/* Output i of a branch; like: the same output of the other one, of whose type (before opset 11 also dims) it must be. */
static rl_value branch_output(model *m, const rl_valinfo *like) {
    bool alike = m->opset < 11;
    if (!like) return last_made(m, numbers, 0, 4, alike ? MODEL_SIZED : 0);
    rl_value v = alike ? RL_NOVALUE : last_made(m, 1u << like->dtype, like->rank, like->rank, 0);
    if (rl_has(v)) return v;
    int64_t dim[MODEL_RANK];
    for (uint32_t i = 0; i < like->rank; i++) dim[i] = rl_dim_known(like->dim[i]) ? like->dim[i] : 1;
    v = model_const(m, like->dtype, like->rank, dim, -4, 4);
    rl_value same = model_same(m, v);
    return own(m, same);
}

void model_op_if(model *m, const model_row *r) {
    (void)r->types;
    rl_value c = model_take(m, SCALAR, 0, 0, 0);
    m->constant |= model_val(m, c)->data || model_val(m, c)->elem;
    uint32_t length[2], nout = 1 + model_pick(m, 2);
    rl_graph *body[2];
    for (uint32_t k = 0; k < 2; k++) length[k] = body_length(m);
    for (uint32_t k = 0; k < 2; k++) {
        body[k] = open_body(m);
        model_body_nodes(m, length[k]);
        for (uint32_t i = 0; i < nout; i++) body_output(m, branch_output(m, k ? rl_val(body[0], body[0]->output.p[i]) : NULL));
        close_body(m);
    }
    model_body(m, "then_branch", body[0]);
    model_body(m, "else_branch", body[1]);
    model_add(m, r, &c, 1, nout);
}

void model_op_loop(model *m, const model_row *r) {
    rl_value in[4], carried[2];
    uint32_t ncarried = m->opset < 13 ? 1 + model_pick(m, 2) : model_pick(m, 3);
    uint32_t nscan = ncarried ? model_pick(m, 2) : 1, length = body_length(m);
    in[0] = model_scalar(m, RL_I64, model_pick(m, 4));
    in[1] = model_flip(m) ? model_scalar(m, RL_BOOL, 1) : RL_NOVALUE;
    for (uint32_t i = 0; i < ncarried; i++) in[2 + i] = model_take(m, numbers, 0, 4, 0);
    rl_graph *outer = m->g, *body = open_body(m);
    body_input(m, RL_I64, 0, NULL);
    rl_value go = body_input(m, RL_BOOL, 0, NULL);
    for (uint32_t i = 0; i < ncarried; i++) {
        const rl_valinfo *x = rl_val(outer, in[2 + i]);
        carried[i] = body_input(m, x->dtype, x->rank, x->dim);
    }
    model_body_nodes(m, length);
    body_output(m, model_add_op(m, RL_OP_Identity, &go, 1, 1));
    for (uint32_t i = 0; i < ncarried; i++) {
        rl_value v = model_same(m, carried[i]);
        body_output(m, own(m, v));
    }
    for (uint32_t i = 0; i < nscan; i++) body_output(m, last_made(m, numbers, 0, 3, MODEL_SIZED));
    close_body(m);
    model_body(m, "body", body);
    model_add(m, r, in, 2 + ncarried, ncarried + nscan);
}

void model_op_scan(model *m, const model_row *r) {
    rl_value in[2], state = RL_NOVALUE;
    uint32_t nstate = model_pick(m, 2), length = body_length(m), k = 0;
    if (nstate) in[k++] = model_take(m, numbers, 0, 4, 0);
    in[k] = model_take(m, numbers, 1, 4, MODEL_SIZED);
    const rl_valinfo x = *model_val(m, in[k]);
    uint32_t axis = model_pick(m, x.rank);
    rl_dim dim[MODEL_RANK];
    for (uint32_t i = 0, n = 0; i < x.rank; i++)
        if (i != axis) dim[n++] = x.dim[i];
    rl_graph *outer = m->g, *body = open_body(m);
    if (nstate) state = body_input(m, rl_val(outer, in[0])->dtype, rl_val(outer, in[0])->rank, rl_val(outer, in[0])->dim);
    body_input(m, x.dtype, x.rank - 1, dim);
    model_body_nodes(m, length);
    if (nstate) {
        rl_value v = model_same(m, state);
        body_output(m, own(m, v));
    }
    body_output(m, last_made(m, numbers, 0, 3, MODEL_SIZED));
    close_body(m);
    model_int(m, "num_scan_inputs", 1);
    if (axis || model_flip(m)) model_list(m, "scan_input_axes", 1, (int64_t[]){axis});
    model_body(m, "body", body);
    model_add(m, r, in, k + 1, nstate + 1);
}

/* ---- sequences ---- */

static rl_value a_sequence(model *m, rl_value x) {
    rl_value y = model_same(m, x);
    return model_add_op(m, RL_OP_SequenceConstruct, (rl_value[]){x, y}, 2, 1);
}

void model_op_sequence(model *m, const model_row *r) {
    uint32_t types = numbers & ~(1u << RL_BOOL);
    rl_value x = model_take(m, types, r->op == RL_OP_SplitToSequence || r->op == RL_OP_ConcatFromSequence, 4, MODEL_SIZED), in[3];
    bool is_split = r->op == RL_OP_SplitToSequence;
    if (r->op == RL_OP_SequenceEmpty) model_int(m, "dtype", model_val(m, x)->dtype);
    rl_value s = r->op == RL_OP_SequenceEmpty ? model_add(m, r, NULL, 0, 1) : is_split ? model_add(m, r, &x, 1, 1) : a_sequence(m, x);
    if (!rl_has(s)) return;
    rl_value at = model_scalar(m, RL_I64, 0);
    in[0] = s, in[1] = at, in[2] = RL_NOVALUE;
    switch (r->op) {
    case RL_OP_SequenceEmpty:
    case RL_OP_SequenceInsert:
        in[1] = x;
        in[2] = model_flip(m) ? at : RL_NOVALUE;
        in[0] = model_add_op(m, RL_OP_SequenceInsert, in, 3, 1);
        in[1] = at;
        break;
    case RL_OP_SequenceErase: in[0] = model_add(m, r, in, 2, 1); break;
    case RL_OP_SequenceLength: model_add(m, r, in, 1, 1); return;
    case RL_OP_ConcatFromSequence:
        model_int(m, "axis", model_axis(m, x));
        if (model_flip(m)) model_int(m, "new_axis", 1);
        model_add(m, r, in, 1, 1);
        return;
    default: break;
    }
    model_add_op(m, RL_OP_SequenceAt, in, 2, 1);
}

void model_op_sequence_map(model *m, const model_row *r) {
    rl_value x = model_take(m, numbers, 1, 4, MODEL_SIZED), s = a_sequence(m, x);
    uint32_t length = body_length(m);
    rl_graph *outer = m->g, *body = open_body(m);
    rl_value in = body_input(m, rl_val(outer, x)->dtype, rl_val(outer, x)->rank, rl_val(outer, x)->dim);
    model_body_nodes(m, length);
    body_output(m, own(m, model_same(m, in)));
    close_body(m);
    model_body(m, "body", body);
    rl_value made = model_add(m, r, &s, 1, 1), at = model_scalar(m, RL_I64, 1);
    if (rl_has(made)) model_add_op(m, RL_OP_SequenceAt, (rl_value[]){made, at}, 2, 1);
}

void model_op_optional(model *m, const model_row *r) {
    rl_value x = model_take(m, numbers, 0, 4, 0), some = model_add_op(m, RL_OP_Optional, &x, 1, 1);
    if (rl_has(some)) model_add_op(m, r->op == RL_OP_OptionalHasElement ? RL_OP_OptionalHasElement : RL_OP_OptionalGetElement, &some, 1, 1);
}
