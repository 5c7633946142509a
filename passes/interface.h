/* The graph's own interface, changed on request: an input or output in another order of its dims.
 *
 *   rl_interface io = {.mem = &arena};
 *   rl_interface_add(&io, false, "x=nhwc");   x [N,3,224,224] becomes x [N,224,224,3]: the caller converts, or has it so
 *   rl_interface_add(&io, true, "y=free");    the order of y that saves most is chosen
 *   rl_interface_choose(g, &opt, &io);        solves without and with the freedom; g is used up
 *   rl_interface_apply(h, &io);               h, the same model read again: its inputs and outputs in their new orders
 *   rl_optimize(h, &opt, &out);
 *
 * rl_interface_apply only puts a Transpose behind the input or before the output, so what the optimizer then makes of it is an
 * ordinary model with its own proof.  The conversions that went to the caller are counted here and nowhere else. */
#ifndef RL_INTERFACE_H
#define RL_INTERFACE_H
#include "../src/report.h"
#include "pass.h"

enum { RL_PORTRANK = 24 };

typedef struct {
    rl_str item, name;          /* "x=nhwc", "x" */
    const char *order;          /* behind the = */
    bool output, free;
    uint32_t rank;              /* 0 until perm is known */
    uint32_t perm[RL_PORTRANK]; /* perm[i]: the logical dim that is i-th now */
    bool changed, moves;        /* another order; and other bytes than before */
} rl_port;

struct rl_interface {
    rl_arena *mem;
    struct { rl_port *p; uint32_t n, cap; } port;
    /* set by rl_interface_choose: the model with the interface that it has */
    rl_stats before;
    int64_t conv_before, conv_without, bound_without;
};

/* "NAME=ORDER".  acdb: the dims as they are, a b c d, in another order.  nhwc: the same, taking the dims as ONNX has them (nchw).
 * nhwc->nchw: where the model has them otherwise, what they are called and the order that they get.  keep: as they are.  free.
 * "f32[1,3,8,8] strides=[64,1,32,4]": the order of such a buffer (relayout.h, rl_desc_parse).  RL_EUSAGE for anything else; ranks and
 * names are checked later. */
rl_status rl_interface_add(rl_interface *io, bool output, const char *item);
/* The orders that are free are chosen, and what the model needs without any change is found. Destroys g. */
rl_status rl_interface_choose(rl_graph *g, const rl_passopt *o, rl_interface *io);
/* RL_EUSAGE, and g is of no use, where a name, a rank or the kind of value does not fit. */
rl_status rl_interface_apply(rl_graph *g, rl_interface *io);
/* Ports that have another order; conversions that the caller makes. */
uint32_t rl_interface_changed(const rl_interface *io);
uint32_t rl_interface_handed(const rl_interface *io);
/* The order as letters, "acdb". */
rl_str rl_port_order(rl_ctx *ctx, const rl_port *port);

/* What a report says of the result, and of the ports where some were given; names and sizes of files are the caller's to fill in. */
void rl_summarize(const rl_outcome *o, const rl_interface *io, rl_arena *mem, rl_report *r);
/* rl_optimize; was, now, in mem: the Transposes before, and those that stay (rl_report_moves, or its JSON). */
rl_status rl_optimize_listing(rl_graph *g, const rl_passopt *o, bool json, rl_arena *mem, rl_outcome *out, rl_text *was, rl_text *now);

#endif
