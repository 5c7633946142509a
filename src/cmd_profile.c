/* The command profile: a plan of layouts for a model, from measured costs; and --plan of run and bench. */
#include <string.h>

#include "../runtime/native_cert.h"
#include "cmd.h"
#include "cmd_profile.h"
#include "onnx_fields.h"
#include "wire.h"

/* ---- the model with its plan ---- */

static bool is_plan(const rl_field *f, rl_str name) {
    if (f->number != MODEL_METADATA || f->type != RL_WIRE_LEN) return false;
    rl_span key = rl_wire_part(f->body, ENTRY_KEY);
    return key.n == strlen(name) && rl_same_bytes(key.p, name, key.n);
}

/* IN's bytes, less the plan that it has, and the new one, if any, as one more entry of its metadata. */
static void put_model(rl_text *out, const rl_graph *g, const char *device, const rl_text *plan) {
    rl_text entry = {.mem = out->mem};
    rl_str name = rl_native_key(g->ctx, device);
    rl_wire w = rl_wire_of(rl_onnx_bytes(g));
    for (rl_field f; rl_wire_next(&w, &f);)
        if (!is_plan(&f, name)) rl_put_bytes(out, f.all.p, f.all.n);
    if (!plan) return;
    rl_wire_add_block(&entry, ENTRY_KEY, name, strlen(name));
    rl_wire_add_block(&entry, ENTRY_VALUE, plan->p, plan->n);
    rl_wire_add_block(out, MODEL_METADATA, entry.p, entry.n);
}

/* ---- the command ---- */

/* What the whole model takes decides; times in turn tell two apart by half a percent. Times of a table were not asked for. */
static bool is_slower(const rl_profile *p) {
    return p->fast && !p->table && p->plan_least_ms > 1.005 * p->default_least_ms;
}

/* The certificate, checked before anybody sees it. */
static rl_status make_proof(const rl_line *l, const rl_profile *p, rl_text *t) {
    rl_plan_cert c = {0};
    if (!p->optimal) return rl_fail(l->ctx, RL_EPROOF, "%s: the plan is not proved to take the least time", l->in);
    rl_plan_cert_print(p, t);
    RL_TRY(rl_plan_cert_parse(l->ctx, t->mem, t->p, t->n, &c));
    return rl_plan_cert_check(l->ctx, &c);
}

/* All that is written is made before any of it is. */
static rl_status report(rl_line *l, rl_graph *g, const rl_profile *p) {
    static const char no_plan[] = "oneDNN is not found: there is one layout for each value, and nothing to plan";
    rl_text table = {.mem = &g->mem}, json = table, model = table, proof = table, said = table;
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    bool slower = is_slower(p), as_is = p->fast && !p->table && p->as_is;
    if (!p->fast && (l->plan || l->proof)) return rl_fail(l->ctx, RL_ELIMIT, "%s: %s", l->in, no_plan);
    if (l->proof) RL_TRY(make_proof(l, p, &proof));
    if (l->out) put_model(&model, g, l->run.device, p->fast && !slower && !as_is ? &p->plan : NULL);
    if (l->json) rl_profile_json(p, l->in, &json);
    rl_profile_table(p, &table);
    if (!p->fast) rl_complain(l, NULL, no_plan);
    if (l->out && as_is) rl_put(&said, "nothing takes less than what runs without a plan: %s has none", l->out);
    else if (l->out && slower)
        rl_put(&said, "the plan took %.3f ms at least, and without one %.3f: %s has none", p->plan_least_ms, p->default_least_ms, l->out);
    if (said.n) rl_complain(l, NULL, said.p);
    if (l->out && !rl_is_open(l->out)) RL_TRY(rl_onnx_copy(g, l->out, rl_line_taken(l, &g->mem))); /* external data goes along */
    if (l->out) RL_TRY(rl_line_write(l, l->out, &model));
    if (l->plan) RL_TRY(rl_line_write(l, l->plan, &p->plan));
    if (l->proof) RL_TRY(rl_line_write(l, l->proof, &proof));
    if (l->json) RL_TRY(rl_line_write(l, l->json, &json));
    if (rl_line_takes_stdout(l) || !p->fast) return RL_OK;
    return rl_write_stdout(l, table.p, table.n);
}

rl_status rl_cmd_profile(rl_line *l) {
    rl_graph *g;
    double limit = l->pass.time_limit > 0 ? l->pass.time_limit : 5;
    rl_profile p = {.table = l->table, .runs = l->run.runs, .solve = rl_profile_solve, .user = &limit};
    RL_TRY(rl_line_wants_file(l, "profile"));
    if (l->out && rl_is_text(l->in)) return rl_usage_error(l, "profile -o: the plan goes into an ONNX model, and IN is text");
    RL_TRY(rl_line_check_path(l, l->json));
    RL_TRY(rl_line_check_path(l, l->plan));
    RL_TRY(rl_line_check_path(l, l->proof));
    RL_TRY(rl_line_check_path(l, l->out));
    l->run.input = l->inputs.item;
    l->run.ninput = l->inputs.n;
    rl_status s = rl_line_read(l, &g);
    if (s == RL_OK) s = rl_profile_model(g, &l->run, &p);
    rl_progress(l, NULL);
    if (s == RL_OK) s = report(l, g, &p);
    rl_graph_free(g);
    return s;
}

/* ---- --plan of others ---- */

rl_status rl_line_read_plan(rl_line *l, rl_arena *mem) {
    static const char head[] = "relayout-plan "; /* and a version, which the reader of plans knows */
    rl_text t = {.mem = mem};
    if (!l->plan) return RL_OK;
    RL_TRY(rl_line_read_text(l, l->plan, &t));
    if (t.n < strlen(head) || !rl_same_bytes(t.p, head, strlen(head)))
        return rl_fail(l->ctx, RL_EMODEL, "%s: no plan: its first line is not \"%s1\"", l->plan, head);
    l->run.plan = (rl_span){(const uint8_t *)t.p, t.n};
    return RL_OK;
}
