/* The program's devices, by name: "cpu", and "cuda" where it was built with that. The libraries have the CPU only. */
#ifndef RL_BACKENDS_H
#define RL_BACKENDS_H
#include "rt.h"

const rl_backend *rl_backend_find(const char *name); /* NULL: none */

#endif
