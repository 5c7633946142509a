/* Permutations of an op's groups: see config_perms.h. */
#include "config_perms.h"
#include <string.h>

#define MAXPERM 64 /* permutations of one group in a closure */

/* ---- permutations ---- */

static uint32_t factorial(uint32_t n) { return n < 2 ? 1 : n * factorial(n - 1); }

static void add_perm(rl_perms *s, const uint8_t *t, uint32_t n, uint32_t level) {
    for (uint32_t i = 0; i < s->n; i++)
        if (s->p[i].t[0] == t[0] && rl_same_bytes(s->p[i].t, t, n)) {
            s->p[i].level = RL_MIN(s->p[i].level, level);
            return;
        }
    if (s->n == s->max || level > RL_MAXLEVEL) return;
    memcpy(s->p[s->n].t, t, n);
    s->p[s->n++].level = level;
}

static void list_all(rl_perms *s, uint8_t *t, uint32_t n, uint32_t k) {
    if (k == n) {
        memcpy(s->p[s->n++].t, t, n);
        return;
    }
    for (uint32_t i = k; i < n; i++) {
        uint8_t x = t[i];
        memmove(t + k + 1, t + k, i - k);
        t[k] = x;
        list_all(s, t, n, k + 1);
        memmove(t + k, t + k + 1, i - k);
        t[i] = x;
    }
}

rl_perms rl_all_perms(rl_sequences *s, uint32_t g) {
    const uint32_t size = s->form->start[g + 1] - s->form->start[g], n = factorial(size);
    rl_perms all = {rl_new(s->mem, rl_perm, n), 0, n};
    uint8_t t[RL_MAXATOM];
    memcpy(t, s->form->member + s->form->start[g], size);
    list_all(&all, t, size, 0);
    return all;
}

/* ---- as orders show them ---- */

rl_sequences rl_sequences_of(const rl_plan *p, const rl_oplegal *op, rl_arena *mem) {
    return (rl_sequences){.p = p, .op = op, .mem = mem, .at = rl_new(mem, struct rl_lying, 2 * (size_t)op->noperand),
                       .begin = rl_alloc_array(mem, op->noperand, sizeof(uint32_t[RL_MAXGROUP + 1])), .bymember.mem = mem};
}

void rl_sequences_begin(rl_sequences *s, const rl_form *f) {
    s->form = f;
    for (uint32_t o = 0; o < s->op->noperand; o++) {
        s->at[2 * o].npart = s->at[2 * o + 1].npart = 0;
        memset(s->begin[o], 0, sizeof s->begin[o]);
        for (uint32_t t = 0; t < s->op->ntoken; t++)
            if (s->op->token[t].natom[o]) s->begin[o][f->group[t] + 1]++;
        for (uint32_t g = 0; g < RL_MAXGROUP; g++) s->begin[o][g + 1] += s->begin[o][g];
    }
}

static const uint8_t *sort_tokens(const rl_sequences *s, uint32_t operand, const uint8_t *order, bool last) {
    uint8_t place[256], pos[256], *out = rl_new(s->mem, uint8_t, rl_part_size(s, operand) + 1u);
    uint32_t natom = s->p->cls.p[s->op->operand[operand].cls].natom, n = 0;
    for (uint32_t i = 0; i < natom; i++) place[order[i]] = (uint8_t)i;
    for (uint32_t i = 0; i < s->op->ntoken; i++) {
        const rl_token *t = &s->op->token[i];
        if (!t->natom[operand]) continue;
        uint8_t at = place[t->atom[operand][last ? t->natom[operand] - 1 : 0]];
        uint32_t k = n++;
        for (; k > 0 && pos[k - 1] > at; k--) {
            pos[k] = pos[k - 1];
            out[k] = out[k - 1];
        }
        pos[k] = at;
        out[k] = (uint8_t)i;
    }
    return out;
}

/* The operand's tokens as they lie in one of its class's orders. */
static const uint8_t *lying(rl_sequences *s, uint32_t operand, uint32_t order, bool last) {
    struct rl_lying *x = &s->at[2 * operand + last];
    const rl_cls *c = &s->p->cls.p[s->op->operand[operand].cls];
    if (order >= x->norder) {
        x->token = rl_grow(s->mem, x->token, x->norder, c->order.n, sizeof *x->token);
        x->norder = c->order.n;
    }
    if (!x->token[order]) x->token[order] = sort_tokens(s, operand, c->order.p[order].p, last);
    return x->token[order];
}

const uint8_t *rl_part_of(rl_sequences *s, uint32_t operand, uint32_t order, bool last) {
    struct rl_lying *x = &s->at[2 * operand + last];
    const uint32_t n = rl_part_size(s, operand), norder = s->p->cls.p[s->op->operand[operand].cls].order.n;
    if (order >= x->npart) {
        uint8_t **part = rl_new(s->mem, uint8_t *, norder);
        if (x->npart) memcpy(part, x->part, x->npart * sizeof *part);
        x->part = part;
        x->npart = norder;
    }
    if (x->part[order]) return x->part[order];
    const uint8_t *token = lying(s, operand, order, last);
    uint8_t *part = x->part[order] = rl_new(s->mem, uint8_t, n + 1u);
    uint32_t at[RL_MAXGROUP];
    memcpy(at, s->begin[operand], sizeof at);
    for (uint32_t i = 0; i < n; i++) part[at[s->form->group[token[i]]]++] = token[i];
    return part;
}

bool rl_is_wide(const rl_oplegal *op, uint32_t operand) {
    for (uint32_t t = 0; t < op->ntoken; t++)
        if (op->token[t].natom[operand] > 1) return true;
    return false;
}

static bool holds(const uint8_t *t, uint32_t n, uint8_t x) { return n && memchr(t, x, n) != NULL; }

/* Tokens that an operand lacks: as in each known permutation, first, and last. */
static void complete(rl_perms *s, const rl_form *f, uint32_t g, const uint8_t *part, uint32_t npart, uint32_t level) {
    uint32_t size = f->start[g + 1] - f->start[g], known = s->n, n = 0;
    const uint8_t *all = f->member + f->start[g];
    uint8_t t[RL_MAXATOM];
    for (uint32_t i = 0; i < size; i++)
        if (!holds(part, npart, all[i])) t[n++] = all[i];
    memcpy(t + n, part, npart);
    add_perm(s, t, size, level);
    memcpy(t, part, npart);
    n = npart;
    for (uint32_t i = 0; i < size; i++)
        if (!holds(part, npart, all[i])) t[n++] = all[i];
    add_perm(s, t, size, level);
    for (uint32_t k = 0; k < known; k++) {
        uint32_t at = 0;
        for (uint32_t i = 0; i < size; i++) t[i] = holds(part, npart, s->p[k].t[i]) ? part[at++] : s->p[k].t[i];
        add_perm(s, t, size, level);
    }
}

static void list_known(rl_sequences *q, uint32_t g, rl_perms *s) {
    const rl_oplegal *op = q->op;
    const rl_form *f = q->form;
    uint32_t size = f->start[g + 1] - f->start[g];
    add_perm(s, f->member + f->start[g], size, 0);
    for (uint32_t pass = 0; pass < 2 && size > 1; pass++) /* whole permutations first: the others are completed from them */
        for (uint32_t o = 0; o < op->noperand; o++) {
            uint32_t n = q->begin[o][g + 1] - q->begin[o][g];
            if (!op->operand[o].pin || n == 0 || (n == size) != (pass == 0)) continue;
            const rl_cls *c = &q->p->cls.p[op->operand[o].cls];
            uint32_t nway = 1 + rl_is_wide(op, o);
            for (uint32_t i = 0; i < c->order.n; i++)
                for (uint32_t last = 0; last < nway; last++) {
                    const uint8_t *t = rl_part_of(q, o, i, last != 0) + q->begin[o][g];
                    if (pass == 0) add_perm(s, t, size, c->order.p[i].level);
                    else complete(s, f, g, t, n, c->order.p[i].level + 1);
                }
        }
}

rl_perms rl_known_perms(rl_sequences *s, uint32_t g) {
    const uint8_t *member = s->form->member + s->form->start[g];
    const uint32_t n = s->form->start[g + 1] - s->form->start[g], max = n <= 4 ? factorial(n) : MAXPERM; /* 5! is more */
    uint64_t h = rl_hash_bytes(member, n) | 1;
    uint32_t i;
    for (; (i = rl_hash_get(&s->bymember, h)) != RL_NONE; h++)
        if (s->known.p[i].nmember == n && rl_same_bytes(s->known.p[i].member, member, n)) break;
    if (i == RL_NONE) {
        i = s->known.n;
        rl_hash_put(&s->bymember, h, i);
        rl_push(s->mem, s->known, ((struct rl_known){.member = member, .nmember = n}));
    } else if (s->known.p[i].nchange == s->nchange) return s->known.p[i].all;
    rl_perms all = {rl_new(s->mem, rl_perm, max), 0, max};
    list_known(s, g, &all);
    s->known.p[i].nchange = s->nchange;
    return s->known.p[i].all = all;
}

rl_perms rl_perms_showing(const rl_perms *all, uint32_t size, const uint8_t *part, uint32_t n, rl_arena *mem) {
    if (n == 0) return *all;
    if (n == size) {
        for (uint32_t i = 0; i < all->n; i++)
            if (all->p[i].t[0] == part[0] && rl_same_bytes(all->p[i].t, part, n)) return (rl_perms){all->p + i, 1, 1};
        return (rl_perms){NULL, 0, 0};
    }
    bool is_shown[256] = {0};
    rl_perms set = {rl_new(mem, rl_perm, all->n), 0, all->n};
    for (uint32_t i = 0; i < n; i++) is_shown[part[i]] = true;
    for (uint32_t i = 0; i < all->n; i++) {
        const uint8_t *t = all->p[i].t;
        uint32_t at = 0;
        for (uint32_t j = 0; j < size && at < n; j++) {
            if (t[j] == part[at]) at++;
            else if (is_shown[t[j]]) break;
        }
        if (at == n) set.p[set.n++] = all->p[i];
    }
    return set;
}
