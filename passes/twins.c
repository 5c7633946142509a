/* Components that look alike have the same candidates, the same solution and the same bound: only the first of them is worked on, and the
 * others, its twins, take over what it has.  A network is a few blocks repeated, so that little is left of a large one.
 *
 *   component  ops that may move, joined by the classes that they name (plan.h); fixed ops are no part of it, but what they ask for is
 *   alike      the k-th op of the one and of the other: same kind, tokens, forms, charges, and pins on classes with the same number,
 *              where classes are numbered as the ops name them; and of each class the same bytes, members and demands of fixed ops
 *
 * What looks alike is decided by comparing all of that, byte by byte, where the number of ops does not decide it. */
#include "configs.h"

typedef struct { uint32_t *beg, *op; } lists; /* of each component, class: beg[i] .. beg[i + 1] of op */

typedef struct {
    rl_plan *p;
    rl_memo *memo;
    rl_arena *tmp;
    const int64_t *extra;                 /* [ncls] what else must be equal  */
    lists ops, readers;                   /* of a component: the ops that may move; of a class: those that may not */
    uint32_t *number, *stamp;             /* [ncls] its number in the component that stamp names */
    struct { uint32_t *p; uint32_t n, cap; } cls; /* of the component, by number */
    rl_text key;
    rl_hash index;                        /* of keys: the first component that has it */
    struct { struct first { uint32_t comp, ncls, *cls; const char *key; size_t n; } *p; uint32_t n, cap; } all;
} finder;

static void put_number(finder *f, int64_t x) { rl_put_number(&f->key, x); }

/* ---- the key ---- */

static bool names_matmul(const rl_plan *p, const rl_oplegal *op) {
    return op->node.i != RL_NONE && rl_nod(p->g, op->node)->op == RL_OP_MatMul;
}

/* What the op makes of the class, or asks of it, as it stands. */
static void put_member(finder *f, const rl_oplegal *op, const rl_operand *x) {
    const rl_member *m = &f->p->member[x->tensor.i];
    put_number(f, m->natom << 3 | (rl_same(x->tensor, f->p->cls.p[x->cls].first) ? 4 : 0) | (x->out ? 2 : 0) | (op->node.i == RL_NONE));
    rl_put_bytes(&f->key, m->seq, m->natom);
}

static void put_class(finder *f, uint32_t c) {
    const rl_cls *x = &f->p->cls.p[c];
    put_number(f, x->bytes);
    put_number(f, x->natom);
    put_number(f, f->extra[c]);
    for (uint32_t i = f->readers.beg[c]; i < f->readers.beg[c + 1]; i++) {
        const rl_oplegal *op = &f->p->op.p[f->readers.op[i]];
        for (uint32_t o = 0; o < op->noperand; o++) {
            if (!op->operand[o].pin || op->operand[o].cls != c) continue;
            put_number(f, names_matmul(f->p, op));
            put_member(f, op, &op->operand[o]);
        }
    }
    put_number(f, -1);
}

static void put_op(finder *f, uint32_t comp, uint32_t k) {
    const rl_oplegal *op = &f->p->op.p[k];
    put_number(f, rl_memo_looks(f->memo, k));
    for (uint32_t o = 0; o < op->noperand; o++) {
        uint32_t c = op->operand[o].cls;
        if (!op->operand[o].pin) continue;
        bool known = f->stamp[c] == comp + 1;
        if (!known) {
            f->stamp[c] = comp + 1;
            f->number[c] = f->cls.n;
            rl_push(f->tmp, f->cls, c);
        }
        put_number(f, f->number[c] << 1 | rl_same(op->operand[o].tensor, f->p->cls.p[c].first));
        if (!known) put_class(f, c);
    }
}

/* ---- comparing ---- */

static void take_over(finder *f, uint32_t comp, const struct first *x) {
    rl_plan *p = f->p;
    const uint32_t *mine = f->ops.op + f->ops.beg[comp], *its = f->ops.op + f->ops.beg[x->comp];
    p->twin[comp] = x->comp;
    for (uint32_t i = 0; i < f->ops.beg[comp + 1] - f->ops.beg[comp]; i++) p->op.p[mine[i]].like = its[i];
    for (uint32_t i = 0; i < x->ncls; i++) p->cls.p[f->cls.p[i]].like = x->cls[i];
}

static void look_up(finder *f, uint32_t comp) {
    f->key.n = f->cls.n = 0;
    for (uint32_t i = f->ops.beg[comp]; i < f->ops.beg[comp + 1]; i++) put_op(f, comp, f->ops.op[i]);
    uint64_t h = rl_hash_bytes(f->key.p, f->key.n);
    for (uint32_t i; (i = rl_hash_get(&f->index, h)) != RL_NONE; h++) {
        const struct first *x = &f->all.p[i];
        if (x->n != f->key.n || !rl_same_bytes(x->key, f->key.p, x->n)) continue;
        take_over(f, comp, x);
        return;
    }
    rl_hash_put(&f->index, h, f->all.n);
    struct first x = {comp, f->cls.n, rl_copy(f->tmp, f->cls.p, f->cls.n * sizeof *f->cls.p), rl_copy(f->tmp, f->key.p, f->key.n), f->key.n};
    rl_push(f->tmp, f->all, x);
}

/* ---- lists ---- */

/* What op k is listed under: its component, or at operand o the class. RL_NONE: nothing. */
typedef uint32_t under(const rl_plan *p, const rl_oplegal *op, uint32_t o);

static uint32_t under_component(const rl_plan *p, const rl_oplegal *op, uint32_t o) {
    return o == 0 && rl_may_move(op) && p->active[op->comp] ? op->comp : RL_NONE;
}

static uint32_t under_class(const rl_plan *p, const rl_oplegal *op, uint32_t o) {
    return !rl_may_move(op) && op->operand[o].pin && p->active[p->cls.p[op->operand[o].cls].comp] ? op->operand[o].cls : RL_NONE;
}

/* An op that names a class twice is listed once. */
static lists list(const rl_plan *p, uint32_t n, under *of, rl_arena *tmp) {
    struct { uint32_t *p; uint32_t n, cap; } where = {0}, op = {0};
    uint32_t *last = rl_new(tmp, uint32_t, n);
    for (uint32_t k = 0; k < p->op.n; k++)
        for (uint32_t o = 0; o < p->op.p[k].noperand; o++) {
            uint32_t i = of(p, &p->op.p[k], o);
            if (i == RL_NONE || last[i] == k + 1) continue;
            last[i] = k + 1;
            rl_push(tmp, where, i);
            rl_push(tmp, op, k);
        }
    return (lists){rl_sort_by_key(tmp, n, where.p, op.p, op.n, sizeof *op.p), op.p};
}

/* How many components have each number of ops. */
static const uint32_t *count_sizes(const finder *f, uint32_t ncomp) {
    uint32_t most = 0;
    for (uint32_t c = 0; c < ncomp; c++) most = RL_MAX(most, f->ops.beg[c + 1] - f->ops.beg[c]);
    uint32_t *n = rl_new(f->tmp, uint32_t, (size_t)most + 1);
    for (uint32_t c = 0; c < ncomp; c++) n[f->ops.beg[c + 1] - f->ops.beg[c]]++;
    return n;
}

void rl_twins(rl_plan *p, rl_memo *m, const int64_t *extra) {
    rl_arena tmp;
    rl_arena_init(&tmp, p->g->ctx);
    finder f = {.p = p, .memo = m, .tmp = &tmp, .extra = extra, .key.mem = &tmp, .index.mem = &tmp};
    f.ops = list(p, p->ncomp, under_component, &tmp);
    f.readers = list(p, p->cls.n, under_class, &tmp);
    f.number = rl_new(&tmp, uint32_t, p->cls.n);
    f.stamp = rl_new(&tmp, uint32_t, p->cls.n);
    p->twin = rl_new(p->mem, uint32_t, p->ncomp);
    const uint32_t *size = count_sizes(&f, p->ncomp);
    for (uint32_t c = 0; c < p->ncomp; c++) {
        uint32_t n = f.ops.beg[c + 1] - f.ops.beg[c];
        p->twin[c] = c;
        if (n > 0 && size[n] > 1) look_up(&f, c); /* the largest of all has mostly no twin, and the longest key */
    }
    rl_arena_free(&tmp);
}
