/* What the fuzz targets share.  A target is a function from any bytes to nothing: it may not crash, leak, overflow or take more than
 * seconds, whatever the bytes are, and what it checks beyond that it says by `must`.
 *
 *   scripts/fuzz.sh 600 onnx      ten minutes of tests/fuzz/onnx.c */
#ifndef FUZZ_H
#define FUZZ_H
#include <stdio.h>
#include <stdlib.h>

#include "../../src/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

enum { FUZZ_MEMORY = 512 << 20 };

static inline void must(bool ok, const char *what, const rl_ctx *ctx) {
    if (ok) return;
    fprintf(stderr, "must hold: %s; %s\n", what, ctx->error);
    abort();
}

#endif
