/* Kernels that make other numbers of numbers, C++ for the host and the device (k_move.h says how they are written).
 *
 *   recode      any layout to any layout, with padding, element by element
 *   quantizes   QuantizeLinear and DequantizeLinear        cast   any number type to any        floats<To, From>   dense floats */
#ifndef RL_CUDA_K_RECODE_H
#define RL_CUDA_K_RECODE_H
#include "k_move.h"

enum { RL_TYPE_F32 = 1, RL_TYPE_U8, RL_TYPE_I8, RL_TYPE_U16, RL_TYPE_I16, RL_TYPE_I32, RL_TYPE_I64, RL_TYPE_BOOL = 9, RL_TYPE_F16, RL_TYPE_F64,
       RL_TYPE_U32, RL_TYPE_U64, RL_TYPE_BF16 = 16, RL_TYPE_U4 = 21, RL_TYPE_I4 = 22 }; /* rl_dtype's numbers */

/* A number of any of these types, exact: integers as such, floats as doubles. */
struct rl_any { bool real; int64_t i; double f; };
RL_HD rl_any rl_any_int(int64_t i) {
    rl_any a = {false, i, 0};
    return a;
}
RL_HD rl_any rl_any_real(double f) {
    rl_any a = {true, 0, f};
    return a;
}

RL_HD rl_any rl_any_load(const void *p, int64_t k, int32_t type) {
    switch (type) {
    case RL_TYPE_F32: return rl_any_real(((const float *)p)[k]);
    case RL_TYPE_F64: return rl_any_real(((const double *)p)[k]);
    case RL_TYPE_F16: return rl_any_real(rl_widen(((const rl_half *)p)[k]));
    case RL_TYPE_BF16: return rl_any_real(rl_widen(((const rl_bfloat *)p)[k]));
    case RL_TYPE_U8: case RL_TYPE_BOOL: return rl_any_int(((const uint8_t *)p)[k]);
    case RL_TYPE_I8: return rl_any_int(((const int8_t *)p)[k]);
    case RL_TYPE_U16: return rl_any_int(((const uint16_t *)p)[k]);
    case RL_TYPE_I16: return rl_any_int(((const int16_t *)p)[k]);
    case RL_TYPE_U32: return rl_any_int(((const uint32_t *)p)[k]);
    case RL_TYPE_I32: return rl_any_int(((const int32_t *)p)[k]);
    case RL_TYPE_U4: return rl_any_int(rl_bits_get(p, k, 4));
    case RL_TYPE_I4: return rl_any_int((int64_t)(rl_bits_get(p, k, 4) ^ 8) - 8);
    default: return rl_any_int(((const int64_t *)p)[k]);
    }
}

/* A double to a shorter float by way of float would round twice. */
RL_HD float rl_to_odd(double x) {
    float f = (float)x;
    if ((double)f == x || x != x) return f;
    uint32_t b = rl_bits_of_float(f);
    if ((double)f > x ? x > 0 : x < 0) b--; /* towards zero, then the lowest bit says that something is missing */
    if ((b & 0x7f800000u) == 0x7f800000u) return f;
    return rl_float_of_bits(b | 1);
}

RL_HD void rl_any_store(void *p, int64_t k, int32_t type, rl_any a) {
    int64_t i = a.real ? rl_truncate(a.f) : a.i;
    bool huge = !a.real && type != RL_TYPE_F64 && a.i != (int64_t)(double)a.i;
    double f = a.real ? a.f : (double)a.i;
    switch (type) {
    case RL_TYPE_F32: ((float *)p)[k] = huge ? (float)a.i : (float)f; break;
    case RL_TYPE_F64: ((double *)p)[k] = f; break;
    case RL_TYPE_F16: rl_narrow(&((rl_half *)p)[k], rl_to_odd(f)); break;
    case RL_TYPE_BF16: rl_narrow(&((rl_bfloat *)p)[k], rl_to_odd(f)); break;
    case RL_TYPE_BOOL: ((uint8_t *)p)[k] = a.real ? a.f != 0 : a.i != 0; break;
    case RL_TYPE_U8: case RL_TYPE_I8: ((uint8_t *)p)[k] = (uint8_t)i; break;
    case RL_TYPE_U16: case RL_TYPE_I16: ((uint16_t *)p)[k] = (uint16_t)i; break;
    case RL_TYPE_U32: case RL_TYPE_I32: ((uint32_t *)p)[k] = (uint32_t)i; break;
    case RL_TYPE_U4: case RL_TYPE_I4: rl_bits_set(p, k, 4, (uint32_t)i & 15); break;
    default: ((int64_t *)p)[k] = i; break;
    }
}

struct rl_recode {
    typedef rl_p_recode Params;
    typedef rl_nothing Shared, Local;

    /* One of a few numbers, by comparing: an array that is indexed would lie in memory. */
    RL_MEMBER uint32_t of(const uint32_t (&index)[RL_AXES], uint32_t axis) {
        uint32_t x = 0;
        RL_UNROLL
        for (uint32_t a = 0; a < RL_AXES; a++) x = a == axis ? index[a] : x;
        return x;
    }

    RL_MEMBER void one(const Params &p, uint32_t number) {
        uint32_t index[RL_AXES] = {0};
        int64_t to = p.to0, from = p.from0;
        for (uint32_t d = p.nto; d-- > 0;) {
            uint32_t q = rl_divide(number, p.digit[d].size), r = number - q * p.digit[d].size.d;
            RL_UNROLL
            for (uint32_t a = 0; a < RL_AXES; a++) index[a] += a == p.digit[d].axis ? r * p.digit[d].weight : 0;
            to += r * p.digit[d].step;
            number = q;
        }
        bool inside = true;
        RL_UNROLL
        for (uint32_t a = 0; a < RL_AXES; a++) inside = inside && (a >= p.naxis || index[a] < p.dim[a]);
        if (!inside) {
            rl_any_store(p.to, to, p.to_type, rl_any_int(0));
            return;
        }
        for (uint32_t d = 0; d < p.nfrom; d++) {
            uint32_t q = rl_divide(of(index, p.source[d].axis), p.source[d].below);
            from += (int64_t)(q - rl_divide(q, p.source[d].size) * p.source[d].size.d) * p.source[d].step;
        }
        rl_any_store(p.to, to, p.to_type, rl_any_load(p.from, from, p.from_type));
    }
    RL_STEP(rl_p_recode) {
        RL_EACH(k, p) one(p, k);
    }
};

struct rl_quantizes {
    typedef rl_p_quantize Params;
    typedef rl_nothing Shared, Local;
    enum { WIDE = 16, QUADS = WIDE / 4 };
    typedef rl_vector<uint8_t> Bytes;

    RL_MEMBER float quotient(const Params &p, float x, float s, float z) {
        float y = rintf(x / s) + z;
        return y < p.least ? p.least : y > p.most ? p.most : y;
    }
    RL_MEMBER void one(const Params &p, int64_t to, int64_t from, float s, float z) {
        rl_any x = rl_any_load(p.from, from, p.from_type);
        float v = x.real ? (float)x.f : (float)x.i;
        if (p.back) ((float *)p.to)[to] = (v - z) * s;
        else rl_any_store(p.to, to, p.to_type, rl_any_real(quotient(p, v, s, z)));
    }

    /* 16 bytes of the quantized side, with one scale and zero point. */
    RL_MEMBER void to_bytes(const Params &p, uint8_t *to, const float *from, float s, float z) {
        rl_vector<float> x[QUADS];
        Bytes y;
        RL_UNROLL
        for (uint32_t i = 0; i < QUADS; i++) x[i].fetch(from + 4 * i, false, 4);
        RL_UNROLL
        for (uint32_t e = 0; e < WIDE; e++) y.each[e] = (uint8_t)(int32_t)quotient(p, x[e / 4].each[e % 4], s, z);
        y.put(to, WIDE);
    }
    RL_MEMBER void from_bytes(const Params &p, float *to, const uint8_t *from, float s, float z) {
        rl_vector<float> y;
        Bytes x;
        x.fetch(from, false, WIDE);
        RL_UNROLL
        for (uint32_t e = 0; e < WIDE; e++) {
            y.each[e % 4] = ((p.from_type == RL_TYPE_I8 ? (float)(int8_t)x.each[e] : (float)x.each[e]) - z) * s;
            if (e % 4 == 3) y.put(to + e - 3, 4);
        }
    }

    RL_STEP(rl_p_quantize) {
        for (uint32_t k = p.wide ? block * RL_THREADS + thread : rl_first_of(block, thread), e = 0; e < (p.wide ? 1 : RL_PER_THREAD); e++, k += RL_THREADS) {
            int64_t at[4];
            uint32_t n = p.wide ? Bytes::left(k, p.count) : k < p.count;
            if (!n) return;
            rl_walk_at(&p.w, k, 4, at);
            float s = ((const float *)p.scale)[at[2]], z = 0;
            if (p.zero) z = (float)rl_any_load(p.zero, at[3], p.zero_type).i;
            if (n < WIDE) {
                RL_ROLLED
                for (uint32_t i = 0; i < n; i++) one(p, at[0] + i, at[1] + i, s, z);
            } else if (p.back) from_bytes(p, (float *)p.to + at[0], (const uint8_t *)p.from + at[1], s, z);
            else to_bytes(p, (uint8_t *)p.to + at[0], (const float *)p.from + at[1], s, z);
        }
    }
};

struct rl_cast {
    typedef rl_p_cast Params;
    typedef rl_nothing Shared, Local;
    RL_STEP(rl_p_cast) {
        RL_EACH(k, p) {
            int64_t at[2];
            rl_walk_at(&p.w, k, 2, at);
            rl_any_store(p.to, at[0], p.to_type, rl_any_load(p.from, at[1], p.from_type));
        }
    }
};

/* The same where both sides are dense, of the shorter floats: EIGHT at a time, whose addresses are multiples of what they take. */
template <class To, class From> struct rl_floats {
    typedef rl_p_cast Params;
    typedef rl_nothing Shared, Local;
    enum { EIGHT = 8 };
    RL_STEP(rl_p_cast) {
        uint32_t first = (block * RL_THREADS + thread) * EIGHT;
        if (first >= p.count) return;
        const From *from = (const From *)p.from + first;
        To *to = (To *)p.to + first;
        if (p.count - first < EIGHT) {
            for (uint32_t e = 0; first + e < p.count; e++) rl_store(to + e, rl_load(from[e]));
            return;
        }
        rl_piece<From, EIGHT> x = *(const rl_piece<From, EIGHT> *)from;
        rl_piece<To, EIGHT> y;
        RL_UNROLL
        for (uint32_t e = 0; e < EIGHT; e++) rl_store(&y.each[e], rl_load(x.each[e]));
        *(rl_piece<To, EIGHT> *)to = y;
    }
};
template <class From> using rl_to_f32 = rl_floats<float, From>;
template <class From> using rl_to_f16 = rl_floats<rl_half, From>;
template <class From> using rl_to_bf16 = rl_floats<rl_bfloat, From>;

#endif
