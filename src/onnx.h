/* ONNX files in and out.  onnx_read.c and onnx_write.c are the only files that see protobuf-c.
 *
 * The reader maps the file, scans the wire format without recursion (depth, counts, lengths, limits), and makes the graph from
 * it; weights stay in the mapping.  The writer copies every byte of what did not change (nodes and tensors with raw set,
 * model fields, unknown fields) and packs only nodes and constants made here.  So a graph that no pass touched is written as
 * the same bytes it was read from. */
#ifndef RL_ONNX_H
#define RL_ONNX_H
#include "ir.h"

typedef struct {
    uint32_t max_depth;   /* nested messages; 0: 100 */
    uint64_t max_file;    /* bytes; 0: 64 GiB */
    uint64_t max_node;    /* 0: 10 M */
    bool any_external;    /* allow external data outside the model's directory */
} rl_readopt;

/* Reads the model at path. On success *g owns the mapping (freed with the graph). Messages start with "path: ". */
rl_status rl_onnx_read(rl_ctx *ctx, const char *path, const rl_readopt *o, rl_graph **g);
/* The same from memory; the bytes must outlive the graph. dir: where external data is looked for, or NULL for none. */
rl_status rl_onnx_read_bytes(rl_ctx *ctx, const void *p, size_t n, const char *dir, const rl_readopt *o, rl_graph **g);

/* Writes g to path by a temporary file in the same folder, fsync and rename: path is the old file or the whole new one. Protects
 * itself (base.h), as rl_onnx_copy does.  external: where the data of initializers goes (onnx_external.c): "keep" or NULL, "inline", a
 * file's name beneath path's folder, or a folder's with its /. Data that did not change is copied from file to file.  taken: paths, then
 * NULL, that data does not go to, or NULL; nor does the model go over a file of g's data. */
rl_status rl_onnx_write(const rl_graph *g, const char *path, const char *external, const char *const *taken);
/* Does this value of `external` write a model anew that did not change? */
bool rl_onnx_moves_data(const char *external);
/* Writes the model as it was read, whatever became of g; like rl_onnx_write, its external data goes along to another folder. */
rl_status rl_onnx_copy(const rl_graph *g, const char *path, const char *const *taken);
/* The file of external data of g that path is, under any of its names; NULL: none. */
rl_status rl_onnx_data_at(const rl_graph *g, const char *path, const char **found);
/* The bytes that rl_onnx_write would write, in mem. external: as there, but what is in memory has no folder: "keep" or "inline". */
rl_status rl_onnx_pack(const rl_graph *g, const char *external, rl_arena *mem, rl_span *out);
/* What such bytes can be asked for. */
bool rl_onnx_packs(const char *external);
/* The file's bytes, unchanged (where no pass improved the model). */
rl_span rl_onnx_bytes(const rl_graph *g);
/* Writes bytes the same safe way. */
rl_status rl_file_write(rl_ctx *ctx, const char *path, const void *p, size_t n);

/* Reads a TensorProto that is no constant of g (its own initializers are: rl_valinfo.data); what is not in bytes goes to g's arena.
 * A tensor of strings has no data; *strings are its elements, else NULL. */
rl_status rl_onnx_tensor(rl_graph *g, rl_span bytes, rl_const *c, const rl_span **strings);

/* These bytes are not needed soon: where they lie in a file that the reader mapped, their memory goes until they are read again. */
void rl_onnx_forget(const rl_graph *g, const void *p, size_t n);

/* For opaque use by graph.c: frees what the reader mapped. */
void rl_onnx_free(struct rl_onnx *o);

#endif
