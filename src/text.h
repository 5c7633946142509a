/* The IR as text: what tests are written in, what dumps and `relayout print` show.
 *
 *   graph stem opset=17 opset.com.acme=2 {        # opset missing: 21 (ir=N: 10); a name that is no plain word stands in "..."
 *     in %x f32[1,3,H,W]                          # dims are numbers or expressions of symbols (dim.h)
 *     in %c bool[]
 *     const %w f32[64,3,7,7] seed=1               # or {1,2,3}, {0} for all zeros, hex"00ff", external
 *     %1 f32[1,64,112,112] = Conv(%x, %w, _) @name="conv1" strides=[2,2] auto_pad="VALID"
 *     %2@acdb = Move(%1)                          # no type: inferred; a layout (layout.h) without one, too
 *     %y, %z = com.acme::Thing(%2) k=3 f=1.5 t=i64[2]{1,2} e=floats[] raw=hex"0a01"
 *     %4 = If(%c) then_branch=graph { %t = Relu(%^2)  out %t } else_branch=graph { ... }
 *     out %y, %z
 *   }
 *
 * A body names a value of a graph around it %^name; _ is an input or output left out; () are no outputs; %~3 is a value
 * without a name.  Line ends do not matter; # starts a comment.  What is printed reads as the same text again.
 *
 * Constants of up to 64 elements are printed whole; others as seed=K, K a hash of the bytes, so that two graphs with
 * unequal weights have unequal texts.  Reading makes small integers (-8..7; unsigned 0..15) from K, from which printing
 * finds K again: the text stays the same, though not the weights.
 *
 * Canonical text has values numbered in an order that depends only on the outputs and what they are computed from, nodes
 * in that order, and no names: two graphs are equal iff their canonical texts are. */
#ifndef RL_TEXT_H
#define RL_TEXT_H
#include "ir.h"

enum { RL_TEXT_OPSET = 21, RL_TEXT_IR = 10 }; /* of a text that does not say */

/* Reads one graph from the n bytes at s; infers the types left out (rl_shape_infer).  The graph is the caller's.
 * RL_EMODEL: the message is "file:line:col: what", the line, and a caret below the place. */
rl_status rl_text_parse(rl_ctx *ctx, const char *file, const char *s, size_t n, rl_graph **g);
void rl_text_print(const rl_graph *g, bool canonical, rl_text *out);

/* For the files that implement this.  The shortest text that reads as f again, in the type. */
void rl_text_shortest(char s[32], rl_dtype t, float f);
void rl_text_put_float(rl_text *t, float f);
void rl_text_put_double(rl_text *t, double f);
/* The data that seed=K stands for (nbyte bytes), and K from such data. */
void rl_text_seeded(rl_dtype t, uint64_t seed, void *data, size_t nbyte);
bool rl_text_seed_of(rl_dtype t, const void *data, size_t nbyte, uint64_t *seed);
float rl_half_float(uint16_t h);  /* IEEE binary16 */
uint16_t rl_float_half(float f);  /* to nearest, ties to even */
float rl_bf16_float(uint16_t h);
uint16_t rl_float_bf16(float f);

#endif
