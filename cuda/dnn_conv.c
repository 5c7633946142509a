/* Convolutions by cuDNN (dnn_graph.h): Conv forward, ConvTranspose as the gradient of its input; the bias, activations and sums that were joined to
 * it are in the same plan.
 *
 *   floats   x w -> bias -> posts, whose operands lie as y does; of a sum and Relu alone the sum comes before the bias
 *   bytes    x w (i8) -> sums (i32) -> bias (i32) -> [scale of the channel (f32) -> cut] -> y (i8); without a scale y is i32
 *   vectors  x w (i8) -> sums times one number -> y (i8): all that cuDNN has for channels that lie together by 4 or 32 */
#include <string.h>

#include "../runtime/rows.h"
#include "dnn_graph.h"

enum { MOST_OPS = 2 + RL_MOST_POSTS };
enum { UID_X = 1, UID_W, UID_Y, UID_BIAS, UID_OPERAND, UID_BETWEEN = UID_OPERAND + RL_MOST_POSTS };

/* The dims and strides of x, w, y, in vectors of channels; a lone spatial dim gets one of 1 before it, which cuDNN wants. */
typedef struct { uint32_t r; int64_t vectors; int64_t dim[3][RL_DNN_DIMS], stride[3][RL_DNN_DIMS], pre[RL_MOST_SPATIAL], post[RL_MOST_SPATIAL], step[RL_MOST_SPATIAL], dilation[RL_MOST_SPATIAL]; } shapes;

static void add_spatial(shapes *s, int64_t in, int64_t kernel, int64_t out, const int64_t *stride, int64_t step, int64_t dilation, int64_t before,
                        bool transposed) {
    uint32_t i = s->r++, d = 2 + i;
    int64_t from = transposed ? out : in, to = transposed ? in : out, rest = (to - 1) * step + (kernel - 1) * dilation + 1 - from - before;
    s->dim[0][d] = in, s->dim[1][d] = kernel, s->dim[2][d] = out;
    for (uint32_t k = 0; k < 3; k++) s->stride[k][d] = stride[k];
    s->pre[i] = before, s->post[i] = RL_MAX(rest, 0), s->step[i] = step, s->dilation[i] = dilation;
}

static shapes shapes_of(const rl_p_conv *p, uint32_t n, uint32_t groups, uint32_t vectors) {
    shapes s = {.vectors = vectors};
    int64_t cin = (int64_t)p->cin * groups, cout = (int64_t)p->cout * groups;
    s.dim[0][0] = n, s.dim[0][1] = cin, s.dim[2][0] = n, s.dim[2][1] = cout;
    s.dim[1][0] = p->transposed ? cin : cout, s.dim[1][1] = p->transposed ? p->cout : p->cin;
    if (vectors > 1) s.dim[0][1] /= vectors, s.dim[1][1] /= vectors, s.dim[2][1] /= vectors;
    s.stride[0][0] = p->x_n, s.stride[0][1] = p->x_c, s.stride[2][0] = p->y_n, s.stride[2][1] = p->y_c;
    s.stride[1][0] = p->transposed ? p->w_i : p->w_o, s.stride[1][1] = p->transposed ? p->w_o : p->w_i;
    if (p->r == 1) add_spatial(&s, 1, 1, 1, (int64_t[]){p->x_step[0] * p->in[0], p->w_step[0] * p->kernel[0], p->y_step[0] * p->out[0].d}, 1, 1, 0, false);
    for (uint32_t i = 0; i < p->r; i++)
        add_spatial(&s, p->in[i], p->kernel[i], p->out[i].d, (int64_t[]){p->x_step[i], p->w_step[i], p->y_step[i]}, p->stride[i], p->dilation[i],
                    p->before[i], p->transposed != 0);
    return s;
}

static rl_dnn_item make_window(rl_dnn_maker *m, const shapes *s, cudnnDataType_t compute) {
    rl_dnn_item d = rl_dnn_make(m, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    int64_t r = s->r;
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    rl_dnn_set(m, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    rl_dnn_set(m, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    rl_dnn_set(m, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &r);
    rl_dnn_set(m, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, r, s->pre);
    rl_dnn_set(m, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, r, s->post);
    rl_dnn_set(m, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, r, s->step);
    rl_dnn_set(m, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, r, s->dilation);
    return rl_dnn_finish(m, d);
}

/* A factor of the convolution, as a double where that computes in doubles, else as a float: engines of one op read these bytes, whatever they are said to be. */
static void set_factor(rl_dnn_maker *m, rl_dnn_item d, cudnnBackendAttributeName_t name, cudnnDataType_t sum, double factor) {
    float shorter = (float)factor;
    bool whole = sum == CUDNN_DATA_DOUBLE;
    rl_dnn_set(m, d, name, whole ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT, 1, whole ? (const void *)&factor : &shorter);
}

static rl_dnn_item make_conv(rl_dnn_maker *m, bool transposed, cudnnDataType_t sum, double alpha, rl_dnn_item window, rl_dnn_item x, rl_dnn_item w, rl_dnn_item y) {
    rl_dnn_item d = rl_dnn_make(m, transposed ? CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR : CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    rl_dnn_set(m, d, transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
        CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &window);
    rl_dnn_set(m, d, transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x);
    rl_dnn_set(m, d, transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &w);
    rl_dnn_set(m, d, transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
    set_factor(m, d, transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, sum, alpha);
    set_factor(m, d, transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, sum, 0);
    return rl_dnn_finish(m, d);
}

/* ---- what follows it ---- */

/* A tensor of the output's dims or, per channel, [1,C,1,1] with strides in the order that the output has. */
static rl_dnn_item make_like(rl_dnn_maker *m, const shapes *s, int64_t uid, cudnnDataType_t t, bool per_channel, bool between) {
    int64_t dim[RL_DNN_DIMS] = {1, 1, 1, 1, 1}, stride[RL_DNN_DIMS];
    bool last = s->stride[2][1] == 1;
    dim[1] = s->dim[2][1];
    for (uint32_t i = 0; i < RL_DNN_DIMS; i++) stride[i] = i == 0 || (last && i > 1) ? dim[1] : 1;
    return rl_dnn_tensor(m, &(rl_dnn_strided){.uid = uid, .type = t, .rank = s->r + 2, .dim = per_channel ? dim : s->dim[2],
                                              .stride = per_channel ? stride : s->stride[2], .between = between, .vectors = s->vectors});
}

/* One op after the convolution: its operand, the type that it computes in and that the next one sees. */
typedef struct { rl_p_post post; int64_t uid; cudnnDataType_t operand, compute; bool per_channel, binary; } stage;

/* A residual block's end: cuDNN's own engines take the other branch's sum before the bias, then Relu or nothing; the other way round it has engines that
 * are compiled when the plan is made, and of float32 none (9.19; tests/unit/gpu_dnn.c). */
static bool sum_comes_first(const rl_dnn_conv_job *j) {
    bool sum = j->p.bias && !j->p.transposed && j->npost && j->operand[0] && j->post[0].op == RL_ROW_ADD;
    return sum && (j->npost == 1 || (j->npost == 2 && j->post[1].op == RL_ROW_RELU));
}

/* Of floats: the bias, then the posts. */
static uint32_t float_stages(const rl_dnn_conv_job *j, stage *to) {
    cudnnDataType_t t = rl_dnn_type(j->type), compute = j->type == RL_F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    uint32_t n = 0, first = sum_comes_first(j);
    if (first) to[n++] = (stage){j->post[0], UID_OPERAND, t, compute, false, true};
    if (j->p.bias) to[n++] = (stage){{.op = RL_ROW_ADD}, UID_BIAS, t, compute, true, true};
    for (uint32_t i = first; i < j->npost; i++) to[n++] = (stage){j->post[i], UID_OPERAND + i, t, compute, false, j->operand[i] != NULL};
    return n;
}

/* Of bytes: sums in 32 bits, the bias; then, where bytes come out, the scale of each channel and the cut to their range. */
static uint32_t byte_stages(const rl_dnn_conv_job *j, stage *to) {
    uint32_t n = 0;
    if (j->p.bias) to[n++] = (stage){{.op = RL_ROW_ADD}, UID_BIAS, CUDNN_DATA_INT32, CUDNN_DATA_INT32, true, true};
    if (!j->scale) return n;
    to[n++] = (stage){{.op = RL_ROW_MUL}, UID_OPERAND, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, true, true};
    to[n++] = (stage){{.op = RL_ROW_CLIP, .p = (float)j->least, .q = 127}, 0, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, false, false};
    return n;
}

/* The convolution and its stages: each but the last makes what only the next one sees, of the type that it computes in. */
static rl_dnn_item graph_of(rl_dnn_maker *m, const void *key) {
    const rl_dnn_conv_job *j = key;
    shapes s = shapes_of(&j->p, j->n, j->groups, j->vectors);
    bool bytes = j->type == RL_I8 || j->type == RL_I4;
    cudnnDataType_t t = rl_dnn_type(j->type), made = bytes ? j->scale || j->alpha != 0 ? CUDNN_DATA_INT8 : CUDNN_DATA_INT32 : t;
    cudnnDataType_t sum = bytes ? CUDNN_DATA_INT32 : j->type == RL_F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    stage st[MOST_OPS];
    uint32_t n = bytes ? byte_stages(j, st) : float_stages(j, st);
    rl_dnn_item ops[MOST_OPS], in[2];
    for (uint32_t i = 0; i < 2; i++)
        in[i] = rl_dnn_tensor(m, &(rl_dnn_strided){.uid = UID_X + i, .type = t, .rank = s.r + 2, .dim = s.dim[i], .stride = s.stride[i], .vectors = s.vectors});
    rl_dnn_item now = make_like(m, &s, n ? UID_BETWEEN : UID_Y, n ? sum : made, false, n != 0);
    ops[0] = make_conv(m, j->p.transposed != 0, sum, j->alpha != 0 ? (double)j->alpha : 1, make_window(m, &s, sum), in[0], in[1], now);
    for (uint32_t i = 0; i < n; i++) {
        bool last = i + 1 == n;
        rl_dnn_item operand = st[i].binary ? make_like(m, &s, st[i].uid, st[i].operand, st[i].per_channel, false) : NULL;
        rl_dnn_item next = make_like(m, &s, last ? UID_Y : UID_BETWEEN + 1 + i, last ? made : st[i].compute, false, !last);
        ops[1 + i] = rl_dnn_pointwise(m, st[i].compute, &st[i].post, now, operand, next);
        now = next;
    }
    return rl_dnn_graph(m, ops, 1 + n);
}

/* ---- jobs ---- */

static rl_dnn_conv_job key_of(const rl_dnn_conv_job *j) {
    static const char some;
    rl_dnn_conv_job key;
    memset(&key, 0, sizeof key); /* gaps too, so that keys can be compared by bytes */
    memcpy(&key.p, &j->p, sizeof key.p);
    key.p.x = key.p.w = key.p.y = NULL;
    key.p.bias = j->p.bias ? &some : NULL;
    key.scale = j->scale ? &some : NULL;
    key.type = j->type, key.n = j->n, key.groups = j->groups, key.npost = j->npost, key.least = j->least, key.vectors = j->vectors, key.alpha = j->alpha;
    for (uint32_t i = 0; i < j->npost; i++) key.post[i] = j->post[i], key.operand[i] = j->operand[i] ? &some : NULL;
    return key;
}

static rl_dnn_asked asked_of(const rl_libs *l, const rl_dnn_conv_job *key) {
    return (rl_dnn_asked){graph_of, key, sizeof *key, .whole = key->type == RL_F32 && !l->tf32, .shorter = key->type == RL_F16 || key->type == RL_BF16,
                           .vectors = key->vectors > 1, .bytes = key->type == RL_I8, .spare = key->npost > 0};
}

/* Is the plan quicker than the convolution alone, and a kernel over what it made, if there is none anyway? Where plans are not tried, it is taken to be. */
static bool is_worth(const rl_call *call, const rl_libs *l, const rl_dnn_conv_job *key, bool followed, const rl_dnn_asked *q, const rl_dnn_at *at, uint32_t n) {
    static const double launch = 2.5e-6, bandwidth = 3e12; /* seconds, bytes each second: an H200's */
    double pass = followed ? 0 : launch + 2 * (double)rl_bytes_of(key->type, key->p.count) / bandwidth;
    double seconds = n == 3 ? 0 : rl_dnn_seconds(call, q, at, n);
    if (seconds <= launch) return true;
    rl_dnn_conv_job alone = *key;
    alone.npost = 0, alone.p.bias = NULL;
    memset(alone.post, 0, sizeof alone.post), memset(alone.operand, 0, sizeof alone.operand);
    rl_dnn_asked a = asked_of(l, &alone);
    double other = rl_dnn_seconds(call, &a, at, 3);
    return other == 0 || seconds < other + pass;
}

rl_status rl_dnn_conv(rl_call *call, const rl_dnn_conv_job *j, bool *did) {
    const rl_libs *l = rl_libs_of(call->rt);
    rl_dnn_at at[RL_DNN_MOST_AT] = {{UID_X, j->p.x}, {UID_W, j->p.w}, {UID_Y, j->p.y}};
    uint32_t n = 3;
    *did = false;
    if (!l || !l->dnn) return RL_OK;
    if (j->p.bias) at[n++] = (rl_dnn_at){UID_BIAS, j->p.bias};
    if (j->scale) at[n++] = (rl_dnn_at){UID_OPERAND, j->scale};
    for (uint32_t i = 0; i < j->npost; i++)
        if (j->operand[i]) at[n++] = (rl_dnn_at){UID_OPERAND + i, j->operand[i]};
    for (uint32_t i = 0; i < n; i++)
        if ((uintptr_t)at[i].p % 16) return RL_OK;
    rl_dnn_conv_job key = key_of(j);
    rl_dnn_asked q = asked_of(l, &key);
    return is_worth(call, l, &key, j->followed, &q, at, n) ? rl_dnn_run(call, &q, at, n, did) : RL_OK;
}

void rl_dnn_ask_conv(rl_libs *l, const rl_dnn_conv_job *j, rl_dnn_answer *a) {
    rl_dnn_conv_job key = key_of(j);
    rl_dnn_asked q = asked_of(l, &key);
    rl_dnn_asks(l, &q, a);
}
