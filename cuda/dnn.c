/* Convolutions by cuDNN's graph interface: Conv forward, ConvTranspose as the gradient of its input; the bias, activations and sums that were
 * joined to it are in the same plan.
 *
 * A plan is made once for each shape, by the first of the engines that cuDNN's heuristics name whose plan can be made; float32
 * engines that compute with fewer bits are passed over unless RELAYOUT_TF32=1. */
#include <stdlib.h>
#include <string.h>

#include "../runtime/rows.h"
#include "libs_internal.h"

enum { MOST_ENGINES = 16, MOST_MADE = 24 + 4 * RL_MOST_POSTS, MOST_OPS = 2 + RL_MOST_POSTS, SPATIAL = 3, DIMS = SPATIAL + 2 };
enum { UID_X = 1, UID_W, UID_Y, UID_BIAS, UID_OPERAND, UID_BETWEEN = UID_OPERAND + RL_MOST_POSTS };
typedef cudnnBackendDescriptor_t item;
#if CUDNN_VERSION >= 90800
#define HEUR_DEVICEPROP CUDNN_ATTR_ENGINEHEUR_DEVICEPROP
#define PLAN_DEVICEPROP CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP
#else
#define HEUR_DEVICEPROP ((cudnnBackendAttributeName_t)0)
#define PLAN_DEVICEPROP ((cudnnBackendAttributeName_t)0)
#endif

struct rl_dnn_plan {
    rl_dnn_plan *next;
    rl_dnn_conv_job key; /* without addresses */
    item plan;     /* NULL: cuDNN has none */
    void *workspace;
    size_t nworkspace;
};

/* What is made for one graph, to be destroyed together; `bad` once something failed. */
typedef struct { rl_libs *l; item made[MOST_MADE]; uint32_t n; bool bad; } maker;

static item make(maker *m, cudnnBackendDescriptorType_t type) {
    item d = NULL;
    if (m->bad || m->n == MOST_MADE || m->l->cudnnBackendCreateDescriptor(type, &d) != CUDNN_STATUS_SUCCESS) m->bad = true;
    else m->made[m->n++] = d;
    return m->bad ? NULL : d;
}

static void set(maker *m, item d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n, const void *p) {
    if (!m->bad && m->l->cudnnBackendSetAttribute(d, name, type, n, p) != CUDNN_STATUS_SUCCESS) m->bad = true;
}

static item finish(maker *m, item d) {
    if (!m->bad && m->l->cudnnBackendFinalize(d) != CUDNN_STATUS_SUCCESS) m->bad = true;
    return d;
}

static void destroy(maker *m, item but) {
    for (uint32_t i = m->n; i-- > 0;)
        if (m->made[i] != but) m->l->cudnnBackendDestroyDescriptor(m->made[i]);
}

/* ---- the graph ---- */

static cudnnDataType_t data_type(rl_dtype t) {
    return t == RL_F64 ? CUDNN_DATA_DOUBLE : t == RL_F16 ? CUDNN_DATA_HALF : t == RL_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

static item make_tensor(maker *m, int64_t uid, cudnnDataType_t t, int64_t rank, const int64_t *dim, const int64_t *stride, bool is_virtual) {
    item d = make(m, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t align = 16;
    set(m, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &t);
    set(m, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, rank, dim);
    set(m, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, rank, stride);
    set(m, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    set(m, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
    set(m, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    return finish(m, d);
}

/* The dims and strides of x, w, y; a lone spatial dim gets one of 1 before it, which cuDNN wants. */
typedef struct { uint32_t r; int64_t dim[3][DIMS], stride[3][DIMS], pre[SPATIAL], post[SPATIAL], step[SPATIAL], dilation[SPATIAL]; } shapes;

static void add_spatial(shapes *s, int64_t in, int64_t kernel, int64_t out, const int64_t *stride, int64_t step, int64_t dilation, int64_t before,
                        bool transposed) {
    uint32_t i = s->r++, d = 2 + i;
    int64_t from = transposed ? out : in, to = transposed ? in : out, rest = (to - 1) * step + (kernel - 1) * dilation + 1 - from - before;
    s->dim[0][d] = in, s->dim[1][d] = kernel, s->dim[2][d] = out;
    for (uint32_t k = 0; k < 3; k++) s->stride[k][d] = stride[k];
    s->pre[i] = before, s->post[i] = RL_MAX(rest, 0), s->step[i] = step, s->dilation[i] = dilation;
}

static shapes shapes_of(const rl_p_conv *p, uint32_t n, uint32_t groups) {
    shapes s = {0};
    int64_t cin = (int64_t)p->cin * groups, cout = (int64_t)p->cout * groups;
    s.dim[0][0] = n, s.dim[0][1] = cin, s.dim[2][0] = n, s.dim[2][1] = cout;
    s.dim[1][0] = p->transposed ? cin : cout, s.dim[1][1] = p->transposed ? p->cout : p->cin;
    s.stride[0][0] = p->x_n, s.stride[0][1] = p->x_c, s.stride[2][0] = p->y_n, s.stride[2][1] = p->y_c;
    s.stride[1][0] = p->transposed ? p->w_i : p->w_o, s.stride[1][1] = p->transposed ? p->w_o : p->w_i;
    if (p->r == 1) add_spatial(&s, 1, 1, 1, (int64_t[]){p->x_step[0] * p->in[0], p->w_step[0] * p->kernel[0], p->y_step[0] * p->out[0].d}, 1, 1, 0, false);
    for (uint32_t i = 0; i < p->r; i++)
        add_spatial(&s, p->in[i], p->kernel[i], p->out[i].d, (int64_t[]){p->x_step[i], p->w_step[i], p->y_step[i]}, p->stride[i], p->dilation[i],
                    p->before[i], p->transposed != 0);
    return s;
}

static item make_window(maker *m, const shapes *s, cudnnDataType_t compute) {
    item d = make(m, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    int64_t r = s->r;
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    set(m, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    set(m, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(m, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &r);
    set(m, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, r, s->pre);
    set(m, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, r, s->post);
    set(m, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, r, s->step);
    set(m, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, r, s->dilation);
    return finish(m, d);
}

static item make_conv(maker *m, bool transposed, item window, item x, item w, item y) {
    double one = 1, zero = 0;
    item d = make(m, transposed ? CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR : CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    set(m, d, transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
        CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &window);
    set(m, d, transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x);
    set(m, d, transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &w);
    set(m, d, transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
    set(m, d, transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_DOUBLE, 1, &one);
    set(m, d, transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_DOUBLE, 1, &zero);
    return finish(m, d);
}

/* How an op of the posts is called there; false: it has none. */
static bool set_mode(maker *m, item how, const rl_p_post *o) {
    static const struct { rl_row_op op; cudnnPointwiseMode_t mode; } modes[] = {
        {RL_ROW_RELU, CUDNN_POINTWISE_RELU_FWD}, {RL_ROW_LEAKY_RELU, CUDNN_POINTWISE_RELU_FWD}, {RL_ROW_CLIP, CUDNN_POINTWISE_RELU_FWD},
        {RL_ROW_SIGMOID, CUDNN_POINTWISE_SIGMOID_FWD}, {RL_ROW_SILU, CUDNN_POINTWISE_SWISH_FWD}, {RL_ROW_TANH, CUDNN_POINTWISE_TANH_FWD},
        {RL_ROW_GELU, CUDNN_POINTWISE_GELU_FWD}, {RL_ROW_GELU_TANH, CUDNN_POINTWISE_GELU_APPROX_TANH_FWD}, {RL_ROW_ELU, CUDNN_POINTWISE_ELU_FWD},
        {RL_ROW_ADD, CUDNN_POINTWISE_ADD}, {RL_ROW_MUL, CUDNN_POINTWISE_MUL}};
    uint32_t k = 0;
    double p = o->p, q = o->q;
    while (k < RL_LEN(modes) && (uint32_t)modes[k].op != o->op) k++;
    if (k == RL_LEN(modes)) return false;
    set(m, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &modes[k].mode);
    if (o->op == RL_ROW_LEAKY_RELU) set(m, how, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, CUDNN_TYPE_DOUBLE, 1, &p);
    if (o->op == RL_ROW_CLIP) set(m, how, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, CUDNN_TYPE_DOUBLE, 1, &p);
    if (o->op == RL_ROW_CLIP) set(m, how, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, CUDNN_TYPE_DOUBLE, 1, &q);
    if (o->op == RL_ROW_SILU) set(m, how, CUDNN_ATTR_POINTWISE_SWISH_BETA, CUDNN_TYPE_DOUBLE, 1, &p);
    if (o->op == RL_ROW_ELU) set(m, how, CUDNN_ATTR_POINTWISE_ELU_ALPHA, CUDNN_TYPE_DOUBLE, 1, &p);
    return true;
}

/* y = op(x, b); b NULL: of one operand. */
static item make_pointwise(maker *m, cudnnDataType_t compute, const rl_p_post *o, item x, item b, item y) {
    item how = make(m, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    if (!set_mode(m, how, o)) m->bad = true;
    set(m, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    finish(m, how);
    item d = make(m, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set(m, d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &how);
    set(m, d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x);
    if (b) set(m, d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &b);
    set(m, d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
    return finish(m, d);
}

/* [1,C,1,1], with strides in the order that the others have. */
static item make_bias(maker *m, cudnnDataType_t t, int64_t rank, const shapes *s) {
    int64_t dim[DIMS] = {1, 1, 1, 1, 1}, stride[DIMS];
    bool last = s->stride[2][1] == 1;
    dim[1] = s->dim[2][1];
    for (uint32_t i = 0; i < DIMS; i++) stride[i] = i == 0 || (last && i > 1) ? dim[1] : 1;
    return make_tensor(m, UID_BIAS, t, rank, dim, stride, false);
}

/* The convolution, the bias, the posts: each but the last makes what only the next one sees, of the type that it computes in. */
static item make_graph(maker *m, const rl_dnn_conv_job *j) {
    shapes s = shapes_of(&j->p, j->n, j->groups);
    cudnnDataType_t t = data_type(j->type), compute = j->type == RL_F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    int64_t rank = s.r + 2, nop = 0, left = j->npost + (j->p.bias != NULL);
    rl_p_post add = {.op = RL_ROW_ADD};
    item ops[MOST_OPS], x = make_tensor(m, UID_X, t, rank, s.dim[0], s.stride[0], false), w = make_tensor(m, UID_W, t, rank, s.dim[1], s.stride[1], false);
#define NEXT() (left-- ? make_tensor(m, UID_BETWEEN + left, compute, rank, s.dim[2], s.stride[2], true) : make_tensor(m, UID_Y, t, rank, s.dim[2], s.stride[2], false))
    item now = NEXT();
    ops[nop++] = make_conv(m, j->p.transposed != 0, make_window(m, &s, compute), x, w, now);
    for (uint32_t i = 0; i < j->npost + (j->p.bias != NULL); i++) {
        bool bias = j->p.bias && i == 0;
        uint32_t k = i - (j->p.bias != NULL);
        item operand = bias ? make_bias(m, t, rank, &s) : j->operand[k] ? make_tensor(m, UID_OPERAND + k, t, rank, s.dim[2], s.stride[2], false) : NULL;
        item next = NEXT();
        ops[nop++] = make_pointwise(m, compute, bias ? &add : &j->post[k], now, operand, next);
        now = next;
    }
#undef NEXT
    item d = make(m, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(m, d, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, nop, ops);
    if (m->l->dnn) set(m, d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &m->l->dnn);
    return finish(m, d);
}

/* ---- engines ---- */

/* Does the engine behind the configuration compute with fewer bits than float32 has? What cannot be asked is taken to. */
static bool is_coarse(const rl_libs *l, item config) {
    cudnnBackendNumericalNote_t note[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t n = 0;
    item engine = NULL;
    bool coarse = true;
    if (l->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) != CUDNN_STATUS_SUCCESS) return true;
    if (l->cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine) == CUDNN_STATUS_SUCCESS
        && l->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n, note)
               == CUDNN_STATUS_SUCCESS) {
        coarse = false;
        for (int64_t i = 0; i < n && i < CUDNN_NUMERICAL_NOTE_TYPE_COUNT; i++)
            coarse = coarse || note[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE || note[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS
                     || note[i] == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
    }
    l->cudnnBackendDestroyDescriptor(engine);
    return coarse;
}

static bool is_wanted(const rl_libs *l, rl_dtype t, item config) {
    return t != RL_F32 || l->tf32 || !is_coarse(l, config);
}

/* The device that a plan or a choice of engines is for. */
static bool set_device(const rl_libs *l, item d, cudnnBackendAttributeName_t handle, cudnnBackendAttributeName_t properties) {
    if (!l->pretended) return handle == 0 || l->cudnnBackendSetAttribute(d, handle, CUDNN_TYPE_HANDLE, 1, &l->dnn) == CUDNN_STATUS_SUCCESS;
    return l->cudnnBackendSetAttribute(d, properties, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &l->pretended) == CUDNN_STATUS_SUCCESS;
}

/* A plan that is to be finalized; NULL: none. */
static item plan_for(const rl_libs *l, item config) {
    item plan = NULL;
    if (l->cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan) != CUDNN_STATUS_SUCCESS) return NULL;
    if (set_device(l, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, PLAN_DEVICEPROP)
        && l->cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config) == CUDNN_STATUS_SUCCESS)
        return plan;
    l->cudnnBackendDestroyDescriptor(plan);
    return NULL;
}

static bool try_engine(rl_libs *l, rl_dnn_plan *p, item config) {
    int64_t n, bytes = 0;
    item plan = is_wanted(l, p->key.type, config) ? plan_for(l, config) : NULL;
    if (!plan) return false;
    bool works = l->cudnnBackendFinalize(plan) == CUDNN_STATUS_SUCCESS
                 && l->cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, &bytes) == CUDNN_STATUS_SUCCESS;
    if (works && bytes > 0) p->workspace = rl_gpu_alloc(l->g, (size_t)bytes);
    if (works && (bytes <= 0 || p->workspace)) {
        p->nworkspace = (size_t)RL_MAX(bytes, 0);
        p->plan = plan;
        return true;
    }
    l->cudnnBackendDestroyDescriptor(plan);
    return false;
}

/* The configurations of engines that cuDNN names for the graph, best first; the caller destroys all of `found`. */
static int64_t find_engines(maker *m, item graph, cudnnBackendHeurMode_t mode, item *found) {
    item d = make(m, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    int64_t n = 0;
    set(m, d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
    set(m, d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (!m->bad && !set_device(m->l, d, (cudnnBackendAttributeName_t)0, HEUR_DEVICEPROP)) m->bad = true;
    finish(m, d);
    for (uint32_t i = 0; i < MOST_ENGINES && !m->bad; i++)
        if (m->l->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &found[i]) != CUDNN_STATUS_SUCCESS) m->bad = true;
    if (m->bad || m->l->cudnnBackendGetAttribute(d, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, MOST_ENGINES, &n, found) != CUDNN_STATUS_SUCCESS)
        return 0;
    return RL_MIN(n, (int64_t)MOST_ENGINES);
}

static void drop_engines(const rl_libs *l, item *found) {
    for (uint32_t i = 0; i < MOST_ENGINES; i++)
        if (found[i]) l->cudnnBackendDestroyDescriptor(found[i]);
}

static void try_engines(maker *m, rl_dnn_plan *p, item graph, cudnnBackendHeurMode_t mode) {
    item found[MOST_ENGINES] = {NULL};
    int64_t n = find_engines(m, graph, mode, found);
    for (int64_t i = 0; i < n && !p->plan; i++) try_engine(m->l, p, found[i]);
    drop_engines(m->l, found);
}

static void make_plan(rl_libs *l, rl_dnn_plan *p) {
    maker m = {.l = l};
    item graph = make_graph(&m, &p->key);
    if (!m.bad) try_engines(&m, p, graph, CUDNN_HEUR_MODE_A);
    if (!m.bad && !p->plan) try_engines(&m, p, graph, CUDNN_HEUR_MODE_FALLBACK);
    destroy(&m, NULL);
}

/* ---- plans, by shape ---- */

static rl_dnn_conv_job key_of(const rl_dnn_conv_job *j) {
    static const char some;
    rl_dnn_conv_job key;
    memset(&key, 0, sizeof key); /* gaps too, so that keys can be compared by bytes */
    memcpy(&key.p, &j->p, sizeof key.p);
    key.p.x = key.p.w = key.p.y = NULL;
    key.p.bias = j->p.bias ? &some : NULL;
    key.type = j->type, key.n = j->n, key.groups = j->groups, key.npost = j->npost;
    for (uint32_t i = 0; i < j->npost; i++) key.post[i] = j->post[i], key.operand[i] = j->operand[i] ? &some : NULL;
    return key;
}

static rl_dnn_plan *plan_of(rl_libs *l, const rl_dnn_conv_job *j) {
    rl_dnn_conv_job key = key_of(j);
    for (rl_dnn_plan *k = l->plans; k; k = k->next)
        if (memcmp(&k->key, &key, sizeof key) == 0) return k;
    rl_dnn_plan *k = calloc(1, sizeof *k);
    if (!k) return NULL;
    memcpy(&k->key, &key, sizeof key);
    make_plan(l, k);
    k->next = l->plans;
    l->plans = k;
    return k;
}

void rl_dnn_forget(rl_libs *l) {
    for (rl_dnn_plan *k = l->plans, *next; k; k = next) {
        next = k->next;
        if (k->plan) l->cudnnBackendDestroyDescriptor(k->plan);
        if (k->workspace) rl_gpu_free(l->g, k->workspace, k->nworkspace);
        free(k);
    }
    l->plans = NULL;
}

bool rl_dnn_wants_channels_last(const rl_libs *l, rl_dtype t) {
    return l && l->dnn && (t == RL_F16 || t == RL_BF16 || (t == RL_F32 && l->tf32));
}

static cudnnStatus_t execute(rl_libs *l, const rl_dnn_plan *k, const rl_dnn_conv_job *j) {
    maker m = {.l = l};
    item pack = make(&m, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    const void *at[4 + RL_MOST_POSTS] = {j->p.x, j->p.w, j->p.y};
    int64_t uid[4 + RL_MOST_POSTS] = {UID_X, UID_W, UID_Y}, n = 3;
    if (j->p.bias) at[n] = j->p.bias, uid[n++] = UID_BIAS;
    for (uint32_t i = 0; i < j->npost; i++)
        if (j->operand[i]) at[n] = j->operand[i], uid[n++] = UID_OPERAND + i;
    set(&m, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, at);
    set(&m, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, uid);
    set(&m, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &k->workspace);
    finish(&m, pack);
    cudnnStatus_t s = m.bad ? CUDNN_STATUS_INTERNAL_ERROR : l->cudnnBackendExecute(l->dnn, k->plan, pack);
    destroy(&m, NULL);
    return s;
}

rl_status rl_dnn_conv(rl_call *call, const rl_dnn_conv_job *j, bool *did) {
    rl_libs *l = rl_libs_of(call->rt);
    uintptr_t addresses = (uintptr_t)j->p.x | (uintptr_t)j->p.w | (uintptr_t)j->p.y | (uintptr_t)j->p.bias;
    for (uint32_t i = 0; i < j->npost; i++) addresses |= (uintptr_t)j->operand[i];
    *did = false;
    if (!l || !l->dnn || addresses % 16 || rl_call_noted(call)) return RL_OK;
    rl_dnn_plan *k = plan_of(l, j);
    if (!k || !k->plan) return RL_OK;
    cudnnStatus_t s = execute(l, k, j);
    *did = s == CUDNN_STATUS_SUCCESS;
    if (*did) call->step->ran = "cuDNN";
    else rl_call_note(call, "cuDNN: %s", l->cudnnGetErrorString(s));
    return RL_OK;
}

/* ---- a device that is not here ---- */

bool rl_dnn_pretend(rl_libs *l, const char *json) {
#if CUDNN_VERSION >= 90800
    maker m = {.l = l};
    if (!l || !l->dnn_file || l->cudnnGetVersion() < 90800) return false;
    item d = make(&m, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    set(&m, d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)strlen(json), json);
    l->pretended = finish(&m, d);
    if (m.bad) destroy(&m, NULL), l->pretended = NULL;
    return !m.bad;
#else
    (void)l, (void)json;
    return false;
#endif
}

static void ask_engines(maker *m, rl_dtype t, item graph, cudnnBackendHeurMode_t mode, rl_dnn_answer *a) {
    item found[MOST_ENGINES] = {NULL};
    int64_t n = find_engines(m, graph, mode, found);
    a->taken += (uint32_t)n;
    for (int64_t i = 0; i < n; i++) {
        item plan = is_wanted(m->l, t, found[i]) ? plan_for(m->l, found[i]) : NULL;
        a->engines += plan != NULL;
        cudnnStatus_t s = plan && !a->made ? m->l->cudnnBackendFinalize(plan) : CUDNN_STATUS_NOT_SUPPORTED;
        a->made = a->made || s == CUDNN_STATUS_SUCCESS || s == CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER;
        if (plan && !a->made) m->l->cudnnGetLastErrorString(a->why, sizeof a->why);
        if (plan) m->l->cudnnBackendDestroyDescriptor(plan);
    }
    drop_engines(m->l, found);
}

void rl_dnn_ask(rl_libs *l, const rl_dnn_conv_job *j, rl_dnn_answer *a) {
    maker m = {.l = l};
    rl_dnn_conv_job key = key_of(j);
    *a = (rl_dnn_answer){0};
    item graph = make_graph(&m, &key);
    if (m.bad) l->cudnnGetLastErrorString(a->why, sizeof a->why);
    if (!m.bad) ask_engines(&m, j->type, graph, CUDNN_HEUR_MODE_A, a);
    if (!m.bad && !a->made) ask_engines(&m, j->type, graph, CUDNN_HEUR_MODE_FALLBACK, a);
    destroy(&m, NULL);
}
