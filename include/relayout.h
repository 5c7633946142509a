/* relayout: rewrites an ONNX model so that it has the fewest layout conversions (Transposes that move data) that its outputs
 * allow.  This is the only public header, for C and C++.
 *
 * Words.  A *layout* is the order in which a tensor's axes lie in memory.  A *conversion* is a Transpose that moves data from
 * one layout to another; one that only moves axes of size 1 is none.  A *target* says which forms an op may take and what they
 * cost: "generic" (default) charges forms that runtimes execute slower, "onnx" counts conversions and nothing else.
 *
 * Two libraries.  librelayout (pkg-config relayout, CMake relayout::relayout) optimizes; it needs protobuf-c and libm.
 * librelayout_runtime (pkg-config relayout-runtime, CMake relayout::runtime) runs models and moves data on the CPU, and starts
 * threads when asked to; its functions are marked RL_RUNTIME_API.
 *
 * From file to file:
 *
 *     #include <relayout.h>
 *     rl_result r;
 *     rl_status s = rl_optimize_file("in.onnx", "out.onnx", NULL, &r);
 *     if (s != RL_OK) fprintf(stderr, "%s\n", r.error);
 *     else printf("%lld -> %lld conversions\n", (long long)r.conversions_before, (long long)r.conversions_after);
 *
 * From buffer to buffer, for a target, with a size that the model leaves open:
 *
 *     const char *dims[] = {"batch=1", NULL};
 *     rl_options o = {sizeof o};                           // all other members 0: the defaults
 *     o.target = "ort";
 *     o.dims = dims;
 *     void *out; size_t nout;
 *     if (rl_optimize_bytes(in, nin, &out, &nout, &o, &r) == RL_OK) { use(out, nout); rl_free(out); }
 *
 * Ownership.
 *   What you pass in is yours, is only read, and is not needed after the call (but rl_session_new, which says so).
 *   What a function returns through a pointer (out, a report, a picture) is yours: give it to rl_free; where the call had a context
 *   with an allocator, to that one's release, with its size and 1: a 0 stands behind each.
 *   A failed call returns nothing to free: such pointers are NULL then.
 *   A session owns its outputs; they are valid until its next run or its end.
 *
 * What you can rely on.
 *   Graph inputs and outputs keep their names, order and types, but for those whose layout the options change, and open sizes to which
 *   dims and input_shapes give numbers.
 *   A result that is not better is not written: then (but for these) the output is the input, byte for byte, and changed is 0.
 *   out.onnx is the old file or the whole new one, never anything between.
 *   No function keeps anything between calls, prints, exits or changes a signal handler.  All may run in several threads at once;
 *   two calls may share a context if its functions bear that.  A session runs one call at a time.
 *
 * Binary interface.  Structs that you fill in begin with struct_size, so a program built with an older header goes on working with
 * a newer library: members it does not know are 0; a struct_size that was never set (0, or less than any such struct ever had), like NULL for what a call needs, is RL_EUSAGE.
 * Structs that the library fills in have room left.  Functions carry symbol versions (RELAYOUT_0, RELAYOUT_RUNTIME_0), so what exists
 * now keeps its meaning. */
#ifndef RELAYOUT_H
#define RELAYOUT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RL_API __attribute__((visibility("default")))
#else
#define RL_API
#endif
#define RL_RUNTIME_API RL_API /* in librelayout_runtime */

/* Also the exit status of the program. */
typedef enum {
    RL_OK = 0,
    RL_EINTERNAL = 1, /* our own mistake */
    RL_EUSAGE = 2,    /* a wrong option, an unknown name */
    RL_EIO = 3,       /* cannot read or write; errno is in the message */
    RL_EMODEL = 4,    /* the bytes are not a valid ONNX model */
    RL_ELIMIT = 5,    /* valid, but over a limit or not supported; also out of memory */
    RL_EDIFFER = 6,   /* outputs differ */
    RL_EPROOF = 7,    /* not proved where a proof was required */
    RL_EASSERT = 8,   /* reserved: nothing returns it */
    RL_ESTOPPED = 9   /* the caller's function `stop` said so */
} rl_status;

/* ---- Contexts: the caller's own memory and messages, and a say in when to stop ----
 *
 *     static int stop(void *user) { return atomic_load((atomic_int *)user); }
 *     static void log_line(void *user, rl_log_level level, const char *text) { (void)user; fprintf(stderr, "%d %s\n", level, text); }
 *
 *     atomic_int wanted = 0;                               // set by another thread
 *     rl_context c = {sizeof c};
 *     c.user = &wanted;
 *     c.stop = stop;
 *     c.log = log_line;
 *     rl_options o = {sizeof o};
 *     o.context = &c;
 *     if (rl_optimize_file("in.onnx", "out.onnx", &o, &r) == RL_ESTOPPED) puts("stopped");      // out.onnx is as it was
 *
 * A context is yours and must live as long as what was made with it (a call, a session).  Members that are NULL are left out.  Its
 * functions are called in the thread that made the call, and must return: no longjmp, no C++ exception across. */
typedef enum { RL_LOG_DEBUG = 0, RL_LOG_INFO = 1, RL_LOG_WARNING = 2 } rl_log_level;

typedef struct {
    size_t struct_size;  /* sizeof(rl_context) */
    void *user;          /* handed to each function below */
    /* Both or neither. NULL: no memory, and the call returns RL_ELIMIT. Aligned as malloc's. nbyte is what was asked for. What the
     * C library itself allocates (threads, stdio) does not come here, nor what functions without options allocate. */
    void *(*allocate)(void *user, size_t nbyte);
    void (*release)(void *user, void *p, size_t nbyte);
    void (*log)(void *user, rl_log_level level, const char *text); /* one line, without its end */
    void (*progress)(void *user, const char *step); /* one begins: "read", "shapes", a pass of `relayout passes`, "write"; some come again */
    /* Not 0: stop, the call returns RL_ESTOPPED and leaves no file behind. Asked before each step, and where the solver looks at its
     * time (often: it must be quick); in a session before each node. A step that does not search is finished first. */
    int (*stop)(void *user);
} rl_context;

/* Set struct_size to sizeof(rl_options); members that are 0 or NULL take their defaults. */
typedef struct {
    size_t struct_size;
    const char *target;    /* "generic"; a name that `relayout targets` prints, or the path of a file with such rows */
    const char *objective; /* "nodes" (ties by bytes moved), "bytes" (ties by count) or "time" (by the target's rows) */
    double time_limit;     /* seconds for the solver, in one call; 5 */
    size_t max_memory;     /* bytes that may be allocated; 0: 1 GiB (8 GiB where models are run), plus 32 bytes for each byte of the model and its external data */
    const char *input_layouts;  /* "x=nhwc,z=free": graph inputs that come in another order of dims; what it may say: docs/interface.md */
    const char *output_layouts; /* the same for graph outputs */
    const rl_context *context;  /* NULL: libc's memory, no callbacks */
    const char *const *dims;         /* "batch=1", ..., NULL: symbolic sizes; the output has these numbers */
    const char *const *input_shapes; /* "x=1,3,224,224", ..., NULL: shapes of graph inputs */
    const char *directory;      /* of external data, for a model from memory; NULL: such a model may have none */
    char **report;              /* not NULL: *report becomes the JSON report (docs/report.md) */
    uint32_t threads;           /* of a session, or rl_model_verify; 1 */
    /* rl_optimize_file: where the data of initializers goes: "keep" (NULL), "inline", the name of one file beneath the output's folder, or
     * of a folder with its /. Data that did not change is copied from file to file, whatever its size; no file of the input is
     * written over. rl_optimize_bytes: "keep" or "inline". */
    const char *external_data;
    /* What a model may have at most; RL_ELIMIT names what is over. docs/trust.md has the limits that are not set here. */
    uint64_t max_file;          /* bytes of its file, where it comes from one; 0: 64 GiB */
    uint64_t max_nodes;         /* its nodes, those of bodies and functions too; 0: 10 million */
    uint32_t max_depth;         /* messages of the file within each other, of which a body is three; 0: 100; more than 1000 counts as 1000 */
} rl_options;

/* RL_QUICKEST: a target's charges kept conversions, and no choice with no more of them than the model's own is 5 % quicker. */
typedef enum { RL_UNPROVED = 0, RL_LOWER_BOUND = 1, RL_MINIMUM = 2, RL_QUICKEST = 3 } rl_proof_state;

typedef struct {
    int changed;                                     /* 0: the output is the input, byte for byte */
    int64_t transposes_before, transposes_after;     /* Transpose nodes */
    int64_t conversions_before, conversions_after;   /* those that move data, and Einsums that do no more than such a one */
    int64_t moved_bytes_before, moved_bytes_after;   /* by them, for one run; symbolic sizes guessed */
    int64_t lower_bound;                             /* on conversions, checked (docs/proof.md); 0 where nothing was proved */
    int64_t handed_to_caller;                        /* conversions that input_layouts and output_layouts leave to the caller */
    int64_t conversions_own_interface;               /* that would be left without those two; -1 where they are not given */
    int64_t proof;                                   /* an rl_proof_state: RL_MINIMUM: none has fewer */
    int64_t reserved[15];                            /* 0 */
    char error[1024];                                /* one line; empty on success */
} rl_result;

/* Reads the model at in and writes the rewritten one to out. options and result may be NULL. */
RL_API rl_status rl_optimize_file(const char *in, const char *out, const rl_options *options, rl_result *result);

/* The same from nin bytes at in; *out is the caller's, to be freed with rl_free. */
RL_API rl_status rl_optimize_bytes(const void *in, size_t nin, void **out, size_t *nout, const rl_options *options, rl_result *result);
RL_API void rl_free(void *p);

/* A model: a file, or bytes in memory (path NULL). */
typedef struct {
    const char *path;
    const void *data;
    size_t nbyte;
} rl_model;

/* As JSON, the same that the program's --json writes; *json is the caller's. Of result only error is set.
 *
 *     char *json;
 *     rl_model m = {"in.onnx", NULL, 0};
 *     if (rl_model_explain(&m, NULL, NULL, &json, &r) == RL_OK) { puts(json); rl_free(json); } */
RL_API rl_status rl_model_stats(const rl_model *m, const rl_options *options, char **json, rl_result *result);
/* node: only what this node or tensor has to do with; NULL: everything. */
RL_API rl_status rl_model_explain(const rl_model *m, const char *node, const rl_options *options, char **json, rl_result *result);

/* ---- Running models (librelayout_runtime) ----
 *
 *     rl_session *s;
 *     rl_model m = {"out.onnx", NULL, 0};
 *     if (rl_session_new(&m, NULL, &s, &r) != RL_OK) return;
 *     float x[1 * 3 * 8 * 8] = {0};
 *     int64_t dim[] = {1, 3, 8, 8};
 *     rl_array in = {"x", 1, 4, dim, x, sizeof x};
 *     const rl_array *y;                                   // one for each output of the graph, in its order
 *     if (rl_session_run(s, &in, 1, &y, &r) == RL_OK) use(y[0].data, y[0].nbyte);
 *     rl_session_free(s);
 *
 * Arrays are row-major and aligned to their elements, elements smaller than a byte packed as ONNX packs them; those of type 8 (string) are const char *, 0-terminated.
 *
 * A sequence of two tensors, and the empty optional, as inputs (and so as outputs):
 *
 *     rl_array item[2] = {{NULL, 1, 4, dim, x, sizeof x}, {NULL, 1, 4, dim, w, sizeof w}};
 *     int64_t two = 2;
 *     rl_array in[2] = {{"s", RL_ARRAY_SEQUENCE, 1, &two, item, sizeof item}, {"o", RL_ARRAY_NONE, 0, NULL, NULL, 0}};
 *
 * An optional that is not empty is its content. */
typedef struct rl_session rl_session;

enum { RL_ARRAY_NONE = -1, RL_ARRAY_SEQUENCE = -2 }; /* in place of an element type */

typedef struct {
    const char *name;
    int32_t dtype;      /* ONNX's TensorProto.DataType: 1 float, 3 int8, ...; 0: no tensor, or not known */
    uint32_t rank;
    const int64_t *dim; /* in a declaration -1: open */
    const void *data;
    size_t nbyte;
} rl_array;

/* A model from memory: its bytes must stay until rl_session_free. RL_ELIMIT names the first node that has no kernel. */
RL_RUNTIME_API rl_status rl_session_new(const rl_model *m, const rl_options *options, rl_session **out, rl_result *result);
RL_RUNTIME_API void rl_session_free(rl_session *s);
/* What the graph declares, without data; NULL past the last one. An unknown rank is UINT32_MAX. */
RL_RUNTIME_API const rl_array *rl_session_input(const rl_session *s, uint32_t i);
RL_RUNTIME_API const rl_array *rl_session_output(const rl_session *s, uint32_t i);
/* Inputs by name, in any order; those with a default may be left out. *out: an array for each output of the graph, which stays valid
 * until the next run. After a failure the session can run again. */
RL_RUNTIME_API rl_status rl_session_run(rl_session *s, const rl_array *in, uint32_t nin, const rl_array **out, rl_result *result);

typedef struct {
    size_t struct_size;
    uint32_t runs;      /* 1 */
    uint64_t seed;      /* of the inputs */
    double rtol, atol;  /* 1e-4; 1e-6, or rtol of the median of an output's elements that are not zero, where that is more */
} rl_verify_options;

/* Do both make the same outputs from the same random inputs? RL_EDIFFER: no, result->error names output and element. */
RL_RUNTIME_API rl_status rl_model_verify(const rl_model *a, const rl_model *b, const rl_verify_options *how, const rl_options *options,
                                         rl_result *result);

/* ---- Layouts: where each element of a tensor lies in a buffer (descriptors: librelayout; moving: librelayout_runtime) ----
 *
 * A descriptor gives each logical axis one or more *digits*.  An index of the axis is written in these digits, outermost first, and
 * each digit says how far apart its steps lie, counted in elements.  i8[2,64,3,3]@NCHW4, MegEngine's layout for dp4a:
 *
 *     axis 0 (N)  2 of 576                      index n c h w lies at
 *     axis 1 (C)  16 of 36, 4 of 1              offset + 576 n + 36 (c / 4) + c % 4 + 12 h + 4 w
 *     axis 2 (H)  3 of 12
 *     axis 3 (W)  3 of 4                        so 1,5,2,0 lies at element 576 + 36 + 1 + 24 = 637
 *
 * One digit per axis and any strides: what NumPy, PyTorch and DirectML call sizes and strides (0 repeats an axis, a larger stride
 * leaves a gap).  Several digits: blocks.  Digits that count further than the dim: padding, filled with zeros by rl_desc_convert.
 * Elements smaller than a byte are counted the same way, the first in the low bits of a byte.
 *
 * As text:   DTYPE[DIMS]@NAME pad=[..] strides=[..] offset=N       NAME, pad, strides and offset may be left out
 *
 *     i8[2,64,3,3]@NCHW4               any name of docs/layouts.md, or oneDNN's letters: i8[2,64,3,3]@aBcd4b
 *     f32[2,3] strides=[5,1]           rows of 3 elements, 5 apart
 *     u4[1,3,2,2]@aBcd8b offset=5      element 5 is the high half of byte 2
 *     f32[2,3,8]@{2:24,3:1,4:3*2:12}   each digit as size:stride, the digits of an axis joined by *, whatever has no name
 *     f32[2,3,8]@"ab(cd)->dabc d=2"    as `relayout print` shows the layout of a graph's value
 *
 *     rl_desc a, b;  rl_error e;
 *     if (rl_desc_parse("f32[1,3,2,2]@nchw", &a, &e) != RL_OK || rl_desc_parse("f32[1,3,2,2]@nChw8c", &b, &e) != RL_OK) puts(e.text);
 *     float x[12] = {0}, y[32];                                // rl_desc_bytes(&b) == 128
 *     rl_desc_convert(&b, y, sizeof y, &a, x, sizeof x, &e);   // y[7 + 8 * k] == 0: padding
 *
 * A descriptor is a plain value: copy it, keep it, nothing is to be freed.  Functions that can fail say why in *e (which may be
 * NULL); the others want a descriptor that one of these functions made or rl_desc_check accepted. */
enum { RL_DESC_RANK = 8, RL_DESC_DIGITS = 24 };

typedef struct { char text[256]; } rl_error; /* one line */

typedef struct { uint32_t axis; int64_t size, stride; } rl_digit; /* stride in elements */

typedef struct {
    int32_t dtype;                   /* ONNX's TensorProto.DataType: 1 float, 3 int8, 22 int4, ... */
    uint32_t rank, ndigit;
    int64_t dim[RL_DESC_RANK];       /* logical sizes */
    int64_t offset;                  /* element of index 0,...,0 */
    rl_digit digit[RL_DESC_DIGITS];  /* by axis, and in an axis outermost first; at least one each */
} rl_desc;

/* Any text of the form above. */
RL_API rl_status rl_desc_parse(const char *text, rl_desc *out, rl_error *e);
/* dim in the layout that name stands for; pad: NULL, or the least sizes to count to. */
RL_API rl_status rl_desc_named(int32_t dtype, uint32_t rank, const int64_t *dim, const char *name, const int64_t *pad, rl_desc *out,
                               rl_error *e);
/* Sizes and strides; NULL: packed, row-major. */
RL_API rl_status rl_desc_strided(int32_t dtype, uint32_t rank, const int64_t *dim, const int64_t *stride, int64_t offset, rl_desc *out,
                                 rl_error *e);
/* As snprintf: writes at most size bytes with the closing 0, returns how many the whole text has. Reads back as the same descriptor. */
RL_API size_t rl_desc_print(const rl_desc *d, char *out, size_t size);
/* RL_EUSAGE unless sizes, strides and offset describe places of a buffer that can be counted in 64 bits; where written is not 0,
 * also unless no two elements share a place. */
RL_API rl_status rl_desc_check(const rl_desc *d, int written, rl_error *e);

/* The element at an index (rank numbers within the dims). Its bit is that times rl_desc_bits. */
RL_API int64_t rl_desc_offset(const rl_desc *d, const int64_t *index);
RL_API uint32_t rl_desc_bits(const rl_desc *d);
RL_API int64_t rl_desc_elements(const rl_desc *d); /* of the logical tensor */
/* Bytes from the buffer's start to the end of the last element, padding counted as elements. */
RL_API int64_t rl_desc_bytes(const rl_desc *d);
/* The same rounded up to 4: DirectML's DMLCalcBufferTensorSize. */
RL_API int64_t rl_min_buffer_bytes(const rl_desc *d);
/* 1: the same places for all elements, and buffers of the same size, whatever the two are called (NCHW and NHWC with C = 1). */
RL_API int rl_desc_equal(const rl_desc *a, const rl_desc *b);
/* May two elements (or an element and padding) share a place? 0 no, 1 yes, -1 not decided: too many ways to look at. */
RL_API int rl_desc_overlaps(const rl_desc *d);

/* Copies the elements of `in` to the places that *to gives them, and zeros to to's padding; other bytes of out (gaps between
 * strides) stay. Same dims and dtype; neither buffer shorter than rl_desc_bytes; out does not overlap in. */
RL_RUNTIME_API rl_status rl_desc_convert(const rl_desc *to, void *out, size_t nout, const rl_desc *from, const void *in, size_t nin,
                                         rl_error *e);

/* The same for any two layouts of the same dims, with numbers converted where the types differ (floats are rounded to nearest, ties to
 * even; a float that becomes an integer is truncated; float8 takes its largest value for what is larger), in several threads if wanted.
 *
 *     static float x[8 * 64 * 56 * 56];
 *     static uint16_t y[8 * 64 * 56 * 56];                     // float16
 *     rl_desc a, b;
 *     rl_desc_parse("f32[8,64,56,56]", &a, NULL);
 *     rl_desc_parse("f16[8,64,56,56]@nChw16c", &b, NULL);
 *     rl_move_options o = {sizeof o};
 *     o.threads = 4;
 *     if (rl_move(&b, y, sizeof y, &a, x, sizeof x, &o, &e) != RL_OK) puts(e.text); */
typedef struct {
    size_t struct_size; /* sizeof(rl_move_options) */
    uint32_t threads;   /* 1; more are started for this call: as many at most, and one for each 2 MiB where nothing is converted */
} rl_move_options;
RL_RUNTIME_API rl_status rl_move(const rl_desc *to, void *out, size_t nout, const rl_desc *from, const void *in, size_t nin,
                                 const rl_move_options *options, rl_error *e);

/* An input that is read, or an output that is written, in the caller's own buffer, from the next run on: sizes and strides (padding,
 * a stride of 0 that repeats, channels last) as *layout says, until another call for that name; layout NULL: no longer.  An input
 * with a buffer is not given to rl_session_run.  The buffer must stay, and no two of them may overlap where one is written.
 *
 *     rl_desc a, b;                                        // a camera's picture: rows of 640 pixels of 4 bytes, of which 3 and 600 count
 *     rl_desc_parse("u8[1,3,480,600] strides=[1228800,1,2560,4]", &a, NULL);
 *     rl_desc_parse("f32[1,1000]", &b, NULL);
 *     rl_session_bind(s, "image", &a, picture, sizeof picture, &r);
 *     rl_session_bind(s, "scores", &b, scores, sizeof scores, &r);
 *     rl_session_run(s, NULL, 0, &y, &r);                  // y[0].data == scores
 *
 * Strided inputs are read where they are, packed outputs made where they are to be; other outputs are moved there once, and blocked
 * inputs (nChw16c) made row-major first.  What rl_session_run gives for such an output has its type and dims, and the buffer with all its
 * bytes: the elements lie there as *layout says. */
RL_RUNTIME_API rl_status rl_session_bind(rl_session *s, const char *name, const rl_desc *layout, void *data, size_t nbyte,
                                         rl_result *result);

typedef enum {
    RL_SAME = 0, /* the same bytes: nothing to do */
    RL_VIEW = 1, /* a's buffer can be used as b's: every element is where b wants it, and b's buffer is no longer */
    RL_COPY = 2  /* elements move */
} rl_relation;
typedef struct {
    rl_relation relation;
    int64_t moved_bytes;   /* of elements that a conversion copies: 0 for a view */
    int64_t padding_bytes; /* zeros that it writes; for a view: bytes of a's buffer that b calls padding */
    int32_t select_axis;   /* >= 0: the copy is index_select(buffer of a seen row-major, axis, index): see rl_desc_select */
} rl_comparison;
RL_API rl_status rl_desc_compare(const rl_desc *a, const rl_desc *b, rl_comparison *out, rl_error *e);
/* Where a and b differ by a permutation of one axis's places (a channel shuffle), index[0 .. dim-1] with: place k of that axis
 * in b's buffer holds what place index[k] holds in a's. Returns the axis, or -1: not so. index may be NULL. */
RL_API int32_t rl_desc_select(const rl_desc *a, const rl_desc *b, int64_t *index);

/* The picture of the buffer in memory order, each cell the row-major position of the element in it: "text" or "svg".
 * *out is the caller's, to be freed with rl_free. */
RL_API rl_status rl_desc_draw(const rl_desc *d, const char *as, char **out, rl_error *e);

/* ---- Views: descriptors of the same buffer ---- */

RL_API rl_status rl_desc_permute(const rl_desc *d, const uint32_t *perm, rl_desc *out, rl_error *e); /* out's axis i is d's perm[i] */
RL_API rl_status rl_desc_slice(const rl_desc *d, uint32_t axis, int64_t start, int64_t step, int64_t count, rl_desc *out, rl_error *e);
/* To dims that d's broadcast to (aligned at the last, missing and 1 repeated by stride 0). */
RL_API rl_status rl_desc_expand(const rl_desc *d, uint32_t rank, const int64_t *dim, rl_desc *out, rl_error *e);
/* The same elements in row-major order under other dims; refused where that needs a copy. */
RL_API rl_status rl_desc_reshape(const rl_desc *d, uint32_t rank, const int64_t *dim, rl_desc *out, rl_error *e);
/* DirectML: leading 1s up to this rank (4 or 5). */
RL_API rl_status rl_desc_fill_rank(const rl_desc *d, uint32_t rank, rl_desc *out, rl_error *e);
/* DirectML's rules for a buffer tensor: one digit per axis, no negative strides, total_bytes a multiple of 4 and at least
 * rl_min_buffer_bytes, alignment 0 or a power of two not below the element's size, and no overlap where it is written. */
RL_API rl_status rl_desc_check_buffer(const rl_desc *d, int64_t total_bytes, int64_t alignment, int written, rl_error *e);

/* ---- PyTorch's memory formats (descriptors with one digit per axis) ---- */

typedef enum { RL_CONTIGUOUS, RL_CHANNELS_LAST, RL_CHANNELS_LAST_3D, RL_PRESERVE } rl_memory_format;

RL_API int rl_is_contiguous(const rl_desc *d, rl_memory_format f); /* x.is_contiguous(memory_format=f); 0 for RL_PRESERVE */
RL_API int rl_desc_is_dense(const rl_desc *d);                     /* no gaps, no overlap: what PyTorch calls non-overlapping and dense */
RL_API rl_memory_format rl_suggest_format(const rl_desc *d);       /* what its strides look like; ambiguous ones: RL_CONTIGUOUS */
/* The layout of x.to(memory_format=f), and *copies = 0 where x itself is returned; RL_PRESERVE: that of x.clone(). */
RL_API rl_status rl_to_format(const rl_desc *x, rl_memory_format f, rl_desc *out, int *copies, rl_error *e);
/* The layout of the output of an element-wise op on n operands, which broadcast: one for unary, two for binary, any mix. dtype: the first's. */
RL_API rl_status rl_propagate(uint32_t n, const rl_desc *in, rl_desc *out, rl_error *e);

/* ---- Sparse tensors: layouts with indices instead of strides ---- */

typedef enum { RL_COO, RL_CSR } rl_sparse_kind;
typedef struct {
    rl_sparse_kind kind;
    int32_t dtype;
    uint32_t rank;             /* RL_CSR: 2 */
    int64_t dim[RL_DESC_RANK];
    int64_t nnz;
    int64_t *index;            /* RL_COO: rank rows of nnz, sorted, none twice; RL_CSR: dim[0] + 1 row starts, then nnz columns */
    void *values;              /* nnz elements, packed */
} rl_sparse;

/* How many elements of the buffer are not zero (-0 is zero, NaN is not): what rl_to_sparse needs room for. */
RL_RUNTIME_API rl_status rl_sparse_count(const rl_desc *d, const void *data, size_t nbyte, int64_t *nnz, rl_error *e);
/* Fills out->index and out->values, which the caller provides, with out->kind and out->nnz set; the rest of *out is set here. */
RL_RUNTIME_API rl_status rl_to_sparse(const rl_desc *d, const void *data, size_t nbyte, rl_sparse *out, rl_error *e);
/* Writes all elements of *to's buffer; indices out of range, unsorted or twice are refused. */
RL_RUNTIME_API rl_status rl_from_sparse(const rl_sparse *s, const rl_desc *to, void *out, size_t nout, rl_error *e);

/* "0.1.0" */
RL_API const char *rl_version(void);

#ifdef __cplusplus
}
#endif
#endif
