/* --help and the command help, from the rows of commands.def: see cmd.h. */
#include <stdio.h>
#include <string.h>

#include "cmd.h"

static void put_heading(bool paints, const char *s) {
    printf("\n%s%s:%s\n", rl_paint(paints, RL_BOLD), s, rl_paint(paints, RL_PLAIN));
}

enum { MOSTLEFT = 80 };

/* The left column: "-o, --output OUT". */
static int option_text(const rl_option *o, char *out) {
    return snprintf(out, MOSTLEFT, "%c%c%s --%s %s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ', o->letter ? "," : " ", o->name,
                    o->value ? o->value : "");
}

static void put_options(const rl_command *c) {
    char left[MOSTLEFT];
    int width = 0;
    for (int print = 0; print < 2; print++)
        for (uint32_t i = 0; i < rl_noption; i++) {
            const rl_option *o = &rl_optiontable[i];
            if (!(o->commands & c->bit)) continue;
            int n = option_text(o, left);
            if (print) printf("  %-*s  %s\n", width, left, o->help);
            else width = RL_MAX(width, n);
        }
}

/* The commands whose names are one word, or those of a group. */
static void put_commands(const rl_command *group) {
    int width = 0;
    for (int print = 0; print < 2; print++)
        for (uint32_t i = 0; i < rl_ncommand; i++) {
            const rl_command *c = &rl_commands[i];
            size_t first = rl_command_group(c);
            if (group ? !rl_command_belongs(c, group) : c->name[first] != 0) continue;
            if (print) printf("  %-11s %-*s  %s\n", group ? c->name + first + 1 : c->name, width, c->operands, c->help);
            else width = RL_MAX(width, (int)strlen(c->operands));
        }
}

/* One example a line, each behind two spaces. */
static void put_examples(const char *s) {
    while (*s) {
        size_t n = strcspn(s, "\n");
        printf("  %.*s\n", (int)n, s);
        s += n + (s[n] == '\n');
    }
}

void rl_help_command(const rl_line *l, const rl_command *c) {
    bool paints = rl_paints(l, stdout);
    printf("%susage:%s relayout %s %s%s\n%s\n", rl_paint(paints, RL_BOLD), rl_paint(paints, RL_PLAIN), c->name, c->operands,
           c->most ? " [options]" : "", c->help);
    if (*c->more) printf("\n%s\n", c->more);
    printf("\n");
    put_commands(c);
    put_options(c);
    put_heading(paints, "examples");
    put_examples(c->examples);
}

void rl_help_all(const rl_line *l) {
    bool paints = rl_paints(l, stdout);
    printf("relayout %s: ONNX models with the fewest Transposes\n\n", RL_VERSION);
    printf("usage: relayout COMMAND ...        relayout IN OUT is relayout optimize IN -o OUT\n\n");
    put_commands(NULL);
    put_heading(paints, "examples");
    for (uint32_t i = 0; i < 3; i++) put_examples(rl_commands[i].examples);
    printf("\nrelayout COMMAND --help lists its options.\n");
    put_heading(paints, "exit status");
    for (uint32_t i = 0; i < rl_nexit; i++) printf("  %d %s\n", rl_exits[i].number, rl_exits[i].when);
}

rl_status rl_cmd_help(rl_line *l) {
    char name[64];
    snprintf(name, sizeof name, "%s%s%s", l->nfile ? l->file[0] : "", l->nfile > 1 ? " " : "", l->nfile > 1 ? l->file[1] : "");
    const rl_command *c = rl_command_find(name);
    if (l->nfile && !c) return rl_usage_error(l, "help: no command '%s'", name);
    if (c) rl_help_command(l, c);
    else rl_help_all(l);
    return RL_OK;
}
