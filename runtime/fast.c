/* Runs with fast kernels: how they start and end, and the layouts that they give their outputs; see fast.h. */
#include "fast.h"

#include <string.h>
#include <sys/mman.h>

/* ---- start and end ---- */

rl_rt *rl_rt_new_for(rl_ctx *ctx, bool fast, uint32_t nthread) {
    rl_rt *rt = rl_rt_new(ctx, &rl_backend_cpu, nthread);
    if (!fast) return rt;
    rl_fast *f = rl_host_alloc(&ctx->host, sizeof *f);
    if (!f) { /* not as if there were no oneDNN: a plan would be another one */
        rl_rt_free(rt);
        rl_no_memory(ctx);
    }
    if (!rl_dnnl_load(&f->d) || f->d.engine_create(&f->engine, RL_DNNL_CPU, 0) != 0 ||
        f->d.stream_create(&f->stream, f->engine, RL_DNNL_IN_ORDER) != 0) {
        if (f->engine) f->d.engine_destroy(f->engine);
        rl_host_free(&ctx->host, f, sizeof *f);
        return rt;
    }
    rt->on = &rl_backend_fast;
    rt->fast = f;
    if (rt->pool && f->d.gomp_parallel) rl_pool_borrow(rt->pool, f->d.gomp_parallel);
    return rt;
}

void rl_fast_begin(rl_rt *rt) {
    if (rt->fast && rt->fast->d.omp_set_num_threads) rt->fast->d.omp_set_num_threads((int)rl_pool_size(rt->pool));
}

enum { SMALL = 32768, MOST = 1 << 26 }; /* bytes of a block that is worth keeping; of all that are kept */

void *rl_fast_spare(rl_fast *f, size_t nbyte) {
    for (uint32_t i = 0; nbyte >= SMALL && i < RL_SPARES; i++) {
        if (f->spare[i].nbyte != nbyte) continue;
        f->spare[i].nbyte = 0;
        return f->spare[i].p;
    }
    return NULL;
}

bool rl_fast_keep(rl_fast *f, void *p, size_t nbyte) {
    size_t kept = nbyte;
    for (uint32_t i = 0; i < RL_SPARES; i++) kept += f->spare[i].nbyte;
    for (uint32_t i = 0; nbyte >= SMALL && kept <= MOST && i < RL_SPARES; i++) {
        if (f->spare[i].nbyte) continue;
        f->spare[i].p = p, f->spare[i].nbyte = nbyte;
        return true;
    }
    return false;
}

void *rl_fast_passing(rl_fast *f, size_t nbyte) {
    if (f->passing.used || f->passing.nbyte < nbyte) return NULL;
    f->passing.used = true;
    return f->passing.p;
}

bool rl_fast_keep_passing(rl_fast *f, void *p, size_t nbyte) {
    if (f->passing.p == p) {
        f->passing.used = false;
        return true;
    }
    if (f->passing.used || f->passing.nbyte >= nbyte) return false;
    if (f->passing.p) munmap(f->passing.p, f->passing.nbyte);
    f->passing.p = p, f->passing.nbyte = nbyte;
    return true;
}

void rl_fast_end(rl_rt *rt) {
    rl_fast *f = rt->fast;
    if (!f || !f->passing.p || f->passing.used) return;
    munmap(f->passing.p, f->passing.nbyte);
    f->passing.p = NULL, f->passing.nbyte = 0;
}

size_t rl_fast_scratch(const rl_rt *rt) {
    return rt->fast && rt->fast->scratch.mem ? rt->fast->scratch.mem->nbyte : 0;
}

void rl_fast_drop(const rl_rt *rt) {
    while (rt->fast && rt->fast->all) rl_prim_free(rt->fast, rt->fast->all);
}

void rl_fast_close(rl_rt *rt) {
    rl_fast *f = rt->fast;
    if (!f) return;
    rl_fast_end(rt);
    for (uint32_t i = 0; i < RL_SPARES; i++)
        if (f->spare[i].nbyte) rl_backend_cpu.free(rt, f->spare[i].p, f->spare[i].nbyte);
    f->d.stream_destroy(f->stream);
    f->d.engine_destroy(f->engine);
    rl_host_free(&rt->ctx->host, f, sizeof *f);
    rt->fast = NULL;
}

/* ---- layouts ---- */

void rl_channels_last(uint32_t rank, const int64_t *dim, int64_t *stride) {
    int64_t step = dim[1];
    stride[1] = 1;
    for (uint32_t i = rank; i-- > 2; step *= dim[i]) stride[i] = step;
    stride[0] = step;
}

bool rl_is_channels_last(const rl_tensor *t) {
    int64_t stride[RL_RANK];
    if (t->rank < 3) return false;
    rl_channels_last(t->rank, t->dim, stride);
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dim[i] != 1 && t->stride[i] != stride[i]) return false;
    return true;
}

/* Dims of 1 go where they would be row-major: their strides say nothing. */
bool rl_stride_order(const rl_tensor *t, int64_t *perm) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->rank; i++) {
        uint32_t k = n++;
        for (; t->dim[i] != 1 && k; k--) {
            int64_t before = perm[k - 1];
            if (t->dim[before] != 1 && t->stride[before] >= t->stride[i]) break;
            if (t->dim[before] == 1 && (k == 1 || t->stride[perm[k - 2]] >= t->stride[i])) break;
            perm[k] = before;
        }
        perm[k] = i;
    }
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dim[i] != 1 && t->stride[i] <= 0) return false;
    return true;
}

bool rl_memory_order(const rl_tensor *t, int64_t *perm) {
    int64_t step = 1;
    if (!rl_stride_order(t, perm)) return false;
    for (uint32_t i = t->rank; i-- > 0;) {
        if (t->dim[perm[i]] == 1) continue;
        if (t->stride[perm[i]] != step) return false;
        step *= t->dim[perm[i]];
    }
    return true;
}

rl_tensor *rl_call_make_like(rl_call *c, uint32_t i, const rl_tensor *x, const int64_t *dim) {
    int64_t perm[RL_RANK];
    if ((!c->rt->fast && !c->rt->device) || !rl_stride_order(x, perm)) return rl_call_make(c, i, x->dtype, x->rank, dim);
    return rl_call_make_in(c, i, x->dtype, x->rank, dim, perm);
}

bool rl_call_is_constant(const rl_call *c, uint32_t i) {
    const rl_exec *x = c->frame->x;
    return i < c->nin && c->in[i] >= x->constant && c->in[i] < x->constant + x->g->nval;
}
