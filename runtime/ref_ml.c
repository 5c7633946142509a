/* ai.onnx.ml: LabelEncoder, ArrayFeatureExtractor, Binarizer. Trees: ref_tree.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "element.h"
#include "kernels.h"

/* ---- LabelEncoder ---- */

/* A list attribute as a tensor that lives until the node is done. */
static const rl_tensor *list_of(rl_call *c, const rl_attr *a) {
    int64_t n = a->n;
    if (a->kind == RL_ATTR_STRINGS) {
        rl_tensor *t = rl_call_temp(c, RL_STRING, 1, &n);
        for (int64_t i = 0; i < n; i++) ((rl_str *)rl_data(t))[i] = rl_intern(c->g->ctx, (const char *)a->strings[i].p, a->strings[i].n);
        return t;
    }
    bool is_float = a->kind == RL_ATTR_FLOATS;
    rl_tensor *t = rl_call_temp(c, is_float ? RL_F32 : RL_I64, 1, &n);
    if (n) memcpy(rl_data(t), is_float ? (const void *)a->floats : (const void *)a->ints, t->mem->nbyte);
    return t;
}

/* Of keys_floats, keys_int64s, keys_strings, keys_tensor the one that is there. */
static rl_status find_list(rl_call *c, const char *stem, const rl_tensor **out) {
    static const char *const ends[] = {"floats", "int64s", "strings"};
    char name[32];
    *out = NULL;
    for (uint32_t i = 0; i < RL_LEN(ends) && !*out; i++) {
        snprintf(name, sizeof name, "%s_%s", stem, ends[i]);
        const rl_attr *a = rl_attr_find(c->node, name);
        if (a && (a->kind == RL_ATTR_FLOATS || a->kind == RL_ATTR_INTS || a->kind == RL_ATTR_STRINGS)) *out = list_of(c, a);
    }
    snprintf(name, sizeof name, "%s_tensor", stem);
    if (!*out) RL_TRY(rl_call_tensor(c, name, out));
    return *out ? RL_OK : rl_call_fail(c, RL_EMODEL, "has no %s", stem);
}

static rl_status default_of(rl_call *c, rl_dtype t, const rl_tensor **out) {
    const rl_attr *s = rl_attr_find(c->node, "default_string");
    RL_TRY(rl_call_tensor(c, "default_tensor", out));
    if (*out && (*out)->dtype != t) return rl_call_fail(c, RL_EMODEL, "default_tensor is of another type");
    if (*out) return rl_numel(*out) == 1 ? RL_OK : rl_call_fail(c, RL_EMODEL, "default_tensor is not one element");
    rl_tensor *one = rl_call_temp(c, t, 0, NULL);
    *out = one;
    bool named = s && s->kind == RL_ATTR_STRING && s->s.n;
    if (t == RL_STRING) *(rl_str *)rl_data(one) = named ? rl_intern(c->g->ctx, (const char *)s->s.p, s->s.n) : rl_internz(c->g->ctx, s ? "" : "_Unused");
    else if (t == RL_I64) *(int64_t *)rl_data(one) = rl_attr_int(c->node, "default_int64", -1);
    else if (t == RL_F32) *(float *)rl_data(one) = rl_attr_float(c->node, "default_float", -0.0f);
    else return rl_call_fail(c, RL_EMODEL, "has no default_tensor");
    return RL_OK;
}

/* Elements as 64 bits that are equal where the elements are. */
static const uint64_t *as_keys(rl_call *c, const rl_tensor *t) {
    rl_dtype wide = t->dtype == RL_STRING || t->dtype == RL_U64 ? t->dtype : rl_is_float(t->dtype) ? RL_F64 : RL_I64;
    rl_tensor *w = rl_call_temp(c, wide, t->rank, t->dim);
    rl_convert(c->rt, w, t, true);
    double *f = rl_data(w);
    for (int64_t i = 0; wide == RL_F64 && i < rl_numel(w); i++) f[i] = isnan(f[i]) ? (double)NAN : f[i] == 0 ? 0 : f[i];
    return rl_data(w);
}

static rl_status encode(rl_call *c, const rl_tensor *key, const rl_tensor *value, const rl_tensor *other) {
    const rl_tensor *x = rl_call_in(c, 0);
    rl_hash place = {.mem = c->tmp};
    bool fits = key->dtype == RL_STRING ? x->dtype == RL_STRING : rl_is_float(key->dtype) == rl_is_float(x->dtype) && x->dtype != RL_STRING;
    if (!fits) return rl_call_fail(c, RL_EMODEL, "keys of type %s for %s", rl_dtype_name(key->dtype), rl_dtype_name(x->dtype));
    if (rl_numel(key) != rl_numel(value) || rl_numel(key) >= RL_NONE) return rl_call_fail(c, RL_EMODEL, "as many keys as values are wanted");
    const uint64_t *k = as_keys(c, key), *in = as_keys(c, x);
    for (int64_t i = 0; i < rl_numel(key); i++) rl_hash_put(&place, k[i], (uint32_t)i);
    rl_tensor *y = rl_call_make(c, 0, value->dtype, x->rank, x->dim);
    for (int64_t i = 0; i < rl_numel(y); i++) {
        uint32_t at = rl_hash_get(&place, in[i]);
        rl_put_element(y, y->offset + i, at == RL_NONE ? other : value, at == RL_NONE ? 0 : at);
    }
    return RL_OK;
}

rl_status rl_ref_label_encoder(rl_call *c) {
    const rl_tensor *key, *value, *other;
    RL_TRY(rl_call_need(c, 1));
    RL_TRY(find_list(c, "keys", &key));
    RL_TRY(find_list(c, "values", &value));
    RL_TRY(default_of(c, value->dtype, &other));
    return encode(c, key, value, other);
}

/* Version 1: strings to their places in a list, or back. */
rl_status rl_ref_label_encoder_old(rl_call *c) {
    const rl_attr *a = rl_attr_find(c->node, "classes_strings");
    const rl_tensor *other;
    RL_TRY(rl_call_need(c, 1));
    if (!a || a->kind != RL_ATTR_STRINGS) return rl_call_fail(c, RL_EMODEL, "has no classes_strings");
    int64_t n = a->n;
    rl_tensor *place = rl_call_temp(c, RL_I64, 1, &n);
    for (int64_t i = 0; i < n; i++) ((int64_t *)rl_data(place))[i] = i;
    const rl_tensor *names = list_of(c, a);
    bool back = rl_call_in(c, 0)->dtype == RL_I64;
    RL_TRY(default_of(c, back ? RL_STRING : RL_I64, &other));
    return encode(c, back ? place : names, back ? names : place, other);
}

/* ---- columns, thresholds ---- */

rl_status rl_ref_array_feature_extractor(rl_call *c) {
    RL_TRY(rl_call_need(c, 2));
    const rl_tensor *x = rl_call_dense(c, 0), *index = rl_call_as(c, 1, RL_I64);
    int64_t dim[RL_RANK], n = rl_numel(index), width, rows = 1;
    if (x->rank == 0) return rl_call_fail(c, RL_EMODEL, "the data has no dims");
    uint32_t rank = RL_MAX(x->rank, 2u);
    width = x->dim[x->rank - 1];
    memcpy(dim, x->dim, sizeof dim);
    if (x->rank == 1) dim[0] = 1;
    dim[rank - 1] = n;
    RL_TRY(rl_call_dims(c, rank, dim));
    for (uint32_t i = 0; i + 1 < rank; i++) rows *= dim[i];
    rl_tensor *y = rl_call_make(c, 0, x->dtype, rank, dim);
    for (int64_t k = 0; k < n; k++) {
        int64_t place = ((const int64_t *)rl_data(index))[k];
        RL_TRY(rl_call_place(c, &place, width));
        for (int64_t r = 0; r < rows; r++) rl_put_element(y, y->offset + r * n + k, x, x->offset + r * width + place);
    }
    return RL_OK;
}

rl_status rl_ref_binarizer(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0), *wide = rl_call_as(c, 0, RL_F64);
    double least = (double)rl_attr_float(c->node, "threshold", 0);
    rl_tensor *is = rl_call_temp(c, RL_BOOL, x->rank, x->dim), *y = rl_call_make(c, 0, x->dtype, x->rank, x->dim);
    for (int64_t i = 0; i < rl_numel(x); i++) ((bool *)rl_data(is))[i] = ((const double *)rl_data(wide))[i] > least;
    rl_convert(c->rt, y, is, true);
    return RL_OK;
}
