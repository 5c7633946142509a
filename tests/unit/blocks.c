/* Layouts with blocks for a GPU (passes/blocks.h): what some networks get, and small ones against every choice that there is. */
#include "../../passes/blocks.h"

#include <string.h>

#include "../../src/shape.h"
#include "check.h"

static rl_graph *parsed(rl_ctx *ctx, const char *text) {
    rl_graph *g = NULL;
    CHECK(rl_text_parse(ctx, "test", text, strlen(text), &g) == RL_OK && rl_shape_infer(g) == RL_OK);
    return g;
}

/* f16[N,C,H,W] through convolutions of C channels, 3 by 3. */
static void chain_of(char *text, size_t size, const char *type, const char *w, int n, int c, int h, int count) {
    size_t k = (size_t)snprintf(text, size, "graph opset=21 {\n  in %%x0 %s[%d,%d,%d,%d]\n  in %%w %s[%d,%d,3,3]\n", type, n, c, h, h, w, c, c);
    for (int i = 0; i < count; i++) k += (size_t)snprintf(text + k, size - k, "  %%x%d = Conv(%%x%d, %%w) pads=[1,1,1,1]\n", i + 1, i);
    snprintf(text + k, size - k, "  out %%x%d\n}\n", count);
}

/* Tensor cores want channels-last: the first and the last value are converted, nothing between. */
TEST(halves) {
    char text[2000];
    rl_blocks b;
    CHECK_CTX(ctx)
    chain_of(text, sizeof text, "f16", "f16", 32, 256, 56, 5);
    rl_graph *g = parsed(ctx, text);
    CHECK(rl_blocks_choose(g, &g->mem, 5, &b) == RL_OK && b.optimal && b.ns == b.bound && b.ns < b.rows_ns);
    CHECK(b.nop == 5 && b.nmove == 2);
    for (uint32_t i = 0; i < b.nop; i++) CHECK(b.op[i].layout == RL_BLOCKS_NHWC);
    CHECK(b.move[0].from == RL_BLOCKS_NCHW && b.move[0].to == RL_BLOCKS_NHWC && b.move[1].from == RL_BLOCKS_NHWC && b.move[1].to == RL_BLOCKS_NCHW);
    rl_graph_free(g);
    chain_of(text, sizeof text, "f32", "f32", 32, 256, 56, 5); /* as quick in either */
    g = parsed(ctx, text);
    CHECK(rl_blocks_choose(g, &g->mem, 5, &b) == RL_OK && b.optimal && b.nmove == 0 && b.ns == b.rows_ns);
    rl_graph_free(g);
    chain_of(text, sizeof text, "f16", "f16", 1, 4, 4, 1); /* a launch costs more than it would save */
    g = parsed(ctx, text);
    CHECK(rl_blocks_choose(g, &g->mem, 5, &b) == RL_OK && b.optimal && b.nmove == 0);
    rl_graph_free(g);
    rl_ctx_free(ctx);
}

static const char bytes[] =
    "graph opset=21 {\n  in %%x f32[%d,%d,28,28]\n  const %%s f32[] {0.1}\n  const %%z i8[] {0}\n  in %%w i8[%d,%d,3,3]\n  in %%v i8[8,%d,1,1]\n"
    "  %%a = QuantizeLinear(%%x, %%s, %%z)\n  %%b = QLinearConv(%%a, %%s, %%z, %%w, %%s, %%z, %%s, %%z) pads=[1,1,1,1]\n"
    "  %%c = QLinearConv(%%b, %%s, %%z, %%w, %%s, %%z, %%s, %%z) pads=[1,1,1,1]\n  %%d = QLinearConv(%%b, %%s, %%z, %%v, %%s, %%z, %%s, %%z)\n"
    "  %%y = DequantizeLinear(%%c, %%s, %%z)\n  out %%y\n  out %%d\n}\n";

/* The total of one layout for each of the ops with a choice, by itself. */
static int64_t total_of(const rl_graph *g, const rl_node *node, const rl_blocks_layout *l, uint32_t n) {
    uint32_t used[256] = {0};
    int64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        const rl_nodeinfo *info = rl_nod(g, node[i]);
        int64_t cost = rl_blocks_cost(g, info, l[i]);
        if (cost < 0) return -1;
        sum += cost;
        used[info->in[0].i] |= 1u << l[i], used[info->out[0].i] |= 1u << l[i];
    }
    for (uint32_t i = 0; i < g->input.n; i++) used[g->input.p[i].i] |= used[g->input.p[i].i] ? 1u << RL_BLOCKS_NCHW : 0;
    for (uint32_t i = 0; i < g->output.n; i++) used[g->output.p[i].i] |= 1u << RL_BLOCKS_NCHW;
    for (uint32_t v = 0; v < g->nval; v++)
        if (used[v]) sum += (__builtin_popcount(used[v]) - 1) * rl_blocks_move_cost(g, (rl_value){v});
    return sum;
}

/* Five ops, every choice of layouts; which one the first convolution got is set in *kinds. */
static void check_size(int n, int c, uint32_t *kinds) {
    char text[1200];
    rl_blocks b;
    CHECK_CTX(ctx)
    snprintf(text, sizeof text, bytes, n, c, c, c, c);
    rl_graph *g = parsed(ctx, text);
    CHECK(rl_blocks_choose(g, &g->mem, 5, &b) == RL_OK && b.optimal && b.nop == 5 && g->nval < 256);
    rl_node node[5];
    rl_blocks_layout l[5] = {RL_BLOCKS_NCHW}, chosen[5];
    for (uint32_t i = 0; i < 5; i++) node[i] = b.op[i].node, chosen[i] = b.op[i].layout;
    int64_t least = -1;
    uint32_t all = 1;
    for (uint32_t i = 0; i < 5; i++) all *= RL_NBLOCKS;
    for (uint32_t m = 0; m < all; m++) {
        for (uint32_t i = 0, left = m; i < 5; i++, left /= RL_NBLOCKS) l[i] = (rl_blocks_layout)(left % RL_NBLOCKS);
        int64_t sum = total_of(g, node, l, 5);
        if (sum >= 0 && (least < 0 || sum < least)) least = sum;
    }
    CHECK(least == b.ns && total_of(g, node, chosen, 5) == b.ns);
    *kinds |= 1u << chosen[1];
    rl_graph_free(g);
    rl_ctx_free(ctx);
}

/* Several sizes, so that different layouts are the least. */
TEST(every_choice) {
    static const int sizes[][2] = {{1, 3}, {1, 64}, {32, 4}, {64, 32}, {32, 40}, {1, 4}, {32, 512}};
    uint32_t kinds = 0;
    for (size_t k = 0; k < RL_LEN(sizes); k++) check_size(sizes[k][0], sizes[k][1], &kinds);
    CHECK(kinds & 1u << RL_BLOCKS_NCHW32 && (kinds & (kinds - 1)) != 0); /* not always the same */
}

int main(void) {
    RUN(halves);
    RUN(every_choice);
    return check_done();
}
