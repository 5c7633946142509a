/* Einsum: sums of products over labelled axes, of any number of operands.
 *
 *   "bij,bjk->bik"      an axis that appears twice in an operand is its diagonal; axes not in the output are summed; "..." stands
 *                       for axes that broadcast; without "->" the output has the labels that appear once, in alphabetical order
 *
 * Each operand is a view with one stride per label.  Operands are multiplied two at a time as one batched matrix product: labels
 * in both and kept are its batch, labels in both that nothing later needs are its inner dim, the others its rows and columns.
 * What only one operand has, and nothing later needs, is summed before. */
#include <string.h>

#include "device.h"
#include "einsum.h"
#include "ref_matmul.h"

enum { LABELS = 52 + RL_RANK }; /* letters, then the axes of "...", the last of which is always the last label */

typedef struct {
    int64_t dim[LABELS]; /* of each label that was seen, over all operands */
    bool seen[LABELS];
    int count[LABELS];   /* axes of that label */
    uint32_t nout;
    int out[RL_RANK];
} labels;

/* An operand: a tensor whose axes are labels, each once, of dims as they are (1 where it broadcasts). */
typedef struct { rl_tensor t; int label[RL_RANK]; bool has[LABELS]; } term;

static int label_of(char ch) {
    return ch >= 'A' && ch <= 'Z' ? ch - 'A' : ch >= 'a' && ch <= 'z' ? ch - 'a' + 26 : -1;
}

/* ---- the equation ---- */

/* Labels of a term's axes; the dots stand for as many as are left. -1: not understood. */
static int read_labels(const char *s, const char *end, uint32_t rank, int *label) {
    uint32_t n = 0, dots = 0, nletter = 0;
    for (const char *p = s; p < end; p++) nletter += label_of(*p) >= 0;
    if (nletter > rank) return -1;
    for (const char *p = s; p < end; p++) {
        if (*p == ' ') continue;
        if (*p == '.') {
            if (end - p < 3 || p[1] != '.' || p[2] != '.' || dots++) return -1;
            for (uint32_t k = rank - nletter; k > 0; k--) label[n++] = LABELS - (int)k;
            p += 2;
        } else if (label_of(*p) < 0) {
            return -1;
        } else {
            label[n++] = label_of(*p);
        }
    }
    return n == rank ? (int)dots : -1;
}

static rl_status note_dim(const rl_call *c, labels *l, int label, int64_t n) {
    bool had = l->seen[label];
    int64_t *d = &l->dim[label];
    l->seen[label] = true;
    if (!had || *d == 1) *d = n;
    else if (n != 1 && n != *d)
        return rl_call_fail(c, RL_EMODEL, "an axis of %lld and one of %lld have one label", (long long)*d, (long long)n);
    return RL_OK;
}

/* Axes of one label become one: the diagonal. */
static rl_status read_term(const rl_call *c, labels *l, const char *s, const char *end, const rl_tensor *x, term *t) {
    int label[RL_RANK];
    if (read_labels(s, end, x->rank, label) < 0)
        return rl_call_fail(c, RL_EMODEL, "equation: '%.*s' does not fit an operand of rank %u", (int)(end - s), s, x->rank);
    *t = (term){.t = *x};
    t->t.rank = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        uint32_t k = 0;
        RL_TRY(note_dim(c, l, label[i], x->dim[i]));
        l->count[label[i]]++;
        while (k < t->t.rank && t->label[k] != label[i]) k++;
        if (k == t->t.rank) {
            t->label[t->t.rank] = label[i];
            t->t.dim[t->t.rank] = x->dim[i];
            t->t.stride[t->t.rank++] = x->stride[i];
            t->has[label[i]] = true;
        } else if (t->t.dim[k] != x->dim[i]) {
            return rl_call_fail(c, RL_EMODEL, "a diagonal of %lld by %lld", (long long)t->t.dim[k], (long long)x->dim[i]);
        } else {
            t->t.stride[k] += x->stride[i];
        }
    }
    return RL_OK;
}

static rl_status read_output(const rl_call *c, labels *l, const char *s) {
    const char *arrow = strstr(s, "->");
    uint32_t ndots = 0;
    if (!arrow) {
        for (int i = 0; i < LABELS; i++) { /* the dots first */
            int k = i < RL_RANK ? 52 + i : i - RL_RANK;
            if (l->seen[k] && (k >= 52 || l->count[k] == 1)) l->out[l->nout++] = k;
        }
        return RL_OK;
    }
    for (int i = 52; i < LABELS; i++) ndots += l->seen[i];
    uint32_t rank = strstr(arrow, "...") ? ndots : 0;
    for (const char *p = arrow + 2; *p; p++) rank += label_of(*p) >= 0;
    l->nout = rank;
    if (rank > RL_RANK || read_labels(arrow + 2, arrow + strlen(arrow), rank, l->out) < 0)
        return rl_call_fail(c, RL_EMODEL, "equation: '%.100s' is no output", arrow + 2);
    for (uint32_t i = 0; i < rank; i++) {
        if (!l->seen[l->out[i]]) return rl_call_fail(c, RL_EMODEL, "equation: the output has a label that no operand has");
        for (uint32_t k = 0; k < i; k++)
            if (l->out[k] == l->out[i]) return rl_call_fail(c, RL_EMODEL, "equation: the output has a label twice");
    }
    return RL_OK;
}

/* ---- products ---- */

/* t with the given labels as its axes, broadcast to their dims. */
static rl_tensor arrange(const term *t, const int *label, uint32_t n, const int64_t *dim) {
    rl_tensor x = t->t;
    x.rank = n;
    for (uint32_t i = 0; i < n; i++) {
        x.dim[i] = dim[label[i]];
        x.stride[i] = 0;
        for (uint32_t k = 0; k < t->t.rank; k++)
            if (t->label[k] == label[i] && t->t.dim[k] != 1) x.stride[i] = t->t.stride[k];
    }
    return x;
}

/* As a[batch, rows, inner] or b[batch, inner, columns]; a copy where the labels of a group do not lie one after the other. */
static rl_tensor as_matrices(rl_call *c, const rl_tensor *x, const uint32_t *group) {
    int64_t dim[3];
    uint32_t at = 0;
    rl_tensor y;
    for (uint32_t i = 0; i < 3; i++) {
        dim[i] = rl_product(x->dim + at, group[i]);
        at += group[i];
    }
    if (rl_view_reshape(x, 3, dim, &y)) return y;
    rl_tensor *dense = rl_call_temp(c, x->dtype, x->rank, x->dim);
    rl_tensor_move(c->rt, dense, x);
    rl_view_reshape(dense, 3, dim, &y);
    return y;
}

/* Labels of a product by their part in it. */
enum { BATCH, ROWS, COLUMNS, INNER, NPART };
typedef struct { uint32_t n; int label[LABELS]; } labels_of;

static void add_all(labels_of *to, const labels_of *from) {
    memcpy(to->label + to->n, from->label, from->n * sizeof *from->label);
    to->n += from->n;
}

static void sort_labels(const term *a, const term *b, const bool *needed, labels_of *part) {
    for (int k = 0; k < LABELS; k++) {
        if (!a->has[k] && !b->has[k]) continue;
        labels_of *p = &part[!needed[k] ? INNER : a->has[k] && b->has[k] ? BATCH : a->has[k] ? ROWS : COLUMNS];
        p->label[p->n++] = k;
    }
}

/* The labels' dims; a product of more elements than can be counted is refused. */
static rl_status dims_of(const rl_call *c, const labels_of *l, const int64_t *of, int64_t *dim) {
    for (uint32_t i = 0; i < l->n; i++) dim[i] = of[l->label[i]];
    return rl_call_dims(c, l->n, dim);
}

typedef struct { rl_call *c; rl_product_fn *product; int64_t dim[LABELS]; } sums;

/* a * b, summed over what nothing in `needed` needs. The result's labels: batch, rows, columns. */
static rl_status multiply(const sums *s, const term *a, const term *b, const bool *needed, term *out) {
    rl_call *c = s->c;
    const int64_t *dim = s->dim;
    labels_of part[NPART] = {{0}}, left, right, made;
    int64_t full[RL_RANK];
    sort_labels(a, b, needed, part);
    left = right = made = part[BATCH];
    add_all(&left, &part[ROWS]), add_all(&left, &part[INNER]);
    add_all(&right, &part[INNER]), add_all(&right, &part[COLUMNS]);
    add_all(&made, &part[ROWS]), add_all(&made, &part[COLUMNS]);
    RL_TRY(dims_of(c, &left, dim, full));
    RL_TRY(dims_of(c, &right, dim, full));
    RL_TRY(dims_of(c, &made, dim, full));
    rl_tensor x = arrange(a, left.label, left.n, dim), z = arrange(b, right.label, right.n, dim);
    rl_tensor m = as_matrices(c, &x, (uint32_t[]){part[BATCH].n, part[ROWS].n, part[INNER].n});
    rl_tensor w = as_matrices(c, &z, (uint32_t[]){part[BATCH].n, part[INNER].n, part[COLUMNS].n});
    rl_tensor *y = rl_call_temp(c, m.dtype, 3, (int64_t[]){m.dim[0], m.dim[1], w.dim[2]});
    RL_TRY(s->product(c, &m, &w, y));
    *out = (term){.t = *y};
    for (uint32_t i = 0; i < made.n; i++) {
        out->label[i] = made.label[i];
        out->has[made.label[i]] = true;
    }
    rl_view_reshape(y, made.n, full, &out->t);
    return RL_OK;
}

/* *t summed over what only it has and nothing later needs: by a product with 1. */
static rl_status sum_alone(const sums *s, term *t, const term *other, const term *one, const bool *needed) {
    bool keep[LABELS], alone = false;
    term from = *t;
    for (int k = 0; k < LABELS; k++) {
        keep[k] = needed[k] || other->has[k];
        alone |= t->has[k] && !keep[k];
    }
    return alone ? multiply(s, &from, one, keep, t) : RL_OK;
}

/* The product's type: integers wrap in 64 bits. */
static rl_dtype einsum_type(rl_dtype t) {
    return rl_is_float(t) ? rl_wide_float(t) : RL_I64;
}

static const rl_tensor *operand(rl_call *c, uint32_t i, rl_dtype wide) {
    if (c->rt->on == c->rt->device) return rl_call_here(c, i);
    return rl_call_in(c, i)->dtype == wide ? rl_call_in(c, i) : rl_call_as(c, i, wide);
}

static rl_status read_equation(rl_call *c, labels *l, term *t, rl_dtype wide, char *text, size_t size) {
    const rl_attr *a = rl_attr_find(c->node, "equation");
    if (!a || a->kind != RL_ATTR_STRING || a->s.n >= size) return rl_call_fail(c, RL_EMODEL, "has no equation that can be read");
    memcpy(text, a->s.p, a->s.n);
    text[a->s.n] = 0;
    const char *arrow = strstr(text, "->"), *stop = arrow ? arrow : text + a->s.n, *s = text;
    for (uint32_t i = 0; i < c->nin; i++) {
        const char *comma = memchr(s, ',', (size_t)(stop - s)), *end = comma ? comma : stop;
        if ((i + 1 == c->nin) != !comma) return rl_call_fail(c, RL_EMODEL, "equation '%.100s' is not for %u operands", text, c->nin);
        if (rl_call_in(c, i)->dtype != rl_call_in(c, 0)->dtype) return rl_call_fail(c, RL_EMODEL, "operands of two types");
        RL_TRY(read_term(c, l, s, end, operand(c, i, wide), &t[i]));
        s = end + 1;
    }
    uint32_t nseen = 0;
    for (int k = 0; k < LABELS; k++) nseen += l->seen[k];
    if (nseen > RL_RANK) return rl_call_fail(c, RL_ELIMIT, "%u labels, the limit is %d", nseen, RL_RANK);
    return read_output(c, l, text);
}

static const rl_tensor *unit(rl_call *c, rl_dtype t) {
    rl_tensor *y = rl_call_temp(c, t, 0, NULL);
    int64_t one = 1, value = 0;
    rl_convert_run((rl_run){t, (char *)&value, 0, 1}, (rl_run){RL_I64, (char *)&one, 0, 1}, 1, true);
    rl_fill(c->rt, y, &value);
    return y;
}

rl_status rl_einsum(rl_call *c, rl_dtype wide, rl_product_fn *product) {
    char text[1024];
    labels l = {.nout = 0};
    RL_TRY(rl_call_need(c, RL_MAX(c->nin, 1)));
    rl_dtype made = rl_call_in(c, 0)->dtype;
    sums s = {.c = c, .product = product};
    term *t = rl_new(c->tmp, term, c->nin + 1);
    RL_TRY(read_equation(c, &l, t, wide, text, sizeof text));
    memcpy(s.dim, l.dim, sizeof s.dim);
    term one = {.t = *unit(c, wide)}, sum = t[0];
    for (uint32_t i = c->nin > 1; i < c->nin; i++) {
        bool needed[LABELS] = {false};
        term before;
        for (uint32_t k = 0; k < l.nout; k++) needed[l.out[k]] = true;
        for (uint32_t j = i + 1; j < c->nin; j++)
            for (int k = 0; k < LABELS; k++) needed[k] |= t[j].has[k];
        RL_TRY(sum_alone(&s, &sum, i ? &t[i] : &one, &one, needed));
        if (i == 0) break;
        RL_TRY(sum_alone(&s, &t[i], &sum, &one, needed));
        before = sum;
        RL_TRY(multiply(&s, &before, &t[i], needed, &sum));
    }
    int64_t dim[RL_RANK];
    for (uint32_t i = 0; i < l.nout; i++) dim[i] = l.dim[l.out[i]];
    RL_TRY(rl_call_dims(c, l.nout, dim));
    rl_tensor view = arrange(&sum, l.out, l.nout, l.dim);
    rl_tensor *y = rl_call_make(c, 0, made, l.nout, dim);
    if (made == wide) rl_tensor_move(c->rt, y, &view);
    else rl_convert(c->rt, y, &view, true);
    return c->rt->failed;
}

static rl_status product_here(rl_call *c, const rl_tensor *a, const rl_tensor *b, const rl_tensor *y) {
    rl_matmul(c, a, b, y);
    return RL_OK;
}

rl_status rl_ref_einsum(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    return rl_einsum(c, einsum_type(rl_call_in(c, 0)->dtype), product_here);
}
