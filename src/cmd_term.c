/* Colour, progress and messages: what is only for people who look (cmd.h). */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"

bool rl_paints(const rl_line *l, FILE *f) {
    const char *how = l && l->color ? l->color : "auto", *none = getenv("NO_COLOR"), *term = getenv("TERM");
    if (strcmp(how, "auto") != 0) return strcmp(how, "always") == 0;
    return isatty(fileno(f)) && !(none && *none) && !(term && strcmp(term, "dumb") == 0);
}

const char *rl_paint(bool paints, rl_color color) {
    static const char *const codes[] = {[RL_PLAIN] = "\033[0m", [RL_BOLD] = "\033[1m", [RL_RED] = "\033[1;31m", [RL_GREEN] = "\033[32m"};
    return paints ? codes[color] : "";
}

void rl_complain(const rl_line *l, const char *file, const char *message) {
    char name[PATH_MAX] = "", text[2 * sizeof l->ctx->error];
    bool paints = rl_paints(l, stderr);
    bool in = file && rl_is_stdio(file);
    if (in && strncmp(message, "-: ", 3) == 0) message += 3;
    if (file) snprintf(name, sizeof name, "%s", in ? "stdin" : file);
    snprintf(text, sizeof text, "%s", message);
    rl_make_plain(name);
    rl_make_plain(text);
    bool named = strncmp(text, name, strlen(name)) == 0;
    fprintf(stderr, "%srelayout:%s %s%s%s\n", rl_paint(paints, RL_RED), rl_paint(paints, RL_PLAIN), named ? "" : name, named ? "" : ": ", text);
}

rl_status (rl_usage_error)(const rl_line *l, const char *fmt, ...) {
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, "; see relayout %s%s--help", l->asked ? l->asked->name : "", l->asked ? " " : "");
    rl_complain(l, NULL, text);
    return RL_EUSAGE;
}

/* After the first second, on a terminal, where nobody asked for silence or for more. */
void rl_progress(rl_line *l, const char *text) {
    if (!text && !l->shows) return;
    if (text && (l->quiet || l->verbose || !isatty(STDERR_FILENO) || rl_seconds() - l->start < 1)) return;
    fprintf(stderr, "\r\033[K%s", text ? text : "");
    l->shows = text != NULL;
}
