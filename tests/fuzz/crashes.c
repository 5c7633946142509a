/* Every input that once crashed a fuzz target, again, in any build: crashes FOLDER, which has a folder per target (tests/fuzz/crashes).
 * It ends without a crash, or not at all.
 *
 *   crashes tests/fuzz/crashes               all
 *   scripts/fuzz.sh 60 run                   what it finds, in build-fuzz/found/run-crash-..., goes to tests/fuzz/crashes/run/WHY */
#include <dirent.h>

#include "fuzz.h"

typedef int target_fn(const uint8_t *p, size_t n);
target_fn fuzz_onnx, fuzz_text, fuzz_cert, fuzz_optimize, fuzz_run, fuzz_values, fuzz_target, fuzz_plan, fuzz_structured;

static const struct { const char *name; target_fn *fn; } targets[] = {
    {"onnx", fuzz_onnx}, {"text", fuzz_text},     {"cert", fuzz_cert},     {"optimize", fuzz_optimize},
    {"run", fuzz_run},   {"values", fuzz_values}, {"target", fuzz_target}, {"plan", fuzz_plan},
    {"structured", fuzz_structured},
};

/* The bytes of one file, in a block of just their size, so that a sanitizer sees a read beyond them. */
static bool replay(const char *path, target_fn *fn) {
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END)) return false;
    long n = ftell(f);
    uint8_t *p = malloc((size_t)n);
    rewind(f);
    bool read = p && fread(p, 1, (size_t)n, f) == (size_t)n;
    fclose(f);
    printf("%s\n", path);
    fflush(stdout);
    if (read) fn(p, (size_t)n);
    free(p);
    return read;
}

static int replay_all(const char *folder, target_fn *fn) {
    char path[4096];
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        if (snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= (int)sizeof path || !replay(path, fn)) {
            fprintf(stderr, "%s/%s: cannot be read\n", folder, e->d_name);
            n = -1;
            break;
        }
        n++;
    }
    if (d) closedir(d);
    return n;
}

int main(int argc, char **argv) {
    char folder[4096];
    int all = 0;
    for (size_t i = 0; i < RL_LEN(targets) && argc == 2; i++) {
        snprintf(folder, sizeof folder, "%s/%s", argv[1], targets[i].name);
        int n = replay_all(folder, targets[i].fn);
        if (n < 0) return 1;
        all += n;
    }
    printf("%d passed, 0 failed\n", all);
    return all == 0;
}
