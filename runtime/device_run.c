/* Runs of a graph with a device, recorded and replayed, and what is said about them: see device.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "branches.h"
#include "device_internal.h"
#include "plan.h"

typedef struct rl_replay {
    rl_tensor *in, *out;   /* where the recording reads and writes; RL_ABSENT: not used */
    rl_tensor *there, *made; /* of a run without it */
    void *recording;       /* NULL: not yet, or it cannot be */
    bool possible;
    const char *note;      /* why it cannot be recorded; NULL: nobody tried, or it can */
    const char *branches;  /* what came of trying branches; NULL: not tried */
} rl_replay;

static void drop_all(rl_tensor *t, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) rl_tensor_drop(&t[i]);
}

static void forget(rl_exec *x, rl_replay *r) {
    if (r->recording) x->rt->device->forget(x->rt, r->recording);
    r->recording = NULL;
    drop_all(r->in, x->g->input.n);
    drop_all(r->out, x->g->output.n);
}

static rl_replay *replay_of(rl_exec *x) {
    if (x->replay) return x->replay;
    x->replay = rl_new(&x->g->mem, rl_replay, 1);
    x->replay->in = rl_new(&x->g->mem, rl_tensor, x->g->input.n + 1);
    x->replay->out = rl_new(&x->g->mem, rl_tensor, x->g->output.n + 1);
    x->replay->there = rl_new(&x->g->mem, rl_tensor, x->g->input.n + 1);
    x->replay->made = rl_new(&x->g->mem, rl_tensor, x->g->output.n + 1);
    return x->replay;
}

/* Whether a run did nothing that a recording cannot: all inputs were on the device, and nothing was copied between its nodes. */
static bool was_pure(const rl_exec *x, const rl_tensor *in) {
    for (uint32_t i = 0; i < x->g->input.n; i++)
        if (in[i].kind != RL_ABSENT && !rl_device_takes(&in[i])) return false;
    for (uint32_t i = 0; i < x->nstep; i++)
        if (x->step[i].place == RL_RAN_FALLBACK) return false;
    return x->rt->put == 0 && x->rt->got == 0 && !x->rt->watch && !x->cost && !x->rt->stepwise;
}

static void take_inputs(rl_exec *x, const rl_tensor *in, rl_tensor *there) {
    for (uint32_t i = 0; i < x->g->input.n; i++)
        there[i] = rl_device_takes(&in[i]) ? rl_tensor_on(x->rt, &in[i], x->rt->device) : rl_tensor_keep(&in[i]);
}

void rl_device_end_recording(rl_rt *rt) {
    void *made;
    if (!rt->recording) return;
    rt->recording = false;
    rt->branches = NULL;
    if (rt->device->record_end(rt, &made) == RL_OK) rt->device->forget(rt, made);
}

/* A recording that was begun is made by running once more; what it says is then done by the first replay. note: why it is none. */
static rl_status record_steps(rl_exec *x, const rl_tensor *in, rl_tensor *out, void **made, const char **note) {
    rl_rt *rt = x->rt;
    rt->recording = true;
    rt->random = 1;
    rl_status s = rl_exec_frame(x, NULL, in, x->g->input.n, out, x->g->output.n);
    if (s == RL_OK) {
        rt->recording = false;
        return rt->device->record_end(rt, made);
    }
    *note = rl_copy(&x->g->mem, rt->ctx->error, strlen(rt->ctx->error) + 1); /* before the end says something else */
    rl_device_end_recording(rt);
    return s;
}

static rl_status record(rl_exec *x, rl_replay *r, const rl_tensor *in) {
    rl_rt *rt = x->rt;
    take_inputs(x, in, r->in);
    RL_TRY(rt->failed);
    RL_TRY(rt->device->sync(rt));
    RL_TRY(rt->device->record(rt));
    return record_steps(x, r->in, r->out, &r->recording, &r->note);
}

/* ---- branches ---- */

enum { MOST_ROOM = 1 << 30 /* bytes */, TRIED = 5 };
#define MOST_TRYING 1.0 /* seconds */

/* A second recording, of branches (branches.h). */
typedef struct { void *recording; rl_tensor *out; rl_branches *steps; uint32_t nstep, longest; double seconds, before; } branched;

/* RELAYOUT_CUDA_BRANCHES=0: none are tried;  1: they are taken wherever they are right, however long they take. */
static const char *wish(void) {
    const char *w = getenv("RELAYOUT_CUDA_BRANCHES");
    return w ? w : "";
}

static bool wants_branches(const rl_rt *rt) {
    return rt->device->record_branches && (rt->runs_often || *wish()) && strcmp(wish(), "0") != 0;
}

static rl_status time_replay(rl_exec *x, void *recording, double *least) {
    RL_TRY(x->rt->device->sync(x->rt));
    double start = rl_seconds();
    RL_TRY(x->rt->device->replay(x->rt, recording));
    RL_TRY(x->rt->device->sync(x->rt));
    *least = RL_MIN(*least, rl_seconds() - start);
    return RL_OK;
}

/* Both in turn, so that what else goes on slows both. */
static rl_status time_both(rl_exec *x, const rl_replay *r, branched *b) {
    double start = rl_seconds();
    b->seconds = b->before = INFINITY;
    for (uint32_t i = 0; i < TRIED && (i == 0 || rl_seconds() - start < MOST_TRYING); i++) {
        RL_TRY(time_replay(x, r->recording, &b->before));
        RL_TRY(time_replay(x, b->recording, &b->seconds));
    }
    return RL_OK;
}

static void give_inputs(rl_exec *x, const rl_replay *r, const rl_tensor *in) {
    for (uint32_t i = 0; i < x->g->input.n; i++)
        if (in[i].kind == RL_TENSOR) rl_tensor_move(x->rt, &r->in[i], &in[i]);
}

/* After a replay with nothing but zeros: what read too early would find what is right for these inputs, left by the replay before. */
static rl_status replay_afresh(rl_exec *x, const rl_replay *r, const rl_tensor *in, void *recording) {
    static const char zero[16];
    for (uint32_t i = 0; i < x->g->input.n; i++)
        if (in[i].kind == RL_TENSOR && in[i].mem != r->in[i].mem && r->in[i].mem->on == x->rt->device) rl_fill(x->rt, &r->in[i], zero);
    RL_TRY(x->rt->device->replay(x->rt, recording));
    give_inputs(x, r, in);
    RL_TRY(x->rt->device->replay(x->rt, recording));
    RL_TRY(x->rt->failed);
    return x->rt->device->sync(x->rt);
}

/* Bit for bit. */
static bool same_outputs(rl_exec *x, const rl_tensor *a, const rl_tensor *b) {
    bool same = true;
    for (uint32_t i = 0; i < x->g->output.n && same; i++) {
        rl_tensor p = rl_tensor_on(x->rt, &a[i], &rl_backend_cpu), q = rl_tensor_on(x->rt, &b[i], &rl_backend_cpu);
        rl_deliver(x->rt, &p), rl_deliver(x->rt, &q);
        same = p.kind == q.kind && (p.kind != RL_TENSOR || (rl_same_dims(&p, &q) && rl_same_bytes(rl_data(&p), rl_data(&q), rl_bytes_of(p.dtype, rl_numel(&p)))));
        rl_tensor_drop(&p), rl_tensor_drop(&q);
    }
    return same && x->rt->failed == RL_OK;
}

/* What there is to say against the second recording; NULL: nothing. */
static const char *fault_of(rl_exec *x, const rl_replay *r, const rl_tensor *in, branched *b) {
    rl_branches_count(b->steps, &b->nstep, &b->longest);
    if (b->longest == b->nstep) return "there are none";
    if (!rl_branches_hold(b->steps)) return "some of them would share memory";
    if (time_both(x, r, b) != RL_OK || replay_afresh(x, r, in, b->recording) != RL_OK) return x->rt->ctx->error;
    if (!same_outputs(x, r->out, b->out)) return "their results are others";
    return b->seconds > 0.98 * b->before && strcmp(wish(), "1") != 0 ? "they are not quicker" : NULL;
}

static rl_status record_branches(rl_exec *x, const rl_replay *r, size_t room, branched *b, const char **fault) {
    rl_rt *rt = x->rt;
    size_t most = rt->ctx->limit ? RL_MIN((size_t)MOST_ROOM, rt->ctx->limit - RL_MIN(rt->ctx->limit, rt->live)) : MOST_ROOM;
    if (room > most) return rl_fail(rt->ctx, RL_ELIMIT, "they want %zu bytes", room);
    RL_TRY(rt->device->record_branches(rt, room));
    rt->branches = b->steps;
    rl_status s = record_steps(x, r->in, b->out, &b->recording, fault);
    rt->branches = NULL;
    return s;
}

/* made: bytes that the first recording's values have. */
static void try_branches(rl_exec *x, rl_replay *r, const rl_tensor *in, uint64_t made) {
    rl_rt *rt = x->rt;
    const char *fault = NULL;
    rl_text said = {.mem = &x->g->mem};
    branched b = {.steps = rl_branches_new(rt->ctx), .out = rl_new(&x->g->mem, rl_tensor, x->g->output.n + 1)};
    rl_status s = record_branches(x, r, made + made / 4 + (1 << 20), &b, &fault);
    if (s == RL_OK) fault = fault_of(x, r, in, &b);
    else if (!fault) fault = rt->ctx->error;
    if (fault) rl_put(&said, "%s", fault);
    else rl_put(&said, "of %u steps %u come one after the other at most", b.nstep, b.longest);
    if (b.before > 0) rl_put(&said, "; %.3f ms, without them %.3f ms", 1e3 * b.seconds, 1e3 * b.before);
    if (!fault) {
        void *other = r->recording;
        rl_tensor *out = r->out;
        r->recording = b.recording, r->out = b.out;
        b.recording = other, b.out = out;
    }
    r->branches = said.p;
    if (b.recording) rt->device->forget(rt, b.recording);
    drop_all(b.out, x->g->output.n);
    rl_branches_free(b.steps);
    rt->failed = RL_OK;
}

/* Whether it is recorded now; if not, it will never be, and *s is what then ends the run. */
static bool try_record(rl_exec *x, rl_replay *r, const rl_tensor *in, rl_status *s) {
    rl_rt *rt = x->rt;
    uint64_t made = rt->made;
    *s = record(x, r, in);
    if (*s == RL_OK && wants_branches(rt)) try_branches(x, r, in, rt->made - made);
    if (*s == RL_OK) return true;
    if (!r->note) r->note = rl_copy(&x->g->mem, rt->ctx->error, strlen(rt->ctx->error) + 1);
    forget(x, r);
    rt->failed = RL_OK;
    if (rl_device_failed(*s)) *s = rt->device->sync(rt);
    return false;
}

static rl_status replay(rl_exec *x, rl_replay *r, const rl_tensor *in) {
    give_inputs(x, r, in);
    RL_TRY(x->rt->failed);
    if (x->clock) RL_TRY(x->rt->device->mark(x->rt, 0));
    RL_TRY(x->rt->device->replay(x->rt, r->recording));
    return x->clock ? x->rt->device->mark(x->rt, 1) : RL_OK;
}

static rl_status run_once(rl_exec *x, rl_replay *r, const rl_tensor *in) {
    take_inputs(x, in, r->there);
    RL_TRY(x->rt->failed);
    x->rt->put = x->rt->got = 0;
    x->rt->random = 1;
    RL_TRY(rl_exec_frame(x, NULL, r->there, x->g->input.n, r->made, x->g->output.n));
    r->possible = was_pure(x, in);
    drop_all(r->there, x->g->input.n);
    return x->rt->failed;
}

/* What each step took, by the device's clock: after a sync. */
static rl_status take_times(rl_exec *x) {
    double seconds;
    for (uint32_t i = 0; x->cost && i < x->nstep; i++) {
        RL_TRY(x->rt->device->between(x->rt, i, &seconds));
        x->cost[i].seconds += seconds;
    }
    return RL_OK;
}

static rl_status give_outputs(rl_exec *x, const rl_tensor *made, rl_tensor *out) {
    for (uint32_t i = 0; i < x->g->output.n; i++) out[i] = rl_tensor_on(x->rt, &made[i], &rl_backend_cpu);
    RL_TRY(x->rt->failed);
    return x->rt->device->sync(x->rt);
}

rl_status rl_device_run(rl_exec *x, const rl_tensor *in, rl_tensor *out) {
    rl_replay *r = replay_of(x);
    uint32_t version = x->plan ? x->plan->version : 0;
    x->rt->failed = RL_OK;
    rl_plan_make(x, in);
    if (version != x->plan->version) {
        forget(x, r);
        r->possible = false;
    }
    bool again = r->possible && !r->note && !x->rt->watch && !x->cost && x->rt->device->record;
    rl_status s = RL_OK;
    if (again && !r->recording) again = try_record(x, r, in, &s);
    RL_TRY(s);
    if (again) {
        RL_TRY(replay(x, r, in));
        RL_TRY(give_outputs(x, r->out, out));
        return x->clock ? x->rt->device->between(x->rt, 0, x->clock) : RL_OK;
    }
    RL_TRY(run_once(x, r, in));
    RL_TRY(give_outputs(x, r->made, out));
    drop_all(r->made, x->g->output.n);
    return take_times(x);
}

void rl_device_release(rl_exec *x) {
    if (x->replay) forget(x, x->replay);
}

bool rl_device_replays(const rl_exec *x) {
    return x->replay && x->replay->recording;
}

const char *rl_device_branches(const rl_exec *x) {
    return x->replay ? x->replay->branches : NULL;
}

/* ---- what is said about it ---- */

static void note_step(const rl_step *s, rl_text *out) {
    const char *next = !s->left ? "another kernel does it" : s->npart ? "the nodes that it joins run one by one" : "the CPU does it";
    if (s->note) rl_put(out, "%s: %s; %s\n", rl_node_label(s->info).s, s->note, next);
    for (uint32_t i = 0; i < s->npart; i++) note_step(&s->part[i], out);
}

void rl_device_notes(const rl_exec *x, rl_text *out) {
    for (uint32_t i = 0; i < x->nstep; i++)
        note_step(&x->step[i], out);
    if (x->replay && x->replay->note) rl_put(out, "not recorded, so run node by node: %s\n", x->replay->note);
}

void rl_device_report(const rl_exec *x, rl_text *out) {
    static const char *const places[] = {"not reached", "on it", "as views or moves", "on the host", "on the host for want of a kernel"};
    uint32_t n[RL_RAN_FALLBACK + 1] = {0};
    if (!x->rt->device) return;
    for (uint32_t i = 0; i < x->nstep; i++) n[x->step[i].place]++;
    rl_put(out, "%s; nodes", x->rt->device->describe(x->rt));
    for (uint32_t p = RL_RAN_DEVICE; p <= RL_RAN_FALLBACK; p++) rl_put(out, "%s %s: %u", p > RL_RAN_DEVICE ? "," : "", places[p], n[p]);
    for (uint32_t i = 0, k = 0; i < x->nstep; i++) {
        const char *type = x->step[i].info->type;
        bool known = x->step[i].place != RL_RAN_FALLBACK;
        for (uint32_t j = 0; j < i && !known; j++) known = x->step[j].place == RL_RAN_FALLBACK && x->step[j].info->type == type;
        if (!known) rl_put(out, "%s%s", k++ ? " " : " (", type);
        if (i + 1 == x->nstep && k) rl_put(out, ")");
    }
    rl_put(out, "\n");
    if (rl_device_branches(x)) rl_put(out, "branches: %s\n", rl_device_branches(x));
    rl_device_notes(x, out);
}
