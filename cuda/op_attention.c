/* Attention on the device, the op and what was joined to be it (runtime/fuse_attention.c): a product, kernel scores on its lines, a product. Heads are views,
 * whatever their order in memory: they are never copied. The op's scores of shorter floats are f32, and their weights such floats again, as tensor cores
 * want them; joined nodes have them in the type that the model says.
 *
 * The scores of all heads at once may be more than memory has: they are made, and used, in pieces of so many batches, heads or queries. */
#include <math.h>
#include <string.h>

#include "../runtime/attention.h"
#include "../runtime/attention_op.h"
#include "../runtime/fuse.h"
#include "../runtime/kernels.h"
#include "backend.h"

enum { MOST = 1 << 27, MOST_EMULATED = 256 /* scores of a piece */ };

/* Views with the same dims in front, but that k and v may have 1 for any; kind RL_ABSENT: not there. */
typedef struct {
    rl_tensor q, k, v, y;
    rl_tensor by[RL_MOST_SCORE_OPS], kept; /* of the scores' dims; kept: output 3 */
    rl_tensor lengths;                     /* [dim 0] */
    int64_t first;                         /* the number of its first query */
} piece;
typedef enum { KEEPS_NONE, KEEPS_PRODUCT, KEEPS_WEIGHTS } keeps;
typedef struct {
    rl_call *c;
    double scale;
    int64_t keys, most;
    keeps keeps;
    rl_p_scores scores;         /* but for what the piece says */
    rl_tensor product, weights; /* room for a piece's; weights absent: in the product's place, or kept */
} job;

/* Scores of a piece, or of one of its queries. */
static int64_t count(const job *j, const rl_tensor *q) {
    int64_t n = j->keys;
    for (uint32_t i = 0; i + 1 < q->rank; i++) n *= q->dim[i];
    return n;
}

/* ---- one piece ---- */

static rl_tensor room_in(const job *j, const rl_tensor *all, const piece *p) {
    int64_t dim[RL_RANK];
    memcpy(dim, p->q.dim, p->q.rank * sizeof *dim);
    dim[p->q.rank - 1] = j->keys;
    rl_tensor y = rl_view_slice(all, 0, 0, 1, count(j, &p->q)), view = y;
    rl_view_reshape(&y, p->q.rank, dim, &view);
    return view;
}

/* Weights of scores, perhaps in their place. */
static rl_status weigh(const job *j, const piece *p, const rl_tensor *scores, const rl_tensor *weights) {
    const rl_tensor *t[RL_OPERANDS] = {weights, scores};
    uint32_t last = scores->rank - 1;
    rl_p_rows r = {.to = rl_data(weights), .from = rl_data(scores), .n = (uint32_t)j->keys, .op = RL_GPU_SOFTMAX, .to_step = 1, .from_step = 1,
                   .scores = j->scores};
    for (uint32_t i = 0; i < r.scores.nop; i++) {
        t[2 + i] = &p->by[i];
        r.scores.op[i].by = rl_data(&p->by[i]), r.scores.op[i].step = p->by[i].stride[last];
    }
    rl_loops kept = rl_loops_of(last, scores->dim, t, 2 + r.scores.nop);
    r.count = (uint32_t)rl_loops_count(&kept);
    r.scores.first = p->first;
    r.scores.queries = rl_divisor_of((uint32_t)scores->dim[last - 1]), r.scores.per_batch = rl_divisor_of(r.count / (uint32_t)scores->dim[0]);
    if (p->lengths.kind == RL_TENSOR) r.scores.valid = rl_data(&p->lengths);
    rl_loops_merge(&kept);
    return rl_gpu_run_rows(j->c, &r, &kept, weights->dtype);
}

static rl_status run(const job *j, const piece *p) {
    rl_tensor scores = room_in(j, &j->product, p), weights = scores;
    if (j->weights.kind == RL_TENSOR) weights = room_in(j, &j->weights, p);
    RL_TRY(rl_gpu_product(j->c, &p->q, &p->k, &scores, j->scale));
    if (j->keeps == KEEPS_PRODUCT) RL_TRY(rl_gpu_cast_to(j->c, &p->kept, &scores));
    if (j->keeps == KEEPS_WEIGHTS) weights = p->kept;
    RL_TRY(weigh(j, p, &scores, &weights));
    return rl_gpu_product(j->c, &weights, &p->v, &p->y, 1);
}

/* ---- pieces ---- */

static void cut(rl_tensor *t, uint32_t axis, int64_t start, int64_t n) {
    if (t->kind == RL_TENSOR && t->dim[axis] > 1) *t = rl_view_slice(t, axis, start, 1, n);
}

/* Part of a piece along an axis. Keys and values are the same for all queries. */
static piece part_of(const piece *p, uint32_t axis, int64_t start, int64_t n) {
    piece h = *p;
    bool query = axis == p->q.rank - 2;
    rl_tensor *all[] = {&h.q, &h.y, &h.by[0], &h.by[1], &h.kept};
    for (uint32_t i = 0; i < RL_LEN(all); i++) cut(all[i], axis, start, n);
    if (query) h.first += start;
    else cut(&h.k, axis, start, n), cut(&h.v, axis, start, n);
    if (axis == 0) cut(&h.lengths, 0, start, n);
    return h;
}

static rl_status run_pieces(const job *j, const piece *p) {
    uint32_t axis = 0;
    while (axis + 1 < p->q.rank && p->q.dim[axis] == 1) axis++;
    if (axis + 1 == p->q.rank || count(j, &p->q) <= j->most) return run(j, p);
    int64_t n = p->q.dim[axis], half = n / 2;
    piece first = part_of(p, axis, 0, half), rest = part_of(p, axis, half, n - half);
    RL_TRY(run_pieces(j, &first));
    return run_pieces(j, &rest);
}

static rl_status run_all(job *j, const piece *p) {
    rl_dtype t = p->q.dtype;
    j->most = rl_gpu_is_emulated(rl_gpu_of(j->c->rt)) ? MOST_EMULATED : MOST;
    int64_t room = RL_MIN(count(j, &p->q), RL_MAX(j->most, j->keys));
    j->product = *rl_call_temp(j->c, j->scores.narrow ? t : rl_gpu_computed(t), 1, &room);
    if (j->product.dtype != t && j->keeps != KEEPS_WEIGHTS) j->weights = *rl_call_temp(j->c, t, 1, &room);
    return run_pieces(j, p);
}

/* ---- the op ---- */

/* Before anything is made. The stages of the scores between the product and the weights, which output 3 may ask for, do not stand in memory here. */
static bool takes(const rl_call *c) {
    int64_t mode = rl_attr_int(c->node, "qk_matmul_output_mode", 0);
    const rl_tensor *q = rl_call_in(c, 0), *mask = rl_call_in(c, 3), *lengths = rl_call_in(c, 6);
    for (uint32_t i = 0; i < 3; i++)
        if (rl_call_in(c, i)->dtype != q->dtype || rl_numel(rl_call_in(c, i)) == 0) return false;
    if (mask && mask->dtype != RL_BOOL && mask->dtype != q->dtype) return false;
    return (!lengths || lengths->dtype == RL_I64) && (!rl_call_wants(c, 3) || mode == 0 || mode == 3);
}

rl_status rl_gpu_attention(rl_call *c) {
    static const int64_t turn[] = {0, 1, 2, 4, 3};
    rl_attention_op o;
    RL_TRY(rl_call_need(c, 3));
    if (!takes(c)) return rl_call_decline(c);
    RL_TRY(rl_attention_read(c, &o));
    piece p = {.q = rl_attention_grouped(&o, &o.q), .k = rl_attention_grouped(&o, &o.k), .v = rl_attention_grouped(&o, &o.v)};
    job j = {.c = c, .scale = o.scale, .keys = o.keys, .scores = {.cap = o.cap, .blind_is_zero = true}};
    p.k = rl_view_transpose(&p.k, turn);
    if (rl_call_in(c, 3)) {
        rl_tensor mask;
        RL_TRY(rl_attention_mask(c, &o, rl_call_here(c, 3), &mask));
        p.by[0] = rl_attention_grouped(&o, &mask);
        j.scores.op[j.scores.nop++] = (rl_p_score_op){.of_bools = mask.dtype == RL_BOOL, .keep = true, .other = -INFINITY};
    }
    j.scores.sight = o.sight; /* what a mask with fewer keys says is in there, too */
    if (rl_call_in(c, 6)) {
        RL_TRY(rl_attention_lengths(c, &o));
        p.lengths = *rl_here_dense(c, rl_call_here(c, 6));
        rl_view_reshape(&p.lengths, 1, &o.batch, &p.lengths);
    }
    rl_tensor y = rl_attention_output(c, &o);
    p.y = rl_attention_grouped(&o, &y);
    if (rl_call_wants(c, 3)) {
        p.kept = rl_attention_grouped(&o, rl_call_make(c, 3, o.q.dtype, 4, (int64_t[]){o.batch, o.heads, o.queries, o.keys}));
        j.keeps = o.mode == 0 ? KEEPS_PRODUCT : KEEPS_WEIGHTS;
    }
    return run_all(&j, &p);
}

/* ---- joined nodes ---- */

/* As many ops as the kernel has operands, and of its kinds. */
static bool takes_joined(const rl_call *c, const rl_joined *j) {
    rl_dtype t = rl_call_in(c, 0)->dtype;
    bool takes = j->nop <= RL_MOST_SCORE_OPS;
    for (uint32_t i = 0; i < 3; i++) takes = takes && rl_call_in(c, i)->dtype == t && rl_numel(rl_call_in(c, i)) > 0;
    for (uint32_t i = 0; takes && i < j->nop; i++) {
        rl_dtype by = rl_call_in(c, j->op[i].in)->dtype;
        takes = j->op[i].op == RL_ROW_COPY ? by == RL_BOOL : j->op[i].op == RL_ROW_ADD && by == t;
    }
    return takes;
}

rl_status rl_gpu_joined_attention(rl_call *c) {
    const rl_tensor *in[3 + RL_JOINED_OPS];
    rl_attention a;
    if (!takes_joined(c, c->step->joined)) return rl_call_decline(c);
    for (uint32_t i = 0; i < c->nin; i++) in[i] = rl_call_here(c, i);
    RL_TRY(rl_joined_read(c, in, &a));
    piece p = {.q = a.q, .k = a.k, .v = a.v, .y = a.y};
    uint32_t last = a.q.rank - 1;
    job j = {.c = c, .scale = a.scale, .keys = a.k.dim[last], .scores = {.narrow = true}};
    j.scores.sight = (rl_sight){.queries = a.q.dim[last - 1], .keys = j.keys, .left = -1, .right = -1};
    for (uint32_t i = 0; i < a.nop; i++) {
        p.by[i] = a.op[i].by;
        j.scores.op[j.scores.nop++] = (rl_p_score_op){.of_bools = a.op[i].op == RL_ROW_COPY, .keep = a.op[i].keep, .other = a.op[i].other};
    }
    return run_all(&j, &p);
}
