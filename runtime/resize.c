/* Places and weights of a resized axis: see resize.h. Places are computed in f32, as other runtimes do: which element is nearest
 * to a place between two depends on it. */
#include "resize.h"

#include <math.h>
#include <string.h>

/* The index of attribute `name` among n names, or dflt without the attribute; -1: unknown. */
static int name_of(const rl_call *c, const char *name, const char *const *names, uint32_t n, int dflt) {
    if (!rl_attr_find(c->node, name)) return dflt;
    for (uint32_t i = 0; i < n; i++)
        if (rl_attr_is(c->node, name, names[i])) return (int)i;
    return -1;
}

rl_status rl_resize_read(const rl_call *c, rl_resize *r) {
    static const char *const modes[] = {"nearest", "linear", "cubic", "bilinear"};
    static const char *const nearests[] = {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"};
    static const char *const maps[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                                       "tf_half_pixel_for_nn", "tf_crop_and_resize"};
    bool upsample = strcmp(c->node->type, "Upsample") == 0, old = upsample || c->node->since < 11;
    int mode = name_of(c, "mode", modes, RL_LEN(modes), RL_RESIZE_NEAREST);
    int nearest = name_of(c, "nearest_mode", nearests, RL_LEN(nearests), old ? upsample ? RL_NEAR_FLOOR : RL_NEAR_SIMPLE : RL_NEAR_PREFER_FLOOR);
    int map = name_of(c, "coordinate_transformation_mode", maps, RL_LEN(maps), old ? RL_MAP_ASYMMETRIC : RL_MAP_HALF_PIXEL);
    if (mode < 0 || nearest < 0 || map < 0) return rl_call_fail(c, RL_EMODEL, "an unknown mode");
    *r = (rl_resize){.mode = mode == 3 ? RL_RESIZE_LINEAR : (rl_resize_mode)mode, .nearest = (rl_nearest)nearest, .map = (rl_resize_map)map,
                     .antialias = rl_attr_int(c->node, "antialias", 0) != 0, .exclude_outside = rl_attr_int(c->node, "exclude_outside", 0) != 0,
                     .cubic_a = (double)rl_attr_float(c->node, "cubic_coeff_a", -0.75f),
                     .extrapolated = (double)rl_attr_float(c->node, "extrapolation_value", 0)};
    return RL_OK;
}

/* The place in the input of place x in the output. The output's width may be a fraction more than its elements: scale times in. */
static float place_of(const rl_resize *r, float x, float in, float out, float scale, float from, float to) {
    float width = fabsf(scale * in - out) < 1e-5f * out ? out : scale * in;
    switch (r->map) {
    case RL_MAP_ASYMMETRIC: return x / scale;
    case RL_MAP_TF_HALF_PIXEL_FOR_NN: return (x + 0.5f) / scale;
    case RL_MAP_PYTORCH_HALF_PIXEL: return out > 1 ? (x + 0.5f) / scale - 0.5f : 0;
    case RL_MAP_ALIGN_CORNERS: return width == 1 ? 0 : x * (in - 1) / (width - 1);
    case RL_MAP_TF_CROP_AND_RESIZE:
        return out > 1 ? from * (in - 1) + x * (to - from) * (in - 1) / (out - 1) : 0.5f * (from + to) * (in - 1);
    case RL_MAP_HALF_PIXEL_SYMMETRIC: return in / 2 * (1 - out / width) + (x + 0.5f) / scale - 0.5f;
    default: return (x + 0.5f) / scale - 0.5f;
    }
}

static float nearest_of(rl_nearest n, float x, float scale) {
    switch (n) {
    case RL_NEAR_FLOOR: return floorf(x);
    case RL_NEAR_CEIL: return ceilf(x);
    case RL_NEAR_PREFER_FLOOR: return ceilf(x - 0.5f);
    case RL_NEAR_PREFER_CEIL: return floorf(x + 0.5f);
    default: return scale < 1 ? ceilf(x) : truncf(x);
    }
}

/* The filter at distance x. */
static double filter(const rl_resize *r, double x) {
    double a = r->cubic_a;
    x = fabs(x);
    if (r->mode == RL_RESIZE_LINEAR) return x < 1 ? 1 - x : 0;
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* Weights of taps around x; those beyond the ends count for the element at the end, or not at all. */
static void weigh(const rl_resize *r, const rl_resize_axis *a, double x, double stretch, int64_t *index, double *weight) {
    double base = floor(x), sum = 0;
    int64_t first = 1 - a->ntap / 2;
    for (int64_t t = 0; t < a->ntap; t++) {
        double place = base + (double)(t + first);
        bool inside = place >= 0 && place < (double)a->in;
        index[t] = inside ? (int64_t)place : place < 0 ? 0 : a->in - 1;
        weight[t] = r->exclude_outside && !inside ? 0 : filter(r, (place - x) * stretch);
        sum += weight[t];
    }
    for (int64_t t = 0; (r->exclude_outside || stretch < 1) && sum != 0 && t < a->ntap; t++) weight[t] /= sum;
}

rl_status rl_resize_plan(rl_call *c, const rl_resize *r, int64_t in, int64_t out, float scale, float from, float to, rl_resize_axis *a) {
    bool whole = r->map != RL_MAP_TF_CROP_AND_RESIZE || (from == 0 && to == 1);
    *a = (rl_resize_axis){.in = in, .out = out, .ntap = 1, .same = in == out && scale == 1 && whole};
    if (a->same || out == 0) return RL_OK;
    if (in == 0 || !(scale > 0)) return rl_call_fail(c, RL_EMODEL, "%lld elements resized to %lld", (long long)in, (long long)out);
    double stretch = r->antialias && scale < 1 ? (double)scale : 1, reach = r->mode == RL_RESIZE_CUBIC ? 2 : 1;
    if (r->mode != RL_RESIZE_NEAREST) a->ntap = 2 * (int64_t)RL_MIN(ceil(reach / stretch), 1e9);
    RL_TRY(rl_call_dims(c, 2, (int64_t[]){out, a->ntap}));
    a->index = rl_new(c->tmp, int64_t, out * a->ntap);
    a->weight = rl_new(c->tmp, double, out * a->ntap);
    if (r->map == RL_MAP_TF_CROP_AND_RESIZE) a->outside = rl_new(c->tmp, bool, out);
    for (int64_t i = 0; i < out; i++) {
        float x = place_of(r, (float)i, (float)in, (float)out, scale, from, to);
        if (a->outside) a->outside[i] = !(x >= 0 && x <= (float)(in - 1));
        if (!(fabsf(x) < 1e15f)) return rl_call_fail(c, RL_EMODEL, "place %g of %lld", (double)x, (long long)in);
        if (r->mode != RL_RESIZE_NEAREST) {
            weigh(r, a, (double)x, stretch, a->index + i * a->ntap, a->weight + i * a->ntap);
            continue;
        }
        int64_t near = (int64_t)nearest_of(r->nearest, x, scale);
        a->index[i] = RL_MIN(RL_MAX(near, 0), in - 1);
        a->weight[i] = 1;
    }
    return RL_OK;
}
