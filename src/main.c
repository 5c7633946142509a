/* The program's begin: program.c has the rest. */
#ifdef __linux__
#include <malloc.h>
#endif

#include "cmd.h"

/* What one pass frees the next one takes: given back and asked for again, each page would cost as much as what is done in it. */
static void keep_freed_memory(void) {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

int main(int argc, char **argv) {
    keep_freed_memory();
    return (int)rl_program(argc, argv);
}
