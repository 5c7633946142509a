/* The certificate: right ones hold, each kind of wrong claim is refused with its reason, the file reads and prints as it was.
 *
 * The model of most tests: x arrives as [a,b,c], Relu and MatMul run on it, y leaves as [a,c,b]; one conversion. */
#include "../../src/cert.h"
#include "check.h"

#include <stdlib.h>

static const char small[] =
    "relayout.proof/1\n"
    "objective nodes\n"
    "value 0 \"x\" bytes 96 atoms 2 3 \"N\"\n"
    "value 1 \"y\\\"\\u001f\" bytes 40 atoms 2 5 4\n"
    "value 2 \"p\" bytes 8 atoms 2\n"
    "op 0 input \"x\"\n"
    "pin 0 \"x\" 0 1 2\n"
    "op 1 node \"r\" Relu\n"
    "pin 0 \"x\" 0 1 2\n"
    "pin 0 \"r\" 0 1 2\n"
    "token 0:0 1:0\n"
    "token 0:1 1:1\n"
    "token 0:2 1:2\n"
    "form 0 0 0 | 0 | 0\n"
    "op 2 node \"y\" com.acme::MatMul\n"
    "pin 0 \"r\" 0 1 2\n"
    "pin 1 \"y\" 0 2 1\n"
    "token 0:0 1:0\n"
    "token 0:1\n"
    "token 0:2 1:2\n"
    "token 1:1\n"
    "form 0 1 2 3 | 0 1 2 | 0 2 3\n"
    "form 0 1 2 3 | 0 2 1 | 0 3 2\n"
    "op 3 output \"y\"\n"
    "pin 1 \"y\" 0 1 2\n"
    "op 4 node \"i\" Abs\n"
    "pin 2 \"p\" 0\n"
    "token 0:0\n"
    "form 0 | 0\n"
    "op 5 node \"f\" \"two words\" fixed\n"
    "pin 2 \"p\" 0\n"
    "choose 1 0 0 2 1\n"
    "choose 2 1 0 1 2 3\n"
    "component 0 0 96 1 2\n"
    "outside 2\n"
    "claim 1 96 0 96\n"
    "end\n";

/* The least is what the two forms leave: [0,2,1] at x for [0,1,2] at y, or [0,1,2] at x and another order at y: one conversion of y. */
static const char *const right[] = {"component 0 1 40 1 2\n", "claim 1 96 1 40\n"};

/* text with the first `was` replaced. */
static char *replaced(const char *text, const char *was, const char *now) {
    const char *at = strstr(text, was);
    char *s = malloc(strlen(text) + strlen(now) + 1);
    if (!at || !s) {
        fprintf(stderr, "not in the text: %s\n", was);
        exit(2);
    }
    sprintf(s, "%.*s%s%s", (int)(at - text), text, now, at + strlen(was));
    return s;
}

static char *base_text(void) {
    char *a = replaced(small, "component 0 0 96 1 2\n", right[0]), *b = replaced(a, "claim 1 96 0 96\n", right[1]);
    free(a);
    return b;
}

static rl_status parse_and_check(rl_ctx *ctx, const char *text, size_t n, uint32_t maxstate, uint64_t maxwork) {
    rl_arena mem;
    rl_cert c;
    rl_arena_init(&mem, ctx);
    rl_status s = rl_cert_parse(ctx, &mem, "f", text, n, &c);
    if (s == RL_OK) s = rl_cert_check(ctx, &c, maxstate, maxwork, NULL);
    rl_arena_free(&mem);
    return s;
}

static void check_holds(const char *text, int line) {
    CHECK_CTX(ctx);
    rl_status s = parse_and_check(ctx, text, strlen(text), 1000, RL_CERT_SECOND);
    if (s != RL_OK) fprintf(stderr, "line %d: %s\n", line, ctx->error);
    CHECK(s == RL_OK);
    rl_ctx_free(ctx);
}
#define HOLDS(text) check_holds(text, __LINE__)

/* Refused, with `why` in the message. */
static void check_refused(const char *text, const char *why, int line) {
    CHECK_CTX(ctx);
    CHECK(parse_and_check(ctx, text, strlen(text), 1000, RL_CERT_SECOND) == RL_EPROOF);
    if (!strstr(ctx->error, why)) fprintf(stderr, "line %d: got '%s', wanted '%s'\n", line, ctx->error, why);
    CHECK(strstr(ctx->error, why) != NULL);
    rl_ctx_free(ctx);
}

static void check_changed(const char *was, const char *now, const char *why, int line) {
    char *base = base_text(), *text = replaced(base, was, now);
    check_refused(text, why, line);
    free(base);
    free(text);
}
#define REFUSED(was, now, why) check_changed(was, now, why, __LINE__)

/* What would take too long is not proved, and says so. */
TEST(work_is_limited) {
    CHECK_CTX(ctx);
    char *text = base_text();
    CHECK(parse_and_check(ctx, text, strlen(text), 1000, 0) == RL_EPROOF);
    CHECK(strstr(ctx->error, "component 0 (from op 1 on): not decided after 0 comparisons") != NULL);
    free(text);
    rl_ctx_free(ctx);
}

TEST(holds_and_prints) {
    CHECK_CTX(ctx);
    rl_arena mem;
    rl_cert c;
    char *text = base_text();
    HOLDS(text);
    rl_arena_init(&mem, ctx);
    CHECK(rl_cert_parse(ctx, &mem, "f", text, strlen(text), &c) == RL_OK);
    rl_text t = {.mem = &mem};
    rl_cert_print(&c, &t);
    CHECK_STR(t.p, text);
    CHECK_STR(c.value[1].name, "y\"\x1f");
    CHECK_STR(c.op[5].type, "two words");
    CHECK(c.nvalue == 3 && c.value[0].natom == 3 && c.value[0].size[2] < 0 && c.value[0].size[1] == 3);
    CHECK(c.op[2].nform == 2 && c.op[2].token[3].n[0] == 0 && c.op[2].token[3].at[1][0] == 1 && c.noutside == 2);
    rl_arena_free(&mem);
    free(text);
    rl_ctx_free(ctx);
}

TEST(wrong_sums) {
    REFUSED("claim 1 96 1 40", "claim 0 96 1 40", "the assignment");
    REFUSED("claim 1 96 1 40", "claim 1 95 1 40", "the assignment");
    REFUSED("claim 1 96 1 40", "claim 1 96 0 40", "the bound");
    REFUSED("component 0 1 40", "component 0 0 40", "the bound");
    REFUSED("choose 1 0 0 2 1", "choose 1 0 2 1 0", "the assignment");
    REFUSED("choose 2 1 0 1 2 3", "choose 2 0 0 1 2 3", "the assignment");
    REFUSED("bytes 40", "bytes 39", "the table ends");
}

/* One more conversion or byte in the component and the sum. */
TEST(wrong_bound) {
    char *base = base_text(), *a = replaced(base, "component 0 1 40", "component 0 1 41"), *b = replaced(a, "1 96 1 40", "1 96 1 41");
    check_refused(b, "1 conversions of 41 bytes are not needed: the table ends with 1 of 40", __LINE__);
    free(a);
    free(b);
    a = replaced(base, "component 0 1 40", "component 0 2 0");
    b = replaced(a, "1 96 1 40", "1 96 2 0");
    check_refused(b, "are not needed", __LINE__);
    free(a);
    free(b);
    a = replaced(base, "component 0 1 40", "component 0 1 39"); /* less than the least is true */
    b = replaced(a, "1 96 1 40", "1 96 1 39");
    HOLDS(b);
    free(a);
    free(b);
    free(base);
}

/* Kept atoms: restricted to one atom nothing is in the wrong order; then less can be claimed. */
TEST(restriction) {
    REFUSED("component 0", "keep 0 0\nkeep 1 0\ncomponent 0", "the table ends with 0 of 0");
    REFUSED("component 0", "keep 0 1 0\ncomponent 0", "keeps atom 0");
    REFUSED("component 0", "keep 0 0 3\ncomponent 0", "keeps atom 3");
    REFUSED("component 0", "keep 1 0\nkeep 0 0\ncomponent 0", "values do not rise");
    char *base = base_text(), *a = replaced(base, "component 0", "keep 1 1 2\ncomponent 0"); /* batch kept nowhere: as before */
    HOLDS(a);
    free(a);
    free(base);
}

/* Folds that are none.  In the second x is [a,b,c] for certain, but MatMul with x as [a,c,b] saves a conversion of y. */
TEST(folds) {
    REFUSED("component 0", "fold 0 0 1 2 3 4 5\ncomponent 0", "has no \"keep\" line");
    REFUSED("component 0", "keep 0 0 1\nfold 0 0\ncomponent 0", "one order for each order");
    REFUSED("component 0", "keep 0 0 1\nfold 0 0 2\ncomponent 0", "order 1 folds to 2 of 2");
    REFUSED("component 0", "keep 0 0 1\nfold 0 1 0\ncomponent 0", "order 0 folds to 1, which folds, too");
    REFUSED("component 0", "keep 0 0 1\nrefold 0 1 0\ncomponent 0", "order 0 folds to 1, which folds, too");
    REFUSED("component 0", "keep 0 0 1 2\nfold 0 1 1 2 3 4 5\ncomponent 0", "do not take configurations to configurations");
    REFUSED("component 0", "keep 0 0 1 2\nrefold 0 0 0 2 3 4 5\ncomponent 0", "do not take configurations to configurations");
    REFUSED("component 0", "keep 0 0 1 2\nrefold 0 0 1 2 3 4 5\nfold 0 0 1 2 3 4 5\ncomponent 0", "out of place");
    char *base = base_text(), *a = replaced(base, "component 0", "keep 0 0 1 2\nfold 0 0 1 2 3 4 5\nrefold 0 0 1 2 3 4 5\ncomponent 0");
    HOLDS(a);
    free(a);
    free(base);
}

TEST(structure) {
    REFUSED("pin 1 \"y\" 0 2 1", "pin 1 \"y\" 0 2 2", "no permutation");
    REFUSED("pin 1 \"y\" 0 1 2", "pin 1 \"y\" 0 1 3", "no permutation");
    REFUSED("token 1:1\n", "token 1:0\n", "has a token already");
    REFUSED("token 1:1\n", "token 1:3\n", "unknown");
    REFUSED("token 0:1\n", "token\n", "hold 2 of the 3 atoms");
    REFUSED("| 0 2 3\n", "| 0 2\n", "group 3 has a token at pin 1");
    REFUSED("| 0 2 3\n", "| 0 2 3 2\n", "twice");
    REFUSED("Relu\n", "Relu fixed\n", "is fixed, but has");
    REFUSED("choose 1 0", "choose 1 1", "no form 1");
    REFUSED("choose 1 0 0 2 1", "choose 1 0 0 2 2", "no permutation of its tokens");
    REFUSED("choose 2 1 0 1 2 3", "choose 2 1 1 0 2 3", "group after group");
    REFUSED("pin 2 \"p\" 0\ntoken", "pin 0 \"p\" 2 1 0\ntoken", "hold 1 of the 3");
    REFUSED("token 0:0\nform", "token\nform", "hold 0 of the 1");
}

/* Idle ops are taken as they stand, so their forms must agree with it. */
TEST(idle) {
    REFUSED("atoms 2\nop", "atoms 2 3\nop", "wanted 2");
    char *base = base_text(), *a = replaced(base, "bytes 8 atoms 2\n", "bytes 8 atoms 2 3\n");
    char *b = replaced(a, "pin 2 \"p\" 0\ntoken 0:0\n", "pin 2 \"p\" 0 1\ntoken 0:1,0\n"), *c = replaced(b, "pin 2 \"p\" 0\n", "pin 2 \"p\" 0 1\n");
    check_refused(c, "form 0 is not the order that stands", __LINE__);
    char *d = replaced(c, "0:1,0", "0:0,1");
    HOLDS(d);
    free(a);
    free(b);
    free(c);
    free(d);
    free(base);
}

TEST(components) {
    REFUSED("1 40 1 2\n", "1 40 1\n", "op 2 is not named by component 0");
    REFUSED("1 40 1 2\n", "1 40 1 2 2\n", "op 2 is unknown, fixed or named before");
    REFUSED("1 40 1 2\n", "1 40 1 2 3\n", "op 3 is unknown, fixed or named before");
    REFUSED("1 40 1 2\n", "1 40 1 2 4\n", "op 4 is unknown, fixed or named before");
    REFUSED("1 40 1 2\n", "1 40 1\ncomponent 1 0 0 2\n", "components 0 and 1 share value 0");
    REFUSED("component 0 1 40 1 2\n", "", "the bound");
    char *base = base_text(), *a = replaced(base, "1 40 1 2\n", "1 40 2 1\n"); /* any order will do */
    HOLDS(a);
    free(a);
    free(base);
}

TEST(objective_and_limits) {
    char *base = base_text(), *a = replaced(base, "objective nodes", "objective bytes");
    HOLDS(a); /* (40, 1) bytes first is the least, too */
    CHECK_CTX(ctx);
    CHECK(parse_and_check(ctx, base, strlen(base), 2, RL_CERT_SECOND) == RL_EPROOF && strstr(ctx->error, "more than 2 configurations"));
    CHECK(parse_and_check(ctx, base, strlen(base), 8, RL_CERT_SECOND) == RL_OK);
    REFUSED("bytes 96", "bytes 9223372036854775807", "the assignment");
    REFUSED("bytes 40", "bytes 9223372036854775807", "the sum of its weights is too large");
    free(a);
    free(base);
    rl_ctx_free(ctx);
}

TEST(refused_lines) {
    REFUSED("relayout.proof/1", "relayout.proof/2", "f:1: ");
    REFUSED("objective nodes", "objective time", "f:2: the objective");
    REFUSED("value 1 ", "value 2 ", "f:4: number 2, wanted 1");
    REFUSED("bytes 96", "bytes 096", "f:3: a number has a leading zero");
    REFUSED("bytes 96", "bytes 9223372036854775808", "f:3: a number is too large");
    REFUSED("bytes 96", "bytes -1", "f:3: a number is missing");
    REFUSED("bytes 96", "bytes  96", "f:3: ");
    REFUSED("\"N\"", "\"N", "f:3: a string");
    REFUSED("\\u001f", "\\u0000", "f:4: a string has a bad escape");
    REFUSED("\\u001f", "\\udc00", "f:4: a string has a bad escape");
    REFUSED("pin 0 \"x\" 0 1 2", "pin 3 \"x\" 0 1 2", "f:7: no such value");
    REFUSED("pin 0 \"x\" 0 1 2", "pin 0 \"x\" 0 1", "f:7: 2 numbers, wanted 3");
    REFUSED("token 0:0 1:0", "token 1:0 0:0", "f:11: no such pin");
    REFUSED("token 0:0 1:0", "token 0:0 2:0", "f:11: no such pin");
    REFUSED("form 0 0 0 | 0 | 0", "form 0 0 0 | 0", "f:14: the groups");
    REFUSED("form 0 0 0 | 0 | 0", "form 0 0 0 | 0 | 0 | 0", "f:14: more on the line");
    REFUSED("input", "entry", "f:6: the op is none of");
    REFUSED("choose 1", "choose 9", "f:32: no such op");
    REFUSED("1 40 1 2\n", "1 40 1 9\n", "f:34: no such op");
    REFUSED("1 40 1 2\n", "1 40 1 2\ncomponent 1 0 0\n", "f:35: a component has an op");
    REFUSED("outside 2\n", "", "f:35: a line out of place");
    REFUSED("end\n", "end\nend\n", "f:37: ");
    REFUSED("op 3 output", "op 4 output", "f:24: number 4, wanted 3");
}

/* The second part.  Relu and MatMul as chosen convert x (41920) and take the second form (3 tenths of 41360); the least is to convert y. */
static char *timed_text(void) {
    char *base = base_text(), *a = replaced(base, "objective nodes\n", "objective nodes\nrate 500 8192\n");
    char *b = replaced(a, "| 0 2 1 | 0 3 2\n", "| 0 2 1 | 0 3 2\ncharge 40 forms 0 0 3\n");
    char *c = replaced(b, "end\n", "time\nkeep 1 0 1 2\ncomponent 0 54328 41360 0 1 2\nclaim 54328 41360\nend\n");
    free(base);
    free(a);
    free(b);
    return c;
}

static void check_time(const char *was, const char *now, const char *why, int line) {
    char *base = timed_text(), *text = replaced(base, was, now);
    if (why) check_refused(text, why, line);
    else check_holds(text, line);
    free(base);
    free(text);
}
#define TIME_REFUSED(was, now, why) check_time(was, now, why, __LINE__)
#define TIME_HOLDS(was, now) check_time(was, now, NULL, __LINE__)

TEST(times) {
    CHECK_CTX(ctx);
    rl_arena mem;
    rl_cert c;
    char *text = timed_text();
    HOLDS(text);
    rl_arena_init(&mem, ctx);
    CHECK(rl_cert_parse(ctx, &mem, "f", text, strlen(text), &c) == RL_OK);
    rl_text t = {.mem = &mem};
    rl_cert_print(&c, &t);
    CHECK_STR(t.p, text);
    rl_cert_shown shown;
    rl_cert_show(ctx, &c, &shown);
    CHECK(shown.fewest == 1 && shown.quick == 0 && shown.open == 0); /* one conversion is the fewest */
    TIME_REFUSED("41360 0 1 2\nclaim 54328 41360", "41361 0 1 2\nclaim 54328 41361", "a time of 41361 is not needed");
    TIME_HOLDS("41360 0 1 2\nclaim 54328 41360", "41359 0 1 2\nclaim 54328 41359");
    TIME_HOLDS("41360 0 1 2", "41360 100 1 2"); /* with a price: one conversion stands, and one is needed */
    TIME_REFUSED("41360 0 1 2\nclaim 54328 41360", "41361 100 1 2\nclaim 54328 41361", "is not needed");
    rl_arena_free(&mem);
    free(text);
    rl_ctx_free(ctx);
}

TEST(wrong_times) {
    TIME_REFUSED("component 0 54328", "component 0 54327", "a component");
    TIME_REFUSED("claim 54328", "claim 54329", "the assignment");
    TIME_REFUSED("claim 54328 41360", "claim 54328 41359", "the bound");
    TIME_REFUSED("rate 500", "rate 501", "the assignment");
    TIME_REFUSED("rate 500 8192\n", "", "\"rate\" is missing");
    TIME_REFUSED("rate 500 8192", "rate 500 0", "at least 1");
    TIME_REFUSED("forms 0 0 3", "forms 0 0 4", "the assignment");
    TIME_REFUSED("forms 0 0 3", "forms 0 3", "a space and a number are missing");
    TIME_REFUSED("forms 0 0 3", "forms 0 0 1000001", "too much");
    TIME_REFUSED("charge 40", "charge 400", "the assignment");
    TIME_REFUSED("charge 40 forms 0 0 3\n", "", "the assignment");
    TIME_REFUSED("charge 40 forms 0 0 3", "charge 40 after 16 0 4", "no such token");
    TIME_REFUSED("charge 40 forms 0 0 3", "charge 40 before 16 0", "none of forms, after, last");
    TIME_REFUSED("charge 40 forms 0 0 3\n", "charge 40 forms 0 0 3\ncharge 40 forms 0 0 3\n", "a line out of place");
    TIME_REFUSED("41360 0 1 2", "41360 4398046511105 1 2", "its cost is negative or too large");
    TIME_REFUSED("41360 0 1 2", "41360 0 1", "a component");
    TIME_REFUSED("keep 1 0 1 2\n", "keep 1 0\nkeep 0 0\n", "values do not rise");
    TIME_REFUSED("keep 1 0 1 2\n", "keep 0 0\nkeep 1 0\n", "is not needed");
}

/* By the sequence of its tokens at pin 0: Relu's stand as 0 1 2 and are taken as 0 2 1. */
TEST(charges_by_place) {
    const char *relu = "form 0 0 0 | 0 | 0\n";
    TIME_REFUSED(relu, "form 0 0 0 | 0 | 0\ncharge 96 after 16 0\n", "it is 121400");
    TIME_HOLDS(relu, "form 0 0 0 | 0 | 0\ncharge 96 after 16 1\n");  /* last as taken: free; where it stands y is converted */
    TIME_REFUSED(relu, "form 0 0 0 | 0 | 0\ncharge 96 last 16 1\n", "it is 121400");
    TIME_HOLDS(relu, "form 0 0 0 | 0 | 0\ncharge 96 last 16 0\n");
}

/* No prefix of the file is a certificate, and none reads past its end. */
TEST(prefixes) {
    char *base = base_text();
    for (size_t n = 0; n < strlen(base); n++) {
        char *cut = malloc(n ? n : 1);
        CHECK_CTX(ctx);
        memcpy(cut, base, n);
        CHECK(parse_and_check(ctx, cut, n, 1000, RL_CERT_SECOND) == RL_EPROOF);
        rl_ctx_free(ctx);
        free(cut);
    }
    free(base);
}

/* The same component many times: one table, so the time is that of reading. */
TEST(many_equal) {
    enum { N = 3000 };
    CHECK_CTX(ctx);
    rl_arena mem;
    rl_arena_init(&mem, ctx);
    rl_text t = {.mem = &mem};
    rl_put(&t, "relayout.proof/1\nobjective nodes\n");
    for (uint32_t i = 0; i < N; i++) rl_put(&t, "value %u \"x\" bytes 96 atoms 2 3 4 5 6\n", i);
    for (uint32_t i = 0; i < N; i++)
        rl_put(&t, "op %u input \"x\"\npin %u \"x\" 0 1 2 3 4\nop %u node \"r\" Relu\npin %u \"x\" 4 0 1 2 3\npin %u \"x\" 0 2 1 3 4\n"
               "token 0:0 1:0\ntoken 0:1 1:2\ntoken 0:2 1:1\ntoken 0:3 1:3\ntoken 0:4 1:4\nform 0 0 0 0 0 | 0 | 0\n",
               2 * i, i, 2 * i + 1, i, i);
    for (uint32_t i = 0; i < N; i++) rl_put(&t, "component %u 1 96 %u\n", i, 2 * i + 1);
    rl_put(&t, "outside 0\nclaim %d %d %d %d\nend\n", 2 * N, 192 * N, N, 96 * N);
    CHECK(parse_and_check(ctx, t.p, t.n, 1000, RL_CERT_SECOND) == RL_OK);
    rl_ctx_free(ctx);
}

int main(void) {
    RUN(work_is_limited);
    RUN(holds_and_prints);
    RUN(wrong_sums);
    RUN(wrong_bound);
    RUN(restriction);
    RUN(folds);
    RUN(structure);
    RUN(idle);
    RUN(components);
    RUN(objective_and_limits);
    RUN(refused_lines);
    RUN(times);
    RUN(wrong_times);
    RUN(charges_by_place);
    RUN(prefixes);
    RUN(many_equal);
    return check_done();
}
