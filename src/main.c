/* The program: reads the command line, calls the library, prints.
 *
 * One table (`options`) says what every command takes; getopt, the checks and --help come from it.  A command is a function
 * that gets the parsed line.  What the user asked to see goes to stdout, everything else to stderr; an error is one line
 *
 *   relayout: FILE: message
 *
 * and leaves no output file behind: the model is written last, by a temporary file and rename.  The exit status is the
 * rl_status (base.h).
 *
 * Each function that allocates from the context protects itself (RL_PROTECT): a protection ends with the function that set
 * it. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../passes/interface.h"
#include "../runtime/bench.h"
#include "../runtime/layout_cmd.h"
#include "../runtime/run_cmd.h"
#include "cert.h"
#include "fix.h"
#include "hint.h"
#include "onnx.h"
#include "ops.h"
#include "report.h"
#include "shape.h"
#include "text.h"

#define MAXFIX 64 /* --dim and --input-shape each */

typedef struct { const char *item[MAXFIX]; uint32_t n; } list;
typedef struct {
    rl_ctx *ctx;
    const char *in, *out, *json, *after, *proof, *node;
    const char *other; /* verify, check-proof: the second model */
    list dims, shapes, inputs, in_layouts, out_layouts;
    rl_arena io_mem;
    rl_interface io;
    rl_passopt pass;
    rl_runopt run;
    bool canonical, named_target;
    double start, read_time;
    bool quiet, verbose;
    rl_arena in_mem; /* of the model that came on stdin */
    rl_text in_bytes;
} line;

/* ---- the command line ---- */

enum { OPTIMIZE = 1, STATS = 2, PRINT = 4, OTHER = 8, TABLE = 16, RUN = 32, VERIFY = 64, EXPLAIN = 128, CHECK = 256, BENCH = 512,
       MODEL = OPTIMIZE | STATS | PRINT | EXPLAIN, EXEC = RUN | VERIFY | BENCH, ALL = MODEL | OTHER | TABLE | EXEC | CHECK };
enum { O_JSON = 256, O_TARGET, O_OBJECTIVE, O_TIME, O_DIM, O_SHAPE, O_IN_LAYOUT, O_OUT_LAYOUT, O_DISABLE, O_PRINT_AFTER, O_AFTER, O_VERIFY,
       O_CANONICAL, O_PROOF, O_NODE, O_VERSION, O_INPUT, O_OUTDIR, O_DUMP, O_THREADS, O_SEED, O_RTOL, O_ATOL, O_RUNS };

static const struct { const char *name, *arg; int key; unsigned commands; const char *help; } options[] = {
    {"output", "OUT", 'o', OPTIMIZE, "where the optimized model goes"},
    {"json", "FILE", O_JSON, OPTIMIZE | STATS | EXPLAIN | BENCH, "write the report as JSON; - is stdout"},
    {"proof", "FILE", O_PROOF, OPTIMIZE, "write the certificate, for relayout check-proof; - is stdout"},
    {"target", "NAME", O_TARGET, MODEL | TABLE | CHECK, "what runs it and what that costs: generic (default), onnx, ort ... or a FILE.def"},
    {"objective", "WHAT", O_OBJECTIVE, MODEL, "nodes (default): fewest conversions; bytes: fewest bytes moved; time: least time by the target's table"},
    {"time-limit", "SECONDS", O_TIME, MODEL, "for the solver; then the best found is taken (default 5)"},
    {"dim", "NAME=N", O_DIM, MODEL | EXEC | CHECK, "the symbolic size NAME is N"},
    {"input-shape", "X=N,N,...", O_SHAPE, MODEL | EXEC | CHECK, "the graph input X has this shape"},
    {"input-layout", "X=ORDER", O_IN_LAYOUT, OPTIMIZE, "the graph input X comes in this order: nhwc, acdb ..., or free"},
    {"output-layout", "Y=ORDER", O_OUT_LAYOUT, OPTIMIZE, "the graph output Y goes in this order"},
    {"disable", "PASSES", O_DISABLE, MODEL & ~(unsigned)EXPLAIN, "passes not to run, separated by commas"},
    {"print-after", "PASS", O_PRINT_AFTER, OPTIMIZE, "print the graph after PASS to stderr"},
    {"after", "PASS", O_AFTER, PRINT, "run the passes up to PASS first"},
    {"canonical", NULL, O_CANONICAL, PRINT, "without names, values numbered from the outputs"},
    {"node", "NAME", O_NODE, EXPLAIN, "only what this node, or tensor, has to do with"},
    {"verify-each", NULL, O_VERIFY, MODEL, "check the graph after every pass"},
    {"input", "X=FILE", O_INPUT, EXEC, "an .npy or .pb file for the graph input X (default: seeded random values)"},
    {"output-dir", "DIR", O_OUTDIR, RUN, "write each output to DIR/NAME.npy (.pb where NumPy lacks the type)"},
    {"dump", "WHAT", O_DUMP, RUN, "all: write every value between, too"},
    {"threads", "N", O_THREADS, EXEC, "threads (default 1)"},
    {"seed", "N", O_SEED, EXEC, "of the random inputs (default 0)"},
    {"rtol", "X", O_RTOL, VERIFY, "relative tolerance (default 1e-4)"},
    {"atol", "X", O_ATOL, VERIFY, "absolute tolerance (default 1e-6)"},
    {"runs", "N", O_RUNS, VERIFY | BENCH, "verify: runs, each with other random inputs (default 1); bench: timed runs (default: a second)"},
    {"quiet", NULL, 'q', OPTIMIZE, "print nothing but errors"},
    {"verbose", NULL, 'v', MODEL, "say on stderr what each step does and takes"},
    {"help", NULL, 'h', ALL, "this text"},
    {"version", NULL, O_VERSION, ALL, "the version"},
};

static rl_status optimize(line *l);
static rl_status stats(line *l);
static rl_status print(line *l);
static rl_status run_model(line *l);
static rl_status verify(line *l);
static rl_status explain(line *l);
static rl_status check_proof(line *l);
static rl_status bench(line *l);
static rl_status list_passes(line *l);
static rl_status list_ops(line *l);
static rl_status list_targets(line *l);

typedef struct { const char *name; unsigned mask; const char *usage, *help; rl_status (*run)(line *l); } command;
static const command commands[] = {
    {"optimize", OPTIMIZE, "IN -o OUT", "rewrite a model with the fewest Transposes", optimize},
    {"stats", STATS, "IN", "what moves data in a model, how much of that is needed, and where", stats},
    {"explain", EXPLAIN, "IN", "why each conversion stays, and where the other Transposes went", explain},
    {"print", PRINT, "IN", "show a model (.onnx, .rlt) as text", print},
    {"run", RUN, "IN", "run a model", run_model},
    {"verify", VERIFY, "A B", "run two models on the same inputs and compare their outputs", verify},
    {"layout", 0, "COMMAND", "describe, convert, draw and compare layouts of buffers", NULL}, /* reads its line itself */
    {"check-proof", CHECK, "PROOF IN OUT", "check that a certificate is IN's, that it holds, and that OUT is as it says", check_proof},
    {"bench", BENCH, "IN", "how long a model takes, in which ops, and how many bytes it moves", bench},
    {"passes", OTHER, "", "list the passes", list_passes},
    {"ops", OTHER, "", "list the table of ops", list_ops},
    {"targets", TABLE, "", "print the table of targets, as a file for --target may have it", list_targets},
};

/* stdin or stdout. */
static bool is_stdio(const char *path) {
    return strcmp(path, "-") == 0;
}

static void complain(const char *file, const char *message) {
    if (!file || strncmp(message, file, strlen(file)) == 0) fprintf(stderr, "relayout: %s\n", message);
    else fprintf(stderr, "relayout: %s: %s\n", file, message);
}

static rl_status usage_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static rl_status usage_error(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "relayout: ");
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "; see relayout --help\n");
    va_end(ap);
    return RL_EUSAGE;
}

static void help_options(const command *c) {
    printf("usage: relayout %s %s%s\n%s\n\n", c->name, c->usage, c->mask == OTHER ? "" : " [options]", c->help);
    for (size_t i = 0; i < RL_LEN(options); i++) {
        char left[64];
        if (!(options[i].commands & c->mask)) continue;
        int key = options[i].key;
        snprintf(left, sizeof left, "%c%c%s --%s %s", key < 128 ? '-' : ' ', key < 128 ? key : ' ', key < 128 ? "," : " ", options[i].name,
                 options[i].arg ? options[i].arg : "");
        printf("  %-28s %s\n", left, options[i].help);
    }
}

static void help_all(void) {
    printf("relayout %s: ONNX models with the fewest Transposes\n\n", RL_VERSION);
    printf("usage: relayout COMMAND ...        relayout IN OUT is relayout optimize IN -o OUT\n\n");
    for (size_t i = 0; i < RL_LEN(commands); i++) printf("  %-10s %-12s %s\n", commands[i].name, commands[i].usage, commands[i].help);
    printf("\nrelayout COMMAND --help lists its options.\n"
           "exit status: 0 done, 1 internal error, 2 usage, 3 cannot read or write, 4 not a valid model,\n"
           "5 over a limit or unsupported, 6 outputs differ, 7 not proved where required, 8 an assertion failed, 9 stopped by the caller (library only)\n");
}

static const command *find_command(const char *name) {
    for (size_t i = 0; i < RL_LEN(commands); i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    return NULL;
}

static bool is_objective(const char *s) {
    return strcmp(s, "nodes") == 0 || strcmp(s, "bytes") == 0 || strcmp(s, "time") == 0;
}

static rl_status add_item(list *l, const char *what, const char *item) {
    if (l->n == MAXFIX) return usage_error("more than %d times %s", MAXFIX, what);
    l->item[l->n++] = item;
    return RL_OK;
}

/* The options of run and verify. */
static rl_status set_run_option(line *l, int key, const char *arg) {
    char *end = NULL;
    rl_runopt *o = &l->run;
    if (key == O_INPUT) return add_item(&l->inputs, "--input", arg);
    if (key == O_OUTDIR) o->output_dir = arg;
    if (key == O_DUMP) o->dump_all = strcmp(arg, "all") == 0;
    if (key == O_OUTDIR || key == O_DUMP) return key == O_OUTDIR || o->dump_all ? RL_OK : usage_error("--dump is all, not '%s'", arg);
    if (key == O_RTOL || key == O_ATOL) {
        double x = strtod(arg, &end);
        *(key == O_RTOL ? &o->rtol : &o->atol) = x;
        return end != arg && !*end && x >= 0 ? RL_OK : usage_error("'%s' is no tolerance", arg);
    }
    unsigned long n = strtoul(arg, &end, 10);
    if (end == arg || *end || n > 1000000 || (key != O_SEED && n == 0)) return usage_error("'%s' is no number from 1 on", arg);
    if (key == O_SEED) o->seed = n;
    else *(key == O_RUNS ? &o->runs : &o->threads) = (uint32_t)n;
    return RL_OK;
}

static rl_status set_option(line *l, int key, const char *arg) {
    char *end;
    switch (key) {
    case 'o': l->out = arg; return RL_OK;
    case 'q': l->quiet = true; return RL_OK;
    case 'v': l->verbose = true; return RL_OK;
    case O_JSON: l->json = arg; return RL_OK;
    case O_PROOF:
        l->proof = arg;
        l->pass.proof = true;
        return RL_OK;
    case O_TARGET: l->pass.target = arg; return RL_OK;
    case O_OBJECTIVE:
        l->pass.objective = arg;
        return is_objective(arg) ? RL_OK : usage_error("--objective is nodes, bytes or time, not '%s'", arg);
    case O_TIME:
        l->pass.time_limit = strtod(arg, &end);
        return end != arg && !*end && l->pass.time_limit > 0 ? RL_OK : usage_error("--time-limit '%s' is no number above 0", arg);
    case O_DIM: return add_item(&l->dims, "--dim", arg);
    case O_SHAPE: return add_item(&l->shapes, "--input-shape", arg);
    case O_IN_LAYOUT: return add_item(&l->in_layouts, "--input-layout", arg);
    case O_OUT_LAYOUT: return add_item(&l->out_layouts, "--output-layout", arg);
    case O_DISABLE: l->pass.disable = arg; return RL_OK;
    case O_PRINT_AFTER: l->pass.print_after = arg; return RL_OK;
    case O_NODE: l->node = arg; return RL_OK;
    case O_AFTER: l->after = arg; return RL_OK;
    case O_VERIFY: l->pass.verify_each = true; return RL_OK;
    case O_CANONICAL: l->canonical = true; return RL_OK;
    default: return set_run_option(l, key, arg);
    }
}

static size_t find_option(int key) {
    size_t i = 0;
    while (i + 1 < RL_LEN(options) && options[i].key != key) i++;
    return i;
}

/* What getopt stumbled over, and what may have been meant. */
static rl_status bad_option(const command *c, int key, const char *arg) {
    const char *known[RL_LEN(options)];
    char word[64];
    size_t n = 0;
    if (key == ':') return usage_error("%s wants a value", arg);
    if (strncmp(arg, "--", 2) != 0) return usage_error("no option -%c", optopt);
    snprintf(word, sizeof word, "%.*s", (int)RL_MIN(strcspn(arg + 2, "="), sizeof word - 1), arg + 2);
    if (optopt) return usage_error("--%s takes no value", word);
    for (size_t i = 0; i < RL_LEN(options); i++)
        if (options[i].commands & c->mask) known[n++] = options[i].name;
    const char *hint = rl_hint(word, known, n);
    return usage_error("no option --%s%s%s%s", word, hint ? "; did you mean --" : "", hint ? hint : "", hint ? "?" : "");
}

/* *done: the line asked for help or the version, which were printed. */
static rl_status parse_options(line *l, const command *c, int argc, char **argv, bool *done) {
    struct option longs[RL_LEN(options) + 1] = {0};
    for (size_t i = 0; i < RL_LEN(options); i++)
        longs[i] = (struct option){options[i].name, options[i].arg ? required_argument : no_argument, NULL, options[i].key};
    opterr = 0;
    for (int key; (key = getopt_long(argc, argv, ":o:hqv", longs, NULL)) != -1;) {
        *done = key == 'h' || key == O_VERSION;
        if (key == 'h') help_options(c);
        if (key == O_VERSION) printf("relayout %s\n", RL_VERSION);
        if (*done) return RL_OK;
        if (key == '?' || key == ':') return bad_option(c, key, argv[optind - 1]);
        size_t i = find_option(key);
        if (!(options[i].commands & c->mask)) return usage_error("%s takes no --%s", c->name, options[i].name);
        RL_TRY(set_option(l, key, optarg));
    }
    return RL_OK;
}

static rl_status parse_files(line *l, const command *c, int argc, char **argv) {
    int n = argc - optind;
    if (c->mask & (OTHER | TABLE)) return n ? usage_error("%s takes no file", c->name) : RL_OK;
    if (n < 1) return usage_error("%s: which model?", c->name);
    l->in = argv[optind];
    if (c->mask == CHECK) {
        if (n != 3) return usage_error("check-proof: which certificate, which model before and after?");
        l->proof = argv[optind];
        l->in = argv[optind + 1];
        l->other = argv[optind + 2];
        return RL_OK;
    }
    if (c->mask == VERIFY) {
        l->other = argv[optind + 1];
        return n == 2 ? RL_OK : usage_error("verify: which two models?");
    }
    if (c->mask == OPTIMIZE && n == 2 && !l->out) l->out = argv[optind + 1];
    else if (n > 1) return usage_error("%s: what is '%s'?", c->name, argv[optind + 1]);
    if (c->mask == OPTIMIZE && !l->out) return usage_error("%s: where does the result go? -o OUT", c->name);
    if (is_stdio(l->in) && c->mask & EXEC) return usage_error("%s reads no model from stdin", c->name);
    const char *piped[] = {l->out, l->json, l->proof};
    int nstdout = 0;
    for (size_t i = 0; i < RL_LEN(piped); i++) nstdout += piped[i] && is_stdio(piped[i]);
    if (nstdout > 1) return usage_error("%s: only one thing can go to stdout", c->name);
    return RL_OK;
}

/* ---- models ---- */

static bool is_text(const char *path) {
    size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".rlt") == 0;
}

static rl_status read_text(rl_ctx *ctx, const char *path, rl_graph **g) {
    rl_arena tmp;
    rl_text t = {.mem = &tmp};
    if (RL_PROTECT(ctx)) return RL_ENOMEM;
    rl_arena_init(&tmp, ctx);
    rl_status s = rl_file_read(path, &t);
    if (s == RL_OK) s = rl_text_parse(ctx, path, t.p, t.n, g);
    rl_arena_free(&tmp);
    return s;
}

static rl_status fix_dims(const line *l, rl_graph *g) {
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    for (uint32_t i = 0; i < l->shapes.n; i++) RL_TRY(rl_fix_shape(g, l->shapes.item[i]));
    for (uint32_t i = 0; i < l->dims.n; i++) RL_TRY(rl_fix_dim(g, l->dims.item[i]));
    return RL_OK;
}

/* The whole of stdin, once: a command may read its model again. */
static rl_status read_stdin(line *l) {
    if (l->in_bytes.mem) return RL_OK;
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    rl_arena_init(&l->in_mem, l->ctx);
    l->in_bytes.mem = &l->in_mem;
    rl_put(&l->in_bytes, "%s", "");
    char some[65536];
    for (size_t n; (n = fread(some, 1, sizeof some, stdin)) > 0;) rl_put_bytes(&l->in_bytes, some, n);
    return ferror(stdin) ? rl_fail(l->ctx, RL_EIO, "stdin: %s", strerror(errno)) : RL_OK;
}

static rl_status read_onnx(line *l, rl_graph **g) {
    if (!is_stdio(l->in)) return rl_onnx_read(l->ctx, l->in, &(rl_readopt){0}, g);
    RL_TRY(read_stdin(l));
    return rl_onnx_read_bytes(l->ctx, l->in_bytes.p, l->in_bytes.n, NULL, &(rl_readopt){0}, g);
}

static rl_status read_model(line *l, rl_graph **g) {
    double start = rl_seconds();
    *g = NULL;
    rl_status s = is_text(l->in) ? read_text(l->ctx, l->in, g) : read_onnx(l, g);
    if (s == RL_OK) s = fix_dims(l, *g);
    l->read_time = rl_seconds() - start;
    return s;
}

/* ---- output ---- */

static rl_status write_stdout(rl_ctx *ctx, const char *p, size_t n) {
    if (fwrite(p, 1, n, stdout) == n && fflush(stdout) == 0) return RL_OK;
    return rl_fail(ctx, RL_EIO, "stdout: %s", strerror(errno));
}

static rl_status write_text(const line *l, const char *path, const rl_text *t) {
    return strcmp(path, "-") == 0 ? write_stdout(l->ctx, t->p, t->n) : rl_file_write(l->ctx, path, t->p, t->n);
}

/* Said before the model is written: a report that cannot be written must not leave a model behind. */
static rl_status check_path(const line *l, const char *path) {
    if (!path || strcmp(path, "-") == 0) return RL_OK;
    const char *slash = strrchr(path, '/');
    char dir[4096];
    snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
    return access(dir, W_OK) == 0 ? RL_OK : rl_fail(l->ctx, RL_EIO, "%s: %s", path, strerror(errno));
}

/* The certificate, where there is one of this very result. */
static rl_status write_proof(const line *l, const rl_outcome *o) {
    if (!l->proof) return RL_OK;
    if (o->proved == RL_PROVED_NOT)
        return rl_fail(l->ctx, RL_EPROOF, "%s: nothing was proved: %s", l->in,
                       o->proof.why ? o->proof.why : "no certificate was made");
    return write_text(l, l->proof, &o->proof.text[0]);
}

static void to_stderr(void *user, const char *text, size_t n) {
    (void)user;
    fwrite(text, 1, n, stderr);
}

static uint64_t peak_bytes(void) {
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (uint64_t)u.ru_maxrss * 1024 : 0;
}

/* The graph, or the model as it was read, on stdout; data in other files stays there. */
static rl_status write_piped(const line *l, const rl_graph *g, bool changed, uint64_t *nbyte) {
    rl_arena tmp;
    rl_span bytes = rl_onnx_bytes(g);
    rl_status s = RL_OK;
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    rl_arena_init(&tmp, l->ctx);
    if (changed) s = rl_onnx_pack(g, &tmp, &bytes);
    if (s == RL_OK) s = write_stdout(l->ctx, (const char *)bytes.p, bytes.n);
    *nbyte = bytes.n;
    rl_arena_free(&tmp);
    return s;
}

/* What nothing improved has no bytes to copy where it was text, or has another interface now; and a pass may have left its
 * graph half-written: it is read again. */
static rl_status write_again(line *l, uint64_t *nbyte) {
    rl_graph *g;
    rl_status s = read_model(l, &g);
    if (s == RL_OK) s = rl_interface_apply(g, &l->io);
    if (s == RL_OK) s = is_stdio(l->out) ? write_piped(l, g, true, nbyte) : rl_onnx_write(g, l->out);
    rl_graph_free(g);
    return s;
}

/* The input's bytes where nothing changed. */
static rl_status write_model(line *l, rl_graph *g, bool changed, uint64_t *nbyte) {
    struct stat st;
    *nbyte = 0;
    bool again = is_text(l->in) || rl_interface_changed(&l->io);
    if (!changed && again) RL_TRY(write_again(l, nbyte));
    else if (is_stdio(l->out)) RL_TRY(write_piped(l, g, changed, nbyte));
    else RL_TRY(changed ? rl_onnx_write(g, l->out) : rl_onnx_copy(g, l->out));
    if (!is_stdio(l->out) && stat(l->out, &st) == 0) *nbyte = (uint64_t)st.st_size;
    return RL_OK;
}

/* ---- commands ---- */

static rl_status report_optimize(const line *l, const rl_graph *g, const rl_outcome *o, uint64_t out_bytes, double write_time) {
    rl_arena tmp;
    rl_timing time[RL_LEN(o->time) + 2] = {{"read", l->read_time}};
    uint32_t n = 1;
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    rl_arena_init(&tmp, l->ctx);
    for (uint32_t i = 0; i < o->ntime; i++) time[n++] = (rl_timing){o->time[i].pass, o->time[i].seconds};
    time[n++] = (rl_timing){"write", write_time};
    rl_report r = {.in = l->in, .out = l->out, .in_bytes = rl_onnx_bytes(g).n, .target = l->pass.target, .objective = l->pass.objective};
    rl_summarize(o, &l->io, &tmp, &r);
    r.out_bytes = out_bytes;
    r.time = time;
    r.ntime = n;
    r.total = rl_seconds() - l->start;
    r.peak_bytes = peak_bytes();
    rl_text json = {.mem = &tmp}, table = {.mem = &tmp};
    rl_report_json(&r, &json);
    rl_report_table(&r, &table);
    rl_status s = l->json ? write_text(l, l->json, &json) : RL_OK;
    if (s == RL_OK && is_stdio(l->out) && !l->quiet) to_stderr(NULL, table.p, table.n);
    else if (s == RL_OK && !l->quiet && !(l->json && is_stdio(l->json))) s = write_stdout(l->ctx, table.p, table.n);
    rl_arena_free(&tmp);
    return s;
}

static rl_status optimize_graph(line *l, rl_graph *g) {
    rl_outcome o;
    uint64_t nbyte;
    RL_TRY(rl_optimize(g, &l->pass, &o));
    RL_TRY(check_path(l, l->json));
    RL_TRY(write_proof(l, &o));
    double start = rl_seconds();
    RL_TRY(write_model(l, g, o.changed, &nbyte));
    return report_optimize(l, g, &o, nbyte, rl_seconds() - start);
}

/* --input-layout and --output-layout: what they save is found on a graph of its own. */
static rl_status choose_interface(line *l) {
    rl_graph *g;
    l->io.mem = &l->io_mem;
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    for (uint32_t i = 0; i < l->in_layouts.n; i++) RL_TRY(rl_interface_add(&l->io, false, l->in_layouts.item[i]));
    for (uint32_t i = 0; i < l->out_layouts.n; i++) RL_TRY(rl_interface_add(&l->io, true, l->out_layouts.item[i]));
    if (l->io.port.n == 0) return RL_OK;
    rl_status s = read_model(l, &g);
    if (s == RL_OK) s = rl_interface_choose(g, &l->pass, &l->io);
    rl_graph_free(g);
    return s;
}

static rl_status optimize(line *l) {
    rl_graph *g = NULL;
    rl_arena_init(&l->io_mem, l->ctx);
    rl_status s = choose_interface(l);
    if (s == RL_OK) s = read_model(l, &g);
    if (s == RL_OK && l->io.port.n) s = rl_interface_apply(g, &l->io);
    if (s == RL_OK) s = optimize_graph(l, g);
    rl_graph_free(g);
    rl_arena_free(&l->io_mem);
    return s;
}

/* The moves before and after, as texts in mem: optimizing overwrites the graph. */
static rl_status find_moves(line *l, rl_graph *g, rl_arena *mem, rl_text *moves) {
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    moves->mem = mem;
    if (l->json) rl_report_moves_json(g, mem, moves);
    else rl_report_moves(g, mem, moves);
    return RL_OK;
}

static void put_stats(const rl_outcome *o, const rl_text *was, const rl_text *now, rl_text *t) {
    rl_report_counts(&o->before, t);
    if (was->n) {
        rl_put(t, "\nTransposes that move data:\n");
        rl_put_bytes(t, was->p, was->n);
    }
    rl_put(t, "\nneeded at all: %" PRId64 " of %" PRId64 " (%s)\n", o->after.moving, o->before.moving,
           o->proved == RL_PROVED_OPTIMAL ? "proved" : "not proved");
    if (o->changed && now->n) rl_put_bytes(t, now->p, now->n);
}

static rl_status report_stats(const line *l, const rl_outcome *o, const rl_text *was, const rl_text *now, rl_arena *mem) {
    rl_text t = {.mem = mem};
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    if (l->json) rl_report_stats_json(l->in, &o->before, &o->after, was, o->changed ? now : was, &t);
    else put_stats(o, was, now, &t);
    return l->json ? write_text(l, l->json, &t) : write_stdout(l->ctx, t.p, t.n);
}

static rl_status stats_of(line *l, rl_graph *g, rl_arena *mem) {
    rl_outcome o;
    rl_text was = {0}, now = {0};
    RL_TRY(rl_run_passes(g, "", &l->pass, &o));
    RL_TRY(find_moves(l, g, mem, &was));
    RL_TRY(rl_optimize(g, &l->pass, &o));
    RL_TRY(find_moves(l, g, mem, &now));
    return report_stats(l, &o, &was, &now, mem);
}

static rl_status stats(line *l) {
    rl_graph *g;
    rl_arena mem;
    rl_arena_init(&mem, l->ctx);
    rl_status s = read_model(l, &g);
    if (s == RL_OK) s = stats_of(l, g, &mem);
    rl_graph_free(g);
    rl_arena_free(&mem);
    return s;
}

static rl_status report_explain(const line *l, const rl_explanation *x, rl_arena *mem) {
    rl_text t = {.mem = mem};
    bool any;
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    if (l->json) rl_explain_json(x, l->node, &t, &any);
    else rl_explain_text(x, l->node, &t, &any);
    if (l->node && !any) return rl_fail(l->ctx, RL_EUSAGE, "no conversion or Transpose has to do with a node or tensor '%s'", l->node);
    return l->json ? write_text(l, l->json, &t) : write_stdout(l->ctx, t.p, t.n);
}

/* Whether the plan is carried out is known only when it was: one graph is optimized, another explained. */
static rl_status explain_model(line *l, rl_arena *mem) {
    rl_graph *g = NULL, *done;
    rl_outcome o = {0};
    rl_status s = read_model(l, &done);
    if (s == RL_OK) s = rl_optimize(done, &l->pass, &o);
    rl_explanation x = {.path = l->in, .target = l->pass.target, .objective = l->pass.objective, .unchanged = !o.changed, .after = o.conv_after};
    if (s == RL_OK) s = read_model(l, &g);
    if (s == RL_OK) s = rl_explain(g, done, &l->pass, mem, &x);
    if (s == RL_OK) s = report_explain(l, &x, mem);
    rl_graph_free(g);
    rl_graph_free(done);
    return s;
}

static rl_status explain(line *l) {
    rl_arena mem;
    rl_arena_init(&mem, l->ctx);
    rl_status s = explain_model(l, &mem);
    rl_arena_free(&mem);
    return s;
}

static rl_status print_graph(const line *l, const rl_graph *g) {
    rl_arena tmp;
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    rl_arena_init(&tmp, l->ctx);
    rl_text t = {.mem = &tmp};
    rl_text_print(g, l->canonical, &t);
    rl_status s = write_stdout(l->ctx, t.p, t.n);
    rl_arena_free(&tmp);
    return s;
}

static const char *const pass_names[] = {
#define PASS(name, summary) #name,
#include "../passes/passes.def"
#undef PASS
};

/* The passes up to `last`, separated by commas; false when there is none of this name. */
static bool passes_up_to(const char *last, char *names, size_t size) {
    names[0] = 0;
    for (size_t i = 0; i < RL_LEN(pass_names); i++) {
        size_t n = strlen(names);
        snprintf(names + n, size - n, "%s%s", n ? "," : "", pass_names[i]);
        if (strcmp(pass_names[i], last) == 0) return true;
    }
    return false;
}

static rl_status print(line *l) {
    rl_graph *g;
    rl_outcome o;
    char names[256] = "";
    if (l->after && !passes_up_to(l->after, names, sizeof names)) return usage_error("no pass '%s'", l->after);
    rl_status s = read_model(l, &g);
    if (s == RL_OK) s = rl_run_passes(g, names, &l->pass, &o);
    if (s == RL_OK) s = print_graph(l, g);
    rl_graph_free(g);
    return s;
}

/* ---- run, verify ---- */

static rl_status read_other(line *l, rl_graph **g) {
    const char *in = l->in;
    l->in = l->other;
    rl_status s = read_model(l, g);
    if (s == RL_OK) l->in = in; /* else messages are about the other */
    return s;
}

static rl_status execute(line *l, rl_graph *g, rl_graph *other) {
    rl_arena tmp;
    rl_arena_init(&tmp, l->ctx);
    rl_text text = {.mem = &tmp};
    l->run.input = l->inputs.item;
    l->run.ninput = l->inputs.n;
    rl_status s = other ? rl_verify_models(g, other, &l->run, &text) : rl_run_model(g, &l->run, &text);
    if (s == RL_OK) s = write_stdout(l->ctx, text.p, text.n);
    rl_arena_free(&tmp);
    return s;
}

static rl_status run_model(line *l) {
    rl_graph *g;
    if (l->run.dump_all && !l->run.output_dir) return usage_error("--dump: where to? --output-dir DIR");
    rl_status s = read_model(l, &g);
    if (s == RL_OK) s = execute(l, g, NULL);
    rl_graph_free(g);
    return s;
}

static rl_status verify(line *l) {
    rl_graph *g, *other = NULL;
    rl_status s = read_model(l, &g);
    if (s == RL_OK) s = read_other(l, &other);
    if (s == RL_OK) s = execute(l, g, other);
    rl_graph_free(g);
    rl_graph_free(other);
    return s;
}

/* The lines of a certificate that state the problem: those before anything is chosen or kept. */
static size_t problem_size(const char *s, size_t n) {
    static const char *const behind[] = {"choose ", "keep ", "fold ", "component ", "outside "};
    for (const char *p = s; p < s + n;) {
        for (size_t i = 0; i < RL_LEN(behind); i++)
            if (strncmp(p, behind[i], strlen(behind[i])) == 0) return (size_t)(p - s);
        const char *end = memchr(p, '\n', (size_t)(s + n - p));
        p = end ? end + 1 : s + n;
    }
    return n;
}

static rl_status same_problem(const line *l, const rl_text *file, const rl_text *model, uint32_t noutside) {
    size_t n = problem_size(file->p, file->n), m = problem_size(model->p, model->n), same = 0, row = 1;
    char outside[32];
    while (same < n && same < m && file->p[same] == model->p[same]) row += file->p[same++] == '\n';
    snprintf(outside, sizeof outside, "outside %" PRIu32 "\n", noutside);
    if (same == n && same == m && strncmp(model->p + m, outside, strlen(outside)) == 0) return RL_OK;
    return rl_fail(l->ctx, RL_EPROOF, "%s:%zu: this is not the problem of %s (or of another --target, --dim or --input-shape)", l->proof, row, l->in);
}

/* Transposes of the model that move data. */
static rl_status count_moving(line *l, rl_graph *g, int64_t *n) {
    rl_outcome o;
    RL_TRY(rl_run_passes(g, "", &l->pass, &o));
    rl_stats s;
    rl_stats_of(g, &s);
    *n = s.moving;
    return RL_OK;
}

static rl_status check_cert(line *l, rl_graph *in, rl_graph *out, rl_arena *mem) {
    enum { MOSTSTATES = 1 << 20 };
    rl_cert c;
    int64_t moving = 0;
    rl_text file = {.mem = mem}, problem = {.mem = mem};
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    RL_TRY(rl_file_read(l->proof, &file));
    RL_TRY(rl_cert_parse(l->ctx, mem, l->proof, file.p, file.n, &c));
    RL_TRY(rl_cert_check(l->ctx, &c, MOSTSTATES, 10 * RL_CERT_SECOND));
    RL_TRY(rl_restate(in, &l->pass, c.bytes_first, &problem));
    RL_TRY(same_problem(l, &file, &problem, c.noutside));
    RL_TRY(count_moving(l, out, &moving));
    if (moving > c.cost.count + c.noutside)
        return rl_fail(l->ctx, RL_EPROOF, "%s: %" PRId64 " Transposes move data, the certificate allows %" PRId64, l->other, moving, c.cost.count + c.noutside);
    bool least = c.bytes_first ? c.cost.bytes == c.bound.bytes : c.cost.count == c.bound.count;
    if (least) printf("proved: %" PRId64 " conversions, %" PRId64 " bytes, none fewer\n", c.cost.count, c.cost.bytes);
    else printf("a gap: %" PRId64 " conversions, %" PRId64 " bytes; at least %" PRId64 ", %" PRId64 "\n", c.cost.count, c.cost.bytes, c.bound.count, c.bound.bytes);
    return RL_OK;
}

static rl_status check_proof(line *l) {
    rl_arena mem;
    rl_graph *in, *out = NULL;
    rl_arena_init(&mem, l->ctx);
    rl_status s = read_model(l, &in);
    if (s == RL_OK) s = read_other(l, &out);
    if (s == RL_OK) s = check_cert(l, in, out, &mem);
    rl_graph_free(in);
    rl_graph_free(out);
    rl_arena_free(&mem);
    return s;
}

/* ---- bench ---- */

static void show_progress(uint32_t done, uint32_t all) {
    if (all) fprintf(stderr, "\rrun %u of %u\033[K", done, all);
    else fprintf(stderr, "\rrun %u\033[K", done);
}

static rl_status report_bench(line *l, rl_graph *g, const rl_bench *b) {
    rl_text text = {.mem = &g->mem};
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    if (l->json) {
        rl_bench_json(b, l->in, &text);
        RL_TRY(write_text(l, l->json, &text));
        if (strcmp(l->json, "-") == 0) return RL_OK;
    }
    text.n = 0;
    rl_bench_table(b, &text);
    return write_stdout(l->ctx, text.p, text.n);
}

static rl_status bench_graph(line *l, rl_graph *g) {
    rl_bench b;
    bool shows = isatty(STDERR_FILENO) != 0;
    RL_TRY(check_path(l, l->json));
    l->run.input = l->inputs.item;
    l->run.ninput = l->inputs.n;
    if (shows) l->run.progress = show_progress;
    rl_status s = rl_bench_model(g, &l->run, &b);
    if (shows) fprintf(stderr, "\r\033[K");
    return s == RL_OK ? report_bench(l, g, &b) : s;
}

static rl_status bench(line *l) {
    rl_graph *g;
    rl_status s = read_model(l, &g);
    if (s == RL_OK) s = bench_graph(l, g);
    rl_graph_free(g);
    return s;
}

static rl_status list_passes(line *l) {
    (void)l;
#define PASS(name, summary) printf("%-10s %s\n", #name, summary);
#include "../passes/passes.def"
#undef PASS
    return RL_OK;
}

static const char *class_name(rl_class c) {
    static const char *const names[] = {
        [RL_POINTWISE] = "POINTWISE", [RL_EXPAND] = "EXPAND", [RL_REDUCE] = "REDUCE", [RL_GLOBALPOOL] = "GLOBALPOOL", [RL_ARG] = "ARG",
        [RL_ALONG] = "ALONG", [RL_CONCAT] = "CONCAT", [RL_SPLIT] = "SPLIT", [RL_SLICE] = "SLICE", [RL_PAD] = "PAD", [RL_TILE] = "TILE",
        [RL_GATHER] = "GATHER", [RL_QDQ] = "QDQ", [RL_BATCHNORM] = "BATCHNORM", [RL_NORM] = "NORM", [RL_MATMUL] = "MATMUL",
        [RL_GEMM] = "GEMM", [RL_POOL] = "POOL", [RL_RESIZE] = "RESIZE", [RL_MOVING] = "MOVE", [RL_SHAPE] = "SHAPE", [RL_OPAQUE] = "OPAQUE"};
    return names[c];
}

static rl_status list_ops(line *l) {
    (void)l;
    for (uint32_t i = 0; i < RL_OP_OPAQUE; i++) {
        const rl_oprow *r = &rl_optable[i];
        char name[80];
        snprintf(name, sizeof name, "%s%s%s", r->domain, *r->domain ? "::" : "", r->type);
        printf("%-50s %-10s%s%s\n", name, class_name(r->cls), *r->roles ? " " : "", r->roles);
    }
    return RL_OK;
}

/* All targets, or the one that --target names. */
static rl_status print_targets(line *l, rl_arena *mem) {
    rl_targets all = {0};
    rl_text t = {.mem = mem};
    const rl_target *one = NULL;
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    RL_TRY(rl_targets_builtin(mem, &all));
    if (l->named_target) RL_TRY(rl_target_find(mem, l->pass.target, &one));
    if (one) rl_target_print(one, &t);
    for (uint32_t i = 0; i < all.n && !one; i++) {
        if (i) rl_put(&t, "\n");
        rl_target_print(&all.p[i], &t);
    }
    return write_stdout(l->ctx, t.p, t.n);
}

static rl_status list_targets(line *l) {
    rl_arena mem;
    rl_arena_init(&mem, l->ctx);
    rl_status s = print_targets(l, &mem);
    rl_arena_free(&mem);
    return s;
}

/* Before the model is read: what is wrong with the target has nothing to do with it. */
static rl_status check_target(line *l) {
    rl_arena tmp;
    const rl_target *t;
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    rl_arena_init(&tmp, l->ctx);
    rl_status s = rl_target_find(&tmp, l->pass.target, &t);
    rl_arena_free(&tmp);
    if (s != RL_OK) complain(NULL, l->ctx->error);
    return s;
}

static void log_line(void *user, rl_log_level level, const char *text) {
    (void)level;
    fprintf(stderr, "%8.3f s  %s\n", rl_seconds() - *(double *)user, text);
}

static rl_status run(line *l, const command *c) {
    rl_status s;
    l->start = rl_seconds();
    l->pass.print = to_stderr;
    l->named_target = l->pass.target != NULL;
    if (!l->pass.target) l->pass.target = "generic";
    if (!l->pass.objective) l->pass.objective = "nodes";
    const rl_context host = {.struct_size = sizeof host, .user = &l->start, .log = l->verbose ? log_line : NULL};
    l->ctx = rl_ctx_new_for(0, &host);
    if (!l->ctx) {
        complain(NULL, "out of memory");
        return RL_ENOMEM;
    }
    s = check_target(l);
    if (s == RL_OK) s = c->run(l);
    else l->ctx->error[0] = 0;
    bool memory = strncmp(l->ctx->error, "<memory>: ", 10) == 0;
    if (s != RL_OK && l->ctx->error[0]) complain(memory ? "stdin" : l->in, l->ctx->error + (memory ? 10 : 0));
    rl_ctx_free(l->ctx);
    return s;
}

/* What is neither a command nor a file, and looks like a command. */
static bool suggest_command(const char *word) {
    const char *known[RL_LEN(commands)];
    for (size_t i = 0; i < RL_LEN(commands); i++) known[i] = commands[i].name;
    const char *hint = rl_hint(word, known, RL_LEN(known));
    if (hint) usage_error("no command '%s'; did you mean %s?", word, hint);
    return hint != NULL;
}

int main(int argc, char **argv) {
    line l = {.run = {.rtol = 1e-4, .atol = 1e-6}};
    bool done = false;
    if (argc < 2) {
        help_all();
        return RL_EUSAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        help_all();
        return RL_OK;
    }
    const command *c = find_command(argv[1]);
    bool named = c != NULL;
    if (named && !c->run) return (int)rl_layout_command(argc - 1, argv + 1);
    if (!c && argv[1][0] != '-' && access(argv[1], F_OK) != 0 && suggest_command(argv[1])) return RL_EUSAGE;
    if (!c) c = &commands[0]; /* relayout IN OUT */
    rl_status s = parse_options(&l, c, argc - named, argv + named, &done);
    if (s == RL_OK && !done) s = parse_files(&l, c, argc - named, argv + named);
    if (s == RL_OK && !done) s = run(&l, c);
    if (s == RL_OK && fflush(stdout) != 0) s = RL_EIO;
    return (int)s;
}
