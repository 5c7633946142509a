/* onnxruntime's MatMulNBits: weights of 2, 4 or 8 bits, a scale and a zero point for each block of a row. */
#include "lines.h"
#include "ref_matmul.h"

/* How the weights lie: rows of `blocks` blocks of `size` numbers, the first in the lowest bits. */
typedef struct {
    int64_t n, k, bits, size, blocks;
    const uint8_t *packed, *zero_bits; /* zero_bits NULL: zero has the zero points, or (NULL too) they are half of what fits */
    const float *scale, *zero;
    const int64_t *block_of;           /* of each column; NULL: they lie block by block */
    float *out;
} blocks;

/* The i-th of numbers that lie bit by bit, 8 / bits = 1 << shift of them in a byte. */
static inline float bits_at(const uint8_t *p, int64_t i, uint32_t bits, uint32_t shift) {
    uint32_t place = (uint32_t)i & ((1u << shift) - 1);
    return (float)(p[i >> shift] >> place * bits & ((1u << bits) - 1));
}

/* Columns from .. to of row r, which are of one block. */
static void unpack(const blocks *b, int64_t r, int64_t from, int64_t to, int64_t block) {
    uint32_t bits = (uint32_t)b->bits, shift = bits == 8 ? 0 : bits == 4 ? 1 : 2;
    const uint8_t *p = b->packed + r * (b->blocks * b->size * bits / 8);
    float scale = b->scale[r * b->blocks + block], zero = (float)(1u << (bits - 1));
    if (b->zero_bits) zero = bits_at(b->zero_bits + r * ((b->blocks * bits + 7) / 8), block, bits, shift);
    else if (b->zero) zero = b->zero[r * b->blocks + block];
    for (int64_t k = from; k < to; k++) b->out[r * b->k + k] = (bits_at(p, k, bits, shift) - zero) * scale;
}

static void unpack_rows(void *arg, int64_t from, int64_t to) {
    const blocks *b = arg;
    for (int64_t r = from; r < to; r++)
        if (b->block_of)
            for (int64_t k = 0; k < b->k; k++) unpack(b, r, k, k + 1, b->block_of[k]);
        else
            for (int64_t i = 0; i < b->blocks; i++) unpack(b, r, i * b->size, RL_MIN((i + 1) * b->size, b->k), i);
}

static bool has_count(const rl_tensor *t, int64_t n) {
    return !t || rl_numel(t) == n;
}

static rl_status read_blocks(rl_call *c, blocks *b) {
    const rl_nodeinfo *n = c->node;
    *b = (blocks){.n = rl_attr_int(n, "N", 0), .k = rl_attr_int(n, "K", 0), .bits = rl_attr_int(n, "bits", 4), .size = rl_attr_int(n, "block_size", 0)};
    bool even = b->bits == 2 || b->bits == 4 || b->bits == 8;
    if (!even || b->n < 0 || b->k < 0 || b->size < 8 || b->size > 1 << 20 || rl_attr_int(n, "weight_prepacked", 0))
        return rl_call_fail(c, RL_ELIMIT, "weights of %lld bits in blocks of %lld are not done here", (long long)b->bits, (long long)b->size);
    RL_TRY(rl_call_dims(c, 2, (int64_t[]){b->n, b->k}));
    b->blocks = (b->k + b->size - 1) / b->size;
    const rl_tensor *w = rl_call_dense(c, 1), *zero = rl_call_dense(c, 3), *of = rl_call_as(c, 4, RL_I64);
    bool packed = zero && zero->dtype == RL_U8;
    if (w->dtype != RL_U8 || rl_numel(w) != b->n * b->blocks * (b->size * b->bits / 8) || !has_count(rl_call_in(c, 2), b->n * b->blocks) ||
        !has_count(zero, b->n * (packed ? (b->blocks * b->bits + 7) / 8 : b->blocks)) || !has_count(rl_call_in(c, 5), b->n) || (of && rl_numel(of) < b->k))
        return rl_call_fail(c, RL_EMODEL, "weights, scales, zero points or a bias that do not fit N and K");
    b->block_of = of ? rl_data(of) : NULL;
    for (int64_t i = 0; of && i < b->k; i++)
        if (b->block_of[i] < 0 || b->block_of[i] >= b->blocks) return rl_call_fail(c, RL_EMODEL, "a column of block %lld", (long long)b->block_of[i]);
    b->packed = rl_data(w), b->scale = rl_data(rl_call_as(c, 2, RL_F32));
    if (packed) b->zero_bits = rl_data(zero);
    else if (zero) b->zero = rl_data(rl_call_as(c, 3, RL_F32));
    return RL_OK;
}

rl_status rl_ref_matmul_nbits(rl_call *c) {
    static const int64_t turn[] = {1, 0};
    blocks b;
    uint32_t rank;
    int64_t dim[RL_RANK];
    RL_TRY(rl_call_need(c, 3));
    RL_TRY(read_blocks(c, &b));
    const rl_tensor *x = rl_call_as(c, 0, RL_F32), *bias = rl_call_in(c, 5);
    rl_tensor *w = rl_call_temp(c, RL_F32, 2, (int64_t[]){b.n, b.k}), turned = rl_view_transpose(w, turn);
    RL_TRY(rl_matmul_dims(c, x, &turned, &rank, dim));
    b.out = rl_data(w);
    rl_parallel(c->rt, b.n, rl_row_grain(b.k), unpack_rows, &b);
    rl_tensor *y = rl_wide_make(c, 0, rl_call_in(c, 0)->dtype, RL_F32, rank, dim);
    rl_matmul(c, x, &turned, y);
    if (bias) RL_TRY(rl_wide_sum(c, RL_F32, y, y, bias));
    rl_wide_done(c, 0, y);
    return RL_OK;
}
