/* rt.h: views share storage; every copy is the one that index arithmetic says; parallel loops cover all indices once. */
#include <string.h>

#include "../../runtime/rt.h"
#include "check.h"

/* Element k of a tensor of any size up to 8 bytes. */
static uint64_t element(const rl_tensor *t, const int64_t *index) {
    int64_t at = t->offset;
    uint32_t bits = rl_elem_bits(t->dtype);
    uint64_t x = 0;
    for (uint32_t i = 0; i < t->rank; i++) at += index[i] * t->stride[i];
    if (bits < 8) return (uint64_t)((const uint8_t *)t->mem->p)[at * bits / 8] >> at * bits % 8 & ((1u << bits) - 1);
    memcpy(&x, (const char *)t->mem->p + at * bits / 8, bits / 8);
    return x;
}

static bool same_elements(const rl_tensor *a, const rl_tensor *b) {
    int64_t index[RL_RANK] = {0}, n = rl_numel(a);
    for (int64_t k = 0; k < n; k++) {
        if (element(a, index) != element(b, index)) return false;
        for (uint32_t i = a->rank; i-- > 0 && ++index[i] == a->dim[i];) index[i] = 0;
    }
    return true;
}

/* A random transposed, sliced, expanded view of a random tensor. */
static rl_tensor random_view(rl_rt *rt, rl_dtype t, uint32_t *seed, rl_tensor *base) {
    uint32_t rank = check_random(seed) % 5;
    int64_t dim[5], perm[5];
    for (uint32_t i = 0; i < rank; i++) dim[i] = 1 + check_random(seed) % 5, perm[i] = i;
    *base = rl_tensor_new(rt, t, rank, dim);
    for (size_t i = 0; i < base->mem->nbyte; i++) ((uint8_t *)base->mem->p)[i] = (uint8_t)check_random(seed);
    for (uint32_t i = rank; i > 1; i--) {
        uint32_t k = check_random(seed) % i;
        int64_t p = perm[k];
        perm[k] = perm[i - 1], perm[i - 1] = p;
    }
    rl_tensor v = rl_view_transpose(base, perm);
    for (uint32_t i = 0; i < rank; i++) {
        int64_t start = check_random(seed) % v.dim[i], step = check_random(seed) % 2 ? 1 : -1;
        int64_t most = step > 0 ? v.dim[i] - start : start + 1;
        v = rl_view_slice(&v, i, start, step, 1 + check_random(seed) % most);
    }
    return v;
}

TEST(moves) {
    static const rl_dtype types[] = {RL_U2, RL_I4, RL_U8, RL_F16, RL_F32, RL_F64};
    CHECK_CTX(ctx)
    rl_rt *rt = rl_rt_new(ctx, &rl_backend_cpu, 2);
    uint32_t seed = 1;
    for (int k = 0; k < 3000; k++) {
        rl_tensor base, v = random_view(rt, types[(size_t)k % RL_LEN(types)], &seed, &base), copy = rl_contiguous(rt, &v), again, back;
        CHECK(rl_is_dense(&copy) && same_elements(&v, &copy));
        int64_t flat = rl_numel(&v);
        CHECK(!rl_view_reshape(&v, 1, &flat, &again) || (rl_view_reshape(&again, v.rank, v.dim, &back) && same_elements(&back, &v)));
        rl_tensor_drop(&copy);
        rl_tensor_drop(&base);
    }
    CHECK(rt->live == 0 && !rt->all);
    rl_rt_free(rt);
    rl_ctx_free(ctx);
}

TEST(views) {
    CHECK_CTX(ctx)
    rl_rt *rt = rl_rt_new(ctx, &rl_backend_cpu, 1);
    rl_tensor a = rl_tensor_new(rt, RL_F32, 2, (int64_t[]){3, 4}), t = rl_view_transpose(&a, (int64_t[]){1, 0}), v;
    CHECK(t.dim[0] == 4 && t.stride[0] == 1 && t.stride[1] == 4 && t.mem == a.mem && a.mem->ref == 1);
    CHECK(!rl_view_reshape(&t, 1, (int64_t[]){12}, &v) && rl_view_reshape(&a, 3, (int64_t[]){3, 2, 2}, &v) && v.stride[1] == 2);
    CHECK(rl_view_reshape(&t, 3, (int64_t[]){2, 2, 3}, &v) && v.stride[0] == 2 && v.stride[2] == 4);
    CHECK(rl_view_expand(&a, 3, (int64_t[]){5, 3, 4}, &v) && v.stride[0] == 0 && !rl_view_expand(&a, 2, (int64_t[]){4, 4}, &v));
    rl_tensor item[2] = {rl_tensor_keep(&a), rl_tensor_keep(&a)}, s = rl_sequence_new(rt, RL_F32, item, 2);
    CHECK(a.mem->ref == 3 && rl_item(&s, 1)->mem == a.mem);
    rl_tensor_drop(&s);
    CHECK(a.mem->ref == 1);
    rl_tensor_drop(&a);
    CHECK(!rt->all);
    rl_rt_free(rt);
    rl_ctx_free(ctx);
}

static void count(void *arg, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i++) ((uint8_t *)arg)[i]++;
}

TEST(parallel) {
    uint8_t hit[1000];
    for (uint32_t n = 1; n <= 4; n++) {
        rl_pool *p = rl_pool_new(n);
        for (int64_t k = 0; k < 300; k++) {
            memset(hit, 0, sizeof hit);
            rl_pool_run(p, k, 1 + k % 7, count, hit);
            for (int64_t i = 0; i < 1000; i++) CHECK(hit[i] == (i < k));
        }
        rl_pool_free(p);
    }
}

int main(void) {
    RUN(moves);
    RUN(views);
    RUN(parallel);
    return check_done();
}
