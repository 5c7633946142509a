/* Constants as a model stores them, dense and sparse: see stored.h. */
#include "stored.h"

#include <string.h>

#include "../src/onnx.h"
#include "../src/onnx_fields.h"
#include "../src/wire.h"
#include "element.h"

rl_tensor rl_tensor_of_const(rl_rt *rt, const rl_const *c, const rl_span *strings) {
    if (c->dtype == RL_STRING) {
        rl_tensor t = rl_tensor_new(rt, RL_STRING, c->rank, c->dim);
        for (int64_t i = 0; i < rl_numel(&t); i++)
            /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): data in the graph are numbers; strings come with a list of them */
            ((rl_str *)t.mem->p)[i] = rl_intern(rt->ctx, (const char *)strings[i].p, strings[i].n);
        return t;
    }
    uintptr_t align = RL_MAX(rl_dtype_bits(c->dtype) / 8, 1u);
    rl_tensor t = rl_tensor_borrow(rt, c->dtype, c->rank, c->dim, c->data, c->nbyte);
    t.mem->loose = (uintptr_t)c->data % RL_MIN(align, (uintptr_t)8) != 0;
    return t;
}

/* Elements at places counted row-major, [n], or at indices, [n,rank]; else 0. */
static bool put_sparse(const rl_tensor *value, const rl_tensor *index, rl_tensor *y) {
    int64_t n = rl_numel(value), all = rl_numel(y), per = index->rank == 2 ? index->dim[1] : 1;
    const int64_t *at = rl_data(index);
    bool fits = index->dtype == RL_I64 && value->rank == 1 && index->rank >= 1 && index->rank <= 2 && index->dim[0] == n
                && (index->rank == 1 || per == y->rank) && value->dtype == y->dtype;
    for (int64_t i = 0; fits && i < n; i++) {
        int64_t place = index->rank == 1 ? at[i] : 0;
        for (int64_t k = 0; index->rank == 2 && k < per && fits; k++) {
            fits = at[i * per + k] >= 0 && at[i * per + k] < y->dim[k];
            place = fits ? place + at[i * per + k] * y->stride[k] : 0;
        }
        fits = fits && place >= 0 && place < all;
        if (fits) rl_put_element(y, place, value, i);
    }
    return fits;
}

rl_status rl_sparse_fill(rl_rt *rt, rl_graph *g, rl_span bytes, const char *name, rl_tensor *y) {
    const rl_span part[] = {rl_wire_part(bytes, SPARSE_VALUES), rl_wire_part(bytes, SPARSE_INDICES)};
    rl_const c[2];
    const rl_span *strings;
    rl_tensor t[2];
    if (!part[0].p || !part[1].p) return rl_fail(rt->ctx, RL_ELIMIT, "sparse tensor '%.100s': its data is not at hand", name);
    for (int i = 0; i < 2; i++) {
        RL_TRY(rl_onnx_tensor(g, part[i], &c[i], &strings));
        if (strings || (!c[i].data && c[i].nbyte)) return rl_fail(rt->ctx, RL_ELIMIT, "sparse tensor '%.100s': its data is not at hand", name);
    }
    for (int i = 0; i < 2; i++) {
        t[i] = rl_tensor_of_const(rt, &c[i], NULL);
        rl_storage_fetch(t[i].mem);
    }
    memset(y->mem->p, 0, y->mem->nbyte);
    bool fits = put_sparse(&t[0], &t[1], y);
    rl_tensor_drop(&t[0]);
    rl_tensor_drop(&t[1]);
    return fits ? RL_OK : rl_fail(rt->ctx, RL_EMODEL, "sparse tensor '%.100s': its indices do not fit", name);
}
