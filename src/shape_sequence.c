/* Shape rules of sequences and optionals: s->item has the type of their elements. */
#include "shape_rules.h"
#include "sequence.h"

static rl_type item_of(const rl_shaper *s, uint32_t i) { return rl_shape_item(s, rl_in(s->n, i)); }

static rl_status set_item(rl_shaper *s, uint32_t port, rl_type t) {
    rl_shape_set_item(s, rl_out(s->n, port), t);
    return RL_OK;
}

rl_type rl_shape_common_item(const rl_shaper *s, rl_type a, rl_type b) {
    if (a.rank == RL_EMPTY_SEQUENCE) return b;
    if (b.rank == RL_EMPTY_SEQUENCE) return a;
    rl_type t = {a.dtype == b.dtype ? a.dtype : RL_UNDEF, RL_NORANK, NULL};
    if (a.rank != b.rank || a.rank == RL_NORANK) return t;
    rl_dim *d = new_dims(s, a.rank);
    for (uint32_t i = 0; i < a.rank; i++)
        if (a.dim[i] == b.dim[i]) d[i] = a.dim[i];
    return (rl_type){t.dtype, a.rank, d};
}

rl_status rl_rule_identity(rl_shaper *s) {
    if (s->item && s->n->nin) RL_TRY(set_item(s, 0, item_of(s, 0)));
    return rl_rule_same(s);
}

rl_status rl_rule_sequence_construct(rl_shaper *s) {
    rl_type t = {RL_UNDEF, RL_EMPTY_SEQUENCE, NULL};
    for (uint32_t i = 0; i < s->n->nin; i++) t = rl_shape_common_item(s, t, rl_type_of(input(s, i)));
    return set_item(s, 0, t);
}

rl_status rl_rule_sequence_empty(rl_shaper *s) {
    return set_item(s, 0, (rl_type){attr_dtype(s, "dtype", RL_F32), RL_EMPTY_SEQUENCE, NULL});
}

rl_status rl_rule_sequence_erase(rl_shaper *s) {
    return set_item(s, 0, item_of(s, 0));
}

rl_status rl_rule_sequence_insert(rl_shaper *s) {
    return set_item(s, 0, rl_shape_common_item(s, item_of(s, 0), rl_type_of(input(s, 1))));
}

static rl_status set_tensor(rl_shaper *s, rl_type t) {
    return t.rank == RL_EMPTY_SEQUENCE ? set_unranked(s, 0, t.dtype) : rl_shape_set(s, 0, t.dtype, t.rank, t.dim);
}

/* ---- elements that are told apart ---- */

/* What makes the sequence that is read, where its elements are known one by one. */
typedef struct { const rl_nodeinfo *n; rl_cuts cut; uint32_t count; } maker;

static bool find_maker(const rl_shaper *s, maker *m) {
    const rl_valinfo *v = input(s, 0);
    if (!v || v->def.i == RL_NONE) return false;
    const rl_nodeinfo *n = rl_nod(s->g, v->def);
    bool cut = n->op == RL_OP_SplitToSequence && rl_sequence_cuts(s->g, n, s->tmp, &m->cut);
    m->n = n;
    m->count = cut ? m->cut.n : n->nin;
    return cut || n->op == RL_OP_SequenceConstruct;
}

static rl_type element(const rl_shaper *s, const maker *m, uint32_t place) {
    bool whole = m->n->op == RL_OP_SequenceConstruct;
    rl_value v = rl_in(m->n, whole ? place : 0);
    rl_type t = rl_type_of(rl_has(v) ? rl_val(s->g, v) : NULL);
    if (whole) return t;
    rl_dim *d = new_dims(s, t.rank);
    uint32_t n = 0;
    for (uint32_t i = 0; i < t.rank; i++)
        if (i != m->cut.axis || m->cut.keeps) d[n++] = i == m->cut.axis ? m->cut.size[place] : t.dim[i];
    return (rl_type){t.dtype, n, d};
}

rl_status rl_rule_sequence_at(rl_shaper *s) {
    maker m;
    uint32_t place;
    bool told = find_maker(s, &m) && rl_sequence_place(s->g, rl_in(s->n, 1), m.count, s->tmp, &place);
    return set_tensor(s, told ? element(s, &m, place) : item_of(s, 0));
}

/* Of all elements together, along the dim that they are joined in, or make where they lie side by side. */
static rl_dim joined(const rl_shaper *s, uint32_t axis, bool beside) {
    maker m;
    if (!find_maker(s, &m)) return UNKNOWN;
    rl_dim sum = beside ? m.count : 0;
    for (uint32_t i = 0; i < m.count && !beside; i++) {
        rl_type t = element(s, &m, i);
        sum = rl_shape_add(s, sum, t.rank != RL_NORANK && axis < t.rank ? t.dim[axis] : UNKNOWN);
    }
    return sum;
}

rl_status rl_rule_optional(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    return x && x->dtype != RL_UNDEF ? set_item(s, 0, rl_type_of(x)) : RL_OK;
}

/* Of a tensor: itself. */
rl_status rl_rule_optional_get(rl_shaper *s) {
    rl_type t = item_of(s, 0);
    return t.dtype != RL_UNDEF ? set_tensor(s, t) : rl_rule_same(s);
}

rl_status rl_rule_split_to_sequence(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0), *parts = input(s, 1);
    if (!ranked(x)) return set_item(s, 0, rl_type_of(x));
    uint32_t axis, n = 0;
    RL_TRY(axis_in(s, rl_attr_int(s->n, "axis", 0), x->rank, &axis));
    bool keep = parts || rl_attr_int(s->n, "keepdims", 1) == 1;
    rl_cell k = scalar(s, 1);
    rl_dim *d = new_dims(s, x->rank), part = parts ? UNKNOWN : 1;
    bool even = k.kind == CELL_INT && k.num > 0 && rl_dim_known(x->dim[axis]) && x->dim[axis] % k.num == 0;
    if (ranked(parts) && parts->rank == 0 && even) part = k.num;
    for (uint32_t i = 0; i < x->rank; i++)
        if (i != axis || keep) d[n++] = i == axis ? part : x->dim[i];
    return set_item(s, 0, (rl_type){x->dtype, n, d});
}

rl_status rl_rule_concat_from_sequence(rl_shaper *s) {
    rl_type t = item_of(s, 0);
    uint32_t more = rl_attr_int(s->n, "new_axis", 0) != 0, axis;
    if (t.rank >= RL_EMPTY_SEQUENCE) return set_unranked(s, 0, t.dtype);
    RL_TRY(axis_in(s, rl_attr_int(s->n, "axis", 0), t.rank + more, &axis));
    rl_dim *d = new_dims(s, t.rank + more);
    for (uint32_t i = 0; i < t.rank + more; i++) d[i] = i == axis ? joined(s, axis, more) : t.dim[i - (more && i > axis)];
    return rl_shape_set(s, 0, t.dtype, t.rank + more, d);
}
