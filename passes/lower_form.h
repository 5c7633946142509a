/* One op on its way into the output in another order of its dims: what lower_form.c (its dims), lower_params.c (its parameters) and
 * lower_ops.c (its node) share.
 *
 *   Softmax axis=1 on x[N,C,H,W], tokens N H W C: dims N*H*W and C   ->   Softmax axis=1 on [N*H*W,C] */
#ifndef RL_LOWER_FORM_H
#define RL_LOWER_FORM_H
#include "lower.h"

/* Tokens [from, to) of the sequence.  Empty: a dim of size 1, which may stand for a label of that size: label - 1. */
typedef struct { uint8_t from, to; uint16_t label; } rl_dimspan;

typedef struct {
    rl_lower *l;
    rl_oplegal *op;
    const rl_nodeinfo *n; /* re-read after nodes are added */
    rl_class cls;
    const uint8_t *token; /* outermost first */
    uint32_t ntoken;
    rl_dimspan dim[RL_MAXDIMS];
    uint32_t ndim;
    bool whole;           /* leading dims of size 1 stay */
    rl_value *in;
    uint32_t nin;
    struct { rl_attr *p; uint32_t n, cap; } attr;
    rl_op write_as;
} rl_opwriter;

/* ---- dims ---- */

/* Sets the dims: those of which the fewest Reshapes are needed.  false: the op cannot be written in this order. */
bool rl_opwriter_choose_dims(rl_opwriter *w);
/* Parameters may name dims of size 1: each such label takes one that is there, or a new one in front.  false: too many dims. */
bool rl_opwriter_place_labels(rl_opwriter *w);
/* Operand o's dims. */
void rl_opwriter_dims(const rl_opwriter *w, uint32_t o, rl_dims *d);
uint32_t rl_opwriter_order(const rl_opwriter *w, uint32_t o);
/* A tensor that will do as operand o as it is: RL_NONE if there is none. */
uint32_t rl_opwriter_ready(const rl_opwriter *w, uint32_t o, const rl_dims *want);
/* How many operands have none. */
uint32_t rl_opwriter_reshapes(rl_opwriter *w);
/* May operand o lack leading dims? */
bool rl_opwriter_broadcasts(const rl_opwriter *w, uint32_t o);
/* The label of the i-th token. */
const rl_label *rl_opwriter_label(const rl_opwriter *w, uint32_t i);
/* The dim that holds a label; RL_NONE if none does. */
uint32_t rl_opwriter_dim(const rl_opwriter *w, uint32_t label);
uint32_t rl_dims_leading_ones(const rl_dims *d);

/* ---- parameters ---- */

/* Does a Split say how long its pieces are? */
bool rl_opwriter_gives_sizes(const rl_opwriter *w);
/* Renames what the attributes and constant inputs say of dims: axis, axes, pads, repeats, sizes. */
void rl_opwriter_parameters(rl_opwriter *w);

#endif
