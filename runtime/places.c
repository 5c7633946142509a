/* Tensors whose elements are places: see places.h. */
#include "places.h"

enum { MOST_ELEMENTS = 1 << 22 };

bool rl_places_number(rl_exec *x, rl_value v, const int64_t *perm, rl_tensor *t) {
    const rl_valinfo *info = rl_val(x->g, v);
    int64_t dim[RL_RANK] = {0}, back[RL_RANK], n = 1;
    if (info->rank == RL_NORANK || info->rank > RL_RANK || info->dtype != RL_F32) return false;
    for (uint32_t i = 0; i < info->rank; i++) {
        int64_t d = perm ? perm[i] : i;
        if (!rl_dim_known(info->dim[d]) || info->dim[d] < 1 || info->dim[d] > MOST_ELEMENTS / n) return false;
        n *= dim[i] = info->dim[d];
        back[d] = i;
    }
    *t = rl_tensor_new(x->rt, RL_F32, info->rank, dim);
    uint32_t *bits = rl_data(t);
    for (int64_t i = 0; i < n; i++) bits[i] = RL_FIRST_PLACE + (uint32_t)i;
    *t = rl_view_transpose(t, back);
    return true;
}

bool rl_places_strides(rl_rt *rt, const rl_tensor *t, rl_tensor *view) {
    rl_tensor y = rl_contiguous(rt, t);
    int64_t n = rl_numel(&y), index[RL_RANK] = {0}, want;
    *view = (rl_tensor){.kind = RL_TENSOR, .dtype = y.dtype, .rank = y.rank};
    memcpy(view->dim, y.dim, y.rank * sizeof *y.dim);
    bool fits = n > 0;
    want = view->offset = fits ? rl_place_at(&y, 0) : 0;
    for (uint32_t i = 0; fits && i < y.rank; i++) view->stride[i] = y.dim[i] > 1 ? rl_place_at(&y, y.stride[i]) - view->offset : 0;
    for (int64_t k = 0; fits && k < n; k++) {
        fits = want >= 0 && rl_place_at(&y, k) == want;
        for (uint32_t i = y.rank; i-- > 0;) {
            want += view->stride[i];
            if (++index[i] < y.dim[i]) break;
            want -= view->stride[i] * y.dim[i];
            index[i] = 0;
        }
    }
    rl_tensor_drop(&y);
    return fits;
}
