/* Attention on the device: a product, kernel scores on its lines, a product. Heads are views, whatever their order in memory: they are never copied. The
 * scores of shorter floats are f32, and their weights such floats again, as tensor cores want them.
 *
 * The scores of all heads at once may be more than memory has: they are made, and used, in pieces of so many batches, heads or queries. */
#include "../runtime/attention_op.h"
#include "../runtime/kernels.h"
#include "backend.h"

enum { AXES = 4 /* batch, key head, its query heads, query */, MOST = 1 << 27, MOST_EMULATED = 256 /* scores of a piece */ };

/* Views whose first dims, as far as they have them, are the piece's; kind RL_ABSENT: not there. */
typedef struct {
    rl_tensor q, k, v, y, mask, kept; /* k turned: [.., size, keys]; kept: output 3 */
    rl_tensor lengths;                /* [batch] */
    int64_t first;                    /* the number of its first query */
} piece;
typedef struct { rl_call *c; const rl_attention_op *o; int64_t most; rl_tensor scores, weights; /* room for a piece's; weights absent: in their place */ } job;

static int64_t count(const job *j, const int64_t *dim) {
    int64_t n = j->o->keys;
    for (uint32_t i = 0; i < AXES; i++) n *= dim[i];
    return n;
}

/* ---- one piece ---- */

static rl_tensor room_in(const job *j, const rl_tensor *all, const piece *p) {
    int64_t dim[AXES + 1] = {p->q.dim[0], p->q.dim[1], p->q.dim[2], p->q.dim[3], j->o->keys};
    rl_tensor y = rl_view_slice(all, 0, 0, 1, count(j, dim)), view = y;
    rl_view_reshape(&y, AXES + 1, dim, &view);
    return view;
}

/* Weights of scores, perhaps in their place. */
static rl_status weigh(const job *j, const piece *p, const rl_tensor *scores, const rl_tensor *weights) {
    const rl_tensor *mask = p->mask.kind == RL_TENSOR ? &p->mask : NULL;
    rl_loops kept = rl_loops_of(AXES, scores->dim, (const rl_tensor *[]){weights, scores, mask}, 3);
    rl_p_rows r = {.to = rl_data(weights), .from = rl_data(scores), .count = (uint32_t)rl_loops_count(&kept), .n = (uint32_t)j->o->keys, .op = RL_GPU_SOFTMAX,
                   .to_step = 1, .from_step = 1};
    r.scores = (rl_p_scores){.cap = j->o->cap, .sight = j->o->sight, .first = p->first, .queries = rl_divisor_of((uint32_t)scores->dim[3]),
                             .per_batch = rl_divisor_of(r.count / (uint32_t)scores->dim[0])};
    if (mask) r.scores.mask = rl_data(mask), r.scores.mask_step = mask->stride[AXES], r.scores.of_bools = mask->dtype == RL_BOOL;
    if (p->lengths.kind == RL_TENSOR) r.scores.valid = rl_data(&p->lengths);
    rl_loops_merge(&kept);
    return rl_gpu_run_rows(j->c, &r, &kept, weights->dtype);
}

static rl_status run(const job *j, const piece *p) {
    rl_tensor scores = room_in(j, &j->scores, p), weights = scores;
    if (j->weights.kind == RL_TENSOR) weights = room_in(j, &j->weights, p);
    RL_TRY(rl_gpu_product(j->c, &p->q, &p->k, &scores, j->o->scale));
    if (p->kept.kind == RL_TENSOR && j->o->mode == 0) RL_TRY(rl_gpu_cast_to(j->c, &p->kept, &scores));
    if (p->kept.kind == RL_TENSOR && j->o->mode == 3) weights = p->kept;
    RL_TRY(weigh(j, p, &scores, &weights));
    return rl_gpu_product(j->c, &weights, &p->v, &p->y, 1);
}

/* ---- pieces ---- */

/* Half of a piece along an axis. Keys and values are the same for all queries of a key head. */
static piece part_of(const piece *p, uint32_t axis, int64_t start, int64_t n) {
    piece h = *p;
    rl_tensor *all[] = {&h.q, &h.y, &h.mask, &h.kept, &h.k, &h.v, &h.lengths};
    uint32_t with_axis = axis == 0 ? 7 : axis == 1 ? 6 : 4;
    for (uint32_t i = 0; i < with_axis; i++)
        if (all[i]->kind == RL_TENSOR) *all[i] = rl_view_slice(all[i], axis, start, 1, n);
    if (axis == 3) h.first += start;
    return h;
}

static rl_status run_pieces(const job *j, const piece *p) {
    uint32_t axis = 0;
    while (axis < AXES && p->q.dim[axis] == 1) axis++;
    if (axis == AXES || count(j, p->q.dim) <= j->most) return run(j, p);
    int64_t n = p->q.dim[axis], half = n / 2;
    piece first = part_of(p, axis, 0, half), rest = part_of(p, axis, half, n - half);
    RL_TRY(run_pieces(j, &first));
    return run_pieces(j, &rest);
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
    p.k = rl_view_transpose(&p.k, turn);
    if (rl_call_in(c, 3)) {
        rl_tensor mask;
        RL_TRY(rl_attention_mask(c, &o, rl_call_here(c, 3), &mask));
        p.mask = rl_attention_grouped(&o, &mask);
    }
    if (rl_call_in(c, 6)) {
        RL_TRY(rl_attention_lengths(c, &o));
        p.lengths = *rl_here_dense(c, rl_call_here(c, 6));
        rl_view_reshape(&p.lengths, 1, &o.batch, &p.lengths);
    }
    rl_tensor y = rl_attention_output(c, &o);
    p.y = rl_attention_grouped(&o, &y);
    if (rl_call_wants(c, 3)) p.kept = rl_attention_grouped(&o, rl_call_make(c, 3, o.q.dtype, 4, (int64_t[]){o.batch, o.heads, o.queries, o.keys}));
    job j = {.c = c, .o = &o, .most = rl_gpu_is_emulated(rl_gpu_of(c->rt)) ? MOST_EMULATED : MOST};
    int64_t room = RL_MIN(count(&j, p.q.dim), RL_MAX(j.most, o.keys));
    j.scores = *rl_call_temp(c, rl_gpu_computed(o.q.dtype), 1, &room);
    if (j.scores.dtype != o.q.dtype && (p.kept.kind != RL_TENSOR || o.mode != 3)) j.weights = *rl_call_temp(c, o.q.dtype, 1, &room);
    return run_pieces(&j, &p);
}
