/* Descriptors: the documents' own examples, text both ways, equality, overlap, views, refusals with their reasons. */

#include "../../src/desc.h"
#include "../../src/layout.h"
#include "check.h"

/* Text read and printed again, or the error. */
static const char *again(const char *text) {
    static char out[512];
    rl_desc d;
    rl_error e = {""};
    if (rl_desc_parse(text, &d, &e) != RL_OK) snprintf(out, sizeof out, "!%s", e.text);
    else CHECK(rl_desc_print(&d, out, sizeof out) < sizeof out);
    return out;
}

static rl_desc parse(const char *text) {
    rl_desc d = {0};
    rl_error e = {""};
    if (rl_desc_parse(text, &d, &e) != RL_OK) fprintf(stderr, "%s: %s\n", text, e.text);
    CHECK(e.text[0] == 0);
    return d;
}

static int64_t at(const char *text, int64_t i, int64_t k, int64_t l, int64_t m) {
    rl_desc d = parse(text);
    return rl_desc_offset(&d, (int64_t[8]){i, k, l, m});
}

static bool strides_are(const char *text, const int64_t *want, int64_t unit) {
    rl_desc d = parse(text);
    bool same = d.ndigit == d.rank;
    for (uint32_t a = 0; same && a < d.rank; a++) same = d.digit[a].stride * unit == want[a];
    return same;
}

TEST(megengine) {
    CHECK(strides_are("int32[2,5]", (int64_t[]){20, 4}, 4)); /* bytes */
    CHECK(at("int32[2,5]", 1, 2, 0, 0) * 4 == 28);
    CHECK(strides_are("int32[2,5]@column_major", (int64_t[]){4, 8}, 4));
    CHECK(at("f32[3,3]@row_major", 1, 2, 0, 0) == 5 && at("f32[3,3]@column_major", 1, 2, 0, 0) == 7);
    /* The pictures of [2,64,3,3]: which element lies first, second, ... */
    CHECK(at("i8[2,64,3,3]@NHWC", 0, 1, 0, 0) == 1 && at("i8[2,64,3,3]@NHWC", 0, 0, 0, 1) == 64);
    CHECK(at("i8[2,64,3,3]@NCHW4", 0, 3, 0, 0) == 3 && at("i8[2,64,3,3]@NCHW4", 0, 0, 0, 1) == 4 &&
          at("i8[2,64,3,3]@NCHW4", 0, 4, 0, 0) == 36);
    CHECK(at("i8[2,64,3,3]@NCHW32", 0, 31, 0, 0) == 31 && at("i8[2,64,3,3]@NCHW32", 0, 32, 0, 0) == 32 * 9);
    CHECK(at("i4[2,64,3,3]@NCHW64", 0, 63, 0, 0) == 63 && at("i4[2,64,3,3]@NCHW64", 0, 0, 0, 1) == 64);
    CHECK(at("i8[2,64,3,3]@CHWN4", 0, 3, 0, 0) == 3 && at("i8[2,64,3,3]@CHWN4", 1, 0, 0, 0) == 4 &&
          at("i8[2,64,3,3]@CHWN4", 0, 0, 0, 1) == 8);
    CHECK(at("i8[2,64,3,3]@NCHW4", 1, 5, 2, 0) == 637);
}

TEST(directml) {
    const int64_t dim[] = {1, 1, 3, 5}, rows[] = {5, 1}, flat[] = {0, 1};
    rl_desc d, hw;
    rl_error e;
    CHECK(strides_are("f32[1,1,3,5]", (int64_t[]){15, 15, 5, 1}, 1) && strides_are("f32[1,1,3,5]@nhwc", (int64_t[]){15, 1, 5, 1}, 1));
    CHECK(rl_desc_strided(RL_F32, 4, dim, NULL, 0, &d, NULL) == RL_OK && rl_min_buffer_bytes(&d) == 60);
    CHECK(rl_desc_strided(RL_U8, 2, (int64_t[]){2, 3}, NULL, 0, &hw, NULL) == RL_OK && rl_desc_bytes(&hw) == 6 &&
          rl_min_buffer_bytes(&hw) == 8);
    CHECK(rl_desc_fill_rank(&hw, 4, &d, NULL) == RL_OK && d.rank == 4 && d.dim[0] == 1 && d.dim[1] == 1 && d.dim[2] == 2 && d.dim[3] == 3);
    CHECK(rl_desc_fill_rank(&hw, 5, &d, NULL) == RL_OK && d.rank == 5 && d.digit[0].stride == 6);
    CHECK(rl_desc_strided(RL_U8, 2, (int64_t[]){2, 3}, rows, 0, &d, NULL) == RL_OK && rl_desc_bytes(&d) == 8); /* ABCxxDEF */
    CHECK(rl_desc_strided(RL_U8, 2, (int64_t[]){2, 3}, flat, 0, &d, NULL) == RL_OK && rl_desc_bytes(&d) == 3 && rl_desc_overlaps(&d) == 1);
    CHECK(rl_desc_check_buffer(&d, 4, 0, 0, &e) == RL_OK && rl_desc_check_buffer(&d, 4, 0, 1, &e) == RL_EUSAGE);
    CHECK(rl_desc_check_buffer(&hw, 8, 16, 1, &e) == RL_OK && rl_desc_check_buffer(&hw, 7, 16, 1, &e) == RL_EUSAGE);
    CHECK_STR(e.text, "the buffer has 7 bytes, which is no multiple of 4");
    CHECK(rl_desc_check_buffer(&hw, 4, 16, 1, &e) == RL_EUSAGE);
    CHECK_STR(e.text, "the buffer has 4 bytes, the tensor needs 8");
    CHECK(rl_desc_check_buffer(&hw, 8, 12, 1, &e) == RL_EUSAGE);
    CHECK_STR(e.text, "an alignment of 12 bytes: 0, or a power of two not below the element's size");
    CHECK(at("u8[2,2,3]", 1, 0, 1, 0) == 7); /* {1,0,1} . {6,3,1} */
}

TEST(onednn) {
    for (int64_t n = 0; n < 2; n++)
        for (int64_t c = 0; c < 20; c++)
            for (int64_t hw = 0; hw < 12; hw++) {
                int64_t h = hw / 4, w = hw % 4, C8 = 24, C16 = 32, H = 3, W = 4;
                CHECK(at("f32[2,20,3,4]@nChw8c", n, c, h, w) == n * C8 * H * W + c / 8 * H * W * 8 + h * W * 8 + w * 8 + c % 8);
                CHECK(at("f32[2,20,3,4]@nChw16c", n, c, h, w) == n * C16 * H * W + c / 16 * H * W * 16 + h * W * 16 + w * 16 + c % 16);
            }
    rl_desc d = parse("f32[20,20,3,3]@OIhw16i16o");
    CHECK(rl_desc_bytes(&d) == 4 * 32 * 32 * 9 && rl_desc_padded(&d, 0) == 32);
}

TEST(text) {
    CHECK_STR(again("int8[2,64,3,3]@NCHW4"), "i8[2,64,3,3]@aBcd4b");
    CHECK_STR(again("f32[2,64,3,3]@channels_last"), "f32[2,64,3,3]@acdb");
    CHECK_STR(again("f32[1,1,3,5] strides=[15,1,5,1]"), "f32[1,1,3,5]@acdb");
    CHECK_STR(again("f32[2,3] strides=[3,1]"), "f32[2,3]");
    CHECK_STR(again("f32[2,3] strides=[5,1]"), "f32[2,3] strides=[5,1]");
    CHECK_STR(again("f32[2,3] strides=[0,1] offset=4"), "f32[2,3] strides=[0,1] offset=4");
    CHECK_STR(again("f32[2,3] strides=[3,-1] offset=2"), "f32[2,3] strides=[3,-1] offset=2");
    CHECK_STR(again("f32[2,3]@ab pad=[2,8]"), "f32[2,3] pad=[2,8]");
    CHECK_STR(again("f32[2,3,5,5]@nChw8c pad=[2,9,5,5]"), "f32[2,3,5,5]@aBcd8b pad=[2,16,5,5]");
    CHECK_STR(again("f32[2,3,5,5]@nChw8c pad=[2,8,5,5]"), "f32[2,3,5,5]@aBcd8b");
    CHECK_STR(again("f32[2,3,8]@{2:24,3:1,4:3*2:12}"), "f32[2,3,8]@{2:24,3:1,4:3*2:12}");
    CHECK_STR(again("f32[2,16,3,3]@aBcd8b strides=[999,200,24,8]"), "f32[2,16,3,3]@{2:999,2:200*8:1,3:24,3:8}");
    CHECK_STR(again("f32[2,3,8]@\"ab(cd)->dabc d=2\""), "f32[2,3,8]@{2:12,3:4,4:1*2:24}"); /* a graph edge's layout */
    CHECK_STR(again("f32[2,3,8]@\"ab(cd)->abcd d=2\" offset=1"), "f32[2,3,8] offset=1");
    CHECK_STR(again("f32[2,3,8]@\"ab(cd)->abcd d=3\""), "!'f32[2,3,8]@\"ab(cd)->abcd d=3\"', at column 30: the pieces of an axis do not multiply to its dim");
    CHECK_STR(again("f32[]"), "f32[]");
    CHECK_STR(again("f32[]@{}"), "f32[]");
    CHECK_STR(again("f32[0,3]@ba"), "f32[0,3]@ba");
    CHECK_STR(again("u4[1,3,2,2]@aBcd8b offset=5"), "u4[1,3,2,2]@aBcd8b offset=5");
}

/* Descriptors of every kind, from a seed. */
static rl_desc random_desc(uint64_t *s) {
    rl_desc d = {.dtype = (int32_t)(check_random31(s) % 26 + 1), .rank = (uint32_t)(check_random31(s) % 9)};
    if (d.dtype == RL_STRING) d.dtype = RL_I4;
    bool dense = check_random31(s) % 2;
    for (uint32_t a = 0; a < d.rank; a++) {
        int64_t count = 1;
        uint32_t n = (uint32_t)(check_random31(s) % 3) + 1;
        for (uint32_t i = 0; i < n; i++) {
            int64_t size = (int64_t)(check_random31(s) % (check_random31(s) % 8 ? 5 : 40)) + (check_random31(s) % 40 ? 1 : 0);
            d.digit[d.ndigit++] = (rl_digit){a, size, (int64_t)(check_random31(s) % 1000) - (check_random31(s) % 10 ? 0 : 500)};
            count *= size;
        }
        d.dim[a] = count == 0 ? 0 : (int64_t)(check_random31(s) % 4 ? (uint64_t)count : check_random31(s) % (uint64_t)count);
    }
    if (dense) { /* strides as if the digits lay in a random order */
        uint8_t order[RL_DESC_DIGITS];
        int64_t step = 1;
        for (uint32_t i = 0; i < d.ndigit; i++) {
            uint32_t k = (uint32_t)(check_random31(s) % (i + 1));
            order[i] = order[k];
            order[k] = (uint8_t)i;
        }
        for (uint32_t i = 0; i < d.ndigit; i++) {
            d.digit[order[i]].stride = step;
            step *= RL_MAX(d.digit[order[i]].size, 1);
        }
    }
    d.offset = check_random31(s) % 3 ? 0 : (int64_t)(check_random31(s) % 100000);
    return d;
}

TEST(round_trip) {
    uint64_t seed = 1;
    int good = 0, differ = 0;
    while (good < 100000) {
        char text[512], second[512];
        rl_desc d = random_desc(&seed), x;
        if (rl_desc_check(&d, 0, NULL) != RL_OK) continue;
        good++;
        if (rl_desc_print(&d, text, sizeof text) >= sizeof text || rl_desc_parse(text, &x, NULL) != RL_OK) {
            fprintf(stderr, "not read: %s\n", text);
            differ++;
            continue;
        }
        rl_desc_print(&x, second, sizeof second);
        bool same = d.dtype == x.dtype && d.rank == x.rank && d.ndigit == x.ndigit && d.offset == x.offset && strcmp(text, second) == 0;
        for (uint32_t i = 0; same && i < d.ndigit; i++)
            same = d.digit[i].axis == x.digit[i].axis && d.digit[i].size == x.digit[i].size && d.digit[i].stride == x.digit[i].stride;
        if (same && rl_desc_equal(&d, &x)) continue;
        if (differ++ < 10) fprintf(stderr, "%s\n%s\n", text, second);
    }
    CHECK(differ == 0);
}

/* Texts with random changes: refused with a message, or good and printed so that it reads the same again. */
TEST(damaged_texts) {
    static const char *const texts[] = {"i8[2,64,3,3]@aBcd4b pad=[2,68,3,3] offset=5", "f32[2,3] strides=[5,1]",
                                        "f32[2,3,8]@{2:24,3:1,4:3*2:12}",
                                        "u4[0,3]@channels_last", "f32[1,1,3,5] strides=[15,1,5,1] offset=922"};
    static const char letters[] = "01234567890123456789012345678901234567890123456789,:*{}[]@ -=abcdABCDnNpsto";
    uint64_t s = 23;
    int good = 0, bad = 0, wrong = 0;
    for (int k = 0; k < 200000; k++) {
        char text[128], one[600], two[600];
        rl_desc d, x;
        rl_error e = {""};
        snprintf(text, sizeof text, "%s", texts[check_random31(&s) % RL_LEN(texts)]);
        for (uint64_t n = check_random31(&s) % 3 + 1; n > 0; n--) {
            size_t at = check_random31(&s) % strlen(text);
            if (check_random31(&s) % 4) text[at] = letters[check_random31(&s) % (sizeof letters - 1)];
            else memmove(text + at, text + at + 1, strlen(text + at));
        }
        if (rl_desc_parse(text, &d, &e) != RL_OK) {
            bad++;
            wrong += e.text[0] == 0;
            continue;
        }
        good++;
        rl_desc_print(&d, one, sizeof one);
        bool back = rl_desc_parse(one, &x, NULL) == RL_OK && rl_desc_print(&x, two, sizeof two) < sizeof two && strcmp(one, two) == 0 &&
            rl_desc_equal(&d, &x);
        if (!back && wrong++ < 5) fprintf(stderr, "%s\n%s\n", text, one);
        rl_desc_overlaps(&d);
    }
    CHECK(wrong == 0 && good > 5000 && bad > 5000);
}

static bool equal(const char *a, const char *b) {
    rl_desc x = parse(a), y = parse(b);
    return rl_desc_equal(&x, &y) && rl_desc_equal(&y, &x);
}

TEST(equality) {
    CHECK(equal("f32[2,1,3,3]@nchw", "f32[2,1,3,3]@nhwc") && !equal("f32[2,2,3,3]@nchw", "f32[2,2,3,3]@nhwc"));
    CHECK(equal("f32[2,4,1,1]@nchw", "f32[2,4,1,1]@nhwc"));
    CHECK(equal("f32[2,16,3,3]@nChw16c", "f32[2,16,3,3]@nhwc") && !equal("f32[2,32,3,3]@nChw16c", "f32[2,32,3,3]@nhwc"));
    CHECK(equal("f32[2,32,1,1]@nChw16c", "f32[2,32,1,1]@nchw") && !equal("f32[2,20,1,1]@nChw16c", "f32[2,20,1,1]@nchw"));
    CHECK(equal("f32[1,4,3,3]@NCHW4", "f32[1,4,3,3]@CHWN4") && !equal("f32[2,8,3,3]@NCHW4", "f32[2,8,3,3]@CHWN4"));
    CHECK(equal("f32[8]@{4:2*2:1}", "f32[8]") && equal("f32[7]@{2:4*2:2*2:1}", "f32[7]@{4:2*2:1}"));
    CHECK(equal("f32[1,5] strides=[99,1]", "f32[1,5]") && !equal("f32[2,5] strides=[99,1]", "f32[2,5]"));
    CHECK(equal("f32[0,5] strides=[99,7]", "f32[0,5]"));
    CHECK(!equal("f32[2,5]", "i32[2,5]") && !equal("f32[2,5]", "f32[5,2]") && !equal("f32[2,5]", "f32[2,5] offset=1"));
}

/* Equality is equality of all offsets, on random pairs of digits of one axis that often coincide. */
TEST(equality_is_offsets) {
    uint64_t s = 7;
    int equals = 0, wrong = 0;
    for (int k = 0; k < 200000; k++) {
        rl_desc d[2];
        int64_t dim = (int64_t)(check_random31(&s) % 12) + 1;
        for (int i = 0; i < 2; i++) {
            int64_t count = 1, step = 1;
            d[i] = (rl_desc){.dtype = RL_I8, .rank = 1, .dim = {dim}, .ndigit = (uint32_t)(check_random31(&s) % 3) + 1};
            for (uint32_t g = d[i].ndigit; g-- > 0;) {
                d[i].digit[g] = (rl_digit){0, g ? (int64_t)(check_random31(&s) % 4) + 1 : (dim - 1) / count + 1,
                                           check_random31(&s) % 3 ? step : (int64_t)(check_random31(&s) % 6)};
                count *= d[i].digit[g].size;
                step = d[i].digit[g].stride * d[i].digit[g].size;
            }
        }
        bool same = rl_desc_bytes(&d[0]) == rl_desc_bytes(&d[1]);
        for (int64_t i = 0; i < dim; i++) same = same && rl_desc_offset(&d[0], &i) == rl_desc_offset(&d[1], &i);
        equals += same;
        wrong += same != rl_desc_equal(&d[0], &d[1]);
    }
    CHECK(wrong == 0 && equals > 1000);
}

/* Overlap decided as by marking every place. */
TEST(overlap) {
    uint64_t s = 3;
    int wrong = 0, yes = 0, no = 0;
    for (int k = 0; k < 100000; k++) {
        rl_desc d = {.dtype = RL_I8, .rank = (uint32_t)(check_random31(&s) % 3) + 1};
        unsigned char seen[256] = {0};
        bool twice = false;
        d.ndigit = d.rank;
        for (uint32_t a = 0; a < d.rank; a++) {
            d.dim[a] = (int64_t)(check_random31(&s) % 5) + 1;
            d.digit[a] = (rl_digit){a, d.dim[a], (int64_t)(check_random31(&s) % 20) - (check_random31(&s) % 8 ? 0 : 10)};
            if (d.digit[a].stride < 0) d.offset -= d.digit[a].stride * (d.dim[a] - 1);
        }
        for (int64_t i = 0; i < rl_desc_elements(&d); i++) {
            int64_t index[3], left = i;
            for (uint32_t a = d.rank; a-- > 0; left /= d.dim[a]) index[a] = left % d.dim[a];
            twice = twice || seen[rl_desc_offset(&d, index)]++;
        }
        twice ? yes++ : no++;
        wrong += rl_desc_overlaps(&d) != twice;
    }
    CHECK(wrong == 0 && yes > 10000 && no > 10000);
    rl_desc big = parse("f32[100000,100000] strides=[100000,1]"), tangled = parse("f32[100000,99999,98] strides=[99991,99989,7]");
    CHECK(rl_desc_overlaps(&big) == 0 && rl_desc_overlaps(&tangled) != 0);
}

static const char *view_of(rl_status s, const rl_desc *d, const rl_error *e) {
    static char out[512];
    if (s == RL_OK) rl_desc_print(d, out, sizeof out);
    return s == RL_OK ? out : e->text;
}

TEST(views) {
    rl_desc t = parse("i64[3,4]"), x, y;
    rl_error e;
    CHECK_STR(view_of(rl_desc_permute(&t, (uint32_t[]){1, 0}, &x, &e), &x, &e), "i64[4,3]@ba"); /* Ascend's t.transpose(0, 1) */
    CHECK(x.digit[0].stride == 1 && x.digit[1].stride == 4 && !rl_is_contiguous(&x, RL_CONTIGUOUS) && rl_is_contiguous(&t, RL_CONTIGUOUS));
    CHECK_STR(view_of(rl_desc_permute(&t, (uint32_t[]){1, 1}, &x, &e), &x, &e), "perm[1] is 1: no permutation of 2 axes");
    CHECK_STR(view_of(rl_desc_slice(&t, 0, 1, 1, 1, &x, &e), &x, &e), "i64[1,4] offset=4");
    CHECK_STR(view_of(rl_desc_slice(&t, 1, 3, -2, 2, &x, &e), &x, &e), "i64[3,2] strides=[4,-2] offset=3");
    CHECK_STR(view_of(rl_desc_slice(&t, 1, 3, 1, 2, &x, &e), &x, &e), "a slice of axis 1 from 3, 2 by 1, leaves its 4 elements");
    CHECK_STR(view_of(rl_desc_expand(&t, 3, (int64_t[]){5, 3, 4}, &x, &e), &x, &e), "i64[5,3,4] strides=[0,4,1]");
    CHECK_STR(view_of(rl_desc_expand(&t, 2, (int64_t[]){6, 4}, &x, &e), &x, &e), "axis 0 has 3 elements, which do not repeat to 6");
    CHECK_STR(view_of(rl_desc_reshape(&t, 3, (int64_t[]){3, 2, 2}, &x, &e), &x, &e), "i64[3,2,2]");
    CHECK(rl_desc_permute(&t, (uint32_t[]){1, 0}, &y, &e) == RL_OK);
    CHECK_STR(view_of(rl_desc_reshape(&y, 1, (int64_t[]){12}, &x, &e), &x, &e), "i64[12]@{4:1*3:4}"); /* one axis of two digits */
    CHECK_STR(view_of(rl_desc_reshape(&y, 2, (int64_t[]){6, 2}, &x, &e), &x, &e),
              "the elements of axis 1 do not lie in the places that a view needs: copy first");
    t = parse("f32[2,32,4,4]@nChw16c");
    CHECK_STR(view_of(rl_desc_slice(&t, 1, 16, 1, 16, &x, &e), &x, &e), "f32[2,16,4,4]@{2:512,1:256*16:1,4:64,4:16} offset=256");
    CHECK_STR(view_of(rl_desc_slice(&t, 1, 8, 1, 8, &x, &e), &x, &e),
              "axis 1 is split into blocks of 16: a slice of it starts at a block and has step 1");
    CHECK_STR(view_of(rl_desc_permute(&t, (uint32_t[]){0, 2, 3, 1}, &x, &e), &x, &e), "f32[2,4,4,32]@aDbc16d");
    /* PyTorch internals: a[1, :] of [[1, 2], [3, 4]] has size [2], stride [1], offset 2. */
    t = parse("f32[2,2]");
    CHECK(rl_desc_slice(&t, 0, 1, 1, 1, &y, &e) == RL_OK && rl_desc_reshape(&y, 1, (int64_t[]){2}, &x, &e) == RL_OK);
    CHECK(x.offset == 2 && x.digit[0].stride == 1 && x.dim[0] == 2);
}

/* Reshape against the definition: each element of the view lies where the element of the same row-major position lies. */
TEST(reshape) {
    uint64_t s = 11;
    int views = 0, wrong = 0;
    for (int k = 0; k < 50000; k++) {
        static const int64_t shapes[][4] = {{2, 3, 4, 1}, {4, 6, 1, 1}, {24, 1, 1, 1}, {1, 2, 2, 6}, {3, 2, 1, 4}, {2, 2, 2, 3}};
        const int64_t *from = shapes[check_random31(&s) % 6], *to = shapes[check_random31(&s) % 6];
        uint32_t perm[4] = {0, 1, 2, 3};
        int64_t dim[4];
        rl_desc d, p, x;
        for (uint32_t i = 3; i > 0; i--) {
            uint32_t j = (uint32_t)(check_random31(&s) % (i + 1)), was = perm[i];
            perm[i] = perm[j];
            perm[j] = was;
        }
        for (uint32_t i = 0; i < 4; i++) dim[perm[i]] = from[i];
        CHECK(rl_desc_strided(RL_F32, 4, dim, NULL, 3, &d, NULL) == RL_OK && rl_desc_permute(&d, perm, &p, NULL) == RL_OK);
        if (rl_desc_reshape(&p, 4, to, &x, NULL) != RL_OK) continue;
        views++;
        for (int64_t i = 0; i < 24; i++) {
            int64_t a[4], b[4], left = i, rest = i;
            for (uint32_t q = 4; q-- > 0; left /= p.dim[q]) a[q] = left % p.dim[q];
            for (uint32_t q = 4; q-- > 0; rest /= to[q]) b[q] = rest % to[q];
            wrong += rl_desc_offset(&p, a) != rl_desc_offset(&x, b);
        }
        wrong += rl_desc_check(&x, 1, NULL) != RL_OK;
    }
    CHECK(wrong == 0 && views > 5000);
}

TEST(compare) {
    rl_desc a = parse("f32[2,20,3,3]"), b = parse("f32[2,20,3,3]@nChw8c"), c = parse("f32[2,1,3,3]"), d = parse("f32[2,1,3,3]@nhwc");
    rl_comparison x;
    CHECK(rl_desc_compare(&a, &b, &x, NULL) == RL_OK && x.relation == RL_COPY && x.moved_bytes == 4 * 360 && x.padding_bytes == 4 * 72);
    CHECK(rl_desc_compare(&c, &d, &x, NULL) == RL_OK && x.relation == RL_SAME && x.moved_bytes == 0);
    a = parse("f32[1,3,1,1]"), b = parse("f32[1,3,1,1]@nChw8c");
    CHECK(rl_desc_compare(&a, &b, &x, NULL) == RL_OK && x.relation == RL_COPY && x.moved_bytes == 12 && x.padding_bytes == 20);
    CHECK(rl_desc_compare(&b, &a, &x, NULL) == RL_OK && x.relation == RL_VIEW && x.moved_bytes == 0 && x.padding_bytes == 0);
    /* Channel shuffle of 8 channels in 2 groups: Ascend's index_select. */
    int64_t index[8], want[] = {0, 4, 1, 5, 2, 6, 3, 7};
    a = parse("f32[1,8,2,2]"), b = parse("f32[1,8,2,2]@{1:32,2:4*4:8,2:2,2:1}");
    CHECK(rl_desc_select(&a, &b, index) == 1 && memcmp(index, want, sizeof want) == 0);
    CHECK(rl_desc_compare(&a, &b, &x, NULL) == RL_OK && x.select_axis == 1);
    b = parse("f32[1,8,2,2]@nhwc");
    CHECK(rl_desc_select(&a, &b, index) == -1);
}

TEST(layouts_of_edges) {
    CHECK_CTX(ctx)
    static const char *const names[] = {"abcd", "acdb", "aBcd4b", "Bcda4b", "nChw8c", "\"a(bc)de->acbde b=4\"", "\"abc(de)->deabc e=2\"",
                                        "dcba"};
    const rl_dim dim[] = {2, 8, 3, 4};
    for (uint32_t k = 0; k < RL_LEN(names); k++) {
        const char *s = names[k], *why;
        const rl_layout *l;
        rl_desc d, named;
        CHECK(rl_layout_parse(&ctx->mem, &s, 4, dim, &l, &why));
        CHECK(rl_desc_of_layout(RL_F32, 4, dim, l, &d, NULL) == RL_OK && rl_desc_bytes(&d) == 4 * 192 && rl_desc_overlaps(&d) == 0);
        if (names[k][0] == '"') continue;
        CHECK(rl_desc_named(RL_F32, 4, dim, names[k], NULL, &named, NULL) == RL_OK && rl_desc_equal(&d, &named));
    }
    rl_ctx_free(ctx);
}

TEST(refusals) {
    static const struct { const char *text, *why; } cases[] = {
        {"f32[2,-3]", "the size of axis 1 is -3; no size is negative"},
        {"f32[2,3]@nhwc", "'f32[2,3]@nhwc', at column 10: a layout has one letter for each dim"},
        {"f32[2,3]@channels_last", "'f32[2,3]@channels_last', at column 10: a layout has one letter for each dim"},
        {"f32[1,2,3,4,5,6,7,8,9]", "'f32[1,2,3,4,5,6,7,8,9]', at column 21: a layout has at most 8 dims"},
        {"f32[2,3] strides=[3]", "'f32[2,3] strides=[3]', at column 21: pad and strides have one number for each dim"},
        {"f32[2,3] strides=[3,-1]", "an element would lie at -2, before the buffer"},
        {"f32[2,3] offset=-1", "an element would lie at -1, before the buffer"},
        {"f32[4611686018427387904,3]", "the sizes multiply to more than 64 bits hold"},
        {"f64[1152921504606846976,3]", "the sizes multiply to more bits than 64 bits count"},
        {"f32[2,3] strides=[9223372036854775807,1]", "sizes and strides overflow 64 bits at axis 1"},
        {"f32[2,3] strides=[4611686018427387904,1]", "the buffer has more bits than 64 bits count"},
        {"f32[99999999999999999999]", "'f32[99999999999999999999]', at column 23: a number over 64 bits"},
        {"f32[2,3]@aB0b", "'f32[2,3]@aB0b', at column 13: a block is at least 2"},
        {"f32[2,3]@aBb", "'f32[2,3]@aBb', at column 10: a layout has one letter for each dim"},
        {"f32[2,3]@aa", "'f32[2,3]@aa', at column 11: a layout has each axis once"},
        {"f32[2,3]@ab4c", "'f32[2,3]@ab4c', at column 13: a block needs the letter of an axis"},
        {"f32[2,3]@{2:3,2:1}", "the digits of axis 1 count to 2, its dim is 3"},
        {"f32[2,3]@{2:3}", "'f32[2,3]@{2:3}', at column 14: each dim needs its digits, size:stride"},
        {"f32[2,3] pad=[2,2]", "axis 1 is padded to 2, which is less than its 3"},
        {"f32[2,3] pad=[2,4] pad=[2,4]", "'f32[2,3] pad=[2,4] pad=[2,4]', at column 20: this stands twice"},
        {"f32[2,3]@coo", "'coo' is a sparse layout, which has indices instead of strides; convert it with rl_from_sparse"},
        {"string[2]", "'string[2]', at column 1: an element type is wanted here: i8, f32, u4, int8, ..."},
        {"f33[2]", "'f33[2]', at column 1: an element type is wanted here: i8, f32, u4, int8, ..."},
        {"f32[2", "'f32[2', at column 6: , or ] is wanted here"},
        {"f32[2]x", "'f32[2]x', at column 7: this is left over"}};
    for (size_t i = 0; i < RL_LEN(cases); i++) {
        char want[300];
        snprintf(want, sizeof want, "!%s", cases[i].why);
        CHECK_STR(again(cases[i].text), want);
    }
    rl_desc d = parse("f32[2,3] strides=[1,1]");
    rl_error e;
    CHECK(rl_desc_check(&d, 0, &e) == RL_OK && rl_desc_check(&d, 1, &e) == RL_EUSAGE);
    CHECK_STR(e.text, "elements overlap: two indices have the same place, which cannot be written");
    d.rank = 9;
    CHECK(rl_desc_check(&d, 0, &e) == RL_EUSAGE);
    CHECK_STR(e.text, "the rank is 9; a layout has at most 8 dims");
    d = (rl_desc){.dtype = RL_F32, .rank = 1, .ndigit = 2, .dim = {3}, .digit = {{0, 3, 1}, {1, 2, 1}}};
    CHECK(rl_desc_check(&d, 0, &e) == RL_EUSAGE);
    CHECK_STR(e.text, "digit 1 belongs to axis 1, out of order or beyond rank 1");
}

/* All 24 digits are taken: there is no room for one of another axis. */
TEST(full) {
    char text[400] = "i8[16777216]@{2:8388608";
    rl_desc x;
    rl_error e;
    for (int k = 22; k >= 0; k--) sprintf(text + strlen(text), "*2:%d", 1 << k);
    rl_desc d = parse(strcat(text, "}"));
    const int64_t dim[] = {1, 1, 1, 1, 1, 1, 1, 1 << 24};
    CHECK(d.ndigit == RL_DESC_DIGITS && rl_desc_permute(&d, (uint32_t[]){0}, &x, &e) == RL_OK && rl_desc_equal(&d, &x));
    CHECK_STR(view_of(rl_desc_fill_rank(&d, 2, &x, &e), &x, &e), "a layout has at most 24 digits");
    CHECK(rl_desc_fill_rank(&d, 1, &x, &e) == RL_OK && rl_desc_fill_rank(&d, 8, &x, &e) == RL_ELIMIT);
    CHECK(rl_desc_expand(&d, 1, &dim[7], &x, &e) == RL_OK && rl_desc_expand(&d, 8, dim, &x, &e) == RL_ELIMIT);
    CHECK_STR(e.text, "a layout has at most 24 digits");
    /* An axis of 1 gives its digits back where it is repeated. */
    d.dim[0] = 1;
    CHECK(rl_desc_expand(&d, 8, (int64_t[]){1, 1, 1, 1, 1, 1, 1, 5}, &x, &e) == RL_OK && x.ndigit == 8);
}

/* What no function of these makes: each that can fail says so. */
TEST(no_descriptors) {
    rl_desc bad[] = {{.dtype = RL_F32, .rank = 12, .ndigit = 12}, {.dtype = RL_F32, .rank = 1, .ndigit = 40}, {.dtype = RL_F32, .rank = 2, .ndigit = 1},
                     {.dtype = RL_UNDEF}, parse("f32[4]")};
    bad[4].offset = -1;
    for (uint32_t i = 0; i < RL_LEN(bad); i++) {
        const rl_desc *d = &bad[i];
        rl_desc good = parse("f32[4]"), x;
        rl_comparison how;
        int copies;
        const int64_t dim[16] = {1, 1};
        const uint32_t perm[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
        char *text;
        CHECK(rl_desc_permute(d, perm, &x, NULL) == RL_EUSAGE && rl_desc_slice(d, 0, 0, 1, 0, &x, NULL) == RL_EUSAGE);
        CHECK(rl_desc_expand(d, 8, dim, &x, NULL) == RL_EUSAGE && rl_desc_reshape(d, 1, dim, &x, NULL) == RL_EUSAGE);
        CHECK(rl_desc_fill_rank(d, 8, &x, NULL) == RL_EUSAGE && rl_desc_draw(d, "text", &text, NULL) == RL_EUSAGE);
        CHECK(rl_to_format(d, RL_PRESERVE, &x, &copies, NULL) == RL_EUSAGE && rl_to_format(d, RL_CONTIGUOUS, &x, &copies, NULL) == RL_EUSAGE);
        CHECK(rl_propagate(2, (rl_desc[]){good, *d}, &x, NULL) == RL_EUSAGE && rl_propagate(1, d, &x, NULL) == RL_EUSAGE);
        CHECK(rl_desc_compare(d, d, &how, NULL) == RL_EUSAGE && rl_desc_compare(&good, d, &how, NULL) == RL_EUSAGE);
    }
    rl_desc wide[] = {parse("i8[1099511627776,1]"), parse("i8[1,1099511627776]")}, x;
    rl_error e;
    CHECK(rl_propagate(2, wide, &x, &e) == RL_EUSAGE);
    CHECK_STR(e.text, "the sizes multiply to more bits than 64 bits count");
    x = parse("f32[0,4] strides=[1,4611686018427387904]"); /* no elements, so no places that overflow */
    CHECK(rl_desc_slice(&x, 1, 3, -3, 2, &x, &e) == RL_OK && rl_desc_check(&x, 0, &e) == RL_OK);
    x = parse("f32[3,0]@{3:1,4:3}"); /* none either, but padding */
    CHECK(rl_desc_slice(&x, 0, 2, -1, 3, &x, &e) == RL_OK && x.offset == 2 && rl_desc_check(&x, 0, &e) == RL_OK);
}

TEST(drawings) {
    char *text;
    rl_error e;
    rl_desc d = parse("u8[2,3]@nc pad=[2,4]"), repeated = parse("u8[2,3] strides=[0,1]");
    CHECK(rl_desc_draw(&d, "text", &text, &e) == RL_OK);
    CHECK_STR(text, "       0  0 1 2 - | 3 4 5 -\n");
    rl_free(text);
    CHECK(rl_desc_draw(&repeated, "text", &text, &e) == RL_OK);
    CHECK_STR(text, "       0  * * *\n");
    rl_free(text);
    CHECK(rl_desc_draw(&d, "png", &text, &e) == RL_EUSAGE);
    CHECK_STR(e.text, "a picture is text or svg, not 'png'");
}

int main(void) {
    RUN(megengine);
    RUN(directml);
    RUN(onednn);
    RUN(text);
    RUN(round_trip);
    RUN(damaged_texts);
    RUN(equality);
    RUN(equality_is_offsets);
    RUN(overlap);
    RUN(views);
    RUN(reshape);
    RUN(compare);
    RUN(layouts_of_edges);
    RUN(refusals);
    RUN(full);
    RUN(no_descriptors);
    RUN(drawings);
    return check_done();
}
