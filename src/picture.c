/* Makes pictures of graphs: see picture.h. */
#include "picture.h"

#include <inttypes.h>
#include <string.h>

#include "layout.h"
#include "report.h"

enum { MOSTCHARS = 30, MOSTINTS = 12 };

typedef struct {
    const rl_graph *g;
    const rl_picpart *part;
    rl_arena *mem;
    rl_picture *pic;
    rl_sheet *s;
    bool *drawn;      /* [g->nnode] */
    uint32_t *value;  /* [g->nval] its place in s->value, RL_NONE */
    uint32_t *pill;   /* [g->nval] the box of an input or outside value, RL_NONE */
    uint32_t *box;    /* [g->nnode] */
} drawing;

/* ---- texts ---- */

static const char *copy_text(rl_arena *mem, const rl_text *t) {
    return t->n ? rl_copy(mem, t->p, t->n + 1) : "";
}

/* As much of s as a box has room for. */
static const char *cut(rl_arena *mem, const char *s) {
    size_t n = 0, chars = 0;
    for (; s[n] && chars < MOSTCHARS; chars++)
        for (n++; ((unsigned char)s[n] & 0xc0) == 0x80;) n++;
    if (!s[n]) return s;
    rl_text t = {.mem = mem};
    rl_put_bytes(&t, s, n);
    rl_put(&t, "…");
    return t.p;
}

static const char *type_text(drawing *d, const rl_valinfo *x) {
    rl_text t = {.mem = d->mem};
    if (x->dtype == RL_UNDEF && x->rank == RL_NORANK) return "";
    rl_put(&t, "%s[", rl_dtype_name(x->dtype));
    if (x->rank == RL_NORANK) rl_put(&t, "?");
    for (uint32_t i = 0; x->rank != RL_NORANK && i < x->rank; i++) {
        if (i) rl_put(&t, ",");
        rl_dim_print(&t, d->g->ctx, x->dim[i]);
    }
    rl_put(&t, "]");
    if (x->layout) {
        rl_put(&t, "@");
        rl_layout_print(&t, x->layout, x->rank, x->dim);
    }
    return t.p;
}

static void put_ints(const rl_attr *a, rl_text *t) {
    rl_put(t, "[");
    for (uint32_t i = 0; i < a->n && i < MOSTINTS; i++) rl_put(t, "%s%" PRId64, i ? "," : "", a->ints[i]);
    rl_put(t, a->n > MOSTINTS ? ",…]" : "]");
}

static void put_attr(const rl_attr *a, rl_text *t) {
    if (a->graph) return;
    rl_put(t, "%s%s=", t->n ? " " : "", a->name);
    switch (a->kind) {
    case RL_ATTR_INT: rl_put(t, "%" PRId64, a->i); return;
    case RL_ATTR_FLOAT: rl_put(t, "%g", (double)a->f); return;
    case RL_ATTR_INTS: put_ints(a, t); return;
    case RL_ATTR_STRING: rl_put(t, "\"%.*s\"", (int)RL_MIN(a->s.n, (size_t)60), (const char *)a->s.p); return;
    default: rl_put(t, "…");
    }
}

static const char *attrs_text(drawing *d, const rl_nodeinfo *n) {
    rl_text t = {.mem = d->mem};
    for (uint32_t i = 0; i < n->nattr; i++) put_attr(&n->attr[i], &t);
    return copy_text(d->mem, &t);
}

static const char *op_text(drawing *d, const rl_nodeinfo *n) {
    const char *type = n->type ? n->type : n->op == RL_OP_MOVE ? "Move" : "?";
    return n->domain && *n->domain ? rl_internf(d->g->ctx, "%s::%s", n->domain, type) : type;
}

/* ---- values ---- */

static bool is_constant(const rl_valinfo *x) {
    return x->data || x->is_init;
}

static uint32_t value_place(drawing *d, rl_value v) {
    if (!rl_has(v)) return RL_NONE;
    if (d->value[v.i] == RL_NONE) {
        const rl_valinfo *x = rl_val(d->g, v);
        rl_picvalue p = {x->name ? x->name : "", type_text(d, x), is_constant(x)};
        d->value[v.i] = d->s->value.n;
        rl_push(d->mem, d->s->value, p);
    }
    return d->value[v.i];
}

/* ---- which nodes ---- */

/* Constant nodes are their values. */
static bool is_drawable(const rl_graph *g, const rl_nodeinfo *n) {
    return n->nin || n->ncap || n->nout == 0 || !rl_has(n->out[0]) || !is_constant(rl_val(g, n->out[0]));
}

static bool value_named(const rl_graph *g, rl_value v, const char *name) {
    return rl_has(v) && rl_val(g, v)->name && strcmp(rl_val(g, v)->name, name) == 0;
}

static bool node_named(const rl_graph *g, const rl_nodeinfo *n, const char *name) {
    bool yes = n->name && strcmp(n->name, name) == 0;
    for (uint32_t i = 0; i < n->nout; i++) yes |= value_named(g, n->out[i], name);
    for (uint32_t i = 0; i < n->nin; i++) yes |= value_named(g, n->in[i], name) && rl_val(g, n->in[i])->def.i == RL_NONE;
    return yes;
}

static bool beside(const rl_graph *g, const rl_nodeinfo *n, const bool *in) {
    for (uint32_t i = 0; i < n->nin; i++)
        if (rl_has(n->in[i]) && rl_val(g, n->in[i])->def.i != RL_NONE && in[rl_val(g, n->in[i])->def.i]) return true;
    for (uint32_t i = 0; i < n->nout; i++)
        for (uint32_t k = 0; rl_has(n->out[i]) && k < rl_val(g, n->out[i])->nuse; k++)
            if (in[rl_val(g, n->out[i])->use[k].node.i]) return true;
    return false;
}

static uint32_t choose_nodes(drawing *d) {
    const rl_graph *g = d->g;
    uint32_t count = 0;
    bool *before = rl_new(d->mem, bool, g->nnode + 1);
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        d->drawn[g->order.p[i].i] = is_drawable(g, n) && (!d->part->name || node_named(g, n, d->part->name));
        count += d->drawn[g->order.p[i].i];
    }
    for (uint64_t step = 0; d->part->name && step < d->part->around && count; step++) {
        uint32_t was = count;
        memcpy(before, d->drawn, g->nnode * sizeof *before);
        for (uint32_t i = 0; i < g->order.n; i++) {
            uint32_t k = g->order.p[i].i;
            if (before[k] || !is_drawable(g, rl_nod(g, g->order.p[i])) || !beside(g, rl_nod(g, g->order.p[i]), before)) continue;
            d->drawn[k] = true;
            count++;
        }
        if (count == was) break;
    }
    return count;
}

/* ---- boxes ---- */

static void add_pill(drawing *d, rl_value v, rl_pickind kind) {
    if (!rl_has(v) || d->pill[v.i] != RL_NONE || is_constant(rl_val(d->g, v))) return;
    uint32_t place = value_place(d, v), *one = rl_copy(d->mem, &place, sizeof place);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): value_place made it */
    rl_picnode n = {.kind = kind, .name = d->s->value.p[place].name, .line = d->s->value.p[place].type, .bytes = -1};
    if (kind == RL_PIC_OUTPUT) n.in = one, n.nin = 1;
    else n.out = one, n.nout = 1;
    if (kind != RL_PIC_OUTPUT) d->pill[v.i] = d->s->node.n;
    rl_push(d->mem, d->s->node, n);
}

/* Values that a drawn node reads and that no drawn node makes. */
static void add_sources(drawing *d, const rl_nodeinfo *n) {
    for (uint32_t i = 0; i < n->nin + n->ncap; i++) {
        rl_value v = i < n->nin ? n->in[i] : n->cap[i - n->nin];
        if (!rl_has(v)) continue;
        const rl_valinfo *x = rl_val(d->g, v);
        if (x->def.i == RL_NONE || !d->drawn[x->def.i]) add_pill(d, v, x->is_input && !x->is_outer ? RL_PIC_INPUT : RL_PIC_OUTSIDE);
    }
}

static const char *second_line(drawing *d, const rl_nodeinfo *n) {
    const rl_attr *perm = n->type && strcmp(n->type, "Transpose") == 0 ? rl_attr_find(n, "perm") : NULL;
    rl_text t = {.mem = d->mem};
    if (perm && perm->kind == RL_ATTR_INTS) {
        put_ints(perm, &t);
        int64_t bytes = rl_transpose_bytes(d->g, n);
        char moved[32];
        rl_report_bytes(moved, sizeof moved, bytes);
        if (bytes >= 0) rl_put(&t, " · %s", moved);
        return t.p;
    }
    return n->nout && rl_has(n->out[0]) ? type_text(d, rl_val(d->g, n->out[0])) : "";
}

static void add_node(drawing *d, rl_node id) {
    const rl_nodeinfo *n = rl_nod(d->g, id);
    rl_picnode p = {.name = n->name && *n->name ? n->name : NULL, .op = op_text(d, n), .line = second_line(d, n), .attrs = attrs_text(d, n),
                    .bytes = rl_moved_bytes(d->g, n), .nin = n->nin + n->ncap, .nout = n->nout};
    if (n->op == RL_OP_MOVE && n->nout) p.bytes = rl_stats_bytes(d->g, n->out[0]);
    p.transpose = n->op == RL_OP_MOVE || rl_transpose_bytes(d->g, n) >= 0;
    p.in = rl_new(d->mem, uint32_t, p.nin);
    p.out = rl_new(d->mem, uint32_t, p.nout);
    for (uint32_t i = 0; i < p.nin; i++) p.in[i] = value_place(d, i < n->nin ? n->in[i] : n->cap[i - n->nin]);
    for (uint32_t i = 0; i < p.nout; i++) p.out[i] = value_place(d, n->out[i]);
    d->box[id.i] = d->s->node.n;
    rl_push(d->mem, d->s->node, p);
}

static void add_boxes(drawing *d) {
    const rl_graph *g = d->g;
    for (uint32_t i = 0; i < g->input.n && !d->part->name; i++) add_pill(d, g->input.p[i], RL_PIC_INPUT);
    for (uint32_t i = 0; i < g->order.n; i++)
        if (d->drawn[g->order.p[i].i]) add_sources(d, rl_nod(g, g->order.p[i]));
    for (uint32_t i = 0; i < g->order.n; i++)
        if (d->drawn[g->order.p[i].i]) add_node(d, g->order.p[i]);
    for (uint32_t i = 0; i < g->output.n; i++) {
        rl_value v = g->output.p[i];
        const rl_valinfo *x = rl_val(g, v);
        bool made = x->def.i != RL_NONE && d->drawn[x->def.i];
        uint32_t pill = d->pill[v.i];
        if (!made && pill == RL_NONE) continue;
        d->pill[v.i] = RL_NONE; /* what goes through has a box at both ends */
        add_pill(d, v, RL_PIC_OUTPUT);
        d->pill[v.i] = pill;
    }
}

/* ---- nets ---- */

static int32_t text_width(const char *s, int32_t per_char) {
    int32_t n = 0;
    for (; s && *s; s++) n += ((unsigned char)*s & 0xc0) != 0x80;
    return n * per_char;
}

static rl_box box_of(drawing *d, rl_picnode *n) {
    if (n->kind != RL_PIC_NODE) n->name = cut(d->mem, n->name ? n->name : "");
    n->line = cut(d->mem, n->line ? n->line : "");
    int32_t wide = RL_MAX(text_width(n->kind == RL_PIC_NODE ? n->op : n->name, 8), text_width(n->line, 6));
    return (rl_box){.w = RL_MAX(wide + 22, 60) / 2 * 2, .h = *n->line ? 38 : 26, .fixed = n->kind == RL_PIC_INPUT};
}

static void add_reader(rl_arena *mem, rl_net *n, uint32_t reader) {
    for (uint32_t i = 0; i < n->nto; i++)
        if (n->to[i] == reader) return;
    uint32_t *to = rl_grow(mem, (uint32_t *)(uintptr_t)n->to, n->nto, n->nto + 1, sizeof *to);
    to[n->nto++] = reader;
    n->to = to;
}

static void make_nets(drawing *d) {
    rl_sheet *s = d->s;
    rl_net *net = rl_new(d->mem, rl_net, s->value.n);
    uint32_t n = 0, *maker = rl_new(d->mem, uint32_t, s->value.n + 1), *netof = rl_new(d->mem, uint32_t, s->value.n + 1);
    for (uint32_t i = 0; i < s->value.n; i++) maker[i] = netof[i] = RL_NONE;
    for (uint32_t i = 0; i < s->node.n; i++)
        for (uint32_t k = 0; k < s->node.p[i].nout; k++)
            if (s->node.p[i].out[k] != RL_NONE) maker[s->node.p[i].out[k]] = i;
    for (uint32_t i = 0; i < s->node.n; i++)
        for (uint32_t k = 0; k < s->node.p[i].nin; k++) {
            uint32_t v = s->node.p[i].in[k];
            if (v == RL_NONE || maker[v] == RL_NONE || maker[v] >= i) continue;
            if (netof[v] == RL_NONE) {
                netof[v] = n;
                net[n++].from = maker[v];
            }
            add_reader(d->mem, &net[netof[v]], i);
        }
    s->netof = netof;
    s->layers = (rl_layers){.mem = d->mem, .nbox = s->node.n, .nnet = n, .box = rl_new(d->mem, rl_box, s->node.n), .net = net};
    for (uint32_t i = 0; i < s->node.n; i++) s->layers.box[i] = box_of(d, &s->node.p[i]);
}

/* ---- sheets ---- */

static uint32_t *no_places(rl_arena *mem, uint32_t n) {
    uint32_t *x = rl_new(mem, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++) x[i] = RL_NONE;
    return x;
}

static rl_status draw_graph(const rl_graph *g, const char *title, const rl_picpart *part, rl_arena *mem, rl_picture *pic, uint32_t *sheet);

static rl_status draw_bodies(drawing *d, rl_node id, uint32_t sheet) {
    const rl_nodeinfo *n = rl_nod(d->g, id);
    for (uint32_t k = 0; k < n->nattr; k++) {
        uint32_t made;
        if (!n->attr[k].graph) continue;
        const char *of = n->name && *n->name ? n->name : op_text(d, n);
        const char *title = rl_internf(d->g->ctx, "%s of %s", n->attr[k].name, of);
        RL_TRY(draw_graph(n->attr[k].graph, title, d->part, d->mem, d->pic, &made));
        if (made == RL_NONE || sheet == RL_NONE || d->box[id.i] == RL_NONE) continue;
        rl_picnode *p = &d->pic->p[sheet].node.p[d->box[id.i]];
        p->body = rl_grow(d->mem, p->body, p->nbody, p->nbody + 1, sizeof *p->body);
        p->body[p->nbody++] = (rl_picbody){n->attr[k].name, made};
    }
    return RL_OK;
}

/* *sheet RL_NONE: nothing of it is wanted. Its bodies follow it. */
static rl_status draw_graph(const rl_graph *g, const char *title, const rl_picpart *part, rl_arena *mem, rl_picture *pic, uint32_t *sheet) {
    rl_sheet s = {.title = title};
    drawing d = {g, part, mem, pic, &s, rl_new(mem, bool, g->nnode + 1), no_places(mem, g->nval), no_places(mem, g->nval), no_places(mem, g->nnode)};
    uint32_t count = choose_nodes(&d);
    *sheet = RL_NONE;
    if (count > RL_PIC_MOST)
        return rl_fail(g->ctx, RL_ELIMIT, "%" PRIu32 " nodes are too many to draw (%d at most); --node NAME draws a part", count, RL_PIC_MOST);
    if (count || !part->name) {
        add_boxes(&d);
        make_nets(&d);
        *sheet = pic->n;
        rl_push(mem, *pic, s);
    }
    for (uint32_t i = 0; i < g->order.n; i++) RL_TRY(draw_bodies(&d, g->order.p[i], *sheet));
    return RL_OK;
}

rl_status rl_picture_of(const rl_graph *g, const rl_picpart *part, bool placed, rl_arena *mem, rl_picture *out) {
    uint32_t sheet;
    if (RL_PROTECT(g->ctx)) return RL_ENOMEM;
    *out = (rl_picture){0};
    RL_TRY(draw_graph(g, "main graph", part, mem, out, &sheet));
    for (uint32_t i = 0; i < g->function.n; i++) {
        const rl_graph *f = g->function.p[i];
        if (f) RL_TRY(draw_graph(f, rl_internf(g->ctx, "function %s", f->name ? f->name : "?"), part, mem, out, &sheet));
    }
    if (out->n == 0) return rl_fail(g->ctx, RL_EUSAGE, "no node or tensor '%s'", part->name);
    for (uint32_t i = 0; i < out->n && placed; i++) rl_layers_place(&out->p[i].layers);
    return RL_OK;
}

int64_t rl_picture_most(const rl_picture *p) {
    int64_t most = 0;
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t k = 0; k < p->p[i].node.n; k++) most = RL_MAX(most, p->p[i].node.p[k].bytes);
    return most;
}

uint32_t rl_picture_heat(int64_t bytes, int64_t most) {
    uint32_t heat = 4;
    for (; heat && bytes < most / 4; most /= 4) heat--;
    return heat;
}
