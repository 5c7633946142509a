/* Pads, Reshapes and Slices in a row that together leave a part of what there was, as the view that they are: see fuse.h.
 *
 *   x                          [b, h, 2 w - 1]             attention with positions that count from each query: scores by distance
 *   p = Pad(x) by one behind   [b, h, 2 w]
 *   r = Reshape(p)             [b, h 2 w]
 *   q = Pad(r)                 [b, (h + 1) (2 w - 1)]
 *   s = Reshape(q)             [b, h + 1, 2 w - 1]         each row begins one element later than the one before
 *   y = Slice(s)               [b, h, w]                   y[b, i, j] = x[b, i, w - 1 - i + j]: strides of 2 w - 2 and 1
 *
 * Which element of x each one of y is, the kernels say: they run once, on a tensor whose elements are their places. */

#include "fuse.h"
#include "kernels_fast.h"
#include "places.h"

enum { MOST = 16 };

typedef struct rl_shear {
    rl_tensor from, to; /* of the input, and of the output as a view of it; neither has a storage */
} rl_shear;

/* ---- where ---- */

/* All that it reads but the first input is known. */
static bool is_known(const rl_exec *x, const rl_nodeinfo *n) {
    for (uint32_t i = 1; i < n->nin; i++)
        if (rl_has(n->in[i]) && (x->constant[n->in[i].i].kind != RL_TENSOR || rl_val(x->g, n->in[i])->is_input)) return false;
    return n->nin && rl_has(n->in[0]) && n->nout == 1 && rl_has(n->out[0]);
}

/* Whatever its first input is, it only moves that, and pads are zeros. */
static bool only_moves(const rl_exec *x, const rl_step *s) {
    return is_known(x, s->info) && (rl_step_fn(s) != rl_ref_pad || rl_pads_are_zeros(x, s->info));
}

static rl_step *next_of(const rl_exec *x, const rl_readers *of, const rl_step *s) {
    rl_kernel_fn *const fns[] = {rl_ref_pad, rl_ref_reshape, rl_ref_flatten, rl_ref_slice, rl_ref_transpose, rl_ref_squeeze, rl_ref_unsqueeze};
    rl_step *next = NULL;
    for (uint32_t i = 0; i < RL_LEN(fns) && !next; i++) next = rl_only_reader(x, of, s->info->out[0], fns[i]);
    return next && only_moves(x, next) ? next : NULL;
}

/* The steps from a Pad on, each read by the next alone; 0: none of them is a Slice behind a Reshape. */
static uint32_t find_chain(const rl_exec *x, const rl_readers *of, rl_step **s) {
    uint32_t n = 1;
    bool reshapes = false, cuts = false;
    for (rl_step *next; n < MOST && (next = next_of(x, of, s[n - 1])); s[n++] = next) {
        rl_kernel_fn *fn = rl_step_fn(next);
        reshapes = reshapes || fn == rl_ref_reshape || fn == rl_ref_flatten;
        cuts = cuts || (reshapes && fn == rl_ref_slice);
    }
    return cuts ? n : 0;
}

/* ---- joining ---- */

static const rl_kernel kernel = {.fn = rl_fast_shear};

static void join(const rl_exec *x, rl_step *const *s, uint32_t n, const rl_shear *shear) {
    rl_step *last = s[n - 1];
    rl_nodeinfo *info = rl_copy(&x->g->mem, last->info, sizeof *info);
    info->in = s[0]->info->in;
    info->nin = 1;
    last->info = info;
    last->shear = rl_copy(&x->g->mem, shear, sizeof *shear);
    rl_run_by(x, last, &kernel);
    for (uint32_t i = 0; i + 1 < n; i++) s[i]->info = NULL;
}

/* As many of the n steps as make a view. */
static rl_status try_chain(rl_exec *x, rl_step *const *s, uint32_t n, rl_tensor *out) {
    rl_tensor in;
    rl_shear shear;
    if (!rl_places_number(x, s[0]->info->in[0], NULL, &in)) return RL_OK;
    RL_TRY(rl_exec_chain(x, s, n, &in, out));
    shear.from = in;
    shear.from.mem = NULL;
    uint32_t joined = n;
    while (joined && !rl_places_strides(x->rt, &out[joined - 1], &shear.to)) joined--;
    if (joined > 1) join(x, s, joined, &shear);
    for (uint32_t i = 0; i < n; i++) rl_tensor_drop(&out[i]);
    rl_tensor_drop(&in);
    return RL_OK;
}

static rl_status join_all(rl_exec *x, const rl_readers *of) {
    for (uint32_t i = 0; i < x->nstep; i++) {
        rl_step *s[MOST] = {&x->step[i]};
        rl_tensor out[MOST];
        uint32_t n = s[0]->info && rl_step_fn(s[0]) == rl_ref_pad && only_moves(x, s[0]) ? find_chain(x, of, s) : 0;
        if (n) RL_TRY(try_chain(x, s, n, out));
    }
    return RL_OK;
}

rl_status rl_join_shears(rl_exec *x) {
    rl_arena tmp;
    rl_arena_init(&tmp, x->g->ctx);
    rl_status s = join_all(x, rl_find_readers(x, &tmp));
    rl_drop_steps(x);
    rl_arena_free(&tmp);
    return s;
}

rl_status rl_fast_shear(rl_call *c) {
    const rl_shear *shear = c->step->shear;
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_dense(c, 0);
    if (!rl_same_dims(x, &shear->from)) return rl_call_fail(c, RL_EMODEL, "its input is not as the graph says");
    rl_tensor y = shear->to;
    y.offset += x->offset;
    y.mem = x->mem;
    rl_call_share(c, 0, y);
    return RL_OK;
}
