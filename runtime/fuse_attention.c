/* Attention as one step: which nodes are one.
 *
 *   q' = Mul(q, 0.35)    k' = Mul(k, 0.35)          numbers on q, on k or on the product: one scale
 *   s = MatMul(q', k')                              k comes transposed, by whatever view
 *   s = Add(s, bias), Where(mask, s, -inf), ...     and what else is done to scores; also with a Reshape around it (windows: [batch * windows, ...]
 *                                                   as [batch, windows, ...] for a mask of each window)
 *   y = MatMul(Softmax(s), v)
 *
 * Found from the Softmax: upwards through values that nobody else reads, then down.  Transposes and Reshapes of q, k, v and y are views, and stay. */

#include "fast.h"
#include "fuse_internal.h"
#include "kernels_fast.h"

static const rl_kernel kernel = {.types = RL_T(RL_F32), .fn = rl_fast_attention};

typedef struct {
    rl_fuser *a;
    rl_joined j;
    rl_value in[3 + RL_JOINED_OPS];
    uint32_t nin;
    struct {
        uint32_t p[4 * RL_JOINED_OPS];
        uint32_t n;
    } taken;    /* steps that the joined one stands for */
    bool split; /* where the walk is: the scores have the dims of j.dim */
} finder;

/* The step that makes v, if nobody but step `reader` reads v; RL_NONE: it is to stay. */
static uint32_t maker_for(const finder *f, rl_value v, uint32_t reader) {
    uint32_t s;
    rl_node def = rl_val(f->a->x->g, v)->def;
    if (def.i == RL_NONE || f->a->step_of[def.i] == RL_NONE || rl_fuse_readers(f->a, v, &s, 1) != 1 || s != reader)
        return RL_NONE;
    s = f->a->step_of[def.i];
    return rl_same(rl_fuse_node(f->a, s)->out[0], v) && !f->a->x->step[s].fused ? s : RL_NONE;
}

static bool take(finder *f, uint32_t step) {
    if (f->taken.n == RL_LEN(f->taken.p)) return false;
    f->taken.p[f->taken.n++] = step;
    return true;
}

static bool is_float(const finder *f, rl_value v, uint32_t least) {
    const rl_valinfo *x = rl_val(f->a->x->g, v);
    return rl_has(v) && rl_fuse_is_type(f->a, x->dtype) && x->rank != RL_NORANK && x->rank >= least && x->rank <= RL_DNNL_RANK;
}

/* Keys or values: constant ones are weights of a product, which packs them once. */
static bool varies(const finder *f, rl_value v) {
    return is_float(f, v, 2) && f->a->x->constant[v.i].kind == RL_ABSENT;
}

/* A number that step s multiplies value *v with; *v becomes the value before. */
static bool take_scale(finder *f, uint32_t s, rl_value *v) {
    float k;
    if (rl_fuse_fn(f->a, s) != rl_fast_binary) return false;
    const rl_nodeinfo *n = rl_fuse_node(f->a, s);
    int op = f->a->as[s]->arg;
    uint32_t number = rl_fuse_scalar(f->a, n->in[1], &k)                       ? 1
                      : op == RL_ROW_MUL && rl_fuse_scalar(f->a, n->in[0], &k) ? 0
                                                                               : 2;
    if (number == 2 || (op != RL_ROW_MUL && op != RL_ROW_DIV) || !rl_fuse_same_dims(f->a, n->in[1 - number], n->out[0]))
        return false;
    if (!take(f, s)) return false;
    f->j.scale *= op == RL_ROW_MUL ? k : 1 / k;
    *v = n->in[1 - number];
    return true;
}

static bool find_scores(finder *f, rl_value v, uint32_t reader);

static bool push(finder *f, rl_joined_op o, rl_value operand) {
    if (f->j.nop == RL_JOINED_OPS) return false;
    o.in = f->nin;
    o.split = f->split;
    f->in[f->nin++] = operand;
    f->j.op[f->j.nop++] = o;
    return true;
}

/* The ops come in the order in which they are done: what is above goes first. */
static bool find_binary(finder *f, uint32_t s) {
    const rl_nodeinfo *n = rl_fuse_node(f->a, s);
    finder was = *f;
    for (uint32_t i = 0; i < 2; i++) {
        rl_row_op op = (rl_row_op)f->a->as[s]->arg;
        *f = was;
        if (i) op = op == RL_ROW_SUB ? RL_ROW_RSUB : op == RL_ROW_DIV ? RL_ROW_RDIV : op;
        if (!is_float(f, n->in[1 - i], 0) || !rl_fuse_same_dims(f->a, n->in[i], n->out[0]) || rl_same(n->in[0], n->in[1]))
            continue;
        bool split = f->split;
        if (!take(f, s) || !find_scores(f, n->in[i], s)) continue;
        f->split = split;
        float k;
        bool number = rl_fuse_scalar(f->a, n->in[1 - i], &k);
        if (!f->j.nop && number && (op == RL_ROW_MUL || op == RL_ROW_DIV)) {
            f->j.scale *= op == RL_ROW_MUL ? k : 1 / k;
            return true;
        }
        if (push(f, (rl_joined_op){.op = op}, n->in[1 - i])) return true;
    }
    return false;
}

static bool find_choice(finder *f, uint32_t s) {
    const rl_nodeinfo *n = rl_fuse_node(f->a, s);
    float other;
    if (n->nin != 3 || !rl_has(n->in[2]) || rl_val(f->a->x->g, n->in[0])->dtype != RL_BOOL
        || rl_val(f->a->x->g, n->in[0])->rank == RL_NORANK)
        return false;
    uint32_t score = rl_fuse_scalar(f->a, n->in[2], &other) ? 1 : rl_fuse_scalar(f->a, n->in[1], &other) ? 2 : 0;
    bool split = f->split;
    if (!score || !rl_fuse_same_dims(f->a, n->in[score], n->out[0]) || !take(f, s) || !find_scores(f, n->in[score], s))
        return false;
    f->split = split;
    return push(f, (rl_joined_op){.op = RL_ROW_COPY, .keep = score == 1, .other = other}, n->in[0]);
}

/* Rows stay rows. On the way up the dims that are finer come first: the last Reshape gives back those of the product. */
static bool find_reshape(finder *f, uint32_t s) {
    const rl_nodeinfo *n = rl_fuse_node(f->a, s);
    const rl_valinfo *x = rl_val(f->a->x->g, n->in[0]), *y = rl_val(f->a->x->g, n->out[0]), *fine = f->split ? y : x;
    uint32_t unknown = 0;
    if (!is_float(f, n->in[0], 2) || !is_float(f, n->out[0], 2)) return false;
    for (uint32_t i = 1; i <= 2; i++)
        if (x->dim[x->rank - i] != y->dim[y->rank - i] || !rl_dim_known(x->dim[x->rank - i])) return false;
    if (!f->split && f->j.rank) return false; /* a second pair */
    for (uint32_t i = 0; i < fine->rank; i++) {
        int64_t d = rl_dim_known(fine->dim[i]) ? fine->dim[i] : -1;
        unknown += d < 0;
        if (d == 0 || (f->split && f->j.dim[i] != d)) return false;
        f->j.dim[i] = d;
    }
    if (unknown > 1 || (f->split && f->j.rank != fine->rank)) return false;
    f->j.rank = fine->rank;
    f->split = !f->split;
    return take(f, s) && find_scores(f, n->in[0], s);
}

/* From value v up to the product that makes scores of it. */
static bool find_scores(finder *f, rl_value v, uint32_t reader) {
    uint32_t s = maker_for(f, v, reader);
    rl_kernel_fn *fn = s == RL_NONE ? NULL : rl_fuse_fn(f->a, s);
    if (fn == rl_fast_binary) return find_binary(f, s);
    if (fn == rl_fast_where) return find_choice(f, s);
    if (fn == rl_ref_reshape) return find_reshape(f, s);
    const rl_nodeinfo *n = fn == rl_fast_matmul ? rl_fuse_node(f->a, s) : NULL;
    if (!n || f->split || n->nin != 2 || !is_float(f, n->in[0], 2) || !varies(f, n->in[1]) || !take(f, s)) return false;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t m;
        f->in[i] = n->in[i];
        for (uint32_t reads = s; (m = maker_for(f, f->in[i], reads)) != RL_NONE && take_scale(f, m, &f->in[i]);
             reads = m)
            continue;
    }
    return true;
}

/* The product of the weights that step s makes with the values. */
static uint32_t find_values(finder *f, uint32_t s) {
    const rl_graph *g = f->a->x->g;
    const rl_nodeinfo *n = rl_fuse_node(f->a, s);
    const rl_valinfo *w = rl_val(g, n->out[0]);
    uint32_t last;
    if (rl_fuse_readers(f->a, n->out[0], &last, 1) != 1 || rl_fuse_fn(f->a, last) != rl_fast_matmul
        || f->a->x->step[last].fused)
        return RL_NONE;
    const rl_nodeinfo *m = rl_fuse_node(f->a, last);
    if (m->nin != 2 || !rl_same(m->in[0], n->out[0]) || rl_same(m->in[1], n->out[0]) || !varies(f, m->in[1]))
        return RL_NONE;
    const rl_valinfo *y = rl_val(g, m->out[0]);
    if (y->rank != w->rank) return RL_NONE;
    for (uint32_t i = 0; i + 1 < w->rank; i++)
        if (y->dim[i] != w->dim[i]) return RL_NONE;
    f->in[2] = m->in[1];
    return last;
}

void rl_fuse_attention(rl_fuser *a, uint32_t softmax) {
    rl_exec *x = a->x;
    rl_arena *mem = &x->g->mem;
    rl_step *s = &x->step[softmax];
    finder f = {.a = a, .j = {.scale = 1}, .nin = 3};
    if (!s->info || !a->as[softmax] || a->as[softmax]->fn != rl_fast_softmax || a->as[softmax]->arg != RL_SOFTMAX || s->info->nout != 1) return;
    if (!rl_fuse_begin(a, rl_val(x->g, s->info->out[0])->dtype) || !is_float(&f, s->info->out[0], 2)) return;
    int64_t axis = rl_attr_int(s->info, "axis", s->info->since < 13 ? 1 : -1),
            rank = rl_val(x->g, s->info->out[0])->rank;
    if (axis != -1 && axis != rank - 1) return;
    uint32_t last = find_values(&f, softmax);
    if (last == RL_NONE || !take(&f, softmax) || !find_scores(&f, s->info->in[0], softmax)) return;
    rl_step *to = &x->step[last];
    rl_nodeinfo *n = rl_copy(mem, to->info, sizeof *n);
    n->in = rl_copy(mem, f.in, f.nin * sizeof *f.in);
    n->nin = f.nin;
    to->info = n;
    to->joined = rl_copy(mem, &f.j, sizeof f.j);
    a->as[last] = &kernel;
    for (uint32_t i = 0; i < f.taken.n; i++) rl_fuse_take(a, f.taken.p[i], last);
    rl_run_by(x, to, a->device ? to->kernel.p[0] : &kernel);
    if (a->device) rl_fuse_keep_parts(a, to, last);
}
