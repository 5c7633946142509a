/* Conversions: see convert.h. */
#include "convert.h"

#include "rt.h"

enum { UNITS = 2 * RL_DESC_DIGITS, LOOPS = UNITS + RL_DESC_RANK };

typedef struct { int64_t n, to, from; } loop; /* steps in elements */

typedef struct {
    const rl_desc *to, *from; /* from NULL: one element, everywhere */
    void *out;
    const void *in;
    int64_t low[RL_DESC_RANK], high[RL_DESC_RANK]; /* the indices to move */
    loop loop[LOOPS];
    uint32_t n;
} box;

/* Both sides step evenly from a multiple of unit[i] to the next below unit[i + 1]; or, where the units do not divide each other, one by
 * one between multiples of any of them (chain false). */
typedef struct { uint32_t n; int64_t unit[UNITS + 1]; bool chain; } units;

/* ---- one box ---- */

static void move_box(const box *b, uint32_t first, int64_t to, int64_t from) {
    if (b->n - first > RL_RANK) {
        const loop *l = &b->loop[first];
        for (int64_t i = 0; i < l->n; i++) move_box(b, first + 1, to + i * l->to, from + i * l->from);
        return;
    }
    rl_rt rt = {0};
    rl_storage out = {.rt = &rt, .p = b->out, .ref = 1, .borrowed = true},
        in = {.rt = &rt, .p = (void *)(uintptr_t)b->in, .ref = 1, .borrowed = true};
    rl_tensor t = {.kind = RL_TENSOR, .dtype = (rl_dtype)b->to->dtype, .rank = b->n - first, .offset = to, .mem = &out}, f = t;
    f.offset = from;
    f.mem = &in;
    for (uint32_t i = 0; i < t.rank; i++) {
        const loop *l = &b->loop[first + i];
        t.dim[i] = f.dim[i] = l->n;
        t.stride[i] = l->to;
        f.stride[i] = l->from;
    }
    rl_move(&rt, &t, &f);
}

/* ---- runs of an axis ---- */

static void add_units(units *u, const rl_desc *d, uint32_t a) {
    rl_digits x = rl_desc_axis(d, a);
    int64_t unit = 1;
    for (uint32_t k = x.n; k-- > 1;) {
        uint32_t at = u->n;
        unit *= d->digit[x.first + k].size;
        while (at > 0 && u->unit[at - 1] > unit) at--;
        if (at > 0 && u->unit[at - 1] == unit) continue;
        for (uint32_t i = u->n++; i > at; i--) u->unit[i] = u->unit[i - 1];
        u->unit[at] = unit;
    }
}

static units units_of(const box *b, uint32_t a) {
    units u = {.n = 1, .unit = {1}, .chain = true};
    add_units(&u, b->to, a);
    if (b->from) add_units(&u, b->from, a);
    for (uint32_t i = 1; i < u.n; i++) u.chain = u.chain && u.unit[i] % u.unit[i - 1] == 0;
    return u;
}

static void push(box *b, uint32_t a, int64_t n, int64_t at, int64_t step) {
    if (n == 1) return;
    b->loop[b->n++] = (loop){n, rl_desc_step(b->to, a, at + step) - rl_desc_step(b->to, a, at),
                             b->from ? rl_desc_step(b->from, a, at + step) - rl_desc_step(b->from, a, at) : 0};
}

/* Adds the loops of the longest run from index `at`; returns how far it goes. */
static int64_t push_run(box *b, uint32_t a, const units *u, int64_t at) {
    int64_t end = b->high[a];
    uint32_t k = 0;
    if (!u->chain) {
        for (uint32_t i = 1; i < u->n; i++) end = RL_MIN(end, (at / u->unit[i] + 1) * u->unit[i]);
        push(b, a, end - at, at, 1);
        return end - at;
    }
    while (k + 1 < u->n && at % u->unit[k + 1] == 0 && u->unit[k + 1] <= end - at) k++;
    if (k + 1 < u->n) end = RL_MIN(end, (at / u->unit[k + 1] + 1) * u->unit[k + 1]);
    int64_t n = (end - at) / u->unit[k];
    push(b, a, n, at, u->unit[k]);
    for (uint32_t i = k; i-- > 0;) push(b, a, u->unit[i + 1] / u->unit[i], at, u->unit[i]);
    return n * u->unit[k];
}

static void move_axes(box *b, uint32_t a, int64_t to, int64_t from) {
    if (a == b->to->rank) {
        move_box(b, 0, to, from);
        return;
    }
    units u = units_of(b, a);
    uint32_t n = b->n;
    for (int64_t at = b->low[a], run; at < b->high[a]; at += run) {
        run = push_run(b, a, &u, at);
        move_axes(b, a + 1, to + rl_desc_step(b->to, a, at), b->from ? from + rl_desc_step(b->from, a, at) : 0);
        b->n = n;
    }
}

/* ---- what others call ---- */

void rl_move_line(int32_t dtype, void *out, int64_t out_at, int64_t out_step, const void *in, int64_t in_at, int64_t in_step, int64_t n) {
    rl_desc type = {.dtype = dtype};
    box b = {.to = &type, .out = out, .in = in, .n = 1, .loop = {{n, out_step, in_step}}};
    move_box(&b, 0, out_at, in_at);
}

/* The padding is what has axis a beyond its dim, and the axes before it within theirs, for each a. */
void rl_desc_zero(const rl_desc *d, void *out, bool elements) {
    static const char zero[16];
    box b = {.to = d, .out = out, .in = zero};
    for (uint32_t a = 0; a <= d->rank; a++) {
        if (a == d->rank && !elements) break;
        for (uint32_t i = 0; i < d->rank; i++) {
            b.low[i] = i == a ? d->dim[i] : 0;
            b.high[i] = i < a ? d->dim[i] : rl_desc_padded(d, i);
        }
        move_axes(&b, 0, d->offset, 0);
    }
}

static rl_status check_buffers(const rl_desc *to, const char *out, size_t nout, const rl_desc *from, const char *in, size_t nin,
                               rl_error *e) {
    size_t wout = (size_t)rl_desc_bytes(to), win = (size_t)rl_desc_bytes(from);
    if (nout < wout) return rl_desc_fail(e, RL_EUSAGE, "the output buffer has %zu bytes, its layout needs %zu", nout, wout);
    if (nin < win) return rl_desc_fail(e, RL_EUSAGE, "the input buffer has %zu bytes, its layout needs %zu", nin, win);
    uintptr_t o = (uintptr_t)out, i = (uintptr_t)in;
    bool apart = wout == 0 || win == 0 || o + wout <= i || i + win <= o;
    if (!apart && !(o == i && rl_desc_equal(to, from))) return rl_desc_fail(e, RL_EUSAGE, "the output buffer overlaps the input's");
    return RL_OK;
}

rl_status rl_desc_convert(const rl_desc *to, void *out, size_t nout, const rl_desc *from, const void *in, size_t nin, rl_error *e) {
    box b = {.to = to, .from = from, .out = out, .in = in};
    RL_TRY(rl_desc_check(from, 0, e));
    RL_TRY(rl_desc_check(to, 1, e));
    if (to->dtype != from->dtype || to->rank != from->rank)
        return rl_desc_fail(e, RL_EUSAGE, "the two layouts have not the same rank and element type");
    for (uint32_t a = 0; a < to->rank; a++) {
        if (to->dim[a] != from->dim[a])
            return rl_desc_fail(e, RL_EUSAGE, "axis %u has %lld elements in one layout and %lld in the other", a, (long long)from->dim[a],
                                (long long)to->dim[a]);
        b.high[a] = to->dim[a];
    }
    RL_TRY(check_buffers(to, out, nout, from, in, nin, e));
    if (out != in) move_axes(&b, 0, to->offset, from->offset);
    rl_desc_zero(to, out, false);
    return RL_OK;
}
