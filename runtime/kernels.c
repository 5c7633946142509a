/* The CPU backend: its kernel table (kernels.def) and its memory. */
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "recurrent.h"
#include "ref_attention.h"
#include "ref_axis.h"
#include "ref_fused.h"
#include "ref_layernorm.h"
#include "ref_pointwise.h"
#include "ref_pool.h"
#include "ref_reduce.h"
#include "ref_signal.h"
#include "ref_softmax.h"

static const rl_kernel table[] = {
#define KERNEL(domain, type, since, until, types, fn, arg) {domain, #type, since, until, RL_STRIDED, types, fn, arg},
#include "kernels.def"
#undef KERNEL
};

static void *cpu_alloc(rl_rt *rt, size_t nbyte) {
    (void)rt;
    return nbyte > SIZE_MAX / 2 ? NULL : aligned_alloc(64, (nbyte + 64) / 64 * 64);
}

static void cpu_free(rl_rt *rt, void *p, size_t nbyte) {
    (void)rt, (void)nbyte;
    free(p);
}

static rl_status cpu_copy(rl_rt *rt, void *to, const void *from, size_t nbyte) {
    (void)rt;
    if (nbyte) memcpy(to, from, nbyte);
    return RL_OK;
}

static rl_status cpu_sync(rl_rt *rt) {
    (void)rt;
    return RL_OK;
}

const rl_backend rl_backend_cpu = {"cpu", table, RL_LEN(table), cpu_alloc, cpu_free, cpu_copy, cpu_copy, cpu_sync};
