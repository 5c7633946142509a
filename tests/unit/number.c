/* number.h: every code of every short float, against another implementation or itself. */
#include "../../runtime/number.h"

#include <math.h>
#include <string.h>

#include "../../src/text.h"
#include "check.h"

/* Every code's value rounds to that code; half way between neighbours goes to the even one, just beside it to the nearer. */
static void check_format(rl_dtype t, uint32_t ncode) {
    for (uint32_t k = 0; k + 1 < ncode / 2; k++) {
        double a = rl_number_value(t, k), b = rl_number_value(t, k + 1), half = a + (b - a) / 2;
        if (!isfinite(a)) continue;
        CHECK(rl_number_bits(t, a, true) == k);
        if (a > 0) CHECK(rl_number_value(t, rl_number_bits(t, -a, true)) == -a);
        if (!isfinite(b)) continue;
        CHECK(b > a);
        CHECK(rl_number_bits(t, half, true) == k + k % 2);
        CHECK(rl_number_bits(t, nextafter(half, a), true) == k && rl_number_bits(t, nextafter(half, b), true) == k + 1);
    }
}

TEST(formats) {
    check_format(RL_F16, 65536);
    check_format(RL_BF16, 65536);
    check_format(RL_F8E4M3FN, 256);
    check_format(RL_F8E4M3FNUZ, 256);
    check_format(RL_F8E5M2, 256);
    check_format(RL_F8E5M2FNUZ, 256);
    check_format(RL_F4E2M1, 16);
}

TEST(halves) {
    for (uint32_t k = 0; k < 65536; k++) {
        double h = rl_number_value(RL_F16, k), b = rl_number_value(RL_BF16, k);
        CHECK(isnan(h) ? isnan(rl_half_float((uint16_t)k)) : h == (double)rl_half_float((uint16_t)k));
        CHECK(isnan(b) ? isnan(rl_bf16_float((uint16_t)k)) : b == (double)rl_bf16_float((uint16_t)k));
    }
}

static uint16_t short_of(rl_dtype t, double x) {
    uint16_t k;
    rl_convert_run((rl_run){t, (char *)&k, 0, 1}, (rl_run){RL_F64, (char *)&x, 0, 1}, 1, true);
    return k;
}

/* Runs have code of their own for these two. */
static void check_short(rl_dtype t) {
    static const double odd[] = {1e9, 1e300, INFINITY, 65519.999999, 65520, 0x1p-25, 0x1p-24, 0x1p-133, 0x1p-134, 0x1.8p-134, 0x1p-1022, 0x1p-1074, 3.3895313892515355e38, 3.4e38};
    for (uint32_t k = 0; k < 65536; k++) {
        uint16_t code = (uint16_t)k;
        double x, want = rl_number_value(t, k);
        rl_convert_run((rl_run){RL_F64, (char *)&x, 0, 1}, (rl_run){t, (char *)&code, 0, 1}, 1, true);
        CHECK(isnan(want) ? isnan(x) : x == want && signbit(x) == signbit(want));
        CHECK(short_of(t, x) == rl_number_bits(t, x, true));
        if (!isfinite(want)) continue;
        double next = rl_number_value(t, (k & 0x7fff) == 0x7fff ? k : k + 1), half = want + (next - want) / 2;
        for (int way = -1; way <= 1; way++) {
            double y = way ? nextafter(half, way < 0 ? (double)-INFINITY : (double)INFINITY) : half;
            CHECK(short_of(t, y) == rl_number_bits(t, y, true));
        }
    }
    for (size_t i = 0; i < RL_LEN(odd); i++)
        for (int sign = -1; sign <= 1; sign += 2) CHECK(short_of(t, sign * odd[i]) == rl_number_bits(t, sign * odd[i], true));
    CHECK(short_of(t, -0.0) == 0x8000);
}

TEST(short_runs) {
    check_short(RL_F16);
    check_short(RL_BF16);
}

TEST(edges) {
    CHECK(rl_number_bits(RL_F16, 65519, true) == 0x7bff && rl_number_bits(RL_F16, 65520, true) == 0x7c00);
    CHECK(rl_number_bits(RL_F16, 0x1p-25, true) == 0 && rl_number_bits(RL_F16, nextafter(0x1p-25, 1), true) == 1);
    CHECK(rl_number_bits(RL_F8E4M3FN, 1e9, true) == 0x7e && rl_number_bits(RL_F8E4M3FN, 1e9, false) == 0x7f);
    CHECK(rl_number_bits(RL_F8E4M3FNUZ, -INFINITY, true) == 0xff && rl_number_bits(RL_F8E4M3FNUZ, 1e9, false) == 0x80);
    CHECK(rl_number_bits(RL_F8E5M2, INFINITY, true) == 0x7b && rl_number_bits(RL_F8E5M2, INFINITY, false) == 0x7c);
    CHECK(rl_number_bits(RL_F8E5M2FNUZ, NAN, true) == 0x80 && rl_number_bits(RL_F8E5M2FNUZ, -0.0, true) == 0);
    CHECK(rl_number_bits(RL_F4E2M1, -100, true) == 0xf && rl_number_value(RL_F4E2M1, 7) == 6);
    CHECK(rl_number_bits(RL_F8E8M0, 1, true) == 127 && rl_number_bits(RL_F8E8M0, 1.25, true) == 128);
    CHECK(isnan(rl_number_value(RL_F8E8M0, 0xff)) && rl_number_value(RL_F8E8M0, 0) == 0x1p-127);
}

TEST(runs) {
    int64_t big[] = {(1LL << 24) + 1, INT64_MAX, -1};
    float f[3];
    rl_convert_run((rl_run){RL_F32, (char *)f, 0, 1}, (rl_run){RL_I64, (char *)big, 0, 1}, 3, true);
    CHECK(f[0] == 0x1p24f && f[1] == 0x1p63f && f[2] == -1);
    double x[] = {300.7, -1.5, NAN, 3e9};
    uint8_t u[4];
    int32_t i[4];
    rl_convert_run((rl_run){RL_U8, (char *)u, 0, 1}, (rl_run){RL_F64, (char *)x, 0, 1}, 4, true);
    rl_convert_run((rl_run){RL_I32, (char *)i, 0, 1}, (rl_run){RL_F64, (char *)x, 3, -1}, 4, true);
    CHECK(u[0] == 44 && u[1] == 255 && u[2] == 0);
    CHECK(i[3] == 300 && i[2] == -1 && i[1] == 0);
    char packed[2] = {0x21, (char)0xf8}; /* i4: 1 2 -8 -1 */
    rl_convert_run((rl_run){RL_I32, (char *)i, 0, 1}, (rl_run){RL_I4, packed, 0, 1}, 4, true);
    CHECK(i[0] == 1 && i[1] == 2 && i[2] == -8 && i[3] == -1);
    char back[2] = {0};
    rl_convert_run((rl_run){RL_I4, back, 0, 1}, (rl_run){RL_I32, (char *)i, 0, 1}, 4, true);
    CHECK(memcmp(back, packed, 2) == 0);
}

/* Numbers of every kind: all codes of 16 bits, and of wider types what lies about the ends of the narrower ones. */
static int64_t fill_with(rl_dtype t, char *p, int64_t n) {
    static const double odd[] = {0, 0.5, 1, 1.5, 2.5, 65503, 65504, 65519, 65520, 1e9, 2147483647, 2147483648.0, 9.2e18, 9223372036854775808.0, 1e30, 3.3895e38, 3.4e38, INFINITY};
    uint64_t seed = 1;
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t bits = seed >> 16;
        double x = (i & 1 ? -1 : 1) * odd[(size_t)(i / 2) % RL_LEN(odd)];
        bool is_odd = i < 2 * (int64_t)RL_LEN(odd);
        float f = is_odd ? (float)x : (float)ldexp((double)(int64_t)(bits % 20001) - 10000, (int)(bits >> 20) % 60 - 45);
        if (t == RL_F32) memcpy(p + 4 * i, &f, 4);
        else if (t == RL_F64) ((double *)(void *)p)[i] = is_odd ? x : (double)f * (1 + 0x1p-40 * (double)(bits % 7));
        else if (t == RL_BOOL) p[i] = (char)(bits & 1);
        else if (rl_dtype_bits(t) == 8) p[i] = (char)i;
        else if (rl_dtype_bits(t) == 16) ((uint16_t *)(void *)p)[i] = (uint16_t)i;
        else if (rl_dtype_bits(t) == 32) ((uint32_t *)(void *)p)[i] = (uint32_t)bits;
        else ((uint64_t *)(void *)p)[i] = is_odd ? (uint64_t)INT64_MAX + (uint64_t)i - 3 : seed >> (bits % 60);
    }
    return n;
}

static bool is_nan_at(rl_dtype t, const char *p, int64_t i) {
    double x = 0;
    if (rl_is_float(t)) rl_convert_run((rl_run){RL_F64, (char *)&x, 0, 2}, (rl_run){t, (char *)(uintptr_t)p, i, 2}, 1, true);
    return isnan(x);
}

/* Elements that lie one behind the other have loops of their own: the same numbers as one by one. */
TEST(runs_together) {
    static const rl_dtype type[] = {RL_F32, RL_F64, RL_F16, RL_BF16, RL_I8, RL_U8, RL_I32, RL_I64, RL_BOOL};
    enum { N = 65536 + 40, SMALL = 7 };
    static char from[8 * N], together[8 * N], apart[16 * N], apart_in[16 * N];
    for (size_t f = 0; f < RL_LEN(type); f++)
        for (size_t t = 0; t < RL_LEN(type); t++) {
            int64_t n = fill_with(type[f], from, N), in = rl_dtype_bits(type[f]) / 8, out = rl_dtype_bits(type[t]) / 8;
            for (int64_t i = 0; i < n; i++) memcpy(apart_in + 2 * i * in, from + i * in, (size_t)in);
            memset(together, 0x55, sizeof together);
            rl_convert_run((rl_run){type[t], together, 1, 1}, (rl_run){type[f], from, 0, 1}, n - SMALL, true);
            rl_convert_run((rl_run){type[t], apart, 0, 2}, (rl_run){type[f], apart_in, 0, 2}, n, true);
            for (int64_t i = 0; i < n - SMALL; i++)
                CHECK(memcmp(together + (i + 1) * out, apart + 2 * i * out, (size_t)out) == 0 ||
                      (is_nan_at(type[t], together, i + 1) && is_nan_at(type[t], apart, 2 * i)));
            for (int64_t i = 0; i < out; i++) CHECK(together[i] == 0x55 && together[(n - SMALL + 1) * out + i] == 0x55);
        }
}

int main(void) {
    RUN(formats);
    RUN(halves);
    RUN(short_runs);
    RUN(runs_together);
    RUN(edges);
    RUN(runs);
    return check_done();
}
