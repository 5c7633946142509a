/* Rows that go to places of their own: what a step with rl_step.scatter makes (scatter.c).
 *
 *   float *y;
 *   RL_TRY(rl_scatter_make(c, rows, n, &y));                        output 0; row r goes to  y + c->step->scatter->at[r] * n */
#ifndef RL_SCATTER_H
#define RL_SCATTER_H
#include "exec.h"

typedef struct rl_scatter {
    int64_t n, rows;    /* floats of a row; rows */
    const uint32_t *at; /* [rows] which row of output 0 each is */
    uint32_t rank;
    int64_t dim[RL_RANK];
    const int64_t *perm; /* of output 0 in memory; NULL: row-major */
} rl_scatter;

/* Output 0, to be filled; RL_EMODEL where the rows are not those that the graph says. */
rl_status rl_scatter_make(rl_call *c, int64_t rows, int64_t n, float **y);
/* Output 0, made with its rows in order, becomes what it is to be. */
rl_status rl_scatter_move(rl_call *c);

#endif
