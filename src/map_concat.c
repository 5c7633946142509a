/* Index maps (map.h): joining the outputs of several maps along one dim.
 *
 * Digits that all maps share at the outer and the inner end stay digits; what lies between becomes one table, which is then taken
 * apart again as far as it goes:
 *
 *   x f32[N,7,W], pieces [:,3:] and [:,:3]     N:7*W and W:1 are shared; between them {3,4,5,6} and {0,1,2} make one table of 7 */
#include "map.h"

#include <string.h>

typedef struct {
    rl_maps *m;
    uint32_t n;
    rl_map *f;        /* cut so that no digit crosses the joined dim's ends */
    uint32_t *mid;    /* first digit of the joined dim */
    uint32_t *inner;  /* first digit below it */
    rl_dim unit;      /* what the tables count in */
} joining;

/* Digits that all maps begin with, and those that they end with below the joined dim. */
static void find_shared(const joining *j, uint32_t *head, uint32_t *tail) {
    *head = j->mid[0];
    *tail = j->f[0].n - j->inner[0];
    for (uint32_t i = 1; i < j->n; i++) {
        const rl_map *a = &j->f[0], *b = &j->f[i];
        uint32_t k = 0;
        while (k < *head && k < j->mid[i] && rl_mapdigit_same(&a->digit[k], &b->digit[k])) k++;
        *head = k;
        for (k = 0; k < *tail && k < b->n - j->inner[i] && rl_mapdigit_same(&a->digit[a->n - 1 - k], &b->digit[b->n - 1 - k]);) k++;
        *tail = k;
    }
}

/* a / unit, where that is a number; a may be the difference of two dims. */
static bool in_units(const joining *j, rl_dim a, rl_dim b, int64_t *q) {
    rl_ctx *ctx = j->m->ctx;
    if (rl_dim_known(a) && rl_dim_known(b) && rl_dim_known(j->unit)) {
        *q = (a - b) / j->unit;
        return (a - b) % j->unit == 0;
    }
    rl_dim d;
    if (a == b) *q = 0;
    else if (rl_dim_div(ctx, rl_dim_sub(ctx, a, b), j->unit, &d) && rl_dim_known(d)) *q = d;
    else if (rl_dim_div(ctx, rl_dim_sub(ctx, b, a), j->unit, &d) && rl_dim_known(d)) *q = -d;
    else return false;
    return true;
}

/* The elements of digits [from, to) of one map, in units from where map 0 begins. */
static bool list_part(const joining *j, uint32_t i, uint32_t from, uint32_t to, int64_t *t, int64_t n) {
    rl_map p = {.n = to - from, .digit = j->f[i].digit + from};
    rl_mapdigit d[RL_MAP_MAXDIGIT];
    int64_t base;
    if (!in_units(j, j->f[i].offset, j->f[0].offset, &base)) return false;
    for (uint32_t k = 0; k < p.n; k++) {
        d[k] = p.digit[k];
        if (!in_units(j, d[k].scale, 0, &d[k].scale) || d[k].scale < 0) return false;
    }
    rl_map in = {.n = p.n, .digit = d};
    for (int64_t x = 0; x < n; x++) {
        int64_t at = j->f[i].fill ? RL_MAP_FILL : rl_map_at(&in, x);
        t[x] = at == RL_MAP_FILL ? RL_MAP_FILL : at + base;
    }
    return true;
}

/* Sizes of digits [from, to), all numbers: their product. */
static bool count_part(const rl_map *f, uint32_t from, uint32_t to, int64_t *n) {
    *n = 1;
    for (uint32_t k = from; k < to; k++)
        if (!rl_dim_known(f->digit[k].size) || __builtin_mul_overflow(*n, f->digit[k].size, n)) return false;
    return true;
}

/* Everything between head and tail as one table: outer digits that differ, the joined dim, inner digits that differ. */
static bool tabulate(const joining *j, uint32_t head, uint32_t tail, rl_mapdigit *d) {
    int64_t outer = 1, all = 0, run[64], at = 0;
    if (j->n > RL_LEN(run)) return false;
    for (uint32_t i = 0; i < j->n; i++) {
        int64_t o;
        if (!count_part(&j->f[i], head, j->mid[i], &o) || !count_part(&j->f[i], j->mid[i], j->f[i].n - tail, &run[i])) return false;
        if (i && o != outer) return false;
        outer = o;
        all += run[i];
    }
    if (!rl_map_spend(j->m, rl_dim_mul(j->m->ctx, outer, all))) return false;
    int64_t *t = rl_new(j->m->mem, int64_t, outer * all);
    for (uint32_t i = 0; i < j->n; at += run[i++]) {
        int64_t *p = rl_new(j->m->mem, int64_t, outer * run[i]);
        if (!list_part(j, i, head, j->f[i].n - tail, p, outer * run[i])) return false;
        for (int64_t x = 0; x < outer; x++) memcpy(t + x * all + at, p + x * run[i], (size_t)run[i] * sizeof *t);
    }
    *d = (rl_mapdigit){outer * all, j->unit, 1, t};
    return true;
}

static bool cut_all(joining *j, const rl_map *f, const rl_dim *size, rl_dim inner) {
    for (uint32_t i = 0; i < j->n; i++) {
        rl_map low;
        uint32_t below;
        if (!rl_map_cut(j->m, &f[i], inner, &low, &below)) return false;
        if (!rl_map_cut(j->m, &low, rl_dim_mul(j->m->ctx, size[i], inner), &j->f[i], &j->mid[i])) return false;
        j->inner[i] = below + (j->f[i].n - low.n);
    }
    return true;
}

/* The step that the tables count in: 1 for numbers, else one that a digit takes. */
static rl_dim unit_of(const joining *j, uint32_t head, uint32_t tail) {
    bool known = true;
    for (uint32_t i = 0; i < j->n; i++)
        for (uint32_t k = head; k + tail < j->f[i].n; k++) known &= rl_dim_known(j->f[i].digit[k].scale);
    for (uint32_t i = 0; i < j->n; i++) known &= rl_dim_known(j->f[i].offset);
    for (uint32_t i = 0; i < j->n && !known; i++)
        for (uint32_t k = j->f[i].n - tail; k-- > head;)
            if (j->f[i].digit[k].scale != 0) return j->f[i].digit[k].scale;
    const rl_mapdigit *below = tail ? &j->f[0].digit[j->f[0].n - tail] : NULL;
    if (!known && below && below->scale != 0) return rl_dim_mul(j->m->ctx, below->size, below->scale);
    return 1;
}

bool rl_map_concat(rl_maps *m, uint32_t n, const rl_map *f, const rl_dim *size, rl_dim inner, rl_map *out) {
    joining j = {m, n, rl_new(m->mem, rl_map, n), rl_new(m->mem, uint32_t, n), rl_new(m->mem, uint32_t, n), 1};
    rl_mapdigit d[2 * RL_MAP_MAXDIGIT];
    uint32_t head, tail, nd = 0;
    for (uint32_t i = 0; i < n; i++)
        if (f[i].fill) return false;
    if (n == 0 || inner == 0 || !cut_all(&j, f, size, inner)) return false;
    find_shared(&j, &head, &tail);
    j.unit = unit_of(&j, head, tail);
    for (uint32_t k = 0; k < head; k++) d[nd++] = j.f[0].digit[k];
    if (!tabulate(&j, head, tail, &d[nd++])) return false;
    for (uint32_t k = j.f[0].n - tail; k < j.f[0].n; k++) d[nd++] = j.f[0].digit[k];
    return rl_map_make(m, nd, d, f[0].offset, out);
}
