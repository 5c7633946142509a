/* The inner loops of direct convolutions (direct.h), compiled for the instruction sets that matter and chosen when a run starts.
 *
 * A strip is some pixels of the output whose windows have the same taps in the input.  A pixel is its channels, side by side; pixels are
 * any distance apart, so that what is read or written may be a slice of the channels of a larger tensor.
 *
 *   y[p, c] = bias[c] + add[p, c] + sum over taps t and input channels k of  x[p, t, k] * w[t, k, c]     `dense`, some inputs, one after the other
 *   y[p, c] = bias[c] + add[p, c] + sum over taps t of                       x[p, t, c] * w[t, c]        `depthwise`
 *
 * clipped to low .. high; add: a residual, of any distance between its pixels, or NULL.  A 1 x 1 convolution of a line of 56 pixels, 64
 * channels to 24, the upper half of whose 48 channels it writes:
 *
 *   rl_direct_tap tap = {0, 0};
 *   rl_strip_input in = {.x = x, .step = 64, .channel_step = 1, .depth = 64, .tap = &tap};
 *   rl_direct_strip s = {.y = y + 24, .y_step = 48, .in = &in, .nin = 1, .ntap = 1, .w = panel, .bias = bias,
 *                 .pixels = 56, .channels = 24, .low = -INFINITY, .high = INFINITY};
 *   rl_direct_loops_of(RL_ISA_BEST)->dense(&s); */
#ifndef RL_DIRECT_LOOPS_H
#define RL_DIRECT_LOOPS_H
#include "../src/move.h"

typedef struct {
    int64_t x, w;
} rl_direct_tap; /* where it reads, from where the pixel's window begins; where its weights begin */

/* Channels that do not all lie side by side, but `n` at a time: c is  at[c / n] + c % n  floats from where its pixel begins. */
typedef struct {
    int64_t n;
    const int64_t *at;
} rl_direct_runs;

typedef struct {
    const float *x;
    int64_t start;        /* where the first pixel's window begins; before x, where that begins in the pads */
    int64_t step;         /* from a pixel to the next */
    int64_t channel_step; /* dense only: 1 where channels lie side by side */
    int64_t depth;        /* channels, dense only */
    const rl_direct_tap *tap;
} rl_strip_input;

typedef struct {
    float *y;
    const float *w, *bias, *add;
    const rl_strip_input *in; /* depthwise: one */
    int64_t nin, ntap;        /* ntap: of each */
    int64_t y_step, add_step; /* from a pixel to the next */
    int64_t ahead;            /* depthwise: from a window's first pixel to what is to be in the cache soon; 0: nothing */
    int64_t pixels, channels; /* to be made; dense: at most `width` channels */
    float low, high;
    const rl_direct_runs *runs; /* dense: of the output's channels, of which the strip's first one is number `first`; NULL: they are side by side */
    int64_t first;
} rl_direct_strip;

/* Sums of a tile of 2 x 2 outputs before the last step of winograd.h: place i of 16 at  m + i * step. */
typedef struct {
    const float *m, *bias, *add[4]; /* add: NULL: none */
    float *y[4];                    /* NULL: outside */
    int64_t step, channels;
    float low, high;
} rl_winograd_tile;

typedef struct {
    void (*dense)(const rl_direct_strip *s);
    void (*depthwise)(const rl_direct_strip *s);
    /* The 4 x 4 pixels at x into 16 places, `step` apart; whole vectors are written. */
    void (*spread)(const float *const *x, int64_t channels, float *v, int64_t step);
    bool (*gather)(const rl_winograd_tile *t); /* false: some sum is not finite */
    /* Channels first .. first + channels - 1 of some pixels, `step` apart at x and `y_step` apart from y on, to where they belong. */
    void (*scatter)(const rl_direct_runs *runs, const float *x, int64_t step, float *y, int64_t y_step, int64_t pixels, int64_t first, int64_t channels);
    int64_t
        width; /* of a panel of dense weights: w[t, k, c] is at  tap.w + k * width + c;  it and the bias have zeros past the channels */
    int64_t together; /* pixels whose sums are in registers at once */
    rl_isa isa;
} rl_direct_loops;

const rl_direct_loops *rl_direct_loops_of(rl_isa want);

#endif
