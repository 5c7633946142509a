/* A certificate (docs/proof.md): the assignment problem of a model, a choice, and what proves that none is cheaper.
 *
 *   value 0 "x" bytes 96 atoms 2 3 4      rl_cert_value
 *   op 2 node "s" Softmax                 rl_cert_op, with its pins, tokens and forms
 *   component 0 1 1536 1 2 7              rl_cert_part
 *   claim 1 1536 1 1536                   what it says
 *
 * passes/prove.c fills one from what the passes decided; cert_text.c and cert_read.c write and read the file; cert.c checks it and shares no
 * code with the solver.  Strings and arrays belong to the arena that the certificate was made in. */
#ifndef RL_CERT_H
#define RL_CERT_H
#include "base.h"

typedef struct { int64_t count, bytes; } rl_cert_cost; /* conversions, bytes moved */

/* size[i] < 0: unknown, named by symbol[i] (NULL where the size is known). */
typedef struct {
    const char *name;
    int64_t bytes;
    uint32_t natom;
    const int64_t *size;
    const char *const *symbol;
    uint32_t nkeep;
    const uint8_t *keep; /* [nkeep] the atoms that the bound looks at, ascending; NULL: all */
    const uint16_t *fold; /* [nkeep!] the order that stands in for each, by their places in the dictionary; NULL: itself */
} rl_cert_value;

typedef struct { uint32_t value; const char *tensor; const uint8_t *stands; } rl_cert_pin; /* stands: [natom of the value] */

/* at[pin]: the token's atoms there, n[pin] of them; 0: absent. */
typedef struct { const uint8_t *const *at; const uint8_t *n; } rl_cert_token;

/* seq: for pin p the groups seq[start[p]] .. seq[start[p + 1]]. */
typedef struct { const uint8_t *group; const uint32_t *start; const uint8_t *seq; } rl_cert_form;

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
} rl_cert_op;

typedef struct { rl_cert_cost least; uint32_t nop; const uint32_t *op; } rl_cert_part; /* op: in the order to take them */

typedef struct {
    bool bytes_first;
    uint32_t nvalue, nop, npart;
    const rl_cert_value *value;
    const rl_cert_op *op;
    const rl_cert_part *part;
    uint32_t noutside;
    rl_cert_cost cost, bound;
} rl_cert;

/* Checks everything that needs no model (docs/proof.md, section 4, 1 to 3).  RL_OK: the claim holds as it stands, be it a minimum
 * or a gap.  RL_EPROOF with what is wrong where it does not; or where it cannot be told, as an op has more than `maxstate`
 * configurations, or the table of a component keeps more states than that after an op, or all tables together take more than
 * `maxwork` comparisons.  The work is counted, not timed, so that the answer is the same everywhere. */
#define RL_CERT_SECOND UINT64_C(400000000) /* comparisons that take about a second */
rl_status rl_cert_check(rl_ctx *ctx, const rl_cert *c, uint32_t maxstate, uint64_t maxwork);

/* The file.  What is printed reads as the same certificate.  Reading: out is in mem; RL_EPROOF with "file:line: what". */
void rl_cert_print(const rl_cert *c, rl_text *out);
rl_status rl_cert_parse(rl_ctx *ctx, rl_arena *mem, const char *file, const char *text, size_t n, rl_cert *out);
#endif
