/* Another sequence in which a certificate takes the ops of a component (docs/proof.md, section 2), with fewer values in use at a time.
 *
 * The sequence is the witness that keeps the checker's tables small.  That of the graph is mostly good, and takes no time to find; this one is for
 * components that the checker does not decide so. */
#include "../src/cert.h"
#include "prove_order.h"
#include "solve_cover.h"

/* Each op names its values once; orders and costs do not count. */
static rl_cover values_of(rl_arena *mem, const rl_cert *c, const rl_cert_part *part) {
    rl_cover x = {.nop = part->nop, .nelem = c->nvalue, .nval = c->nvalue, .op = rl_new(mem, rl_bundle, part->nop)};
    x.value = rl_new(mem, uint32_t, x.nval);
    for (uint32_t v = 0; v < x.nval; v++) x.value[v] = v;
    for (uint32_t k = 0; k < x.nop; k++) {
        const rl_cert_op *op = &c->op[part->op[k]];
        x.op[k] = (rl_bundle){.ncfg = 1, .width = op->npin, .elem = rl_new(mem, uint32_t, op->npin)};
        for (uint32_t p = 0; p < op->npin; p++) x.op[k].elem[p] = op->pin[p].value;
    }
    return x;
}

void rl_prove_arrange(rl_arena *mem, const rl_cert *c, rl_cert_part *part, double deadline) {
    rl_arena tmp;
    rl_arena_init(&tmp, mem->ctx);
    rl_cover x = values_of(&tmp, c, part);
    rl_arrangement all[RL_MAXARRANGE];
    rl_arrange(&tmp, &x, all);
    const rl_arrangement best = rl_arrange_better(&tmp, &x, all[0], deadline);
    uint32_t *op = rl_new(mem, uint32_t, part->nop);
    for (uint32_t k = 0; k < x.nop; k++) op[k] = part->op[best.seq[k]];
    part->op = op;
    rl_arena_free(&tmp);
}
