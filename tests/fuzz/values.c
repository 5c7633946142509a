/* Any bytes as a value: an .npy file, a TensorProto, a SequenceProto or an OptionalProto; and what was read printed and read again. */
#include "../../runtime/values.h"
#include "fuzz.h"

static rl_status read_value(rl_rt *rt, rl_graph *g, unsigned kind, rl_span bytes, rl_tensor *t) {
    static const rl_pb_kind kinds[] = {RL_PB_TENSOR, RL_PB_SEQUENCE, RL_PB_OPTIONAL};
    return kind < RL_LEN(kinds) ? rl_pb_read(rt, g, kinds[kind], bytes, t) : rl_npy_read(rt, "input", bytes, t);
}

static void read_and_print(rl_rt *rt, unsigned kind, rl_span bytes) {
    rl_tensor t = {0}, again = {0};
    if (RL_PROTECT(rt->ctx)) return;
    rl_graph *g = rl_graph_new(rt->ctx);
    if (read_value(rt, g, kind, bytes, &t) != RL_OK) return;
    rl_text text = {.mem = &g->mem};
    if (kind < 3 && t.kind != RL_ABSENT) rl_pb_print(rt, &t, &text);
    else if (kind < 3 || !rl_npy_print(rt, &t, &text)) return;
    rl_pb_kind printed = t.kind == RL_SEQUENCE ? RL_PB_SEQUENCE : RL_PB_TENSOR;
    rl_span second = {(const uint8_t *)text.p, text.n};
    must((kind < 3 ? rl_pb_read(rt, g, printed, second, &again) : rl_npy_read(rt, "again", second, &again)) == RL_OK, "what is printed can be read", rt->ctx);
    must(again.kind == t.kind && again.dtype == t.dtype && rl_same_dims(&again, &t), "as the same type", rt->ctx);
}

static void read_in(rl_ctx *ctx, const uint8_t *p, size_t n) {
    if (RL_PROTECT(ctx)) return;
    rl_rt *rt = rl_rt_new(ctx, &rl_backend_cpu, 1);
    read_and_print(rt, p[0] % 4u, (rl_span){p + 1, n - 1});
    rl_rt_free(rt);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) {
    rl_ctx *ctx = n ? rl_ctx_new(FUZZ_MEMORY) : NULL;
    if (ctx) read_in(ctx, p, n);
    rl_ctx_free(ctx);
    return 0;
}
