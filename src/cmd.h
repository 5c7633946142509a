/* The program's command line: what commands.def says, what was typed, and what the commands share.
 *
 *   commands.def    one row for each command and each option
 *   cmd_table.c     the rows as arrays, and finding in them
 *   cmd_parse.c     the typed line against the rows; what was typed goes to an rl_line
 *   cmd_help.c      --help
 *   cmd_man.c       --man
 *   cmd_io.c        models in and out, texts out
 *   cmd_term.c      errors, colour, progress
 *   cmd_NAME.c      carries out the command NAME: rl_cmd_NAME
 *   main.c          a context around the command, and the one line that says what went wrong
 *
 * A new command is a row, a file with `rl_status rl_cmd_NAME(rl_line *l)`, and that file in sources.cmake:
 *
 *   COMMAND(count, "count", 1, 1, "IN", "which model?", "how many nodes a model has", "", "relayout count in.onnx")
 *
 *   rl_status rl_cmd_count(rl_line *l) {
 *       rl_graph *g;
 *       rl_status s = rl_line_read(l, &g);                    --dim, --input-shape and stdin are seen to
 *       if (s == RL_OK) printf("%" PRIu32 "\n", g->nnode);
 *       rl_graph_free(g);
 *       return s;                                             main.c prints what rl_fail was told
 *   }
 *
 * Each function that allocates from the context protects itself (RL_PROTECT): a protection ends with the function that set it. */
#ifndef RL_CMD_H
#define RL_CMD_H
#include <stdio.h>

#include "../passes/interface.h"
#include "../runtime/layout_cmd.h"
#include "../runtime/move_cmd.h"
#include "../runtime/run_cmd.h"
#include "onnx.h"

/* What may stand behind an option, the type of its field, and what a shell offers there. */
#define RL_KINDS(K)                                                                                                              \
    K(FLAG, bool)             /* nothing */                                                                                      \
    K(TEXT, const char *)     /* anything */                                                                                     \
    K(FILE, const char *)     /* a path that is read */                                                                          \
    K(RESULT, const char *)   /* a path that is written, if wanted over what was read */                                         \
    K(REPORT, const char *)   /* a path that is written, never over an operand */                                                \
    K(DIR, const char *)      /* a folder */                                                                                     \
    K(CHOICE, const char *)   /* one of the words of VALUE, "a|b|c" */                                                           \
    K(TARGET, const char *)   /* a row of targets.def, or a file */                                                              \
    K(PASSES, const char *)   /* names of passes */                                                                              \
    K(LIST, rl_items)         /* anything, and as often as wanted */                                                             \
    K(COUNT, uint32_t)        /* a number from 1 on */                                                                           \
    K(SEED, uint64_t)         /* a number from 0 on */                                                                           \
    K(REAL, double)           /* a number not below 0 */                                                                         \
    K(SECONDS, double)        /* a number above 0 */                                                                             \
    K(HELP, bool)             /* nothing: prints and ends */
typedef enum {
#define KIND(name, type) RL_K_##name,
    RL_KINDS(KIND)
#undef KIND
} rl_optkind;

/* The other optimizers that compare asks (python/relayout/optimizers.py). */
#define RL_PEERS "ort_basic, ort_ext, onnxsim, onnxslim, onnxopt, polygraphy, openvino"

enum { RL_MOSTITEMS = 64 };
typedef struct { const char *item[RL_MOSTITEMS]; uint32_t n; } rl_items;

/* What can be read only once: stdin, a pipe. All of it, as commands read again. */
typedef struct { const char *path; int fd; rl_text bytes; } rl_piped;
enum { RL_MOSTPIPED = 4 };

typedef enum { RL_PLAIN, RL_BOLD, RL_RED, RL_GREEN } rl_color;

typedef struct rl_command rl_command;

/* A typed line, and what its command keeps while it works. */
typedef struct {
    rl_ctx *ctx;
    const rl_command *asked; /* the command, once that is known */
    char **file;        /* the operands */
    int nfile;
    const char *in;     /* the first one; messages are about it. NULL: about none */
    const char *plan;   /* --plan: a file */
    const char *out, *json, *csv, *after, *proof, *node, *dump, *kernels, *color, *external, *peers, *command;
    rl_items dims, shapes, inputs, in_layouts, out_layouts;
    rl_passopt pass;
    rl_runopt run;
    rl_layoutopt layout;
    rl_moveopt move;
    double limit;
    uint64_t around;    /* steps from --node that a picture shows */
    bool table;         /* --table: of profile */
    bool no_run, canonical, svg, quiet, verbose, help, man, version, check;
    uint32_t memory;    /* --memory-limit, MiB; 0: none was given */
    bool named_target;  /* --target was given */
    bool shows;         /* progress stands on the terminal */
    uint32_t jobs;
    struct rl_batchrow *row; /* this is one model of several (cmd_batch.h) */
    double start, read_time;
    rl_interface io;    /* --input-layout and --output-layout */
    rl_arena io_mem;
    rl_arena piped_mem; /* of these */
    rl_piped piped[RL_MOSTPIPED];
    uint32_t npiped;
} rl_line;

/* ---- the table ---- */

struct rl_command {
    const char *name;
    uint64_t bit;       /* in rl_option.commands */
    int least, most;    /* operands */
    const char *operands, *ask, *help, *more, *examples;
    rl_status (*run)(rl_line *l);
};

typedef struct {
    const char *name;
    int letter;         /* 0: none */
    const char *value;  /* NULL: none */
    rl_optkind kind;
    size_t field;       /* in rl_line */
    uint64_t commands;
    const char *help;
} rl_option;

typedef struct { int number; const char *when; } rl_exit;

extern const rl_command rl_commands[];
extern const uint32_t rl_ncommand;
extern const rl_option rl_optiontable[];
extern const uint32_t rl_noption;
extern const rl_exit rl_exits[];
extern const uint32_t rl_nexit;

/* The command called so ("layout draw"), or NULL. */
const rl_command *rl_command_find(const char *name);
/* Its first word, as length; of a group the whole name is one word. */
size_t rl_command_group(const rl_command *c);
/* Has it commands of two words? */
bool rl_command_is_group(const rl_command *c);
/* Does the name of c, of two words, begin with the one of group? */
bool rl_command_belongs(const rl_command *c, const rl_command *group);
/* The word that "a|b|c" has at *at, as length; *at is set behind it. 0 at the end. */
size_t rl_choice_next(const char **at, const char **word);

#define COMMAND(id, ...) rl_status rl_cmd_##id(rl_line *l);
#define OPTION(...)
#define STATUS(...)
#include "commands.def"
#undef COMMAND
#undef OPTION
#undef STATUS

/* ---- what was typed ---- */

/* All that a command line asks for; the status is the process's. Nothing stays of it, so that a process can have several. */
rl_status rl_program(int argc, char **argv);

/* Fills in *l and *c from the line, or says on stderr what is wrong with it. *done: it asked for help, which was printed. */
rl_status rl_line_parse(rl_line *l, int argc, char **argv, const rl_command **c, bool *done);
void rl_help_all(const rl_line *l);
void rl_help_command(const rl_line *l, const rl_command *c);
/* The manual page of the program, or of one command, for man(1). */
void rl_man_all(void);
void rl_man_command(const rl_command *c);

/* ---- for people who look: cmd_term.c ---- */

/* "relayout: FILE: message" on stderr; the message may have the file already, or there is none. l: for --color, or NULL. */
void rl_complain(const rl_line *l, const char *file, const char *message);
/* "relayout: ...; see relayout COMMAND --help" on stderr; returns RL_EUSAGE. */
rl_status rl_usage_error(const rl_line *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#ifdef __clang_analyzer__ /* as for rl_fail */
#define rl_usage_error(...) ((rl_usage_error)(__VA_ARGS__), RL_EUSAGE)
#endif
/* Does what goes to f get colours? --color, else whether it is a terminal, NO_COLOR and TERM. */
bool rl_paints(const rl_line *l, FILE *f);
/* What switches to a colour, or nothing. */
const char *rl_paint(bool paints, rl_color color);
/* A line on the terminal in place of the one before; NULL: none. */
void rl_progress(rl_line *l, const char *text);
void rl_show_nodes(void *line, uint32_t done, uint32_t all); /* of a run, as its progress */
/* l->run becomes what run, bench and verify have in common. */
void rl_line_set_run(rl_line *l, void (*progress)(void *line, uint32_t done, uint32_t all));
/* A run is over: what it printed goes to stdout. */
rl_status rl_line_show_run(rl_line *l, rl_status s, const rl_text *text);

/* ---- models and texts ---- */

/* "-": stdin or stdout. */
bool rl_is_stdio(const char *path);
/* "-", or a name of what is open already (/dev/fd/3): no file of its own, and no folder. */
bool rl_is_open(const char *path);
/* An output's name: /dev/stdout is "-". */
const char *rl_output_name(const char *path);
bool rl_has_ending(const char *path, const char *ending);
/* A graph as text, by the name of its file. */
bool rl_is_text(const char *path);
/* The model l->in, with --dim and --input-shape; may be called again. *g is NULL after a failure. */
rl_status rl_line_read(rl_line *l, rl_graph **g);
/* The same of another path; messages are about that where it fails. */
rl_status rl_line_read_other(rl_line *l, const char *path, rl_graph **g);
/* Reads --input-layout and --output-layout into l->io; io_mem is the caller's to open and free. */
rl_status rl_line_interface(rl_line *l);
/* RL_EUSAGE where the model would come on stdin or by a pipe. */
rl_status rl_line_wants_file(const rl_line *l, const char *command);
/* Before anything is done, and again where -o was a folder: no two outputs go to one place, none to what an option reads, and no REPORT to
 * an operand's. What only the model says, where its external data is, is checked as it is read. */
rl_status rl_line_check_outputs(const rl_line *l);
/* The paths that data of the written model does not go to, for rl_onnx_write; in mem. */
const char *const *rl_line_taken(const rl_line *l, rl_arena *mem);
/* An output of the command is "-": nothing else goes there. */
bool rl_line_takes_stdout(const rl_line *l);
/* A file, a pipe, or stdin. */
rl_status rl_line_read_text(rl_line *l, const char *path, rl_text *t);
rl_status rl_write_stdout(rl_line *l, const char *p, size_t n);
/* To a file, or to stdout. */
rl_status rl_line_write(rl_line *l, const char *path, const rl_text *t);
/* check-proof (cmd_check_ports.c), before types are inferred: out's inputs and outputs are in's, by what both declare. */
rl_status rl_check_ports(const rl_line *l, const rl_graph *in, const rl_graph *out);
/* The plan of --plan, for run, bench and check-proof; in mem. */
rl_status rl_line_read_plan(rl_line *l, rl_arena *mem);
/* check-proof for the certificate of a plan (cmd_check_plan.c): is it one? It holds, and is of the plan that the model has, or --plan's. */
bool rl_is_plan_cert(const rl_text *t);
rl_status rl_check_plan_cert(rl_line *l, const rl_text *file, rl_arena *mem);
/* Can a file be made there? Said before the model is written: a report that cannot be written must not leave a model behind. */
rl_status rl_line_check_path(const rl_line *l, const char *path);
void rl_to_stderr(void *user, const char *text, size_t n);
/* The passes up to `last`, separated by commas; false when there is none of this name. */
bool rl_passes_up_to(const char *last, char *names, size_t size);
/* cmd_optimize.c: l->in to l->out. */
rl_status rl_optimize_one(rl_line *l);

#endif
