/* Descriptors of buffers (include/relayout.h teaches them): what their files share.
 *
 * A graph edge has an rl_layout, the order of its digits in dense memory; a descriptor has strides, an offset and padding on top,
 * and belongs to a buffer instead of a graph: a plain value, without a context.  rl_desc_of_layout leads from one to the other. */
#ifndef RL_DESC_H
#define RL_DESC_H
#include "ir.h"
#include "tag.h"

/* Stores the message, where e is given, and returns status. */
rl_status rl_desc_fail(rl_error *e, rl_status status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
#ifdef __clang_analyzer__ /* as for rl_fail */
#define rl_desc_fail(e, status, ...) ((rl_desc_fail)((e), (status), __VA_ARGS__), (status))
#endif

/* RL_EUSAGE where what a public function needs is NULL: RL_WANTS(e, d, out); */
rl_status rl_desc_wants(rl_error *e, const char *names, const void *const *p, size_t n);
#define RL_POINTERS(...) ((const void *const[]){__VA_ARGS__})
#define RL_WANTS(e, ...) RL_TRY(rl_desc_wants((e), #__VA_ARGS__, RL_POINTERS(__VA_ARGS__), RL_LEN(RL_POINTERS(__VA_ARGS__))))

/* The digits of axis a are d->digit[first .. first + n - 1]. */
typedef struct { uint32_t first, n; } rl_digits;
rl_digits rl_desc_axis(const rl_desc *d, uint32_t a);
/* RL_ELIMIT where a layout has no room for n digits. */
rl_status rl_desc_room(uint32_t n, rl_error *e);
/* The product of the sizes of the axis's digits: what it counts to, at least dim. */
int64_t rl_desc_padded(const rl_desc *d, uint32_t a);
/* The product of the sizes of the axis's inner digits: 16 for b of aBcd16b, 1 where the axis has one digit. */
int64_t rl_desc_block(const rl_desc *d, uint32_t a);
/* The offset that index i of axis a adds. */
int64_t rl_desc_step(const rl_desc *d, uint32_t a, int64_t i);
/* True when each axis has one digit that counts to its dim: sizes and strides. */
bool rl_desc_is_strided(const rl_desc *d);
/* The lowest and the highest element, padding counted; false when there is none. */
bool rl_desc_range(const rl_desc *d, int64_t *low, int64_t *high);

/* Dense digits in the tag's order; pad may be NULL. */
rl_status rl_desc_of_tag(int32_t dtype, uint32_t rank, const int64_t *dim, const rl_tag *t, const int64_t *pad, rl_desc *out, rl_error *e);
/* The layout of a graph edge as the buffer it stands for. RL_ELIMIT: over 8 dims or 24 digits, or a size is not a number. */
rl_status rl_desc_of_layout(rl_dtype t, uint32_t rank, const rl_dim *dim, const rl_layout *l, rl_desc *out, rl_error *e);

/* "int8", "i8", "float32" ...; RL_UNDEF: none. */
rl_dtype rl_desc_dtype(const char *s, size_t n);

/* d->digit's indices with the largest stride first; in a tie what has more than one element, then the lower axis. */
void rl_desc_order(const rl_desc *d, uint8_t *order);

#endif
