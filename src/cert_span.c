/* A component whose table is taken in spans (docs/proof.md, section 2): runs of its ops, one after another, each a table of its own.
 *
 * Costs are one number here: a conversion counts `conversion` of the file, beside its bytes.  Each span lets an element weigh a part of its weight; an
 * assignment pays for an element once, and that is no less than what it weighs in the spans that name it.  So
 *
 *     cost >= base - credits + sum over spans of the least that each costs by itself
 *
 * The table is settled, and folded, before; what an op costs by itself, whatever is chosen, is in the base. */
#include "cert_internal.h"

#define MOST (INT64_C(1) << 60)

typedef struct {
    const rl_cert_part *part;
    const rl_cert_table *t;
    rl_arena *mem;
    int64_t *left;     /* [nelem] what no span has had yet */
    bool *listed;      /* [nelem] some span says what it weighs; of others the first that names it has all */
    const uint32_t *const *element; /* [span] of each entry of weigh */
} spans;

static bool number_of(const spans *x, rl_cert_key k, int64_t *out) {
    return !__builtin_mul_overflow(k.major, x->part->conversion, out) && !__builtin_add_overflow(*out, k.minor, out) && *out < MOST && *out > -MOST;
}

/* False where the sum of all is too large to count with, or some element weighs more than it does. */
static bool list_weights(spans *x) {
    int64_t sum = 0;
    for (uint32_t e = 0; e < x->t->nelem; e++)
        if (!number_of(x, x->t->weight[e], &x->left[e]) || (sum += x->left[e]) > MOST) return false;
    for (uint32_t i = 0; i < x->part->nspan; i++)
        for (uint32_t k = 0; k < x->part->span[i].nweigh; k++) {
            uint32_t e = x->element[i][k];
            x->listed[e] = true;
            if ((x->left[e] -= x->part->span[i].weigh[k].weight) < 0) return false;
        }
    return true;
}

static rl_cert_key least_own(const rl_cert_step *s) {
    rl_cert_key least = {INT64_MAX, 0};
    for (uint32_t c = 0; c < s->ncfg; c++)
        if (c == 0 || rl_key_less(s->own[c], least)) least = s->own[c];
    return least;
}

/* The steps from `beg` on, as a table of their own. */
static bool table_of(spans *x, uint32_t i, uint32_t beg, rl_cert_table *out) {
    const rl_cert_span *span = &x->part->span[i];
    rl_cert_key *weight = rl_new(x->mem, rl_cert_key, x->t->nelem);
    *out = (rl_cert_table){.nstep = span->nop, .nelem = x->t->nelem, .weight = weight, .claim = {span->least, 0}};
    out->step = rl_new(x->mem, rl_cert_step, span->nop);
    for (uint32_t k = 0; k < span->nweigh; k++) weight[x->element[i][k]].major = span->weigh[k].weight;
    for (uint32_t j = 0; j < span->nop; j++) {
        const rl_cert_step *from = &x->t->step[beg + j];
        rl_cert_step *s = &out->step[j];
        *s = (rl_cert_step){.ncfg = from->ncfg, .start = rl_new(x->mem, uint32_t, from->ncfg + 1u), .own = rl_new(x->mem, rl_cert_key, from->ncfg),
                            .elem = rl_new(x->mem, uint32_t, from->start[from->ncfg] + 1u)};
        const rl_cert_key least = least_own(from);
        uint32_t n = 0;
        for (uint32_t c = 0; c < from->ncfg; c++) {
            if (!number_of(x, rl_key_sub(from->own[c], least), &s->own[c].major)) return false;
            s->start[c] = n;
            for (uint32_t k = from->start[c]; k < from->start[c + 1]; k++) {
                uint32_t e = from->elem[k];
                if (!x->listed[e]) weight[e].major = x->left[e], x->left[e] = 0, x->listed[e] = true;
                if (weight[e].major > 0) s->elem[n++] = e;
            }
        }
        s->start[from->ncfg] = n;
    }
    return true;
}

/* Do spans of this cost show the claim?  What has fewer conversions moves `most` bytes with each at most. */
static bool shows(const spans *x, int64_t cost, int64_t most) {
    rl_cert_key claim = x->t->claim;
    int64_t fewer, same;
    if (__builtin_add_overflow(x->part->conversion, most, &fewer) || __builtin_mul_overflow(fewer, claim.major - 1, &fewer) || cost <= fewer) return false;
    return claim.minor == 0 || (number_of(x, claim, &same) && cost >= same);
}

rl_cert_verdict rl_cert_spans_fill(rl_arena *mem, const rl_cert_part *part, const rl_cert_table *t, const uint32_t *const *element, int64_t most,
                                   uint32_t maxstate, uint64_t maxwork, uint64_t *work) {
    spans x = {part, t, mem, rl_new(mem, int64_t, t->nelem), rl_new(mem, bool, t->nelem), element};
    int64_t cost, credit;
    rl_cert_key base = t->base, all = {0}, left;
    if (!list_weights(&x)) return RL_CERT_CHEAPER;
    for (uint32_t j = 0; j < t->nstep; j++) {
        all = rl_key_add(all, t->step[j].credit[0]);
        base = rl_key_add(base, least_own(&t->step[j]));
    }
    if (!number_of(&x, base, &cost) || !number_of(&x, all, &credit)) return RL_CERT_CHEAPER;
    cost -= credit;
    for (uint32_t i = 0; i < part->nspan; i++)
        if (__builtin_add_overflow(cost, part->span[i].least, &cost)) return RL_CERT_CHEAPER;
    if (!shows(&x, cost, most)) return RL_CERT_CHEAPER;
    for (uint32_t i = 0, beg = 0; i < part->nspan; beg += part->span[i++].nop) {
        rl_arena tmp;
        rl_cert_table one;
        rl_arena_init(&tmp, mem->ctx);
        x.mem = &tmp;
        rl_cert_verdict is = RL_CERT_CHEAPER;
        if (table_of(&x, i, beg, &one)) {
            rl_cert_settle(&tmp, &one);
            is = part->span[i].least ? rl_cert_table_fill(&tmp, &one, maxstate, maxwork, work, &left) : RL_CERT_HOLDS;
        }
        rl_arena_free(&tmp);
        if (is != RL_CERT_HOLDS) return is;
    }
    return RL_CERT_HOLDS;
}
