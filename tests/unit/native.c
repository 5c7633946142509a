/* native.h: layouts and moves between them; plans with blocked values everywhere give the reference's outputs, and lanes that stand for no
 * channel are zero at every step's inputs.  Runs by plans need oneDNN: without it they are left out, with a line. */
#include <math.h>

#include "../../runtime/fast.h"
#include "../../runtime/fuse.h"
#include "../../runtime/native.h"
#include "../../runtime/native_whole.h"
#include "../../runtime/run_cmd.h"
#include "../../src/text.h"
#include "check.h"

/* 20, 12 and 33 channels fill no block; Sigmoid, Exp and x / 0 make something of zeros. */
static const char model[] =
    "graph native opset=17 {\n"
    "  in %x f32[2,12,5,5]\n"
    "  const %w1 f32[20,12,3,3] seed=1\n  const %w2 f32[33,52,1,1] seed=2\n  const %w3 f32[33,1,3,3] seed=3\n  const %w4 f32[20,33,1,1] seed=4\n"
    "  const %s f32[20] seed=5\n  const %v f32[20] {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20}\n"
    "  const %k f32[33,1,1] seed=6\n  const %axes i64[1] {1}\n  const %some f32[12,1,1] {1,2,3,4,5,6,7,8,9,10,11,12}\n"
    "  %a = Conv(%x, %w1) pads=[1,1,1,1]\n  %b = Sigmoid(%a)\n  %b2 = Tanh(%b)\n  %c = Exp(%b2)\n  %x2 = Div(%x, %some)\n  %x3 = Exp(%x2)\n"
    "  %d = Concat(%c, %x3, %b) axis=1\n  %e = Conv(%d, %w2)\n  %f = MaxPool(%e) kernel_shape=[3,3] pads=[1,1,1,1]\n  %f2 = Tanh(%f)\n"
    "  %g = Conv(%f2, %w3) group=33 pads=[1,1,1,1]\n  %h = Tanh(%g)\n  %i = Add(%h, %k)\n  %j = GlobalAveragePool(%i)\n  %jj = ReduceMean(%i) axes=[3,-2]\n  %j2 = Sigmoid(%j)\n"
    "  %l2 = Mul(%i, %j2)\n  %l = Add(%l2, %jj)\n  %m = Conv(%l, %w4)\n  %n = Sub(%m, %c)\n  %o = BatchNormalization(%n, %v, %s, %s, %v)\n  %p = HardSwish(%o)\n"
    "  %q = Add(%p, %b)\n  %r = Flatten(%q)\n  %t = ReduceSum(%r, %axes) keepdims=1\n"
    "  out %t, %q, %d\n"
    "}\n";

static rl_status parse(rl_ctx *ctx, rl_graph **g) {
    return rl_text_parse(ctx, "model", model, sizeof model - 1, g);
}

/* ---- layouts ---- */

static void fill(const rl_tensor *t, float from) {
    float *p = t->mem->p;
    for (size_t i = 0; i < t->mem->nbyte / sizeof *p; i++) p[i] = from + (float)i;
}

/* Element [n,c,h,w] of a tensor that lies so. */
static float at(const rl_tensor *t, const rl_lay *lay, int64_t n, int64_t c, int64_t h, int64_t w) {
    const float *p = rl_data(t);
    int64_t b = lay->block;
    if (!b) return p[n * t->stride[0] + c * t->stride[1] + h * t->stride[2] + w * t->stride[3]];
    return p[n * t->stride[0] + c / b * t->stride[1] + h * t->stride[2] + w * t->stride[3] + c % b];
}

static bool lanes_are_zero(const rl_tensor *t, int64_t channels) {
    int64_t block = t->dim[t->rank - 1], all = rl_numel(t);
    const float *p = rl_data(t);
    for (int64_t k = 0; k < all; k++) {
        int64_t index[RL_RANK], left = k, at = 0;
        for (uint32_t i = t->rank; i-- > 0; left /= t->dim[i]) index[i] = left % t->dim[i], at += index[i] * t->stride[i];
        if (index[1] * block + index[t->rank - 1] >= channels && !(p[at] == 0)) return false;
    }
    return true;
}

TEST(names) {
    CHECK_CTX(ctx)
    static const char *const good[] = {"a", "abcd", "acdb", "aBcd8b", "aBcd16b", "aBcde16b", "abcdefgh", "aBcd4b", "aBcd32b", "Bcda4b"};
    static const char *const bad[] = {"", "abcc", "b", "aBcd64b", "aBcde4b", "Bcda8b", "aBcd5b", "aBc16b", "aBcd16", "aBcdef16b", "abcdefghi", "Abcd", "aBcd16bb", "aBdc16b"};
    rl_lay lay;
    for (size_t i = 0; i < RL_LEN(good); i++) {
        rl_text t = {.mem = &ctx->mem};
        CHECK(rl_lay_parse(good[i], strlen(good[i]), &lay));
        rl_lay_put(&lay, &t);
        CHECK_STR(t.p, good[i]);
    }
    for (size_t i = 0; i < RL_LEN(bad); i++) CHECK(!rl_lay_parse(bad[i], strlen(bad[i]), &lay));
    rl_ctx_free(ctx);
}

/* From each layout to each, for channels that fill their blocks and that do not. */
TEST(moves) {
    CHECK_CTX(ctx)
    rl_rt *rt = rl_rt_new(ctx, &rl_backend_cpu, 1);
    rl_lay lay[2 + RL_LAY_BLOCKED] = {rl_lay_rows(4), rl_lay_last(4)};
    for (uint32_t i = 0; i < RL_LAY_BLOCKED; i++) lay[2 + i] = rl_lay_nth(4, i);
    const int64_t channels[] = {1, 8, 12, 16, 20, 33};
    for (size_t c = 0; c < RL_LEN(channels); c++)
        for (size_t i = 0; i < RL_LEN(lay); i++)
            for (size_t k = 0; k < RL_LEN(lay); k++) {
                const int64_t dim[] = {2, channels[c], 3, 2};
                rl_tensor x = rl_lay_new(rt, RL_F32, &lay[i], dim), y = rl_lay_new(rt, RL_F32, &lay[k], dim);
                fill(&x, 1);
                fill(&y, -1e6f);
                rl_lay_move(rt, &y, &lay[k], &x, &lay[i], dim[1]);
                bool same = true;
                for (int64_t e = 0; e < 12 * dim[1]; e++) {
                    int64_t n = e / (6 * dim[1]), ch = e / 6 % dim[1], h = e / 2 % 3, w = e % 2;
                    same = same && at(&x, &lay[i], n, ch, h, w) == at(&y, &lay[k], n, ch, h, w);
                }
                CHECK(same && (!lay[k].block || (lanes_are_zero(&y, dim[1]) && rl_lay_holds(&lay[k], &y, dim[1]))));
                rl_tensor_drop(&x);
                rl_tensor_drop(&y);
            }
    rl_rt_free(rt);
    rl_ctx_free(ctx);
}

/* ---- plans ---- */

/* Everything that can be in blocks of this size. */
static void plan_blocks(const rl_exec *x, rl_arena *mem, uint32_t block, rl_text *text) {
    rl_native_op *op = rl_new(mem, rl_native_op, x->nstep);
    rl_native_plan p = {.machine = "a test", .op = op};
    rl_pin pin[RL_PINS];
    for (uint32_t i = 0; i < x->nstep; i++) {
        uint32_t n = rl_native_pins(x, &x->step[i], pin);
        rl_lay *lay = rl_new(mem, rl_lay, n + 1);
        rl_native_kind kind = rl_native_kind_of(x, &x->step[i]);
        const rl_valinfo *y = n ? rl_val(x->g, x->step[i].info->out[0]) : NULL;
        for (uint32_t k = 0; k < n; k++) {
            const rl_valinfo *v = rl_val(x->g, pin[k].v);
            bool spread = kind != RL_NATIVE_CHAIN || pin[k].out || (v->rank == y->rank && memcmp(v->dim, y->dim, v->rank * sizeof *v->dim) == 0);
            bool blocked = kind != RL_NATIVE_NONE && spread && !(kind == RL_NATIVE_GLOBAL && pin[k].out);
            lay[k] = blocked ? rl_lay_blocked(4, block) : rl_lay_rows(v->rank);
        }
        CHECK(rl_native_allows(x, &x->step[i], pin, n, lay));
        if (n) op[p.nop++] = (rl_native_op){i, n, lay, false};
    }
    rl_native_print(x, &p, text);
}

typedef struct { uint32_t blocked, wrong; } seen;

static rl_status look(void *user, rl_frame *f, rl_step *s, rl_call *c) {
    seen *a = user;
    (void)f;
    for (uint32_t i = 0; s->native && i < c->nin; i++) {
        if (!s->native->channels[i]) continue;
        a->blocked++;
        a->wrong += !lanes_are_zero(c->in[i], s->native->channels[i]);
    }
    return RL_OK;
}

/* What the reference makes, and what a run by this plan does. */
static void compare_runs(rl_ctx *ctx, uint32_t block) {
    rl_rt *rt = rl_rt_new_for(ctx, true, 1), *ref = rl_rt_new(ctx, &rl_backend_cpu, 1);
    rl_graph *g = NULL, *g2 = NULL;
    rl_exec *first, *x, *want;
    rl_tensor in = {0}, out[3] = {{0}}, expected[3] = {{0}};
    rl_text text = {.mem = &ctx->mem};
    seen saw = {0};
    CHECK(parse(ctx, &g) == RL_OK);
    CHECK(parse(ctx, &g2) == RL_OK);
    CHECK(rl_run_inputs(ref, g2, &(rl_runopt){.seed = 7}, 7, &in) == RL_OK);
    CHECK(rl_exec_new(ref, g2, &want) == RL_OK && rl_exec_run(want, &in, expected) == RL_OK);
    CHECK(rl_exec_new(rt, g, &first) == RL_OK);
    plan_blocks(first, &ctx->mem, block, &text);
    rt->native = (rl_span){(const uint8_t *)text.p, text.n};
    CHECK(rl_exec_new(rt, g, &x) == RL_OK);
    x->probe = look;
    x->probe_user = &saw;
    for (uint32_t run = 0; run < 3; run++) { /* the second goes by a memory plan of what the first saw */
        CHECK(rl_exec_run(x, &in, out) == RL_OK);
        for (uint32_t i = 0; i < 3; i++) {
            rl_tensor a = rl_contiguous(rt, &out[i]), b = rl_contiguous(ref, &expected[i]);
            double worst = 0, most = 0;
            CHECK(rl_same_dims(&a, &b));
            for (int64_t k = 0; k < rl_numel(&a); k++) {
                worst = fmax(worst, fabs((double)((float *)rl_data(&a))[k] - (double)((float *)rl_data(&b))[k]));
                most = fmax(most, fabs((double)((float *)rl_data(&b))[k]));
            }
            CHECK(worst <= 1e-4 * most);
            rl_tensor_drop(&a);
            rl_tensor_drop(&b);
            rl_tensor_drop(&out[i]);
        }
    }
    CHECK(saw.blocked > 3 * 20);
    CHECK(saw.wrong == 0);
    rl_rt_free(rt);
    rl_rt_free(ref);
    rl_graph_free(g);
    rl_graph_free(g2);
}

static bool has_onednn(rl_ctx *ctx) {
    rl_rt *rt = rl_rt_new_for(ctx, true, 1);
    bool has = rt->fast != NULL;
    rl_rt_free(rt);
    return has;
}

TEST(blocked_runs) {
    CHECK_CTX(ctx)
    if (!has_onednn(ctx)) puts("runs by plans are skipped: oneDNN is not found");
    else for (uint32_t block = 8; block <= 16; block += 8) compare_runs(ctx, block);
    rl_ctx_free(ctx);
}

/* What is printed reads as the same plan; a plan of this graph and no other. */
TEST(texts) {
    CHECK_CTX(ctx)
    rl_graph *g;
    rl_exec *x;
    rl_rt *rt = rl_rt_new_for(ctx, true, 1);
    rl_text first = {.mem = &ctx->mem}, second = {.mem = &ctx->mem};
    rl_native_plan p;
    CHECK(parse(ctx, &g) == RL_OK && rl_exec_new(rt, g, &x) == RL_OK);
    plan_blocks(x, &ctx->mem, 8, &first);
    CHECK(rl_native_parse(x, first.p, first.n, &p) == RL_OK && p.nop > 0);
    rl_native_print(x, &p, &second);
    CHECK_STR(second.p, first.p);
    for (size_t n = 0; n < first.n; n += 7) CHECK(rl_native_parse(x, first.p, n, &p) == RL_EMODEL);
    first.p[strlen("relayout-plan 1\nmachine a test\ngraph ")] ^= 1;
    CHECK(rl_native_parse(x, first.p, first.n, &p) == RL_EMODEL);
    rl_rt_free(rt);
    rl_graph_free(g);
    rl_ctx_free(ctx);
}

/* A convolution that writes the DepthToSpace's pixels, and a chain that is one step. */
static const char joined[] =
    "graph joined opset=17 {\n"
    "  in %x f32[1,16,6,6]\n"
    "  const %w f32[16,16,1,1] seed=1\n  const %cut i64[6] {1,4,6,2,6,2}\n  const %to i64[3] {4,36,4}\n"
    "  %a = Conv(%x, %w)\n  %b = Relu(%a)\n  %d = DepthToSpace(%b) blocksize=2\n"
    "  %r = Reshape(%d, %cut)\n  %t = Transpose(%r) perm=[0,3,5,2,4,1]\n  %y = Reshape(%t, %to)\n"
    "  out %y\n"
    "}\n";

static const rl_step *step_of(const rl_exec *x, const char *type, uint32_t nth) {
    for (uint32_t i = 0; i < x->nstep; i++)
        if (strcmp(x->step[i].info->type, type) == 0 && !nth--) return &x->step[i];
    return NULL;
}

/* Each step of x takes 100 and its place; what the steps of `plain` take of that. */
static const int64_t *times_of(rl_ctx *ctx, const rl_exec *plain, const rl_exec *x, int64_t *moves) {
    rl_whole w = {.step = rl_new(&ctx->mem, int64_t, x->nstep + 1)};
    int64_t all = 0, found = 0;
    *moves = 0;
    for (uint32_t i = 0; i < x->nstep; i++) {
        w.step[i] = 100 + i;
        if (rl_native_is_move(&x->step[i])) ++*moves;
        else all += w.step[i];
    }
    const int64_t *ns = rl_whole_steps(&ctx->mem, plain, x, &w);
    for (uint32_t i = 0; i < plain->nstep; i++) found += RL_MAX(ns[i], 0);
    CHECK(found == all);
    return ns;
}

static int64_t time_of(const rl_exec *plain, const int64_t *ns, const char *type, uint32_t nth) {
    const rl_step *s = step_of(plain, type, nth);
    return s ? ns[s - plain->step] : -2;
}

/* Times of a run are those of steps as plans speak of them, whatever is joined in the run, and wherever a plan puts moves. */
TEST(times_of_joined_steps) {
    CHECK_CTX(ctx)
    rl_rt *rt = rl_rt_new_for(ctx, true, 1);
    rl_graph *g = NULL;
    rl_exec *plain, *x, *planned;
    rl_text text = {.mem = &ctx->mem};
    int64_t moves;
    CHECK(rl_text_parse(ctx, "joined", joined, sizeof joined - 1, &g) == RL_OK);
    rt->no_homes = true;
    CHECK(rl_exec_new(rt, g, &plain) == RL_OK);
    rt->no_homes = false;
    plan_blocks(plain, &ctx->mem, 16, &text);
    CHECK(rl_exec_new(rt, g, &x) == RL_OK);
    rt->native = (rl_span){(const uint8_t *)text.p, text.n};
    if (rt->fast) CHECK(rl_exec_new(rt, g, &planned) == RL_OK);
    if (rt->fast && step_of(x, "Conv", 0)->fold) {
        const int64_t *ns = times_of(ctx, plain, x, &moves);
        CHECK(plain->nstep == 5 && x->nstep == 2 && moves == 0);
        CHECK(time_of(plain, ns, "Conv", 0) == 100 && time_of(plain, ns, "DepthToSpace", 0) == -1);
        CHECK(time_of(plain, ns, "Reshape", 0) == -1 && time_of(plain, ns, "Transpose", 0) == -1 && time_of(plain, ns, "Reshape", 1) == 101);
        ns = times_of(ctx, plain, planned, &moves);
        CHECK(moves == 2 && time_of(plain, ns, "Conv", 0) == 101 && time_of(plain, ns, "DepthToSpace", 0) == 103);
    }
    rl_rt_free(rt);
    rl_graph_free(g);
    rl_ctx_free(ctx);
}

int main(void) {
    RUN(names);
    RUN(times_of_joined_steps);
    RUN(moves);
    RUN(blocked_runs);
    RUN(texts);
    return check_done();
}
