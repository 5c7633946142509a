/* Which devices the program has: the only file that knows what it was built with. */
#include <string.h>

#include "backends.h"

#ifdef RL_CUDA
extern const rl_backend rl_backend_cuda; /* cuda/backend.c */
#endif

const rl_backend *rl_backend_find(const char *name) {
    if (strcmp(name, "cpu") == 0) return &rl_backend_cpu;
#ifdef RL_CUDA
    if (strcmp(name, "cuda") == 0) return &rl_backend_cuda;
#endif
    return NULL;
}
