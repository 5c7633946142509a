/* See hint.h. */
#include "hint.h"

#include <string.h>

enum { LONGEST = 40 };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Edits from a to b, rows of the usual table: two back, one back, this one. */
static size_t distance(const char *a, const char *b) {
    size_t row[3][LONGEST + 1] = {{0}}, n = strlen(b);
    for (size_t k = 0; k <= n; k++) row[0][k] = k;
    size_t i = 0;
    for (; a[i]; i++) {
        const size_t *back = row[(i + 2) % 3], *last = row[i % 3];
        size_t *now = row[(i + 1) % 3];
        now[0] = i + 1;
        for (size_t k = 0; k < n; k++) {
            now[k + 1] = least(least(last[k + 1], now[k]) + 1, last[k] + (a[i] != b[k]));
            if (i && k && a[i] == b[k - 1] && a[i - 1] == b[k]) now[k + 1] = least(now[k + 1], back[k - 1] + 1);
        }
    }
    return row[i % 3][n];
}

const char *rl_hint(const char *word, const char *const *known, size_t n) {
    const char *best = NULL;
    size_t length = strlen(word), most = length < 3 ? 1 : length / 3;
    if (length == 0 || length > LONGEST) return NULL;
    for (size_t i = 0; i < n; i++) {
        size_t d = strlen(known[i]) > LONGEST ? most + 1 : distance(word, known[i]);
        if (d > most) continue;
        best = known[i];
        if (d == 0) break;
        most = d - 1;
    }
    return best;
}
