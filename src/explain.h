/* What `relayout explain` says: why each conversion stays, and where the model's other Transposes went (docs/explain.md).
 *
 * Everything is in the user's own names, as text; passes/explain.c fills it in, explain_print.c prints it.  Example, of
 *   x[N,C,H,W] -> Conv c -> Relu r -> Transpose t -> LayerNormalization l
 * one conversion, with the demands {c, "N,C,H,W"} and {l, "C last"} and the path c, y, r, z, t, u, l.
 *
 * An order is written outermost first.  Its letters are those of N,C,H,W where an op of the conflict works on images; else
 * they are the axis numbers of one tensor, which `axes_of` names.  2.0 and 2.1 are the pieces, outer first, of an axis that a
 * Reshape cuts; * is an axis that this tensor does not have; (0,1) is 0 and 1 in any order, [0,1] both in this order and together. */
#ifndef RL_EXPLAIN_H
#define RL_EXPLAIN_H
#include "base.h"

typedef struct rl_exbody rl_exbody;
typedef struct {
    const char *name, *op, *output; /* name NULL: it has none; output: its first; op NULL: a graph output, or nothing */
    const rl_exbody *body;          /* that it stands in; NULL: the main graph */
} rl_exnode;

/* The graph that attribute `part` of node `of` holds.  Names may come again in another body, so node and body together say which. */
struct rl_exbody {
    const char *part; /* then_branch, else_branch, body; NULL: the model-local function of.op of domain of.name */
    rl_exnode of;
};
typedef struct { const char *name; const rl_exbody *body; } rl_extensor;

/* One place of a path: a node (op not NULL), or the tensor between two. */
typedef struct { rl_exnode node; rl_extensor tensor; } rl_exstep;
typedef struct {
    rl_exstep *p;
    uint32_t n, cap;
    bool loop; /* ends at the node where it started */
} rl_expath;

#define RL_EXLIST(T) struct { T *p; uint32_t n, cap; }
typedef enum { RL_EX_INPUT, RL_EX_OUTPUT, RL_EX_CAPTURED, RL_EX_PARAMETER, RL_EX_FIXED, RL_EX_FORM,
    RL_EX_CONSIDERED /* takes any order, but only some were considered (docs/how-it-works.md, How exact) */
} rl_exwhat;
typedef const char *rl_exword;
typedef struct {
    rl_exwhat what;
    rl_exnode node;      /* op NULL for an input or output of the graph */
    RL_EXLIST(rl_extensor) tensor;
    RL_EXLIST(rl_exword) need; /* one way after the other, in each an order per tensor */
    uint32_t more;       /* further ways */
} rl_exdemand;

typedef enum {
    RL_EX_INPUT_LAYOUT,  /* the graph input in another order */
    RL_EX_OUTPUT_LAYOUT,
    RL_EX_TARGET_ORDER,  /* a target that runs the op in this order */
    RL_EX_TARGET_FLAGS,  /* a target whose MatMul transposes as it reads and writes */
    RL_EX_REWRITE,       /* the normalization written as reductions and element-wise ops */
    RL_EX_KERNEL         /* an op in this one's place that takes this order */
} rl_exremedykind;
typedef struct {
    rl_exremedykind kind;
    rl_exnode node;
    rl_extensor tensor;
    const char *order, *axes; /* axes: the same order in axis numbers of the tensor; NULL where they do not matter */
} rl_exremedy;

/* A form that the target charges for, taken without this conversion. */
typedef struct { rl_exnode node; int64_t tenths; } rl_excharge;

typedef enum {
    RL_EX_PAIR,     /* two demands and the one path between them */
    RL_EX_TOGETHER, /* more demands, or ways that come back in another order: all of them are needed for the clash */
    RL_EX_CHOICE,   /* not forced: the target prefers it to what removing it costs */
    RL_EX_OPEN      /* no reason was found within the limits */
} rl_exreason;

typedef struct {
    rl_extensor tensor;
    const char *shape, *made, *needed, *axes_of; /* axes_of NULL: letters */
    int64_t bytes;
    rl_exnode maker; /* op NULL: an input of the graph or function */
    RL_EXLIST(rl_exnode) reader;
    rl_exreason reason;
    bool smallest;       /* without any one op of the conflict there is none */
    RL_EXLIST(rl_exdemand) demand;
    RL_EXLIST(rl_expath) path;
    RL_EXLIST(rl_exremedy) remedy;
    RL_EXLIST(rl_excharge) charge;
} rl_exconversion;

typedef enum { RL_EX_UNUSED, RL_EX_FOLDED, RL_EX_CANCELLED, RL_EX_ABSORBED, RL_EX_MOVED, RL_EX_KEPT, RL_EX_GONE,
    RL_EX_OUTSIDE, /* of the plan: of a tensor of unknown rank, or with too many axes */
    RL_EX_OPAQUE,  /* nobody knows what it means: another opset, an attribute that Transpose does not have */
    RL_EX_CLOSED   /* in a body that stays closed (passes/flat.h) */
} rl_exfate;
typedef struct {
    rl_exnode node;
    rl_exfate fate;
    RL_EXLIST(rl_exnode) with; /* the Transposes that it cancelled with, or the ops that absorbed it */
    const char *form;          /* what an absorbing op became; NULL */
    RL_EXLIST(uint32_t) conversion; /* places in the list of conversions */
    rl_expath path;            /* from this Transpose to with.p[0] */
} rl_extranspose;

typedef struct {
    const char *path, *target, *objective;
    bool unchanged;      /* optimize writes the input as it is: these are the model's own conversions */
    bool unsolved;       /* not proved to be the fewest, within the time limit or at all */
    int64_t after;       /* conversions of the file that optimize writes */
    RL_EXLIST(rl_exconversion) conversion;
    /* Those of the model that move data, in the order of its nodes; a body's before its node, functions last. */
    RL_EXLIST(rl_extranspose) transpose;
} rl_explanation;

/* Whether it names this node or tensor; true for NULL. */
bool rl_exconversion_has(const rl_exconversion *c, const char *word);
bool rl_extranspose_has(const rl_extranspose *t, const char *word);
/* node: only what names this node or tensor; NULL: everything. *any is set where something was printed about it. */
void rl_explain_text(const rl_explanation *x, const char *node, rl_text *t, bool *any);
void rl_explain_json(const rl_explanation *x, const char *node, rl_text *t, bool *any);

#endif
