/* What nodes an operator's definition allows: src/schemas.def, one row per operator.
 *
 * All that treats an op as more than opaque was written for the definitions that the rows name.  A node with an attribute, an
 * input or an output that its definition has not, without an input that it must have, or of a version later than any that was
 * read, may mean anything: the optimizer leaves it as it is (rl_schema_op), and no kernel runs it (runtime/prepare.c). */
#ifndef RL_SCHEMA_H
#define RL_SCHEMA_H
#include "ir.h"

/* The domain's definitions were read up to this version; 0 where the domain is not known. */
int64_t rl_schema_newest(rl_str domain);

/* How many inputs or outputs: the first `least` must be there. */
typedef struct { uint32_t least, most; } rl_schema_count;

/* A node that was known: the attributes of one that has the same are too. */
typedef struct { const rl_attr *attr; uint32_t nattr, since; rl_schema_count in, out; } rl_schema_seen;

/* op, or RL_OP_OPAQUE where the node has what the op's definition has not. seen: NULL, or one for each op of the table, whose nodes stay where
 * they are as long as it is used. why, empty before: what no node of the op may say, whatever its inputs are (one that must be there is not;
 * perm is no permutation): the readers refuse it. */
rl_op rl_schema_op(rl_op op, const rl_nodeinfo *n, rl_schema_seen *seen, rl_text *why);

/* Whether all that the node has is known, whatever its op is; if not, why says what is not. */
bool rl_schema_knows(const rl_nodeinfo *n, rl_text *why);

#endif
