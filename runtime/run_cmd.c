/* The commands run and verify: see run_cmd.h. */
#include "run_cmd.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../src/fix.h"
#include "../src/onnx.h"
#include "device.h"
#include "kernels.h"
#include "sizes.h"
#include "values.h"

/* ---- inputs ---- */

static void put_type(rl_dtype type, uint32_t rank, const rl_dim *dim, const int64_t *size, const rl_ctx *ctx, rl_text *t) {
    rl_put(t, "%s", type ? rl_dtype_name(type) : "of any type");
    if (rank == RL_NORANK) return;
    for (uint32_t i = 0; i < rank; i++) {
        rl_put(t, i ? "," : "[");
        if (size) rl_put(t, "%lld", (long long)size[i]);
        else rl_dim_print(t, ctx, dim[i]);
    }
    rl_put(t, rank ? "]" : "[]");
}

/* What a file holds is what the graph declares: an op that stumbles over it says nothing of the file. */
static rl_status check_input(rl_graph *g, rl_value v, const char *path, const rl_tensor *t) {
    const rl_valinfo *x = rl_val(g, v);
    if (t->kind != RL_TENSOR) return RL_OK;
    bool fits = (x->dtype == RL_UNDEF || t->dtype == x->dtype) && (x->rank == RL_NORANK || t->rank == x->rank);
    for (uint32_t i = 0; fits && x->rank != RL_NORANK && i < x->rank; i++) fits = !rl_dim_known(x->dim[i]) || x->dim[i] == t->dim[i];
    if (fits) return RL_OK;
    rl_text is = {.mem = &g->mem}, wanted = is;
    put_type(t->dtype, t->rank, NULL, t->dim, g->ctx, &is);
    put_type(x->dtype, x->rank, x->dim, NULL, g->ctx, &wanted);
    return rl_fail(g->ctx, RL_EUSAGE, "input '%.100s': %.300s has %.200s, and the model wants %.200s", x->name, path, is.p, wanted.p);
}

static rl_status read_inputs(rl_rt *rt, rl_graph *g, const rl_runopt *o, rl_tensor *in, bool *given) {
    for (uint32_t k = 0; k < o->ninput; k++) {
        const char *item = o->input[k], *eq = strrchr(item, '=');
        if (!eq) return rl_fail(g->ctx, RL_EUSAGE, "--input '%s' is not NAME=FILE", item);
        rl_value v = rl_graph_input(g, rl_intern(g->ctx, item, (size_t)(eq - item)));
        if (!rl_has(v)) return rl_fix_no_input(g, item, (int)(eq - item));
        for (uint32_t i = 0; i < g->input.n; i++) {
            if (!rl_same(g->input.p[i], v)) continue;
            if (given[i]) return rl_fail(g->ctx, RL_EUSAGE, "input '%s' is given twice", rl_val(g, v)->name);
            RL_TRY(rl_value_read(rt, g, v, eq + 1, &in[i]));
            RL_TRY(check_input(g, v, eq + 1, &in[i]));
            given[i] = true;
        }
    }
    return RL_OK;
}

/* The symbols that a file's tensor has numbers for. */
static void take_sizes(const rl_graph *g, const rl_valinfo *v, const rl_tensor *t, rl_sizes *s) {
    for (uint32_t i = 0; t->kind == RL_TENSOR && v->rank == t->rank && i < v->rank; i++) {
        rl_str name = rl_dim_name(g->ctx, v->dim[i]);
        for (uint32_t k = 0; name && k < s->n; k++)
            if (s->name[k] == name && t->dim[i] < RL_NONE) rl_sizes_set(s, k, (uint32_t)t->dim[i]), s->fixed[k] = true;
    }
}

/* Of inputs that were not given. */
static void note_sizes(const rl_graph *g, const bool *given, const rl_tensor *in, char *to) {
    int n = 0;
    for (uint32_t i = 0; i < g->input.n; i++) {
        const rl_valinfo *v = rl_val(g, g->input.p[i]);
        bool open = false;
        for (uint32_t k = 0; v->rank != RL_NORANK && k < v->rank; k++) open |= !rl_dim_known(v->dim[k]);
        if (!open || in[i].kind != RL_TENSOR || given[i]) continue;
        if (n < RL_CHOSEN) n += snprintf(to + n, (size_t)(RL_CHOSEN - n), " --input-shape %.100s=", v->name);
        for (uint32_t k = 0; k < v->rank && n < RL_CHOSEN; k++)
            n += snprintf(to + n, (size_t)(RL_CHOSEN - n), "%s%lld", k ? "," : "", (long long)in[i].dim[k]);
    }
}

/* Inputs with a default keep it; the others get seeded random values. */
rl_status rl_run_inputs(rl_rt *rt, rl_graph *g, const rl_runopt *o, uint64_t seed, rl_tensor *in) {
    bool *given = rl_new(&g->mem, bool, g->input.n);
    RL_TRY(read_inputs(rt, g, o, in, given));
    rl_sizes size = rl_sizes_of(g, &g->mem);
    for (uint32_t i = 0; i < g->input.n; i++)
        if (given[i]) take_sizes(g, rl_val(g, g->input.p[i]), &in[i], &size);
    rl_sizes_fit(g, &size);
    for (uint32_t i = 0; i < g->input.n; i++)
        if (!given[i] && !rl_val(g, g->input.p[i])->raw.p) RL_TRY(rl_value_random(rt, g, g->input.p[i], &size.value, seed, &in[i]));
    if (o->chosen) note_sizes(g, given, in, o->chosen);
    return RL_OK;
}

/* The library has the CPU only: the program's backends.c knows the others. */
static rl_status make_rt(rl_ctx *ctx, const rl_runopt *o, bool fast, rl_rt **out) {
    *out = NULL;
    if (o->device && !o->find) return rl_fail(ctx, RL_ELIMIT, "no device '%.40s' here", o->device);
    const rl_backend *b = o->device ? o->find(o->device) : &rl_backend_cpu;
    if (!b) return rl_fail(ctx, RL_ELIMIT, "this program is built without the device '%.40s'", o->device);
    *out = b == &rl_backend_cpu ? rl_rt_new_for(ctx, fast, o->threads) : rl_rt_new(ctx, b, o->threads);
    (*out)->native = o->plan;
    (*out)->no_plan = o->no_plan;
    if (o->plan.p && !(*out)->fast && !o->device) rl_log(ctx, RL_LOG_WARNING, "the plan is left out: it is for oneDNN's kernels");
    return RL_OK;
}

/* ---- run ---- */

typedef struct { rl_rt *rt; const char *dir; } dump;

static rl_status dump_value(void *user, const rl_graph *g, rl_value v, const rl_tensor *t) {
    const dump *d = user;
    rl_str name = rl_val(g, v)->name;
    return name ? rl_value_write(d->rt, d->dir, name, t) : RL_OK;
}

static void describe(const char *name, const rl_tensor *t, rl_text *out) {
    rl_put_name(out, name);
    rl_put(out, " ");
    if (t->kind == RL_ABSENT) rl_put(out, "none");
    if (t->kind == RL_SEQUENCE) rl_put(out, "sequence of %lld", (long long)t->dim[0]);
    if (t->kind == RL_TENSOR) {
        rl_put(out, "%s[", rl_dtype_name(t->dtype));
        for (uint32_t i = 0; i < t->rank; i++) rl_put(out, "%s%lld", i ? "," : "", (long long)t->dim[i]);
        rl_put(out, "]");
    }
    rl_put(out, "\n");
}

/* Files are written after all that takes memory. */
static rl_status write_outputs(rl_rt *rt, rl_graph *g, const rl_runopt *o, const rl_tensor *t, rl_text *out) {
    rl_text *path = rl_new(&g->mem, rl_text, g->output.n + 1), *bytes = rl_new(&g->mem, rl_text, g->output.n + 1);
    for (uint32_t i = 0; i < g->output.n; i++) {
        rl_str name = rl_val(g, g->output.p[i])->name;
        describe(name, &t[i], out);
        path[i].mem = bytes[i].mem = &g->mem;
        if (o->output_dir) rl_value_print(rt, o->output_dir, name, &t[i], &path[i], &bytes[i]);
    }
    rl_put(out, "peak memory of values: %zu bytes, of which planned: %zu; at least: %zu\n", rt->peak - rt->constants, rt->arena, rt->least);
    for (uint32_t i = 0; o->output_dir && i < g->output.n; i++)
        RL_TRY(rl_file_write(g->ctx, path[i].p, bytes[i].p ? bytes[i].p : "", bytes[i].n));
    return RL_OK;
}

static rl_status run_with(rl_rt *rt, rl_graph *g, const rl_runopt *o, void *out) {
    rl_exec *x;
    dump d = {rt, o->output_dir};
    rl_tensor *in = rl_new(&g->mem, rl_tensor, g->input.n + 1), *made = rl_new(&g->mem, rl_tensor, g->output.n + 1);
    if (o->dump_all) rt->watch = dump_value, rt->user = &d;
    rt->progress = o->progress, rt->progress_user = o->user;
    RL_TRY(rl_exec_new(rt, g, &x));
    RL_TRY(rl_run_inputs(rt, g, o, o->seed, in));
    if (o->output_dir && mkdir(o->output_dir, 0777) != 0 && errno != EEXIST)
        return rl_fail(g->ctx, RL_EIO, "%s: %s", o->output_dir, strerror(errno));
    RL_TRY(rl_exec_run(x, in, made));
    rl_device_report(x, out);
    return write_outputs(rt, g, o, made, out);
}

rl_status rl_with_rt(rl_graph *g, const rl_runopt *o, bool fast, rl_with_rt_fn *fn, void *arg) {
    rl_rt *volatile rt = NULL;
    if (RL_PROTECT(g->ctx)) {
        rl_rt_free(rt);
        return RL_ENOMEM;
    }
    rl_rt *made;
    rl_status s = make_rt(g->ctx, o, fast && !o->reference, &made);
    rt = made;
    if (s == RL_OK) s = fn(rt, g, o, arg);
    rl_rt_free(rt);
    return s;
}

rl_status rl_run_model(rl_graph *g, const rl_runopt *o, rl_text *out) {
    return rl_with_rt(g, o, true, run_with, out);
}

/* ---- verify ---- */

#define DEFAULT_ATOL 1e-6

static void put_index(rl_text *t, const rl_tensor *x, int64_t k) {
    int64_t index[RL_RANK];
    for (uint32_t i = x->rank; i-- > 0; k /= x->dim[i]) index[i] = k % x->dim[i];
    for (uint32_t i = 0; i < x->rank; i++) rl_put(t, "%s%lld", i ? "," : "", (long long)index[i]);
}

/* The first element that differs, or -1; dense numbers as doubles. */
static int64_t first_difference(const double *a, const double *b, int64_t n, double rtol, double atol) {
    for (int64_t i = 0; i < n; i++) {
        if (a[i] == b[i] || (isnan(a[i]) && isnan(b[i]))) continue;
        if (isnan(a[i]) || isnan(b[i]) || isinf(a[i]) || isinf(b[i]) || fabs(a[i] - b[i]) > atol + rtol * fabs(a[i])) return i;
    }
    return -1;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of the numbers' magnitudes but zeros; 0 where there are none. */
static double typical_size(rl_rt *rt, const rl_tensor *x) {
    rl_tensor sorted = rl_tensor_new(rt, RL_F64, x->rank, x->dim);
    double *s = rl_data(&sorted);
    size_t n = 0;
    for (int64_t i = 0; i < rl_numel(x); i++) {
        s[n] = fabs(((const double *)rl_data(x))[i]);
        n += s[n] > 0; /* no NaN */
    }
    qsort(s, n, sizeof *s, compare_doubles);
    double middle = n ? s[n / 2] : 0;
    rl_tensor_drop(&sorted);
    return middle;
}

static rl_status compare_strings(rl_rt *rt, const char *name, const rl_tensor *a, const rl_tensor *b) {
    rl_tensor x = rl_contiguous(rt, a), y = rl_contiguous(rt, b);
    for (int64_t i = 0; i < rl_numel(&x); i++) {
        rl_str s = ((rl_str *)rl_data(&x))[i], t = ((rl_str *)rl_data(&y))[i];
        if (s != t) return rl_fail(rt->ctx, RL_EDIFFER, "output '%.100s': element %lld is '%.40s' and '%.40s'", name, (long long)i, s, t);
    }
    rl_tensor_drop(&x);
    rl_tensor_drop(&y);
    return RL_OK;
}

static double unsigned_nan(double x) {
    return isnan(x) ? (double)NAN : x;
}

static rl_status compare_numbers(rl_rt *rt, const char *name, const rl_tensor *a, const rl_tensor *b, const rl_runopt *o) {
    rl_tensor x = rl_tensor_new(rt, RL_F64, a->rank, a->dim), y = rl_tensor_new(rt, RL_F64, a->rank, a->dim);
    rl_convert(rt, &x, a, true);
    rl_convert(rt, &y, b, true);
    int64_t n = rl_numel(&x), k = first_difference(rl_data(&x), rl_data(&y), n, o->rtol, o->atol < 0 ? DEFAULT_ATOL : o->atol);
    /* What sums in another order differ by hangs on their terms, not on what these come to: near zero it is as large as elsewhere. */
    if (k >= 0 && o->atol < 0)
        k = first_difference(rl_data(&x), rl_data(&y), n, o->rtol, fmax(DEFAULT_ATOL, o->rtol * typical_size(rt, &x)));
    if (k >= 0) {
        rl_text at = {.mem = &rt->ctx->mem};
        put_index(&at, &x, k);
        return rl_fail(rt->ctx, RL_EDIFFER, "output '%.100s': element [%s] is %.9g and %.9g", name, at.n ? at.p : "",
                       unsigned_nan(((double *)rl_data(&x))[k]), unsigned_nan(((double *)rl_data(&y))[k]));
    }
    rl_tensor_drop(&x);
    rl_tensor_drop(&y);
    return RL_OK;
}

static rl_status compare(rl_rt *rt, const char *name, const rl_tensor *a, const rl_tensor *b, const rl_runopt *o) {
    if (a->kind != b->kind || a->dtype != b->dtype || (a->kind != RL_ABSENT && !rl_same_dims(a, b)))
        return rl_fail(rt->ctx, RL_EDIFFER, "output '%.100s': another type or shape", name);
    if (a->kind == RL_ABSENT) return RL_OK;
    for (int64_t i = 0; a->kind == RL_SEQUENCE && i < a->dim[0]; i++) RL_TRY(compare(rt, name, rl_item(a, i), rl_item(b, i), o));
    if (a->kind == RL_SEQUENCE) return RL_OK;
    return a->dtype == RL_STRING ? compare_strings(rt, name, a, b) : compare_numbers(rt, name, a, b, o);
}

/* Inputs of b are those of a by name. */
static rl_status same_inputs(const rl_graph *a, const rl_graph *b, const rl_tensor *in, rl_tensor *to) {
    for (uint32_t i = 0; i < b->input.n; i++) {
        rl_str name = rl_val(b, b->input.p[i])->name;
        rl_value v = rl_graph_input(a, name);
        for (uint32_t k = 0; rl_has(v) && k < a->input.n; k++)
            if (rl_same(a->input.p[k], v)) to[i] = in[k];
        if (!rl_has(v)) return rl_fail(a->ctx, RL_EDIFFER, "input '%.100s': only one model has it", name);
    }
    return RL_OK;
}

typedef struct { rl_rt *rt; rl_graph *const *g; rl_exec *x[2]; const rl_runopt *o; rl_verify_at *at; rl_text *out; bool done; } comparison;

static rl_status verify_once(const comparison *c, uint64_t seed, rl_corners corners) {
    rl_rt *rt = c->rt;
    rl_graph *const *g = c->g;
    rl_tensor *in = rl_new(&g[0]->mem, rl_tensor, g[0]->input.n + 1), *in2 = rl_new(&g[0]->mem, rl_tensor, g[1]->input.n + 1);
    rl_tensor *out[2];
    *c->at = RL_AT_FIRST;
    RL_TRY(rl_run_inputs(rt, g[0], c->o, seed, in));
    for (uint32_t i = 0; i < g[0]->input.n; i++) rl_value_corners(rt, corners, seed + i, &in[i]);
    for (uint32_t i = 0; i < 2; i++) {
        *c->at = i ? RL_AT_SECOND : RL_AT_FIRST;
        if (i) RL_TRY(same_inputs(g[0], g[1], in, in2));
        out[i] = rl_new(&g[0]->mem, rl_tensor, g[i]->output.n + 1);
        RL_TRY(rl_exec_run(c->x[i], i ? in2 : in, out[i]));
    }
    *c->at = RL_AT_OUTPUTS;
    for (uint32_t i = 0; i < g[0]->output.n; i++) RL_TRY(compare(rt, rl_val(g[0], g[0]->output.p[i])->name, &out[0][i], &out[1][i], c->o));
    for (uint32_t i = 0; i < g[0]->output.n; i++) rl_tensor_drop(&out[0][i]), rl_tensor_drop(&out[1][i]);
    for (uint32_t i = 0; i < g[0]->input.n; i++) rl_tensor_drop(&in[i]);
    return RL_OK;
}

static rl_status verify_runs(comparison *c) {
    const rl_runopt *o = c->o;
    uint32_t runs = RL_MAX(o->runs, 1u), more = o->corners ? 2 : 0;
    *c->at = RL_AT_OUTPUTS;
    if (c->g[0]->output.n != c->g[1]->output.n) return rl_fail(c->rt->ctx, RL_EDIFFER, "%u and %u outputs", c->g[0]->output.n, c->g[1]->output.n);
    for (uint32_t i = 0; i < 2; i++) {
        *c->at = i ? RL_AT_SECOND : RL_AT_FIRST;
        RL_TRY(rl_exec_new(c->rt, c->g[i], &c->x[i]));
    }
    uint32_t k = 0;
    rl_status s = RL_OK;
    for (; k < runs + more && s == RL_OK; k += s == RL_OK) s = verify_once(c, o->seed + k, k < runs ? RL_NOCORNER : k == runs ? RL_SMALL : RL_SPECIAL);
    bool stops = s != RL_OK && k >= runs && *c->at == RL_AT_FIRST; /* sizes made of nan, say: that is the model's affair */
    if (s != RL_OK && !stops) return s;
    for (uint32_t i = 0; i < 2; i++) rl_device_report(c->x[i], c->out);
    rl_put(c->out, "same outputs in %u run%s%s\n", k, rl_plural(k), stops ? "; with corner values the original stops" : "");
    return RL_OK;
}

static rl_status verify_with(rl_rt *rt, rl_graph *g, const rl_runopt *o, void *arg) {
    comparison *c = arg;
    (void)g; /* c has both */
    c->rt = rt, c->o = o;
    rl_fix_like(c->g[0], c->g[1]);
    rl_fix_like(c->g[1], c->g[0]);
    rt->progress = o->progress, rt->progress_user = o->user;
    rl_status s = verify_runs(c);
    c->done = true;
    return s;
}

rl_status rl_verify_models(rl_graph *a, rl_graph *b, const rl_runopt *o, rl_text *out) {
    rl_verify_at at;
    return rl_verify_models_at(a, b, o, out, &at);
}

rl_status rl_verify_models_at(rl_graph *a, rl_graph *b, const rl_runopt *o, rl_text *out, rl_verify_at *at) {
    comparison c = {.g = (rl_graph *const[]){a, b}, .at = at, .out = out};
    rl_status s = rl_with_rt(a, o, false, verify_with, &c);
    if (!c.done) *at = RL_AT_MEMORY;
    return s;
}
