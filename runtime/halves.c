/* Nodes of float16 and bfloat16 computed as float32, for which there are fast kernels.  What they make stays float32 where such a node reads it, each
 * number rounded to the type that the graph says (rl_graph's `rounded`), by the step that makes it: steps of joined nodes round once.
 *
 *   x f16 -> Conv -> y f16 -> Relu -> z f16      becomes      x -> Cast -> f32 -> Conv -> y f32 -> Relu -> z f32 -> Cast -> f16
 *
 * A node is computed so if the fast kernel of its op is for float32 alone; or, what comes so to any other, if that is one that computes all types alike. */
#include "exec.h"
#include "fast.h"
#include "fuse.h"
#include "kernels.h"

typedef struct {
    rl_graph *g;
    uint32_t nval;
    rl_value *as; /* [nval] the floats that stand for a value, RL_NOVALUE: none do */
    bool *made;   /* [nval] by a node that makes them */
} widener;

static bool is_half(rl_dtype t) {
    return t == RL_F16 || t == RL_BF16;
}

static rl_dtype type_of(const rl_graph *g, rl_value v) {
    return rl_has(v) ? rl_val(g, v)->dtype : RL_UNDEF;
}

/* Has it an output whose type is not that of its inputs, or a body, or does it compute otherwise in a shorter type? */
static bool has_own_types(const rl_graph *g, const rl_nodeinfo *n) {
    static const char *const names[] = {"to", "dtype", "output_dtype"};
    bool own = n->ncap || n->op == RL_OP_OPAQUE || n->op == RL_OP_CastLike || n->op == RL_OP_QuantizeLinear;
    for (uint32_t i = 0; i < RL_LEN(names); i++) own = own || is_half(rl_attr_dtype(n, names[i], RL_UNDEF));
    for (uint32_t i = 0; i < n->nattr; i++) own = own || n->attr[i].graph;
    for (uint32_t i = 0; i < n->nout; i++) own = own || (rl_has(n->out[i]) && type_of(g, n->out[i]) == RL_UNDEF);
    return own;
}

static bool is_widened(const widener *a, const rl_nodeinfo *n) {
    const rl_kernel *k = rl_kernel_find(&rl_backend_fast, n);
    rl_dtype first = type_of(a->g, rl_in(n, 0));
    bool reads = false;
    if (!k || has_own_types(a->g, n)) return false;
    if (is_half(first) && k->types & RL_T(RL_F32) && !(k->types & RL_T(first))) return true;
    for (uint32_t i = 0; i < n->nin; i++) reads = reads || (rl_has(n->in[i]) && n->in[i].i < a->nval && a->made[n->in[i].i]);
    return reads && (!is_half(first) || k->types == RL_ANYTYPE || k->types & RL_T(RL_F32));
}

static rl_value floats_like(rl_graph *g, rl_value v) {
    rl_value f = rl_graph_value(g, NULL);
    const rl_valinfo *x = rl_val(g, v);
    rl_graph_set_type(g, f, RL_F32, x->rank, x->dim);
    return f;
}

static void add_cast(rl_graph *g, rl_value from, rl_value to) {
    rl_attr type = rl_attr_of_int(g, "to", type_of(g, to));
    rl_graph_set_attrs(g, rl_graph_add(g, RL_OP_Cast, NULL, 1, &from, 1, &to), &type, 1);
}

static void widen_inputs(const widener *a, rl_node node) {
    for (uint32_t i = 0, n = rl_nod(a->g, node)->nin; i < n; i++) {
        rl_value v = rl_nod(a->g, node)->in[i];
        if (!is_half(type_of(a->g, v))) continue;
        if (!rl_has(a->as[v.i])) {
            a->as[v.i] = floats_like(a->g, v);
            add_cast(a->g, v, a->as[v.i]);
        }
        rl_graph_set_input(a->g, node, i, a->as[v.i]);
    }
}

static void widen_outputs(const widener *a, rl_node node) {
    for (uint32_t i = 0, n = rl_nod(a->g, node)->nout; i < n; i++) {
        rl_value v = rl_nod(a->g, node)->out[i];
        if (!is_half(type_of(a->g, v))) continue;
        a->as[v.i] = floats_like(a->g, v);
        a->made[v.i] = true;
        rl_graph_set_output(a->g, node, i, a->as[v.i]);
    }
}

/* What others read, and the caller, in its own type; and what each is rounded to. */
static void end(const widener *a) {
    rl_graph *g = a->g;
    rl_dtype *rounded = rl_new(&g->mem, rl_dtype, g->nval);
    for (uint32_t i = 0; i < a->nval; i++) {
        if (!rl_has(a->as[i])) continue;
        rounded[a->as[i].i] = g->val[i].dtype;
        if (a->made[i] && (g->val[i].nuse || g->val[i].is_output)) add_cast(g, a->as[i], (rl_value){i});
    }
    g->rounded = rounded;
    g->nrounded = g->nval;
}

rl_status rl_compute_as_floats(rl_graph *g) {
    rl_arena tmp;
    widener a = {.g = g, .nval = g->nval};
    uint32_t nnode = g->nnode;
    rl_arena_init(&tmp, g->ctx);
    a.as = rl_new(&tmp, rl_value, a.nval);
    a.made = rl_new(&tmp, bool, a.nval);
    for (uint32_t i = 0; i < a.nval; i++) a.as[i] = RL_NOVALUE;
    for (uint32_t i = 0, n = g->order.n; i < n; i++) { /* what is added comes behind */
        rl_node node = g->order.p[i];
        if (!is_widened(&a, rl_nod(g, node))) continue;
        widen_inputs(&a, node);
        widen_outputs(&a, node);
    }
    if (g->nnode > nnode) end(&a);
    rl_arena_free(&tmp);
    return g->nnode > nnode ? rl_graph_sort(g) : RL_OK;
}
