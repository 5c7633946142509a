/* The labels of one op while legal.c finds them: its own dims, each attached to a dim of each operand that has it.
 *
 *   MatMul A[M,K] B[K,N] -> Y[M,N]:
 *     A = rl_labels_operand(b, 0, false) ...;  m = rl_labels_add(b, RL_T_FREE, RL_G_M);  rl_labels_at(b, m, A, 0);  rl_labels_at(b, m, Y, 0);
 *
 * Where something does not fit, ok becomes false, and stays so: the op is then fixed. */
#ifndef RL_LEGAL_LABELS_H
#define RL_LEGAL_LABELS_H
#include "plan.h"

#define RL_MAXLABEL 32

typedef struct {
    rl_plan *p;
    const rl_graph *g;
    const rl_nodeinfo *n;
    rl_oplegal *op; /* operands so far */
    rl_label label[RL_MAXLABEL];
    uint32_t nlabel;
    bool ok;
} rl_labels;

/* Of a value; RL_NORANK: it is left out, or its rank is not known. */
static inline uint32_t rl_labels_rank(const rl_labels *b, rl_value v) { return rl_has(v) ? rl_val(b->g, v)->rank : RL_NORANK; }
static inline rl_dim rl_labels_size(const rl_labels *b, uint32_t operand, uint32_t dim) {
    return rl_val(b->g, b->op->operand[operand].tensor)->dim[dim];
}

/* A new operand: the value in that slot of the node. */
uint32_t rl_labels_operand(rl_labels *b, uint32_t slot, bool out);
/* A new label, attached to nothing. */
uint32_t rl_labels_add(rl_labels *b, rl_role role, uint32_t group);
/* Attaches a label to a dim of an operand. */
void rl_labels_at(rl_labels *b, uint32_t label, uint32_t operand, uint32_t dim);
/* Operand 0: input 0, with a free label d for each dim d; then the first nout outputs, of the same rank, with the same labels.  Returns ok. */
bool rl_labels_like_input(rl_labels *b, uint32_t nout);
/* Have all operands one size there, but for those that have 1? */
bool rl_labels_agree(const rl_labels *b, uint32_t label);
/* Does the node make this output for anyone? */
static inline bool rl_labels_makes(const rl_labels *b, uint32_t slot) {
    const rl_valinfo *v = rl_has(rl_out(b->n, slot)) ? rl_val(b->g, b->n->out[slot]) : NULL;
    return v && (v->nuse || v->is_output);
}
/* Any but the first? */
static inline bool rl_labels_makes_more(const rl_labels *b) {
    bool more = false;
    for (uint32_t k = 1; k < b->n->nout; k++) more |= rl_labels_makes(b, k);
    return more;
}

/* Is it a constant, or one that is only dequantized? */
bool rl_labels_stored(const rl_labels *b, rl_value v);
/* Is it that, also behind movement? */
bool rl_labels_constant(const rl_labels *b, rl_value v);

/* One rule per class of ops. */
#define LABELS(class, rule) void rl_label_##rule(rl_labels *b);
#include "legal_labels.def"
#undef LABELS

#endif
