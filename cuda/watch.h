/* What compute-sanitizer finds on a GPU, found on the emulated device (emulate.c), in a build of its own (RL_WATCHED):
 *
 *   races    two threads of a block that touch the same byte between two barriers, or two blocks of a launch that do, and one writes
 *   memory   a byte that no allocation has, counted exactly, or that another thread's variables have, or the host's heap
 *   numbers  a byte that nothing was written to, read
 *
 * emulate.cpp is compiled with -fsanitize=thread there, which calls a function before each access; those functions are watch.c's, not ThreadSanitizer's
 * library, and look the byte up in a shadow of the memory.  So each access is seen, in whatever order threads run, and the first that is
 * wrong ends the process with a line.
 *
 * RELAYOUT_WATCH_DROP=lines32_f32:2 leaves out the barrier after step 2 of this kernel: tests of what is found. */
#ifndef RL_CUDA_WATCH_H
#define RL_CUDA_WATCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a block shares lies in the middle of a room that no kernel may touch otherwise. */
enum { RL_WATCH_MARGIN = 8 << 10, RL_WATCH_SHARED = 64 << 10 };

/* Of the memory's bytes. */
typedef enum { RL_WATCH_OUTSIDE, RL_WATCH_UNWRITTEN, RL_WATCH_WRITTEN } rl_watch_state;

/* A launch. shared: that room, and how much of it a block shares; frame: of the function that runs the threads; any_writer, NULL: a word that each
 * thread may write; atomic: single bytes are set by atomics (run.h says why). */
typedef struct { const char *shared; size_t nshared; const void *frame, *any_writer; bool atomic; } rl_watch_launch;

#ifdef RL_WATCHED
#ifdef __cplusplus
extern "C" {
#endif
bool rl_watch_open(const void *room, size_t n); /* False: no memory */
void rl_watch_close(const void *room);
void rl_watch_set(const void *p, size_t n, rl_watch_state s);
void rl_watch_copy(void *to, const void *from, size_t n);                /* before it is done */
void rl_watch_host(const void *p, size_t n, bool write, const char *what); /* before a copy to or from the host */
void rl_watch_name(const char *kernel);
void rl_watch_begin(const rl_watch_launch *l);
bool rl_watch_drops(uint32_t step); /* is the barrier after it left out? */
void rl_watch_block(uint32_t block);
void rl_watch_step(uint32_t step);
void rl_watch_thread(uint32_t thread, const void *local, size_t nlocal); /* runs from here on, and what it keeps between steps */
void rl_watch_end(void);
#ifdef __cplusplus
}
#endif
#else
static inline bool rl_watch_open(const void *room, size_t n) { return (void)room, (void)n, true; }
static inline void rl_watch_close(const void *room) { (void)room; }
static inline void rl_watch_set(const void *p, size_t n, rl_watch_state s) { (void)p, (void)n, (void)s; }
static inline void rl_watch_copy(void *to, const void *from, size_t n) { (void)to, (void)from, (void)n; }
static inline void rl_watch_host(const void *p, size_t n, bool write, const char *what) { (void)p, (void)n, (void)write, (void)what; }
static inline void rl_watch_name(const char *kernel) { (void)kernel; }
static inline void rl_watch_begin(const rl_watch_launch *l) { (void)l; }
static inline bool rl_watch_drops(uint32_t step) { return (void)step, false; }
static inline void rl_watch_block(uint32_t block) { (void)block; }
static inline void rl_watch_step(uint32_t step) { (void)step; }
static inline void rl_watch_thread(uint32_t thread, const void *local, size_t nlocal) { (void)thread, (void)local, (void)nlocal; }
static inline void rl_watch_end(void) {}
#endif

#endif
