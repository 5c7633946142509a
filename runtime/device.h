/* Runs with a device besides the CPU: where each node runs, and what is copied for that.
 *
 * A tensor lies where its storage's `on` says.  A node with an input that is on the device, or came from it, runs
 *
 *   on it         where its table has a kernel for op, version and type, and that does not decline
 *   as it stands  where the CPU's kernel reads no element (Reshape, Transpose, Slice) or only calls rl_tensor_move (Concat, Tile); so shapes are
 *                 computed on the host, and data stays on the device
 *   on the CPU    otherwise: its inputs are copied to the host for it, and its output goes back with the first node that the device has
 *                 a kernel for
 *
 * A node all of whose inputs are on the host (constants, shapes) runs there.  Constants go to the device once.  The graph's inputs go
 * there first, its outputs come to the host last; so callers see the host's memory only.
 *
 * A graph whose nodes all ran without a copy between the two is recorded in its second run with the same dims; from the third on only
 * the recording is replayed. Where runs are many it is recorded a second time, in branches (branches.h), and the quicker one stays.
 *
 * Where a kernel of the device or a library fails, the node goes to the next that can do it, and is said to: another kernel on the
 * device, then the CPU; a graph that cannot be recorded is run node by node.  A device that no longer answers ends the run. */
#ifndef RL_DEVICE_H
#define RL_DEVICE_H
#include "../src/desc.h"
#include "exec.h"

/* t itself (one more reference) where it lies on b, else a dense copy there. Sequences and what is absent: itself. */
rl_tensor rl_tensor_on(rl_rt *rt, const rl_tensor *t, const rl_backend *b);

/* ---- for kernels of a device ---- */

/* Input i on the device, as strided as it is; a copy lives until the node is done. NULL where it is left out. */
const rl_tensor *rl_call_here(rl_call *c, uint32_t i);
/* The same, row-major, and of this number type (the device's Cast). */
const rl_tensor *rl_here_dense(rl_call *c, const rl_tensor *t);
/* The host's bytes on the device, until the rl_rt goes. lasts: they stay what and where they are, as a model's constants do. */
void *rl_call_keep(rl_call *c, const void *host, size_t nbyte, bool lasts);
/* A tensor of the host's, borrowed bytes that last as long as the graph, on the device: for what a kernel makes of constants (rl_step's made). */
const rl_tensor *rl_call_kept(rl_call *c, const rl_tensor *t);

/* A library failed at this node, and something else will do it: said once, by rl_device_report. The library is not asked again. */
void rl_call_note(rl_call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool rl_call_noted(const rl_call *c);

/* ---- for the runtime ---- */

/* The device has none left for so many bytes: said with the node at work, then the jump of rl_no_memory. */
_Noreturn void rl_device_no_memory(rl_rt *rt, size_t nbyte);

bool rl_device_has(const rl_rt *rt, const rl_kernel *k);
/* Is an input on the device, or has it come from there? */
bool rl_device_wants(const rl_call *c);
rl_status rl_device_kernel(rl_step *s, rl_call *c, const rl_kernel *k);
rl_status rl_device_host_kernel(rl_step *s, rl_call *c, const rl_kernel *k);
/* Input i, on the device, as numbers on the host. */
const rl_tensor *rl_device_number(rl_call *c, uint32_t i, rl_dtype t);
/* Part of rl_tensor_move_all: false unless all lies on the device. */
bool rl_device_moves_all(rl_rt *rt, uint32_t n, const rl_tensor *dst, const rl_tensor *src);
/* Parts of rl_tensor_move and rl_fill: false where all lies on the host. */
bool rl_device_moves(rl_rt *rt, const rl_tensor *dst, const rl_tensor *src);
bool rl_device_fills(rl_rt *rt, const rl_tensor *dst, const void *value);
/* Part of rl_lay_move: src as `from` says becomes dst as `to` says, padding zero; false where one of them is on the host, or it failed. */
bool rl_device_converts(rl_rt *rt, const rl_tensor *dst, const rl_desc *to, const rl_tensor *src, const rl_desc *from);
/* Ready for a graph; RL_OK also without a device. */
rl_status rl_device_open(rl_rt *rt);
/* Until what the node asked for is done. */
rl_status rl_device_wait(rl_call *c);
/* Marks of the device's clock (rl_backend); without a device nothing. */
rl_status rl_device_mark(rl_rt *rt, uint32_t i);
rl_status rl_device_run(rl_exec *x, const rl_tensor *in, rl_tensor *out);
bool rl_device_replays(const rl_exec *x);
void rl_device_release(rl_exec *x); /* what is recorded is forgotten, with its inputs and outputs */
/* "of 40 steps 25 come one after the other at most; ...", or why its recording has no branches; NULL: they were not tried. */
const char *rl_device_branches(const rl_exec *x);
/* "NVIDIA H200 ...; nodes on it: 12, as views or moves: 3, on the host: 2, on the host for want of a kernel: 1 (NonZero)", and a line for
 * each node where something failed; nothing without a device. */
void rl_device_report(const rl_exec *x, rl_text *out);
void rl_device_notes(const rl_exec *x, rl_text *out); /* these lines only */

#endif
