/* Prints what the evaluator computes of ONNX files, for tests/python/test_eval.py.  Paths come on stdin, one a line; each
 * gives one JSON line, the graph's outputs in order, null where one was not computed:
 *   [{"dtype": 1, "dims": [2], "data": "0000803f0000803f"}, null] */
#include <stdio.h>
#include <string.h>

#include "../../src/eval.h"
#include "../../src/onnx.h"
#include "../../src/shape.h"

static void put_const(const rl_const *c) {
    if (!c) {
        printf("null");
        return;
    }
    printf("{\"dtype\": %d, \"dims\": [", (int)c->dtype);
    for (uint32_t k = 0; k < c->rank; k++) printf("%s%lld", k ? ", " : "", (long long)c->dim[k]);
    printf("], \"data\": \"");
    for (size_t i = 0; i < c->nbyte; i++) printf("%02x", ((const unsigned char *)c->data)[i]);
    printf("\"}");
}

static rl_status evaluate(rl_ctx *ctx, const char *path, rl_graph **g) {
    rl_eval_limit limit = RL_EVAL_LIMIT;
    if (RL_PROTECT(ctx)) return RL_ENOMEM;
    RL_TRY(rl_onnx_read(ctx, path, &(rl_readopt){0}, g));
    RL_TRY(rl_shape_infer(*g));
    rl_graph *x = *g;
    for (uint32_t v = 0; v < x->nval; v++) /* forget what shape inference folded */
        if (x->val[v].def.i != RL_NONE && rl_nod(x, x->val[v].def)->op != RL_OP_Constant) x->val[v].data = NULL;
    for (uint32_t k = 0; k < x->order.n; k++) rl_eval_node(x, x->order.p[k], &limit);
    return RL_OK;
}

static void dump(const char *path) {
    rl_ctx *ctx = rl_ctx_new(0);
    rl_graph *g = NULL;
    if (!ctx) return;
    rl_status s = evaluate(ctx, path, &g);
    printf("[");
    for (uint32_t i = 0; s == RL_OK && i < g->output.n; i++) {
        if (i) printf(", ");
        put_const(rl_eval_constant(g, g->output.p[i]));
    }
    printf("]\n");
    fflush(stdout);
    rl_graph_free(g);
    rl_ctx_free(ctx);
}

int main(void) {
    char path[4096];
    while (fgets(path, sizeof path, stdin)) {
        path[strcspn(path, "\n")] = 0;
        dump(path);
    }
    return 0;
}
