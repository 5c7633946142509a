/* The program: a context around the command that was typed (cmd.h), and the line that says what went wrong.
 *
 * What the user asked to see goes to stdout, everything else to stderr; an error is one line
 *
 *   relayout: FILE: message
 *
 * and leaves no output file behind.  The exit status is the rl_status (base.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../runtime/backends.h"
#include "cmd.h"

/* Before the model is read: what is wrong with the target has nothing to do with it. */
static rl_status check_target(rl_line *l) {
    rl_arena tmp;
    const rl_target *t;
    if (RL_PROTECT(l->ctx)) {
        rl_complain(l, NULL, l->ctx->error);
        return RL_ENOMEM;
    }
    rl_arena_init(&tmp, l->ctx);
    rl_status s = rl_target_find(&tmp, l->pass.target, &t);
    rl_arena_free(&tmp);
    if (s != RL_OK) rl_complain(l, NULL, l->ctx->error);
    return s;
}

static void log_line(void *user, rl_log_level level, const char *text) {
    const rl_line *l = user;
    if (level == RL_LOG_WARNING && !l->quiet) rl_complain(l, l->in, text);
    else if (l->verbose) fprintf(stderr, "%8.3f s  %s\n", rl_seconds() - l->start, text);
}

static void show_step(void *user, const char *step) {
    rl_progress(user, step);
}

static bool runs_models(const rl_line *l, const rl_command *c) {
    return l->check || c->run == rl_cmd_run || c->run == rl_cmd_verify || c->run == rl_cmd_bench || c->run == rl_cmd_profile;
}

/* One line, whether it went well or not. */
static void say_sizes(const rl_line *l, rl_status s, const char *chosen) {
    char text[sizeof l->ctx->error];
    const char *what = "sizes that the model leaves open were chosen, as if with";
    if (s == RL_OK) {
        snprintf(text, sizeof text, "%s%s", what, chosen);
        if (!l->quiet) rl_complain(l, l->in, text);
    } else if (s != RL_ENOMEM && s != RL_ESTOPPED && l->ctx->error[0]) {
        memcpy(text, l->ctx->error, sizeof text);
        rl_fail(l->ctx, s, "%.500s (%s%s)", text, what, chosen);
    }
}

static rl_status run(rl_line *l, const rl_command *c) {
    rl_status s;
    char chosen[RL_CHOSEN] = "";
    l->start = rl_seconds();
    l->pass.print = rl_to_stderr;
    l->named_target = l->pass.target != NULL;
    if (!l->pass.target) l->pass.target = "generic";
    if (!l->pass.objective) l->pass.objective = "nodes";
    const rl_context host = {.struct_size = sizeof host, .user = l, .log = log_line, .progress = show_step};
    l->ctx = rl_ctx_new_for(0, &host);
    if (!l->ctx) {
        rl_complain(l, NULL, "out of memory");
        return RL_ENOMEM;
    }
    if (runs_models(l, c) && !l->check) l->run.chosen = chosen;
    rl_ctx_bound(l->ctx, (size_t)l->memory << 20, runs_models(l, c) ? RL_MEMORY_RUN : RL_MEMORY_BASE);
    s = check_target(l);
    if (s == RL_OK) s = c->run(l);
    else l->ctx->error[0] = 0;
    rl_progress(l, NULL);
    if (chosen[0]) say_sizes(l, s, chosen);
    if (s != RL_OK && l->ctx->error[0]) rl_complain(l, l->in, l->ctx->error);
    rl_ctx_free(l->ctx);
    return s;
}

/* What is still in the buffer goes out, and what was lost of it before is said here, whichever command wrote it. */
static rl_status end_output(const rl_line *l, rl_status s) {
    char text[256];
    errno = 0;
    bool lost = fflush(stdout) != 0 || ferror(stdout);
    if (s != RL_OK || !lost) return s;
    snprintf(text, sizeof text, "stdout: %s", errno ? strerror(errno) : "a part of it was not written");
    rl_complain(l, NULL, text);
    return RL_EIO;
}

rl_status rl_program(int argc, char **argv) {
    rl_line l = {.run = {.find = rl_backend_find, .rtol = 1e-4, .atol = -1}, .around = 3};
    const rl_command *c;
    bool done;
    rl_status s = rl_line_parse(&l, argc, argv, &c, &done);
    if (s == RL_OK && !done) s = rl_line_check_outputs(&l);
    if (s == RL_OK && !done) s = run(&l, c);
    return end_output(&l, s);
}
