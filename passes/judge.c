/* Is what came out better than what went in, and what may be said of it?
 *
 * Better means: fewer moving Transposes (--objective bytes: fewer bytes moved), then the other of the two, then fewer
 * Transposes of any kind, then Einsums in forms that the target charges less (--objective time: first of all less time by the target's rows,
 * both graphs taken as they stand); and
 * never more moving Transposes, nor more of the other nodes that move data; an Einsum that is a Transpose by another name counts as one, and is
 * not replaced by one.  It is judged by counting both graphs, not by what a pass believes; where the result is no better, outcome.changed is false and the caller writes the input's own bytes. */
#include <string.h>

#include "../src/shape.h"
#include "../src/stats.h"
#include "flat.h"
#include "plan.h"

bool rl_by_objective(const rl_pass_run *r, const char *name) {
    return r->opt->objective && strcmp(r->opt->objective, name) == 0;
}

/* The bytes that Transposes of floats between a DequantizeLinear and QuantizeLinears (units.c) need not move. */
static int64_t saved_bytes(const rl_graph *g) {
    int64_t n = 0;
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *x = rl_nod(g, g->order.p[i]);
        int64_t bytes = rl_transpose_bytes(g, x);
        if (bytes >= 0) n += (rl_stats_bytes(g, x->out[0]) - bytes) * rl_flat_turns(g, rl_flat_region(g, x->origin));
    }
    return n;
}

rl_status rl_time_now(rl_pass_run *r, bool named, int64_t *time) {
    RL_TRY(rl_shape_infer(r->g));
    if (!r->closed) r->g = rl_flat_make(r->g);
    if (named) RL_TRY(rl_normalize_einsums(r));
    RL_TRY(rl_pass_legal(r));
    *time = rl_plan_time(r->plan, r->target->charge[RL_OF_BYTES] ? saved_bytes(r->g) : 0);
    r->g = rl_flat_main(r->g);
    r->plan = NULL;
    rl_arena_free(r->tmp);
    return RL_OK;
}

int64_t rl_steps_now(const rl_pass_run *r) { return rl_target_charges(r->target) ? rl_stats_steps(r->g) : 0; }

/* Of two counts the smaller is better; 0: as good. */
static int by(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

/* time: below 0 where the time fell. */
static bool is_better(const rl_stats *now, const rl_stats *was, int64_t apart, bool bytes_first, bool cheaper, int time) {
    /* An Einsum may have been a Transpose by another name (normalize.c): its bytes were moved, and where fewer Transposes do what Einsums did, they are
     * better. One for one they are not. */
    int count = by(rl_stats_conversions(now), rl_stats_conversions(was));
    if (rl_stats_others(now) > rl_stats_others(was) + apart || count > 0 || (count == 0 && now->moving > was->moving)) return false;
    if (time != 0) return time < 0;
    int bytes = by(rl_add(now->moved_bytes, now->einsum_bytes), rl_add(was->moved_bytes, was->einsum_bytes));
    int first = bytes_first ? bytes : count, second = bytes_first ? count : bytes;
    if (first != 0) return first < 0;
    if (second != 0) return second < 0;
    if (now->transposes != was->transposes) return now->transposes < was->transposes;
    if (rl_stats_others(now) != rl_stats_others(was)) return rl_stats_others(now) < rl_stats_others(was);
    int other = by(rl_stats_other_bytes(now), rl_stats_other_bytes(was));
    return other < 0 || (other == 0 && cheaper);
}

static const char unknown_order[] =
    "nothing is known of some Transposes; where a call gives its function their order, calls must be written out first, as onnx.inliner does";

/* Is the model as read what the choice says it may be?  Transposes of bytes stand in it between a DequantizeLinear and a QuantizeLinear, and as it stands the
 * certificate would have them move floats. */
static bool is_as_chosen(const rl_pass_run *r) {
    const rl_outcome *out = r->out;
    const rl_proof *x = &out->proof;
    bool few = rl_stats_conversions(&out->before) - out->steps_before <= x->count + x->outside;
    return few && rl_add(out->before.moved_bytes, out->before.einsum_bytes) <= x->bytes && x->stands_charged <= x->charged && !rl_by_objective(r, "time");
}

/* What may be said of the result: only what was checked.  That is of the assignment of the model as read; what the rounds after it and
 * the folding of movement then saved is seen in the counts. */
static void conclude(rl_pass_run *r, bool bytes_first) {
    rl_outcome *out = r->out;
    rl_proof *x = &out->proof;
    if (!out->changed && !is_as_chosen(r)) {
        x->text[0] = x->text[1];
        x->count = x->stands;
        x->bytes = x->stands_bytes;
        x->shown = x->stands_shown;
        x->time = x->stands_time;
    }
    out->conv_bound = out->bytes_bound = out->time_bound = 0;
    int64_t steps = out->changed ? rl_steps_now(r) : out->steps_before;
    bool more = rl_stats_conversions(&out->after) - steps > x->count + x->outside;
    if (x->checked && more) x->why = unknown_order;
    if (!x->checked || more || out->conv_after > x->count) return;
    out->conv_after = x->count;
    out->outside = RL_MIN(rl_stats_conversions(&out->after), (int64_t)x->outside);
    out->shown = x->shown;
    bool reached = bytes_first ? x->bytes == x->bound_bytes && x->count == x->bound : x->count == x->bound;
    if (rl_by_objective(r, "time")) {
        bool as_said = out->time_after <= rl_target_ns(r->target, x->time); /* what was written may be charged more than its form was */
        if (as_said && x->timed) out->time_after = rl_target_ns(r->target, x->time); /* counted again, a weight on the left would be the file's own */
        if (x->timed) out->time_bound = RL_MIN(rl_target_ns(r->target, x->time_bound), out->time_after);
        out->proved = x->timed && x->time == x->time_bound && as_said ? RL_PROVED_OPTIMAL : RL_PROVED_GAP;
    } else out->proved = reached || x->shown.open == 0 ? RL_PROVED_OPTIMAL : RL_PROVED_GAP;
    if (reached || !bytes_first) out->conv_bound = x->bound;
    if (reached || bytes_first) out->bytes_bound = x->bound_bytes;
}

void rl_judge(rl_pass_run *r) {
    rl_outcome *out = r->out;
    bool bytes_first = rl_by_objective(r, "bytes");
    rl_stats_of(r->g, &out->after);
    out->changed = !r->gave_up && is_better(&out->after, &out->before, out->apart, bytes_first, out->cheaper, by(out->time_after, out->time_before));
    if (!out->changed) {
        out->after = out->before;
        out->time_after = out->time_before;
        out->conv_after = out->conv_before;
        r->g->as_read = true;
    }
    conclude(r, bytes_first);
}
