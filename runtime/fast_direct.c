/* Convolutions by direct loops (direct.h): which can be, which are, and their weights. */
#include <math.h>

#include "direct.h"
#include "fast_conv.h"
#include "kernels_fast.h"
#include "native.h"
#include "winograd.h"

enum { LARGE_WINDOW = 25 /* taps */ };
/* Channels that a 1 x 1 convolution makes; else the direct loops lose more than a Concat takes, or than some shuffles. */
enum { FEWEST_OUT = 16, MOST_OUT = 64, MOST_SHUFFLED = 1024 };
enum { WINOGRAD_MOST = 1 << 22 /* floats of packed weights */ };
/* Of a ConvTranspose whose windows lie side by side: weights that stay in the first caches, or so few pixels that oneDNN's own moves cost more. */
enum { BLOCKS_MOST = 1 << 14, BLOCKS_PIXELS = 64 };

static bool is_depthwise(const rl_convolution *v) {
    return v->group > 1 && v->group == v->x->dim[1] && v->dim[1] == v->group;
}

static int64_t taps_of(const rl_convolution *v) {
    return rl_product(v->k->dim + 2, v->k->rank - 2);
}

/* Channels side by side in a tensor of the output's dims, or of one spatial dim less where v is lifted. */
static bool lies_last(const rl_tensor *t) {
    return t->dim[1] == 1 || t->stride[1] == 1;
}

/* A ConvTranspose whose windows lie side by side: each input pixel makes a block of outputs, as a 1 x 1 convolution with a channel for each. */
static bool makes_blocks(const rl_convolution *v) {
    bool apart = v->group == 1;
    for (uint32_t i = 0; i < v->w.r; i++)
        apart = apart && v->w.kernel[i] == v->stride[i] && v->w.dilation[i] == 1 && !v->before[i] && v->w.in[i] == v->w.out[i] * v->stride[i];
    return apart;
}

/* Pixels that one makes, along a spatial dim. */
static int64_t block_of(const rl_convolution *v, uint32_t i) {
    return v->back ? v->stride[i] : v->fold ? v->fold->block : 1;
}

static bool fits_plan(const rl_call *c, uint32_t rank) {
    const rl_native *n = c->step->native;
    rl_lay last = rl_lay_last(rank);
    return !n || (rl_lay_same(&n->in, &last) && rl_lay_same(&n->out, &last));
}

bool rl_direct_can(const rl_call *c, const rl_convolution *v) {
    const rl_fused *fused = c->step->fused;
    bool deep = is_depthwise(v);
    if (v->back ? !makes_blocks(v) : taps_of(v) > RL_DIRECT_TAPS) return false;
    if ((!deep && v->group != 1) || !fits_plan(c, v->lifted ? 3 : v->x->rank)) return false;
    if (!rl_call_is_constant(c, 1) || (v->bias && !rl_call_is_constant(c, 2)))
        return false;
    for (uint32_t k = 0; k < (v->pieces ? v->pieces->n : 1); k++) {
        const rl_tensor *x = v->pieces ? rl_call_in(c, v->pieces->piece[k].in) : v->x;
        if (deep && !lies_last(x)) return false;
        for (uint32_t i = 0; i < x->rank; i++)
            if (x->stride[i] < 0) return false;
    }
    for (uint32_t i = 0; fused && i < fused->npost; i++)
        if (rl_row_is_binary(fused->post[i].op) && (v->back || !lies_last(rl_call_in(c, fused->post[i].in)))) return false;
    return true;
}

/* Post-ops that rows do in fewer instructions than oneDNN's. */
static bool has_slow_post(const rl_fused *fused) {
    for (uint32_t i = 0; fused && i < fused->npost; i++) switch (fused->post[i].op) {
        case RL_ROW_SIGMOID:
        case RL_ROW_SILU:
        case RL_ROW_TANH:
        case RL_ROW_GELU:
        case RL_ROW_GELU_TANH: return true;
        default: break;
        }
    return false;
}

/* Pixels apart, which oneDNN would copy; or, of an image, channels apart. */
static bool has_gaps(const rl_call *c, const rl_convolution *v) {
    const rl_fused *fused = c->step->fused;
    for (uint32_t i = 0; fused && i < fused->npost; i++)
        if (rl_row_is_binary(fused->post[i].op) && !rl_is_channels_last(rl_call_in(c, fused->post[i].in))) return true;
    return !rl_is_channels_last(v->x) && (lies_last(v->x) || v->x->dim[1] <= RL_FEW_CHANNELS);
}

/* Of large windows on small images, most of which are cut by the pads, each in another way, oneDNN does more at a time. */
static bool is_all_edges(const rl_convolution *v) {
    int64_t whole = 1;
    for (uint32_t i = 0; i < v->w.r; i++) whole *= RL_MAX((int64_t)0, (v->w.in[i] - rl_window_reach(&v->w, i)) / v->w.stride[i] + 1);
    return taps_of(v) >= LARGE_WINDOW && 5 * whole < 2 * rl_product(v->dim + 2, v->w.r);
}

/* One pixel: a matrix times a vector, which is read once. */
static bool is_one_pixel(const rl_convolution *v) {
    return v->dim[0] * rl_product(v->dim + 2, v->w.r) == 1;
}

/* ---- a direct convolution of it ---- */

static void set_window(const rl_convolution *v, rl_direct *d) {
    for (int i = 0; i < RL_AXIS_DIMS; i++) d->in[i] = d->out[i] = d->kernel[i] = d->stride[i] = d->dilation[i] = 1;
    d->in[RL_AXIS_N] = d->out[RL_AXIS_N] = v->dim[0];
    for (uint32_t i = 0; i < v->w.r; i++) {
        uint32_t at = RL_AXIS_DIMS - v->w.r + i;
        d->in[at] = d->out[at] = v->w.out[i];
        if (v->back) continue;
        d->in[at] = v->w.in[i], d->out[at] = v->dim[2 + i], d->kernel[at] = v->w.kernel[i];
        d->stride[at] = v->w.stride[i], d->dilation[at] = v->w.dilation[i], d->before[at] = v->w.before[i];
    }
}

/* The fewest channels for which Winograd's way is faster: with fewer its transforms take more than it saves. */
static int64_t winograd_least(void) {
    return rl_direct_loops_of(RL_ISA_BEST)->isa == RL_ISA_AVX512 ? 12 : 32;
}

/* Windows, channels, and how they are summed. */
static rl_direct shape_of(const rl_convolution *v) {
    int64_t least = winograd_least();
    rl_direct d = {.depthwise = is_depthwise(v), .depth = v->k->dim[1], .channels = v->dim[1]};
    set_window(v, &d);
    if (v->back) d.depth = v->k->dim[0], d.channels *= taps_of(v);
    d.winograd = rl_winograd_can(&d) && d.depth >= least && d.channels >= least && rl_winograd_weights(&d) <= WINOGRAD_MOST;
    return d;
}

bool rl_direct_better(const rl_call *c, const rl_convolution *v) {
    if (rl_direct_loops_of(RL_ISA_BEST)->isa == RL_ISA_PLAIN) return false;
    if (v->back && (rl_numel(v->k) <= BLOCKS_MOST || v->dim[0] * rl_product(v->w.out, v->w.r) <= BLOCKS_PIXELS)) return true;
    if (v->back) return has_gaps(c, v);
    if (v->pieces || has_slow_post(c->step->fused) || has_gaps(c, v)) return true;
    return is_depthwise(v) ? !is_all_edges(v) : is_one_pixel(v) || (lies_last(v->x) && shape_of(v).winograd);
}

/* Places of a block, each with all channels, in place of channels with all places: dims [a][b][c] of w as [b][a][c], or [c][b][a]. */
static const float *turn(rl_call *c, const float *w, const int64_t *dim, const int64_t *perm) {
    int64_t turned[3];
    for (int i = 0; i < 3; i++) turned[i] = dim[perm[i]];
    rl_tensor *to = rl_call_passing(c, 3, turned), from = rl_tensor_borrow(c->rt, RL_F32, 3, dim, w, 0), view = rl_view_transpose(&from, perm);
    rl_tensor_move(c->rt, to, &view);
    rl_tensor_drop(&from);
    return rl_data(to);
}

/* The weights and bias of the channels that `d` makes. */
static void order_weights(rl_call *c, const rl_convolution *v, const rl_direct *d, const float **w, const float **bias) {
    int64_t places = v->back ? taps_of(v) : v->fold ? v->fold->block * v->fold->block : 1, channels = d->channels / places;
    float *b = rl_new(c->tmp, float, d->channels);
    if (v->back) *w = turn(c, *w, (int64_t[]){d->depth, channels, places}, (int64_t[]){2, 1, 0});
    else if (v->fold && v->fold->crd) *w = turn(c, *w, (int64_t[]){channels, places, d->depth * taps_of(v)}, (int64_t[]){1, 0, 2});
    else return;
    for (int64_t i = 0; i < d->channels; i++) b[i] = (*bias)[v->back ? i % channels : i % channels * places + i / channels];
    *bias = b;
}

/* Packed once for the step. */
static void set_weights(rl_call *c, const rl_convolution *v, rl_direct *d) {
    rl_tensor *keep = &c->step->packed;
    int64_t bias = rl_direct_bias(d), count = bias + rl_direct_weights(d);
    if (keep->kind == RL_ABSENT) {
        rl_call_fetch(c);
        const float *b = rl_conv_whole_bias(c, v), *w = rl_data(rl_conv_scaled(c, v));
        order_weights(c, v, d, &w, &b);
        *keep = rl_tensor_new(c->rt, RL_F32, 1, &count);
        c->rt->constants += keep->mem->nbyte;
        rl_direct_pack(d, w, b, rl_data(keep));
        rl_call_packed(c, 1);
    }
    d->bias = rl_data(keep);
    d->w = d->bias + bias;
}

/* The strides of N and the spatial dims, those in the last places. */
static void set_strides(int64_t *to, const rl_tensor *t) {
    for (int i = 0; i < RL_AXIS_DIMS; i++) to[i] = 0;
    to[RL_AXIS_N] = t->stride[0];
    for (uint32_t i = 2; i < t->rank; i++) to[RL_AXIS_DIMS - t->rank + i] = t->dim[i] == 1 ? 0 : t->stride[i];
}

static rl_direct_view view_of(const rl_tensor *t) {
    rl_direct_view view = {rl_data(t), {0}};
    set_strides(view.stride, t);
    return view;
}

/* A residual that comes first, and a Relu or Clip after that, are done with the sums in registers. */
static void set_posts(rl_call *c, rl_direct *d) {
    const rl_fused *fused = c->step->fused;
    uint32_t i = 0, n = fused ? fused->npost : 0;
    d->low = -INFINITY, d->high = INFINITY;
    if (i < n && fused->post[i].op == RL_ROW_ADD) d->add = view_of(rl_call_in(c, fused->post[i++].in));
    if (i < n && fused->post[i].op == RL_ROW_RELU)
        d->low = 0, i++;
    else if (i < n && fused->post[i].op == RL_ROW_CLIP)
        d->low = fused->post[i].p, d->high = fused->post[i].q, i++;
    for (; i < n; i++) {
        d->post[d->npost] = fused->post[i];
        if (rl_row_is_binary(fused->post[i].op)) d->operand[d->npost] = view_of(rl_call_in(c, fused->post[i].in));
        d->npost++;
    }
    d->npost += rl_take_rounding(c, &d->post[d->npost]);
}

/* Some channels of t. */
static rl_direct_input input_of(const rl_tensor *t, int64_t from, int64_t count) {
    rl_direct_input in = {view_of(t), count, t->dim[1] == 1 ? 1 : t->stride[1]};
    in.view.p += from * in.step;
    return in;
}

static void set_inputs(const rl_call *c, const rl_convolution *v, rl_direct *d, rl_direct_input *in) {
    const rl_pieces *p = v->pieces;
    d->x = in;
    d->nx = p ? p->n : 1;
    if (!p) in[0] = input_of(v->x, 0, v->x->dim[1]);
    for (uint32_t i = 0; p && i < p->n; i++) in[i] = input_of(rl_call_in(c, p->piece[i].in), p->piece[i].from, p->piece[i].count);
}

/* Where the pixels of a block lie, those of its lines side by side if they can. */
static void set_blocks(rl_call *c, const rl_convolution *v, const rl_tensor *y, rl_direct *d) {
    uint32_t r = v->w.r;
    int64_t channels = y->dim[1], row = block_of(v, r - 1), places = 1;
    bool joined = row == 1 || y->stride[r + 1] == channels;
    for (uint32_t i = 0; i < r; i++) d->y_stride[RL_AXIS_DIMS - r + i] *= block_of(v, i), places *= block_of(v, i);
    if (joined) places /= row;
    int64_t *at = rl_new(c->tmp, int64_t, places);
    for (int64_t k = 0; k < places; k++) {
        int64_t left = k;
        for (uint32_t i = r - joined; i-- > 0; left /= block_of(v, i)) at[k] += left % block_of(v, i) * y->stride[2 + i];
    }
    rl_direct_runs *runs = rl_new(c->tmp, rl_direct_runs, 1);
    *runs = (rl_direct_runs){joined ? row * channels : channels, at};
    d->runs = runs;
}

rl_status rl_direct_conv(rl_call *c, const rl_convolution *v, rl_tensor *y) {
    rl_direct d = shape_of(v);
    rl_direct_input in[RL_DIRECT_INPUTS];
    set_inputs(c, v, &d, in);
    d.y = rl_data(y);
    set_strides(d.y_stride, y);
    if (v->back || v->fold) set_blocks(c, v, y, &d);
    set_posts(c, &d);
    set_weights(c, v, &d);
    rl_direct_run(c->rt, c->tmp, &d);
    c->step->ran = d.depthwise ? "direct:depthwise" : d.winograd ? "direct:winograd" : "direct";
    return RL_OK;
}

static bool all_are(const rl_nodeinfo *n, const char *name, int64_t least, int64_t most) {
    const rl_attr *a = rl_attr_ints(n, name);
    bool same = true;
    for (uint32_t i = 0; a && i < a->n; i++) same = same && a->ints[i] >= least && a->ints[i] <= most;
    return same;
}

/* Of a ConvTranspose, as makes_blocks. */
static bool will_make_blocks(const rl_nodeinfo *n, const rl_tensor *k) {
    const rl_attr *step = rl_attr_ints(n, "strides");
    if (rl_attr_int(n, "group", 1) != 1 || !all_are(n, "pads", 0, 0) || !all_are(n, "output_padding", 0, 0) || !all_are(n, "dilations", 1, 1)) return false;
    if (rl_attr_find(n, "output_shape") || (rl_attr_find(n, "auto_pad") && !rl_attr_is(n, "auto_pad", "NOTSET")) || (step && step->n + 2 != k->rank)) return false;
    for (uint32_t i = 2; i < k->rank; i++)
        if (k->dim[i] != (step ? step->ints[i - 2] : 1)) return false;
    return true;
}

bool rl_direct_takes_gaps(const rl_exec *x, const rl_step *s) {
    const rl_nodeinfo *n = s->info;
    rl_kernel_fn *fn = rl_step_fn(s);
    bool back = fn == rl_fast_conv_transpose;
    if (!back && fn != rl_fast_conv && fn != rl_fast_conv_pieces && fn != rl_fast_conv_fold) return false;
    if (s->native || n->nin < 2 || !rl_has(n->in[1])) return false;
    const rl_tensor *k = &x->constant[n->in[1].i];
    if (k->kind != RL_TENSOR || k->rank < 3 || (!back && rl_product(k->dim + 2, k->rank - 2) > RL_DIRECT_TAPS)) return false;
    if (rl_has(rl_in(n, 2)) && x->constant[n->in[2].i].kind != RL_TENSOR) return false;
    for (uint32_t i = 0; back && s->fused && i < s->fused->npost; i++)
        if (rl_row_is_binary(s->fused->post[i].op)) return false;
    if (back) return will_make_blocks(n, k);
    int64_t group = rl_attr_int(n, "group", 1);
    return group == 1 || (k->dim[1] == 1 && group == k->dim[0]);
}

/* Operands of post-ops would have to lie as the output does, which is known in a run only. */
bool rl_direct_takes_pieces(const rl_exec *x, const rl_step *s, bool shuffled) {
    const rl_nodeinfo *n = s->info;
    if (rl_direct_loops_of(RL_ISA_BEST)->isa == RL_ISA_PLAIN || !rl_direct_takes_gaps(x, s)) return false;
    const rl_tensor *k = &x->constant[n->in[1].i], *b = rl_has(rl_in(n, 2)) ? &x->constant[n->in[2].i] : NULL;
    int64_t taps = rl_product(k->dim + 2, k->rank - 2), least = winograd_least();
    for (uint32_t i = 0; s->fused && i < s->fused->npost; i++)
        if (rl_row_is_binary(s->fused->post[i].op)) return false;
    if (k->rank < 4 || k->dtype != RL_F32 || (b && (b->dtype != RL_F32 || b->rank != 1 || b->dim[0] != k->dim[0]))) return false;
    if (!all_are(n, "pads", 0, INT64_MAX)) return false;
    if (rl_attr_int(n, "group", 1) > 1) return true;
    if (taps == 1) return k->dim[0] >= FEWEST_OUT && k->dim[0] <= (shuffled ? MOST_SHUFFLED : MOST_OUT);
    bool three = k->rank == 4 && k->dim[2] == 3 && k->dim[3] == 3 && k->dim[0] >= least && k->dim[1] >= least;
    return three && all_are(n, "strides", 1, 1) && all_are(n, "dilations", 1, 1) && 16 * k->dim[0] * k->dim[1] <= WINOGRAD_MOST;
}
