/* Native layouts: values that lie in memory as the machine's kernels want them, by a plan that was made before (docs/runtime.md).
 *
 * How a value lies is an order of its dims, or an order with blocked channels:
 *
 *   abcd      row-major           f32[1,20,4,4] lies as [1,20,4,4]
 *   acdb      channels-last                          as [1,4,4,20]
 *   aBcd16b   blocks of 16 channels                  as [1,2,4,4,16]: channel c is lane c % 16 of block c / 16; lanes 4 .. 15 of
 *                                                    block 1 stand for no channel, and are zero
 *   Bcda4b    blocks of 4, images inside (CHWN4)     as [5,4,4,1,4]
 *
 * Strides say the first two, and every kernel takes those.  A blocked value is a tensor of its own dims, [1,2,4,4,16], in a value of its
 * own: only steps that were told so (rl_step.native) read and make it, so no kernel meets a layout that it does not know.
 *
 * A plan says for each step how its inputs and outputs lie.  native_apply.c puts Move steps where a value is wanted as it was not made:
 *
 *   y = Conv(x)  abcd -> aBcd16b        y' f32[1,2,4,4,16] = Conv(x)
 *   z = Relu(y)  aBcd16b                z' = Relu(y')
 *   w = Reshape(z)  abcd                z = Move(z');  w = Reshape(z)
 *
 * A plan can make a run slower, never wrong: what a kernel has no fast form for, it does another way and keeps to the layouts. */
#ifndef RL_NATIVE_H
#define RL_NATIVE_H
#include "exec.h"

enum { RL_LAY_RANK = 8, RL_LAY_BLOCKED = 5 };
/* perm: the dims from the outermost in memory; block: 0, or so many lanes of dim 1 innermost: 4, 8, 16 or 32, perm is 0 1 2 .. then, or with 4 lanes
 * 1 2 3 0 (CHWN4). rank 0: not known. */
typedef struct rl_lay { uint8_t rank, block, perm[RL_LAY_RANK]; } rl_lay;

/* ---- layouts (native.c) ---- */

rl_lay rl_lay_rows(uint32_t rank);
rl_lay rl_lay_last(uint32_t rank);
rl_lay rl_lay_blocked(uint32_t rank, uint32_t block);
/* The blocked layouts that there are, i < RL_LAY_BLOCKED; of rank 4, the first ones also of rank 5 (else rank 0). */
rl_lay rl_lay_nth(uint32_t rank, uint32_t i);
bool rl_lay_same(const rl_lay *a, const rl_lay *b);
/* The order of a strided tensor; dims of 1 count as row-major. False: it has none (a stride that is not positive), or too many dims. */
bool rl_lay_of(const rl_tensor *t, rl_lay *lay);
/* The same layout of these dims with dims of 1 where they are row-major. */
rl_lay rl_lay_normal(const rl_lay *lay, const int64_t *dim);
void rl_lay_put(const rl_lay *lay, rl_text *t); /* "acdb" */
bool rl_lay_parse(const char *s, size_t n, rl_lay *lay);
/* The dims in memory of a blocked value, rank + 1 of them. */
void rl_lay_dims(const rl_lay *lay, const int64_t *dim, int64_t *to);
/* A new tensor of these logical dims that lies so. */
rl_tensor rl_lay_new(rl_rt *rt, rl_dtype t, const rl_lay *lay, const int64_t *dim);
/* Output i of the call, of these logical dims, that lies so. */
rl_tensor *rl_lay_make(rl_call *c, uint32_t i, rl_dtype t, const rl_lay *lay, const int64_t *dim);
/* Is t blocked so, with that many channels? */
bool rl_lay_holds(const rl_lay *lay, const rl_tensor *t, int64_t channels);
/* Both have `channels` in dim 1; blocked ones are as rl_lay_new makes them. Lanes without a channel become zero. */
void rl_lay_move(rl_rt *rt, const rl_tensor *to, const rl_lay *to_lay, const rl_tensor *from, const rl_lay *from_lay, int64_t channels);
/* n channels of `from` to channel to_at and on of `to`; tb, fb: the blocks of the two, 0: strided. */
void rl_lay_copy(rl_rt *rt, const rl_tensor *to, uint32_t tb, int64_t to_at, const rl_tensor *from, uint32_t fb, int64_t n);
/* Sets the lanes of a blocked tensor that stand for no channel to zero. */
void rl_lay_clear(rl_rt *rt, const rl_tensor *t, int64_t channels);
/* A blocked tensor described by its logical dims: for descriptions and sizes, not for reading elements. */
rl_tensor rl_lay_logical(const rl_tensor *t, int64_t channels);

/* ---- steps ---- */

/* What blocked layouts a step's kernel takes. */
typedef enum {
    RL_NATIVE_NONE,    /* none */
    RL_NATIVE_CONV,    /* input 0 one, the output and operands of its dims another */
    RL_NATIVE_POOL,    /* input and output the same */
    RL_NATIVE_CHAIN,   /* the output and all inputs of its dims the same */
    RL_NATIVE_CONCAT,  /* all the same */
    RL_NATIVE_GLOBAL,  /* the input any, the output is strided */
    RL_NATIVE_PRODUCT, /* none; a MatMul of batches makes its output in any order with the last dim innermost */
    RL_NATIVE_MOVE,    /* made by native_apply.c */
} rl_native_kind;
rl_native_kind rl_native_kind_of(const rl_exec *x, const rl_step *s);

/* What plans ask of the backend that runs the graph (the CPU's: native_step.c; a device's: rl_backend.ways). */
typedef struct { rl_kernel_fn *fn; rl_native_kind kind; } rl_native_row;
typedef struct rl_native_ways {
    uint32_t types;                                    /* RL_T of the values that plans speak of */
    const rl_native_row *row;                          /* its kernels that take layouts; whether a step does is asked of the step, too */
    uint32_t nrow;
    bool (*blocks)(rl_dtype t, const rl_lay *lay);     /* has it this blocked layout for values of this type? */
    /* ns by a table, of a step that was just run so (lay NULL: it has no layouts), and of a move. NULL: native_meter.c's. */
    int64_t (*cost)(const rl_call *c, rl_native_kind kind, const rl_lay *in, const rl_lay *out);
    int64_t (*move_cost)(const rl_tensor *shape);
} rl_native_ways;
const rl_native_ways *rl_native_ways_of(const rl_rt *rt);

/* The inputs and outputs of a step that a plan speaks of: of the backend's types, 3 to RL_LAY_RANK dims, no constants or outer values. */
typedef struct { uint32_t slot; bool out; rl_value v; } rl_pin;
enum { RL_PINS = 64 }; /* a step with more is not planned */
uint32_t rl_native_pins(const rl_exec *x, const rl_step *s, rl_pin *pin); /* inputs first, each in order */
/* May the step's pins lie so? */
bool rl_native_allows(const rl_exec *x, const rl_step *s, const rl_pin *pin, uint32_t npin, const rl_lay *lay);

typedef struct rl_native {
    rl_native_kind kind;
    rl_lay in, out;         /* of input 0 (or all that are blocked), of output 0 */
    const int64_t *channels; /* [nin] of those that are blocked; 0: the input is strided */
    int64_t nout;           /* channels of the output */
    const rl_kernel *inner; /* the kernel of strided layouts */
    rl_value moves;         /* RL_NATIVE_MOVE: what it moves, by the name that it has without a plan */
    const rl_nodeinfo *was; /* the step without a plan: the values that its parts read (exec.h) */
    struct rl_fused *fused; /* the step's, with channels in blocks; NULL: as it is */
    bool strict;            /* while it is measured: what would take plain loops fails */
    bool device;            /* of a device (native_device.c) */
} rl_native;

/* How the step lies: what it has then in place of its own kernel and fused ops. allowed: rl_native_allows has said so. */
rl_native *rl_native_of(const rl_exec *x, const rl_step *s, const rl_pin *pin, uint32_t npin, const rl_lay *lay);
/* Is it a conversion that a plan asks for? */
bool rl_native_is_move(const rl_step *s);
/* NULL: the step's own list, as on a device. */
const rl_kernel *rl_native_kernel(const rl_native *n);
/* Does that kernel read no element, so that it does its work on a device, too? */
bool rl_native_only_moves(const rl_native *n);
/* rl_step.order of a RL_NATIVE_PRODUCT whose output is to lie so; none where that is row-major. In mem. */
rl_order rl_native_order(rl_arena *mem, const rl_lay *out);

/* ---- kernels (fast_native.c) ---- */

rl_kernel_fn rl_native_chain, rl_native_concat, rl_native_global_pool, rl_native_move;
/* RL_EMODEL unless its blocked inputs are what its plan says; RL_OK without one. */
rl_status rl_native_check(const rl_call *c);
/* A step with blocked values by its strided kernel, between copies. */
rl_status rl_native_plain(rl_call *c);

/* ---- on a device (native_device.c) ---- */

/* The step's kernel of the device with these layouts; c->declined: it has none. */
rl_status rl_native_device(rl_call *c, const rl_kernel *k);
/* The step as it is without a plan, parts and the CPU's kernels included, between copies. */
rl_status rl_native_device_plain(rl_call *c);

/* ---- plans (native_plan.c, native_apply.c) ---- */

/* lay: of its pins; plain: what runs is what would without a plan, in layouts that it has then. */
typedef struct { uint32_t step, npin; const rl_lay *lay; bool plain; } rl_native_op;
typedef struct {
    const char *machine; /* rl_native_machine, where it was measured */
    int64_t ns;          /* predicted */
    uint32_t nop;
    const rl_native_op *op;
} rl_native_plan;

/* The processor, the library and the threads that times are of, or the device, which is open: one line. */
void rl_native_machine(rl_rt *rt, rl_text *t);
/* The plan as text, and the text as a plan of x: RL_EMODEL, with what does not fit. */
void rl_native_print(const rl_exec *x, const rl_native_plan *p, rl_text *t);
rl_status rl_native_parse(const rl_exec *x, const char *text, size_t n, rl_native_plan *p);
#define RL_NATIVE_KEY "relayout.plan" /* of the model's metadata_props; a device's: "relayout.plan.cuda" */
/* The key of plans for this device (NULL: the CPU), and the plan that the model's metadata has there; p NULL: none. */
rl_str rl_native_key(rl_ctx *ctx, const char *device);
rl_span rl_native_text(const rl_graph *g, const char *device);
/* The plan that x is to have, if any: rl_rt.native, or what the model's metadata has. One that does not fit is left, and rl_log says so. */
rl_status rl_native_load(rl_exec *x);

#endif
