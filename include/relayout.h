/* relayout: rewrites an ONNX model so that it has the fewest layout conversions (Transposes that move data) that its outputs
 * allow.  This is the only public header.
 *
 * Words.  A *layout* is the order in which a tensor's axes lie in memory.  A *conversion* is a Transpose that moves data from
 * one layout to another; one that only moves axes of size 1 is none.  A *target* says which forms an op may take and what they
 * cost: "generic" (default) charges forms that runtimes execute slower, "onnx" counts conversions and nothing else.
 *
 * From file to file:
 *
 *     #include <relayout.h>
 *     rl_result r;
 *     rl_status s = rl_optimize_file("in.onnx", "out.onnx", NULL, &r);
 *     if (s != RL_OK) fprintf(stderr, "%s\n", r.error);
 *     else printf("%lld -> %lld conversions\n", (long long)r.conversions_before, (long long)r.conversions_after);
 *
 * From buffer to buffer:
 *
 *     void *out; size_t nout;
 *     if (rl_optimize_bytes(in, nin, &out, &nout, NULL, &r) == RL_OK) { use(out, nout); rl_free(out); }
 *
 * Graph inputs and outputs keep their names, order and types, but for those whose layout the options change.  A result that is not better is not written: then the output is
 * the input, byte for byte, and changed is 0.  out.onnx is the old file or the whole new one, never anything between.
 * Functions keep no state between calls and may run in several threads at once.  Nothing is printed, nothing exits. */
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
    RL_EASSERT = 8    /* an assertion of the user's failed */
} rl_status;

/* Set struct_size to sizeof(rl_options); members that are 0 or NULL take their defaults. */
typedef struct {
    size_t struct_size;
    const char *target;    /* "generic"; a name that `relayout targets` prints, or the path of a file with such rows */
    const char *objective; /* "nodes" (ties by bytes moved), "bytes" (ties by count) or "time" (by the target's rows) */
    double time_limit;     /* seconds for the solver; 5 */
    size_t max_memory;     /* bytes that may be allocated; 0: no limit */
    const char *input_layouts;  /* "x=nhwc,z=free": graph inputs that come in another order of dims; what it may say: docs/interface.md */
    const char *output_layouts; /* the same for graph outputs */
} rl_options;

typedef struct {
    int changed;                                     /* 0: the output is the input, byte for byte */
    int64_t transposes_before, transposes_after;     /* Transpose nodes */
    int64_t conversions_before, conversions_after;   /* that move data */
    int64_t moved_bytes_before, moved_bytes_after;   /* by them, for one run; symbolic sizes guessed */
    int64_t lower_bound;                             /* the solver's, on conversions; not checked by a second program yet */
    int64_t handed_to_caller;                        /* conversions that input_layouts and output_layouts leave to the caller */
    int64_t conversions_own_interface;               /* that would be left without those two; -1 where they are not given */
    char error[1024];                                /* one line; empty on success */
} rl_result;

/* Reads the model at in and writes the rewritten one to out. options and result may be NULL. */
RL_API rl_status rl_optimize_file(const char *in, const char *out, const rl_options *options, rl_result *result);

/* The same from nin bytes at in; *out is the caller's, to be freed with rl_free. External data cannot be read this way. */
RL_API rl_status rl_optimize_bytes(const void *in, size_t nin, void **out, size_t *nout, const rl_options *options, rl_result *result);
RL_API void rl_free(void *p);

/* "0.1.0" */
RL_API const char *rl_version(void);

#ifdef __cplusplus
}
#endif
#endif
