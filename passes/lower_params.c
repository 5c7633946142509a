/* The parameters of an op that is written in another order of its dims: axis, axes, pads, repeats, sizes.  One function per class
 * that has any. */
#include "lower_form.h"
#include <string.h>

static uint32_t axis_label(const rl_opwriter *w) {
    uint32_t l = 0;
    while (l < w->op->nlabel && w->op->label[l].role != RL_T_AXIS && w->op->label[l].role != RL_T_PIECES) l++;
    return l;
}

static void set_attr(rl_opwriter *w, rl_attr a) {
    for (uint32_t i = 0; i < w->attr.n; i++)
        if (w->attr.p[i].name == a.name) {
            w->attr.p[i] = a;
            return;
        }
    rl_push(&w->l->now, w->attr, a);
}

static void drop_attr(rl_opwriter *w, const char *name) {
    for (uint32_t i = 0; i < w->attr.n; i++)
        if (strcmp(w->attr.p[i].name, name) == 0) w->attr.p[i--] = w->attr.p[--w->attr.n];
}

static void set_int(rl_opwriter *w, const char *name, int64_t x) { set_attr(w, rl_attr_of_int(w->l->g, name, x)); }

static void set_input(rl_opwriter *w, uint32_t slot, rl_value v) {
    while (w->nin <= slot) w->in[w->nin++] = RL_NOVALUE;
    w->in[slot] = v;
    while (w->nin && !rl_has(w->in[w->nin - 1])) w->nin--;
}

static void set_ints(rl_opwriter *w, uint32_t slot, const char *name, const int64_t *x, uint32_t n) {
    if (slot == RL_NONE) set_attr(w, rl_attr_of_ints(w->l->g, name, x, n));
    else {
        drop_attr(w, name);
        set_input(w, slot, rl_lower_ints(w->l, name, n, x));
    }
}

static void param_axis(rl_opwriter *w) {
    uint32_t l = axis_label(w);
    if (l == w->op->nlabel) return; /* per tensor */
    uint32_t k = rl_opwriter_dim(w, l);
    if (w->n->op == RL_OP_CumSum || w->n->op == RL_OP_CumProd) {
        int64_t *x = rl_new(&w->l->g->mem, int64_t, 1);
        *x = k;
        rl_value v = rl_graph_const(w->l->g, rl_graph_fresh_name(w->l->g, "axis"), RL_I64, 0, NULL, x, sizeof *x);
        rl_val(w->l->g, v)->is_init = true;
        set_input(w, 1, v);
    } else set_int(w, "axis", k);
}

/* Computed axes: the new place of each, looked up by a small Gather. */
static void param_axes_mapped(rl_opwriter *w) {
    uint32_t slot = rl_op_axes_input(w->n);
    int64_t place[RL_MAXDIMS];
    for (uint32_t l = 0; l < w->op->nlabel; l++) place[l] = rl_opwriter_dim(w, l);
    rl_value in[2] = {rl_lower_ints(w->l, "rl_axes", w->op->nlabel, place), w->in[slot]};
    rl_value y = rl_graph_value(w->l->g, rl_graph_fresh_name(w->l->g, "rl_axes"));
    rl_graph_set_type(w->l->g, y, RL_I64, rl_val(w->l->g, w->in[slot])->rank, rl_val(w->l->g, w->in[slot])->dim);
    rl_lower_node(w->l, RL_OP_Gather, rl_graph_fresh_name(w->l->g, "rl_axes"), 2, in, 1, &y);
    set_input(w, slot, y);
}

static void param_reduce(rl_opwriter *w) {
    if (axis_label(w) < w->op->nlabel) {
        param_axes_mapped(w);
        return;
    }
    int64_t axes[RL_MAXDIMS];
    uint32_t n = 0;
    bool used[RL_MAXDIMS] = {false};
    for (uint32_t l = 0; l < w->op->nlabel; l++)
        if (w->op->label[l].role == RL_T_REDUCED) used[rl_opwriter_dim(w, l)] = true;
    for (uint32_t k = 0; k < w->ndim; k++) { /* a label's tokens may lie in several dims */
        for (uint32_t i = w->dim[k].from; i < w->dim[k].to; i++)
            if (rl_opwriter_label(w, i)->role == RL_T_REDUCED) used[k] = true;
        if (used[k]) axes[n++] = k;
    }
    rl_nodeinfo as = *w->n;
    as.op = w->write_as;
    uint32_t slot = rl_op_axes_input(&as);
    bool silent = slot == RL_NONE ? !rl_attr_find(w->n, "axes") : !rl_has(rl_in(w->n, slot));
    if (silent && n == w->ndim && w->write_as == w->n->op) return; /* all dims, as when they are left out */
    set_ints(w, slot, "axes", axes, n);
}

static void param_global_pool(rl_opwriter *w) {
    rl_op op = w->n->op;
    bool l2 = op == RL_OP_GlobalLpPool && rl_attr_int(w->n, "p", 2) == 2;
    w->write_as = op == RL_OP_GlobalAveragePool ? RL_OP_ReduceMean : op == RL_OP_GlobalMaxPool ? RL_OP_ReduceMax
                  : l2 ? RL_OP_ReduceL2 : RL_OP_ReduceL1;
    w->attr.n = 0;
    set_int(w, "keepdims", 1);
    param_reduce(w);
}

bool rl_opwriter_gives_sizes(const rl_opwriter *w) { return rl_attr_find(w->n, "split") || rl_has(rl_in(w->n, 1)); }

/* Sizes that are open cannot be written: then the parameter stays, as the axis is a dim of its own, or there is none and all
 * pieces are equal. */
static void param_split(rl_opwriter *w) {
    uint32_t k = rl_opwriter_dim(w, axis_label(w)), n = 0;
    int64_t size[256];
    param_axis(w);
    if (w->op->noperand - 1 > RL_LEN(size)) {
        w->l->failed = true;
        return;
    }
    for (uint32_t o = 1; o < w->op->noperand; o++, n++) {
        rl_dims d;
        rl_dim shape[RL_MAXDIMS];
        rl_opwriter_dims(w, o, &d);
        rl_lower_shape(w->l, w->op->operand[o].cls, rl_opwriter_order(w, o), &d, shape);
        size[n] = shape[k];
        if (!rl_dim_known(shape[k])) return;
    }
    drop_attr(w, "num_outputs");
    set_ints(w, w->n->since >= 13 ? 1 : RL_NONE, "split", size, n);
}

/* Of starts and ends those at these places; where all dims stay whole, of all of the first one: no runtime need take none (movement.c drops it). */
static void keep_runs(rl_opwriter *w, const uint32_t *from, uint32_t n) {
    static const char *const name[] = {"starts", "ends"};
    for (uint32_t k = 0; k < 2; k++) {
        const rl_attr *a = rl_attr_ints(w->n, name[k]);
        const int64_t *old = a ? a->ints : NULL;
        int64_t kept[RL_MAXDIMS];
        uint32_t count;
        if (!a) rl_const_ints(w->l->g, w->n->in[1 + k], &w->l->now, &old, &count);
        for (uint32_t i = 0; i < n; i++) kept[i] = old[from[i]];
        if (n == 0) kept[0] = k ? INT64_MAX : 0;
        set_ints(w, a ? RL_NONE : 1 + k, name[k], kept, RL_MAX(n, 1u));
    }
    set_input(w, 4, RL_NOVALUE); /* steps of 1 */
}

/* A dim that stays whole may have come apart: it is not named. */
static void param_slice(rl_opwriter *w) {
    const int64_t *old = NULL;
    int64_t axes[RL_MAXDIMS];
    uint32_t n = 0, from[RL_MAXDIMS];
    const rl_attr *a = rl_attr_ints(w->n, "axes"), *s = rl_attr_ints(w->n, "starts");
    if (a) old = a->ints, n = a->n;
    else if (rl_has(rl_in(w->n, 3))) rl_const_ints(w->l->g, w->n->in[3], &w->l->now, &old, &n);
    else n = s ? s->n : (uint32_t)rl_val(w->l->g, w->n->in[1])->dim[0];
    uint32_t listed = n;
    n = 0;
    for (uint32_t i = 0; i < listed; i++) {
        int64_t x = old ? old[i] : i;
        if (x < 0) x += rl_val(w->l->g, w->n->in[0])->rank;
        if (w->op->label[x].role == RL_T_AXIS) from[n] = i, axes[n++] = rl_opwriter_dim(w, (uint32_t)x);
    }
    if (n < listed) keep_runs(w, from, n);
    if (n == 0) axes[n++] = 0;
    if (s) set_ints(w, RL_NONE, "axes", axes, n);
    else { /* the type of axes is that of starts */
        rl_dtype t = rl_val(w->l->g, w->in[1])->dtype;
        if (t == RL_I64) set_ints(w, 3, "axes", axes, n);
        else {
            int32_t *x = rl_new(&w->l->g->mem, int32_t, n + 1);
            for (uint32_t i = 0; i < n; i++) x[i] = (int32_t)axes[i];
            rl_value v = rl_graph_const(w->l->g, rl_graph_fresh_name(w->l->g, "axes"), RL_I32, 1, rl_copy(&w->l->g->mem, (int64_t[]){n}, 8), x, n * 4);
            rl_val(w->l->g, v)->is_init = true;
            set_input(w, 3, v);
        }
    }
}

static void param_pad(rl_opwriter *w) {
    const int64_t *old, *axes = NULL;
    int64_t pads[2 * RL_MAXDIMS] = {0};
    uint32_t nold, naxes;
    const rl_attr *a = rl_attr_ints(w->n, "pads");
    if (a) old = a->ints, nold = a->n;
    else rl_const_ints(w->l->g, w->n->in[1], &w->l->now, &old, &nold);
    if (rl_has(rl_in(w->n, 3))) rl_const_ints(w->l->g, w->n->in[3], &w->l->now, &axes, &naxes);
    for (uint32_t i = 0; i < nold / 2; i++) {
        if (old[i] == 0 && old[i + nold / 2] == 0) continue;
        int64_t x = axes ? axes[i] : i;
        if (x < 0) x += rl_val(w->l->g, w->n->in[0])->rank;
        uint32_t k = rl_opwriter_dim(w, (uint32_t)x);
        pads[k] = old[i];
        pads[k + w->ndim] = old[i + nold / 2];
    }
    set_ints(w, a ? RL_NONE : 1, "pads", pads, 2 * w->ndim);
    if (axes) set_input(w, 3, RL_NOVALUE);
}

static void param_tile(rl_opwriter *w) {
    const int64_t *old;
    int64_t rep[RL_MAXDIMS];
    uint32_t n;
    rl_const_ints(w->l->g, w->n->in[1], &w->l->now, &old, &n);
    for (uint32_t k = 0; k < w->ndim; k++) rep[k] = 1;
    for (uint32_t i = 0; i < n; i++)
        if (old[i] != 1) rep[rl_opwriter_dim(w, i)] = old[i];
    set_ints(w, 1, "repeats", rep, w->ndim);
}

static void param_expand(rl_opwriter *w) {
    rl_dims y, x;
    rl_dim to[RL_MAXDIMS];
    rl_value shape;
    bool open = false;
    rl_opwriter_dims(w, 0, &y);
    rl_opwriter_dims(w, 1, &x);
    rl_lower_shape(w->l, w->op->operand[0].cls, rl_opwriter_order(w, 0), &y, to);
    for (uint32_t k = 0; k < y.ndim; k++) {
        if (x.count[k] == y.count[k]) to[k] = 1;
        open |= !rl_dim_known(to[k]);
    }
    if (!open) shape = rl_lower_ints(w->l, "shape", y.ndim, to);
    else if (!rl_lower_sizes(w->l, to, y.ndim, &shape)) w->l->failed = true;
    if (!w->l->failed) set_input(w, 1, shape);
}

static void param_norm(rl_opwriter *w) {
    for (uint32_t k = 0; k < w->ndim; k++)
        if (w->dim[k].to > w->dim[k].from && rl_opwriter_label(w, w->dim[k].from)->group == 1) {
            set_int(w, "axis", k);
            return;
        }
    w->l->failed = true;
}

/* Factors, or sizes, for every new dim. */
static void param_resize(rl_opwriter *w) {
    rl_graph *g = w->l->g;
    const rl_attr *axes = rl_attr_ints(w->n, "axes");
    uint32_t rank = rl_val(g, w->n->in[0])->rank, n = 0, slot = rl_op_scales_slot(w->n);
    const char *s = rl_op_scales(g, w->n, &n);
    drop_attr(w, "axes");
    if (s) {
        float *f = rl_new(&g->mem, float, w->ndim);
        for (uint32_t k = 0; k < w->ndim; k++) f[k] = 1;
        for (uint32_t i = 0; i < n; i++) {
            float x;
            memcpy(&x, s + i * sizeof x, sizeof x);
            int64_t d = axes ? axes->ints[i] : i;
            if (x != 1.0f) f[rl_opwriter_dim(w, (uint32_t)(d < 0 ? d + rank : d))] = x;
        }
        if (slot == RL_NONE) {
            set_attr(w, (rl_attr){.name = rl_internz(g->ctx, "scales"), .kind = RL_ATTR_FLOATS, .n = w->ndim, .floats = f});
            return;
        }
        rl_value v = rl_graph_const(g, rl_graph_fresh_name(g, "scales"), RL_F32, 1, rl_copy(&g->mem, (int64_t[]){w->ndim}, 8), f,
                                    w->ndim * sizeof *f);
        rl_val(g, v)->is_init = true;
        set_input(w, slot, v);
        return;
    }
    rl_dims y;
    rl_dim shape[RL_MAXDIMS];
    rl_opwriter_dims(w, 1, &y);
    rl_lower_shape(w->l, w->op->operand[1].cls, rl_opwriter_order(w, 1), &y, shape);
    for (uint32_t k = 0; k < y.ndim; k++)
        if (!rl_dim_known(shape[k])) w->l->failed = true;
    set_input(w, 3, rl_lower_ints(w->l, "sizes", y.ndim, shape));
}

/* Numbers for each dim of a pool's window, n of them for all: those of the dims that it moves over, else what they are where it does not. */
static void window_numbers(rl_opwriter *w, const char *name, uint32_t each, int64_t otherwise) {
    const rl_attr *a = rl_attr_ints(w->n, name);
    int64_t x[2 * RL_MAXWINDOW];
    uint32_t n = w->ndim - 2;
    if (!a) return;
    for (uint32_t i = 0; i < each * n; i++) x[i] = otherwise;
    for (uint32_t l = 0; l < w->op->nlabel; l++)
        for (uint32_t k = 0; k < each && w->op->label[l].role == RL_T_AXIS; k++)
            x[k * n + rl_opwriter_dim(w, l) - 2] = a->ints[k * (a->n / each) + l - 2];
    set_ints(w, RL_NONE, name, x, each * n);
}

static void param_pool(rl_opwriter *w) {
    window_numbers(w, "kernel_shape", 1, 1);
    window_numbers(w, "strides", 1, 1);
    window_numbers(w, "dilations", 1, 1);
    window_numbers(w, "pads", 2, 0);
}

void rl_opwriter_parameters(rl_opwriter *w) {
    switch (w->cls) {
    case RL_REDUCE: param_reduce(w); break;
    case RL_GLOBALPOOL: param_global_pool(w); break;
    case RL_ARG: case RL_ALONG: case RL_CONCAT: case RL_GATHER: case RL_ELEMENTS: case RL_ONEHOT: case RL_QDQ: param_axis(w); break;
    case RL_SPLIT: param_split(w); break;
    case RL_SLICE: param_slice(w); break;
    case RL_PAD: param_pad(w); break;
    case RL_TILE: param_tile(w); break;
    case RL_EXPAND: param_expand(w); break;
    case RL_NORM: param_norm(w); break;
    case RL_RESIZE: param_resize(w); break;
    case RL_POOL: param_pool(w); break;
    default: break;
    }
}
