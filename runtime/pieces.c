/* Convolutions that read channels where they were made, through Concats, Splits, Slices and shuffles.
 *
 *   a, b = Split(x)                               ShuffleNetV2: half of the channels go on as they are
 *   z = Conv(Conv(b, depthwise))
 *   s = shuffle(Concat(a, z)), p, q = Split(s)    q = [a's upper channels, z's upper channels] in turn
 *   u = Conv(q, w)                  becomes       u = Conv([x's channels from .., z's channels from ..], w's input channels in that order)
 *
 * Of each value that only moves channels it is known where each of its channels was made.  A convolution by direct.h sums over some runs
 * of such channels, one after the other, and its weights are packed in their order.  A depthwise one makes its channels in the order of the
 * runs, if all that read them are convolutions that sum over them.  A step that moves goes where all that read it read past it; what cannot
 * be read so is moved as before.  Pieces of a Concat that are made where they are to stand (home.h) are left there. */
#include <string.h>

#include "direct.h"
#include "element.h"
#include "fast_conv.h"
#include "home.h"
#include "kernels_fast.h"

enum { MOST = 1 << 20 }; /* channels of a value */

/* Channel `at` of v. */
typedef struct { rl_value v; int64_t at; } channel;
typedef struct { uint32_t *p; uint32_t n, cap; } steps;

typedef struct {
    rl_exec *x;
    rl_arena tmp;
    uint32_t *maker;         /* [value] the step that makes it, RL_NONE */
    steps *reader;           /* [value] */
    bool *kept;              /* [value] a body or the caller reads it */
    channel **map;           /* [value] where its channels were made; NULL: there, or not known */
    bool *source;            /* [value] a map leads to it */
    bool *gone;              /* [step] it only moves, and all read past it */
    const rl_pieces **takes; /* [step] a convolution: what it can read; NULL: its input as it is */
} joiner;

static rl_kernel_fn *fn_of(const joiner *a, uint32_t step) {
    if (step == RL_NONE) return NULL;
    const rl_step *s = &a->x->step[step];
    return !s->native ? rl_step_fn(s) : NULL;
}

static void look(joiner *a) {
    const rl_graph *g = a->x->g;
    uint32_t nval = g->nval, nstep = a->x->nstep;
    a->maker = rl_new(&a->tmp, uint32_t, nval), a->reader = rl_new(&a->tmp, steps, nval), a->kept = rl_new(&a->tmp, bool, nval);
    a->map = rl_new(&a->tmp, channel *, nval), a->source = rl_new(&a->tmp, bool, nval);
    a->takes = rl_new(&a->tmp, const rl_pieces *, nstep);
    a->gone = rl_new(&a->tmp, bool, nstep);
    memset(a->maker, 0xff, nval * sizeof *a->maker);
    for (uint32_t v = 0; v < nval; v++) a->kept[v] = g->val[v].is_output;
    for (uint32_t i = 0; i < nstep; i++) {
        const rl_nodeinfo *n = a->x->step[i].info;
        for (uint32_t k = 0; k < n->nout; k++)
            if (rl_has(n->out[k])) a->maker[n->out[k].i] = i;
        for (uint32_t k = 0; k < n->nin; k++)
            if (rl_has(n->in[k])) rl_push(&a->tmp, a->reader[n->in[k].i], i);
        for (uint32_t k = 0; k < n->ncap; k++) a->kept[n->cap[k].i] = true;
    }
}

/* Of f32 values with two or three spatial dims, all known but perhaps the batch; 0: it is none. */
static int64_t channels_of(const joiner *a, rl_value v) {
    const rl_valinfo *x = rl_has(v) ? rl_val(a->x->g, v) : NULL;
    if (!x || x->dtype != RL_F32 || x->rank == RL_NORANK || x->rank < 4 || x->rank > 5) return 0;
    for (uint32_t i = 1; i < x->rank; i++)
        if (!rl_dim_known(x->dim[i]) || x->dim[i] < 1) return 0;
    return x->dim[1] <= MOST ? x->dim[1] : 0;
}

/* The same but for the channels. */
static bool same_pixels(const joiner *a, rl_value v, rl_value w) {
    const rl_valinfo *x = rl_val(a->x->g, v), *y = rl_val(a->x->g, w);
    if (!channels_of(a, v) || !channels_of(a, w) || x->rank != y->rank) return false;
    for (uint32_t i = 0; i < x->rank; i++)
        if (i != 1 && x->dim[i] != y->dim[i]) return false;
    return true;
}

/* ---- where channels were made ---- */

static channel made_at(joiner *a, rl_value v, int64_t i) {
    if (a->map[v.i]) return a->map[v.i][i];
    a->source[v.i] = true;
    return (channel){v, i};
}

/* y's channels are those of x from `from` on. */
static bool map_slice(joiner *a, rl_value y, rl_value x, int64_t from) {
    int64_t n = channels_of(a, y);
    if (!same_pixels(a, y, x) || from < 0 || from + n > channels_of(a, x)) return false;
    a->map[y.i] = rl_new(&a->tmp, channel, n);
    for (int64_t i = 0; i < n; i++) a->map[y.i][i] = made_at(a, x, from + i);
    return true;
}

static void map_split(joiner *a, const rl_nodeinfo *n) {
    int64_t axis = rl_attr_int(n, "axis", 0), from = 0;
    if (axis != 1 && axis != 1 - (int64_t)rl_val(a->x->g, n->in[0])->rank) return;
    for (uint32_t i = 0; i < n->nout && map_slice(a, n->out[i], n->in[0], from); i++) from += channels_of(a, n->out[i]);
}

static const int64_t *ints_of(const joiner *a, const rl_nodeinfo *n, uint32_t slot, int64_t count) {
    const rl_tensor *t = rl_has(rl_in(n, slot)) ? &a->x->constant[n->in[slot].i] : NULL;
    bool fits = t && t->kind == RL_TENSOR && t->dtype == RL_I64 && t->rank == 1 && rl_is_dense(t) && (count < 0 || t->dim[0] == count);
    return fits ? rl_data(t) : NULL;
}

/* Of channels alone, one after the other. */
static void map_cut(joiner *a, const rl_nodeinfo *n) {
    const int64_t *from = ints_of(a, n, 1, -1);
    int64_t count = from ? a->x->constant[n->in[1].i].dim[0] : 0, c = channels_of(a, n->in[0]);
    const int64_t *axes = ints_of(a, n, 3, count), *step = ints_of(a, n, 4, count);
    if (!from || !axes || !c || (rl_has(rl_in(n, 4)) && !step)) return;
    for (int64_t i = 0; i < count; i++) {
        if (step && step[i] != 1) return;
        if (axes[i] == 1 || axes[i] == 1 - (int64_t)rl_val(a->x->g, n->in[0])->rank) {
            map_slice(a, n->out[0], n->in[0], RL_MIN(from[i] < 0 ? RL_MAX(from[i] + c, (int64_t)0) : from[i], c));
            return;
        }
    }
}

/* The inputs' channels, one input after the other: also of a Concat whose pieces were stacked in a dim of their own (interleave.c). */
static channel *map_joined(joiner *a, const rl_nodeinfo *n, int64_t *count) {
    int64_t axis = rl_attr_int(n, "axis", 1), at = 0;
    *count = 0;
    for (uint32_t i = 0; i < n->nin; i++) {
        if (!rl_has(n->in[i]) || !same_pixels(a, n->in[i], n->in[0])) return NULL;
        *count += channels_of(a, n->in[i]);
    }
    if (axis != 1 && axis != 1 - (int64_t)rl_val(a->x->g, n->in[0])->rank) return NULL;
    channel *to = rl_new(&a->tmp, channel, *count);
    for (uint32_t i = 0; i < n->nin; i++)
        for (int64_t k = 0; k < channels_of(a, n->in[i]); k++) to[at++] = made_at(a, n->in[i], k);
    return to;
}

/* y = Reshape(Transpose(Reshape(x))) where x's channels are cut into dims that change places; or of an interleaved Concat. */
static void map_shuffle(joiner *a, rl_value y, rl_value t) {
    const rl_graph *g = a->x->g;
    if (!channels_of(a, y) || fn_of(a, a->maker[t.i]) != rl_ref_transpose) return;
    const rl_nodeinfo *turn = a->x->step[a->maker[t.i]].info;
    uint32_t made = a->maker[turn->in[0].i];
    rl_kernel_fn *fn = fn_of(a, made);
    const rl_attr *perm = rl_attr_ints(turn, "perm");
    const rl_valinfo *r = rl_val(g, turn->in[0]), *to = rl_val(g, y);
    if ((fn != rl_ref_reshape && fn != rl_fast_interleave) || !perm || r->rank == RL_NORANK) return;
    if (perm->n != r->rank || r->rank <= to->rank) return;
    const rl_nodeinfo *cut = a->x->step[made].info;
    uint32_t more = r->rank - to->rank; /* channels are dims 1 .. 1 + more */
    int64_t n = 1, *step = rl_new(&a->tmp, int64_t, r->rank);
    for (uint32_t i = 0; i < r->rank; i++) {
        bool channel_dim = i >= 1 && i <= 1 + more;
        uint32_t as = i ? i - more : 0;
        if (channel_dim ? !rl_dim_known(r->dim[i]) : perm->ints[i] != i || r->dim[i] != to->dim[as]) return;
    }
    for (uint32_t i = 1 + more; i >= 1; i--) step[i] = n, n *= r->dim[i];
    int64_t count;
    channel *from;
    if (fn == rl_fast_interleave) {
        if (r->dim[1] != cut->nin || !(from = map_joined(a, cut, &count)) || !same_pixels(a, cut->in[0], y)) return;
    } else {
        count = channels_of(a, cut->in[0]);
        if (!same_pixels(a, cut->in[0], y)) return;
        from = rl_new(&a->tmp, channel, count);
        for (int64_t i = 0; i < count; i++) from[i] = made_at(a, cut->in[0], i);
    }
    if (n != count || n != channels_of(a, y)) return;
    a->map[y.i] = rl_new(&a->tmp, channel, n);
    for (int64_t i = 0; i < n; i++) {
        int64_t left = i, at = 0;
        for (uint32_t d = 1 + more; d >= 1; d--) {
            int64_t size = r->dim[perm->ints[d]];
            at += left % size * step[perm->ints[d]];
            left /= size;
        }
        a->map[y.i][i] = from[at];
    }
}

/* Will it be made where the Concat wants it, as far as one can tell? */
static bool made_in_place(const joiner *a, rl_value v) {
    uint32_t s = a->maker[v.i];
    rl_kernel_fn *fn = fn_of(a, s);
    bool can = fn && !a->kept[v.i];
    for (uint32_t i = 0; can && i < a->reader[v.i].n; i++) {
        uint32_t r = a->reader[v.i].p[i];
        can = rl_reads_gaps(fn_of(a, r)) || rl_direct_takes_gaps(a->x, &a->x->step[r]);
    }
    bool rows = fn == rl_ref_concat || fn == rl_fast_chain || fn == rl_fast_unary || fn == rl_fast_binary;
    return can && (rows || rl_direct_takes_gaps(a->x, &a->x->step[s]));
}

/* A Concat of which nothing is moved. */
static bool is_placed(const joiner *a, const rl_nodeinfo *n) {
    bool placed = true;
    for (uint32_t i = 0; i < n->nin; i++) placed = placed && rl_has(n->in[i]) && made_in_place(a, n->in[i]);
    return placed;
}

static void map_step(joiner *a, uint32_t step) {
    const rl_nodeinfo *n = a->x->step[step].info;
    rl_kernel_fn *fn = fn_of(a, step);
    int64_t count;
    if (!n->nin || !n->nout || !rl_has(n->in[0]) || !rl_has(n->out[0])) return;
    if (fn == rl_ref_split) map_split(a, n);
    if (fn == rl_ref_slice) map_cut(a, n);
    if (fn == rl_ref_concat && channels_of(a, n->out[0]) && !is_placed(a, n)) a->map[n->out[0].i] = map_joined(a, n, &count);
    if (fn == rl_ref_reshape) map_shuffle(a, n->out[0], n->in[0]);
}

/* ---- what a convolution can read ---- */

/* rank: of its value, by first appearance; node: the channel of the node's input. */
typedef struct { channel c; int64_t rank, node; } ranked;

static int by_place(const void *arg, int64_t i, int64_t j) {
    const ranked *r = arg, *p = &r[i], *q = &r[j];
    int64_t d = p->rank != q->rank ? p->rank - q->rank : p->c.at != q->c.at ? p->c.at - q->c.at : p->node - q->node;
    return d < 0 ? -1 : d > 0;
}

/* Runs of channels in this order, as pieces of values; false: they are too many. v: of the pieces. */
static bool find_runs(const ranked *r, const int64_t *order, int64_t n, rl_pieces *p, rl_value *v) {
    p->n = 0;
    for (int64_t i = 0; i < n; i++) {
        const channel *c = &r[order[i]].c;
        uint32_t last = p->n - 1;
        if (p->n && rl_same(v[last], c->v) && p->piece[last].from + p->piece[last].count == c->at) {
            p->piece[last].count++;
            continue;
        }
        if (p->n == RL_PIECES) return false;
        v[p->n] = c->v;
        p->piece[p->n].from = c->at;
        p->piece[p->n++].count = 1;
    }
    return true;
}

static bool is_depthwise(const rl_nodeinfo *n) {
    return rl_attr_int(n, "group", 1) > 1;
}

/* Will all that reads the output sum over its channels in any order? */
static bool may_turn(const joiner *a, const rl_nodeinfo *n) {
    rl_value y = n->out[0];
    const steps *r = &a->reader[y.i];
    for (uint32_t i = 0; i < r->n; i++) {
        const rl_step *s = &a->x->step[r->p[i]];
        if (fn_of(a, r->p[i]) != rl_fast_conv || !rl_same(s->info->in[0], y) || is_depthwise(s->info)) return false;
        if (!rl_direct_takes_pieces(a->x, s, true)) return false;
    }
    return r->n > 0 && !a->kept[y.i];
}

static const rl_pieces *pieces_of(joiner *a, uint32_t step, rl_value *v) {
    const rl_step *s = &a->x->step[step];
    rl_value x = s->info->in[0];
    int64_t n = channels_of(a, x), nrank = 0;
    if (fn_of(a, step) != rl_fast_conv || !a->map[x.i] || !channels_of(a, s->info->out[0])) return NULL;
    ranked *r = rl_new(&a->tmp, ranked, n);
    int64_t *order = rl_new(&a->x->g->mem, int64_t, n), *rank = rl_new(&a->tmp, int64_t, a->x->g->nval);
    for (int64_t i = 0; i < n; i++) {
        int64_t *of = &rank[a->map[x.i][i].v.i];
        if (!*of) *of = ++nrank;
        r[i] = (ranked){a->map[x.i][i], *of, i};
        order[i] = i;
    }
    rl_pieces *p = rl_new(&a->x->g->mem, rl_pieces, 1);
    p->channels = n;
    if (find_runs(r, order, n, p, v) && p->n <= RL_MAX(nrank, n / 16)) return rl_direct_takes_pieces(a->x, s, false) ? p : NULL;
    if (!rl_direct_takes_pieces(a->x, s, true) || (is_depthwise(s->info) && !may_turn(a, s->info))) return NULL;
    rl_sort(&a->tmp, order, n, by_place, r);
    p->order = order;
    return find_runs(r, order, n, p, v) ? p : NULL;
}

/* ---- which steps go ---- */

/* A step that only moves; a Concat without a map stays. */
static bool may_go(const joiner *a, uint32_t step) {
    rl_kernel_fn *fn = fn_of(a, step);
    bool moves = fn == rl_ref_split || fn == rl_ref_slice || fn == rl_ref_reshape || fn == rl_ref_transpose || fn == rl_fast_interleave;
    return moves || (fn == rl_ref_concat && a->map[a->x->step[step].info->out[0].i]);
}

static bool all_read_past(const joiner *a, uint32_t step) {
    const rl_nodeinfo *n = a->x->step[step].info;
    bool read = false;
    for (uint32_t k = 0; k < n->nout; k++) {
        if (!rl_has(n->out[k])) continue;
        const steps *r = &a->reader[n->out[k].i];
        if (a->kept[n->out[k].i] || a->source[n->out[k].i]) return false;
        for (uint32_t i = 0; i < r->n; i++) {
            const rl_nodeinfo *by = a->x->step[r->p[i]].info;
            bool past = a->gone[r->p[i]] || (a->takes[r->p[i]] && rl_same(by->in[0], n->out[k]));
            for (uint32_t j = 1; past && !a->gone[r->p[i]] && j < by->nin; j++) past = !rl_same(by->in[j], n->out[k]);
            if (!past) return false;
        }
        read = read || r->n;
    }
    return read;
}

/* ---- joining ---- */

static const rl_kernel kernel = {.types = RL_T(RL_F32), .fn = rl_fast_conv_pieces};

/* Input 0 is v[0], the others stand behind what the node has. */
static void set_pieces(joiner *a, uint32_t step, const rl_pieces *found, const rl_value *v) {
    rl_arena *mem = &a->x->g->mem;
    rl_step *s = &a->x->step[step];
    rl_nodeinfo *n = rl_copy(mem, s->info, sizeof *n);
    rl_pieces *p = rl_copy(mem, found, sizeof *found);
    uint32_t given = RL_MAX(n->nin, 3u);
    n->in = rl_new(mem, rl_value, given + p->n);
    for (uint32_t i = 1; i < given; i++) n->in[i] = i < s->info->nin ? s->info->in[i] : RL_NOVALUE;
    n->in[0] = v[0];
    n->nin = given;
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t at = rl_same(v[i], v[0]) ? 0 : given;
        while (at && at < n->nin && !rl_same(n->in[at], v[i])) at++;
        n->in[at] = v[i];
        n->nin = RL_MAX(n->nin, at + 1);
        p->piece[i].in = at;
    }
    s->info = n;
    s->pieces = p;
    rl_run_by(a->x, s, &kernel);
}

/* Reads an output of a depthwise one whose channels are in this order. */
static void follow_order(joiner *a, rl_value y, const rl_pieces *from) {
    for (uint32_t i = 0; i < a->reader[y.i].n; i++) {
        rl_pieces p = {.n = 1, .channels = from->channels, .order = from->order};
        p.piece[0].count = from->channels;
        set_pieces(a, a->reader[y.i].p[i], &p, &y);
    }
}

static void join_step(joiner *a, uint32_t step, const rl_value *v) {
    const rl_nodeinfo *n = a->x->step[step].info;
    uint32_t made = n->nin && rl_has(n->in[0]) ? a->maker[n->in[0].i] : RL_NONE;
    if (!a->takes[step] || made == RL_NONE || !a->gone[made]) return;
    rl_value y = n->out[0];
    set_pieces(a, step, a->takes[step], v);
    if (is_depthwise(n) && a->takes[step]->order) follow_order(a, y, a->takes[step]);
}

void rl_read_pieces(rl_exec *x) {
    joiner a = {.x = x};
    rl_arena_init(&a.tmp, x->g->ctx);
    look(&a);
    rl_value **v = rl_new(&a.tmp, rl_value *, x->nstep + 1);
    for (uint32_t i = 0; i < x->nstep; i++) map_step(&a, i);
    for (uint32_t i = 0; i < x->nstep; i++) {
        if (fn_of(&a, i) != rl_fast_conv) continue;
        v[i] = rl_new(&a.tmp, rl_value, RL_PIECES);
        a.takes[i] = pieces_of(&a, i, v[i]);
    }
    for (uint32_t i = x->nstep; i-- > 0;) a.gone[i] = may_go(&a, i) && all_read_past(&a, i);
    for (uint32_t i = 0; i < x->nstep; i++)
        if (v[i]) join_step(&a, i, v[i]);
    for (uint32_t i = 0; i < x->nstep; i++)
        if (a.gone[i]) x->step[i].info = NULL;
    rl_drop_steps(x);
    rl_arena_free(&a.tmp);
}
