/* The command completion: scripts for shells, from the rows of commands.def (cmd.h).
 *
 * Each script knows the commands, which options each has, and of an option what may stand behind it: words (CHOICE), names of
 * targets or passes, a path, or nothing that could be guessed. */
#include <stdio.h>
#include <string.h>

#include "cmd.h"

typedef struct { rl_text targets, passes; } names; /* "a b c" */

static rl_status find_names(rl_ctx *ctx, rl_arena *mem, names *out) {
    rl_targets all = {0};
    if (RL_PROTECT(ctx)) return RL_ENOMEM;
    out->targets.mem = out->passes.mem = mem;
    RL_TRY(rl_targets_builtin(mem, &all));
    for (uint32_t i = 0; i < all.n; i++) rl_put(&out->targets, "%s%s", i ? " " : "", all.p[i].name);
#define PASS(name, summary) rl_put(&out->passes, "%s%s", out->passes.n ? " " : "", #name);
#include "../passes/passes.def"
#undef PASS
    return RL_OK;
}

/* "a|b|c" with spaces in place of the bars. */
static void put_words(const char *choices) {
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): an option with choices has their names */
    for (const char *s = choices; *s; s++) putchar(*s == '|' ? ' ' : *s);
}

static bool is_path(const rl_option *o) {
    return o->kind == RL_K_FILE || o->kind == RL_K_RESULT || o->kind == RL_K_REPORT;
}

static bool has_choices(const rl_command *c) {
    return strchr(c->operands, '|') != NULL;
}

/* The commands of a group (NULL: those of one word), by their last word. */
static void put_commands(const rl_command *group) {
    bool any = false;
    for (uint32_t i = 0; i < rl_ncommand; i++) {
        const rl_command *c = &rl_commands[i];
        size_t n = rl_command_group(c);
        if (group ? !rl_command_belongs(c, group) : c->name[n] != 0) continue;
        printf("%s%s", any ? " " : "", group ? c->name + n + 1 : c->name);
        any = true;
    }
}

static void put_groups(void) {
    for (uint32_t i = 0; i < rl_ncommand; i++)
        if (rl_command_is_group(&rl_commands[i])) printf("%s ", rl_commands[i].name);
}

/* ---- bash ---- */

static void bash_options(const rl_command *c) {
    printf("    '%s') options='", c->name);
    for (uint32_t i = 0; i < rl_noption; i++) {
        const rl_option *o = &rl_optiontable[i];
        if (!(o->commands & c->bit)) continue;
        if (o->letter) printf("-%c ", o->letter);
        printf("--%s ", o->name);
    }
    printf("'");
    if (has_choices(c)) {
        printf(" operands='");
        put_words(c->operands);
        printf("'");
    } else if (rl_command_is_group(c)) {
        printf(" operands='");
        put_commands(c);
        printf("'");
    } else if (!c->most) {
        printf(" files=");
    }
    printf(" ;;\n");
}

/* What may stand behind an option of a command. */
static void bash_value(const rl_command *c, const rl_option *o, const names *n) {
    if (!o->value || !(o->commands & c->bit)) return;
    printf("    '%s --%s'", c->name, o->name);
    if (o->letter) printf(" | '%s -%c'", c->name, o->letter);
    if (o->kind == RL_K_CHOICE) {
        printf(") words='");
        put_words(o->value);
        printf("' files= ;;\n");
    } else if (o->kind == RL_K_TARGET) {
        printf(") words='%s' ;;\n", n->targets.p);
    } else if (o->kind == RL_K_PASSES) {
        printf(") head=${cur%%\"${cur##*,}\"} cur=${cur##*,} words='%s' files= ;;\n", n->passes.p);
    } else if (o->kind == RL_K_DIR) {
        printf(") files=-d ;;\n");
    } else {
        printf(") %s;;\n", is_path(o) ? "" : "files= ");
    }
}

static void put_bash(const names *n) {
    printf("# bash completion for relayout: relayout completion bash\n"
           "_relayout() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=optimize first=${COMP_WORDS[1]} words= head=\n"
           "    local options= operands= files=-f\n"
           "    [[ $cur == = ]] && cur=\n"
           "    [[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD-2]}\n"
           "    [[ ${COMP_WORDS[COMP_CWORD]} == = ]] && prev=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    COMPREPLY=()\n"
           "    if ((COMP_CWORD == 1)); then\n"
           "        [[ $cur == -* ]] && words='--help --man --version' || words='");
    put_commands(NULL);
    printf("'\n"
           "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\") $(compgen -f -- \"$cur\"))\n"
           "        return\n"
           "    fi\n"
           "    [[ ' ");
    put_commands(NULL);
    printf(" ' == *\" $first \"* ]] && command=$first\n"
           "    [[ ' ");
    put_groups();
    printf(" ' == *\" $first \"* ]] && ((COMP_CWORD > 2)) && command=\"$first ${COMP_WORDS[2]}\"\n"
           "    case \"$command $prev\" in\n");
    for (uint32_t i = 0; i < rl_ncommand; i++)
        for (uint32_t k = 0; k < rl_noption; k++) bash_value(&rl_commands[i], &rl_optiontable[k], n);
    printf("    *)\n"
           "    case $command in\n");
    for (uint32_t i = 0; i < rl_ncommand; i++) bash_options(&rl_commands[i]);
    printf("    esac\n"
           "    [[ $cur == -* ]] && words=$options files= || words=$operands\n"
           "    [[ $operands ]] && files=\n"
           "    ;;\n"
           "    esac\n"
           "    COMPREPLY=($(compgen -P \"$head\" -W \"$words\" -- \"$cur\"))\n"
           "    [[ $files ]] && COMPREPLY+=($(compgen $files -- \"$cur\"))\n"
           "}\n"
           "complete -o filenames -F _relayout relayout\n");
}

/* ---- zsh ---- */

/* Inside '...[help]...': brackets, colons and quotes of the help mean themselves. */
static void zsh_text(const char *s) {
    for (; *s; s++) {
        if (*s == '\'') printf("'\\''");
        else if (strchr("[]:\\", *s)) printf("\\%c", *s);
        else putchar(*s);
    }
}

static void zsh_value(const rl_option *o, const names *n) {
    if (!o->value) return;
    printf(":");
    zsh_text(o->value);
    printf(":");
    if (o->kind == RL_K_CHOICE) printf("("), put_words(o->value), printf(")");
    else if (o->kind == RL_K_TARGET) printf("{_alternative \"targets:target:(%s)\" \"files:file:_files\"}", n->targets.p);
    else if (o->kind == RL_K_PASSES) printf("{_values -s , pass %s}", n->passes.p);
    else if (o->kind == RL_K_DIR) printf("_files -/");
    else if (is_path(o)) printf("_files");
    else printf(" ");
}

static void zsh_option(const rl_option *o, const names *n) {
    const char *times = o->kind == RL_K_LIST ? "*" : "";
    char forms[2][40] = {"", ""};
    snprintf(forms[0], sizeof forms[0], "--%s%s", o->name, o->value ? "=" : "");
    if (o->letter) snprintf(forms[1], sizeof forms[1], "-%c%s", o->letter, o->value ? "+" : "");
    for (int i = 0; i < 2 && forms[i][0]; i++) {
        printf("        '%s%s[", times, forms[i]);
        zsh_text(o->help);
        printf("]");
        zsh_value(o, n);
        printf("' \\\n");
    }
}

static void zsh_command(const rl_command *c, const names *n) {
    printf("    '%s')\n        _arguments -s \\\n", c->name);
    for (uint32_t i = 0; i < rl_noption; i++)
        if (rl_optiontable[i].commands & c->bit) zsh_option(&rl_optiontable[i], n);
    if (has_choices(c)) printf("        '1:shell:("), put_words(c->operands), printf(")'\n");
    else printf("        %s\n", c->most ? "'*:file:_files'" : "");
    printf("        ;;\n");
}

static void zsh_describe(const rl_command *group) {
    for (uint32_t i = 0; i < rl_ncommand; i++) {
        const rl_command *c = &rl_commands[i];
        size_t n = rl_command_group(c);
        if (group ? !rl_command_belongs(c, group) : c->name[n] != 0) continue;
        printf("            '%s:", group ? c->name + n + 1 : c->name);
        zsh_text(c->help);
        printf("'\n");
    }
}

static void put_zsh(const names *n) {
    printf("#compdef relayout\n"
           "# zsh completion for relayout: relayout completion zsh\n"
           "_relayout() {\n"
           "    local command=$words[2]\n"
           "    if ((CURRENT == 2)); then\n"
           "        local -a commands=(\n");
    zsh_describe(NULL);
    printf("        )\n"
           "        _describe command commands\n"
           "        _files\n"
           "        return\n"
           "    fi\n");
    for (uint32_t i = 0; i < rl_ncommand; i++) {
        const rl_command *c = &rl_commands[i];
        if (!rl_command_is_group(c)) continue;
        printf("    if [[ $command == %s ]]; then\n        local -a commands=(\n", c->name);
        zsh_describe(c);
        printf("        )\n"
               "        ((CURRENT == 3)) && { _describe command commands; return }\n"
               "        command=\"$command $words[3]\"\n"
               "        shift words\n"
               "        ((CURRENT--))\n"
               "    fi\n");
    }
    printf("    shift words\n"
           "    ((CURRENT--))\n"
           "    case $command in\n");
    for (uint32_t i = 0; i < rl_ncommand; i++) zsh_command(&rl_commands[i], n);
    printf("    *) _files ;;\n"
           "    esac\n"
           "}\n"
           "if [[ $funcstack[1] == _relayout ]]; then _relayout \"$@\"; else compdef _relayout relayout; fi\n");
}

/* ---- fish ---- */

/* Inside '...': quotes and backslashes mean themselves. */
static void fish_text(const char *s) {
    for (; *s; s++) {
        if (*s == '\'' || *s == '\\') putchar('\\');
        putchar(*s);
    }
}

/* The condition under which lines of a command hold. */
static void fish_when(const rl_command *c) {
    size_t n = rl_command_group(c);
    printf("complete -c relayout -n '__fish_seen_subcommand_from %.*s", (int)n, c->name);
    if (c->name[n]) printf("; and __fish_seen_subcommand_from %s", c->name + n + 1);
    printf("'");
}

static void fish_option(const rl_command *c, const rl_option *o, const names *n) {
    if (!(o->commands & c->bit)) return;
    fish_when(c);
    if (o->letter) printf(" -s %c", o->letter);
    printf(" -l %s", o->name);
    if (o->value) printf(is_path(o) || o->kind == RL_K_TARGET ? " -r -F" : " -x");
    if (o->kind == RL_K_CHOICE) printf(" -a '"), put_words(o->value), printf("'");
    if (o->kind == RL_K_TARGET) printf(" -a '%s'", n->targets.p);
    if (o->kind == RL_K_PASSES) printf(" -a '%s'", n->passes.p);
    if (o->kind == RL_K_DIR) printf(" -a '(__fish_complete_directories)'");
    printf(" -d '");
    fish_text(o->help);
    printf("'\n");
}

static void fish_command(const rl_command *c) {
    size_t n = rl_command_group(c);
    if (c->name[n]) printf("complete -c relayout -f -n '__fish_seen_subcommand_from %.*s; and __fish_is_nth_token 2'", (int)n, c->name);
    else printf("complete -c relayout -n '__fish_is_first_token'");
    printf(" -a '%s' -d '", c->name[n] ? c->name + n + 1 : c->name);
    fish_text(c->help);
    printf("'\n");
}

static void put_fish(const names *n) {
    printf("# fish completion for relayout: relayout completion fish\n");
    for (uint32_t i = 0; i < rl_ncommand; i++) {
        const rl_command *c = &rl_commands[i];
        fish_command(c);
        if (has_choices(c)) fish_when(c), printf(" -f -a '"), put_words(c->operands), printf("'\n");
        for (uint32_t k = 0; k < rl_noption; k++) fish_option(c, &rl_optiontable[k], n);
    }
}

/* A command a line, the words of one joined by a slash. */
static void put_names(void) {
    for (uint32_t i = 0; i < rl_ncommand; i++) {
        for (const char *s = rl_commands[i].name; *s; s++) putchar(*s == ' ' ? '/' : *s);
        putchar('\n');
    }
}

static rl_status print_script(rl_line *l, const names *n) {
    if (strcmp(l->file[0], "bash") == 0) put_bash(n);
    else if (strcmp(l->file[0], "zsh") == 0) put_zsh(n);
    else if (strcmp(l->file[0], "fish") == 0) put_fish(n);
    else if (strcmp(l->file[0], "words") == 0) put_names();
    else return rl_usage_error(l, "completion for bash, zsh or fish, not '%s'", l->file[0]);
    return RL_OK;
}

rl_status rl_cmd_completion(rl_line *l) {
    rl_arena mem;
    names n = {0};
    rl_arena_init(&mem, l->ctx);
    rl_status s = find_names(l->ctx, &mem, &n);
    l->in = NULL;
    if (s == RL_OK) s = print_script(l, &n);
    rl_arena_free(&mem);
    return s;
}
