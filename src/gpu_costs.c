/* Costs of ops on a GPU by a table: see gpu_costs.h. */
#include "gpu_costs.h"

enum { FLOATS = 1, BYTES = 2, NIBBLES = 4, OTHERS = 8 };

static const struct { const char *text; uint32_t block, images, types; } layouts[] = {
#define LAYOUT(name, text, block, images, types) {text, block, images, types},
#define RATE(type, layout, library, own)
#define MACHINE(bytes, launch)
#include "blocks.def"
#undef LAYOUT
#undef RATE
#undef MACHINE
};
static const struct { rl_dtype type; rl_blocks_layout layout; int64_t library, own; } rates[] = {
#define LAYOUT(name, text, block, images, types)
#define RATE(type, layout, library, own) {type, RL_BLOCKS_##layout, library, own},
#define MACHINE(bytes, launch)
#include "blocks.def"
#undef RATE
#undef MACHINE
};
enum {
#define RATE(type, layout, library, own)
#define MACHINE(bytes, launch) BYTES_PER_NS = bytes, LAUNCH = launch
#include "blocks.def"
#undef LAYOUT
#undef RATE
#undef MACHINE
};

const char *rl_blocks_name(rl_blocks_layout l) {
    return layouts[l].text;
}

bool rl_blocks_has(rl_dtype t, rl_blocks_layout l) {
    uint32_t kind = t == RL_F32 || t == RL_F16 || t == RL_BF16 || t == RL_F64 ? FLOATS
                    : t == RL_I8 || t == RL_U8                                ? BYTES
                    : t == RL_I4 || t == RL_U4                                ? NIBBLES
                                                                              : OTHERS;
    return (layouts[l].types & kind) != 0;
}

static int64_t rounded(int64_t n, int64_t to) {
    return (n + to - 1) / to * to;
}

int64_t rl_blocks_bytes(rl_dtype t, const int64_t *dim, rl_blocks_layout l) {
    return dim[0] * rounded(dim[1], layouts[l].block) * dim[2] * dim[3] * rl_dtype_bits(t) / 8;
}

/* Multiplications, channels and images filled up as the layouts want. */
static double products(const rl_blocks_conv *c, rl_blocks_layout in, rl_blocks_layout out) {
    int64_t deep = rounded(c->x[1] / c->group, c->group > 1 ? 1 : layouts[in].block), made = rounded(c->y[1], layouts[out].block);
    const int64_t *each = c->transposed ? c->x : c->y;
    return (double)rounded(c->y[0], layouts[in].images) * (double)each[2] * (double)each[3] * (double)made * (double)deep * (double)c->taps;
}

int64_t rl_blocks_conv_ns(const rl_blocks_conv *c, rl_blocks_layout in, rl_blocks_layout out, bool library) {
    int64_t rate = 0, memory = (rl_blocks_bytes(c->type, c->x, in) + rl_blocks_bytes(c->made, c->y, out)) / BYTES_PER_NS;
    for (size_t i = 0; i < RL_LEN(rates); i++)
        if (rates[i].type == c->type && rates[i].layout == in) rate = library ? rates[i].library : rates[i].own;
    if (!rate || c->group < 1 || c->taps <= 0) return -1;
    return LAUNCH + RL_MAX(memory, (int64_t)(products(c, in, out) / (1000.0 * (double)rate)));
}

int64_t rl_blocks_walk_ns(int64_t nbyte) {
    return LAUNCH + nbyte / BYTES_PER_NS;
}
