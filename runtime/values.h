/* Values in files: npy, and the messages of ONNX's test data.
 *
 *   rl_npy_read    x.npy                  numbers, bools, complex numbers; C and Fortran order (the latter is a strided view)
 *   rl_pb_read     TensorProto, SequenceProto, OptionalProto; which of them is not in the file: the caller says
 *   rl_value_write whichever fits: NAME.npy where NumPy has the type, NAME.pb for other tensors and for sequences; an empty optional
 *                  is an empty NAME.pb */
#ifndef RL_VALUES_H
#define RL_VALUES_H
#include "rt.h"

typedef enum { RL_PB_TENSOR = 1, RL_PB_SEQUENCE = 4, RL_PB_OPTIONAL = 9 } rl_pb_kind; /* the fields of a TypeProto */

/* bytes must outlive the tensor. what: for messages. */
rl_status rl_npy_read(rl_rt *rt, const char *what, rl_span bytes, rl_tensor *out);
/* False: NumPy has no such type. */
bool rl_npy_print(rl_rt *rt, const rl_tensor *t, rl_text *to);

/* g: whose arena gets what is decoded. */
rl_status rl_pb_read(rl_rt *rt, rl_graph *g, rl_pb_kind kind, rl_span bytes, rl_tensor *out);
void rl_pb_print(rl_rt *rt, const rl_tensor *t, rl_text *to);

/* dir/NAME.npy or dir/NAME.pb; bytes of the name that a file name should not have are %XX. */
rl_status rl_value_write(rl_rt *rt, const char *dir, const char *name, const rl_tensor *t);
/* That file's path and bytes, to be written with rl_file_write: after all that takes memory. Both texts have their mem set. */
void rl_value_print(rl_rt *rt, const char *dir, const char *name, const rl_tensor *t, rl_text *path, rl_text *bytes);
/* "x=path": an .npy file, or a .pb file read as the graph declares its input x. */
rl_status rl_value_read(rl_rt *rt, rl_graph *g, rl_value input, const char *path, rl_tensor *out);
/* A seeded random tensor of the input's declared type; a symbol is what `size` (NULL: none) has for its name's pointer, or 1. Floats in -1 .. 1,
 * integers 0 .. 3, fewer where a Gather that they index has fewer rows. */
rl_status rl_value_random(rl_rt *rt, const rl_graph *g, rl_value input, const rl_hash *size, uint64_t seed, rl_tensor *out);

/* The numbers at the edges of a float type, put at every third element or so of what rl_value_random made (no float: left as it is).
 * RL_SMALL: 0, -0, the least denormals of both signs.  RL_SPECIAL: these, infinities and nan. */
typedef enum { RL_NOCORNER, RL_SMALL, RL_SPECIAL } rl_corners;
void rl_value_corners(rl_rt *rt, rl_corners which, uint64_t seed, rl_tensor *t);

#endif
