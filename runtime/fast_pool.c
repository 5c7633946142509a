/* Pools of planes that lie one after the other, as the channels of an image do: see fast.h.
 *
 * The largest number of a window is that of the largest of its lines, and so is its sum.  So the windows go along one dim after the other,
 * from the last on:   [.., D, H, W]  ->  [.., D, H, out W]  ->  [.., D, out H, out W]  ->  ...
 * Each is a walk over rows that are neighbours in memory: along the last dim over the windows' first places, their second ones, and so on; along
 * the others over whole lines. */
#include <math.h>
#include <string.h>

#include "fast.h"
#include "fast_pool.h"
#include "rows.h"

enum { BUFFER = 4096, GRAIN = 16384 }; /* floats of lines that go together; elements for a thread */

typedef struct {
    const rl_window *w;
    const rl_rows *rows;
    const float *x, *count; /* count: [out], what an average is divided by; NULL: a maximum */
    float *y, *room;        /* room: two buffers for each thread */
    int64_t planes, parts, size; /* parts: pieces of the planes; size: floats of a buffer */
} pools;

/* n numbers that count for nothing. */
static void clear(const pools *p, float *y, int64_t n) {
    const float none = p->count ? 0 : -INFINITY;
    if (n > 0) p->rows->choose(y, &(uint8_t){1}, &none, &none, (int64_t[]){0, 0, 0}, n);
}

/* y takes in n numbers of each row. */
static void take_in(const pools *p, float *y, const float *x, int64_t step, int64_t rows, int64_t n) {
    if (p->count) p->rows->reduce[RL_REDUCE_SUM].down(y, x, step, rows, n);
    else p->rows->most_down(y, x, step, rows, n);
}

/* Windows first .. first + n - 1 of some lines: of a copy with what counts for nothing around it, unless no window leaves its line. */
static void pool_lines(const pools *p, const float *x, float *y, int64_t lines, int64_t first, int64_t n) {
    float copy[BUFFER], whole[BUFFER];
    uint32_t d = p->w->r - 1;
    int64_t in = p->w->in[d], out = p->w->out[d], s = p->w->stride[d], reach = rl_window_reach(p->w, d), at = first * s - p->w->before[d];
    int64_t width = (n - 1) * s + reach, from = RL_MIN(RL_MAX(-at, 0), width), to = RL_MAX(RL_MIN(in - at, width), from);
    bool as_is = at == 0 && n == out && width <= in && lines * in <= BUFFER;
    if (as_is) width = in;
    for (int64_t l = 0; !as_is && l < lines; l++) {
        clear(p, copy + l * width, from);
        memcpy(copy + l * width + from, x + l * in + at + from, (size_t)(to - from) * sizeof *x);
        clear(p, copy + l * width + to, width - to);
    }
    clear(p, whole, lines * width);
    take_in(p, whole, as_is ? x : copy, p->w->dilation[d], p->w->kernel[d], lines * width - reach + 1);
    for (int64_t l = 0; l < lines; l++) {
        const float *a = whole + l * width;
        float *b = y + l * out + first;
        if (s == 1) memcpy(b, a, (size_t)n * sizeof *a);
        else if (s == 2) for (int64_t j = 0; j < n; j++) b[j] = a[2 * j];
        else for (int64_t j = 0; j < n; j++) b[j] = a[j * s];
    }
}

static void along_last(const pools *p, const float *x, float *y, int64_t lines) {
    uint32_t d = p->w->r - 1;
    int64_t in = p->w->in[d], out = p->w->out[d], s = p->w->stride[d], reach = rl_window_reach(p->w, d);
    int64_t some = RL_MIN(out, (BUFFER - reach) / s + 1), many = some == out ? RL_MAX(BUFFER / RL_MAX(in, (out - 1) * s + reach), 1) : 1;
    for (int64_t l = 0; l < lines; l += many)
        for (int64_t j = 0; j < out; j += some) pool_lines(p, x + l * in, y + l * out, RL_MIN(many, lines - l), j, RL_MIN(some, out - j));
}

/* x: [outer, in, inner]. Windows that follow each other and leave nothing out go at once. */
static void along(const pools *p, uint32_t d, const float *x, float *y, int64_t outer, int64_t inner) {
    int64_t in = p->w->in[d], out = p->w->out[d], s = p->w->stride[d], dilation = p->w->dilation[d], kernel = p->w->kernel[d];
    clear(p, y, outer * out * inner);
    for (int64_t k = 0; k < outer; k++, x += in * inner, y += out * inner)
        for (int64_t o = 0, m; o < out; o += m) {
            int64_t at = o * s - p->w->before[d], t = at < 0 ? RL_MIN((-at + dilation - 1) / dilation, kernel) : 0;
            int64_t end = at < in ? RL_MIN((in - at + dilation - 1) / dilation, kernel) : t;
            m = s == 1 && t == 0 && end == kernel ? RL_MIN(out - o, in - at - rl_window_reach(p->w, d) + 1) : 1;
            if (t < end) take_in(p, y + o * inner, x + (at + t * dilation) * inner, dilation * inner, end - t, m * inner);
        }
}

static void pool_plane(const pools *p, const float *x, float *y, float *room) {
    const rl_window *w = p->w;
    int64_t outer = rl_product(w->in, w->r - 1), inner = 1, n = rl_product(w->out, w->r);
    for (uint32_t d = w->r; d-- > 0;) {
        float *to = d == 0 ? y : room + (d & 1) * p->size;
        if (d + 1 == w->r) along_last(p, x, to, outer);
        else along(p, d, x, to, outer, inner);
        inner *= w->out[d];
        outer = d ? outer / w->in[d - 1] : 1;
        x = to;
    }
    if (p->count) p->rows->op[RL_ROW_DIV](y, y, p->count, 1, n, 0, 0);
}

static void pool_parts(void *arg, int64_t from, int64_t to) {
    const pools *p = arg;
    int64_t in = rl_product(p->w->in, p->w->r), out = rl_product(p->w->out, p->w->r);
    for (int64_t k = from; k < to; k++)
        for (int64_t i = p->planes * k / p->parts; i < p->planes * (k + 1) / p->parts; i++)
            pool_plane(p, p->x + i * in, p->y + i * out, p->room + 2 * k * p->size);
}

bool rl_pools_planes(const rl_call *c, const rl_tensor *x, const rl_window *w) {
    bool fits = !c->step->native && x->dtype == RL_F32 && rl_is_dense(x) && !rl_is_channels_last(x) && rl_product(w->out, w->r) > 0;
    for (uint32_t i = 0; i < w->r; i++) fits = fits && w->kernel[i] > 0;
    uint32_t d = w->r - 1;
    return fits && rl_window_reach(w, d) <= BUFFER / 2 && w->in[d] > 0;
}

rl_status rl_pool_planes(rl_call *c, const rl_tensor *x, const rl_window *w) {
    pools p = {.w = w, .rows = rl_rows_best(), .x = rl_data(x), .planes = x->dim[0] * x->dim[1], .size = 1};
    int64_t dim[RL_RANK], inner = 1;
    memcpy(dim, x->dim, 2 * sizeof *dim);
    memcpy(dim + 2, w->out, w->r * sizeof *dim);
    p.y = rl_data(rl_call_make(c, 0, RL_F32, x->rank, dim));
    for (uint32_t i = w->r - 1; i > 0; i--) {
        inner *= w->out[i];
        p.size = RL_MAX(p.size, rl_product(w->in, i) * inner);
    }
    p.parts = RL_MAX(RL_MIN(RL_MIN(rl_pool_size(c->rt->pool), p.planes), rl_numel(x) / GRAIN), 1);
    p.room = rl_data(rl_call_temp(c, RL_F32, 1, (int64_t[]){2 * p.parts * p.size}));
    if (c->arg == RL_POOL_AVERAGE) p.count = rl_pool_counts(c, w);
    rl_parallel(c->rt, p.parts, 1, pool_parts, &p);
    c->step->ran = "rows";
    return RL_OK;
}
