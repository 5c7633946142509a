/* Nodes that run as one, decided when a graph is prepared for fast kernels or for a device:
 *
 *   Conv -> BatchNormalization -> Add(residual) -> Relu       one step: a convolution whose weights are scaled, with two post-ops
 *   MatMul -> Add(bias) -> Gelu                               the same for a product
 *   Mul -> Add -> Relu                                        one walk over the tensor, row by row
 *   Add -> QuantizeLinear -> DequantizeLinear                 the same: divided by the scale, rounded, clipped, times the scale
 *   MatMul -> Add(mask) -> Softmax -> MatMul                  attention, in blocks of rows (fuse_attention.c)
 *
 * Only f32 values that nobody else reads are left out; so nothing is fused in a run that is watched (--dump all).  With a device shorter floats
 * are joined, too, and the step keeps its parts, which run where the device's kernel cannot. */
#ifndef RL_FUSE_H
#define RL_FUSE_H
#include "exec.h"
#include "rows.h"

enum { RL_POSTS = 10, RL_PIECES = 24 };

/* What is done to the value at hand; `in`: the step's input that a binary op takes. */
typedef struct { rl_row_op op; float p, q; uint32_t in; } rl_post;

typedef struct rl_fused {
    rl_post post[RL_POSTS];
    uint32_t npost;
    float *scale, *shift;  /* [nchannel] of a convolution's or product's output, before the posts; NULL: none */
    int64_t nchannel;
} rl_fused;

/* A convolution's input in pieces, one after the other: each is `count` channels from `from` on of the step's input `in`. */
typedef struct rl_pieces {
    uint32_t n;
    int64_t channels;     /* of all */
    const int64_t *order; /* [channels] which channel of the node's input is there; NULL: they are in order. Depthwise, of the output's too */
    struct {
        uint32_t in;
        int64_t from, count;
    } piece[RL_PIECES];
} rl_pieces;

/* A DepthToSpace behind a convolution, which writes its channels as blocks of pixels (fold.c). */
typedef struct rl_fold {
    int64_t block;
    bool crd; /* the channel of a pixel comes before its place in the block; else after */
} rl_fold;

enum { RL_JOINED_OPS = 6 };

/* One thing that is done to scores of attention: see attention.h. */
typedef struct {
    rl_row_op op; /* a binary one, or RL_ROW_COPY: a Where */
    bool keep;    /* of a Where: the score stays where its condition is that */
    bool split;   /* its operand broadcasts to `dim` below */
    float other;  /* of a Where */
    uint32_t in;  /* the step's input that it takes */
} rl_joined_op;

/* Attention that was joined (fuse_attention.c): inputs q, k (transposed), v, operands. */
typedef struct rl_joined {
    float scale;
    uint32_t nop, rank; /* rank 0: the scores keep the dims of the product */
    rl_joined_op op[RL_JOINED_OPS];
    int64_t dim[RL_RANK]; /* what the scores are reshaped to in between; at most one is -1: what is left */
} rl_joined;

/* A unary op (its row's arg in kernels_fast.def) with its attributes; low and high: of a Clip. False: a Clip whose range is no float. */
bool rl_unary_post(const rl_nodeinfo *n, int arg, const rl_tensor *low, const rl_tensor *high, rl_post *post);
/* bias, which broadcasts to y (NULL: none), and then what was fused into the call's step, on y where it lies (fast_pointwise.c). */
void rl_fused_rows(rl_call *c, const rl_tensor *bias, const rl_tensor *y);
/* How output 0, the only one, is to be rounded, which is the caller's to do then; false: not. */
bool rl_take_rounding(rl_call *c, rl_post *post);
/* The outputs that stand for shorter floats (halves.c), rounded where they lie. */
void rl_round_outputs(rl_call *c);
/* How often a value is read, a body's reading twice, and by which step last. */
typedef struct {
    uint32_t n;
    rl_step *last;
} rl_readers;
/* [value] */
const rl_readers *rl_find_readers(const rl_exec *x, rl_arena *tmp);
/* The step that alone reads v, as its first input, if its kernel is fn; else NULL. */
rl_step *rl_only_reader(const rl_exec *x, const rl_readers *of, rl_value v, rl_kernel_fn *fn);
/* The step has this kernel and no other. */
void rl_run_by(const rl_exec *x, rl_step *s, const rl_kernel *k);
/* Those whose info is NULL go. */
void rl_drop_steps(rl_exec *x);
/* Asks at every step that is not gone, in order, whether it is to be joined with its readers; what has lost its info then goes. */
typedef void rl_join_fn(rl_exec *x, const rl_readers *of, rl_step *s);
void rl_join_each(rl_exec *x, rl_join_fn *join_at);
/* Moves Transposes behind convolutions, pools and Resizes down past pointwise ops, Pads and Concats, and cancels them (sink.c). Before a
 * graph's steps are made; its inputs and outputs stay what they are. */
void rl_sink_transposes(rl_graph *g, bool device);
/* Average pools that only leave out pixels become strides of the 1 x 1 convolutions that read them (subsample.c). Where that was. */
rl_status rl_join_subsampling(rl_graph *g);
/* Float16 and bfloat16 computed as floats (halves.c). After all other changes of a graph. */
rl_status rl_compute_as_floats(rl_graph *g);
/* Joins steps of x; those that are left out go from the list. After constants are known, before lifetimes are. */
void rl_fuse(rl_exec *x);
/* DequantizeLinear, Conv or MatMul, QuantizeLinear as one step in bytes (fuse_bytes.c). Before rl_fuse. */
void rl_join_bytes(rl_exec *x);
/* Makes one step of a Concat and the Reshape that stacks its pieces, where channels are shuffled (interleave.c). After rl_fuse. */
void rl_join_shuffles(rl_exec *x);
/* Makes one step of an InstanceNormalization of all that each of a batch has and the Reshapes around it (whole_norm.c). After rl_fuse. */
void rl_join_whole_norms(rl_exec *x);
/* Convolutions that read channels through Concats, Splits and shuffles read them where they were made (pieces.c). Before homes are chosen. */
void rl_read_pieces(rl_exec *x);
/* DepthToSpaces go past what is done to each element of what they make, back to their convolutions' activations (fold.c). Before a graph's
 * steps are made. */
void rl_sink_folds(rl_graph *g);
/* Slices and Splits of what is done to each element go before it, where one of the pieces is a Concat's (cut_first.c). Before a graph's steps
 * are made. */
void rl_cut_first(rl_graph *g);
/* Convolutions of one value with the same windows, whose outputs are moved anyway, as one and a Split (siblings.c). With a device, before a graph's steps
 * are made. */
rl_status rl_join_siblings(rl_graph *g);
/* Gathers of one place that is known as Slices, which are views (one_place.c). With a device, before a graph's steps are made. */
rl_status rl_slice_one_place(rl_graph *g);
/* What is moved as floats between a DequantizeLinear and a QuantizeLinear of the same scale moves bytes (units.c). Before a graph's steps are made. */
void rl_move_bytes(rl_graph *g);
/* Makes one step of a convolution by direct loops and the DepthToSpace that alone reads it (fold.c). After rl_read_pieces. */
void rl_join_folds(rl_exec *x);
/* Is it a Pad with zeros? */
bool rl_pads_are_zeros(const rl_exec *x, const rl_nodeinfo *pad);
/* The pads of a node with windows which reads this Pad, with what that adds, before all dims and then behind (pads.c); NULL: not zeros, not known, or
 * not in the spatial dims alone. */
const int64_t *rl_pads_sum(const rl_exec *x, const rl_nodeinfo *pad, const rl_nodeinfo *window);
/* In its attributes; counts: as an average counts them. */
void rl_set_pads(rl_graph *g, rl_nodeinfo *n, const int64_t *pads, uint32_t count, bool counts);
/* Pads of zeros that only convolutions read become theirs. With a device, whose joined steps keep their parts and so cannot share one; before a graph's steps
 * are made. */
void rl_pad_convolutions(rl_graph *g);
/* Pads that only pools read become theirs. Without a plan. */
void rl_join_pool_pads(rl_exec *x);
/* Pads, Reshapes and Slices in a row that together are a view of what they read: one step, which is that (shear.c). */
rl_status rl_join_shears(rl_exec *x);
/* Who makes rows puts them where Reshapes, Transposes, Slices and Concats would move them: one step (scatter.c). */
rl_status rl_join_scatters(rl_exec *x);
/* Makes one step of Reshapes and Transposes in a row, each read by the next alone (turns.c). After all that looks for some of them. */
void rl_join_turns(rl_exec *x);
/* Is the first of them a Reshape that joins dims of a value of this rank? */
bool rl_turns_join(const struct rl_turns *t, uint32_t rank);
/* Sets the order of products whose readers want another one (order.c). After rl_fuse. */
void rl_choose_orders(rl_exec *x);

#endif
