/* TfIdfVectorizer: counts n-grams of a pool, in a tree of their items. */
#include <string.h>

#include "kernels.h"

typedef struct {
    rl_hash item, edge;
    uint32_t nitem, nnode;
    struct { uint32_t *p; uint32_t n, cap; } gram; /* the n-gram that ends at a node, or RL_NONE */
} tree;

typedef struct {
    const int64_t *count, *index, *ints; /* ngram_counts, ngram_indexes, pool_int64s */
    const rl_attr *strings;
    uint32_t ncount, nindex, npool;
    int64_t least, most, skips, width;
} tfidf;

static uint32_t child(const tree *t, uint32_t node, uint64_t item) {
    uint32_t k = rl_hash_get(&t->item, item);
    return k == RL_NONE ? RL_NONE : rl_hash_get(&t->edge, (uint64_t)node << 32 | k);
}

static uint32_t make_child(rl_call *c, tree *t, uint32_t node, uint64_t item) {
    uint32_t k = rl_hash_get(&t->item, item), next;
    if (k == RL_NONE) rl_hash_put(&t->item, item, k = t->nitem++);
    next = rl_hash_get(&t->edge, (uint64_t)node << 32 | k);
    if (next != RL_NONE) return next;
    rl_hash_put(&t->edge, (uint64_t)node << 32 | k, next = ++t->nnode);
    rl_push(c->tmp, t->gram, RL_NONE);
    return next;
}

static uint64_t pool_item(const rl_call *c, const tfidf *f, uint32_t i) {
    if (f->ints) return (uint64_t)f->ints[i];
    rl_span s = f->strings->strings[i];
    return (uint64_t)(uintptr_t)rl_intern(c->g->ctx, (const char *)s.p, s.n);
}

/* ngram_counts[k] is where the (k+1)-grams start in the pool. */
static rl_status plant(rl_call *c, const tfidf *f, tree *t) {
    uint32_t gram = 0;
    rl_push(c->tmp, t->gram, RL_NONE);
    for (uint32_t k = 0; k < f->ncount; k++) {
        int64_t at = f->count[k], end = k + 1 < f->ncount ? f->count[k + 1] : f->npool, size = k + 1;
        if (at < 0 || end < at || end > f->npool || (end - at) % size)
            return rl_call_fail(c, RL_EMODEL, "ngram_counts does not fit the pool");
        for (; at < end; gram++) {
            uint32_t node = 0;
            for (int64_t i = 0; i < size; i++, at++)
                if (size >= f->least && size <= f->most) node = make_child(c, t, node, pool_item(c, f, (uint32_t)at));
            if (node) t->gram.p[node] = gram;
        }
    }
    return gram <= f->nindex ? RL_OK : rl_call_fail(c, RL_EMODEL, "%u n-grams, but %u indexes", gram, f->nindex);
}

/* Single items do not depend on the skip: they count once. */
static void count_row(const tfidf *f, const tree *t, const uint64_t *x, int64_t n, float *y) {
    int64_t least = f->least;
    for (int64_t skip = 1; skip <= f->skips + 1 && skip <= RL_MAX(n, 1) && least <= f->most; skip++) {
        for (int64_t first = 0; first < n && skip * (least - 1) < n - first; first++) {
            uint32_t node = 0;
            int64_t at = first;
            for (int64_t size = 1; size <= f->most && at < n; size++, at += skip) {
                node = child(t, node, x[at]);
                if (node == RL_NONE) break;
                if (size >= least && t->gram.p[node] != RL_NONE) y[f->index[t->gram.p[node]]]++;
            }
        }
        if (least == 1) least = 2;
    }
}

static void weigh(const rl_call *c, float *y, int64_t rows, int64_t width) {
    const rl_attr *w = rl_attr_find(c->node, "weights");
    bool tf = rl_attr_is(c->node, "mode", "TF"), idf = rl_attr_is(c->node, "mode", "IDF");
    for (int64_t i = 0; !tf && i < rows * width; i++) {
        if (idf) y[i] = y[i] > 0;
        if (w) y[i] *= w->floats[i % width];
    }
}

static rl_status read_attributes(rl_call *c, tfidf *f) {
    RL_TRY(rl_call_ints(c, "ngram_counts", RL_NONE, &f->count, &f->ncount));
    RL_TRY(rl_call_ints(c, "ngram_indexes", RL_NONE, &f->index, &f->nindex));
    RL_TRY(rl_call_ints(c, "pool_int64s", RL_NONE, &f->ints, &f->npool));
    f->strings = rl_attr_find(c->node, "pool_strings");
    f->least = rl_attr_int(c->node, "min_gram_length", 1);
    f->most = rl_attr_int(c->node, "max_gram_length", 1);
    f->skips = rl_attr_int(c->node, "max_skip_count", 0);
    bool is_strings = rl_call_in(c, 0)->dtype == RL_STRING;
    if (is_strings) f->ints = NULL, f->npool = f->strings && f->strings->kind == RL_ATTR_STRINGS ? f->strings->n : 0;
    for (uint32_t i = 0; i < f->nindex; i++) {
        if (f->index[i] < 0 || f->index[i] >= INT32_MAX) return rl_call_fail(c, RL_EMODEL, "ngram_indexes has %lld", (long long)f->index[i]);
        f->width = RL_MAX(f->width, f->index[i] + 1);
    }
    const rl_attr *w = rl_attr_find(c->node, "weights");
    if (w && (w->kind != RL_ATTR_FLOATS || w->n < f->width)) return rl_call_fail(c, RL_EMODEL, "fewer weights than outputs");
    if (f->least < 1 || f->most < f->least || f->skips < 0)
        return rl_call_fail(c, RL_EMODEL, "n-grams of %lld to %lld items", (long long)f->least, (long long)f->most);
    f->most = RL_MIN(f->most, (int64_t)f->ncount); /* there are no longer ones */
    f->skips = RL_MIN(f->skips, (int64_t)INT32_MAX);
    return f->npool ? RL_OK : rl_call_fail(c, RL_EMODEL, "no pool of the input's type");
}

rl_status rl_ref_tfidf(rl_call *c) {
    tfidf f = {0};
    tree t = {.item = {.mem = c->tmp}, .edge = {.mem = c->tmp}};
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *in = rl_call_in(c, 0), *x = in->dtype == RL_STRING ? rl_call_dense(c, 0) : rl_call_as(c, 0, RL_I64);
    if (x->rank > 2) return rl_call_fail(c, RL_EMODEL, "rank %u, wants 1 or 2", x->rank);
    RL_TRY(read_attributes(c, &f));
    RL_TRY(plant(c, &f, &t));
    int64_t rows = x->rank == 2 ? x->dim[0] : 1, n = x->rank ? x->dim[x->rank - 1] : 1;
    RL_TRY(rl_call_dims(c, 2, (const int64_t[]){rows, f.width}));
    rl_tensor *y = rl_call_make(c, 0, RL_F32, x->rank == 2 ? 2 : 1, x->rank == 2 ? (const int64_t[]){rows, f.width} : &f.width);
    memset(rl_data(y), 0, (size_t)rl_numel(y) * sizeof(float));
    for (int64_t i = 0; i < rows; i++)
        count_row(&f, &t, (const uint64_t *)rl_data(x) + i * n, n, (float *)rl_data(y) + i * f.width);
    weigh(c, rl_data(y), rows, f.width);
    return RL_OK;
}
