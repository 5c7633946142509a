/* Any bytes as a model, optimized: the result can be read, and has no more Transposes that move data than the model. */
#include "../../include/relayout.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) {
    const char *const targets[] = {"onnx", "generic"};
    rl_options o = {.struct_size = sizeof o, .target = targets[n % 2], .time_limit = 0.2, .max_memory = FUZZ_MEMORY};
    rl_result r, again;
    rl_ctx none = {.error = ""};
    void *out, *out2;
    size_t nout, nout2;
    if (rl_optimize_bytes(p, n, &out, &nout, &o, &r) != RL_OK) return 0;
    must(!r.changed || r.conversions_after <= r.conversions_before, "no more conversions", &none);
    rl_status s = rl_optimize_bytes(out, nout, &out2, &nout2, &o, &again);
    must(s == RL_OK || s == RL_ELIMIT, again.error, &none);
    rl_free(out);
    rl_free(out2);
    return 0;
}
