/* Prints a certificate's file (docs/proof.md, section 3; cert_read.c reads it).  What is printed reads as the same certificate, and
 * prints as the same bytes again. */
#include "cert_internal.h"

#include <inttypes.h>
#include <string.h>

const char *const rl_cert_rule_name[RL_CERT_NRULE] = {"", "forms", "after", "last"};
const char *const rl_cert_kind_name[RL_CERT_NKIND] = {"input", "output", "captured", "reads", "node"};

static void put_string(rl_text *t, const char *s) {
    rl_put_bytes(t, "\"", 1);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') rl_put(t, "\\%c", c);
        else if (c < 0x20 || c == 0x7f) rl_put(t, "\\u%04x", c);
        else rl_put_bytes(t, s, 1);
    }
    rl_put_bytes(t, "\"", 1);
}

bool rl_cert_is_word_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == ':' || c == '-';
}

static bool is_word(const char *s) {
    for (const char *c = s; *c; c++)
        if (!rl_cert_is_word_byte(*c)) return false;
    return *s != 0;
}

static void put_numbers(rl_text *t, const uint8_t *x, size_t n) {
    for (size_t i = 0; i < n; i++) rl_put(t, " %u", x[i]);
}

static void print_value(const rl_cert *c, uint32_t i, rl_text *t) {
    const rl_cert_value *v = &c->value[i];
    rl_put(t, "value %u ", i);
    put_string(t, v->name);
    rl_put(t, " bytes %" PRId64 " atoms", v->bytes);
    for (uint32_t a = 0; a < v->natom; a++) {
        rl_put_bytes(t, " ", 1);
        if (v->size[a] < 0) put_string(t, v->symbol[a]);
        else rl_put(t, "%" PRId64, v->size[a]);
    }
    rl_put_bytes(t, "\n", 1);
}

static void print_token(const rl_cert_op *op, const rl_cert_token *k, rl_text *t) {
    rl_put(t, "token");
    for (uint32_t p = 0; p < op->npin; p++)
        for (uint32_t a = 0; a < k->n[p]; a++) a ? rl_put(t, ",%u", k->at[p][a]) : rl_put(t, " %u:%u", p, k->at[p][a]);
    rl_put_bytes(t, "\n", 1);
}

static void print_form(const rl_cert_op *op, const rl_cert_form *f, rl_text *t) {
    rl_put(t, "form");
    put_numbers(t, f->group, op->ntoken);
    for (uint32_t p = 0; p < op->npin; p++) {
        rl_put(t, " |");
        put_numbers(t, f->seq + f->start[p], f->start[p + 1] - f->start[p]);
    }
    rl_put_bytes(t, "\n", 1);
}

/* "charge 96 forms 0 15 15", "charge 96 after 16 0 2", "charge 96 last 2 1": bytes, rule, what it stands for, forms or tokens. */
static void print_charge(const rl_cert_op *op, rl_text *t) {
    const rl_cert_charge *x = &op->charge;
    if (x->rule == RL_CERT_FREE) return;
    rl_put(t, "charge %" PRId64 " %s %" PRId64, x->bytes, rl_cert_rule_name[x->rule], x->tenths);
    for (uint32_t k = 0; k < op->nform && x->rule == RL_CERT_FORMS; k++) rl_put(t, " %" PRId64, x->form[k]);
    for (uint32_t k = 0; k < op->ntoken && x->rule != RL_CERT_FORMS; k++)
        if (x->marked[k]) rl_put(t, " %u", k);
    rl_put_bytes(t, "\n", 1);
}

static void print_pins(const char *what, const rl_cert_op *op, const bool *pin, rl_text *t) {
    rl_put(t, "%s", what);
    for (uint32_t p = 0; p < op->npin; p++)
        if (pin[p]) rl_put(t, " %u", p);
    rl_put_bytes(t, "\n", 1);
}

static void print_op(const rl_cert *c, uint32_t i, rl_text *t) {
    const rl_cert_op *op = &c->op[i];
    rl_put(t, "op %u %s ", i, rl_cert_kind_name[op->kind]);
    put_string(t, op->name);
    if (op->kind == RL_CERT_NODE) {
        rl_put_bytes(t, " ", 1);
        if (is_word(op->type)) rl_put_bytes(t, op->type, strlen(op->type));
        else put_string(t, op->type);
        if (op->fixed) rl_put(t, " fixed");
    }
    rl_put_bytes(t, "\n", 1);
    for (uint32_t p = 0; p < op->npin; p++) {
        rl_put(t, "pin %u ", op->pin[p].value);
        put_string(t, op->pin[p].tensor);
        put_numbers(t, op->pin[p].stands, c->value[op->pin[p].value].natom);
        rl_put_bytes(t, "\n", 1);
    }
    for (uint32_t k = 0; k < op->ntoken; k++) print_token(op, &op->token[k], t);
    for (uint32_t k = 0; k < op->nform; k++) print_form(op, &op->form[k], t);
    print_charge(op, t);
    if (op->swaps) print_pins("swaps", op, op->swaps, t);
}

/* "swap 8 0 1 0 2 | 1": op, form, tokens, pins. */
static void print_swaps(const rl_cert *c, rl_text *t) {
    for (uint32_t k = 0; k < c->nswap; k++) {
        const rl_cert_op *op = &c->op[c->swap[k].op];
        rl_put(t, "swap %u %u", c->swap[k].op, c->swap[k].form);
        put_numbers(t, c->swap[k].perm, op->ntoken);
        print_pins(" |", op, c->swap[k].pin, t);
    }
}

static void print_fold(rl_text *t, const char *word, uint32_t v, const uint16_t *fold, uint32_t nkeep) {
    if (!fold) return;
    rl_put(t, "%s %u", word, v);
    for (uint32_t k = 0; k < rl_cert_norder(nkeep); k++) rl_put(t, " %u", fold[k]);
    rl_put_bytes(t, "\n", 1);
}

static void print_kept(const rl_cert *c, rl_text *t) {
    for (uint32_t v = 0; v < c->nvalue; v++) {
        if (!c->value[v].keep) continue;
        rl_put(t, "keep %u", v);
        put_numbers(t, c->value[v].keep, c->value[v].nkeep);
        rl_put_bytes(t, "\n", 1);
    }
    for (uint32_t v = 0; v < c->nvalue; v++) print_fold(t, "fold", v, c->value[v].fold, c->value[v].nkeep);
    for (uint32_t v = 0; v < c->nvalue; v++) print_fold(t, "refold", v, c->value[v].refold, c->value[v].nkeep);
}

/* A line for each value that a span weighs. */
static void print_spans(const rl_cert_part *p, rl_text *t) {
    if (p->nspan) rl_put(t, "spans %" PRId64 "\n", p->conversion);
    for (uint32_t i = 0; i < p->nspan; i++) {
        const rl_cert_span *x = &p->span[i];
        rl_put(t, "span %u %" PRId64, x->nop, x->least);
        for (uint32_t k = 0; k < x->nweigh; k++) {
            if (k == 0 || x->weigh[k - 1].value != x->weigh[k].value) rl_put(t, "\nweigh %u", x->weigh[k].value);
            rl_put(t, " %u %" PRId64, x->weigh[k].order, x->weigh[k].weight);
        }
        rl_put_bytes(t, "\n", 1);
    }
}

static void print_parts(const rl_cert *c, rl_text *t) {
    for (uint32_t k = 0; k < c->npart; k++) {
        const rl_cert_part *p = &c->part[k];
        if (c->by_time) rl_put(t, "component %u %" PRId64 " %" PRId64 " %" PRId64, k, p->cost, p->least.count, p->price);
        else rl_put(t, "component %u %" PRId64 " %" PRId64, k, p->least.count, p->least.bytes);
        if (p->swaps) rl_put(t, " swaps");
        for (uint32_t i = 0; i < p->nop; i++) rl_put(t, " %u", p->op[i]);
        rl_put_bytes(t, "\n", 1);
        print_spans(p, t);
    }
}

void rl_cert_print_head(bool bytes_first, rl_text *t) {
    rl_put(t, RL_CERT_HEAD "\nobjective %s\n", bytes_first ? "bytes" : "nodes");
}

void rl_cert_print_function(uint32_t index, const char *domain, const char *name, rl_text *t) {
    rl_put(t, "function %u ", index);
    put_string(t, domain);
    rl_put_bytes(t, " ", 1);
    put_string(t, name);
    rl_put_bytes(t, "\n", 1);
}

void rl_cert_print_graph(const rl_cert *c, rl_text *t) {
    if (c->rate) rl_put(t, "rate %" PRId64 " %" PRId64 "\n", c->fixed, c->rate);
    for (uint32_t v = 0; v < c->nvalue; v++) print_value(c, v, t);
    for (uint32_t i = 0; i < c->nop; i++) print_op(c, i, t);
    for (uint32_t i = 0; i < c->nop; i++) {
        if (c->op[i].chosen == RL_NONE) continue;
        rl_put(t, "choose %u %u", i, c->op[i].chosen);
        put_numbers(t, c->op[i].perm, c->op[i].ntoken);
        rl_put_bytes(t, "\n", 1);
    }
    print_kept(c, t);
    print_parts(c, t);
    rl_put(t, "outside %u\nclaim %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", c->noutside, c->cost.count, c->cost.bytes, c->bound.count,
           c->bound.bytes);
    if (c->time) {
        rl_put(t, "time\n");
        print_swaps(c->time, t);
        print_kept(c->time, t);
        print_parts(c->time, t);
        rl_put(t, "claim %" PRId64 " %" PRId64 "\n", c->time->cost.count, c->time->bound.count);
    }
}

void rl_cert_print(const rl_cert *c, rl_text *t) {
    rl_cert_print_head(c->bytes_first, t);
    rl_cert_print_graph(c, t);
    for (uint32_t i = 0; i < c->nfunction; i++) {
        rl_cert_print_function(c->function[i].index, c->function[i].domain, c->function[i].name, t);
        rl_cert_print_graph(c->function[i].cert, t);
    }
    rl_put(t, "end\n");
}
