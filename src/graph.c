/* Building and editing graphs: see ir.h.
 *
 * The only file that writes rl_valinfo.def, port and use, so that they always agree with the nodes' in, out and cap:
 * value v has a use (n, s) iff n is live and its slot s reads v, and def (n, p) iff n is live and out[p] is v.
 * A removed node keeps its number, with no inputs and outputs.  Nodes and values move when their arrays grow: hold ids, not
 * pointers, across a call that adds. */
#include "ir.h"

#include <stdlib.h>
#include <string.h>

#include "onnx.h"
#include "ops.h"

rl_graph *rl_graph_new(rl_ctx *ctx) {
    rl_arena a;
    rl_arena_init(&a, ctx);
    rl_graph *g = rl_new(&a, rl_graph, 1);
    g->mem = a;
    g->ctx = ctx;
    rl_arena_init(&g->slots, ctx);
    rl_arena_init(&g->uses, ctx);
    rl_arena_init(&g->dims, ctx);
    g->byname.mem = &g->mem;
    g->owner = ++ctx->nowner;
    g->name = rl_internz(ctx, "");
    return g;
}

/* The bodies that g owns, linked through their parent pointers.  A body may hang on several nodes (a removed one and its
 * successor): once linked, its parent is no longer g, so it is not linked twice. */
static rl_graph *take_bodies(rl_graph *g) {
    rl_graph *list = NULL;
    for (uint32_t i = 0; i < g->nnode; i++) {
        for (uint32_t k = 0; k < g->node[i].nattr; k++) {
            rl_graph *b = g->node[i].attr[k].graph;
            if (!b || b->parent != g) continue;
            b->parent = list;
            list = b;
        }
    }
    return list;
}

void rl_graph_free(rl_graph *g) {
    if (!g) return;
    rl_graph_free(g->kept);
    for (uint32_t i = 0; i < g->function.n; i++) rl_graph_free(g->function.p[i]);
    for (rl_graph *b = take_bodies(g), *next; b; b = next) {
        next = b->parent;
        rl_graph_free(b);
    }
    rl_graph_drop(g);
}

void rl_graph_drop(rl_graph *g) {
    if (g->onnx) rl_onnx_free(g->onnx);
    rl_arena_free(&g->slots);
    rl_arena_free(&g->uses);
    rl_arena_free(&g->dims);
    rl_arena a = g->mem; /* g itself is in it */
    rl_arena_free(&a);
}

/* ---- values ---- */

static uint64_t key_of(rl_str name) {
    return (uint64_t)(uintptr_t)name;
}

rl_value rl_graph_find(const rl_graph *g, rl_str name) {
    if (!name) return RL_NOVALUE;
    const rl_note *note = rl_str_note(name);
    return (rl_value){note->owner == g->owner ? note->value : rl_hash_get(&g->byname, key_of(name))};
}

/* The value that has this name from now on; RL_NOVALUE: none. */
static void set_name(rl_graph *g, rl_str name, rl_value v) {
    rl_note *note = rl_str_note(name);
    if (note->owner == 0) note->owner = g->owner;
    if (note->owner == g->owner) note->value = v.i;
    else rl_hash_put(&g->byname, key_of(name), v.i);
}

rl_value rl_graph_value(rl_graph *g, rl_str name) {
    rl_value v = rl_graph_find(g, name);
    if (rl_has(v)) return v;
    if (g->nval == g->valcap) {
        uint32_t cap = g->valcap ? g->valcap * 2 : 32;
        g->val = rl_regrow(&g->mem, g->val, g->nval, cap, sizeof *g->val);
        g->valcap = cap;
    }
    v.i = g->nval++;
    g->val[v.i] = (rl_valinfo){.name = name, .rank = RL_NORANK, .def = RL_NONODE};
    if (name) set_name(g, name, v);
    return v;
}

rl_value rl_graph_input(const rl_graph *g, rl_str name) {
    for (uint32_t i = 0; i < g->input.n; i++)
        if (rl_val(g, g->input.p[i])->name == name) return g->input.p[i];
    return RL_NOVALUE;
}

void rl_graph_rename(rl_graph *g, rl_value v, rl_str name) {
    rl_valinfo *x = rl_val(g, v);
    rl_str old = x->name;
    if (old == name) return;
    if (old) set_name(g, old, RL_NOVALUE);
    x->name = name;
    if (name) set_name(g, name, v);
    for (uint32_t i = 0; old && i < g->nnode; i++)
        for (uint32_t k = 0; k < g->node[i].nattr; k++) {
            rl_graph *body = g->node[i].attr[k].graph;
            rl_value captured = body ? rl_graph_find(body, old) : RL_NOVALUE;
            if (rl_has(captured) && rl_val(body, captured)->is_outer) rl_graph_rename(body, captured, name);
        }
}

void rl_graph_set_type(rl_graph *g, rl_value v, rl_dtype t, uint32_t rank, const rl_dim *dim) {
    rl_valinfo *x = rl_val(g, v);
    x->dtype = t;
    x->rank = rank;
    x->dim = rank == RL_NORANK || rank == 0 ? NULL : rl_copy(&g->dims, dim, rank * sizeof *dim);
}

rl_value rl_graph_const(rl_graph *g, rl_str name, rl_dtype t, uint32_t rank, const int64_t *dim, const void *data, size_t nbyte) {
    rl_value v = rl_graph_value(g, name);
    rl_const *c = rl_new(&g->mem, rl_const, 1);
    *c = (rl_const){t, rank, rl_copy(&g->mem, dim, rank * sizeof *dim), data, nbyte};
    rl_graph_set_type(g, v, t, rank, c->dim);
    rl_valinfo *x = rl_val(g, v);
    x->data = c;
    if (!x->is_init) rl_push(&g->mem, g->init, v);
    x->is_init = true;
    return v;
}

rl_value rl_graph_permuted(rl_graph *g, rl_value v, uint32_t dim, uint32_t n, const int64_t *from) {
    const rl_const *c = rl_val(g, v)->data;
    size_t inner = rl_dtype_bits(c->dtype) / 8, outer = 1;
    for (uint32_t i = 0; i < dim; i++) outer *= (size_t)c->dim[i];
    for (uint32_t i = dim + 1; i < c->rank; i++) inner *= (size_t)c->dim[i];
    uint8_t *to = rl_alloc(&g->mem, RL_MAX(c->nbyte, 1u));
    const uint8_t *old = c->data;
    for (size_t o = 0; o < outer; o++)
        for (uint32_t i = 0; i < n; i++) memcpy(to + (o * n + i) * inner, old + (o * n + (size_t)from[i]) * inner, inner);
    rl_str stem = rl_val(g, v)->name;
    return rl_graph_const(g, rl_graph_fresh_name(g, stem ? stem : "rl"), c->dtype, c->rank, c->dim, to, c->nbyte);
}

rl_value rl_graph_const_i64(rl_graph *g, rl_str name, uint32_t n, const int64_t *x) {
    int64_t dim = n;
    return rl_graph_const(g, name, RL_I64, 1, &dim, rl_copy(&g->mem, x, n * sizeof *x), n * sizeof *x);
}

void rl_graph_set_constant(rl_graph *g, const rl_nodeinfo *n) {
    if (n->nout != 1 || n->nattr != 1 || !rl_has(n->out[0])) return;
    const rl_attr *a = &n->attr[0];
    if (strncmp(a->name, "value", 5) != 0) return;
    rl_const *c = rl_new(&g->mem, rl_const, 1);
    int64_t *dim = rl_new(&g->mem, int64_t, 1);
    *dim = a->n;
    *c = (rl_const){.dim = dim};
    if (a->kind == RL_ATTR_TENSOR) *c = *a->tensor;
    else if (a->kind == RL_ATTR_INT) *c = (rl_const){RL_I64, 0, dim, &a->i, 8};
    else if (a->kind == RL_ATTR_FLOAT) *c = (rl_const){RL_F32, 0, dim, &a->f, 4};
    else if (a->kind == RL_ATTR_INTS) *c = (rl_const){RL_I64, 1, dim, a->ints, a->n * sizeof *a->ints};
    else if (a->kind == RL_ATTR_FLOATS) *c = (rl_const){RL_F32, 1, dim, a->floats, a->n * sizeof *a->floats};
    else if (a->kind == RL_ATTR_STRING) *c = (rl_const){RL_STRING, 0, dim, NULL, 0};
    else if (a->kind == RL_ATTR_STRINGS) *c = (rl_const){RL_STRING, 1, dim, NULL, 0};
    else return;
    rl_graph_set_type(g, n->out[0], c->dtype, c->rank, c->dim);
    rl_val(g, n->out[0])->data = c->data ? c : NULL;
}

/* ---- uses ---- */

static void add_use(rl_graph *g, rl_value v, rl_node n, uint32_t slot) {
    if (!rl_has(v)) return;
    rl_valinfo *x = rl_val(g, v);
    if (x->nuse == x->usecap) {
        uint32_t cap = x->usecap ? x->usecap * 2 : 2;
        x->use = rl_grow(&g->uses, x->use, x->nuse, cap, sizeof *x->use);
        x->usecap = cap;
    }
    x->use[x->nuse++] = (rl_use){n, slot};
}

static void drop_use(rl_graph *g, rl_value v, rl_node n, uint32_t slot) {
    if (!rl_has(v)) return;
    rl_valinfo *x = rl_val(g, v);
    for (uint32_t i = x->nuse; i-- > 0;) {
        if (x->use[i].node.i != n.i || x->use[i].slot != slot) continue;
        x->nuse--;
        memmove(&x->use[i], &x->use[i + 1], (x->nuse - i) * sizeof *x->use);
        return;
    }
}

/* ---- nodes ---- */

static rl_value *copy_values(rl_graph *g, const rl_value *v, uint32_t n) {
    return n ? rl_copy(&g->mem, v, n * sizeof *v) : NULL;
}

static void set_type_names(rl_graph *g, rl_nodeinfo *x) {
    x->domain = rl_internz(g->ctx, rl_optable[x->op].domain);
    x->type = rl_internz(g->ctx, rl_optable[x->op].type);
    x->since = rl_opset_of(g, x->domain);
}

rl_node rl_graph_add(rl_graph *g, rl_op op, const char *name, uint32_t nin, const rl_value *in, uint32_t nout, const rl_value *out) {
    if (g->nnode == g->nodecap) {
        uint32_t cap = g->nodecap ? g->nodecap * 2 : 32;
        g->node = rl_regrow(&g->mem, g->node, g->nnode, cap, sizeof *g->node);
        g->nodecap = cap;
    }
    rl_node n = {g->nnode++};
    rl_nodeinfo *x = rl_nod(g, n);
    *x = (rl_nodeinfo){.op = op, .name = name, .origin = RL_NONE, .bare = RL_OP_OPAQUE, .nin = nin, .nout = nout};
    x->in = rl_new(&g->slots, rl_value, (size_t)nin + nout);
    x->out = x->in + nin;
    if (nin) memcpy(x->in, in, nin * sizeof *in);
    if (nout) memcpy(x->out, out, nout * sizeof *out);
    if (op != RL_OP_OPAQUE) set_type_names(g, x);
    for (uint32_t i = 0; i < nin; i++) add_use(g, x->in[i], n, i);
    for (uint32_t i = 0; i < nout; i++) {
        if (!rl_has(x->out[i])) continue;
        rl_val(g, x->out[i])->def = n;
        rl_val(g, x->out[i])->port = i;
    }
    rl_push(&g->mem, g->order, n);
    return n;
}

void rl_graph_set_attrs(rl_graph *g, rl_node n, const rl_attr *attr, uint32_t nattr) {
    rl_nodeinfo *x = rl_nod(g, n);
    x->attr = nattr ? rl_copy(&g->mem, attr, nattr * sizeof *attr) : NULL;
    x->nattr = nattr;
    x->raw = (rl_span){0};
}

rl_node rl_graph_add_listed(rl_graph *g, rl_op op, const char *name, rl_value x, const char *list, uint32_t n, const int64_t *number, const rl_attr *more,
                            uint32_t nout, const rl_value *out) {
    bool as_input = rl_opset_of(g, rl_internz(g->ctx, "")) >= 13;
    rl_value in[2] = {x, as_input ? rl_graph_const_i64(g, rl_graph_fresh_name(g, "rl_sizes"), n, number) : RL_NOVALUE};
    rl_node made = rl_graph_add(g, op, name, as_input ? 2 : 1, in, nout, out);
    rl_attr attr[2];
    uint32_t nattr = 0;
    if (more) attr[nattr++] = *more;
    if (!as_input) attr[nattr++] = rl_attr_of_ints(g, list, number, n);
    rl_graph_set_attrs(g, made, attr, nattr);
    return made;
}

void rl_graph_set_input(rl_graph *g, rl_node n, uint32_t slot, rl_value v) {
    rl_nodeinfo *x = rl_nod(g, n);
    if (slot >= x->nin || rl_same(x->in[slot], v)) return;
    drop_use(g, x->in[slot], n, slot);
    x->in[slot] = v;
    x->raw = (rl_span){0};
    add_use(g, v, n, slot);
}

void rl_graph_set_output(rl_graph *g, rl_node n, uint32_t slot, rl_value v) {
    rl_nodeinfo *x = rl_nod(g, n);
    rl_val(g, x->out[slot])->def = RL_NONODE;
    rl_val(g, v)->def = n;
    rl_val(g, v)->port = slot;
    x->out[slot] = v;
    x->raw = (rl_span){0};
}

void rl_graph_set_captures(rl_graph *g, rl_node n, const rl_value *v, uint32_t nv) {
    rl_nodeinfo *x = rl_nod(g, n);
    for (uint32_t i = 0; i < x->ncap; i++) drop_use(g, x->cap[i], n, x->nin + i);
    x->cap = copy_values(g, v, nv);
    x->ncap = nv;
    for (uint32_t i = 0; i < nv; i++) add_use(g, v[i], n, x->nin + i);
}

void rl_graph_replace_uses(rl_graph *g, rl_value old, rl_value now) {
    if (rl_same(old, now)) return;
    rl_valinfo *x = rl_val(g, old);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < x->nuse; i++) {
        rl_use u = x->use[i];
        rl_nodeinfo *m = rl_nod(g, u.node);
        if (u.slot >= m->nin) {
            x->use[kept++] = u;
            continue;
        }
        m->in[u.slot] = now;
        m->raw = (rl_span){0};
        add_use(g, now, u.node, u.slot);
    }
    x->nuse = kept;
}

static void detach(rl_graph *g, rl_node n) {
    rl_nodeinfo *x = rl_nod(g, n);
    for (uint32_t i = 0; i < x->nin; i++) drop_use(g, x->in[i], n, i);
    for (uint32_t i = 0; i < x->ncap; i++) drop_use(g, x->cap[i], n, x->nin + i);
    for (uint32_t i = 0; i < x->nout; i++)
        if (rl_has(x->out[i]) && rl_val(g, x->out[i])->def.i == n.i) rl_val(g, x->out[i])->def = RL_NONODE;
    x->nin = x->nout = x->ncap = 0;
}

void rl_graph_remove(rl_graph *g, rl_node n) {
    detach(g, n);
    for (uint32_t i = g->order.n; i-- > 0;) {
        if (g->order.p[i].i != n.i) continue;
        g->order.n--;
        memmove(&g->order.p[i], &g->order.p[i + 1], (g->order.n - i) * sizeof *g->order.p);
        return;
    }
}

void rl_graph_remove_all(rl_graph *g, const bool *dead) {
    uint32_t n = 0;
    if (!g->nnode || !memchr(dead, 1, g->nnode)) return;
    for (uint32_t i = 0; i < g->order.n; i++) {
        rl_node x = g->order.p[i];
        if (dead[x.i]) detach(g, x);
        else g->order.p[n++] = x;
    }
    g->order.n = n;
}

/* ---- names ---- */

static bool name_used(const rl_graph *g, rl_str name) {
    if (rl_has(rl_graph_find(g, name))) return true;
    for (uint32_t i = 0; i < g->nnode; i++)
        for (uint32_t k = 0; k < g->node[i].nattr; k++)
            if (g->node[i].attr[k].graph && name_used(g->node[i].attr[k].graph, name)) return true;
    return false;
}

/* "_" and the number, without a 0 behind. */
static size_t put_suffix(char *to, uint32_t x) {
    char digit[10];
    size_t n = 0, len = 0;
    do digit[n++] = (char)('0' + x % 10);
    while (x /= 10);
    to[len++] = '_';
    while (n) to[len++] = digit[--n];
    return len;
}

/* One more than the last number of a node that was named here before: node names must differ, too, and nobody can look them up. */
static uint32_t after_own_names(const rl_graph *g) {
    uint32_t next = 0;
    for (uint32_t i = 0; i < g->nnode; i++) {
        const rl_nodeinfo *n = &g->node[i];
        const char *digits = n->name && strncmp(n->name, "rl_", 3) == 0 ? strrchr(n->name, '_') + 1 : "";
        size_t len = strlen(digits);
        if (len && len < 9 && strspn(digits, "0123456789") == len) next = RL_MAX(next, (uint32_t)strtoul(digits, NULL, 10) + 1);
        for (uint32_t k = 0; k < n->nattr; k++)
            if (n->attr[k].graph) next = RL_MAX(next, after_own_names(n->attr[k].graph));
    }
    return next;
}

/* Names must differ from those of all bodies too.  What was not even interned nobody uses: only others are looked for. */
rl_str rl_graph_fresh_name(rl_graph *g, const char *stem) {
    rl_graph *top = g;
    rl_ctx *ctx = g->ctx;
    while (top->parent) top = top->parent;
    if (top->nfresh == 0) top->nfresh = after_own_names(top);
    char small[256], *s = small;
    size_t n = strlen(stem);
    if (n + 11 > sizeof small) s = rl_alloc(&ctx->mem, n + 11);
    memcpy(s, stem, n);
    for (;;) {
        uint32_t known = ctx->strings.n;
        rl_str name = rl_intern(ctx, s, n + put_suffix(s + n, top->nfresh++));
        if (ctx->strings.n > known || !name_used(top, name)) return name;
    }
}

/* ---- attributes, constants, opsets ---- */

const rl_attr *rl_attr_find(const rl_nodeinfo *n, const char *name) {
    for (uint32_t i = 0; i < n->nattr; i++)
        if (strcmp(n->attr[i].name, name) == 0) return &n->attr[i];
    return NULL;
}

bool rl_has_body(const rl_nodeinfo *n) {
    for (uint32_t i = 0; i < n->nattr; i++)
        if (n->attr[i].graph) return true;
    return false;
}

const rl_attr *rl_attr_ints(const rl_nodeinfo *n, const char *name) {
    const rl_attr *a = rl_attr_find(n, name);
    return a && a->kind == RL_ATTR_INTS ? a : NULL;
}

bool rl_attr_all(const rl_nodeinfo *n, const char *name, int64_t x) {
    const rl_attr *a = rl_attr_ints(n, name);
    for (uint32_t i = 0; a && i < a->n; i++)
        if (a->ints[i] != x) return false;
    return true;
}

int64_t rl_attr_int(const rl_nodeinfo *n, const char *name, int64_t dflt) {
    const rl_attr *a = rl_attr_find(n, name);
    return a && a->kind == RL_ATTR_INT ? a->i : dflt;
}

rl_dtype rl_attr_dtype(const rl_nodeinfo *n, const char *name, rl_dtype dflt) {
    int64_t t = rl_attr_int(n, name, 0);
    if (t == 0) return dflt;
    return t > 0 && t <= RL_I2 ? (rl_dtype)t : RL_UNDEF;
}

float rl_attr_float(const rl_nodeinfo *n, const char *name, float dflt) {
    const rl_attr *a = rl_attr_find(n, name);
    return a && a->kind == RL_ATTR_FLOAT ? a->f : dflt;
}

bool rl_attr_is(const rl_nodeinfo *n, const char *name, const char *value) {
    const rl_attr *a = rl_attr_find(n, name);
    size_t len = strlen(value);
    return a && a->kind == RL_ATTR_STRING && a->s.n == len && rl_same_bytes(a->s.p, value, len);
}

rl_attr rl_attr_of_int(rl_graph *g, const char *name, int64_t x) {
    return (rl_attr){.name = rl_internz(g->ctx, name), .kind = RL_ATTR_INT, .i = x};
}

rl_attr rl_attr_of_string(rl_graph *g, const char *name, const char *s, size_t n) {
    return (rl_attr){.name = rl_internz(g->ctx, name), .kind = RL_ATTR_STRING, .s = {rl_copy(&g->mem, s, n), n}};
}

rl_attr rl_attr_of_ints(rl_graph *g, const char *name, const int64_t *x, uint32_t n) {
    return (rl_attr){.name = rl_internz(g->ctx, name), .kind = RL_ATTR_INTS, .n = n, .ints = rl_copy(&g->mem, x, n * sizeof *x)};
}

static bool same_content(const rl_const *a, const rl_const *b) {
    return a->dtype == b->dtype && a->rank == b->rank && a->nbyte == b->nbyte && rl_same_bytes(a->dim, b->dim, a->rank * sizeof *a->dim)
           && rl_same_bytes(a->data, b->data, a->nbyte);
}

rl_value rl_graph_twin(const rl_graph *g, const rl_hash *index, rl_value v, uint64_t *key) {
    const rl_const *c = rl_val(g, v)->data;
    *key = rl_hash_bytes(c->data, c->nbyte) ^ c->dtype;
    for (uint32_t w; (w = rl_hash_get(index, *key)) != RL_NONE; ++*key)
        if (same_content(g->val[w].data, c)) return (rl_value){w};
    return RL_NOVALUE;
}

bool rl_const_ints(const rl_graph *g, rl_value v, rl_arena *mem, const int64_t **x, uint32_t *n) {
    const rl_const *c = rl_has(v) ? rl_val(g, v)->data : NULL;
    if (!c || !c->data || (c->dtype != RL_I32 && c->dtype != RL_I64)) return false;
    size_t size = c->dtype == RL_I32 ? 4 : 8, count = c->nbyte / size;
    if (count > UINT32_MAX - 1) return false;
    int64_t *out = rl_new(mem, int64_t, count);
    for (size_t i = 0; i < count; i++) {
        const char *p = (const char *)c->data + i * size; /* a mapped file is not aligned */
        int32_t narrow;
        if (size == 8) {
            memcpy(&out[i], p, 8);
        } else {
            memcpy(&narrow, p, 4);
            out[i] = narrow;
        }
    }
    *x = out;
    *n = (uint32_t)count;
    return true;
}

static const char *plain_domain(rl_str domain) {
    return !domain || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

/* Only the main graph imports opsets. */
uint32_t rl_opset_of(const rl_graph *g, rl_str domain) {
    while (g->parent && !g->opset.n) g = g->parent;
    for (uint32_t i = 0; i < g->opset.n; i++)
        if (strcmp(plain_domain(g->opset.p[i].domain), plain_domain(domain)) == 0) return (uint32_t)g->opset.p[i].version;
    return 0;
}

void rl_graph_import(rl_graph *g, rl_str domain, int64_t version) {
    while (g->parent) g = g->parent;
    if (!rl_opset_of(g, domain)) rl_push(&g->mem, g->opset, ((rl_opset){domain, version}));
}
