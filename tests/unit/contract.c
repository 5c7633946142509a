/* contract.h: what is read where it is, what is made where it is to be, and what is moved there. */
#include "../../runtime/contract.h"
#include "../../runtime/exec.h"
#include "../../src/text.h"
#include "check.h"

enum { N = 512 };

static rl_buffer buffer_of(const char *text, void *p, size_t nbyte) {
    rl_buffer b = {.p = p, .nbyte = nbyte};
    rl_error e;
    CHECK(rl_desc_parse(text, &b.layout, &e) == RL_OK);
    return b;
}

typedef struct { const char *from, *to; int64_t moved; bool there; } way;
enum { ALL = 2 * 3 * 4 * 5 * 4 };

static rl_graph *negated(rl_ctx *ctx) {
    static const char text[] = "graph opset=21 {\n  in %x f32[2,3,4,5]\n  %y = Neg(%x)\n  out %y\n}\n";
    rl_graph *g = NULL;
    CHECK(rl_text_parse(ctx, "negated", text, sizeof text - 1, &g) == RL_OK);
    return g;
}

static void check_numbers(const rl_buffer *a, const rl_buffer *b) {
    const float *in = a->p, *out = b->p;
    bool hit[N] = {false};
    int wrong = 0;
    for (int64_t n = 0; n < 2 * 3 * 4 * 5; n++) {
        int64_t i[4] = {n / 60, n / 20 % 3, n / 5 % 4, n % 5}, at = rl_desc_offset(&b->layout, i);
        wrong += out[at] != -in[rl_desc_offset(&a->layout, i)];
        hit[at] = true;
    }
    for (int k = 0; k < N; k++) wrong += rl_desc_is_strided(&b->layout) && !hit[k] && out[k] != 1000;
    CHECK(wrong == 0);
}

/* y = -x from and to buffers of these layouts: the numbers, the gaps, how many bytes were moved, and whether the kernel made y there. */
static void run(const way *w, bool fast) {
    CHECK_CTX(ctx)
    rl_graph *g = negated(ctx);
    rl_rt *rt = rl_rt_new_for(ctx, fast, 1);
    rl_exec *x;
    float in[N], out[N];
    for (int i = 0; i < N; i++) in[i] = (float)i, out[i] = 1000;
    rl_buffer a = buffer_of(w->from, in, sizeof in), b = buffer_of(w->to, out, sizeof out);
    rl_tensor from, y;
    CHECK(rl_exec_new(rt, g, &x) == RL_OK && rl_buffer_check(ctx, "x", &a, false) == RL_OK && rl_buffer_read(rt, &a, &from) == RL_OK);
    x->place = rl_new(&ctx->mem, rl_tensor, g->nval);
    x->place[g->output.p[0].i] = rl_buffer_place(rt, &b);
    CHECK(rl_exec_run(x, &from, &y) == RL_OK);
    CHECK((y.mem->p == out) == w->there);
    CHECK(rl_buffer_write(rt, "y", &b, &y) == RL_OK);
    CHECK((int64_t)rt->moved == w->moved);
    check_numbers(&a, &b);
    rl_rt_free(rt);
    rl_graph_free(g);
    rl_ctx_free(ctx);
}

#define ROWS "f32[2,3,4,5]"
#define LAST "f32[2,3,4,5]@nhwc"
#define GAPS "f32[2,3,4,5] strides=[100,1,24,4] offset=7"
#define ONE "f32[2,3,4,5] strides=[0,0,5,1]"
#define BLOCKS "f32[2,3,4,5]@nChw8c"

TEST(reference_kernels) {
    static const way ways[] = {{ROWS, ROWS, 0, true},     {ROWS, LAST, ALL, false},   {ROWS, GAPS, ALL, false},
                               {ROWS, BLOCKS, 0, false},  {ONE, ROWS, 0, true},     {GAPS, ROWS, 0, true}};
    for (size_t i = 0; i < RL_LEN(ways); i++) run(&ways[i], false);
}

/* Only where oneDNN is found; then y has the order of x. */
TEST(fast_kernels) {
    static const way ways[] = {{ROWS, ROWS, 0, true}, {LAST, LAST, 0, true}, {LAST, ROWS, ALL, false}, {GAPS, LAST, 0, true}};
    CHECK_CTX(ctx)
    rl_rt *rt = rl_rt_new_for(ctx, true, 1);
    bool fast = rt->fast != NULL;
    rl_rt_free(rt);
    rl_ctx_free(ctx);
    for (size_t i = 0; fast && i < RL_LEN(ways); i++) run(&ways[i], true);
    if (!fast) printf("skipped: no oneDNN\n");
}

TEST(refusals) {
    CHECK_CTX(ctx)
    float x[N];
    rl_buffer one = buffer_of(ONE, x, sizeof x), rows = buffer_of(ROWS, x, ALL - 1);
    CHECK(rl_buffer_check(ctx, "x", &one, false) == RL_OK);
    CHECK(rl_buffer_check(ctx, "y", &one, true) == RL_EUSAGE && strstr(ctx->error, "overlap"));
    CHECK(rl_buffer_check(ctx, "y", &rows, true) == RL_EUSAGE && strstr(ctx->error, "479 bytes"));
    rl_ctx_free(ctx);
}

int main(void) {
    RUN(reference_kernels);
    RUN(fast_kernels);
    RUN(refusals);
    return check_done();
}
