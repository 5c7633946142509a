/* Every row of cuda/kernels.def with every type that it names: one node, on an emulated device and on the CPU.  That the device ran it, and
 * did not decline, is checked, too: so the table promises nothing that the kernels do not do. */
#include "../../cuda/backend.h"

#include <math.h>
#include <string.h>

#include "../../runtime/kernels.h"
#include "../../runtime/values.h"
#include "../../src/text.h"
#include "check.h"

typedef struct { const char *type; uint32_t since; rl_kernel_fn *fn; uint32_t types; } row;
static const row rows[] = {
#define KERNEL(domain, type, since, until, types, fn, arg) {(domain)[0] ? domain "::" #type : #type, since, fn, types},
#include "../../cuda/kernels.def"
#undef KERNEL
};

/* Weights of the convolutions of bytes. */
#define BYTES_W \
    "{-125,-88,-51,-14,23,60,97,-117,-80,-43,-6,31,68,105,-109,-72,-35,2,39,76,113,-101,-64,-27,10,47,84,121,-93,-56,-19,18," \
    "55,92,-122,-85,-48,-11,26,63,100,-114,-77,-40,-3,34,71,108,-106,-69,-32,5,42,79,116,-98,-61,-24,13,50,87,124,-90,-53," \
    "-16,21,58,95,-119,-82,-45,-8,29,66,103,-111,-74,-37,0,37,74,111,-103,-66,-29,8,45,82,119,-95,-58,-21,16,53,90,-124,-87," \
    "-50,-13,24,61,98,-116,-79,-42,-5,32,69,106,-108,-71,-34,3,40,77,114,-100,-63,-26,11,48,85,122,-92,-55,-18,19,56,93,-121," \
    "-84,-47,-10,27,64,101,-113,-76,-39,-2,35,72,109,-105}"
#define BYTES_D \
    "{-125,-96,-67,-38,-9,20,49,78,107,-115,-86,-57,-28,1,30,59,88,117,-105,-76,-47,-18,11,40,69,98,-124,-95,-66,-37,-8,21,50," \
    "79,108,-114}"
#define BYTES_U \
    "{0,37,74,111,148,185,222,3,40,77,114,151,188,225,6,43,80,117,154,191,228,9,46,83}"

/* # stands for the type; an op may have several, of older opsets, too. Others go by their kernel (form_of). */
static const struct { const char *type, *text; } forms[] = {
    {"PRelu", "in %x #[2,3,4] in %z #[3,1] %y = PRelu(%x, %z)"},
    {"Mod", "in %x #[3,5] in %z #[5] %y = Mod(%x, %z) fmod=1"},
    {"BitShift", "in %x #[3,5] in %z #[5] %y = BitShift(%x, %z) direction=\"LEFT\""},
    {"BitShift", "in %x #[3,5] in %z #[5] %y = BitShift(%x, %z) direction=\"RIGHT\""},
    {"Clip", "in %x #[3,5] const %a #[] {1} const %b #[] {2} %y = Clip(%x, %a, %b)"},
    {"Clip", "opset=6 in %x f32[3,5] %y = Clip(%x) min=0.25 max=0.5"},
    {"Clip", "in %x #[3,5] const %b #[] {1} %y = Clip(%x, _, %b)"},
    {"Where", "in %c bool[3,1] in %x #[3,5] in %z #[5] %y = Where(%c, %x, %z)"},
    {"Where", "in %c bool[2,1,32] in %x #[2,5,32] const %z #[] {1} %y = Where(%c, %x, %z)"},
    {"Where", "in %c bool[2,5,1] in %x #[2,5,32] in %z #[32] %y = Where(%c, %x, %z)"},
    {"SwiGLU", "in %x #[3,5] in %z #[3,5] %y = SwiGLU(%x, %z) alpha=1.5"},
    {"com.microsoft::BiasGelu", "in %x #[3,5] in %z #[5] %y = com.microsoft::BiasGelu(%x, %z)"},
    {"com.microsoft::FastGelu", "in %x #[3,5] in %z #[5] %y = com.microsoft::FastGelu(%x, %z)"},
    {"com.microsoft::FastGelu", "in %x #[3,5] %y = com.microsoft::FastGelu(%x)"},
    {"com.microsoft::QuickGelu", "in %x #[3,5] %y = com.microsoft::QuickGelu(%x)"},
    {"com.microsoft::SkipLayerNormalization", "in %x #[2,5,8] in %k #[2,5,8] in %g #[8] in %b #[8] in %a #[8] "
                                              "%y, _, _, %s = com.microsoft::SkipLayerNormalization(%x, %k, %g, %b, %a)"},
    {"com.microsoft::SkipLayerNormalization", "in %x #[2,5,8] in %k #[5,8] const %g #[8] {1,2,-1,0.5,1,1,2,3} const %b #[8] {1,0,0,2,1,1,-1,1} "
                                              "%o, _, _, %y = com.microsoft::SkipLayerNormalization(%x, %k, %g, %b)"},
    {"com.microsoft::SkipSimplifiedLayerNormalization", "in %x #[2,5,8] in %k #[2,5,8] in %g #[8] in %a #[8] "
                                                        "%y = com.microsoft::SkipSimplifiedLayerNormalization(%x, %k, %g, %a)"},
    {"Shrink", "in %x #[3,5] %y = Shrink(%x) lambd=0.25 bias=0.125"},
    {"Dropout", "in %x #[3,5] const %r f32[] {0.5} const %t bool[] {0} %y = Dropout(%x, %r, %t)"},
    {"Hardmax", "in %x #[3,5,4] %y = Hardmax(%x) axis=1"},
    {"Hardmax", "in %x #[3,300] %y = Hardmax(%x)"},
    {"Hardmax", "opset=11 in %x #[3,5,4] %y = Hardmax(%x)"},
    {"LpNormalization", "in %x #[3,5,4] %y = LpNormalization(%x) axis=1 p=1"},
    {"LpNormalization", "in %x #[3,300] %y = LpNormalization(%x)"},
    {"MeanVarianceNormalization", "in %x #[2,3,4,5] %y = MeanVarianceNormalization(%x)"},
    {"MeanVarianceNormalization", "in %x #[2,300] %y = MeanVarianceNormalization(%x) axes=[1]"},
    {"EyeLike", "in %x #[3,5] %y = EyeLike(%x) k=1"},
    {"EyeLike", "in %x #[4,3] %y = EyeLike(%x) k=-2 dtype=10"},
    {"EyeLike", "in %x #[4,3] %y = EyeLike(%x) k=3"},
    {"Gelu", "in %x #[3,5] %y = Gelu(%x)"},
    {"Gelu", "in %x #[3,5] %y = Gelu(%x) approximate=\"tanh\""},
    {"Cast", "in %x #[3,5] %y = Cast(%x) to=1"},
    {"Cast", "in %x #[3,5] %y = Cast(%x) to=7"},
    {"Cast", "in %x #[3,5] %y = Cast(%x) to=9"},
    {"Cast", "in %x #[3,5] %y = Cast(%x) to=10"},
    /* 16 bytes at a time: a row for all, one element for each row, a last vector that is short */
    {"Add", "in %x #[3,5] in %z #[5] %y = Add(%x, %z)"},
    {"Add", "in %x #[3,32] in %z #[32] %y = Add(%x, %z)"},
    {"Sub", "in %x #[2,5,16] in %z #[5,1] %y = Sub(%z, %x)"},
    {"Mul", "in %x #[77] in %z #[77] %y = Mul(%x, %z)"},
    {"Less", "in %x #[4,48] in %z #[48] %y = Less(%x, %z)"},
    /* teams of 8, 32 and 256 threads for a line, lines beside each other, lines that a team does not hold */
    {"CastLike", "in %x #[77] in %z f32[2] %y = CastLike(%x, %z)"}, /* shorter floats by eights */
    {"CastLike", "in %x #[77] in %z bf16[2] %y = CastLike(%x, %z)"},
    {"CastLike", "in %x #[3,5] in %z i32[2] %y = CastLike(%x, %z)"},
    {"CastLike", "in %x #[3,5] in %z f16[2] %y = CastLike(%x, %z)"},
    {"Softmax", "in %x #[3,5,4] %y = Softmax(%x) axis=1"},
    {"Softmax", "in %x #[70,49] %y = Softmax(%x)"},
    {"Softmax", "in %x #[2,150,9] %y = Softmax(%x) axis=1"},
    {"Softmax", "in %x #[2,2100] %y = Softmax(%x)"},
    {"LogSoftmax", "in %x #[3,300] %y = LogSoftmax(%x)"},
    {"LogSoftmax", "in %x #[21,200] %y = LogSoftmax(%x)"},
    {"LogSoftmax", "in %x #[2,2100] %y = LogSoftmax(%x)"},
    {"LayerNormalization", "in %x #[3,5,4] in %s #[5,4] in %b #[5,4] %y = LayerNormalization(%x, %s, %b) axis=1"},
    {"LayerNormalization", "in %x #[3,5,4] in %s #[4] %y = LayerNormalization(%x, %s)"},
    {"LayerNormalization", "in %x #[40,96] in %s #[96] in %b #[96] %y = LayerNormalization(%x, %s, %b)"},
    {"LayerNormalization", "in %x #[2,2100] in %s #[2100] in %b #[2100] %y = LayerNormalization(%x, %s, %b)"},
    {"SimplifiedLayerNormalization", "in %x #[3,5,4] in %s #[4] %y = SimplifiedLayerNormalization(%x, %s)"},
    {"LayerNormalization", "in %x #[3,5,4] const %s #[4] {1,2,-1,0.5} const %b #[1,4] {1,0,-1,2} %y = LayerNormalization(%x, %s, %b)"},
    {"RMSNormalization", "in %x #[3,400] in %s #[400] %y = RMSNormalization(%x, %s)"},
    {"RMSNormalization", "in %x #[3,5,4] in %s #[4] %y = RMSNormalization(%x, %s)"},
    {"InstanceNormalization", "in %x #[2,6,3,2] in %s #[6] in %b #[6] %y = InstanceNormalization(%x, %s, %b)"},
    {"GroupNormalization", "in %x #[2,6,3,2] in %s #[6] in %b #[6] %y = GroupNormalization(%x, %s, %b) num_groups=3"},
    /* parts of a line: whole vectors of them, lines that begin anywhere, scales for parts of a part, parts that a block does not hold */
    {"LayerNormalization", "in %x #[3,8200] in %s #[8200] in %b #[8200] %y = LayerNormalization(%x, %s, %b)"},
    {"LayerNormalization", "in %x #[3,8193] in %s #[8193] %y = LayerNormalization(%x, %s)"},
    {"RMSNormalization", "in %x #[2,8200] in %s #[8200] %y = RMSNormalization(%x, %s)"},
    {"InstanceNormalization", "in %x #[2,2,9001] in %s #[2] in %b #[2] %y = InstanceNormalization(%x, %s, %b)"},
    {"InstanceNormalization", "opset=22 in %x #[1,1,1050000] in %s #[1] in %b #[1] %y = InstanceNormalization(%x, %s, %b)"},
    {"GroupNormalization", "in %x #[1,12,7,100] in %s #[12] in %b #[12] %y = GroupNormalization(%x, %s, %b) num_groups=1"},
    /* teams of 1, 8, 32, 256 threads for an output, outputs beside each other, outputs in parts */
    {"ReduceSum", "in %x #[3,5,2] const %a i64[2] {0,-1} %y = ReduceSum(%x, %a)"},
    {"ReduceSum", "in %x #[70,20] const %a i64[1] {1} %y = ReduceSum(%x, %a) keepdims=0"},
    {"ReduceSum", "in %x #[9,100] const %a i64[1] {1} %y = ReduceSum(%x, %a)"},
    {"ReduceSum", "in %x #[2,600] const %a i64[1] {1} %y = ReduceSum(%x, %a)"},
    {"ReduceSum", "in %x #[1,64,40,4] const %a i64[2] {1,2} %y = ReduceSum(%x, %a)"},
    {"ReduceMean", "in %x #[2,20000] const %a i64[1] {1} %y = ReduceMean(%x, %a)"},
    {"ReduceMean", "in %x #[3,40,11] const %a i64[1] {1} %y = ReduceMean(%x, %a)"},
    {"ReduceSumSquare", "in %x #[130,40,3] const %a i64[2] {0,1} %y = ReduceSumSquare(%x, %a)"},
    {"ReduceMax", "in %x #[20000] %y = ReduceMax(%x) keepdims=0"},
    {"ArgMax", "in %x #[3,300] %y = ArgMax(%x) axis=-1"},
    {"ArgMax", "in %x #[7,40,5] %y = ArgMax(%x) axis=1 keepdims=0 select_last_index=1"},
    {"ArgMax", "in %x #[900] %y = ArgMax(%x)"},
    {"ArgMin", "in %x #[40,6] %y = ArgMin(%x) axis=1"},
    {"ArgMin", "in %x #[30,9] %y = ArgMin(%x) select_last_index=1"},
    {"ReduceLogSumExp", "in %x #[3,5,2] const %a i64[2] {0,-1} %y = ReduceLogSumExp(%x, %a)"},
    {"ReduceLogSumExp", "in %x #[3,700] const %a i64[1] {1} %y = ReduceLogSumExp(%x, %a)"},
    {"ReduceLogSumExp", "in %x #[9,100,3] const %a i64[1] {1} %y = ReduceLogSumExp(%x, %a) keepdims=0"},
    /* heads apart and together, groups of them, in pieces (of 256 scores on an emulated device); masks; a query that sees no key */
    {"Attention", "in %q #[2,3,5,8] in %k #[2,3,7,8] in %v #[2,3,7,4] %y = Attention(%q, %k, %v)"},
    {"Attention", "in %q #[2,5,24] in %k #[2,7,24] in %v #[2,7,12] %y = Attention(%q, %k, %v) q_num_heads=3 kv_num_heads=3 is_causal=1"},
    {"Attention", "in %q #[2,6,5,8] in %k #[2,2,7,8] in %v #[2,2,7,8] in %m bool[5,7] %y = Attention(%q, %k, %v, %m) softcap=0.5"},
    {"Attention", "in %q #[2,9,48] in %k #[2,11,16] in %v #[2,11,24] in %m #[2,1,9,11] %y = Attention(%q, %k, %v, %m) q_num_heads=6 kv_num_heads=2 scale=0.75"},
    {"Attention", "in %q #[2,3,5,8] in %k #[2,3,7,8] in %v #[2,3,7,4] in %o #[2,3,4,8] in %u #[2,3,4,4] %y, %h, %i = Attention(%q, %k, %v, _, %o, %u) is_causal=1"},
    {"Attention", "in %q #[2,3,5,8] in %k #[2,3,7,8] in %v #[2,3,7,4] const %n i64[2] {3,7} %y = Attention(%q, %k, %v, _, _, _, %n) is_causal=1"},
    {"Attention", "in %q #[1,2,3,4] in %k #[1,2,4,4] in %v #[1,2,4,4] const %m bool[3,4] {1,0,1,1,0,0,0,0,0,1,0,0} %y = Attention(%q, %k, %v, %m)"},
    {"Attention", "in %q #[1,2,3,4] in %k #[1,2,4,4] in %v #[1,2,4,4] in %m #[3,2] %y = Attention(%q, %k, %v, %m)"},
    {"Attention", "in %q #[1,2,3,4] in %k #[1,2,4,4] in %v #[1,2,4,4] in %m #[3,1] %y = Attention(%q, %k, %v, %m)"},
    {"Attention", "in %q #[1,2,3,4] in %k #[1,2,4,4] in %v #[1,2,4,4] %o, %h, %i, %y = Attention(%q, %k, %v) is_causal=1 qk_matmul_output_mode=3"},
    {"Attention", "in %q #[2,6,40] in %k #[2,9,20] in %v #[2,9,16] in %m bool[6,9] %o, %h, %i, %y = Attention(%q, %k, %v, %m) q_num_heads=4 kv_num_heads=2"},
    {"Attention", "in %q #[1,2,3,8] in %k #[1,1,300,8] in %v #[1,1,300,8] in %m #[300] %y = Attention(%q, %k, %v, %m)"},
    {"Attention", "in %q #[1,1,2,8] in %k #[1,1,2100,8] in %v #[1,1,2100,8] %y = Attention(%q, %k, %v)"},
    {"Attention", "in %q #[1,2,9,16] in %k #[1,2,30,16] in %v #[1,2,30,8] %y = Attention(%q, %k, %v) scale=8.0"}, /* scores of a hundred: in f32 */
    {"RotaryEmbedding", "in %x #[2,3,5,8] in %c #[2,5,4] in %s #[2,5,4] %y = RotaryEmbedding(%x, %c, %s)"},
    {"RotaryEmbedding", "in %x #[2,5,24] in %c #[7,3] in %s #[7,3] const %p i64[2,5] {0,1,2,3,4,6,5,4,3,2} "
                        "%y = RotaryEmbedding(%x, %c, %s, %p) num_heads=3 rotary_embedding_dim=6 interleaved=1"},
    {"com.microsoft::RotaryEmbedding", "in %x #[2,5,24] const %p i64[1] {2} in %c #[7,4] in %s #[7,4] %y = com.microsoft::RotaryEmbedding(%x, %p, %c, %s)"},
    {"com.microsoft::RotaryEmbedding", "in %x #[2,3,5,8] const %p i64[2,5] {0,1,2,3,4,6,5,4,3,2} in %c #[7,4] in %s #[7,4] "
                                       "%y = com.microsoft::RotaryEmbedding(%x, %p, %c, %s) interleaved=1"},
    /* several lines to a block, a line for a block, parts of lines and rounds; equal elements */
    {"TopK", "in %x #[3,7,5] const %k i64[1] {3} %y, %i = TopK(%x, %k) axis=1"},
    {"TopK", "in %x #[3,7,5] const %k i64[1] {3} %v, %y = TopK(%x, %k) axis=1 largest=0"},
    {"TopK", "in %x #[2,1500] const %k i64[1] {1500} %v, %y = TopK(%x, %k) sorted=0"},
    {"TopK", "in %x #[2,5000] const %k i64[1] {1000} %v, %y = TopK(%x, %k)"},
    {"TopK", "in %x #[9000,2] const %k i64[1] {9} %y, %i = TopK(%x, %k) axis=0 largest=0"},
    {"CumSum", "in %x #[3,5,4] const %a i64[] {1} %y = CumSum(%x, %a)"},
    {"CumSum", "in %x #[3,100] const %a i64[] {-1} %y = CumSum(%x, %a) exclusive=1"},
    {"CumSum", "in %x #[3,700,2] const %a i32[] {1} %y = CumSum(%x, %a) reverse=1"},
    {"CumSum", "in %x #[3,50] const %a i64[] {1} %y = CumSum(%x, %a) reverse=1 exclusive=1"},
    {"CumProd", "in %x #[3,40] const %a i64[] {1} %y = CumProd(%x, %a) exclusive=1"},
    {"Trilu", "in %x #[2,5,7] %y = Trilu(%x)"},
    {"Trilu", "in %x #[2,7,5] const %k i64[] {-2} %y = Trilu(%x, %k) upper=0"},
    {"OneHot", "in %x #[2,5] const %d i64[] {6} const %v f32[2] {-1,2} %y = OneHot(%x, %d, %v) axis=1"},
    {"OneHot", "const %x #[6] {0,-1,5,-6,7,-7} const %d i64[] {6} in %v f16[2] %y = OneHot(%x, %d, %v)"},
    {"OneHot", "in %x #[2,5] const %d i64[1] {3} in %v i64[2] %y = OneHot(%x, %d, %v) axis=0"},
    {"OneHot", "in %x #[2,5] const %d i64[] {3} in %v u8[2] %y = OneHot(%x, %d, %v)"},
    {"GridSample", "in %x #[2,6,5,4] in %g f32[2,3,7,2] %y = GridSample(%x, %g) mode=\"linear\" padding_mode=\"zeros\" align_corners=0"},
    {"GridSample", "in %x #[2,6,5,4] in %g f32[2,3,7,2] %y = GridSample(%x, %g) mode=\"linear\" padding_mode=\"border\" align_corners=1"},
    {"GridSample", "in %x #[2,6,5,4] in %g f32[2,3,7,2] %y = GridSample(%x, %g) mode=\"linear\" padding_mode=\"reflection\" align_corners=0"},
    {"GridSample", "in %x #[2,6,5,4] in %g f32[2,3,7,2] %y = GridSample(%x, %g) mode=\"nearest\" padding_mode=\"zeros\" align_corners=0"},
    {"GridSample", "in %x #[2,6,5,4] in %g f32[2,3,7,2] %y = GridSample(%x, %g) mode=\"nearest\" padding_mode=\"border\" align_corners=1"},
    {"GridSample", "in %x #[2,6,5,4] in %g f32[2,3,7,2] %y = GridSample(%x, %g) mode=\"nearest\" padding_mode=\"reflection\" align_corners=0"},
    {"GridSample", "in %x #[2,6,5,4] in %g f32[2,3,7,2] %y = GridSample(%x, %g) mode=\"cubic\" padding_mode=\"zeros\" align_corners=0"},
    {"GridSample", "in %x #[2,6,5,4] in %g f32[2,3,7,2] %y = GridSample(%x, %g) mode=\"cubic\" padding_mode=\"border\" align_corners=1"},
    {"GridSample", "in %x #[2,6,5,4] in %g f32[2,3,7,2] %y = GridSample(%x, %g) mode=\"cubic\" padding_mode=\"reflection\" align_corners=0"},
    {"GridSample", "in %x #[2,3,4,3,5] in %g f64[2,2,3,4,3] %y = GridSample(%x, %g) padding_mode=\"reflection\" align_corners=1"},
    {"GridSample", "in %x #[1,2,9] in %g f16[1,6,1] %y = GridSample(%x, %g)"},
    {"Gather", "in %x #[3,5,2] const %i i64[2,2] {0,-1,4,2} %y = Gather(%x, %i) axis=1"},
    {"Gather", "in %x #[3,5,2] const %i i32[2] {2,0} %y = Gather(%x, %i)"},
    {"Gather", "in %x #[3,5,64] const %i i64[3] {4,0,2} %y = Gather(%x, %i) axis=1"}, /* 4 bits: 16 bytes at a time */
    {"Gather", "in %x #[3,5,7] const %i i64[3] {4,0,2} %y = Gather(%x, %i) axis=2"},
    {"Gather", "in %x #[3,3,20] const %i i64[16] {0,-1,4,2,19,3,3,-20,7,8,9,10,11,12,1,0} %y = Gather(%x, %i) axis=2"}, /* whole vectors of `to` */
    {"Gather", "in %x #[9,5] const %i i32[2,16] {0,-1,4,2,1,3,3,-5,2,2,1,0,1,2,1,0,4,4,4,3,-2,1,0,2,3,0,0,1,1,2,2,3} %y = Gather(%x, %i) axis=1"},
    {"Gather", "in %x #[3,8,4] const %i i64[3] {4,0,2} %y = Gather(%x, %i) axis=1"},
    {"GatherElements", "in %x #[3,5] const %i i64[2,5] {0,1,2,0,-1,2,1,0,0,1} %y = GatherElements(%x, %i)"},
    {"GatherND", "in %x #[3,5,2] const %i i64[2,2] {0,4,2,-1} %y = GatherND(%x, %i)"},
    {"Scatter", "opset=9 in %x #[3,5] const %i i64[1,5] {0,1,2,0,1} in %u #[1,5] %y = Scatter(%x, %i, %u)"},
    {"ScatterElements", "in %x #[3,5] const %i i64[1,5] {0,1,2,0,-1} in %u #[1,5] %y = ScatterElements(%x, %i, %u)"},
    {"ScatterND", "in %x #[3,5] const %i i64[2,1] {2,0} in %u #[2,5] %y = ScatterND(%x, %i, %u)"},
    {"Pad", "in %x #[3,5] const %p i64[4] {1,0,2,3} const %v #[] {1} %y = Pad(%x, %p, %v)"},
    {"Pad", "in %x #[3,5] const %p i64[4] {1,0,2,3} %y = Pad(%x, %p) mode=\"reflect\""},
    {"Pad", "in %x #[4,5] const %p i64[4] {1,-1,-2,3} const %v #[] {1} %y = Pad(%x, %p, %v)"},
    {"Pad", "in %x #[4,5] const %p i64[2] {-1,2} const %a i64[1] {-1} %y = Pad(%x, %p, _, %a) mode=\"edge\""},
    {"Pad", "opset=2 in %x f32[3,5] %y = Pad(%x) pads=[1,0,2,3] value=0.5"},
    {"Conv", "in %x #[2,4,7,6] in %w #[6,2,3,3] in %b #[6] %y = Conv(%x, %w, %b) group=2 pads=[1,0,1,2] strides=[2,1]"},
    {"Conv", "in %x #[2,3,9,8] in %w #[5,3,4,2] in %b #[5] %y = Conv(%x, %w, %b) strides=[4,2]"}, /* patches */
    {"Conv", "in %x #[2,1,9] in %w #[6,1,3] %y = Conv(%x, %w) strides=[3]"},
    {"Conv", "in %x #[2,4,9] in %w #[6,4,3] %y = Conv(%x, %w) dilations=[2]"},
    {"Conv", "in %x #[1,20,1,1] in %w #[96,20,1,1] in %b #[96] %y = Conv(%x, %w, %b)"}, /* one window: few rows */
    {"Conv", "in %x #[3,10,2,3] in %w #[5,10,2,3] %y = Conv(%x, %w)"},
    {"Conv", "in %x #[1,2,4,5,6] in %w #[3,2,2,3,1] %y = Conv(%x, %w)"},
    /* each channel by itself: float16 and bfloat16 lie channels-last; strips of rows, chunks of channels; 18 channels are no whole fours */
    {"Conv", "in %x #[2,16,11,10] in %w #[16,1,3,3] in %b #[16] %y = Conv(%x, %w, %b) group=16 pads=[1,1,1,1]"},
    {"Conv", "in %x #[1,24,9,12] in %w #[24,1,5,5] %y = Conv(%x, %w) group=24 pads=[2,2,2,2] strides=[2,2]"},
    {"Conv", "in %x #[1,16,12,13] in %w #[16,1,3,5] %y = Conv(%x, %w) group=16 pads=[2,4,2,4] dilations=[2,2]"},
    {"Conv", "in %x #[1,100,6,7] in %w #[100,1,3,3] %y = Conv(%x, %w) group=100 auto_pad=\"SAME_UPPER\" strides=[2,3]"},
    {"Conv", "in %x #[1,8,8,21] in %w #[8,1,7,7] in %b #[8] %y = Conv(%x, %w, %b) group=8 auto_pad=\"SAME_LOWER\" strides=[1,2]"},
    {"Conv", "in %x #[1,4,5,9] in %w #[4,1,1,2] %y = Conv(%x, %w) group=4 strides=[3,4] pads=[0,3,1,0]"},
    {"Conv", "in %x #[2,18,5,6] in %w #[18,1,3,3] %y = Conv(%x, %w) group=18 pads=[1,1,1,1]"},
    {"ConvTranspose", "in %x #[2,4,5,6] in %w #[4,3,3,3] in %b #[6] %y = ConvTranspose(%x, %w, %b) group=2 pads=[1,0,1,2] strides=[2,1]"},
    {"MaxPool", "in %x #[2,4,7,6] %y = MaxPool(%x) kernel_shape=[3,2] pads=[1,0,1,1] strides=[2,1]"},
    {"AveragePool", "in %x #[2,4,7,6] %y = AveragePool(%x) kernel_shape=[3,2] pads=[1,0,1,1] strides=[2,1]"},
    {"AveragePool", "in %x #[2,4,9] %y = AveragePool(%x) kernel_shape=[4] pads=[2,1] count_include_pad=1 ceil_mode=1"},
    {"BatchNormalization", "opset=7 in %x #[2,4,3] in %s #[4] in %b #[4] in %m #[4] const %v #[4] {1,2,3,4} %y = BatchNormalization(%x, %s, %b, %m, %v)"},
    {"Upsample", "opset=7 in %x #[1,2,3,4] %y = Upsample(%x) mode=\"nearest\" scales=[1.0,1.0,2.0,3.0]"},
    {"Upsample", "opset=9 in %x #[1,2,3,4] const %s f32[4] {1,1,2,2} %y = Upsample(%x, %s) mode=\"linear\""},
    {"Resize", "opset=10 in %x #[1,2,3,4] const %s f32[4] {1,1,2,2} %y = Resize(%x, %s) mode=\"linear\""},
    {"BatchNormalization", "in %x #[2,4,3,5] in %s #[4] in %b #[4] in %m #[4] const %v #[4] {1,2,3,4} %y = BatchNormalization(%x, %s, %b, %m, %v)"},
    {"BatchNormalization", "in %x #[2,4,3,5] const %s #[4] {1,2,-3,4} const %b #[4] {0,1,-1,2} const %m #[4] {0,1,2,-1} const %v #[4] {1,2,3,4} "
                           "%y = BatchNormalization(%x, %s, %b, %m, %v)"},
    {"BatchNormalization", "in %x #[2,4,4,8] in %s #[4] in %b #[4] in %m #[4] const %v #[4] {1,2,3,4} %y = BatchNormalization(%x, %s, %b, %m, %v)"},
    {"BatchNormalization", "in %x #[16,16] in %s #[16] in %b #[16] in %m #[16] const %v #[16] {1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8} "
                           "%y = BatchNormalization(%x, %s, %b, %m, %v)"},
    {"LRN", "in %x #[2,7,3,4] %y = LRN(%x) size=4 alpha=0.5 beta=0.6 bias=2.0"},
    {"LRN", "in %x #[3,2,5] %y = LRN(%x) size=9"},
    {"Resize", "in %x #[2,3,5,4] const %s f32[4] {1,1,2,1.5} %y = Resize(%x, _, %s) mode=\"linear\""},
    {"Resize", "in %x #[2,3,5,4] const %s i64[4] {2,3,7,3} %y = Resize(%x, _, _, %s)"},
    /* one to three axes; the last one as it is, by 16 bytes (a Transpose would be a node); so many taps that it goes by axis */
    {"Resize", "in %x #[2,3,5] const %s f32[3] {1,1,1.7} %y = Resize(%x, _, %s) mode=\"cubic\""},
    {"Resize", "in %x #[1,2,5,4] const %s f32[4] {1,1,1.5,0.8} %y = Resize(%x, _, %s) mode=\"cubic\" exclude_outside=1"},
    {"Resize", "in %x #[2,5,4,16] const %s f32[4] {1,2,2,1} %y = Resize(%x, _, %s)"},
    {"Resize", "in %x #[2,5,4,16] const %s f32[4] {1,2,1.6,1} %y = Resize(%x, _, %s) mode=\"linear\""},
    {"Resize", "in %x #[2,5,4,24] const %s f32[4] {1,1.3,2,1} %y = Resize(%x, _, %s) mode=\"cubic\""},
    {"Resize", "in %x #[1,5,4,5] const %s f32[4] {1,2,2,1} %y = Resize(%x, _, %s) mode=\"linear\""},
    {"Resize", "in %x #[1,3,3,4,5] const %s f32[5] {1,1,2,1.5,2} %y = Resize(%x, _, %s) mode=\"linear\""},
    {"Resize", "in %x #[1,3,4,5,16] const %s f32[5] {1,2,1.5,2,1} %y = Resize(%x, _, %s)"},
    {"Resize", "in %x #[2,4,3,5] const %s f32[4] {2,1.5,2,1.2} %y = Resize(%x, _, %s) mode=\"linear\""},
    {"Resize", "in %x #[1,2,40,30] const %s f32[4] {1,1,0.1,0.2} %y = Resize(%x, _, %s) mode=\"linear\" antialias=1"},
    {"Resize", "in %x #[2,3,40] const %s f32[3] {1,1,0.05} %y = Resize(%x, _, %s) mode=\"cubic\" antialias=1"},
    {"QLinearConv", "in %x #[2,8,6,5] const %s f32[] {0.02} const %z #[] {3} const %w i8[2,8,3,3] " BYTES_W
                    " const %t f32[2] {0.01,0.02} const %o i8[] {0} const %u f32[] {0.5} const %v #[] {7} const %b i32[2] {50,-90} "
                    "%y = QLinearConv(%x, %s, %z, %w, %t, %o, %u, %v, %b) pads=[1,0,1,2] strides=[2,1]"},
    {"QLinearConv", "in %x #[2,6,6,5] const %s f32[] {0.02} const %z #[] {3} const %w i8[6,1,3,2] " BYTES_D
                    " const %t f32[] {0.01} const %o i8[] {0} const %u f32[] {0.1} const %v #[] {7} "
                    "%y = QLinearConv(%x, %s, %z, %w, %t, %o, %u, %v) group=6 dilations=[1,2]"},
    {"ConvInteger", "in %x #[2,4,9] const %w u8[2,4,3] " BYTES_U " const %z #[] {3} const %o u8[] {128} %y = ConvInteger(%x, %w, %z, %o)"},
    {"QLinearMatMul", "in %x #[2,3,8] const %s f32[] {0.02} const %z #[] {3} const %w i8[8,4] {1,-2,3,100,5,6,-7,8,9,10,11,-128,13,14,15,127,1,1,2,3,5,8,13,"
                      "21,-1,-1,-2,-3,-5,-8,-13,-21} const %t f32[4] {0.01,0.02,0.5,0.1} const %o i8[4] {0,3,-5,1} const %u f32[] {0.5} const %v #[] {7} "
                      "%y = QLinearMatMul(%x, %s, %z, %w, %t, %o, %u, %v)"},
    {"QLinearMatMul", "in %x i8[2,3,5] const %s f32[] {0.02} const %z i8[] {0} in %w i8[2,5,6] const %u f32[] {0.05} const %v #[] {7} "
                      "%y = QLinearMatMul(%x, %s, %z, %w, %s, %z, %u, %v)"},
    {"MatMulInteger", "in %x #[2,5,8] in %w i8[2,8,4] %y = MatMulInteger(%x, %w)"},
    {"MatMulInteger", "in %x #[2,5,32] in %w u8[2,32,4] const %z #[] {100} const %o u8[] {9} %y = MatMulInteger(%x, %w, %z, %o)"},
    {"MatMulInteger", "in %x #[5,7] const %w u8[7,3] {1,2,3,100,5,6,7,8,9,10,11,128,13,14,15,127,250,1,2,3,5} const %z #[] {100} const %o u8[] {9} "
                      "%y = MatMulInteger(%x, %w, %z, %o)"},
    /* zero points that the run makes, of the first matrix, of both */
    {"MatMulInteger", "in %x #[5,7] const %w u8[7,3] {1,2,3,100,5,6,7,8,9,10,11,128,13,14,15,127,250,1,2,3,5} in %z #[] const %o u8[3] {9,128,0} "
                      "%y = MatMulInteger(%x, %w, %z, %o)"},
    {"MatMulInteger", "in %x #[2,5,8] const %w i8[8,4] {1,2,3,4,-5,6,7,8,9,-10,11,12,13,14,-15,16,1,2,3,4,-5,6,7,8,9,-10,11,12,13,14,-15,16} in %z #[1] "
                      "%y = MatMulInteger(%x, %w, %z)"},
    {"MatMulInteger", "in %x #[2,5,8] in %w i8[2,8,4] in %z #[] in %o i8[] %y = MatMulInteger(%x, %w, %z, %o)"},
    {"ConvInteger", "in %x #[2,4,9] const %w u8[2,4,3] " BYTES_U " in %z #[] const %o u8[] {128} %y = ConvInteger(%x, %w, %z, %o) pads=[1,2]"},
    {"ConvInteger", "in %x #[1,4,3,5] const %w i8[3,4,1,3] " BYTES_D " in %z #[1] %y = ConvInteger(%x, %w, %z) pads=[1,1,0,1]"},
    {"com.microsoft::MatMulIntegerToFloat", "in %x #[2,5,7] const %w u8[7,3] {1,2,3,100,5,6,7,8,9,10,11,128,13,14,15,127,250,1,2,3,5} in %s f32[] const %t f32[3] {0.5,1,2} "
                                            "in %z #[] const %o u8[3] {9,128,0} in %b f32[3] %y = com.microsoft::MatMulIntegerToFloat(%x, %w, %s, %t, %z, %o, %b)"},
    {"com.microsoft::MatMulIntegerToFloat", "in %x #[5,8] in %w i8[8,4] const %s f32[1] {0.25} in %t f32[1] "
                                            "%y = com.microsoft::MatMulIntegerToFloat(%x, %w, %s, %t)"},
    {"com.microsoft::DynamicQuantizeMatMul", "in %x #[2,5,7] const %w u8[7,3] {1,2,3,100,5,6,7,8,9,10,11,128,13,14,15,127,250,1,2,3,5} const %t f32[3] {0.5,1,2} "
                                             "const %o u8[3] {9,128,0} in %b f32[3] %y = com.microsoft::DynamicQuantizeMatMul(%x, %w, %t, %o, %b)"},
    {"com.microsoft::DynamicQuantizeMatMul", "in %x #[5,8] in %w i8[8,4] in %t f32[1] %y = com.microsoft::DynamicQuantizeMatMul(%x, %w, %t)"},
    {"DynamicQuantizeLinear", "in %x #[3,5,2] %y, %s, %z = DynamicQuantizeLinear(%x)"},
    {"DynamicQuantizeLinear", "in %x #[] %s, %y, %z = DynamicQuantizeLinear(%x)"},
    {"DynamicQuantizeLinear", "in %x #[7,40,64] %s, %z, %y = DynamicQuantizeLinear(%x)"}, /* in parts */
    {"DynamicQuantizeLinear", "in %x #[3,20,16] %y, %s, %z = DynamicQuantizeLinear(%x)"}, /* 16 at a time */
    {"QuantizeLinear", "in %x #[3,64] const %s f32[3] {0.01,0.02,0.03} const %z i8[3] {1,-2,3} %y = QuantizeLinear(%x, %s, %z) axis=0"},
    {"QuantizeLinear", "in %x #[55] const %s f32[] {0.02} const %z u8[] {130} %y = QuantizeLinear(%x, %s, %z)"},
    {"DequantizeLinear", "in %x #[3,64] const %s f32[3] {0.01,0.02,0.03} in %z #[3] %y = DequantizeLinear(%x, %s, %z) axis=0"},
    {"DequantizeLinear", "in %x #[55] const %s f32[] {0.02} %y = DequantizeLinear(%x, %s)"},
    {"QuantizeLinear", "in %x #[3,5,2] const %s f32[] {0.013} const %z i8[] {-5} %y = QuantizeLinear(%x, %s, %z)"},
    {"QuantizeLinear", "in %x #[3,5,2] const %s f32[5] {0.01,0.02,0.03,0.04,0.005} %y = QuantizeLinear(%x, %s)"},
    {"DequantizeLinear", "in %x #[3,5,2] const %s f32[] {0.013} const %z #[] {5} %y = DequantizeLinear(%x, %s, %z)"},
    {"DequantizeLinear", "in %x #[3,5,2] const %s f32[2] {0.01,0.02} %y = DequantizeLinear(%x, %s) axis=-1"},
    {"MatMul", "in %x #[2,1,5,7] in %z #[3,7,4] %y = MatMul(%x, %z)"},
    {"Einsum", "in %x #[2,3,5,4] in %z #[2,6,5,4] %y = Einsum(%x, %z) equation=\"bqhd,bkhd->bhqk\""},
    {"Einsum", "in %x #[2,3,4] in %z #[4,5] in %u #[5] %y = Einsum(%x, %z, %u) equation=\"...i,ij,j->...\""},
    {"Einsum", "in %x #[3,4,3] %y = Einsum(%x) equation=\"iji->j\""},
    {"Einsum", "in %x #[3,4,5] %y = Einsum(%x) equation=\"ijk->kij\""},
    {"Einsum", "in %x #[3,4] in %z #[3,4] %y = Einsum(%x, %z) equation=\"ij,ij->i\""},
    {"com.microsoft::FusedMatMul", "in %x #[2,7,5] in %z #[2,4,7] %y = com.microsoft::FusedMatMul(%x, %z) transA=1 transB=1 alpha=0.5"},
    {"com.microsoft::FusedMatMul", "in %x #[5,2,7] in %z #[7,2,4] %y = com.microsoft::FusedMatMul(%x, %z) transBatchA=1 transBatchB=1"},
    {"com.microsoft::FusedMatMul", "in %x #[2,3,5,7] in %z #[4,7] %y = com.microsoft::FusedMatMul(%x, %z) transB=1"},
    {"MatMul", "in %x #[70,65] in %z #[65] %y = MatMul(%x, %z)"},
    /* few rows: columns side by side, by whole vectors and not, one alone, of several blocks; nothing to add up; what is no number stays in its column */
    {"MatMul", "in %x #[1,40] in %z #[40,9] %y = MatMul(%x, %z)"},
    {"MatMul", "in %x #[3,700] in %z #[700,24] %y = MatMul(%x, %z)"},
    {"MatMul", "in %x #[4,13] in %z #[13,300] %y = MatMul(%x, %z)"},
    {"MatMul", "in %x #[2,37] in %z #[37] %y = MatMul(%x, %z)"},
    {"MatMul", "in %x #[2,0] in %z #[0,5] %y = MatMul(%x, %z)"},
    {"MatMul", "in %x #[2,3] const %z #[3,2] {nan,1,0,-2,inf,3} %y = MatMul(%x, %z)"},
    /* all that a cell has; a row's sequence that ends; one unit more than a block has, of two directions; states before the first step; both orders of the batch */
    {"LSTM", "in %x #[5,2,3] in %w #[1,16,3] in %r #[1,16,4] %y = LSTM(%x, %w, %r) hidden_size=4"},
    {"LSTM", "in %x #[4,3,2] in %w #[2,20,2] in %r #[2,20,5] in %b #[2,40] in %h #[2,3,5] in %c #[2,3,5] const %n i32[3] {4,0,2} const %p #[2,15] "
             "{1,-1,2,0.5,1,3,1,1,-2,1,0.5,1,2,1,1,-1,1,0,1,1,2,1,1,-1,1,1,2,0.5,1,1} "
             "%y = LSTM(%x, %w, %r, %b, %n, %h, %c, %p) hidden_size=5 direction=\"bidirectional\" clip=0.8"},
    {"LSTM", "in %x #[2,5,3] in %w #[1,16,3] in %r #[1,16,4] in %h #[2,1,4] %y = LSTM(%x, %w, %r, _, _, %h) hidden_size=4 layout=1 "
             "direction=\"reverse\" input_forget=1 activations=[\"HardSigmoid\",\"Softsign\",\"ScaledTanh\"] activation_alpha=[0.25,0.5] "
             "activation_beta=[0.4,0.75]"},
    {"LSTM", "in %x #[3,1,9] in %w #[2,516,9] in %r #[2,516,129] in %b #[2,1032] %y = LSTM(%x, %w, %r, %b) hidden_size=129 direction=\"bidirectional\""},
    {"GRU", "in %x #[5,2,3] in %w #[1,12,3] in %r #[1,12,4] in %b #[1,24] %y = GRU(%x, %w, %r, %b) hidden_size=4 linear_before_reset=1"},
    {"GRU", "in %x #[4,3,2] in %w #[2,15,2] in %r #[2,15,5] in %b #[2,30] in %h #[2,3,5] const %n i32[3] {1,4,0} "
            "%y = GRU(%x, %w, %r, %b, %n, %h) hidden_size=5 direction=\"bidirectional\""},
    {"GRU", "in %x #[2,4,3] in %w #[2,12,3] in %r #[2,12,4] in %h #[2,2,4] %y = GRU(%x, %w, %r, _, _, %h) hidden_size=4 layout=1 direction=\"bidirectional\" "
            "linear_before_reset=1 clip=0.5 activations=[\"Sigmoid\",\"Affine\",\"HardSigmoid\",\"Elu\"] activation_alpha=[0.5,0.2,0.3] activation_beta=[0.1,0.6]"},
    /* many sequences: a product by itself; weights by 16 bytes */
    {"LSTM", "in %x #[3,6,3] in %w #[2,32,3] in %r #[2,32,8] in %b #[2,64] const %n i32[6] {3,0,2,1,3,3} in %h #[2,6,8] %y = LSTM(%x, %w, %r, %b, %n, %h) "
             "hidden_size=8 direction=\"bidirectional\""},
    {"LSTM", "in %x #[3,4,3] in %w #[2,32,3] in %r #[2,32,8] %y = LSTM(%x, %w, %r) hidden_size=8 direction=\"bidirectional\""},
    {"GRU", "in %x #[3,7,3] in %w #[2,15,3] in %r #[2,15,5] in %b #[2,30] %y = GRU(%x, %w, %r, %b) hidden_size=5 direction=\"bidirectional\""},
    {"GRU", "in %x #[5,3,3] in %w #[1,15,3] in %r #[1,15,5] %y = GRU(%x, %w, %r) hidden_size=5 layout=1 direction=\"reverse\" linear_before_reset=1"},
    {"GRU", "in %x #[3,2,3] in %w #[1,120,3] in %r #[1,120,40] in %b #[1,240] %y = GRU(%x, %w, %r, %b) hidden_size=40"},
    {"RNN", "in %x #[3,5,3] in %w #[1,8,3] in %r #[1,8,8] %y = RNN(%x, %w, %r) hidden_size=8 direction=\"reverse\""},
    {"RNN", "in %x #[5,2,3] in %w #[1,4,3] in %r #[1,4,4] in %b #[1,8] %y = RNN(%x, %w, %r, %b) hidden_size=4"},
    {"RNN", "in %x #[5,2,3] in %w #[2,4,3] in %r #[2,4,4] in %h #[2,2,4] %y = RNN(%x, %w, %r, _, _, %h) hidden_size=4 direction=\"bidirectional\" "
            "activations=[\"LeakyRelu\",\"Softplus\"]"},
    {"RNN", "in %x #[3,2,3] in %w #[2,4,3] in %r #[2,4,4] %y = RNN(%x, %w, %r) hidden_size=4 direction=\"bidirectional\" "
            "activations=[\"Relu\",\"ThresholdedRelu\"] activation_alpha=[0.25]"},
    /* few rows: columns along k, likewise; a bias for each column, a matrix, a number */
    {"Gemm", "in %x #[1,64] in %z #[40,64] in %c #[40] %y = Gemm(%x, %z, %c) transB=1"},
    {"Gemm", "in %x #[2,77] in %z #[5,77] in %c #[2,5] %y = Gemm(%x, %z, %c) transB=1 alpha=0.5 beta=2.0"},
    {"Gemm", "in %x #[3,2080] in %z #[9,2080] in %c #[] %y = Gemm(%x, %z, %c) transB=1 beta=0.25"},
    {"Gemm", "in %x #[4,9] in %z #[8200,9] %y = Gemm(%x, %z) transB=1"},
    {"Gemm", "in %x #[30,1] in %z #[30,7] in %c #[1,7] %y = Gemm(%x, %z, %c) transA=1"},
    {"Gemm", "in %x #[1,0] in %z #[3,0] in %c #[3] %y = Gemm(%x, %z, %c) transB=1"},
    {"Gemm", "in %x #[2,3] const %z #[2,3] {nan,1,0,-2,inf,3} %y = Gemm(%x, %z) transB=1"},
    {"Gemm", "in %x #[5,7] in %z #[4,5] in %c #[4] %y = Gemm(%x, %z, %c) transA=1 transB=1 alpha=0.5 beta=2.0"},
};

static const char *form_of(const row *r, uint32_t *next, char *text, size_t n) {
    for (; *next < RL_LEN(forms); (*next)++)
        if (strcmp(forms[*next].type, r->type) == 0) return forms[(*next)++].text;
    if (*next > RL_LEN(forms)) return NULL;
    for (uint32_t i = 0; i < RL_LEN(forms); i++)
        if (strcmp(forms[i].type, r->type) == 0) return NULL;
    *next = RL_LEN(forms) + 1;
    if (r->fn == rl_gpu_unary) snprintf(text, n, "in %%x #[3,5] %%y = %s(%%x)", r->type);
    else if (r->fn == rl_gpu_binary) snprintf(text, n, "in %%x #[3,5] in %%z #[5] %%y = %s(%%x, %%z)", r->type);
    else if (r->fn == rl_gpu_variadic) snprintf(text, n, "in %%x #[3,5] in %%z #[5] in %%u #[3,1] %%y = %s(%%x, %%z, %%u)", r->type);
    else if (r->fn == rl_gpu_op_reduce) snprintf(text, n, "in %%x #[3,5,2] const %%a i64[2] {0,-1} %%y = %s(%%x, %%a)", r->type);
    else if (r->fn == rl_gpu_global_pool) snprintf(text, n, "in %%x #[3,5,2,4] %%y = %s(%%x)", r->type);
    else return NULL;
    return text;
}

/* ---- one node ---- */

enum { MOST_IN = 6 };
typedef struct { rl_rt *rt; rl_graph *g; rl_exec *x; rl_tensor in[MOST_IN], out[1]; } run;

enum { NEWEST = 28 }; /* opset */

/* One CPU and one device for all of it: a device takes its time to open. It knows constants by their addresses, so the graphs stay until it is closed. */
typedef struct { rl_ctx *ctx; rl_rt *cpu, *gpu; struct { rl_graph **p; uint32_t n, cap; } graphs; rl_arena mem; } bench;

static void fill(run *r) {
    for (uint32_t i = 0; i < r->g->input.n; i++) {
        CHECK(i < MOST_IN && rl_value_random(r->rt, r->g, r->g->input.p[i], NULL, i, &r->in[i]) == RL_OK);
        rl_tensor *t = &r->in[i], one;
        if (!i || rl_is_float(t->dtype) || t->dtype == RL_BOOL) continue;
        for (int64_t k = 0; k < rl_numel(t); k++) { /* no division by zero, no negative numbers */
            one = *t;
            one.rank = 0, one.offset = k;
            char *p = rl_data(&one);
            if (!*p) *p = 1;
        }
    }
}

static rl_status start(bench *b, run *r, rl_rt *rt, const char *text) {
    *r = (run){.rt = rt};
    RL_TRY(rl_text_parse(b->ctx, "test", text, strlen(text), &r->g));
    rl_push(&b->mem, b->graphs, r->g);
    RL_TRY(rl_exec_new(r->rt, r->g, &r->x));
    fill(r);
    return rl_exec_run(r->x, r->in, r->out);
}

static void end(run *r) {
    for (uint32_t i = 0; i < MOST_IN; i++) rl_tensor_drop(&r->in[i]);
    rl_tensor_drop(&r->out[0]);
}

static double coarseness(rl_dtype t) {
    return t == RL_F64 ? 1e-10 : t == RL_F32 ? 2e-6 : t == RL_F16 ? 2e-3 : t == RL_BF16 ? 1.6e-2 : 0;
}

/* Within two steps of the type at the largest value. */
static bool agree(run *a, run *b) {
    const rl_tensor *x = &a->out[0], *y = &b->out[0];
    double most = 1;
    if (x->dtype != y->dtype || !rl_same_dims(x, y)) return false;
    rl_tensor p = rl_tensor_new(a->rt, RL_F64, x->rank, x->dim), q = rl_tensor_new(b->rt, RL_F64, y->rank, y->dim);
    rl_convert(a->rt, &p, x, true);
    rl_convert(b->rt, &q, y, true);
    const double *u = rl_data(&p), *v = rl_data(&q);
    for (int64_t i = 0; i < rl_numel(&p); i++)
        if (isfinite(u[i])) most = fmax(most, fabs(u[i]));
    bool same = true;
    for (int64_t i = 0; i < rl_numel(&p); i++)
        same = same && (u[i] == v[i] || (isnan(u[i]) && isnan(v[i])) || fabs(u[i] - v[i]) <= most * coarseness(x->dtype));
    rl_tensor_drop(&p), rl_tensor_drop(&q);
    return same;
}

/* older: where the CPU has that version of the op. */
static void check_form(bench *b, const row *r, const char *form, rl_dtype t, int older) {
    char text[1600];
    int opset = NEWEST, skip = 0;
    if (sscanf(form, "opset=%d%n", &opset, &skip) != 1) skip = 0;
    if (skip && older) return;
    if (older) opset = older;
    size_t n = (size_t)snprintf(text, sizeof text, "graph opset=%d opset.com.microsoft=1 {\n", opset);
    form += skip;
    for (const char *s = form; *s && n + 20 < sizeof text; s++) {
        if (*s == '#') n += (size_t)snprintf(text + n, sizeof text - n, "%s", rl_dtype_name(t));
        else text[n++] = *s;
        bool makes = s > form && (s[-1] == ']' || s[-1] == '}') && strncmp(s, " %", 2) == 0;
        if (strncmp(s, " in ", 4) == 0 || strncmp(s, " const ", 7) == 0 || makes) text[n - 1] = '\n';
    }
    snprintf(text + n, sizeof text - n, "\n out %%y\n}\n");
    run cpu, gpu;
    rl_status s = start(b, &cpu, b->cpu, text), d;
    if (s != RL_OK && older) return;
    d = start(b, &gpu, b->gpu, text);
    bool there = s == RL_OK && d == RL_OK && gpu.x->nstep == 1 && gpu.x->step[0].place == RL_RAN_DEVICE, same = there && agree(&cpu, &gpu);
    if (!same) fprintf(stderr, "%s: %s: %s\n", r->type, !there ? "not on the device" : "another result", s || d ? b->ctx->error : text);
    CHECK(same);
    end(&cpu), end(&gpu);
}

TEST(rows) {
    static const rl_dtype types[] = {RL_F32, RL_F64, RL_F16, RL_BF16, RL_I8, RL_I16, RL_I32, RL_I64, RL_U8, RL_U16, RL_U32, RL_U64, RL_BOOL,
                                     RL_I4, RL_U4};
    static const int older[] = {7, 9, 11, 13, 17, 21};
    CHECK_CTX(ctx)
    bench b = {.ctx = ctx, .cpu = rl_rt_new(ctx, &rl_backend_cpu, 1), .gpu = rl_rt_new(ctx, &rl_backend_cuda, 1)};
    rl_arena_init(&b.mem, ctx);
    for (size_t i = 0; i < RL_LEN(rows); i++) {
        const char *form;
        char text[200];
        uint32_t next = 0, tried = 0;
        while ((form = form_of(&rows[i], &next, text, sizeof text)))
            for (size_t k = 0; k < RL_LEN(types); k++) {
                bool any = rows[i].fn == rl_gpu_where; /* its deciding input is the condition */
                if (any ? rl_elem_bits(types[k]) < 8 : !(rows[i].types & RL_T(types[k]))) continue;
                check_form(&b, &rows[i], form, types[k], 0);
                for (size_t o = 0; k == 0 && o < RL_LEN(older); o++) check_form(&b, &rows[i], form, types[k], older[o]);
                tried++;
            }
        if (!tried) fprintf(stderr, "%s: no form\n", rows[i].type);
        CHECK(tried);
    }
    rl_rt_free(b.cpu), rl_rt_free(b.gpu);
    for (uint32_t i = 0; i < b.graphs.n; i++) rl_graph_free(b.graphs.p[i]);
    rl_arena_free(&b.mem);
    rl_ctx_free(ctx);
}

int main(void) {
    RUN(rows);
    return check_done();
}
