/* Sliding windows: see window.h. */
#include "window.h"

rl_autopad rl_window_padding(const rl_call *c) {
    return rl_attr_is(c->node, "auto_pad", "SAME_UPPER")   ? RL_AUTOPAD_SAME_UPPER
           : rl_attr_is(c->node, "auto_pad", "SAME_LOWER") ? RL_AUTOPAD_SAME_LOWER
           : rl_attr_is(c->node, "auto_pad", "VALID")      ? RL_AUTOPAD_VALID
                                                           : RL_AUTOPAD_NOTSET;
}

/* Attribute `name`, n numbers of at least `least`; all `dflt` without. */
static rl_status read_ints(rl_call *c, const char *name, uint32_t n, int64_t least, int64_t dflt, int64_t *to) {
    const int64_t *x;
    uint32_t have;
    RL_TRY(rl_call_ints(c, name, RL_NONE, &x, &have));
    if (x && have != n) return rl_call_fail(c, RL_EMODEL, "%s has %u numbers, wants %u", name, have, n);
    for (uint32_t i = 0; i < n; i++) {
        to[i] = x ? x[i] : dflt;
        if (to[i] < least || to[i] > INT32_MAX) return rl_call_fail(c, RL_EMODEL, "%s has %lld", name, (long long)to[i]);
    }
    return RL_OK;
}

rl_status rl_window_attrs(rl_call *c, uint32_t r, const int64_t *kernel, rl_window *w) {
    int64_t pad[2 * RL_RANK] = {0};
    *w = (rl_window){.r = r};
    if (rl_attr_find(c->node, "auto_pad") && rl_window_padding(c) == RL_AUTOPAD_NOTSET && !rl_attr_is(c->node, "auto_pad", "NOTSET"))
        return rl_call_fail(c, RL_EMODEL, "an unknown auto_pad");
    bool given = rl_attr_find(c->node, "kernel_shape") != NULL;
    if (!given && !kernel) return rl_call_fail(c, RL_EMODEL, "attribute 'kernel_shape' is missing");
    RL_TRY(read_ints(c, "kernel_shape", r, 0, 0, w->kernel));
    for (uint32_t i = 0; i < r; i++) {
        if (!given) w->kernel[i] = kernel[i];
        if (w->kernel[i] > INT32_MAX) return rl_call_fail(c, RL_ELIMIT, "a kernel of %lld", (long long)w->kernel[i]);
        if (kernel && w->kernel[i] != kernel[i])
            return rl_call_fail(c, RL_EMODEL, "kernel_shape has %lld, the weights %lld", (long long)w->kernel[i], (long long)kernel[i]);
    }
    RL_TRY(read_ints(c, "strides", r, 1, 1, w->stride));
    RL_TRY(read_ints(c, "dilations", r, 1, 1, w->dilation));
    if (rl_window_padding(c) == RL_AUTOPAD_NOTSET) RL_TRY(read_ints(c, "pads", 2 * r, INT32_MIN, 0, pad));
    for (uint32_t i = 0; i < r; i++) w->before[i] = pad[i], w->after[i] = pad[r + i];
    return RL_OK;
}

/* The output's size of dim i, and its pads where auto_pad says. */
static int64_t slide(rl_window *w, uint32_t i, rl_autopad padding, bool ceils) {
    int64_t s = w->stride[i], reach = rl_window_reach(w, i);
    if (padding == RL_AUTOPAD_SAME_UPPER || padding == RL_AUTOPAD_SAME_LOWER) {
        int64_t out = (w->in[i] + s - 1) / s, pad = RL_MAX((out - 1) * s + reach - w->in[i], 0);
        w->before[i] = padding == RL_AUTOPAD_SAME_UPPER ? pad / 2 : pad - pad / 2;
        w->after[i] = pad - w->before[i];
        return out;
    }
    int64_t room = w->in[i] + w->before[i] + w->after[i] - reach;
    int64_t out = (ceils ? -rl_floor_div(-room, s) : rl_floor_div(room, s)) + 1;
    if (ceils && out > 1 && (out - 1) * s >= w->in[i] + w->before[i]) out--; /* the last window must begin before the end padding */
    return out;
}

rl_status rl_window_read(rl_call *c, const rl_tensor *x, const int64_t *kernel, rl_window *w) {
    if (x->rank < 3) return rl_call_fail(c, RL_EMODEL, "input of rank %u, wants 3 or more", x->rank);
    RL_TRY(rl_window_attrs(c, x->rank - 2, kernel, w));
    bool ceils = rl_attr_int(c->node, "ceil_mode", 0) != 0;
    for (uint32_t i = 0; i < w->r; i++) {
        w->in[i] = x->dim[2 + i];
        w->out[i] = slide(w, i, rl_window_padding(c), ceils);
        if (w->out[i] < 0) return rl_call_fail(c, RL_EMODEL, "the kernel does not fit spatial dim %u, of %lld", i, (long long)w->in[i]);
    }
    RL_TRY(rl_call_dims(c, w->r, w->kernel));
    return rl_call_dims(c, w->r, w->out);
}

rl_taps rl_taps_of(rl_arena *mem, const rl_window *w) {
    uint32_t r = w->r, last = r - 1;
    rl_taps t = {.n = rl_product(w->kernel, r), .step = w->stride[last]};
    t.index = rl_new(mem, int64_t, t.n * r);
    t.from = rl_new(mem, int64_t, t.n);
    t.to = rl_new(mem, int64_t, t.n);
    for (int64_t k = 0; k < t.n; k++) {
        int64_t left = k, s = w->stride[last];
        for (uint32_t i = r; i-- > 0; left /= w->kernel[i]) t.index[k * r + i] = left % w->kernel[i];
        int64_t shift = w->before[last] - t.index[k * r + last] * w->dilation[last]; /* output j reads j*s - shift */
        t.from[k] = RL_MAX(-rl_floor_div(-shift, s), 0);
        t.to[k] = RL_MIN(rl_floor_div(w->in[last] - 1 + shift, s) + 1, w->out[last]);
    }
    return t;
}
