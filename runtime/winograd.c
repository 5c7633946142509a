/* Winograd's convolutions: see winograd.h. */
#include "winograd.h"

#include <string.h>

#include "panels.h"

enum { N = RL_AXIS_N, D = RL_AXIS_D, H = RL_AXIS_H, W = RL_AXIS_W };
enum { SIDE = 4, PLACES = SIDE * SIDE, OUT = 2, TAPS = 3, ROWS = 24 /* that products like */, LEVEL2 = 1 << 16 /* floats of the room */ };

bool rl_winograd_can(const rl_direct *d) {
    bool can = !d->depthwise && d->kernel[D] == 1 && d->stride[D] == 1 && d->before[D] == 0 && d->in[D] == d->out[D];
    for (int i = H; i <= W; i++) can = can && d->kernel[i] == TAPS && d->stride[i] == 1 && d->dilation[i] == 1;
    return can;
}

/* ---- weights ---- */

int64_t rl_winograd_weights(const rl_direct *d) {
    return PLACES * rl_panels_count(d->channels, d->depth);
}

/* Three numbers `step` apart to four, `to_step` apart. */
static void spread_weights(const float *g, int64_t step, float *to, int64_t to_step) {
    float ends = g[0] + g[2 * step], middle = g[step];
    to[0] = g[0];
    to[to_step] = (ends + middle) / 2;
    to[2 * to_step] = (ends - middle) / 2;
    to[3 * to_step] = g[2 * step];
}

void rl_winograd_pack(const rl_direct *d, const float *w, float *room) {
    int64_t count = rl_panels_count(d->channels, d->depth), most = rl_rows_best()->width;
    for (int64_t panel = 0; panel < d->channels; panel += most) {
        int64_t end = RL_MIN(panel + most, d->channels), width = rl_panel_padded(end - panel);
        for (int64_t k = 0; k < d->depth; k++)
            for (int64_t c = panel; c < end; c++) {
                const float *g = w + (c * d->depth + k) * TAPS * TAPS;
                float lines[SIDE * TAPS], *to = room + panel * d->depth + k * width + c - panel;
                for (int64_t i = 0; i < TAPS; i++) spread_weights(g + i, TAPS, lines + i, TAPS);
                for (int64_t i = 0; i < SIDE; i++) spread_weights(lines + i * TAPS, 1, to + i * SIDE * count, count);
            }
    }
}

/* ---- tiles ---- */

rl_winograd_cut rl_winograd_cut_of(const rl_direct *d, int64_t threads) {
    rl_winograd_cut cut = {.columns = (d->out[W] + 1) / OUT, .rows = (d->out[H] + 1) / OUT};
    int64_t each = PLACES * (rl_panel_padded(d->depth) + rl_panel_padded(d->channels));
    cut.all = d->out[N] * d->out[D] * cut.rows * cut.columns;
    int64_t most = RL_MIN(LEVEL2 / each, (cut.all + threads - 1) / threads);
    cut.together = RL_MAX(ROWS, most / ROWS * ROWS);
    int64_t patch = rl_panel_padded(d->depth) * PLACES, lines = d->runs ? OUT * OUT * cut.together * rl_panel_padded(d->channels) : 0;
    cut.room = cut.together * each + PLACES * RL_PANEL_LANES + rl_panel_padded(d->depth) + RL_MAX(patch, lines); /* zeros, and a patch whose channels were apart, or lines */
    return cut;
}

typedef rl_winograd_corner corner;

rl_winograd_corner rl_winograd_corner_of(const rl_direct *d, const rl_winograd_cut *cut, int64_t tile) {
    int64_t line = tile / cut->columns, plane = line / cut->rows;
    return (corner){plane / d->out[D], plane % d->out[D], line % cut->rows * OUT, tile % cut->columns * OUT};
}

static void next_corner(const rl_direct *d, corner *o) {
    if ((o->w += OUT) < d->out[W]) return;
    o->w = 0;
    if ((o->h += OUT) < d->out[H]) return;
    o->h = 0;
    if (++o->d < d->out[D]) return;
    o->d = 0, o->n++;
}

static int64_t place(const int64_t *stride, const corner *o) {
    return o->n * stride[N] + o->d * stride[D] + o->h * stride[H] + o->w * stride[W];
}

/* Channels that are apart, side by side. */
static const float *collect(const rl_direct_input *in, const float *x, float *room) {
    for (int64_t k = 0; k < in->channels; k++) room[k] = x[k * in->step];
    return room;
}

/* What a tile reads of an input: places in the pads are zeros. room: for channels that are apart. */
static void find_patch(const rl_direct *d, const rl_direct_input *in, const corner *o, const float **patch, const float *zeros, float *room) {
    corner at = {o->n, o->d, o->h - d->before[H], o->w - d->before[W]};
    const float *x = in->view.p;
    const int64_t *stride = in->view.stride, first = place(stride, &at);
    for (int64_t i = 0; i < SIDE; i++)
        for (int64_t j = 0; j < SIDE; j++, patch++, room += rl_panel_padded(d->depth)) {
            bool inside = at.h + i >= 0 && at.h + i < d->in[H] && at.w + j >= 0 && at.w + j < d->in[W];
            *patch = inside ? x + (first + i * stride[H] + j * stride[W]) : zeros;
            if (inside && in->step != 1) *patch = collect(in, *patch, room);
        }
}

/* What a tile writes, from y on, of these strides, and adds to it. */
static void set_ends(const rl_direct *d, const corner *o, float *y, int64_t line, int64_t pixel, rl_winograd_tile *t) {
    int64_t add = place(d->add.stride, o);
    for (int64_t i = 0; i < OUT; i++)
        for (int64_t j = 0; j < OUT; j++) {
            bool inside = o->h + i < d->out[H] && o->w + j < d->out[W];
            t->y[OUT * i + j] = inside ? y + (i * line + j * pixel) : NULL;
            t->add[OUT * i + j] = inside && d->add.p ? d->add.p + (add + i * d->add.stride[H] + j * d->add.stride[W]) : NULL;
        }
}

/* ---- tiles with numbers that are not finite ---- */

/* A weight of three out of the four that it became. */
static float weight_back(const float *u, int64_t step, int64_t at) {
    return at == 0 ? u[0] : at == 1 ? u[step] - u[2 * step] : u[3 * step];
}

static float weight_of(const rl_direct *d, int64_t c, int64_t k, int64_t tap) {
    int64_t count = rl_panels_count(d->channels, d->depth), most = rl_rows_best()->width, panel = c / most * most;
    const float *u = d->w + panel * d->depth + k * RL_MIN(most, rl_panel_padded(d->channels - panel)) + c - panel;
    float line[SIDE];
    for (int64_t i = 0; i < SIDE; i++) line[i] = weight_back(u + i * SIDE * count, count, tap % TAPS);
    return weight_back(line, 1, tap / TAPS);
}

static float plain_sum(const rl_direct *d, const corner *o, int64_t c) {
    float sum = d->bias[c];
    for (int64_t tap = 0; tap < TAPS * TAPS; tap++) {
        corner at = {o->n, o->d, o->h - d->before[H] + tap / TAPS, o->w - d->before[W] + tap % TAPS};
        if (at.h < 0 || at.h >= d->in[H] || at.w < 0 || at.w >= d->in[W]) continue;
        int64_t from = 0;
        for (const rl_direct_input *in = d->x; in < d->x + d->nx; from += in++->channels) {
            const float *x = in->view.p + place(in->view.stride, &at);
            for (int64_t k = 0; k < in->channels; k++) sum += x[k * in->step] * weight_of(d, c, from + k, tap);
        }
    }
    return sum;
}

static void plain_tile(const rl_direct *d, const corner *o, const rl_winograd_tile *t) {
    for (int64_t i = 0; i < OUT * OUT; i++) {
        corner at = {o->n, o->d, o->h + i / OUT, o->w + i % OUT};
        for (int64_t c = 0; t->y[i] && c < d->channels; c++) {
            float v = plain_sum(d, &at, c) + (t->add[i] ? t->add[i][c] : 0);
            t->y[i][c] = v < d->low ? d->low : v > d->high ? d->high : v;
        }
    }
}

/* Sums of tiles from .. to - 1 of one line, which begins at o, to the output. */
static void gather_line(const rl_direct *d, const rl_winograd_cut *cut, corner o, int64_t from, int64_t to, const float *m, int64_t m_step, float *room) {
    const rl_direct_loops *loops = rl_direct_loops_of(d->isa);
    int64_t channels = rl_panel_padded(d->channels), pixels = RL_MIN(OUT * (to - from), d->out[W] - o.w), line = OUT * cut->together * channels;
    float *y = d->y + place(d->y_stride, &o);
    for (int64_t i = 0; i < to - from; i++, o.w += OUT) {
        rl_winograd_tile t = {.m = m + i * channels, .step = m_step, .bias = d->bias, .channels = d->channels, .low = d->low, .high = d->high};
        if (d->runs) set_ends(d, &o, room + i * OUT * channels, line, channels, &t);
        else set_ends(d, &o, y + i * OUT * d->y_stride[W], d->y_stride[H], d->y_stride[W], &t);
        if (!loops->gather(&t)) plain_tile(d, &o, &t);
    }
    for (int64_t i = 0; d->runs && i < RL_MIN((int64_t)OUT, d->out[H] - o.h); i++)
        loops->scatter(d->runs, room + i * line, channels, y + i * d->y_stride[H], d->y_stride[W], pixels, 0, d->channels);
}

void rl_winograd_run(const rl_direct *d, const rl_winograd_cut *cut, int64_t from, int64_t to, float *room) {
    const rl_direct_loops *loops = rl_direct_loops_of(d->isa);
    const rl_rows *rows = rl_rows_best();
    int64_t depth = rl_panel_padded(d->depth), channels = rl_panel_padded(d->channels), v_step = cut->together * depth + RL_PANEL_LANES, m_step = cut->together * channels;
    float *v = room, *m = v + PLACES * v_step, *zeros = m + PLACES * m_step;
    corner o = rl_winograd_corner_of(d, cut, from);
    memset(zeros, 0, (size_t)depth * sizeof *zeros);
    for (int64_t i = from; i < to; i++, next_corner(d, &o)) {
        const float *patch[PLACES];
        float *at = v + (i - from) * depth;
        for (const rl_direct_input *in = d->x; in < d->x + d->nx; at += in++->channels) { /* over what the last one's vectors left */
            find_patch(d, in, &o, patch, zeros, zeros + depth);
            loops->spread(patch, in->channels, at, v_step);
        }
    }
    for (int64_t i = 0; i < PLACES; i++)
        for (int64_t j = 0; j < channels; j += rows->width) {
            const float *w = d->w + i * rl_panels_count(d->channels, d->depth) + j * d->depth;
            int64_t width = RL_MIN(rows->width, channels - j);
            rows->tile(m + i * m_step + j, channels, v + i * v_step, depth, w, width, width, to - from, d->depth, NULL, 0);
        }
    for (int64_t i = from, end; i < to; i = end) {
        end = RL_MIN(to, i - i % cut->columns + cut->columns);
        gather_line(d, cut, rl_winograd_corner_of(d, cut, i), i, end, m + (i - from) * channels, m_step, zeros + depth);
    }
}
