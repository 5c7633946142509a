/* What the files of the certificate's checker share (cert.h, docs/proof.md).
 *
 *   cert.c         structure, the sums
 *   cert_cost.c    what an assignment costs; charges
 *   cert_menu.c    orders as numbers; all restricted configurations of an op: its menu
 *   cert_text.c    the file printed; cert_read.c: read, from words (cert_words.h)
 *   cert_part.c    a component as a table to be filled: elements, steps
 *   cert_settle.c  what is paid for certain taken out of it; folds of what is left
 *   cert_table.c   the table: whether it can cost less than the claim; cert_step.c, cert_select.c (cert_table.h)
 *   cert_span.c    a table in spans, each a table of its own
 *   cert_flow.c    the same by a flow, where each op has two configurations at most
 *
 * An element is an order of a value that a component may have to pay for.  Costs are (major, minor): (conversions, bytes) or, for the
 * objective bytes, (bytes, conversions).  Example: MatMul a[b,M,K] w[K,N] -> y[b,M,N], with y named in order 0 1 2 by a fixed op:
 *   menu    pin a: orders 0 1 2, 1 0 2 ...  pin w: 0 1  pin y: 0 1 2, 1 0 2 ...   configurations: (a 0 1 2, w 0 1, y 0 1 2) ...
 *   step    configurations: {a:0 1 2, w:0 1} {a:1 0 2, w:0 1, y:1 0 2} ...        y's first order is paid from the start */
#ifndef RL_CERT_INTERNAL_H
#define RL_CERT_INTERNAL_H
#include "cert.h"
#include "hash.h"

/* The file: its first line, the words for rl_cert_kind and rl_cert_rule, and what a bare word may be made of. */
#define RL_CERT_HEAD "relayout.proof/1"
enum { RL_CERT_NKIND = RL_CERT_NODE + 1, RL_CERT_NRULE = RL_CERT_LAST + 1 };
extern const char *const rl_cert_rule_name[RL_CERT_NRULE];
extern const char *const rl_cert_kind_name[RL_CERT_NKIND];
bool rl_cert_is_word_byte(char c);

typedef struct { int64_t major, minor; } rl_cert_key;

static inline rl_cert_key rl_key_add(rl_cert_key a, rl_cert_key b) { return (rl_cert_key){a.major + b.major, a.minor + b.minor}; }
static inline rl_cert_key rl_key_sub(rl_cert_key a, rl_cert_key b) { return (rl_cert_key){a.major - b.major, a.minor - b.minor}; }
static inline bool rl_key_less(rl_cert_key a, rl_cert_key b) {
    return a.major != b.major ? a.major < b.major : a.minor < b.minor;
}

/* Orders as numbers, the same for the same (owner, order).  The first few of an owner hang together, as owners are mostly asked for one
 * after the other, and most have no more; the others are found by index. */
enum { RL_CERT_SHORT = 8 };
typedef struct {
    uint32_t owner, n, next; /* next: 1 + another of its owner */
    union { uint8_t atom[RL_CERT_SHORT]; const uint8_t *p; }; /* p where there are more */
} rl_cert_order;
static inline const uint8_t *rl_cert_atoms(const rl_cert_order *x) { return x->n > RL_CERT_SHORT ? x->p : x->atom; }

typedef struct {
    rl_arena *mem;
    uint32_t nowner; /* how many there will be; 0: a few */
    rl_hash index;
    struct { rl_cert_order *p; uint32_t n, cap; } order;
    struct { struct rl_cert_few { uint32_t first, n; } *p; uint32_t n, cap; } few; /* by owner */
} rl_cert_orders;
uint32_t rl_cert_intern(rl_cert_orders *o, uint32_t owner, const uint8_t *order, uint32_t n);

/* All restricted configurations of an op, each once: pick[c * npin + p] is a number in orders, whose owner is p. */
typedef struct {
    uint32_t npin, ncfg;
    const uint32_t *pick;
    const int64_t *tenths; /* [ncfg] the least that one of which this is left is charged; by time only */
    rl_cert_orders orders;
} rl_cert_menu;

/* The menus met so far: ops that look the same after restriction share one. */
typedef struct {
    rl_arena *mem;
    const rl_cert *c;
    uint32_t limit;              /* configurations of one op */
    uint64_t named;              /* orders that what was listed names: menus, and the configurations of components */
    const uint8_t *const *place; /* [nvalue] each atom's place among those kept, RL_CERT_GONE where it is not; NULL: all kept */
    rl_hash index;
    struct { struct rl_cert_shape { const uint8_t *key; uint32_t n; rl_cert_menu *menu; } *p; uint32_t n, cap; } shape;
} rl_cert_menus;
#define RL_CERT_GONE 255
/* Most of them, and of one component: some 10 s, and 300 MB.  Of the sample models the largest has 70,000. */
enum { RL_CERT_NAMED = 1 << 22, RL_CERT_NAMED_ONCE = 1 << 21 };

/* The op's menu's number in m->shape, with swaps or without; RL_EPROOF where it has more configurations than the limit. */
rl_status rl_cert_menu_of(rl_cert_menus *m, uint32_t op, bool may_swap, uint32_t *id);

/* n!, the orders of n atoms; 0 where that is more than 2^16. */
uint32_t rl_cert_norder(uint32_t n);

/* The kept atoms of an order of the value, by their places among those kept.  Returns how many. */
uint32_t rl_cert_restrict(const rl_cert_menus *m, uint32_t value, const uint8_t *order, uint8_t *out);

/* The k-th place in a pin's sequence of groups; swap: with the last two of them swapped. */
static inline uint32_t rl_cert_place_of(const rl_cert_form *f, uint32_t pin, uint32_t k, bool swap) {
    uint32_t last = f->start[pin + 1] - 1;
    if (!swap || last == f->start[pin] || k + 1 < last) return k;
    return k == last ? last - 1 : last;
}

/* The order of a pin, as the tokens, in the sequence perm (groups one after another), write it. */
void rl_cert_write_order(const rl_cert_op *op, uint32_t form, const uint8_t *perm, uint32_t pin, bool swap, uint8_t *out);

/* One op of a table: configuration k names the elements elem[start[k]] .. elem[start[k + 1]], rising, and costs own[k] beside them. */
typedef struct {
    uint32_t ncfg;
    uint32_t *start, *elem;
    rl_cert_key *own;
    rl_cert_key credit[2]; /* taken off whatever is chosen: one order of each value that no op before it names; backward: after it */
} rl_cert_step;

typedef struct {
    uint32_t nstep, nelem;
    rl_cert_step *step;
    const rl_cert_key *weight; /* [nelem] > 0 */
    rl_cert_key base;          /* what fixed ops make it cost at least */
    rl_cert_key claim;
} rl_cert_table;

/* Adds a configuration that names n elements behind the last one; of equal ones the cheapest stays.  seen: those of the step. */
void rl_cert_add_config(rl_cert_step *s, rl_hash *seen, const uint32_t *set, uint32_t n, rl_cert_key own);
/* cert_settle.c: takes out of the steps what is paid whatever is chosen, and what one step alone can name. */
void rl_cert_settle(rl_arena *mem, rl_cert_table *t);
/* Of a table that is settled, drops the configurations that name an element e with image[e] != e.  False, and the table is of no use, where such a
 * one has no image. */
bool rl_cert_refold(rl_arena *mem, rl_cert_table *t, const uint32_t *image, uint64_t *work);

/* What the parts share.  index: the parts proved, by what they consist of. */
typedef struct {
    rl_ctx *ctx;
    rl_arena *mem;
    const rl_cert *c;
    rl_cert_menus menus;
    const uint32_t *pinstart;                       /* [nvalue + 1] the pins on a value: where[pinstart[v]] .. */
    const struct rl_cert_place { uint32_t op, pin; } *where;
    uint32_t *local, *stamp;                        /* [nvalue] a value's number in the part that stamp names */
    rl_hash index;
    struct { struct rl_cert_proved { const uint32_t *key; uint32_t n; } *p; uint32_t n, cap; } proved;
    uint32_t maxstate;
    uint64_t work, maxwork;                         /* comparisons of the tables so far */
    bool undecided;                                 /* what went wrong is that a limit was met */
} rl_cert_work;

/* cert_cost.c: what one copy of the value costs, and a tenth of it, which the op's charges are counted in. */
rl_cert_cost rl_cert_weight(const rl_cert *c, uint32_t value);
int64_t rl_cert_unit(const rl_cert *c, const rl_cert_op *op);
/* Charged for a form, or as it stands (RL_NONE), with these tokens at pin 0, outermost first; whole: no atom was left out there. */
int64_t rl_cert_tenths(const rl_cert_op *op, uint32_t form, const uint8_t *token, uint32_t n, bool whole);
rl_status rl_cert_check_charge(rl_ctx *ctx, const rl_cert *c, uint32_t op);
/* Swaps are of ops that write what they say. */
rl_status rl_cert_check_swaps(rl_ctx *ctx, const rl_cert *c);
/* The assignment costs what the certificate says, and each part of the second part too. */
rl_status rl_cert_check_assignment(rl_ctx *ctx, const rl_cert *c);
rl_status rl_cert_add_cost(rl_ctx *ctx, const rl_cert *c, uint32_t v, uint32_t n, rl_cert_cost *sum);
rl_status rl_cert_check_sum(rl_ctx *ctx, const rl_cert *c, const char *what, rl_cert_cost got, rl_cert_cost claim);

/* cert.c: whether perm has all tokens, group after group. */
bool rl_cert_is_perm(const rl_cert_op *op, uint32_t form, const uint8_t *perm);
/* cert.c: whether an op names one order only at each pin, come what may. */
bool rl_cert_is_fixed(const rl_cert_op *op);
rl_cert_key rl_cert_key_of(const rl_cert *c, rl_cert_cost x);

/* Checks that no choice makes the part cheaper than it says. */
rl_status rl_cert_part_check(rl_cert_work *w, uint32_t part);

/* No choice costs less than the claim; or one does, *left; or neither could be shown within the limits of cert.h.  Adds to *work, and
 * stops when that is over maxwork. */
typedef enum { RL_CERT_HOLDS, RL_CERT_CHEAPER, RL_CERT_TOO_MANY } rl_cert_verdict;
rl_cert_verdict rl_cert_table_fill(rl_arena *mem, const rl_cert_table *t, uint32_t maxstate, uint64_t maxwork, uint64_t *work, rl_cert_key *left);

/* The same of a part with spans, whose table is settled: HOLDS, TOO_MANY, or CHEAPER where the spans do not show the claim.  element: [span] what each order
 * in weigh is; most: the bytes that a conversion moves at most. */
rl_cert_verdict rl_cert_spans_fill(rl_arena *mem, const rl_cert_part *part, const rl_cert_table *t, const uint32_t *const *element, int64_t most,
                                   uint32_t maxstate, uint64_t maxwork, uint64_t *work);

/* The same by a flow; RL_CERT_TOO_MANY, too, where it has nothing to say: an op with more than two configurations, or a cycle of ops whose two
 * are crossed. */
rl_cert_verdict rl_cert_flow(rl_arena *mem, const rl_cert_table *t, uint64_t maxwork, uint64_t *work, rl_cert_key *left);
#endif
