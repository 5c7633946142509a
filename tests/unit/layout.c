/* layout.h: canonical form, text, and the two together over all orders of small tensors. */
#include "../../src/layout.h"

#include "check.h"

/* What the text reads as, printed again; "-" for row-major, "!..." for an error. */
static const char *again(rl_ctx *ctx, const char *s, uint32_t rank, const rl_dim *dim) {
    const rl_layout *l;
    const char *why = NULL;
    rl_text t = {.mem = &ctx->mem};
    if (!rl_layout_parse(&ctx->mem, &s, rank, dim, &l, &why)) rl_put(&t, "!%s", why);
    else if (*s) rl_put(&t, "!left: %s", s);
    else if (!l) rl_put(&t, "-");
    else rl_layout_print(&t, l, rank, dim);
    return t.p;
}

TEST(text) {
    CHECK_CTX(ctx)
    const rl_dim d4[] = {2, 32, 5, 6}, d3[] = {2, 3, 8}, one[] = {1, 3, 1, 6};
    CHECK_STR(again(ctx, "acdb", 4, d4), "acdb");
    CHECK_STR(again(ctx, "abcd", 4, d4), "-");
    CHECK_STR(again(ctx, "nhwc", 4, d4), "acdb");
    CHECK_STR(again(ctx, "chwn", 4, d4), "bcda");
    CHECK_STR(again(ctx, "nchw", 4, d4), "-");
    CHECK_STR(again(ctx, "nChw16c", 4, d4), "aBcd16b");
    CHECK_STR(again(ctx, "Acdb2a", 4, d4), "cdba"); /* an outer part of 1 is none */
    CHECK_STR(again(ctx, "aBcd16b", 4, d4), "aBcd16b");
    CHECK_STR(again(ctx, "aBcd4b2b", 4, d4), "aBcd8b");
    CHECK_STR(again(ctx, "\"ab(cd)->cabd d=2\"", 3, d3), "Cab2c");
    CHECK_STR(again(ctx, "\"ab(cd)->dabc d=2\"", 3, d3), "\"ab(cd)->dabc d=2\"");
    CHECK_STR(again(ctx, "\"ab(cd)->abcd c=4\"", 3, d3), "-");
    CHECK_STR(again(ctx, "\"ab(cde)->acbde d=2 e=2\"", 3, d3), "aCb4c");
    CHECK_STR(again(ctx, "acdb", 4, one), "acdb");
    CHECK_STR(again(ctx, "dbac", 4, one), "acdb");
    CHECK_STR(again(ctx, "bacd", 4, one), "-");
    CHECK_STR(again(ctx, "acb", 4, d4), "!a layout has one letter for each dim");
    CHECK_STR(again(ctx, "acca", 4, d4), "!a layout has each axis once");
    CHECK_STR(again(ctx, "aBcd5b", 4, d4), "!the pieces of an axis do not multiply to its dim");
    CHECK_STR(again(ctx, "\"ab(cd)->cab\"", 3, d3), "!both sides of a layout have the same letters");
    CHECK_STR(again(ctx, "\"ab(cd)->cabd\"", 3, d3), "!the sizes of two pieces of an axis are missing");
    CHECK_STR(again(ctx, "\"ab(c", 3, d3), "!a letter is wanted here");
    CHECK_STR(again(ctx, "", 0, NULL), "-");
    rl_ctx_free(ctx);
}

TEST(symbolic) {
    CHECK_CTX(ctx)
    rl_dim h = rl_dim_symbol(ctx, rl_internz(ctx, "H")), w = rl_dim_symbol(ctx, rl_internz(ctx, "W x"));
    rl_dim sum = rl_dim_add(ctx, w, 1), d[] = {h, rl_dim_mul(ctx, h, w)}, e[] = {h, rl_dim_mul(ctx, h, sum)};
    CHECK_STR(again(ctx, "ba", 2, d), "ba");
    CHECK_STR(again(ctx, "\"a(bc)->bac c='W x'\"", 2, d), "\"a(bc)->bac c='W x'\"");
    CHECK_STR(again(ctx, "\"a(bc)->bac b=H c='W x'+1\"", 2, e), "\"a(bc)->bac c='W x'+1\"");
    rl_ctx_free(ctx);
}

static uint32_t piece(const rl_layout *l, uint32_t axis, uint32_t sub) {
    for (uint32_t i = 0; i < l->n; i++)
        if (l->axis[i] == axis && l->sub[i] == sub) return i;
    return RL_NONE;
}

/* Well-formed for this type: each axis's pieces numbered from 0, each once, their product its dim. */
static bool fits(rl_ctx *ctx, const rl_layout *l, uint32_t rank, const rl_dim *dim) {
    uint32_t seen = 0;
    for (uint32_t a = 0; a < rank; a++) {
        rl_dim product = 1;
        for (uint32_t s = 0, i; (i = piece(l, a, s)) != RL_NONE; s++, seen++) product = rl_dim_mul(ctx, product, l->size[i]);
        if (product != dim[a]) return false;
    }
    return seen == l->n;
}

/* All orders of the digits 2*2, 3, 2*2: reading what is printed gives the same layout. */
TEST(exhaustive) {
    CHECK_CTX(ctx)
    const rl_dim dim[] = {4, 3, 4};
    const uint8_t axis[] = {0, 0, 1, 2, 2}, sub[] = {0, 1, 0, 0, 1};
    const rl_dim size[] = {2, 2, 3, 2, 2};
    uint32_t row = 0;
    for (uint32_t code = 0; code < 3125; code++) {
        uint8_t a[5], s[5];
        rl_dim z[5];
        uint32_t seen = 0, c = code;
        for (int i = 0; i < 5; i++, c /= 5) {
            a[i] = axis[c % 5];
            s[i] = sub[c % 5];
            z[i] = size[c % 5];
            seen |= 1u << c % 5;
        }
        if (seen != 31) continue;
        const rl_layout *l = rl_layout_make(&ctx->mem, 5, a, s, z), *m;
        row += !l;
        if (!l) continue;
        rl_text t = {.mem = &ctx->mem};
        rl_layout_print(&t, l, 3, dim);
        const char *p = t.p, *why;
        CHECK(fits(ctx, l, 3, dim));
        CHECK(rl_layout_parse(&ctx->mem, &p, 3, dim, &m, &why) && *p == 0 && rl_layout_equal(l, m));
    }
    CHECK(row == 1);
    rl_ctx_free(ctx);
}

TEST(perms) {
    CHECK_CTX(ctx)
    uint32_t p[4];
    const rl_dim dim[] = {2, 3, 4, 5};
    const uint8_t nhwc[] = {0, 2, 3, 1}, whole[4] = {0};
    const rl_layout *l = rl_layout_make(&ctx->mem, 4, nhwc, whole, (rl_dim[]){2, 4, 5, 3});
    CHECK(rl_layout_is_perm(l, 4, p) && p[1] == 2 && p[3] == 1);
    CHECK(!rl_layout_make(&ctx->mem, 4, (uint8_t[]){0, 1, 2, 3}, whole, dim) && rl_layout_is_perm(NULL, 4, p) && p[2] == 2);
    CHECK(!rl_layout_equal(l, NULL) && rl_layout_equal(l, l));
    const rl_dim other[] = {2, 3, 4, 6};
    CHECK(fits(ctx, l, 4, dim) && !fits(ctx, l, 4, other));
    rl_ctx_free(ctx);
}

int main(void) {
    RUN(text);
    RUN(symbolic);
    RUN(exhaustive);
    RUN(perms);
    return check_done();
}
