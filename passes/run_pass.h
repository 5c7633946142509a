/* One pass of passes.def by its name, for pipeline.c: printed, timed and verified afterwards as rl_passopt says.
 *
 *   RL_TRY(rl_pass_check_names(ctx, "fold,dce"));
 *   if (!rl_pass_disabled(r->opt, "fold")) RL_TRY(rl_run_pass(r, "fold")); */
#ifndef RL_RUN_PASS_H
#define RL_RUN_PASS_H
#include "pass.h"

/* name: of a pass that exists; what follows a comma is not of it. RL_EUSAGE: of the plan, and legal has not run. */
rl_status rl_run_pass(rl_pass_run *r, const char *name);
/* The types of a model's graph, which is no pass, but printed, timed and verified as one. */
rl_status rl_pass_infer(rl_pass_run *r);
rl_status rl_pass_verify(const rl_pass_run *r, const char *name);
bool rl_pass_disabled(const rl_passopt *o, const char *name);
/* RL_EUSAGE: some name of a comma-separated list is no pass's. */
rl_status rl_pass_check_names(rl_ctx *ctx, const char *list);
/* Adds the seconds since then to what the pass took. */
void rl_pass_took(rl_outcome *out, const char *name, double since);
/* Is word one of a comma-separated list? */
bool rl_is_listed(const char *list, const char *word);
#endif
