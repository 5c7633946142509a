/* What normalize.c, normalize_rows.c and normalize_sequences.c share. */
#ifndef RL_NORMALIZE_H
#define RL_NORMALIZE_H
#include "pass.h"

/* A name for a value made beside the first one that the node makes, which has one: NAME_WHICH, or where that is taken NAME_WHICH_2, NAME_WHICH_3 ...
 * The second checker knows the new values by it. */
rl_str rl_normal_name(const rl_graph *g, const rl_nodeinfo *n, const char *which, rl_arena *tmp);
bool rl_normal_may_name(const rl_graph *g, const rl_nodeinfo *n);
/* "piece3", in tmp. */
const char *rl_normal_numbered(const char *which, uint32_t i, rl_arena *tmp);
/* A new value of this type, which nothing makes. */
rl_value rl_normal_value(rl_graph *g, rl_str name, rl_dtype dtype, uint32_t rank, const rl_dim *dim);
bool rl_normal_has_dims(const rl_valinfo *v, uint32_t rank, const rl_dim *dim);

/* normalize_rows.c: ScatterNDs of every row become Concats; GatherNDs become Gathers. */
rl_status rl_normalize_scatters(rl_pass_run *r);
rl_status rl_normalize_gathers(rl_pass_run *r);
/* normalize_sequences.c: sequences whose elements are known become their elements. */
rl_status rl_normalize_sequences(rl_pass_run *r);

#endif
