/* Direct convolutions: see direct.h. */
#include "direct.h"

#include <string.h>

#include "winograd.h"

enum { N = RL_AXIS_N, D = RL_AXIS_D, H = RL_AXIS_H, W = RL_AXIS_W, DIMS = RL_AXIS_DIMS };
enum { DEEP_WIDTH = 64, DEEP_TAPS = 9, LEVEL1 = 1 << 13, LEVEL2 = 1 << 17 }; /* of depthwise panels; floats that stay in a cache */

/* ---- weights ---- */

static int64_t taps_of(const rl_direct *d) {
    return d->kernel[D] * d->kernel[H] * d->kernel[W];
}

/* Channels of a panel. Depthwise: all, side by side as they lie, where the windows are small; else as many as stay in the first cache. */
static int64_t width_of(const rl_direct *d) {
    if (!d->depthwise) return rl_direct_loops_of(d->isa)->width;
    return taps_of(d) > DEEP_TAPS ? DEEP_WIDTH : d->channels;
}

static int64_t panels_of(const rl_direct *d) {
    return (d->channels + width_of(d) - 1) / width_of(d);
}

int64_t rl_direct_bias(const rl_direct *d) {
    return panels_of(d) * width_of(d);
}

int64_t rl_direct_weights(const rl_direct *d) {
    if (d->winograd) return rl_winograd_weights(d);
    return d->depthwise ? d->channels * taps_of(d) : panels_of(d) * width_of(d) * d->depth * taps_of(d);
}

void rl_direct_pack(rl_direct *d, const float *w, const float *bias, float *room) {
    int64_t taps = taps_of(d), width = width_of(d);
    float *to = room + rl_direct_bias(d);
    memset(room, 0, (size_t)(rl_direct_bias(d) + rl_direct_weights(d)) * sizeof *room);
    memcpy(room, bias, (size_t)d->channels * sizeof *room);
    d->bias = room;
    d->w = to;
    if (d->winograd) {
        rl_winograd_pack(d, w, to);
        return;
    }
    for (int64_t c = 0; c < d->channels; c++)
        for (int64_t k = 0; k < (d->depthwise ? 1 : d->depth); k++)
            for (int64_t t = 0; t < taps; t++) {
                if (d->depthwise)
                    to[t * d->channels + c] = w[c * taps + t];
                else
                    to[((c / width * taps + t) * d->depth + k) * width + c % width] = w[(c * d->depth + k) * taps + t];
            }
}

/* ---- where which taps are ---- */

typedef struct {
    int64_t from, to, tap, end;
} segment; /* outputs of a dim whose taps in the input are tap .. end - 1 */

/* Outputs whose windows have the same taps in the input; a tap's places are from the window's first and from the panel's weights. */
typedef struct {
    const segment *h, *v;
    const rl_direct_tap *tap; /* [ntap] of each input */
    int64_t ntap;
} area;

typedef struct {
    const rl_direct *d;
    const rl_direct_loops *loops;
    const rl_rows *rows;
    segment *segment[DIMS];
    int64_t nsegment[DIMS];
    area *area;                           /* [segments of D][of H][of W] */
    int64_t taps, panels, together;       /* of the weights; of these panels at a time */
    int64_t lines, columns, line, column; /* pieces of a plane; how many lines and columns each has at most */
} walk;

static segment reach(const rl_direct *d, int i, int64_t o) {
    int64_t at = o * d->stride[i] - d->before[i], step = d->dilation[i];
    int64_t first = at < 0 ? (-at + step - 1) / step : 0, end = at < d->in[i] ? (d->in[i] - at + step - 1) / step : 0;
    end = RL_MIN(end, d->kernel[i]);
    return (segment){o, o + 1, RL_MIN(first, end), end};
}

static void find_segments(rl_arena *tmp, walk *w, int i) {
    const rl_direct *d = w->d;
    segment *s = w->segment[i] = rl_new(tmp, segment, d->out[i]);
    int64_t n = 0;
    for (int64_t o = 0; o < d->out[i]; o++) {
        segment at = reach(d, i, o);
        if (n && s[n - 1].tap == at.tap && s[n - 1].end == at.end)
            s[n - 1].to++;
        else
            s[n++] = at;
    }
    w->nsegment[i] = n;
}

static void list_taps(rl_arena *tmp, const walk *w, const segment *at, area *a) {
    const rl_direct *d = w->d;
    const segment *h = a->h, *v = a->v;
    int64_t size = d->depthwise ? d->channels : d->depth * width_of(d), n = 0, from = 0;
    a->ntap = (at->end - at->tap) * (h->end - h->tap) * (v->end - v->tap);
    rl_direct_tap *tap = rl_new(tmp, rl_direct_tap, d->nx * a->ntap);
    for (const rl_direct_input *x = d->x; x < d->x + d->nx; from += x++->channels) {
        const int64_t *stride = x->view.stride, first = from * (d->depthwise ? 1 : width_of(d));
        for (int64_t i = at->tap; i < at->end; i++)
            for (int64_t j = h->tap; j < h->end; j++)
                for (int64_t k = v->tap; k < v->end; k++, n++) {
                    tap[n].x = i * d->dilation[D] * stride[D] + j * d->dilation[H] * stride[H] + k * d->dilation[W] * stride[W];
                    tap[n].w = ((i * d->kernel[H] + j) * d->kernel[W] + k) * size + first;
                }
    }
    a->tap = tap;
}

static void find_areas(rl_arena *tmp, walk *w) {
    for (int i = D; i < DIMS; i++) find_segments(tmp, w, i);
    area *a = w->area = rl_new(tmp, area, w->nsegment[D] * w->nsegment[H] * w->nsegment[W]);
    for (int64_t i = 0; i < w->nsegment[D]; i++)
        for (int64_t h = 0; h < w->nsegment[H]; h++)
            for (int64_t v = 0; v < w->nsegment[W]; v++, a++) {
                a->h = &w->segment[H][h], a->v = &w->segment[W][v];
                list_taps(tmp, w, &w->segment[D][i], a);
            }
}

/* ---- an area ---- */

typedef struct {
    int64_t n, d, from[2], to[2], panel, end;
} piece; /* from, to: of H and W */

static int64_t place(const int64_t *stride, const piece *p, int64_t h, int64_t v) {
    return p->n * stride[N] + p->d * stride[D] + h * stride[H] + v * stride[W];
}

/* What of an area lies in a piece, from channel `at` on, of these inputs. */
typedef struct {
    const area *a;
    int64_t h0, h1, v0, v1, at, channels;
    uint32_t first, count;
    bool down; /* strips go along the longer side */
} part;

static void set_inputs(const walk *w, const piece *p, const part *q, rl_strip_input *in) {
    const rl_direct *d = w->d;
    const int64_t o[] = {0, p->d, q->h0, q->v0};
    for (uint32_t k = 0; k < q->count; k++) {
        const rl_direct_input *x = &d->x[q->first + k];
        int64_t start = p->n * x->view.stride[N];
        for (int i = D; i < DIMS; i++) start += (o[i] * d->stride[i] - d->before[i]) * x->view.stride[i];
        in[k] = (rl_strip_input){.x = x->view.p,
                                 .start = start,
                                 .step = x->view.stride[q->down ? H : W] * d->stride[q->down ? H : W],
                                 .channel_step = x->step,
                                 .depth = x->channels,
                                 .tap = q->a->tap + (q->first + k) * q->a->ntap};
    }
}

/* Do the channels lie in one run? Where that is from the pixel, in *at, for the first of them. */
static bool is_in_run(const rl_direct *d, int64_t first, int64_t channels, int64_t *at) {
    const rl_direct_runs *r = d->runs;
    *at = r ? r->at[first / r->n] + first % r->n : first;
    return !r || first % r->n + channels <= r->n;
}

/* skip: channels of the first input before those that are read. */
static void run_part(const walk *w, const piece *p, const part *q, int64_t skip) {
    const rl_direct *d = w->d;
    int along = q->down ? H : W, across = q->down ? W : H;
    rl_strip_input in[RL_DIRECT_INPUTS];
    set_inputs(w, p, q, in);
    in[0].start += skip;
    rl_direct_strip s = {.w = d->w + (d->depthwise ? skip : q->at * d->depth * w->taps),
                  .bias = d->bias + q->at,
                  .y_step = d->y_stride[along],
                  .add_step = d->add.stride[along],
                  .in = in,
                  .nin = q->count,
                  .ntap = q->a->ntap,
                  .pixels = q->down ? q->h1 - q->h0 : q->v1 - q->v0,
                  .channels = q->channels,
                  .low = d->low,
                  .high = d->high,
                  .first = q->at};
    int64_t at;
    if (!is_in_run(d, q->at, q->channels, &at)) s.runs = d->runs, at = 0;
    const int64_t *stride = d->x[q->first].view.stride;
    if (d->depthwise && !q->down && d->in[H] * d->in[W] * d->channels > 2 * LEVEL2) /* what the next line reads first, of a large image */
        s.ahead = ((d->kernel[H] - 1) * d->dilation[H] + d->stride[H]) * stride[H] + stride[W];
    for (int64_t k = 0, n = q->down ? q->v1 - q->v0 : q->h1 - q->h0; k < n; k++) {
        int64_t h_at = q->down ? q->h0 : q->h0 + k, v_at = q->down ? q->v0 + k : q->v0;
        s.y = d->y + place(d->y_stride, p, h_at, v_at) + at;
        if (d->add.p) s.add = d->add.p + place(d->add.stride, p, h_at, v_at) + q->at;
        if (d->depthwise)
            w->loops->depthwise(&s);
        else
            w->loops->dense(&s);
        for (uint32_t i = 0; i < q->count; i++) in[i].start += d->stride[across] * d->x[q->first + i].view.stride[across];
    }
}

/* What lies in the area of a piece, one panel: of all inputs, or depthwise of each input its own channels. */
static void run_area(const walk *w, const piece *p, int64_t panel, const area *a) {
    const rl_direct *d = w->d;
    int64_t width = width_of(d), at = panel * width, end = RL_MIN(at + width, d->channels), from = 0;
    part q = {.a = a,
              .h0 = RL_MAX(a->h->from, p->from[0]),
              .h1 = RL_MIN(a->h->to, p->to[0]),
              .v0 = RL_MAX(a->v->from, p->from[1]),
              .v1 = RL_MIN(a->v->to, p->to[1]),
              .at = at,
              .channels = end - at,
              .count = d->nx};
    if (q.h0 >= q.h1 || q.v0 >= q.v1) return;
    q.down = q.h1 - q.h0 > q.v1 - q.v0;
    if (!d->depthwise) run_part(w, p, &q, 0);
    q.count = 1;
    for (uint32_t i = 0; d->depthwise && i < d->nx; from += d->x[i++].channels) {
        q.at = RL_MAX(at, from), q.first = i;
        q.channels = RL_MIN(end, from + d->x[i].channels) - q.at;
        if (q.channels > 0) run_part(w, p, &q, q.at - from);
    }
}

/* ---- post-ops ---- */

static void run_post(const walk *w, const rl_post *o, float *y, int64_t y_step, const float *b, int64_t b_step,
                     int64_t pixels, int64_t channels) {
    rl_row_loop *loop = w->rows->op[o->op];
    if (y_step == channels && (!b || b_step == channels))
        loop(y, y, b, 1, pixels * channels, o->p, o->q);
    else
        for (int64_t i = 0; i < pixels; i++)
            loop(y + i * y_step, y + i * y_step, b ? b + i * b_step : NULL, 1, channels, o->p, o->q);
}

/* Channels from .. from + n - 1, which lie side by side from y on. */
static void run_posts_at(const walk *w, const piece *p, float *y, int64_t from, int64_t n) {
    const rl_direct *d = w->d;
    for (int64_t h = p->from[0]; h < p->to[0]; h++)
        for (uint32_t i = 0; i < d->npost; i++) {
            const rl_direct_view *b = &d->operand[i];
            run_post(w, &d->post[i], y + place(d->y_stride, p, h, p->from[1]), d->y_stride[W],
                     b->p ? b->p + place(b->stride, p, h, p->from[1]) + from : NULL, b->stride[W], p->to[1] - p->from[1], n);
        }
}

static void run_posts(const walk *w, const piece *p) {
    const rl_direct *d = w->d;
    int64_t at = p->panel * width_of(d), end = RL_MIN(p->end * width_of(d), d->channels);
    for (int64_t n; at < end; at += n) {
        int64_t y;
        n = end - at;
        if (!is_in_run(d, at, n, &y)) n = d->runs->n - at % d->runs->n;
        run_posts_at(w, p, d->y + y, at, n);
    }
}

static void run_pieces(void *arg, int64_t from, int64_t to) {
    const walk *w = arg;
    const rl_direct *d = w->d;
    for (int64_t i = from; i < to; i++) {
        int64_t left = i, column = left % w->columns, line = (left /= w->columns) % w->lines,
                plane = (left /= w->lines) % (d->out[N] * d->out[D]);
        left /= d->out[N] * d->out[D];
        piece p = {.n = plane / d->out[D], .d = plane % d->out[D], .panel = left * w->together};
        p.end = RL_MIN(p.panel + w->together, w->panels);
        p.from[0] = line * d->out[H] / w->lines, p.to[0] = (line + 1) * d->out[H] / w->lines;
        p.from[1] = column * d->out[W] / w->columns, p.to[1] = (column + 1) * d->out[W] / w->columns;
        int64_t areas = w->nsegment[H] * w->nsegment[W];
        const area *a = w->area;
        for (const segment *at = w->segment[D]; at->to <= p.d; at++) a += areas;
        for (int64_t k = p.panel; k < p.end; k++)
            for (int64_t n = 0; n < areas; n++) run_area(w, &p, k, &a[n]);
        if (d->npost) run_posts(w, &p);
    }
}

/* ---- Winograd's tiles ---- */

typedef struct {
    const walk *w;
    rl_winograd_cut cut;
    float *room;
    int64_t workers;
} tiling;

/* Tiles from .. to - 1, of one row of tiles after the other. */
static void post_tiles(const tiling *t, int64_t from, int64_t to) {
    const rl_direct *d = t->w->d;
    for (int64_t end; from < to; from = end) {
        rl_winograd_corner o = rl_winograd_corner_of(d, &t->cut, from);
        end = RL_MIN(to, from - from % t->cut.columns + t->cut.columns);
        piece p = {.n = o.n, .d = o.d, .from = {o.h, o.w}, .end = t->w->panels};
        p.to[0] = RL_MIN(o.h + 2, d->out[H]), p.to[1] = RL_MIN(o.w + 2 * (end - from), d->out[W]);
        run_posts(t->w, &p);
    }
}

static void run_tiles(void *arg, int64_t from, int64_t to) {
    const tiling *t = arg;
    for (int64_t i = from; i < to; i++) {
        int64_t at = t->cut.all * i / t->workers, all = t->cut.all * (i + 1) / t->workers;
        for (int64_t end; at < all; at = end) {
            end = RL_MIN(all, at + t->cut.together);
            rl_winograd_run(t->w->d, &t->cut, at, end, t->room + i * t->cut.room);
            if (t->w->d->npost) post_tiles(t, at, end);
        }
    }
}

static void run_winograd(rl_rt *rt, const walk *w) {
    tiling t = {.w = w, .workers = rl_pool_size(rt->pool)};
    t.cut = rl_winograd_cut_of(w->d, t.workers);
    rl_tensor room = rl_tensor_new(rt, RL_F32, 1, (int64_t[]){t.workers * t.cut.room});
    t.room = rl_data(&room);
    rl_parallel(rt, t.workers, 1, run_tiles, &t);
    rl_tensor_drop(&room);
}

/* ---- how it is cut ---- */

static bool joins(const int64_t *stride, int i, int64_t count) {
    return stride[i] == stride[W] * count;
}

/* A 1 x 1 convolution knows no lines: as far as all that it walks over lets it, its pixels are one. */
static void join_lines(rl_direct *d) {
    for (int i = N; i < DIMS; i++)
        if (i != N && (d->kernel[i] != 1 || d->stride[i] != 1 || d->before[i] || d->in[i] != d->out[i])) return;
    for (int i = H; i >= N; i--) {
        if (d->out[i] == 1) continue;
        bool all = joins(d->y_stride, i, d->out[W]) && (!d->add.p || joins(d->add.stride, i, d->out[W]));
        for (uint32_t k = 0; k < d->nx; k++) all = all && joins(d->x[k].view.stride, i, d->out[W]);
        for (uint32_t k = 0; k < d->npost; k++)
            all = all && (!d->operand[k].p || joins(d->operand[k].stride, i, d->out[W]));
        if (!all) return;
        d->in[W] = d->out[W] *= d->out[i];
        d->in[i] = d->out[i] = 1;
    }
}

/* Few enough pixels and panels at a time for the caches, enough pieces for the threads. */
static void cut(walk *w, int64_t threads) {
    const rl_direct *d = w->d;
    int64_t panel = rl_direct_weights(d) / w->panels, channels = d->depthwise ? width_of(d) : d->depth;
    w->together = d->depthwise ? 1 : panel * w->panels <= LEVEL2 ? w->panels : RL_MAX(1, LEVEL2 / 2 / panel);
    int64_t pixels = w->together < w->panels || d->depthwise
                         ? LEVEL2 / channels
                         : LEVEL1 * 2 / (channels + RL_MIN(d->channels, w->together * width_of(d)));
    int64_t least = w->loops->together, all = d->out[H] * d->out[W],
            planes = d->out[N] * d->out[D] * ((w->panels + w->together - 1) / w->together);
    if (threads > 1) pixels = RL_MIN(pixels, all * planes / (4 * threads));
    pixels = RL_MAX(pixels, least);
    int64_t lines = RL_MAX(1, pixels / d->out[W]), columns = RL_MIN(d->out[W], RL_MAX(pixels / least * least, least));
    w->lines = (d->out[H] + lines - 1) / lines;
    w->columns = (d->out[W] + columns - 1) / columns;
}

void rl_direct_run(rl_rt *rt, rl_arena *tmp, const rl_direct *given) {
    rl_direct d = *given;
    join_lines(&d);
    walk w = {.d = &d, .loops = rl_direct_loops_of(d.isa), .rows = rl_rows_best(), .taps = taps_of(&d), .panels = panels_of(&d)};
    if (d.winograd) {
        run_winograd(rt, &w);
        return;
    }
    find_areas(tmp, &w);
    cut(&w, rl_pool_size(rt->pool));
    int64_t units = w.lines * w.columns * d.out[N] * d.out[D] * ((w.panels + w.together - 1) / w.together);
    int64_t work =
        d.out[N] * d.out[D] * d.out[H] * d.out[W] * d.channels * w.taps * (d.depthwise ? 1 : d.depth) / units;
    rl_parallel(rt, units, RL_MAX(1, (1 << 16) / RL_MAX(work, 1)), run_pieces, &w);
}
