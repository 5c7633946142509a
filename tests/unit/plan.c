/* plan.h: blocks that are alive at once never overlap, and the arena is near the bound that no plan beats. */
#include <string.h>

#include "../../runtime/fast.h"
#include "../../runtime/plan.h"
#include "check.h"

static bool overlap(const rl_block *a, const rl_block *b) {
    bool in_time = a->first <= b->last && b->first <= a->last, in_place = a->at < b->at + b->nbyte && b->at < a->at + a->nbyte;
    return in_time && in_place;
}

/* Random lifetimes: most short, as in a chain of layers, some long, as skips are. */
TEST(random_lifetimes) {
    CHECK_CTX(ctx)
    uint32_t seed = 7, worse = 0;
    for (int round = 0; round < 300; round++) {
        rl_arena tmp;
        rl_arena_init(&tmp, ctx);
        uint32_t n = check_random(&seed) % 60, nstep = 1 + check_random(&seed) % 80, pairs = 0;
        rl_block *b = rl_new(&tmp, rl_block, n);
        size_t end = 0;
        for (uint32_t i = 0; i < n; i++) {
            b[i].nbyte = 64 * (size_t)(1 + check_random(&seed) % 200);
            b[i].first = check_random(&seed) % nstep;
            uint32_t life = check_random(&seed) % (check_random(&seed) % 5 ? 4 : 40);
            b[i].last = RL_MIN(b[i].first + life, nstep);
        }
        size_t arena = rl_plan_place(&tmp, b, n), least = rl_plan_least(&tmp, b, n, nstep);
        for (uint32_t i = 0; i < n; i++) {
            end = RL_MAX(end, b[i].at + b[i].nbyte);
            for (uint32_t k = 0; k < i; k++) pairs += overlap(&b[i], &b[k]);
        }
        CHECK(pairs == 0);
        CHECK(arena == end && arena >= least);
        worse += arena > least + least / 20;
        rl_arena_free(&tmp);
    }
    CHECK(worse == 0);
    rl_ctx_free(ctx);
}

/* A chain, where two neighbours are alive at once, and one with a skip over all of it: the bound is reached. */
TEST(chains) {
    CHECK_CTX(ctx)
    rl_arena tmp;
    rl_arena_init(&tmp, ctx);
    rl_block b[41];
    for (uint32_t i = 0; i < 40; i++) b[i] = (rl_block){.nbyte = 64 * (1 + i * 7 % 13), .first = i, .last = i + 1};
    CHECK(rl_plan_place(&tmp, b, 40) == rl_plan_least(&tmp, b, 40, 41));
    b[40] = (rl_block){.nbyte = 640, .first = 0, .last = 40};
    CHECK(rl_plan_place(&tmp, b, 41) == rl_plan_least(&tmp, b, 41, 41));
    CHECK(rl_plan_place(&tmp, b, 0) == 0 && rl_plan_least(&tmp, b, 0, 3) == 0);
    rl_arena_free(&tmp);
    rl_ctx_free(ctx);
}

/* A storage inside another: not where something is alive, and the outer one stays as long as the inner one. */
TEST(tensors_in_a_base) {
    CHECK_CTX(ctx)
    rl_rt *rt = rl_rt_new(ctx, &rl_backend_cpu, 1);
    int64_t n = 256, k = 16;
    rl_tensor base = rl_tensor_new(rt, RL_U8, 1, &n);
    rl_tensor a = rl_tensor_new_in(rt, base.mem, 64, RL_F32, 1, &k), b = rl_tensor_new_in(rt, base.mem, 100, RL_F32, 1, &k);
    rl_tensor c = rl_tensor_new_in(rt, base.mem, 128, RL_F32, 1, &k), d = rl_tensor_new_in(rt, base.mem, 224, RL_F32, 1, &k);
    CHECK(a.mem->base == base.mem && rl_data(&a) == (char *)rl_data(&base) + 64);
    CHECK(!b.mem->base && c.mem->base == base.mem && !d.mem->base);
    CHECK(rt->live == 256 + 2 * 64);
    rl_tensor_drop(&a);
    rl_tensor e = rl_tensor_new_in(rt, base.mem, 0, RL_F64, 1, &k);
    CHECK(e.mem->base == base.mem);
    rl_tensor_drop(&base);
    CHECK(rt->live == 256 + 2 * 64);
    rl_tensor_drop(&c);
    rl_tensor_drop(&e);
    CHECK(rt->live == 2 * 64);
    rl_tensor_drop(&b);
    rl_tensor_drop(&d);
    rl_rt_free(rt);
    rl_ctx_free(ctx);
}

/* y = Neg(Relu(x)) + x, of N elements. */
static rl_graph *chain(rl_ctx *ctx) {
    rl_graph *g = rl_graph_new(ctx);
    rl_push(&g->mem, g->opset, ((rl_opset){rl_internz(ctx, ""), 20}));
    rl_value v[4];
    rl_dim n = rl_dim_symbol(ctx, rl_internz(ctx, "N"));
    for (uint32_t i = 0; i < 4; i++) v[i] = rl_graph_value(g, rl_internf(ctx, "v%u", i));
    rl_graph_set_type(g, v[0], RL_F32, 1, &n);
    rl_val(g, v[0])->is_input = true;
    rl_push(&g->mem, g->input, v[0]);
    rl_graph_add(g, RL_OP_Relu, NULL, 1, &v[0], 1, &v[1]);
    rl_graph_add(g, RL_OP_Neg, NULL, 1, &v[1], 1, &v[2]);
    rl_graph_add(g, RL_OP_Add, NULL, 2, (rl_value[]){v[2], v[0]}, 1, &v[3]);
    rl_val(g, v[3])->is_output = true;
    rl_push(&g->mem, g->output, v[3]);
    return g;
}

static bool is_right(const rl_tensor *y) {
    for (int64_t i = 0; i < y->dim[0]; i++)
        if (((const float *)rl_data(y))[i] != (i < 8 ? (float)(i - 8) : 0)) return false;
    return true;
}

/* Sizes of every run; outputs of the run before stay as they are. */
TEST(planned_again) {
    static const int64_t sizes[] = {16, 1000, 1000, 48, 0, 16};
    CHECK_CTX(ctx)
    rl_rt *rt = rl_rt_new(ctx, &rl_backend_cpu, 1);
    rl_graph *g = chain(ctx);
    rl_exec *x;
    rl_tensor held = {0};
    CHECK(rl_exec_new(rt, g, &x) == RL_OK);
    for (size_t k = 0; k < RL_LEN(sizes); k++) {
        rl_tensor in = rl_tensor_new(rt, RL_F32, 1, &sizes[k]), out;
        for (int64_t i = 0; i < sizes[k]; i++) ((float *)rl_data(&in))[i] = (float)(i - 8);
        CHECK(rl_exec_run(x, &in, &out) == RL_OK);
        CHECK(rt->arena == (size_t)(sizes[k] * 4 + 63) / 64 * 64 && rt->arena == rt->least); /* all three over each other */
        for (int64_t i = 0; i < sizes[k]; i++) CHECK(((float *)rl_data(&in))[i] == (float)(i - 8));
        CHECK(is_right(&out) && (!held.mem || is_right(&held)));
        rl_tensor_drop(&held);
        held = out;
        rl_tensor_drop(&in);
    }
    rl_tensor_drop(&held);
    rl_rt_free(rt);
    rl_graph_free(g);
    rl_ctx_free(ctx);
}

/* y = Squeeze(Slice(Transpose(x)))[i] = x[i,2], of [N,4]. */
static rl_graph *column(rl_ctx *ctx) {
    rl_graph *g = rl_graph_new(ctx);
    rl_push(&g->mem, g->opset, ((rl_opset){rl_internz(ctx, ""), 20}));
    rl_value v[4], from, to, axis;
    for (uint32_t i = 0; i < 4; i++) v[i] = rl_graph_value(g, rl_internf(ctx, "v%u", i));
    rl_graph_set_type(g, v[0], RL_F32, 2, (rl_dim[]){rl_dim_symbol(ctx, rl_internz(ctx, "N")), 4});
    rl_val(g, v[0])->is_input = true;
    rl_push(&g->mem, g->input, v[0]);
    from = rl_graph_const_i64(g, rl_internz(ctx, "from"), 1, (int64_t[]){2});
    to = rl_graph_const_i64(g, rl_internz(ctx, "to"), 1, (int64_t[]){3});
    axis = rl_graph_const_i64(g, rl_internz(ctx, "axis"), 1, (int64_t[]){0});
    rl_graph_add(g, RL_OP_Transpose, NULL, 1, &v[0], 1, &v[1]);
    rl_graph_add(g, RL_OP_Slice, NULL, 4, (rl_value[]){v[1], from, to, axis}, 1, &v[2]);
    rl_graph_add(g, RL_OP_Squeeze, NULL, 2, (rl_value[]){v[2], axis}, 1, &v[3]);
    rl_val(g, v[3])->is_output = true;
    rl_push(&g->mem, g->output, v[3]);
    return g;
}

/* Sizes of every run, and how its input lies: as the one before is not enough to make the same views again. */
TEST(views_again) {
    static const struct { int64_t n, apart; bool kept; } runs[] = {{3, 1, false}, {3, 1, true}, {3, 2, false}, {3, 2, true}, {5, 2, false}, {5, 2, true}, {5, 1, false}};
    CHECK_CTX(ctx)
    rl_rt *rt = rl_rt_new_for(ctx, true, 1);
    rl_graph *g = column(ctx);
    rl_exec *x;
    CHECK(rl_exec_new(rt, g, &x) == RL_OK);
    for (size_t k = 0; k < RL_LEN(runs); k++) {
        rl_tensor all = rl_tensor_new(rt, RL_F32, 2, (int64_t[]){20, 4}), out;
        for (int64_t i = 0; i < 80; i++) ((float *)rl_data(&all))[i] = (float)(i / 4 * 10 + i % 4);
        rl_tensor in = rl_view_slice(&all, 0, (int64_t)k, runs[k].apart, runs[k].n);
        CHECK(rl_exec_run(x, &in, &out) == RL_OK);
        CHECK(out.rank == 1 && out.dim[0] == runs[k].n && out.mem == all.mem);
        for (int64_t i = 0; i < runs[k].n; i++) CHECK(((float *)rl_data(&out))[i * out.stride[0]] == (float)(((int64_t)k + i * runs[k].apart) * 10 + 2));
        for (uint32_t i = 0; rt->fast && i < x->nstep; i++) CHECK((strcmp(x->step[i].ran, "kept") == 0) == runs[k].kept);
        rl_tensor_drop(&out);
        rl_tensor_drop(&all);
    }
    rl_rt_free(rt);
    rl_graph_free(g);
    rl_ctx_free(ctx);
}

int main(void) {
    RUN(views_again);
    RUN(planned_again);
    RUN(random_lifetimes);
    RUN(chains);
    RUN(tensors_in_a_base);
    return check_done();
}
