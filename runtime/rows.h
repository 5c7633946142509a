/* Loops over rows of floats, compiled for the instruction sets that matter and chosen when a run starts.
 *
 *   const rl_rows *r = rl_rows_best();
 *   r->op[RL_ROW_ADD](y, x, b, 1, n, 0, 0);          y[i] = x[i] + b[i]; y may be x
 *   r->op[RL_ROW_CLIP](y, x, NULL, 0, n, 0, 6);      y[i] = x[i] clipped to 0 .. 6 */
#ifndef RL_ROWS_H
#define RL_ROWS_H
#include <stdbool.h>
#include <stdint.h>

/* p and q are an op's two numbers. */
typedef enum {
    RL_ROW_COPY,
    RL_ROW_RELU,         /* x < 0: 0 */
    RL_ROW_LEAKY_RELU,   /* x < 0: p x */
    RL_ROW_CLIP,         /* p .. q */
    RL_ROW_SIGMOID,
    RL_ROW_SILU,         /* x sigmoid(p x) */
    RL_ROW_HARD_SIGMOID, /* p x + q clipped to 0 .. 1 */
    RL_ROW_HARD_SWISH,   /* x times that of 1/6 and 1/2 */
    RL_ROW_TANH,
    RL_ROW_GELU,         /* with erf */
    RL_ROW_GELU_TANH,
    RL_ROW_ERF,
    RL_ROW_EXP,
    RL_ROW_ELU,          /* x < 0: p (exp(x) - 1) */
    RL_ROW_CELU,         /* x < 0: p (exp(x / p) - 1) */
    RL_ROW_SELU,         /* q times an ELU */
    RL_ROW_THRESHOLD,    /* not x > p: 0 */
    RL_ROW_SOFTSIGN,
    RL_ROW_MISH,
    RL_ROW_SIN,
    RL_ROW_COS,
    RL_ROW_ASIN,
    RL_ROW_ACOS,
    RL_ROW_ATAN,
    RL_ROW_SQRT,
    RL_ROW_ABS,
    RL_ROW_NEG,
    RL_ROW_SIGN,
    RL_ROW_RECIPROCAL,
    RL_ROW_SQUARE,
    RL_ROW_CUBE,
    RL_ROW_LINEAR,       /* p x + q */
    RL_ROW_ROUND,        /* x / p to the nearest whole number, of two to the even one */
    RL_ROW_FLOOR,
    RL_ROW_CEIL,
    RL_ROW_F16,          /* to the nearest number that a float16 has */
    RL_ROW_BF16,
    RL_ROW_ADD, RL_ROW_SUB, RL_ROW_MUL, RL_ROW_DIV, RL_ROW_MAX, RL_ROW_MIN,
    RL_ROW_RSUB, RL_ROW_RDIV, /* b - x, b / x */
    RL_ROW_PRELU,             /* x < 0: b x */
    RL_NROW
} rl_row_op;
static inline int rl_row_is_binary(rl_row_op op) { return op >= RL_ROW_ADD; }

typedef enum { RL_ROW_U8, RL_ROW_I8, RL_ROW_I32 } rl_row_int; /* what is dequantized */

typedef enum { RL_REDUCE_SUM, RL_REDUCE_MAX, RL_REDUCE_MIN, RL_NREDUCE } rl_row_reduce;

/* step: of b, 0 or 1. */
typedef void rl_row_loop(float *y, const float *x, const float *b, int64_t step, int64_t n, float p, float q);

typedef struct {
    rl_row_loop *op[RL_NROW];
    /* y = softmax(x), or its logarithm, of some rows, one after the other; y may be x. For rows that stay in the cache together. */
    void (*softmax)(float *y, const float *x, int64_t rows, int64_t n), (*log_softmax)(float *y, const float *x, int64_t rows, int64_t n);
    /* y = (x - mean) / sqrt(variance + eps) * scale + shift; shift may be NULL. step: of scale and shift, 0 or 1 */
    void (*layer_norm)(float *y, const float *x, const float *scale, const float *shift, int64_t step, int64_t n, float eps);
    float (*sum)(const float *x, int64_t n);
    float (*squares)(const float *x, int64_t n, float mean); /* the sum of (x - mean)^2 */
    float (*max)(const float *x, int64_t n), (*min)(const float *x, int64_t n); /* NaN where one is */
    /* From what is below 0 to what is above it; either is NaN where a number is none */
    void (*range)(const float *x, int64_t n, float *least, float *most);
    /* y[r] = that of row r; y[i] = y[i] and x[i] of each row, `step` apart, from the first on */
    struct {
        void (*rows)(float *y, const float *x, int64_t rows, int64_t n);
        void (*down)(float *y, const float *x, int64_t step, int64_t rows, int64_t n);
    } reduce[RL_NREDUCE];
    /* The largest, likewise; what is no number is passed over where y holds one */
    void (*most_down)(float *y, const float *x, int64_t step, int64_t rows, int64_t n);
    /* The first place, or the last, of a number that is there; any NaN is found as NaN */
    int64_t (*find)(const float *x, int64_t n, float number, bool last);
    /* y[m, w] = start + a[m, k] * b[k, w]; w is 16, 32 .. width; rows of y, a, b and start are ym, am, bm and sm apart (panels.h).
     * start may be y, or NULL: 0 */
    void (*tile)(float *y, int64_t ym, const float *a, int64_t am, const float *b, int64_t bm, int64_t w, int64_t m,
                 int64_t k, const float *start, int64_t sm);
    int64_t width;
    /* y[2 i] = a[i], y[2 i + 1] = b[i] */
    void (*interleave)(float *y, const float *a, const float *b, int64_t n);
    /* y = x / scale to the nearest, + zero, cut to the bytes' range; y = (x - zero) * scale. step: of scale and zero, 0 or 1 */
    void (*quantize)(void *y, const float *x, const float *scale, const float *zero, int64_t step, int64_t n, bool is_signed);
    void (*dequantize)(float *y, const void *x, const float *scale, const float *zero, int64_t step, int64_t n, rl_row_int of);
    /* y = c ? a : b; c: bools. step: of each in this order, 0 or 1 */
    void (*choose)(float *y, const uint8_t *c, const float *a, const float *b, const int64_t *step, int64_t n);
    /* An LSTM's cell: the sums of the gates i, o, f, c, of n each; c and h become the new ones */
    void (*lstm)(const float *gate, float *h, float *c, int64_t n);
    /* ---- of attention (attention.h): blocks of m rows, ym apart ---- */
    /* y = e^(scale (y - the row's largest)), scale > 0; by: 1 / the row's sum. n: a multiple of 16. What is below 2^-125 becomes that */
    void (*weights)(float *y, int64_t ym, int64_t m, int64_t n, float scale, float *by);
    /* y = scale y + b */
    void (*add_rows)(float *y, int64_t ym, const float *b, int64_t bm, int64_t m, int64_t n, float scale);
    /* Row r of y = that of x, times by[r] */
    void (*scale_rows)(float *y, int64_t ym, const float *x, int64_t xm, const float *by, int64_t m, int64_t n);
    /* y stays where c (bools, rows cm apart) is `keep`; else it becomes `other` */
    void (*choose_rows)(float *y, int64_t ym, const uint8_t *c, int64_t cm, int64_t m, int64_t n, int keep,
                        float other);
    /* m rows of n, xm apart at x, to their places: row r to place at[r] (NULL: r), those ym apart */
    void (*copy_rows)(float *y, int64_t ym, const uint32_t *at, const float *x, int64_t xm, int64_t m, int64_t n);
} rl_rows;

const rl_rows *rl_rows_best(void);

#endif
