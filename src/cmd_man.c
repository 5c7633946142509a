/* Manual pages (--man), from the rows of commands.def: see cmd.h.  The text is roff with the man macros. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cmd.h"

/* n bytes as running text: nothing in them is taken for a request, and "-" stays what is typed. */
static void put(const char *s, size_t n) {
    for (size_t i = 0; i < n; i++) {
        bool first = i == 0 || s[i - 1] == '\n';
        if (first && (s[i] == '.' || s[i] == '\'')) printf("\\&");
        if (s[i] == '\\') printf("\\e");
        else if (s[i] == '-') printf("\\-");
        else if (s[i] == '\'') printf("\\(aq");
        else if (s[i] == '^') printf("\\(ha");
        else if (s[i] == '~') printf("\\(ti");
        else putchar(s[i]);
    }
}

static void put_line(const char *s) {
    put(s, strlen(s));
    putchar('\n');
}

/* "layout draw" as the name of a page: relayout-layout-draw. */
static void put_page(const char *name, bool upper) {
    put(upper ? "RELAYOUT" : "relayout", 8);
    if (*name) printf("\\-");
    for (const char *s = name; *s; s++) {
        if (*s == ' ' || *s == '-') printf("\\-");
        else putchar(upper ? toupper((unsigned char)*s) : *s);
    }
}

static void put_title(const char *name, const char *help) {
    printf(".TH ");
    put_page(name, true);
    printf(" 1 \"\" \"relayout %s\" \"User Commands\"\n.SH NAME\n", RL_VERSION);
    put_page(name, false);
    printf(" \\- ");
    put_line(help);
}

static void put_synopsis(const char *name, const char *rest) {
    printf(".SH SYNOPSIS\n.B relayout\n");
    if (*name) printf(".B ");
    if (*name) put_line(name);
    if (*rest) put_line(rest);
}

static void put_examples(const char *s) {
    printf(".SH EXAMPLES\n.nf\n");
    put_line(s);
    printf(".fi\n");
}

static void put_options(const rl_command *c) {
    printf(".SH OPTIONS\n");
    for (uint32_t i = 0; i < rl_noption; i++) {
        const rl_option *o = &rl_optiontable[i];
        if (!(o->commands & c->bit)) continue;
        printf(".TP\n\\fB");
        if (o->letter) printf("\\-%c\\fR, \\fB", o->letter);
        printf("\\-\\-");
        put(o->name, strlen(o->name));
        printf("\\fR%s", o->value ? " \\fI" : "");
        if (o->value) put(o->value, strlen(o->value));
        printf("%s\n", o->value ? "\\fR" : "");
        put_line(o->help);
    }
}

static void put_commands(const rl_command *group) {
    for (uint32_t i = 0; i < rl_ncommand; i++) {
        const rl_command *c = &rl_commands[i];
        if (group ? !rl_command_belongs(c, group) : c->name[rl_command_group(c)] != 0) continue;
        printf(".TP\n\\fB");
        put(c->name, strlen(c->name));
        printf("\\fR \\fI");
        put(c->operands, strlen(c->operands));
        printf("\\fR\n");
        put_line(c->help);
    }
}

void rl_man_all(void) {
    put_title("", "ONNX models with the fewest Transposes");
    put_synopsis("", "COMMAND [options] ...");
    printf(".br\n.B relayout\nIN OUT\n.SH DESCRIPTION\nThe second form is \\fBrelayout optimize\\fR IN \\-o OUT. Each command has a page of its own, relayout\\-COMMAND.\n");
    printf(".SH COMMANDS\n");
    put_commands(NULL);
    put_examples(rl_commands[0].examples);
    printf(".SH EXIT STATUS\n");
    for (uint32_t i = 0; i < rl_nexit; i++) {
        printf(".TP\n%d\n", rl_exits[i].number);
        put_line(rl_exits[i].when);
    }
}

void rl_man_command(const rl_command *c) {
    put_title(c->name, c->help);
    put_synopsis(c->name, c->operands);
    if (c->most) put_line("[options]");
    if (*c->more) printf(".SH DESCRIPTION\n");
    if (*c->more) put_line(c->more);
    if (rl_command_is_group(c)) printf(".SH COMMANDS\n");
    put_commands(c);
    put_options(c);
    put_examples(c->examples);
    printf(".SH SEE ALSO\n.BR relayout (1)\n");
}
