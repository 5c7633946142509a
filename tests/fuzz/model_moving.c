/* Recipes (model.h) of ops that move, cut and repeat. */
#include <string.h>

#include "model.h"
#include "model_args.h"

void model_op_transpose(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 0, MODEL_RANK, 0);
    if (!rl_has(x)) return;
    int64_t perm[MODEL_RANK];
    uint32_t n = model_val(m, x)->rank;
    for (uint32_t i = 0; i < n; i++) perm[i] = i;
    for (uint32_t i = 0; i + 1 < n; i++) {
        uint32_t k = i + model_pick(m, n - i);
        int64_t was = perm[i];
        perm[i] = perm[k];
        perm[k] = was;
    }
    if (n && model_pick(m, 8)) model_list(m, "perm", n, perm);
    model_add(m, r, &x, 1, 1);
}

typedef struct { int64_t dim[2 * MODEL_RANK]; uint32_t n; bool open; } shape; /* -1: whatever is left, once */

static void shape_remove(shape *s, uint32_t i) {
    memmove(&s->dim[i], &s->dim[i + 1], (--s->n - i) * sizeof *s->dim);
}

static void shape_insert(shape *s, uint32_t i, int64_t d) {
    memmove(&s->dim[i + 1], &s->dim[i], (s->n++ - i) * sizeof *s->dim);
    s->dim[i] = d;
}

/* Two neighbours become one, one becomes two, or a 1 comes or goes. */
static void edit_shape(model *m, shape *s) {
    uint32_t i = model_pick(m, s->n), way = model_pick(m, 4);
    int64_t d = s->n ? s->dim[i] : 0;
    if (way == 0 && i + 1 < s->n && d > 0 && s->dim[i + 1] > 0) {
        s->dim[i] *= s->dim[i + 1];
        shape_remove(s, i + 1);
    } else if (way == 1 && d > 1) {
        int64_t by = d % 2 == 0 ? 2 : d % 3 == 0 ? 3 : d;
        s->dim[i] = model_flip(m) ? by : d / by;
        shape_insert(s, i + 1, d / s->dim[i]);
    } else if (way == 2 && d == 1) {
        shape_remove(s, i);
    } else if (way == 3 || !s->n) {
        shape_insert(s, i, 1);
    }
}

void model_op_reshape(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 0, MODEL_RANK, 0);
    if (!rl_has(x)) return;
    shape s = {.n = model_val(m, x)->rank};
    uint32_t nopen = 0, first = 0;
    for (uint32_t i = 0; i < s.n; i++) {
        bool known = model_known(m, x, i);
        if (!known && nopen++ == 0) first = i;
        s.dim[i] = known ? model_dim(m, x, i) : nopen == 1 ? -1 : 0;
    }
    if (nopen > 1) { /* dims that are copied stay in their places: one edit behind them all */
        s.dim[first] = 0;
        if (s.dim[s.n - 1] > 1) shape_insert(&s, s.n - 1, 1);
    } else {
        for (uint32_t k = 1 + model_pick(m, 3); k > 0; k--) edit_shape(m, &s);
        uint32_t i = model_pick(m, s.n + 1);
        if (!nopen && i < s.n) s.dim[i] = -1;
    }
    model_add(m, r, (rl_value[]){x, model_ints(m, s.n, s.dim)}, 2, 1);
}

void model_op_flatten(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 1, MODEL_RANK, 0);
    if (!rl_has(x)) return;
    uint32_t n = model_val(m, x)->rank, axis = model_pick(m, n + 1);
    model_int(m, "axis", axis < n ? model_signed(m, axis, n) : n);
    model_add(m, r, &x, 1, 1);
}

/* Axes as an attribute, from opset 13 on as input 1. */
static void add_axes(model *m, const model_row *r, rl_value x, uint32_t n, const int64_t *axes) {
    rl_value in[2] = {x, RL_NOVALUE};
    if (m->opset >= 13) in[1] = model_ints(m, n, axes);
    else model_list(m, "axes", n, axes);
    model_add(m, r, in, 2, 1);
}

void model_op_squeeze(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 1, MODEL_RANK, 0);
    int64_t axes[MODEL_RANK];
    uint32_t n = 0;
    if (!rl_has(x)) return;
    for (uint32_t i = 0; i < model_val(m, x)->rank; i++)
        if (model_dim(m, x, i) == 1 && model_pick(m, 3)) axes[n++] = model_signed(m, i, model_val(m, x)->rank);
    if (n) add_axes(m, r, x, n, axes);
}

void model_op_unsqueeze(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 0, MODEL_RANK - 2, 0);
    if (!rl_has(x)) return;
    uint32_t rank = model_val(m, x)->rank, n = 1 + model_pick(m, 2), a = model_pick(m, rank + 1);
    int64_t axes[2] = {a, a + 1 + model_pick(m, rank + 1 - a)};
    if (n == 1) axes[0] = model_signed(m, a, rank + 1);
    add_axes(m, r, x, n, axes);
}

void model_op_expand(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 0, MODEL_RANK - 1, 0);
    if (!rl_has(x)) return;
    int64_t to[MODEL_RANK + 1];
    uint32_t more = model_pick(m, 2), n = more;
    if (more) to[0] = 1 + model_pick(m, 3);
    for (uint32_t i = 0; i < model_val(m, x)->rank; i++) to[n++] = model_dim(m, x, i) == 1 ? 1 + model_pick(m, 4) : 1;
    model_add(m, r, (rl_value[]){x, model_ints(m, n, to)}, 2, 1);
}

void model_op_tile(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 1, MODEL_RANK, 0);
    if (!rl_has(x)) return;
    int64_t times[MODEL_RANK];
    uint32_t n = model_val(m, x)->rank, at = model_pick(m, n);
    for (uint32_t i = 0; i < n; i++) times[i] = i == at ? 1 + model_pick(m, 3) : 1;
    model_add(m, r, (rl_value[]){x, model_ints(m, n, times)}, 2, 1);
}

void model_op_slice(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 1, MODEL_RANK, 0);
    if (!rl_has(x)) return;
    uint32_t rank = model_val(m, x)->rank, axis = model_pick(m, rank);
    int64_t d = model_known(m, x, axis) ? model_dim(m, x, axis) : 1, from = model_pick(m, (uint32_t)d), step = 1;
    int64_t to = model_flip(m) ? INT64_MAX : from + 1 + model_pick(m, (uint32_t)(d - from)), at = model_signed(m, axis, rank);
    if (m->opset >= 10 && model_pick(m, 4) == 0) step = 2;
    if (m->opset >= 10 && model_pick(m, 8) == 0) from = -1, to = INT64_MIN + 1, step = -1;
    if (m->opset < 10) {
        model_list(m, "axes", 1, &at);
        model_list(m, "starts", 1, &from);
        model_list(m, "ends", 1, &to);
        model_add(m, r, &x, 1, 1);
        return;
    }
    rl_value starts = model_ints(m, 1, &from), ends = model_ints(m, 1, &to), axes = model_ints(m, 1, &at);
    model_add(m, r, (rl_value[]){x, starts, ends, axes, step == 1 ? RL_NOVALUE : model_ints(m, 1, &step)}, 5, 1);
}

void model_op_pad(model *m, const model_row *r) {
    static const char *const modes[] = {"constant", "constant", "edge", "reflect"};
    rl_value x = model_take(m, r->types & ~(1u << RL_STRING), 1, MODEL_RANK, 0), in[4] = {x, RL_NOVALUE, RL_NOVALUE, RL_NOVALUE};
    int64_t pads[2 * MODEL_RANK] = {0};
    uint32_t n = model_val(m, x)->rank, at = model_pick(m, n), mode = model_pick(m, RL_LEN(modes));
    int64_t d = model_known(m, x, at) ? model_dim(m, x, at) : 1;
    bool room = mode < 3 || d > 2, cut = mode < 2 && d > 2 && model_flip(m);
    pads[at] = model_pick(m, room ? 3 : 1);
    pads[n + at] = cut ? -1 : (int64_t)model_pick(m, room ? 2 : 1);
    if (mode) model_string(m, "mode", modes[mode]);
    if (m->opset < 11) {
        model_list(m, "pads", 2 * n, pads);
        if (model_flip(m)) model_float(m, "value", 1);
    } else if (m->opset >= 18 && model_flip(m)) {
        in[1] = model_ints(m, 2, (int64_t[]){pads[at], pads[n + at]});
        in[3] = model_ints(m, 1, (int64_t[]){model_signed(m, at, n)});
    } else {
        in[1] = model_ints(m, 2 * n, pads);
        if (model_flip(m)) in[2] = model_scalar(m, model_val(m, x)->dtype, 1);
    }
    model_add(m, r, in, 4, 1);
}

void model_op_concat(model *m, const model_row *r) {
    rl_value in[3] = {model_take(m, r->types, 1, MODEL_RANK, 0)};
    if (!rl_has(in[0])) return;
    uint32_t n = 1 + model_pick(m, 3), rank = model_val(m, in[0])->rank, axis = model_pick(m, rank);
    for (uint32_t i = 1; i < n; i++) {
        int64_t dim[MODEL_RANK];
        bool made = model_known_from(m, in[0], 0) && model_val(m, in[0])->dtype != RL_STRING && model_flip(m);
        for (uint32_t k = 0; made && k < rank; k++) dim[k] = k == axis ? 1 + model_pick(m, 3) : model_dim(m, in[0], k);
        in[i] = made ? model_const(m, model_val(m, in[0])->dtype, rank, dim, -4, 4) : model_same(m, in[0]);
    }
    model_int(m, "axis", model_signed(m, axis, rank));
    model_add(m, r, in, n, 1);
}

void model_op_split(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 1, MODEL_RANK, 0), in[2] = {x, RL_NOVALUE};
    if (!rl_has(x)) return;
    uint32_t rank = model_val(m, x)->rank, axis = model_pick(m, rank), n = 2 + model_pick(m, 2);
    int64_t d = model_dim(m, x, axis), part[3] = {1, 1, 1};
    if (d < n) return; /* unknown, too */
    part[model_pick(m, n)] += d - n;
    bool equal = d % n == 0 && model_flip(m);
    model_int(m, "axis", model_signed(m, axis, rank));
    if (equal && m->opset >= 18) model_int(m, "num_outputs", n);
    if (!equal && m->opset < 13) model_list(m, "split", n, part);
    if (!equal && m->opset >= 13) in[1] = model_ints(m, n, part);
    model_add(m, r, in, 2, n);
}

void model_op_gather(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 1, MODEL_RANK, 0);
    if (!rl_has(x)) return;
    uint32_t axis = model_axis(m, x), rank = model_pick(m, 3);
    int64_t dim[2] = {1 + model_pick(m, 4), 1 + model_pick(m, 3)};
    int d = model_known(m, x, axis) ? (int)model_dim(m, x, axis) : 1;
    rl_value at = model_const(m, model_flip(m) ? RL_I32 : RL_I64, rank, dim, m->opset >= 11 ? -d : 0, d - 1);
    model_int(m, "axis", model_signed(m, axis, model_val(m, x)->rank));
    model_add(m, r, (rl_value[]){x, at}, 2, 1);
}

/* One of rank 4 whose dims `at` and, if that is not the same, `at2`, are multiples of k. */
static rl_value take_multiple(model *m, const model_row *r, uint32_t at, uint32_t at2, int64_t k) {
    rl_value x = model_take(m, r->types & ~(1u << RL_STRING), 4, 4, 0);
    if (model_dim(m, x, at) > 0 && model_dim(m, x, at2) > 0 && model_dim(m, x, at) % k == 0 && model_dim(m, x, at2) % k == 0) return x;
    rl_dim dim[4] = {1, 2, 2, 3};
    dim[at] = k * (1 + model_pick(m, 2));
    dim[at2] = k;
    return model_source(m, model_dtype(m, r->types & ~(1u << RL_STRING)), 4, dim);
}

void model_op_depth_to_space(model *m, const model_row *r) {
    rl_value x = take_multiple(m, r, 1, 1, 4);
    model_int(m, "blocksize", 2);
    if (m->opset >= 11 && model_flip(m)) model_string(m, "mode", "CRD");
    model_add(m, r, &x, 1, 1);
}

void model_op_space_to_depth(model *m, const model_row *r) {
    rl_value x = take_multiple(m, r, 2, 3, 2);
    model_int(m, "blocksize", 2);
    if (m->opset >= 28 && model_flip(m)) model_string(m, "mode", "CRD");
    model_add(m, r, &x, 1, 1);
}

void model_op_resize(model *m, const model_row *r) {
    static const char *const at[] = {"half_pixel", "asymmetric", "align_corners"};
    static const double factors[] = {1, 2, 0.5, 3};
    rl_value x = model_take(m, r->types & ~(1u << RL_STRING | 1u << RL_BOOL), 1, 5, 0), in[4] = {x, RL_NOVALUE, RL_NOVALUE, RL_NOVALUE};
    double scale[MODEL_RANK];
    float narrow[MODEL_RANK];
    int64_t size[MODEL_RANK], n = model_val(m, x)->rank, none = 0;
    rl_dtype t = model_val(m, x)->dtype;
    uint32_t first = model_pick(m, (uint32_t)n), way = r->op == RL_OP_Upsample ? 0 : model_pick(m, 2);
    for (uint32_t i = 0; i < n; i++) {
        int64_t d = model_dim(m, x, i);
        scale[i] = i < first || d < 0 ? 1 : factors[model_pick(m, r->op == RL_OP_Upsample || d % 2 ? 2 : 4)];
        narrow[i] = (float)scale[i];
        size[i] = (int64_t)((double)d * scale[i]);
    }
    bool linear = (t == RL_F32 || t == RL_F16) && model_flip(m);
    if (linear) model_string(m, "mode", "linear");
    if (m->opset >= 11 && model_flip(m)) model_string(m, "coordinate_transformation_mode", at[model_pick(m, RL_LEN(at))]);
    if (m->opset < 9) {
        rl_attr *a = &m->attr[m->nattr++];
        *a = (rl_attr){.name = rl_internz(m->ctx, "scales"), .kind = RL_ATTR_FLOATS, .n = (uint32_t)n,
                       .floats = rl_copy(&m->ctx->mem, narrow, (size_t)n * sizeof *narrow)};
        model_add(m, r, in, 1, 1);
    } else if (m->opset < 11) {
        in[1] = model_filled(m, RL_F32, 1, &n, scale);
        model_add(m, r, in, 2, 1);
    } else {
        bool sizes = way && model_known_from(m, x, 0);
        if (m->opset < 13) in[1] = model_filled(m, RL_F32, 1, &none, NULL);
        if (sizes) in[3] = model_ints(m, (uint32_t)n, size);
        if (!sizes) in[2] = model_filled(m, RL_F32, 1, &n, scale);
        else if (m->opset < 13) in[2] = model_filled(m, RL_F32, 1, &none, NULL);
        model_add(m, r, in, 4, 1);
    }
}
