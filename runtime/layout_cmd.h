/* The command `layout`: describe, offset, convert, draw, compare. */
#ifndef RL_LAYOUT_CMD_H
#define RL_LAYOUT_CMD_H
#include "../src/base.h"

/* argv[0] is "layout". Prints to stdout, errors to stderr; returns the exit status. */
rl_status rl_layout_command(int argc, char **argv);

#endif
