/* Any layout to any layout: where both are loops over the same pieces of the axes, a move; where one axis has a last block that is not full, a move of
 * the whole ones, one of what is in the last one, and zeros; else kernel recode, element by element.
 *
 *   f32[1,32,4,4] nchw -> nChw8c     axis 1: 32 of 16  against  4 of 128, 8 of 1      pieces 4 and 8: a move
 *   f32[1,20,4,4] nchw -> nChw8c     16 channels, then 4, then zeros for the last 4
 *   f32[1,4,4,4] nchw -> nChw8c      no whole block: recode */

#include "move.h"

/* ---- as loops ---- */

typedef struct { const rl_desc *d; rl_digits at; uint32_t left; int64_t size, stride; } cursor;

static void next_digit(cursor *c) {
    if (c->left == 0) return;
    const rl_digit *g = &c->d->digit[c->at.first + --c->left];
    c->size = g->size, c->stride = g->stride;
}

static cursor cursor_of(const rl_desc *d, uint32_t axis) {
    cursor c = {.d = d, .at = rl_desc_axis(d, axis)};
    c.left = c.at.n;
    next_digit(&c);
    return c;
}

static void take(cursor *c, int64_t n) {
    c->size /= n;
    c->stride *= n;
    if (c->size == 1) next_digit(c);
}

/* The loops of one axis, innermost first; false where the digits of the two do not divide each other. */
static bool add_axis(rl_loops *l, const rl_desc *to, const rl_desc *from, uint32_t axis) {
    cursor a = cursor_of(to, axis), b = cursor_of(from, axis);
    for (int64_t left = to->dim[axis]; left > 1;) {
        while (a.size == 1 && a.left) next_digit(&a);
        while (b.size == 1 && b.left) next_digit(&b);
        int64_t n = RL_MIN(a.size, b.size);
        if (n <= 1 || a.size % n || b.size % n || left % n || l->rank == RL_MOST_DIMS) return false;
        l->dim[l->rank] = n, l->step[0][l->rank] = a.stride, l->step[1][l->rank++] = b.stride;
        take(&a, n), take(&b, n);
        left /= n;
    }
    return true;
}

bool rl_desc_loops(const rl_desc *to, const rl_desc *from, rl_loops *l) {
    *l = (rl_loops){.noperand = 2};
    if (to->dtype != from->dtype) return false;
    for (uint32_t a = 0; a < to->rank; a++)
        if (rl_desc_padded(to, a) != to->dim[a] || rl_desc_padded(from, a) != from->dim[a] || !add_axis(l, to, from, a)) return false;
    return true;
}

/* ---- a last block that is not full ---- */

/* Channels first .. first + n - 1 of the axis, whole blocks or less than one. */
static rl_desc part_of(const rl_desc *d, uint32_t axis, int64_t first, int64_t n) {
    rl_desc p = *d;
    rl_digits at = rl_desc_axis(d, axis);
    rl_digit *outer = &p.digit[at.first], *inner = &p.digit[at.first + at.n - 1];
    p.dim[axis] = n;
    if (at.n == 1) outer->size = n, p.offset += first * outer->stride;
    else {
        p.offset += first / inner->size * outer->stride;
        outer->size = n < inner->size ? 1 : n / inner->size;
        inner->size = RL_MIN(n, inner->size);
    }
    return p;
}

/* The block of an axis that ends in one that is not full, in blocks alone or against a plain one; 0: none, or it is not so simple. */
static int64_t block_of(const rl_desc *to, const rl_desc *from, uint32_t axis) {
    int64_t block = 0, n = to->dim[axis];
    for (uint32_t s = 0; s < 2; s++) {
        const rl_desc *d = s ? from : to;
        rl_digits at = rl_desc_axis(d, axis);
        const rl_digit *outer = &d->digit[at.first], *inner = &d->digit[at.first + at.n - 1];
        if (at.n == 1 && outer->size == n) continue;
        if (at.n != 2 || outer->size != (n + inner->size - 1) / inner->size || (block && block != inner->size)) return 0;
        block = inner->size;
    }
    return n > block ? block : 0;
}

/* Zeros in what the last block has no channels for. */
static rl_status clear_rest(rl_gpu *g, const rl_desc *to, void *out, uint32_t axis, int64_t block) {
    static const uint8_t zero[16];
    rl_digits at = rl_desc_axis(to, axis);
    const rl_digit *outer = &to->digit[at.first], *inner = &to->digit[at.first + 1];
    int64_t rest = to->dim[axis] % block;
    rl_loops l = {.rank = 1, .noperand = 1, .dim = {block - rest}, .step = {{inner->stride}}};
    if (at.n != 2) return RL_OK;
    for (uint32_t i = 0; i < to->ndigit; i++)
        if (to->digit[i].axis != axis) l.dim[l.rank] = to->digit[i].size, l.step[0][l.rank++] = to->digit[i].stride;
    return rl_gpu_fill(g, &l, rl_desc_bits(to), out, to->offset + (outer->size - 1) * outer->stride + rest * inner->stride, zero);
}

/* *did false: not by parts. */
static rl_status convert_parts(rl_gpu *g, const rl_desc *to, void *out, const rl_desc *from, const void *in, bool *did) {
    uint32_t axis = RL_NONE, nodd = 0;
    *did = false;
    for (uint32_t a = 0; a < to->rank; a++)
        if (rl_desc_padded(to, a) != to->dim[a] || rl_desc_padded(from, a) != from->dim[a]) axis = a, nodd++;
    int64_t block = nodd == 1 && to->dtype == from->dtype && rl_desc_bits(to) >= 8 ? block_of(to, from, axis) : 0;
    if (!block) return RL_OK;
    for (uint32_t part = 0; part < 2; part++) {
        int64_t whole = to->dim[axis] / block * block, first = part ? whole : 0, n = part ? to->dim[axis] - whole : whole;
        rl_desc a = part_of(to, axis, first, n), b = part_of(from, axis, first, n);
        rl_loops l;
        if (!rl_desc_loops(&a, &b, &l)) return RL_OK; /* of both parts alike */
        RL_TRY(rl_gpu_move(g, &l, rl_desc_bits(to), out, a.offset, in, b.offset));
    }
    *did = true;
    return clear_rest(g, to, out, axis, block);
}

/* ---- element by element ---- */

static int64_t inner_size(const rl_desc *d, rl_digits at, uint32_t digit) {
    int64_t n = 1;
    for (uint32_t i = digit + 1; i < at.first + at.n; i++) n *= d->digit[i].size;
    return n;
}

static void set_source(rl_p_recode *p, const rl_desc *from) {
    for (uint32_t a = 0; a < from->rank; a++) {
        rl_digits at = rl_desc_axis(from, a);
        for (uint32_t i = at.first; i < at.first + at.n; i++) {
            if (from->digit[i].size <= 1) continue;
            p->source[p->nfrom++] = (rl_p_source){rl_divisor_of((uint32_t)inner_size(from, at, i)), rl_divisor_of((uint32_t)from->digit[i].size),
                                                  a, from->digit[i].stride};
        }
    }
}

/* Where nothing is converted the bits move, whatever number they are: a NaN stays the one it is. */
static int32_t as_bits(int32_t type, uint32_t bits) {
    return bits == 64 ? RL_I64 : bits == 32 ? RL_U32 : bits == 16 ? RL_U16 : bits == 8 ? RL_U8 : type;
}

static rl_status launch_recode(rl_gpu *g, const rl_desc *to, void *out, const rl_desc *from, const void *in) {
    rl_p_recode p = {.to = out, .from = in, .to0 = to->offset, .from0 = from->offset, .count = 1, .naxis = to->rank};
    uint8_t order[RL_DESC_DIGITS];
    int64_t count = 1;
    p.to_type = to->dtype, p.from_type = from->dtype;
    if (to->dtype == from->dtype) p.to_type = p.from_type = as_bits(to->dtype, rl_desc_bits(to));
    rl_desc_order(to, order);
    for (uint32_t a = 0; a < to->rank; a++) p.dim[a] = (uint32_t)to->dim[a];
    for (uint32_t i = 0; i < to->ndigit; i++) {
        const rl_digit *d = &to->digit[order[i]];
        if (__builtin_mul_overflow(count, d->size, &count) || count > INT32_MAX) return RL_ELIMIT;
        if (d->size == 1) continue;
        int64_t weight = inner_size(to, rl_desc_axis(to, d->axis), order[i]);
        p.digit[p.nto++] = (rl_p_digit){rl_divisor_of((uint32_t)d->size), d->axis, (uint32_t)weight, d->stride};
    }
    set_source(&p, from);
    p.count = (uint32_t)count;
    return count ? rl_gpu_launch(g, RL_GPU_recode, rl_gpu_blocks(count), &p, sizeof p) : RL_OK;
}

rl_status rl_gpu_convert(rl_gpu *g, const rl_desc *to, void *out, const rl_desc *from, const void *in) {
    rl_loops l;
    bool did;
    if (rl_desc_loops(to, from, &l)) return rl_gpu_move(g, &l, rl_desc_bits(to), out, to->offset, in, from->offset);
    RL_TRY(convert_parts(g, to, out, from, in, &did));
    if (did) return RL_OK;
    return launch_recode(g, to, out, from, in);
}
