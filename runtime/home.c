/* Concat in place: see home.h. */
#include "home.h"

#include <string.h>

#include "fast_conv.h"
#include "fuse.h"
#include "kernels.h"
#include "kernels_fast.h"
#include "native.h"
#include "plan.h"

/* ---- which values have a home ---- */

typedef struct {
    rl_exec *x;
    rl_arena tmp;
    uint32_t *step_of; /* [value] the step that makes it, RL_NONE */
    uint32_t *nread;   /* [value] */
    bool *dense;       /* [value] who reads it wants no gaps */
    uint32_t *starts;  /* [value] the last Concat so far whose first input it is, RL_NONE */
    uint32_t *before;  /* [step] the Concat before it that begins with the same value */
    const rl_nodeinfo **was; /* [step] before its inputs changed */
} chooser;

/* Blocks of a piece are blocks of the whole. */
static bool whole_blocks(const rl_step *s) {
    for (uint32_t i = 0; i < s->info->nin; i++)
        if (!s->native->channels[i] || (i + 1 < s->info->nin && s->native->channels[i] % s->native->out.block)) return false;
    return true;
}

bool rl_is_concat(const rl_step *s) {
    rl_kernel_fn *fn = rl_step_fn(s);
    bool joins = fn == rl_ref_concat || (fn == rl_native_concat && s->native->out.block && whole_blocks(s));
    return joins && s->info->nin && s->info->nout == 1 && rl_has(s->info->out[0]);
}

bool rl_reads_gaps(rl_kernel_fn *fn) {
    return fn == rl_ref_concat || fn == rl_fast_chain || fn == rl_fast_unary || fn == rl_fast_binary || fn == rl_ref_slice || fn == rl_ref_split;
}

bool rl_only_reshapes(rl_kernel_fn *fn) {
    return fn == rl_ref_reshape || fn == rl_ref_transpose || fn == rl_ref_flatten || fn == rl_ref_squeeze || fn == rl_ref_unsqueeze ||
           fn == rl_ref_identity || fn == rl_fast_turns;
}

static void look(chooser *a) {
    const rl_graph *g = a->x->g;
    memset(a->step_of, 0xff, g->nval * sizeof *a->step_of);
    memset(a->starts, 0xff, g->nval * sizeof *a->starts);
    for (uint32_t i = 0; i < a->x->nstep; i++) {
        const rl_nodeinfo *n = a->x->step[i].info;
        for (uint32_t k = 0; k < n->nout; k++)
            if (rl_has(n->out[k])) a->step_of[n->out[k].i] = i;
        for (uint32_t k = 0; k < n->nin; k++) {
            if (!rl_has(n->in[k])) continue;
            a->nread[n->in[k].i]++;
            if (!rl_reads_gaps(rl_step_fn(&a->x->step[i])) && !rl_direct_takes_gaps(a->x, &a->x->step[i])) a->dense[n->in[k].i] = true;
        }
        for (uint32_t k = 0; k < n->ncap; k++) a->dense[n->cap[k].i] = true, a->nread[n->cap[k].i] += 2;
    }
}

static bool same_axis(const chooser *a, const rl_nodeinfo *n, const rl_nodeinfo *m) {
    uint32_t rank = rl_val(a->x->g, n->out[0])->rank;
    if (rank == RL_NORANK || rank != rl_val(a->x->g, m->out[0])->rank) return false;
    return rl_home_axis(a->x, n->out[0], rank) == rl_home_axis(a->x, m->out[0], rank);
}

/* Inputs that are an earlier Concat's: its output in their place. */
static void share_beginning(chooser *a, uint32_t i) {
    rl_step *s = &a->x->step[i];
    const rl_nodeinfo *n = s->info, *best = NULL;
    uint32_t first = n->in[0].i;
    for (uint32_t j = a->starts[first]; j != RL_NONE; j = a->before[j]) {
        const rl_nodeinfo *m = a->was[j];
        if (m->nin >= n->nin || (best && m->nin <= best->nin) || m->nin < 2 || !same_axis(a, n, m)) continue;
        if (rl_same_bytes(m->in, n->in, m->nin * sizeof *m->in)) best = m;
    }
    a->was[i] = n;
    a->before[i] = a->starts[first];
    a->starts[first] = i;
    if (!best) return;
    rl_nodeinfo *made = rl_copy(&a->x->g->mem, n, sizeof *n);
    uint32_t more = n->nin - best->nin;
    made->nin = 1 + more;
    made->in = rl_new(&a->x->g->mem, rl_value, made->nin);
    made->in[0] = best->out[0];
    memcpy(made->in + 1, n->in + best->nin, more * sizeof *n->in);
    for (uint32_t k = 0; k < best->nin; k++) a->nread[n->in[k].i]--;
    a->nread[best->out[0].i]++;
    s->info = made;
}

static void give_home(chooser *a, rl_value v, rl_value into, uint32_t slot, bool chunk) {
    rl_home *h = &a->x->home[v.i];
    const rl_valinfo *info = rl_val(a->x->g, v);
    if (rl_has(h->into) || info->is_output || !rl_dtype_bits(info->dtype) || rl_dtype_bits(info->dtype) % 8) return;
    *h = (rl_home){into, slot, !a->dense[v.i] && !chunk, chunk, h->rows};
}

/* Will what this step makes be a view, as far as one can tell? A device makes wide floats row-major, and what is Transposed of these is copied. */
static bool is_view(const chooser *a, uint32_t step) {
    const rl_step *s = &a->x->step[step];
    return !a->x->rt->device || rl_step_fn(s) != rl_ref_transpose || rl_dtype_bits(rl_val(a->x->g, s->info->out[0])->dtype) < 32;
}

/* The piece itself; where it is a view, and nobody reads what it is a view of but on the way to it, that too. */
static void choose_piece(chooser *a, rl_value v, rl_value into, uint32_t slot) {
    uint32_t s = a->step_of[v.i];
    if (s == RL_NONE) return;
    give_home(a, v, into, slot, false);
    if (!rl_only_reshapes(rl_step_fn(&a->x->step[s]))) return;
    while (s != RL_NONE && rl_only_reshapes(rl_step_fn(&a->x->step[s])) && a->nread[v.i] == 1) {
        if (rl_val(a->x->g, v)->is_output || !is_view(a, s)) return;
        v = a->x->step[s].info->in[0];
        s = a->step_of[v.i];
    }
    if (s == RL_NONE || a->nread[v.i] != 1 || rl_only_reshapes(rl_step_fn(&a->x->step[s]))) return;
    rl_kernel_fn *fn = rl_step_fn(&a->x->step[s]);
    if (fn != rl_ref_slice && fn != rl_ref_split && fn != rl_ref_expand && fn != rl_fast_shear) give_home(a, v, into, slot, true);
}

/* A Reshape that joins dims, alone, reads the Concat's output. */
static bool is_joined(const rl_exec *x, const rl_readers *of, rl_value v) {
    const rl_step *s = rl_only_reader(x, of, v, rl_ref_reshape), *turns = rl_only_reader(x, of, v, rl_fast_turns);
    uint32_t rank = rl_val(x->g, v)->rank;
    if (rank == RL_NORANK) return false;
    return turns ? rl_turns_join(turns->turns, rank) : s && rl_val(x->g, s->info->out[0])->rank < rank;
}

void rl_choose_homes(rl_exec *x) {
    chooser a = {.x = x};
    uint32_t nval = x->g->nval;
    rl_arena_init(&a.tmp, x->g->ctx);
    a.step_of = rl_new(&a.tmp, uint32_t, nval), a.nread = rl_new(&a.tmp, uint32_t, nval), a.dense = rl_new(&a.tmp, bool, nval);
    a.starts = rl_new(&a.tmp, uint32_t, nval), a.before = rl_new(&a.tmp, uint32_t, x->nstep + 1);
    a.was = rl_new(&a.tmp, const rl_nodeinfo *, x->nstep + 1);
    look(&a);
    const rl_readers *of = rl_find_readers(x, &a.tmp);
    for (uint32_t i = 0; i < x->nstep; i++) {
        if (!rl_is_concat(&x->step[i])) continue;
        if (!x->home) {
            x->home = rl_new(&x->g->mem, rl_home, nval);
            for (uint32_t v = 0; v < nval; v++) x->home[v].into = RL_NOVALUE;
            x->maker = rl_copy(&x->g->mem, a.step_of, nval * sizeof *a.step_of);
        }
        if (!x->step[i].native && rl_has(x->step[i].info->in[0])) share_beginning(&a, i);
    }
    for (uint32_t i = x->nstep; x->home && i-- > 0;) { /* the largest first: those that hold others come later */
        const rl_nodeinfo *n = x->step[i].info;
        if (!rl_is_concat(&x->step[i])) continue;
        x->home[n->out[0].i].rows = !x->step[i].native && is_joined(x, of, n->out[0]);
        for (uint32_t k = 0; k < n->nin; k++)
            if (rl_has(n->in[k])) choose_piece(&a, n->in[k], n->out[0], k);
    }
    rl_arena_free(&a.tmp);
}

uint32_t rl_home_axis(const rl_exec *x, rl_value v, uint32_t rank) {
    const rl_step *s = &x->step[x->maker[v.i]];
    int64_t axis = s->native ? 1 : rl_attr_int(s->info, "axis", 1), r = rank;
    return axis < -r || axis >= r ? RL_NONE : (uint32_t)(axis < 0 ? axis + r : axis);
}

/* Is the buffer of this Concat in another one's? */
static bool is_nested(const rl_exec *x, const rl_homes *h, rl_value y) {
    return rl_has(x->home[y.i].into) && (x->home[y.i].gaps || x->home[y.i].chunk) && h->from[y.i] >= 0;
}

rl_value rl_home_root(const rl_exec *x, const rl_homes *h, rl_value v) {
    for (v = x->home[v.i].into; is_nested(x, h, v);) v = x->home[v.i].into;
    return v;
}

bool rl_home_likely(const rl_exec *x, const rl_homes *h, rl_kernel_fn *fn, rl_value v) {
    const rl_home *home = &x->home[v.i];
    if (!rl_has(home->into) || h->from[v.i] < 0) return false;
    if (home->gaps && (fn == rl_ref_concat || fn == rl_fast_chain || fn == rl_fast_unary || fn == rl_fast_binary)) return true;
    if (home->gaps && rl_direct_takes_gaps(x, &x->step[x->maker[v.i]])) return true;
    const rl_tensor *y = h->dims[home->into.i];
    uint32_t axis = rl_home_axis(x, home->into, y->rank);
    bool last = !home->chunk && (fn == rl_fast_conv || fn == rl_fast_conv_transpose || fn == rl_fast_pool || fn == rl_fast_padded_pool);
    for (uint32_t i = 0; i < y->rank; i++) /* what stands outside of the axis in memory */
        if (y->dim[i] != 1 && i != axis && (last && axis == 1 ? true : i < axis && !(last && i == 1))) return false;
    return true;
}

/* ---- in a run ---- */

enum { DEVICE_ALIGNS = 16 /* bytes */ };

static rl_tensor laid_out(const rl_tensor *dims, const int64_t *perm) {
    rl_tensor t = *dims;
    int64_t step = 1;
    for (uint32_t i = t.rank; i-- > 0;) {
        uint32_t d = perm ? (uint32_t)perm[i] : i;
        t.stride[d] = step;
        step *= RL_MAX(t.dim[d], 1);
    }
    return t;
}

static rl_tensor slice_of(const rl_exec *x, const rl_tensor *whole, rl_value v, int64_t count) {
    uint32_t axis = rl_home_axis(x, x->home[v.i].into, whole->rank);
    return rl_view_slice(whole, axis, x->plan->homes.from[v.i], 1, count);
}

/* Do rows lie in this order, each without gaps? */
static bool lies_in_order(const rl_tensor *t, const int64_t *perm, bool gaps) {
    int64_t step = 1;
    for (uint32_t i = t->rank; i-- > 0;) {
        uint32_t d = perm ? (uint32_t)perm[i] : i;
        if (t->dim[d] == 1) continue;
        if (step == 1 || !gaps ? t->stride[d] != step : t->stride[d] < step) return false;
        step = t->stride[d] * t->dim[d];
    }
    return true;
}

/* The part of a buffer that is to have the bytes of v, in this order, one after the other; false: they would have gaps. */
static bool chunk_of(const rl_exec *x, const rl_tensor *whole, rl_value v, const rl_tensor *dims, const int64_t *perm, rl_tensor *out) {
    uint32_t axis = rl_home_axis(x, x->home[v.i].into, whole->rank);
    int64_t all = rl_numel(whole), n = rl_numel(dims), each = all && whole->dim[axis] ? all / whole->dim[axis] : 0;
    if (!each || n % each || n / each > whole->dim[axis] - x->plan->homes.from[v.i]) return false;
    rl_tensor part = slice_of(x, whole, v, n / each);
    if (!lies_in_order(&part, NULL, false)) return false;
    *out = laid_out(dims, perm);
    out->offset = part.offset, out->mem = part.mem;
    return true;
}

static bool is_row_major(const int64_t *perm, uint32_t rank) {
    for (uint32_t i = 0; perm && i < rank; i++)
        if (perm[i] != i) return false;
    return true;
}

static bool whole_of(const rl_call *c, rl_value y, rl_dtype t, const int64_t *perm, bool make, rl_tensor *out);

/* The buffer of a Concat's output in another one's, as far as that is made; false: it is not to be there. */
static bool nested_in(const rl_call *c, rl_value y, rl_dtype t, const int64_t *perm, bool make, rl_tensor *out) {
    const rl_exec *x = c->frame->x;
    const rl_home *h = &x->home[y.i];
    const rl_tensor *dims = x->plan->homes.dims[y.i];
    rl_tensor up;
    if (!is_nested(x, &x->plan->homes, y) || (h->chunk && !is_row_major(perm, dims->rank))) return false;
    if (!whole_of(c, h->into, t, h->chunk ? NULL : perm, make, &up)) return false;
    if (h->chunk) return chunk_of(x, &up, y, dims, NULL, out);
    *out = slice_of(x, &up, y, dims->dim[rl_home_axis(x, h->into, dims->rank)]);
    return true;
}

/* The buffer of a Concat's output; made in this order where there is none and `make`, else only described. False: it cannot be had. */
static bool whole_of(const rl_call *c, rl_value y, rl_dtype t, const int64_t *perm, bool make, rl_tensor *out) {
    const rl_exec *x = c->frame->x;
    rl_tensor *have = &c->frame->home[y.i], in;
    const rl_tensor *dims = x->plan->homes.dims[y.i];
    if (have->mem) {
        *out = *have;
        return have->dtype == t;
    }
    if (!dims || dims->dtype != t || (x->place && x->place[y.i].kind != RL_ABSENT)) return false;
    *out = laid_out(dims, perm);
    bool nested = nested_in(c, y, t, perm, false, &in) && (!make || nested_in(c, y, t, perm, true, &in));
    if (nested) *out = in;
    if (!make) return true;
    *have = nested ? rl_tensor_keep(out) : rl_call_make_value(c, y, t, dims->rank, dims->dim, perm);
    *out = *have;
    return true;
}

/* The piece as the kernel wants it, in *out; w: the buffer. */
static bool fit(const rl_call *c, rl_value v, const rl_tensor *w, uint32_t rank, const int64_t *dim, const int64_t *perm, rl_tensor *out) {
    const rl_exec *x = c->frame->x;
    const rl_home *h = &x->home[v.i];
    const rl_tensor *dims = x->plan->homes.dims[v.i];
    rl_tensor made = {.kind = RL_TENSOR, .dtype = w->dtype, .rank = rank};
    memcpy(made.dim, dim, rank * sizeof *dim);
    if (h->chunk) return chunk_of(x, w, v, &made, perm, out);
    uint32_t axis = rl_home_axis(x, h->into, w->rank);
    if (dims->rank != w->rank || rank != w->rank) return false;
    *out = slice_of(x, w, v, dim[axis]);
    return rl_same_bytes(out->dim, dim, rank * sizeof *dim) && dims->dim[axis] == dim[axis] && lies_in_order(out, perm, c->gaps && h->gaps);
}

/* Images of one channel each, which lie alike channels-last and row-major, and together as convolutions read a few channels: a buffer that has them
 * side by side would leave gaps within their rows. */
static bool is_plane(const rl_call *c, rl_value into, uint32_t rank, const int64_t *dim, const int64_t *perm) {
    const rl_exec *x = c->frame->x;
    const rl_tensor *whole = x->plan->homes.dims[into.i];
    uint32_t axis = whole ? rl_home_axis(x, into, whole->rank) : RL_NONE;
    int64_t before = -1;
    if (axis == RL_NONE || whole->rank != rank || whole->dim[axis] > RL_FEW_CHANNELS || whole->dim[axis] != x->step[x->maker[into.i]].info->nin) return false;
    for (uint32_t i = 0; perm && i < rank; i++) {
        if (dim[perm[i]] == 1) continue;
        if (perm[i] < before) return false;
        before = perm[i];
    }
    return true;
}

/* Is output i to be made in the buffer of a Concat? */
static bool has_home(const rl_call *c, uint32_t i) {
    const rl_exec *x = c->frame->x;
    if (c->frame->up || !x->home || x->probe || !x->plan || !x->plan->homes.from || !rl_call_wants(c, i)) return false;
    rl_value v = c->node->out[i];
    return rl_has(x->home[v.i].into) && x->plan->homes.from[v.i] >= 0;
}

void rl_home_order(const rl_call *c, uint32_t rank, int64_t *perm) {
    if (!rank || perm[rank - 1] != rank - 1 || !has_home(c, 0)) return;
    rl_value into = c->frame->x->home[c->node->out[0].i].into;
    const rl_tensor *have = &c->frame->home[into.i];
    if (!c->frame->x->home[into.i].rows || (have->mem && !lies_in_order(have, NULL, false))) return;
    for (uint32_t i = 0; i < rank; i++) perm[i] = i;
}

bool rl_home_take(const rl_call *c, uint32_t i, rl_dtype t, uint32_t rank, const int64_t *dim, const int64_t *perm, rl_tensor *out) {
    const rl_exec *x = c->frame->x;
    rl_tensor w;
    if (!has_home(c, i)) return false;
    rl_value v = c->node->out[i];
    const rl_home *h = &x->home[v.i];
    const int64_t *order = h->chunk || is_plane(c, h->into, rank, dim, perm) ? NULL : perm;
    if (!whole_of(c, h->into, t, order, false, &w) || !fit(c, v, &w, rank, dim, perm, out)) return false;
    for (uint32_t k = 0; w.mem && rl_only_reshapes(rl_step_fn(c->step)) && k < c->nin; k++) /* a copy of what was written there, to be a view of it */
        if (rl_call_in(c, k) && rl_call_in(c, k)->mem == w.mem) return false;
    if (c->rt->device && out->offset * (rl_elem_bits(t) / 8) % DEVICE_ALIGNS) return false;
    if (!whole_of(c, h->into, t, order, true, &w) || !fit(c, v, &w, rank, dim, perm, out)) return false;
    rl_tensor_keep(out);
    return true;
}

rl_value rl_home_found(const rl_call *c, const rl_homes *h, uint32_t i) {
    const rl_exec *x = c->frame->x;
    rl_value v = c->node->out[i], found = RL_NOVALUE;
    if (!h->from || h->from[v.i] < 0) return found;
    for (bool more = true; more && rl_has(x->home[v.i].into);) {
        v = x->home[v.i].into;
        if (c->frame->home[v.i].mem == c->out[i].mem) found = v;
        more = is_nested(x, h, v);
    }
    return found;
}

bool rl_home_holds(const rl_tensor *part, const rl_tensor *piece) {
    if (part->mem != piece->mem || part->offset != piece->offset || part->rank != piece->rank) return false;
    for (uint32_t i = 0; i < piece->rank; i++)
        if (part->dim[i] != piece->dim[i] || (piece->dim[i] != 1 && part->stride[i] != piece->stride[i])) return false;
    return true;
}

const rl_tensor *rl_home_apart(rl_call *c, const rl_tensor *part, const rl_tensor *piece) {
    if (part->mem != piece->mem) return piece;
    rl_tensor *copy = rl_call_temp(c, piece->dtype, piece->rank, piece->dim);
    rl_tensor_move(c->rt, copy, piece);
    return copy;
}

bool rl_home_give(rl_call *c, rl_dtype t, uint32_t rank, const int64_t *dim) {
    rl_tensor *have = c->frame->home && !c->frame->up && rl_call_wants(c, 0) ? &c->frame->home[c->node->out[0].i] : NULL;
    if (!have || !have->mem) return false;
    if (have->dtype != t || have->rank != rank || !rl_same_bytes(have->dim, dim, rank * sizeof *dim)) {
        rl_tensor_drop(have);
        return false;
    }
    rl_call_give(c, 0, *have);
    *have = (rl_tensor){0};
    return true;
}
