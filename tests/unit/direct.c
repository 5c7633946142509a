/* Direct convolutions against plain loops, for every set of loops that this processor has: direct [COUNT] random ones.
 *
 * Sizes are small and odd, pixels have gaps between them, and what is read or written ends where a page begins that cannot be touched:
 * an element too far is a crash.  Gaps of the output must stay as they are. */
#include "../../runtime/winograd.h"

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "check.h"

enum { MOST = 64 << 20, PAGE = 64 << 10, PIECES = 3, TENSORS = 3 + PIECES };
static float *room[TENSORS], want[MOST / 4]; /* add, operand, y, pieces of x: MOST bytes each, then the page */
static const rl_isa isas[] = {RL_ISA_PLAIN, RL_ISA_AVX2, RL_ISA_AVX512};
static uint32_t seed = 1;

static uint32_t next(uint32_t below) {
    return check_random(&seed) % below;
}

static uint32_t odd; /* one of so many numbers is not finite; 0: none is */

static float number(void) {
    if (odd && next(odd) == 0) return next(2) ? INFINITY : NAN;
    return (float)next(2000) / 1000 - 1;
}

static bool close_to(float a, float b) {
    return a == b || (isnan(a) && isnan(b)) || fabsf(a - b) <= 1e-4f * (1 + fabsf(b));
}

/* Room for a view of these dims, channels side by side, with gaps; at the end. The floats that it spans. */
static int64_t lay(rl_direct_view *v, int tensor, const int64_t *dim, int64_t channels) {
    int64_t step = channels + next(3) * next(20), last = 0;
    for (int i = RL_AXIS_W; i >= RL_AXIS_N; i--) {
        v->stride[i] = step;
        last += (dim[i] - 1) * step;
        step = step * dim[i] + (next(4) ? 0 : next(9));
    }
    v->p = room[tensor] + MOST / 4 - (last + channels);
    for (int64_t i = 0; i < last + channels; i++) room[tensor][MOST / 4 - last - channels + i] = number();
    return last + channels;
}

static int64_t place(const int64_t *stride, const int64_t *at) {
    return at[0] * stride[0] + at[1] * stride[1] + at[2] * stride[2] + at[3] * stride[3];
}

static double sum_at(const rl_direct *d, const float *w, const int64_t *o, int64_t c) {
    double sum = 0;
    int64_t taps = d->kernel[1] * d->kernel[2] * d->kernel[3], depth = d->depthwise ? 1 : d->depth;
    for (int64_t t = 0; t < taps; t++) {
        int64_t at[4] = {o[0]}, left = t;
        bool inside = true;
        for (int i = 3; i > 0; left /= d->kernel[i], i--) {
            at[i] = o[i] * d->stride[i] - d->before[i] + left % d->kernel[i] * d->dilation[i];
            inside = inside && at[i] >= 0 && at[i] < d->in[i];
        }
        for (int64_t k = 0; inside && k < depth; k++) {
            const rl_direct_input *in = d->x;
            int64_t channel = d->depthwise ? c : k;
            for (; channel >= in->channels; channel -= in++->channels) continue;
            sum += (double)in->view.p[place(in->view.stride, at) + channel * in->step] * w[(c * depth + k) * taps + t];
        }
    }
    return sum;
}

static float expected(const rl_direct *d, const float *w, const float *bias, const int64_t *o, int64_t c) {
    double v = sum_at(d, w, o, c) + bias[c] + (d->add.p ? d->add.p[place(d->add.stride, o) + c] : 0);
    v = v < d->low ? d->low : v > d->high ? d->high : v;
    for (uint32_t i = 0; i < d->npost; i++)
        v = d->post[i].op == RL_ROW_MUL ? v * d->operand[i].p[place(d->operand[i].stride, o) + c] : fabs(v);
    return (float)v;
}

static void choose(rl_direct *d) {
    *d = (rl_direct){.depthwise = next(2),
                     .depth = 1 + next(24),
                     .channels = 1 + next(next(3) ? 40 : 140),
                     .low = -INFINITY,
                     .high = INFINITY};
    d->in[0] = d->out[0] = 1 + next(2);
    d->kernel[0] = d->stride[0] = d->dilation[0] = 1;
    bool one = next(3) == 0, three = !one && next(3) == 0;
    for (int i = 1; i < 4; i++) {
        d->in[i] = i == 1 ? 1 + next(3) * next(2) : 1 + next(next(8) ? 12 : 40);
        d->kernel[i] = one ? 1 : 1 + next(i == 1 ? 2 : 5);
        d->stride[i] = 1 + next(3) / 2, d->dilation[i] = 1 + next(3) / 2, d->before[i] = one ? 0 : next(4);
        if (three) d->kernel[i] = i == 1 ? 1 : 3, d->stride[i] = d->dilation[i] = 1, d->before[i] = i == 1 ? 0 : next(4);
        int64_t reach = (d->kernel[i] - 1) * d->dilation[i] + 1, room_for = d->in[i] + d->before[i] + next(3) - reach;
        d->out[i] = room_for < 0 ? 1 : room_for / d->stride[i] + 1; /* also where the window lies in the pads alone */
    }
    if (three) d->out[1] = d->in[1];
    d->winograd = rl_winograd_can(d) && next(3);
    d->low = next(3) ? -INFINITY : -0.25f, d->high = next(3) ? INFINITY : 0.5f;
}

/* Of an image with channels apart. */
static void as_planes(const rl_direct *d, rl_direct_input *in, int tensor) {
    int64_t step = 1;
    for (int i = 3; i > 0; i--) in->view.stride[i] = step, step *= d->in[i];
    in->step = step;
    in->view.stride[0] = step * in->channels;
    int64_t n = d->in[0] * in->view.stride[0];
    in->view.p = room[tensor] + MOST / 4 - n;
    for (int64_t i = 0; i < n; i++) room[tensor][MOST / 4 - n + i] = number();
}

/* The input's channels in one piece or some. */
static void choose_inputs(rl_direct *d, rl_direct_input *in) {
    int64_t left = d->depthwise ? d->channels : d->depth;
    uint32_t most = next(2) ? 1 : PIECES;
    for (d->nx = 0, d->x = in; left; d->nx++, left -= in++->channels) {
        *in = (rl_direct_input){.channels = d->nx + 1 == most ? left : 1 + next((uint32_t)left), .step = 1};
        lay(&in->view, (int)(3 + d->nx), d->in, in->channels);
        if (!d->depthwise && next(4) == 0) as_planes(d, in, (int)(3 + d->nx));
    }
}

/* Runs of the output's channels, one in front of the other, each with its gaps. The floats that they span. */
static int64_t choose_runs(rl_arena *tmp, rl_direct *d, rl_direct_view *y, rl_direct_runs *runs) {
    uint32_t n = d->depthwise || next(2) ? 1 : 1 + next(6);
    while (d->channels % n) n--;
    int64_t span = lay(y, 2, d->out, d->channels / n), *at = rl_new(tmp, int64_t, n);
    for (uint32_t i = 0; i < n; i++) at[i] = (n - 1 - i) * span;
    for (int64_t i = span; i < n * span; i++) room[2][MOST / 4 - 1 - i] = number();
    *runs = (rl_direct_runs){d->channels / n, at};
    if (n > 1 || next(2)) d->runs = d->depthwise ? NULL : runs;
    return n * span;
}

static void check_one(rl_rt *rt, rl_isa isa) {
    rl_direct d;
    rl_direct_runs runs;
    rl_direct_view y;
    rl_direct_input in[PIECES];
    rl_arena tmp;
    rl_arena_init(&tmp, rt->ctx);
    choose(&d);
    d.isa = isa;
    odd = next(4) ? 0 : 500;
    choose_inputs(&d, in);
    odd = 0;
    if (next(2)) lay(&d.add, 0, d.out, d.channels);
    if (next(2)) d.post[d.npost++] = (rl_post){.op = RL_ROW_ABS};
    if (next(2)) lay(&d.operand[d.npost], 1, d.out, d.channels), d.post[d.npost++] = (rl_post){.op = RL_ROW_MUL};
    int64_t span = choose_runs(&tmp, &d, &y, &runs), taps = d.kernel[1] * d.kernel[2] * d.kernel[3],
            nw = d.channels * taps * (d.depthwise ? 1 : d.depth);
    float *w = rl_new(&tmp, float, nw), *bias = rl_new(&tmp, float, d.channels),
          *packed = rl_new(&tmp, float, rl_direct_bias(&d) + rl_direct_weights(&d));
    for (int64_t i = 0; i < nw; i++) w[i] = number() + 1.0f / 4096; /* none is 0: infinity times that */
    for (int64_t i = 0; i < d.channels; i++) bias[i] = number();
    d.y = room[2] + MOST / 4 - span;
    memcpy(d.y_stride, y.stride, sizeof y.stride);
    memcpy(want, d.y, (size_t)span * sizeof *want);
    for (int64_t i = 0; i < d.out[0] * d.out[1] * d.out[2] * d.out[3]; i++) {
        int64_t o[4], left = i;
        for (int k = 3; k >= 0; left /= d.out[k], k--) o[k] = left % d.out[k];
        for (int64_t c = 0; c < d.channels; c++) want[place(y.stride, o) + runs.at[c / runs.n] + c % runs.n] = expected(&d, w, bias, o, c);
    }
    rl_direct_pack(&d, w, bias, packed);
    rl_direct_run(rt, &tmp, &d);
    bool same = true;
    for (int64_t i = 0; i < span; i++) same = same && close_to(d.y[i], want[i]);
    CHECK(same);
    rl_arena_free(&tmp);
}

static int count;

TEST(as_plain_loops) {
    CHECK_CTX(ctx);
    for (uint32_t threads = 1; threads < 3; threads++) {
        rl_rt *rt = rl_rt_new(ctx, &rl_backend_cpu, threads);
        for (size_t k = 0; k < RL_LEN(isas); k++) {
            if (rl_direct_loops_of(isas[k])->isa != isas[k]) continue;
            for (int i = 0; i < count; i++) check_one(rt, isas[k]);
        }
        rl_rt_free(rt);
    }
    rl_ctx_free(ctx);
}

int main(int argc, char **argv) {
    count = argc > 1 ? atoi(argv[1]) : 400;
    for (int i = 0; i < TENSORS; i++) {
        char *p = mmap(NULL, MOST + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED || mprotect(p + MOST, PAGE, PROT_NONE) != 0) return 1;
        room[i] = (float *)(void *)p;
    }
    RUN(as_plain_loops);
    return check_done();
}
