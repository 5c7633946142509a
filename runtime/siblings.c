/* Convolutions that read one value through the same windows, and whose outputs are moved anyway, as one: see fuse.h.
 *
 *   a = Conv(x, u)  [1,66,80,80]                    the heads of a detector: classes, and places of boxes
 *   b = Conv(x, v)  [1,24,80,80]     becomes        ab = Conv(x, uv)  [1,90,80,80]
 *   p = Transpose(a)                                a, b = Split(ab) along the channels
 *   q = Transpose(b)                                p = Transpose(a), q = Transpose(b)
 *
 * A device takes hardly longer for it than for one of them. Of one image the pieces are views that lie as they lay before; what is moved is moved from there. */
#include <string.h>

#include "fuse.h"

enum { MOST_SIBLINGS = 8 };

/* A constant with all its floats, at least one; else NULL. */
static const rl_const *floats_of(const rl_graph *g, rl_value v) {
    const rl_const *k = rl_has(v) ? rl_val(g, v)->data : NULL;
    size_t nbyte = sizeof(float);
    for (uint32_t i = 0; k && i < k->rank; i++) nbyte *= (size_t)k->dim[i];
    return k && k->data && k->dtype == RL_F32 && nbyte && k->nbyte == nbyte ? k : NULL;
}

static bool is_moved(const rl_graph *g, rl_value v) {
    const rl_valinfo *y = rl_val(g, v);
    return y->nuse == 1 && !y->is_output && y->use[0].slot == 0 && rl_nod(g, y->use[0].node)->op == RL_OP_Transpose;
}

/* Shorter floats lie channels-last, where such a piece's channels would not follow each other's. */
static bool may_join(const rl_graph *g, const rl_nodeinfo *n) {
    if (n->op != RL_OP_Conv || n->nin < 2 || !rl_has(n->in[0]) || n->nout != 1 || !rl_has(n->out[0]) || rl_attr_int(n, "group", 1) != 1) return false;
    const rl_valinfo *y = rl_val(g, n->out[0]);
    const rl_const *w = floats_of(g, n->in[1]), *b = floats_of(g, rl_in(n, 2));
    if (!w || y->rank == RL_NORANK || y->rank != w->rank || y->dtype != RL_F32 || y->dim[0] != 1 || y->dim[1] != w->dim[0]) return false;
    return (!rl_has(rl_in(n, 2)) || (b && b->rank == 1 && b->dim[0] == w->dim[0])) && is_moved(g, n->out[0]);
}

static bool same_ints(const rl_nodeinfo *n, const rl_nodeinfo *m, const char *name) {
    const rl_attr *a = rl_attr_ints(n, name), *b = rl_attr_ints(m, name);
    return !a == !b && (!a || (a->n == b->n && memcmp(a->ints, b->ints, a->n * sizeof *a->ints) == 0));
}

static bool same_windows(const rl_graph *g, const rl_nodeinfo *n, const rl_nodeinfo *m) {
    static const char *const lists[] = {"kernel_shape", "strides", "dilations", "pads"};
    const rl_const *u = floats_of(g, n->in[1]), *v = floats_of(g, m->in[1]);
    if (!rl_same(n->in[0], m->in[0]) || n->since != m->since || u->rank != v->rank || rl_attr_find(n, "auto_pad") || rl_attr_find(m, "auto_pad")) return false;
    for (uint32_t i = 1; i < u->rank; i++)
        if (u->dim[i] != v->dim[i]) return false;
    for (size_t i = 0; i < RL_LEN(lists); i++)
        if (!same_ints(n, m, lists[i])) return false;
    return true;
}

/* next: one of others of the same value, RL_NONE. */
typedef struct { uint32_t n, next; rl_node node[MOST_SIBLINGS]; } family;

/* The weights, or where slot is 2 the biases (0: there is none), one after the other along dim 0; RL_NOVALUE where nobody has any. */
static rl_value one_after_the_other(rl_graph *g, const family *f, uint32_t slot) {
    int64_t dim[RL_RANK] = {0};
    size_t per = 1, at = 0;
    bool any = false;
    const rl_const *w = floats_of(g, rl_nod(g, f->node[0])->in[1]);
    uint32_t rank = slot == 1 ? w->rank : 1;
    for (uint32_t i = 0; i < f->n; i++) {
        any = any || rl_has(rl_in(rl_nod(g, f->node[i]), slot));
        dim[0] += floats_of(g, rl_nod(g, f->node[i])->in[1])->dim[0];
    }
    if (!any) return RL_NOVALUE;
    for (uint32_t i = 1; i < rank; i++) dim[i] = w->dim[i], per *= (size_t)w->dim[i];
    float *x = rl_new(&g->mem, float, (size_t)dim[0] * per);
    for (uint32_t i = 0; i < f->n; i++) {
        const rl_nodeinfo *n = rl_nod(g, f->node[i]);
        const rl_const *k = floats_of(g, rl_in(n, slot));
        size_t count = (size_t)floats_of(g, n->in[1])->dim[0] * per;
        if (k) memcpy(x + at, k->data, count * sizeof *x);
        at += count;
    }
    return rl_graph_const(g, NULL, RL_F32, rank, dim, x, at * sizeof *x);
}

static void join_family(rl_graph *g, const family *f) {
    rl_value in[3] = {rl_nod(g, f->node[0])->in[0], one_after_the_other(g, f, 1), one_after_the_other(g, f, 2)}, y = rl_graph_value(g, NULL), piece[MOST_SIBLINGS];
    const rl_nodeinfo first = *rl_nod(g, f->node[0]);
    int64_t size[MOST_SIBLINGS];
    rl_dim dim[RL_RANK];
    uint32_t rank = rl_val(g, first.out[0])->rank;
    memcpy(dim, rl_val(g, first.out[0])->dim, rank * sizeof *dim);
    dim[1] = rl_val(g, in[1])->dim[0];
    for (uint32_t i = 0; i < f->n; i++) {
        piece[i] = rl_nod(g, f->node[i])->out[0], size[i] = rl_val(g, piece[i])->dim[1];
        rl_graph_set_output(g, f->node[i], 0, rl_graph_value(g, NULL));
    }
    rl_graph_set_type(g, y, RL_F32, rank, dim);
    rl_graph_set_attrs(g, rl_graph_add(g, RL_OP_Conv, first.name, rl_has(in[2]) ? 3 : 2, in, 1, &y), first.attr, first.nattr);
    const rl_attr axis = rl_attr_of_int(g, "axis", 1);
    rl_graph_add_listed(g, RL_OP_Split, first.name, y, "split", f->n, size, &axis, f->n, piece);
}

rl_status rl_join_siblings(rl_graph *g) {
    rl_arena tmp;
    rl_arena_init(&tmp, g->ctx);
    struct { family *p; uint32_t n, cap; } found = {0};
    uint32_t *first = rl_new(&tmp, uint32_t, g->nval), njoined = 0; /* [value] 1 + the newest of those that read it */
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        if (!may_join(g, n)) continue;
        uint32_t *of = &first[n->in[0].i], k = *of - 1;
        while (k != RL_NONE && (found.p[k].n == MOST_SIBLINGS || !same_windows(g, rl_nod(g, found.p[k].node[0]), n))) k = found.p[k].next;
        if (k == RL_NONE) {
            rl_push(&tmp, found, ((family){.next = *of - 1}));
            k = found.n - 1, *of = found.n;
        }
        found.p[k].node[found.p[k].n++] = g->order.p[i];
    }
    for (uint32_t k = 0; k < found.n; k++)
        if (found.p[k].n > 1) join_family(g, &found.p[k]), njoined++;
    bool *dead = rl_new(&tmp, bool, g->nnode);
    for (uint32_t k = 0; k < found.n; k++)
        for (uint32_t i = 0; found.p[k].n > 1 && i < found.p[k].n; i++) dead[found.p[k].node[i].i] = true;
    rl_graph_remove_all(g, dead);
    rl_arena_free(&tmp);
    return njoined ? rl_graph_sort(g) : RL_OK;
}
