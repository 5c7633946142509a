/* What the host gives each kernel: C and C++. A kernel has one argument, one of these structs; k_*.h says what each kernel does.
 *
 * GPU(name, kernel, params): a row per kernel, in kernels.inc; the row's place is its number (rl_gpu_kernel). */
#ifndef RL_CUDA_PARAMS_H
#define RL_CUDA_PARAMS_H
#include <stdalign.h>

#include "../runtime/dynamic_scale.h"
#include "../runtime/grid.h"
#include "../runtime/recurrent_ops.h"
#include "../runtime/seen.h"
#include "index.h"

enum { RL_THREADS = 256 }; /* of every block */
enum { RL_MOST_SPATIAL = 3 };
enum { RL_PER_THREAD = 4 }; /* elements, of kernels that go element by element */

/* strided: operand 0 written, operand 1 read */
typedef struct { void *to; const void *from; uint32_t count; rl_walk w; } rl_p_copy;

/* join: several copies in one launch; each has up to three dims, the outermost first, and blocks from `first` on */
enum { RL_MOST_JOINED = 24, RL_JOINED_DIMS = 3 };
typedef struct { void *to; const void *from; uint32_t first, count; rl_divisor dim[RL_JOINED_DIMS]; int64_t step[2][RL_JOINED_DIMS]; } rl_p_part;
typedef struct { uint32_t n; rl_p_part part[RL_MOST_JOINED]; } rl_p_join;

/* tile, any_tile, element_tile, word_tile, tall_tile: i counts along operand 1's closest elements, j along operand 0's; all other dims are `batch`. Where
 * several dims lie one after the other there, i, or j, counts through all of them, and its run says where the other operand has it (rank 0: to_i, from_j do). */
enum { RL_TILE_ELEMENTS, RL_TILE_CHUNKS, RL_TILE_SHIFTED };
typedef struct {
    void *to;
    const void *from, *low, *high; /* SHIFTED, word_tile: all bytes from low to high are there */
    rl_tile_shape shape;      /* of element_tile: in elements */
    uint32_t ni, nj;          /* elements */
    rl_divisor ti, tj;        /* tiles along each, or groups of them along j */
    int64_t to_i, from_j;     /* steps; those of to along j and from along i are 1 */
    rl_walk run_i, run_j;
    uint32_t in;              /* how lines are read: by elements; by 16 bytes, from multiples of that on; by 16 bytes, wherever they begin */
    uint32_t vector_out;      /* do 16 bytes at a time fit there? */
    rl_walk batch;
    uint32_t halo;            /* rows before a tile, which it has too: a sector's, or none */
    rl_divisor group;         /* tiles along j that follow each other; tile and any_tile have none */
} rl_p_tile;

/* weave: q planes, each `n` places of step 1 and step_j from one to the next, and their run, interleaved; out: the run is read. */
typedef struct {
    void *to;
    const void *from;
    uint32_t n, out, along, pitch;
    rl_divisor q, tiles, each; /* tiles: blocks along the planes; each: 16 bytes of a plane in a block */
    int64_t step_j;
    uint32_t by_plane, by_run; /* do 16 bytes at a time fit there? */
    rl_walk batch;            /* operands: to, from */
} rl_p_weave;

/* interleave: planes and their run, in columns of so many bytes of each plane as the kernel says, which all steps of planes count; those of the run count
 * 16 bytes.  A batch is a pair of them; out: the run is read; flat: batches' runs lie one after the other. */
typedef struct {
    void *to;
    const void *from;
    uint32_t count, out, flat, rank; /* columns of all batches; dims of batches */
    rl_divisor each, units;          /* of a batch: columns; not flat: 16 bytes of the run */
    int32_t step_j;                  /* from plane to plane */
    int32_t step_plane[RL_DIMS], step_run[RL_DIMS];
    rl_divisor dim[RL_DIMS];
} rl_p_interleave;

/* bits: elements of 2 or 4 bits; dense_to: `to` is written as it lies, from a whole byte on, so that a thread owns a byte */
typedef struct { void *to; const void *from; int64_t to0, from0; uint32_t count, bits, dense_to; rl_walk w; } rl_p_bits;

/* select: places that indices name.  Operand 0 of the walk: the side that is dense (gather: written; scatter: read); operand 1: the
 * other side, without what the indices add; operand 2: the place of the first of `n` indices. */
enum { RL_MOST_INDICES = 8 };
typedef struct {
    void *to;
    const void *from, *index;
    uint32_t count, n, wide, scatter;      /* wide: indices of 64 bits, else of 32 */
    int64_t dim[RL_MOST_INDICES], step[RL_MOST_INDICES];
    int64_t each;                          /* step from one of the n indices to the next */
    uint32_t *wrong, node;                 /* *wrong = node where an index is out of range */
    int64_t from0;                         /* select_bits: elements of `bits` bits, gathered from there on to whole bytes */
    uint32_t bits;
    rl_walk w;
} rl_p_select;

/* pick: gather whose indices go along what is written, 16 bytes at a time, the same ones for all `rows`; operands of the walk: to, from. A thread has
 * RL_PER_THREAD rows. */
typedef struct {
    void *to;
    const void *from, *index;
    uint32_t count, rows, wide, by_vector; /* count: threads; wide: indices of 64 bits; by_vector: of 32, from a multiple of 16 bytes on */
    rl_divisor across;                     /* vectors in a row */
    int32_t dim, step;
    uint32_t *wrong, node;
    rl_walk w;
} rl_p_pick;

/* fill: the element, repeated to 16 bytes */
typedef struct { void *to; uint32_t count; uint32_t value[4]; rl_walk w; } rl_p_fill;

/* recode: one buffer's layout to another's, with padding and conversion of numbers.  Thread k makes element k of `to`, in the order of
 * its digits; axis a's index is the sum of digit * weight of its digits; past `dim` lies padding: zero. */
enum { RL_DIGITS = 24, RL_AXES = 8 };
typedef struct { rl_divisor size; uint32_t axis, weight; int64_t step; } rl_p_digit;         /* to: outermost first */
typedef struct { rl_divisor below, size; uint32_t axis; int64_t step; } rl_p_source;        /* from: (index / below) % size * step */
typedef struct {
    void *to;
    const void *from;
    int64_t to0, from0;
    uint32_t count, nto, nfrom, naxis;
    int32_t to_type, from_type;
    uint32_t dim[RL_AXES];
    rl_p_digit digit[RL_DIGITS];
    rl_p_source source[RL_DIGITS];
} rl_p_recode;

/* each: operand 0 written, 1.. read; wide: a thread has 16 bytes of neighbours along the last dim of the walk, which counts by so many (index.h:
 * rl_loops_by); one: of operand 1, 2, 3 it has one element for them all */
typedef struct {
    void *to;
    const void *in[3];
    uint32_t count, op, nin, wide, one[3];
    double param[2];
    rl_walk w;
} rl_p_each;

/* cast: any number type to any */
typedef struct { void *to; const void *from; uint32_t count; int32_t to_type, from_type; rl_walk w; } rl_p_cast;

/* reduce: operand 0 of `kept` is written, operand 1 read; operand 0 of `gone` is what is added to that.  A team of `lanes` threads per output
 * (k_reduce.h); across: neighbouring threads have neighbouring outputs.  Where the outputs are few a team adds up `share` of the `each` elements, a
 * part, and `partial` sums are written, part after part; `again`: these are read.  n: what a mean divides by.  zero: of range, its second output. */
typedef struct {
    void *to, *zero;
    const void *from;
    uint32_t count, each, share, n, op, lanes, across, partial, again;
    rl_divisor blocks; /* of each part */
    rl_walk kept, gone;
} rl_p_reduce;

/* What is done to the scores of attention, before they become weights: x capped (0: not), -inf where the query does not see the key, then each op.
 * Line r is query first + r % queries of batch r / per_batch. */
enum { RL_MOST_SCORE_OPS = RL_OPERANDS - 2 };
/* Plus what is at `by`, of the weights' type; or a choice by bools: the score stays where `by` is `keep`, else it becomes `other`.  A line's place in
 * `by`: operand 2 + i of the rows' walk. */
typedef struct {
    const void *by;
    int64_t step;
    uint32_t of_bools, keep;
    double other;
} rl_p_score_op;
typedef struct {
    const int64_t *valid;   /* by batch; NULL: all keys */
    int64_t first;
    double cap;
    rl_divisor queries, per_batch;
    rl_sight sight;
    uint32_t nop, narrow;   /* narrow: the scores have the weights' type, else the one that it is computed in */
    uint32_t blind_is_zero; /* a line of -inf alone becomes zeros, else what is no number */
    rl_p_score_op op[RL_MOST_SCORE_OPS];
} rl_p_scores;

/* rows: softmax, layer norm ...: a team per line of n elements, `step` apart; operands 0 and 1 of `kept`; across: neighbouring threads have neighbouring
 * lines
 * moments, parted: layer norm ... of lines of neighbours by `parts` of `share` elements, of which the last may have fewer: RL_PIECE, or several times that;
 * moments: line after line, part after part, written, then read; wide: do 16 bytes at a time fit there? */
enum { RL_PIECE = 8 * RL_THREADS };
typedef struct { double mean, squares; } rl_moments; /* of numbers: their mean, the sum of their squared distances from it */
typedef struct {
    void *to;
    const void *from, *scale, *bias;
    uint32_t count, n, op, across;
    int64_t to_step, from_step;
    uint32_t scale_rows, bias_rows; /* line r takes row r % these; of norms */
    rl_divisor each;                /* so many neighbours of a line have one scale and bias: n / each in a row */
    double epsilon;
    rl_moments *moments;
    rl_divisor parts;
    uint32_t share, wide;
    rl_p_scores scores;             /* of rows of scores */
    rl_walk kept;
} rl_p_rows;

/* scan: sums of the elements so far (`multiplies`: products) of lines of n elements; a team of `lanes` threads has a line, a lane `share` neighbours */
typedef struct {
    void *to;
    const void *from;
    uint32_t count, n, lanes, share, multiplies, reverse, exclusive;
    int64_t to_step, from_step;
    rl_walk kept; /* operands to, from */
} rl_p_scan;

/* topk: the best k of each line of n elements, in order. A part is `width` elements, a power of two; of several parts' best k each the words that they
 * are compared by go to `best`, and their numbers to `number`, part after part; `again`: elements are these. */
enum { RL_TOPK_SLOTS = 2048 }; /* elements that a block has */
typedef struct {
    void *values;
    int64_t *indices;
    const void *from;
    uint64_t *best;
    const uint64_t *best_before;
    uint32_t *number;
    const uint32_t *number_before;
    uint32_t count, n, k, width, largest, partial, again, size; /* size: bytes of an element */
    int32_t type;
    rl_divisor parts;
    int64_t from_step, values_step, indices_step;
    rl_walk kept; /* operands values, from, indices */
} rl_p_topk;

/* triangle: elements on one side of a diagonal, else zero; operands y, x, column - row */
typedef struct { void *to; const void *from; uint32_t count, upper; int64_t diagonal; rl_walk w; } rl_p_triangle;

/* one_hot: values[1] where an index, perhaps counted from the end, is the place, else values[0]; operands y, index, place */
typedef struct { void *to; const void *index, *values; uint32_t count, wide; int64_t depth; rl_walk w; } rl_p_one_hot;

/* rotary: pairs of elements turned; operands: y's and x's first ones, the place in the caches without what the position adds, the position (NULL: none) */
typedef struct {
    void *to;
    const void *from, *cosine, *sine;
    const int64_t *position;
    uint32_t count, half;
    int64_t to_pair, from_pair, places; /* places: elements of a cache */
    uint32_t *wrong, node;
    rl_walk w;
} rl_p_rotary;

/* grid: GridSample; a thread makes RL_GRID_CHANNELS channels of one place. Operands: y, x's image, the grid's point, the number of the first channel. The
 * axes are the last r of three. */
enum { RL_GRID_CHANNELS = 4 };
typedef struct {
    void *to;
    const void *from, *grid;
    uint32_t count, r, wide, channels; /* wide: the grid is f64, else f32 */
    int32_t in[RL_MOST_SPATIAL];
    int64_t step[RL_MOST_SPATIAL], to_c, from_c;
    rl_grid_mode mode;
    rl_walk w;
} rl_p_grid;

/* posts: op after op on each element of in[0], which lies as `to` does, and may be it (NULL: the first op is COPY): operand 0 of the walk; operand k of it is
 * post.operand; wide, one: as of each */
enum { RL_MOST_POSTS = 12 };
typedef struct { uint32_t op; float p, q; uint32_t operand; } rl_p_post; /* op: a rl_row_op of runtime/rows.h; operand 0: none */
typedef struct { void *to; const void *in[RL_OPERANDS]; uint32_t count, npost, wide, one[RL_OPERANDS]; rl_p_post post[RL_MOST_POSTS]; rl_walk w; } rl_p_posts;

/* affine: y = (x - mean) * scale / sqrt(var + epsilon) + bias by channel, or, where mean is NULL, x * scale + bias; operands: y, x, channel; wide: as of
 * each, the channel `by` for each neighbour */
typedef struct {
    void *to;
    const void *from, *scale, *bias, *mean, *var, *in[RL_OPERANDS];
    uint32_t count, wide, by, npost;
    double epsilon;
    rl_p_post post[RL_MOST_POSTS];
    rl_walk w;
} rl_p_affine;

/* lrn: y = x / (bias + scale * the squares of channels before .. after) ^ beta, channels `step` apart; operands: y, x, channel */
typedef struct { void *to; const void *from; uint32_t count, channels, before, after; int64_t step; double scale, beta, bias; rl_walk w; } rl_p_lrn;

/* pool: the number of an output is n, its place, c where `channels` has them, else n, c, its place; operands of `outer`: y, x. wide: 16 bytes of channels are
 * one output */
typedef struct {
    void *to;
    const void *from;
    uint32_t count, op, count_pad, taps, wide;
    uint32_t r;
    int64_t step[RL_MOST_SPATIAL], to_step[RL_MOST_SPATIAL]; /* of x, of y */
    int32_t in[RL_MOST_SPATIAL], stride[RL_MOST_SPATIAL], dilation[RL_MOST_SPATIAL], before[RL_MOST_SPATIAL], after[RL_MOST_SPATIAL];
    rl_divisor out[RL_MOST_SPATIAL], window[RL_MOST_SPATIAL], channels; /* channels-last; else 1 */
    int64_t to_c, from_c;
    rl_walk outer;                   /* n, or n and c */
} rl_p_pool;

/* resize: up to three axes at once.  Operands: y, x without these axes, the places along them: of the first two (place << 32 on the second), of the
 * third.  An axis has ntap of `taps`, from `first` on, for each of its places; one that is not there has one tap.  wide: as of each */
enum { RL_MOST_RESIZED = 3, RL_RESIZED_AT_ONCE = 2 /* elements of a thread that is not wide */ };
typedef struct { alignas(8) float weight; int32_t at; } rl_tap_f32; /* at: of x; one load */
typedef struct { double weight; int64_t at; } rl_tap_f64;
typedef struct {
    void *to;
    const void *from, *taps;
    uint32_t count, wide, first[RL_MOST_RESIZED], ntap[RL_MOST_RESIZED];
    int64_t step[RL_MOST_RESIZED];
    rl_walk w;
} rl_p_resize;

/* pad: by dim of y, outermost first, which place of x */
typedef struct {
    void *to;
    const void *from;
    uint32_t count, mode, rank;
    rl_divisor dim[RL_DIMS];
    int64_t before[RL_DIMS], in[RL_DIMS], to_step[RL_DIMS], from_step[RL_DIMS];
    uint32_t value[4];
} rl_p_pad;

/* matmul: c[b] = alpha * a[b] b[b] + beta * bias, tiles of 64 * 64; all strides free */
typedef struct {
    void *c;
    const void *a, *b, *bias;
    uint32_t m, n, k;
    rl_divisor tiles_m, tiles_n;
    int64_t a_m, a_k, b_k, b_n, c_m, c_n, bias_m, bias_n;
    double alpha, beta;
    rl_walk batch; /* operands c, a, b */
} rl_p_matmul;

/* few_rows, few_across: y = alpha * a b + beta * bias, then the posts, whose operands lie as y does, for up to RL_FEW_ROWS rows, whose elements lie side by
 * side. b_step: of b, to the next column of few_rows, to the next row of few_across; lanes: of a team (k_few_rows.h); wide: by whole vectors alone? */
enum { RL_FEW_ROWS = 4, RL_FEW_ACROSS = 4 /* columns of a team of few_across */, RL_FEW_AHEAD = 32 /* bytes of b that a lane has under way */ };
typedef struct {
    void *y;
    const void *a, *b, *bias, *operand[RL_OPERANDS];
    uint32_t m, n, k, lanes, wide, npost;
    int64_t a_m, b_step, y_m, bias_m, bias_n;
    double alpha, beta;
    rl_p_post post[RL_MOST_POSTS];
} rl_p_few_rows;

/* recurrent: a step of an LSTM, GRU or RNN, a unit of [dirs][batch][hidden] per thread.  x: what the inputs came to, of all tokens; product: what the
 * states did, of the gates in `asked`; in a row of both gate g of unit j stands at g * hidden + j, and x has the second direction's gates behind the
 * first's.  bias [dirs][2][gates][hidden], peephole [dirs][3][hidden], ends [batch]; NULL: none.  reset: where a GRU is to leave reset * h for its next
 * gate's own product, and nothing else.
 * recurrent_few: the same of at most RL_RECURRENT_FEW sequences, with the product in it: a unit of [dirs][hidden] per warp.  weights [dirs][gates][hidden]
 * [hidden]; kept: what gate 2 is of (NULL: of h); wide: do 16 bytes at a time fit there? */
enum { RL_RECURRENT_FEW = 4, RL_RECURRENT_LANES = 32, RL_GATES = 4 };
typedef struct { void *to; const void *from; int64_t to_step[2], from_step[2]; } rl_p_state; /* from NULL: zeros; steps: of a direction, of the batch */
typedef struct {
    void *y, *reset;                       /* y NULL: not wanted */
    const void *x, *product, *bias, *peephole, *weights, *kept;
    const int32_t *ends;
    rl_p_state h, c;                       /* c: in the type that is computed in, but read in step 0 */
    uint32_t count, op, gates, asked, step, length, reverse, couples, linear, wide;
    rl_divisor hidden, batch;
    int64_t x_step[2], y_step[3];          /* of a token, of the batch; of a token, of a direction, of the batch */
    double clip;                           /* 0: none */
    rl_activation act[2][3];
    uint32_t *wrong, node;                 /* *wrong = node where a sequence is longer than all steps, or shorter than none */
} rl_p_recurrent;

/* conv: an output per thread; transposed: places that reach this one */
typedef struct {
    void *y;
    const void *x, *w, *bias;
    uint32_t count, r, transposed, cin, cout; /* of one group */
    rl_divisor out[RL_MOST_SPATIAL], channels, per_group;
    int32_t in[RL_MOST_SPATIAL], kernel[RL_MOST_SPATIAL], stride[RL_MOST_SPATIAL], dilation[RL_MOST_SPATIAL], before[RL_MOST_SPATIAL];
    int64_t x_n, x_c, x_step[RL_MOST_SPATIAL], w_o, w_i, w_step[RL_MOST_SPATIAL], y_n, y_c, y_step[RL_MOST_SPATIAL];
} rl_p_conv;


/* depthwise: each channel by itself; x and y channels-last, y perhaps a part of more channels; w [row of the window][column][channel].  A thread makes RL_DEPTHWISE_CHANNELS channels of
 * RL_DEPTHWISE_PLACES neighbours along W, then the posts, whose operands lie as y does.  Operands of the walk: the number of its channels, its first
 * place's column and row, its image; what lies past an end is left out.  jump, phases: see k_conv.h.  depthwise_rows: `shared` threads have the rows of a
 * window between them. */
enum { RL_DEPTHWISE_CHANNELS = 4, RL_DEPTHWISE_PLACES = 4, RL_DEPTHWISE_SHARED = 8 };
typedef struct {
    void *y;
    const void *x, *w, *bias, *operand[RL_OPERANDS];
    uint32_t count, channels, npost, shared, out[2], y_n, y_step[2];
    int32_t in[2], kernel[2], stride[2], dilation[2], before[2], jump, phases, x_step, w_step; /* x_step: of a stride; w_step: of a jump */
    rl_p_post post[RL_MOST_POSTS];
    rl_walk walk;
} rl_p_depthwise;

/* quantize: operands y, x, scale, zero (NULL: 0); back: y = (x - zero) * scale, else rint(x / scale) + zero, cut; wide: a thread has 16 neighbours, f32 on
 * one side and bytes on the other, with one scale and zero point */
typedef struct {
    void *to;
    const void *from, *scale, *zero;
    uint32_t count, back, wide;
    int32_t to_type, from_type, zero_type;
    float least, most;
    rl_walk w;
} rl_p_quantize;

/* byte_sums: of lines of n signed bytes, `step` apart; wide: side by side, by 16 from multiples of 16; operand 0 of the walk: where line k begins */
typedef struct { void *to; const void *from; uint32_t count, n, wide; int64_t step; rl_walk w; } rl_p_byte_sums;

/* A zero point of bytes that are taken as signed ones: of the model, or on the device, a byte whose bits `flip` are turned. */
typedef struct { const uint8_t *at; uint32_t flip; int32_t value; } rl_p_zero; /* at NULL: value */

/* byte_end: to[row][column] of from[row][column], i32, less rows[row] * zero, less a_zero * (sums[matrix][column] - k * zero); zero: columns' [column], or,
 * NULL, b_zero; by scale[column] to a byte where that is there; a_scale: or by *a_scale * scale[column * scale_step], plus bias[column], to f32.  NULL: nothing of
 * the kind.  A matrix has `height` rows; of sums: all the same one */
typedef struct {
    void *to;
    const void *from, *rows, *zero, *sums, *scale;
    const float *a_scale, *bias;
    uint32_t count, k, scale_step;
    rl_divisor columns, height;
    rl_p_zero a_zero, b_zero;
    int32_t y_zero, least, most;
} rl_p_byte_end;

/* dp4a: convolutions of bytes (dp4a.h); a thread makes four channels of one place.  Operands of the walk: y without its channels, x's image, the
 * place (row << 32 | column), the number of the four channels.  Steps of x count words of 4 channels, or bytes. */
typedef struct {
    void *y;
    const void *x, *w, *bias, *scale;  /* w [quad][tap][depth][4] words; bias, scale: by output, NULL: none */
    uint32_t count, words, depth, group, per_group, taps, wide, packs; /* wide: y is int32; packs: four channels are one word of y */
    uint32_t flip, pad;                /* makes unsigned bytes signed; what padding is, before that */
    const uint8_t *x_zero;             /* the zero point is there: padding, and what the bias is multiplied by; NULL: pad */
    rl_divisor quads, s, x_per_block, y_per_block;
    int32_t in[2], stride[2], dilation[2], before[2], zero, least, most;
    int64_t x_h, x_w, x_c, x_block, y_c, y_block;
    rl_walk walk;
} rl_p_dp4a;

#endif
