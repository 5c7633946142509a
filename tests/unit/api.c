/* The public library as its users have it: the shared object and include/relayout.h, nothing else. */
#include <math.h>
#include <stddef.h>
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

static void *slurp(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    void *p = malloc(*n);
    if (fread(p, 1, *n, f) != *n) *n = 0;
    fclose(f);
    return p;
}

static size_t size_of(const char *path) {
    size_t n = 0;
    free(slurp(path, &n));
    return n;
}

/* A model whose weights lie in `data`, from memory to memory. */
static void check_packed(const char *path, char *data, size_t nfile, rl_options o) {
    rl_result r;
    size_t nin, nout;
    void *in = slurp(path, &nin), *bytes;
    char *name = strrchr(data, '/');
    if (name) *name = 0;
    o.directory = name ? data : ".";
    check(rl_optimize_bytes(in, nin, &bytes, &nout, &o, &r) == RL_OK && nout > 2 * nfile, "weights into a model in memory");
    rl_free(bytes);
    o.external_data = "keep";
    check(rl_optimize_bytes(in, nin, &bytes, &nout, &o, &r) == RL_OK && nout <= nfile, "or where they are");
    rl_free(bytes);
    o.external_data = "api.bin";
    check(rl_optimize_bytes(in, nin, &bytes, &nout, &o, &r) == RL_EUSAGE && !bytes && strstr(r.error, "no folder"), "but not in a file beside it");
    if (name) *name = '/';
    free(in);
}

/* Weights out of the model and into it again. */
static void check_external(const char *in, const char *out) {
    rl_result r;
    rl_options o = {.struct_size = sizeof o, .target = "onnx", .external_data = "../x"};
    check(rl_optimize_file(in, out, &o, &r) == RL_EUSAGE && strstr(r.error, "../x"), "external data outside the model's folder");
    o.external_data = "api.bin";
    check(rl_optimize_file(in, out, &o, &r) == RL_OK && size_of(out) < size_of(in) / 2, "weights in a file");
    size_t n = size_of(out);
    check(rl_optimize_file(out, out, &o, &r) == RL_EUSAGE && strstr(r.error, "a file of the input") && size_of(out) == n, "the input's weights stay");
    char data[4096];
    const char *slash = strrchr(out, '/');
    snprintf(data, sizeof data, "%.*sapi.bin", slash ? (int)(slash - out) + 1 : 0, out);
    size_t ndata = size_of(data);
    o.external_data = NULL;
    check(rl_optimize_file(out, data, &o, &r) == RL_EUSAGE && strstr(r.error, "its external data") && size_of(data) == ndata, "and where the model would go there");
    o.struct_size = offsetof(rl_options, external_data);
    check(rl_optimize_file(out, out, &o, &r) == RL_OK && size_of(out) == n, "a program that does not know the option");
    o.struct_size = sizeof o;
    o.external_data = "inline";
    check_packed(out, data, n, o);
    check(rl_optimize_file(out, out, &o, &r) == RL_OK && !r.changed && size_of(out) > size_of(in) / 2, "weights in the model again");
}

/* What a call needs may not be NULL, and what it gives is then. */
static void check_nulls(const char *model) {
    rl_result r;
    rl_error e = {""};
    rl_desc d, out;
    rl_comparison how;
    char none, *text = &none;
    void *bytes = &none;
    size_t n = 1;
    int copies;
    const rl_model nowhere = {0}, m = {.path = model};
    check(rl_optimize_bytes(NULL, 4, &bytes, &n, NULL, &r) == RL_EUSAGE && !bytes && !n && strstr(r.error, "NULL"), "bytes that are not there");
    check(rl_model_stats(&nowhere, NULL, &text, &r) == RL_EUSAGE && !text && rl_model_explain(&m, NULL, NULL, NULL, &r) == RL_EUSAGE, "a model that is nowhere");
    text = &none;
    check(rl_model_explain(NULL, NULL, NULL, &text, &r) == RL_EUSAGE && !text, "no model");
    check(rl_desc_parse(NULL, &d, &e) == RL_EUSAGE && strstr(e.text, "NULL") && rl_desc_parse("f32[2]", NULL, &e) == RL_EUSAGE, "no text");
    check(rl_desc_parse("f32[2,3]", &d, &e) == RL_OK, "a layout");
    text = &none;
    check(rl_desc_draw(&d, NULL, &text, &e) == RL_EUSAGE && !text && rl_desc_draw(&d, "text", NULL, &e) == RL_EUSAGE
          && rl_desc_draw(NULL, "text", &text, NULL) == RL_EUSAGE, "draw");
    check(rl_desc_named(1, 2, d.dim, NULL, NULL, &out, &e) == RL_EUSAGE && rl_desc_named(1, 2, NULL, "ab", NULL, &out, &e) == RL_EUSAGE
          && rl_desc_strided(1, 2, NULL, NULL, 0, &out, &e) == RL_EUSAGE && rl_desc_strided(1, 2, d.dim, NULL, 0, NULL, &e) == RL_EUSAGE, "made of nothing");
    check(rl_desc_strided(1, 0, NULL, NULL, 0, &out, &e) == RL_OK && rl_desc_permute(&out, NULL, &out, &e) == RL_OK
          && rl_desc_expand(&out, 0, NULL, &out, &e) == RL_OK && rl_desc_reshape(&out, 0, NULL, &out, &e) == RL_OK, "a scalar has no dims");
    check(rl_desc_check(NULL, 0, &e) == RL_EUSAGE && rl_desc_check_buffer(NULL, 4, 0, 0, &e) == RL_EUSAGE, "nothing to check");
    check(rl_desc_compare(&d, NULL, &how, &e) == RL_EUSAGE && rl_desc_compare(&d, &d, NULL, &e) == RL_EUSAGE, "nothing to compare");
    check(rl_desc_permute(&d, NULL, &out, &e) == RL_EUSAGE && rl_desc_slice(NULL, 0, 0, 1, 1, &out, &e) == RL_EUSAGE
          && rl_desc_expand(&d, 2, NULL, &out, &e) == RL_EUSAGE && rl_desc_reshape(&d, 2, NULL, &out, &e) == RL_EUSAGE
          && rl_desc_fill_rank(&d, 4, NULL, &e) == RL_EUSAGE, "views");
    check(rl_to_format(&d, RL_CONTIGUOUS, &out, NULL, &e) == RL_EUSAGE && rl_to_format(NULL, RL_CONTIGUOUS, &out, &copies, &e) == RL_EUSAGE
          && rl_propagate(1, NULL, &out, &e) == RL_EUSAGE && rl_propagate(1, &d, NULL, &e) == RL_EUSAGE, "formats");
}

static void *no_memory(void *user, size_t n) { return (void)user, (void)n, NULL; }
static void no_release(void *user, void *p, size_t n) { (void)user, (void)p, (void)n; }

/* Numbers that are none are refused, and what a failed call would have given is NULL then. */
static void check_refused(const void *in, size_t nin, const char *path, const char *out) {
    rl_result r;
    const rl_model m = {path, NULL, 0};
    const rl_options wrong[] = {{0}, {.struct_size = 3}, {.struct_size = sizeof *wrong, .context = &(rl_context){0}}, {.struct_size = sizeof *wrong, .context = &(rl_context){.struct_size = 3}},
        {.struct_size = sizeof *wrong, .context = &(rl_context){.struct_size = sizeof(rl_context), .allocate = no_memory}},
        {.struct_size = sizeof *wrong, .context = &(rl_context){.struct_size = sizeof(rl_context), .release = no_release}},
        {.struct_size = sizeof *wrong, .time_limit = -1},
        {.struct_size = sizeof *wrong, .time_limit = (double)NAN}, {.struct_size = sizeof *wrong, .time_limit = (double)INFINITY},
        {.struct_size = sizeof *wrong, .max_memory = (size_t)-1}, {.struct_size = sizeof *wrong, .threads = (uint32_t)-1}};
    static const char *const says[] = {"rl_options.struct_size", "rl_options.struct_size", "rl_context.struct_size", "rl_context.struct_size", "both or neither", "both or neither", "time_limit", "time_limit", "time_limit", "max_memory", "threads"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        void *bytes = &r;
        size_t n = 1;
        char *json = r.error, *why = r.error, *report = r.error;
        rl_options o = wrong[i];
        o.report = &report;
        check(rl_optimize_bytes(in, nin, &bytes, &n, &o, &r) == RL_EUSAGE && strstr(r.error, says[i]), says[i]);
        check(!bytes && !n && (!report || o.struct_size < sizeof o), "nothing to free");
        check(rl_model_stats(&m, &o, &json, &r) == RL_EUSAGE && strstr(r.error, says[i]) && !json, "nor of stats");
        check(rl_model_explain(&m, NULL, &o, &why, &r) == RL_EUSAGE && strstr(r.error, says[i]) && !why, "nor of explain");
        check(rl_optimize_file(path, out, &o, &r) == RL_EUSAGE && strstr(r.error, says[i]), "nor a file");
    }
    char *json = r.error;
    void *bytes = &r;
    check(rl_model_stats(NULL, NULL, &json, &r) == RL_EUSAGE && !json && rl_optimize_bytes(in, nin, &bytes, NULL, NULL, &r) == RL_EUSAGE && !bytes, "nor without a model");
}

int main(int argc, char **argv) {
    rl_result r;
    rl_options o = {.struct_size = sizeof o, .target = "onnx"};
    size_t nin, nout, nfile;
    void *out;
    if (argc != 3) return 2;
    void *in = slurp(argv[1], &nin);
    check(in != NULL, "the model can be read");
    check(rl_optimize_bytes(in, nin, &out, &nout, &o, &r) == RL_OK, "optimize from memory");
    check(r.changed && r.conversions_after < r.conversions_before && r.lower_bound == r.conversions_after, "fewer conversions");
    check(rl_optimize_file(argv[1], argv[2], &o, NULL) == RL_OK, "optimize a file");
    void *file = slurp(argv[2], &nfile);
    check(file && nfile == nout && memcmp(file, out, nout) == 0, "file and memory give the same bytes");
    rl_free(out);
    check(rl_optimize_bytes("no model", 8, &out, &nout, NULL, &r) == RL_EMODEL && !out && r.error[0], "bad bytes are refused");
    check(rl_optimize_file("/nonexistent/x.onnx", argv[2], NULL, &r) == RL_EIO && strstr(r.error, "x.onnx"), "a missing file is named");
    check(rl_optimize_file(NULL, argv[2], NULL, &r) == RL_EUSAGE && rl_optimize_file(argv[1], NULL, NULL, &r) == RL_EUSAGE && r.error[0], "no path");
    check(rl_optimize_bytes(in, nin, NULL, &nout, NULL, &r) == RL_EUSAGE && rl_model_stats(NULL, NULL, &(char *){NULL}, &r) == RL_EUSAGE, "nothing to write to, or to read");
    check_nulls(argv[1]);
    o.struct_size = 0;
    check(rl_optimize_file(argv[1], argv[2], &o, &r) == RL_EUSAGE && strstr(r.error, "rl_options.struct_size"), "options without a size");
    o.struct_size = sizeof o;
    o.context = &(rl_context){0};
    check(rl_optimize_file(argv[1], argv[2], &o, &r) == RL_EUSAGE && strstr(r.error, "rl_context.struct_size"), "a context without a size");
    o.context = NULL;
    o.target = "nothing";
    check(rl_optimize_bytes(in, nin, &out, &nout, &o, &r) == RL_EUSAGE && strstr(r.error, "nothing"), "an unknown target is named");
    o = (rl_options){.struct_size = sizeof o, .target = "onnx", .input_layouts = "image=nhwc->nchw"};
    check(rl_optimize_bytes(in, nin, &out, &nout, &o, &r) == RL_OK && r.changed && r.handed_to_caller == 1, "an input in another order");
    check(r.conversions_after < r.conversions_own_interface, "which saves a conversion");
    rl_free(out);
    o.input_layouts = "image=keep";
    o.output_layouts = "probabilities=free";
    check(rl_optimize_file(argv[1], argv[2], &o, &r) == RL_OK && r.handed_to_caller == 0, "an output's order that need not change");
    o.output_layouts = "probabilities=nhwc";
    check(rl_optimize_file(argv[1], argv[2], &o, &r) == RL_EUSAGE && strstr(r.error, "rank 2"), "an order of another rank");
    check_external(argv[1], argv[2]);
    check_refused(in, nin, argv[1], argv[2]);
    o = (rl_options){.struct_size = sizeof o, .objective = "speed"};
    check(rl_optimize_bytes(in, nin, &out, &nout, &o, &r) == RL_EUSAGE && strstr(r.error, "speed"), "an unknown objective is named");
    o = (rl_options){.struct_size = sizeof o, .max_memory = 10000};
    check(rl_optimize_bytes(in, nin, &out, &nout, &o, &r) == RL_ELIMIT, "a memory limit holds");
    o = (rl_options){.struct_size = sizeof o, .max_nodes = 3};
    check(rl_optimize_bytes(in, nin, &out, &nout, &o, &r) == RL_ELIMIT, "a limit of nodes holds");
    o = (rl_options){.struct_size = sizeof o, .max_depth = 2};
    check(rl_optimize_bytes(in, nin, &out, &nout, &o, &r) == RL_ELIMIT, "a limit of depth holds");
    o = (rl_options){.struct_size = sizeof o, .max_file = nin - 1};
    check(rl_optimize_file(argv[1], argv[2], &o, &r) == RL_ELIMIT && strstr(r.error, "over the limit"), "a limit of the file's size holds");
    o.max_file = nin;
    check(rl_optimize_file(argv[1], argv[2], &o, &r) == RL_OK, "a file of just that size");
    check(strcmp(rl_version(), RL_VERSION) == 0, "version");
    free(in);
    free(file);
    return nfail != 0;
}
