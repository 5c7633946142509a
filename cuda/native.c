/* What plans of layouts (runtime/native.h) have on the device: values of shorter and longer floats and of bytes, row-major, channels-last, in NCHW4,
 * NCHW32 and CHWN4; the kernels that take these, and what they cost where nothing is measured (src/gpu_costs.h).  Which ones a step really has its
 * kernel says: it is run in each before there is a plan. */
#include "../src/gpu_costs.h"
#include <string.h>

#include "../runtime/kernels.h"
#include "backend.h"

#define BYTES (RL_T(RL_I8) | RL_T(RL_U8))

static bool blocks(rl_dtype t, const rl_lay *lay) {
    (void)t;
    return lay->rank == 4 && (lay->block == 4 || lay->block == 32);
}

/* ---- costs ---- */

static rl_blocks_layout named(const rl_lay *lay) {
    rl_lay last = rl_lay_last(lay->rank);
    if (lay->block == 32) return RL_BLOCKS_NCHW32;
    if (lay->block) return lay->perm[0] ? RL_BLOCKS_CHWN4 : RL_BLOCKS_NCHW4;
    return rl_lay_same(lay, &last) ? RL_BLOCKS_NHWC : RL_BLOCKS_NCHW;
}

static int64_t nbyte(const rl_tensor *t) {
    return t && t->kind == RL_TENSOR ? (int64_t)rl_bytes_of(t->dtype, rl_numel(t)) : 0;
}

/* Did it make a view of an input? */
static bool made_nothing(const rl_call *c) {
    for (uint32_t i = 0; i < c->nin; i++)
        if (c->nout && c->out[0].mem && rl_call_in(c, i) && rl_call_in(c, i)->mem == c->out[0].mem) return true;
    return false;
}

static void logical_dims(const rl_tensor *t, const rl_lay *lay, int64_t channels, int64_t *dim) {
    memcpy(dim, t->dim, 4 * sizeof *dim);
    if (lay->block) dim[1] = channels;
}

static int64_t conv_ns(const rl_call *c, const rl_lay *in, const rl_lay *out) {
    const rl_tensor *x = rl_call_in(c, 0), *y = &c->out[0], *w = rl_call_in(c, strcmp(c->node->type, "QLinearConv") == 0 ? 3 : 1);
    int64_t xd[4], yd[4], group = rl_attr_int(c->node, "group", 1);
    bool transposed = strcmp(c->node->type, "ConvTranspose") == 0, library = c->step->ran && strncmp(c->step->ran, "cuDNN", 5) == 0;
    if (in->rank != 4 || w->rank != 4) return -1;
    logical_dims(x, in, transposed ? w->dim[0] : w->dim[1] * group, xd);
    logical_dims(y, out, transposed ? w->dim[1] * group : w->dim[0], yd);
    rl_blocks_conv k = {x->dtype, y->dtype, xd, yd, group, w->dim[2] * w->dim[3], transposed};
    int64_t ns = rl_blocks_conv_ns(&k, named(in), named(out), library);
    return ns < 0 ? rl_blocks_conv_ns(&k, named(in), named(out), false) : ns;
}

static int64_t cost(const rl_call *c, rl_native_kind kind, const rl_lay *in, const rl_lay *out) {
    int64_t n = 0, ns = kind == RL_NATIVE_CONV && in ? conv_ns(c, in, out) : -1;
    if (ns >= 0) return ns;
    if (made_nothing(c)) return 0;
    for (uint32_t i = 0; i < c->nin; i++) n += nbyte(rl_call_in(c, i));
    for (uint32_t i = 0; i < c->nout; i++) n += nbyte(&c->out[i]);
    return rl_blocks_walk_ns(n);
}

static int64_t move_cost(const rl_tensor *shape) {
    return rl_blocks_walk_ns(2 * (int64_t)rl_bytes_of(shape->dtype, rl_numel(shape)));
}

/* ---- kernels ---- */

static const rl_native_row rows[] = {
    {rl_gpu_conv, RL_NATIVE_CONV}, {rl_gpu_conv_transpose, RL_NATIVE_CONV}, {rl_gpu_conv_bytes, RL_NATIVE_CONV}, {rl_gpu_op_pool, RL_NATIVE_POOL},
    {rl_gpu_global_pool, RL_NATIVE_GLOBAL}, {rl_gpu_unary, RL_NATIVE_CHAIN}, {rl_gpu_binary, RL_NATIVE_CHAIN}, {rl_gpu_clip, RL_NATIVE_CHAIN},
    {rl_gpu_chain, RL_NATIVE_CHAIN},
    {rl_gpu_op_cast, RL_NATIVE_CHAIN}, {rl_gpu_quantize, RL_NATIVE_CHAIN}, {rl_ref_concat, RL_NATIVE_CONCAT}};

const rl_native_ways rl_gpu_ways = {.types = RL_T(RL_F32) | RL_T(RL_F16) | RL_T(RL_BF16) | BYTES, .row = rows, .nrow = RL_LEN(rows), .blocks = blocks,
                                    .cost = cost, .move_cost = move_cost};
