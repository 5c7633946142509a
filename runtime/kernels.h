/* What kernels of the CPU share: the declarations that kernels.def needs, and the walk over broadcast operands.
 *
 * A pointwise op is a function on rows, for one type; rl_each calls it for every row of the output:
 *
 *   static void add_f32(const rl_row *r) {
 *       const float *a = r->in[0], *b = r->in[1];
 *       float *y = r->out;
 *       for (int64_t i = 0; i < r->n; i++) y[i] = a[i * r->step[0]] + b[i * r->step[1]];
 *   }
 *   ...  rl_each(c, RL_F32, RL_F32, add_f32, y, in, 2, NULL);
 *
 * Operands of other types are converted row by row: f16 inputs and output work with the same add_f32. */
#ifndef RL_KERNELS_H
#define RL_KERNELS_H
#include "number.h"
#include "rt.h"

#define RL_FLOATS (RL_T(RL_F32) | RL_T(RL_F64) | RL_T(RL_F16) | RL_T(RL_BF16))
#define RL_FLOAT8S (RL_T(RL_F8E4M3FN) | RL_T(RL_F8E4M3FNUZ) | RL_T(RL_F8E5M2) | RL_T(RL_F8E5M2FNUZ) | RL_T(RL_F8E8M0) | RL_T(RL_F4E2M1))
#define RL_SIGNEDS (RL_T(RL_I8) | RL_T(RL_I16) | RL_T(RL_I32) | RL_T(RL_I64))
#define RL_UNSIGNEDS (RL_T(RL_U8) | RL_T(RL_U16) | RL_T(RL_U32) | RL_T(RL_U64))
#define RL_INTS (RL_SIGNEDS | RL_UNSIGNEDS)
#define RL_INT4S (RL_T(RL_I4) | RL_T(RL_U4) | RL_T(RL_I2) | RL_T(RL_U2))
#define RL_NUMBERS (RL_FLOATS | RL_INTS)
#define RL_ALLTYPES (RL_NUMBERS | RL_FLOAT8S | RL_INT4S | RL_T(RL_BOOL) | RL_T(RL_STRING) | RL_T(RL_C64) | RL_T(RL_C128))
enum { RL_ANYTYPE = 0, RL_NEWEST = 1000 };

enum { RL_ROWIN = 3 };
typedef struct {
    int64_t n;
    const void *in[RL_ROWIN];
    int64_t step[RL_ROWIN]; /* elements; 0: the same for the whole row */
    void *out;              /* contiguous */
    const double *param;
} rl_row;
typedef void rl_row_fn(const rl_row *r);

/* Calls fn for rows that cover out (row-major, made), the inputs broadcast to its dims. fn reads inputs of type `type` and writes
 * `made`; tensors of other types are converted; type RL_UNDEF: fn takes each as it is. RL_EMODEL when an input does not broadcast. */
rl_status rl_each(rl_call *c, rl_dtype type, rl_dtype made, rl_row_fn *fn, rl_tensor *out, const rl_tensor *const *in, uint32_t nin,
                  const double *param);
/* The node's rl_pointwise (ref_pointwise.h): its row's, or what an attribute makes of that; its numbers, with their defaults; does it make bools? */
int rl_pointwise_op(const rl_call *c);
void rl_pointwise_params(const rl_call *c, double *p);
bool rl_pointwise_makes_bool(int op);
/* A Where whose rows of 32 bits fn makes; the reference kernel's own. */
rl_status rl_where_by(rl_call *c, rl_row_fn *fn);
void rl_choose_words(const rl_row *r);
/* Makes output 0 of type t for the inputs 0 .. nin-1 broadcast together. */
rl_status rl_make_broadcast(rl_call *c, rl_dtype t, uint32_t nin, rl_tensor **out);
/* dst = src in dst's number type; equal dims, any strides. */
void rl_convert(rl_rt *rt, const rl_tensor *dst, const rl_tensor *src, bool saturate);

/* The dims that a Reshape of x to `want` makes; those of a Transpose, its perm (given NULL: all dims the other way round) checked. */
rl_status rl_reshape_dims(const rl_call *c, const rl_tensor *x, const int64_t *want, uint32_t n, bool zero_is_zero, int64_t *dim);
rl_status rl_transpose_perm(const rl_call *c, uint32_t rank, const int64_t *given, uint32_t n, int64_t *perm);

#define KERNEL(domain, type, since, until, types, fn, arg) rl_kernel_fn fn;
#include "kernels.def"
#undef KERNEL

#endif
