/* What of the emulated device (emulate.c) only the libraries' stand-ins use (tests/stand_in): work that is no kernel of ours. */
#ifndef RL_CUDA_EMULATE_H
#define RL_CUDA_EMULATE_H
#include "driver.h"

/* fn(arg) with the device's memory in reach, in order: now, or when what is being recorded is replayed. arg: n bytes, copied. */
rl_status rl_gpu_do(rl_gpu *g, void (*fn)(void *arg), const void *arg, size_t n);

#endif
