/* What bench found, as JSON and as a table. */
#include <inttypes.h>

#include "../src/report.h"
#include "bench.h"

static double share(const rl_bench *b, double ms) {
    double all = 0;
    for (uint32_t i = 0; i < b->nop; i++) all += b->op[i].ms;
    return all > 0 ? ms / all : 0;
}

void rl_bench_json(const rl_bench *b, const char *model, rl_text *t) {
    rl_put(t, "{\n  \"schema\": \"relayout.bench/1\",\n  \"model\": ");
    rl_report_string(t, model);
    rl_put(t, ",\n  \"threads\": %u,\n  \"runs\": %u,\n  \"kernels\": \"%s\",\n", b->threads, b->runs, b->fast ? "fast" : "reference");
    if (b->device) {
        rl_put(t, "  \"device\": ");
        rl_report_string(t, b->device);
        rl_put(t, ",\n  \"replayed\": %s,\n", b->replayed ? "true" : "false");
        if (b->replayed) rl_put(t, "  \"device_ms\": %.6g,\n", b->device_ms);
        if (b->branches) {
            rl_put(t, "  \"branches\": ");
            rl_report_string(t, b->branches);
            rl_put(t, ",\n");
        }
        rl_put(t, "  \"put_bytes\": %" PRIu64 ",\n  \"got_bytes\": %" PRIu64 ",\n", b->put, b->got);
    }
    rl_put(t, "  \"median_ms\": %.6g,\n  \"min_ms\": %.6g,\n  \"mean_ms\": %.6g,\n", b->median_ms, b->min_ms, b->mean_ms);
    rl_put(t, "  \"bytes\": %" PRIu64 ",\n  \"copied_bytes\": %" PRIu64 ",\n  \"movement_share\": %.4f,\n", b->bytes,
           b->copied, b->movement);
    rl_put(t, "  \"peak_bytes\": %zu,\n  \"arena_bytes\": %zu,\n  \"least_bytes\": %zu,\n", b->peak, b->arena, b->least);
    rl_put(t, "  \"input_bytes\": %zu,\n  \"work_bytes\": %zu,\n  \"kept_bytes\": %zu,\n  \"delivered_bytes\": %zu,\n  \"ops\": [", b->input, b->work, b->kept, b->delivered);
    for (uint32_t i = 0; i < b->nop; i++) {
        const rl_bench_op *op = &b->op[i];
        rl_put(t, "%s\n    {\"op\": ", i ? "," : "");
        rl_report_string(t, op->op);
        rl_put(t, ", \"kernel\": ");
        rl_report_string(t, op->kernel);
        rl_put(t, ", \"nodes\": %u, \"ms\": %.6g, \"share\": %.4f, \"bytes\": %" PRIu64 ", \"copied_bytes\": %" PRIu64 ", \"moves_data\": %s",
               op->nnode, op->ms, share(b, op->ms), op->bytes, op->copied, op->moves ? "true" : "false");
        rl_put(t, b->device ? ", \"on_cpu\": %u}" : "}", op->nfell);
    }
    rl_put(t, "%s],\n  \"steps\": [", b->nop ? "\n  " : "");
    for (uint32_t i = 0; i < b->nstep; i++) {
        const rl_bench_step *s = &b->step[i];
        rl_put(t, "%s\n    {\"node\": ", i ? "," : "");
        rl_report_string(t, s->node ? s->node : "");
        rl_put(t, ", \"op\": ");
        rl_report_string(t, s->op);
        rl_put(t, ", \"kernel\": ");
        rl_report_string(t, s->kernel);
        rl_put(t, ", \"ms\": %.6g, \"copied_bytes\": %" PRIu64 "}", s->ms, s->copied);
    }
    rl_put(t, "%s]\n}\n", b->nstep ? "\n  " : "");
}

void rl_bench_table(const rl_bench *b, rl_text *t) {
    rl_put(t, "median %.3f ms, least %.3f ms, mean %.3f ms of %u runs, threads: %u\n", b->median_ms, b->min_ms, b->mean_ms, b->runs, b->threads);
    if (b->device) rl_put(t, "on %s; %.2f MB to it and %.2f MB from it in a run\n", b->device, (double)b->put * 1e-6, (double)b->got * 1e-6);
    if (b->replayed) rl_put(t, "there, as one recorded graph, by its own clock: median %.3f ms\n", b->device_ms);
    if (b->branches) rl_put(t, "branches: %s\n", b->branches);
    for (uint32_t i = 0; i < b->nop; i++)
        if (b->op[i].nfell) rl_put(t, "on the CPU, with copies: %s, %u of %u\n", b->op[i].op, b->op[i].nfell, b->op[i].nnode);
    if (b->failed) rl_put(t, "%s", b->failed);
    rl_put(t, "peak memory of values: %zu bytes: inputs %zu, planned %zu (no plan has less than %zu), kernels' own %zu, kept between runs %zu, outputs copied for the caller %zu\n",
           b->peak, b->input, b->arena, b->least, b->work, b->kept, b->delivered);
    rl_put(t, "%.1f %% of the nodes' time in ops that only move data; %.2f MB copied, %.2f MB read and written\n\n", 100 * b->movement,
           (double)b->copied * 1e-6, (double)b->bytes * 1e-6);
    rl_put(t, "%-28s %6s %10s %7s %10s %10s  %s\n", "op", "nodes", "ms", "share", "MB", "copied MB", "kernel");
    for (uint32_t i = 0; i < b->nop; i++) {
        const rl_bench_op *op = &b->op[i];
        rl_put(t, "%-28.28s %6u %10.3f %6.1f%% %10.2f %10.2f  %s\n", op->op, op->nnode, op->ms, 100 * share(b, op->ms), (double)op->bytes * 1e-6,
               (double)op->copied * 1e-6, op->kernel);
    }
}
