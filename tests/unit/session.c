/* Contexts, reports and sessions as users have them: the two shared objects and include/relayout.h, nothing else.
 * session MODEL OUT: OUT is written. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../include/relayout.h"

static int nfail;
static void check(int ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "failed: %s\n", what);
    nfail++;
}

/* What the callbacks saw, and when they are to say no. */
typedef struct {
    size_t live, nalloc, fail_at; /* fail_at: the allocation that fails; 0: none */
    unsigned asked, stop_at, nstep, nlog, nread, nwrite;
} host;

static void *allocate(void *user, size_t n) {
    host *h = user;
    if (++h->nalloc == h->fail_at) return NULL;
    size_t *p = malloc(n + 16);
    if (!p) return NULL;
    h->live += n;
    *p = n;
    memset((char *)p + 16, 0xa5, n);
    return (char *)p + 16;
}

static void release(void *user, void *p, size_t n) {
    host *h = user;
    check(*(size_t *)(void *)((char *)p - 16) == n, "release is told the size that allocate was");
    h->live -= n;
    free((char *)p - 16);
}

static void log_line(void *user, rl_log_level level, const char *text) {
    host *h = user;
    h->nlog += level == RL_LOG_DEBUG && strchr(text, '\n') == NULL;
}

static void progress(void *user, const char *step) {
    host *h = user;
    h->nstep++;
    h->nread += strcmp(step, "read") == 0;
    h->nwrite += strcmp(step, "write") == 0;
}

static int stop(void *user) {
    host *h = user;
    return ++h->asked == h->stop_at;
}

static rl_context context_of(host *h) {
    return (rl_context){.struct_size = sizeof(rl_context), .user = h, .allocate = allocate, .release = release, .log = log_line,
                        .progress = progress, .stop = stop};
}

static rl_status optimize(const char *in, const char *out, host *h, rl_result *r) {
    rl_context c = context_of(h);
    rl_options o = {.struct_size = sizeof o, .target = "onnx", .context = &c};
    return rl_optimize_file(in, out, &o, r);
}

static int exists(const char *path) {
    FILE *f = fopen(path, "rb");
    if (f) fclose(f);
    return f != NULL;
}

static void callbacks(const char *in, const char *out) {
    rl_result r;
    host h = {0};
    check(optimize(in, out, &h, &r) == RL_OK && r.changed, "with callbacks");
    check(r.proof == RL_MINIMUM && r.lower_bound == r.conversions_after, "proved");
    check(h.nread == 1 && h.nwrite == 1 && h.nstep >= 8 && h.nlog > 0 && h.asked >= h.nstep, "steps, lines and questions come");
    check(h.nalloc > 0 && h.live == 0, "all memory comes from the caller and goes back");
    unsigned asked = h.asked;
    remove(out);
    for (unsigned k = 1; k <= asked; k++) {
        h = (host){.stop_at = k};
        check(optimize(in, out, &h, &r) == RL_ESTOPPED && h.asked == k && strstr(r.error, "stopped"), "every question can stop it");
        check(h.live == 0, "what is stopped gives its memory back");
        check(!exists(out), "what is stopped writes nothing");
    }
    size_t nalloc = 0;
    for (size_t k = 1, done = 0; !done; k++, nalloc++) {
        h = (host){.fail_at = k};
        rl_status s = optimize(in, out, &h, &r);
        done = s == RL_OK;
        check((s == RL_OK) == (h.nalloc < k) && (s == RL_OK || s == RL_ELIMIT) && h.live == 0, "every allocation can fail");
        check(exists(out) == (int)done, "what fails writes nothing");
    }
    check(nalloc > 10, "allocations were many");
    rl_options old = {.struct_size = offsetof(rl_options, context), .target = "onnx", .context = (const rl_context *)(const void *)in};
    check(rl_optimize_file(in, out, &old, &r) == RL_OK, "members beyond struct_size are not read");
}

static void reports(const char *in, const char *out) {
    rl_result r;
    char *json = NULL, *same = NULL;
    const char *bad[] = {"nothing=1", NULL}, *shapes[] = {"image=1,2", NULL};
    rl_model m = {.path = in};
    rl_options o = {.struct_size = sizeof o, .target = "onnx", .report = &json};
    check(rl_optimize_file(in, out, &o, &r) == RL_OK && json && strstr(json, "\"relayout.report/1\""), "a report");
    check(json && strstr(json, "\"proof\": \"optimal\"") && strstr(json, in), "which says what was proved, of which file");
    rl_free(json);
    check(rl_model_stats(&m, NULL, &json, &r) == RL_OK && strstr(json, "\"relayout.stats/1\"") && strstr(json, "\"moving\": 4"), "stats");
    rl_free(json);
    check(rl_model_explain(&m, NULL, NULL, &json, &r) == RL_OK && strstr(json, "\"relayout.explain/1\""), "explain");
    check(rl_model_explain(&m, NULL, NULL, &same, NULL) == RL_OK && strcmp(json, same) == 0, "the same twice");
    rl_free(json);
    rl_free(same);
    check(rl_model_explain(&m, "nobody", NULL, &json, &r) == RL_EUSAGE && !json && strstr(r.error, "nobody"), "a node that is not there");
    o = (rl_options){.struct_size = sizeof o, .dims = bad};
    check(rl_optimize_file(in, out, &o, &r) == RL_EUSAGE && strstr(r.error, "nothing"), "a dim that is not there");
    o = (rl_options){.struct_size = sizeof o, .input_shapes = shapes};
    check(rl_model_stats(&m, &o, &json, &r) == RL_EUSAGE && !json && strstr(r.error, "image"), "a shape of another rank");
}

static rl_session *open_session(const char *path, const rl_context *c, uint32_t threads) {
    rl_session *s;
    rl_result r;
    rl_model m = {.path = path};
    rl_options o = {.struct_size = sizeof o, .context = c, .threads = threads};
    rl_status status = rl_session_new(&m, &o, &s, &r);
    check(status == RL_OK && s, "a session");
    if (status != RL_OK) fprintf(stderr, "%s\n", r.error);
    return s;
}

typedef struct { float *x; int64_t dim[8]; rl_array a; } image;

/* The first input with numbers that depend on the place. */
static image image_of(const rl_session *s) {
    image m = {0};
    size_t n = 1;
    m.a = *rl_session_input(s, 0);
    check(m.a.dtype == 1 && m.a.rank <= 8 && !rl_session_input(s, 1), "one input of floats");
    for (uint32_t i = 0; i < m.a.rank; i++) n *= (size_t)(m.dim[i] = m.a.dim[i] < 0 ? 1 : m.a.dim[i]);
    m.x = malloc(n * sizeof *m.x);
    for (size_t i = 0; i < n; i++) m.x[i] = (float)(i % 17) / 16;
    m.a.data = m.x;
    m.a.nbyte = n * sizeof *m.x;
    return m;
}

static void refusals(rl_session *s, image m) {
    rl_result r;
    const rl_array *y, good = {.name = m.a.name, .dtype = 1, .rank = m.a.rank, .dim = m.dim, .data = m.x, .nbyte = m.a.nbyte};
    rl_array a = good;
    check(rl_session_run(s, NULL, 0, &y, &r) == RL_EUSAGE && !y && strstr(r.error, "not given"), "an input that is missing");
    a.name = "nobody";
    check(rl_session_run(s, &a, 1, &y, &r) == RL_EUSAGE && strstr(r.error, "nobody"), "a name that is not there");
    a = good;
    a.nbyte -= 4;
    check(rl_session_run(s, &a, 1, &y, &r) == RL_EUSAGE && strstr(r.error, "bytes"), "too few bytes");
    a = good;
    a.dtype = 7;
    check(rl_session_run(s, &a, 1, &y, &r) == RL_EUSAGE && strstr(r.error, "i64"), "another type");
    a = good;
    a.rank--;
    check(rl_session_run(s, &a, 1, &y, &r) == RL_EUSAGE && strstr(r.error, "rank"), "another rank");
    a = good;
    a.dim = (int64_t[RL_DESC_RANK]){-1};
    check(rl_session_run(s, &a, 1, &y, &r) == RL_EUSAGE && strstr(r.error, "no size"), "a dim below 0");
    a = good;
    a.data = NULL;
    check(rl_session_run(s, &a, 1, &y, &r) == RL_EUSAGE && !y && strstr(r.error, "data is NULL"), "no data");
    a = good;
    a.dim = NULL;
    check(rl_session_run(s, &a, 1, &y, &r) == RL_EUSAGE && strstr(r.error, "dims are NULL"), "no dims");
    a = good;
    a.name = NULL;
    check(rl_session_run(s, &a, 1, &y, &r) == RL_EUSAGE && strstr(r.error, "name"), "no name");
    check(rl_session_run(s, NULL, 1, &y, &r) == RL_EUSAGE && rl_session_run(s, &good, 1, NULL, &r) == RL_EUSAGE
          && rl_session_run(NULL, &good, 1, &y, &r) == RL_EUSAGE && r.error[0], "NULL for what a run needs");
    check(rl_session_run(s, (rl_array[]){good, good}, 2, &y, &r) == RL_EUSAGE && strstr(r.error, "twice"), "an input twice");
    check(rl_session_run(s, &good, 1, &y, &r) == RL_OK && y, "and after all these it runs");
}

static int runs_as(rl_session *s, const rl_array *in, const void *want) {
    const rl_array *y;
    rl_result r;
    return rl_session_run(s, in, 1, &y, &r) == RL_OK && memcmp(y->data, want, y->nbyte) == 0;
}

/* Every allocation of a run fails once, and of the preparation that comes before it after a failure. */
static void starve(rl_session *s, host *h, const rl_array *in, const void *want) {
    const rl_array *y;
    rl_result r;
    size_t nalloc = 0;
    for (int done = 0; !done; nalloc++) {
        h->stop_at = h->asked + 3;
        check(rl_session_run(s, in, 1, &y, &r) == RL_ESTOPPED, "a run that is stopped");
        h->fail_at = h->nalloc + nalloc + 1;
        rl_status status = rl_session_run(s, in, 1, &y, &r);
        done = status == RL_OK && h->nalloc < h->fail_at;
        check(status == RL_OK || (status == RL_ELIMIT && !y), "a run without memory");
        h->fail_at = 0;
        if (nalloc % 3 == 0) check(runs_as(s, in, want), "and one with it");
    }
    check(nalloc > 10, "allocations of a run were many");
}

/* Failures leave nothing behind, and change nothing. */
static void failures(const char *model) {
    host h = {0};
    rl_context c = context_of(&h);
    rl_session *s = open_session(model, &c, 1);
    if (!s) return;
    image m = image_of(s);
    m.a.dim = m.dim;
    rl_result r;
    const rl_array *y, nobody = {.name = "nobody"};
    check(rl_session_run(s, &m.a, 1, &y, &r) == RL_OK, "a first run");
    void *want = malloc(y->nbyte);
    memcpy(want, y->data, y->nbyte);
    size_t live = h.live, nalloc;
    for (int i = 0; i < 100; i++) {
        check(rl_session_run(s, &nobody, 1, &y, &r) == RL_EUSAGE && (i == 0 || h.live == live), "a call that is wrong takes nothing");
        live = h.live;
    }
    check(runs_as(s, &m.a, want), "the same numbers after wrong calls");
    for (int i = 0; i < 100; i++) {
        h.stop_at = h.asked + 3;
        check(rl_session_run(s, &m.a, 1, &y, &r) == RL_ESTOPPED && !y, "a run that is stopped");
        nalloc = h.nalloc;
        check(rl_session_run(s, &nobody, 1, &y, &r) == RL_EUSAGE && h.nalloc < nalloc + 8, "nothing is prepared for a wrong call");
        if (i == 0) live = h.live;
        check(h.live == live, "and both leave as much as those before");
        if (i % 10 == 0) check(runs_as(s, &m.a, want), "the same numbers after a stop");
    }
    for (int i = 0; i < 3; i++) {
        starve(s, &h, &m.a, want);
        if (i == 1) live = h.live;
        check(i < 2 || h.live == live, "runs without memory leave as much as those before");
    }
    rl_session_free(s);
    check(h.live == 0, "all of it comes back");
    free(m.x);
    free(want);
}

static void nulls(rl_session *s, const char *name) {
    rl_result r;
    rl_error e = {""};
    rl_desc d;
    float x[4] = {0};
    int64_t n;
    rl_model none = {0};
    rl_session *made = s;
    check(rl_desc_parse("f32[4]", &d, &e) == RL_OK, "a layout");
    check(rl_session_bind(NULL, name, &d, x, sizeof x, &r) == RL_EUSAGE && strstr(r.error, "session"), "bind: no session");
    check(rl_session_bind(s, NULL, &d, x, sizeof x, &r) == RL_EUSAGE && strstr(r.error, "name"), "bind: no name");
    check(rl_session_new(&none, NULL, &made, &r) == RL_EUSAGE && !made && r.error[0], "a model that is nowhere");
    made = s;
    check(rl_session_new(NULL, NULL, &made, &r) == RL_EUSAGE && !made, "no model");
    check(!rl_session_input(NULL, 0) && !rl_session_output(NULL, 0), "inputs and outputs of no session");
    check(rl_desc_convert(&d, NULL, 16, &d, x, 16, &e) == RL_EUSAGE && rl_desc_convert(&d, x, 16, &d, NULL, 16, &e) == RL_EUSAGE
          && rl_desc_convert(NULL, x, 16, &d, x, 16, &e) == RL_EUSAGE && rl_move(&d, x, 16, NULL, x, 16, NULL, &e) == RL_EUSAGE, "moving from or to nowhere");
    rl_sparse t = {.kind = RL_COO, .dtype = 1, .rank = 1, .dim = {4}, .nnz = 1};
    check(rl_sparse_count(&d, NULL, 16, &n, &e) == RL_EUSAGE && rl_sparse_count(&d, x, 16, NULL, &e) == RL_EUSAGE
          && rl_to_sparse(&d, x, 16, &t, &e) == RL_EUSAGE && rl_to_sparse(&d, x, 16, NULL, &e) == RL_EUSAGE
          && rl_from_sparse(&t, &d, x, 16, &e) == RL_EUSAGE && rl_from_sparse(NULL, &d, x, 16, &e) == RL_EUSAGE && strstr(e.text, "NULL"), "sparse ones that are not there");
}

/* The image N,H,W,C with a gap after each pixel and each row, and the scores into rows with gaps, packed, and in blocks: the same
 * numbers, read and written in the caller's buffers at every run. */
static void buffers(const char *model) {
    static const char *const layouts[] = {"f32[1,4,4,2]", "f32[1,4,4,2] strides=[99,24,6,1] offset=5", "f32[1,4,4,2]@aBcd4b"};
    rl_session *s = open_session(model, NULL, 1);
    image m = image_of(s);
    const rl_array *y;
    rl_result r;
    rl_desc d, row;
    rl_error e;
    float from[128], to[128], want[32], back[32];
    m.a.dim = m.dim;
    check(rl_session_run(s, &m.a, 1, &y, &r) == RL_OK && y->nbyte == sizeof want, "without buffers");
    memcpy(want, y->data, sizeof want);
    const char *name = y->name;
    check(rl_desc_parse(layouts[0], &row, &e) == RL_OK, "row-major");
    for (int k = 0; k < 9; k++) {
        check(rl_desc_parse(layouts[k % 3], &d, &e) == RL_OK && rl_desc_convert(&d, from, sizeof from, &row, m.x, 128, &e) == RL_OK, "an image with gaps");
        check(rl_session_bind(s, "image", &d, from, sizeof from, &r) == RL_OK, "its buffer");
        check(rl_desc_parse(layouts[k / 3], &d, &e) == RL_OK && rl_session_bind(s, name, &d, to, sizeof to, &r) == RL_OK, "the output's");
        for (int turn = 0; turn < 2; turn++) {
            for (int i = 0; i < 128; i++) to[i] = 77;
            check(rl_session_run(s, NULL, 0, &y, &r) == RL_OK && y->data == (void *)to, "a run from buffer to buffer");
            check(rl_desc_convert(&row, back, sizeof back, &d, to, sizeof to, &e) == RL_OK, "what is there");
            check((memcmp(back, want, sizeof want) == 0) == (turn == 0), "the same numbers, and others once the image changes");
            for (int64_t i = 0, hit = 0; k / 3 == 1 && i < 128; i++, hit = 0) {
                for (int64_t j = 0; j < 32; j++) hit |= rl_desc_offset(&d, (int64_t[]){0, j / 8, j / 2 % 4, j % 2}) == i;
                check(hit || to[i] == 77, "gaps stay");
            }
            for (int i = 0; i < 128; i++) from[i] = 1 - from[i];
        }
    }
    check(rl_session_run(s, &m.a, 1, &y, &r) == RL_EUSAGE && strstr(r.error, "twice"), "a bound input that is given too");
    check(rl_desc_parse("f32[1,4,4,2] strides=[0,0,0,1]", &d, &e) == RL_OK, "a picture of one pixel");
    check(rl_session_bind(s, "image", &d, from, 8, &r) == RL_OK && rl_session_run(s, NULL, 0, &y, &r) == RL_OK, "is repeated");
    check(rl_session_bind(s, name, &d, to, 8, &r) == RL_EUSAGE && strstr(r.error, "overlap"), "but not written");
    check(rl_session_bind(s, name, &row, to, 127, &r) == RL_EUSAGE && strstr(r.error, "127 bytes"), "too short");
    check(rl_session_bind(s, "nobody", &row, to, 128, &r) == RL_EUSAGE && strstr(r.error, "nobody"), "nobody's");
    check(rl_desc_parse("f32[1,4,4,3]", &d, &e) == RL_OK && rl_session_bind(s, "image", &d, to, 512, &r) == RL_EUSAGE, "other sizes");
    check(rl_session_bind(s, name, &d, to, 512, &r) == RL_OK && rl_session_run(s, NULL, 0, &y, &r) == RL_EUSAGE, "an output of other sizes");
    check(rl_session_bind(s, name, NULL, NULL, 0, &r) == RL_OK && rl_session_bind(s, "image", NULL, NULL, 0, &r) == RL_OK, "no buffers again");
    check(rl_session_run(s, &m.a, 1, &y, &r) == RL_OK && memcmp(y->data, want, sizeof want) == 0, "as before");
    rl_session_free(s);
    free(m.x);
}

/* A camera that gives planes, with gaps: optimize takes its buffer's order for the input, and the session reads it where it is. */
static void contract(const char *model, const char *out) {
    static const char planes[] = "f32[1,4,4,2] strides=[40,5,1,20]";
    rl_options o = {.struct_size = sizeof o, .target = "onnx", .input_layouts = "image=f32[1,4,4,2] strides=[40,5,1,20],probabilities=keep"};
    rl_options only = o;
    rl_result r;
    rl_error e;
    rl_desc row, d, turned;
    float buffer[40];
    const rl_array *y;
    check(rl_optimize_file(model, out, &o, &r) == RL_EUSAGE && strstr(r.error, "no input has this name"), "an output is no input");
    only.input_layouts = "image=f32[1,4,4,2] strides=[40,5,1,20]";
    check(rl_optimize_file(model, out, &only, &r) == RL_OK && r.changed, "with the camera's buffer");
    rl_session *s = open_session(model, NULL, 1), *t = open_session(out, NULL, 1);
    image m = image_of(s);
    m.a.dim = m.dim;
    check(rl_session_input(t, 0)->dim[1] == 2 && rl_session_input(t, 0)->dim[3] == 4, "the input's dims in the buffer's order");
    check(rl_desc_parse("f32[1,4,4,2]", &row, &e) == RL_OK && rl_desc_parse(planes, &d, &e) == RL_OK, "layouts");
    check(rl_desc_convert(&d, buffer, sizeof buffer, &row, m.x, 128, &e) == RL_OK, "planes");
    check(rl_desc_permute(&d, (uint32_t[]){0, 3, 1, 2}, &turned, &e) == RL_OK, "the same buffer, its dims in that order");
    check(rl_session_bind(t, "image", &turned, buffer, sizeof buffer, &r) == RL_OK, "bound");
    check(rl_session_run(s, &m.a, 1, &y, &r) == RL_OK, "the model as it was");
    float want[32];
    int differ = 0;
    memcpy(want, y->data, sizeof want);
    check(rl_session_run(t, NULL, 0, &y, &r) == RL_OK && y->nbyte == sizeof want, "and the new one");
    for (int i = 0; i < 32; i++) differ += fabsf(((const float *)y->data)[i] - want[i]) > 1e-5f;
    check(differ == 0, "the same numbers");
    rl_session_free(s);
    rl_session_free(t);
    free(m.x);
}

static void sessions(const char *in, const char *out) {
    host h = {0};
    rl_context c = context_of(&h);
    rl_result r;
    rl_session *a = open_session(in, &c, 1), *b = open_session(out, NULL, 2);
    if (!a || !b) return;
    image m = image_of(a);
    m.a.dim = m.dim;
    const rl_array *y, *z;
    for (int k = 0; k < 2; k++) {
        check(rl_session_run(a, &m.a, 1, &y, &r) == RL_OK && rl_session_run(b, &m.a, 1, &z, &r) == RL_OK, "both run");
        check(y->dtype == 1 && y->nbyte > 0 && y->nbyte == z->nbyte && strcmp(y->name, z->name) == 0, "outputs of one size");
        const float *p = y->data, *q = z->data;
        float most = 0, sum = 0;
        for (size_t i = 0; i < y->nbyte / 4; i++) {
            float d = p[i] > q[i] ? p[i] - q[i] : q[i] - p[i];
            most = d > most ? d : most;
            sum += p[i];
        }
        check(most < 1e-5f && sum > 1 && sum < 31, "the same 32 numbers between 0 and 1 before and after");
    }
    refusals(a, m);
    nulls(a, m.a.name);
    h.stop_at = h.asked + 3;
    check(rl_session_run(a, &m.a, 1, &y, &r) == RL_ESTOPPED && !y, "a run can be stopped");
    check(rl_session_run(a, &m.a, 1, &y, &r) == RL_OK && y, "and run again");
    rl_session_free(a);
    rl_session_free(b);
    check(h.live == 0 && h.nalloc > 0, "a session gives its memory back");
    free(m.x);
    rl_model nothing = {.path = "/nonexistent/x.onnx"}, one = {.path = in}, two = {.path = out};
    check(rl_session_new(&nothing, NULL, &a, &r) == RL_EIO && !a && strstr(r.error, "x.onnx"), "a missing file");
    rl_verify_options how = {.struct_size = sizeof how, .runs = 2};
    check(rl_model_verify(&one, &two, &how, NULL, &r) == RL_OK, "both models agree");
    check(rl_model_verify(&one, &nothing, &how, NULL, &r) == RL_EIO, "a second model that is missing");
    static const double none[] = {(double)NAN, -1, (double)INFINITY};
    for (int i = 0; i < 6; i++) {
        how = (rl_verify_options){.struct_size = sizeof how, .rtol = i < 3 ? none[i] : 0, .atol = i < 3 ? 0 : none[i - 3]};
        check(rl_model_verify(&one, &two, &how, NULL, &r) == RL_EUSAGE && strstr(r.error, i < 3 ? "rtol" : "atol"), "a tolerance that is none");
    }
    rl_session *unset = (rl_session *)(void *)&r;
    const rl_array *outs = (const rl_array *)(const void *)&r;
    check(rl_session_new(&one, &(rl_options){0}, &unset, &r) == RL_EUSAGE && !unset, "no session where it is refused");
    check(rl_session_new(&one, &(rl_options){.struct_size = sizeof(rl_options), .threads = UINT32_MAX}, &unset, &r) == RL_EUSAGE && strstr(r.error, "threads"), "threads below 0");
    check(rl_session_run(NULL, NULL, 0, &outs, &r) == RL_EUSAGE && !outs, "nor outputs");
}

/* One thread's: what it is to read, and what its calls made. */
typedef struct {
    const char *in;
    const void *bytes;
    size_t nbyte;
    host h;
    rl_status s;
    char *json;
    void *made;
    size_t nmade;
    float sum;
} worker;

/* Every function that reads a model, in this thread's own context; the session has threads of its own. */
static void *work(void *arg) {
    worker *w = arg;
    rl_context c = context_of(&w->h);
    rl_model m = {.path = w->in}, made;
    rl_options o = {.struct_size = sizeof o, .context = &c, .target = "onnx", .threads = 2};
    rl_session *s = NULL;
    const rl_array *y = NULL;
    w->s = rl_model_explain(&m, NULL, &o, &w->json, NULL);
    if (w->s == RL_OK) w->s = rl_optimize_bytes(w->bytes, w->nbyte, &w->made, &w->nmade, &o, NULL);
    if (w->s != RL_OK) return NULL;
    made = (rl_model){.data = w->made, .nbyte = w->nmade};
    w->s = rl_model_verify(&m, &made, NULL, &o, NULL);
    if (w->s == RL_OK) w->s = rl_session_new(&made, &o, &s, NULL);
    if (w->s != RL_OK) return NULL;
    image x = image_of(s);
    x.a.dim = x.dim;
    for (int k = 0; k < 20 && w->s == RL_OK; k++) w->s = rl_session_run(s, &x.a, 1, &y, NULL);
    for (size_t i = 0; y && i < y->nbyte / sizeof(float); i++) w->sum += ((const float *)y->data)[i];
    free(x.x);
    rl_session_free(s);
    return NULL;
}

static void threads(const char *in) {
    enum { N = 4 };
    static char bytes[1 << 16];
    worker w[N];
    pthread_t t[N];
    FILE *f = fopen(in, "rb");
    size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (f) fclose(f);
    check(n > 0 && n < sizeof bytes, "the model fits");
    for (int i = 0; i < N; i++) {
        w[i] = (worker){.in = in, .bytes = bytes, .nbyte = n};
        check(pthread_create(&t[i], NULL, work, &w[i]) == 0, "a thread");
    }
    for (int i = 0; i < N; i++) {
        pthread_join(t[i], NULL);
        check(w[i].s == RL_OK && strcmp(w[i].json, w[0].json) == 0, "contexts in several threads do not meet");
        check(w[i].nmade == w[0].nmade && memcmp(w[i].made, w[0].made, w[0].nmade) == 0 && w[i].sum > 0 && !(w[i].sum < w[0].sum) && !(w[i].sum > w[0].sum),
              "they make the same model and the same numbers");
    }
    for (int i = 0; i < N; i++) {
        release(&w[i].h, w[i].json, strlen(w[i].json) + 1);
        release(&w[i].h, w[i].made, w[i].nmade + 1);
        check(w[i].h.live == 0, "text and model were the only things left");
    }
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    callbacks(argv[1], argv[2]);
    reports(argv[1], argv[2]);
    sessions(argv[1], argv[2]);
    failures(argv[1]);
    failures(argv[2]);
    buffers(argv[1]);
    buffers(argv[2]);
    threads(argv[1]);
    contract(argv[1], argv[2]);
    return nfail != 0;
}
