/* Prints what shape inference knows of the values of ONNX files, for tests/python/test_shape.py.  Paths come on stdin, one a
 * line; each gives one JSON line:
 *   {"status": 0, "error": "", "seconds": 0.001, "values": [
 *     {"graph": 0, "name": "y", "dtype": 7, "dims": [2], "elem": [3, "2*N"], "data": "0300..."}]}
 * A dim or an element is a number or an expression as text; dims is null where the rank is unknown, elem where nothing is
 * known of the contents, data where they are no folded constant; graph 0 is the main graph. */
#include <stdio.h>
#include <string.h>

#include "../../src/onnx.h"
#include "../../src/shape.h"

static void put_string(const char *s) {
    putchar('"');
    for (; s && *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c < 0x20) printf("\\u%04x", c);
        else printf(c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
    putchar('"');
}

static void put_dim(rl_ctx *ctx, rl_dim d) {
    rl_text t = {.mem = &ctx->mem};
    rl_dim_print(&t, ctx, d);
    if (rl_dim_known(d)) printf("%s", t.p);
    else put_string(t.p);
}

static void put_dims(const rl_graph *g, const rl_valinfo *x) {
    printf("%s", x->rank == RL_NORANK ? "null" : "[");
    for (uint32_t k = 0; x->rank != RL_NORANK && k < x->rank; k++) {
        if (k) printf(", ");
        put_dim(g->ctx, x->dim[k]);
    }
    if (x->rank != RL_NORANK) printf("]");
}

static void put_elem(const rl_graph *g, rl_value v, uint32_t i) {
    rl_elem e;
    if (!rl_shape_elem(g, v, i, &e) || e.den != 1) printf("null");
    else if (e.known) printf("%lld", (long long)e.num);
    else put_dim(g->ctx, e.sym);
}

static void put_contents(const rl_graph *g, rl_value v) {
    const rl_valinfo *x = rl_val(g, v);
    printf(", \"elem\": %s", x->elem ? "[" : "null");
    for (uint32_t i = 0; x->elem && i < x->nelem; i++) {
        if (i) printf(", ");
        put_elem(g, v, i);
    }
    bool folded = x->data && x->def.i != RL_NONE && x->data->nbyte <= 4096;
    printf("%s, \"data\": %s", x->elem ? "]" : "", folded ? "\"" : "null");
    for (size_t i = 0; folded && i < x->data->nbyte; i++) printf("%02x", ((const unsigned char *)x->data->data)[i]);
    if (folded) putchar('"');
}

static void put_graph(const rl_graph *g, int *number) {
    int me = (*number)++;
    for (uint32_t i = 0; i < g->nval; i++) {
        const rl_valinfo *x = &g->val[i];
        printf("%s{\"graph\": %d, \"name\": ", me || i ? ", " : "", me);
        put_string(x->name);
        printf(", \"dtype\": %d, \"dims\": ", (int)x->dtype);
        put_dims(g, x);
        put_contents(g, (rl_value){i});
        putchar('}');
    }
    for (uint32_t i = 0; i < g->nnode; i++)
        for (uint32_t k = 0; k < g->node[i].nattr; k++)
            if (g->node[i].attr[k].graph) put_graph(g->node[i].attr[k].graph, number);
}

static rl_status infer(rl_ctx *ctx, const char *path, rl_graph **g, double *seconds) {
    if (RL_PROTECT(ctx)) return RL_ENOMEM;
    RL_TRY(rl_onnx_read(ctx, path, &(rl_readopt){0}, g));
    *seconds = rl_seconds();
    rl_status s = rl_shape_infer(*g);
    *seconds = rl_seconds() - *seconds;
    return s;
}

static void dump(const char *path) {
    rl_ctx *ctx = rl_ctx_new(0);
    rl_graph *g = NULL;
    double seconds = 0;
    int number = 0;
    if (!ctx) return;
    rl_status s = infer(ctx, path, &g, &seconds);
    printf("{\"status\": %d, \"error\": ", (int)s);
    put_string(s ? ctx->error : "");
    printf(", \"seconds\": %.6f, \"values\": [", seconds);
    if (s == RL_OK) put_graph(g, &number);
    printf("]}\n");
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
