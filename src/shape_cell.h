/* Elements of small tensors, as cells (shape_internal.h), and what is computed with them; shape_cell.c and shape_fold.c only.
 *
 * A cell is an integer, a float, a symbolic size divided by a number, raw bytes (types that nothing is computed in, but that may
 * move), or nothing known.  Symbolic sizes are taken to be positive.  Float results are rounded to their type by rl_cell_rounded
 * after each operation, as a runtime does.
 *   of_dim(H) = H;  rl_cell_combine(s, MUL, H, 0.5, f32) = H/2;  rl_cell_apply(s, FLOOR, H/2, false) = floor(H/2) */
#ifndef RL_SHAPE_CELL_H
#define RL_SHAPE_CELL_H
#include "shape_internal.h"

typedef enum { ADD, SUB, MUL, DIV, MOD, POW, MIN, MAX, EQ, LT, LE, GT, GE, AND, OR, XOR } binary;
typedef enum { NEG, ABS, FLOOR, CEIL, ROUND, SQRT, RECIPROCAL, SIGN, NOT } unary;

/* The element at p, of type t. */
rl_cell rl_cell_decode(rl_dtype t, const char *p);
/* The number of elements; false when it is not known, or more than MAXCELL. */
bool rl_cell_count(uint32_t rank, const rl_dim *dim, uint32_t *n);
/* The value's data; NULL: it has none, or the caller may replace it (an initializer that is a graph input too, IR version 4 on). */
const rl_const *rl_cell_constant(const rl_shaper *s, const rl_valinfo *v);
/* a op b in type t; of floats not yet rounded. */
rl_cell rl_cell_combine(const rl_shaper *s, binary op, rl_cell a, rl_cell b, rl_dtype t);
rl_cell rl_cell_apply(const rl_shaper *s, unary op, rl_cell c, bool integer);
rl_cell rl_cell_convert(const rl_shaper *s, rl_cell c, rl_dtype from, rl_dtype to);
/* Rounds to the precision of type t. */
rl_cell rl_cell_rounded(rl_cell c, rl_dtype t);

/* ---- short forms ---- */

static inline rl_cell of_int(int64_t x) {
    return (rl_cell){.kind = CELL_INT, .num = x};
}

static inline rl_cell of_float(double x) {
    return (rl_cell){.kind = CELL_FLOAT, .f = x};
}

/* Types whose elements are numbers to compute with; others only move. */
static inline bool computes(rl_dtype t) {
    return rl_dtype_is_c_float(t) || t == RL_BOOL || (t >= RL_U8 && t <= RL_I64) || t == RL_U32 || t == RL_U64;
}

static inline rl_cell symbol(rl_dim d, int64_t den) {
    if (d == UNKNOWN) return (rl_cell){.kind = CELL_NONE};
    return (rl_cell){.kind = CELL_SYM, .sym = d, .num = den};
}

static inline rl_cell of_dim(rl_dim d) {
    return rl_dim_known(d) ? of_int(d) : symbol(d, 1);
}

#endif
