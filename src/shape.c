/* Shape inference: the walk over the nodes, and how what is inferred meets what is declared.
 *
 * One pass over g->order.  What a rule is sure of wins over what the model declares; a declared number or symbol takes the
 * place of a size that no rule can tell.  Bodies are inferred when their node is reached, with the types of the values
 * that they capture.
 *
 * Names for unknown sizes: "?3" equals nothing else; "?max(N|M)" is what sizes N and M broadcast to, the same wherever they
 * meet.  "?min(512|N)", what is left of N after a cut, broadcasts with N to N; "?max(N|M)" with N to itself. */
#include "shape_internal.h"
#include "shape_rules.h"

#include <stdio.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAXTEXT = 100 /* of a derived name */ };

/* ---- messages ---- */

rl_status rl_shape_fail(const rl_shaper *s, const char *fmt, ...) {
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const char *name = s->n->name;
    for (uint32_t i = 0; (!name || !*name) && i < s->n->nout; i++)
        if (rl_has(s->n->out[i])) name = rl_val(s->g, s->n->out[i])->name;
    return rl_fail(s->ctx, RL_EMODEL, "node '%s' (%s): %s", name ? name : "", s->n->type, text);
}

/* ---- sizes ---- */

rl_dim rl_shape_add(const rl_shaper *s, rl_dim a, rl_dim b) {
    rl_dim r;
    if (a == UNKNOWN || b == UNKNOWN) return UNKNOWN;
    if (rl_dim_known(a) && rl_dim_known(b)) return __builtin_add_overflow(a, b, &r) ? UNKNOWN : r;
    return rl_dim_add(s->ctx, a, b);
}

rl_dim rl_shape_sub(const rl_shaper *s, rl_dim a, rl_dim b) {
    if (a == UNKNOWN || b == UNKNOWN) return UNKNOWN;
    if (a == b) return 0;
    if (rl_dim_known(a) && rl_dim_known(b)) return a < b ? UNKNOWN : a - b;
    return rl_dim_sub(s->ctx, a, b);
}

rl_dim rl_shape_offset(const rl_shaper *s, rl_dim a, int64_t c) {
    if (c == INT64_MIN) return UNKNOWN;
    return c < 0 ? rl_shape_sub(s, a, -c) : rl_shape_add(s, a, c);
}

rl_dim rl_shape_mul(const rl_shaper *s, rl_dim a, rl_dim b) {
    rl_dim r;
    if (a == 0 || b == 0) return 0;
    if (a == UNKNOWN || b == UNKNOWN) return UNKNOWN;
    if (rl_dim_known(a) && rl_dim_known(b)) return __builtin_mul_overflow(a, b, &r) ? UNKNOWN : r;
    return rl_dim_mul(s->ctx, a, b);
}

rl_dim rl_shape_prod(const rl_shaper *s, const rl_dim *dim, uint32_t n) {
    rl_dim r = 1;
    for (uint32_t i = 0; i < n; i++) r = rl_shape_mul(s, r, dim[i]);
    return r;
}

rl_dim rl_shape_floordiv(const rl_shaper *s, rl_dim a, int64_t k) {
    return a == UNKNOWN || k <= 0 ? UNKNOWN : rl_dim_floordiv(s->ctx, a, k);
}

rl_dim rl_shape_ceildiv(const rl_shaper *s, rl_dim a, int64_t k) {
    return a == UNKNOWN || k <= 0 ? UNKNOWN : rl_dim_ceildiv(s->ctx, a, k);
}

static rl_text text_of(const rl_shaper *s, rl_dim d) {
    rl_text t = {.mem = s->tmp};
    rl_dim_print(&t, s->ctx, d);
    return t;
}

bool rl_shape_open(const rl_shaper *s, rl_dim d) {
    if (rl_dim_known(d)) return false;
    rl_str name = rl_dim_name(s->ctx, d);
    if (name && name[0] != 'f' && name[0] != '?') return false;
    rl_text t = text_of(s, d);
    for (size_t i = 0, n = 1; i < t.n; i += n, n = 1) {
        if (t.p[i] != '?') continue;
        while (i + n < t.n && isdigit((unsigned char)t.p[i + n])) n++;
        if (n > 1 && (!s->given || rl_hash_get(s->given, (uintptr_t)rl_intern(s->ctx, t.p + i, n)) == RL_NONE)) return true;
    }
    return false;
}

/* d in a derived name. Another such name is not quoted: each level would double the marks of those in it. */
static rl_text part_of(const rl_shaper *s, rl_dim d) {
    rl_str name = rl_dim_name(s->ctx, d);
    if (!name || name[0] != '?') return text_of(s, d);
    rl_text t = {.mem = s->tmp};
    rl_put(&t, "%s", name);
    return t;
}

/* Characters, but those of a fresh symbol's number, which hangs on what was inferred before. */
static size_t length_of(const rl_text *t) {
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        n++;
        if (t->p[i] != '?') continue;
        while (i + 1 < t->n && isdigit((unsigned char)t->p[i + 1])) i++;
    }
    return n;
}

rl_dim rl_shape_derived(const rl_shaper *s, const char *name, rl_dim a, rl_dim b) {
    if (a == UNKNOWN || b == UNKNOWN) return UNKNOWN;
    rl_text x = part_of(s, a), y = part_of(s, b);
    if (length_of(&x) + length_of(&y) > MAXTEXT) return UNKNOWN;
    return rl_dim_symbol(s->ctx, rl_internf(s->ctx, "?%s(%s|%s)", name, x.p, y.p));
}

/* As strcmp, but by the numbers in the texts: those of fresh symbols hang on what was inferred before, which of two is less does not. */
static int compare_texts(const char *a, const char *b) {
    for (;;) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            char *enda, *endb;
            unsigned long long x = strtoull(a, &enda, 10), y = strtoull(b, &endb, 10);
            if (x != y) return x < y ? -1 : 1;
            a = enda;
            b = endb;
        }
        if (*a != *b || !*a) return (unsigned char)*a - (unsigned char)*b;
        a++;
        b++;
    }
}

/* A derived symbol of two sizes whose order does not matter. */
static rl_dim derived_pair(const rl_shaper *s, const char *name, rl_dim a, rl_dim b) {
    return compare_texts(part_of(s, a).p, part_of(s, b).p) <= 0 ? rl_shape_derived(s, name, a, b) : rl_shape_derived(s, name, b, a);
}

int64_t rl_shape_least(const rl_shaper *s, rl_dim d) {
    if (rl_dim_known(d)) return d;
    if (d == UNKNOWN) return 0;
    rl_str name = rl_dim_name(s->ctx, d);
    if (name && strncmp(name, "floor(", 6) != 0) return name[0] != '?';
    rl_text t = text_of(s, d);
    return memchr(t.p, '?', t.n) || memchr(t.p, '-', t.n) ? 0 : rl_dim_guess(s->ctx, d, 1);
}

/* a >= b for certain */
static bool not_less(const rl_shaper *s, rl_dim a, rl_dim b) {
    if (rl_dim_known(b)) return rl_shape_least(s, a) >= b;
    rl_dim d = rl_shape_sub(s, a, b);
    return d != UNKNOWN && (rl_dim_known(d) || rl_shape_least(s, d) > 0);
}

/* Is m the symbol that rl_shape_derived gave for d and something?  op: "?min(" or "?max(". */
static bool made_of(const rl_shaper *s, const char *op, rl_dim m, rl_dim d) {
    rl_str name = rl_dim_name(s->ctx, m);
    if (!name || strncmp(name, op, 5) != 0) return false;
    rl_text t = part_of(s, d);
    size_t n = strlen(name);
    if (t.n + 7 > n) return false;
    return (rl_same_bytes(name + 5, t.p, t.n) && name[5 + t.n] == '|') ||
           (rl_same_bytes(name + n - 1 - t.n, t.p, t.n) && name[n - 2 - t.n] == '|');
}

rl_dim rl_shape_min(const rl_shaper *s, rl_dim a, rl_dim b) {
    if (a == UNKNOWN || b == UNKNOWN) return UNKNOWN;
    if (a == b || not_less(s, b, a)) return a;
    if (not_less(s, a, b)) return b;
    if (made_of(s, "?min(", a, b)) return a;
    if (made_of(s, "?min(", b, a)) return b;
    return derived_pair(s, "min", a, b);
}

bool rl_shape_broadcast(const rl_shaper *s, rl_dim a, rl_dim b, rl_dim *d) {
    *d = a;
    if (a == b || b == 1) return true;
    *d = b;
    if (a == 1) return true;
    if (rl_dim_known(a) && rl_dim_known(b)) return false;
    if (rl_dim_known(a)) *d = a;
    else if (rl_dim_known(b)) *d = b;
    else if (a == UNKNOWN || b == UNKNOWN) *d = UNKNOWN;
    else if (made_of(s, "?min(", b, a) || made_of(s, "?max(", a, b)) *d = a;
    else if (made_of(s, "?min(", a, b) || made_of(s, "?max(", b, a)) *d = b;
    else *d = derived_pair(s, "max", a, b);
    return true;
}

bool rl_shape_unify(const rl_shaper *s, rl_dim a, rl_dim b, rl_dim *d) {
    *d = a;
    if (a == b || b == UNKNOWN) return true;
    if (rl_dim_known(a)) return !rl_dim_known(b);
    if (a == UNKNOWN || rl_dim_known(b) || rl_shape_open(s, a)) *d = b;
    return true;
}

/* ---- results ---- */

/* The size to keep: what was inferred, or what is declared (or was inferred before) where that tells more. */
static rl_dim settle(rl_shaper *s, rl_dim now, rl_dim old) {
    if (now == UNKNOWN && old == UNKNOWN) return rl_dim_fresh(s->ctx);
    if (now != UNKNOWN && (!rl_dim_known(old) || !rl_shape_open(s, now))) return now;
    s->lenient |= rl_dim_known(old);
    return old;
}

void rl_shape_set_type(rl_shaper *s, rl_graph *g, rl_value v, rl_dtype dtype, uint32_t rank, const rl_dim *dim) {
    rl_valinfo *x = rl_val(g, v);
    if (dtype != RL_UNDEF) x->dtype = dtype;
    if (rank == RL_NORANK) return;
    const rl_dim *old = x->rank == rank ? x->dim : NULL;
    rl_dim *d = rl_new(s->tmp, rl_dim, rank);
    for (uint32_t i = 0; i < rank; i++) d[i] = settle(s, dim[i], old ? old[i] : UNKNOWN);
    for (uint32_t i = 0; g->alike && i < rank; i++) d[i] = rl_dim_normal(s->ctx, &g->alike->rules, d[i]);
    if (x->rank == rank && (!old || rl_same_bytes(d, old, rank * sizeof *d))) return;
    rl_graph_set_type(g, v, x->dtype, rank, d);
}

rl_status rl_shape_set(rl_shaper *s, uint32_t port, rl_dtype dtype, uint32_t rank, const rl_dim *dim) {
    rl_value v = rl_out(s->n, port);
    if (rl_has(v)) rl_shape_set_type(s, s->g, v, dtype, rank, dim);
    return RL_OK;
}

bool rl_shape_elem(const rl_graph *g, rl_value v, uint32_t i, rl_elem *e) {
    const rl_valinfo *x = rl_val(g, v);
    if (x->elem && i < x->nelem) {
        *e = x->elem[i];
        return e->known || e->sym != 0;
    }
    const rl_const *c = x->data;
    if (!c || !c->data || (c->dtype != RL_I64 && c->dtype != RL_I32)) return false;
    size_t size = c->dtype == RL_I64 ? 8 : 4;
    if (i >= c->nbyte / size) return false;
    int32_t narrow;
    *e = (rl_elem){.known = true, .den = 1};
    if (size == 8) {
        memcpy(&e->num, (const char *)c->data + (size_t)i * 8, 8);
    } else {
        memcpy(&narrow, (const char *)c->data + (size_t)i * 4, 4);
        e->num = narrow;
    }
    return true;
}

/* ---- the walk ---- */

static rl_status infer_graph(rl_graph *g, rl_shaper *outer, rl_shape_caller *caller, const rl_hash *given, bool *lenient);

/* Gives the body's outer values what is known of them outside. */
static void enter_body(const rl_graph *g, rl_graph *body) {
    for (uint32_t i = 0; i < body->outer.n; i++) {
        rl_valinfo *in = rl_val(body, body->outer.p[i]);
        rl_value v = rl_graph_find(g, in->name);
        if (!rl_has(v)) continue;
        const rl_valinfo *out = rl_val(g, v);
        in->dtype = out->dtype;
        in->rank = out->rank;
        in->dim = out->dim;
        in->data = out->data;
        in->elem = out->elem;
        in->nelem = out->nelem;
    }
}

rl_status rl_shape_body(rl_shaper *s, rl_graph *body) {
    enter_body(s->g, body);
    rl_status status = infer_graph(body, s, s->caller, s->given, &s->lenient);
    s->entering = NULL;
    return status;
}

static rl_type item_in(rl_arena *mem, rl_type t) {
    if (t.rank < RL_EMPTY_SEQUENCE && t.rank) t.dim = rl_copy(mem, t.dim, t.rank * sizeof *t.dim);
    return t;
}

rl_type rl_shape_item(const rl_shaper *s, rl_value v) { return rl_has(v) && s->item ? s->item[v.i] : RL_NOITEM; }

void rl_shape_set_item(rl_shaper *s, rl_value v, rl_type t) {
    if (!rl_has(v) || (!s->item && t.rank == RL_NORANK && t.dtype == RL_UNDEF)) return;
    if (!s->item) {
        s->item = rl_new(s->keep, rl_type, s->g->nval);
        for (uint32_t i = 0; i < s->g->nval; i++) s->item[i] = RL_NOITEM;
    }
    s->item[v.i] = item_in(s->keep, t);
}

/* Sequences that a body reads or is given have the elements that they have outside. */
static void enter_items(rl_shaper *s) {
    const rl_graph *g = s->g;
    const rl_shaper *outer = s->outer;
    for (uint32_t i = 0; outer->item && i < g->outer.n; i++)
        rl_shape_set_item(s, g->outer.p[i], rl_shape_item(outer, rl_graph_find(outer->g, rl_val(g, g->outer.p[i])->name)));
    for (uint32_t i = 0; outer->entering && i < g->input.n; i++) rl_shape_set_item(s, g->input.p[i], outer->entering[i]);
}

static void leave_items(const rl_shaper *s, rl_shaper *outer) {
    outer->leaving = NULL;
    if (!s->item) return;
    outer->leaving = rl_new(outer->tmp, rl_type, s->g->output.n);
    for (uint32_t i = 0; i < s->g->output.n; i++) outer->leaving[i] = item_in(outer->tmp, rl_shape_item(s, s->g->output.p[i]));
}

/* An op that no rule knows gives what is declared, as its bodies do; a call, what its function makes of what it is given; Softmax along an axis
 * that each call of its function names, what it takes. */
static rl_status infer_opaque(rl_shaper *s) {
    s->lenient = true;
    for (uint32_t i = 0; i < s->n->nattr; i++)
        if (s->n->attr[i].graph) RL_TRY(rl_shape_body(s, s->n->attr[i].graph));
    const rl_type *made = s->caller ? s->caller->made(s->caller, s->g, s->n) : NULL;
    for (uint32_t i = 0; i < s->n->nout && made; i++) RL_TRY(rl_shape_set(s, i, made[i].dtype, made[i].rank, made[i].dim));
    if (s->n->bare == RL_OP_OPAQUE || *s->n->domain || rl_shape_rules[s->n->bare].rule != rl_rule_same) return RL_OK;
    s->dtype = rl_shape_rules[s->n->bare].dtype;
    return rl_rule_same(s); /* whatever its attributes are */
}

static void forget_contents(const rl_shaper *s) {
    for (uint32_t i = 0; i < s->n->nout; i++) {
        if (!rl_has(s->n->out[i])) continue;
        rl_valinfo *x = rl_val(s->g, s->n->out[i]);
        x->elem = NULL;
        x->nelem = 0;
        if (s->n->op != RL_OP_Constant) x->data = NULL;
    }
}

/* Rules, passes and kernels read these as lists of integers, or as absent: what is neither (a number; in a function the name of an
 * attribute of its own) says something that they would not see. */
static rl_status check_lists(const rl_shaper *s) {
    static const char *const names[] = {"axes", "dilations", "ends", "kernel_shape", "output_padding", "output_shape", "pads", "perm",
                                        "scan_input_axes", "scan_output_axes", "split", "starts", "strides"};
    for (uint32_t i = 0; i < s->n->nattr; i++)
        for (size_t k = 0; k < RL_LEN(names) && s->n->attr[i].kind != RL_ATTR_INTS; k++)
            if (strcmp(s->n->attr[i].name, names[k]) == 0) return rl_shape_fail(s, "%s is no list of integers", names[k]);
    return RL_OK;
}

static rl_status infer_node(rl_shaper *s, rl_node id) {
    s->n = rl_nod(s->g, id);
    forget_contents(s);
    if (s->n->op == RL_OP_MOVE && s->n->nin == 1) {
        const rl_valinfo *x = input(s, 0);
        return x ? rl_shape_set(s, 0, x->dtype, x->rank, x->dim) : RL_OK;
    }
    if (s->n->op >= RL_OP_OPAQUE || !rl_shape_rules[s->n->op].rule) return infer_opaque(s);
    s->dtype = rl_shape_rules[s->n->op].dtype;
    RL_TRY(check_lists(s));
    rl_status status = rl_shape_rules[s->n->op].rule(s);
    if (status == RL_EMODEL && (s->lenient || s->depth)) {
        s->g->doubtful = true;
        return RL_OK;
    }
    if (status == RL_OK) rl_shape_fold(s, id);
    return status;
}

/* Sets *lenient where the types of g's outputs may be no better than what was declared. */
static rl_status infer_graph(rl_graph *g, rl_shaper *outer, rl_shape_caller *caller, const rl_hash *given, bool *lenient) {
    rl_arena tmp, keep;
    rl_arena_init(&tmp, g->ctx);
    rl_arena_init(&keep, g->ctx);
    rl_shaper s = {.g = g, .ctx = g->ctx, .tmp = &tmp, .keep = &keep, .outer = outer, .depth = outer ? outer->depth + 1 : 0, .caller = caller, .given = given, .lenient = *lenient};
    rl_status status = RL_OK;
    g->doubtful = false;
    if (outer) enter_items(&s);
    for (uint32_t i = 0; i < g->order.n && status == RL_OK; i++) {
        status = infer_node(&s, g->order.p[i]);
        if (i % 64 == 63) rl_arena_free(&tmp);
    }
    if (outer) leave_items(&s, outer);
    rl_arena_free(&keep);
    rl_arena_free(&tmp);
    *lenient = s.lenient;
    return status;
}

/* Forgets the sizes of what nodes of g make, and in its bodies of all that is not constant. */
static void forget_sizes(rl_graph *g, bool is_body) {
    for (uint32_t i = 0; i < g->nval; i++) {
        rl_valinfo *x = &g->val[i];
        if (x->rank == RL_NORANK || (x->def.i == RL_NONE && (!is_body || x->data))) continue;
        rl_dim *d = rl_new(&g->mem, rl_dim, x->rank);
        for (uint32_t k = 0; k < x->rank; k++) d[k] = rl_dim_fresh(g->ctx);
        rl_graph_set_type(g, (rl_value){i}, x->dtype, x->rank, d);
    }
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        for (uint32_t k = 0; k < n->nattr; k++)
            if (n->attr[k].graph) forget_sizes(n->attr[k].graph, true);
    }
}

static void find_given(const rl_graph *g, rl_hash *given) {
    for (uint32_t i = 0; i < g->input.n; i++) {
        const rl_valinfo *x = rl_val(g, g->input.p[i]);
        for (uint32_t k = 0; x->rank != RL_NORANK && k < x->rank; k++) {
            rl_str name = rl_dim_name(g->ctx, x->dim[k]);
            if (name) rl_hash_put(given, (uintptr_t)name, 0);
        }
    }
}

rl_status rl_shape_infer(rl_graph *g) {
    return rl_shape_infer_calls(g, NULL);
}

rl_status rl_shape_infer_calls(rl_graph *g, rl_shape_caller *caller) {
    rl_arena tmp;
    rl_arena_init(&tmp, g->ctx);
    rl_hash given = {.mem = &tmp};
    bool lenient = false;
    find_given(g, &given);
    rl_status status = infer_graph(g, NULL, caller, &given, &lenient);
    if (status == RL_OK && g->doubtful && !g->alike) {
        forget_sizes(g, false); /* one of those declared is wrong: none is believed */
        lenient = false;
        status = infer_graph(g, NULL, caller, &given, &lenient);
    }
    rl_arena_free(&tmp);
    return status;
}

rl_status rl_shape_node(rl_graph *g, rl_node n) {
    rl_arena tmp;
    rl_arena_init(&tmp, g->ctx);
    rl_shaper s = {.g = g, .ctx = g->ctx, .tmp = &tmp, .keep = &tmp};
    rl_status status = infer_node(&s, n);
    rl_arena_free(&tmp);
    return status;
}
