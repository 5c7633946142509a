/* Runs other optimizers by a Python: see cmd_compare.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "carried.h"
#include "cmd_compare.h"

enum { NOT_FOUND = 127 };

/* In the new process: becomes the Python. */
static _Noreturn void become(const rl_line *l, const char *python, const char *path, const char *dir) {
    char limit[32];
    snprintf(limit, sizeof limit, "%g", l->limit > 0 ? l->limit : 120);
    if (l->peers) execlp(python, python, path, l->in, dir, "--limit", limit, "--only", l->peers, (char *)NULL);
    else execlp(python, python, path, l->in, dir, "--limit", limit, (char *)NULL);
    _exit(NOT_FOUND);
}

static FILE *start(const rl_line *l, const char *python, const char *path, const char *dir, pid_t *pid) {
    int ends[2];
    if (pipe(ends) != 0) return NULL;
    fflush(NULL);
    *pid = fork();
    if (*pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        become(l, python, path, dir);
    }
    close(ends[1]);
    FILE *f = *pid > 0 ? fdopen(ends[0], "r") : NULL;
    if (!f) close(ends[0]);
    return f;
}

/* The next field of a line to a buffer; s is set behind it. */
static void take_field(char **s, char *to, size_t size) {
    size_t n = strcspn(*s, "\t");
    snprintf(to, size, "%.*s", (int)n, *s);
    *s += n + ((*s)[n] != 0);
}

static rl_peer read_line(char *s) {
    rl_peer p = {.moving = -1, .bytes = -1};
    char seconds[32], transposes[32];
    s[strcspn(s, "\n")] = 0;
    take_field(&s, p.peer, sizeof p.peer);
    take_field(&s, p.label, sizeof p.label);
    take_field(&s, p.version, sizeof p.version);
    take_field(&s, seconds, sizeof seconds);
    take_field(&s, p.model, sizeof p.model);
    take_field(&s, transposes, sizeof transposes);
    take_field(&s, p.outputs, sizeof p.outputs);
    take_field(&s, p.error, sizeof p.error);
    p.seconds = *seconds ? strtod(seconds, NULL) : -1;
    p.transposes = *transposes ? strtoll(transposes, NULL, 10) : -1;
    return p;
}

/* The lines as they come, with the name of each that is done as progress. */
static void take_lines(rl_line *l, FILE *f, rl_peers *out) {
    char s[4096], text[160];
    while (out->n < RL_MOSTPEERS && fgets(s, sizeof s, f)) {
        out->p[out->n] = read_line(s);
        snprintf(text, sizeof text, "%s done", out->p[out->n++].label);
        rl_progress(l, text);
    }
}

rl_status rl_peers_run(rl_line *l, const char *dir, rl_peers *out, const char **why) {
    const char *given = getenv("RELAYOUT_PYTHON"), *python = given && *given ? given : "python3";
    char path[4096];
    pid_t pid = 0;
    int how = 0;
    *why = NULL;
    snprintf(path, sizeof path, "%s/optimizers.py", dir);
    RL_TRY(rl_file_write(l->ctx, path, rl_optimizers_py, rl_optimizers_py_size));
    FILE *f = start(l, python, path, dir, &pid);
    if (!f) return rl_fail(l->ctx, RL_EIO, "no process for the other optimizers: %s", strerror(errno));
    take_lines(l, f, out);
    fclose(f);
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR) continue;
    if (!WIFEXITED(how) || WEXITSTATUS(how) != 0)
        *why = WIFEXITED(how) && WEXITSTATUS(how) == NOT_FOUND ? "no python3: other optimizers cannot be asked (RELAYOUT_PYTHON=... names one)"
                                                                : "the Python that runs other optimizers failed";
    return RL_OK;
}
