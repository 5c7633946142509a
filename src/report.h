/* What `relayout optimize` and `relayout stats` say: a short table for people, JSON (docs/report.md) for programs. */
#ifndef RL_REPORT_H
#define RL_REPORT_H
#include "stats.h"

typedef struct { const char *name; double seconds; } rl_timing;

/* An input or output whose layout was given; moves: the caller has to convert. */
typedef struct { const char *name, *order; bool output, moves; } rl_portline;

typedef struct {
    const char *in, *out;            /* paths; out NULL: nothing was written */
    uint64_t in_bytes, out_bytes;
    const char *target, *objective;
    bool changed;                    /* false: nothing was better than the input */
    bool kept;                       /* then the output is the input, byte for byte */
    rl_stats before, after;
    int64_t conv_before, conv_after; /* conversions, as docs/proof.md counts them */
    int64_t conv_bound, bytes_bound; /* what no assignment can beat; 0 unless checked */
    const char *proof;               /* "optimal", "gap" or "unchecked" */
    const char *unproved;            /* why it is unchecked; NULL: there is nothing to say */
    int64_t outside;                 /* Transposes of the result that it says nothing of */
    int64_t shown_fewest, shown_quick, shown_open; /* conversions after, by what is shown of them (cert.h) */
    int within;                      /* percent: none is quicker by more */
    int64_t open_takes, open_at_least; /* ns by the target's table where conversions are open (cert.h) */
    int64_t time_before, time_after, time_bound; /* ns by the target's table; 0 unless the objective is time */
    const rl_portline *port;         /* NULL: the interface is the model's own */
    uint32_t nport, handed;          /* handed: conversions that are the caller's now */
    int64_t conv_without, bound_without; /* conv_after and conv_bound with the model's own interface */
    const rl_timing *time;
    uint32_t ntime;
    double total;                    /* seconds */
    uint64_t peak_bytes;             /* of resident memory; 0: unknown */
} rl_report;

void rl_report_json(const rl_report *r, rl_text *t);
void rl_report_table(const rl_report *r, rl_text *t);

/* One line for each Transpose that moves data, the largest first: bytes, name, shape, perm. */
void rl_report_moves(const rl_graph *g, rl_arena *tmp, rl_text *t);
/* The same as a JSON array. */
void rl_report_moves_json(const rl_graph *g, rl_arena *tmp, rl_text *t);
/* Counts of one graph. */
void rl_report_counts(const rl_stats *s, rl_text *t);
/* The JSON of `relayout stats`; was, now: the Transposes before, and those that stay, by rl_report_moves_json. */
void rl_report_stats_json(const rl_report *r, const rl_text *was, const rl_text *now, rl_text *t);
/* s as a JSON string; NULL is null. */
void rl_report_string(rl_text *t, const char *s);

/* "1.5 MiB". */
void rl_report_bytes(char *s, size_t n, int64_t bytes);

#endif
