/* Scan: a body run over slices of its inputs. Opset 8 has a batch around it, and lengths. */
#include <string.h>

#include "kernels.h"
#include "stack.h"

/* One scan: states, then inputs with the scanned axis first, as the body takes them. */
typedef struct {
    const rl_graph *body;
    uint32_t nstate, nscan, nmade;
    rl_tensor *in, *scan, *out;
    rl_tensors *made;
    bool *backwards; /* [nscan] */
} scan;

static rl_status start(rl_call *c, scan *s, uint32_t nvalue) {
    int64_t n = rl_attr_int(c->node, "num_scan_inputs", 0);
    s->body = rl_call_graph(c, "body");
    if (!s->body || n < 1 || n > nvalue || s->body->input.n != nvalue || s->body->output.n != c->nout || c->nout < nvalue - n)
        return rl_call_fail(c, RL_EMODEL, "the body's inputs and outputs do not fit the node's");
    s->nscan = (uint32_t)n;
    s->nstate = nvalue - s->nscan;
    s->nmade = c->nout - s->nstate;
    s->in = rl_new(c->tmp, rl_tensor, nvalue);
    s->scan = rl_new(c->tmp, rl_tensor, s->nscan);
    s->out = rl_new(c->tmp, rl_tensor, c->nout + 1);
    s->made = rl_new(c->tmp, rl_tensors, s->nmade + 1);
    s->backwards = rl_new(c->tmp, bool, s->nscan);
    return RL_OK;
}

/* Runs the body n times; the states in s->in become the last ones, s->made[k] are new. */
static rl_status run_scan(rl_call *c, scan *s, int64_t n) {
    for (uint32_t k = 0; k < s->nmade; k++) s->made[k] = (rl_tensors){0};
    for (int64_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < s->nscan; k++) {
            rl_tensor one = rl_view_slice(&s->scan[k], 0, s->backwards[k] ? n - 1 - i : i, 1, 1);
            s->in[s->nstate + k] = rl_view_without(&one, 0);
        }
        RL_TRY(rl_call_body(c, "body", s->in, s->nstate + s->nscan, s->out, c->nout));
        for (uint32_t k = 0; k < s->nstate; k++) {
            rl_tensor_drop(&s->in[k]);
            s->in[k] = s->out[k];
        }
        for (uint32_t k = 0; k < s->nmade; k++) rl_push(c->tmp, s->made[k], s->out[s->nstate + k]);
    }
    return RL_OK;
}

/* Element k of a list attribute, 0 where it is missing. */
static rl_status list_at(rl_call *c, const char *name, uint32_t k, uint32_t want, int64_t *x) {
    const int64_t *p;
    uint32_t n;
    RL_TRY(rl_call_ints(c, name, RL_NONE, &p, &n));
    if (n && n != want) return rl_call_fail(c, RL_EMODEL, "attribute '%s' has %u elements, wants %u", name, n, want);
    *x = n ? p[k] : 0;
    return RL_OK;
}

static rl_status scan_input(rl_call *c, scan *s, uint32_t k, int64_t *n) {
    const rl_tensor *x = rl_call_in(c, s->nstate + k);
    int64_t axis = 0, backwards = 0, perm[RL_RANK];
    uint32_t a;
    if (x->kind != RL_TENSOR) return rl_call_fail(c, RL_EMODEL, "input %u is no tensor", s->nstate + k);
    RL_TRY(list_at(c, "scan_input_axes", k, s->nscan, &axis));
    RL_TRY(list_at(c, "scan_input_directions", k, s->nscan, &backwards));
    RL_TRY(rl_call_axis(c, axis, x->rank, &a));
    perm[0] = a;
    for (uint32_t i = 0, at = 1; i < x->rank; i++)
        if (i != a) perm[at++] = i;
    s->scan[k] = rl_view_transpose(x, perm);
    s->backwards[k] = backwards != 0;
    if (k && s->scan[k].dim[0] != *n)
        return rl_call_fail(c, RL_EMODEL, "inputs are scanned over %lld and %lld places", (long long)*n, (long long)s->scan[k].dim[0]);
    *n = s->scan[k].dim[0];
    return RL_OK;
}

rl_status rl_ref_scan(rl_call *c) {
    scan s = {0};
    int64_t n = 0, axis = 0, backwards = 0;
    RL_TRY(rl_call_need(c, c->nin));
    RL_TRY(start(c, &s, c->nin));
    for (uint32_t k = 0; k < s.nscan; k++) RL_TRY(scan_input(c, &s, k, &n));
    for (uint32_t k = 0; k < s.nstate; k++) s.in[k] = rl_tensor_keep(rl_call_in(c, k));
    RL_TRY(run_scan(c, &s, n));
    for (uint32_t k = 0; k < s.nstate; k++) rl_call_give(c, k, s.in[k]);
    for (uint32_t k = 0; k < s.nmade; k++) {
        RL_TRY(list_at(c, "scan_output_axes", k, s.nmade, &axis));
        RL_TRY(list_at(c, "scan_output_directions", k, s.nmade, &backwards));
        RL_TRY(rl_call_stack_made(c, s.nstate + k, &s.made[k], axis, backwards != 0, s.body, s.nstate + k));
    }
    return RL_OK;
}

/* ---- opset 8 ---- */

/* Part b of output k, which is made, of zeros, for the first part. */
static rl_status put_part(rl_call *c, uint32_t k, int64_t b, int64_t nbatch, const rl_tensor *x) {
    int64_t dim[RL_RANK] = {nbatch};
    uint64_t zero[2] = {0};
    if (x->kind != RL_TENSOR || x->dtype == RL_STRING || x->rank + 1 > RL_RANK)
        return rl_call_fail(c, RL_ELIMIT, "output %u: a batch of such values does not run", k);
    memcpy(dim + 1, x->dim, x->rank * sizeof *dim);
    RL_TRY(rl_call_dims(c, x->rank + 1, dim));
    if (c->out[k].kind == RL_ABSENT) rl_fill(c->rt, rl_call_make(c, k, x->dtype, x->rank + 1, dim), zero);
    rl_tensor part = rl_view_slice(&c->out[k], 0, b, 1, 1), to = rl_view_without(&part, 0);
    if (to.dtype != x->dtype || !rl_same_dims(&to, x)) return rl_call_fail(c, RL_EMODEL, "output %u: its parts differ in type or shape", k);
    rl_tensor_move(c->rt, &to, x);
    return RL_OK;
}

/* Item i of part b of a scan output, padded with zeros up to `most` items. */
static rl_status put_items(rl_call *c, scan *s, uint32_t k, int64_t b, int64_t nbatch, int64_t most) {
    rl_tensors *m = &s->made[k];
    int64_t dim[RL_RANK] = {most};
    uint64_t zero[2] = {0};
    if (!m->n || m->p[0].kind != RL_TENSOR || m->p[0].rank + 2 > RL_RANK)
        return rl_call_fail(c, RL_ELIMIT, "a batch of nothing does not run");
    memcpy(dim + 1, m->p[0].dim, m->p[0].rank * sizeof *dim);
    RL_TRY(rl_call_dims(c, m->p[0].rank + 1, dim));
    rl_tensor *all = rl_call_temp(c, m->p[0].dtype, m->p[0].rank + 1, dim);
    if (all->dtype != RL_STRING) rl_fill(c->rt, all, zero);
    for (uint32_t i = 0; i < m->n; i++) {
        rl_tensor part = rl_view_slice(all, 0, i, 1, 1), to = rl_view_without(&part, 0);
        if (to.dtype != m->p[i].dtype || !rl_same_dims(&to, &m->p[i]))
            return rl_call_fail(c, RL_EMODEL, "output %u: its parts differ in type or shape", s->nstate + k);
        rl_tensor_move(c->rt, &to, &m->p[i]);
        rl_tensor_drop(&m->p[i]);
    }
    return put_part(c, s->nstate + k, b, nbatch, all);
}

/* Inputs: lengths (may be left out), states, scanned; all with a batch first, the scanned ones with the sequence second. */
rl_status rl_ref_scan_batched(rl_call *c) {
    scan s = {0};
    RL_TRY(start(c, &s, RL_MAX(c->nin, 1u) - 1));
    for (uint32_t k = 1; k < c->nin; k++) {
        const rl_tensor *x = rl_call_in(c, k);
        if (!x || x->kind != RL_TENSOR || x->rank < (k > s.nstate ? 2u : 1u) || x->dim[0] != rl_call_in(c, 1)->dim[0])
            return rl_call_fail(c, RL_EMODEL, "input %u is missing or has no batch", k);
    }
    int64_t nbatch = rl_call_in(c, 1)->dim[0], most = rl_call_in(c, 1 + s.nstate)->dim[1], backwards = 0;
    const rl_tensor *len = rl_call_as(c, 0, RL_I64);
    if (len && rl_numel(len) != nbatch)
        return rl_call_fail(c, RL_EMODEL, "%lld lengths for a batch of %lld", (long long)rl_numel(len), (long long)nbatch);
    for (int64_t b = 0; b < nbatch; b++) {
        int64_t n = len ? ((const int64_t *)rl_data(len))[b] : most;
        for (uint32_t k = 0; k < s.nstate + s.nscan; k++) {
            rl_tensor part = rl_view_slice(rl_call_in(c, 1 + k), 0, b, 1, 1), x = rl_view_without(&part, 0);
            if (k < s.nstate) {
                s.in[k] = rl_tensor_keep(&x);
                continue;
            }
            s.scan[k - s.nstate] = x;
            if (n < 0 || n > x.dim[0]) return rl_call_fail(c, RL_EMODEL, "length %lld is out of range", (long long)n);
            RL_TRY(list_at(c, "directions", k - s.nstate, s.nscan, &backwards));
            s.backwards[k - s.nstate] = backwards != 0;
        }
        RL_TRY(run_scan(c, &s, n));
        for (uint32_t k = 0; k < s.nstate; k++) {
            RL_TRY(put_part(c, k, b, nbatch, &s.in[k]));
            rl_tensor_drop(&s.in[k]);
        }
        for (uint32_t k = 0; k < s.nmade; k++) RL_TRY(put_items(c, &s, k, b, nbatch, most));
    }
    return RL_OK;
}
