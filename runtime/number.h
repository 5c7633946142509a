/* Numbers of every type: conversions, and elements smaller than a byte.
 *
 *   rl_number_bits(RL_F16, 1.0, true) == 0x3c00          to nearest, ties to even; exact for every format
 *   rl_number_value(RL_F8E4M3FN, 0x7e) == 448.0          exact: a double holds them all
 *
 * float8: what is too large, infinities too, becomes the largest number (saturate), else infinity or, without one, NaN.
 * RL_F8E8M0 (powers of two) is rounded up, as Cast does unless told otherwise.
 * Float to integer truncates; what does not fit, and NaN, is cut from INT64_MIN, as x86 does.  Integers wrap. */
#ifndef RL_NUMBER_H
#define RL_NUMBER_H
#include "rt.h"

double rl_number_value(rl_dtype t, uint32_t bits);            /* of a float format of 16 bits or fewer */
uint32_t rl_number_bits(rl_dtype t, double x, bool saturate); /* the inverse, rounded */
int64_t rl_number_cut(double x); /* cut to a whole number; what does not fit, and NaN: INT64_MIN */

bool rl_is_float(rl_dtype t);   /* f64, f32 and all shorter ones */
bool rl_is_signed(rl_dtype t);  /* a signed integer */
bool rl_is_integer(rl_dtype t); /* integers of all sizes, without bool */
bool rl_is_number(rl_dtype t);  /* any of these, or bool */
bool rl_converts(rl_dtype t);   /* does rl_convert_run take it: no strings, no complex numbers */
/* The type to compute in: f32 for shorter floats, i32 for shorter integers than a byte, else t. */
rl_dtype rl_compute_type(rl_dtype t);

/* Elements base[at + i*step], i < n, of one type. */
typedef struct { rl_dtype type; char *base; int64_t at, step; } rl_run;
void rl_convert_run(rl_run to, rl_run from, int64_t n, bool saturate);

#endif
