/* commands.def as arrays: see cmd.h. */
#include <string.h>

#include "cmd.h"

enum { MANY = 1 << 20 };

/* A command's number, and its bit. */
enum {
#define COMMAND(id, ...) N_##id,
#define OPTION(...)
#define STATUS(...)
#include "commands.def"
#undef COMMAND
#undef OPTION
    NCOMMAND
};
#define C(id) (UINT64_C(1) << N_##id)
#define EVERY UINT64_MAX
_Static_assert(NCOMMAND <= 64, "a command is a bit of 64");

const rl_command rl_commands[] = {
#define COMMAND(id, name, least, most, operands, ask, help, more, examples)                                                      \
    {name, C(id), least, most, operands, ask, help, more, examples, rl_cmd_##id},
#define OPTION(...)
#include "commands.def"
#undef COMMAND
#undef OPTION
};
const uint32_t rl_ncommand = NCOMMAND;

/* Each option's field has the type that its kind is put there as. */
#define KIND(name, type) typedef type field_##name;
RL_KINDS(KIND)
#undef KIND
#define COMMAND(...)
#define STATUS(...)
#define OPTION(name, letter, value, kind, field, commands, help)                                                                 \
    _Static_assert(_Generic(&((rl_line *)0)->field, field_##kind *: 1, default: 0), "--" name " is put to a field of another type");
#include "commands.def"
#undef OPTION

const rl_option rl_optiontable[] = {
#define OPTION(name, letter, value, kind, field, commands, help)                                                                 \
    {name, letter, value, RL_K_##kind, offsetof(rl_line, field), commands, help},
#include "commands.def"
#undef OPTION
#undef STATUS
};
const uint32_t rl_noption = RL_LEN(rl_optiontable);

const rl_exit rl_exits[] = {
#define OPTION(...)
#define STATUS(number, when) {number, when},
#include "commands.def"
#undef COMMAND
#undef OPTION
#undef STATUS
};
const uint32_t rl_nexit = RL_LEN(rl_exits);

const rl_command *rl_command_find(const char *name) {
    for (uint32_t i = 0; i < rl_ncommand; i++)
        if (strcmp(rl_commands[i].name, name) == 0) return &rl_commands[i];
    return NULL;
}

size_t rl_command_group(const rl_command *c) {
    return strcspn(c->name, " ");
}

bool rl_command_belongs(const rl_command *c, const rl_command *group) {
    size_t n = rl_command_group(c);
    return c != group && c->name[n] == ' ' && strlen(group->name) == n && strncmp(c->name, group->name, n) == 0;
}

bool rl_command_is_group(const rl_command *c) {
    for (uint32_t i = 0; i < rl_ncommand; i++)
        if (rl_command_belongs(&rl_commands[i], c)) return true;
    return false;
}

size_t rl_choice_next(const char **at, const char **word) {
    size_t n = strcspn(*at, "|");
    *word = *at;
    *at += n + ((*at)[n] == '|');
    return n;
}
