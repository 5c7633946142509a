/* Constants in another order, for lower_values.c: bytes permuted, each once however many ask; a DequantizeLinear of permuted bytes. */
#include "lower.h"

#include <string.h>

#include "../src/permute.h"

/* dst, row-major in `order`, from the class's first tensor. */
static void permute_bytes(const rl_cls *c, const rl_const *src, const uint8_t *order, uint8_t *dst) {
    int64_t size[RL_MAXATOM];
    uint32_t perm[RL_MAXATOM];
    for (uint32_t i = 0; i < c->natom; i++) size[i] = (int64_t)c->size[i], perm[i] = order[i];
    rl_permute(dst, src->data, c->natom, size, perm, rl_dtype_bits(src->dtype));
}

/* Bytes stored before: the same constant in the same order and shape, for whichever class. */
static uint32_t stored_before(const rl_lower *l, const rl_const *src, uint32_t natom, const uint8_t *o, uint32_t rank, const rl_dim *shape,
                              uint64_t *key) {
    *key = ((uint64_t)(uintptr_t)src ^ rl_hash_bytes(o, natom) * 31 ^ rl_hash_bytes(shape, rank * sizeof *shape)) | 1;
    for (uint32_t i; (i = rl_hash_get(&l->stored, *key)) != RL_NONE; ++*key) {
        const rl_stored *x = &l->kept.p[i];
        const rl_valinfo *v = rl_val(l->g, x->v);
        if (x->src == src && x->natom == natom && rl_same_bytes(x->order, o, natom) && v->rank == rank &&
            rl_same_bytes(v->dim, shape, rank * sizeof *shape))
            return i;
    }
    return RL_NONE;
}

static rl_value stored(rl_lower *l, rl_value like, uint32_t cls, const rl_const *src, const uint8_t *o, uint32_t rank, const rl_dim *shape) {
    rl_cls *c = &l->p->cls.p[cls];
    bool same = true;
    uint64_t key;
    uint32_t known = stored_before(l, src, c->natom, o, rank, shape, &key);
    if (known != RL_NONE) return l->kept.p[known].v;
    for (uint32_t i = 0; i < c->natom; i++) same &= o[i] == i;
    const void *data = src->data;
    if (!same) {
        uint8_t *dst = rl_alloc(&l->g->mem, src->nbyte + 1);
        permute_bytes(c, src, o, dst);
        data = dst;
    }
    const char *stem = rl_val(l->g, like)->name;
    rl_value v = rl_graph_const(l->g, rl_graph_fresh_name(l->g, stem ? stem : "const"), src->dtype, rank, shape, data, src->nbyte);
    rl_val(l->g, v)->is_init = true;
    rl_stored made = {src, rl_copy(l->tmp, o, c->natom), c->natom, v};
    rl_hash_put(&l->stored, key, l->kept.n);
    rl_push(l->tmp, l->kept, made);
    return v;
}

/* The dim that begins with this atom; ndim if none does. */
static uint32_t dim_at(const rl_dims *d, uint32_t atom) {
    uint32_t k = 0, n = 0;
    for (; k < d->ndim && (n < atom || d->count[k] == 0); k++) n += d->count[k];
    return n == atom ? k : d->ndim;
}

/* DequantizeLinear of permuted bytes; per axis, that axis is a dim of its own. */
static rl_value dequantized(rl_lower *l, uint32_t cls, uint32_t order, const rl_dims *d) {
    rl_value y = l->p->cls.p[cls].first;
    const rl_nodeinfo n = *rl_nod(l->g, l->def[y.i]);
    const rl_valinfo *scale = rl_val(l->g, n.in[1]);
    const uint8_t *o = rl_lower_atoms(l, cls, order);
    rl_dims own = *d;
    rl_dim shape[RL_MAXDIMS];
    uint32_t axis = 0, nattr = 0;
    rl_attr attr[16];
    if (scale->rank == 1 && rl_op_axis(l->g, &n, &axis) && rl_val(l->g, y)->dim[axis] != 1) {
        const rl_member *m = &l->p->member[y.i];
        uint32_t first = m->dimstart[axis], count = m->dimstart[axis + 1] - first, at = 0;
        while (o[at] != first) at++;
        for (uint32_t i = 0; i < count; i++)
            if (at + i >= m->natom || o[at + i] != first + i) l->failed = true;
        axis = dim_at(d, at);
        if (axis == d->ndim || d->count[axis] != count) { /* the form wanted has no such dim */
            own.ndim = 0;
            if (at) own.count[own.ndim++] = (uint8_t)at;
            axis = own.ndim;
            own.count[own.ndim++] = (uint8_t)count;
            if (at + count < m->natom) own.count[own.ndim++] = (uint8_t)(m->natom - at - count);
        }
    }
    for (uint32_t i = 0; i < n.nattr && nattr < RL_LEN(attr) - 1; i++)
        if (strcmp(n.attr[i].name, "axis") != 0) attr[nattr++] = n.attr[i];
    if (scale->rank == 1 && n.since >= 13) attr[nattr++] = rl_attr_of_int(l->g, "axis", axis);
    rl_lower_shape(l, cls, order, &own, shape);
    rl_value in[3] = {stored(l, n.in[0], cls, rl_val(l->g, n.in[0])->data, o, own.ndim, shape), n.in[1], rl_in(&n, 2)};
    rl_value out = rl_lower_new(l, y, cls, order, &own);
    rl_node made = rl_lower_node(l, RL_OP_DequantizeLinear, rl_graph_fresh_name(l->g, "rl_dequantize"), n.nin, in, 1, &out);
    rl_nod(l->g, made)->since = n.since;
    rl_graph_set_attrs(l->g, made, attr, nattr);
    rl_lower_have(l, out, cls, order, &own);
    return rl_dims_equal(&own, d) ? out : rl_lower_regroup(l, l->phys.n - 1, d, RL_NOVALUE);
}

/* What nodes compute, as the same mask in each layer, has bytes of its own each time: the first of equal ones stands for all. Weights of the model are
 * not read for that. */
static const rl_const *shared(rl_lower *l, rl_value v) {
    rl_node d = l->def[v.i];
    uint64_t key;
    if (d.i == RL_NONE || rl_nod(l->g, d)->op == RL_OP_Constant) return rl_val(l->g, v)->data;
    rl_value twin = rl_graph_twin(l->g, &l->computed, v, &key);
    if (rl_has(twin)) return rl_val(l->g, twin)->data;
    rl_hash_put(&l->computed, key, v.i);
    return rl_val(l->g, v)->data;
}

rl_value rl_lower_constant(rl_lower *l, rl_value like, uint32_t cls, uint32_t order, const rl_dims *d) {
    rl_value first = l->p->cls.p[cls].first;
    rl_dim shape[RL_MAXDIMS];
    if (!rl_val(l->g, first)->data) return dequantized(l, cls, order, d);
    rl_lower_shape(l, cls, order, d, shape);
    rl_value v = stored(l, like, cls, shared(l, first), rl_lower_atoms(l, cls, order), d->ndim, shape);
    rl_lower_have(l, v, cls, order, d);
    return v;
}
