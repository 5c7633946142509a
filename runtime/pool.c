/* A pool of threads and its parallel-for: see rt.h.
 *
 * The pieces of a loop are cut before it starts, equal but for one index, one or more per thread; threads take them by number.
 * The caller's thread works too.  A loop started inside a loop runs in its thread alone. */
#include <pthread.h>
#include <stdlib.h>

#include "rt.h"

enum { PIECES = 4 }; /* per thread, so that a slow one does not hold the others */

typedef struct { rl_range_fn *fn; void *arg; int64_t n, npiece, next, done; } loop;

struct rl_pool {
    pthread_mutex_t lock;
    pthread_cond_t work, idle;
    pthread_t *thread;
    uint32_t nthread; /* without the caller's */
    loop at;
    uint64_t round;   /* counts loops */
    bool busy, stop;
    void (*team)(void (*fn)(void *), void *arg, unsigned nthread, unsigned flags); /* NULL: the threads above */
};

/* Takes pieces until none is left; the lock is held on entry and on return. */
static void take_pieces(rl_pool *p) {
    loop *l = &p->at;
    while (l->next < l->npiece) {
        int64_t k = l->next++, least = l->n / l->npiece, more = l->n % l->npiece;
        int64_t from = k * least + RL_MIN(k, more), to = from + least + (k < more);
        pthread_mutex_unlock(&p->lock);
        l->fn(l->arg, from, to);
        pthread_mutex_lock(&p->lock);
        if (++l->done == l->npiece) pthread_cond_signal(&p->idle);
    }
}

static void *thread_main(void *arg) {
    rl_pool *p = arg;
    uint64_t seen = 0;
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        if (p->round == seen) {
            pthread_cond_wait(&p->work, &p->lock);
            continue;
        }
        seen = p->round;
        take_pieces(p);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

rl_pool *rl_pool_new(uint32_t nthread) {
    rl_pool *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->thread = calloc(nthread, sizeof *p->thread);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->idle, NULL);
    while (p->thread && p->nthread + 1 < nthread && pthread_create(&p->thread[p->nthread], NULL, thread_main, p) == 0) p->nthread++;
    if (p->nthread + 1 >= nthread) return p;
    rl_pool_free(p);
    return NULL;
}

void rl_pool_free(rl_pool *p) {
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (uint32_t i = 0; i < p->nthread; i++) pthread_join(p->thread[i], NULL);
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->idle);
    pthread_mutex_destroy(&p->lock);
    free(p->thread);
    free(p);
}

uint32_t rl_pool_size(const rl_pool *p) {
    return p ? p->nthread + 1 : 1;
}

void rl_pool_borrow(rl_pool *p, void (*team)(void (*fn)(void *), void *arg, unsigned nthread, unsigned flags)) {
    p->team = team;
}

static void team_main(void *arg) {
    rl_pool *p = arg;
    pthread_mutex_lock(&p->lock);
    take_pieces(p);
    pthread_mutex_unlock(&p->lock);
}

/* The lock is held on entry and on return. */
static void run_loop(rl_pool *p) {
    if (p->team) {
        pthread_mutex_unlock(&p->lock);
        p->team(team_main, p, p->nthread + 1, 0);
        pthread_mutex_lock(&p->lock);
        return;
    }
    p->round++;
    pthread_cond_broadcast(&p->work);
    take_pieces(p);
    while (p->at.done < p->at.npiece) pthread_cond_wait(&p->idle, &p->lock);
}

void rl_pool_run(rl_pool *p, int64_t n, int64_t grain, rl_range_fn *fn, void *arg) {
    int64_t most = (int64_t)rl_pool_size(p) * PIECES, npiece = n / RL_MAX(grain, 1);
    if (n <= 0) return;
    npiece = RL_MIN(npiece, most);
    if (!p || npiece <= 1) {
        fn(arg, 0, n);
        return;
    }
    pthread_mutex_lock(&p->lock);
    bool nested = p->busy;
    if (!nested) {
        p->busy = true;
        p->at = (loop){fn, arg, n, npiece, 0, 0};
        run_loop(p);
        p->busy = false;
    }
    pthread_mutex_unlock(&p->lock);
    if (nested) fn(arg, 0, n);
}

void rl_parallel(rl_rt *rt, int64_t n, int64_t grain, rl_range_fn *fn, void *arg) {
    rl_pool_run(rt->pool, n, grain, fn, arg);
}

static void run_pool(void *pool, int64_t n, int64_t grain, rl_range_fn *fn, void *arg) {
    rl_pool_run(pool, n, grain, fn, arg);
}

rl_threads rl_pool_threads(rl_pool *p) {
    return (rl_threads){run_pool, p};
}
