/* Primitives: made once for a node and the shapes that it meets, kept with their packed constants; see fast.h. */
#include <stdio.h>
#include <string.h>

#include "fast.h"
#include "fuse.h"
#include "kernels_fast.h"
#include "native.h"

enum { ALIGN = 64 };

/* ---- which one ---- */

static void free_arg(rl_fast *f, rl_prim_arg *a) {
    if (a->reorder) f->d.primitive_destroy(a->reorder);
    if (a->used && a->used != a->given) f->d.memory_destroy(a->used);
    if (a->given) f->d.memory_destroy(a->given);
    if (a->packed.mem) a->packed.mem->rt->constants -= a->packed.mem->nbyte;
    rl_tensor_drop(&a->packed);
}

static void empty(rl_fast *f, rl_prim *p) {
    for (uint32_t i = 0; i < p->narg; i++) free_arg(f, &p->arg[i]);
    if (p->scratchpad) f->d.memory_destroy(p->scratchpad);
    if (p->p) f->d.primitive_destroy(p->p);
    p->narg = 0;
    p->fell = p->bare = false;
    p->scratchpad = NULL;
    p->p = NULL;
}

void rl_prim_free(rl_fast *f, rl_prim *p) {
    if (f->making.p == p) rl_making_end(&f->making);
    rl_prim **link = &f->all;
    while (*link != p) link = &(*link)->after;
    *link = p->after;
    empty(f, p);
    rl_host_free(&p->run->ctx->host, p, sizeof *p);
}

void rl_prims_drop(const rl_rt *rt, rl_step *s) {
    for (rl_prim *p = s->prim, *next; p; p = next) {
        next = p->next;
        rl_prim_free(rt->fast, p);
    }
    s->prim = NULL;
}

static bool write_key(rl_prim *p, const rl_tensor *const *t, uint32_t n) {
    p->nkey = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rank = t[i] ? t[i]->rank : 0;
        if (p->nkey + 2 + 2 * rank > RL_PRIM_KEY) return false;
        p->key[p->nkey++] = t[i] ? (int64_t)rank : -1;
        for (uint32_t k = 0; k < rank; k++) {
            p->key[p->nkey++] = t[i]->dim[k];
            p->key[p->nkey++] = t[i]->dim[k] == 1 ? 0 : t[i]->stride[k];
        }
    }
    return true;
}

static rl_prim *prim_new(rl_call *c) {
    rl_prim *p = rl_host_alloc(&c->g->ctx->host, sizeof *p);
    if (!p) rl_no_memory(c->g->ctx);
    p->run = c->rt;
    p->after = c->rt->fast->all;
    c->rt->fast->all = p;
    return p;
}

rl_prim *rl_prim_get(rl_call *c, const rl_tensor *const *t, uint32_t n, bool *fresh) {
    rl_prim want, *p, **link = &c->step->prim;
    uint32_t kept = 0;
    if (!write_key(&want, t, n)) return NULL;
    for (p = *link; p; link = &p->next, p = p->next, kept++) {
        bool last = !p->next && kept + 1 >= RL_PRIM_KEPT;
        *fresh = p->nkey != want.nkey || !rl_same_bytes(p->key, want.key, want.nkey * sizeof *want.key);
        if (*fresh && !last) continue;
        if (*fresh) empty(c->rt->fast, p);
        *link = p->next;
        break;
    }
    if (!p) {
        p = prim_new(c);
        *fresh = true;
    }
    if (*fresh) rl_call_fetch(c);
    p->next = c->step->prim;
    c->step->prim = p;
    memcpy(p->key, want.key, want.nkey * sizeof *want.key);
    p->nkey = want.nkey;
    return p;
}

bool rl_packs(rl_kernel_fn *fn, uint32_t i) {
    if (fn == rl_ref_recurrent) return i == 1 || i == 2;
    if (fn == rl_fast_qlinear_conv || fn == rl_fast_qlinear_matmul) return i == 3;
    if (fn == rl_fast_conv_integer || fn == rl_fast_matmul_integer) return i == 1;
    return i == 1 && (fn == rl_fast_conv || fn == rl_fast_conv_pieces || fn == rl_fast_conv_fold || fn == rl_fast_conv_transpose || fn == rl_fast_matmul || fn == rl_fast_scattered_matmul || fn == rl_fast_scattered_conv ||
                      fn == rl_fast_gemm);
}

rl_tensor *rl_call_passing(rl_call *c, uint32_t rank, const int64_t *dim) {
    const rl_backend *was = c->rt->on;
    c->rt->on = &rl_backend_pages;
    rl_tensor *t = rl_call_temp(c, RL_F32, rank, dim);
    c->rt->on = was;
    return t;
}

/* ---- making one ---- */

static void start_attr(rl_making *m) {
    if (m->attr) m->f->d.primitive_attr_destroy(m->attr);
    m->attr = NULL;
    m->f->d.primitive_attr_create(&m->attr);
    if (m->attr) m->f->d.primitive_attr_set_scratchpad_mode(m->attr, RL_DNNL_SCRATCHPAD_USER);
}

rl_making *rl_making_start(rl_call *c, rl_prim *p) {
    rl_making *m = &c->rt->fast->making;
    rl_making_end(m);
    *m = (rl_making){.c = c, .f = c->rt->fast, .p = p, .type = RL_DNNL_F32};
    start_attr(m);
    return m;
}

void rl_making_end(rl_making *m) {
    if (!m->p) return;
    for (uint32_t i = 0; i < m->nmd; i++) m->f->d.memory_desc_destroy(m->md[i]);
    if (m->pd) m->f->d.primitive_desc_destroy(m->pd);
    if (m->attr) m->f->d.primitive_attr_destroy(m->attr);
    if (!m->p->p) empty(m->f, m->p);
    *m = (rl_making){0};
}

/* Dims that an int does not hold: oneDNN counts blocks in ints, and divides by none (3.x). */
static bool is_too_long(uint32_t rank, const int64_t *dim) {
    for (uint32_t i = 0; i < rank; i++)
        if (dim[i] > INT32_MAX) return true;
    return false;
}

rl_dnnl_md rl_making_md(rl_making *m, uint32_t rank, const int64_t *dim, const int64_t *stride) {
    rl_dnnl_md md = NULL;
    if (m->nmd == RL_LEN(m->md) || rank > RL_DNNL_RANK || is_too_long(rank, dim)) return NULL;
    int status = stride ? m->f->d.memory_desc_create_with_strides(&md, (int)rank, dim, m->type, stride)
                        : m->f->d.memory_desc_create_with_tag(&md, (int)rank, dim, m->type, RL_DNNL_TAG_ANY);
    if (status != 0) return NULL;
    m->md[m->nmd++] = md;
    return md;
}

/* oneDNN's number of aBcd16b and its kin; the library names it, so that a number that became another tag is not used. */
static int blocked_tag(const rl_dnnl *d, const rl_lay *lay) {
    static const struct { uint8_t rank, block; int tag; const char *name; } rows[] = {
        {4, 8, 102, "aBcd8b"}, {4, 16, 78, "aBcd16b"}, {5, 8, 142, "aBcde8b"}, {5, 16, 121, "aBcde16b"}};
    for (size_t i = 0; i < RL_LEN(rows); i++) {
        const char *name = rows[i].rank == lay->rank && rows[i].block == lay->block ? d->fmt_tag2str(rows[i].tag) : NULL;
        if (name && strcmp(name, rows[i].name) == 0) return rows[i].tag;
    }
    return 0;
}

rl_dnnl_md rl_making_lay(rl_making *m, uint32_t rank, const int64_t *dim, const rl_lay *lay) {
    int64_t stride[RL_LAY_RANK], step = 1;
    rl_dnnl_md md = NULL;
    if (!lay->block) {
        for (uint32_t i = rank; i-- > 0; step *= dim[lay->perm[i]]) stride[lay->perm[i]] = step;
        return rl_making_md(m, rank, dim, stride);
    }
    int tag = blocked_tag(&m->f->d, lay);
    if (!tag || m->nmd == RL_LEN(m->md) || is_too_long(rank, dim) || m->f->d.memory_desc_create_with_tag(&md, (int)rank, dim, m->type, tag) != 0) return NULL;
    m->md[m->nmd++] = md;
    return md;
}

/* A deconvolution that is a convolution's gradient, conv:any+jit..., adds the bias and does post-ops in plain loops; one that is cut into
 * pieces, brgconv_strided, does both once too often for each piece that has no tap at a pixel (3.x, where the weights are larger than the cache). */
bool rl_making_is_ref(const rl_making *m, bool biased) {
    const rl_fused *fused = m->p->bare ? NULL : m->c->step->fused;
    const char *name = NULL, *inner;
    if (m->f->d.primitive_desc_query(m->pd, RL_DNNL_QUERY_IMPL, 0, &name) != 0 || !name) return true;
    bool gradient = strncmp(name, "conv:", 5) == 0;
    if ((gradient || strstr(name, "brgconv_strided")) && (biased || (fused && fused->npost))) return true;
    inner = gradient ? strchr(name, '+') : NULL;
    return strncmp(inner ? inner + 1 : name, "ref", 3) == 0;
}

/* oneDNN's name for an op, with its numbers; 0: it has none. */
static int eltwise_of(const rl_post *o, float *alpha, float *beta) {
    *alpha = o->p, *beta = o->q;
    switch (o->op) {
    case RL_ROW_RELU: *alpha = 0; return RL_DNNL_RELU;
    case RL_ROW_LEAKY_RELU: return RL_DNNL_RELU;
    case RL_ROW_CLIP: return RL_DNNL_CLIP;
    case RL_ROW_SIGMOID: return RL_DNNL_LOGISTIC;
    case RL_ROW_SILU: return RL_DNNL_SWISH;
    case RL_ROW_HARD_SIGMOID: return RL_DNNL_HARD_SIGMOID;
    case RL_ROW_HARD_SWISH: *alpha = 1.0f / 6, *beta = 0.5f; return RL_DNNL_HARD_SWISH;
    case RL_ROW_TANH: return RL_DNNL_TANH;
    case RL_ROW_GELU: return RL_DNNL_GELU_ERF;
    case RL_ROW_GELU_TANH: return RL_DNNL_GELU_TANH;
    case RL_ROW_ELU: return RL_DNNL_ELU;
    case RL_ROW_LINEAR: return RL_DNNL_LINEAR;
    default: return 0;
    }
}

bool rl_making_post(rl_making *m, rl_dnnl_cmd dst) {
    const rl_fused *fused = m->c->step->fused;
    const rl_dnnl *d = &m->f->d;
    rl_dnnl_post post = NULL;
    float alpha, beta;
    start_attr(m); /* those that are there would stay */
    if (!fused || !fused->npost || m->p->bare) return true;
    bool done = d->post_ops_create(&post) == 0;
    for (uint32_t i = 0; i < fused->npost && done; i++) {
        const rl_post *o = &fused->post[i];
        int alg = eltwise_of(o, &alpha, &beta);
        if (rl_row_is_binary(o->op)) done = d->post_ops_append_binary(post, o->op == RL_ROW_ADD ? RL_DNNL_BINARY_ADD : RL_DNNL_BINARY_MUL, dst) == 0;
        else done = alg && d->post_ops_append_eltwise(post, alg, alpha, beta) == 0;
    }
    done = done && d->primitive_attr_set_post_ops(m->attr, post) == 0;
    if (post) d->post_ops_destroy(post);
    return done;
}

static rl_dnnl_primitive reorder_of(rl_making *m, rl_dnnl_cmd from, rl_dnnl_cmd to) {
    rl_dnnl_pd pd = NULL;
    rl_dnnl_primitive p = NULL;
    if (m->f->d.reorder_primitive_desc_create(&pd, from, m->f->engine, to, m->f->engine, NULL) != 0) return NULL;
    m->f->d.primitive_create(&p, pd);
    m->f->d.primitive_desc_destroy(pd);
    return p;
}

static rl_prim_arg *add_arg(rl_making *m, int arg) {
    if (m->p->narg == RL_PRIM_ARGS) return NULL;
    rl_prim_arg *a = &m->p->arg[m->p->narg++];
    *a = (rl_prim_arg){.arg = arg, .at = RL_NONE};
    return a;
}

/* Bytes in the scratch, from the place that is returned. */
static size_t reserve(rl_prim *p, size_t nbyte) {
    size_t at = p->nscratch;
    p->nscratch += (nbyte + ALIGN - 1) / ALIGN * ALIGN;
    return at;
}

bool rl_making_arg(rl_making *m, int arg, uint32_t at, bool output, rl_dnnl_cmd have, rl_dnnl_cmd want) {
    const rl_dnnl *d = &m->f->d;
    rl_prim_arg *a = add_arg(m, arg);
    if (!a || d->memory_create(&a->given, have, m->f->engine, NULL) != 0) return false;
    a->at = at;
    a->output = output;
    a->used = a->given;
    if (d->memory_desc_equal(have, want)) return true;
    a->used = NULL;
    if (d->memory_create(&a->used, want, m->f->engine, NULL) != 0) return false;
    a->place = reserve(m->p, d->memory_desc_get_size(want));
    a->reorder = output ? reorder_of(m, want, have) : reorder_of(m, have, want);
    return a->reorder != NULL;
}

bool rl_making_constant(rl_making *m, int arg, rl_dnnl_cmd have, const void *bytes, rl_dnnl_cmd want) {
    const rl_dnnl *d = &m->f->d;
    rl_prim_arg *a = add_arg(m, arg);
    rl_dnnl_memory from = NULL;
    int64_t nbyte = (int64_t)d->memory_desc_get_size(want);
    if (!a) return false;
    a->packed = rl_tensor_new(m->c->rt, RL_U8, 1, &nbyte);
    m->c->rt->constants += (size_t)nbyte;
    if (d->memory_create(&a->used, want, m->f->engine, a->packed.mem->p) != 0) return false;
    rl_dnnl_primitive p = reorder_of(m, have, want);
    bool done = p && d->memory_create(&from, have, m->f->engine, (void *)(uintptr_t)bytes) == 0;
    done = done && d->primitive_execute(p, m->f->stream, 2, (rl_dnnl_exec_arg[]){{RL_DNNL_ARG_SRC, from}, {RL_DNNL_ARG_DST, a->used}}) == 0;
    if (p) d->primitive_destroy(p);
    if (from) d->memory_destroy(from);
    return done;
}

bool rl_making_primitive(rl_making *m) {
    const rl_dnnl *d = &m->f->d;
    const char *name = NULL;
    rl_dnnl_cmd scratch = d->primitive_desc_query_md(m->pd, RL_DNNL_QUERY_SCRATCHPAD, 0);
    if (!scratch || d->memory_create(&m->p->scratchpad, scratch, m->f->engine, NULL) != 0) return false;
    d->primitive_desc_query(m->pd, RL_DNNL_QUERY_IMPL, 0, &name);
    snprintf(m->p->name, sizeof m->p->name, "%s", name ? name : "oneDNN");
    m->p->pad = reserve(m->p, d->memory_desc_get_size(scratch));
    return d->primitive_create(&m->p->p, m->pd) == 0;
}

/* ---- running one ---- */

static char *scratch_of(rl_call *c, const rl_prim *p) {
    rl_fast *f = c->rt->fast;
    int64_t nbyte = (int64_t)p->nscratch;
    if (!f->scratch.mem || f->scratch.mem->nbyte < p->nscratch) {
        rl_tensor_drop(&f->scratch);
        f->scratch = rl_tensor_new(c->rt, RL_U8, 1, &nbyte);
    }
    return f->scratch.mem->p;
}

static bool reorder(const rl_fast *f, const rl_prim_arg *a, bool back) {
    rl_dnnl_exec_arg arg[2] = {{RL_DNNL_ARG_SRC, back ? a->used : a->given}, {RL_DNNL_ARG_DST, back ? a->given : a->used}};
    return f->d.primitive_execute(a->reorder, f->stream, 2, arg) == 0;
}

rl_status rl_prim_run(rl_call *c, rl_prim *p, void *const *at) {
    const rl_fast *f = c->rt->fast;
    rl_dnnl_exec_arg arg[RL_PRIM_ARGS + 1];
    char *scratch = scratch_of(c, p);
    bool done = true;
    for (uint32_t i = 0; i < p->narg; i++) {
        rl_prim_arg *a = &p->arg[i];
        arg[i] = (rl_dnnl_exec_arg){a->arg, a->used};
        if (a->at != RL_NONE) f->d.memory_set_data_handle(a->given, at[a->at]);
        if (!a->reorder) continue;
        f->d.memory_set_data_handle(a->used, scratch + a->place);
        if (!a->output) done = done && reorder(f, a, false);
    }
    f->d.memory_set_data_handle(p->scratchpad, scratch + p->pad);
    arg[p->narg] = (rl_dnnl_exec_arg){RL_DNNL_ARG_SCRATCHPAD, p->scratchpad};
    done = done && f->d.primitive_execute(p->p, f->stream, (int)p->narg + 1, arg) == 0;
    for (uint32_t i = 0; i < p->narg; i++)
        if (p->arg[i].output && p->arg[i].reorder) done = done && reorder(f, &p->arg[i], true);
    c->step->ran = p->name;
    return done ? RL_OK : rl_call_fail(c, RL_ELIMIT, "oneDNN could not run it");
}
