/* The data of initializers: into the model, into one file beside it, or into a file each; and the files of a model that is written to
 * another folder (onnx.h).
 *
 *   keep      the model's tensors say what they said; files go along to another folder
 *   inline    every initializer's data is in the model
 *   w.bin     data of 1 KiB and more is in w.bin, each at a multiple of 64 bytes (4096 from 64 KiB on), so that it can be mapped
 *   data/     the same, each tensor's in a file of its own in the folder data
 *
 * What attributes and bodies refer to stays where it is, and is carried along.  Files are written before the model, each whole or
 * not at all; one of the input is never written over. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "onnx_writer.h"

enum { SMALL = 1024, ALIGN = 64, PAGE = 4096, PAGED = 65536, LOCATION_EXTERNAL = 1 };

/* ---- one tensor ---- */

/* Fields of a TensorProto that hold its data, or say where it is. */
#define DATA_FIELDS                                                                                                  \
    (UINT64_C(1) << 4 | UINT64_C(1) << 5 | UINT64_C(1) << 6 | UINT64_C(1) << 7 | UINT64_C(1) << TENSOR_RAW_DATA | UINT64_C(1) << 10   \
     | UINT64_C(1) << 11 | UINT64_C(1) << TENSOR_EXTERNAL_DATA | UINT64_C(1) << TENSOR_DATA_LOCATION)

/* A file's name for a tensor: letters, digits, dots and so on of its own, and a number where that was taken. */
static rl_str name_file(rl_writer *w, const char *name) {
    char s[96];
    size_t n = 0;
    for (; name && name[n] && n + 1 < sizeof s; n++) {
        bool plain = (name[n] >= '0' && name[n] <= '9') || (name[n] >= 'a' && name[n] <= 'z') || (name[n] >= 'A' && name[n] <= 'Z');
        s[n] = plain || (n && strchr("._-", name[n])) ? name[n] : '_';
    }
    s[n] = 0;
    rl_str location = rl_internf(w->ctx, "%s%s", w->external, n ? s : "tensor");
    for (uint32_t k = 1; rl_hash_get(&w->places, (uint64_t)(uintptr_t)location) != RL_NONE; k++)
        location = rl_internf(w->ctx, "%s%s_%" PRIu32, w->external, n ? s : "tensor", k);
    rl_hash_put(&w->places, (uint64_t)(uintptr_t)location, w->placed.n);
    return location;
}

/* The place of data; the same data gets the same. */
static const rl_placed *place(rl_writer *w, const char *name, rl_span data) {
    uint64_t key = (uint64_t)(uintptr_t)data.p;
    uint32_t i = rl_hash_get(&w->places, key);
    if (i != RL_NONE && w->placed.p[i].bytes.n == data.n) return &w->placed.p[i];
    rl_placed p = {data, 0, w->external};
    if (w->mode == RL_DATA_FOLDER) {
        p.location = name_file(w, name);
    } else {
        uint64_t align = data.n >= PAGED ? PAGE : ALIGN;
        p.offset = (w->end + align - 1) / align * align;
        w->end = p.offset + data.n;
    }
    rl_hash_put(&w->places, key, w->placed.n);
    rl_push(w->mem, w->placed, p);
    return &w->placed.p[w->placed.n - 1];
}

static void put_entry(rl_writer *w, const char *key, const char *value) {
    rl_opened o = rl_writer_open(w, TENSOR_EXTERNAL_DATA);
    rl_writer_text(w, 1, key);
    rl_writer_text(w, 2, value);
    rl_writer_close(w, o);
}

void rl_writer_data(rl_writer *w, const char *name, rl_span data) {
    static const uint8_t external[] = {TENSOR_DATA_LOCATION << 3, LOCATION_EXTERNAL};
    bool file = w->mode == RL_DATA_FILE || w->mode == RL_DATA_FOLDER || w->mode == RL_DATA_MADE;
    if (!file || data.n < SMALL) {
        rl_writer_len(w, TENSOR_RAW_DATA, data);
        return;
    }
    const rl_placed *p = place(w, name, data);
    put_entry(w, "location", p->location);
    put_entry(w, "offset", rl_internf(w->ctx, "%" PRIu64, p->offset));
    put_entry(w, "length", rl_internf(w->ctx, "%zu", data.n));
    rl_writer_put(w, external, sizeof external);
}

static rl_span name_in(rl_span tensor, bool *external) {
    rl_span name = {0};
    *external = false;
    rl_wire r = rl_wire_of(tensor);
    for (rl_field f; rl_wire_next(&r, &f);) {
        if (f.number == TENSOR_NAME) name = f.body;
        if (f.number == TENSOR_DATA_LOCATION && f.type == RL_WIRE_VARINT) *external = f.value == LOCATION_EXTERNAL;
    }
    return name;
}

rl_status rl_writer_initializer(rl_writer *w, const rl_graph *g, rl_span bytes) {
    rl_const c;
    const rl_span *strings;
    bool external;
    rl_span name = name_in(bytes, &external);
    /* Data that is decoded goes to the graph's arena: nothing else of it changes. */
    rl_status s = rl_onnx_tensor((rl_graph *)(uintptr_t)g, bytes, &c, &strings);
    if (s != RL_OK && s != RL_ELIMIT) return s;
    bool moves = s == RL_OK && !strings && (external || (w->mode != RL_DATA_INLINE && c.nbyte >= SMALL));
    if (!moves && external) return rl_fail(w->ctx, RL_ELIMIT, "initializer '%.*s': its data cannot be moved", (int)RL_MIN(name.n, 100u), name.p);
    if (!moves) {
        rl_writer_len(w, GRAPH_INITIALIZER, bytes);
        return RL_OK;
    }
    rl_opened o = rl_writer_open(w, GRAPH_INITIALIZER);
    rl_writer_others(w, bytes, DATA_FIELDS);
    rl_writer_data(w, rl_intern(w->ctx, (const char *)name.p, name.n), (rl_span){c.data, c.nbyte});
    rl_writer_close(w, o);
    return RL_OK;
}

/* ---- files that are carried along ---- */

static int compare_spans(const void *a, const void *b) {
    const uint8_t *x = ((const rl_span *)a)->p, *y = ((const rl_span *)b)->p;
    return x < y ? -1 : x > y;
}

/* Whether p lies in one of the n sorted spans. */
static bool is_written(const rl_span *s, uint32_t n, const uint8_t *p) {
    uint32_t lo = 0, hi = n; /* s[lo].p <= p < s[hi].p */
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (s[mid].p <= p) lo = mid;
        else hi = mid;
    }
    return n && s[lo].p <= p && p < s[lo].p + s[lo].n;
}

typedef struct { rl_str *p; uint32_t n, cap; } locations;

/* The locations that the written bytes name, each once. */
static void find_locations(rl_writer *w, const struct rl_onnx *o, locations *out) {
    rl_span *sorted = rl_copy(w->mem, w->chunk.p, w->chunk.n * sizeof *w->chunk.p);
    rl_hash seen = {.mem = w->mem};
    qsort(sorted, w->chunk.n, sizeof *sorted, compare_spans);
    for (uint32_t i = 0; i < o->location.n; i++) {
        rl_span s = o->location.p[i];
        if (!s.n || !is_written(sorted, w->chunk.n, s.p)) continue;
        rl_str name = rl_intern(w->ctx, (const char *)s.p, s.n);
        if (rl_hash_get(&seen, (uint64_t)(uintptr_t)name) != RL_NONE) continue;
        rl_hash_put(&seen, (uint64_t)(uintptr_t)name, 1);
        rl_push(w->mem, *out, name);
    }
}

rl_status rl_writer_all_inline(rl_writer *w) {
    const struct rl_onnx *o = w->main->onnx;
    locations l = {0};
    if (o && o->location.n) find_locations(w, o, &l);
    return l.n ? rl_fail(w->ctx, RL_ELIMIT, "external data '%.200s' belongs to a body or an attribute: it cannot be put inline", l.p[0]) : RL_OK;
}

/* Of those that go along: in the model's folder, and not where new data goes. Absolute ones stay what they are. */
static rl_status check_locations(rl_writer *w, locations *l) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        rl_str name = l->p[i];
        if (*name == '/') continue;
        if (!rl_file_is_beneath(name))
            return rl_fail(w->ctx, RL_ELIMIT, "external data '%.200s' is outside the model's folder: it cannot go along to another", name);
        for (uint32_t k = 0; k < w->placed.n; k++)
            if (w->placed.p[k].location == name)
                return rl_fail(w->ctx, RL_EUSAGE, "external data '%.200s': what bodies or attributes refer to has this name already", name);
        l->p[n++] = name;
    }
    l->n = n;
    return RL_OK;
}

/* The input's files: what is mapped may be copied from, and none is written over. */
static void find_sources(rl_arena *mem, const struct rl_onnx *o, rl_sources *out) {
    rl_hash seen = {.mem = mem};
    for (const rl_mapping *m = o ? o->mapping : NULL; m; m = m->next) {
        rl_str path = !m->key ? o->path : *m->key == '/' ? m->key : rl_internf(mem->ctx, "%s%s", o->dir, m->key);
        rl_push(mem, *out, ((rl_onnx_source){m->bytes, path, m->id}));
    }
    for (uint32_t i = 0; o && o->dir && i < o->location.n; i++) {
        struct stat st;
        rl_str path = rl_internf(mem->ctx, "%s%.*s", o->dir, (int)o->location.p[i].n, o->location.p[i].p);
        if (rl_hash_get(&seen, (uint64_t)(uintptr_t)path) != RL_NONE) continue;
        rl_hash_put(&seen, (uint64_t)(uintptr_t)path, 1);
        if (stat(path, &st) == 0) rl_push(mem, *out, ((rl_onnx_source){{0}, path, {st.st_dev, st.st_ino}}));
    }
}

/* The one of these that path is, but for the model itself. */
static const char *data_at(const struct rl_onnx *o, const rl_sources *from, const char *path) {
    struct stat st;
    if (!o || stat(path, &st) != 0) return NULL;
    for (uint32_t i = 0; i < from->n; i++)
        if (from->p[i].path != o->path && from->p[i].id.dev == st.st_dev && from->p[i].id.ino == st.st_ino) return from->p[i].path;
    return NULL;
}

rl_status rl_onnx_data_at(const rl_graph *g, const char *path, const char **found) {
    rl_arena tmp;
    rl_sources from = {0};
    if (RL_PROTECT(g->ctx)) return RL_ENOMEM;
    rl_arena_init(&tmp, g->ctx);
    find_sources(&tmp, g->onnx, &from);
    *found = data_at(g->onnx, &from, path);
    rl_arena_free(&tmp);
    return RL_OK;
}

static rl_status carry(rl_ctx *ctx, const struct rl_onnx *o, const char *dir, rl_str location, const rl_sources *from, bool *made) {
    for (const rl_mapping *m = o->mapping; m; m = m->next)
        if (m->key == location) return rl_file_put_beneath(ctx, dir, location, m->bytes, from, made);
    rl_span bytes;
    RL_TRY(rl_file_map_beneath(ctx, o->dir, location, o->any_external, &bytes, NULL));
    rl_status status = rl_file_put_beneath(ctx, dir, location, bytes, NULL, made);
    rl_file_unmap(bytes);
    return status;
}

/* ---- writing ---- */

/* The spans of one file, with zeros between. */
static uint32_t list_file(const rl_writer *w, uint32_t first, rl_span *out) {
    static const uint8_t zeros[PAGE];
    uint64_t at = 0;
    uint32_t n = 0;
    for (uint32_t i = first; i < w->placed.n && w->placed.p[i].location == w->placed.p[first].location; i++) {
        const rl_placed *p = &w->placed.p[i];
        out[n++] = (rl_span){zeros, p->offset - at};
        out[n++] = p->bytes;
        at = p->offset + p->bytes.n;
    }
    return n;
}

typedef struct { rl_str location; bool made; } written;

/* No two things go to one file, and none over the input's data. */
static rl_status check_places(rl_writer *w, const struct rl_onnx *o, const char *path, rl_str dir, const locations *l, const rl_sources *from) {
    const char *data = data_at(o, from, path);
    if (data) return rl_fail(w->ctx, RL_EUSAGE, "the model would go over %.400s, which is its external data", data);
    for (uint32_t i = 0; i < w->placed.n + l->n; i++) {
        rl_str name = i < w->placed.n ? w->placed.p[i].location : l->p[i - w->placed.n];
        if (i && i < w->placed.n && name == w->placed.p[i - 1].location) continue;
        rl_str place = rl_internf(w->ctx, "%s%s", dir, name);
        if (rl_file_same_place(place, path)) return rl_fail(w->ctx, RL_EUSAGE, "external data '%.200s': that is the model itself", name);
        for (const char *const *t = w->taken; t && *t; t++)
            if (rl_file_same_place(place, *t)) return rl_fail(w->ctx, RL_EUSAGE, "external data '%.200s' and something else would both go to %.400s", name, *t);
    }
    return RL_OK;
}

/* What writing needs: all memory is had before a lock is. */
typedef struct { rl_str dir; rl_sources from; written *done; rl_span *spans; } job;

/* Data first, the model last; what was not there before goes again where something fails.  A file that is there may be another
 * model's: it is replaced only together with a model. */
static rl_status write_files(rl_writer *w, const struct rl_onnx *o, const char *path, const locations *l, const job *j) {
    struct stat st;
    bool replaces = stat(path, &st) == 0;
    written *done = j->done;
    rl_status status = RL_OK;
    uint32_t n = 0;
    for (uint32_t i = 0, m; i < w->placed.n && status == RL_OK; i += m / 2) {
        m = list_file(w, i, j->spans);
        done[n].location = w->placed.p[i].location;
        status = rl_file_write_beneath(w->ctx, j->dir, done[n].location, replaces, j->spans, m, &j->from, &done[n].made);
        n++;
    }
    for (uint32_t i = 0; i < l->n && status == RL_OK; i++) {
        done[n].location = l->p[i];
        status = carry(w->ctx, o, j->dir, l->p[i], &j->from, &done[n].made);
        n++;
    }
    if (status == RL_OK) status = rl_file_write_spans(w->ctx, path, w->chunk.p, w->chunk.n, &j->from);
    for (uint32_t i = 0; i < n && status != RL_OK; i++)
        if (done[i].made) rl_file_drop_beneath(j->dir, done[i].location);
    return status;
}

static rl_status write_all(rl_writer *w, const struct rl_onnx *o, const char *path, const locations *l) {
    job j = {.dir = rl_file_dir(w->ctx, path)};
    find_sources(w->mem, o, &j.from);
    RL_TRY(check_places(w, o, path, j.dir, l, &j.from));
    j.done = rl_new(w->mem, written, l->n + w->placed.n + 1);
    j.spans = rl_new(w->mem, rl_span, 2 * w->placed.n + 1);
    int lock = l->n + w->placed.n ? rl_file_lock_dir(j.dir) : -1;
    rl_status status = write_files(w, o, path, l, &j);
    rl_file_unlock_dir(lock);
    return status;
}

/* The last part of a path. */
static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool rl_onnx_moves_data(const char *external) {
    return external && strcmp(external, "keep") != 0;
}

bool rl_onnx_packs(const char *external) {
    return !rl_onnx_moves_data(external) || strcmp(external, "inline") == 0;
}

static rl_status choose_mode(rl_writer *w, const char *path, const char *external) {
    size_t n = external ? strlen(external) : 0;
    w->mode = RL_DATA_KEEP;
    if (!rl_onnx_moves_data(external)) return RL_OK;
    w->mode = RL_DATA_INLINE;
    if (strcmp(external, "inline") == 0) return RL_OK;
    if (rl_file_descriptor(path) >= 0) return rl_fail(w->ctx, RL_EUSAGE, "external data '%.200s': what is written to has no folder", external);
    w->mode = n && external[n - 1] == '/' ? RL_DATA_FOLDER : RL_DATA_FILE;
    w->external = rl_internz(w->ctx, external);
    if (rl_file_is_beneath(external)) return RL_OK;
    return rl_fail(w->ctx, RL_EUSAGE, "external data '%.200s': it must name a file beneath the model's folder", external);
}

/* Does the model refer to a file of this name, or does one lie in its own folder, which may be another model's? */
static bool is_taken(const struct rl_onnx *o, rl_str dir, rl_str name) {
    struct stat st;
    for (uint32_t i = 0; o && i < o->location.n; i++)
        if (strlen(name) == o->location.p[i].n && rl_same_bytes(name, o->location.p[i].p, o->location.p[i].n)) return true;
    return o && o->dir && rl_file_same_dir(o->dir, dir) && stat(rl_internf(o->mem->ctx, "%s%s", dir, name), &st) == 0;
}

/* A name for data made here: OUT.data, OUT.data2 ... */
static rl_str free_name(rl_writer *w, const struct rl_onnx *o, const char *path) {
    rl_str name = rl_internf(w->ctx, "%s.data", last_part(path)), dir = rl_file_dir(w->ctx, path);
    for (uint32_t k = 2; is_taken(o, dir, name); k++) name = rl_internf(w->ctx, "%s.data%" PRIu32, last_part(path), k);
    return name;
}

/* The spans, with data made here in a file where the model is too large for protobuf otherwise. */
static rl_status list(rl_writer *w, const rl_graph *g, const char *path, rl_arena *tmp) {
    rl_status s = rl_writer_list(w, g, tmp);
    if (s != RL_ELIMIT || w->total <= INT32_MAX || w->mode != RL_DATA_KEEP || rl_file_descriptor(path) >= 0) return s;
    w->mode = RL_DATA_MADE;
    w->external = free_name(w, g->onnx, path);
    return rl_writer_list(w, g, tmp);
}

/* same: the bytes as they were read. */
static rl_status write_model(rl_writer *w, const rl_graph *g, const char *path, bool same, rl_arena *tmp) {
    locations l = {0};
    struct rl_onnx *o = g->onnx;
    if (same) rl_writer_span(w, o->bytes);
    else RL_TRY(list(w, g, path, tmp));
    bool open = rl_file_descriptor(path) >= 0; /* nobody knows where that is: data stays */
    bool away = o && o->dir && !open && !rl_file_same_dir(o->dir, rl_file_dir(g->ctx, path));
    if (w->mode == RL_DATA_INLINE) RL_TRY(rl_writer_all_inline(w));
    else if (away && o->location.n) find_locations(w, o, &l);
    RL_TRY(check_locations(w, &l));
    return write_all(w, o, path, &l);
}

static rl_status write_with(const rl_graph *g, const char *path, bool same, const char *external, const char *const *taken) {
    rl_arena tmp;
    rl_writer w = {.ctx = g->ctx, .mem = &tmp, .main = g, .taken = taken};
    if (RL_PROTECT(g->ctx)) return RL_ENOMEM; /* nothing was written: that is the last to be done */
    rl_arena_init(&tmp, g->ctx);
    rl_status status = choose_mode(&w, path, external);
    if (status == RL_OK) status = write_model(&w, g, path, same, &tmp);
    rl_arena_free(&tmp);
    if (status == RL_OK) return status;
    char *e = g->ctx->error;
    rl_onnx_one_line(e);
    return strncmp(e, path, RL_MIN(strlen(path), (size_t)400)) == 0 ? status : rl_fail(g->ctx, status, "%.400s: %s", path, e);
}

rl_status rl_onnx_write(const rl_graph *g, const char *path, const char *external, const char *const *taken) {
    return write_with(g, path, false, external, taken);
}

rl_status rl_onnx_copy(const rl_graph *g, const char *path, const char *const *taken) {
    return write_with(g, path, g->onnx != NULL, NULL, taken);
}
