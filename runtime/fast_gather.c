/* Gather and GatherND of small pieces: what all of them have in common is found once, where a move would find it for each. */
#include <string.h>

#include "fast.h"
#include "gather.h"
#include "kernels_fast.h"

enum { LARGE = 4096, GRAIN = 1 << 16 }; /* bytes of a piece that is worth a move of its own; of what is worth a thread */

/* Of an index: the loops of its piece, the innermost in `run` elements that lie together on both sides. */
typedef struct { rl_nest piece; const int64_t *index; int64_t to_step, from_step, run, size; } rows;

static inline void copy_run(char *to, const char *from, int64_t nbyte) {
    switch (nbyte) { /* sizes that the compiler knows */
    case 4: memcpy(to, from, 4); break;
    case 8: memcpy(to, from, 8); break;
    default: memcpy(to, from, (size_t)nbyte);
    }
}

static void copy_piece(const rows *r, uint32_t loop, char *to, const char *from) {
    if (loop == r->piece.n) {
        copy_run(to, from, r->run);
        return;
    }
    const rl_loop *l = &r->piece.loop[loop];
    for (int64_t i = 0; i < l->n; i++) copy_piece(r, loop + 1, to + i * l->to * r->size, from + i * l->from * r->size);
}

static void copy_pieces(void *arg, int64_t first, int64_t end) {
    const rows *r = arg;
    char *to = (char *)r->piece.to + r->piece.to_at * r->size;
    const char *from = (const char *)r->piece.from + r->piece.from_at * r->size;
    for (int64_t i = first; i < end; i++) copy_piece(r, 0, to + i * r->to_step, from + r->index[i] * r->from_step);
}

static void gather_rows(const rl_gather *g) {
    const rl_tensor *to = &g->to, *from = &g->from;
    rl_nest piece = {.to = to->mem->p, .from = from->mem->p, .to_at = to->offset, .from_at = from->offset, .bits = rl_elem_bits(to->dtype)};
    rows r = {.index = g->index, .size = piece.bits / 8};
    for (uint32_t i = 1; i < to->rank; i++) piece.loop[piece.n++] = (rl_loop){to->dim[i], to->stride[i], from->stride[i]};
    if (!rl_numel(to)) return;
    int64_t nbyte = rl_numel(to) / g->n * r.size;
    rl_nest_straighten(&piece);
    bool joined = piece.n && piece.loop[piece.n - 1].to == 1 && piece.loop[piece.n - 1].from == 1;
    if (piece.bits % 8 || (nbyte >= LARGE && piece.n > joined)) {
        rl_gather_moves(g);
        return;
    }
    r.run = (joined ? piece.loop[--piece.n].n : 1) * r.size;
    r.to_step = to->stride[0] * r.size, r.from_step = from->stride[0] * r.size;
    r.piece = piece;
    g->c->rt->moved += (uint64_t)(nbyte * g->n);
    rl_parallel(g->c->rt, g->n, RL_MAX(1, GRAIN / nbyte), copy_pieces, &r);
    g->c->step->ran = "rows";
}

rl_status rl_fast_gather(rl_call *c) {
    return rl_gather_by(c, gather_rows);
}

rl_status rl_fast_gather_nd(rl_call *c) {
    return rl_gather_nd_by(c, gather_rows);
}
