/* A certificate (docs/proof.md): the assignment problem of a model, a choice, and what proves that none is cheaper.
 *
 *   value 0 "x" bytes 96 atoms 2 3 4      rl_cert_value
 *   op 2 node "s" Softmax                 rl_cert_op, with its pins, tokens and forms
 *   component 0 1 1536 1 2 7              rl_cert_part, with its spans
 *   claim 1 1536 1 1536                   what it says
 *   time                                  rl_cert.time: the same of times, if anything is said of them
 *   function 0 "local" "F"                rl_cert_function: a certificate of a model-local function, from its values on
 *
 * passes/prove.c fills one from what the passes decided; cert_text.c and cert_read.c write and read the file; cert.c checks it and shares no
 * code with the solver.  Strings and arrays belong to the arena that the certificate was made in. */
#ifndef RL_CERT_H
#define RL_CERT_H
#include "base.h"

typedef struct { int64_t count, bytes; } rl_cert_cost; /* conversions, bytes moved */

/* size[i] < 0: unknown, named by symbol[i] (NULL where the size is known; symbol is NULL where all are). */
typedef struct {
    const char *name;
    int64_t bytes;
    uint32_t natom;
    const int64_t *size;
    const char *const *symbol;
    uint32_t nkeep;
    const uint8_t *keep; /* [nkeep] the atoms that the bound looks at, ascending; NULL: all */
    const uint16_t *fold; /* [nkeep!] the order that stands in for each, by their places in the dictionary; NULL: itself */
    const uint16_t *refold; /* the same, when what is paid for certain is out */
} rl_cert_value;

typedef struct { uint32_t value; const char *tensor; const uint8_t *stands; } rl_cert_pin; /* stands: [natom of the value] */

/* at[pin]: the token's atoms there, n[pin] of them; 0: absent. */
typedef struct { const uint8_t *const *at; const uint8_t *n; } rl_cert_token;

/* seq: for pin p the groups seq[start[p]] .. seq[start[p + 1]]. */
typedef struct { const uint8_t *group; const uint32_t *start; const uint8_t *seq; } rl_cert_form;

/* By time an op counts at these pins, [npin], as if the last two groups of its form were swapped there: the form, and perm as in rl_cert_op, write
 * the orders that it names. */
typedef struct { uint32_t op, form; const uint8_t *perm; const bool *pin; } rl_cert_swap;

/* What an op is charged beside conversions, in tenths of one that moves so many bytes: FORMS: form k form[k], as it stands `tenths`; AFTER: `tenths`
 * where at pin 0 a token without mark lies behind one with a mark; LAST: where one with a mark lies innermost there. */
typedef enum { RL_CERT_FREE, RL_CERT_FORMS, RL_CERT_AFTER, RL_CERT_LAST } rl_cert_rule;
typedef struct {
    rl_cert_rule rule;
    int64_t bytes, tenths;
    const int64_t *form; /* [nform] */
    const bool *marked;  /* [ntoken] */
} rl_cert_charge;

typedef enum { RL_CERT_INPUT, RL_CERT_OUTPUT, RL_CERT_CAPTURED, RL_CERT_READS, RL_CERT_NODE } rl_cert_kind;

typedef struct {
    rl_cert_kind kind;
    const char *name, *type; /* type: of a node, with its domain if that is not ai.onnx; else NULL */
    bool fixed;
    uint32_t npin, ntoken, nform;
    const rl_cert_pin *pin;
    const rl_cert_token *token;
    const rl_cert_form *form;
    uint32_t chosen;         /* RL_NONE: as it stands; else a form */
    const uint8_t *perm;     /* [ntoken] tokens, group after group */
    rl_cert_charge charge;
    const bool *swaps;       /* [npin] by time: pins where the last two groups of any form may be swapped; NULL: none */
} rl_cert_op;

/* A run of a component's ops that cost `least` at least by themselves, where orders of values weigh so much: order, its place in the dictionary of
 * those of the atoms kept.  weigh: by value, then order; those of which no span says anything weigh what they do in the first that names them. */
typedef struct { uint32_t value, order; int64_t weight; } rl_cert_weigh;
typedef struct { uint32_t nop, nweigh; int64_t least; const rl_cert_weigh *weigh; } rl_cert_span;

/* op: in the order to take them.  By time: least.count is the bound, cost what the assignment takes; the bound is of assignments
 * that have no more conversions there than the model as it stands, if there is a price: a conversion then costs that beside its time; swaps:
 * its ops may swap, and a swap is no conversion.  span: nspan of them, that have all of its ops in sequence, or none; conversion: what one counts there beside
 * its bytes, which count 1 each. */
typedef struct {
    rl_cert_cost least;
    int64_t cost, price;
    bool swaps;
    uint32_t nop, nspan;
    const uint32_t *op;
    int64_t conversion;
    const rl_cert_span *span;
} rl_cert_part;

typedef struct rl_cert rl_cert;

/* index: its place among the functions of the model. */
typedef struct { uint32_t index; const char *domain, *name; const rl_cert *cert; } rl_cert_function;

struct rl_cert {
    bool bytes_first;
    bool by_time;            /* the second part: costs are times, as rl_cert_cost.count */
    int64_t fixed, rate;     /* ns of a conversion beside its bytes, bytes in a microsecond; rate 0: nothing is said of times */
    uint32_t nvalue, nop, npart;
    const rl_cert_value *value;
    const rl_cert_op *op;
    const rl_cert_part *part;
    uint32_t nswap;
    const rl_cert_swap *swap; /* by time: what the assignment swaps; ops rise */
    uint32_t noutside;
    rl_cert_cost cost, bound;
    const rl_cert *time;     /* the second part: the same ops, values that may keep other atoms; or NULL */
    uint32_t nfunction;      /* of the main graph's: indices rise, and none of them has functions itself */
    const rl_cert_function *function;
};

/* A part shows that its choice is quick enough where nothing that it bounds takes less than this of it, in percent. */
#define RL_CERT_ENOUGH 95

/* Conversions of the assignment, by what is shown of them: fewest: where none has fewer (objective bytes: none moves fewer); quick: of
 * the others where none is clearly quicker; open: the rest.  takes, at_least: ns of the components that are open, charged forms among them, and
 * what no assignment is below, where such a bound is known. */
typedef struct { int64_t fewest, quick, open, takes, at_least; } rl_cert_shown;

/* Checks everything that needs no model (docs/proof.md, section 4, 1 to 3).  RL_OK: the claim holds as it stands, be it a minimum
 * or a gap.  RL_EPROOF with what is wrong where it does not; or where it cannot be told, as an op has more than `maxstate`
 * configurations, or the table of a component keeps more states than that after an op, or all tables together take more than
 * `maxwork` comparisons, and those of all functions as many again.  The work is counted, not timed, so that the answer is the same
 * everywhere.  *undecided, if not NULL: the part of c itself that could not be told, RL_NONE where nothing or something else is wrong. */
#define RL_CERT_SECOND UINT64_C(400000000) /* comparisons that take about a second */
rl_status rl_cert_check(rl_ctx *ctx, const rl_cert *c, uint32_t maxstate, uint64_t maxwork, uint32_t *undecided);

/* Of a certificate that holds. */
void rl_cert_show(rl_ctx *ctx, const rl_cert *c, rl_cert_shown *out);
void rl_cert_show_add(rl_cert_shown *to, const rl_cert_shown *x);

/* The file.  What is printed reads as the same certificate.  Reading: out is in mem; RL_EPROOF with "file:line: what". */
void rl_cert_print(const rl_cert *c, rl_text *out);
/* Its pieces: how it starts; one graph; what comes before that of a function.  The last line is "end". */
void rl_cert_print_head(bool bytes_first, rl_text *out);
void rl_cert_print_graph(const rl_cert *c, rl_text *out);
void rl_cert_print_function(uint32_t index, const char *domain, const char *name, rl_text *out);
rl_status rl_cert_parse(rl_ctx *ctx, rl_arena *mem, const char *file, const char *text, size_t n, rl_cert *out);
#endif
