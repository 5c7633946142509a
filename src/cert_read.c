/* Reads a certificate's file (docs/proof.md, section 3; cert_text.c prints it).
 *
 * Strict: lines in their order, of words that are (cert_words.h).  It checks what it needs to build the arrays, whose size
 * that of the file bounds; whether the numbers make sense is for rl_cert_check. */
#include "cert_internal.h"
#include "cert_words.h"

#include <string.h>

typedef struct { rl_cert_value *p; uint32_t n, cap; } values;
typedef struct { rl_cert_op *p; uint32_t n, cap; } ops;
typedef struct { rl_cert_pin *p; uint32_t n, cap; } pins;
typedef struct { rl_cert_token *p; uint32_t n, cap; } tokens;
typedef struct { rl_cert_form *p; uint32_t n, cap; } forms;

static rl_status read_value(rl_words *r, uint32_t id, rl_cert_value *v) {
    struct { int64_t *p; uint32_t n, cap; } size = {0};
    struct { const char **p; uint32_t n, cap; } symbol = {0};
    RL_TRY(rl_words_id(r, id));
    if (!rl_words_skip(r, " ")) return rl_words_refuse(r, "a name is missing");
    RL_TRY(rl_words_string(r, &v->name));
    if (!rl_words_skip(r, " bytes")) return rl_words_refuse(r, "\"bytes\" is missing");
    RL_TRY(rl_words_next(r, INT64_MAX, &v->bytes));
    if (!rl_words_skip(r, " atoms")) return rl_words_refuse(r, "\"atoms\" is missing");
    while (rl_words_skip(r, " ")) {
        int64_t x = -1;
        const char *s = NULL;
        if (r->p < r->end && *r->p == '"') RL_TRY(rl_words_string(r, &s));
        else RL_TRY(rl_words_number(r, INT64_MAX, &x));
        rl_push(r->mem, size, x);
        rl_push(r->mem, symbol, s);
    }
    v->natom = size.n;
    v->size = size.p;
    v->symbol = symbol.p;
    return rl_words_end(r);
}

static rl_status read_pin(rl_words *r, const values *v, rl_cert_pin *pin) {
    RL_TRY(rl_words_index(r, &pin->value));
    if (pin->value >= v->n) return rl_words_refuse(r, "no such value");
    if (!rl_words_skip(r, " ")) return rl_words_refuse(r, "a name is missing");
    RL_TRY(rl_words_string(r, &pin->tensor));
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): pin->value is less than v->n */
    RL_TRY(rl_words_array(r, v->p[pin->value].natom, &pin->stands));
    return rl_words_end(r);
}

/* "token 0:0 1:3,4": pins rise. */
static rl_status read_token(rl_words *r, uint32_t npin, rl_cert_token *t) {
    const uint8_t **at = rl_new(r->mem, const uint8_t *, npin);
    uint8_t *n = rl_new(r->mem, uint8_t, npin);
    for (uint32_t from = 0; rl_words_skip(r, " ");) {
        uint32_t p = 0;
        rl_bytes b = {0};
        RL_TRY(rl_words_index(r, &p));
        if (p < from || p >= npin) return rl_words_refuse(r, "no such pin, or pins do not rise");
        if (!rl_words_skip(r, ":")) return rl_words_refuse(r, "a colon is missing");
        do {
            int64_t x;
            RL_TRY(rl_words_number(r, 254, &x));
            rl_push(r->mem, b, (uint8_t)x);
        } while (b.n < 255 && rl_words_skip(r, ","));
        at[p] = b.p;
        n[p] = (uint8_t)b.n;
        from = p + 1;
    }
    *t = (rl_cert_token){at, n};
    return rl_words_end(r);
}

static rl_status read_form(rl_words *r, uint32_t npin, uint32_t ntoken, rl_cert_form *f) {
    rl_bytes seq = {0};
    uint32_t *start = rl_new(r->mem, uint32_t, (size_t)npin + 1);
    RL_TRY(rl_words_array(r, ntoken, &f->group));
    for (uint32_t p = 0; p < npin; p++) {
        if (!rl_words_skip(r, " |")) return rl_words_refuse(r, "the groups of a pin are missing");
        RL_TRY(rl_words_bytes(r, &seq));
        start[p + 1] = seq.n;
    }
    f->start = start;
    f->seq = seq.p;
    return rl_words_end(r);
}

/* The first line of an op. */
static rl_status read_op_head(rl_words *r, uint32_t id, rl_cert_op *op) {
    uint32_t kind = 0;
    RL_TRY(rl_words_id(r, id));
    if (!rl_words_skip(r, " ")) return rl_words_refuse(r, "what the op is, is missing");
    while (kind < RL_CERT_NKIND && !rl_words_skip(r, rl_cert_kind_name[kind])) kind++;
    if (kind == RL_CERT_NKIND || !rl_words_skip(r, " "))
        return rl_words_refuse(r, "the op is none of input, output, captured, reads, node");
    op->kind = (rl_cert_kind)kind;
    op->chosen = RL_NONE;
    op->fixed = kind != RL_CERT_NODE;
    RL_TRY(rl_words_string(r, &op->name));
    if (op->fixed) return rl_words_end(r);
    if (!rl_words_skip(r, " ")) return rl_words_refuse(r, "the type of the node is missing");
    const char *from = r->p;
    while (r->p < r->end && rl_cert_is_word_byte(*r->p)) r->p++;
    if (r->p > from) {
        char *type = rl_new(r->mem, char, r->p - from + 1);
        memcpy(type, from, (size_t)(r->p - from));
        op->type = type;
    } else {
        RL_TRY(rl_words_string(r, &op->type));
    }
    op->fixed = rl_words_skip(r, " fixed");
    return rl_words_end(r);
}

/* "96 forms 0 15 15", "96 after 16 0 2", "96 last 2 1": see cert_text.c. */
static rl_status read_charge(rl_words *r, rl_cert_op *op) {
    rl_cert_charge *x = &op->charge;
    uint32_t rule = RL_CERT_FORMS;
    RL_TRY(rl_words_number(r, INT64_MAX, &x->bytes));
    if (!rl_words_skip(r, " ")) return rl_words_refuse(r, "the rule of the charge is missing");
    while (rule < RL_CERT_NRULE && !rl_words_skip(r, rl_cert_rule_name[rule])) rule++;
    if (rule == RL_CERT_NRULE) return rl_words_refuse(r, "the charge is none of forms, after, last");
    x->rule = (rl_cert_rule)rule;
    RL_TRY(rl_words_next(r, UINT32_MAX - 1, &x->tenths));
    int64_t *form = rl_new(r->mem, int64_t, (size_t)op->nform + 1);
    bool *marked = rl_new(r->mem, bool, (size_t)op->ntoken + 1);
    for (uint32_t k = 0; k < op->nform && rule == RL_CERT_FORMS; k++) RL_TRY(rl_words_next(r, UINT32_MAX - 1, &form[k]));
    for (int64_t t = -1, from; rule != RL_CERT_FORMS && rl_words_skip(r, " ");) {
        from = t;
        RL_TRY(rl_words_number(r, UINT32_MAX - 1, &t));
        if (t <= from || t >= op->ntoken) return rl_words_refuse(r, "no such token, or tokens do not rise");
        marked[t] = true;
    }
    x->form = form;
    x->marked = marked;
    return rl_words_end(r);
}

/* Pins, rising: which, as [npin]; one at least. */
static rl_status read_pins(rl_words *r, uint32_t npin, const bool **out) {
    bool *pin = rl_new(r->mem, bool, (size_t)npin + 1);
    int64_t p = -1;
    do {
        int64_t from = p;
        RL_TRY(rl_words_next(r, UINT32_MAX - 1, &p));
        if (p <= from || p >= RL_MIN(npin, 4u)) return rl_words_refuse(r, "no such pin, or pins do not rise");
        pin[p] = true;
    } while (r->p < r->end && *r->p == ' ');
    *out = pin;
    return rl_words_end(r);
}

static rl_status read_op(rl_words *r, const values *v, uint32_t id, rl_cert_op *op) {
    pins pin = {0};
    tokens token = {0};
    forms form = {0};
    RL_TRY(read_op_head(r, id, op));
    while (rl_words_skip(r, "pin ")) {
        rl_cert_pin x;
        RL_TRY(read_pin(r, v, &x));
        rl_push(r->mem, pin, x);
    }
    while (rl_words_skip(r, "token")) {
        rl_cert_token x;
        if (token.n == 255) return rl_words_refuse(r, "more than 255 tokens");
        RL_TRY(read_token(r, pin.n, &x));
        rl_push(r->mem, token, x);
    }
    while (rl_words_skip(r, "form")) {
        rl_cert_form x;
        RL_TRY(read_form(r, pin.n, token.n, &x));
        rl_push(r->mem, form, x);
    }
    op->npin = pin.n;
    op->ntoken = token.n;
    op->nform = form.n;
    op->pin = pin.p;
    op->token = token.p;
    op->form = form.p;
    if (rl_words_skip(r, "charge ")) RL_TRY(read_charge(r, op));
    return rl_words_skip(r, "swaps") ? read_pins(r, op->npin, &op->swaps) : RL_OK;
}

static rl_status read_choices(rl_words *r, ops *op) {
    for (uint32_t from = 0; rl_words_skip(r, "choose ");) {
        uint32_t i = 0;
        int64_t form = 0;
        RL_TRY(rl_words_index(r, &i));
        if (i < from || i >= op->n) return rl_words_refuse(r, "no such op, or ops do not rise");
        RL_TRY(rl_words_next(r, UINT32_MAX - 1, &form));
        op->p[i].chosen = (uint32_t)form;
        RL_TRY(rl_words_array(r, op->p[i].ntoken, &op->p[i].perm));
        RL_TRY(rl_words_end(r));
        from = i + 1;
    }
    return RL_OK;
}

static rl_status read_keeps(rl_words *r, values *v) {
    for (uint32_t from = 0; rl_words_skip(r, "keep ");) {
        uint32_t i = 0;
        rl_bytes b = {0};
        RL_TRY(rl_words_index(r, &i));
        if (i < from || i >= v->n) return rl_words_refuse(r, "no such value, or values do not rise");
        RL_TRY(rl_words_bytes(r, &b));
        v->p[i].nkeep = b.n;
        v->p[i].keep = b.n ? b.p : rl_new(r->mem, uint8_t, 1);
        RL_TRY(rl_words_end(r));
        from = i + 1;
    }
    return RL_OK;
}

static rl_status read_folds(rl_words *r, const char *word, values *v, bool again) {
    for (uint32_t from = 0; rl_words_skip(r, word);) {
        uint32_t i = 0;
        struct { uint16_t *p; uint32_t n, cap; } to = {0};
        RL_TRY(rl_words_index(r, &i));
        if (i < from || i >= v->n) return rl_words_refuse(r, "no such value, or values do not rise");
        if (!v->p[i].keep) return rl_words_refuse(r, "the value has no \"keep\" line");
        while (rl_words_skip(r, " ")) {
            uint32_t x = 0;
            RL_TRY(rl_words_index(r, &x));
            if (x > UINT16_MAX) return rl_words_refuse(r, "no such order");
            rl_push(r->mem, to, (uint16_t)x);
        }
        if (to.n == 0 || to.n != rl_cert_norder(v->p[i].nkeep))
            return rl_words_refuse(r, "a fold names one order for each order of the atoms kept");
        *(again ? &v->p[i].refold : &v->p[i].fold) = to.p;
        RL_TRY(rl_words_end(r));
        from = i + 1;
    }
    return RL_OK;
}

struct weighs { rl_cert_weigh *p; uint32_t n, cap; };

static rl_status read_part(rl_words *r, uint32_t id, uint32_t nop, bool by_time, rl_cert_part *part) {
    struct { uint32_t *p; uint32_t n, cap; } op = {0};
    RL_TRY(rl_words_id(r, id));
    if (by_time) RL_TRY(rl_words_next(r, INT64_MAX, &part->cost));
    RL_TRY(rl_words_next(r, INT64_MAX, &part->least.count));
    RL_TRY(rl_words_next(r, INT64_MAX, by_time ? &part->price : &part->least.bytes));
    part->swaps = by_time && rl_words_skip(r, " swaps");
    while (rl_words_skip(r, " ")) {
        uint32_t i = 0;
        RL_TRY(rl_words_index(r, &i));
        if (i >= nop) return rl_words_refuse(r, "no such op");
        rl_push(r->mem, op, i);
    }
    if (!op.n) return rl_words_refuse(r, "a component has an op");
    part->nop = op.n;
    part->op = op.p;
    return rl_words_end(r);
}

/* After the word: what orders of a value weigh in a span. */
static rl_status read_weigh(rl_words *r, const rl_cert *c, uint32_t from, struct weighs *out) {
    rl_cert_weigh x = {0};
    uint32_t next = 0;
    RL_TRY(rl_words_index(r, &x.value));
    if (x.value < from || x.value >= c->nvalue) return rl_words_refuse(r, "no such value, or values do not rise");
    const rl_cert_value *v = &c->value[x.value];
    while (rl_words_skip(r, " ")) {
        RL_TRY(rl_words_index(r, &x.order));
        if (x.order < next || x.order >= rl_cert_norder(v->keep ? v->nkeep : v->natom)) return rl_words_refuse(r, "no such order, or orders do not rise");
        RL_TRY(rl_words_next(r, INT64_MAX, &x.weight));
        rl_push(r->mem, *out, x);
        next = x.order + 1;
    }
    return next ? rl_words_end(r) : rl_words_refuse(r, "no order is weighed");
}

static rl_status read_span(rl_words *r, const rl_cert *c, rl_cert_span *x) {
    struct weighs weigh = {0};
    RL_TRY(rl_words_index(r, &x->nop));
    RL_TRY(rl_words_next(r, INT64_MAX, &x->least));
    RL_TRY(rl_words_end(r));
    while (rl_words_skip(r, "weigh ")) RL_TRY(read_weigh(r, c, weigh.n ? weigh.p[weigh.n - 1].value + 1 : 0, &weigh));
    x->nweigh = weigh.n;
    x->weigh = weigh.p;
    return RL_OK;
}

static rl_status read_spans(rl_words *r, const rl_cert *c, rl_cert_part *part) {
    struct { rl_cert_span *p; uint32_t n, cap; } span = {0};
    if (!rl_words_skip(r, "spans")) return RL_OK;
    RL_TRY(rl_words_next(r, INT64_MAX, &part->conversion));
    RL_TRY(rl_words_end(r));
    while (rl_words_skip(r, "span ")) {
        rl_cert_span x = {0};
        RL_TRY(read_span(r, c, &x));
        rl_push(r->mem, span, x);
    }
    if (!span.n) return rl_words_refuse(r, "\"span\" is missing");
    part->nspan = span.n;
    part->span = span.p;
    return RL_OK;
}

/* What atoms are kept, folds and components; c has its values and ops. */
static rl_status read_bound(rl_words *r, rl_cert *c) {
    values value = {(rl_cert_value *)c->value, c->nvalue, c->nvalue};
    struct { rl_cert_part *p; uint32_t n, cap; } part = {0};
    RL_TRY(read_keeps(r, &value));
    RL_TRY(read_folds(r, "fold ", &value, false));
    RL_TRY(read_folds(r, "refold ", &value, true));
    while (rl_words_skip(r, "component ")) {
        rl_cert_part x = {0};
        RL_TRY(read_part(r, part.n, c->nop, c->by_time, &x));
        RL_TRY(read_spans(r, c, &x));
        rl_push(r->mem, part, x);
    }
    c->part = part.p;
    c->npart = part.n;
    return RL_OK;
}

static rl_status read_claim(rl_words *r, rl_cert *c) {
    int64_t outside = 0;
    if (!rl_words_skip(r, "outside")) return rl_words_refuse(r, "a line out of place, or \"outside\" is missing");
    RL_TRY(rl_words_next(r, UINT32_MAX - 1, &outside));
    c->noutside = (uint32_t)outside;
    RL_TRY(rl_words_end(r));
    if (!rl_words_skip(r, "claim")) return rl_words_refuse(r, "\"claim\" is missing");
    RL_TRY(rl_words_next(r, INT64_MAX, &c->cost.count));
    RL_TRY(rl_words_next(r, INT64_MAX, &c->cost.bytes));
    RL_TRY(rl_words_next(r, INT64_MAX, &c->bound.count));
    RL_TRY(rl_words_next(r, INT64_MAX, &c->bound.bytes));
    return rl_words_end(r);
}

static rl_status read_swaps(rl_words *r, rl_cert *c) {
    struct { rl_cert_swap *p; uint32_t n, cap; } swap = {0};
    while (rl_words_skip(r, "swap ")) {
        rl_cert_swap x = {0};
        int64_t form = 0;
        RL_TRY(rl_words_index(r, &x.op));
        if (x.op >= c->nop) return rl_words_refuse(r, "no such op");
        RL_TRY(rl_words_next(r, UINT32_MAX - 1, &form));
        x.form = (uint32_t)form;
        RL_TRY(rl_words_array(r, c->op[x.op].ntoken, &x.perm));
        if (!rl_words_skip(r, " |")) return rl_words_refuse(r, "the pins of a swap are missing");
        RL_TRY(read_pins(r, c->op[x.op].npin, &x.pin));
        rl_push(r->mem, swap, x);
    }
    c->swap = swap.p;
    c->nswap = swap.n;
    return RL_OK;
}

/* The second part: of the same values, which may keep other atoms, and the same ops. */
static rl_status read_time(rl_words *r, rl_cert *c) {
    rl_cert *t = rl_new(r->mem, rl_cert, 1);
    rl_cert_value *value = rl_copy(r->mem, c->value, c->nvalue * sizeof *value);
    RL_TRY(rl_words_end(r));
    if (!c->rate) return rl_words_refuse(r, "times are bounded, but \"rate\" is missing");
    for (uint32_t v = 0; v < c->nvalue; v++) {
        value[v].keep = NULL;
        value[v].fold = value[v].refold = NULL;
        value[v].nkeep = 0;
    }
    *t = (rl_cert){.by_time = true, .fixed = c->fixed, .rate = c->rate, .nvalue = c->nvalue, .nop = c->nop, .value = value, .op = c->op};
    RL_TRY(read_swaps(r, t));
    RL_TRY(read_bound(r, t));
    if (!rl_words_skip(r, "claim")) return rl_words_refuse(r, "a line out of place, or \"claim\" is missing");
    RL_TRY(rl_words_next(r, INT64_MAX, &t->cost.count));
    RL_TRY(rl_words_next(r, INT64_MAX, &t->bound.count));
    c->time = t;
    return rl_words_end(r);
}

static rl_status read_head(rl_words *r, rl_cert *c) {
    if (!rl_words_skip(r, RL_CERT_HEAD "\n")) return rl_words_refuse(r, "the file does not start with " RL_CERT_HEAD);
    r->line++;
    if (!rl_words_skip(r, "objective ")) return rl_words_refuse(r, "\"objective\" is missing");
    c->bytes_first = rl_words_skip(r, "bytes");
    if (!c->bytes_first && !rl_words_skip(r, "nodes")) return rl_words_refuse(r, "the objective is neither nodes nor bytes");
    return rl_words_end(r);
}

static rl_status read_rate(rl_words *r, rl_cert *c) {
    enum { MOSTNS = 1000000, MOSTRATE = 100000000 };
    if (!rl_words_skip(r, "rate")) return RL_OK;
    RL_TRY(rl_words_next(r, MOSTNS, &c->fixed));
    RL_TRY(rl_words_next(r, MOSTRATE, &c->rate));
    return c->rate ? rl_words_end(r) : rl_words_refuse(r, "a rate is at least 1");
}

/* One graph: all but the first lines and the last. */
static rl_status read_graph(rl_words *r, rl_cert *out) {
    values value = {0};
    ops op = {0};
    RL_TRY(read_rate(r, out));
    while (rl_words_skip(r, "value ")) {
        rl_cert_value x = {0};
        RL_TRY(read_value(r, value.n, &x));
        rl_push(r->mem, value, x);
    }
    while (rl_words_skip(r, "op ")) {
        rl_cert_op x = {0};
        RL_TRY(read_op(r, &value, op.n, &x));
        rl_push(r->mem, op, x);
    }
    RL_TRY(read_choices(r, &op));
    out->nvalue = value.n;
    out->nop = op.n;
    out->value = value.p;
    out->op = op.p;
    RL_TRY(read_bound(r, out));
    RL_TRY(read_claim(r, out));
    return rl_words_skip(r, "time") ? read_time(r, out) : RL_OK;
}

/* `0 "local" "F"`, and its graph. */
static rl_status read_function(rl_words *r, bool bytes_first, uint32_t least, rl_cert_function *f) {
    rl_cert *c = rl_new(r->mem, rl_cert, 1);
    *c = (rl_cert){.bytes_first = bytes_first};
    f->cert = c;
    RL_TRY(rl_words_index(r, &f->index));
    if (f->index < least) return rl_words_refuse(r, "functions do not rise");
    if (!rl_words_skip(r, " ")) return rl_words_refuse(r, "the domain is missing");
    RL_TRY(rl_words_string(r, &f->domain));
    if (!rl_words_skip(r, " ")) return rl_words_refuse(r, "a name is missing");
    RL_TRY(rl_words_string(r, &f->name));
    RL_TRY(rl_words_end(r));
    return read_graph(r, c);
}

rl_status rl_cert_parse(rl_ctx *ctx, rl_arena *mem, const char *file, const char *text, size_t n, rl_cert *out) {
    rl_words r = {ctx, mem, file, text, text + n, 1};
    struct { rl_cert_function *p; uint32_t n, cap; } function = {0};
    *out = (rl_cert){0};
    RL_TRY(read_head(&r, out));
    RL_TRY(read_graph(&r, out));
    while (rl_words_skip(&r, "function ")) {
        rl_cert_function x = {0};
        RL_TRY(read_function(&r, out->bytes_first, function.n ? function.p[function.n - 1].index + 1 : 0, &x));
        rl_push(mem, function, x);
    }
    out->function = function.p;
    out->nfunction = function.n;
    if (!rl_words_skip(&r, "end\n") || r.p != r.end) return rl_words_refuse(&r, "\"end\" is missing, or not the last line");
    return RL_OK;
}
