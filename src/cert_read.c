/* Reads a certificate's file (docs/proof.md, section 3; cert_text.c prints it).
 *
 * Strict: lines in their order, single spaces, numbers without leading zeros.  It checks what it needs to build the arrays, whose size
 * that of the file bounds; whether the numbers make sense is for rl_cert_check. */
#include "cert_internal.h"

#include <string.h>

/* ---- reading: words ---- */

typedef struct {
    rl_ctx *ctx;
    rl_arena *mem;
    const char *file, *p, *end;
    uint32_t line;
} reader;

static rl_status refuse(const reader *r, const char *what) {
    return rl_fail(r->ctx, RL_EPROOF, "%s:%u: %s", r->file, r->line, what);
}

/* Steps over the text if it comes next. */
static bool skip(reader *r, const char *text) {
    size_t n = strlen(text);
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, text, n) != 0) return false;
    r->p += n;
    return true;
}

static rl_status line_end(reader *r) {
    if (!skip(r, "\n")) return refuse(r, "more on the line than belongs there, or less, or no line end");
    r->line++;
    return RL_OK;
}

/* A number from 0 to max, without a leading zero. */
static rl_status read_number(reader *r, int64_t max, int64_t *x) {
    const char *from = r->p;
    *x = 0;
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9') {
        int digit = *r->p++ - '0';
        if (*x > (max - digit) / 10 || max < digit) return refuse(r, "a number is too large");
        *x = *x * 10 + digit;
    }
    if (r->p == from) return refuse(r, "a number is missing");
    return r->p - from > 1 && *from == '0' ? refuse(r, "a number has a leading zero") : RL_OK;
}

static rl_status read_word32(reader *r, uint32_t *x) {
    int64_t n = 0;
    RL_TRY(read_number(r, UINT32_MAX - 1, &n));
    *x = (uint32_t)n;
    return RL_OK;
}

/* A space and a number. */
static rl_status read_next(reader *r, int64_t max, int64_t *x) {
    return skip(r, " ") ? read_number(r, max, x) : refuse(r, "a space and a number are missing");
}

/* The number that says how many lines of this kind came before. */
static rl_status read_id(reader *r, uint32_t want) {
    uint32_t got = 0;
    RL_TRY(read_word32(r, &got));
    return got == want ? RL_OK : rl_fail(r->ctx, RL_EPROOF, "%s:%u: number %u, wanted %u", r->file, r->line, got, want);
}

typedef struct { uint8_t *p; uint32_t n, cap; } bytes;

/* Numbers, each after a space, up to a line end or a bar. */
static rl_status read_bytes(reader *r, bytes *b) {
    while (r->end - r->p > 1 && r->p[0] == ' ' && r->p[1] != '|') {
        int64_t x;
        RL_TRY(read_next(r, 254, &x));
        rl_push(r->mem, *b, (uint8_t)x);
    }
    return RL_OK;
}

/* As many numbers as wanted. */
static rl_status read_array(reader *r, uint32_t want, const uint8_t **out) {
    bytes b = {0};
    RL_TRY(read_bytes(r, &b));
    if (b.n != want) return rl_fail(r->ctx, RL_EPROOF, "%s:%u: %u numbers, wanted %u", r->file, r->line, b.n, want);
    *out = b.n ? b.p : rl_new(r->mem, uint8_t, 1);
    return RL_OK;
}

static bool read_hex(reader *r, uint32_t *x) {
    *x = 0;
    for (uint32_t i = 0; i < 4; i++, r->p++) {
        static const char digit[] = "0123456789abcdef";
        if (r->p == r->end || !*r->p) return false;
        char c = *r->p >= 'A' && *r->p <= 'F' ? (char)(*r->p + 'a' - 'A') : *r->p;
        const char *at = strchr(digit, c);
        if (!at) return false;
        *x = *x * 16 + (uint32_t)(at - digit);
    }
    return true;
}

static void put_utf8(rl_text *t, uint32_t c) {
    char s[4];
    size_t n = 0;
    if (c < 0x80) s[n++] = (char)c;
    else if (c < 0x800) s[n++] = (char)(0xc0 | c >> 6);
    else if (c < 0x10000) s[n++] = (char)(0xe0 | c >> 12);
    else s[n++] = (char)(0xf0 | c >> 18);
    if (c >= 0x10000) s[n++] = (char)(0x80 | (c >> 12 & 63));
    if (c >= 0x800) s[n++] = (char)(0x80 | (c >> 6 & 63));
    if (c >= 0x80) s[n++] = (char)(0x80 | (c & 63));
    rl_put_bytes(t, s, n);
}

/* What follows a backslash. No character may be 0: names are C strings. */
static bool read_escape(reader *r, rl_text *t) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    uint32_t c, low;
    if (r->p == r->end || !*r->p) return false;
    char e = *r->p++;
    const char *at = strchr(from, e);
    if (at) rl_put_bytes(t, to + (at - from), 1);
    if (at) return true;
    if (e != 'u' || !read_hex(r, &c) || !c || (c >= 0xdc00 && c < 0xe000)) return false;
    if (c >= 0xd800 && c < 0xdc00) {
        if (!skip(r, "\\u") || !read_hex(r, &low) || low < 0xdc00 || low >= 0xe000) return false;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    put_utf8(t, c);
    return true;
}

static rl_status read_string(reader *r, const char **s) {
    rl_text t = {.mem = r->mem};
    if (!skip(r, "\"")) return refuse(r, "a string is missing");
    while (r->p < r->end && *r->p != '"' && (unsigned char)*r->p >= 0x20) {
        const char *from = r->p;
        while (r->p < r->end && *r->p != '"' && *r->p != '\\' && (unsigned char)*r->p >= 0x20) r->p++;
        rl_put_bytes(&t, from, (size_t)(r->p - from));
        if (skip(r, "\\") && !read_escape(r, &t)) return refuse(r, "a string has a bad escape");
    }
    if (!skip(r, "\"")) return refuse(r, "a string does not end");
    *s = t.p ? t.p : "";
    return RL_OK;
}

/* ---- reading: lines ---- */

typedef struct { rl_cert_value *p; uint32_t n, cap; } values;
typedef struct { rl_cert_op *p; uint32_t n, cap; } ops;
typedef struct { rl_cert_pin *p; uint32_t n, cap; } pins;
typedef struct { rl_cert_token *p; uint32_t n, cap; } tokens;
typedef struct { rl_cert_form *p; uint32_t n, cap; } forms;

static rl_status read_value(reader *r, uint32_t id, rl_cert_value *v) {
    struct { int64_t *p; uint32_t n, cap; } size = {0};
    struct { const char **p; uint32_t n, cap; } symbol = {0};
    RL_TRY(read_id(r, id));
    if (!skip(r, " ")) return refuse(r, "a name is missing");
    RL_TRY(read_string(r, &v->name));
    if (!skip(r, " bytes")) return refuse(r, "\"bytes\" is missing");
    RL_TRY(read_next(r, INT64_MAX, &v->bytes));
    if (!skip(r, " atoms")) return refuse(r, "\"atoms\" is missing");
    while (skip(r, " ")) {
        int64_t x = -1;
        const char *s = NULL;
        if (r->p < r->end && *r->p == '"') RL_TRY(read_string(r, &s));
        else RL_TRY(read_number(r, INT64_MAX, &x));
        rl_push(r->mem, size, x);
        rl_push(r->mem, symbol, s);
    }
    v->natom = size.n;
    v->size = size.p;
    v->symbol = symbol.p;
    return line_end(r);
}

static rl_status read_pin(reader *r, const values *v, rl_cert_pin *pin) {
    RL_TRY(read_word32(r, &pin->value));
    if (pin->value >= v->n) return refuse(r, "no such value");
    if (!skip(r, " ")) return refuse(r, "a name is missing");
    RL_TRY(read_string(r, &pin->tensor));
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): pin->value is less than v->n */
    RL_TRY(read_array(r, v->p[pin->value].natom, &pin->stands));
    return line_end(r);
}

/* "token 0:0 1:3,4": pins rise. */
static rl_status read_token(reader *r, uint32_t npin, rl_cert_token *t) {
    const uint8_t **at = rl_new(r->mem, const uint8_t *, npin);
    uint8_t *n = rl_new(r->mem, uint8_t, npin);
    for (uint32_t from = 0; skip(r, " ");) {
        uint32_t p = 0;
        bytes b = {0};
        RL_TRY(read_word32(r, &p));
        if (p < from || p >= npin) return refuse(r, "no such pin, or pins do not rise");
        if (!skip(r, ":")) return refuse(r, "a colon is missing");
        do {
            int64_t x;
            RL_TRY(read_number(r, 254, &x));
            rl_push(r->mem, b, (uint8_t)x);
        } while (b.n < 255 && skip(r, ","));
        at[p] = b.p;
        n[p] = (uint8_t)b.n;
        from = p + 1;
    }
    *t = (rl_cert_token){at, n};
    return line_end(r);
}

static rl_status read_form(reader *r, uint32_t npin, uint32_t ntoken, rl_cert_form *f) {
    bytes seq = {0};
    uint32_t *start = rl_new(r->mem, uint32_t, (size_t)npin + 1);
    RL_TRY(read_array(r, ntoken, &f->group));
    for (uint32_t p = 0; p < npin; p++) {
        if (!skip(r, " |")) return refuse(r, "the groups of a pin are missing");
        RL_TRY(read_bytes(r, &seq));
        start[p + 1] = seq.n;
    }
    f->start = start;
    f->seq = seq.p;
    return line_end(r);
}

/* The first line of an op. */
static rl_status read_op_head(reader *r, uint32_t id, rl_cert_op *op) {
    uint32_t kind = 0;
    RL_TRY(read_id(r, id));
    if (!skip(r, " ")) return refuse(r, "what the op is, is missing");
    while (kind < RL_CERT_NKIND && !skip(r, rl_cert_kind_name[kind])) kind++;
    if (kind == RL_CERT_NKIND || !skip(r, " ")) return refuse(r, "the op is none of input, output, captured, reads, node");
    op->kind = (rl_cert_kind)kind;
    op->chosen = RL_NONE;
    op->fixed = kind != RL_CERT_NODE;
    RL_TRY(read_string(r, &op->name));
    if (op->fixed) return line_end(r);
    if (!skip(r, " ")) return refuse(r, "the type of the node is missing");
    const char *from = r->p;
    while (r->p < r->end && rl_cert_is_word_byte(*r->p)) r->p++;
    if (r->p > from) {
        char *type = rl_new(r->mem, char, r->p - from + 1);
        memcpy(type, from, (size_t)(r->p - from));
        op->type = type;
    } else {
        RL_TRY(read_string(r, &op->type));
    }
    op->fixed = skip(r, " fixed");
    return line_end(r);
}

/* "96 forms 0 15 15", "96 after 16 0 2", "96 last 2 1": see cert_text.c. */
static rl_status read_charge(reader *r, rl_cert_op *op) {
    rl_cert_charge *x = &op->charge;
    uint32_t rule = RL_CERT_FORMS;
    RL_TRY(read_number(r, INT64_MAX, &x->bytes));
    if (!skip(r, " ")) return refuse(r, "the rule of the charge is missing");
    while (rule < RL_CERT_NRULE && !skip(r, rl_cert_rule_name[rule])) rule++;
    if (rule == RL_CERT_NRULE) return refuse(r, "the charge is none of forms, after, last");
    x->rule = (rl_cert_rule)rule;
    RL_TRY(read_next(r, UINT32_MAX - 1, &x->tenths));
    int64_t *form = rl_new(r->mem, int64_t, (size_t)op->nform + 1);
    bool *marked = rl_new(r->mem, bool, (size_t)op->ntoken + 1);
    for (uint32_t k = 0; k < op->nform && rule == RL_CERT_FORMS; k++) RL_TRY(read_next(r, UINT32_MAX - 1, &form[k]));
    for (int64_t t = -1, from; rule != RL_CERT_FORMS && skip(r, " ");) {
        from = t;
        RL_TRY(read_number(r, UINT32_MAX - 1, &t));
        if (t <= from || t >= op->ntoken) return refuse(r, "no such token, or tokens do not rise");
        marked[t] = true;
    }
    x->form = form;
    x->marked = marked;
    return line_end(r);
}

/* Pins, rising: which, as [npin]; one at least. */
static rl_status read_pins(reader *r, uint32_t npin, const bool **out) {
    bool *pin = rl_new(r->mem, bool, (size_t)npin + 1);
    int64_t p = -1;
    do {
        int64_t from = p;
        RL_TRY(read_next(r, UINT32_MAX - 1, &p));
        if (p <= from || p >= RL_MIN(npin, 4u)) return refuse(r, "no such pin, or pins do not rise");
        pin[p] = true;
    } while (r->p < r->end && *r->p == ' ');
    *out = pin;
    return line_end(r);
}

static rl_status read_op(reader *r, const values *v, uint32_t id, rl_cert_op *op) {
    pins pin = {0};
    tokens token = {0};
    forms form = {0};
    RL_TRY(read_op_head(r, id, op));
    while (skip(r, "pin ")) {
        rl_cert_pin x;
        RL_TRY(read_pin(r, v, &x));
        rl_push(r->mem, pin, x);
    }
    while (skip(r, "token")) {
        rl_cert_token x;
        if (token.n == 255) return refuse(r, "more than 255 tokens");
        RL_TRY(read_token(r, pin.n, &x));
        rl_push(r->mem, token, x);
    }
    while (skip(r, "form")) {
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
    if (skip(r, "charge ")) RL_TRY(read_charge(r, op));
    return skip(r, "swaps") ? read_pins(r, op->npin, &op->swaps) : RL_OK;
}

static rl_status read_choices(reader *r, ops *op) {
    for (uint32_t from = 0; skip(r, "choose ");) {
        uint32_t i = 0;
        int64_t form = 0;
        RL_TRY(read_word32(r, &i));
        if (i < from || i >= op->n) return refuse(r, "no such op, or ops do not rise");
        RL_TRY(read_next(r, UINT32_MAX - 1, &form));
        op->p[i].chosen = (uint32_t)form;
        RL_TRY(read_array(r, op->p[i].ntoken, &op->p[i].perm));
        RL_TRY(line_end(r));
        from = i + 1;
    }
    return RL_OK;
}

static rl_status read_keeps(reader *r, values *v) {
    for (uint32_t from = 0; skip(r, "keep ");) {
        uint32_t i = 0;
        bytes b = {0};
        RL_TRY(read_word32(r, &i));
        if (i < from || i >= v->n) return refuse(r, "no such value, or values do not rise");
        RL_TRY(read_bytes(r, &b));
        v->p[i].nkeep = b.n;
        v->p[i].keep = b.n ? b.p : rl_new(r->mem, uint8_t, 1);
        RL_TRY(line_end(r));
        from = i + 1;
    }
    return RL_OK;
}

static rl_status read_folds(reader *r, values *v) {
    for (uint32_t from = 0; skip(r, "fold ");) {
        uint32_t i = 0;
        struct { uint16_t *p; uint32_t n, cap; } to = {0};
        RL_TRY(read_word32(r, &i));
        if (i < from || i >= v->n) return refuse(r, "no such value, or values do not rise");
        if (!v->p[i].keep) return refuse(r, "the value has no \"keep\" line");
        while (skip(r, " ")) {
            uint32_t x = 0;
            RL_TRY(read_word32(r, &x));
            if (x > UINT16_MAX) return refuse(r, "no such order");
            rl_push(r->mem, to, (uint16_t)x);
        }
        if (to.n == 0 || to.n != rl_cert_norder(v->p[i].nkeep)) return refuse(r, "a fold names one order for each order of the atoms kept");
        v->p[i].fold = to.p;
        RL_TRY(line_end(r));
        from = i + 1;
    }
    return RL_OK;
}

static rl_status read_part(reader *r, uint32_t id, uint32_t nop, bool by_time, rl_cert_part *part) {
    struct { uint32_t *p; uint32_t n, cap; } op = {0};
    RL_TRY(read_id(r, id));
    if (by_time) RL_TRY(read_next(r, INT64_MAX, &part->cost));
    RL_TRY(read_next(r, INT64_MAX, &part->least.count));
    RL_TRY(read_next(r, INT64_MAX, by_time ? &part->price : &part->least.bytes));
    part->swaps = by_time && skip(r, " swaps");
    while (skip(r, " ")) {
        uint32_t i = 0;
        RL_TRY(read_word32(r, &i));
        if (i >= nop) return refuse(r, "no such op");
        rl_push(r->mem, op, i);
    }
    part->nop = op.n;
    part->op = op.p;
    return line_end(r);
}

/* What atoms are kept, folds and components; c has its values and ops. */
static rl_status read_bound(reader *r, rl_cert *c) {
    values value = {(rl_cert_value *)c->value, c->nvalue, c->nvalue};
    struct { rl_cert_part *p; uint32_t n, cap; } part = {0};
    RL_TRY(read_keeps(r, &value));
    RL_TRY(read_folds(r, &value));
    while (skip(r, "component ")) {
        rl_cert_part x = {0};
        RL_TRY(read_part(r, part.n, c->nop, c->by_time, &x));
        rl_push(r->mem, part, x);
    }
    c->part = part.p;
    c->npart = part.n;
    return RL_OK;
}

static rl_status read_claim(reader *r, rl_cert *c) {
    int64_t outside = 0;
    if (!skip(r, "outside")) return refuse(r, "a line out of place, or \"outside\" is missing");
    RL_TRY(read_next(r, UINT32_MAX - 1, &outside));
    c->noutside = (uint32_t)outside;
    RL_TRY(line_end(r));
    if (!skip(r, "claim")) return refuse(r, "\"claim\" is missing");
    RL_TRY(read_next(r, INT64_MAX, &c->cost.count));
    RL_TRY(read_next(r, INT64_MAX, &c->cost.bytes));
    RL_TRY(read_next(r, INT64_MAX, &c->bound.count));
    RL_TRY(read_next(r, INT64_MAX, &c->bound.bytes));
    return line_end(r);
}

static rl_status read_swaps(reader *r, rl_cert *c) {
    struct { rl_cert_swap *p; uint32_t n, cap; } swap = {0};
    while (skip(r, "swap ")) {
        rl_cert_swap x = {0};
        int64_t form = 0;
        RL_TRY(read_word32(r, &x.op));
        if (x.op >= c->nop) return refuse(r, "no such op");
        RL_TRY(read_next(r, UINT32_MAX - 1, &form));
        x.form = (uint32_t)form;
        RL_TRY(read_array(r, c->op[x.op].ntoken, &x.perm));
        if (!skip(r, " |")) return refuse(r, "the pins of a swap are missing");
        RL_TRY(read_pins(r, c->op[x.op].npin, &x.pin));
        rl_push(r->mem, swap, x);
    }
    c->swap = swap.p;
    c->nswap = swap.n;
    return RL_OK;
}

/* The second part: of the same values, which may keep other atoms, and the same ops. */
static rl_status read_time(reader *r, rl_cert *c) {
    rl_cert *t = rl_new(r->mem, rl_cert, 1);
    rl_cert_value *value = rl_copy(r->mem, c->value, c->nvalue * sizeof *value);
    RL_TRY(line_end(r));
    if (!c->rate) return refuse(r, "times are bounded, but \"rate\" is missing");
    for (uint32_t v = 0; v < c->nvalue; v++) {
        value[v].keep = NULL;
        value[v].fold = NULL;
        value[v].nkeep = 0;
    }
    *t = (rl_cert){.by_time = true, .fixed = c->fixed, .rate = c->rate, .nvalue = c->nvalue, .nop = c->nop, .value = value, .op = c->op};
    RL_TRY(read_swaps(r, t));
    RL_TRY(read_bound(r, t));
    if (!skip(r, "claim")) return refuse(r, "a line out of place, or \"claim\" is missing");
    RL_TRY(read_next(r, INT64_MAX, &t->cost.count));
    RL_TRY(read_next(r, INT64_MAX, &t->bound.count));
    c->time = t;
    return line_end(r);
}

static rl_status read_head(reader *r, rl_cert *c) {
    if (!skip(r, RL_CERT_HEAD "\n")) return refuse(r, "the file does not start with " RL_CERT_HEAD);
    r->line++;
    if (!skip(r, "objective ")) return refuse(r, "\"objective\" is missing");
    c->bytes_first = skip(r, "bytes");
    if (!c->bytes_first && !skip(r, "nodes")) return refuse(r, "the objective is neither nodes nor bytes");
    return line_end(r);
}

static rl_status read_rate(reader *r, rl_cert *c) {
    enum { MOSTNS = 1000000, MOSTRATE = 100000000 };
    if (!skip(r, "rate")) return RL_OK;
    RL_TRY(read_next(r, MOSTNS, &c->fixed));
    RL_TRY(read_next(r, MOSTRATE, &c->rate));
    return c->rate ? line_end(r) : refuse(r, "a rate is at least 1");
}

/* One graph: all but the first lines and the last. */
static rl_status read_graph(reader *r, rl_cert *out) {
    values value = {0};
    ops op = {0};
    RL_TRY(read_rate(r, out));
    while (skip(r, "value ")) {
        rl_cert_value x = {0};
        RL_TRY(read_value(r, value.n, &x));
        rl_push(r->mem, value, x);
    }
    while (skip(r, "op ")) {
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
    return skip(r, "time") ? read_time(r, out) : RL_OK;
}

/* `0 "local" "F"`, and its graph. */
static rl_status read_function(reader *r, bool bytes_first, uint32_t least, rl_cert_function *f) {
    rl_cert *c = rl_new(r->mem, rl_cert, 1);
    *c = (rl_cert){.bytes_first = bytes_first};
    f->cert = c;
    RL_TRY(read_word32(r, &f->index));
    if (f->index < least) return refuse(r, "functions do not rise");
    if (!skip(r, " ")) return refuse(r, "the domain is missing");
    RL_TRY(read_string(r, &f->domain));
    if (!skip(r, " ")) return refuse(r, "a name is missing");
    RL_TRY(read_string(r, &f->name));
    RL_TRY(line_end(r));
    return read_graph(r, c);
}

rl_status rl_cert_parse(rl_ctx *ctx, rl_arena *mem, const char *file, const char *text, size_t n, rl_cert *out) {
    reader r = {ctx, mem, file, text, text + n, 1};
    struct { rl_cert_function *p; uint32_t n, cap; } function = {0};
    *out = (rl_cert){0};
    RL_TRY(read_head(&r, out));
    RL_TRY(read_graph(&r, out));
    while (skip(&r, "function ")) {
        rl_cert_function x = {0};
        RL_TRY(read_function(&r, out->bytes_first, function.n ? function.p[function.n - 1].index + 1 : 0, &x));
        rl_push(mem, function, x);
    }
    out->function = function.p;
    out->nfunction = function.n;
    if (!skip(&r, "end\n") || r.p != r.end) return refuse(&r, "\"end\" is missing, or not the last line");
    return RL_OK;
}
