/* Steps of a device whose values lie by a plan: see native.h.
 *
 * Kernels of convolutions know of layouts (rl_step.native).  To others a blocked tensor is shown as something that they know: element-wise ops walk
 * over it as over any other, and a pool takes [N, blocks, H, W, lanes] for the channels-last [N blocks, lanes, H, W], and blocks of 4 with the images
 * inside, [blocks, H, W, N, 4] in memory, for [blocks, 4 N, H, W]. */

#include "device.h"
#include "fast.h"
#include "kernels.h"
#include "native.h"

/* ---- pools ---- */

static rl_tensor as_images(const rl_tensor *t, bool inside) {
    rl_tensor x = *t;
    int64_t n = t->dim[0], lanes = t->dim[4];
    x.rank = 4;
    x.dim[0] = inside ? t->dim[1] : n * t->dim[1], x.stride[0] = t->stride[1];
    x.dim[1] = inside ? n * lanes : lanes, x.stride[1] = 1;
    return x;
}

static rl_tensor as_blocks(const rl_tensor *t, const rl_native *n, int64_t images, bool inside) {
    rl_tensor y = *t;
    int64_t lanes = n->out.block, image = t->dim[2] * t->dim[3] * lanes;
    y.rank = 5;
    y.dim[0] = images, y.dim[1] = (n->nout + lanes - 1) / lanes, y.dim[4] = lanes;
    y.stride[4] = 1, y.stride[3] = inside ? images * lanes : lanes, y.stride[2] = t->dim[3] * y.stride[3];
    y.stride[1] = inside ? image * images : image, y.stride[0] = inside ? lanes : image * y.dim[1];
    return y;
}

static rl_status pool(rl_call *c, const rl_kernel *k) {
    const rl_native *n = c->step->native;
    const rl_tensor *const *was = c->in, *here = c->in[0];
    bool inside = n->in.perm[0] != 0;
    rl_tensor x = as_images(here, inside);
    c->declined = !rl_is_channels_last(&x);
    if (c->declined) return RL_OK;
    const rl_tensor **in = rl_copy(c->tmp, c->in, c->nin * sizeof *in);
    in[0] = &x;
    c->in = in;
    rl_status s = k->fn(c);
    c->in = was;
    if (s != RL_OK || c->declined) return s;
    rl_tensor made = c->out[0], y = as_blocks(&made, n, here->dim[0], inside);
    c->out[0] = y;
    rl_lay_clear(c->rt, &y, n->nout);
    return RL_OK;
}

/* ---- the kernel of the device ---- */

rl_status rl_native_device(rl_call *c, const rl_kernel *k) {
    rl_native *n = c->step->native;
    RL_TRY(rl_native_check(c));
    for (uint32_t i = 0; i < c->nin; i++) /* what a failed kernel left on the host */
        c->declined = c->declined || (n->channels[i] && c->in[i]->mem->on != c->rt->device);
    if (c->declined) return RL_OK;
    n->inner = k;
    if (n->kind == RL_NATIVE_CHAIN) return rl_native_chain(c);
    if (n->kind == RL_NATIVE_GLOBAL) return rl_native_global_pool(c);
    if (n->kind == RL_NATIVE_POOL && n->out.block) return pool(c, k);
    return k->fn(c);
}

/* ---- without one ---- */

/* Input i row-major, where it is blocked. */
static const rl_tensor *in_rows(rl_call *c, uint32_t i) {
    const rl_native *n = c->step->native;
    if (!n->channels[i]) return c->in[i];
    const rl_lay *lay = i == 0 ? &n->in : &n->out;
    rl_lay rows = rl_lay_rows(lay->rank);
    rl_tensor t = rl_lay_logical(c->in[i], n->channels[i]);
    rl_tensor *to = rl_call_temp(c, t.dtype, t.rank, t.dim);
    rl_lay_move(c->rt, to, &rows, c->in[i], lay, n->channels[i]);
    return to;
}

/* Values that only the plan's step has, under the names that its parts read. */
static void lend(const rl_call *c, const rl_nodeinfo *was, const rl_tensor *const *in, bool *lent) {
    for (uint32_t i = 0; i < was->nin; i++) {
        rl_tensor *slot = rl_has(was->in[i]) ? &c->frame->slot[was->in[i].i] : NULL;
        lent[i] = slot && in[i] && slot->kind == RL_ABSENT && !rl_same(was->in[i], c->node->in[i]);
        if (lent[i]) *slot = rl_tensor_keep(in[i]);
    }
}

static void take_back(const rl_call *c, const rl_nodeinfo *was, const bool *lent) {
    for (uint32_t i = 0; i < was->nin; i++)
        if (lent[i]) rl_tensor_drop(&c->frame->slot[was->in[i].i]);
}

static rl_status put_in_blocks(rl_call *c, const rl_native *n) {
    rl_tensor made = c->out[0];
    rl_lay rows = rl_lay_rows(n->out.rank);
    c->out[0] = (rl_tensor){0};
    if (made.kind != RL_TENSOR || made.rank != n->out.rank || made.dim[1] != n->nout) return rl_call_fail(c, RL_EMODEL, "the output is not as the plan says");
    const rl_tensor *y = rl_lay_make(c, 0, made.dtype, &n->out, made.dim);
    rl_tensor here = rl_tensor_on(c->rt, &made, c->rt->device);
    rl_lay_move(c->rt, y, &n->out, &here, &rows, n->nout);
    rl_tensor_drop(&here);
    rl_tensor_drop(&made);
    return c->rt->failed;
}

rl_status rl_native_device_plain(rl_call *c) {
    rl_rt *rt = c->rt;
    rl_step *s = c->step;
    rl_native *n = s->native;
    const rl_backend *was = rt->on;
    const rl_nodeinfo *info = s->info;
    if (n->strict) return rl_call_fail(c, RL_ELIMIT, "it has no kernel in these layouts");
    RL_TRY(rl_native_check(c));
    const rl_tensor **in = rl_new(c->tmp, const rl_tensor *, c->nin + 1);
    bool *lent = rl_new(c->tmp, bool, c->nin + 1);
    rt->on = rt->device;
    for (uint32_t i = 0; i < c->nin; i++) in[i] = in_rows(c, i);
    rt->on = was;
    rl_call call = *c;
    call.node = s->info = n->was;
    call.in = in;
    call.declined = false;
    s->native = NULL;
    lend(c, n->was, in, lent);
    rl_status status = rl_exec_kernel(s, &call);
    take_back(c, n->was, lent);
    s->native = n;
    s->info = info;
    s->ran = "plain";
    c->declined = false;
    if (status != RL_OK || !n->out.block) return status;
    rt->on = rt->device;
    status = put_in_blocks(c, n);
    rt->on = was;
    return status;
}
