/* Every named format against brute force: formats [STEP].  STEP (default 5) takes every 5th shape; 1 takes all.
 *
 * Brute force knows nothing of strides: it walks the buffer of a format cell by cell, as the letters of its tag say (written here by
 * hand), and notes which element each cell holds. Offsets, padding, sizes and conversions are compared with that, for all shapes
 * up to 6 in each dim, some larger ones, with extra padding, and for elements of 2 to 128 bits. */
#include <stdlib.h>

#include "../../runtime/convert.h"
#include "../../runtime/number.h"
#include "check.h"

static const struct { const char *name, *tag; } formats[] = {
    {"contiguous", "a"}, {"nc", "ab"}, {"cn", "ba"}, {"column_major", "ba"}, {"io", "ba"}, {"oi", "ab"}, {"NC16n16c", "AB16a16b"},
    {"OI16i16o", "AB16b16a"}, {"contiguous", "abc"}, {"ncw", "abc"}, {"nwc", "acb"}, {"tnc", "abc"}, {"ntc", "bac"}, {"nCw8c", "aBc8b"},
    {"nCw16c", "aBc16b"}, {"oiw", "abc"}, {"iow", "bac"}, {"wio", "cba"}, {"owi", "acb"}, {"OIw16i16o", "ABc16b16a"}, {"Oiw4o", "Abc4a"},
    {"OIw8i8o", "ABc8b8a"}, {"contiguous", "abcd"}, {"row_major", "abcd"}, {"column_major", "dcba"}, {"channels_last", "acdb"},
    {"NCHW", "abcd"}, {"nchw", "abcd"}, {"NHWC", "acdb"}, {"CHWN", "bcda"}, {"NCHW4", "aBcd4b"}, {"NCHW32", "aBcd32b"},
    {"NCHW64", "aBcd64b"}, {"CHWN4", "Bcda4b"}, {"nChw4c", "aBcd4b"}, {"nChw8c", "aBcd8b"}, {"nChw16c", "aBcd16b"}, {"nChw32c", "aBcd32b"},
    {"NChw16n16c", "ABcd16a16b"}, {"oihw", "abcd"}, {"OIHW", "abcd"}, {"hwio", "cdba"}, {"HWIO", "cdba"}, {"ohwi", "acdb"}, {"OHWI", "acdb"},
    {"ihwo", "bcda"}, {"iohw", "bacd"}, {"OIhw16i16o", "ABcd16b16a"}, {"OIhw16o16i", "ABcd16a16b"}, {"OIhw8i8o", "ABcd8b8a"},
    {"OIhw8o8i", "ABcd8a8b"}, {"OIhw4i4o", "ABcd4b4a"}, {"OIhw8i16o2i", "ABcd8b16a2b"}, {"OIhw4i16o4i", "ABcd4b16a4b"},
    {"OIhw8o16i2o", "ABcd8a16b2a"}, {"IOhw16i16o", "BAcd16b16a"}, {"IOhw16o16i", "BAcd16a16b"}, {"Ohwi8o", "Acdb8a"}, {"Ohwi16o", "Acdb16a"},
    {"Oihw16o", "Abcd16a"}, {"OhwI16i16o", "AcdB16b16a"}, {"giow", "acbd"}, {"wigo", "dcab"}, {"Goiw16g", "Abcd16a"},
    {"gOIw16i16o", "aBCd16c16b"},
    {"ldnc", "abcd"}, {"ldgo", "abcd"}, {"ldOi32o", "abDc32d"}, {"channels_last_3d", "acdeb"}, {"NCDHW", "abcde"}, {"NDHWC", "acdeb"},
    {"nCdhw8c", "aBcde8b"}, {"nCdhw16c", "aBcde16b"}, {"oidhw", "abcde"}, {"dhwio", "cdeba"}, {"odhwi", "acdeb"},
    {"OIdhw16i16o", "ABcde16b16a"},
    {"OIdhw8i16o2i", "ABcde8b16a2b"}, {"Odhwi16o", "Acdeb16a"}, {"goihw", "abcde"}, {"hwigo", "decab"}, {"gOIhw16i16o", "aBCde16c16b"},
    {"gOIhw8i16o2i", "aBCde8c16b2c"}, {"Goihw8g", "Abcde8a"}, {"Goihw16g", "Abcde16a"}, {"ldigo", "abcde"}, {"ldgoi", "abdec"},
    {"aBcd16b", "aBcd16b"}};

enum { MOSTCELLS = 1 << 20 };
static int64_t element[MOSTCELLS]; /* the row-major position that each cell holds; -1: padding */
static int64_t place[MOSTCELLS];   /* the cell of each element */
static uint8_t in[MOSTCELLS], mid[MOSTCELLS], out[MOSTCELLS];

typedef struct { uint32_t n, rank; struct { uint32_t axis; int64_t size; } digit[16]; } shelf; /* the tag's digits, outermost first */

static shelf read_tag(const char *tag, const int64_t *dim, const int64_t *pad) {
    shelf s = {0};
    int64_t block[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    for (; *tag >= 'A'; tag++) s.digit[s.n++].axis = (uint32_t)((*tag | 32) - 'a');
    s.rank = s.n;
    while (*tag) {
        char *end;
        s.digit[s.n].size = strtol(tag, &end, 10);
        s.digit[s.n].axis = (uint32_t)(*end - 'a');
        block[*end - 'a'] *= s.digit[s.n++].size;
        tag = end + 1;
    }
    for (uint32_t i = 0; i < s.rank; i++) {
        uint32_t a = s.digit[i].axis;
        s.digit[i].size = (RL_MAX(dim[a], pad[a]) + block[a] - 1) / block[a];
    }
    return s;
}

/* Fills element and place; the number of cells, or -1: too many. */
static int64_t walk(const shelf *s, const int64_t *dim) {
    int64_t count[16] = {0}, cells = 1;
    for (uint32_t i = 0; i < s->n; i++) cells *= s->digit[i].size;
    if (cells > MOSTCELLS / 16) return -1;
    for (int64_t cell = 0; cell < cells; cell++) {
        int64_t index[8] = {0}, k = 0;
        for (uint32_t i = 0; i < s->n; i++) index[s->digit[i].axis] = index[s->digit[i].axis] * s->digit[i].size + count[i];
        bool inside = true;
        for (uint32_t a = 0; a < s->rank; a++) {
            inside = inside && index[a] < dim[a];
            k = k * dim[a] + index[a];
        }
        element[cell] = inside ? k : -1;
        if (inside) place[k] = cell;
        for (uint32_t i = s->n; i-- > 0;) {
            if (++count[i] < s->digit[i].size) break;
            count[i] = 0;
        }
    }
    return cells;
}

static uint32_t get(const uint8_t *p, int64_t i, uint32_t bits) { /* a small element, or the first byte of a large one mixed with its last */
    if (bits >= 8) return p[i * bits / 8] * 31u + p[i * bits / 8 + bits / 8 - 1];
    return (uint32_t)p[i * bits / 8] >> (i * bits % 8) & ((1u << bits) - 1);
}

static const int32_t types[] = {RL_I8, RL_I4, RL_U2, RL_F16, RL_F32, RL_F64, RL_C128};

static int wrong_offsets(const rl_desc *d, int64_t cells) {
    int wrong = rl_desc_bytes(d) != (cells * rl_desc_bits(d) + 7) / 8;
    for (int64_t k = 0; k < rl_desc_elements(d); k++) {
        int64_t index[8], left = k;
        for (uint32_t a = d->rank; a-- > 0; left /= d->dim[a]) index[a] = left % d->dim[a];
        wrong += rl_desc_offset(d, index) != place[k];
    }
    return wrong;
}

/* Row-major -> format -> row-major; every element in its cell, zeros in the padding, the same bytes back. */
static int wrong_conversion(const rl_desc *d, int64_t cells) {
    uint32_t bits = rl_desc_bits(d);
    rl_desc row;
    int wrong = 0;
    rl_error e = {""};
    if (rl_desc_strided(d->dtype, d->rank, d->dim, NULL, 0, &row, NULL) != RL_OK) return 1;
    size_t n = (size_t)rl_desc_bytes(d), nrow = (size_t)rl_desc_bytes(&row);
    memset(mid, 0xa5, n);
    memset(out, 0, nrow);
    wrong += rl_desc_convert(d, mid, n, &row, in, nrow, &e) != RL_OK || rl_desc_convert(&row, out, nrow, d, mid, n, &e) != RL_OK;
    for (int64_t c = 0; c < cells; c++) wrong += get(mid, c, bits) != (element[c] < 0 ? 0 : get(in, element[c], bits));
    for (int64_t k = 0; k < rl_desc_elements(d); k++) wrong += get(out, k, bits) != get(in, k, bits);
    return wrong;
}

static void check_format(uint32_t f, const int64_t *dim, const int64_t *pad, uint32_t turn) {
    shelf s = read_tag(formats[f].tag, dim, pad);
    int64_t cells = walk(&s, dim);
    rl_desc d;
    rl_error e = {""};
    if (cells < 0) return;
    bool made = rl_desc_named(types[turn % RL_LEN(types)], s.rank, dim, formats[f].name, pad, &d, &e) == RL_OK;
    if (!made) fprintf(stderr, "%s: %s\n", formats[f].name, e.text);
    CHECK(made);
    if (!made) return;
    int wrong = wrong_offsets(&d, cells) + wrong_conversion(&d, cells);
    if (wrong)
        fprintf(stderr, "%s [%lld,%lld,%lld,%lld,...]: %d wrong\n", formats[f].name, (long long)dim[0], (long long)dim[1],
                (long long)dim[2], (long long)dim[3], wrong);
    CHECK(wrong == 0);
}

static void check_shapes(uint32_t f, uint32_t step) {
    static const int64_t large[][5] = {{1, 17, 2, 3, 1}, {33, 18, 1, 2, 1}, {16, 32, 3, 1, 2}, {5, 64, 3, 3, 1}, {19, 3, 20, 1, 1},
                                       {0, 3, 2, 2, 2}};
    uint32_t rank = 0, shapes = 1;
    while (formats[f].tag[rank] >= 'A') rank++, shapes *= 6;
    for (uint32_t k = f % step; k < shapes; k += step) {
        int64_t dim[8], pad[8];
        uint32_t left = k;
        for (uint32_t a = 0; a < rank; a++, left /= 6) dim[a] = left % 6 + 1, pad[a] = dim[a] + (a + k / step) % 3;
        check_format(f, dim, k / step % 2 ? pad : dim, k / step);
    }
    for (uint32_t k = 0; k < RL_LEN(large); k++) check_format(f, large[k], large[k], k + f);
}

/* Format to format without row-major between, of each rank; blocks that do not divide each other too. */
static void check_pairs(uint32_t rank) {
    static const char *const odd[] = {"aBcd3b", "aBcd4b", "ABcd2a6b", "aBCd4c5b2c", "Bcda4b"};
    static const int64_t dims[][4] = {{3, 35, 5, 3}, {1, 12, 7, 2}, {2, 5, 26, 1}};
    for (uint32_t i = 0; i < RL_LEN(odd) && rank == 4; i++) {
        for (uint32_t k = 0; k < RL_LEN(odd) * RL_LEN(dims) * RL_LEN(types); k++) {
            const int64_t *dim = dims[k / RL_LEN(odd) % RL_LEN(dims)];
            int32_t type = types[k / (RL_LEN(odd) * RL_LEN(dims))];
            rl_desc a, b, row;
            size_t na, nb, n;
            CHECK(rl_desc_named(type, 4, dim, odd[i], NULL, &a, NULL) == RL_OK &&
                  rl_desc_named(type, 4, dim, odd[k % RL_LEN(odd)], NULL, &b, NULL) == RL_OK);
            CHECK(rl_desc_strided(type, 4, dim, NULL, 0, &row, NULL) == RL_OK);
            na = (size_t)rl_desc_bytes(&a), nb = (size_t)rl_desc_bytes(&b), n = (size_t)rl_desc_bytes(&row);
            memset(out, 0, n);
            CHECK(rl_desc_convert(&a, mid, na, &row, in, n, NULL) == RL_OK &&
                  rl_desc_convert(&b, mid + MOSTCELLS / 2, nb, &a, mid, na, NULL) == RL_OK);
            CHECK(rl_desc_convert(&row, out, n, &b, mid + MOSTCELLS / 2, nb, NULL) == RL_OK);
            int wrong = 0;
            for (int64_t e = 0; e < rl_desc_elements(&row); e++) wrong += get(out, e, rl_desc_bits(&row)) != get(in, e, rl_desc_bits(&row));
            CHECK(wrong == 0);
        }
    }
}

/* Bits and bytes around what is written stay: gaps between strides, the other half of a byte, what lies before the offset. */
TEST(nothing_else) {
    rl_desc from, to;
    uint8_t buf[8], src[3] = {0x21, 0x43, 0x65};
    rl_error e = {""};
    memset(buf, 0xee, sizeof buf);
    CHECK(rl_desc_parse("u4[2,3]", &from, NULL) == RL_OK && rl_desc_parse("u4[2,3] strides=[5,1] offset=1", &to, NULL) == RL_OK);
    CHECK(rl_desc_bytes(&to) == 5 && rl_desc_convert(&to, buf, 5, &from, src, 3, &e) == RL_OK);
    CHECK(memcmp(buf, (uint8_t[]){0x1e, 0x32, 0xee, 0x54, 0xe6, 0xee, 0xee, 0xee}, 8) == 0);
    CHECK(rl_desc_convert(&to, buf, 4, &from, src, 3, &e) == RL_EUSAGE);
    CHECK_STR(e.text, "the output buffer has 4 bytes, its layout needs 5");
    CHECK(rl_desc_convert(&from, src, 3, &to, buf, 4, &e) == RL_EUSAGE);
    CHECK_STR(e.text, "the input buffer has 4 bytes, its layout needs 5");
    CHECK(rl_desc_convert(&to, buf, 8, &from, buf + 2, 3, &e) == RL_EUSAGE);
    CHECK_STR(e.text, "the output buffer overlaps the input's");
    CHECK(rl_desc_convert(&from, src, 3, &from, src, 3, &e) == RL_OK); /* no work: the format is there already */
    CHECK(rl_desc_parse("u4[2,3] strides=[0,1]", &to, NULL) == RL_OK && rl_desc_convert(&to, buf, 8, &from, src, 3, &e) == RL_EUSAGE);
    CHECK_STR(e.text, "elements overlap: two indices have the same place, which cannot be written");
    CHECK(rl_desc_convert(&from, src, 3, &to, (uint8_t[]){0x21, 0x03}, 2, &e) == RL_OK && memcmp(src, (uint8_t[]){0x21, 0x13, 0x32}, 3) == 0);
    CHECK(rl_desc_parse("u4[3,2]", &to, NULL) == RL_OK && rl_desc_convert(&to, buf, 8, &from, src, 3, &e) == RL_EUSAGE);
    CHECK_STR(e.text, "axis 0 has 2 elements in one layout and 3 in the other");
}

/* rl_move: numbers converted on the way, padding zero, threads; the same as converting one by one. */
TEST(numbers) {
    static const char *const pairs[][2] = {{"f32[2,20,5,7]", "f16[2,20,5,7]@nChw16c"}, {"i8[2,20,5,7]@NCHW4", "f32[2,20,5,7]@nhwc"},
                                           {"f32[2,20,5,7]@nhwc", "i4[2,20,5,7]@aBcd8b"}, {"u2[2,20,5,7]", "f64[2,20,5,7]@CHWN"}};
    for (uint32_t k = 0; k < RL_LEN(pairs) * 2; k++) {
        rl_desc a, b, back;
        rl_error e = {""};
        rl_move_options o = {sizeof o, k % 2 ? 3 : 0};
        CHECK(rl_desc_parse(pairs[k / 2][0], &a, &e) == RL_OK && rl_desc_parse(pairs[k / 2][1], &b, &e) == RL_OK);
        size_t na = (size_t)rl_desc_bytes(&a), nb = (size_t)rl_desc_bytes(&b);
        for (size_t i = 0; i < na; i++) mid[i] = (uint8_t)(i * 5);
        if (a.dtype == RL_F32)
            for (size_t i = 0; i < na / 4; i++) ((float *)(void *)mid)[i] = (float)(int)(i % 8);
        memset(out, 0x5a, nb + 8);
        CHECK(rl_move(&b, out, nb, &a, mid, na, &o, &e) == RL_OK);
        for (size_t i = 0; i < 8; i++) CHECK(out[nb + i] == 0x5a);
        int64_t zeros = 0, index[4], n = rl_desc_bytes(&b) * 8 / rl_desc_bits(&b);
        for (int64_t i = 0; i < n; i++) zeros += get(out, i, rl_desc_bits(&b)) == 0;
        CHECK(zeros >= n - rl_desc_elements(&b));
        for (int64_t i = 0; i < rl_desc_elements(&a); i++) { /* as a tensor of one element each */
            uint8_t one[16] = {0}, want[16] = {0}, is[16] = {0};
            int64_t left = i;
            for (uint32_t x = 4; x-- > 0; left /= a.dim[x]) index[x] = left % a.dim[x];
            rl_move_line(a.dtype, one, 0, 1, mid, rl_desc_offset(&a, index), 1, 1);
            rl_move_line(b.dtype, is, 0, 1, out, rl_desc_offset(&b, index), 1, 1);
            rl_convert_run((rl_run){(rl_dtype)b.dtype, (char *)want, 0, 1}, (rl_run){(rl_dtype)a.dtype, (char *)one, 0, 1}, 1, true);
            CHECK(memcmp(want, is, 16) == 0);
        }
        CHECK(rl_desc_strided(RL_STRING, 4, a.dim, NULL, 0, &back, &e) != RL_OK || rl_move(&back, in, sizeof in, &a, mid, na, &o, &e) == RL_EUSAGE);
    }
}

/* A thread takes longer to start than a small move: none is started, so that there may be as many as one likes. */
TEST(few_bytes) {
    rl_desc a, b;
    rl_error e = {""};
    rl_move_options o = {sizeof o, UINT32_MAX};
    float from[6] = {0, 1, 2, 3, 4, 5}, to[6] = {0};
    CHECK(rl_desc_parse("f32[2,3]", &a, &e) == RL_OK && rl_desc_parse("f32[2,3]@ba", &b, &e) == RL_OK);
    CHECK(rl_move(&b, to, sizeof to, &a, from, sizeof from, &o, &e) == RL_OK);
    CHECK(to[1] == 3 && to[4] == 2);
}

/* Enough bytes that each thread has a piece: what one thread moves, and converts, four move as well. */
TEST(threads) {
    static const char *const pairs[][2] = {{"f32[16,40,60,61]", "f32[16,40,60,61]@nhwc"}, {"f32[16,40,60,61]@nhwc", "f16[16,40,60,61]@nChw16c"}};
    enum { BYTES = 16 * 48 * 60 * 61 * 4 };
    char *from = calloc(1, BYTES), *one = calloc(1, BYTES), *four = calloc(1, BYTES);
    for (size_t i = 0; from && i < BYTES / 4; i++) ((float *)(void *)from)[i] = (float)(i % 2039);
    for (uint32_t k = 0; k < RL_LEN(pairs) && from && one && four; k++) {
        rl_desc a, b;
        rl_error e = {""};
        rl_move_options o = {sizeof o, 4};
        CHECK(rl_desc_parse(pairs[k][0], &a, &e) == RL_OK && rl_desc_parse(pairs[k][1], &b, &e) == RL_OK);
        CHECK(rl_move(&b, one, BYTES, &a, from, BYTES, NULL, &e) == RL_OK);
        CHECK(rl_move(&b, four, BYTES, &a, from, BYTES, &o, &e) == RL_OK);
        CHECK(memcmp(one, four, BYTES) == 0 && one[5] != 0);
    }
    CHECK(from && one && four);
    free(from);
    free(one);
    free(four);
}

/* Dense -> sparse -> dense for every layout of a small matrix. */
TEST(sparse) {
    static const char *const layouts[] = {"f32[4,5]", "f32[4,5]@ba", "f32[4,5]@aB4b", "f32[4,5] strides=[7,1] offset=2"};
    const float row[20] = {0, 5, 0, -0.0f, 1, 0, 0, 0, 0, 0, 2, 3, 4, 0, 0, 0, 0, 0, 0, 9};
    const int64_t coo[] = {0, 0, 2, 2, 2, 3, 1, 4, 0, 1, 2, 4}, csr[] = {0, 2, 2, 5, 6, 1, 4, 0, 1, 2, 4};
    rl_desc r, d;
    CHECK(rl_desc_parse("f32[4,5]", &r, NULL) == RL_OK);
    for (uint32_t k = 0; k < RL_LEN(layouts) * 2; k++) {
        float buf[64], back[64], values[6], dense[20];
        int64_t index[16], n;
        rl_error e = {""};
        rl_sparse s = {.kind = k % 2 ? RL_CSR : RL_COO, .index = index, .values = values};
        CHECK(rl_desc_parse(layouts[k / 2], &d, NULL) == RL_OK && rl_desc_convert(&d, buf, sizeof buf, &r, row, sizeof row, NULL) == RL_OK);
        CHECK(rl_sparse_count(&d, buf, sizeof buf, &n, &e) == RL_OK && n == 6);
        s.nnz = n;
        CHECK(rl_to_sparse(&d, buf, sizeof buf, &s, &e) == RL_OK);
        CHECK(memcmp(index, k % 2 ? csr : coo, k % 2 ? sizeof csr : sizeof coo) == 0 &&
              memcmp(values, (float[]){5, 1, 2, 3, 4, 9}, sizeof values) == 0);
        memset(back, 0x55, sizeof back);
        CHECK(rl_from_sparse(&s, &d, back, sizeof back, &e) == RL_OK &&
              rl_desc_convert(&r, dense, sizeof dense, &d, back, sizeof back, &e) == RL_OK);
        for (int i = 0; i < 20; i++) CHECK(dense[i] == row[i]);
        s.nnz = 5;
        CHECK(rl_to_sparse(&d, buf, sizeof buf, &s, &e) == RL_EUSAGE);
        CHECK_STR(e.text, "nnz is 5, the tensor has 6 elements that are not zero");
    }
    int64_t bad[] = {1, 0, 0, 0};
    rl_error e = {""};
    rl_sparse s = {.kind = RL_COO, .dtype = RL_F32, .rank = 2, .dim = {4, 5}, .nnz = 2, .index = bad, .values = (float[]){1, 2}};
    float buf[20];
    CHECK(rl_from_sparse(&s, &r, buf, sizeof buf, &e) == RL_EUSAGE);
    CHECK_STR(e.text, "element 1 is not after the one before it: indices are sorted, and none stands twice");
    bad[1] = 7;
    CHECK(rl_from_sparse(&s, &r, buf, sizeof buf, &e) == RL_EUSAGE);
    CHECK_STR(e.text, "element 1 has index 7 in axis 0, which has 4");
    s = (rl_sparse){.kind = RL_CSR, .rank = 3};
    CHECK(rl_from_sparse(&s, &r, buf, sizeof buf, &e) == RL_EUSAGE);
    CHECK_STR(e.text, "rank 3; CSR is for matrices");
}

int main(int argc, char **argv) {
    uint32_t step = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 5;
    uint64_t seed = 5;
    for (size_t i = 0; i < sizeof in; i++) in[i] = (uint8_t)((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 56);
    for (uint32_t f = 0; f < RL_LEN(formats); f++) check_shapes(f, step ? step : 1);
    check_pairs(4);
    RUN(nothing_else);
    RUN(numbers);
    RUN(few_bytes);
    RUN(threads);
    RUN(sparse);
    return check_done();
}
