/* Ops about shapes and constants, and Cast: Shape Size Constant ConstantOfShape Range EyeLike Cast CastLike. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"
#include "../src/onnx_fields.h"
#include "../src/wire.h"
#include "kernels.h"
#include "stored.h"

rl_status rl_ref_shape(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    int64_t r = x->rank, start = rl_attr_int(c->node, "start", 0), end = rl_attr_int(c->node, "end", r);
    start = RL_MIN(RL_MAX(start < 0 ? start + r : start, 0), r);
    end = RL_MIN(RL_MAX(end < 0 ? end + r : end, 0), r);
    int64_t n = RL_MAX(end - start, 0);
    rl_tensor *y = rl_call_make(c, 0, RL_I64, 1, &n);
    if (n) memcpy(rl_data(y), x->dim + start, (size_t)n * sizeof *x->dim);
    return RL_OK;
}

rl_status rl_ref_size(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    *(int64_t *)rl_data(rl_call_make(c, 0, RL_I64, 0, NULL)) = rl_numel(rl_call_in(c, 0));
    return RL_OK;
}

/* ---- constants ---- */

static void put_strings(rl_call *c, const rl_attr *a) {
    bool one = a->kind == RL_ATTR_STRING;
    int64_t n = one ? 1 : a->n;
    rl_str *y = rl_data(rl_call_make(c, 0, RL_STRING, one ? 0 : 1, &n));
    for (int64_t i = 0; i < n; i++) {
        rl_span s = one ? a->s : a->strings[i];
        y[i] = rl_intern(c->g->ctx, (const char *)s.p, s.n);
    }
}

/* The type is that of the value, which the reader took from the attribute. */
static rl_status put_sparse(rl_call *c, const rl_attr *a) {
    const rl_valinfo *v = rl_val(c->g, c->node->out[0]);
    if (!rl_dtype_bits(v->dtype) || v->rank == RL_NORANK) return rl_call_fail(c, RL_ELIMIT, "a constant of this kind does not run");
    RL_TRY(rl_call_dims(c, v->rank, v->dim));
    rl_tensor *y = rl_call_make(c, 0, v->dtype, v->rank, v->dim);
    return rl_sparse_fill(c->rt, (rl_graph *)(uintptr_t)c->g, rl_wire_part(a->raw, ATTR_SPARSE), v->name ? v->name : "", y);
}

/* Most constants never get here (prepare.c): strings and sparse ones do, and those of opsets that the op table does not cover. */
rl_status rl_ref_constant(rl_call *c) {
    const rl_attr *a = c->node->nattr ? &c->node->attr[0] : NULL;
    if (a && (a->kind == RL_ATTR_STRING || a->kind == RL_ATTR_STRINGS)) {
        put_strings(c, a);
        return RL_OK;
    }
    if (a && strcmp(a->name, "sparse_value") == 0) return put_sparse(c, a);
    const rl_tensor *t;
    RL_TRY(rl_call_tensor(c, "value", &t));
    if (!t) return rl_call_fail(c, RL_ELIMIT, "a constant of this kind does not run");
    rl_call_share(c, 0, *t);
    return RL_OK;
}

rl_status rl_ref_constant_of_shape(rl_call *c) {
    const int64_t *dim;
    uint32_t n;
    const rl_attr *a = rl_attr_find(c->node, "value");
    float zero = 0;
    RL_TRY(rl_call_ints(c, NULL, 0, &dim, &n));
    RL_TRY(rl_call_dims(c, n, dim));
    if (a && (a->kind != RL_ATTR_TENSOR || !a->tensor->data)) return rl_call_fail(c, RL_ELIMIT, "a value of this kind does not run");
    rl_tensor *y = rl_call_make(c, 0, a ? a->tensor->dtype : RL_F32, n, dim);
    rl_fill(c->rt, y, a ? a->tensor->data : &zero);
    return RL_OK;
}

rl_status rl_ref_range(rl_call *c) {
    RL_TRY(rl_call_need(c, 3));
    rl_dtype t = rl_call_in(c, 0)->dtype;
    bool is_float = rl_is_float(t);
    rl_dtype w = is_float ? RL_F64 : RL_I64;
    double f[3] = {0};
    int64_t i[3] = {0};
    for (uint32_t k = 0; k < 3; k++) RL_TRY(is_float ? rl_call_float(c, k, 0, &f[k]) : rl_call_int(c, k, 0, &i[k]));
    if (is_float ? f[2] == 0 : i[2] == 0) return rl_call_fail(c, RL_EMODEL, "a step of 0");
    double count = is_float ? ceil((f[1] - f[0]) / f[2]) : ceil(((double)i[1] - (double)i[0]) / (double)i[2]);
    if (!(count < 1e15)) return rl_call_fail(c, RL_EMODEL, "%g elements", count);
    int64_t n = count > 0 ? (int64_t)count : 0;
    rl_tensor *wide = rl_call_temp(c, w, 1, &n), *y = rl_call_make(c, 0, t, 1, &n);
    for (int64_t k = 0; k < n; k++) {
        if (is_float) ((double *)rl_data(wide))[k] = f[0] + (double)k * f[2];
        else ((int64_t *)rl_data(wide))[k] = i[0] + k * i[2];
    }
    rl_convert(c->rt, y, wide, true);
    return RL_OK;
}

rl_status rl_ref_eye_like(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    rl_dtype t = rl_attr_dtype(c->node, "dtype", x->dtype);
    if (!rl_is_number(t)) return rl_call_fail(c, RL_EMODEL, "dtype is no type of numbers");
    int64_t k = rl_attr_int(c->node, "k", 0);
    uint64_t zero[2] = {0};
    double one = 1;
    if (x->rank != 2) return rl_call_fail(c, RL_EMODEL, "rank %u, wants 2", x->rank);
    rl_tensor *y = rl_call_make(c, 0, t, 2, x->dim);
    rl_fill(c->rt, y, zero);
    rl_tensor f = rl_tensor_borrow(c->rt, RL_F64, 0, NULL, &one, sizeof one);
    int64_t row = RL_MIN(RL_MAX(rl_mul(k, -1), 0), x->dim[0]), column = RL_MIN(RL_MAX(k, 0), x->dim[1]), n = RL_MIN(x->dim[0] - row, x->dim[1] - column);
    rl_tensor diagonal = {.kind = RL_TENSOR, .dtype = t, .mem = y->mem, .rank = 1, .dim = {n}, .stride = {y->stride[0] + y->stride[1]},
                          .offset = y->offset + row * y->stride[0] + column * y->stride[1]};
    rl_view_expand(&f, 1, &n, &f);
    rl_convert(c->rt, &diagonal, &f, true);
    rl_tensor_drop(&f);
    return RL_OK;
}

/* ---- Cast ---- */

static rl_status parse_strings(rl_call *c, const rl_tensor *x, rl_tensor *y) {
    int64_t n = rl_numel(x);
    rl_str *s = rl_data(x);
    bool is_float = rl_is_float(y->dtype);
    rl_tensor *wide = rl_call_temp(c, is_float ? RL_F64 : RL_I64, x->rank, x->dim);
    for (int64_t i = 0; i < n; i++) {
        char *end;
        if (is_float) ((double *)rl_data(wide))[i] = strtod(s[i], &end);
        else ((int64_t *)rl_data(wide))[i] = strtoll(s[i], &end, 10);
        if (end == s[i]) return rl_call_fail(c, RL_EMODEL, "'%.40s' is no number", s[i]);
    }
    rl_convert(c->rt, y, wide, true);
    return RL_OK;
}

/* The shortest text that reads as the same f32. */
static void print_float(char *s, size_t size, double x) {
    if (isnan(x) || isinf(x)) {
        snprintf(s, size, "%s", isnan(x) ? "NaN" : x > 0 ? "INF" : "-INF");
        return;
    }
    for (int digits = 1; digits < 18; digits++) {
        snprintf(s, size, "%.*g", digits, x);
        if ((float)strtod(s, NULL) == (float)x) break;
    }
    if (!strpbrk(s, ".e")) strncat(s, ".0", size - strlen(s) - 1);
}

static void print_numbers(rl_call *c, const rl_tensor *x, rl_tensor *y) {
    bool is_float = rl_is_float(x->dtype);
    rl_tensor *wide = rl_call_temp(c, is_float ? RL_F64 : RL_I64, x->rank, x->dim);
    rl_convert(c->rt, wide, x, true);
    for (int64_t i = 0; i < rl_numel(x); i++) {
        char s[64];
        if (is_float) print_float(s, sizeof s, ((const double *)rl_data(wide))[i]);
        else snprintf(s, sizeof s, "%lld", (long long)((const int64_t *)rl_data(wide))[i]);
        ((rl_str *)rl_data(y))[i] = rl_internz(c->g->ctx, s);
    }
}

static rl_status cast_to(rl_call *c, rl_dtype t) {
    const rl_tensor *x = rl_call_in(c, 0);
    bool saturate = rl_attr_int(c->node, "saturate", 1) != 0;
    if (x->dtype == t) {
        rl_call_share(c, 0, *x);
        return RL_OK;
    }
    if (t == RL_F8E8M0 && rl_attr_find(c->node, "round_mode") && !rl_attr_is(c->node, "round_mode", "up"))
        return rl_call_fail(c, RL_ELIMIT, "only round_mode 'up' runs");
    if ((!rl_is_number(t) && t != RL_STRING) || (!rl_is_number(x->dtype) && x->dtype != RL_STRING))
        return rl_call_fail(c, RL_ELIMIT, "no cast from %s to %s", rl_dtype_name(x->dtype), rl_dtype_name(t));
    rl_tensor *y = rl_call_make(c, 0, t, x->rank, x->dim);
    x = rl_call_dense(c, 0);
    if (x->dtype == RL_STRING) return parse_strings(c, x, y);
    if (t == RL_STRING) print_numbers(c, x, y);
    else rl_convert(c->rt, y, x, saturate);
    return RL_OK;
}

/* Before opset 6 the type is a name. */
static rl_dtype cast_type(const rl_call *c) {
    static const struct { const char *name; rl_dtype t; } old[] = {
        {"FLOAT", RL_F32}, {"DOUBLE", RL_F64}, {"FLOAT16", RL_F16}, {"INT32", RL_I32}, {"INT64", RL_I64}, {"BOOL", RL_BOOL},
        {"UINT8", RL_U8}, {"INT8", RL_I8}, {"INT16", RL_I16}, {"UINT16", RL_U16}, {"UINT32", RL_U32}, {"UINT64", RL_U64}};
    for (size_t i = 0; i < RL_LEN(old); i++)
        if (rl_attr_is(c->node, "to", old[i].name)) return old[i].t;
    return rl_attr_dtype(c->node, "to", RL_UNDEF);
}

rl_status rl_ref_cast(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    return cast_to(c, cast_type(c));
}

rl_status rl_ref_cast_like(rl_call *c) {
    RL_TRY(rl_call_need(c, 2));
    return cast_to(c, rl_call_in(c, 1)->dtype);
}
