/* How values lie in memory, and moving between layouts: see native.h. */
#include "native.h"

#include <string.h>

#include "device.h"
#include "fast.h"

rl_lay rl_lay_rows(uint32_t rank) {
    rl_lay l = {.rank = (uint8_t)rank};
    for (uint32_t i = 0; i < rank; i++) l.perm[i] = (uint8_t)i;
    return l;
}

rl_lay rl_lay_last(uint32_t rank) {
    rl_lay l = rl_lay_rows(rank);
    for (uint8_t i = 1; i + 1u < rank; i++) l.perm[i] = (uint8_t)(i + 1);
    l.perm[rank - 1] = 1;
    return l;
}

rl_lay rl_lay_blocked(uint32_t rank, uint32_t block) {
    rl_lay l = rl_lay_rows(rank);
    l.block = (uint8_t)block;
    return l;
}

rl_lay rl_lay_nth(uint32_t rank, uint32_t i) {
    static const uint8_t lanes[RL_LAY_BLOCKED] = {16, 8, 4, 32, 4};
    rl_lay l = rl_lay_blocked(rank, lanes[i]);
    if (rank != 4 && (rank != 5 || i > 1)) return (rl_lay){0};
    if (i + 1 == RL_LAY_BLOCKED) l.perm[0] = 1, l.perm[1] = 2, l.perm[2] = 3, l.perm[3] = 0;
    return l;
}

bool rl_lay_same(const rl_lay *a, const rl_lay *b) {
    return a->rank == b->rank && a->block == b->block && rl_same_bytes(a->perm, b->perm, a->rank);
}

bool rl_lay_of(const rl_tensor *t, rl_lay *lay) {
    int64_t perm[RL_RANK];
    uint32_t rank = t->rank;
    if (rank == 0 || rank > RL_LAY_RANK || !rl_stride_order(t, perm)) return false;
    *lay = rl_lay_rows(rank);
    for (uint32_t i = 0; i < rank; i++) lay->perm[i] = (uint8_t)perm[i];
    return true;
}

static void set_strides(rl_tensor *t, const rl_lay *lay) {
    int64_t step = 1;
    for (uint32_t i = lay->rank; i-- > 0; step *= t->dim[lay->perm[i]]) t->stride[lay->perm[i]] = step;
}

rl_lay rl_lay_normal(const rl_lay *lay, const int64_t *dim) {
    rl_tensor t = {.rank = lay->rank};
    rl_lay to = *lay;
    if (lay->block) return to;
    for (uint32_t i = 0; i < t.rank; i++) t.dim[i] = RL_MAX(dim[i], 1);
    set_strides(&t, lay);
    rl_lay_of(&t, &to);
    return to;
}

static size_t write_lay(const rl_lay *lay, char *to) {
    size_t n = 0;
    for (uint32_t i = 0; i < lay->rank; i++) to[n++] = (char)((lay->block && lay->perm[i] == 1 ? 'A' : 'a') + lay->perm[i]);
    if (lay->block >= 10) to[n++] = (char)('0' + lay->block / 10);
    if (lay->block) to[n++] = (char)('0' + lay->block % 10), to[n++] = 'b';
    return n;
}

void rl_lay_put(const rl_lay *lay, rl_text *t) {
    char text[RL_LAY_RANK + 8];
    rl_put_bytes(t, text, write_lay(lay, text));
}

/* aBcd16b */
static bool parse_blocked(const char *s, size_t n, rl_lay *lay) {
    for (uint32_t rank = 4; rank <= 5; rank++)
        for (uint32_t i = 0; i < RL_LAY_BLOCKED; i++) {
            char text[RL_LAY_RANK + 8];
            *lay = rl_lay_nth(rank, i);
            size_t k = write_lay(lay, text);
            if (lay->rank && k == n && rl_same_bytes(text, s, n)) return true;
        }
    return false;
}

bool rl_lay_parse(const char *s, size_t n, rl_lay *lay) {
    uint32_t seen = 0, k = 0;
    while (k < n && s[k] >= 'a' && s[k] < 'a' + RL_LAY_RANK) k++;
    if (k < n) return parse_blocked(s, n, lay);
    if (n == 0 || n > RL_LAY_RANK) return false;
    *lay = rl_lay_rows((uint32_t)n);
    for (uint32_t i = 0; i < n; i++) lay->perm[i] = (uint8_t)(s[i] - 'a'), seen |= 1u << lay->perm[i];
    return seen == (1u << n) - 1;
}

void rl_lay_dims(const rl_lay *lay, const int64_t *dim, int64_t *to) {
    memcpy(to, dim, lay->rank * sizeof *to);
    to[1] = (dim[1] + lay->block - 1) / lay->block;
    to[lay->rank] = lay->block;
}

/* The dims in memory, and the order in which they lie. */
static uint32_t lies(const rl_lay *lay, const int64_t *dim, int64_t *to, int64_t *perm) {
    for (uint32_t i = 0; i < lay->rank; i++) perm[i] = lay->perm[i], to[i] = dim[i];
    perm[lay->rank] = lay->rank;
    if (lay->block) rl_lay_dims(lay, dim, to);
    return lay->rank + (lay->block ? 1u : 0u);
}

rl_tensor rl_lay_new(rl_rt *rt, rl_dtype t, const rl_lay *lay, const int64_t *dim) {
    int64_t d[RL_LAY_RANK + 1], perm[RL_LAY_RANK + 1], in[RL_LAY_RANK + 1], back[RL_LAY_RANK + 1];
    uint32_t rank = lies(lay, dim, d, perm);
    for (uint32_t i = 0; i < rank; i++) in[i] = d[perm[i]], back[perm[i]] = i;
    rl_tensor x = rl_tensor_new(rt, t, rank, in);
    return rl_view_transpose(&x, back);
}

rl_tensor *rl_lay_make(rl_call *c, uint32_t i, rl_dtype t, const rl_lay *lay, const int64_t *dim) {
    int64_t d[RL_LAY_RANK + 1], perm[RL_LAY_RANK + 1];
    uint32_t rank = lies(lay, dim, d, perm);
    return rl_call_make_in(c, i, t, rank, d, perm);
}

bool rl_lay_holds(const rl_lay *lay, const rl_tensor *t, int64_t channels) {
    int64_t step = lay->block, blocks = (channels + lay->block - 1) / lay->block;
    if (t->rank != lay->rank + 1u || t->dim[1] != blocks || t->dim[lay->rank] != lay->block || t->stride[lay->rank] != 1) return false;
    for (uint32_t i = lay->rank; i-- > 0; step *= t->dim[lay->perm[i]])
        if (t->dim[lay->perm[i]] != 1 && t->stride[lay->perm[i]] != step) return false;
    return true;
}

rl_tensor rl_lay_logical(const rl_tensor *t, int64_t channels) {
    rl_tensor x = *t;
    x.rank--;
    x.dim[1] = channels;
    return x;
}

/* Channels from + i * width + j, i < n, j < width, as [N, n, spatial..., width]; width: at most a block, where n is 1; else the block. */
static rl_tensor piece(const rl_tensor *t, uint32_t block, int64_t from, int64_t n, int64_t width) {
    rl_tensor x = *t;
    uint32_t lane = block ? x.rank - 1 : x.rank++;
    x.dim[1] = n;
    x.dim[lane] = width;
    if (block) {
        x.offset += from / block * x.stride[1] + from % block;
        return x;
    }
    x.stride[lane] = t->stride[1];
    x.offset += from * t->stride[1];
    x.stride[1] = width * t->stride[1];
    return x;
}

static void move_piece(rl_rt *rt, const rl_tensor *to, uint32_t tb, int64_t to_at, const rl_tensor *from, uint32_t fb, int64_t from_at, int64_t n,
                       int64_t width) {
    rl_tensor y = piece(to, tb, to_at, n, width), x = piece(from, fb, from_at, n, width);
    if (n > 0 && width > 0) rl_tensor_move(rt, &y, &x);
}

void rl_lay_copy(rl_rt *rt, const rl_tensor *to, uint32_t tb, int64_t to_at, const rl_tensor *from, uint32_t fb, int64_t n) {
    int64_t block = RL_MAX(tb, fb);
    if (!block) block = RL_MAX(n, 1);
    if (to_at % block == 0 && (!tb || !fb || tb == fb)) {
        move_piece(rt, to, tb, to_at, from, fb, 0, n / block, block);
        move_piece(rt, to, tb, to_at + n / block * block, from, fb, n / block * block, n % block ? 1 : 0, n % block);
        return;
    }
    for (int64_t k = 0, some; k < n; k += some) { /* as far as both blocks go */
        some = n - k;
        if (fb) some = RL_MIN(some, fb - k % fb);
        if (tb) some = RL_MIN(some, tb - (to_at + k) % tb);
        move_piece(rt, to, tb, to_at + k, from, fb, k, 1, some);
    }
}

void rl_lay_clear(rl_rt *rt, const rl_tensor *t, int64_t channels) {
    int64_t block = t->dim[t->rank - 1];
    const uint64_t zero = 0;
    if (channels % block == 0) return;
    rl_tensor lanes = piece(t, (uint32_t)block, channels, 1, block - channels % block);
    rl_fill(rt, &lanes, &zero);
}

/* The buffer as a descriptor (include/relayout.h). */
static rl_desc desc_of(const rl_tensor *t, const rl_lay *lay, int64_t channels) {
    rl_desc d = {.dtype = (int32_t)t->dtype, .rank = lay->rank, .offset = t->offset};
    for (uint32_t i = 0; i < lay->rank; i++) {
        d.dim[i] = i == 1 ? channels : t->dim[i];
        d.digit[d.ndigit++] = (rl_digit){i, t->dim[i], t->stride[i]};
        if (i == 1 && lay->block) d.digit[d.ndigit++] = (rl_digit){1, lay->block, t->stride[lay->rank]};
    }
    return d;
}

/* By one kernel of the device, where both are there. */
static bool converts(rl_rt *rt, const rl_tensor *to, const rl_lay *to_lay, const rl_tensor *from, const rl_lay *from_lay, int64_t channels) {
    if (!rt->device) return false;
    rl_desc y = desc_of(to, to_lay, channels), x = desc_of(from, from_lay, channels);
    return rl_device_converts(rt, to, &y, from, &x);
}

void rl_lay_move(rl_rt *rt, const rl_tensor *to, const rl_lay *to_lay, const rl_tensor *from, const rl_lay *from_lay, int64_t channels) {
    bool blocks = to_lay->block || from_lay->block;
    if (blocks && converts(rt, to, to_lay, from, from_lay, channels)) return;
    if (blocks) rl_lay_copy(rt, to, to_lay->block, 0, from, from_lay->block, channels);
    else rl_tensor_move(rt, to, from);
    if (to_lay->block) rl_lay_clear(rt, to, channels);
}
