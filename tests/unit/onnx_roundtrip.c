/* Reads ONNX files and writes them again: the tests' window on the loader and writer alone.
 *
 *   onnx_roundtrip FILE...           each must come back byte for byte
 *   onnx_roundtrip -w IN OUT         read and write; the exit status and the one line on stderr are relayout's
 *   onnx_roundtrip -r IN OUT         the same with every byte packed anew that the reader understood: nodes, attributes,
 *                                    initializers, bodies.  The result must mean the same (tests/python/test_onnx_io.py)
 *   onnx_roundtrip -n IN OUT         the same as a new model, without anything that was read but the graph itself
 *   onnx_roundtrip -e IN OUT         in each graph one float that a node reads multiplied by a new constant 1
 *   onnx_roundtrip -d IN             what was read, as text
 *   -m BYTES first: the most memory that may be held                                                                      */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/onnx.h"

static int report(const rl_ctx *ctx, rl_status status) {
    if (status != RL_OK) fprintf(stderr, "%s\n", ctx->error);
    return (int)status;
}

static bool same_back(rl_ctx *ctx, const char *path) {
    rl_graph *g = NULL;
    rl_arena mem;
    rl_span out = {0};
    rl_arena_init(&mem, ctx);
    rl_status status = rl_onnx_read(ctx, path, NULL, &g);
    if (status == RL_OK) status = rl_onnx_pack(g, NULL, &mem, &out);
    bool same = status == RL_OK && out.n == rl_onnx_bytes(g).n && memcmp(out.p, rl_onnx_bytes(g).p, out.n) == 0;
    if (status != RL_OK) printf("%s: %s\n", path, ctx->error);
    else if (!same) printf("%s: other bytes\n", path);
    rl_arena_free(&mem);
    rl_graph_free(g);
    return same;
}

/* Reads every byte of every constant, for the sanitizers. */
static uint64_t touch(const rl_graph *g) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < g->nval; i++)
        if (g->val[i].data) sum += rl_hash_bytes(g->val[i].data->data, g->val[i].data->nbyte);
    for (uint32_t i = 0; i < g->nnode; i++)
        for (uint32_t k = 0; k < g->node[i].nattr; k++) {
            const rl_attr *a = &g->node[i].attr[k];
            if (a->tensor && a->tensor->data) sum += rl_hash_bytes(a->tensor->data, a->tensor->nbyte);
            if (a->graph) sum += touch(a->graph);
        }
    return sum;
}

/* Forgets the bytes of what can be packed. */
static void forget(rl_graph *g, bool anew) {
    for (uint32_t i = 0; i < g->nval; i++)
        if (g->val[i].is_init && g->val[i].data) g->val[i].raw = (rl_span){0};
    for (uint32_t i = 0; i < g->nnode; i++) {
        rl_nodeinfo *n = &g->node[i];
        rl_attr *attr = rl_new(&g->mem, rl_attr, n->nattr + 1);
        if (n->nattr) memcpy(attr, n->attr, n->nattr * sizeof *attr);
        for (uint32_t k = 0; k < n->nattr; k++) {
            bool kept = attr[k].kind == RL_ATTR_OTHER || (attr[k].kind == RL_ATTR_TENSOR && !attr[k].tensor->data);
            if (!kept) attr[k].raw = (rl_span){0};
            if (attr[k].graph) forget(attr[k].graph, anew);
        }
        n->attr = attr;
        n->raw = (rl_span){0};
    }
    if (anew) {
        if (g->onnx && !g->parent) return; /* it owns the mapping */
        g->onnx = NULL;
    }
}

static bool is_float(const rl_graph *g, rl_value v) {
    return rl_has(v) && rl_val(g, v)->dtype == RL_F32;
}

/* x -> Mul by 1 -> node, by the functions that passes use; new values have no names. */
static void edit(rl_graph *g) {
    static const float one = 1;
    uint32_t nnode = g->nnode;
    bool done = rl_opset_of(g, rl_internz(g->ctx, "")) < 7;
    for (uint32_t i = 0; i < nnode; i++) {
        for (uint32_t k = 0; k < g->node[i].nattr; k++)
            if (g->node[i].attr[k].graph) edit(g->node[i].attr[k].graph);
        for (uint32_t s = 0; s < g->node[i].nin && !done; s++) {
            if (!is_float(g, g->node[i].in[s])) continue;
            rl_value c = rl_graph_const(g, NULL, RL_F32, 0, NULL, &one, sizeof one), y = rl_graph_value(g, NULL);
            rl_graph_add(g, RL_OP_Mul, NULL, 2, (rl_value[]){g->node[i].in[s], c}, 1, &y);
            rl_graph_set_input(g, (rl_node){i}, s, y);
            done = true;
        }
    }
    rl_graph_sort(g);
}

static rl_status copy(rl_ctx *ctx, char mode, const char *in, const char *out) {
    rl_graph *g = NULL;
    rl_status status = rl_onnx_read(ctx, in, NULL, &g);
    if (status != RL_OK) return status;
    if (RL_PROTECT(ctx)) {
        rl_graph_free(g);
        return RL_ENOMEM;
    }
    if (touch(g) == 1) printf(" ");
    if (mode == 'e') edit(g);
    if (mode == 'r' || mode == 'n') forget(g, mode == 'n');
    struct rl_onnx *kept = g->onnx;
    if (mode == 'n') g->onnx = NULL;
    status = rl_onnx_write(g, out, NULL, NULL);
    g->onnx = kept;
    rl_graph_free(g);
    return status;
}

static void dump(const rl_graph *g, int indent) {
    for (uint32_t i = 0; i < g->nval; i++) {
        const rl_valinfo *x = &g->val[i];
        printf("%*svalue %s type %s rank %d [", indent, "", x->name, rl_dtype_name(x->dtype), (int)x->rank);
        for (uint32_t k = 0; x->rank != RL_NORANK && k < x->rank; k++) printf("%s%" PRId64, k ? "," : "", x->dim[k]);
        printf("]%s%s%s%s%s\n", x->is_input ? " input" : "", x->is_init ? " init" : "", x->is_output ? " output" : "",
               x->is_outer ? " outer" : "", x->data ? " const" : "");
    }
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        printf("%*snode %s %s::%s/%u op %d:", indent, "", n->name ? n->name : "-", n->domain, n->type, n->since,
               (int)n->op);
        for (uint32_t k = 0; k < n->nin; k++) printf(" %s", rl_has(n->in[k]) ? rl_val(g, n->in[k])->name : "_");
        printf(" ->");
        for (uint32_t k = 0; k < n->nout; k++) printf(" %s", rl_has(n->out[k]) ? rl_val(g, n->out[k])->name : "_");
        for (uint32_t k = 0; k < n->ncap; k++) printf(" ^%s", rl_val(g, n->cap[k])->name);
        printf("\n");
        for (uint32_t k = 0; k < n->nattr; k++) {
            printf("%*sattr %s kind %d n %u\n", indent + 2, "", n->attr[k].name, (int)n->attr[k].kind, n->attr[k].n);
            if (n->attr[k].graph) dump(n->attr[k].graph, indent + 4);
        }
    }
}

static int run(rl_ctx *ctx, int argc, char **argv) {
    int failed = 0;
    if (argc == 4 && argv[1][0] == '-' && strchr("wrne", argv[1][1]))
        return report(ctx, copy(ctx, argv[1][1], argv[2], argv[3]));
    if (argc == 3 && strcmp(argv[1], "-d") == 0) {
        rl_graph *g = NULL;
        rl_status status = rl_onnx_read(ctx, argv[2], NULL, &g);
        if (status == RL_OK) dump(g, 0);
        rl_graph_free(g);
        return report(ctx, status);
    }
    for (int i = 1; i < argc; i++) failed += !same_back(ctx, argv[i]);
    printf("%d passed, %d failed\n", argc - 1 - failed, failed);
    return failed != 0;
}

static int protected_run(rl_ctx *ctx, int argc, char **argv) {
    return RL_PROTECT(ctx) ? report(ctx, RL_ENOMEM) : run(ctx, argc, argv);
}

int main(int argc, char **argv) {
    bool limited = argc > 2 && strcmp(argv[1], "-m") == 0;
    rl_ctx *ctx = rl_ctx_new(limited ? strtoull(argv[2], NULL, 10) : 0);
    if (!ctx) return RL_ENOMEM;
    int skip = limited ? 2 : 0, status = protected_run(ctx, argc - skip, argv + skip);
    rl_ctx_free(ctx);
    return status;
}
