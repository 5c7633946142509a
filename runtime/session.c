/* Sessions and comparisons of include/relayout.h: a model that is read and prepared once, and run as often as wanted. */
#include <float.h>
#include <inttypes.h>
#include <string.h>

#include "../src/options.h"
#include "contract.h"
#include "exec.h"
#include "run_cmd.h"

struct rl_session {
    rl_ctx *ctx;
    rl_graph *g;
    rl_graph bare;     /* *g before it is prepared, with no memory of its own */
    rl_rt *rt;         /* NULL after a failed run, until the next */
    rl_exec *exec;
    uint32_t threads;
    uint32_t nin, nout;
    rl_array *in, *out; /* as declared */
    rl_tensor *made;    /* [nout] outputs of the last run */
    rl_array *given;    /* [nout] the same for the caller */
    rl_arena items;     /* arrays of the items of those that are sequences */
    rl_buffer *from, *into; /* [nin], [nout] what rl_session_bind was given */
};

/* ---- what the graph declares ---- */

static rl_array declared(rl_graph *g, rl_value v) {
    const rl_valinfo *x = rl_val(g, v);
    rl_array a = {.name = x->name, .dtype = (int32_t)x->dtype, .rank = x->rank == RL_NORANK ? UINT32_MAX : x->rank};
    if (x->rank == RL_NORANK) return a;
    int64_t *dim = rl_new(&g->mem, int64_t, a.rank);
    for (uint32_t i = 0; i < a.rank; i++) dim[i] = rl_dim_known(x->dim[i]) ? x->dim[i] : -1;
    a.dim = dim;
    return a;
}

/* Before types are inferred: what the caller sees is what the file says. */
static void declare(rl_session *s) {
    s->nin = s->g->input.n;
    s->nout = s->g->output.n;
    s->in = rl_new(&s->g->mem, rl_array, s->nin + 1);
    s->out = rl_new(&s->g->mem, rl_array, s->nout + 1);
    s->given = rl_new(&s->g->mem, rl_array, s->nout + 1);
    s->made = rl_new(&s->g->mem, rl_tensor, s->nout + 1);
    rl_arena_init(&s->items, s->ctx);
    s->from = rl_new(&s->g->mem, rl_buffer, s->nin + 1);
    s->into = rl_new(&s->g->mem, rl_buffer, s->nout + 1);
    for (uint32_t i = 0; i < s->nin; i++) s->in[i] = declared(s->g, s->g->input.p[i]);
    for (uint32_t i = 0; i < s->nout; i++) s->out[i] = declared(s->g, s->g->output.p[i]);
}

const rl_array *rl_session_input(const rl_session *s, uint32_t i) {
    return s && i < s->nin ? &s->in[i] : NULL;
}

const rl_array *rl_session_output(const rl_session *s, uint32_t i) {
    return s && i < s->nout ? &s->out[i] : NULL;
}

/* ---- making and ending one ---- */

/* Whatever comes into g's memory, and that of its bodies, comes into new arenas; what the old ones hold is the context's. */
static void set_aside(rl_graph *g) {
    rl_arena *const own[] = {&g->mem, &g->slots, &g->uses, &g->dims};
    for (uint32_t i = 0; i < RL_LEN(own); i++) rl_arena_init(own[i], g->ctx);
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        for (uint32_t k = 0; k < n->nattr; k++)
            if (n->attr[k].graph) set_aside(n->attr[k].graph);
    }
}

static rl_status prepare(rl_session *s) {
    if (RL_PROTECT(s->ctx)) return RL_ENOMEM;
    s->rt = rl_rt_new_for(s->ctx, true, s->threads);
    if (!s->in) {
        declare(s);
        RL_TRY(rl_exec_rewrite(s->rt, s->g));
        rl_ctx_keep(s->ctx);
        set_aside(s->g);
        s->bare = *s->g;
    }
    s->g->val = rl_copy(&s->g->mem, s->bare.val, s->bare.nval * sizeof *s->bare.val); /* a plan adds some */
    s->g->valcap = s->bare.nval;
    return rl_exec_prepare(s->rt, s->g, &s->exec);
}

/* After a failure all goes that the preparation and the run allocated, wherever they were; the next run prepares again. */
static void forget(rl_session *s) {
    rl_rt_free(s->rt);
    s->rt = NULL;
    for (uint32_t i = 0; i < s->nout; i++) s->made[i] = (rl_tensor){0};
    rl_arena_free(&s->items);
    rl_ctx_drop_rest(s->ctx);
    *s->g = s->bare;
    set_aside(s->g);
}

static rl_status set_error(rl_ctx *ctx, rl_status s, rl_result *r) {
    if (s != RL_OK && r) memcpy(r->error, ctx->error, sizeof ctx->error);
    return s;
}

rl_status rl_session_new(const rl_model *m, const rl_options *options, rl_session **out, rl_result *result) {
    if (out) *out = NULL;
    RL_TRY(rl_options_check(options, !m ? "the model is NULL" : !out ? "out is NULL" : NULL, result));
    rl_options o = rl_options_of(options);
    rl_ctx *ctx = rl_options_start(&o, RL_MEMORY_RUN, result);
    if (!ctx) return RL_ENOMEM;
    rl_graph *g = NULL;
    rl_status status = rl_options_read(ctx, &o, m, &g);
    rl_session *s = status == RL_OK ? rl_host_alloc(&ctx->host, sizeof *s) : NULL;
    if (!s) return rl_options_finish(ctx, g, status == RL_OK ? rl_fail(ctx, RL_ENOMEM, "out of memory") : status, result);
    s->ctx = ctx;
    s->g = g;
    s->threads = o.threads;
    status = set_error(ctx, prepare(s), result);
    if (status == RL_OK) *out = s;
    else rl_session_free(s);
    return status;
}

void rl_session_free(rl_session *s) {
    if (!s) return;
    rl_rt_free(s->rt);
    rl_graph_free(s->g);
    rl_ctx *ctx = s->ctx;
    rl_host_free(&ctx->host, s, sizeof *s);
    rl_ctx_free(ctx);
}

/* ---- inputs and outputs ---- */

/* name among n arrays, or n. */
static uint32_t find(const rl_array *a, uint32_t n, const char *name) {
    uint32_t i = 0;
    while (i < n && strcmp(a[i].name, name) != 0) i++;
    return i;
}

static rl_status check_type(const rl_session *s, const rl_array *want, const rl_array *a) {
    if (want->dtype == RL_UNDEF && !rl_elem_bits((rl_dtype)a->dtype))
        return rl_fail(s->ctx, RL_EUSAGE, "input '%.100s': no element type has the number %" PRId32, want->name, a->dtype);
    if (want->dtype != RL_UNDEF && a->dtype != want->dtype)
        return rl_fail(s->ctx, RL_EUSAGE, "input '%.100s': element type %s, and the model wants %s", want->name,
                       rl_dtype_name((rl_dtype)a->dtype), rl_dtype_name((rl_dtype)want->dtype));
    if (a->rank > RL_RANK || (want->rank != UINT32_MAX && a->rank != want->rank))
        return rl_fail(s->ctx, RL_EUSAGE, "input '%.100s': rank %" PRIu32 ", and the model wants %" PRIu32, want->name, a->rank,
                       want->rank);
    return a->rank && !a->dim ? rl_fail(s->ctx, RL_EUSAGE, "input '%.100s': its dims are NULL", want->name) : RL_OK;
}

static rl_status check_array(const rl_session *s, const rl_array *want, const rl_array *a) {
    RL_TRY(check_type(s, want, a));
    int64_t n = 1;
    for (uint32_t i = 0; i < a->rank; i++) {
        if (a->dim[i] < 0)
            return rl_fail(s->ctx, RL_EUSAGE, "input '%.100s': dim %" PRIu32 " is %" PRId64 ", which is no size", want->name, i, a->dim[i]);
        if (want->rank != UINT32_MAX && want->dim[i] >= 0 && a->dim[i] != want->dim[i])
            return rl_fail(s->ctx, RL_EUSAGE, "input '%.100s': dim %" PRIu32 " is %" PRId64 ", and the model wants %" PRId64, want->name, i,
                           a->dim[i], want->dim[i]);
        if (__builtin_mul_overflow(n, RL_MAX(a->dim[i], 1), &n)) return rl_fail(s->ctx, RL_EUSAGE, "input '%.100s': too many elements", want->name);
    }
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->dim[i] == 0) n = 0;
    if (n > INT64_MAX / 128 || rl_bytes_of((rl_dtype)a->dtype, n) != a->nbyte)
        return rl_fail(s->ctx, RL_EUSAGE, "input '%.100s': %zu bytes for %" PRId64 " elements of %s", want->name, a->nbyte, n,
                       rl_dtype_name((rl_dtype)a->dtype));
    return RL_OK;
}

/* The same of an array with its bytes; strings are pointers, of which each is there. */
static rl_status check_bytes(const rl_session *s, const rl_array *want, const rl_array *a) {
    RL_TRY(check_array(s, want, a));
    if (a->nbyte && !a->data) return rl_fail(s->ctx, RL_EUSAGE, "input '%.100s': its data is NULL", want->name);
    for (size_t i = 0; a->dtype == RL_STRING && i < a->nbyte / sizeof(char *); i++)
        if (!((const char *const *)a->data)[i]) return rl_fail(s->ctx, RL_EUSAGE, "input '%.100s': string %zu is NULL", want->name, i);
    return RL_OK;
}

static rl_status check_sequence(const rl_session *s, const rl_array *want, const rl_array *a) {
    const rl_array *item = a->data, any = {.name = want->name, .rank = UINT32_MAX};
    if (want->dtype != RL_UNDEF) return rl_fail(s->ctx, RL_EUSAGE, "input '%.100s': a sequence, and the model wants a tensor", want->name);
    if (a->rank != 1 || !a->dim || a->dim[0] < 0 || a->nbyte / sizeof *item != (size_t)a->dim[0] || (a->dim[0] && !item))
        return rl_fail(s->ctx, RL_EUSAGE, "input '%.100s': a sequence of %zu bytes, of %zu each", want->name, a->nbyte, sizeof *item);
    for (int64_t i = 0; i < a->dim[0]; i++) RL_TRY(check_bytes(s, &any, &item[i]));
    return RL_OK;
}

static rl_status check_input(const rl_session *s, const rl_array *want, const rl_array *a) {
    if (a->dtype == RL_ARRAY_SEQUENCE) return check_sequence(s, want, a);
    if (a->dtype != RL_ARRAY_NONE) return check_bytes(s, want, a);
    return want->dtype == RL_UNDEF ? RL_OK : rl_fail(s->ctx, RL_EUSAGE, "input '%.100s': nothing, and the model wants a tensor", want->name);
}

/* Before anything is run, so that the session stays as it is where the caller is wrong. (*at)[k]: which input in[k] is. */
static rl_status check_inputs(rl_session *s, const rl_array *in, uint32_t nin, uint32_t **at) {
    if (RL_PROTECT(s->ctx)) return RL_ENOMEM;
    rl_arena_free(&s->items);
    bool *given = rl_new(&s->items, bool, s->nin + 1);
    *at = rl_new(&s->items, uint32_t, nin + (size_t)1);
    for (uint32_t i = 0; i < s->nin; i++) given[i] = s->from[i].p != NULL;
    for (uint32_t k = 0; k < nin; k++) {
        if (!in[k].name) return rl_fail(s->ctx, RL_EUSAGE, "the name of input %" PRIu32 " is NULL", k);
        uint32_t i = (*at)[k] = find(s->in, s->nin, in[k].name);
        if (i == s->nin) return rl_fail(s->ctx, RL_EUSAGE, "no input is called '%.100s'", in[k].name);
        if (given[i]) return rl_fail(s->ctx, RL_EUSAGE, "input '%.100s' is given twice", in[k].name);
        given[i] = true;
        RL_TRY(check_input(s, &s->in[i], &in[k]));
    }
    for (uint32_t i = 0; i < s->nin; i++)
        if (!given[i] && !rl_val(s->g, s->g->input.p[i])->raw.p)
            return rl_fail(s->ctx, RL_EUSAGE, "input '%.100s' is not given", s->in[i].name);
    return RL_OK;
}

/* The caller's bytes are used where they are; strings are interned. */
static rl_tensor take_tensor(rl_session *s, const rl_array *a) {
    if (a->dtype != RL_STRING) return rl_tensor_borrow(s->rt, (rl_dtype)a->dtype, a->rank, a->dim, a->data, a->nbyte);
    rl_tensor t = rl_tensor_new(s->rt, RL_STRING, a->rank, a->dim);
    for (int64_t i = 0; i < rl_numel(&t); i++) ((rl_str *)t.mem->p)[i] = rl_internz(s->ctx, ((const char *const *)a->data)[i]);
    return t;
}

static rl_tensor take_input(rl_session *s, const rl_array *a) {
    if (a->dtype == RL_ARRAY_NONE) return (rl_tensor){0};
    if (a->dtype != RL_ARRAY_SEQUENCE) return take_tensor(s, a);
    int64_t n = a->dim[0];
    rl_tensor *t = rl_new(&s->items, rl_tensor, n + 1);
    for (int64_t i = 0; i < n; i++) t[i] = take_tensor(s, (const rl_array *)a->data + i);
    return rl_sequence_new(s->rt, n ? t[0].dtype : RL_UNDEF, t, n);
}

static rl_array give_tensor(const char *name, const rl_tensor *t) {
    return (rl_array){name, (int32_t)t->dtype, t->rank, t->dim, rl_data(t), rl_bytes_of(t->dtype, rl_numel(t))};
}

/* A sequence of dense tensors in place of *t, and their arrays. */
static rl_array give_sequence(rl_session *s, const char *name, rl_tensor *t) {
    int64_t n = t->dim[0];
    rl_tensor *item = rl_new(&s->items, rl_tensor, n + 1);
    rl_array *a = rl_new(&s->items, rl_array, n + 1);
    for (int64_t i = 0; i < n; i++) item[i] = rl_contiguous(s->rt, rl_item(t, i));
    rl_tensor dense = rl_sequence_new(s->rt, t->dtype, item, n);
    rl_tensor_drop(t);
    *t = dense;
    for (int64_t i = 0; i < n; i++) a[i] = give_tensor(NULL, rl_item(t, i));
    return (rl_array){name, RL_ARRAY_SEQUENCE, 1, t->dim, a, (size_t)n * sizeof *a};
}

static void give_outputs(rl_session *s) {
    for (uint32_t i = 0; i < s->nout; i++) {
        rl_tensor *t = &s->made[i];
        const char *name = s->out[i].name;
        if (t->kind == RL_ABSENT) s->given[i] = (rl_array){.name = name, .dtype = RL_ARRAY_NONE};
        if (t->kind == RL_SEQUENCE) s->given[i] = give_sequence(s, name, t);
        if (t->kind != RL_TENSOR) continue;
        rl_deliver(s->rt, t);
        s->given[i] = give_tensor(name, t);
    }
}

/* ---- buffers of the caller's ---- */

static rl_status read_buffers(rl_session *s, rl_tensor *to) {
    for (uint32_t i = 0; i < s->nin; i++)
        if (s->from[i].p) RL_TRY(rl_buffer_read(s->rt, &s->from[i], &to[i]));
    return RL_OK;
}

static void place_outputs(rl_session *s, rl_arena *tmp) {
    s->exec->place = rl_new(tmp, rl_tensor, s->g->nval);
    for (uint32_t i = 0; i < s->nout; i++) {
        rl_tensor *at = &s->exec->place[s->g->output.p[i].i];
        if (at->kind == RL_ABSENT) *at = rl_buffer_place(s->rt, &s->into[i]);
    }
}

/* What is not there yet is moved there; the caller sees its own buffer. */
static rl_status write_buffers(rl_session *s) {
    for (uint32_t i = 0; i < s->nout; i++) {
        const rl_buffer *b = &s->into[i];
        rl_tensor *at = &s->exec->place[s->g->output.p[i].i];
        if (!b->p) continue;
        RL_TRY(rl_buffer_write(s->rt, s->out[i].name, b, &s->made[i]));
        if (at->kind != RL_ABSENT) rl_tensor_drop(at);
    }
    s->exec->place = NULL;
    return RL_OK;
}

static void show_buffers(rl_session *s) {
    for (uint32_t i = 0; i < s->nout; i++)
        if (s->into[i].p) s->given[i].data = s->into[i].p, s->given[i].nbyte = s->into[i].nbyte;
}

static rl_status bind(rl_session *s, const char *name, const rl_desc *layout, void *data, size_t nbyte) {
    uint32_t i = find(s->in, s->nin, name), o = find(s->out, s->nout, name);
    bool output = i == s->nin;
    if (output && o == s->nout) return rl_fail(s->ctx, RL_EUSAGE, "no input or output is called '%.100s'", name);
    rl_buffer *b = output ? &s->into[o] : &s->from[i];
    if (!layout) {
        *b = (rl_buffer){0};
        return RL_OK;
    }
    rl_buffer now = {*layout, data, nbyte};
    RL_TRY(rl_buffer_check(s->ctx, name, &now, output));
    if (!data) return rl_fail(s->ctx, RL_EUSAGE, "'%.100s': no buffer", name);
    rl_array a = {name, layout->dtype, layout->rank, layout->dim, NULL, rl_bytes_of((rl_dtype)layout->dtype, rl_desc_elements(layout))};
    if (!output) RL_TRY(check_array(s, &s->in[i], &a));
    *b = now;
    return RL_OK;
}

rl_status rl_session_bind(rl_session *s, const char *name, const rl_desc *layout, void *data, size_t nbyte, rl_result *result) {
    const char *wrong = !s ? "the session is NULL" : !name ? "the name is NULL" : NULL;
    if (wrong) return rl_options_check(NULL, wrong, result);
    if (result) memset(result, 0, sizeof *result);
    return set_error(s->ctx, bind(s, name, layout, data, nbyte), result);
}

/* ---- a run ---- */

static rl_status run_checked(rl_session *s, const rl_array *in, uint32_t nin, const uint32_t *at, rl_arena *tmp) {
    rl_tensor *to = rl_new(tmp, rl_tensor, s->nin + 1);
    for (uint32_t i = 0; i < s->nout; i++) rl_tensor_drop(&s->made[i]);
    RL_TRY(read_buffers(s, to));
    for (uint32_t k = 0; k < nin; k++) to[at[k]] = take_input(s, &in[k]);
    place_outputs(s, tmp);
    RL_TRY(rl_exec_run(s->exec, to, s->made));
    RL_TRY(write_buffers(s));
    give_outputs(s);
    show_buffers(s);
    for (uint32_t i = 0; i < s->nin; i++) rl_tensor_drop(&to[i]);
    return RL_OK;
}

static rl_status run(rl_session *s, const rl_array *in, uint32_t nin, const uint32_t *at) {
    rl_arena tmp;
    if (RL_PROTECT(s->ctx)) return RL_ENOMEM;
    rl_arena_init(&tmp, s->ctx);
    rl_status status = run_checked(s, in, nin, at, &tmp);
    rl_arena_free(&tmp);
    return status;
}

rl_status rl_session_run(rl_session *s, const rl_array *in, uint32_t nin, const rl_array **out, rl_result *result) {
    const char *wrong = !s ? "the session is NULL" : !in && nin ? "the inputs are NULL" : !out ? "out is NULL" : NULL;
    uint32_t *at = NULL;
    if (out) *out = NULL;
    if (wrong) return rl_options_check(NULL, wrong, result);
    s->ctx->stopped = false;
    if (result) memset(result, 0, sizeof *result);
    rl_status status = check_inputs(s, in, nin, &at);
    if (status != RL_OK) return set_error(s->ctx, status, result);
    if (!s->rt) status = prepare(s);
    if (status == RL_OK) status = run(s, in, nin, at);
    if (status == RL_OK) *out = s->given;
    else forget(s);
    return set_error(s->ctx, status, result);
}

/* ---- comparing two models ---- */

static rl_status verify(rl_ctx *ctx, rl_graph *a, rl_graph *b, const rl_verify_options *how, uint32_t threads) {
    rl_arena tmp;
    const rl_runopt o = {.threads = threads, .runs = how->runs, .seed = how->seed, .rtol = how->rtol, .atol = how->atol};
    rl_arena_init(&tmp, ctx);
    rl_text said = {.mem = &tmp};
    rl_status s = rl_verify_models(a, b, &o, &said);
    rl_arena_free(&tmp);
    return s;
}

/* With nan no two numbers would differ, and with infinity only nan. */
static const char *wrong_tolerance(const rl_verify_options *h) {
    if (!(h->rtol >= 0 && h->rtol <= DBL_MAX)) return "rl_verify_options.rtol is no tolerance: a finite number above 0, or 0 for the default";
    if (!(h->atol >= 0 && h->atol <= DBL_MAX)) return "rl_verify_options.atol is no tolerance: a finite number above 0, or 0 for the default";
    if (h->runs > RL_MOSTCOUNT) return "rl_verify_options.runs is over 1000000, or was below 0";
    return NULL;
}

rl_status rl_model_verify(const rl_model *a, const rl_model *b, const rl_verify_options *how, const rl_options *options, rl_result *result) {
    const char *wrong = !a || !b ? "a model is NULL" : how && !how->struct_size ? "rl_verify_options.struct_size is 0: set it to its sizeof" : NULL;
    rl_verify_options h = {0};
    rl_graph *g[2] = {NULL, NULL};
    if (how) memcpy(&h, how, RL_MIN(how->struct_size, sizeof h));
    RL_TRY(rl_options_check(options, wrong ? wrong : wrong_tolerance(&h), result));
    rl_options o = rl_options_of(options);
    if (h.rtol == 0) h.rtol = 1e-4;
    if (h.atol == 0) h.atol = -1;
    rl_ctx *ctx = rl_options_start(&o, RL_MEMORY_RUN, result);
    if (!ctx) return RL_ENOMEM;
    rl_status s = rl_options_read(ctx, &o, a, &g[0]);
    if (s == RL_OK) s = rl_options_read_second(ctx, &o, b, &g[1]);
    if (s == RL_OK) s = verify(ctx, g[0], g[1], &h, o.threads);
    if (g[1]) rl_graph_free(g[1]);
    return rl_options_finish(ctx, g[0], s, result);
}
