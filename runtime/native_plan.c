/* Plans as text: see native.h.
 *
 *   relayout-plan 1
 *   machine AMD EPYC, avx512, oneDNN 3.2.0, 1 thread
 *   graph 53 5a0b1c2d3e4f5061                    steps, and a hash of what they are
 *   predicted 1234567                            ns
 *   op 0 Conv abcd > aBcd16b # conv1             step, type, its inputs and outputs that have a layout; # name of the output
 *   op 1 MaxPool aBcd16b > aBcd16b # pool1
 *   op 2 Conv abcd > acdb plain # conv2          as without a plan
 *   end
 *
 * A plan comes from anywhere: each line is checked against the graph, and what passes cannot make a result wrong (native.h). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include "fast.h"
#include "native.h"

enum { LINE = 4096 };

/* ---- where ---- */

static void put_processor(rl_text *t) {
#if defined(__x86_64__) || defined(__i386__)
    uint32_t r[12];
    char name[sizeof r + 1] = {0};
    bool has = __get_cpuid(0x80000002, &r[0], &r[1], &r[2], &r[3]) && __get_cpuid(0x80000003, &r[4], &r[5], &r[6], &r[7]) &&
               __get_cpuid(0x80000004, &r[8], &r[9], &r[10], &r[11]);
    if (has) memcpy(name, r, sizeof r);
    for (char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~') *c = '?';
    rl_put(t, "%s", has ? name : "x86");
#else
    rl_put(t, "processor of %zu bits", sizeof(void *) * 8);
#endif
}

void rl_native_machine(rl_rt *rt, rl_text *t) {
    static const char *const isa[] = {"", "plain", "avx2", "avx512"};
    if (rt->device) {
        rl_put(t, "%s", rt->device->describe(rt));
        return;
    }
    put_processor(t);
    rl_put(t, ", %s", isa[rl_isa_here(RL_ISA_BEST)]);
    if (rt->fast) {
        const rl_dnnl_version *v = rt->fast->d.version();
        rl_put(t, ", oneDNN %d.%d.%d", v->major, v->minor, v->patch);
    }
    uint32_t n = rt->pool ? rl_pool_size(rt->pool) : 1;
    rl_put(t, ", %u thread%s", n, rl_plural(n));
}

/* ---- which graph ---- */

static void put_values(const rl_exec *x, const rl_value *v, uint32_t n, rl_text *t) {
    for (uint32_t i = 0; i < n; i++) {
        const rl_valinfo *a = rl_has(v[i]) ? rl_val(x->g, v[i]) : NULL;
        rl_put(t, " %s %d %u", a && a->name ? a->name : "-", a ? (int)a->dtype : 0, a ? a->rank : 0);
    }
    rl_put(t, ";");
}

static uint64_t hash_graph(const rl_exec *x) {
    rl_arena tmp;
    uint64_t h = 1;
    rl_arena_init(&tmp, x->g->ctx);
    rl_text t = {.mem = &tmp};
    for (uint32_t i = 0; i < x->nstep; i++) {
        const rl_nodeinfo *n = x->step[i].info;
        t.n = 0;
        rl_put(&t, "%" PRIx64 " %s %s", h, n->domain, n->type);
        put_values(x, n->in, n->nin, &t);
        put_values(x, n->out, n->nout, &t);
        h = rl_hash_bytes(t.p, t.n);
    }
    rl_arena_free(&tmp);
    return h;
}

/* ---- out ---- */

static void put_name(const rl_exec *x, const rl_nodeinfo *n, rl_text *t) {
    rl_str name = n->nout && rl_has(n->out[0]) ? rl_val(x->g, n->out[0])->name : NULL;
    rl_put(t, " # ");
    for (uint32_t i = 0; name && name[i] && i < 200; i++) rl_put(t, "%c", (unsigned char)name[i] < ' ' || name[i] == 127 ? '?' : name[i]);
    rl_put(t, "\n");
}

void rl_native_print(const rl_exec *x, const rl_native_plan *p, rl_text *t) {
    rl_pin pin[RL_PINS];
    rl_put(t, "relayout-plan 1\nmachine %s\ngraph %u %016" PRIx64 "\npredicted %" PRId64 "\n", p->machine, x->nstep, hash_graph(x), p->ns);
    for (uint32_t i = 0; i < p->nop; i++) {
        const rl_native_op *o = &p->op[i];
        const rl_step *s = &x->step[o->step];
        rl_native_pins(x, s, pin);
        rl_put(t, "op %u %s", o->step, s->info->type);
        bool arrow = false;
        for (uint32_t k = 0; k < o->npin; k++) {
            if (pin[k].out && !arrow) rl_put(t, " >"), arrow = true;
            rl_put(t, " ");
            rl_lay_put(&o->lay[k], t);
        }
        if (o->plain) rl_put(t, " plain");
        put_name(x, s->info, t);
    }
    rl_put(t, "end\n");
}

/* ---- in ---- */

typedef struct { const rl_exec *x; const char *p, *end; uint32_t line; } reader;

static rl_status wrong(const reader *r, const char *what) {
    return rl_fail(r->x->g->ctx, RL_EMODEL, "plan, line %u: %s", r->line, what);
}

/* The next line as *s, without its end. */
static bool next_line(reader *r, char *s) {
    const char *nl = r->p < r->end ? memchr(r->p, '\n', (size_t)(r->end - r->p)) : NULL;
    r->line++;
    if (!nl || nl - r->p >= LINE || memchr(r->p, 0, (size_t)(nl - r->p))) return false;
    memcpy(s, r->p, (size_t)(nl - r->p));
    s[nl - r->p] = 0;
    r->p = nl + 1;
    return true;
}

/* The next word of a line; "" at its end. */
static const char *next_word(char **s) {
    while (**s == ' ') (*s)++;
    char *word = *s;
    while (**s && **s != ' ') (*s)++;
    if (**s) *(*s)++ = 0;
    return word;
}

static bool number(const char *s, uint64_t most, uint64_t *to) {
    *to = 0;
    if (!*s || strlen(s) > 18) return false;
    for (; *s; s++) {
        if (*s < '0' || *s > '9') return false;
        *to = *to * 10 + (uint64_t)(*s - '0');
    }
    return *to <= most;
}

static rl_status read_op(reader *r, char *s, rl_native_op *op, const bool *seen) {
    const rl_exec *x = r->x;
    rl_pin pin[RL_PINS];
    rl_lay lay[RL_PINS];
    uint64_t step;
    if (!number(next_word(&s), UINT32_MAX, &step) || step >= x->nstep || seen[step]) return wrong(r, "no such step, or twice");
    const rl_step *at = &x->step[step];
    if (strcmp(next_word(&s), at->info->type) != 0) return wrong(r, "the step is another op");
    op->step = (uint32_t)step;
    op->npin = rl_native_pins(x, at, pin);
    bool arrow = false;
    for (uint32_t k = 0; k < op->npin; k++) {
        const char *word = next_word(&s);
        if (pin[k].out && !arrow) {
            arrow = true;
            if (strcmp(word, ">") != 0) return wrong(r, "the inputs have not as many layouts");
            word = next_word(&s);
        }
        if (!rl_lay_parse(word, strlen(word), &lay[k])) return wrong(r, "no layout");
    }
    const char *rest = next_word(&s);
    op->plain = strcmp(rest, "plain") == 0;
    if (op->plain) rest = next_word(&s);
    if (*rest && strcmp(rest, "#") != 0) return wrong(r, "more layouts than values");
    for (uint32_t k = 0; k < op->npin && op->plain; k++)
        if (lay[k].block) return wrong(r, "blocks are not plain");
    if (!op->npin || !rl_native_allows(x, at, pin, op->npin, lay)) return wrong(r, "the step cannot have these layouts");
    op->lay = rl_copy(&x->g->mem, lay, op->npin * sizeof *lay);
    return RL_OK;
}

static rl_status read_head(reader *r, char *s, rl_native_plan *p) {
    uint64_t n;
    if (!next_line(r, s) || strcmp(s, "relayout-plan 1") != 0) return wrong(r, "no plan of this version");
    if (!next_line(r, s) || strncmp(s, "machine ", 8) != 0) return wrong(r, "no machine");
    p->machine = rl_copy(&r->x->g->mem, s + 8, strlen(s + 8) + 1);
    if (!next_line(r, s) || strncmp(s, "graph ", 6) != 0) return wrong(r, "no graph");
    char *at = s + 6, *end;
    if (!number(next_word(&at), UINT32_MAX, &n)) return wrong(r, "no number of steps");
    const char *hash = next_word(&at);
    if (n != r->x->nstep || strlen(hash) != 16 || strtoull(hash, &end, 16) != hash_graph(r->x) || *end) return wrong(r, "it is another model's");
    bool found = next_line(r, s) && strncmp(s, "predicted ", 10) == 0;
    bool minus = found && s[10] == '-'; /* of a model of microseconds on a busy machine */
    if (!found || !number(s + 10 + minus, INT64_MAX, &n)) return wrong(r, "no prediction");
    p->ns = minus ? -(int64_t)n : (int64_t)n;
    return RL_OK;
}

rl_status rl_native_parse(const rl_exec *x, const char *text, size_t n, rl_native_plan *p) {
    reader r = {.x = x, .p = text, .end = text + n};
    char s[LINE];
    *p = (rl_native_plan){0};
    RL_TRY(read_head(&r, s, p));
    rl_native_op *op = rl_new(&x->g->mem, rl_native_op, x->nstep);
    bool *seen = rl_new(&x->g->mem, bool, x->nstep);
    for (;;) {
        if (!next_line(&r, s)) return wrong(&r, "no end");
        if (strcmp(s, "end") == 0) break;
        if (strncmp(s, "op ", 3) != 0 || p->nop == x->nstep) return wrong(&r, "no op");
        RL_TRY(read_op(&r, s + 3, &op[p->nop], seen));
        seen[op[p->nop++].step] = true;
    }
    p->op = op;
    return r.p == r.end ? RL_OK : wrong(&r, "there is more after the end");
}
