/* cuDNN's graph interface: see dnn_graph.h.
 *
 * A plan is made by the first of the engines that cuDNN's heuristics name whose plan can be made; where all of float32's bits are wanted, engines that
 * compute with fewer are passed over. Those that are left need not be in order of their speed: for a graph that runs many times several of them are tried,
 * and the quickest stays. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../runtime/rows.h"
#include "dnn_graph.h"

enum { RUNS_TRIED = 8, MOST_ENGINES = 128 }; /* cuDNN 9.19 names up to 34; for float32 most that come first are not exact */
#if CUDNN_VERSION >= 90800
#define HEUR_DEVICEPROP CUDNN_ATTR_ENGINEHEUR_DEVICEPROP
#define PLAN_DEVICEPROP CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP
#else
#define HEUR_DEVICEPROP ((cudnnBackendAttributeName_t)0)
#define PLAN_DEVICEPROP ((cudnnBackendAttributeName_t)0)
#endif

struct rl_dnn_plan {
    rl_dnn_plan *next;
    rl_dnn_asked asked; /* its key a copy */
    rl_dnn_item plan;   /* NULL: cuDNN has none */
    int64_t nworkspace; /* bytes */
    double seconds;     /* of a run, where it was tried */
};

/* What plans are tried on, one after the other: a call's own memory. */
typedef struct { const rl_dnn_at *at; uint32_t n; } trial;

/* ---- descriptors ---- */

rl_dnn_item rl_dnn_make(rl_dnn_maker *m, cudnnBackendDescriptorType_t type) {
    rl_dnn_item d = NULL;
    if (m->bad || m->n == RL_DNN_MADE || m->l->cudnnBackendCreateDescriptor(type, &d) != CUDNN_STATUS_SUCCESS) m->bad = true;
    else m->made[m->n++] = d;
    return m->bad ? NULL : d;
}

void rl_dnn_set(rl_dnn_maker *m, rl_dnn_item d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n, const void *p) {
    if (!m->bad && m->l->cudnnBackendSetAttribute(d, name, type, n, p) != CUDNN_STATUS_SUCCESS) m->bad = true;
}

rl_dnn_item rl_dnn_finish(rl_dnn_maker *m, rl_dnn_item d) {
    if (!m->bad && m->l->cudnnBackendFinalize(d) != CUDNN_STATUS_SUCCESS) m->bad = true;
    return d;
}

static void destroy(rl_dnn_maker *m) {
    for (uint32_t i = m->n; i-- > 0;) m->l->cudnnBackendDestroyDescriptor(m->made[i]);
    m->n = 0;
}

cudnnDataType_t rl_dnn_type(rl_dtype t) {
    switch (t) {
    case RL_F64: return CUDNN_DATA_DOUBLE;
    case RL_F16: return CUDNN_DATA_HALF;
    case RL_BF16: return CUDNN_DATA_BFLOAT16;
    case RL_I8: return CUDNN_DATA_INT8;
    case RL_U8: return CUDNN_DATA_UINT8;
    case RL_I32: return CUDNN_DATA_INT32;
#if CUDNN_VERSION >= 91900
    case RL_I4: return CUDNN_DATA_INT4; /* for tests only: cuDNN has no engine for it (tests/unit/gpu_dnn.c) */
#endif
    default: return CUDNN_DATA_FLOAT;
    }
}

rl_dnn_item rl_dnn_tensor(rl_dnn_maker *m, const rl_dnn_strided *t) {
    rl_dnn_item d = rl_dnn_make(m, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t align = 16, dim_of_vectors = 1;
    rl_dnn_set(m, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &t->type);
    rl_dnn_set(m, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, t->rank, t->dim);
    rl_dnn_set(m, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, t->rank, t->stride);
    rl_dnn_set(m, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &t->uid);
    rl_dnn_set(m, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
    rl_dnn_set(m, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &t->between);
    if (t->by_value) rl_dnn_set(m, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &t->by_value);
    if (t->vectors > 1) rl_dnn_set(m, d, CUDNN_ATTR_TENSOR_VECTOR_COUNT, CUDNN_TYPE_INT64, 1, &t->vectors);
    if (t->vectors > 1) rl_dnn_set(m, d, CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION, CUDNN_TYPE_INT64, 1, &dim_of_vectors);
    return rl_dnn_finish(m, d);
}

rl_dnn_item rl_dnn_graph(rl_dnn_maker *m, const rl_dnn_item *ops, int64_t n) {
    rl_dnn_item d = rl_dnn_make(m, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    rl_dnn_set(m, d, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, ops);
    if (m->l->dnn) rl_dnn_set(m, d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &m->l->dnn);
    return rl_dnn_finish(m, d);
}

/* How an op of the posts is called there; false: it has none. */
static bool set_mode(rl_dnn_maker *m, rl_dnn_item how, const rl_p_post *o) {
    static const struct { rl_row_op op; cudnnPointwiseMode_t mode; } modes[] = {
        {RL_ROW_RELU, CUDNN_POINTWISE_RELU_FWD}, {RL_ROW_LEAKY_RELU, CUDNN_POINTWISE_RELU_FWD}, {RL_ROW_CLIP, CUDNN_POINTWISE_RELU_FWD},
        {RL_ROW_SIGMOID, CUDNN_POINTWISE_SIGMOID_FWD}, {RL_ROW_SILU, CUDNN_POINTWISE_SWISH_FWD}, {RL_ROW_TANH, CUDNN_POINTWISE_TANH_FWD},
        {RL_ROW_GELU, CUDNN_POINTWISE_GELU_FWD}, {RL_ROW_GELU_TANH, CUDNN_POINTWISE_GELU_APPROX_TANH_FWD}, {RL_ROW_ELU, CUDNN_POINTWISE_ELU_FWD},
        {RL_ROW_ADD, CUDNN_POINTWISE_ADD}, {RL_ROW_MUL, CUDNN_POINTWISE_MUL}};
    static const cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN; /* else it drops them */
    uint32_t k = 0;
    double p = o->p, q = o->q;
    while (k < RL_LEN(modes) && (uint32_t)modes[k].op != o->op) k++;
    if (k == RL_LEN(modes)) return false;
    rl_dnn_set(m, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &modes[k].mode);
    if (modes[k].mode == CUDNN_POINTWISE_RELU_FWD) rl_dnn_set(m, how, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, &nan);
    if (o->op == RL_ROW_LEAKY_RELU) rl_dnn_set(m, how, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, CUDNN_TYPE_DOUBLE, 1, &p);
    if (o->op == RL_ROW_CLIP) rl_dnn_set(m, how, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, CUDNN_TYPE_DOUBLE, 1, &p);
    if (o->op == RL_ROW_CLIP) rl_dnn_set(m, how, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, CUDNN_TYPE_DOUBLE, 1, &q);
    if (o->op == RL_ROW_SILU) rl_dnn_set(m, how, CUDNN_ATTR_POINTWISE_SWISH_BETA, CUDNN_TYPE_DOUBLE, 1, &p);
    if (o->op == RL_ROW_ELU) rl_dnn_set(m, how, CUDNN_ATTR_POINTWISE_ELU_ALPHA, CUDNN_TYPE_DOUBLE, 1, &p);
    return true;
}

rl_dnn_item rl_dnn_pointwise(rl_dnn_maker *m, cudnnDataType_t compute, const rl_p_post *o, rl_dnn_item x, rl_dnn_item b, rl_dnn_item y) {
    rl_dnn_item how = rl_dnn_make(m, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    if (!set_mode(m, how, o)) m->bad = true;
    rl_dnn_set(m, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    rl_dnn_finish(m, how);
    rl_dnn_item d = rl_dnn_make(m, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    rl_dnn_set(m, d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &how);
    rl_dnn_set(m, d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x);
    if (b) rl_dnn_set(m, d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &b);
    rl_dnn_set(m, d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
    return rl_dnn_finish(m, d);
}

/* ---- engines ---- */

/* Has the engine behind the configuration one of these notes? What cannot be asked is taken to. */
static bool has_note(const rl_libs *l, rl_dnn_item config, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const int *of, uint32_t nof) {
    enum { NOTES = 32 };
    int note[NOTES]; /* enums */
    int64_t n = 0;
    rl_dnn_item engine = NULL;
    bool has = true;
    if (l->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) != CUDNN_STATUS_SUCCESS) return true;
    if (l->cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine) == CUDNN_STATUS_SUCCESS
        && l->cudnnBackendGetAttribute(engine, name, type, NOTES, &n, note) == CUDNN_STATUS_SUCCESS) {
        has = false;
        for (int64_t i = 0; i < n && i < NOTES; i++)
            for (uint32_t k = 0; k < nof; k++) has = has || note[i] == of[k];
    }
    l->cudnnBackendDestroyDescriptor(engine);
    return has;
}

/* Does it compute with fewer bits than float32 has? */
static bool is_coarse(const rl_libs *l, rl_dnn_item config) {
    static const int notes[] = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION};
    return has_note(l, config, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, notes, RL_LEN(notes));
}

/* Does it compute on tensor cores? */
static bool is_quick(const rl_libs *l, rl_dnn_item config) {
    static const int note = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    return has_note(l, config, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, &note, 1);
}

/* Does it want weights in an order of its own, which only cudnnReorderFilterAndBias makes? */
static bool wants_reorder(const rl_libs *l, rl_dnn_item config) {
    static const int notes[] = {CUDNN_BEHAVIOR_NOTE_REQUIRES_FILTER_INT8x32_REORDER, CUDNN_BEHAVIOR_NOTE_REQUIRES_BIAS_INT8x32_REORDER};
    return has_note(l, config, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, notes, RL_LEN(notes));
}

/* Does it lose digits that the sum has, as sums over large transformed tiles do? Such an engine is taken where it is named first, but not for its speed. */
static bool is_rough(const rl_libs *l, rl_dnn_item config) {
    static const int notes[] = {CUDNN_NUMERICAL_NOTE_FFT, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13};
    return has_note(l, config, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, notes, RL_LEN(notes));
}

/* Is its code compiled when the plan is made, which takes a tenth of a second and more? */
static bool is_compiled(const rl_libs *l, rl_dnn_item config) {
    static const int note = CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    return has_note(l, config, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, &note, 1);
}

/* Of shorter floats: is it compiled, or has it sums of fewer bits than float32? */
static bool is_late(const rl_libs *l, rl_dnn_item config) {
    static const int notes[] = {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, CUDNN_NUMERICAL_NOTE_WINOGRAD};
    return is_compiled(l, config) || has_note(l, config, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, notes, RL_LEN(notes));
}

static bool is_wanted(const rl_libs *l, const rl_dnn_asked *q, rl_dnn_item config) {
    return (!q->whole || !is_coarse(l, config)) && (!q->vectors || !wants_reorder(l, config));
}

/* Not to be taken for its speed. */
static bool is_unfit(const rl_libs *l, const rl_dnn_asked *q, rl_dnn_item config) {
    return is_rough(l, config) || (q->shorter && is_late(l, config));
}

/* The device that a plan or a choice of engines is for. */
static bool set_device(const rl_libs *l, rl_dnn_item d, cudnnBackendAttributeName_t handle, cudnnBackendAttributeName_t properties) {
    if (!l->pretended) return handle == 0 || l->cudnnBackendSetAttribute(d, handle, CUDNN_TYPE_HANDLE, 1, &l->dnn) == CUDNN_STATUS_SUCCESS;
    return l->cudnnBackendSetAttribute(d, properties, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &l->pretended) == CUDNN_STATUS_SUCCESS;
}

/* A plan that is to be finalized; NULL: none. */
static rl_dnn_item plan_for(const rl_libs *l, rl_dnn_item config) {
    rl_dnn_item plan = NULL;
    if (l->cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan) != CUDNN_STATUS_SUCCESS) return NULL;
    if (set_device(l, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, PLAN_DEVICEPROP)
        && l->cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config) == CUDNN_STATUS_SUCCESS)
        return plan;
    l->cudnnBackendDestroyDescriptor(plan);
    return NULL;
}

/* *workspace: what it works in, the caller's to free (NULL: nothing); false also where the device has no room for that. */
static bool try_engine(const rl_libs *l, rl_dnn_plan *p, rl_dnn_item config, void **workspace) {
    int64_t n;
    rl_dnn_item plan = is_wanted(l, &p->asked, config) ? plan_for(l, config) : NULL;
    if (!plan) return false;
    bool works = l->cudnnBackendFinalize(plan) == CUDNN_STATUS_SUCCESS
                 && l->cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, &p->nworkspace) == CUDNN_STATUS_SUCCESS;
    *workspace = works && p->nworkspace > 0 ? rl_gpu_alloc(l->g, (size_t)p->nworkspace) : NULL;
    if (works && (p->nworkspace <= 0 || *workspace)) p->plan = plan;
    else l->cudnnBackendDestroyDescriptor(plan);
    return p->plan != NULL;
}

/* The configurations of engines that cuDNN names for the graph, best first; the caller destroys all of `found`. */
static int64_t find_engines(rl_dnn_maker *m, rl_dnn_item graph, cudnnBackendHeurMode_t mode, rl_dnn_item *found) {
    rl_dnn_item d = rl_dnn_make(m, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    int64_t n = 0;
    rl_dnn_set(m, d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
    rl_dnn_set(m, d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (!m->bad && !set_device(m->l, d, (cudnnBackendAttributeName_t)0, HEUR_DEVICEPROP)) m->bad = true;
    rl_dnn_finish(m, d);
    for (uint32_t i = 0; i < MOST_ENGINES && !m->bad; i++)
        if (m->l->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &found[i]) != CUDNN_STATUS_SUCCESS) m->bad = true;
    if (m->bad || m->l->cudnnBackendGetAttribute(d, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, MOST_ENGINES, &n, found) != CUDNN_STATUS_SUCCESS)
        return 0;
    return RL_MIN(n, (int64_t)MOST_ENGINES);
}

static void drop_engines(const rl_libs *l, rl_dnn_item *found) {
    for (uint32_t i = 0; i < MOST_ENGINES; i++)
        if (found[i]) l->cudnnBackendDestroyDescriptor(found[i]);
}

static void drop_plan(const rl_libs *l, const rl_dnn_plan *p) {
    if (p->plan) l->cudnnBackendDestroyDescriptor(p->plan);
}

static cudnnStatus_t execute(rl_libs *l, const rl_dnn_plan *k, const rl_dnn_at *at, uint32_t n, void *workspace) {
    rl_dnn_maker m = {.l = l};
    rl_dnn_item pack = rl_dnn_make(&m, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    const void *p[RL_DNN_MOST_AT];
    int64_t uid[RL_DNN_MOST_AT];
    for (uint32_t i = 0; i < n; i++) p[i] = at[i].p, uid[i] = at[i].uid;
    rl_dnn_set(&m, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, p);
    rl_dnn_set(&m, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, uid);
    rl_dnn_set(&m, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    rl_dnn_finish(&m, pack);
    cudnnStatus_t s = m.bad ? CUDNN_STATUS_INTERNAL_ERROR : l->cudnnBackendExecute(l->dnn, k->plan, pack);
    destroy(&m);
    return s;
}

/* Several runs as one graph, as they will be in the model's: call by call, the host's part would be longer than a small convolution. NULL: it
 * cannot be recorded. */
static rl_gpu_graph *record_runs(rl_libs *l, const rl_dnn_plan *p, const trial *t, void *workspace) {
    rl_gpu_graph *made = NULL;
    bool works = rl_gpu_record(l->g) == RL_OK;
    for (uint32_t i = 0; works && i < RUNS_TRIED; i++) works = execute(l, p, t->at, t->n, workspace) == CUDNN_STATUS_SUCCESS;
    works = rl_gpu_record_end(l->g, &made) == RL_OK && works;
    if (!works) rl_gpu_forget(l->g, made);
    return works ? made : NULL;
}

/* The device's marks 0 and 1 are free: whoever measures a run does so when all plans are made. */
static double time_of(rl_libs *l, const rl_dnn_plan *p, const trial *t, void *workspace) {
    double seconds = INFINITY;
    if (execute(l, p, t->at, t->n, workspace) != CUDNN_STATUS_SUCCESS || rl_gpu_sync(l->g) != RL_OK) return INFINITY;
    rl_gpu_graph *runs = record_runs(l, p, t, workspace);
    bool works = runs && rl_gpu_replay(l->g, runs) == RL_OK && rl_gpu_mark(l->g, 0) == RL_OK && rl_gpu_replay(l->g, runs) == RL_OK
                 && rl_gpu_mark(l->g, 1) == RL_OK && rl_gpu_sync(l->g) == RL_OK && rl_gpu_between(l->g, 0, &seconds) == RL_OK;
    rl_gpu_forget(l->g, runs);
    return works ? seconds / RUNS_TRIED : INFINITY;
}

/* t NULL: nothing is tried. */
static void try_engines(rl_dnn_maker *m, rl_dnn_plan *p, rl_dnn_item graph, cudnnBackendHeurMode_t mode, const trial *t) {
    enum { MOST_TRIED = 8 };
    rl_dnn_item found[MOST_ENGINES] = {NULL};
    int64_t n = find_engines(m, graph, mode, found);
    bool sorted = mode != CUDNN_HEUR_MODE_FALLBACK || !p->asked.bytes; /* by speed */
    uint32_t tried = 0;
    for (uint32_t pass = sorted; pass < 2; pass++)
        for (int64_t i = 0; i < n && (!p->plan || (t && tried < MOST_TRIED)); i++) {
            rl_dnn_plan next = {.asked = p->asked};
            void *workspace;
            if (!t && p->asked.spare && is_compiled(m->l, found[i])) continue;
            if (!(pass || is_quick(m->l, found[i])) || (p->plan && is_unfit(m->l, &p->asked, found[i])) || !try_engine(m->l, &next, found[i], &workspace)) continue;
            next.seconds = t ? time_of(m->l, &next, t, workspace) : 0;
            if (workspace) rl_gpu_free(m->l->g, workspace, (size_t)next.nworkspace);
            tried++;
            bool better = !p->plan || next.seconds < p->seconds;
            drop_plan(m->l, better ? p : &next);
            if (better) *p = next;
        }
    drop_engines(m->l, found);
}

/* Engines whose kernels cuDNN compiles take a tenth of a second and more each; of a network with hundreds of convolutions the last ones take what
 * cuDNN names first. */
#define MOST_TRYING 20.0 /* seconds, of a process */

static void make_plan(rl_libs *l, rl_dnn_plan *p, const trial *t) {
    rl_dnn_maker m = {.l = l};
    double start = rl_seconds();
    if (l->trying > MOST_TRYING) t = NULL;
    rl_dnn_item graph = p->asked.graph(&m, p->asked.key);
    bool graphed = !m.bad;
    if (graphed) try_engines(&m, p, graph, CUDNN_HEUR_MODE_A, t);
    m.bad = false; /* the one kind of heuristics may fail where the other does not */
    if (graphed && !p->plan) try_engines(&m, p, graph, CUDNN_HEUR_MODE_FALLBACK, t);
    if (t) l->trying += rl_seconds() - start;
    destroy(&m);
}

/* ---- plans, by key ---- */

static rl_dnn_plan *plan_of(rl_libs *l, const rl_dnn_asked *q, const trial *t) {
    for (rl_dnn_plan *k = l->plans; k; k = k->next)
        if (k->asked.graph == q->graph && k->asked.nkey == q->nkey && rl_same_bytes(k->asked.key, q->key, q->nkey)) return k;
    rl_dnn_plan *k = calloc(1, sizeof *k + q->nkey);
    if (!k) return NULL;
    memcpy(k + 1, q->key, q->nkey);
    k->asked = *q;
    k->asked.key = k + 1;
    make_plan(l, k, t);
    k->next = l->plans;
    l->plans = k;
    return k;
}

void rl_dnn_forget(rl_libs *l) {
    for (rl_dnn_plan *k = l->plans, *next; k; k = next) {
        next = k->next;
        drop_plan(l, k);
        free(k);
    }
    l->plans = NULL;
}

/* Several runs make what one does, unless y, which a convolution has third, is an operand, too. */
static bool can_repeat(const rl_dnn_at *at, uint32_t n) {
    enum { Y = 2 };
    for (uint32_t i = 0; i < n; i++)
        if (i != Y && at[i].p == at[Y].p) return false;
    return true;
}

/* Is the graph's plan chosen by trials? */
static bool tries(const rl_call *call, const rl_dnn_asked *q, const rl_dnn_at *at, uint32_t n) {
    return call->rt->runs_often && (q->whole || q->shorter) && can_repeat(at, n);
}

/* The plan; NULL: none. What a recording runs was tried in the run before it. */
static rl_dnn_plan *plan_in(const rl_call *call, const rl_dnn_asked *q, const rl_dnn_at *at, uint32_t n) {
    rl_libs *l = rl_libs_of(call->rt);
    if (!l || !l->dnn || rl_call_noted(call)) return NULL;
    rl_dnn_plan *k = plan_of(l, q, tries(call, q, at, n) && !call->rt->recording ? &(trial){at, n} : NULL);
    return k && k->plan ? k : NULL;
}

double rl_dnn_seconds(const rl_call *call, const rl_dnn_asked *q, const rl_dnn_at *at, uint32_t n) {
    if (!tries(call, q, at, n)) return 0;
    const rl_dnn_plan *k = plan_in(call, q, at, n);
    return k ? k->seconds : INFINITY;
}

rl_status rl_dnn_run(rl_call *call, const rl_dnn_asked *q, const rl_dnn_at *at, uint32_t n, bool *did) {
    rl_libs *l = rl_libs_of(call->rt);
    const rl_dnn_plan *k = plan_in(call, q, at, n);
    *did = false;
    if (!k) return RL_OK;
    cudnnStatus_t s = execute(l, k, at, n, rl_libs_workspace(call, k->nworkspace));
    *did = s == CUDNN_STATUS_SUCCESS;
    if (*did) call->step->ran = "cuDNN";
    else rl_call_note(call, "cuDNN: %s", l->cudnnGetErrorString(s));
    return RL_OK;
}

bool rl_dnn_wants_channels_last(const rl_libs *l, rl_dtype t) {
    return l && l->dnn && (t == RL_F16 || t == RL_BF16 || (t == RL_F32 && l->tf32));
}

/* ---- a device that is not here ---- */

bool rl_dnn_pretend(rl_libs *l, const char *json) {
#if CUDNN_VERSION >= 90800
    rl_dnn_maker m = {.l = l};
    if (!l || !l->dnn_file || l->cudnnGetVersion() < 90800) return false;
    rl_dnn_item d = rl_dnn_make(&m, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    rl_dnn_set(&m, d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)strlen(json), json);
    l->pretended = rl_dnn_finish(&m, d);
    if (m.bad) destroy(&m), l->pretended = NULL;
    return !m.bad;
#else
    (void)l, (void)json;
    return false;
#endif
}

static void ask_engines(rl_dnn_maker *m, const rl_dnn_asked *q, rl_dnn_item graph, cudnnBackendHeurMode_t mode, rl_dnn_answer *a) {
    rl_dnn_item found[MOST_ENGINES] = {NULL};
    int64_t n = find_engines(m, graph, mode, found);
    a->taken += (uint32_t)n;
    a->fallback = mode == CUDNN_HEUR_MODE_FALLBACK;
    for (int64_t i = 0; i < n; i++) {
        rl_dnn_item plan = is_wanted(m->l, q, found[i]) ? plan_for(m->l, found[i]) : NULL;
        a->engines += plan != NULL;
        cudnnStatus_t s = plan && !a->made ? m->l->cudnnBackendFinalize(plan) : CUDNN_STATUS_NOT_SUPPORTED;
        a->made = a->made || s == CUDNN_STATUS_SUCCESS || s == CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER;
        if (plan && !a->made) m->l->cudnnGetLastErrorString(a->why, sizeof a->why);
        if (plan) m->l->cudnnBackendDestroyDescriptor(plan);
    }
    drop_engines(m->l, found);
}

void rl_dnn_asks(rl_libs *l, const rl_dnn_asked *q, rl_dnn_answer *a) {
    rl_dnn_maker m = {.l = l};
    *a = (rl_dnn_answer){0};
    rl_dnn_item graph = q->graph(&m, q->key);
    if (m.bad) l->cudnnGetLastErrorString(a->why, sizeof a->why);
    if (!m.bad) ask_engines(&m, q, graph, CUDNN_HEUR_MODE_A, a);
    if (!m.bad && !a->made) ask_engines(&m, q, graph, CUDNN_HEUR_MODE_FALLBACK, a);
    destroy(&m);
}
