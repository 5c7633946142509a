/* What an op of a conflict needs, in words, with one set of names for all tensors of the conflict.
 *
 * Names start at one tensor and go wherever an op carries an atom along:
 *   y[N,C,H,W] -> Relu -> z -> Transpose perm=[0,2,3,1] -> u        u is N,H,W,C
 * If an op works on images its tensor gives the letters; else the first tensor gives the numbers of its axes. */
#include "explain.h"

#include <inttypes.h>
#include <string.h>

/* ---- names ---- */

bool rl_is_spatial(const rl_nodeinfo *n) {
    static const char *const types[] = {"Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "FusedConv", "MaxPool", "AveragePool", "LpPool",
                                        "Resize", "Upsample", "InstanceNormalization", "GroupNormalization", "LRN", "DepthToSpace",
                                        "SpaceToDepth", "BatchNormalization", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", "GridSample"};
    for (size_t i = 0; i < RL_LEN(types); i++)
        if (strcmp(n->type, types[i]) == 0) return true;
    return false;
}

/* The image that an op reads or makes where it meets other ops of the conflict; RL_NOVALUE if it does not. */
static rl_value image_of(const rl_explainer *x, rl_exjoin j, uint32_t k) {
    const rl_oplegal *l = &x->p->op.p[k];
    if (l->node.i == RL_NONE || !rl_is_spatial(rl_nod(x->g, l->node))) return RL_NOVALUE;
    RL_EACH_PIN(l, o, pin) {
        rl_value v = l->operand[o].tensor;
        bool image = (l->operand[o].out || l->operand[o].slot == 0) && rl_val(x->g, v)->rank >= 3 && rl_val(x->g, v)->rank <= 5;
        if (image && rl_expin_meets(x, j, k, pin)) return v;
    }
    return RL_NOVALUE;
}

static uint64_t key_of(uint32_t cls, uint32_t atom) { return ((uint64_t)cls << 8 | atom) + 1; }

static bool set_name(rl_exnames *k, uint32_t cls, uint32_t atom, uint32_t name) {
    if (rl_hash_get(&k->name, key_of(cls, atom)) != RL_NONE) return false;
    rl_hash_put(&k->name, key_of(cls, atom), name);
    return true;
}

/* Atoms that a token has in one operand give their names to those it has in another. */
static bool spread_token(rl_exnames *k, const rl_oplegal *op, const rl_token *t) {
    bool more = false;
    for (uint32_t a = 0; a < op->noperand; a++)
        for (uint32_t b = 0; b < op->noperand; b++)
            for (uint32_t i = 0; a != b && t->natom[a] == t->natom[b] && i < t->natom[a]; i++) {
                uint32_t name = rl_hash_get(&k->name, key_of(op->operand[a].cls, t->atom[a][i]));
                if (name != RL_NONE) more |= set_name(k, op->operand[b].cls, t->atom[b][i], name);
            }
    return more;
}

/* Another fixed op on images calls what is not split by the same letters. */
static bool spread_fixed(rl_exnames *k, const rl_explainer *x, const rl_oplegal *op) {
    bool more = false;
    uint32_t rank = rl_val(x->g, k->ref)->rank;
    for (uint32_t o = 0; o < op->noperand; o++) {
        const rl_member *m = &x->p->member[op->operand[o].tensor.i];
        bool image = (op->operand[o].out || op->operand[o].slot == 0) && rl_val(x->g, op->operand[o].tensor)->rank == rank;
        for (uint32_t d = 0; image && d < rank; d++)
            if (m->dimstart[d + 1] == m->dimstart[d] + 1 && k->npiece[d] == 1) more |= set_name(k, m->cls, m->seq[m->dimstart[d]], d);
    }
    return more;
}

static bool spread(rl_exnames *k, const rl_explainer *x, uint32_t op) {
    const rl_oplegal *o = &x->p->op.p[op];
    bool more = false;
    if (k->letters && o->fixed && o->node.i != RL_NONE && rl_is_spatial(rl_nod(x->g, o->node))) more |= spread_fixed(k, x, o);
    for (uint32_t t = 0; t < o->ntoken; t++) more |= spread_token(k, o, &o->token[t]);
    return more;
}

void rl_exnames_of_tensor(const rl_explainer *x, rl_value v, rl_exnames *out) {
    const rl_member *m = &x->p->member[v.i];
    *out = (rl_exnames){.x = x, .ref = v, .name.mem = x->now};
    for (uint32_t d = 0; d < rl_val(x->g, v)->rank; d++) {
        out->npiece[d] = (uint32_t)(m->dimstart[d + 1] - m->dimstart[d]);
        for (uint32_t i = 0; i < out->npiece[d]; i++) set_name(out, m->cls, m->seq[m->dimstart[d] + i], d | i << 8);
    }
}

void rl_exnames_seed(const rl_explainer *x, rl_exjoin j, const rl_exids *op, rl_value fallback, rl_exnames *out) {
    rl_value image = RL_NOVALUE;
    for (uint32_t i = 0; i < op->n && !rl_has(image); i++) image = image_of(x, j, op->p[i]);
    rl_exnames_of_tensor(x, rl_has(image) ? image : fallback, out);
    out->letters = rl_has(image);
    for (bool more = true; more;) { /* there and back: chains need not wait for a round per op */
        more = false;
        for (uint32_t i = 0; i < op->n; i++) more |= spread(out, x, op->p[i]);
        for (uint32_t i = op->n; i-- > 0;) more |= spread(out, x, op->p[i]);
    }
}

/* ---- orders in words ---- */

static void put_dim(const rl_exnames *k, rl_text *t, uint32_t dim) {
    static const char *const letters[] = {"NCW", "NCHW", "NCDHW"};
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): letters are for the ranks 3 to 5 */
    if (k->letters) rl_put(t, "%c", letters[rl_val(k->x->g, k->ref)->rank - 3][dim]);
    else rl_put(t, "%" PRIu32, dim);
}

/* Atoms as names; the pieces of an axis that lie together in their order are the axis. */
static void put_atoms(const rl_exnames *k, rl_text *t, uint32_t cls, const uint8_t *atom, uint32_t n) {
    for (uint32_t i = 0; i < n;) {
        uint32_t name = rl_hash_get(&k->name, key_of(cls, atom[i])), run = 0;
        if (i) rl_put(t, ",");
        if (name == RL_NONE) {
            rl_put(t, "*");
            i++;
            continue;
        }
        uint32_t dim = name & 255, piece = name >> 8, all = k->npiece[dim];
        while (piece == 0 && run < all && i + run < n && rl_hash_get(&k->name, key_of(cls, atom[i + run])) == (dim | run << 8)) run++;
        put_dim(k, t, dim);
        if (run < all) rl_put(t, ".%" PRIu32, piece);
        i += run == all ? run : 1;
    }
}

/* Whether the atoms are those of the reference tensor, all of them. */
static bool is_whole(const rl_exnames *k, uint32_t cls, const uint8_t *order, uint32_t n) {
    uint32_t all = 0;
    for (uint32_t d = 0; d < rl_val(k->x->g, k->ref)->rank; d++) all += k->npiece[d];
    for (uint32_t i = 0; i < n; i++)
        if (rl_hash_get(&k->name, key_of(cls, order[i])) == RL_NONE) return false;
    return all == n;
}

/* The axes of size 1 behind axis d (behind none: -1), which have no atoms. */
static void put_singles(const rl_exnames *k, rl_text *t, int64_t d) {
    const rl_valinfo *v = rl_val(k->x->g, k->ref);
    for (d++; d < v->rank && k->npiece[d] == 0; d++) {
        if (t->n) rl_put(t, ",");
        put_dim(k, t, (uint32_t)d);
    }
}

/* Of the whole reference tensor with its axes of size 1: each behind the axis before it. */
static void put_whole(const rl_exnames *k, rl_text *t, uint32_t cls, const uint8_t *order, uint32_t n) {
    put_singles(k, t, -1);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t name = rl_hash_get(&k->name, key_of(cls, order[i])), dim = name & 255, from = i, piece = name >> 8;
        while (i + 1 < n && rl_hash_get(&k->name, key_of(cls, order[i + 1])) == (dim | (piece + 1) << 8)) {
            i++;
            piece++;
        }
        if (t->n) rl_put(t, ",");
        put_atoms(k, t, cls, order + from, i + 1 - from);
        if (piece + 1 == k->npiece[dim]) put_singles(k, t, dim);
    }
}

const char *rl_exwords(const rl_exnames *k, uint32_t cls, const uint8_t *order, uint32_t n) {
    rl_text t = {.mem = k->x->mem};
    if (is_whole(k, cls, order, n)) put_whole(k, &t, cls, order, n);
    else put_atoms(k, &t, cls, order, n);
    return t.p ? t.p : "";
}

/* ---- needs ---- */

static bool one_group(const rl_form *f) {
    uint32_t n = 0;
    for (uint32_t g = 0; g < RL_MAXGROUP; g++) n += f->start[g + 1] > f->start[g];
    return n <= 1;
}

static bool is_flexible(const rl_oplegal *op) {
    if (op->fixed || op->nform != 1 || !one_group(&op->form[0])) return false;
    for (uint32_t t = 0; t < op->ntoken; t++)
        for (uint32_t o = 0; o < op->noperand; o++)
            if (op->token[t].natom[o] > 1) return false;
    return true;
}

/* The tokens of a group in one operand; in brackets where they may lie in any order. */
static uint32_t put_group(const rl_exnames *k, rl_text *t, const rl_oplegal *op, const rl_form *f, uint32_t g, uint32_t o) {
    uint32_t n = 0, total = 0;
    for (uint32_t i = f->start[g]; i < f->start[g + 1]; i++) total += op->token[f->member[i]].natom[o] > 0;
    if (total > 1) rl_put(t, "(");
    for (uint32_t i = f->start[g]; i < f->start[g + 1]; i++) {
        const rl_token *x = &op->token[f->member[i]];
        if (!x->natom[o]) continue;
        if (n++) rl_put(t, ",");
        if (x->natom[o] > 1) rl_put(t, "[");
        put_atoms(k, t, op->operand[o].cls, x->atom[o], x->natom[o]);
        if (x->natom[o] > 1) rl_put(t, "]");
    }
    if (total > 1) rl_put(t, ")");
    return n;
}

/* One group: any order but for the blocks. */
static const char *block_words(const rl_exnames *k, const rl_oplegal *op, uint32_t o) {
    rl_text t = {.mem = k->x->mem};
    for (uint32_t i = 0; i < op->ntoken; i++) {
        if (op->token[i].natom[o] < 2) continue;
        if (t.n) rl_put(&t, ", ");
        rl_put(&t, "[");
        put_atoms(k, &t, op->operand[o].cls, op->token[i].atom[o], op->token[i].natom[o]);
        rl_put(&t, "]");
    }
    rl_put(&t, t.n ? " together" : "any order");
    return t.p;
}

/* "C last", for an op that says no more than this. */
static const char *norm_words(const rl_exnames *k, const rl_oplegal *op, uint32_t o) {
    rl_text t = {.mem = k->x->mem};
    put_group(k, &t, op, &op->form[0], 1, o);
    rl_put(&t, " last");
    return t.p;
}

static const char *form_words(const rl_exnames *k, const rl_oplegal *op, const rl_form *f, uint32_t o) {
    rl_text t = {.mem = k->x->mem};
    bool any = false;
    if (rl_op_class(rl_nod(k->x->g, op->node)->op) == RL_NORM) return norm_words(k, op, o);
    if (op->nform == 1 && one_group(f)) return block_words(k, op, o);
    for (uint32_t i = 0; i < RL_MAXGROUP && f->seq[o][i] != RL_END; i++) {
        uint32_t g = f->seq[o][i], has = 0;
        for (uint32_t j = f->start[g]; j < f->start[g + 1]; j++) has += op->token[f->member[j]].natom[o] > 0;
        if (!has) continue;
        if (any) rl_put(&t, ",");
        any |= put_group(k, &t, op, f, g, o) > 0;
    }
    return t.p ? t.p : "";
}

/* ---- demands ---- */

static uint32_t joined(const rl_explainer *x, rl_exjoin j, uint32_t op, uint32_t pin) {
    return x->at[op][pin] == j.place ? j.base : x->at[op][pin];
}

bool rl_expin_meets(const rl_explainer *x, rl_exjoin j, uint32_t k, uint32_t pin) {
    uint32_t first = x->meeting[joined(x, j, k, pin)];
    return first != RL_NONE && x->meet.p[first].next != RL_NONE;
}

rl_node rl_exnode_at(const rl_explainer *x, uint32_t op, rl_exwhat *what) {
    const rl_oplegal *l = &x->p->op.p[op];
    *what = l->fixed ? RL_EX_FIXED : RL_EX_FORM;
    if (l->node.i != RL_NONE) return l->node;
    const rl_valinfo *v = rl_val(x->g, l->operand[0].tensor);
    *what = v->is_input ? RL_EX_INPUT : v->is_output ? RL_EX_OUTPUT : RL_EX_CAPTURED;
    if (v->is_input || v->is_output) return RL_NONODE;
    for (uint32_t i = 0; i < v->nuse; i++) {
        rl_node n = v->use[i].node;
        uint32_t slot = v->use[i].slot, k = x->p->opof[n.i];
        if (rl_exnode_is_end(x, n)) continue; /* all that it reads are operands */
        if (slot >= rl_nod(x->g, n)->nin) return n;
        bool read = k == RL_NONE ? slot > 0 : !x->p->op.p[k].fixed && !x->p->op.p[k].part && !rl_is_operand(&x->p->op.p[k], slot);
        if (!read) continue;
        *what = RL_EX_PARAMETER;
        return n;
    }
    return RL_NONODE; /* an outer value */
}

#define MOSTWAYS 4

typedef struct { uint32_t operand[64], n; } operands;

/* Whether the last n words are those of an earlier way. */
static bool is_old(const rl_exdemand *d, uint32_t n) {
    for (uint32_t way = 0; way + 2 * n <= d->need.n; way += n) {
        bool same = true;
        for (uint32_t i = 0; i < n; i++) same &= strcmp(d->need.p[way + i], d->need.p[d->need.n - n + i]) == 0;
        if (same) return true;
    }
    return false;
}

static void add_ways(const rl_exnames *names, const rl_oplegal *op, const operands *at, rl_exdemand *d) {
    for (uint32_t f = 0; f < op->nform; f++) {
        for (uint32_t i = 0; i < at->n; i++) rl_push(names->x->mem, d->need, form_words(names, op, &op->form[f], at->operand[i]));
        if (is_old(d, at->n)) {
            d->need.n -= at->n;
        } else if (d->need.n > MOSTWAYS * at->n) {
            d->need.n -= at->n;
            d->more++;
        }
    }
}

/* "N,C,H,W" for an image; what that is in the names of the conflict is said where these call it another way. */
static const char *image_words(const rl_exnames *k, const rl_member *m, rl_value v) {
    static const char *const own[] = {"N,C,W", "N,C,H,W", "N,C,D,H,W"};
    uint32_t rank = rl_val(k->x->g, v)->rank, last = 0;
    bool same = true;
    for (uint32_t i = 0; i < m->natom; i++) {
        uint32_t name = rl_hash_get(&k->name, key_of(m->cls, m->seq[i])), place = (name & 255) << 8 | name >> 8;
        if (name == RL_NONE) continue;
        same &= place >= last;
        last = place;
    }
    if (same) return own[rank - 3];
    rl_text t = {.mem = k->x->mem};
    rl_put(&t, "%s, which is %s here,", own[rank - 3], rl_exwords(k, m->cls, m->seq, m->natom));
    return t.p;
}

static bool is_image(const rl_exnames *k, const rl_oplegal *op, const rl_operand *o) {
    uint32_t rank = rl_val(k->x->g, o->tensor)->rank;
    if (!k->letters || op->node.i == RL_NONE || !rl_is_spatial(rl_nod(k->x->g, op->node))) return false;
    return (o->out || o->slot == 0) && rank >= 3 && rank <= 5;
}

static void add_demand(const rl_explainer *x, const rl_exnames *names, uint32_t k, const operands *at, rl_exconversion *out) {
    const rl_oplegal *op = &x->p->op.p[k];
    rl_exdemand d = {0};
    rl_node n = rl_exnode_at(x, k, &d.what);
    if (n.i != RL_NONE) d.node = rl_exnode_of(x, n);
    for (uint32_t i = 0; i < at->n; i++) {
        const rl_operand *o = &op->operand[at->operand[i]];
        const rl_member *m = &x->p->member[o->tensor.i];
        rl_push(x->mem, d.tensor, rl_extensor_of(x, o->tensor));
        if (!op->fixed) continue;
        const char *need = is_image(names, op, o) ? image_words(names, m, o->tensor) : rl_exwords(names, m->cls, m->seq, m->natom);
        rl_push(x->mem, d.need, need);
    }
    if (!op->fixed) add_ways(names, op, at, &d);
    rl_push(x->mem, out->demand, d);
}

void rl_explain_demands(rl_explainer *x, rl_exsearch *s, rl_exjoin j, const rl_exids *op, const rl_exnames *names, rl_exconversion *out) {
    for (uint32_t i = 0; i < op->n; i++) {
        const rl_oplegal *l = &x->p->op.p[op->p[i]];
        operands at = {.n = 0};
        bool flexible = is_flexible(l);
        if (flexible && !rl_exop_limited(x, s, j, op, op->p[i])) continue;
        RL_EACH_PIN(l, o, pin) {
            if (rl_expin_meets(x, j, op->p[i], pin) && at.n < RL_LEN(at.operand)) at.operand[at.n++] = o;
        }
        add_demand(x, names, op->p[i], &at, out);
        if (flexible) out->demand.p[out->demand.n - 1].what = RL_EX_CONSIDERED;
    }
}
