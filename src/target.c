/* Reads, prints and finds targets: see target.h.
 *
 * The rows of targets.def become an array of words by the preprocessor, a file's rows by the reader below; from there on it is the
 * same code.  So a row means the same in both, and an error names the row. */
#include "target.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layout.h"
#include "ops.h"

enum { MAXARG = 5, MAXTENTHS = 10000, MAXNS = 1000000, MAXRATE = 100000000 };
typedef struct { const char *kind; const char *arg[MAXARG]; } row;

typedef struct {
    rl_arena *mem;
    rl_targets *all;
    const char *file;
    uint32_t first;   /* targets before it were there before this table */
    uint32_t line;
} reader;

static rl_status fail(const reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static rl_status fail(const reader *r, const char *fmt, ...) {
    char what[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return rl_fail(r->mem->ctx, RL_EUSAGE, "%s:%u: %s", r->file, r->line, what);
}

/* ---- words ---- */

#define X(name, help) #name,
static const char *const charge_names[] = {RL_CHARGES(X)};
static const char *const move_names[] = {RL_MOVES(X)};
static const char *const extra_names[] = {RL_EXTRAS(X)};
#undef X

static uint32_t place_of(const char *const *names, size_t n, const char *name) {
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) return i;
    return RL_NONE;
}

static rl_status number(const reader *r, const char *s, int64_t most, int64_t *out) {
    char *end;
    *out = strtoll(s, &end, 10);
    if (!*s || *end || strlen(s) > 9 || *out < 0 || *out > most) return fail(r, "'%s' is no number from 0 to %" PRId64, s, most);
    return RL_OK;
}

bool rl_types_have(uint64_t types, rl_dtype t) {
    return types >> t & 1;
}

/* "f32 f16" */
static rl_status types_of(const reader *r, const char *s, uint64_t *out) {
    *out = 0;
    for (size_t n; *s; s += n) {
        s += strspn(s, " ");
        n = strcspn(s, " ");
        rl_dtype t = n ? rl_dtype_parse(s, n) : RL_UNDEF;
        if (t == RL_UNDEF) return fail(r, "'%.*s' is no element type", (int)n, s);
        *out |= (uint64_t)1 << t;
    }
    return *out ? RL_OK : fail(r, "no element type is named");
}

bool rl_run_fits(const rl_target_run *run, const rl_nodeinfo *n, rl_dtype type, uint32_t rank) {
    return !*n->domain && strcmp(n->type, run->op) == 0 && rank == run->rank && rl_types_have(run->types, type);
}

static rl_target *named(const rl_targets *all, uint32_t n, const char *name) {
    for (uint32_t i = n; i-- > 0;)
        if (strcmp(all->p[i].name, name) == 0) return &all->p[i];
    return NULL;
}

static bool is_word(const char *s, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!(s[i] == '_' || s[i] == '.' || (s[i] >= '0' && s[i] <= '9') || ((s[i] | 0x20) >= 'a' && (s[i] | 0x20) <= 'z'))) return false;
    return n > 0;
}

/* ---- rows ---- */

static rl_status add_target(reader *r, const row *x) {
    for (const char *s = x->arg[0]; *s || s == x->arg[0]; s++)
        if (!is_word(s, *s != 0) && *s != '-') return fail(r, "'%s' is no name: letters, digits, _, . and -", x->arg[0]);
    for (uint32_t i = r->first; i < r->all->n; i++)
        if (strcmp(r->all->p[i].name, x->arg[0]) == 0) return fail(r, "target '%s' stands twice", x->arg[0]);
    rl_target t = {.name = rl_internz(r->mem->ctx, x->arg[0]), .summary = rl_internz(r->mem->ctx, x->arg[1])};
    t.move[RL_MOVE_RATE] = 8192;
    t.move[RL_MOVE_OTHER] = t.move[RL_MOVE_INTO_MATMUL] = t.move[RL_MOVE_FROM_CONV] = 10;
    rl_push(r->mem, *r->all, t);
    return RL_OK;
}

static rl_status take_over(reader *r, rl_target *t, const row *x) {
    uint32_t own = (uint32_t)(t - r->all->p);
    const rl_target *from = named(r->all, own, x->arg[1]);
    if (!from) return fail(r, "no target '%s' stands before this one", x->arg[1]);
    rl_target now = *from;
    now.name = t->name;
    now.summary = t->summary;
    now.run.p = rl_copy(r->mem, from->run.p, from->run.cap * sizeof *from->run.p);
    *t = now;
    return RL_OK;
}

static rl_status set_charge(reader *r, rl_target *t, const row *x) {
    uint32_t i = place_of(charge_names, RL_NCHARGE, x->arg[1]);
    if (i == RL_NONE) return fail(r, "CHARGE knows no form '%s'", x->arg[1]);
    return number(r, x->arg[2], MAXTENTHS, &t->charge[i]);
}

static rl_status set_move(reader *r, rl_target *t, const row *x) {
    uint32_t i = place_of(move_names, RL_NMOVE, x->arg[1]);
    if (i == RL_NONE) return fail(r, "MOVE knows no '%s'", x->arg[1]);
    int64_t most = i == RL_MOVE_RATE ? MAXRATE : i == RL_MOVE_FIXED ? MAXNS : MAXTENTHS;
    RL_TRY(number(r, x->arg[2], most, &t->move[i]));
    return i == RL_MOVE_RATE && t->move[i] == 0 ? fail(r, "a RATE is at least 1") : RL_OK;
}

static rl_status set_extra(reader *r, rl_target *t, const row *x) {
    uint32_t i = place_of(extra_names, RL_NEXTRA, x->arg[1]);
    if (i == RL_NONE) return fail(r, "FORM knows no '%s'", x->arg[1]);
    return types_of(r, x->arg[2], &t->extra[i]);
}

/* nhwc, acdb: whole axes. */
static rl_status order_of(reader *r, const char *text, rl_target_run *run) {
    const char *why;
    run->rank = (uint32_t)strlen(text);
    if (run->rank < 1 || run->rank > RL_RUNRANK) return fail(r, "'%s' is no order of 1 to %d dims", text, RL_RUNRANK);
    return rl_layout_parse_perm(r->mem, text, run->rank, run->perm, &why) ? RL_OK : fail(r, "'%s' is no order: %s", text, why);
}

/* "domain::Type name=1", "domain::Type name=-" */
static rl_status written_as(reader *r, const char *s, rl_target_run *run) {
    rl_ctx *ctx = r->mem->ctx;
    const char *colon = strstr(s, "::"), *type = colon ? colon + 2 : s;
    size_t n = strcspn(type, " "), nattr;
    const char *attr = type + n + strspn(type + n, " "), *eq = strchr(attr, '=');
    run->domain = rl_intern(ctx, s, colon ? (size_t)(colon - s) : 0);
    run->type = rl_intern(ctx, type, n);
    run->attr = rl_internz(ctx, attr);
    nattr = eq ? (size_t)(eq - attr) : 0;
    bool ok = is_word(type, n) && (!colon || is_word(s, (size_t)(colon - s)));
    bool digits = eq && eq[1] && strlen(eq + 1) < 10 && !eq[1 + strspn(eq + 1, "0123456789")];
    if (*attr) ok &= is_word(attr, nattr) && (digits || (eq && strcmp(eq + 1, "-") == 0));
    return ok ? RL_OK : fail(r, "'%s' is not \"domain::Type\", or that and attribute=number or attribute=-", s);
}

static rl_status add_run(reader *r, rl_target *t, const row *x) {
    rl_ctx *ctx = r->mem->ctx;
    rl_target_run run = {.op = rl_internz(ctx, x->arg[1]), .order = rl_internz(ctx, x->arg[2]), .as = rl_internz(ctx, x->arg[4])};
    rl_op op = rl_op_find(rl_internz(ctx, ""), run.op, 21);
    if (op == RL_OP_OPAQUE) return fail(r, "ONNX has no op '%s'", x->arg[1]);
    if ((rl_op_class(op) != RL_OPAQUE && rl_op_class(op) != RL_POOL) || rl_op_heads(op, 0))
        return fail(r, "RUN is for ops that demand an order, and %s takes others by itself", x->arg[1]);
    RL_TRY(order_of(r, x->arg[2], &run));
    RL_TRY(types_of(r, x->arg[3], &run.types));
    RL_TRY(written_as(r, x->arg[4], &run));
    rl_push(r->mem, t->run, run);
    return RL_OK;
}

static const struct { const char *name; uint32_t narg; rl_status (*apply)(reader *r, rl_target *t, const row *x); } kinds[] = {
    {"TARGET", 2, NULL}, {"LIKE", 2, take_over}, {"CHARGE", 3, set_charge},
    {"MOVE", 3, set_move}, {"FORM", 3, set_extra}, {"RUN", 5, add_run},
};

static rl_status apply(reader *r, const row *x) {
    size_t k = 0;
    uint32_t narg = 0;
    while (k < RL_LEN(kinds) && strcmp(kinds[k].name, x->kind) != 0) k++;
    if (k == RL_LEN(kinds)) return fail(r, "no row is called '%s'", x->kind);
    while (narg < MAXARG && x->arg[narg]) narg++;
    if (narg != kinds[k].narg) return fail(r, "%s has %u parts, and takes %u", x->kind, narg, kinds[k].narg);
    if (!kinds[k].apply) return add_target(r, x);
    if (r->all->n == r->first || strcmp(r->all->p[r->all->n - 1].name, x->arg[0]) != 0)
        return fail(r, "a row of '%s' stands behind TARGET( %s, ... )", x->arg[0], x->arg[0]);
    return kinds[k].apply(r, &r->all->p[r->all->n - 1], x);
}

static const row builtin_rows[] = {
#define TARGET(t, summary) {"TARGET", {#t, summary}},
#define LIKE(t, other) {"LIKE", {#t, #other}},
#define CHARGE(t, form, tenths) {"CHARGE", {#t, #form, #tenths}},
#define MOVE(t, what, n) {"MOVE", {#t, #what, #n}},
#define FORM(t, form, types) {"FORM", {#t, #form, types}},
#define RUN(t, op, order, types, as) {"RUN", {#t, #op, #order, types, as}},
#include "targets.def"
#undef TARGET
#undef LIKE
#undef CHARGE
#undef MOVE
#undef FORM
#undef RUN
};

rl_status rl_targets_builtin(rl_arena *mem, rl_targets *all) {
    reader r = {mem, all, "targets.def: row", all->n, 0};
    for (size_t i = 0; i < RL_LEN(builtin_rows); i++) {
        r.line = (uint32_t)i + 1;
        RL_TRY(apply(&r, &builtin_rows[i]));
    }
    return RL_OK;
}

/* ---- a file ---- */

typedef struct { const char *s, *end; } source;

static rl_status skip_space(reader *r, source *s) {
    while (s->s < s->end) {
        if (s->end - s->s > 1 && s->s[0] == '/' && s->s[1] == '*') {
            uint32_t line = r->line;
            for (s->s += 2; s->end - s->s > 1 && !(s->s[0] == '*' && s->s[1] == '/'); s->s++) r->line += *s->s == '\n';
            if (s->end - s->s < 2) {
                r->line = line;
                return fail(r, "this comment has no end");
            }
            s->s += 2;
        } else if (s->end - s->s > 1 && s->s[0] == '/' && s->s[1] == '/') {
            while (s->s < s->end && *s->s != '\n') s->s++;
        } else if (*s->s && strchr(" \t\r\n", *s->s)) {
            r->line += *s->s++ == '\n';
        } else break;
    }
    return RL_OK;
}

static bool takes(source *s, char c) {
    if (s->s == s->end || *s->s != c) return false;
    s->s++;
    return true;
}

/* A name, a number or "text". */
static rl_status read_word(reader *r, source *s, const char **out) {
    const char *from = s->s;
    bool quoted = takes(s, '"');
    if (quoted) {
        from++;
        while (s->s < s->end && *s->s != '"' && *s->s != '\n') s->s++;
    } else {
        while (s->s < s->end && (is_word(s->s, 1) || *s->s == '-')) s->s++;
    }
    size_t n = (size_t)(s->s - from);
    *out = rl_intern(r->mem->ctx, from, n);
    if (quoted && !takes(s, '"')) return fail(r, "this text has no end");
    if (!quoted && !n && s->s < s->end) return fail(r, "'%c' is no name, number or \"text\"", *s->s);
    return quoted || n ? RL_OK : fail(r, "the file ends in a row");
}

static rl_status read_row(reader *r, source *s) {
    row x = {0};
    RL_TRY(read_word(r, s, &x.kind));
    RL_TRY(skip_space(r, s));
    if (!takes(s, '(')) return fail(r, "after '%s' comes (", x.kind);
    for (uint32_t i = 0;; i++) {
        if (i == MAXARG) return fail(r, "%s has too many parts", x.kind);
        RL_TRY(skip_space(r, s));
        RL_TRY(read_word(r, s, &x.arg[i]));
        RL_TRY(skip_space(r, s));
        if (takes(s, ')')) return apply(r, &x);
        if (!takes(s, ',')) return fail(r, "after '%s' comes , or )", x.arg[i]);
    }
}

rl_status rl_targets_parse(rl_arena *mem, const char *file, const char *s, size_t n, rl_targets *all) {
    reader r = {mem, all, file, all->n, 1};
    source from = {s, s + n};
    for (;;) {
        RL_TRY(skip_space(&r, &from));
        if (from.s == from.end) break;
        RL_TRY(read_row(&r, &from));
    }
    return all->n > r.first ? RL_OK : fail(&r, "no TARGET stands here");
}

bool rl_target_is_file(const char *name) {
    size_t n = strlen(name);
    if (strchr(name, '/') || (n > 4 && strcmp(name + n - 4, ".def") == 0)) return true;
    for (size_t i = 0; i < RL_LEN(builtin_rows); i++)
        if (strcmp(builtin_rows[i].kind, "TARGET") == 0 && strcmp(builtin_rows[i].arg[0], name) == 0) return false;
    return access(name, F_OK) == 0;
}

rl_status rl_target_find(rl_arena *mem, const char *name, const rl_target **out) {
    rl_targets all = {0};
    RL_TRY(rl_targets_builtin(mem, &all));
    if (rl_target_is_file(name)) {
        rl_text t = {.mem = mem};
        RL_TRY(rl_file_read(name, &t));
        RL_TRY(rl_targets_parse(mem, name, t.p, t.n, &all));
        *out = &all.p[all.n - 1];
        return RL_OK;
    }
    *out = named(&all, all.n, name);
    if (*out) return RL_OK;
    rl_text names = {.mem = mem};
    for (uint32_t i = 0; i < all.n; i++) rl_put(&names, "%s%s", i ? ", " : "", all.p[i].name);
    return rl_fail(mem->ctx, RL_EUSAGE, "no target '%.64s'; there are %s, or give a file", name, names.p);
}

/* ---- text ---- */

static void print_types(uint64_t types, rl_text *out) {
    const char *space = "";
    for (uint32_t t = 0; t < 64; t++) {
        if (!(types >> t & 1)) continue;
        rl_put(out, "%s%s", space, rl_dtype_name((rl_dtype)t));
        space = " ";
    }
}

void rl_target_print(const rl_target *t, rl_text *out) {
    rl_put(out, "TARGET( %s, \"%s\" )\n", t->name, t->summary);
    for (uint32_t i = 0; i < RL_NCHARGE; i++)
        if (t->charge[i]) rl_put(out, "CHARGE( %s, %s, %" PRId64 " )\n", t->name, charge_names[i], t->charge[i]);
    for (uint32_t i = 0; i < RL_NMOVE; i++) rl_put(out, "MOVE( %s, %s, %" PRId64 " )\n", t->name, move_names[i], t->move[i]);
    for (uint32_t i = 0; i < RL_NEXTRA; i++) {
        if (!t->extra[i]) continue;
        rl_put(out, "FORM( %s, %s, \"", t->name, extra_names[i]);
        print_types(t->extra[i], out);
        rl_put(out, "\" )\n");
    }
    for (uint32_t i = 0; i < t->run.n; i++) {
        const rl_target_run *x = &t->run.p[i];
        rl_put(out, "RUN( %s, %s, %s, \"", t->name, x->op, x->order);
        print_types(x->types, out);
        rl_put(out, "\", \"%s\" )\n", x->as);
    }
}

/* ---- time ---- */

bool rl_target_charges(const rl_target *t) {
    for (uint32_t i = 0; i < RL_NCHARGE; i++)
        if (t->charge[i]) return true;
    return false;
}

int64_t rl_target_move(const rl_target *t, int64_t bytes, int64_t tenths) {
    int64_t most = (int64_t)1 << 42; /* so that a million of them can be added */
    return RL_MIN(most, t->move[RL_MOVE_FIXED] * t->move[RL_MOVE_RATE] / 100 + RL_MIN(most, bytes) * tenths);
}

int64_t rl_target_ns(const rl_target *t, int64_t tenths) {
    return tenths / t->move[RL_MOVE_RATE] * 100 + tenths % t->move[RL_MOVE_RATE] * 100 / t->move[RL_MOVE_RATE];
}
