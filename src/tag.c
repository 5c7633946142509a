/* Names of layouts: see tag.h. */
#include "tag.h"

#include <string.h>

/* The letters of each convention in its logical order: a name is a tag of the convention that has just its letters. */
static const char *const families[] = {"nc", "ncw", "nchw", "ncdhw", "oi", "oiw", "oihw", "oidhw", "goi", "goiw", "goihw", "goidhw",
                                       "tn", "tnc", "ldnc", "ldio", "ldgo", "ldigo", "x"};

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static char lower(char c) {
    return (char)(c | 0x20);
}

/* The family whose letters are the n at s, each once; NULL: the letters mean themselves. */
static const char *family_of(const char *s, uint32_t n) {
    for (uint32_t i = 0; i < RL_LEN(families); i++) {
        uint32_t k = 0;
        if (strlen(families[i]) != n) continue;
        while (k < n && strchr(families[i], lower(s[k]))) k++;
        if (k == n) return families[i];
    }
    return NULL;
}

static uint32_t axis_of(const char *family, char c) {
    if (!family) return (uint32_t)(lower(c) - 'a');
    const char *at = strchr(family, lower(c));
    return at ? (uint32_t)(at - family) : RL_NONE;
}

static void add(rl_tag *t, uint32_t axis, int64_t block) {
    t->axis[t->n] = (uint8_t)axis;
    t->block[t->n++] = block;
}

/* Behind the word, when the text starts with it and it ends there. */
static const char *after_word(const char *s, const char *word) {
    size_t n = strlen(word);
    if (strncmp(s, word, n) != 0 || rl_is_letter(s[n]) || is_digit(s[n]) || s[n] == '_') return NULL;
    return s + n;
}

static bool read_word(const char **s, uint32_t rank, rl_tag *t) {
    static const struct { const char *word, *axes; } words[] = {
        {"contiguous", NULL}, {"row_major", NULL}, {"column_major", ""}, {"channels_last", "acdb"}, {"channels_last_3d", "acdeb"}};
    for (uint32_t i = 0; i < RL_LEN(words); i++) {
        const char *end = after_word(*s, words[i].word), *axes = words[i].axes;
        bool fixed = axes && *axes;
        if (!end || rank > RL_TAG_MAX || (fixed && strlen(axes) != rank)) continue;
        for (uint32_t k = 0; k < rank; k++) add(t, !axes ? k : fixed ? (uint32_t)(axes[k] - 'a') : rank - 1 - k, 0);
        *s = end;
        return true;
    }
    return false;
}

static bool fail(const char **why, const char *what) {
    *why = what;
    return false;
}

/* 16c, or 4 at the end of MegEngine's names. */
static bool read_block(const char **s, uint32_t rank, const char *family, rl_tag *t, const char **why) {
    int64_t size = 0;
    for (; is_digit(**s); ++*s)
        if ((size = size * 10 + (**s - '0')) > INT32_MAX) return fail(why, "a block is too large");
    if (size < 2) return fail(why, "a block is at least 2");
    bool bare = !rl_is_letter(**s) && t->n == rank && family && family[0] == 'n' && family[1] == 'c';
    uint32_t axis = bare ? 1 : rl_is_letter(**s) ? axis_of(family, **s) : RL_NONE;
    if (axis >= rank) return fail(why, "a block needs the letter of an axis");
    if (t->n == RL_TAG_MAX) return fail(why, "a layout has at most 52 digits");
    *s += !bare;
    add(t, axis, size);
    return true;
}

bool rl_tag_parse(const char **s, uint32_t rank, rl_tag *out, const char **why) {
    rl_tag t = {0};
    uint32_t n = 0;
    uint64_t seen = 0;
    bool word = read_word(s, rank, &t);
    while (!word && rl_is_letter((*s)[n])) n++;
    if (!word && (n != rank || n > RL_TAG_MAX)) return fail(why, "a layout has one letter for each dim");
    const char *family = word ? NULL : family_of(*s, n);
    for (; t.n < rank; ++*s) {
        uint32_t axis = axis_of(family, **s);
        if (axis >= rank || seen >> axis & 1) return fail(why, "a layout has each axis once");
        seen |= (uint64_t)1 << axis;
        add(&t, axis, 0);
    }
    while (!word && is_digit(**s))
        if (!read_block(s, rank, family, &t, why)) return false;
    *out = t;
    return true;
}
