/* A Resize to the nearest: an image whose elements come several times, one after the other, which exporters write as Tile or Expand.
 *
 *   x[1,8,4,4] -> Reshape [1,8,4,1,4,1] -> Tile [1,1,1,2,1,2] -> Reshape [1,8,8,8] -> y     Resize by 1,1,2,2
 *
 * Of runs as short as one element onnxruntime's Tile takes two to fifteen times as long; where the last dim stays as it is, runs are
 * longer, and Tile is quicker.  Runtimes have Resize fast for up to four dims, so batch and channels of a volume are one. */
#include "movement.h"
#include <string.h>

/* How often the map reads each element along the dims of y, from the innermost out, and those of x without that, or of y with it. */
static bool find_repeats(rl_ctx *ctx, const rl_map *m, bool of_y, rl_shape *x, rl_shape *y, int64_t *times) {
    uint32_t k = m->n;
    rl_dim left = 1; /* of digit k */
    if (of_y) *x = *y;
    else *y = *x;
    for (uint32_t i = y->rank; i-- > 0;) {
        times[i] = 1;
        if (left == 1 && k > 0 && m->digit[k - 1].scale == 0 && !m->digit[k - 1].tab) {
            rl_dim n = m->digit[--k].size;
            if (!rl_dim_known(n) || (of_y && !rl_dim_div(ctx, y->dim[i], n, &x->dim[i]))) return false;
            if (!of_y) y->dim[i] = rl_dim_mul(ctx, x->dim[i], n);
            times[i] = n;
        }
        if (x->dim[i] == 1) continue;
        if (left == 1 && k > 0) left = m->digit[--k].size;
        if (!rl_dim_div(ctx, left, x->dim[i], &left)) return false;
    }
    return k == 0 && left == 1;
}

/* Each dim cut into itself and the times that an element of it comes. */
static bool make_repeats(rl_maps *maps, const rl_shape *x, const int64_t *times, rl_map *out) {
    rl_dim from[2 * RL_FORM_RANK], to[2 * RL_FORM_RANK];
    for (uint32_t i = 0; i < x->rank; i++) {
        from[2 * i] = to[2 * i] = x->dim[i];
        from[2 * i + 1] = 1;
        to[2 * i + 1] = times[i];
    }
    return rl_map_expand(maps, 2 * x->rank, from, 2 * x->rank, to, out);
}

/* The dims of an image, batch and channels of a volume as one; of x without dims of size 1 behind those that it has. Returns how many there were. */
static uint32_t image_of(rl_ctx *ctx, const rl_shape *s, bool of_y, rl_shape *out) {
    *out = *s;
    while (!of_y && out->rank > 0 && out->dim[out->rank - 1] == 1) out->rank--;
    uint32_t rank = out->rank;
    for (; !of_y && out->rank < 3; out->rank++) {
        memmove(out->dim + 1, out->dim, out->rank * sizeof *out->dim);
        out->dim[0] = 1;
    }
    while (out->rank > 4) {
        out->dim[0] = rl_dim_mul(ctx, out->dim[0], out->dim[1]);
        memmove(out->dim + 1, out->dim + 2, (--out->rank - 1) * sizeof *out->dim);
    }
    return rank;
}

/* Of an image with dims as y has them, or x. */
static bool resize_of(const rl_moved *v, const rl_shape *s, bool of_y, rl_form *f) {
    rl_map same;
    rl_shape image;
    uint32_t rank = image_of(v->maps->ctx, s, of_y, &image), last = image.rank - 1;
    if (rank == 0 || (of_y && (rank < 3 || rank > 5))) return false;
    *f = (rl_form){.kind = RL_FORM_RESIZE, .before = image, .after = image};
    if (!find_repeats(v->maps->ctx, &v->map, of_y, &f->before, &f->after, f->a)) return false;
    if (f->a[0] > 1 || (rank < 5 && f->a[1] > 1) || f->a[last] == 1 || f->before.dim[last] == 1) return false;
    return make_repeats(v->maps, &f->before, f->a, &same) && rl_map_equal(v->maps, &same, &v->map) && rl_form_priced(v, f);
}

bool rl_form_resize(const rl_moved *v, rl_form *f) {
    rl_dtype t = rl_val(v->g, v->x)->dtype;
    rl_shape y;
    if (t != RL_F32 && t != RL_I32 && t != RL_I8 && t != RL_U8) return false;
    if (rl_opset_of(v->g, rl_internz(v->g->ctx, "")) < 11) return false;
    if (rl_form_shape_of(v->g, v->y, &y) && resize_of(v, &y, true, f)) return true;
    for (uint32_t i = 0; i < v->nview; i++)
        if (resize_of(v, &v->view[i], false, f)) return true;
    return false;
}

/* Measured in onnxruntime: by up to 4 along two dims a Resize takes 0.2 to 0.7 of Tiles between Transposes, by 8 along two, or along one,
 * 1.2 to 2 times as long as these; along one by up to 8, 0.1 to 0.8 of a Tile or Expand of single elements; by more, or of few elements in a row, many
 * times as long. */
bool rl_form_resize_pays(const rl_form *f, const rl_movecost *old) {
    uint32_t n = 0;
    int64_t most = 1;
    for (uint32_t i = 0; i < f->before.rank; i++) {
        n += f->a[i] > 1;
        most = RL_MAX(most, f->a[i]);
    }
    return n > 1 ? most <= 4 : old->transposes == 0 && most <= 8 && f->before.dim[f->before.rank - 1] >= 4;
}
