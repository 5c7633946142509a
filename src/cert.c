/* Checks a certificate (cert.h, docs/proof.md): that it is well formed, that the assignment costs what it says, and, part by part
 * (cert_part.c), that none costs less.  Nothing here comes from the solver.
 *
 *   total = sum over values v of weight(v) * (|U(v)| - 1), so the least total is at least the sum of
 *     for each part    the least that its values can cost, under the choices of its ops
 *     for other values weight(v) * (|F(v)| - 1), where F(v) are the orders that fixed ops name */
#include "cert_internal.h"

#include <inttypes.h>
#include <string.h>

/* A fixed op, or an idle one: with one token at most there is nothing to permute. */
bool rl_cert_is_fixed(const rl_cert_op *op) {
    return op->fixed || op->kind != RL_CERT_NODE || op->ntoken < 2;
}

rl_cert_key rl_cert_key_of(const rl_cert *c, rl_cert_cost x) {
    return c->bytes_first ? (rl_cert_key){x.bytes, x.count} : (rl_cert_key){x.count, x.bytes};
}

uint32_t rl_cert_norder(uint32_t n) {
    uint32_t f = 1;
    for (uint32_t i = 2; i <= n && f; i++) f = i > 8 ? 0 : f * i;
    return f;
}

/* ---- structure ---- */

static bool is_permutation(const uint8_t *p, uint32_t n, uint32_t of) {
    bool seen[256] = {0};
    for (uint32_t i = 0; i < n; i++) {
        if (p[i] >= of || seen[p[i]]) return false;
        seen[p[i]] = true;
    }
    return true;
}

/* Folds to orders that stand for themselves? */
static rl_status check_fold(rl_ctx *ctx, const rl_cert_value *v, uint32_t i, const uint16_t *fold) {
    uint32_t norder = fold && v->keep ? rl_cert_norder(v->nkeep) : 0;
    if (fold && !norder) return rl_fail(ctx, RL_EPROOF, "proof: value %u: only orders of 1 to 8 kept atoms fold", i);
    for (uint32_t k = 0; k < norder; k++) {
        if (fold[k] >= norder) return rl_fail(ctx, RL_EPROOF, "proof: value %u: order %u folds to %u of %u", i, k, fold[k], norder);
        if (fold[fold[k]] != fold[k]) return rl_fail(ctx, RL_EPROOF, "proof: value %u: order %u folds to %u, which folds, too", i, k, fold[k]);
    }
    return RL_OK;
}

static rl_status check_value(rl_ctx *ctx, const rl_cert *c, uint32_t i) {
    const rl_cert_value *v = &c->value[i];
    if (v->bytes < 0) return rl_fail(ctx, RL_EPROOF, "proof: value %u: %" PRId64 " bytes", i, v->bytes);
    if (v->natom >= RL_CERT_GONE) return rl_fail(ctx, RL_EPROOF, "proof: value %u: %u atoms, at most 254 are allowed", i, v->natom);
    for (uint32_t a = 0; a < v->natom; a++)
        if (v->size[a] < 0 && !(v->symbol && v->symbol[a])) return rl_fail(ctx, RL_EPROOF, "proof: value %u: atom %u has no size", i, a);
    for (uint32_t k = 0; v->keep && k < v->nkeep; k++)
        if (v->keep[k] >= v->natom || (k && v->keep[k] <= v->keep[k - 1]))
            return rl_fail(ctx, RL_EPROOF, "proof: value %u: keeps atom %u: atoms 0 .. %u are wanted, rising", i, v->keep[k], v->natom);
    RL_TRY(check_fold(ctx, v, i, v->fold));
    return check_fold(ctx, v, i, v->refold);
}

static rl_status check_pin(rl_ctx *ctx, const rl_cert *c, uint32_t i, uint32_t p) {
    const rl_cert_pin *pin = &c->op[i].pin[p];
    if (pin->value >= c->nvalue) return rl_fail(ctx, RL_EPROOF, "proof: op %u pin %u: no value %u", i, p, pin->value);
    if (is_permutation(pin->stands, c->value[pin->value].natom, c->value[pin->value].natom)) return RL_OK;
    return rl_fail(ctx, RL_EPROOF, "proof: op %u pin %u: its order is no permutation of the atoms of value %u", i, p, pin->value);
}

/* The tokens hold each atom of the pin once. */
static rl_status check_cover(rl_ctx *ctx, const rl_cert *c, uint32_t i, uint32_t p) {
    const rl_cert_op *op = &c->op[i];
    uint32_t natom = c->value[op->pin[p].value].natom, n = 0;
    bool seen[256] = {0};
    for (uint32_t t = 0; t < op->ntoken; t++)
        for (uint32_t k = 0; k < op->token[t].n[p]; k++, n++) {
            uint8_t a = op->token[t].at[p][k];
            if (a >= natom || seen[a])
                return rl_fail(ctx, RL_EPROOF, "proof: op %u token %u: atom %u at pin %u is unknown or has a token already", i, t, a, p);
            seen[a] = true;
        }
    if (n == natom) return RL_OK;
    return rl_fail(ctx, RL_EPROOF, "proof: op %u: its tokens hold %u of the %u atoms at pin %u", i, n, natom, p);
}

/* Each group that has tokens at the pin occurs there, and none twice. */
static rl_status check_sequence(rl_ctx *ctx, const rl_cert_op *op, uint32_t i, uint32_t k, uint32_t p) {
    const rl_cert_form *f = &op->form[k];
    bool seen[256] = {0};
    for (uint32_t s = f->start[p]; s < f->start[p + 1]; s++) {
        if (seen[f->seq[s]]) return rl_fail(ctx, RL_EPROOF, "proof: op %u form %u: group %u twice at pin %u", i, k, f->seq[s], p);
        seen[f->seq[s]] = true;
    }
    for (uint32_t t = 0; t < op->ntoken; t++)
        if (op->token[t].n[p] && !seen[f->group[t]])
            return rl_fail(ctx, RL_EPROOF, "proof: op %u form %u: group %u has a token at pin %u but no place there", i, k, f->group[t], p);
    return RL_OK;
}

bool rl_cert_is_perm(const rl_cert_op *op, uint32_t form, const uint8_t *perm) {
    const uint8_t *group = op->form[form].group;
    bool ok = is_permutation(perm, op->ntoken, op->ntoken);
    for (uint32_t t = 1; ok && t < op->ntoken; t++) ok = group[perm[t - 1]] <= group[perm[t]];
    return ok;
}

static rl_status check_choice(rl_ctx *ctx, const rl_cert_op *op, uint32_t i) {
    if (op->chosen == RL_NONE) return RL_OK;
    if (op->chosen >= op->nform) return rl_fail(ctx, RL_EPROOF, "proof: op %u has no form %u to choose", i, op->chosen);
    return rl_cert_is_perm(op, op->chosen, op->perm) ? RL_OK : rl_fail(ctx, RL_EPROOF, "proof: op %u: the choice is no permutation of its tokens, group after group", i);
}

/* With one token at most every form must write what stands. */
static rl_status check_idle(rl_ctx *ctx, const rl_cert *c, uint32_t i) {
    const rl_cert_op *op = &c->op[i];
    const uint8_t only[1] = {0};
    uint8_t out[256];
    for (uint32_t k = 0; k < op->nform; k++)
        for (uint32_t p = 0; p < op->npin; p++) {
            uint32_t n = c->value[op->pin[p].value].natom;
            rl_cert_write_order(op, k, only, p, false, out);
            if (!rl_same_bytes(out, op->pin[p].stands, n))
                return rl_fail(ctx, RL_EPROOF, "proof: op %u: one token, but form %u is not the order that stands at pin %u", i, k, p);
        }
    return RL_OK;
}

static rl_status check_op(rl_ctx *ctx, const rl_cert *c, uint32_t i) {
    const rl_cert_op *op = &c->op[i];
    if (op->ntoken > 255) return rl_fail(ctx, RL_EPROOF, "proof: op %u: %u tokens, at most 255 are allowed", i, op->ntoken);
    bool fixed = op->fixed || op->kind != RL_CERT_NODE;
    if (fixed && (op->ntoken || op->nform || op->chosen != RL_NONE))
        return rl_fail(ctx, RL_EPROOF, "proof: op %u is fixed, but has tokens, forms or a choice", i);
    for (uint32_t p = 0; p < op->npin; p++) RL_TRY(check_pin(ctx, c, i, p));
    for (uint32_t p = 0; !fixed && p < op->npin; p++) RL_TRY(check_cover(ctx, c, i, p));
    for (uint32_t k = 0; k < op->nform; k++)
        for (uint32_t p = 0; p < op->npin; p++) RL_TRY(check_sequence(ctx, op, i, k, p));
    RL_TRY(check_choice(ctx, op, i));
    RL_TRY(rl_cert_check_charge(ctx, c, i));
    return rl_cert_is_fixed(op) ? check_idle(ctx, c, i) : RL_OK;
}

/* ---- the sums ---- */

/* What fixed ops make the values cost that are in no part: local[v] tells which. */
static rl_status add_fixed(rl_cert_work *w, rl_cert_cost *sum) {
    const rl_cert *c = w->c;
    rl_cert_orders all = {.mem = w->mem, .nowner = c->nvalue};
    for (uint32_t v = 0; v < c->nvalue; v++) {
        uint32_t first = all.order.n;
        for (uint32_t k = w->pinstart[v]; w->stamp[v] == RL_NONE && k < w->pinstart[v + 1]; k++) {
            const rl_cert_op *op = &c->op[w->where[k].op];
            if (rl_cert_is_fixed(op)) rl_cert_intern(&all, v, op->pin[w->where[k].pin].stands, c->value[v].natom);
        }
        if (all.order.n > first) RL_TRY(rl_cert_add_cost(w->ctx, c, v, all.order.n - first - 1, sum));
    }
    return RL_OK;
}

/* ---- parts ---- */

static void list_pins(rl_cert_work *w) {
    const rl_cert *c = w->c;
    uint32_t npin = 0, n = 0;
    for (uint32_t i = 0; i < c->nop; i++) npin += c->op[i].npin;
    uint32_t *value = rl_new(w->mem, uint32_t, npin);
    struct rl_cert_place *where = rl_new(w->mem, struct rl_cert_place, npin);
    for (uint32_t i = 0; i < c->nop; i++)
        for (uint32_t p = 0; p < c->op[i].npin; p++, n++) {
            value[n] = c->op[i].pin[p].value;
            where[n] = (struct rl_cert_place){i, p};
        }
    w->pinstart = rl_sort_by_key(w->mem, c->nvalue, value, where, npin, sizeof *where);
    w->where = where;
}

static const uint8_t *const *kept_places(rl_arena *mem, const rl_cert *c) {
    const uint8_t **place = rl_new(mem, const uint8_t *, c->nvalue);
    for (uint32_t v = 0; v < c->nvalue; v++) {
        if (!c->value[v].keep) continue;
        uint8_t *p = rl_new(mem, uint8_t, c->value[v].natom);
        memset(p, RL_CERT_GONE, c->value[v].natom);
        for (uint32_t k = 0; k < c->value[v].nkeep; k++) p[c->value[v].keep[k]] = (uint8_t)k;
        place[v] = p;
    }
    return place;
}

/* The values of a part are its own, and the part names all of their ops that are not fixed, each once. */
static rl_status claim_values(rl_cert_work *w, uint32_t k, uint32_t *partof) {
    const rl_cert_part *part = &w->c->part[k];
    for (uint32_t j = 0; j < part->nop; j++) {
        uint32_t i = part->op[j];
        if (i >= w->c->nop || rl_cert_is_fixed(&w->c->op[i]) || partof[i] != RL_NONE)
            return rl_fail(w->ctx, RL_EPROOF, "proof: component %u: op %u is unknown, fixed or named before", k, i);
        partof[i] = k;
        for (uint32_t p = 0; p < w->c->op[i].npin; p++) {
            uint32_t v = w->c->op[i].pin[p].value;
            if (w->stamp[v] != RL_NONE && w->stamp[v] != k)
                return rl_fail(w->ctx, RL_EPROOF, "proof: components %u and %u share value %u", w->stamp[v], k, v);
            w->stamp[v] = k;
        }
    }
    return RL_OK;
}

/* Do the spans have all ops, one after another? */
static rl_status check_spans(rl_cert_work *w, uint32_t k) {
    const rl_cert_part *part = &w->c->part[k];
    uint32_t n = 0;
    if (!part->nspan) return RL_OK;
    if (w->c->bytes_first) return rl_fail(w->ctx, RL_EPROOF, "proof: component %u: spans are of conversions, or of times", k);
    for (uint32_t i = 0; i < part->nspan; i++) {
        if (part->span[i].nop == 0 || part->span[i].nop > part->nop - n)
            return rl_fail(w->ctx, RL_EPROOF, "proof: component %u: span %u has %u ops, where %u are left", k, i, part->span[i].nop, part->nop - n);
        n += part->span[i].nop;
    }
    return n == part->nop ? RL_OK : rl_fail(w->ctx, RL_EPROOF, "proof: component %u: %u of its ops are in no span", k, part->nop - n);
}

static rl_status check_partition(rl_cert_work *w) {
    const rl_cert *c = w->c;
    uint32_t *partof = rl_new(w->mem, uint32_t, c->nop);
    for (uint32_t i = 0; i < c->nop; i++) partof[i] = RL_NONE;
    for (uint32_t v = 0; v < c->nvalue; v++) w->stamp[v] = RL_NONE;
    for (uint32_t k = 0; k < c->npart; k++) RL_TRY(claim_values(w, k, partof));
    for (uint32_t i = 0; i < c->nop; i++)
        for (uint32_t p = 0; p < c->op[i].npin && !rl_cert_is_fixed(&c->op[i]); p++)
            if (w->stamp[c->op[i].pin[p].value] != partof[i])
                return rl_fail(w->ctx, RL_EPROOF, "proof: op %u is not named by component %u, which has its value %u", i,
                               w->stamp[c->op[i].pin[p].value], c->op[i].pin[p].value);
    return RL_OK;
}

/* *undecided: as of rl_cert_check. */
static rl_status check_bound(rl_cert_work *w, uint32_t *undecided) {
    rl_cert_cost sum = {0};
    RL_TRY(check_partition(w));
    RL_TRY(add_fixed(w, &sum));
    for (uint32_t k = 0; k < w->c->npart; k++) {
        rl_cert_cost x = w->c->part[k].least;
        int64_t price = w->c->part[k].price, most = w->c->by_time ? (int64_t)1 << 42 : 0;
        if (x.count < 0 || x.bytes < 0 || price < 0 || price > most || __builtin_add_overflow(sum.count, x.count, &sum.count) ||
            __builtin_add_overflow(sum.bytes, x.bytes, &sum.bytes))
            return rl_fail(w->ctx, RL_EPROOF, "proof: component %u: its cost is negative or too large", k);
    }
    RL_TRY(rl_cert_check_sum(w->ctx, w->c, "the bound", sum, w->c->bound));
    for (uint32_t k = 0; k < w->c->npart; k++) {
        RL_TRY(check_spans(w, k));
        rl_status s = rl_cert_part_check(w, k);
        if (s == RL_EPROOF && w->undecided) *undecided = k;
        if (s != RL_OK) return s;
    }
    return RL_OK;
}

/* So far: comparisons, and orders named. */
typedef struct { uint64_t work, named; } spent;

static rl_status check_all(rl_ctx *ctx, rl_arena *mem, const rl_cert *c, uint32_t maxstate, uint64_t maxwork, spent *so_far, uint32_t *undecided) {
    for (uint32_t v = 0; v < c->nvalue; v++) RL_TRY(check_value(ctx, c, v));
    for (uint32_t i = 0; i < c->nop; i++) RL_TRY(check_op(ctx, c, i));
    RL_TRY(rl_cert_check_swaps(ctx, c));
    RL_TRY(rl_cert_check_assignment(ctx, c));
    rl_cert_work w = {.ctx = ctx, .mem = mem, .c = c, .maxstate = maxstate, .maxwork = maxwork, .work = so_far->work, .index.mem = mem,
                      .local = rl_new(mem, uint32_t, c->nvalue), .stamp = rl_new(mem, uint32_t, c->nvalue)};
    w.menus = (rl_cert_menus){.mem = mem, .c = c, .limit = maxstate, .named = so_far->named, .place = kept_places(mem, c), .index.mem = mem};
    list_pins(&w);
    rl_status s = check_bound(&w, undecided);
    *so_far = (spent){w.work, w.menus.named};
    return s;
}

static rl_status check_graph(rl_ctx *ctx, const rl_cert *c, uint32_t maxstate, uint64_t maxwork, spent *so_far, uint32_t *undecided) {
    rl_arena mem;
    rl_arena_init(&mem, ctx);
    rl_status s = check_all(ctx, &mem, c, maxstate, maxwork, so_far, undecided);
    rl_arena_free(&mem);
    return s;
}

rl_status rl_cert_check(rl_ctx *ctx, const rl_cert *c, uint32_t maxstate, uint64_t maxwork, uint32_t *undecided) {
    spent so_far = {0};
    uint32_t other; /* of another graph */
    if (!undecided) undecided = &other;
    *undecided = RL_NONE;
    RL_TRY(check_graph(ctx, c, maxstate, maxwork, &so_far, undecided));
    so_far = (spent){0};
    if (c->time) RL_TRY(check_graph(ctx, c->time, maxstate, maxwork, &so_far, &other));
    so_far = (spent){0};
    for (uint32_t i = 0; i < c->nfunction; i++) {
        const rl_cert_function *f = &c->function[i];
        rl_status s = check_graph(ctx, f->cert, maxstate, maxwork, &so_far, &other);
        if (s == RL_OK && f->cert->time) s = check_graph(ctx, f->cert->time, maxstate, maxwork, &so_far, &other);
        char message[sizeof ctx->error];
        memcpy(message, ctx->error, sizeof message);
        if (s != RL_OK) return rl_fail(ctx, s, "function '%.100s': %s", f->name, message);
    }
    return RL_OK;
}
