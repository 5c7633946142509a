/* dim.h: polynomials, floor divisions, and their text. */
#include "../../src/dim.h"

#include "check.h"

static const char *show(rl_ctx *ctx, rl_dim d) {
    rl_text t = {.mem = &ctx->mem};
    rl_dim_print(&t, ctx, d);
    return t.p;
}

/* The dim of the text, all of which must be read; RL_DIM_BAD otherwise. */
#define RL_DIM_BAD INT64_MIN
static rl_dim parse(rl_ctx *ctx, const char *s) {
    rl_dim d;
    return rl_dim_parse(ctx, &s, &d) && *s == 0 ? d : RL_DIM_BAD;
}

TEST(polynomials) {
    CHECK_CTX(ctx)
    rl_dim n = rl_dim_symbol(ctx, rl_internz(ctx, "N")), s = rl_dim_symbol(ctx, rl_internz(ctx, "S")), q;
    CHECK(n < 0 && n == rl_dim_symbol(ctx, rl_internz(ctx, "N")) && n != s);
    rl_dim a = rl_dim_add(ctx, rl_dim_mul(ctx, rl_dim_mul(ctx, n, 2), s), 1);
    CHECK_STR(show(ctx, a), "2*N*S+1");
    CHECK(a == rl_dim_add(ctx, 1, rl_dim_mul(ctx, s, rl_dim_add(ctx, n, n))));
    CHECK(rl_dim_sub(ctx, a, a) == 0);
    CHECK_STR(show(ctx, rl_dim_sub(ctx, n, 1)), "N-1");
    CHECK_STR(show(ctx, rl_dim_sub(ctx, 5, n)), "-N+5");
    CHECK(rl_dim_div(ctx, rl_dim_mul(ctx, n, 4), 2, &q) && q == rl_dim_add(ctx, n, n));
    CHECK(rl_dim_div(ctx, rl_dim_mul(ctx, rl_dim_mul(ctx, n, s), 6), rl_dim_mul(ctx, s, 3), &q) && q == rl_dim_mul(ctx, n, 2));
    CHECK(!rl_dim_div(ctx, n, 2, &q) && !rl_dim_div(ctx, n, s, &q) && !rl_dim_div(ctx, n, 0, &q));
    CHECK(!rl_dim_div(ctx, a, 2, &q));
    CHECK(rl_dim_div(ctx, 6, 3, &q) && q == 2 && !rl_dim_div(ctx, 7, 3, &q));
    CHECK(rl_dim_div(ctx, a, a, &q) && q == 1);
    CHECK(rl_dim_prod(ctx, (rl_dim[]){2, n, 3, s}, 4) == rl_dim_mul(ctx, rl_dim_mul(ctx, n, s), 6));
    CHECK_STR(rl_dim_name(ctx, n), "N");
    CHECK(!rl_dim_name(ctx, a) && !rl_dim_name(ctx, 4));
    CHECK(rl_dim_guess(ctx, a, 10) == 201 && rl_dim_guess(ctx, rl_dim_sub(ctx, 5, n), 10) == 0);
    rl_ctx_free(ctx);
}

TEST(division) {
    CHECK_CTX(ctx)
    static const struct { const char *a, *b, *q; } row[] = {
        {"N*N-2*N+1", "N-1", "N-1"}, {"N*N-1", "N-1", "N+1"}, {"N*N-1", "N+1", "N-1"}, {"N*S+2*N+3*S+6", "S+2", "N+3"},
        {"6*N*S-4*N", "3*S-2", "2*N"}, {"N*N*N-S*S*S", "N-S", "N*N+N*S+S*S"}, {"12*N-12", "N-1", "12"}, {"-N*S+5*S", "-N+5", "S"},
        {"N*N-2*N+2", "N-1", NULL}, {"N*N", "N-1", NULL}, {"N-1", "N*N-1", NULL}, {"N-1", "2*N-2", NULL}, {"12", "N-1", NULL}, {"N+S", "N-S", NULL},
        {"-N+1", "N-1", NULL}, {"0", "N-1", "0"},
    };
    for (size_t i = 0; i < RL_LEN(row); i++) {
        rl_dim q, b = parse(ctx, row[i].b);
        bool divides = rl_dim_div(ctx, parse(ctx, row[i].a), b, &q);
        CHECK(divides == (row[i].q != NULL));
        if (!divides || !row[i].q) continue;
        CHECK(q == parse(ctx, row[i].q));
        CHECK(rl_dim_mul(ctx, q, b) == parse(ctx, row[i].a));
    }
    rl_ctx_free(ctx);
}

TEST(split) {
    CHECK_CTX(ctx)
    static const struct { const char *a, *b, *q, *rest; } row[] = {
        {"2*H*W+3", "H*W", "2", "3"}, {"17", "5", "3", "2"}, {"16*D+3", "8*D", "2", "3"}, {"16*D+3", "1", "16*D+3", "0"},
        {"N*H+H+1", "H", "N+1", "1"}, {"3", "H", "0", "3"}, {"3*H", "2*H", "0", "3*H"}, {"0", "H", "0", "0"}, {"N", "H+1", "0", "N"}, {"W-1", "W", "0", "W-1"}, {"16*D-1", "8*D", "1", "8*D-1"},
        {"N-H", "H", "0", "-H+N"},
    };
    for (size_t i = 0; i < RL_LEN(row); i++) {
        rl_dim q, rest;
        rl_dim_split(ctx, parse(ctx, row[i].a), parse(ctx, row[i].b), &q, &rest);
        CHECK_STR(show(ctx, q), row[i].q);
        CHECK_STR(show(ctx, rest), row[i].rest);
    }
    rl_ctx_free(ctx);
}

TEST(not_less) {
    CHECK_CTX(ctx)
    static const struct { const char *a, *b; bool not_less, not_more; } row[] = {
        {"3", "2", true, false}, {"N", "1", true, false}, {"N", "2", false, false}, {"7*N*W", "4*W", true, false}, {"N", "N", true, true},
        {"N", "W", false, false}, {"N*N", "N", true, false}, {"N*W+1", "N+W", false, false}, {"2*N*W", "N+W", true, false},
        {"N*W", "N+W", false, false}, {"5*N", "2*N+3", true, false}, {"5*N", "2*N+4", false, false},
    };
    for (size_t i = 0; i < RL_LEN(row); i++) {
        rl_dim a = parse(ctx, row[i].a), b = parse(ctx, row[i].b);
        CHECK(rl_dim_not_less(ctx, a, b) == row[i].not_less && rl_dim_not_less(ctx, b, a) == row[i].not_more);
    }
    rl_ctx_free(ctx);
}

TEST(fresh) {
    CHECK_CTX(ctx)
    rl_dim p = parse(ctx, "?1");
    rl_dim a = rl_dim_fresh(ctx), b = rl_dim_fresh(ctx);
    CHECK_STR(show(ctx, a), "?0");
    CHECK_STR(show(ctx, b), "?2");
    CHECK(a != b && p != a && p != b);
    rl_dim user = rl_dim_symbol(ctx, rl_internz(ctx, "?0"));
    CHECK(user != a);
    CHECK_STR(show(ctx, user), "'?0'");
    rl_dim tenth = rl_dim_symbol(ctx, rl_internz(ctx, "?min(300|?10)")), ninth = rl_dim_symbol(ctx, rl_internz(ctx, "?min(300|?9)"));
    CHECK_STR(show(ctx, rl_dim_add(ctx, tenth, ninth)), "'?min(300|?9)'+'?min(300|?10)'"); /* whatever numbers came before */
    CHECK(rl_dim_sub(ctx, 3, 5) < 0 && rl_dim_sub(ctx, 3, 5) != rl_dim_sub(ctx, 3, 5));
    rl_dim n = rl_dim_symbol(ctx, rl_internz(ctx, "N"));
    rl_dim big = rl_dim_mul(ctx, n, INT64_MAX);
    CHECK(rl_dim_add(ctx, big, n) != rl_dim_add(ctx, big, n)); /* overflow equals nothing */
    CHECK(rl_dim_mul(ctx, INT64_MAX, 2) < 0);
    rl_dim pow = n;
    for (int i = 0; i < 40; i++) pow = rl_dim_mul(ctx, pow, n);
    CHECK(pow < 0);
    CHECK(rl_dim_guess(ctx, rl_dim_mul(ctx, big, n), INT64_MAX) == INT64_MAX);
    rl_ctx_free(ctx);
}

TEST(floors) {
    CHECK_CTX(ctx)
    rl_dim h = rl_dim_symbol(ctx, rl_internz(ctx, "H"));
    rl_dim f = rl_dim_floordiv(ctx, h, 2);
    CHECK_STR(show(ctx, f), "floor(H/2)");
    CHECK(f == rl_dim_floordiv(ctx, h, 2));
    CHECK(rl_dim_floordiv(ctx, rl_dim_mul(ctx, h, 2), 2) == h);
    CHECK(rl_dim_floordiv(ctx, 7, 2) == 3 && rl_dim_ceildiv(ctx, 7, 2) == 4 && rl_dim_ceildiv(ctx, 0, 2) == 0);
    rl_dim c = rl_dim_ceildiv(ctx, h, 2);
    CHECK_STR(show(ctx, c), "floor((H+1)/2)");
    CHECK(c == rl_dim_add(ctx, rl_dim_floordiv(ctx, rl_dim_sub(ctx, h, 1), 2), 1));
    CHECK(rl_dim_floordiv(ctx, f, 2) == rl_dim_floordiv(ctx, h, 4));
    CHECK(rl_dim_ceildiv(ctx, c, 2) == rl_dim_ceildiv(ctx, h, 4));
    CHECK(rl_dim_floordiv(ctx, rl_dim_add(ctx, rl_dim_mul(ctx, h, 2), 1), 4) == f);
    CHECK(rl_dim_guess(ctx, c, 9) == 5);
    rl_dim x = h; /* nests without an end: gives up at some depth, does not grow for ever */
    for (int i = 0; i < 500; i++) x = rl_dim_floordiv(ctx, rl_dim_add(ctx, x, h), 3);
    CHECK(x < 0 && strlen(show(ctx, x)) < 1000);
    rl_ctx_free(ctx);
}

/* floor((a*H + b) / k) and what it is folded to agree for every H. */
TEST(floors_exhaustive) {
    CHECK_CTX(ctx)
    rl_dim h = rl_dim_symbol(ctx, rl_internz(ctx, "H"));
    for (int64_t a = 1; a < 7; a++)
        for (int64_t b = 0; b < 7; b++)
            for (int64_t k = 1; k < 7; k++)
                for (int64_t m = 1; m < 4; m++) {
                    rl_dim d = rl_dim_add(ctx, rl_dim_mul(ctx, h, a), b);
                    d = rl_dim_floordiv(ctx, rl_dim_add(ctx, rl_dim_floordiv(ctx, d, k), b), m);
                    for (int64_t x = 0; x < 20; x++) CHECK(rl_dim_guess(ctx, d, x) == ((a * x + b) / k + b) / m);
                }
    rl_ctx_free(ctx);
}

TEST(alike) {
    CHECK_CTX(ctx)
    static const struct { const char *a, *b, *size, *is; } row[] = { /* a = b, so size is written as what it is */
        {"H", "2*floor((H+1)/2)", "H", "2*floor((H+1)/2)"}, {"H", "2*floor((H+1)/2)", "floor(H/2)", "floor((H+1)/2)"},
        {"H", "2*floor((H+1)/2)", "N*H+1", "2*N*floor((H+1)/2)+1"}, {"H", "4*floor((H+3)/4)", "floor((H+1)/2)", "2*floor((H+3)/4)"},
        {"floor((H+1)/2)", "2*floor((H+3)/4)", "floor((H+1)/2)", "2*floor((H+3)/4)"}, {"A", "H", "H", "H"}, {"A", "H", "A", "H"},
        {"N*?1", "N*H", "?1", "?1"}, {"?1+1", "2*S", "?1", "2*S-1"}, {"'?max(A|B)'", "A", "'?max(A|B)'", "A"},
        {"A", "H+1", "A", "H+1"}, {"2*H", "4*N+2", "H", "2*N+1"}, {"4*?1", "8*floor(H/8)", "?1", "2*floor(H/8)"}, {"floor(H/2)", "floor((H+1)/2)", "H", "H"},
    };
    for (size_t i = 0; i < RL_LEN(row); i++) {
        rl_dimrules r = {0};
        rl_dim a = parse(ctx, row[i].a), b = parse(ctx, row[i].b);
        bool news = rl_dim_equate(ctx, &ctx->mem, &r, a, b);
        CHECK_STR(show(ctx, rl_dim_normal(ctx, &r, parse(ctx, row[i].size))), row[i].is);
        CHECK(!news || rl_dim_normal(ctx, &r, a) == rl_dim_normal(ctx, &r, b));
        CHECK(!rl_dim_equate(ctx, &ctx->mem, &r, a, b) || !news);
    }
    static const char *const never[][2] = {{"H", "64"}, {"H", "H+1"}, {"2*H", "2*N+1"}, {"H", "2*floor(H/2)-2"}, {"3", "3"}, {"3", "4"}};
    for (size_t i = 0; i < RL_LEN(never); i++) {
        rl_dimrules r = {0};
        CHECK(!rl_dim_equate(ctx, &ctx->mem, &r, parse(ctx, never[i][0]), parse(ctx, never[i][1])) && r.n == 0);
    }
    rl_dimrules r = {0}; /* the levels of a U-Net, from the innermost */
    CHECK(rl_dim_equate(ctx, &ctx->mem, &r, parse(ctx, "floor((H+3)/4)"), parse(ctx, "2*floor((H+7)/8)")));
    CHECK(rl_dim_equate(ctx, &ctx->mem, &r, parse(ctx, "floor((H+1)/2)"), parse(ctx, "2*floor((H+3)/4)")));
    CHECK(rl_dim_equate(ctx, &ctx->mem, &r, parse(ctx, "H"), parse(ctx, "2*floor((H+1)/2)")));
    CHECK_STR(show(ctx, rl_dim_normal(ctx, &r, parse(ctx, "H"))), "8*floor((H+7)/8)");
    CHECK_STR(show(ctx, rl_dim_normal(ctx, &r, parse(ctx, "floor((H-1)/4)+1"))), "2*floor((H+7)/8)");
    rl_ctx_free(ctx);
}

TEST(parsing) {
    CHECK_CTX(ctx)
    const char *same[] = {"3", "N", "2*N*S+1", "N-1", "-N+5", "floor(H/2)", "N+floor((H+1)/2)", "'a b'", "'it\\'s'", "?0", "N*N",
                          "'batch+1'", "a.b:c_0#1", "floor('x y'/3)", "'3'", "''", "floor((H*W+floor((H+1)/2))/3)"};
    for (size_t i = 0; i < RL_LEN(same); i++) {
        rl_dim d = parse(ctx, same[i]);
        CHECK(d != RL_DIM_BAD);
        if (d != RL_DIM_BAD) CHECK_STR(show(ctx, d), same[i]);
    }
    const char *bad[] = {"", "+", "N+", "2-3", "'a", "floor(H)", "floor(H/0)", "(N", "*N", "?", "99999999999999999999", "N M"};
    for (size_t i = 0; i < RL_LEN(bad); i++) CHECK(parse(ctx, bad[i]) == RL_DIM_BAD);
    CHECK(parse(ctx, "(N + 1) * 2") == parse(ctx, "2*N+2"));
    CHECK(parse(ctx, "ceil(H/2)") == parse(ctx, "floor((H+1)/2)"));
    char deep[1000];
    memset(deep, '(', sizeof deep - 1);
    deep[sizeof deep - 1] = 0;
    CHECK(parse(ctx, deep) == RL_DIM_BAD);
    rl_ctx_free(ctx);
}

static const char *renumbered(rl_ctx *ctx, const char *s, rl_hash *seen) {
    rl_text t = {.mem = &ctx->mem};
    rl_dim_renumber(&t, s, strlen(s), seen);
    return t.p;
}

/* The same sizes after other inferences: the same text. */
TEST(renumbering) {
    CHECK_CTX(ctx)
    static const char *const row[][2] = {{"4", "4"}, {"2*?17+N", "2*?0+N"}, {"?5*?17", "?1*?0"}, {"'a ?17'+?17", "'a ?17'+?0"},
                                         {"'?min(300|?17)'", "'?min(300|?0)'"}, {"'?max(?5|?6)'-1", "'?max(?1|?2)'-1"},
                                         {"'?max(\\'?max(?6|?8)\\'|\\'it?8\\')'", "'?max(\\'?max(?2|?3)\\'|\\'it?8\\')'"},
                                         {"'?max(\\'floor(?8*?17/2)\\'|?8)'*?5", "'?max(\\'floor(?8*?17/2)\\'|?3)'*?1"},
                                         {"'?min(2*\\'?max(\\\\\\'a (?8\\\\\\'|?8)\\'|?8)'", "'?min(2*\\'?max(\\\\\\'a (?8\\\\\\'|?3)\\'|?3)'"},
                                         {"'(?8\\\\'*'(?8\\''*?8", "'(?8\\\\'*'(?8\\''*?3"}};
    rl_hash seen = {.mem = &ctx->mem};
    for (size_t i = 0; i < RL_LEN(row); i++) CHECK_STR(renumbered(ctx, row[i][0], &seen), row[i][1]);
    rl_ctx_free(ctx);
}

int main(void) {
    RUN(polynomials);
    RUN(division);
    RUN(split);
    RUN(not_less);
    RUN(fresh);
    RUN(floors);
    RUN(floors_exhaustive);
    RUN(alike);
    RUN(parsing);
    RUN(renumbering);
    return check_done();
}
