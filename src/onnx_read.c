/* Reads ONNX models: see onnx.h.
 *
 *   map the file -> scan the whole tree of messages (wire.h) -> walk the graph's fields -> check names and order
 *
 * Within a graph: inputs, outputs and initializers first, then nodes in file order, whose inputs may name values that come
 * later.  At the end what nobody made is a value of the graph around it (in a body), or an error.
 *
 * A failure's message gets its parts from the inside out: tensor, attribute, node; rl_onnx_read adds the path. */
#include <string.h>

#include "onnx.pb-c.h"
#include "onnx_read.h"

/* ---- graphs ---- */

/* What no node, input or initializer gives: a value of the graph around, or an error. */
static rl_status find_sources(rl_level *l) {
    rl_graph *g = l->g;
    for (uint32_t i = 0; i < g->nval; i++) {
        rl_valinfo *x = &g->val[i];
        if (x->def.i != RL_NONE || x->is_input || x->raw.p) continue;
        if (g->parent) {
            x->is_outer = true;
            rl_push(&g->mem, g->outer, (rl_value){i});
            continue;
        }
        if (!x->nuse) return rl_fail(l->r->ctx, RL_EMODEL, "graph output '%.100s': nothing makes it", x->name);
        const rl_nodeinfo *n = rl_nod(g, x->use[0].node);
        return rl_fail(l->r->ctx, RL_EMODEL, "%s: %s '%.100s' is defined nowhere",
                       rl_label_node(rl_span_of(n->name), rl_span_of(n->type), n->origin).s, x->use[0].slot < n->nin ? "input" : "a body's value",
                       x->name);
    }
    return RL_OK;
}

static bool in_order(const rl_graph *g) {
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        for (uint32_t s = 0; s < n->nin + n->ncap; s++) {
            rl_value v = s < n->nin ? n->in[s] : n->cap[s - n->nin];
            if (rl_has(v) && rl_val(g, v)->def.i != RL_NONE && rl_val(g, v)->def.i >= i) return false;
        }
    }
    return true;
}

/* Node ids are places in the file: every field is a node, in order. */
static rl_status sort_nodes(rl_graph *g) {
    if (in_order(g)) return RL_OK;
    RL_TRY(rl_graph_sort(g));
    g->onnx->order = rl_copy(&g->mem, g->order.p, g->order.n * sizeof *g->order.p);
    return RL_OK;
}

/* Where the fields of one number lie, from the first to behind the last, and how many. */
typedef struct { rl_span in; uint32_t n; } range;
enum { NFIELD = 32 };

static void find_ranges(rl_span bytes, range *r) {
    rl_wire w = rl_wire_of(bytes);
    for (rl_field f; rl_wire_next(&w, &f);) {
        range *x = &r[f.number < NFIELD ? f.number : 0];
        if (!x->in.p) x->in.p = f.all.p;
        x->in.n = (size_t)(w.p - x->in.p);
        x->n++;
    }
}

/* Fields that are read soon: the slots of the names in them come from memory meanwhile.  names: which of their fields these are, as bits. */
enum { AHEAD = 3 };
typedef struct { rl_wire w; uint32_t number, names, n; } lookahead;

static void fetch_names(const rl_ctx *ctx, lookahead *x, uint32_t until) {
    for (rl_field f; x->n < until && rl_wire_next(&x->w, &f);) {
        if (f.number != x->number) continue;
        x->n++;
        rl_wire in = rl_wire_of(f.body);
        for (rl_field y; rl_wire_next(&in, &y);)
            if (y.number < 32 && x->names & BIT(y.number)) rl_intern_soon(ctx, (const char *)y.body.p, y.body.n);
    }
}

typedef rl_status field_reader(rl_level *l, rl_span bytes);

static rl_status each_field(rl_level *l, rl_span bytes, uint32_t number, uint32_t names, field_reader *read) {
    uint32_t k = 0;
    rl_wire w = rl_wire_of(bytes);
    lookahead soon = {w, number, names, 0};
    for (rl_field f; rl_wire_next(&w, &f);) {
        if (f.number != number) continue;
        if (names) fetch_names(l->r->ctx, &soon, ++k + AHEAD);
        rl_level_clean(l);
        RL_TRY(read(l, f.body));
    }
    return RL_OK;
}

static rl_status read_nodes(rl_level *l, range nodes) {
    uint32_t k = 0, number = rl_onnx_node_field(l->g);
    /* Room for all at once, and for as many by the passes; a node that is none soon ends the loop, so its bytes bound what it is worth. */
    l->g->nodecap = (uint32_t)RL_MIN(2 * (size_t)nodes.n, nodes.in.n / MIN_NODE);
    l->g->node = rl_new(&l->g->mem, rl_nodeinfo, l->g->nodecap);
    rl_wire w = rl_wire_of(nodes.in);
    lookahead soon = {w, number, BIT(NODE_INPUT) | BIT(NODE_OUTPUT), 0};
    for (rl_field f; rl_wire_next(&w, &f);) {
        if (f.number != number) continue;
        fetch_names(l->r->ctx, &soon, k + AHEAD);
        RL_TRY(rl_read_node(l, f.body, k++));
    }
    l->g->onnx->nnode = k;
    return RL_OK;
}

/* Inputs that turned out to be constants: see rl_onnx_port. */
static void take_weights(rl_graph *g) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->input.n; i++) {
        rl_value v = g->input.p[i];
        bool weight = !rl_val(g, v)->is_input;
        rl_push(&g->mem, g->onnx->weight, weight ? v : RL_NOVALUE);
        if (!weight) g->input.p[n++] = v;
    }
    g->input.n = n;
}

static rl_status read_fields(rl_level *l, rl_span bytes) {
    range part[NFIELD] = {0};
    size_t n = 0;
    find_ranges(bytes, part);
    for (uint32_t i = 0; i < NFIELD; i++) n += part[i].n;
    rl_wire w = rl_wire_of(part[GRAPH_NAME].in);
    for (rl_field f; rl_wire_next(&w, &f);)
        if (f.number == GRAPH_NAME) l->g->name = rl_intern(l->r->ctx, (const char *)f.body.p, f.body.n);
    /* Most fields make a value, and the passes as many again.  Bounded as in read_nodes. */
    l->g->valcap = (uint32_t)RL_MIN(2 * n, bytes.n / MIN_NODE);
    l->g->val = rl_new(&l->g->mem, rl_valinfo, l->g->valcap);
    rl_intern_expect(l->r->ctx, l->g->valcap / 4 * 3);
    RL_TRY(each_field(l, part[GRAPH_INPUT].in, GRAPH_INPUT, 0, rl_read_input));
    RL_TRY(each_field(l, part[GRAPH_INITIALIZER].in, GRAPH_INITIALIZER, BIT(TENSOR_NAME), rl_read_initializer));
    take_weights(l->g);
    RL_TRY(each_field(l, part[GRAPH_SPARSE_INITIALIZER].in, GRAPH_SPARSE_INITIALIZER, 0, rl_read_sparse));
    RL_TRY(each_field(l, part[GRAPH_OUTPUT].in, GRAPH_OUTPUT, 0, rl_read_output));
    RL_TRY(read_nodes(l, part[GRAPH_NODE]));
    RL_TRY(each_field(l, part[GRAPH_VALUE_INFO].in, GRAPH_VALUE_INFO, 0, rl_read_hint));
    RL_TRY(find_sources(l));
    return sort_nodes(l->g);
}

static rl_status read_into(rl_reader *r, rl_graph *g, rl_span bytes, uint32_t depth) {
    rl_level l;
    rl_level_open(&l, r, g, depth);
    g->onnx->graph = bytes;
    rl_status status = read_fields(&l, bytes);
    rl_level_close(&l);
    return status;
}

rl_status rl_read_graph(rl_reader *r, rl_graph *parent, rl_span bytes, uint32_t depth, rl_graph **out) {
    if (depth * 3 > r->opt.max_depth)
        return rl_fail(r->ctx, RL_ELIMIT, "bodies nested deeper than the limit of %u", r->opt.max_depth / 3);
    if (++r->nbody > r->max_body)
        return rl_fail(r->ctx, RL_ELIMIT, "over the limit of %llu bodies", (unsigned long long)r->max_body);
    rl_graph *g = rl_graph_new(r->ctx);
    *out = g;
    g->parent = parent;
    g->ir_version = r->main->ir_version;
    g->onnx = rl_new(&g->mem, struct rl_onnx, 1);
    g->onnx->bytes = bytes;
    rl_status status = read_into(r, g, bytes, depth);
    if (status == RL_OK) return RL_OK;
    rl_graph_free(g);
    *out = NULL;
    return status;
}

/* ---- the model ---- */

static rl_status read_opset(rl_level *l, rl_span bytes) {
    rl_graph *g = l->g;
    Onnx__OperatorSetIdProto *p =
        rl_level_unpack(l, &onnx__operator_set_id_proto__descriptor, rl_level_pick(l, bytes, BIT(1) | BIT(2)));
    if (!p) return rl_fail(l->r->ctx, RL_EMODEL, "opset_import: is damaged");
    rl_opset s = {rl_reader_domain(l->r, rl_span_of(p->domain)), p->version};
    if (p->version < (*s.domain ? 0 : 1) || p->version > INT32_MAX)
        return rl_fail(l->r->ctx, RL_EMODEL, "opset_import: version %lld of the domain '%.100s'", (long long)p->version,
                       s.domain);
    for (uint32_t i = 0; i < g->opset.n; i++) {
        if (g->opset.p[i].domain != s.domain) continue;
        g->opset.p[i] = s;
        return RL_OK;
    }
    if (g->opset.n >= MAX_OPSET)
        return rl_fail(l->r->ctx, RL_ELIMIT, "opset_import: over the limit of %d domains", MAX_OPSET);
    rl_push(&g->mem, g->opset, s);
    return RL_OK;
}

static rl_status read_function(rl_level *l, rl_span bytes) {
    Onnx__FunctionProto *p = rl_level_unpack(l, &onnx__function_proto__descriptor,
                                             rl_level_pick(l, bytes, BIT(FUNCTION_NAME) | BIT(FUNCTION_DOMAIN)));
    if (!p) return rl_fail(l->r->ctx, RL_EMODEL, "a function is damaged");
    if (!p->name || !*p->name) return rl_fail(l->r->ctx, RL_EMODEL, "a function has no name");
    if (l->r->onnx->function.n >= MAX_FUNCTION)
        return rl_fail(l->r->ctx, RL_ELIMIT, "over the limit of %d functions", MAX_FUNCTION);
    rl_str key = rl_internf(l->r->ctx, "%s\n%s", rl_reader_domain(l->r, rl_span_of(p->domain)), p->name);
    rl_hash_put(&l->r->onnx->function, (uint64_t)(uintptr_t)key, 1);
    return RL_OK;
}

static void read_ports(rl_level *l, rl_span bytes) {
    rl_graph *g = l->g;
    rl_wire w = rl_wire_of(bytes);
    for (rl_field f; rl_wire_next(&w, &f);) {
        if (f.number != FUNCTION_INPUT && f.number != FUNCTION_OUTPUT) continue;
        rl_value v = rl_graph_value(g, rl_intern(l->r->ctx, (const char *)f.body.p, f.body.n));
        if (f.number == FUNCTION_INPUT) {
            rl_val(g, v)->is_input = true;
            rl_push(&g->mem, g->input, v);
        } else {
            rl_val(g, v)->is_output = true;
            rl_push(&g->mem, g->output, v);
        }
    }
}

/* An attribute that has a value where a call gives none. */
static rl_status read_given(rl_level *l, rl_span bytes) {
    struct { rl_attr *p; uint32_t n, cap; } given = {(rl_attr *)l->g->given, l->g->ngiven, l->g->ngiven};
    rl_hash captured = {.mem = &l->scratch};
    rl_attr a;
    RL_TRY(rl_read_attr(l, bytes, &a, &captured));
    if (a.graph) rl_graph_free(a.graph);
    a.graph = NULL;
    rl_push(&l->g->mem, given, a);
    l->g->given = given.p;
    l->g->ngiven = given.n;
    return RL_OK;
}

static rl_status read_function_fields(rl_level *l, rl_span bytes) {
    range part[NFIELD] = {0};
    find_ranges(bytes, part);
    RL_TRY(each_field(l, bytes, FUNCTION_OPSET_IMPORT, 0, read_opset));
    l->g->onnx->nopset = l->g->opset.n;
    RL_TRY(each_field(l, bytes, FUNCTION_GIVEN, 0, read_given));
    read_ports(l, bytes);
    RL_TRY(read_nodes(l, part[FUNCTION_NODE]));
    RL_TRY(each_field(l, bytes, FUNCTION_VALUE_INFO, 0, rl_read_hint));
    RL_TRY(find_sources(l));
    return sort_nodes(l->g);
}

/* A function as a graph of its own: no body captures into it, and its types come from its callers.  One that cannot be read so is
 * no error: nobody needs to look inside. */
static rl_graph *read_function_graph(rl_reader *r, rl_span bytes) {
    rl_graph *g = rl_graph_new(r->ctx);
    rl_level l;
    g->ir_version = r->main->ir_version;
    g->onnx = rl_new(&g->mem, struct rl_onnx, 1);
    g->onnx->bytes = g->onnx->graph = bytes;
    g->onnx->is_function = true;
    rl_level_open(&l, r, g, 0);
    rl_status status = read_function_fields(&l, bytes);
    rl_level_close(&l);
    if (status == RL_OK) return g;
    rl_graph_free(g);
    return NULL;
}

static void read_function_graphs(rl_reader *r, rl_span model) {
    rl_wire w = rl_wire_of(model);
    for (rl_field f; rl_wire_next(&w, &f);) {
        if (f.number != MODEL_FUNCTIONS) continue;
        rl_graph *g = read_function_graph(r, f.body);
        rl_str domain = rl_internz(r->ctx, ""), name = domain;
        rl_wire m = rl_wire_of(f.body);
        for (rl_field x; g && rl_wire_next(&m, &x);) {
            if (x.number == FUNCTION_NAME) name = rl_intern(r->ctx, (const char *)x.body.p, x.body.n);
            if (x.number == FUNCTION_DOMAIN) domain = rl_intern(r->ctx, (const char *)x.body.p, x.body.n);
        }
        if (g) {
            g->name = name;
            g->domain = rl_reader_domain(r, rl_span_of(domain));
        }
        rl_push(&r->main->mem, r->main->function, g);
    }
}

static rl_status check_version(rl_reader *r) {
    rl_graph *g = r->main;
    if (g->ir_version <= 0) return rl_fail(r->ctx, RL_EMODEL, "not an ONNX model: it has no ir_version");
    if (g->ir_version > MAX_IR)
        return rl_fail(r->ctx, RL_ELIMIT, "its IR version %lld is newer than %d, the newest known",
                       (long long)g->ir_version, MAX_IR);
    if (g->opset.n) return RL_OK;
    if (g->ir_version >= 3) return rl_fail(r->ctx, RL_EMODEL, "the model imports no opset");
    rl_push(&g->mem, g->opset, ((rl_opset){rl_internz(r->ctx, ""), 1}));
    return RL_OK;
}

static rl_status read_header(rl_level *l, rl_span bytes) {
    rl_reader *r = l->r;
    rl_wire w = rl_wire_of(bytes);
    for (rl_field f; rl_wire_next(&w, &f);) {
        if (f.number == MODEL_IR_VERSION) r->main->ir_version = (int64_t)f.value;
        if (f.number == MODEL_TRAINING_INFO) r->onnx->pinned = true;
    }
    RL_TRY(each_field(l, bytes, MODEL_OPSET_IMPORT, 0, read_opset));
    RL_TRY(each_field(l, bytes, MODEL_FUNCTIONS, 0, read_function));
    RL_TRY(check_version(r));
    r->onnx->nopset = r->main->opset.n;
    return RL_OK;
}

static rl_status read_model(rl_reader *r, rl_span bytes) {
    rl_span graph = {0};
    RL_TRY(rl_onnx_scan(r, bytes));
    rl_level l;
    rl_level_open(&l, r, r->main, 0);
    rl_status status = read_header(&l, bytes);
    rl_level_close(&l);
    if (status != RL_OK) return status;
    rl_wire w = rl_wire_of(bytes);
    for (rl_field f; rl_wire_next(&w, &f);)
        if (f.number == MODEL_GRAPH) graph = f.body;
    if (!graph.p) return rl_fail(r->ctx, RL_EMODEL, "not an ONNX model: it has no graph");
    RL_TRY(read_into(r, r->main, graph, 0));
    read_function_graphs(r, bytes);
    return RL_OK;
}

static rl_readopt options(const rl_readopt *o) {
    rl_readopt x = o ? *o : (rl_readopt){0};
    if (!x.max_depth) x.max_depth = 100;
    x.max_depth = RL_MIN(x.max_depth, (uint32_t)MAX_DEPTH);
    if (!x.max_file) x.max_file = (uint64_t)64 << 30;
    if (!x.max_node) x.max_node = 10000000;
    return x;
}

/* Makes the graph that will own what is mapped. */
static void start(rl_reader *r, rl_str path, rl_str dir) {
    rl_graph *g = rl_graph_new(r->ctx);
    r->main = g;
    r->seen = rl_new(&g->mem, rl_schema_seen, RL_NOP);
    struct rl_onnx *x = rl_new(&g->mem, struct rl_onnx, 1);
    x->mem = x->function.mem = &g->mem;
    x->path = path;
    x->dir = dir;
    x->any_external = r->opt.any_external;
    g->onnx = r->onnx = x;
}

static rl_status map_model(rl_reader *r, rl_span *bytes) {
    rl_mapping *m = rl_new(r->onnx->mem, rl_mapping, 1);
    RL_TRY(rl_file_map(r->ctx, r->onnx->path, r->opt.max_file, &m->bytes, &m->id));
    m->next = r->onnx->mapping;
    r->onnx->mapping = m;
    *bytes = m->bytes;
    return RL_OK;
}

static rl_status read_all(rl_reader *r, const char *path, const char *dir, rl_span bytes, bool map) {
    if (map) dir = rl_file_dir(r->ctx, path);
    else if (dir) dir = rl_file_dir(r->ctx, rl_internf(r->ctx, "%s/", dir));
    start(r, rl_internz(r->ctx, path), dir);
    if (map) RL_TRY(map_model(r, &bytes));
    r->onnx->bytes = bytes;
    rl_ctx_allow(r->ctx, bytes.n);
    /* An empty graph takes 8 KiB and more: that many bodies must stand for real ones. */
    r->max_body = 4096 + bytes.n / 1024;
    rl_status status =
        bytes.n ? read_model(r, bytes) : rl_fail(r->ctx, RL_EMODEL, "not an ONNX model: the file is empty");
    return status == RL_OK ? status : rl_fail(r->ctx, status, "%.400s: %s", path, r->ctx->error);
}

/* Reads, and cleans up where memory runs out, before the jump goes on to the caller's place. */
static rl_status read_guarded(rl_reader *r, const char *path, const char *dir, rl_span bytes, bool map) {
    rl_ctx *ctx = r->ctx;
    jmp_buf outer;
    memcpy(&outer, &ctx->oom, sizeof outer);
    rl_status status;
    if (setjmp(ctx->oom)) {
        rl_fail_memory(ctx);
        status = rl_fail(ctx, RL_ENOMEM, "%.400s: %s", path, ctx->error);
    }
    else status = read_all(r, path, dir, bytes, map);
    memcpy(&ctx->oom, &outer, sizeof outer);
    if (status == RL_OK) {
        if (map) rl_file_forget(r->onnx->bytes); /* few look at it before it is written */
        return status;
    }
    rl_onnx_one_line(ctx->error);
    rl_graph_free(r->main);
    return status;
}

rl_status rl_onnx_read(rl_ctx *ctx, const char *path, const rl_readopt *o, rl_graph **g) {
    rl_reader r = {.ctx = ctx, .opt = options(o)};
    *g = NULL;
    RL_TRY(read_guarded(&r, path, NULL, (rl_span){0}, true));
    *g = r.main;
    return RL_OK;
}

rl_status rl_onnx_read_bytes(rl_ctx *ctx, const void *p, size_t n, const char *dir, const rl_readopt *o, rl_graph **g) {
    rl_reader r = {.ctx = ctx, .opt = options(o)};
    *g = NULL;
    RL_TRY(read_guarded(&r, "<memory>", dir, (rl_span){p, n}, false));
    *g = r.main;
    return RL_OK;
}

void rl_onnx_forget(const rl_graph *g, const void *p, size_t n) {
    const uint8_t *from = p;
    for (const rl_mapping *m = g->onnx ? g->onnx->mapping : NULL; m; m = m->next)
        if (from >= m->bytes.p && n <= m->bytes.n && (size_t)(from - m->bytes.p) <= m->bytes.n - n) rl_file_forget((rl_span){from, n});
}

void rl_onnx_free(struct rl_onnx *o) {
    for (const rl_mapping *m = o->mapping; m; m = m->next) rl_file_unmap(m->bytes);
}
