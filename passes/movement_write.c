/* Writes the form that movement.c chose as ONNX nodes: see movement.h.
 *
 * Nodes and tensors get new names; y keeps its own.  Of what stood there before, only y's maker is gone; the rest is left for dce. */
#include "movement.h"

typedef struct { const rl_moved *v; uint32_t origin; } writer;

static rl_node add_node(const writer *w, rl_op op, const char *stem, uint32_t nin, const rl_value *in, rl_value out) {
    rl_graph *g = w->v->g;
    rl_node n = rl_graph_add(g, op, rl_graph_fresh_name(g, stem), nin, in, 1, &out);
    rl_nod(g, n)->origin = w->origin;
    return n;
}

static rl_value new_value(const writer *w, const rl_shape *s) {
    rl_graph *g = w->v->g;
    const rl_valinfo *y = rl_val(g, w->v->y);
    rl_dtype t = y->dtype;
    rl_value v = rl_graph_value(g, rl_graph_fresh_name(g, y->name ? y->name : "rl"));
    rl_graph_set_type(g, v, t, s->rank, s->dim);
    return v;
}

static rl_value ints(const writer *w, const char *stem, uint32_t n, const int64_t *x) {
    return rl_graph_const_i64(w->v->g, rl_graph_fresh_name(w->v->g, stem), n, x);
}

static void reshape(const writer *w, rl_value x, const rl_shape *from, const rl_shape *to, rl_value y) {
    int64_t t[RL_FORM_RANK] = {0};
    rl_form_reshape_target(from, to, t);
    rl_value in[] = {x, ints(w, "rl_sizes", to->rank, t)};
    add_node(w, RL_OP_Reshape, "rl_reshape", 2, in, y);
}

static void write_slice(const writer *w, const rl_form *f, rl_value x, rl_value y) {
    int64_t from[RL_FORM_RANK], to[RL_FORM_RANK], axis[RL_FORM_RANK], step[RL_FORM_RANK];
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->before.rank; i++) {
        if (f->step[i] == 1 && f->before.dim[i] == f->after.dim[i]) continue;
        from[n] = f->a[i];
        to[n] = f->b[i];
        axis[n] = i;
        step[n++] = f->step[i];
    }
    if (rl_opset_of(w->v->g, rl_internz(w->v->g->ctx, "")) >= 10) {
        rl_value in[] = {x, RL_NOVALUE, RL_NOVALUE, RL_NOVALUE, RL_NOVALUE};
        in[1] = ints(w, "rl_starts", n, from);
        in[2] = ints(w, "rl_ends", n, to);
        in[3] = ints(w, "rl_axes", n, axis);
        in[4] = ints(w, "rl_steps", n, step);
        add_node(w, RL_OP_Slice, "rl_slice", 5, in, y);
        return;
    }
    rl_node s = add_node(w, RL_OP_Slice, "rl_slice", 1, &x, y);
    rl_attr a[] = {rl_attr_of_ints(w->v->g, "axes", axis, n), rl_attr_of_ints(w->v->g, "ends", to, n),
                   rl_attr_of_ints(w->v->g, "starts", from, n)};
    rl_graph_set_attrs(w->v->g, s, a, 3);
}

static void write_resize(const writer *w, const rl_form *f, rl_value x, rl_value y) {
    rl_graph *g = w->v->g;
    bool roi = rl_opset_of(g, rl_internz(g->ctx, "")) < 13; /* may be left out from 13 on */
    float *scale = rl_new(&g->mem, float, f->before.rank);
    rl_dim n = f->before.rank, none = 0;
    for (uint32_t i = 0; i < f->before.rank; i++) scale[i] = (float)f->a[i];
    rl_value in[] = {x, RL_NOVALUE, RL_NOVALUE};
    if (roi) in[1] = rl_graph_const(g, rl_graph_fresh_name(g, "rl_roi"), RL_F32, 1, &none, scale, 0);
    in[2] = rl_graph_const(g, rl_graph_fresh_name(g, "rl_scales"), RL_F32, 1, &n, scale, (size_t)n * sizeof *scale);
    rl_attr a[] = {rl_attr_of_string(g, "coordinate_transformation_mode", "asymmetric", 10), rl_attr_of_string(g, "mode", "nearest", 7),
                   rl_attr_of_string(g, "nearest_mode", "floor", 5)};
    rl_graph_set_attrs(g, add_node(w, RL_OP_Resize, "rl_resize", 3, in, y), a, 3);
}

static void write_op(const writer *w, const rl_form *f, rl_value x, rl_value y) {
    rl_graph *g = w->v->g;
    rl_attr a[2];
    if (f->kind == RL_FORM_SLICE) {
        write_slice(w, f, x, y);
    } else if (f->kind == RL_FORM_RESIZE) {
        write_resize(w, f, x, y);
    } else if (f->kind == RL_FORM_GATHER) {
        rl_value at = rl_graph_const(g, rl_graph_fresh_name(g, "rl_index"), RL_I64, f->indexdim.rank, f->indexdim.dim,
                                     rl_copy(&g->mem, f->index, f->nindex * sizeof *f->index), f->nindex * sizeof *f->index);
        rl_value in[] = {x, at};
        a[0] = rl_attr_of_int(g, "axis", f->axis);
        rl_graph_set_attrs(g, add_node(w, RL_OP_Gather, "rl_gather", 2, in, y), a, 1);
    } else if (f->kind == RL_FORM_TRANSPOSE) {
        a[0] = rl_attr_of_ints(g, "perm", f->a, f->before.rank);
        rl_graph_set_attrs(g, add_node(w, RL_OP_Transpose, "rl_transpose", 1, &x, y), a, 1);
    } else {
        bool up = f->kind == RL_FORM_DEPTH_TO_SPACE;
        a[0] = rl_attr_of_int(g, "blocksize", f->a[0]);
        a[1] = (rl_attr){.name = rl_internz(g->ctx, "mode"), .kind = RL_ATTR_STRING, .s = {(const uint8_t *)"CRD", 3}};
        rl_node n = add_node(w, up ? RL_OP_DepthToSpace : RL_OP_SpaceToDepth, up ? "rl_depth_to_space" : "rl_space_to_depth", 1, &x, y);
        rl_graph_set_attrs(g, n, a, f->a[1] ? 2 : 1);
    }
}

/* What nothing moves: its readers read x.  A graph output, and what a body reads, keep their name: a Reshape or Identity makes it. */
static void write_nothing(const writer *w, const rl_shape *xs, const rl_shape *ys) {
    rl_graph *g = w->v->g;
    if (!rl_form_same_shape(xs, ys)) {
        reshape(w, w->v->x, xs, ys, w->v->y);
        return;
    }
    rl_graph_replace_uses(g, w->v->y, w->v->x);
    if (rl_form_keeps_name(g, w->v->y)) add_node(w, RL_OP_Identity, "rl_identity", 1, &w->v->x, w->v->y);
}

void rl_form_write(const rl_moved *v, const rl_form *f, uint32_t origin) {
    writer w = {v, origin};
    rl_shape xs, ys;
    rl_value x = v->x, y = v->y;
    if (!rl_form_shape_of(v->g, x, &xs) || !rl_form_shape_of(v->g, y, &ys)) return;
    if (f->kind == RL_FORM_NOTHING) {
        write_nothing(&w, &xs, &ys);
        return;
    }
    if (!rl_form_same_shape(&xs, &f->before)) {
        x = new_value(&w, &f->before);
        reshape(&w, v->x, &xs, &f->before, x);
    }
    if (!rl_form_same_shape(&f->after, &ys)) y = new_value(&w, &f->after);
    write_op(&w, f, x, y);
    if (!rl_same(y, v->y)) reshape(&w, y, &f->after, &ys, v->y);
}
