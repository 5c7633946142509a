/* Chains of numbers that were quantized and taken back, as one step in bytes, for devices and fast kernels that have the op for it:
 *
 *   x -> DequantizeLinear -> Conv -> [Relu] -> QuantizeLinear        QLinearConv; of MatMul: QLinearMatMul
 *         weights, bias -> DequantizeLinear
 *
 * Scales and zero points are constants, x's and the output's one number each; a Relu goes where the output's type ends at its zero point anyway.  With
 * a device the step keeps its parts, which run where the device's kernel cannot; the CPU's kernel is asked before.  In bytes the sum is exact where the chain's is rounded; so a number that lies
 * between two quantized ones may become the other one.
 *
 *   q, s, z of DynamicQuantizeLinear -> MatMulInteger -> Cast -> Mul -> [Add]        with a device: com.microsoft's MatMulIntegerToFloat
 *                                       Mul of s and the weights' scale -> */
#include <math.h>
#include <string.h>

#include "fast.h"
#include "fuse.h"
#include "quantize.h"

typedef struct { rl_exec *x; uint32_t *step_of; /* [node] RL_NONE: it does not run */ } joiner;
typedef struct { rl_value q, scale, zero; } dequantized; /* of what */

static bool is(const rl_nodeinfo *n, const char *type) {
    return !*n->domain && strcmp(n->type, type) == 0;
}

/* Bytes, weights for one, stay where they are; in the file other numbers need not lie aligned. */
static const rl_tensor *constant(const joiner *j, rl_value v) {
    const rl_tensor *t = rl_has(v) ? &j->x->constant[v.i] : NULL;
    if (!t || t->kind != RL_TENSOR || !rl_is_dense(t)) return NULL;
    if (!rl_is_byte(t->dtype)) rl_storage_fetch(t->mem);
    return t;
}

/* A scale of f32 and a zero point of bytes, one of each, or one for each of n. */
static bool has_numbers(const joiner *j, const rl_nodeinfo *n, int64_t many) {
    const rl_tensor *s = constant(j, rl_in(n, 1)), *z = constant(j, rl_in(n, 2));
    bool plain = s && z && s->dtype == RL_F32 && rl_is_byte(z->dtype) && rl_numel(s) == rl_numel(z) && !rl_attr_int(n, "block_size", 0);
    return plain && (rl_numel(s) == 1 || (many && s->rank == 1 && rl_numel(s) == many));
}

/* The DequantizeLinear that makes v; NULL: another op. */
static const rl_nodeinfo *taken_back(const joiner *j, rl_value v) {
    rl_node def = rl_has(v) ? rl_val(j->x->g, v)->def : RL_NONODE;
    const rl_nodeinfo *n = def.i == RL_NONE ? NULL : rl_nod(j->x->g, def);
    return n && is(n, "DequantizeLinear") && n->nin >= 2 ? n : NULL;
}

/* The only step that reads v; RL_NONE: several, or a body or the caller. */
static uint32_t only_reader(const joiner *j, rl_value v) {
    const rl_valinfo *x = rl_val(j->x->g, v);
    uint32_t found = RL_NONE;
    for (uint32_t i = 0; i < x->nuse; i++) {
        uint32_t s = j->step_of[x->use[i].node.i];
        if (x->use[i].slot >= rl_nod(j->x->g, x->use[i].node)->nin) return RL_NONE;
        if (s == RL_NONE || s == found) continue;
        if (found != RL_NONE) return RL_NONE;
        found = s;
    }
    return x->is_output ? RL_NONE : found;
}

/* Weights: a constant of bytes whose scales, if many, lie along `axis`. */
static bool take_weights(const joiner *j, rl_value v, uint32_t axis, dequantized *w) {
    const rl_nodeinfo *n = taken_back(j, v);
    const rl_tensor *q = n ? constant(j, n->in[0]) : NULL;
    if (!q || !rl_is_byte(q->dtype) || q->rank <= axis || !has_numbers(j, n, q->dim[axis])) return false;
    int64_t along = rl_attr_int(n, "axis", 1);
    if (rl_numel(constant(j, n->in[1])) > 1 && along != axis && along + q->rank != axis) return false;
    *w = (dequantized){n->in[0], n->in[1], n->in[2]};
    return true;
}

/* A bias of i32 in units of x's scale times the weights'. */
static bool take_bias(const joiner *j, rl_value v, const dequantized *x, const dequantized *w, rl_value *bias) {
    const rl_nodeinfo *n = taken_back(j, v);
    const rl_tensor *q = n ? constant(j, n->in[0]) : NULL, *s = n ? constant(j, n->in[1]) : NULL;
    if (!q || !s || q->dtype != RL_I32 || s->dtype != RL_F32 || (rl_has(rl_in(n, 2)) && !constant(j, n->in[2]))) return false;
    const rl_tensor *z = rl_has(rl_in(n, 2)) ? constant(j, n->in[2]) : NULL, *ws = constant(j, w->scale);
    for (int64_t i = 0; z && i < rl_numel(z); i++)
        if (z->dtype != RL_I32 || ((const int32_t *)rl_data(z))[i]) return false;
    float xs = *(const float *)rl_data(constant(j, x->scale));
    for (int64_t i = 0; i < rl_numel(q); i++) {
        float want = xs * ((const float *)rl_data(ws))[rl_numel(ws) == 1 ? 0 : i], have = ((const float *)rl_data(s))[rl_numel(s) == 1 ? 0 : i];
        if (fabsf(have - want) > 1e-5f * fabsf(want)) return false;
    }
    *bias = n->in[0];
    return true;
}

static bool ends_at_zero(const joiner *j, const rl_nodeinfo *q) {
    double least, most;
    const rl_tensor *z = constant(j, q->in[2]);
    rl_range_of(z->dtype, &least, &most);
    return rl_byte_at(z, 0) == least;
}

/* Has the CPU a kernel for it?  Where x's dims are known it is asked with x as a convolution makes it. */
static bool cpu_takes(const joiner *j, const rl_nodeinfo *n, rl_step *s) {
    rl_exec *x = j->x;
    const rl_valinfo *v = rl_val(x->g, n->in[0]);
    rl_tensor t = {.kind = RL_TENSOR, .dtype = v->dtype, .rank = v->rank};
    const rl_tensor *in[9] = {&t};
    rl_frame f = {.x = x};
    if (v->rank == RL_NORANK || v->rank < 2) return false;
    int64_t step = 1;
    for (uint32_t i = v->rank; i-- > 0; step *= v->dim[i]) {
        if (v->dim[i] <= 0) return false;
        t.dim[i] = v->dim[i], t.stride[i] = step;
    }
    for (uint32_t i = 1; i < n->nin; i++) in[i] = rl_has(n->in[i]) ? &x->constant[n->in[i].i] : NULL;
    return rl_fast_takes_bytes(&(rl_call){.rt = x->rt, .g = x->g, .node = n, .in = in, .nin = n->nin, .tmp = &x->g->mem, .frame = &f, .step = s});
}

/* What the steps become: an op of bytes with the lead's attributes, in the last one's place. */
static void join(joiner *j, const uint32_t *part, uint32_t npart, uint32_t lead, const char *domain, const char *type, const rl_value *in, uint32_t nin) {
    rl_exec *x = j->x;
    rl_arena *mem = &x->g->mem;
    rl_step *last = &x->step[part[npart - 1]], s = {.node = last->node};
    rl_nodeinfo *n = rl_copy(mem, x->step[lead].info, sizeof *n);
    n->domain = rl_internz(x->g->ctx, domain), n->type = rl_internz(x->g->ctx, type), n->since = 10;
    n->in = rl_copy(mem, in, nin * sizeof *in), n->nin = nin;
    n->out = last->info->out;
    const rl_kernel *k = rl_kernel_find(x->rt->device ? x->rt->device : x->rt->on, n);
    s.info = n;
    if (!k || (!x->rt->device && !cpu_takes(j, n, &s))) return;
    s.body = x->step[lead].body;
    rl_push(mem, s.kernel, k);
    if (x->rt->device) s.part = rl_new(mem, rl_step, npart);
    for (uint32_t i = 0; i < npart; i++) {
        if (s.part) s.part[s.npart++] = x->step[part[i]];
        j->step_of[x->step[part[i]].node.i] = part[npart - 1];
        x->step[part[i]].info = NULL;
    }
    *last = s;
}

/* Its QLinearMatMul has a bias, and weights the other way round, too. */
static bool is_plain_gemm(const rl_nodeinfo *n) {
    return is(n, "Gemm") && rl_attr_float(n, "alpha", 1) == 1 && rl_attr_float(n, "beta", 1) == 1 && !rl_attr_int(n, "transA", 0);
}

static void try_lead(joiner *j, uint32_t i) {
    rl_exec *x = j->x;
    const rl_nodeinfo *n = x->step[i].info;
    bool conv = n && is(n, "Conv"), gemm = n && !x->rt->device && is_plain_gemm(n);
    if (!conv && !gemm && !(n && is(n, "MatMul"))) return;
    const rl_nodeinfo *back = n->nin >= 2 ? taken_back(j, n->in[0]) : NULL;
    uint32_t part[4], npart = 0, from = back ? j->step_of[rl_val(x->g, n->in[0])->def.i] : RL_NONE;
    dequantized a, w;
    rl_value bias = RL_NOVALUE;
    if (from == RL_NONE || !has_numbers(j, back, 0) || !rl_is_byte(rl_val(x->g, back->in[0])->dtype)) return;
    a = (dequantized){back->in[0], back->in[1], back->in[2]};
    if (!take_weights(j, n->in[1], conv || rl_attr_int(n, "transB", 0) ? 0 : 1, &w) || (rl_has(rl_in(n, 2)) && !take_bias(j, n->in[2], &a, &w, &bias))) return;
    if (only_reader(j, n->in[0]) == i) part[npart++] = from;
    part[npart++] = i;
    uint32_t next = only_reader(j, n->out[0]);
    bool relu = next != RL_NONE && is(x->step[next].info, "Relu");
    if (relu) part[npart++] = next, next = only_reader(j, x->step[next].info->out[0]);
    const rl_nodeinfo *q = next == RL_NONE ? NULL : x->step[next].info;
    if (!q || !is(q, "QuantizeLinear") || !has_numbers(j, q, 0) || (relu && !ends_at_zero(j, q))) return;
    part[npart++] = next;
    rl_value in[] = {a.q, a.scale, a.zero, w.q, w.scale, w.zero, q->in[1], q->in[2], bias};
    join(j, part, npart, i, "", conv ? "QLinearConv" : "QLinearMatMul", in, rl_has(bias) ? 9 : 8);
}

/* How many numbers of f32 v has; 0: not known. */
static int64_t count_of(const joiner *j, rl_value v) {
    const rl_valinfo *i = rl_val(j->x->g, v);
    int64_t n = 1;
    if (i->dtype != RL_F32 || i->rank == RL_NORANK) return 0;
    for (uint32_t k = 0; k < i->rank; k++) n = i->dim[k] > 0 ? rl_mul(n, i->dim[k]) : 0;
    return n;
}

static const rl_nodeinfo *step_is(const joiner *j, uint32_t step, const char *type) {
    const rl_nodeinfo *n = step == RL_NONE ? NULL : j->x->step[step].info;
    return n && is(n, type) ? n : NULL;
}

/* The operand of n, which has two, that is not v. */
static rl_value other_of(const rl_nodeinfo *n, rl_value v) {
    return n->in[n->in[0].i == v.i];
}

static void try_integer(joiner *j, uint32_t i) {
    rl_exec *x = j->x;
    const rl_nodeinfo *n = step_is(j, i, "MatMulInteger");
    uint32_t part[5] = {i}, npart = 1, at[2];
    if (!n || !x->rt->device) return;
    const rl_valinfo *w = rl_val(x->g, n->in[1]);
    if (w->rank == RL_NORANK || w->rank < 2) return;
    const rl_nodeinfo *cast = step_is(j, at[0] = only_reader(j, n->out[0]), "Cast");
    const rl_nodeinfo *mul = cast ? step_is(j, at[1] = only_reader(j, cast->out[0]), "Mul") : NULL;
    if (!mul || rl_attr_int(cast, "to", 0) != RL_F32 || mul->in[0].i == mul->in[1].i) return;
    rl_value by = other_of(mul, cast->out[0]), bias = RL_NOVALUE;
    rl_node def = rl_val(x->g, by)->def;
    const rl_nodeinfo *scales = def.i == RL_NONE ? NULL : step_is(j, j->step_of[def.i], "Mul");
    if (!scales) return;
    uint32_t one = count_of(j, scales->in[0]) == 1 ? 0 : 1; /* x's, the other one is the weights' */
    int64_t columns = w->dim[w->rank - 1], many = count_of(j, scales->in[!one]);
    if (count_of(j, scales->in[one]) != 1 || (many != 1 && (many != columns || rl_val(x->g, scales->in[!one])->rank != 1))) return;
    if (only_reader(j, by) == at[1]) part[npart++] = j->step_of[def.i];
    part[npart++] = at[0], part[npart++] = at[1];
    uint32_t next = only_reader(j, mul->out[0]);
    const rl_nodeinfo *add = step_is(j, next, "Add");
    if (add && add->in[0].i != add->in[1].i) bias = other_of(add, mul->out[0]);
    if (rl_has(bias) && rl_val(x->g, bias)->rank == 1 && count_of(j, bias) == columns) part[npart++] = next;
    else bias = RL_NOVALUE;
    rl_value in[] = {n->in[0], n->in[1], scales->in[one], scales->in[!one], rl_in(n, 2), rl_in(n, 3), bias};
    join(j, part, npart, i, "com.microsoft", "MatMulIntegerToFloat", in, RL_LEN(in));
}

/* What was taken back for joined steps alone, their weights too: no part is there to read it. */
static void drop_unread(rl_exec *x, rl_arena *tmp) {
    const rl_readers *of = rl_find_readers(x, tmp);
    for (uint32_t i = 0; i < x->nstep; i++) {
        const rl_nodeinfo *n = x->step[i].info;
        if (is(n, "DequantizeLinear") && !of[n->out[0].i].n && !rl_val(x->g, n->out[0])->is_output) x->step[i].info = NULL;
    }
    rl_drop_steps(x);
}

void rl_join_bytes(rl_exec *x) {
    rl_arena tmp;
    rl_arena_init(&tmp, x->g->ctx);
    joiner j = {x, rl_new(&tmp, uint32_t, x->g->nnode)};
    memset(j.step_of, 0xff, x->g->nnode * sizeof *j.step_of);
    for (uint32_t i = 0; i < x->nstep; i++) j.step_of[x->step[i].node.i] = i;
    for (uint32_t i = 0; i < x->nstep; i++) try_lead(&j, i), try_integer(&j, i);
    rl_drop_steps(x);
    if (!x->rt->device) drop_unread(x, &tmp);
    rl_arena_free(&tmp);
}
