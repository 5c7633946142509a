/* Sizes that are known only in a run, as tensors, and the Reshapes that need them.
 *
 *   Reshape(x[B,48,S]) to [4*B,12,S]    ->    Shape(x)[0] * 4, 12, Shape(x)[2] in one tensor, allowzero=1
 *   Reshape(x[B,1,S,4]) to [B,S,4]      ->    Squeeze(x) axes=[1] */
#include "lower.h"

/* Elements k to k + n - 1 of the shape of x. */
static rl_value sizes_of(rl_lower *l, rl_value x, uint32_t k, uint32_t n) {
    rl_graph *g = l->g;
    rl_value s = rl_graph_value(g, rl_graph_fresh_name(g, "rl_shape")), y;
    rl_node node = rl_lower_node(l, RL_OP_Shape, rl_graph_fresh_name(g, "rl_shape"), 1, &x, 1, &s);
    if (rl_nod(g, node)->since >= 15) {
        rl_attr a[2] = {rl_attr_of_int(g, "start", k), rl_attr_of_int(g, "end", (int64_t)k + n)};
        rl_graph_set_attrs(g, node, a, 2);
        rl_graph_set_type(g, s, RL_I64, 1, (rl_dim[]){n});
        return s;
    }
    int64_t index[RL_MAXDIMS];
    for (uint32_t i = 0; i < n; i++) index[i] = (int64_t)k + i;
    rl_graph_set_type(g, s, RL_I64, 1, (rl_dim[]){rl_val(g, x)->rank});
    rl_value in[2] = {s, rl_lower_ints(l, "rl_axis", n, index)};
    y = rl_graph_value(g, rl_graph_fresh_name(g, "rl_size"));
    rl_lower_node(l, RL_OP_Gather, rl_graph_fresh_name(g, "rl_size"), 2, in, 1, &y);
    rl_graph_set_type(g, y, RL_I64, 1, (rl_dim[]){n});
    return y;
}

/* Where a size stands: `times` the dim `axis` of v, and other dims of it (a bit for each), multiplied; and of that a part, `per` of which make it. */
typedef struct { rl_value v; uint32_t axis, others; rl_dim times, per; } rl_sizeplace;

/* The axis of v that d is a known multiple of, the same if there is one. */
static bool has_dim(const rl_graph *g, rl_value v, rl_dim d, rl_sizeplace *at) {
    const rl_valinfo *x = rl_val(g, v);
    rl_dim times;
    at->times = 0;
    for (uint32_t i = 0; x->rank != RL_NORANK && i < x->rank && at->times != 1; i++)
        if (!rl_dim_known(x->dim[i]) && rl_dim_div(g->ctx, d, x->dim[i], &times) && times > 0 && (times == 1 || at->times == 0))
            *at = (rl_sizeplace){v, i, 0, times, 1};
    return at->times != 0;
}

/* An axis of v that is a known multiple of d: d = H in f32[2*H,8]. */
static bool has_multiple(const rl_graph *g, rl_value v, rl_dim d, rl_sizeplace *at) {
    const rl_valinfo *x = rl_val(g, v);
    rl_dim per;
    for (uint32_t i = 0; x->rank != RL_NORANK && i < x->rank; i++)
        if (!rl_dim_known(x->dim[i]) && rl_dim_div(g->ctx, x->dim[i], d, &per) && per > 0) {
            *at = (rl_sizeplace){v, i, 0, 1, per};
            return true;
        }
    return false;
}

/* The axes of v that make d, multiplied, if there are some. */
static bool has_product(const rl_graph *g, rl_value v, rl_dim d, rl_sizeplace *at) {
    const rl_valinfo *x = rl_val(g, v);
    *at = (rl_sizeplace){v, RL_NONE, 0, 0, 1};
    for (uint32_t i = 0; x->rank != RL_NORANK && i < RL_MIN(x->rank, 32u) && !rl_dim_known(d); i++) {
        rl_dim rest;
        if (rl_dim_known(x->dim[i]) || !rl_dim_div(g->ctx, d, x->dim[i], &rest) || rest == 0) continue;
        d = rest;
        if (at->axis == RL_NONE) at->axis = i;
        else at->others |= 1u << i;
    }
    if (rl_dim_known(d)) at->times = d;
    return at->times != 0;
}

typedef bool has_size(const rl_graph *g, rl_value v, rl_dim d, rl_sizeplace *at);

/* In a tensor that exists: `near`, a graph input, or one written before. */
static bool look_for(const rl_lower *l, has_size *has, rl_dim d, rl_value near, rl_sizeplace *at) {
    const rl_graph *g = l->g;
    if (rl_has(near) && has(g, near, d, at)) return true;
    for (uint32_t i = 0; i < g->input.n; i++)
        if (has(g, g->input.p[i], d, at)) return true;
    for (uint32_t i = l->phys.n; i-- > 0 && i + 1000 > l->phys.n;)
        if (rl_flat_within(g, rl_flat_region(g, l->origin), l->phys.p[i].region) && has(g, l->phys.p[i].v, d, at)) return true;
    *at = (rl_sizeplace){0};
    return false;
}

static bool find_size(const rl_lower *l, rl_dim d, rl_value near, rl_sizeplace *at) {
    return look_for(l, has_dim, d, near, at) || look_for(l, has_multiple, d, near, at);
}

/* Also one that stands nowhere as a whole. */
static bool find_factors(const rl_lower *l, rl_dim d, rl_value near, rl_sizeplace *at) {
    return find_size(l, d, near, at) || look_for(l, has_product, d, near, at);
}

/* x, of n numbers, with another tensor by op. */
static rl_value computed(rl_lower *l, rl_op op, rl_value x, uint32_t n, rl_value other) {
    rl_value in[2] = {x, other}, y = rl_graph_value(l->g, rl_graph_fresh_name(l->g, "rl_size"));
    rl_graph_set_type(l->g, y, RL_I64, 1, (rl_dim[]){n});
    rl_lower_node(l, op, rl_graph_fresh_name(l->g, "rl_size"), 2, in, 1, &y);
    return y;
}

/* ---- what is written once ---- */

/* The same sizes in a tensor that can be read here; *h: where to note one. */
static rl_value written(const rl_lower *l, const int64_t *key, uint32_t nkey, uint64_t *h) {
    uint32_t here = rl_flat_region(l->g, l->origin);
    *h = rl_hash_bytes(key, nkey * sizeof *key) | 1;
    for (uint32_t i; (i = rl_hash_get(&l->bysizes, *h)) != RL_NONE; ++*h) {
        const rl_written_sizes *x = &l->sizes.p[i];
        if (x->nkey == nkey && rl_same_bytes(x->key, key, nkey * sizeof *key) && rl_flat_within(l->g, here, x->region)) return x->v;
    }
    return RL_NOVALUE;
}

static void note(rl_lower *l, rl_value v, const int64_t *key, uint32_t nkey, uint64_t h) {
    rl_hash_put(&l->bysizes, h, l->sizes.n);
    rl_push(l->tmp, l->sizes, ((rl_written_sizes){v, rl_flat_region(l->g, l->origin), nkey, rl_copy(l->tmp, key, nkey * sizeof *key)}));
}

/* The sizes that stand side by side in one shape, or make one size when multiplied. */
static rl_value looked_up(rl_lower *l, const rl_sizeplace *at, uint32_t n) {
    rl_value v = sizes_of(l, at->v, at->axis, n);
    for (uint32_t k = 0; k < 32; k++)
        if (at->others >> k & 1) v = computed(l, RL_OP_Mul, v, 1, sizes_of(l, at->v, k, 1));
    if (at->times > 1) v = computed(l, RL_OP_Mul, v, n, rl_lower_ints(l, "rl_times", 1, &at->times));
    return at->per > 1 ? computed(l, RL_OP_Div, v, n, rl_lower_ints(l, "rl_times", 1, &at->per)) : v;
}

/* n numbers as a 1-D tensor: the size number[i], which stands at at[i], or the number itself where times is 0. */
static rl_value numbers(rl_lower *l, const int64_t *number, const rl_sizeplace *at, uint32_t n) {
    rl_value part[RL_MAXDIMS], all;
    uint32_t npart = 0;
    int64_t key[2 * RL_MAXDIMS];
    uint64_t h, whole;
    for (uint32_t i = 0; i < n; i++) {
        key[2 * i] = at[i].times != 0;
        key[2 * i + 1] = number[i];
    }
    if (n && rl_has(all = written(l, key, 2 * n, &whole))) return all;
    for (uint32_t i = 0, end; i < n; i = end) { /* what is known, or stands side by side in one shape, in one piece */
        rl_dim times = at[i].times, per = at[i].per;
        for (end = i + 1; end < n && at[end].times == times && at[end].per == per && !at[i].others && !at[end].others; end++)
            if (times && (at[end].v.i != at[i].v.i || at[end].axis != at[i].axis + (end - i))) break;
        if (!times) {
            part[npart++] = rl_lower_ints(l, "rl_sizes", end - i, number + i);
            continue;
        }
        part[npart] = written(l, &key[2 * i], 2 * (end - i), &h);
        if (!rl_has(part[npart])) {
            part[npart] = looked_up(l, &at[i], end - i);
            note(l, part[npart], &key[2 * i], 2 * (end - i), h);
        }
        npart++;
    }
    if (npart == 0) part[npart++] = rl_lower_ints(l, "rl_sizes", 0, number);
    if (npart == 1) return part[0];
    all = rl_graph_value(l->g, rl_graph_fresh_name(l->g, "rl_sizes"));
    rl_graph_set_type(l->g, all, RL_I64, 1, (rl_dim[]){n});
    rl_node c = rl_lower_node(l, RL_OP_Concat, rl_graph_fresh_name(l->g, "rl_sizes"), npart, part, 1, &all);
    rl_attr a = rl_attr_of_int(l->g, "axis", 0);
    rl_graph_set_attrs(l->g, c, &a, 1);
    note(l, all, key, 2 * n, whole);
    return all;
}

bool rl_lower_sizes(rl_lower *l, const rl_dim *d, uint32_t n, rl_value *out) {
    rl_sizeplace at[RL_MAXDIMS] = {0};
    if (n > RL_MAXDIMS) return false;
    for (uint32_t i = 0; i < n; i++)
        if (!rl_dim_known(d[i]) && !find_factors(l, d[i], RL_NOVALUE, &at[i])) return false;
    *out = numbers(l, d, at, n);
    return true;
}

/* A size of 0 that is not where x has one: a Reshape takes it for "copy" unless it is told. */
static bool has_new_zero(const rl_valinfo *x, const rl_dim *to, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (to[i] == 0 && !(i < x->rank && x->dim[i] == 0)) return true;
    return false;
}

/* Of the n sizes `to`: unknown ones, of these such as x has at the same place, and zeros. */
typedef struct { uint32_t symbols, copied, zeros; } kinds;

static kinds kinds_of(const rl_valinfo *x, const rl_dim *to, uint32_t n) {
    kinds k = {0};
    for (uint32_t i = 0; i < n; i++) {
        k.symbols += !rl_dim_known(to[i]);
        k.copied += !rl_dim_known(to[i]) && i < x->rank && x->dim[i] == to[i];
        k.zeros += to[i] == 0;
    }
    return k;
}

/* The shape input of a Reshape of x to these sizes. 0 copies, and one -1 is inferred, but not beside a size that is 0 in a run; and a
 * size that is looked up and is 0 would copy. *literal: it is for a Reshape to which 0 is 0. What stands nowhere is -1 all the same. */
static rl_value target(rl_lower *l, rl_value x, const rl_dim *to, uint32_t n, bool *literal) {
    const rl_valinfo *from = rl_val(l->g, x);
    int64_t number[RL_MAXDIMS] = {0};
    uint32_t inferred = 0;
    bool zero = has_new_zero(from, to, n);
    rl_sizeplace at[RL_MAXDIMS] = {0};
    kinds k = kinds_of(from, to, n);
    *literal = (zero || (k.copied < k.symbols && k.symbols + k.zeros > 1)) && rl_opset_of(l->g, rl_internz(l->g->ctx, "")) >= 14;
    for (uint32_t i = 0; i < n; i++) {
        number[i] = to[i];
        if (rl_dim_known(to[i])) continue;
        if (!*literal && i < from->rank && from->dim[i] == to[i]) number[i] = 0;
        else if ((k.symbols == 1 && !*literal) || !(inferred ? find_factors : find_size)(l, to[i], x, &at[i])) number[i] = -1, inferred++;
    }
    l->failed |= (zero && !*literal) || (inferred && k.zeros) || inferred > 1;
    return numbers(l, number, at, n);
}

/* The axes of the dims of 1 that `more` has beyond `fewer`; 0 of them: there are none, or something else differs. */
static uint32_t ones_beyond(const rl_dim *more, uint32_t nmore, const rl_dim *fewer, uint32_t nfewer, int64_t *axis) {
    uint32_t n = 0, k = 0;
    for (uint32_t i = 0; i < nmore; i++) {
        if (k < nfewer && more[i] == fewer[k]) k++;
        else if (more[i] == 1) axis[n++] = i;
        else return 0;
    }
    return k == nfewer ? n : 0;
}

static bool write_ones(rl_lower *l, const char *name, rl_value x, const rl_dim *to, uint32_t n, rl_value out) {
    const rl_valinfo *from = rl_val(l->g, x);
    kinds k = kinds_of(from, to, n);
    int64_t axis[RL_MAXDIMS];
    bool fewer = n < from->rank;
    if (k.copied == k.symbols || k.symbols == 1) return false;
    uint32_t naxis = fewer ? ones_beyond(from->dim, from->rank, to, n, axis) : ones_beyond(to, n, from->dim, from->rank, axis);
    if (naxis) rl_lower_place(l, rl_graph_add_listed(l->g, fewer ? RL_OP_Squeeze : RL_OP_Unsqueeze, name, x, "axes", naxis, axis, NULL, 1, &out));
    return naxis;
}

void rl_lower_reshape(rl_lower *l, const char *name, rl_value x, const rl_dim *to, uint32_t n, rl_value out) {
    if (write_ones(l, name, x, to, n, out)) return;
    bool literal;
    rl_value in[2] = {x, target(l, x, to, n, &literal)};
    rl_node node = rl_lower_node(l, RL_OP_Reshape, name, 2, in, 1, &out);
    rl_attr allow = rl_attr_of_int(l->g, "allowzero", 1);
    if (literal) rl_graph_set_attrs(l->g, node, &allow, 1);
}
