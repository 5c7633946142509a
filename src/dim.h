/* Dimensions: numbers, and symbolic sizes that compare with ==.
 *
 * An rl_dim >= 0 is a known size.  An rl_dim < 0 names an expression in the context's table: a sum of monomials
 * c * s1 * s2 ..., where the s are symbols (interned names).  Expressions are canonical and interned, so a == b proves two
 * dims equal.  What overflows becomes a fresh symbol, equal to nothing else.  What is no polynomial (a floor division, say)
 * becomes a symbol whose name is the expression's text, so the same computation again gives the same dim.
 *
 *   n = rl_dim_symbol(ctx, "N");  a = rl_dim_mul(ctx, n, 4);
 *   rl_dim_div(ctx, a, 2, &q)  -> true, q prints as "2*N";      rl_dim_div(ctx, n, 2, &q) -> false
 */
#ifndef RL_DIM_H
#define RL_DIM_H
#include "hash.h"

typedef int64_t rl_dim;

static inline bool rl_dim_known(rl_dim d) { return d >= 0; }

rl_dim rl_dim_symbol(rl_ctx *ctx, rl_str name);
rl_dim rl_dim_fresh(rl_ctx *ctx); /* a new symbol "?0", "?1", ..., equal to nothing else */
rl_dim rl_dim_add(rl_ctx *ctx, rl_dim a, rl_dim b);
rl_dim rl_dim_mul(rl_ctx *ctx, rl_dim a, rl_dim b);
/* a - b.  A known negative result cannot be a dim: it gives a fresh symbol. */
rl_dim rl_dim_sub(rl_ctx *ctx, rl_dim a, rl_dim b);
/* Exact division: true, and *q, iff b divides a as polynomials with integer coefficients: N*N-1 by N-1 gives N+1. */
bool rl_dim_div(rl_ctx *ctx, rl_dim a, rl_dim b, rl_dim *q);
/* a = q * b + rest, b a monomial: q takes every term of a that b divides.  (2*H*W + 3) by H*W gives 2 and 3.
 * Neither is negative: (16*D - 1) by 8*D gives 1 and 8*D-1; where that cannot be told, q is 0. */
void rl_dim_split(rl_ctx *ctx, rl_dim a, rl_dim b, rl_dim *q, rl_dim *rest);
/* a >= b whatever sizes of at least 1 the symbols stand for; false also where that cannot be told.  7*N*W >= 4*W, N >= 1. */
bool rl_dim_not_less(rl_ctx *ctx, rl_dim a, rl_dim b);
/* floor(a / k) and ceil(a / k), k > 0; exact where possible, else a symbol named by the expression. */
rl_dim rl_dim_floordiv(rl_ctx *ctx, rl_dim a, int64_t k);
rl_dim rl_dim_ceildiv(rl_ctx *ctx, rl_dim a, int64_t k);
rl_dim rl_dim_prod(rl_ctx *ctx, const rl_dim *d, uint32_t n);
/* The symbol's name when d is exactly one symbol, else NULL: also of a number. */
rl_str rl_dim_name(const rl_ctx *ctx, rl_dim d);
/* As text: "3", "N", "2*N*S+1", "floor(H/2)". */
void rl_dim_print(rl_text *t, const rl_ctx *ctx, rl_dim d);
/* Copies a text of dims; the fresh ones ("?17"), also those in names made of some ("'?min(300|?17)'"), are numbered as they first come:
 * seen has 1 + number -> the one put. */
void rl_dim_renumber(rl_text *t, const char *s, size_t n, rl_hash *seen);
/* The inverse of rl_dim_print, of a text that ends with 0; *s is moved behind the dim. A name of letters, digits and
 * _.:#$~ stands bare, any other in '...'; "?3" is a fresh dim, "floor(H/2)" and "ceil(H/2)" are divisions. False: no dim,
 * and *s is where it fails. */
bool rl_dim_parse(rl_ctx *ctx, const char **s, rl_dim *d);
/* Numbers for sizes: known dims as they are, every symbol replaced by `guess` (for weights of moved bytes). */
int64_t rl_dim_guess(const rl_ctx *ctx, rl_dim d, int64_t guess);
/* Is a number for certain at least 0, where symbols with names are at least 1?  N-1 is, 512-N and N-2 are not. */
bool rl_dim_never_negative(const rl_ctx *ctx, rl_dim d);
/* The size where each symbol has the value that the hash gives its name's pointer; false when one has none there. */
bool rl_dim_eval(const rl_ctx *ctx, rl_dim d, const rl_hash *value, int64_t *x);

/* Symbols, and what else is written for each: sizes that are equal, but do not look it (dim_alike.c). */
typedef struct { uint32_t sym; rl_dim is; } rl_dimrule;
typedef struct { rl_dimrule *p; uint32_t n, cap; } rl_dimrules;
/* From now on a == b: H and 2*floor((H+1)/2), say. False where that is no news, or cannot be solved for a symbol. */
bool rl_dim_equate(rl_ctx *ctx, rl_arena *mem, rl_dimrules *r, rl_dim a, rl_dim b);
/* The size as the rules write it: where these make a and b equal, both give the same. */
rl_dim rl_dim_normal(rl_ctx *ctx, const rl_dimrules *r, rl_dim d);

#endif
