/* Libraries that stand in for NVIDIA's on machines without a GPU: libcuda.so.1, libcublasLt.so.13, libcudnn.so.9, which do on the emulated device
 * (cuda/emulate.c) what they are asked for, from the descriptors that they get and nothing else.  So the program itself runs with them,
 *
 *   LD_LIBRARY_PATH=build/cuda/stand_in build/relayout run model.onnx --device cuda
 *
 * and what it tells the libraries of shapes, strides and types is right where the results are.  How the real ones round, which engines they
 * have and how fast they are is not theirs to say.
 *
 *   RELAYOUT_STAND_IN_FAULT=cublasLtMatmul:13      calls of that function give that result from now on; FUNCTION:RESULT:N: from the N-th on
 *   RELAYOUT_STAND_IN_FAULT_TOO=...                another function's, FUNCTION:RESULT
 *   RELAYOUT_STAND_IN_VERSION=12020                the driver says that it is of this version */
#ifndef STAND_IN_H
#define STAND_IN_H
#include <stddef.h>

#define STAND_IN __attribute__((visibility("default")))

/* The result that a fault wants of this call; 0: none. Called first by every function that can fail. */
STAND_IN int stand_in_fault(const char *function);
/* fn(arg) with the device's memory in reach, in the stream's order: now, or by a recording that is being made. arg: n bytes, copied. */
STAND_IN int stand_in_do(void (*fn)(void *arg), const void *arg, size_t n);
/* A line about what was asked for; kept while somebody listens. */
STAND_IN void stand_in_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
STAND_IN void stand_in_listen(int on); /* forgets what was said before */
STAND_IN const char *stand_in_said(void);

/* Number i of p as a double, and back; types by their cudaDataType_t-like names here. */
typedef enum { SI_F32, SI_F64, SI_F16, SI_BF16, SI_I8, SI_U8, SI_I32 } stand_in_type;
STAND_IN double stand_in_load(const void *p, long long i, stand_in_type t);
STAND_IN void stand_in_store(void *p, long long i, stand_in_type t, double x); /* rounds to nearest, ties to even; cuts */

#endif
