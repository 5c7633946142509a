/* ir.h: building, editing, ordering, freeing. */
#include "../../src/ir.h"

#include "check.h"

static rl_value val(rl_graph *g, const char *name) {
    return rl_graph_value(g, rl_internz(g->ctx, name));
}

static rl_node add(rl_graph *g, const char *name, rl_value a, rl_value b, rl_value out) {
    return rl_graph_add(g, RL_OP_Add, rl_internz(g->ctx, name), 2, (rl_value[]){a, b}, 1, &out);
}

TEST(building) {
    CHECK_CTX(ctx)
    rl_graph *g = rl_graph_new(ctx);
    rl_opset os = {rl_internz(ctx, "ai.onnx"), 17};
    rl_push(&g->mem, g->opset, os);
    rl_value x = val(g, "x"), y = val(g, "y"), t = rl_graph_value(g, NULL);
    CHECK(rl_same(x, val(g, "x")) && !rl_same(x, y) && !rl_has(rl_graph_find(g, rl_internz(ctx, "z"))));
    rl_graph_set_type(g, x, RL_F32, 2, (rl_dim[]){4, 6});
    rl_node n = add(g, "n", x, x, t), m = add(g, "m", t, RL_NOVALUE, y);
    CHECK(rl_nod(g, n)->since == 17);
    CHECK_STR(rl_nod(g, n)->type, "Add");
    CHECK(rl_val(g, x)->nuse == 2 && rl_val(g, t)->def.i == n.i && rl_val(g, t)->use[0].node.i == m.i);
    CHECK(rl_val(g, x)->rank == 2 && rl_val(g, x)->dim[1] == 6 && rl_val(g, y)->rank == RL_NORANK);
    rl_graph_set_input(g, m, 1, x);
    CHECK(rl_val(g, x)->nuse == 3);
    rl_graph_set_captures(g, m, &x, 1);
    CHECK(rl_val(g, x)->nuse == 4 && rl_val(g, x)->use[3].slot == 2);
    rl_graph_replace_uses(g, x, y);
    CHECK(rl_val(g, x)->nuse == 1 && rl_val(g, y)->nuse == 3 && rl_same(rl_nod(g, n)->in[0], y));
    rl_graph_remove(g, n);
    CHECK(g->order.n == 1 && rl_val(g, y)->nuse == 1 && rl_val(g, t)->def.i == RL_NONE);
    rl_graph_remove_all(g, (bool[]){false, true});
    CHECK(g->order.n == 0 && rl_val(g, x)->nuse == 0 && rl_val(g, y)->nuse == 0);
    rl_graph_rename(g, x, rl_internz(ctx, "x2"));
    CHECK(!rl_has(rl_graph_find(g, rl_internz(ctx, "x"))) && rl_same(val(g, "x2"), x));
    rl_graph_free(g);
    rl_ctx_free(ctx);
}

TEST(constants) {
    CHECK_CTX(ctx)
    rl_graph *g = rl_graph_new(ctx);
    rl_value c = rl_graph_const_i64(g, NULL, 3, (int64_t[]){1, -2, 3});
    const int64_t *x;
    uint32_t n;
    CHECK(rl_const_ints(g, c, &g->mem, &x, &n) && n == 3 && x[1] == -2 && g->init.n == 1);
    int32_t narrow[2] = {-5, 7};
    rl_value d = rl_graph_const(g, rl_internz(ctx, "d"), RL_I32, 1, (int64_t[]){2}, narrow, 8);
    CHECK(rl_const_ints(g, d, &g->mem, &x, &n) && n == 2 && x[0] == -5);
    CHECK(!rl_const_ints(g, RL_NOVALUE, &g->mem, &x, &n) && !rl_const_ints(g, val(g, "v"), &g->mem, &x, &n));
    rl_str f = rl_graph_fresh_name(g, "t"), f2 = rl_graph_fresh_name(g, "t");
    CHECK(f != f2);
    rl_graph_free(g);
    rl_ctx_free(ctx);
}

TEST(attributes) {
    CHECK_CTX(ctx)
    rl_graph *g = rl_graph_new(ctx);
    rl_node n = add(g, "n", val(g, "x"), val(g, "x"), val(g, "y"));
    rl_attr a[] = {rl_attr_of_int(g, "axis", -1), rl_attr_of_ints(g, "perm", (int64_t[]){1, 0}, 2),
                   {.name = rl_internz(ctx, "f"), .kind = RL_ATTR_FLOAT, .f = 0.5f},
                   {.name = rl_internz(ctx, "mode"), .kind = RL_ATTR_STRING, .s = {(const uint8_t *)"DCR", 3}}};
    rl_graph_set_attrs(g, n, a, 4);
    const rl_nodeinfo *x = rl_nod(g, n);
    CHECK(rl_attr_int(x, "axis", 9) == -1 && rl_attr_int(x, "perm", 9) == 9 && rl_attr_float(x, "f", 0) > 0.4f);
    CHECK(rl_attr_find(x, "perm")->ints[0] == 1 && rl_attr_is(x, "mode", "DCR") && !rl_attr_is(x, "mode", "DC"));
    rl_graph_free(g);
    rl_ctx_free(ctx);
}

/* A body that hangs on two nodes is freed once; a body in a body too. */
TEST(bodies) {
    CHECK_CTX(ctx)
    rl_graph *g = rl_graph_new(ctx), *b = rl_graph_new(ctx), *c = rl_graph_new(ctx);
    b->parent = g;
    c->parent = b;
    rl_attr ab = {.name = rl_internz(ctx, "body"), .kind = RL_ATTR_GRAPH, .graph = b}, ac = ab;
    ac.graph = c;
    rl_graph_set_attrs(g, add(g, "n", val(g, "x"), val(g, "x"), val(g, "y")), &ab, 1);
    rl_graph_set_attrs(g, add(g, "m", val(g, "x"), val(g, "x"), val(g, "z")), &ab, 1);
    rl_graph_set_attrs(b, add(b, "k", val(b, "x"), val(b, "x"), val(b, "t_0")), &ac, 1);
    CHECK_STR(rl_graph_fresh_name(g, "t"), "t_1");
    CHECK_STR(rl_graph_fresh_name(c, "t"), "t_2");
    rl_graph_free(g);
    rl_ctx_free(ctx);
}

static void order_is(rl_graph *g, const char *want) {
    char got[100] = "";
    for (uint32_t i = 0; i < g->order.n; i++) strcat(got, rl_nod(g, g->order.p[i])->name);
    CHECK_STR(got, want);
}

TEST(sorting) {
    CHECK_CTX(ctx)
    rl_graph *g = rl_graph_new(ctx);
    rl_value x = val(g, "x"), p = val(g, "p"), q = val(g, "q"), r = val(g, "r"), s = val(g, "s");
    rl_node a = add(g, "a", q, r, s), b = add(g, "b", p, x, r), c = add(g, "c", p, x, q), d = add(g, "d", x, x, p);
    rl_nod(g, c)->origin = 1;
    rl_nod(g, b)->origin = 2;
    CHECK(rl_graph_sort(g) == RL_OK);
    order_is(g, "dcba");
    rl_nod(g, b)->origin = RL_NONE;
    rl_nod(g, c)->origin = RL_NONE;
    CHECK(rl_graph_sort(g) == RL_OK);
    order_is(g, "dcba"); /* ties stay */
    rl_nod(g, b)->origin = 1;
    rl_nod(g, c)->origin = 2;
    CHECK(rl_graph_sort(g) == RL_OK);
    order_is(g, "dbca"); /* each is made before it is read, and yet it is not sorted */
    rl_nod(g, b)->origin = rl_nod(g, c)->origin = RL_NONE;
    rl_graph_set_captures(g, c, &r, 1);
    CHECK(rl_graph_sort(g) == RL_OK);
    order_is(g, "dbca");
    (void)a;
    rl_graph_set_captures(g, d, &s, 1);
    CHECK(rl_graph_sort(g) == RL_EMODEL);
    CHECK(strstr(ctx->error, "cycle"));
    rl_graph_free(g);
    rl_ctx_free(ctx);
}

TEST(sorting_many) {
    CHECK_CTX(ctx)
    rl_graph *g = rl_graph_new(ctx);
    enum { N = 50000 };
    rl_value v[N];
    for (uint32_t i = 0; i < N; i++) v[i] = rl_graph_value(g, NULL);
    for (uint32_t i = N - 1; i-- > 0;) add(g, "", v[i], v[i / 2], v[i + 1]);
    CHECK(rl_graph_sort(g) == RL_OK);
    CHECK(rl_same(rl_nod(g, g->order.p[0])->out[0], v[1]) && g->order.n == N - 1);
    rl_graph_free(g);
    rl_ctx_free(ctx);
}

TEST(dtypes) {
    for (uint32_t t = 1; t <= RL_I2; t++) {
        const char *name = rl_dtype_name((rl_dtype)t);
        CHECK(rl_dtype_parse(name, strlen(name)) == (rl_dtype)t);
    }
    CHECK(rl_dtype_bits(RL_F32) == 32 && rl_dtype_bits(RL_I4) == 4 && rl_dtype_bits(RL_STRING) == 0);
    CHECK_STR(rl_dtype_name((rl_dtype)99), "undef");
}

int main(void) {
    RUN(building);
    RUN(constants);
    RUN(attributes);
    RUN(bodies);
    RUN(sorting);
    RUN(sorting_many);
    RUN(dtypes);
    return check_done();
}
