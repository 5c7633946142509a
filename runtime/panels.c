/* Products with a packed matrix: see panels.h. */
#include "panels.h"

#include <string.h>

enum {
    WIDEST = 64,
    AT_ONCE = 96 /* rows of a */,
    DEPTH = 512 /* of k: a panel's part stays in the second cache */,
    WORK = 1 << 18 /* products for a thread */
};

int64_t rl_panels_count(int64_t n, int64_t k) {
    return rl_panel_padded(n) * k;
}

rl_panels rl_panels_pack(const rl_rows *rows, const float *b, int64_t n, int64_t k, int64_t by_k, int64_t by_n,
                         float *room) {
    rl_panels made = {rows, room, n, k};
    for (int64_t j = 0; j < n; j += rows->width) {
        int64_t columns = RL_MIN(rows->width, n - j), width = rl_panel_padded(columns);
        rl_nest move = {
            .to = room, .from = b + j * by_n, .bits = 32, .n = 2, .loop = {{k, width, by_k}, {columns, 1, by_n}}};
        if (columns < width) memset(room, 0, (size_t)(width * k) * sizeof *room);
        rl_nest_move(&move, NULL);
        room += width * k;
    }
    return made;
}

void rl_panels_scale(const rl_panels *b, float by, const float *scale, float *to) {
    if (by == 1 && !scale) return;
    for (int64_t j = 0; j < b->n; j += b->rows->width) {
        int64_t columns = RL_MIN(b->rows->width, b->n - j), width = rl_panel_padded(columns);
        for (int64_t i = 0; i < b->k; i++)
            for (int64_t k = 0; k < columns; k++)
                to[j * b->k + i * width + k] = b->p[j * b->k + i * width + k] * by * (scale ? scale[j + k] : 1);
    }
}

typedef struct {
    const rl_panels *b;
    const rl_panels_product *p;
    int64_t rows, npanel, each, groups; /* rows of a block; panels, and how many of them a task has */
} work;

/* Rows i .. i+m-1 of panel j, its depth in pieces; what was summed before is in y. */
static void one_panel(const work *w, int64_t i, int64_t m, int64_t j, float *y, int64_t ym, const float *start,
                      int64_t sm) {
    const rl_panels *b = w->b;
    int64_t width = rl_panel_padded(RL_MIN(b->rows->width, b->n - j)), pieces = RL_MAX((b->k + DEPTH - 1) / DEPTH, 1),
            depth = (b->k + pieces - 1) / pieces;
    for (int64_t k = 0; k < b->k || k == 0; k += depth) {
        const float *a = w->p->a + i * w->p->am + k;
        b->rows->tile(y, ym, a, w->p->am, b->p + j * b->k + k * width, width, width, m, RL_MIN(depth, b->k - k),
                      k ? y : start, k ? ym : sm);
        if (!depth) break;
    }
}

/* The columns of y that the last panel has are not whole vectors: by way of some that are. */
static void last_panel(const work *w, int64_t i, int64_t m, int64_t j, float *y, const float *start, int64_t sm) {
    float whole[AT_ONCE * WIDEST], from[AT_ONCE * WIDEST];
    int64_t columns = w->b->n - j;
    for (int64_t r = 0; start && r < (sm ? m : 1); r++) {
        memset(from + r * WIDEST, 0, WIDEST * sizeof *from);
        memcpy(from + r * WIDEST, start + r * sm, (size_t)columns * sizeof *from);
    }
    one_panel(w, i, m, j, whole, WIDEST, start ? from : NULL, sm ? WIDEST : 0);
    for (int64_t r = 0; r < m; r++) memcpy(y + r * w->p->ym, whole + r * WIDEST, (size_t)columns * sizeof *y);
}

/* By way of rows that lie in order. */
static void scattered_panel(const work *w, int64_t i, int64_t m, int64_t j, int64_t n) {
    const rl_panels_product *p = w->p;
    float room[AT_ONCE * WIDEST], start[WIDEST] = {0};
    if (p->start) memcpy(start, p->start + j, (size_t)n * sizeof *start);
    one_panel(w, i, m, j, room, WIDEST, start, 0);
    if (p->end) p->end(p->how, room, WIDEST, i, j, m, n);
    w->b->rows->copy_rows(p->y + j, p->ym, p->at + i, room, WIDEST, m, n);
}

static void run_tasks(void *arg, int64_t from, int64_t to) {
    const work *w = arg;
    const rl_panels_product *p = w->p;
    int64_t width = w->b->rows->width;
    for (int64_t t = from; t < to; t++) {
        int64_t i = t / w->groups * w->rows, m = RL_MIN(w->rows, p->m - i), first = t % w->groups * w->each;
        for (int64_t k = first; k < RL_MIN(first + w->each, w->npanel); k++) {
            int64_t j = k * width, n = RL_MIN(width, w->b->n - j), sm = p->start == p->y ? p->ym : 0;
            float *y = p->y + i * p->ym + j;
            const float *start = p->start ? p->start + i * sm + j : NULL;
            if (p->at) {
                scattered_panel(w, i, m, j, n);
                continue;
            }
            if (n % RL_PANEL_LANES)
                last_panel(w, i, m, j, y, start, sm);
            else
                one_panel(w, i, m, j, y, p->ym, start, sm);
            if (p->end) p->end(p->how, y, p->ym, i, j, m, n);
        }
    }
}

void rl_panels_multiply(rl_rt *rt, const rl_panels *b, const rl_panels_product *p) {
    work w = {.b = b, .p = p, .npanel = (b->n + b->rows->width - 1) / b->rows->width};
    if (p->m <= 0 || b->n <= 0) return;
    int64_t blocks = (p->m + AT_ONCE - 1) / AT_ONCE, threads = rl_pool_size(rt->pool);
    w.rows = RL_MIN(((p->m + blocks - 1) / blocks + 5) / 6 * 6, (int64_t)AT_ONCE);
    blocks = (p->m + w.rows - 1) / w.rows;
    w.groups = threads == 1 || blocks >= 8 * threads ? 1 : RL_MIN(w.npanel, (8 * threads + blocks - 1) / blocks);
    w.each = (w.npanel + w.groups - 1) / w.groups;
    w.groups = (w.npanel + w.each - 1) / w.each;
    int64_t products = RL_MAX(w.rows * w.each * b->rows->width * b->k, 1);
    rl_parallel(rt, blocks * w.groups, RL_MAX(1, WORK / products), run_tasks, &w);
}
