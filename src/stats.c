/* Counts data movement: see stats.h.
 *
 * A node is known by its type name, not by its op, because what it does to memory does not depend on whether the op table
 * covers the model's opset.  One table says which name counts as what. */
#include "stats.h"
#include "equation.h"
#include "ops.h"

#include <stddef.h>
#include <string.h>

#define SHAPE_ELEMENTS 64

/* bytes: where those of its outputs are summed; 0, which is transposes, for views. */
typedef struct { const char *type; size_t field, bytes; } kind;
static const kind kinds[] = {
#define KIND(type, field, bytes) {#type, offsetof(rl_stats, field), offsetof(rl_stats, bytes)},
#define VIEW(type) {#type, offsetof(rl_stats, views), 0},
    KIND(Transpose, transposes, moved_bytes)
    KIND(Concat, concats, concat_bytes)
    KIND(ConcatFromSequence, concats, concat_bytes)
    KIND(DepthToSpace, depth_space, depth_space_bytes)
    KIND(Einsum, einsums, einsum_bytes)
    KIND(Expand, expands, expand_bytes)
    KIND(Gather, gathers, gather_bytes)
    KIND(GatherElements, gathers, gather_bytes)
    KIND(GatherND, gathers, gather_bytes)
    KIND(Pad, pads, pad_bytes)
    KIND(Scatter, scatters, scatter_bytes)
    KIND(ScatterElements, scatters, scatter_bytes)
    KIND(ScatterND, scatters, scatter_bytes)
    KIND(Slice, slices, slice_bytes)
    KIND(SpaceToDepth, depth_space, depth_space_bytes)
    KIND(Split, splits, split_bytes)
    KIND(SplitToSequence, splits, split_bytes)
    KIND(Tile, tiles, tile_bytes)
    VIEW(Flatten) VIEW(Identity) VIEW(Reshape) VIEW(Squeeze) VIEW(Unsqueeze)
#undef VIEW
#undef KIND
};

/* With every unknown dim taken as RL_STATS_GUESS; *exact (if not NULL) is false where one was. -1: unknown rank. */
static int64_t elements(const rl_graph *g, rl_value v, bool *exact) {
    const rl_valinfo *x = rl_val(g, v);
    if (exact) *exact = true;
    if (x->rank == RL_NORANK) return -1;
    for (uint32_t i = 0; exact && i < x->rank; i++) *exact &= rl_dim_known(x->dim[i]);
    return rl_stats_count(g->ctx, x->dim, x->rank);
}

int64_t rl_stats_count(const rl_ctx *ctx, const rl_dim *dim, uint32_t n) {
    int64_t count = 1;
    for (uint32_t i = 0; i < n; i++) count = rl_mul(count, rl_dim_guess(ctx, dim[i], RL_STATS_GUESS));
    return count;
}

int64_t rl_stats_size(rl_dtype t, int64_t count) {
    uint32_t bits = rl_dtype_bits(t);
    if (!bits) return rl_mul(count, 8); /* strings: a pointer each */
    return count > INT64_MAX / 128 ? INT64_MAX : count * bits / 8;
}

int64_t rl_stats_bytes(const rl_graph *g, rl_value v) {
    int64_t count = elements(g, v, NULL);
    return count < 0 ? 0 : rl_stats_size(rl_val(g, v)->dtype, count);
}

static bool is_integer(rl_dtype t) {
    return t == RL_I64 || t == RL_I32;
}

static bool is_shape_arithmetic(const rl_graph *g, const rl_nodeinfo *n) {
    for (uint32_t i = 0; i < n->nout; i++) {
        bool exact;
        if (!rl_has(n->out[i])) continue;
        int64_t count = elements(g, n->out[i], &exact);
        if (!is_integer(rl_val(g, n->out[i])->dtype) || count < 0 || !exact || count > SHAPE_ELEMENTS) return false;
    }
    return n->nout > 0;
}

/* perm NULL: all dims the other way round. */
static bool perm_moves(const rl_valinfo *x, const int64_t *perm, uint32_t rank) {
    bool sized = x && x->rank == rank;
    int64_t last = -1;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t p = perm ? perm[i] : (int64_t)(rank - 1 - i);
        if (sized && p >= 0 && p < (int64_t)rank && x->dim[p] == 1) continue;
        if (p < last) return true;
        last = p;
    }
    return false;
}

bool rl_transpose_moves(const rl_graph *g, const rl_nodeinfo *n) {
    const rl_attr *perm = rl_attr_ints(n, "perm");
    const rl_valinfo *x = rl_has(rl_in(n, 0)) ? rl_val(g, n->in[0]) : NULL;
    uint32_t rank = perm ? perm->n : x ? x->rank : RL_NORANK;
    return rank == RL_NORANK || perm_moves(x, perm ? perm->ints : NULL, rank);
}

static bool is_onnx(const rl_nodeinfo *n, const char *type) {
    return n->type && strcmp(n->type, type) == 0 && !(n->domain && *n->domain);
}

/* Is it a Transpose that moves data, but called an Einsum? */
static bool turns(const rl_graph *g, const rl_nodeinfo *n) {
    const int64_t *perm;
    uint32_t rank;
    rl_arena tmp;
    if (!is_onnx(n, "Einsum") || n->nin != 1 || !rl_has(n->in[0])) return false;
    rl_arena_init(&tmp, g->ctx);
    bool is = rl_equation_permutes(g, n, &tmp, &perm, &rank) && perm_moves(rl_val(g, n->in[0]), perm, rank);
    rl_arena_free(&tmp);
    return is;
}

/* The bytes of the number 1. */
static const void *one_of(rl_dtype t, size_t *size) {
    static const float f32 = 1;
    static const double f64 = 1;
    static const uint16_t f16 = 0x3c00, bf16 = 0x3f80;
    *size = rl_dtype_bits(t) / 8;
    switch (t) {
    case RL_F32: return &f32;
    case RL_F64: return &f64;
    case RL_F16: return &f16;
    case RL_BF16: return &bf16;
    default: return NULL;
    }
}

/* A square constant with one 1 in each row and each column. */
static bool is_permutation(const rl_const *c) {
    if (!c || !c->data || c->rank != 2 || c->dim[0] != c->dim[1] || c->dim[0] < 2) return false;
    size_t size, n = (size_t)c->dim[0];
    const unsigned char *one = one_of(c->dtype, &size), *p = c->data, zero[8] = {0};
    if (!one || n > 65535 || c->nbyte != n * n * size) return false;
    uint8_t seen[65536 / 8] = {0};
    for (size_t i = 0; i < n; i++) {
        size_t ones = 0;
        for (size_t j = 0; j < n; j++, p += size) {
            if (rl_same_bytes(p, zero, size)) continue;
            if (!rl_same_bytes(p, one, size) || ++ones > 1 || (seen[j / 8] >> j % 8 & 1)) return false;
            seen[j / 8] = (uint8_t)(seen[j / 8] | 1u << j % 8);
        }
        if (ones != 1) return false;
    }
    return true;
}

static bool multiplies_by_permutation(const rl_graph *g, const rl_nodeinfo *n) {
    if (strcmp(n->type, "MatMul") != 0 && strcmp(n->type, "Gemm") != 0) return false;
    for (uint32_t i = 0; i < 2; i++)
        if (rl_has(rl_in(n, i)) && is_permutation(rl_val(g, n->in[i])->data)) return true;
    return false;
}

/* The bytes that a Transpose of floats between a DequantizeLinear and QuantizeLinears stands for (passes/units.c), or RL_UNDEF. */
static rl_dtype quantized_type(const rl_graph *g, const rl_nodeinfo *n) {
    rl_node def = rl_val(g, n->in[0])->def;
    const rl_valinfo *y = rl_val(g, n->out[0]);
    const rl_nodeinfo *from = def.i == RL_NONE ? NULL : rl_nod(g, def);
    bool unit = from && from->op == RL_OP_DequantizeLinear && y->nuse > 0 && !y->is_output;
    for (uint32_t i = 0; unit && i < y->nuse; i++) unit = rl_nod(g, y->use[i].node)->op == RL_OP_QuantizeLinear && y->use[i].slot == 0;
    return unit ? rl_val(g, from->in[0])->dtype : RL_UNDEF;
}

int64_t rl_transpose_bytes(const rl_graph *g, const rl_nodeinfo *n) {
    if (!is_onnx(n, "Transpose")) return -1;
    if (!rl_has(rl_in(n, 0)) || !rl_has(rl_out(n, 0)) || !rl_transpose_moves(g, n)) return -1;
    rl_dtype t = quantized_type(g, n);
    int64_t count = t == RL_UNDEF ? -1 : elements(g, n->out[0], NULL);
    return count < 0 ? rl_stats_bytes(g, n->out[0]) : rl_stats_size(t, count);
}

static int64_t *field_of(rl_stats *s, size_t offset) {
    return (int64_t *)(void *)((char *)s + offset);
}

static void add_bytes(int64_t *sum, int64_t bytes, int64_t times) { *sum = rl_add(*sum, rl_mul(bytes, times)); }

static void count_transpose(const rl_graph *g, const rl_nodeinfo *n, int64_t times, rl_stats *s) {
    int64_t bytes = rl_transpose_bytes(g, n);
    if (bytes < 0) return;
    s->moving++;
    add_bytes(&s->moved_bytes, bytes, times);
}

/* What this node counts as; NULL: as no movement. */
static const kind *kind_of(const rl_graph *g, const rl_nodeinfo *n) {
    if (!n->type || (n->domain && *n->domain)) return NULL;
    for (size_t k = 0; k < RL_LEN(kinds); k++)
        if (kinds[k].type[0] == n->type[0] && strcmp(kinds[k].type, n->type) == 0)
            return kinds[k].field != offsetof(rl_stats, transposes) && is_shape_arithmetic(g, n) ? NULL : &kinds[k];
    return NULL;
}

static int64_t written_bytes(const rl_graph *g, const rl_nodeinfo *n) {
    int64_t sum = 0;
    if (strcmp(n->type, "SplitToSequence") == 0) return rl_has(rl_in(n, 0)) ? rl_stats_bytes(g, n->in[0]) : 0; /* a sequence has what was cut */
    for (uint32_t i = 0; i < n->nout; i++)
        if (rl_has(n->out[i])) sum = rl_add(sum, rl_stats_bytes(g, n->out[i]));
    return sum;
}

int64_t rl_moved_bytes(const rl_graph *g, const rl_nodeinfo *n) {
    const kind *k = kind_of(g, n);
    if (!k || !k->bytes) return -1;
    return k->field == offsetof(rl_stats, transposes) ? rl_transpose_bytes(g, n) : written_bytes(g, n);
}

static void count_node(const rl_graph *g, const rl_nodeinfo *n, int64_t times, rl_stats *s) {
    s->nodes++;
    if ((!n->domain || !*n->domain) && n->type && multiplies_by_permutation(g, n)) s->matmuls++;
    s->turning += turns(g, n);
    const kind *k = kind_of(g, n);
    if (!k) return;
    ++*field_of(s, k->field);
    if (k->field == offsetof(rl_stats, transposes)) count_transpose(g, n, times, s);
    else if (k->bytes) add_bytes(field_of(s, k->bytes), written_bytes(g, n), times);
}

enum { TURNS = 16, MOST_TURNS = 65536 }; /* where the trip count is unknown; of nested bodies in all */

int64_t rl_stats_turns(const rl_graph *g, rl_value trips, int64_t times) {
    rl_arena tmp;
    const int64_t *x;
    uint32_t n;
    int64_t turns = TURNS;
    rl_arena_init(&tmp, g->ctx);
    if (rl_const_ints(g, trips, &tmp, &x, &n) && n == 1) turns = RL_MAX(x[0], 1);
    rl_arena_free(&tmp);
    return RL_MIN(times * RL_MIN(turns, MOST_TURNS / times + 1), MOST_TURNS);
}

static int64_t times_inside(const rl_graph *g, const rl_nodeinfo *n, int64_t times) {
    return is_onnx(n, "Loop") ? rl_stats_turns(g, rl_in(n, 0), times) : is_onnx(n, "Scan") ? rl_stats_turns(g, RL_NOVALUE, times) : times;
}

static void count_graph(const rl_graph *g, int64_t times, rl_stats *s) {
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        count_node(g, n, times, s);
        for (uint32_t k = 0; k < n->nattr; k++)
            if (n->attr[k].graph) count_graph(n->attr[k].graph, times_inside(g, n, times), s);
    }
}

void rl_stats_of(const rl_graph *g, rl_stats *s) {
    *s = (rl_stats){0};
    count_graph(g, 1, s);
}

static uint32_t readers(const rl_valinfo *v, const bool *dead) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->nuse; i++) n += !dead || !dead[v->use[i].node.i];
    return n;
}

static bool moves(const rl_graph *g, const rl_nodeinfo *n) { return rl_transpose_bytes(g, n) >= 0 || turns(g, n); }

/* The node that makes v for one reader alone; NULL: none does. */
static const rl_nodeinfo *only_maker(const rl_graph *g, rl_value v, const bool *dead) {
    const rl_valinfo *x = rl_val(g, v);
    return readers(x, dead) != 1 || x->is_output || x->def.i == RL_NONE ? NULL : rl_nod(g, x->def);
}

static bool is_step(const rl_graph *g, const rl_nodeinfo *n, const bool *dead) {
    if (!moves(g, n)) return false;
    for (rl_value v = n->in[0]; rl_has(v);) {
        n = only_maker(g, v, dead);
        if (!n) return false;
        if (moves(g, n)) return true;
        const rl_nodeinfo *q = n->op == RL_OP_DequantizeLinear ? only_maker(g, n->in[0], dead) : NULL;
        if (q && q->op == RL_OP_QuantizeLinear && rl_op_has_scale_of(g, n, q)) { /* from one unit of bytes to the next (units.c) */
            v = q->in[0];
            continue;
        }
        const kind *k = kind_of(g, n);
        if (!k || (k->field != offsetof(rl_stats, views) && k->field != offsetof(rl_stats, transposes))) return false;
        v = rl_in(n, 0);
    }
    return false;
}

int64_t rl_stats_steps(const rl_graph *g) {
    int64_t n = 0;
    rl_arena tmp;
    rl_arena_init(&tmp, g->ctx);
    const bool *dead = rl_dead_nodes(g, &tmp);
    for (uint32_t i = 0; i < g->order.n; i++) {
        rl_node id = g->order.p[i];
        const rl_nodeinfo *x = rl_nod(g, id);
        n += (!dead || !dead[id.i]) && is_step(g, x, dead);
        for (uint32_t k = 0; k < x->nattr; k++)
            if (x->attr[k].graph) n += rl_stats_steps(x->attr[k].graph);
    }
    rl_arena_free(&tmp);
    return n;
}

void rl_stats_add(rl_stats *to, const rl_stats *s) {
    to->turning = rl_add(to->turning, s->turning);
#define X(field, name) to->field = rl_add(to->field, s->field);
    RL_STATS_FIELDS(X)
#undef X
}

int64_t rl_stats_others(const rl_stats *s) {
    return s->gathers + s->scatters + s->slices + s->splits + s->concats + s->pads + s->tiles + s->expands + s->depth_space +
           s->einsums + s->matmuls;
}

int64_t rl_stats_other_bytes(const rl_stats *s) {
    int64_t n = 0;
#define X(field, name) n = rl_add(n, s->field);
    RL_STATS_BYTES(X)
#undef X
    return n;
}
