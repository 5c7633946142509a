/* The forms that movement can take, found from its map: see movement.h.
 *
 * Each finder reads from the map what its node would have to say, and is believed only when the map of that node is the same one. */
#include "movement.h"

#include <string.h>

#include "../src/permute.h"
#include "../src/stats.h"

bool rl_form_shape_of(const rl_graph *g, rl_value v, rl_shape *s) {
    const rl_valinfo *x = rl_val(g, v);
    if (x->rank == RL_NORANK || x->rank > RL_FORM_RANK) return false;
    s->rank = x->rank;
    for (uint32_t i = 0; i < x->rank; i++) s->dim[i] = x->dim[i];
    return true;
}

bool rl_form_same_shape(const rl_shape *a, const rl_shape *b) {
    return a->rank == b->rank && rl_same_bytes(a->dim, b->dim, a->rank * sizeof *a->dim);
}

/* Can a Reshape to these dims be written with constants: symbols all copied from the same place of the input, or one inferred (which
 * nothing can be beside another that is 0 in a run)? */
bool rl_form_reshape_target(const rl_shape *from, const rl_shape *to, int64_t *out) {
    uint32_t open = 0, copied = 0;
    for (uint32_t i = 0; i < to->rank; i++) {
        out[i] = to->dim[i];
        if (to->dim[i] == 0) return false; /* means "copy" to a Reshape */
        if (rl_dim_known(to->dim[i])) continue;
        bool copy = i < from->rank && from->dim[i] == to->dim[i];
        open += !copy;
        copied += copy;
        out[i] = copy ? 0 : -1;
    }
    return open == 0 || (open == 1 && copied == 0);
}

static bool needs_reshape(const rl_shape *from, const rl_shape *to, rl_movecost *c, bool *possible) {
    int64_t t[RL_FORM_RANK];
    if (rl_form_same_shape(from, to)) return false;
    c->nodes++;
    *possible = *possible && rl_form_reshape_target(from, to, t);
    return true;
}

static int64_t bytes_of(const rl_moved *v, const rl_shape *s) {
    return rl_stats_size(rl_val(v->g, v->x)->dtype, rl_stats_count(v->g->ctx, s->dim, s->rank));
}

/* A graph output, or read by a body: it cannot become another value. */
bool rl_form_keeps_name(const rl_graph *g, rl_value y) {
    const rl_valinfo *v = rl_val(g, y);
    bool captured = false;
    for (uint32_t i = 0; i < v->nuse; i++) captured |= v->use[i].slot >= rl_nod(g, v->use[i].node)->nin;
    return captured || v->is_output;
}

bool rl_form_priced(const rl_moved *v, rl_form *f) {
    rl_shape x, y;
    bool possible = rl_form_shape_of(v->g, v->x, &x) && rl_form_shape_of(v->g, v->y, &y);
    if (!possible) return false;
    f->cost = (rl_movecost){0};
    if (f->kind == RL_FORM_NOTHING) {
        if (!needs_reshape(&x, &y, &f->cost, &possible)) f->cost.nodes = rl_form_keeps_name(v->g, v->y);
        return possible;
    }
    needs_reshape(&x, &f->before, &f->cost, &possible);
    needs_reshape(&f->after, &y, &f->cost, &possible);
    f->cost.nodes++;
    f->cost.bytes = bytes_of(v, &f->after);
    f->cost.transposes = f->kind == RL_FORM_TRANSPOSE;
    f->cost.turned = f->kind == RL_FORM_TRANSPOSE ? f->cost.bytes : 0;
    f->cost.depth_space = f->kind == RL_FORM_DEPTH_TO_SPACE || f->kind == RL_FORM_SPACE_TO_DEPTH;
    f->cost.others = f->kind == RL_FORM_SLICE || f->kind == RL_FORM_RESIZE || f->kind == RL_FORM_GATHER;
    if (f->kind == RL_FORM_GATHER) f->cost.index = (int64_t)f->nindex * 8;
    return possible;
}

static bool cheaper(const rl_form *a, const rl_form *b) {
    return a->cost.nodes != b->cost.nodes ? a->cost.nodes < b->cost.nodes : rl_add(a->cost.bytes, a->cost.index) < rl_add(b->cost.bytes, b->cost.index);
}

/* Of x. */
static rl_dim elements(const rl_moved *v) {
    const rl_valinfo *x = rl_val(v->g, v->x);
    return rl_dim_prod(v->maps->ctx, x->dim, x->rank);
}

static void strides_of(rl_ctx *ctx, const rl_shape *s, rl_dim *stride) {
    rl_dim n = 1;
    for (uint32_t i = s->rank; i-- > 0; n = rl_dim_mul(ctx, n, s->dim[i])) stride[i] = n;
}

/* ---- Slice ---- */

/* Where the map begins, dim by dim. */
static bool place_start(rl_ctx *ctx, const rl_map *m, const rl_shape *s, const rl_dim *stride, rl_dim *start) {
    rl_dim rest = m->offset;
    for (uint32_t i = 0; i < s->rank; i++) rl_dim_split(ctx, rest, stride[i], &start[i], &rest);
    return rest == 0;
}

/* Elements and steps per dim, from the innermost digit and dim outwards. */
static bool find_box(rl_ctx *ctx, const rl_map *m, const rl_shape *s, const rl_dim *stride, rl_dim *count, int64_t *step) {
    uint32_t k = m->n;
    rl_mapdigit d = {0};
    bool have = false;
    for (uint32_t i = s->rank; i-- > 0;) {
        rl_dim q, outer;
        if (!have && k > 0) d = m->digit[--k], have = true;
        count[i] = step[i] = 1;
        if (!have || s->dim[i] == 1) continue;
        if (d.tab || d.scale == 0) return false;
        bool here = rl_dim_div(ctx, d.scale, stride[i], &q) && rl_dim_known(q);
        if (here && i > 0) here = q != s->dim[i] && !(rl_dim_known(s->dim[i]) && q >= s->dim[i]);
        if (!here) continue;
        step[i] = d.sign * q;
        if (q == 1 && d.size != s->dim[i] && rl_dim_div(ctx, d.size, s->dim[i], &outer) && i > 0) {
            count[i] = s->dim[i];
            d.size = outer;
            d.scale = rl_dim_mul(ctx, d.scale, s->dim[i]);
        } else {
            count[i] = d.size;
            have = false;
        }
    }
    return !have && k == 0;
}

/* The numbers that a Slice node has for one dim; false where they are none of it. */
static bool slice_bounds(rl_ctx *ctx, rl_dim dim, rl_dim start, rl_dim count, int64_t step, int64_t *from, int64_t *to) {
    if (rl_dim_known(start) && rl_dim_known(count)) {
        int64_t last = start + (count - 1) * step, most = RL_MAX(start, last);
        *from = start;
        *to = last + (step > 0 ? 1 : -1);
        if (*to < 0) *to = INT64_MIN;
        return last >= 0 && rl_dim_not_less(ctx, dim, most + 1);
    }
    *from = step > 0 ? 0 : -1;
    *to = step > 0 ? INT64_MAX : INT64_MIN;
    return count == dim && (step == 1 ? start == 0 : step == -1 && start == rl_dim_sub(ctx, dim, 1));
}

static bool find_slice_of(const rl_moved *v, const rl_shape *s, rl_form *f) {
    rl_dim stride[RL_FORM_RANK], start[RL_FORM_RANK];
    rl_map same;
    *f = (rl_form){.kind = RL_FORM_SLICE, .before = *s, .after = *s};
    strides_of(v->maps->ctx, s, stride);
    if (!place_start(v->maps->ctx, &v->map, s, stride, start)) return false;
    if (!find_box(v->maps->ctx, &v->map, s, stride, f->after.dim, f->step)) return false;
    for (uint32_t i = 0; i < s->rank; i++)
        if (!slice_bounds(v->maps->ctx, s->dim[i], start[i], f->after.dim[i], f->step[i], &f->a[i], &f->b[i])) return false;
    for (uint32_t i = 0; i < s->rank; i++)
        if (f->step[i] != 1 && rl_opset_of(v->g, rl_internz(v->g->ctx, "")) < 10) return false;
    if (!rl_map_slice(v->maps, s->rank, s->dim, start, f->after.dim, f->step, &same)) return false;
    return rl_map_equal(v->maps, &same, &v->map) && rl_form_priced(v, f);
}

/* ---- Gather ---- */

static rl_dim product(rl_ctx *ctx, const rl_shape *s, uint32_t from, uint32_t to) {
    return rl_dim_prod(ctx, s->dim + from, to - from);
}

/* The places that digits [from, to) read, in steps of `inner`. */
static bool list_index(rl_maps *maps, const rl_map *m, uint32_t from, uint32_t to, rl_dim inner, rl_dim size, const int64_t **out, uint32_t *nout) {
    rl_mapdigit d[RL_MAP_MAXDIGIT];
    int64_t n = 1;
    rl_map mid = {.n = to - from, .digit = d};
    for (uint32_t k = from; k < to; k++) {
        d[k - from] = m->digit[k];
        if (!rl_dim_known(m->digit[k].size) || __builtin_mul_overflow(n, m->digit[k].size, &n) || n > (1 << 17)) return false;
        if (!rl_dim_div(maps->ctx, m->digit[k].scale, inner, &d[k - from].scale)) return false;
        if (!rl_dim_known(d[k - from].scale)) return false;
    }
    if (!rl_dim_div(maps->ctx, m->offset, inner, &mid.offset) || !rl_dim_known(mid.offset)) return false;
    if (n == 0) return false;
    int64_t *index = rl_new(maps->mem, int64_t, n);
    rl_map_list(&mid, index);
    for (int64_t i = 0; i < n; i++)
        if (index[i] < 0 || index[i] >= size) return false;
    *out = index;
    *nout = (uint32_t)n;
    return true;
}

bool rl_form_index(rl_maps *m, const rl_map *map, const rl_shape *s, uint32_t axis, const int64_t **index, uint32_t *n) {
    rl_ctx *ctx = m->ctx;
    rl_dim size = s->dim[axis], outer = product(ctx, s, 0, axis), inner = product(ctx, s, axis + 1, s->rank), k;
    rl_map low, cut, same;
    uint32_t mid, below;
    if (!rl_dim_known(size) || size < 2 || outer == 0 || inner == 0) return false;
    if (!rl_map_cut(m, map, inner, &low, &below)) return false;
    if (!rl_dim_div(ctx, rl_map_count(m, map), rl_dim_mul(ctx, outer, inner), &k) || !rl_dim_known(k)) return false;
    if (!rl_map_cut(m, &low, rl_dim_mul(ctx, k, inner), &cut, &mid)) return false;
    below += cut.n - low.n;
    if (!list_index(m, &cut, mid, below, inner, size, index, n)) return false;
    return rl_map_gather(m, s->rank, s->dim, axis, *n, *index, &same) && rl_map_equal(m, &same, map);
}

/* Index dims that make y's own dims, so that no Reshape has to follow. */
static void shape_index(const rl_moved *v, rl_form *f) {
    rl_shape y;
    uint32_t tail = f->before.rank - f->axis - 1, mid;
    f->indexdim = (rl_shape){.rank = 1, .dim = {f->nindex}};
    if (rl_form_shape_of(v->g, v->y, &y) && y.rank >= f->axis + tail) {
        bool same = true;
        mid = y.rank - f->axis - tail;
        for (uint32_t i = 0; i < f->axis; i++) same &= y.dim[i] == f->before.dim[i];
        for (uint32_t i = 0; i < tail; i++) same &= y.dim[f->axis + mid + i] == f->before.dim[f->axis + 1 + i];
        if (same && product(v->maps->ctx, &y, f->axis, f->axis + mid) == (rl_dim)f->nindex) {
            f->indexdim.rank = mid;
            memcpy(f->indexdim.dim, y.dim + f->axis, mid * sizeof *y.dim);
            f->after = y;
            return;
        }
    }
    f->after = f->before;
    f->after.dim[f->axis] = f->nindex;
}

static bool find_gather_along(const rl_moved *v, const rl_shape *s, uint32_t axis, rl_form *f) {
    *f = (rl_form){.kind = RL_FORM_GATHER, .before = *s, .axis = axis};
    if (!rl_form_index(v->maps, &v->map, s, axis, &f->index, &f->nindex)) return false;
    shape_index(v, f);
    return rl_form_priced(v, f);
}

static bool is_list_of_sizes(const rl_moved *v) {
    enum { SIZES = 64 };
    rl_dtype t = rl_val(v->g, v->x)->dtype;
    rl_dim n = rl_map_count(v->maps, &v->map);
    return (t == RL_I64 || t == RL_I32) && rl_dim_known(n) && n <= SIZES;
}

/* An index_select copies runs of at least 64 bytes, or stands for all that there is: for an index_select among it with any runs, for a
 * Transpose with runs above 8 bytes (one of up to 8 is an element to Transposes, which move 3 to 20 times as many of these in the same
 * time as a Gather; past that they have no kernel of their own), for several moves of a list of sizes with any, since what nodes take
 * to start is all that those take. A view of x is made for it only where it stands for several moves. */
static bool worth_gathering(const rl_moved *v, const rl_form *f) {
    rl_shape run = {.rank = f->before.rank - f->axis - 1};
    memcpy(run.dim, f->before.dim + f->axis + 1, run.rank * sizeof *run.dim);
    int64_t moves = v->old.transposes + v->old.others + v->old.depth_space;
    if (rl_val(v->g, v->x)->dtype == RL_STRING) return false; /* onnxruntime copies one string of each run */
    int64_t bytes = bytes_of(v, &run);
    if (bytes < 64) return f->cost.nodes == 1 && (v->old.gathers > 0 || (v->old.transposes > 0 && bytes > 8) || (moves > 1 && is_list_of_sizes(v)));
    rl_shape x, y;
    if (!rl_form_shape_of(v->g, v->x, &x) || !rl_form_shape_of(v->g, v->y, &y)) return false;
    return moves > 1 || rl_form_same_shape(&x, &f->before) || (f->indexdim.rank == 1 && rl_form_same_shape(&y, &f->after));
}

/* Could an index along this dim be short enough for what it saves (movement.c: is_allowed)?  Asked before it is listed. */
static bool may_pay(const rl_moved *v, const rl_shape *s, uint32_t axis) {
    rl_dim k, rest = rl_dim_mul(v->maps->ctx, product(v->maps->ctx, s, 0, axis), product(v->maps->ctx, s, axis + 1, s->rank));
    rl_shape whole = {.rank = 1, .dim = {rl_map_count(v->maps, &v->map)}};
    int64_t bytes = bytes_of(v, &whole);
    if (!rl_dim_div(v->maps->ctx, whole.dim[0], rest, &k) || !rl_dim_known(k)) return false;
    return k <= bytes / 64 || rl_add(bytes, rl_mul(8, k)) <= v->old.bytes;
}

static bool find_gather(const rl_moved *v, rl_form *best) {
    bool found = false;
    rl_shape flat[RL_CONE_MAX + 3];
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->nview; i++) flat[n++] = v->view[i];
    rl_shape y;
    if (v->nview && rl_form_shape_of(v->g, v->y, &y) && y.rank > 0 && rl_map_count(v->maps, &v->map) == elements(v))
        flat[n++] = y;
    for (uint32_t i = 0; v->nview && i < 2; i++) { /* rows of x, or of y: all dims but the last */
        const rl_shape *of = i ? &y : &flat[0];
        if (i && !rl_form_shape_of(v->g, v->y, &y)) continue;
        rl_dim last = of->rank ? of->dim[of->rank - 1] : 0, rows;
        if (last != 0 && rl_dim_div(v->maps->ctx, elements(v), last, &rows)) flat[n++] = (rl_shape){.rank = 2, .dim = {rows, last}};
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t axis = 0; axis < flat[i].rank; axis++) {
            rl_form f;
            if (!may_pay(v, &flat[i], axis) || !find_gather_along(v, &flat[i], axis, &f) || !worth_gathering(v, &f)) continue;
            if (!found || cheaper(&f, best)) *best = f;
            found = true;
        }
    return found;
}

/* ---- Transpose ---- */

/* The dims of s that digit d walks: from *k on, outermost first; false when its ends are none of s's. */
static bool walk_dims(rl_ctx *ctx, const rl_mapdigit *d, const rl_shape *s, const rl_dim *stride, uint32_t *perm, uint32_t *n) {
    rl_dim below = d->scale, left = d->size, q;
    uint32_t lo = s->rank, first = *n;
    while (lo > 0 && !(s->dim[lo - 1] != 1 && stride[lo - 1] == below)) lo--;
    if (lo == 0) return false;
    for (uint32_t i = lo; i-- > 0 && left != 1;) {
        if (s->dim[i] == 1) continue;
        if (!rl_dim_div(ctx, left, s->dim[i], &q) || *n == RL_FORM_RANK) return false;
        memmove(perm + first + 1, perm + first, (*n - first) * sizeof *perm);
        perm[first] = i;
        ++*n;
        left = q;
    }
    return left == 1;
}

/* Dims of 1 go where y has them, if that makes y's dims; else where they are least in the way. */
static void place_ones(const rl_moved *v, const rl_shape *s, const uint32_t *moved, uint32_t n, rl_form *f) {
    rl_shape y;
    uint32_t ones[RL_FORM_RANK], none = 0, at = 0, k = 0, perm[RL_FORM_RANK];
    bool one[RL_FORM_RANK];
    for (uint32_t i = 0; i < s->rank; i++)
        if ((one[i] = s->dim[i] == 1)) ones[none++] = i;
    bool fits = rl_form_shape_of(v->g, v->y, &y) && y.rank == s->rank;
    for (uint32_t i = 0; fits && i < y.rank; i++) {
        if (y.dim[i] == 1 && at < none) perm[i] = ones[at++];
        else if (k < n && s->dim[moved[k]] == y.dim[i]) perm[i] = moved[k++];
        else fits = false;
    }
    if (!fits) rl_permute_ones(s->rank, one, moved, perm);
    f->after.rank = s->rank;
    for (uint32_t i = 0; i < s->rank; i++) {
        f->a[i] = perm[i];
        f->after.dim[i] = s->dim[perm[i]];
    }
}

static bool find_transpose_of(const rl_moved *v, const rl_shape *s, rl_form *f) {
    rl_dim stride[RL_FORM_RANK];
    uint32_t moved[RL_FORM_RANK], n = 0, real = 0;
    rl_map same;
    strides_of(v->maps->ctx, s, stride);
    for (uint32_t i = 0; i < s->rank; i++) real += s->dim[i] != 1;
    for (uint32_t i = 0; i < v->map.n; i++)
        if (!walk_dims(v->maps->ctx, &v->map.digit[i], s, stride, moved, &n)) return false;
    if (n != real) return false;
    *f = (rl_form){.kind = RL_FORM_TRANSPOSE, .before = *s};
    place_ones(v, s, moved, n, f);
    return rl_map_transpose(v->maps, s->rank, s->dim, f->a, &same) && rl_map_equal(v->maps, &same, &v->map) && rl_form_priced(v, f);
}

/* x's dims merged as far as the map lets them be: its digits by scale. */
static bool merged_shape(const rl_moved *v, rl_shape *s) {
    const rl_map *m = &v->map;
    rl_dim below = 1;
    if (m->fill || m->offset != 0 || m->n > RL_FORM_RANK) return false;
    *s = (rl_shape){.rank = m->n};
    for (uint32_t k = m->n; k-- > 0;) {
        uint32_t i = 0;
        while (i < m->n && (m->digit[i].tab || m->digit[i].sign < 0 || m->digit[i].scale != below)) i++;
        if (i == m->n) return false;
        s->dim[k] = m->digit[i].size;
        below = rl_dim_mul(v->maps->ctx, below, s->dim[k]);
    }
    return below == elements(v);
}

static bool find_transpose(const rl_moved *v, rl_form *best) {
    rl_shape s;
    if (!merged_shape(v, &s) || !find_transpose_of(v, &s, best)) {
        if (v->map.fill || v->map.offset != 0 || !merged_shape(v, &s)) return false;
        best->cost.nodes = INT64_MAX; /* the merged form cannot be written: another may */
    }
    for (uint32_t i = 0; i < v->nview; i++) {
        rl_form f;
        if (find_transpose_of(v, &v->view[i], &f) && cheaper(&f, best)) *best = f;
    }
    return best->cost.nodes != INT64_MAX;
}

/* ---- DepthToSpace, SpaceToDepth ---- */

/* Runtimes have them for floats. */
static bool has_kernel(rl_dtype t) {
    return t == RL_F32 || t == RL_F64;
}

/* The dims that the node makes of x's; false when the block does not fit. */
static bool depth_shape(rl_ctx *ctx, const rl_shape *x, bool to_space, int64_t b, rl_shape *y) {
    *y = *x;
    if (to_space) {
        y->dim[2] = rl_dim_mul(ctx, x->dim[2], b);
        y->dim[3] = rl_dim_mul(ctx, x->dim[3], b);
        return rl_dim_div(ctx, x->dim[1], b * b, &y->dim[1]);
    }
    y->dim[1] = rl_dim_mul(ctx, x->dim[1], b * b);
    return rl_dim_div(ctx, x->dim[2], b, &y->dim[2]) && rl_dim_div(ctx, x->dim[3], b, &y->dim[3]);
}

static bool make_depth(const rl_moved *v, const rl_shape *x, bool to_space, int64_t block, bool crd, rl_map *out) {
    if (to_space) return rl_map_depth_to_space(v->maps, x->dim, block, crd, out);
    return rl_map_space_to_depth(v->maps, x->dim, block, crd, out);
}

static bool find_depth(const rl_moved *v, bool to_space, rl_form *f) {
    rl_shape x, y;
    rl_shape made_shape;
    rl_map same;
    rl_dim block, other;
    if (!rl_form_shape_of(v->g, v->x, &x) || !rl_form_shape_of(v->g, v->y, &y) || x.rank != 4 || y.rank != 4) return false;
    if (!has_kernel(rl_val(v->g, v->x)->dtype)) return false;
    const rl_shape *big = to_space ? &y : &x, *small = to_space ? &x : &y;
    if (!rl_dim_div(v->maps->ctx, big->dim[2], small->dim[2], &block)) return false;
    if (!rl_dim_div(v->maps->ctx, big->dim[3], small->dim[3], &other)) return false;
    if (block != other || !rl_dim_known(block) || block < 2 || block > 255) return false;
    if (!depth_shape(v->maps->ctx, &x, to_space, block, &made_shape) || !rl_form_same_shape(&made_shape, &y)) return false;
    int modes = rl_opset_of(v->g, rl_internz(v->g->ctx, "")) >= (to_space ? 11 : 28) ? 2 : 1;
    for (int crd = 0; crd < modes; crd++) {
        if (!make_depth(v, &x, to_space, block, crd, &same) || !rl_map_equal(v->maps, &same, &v->map)) continue;
        *f = (rl_form){.kind = to_space ? RL_FORM_DEPTH_TO_SPACE : RL_FORM_SPACE_TO_DEPTH, .before = x, .after = y, .a = {block, crd}};
        return rl_form_priced(v, f);
    }
    return false;
}

bool rl_form_permuted(const rl_moved *v, rl_formkind base, rl_form *f, uint32_t *axis, const int64_t **p, uint32_t *n) {
    rl_shape x, y;
    rl_moved rest = *v;
    rl_dim block;
    if (!rl_form_shape_of(v->g, v->x, &x) || !rl_form_shape_of(v->g, v->y, &y) || x.rank != y.rank) return false;
    if (rl_map_count(v->maps, &v->map) != elements(v)) return false;
    *f = (rl_form){.kind = base, .before = x, .after = y};
    if (base == RL_FORM_NOTHING) {
        if (!rl_form_same_shape(&x, &y)) return false;
    } else {
        rl_map made, back;
        if (x.rank != 4 || !has_kernel(rl_val(v->g, v->x)->dtype) || !rl_dim_div(v->maps->ctx, x.dim[2], y.dim[2], &block)) return false;
        if (!rl_dim_known(block) || block < 2 || block > 255 || !depth_shape(v->maps->ctx, &x, false, block, &f->after)) return false;
        if (!rl_form_same_shape(&f->after, &y) || !rl_map_space_to_depth(v->maps, x.dim, block, false, &made)) return false;
        if (!rl_map_invert(v->maps, &made, elements(v), &back) || !rl_map_compose(v->maps, &v->map, &back, &rest.map)) return false;
        f->a[0] = block;
    }
    if (!rl_form_priced(v, f)) return false;
    for (*axis = 0; *axis < y.rank; ++*axis) {
        rl_form g;
        if (rl_map_is_identity(&rest.map, elements(v)) || !find_gather_along(&rest, &y, *axis, &g)) continue;
        if ((rl_dim)g.nindex != y.dim[*axis] || !rl_is_permutation(g.index, g.nindex, v->maps->mem)) continue;
        *p = g.index;
        *n = g.nindex;
        return true;
    }
    return false;
}

bool rl_form_find(const rl_moved *v, rl_formkind kind, rl_form *f) {
    bool found = false;
    switch (kind) {
    case RL_FORM_NOTHING:
        *f = (rl_form){.kind = kind};
        return rl_map_is_identity(&v->map, elements(v)) && rl_form_priced(v, f);
    case RL_FORM_SLICE:
        for (uint32_t i = 0; i < v->nview; i++) {
            rl_form one;
            if (!find_slice_of(v, &v->view[i], &one)) continue;
            if (!found || cheaper(&one, f)) *f = one;
            found = true;
        }
        return found;
    case RL_FORM_RESIZE: return rl_form_resize(v, f);
    case RL_FORM_GATHER: return !v->map.fill && find_gather(v, f);
    case RL_FORM_TRANSPOSE: return find_transpose(v, f);
    case RL_FORM_DEPTH_TO_SPACE: return find_depth(v, true, f);
    default: return find_depth(v, false, f);
    }
}
