/* Embedding relayout: embed IN.onnx OUT.onnx
 *
 * Reads a model into memory, optimizes it for onnxruntime, writes it, and says why each conversion that is left is needed.  Ctrl-C
 * stops it at the next question of the solver and leaves no file.  With the runtime (-DWITH_RUNTIME) both models are run on random
 * inputs and compared.  This file is C and C++. */
#include <relayout.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile sig_atomic_t interrupted;
static void on_interrupt(int number) { interrupted = number; }
static int stop(void *user) { return *(volatile sig_atomic_t *)user != 0; }
static void log_line(void *user, rl_log_level level, const char *text) {
    (void)user;
    if (level >= RL_LOG_INFO) fprintf(stderr, "relayout: %s\n", text);
}

static void *slurp(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    void *p = NULL;
    long size = -1;
    if (f && fseek(f, 0, SEEK_END) == 0) size = ftell(f);
    if (size >= 0) p = malloc((size_t)size + 1);
    *n = 0;
    if (p) {
        rewind(f);
        *n = fread(p, 1, (size_t)size, f);
    }
    if (f) fclose(f);
    return p;
}

static int spill(const char *path, const void *p, size_t n) {
    FILE *f = fopen(path, "wb");
    if (!f) return 0;
    int whole = fwrite(p, 1, n, f) == n;
    return fclose(f) == 0 && whole;
}

static int fail(rl_status s, const rl_result *r) {
    fprintf(stderr, "%s\n", r->error);
    return (int)s;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: embed IN.onnx OUT.onnx   (relayout %s)\n", rl_version());
        return RL_EUSAGE;
    }
    size_t nin, nout;
    void *in = slurp(argv[1], &nin), *out;
    if (!in) {
        perror(argv[1]);
        return RL_EIO;
    }
    signal(SIGINT, on_interrupt);

    /* All that is not set is 0, also what a later header adds. */
    rl_context context;
    memset(&context, 0, sizeof context);
    context.struct_size = sizeof context;
    context.user = (void *)&interrupted;
    context.log = log_line;
    context.stop = stop;
    rl_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.target = "ort";
    options.context = &context;
    rl_result r;
    rl_status s = rl_optimize_bytes(in, nin, &out, &nout, &options, &r);
    free(in);
    if (s != RL_OK) return fail(s, &r);
    printf("%lld -> %lld conversions%s\n", (long long)r.conversions_before, (long long)r.conversions_after,
           r.proof == RL_MINIMUM ? ", the fewest there can be" : "");
    int written = spill(argv[2], out, nout);
    rl_free(out);
    if (!written) {
        perror(argv[2]);
        return RL_EIO;
    }

    char *json;
    rl_model model = {argv[2], NULL, 0};
    s = rl_model_explain(&model, NULL, &options, &json, &r);
    if (s != RL_OK) return fail(s, &r);
    puts(json);
    rl_free(json);
#ifdef WITH_RUNTIME
    rl_model original = {argv[1], NULL, 0};
    s = rl_model_verify(&original, &model, NULL, &options, &r);
    if (s != RL_OK) return fail(s, &r);
    puts("same outputs");
#endif
    return 0;
}
