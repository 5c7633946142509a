/* Checks certificates without their models, for tests/python/test_cert.py.
 *   cert_cli check [--maxstate N] FILE    prints "holds" or why not; ends with the status
 *   cert_cli print FILE                   reads the file and prints it
 *   cert_cli each                         reads the names of files from stdin: for each a line "status message" */
#include "../../src/cert.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAXSTATE = 1 << 16 };

static char *read_file(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    long size = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    char *p = size >= 0 && fseek(f, 0, SEEK_SET) == 0 ? malloc((size_t)size + 1) : NULL;
    *n = p ? fread(p, 1, (size_t)size, f) : 0;
    if (f) fclose(f);
    return p;
}

static rl_status read_and_check(rl_ctx *ctx, const char *path, const char *p, size_t n, uint32_t maxstate, bool print) {
    rl_arena mem;
    rl_cert c;
    if (RL_PROTECT(ctx)) return RL_ENOMEM;
    rl_arena_init(&mem, ctx);
    rl_status s = rl_cert_parse(ctx, &mem, path, p, n, &c);
    rl_text t = {.mem = &mem};
    if (s == RL_OK && print) rl_cert_print(&c, &t);
    if (s == RL_OK && print) fwrite(t.p, 1, t.n, stdout);
    if (s == RL_OK && !print) s = rl_cert_check(ctx, &c, maxstate, 10 * RL_CERT_SECOND, NULL);
    return s;
}

/* prefix: the status before the message. */
static rl_status run(const char *path, uint32_t maxstate, bool print, bool prefix) {
    size_t n;
    char *p = read_file(path, &n);
    rl_ctx *ctx = rl_ctx_new((size_t)4 << 30);
    if (!p || !ctx) {
        fprintf(stderr, "cert_cli: cannot read %s\n", path);
        exit(RL_EIO);
    }
    rl_status s = read_and_check(ctx, path, p, n, maxstate, print);
    if (prefix) printf("%d ", (int)s);
    if (s != RL_OK) printf("%s\n", ctx->error);
    else if (!print) printf("holds\n");
    rl_ctx_free(ctx);
    free(p);
    return s;
}

int main(int argc, char **argv) {
    char line[4096];
    if (argc == 3 && strcmp(argv[1], "check") == 0) return (int)run(argv[2], MAXSTATE, false, false);
    if (argc == 5 && strcmp(argv[1], "check") == 0) return (int)run(argv[4], (uint32_t)strtoul(argv[3], NULL, 10), false, false);
    if (argc == 3 && strcmp(argv[1], "print") == 0) return (int)run(argv[2], MAXSTATE, true, false);
    if (argc != 2 || strcmp(argv[1], "each") != 0) {
        fprintf(stderr, "usage: cert_cli check [--maxstate N] FILE | print FILE | each\n");
        return RL_EUSAGE;
    }
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        run(line, MAXSTATE, false, true);
        fflush(stdout);
    }
    return 0;
}
