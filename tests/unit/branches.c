/* branches.h: what a step comes after, and whether that is enough, against all that was noted. */
#include "../../runtime/branches.h"
#include "check.h"

static char room[4096];

/* The step at work reads bytes `from` and `too` (-1: nothing) and writes `to`; it comes after n steps, these. */
static uint32_t run_step(rl_branches *b, int from, int too, int to, const uint32_t **before) {
    if (from >= 0) rl_branches_note(b, room + from, 1, false);
    if (too >= 0) rl_branches_note(b, room + too, 1, false);
    uint32_t n = rl_branches_before(b, before);
    if (to >= 0) rl_branches_note(b, room + to, 1, true);
    rl_branches_done(b, to >= 0);
    return n;
}

/* a and b beside each other, c after a, y after b and c, z after y alone though it reads a, too; what did nothing has no number. */
TEST(diamond) {
    CHECK_CTX(ctx)
    rl_branches *b = rl_branches_new(ctx);
    const uint32_t *before;
    uint32_t nstep, longest;
    CHECK(run_step(b, -1, -1, 0, &before) == 0);                                         /* 0: a */
    CHECK(run_step(b, -1, -1, 1, &before) == 0);                                         /* 1: b */
    CHECK(run_step(b, 0, 1, -1, &before) == 2);                                          /* a view */
    CHECK(run_step(b, 0, -1, 2, &before) == 1 && before[0] == 0);                        /* 2: c */
    CHECK(run_step(b, 1, 2, 3, &before) == 2 && before[0] + before[1] == 1 + 2);         /* 3: y */
    CHECK(run_step(b, 0, 3, 4, &before) == 1 && before[0] == 3);                         /* 4: z */
    rl_branches_count(b, &nstep, &longest);
    CHECK(nstep == 5 && longest == 4 && rl_branches_hold(b));
    rl_branches_free(b);
    rl_ctx_free(ctx);
}

/* A byte that is written again: right where who read it comes before, wrong where nothing says so. */
TEST(written_again) {
    CHECK_CTX(ctx)
    for (int apart = 0; apart < 2; apart++) {
        rl_branches *b = rl_branches_new(ctx);
        const uint32_t *before;
        run_step(b, -1, -1, 0, &before);
        run_step(b, 0, -1, 1, &before);
        run_step(b, apart ? 0 : 1, -1, 2, &before);
        run_step(b, 2, -1, 0, &before);
        CHECK(rl_branches_hold(b) == !apart);
        rl_branches_free(b);
    }
    rl_ctx_free(ctx);
}

/* Random steps, each of which writes bytes of its own: what they come after has, followed back, all that they read, and no step that another one has. */
TEST(random_steps) {
    enum { STEPS = 150 };
    static bool reaches[STEPS][STEPS];
    CHECK_CTX(ctx)
    uint32_t seed = 3, wrong = 0, once = 0;
    for (int round = 0; round < 40; round++) {
        rl_branches *b = rl_branches_new(ctx);
        uint32_t nstep, longest;
        memset(reaches, 0, sizeof reaches);
        for (uint32_t i = 0; i < STEPS; i++) {
            const uint32_t *before;
            int from = i ? (int)(check_random(&seed) % i) : -1, too = i && check_random(&seed) % 2 ? (int)(check_random(&seed) % i) : -1;
            uint32_t n = run_step(b, from, too, (int)i, &before);
            for (uint32_t k = 0; k < n; k++) {
                reaches[i][before[k]] = true;
                for (uint32_t j = 0; j < STEPS; j++) reaches[i][j] |= reaches[before[k]][j];
                for (uint32_t j = 0; j < n; j++) wrong += reaches[before[j]][before[k]];
            }
            wrong += (from >= 0 && !reaches[i][from]) || (too >= 0 && !reaches[i][too]);
        }
        rl_branches_count(b, &nstep, &longest);
        CHECK(nstep == STEPS && longest < STEPS && rl_branches_hold(b));
        run_step(b, -1, -1, (int)(check_random(&seed) % STEPS), &(const uint32_t *){NULL}); /* another one's byte */
        once += rl_branches_hold(b);
        rl_branches_free(b);
    }
    CHECK(wrong == 0 && once == 0);
    rl_ctx_free(ctx);
}

int main(void) {
    RUN(diamond);
    RUN(written_again);
    RUN(random_steps);
    return check_done();
}
