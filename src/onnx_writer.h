/* What the writer's files share: the list of spans that becomes the model, and where the data of its tensors goes.
 *
 * Where `external` (rl_onnx_write) moves data, an initializer is written anew with all its fields but those that hold the data or say
 * where it is: onnx_external.c decides which, gives each its place, and writes the files. */
#ifndef RL_ONNX_WRITER_H
#define RL_ONNX_WRITER_H
#include <protobuf-c/protobuf-c.h>

#include "onnx_internal.h"

/* What becomes of the data of initializers. */
typedef enum {
    RL_DATA_KEEP,   /* as it is; what is made here goes into the model */
    RL_DATA_INLINE, /* into the model */
    RL_DATA_FILE,   /* into one file beside it, but for the small */
    RL_DATA_FOLDER, /* into a file each */
    RL_DATA_MADE    /* as it is; what is made here goes into one file: a model would be too large otherwise */
} rl_datamode;

/* Data that goes to a file. */
typedef struct { rl_span bytes; uint64_t offset; rl_str location; } rl_placed;

typedef struct {
    rl_ctx *ctx;
    rl_arena *mem;
    const char *const *taken; /* rl_onnx_write's */
    const rl_graph *main;
    struct { rl_span *p; uint32_t n, cap; } chunk;
    uint64_t total;   /* bytes of all chunks */
    rl_hash fresh;    /* &g->val[i] -> index in name: values that had none */
    struct { rl_str *p; uint32_t n, cap; } name;
    rl_hash used;     /* all names of all graphs; filled when the first fresh one is wanted */
    uint32_t nfresh;
    rl_datamode mode;
    rl_str external;  /* the file, or the folder with its / */
    struct { rl_placed *p; uint32_t n, cap; } placed; /* of one file in its order */
    rl_hash places;   /* data pointer -> index in placed; locations of a folder's files */
    uint64_t end;     /* of the one file */
} rl_writer;

/* ---- onnx_span.c ---- */

void rl_writer_put(rl_writer *w, const void *p, size_t n);
void rl_writer_span(rl_writer *w, rl_span s);
/* A field with a body. */
void rl_writer_len(rl_writer *w, uint32_t number, rl_span body);
void rl_writer_text(rl_writer *w, uint32_t number, const char *s);
/* A message whose length is not known yet. */
typedef struct { uint32_t chunk, number; uint64_t start; } rl_opened;
rl_opened rl_writer_open(rl_writer *w, uint32_t number);
void rl_writer_close(rl_writer *w, rl_opened o);
/* Fields of a message but those with numbers in mask. */
void rl_writer_others(rl_writer *w, rl_span s, uint64_t mask);

/* ---- onnx_write.c ---- */

/* The list of spans, from the start. */
rl_status rl_writer_list(rl_writer *w, const rl_graph *g, rl_arena *mem);
/* A message of protobuf-c's as a field. */
void rl_writer_message(rl_writer *w, uint32_t number, const ProtobufCMessage *m);
/* The value's name in the file; "" for a slot left out. */
rl_str rl_writer_name(rl_writer *w, const rl_graph *g, rl_value v);
/* protobuf-c's structs are for reading too: their strings are not const. */
static inline char *rl_pb_text(const char *s) {
    return (char *)(uintptr_t)s;
}

/* ---- onnx_clean.c ---- */

/* Nothing changed since the graph was read, or nothing that counts: its bytes are its text. */
bool rl_clean_graph(const rl_graph *g);
bool rl_clean_nodes(const rl_graph *g);
/* The node's bytes say what the node is. */
bool rl_clean_node(const rl_graph *g, const rl_nodeinfo *n);
/* The value of an initializer's field is written with the bytes it has there. */
bool rl_clean_init(const rl_graph *g, rl_value v, rl_span raw);
/* The input or output is what its field says. */
bool rl_clean_port(const rl_graph *g, rl_value v, rl_span field);
/* A constant that no file has. */
bool rl_is_made(const rl_graph *g, rl_value v);
/* The order that the caller gives or takes an input or output in; NULL: as ever. */
const uint32_t *rl_port_turned(const rl_graph *g, rl_value v);

/* ---- onnx_hint.c ---- */

/* Is there something that makes the value? */
bool rl_is_live(const rl_graph *g, rl_value v);
/* The value's name, type and shape as a ValueInfoProto. */
void rl_writer_valinfo(rl_writer *w, const rl_graph *g, uint32_t number, rl_value v);
/* Fields of the graph as they were read, changed where they no longer hold: value_info, an input or output, quantization_annotation. */
rl_status rl_writer_hint(rl_writer *w, const rl_graph *g, const rl_field *f);
rl_status rl_writer_port(rl_writer *w, const rl_graph *g, rl_value v, const rl_field *f);
rl_status rl_writer_annotation(rl_writer *w, const rl_graph *g, const rl_field *f);
/* value_info of what nodes made here in other domains than ONNX's produce: nobody else's inference knows their types; and of what
 * those read that have heads and their size in one dim. */
void rl_writer_own_hints(rl_writer *w, const rl_graph *g);

/* ---- onnx_external.c ---- */

/* Does data move, so that what did not change is written anew, too? */
static inline bool rl_writer_moves(const rl_writer *w) {
    return w->mode != RL_DATA_KEEP && w->mode != RL_DATA_MADE;
}
/* An initializer's field as it was read (its body), with its data where it goes. */
rl_status rl_writer_initializer(rl_writer *w, const rl_graph *g, rl_span bytes);
/* Is nothing of what was listed in a file? */
rl_status rl_writer_all_inline(rl_writer *w);
/* The data of an initializer made here, in the message that is open. */
void rl_writer_data(rl_writer *w, const char *name, rl_span data);

#endif
