/* The typed line against the rows of commands.def: see cmd.h. */
#include <float.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "hint.h"

enum { MOSTNAMES = 128, FIRSTKEY = 256 };

/* ---- values of options ---- */

/* "nodes|bytes|time" as "nodes, bytes or time". */
static void list_choices(const char *choices, char *out, size_t size) {
    const char *word;
    size_t used = 0;
    out[0] = 0;
    for (const char *at = choices; *at && used < size;) {
        bool first = at == choices;
        size_t n = rl_choice_next(&at, &word);
        used += (size_t)snprintf(out + used, size - used, "%s%.*s", first ? "" : *at ? ", " : " or ", (int)n, word);
    }
}

static rl_status set_choice(const rl_line *l, const rl_option *o, const char *arg, const char **to) {
    const char *word;
    char all[128];
    for (const char *at = o->value; *at;) {
        size_t n = rl_choice_next(&at, &word);
        if (strlen(arg) == n && strncmp(arg, word, n) == 0) {
            *to = arg;
            return RL_OK;
        }
    }
    list_choices(o->value, all, sizeof all);
    return rl_usage_error(l, "--%s is %s, not '%s'", o->name, all, arg);
}

static rl_status set_real(const rl_line *l, const rl_option *o, const char *arg, double *to) {
    char *end;
    bool above = o->kind == RL_K_SECONDS, decimal = arg[strspn(arg, "0123456789.eE+-")] == 0;
    *to = strtod(arg, &end);
    bool ok = decimal && end != arg && !*end && *to <= DBL_MAX && (above ? *to > 0 : *to >= 0);
    return ok ? RL_OK : rl_usage_error(l, "--%s '%s' is no number %s", o->name, arg, above ? "above 0" : "from 0 on");
}

static rl_status set_whole(const rl_line *l, const rl_option *o, const char *arg, void *to) {
    char *end;
    uint32_t least = o->kind == RL_K_COUNT;
    unsigned long n = strtoul(arg, &end, 10), most = o->kind == RL_K_COUNT ? RL_MOSTCOUNT : INT64_MAX;
    if (end == arg || *end || n > most || n < least) return rl_usage_error(l, "--%s '%s' is no number from %u to %lu", o->name, arg, least, most);
    if (o->kind == RL_K_COUNT) *(uint32_t *)to = (uint32_t)n;
    else *(uint64_t *)to = n;
    return RL_OK;
}

static rl_status add_item(const rl_line *l, const rl_option *o, const char *arg, rl_items *to) {
    if (to->n == RL_MOSTITEMS) return rl_usage_error(l, "more than %d times --%s", RL_MOSTITEMS, o->name);
    to->item[to->n++] = arg;
    return RL_OK;
}

static rl_status set_path(const rl_line *l, const rl_option *o, const char *arg, const char **to) {
    if (!*arg) return rl_usage_error(l, "--%s: its file has no name", o->name);
    *to = o->kind == RL_K_RESULT || o->kind == RL_K_REPORT ? rl_output_name(arg) : arg;
    return RL_OK;
}

static rl_status set_option(rl_line *l, const rl_option *o, const char *arg) {
    void *to = (char *)l + o->field;
    switch (o->kind) {
    case RL_K_FLAG:
    case RL_K_HELP: *(bool *)to = true; return RL_OK;
    case RL_K_CHOICE: return set_choice(l, o, arg, to);
    case RL_K_LIST: return add_item(l, o, arg, to);
    case RL_K_COUNT:
    case RL_K_SEED: return set_whole(l, o, arg, to);
    case RL_K_REAL:
    case RL_K_SECONDS: return set_real(l, o, arg, to);
    case RL_K_FILE:
    case RL_K_RESULT:
    case RL_K_REPORT:
    case RL_K_DIR: return set_path(l, o, arg, to);
    default: *(const char **)to = arg; return RL_OK;
    }
}

/* ---- options ---- */

/* A letter, which getopt leaves in optopt. */
static rl_status bad_letter(const rl_line *l, const rl_command *c) {
    for (uint32_t i = 0; i < rl_noption; i++)
        if (rl_optiontable[i].letter == optopt) return rl_usage_error(l, "%s takes no -%c", c->name, optopt);
    return rl_usage_error(l, "no option -%c", optopt);
}

/* What getopt stumbled over, and what may have been meant. */
static rl_status bad_option(const rl_line *l, const rl_command *c, int key, const char *arg) {
    const char *known[MOSTNAMES];
    char word[64];
    size_t n = 0;
    if (key == ':') return rl_usage_error(l, "%s wants a value", arg);
    if (strncmp(arg, "--", 2) != 0) return bad_letter(l, c);
    snprintf(word, sizeof word, "%.*s", (int)RL_MIN(strcspn(arg + 2, "="), sizeof word - 1), arg + 2);
    if (optopt) return rl_usage_error(l, "--%s takes no value", word);
    for (uint32_t i = 0; i < rl_noption; i++) {
        const rl_option *o = &rl_optiontable[i];
        if (o->commands & c->bit) known[n++] = o->name;
        else if (strcmp(o->name, word) == 0) return rl_usage_error(l, "%s takes no --%s", c->name, word);
    }
    const char *hint = rl_hint(word, known, n);
    return rl_usage_error(l, "no option --%s%s%s%s", word, hint ? "; did you mean --" : "", hint ? hint : "", hint ? "?" : "");
}

/* The rows of one command as getopt wants them; a key is the row's number from FIRSTKEY on. */
typedef struct { struct option longs[MOSTNAMES]; char letters[MOSTNAMES]; } getopt_rows;

static void make_rows(const rl_command *c, getopt_rows *r) {
    size_t n = 0, m = 1;
    memset(r, 0, sizeof *r);
    r->letters[0] = ':';
    for (uint32_t i = 0; i < rl_noption; i++) {
        const rl_option *o = &rl_optiontable[i];
        if (!(o->commands & c->bit)) continue;
        r->longs[n++] = (struct option){o->name, o->value ? required_argument : no_argument, NULL, FIRSTKEY + (int)i};
        if (o->letter) r->letters[m++] = (char)o->letter;
        if (o->letter && o->value) r->letters[m++] = ':';
    }
}

static const rl_option *option_of(const rl_command *c, int key) {
    if (key >= FIRSTKEY) return &rl_optiontable[key - FIRSTKEY];
    for (uint32_t i = 0; i < rl_noption; i++)
        if (rl_optiontable[i].letter == key && rl_optiontable[i].commands & c->bit) return &rl_optiontable[i];
    return NULL;
}

static rl_status parse_options(rl_line *l, const rl_command *c, int argc, char **argv, bool *done) {
    getopt_rows rows;
    make_rows(c, &rows);
    opterr = 0;
    optind = 0; /* anew: the process may have had another line */
    for (int key; (key = getopt_long(argc, argv, rows.letters, rows.longs, NULL)) != -1;) {
        const rl_option *o = option_of(c, key);
        if (!o) return bad_option(l, c, key, argv[optind - 1]);
        RL_TRY(set_option(l, o, optarg));
        *done = o->kind == RL_K_HELP;
        if (l->help) rl_help_command(l, c);
        if (l->man) rl_man_command(c);
        if (l->version) printf("relayout %s\n", RL_VERSION);
        if (*done) return RL_OK;
    }
    l->file = argv + optind;
    l->nfile = argc - optind;
    return RL_OK;
}

/* ---- operands ---- */

/* named: the command's word was typed. */
static rl_status check_operands(rl_line *l, const rl_command *c, bool named) {
    if (l->nfile && c->most == 0) return rl_usage_error(l, "%s takes no file", c->name);
    if (l->nfile > c->most) return rl_usage_error(l, "%s: what is '%s'?", c->name, l->file[c->most]);
    if (l->nfile < c->least) return rl_usage_error(l, "%s: %s", c->name, c->ask);
    for (int i = 0; i < l->nfile; i++)
        if (!*l->file[i]) return rl_usage_error(l, "%s: an operand is empty: %s", c->name, c->operands);
    if (l->nfile) l->in = l->file[0];
    if (!named && l->nfile == 2 && !l->out) { /* relayout IN OUT; behind the word, a pattern may be two models, and neither is to be lost */
        l->out = rl_output_name(l->file[1]);
        l->nfile = 1;
    }
    int piped = 0;
    for (int i = 0; i < l->nfile; i++) piped += rl_is_stdio(l->file[i]);
    return piped > 1 ? rl_usage_error(l, "%s: only one thing can come from stdin", c->name) : RL_OK;
}

/* ---- the command ---- */

/* The words that a command's name may be: with a group, those behind it; else the first of each name. */
static const char *nearest(const char *word, const rl_command *group) {
    const char *known[MOSTNAMES];
    size_t n = 0;
    for (uint32_t i = 0; i < rl_ncommand; i++) {
        const rl_command *c = &rl_commands[i];
        bool whole = !c->name[rl_command_group(c)];
        if (group ? rl_command_belongs(c, group) : whole) known[n++] = c->name + (group ? rl_command_group(c) + 1 : 0);
    }
    return rl_hint(word, known, n);
}

/* The command of a group that the next word says. */
static rl_status find_in_group(const rl_line *l, const rl_command *group, const char *word, const rl_command **c) {
    for (uint32_t i = 0; i < rl_ncommand; i++) {
        *c = &rl_commands[i];
        if (rl_command_belongs(*c, group) && strcmp((*c)->name + rl_command_group(*c) + 1, word) == 0) return RL_OK;
    }
    *c = group;
    const char *hint = *word == '-' ? NULL : nearest(word, group);
    if (*word == '-') return RL_OK; /* --help of the group */
    return rl_usage_error(l, "no command '%s %s'%s%s%s", group->name, word, hint ? "; did you mean " : "", hint ? hint : "", hint ? "?" : "");
}

/* *skip: the words of the line that are the command's name. */
static rl_status find_command(const rl_line *l, int argc, char **argv, const rl_command **c, int *skip) {
    *c = rl_command_find(argv[1]);
    *skip = *c != NULL;
    if (*c && rl_command_is_group(*c) && argc > 2) {
        const rl_command *group = *c;
        RL_TRY(find_in_group(l, group, argv[2], c));
        *skip += *c != group;
    }
    if (*c) return RL_OK;
    /* What is neither a command nor a file, and looks like a command. */
    bool unknown = argv[1][0] != '-' && access(argv[1], F_OK) != 0;
    const char *hint = unknown ? nearest(argv[1], NULL) : NULL;
    if (hint) return rl_usage_error(l, "no command '%s'; did you mean %s?", argv[1], hint);
    if (unknown && !strpbrk(argv[1], "./")) return rl_usage_error(l, "no command '%s', and no file", argv[1]);
    *c = &rl_commands[0]; /* relayout IN OUT */
    return RL_OK;
}

rl_status rl_line_parse(rl_line *l, int argc, char **argv, const rl_command **c, bool *done) {
    int skip;
    bool help = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0), man = argc > 1 && strcmp(argv[1], "--man") == 0;
    *done = help || man;
    if (argc < 2 || help) rl_help_all(l);
    if (man) rl_man_all();
    if (*done) return RL_OK;
    if (argc < 2) return RL_EUSAGE;
    RL_TRY(find_command(l, argc, argv, c, &skip));
    l->asked = *c;
    RL_TRY(parse_options(l, *c, argc - skip, argv + skip, done));
    if (*done) return RL_OK;
    return check_operands(l, *c, skip > 0);
}
