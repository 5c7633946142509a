/* Sequences and optionals. Items are views; nothing is copied but by ConcatFromSequence. */
#include <string.h>

#include "element.h"
#include "kernels.h"
#include "stack.h"

static rl_status need_sequence(const rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    return rl_call_in(c, 0)->kind == RL_SEQUENCE ? RL_OK : rl_call_fail(c, RL_EMODEL, "input 0 is no sequence");
}

/* Output 0: the first `cut` items of s, `more` (NULL: none), and the items from `from` on. */
static void splice(rl_call *c, const rl_tensor *s, int64_t cut, const rl_tensor *more, int64_t from) {
    int64_t n = 0, had = s->dim[0];
    rl_tensor *item = rl_new(c->tmp, rl_tensor, had + 1);
    for (int64_t i = 0; i < cut; i++) item[n++] = rl_tensor_keep(rl_item(s, i));
    if (more) item[n++] = rl_tensor_keep(more);
    for (int64_t i = from; i < had; i++) item[n++] = rl_tensor_keep(rl_item(s, i));
    rl_call_give(c, 0, rl_sequence_new(c->rt, more ? more->dtype : s->dtype, item, n));
}

rl_status rl_ref_sequence_construct(rl_call *c) {
    RL_TRY(rl_call_need(c, RL_MAX(c->nin, 1u)));
    rl_tensor *item = rl_new(c->tmp, rl_tensor, c->nin);
    for (uint32_t i = 0; i < c->nin; i++)
        if (rl_call_in(c, i)->dtype != rl_call_in(c, 0)->dtype) return rl_call_fail(c, RL_EMODEL, "input %u is of another type", i);
    for (uint32_t i = 0; i < c->nin; i++) item[i] = rl_tensor_keep(rl_call_in(c, i));
    rl_call_give(c, 0, rl_sequence_new(c->rt, item[0].dtype, item, c->nin));
    return RL_OK;
}

rl_status rl_ref_sequence_empty(rl_call *c) {
    rl_call_give(c, 0, rl_sequence_new(c->rt, rl_attr_dtype(c->node, "dtype", RL_F32), NULL, 0));
    return RL_OK;
}

rl_status rl_ref_sequence_at(rl_call *c) {
    int64_t i;
    RL_TRY(need_sequence(c));
    RL_TRY(rl_call_need(c, 2));
    RL_TRY(rl_call_int(c, 1, 0, &i));
    RL_TRY(rl_call_place(c, &i, rl_call_in(c, 0)->dim[0]));
    rl_call_share(c, 0, *rl_item(rl_call_in(c, 0), i));
    return RL_OK;
}

rl_status rl_ref_sequence_erase(rl_call *c) {
    int64_t i;
    RL_TRY(need_sequence(c));
    RL_TRY(rl_call_int(c, 1, -1, &i));
    RL_TRY(rl_call_place(c, &i, rl_call_in(c, 0)->dim[0]));
    splice(c, rl_call_in(c, 0), i, NULL, i + 1);
    return RL_OK;
}

/* -n .. n: before item n is at the end. */
rl_status rl_ref_sequence_insert(rl_call *c) {
    int64_t i;
    RL_TRY(need_sequence(c));
    RL_TRY(rl_call_need(c, 2));
    const rl_tensor *s = rl_call_in(c, 0), *x = rl_call_in(c, 1);
    if (s->dim[0] && s->dtype != x->dtype) return rl_call_fail(c, RL_EMODEL, "a tensor of another type");
    RL_TRY(rl_call_int(c, 2, s->dim[0], &i));
    if (i != s->dim[0]) RL_TRY(rl_call_place(c, &i, s->dim[0]));
    splice(c, s, i, x, i);
    return RL_OK;
}

rl_status rl_ref_sequence_length(rl_call *c) {
    RL_TRY(need_sequence(c));
    *(int64_t *)rl_data(rl_call_make(c, 0, RL_I64, 0, NULL)) = rl_call_in(c, 0)->dim[0];
    return RL_OK;
}

/* ---- splitting and joining ---- */

static rl_status split_sizes(rl_call *c, int64_t d, const int64_t **size, int64_t *n) {
    const rl_tensor *s = rl_call_as(c, 1, RL_I64);
    *n = s && s->rank ? rl_numel(s) : 0;
    *size = s ? rl_data(s) : NULL;
    if (s && s->rank) {
        int64_t left = d;
        for (int64_t i = 0; i < *n; i++) {
            if ((*size)[i] < 0 || (*size)[i] > left)
                return rl_call_fail(c, RL_EMODEL, "part %lld has %lld places", (long long)i, (long long)(*size)[i]);
            left -= (*size)[i];
        }
        return left ? rl_call_fail(c, RL_EMODEL, "the parts leave %lld places", (long long)left) : RL_OK;
    }
    int64_t each = s ? **size : 1, *p;
    if (each < 1) return rl_call_fail(c, RL_EMODEL, "parts of %lld places", (long long)each);
    *n = d / each + (d % each != 0);
    *size = p = rl_new(c->tmp, int64_t, *n);
    for (int64_t i = 0; i < *n; i++) p[i] = RL_MIN(each, d - i * each);
    return RL_OK;
}

rl_status rl_ref_split_to_sequence(rl_call *c) {
    uint32_t axis;
    const int64_t *size;
    int64_t n, at = 0;
    RL_TRY(rl_call_attr_axis(c, "axis", 0, &axis));
    const rl_tensor *x = rl_call_in(c, 0);
    RL_TRY(split_sizes(c, x->dim[axis], &size, &n));
    bool drops = !rl_call_in(c, 1) && !rl_attr_int(c->node, "keepdims", 1);
    rl_tensor *item = rl_new(c->tmp, rl_tensor, n);
    for (int64_t i = 0; i < n; i++) {
        rl_tensor part = rl_view_slice(x, axis, at, 1, size[i]);
        at += size[i];
        if (drops) part = rl_view_without(&part, axis);
        item[i] = rl_tensor_keep(&part);
    }
    rl_call_give(c, 0, rl_sequence_new(c->rt, x->dtype, item, n));
    return RL_OK;
}

static rl_status join(rl_call *c, const rl_tensor *s, int64_t axis) {
    const rl_tensor *first = rl_item(s, 0);
    uint32_t a;
    int64_t dim[RL_RANK], at = 0;
    RL_TRY(rl_call_axis(c, axis, first->rank, &a));
    memcpy(dim, first->dim, sizeof dim);
    dim[a] = 0;
    for (int64_t i = 0; i < s->dim[0]; i++) {
        const rl_tensor *t = rl_item(s, i);
        bool fits = t->kind == RL_TENSOR && t->dtype == first->dtype && t->rank == first->rank;
        for (uint32_t k = 0; fits && k < t->rank; k++) fits = k == a || t->dim[k] == dim[k];
        if (!fits) return rl_call_fail(c, RL_EMODEL, "item %lld does not fit the first", (long long)i);
        dim[a] += t->dim[a];
    }
    rl_tensor *y = rl_call_make(c, 0, first->dtype, first->rank, dim);
    for (int64_t i = 0; i < s->dim[0]; i++) {
        const rl_tensor *t = rl_item(s, i);
        rl_tensor to = rl_view_slice(y, a, at, 1, t->dim[a]);
        at += t->dim[a];
        rl_tensor_move(c->rt, &to, t);
    }
    return RL_OK;
}

rl_status rl_ref_concat_from_sequence(rl_call *c) {
    RL_TRY(need_sequence(c));
    const rl_tensor *s = rl_call_in(c, 0);
    int64_t axis = rl_attr_int(c->node, "axis", 0);
    if (s->dim[0] == 0) return rl_call_fail(c, RL_EMODEL, "an empty sequence has no shape");
    if (rl_attr_int(c->node, "new_axis", 0)) return rl_call_stack(c, 0, rl_item(s, 0), (uint32_t)s->dim[0], axis, false);
    return join(c, s, axis);
}

/* ---- optionals ---- */

rl_status rl_ref_optional_has_element(rl_call *c) {
    *(bool *)rl_data(rl_call_make(c, 0, RL_BOOL, 0, NULL)) = rl_call_in(c, 0) != NULL;
    return RL_OK;
}

rl_status rl_ref_optional_get_element(rl_call *c) {
    const rl_tensor *x = rl_call_in(c, 0);
    if (!x) return rl_call_fail(c, RL_EMODEL, "the optional is empty");
    rl_call_share(c, 0, *x);
    return RL_OK;
}
