/* What the functions of include/relayout.h that read a model have in common, in both libraries: defaults, reading, messages.
 *
 *   RL_TRY(rl_options_check(options, m ? NULL : "the model is NULL", result));
 *   rl_options o = rl_options_of(options);
 *   rl_ctx *ctx = rl_options_start(&o, RL_MEMORY_BASE, result);             clears *result
 *   if (!ctx) return RL_ENOMEM;
 *   rl_graph *g = NULL;
 *   rl_status s = rl_options_read(ctx, &o, model, &g);
 *   ...
 *   return rl_options_finish(ctx, g, s, result);             the message, if any, and the end of g and ctx */
#ifndef RL_OPTIONS_H
#define RL_OPTIONS_H
#include "ir.h"

/* The caller's options with the defaults filled in; members beyond the caller's struct are 0. */
rl_options rl_options_of(const rl_options *o);
/* RL_EUSAGE, said in *r, where `wrong` says what is wrong with the call's own arguments, or a struct_size was never set: its other members
 * would be left out without a word. */
rl_status rl_options_check(const rl_options *o, const char *wrong, rl_result *r);
/* base: RL_MEMORY_BASE or RL_MEMORY_RUN. */
rl_ctx *rl_options_start(const rl_options *o, size_t base, rl_result *r);
/* The model with the sizes that the options give. On failure *g may still be there, to be freed. */
rl_status rl_options_read(rl_ctx *ctx, const rl_options *o, const rl_model *m, rl_graph **g);
/* The same for one to compare it with, in which such sizes may be numbers already. */
rl_status rl_options_read_second(rl_ctx *ctx, const rl_options *o, const rl_model *m, rl_graph **g);
rl_status rl_options_finish(rl_ctx *ctx, rl_graph *g, rl_status s, rl_result *r);
/* n bytes and a 0 that are the caller's, from its allocator (which is told n + 1) or malloc. */
rl_status rl_options_give(rl_ctx *ctx, const void *p, size_t n, char **out);

#endif
