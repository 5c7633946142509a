/* Runs the passes of passes.def in order, and decides whether what came out is better than what went in (judge.c).
 *
 * The passes see one graph: flat.h makes it from the model's graph and the bodies in it, and it is written back after the last.
 * Where a form cannot be written, they run once more on the model's graph with its bodies closed. */
#include "functions.h"
#include "plan.h"
#include "run_pass.h"

#include <string.h>

#include "../src/expand.h"
#include "../src/shape.h"
#include "../src/stats.h"

static const char *const listed[] = {
#define PASS(name, summary) #name,
#include "passes.def"
#undef PASS
};

/* ---- the whole pipeline ---- */

static rl_status check_objective(rl_ctx *ctx, const char *name) {
    if (!name || rl_is_listed("nodes,bytes,time", name)) return RL_OK;
    return rl_fail(ctx, RL_EUSAGE, "the objective is nodes, bytes or time, not '%.64s'", name);
}

static rl_graph *main_graph(const rl_pass_run *r) { return r->trial ? r->g : rl_flat_main(r->g); }

static rl_status close_bodies(rl_pass_run *r) {
    rl_arena tmp;
    if (!r->g->flat || r->trial) return RL_OK;
    rl_arena_init(&tmp, r->g->ctx);
    rl_status s = rl_flat_write_back(r->g, &tmp);
    rl_arena_free(&tmp);
    r->g = rl_flat_main(r->g);
    return s;
}

static rl_status infer_written(rl_pass_run *r) {
    return r->calls ? rl_calls_infer(r->calls, r->g) : rl_shape_infer(r->g);
}

static const char *const replan[] = {"legal", "assign", "pick", "insert", "lower", "dce"};

static rl_status again(rl_pass_run *r);
static rl_status move_last(rl_pass_run *r);

/* The graph is tried out on copies of it. */
enum { TRY_PICKED, TRY_PLAINLY, TRY_AS_IT_STANDS, NTRY };

static rl_passopt quiet_of(const rl_pass_run *r) {
    rl_passopt quiet = *r->opt;
    quiet.print_after = NULL;
    return quiet;
}

static void start_trial(rl_pass_run *r, const rl_passopt *opt, rl_pass_run *t, rl_outcome *out) {
    *t = *r;
    *out = *r->out;
    t->opt = opt;
    t->out = out;
    t->g = rl_flat_copy(r->g);
    t->trial = true;
    t->round = RL_MAX(r->round, 1u);
}

static void end_trial(rl_pass_run *r, const rl_outcome *out) {
    memcpy(r->out->time, out->time, sizeof out->time);
    r->out->ntime = out->ntime;
}

/* A plan with picked results in view, one without, or none, and all that comes after it. */
static rl_status try_one(rl_pass_run *r, const rl_passopt *opt, int which, rl_pass_run *t, rl_outcome *out) {
    start_trial(r, opt, t, out);
    t->plainly = which == TRY_PLAINLY;
    for (size_t i = 0; i < RL_LEN(replan) && which != TRY_AS_IT_STANDS && !t->gave_up; i++)
        if (!rl_pass_disabled(t->opt, replan[i])) RL_TRY(rl_run_pass(t, replan[i]));
    if (!t->gave_up && which != TRY_AS_IT_STANDS) RL_TRY(again(t));
    if (!t->gave_up) RL_TRY(move_last(t));
    end_trial(r, out);
    return RL_OK;
}

/* Has the graph Transposes that movement folds as it stands?  A plan that is carried out first may leave them where it cannot. */
static rl_status folds_before(rl_pass_run *r, bool *folds) {
    const rl_passopt quiet = quiet_of(r);
    rl_pass_run t;
    rl_outcome out;
    rl_stats was, now;
    rl_arena mem;
    rl_stats_of(r->g, &was);
    rl_arena_init(&mem, r->g->ctx);
    start_trial(r, &quiet, &t, &out);
    t.tmp = &mem; /* r->plan goes on */
    t.plan = NULL;
    rl_status s = rl_run_pass(&t, "movement");
    rl_arena_free(&mem);
    end_trial(r, &out);
    rl_stats_of(t.g, &now);
    *folds = s == RL_OK && now.moving < was.moving;
    return s;
}

static bool is_same(const rl_stats *a, const rl_stats *b) {
    return a->transposes == b->transposes && a->moving == b->moving && a->moved_bytes == b->moved_bytes &&
           rl_stats_others(a) == rl_stats_others(b) && rl_stats_other_bytes(a) == rl_stats_other_bytes(b);
}

/* No plan says what movement then makes of it: those for which there is a reason are carried out, and the result with the fewest Transposes is
 * written, the plain one where as few are left of it. */
static rl_status try_all(rl_pass_run *r, bool folds) {
    const rl_passopt quiet = quiet_of(r);
    static const int turn[NTRY] = {TRY_PLAINLY, TRY_PICKED, TRY_AS_IT_STANDS};
    rl_pass_run t[NTRY], *best = NULL;
    rl_outcome out[NTRY];
    rl_stats was, left[NTRY];
    rl_graph *main = r->g;
    bool picked = r->picked;
    r->picked = false;
    r->plan = NULL;
    rl_arena_free(r->tmp);
    rl_stats_of(main, &was);
    for (int i = 0; i < NTRY; i++) {
        int k = turn[i];
        if ((k == TRY_PICKED && !picked) || (k == TRY_AS_IT_STANDS && !folds)) continue;
        RL_TRY(try_one(r, &quiet, k, &t[k], &out[k]));
        rl_stats_of(t[k].g, &left[k]);
        if (!t[k].gave_up && (!best || left[k].moving < left[best - t].moving)) best = &t[k];
    }
    r->gave_up = !best;
    r->out->rewrote = best && !is_same(&was, &left[best - t]);
    r->plainly = best == &t[TRY_PLAINLY] && !r->out->rewrote;
    if (!r->out->rewrote) return RL_OK;
    r->anew |= best->anew;
    r->out->improved |= best->out->improved;
    r->out->apart = best->out->apart;
    r->g = best->g;
    rl_status s = close_bodies(r);
    r->g = main;
    return s;
}

/* What was written may show atoms and constants that the input hid.  So the plan is made again, at most three times, and
 * carried out as the first: where it is cheaper, or has fewer conversions than there are Transposes.  The conversions before stay those
 * of the input. */
static rl_status again(rl_pass_run *r) {
    rl_outcome *out = r->out;
    if (r->opt->print_after || rl_pass_disabled(r->opt, "lower") || rl_pass_disabled(r->opt, "dce")) return RL_OK;
    for (uint32_t round = 0; round < 3 && out->rewrote && !r->large && !r->picked && !r->gave_up; round++) {
        int64_t before = out->conv_before, time_before = out->time_before;
        out->rewrote = false;
        r->led = NULL;
        r->round = round + 1;
        RL_TRY(infer_written(r));
        if (!r->closed) r->g = rl_flat_make(r->g);
        for (size_t i = 0; i < RL_LEN(replan) && !r->gave_up; i++) {
            if (rl_pass_disabled(r->opt, replan[i])) continue;
            RL_TRY(rl_run_pass(r, replan[i]));
            r->anew |= i > 0 && out->improved;
            if (!r->picked || r->trial) continue;
            RL_TRY(try_all(r, false));
            break;
        }
        out->conv_before = before;
        out->time_before = time_before;
        r->plan = NULL;
        rl_arena_free(r->tmp);
        if (r->gave_up || !out->rewrote) r->g = main_graph(r);
        else RL_TRY(close_bodies(r));
    }
    return RL_OK;
}

static rl_status run_once(rl_pass_run *r) {
    bool folds = false;
    if (!r->closed) r->g = rl_flat_make(r->g);
    for (size_t i = 0; i < RL_LEN(listed) && !r->gave_up; i++) {
        if (rl_pass_disabled(r->opt, listed[i]) || rl_is_listed("movement,units", listed[i])) continue;
        RL_TRY(rl_run_pass(r, listed[i]));
        if (strcmp(listed[i], "pick") != 0) continue;
        if (!r->picked && r->out->improved && rl_may_try(r)) RL_TRY(folds_before(r, &folds));
        if (r->picked || folds) return try_all(r, folds);
    }
    return r->gave_up ? RL_OK : close_bodies(r);
}

/* Once more, printing nothing: it has been printed. */
static rl_status quietly(rl_pass_run *r, rl_status (*what)(rl_pass_run *r)) {
    const rl_passopt *opt = r->opt, quiet = quiet_of(r);
    r->opt = &quiet;
    rl_status s = what(r);
    r->opt = opt;
    return s;
}

/* After a form that could not be written: the model's graph is as it was. */
static void give_up_flat(rl_pass_run *r) {
    r->g = rl_flat_main(r->g);
    r->plan = NULL;
    rl_arena_free(r->tmp);
    r->gave_up = false;
    r->closed = r->g->closed = true;
}

static rl_status run_all(rl_pass_run *r) {
    const rl_graph *g = r->g;
    RL_TRY(run_once(r));
    if (!r->gave_up || !(g->kept && g->kept->flat)) return RL_OK;
    give_up_flat(r);
    rl_status s = quietly(r, run_once);
    r->out->proof.checked = false; /* with its bodies open the model may need fewer */
    r->out->proof.why = rl_internz(r->g->ctx, "a form could not be written, so bodies stayed as they are");
    return s;
}

static rl_status move_once(rl_pass_run *r) {
    if (!r->closed) r->g = rl_flat_make(r->g);
    RL_TRY(rl_run_pass(r, "movement"));
    if (r->out->moved) return close_bodies(r);
    r->g = main_graph(r);
    return RL_OK;
}

/* After all layouts are chosen: its forms would take freedom from them.  What it wrote may show more, to itself and to them.  What was
 * said of the choice stays said of it, unless the layouts are then chosen anew. */
static rl_status move_last(rl_pass_run *r) {
    int64_t chosen = r->out->conv_after;
    r->anew = false;
    if (!r->gave_up) RL_TRY(infer_written(r));
    for (uint32_t round = 0; round < 4 && !r->gave_up && !rl_pass_disabled(r->opt, "movement"); round++) {
        RL_TRY(move_once(r));
        if (!r->out->moved || r->opt->print_after) break;
        r->out->rewrote = true;
        r->large = r->picked = false; /* there is less of it */
        RL_TRY(again(r));
    }
    if (r->picked && !r->gave_up) RL_TRY(move_once(r));
    if (!r->anew) r->out->conv_after = chosen;
    return RL_OK;
}

/* With its bodies open. */
static rl_status run_open(rl_pass_run *r) {
    const rl_outcome kept = *r->out;
    rl_graph *g = r->g;
    RL_TRY(infer_written(r));
    r->closed = g->closed = false;
    r->round = 0;
    RL_TRY(run_once(r));
    if (r->gave_up) give_up_flat(r);
    r->out->proof = kept.proof;
    r->out->conv_before = kept.conv_before;
    if (r->closed) {
        r->out->conv_after = kept.conv_after;
        return RL_OK;
    }
    RL_TRY(again(r));
    RL_TRY(move_last(r));
    if (r->out->conv_after >= kept.conv_after) return RL_OK;
    r->out->proof.checked = false;
    r->out->proof.why = rl_internz(g->ctx, "a body was closed when it was made, and the model needs fewer with it open");
    return RL_OK;
}

/* Writes out branches that are taken.  taken: some of them were closed, as their sizes contradict each other. */
static rl_status write_branches(rl_pass_run *r, bool *taken) {
    bool any, doubtful = rl_flat_doubtful(r->g);
    RL_TRY(rl_expand_branches(r->g, &any));
    *taken = any && doubtful;
    if (!any) return RL_OK;
    RL_TRY(rl_pass_dce(r)); /* the condition */
    return infer_written(r);
}

/* What was written with closed bodies may be one whose forms can be written with open ones; else the next run would find that. */
static rl_status reopen(rl_pass_run *r) {
    bool taken;
    if (r->gave_up) return RL_OK;
    RL_TRY(write_branches(r, &taken));
    return r->closed || taken ? quietly(r, run_open) : RL_OK;
}

/* Where it made two nodes one that the choice saw apart, the choice is made again: else the next run would find fewer. */
static rl_status stand_in_units(rl_pass_run *r) {
    enum { MOST = 2 };
    for (uint32_t round = 0; !r->gave_up && !rl_pass_disabled(r->opt, "units"); round++) {
        r->joined = false;
        RL_TRY(rl_run_pass(r, "units"));
        if (!r->joined || round == MOST || r->opt->print_after) break;
        r->out->rewrote = true;
        RL_TRY(again(r));
    }
    return RL_OK;
}

/* One graph whose types are inferred, with its bodies. */
static rl_status improve(rl_pass_run *r) {
    int64_t time = 0;
    rl_stats_of(r->g, &r->out->before);
    r->out->steps_before = rl_steps_now(r);
    if (rl_by_objective(r, "time")) RL_TRY(rl_time_now(r, !rl_pass_disabled(r->opt, "normalize"), &time));
    r->out->time_before = time;
    RL_TRY(run_all(r));
    RL_TRY(again(r));
    RL_TRY(move_last(r));
    RL_TRY(reopen(r));
    RL_TRY(stand_in_units(r));
    if (rl_by_objective(r, "time") && !r->gave_up && !rl_pass_disabled(r->opt, "lower")) RL_TRY(rl_time_now(r, false, &r->out->time_after));
    r->out->time_before = time; /* as it was read; what assign says of it is after fold */
    rl_judge(r);
    return r->out->changed ? rl_pass_verify(r, "dce") : RL_OK; /* never a broken file, whatever a pass did */
}

static void add_outcome(rl_outcome *to, const rl_outcome *o) {
    to->conv_before += o->conv_before;
    to->conv_after += o->conv_after;
    to->time_before += o->time_before;
    to->time_after += o->time_after;
    to->time_bound += o->time_bound;
    to->proved = RL_MIN(to->proved, o->proved); /* each has a certificate of its own in the file */
    to->conv_bound = to->proved ? to->conv_bound + o->conv_bound : 0;
    to->outside += o->outside;
    rl_cert_show_add(&to->shown, &o->shown);
    to->bytes_bound = to->proved ? to->bytes_bound + o->bytes_bound : 0;
    to->improved |= o->improved;
    to->changed |= o->changed;
    rl_stats_add(&to->before, &o->before);
    rl_stats_add(&to->after, &o->after);
    for (uint32_t i = 0; i < o->ntime; i++) rl_pass_took(to, o->time[i].pass, rl_seconds() - o->time[i].seconds);
}

rl_status rl_infer_model(rl_pass_run *r, rl_callsites *as_read) {
    if (r->g->function.n) r->calls = rl_calls_of(r->g, &r->g->mem);
    RL_TRY(rl_pass_infer(r));
    if (r->calls) RL_TRY(rl_calls_infer_all(r->calls, as_read, r->tmp));
    rl_arena_free(r->tmp);
    return RL_OK;
}

/* One function by itself, whose types are given.  text: its part of the certificate's file. */
static rl_status improve_function(const rl_pass_run *r, uint32_t k, rl_text *text) {
    rl_graph *g = r->g->function.p[k];
    rl_passopt quiet = *r->opt;
    rl_outcome out = {0};
    quiet.print_after = NULL;
    RL_TRY(improve(&(rl_pass_run){.g = g, .opt = &quiet, .target = r->target, .tmp = r->tmp, .out = &out, .solved = r->solved}));
    add_outcome(r->out, &out);
    if (out.proved == RL_PROVED_NOT && out.proof.why) r->out->proof.why = out.proof.why;
    *text = out.proof.text[0];
    return RL_OK;
}

/* The functions, each after those that call it: its types are those of the calls that will be in the file.  Not where an input or output
 * of the graph has another order: then its bytes are not what is written for a graph that is no better. file: of the certificate. */
static rl_status improve_functions(rl_pass_run *r, rl_callsites as_read, rl_text *file) {
    const uint32_t *order;
    rl_arena *mem = &r->g->mem;
    if (!r->calls || r->g->turned.n) return RL_OK;
    RL_TRY(rl_calls_written(r->calls, r->out->changed ? r->g : NULL, as_read, r->tmp));
    rl_arena_free(r->tmp);
    uint32_t n = rl_calls_order(r->calls, &order);
    rl_text *text = rl_new(mem, rl_text, r->g->function.n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = order[i];
        rl_graph *g = r->g->function.p[k];
        if (!rl_calls_any(r->calls, k)) continue; /* nor are those that it calls, by it */
        rl_calls_give(r->calls, k);
        rl_callsites own = rl_calls_in(r->calls, g, mem);
        bool kept = g->doubtful;
        if (!kept) RL_TRY(improve_function(r, k, &text[k]));
        if (!kept && !g->as_read) {
            RL_TRY(rl_shape_infer(g));
            own = rl_calls_in(r->calls, g, mem);
        }
        rl_calls_add(r->calls, own);
    }
    for (uint32_t k = 0; k < r->g->function.n; k++) {
        if (text[k].n == 0) continue;
        rl_cert_print_function(k, r->g->function.p[k]->domain, r->g->function.p[k]->name, file);
        rl_put_bytes(file, text[k].p, text[k].n);
    }
    return RL_OK;
}

static rl_status optimize(rl_pass_run *r, void *unused) {
    (void)unused;
    rl_callsites as_read = {0};
    RL_TRY(rl_pass_check_names(r->g->ctx, r->opt->disable));
    if (r->opt->print_after && strcmp(r->opt->print_after, "shapes") != 0) RL_TRY(rl_pass_check_names(r->g->ctx, r->opt->print_after));
    RL_TRY(rl_infer_model(r, &as_read));
    RL_TRY(improve(r));
    rl_text file = {.mem = &r->g->mem}, *graph = &r->out->proof.text[0];
    rl_cert_print_head(rl_by_objective(r, "bytes"), &file);
    if (graph->n) rl_put_bytes(&file, graph->p, graph->n);
    RL_TRY(improve_functions(r, as_read, &file));
    rl_put(&file, "end\n");
    *graph = file;
    return RL_OK;
}

static rl_status run_list(rl_pass_run *r, void *what) {
    const char *list = *(const char **)what;
    RL_TRY(rl_pass_check_names(r->g->ctx, list));
    RL_TRY(rl_pass_infer(r));
    if (list && *list) r->g = rl_flat_make(r->g);
    for (const char *s = list ? list : ""; *s && !r->gave_up;) {
        size_t n = strcspn(s, ",");
        RL_TRY(rl_run_pass(r, s));
        s += n + (s[n] == ',');
    }
    return r->gave_up ? RL_OK : close_bodies(r);
}

rl_status rl_run_job(rl_graph *g, const rl_passopt *o, rl_outcome *out, rl_status (*job)(rl_pass_run *r, void *what), void *what) {
    rl_arena tmp, keep;
    *out = (rl_outcome){0};
    if (RL_PROTECT(g->ctx)) return RL_ENOMEM;
    rl_arena_init(&tmp, g->ctx);
    rl_arena_init(&keep, g->ctx);
    double solved = 0;
    rl_pass_run r = {.g = g, .opt = o, .tmp = &tmp, .out = out, .solved = &solved};
    rl_status s = check_objective(g->ctx, o->objective);
    if (s == RL_OK) s = rl_target_find(&keep, o->target ? o->target : "generic", &r.target);
    if (s == RL_OK) s = job(&r, what);
    if (s == RL_OK) s = rl_alike_restore(g);
    rl_arena_free(&tmp);
    rl_arena_free(&keep);
    return s;
}

rl_status rl_optimize(rl_graph *g, const rl_passopt *o, rl_outcome *out) {
    rl_op_warn(g);
    return rl_run_job(g, o, out, optimize, NULL);
}

rl_status rl_run_passes(rl_graph *g, const char *comma_list, const rl_passopt *o, rl_outcome *out) {
    return rl_run_job(g, o, out, run_list, &comma_list);
}

/* The problem of one graph whose types are inferred. */
static rl_status restate_graph(rl_pass_run *r, const rl_cert *c, rl_text *text) {
    r->g = rl_flat_make(r->g);
    for (const char *const *name = (const char *const[]){"normalize", "fold", "legal", NULL}; *name; name++)
        RL_TRY(rl_run_pass(r, *name));
    rl_prove_problem(r, c->bytes_first, c->rate > 0, text);
    r->plan = NULL;
    rl_arena_free(r->tmp);
    return RL_OK;
}

typedef struct { rl_graph *written; const rl_cert *cert; rl_text *text; } problem;

/* Are its nodes those of the file that was optimized? Then the types of its calls are those that all of them agree on, read or not. */
static bool is_as_read(const rl_graph *written, const rl_graph *g) {
    bool same = written->order.n == g->order.n;
    for (uint32_t k = 0; k < g->order.n && same; k++) {
        rl_span a = rl_nod(g, g->order.p[k])->raw, b = rl_nod(written, written->order.p[k])->raw;
        same = a.n == b.n && rl_same_bytes(a.p, b.p, a.n);
    }
    return same;
}

static rl_status restate(rl_pass_run *r, void *what) {
    const problem *p = what;
    rl_graph *g = r->g;
    rl_callsites as_read = {0}, of_written = {0};
    rl_pass_run w = {.g = p->written, .opt = r->opt, .target = r->target, .tmp = r->tmp, .out = r->out};
    p->written->as_read = is_as_read(p->written, g);
    RL_TRY(rl_infer_model(&w, &of_written));
    if (p->cert->nfunction) RL_TRY(rl_calls_settle(w.calls, p->written, of_written, r->tmp)); /* its functions were written for all calls in it */
    RL_TRY(rl_infer_model(r, &as_read));
    RL_TRY(restate_graph(r, p->cert, &p->text[0]));
    if (p->cert->nfunction) RL_TRY(rl_calls_settle(r->calls, p->written, as_read, r->tmp));
    rl_arena_free(r->tmp);
    for (uint32_t i = 0; i < p->cert->nfunction; i++) {
        r->g = g->function.p[p->cert->function[i].index];
        if (r->g->doubtful) return rl_fail(g->ctx, RL_EPROOF, "function '%.100s': its types contradict each other, so nothing can be said of it", r->g->name);
        RL_TRY(restate_graph(r, p->cert->function[i].cert, &p->text[1 + i]));
    }
    return RL_OK;
}

rl_status rl_restate(rl_graph *g, rl_graph *written, const rl_passopt *o, const rl_cert *c, rl_text *text) {
    rl_outcome ignored;
    return rl_run_job(g, o, &ignored, restate, &(problem){written, c, text});
}
