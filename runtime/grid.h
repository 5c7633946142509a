/* Which elements a place of GridSample's grid means, dim by dim, for the CPU and for devices' kernels: C and C++. Computed in f64.
 *
 *   rl_grid_place p = rl_grid_at(&m, g, 5);                   linear, 0.1 of -1..1 is 2.25 of 0..4: base 2, share 0.25
 *   for (t = 0; t < m.ntap; t++) sum += rl_grid_weight(&m, p.share, t) * x[rl_grid_index(&m, p.base, t, 5)];    0.75 x[2] + 0.25 x[3] */
#ifndef RL_GRID_H
#define RL_GRID_H
#include <math.h>
#include <stdint.h>

#ifdef __CUDACC__
#define RL_GRID static __host__ __device__ __forceinline__
#else
#define RL_GRID static inline
#endif

typedef enum { RL_GRID_ZEROS, RL_GRID_BORDER, RL_GRID_REFLECTION } rl_grid_padding;
typedef struct {
    uint32_t ntap;    /* 1 nearest, 2 linear, 4 cubic */
    uint32_t padding; /* a rl_grid_padding */
    uint32_t corners; /* -1 and 1 are the centres of the first and the last element, else their outer ends */
    uint32_t single;  /* places are rounded to f32 */
} rl_grid_mode;
typedef struct { double base, share; } rl_grid_place; /* the element before, and how far beyond it */

RL_GRID double rl_grid_reflect(double p, double low, double high) {
    double range = high - low, over = p < low ? low - p : p - high;
    if (over <= 0) return p;
    if (range <= 0) return low;
    double turns = floor(over / range), rest = over - turns * range;
    int even = turns - 2 * floor(turns / 2) == 0, from_low = (p < low) == even;
    return from_low ? low + rest : high - rest;
}

RL_GRID int64_t rl_grid_clamp(double p, int64_t d) {
    return p > 0 ? (int64_t)fmin(p, (double)(d - 1)) : 0;
}

RL_GRID rl_grid_place rl_grid_at(const rl_grid_mode *m, double g, int64_t d) {
    double low = m->corners ? 0 : -0.5, high = (double)d - 1 - low;
    double p = m->corners ? (g + 1) / 2 * (double)(d - 1) : ((g + 1) * (double)d - 1) / 2;
    if (m->single) p = (double)(float)p;
    if (m->ntap == 1) p = rint(p);
    if (!(p >= low && p <= high) && m->ntap < 4) { /* cubic: only its taps are brought back, as PyTorch does */
        if (m->padding == RL_GRID_BORDER) p = (double)rl_grid_clamp(p, d);
        if (m->padding == RL_GRID_REFLECTION) p = rl_grid_reflect(p, low, high);
    }
    if (!(fabs(p) < 1e9)) p = -9; /* all taps outside; also what is no number */
    rl_grid_place at;
    at.base = floor(p), at.share = p - at.base;
    return at;
}

/* The element of d that tap t means; -1: none. */
RL_GRID int64_t rl_grid_index(const rl_grid_mode *m, double base, uint32_t t, int64_t d) {
    double low = m->corners ? 0 : -0.5, p = base + (double)t - (m->ntap == 4 ? 1 : 0);
    if (m->padding == RL_GRID_ZEROS) return p >= 0 && p < (double)d ? (int64_t)p : -1;
    return rl_grid_clamp(m->padding == RL_GRID_REFLECTION ? trunc(rl_grid_reflect(p, low, (double)d - 1 - low)) : p, d);
}

RL_GRID double rl_grid_weight(const rl_grid_mode *m, double share, uint32_t t) {
    const double a = -0.75;
    if (m->ntap == 1) return 1;
    if (m->ntap == 2) return t ? share : 1 - share;
    double x = t < 2 ? share : 1 - share;
    if (t == 1 || t == 2) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a;
}

#endif
