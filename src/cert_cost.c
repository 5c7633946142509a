/* What the assignment of a certificate costs: conversions and bytes, or in the second part times (docs/proof.md, section 5).
 *
 *   time of an assignment = sum over values of weight(v) * (|U(v)| - 1) + sum over ops of tenths * (weight(bytes charged by) / 10)
 *   weight(v) = FIXED * RATE / 100 + 10 * bytes(v)       tenths of what an ordinary conversion takes for a byte */
#include "cert_internal.h"

#include <inttypes.h>

enum { MOSTTENTHS = 1000000 };

static int64_t time_of(const rl_cert *c, int64_t bytes) {
    int64_t most = (int64_t)1 << 42;
    return RL_MAX(1, RL_MIN(most, c->fixed * c->rate / 100 + 10 * RL_MIN(most, bytes)));
}

rl_cert_cost rl_cert_weight(const rl_cert *c, uint32_t value) {
    int64_t bytes = c->value[value].bytes;
    return c->by_time ? (rl_cert_cost){time_of(c, bytes), 0} : (rl_cert_cost){1, bytes};
}

int64_t rl_cert_unit(const rl_cert *c, const rl_cert_op *op) {
    return c->by_time && op->charge.rule != RL_CERT_FREE ? time_of(c, op->charge.bytes) / 10 : 0;
}

int64_t rl_cert_tenths(const rl_cert_op *op, uint32_t form, const uint8_t *token, uint32_t n, bool whole) {
    const rl_cert_charge *x = &op->charge;
    bool seen = false, after = false;
    if (x->rule == RL_CERT_FREE) return 0;
    if (x->rule == RL_CERT_FORMS) return form == RL_NONE ? x->tenths : x->form[form];
    if (x->rule == RL_CERT_LAST) return n && whole && x->marked[token[n - 1]] ? x->tenths : 0;
    for (uint32_t i = 0; i < n; i++) {
        after |= seen && !x->marked[token[i]];
        seen |= x->marked[token[i]];
    }
    return after ? x->tenths : 0;
}

rl_status rl_cert_check_charge(rl_ctx *ctx, const rl_cert *c, uint32_t i) {
    const rl_cert_op *op = &c->op[i];
    const rl_cert_charge *x = &op->charge;
    if (x->rule == RL_CERT_FREE) return RL_OK;
    bool ok = !rl_cert_is_fixed(op) && x->bytes >= 0 && x->tenths >= 0 && x->tenths <= MOSTTENTHS && op->npin > 0;
    for (uint32_t k = 0; ok && x->rule == RL_CERT_FORMS && k < op->nform; k++) ok = x->form[k] >= 0 && x->form[k] <= MOSTTENTHS;
    return ok ? RL_OK : rl_fail(ctx, RL_EPROOF, "proof: op %u: what it is charged is too much, or it cannot be charged", i);
}

/* The order that the assignment names at a pin. */
static const uint8_t *chosen_order(const rl_cert_op *op, uint32_t pin, uint8_t *out) {
    if (op->chosen == RL_NONE) return op->pin[pin].stands;
    rl_cert_write_order(op, op->chosen, op->perm, pin, false, out);
    return out;
}

static bool can_swap(const rl_cert_op *op) {
    return !rl_cert_is_fixed(op) && (op->charge.rule == RL_CERT_FREE || op->charge.rule == RL_CERT_FORMS);
}

/* Is the op in a part whose ops may swap? */
static bool is_in_swapping(const rl_cert *c, uint32_t op) {
    for (uint32_t k = 0; k < c->npart; k++)
        for (uint32_t j = 0; c->part[k].swaps && j < c->part[k].nop; j++)
            if (c->part[k].op[j] == op) return true;
    return false;
}

rl_status rl_cert_check_swaps(rl_ctx *ctx, const rl_cert *c) {
    uint8_t out[256], named[256];
    for (uint32_t i = 0; i < c->nop; i++)
        if (c->op[i].swaps && !can_swap(&c->op[i])) return rl_fail(ctx, RL_EPROOF, "proof: op %u: its groups cannot be swapped", i);
    for (uint32_t k = 0; k < c->nswap; k++) {
        const rl_cert_swap *x = &c->swap[k];
        bool ok = x->op < c->nop && (k == 0 || x->op > x[-1].op) && c->op[x->op].swaps && x->form < c->op[x->op].nform;
        ok = ok && rl_cert_is_perm(&c->op[x->op], x->form, x->perm) && is_in_swapping(c, x->op);
        for (uint32_t p = 0; ok && p < c->op[x->op].npin; p++) {
            const rl_cert_op *op = &c->op[x->op];
            rl_cert_write_order(op, x->form, x->perm, p, false, out);
            ok = (op->swaps[p] || !x->pin[p]) && rl_same_bytes(out, chosen_order(op, p, named), c->value[op->pin[p].value].natom);
        }
        if (!ok) return rl_fail(ctx, RL_EPROOF, "proof: swap of op %u: it cannot be swapped, or that is not what it names", x->op);
    }
    return RL_OK;
}

/* ---- sums ---- */

rl_status rl_cert_add_cost(rl_ctx *ctx, const rl_cert *c, uint32_t v, uint32_t n, rl_cert_cost *sum) {
    rl_cert_cost w = rl_cert_weight(c, v), x;
    if (!__builtin_mul_overflow(w.count, (int64_t)n, &x.count) && !__builtin_mul_overflow(w.bytes, (int64_t)n, &x.bytes) &&
        !__builtin_add_overflow(sum->count, x.count, &sum->count) && !__builtin_add_overflow(sum->bytes, x.bytes, &sum->bytes))
        return RL_OK;
    return rl_fail(ctx, RL_EPROOF, "proof: value %u: the sum of the %s is too large", v, c->by_time ? "times" : "bytes");
}

rl_status rl_cert_check_sum(rl_ctx *ctx, const rl_cert *c, const char *what, rl_cert_cost got, rl_cert_cost claim) {
    if (got.count == claim.count && got.bytes == claim.bytes) return RL_OK;
    if (c->by_time)
        return rl_fail(ctx, RL_EPROOF, "proof: %s: a time of %" PRId64 " is claimed, but it is %" PRId64, what, claim.count, got.count);
    return rl_fail(ctx, RL_EPROOF, "proof: %s: %" PRId64 " conversions of %" PRId64 " bytes are claimed, but it is %" PRId64 " of %" PRId64,
                   what, claim.count, claim.bytes, got.count, got.bytes);
}

/* ---- the assignment ---- */

/* The tokens in which an order of all atoms of pin 0 lies. */
static uint32_t tokens_in(const rl_cert_op *op, const uint8_t *order, uint32_t natom, uint8_t *token) {
    uint8_t of[256] = {0};
    uint32_t n = 0;
    for (uint32_t t = 0; t < op->ntoken; t++)
        for (uint32_t i = 0; i < op->token[t].n[0]; i++) of[op->token[t].at[0][i]] = (uint8_t)t;
    for (uint32_t i = 0; i < natom; i++)
        if (n == 0 || token[n - 1] != of[order[i]]) token[n++] = of[order[i]];
    return n;
}

/* What the op swaps by time; NULL: nothing. */
static const rl_cert_swap *swap_of(const rl_cert *c, uint32_t op) {
    uint32_t low = 0, high = c->nswap;
    while (low < high) {
        uint32_t k = (low + high) / 2;
        if (c->swap[k].op < op) low = k + 1;
        else high = k;
    }
    return low < c->nswap && c->swap[low].op == op ? &c->swap[low] : NULL;
}

/* By its form, of what is swapped by the form that writes it: that of the choice may write the same, and count as less, but not swapped. */
static int64_t charged(const rl_cert *c, uint32_t i) {
    const rl_cert_op *op = &c->op[i];
    const rl_cert_swap *x = swap_of(c, i);
    uint8_t order[256], token[256];
    if (op->charge.rule == RL_CERT_FREE) return 0;
    uint32_t natom = c->value[op->pin[0].value].natom;
    uint32_t n = tokens_in(op, chosen_order(op, 0, order), natom, token);
    return rl_cert_tenths(op, x ? x->form : op->chosen, token, n, true) * rl_cert_unit(c, op);
}

/* [nvalue] how many orders the assignment names of each value, from the definition; by time as they count. */
static uint32_t *count_orders(rl_arena *tmp, const rl_cert *c, bool fixed_only) {
    rl_cert_orders all = {.mem = tmp, .nowner = c->nvalue};
    uint32_t *n = rl_new(tmp, uint32_t, c->nvalue);
    uint8_t out[256];
    for (uint32_t i = 0; i < c->nop; i++) {
        const rl_cert_op *op = &c->op[i];
        const rl_cert_swap *x = swap_of(c, i);
        for (uint32_t p = 0; p < op->npin && !(fixed_only && !rl_cert_is_fixed(op)); p++) {
            uint32_t v = op->pin[p].value, known = all.order.n;
            if (x) rl_cert_write_order(op, x->form, x->perm, p, x->pin[p], out);
            n[v] += rl_cert_intern(&all, v, x ? out : chosen_order(op, p, out), c->value[v].natom) == known;
        }
    }
    return n;
}

/* What the assignment costs in a part; done[v] becomes true for its values, if that is asked for. */
static rl_status part_cost(rl_ctx *ctx, const rl_cert *c, const rl_cert_part *part, const uint32_t *n, bool *done, rl_cert_cost *sum) {
    for (uint32_t j = 0; j < part->nop; j++) {
        const rl_cert_op *op = &c->op[part->op[j]];
        if (c->by_time && __builtin_add_overflow(sum->count, charged(c, part->op[j]), &sum->count))
            return rl_fail(ctx, RL_EPROOF, "proof: op %u: the sum of the times is too large", part->op[j]);
        for (uint32_t p = 0; p < op->npin; p++) {
            uint32_t v = op->pin[p].value;
            if (n[v] && !done[v]) RL_TRY(rl_cert_add_cost(ctx, c, v, n[v] - 1, sum));
            done[v] = true;
        }
    }
    return RL_OK;
}

static rl_status check_assignment(rl_ctx *ctx, rl_arena *tmp, const rl_cert *c) {
    const uint32_t *n = count_orders(tmp, c, false);
    bool *done = rl_new(tmp, bool, c->nvalue);
    rl_cert_cost sum = {0};
    for (uint32_t v = 0; v < c->nvalue; v++)
        if (n[v]) RL_TRY(rl_cert_add_cost(ctx, c, v, n[v] - 1, &sum));
    for (uint32_t i = 0; i < c->nop && c->by_time; i++)
        if (__builtin_add_overflow(sum.count, charged(c, i), &sum.count))
            return rl_fail(ctx, RL_EPROOF, "proof: op %u: the sum of the times is too large", i);
    RL_TRY(rl_cert_check_sum(ctx, c, "the assignment", sum, c->cost));
    for (uint32_t k = 0; k < c->npart && c->by_time; k++) {
        rl_cert_cost x = {0};
        for (uint32_t j = 0; j < c->part[k].nop; j++)
            if (c->part[k].op[j] >= c->nop) return rl_fail(ctx, RL_EPROOF, "proof: component %u: no op %u", k, c->part[k].op[j]);
        RL_TRY(part_cost(ctx, c, &c->part[k], n, done, &x));
        RL_TRY(rl_cert_check_sum(ctx, c, "a component", x, (rl_cert_cost){c->part[k].cost, 0}));
    }
    return RL_OK;
}

rl_status rl_cert_check_assignment(rl_ctx *ctx, const rl_cert *c) {
    rl_arena tmp;
    rl_arena_init(&tmp, ctx);
    rl_status s = check_assignment(ctx, &tmp, c);
    rl_arena_free(&tmp);
    return s;
}

/* ---- what is shown ---- */

/* Is nothing that the part bounds clearly quicker than what it takes? */
static bool is_quick(const rl_cert_part *part) {
    return part->least.count >= part->cost - part->cost / 100 * (100 - RL_CERT_ENOUGH);
}

/* Marks the values of the parts that reach what is wanted of them. */
static void mark_done(rl_ctx *ctx, rl_arena *tmp, const rl_cert *c, const uint32_t *n, bool *mark) {
    bool *mine = rl_new(tmp, bool, c->nvalue), enough;
    for (uint32_t k = 0; k < c->npart; k++) {
        const rl_cert_part *part = &c->part[k];
        rl_cert_cost x = {0};
        if (part_cost(ctx, c, part, n, mine, &x) != RL_OK) continue;
        if (c->by_time) enough = is_quick(part);
        else enough = c->bytes_first ? x.bytes == part->least.bytes && x.count == part->least.count : x.count == part->least.count;
        for (uint32_t j = 0; j < part->nop && enough; j++)
            for (uint32_t p = 0; p < c->op[part->op[j]].npin; p++) mark[c->op[part->op[j]].pin[p].value] = true;
    }
}

static int64_t ns_of(const rl_cert *c, int64_t tenths) {
    return tenths / c->rate * 100 + tenths % c->rate * 100 / c->rate;
}

/* Adds the times of the parts that are not quick.  few: [nvalue] nothing is open there all the same. */
static void add_open(const rl_cert *c, const bool *few, rl_cert_shown *out) {
    for (uint32_t k = 0; k < c->npart; k++) {
        const rl_cert_part *part = &c->part[k];
        bool any = false;
        for (uint32_t j = 0; j < part->nop && !any; j++) any = c->op[part->op[j]].npin && !few[c->op[part->op[j]].pin[0].value];
        if (is_quick(part) || !any) continue;
        out->takes += ns_of(c, part->cost);
        out->at_least += ns_of(c, part->least.count);
    }
}

void rl_cert_show(rl_ctx *ctx, const rl_cert *c, rl_cert_shown *out) {
    rl_arena tmp;
    rl_arena_init(&tmp, ctx);
    const uint32_t *n = count_orders(&tmp, c, false), *fixed = count_orders(&tmp, c, true);
    bool *few = rl_new(&tmp, bool, c->nvalue), *quick = rl_new(&tmp, bool, c->nvalue);
    mark_done(ctx, &tmp, c, n, few);
    if (c->time) mark_done(ctx, &tmp, c->time, n, quick);
    *out = (rl_cert_shown){0};
    for (uint32_t v = 0; v < c->nvalue; v++) {
        if (n[v] < 2) continue;
        if (few[v] || n[v] == fixed[v]) out->fewest += n[v] - 1;
        else if (quick[v]) out->quick += n[v] - 1;
        else out->open += n[v] - 1;
    }
    if (c->time) add_open(c->time, few, out);
    rl_arena_free(&tmp);
}

void rl_cert_show_add(rl_cert_shown *to, const rl_cert_shown *x) {
    to->fewest += x->fewest;
    to->quick += x->quick;
    to->open += x->open;
    to->takes += x->takes;
    to->at_least += x->at_least;
}
