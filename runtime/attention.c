/* Attention in blocks: see attention.h. */
#include "attention.h"

#include <math.h>

#include "panels.h"

enum { SCORES = 48 * 1024 /* of a block, about */, LEAST = 24, MOST = 96 /* rows of a block */ };

typedef struct {
    const rl_attention *a;
    const rl_rows *rows;
    int64_t heads, cuts, cut;   /* (batch, head) pairs; pieces of their rows, and rows of a piece */
    int64_t m, d, n, w, np, wp; /* np, wp: n and w with the last panel's rest */
    int64_t block;              /* rows at once */
    int64_t nworker, nroom;     /* floats of a worker */
    float *room;
} work;

/* What a worker has for itself. */
typedef struct {
    float *k, *v, *q, *s, *y, *by, *row;
} desk;

static desk desk_of(const work *w, float *p) {
    desk t = {.k = p};
    t.v = t.k + w->d * w->np;
    t.q = t.v + w->n * w->wp;
    t.s = t.q + w->block * rl_panel_padded(w->d);
    t.y = t.s + w->block * w->np;
    t.by = t.y + w->block * w->wp;
    t.row = t.by + rl_panel_padded(w->block);
    return t;
}

/* Where head i of t begins. */
static const void *head(const rl_tensor *t, int64_t i) {
    int64_t at = 0;
    for (uint32_t d = t->rank - 2; d-- > 0; i /= t->dim[d]) at += i % t->dim[d] * t->stride[d];
    return (const char *)rl_data(t) + at * (int64_t)rl_elem_bits(t->dtype) / 8;
}

/* y[m, columns] = a[m, k] times the first k of the `height` rows of b's panels; columns end where a panel does. */
static void multiply(const work *w, float *y, int64_t ym, const float *a, int64_t am, const float *b, int64_t height,
                     int64_t columns, int64_t m, int64_t k) {
    for (int64_t j = 0; j < columns; j += w->rows->width) {
        int64_t width = RL_MIN(w->rows->width, columns - j);
        w->rows->tile(y + j, ym, a, am, b + j * height, width, width, m, k, NULL, 0);
    }
}

static void scale_scores(const work *w, const desk *t, int64_t m, float *scale) {
    for (int64_t r = 0; r < m && *scale != 1; r++)
        w->rows->op[RL_ROW_LINEAR](t->s + r * w->np, t->s + r * w->np, NULL, 0, w->n, *scale, 0);
    *scale = 1;
}

/* One op on a block of scores, rows first .. first+m-1 of this head; *scale: what they are still to be multiplied with. */
static void apply(const work *w, const rl_score_op *o, int64_t i, int64_t first, int64_t m, const desk *t,
                  float *scale) {
    const rl_tensor *by = &o->by;
    int64_t sm = by->stride[by->rank - 2], sn = by->stride[by->rank - 1];
    const char *at = (const char *)head(by, i) + first * sm * (int64_t)rl_elem_bits(by->dtype) / 8;
    if (o->op == RL_ROW_ADD && sn == 1) {
        w->rows->add_rows(t->s, w->np, (const void *)at, sm, m, w->n, *scale);
        *scale = 1;
        return;
    }
    scale_scores(w, t, m, scale);
    if (o->op == RL_ROW_COPY && sn == 1) {
        w->rows->choose_rows(t->s, w->np, (const void *)at, sm, m, w->n, o->keep, o->other);
        return;
    }
    for (int64_t r = 0; r < m; r++) {
        float *s = t->s + r * w->np;
        const float *b = (const float *)(const void *)at + r * sm;
        if (o->op == RL_ROW_COPY) {
            uint8_t *c = (uint8_t *)t->row;
            for (int64_t j = 0; j < w->n; j++) c[j] = (uint8_t)at[r * sm + j * sn];
            w->rows->choose_rows(s, w->np, c, 0, 1, w->n, o->keep, o->other);
            continue;
        }
        for (int64_t j = 0; sn != 0 && sn != 1 && j < w->n; j++) t->row[j] = b[j * sn];
        w->rows->op[o->op](s, s, sn == 0 || sn == 1 ? b : t->row, sn != 0, w->n, 0, 0);
    }
}

/* Rows of q with their elements side by side: as they lie, or fetched. */
static const float *rows_of_q(const work *w, const float *q, int64_t m, const desk *t, int64_t *step) {
    const rl_tensor *x = &w->a->q;
    int64_t sm = x->stride[x->rank - 2], sd = x->stride[x->rank - 1];
    *step = sd == 1 ? sm : w->d;
    for (int64_t r = 0; r < m && sd != 1; r++)
        for (int64_t j = 0; j < w->d; j++) t->q[r * w->d + j] = q[r * sm + j * sd];
    return sd == 1 ? q : t->q;
}

static void run_block(const work *w, int64_t i, int64_t first, int64_t m, const desk *t) {
    const rl_attention *a = w->a;
    int64_t qm = a->q.stride[a->q.rank - 2], ym = a->y.stride[a->y.rank - 2];
    int64_t seen = a->causal ? RL_MIN(w->n, first + m + a->past) : w->n, panel = w->rows->width;
    int64_t columns = RL_MIN(w->np, (seen + panel - 1) / panel * panel);
    float scale = a->scale;
    const float *q = rows_of_q(w, (const float *)head(&a->q, i) + first * qm, m, t, &qm);
    multiply(w, t->s, w->np, q, qm, t->k, w->d, columns, m, w->d);
    if (!(scale > 0)) scale_scores(w, t, m, &scale);
    for (uint32_t k = 0; k < a->nop; k++) apply(w, &a->op[k], i, first, m, t, &scale);
    for (int64_t r = 0; r < m; r++) {
        int64_t sees = a->causal ? RL_MIN(w->n, first + r + 1 + a->past) : w->n;
        for (int64_t j = sees; j < columns; j++) t->s[r * w->np + j] = -INFINITY;
    }
    bool blind[MOST] = {0};
    for (int64_t r = 0; r < m; r++) blind[r] = a->blind_is_zero && w->rows->max(t->s + r * w->np, columns) == -INFINITY;
    w->rows->weights(t->s, w->np, m, columns, scale, t->by);
    for (int64_t r = 0; r < m; r++)
        for (int64_t j = 0; blind[r] && j < columns; j++) t->s[r * w->np + j] = t->by[r] = 0;
    multiply(w, t->y, w->wp, t->s, w->np, t->v, w->n, w->wp, m, seen);
    float *y = (float *)(uintptr_t)head(&a->y, i) + first * ym;
    w->rows->scale_rows(y, ym, t->y, w->wp, t->by, m, w->w);
}

static void run_worker(void *arg, int64_t from, int64_t to) {
    const work *w = arg;
    const rl_attention *a = w->a;
    uint32_t row = a->q.rank - 2, column = row + 1;
    int64_t ntask = w->heads * w->cuts;
    for (int64_t worker = from; worker < to; worker++) {
        desk t = desk_of(w, w->room + worker * w->nroom);
        int64_t packed = -1, end = ntask * (worker + 1) / w->nworker;
        for (int64_t task = ntask * worker / w->nworker; task < end; task++) {
            int64_t i = task / w->cuts, first = task % w->cuts * w->cut, last = RL_MIN(w->m, first + w->cut);
            if (i != packed) {
                rl_panels_pack(w->rows, head(&a->k, i), w->n, w->d, a->k.stride[row], a->k.stride[column], t.k);
                rl_panels_pack(w->rows, head(&a->v, i), w->w, w->n, a->v.stride[row], a->v.stride[column], t.v);
                packed = i;
            }
            for (; first < last; first += w->block) run_block(w, i, first, RL_MIN(w->block, last - first), &t);
        }
    }
}

/* Rows at once: their scores stay in the second cache, in even pieces. */
static int64_t block_rows(int64_t m, int64_t np) {
    int64_t most = RL_MIN((int64_t)MOST, RL_MAX((int64_t)LEAST, SCORES / np / 12 * 12)), pieces = (m + most - 1) / most;
    return RL_MIN(m, ((m + pieces - 1) / pieces + 11) / 12 * 12);
}

void rl_attention_run(rl_rt *rt, const rl_attention *a) {
    uint32_t rank = a->q.rank;
    work w = {.a = a,
              .rows = rl_rows_best(),
              .heads = 1,
              .m = a->q.dim[rank - 2],
              .d = a->q.dim[rank - 1],
              .n = a->k.dim[rank - 1],
              .w = a->v.dim[rank - 1]};
    for (uint32_t i = 0; i + 2 < rank; i++) w.heads *= a->q.dim[i];
    if (w.heads * w.m * w.w == 0) return;
    w.np = rl_panel_padded(w.n), w.wp = rl_panel_padded(w.w), w.block = block_rows(w.m, w.np);
    double volume = (double)w.heads * (double)w.m * (double)w.n * (double)(w.d + w.w);
    w.nworker = volume > 1e5 ? rl_pool_size(rt->pool) : 1;
    int64_t blocks = (w.m + w.block - 1) / w.block;
    w.cuts = w.heads >= 4 * w.nworker
                 ? 1
                 : RL_MIN(blocks, w.nworker); /* few heads: their rows are shared, and each worker packs the head */
    w.cut = (blocks + w.cuts - 1) / w.cuts * w.block;
    w.cuts = (w.m + w.cut - 1) / w.cut;
    w.nworker = RL_MIN(w.nworker, w.heads * w.cuts);
    w.nroom = w.d * w.np + w.n * w.wp + w.block * (rl_panel_padded(w.d) + w.np + w.wp) + rl_panel_padded(w.block) + rl_panel_padded(w.n);
    rl_tensor room = rl_tensor_new(rt, RL_F32, 1, (int64_t[]){w.nworker * w.nroom});
    w.room = rl_data(&room);
    rl_parallel(rt, w.nworker, 1, run_worker, &w);
    rl_tensor_drop(&room);
}
