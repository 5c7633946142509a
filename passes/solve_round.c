/* A component without what only decides among equals (rl_problem.slack).
 *
 * Costs may have a part that is small beside every weight: of choices that come to the same, those that stray least from the input are better.  It keeps
 * states of the frontier apart that are as good, configurations that could stand for one another, and runs from ending; so a component that is not solved
 * soon is solved without, and then each op takes what is better in its place.
 *
 *   weights 64, slack 32     costs 0, 3, 65, 67     rounded 0, 0, 64, 64 */
#include "solve_cover.h"
#include <string.h>

/* Ops have their least cost taken out, so that what is small may be below 0: to the nearest. */
static int64_t nearest(int64_t cost, int64_t unit) { return (cost + unit / 2) / unit * unit; }

bool rl_cover_round(rl_arena *mem, const rl_cover *p, rl_cover *out, int64_t *off) {
    const int64_t unit = 2 * p->slack;
    bool any = false;
    rl_cover q = *p;
    q.slack = 0;
    q.upper = INT64_MAX;
    q.op = rl_copy(mem, q.op, q.nop * sizeof *q.op);
    q.weight = rl_copy(mem, q.weight, q.nelem * sizeof *q.weight);
    *off = 0;
    for (uint32_t o = 0; o < q.nop && unit; o++) {
        rl_bundle *b = &q.op[o];
        int64_t least = INT64_MAX, *cost = rl_new(mem, int64_t, b->ncfg);
        uint32_t *orig = rl_new(mem, uint32_t, b->ncfg);
        for (uint32_t c = 0; c < b->ncfg; c++) {
            orig[c] = c;
            cost[c] = nearest(b->cost[c], unit);
            least = RL_MIN(least, b->cost[c] - cost[c]);
            any |= cost[c] != b->cost[c];
        }
        b->elem = rl_copy(mem, b->elem, (size_t)b->ncfg * b->width * sizeof *b->elem);
        b->cost = cost;
        b->orig = orig;
        *off += least;
    }
    *out = q;
    return any;
}

/* ---- one op after the other ---- */

/* paid: [nelem] by how many ops each element is held. */
static int64_t total_of(const rl_cover *p, const uint32_t *cfg, uint32_t *paid) {
    int64_t sum = 0;
    memset(paid, 0, p->nelem * sizeof *paid);
    for (uint32_t o = 0; o < p->nop; o++) {
        const rl_bundle *b = &p->op[o];
        sum += b->cost[cfg[o]];
        for (const uint32_t *e = b->elem + (size_t)cfg[o] * b->width, *end = e + b->width; e < end && *e != RL_NONE; e++)
            if (paid[*e]++ == 0) sum += p->weight[*e];
    }
    return sum;
}

/* What configuration c of an op adds to what is paid. */
static int64_t adds(const rl_cover *p, const rl_bundle *b, uint32_t c, const uint32_t *paid) {
    int64_t sum = b->cost[c];
    for (uint32_t i = 0; i < b->width && b->elem[(size_t)c * b->width + i] != RL_NONE; i++) {
        uint32_t e = b->elem[(size_t)c * b->width + i];
        sum += paid[e] ? 0 : p->weight[e];
    }
    return sum;
}

static void hold(const rl_bundle *b, uint32_t c, uint32_t *paid, uint32_t by) {
    for (uint32_t i = 0; i < b->width && b->elem[(size_t)c * b->width + i] != RL_NONE; i++) paid[b->elem[(size_t)c * b->width + i]] += by;
}

int64_t rl_cover_improve(rl_arena *mem, const rl_cover *p, uint32_t *cfg) {
    uint32_t *paid = rl_new(mem, uint32_t, p->nelem);
    total_of(p, cfg, paid);
    for (bool any = true; any;) {
        any = false;
        for (uint32_t o = 0; o < p->nop; o++) {
            const rl_bundle *b = &p->op[o];
            uint32_t best = cfg[o];
            hold(b, best, paid, UINT32_MAX); /* one less */
            int64_t least = adds(p, b, best, paid);
            for (uint32_t c = 0; c < b->ncfg; c++)
                if (adds(p, b, c, paid) < least) least = adds(p, b, best = c, paid);
            any |= best != cfg[o];
            hold(b, cfg[o] = best, paid, 1);
        }
    }
    return total_of(p, cfg, paid);
}
