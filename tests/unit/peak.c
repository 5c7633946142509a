/* peak FILE COMMAND...: runs the command, writes to FILE the most memory that it held at once, in KiB, and ends as it did.
 *
 * A process counts what it held before exec, too: one that a large program starts seems as large as that.  This one is small. */
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int run(char **command) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* whoever waits no longer kills both */
        execvp(command[0], command);
        _exit(127);
    }
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

int main(int argc, char **argv) {
    struct rusage u;
    if (argc < 3) return 2;
    int status = run(argv + 2);
    FILE *f = fopen(argv[1], "w");
    if (status < 0 || !f || getrusage(RUSAGE_CHILDREN, &u) != 0) return 2;
    fprintf(f, "%ld\n", u.ru_maxrss);
    if (fclose(f) != 0) return 2;
    if (WIFSIGNALED(status)) raise(WTERMSIG(status));
    return WEXITSTATUS(status);
}
