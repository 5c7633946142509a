/* The op table and the questions about it: see ops.h.
 *
 * Rows are sorted by id, which makes them sorted by (domain, type) too, so rl_op_find is a binary search.  What a row's
 * role words mean is decided here and only here:
 *
 *   word       ::= [version "+"] name [ "@" input | "=" default ]
 *   "axes 18+axes@1"     before opset 18 the attribute axes, from 18 on the constant input 1
 *   "13+axis=1"          from opset 13 on the attribute axis, 1 where it is absent; before, no such thing
 *
 * The last word of a name whose version is not above the node's says where the value is. */
#include "ops.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "schema.h"

#define RL_MOVE RL_MOVING /* the table's word */

const rl_oprow rl_optable[RL_NOP] = {
#define OP(id, domain, type, cls, roles) {#id, domain, type, RL_##cls, roles},
#include "ops.def"
#undef OP
    {"OPAQUE", "", "", RL_OPAQUE, ""},
    {"MOVE", "", "Move", RL_MOVING, ""},
    {"ENTER", "", "Enter", RL_OPAQUE, ""},
    {"LEAVE", "", "Leave", RL_OPAQUE, ""},
};

rl_op rl_op_named(rl_str domain, rl_str type) {
    uint32_t lo = 0, hi = RL_OP_OPAQUE;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        int c = strcmp(domain, rl_optable[mid].domain);
        if (c == 0) c = strcmp(type, rl_optable[mid].type);
        if (c == 0) return (rl_op)mid;
        if (c < 0) hi = mid;
        else lo = mid + 1;
    }
    return RL_OP_OPAQUE;
}

rl_op rl_op_find(rl_str domain, rl_str type, int64_t version) {
    if (!domain || strcmp(domain, "ai.onnx") == 0) domain = "";
    bool covered = version >= (*domain ? 1 : RL_OPSET_OLDEST) && version <= rl_schema_newest(domain);
    return type && covered ? rl_op_named(domain, type) : RL_OP_OPAQUE;
}

void rl_op_warn(const rl_graph *g) {
    int64_t version = rl_opset_of(g, ""), newest = rl_schema_newest("");
    if (version && (version < RL_OPSET_OLDEST || version > newest))
        rl_log(g->ctx, RL_LOG_WARNING, "opset %" PRId64 " of ai.onnx: known are %d to %" PRId64 ", so the nodes stay as they are", version,
               RL_OPSET_OLDEST, newest);
}

rl_class rl_op_class(rl_op op) {
    return (uint32_t)op < RL_NOP ? rl_optable[op].cls : RL_OPAQUE;
}

/* Where a node's parameter is: input `input`, or (RL_NONE) the attribute of that name. */
typedef struct {
    uint32_t input;
    bool has_default;
    int64_t dflt;
} role;

/* Reads the word at s into *r when it is `name` and holds for `since`. */
static bool read_word(const char *s, const char *name, uint32_t since, role *r) {
    char *end;
    if (*s >= '0' && *s <= '9') {
        if (strtoul(s, &end, 10) > since) return false;
        s = end + 1;
    }
    size_t n = strlen(name);
    if (strncmp(s, name, n) != 0 || !strchr(" @=", s[n])) return false; /* strchr finds the final 0 too */
    *r = (role){.input = RL_NONE};
    if (s[n] == '@') r->input = (uint32_t)strtoul(s + n + 1, NULL, 10);
    r->has_default = s[n] == '=';
    if (r->has_default) r->dflt = strtoll(s + n + 1, NULL, 10);
    return true;
}

/* False when the node has no parameter of this name at its version. */
static bool find_role(const rl_nodeinfo *n, const char *name, role *r) {
    bool found = false;
    if ((uint32_t)n->op >= RL_NOP) return false;
    for (const char *s = rl_optable[n->op].roles; *s;) {
        found |= read_word(s, name, n->since, r);
        s += strcspn(s, " ");
        s += strspn(s, " ");
    }
    return found;
}

/* The one constant integer of a value, as an axis is given. */
static bool one_int(const rl_graph *g, rl_value v, int64_t *x) {
    if (!rl_has(v)) return false;
    rl_arena tmp;
    const int64_t *p;
    uint32_t n;
    rl_arena_init(&tmp, g->ctx);
    bool ok = rl_const_ints(g, v, &tmp, &p, &n) && n == 1;
    if (ok) *x = p[0];
    rl_arena_free(&tmp);
    return ok;
}

static bool fetch_int(const rl_graph *g, const rl_nodeinfo *n, const char *name, int64_t *x) {
    role r;
    if (!find_role(n, name, &r)) return false;
    if (r.input != RL_NONE) return one_int(g, rl_in(n, r.input), x);
    const rl_attr *a = rl_attr_find(n, name);
    if (!a && !r.has_default) return false;
    *x = a ? a->i : r.dflt;
    return !a || a->kind == RL_ATTR_INT;
}

bool rl_op_axis(const rl_graph *g, const rl_nodeinfo *n, uint32_t *axis) {
    int64_t x;
    if (n->nin == 0 || !rl_has(n->in[0]) || !fetch_int(g, n, "axis", &x)) return false;
    uint32_t rank = rl_val(g, n->in[0])->rank;
    if (rank == RL_NORANK) return false;
    if (x < 0) x += rank;
    /* Flatten may cut after the last dim. */
    if (x < 0 || x > (int64_t)rank || (x == (int64_t)rank && n->op != RL_OP_Flatten)) return false;
    *axis = (uint32_t)x;
    return true;
}

/* The integers as given; *n = 0 and true when none are. */
static bool fetch_axes(const rl_graph *g, const rl_nodeinfo *node, rl_arena *mem, const int64_t **x, uint32_t *n) {
    role r;
    *n = 0;
    if (!find_role(node, "axes", &r)) return true;
    if (r.input != RL_NONE) {
        if (!rl_has(rl_in(node, r.input))) return true;
        return rl_const_ints(g, rl_in(node, r.input), mem, x, n);
    }
    const rl_attr *a = rl_attr_find(node, "axes");
    if (!a) return true;
    *x = a->ints;
    *n = a->n;
    return a->kind == RL_ATTR_INTS && a->n > 0; /* runtimes disagree on what an empty attribute means */
}

/* Sorts x into out, counted from 0; false when one is out of range or there twice. */
static bool sort_axes(const int64_t *x, uint32_t n, int64_t rank, uint32_t *out) {
    for (uint32_t i = 0; i < n; i++) {
        if (x[i] < -rank || x[i] >= rank) return false;
        uint32_t a = (uint32_t)(x[i] < 0 ? x[i] + rank : x[i]), k = i;
        for (; k > 0 && out[k - 1] >= a; k--) {
            if (out[k - 1] == a) return false;
            out[k] = out[k - 1];
        }
        out[k] = a;
    }
    return true;
}

bool rl_op_axes(const rl_graph *g, const rl_nodeinfo *n, rl_arena *mem, const uint32_t **axes, uint32_t *naxes, bool *all) {
    const int64_t *x = NULL;
    uint32_t count;
    *axes = NULL;
    *naxes = 0;
    *all = false;
    if (n->nin == 0 || !rl_has(n->in[0]) || !fetch_axes(g, n, mem, &x, &count)) return false;
    if (count == 0) {
        /* A reduction over no dims, where the model asks for that, not for all. */
        *all = rl_op_class(n->op) != RL_REDUCE || rl_attr_int(n, "noop_with_empty_axes", 0) == 0;
        return true;
    }
    uint32_t rank = rl_val(g, n->in[0])->rank;
    if (rank == RL_NORANK) return false;
    if (n->op == RL_OP_Unsqueeze) rank += count; /* its axes are the output's */
    if (count > rank) return false;
    uint32_t *out = rl_new(mem, uint32_t, count);
    if (!sort_axes(x, count, rank, out)) return false;
    *axes = out;
    *naxes = count;
    return true;
}

uint32_t rl_op_axes_input(const rl_nodeinfo *n) {
    role r;
    return find_role(n, "axes", &r) ? r.input : RL_NONE;
}

bool rl_op_keepdims(const rl_nodeinfo *n) {
    role r;
    return find_role(n, "keepdims", &r) && rl_attr_int(n, "keepdims", r.dflt) != 0;
}

const char *rl_op_heads(rl_op op, uint32_t input) {
    if (op == RL_OP_Attention && input < 3) return input ? "kv_num_heads" : "q_num_heads";
    return op == RL_OP_RotaryEmbedding && input == 0 ? "num_heads" : NULL;
}

bool rl_op_may_train(const rl_graph *g, const rl_nodeinfo *n) {
    if (n->op != RL_OP_Dropout || !rl_has(rl_in(n, 2))) return false;
    const rl_const *c = rl_val(g, n->in[2])->data;
    return !c || !c->data || c->dtype != RL_BOOL || c->nbyte != 1 || *(const char *)c->data != 0;
}

bool rl_op_slices_runs(const rl_graph *g, const rl_nodeinfo *n, rl_arena *mem) {
    const int64_t *x;
    uint32_t count;
    for (uint32_t k = 1; k < n->nin; k++)
        if (rl_has(n->in[k]) && !rl_const_ints(g, n->in[k], mem, &x, &count)) return false;
    if (!rl_has(rl_in(n, 4))) return true;
    bool runs = true;
    for (uint32_t i = 0; i < count; i++) runs = runs && x[i] == 1;
    return runs;
}

bool rl_op_stretches(const rl_nodeinfo *n) {
    static const char *const maps[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"};
    bool whole = !rl_attr_find(n, "coordinate_transformation_mode");
    for (size_t i = 0; i < RL_LEN(maps); i++) whole |= rl_attr_is(n, "coordinate_transformation_mode", maps[i]);
    return whole && (!rl_attr_find(n, "keep_aspect_ratio_policy") || rl_attr_is(n, "keep_aspect_ratio_policy", "stretch"));
}

uint32_t rl_op_scales_slot(const rl_nodeinfo *n) {
    if (n->op == RL_OP_Upsample) return n->since < 9 ? RL_NONE : 1;
    return n->since < 11 ? 1 : 2;
}

const void *rl_op_scales(const rl_graph *g, const rl_nodeinfo *n, uint32_t *count) {
    uint32_t slot = rl_op_scales_slot(n);
    const rl_attr *a = slot == RL_NONE ? rl_attr_find(n, "scales") : NULL;
    if (a && a->kind == RL_ATTR_FLOATS) *count = a->n;
    if (a) return a->kind == RL_ATTR_FLOATS ? a->floats : NULL;
    rl_value v = slot == RL_NONE ? RL_NOVALUE : rl_in(n, slot);
    const rl_const *c = rl_has(v) ? rl_val(g, v)->data : NULL;
    if (!c || !c->data || c->dtype != RL_F32 || c->nbyte == 0) return NULL;
    *count = (uint32_t)(c->nbyte / sizeof(float));
    return c->data;
}

bool rl_op_has_scale_of(const rl_graph *g, const rl_nodeinfo *n, const rl_nodeinfo *other) {
    const rl_valinfo *s = rl_val(g, n->in[1]);
    return s->rank == 0 && s->dtype == RL_F32 && n->in[1].i == other->in[1].i && rl_in(n, 2).i == rl_in(other, 2).i;
}

bool rl_op_has_scale_of_each(const rl_graph *g, const rl_nodeinfo *n, uint32_t slot, uint32_t dim) {
    uint32_t axis;
    const rl_valinfo *s = rl_has(rl_in(n, slot)) ? rl_val(g, n->in[slot]) : NULL;
    return s && s->rank == 1 && s->dim[0] != 1 && rl_op_axis(g, n, &axis) && axis == dim;
}

rl_turned rl_op_turned(const rl_nodeinfo *n, uint32_t input) {
    return (rl_turned){rl_attr_int(n, input ? "transB" : "transA", 0) != 0, rl_attr_int(n, input ? "transBatchB" : "transBatchA", 0) != 0};
}

uint32_t rl_turned_dim(rl_turned t, uint32_t rank, uint32_t i) {
    if (rank < 2) return i;
    if (i + 2 < rank) return i + t.batch;
    bool last = (i + 1 == rank) != t.swapped;
    return last ? rank - 1 : t.batch ? 0 : rank - 2;
}

const rl_layer *rl_op_layer(rl_op op) {
    static const rl_layer all[] = {{RL_OP_Conv, true, 1, 2, 0, {0}},
                                   {RL_OP_QLinearConv, true, 3, 8, 2, {4, 5}},
                                   {RL_OP_MatMul, false, 1, 0, 0, {0}},
                                   {RL_OP_QLinearMatMul, false, 3, 0, 2, {4, 5}},
                                   {RL_OP_Gemm, false, 1, 2, 0, {0}}};
    for (size_t i = 0; i < RL_LEN(all); i++)
        if (all[i].op == op) return &all[i];
    return NULL;
}

const rl_scaled *rl_op_scaled(rl_op op) {
    static const rl_scaled all[] = {{RL_OP_MatMulInteger, 2, {{0, 1}, {2, 3}}, 0, {0}},
                                    {RL_OP_QLinearMatMul, 3, {{0, 3}, {1, 4}, {2, 5}}, 2, {6, 7}},
                                    {RL_OP_ms_MatMulIntegerToFloat, 3, {{0, 1}, {2, 3}, {4, 5}}, 1, {6}}};
    for (size_t i = 0; i < RL_LEN(all); i++)
        if (all[i].op == op) return &all[i];
    return NULL;
}
