/* What the files of the move kernel share: the plan that move.c makes of a nest, and the kernels of a processor.
 *
 * A tile of the loops X (side by side on the `to` side) and Y (side by side on the `from` side) has a row of `from` for each x and
 * a row of `to` for each y.  The kernels get where those rows begin as tables, so X and Y may be several loops each: in the
 * window partition [C,H/7,7,W/7,7] -> [H/7,W/7,7,7,C], Y is W/7 and 7, with the table {0, C, .. 6C, 49C, 50C, ..}. */
#ifndef RL_MOVE_KERNEL_H
#define RL_MOVE_KERNEL_H
#include "move.h"

static inline int64_t rl_magnitude(int64_t x) { return x < 0 ? -x : x; }

enum {
    RL_TILE_MOST = 2048,     /* elements in X, and in Y, of a tile */
    RL_APART_ROWS = 64, RL_APART_ROW = 512 /* rows of `to`, and bytes of them, of one that goes by way of a buffer */
};

/* to[ty[y] + x * size] = from[fx[x] + y * size] for x < nx, y < ny; bytes. */
typedef void rl_strip_fn(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny);
/* The same for nx / kx strips, one after the other, where rows lie such steps apart on either side: nothing is looked up. */
typedef void rl_even_fn(char *to, int64_t to_step, const char *from, int64_t from_step, uint32_t nx, uint32_t ny);
/* For kx of X at a time, and ky of Y or more; ky 0: for less of either, too. lines: it moves whole lines of the cache on both sides,
 * for rows that drive each other out. past: the same past the cache, where all rows of `to` begin with a line and ny is a multiple of
 * ky; NULL: none, and so is even. */
typedef struct { rl_strip_fn *fn; uint32_t kx, ky; bool lines; rl_strip_fn *past; rl_even_fn *even; } rl_strip;
/* Where rows begin: in a table, or, where that is NULL, at so many steps. */
typedef struct { const int64_t *table; int64_t step; } rl_row_begins;
static inline __attribute__((always_inline)) int64_t rl_row_at(rl_row_begins b, uint32_t i) {
    return b.table ? b.table[i] : (int64_t)i * b.step;
}
static inline __attribute__((always_inline)) rl_row_begins rl_row_table(const int64_t *at) {
    return (rl_row_begins){at, 0};
}
static inline __attribute__((always_inline)) rl_row_begins rl_row_steps(int64_t step) {
    return (rl_row_begins){NULL, step};
}
/* count rows of nbyte bytes. */
typedef void rl_rows_fn(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t count, int64_t nbyte, bool stream);
/* nbyte bytes, whole lines past the cache; `from` lies as far in its line as `to`. */
typedef void rl_flush_fn(char *to, const char *from, int64_t nbyte);
/* What memory does while a box is moved in the cache: lines that the next one reads are asked for, and the runs of the one before are
 * written, at to_at[i] from `to`, from in_at[i] of a buffer. */
typedef struct {
    const char *from;
    const int64_t *line;           /* what is read, from `from` on */
    uint32_t lines, per;           /* per: of them for each line that is moved */
    bool second;                   /* into the second cache only */
    rl_flush_fn *flush;
    char *to;
    const char *in;
    const int64_t *to_at, *in_at;
    uint32_t runs;
    int64_t run, at;               /* bytes of a run, and how many of the first are written */
    bool before, after;            /* the buffer has the rest of each run's first line; its last one is left to the box after */
} rl_beside;
/* As much of it as goes with nbyte bytes. */
void rl_beside_do(rl_beside *b, int64_t nbyte);
/* After streams: what was written is there for all. */
typedef void rl_fence_fn(void);

/* A mix: n lines of 64 bytes to n others, each byte from any of them. */
enum { RL_MIX = 7, RL_MIX_LARGE = 4 }; /* the most lines, and of elements larger than a byte: a line costs n shuffles, so more are sooner done as tiles */
typedef struct {
    uint32_t n;
    uint64_t take[RL_MIX][RL_MIX];     /* which bytes of line j of `to` come from line i of `from` */
    uint8_t byte[RL_MIX][RL_MIX][64];  /* and which of its */
} rl_mix;
/* Line j of step k lies at at[j] + k * step; the last step may be less, in all of the lines that lie apart (whole: one after the other), on both
 * sides. */
typedef struct { int64_t at[RL_MIX], step; bool whole; } rl_mix_lines;
/* Rows of `row` bytes on the side whose lines lie apart, each `to` and `from` bytes after that before it.  stream: past the cache. */
typedef struct { int64_t row, rows, to, from; bool stream; } rl_mix_rows;
typedef void rl_mix_fn(const rl_mix *m, char *to, const rl_mix_lines *out, const char *from, const rl_mix_lines *in, const rl_mix_rows *r);

typedef struct {
    rl_isa isa;
    rl_strip strip[5][7];  /* elements of 1, 2, 4, 8, 16 bytes: the first that fits is taken, the last fits always; fn NULL: none */
    rl_rows_fn *rows;
    rl_flush_fn *flush; /* NULL, and so is fence: never streams */
    rl_fence_fn *fence;
    rl_mix_fn *mix;     /* NULL: none */
} rl_move_kernels;
const rl_move_kernels *rl_move_kernels_of(rl_isa want);
/* NULL where it was not built or the processor has not what it needs. */
const rl_move_kernels *rl_move_kernels_x86(rl_isa want);
/* Where the compiler's target is x86. */
extern const rl_move_kernels rl_move_avx2;
extern rl_strip_fn rl_few1, rl_few2, rl_thin1, rl_thin2;
extern rl_strip_fn rl_wide1, rl_wide2, rl_wide4, rl_wide8, rl_wide16, rl_narrow1, rl_narrow2, rl_narrow4, rl_narrow8, rl_narrow16;
extern rl_even_fn rl_wide1_even, rl_wide2_even, rl_wide4_even, rl_wide8_even, rl_wide16_even;
extern rl_even_fn rl_narrow1_even, rl_narrow2_even, rl_narrow4_even, rl_narrow8_even, rl_narrow16_even;
extern rl_mix_fn rl_mix_avx512;
extern rl_rows_fn rl_rows_avx512;
extern rl_flush_fn rl_flush_avx512;
/* The lowest n bits. */
static inline uint64_t rl_ones(uint32_t n) {
    return n >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << n) - 1;
}


typedef struct rl_move_plan rl_move_plan;
typedef struct { int64_t first, n, at[RL_TILE_MOST]; } rl_places; /* of elements first .. first+n-1 of X or Y, in bytes */
typedef struct {
    rl_places fx, ty;              /* of the tile at hand; the next one often has them, too */
    rl_beside *beside;             /* NULL: nothing; else done meanwhile */
} rl_tile;
/* Indices first .. first+count-1 of the grid's innermost loop, whose other loops stand at these places. */
typedef void rl_chunk_fn(const rl_move_plan *p, rl_tile *t, int64_t to, int64_t from, int64_t first, int64_t count);

struct rl_move_plan {
    const rl_move_kernels *k;
    const rl_nest *nest;
    char *to;
    const char *from;
    uint32_t size;          /* bytes of an element; 0: smaller than a byte, or converted: all steps are elements then, else bytes */
    uint32_t n;             /* the loops outside, outermost first */
    rl_loop loop[RL_NEST_LOOPS];
    rl_loop inner;          /* the grid's innermost loop; steps of 0: tiles, or lines of a mix */
    int64_t bytes;          /* of one index of it, for the threads' pieces */
    rl_chunk_fn *chunk;
    int64_t row;            /* rows, fill: bytes */
    uint32_t nx, ny;        /* the loops of X and Y, innermost first; rows, fill, runs: one each */
    rl_loop x[RL_NEST_LOOPS], y[RL_NEST_LOOPS];
    int64_t lx, ly, tx, ty; /* counts of X and Y; of them in a tile */
    int64_t px, py;         /* tiles along X and Y; the last one takes what is left over */
    bool stream;            /* past the cache */
    bool boxed;             /* in small units, as there is something beside it */
    bool even;              /* tiles: X and Y are one loop each */
    bool apart;             /* tiles: rows of `to` drive each other out of the first cache: a tile goes there by way of a buffer */
    const rl_strip *strip;  /* tiles; and for what is left over along X, or Y: smaller ones, or NULL */
    const rl_strip *rest_x, *rest_y;
    rl_strip past;          /* what strip is where lines go past the cache */
    struct rl_mix_plan *mix; /* mixes */
};

/* Makes p of a nest that is straight, for the kernels of k; m: where the plan of a mix is kept; boxed: as in the plan. */
void rl_move_plan_make(rl_move_plan *p, struct rl_mix_plan *m, const rl_nest *b, const rl_move_kernels *k, bool boxed);
/* All of this plan's lines go past the cache, straight from registers. False: it cannot, and is as before. */
bool rl_move_plan_past(rl_move_plan *p);
int64_t rl_move_units(const rl_move_plan *p);
/* Units first .. end-1 of a plan; t: of the walks of this plan before, or new. */
void rl_move_walk(const rl_move_plan *p, rl_tile *t, int64_t first, int64_t end);
static inline void rl_tile_clear(rl_tile *t) {
    t->fx.n = t->ty.n = 0;
    t->beside = NULL;
}

typedef struct rl_mix_plan {
    rl_mix m;
    rl_mix_lines to, from;
    int64_t row;   /* bytes of a row on the side whose lines lie apart */
    bool gather;   /* that is the `from` side */
    int64_t short_by; /* by_line: so many bytes are wanting to the first line of each row on that side, and the others are whole on `to` */
    bool by_line;  /* an index of the grid is a line of long rows; else it is a row, and the n short ones follow each other there */
} rl_mix_plan;

/* A move box by box (move_stage.c). */
typedef struct {
    const rl_nest *nest;        /* straight */
    const rl_move_kernels *k;
    uint32_t order[RL_NEST_LOOPS]; /* of the boxes: loops, outermost first */
    int64_t box[RL_NEST_LOOPS]; /* how many of each loop are in a box */
    int64_t run;                /* bytes that lie side by side in a box on the `to` side */
    int64_t lead[RL_NEST_LOOPS]; /* how many the first box of a loop is short of */
    bool meet;                  /* rows that a box reads share few places in the first cache */
    bool even;                  /* what boxes read begins with lines */
    bool carry;                 /* lines that a box ends amid wait for the next box */
    int64_t bytes;              /* of a box */
} rl_stage;
/* False: boxes are of no use to this nest. */
bool rl_stage_make(rl_stage *s, const rl_nest *b, const rl_move_kernels *k);
/* Boxes; arg: rl_stage. */
int64_t rl_stage_units(const rl_stage *s);
rl_range_fn rl_stage_walk;

/* The chunks (move_walk.c). */
rl_chunk_fn rl_move_rows, rl_move_fill, rl_move_tiles, rl_move_mixes, rl_move_runs;
/* Lines of elements of `size` bytes; gather: from n lines that lie apart to n that follow each other, else back. */
void rl_mix_make(rl_mix *m, uint32_t n, uint32_t size, bool gather);

#endif
