/* Conversions: see convert.h. */
#include "convert.h"

#include <string.h>

#include "number.h"

enum {
    UNITS = 2 * RL_DESC_DIGITS, LOOPS = UNITS + RL_DESC_RANK,
    SHARE = 2 << 20 /* bytes that one thread moves in twice the time that it takes to start another */
};

typedef struct { rl_dtype to, from; } types; /* where numbers are converted */

typedef struct {
    const rl_desc *to, *from; /* from NULL: one element, everywhere */
    int64_t low[RL_DESC_RANK], high[RL_DESC_RANK]; /* the indices to move */
    rl_nest nest;
    const rl_threads *threads;
} mover;

/* Both sides step evenly from a multiple of unit[i] to the next below unit[i + 1]; or, where the units do not divide each other, one by
 * one between multiples of any of them (chain false). */
typedef struct { uint32_t n; int64_t unit[UNITS + 1]; bool chain; } units;

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

static void find_units(const mover *b, uint32_t a, units *u) {
    u->n = 1, u->unit[0] = 1, u->chain = true;
    add_units(u, b->to, a);
    if (b->from) add_units(u, b->from, a);
    for (uint32_t i = 1; i < u->n; i++) u->chain = u->chain && u->unit[i] % u->unit[i - 1] == 0;
}

static void push(mover *b, uint32_t a, int64_t n, int64_t at, int64_t step) {
    if (n == 1) return;
    b->nest.loop[b->nest.n++] = (rl_loop){n, rl_desc_step(b->to, a, at + step) - rl_desc_step(b->to, a, at),
                             b->from ? rl_desc_step(b->from, a, at + step) - rl_desc_step(b->from, a, at) : 0};
}

/* Adds the loops of the longest run from index `at`; returns how far it goes. */
static int64_t push_run(mover *b, uint32_t a, const units *u, int64_t at) {
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

static void move_axes(mover *b, uint32_t a, int64_t to, int64_t from) {
    if (a == b->to->rank) {
        b->nest.to_at = to;
        b->nest.from_at = from;
        rl_nest_move(&b->nest, b->threads);
        return;
    }
    units u;
    uint32_t n = b->nest.n;
    find_units(b, a, &u);
    for (int64_t at = b->low[a], run; at < b->high[a]; at += run) {
        run = push_run(b, a, &u, at);
        move_axes(b, a + 1, to + rl_desc_step(b->to, a, at), b->from ? from + rl_desc_step(b->from, a, at) : 0);
        b->nest.n = n;
    }
}

/* Where each axis is one loop on both sides. */
static void move_strides(mover *b) {
    b->nest.to_at = b->to->offset;
    b->nest.from_at = b->from->offset;
    b->nest.n = b->to->rank;
    for (uint32_t a = 0; a < b->nest.n; a++) b->nest.loop[a] = (rl_loop){b->to->dim[a], b->to->digit[a].stride, b->from->digit[a].stride};
    rl_nest_move(&b->nest, b->threads);
}

/* Loops and indices are set where they are used: filling them takes as long as a small move. */
static void start(mover *b, const rl_desc *to, void *out, const rl_desc *from, const void *in, const rl_threads *threads) {
    b->to = to, b->from = from;
    b->threads = threads;
    b->nest.to = out, b->nest.from = in;
    b->nest.bits = rl_desc_bits(to);
    b->nest.convert = NULL, b->nest.how = NULL;
    b->nest.isa = RL_ISA_BEST;
    b->nest.n = 0;
}

/* ---- what others call ---- */

void rl_move_line(int32_t dtype, void *out, int64_t out_at, int64_t out_step, const void *in, int64_t in_at, int64_t in_step, int64_t n) {
    rl_nest b = {.to = out, .from = in, .to_at = out_at, .from_at = in_at, .bits = rl_dtype_bits((rl_dtype)dtype), .n = 1,
                .loop = {{n, out_step, in_step}}};
    rl_nest_move(&b, NULL);
}

/* The padding is what has axis a beyond its dim, and the axes before it within theirs, for each a. */
static void zero(const rl_desc *d, void *out, bool elements, const rl_threads *threads) {
    static const char none[16];
    bool padded = elements;
    for (uint32_t a = 0; a < d->rank; a++) padded = padded || rl_desc_padded(d, a) != d->dim[a];
    if (!padded) return;
    mover b;
    start(&b, d, out, NULL, none, threads);
    for (uint32_t a = 0; a <= d->rank; a++) {
        if (a == d->rank && !elements) break;
        for (uint32_t i = 0; i < d->rank; i++) {
            b.low[i] = i == a ? d->dim[i] : 0;
            b.high[i] = i < a ? d->dim[i] : rl_desc_padded(d, i);
        }
        move_axes(&b, 0, d->offset, 0);
    }
}

void rl_desc_zero(const rl_desc *d, void *out, bool elements) {
    zero(d, out, elements, NULL);
}

static rl_status check_buffers(const rl_desc *to, const char *out, size_t nout, const rl_desc *from, const char *in, size_t nin,
                               rl_error *e) {
    size_t wout = (size_t)rl_desc_bytes(to), win = (size_t)rl_desc_bytes(from);
    if (nout < wout) return rl_desc_fail(e, RL_EUSAGE, "the output buffer has %zu bytes, its layout needs %zu", nout, wout);
    if (nin < win) return rl_desc_fail(e, RL_EUSAGE, "the input buffer has %zu bytes, its layout needs %zu", nin, win);
    if (wout) RL_WANTS(e, out);
    if (win) RL_WANTS(e, in);
    uintptr_t o = (uintptr_t)out, i = (uintptr_t)in;
    bool apart = wout == 0 || win == 0 || o + wout <= i || i + win <= o, same = o == i && to->dtype == from->dtype && rl_desc_equal(to, from);
    if (!apart && !same) return rl_desc_fail(e, RL_EUSAGE, "the output buffer overlaps the input's");
    return RL_OK;
}

static rl_status check_pair(const rl_desc *to, const rl_desc *from, rl_error *e) {
    RL_TRY(rl_desc_check(from, 0, e));
    RL_TRY(rl_desc_check(to, 1, e));
    if (to->rank != from->rank)
        return rl_desc_fail(e, RL_EUSAGE, "the two layouts have ranks %u and %u", from->rank, to->rank);
    for (uint32_t a = 0; a < to->rank; a++)
        if (to->dim[a] != from->dim[a])
            return rl_desc_fail(e, RL_EUSAGE, "axis %u has %lld elements in one layout and %lld in the other", a, (long long)from->dim[a],
                                (long long)to->dim[a]);
    return RL_OK;
}

static void convert_run(const void *how, void *to, int64_t to_at, int64_t to_step, const void *from, int64_t from_at, int64_t from_step,
                        int64_t n) {
    const types *t = how;
    rl_convert_run((rl_run){t->to, to, to_at, to_step}, (rl_run){t->from, (char *)(uintptr_t)from, from_at, from_step}, n, true);
}

static rl_status move(const rl_desc *to, void *out, size_t nout, const rl_desc *from, const void *in, size_t nin, const rl_threads *threads,
                      rl_error *e) {
    types t = {(rl_dtype)to->dtype, (rl_dtype)from->dtype};
    mover b;
    RL_TRY(check_pair(to, from, e));
    start(&b, to, out, from, in, threads);
    if (t.to != t.from) {
        if (!rl_is_number((rl_dtype)to->dtype) || !rl_is_number((rl_dtype)from->dtype))
            return rl_desc_fail(e, RL_EUSAGE, "elements of type %s cannot become %s", rl_dtype_name(t.from), rl_dtype_name(t.to));
        b.nest.convert = convert_run;
        b.nest.how = &t;
    }
    RL_TRY(check_buffers(to, out, nout, from, in, nin, e));
    if (rl_desc_is_strided(to) && rl_desc_is_strided(from)) {
        if (out != in) move_strides(&b);
        return RL_OK;
    }
    memset(b.low, 0, to->rank * sizeof *b.low);
    memcpy(b.high, to->dim, to->rank * sizeof *to->dim);
    if (out != in) move_axes(&b, 0, to->offset, from->offset);
    zero(to, out, false, threads);
    return RL_OK;
}

rl_status rl_move(const rl_desc *to, void *out, size_t nout, const rl_desc *from, const void *in, size_t nin, const rl_move_options *options,
                  rl_error *e) {
    rl_move_options o = {0};
    RL_WANTS(e, to, from);
    if (options) memcpy(&o, options, RL_MIN(options->struct_size, sizeof o));
    if (to->dtype == from->dtype) o.threads = (uint32_t)RL_MIN(o.threads, nout / SHARE);
    if (o.threads <= 1) return move(to, out, nout, from, in, nin, NULL, e);
    rl_pool *pool = rl_pool_new(o.threads);
    if (!pool) return rl_desc_fail(e, RL_ENOMEM, "no memory, or no %u threads", o.threads);
    rl_threads threads = rl_pool_threads(pool);
    rl_status s = move(to, out, nout, from, in, nin, &threads, e);
    rl_pool_free(pool);
    return s;
}

rl_status rl_desc_convert(const rl_desc *to, void *out, size_t nout, const rl_desc *from, const void *in, size_t nin, rl_error *e) {
    RL_WANTS(e, to, from);
    if (to->dtype != from->dtype) return rl_desc_fail(e, RL_EUSAGE, "the two layouts have not the same element type");
    return move(to, out, nout, from, in, nin, NULL, e);
}
