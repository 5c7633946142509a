/* ops.def and ops.h: the table is sorted, its words are known, and the questions about a node get the right answers. */
#include "../../src/ops.h"

#include <stdlib.h>

#include "check.h"

static rl_op find(rl_ctx *ctx, const char *domain, const char *type, int64_t version) {
    return rl_op_find(rl_internz(ctx, domain), rl_internz(ctx, type), version);
}

TEST(sorted) {
    CHECK(strcmp(rl_optable[RL_OP_OPAQUE].id, "OPAQUE") == 0 && strcmp(rl_optable[RL_OP_MOVE].id, "MOVE") == 0);
    for (uint32_t i = 1; i < RL_OP_OPAQUE; i++) {
        const rl_oprow *a = &rl_optable[i - 1], *b = &rl_optable[i];
        int c = strcmp(a->domain, b->domain);
        CHECK(strcmp(a->id, b->id) < 0);
        CHECK(c < 0 || (c == 0 && strcmp(a->type, b->type) < 0)); /* what the search relies on */
    }
}

TEST(ids) {
    for (uint32_t i = 0; i < RL_OP_OPAQUE; i++) {
        const rl_oprow *r = &rl_optable[i];
        bool ms = strcmp(r->domain, "com.microsoft") == 0;
        CHECK(ms || strcmp(r->domain, "") == 0);
        CHECK_STR(r->id + (ms ? 3 : 0), r->type);
        CHECK((strncmp(r->id, "ms_", 3) == 0) == ms);
    }
}

/* [version "+"] name [ "@" input | "=" default ] */
static bool word_ok(const char *s, size_t n) {
    static const char *const names[] = {"axis", "axes", "keepdims", "type", "ratio", "training", "shape", "p", "k", "split",
                                        "starts", "ends", "steps", "pads", "value", "repeats", "indices", "scale", "zero",
                                        "bias", "mean", "var", "skip", "add", "roi", "scales", "sizes", "perm", "start", "end"};
    char word[64], *end;
    if (n == 0 || n >= sizeof word) return false;
    memcpy(word, s, n);
    word[n] = 0;
    s = word;
    if (*s >= '0' && *s <= '9') {
        long v = strtol(s, &end, 10);
        if (*end != '+' || v < 8 || v > 28) return false;
        s = end + 1;
    }
    size_t len = strcspn(s, "@=");
    bool known = false;
    for (size_t i = 0; i < RL_LEN(names); i++) known |= strlen(names[i]) == len && memcmp(names[i], s, len) == 0;
    if (!known || !s[len]) return known;
    (void)strtol(s + len + 1, &end, 10);
    return end > s + len + 1 && !*end;
}

TEST(roles) {
    for (uint32_t i = 0; i < RL_NOP; i++) {
        const char *s = rl_optable[i].roles;
        while (*s) {
            size_t n = strcspn(s, " ");
            if (!word_ok(s, n)) fprintf(stderr, "%s: %s\n", rl_optable[i].id, s);
            CHECK(word_ok(s, n));
            s += n + (s[n] == ' ');
            CHECK(*s != ' ');
        }
    }
}

TEST(finding) {
    CHECK_CTX(ctx)
    for (uint32_t i = 0; i < RL_OP_OPAQUE; i++) {
        const rl_oprow *r = &rl_optable[i];
        CHECK(find(ctx, r->domain, r->type, *r->domain ? 1 : 13) == (rl_op)i);
    }
    CHECK(find(ctx, "ai.onnx", "Relu", 7) == RL_OP_Relu && find(ctx, "", "Relu", 28) == RL_OP_Relu);
    CHECK(find(ctx, "", "Relu", 6) == RL_OP_OPAQUE && find(ctx, "", "Relu", 29) == RL_OP_OPAQUE);
    CHECK(find(ctx, "", "Relux", 13) == RL_OP_OPAQUE && find(ctx, "", "", 13) == RL_OP_OPAQUE);
    CHECK(find(ctx, "com.acme", "Relu", 13) == RL_OP_OPAQUE && find(ctx, "com.microsoft", "Relu", 1) == RL_OP_OPAQUE);
    CHECK(find(ctx, "com.microsoft", "QuickGelu", 1) == RL_OP_ms_QuickGelu);
    CHECK(rl_op_find(NULL, rl_internz(ctx, "Add"), 13) == RL_OP_Add);
    CHECK(rl_op_class(RL_OP_Transpose) == RL_MOVING && rl_op_class(RL_OP_OPAQUE) == RL_OPAQUE);
    rl_ctx_free(ctx);
}

/* A node of this opset with f32[2,3,4,5] as input 0 and, if given, the constant x as input 1. */
static rl_graph *graph_of(rl_ctx *ctx, rl_op op, int64_t version, const int64_t *x, uint32_t nx, rl_node *n) {
    rl_graph *g = rl_graph_new(ctx);
    rl_opset os = {rl_internz(ctx, ""), version};
    rl_push(&g->mem, g->opset, os);
    rl_value in[2] = {rl_graph_value(g, rl_internz(ctx, "x"))}, y = rl_graph_value(g, NULL);
    rl_graph_set_type(g, in[0], RL_F32, 4, (rl_dim[]){2, 3, 4, 5});
    if (x) in[1] = rl_graph_const_i64(g, rl_internz(ctx, "c"), nx, x);
    *n = rl_graph_add(g, op, NULL, x ? 2 : 1, in, 1, &y);
    return g;
}

static int axis_of(rl_ctx *ctx, rl_op op, int64_t version, const int64_t *attr, const int64_t *input) {
    rl_node n;
    uint32_t axis;
    rl_graph *g = graph_of(ctx, op, version, input, 1, &n);
    if (attr) {
        rl_attr a = rl_attr_of_int(g, "axis", *attr);
        rl_graph_set_attrs(g, n, &a, 1);
    }
    bool ok = rl_op_axis(g, rl_nod(g, n), &axis);
    rl_graph_free(g);
    return ok ? (int)axis : -1;
}

TEST(axis) {
    CHECK_CTX(ctx)
    int64_t two = 2, last = -1, four = 4, far = -5;
    CHECK(axis_of(ctx, RL_OP_Softmax, 12, NULL, NULL) == 1 && axis_of(ctx, RL_OP_Softmax, 13, NULL, NULL) == 3);
    CHECK(axis_of(ctx, RL_OP_Softmax, 13, &two, NULL) == 2 && axis_of(ctx, RL_OP_Softmax, 11, &last, NULL) == 3);
    CHECK(axis_of(ctx, RL_OP_Softmax, 13, &four, NULL) == -1 && axis_of(ctx, RL_OP_Softmax, 13, &far, NULL) == -1);
    CHECK(axis_of(ctx, RL_OP_Flatten, 13, &four, NULL) == 4 && axis_of(ctx, RL_OP_Concat, 13, NULL, NULL) == -1);
    CHECK(axis_of(ctx, RL_OP_CumSum, 14, NULL, &last) == 3 && axis_of(ctx, RL_OP_CumSum, 14, &two, NULL) == -1);
    CHECK(axis_of(ctx, RL_OP_DequantizeLinear, 10, NULL, NULL) == -1);
    CHECK(axis_of(ctx, RL_OP_DequantizeLinear, 13, NULL, NULL) == 1);
    CHECK(axis_of(ctx, RL_OP_Relu, 13, NULL, NULL) == -1);
    rl_ctx_free(ctx);
}

/* The axes as digits, "all", or "no". */
static const char *axes_of(rl_ctx *ctx, rl_op op, int64_t version, uint32_t n, const int64_t *x, bool attr) {
    rl_node node;
    const uint32_t *axes;
    uint32_t naxes;
    bool all;
    rl_graph *g = graph_of(ctx, op, version, attr ? NULL : x, n, &node);
    if (attr) {
        rl_attr a = rl_attr_of_ints(g, "axes", x, n);
        rl_graph_set_attrs(g, node, &a, 1);
    }
    char s[16] = "no";
    if (rl_op_axes(g, rl_nod(g, node), &g->mem, &axes, &naxes, &all)) {
        s[0] = 0;
        for (uint32_t i = 0; i < naxes && i < 8; i++) {
            s[i] = (char)('0' + axes[i]);
            s[i + 1] = 0;
        }
        if (all) strcpy(s, "all");
    }
    rl_str r = rl_internz(ctx, s);
    rl_graph_free(g);
    return r;
}

TEST(axes) {
    CHECK_CTX(ctx)
    const int64_t x[] = {-1, 1, 0}, twice[] = {1, -3}, far[] = {4};
    CHECK_STR(axes_of(ctx, RL_OP_ReduceMean, 13, 3, x, true), "013");
    CHECK_STR(axes_of(ctx, RL_OP_ReduceMean, 18, 3, x, false), "013");
    CHECK_STR(axes_of(ctx, RL_OP_ReduceMean, 18, 3, x, true), "all"); /* the attribute is none of version 18 */
    CHECK_STR(axes_of(ctx, RL_OP_ReduceSum, 13, 2, x, false), "13");
    CHECK_STR(axes_of(ctx, RL_OP_ReduceSum, 13, 0, x, false), "all");
    CHECK_STR(axes_of(ctx, RL_OP_ReduceSum, 11, 0, x, true), "no");
    CHECK_STR(axes_of(ctx, RL_OP_ReduceSum, 13, 2, twice, false), "no");
    CHECK_STR(axes_of(ctx, RL_OP_ReduceSum, 13, 1, far, false), "no");
    CHECK_STR(axes_of(ctx, RL_OP_Unsqueeze, 13, 1, far, false), "4"); /* of the output */
    CHECK_STR(axes_of(ctx, RL_OP_Unsqueeze, 13, 2, x, false), "15");
    CHECK_STR(axes_of(ctx, RL_OP_Relu, 13, 0, NULL, false), "all");
    rl_ctx_free(ctx);
}

TEST(versions) {
    rl_nodeinfo n = {.op = RL_OP_ReduceMean, .since = 17};
    CHECK(rl_op_axes_input(&n) == RL_NONE && rl_op_keepdims(&n));
    n.since = 18;
    CHECK(rl_op_axes_input(&n) == 1);
    n.op = RL_OP_Pad;
    CHECK(rl_op_axes_input(&n) == 3 && !rl_op_keepdims(&n));
    n.op = RL_OP_Slice;
    CHECK(rl_op_axes_input(&n) == 3);
    n.op = RL_OP_Relu;
    CHECK(rl_op_axes_input(&n) == RL_NONE);
}

int main(void) {
    RUN(sorted);
    RUN(ids);
    RUN(roles);
    RUN(finding);
    RUN(axis);
    RUN(axes);
    RUN(versions);
    return check_done();
}
