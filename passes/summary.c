/* A report (src/report.h) from what the pipeline found: see interface.h. */
#include "interface.h"

static void add_ports(const rl_interface *io, rl_arena *mem, rl_report *r) {
    rl_portline *port = rl_new(mem, rl_portline, io->port.n);
    for (uint32_t i = 0; i < io->port.n; i++) {
        const rl_port *x = &io->port.p[i];
        port[i] = (rl_portline){x->name, rl_port_order(mem->ctx, x), x->output, x->moves};
    }
    r->port = port;
    r->nport = io->port.n;
    r->before = io->before;
    r->conv_before = io->conv_before;
    r->conv_without = io->conv_without;
    r->bound_without = io->bound_without;
    r->handed = rl_interface_handed(io);
    r->changed |= rl_interface_changed(io) > 0;
}

void rl_summarize(const rl_outcome *o, const rl_interface *io, rl_arena *mem, rl_report *r) {
    static const char *const proved[] = {[RL_PROVED_NOT] = "unchecked", [RL_PROVED_GAP] = "gap", [RL_PROVED_OPTIMAL] = "optimal"};
    r->changed = o->changed;
    r->before = o->before;
    r->after = o->after;
    r->conv_before = o->conv_before;
    r->conv_after = o->conv_after;
    r->conv_bound = o->conv_bound;
    r->bytes_bound = o->bytes_bound;
    r->proof = proved[o->proved];
    r->unproved = o->proof.why;
    r->outside = o->outside;
    r->shown_fewest = o->shown.fewest;
    r->shown_quick = o->shown.quick;
    r->shown_open = o->shown.open;
    r->open_takes = o->shown.takes;
    r->open_at_least = o->shown.at_least;
    r->within = 100 - RL_CERT_ENOUGH;
    r->time_before = o->time_before;
    r->time_after = o->time_after;
    r->time_bound = o->time_bound;
    if (io->port.n) add_ports(io, mem, r);
}

static rl_status list_moves(const rl_graph *g, bool json, rl_arena *mem, rl_text *moves) {
    if (RL_PROTECT(g->ctx)) return RL_ENOMEM;
    *moves = (rl_text){.mem = mem};
    if (json) rl_report_moves_json(g, mem, moves);
    else rl_report_moves(g, mem, moves);
    return RL_OK;
}

rl_status rl_optimize_listing(rl_graph *g, const rl_passopt *o, bool json, rl_arena *mem, rl_outcome *out, rl_text *was, rl_text *now) {
    RL_TRY(rl_run_passes(g, "", o, out)); /* shapes */
    RL_TRY(list_moves(g, json, mem, was));
    RL_TRY(rl_optimize(g, o, out));
    return list_moves(g, json, mem, now);
}
