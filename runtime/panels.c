/* Products with a packed matrix: see panels.h. */
#include "panels.h"

#include <string.h>

enum { WIDEST = 64, AT_ONCE = 48, WORK = 1 << 18 }; /* columns of a panel; rows of a; products for a thread */

int64_t rl_panels_count(const rl_rows *rows, int64_t n, int64_t k) {
    return (n + rows->width - 1) / rows->width * rows->width * k;
}

rl_panels rl_panels_pack(const rl_rows *rows, const float *b, int64_t n, int64_t k, float *room) {
    rl_panels made = {rows, room, n, k};
    for (int64_t j0 = 0; j0 < n; j0 += rows->width, room += rows->width * k) {
        int64_t columns = RL_MIN(rows->width, n - j0);
        if (columns < rows->width) memset(room, 0, (size_t)(rows->width * k) * sizeof *room);
        for (int64_t j = 0; j < columns; j++)
            for (int64_t p = 0; p < k; p++) room[p * rows->width + j] = b[(j0 + j) * k + p];
    }
    return made;
}

typedef struct { const rl_panels *b; const float *a; float *y; int64_t m, ym; } product;

/* The columns of y that the last panel has are fewer: by way of a whole one. */
static void edge(const product *g, const float *b, const float *a, int64_t m, float *y, int64_t columns) {
    float whole[AT_ONCE * WIDEST];
    int64_t width = g->b->rows->width;
    memset(whole, 0, (size_t)(m * width) * sizeof *whole);
    g->b->rows->panel(whole, width, a, g->b->k, b, m, g->b->k);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < columns; j++) y[i * g->ym + j] += whole[i * width + j];
}

static void multiply_panels(void *arg, int64_t from, int64_t to) {
    const product *g = arg;
    int64_t k = g->b->k, width = g->b->rows->width;
    for (int64_t i = 0; i < g->m; i += AT_ONCE) {
        int64_t m = RL_MIN(g->m - i, (int64_t)AT_ONCE);
        for (int64_t j = from; j < to; j++) {
            const float *b = g->b->p + j * width * k, *a = g->a + i * k;
            float *y = g->y + i * g->ym + j * width;
            if ((j + 1) * width <= g->b->n) g->b->rows->panel(y, g->ym, a, k, b, m, k);
            else edge(g, b, a, m, y, g->b->n - j * width);
        }
    }
}

void rl_panels_multiply(rl_rt *rt, const rl_panels *b, const float *a, int64_t m, float *y, int64_t ym) {
    product g = {b, a, y, m, ym};
    int64_t work = RL_MAX(m * b->k * b->rows->width, 1);
    rl_parallel(rt, (b->n + b->rows->width - 1) / b->rows->width, RL_MAX(1, WORK / work), multiply_panels, &g);
}
