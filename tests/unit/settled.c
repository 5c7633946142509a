/* settled.h: what the sizes of the inputs settle is not computed again, in runs of the same sizes; all else is. */
#include <string.h>

#include "../../runtime/fast.h"
#include "../../src/text.h"
#include "check.h"

/* y[i] = x[i] + i * i + n + n * n: i from the size of x, the first n from dims that hang on an input's content, the others from that content. */
static const char model[] =
    "graph g {\n"
    "  in %x f32[N]\n"
    "  in %n i64[]\n"
    "  const %from i64[] {0}\n"
    "  const %one i64[] {1}\n"
    "  const %zero f32[] {0}\n"
    "  %s = Shape(%x)\n"
    "  %d = Gather(%s, %from)\n"
    "  %r = Range(%from, %d, %one)\n"
    "  %q = Mul(%r, %r)\n"
    "  %c = Cast(%q) to=1\n"
    "  %e = Range(%from, %n, %one)\n"
    "  %z = Shape(%e)\n"
    "  %f = Cast(%z) to=1\n"
    "  %k = Mul(%n, %n)\n"
    "  %l = Cast(%k) to=1\n"
    "  %a = Add(%x, %c)\n"
    "  %b = Add(%a, %f)\n"
    "  %y = Add(%b, %l)\n"
    "  out %y\n"
    "}\n";

static bool is_right(const rl_tensor *y, int64_t size, int64_t n) {
    bool right = y->rank == 1 && y->dim[0] == size;
    for (int64_t i = 0; i < size && right; i++) right = ((const float *)rl_data(y))[i] == (float)(i % 7 + i * i + n + n * n);
    return right;
}

/* Steps that did not run, of those of this type, in the last run; all of them where type is NULL. */
static uint32_t count_kept(const rl_exec *x, const char *type) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->nstep; i++)
        n += strcmp(x->step[i].ran, "kept") == 0 && (!type || strcmp(x->step[i].info->type, type) == 0);
    return n;
}

/* Nothing stays in a frame that the next run takes up. */
static bool is_empty(const rl_exec *x) {
    bool empty = x->slot && x->nslot == x->g->nval;
    for (uint32_t v = 0; empty && v < x->nslot; v++) empty = x->slot[v].kind == RL_ABSENT && !x->slot[v].mem && (!x->buffer || !x->buffer[v].mem);
    return empty;
}

static void give(rl_rt *rt, int64_t size, int64_t n, rl_tensor in[2]) {
    in[0] = rl_tensor_new(rt, RL_F32, 1, &size);
    in[1] = rl_tensor_new(rt, RL_I64, 0, NULL);
    for (int64_t i = 0; i < size; i++) ((float *)rl_data(&in[0]))[i] = (float)(i % 7);
    *(int64_t *)rl_data(&in[1]) = n;
}

/* Sizes change, and go back to what they were; the content changes all the time. */
TEST(sizes_and_contents) {
    static const struct { int64_t size; int runs; } of[] = {{5, 6}, {9, 5}, {5, 2}, {5, 4}, {0, 5}, {1, 1}, {2, 5}};
    CHECK_CTX(ctx)
    rl_rt *rt = rl_rt_new_for(ctx, true, 1);
    rl_graph *g;
    rl_exec *x;
    CHECK(rl_text_parse(ctx, "model", model, sizeof model - 1, &g) == RL_OK && rl_exec_new(rt, g, &x) == RL_OK);
    int64_t n = 0;
    for (size_t k = 0; k < RL_LEN(of); k++) {
        bool again = k == 3; /* the sizes are those of the runs before */
        for (int i = 0; i < of[k].runs; i++, n++) {
            rl_tensor in[2], out;
            give(rt, of[k].size, n % 11, in);
            CHECK(rl_exec_run(x, in, &out) == RL_OK);
            CHECK(is_right(&out, of[k].size, n % 11) && is_empty(x));
            if (rt->fast) CHECK(count_kept(x, "Range") == (i >= (again ? 0 : 2))); /* of two */
            if (rt->fast) CHECK(i < 3 || (count_kept(x, "Shape") == 1 && count_kept(x, NULL) >= 4));
            rl_tensor_drop(&out);
            rl_tensor_drop(&in[0]);
            rl_tensor_drop(&in[1]);
        }
    }
    rl_rt_free(rt);
    rl_graph_free(g);
    rl_ctx_free(ctx);
}

/* What is too large is made in each run, of what is kept. */
TEST(too_large) {
    const int64_t size = 100000;
    CHECK_CTX(ctx)
    rl_rt *rt = rl_rt_new_for(ctx, true, 1);
    rl_graph *g;
    rl_exec *x;
    CHECK(rl_text_parse(ctx, "model", model, sizeof model - 1, &g) == RL_OK && rl_exec_new(rt, g, &x) == RL_OK);
    for (int64_t n = 0; n < 5; n++) {
        rl_tensor in[2], out;
        size_t live = rt->live;
        give(rt, size, n, in);
        CHECK(rl_exec_run(x, in, &out) == RL_OK && ((const float *)rl_data(&out))[3] == (float)(3 + 9 + n + n * n));
        rl_tensor_drop(&out);
        rl_tensor_drop(&in[0]);
        rl_tensor_drop(&in[1]);
        CHECK((n < 2 || rt->live < live + 1000) && rt->settled == (rt->fast && n >= 2 ? 8 : 0));
    }
    if (rt->fast) CHECK(count_kept(x, "Gather") == 1 && count_kept(x, "Range") == 0);
    rl_rt_free(rt);
    rl_graph_free(g);
    rl_ctx_free(ctx);
}

int main(void) {
    RUN(sizes_and_contents);
    RUN(too_large);
    return check_done();
}
