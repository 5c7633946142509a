/* Rows that who makes them puts where they are wanted: see fuse.h.
 *
 *   v = LayerNormalization(x)      [1, 56, 56, 64]           Swin and MaxViT: windows of 7 x 7 pixels, each of 64 numbers;
 *   r = Reshape(v)                 [1, 8, 7, 8, 7, 64]       the rows of v stand in w in another order, each as it was
 *   t = Transpose(r) 0 1 3 2 4 5   [1, 8, 8, 7, 7, 64]
 *   w = Reshape(t)                 [64, 49, 64]              no strides say this: a copy, whose rows the LayerNormalization makes
 *
 * So do products with weights, convolutions of 1 x 1 among them; and in between there may be more: Slices and a Concat that shift an image,
 * for windows that lie across others.  Which row goes where, the kernels of what is in between say: they run once, on a tensor whose elements are their places. */
#include "scatter.h"

#include <string.h>

#include "fast.h"
#include "fuse.h"
#include "kernels_fast.h"
#include "places.h"

enum { MOST = 24 /* steps in between */, SHORTEST = 8 /* floats of a row */ };

static const int64_t channels_last[] = {0, 2, 3, 1};

/* ---- what is in between ---- */

typedef struct {
    rl_exec *x;
    rl_arena tmp;
    const rl_readers *of;
    uint32_t turn;    /* this is region number `turn` */
    uint32_t *inside; /* [value] the last region that has it: what is made of the rows, and of nothing else */
    uint32_t *left;   /* [value] of these: how often others read it */
    uint32_t all;     /* the sum */
    rl_step *s[MOST];
    bool ends[MOST]; /* what this step makes is all that others read of what is made so far */
    uint32_t n;
} region;

static bool is_inside(const region *r, rl_value v) {
    return rl_has(v) && r->inside[v.i] == r->turn;
}

static void enter(region *r, rl_value v) {
    r->inside[v.i] = r->turn;
    r->left[v.i] = r->of[v.i].n + rl_val(r->x->g, v)->is_output;
    r->all += r->left[v.i];
}

static bool only_moves(rl_kernel_fn *fn) {
    return fn == rl_ref_reshape || fn == rl_ref_flatten || fn == rl_ref_squeeze || fn == rl_ref_unsqueeze || fn == rl_ref_transpose ||
           fn == rl_ref_slice || fn == rl_ref_split || fn == rl_ref_concat || fn == rl_ref_pad; /* by nothing, as Swin's exporters write it */
}

/* How many of its inputs are inside. */
static uint32_t count_inside(const region *r, const rl_nodeinfo *n) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < n->nin; i++) found += is_inside(r, n->in[i]);
    return found;
}

/* Does it only move what is inside? */
static bool fits(const region *r, const rl_step *s, uint32_t found) {
    const rl_nodeinfo *n = s->info;
    bool joins = rl_step_fn(s) == rl_ref_concat, known = !s->native && only_moves(rl_step_fn(s)) && is_inside(r, n->in[0]);
    for (uint32_t i = 1; i < n->nin && known; i++)
        if (rl_has(n->in[i]) && !joins) known = r->x->constant[n->in[i].i].kind == RL_TENSOR && !rl_val(r->x->g, n->in[i])->is_input;
    for (uint32_t i = 0; i < n->nout && known; i++) known = rl_has(n->out[i]);
    if (known && rl_step_fn(s) == rl_ref_pad) known = rl_pads_are_zeros(r->x, n);
    return known && found == (joins ? n->nin : 1);
}

static void take(region *r, rl_step *s) {
    const rl_nodeinfo *n = s->info;
    for (uint32_t i = 0; i < n->nin; i++)
        if (is_inside(r, n->in[i])) r->left[n->in[i].i]--, r->all--;
    for (uint32_t i = 0; i < n->nout; i++) enter(r, n->out[i]);
    r->ends[r->n] = n->nout == 1 && r->all == r->left[n->out[0].i];
    r->s[r->n++] = s;
}

/* All that only moves what `from` makes. */
static void grow(region *r, rl_step *from) {
    uint32_t open = r->of[from->info->out[0].i].n;
    r->n = r->all = 0;
    r->turn++;
    enter(r, from->info->out[0]);
    for (rl_step *s = from + 1; s < r->x->step + r->x->nstep && open && r->n < MOST; s++) {
        uint32_t found = s->info ? count_inside(r, s->info) : 0;
        open -= RL_MIN(found, open);
        if (!found || !fits(r, s, found)) continue;
        take(r, s);
        for (uint32_t k = 0; k < s->info->nout; k++) open += r->of[s->info->out[k].i].n;
    }
}

static bool is_constant(const rl_exec *x, rl_value v, uint32_t rank) {
    const rl_tensor *t = rl_has(v) ? &x->constant[v.i] : NULL;
    return t && t->kind == RL_TENSOR && t->dtype == RL_F32 && t->rank == rank && !rl_val(x->g, v)->is_input;
}

static bool has_weights(const rl_exec *x, const rl_nodeinfo *n) {
    return is_constant(x, rl_in(n, 1), 2);
}

/* ---- where rows go ---- */

/* Are the elements of t, which are places, whole rows of n in another order? */
static bool find_rows(const rl_exec *x, const rl_tensor *t, int64_t n, rl_scatter *to) {
    rl_tensor y = rl_contiguous(x->rt, t);
    bool turned = false, whole = true;
    uint32_t *at = rl_new(&x->g->mem, uint32_t, to->rows);
    memset(at, 0xff, (size_t)to->rows * sizeof *at);
    for (int64_t r = 0; whole && r < to->rows; r++) {
        int64_t from = rl_place_at(&y, r * n);
        whole = from >= 0 && from % n == 0;
        for (int64_t k = 1; whole && k < n; k++) whole = rl_place_at(&y, r * n + k) == from + k;
        whole = whole && at[from / n] == RL_NONE;
        if (!whole) break;
        turned = turned || from != r * n;
        at[from / n] = (uint32_t)r;
    }
    rl_tensor_drop(&y);
    to->at = at;
    return whole && turned;
}

/* Does somebody read v who copies what has no rows in order? */
static bool wants_rows(const rl_exec *x, rl_value v) {
    bool found = false;
    for (const rl_step *s = x->step; s < x->step + x->nstep && !found; s++)
        found = s->info && s->info->nin && rl_same(s->info->in[0], v) &&
                (rl_step_fn(s) == rl_fast_layer_norm || (rl_step_fn(s) == rl_fast_matmul && has_weights(x, s->info)));
    return found;
}

/* t: what the rows become, which is value v; false: a view of them that is read as it lies, or not their rows. */
static bool find_order(const rl_exec *x, rl_value v, const rl_tensor *t, int64_t n, rl_scatter *to) {
    rl_tensor view;
    to->perm = NULL;
    to->rank = t->rank;
    memcpy(to->dim, t->dim, t->rank * sizeof *t->dim);
    if (rl_numel(t) != to->rows * n || (rl_places_strides(x->rt, t, &view) && !wants_rows(x, v))) return false;
    if (find_rows(x, t, n, to)) return true;
    if (t->rank != 4) return false;
    to->perm = channels_last;
    view = rl_view_transpose(t, channels_last);
    return find_rows(x, &view, n, to);
}

/* ---- who makes rows ---- */

static const rl_kernel norm = {.types = RL_T(RL_F32), .fn = rl_fast_scattered_norm};
static const rl_kernel matmul = {.types = RL_T(RL_F32), .fn = rl_fast_scattered_matmul};
static const rl_kernel conv = {.types = RL_T(RL_F32), .fn = rl_fast_scattered_conv};

/* A step whose output is rows, one after the other. */
typedef struct {
    rl_step *step;
    const rl_kernel *kernel; /* which puts them elsewhere */
    const int64_t *perm;     /* of the output in memory; NULL: row-major */
    int64_t n;               /* of a row */
} maker;

/* A convolution that is a product of its pixels' channels with weights. */
static bool is_product(const rl_exec *x, const rl_step *s) {
    const rl_nodeinfo *n = s->info;
    const rl_tensor *k = is_constant(x, rl_in(n, 1), 4) ? &x->constant[n->in[1].i] : NULL;
    if (!k || k->dim[2] != 1 || k->dim[3] != 1 || rl_attr_int(n, "group", 1) != 1 || rl_val(x->g, n->in[0])->dtype != RL_F32) return false;
    if (rl_has(rl_in(n, 2)) && (!is_constant(x, n->in[2], 1) || x->constant[n->in[2].i].dim[0] != k->dim[0])) return false;
    for (uint32_t i = 0; s->fused && i < s->fused->npost; i++)
        if (rl_row_is_binary(s->fused->post[i].op)) return false;
    return rl_attr_all(n, "strides", 1) && rl_attr_all(n, "pads", 0);
}

/* How many numbers the dims of v from axis on have; 0: not known. */
static int64_t count_from(const rl_valinfo *v, int64_t axis) {
    int64_t n = axis >= 0;
    for (int64_t i = v->rank; n && i-- > axis;) n = rl_dim_known(v->dim[i]) ? rl_mul(n, v->dim[i]) : 0;
    return n;
}

/* False: it makes none. */
static bool makes_rows(const rl_exec *x, rl_step *s, maker *m) {
    const rl_nodeinfo *info = s->info;
    *m = (maker){.step = s};
    if (!info || s->native || !rl_has(info->out[0])) return false;
    for (uint32_t i = 1; i < info->nout; i++)
        if (rl_has(info->out[i])) return false;
    const rl_valinfo *v = rl_val(x->g, info->out[0]);
    rl_kernel_fn *fn = rl_step_fn(s);
    if (v->rank == RL_NORANK || !v->rank || v->is_output) return false;
    int64_t axis = rl_attr_int(info, "axis", -1);
    if (fn == rl_fast_layer_norm) m->kernel = &norm, m->n = count_from(v, axis < 0 ? axis + v->rank : axis);
    if (fn == rl_fast_matmul && has_weights(x, info)) m->kernel = &matmul, m->n = count_from(v, v->rank - 1);
    if (fn == rl_fast_conv && v->rank == 4 && is_product(x, s)) m->kernel = &conv, m->n = v->dim[1], m->perm = channels_last;
    return m->n >= SHORTEST;
}

/* ---- joining ---- */

static void join(region *r, const maker *m, uint32_t last, const rl_scatter *to) {
    rl_step *s = m->step;
    rl_nodeinfo *n = rl_copy(&r->x->g->mem, s->info, sizeof *n);
    n->out = r->s[last]->info->out;
    n->nout = 1;
    s->info = n;
    s->node = r->s[last]->node;
    s->scatter = rl_copy(&r->x->g->mem, to, sizeof *to);
    rl_run_by(r->x, s, m->kernel);
    for (uint32_t i = 0; i <= last; i++) r->s[i]->info = NULL;
}

static rl_status try_maker(region *r, const maker *m) {
    rl_tensor in, out[MOST];
    uint32_t count = r->n, last = RL_NONE;
    while (count && !r->ends[count - 1]) count--;
    if (!count || !rl_places_number(r->x, m->step->info->out[0], m->perm, &in)) return RL_OK;
    RL_TRY(rl_exec_chain(r->x, r->s, count, &in, out));
    rl_scatter to = {.n = m->n, .rows = rl_numel(&in) / m->n};
    for (uint32_t k = count; k-- > 0 && last == RL_NONE;)
        if (r->ends[k] && find_order(r->x, r->s[k]->info->out[0], &out[k], m->n, &to)) last = k;
    for (uint32_t i = 0; i < count; i++) rl_tensor_drop(&out[i]);
    rl_tensor_drop(&in);
    if (last != RL_NONE) join(r, m, last, &to);
    return RL_OK;
}

rl_status rl_join_scatters(rl_exec *x) {
    region r = {.x = x};
    maker m;
    rl_arena_init(&r.tmp, x->g->ctx);
    r.of = rl_find_readers(x, &r.tmp);
    r.inside = rl_new(&r.tmp, uint32_t, x->g->nval), r.left = rl_new(&r.tmp, uint32_t, x->g->nval);
    for (uint32_t i = 0; i < x->nstep; i++) {
        if (!makes_rows(x, &x->step[i], &m)) continue;
        grow(&r, m.step);
        RL_TRY(try_maker(&r, &m));
    }
    rl_drop_steps(x);
    rl_arena_free(&r.tmp);
    return RL_OK;
}

/* ---- in a run ---- */

rl_status rl_scatter_make(rl_call *c, int64_t rows, int64_t n, float **y) {
    const rl_scatter *to = c->step->scatter;
    if (to->rows != rows || to->n != n) return rl_call_fail(c, RL_EMODEL, "its input is not as the graph says");
    *y = rl_data(rl_call_make_in(c, 0, RL_F32, to->rank, to->dim, to->perm));
    return RL_OK;
}

rl_status rl_scatter_move(rl_call *c) {
    const rl_scatter *to = c->step->scatter;
    const rl_tensor *from = rl_call_temp(c, RL_F32, c->out[0].rank, c->out[0].dim);
    float *y = NULL;
    rl_tensor_move(c->rt, from, &c->out[0]);
    rl_tensor_drop(&c->out[0]);
    RL_TRY(rl_scatter_make(c, rl_numel(from) / to->n, to->n, &y));
    rl_rows_best()->copy_rows(y, to->n, to->at, rl_data(from), to->n, to->rows, to->n);
    return RL_OK;
}
