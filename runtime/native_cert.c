/* Checks the certificate of a plan: see native_cert.h, and docs/proof.md, section 6, for why it may.
 *
 * 1. The choice: the sum of its configurations, its moves and what is fixed is the claim.
 * 2. Each `drop` line: the configuration that goes can be replaced by the other in any choice, and the choice costs no more.  Of two that are as
 *    good the first that goes is compared with one that is still there, so one of them stays.
 * 3. Of what is left no choice costs less than the claim: the ops are taken as they stand, and for each partial choice its cost is kept, and
 *    what it costs yet to have each value in each layout that is read later.  What costs the claim already, with the least that the ops to
 *    come cost, goes, and so does what another stands for.  In the end nothing may be left. */
#include "native_cert.h"

#include <string.h>

#include "element.h"

enum { MOSTSTATES = 1 << 16 };

typedef struct { uint32_t op, pin; } end;

typedef struct {
    rl_ctx *ctx;
    rl_arena *mem;
    const rl_plan_cert *c;
    rl_hash moves; /* of value, from, to -> its place */
    bool **keep;   /* [op][configuration] */
    end *maker;    /* [value] op RL_NONE: not there yet */
    struct { end *p; uint32_t n, cap; } *reader; /* [value] */
} checker;

static rl_status wrong(const checker *k, const char *what, uint32_t op) {
    return rl_fail(k->ctx, RL_EPROOF, "the plan's certificate: op %u: %s", op, what);
}

/* ---- structure ---- */

static uint64_t key_of(uint32_t value, uint32_t from, uint32_t to) {
    return (uint64_t)value << 12 | from << 6 | to;
}

/* -1: no such move is known. */
static int64_t move_ns(const checker *k, uint32_t value, uint32_t from, uint32_t to) {
    if (from == to) return 0;
    uint32_t i = rl_hash_get(&k->moves, key_of(value, from, to));
    return i == RL_NONE ? -1 : k->c->move[i].ns;
}

/* Each value has one maker, before its readers. */
static rl_status find_ends(checker *k) {
    for (uint32_t i = 0; i < k->c->nop; i++) {
        const rl_plan_cert_op *o = &k->c->op[i];
        for (uint32_t p = 0; p < o->npin; p++) {
            uint32_t v = o->pin[p].value;
            if (p && o->pin[p - 1].out && !o->pin[p].out) return wrong(k, "an input after an output", i);
            if (o->pin[p].out != (k->maker[v].op == RL_NONE)) return wrong(k, "it makes a value that is there, or reads one that is not", i);
            if (o->pin[p].out) k->maker[v] = (end){i, p};
            else rl_push(k->mem, k->reader[v], ((end){i, p}));
        }
    }
    return RL_OK;
}

static rl_status find_moves(checker *k) {
    k->moves.mem = k->mem;
    for (uint32_t i = 0; i < k->c->nmove; i++) {
        const rl_plan_cert_move *m = &k->c->move[i];
        uint64_t key = key_of(m->value, m->from, m->to);
        if (m->from == m->to || rl_hash_get(&k->moves, key) != RL_NONE) return rl_fail(k->ctx, RL_EPROOF, "the plan's certificate: a move twice, or to where it is");
        rl_hash_put(&k->moves, key, i);
    }
    for (uint32_t i = 0; i < k->c->nop; i++) { /* what can be made so and read so can be moved so */
        const rl_plan_cert_op *o = &k->c->op[i];
        for (uint32_t p = 0; p < o->npin; p++) {
            if (o->pin[p].out) continue;
            const end *at = &k->maker[o->pin[p].value];
            const rl_plan_cert_op *maker = &k->c->op[at->op];
            for (uint32_t c = 0; c < o->ncfg; c++)
                for (uint32_t d = 0; d < maker->ncfg; d++)
                    if (move_ns(k, o->pin[p].value, maker->cfg[d].lay[at->pin], o->cfg[c].lay[p]) < 0) return wrong(k, "a move has no cost", i);
        }
    }
    return RL_OK;
}

/* ---- the choice ---- */

static uint32_t made_in(const checker *k, uint32_t v) {
    const rl_plan_cert_op *o = &k->c->op[k->maker[v].op];
    return o->cfg[o->chosen].lay[k->maker[v].pin];
}

static rl_status check_choice(checker *k) {
    int64_t sum = k->c->fixed;
    uint64_t *has = rl_new(k->mem, uint64_t, k->c->nvalue + 1u);
    for (uint32_t i = 0; i < k->c->nop; i++) {
        const rl_plan_cert_op *o = &k->c->op[i];
        const uint32_t *lay = o->cfg[o->chosen].lay;
        sum = rl_add(sum, o->cfg[o->chosen].ns);
        for (uint32_t p = 0; p < o->npin; p++) {
            uint32_t v = o->pin[p].value;
            uint64_t bit = UINT64_C(1) << lay[p];
            if (!o->pin[p].out && !(has[v] & bit)) sum = rl_add(sum, move_ns(k, v, made_in(k, v), lay[p]));
            has[v] |= bit;
        }
    }
    if (sum == k->c->claim) return RL_OK;
    return rl_fail(k->ctx, RL_EPROOF, "the plan's certificate: the choice takes %lld ns, not %lld as it says", (long long)sum, (long long)k->c->claim);
}

/* ---- drops ---- */

/* The layouts that a pin has in what is kept. */
static uint64_t layouts_of(const checker *k, end at) {
    const rl_plan_cert_op *o = &k->c->op[at.op];
    uint64_t all = 0;
    for (uint32_t c = 0; c < o->ncfg; c++)
        if (k->keep[at.op][c]) all |= UINT64_C(1) << o->cfg[c].lay[at.pin];
    return all;
}

/* The most that v costs more when one reader wants it in `to` and not in `from`. */
static int64_t read_more(const checker *k, uint32_t v, uint32_t from, uint32_t to) {
    bool anyway = false; /* another has it moved to `to`, whatever it chooses */
    uint32_t may = 0;    /* readers that can want `from` */
    for (uint32_t i = 0; i < k->reader[v].n; i++) {
        uint64_t lays = layouts_of(k, k->reader[v].p[i]);
        may += (uint32_t)(lays >> from & 1);
        anyway = anyway || lays == UINT64_C(1) << to;
    }
    uint64_t made = layouts_of(k, k->maker[v]);
    int64_t most = INT64_MIN;
    for (uint32_t p = 0; p < k->c->nlay; p++) {
        if (!(made >> p & 1)) continue;
        int64_t more = (anyway ? 0 : move_ns(k, v, p, to)) - (may == 1 ? move_ns(k, v, p, from) : 0);
        most = RL_MAX(most, more);
    }
    return most;
}

/* The most that v costs more when it is made in `to` and not in `from`: for any of the layouts that its readers may want, at least one. */
static int64_t make_more(const checker *k, uint32_t v, uint32_t from, uint32_t to) {
    uint64_t want = 0;
    int64_t most = INT64_MIN, sum = 0;
    for (uint32_t i = 0; i < k->reader[v].n; i++) want |= layouts_of(k, k->reader[v].p[i]);
    for (uint32_t d = 0; d < k->c->nlay; d++) {
        if (!(want >> d & 1)) continue;
        int64_t more = move_ns(k, v, to, d) - move_ns(k, v, from, d);
        most = RL_MAX(most, more);
        sum = rl_add(sum, RL_MAX(more, 0));
    }
    if (!want) return 0;
    return k->reader[v].n > 1 && most > 0 ? sum : most;
}

static rl_status check_drops(checker *k) {
    for (uint32_t i = 0; i < k->c->ndrop; i++) {
        const rl_profile_drop *d = &k->c->drop[i];
        const rl_plan_cert_op *o = &k->c->op[d->op];
        const rl_plan_cert_config *from = &o->cfg[d->cfg], *to = &o->cfg[d->by];
        if (d->cfg == d->by || !k->keep[d->op][d->cfg] || !k->keep[d->op][d->by]) return wrong(k, "a configuration goes that is not there, or for one that is not", d->op);
        int64_t more = to->ns - from->ns;
        for (uint32_t p = 0; p < o->npin; p++) {
            uint32_t v = o->pin[p].value;
            if (from->lay[p] != to->lay[p]) more = rl_add(more, o->pin[p].out ? make_more(k, v, from->lay[p], to->lay[p]) : read_more(k, v, from->lay[p], to->lay[p]));
        }
        if (more > 0) return wrong(k, "a configuration goes that a choice may need", d->op);
        k->keep[d->op][d->cfg] = false;
    }
    return RL_OK;
}

/* ---- the rest ---- */

/* A value and a layout in which an op to come may read it.  A state has, for each of these, what it costs yet to have it there: 0, or the
 * move. */
typedef struct { uint32_t value, lay; } slot;
typedef struct { int64_t cost, *yet; } state;
typedef struct { struct { state *p; uint32_t n, cap; } state; struct { slot *p; uint32_t n, cap; } slot; rl_arena mem; } layer;

typedef struct {
    checker *k;
    uint32_t *last;  /* [value][layout] 1 + the last op that may read it so */
    uint32_t *place; /* [value][layout] its place among the slots before the op */
    int64_t *ahead;  /* [op] what this op and those after it cost at least */
    layer now, next;
} walker;

static uint32_t *of_slot(const walker *w, uint32_t *table, uint32_t value, uint32_t lay) {
    return &table[(size_t)value * w->k->c->nlay + lay];
}

static void prepare(walker *w) {
    const rl_plan_cert *c = w->k->c;
    w->last = rl_new(w->k->mem, uint32_t, (size_t)c->nvalue * c->nlay + 1);
    w->place = rl_new(w->k->mem, uint32_t, (size_t)c->nvalue * c->nlay + 1);
    w->ahead = rl_new(w->k->mem, int64_t, c->nop + 1u);
    for (uint32_t i = c->nop; i-- > 0;) {
        int64_t least = INT64_MAX;
        for (uint32_t d = 0; d < c->op[i].ncfg; d++) {
            if (!w->k->keep[i][d]) continue;
            least = RL_MIN(least, c->op[i].cfg[d].ns);
            for (uint32_t p = 0; p < c->op[i].npin; p++) {
                uint32_t *last = of_slot(w, w->last, c->op[i].pin[p].value, c->op[i].cfg[d].lay[p]);
                if (!c->op[i].pin[p].out) *last = RL_MAX(*last, i + 1);
            }
        }
        w->ahead[i] = rl_add(w->ahead[i + 1], least);
    }
    rl_arena_init(&w->now.mem, w->k->ctx);
    rl_arena_init(&w->next.mem, w->k->ctx);
}

static void start_layer(layer *l) {
    rl_arena_free(&l->mem);
    *l = (layer){.mem = l->mem};
}

/* What is there and read after op i, and what the op makes. */
static void find_slots(walker *w, uint32_t i) {
    const rl_plan_cert_op *o = &w->k->c->op[i];
    for (uint32_t s = 0; s < w->now.slot.n; s++) {
        const slot *at = &w->now.slot.p[s];
        *of_slot(w, w->place, at->value, at->lay) = s;
        if (*of_slot(w, w->last, at->value, at->lay) > i + 1) rl_push(&w->next.mem, w->next.slot, *at);
    }
    for (uint32_t p = 0; p < o->npin; p++)
        for (uint32_t d = 0; o->pin[p].out && d < w->k->c->nlay; d++)
            if (*of_slot(w, w->last, o->pin[p].value, d) > i + 1) rl_push(&w->next.mem, w->next.slot, ((slot){o->pin[p].value, d}));
}

/* What the values that the op makes cost to have in the slots, and what those that are there do. */
static int64_t *costs_yet(walker *w, const rl_plan_cert_op *o, const rl_plan_cert_config *c, const int64_t *yet) {
    int64_t *then = rl_new(&w->next.mem, int64_t, w->next.slot.n + 1u);
    for (uint32_t n = 0; n < w->next.slot.n; n++) {
        const slot *at = &w->next.slot.p[n];
        const end *maker = &w->k->maker[at->value];
        bool made = &w->k->c->op[maker->op] == o;
        then[n] = made ? move_ns(w->k, at->value, c->lay[maker->pin], at->lay) : yet[*of_slot(w, w->place, at->value, at->lay)];
    }
    return then;
}

/* The state behind the op in this configuration, if it may lead to less than the claim; yet: as before it, is changed. */
static void add_state(walker *w, uint32_t i, const rl_plan_cert_config *c, int64_t cost, int64_t *yet) {
    const rl_plan_cert_op *o = &w->k->c->op[i];
    cost = rl_add(cost, c->ns);
    for (uint32_t p = 0; p < o->npin; p++) {
        if (o->pin[p].out) continue;
        int64_t *left = &yet[*of_slot(w, w->place, o->pin[p].value, c->lay[p])];
        cost = rl_add(cost, *left);
        *left = 0;
    }
    if (rl_add(cost, w->ahead[i + 1]) >= w->k->c->claim) return;
    state then = {cost, costs_yet(w, o, c, yet)};
    rl_push(&w->next.mem, w->next.state, then);
}

static int by_cost(const void *arg, int64_t a, int64_t b) {
    const state *s = arg;
    return (s[a].cost > s[b].cost) - (s[a].cost < s[b].cost);
}

/* Whatever follows b may follow a, and costs no more: with all that is dearer to have in a. */
static bool stands_for(const state *a, const state *b, uint32_t nslot) {
    int64_t cost = a->cost;
    for (uint32_t n = 0; n < nslot && cost <= b->cost; n++) cost = rl_add(cost, RL_MAX(a->yet[n] - b->yet[n], 0));
    return cost <= b->cost;
}

/* Leaves the states that none of the cheapest stands for: these alone, as they stand for nearly all that can go. */
static void leave_needed(layer *l) {
    enum { CHEAPEST = 400 };
    int64_t *order = rl_new(&l->mem, int64_t, l->state.n + 1u);
    state *kept = rl_new(&l->mem, state, l->state.n + 1u);
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->state.n; i++) order[i] = i;
    rl_sort(&l->mem, order, l->state.n, by_cost, l->state.p);
    for (uint32_t i = 0; i < l->state.n; i++) {
        const state *s = &l->state.p[order[i]];
        uint32_t j = 0, most = RL_MIN(n, (uint32_t)CHEAPEST);
        while (j < most && !stands_for(&kept[j], s, l->slot.n)) j++;
        if (j == most) kept[n++] = *s;
    }
    l->state.p = kept, l->state.n = n;
}

/* Op i, from all states. */
static void take_op(walker *w, uint32_t i) {
    const rl_plan_cert_op *o = &w->k->c->op[i];
    start_layer(&w->next);
    find_slots(w, i);
    int64_t *yet = rl_new(&w->next.mem, int64_t, w->now.slot.n + 1u);
    for (uint32_t s = 0; s < w->now.state.n; s++)
        for (uint32_t c = 0; c < o->ncfg; c++) {
            if (!w->k->keep[i][c]) continue;
            memcpy(yet, w->now.state.p[s].yet, w->now.slot.n * sizeof *yet);
            add_state(w, i, &o->cfg[c], w->now.state.p[s].cost, yet);
        }
    leave_needed(&w->next);
    layer t = w->now;
    w->now = w->next, w->next = t;
}

static rl_status check_least(checker *k) {
    walker w = {.k = k};
    prepare(&w);
    rl_push(&w.now.mem, w.now.state, ((state){k->c->fixed, rl_new(&w.now.mem, int64_t, 1)}));
    bool many = false;
    for (uint32_t i = 0; i < k->c->nop && w.now.state.n && !many; i++) {
        take_op(&w, i);
        many = w.now.state.n > MOSTSTATES || rl_stopped(k->ctx);
    }
    uint32_t left = w.now.state.n;
    rl_arena_free(&w.now.mem);
    rl_arena_free(&w.next.mem);
    if (many) return rl_fail(k->ctx, RL_EPROOF, "the plan's certificate: whether a choice takes less cannot be told within the limits");
    return left ? rl_fail(k->ctx, RL_EPROOF, "the plan's certificate: a choice takes less than %lld ns", (long long)k->c->claim) : RL_OK;
}

static rl_status check(checker *k) {
    const rl_plan_cert *c = k->c;
    k->maker = rl_new(k->mem, end, c->nvalue + 1u);
    memset(k->maker, 0xff, c->nvalue * sizeof *k->maker);
    k->reader = rl_alloc_array(k->mem, c->nvalue + 1u, sizeof *k->reader);
    k->keep = rl_new(k->mem, bool *, c->nop + 1u);
    for (uint32_t i = 0; i < c->nop; i++) {
        k->keep[i] = rl_new(k->mem, bool, c->op[i].ncfg + 1u);
        memset(k->keep[i], true, c->op[i].ncfg);
    }
    RL_TRY(find_ends(k));
    RL_TRY(find_moves(k));
    RL_TRY(check_choice(k));
    RL_TRY(check_drops(k));
    return check_least(k);
}

rl_status rl_plan_cert_check(rl_ctx *ctx, const rl_plan_cert *c) {
    rl_arena tmp;
    rl_arena_init(&tmp, ctx);
    checker k = {.ctx = ctx, .mem = &tmp, .c = c};
    rl_status s = check(&k);
    rl_arena_free(&tmp);
    return s;
}

/* ---- the model ---- */

/* Values of the two go together, one for one. */
static bool same_value(uint32_t *of, uint32_t *back, uint32_t mine, uint32_t theirs) {
    if (of[mine] == RL_NONE && back[theirs] == RL_NONE) of[mine] = theirs, back[theirs] = mine;
    return of[mine] == theirs && back[theirs] == mine;
}

static bool same_pins(const rl_exec *x, const rl_step *s, const rl_plan_cert_op *o, uint32_t *of, uint32_t *back) {
    rl_pin pin[RL_PINS];
    uint32_t n = rl_native_pins(x, s, pin);
    while (n && o->outside && pin[n - 1].out) n--;
    if (n != o->npin || strcmp(s->info->type, o->type) != 0) return false;
    for (uint32_t k = 0; k < o->npin; k++)
        if (pin[k].out != o->pin[k].out || !same_value(of, back, o->pin[k].value, pin[k].v.i)) return false;
    return true;
}

rl_status rl_plan_cert_fits(const rl_plan_cert *c, const rl_exec *x) {
    rl_arena tmp;
    rl_arena_init(&tmp, x->g->ctx);
    rl_pin pin[RL_PINS];
    uint32_t *of = rl_new(&tmp, uint32_t, c->nvalue + 1u), *back = rl_new(&tmp, uint32_t, x->g->nval + 1u), at = 0, bad = RL_NONE;
    memset(of, 0xff, c->nvalue * sizeof *of);
    memset(back, 0xff, x->g->nval * sizeof *back);
    for (uint32_t i = 0; i < c->nop && bad == RL_NONE; i++) {
        if (c->op[i].step == RL_NONE) continue;
        while (at < x->nstep && at < c->op[i].step && !rl_native_pins(x, &x->step[at], pin)) at++;
        if (at != c->op[i].step || at >= x->nstep || !same_pins(x, &x->step[at], &c->op[i], of, back)) bad = i;
        at++;
    }
    while (bad == RL_NONE && at < x->nstep)
        if (rl_native_pins(x, &x->step[at++], pin)) bad = c->nop;
    rl_arena_free(&tmp);
    return bad == RL_NONE ? RL_OK : rl_fail(x->g->ctx, RL_EPROOF, "the plan's certificate: op %u is not the model's", bad);
}
