/* What the reader keeps for the writer, and the files both use. The program reads and writes files by this, too, and looks up types in a model (runtime/values.c).
 *
 * Bytes of the model stay where they are mapped.  `bytes` of the main graph is the ModelProto, of a body its GraphProto; the
 * writer walks them again, field by field, and replaces only what changed. */
#ifndef RL_ONNX_INTERNAL_H
#define RL_ONNX_INTERNAL_H
#include <sys/types.h>

#include "onnx.h"
#include "onnx_fields.h"
#include "wire.h"

/* Which file it is, whatever it is called. */
typedef struct { dev_t dev; ino_t ino; } rl_fileid;

/* A mapped file: the model (key NULL), or external data under its location. */
typedef struct rl_mapping {
    struct rl_mapping *next;
    rl_str key;
    rl_span bytes;
    rl_fileid id;
} rl_mapping;

/* A mapped file that spans may lie in: those are copied from it, without their bytes being read here. */
typedef struct { rl_span bytes; const char *path; rl_fileid id; } rl_onnx_source;
typedef struct { rl_onnx_source *p; uint32_t n, cap; } rl_sources;

struct rl_onnx {
    rl_span bytes;      /* ModelProto, or a body's GraphProto */
    rl_span graph;      /* GraphProto; of a function its FunctionProto */
    bool is_function;
    uint32_t nnode;     /* node fields in it */
    uint32_t nopset;    /* domains that the file imports: the first of g->opset; those behind are written as well */
    rl_node *order;     /* the order as read, where it had to be sorted; NULL: 0, 1, 2 ... */
    struct { rl_value *p; uint32_t n, cap; } init; /* the value of each initializer field, in file order */
    struct { rl_value *p; uint32_t n, cap; } weight; /* of each input field: the constant that it is (rl_onnx_port), or none */
    /* the main graph's only: */
    rl_arena *mem;      /* the main graph's */
    rl_mapping *mapping;
    rl_str path, dir;   /* dir NULL: no external data; ends in / */
    bool any_external;  /* rl_readopt's */
    bool pinned;        /* training information names initializers: all stay */
    struct { rl_span *p; uint32_t n, cap; } location; /* each "location" of external data, wherever it stands */
    rl_hash function;   /* keys of model-local functions (onnx_read.c) */
};

static inline uint32_t rl_onnx_node_field(const rl_graph *g) {
    return g->onnx && g->onnx->is_function ? FUNCTION_NODE : GRAPH_NODE;
}

/* The value of the input field k.  Before IR version 4 each initializer has to be among the inputs: there it is a constant, none of g->input, of which
 * *in have been met. */
static inline rl_value rl_onnx_port(const rl_graph *g, uint32_t k, uint32_t *in) {
    bool weight = k < g->onnx->weight.n && rl_has(g->onnx->weight.p[k]);
    return weight ? g->onnx->weight.p[k] : g->input.p[(*in)++];
}

/* More elements than memory can hold, whatever the open dims are? A value of such dims is refused, so none is declared. */
static inline bool rl_onnx_too_many(const rl_dim *dim, uint32_t rank) {
    int64_t total = 8;
    for (uint32_t i = 0; i < rank; i++)
        if (dim[i] > 0 && __builtin_mul_overflow(total, dim[i], &total)) return true;
    return false;
}

/* Names from the model may hold line ends, a message may not. */
static inline void rl_onnx_one_line(char *s) {
    for (; *s; s++)
        if (*s == '\n' || *s == '\t') *s = '?';
}

/* ---- onnx_file.c ---- */

/* Maps a regular file read-only; an empty one gives {NULL, 0}. id may be NULL. Messages start with the path. */
rl_status rl_file_map(rl_ctx *ctx, const char *path, uint64_t max, rl_span *out, rl_fileid *id);
void rl_file_unmap(rl_span s);
/* Whole pages of s, a part of a mapping, need no memory until they are read again. */
void rl_file_forget(rl_span s);
/* Maps dir/location. Unless any: the location has no "..", no symbolic link on the way, and one hard link. */
rl_status rl_file_map_beneath(rl_ctx *ctx, const char *dir, const char *location, bool any, rl_span *out, rl_fileid *id);
/* Would both be one file: under any of its names where it is there, else in one folder under one name? Devices take what comes. */
bool rl_file_same_place(const char *a, const char *b);
/* The open file that /dev/stdout, /dev/fd/3 and so on name, or -1: what goes there goes behind what is there. */
int rl_file_descriptor(const char *path);
/* Writes n spans, one after the other, as rl_file_write does; from: files that they may lie in, or NULL. */
rl_status rl_file_write_spans(rl_ctx *ctx, const char *path, const rl_span *s, size_t n, const rl_sources *from);
/* Writes bytes to dir/location unless the same bytes are there; *made: there was nothing. Other bytes: RL_EIO, also where they
 * came there meanwhile. */
rl_status rl_file_put_beneath(rl_ctx *ctx, const char *dir, const char *location, rl_span bytes, const rl_sources *from, bool *made);
/* The same of spans, and never over one of the files in from; replaces: else in place of what is there. */
rl_status rl_file_write_beneath(rl_ctx *ctx, const char *dir, const char *location, bool replaces, const rl_span *s, size_t n,
                                const rl_sources *from, bool *made);
void rl_file_drop_beneath(const char *dir, const char *location);
/* While one writes a model with its data nobody else does in this folder: data that is dropped after a failure, another may just have
 * found as its own. Where there are no locks, or nobody lets go of it for a minute, it goes on without; then only such a drop can hurt. */
int rl_file_lock_dir(const char *dir);
void rl_file_unlock_dir(int fd);
bool rl_file_same_dir(const char *a, const char *b);
/* The folder of a path with its /, or "./"; interned. */
rl_str rl_file_dir(rl_ctx *ctx, const char *path);
/* The same in dir, of so many bytes. False, with the errno of a path that is too long, where they are too few. */
bool rl_file_put_dir(const char *path, char *dir, size_t size);
/* Relative, not empty, no "..". */
bool rl_file_is_beneath(const char *location);

/* ---- onnx_copy.c ---- */

/* Appends n bytes of a source, from offset on, to a file open for writing. How many it could: the rest is the caller's. */
size_t rl_file_copy(int to, const rl_onnx_source *s, size_t offset, size_t n);

/* ---- onnx_tensor.c ---- */

/* A TensorProto without its data. */
typedef struct {
    const char *what;             /* for messages: "initializer 'w'" */
    const int64_t *dim;
    size_t rank;
    int32_t dtype;                /* ONNX's number */
    bool segment, external;
    const char *location;         /* external: NULL if there is none */
    const char *offset, *length;  /* external: as text, or NULL */
} rl_tensor_head;

/* Checks the tensor in bytes against its head and makes a constant in mem. Data stays in the mapping where it can; what is
 * not at hand (strings, segments, unknown types) has data NULL. */
rl_status rl_tensor_read(struct rl_onnx *o, rl_arena *mem, const rl_tensor_head *h, rl_span bytes, rl_const *c);

#endif
