/* The command check-proof: has the result the interface of the model, or the one that was asked for? */
#include <inttypes.h>

#include "cmd.h"

/* A size that is open may have got a number (--dim, and what follows from it), and one without a name anything. */
static bool is_dim(const rl_ctx *ctx, rl_dim was, rl_dim now) {
    if (was == now) return true;
    if (rl_dim_known(was) || rl_dim_known(now)) return !rl_dim_known(was);
    rl_str name = rl_dim_name(ctx, was);
    return name && *name == '?';
}

/* Of an output that is a stored constant the model's own sizes are known, where the result may say as little as the model declares. */
static bool is_port(const rl_graph *in, const rl_valinfo *was, const rl_valinfo *now) {
    if (was->dtype != RL_UNDEF && was->dtype != now->dtype) return false;
    if (was->rank == RL_NORANK || (was->is_init && now->rank == RL_NORANK)) return true;
    if (was->rank != now->rank) return false;
    for (uint32_t k = 0; k < was->rank; k++)
        if (!is_dim(in->ctx, was->dim[k], now->dim[k]) && !(was->is_init && is_dim(in->ctx, now->dim[k], was->dim[k]))) return false;
    return true;
}

/* The same sizes in another order? */
static bool is_turned(const rl_valinfo *was, const rl_valinfo *now) {
    uint64_t taken = 0;
    if ((was->dtype != RL_UNDEF && was->dtype != now->dtype) || was->rank != now->rank || was->rank == RL_NORANK || was->rank > 64) return false;
    for (uint32_t k = 0; k < was->rank; k++) {
        uint32_t i = 0;
        while (i < was->rank && (taken >> i & 1 || was->dim[i] != now->dim[k])) i++;
        if (i == was->rank) return false;
        taken |= UINT64_C(1) << i;
    }
    return true;
}

/* As the model declares it, in the order that was asked for. */
static rl_valinfo as_asked(const rl_line *l, const rl_valinfo *x, bool output, rl_dim *dim) {
    rl_valinfo y = *x;
    for (uint32_t i = 0; i < l->io.port.n; i++) {
        const rl_port *p = &l->io.port.p[i];
        if (p->name != x->name || p->output != output || p->rank != x->rank) continue;
        for (uint32_t k = 0; k < x->rank; k++) dim[k] = x->dim[p->perm[k]];
        y.dim = dim;
    }
    return y;
}

static rl_status check_side(const rl_line *l, const rl_graph *in, const rl_graph *out, bool output) {
    const rl_value *a = output ? in->output.p : in->input.p, *b = output ? out->output.p : out->input.p;
    uint32_t n = output ? in->output.n : in->input.n, m = output ? out->output.n : out->input.n;
    const char *what = output ? "output" : "input";
    if (n != m) return rl_fail(l->ctx, RL_EPROOF, "%s: %" PRIu32 " %ss, %s has %" PRIu32, l->file[2], m, what, l->in, n);
    for (uint32_t i = 0; i < n; i++) {
        rl_dim dim[RL_PORTRANK];
        const rl_valinfo asked = as_asked(l, rl_val(in, a[i]), output, dim), *x = &asked, *y = rl_val(out, b[i]);
        if (x->name != y->name) return rl_fail(l->ctx, RL_EPROOF, "%s: the %s '%.100s' is '%.100s' in %s", l->file[2], what, y->name, x->name, l->in);
        if (!is_port(in, x, y))
            return rl_fail(l->ctx, RL_EPROOF, "%s: the %s '%.100s' has another type or other sizes in %s%s", l->file[2], what, x->name, l->in,
                           is_turned(x, y) ? " (of a result of --input-layout or --output-layout? Then these are asked for here, too)" : "");
    }
    return RL_OK;
}

rl_status rl_check_ports(const rl_line *l, const rl_graph *in, const rl_graph *out) {
    RL_TRY(check_side(l, in, out, false));
    return check_side(l, in, out, true);
}
