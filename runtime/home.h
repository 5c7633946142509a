/* Concat in place: what makes its pieces writes them where they are to stand.
 *
 *   a = Relu(x)             [1,8,28,28]    y's buffer is made when the first piece is: a is a view of it, channels 0 .. 7
 *   b = Add(z, w)           [1,4,28,28]    ... and so is b, channels 8 .. 11
 *   y = Concat(a, b, c)     [1,14,28,28]   only c, an input of the graph, is moved
 *
 * A value has at most one home: the slot of a Concat that reads it.  A Concat whose output is a piece of another one has its buffer in
 * that one's; and one whose inputs begin as an earlier one's do takes that one's output for them, so that networks that join all that
 * they have made so far, again and again, have one buffer for it:
 *
 *   y1 = Concat(a, b)       y2 = Concat(a, b, c)       read as       y2 = Concat(y1, c), of which y1 is a view
 *
 * A Concat that a Reshape joins with others (the heads of a detector: boxes and classes, then the pixels of all sizes) is made row-major, in
 * that one's buffer.
 *
 * A home is an offer.  A kernel that wants another order of memory than what stands in the buffer, or a piece without gaps where its
 * place has some (channels-last, all of oneDNN's; but not convolutions by direct.h), makes its output elsewhere, and the Concat moves it.  What lies in the buffer holds
 * a reference of it, and so does the frame until the Concat is done: nothing is written over it before. On a device a piece must begin on 16 bytes, as
 * libraries want what they make. */
#ifndef RL_HOME_H
#define RL_HOME_H
#include "exec.h"

typedef struct rl_home {
    rl_value into;  /* the Concat's output; RL_NOVALUE: none */
    uint32_t slot;
    bool gaps;      /* who reads the value does not mind gaps between its rows */
    bool chunk;     /* the piece is a view of the value: it is to have the same bytes, one after the other */
    bool rows;      /* of a Concat's output: a Reshape that joins its dims reads it, and copies nothing where it lies row-major */
} rl_home;

/* Where pieces begin along the axis: of one plan. */
typedef struct rl_homes {
    int64_t *from;    /* [value] -1: no home in this run; NULL: none has one */
    rl_tensor **dims; /* [value] of a Concat's output, and of the piece of what has a home; NULL: not known */
} rl_homes;

/* Does the kernel read any strides as fast as dense ones? */
bool rl_reads_gaps(rl_kernel_fn *fn);
/* Has the kernel's output all elements of its input in another shape, by strides where they can say it? */
bool rl_only_reshapes(rl_kernel_fn *fn);
/* Is this step one that others' outputs may be made in? */
bool rl_is_concat(const rl_step *s);
/* Sets x->home; NULL where no Concat has a piece that is made. After rl_fuse. */
void rl_choose_homes(rl_exec *x);
/* The axis of the Concat that makes v. */
uint32_t rl_home_axis(const rl_exec *x, rl_value v, uint32_t rank);
/* Will the kernel of this step write v into its home, as far as one can tell? */
bool rl_home_likely(const rl_exec *x, const rl_homes *h, rl_kernel_fn *fn, rl_value v);
/* The Concat whose buffer v's home is at last. */
rl_value rl_home_root(const rl_exec *x, const rl_homes *h, rl_value v);
/* The same in a run, of what output i was made in; RL_NOVALUE: of none. */
rl_value rl_home_found(const rl_call *c, const rl_homes *h, uint32_t i);
/* Output i in its home, in this order of memory (NULL: row-major), a reference for the caller; false: it has none. */
bool rl_home_take(const rl_call *c, uint32_t i, rl_dtype t, uint32_t rank, const int64_t *dim, const int64_t *perm, rl_tensor *out);
/* perm, in which a kernel would make output 0, becomes row-major where its home is to be that and the innermost dim stays the same. */
void rl_home_order(const rl_call *c, uint32_t rank, int64_t *perm);
/* Does the piece stand there already? */
bool rl_home_holds(const rl_tensor *part, const rl_tensor *piece);
/* The piece, or, where it is in that buffer in another order, a copy until the node is done: to be moved to its place. */
const rl_tensor *rl_home_apart(rl_call *c, const rl_tensor *part, const rl_tensor *piece);
/* Output 0 of a Concat becomes the buffer that pieces of it lie in; false: there is none. */
bool rl_home_give(rl_call *c, rl_dtype t, uint32_t rank, const int64_t *dim);

#endif
