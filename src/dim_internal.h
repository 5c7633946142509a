/* What dim.c and dim_text.c share: polynomials as terms, and a polynomial while it is computed.
 *
 *   2*N*S + 1:  rl_dimwork w = {.n = 2, .t = {{.c = 2, .nsym = 2, .sym = {N, S}}, {.c = 1}}};  rl_dim_finish(ctx, &w) */
#ifndef RL_DIM_INTERNAL_H
#define RL_DIM_INTERNAL_H
#include "dim.h"

enum { MAXDEGREE = 12, MAXTERM = 32 };

typedef enum { NAMED, FRESH, FLOOR } rl_symkind;

typedef struct {
    rl_str name;
    rl_symkind kind;
    uint32_t num; /* FLOOR: polynomial p */
    int64_t k;    /* FLOOR: the divisor */
} rl_dimsym;

typedef struct { int64_t c; uint32_t nsym; uint32_t sym[MAXDEGREE]; } rl_dimterm;
typedef struct { uint32_t n; bool bad; rl_dimterm t[MAXTERM]; } rl_dimwork; /* bad: something overflowed */
typedef struct { uint32_t n, next; const rl_dimterm *t; } rl_dimpoly;       /* next: chain of equal hashes */

struct rl_dimtab {
    struct { rl_dimsym *p; uint32_t n, cap; } sym;
    struct { rl_dimpoly *p; uint32_t n, cap; } poly;
    rl_hash bysym[3]; /* by kind: name pointer -> symbol */
    rl_hash bypoly;   /* hash -> first polynomial */
    uint32_t nfresh;
};

struct rl_dimtab *rl_dim_table(rl_ctx *ctx); /* the context's, made when first asked for */
const rl_dimpoly *rl_dim_poly(const rl_ctx *ctx, rl_dim d); /* d < 0 */
uint32_t rl_dim_intern(rl_ctx *ctx, rl_str name, rl_symkind kind, uint32_t num, int64_t div); /* a symbol's number */

void rl_dim_start(rl_dimwork *w); /* 0 */
void rl_dim_add_term(const rl_ctx *ctx, rl_dimwork *w, const rl_dimterm *x);
void rl_dim_add_const(const rl_ctx *ctx, rl_dimwork *w, int64_t c);
void rl_dim_multiply(const rl_ctx *ctx, const rl_dimwork *a, const rl_dimwork *b, rl_dimwork *w); /* w is neither a nor b */
void rl_dim_floor(rl_ctx *ctx, rl_dimwork *x, int64_t k); /* x becomes floor(x / k) */
rl_dim rl_dim_finish(rl_ctx *ctx, const rl_dimwork *w);

void rl_dim_print_terms(rl_text *t, const rl_ctx *ctx, const rl_dimterm *x, uint32_t n);

#endif
