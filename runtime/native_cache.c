/* Measured costs, kept from run to run as text: see native_probe.h.
 *
 *   relayout-costs 4                                    one more when own kernels change so much that old costs mislead
 *   AMD EPYC, avx512, oneDNN 3.2.0, 1 thread
 *   5a0b1c2d3e4f5061 41000 1 acdb jit_avx512_core       key, ns, layouts of the outputs, the kernel
 *   77aa0b1c2d3e4f50 -1 0 ref                           no optimized kernel
 *   end 2 0123456789abcdef                              lines, and a hash of them */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../src/onnx.h"
#include "native_probe.h"

enum { MOST = 64 << 20 };

/* ---- where ---- */

static bool make_folder(const char *path) {
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

static void find_path(rl_costs *c) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    rl_text t = {.mem = c->mem};
    if (cache && *cache) rl_put(&t, "%s", cache);
    else if (home && *home) rl_put(&t, "%s/.cache", home);
    else return;
    if (!make_folder(t.p)) return;
    rl_put(&t, "/relayout");
    if (!make_folder(t.p)) return;
    rl_put(&t, "/costs-%016" PRIx64 ".txt", rl_hash_bytes(c->machine, strlen(c->machine)));
    c->path = t;
}

/* ---- lines ---- */

const rl_cost_row *rl_costs_find(const rl_costs *c, uint64_t key) {
    uint32_t i = rl_hash_get(&c->at, key);
    return i == RL_NONE ? NULL : &c->all.row[i];
}

static void add_row(rl_costs *c, uint64_t key, const rl_cost_row *row) {
    uint32_t n = c->all.n, cap = n ? 2 * n : 64;
    if (n == c->all.cap) {
        c->all.key = rl_grow(c->mem, c->all.key, n, cap, sizeof *c->all.key);
        c->all.row = rl_grow(c->mem, c->all.row, n, cap, sizeof *c->all.row);
        c->all.cap = cap;
    }
    c->all.key[n] = key;
    c->all.row[n] = *row; /* NOLINT(clang-analyzer-core.NullDereference): there is room for cap rows */
    c->all.n++;
    rl_hash_put(&c->at, key, n);
}

void rl_costs_put(rl_costs *c, uint64_t key, const rl_cost_row *row) {
    if (rl_costs_find(c, key)) return;
    add_row(c, key, row);
    c->changed = true;
}

static void put_row(rl_text *t, uint64_t key, const rl_cost_row *r) {
    rl_put(t, "%016" PRIx64 " %" PRId64 " %u", key, r->impl ? r->ns : -1, r->nout);
    for (uint32_t i = 0; i < r->nout; i++) {
        rl_put(t, " ");
        rl_lay_put(&r->out[i], t);
    }
    rl_put(t, " %s\n", r->impl ? r->impl : "ref");
}

/* Words of one line, at most n; how many there are. */
static uint32_t split(char *s, char **word, uint32_t n) {
    uint32_t k = 0;
    for (char *at = s; *at;) {
        while (*at == ' ') *at++ = 0;
        if (!*at) break;
        if (k == n) return n + 1;
        word[k++] = at;
        while (*at && *at != ' ') at++;
    }
    return k;
}

static bool read_row(rl_ctx *ctx, rl_costs *c, char *line) {
    char *word[9], *end;
    uint32_t n = split(line, word, RL_LEN(word));
    rl_cost_row r = {0};
    if (n < 4 || n > 8 || strlen(word[0]) != 16) return false;
    uint64_t key = strtoull(word[0], &end, 16);
    if (*end) return false;
    r.ns = strtoll(word[1], &end, 10);
    if (*end || r.ns < -1 || r.ns > INT64_MAX / 1000000) return false;
    r.nout = (uint32_t)strtoul(word[2], &end, 10);
    if (*end || r.nout > RL_LEN(r.out) || n != r.nout + 4) return false;
    for (uint32_t i = 0; i < r.nout; i++)
        if (!rl_lay_parse(word[3 + i], strlen(word[3 + i]), &r.out[i])) return false;
    if (r.ns >= 0) r.impl = rl_internz(ctx, word[n - 1]);
    if (!rl_costs_find(c, key)) add_row(c, key, &r);
    return true;
}

/* ---- the file ---- */

static bool read_all(rl_ctx *ctx, rl_costs *c, rl_text *t) {
    char *line[3] = {t->p};
    size_t all = t->n; /* a 0 follows (rl_file_read) */
    for (uint32_t i = 0; i < 2; i++) {
        char *nl = strchr(line[i], '\n');
        if (!nl) return false;
        *nl = 0;
        line[i + 1] = nl + 1;
    }
    if (strcmp(line[0], "relayout-costs 4") != 0 || strcmp(line[1], c->machine) != 0) return false;
    char *last = t->p + all;
    if (all < 2 || last[-1] != '\n') return false;
    last[-1] = 0;
    while (last > line[2] && last[-1] != '\n') last--;
    char want[64];
    uint32_t n = 0;
    for (const char *p = line[2]; p < last; p++) n += *p == '\n';
    snprintf(want, sizeof want, "end %u %016" PRIx64, n, rl_hash_bytes(line[2], (size_t)(last - line[2])));
    if (strcmp(last, want) != 0) return false;
    for (char *p = line[2]; p < last;) {
        char *nl = strchr(p, '\n');
        *nl = 0;
        if (!read_row(ctx, c, p)) return false;
        p = nl + 1;
    }
    return true;
}

static void read_file(rl_rt *rt, rl_costs *c) {
    struct stat is;
    rl_text t = {.mem = c->mem};
    if (stat(c->path.p, &is) != 0 || is.st_size > MOST) return;
    if (rl_file_read(c->path.p, &t) == RL_OK && read_all(rt->ctx, c, &t)) return;
    rl_log(rt->ctx, RL_LOG_WARNING, "%s is damaged, or of another version or machine: it is left out", c->path.p);
    rt->ctx->error[0] = 0;
    c->all.n = 0;
    c->at = (rl_hash){.mem = c->mem};
}

void rl_costs_open(rl_rt *rt, rl_arena *mem, rl_costs *c) {
    rl_text t = {.mem = mem};
    *c = (rl_costs){.mem = mem, .at = {.mem = mem}};
    rl_native_machine(rt, &t);
    c->machine = t.p;
    find_path(c);
    if (c->path.n) read_file(rt, c);
}

void rl_costs_close(rl_rt *rt, rl_costs *c) {
    if (!c->changed || !c->path.n) return;
    rl_text t = {.mem = c->mem};
    rl_put(&t, "relayout-costs 4\n%s\n", c->machine);
    size_t from = t.n;
    for (uint32_t i = 0; i < c->all.n; i++) put_row(&t, c->all.key[i], &c->all.row[i]);
    uint64_t h = rl_hash_bytes(t.p + from, t.n - from);
    rl_put(&t, "end %u %016" PRIx64 "\n", c->all.n, h);
    if (rl_file_write(rt->ctx, c->path.p, t.p, t.n) == RL_OK) return;
    rl_log(rt->ctx, RL_LOG_WARNING, "%s", rt->ctx->error);
    rt->ctx->error[0] = 0;
}
