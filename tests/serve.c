/* The program for many command lines in one process, so that a device is opened once: for tests on a GPU, where a process for each case takes most of the time.
 *
 *   each line of stdin     a file that gets stderr, and the arguments, separated by tabs       /tmp/said   run   model.onnx   --device   cuda
 *   each line of stdout    the exit status
 *
 *   RELAYOUT_SERVING=build/cuda/relayout_emulated_serving tests/python/test_backend_run.py --device cuda       (python/relayout_backend.py) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../cuda/driver.h"
#include "../src/cmd.h"

enum { MOST_WORDS = 256 };

int main(void) {
    char *line = NULL, *word[MOST_WORDS], program[] = "relayout";
    size_t room = 0;
    rl_gpu *held;
    rl_ctx *ctx = rl_ctx_new(0);
    FILE *answers = fdopen(dup(STDOUT_FILENO), "w");
    if (!ctx || !answers || !freopen("/dev/null", "w", stdout)) return 1;
    bool holds = rl_gpu_open(ctx, &held) == RL_OK; /* until the end: else each run would open it anew */
    while (getline(&line, &room, stdin) > 0) {
        int n = 1;
        char *said = strtok(line, "\t\n");
        word[0] = program;
        while (n < MOST_WORDS - 1 && (word[n] = strtok(NULL, "\t\n"))) n++;
        word[n] = NULL;
        if (!said || !freopen(said, "w", stderr)) break;
        rl_status s = rl_program(n, word);
        fflush(stderr);
        if (fprintf(answers, "%d\n", (int)s) < 0 || fflush(answers) != 0) break;
    }
    free(line);
    if (holds) rl_gpu_close(held);
    rl_ctx_free(ctx);
    return fclose(answers) != 0;
}
