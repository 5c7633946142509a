/* Kernels without a device (run.h).  What a device would refuse ends the process: an address that is no multiple of what is read or written there
 * (CMakeLists.txt compiles this file so). */
#include "k_axis.h"
#include "k_each.h"
#include "k_few_rows.h"
#include "k_interleave.h"
#include "k_nn.h"
#include "k_odd_tile.h"
#include "k_place.h"
#include "k_recode.h"
#include "k_recurrent.h"
#include "k_reduce.h"
#include "k_weave.h"
#include "run.h"

typedef void run_fn(uint32_t nblock, const void *param);
static run_fn *const all[] = {
#define GPU(name, kernel, params) rl_run_kernel<kernel>,
#include "kernels.inc"
#undef GPU
};

extern "C" void rl_emulate(uint32_t kernel, uint32_t nblock, const void *param);
extern "C" void rl_emulate(uint32_t kernel, uint32_t nblock, const void *param) {
    all[kernel](nblock, param);
}
