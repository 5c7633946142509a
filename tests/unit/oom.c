/* Lets allocations fail, one after another, in whole commands of the program:
 *
 *   oom MODELS FOLDER [N]    models from MODELS, results below FOLDER; N failures spread over each command (default: at every allocation)
 *
 * The program is linked in as a function (tests/CMakeLists.txt), with an arena that asks for every object apart.  Each command first
 * runs undisturbed, which counts its allocations.  Then it runs again and again: allocation k fails, alone or with all after it.  Then
 * the status is RL_ENOMEM, stderr has one line that says so, stdout is empty and no file was made; or, where the program can do
 * without (a thread less), status and files are those of the undisturbed run.  Either way nothing is left behind: no block, mapping
 * or open file. */
#include "../../src/cmd.h"
#include "../../src/hash.h"
#include "check.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>


/* ---- what the program calls instead of malloc and its kin ---- */

static struct { uint64_t count, fail_from, fail_to; int64_t blocks, mappings; } memory;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t to, size_t n);
void __real_free(void *p);
void *__real_mmap(void *at, size_t n, int prot, int flags, int fd, off_t from);
int __real_munmap(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_aligned_alloc(size_t to, size_t n);
void __wrap_free(void *p);
void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t from);
int __wrap_munmap(void *p, size_t n);

static bool fails(void) {
    uint64_t k = ++memory.count;
    return k >= memory.fail_from && k <= memory.fail_to;
}

static void *counted(void *p) {
    memory.blocks += p != NULL;
    return p;
}

void *__wrap_malloc(size_t n) { return fails() ? NULL : counted(__real_malloc(n)); }
void *__wrap_calloc(size_t n, size_t size) { return fails() ? NULL : counted(__real_calloc(n, size)); }
void *__wrap_aligned_alloc(size_t to, size_t n) { return fails() ? NULL : counted(__real_aligned_alloc(to, n)); }

void __wrap_free(void *p) {
    memory.blocks -= p != NULL;
    __real_free(p);
}

void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t from) {
    void *p = __real_mmap(at, n, prot, flags, fd, from);
    memory.mappings += p != MAP_FAILED;
    return p;
}

int __wrap_munmap(void *p, size_t n) {
    memory.mappings--;
    return __real_munmap(p, n);
}

/* ---- one run of a command ---- */

enum { MAXARG = 16, MAXPATH = 512, ENDS = 50 };
static const char *models, *folder; /* set once by main */
static int captured[2], terminal;   /* stdout and stderr of the command; ours */

static void path_in(char *out, const char *name) { snprintf(out, MAXPATH, "%s/oom/%s", folder, name); }

static int count_entries(const char *path) {
    int n = 0;
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d)) != NULL;) n += e->d_name[0] != '.' || strlen(e->d_name) > 2;
    if (d) closedir(d);
    return n;
}

static void empty_folder(const char *path) {
    DIR *d = opendir(path);
    char file[2 * MAXPATH];
    for (const struct dirent *e; d && (e = readdir(d)) != NULL;) {
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.' || strlen(e->d_name) > 2) remove(file);
    }
    if (d) closedir(d);
}

/* A hash of the files in the folder, whatever their order. */
static uint64_t hash_folder(const char *path) {
    static char bytes[1 << 20];
    uint64_t sum = 0;
    DIR *d = opendir(path);
    char file[2 * MAXPATH];
    for (const struct dirent *e; d && (e = readdir(d)) != NULL;) {
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        FILE *f = e->d_name[0] == '.' ? NULL : fopen(file, "rb");
        if (!f) continue;
        size_t n = fread(bytes, 1, sizeof bytes, f);
        sum += rl_hash_bytes(bytes, n) * 3 + rl_hash_bytes(e->d_name, strlen(e->d_name));
        fclose(f);
    }
    if (d) closedir(d);
    return sum;
}

static void take(int to, int from) {
    if (dup2(from, to) < 0) exit(2);
}

typedef struct { int status; uint64_t count, files; int64_t leaks; int nfile, nopen; char out[4096], err[4096]; } outcome;

static void read_captured(int i, char *text, size_t size) {
    ssize_t n = pread(captured[i], text, size - 1, 0);
    text[n > 0 ? n : 0] = 0;
}

/* Splits the line at spaces; words with a leading @ are models, with a leading % go below the folder. */
static int split(const char *line, char *room, char **argv) {
    int argc = 1;
    argv[0] = strcpy(room, "relayout");
    while (*line && argc < MAXARG - 1) {
        size_t n = strcspn(line, " "), at = (size_t)argc * MAXPATH;
        argv[argc] = room + at;
        if (*line == '@') snprintf(room + at, MAXPATH, "%s/%.*s", models, (int)n - 1, line + 1);
        else if (*line == '%') snprintf(room + at, MAXPATH, "%s/oom/%.*s", folder, (int)n - 1, line + 1);
        else snprintf(room + at, MAXPATH, "%.*s", (int)n, line);
        argc++;
        line += n + (line[n] == ' ');
    }
    argv[argc] = NULL;
    return argc;
}

/* Runs the command; allocations from .. to of it fail (0: none). */
static outcome run(const char *line, uint64_t from, uint64_t to) {
    static char room[MAXARG * MAXPATH];
    char *argv[MAXARG], out[MAXPATH];
    outcome o = {0};
    int argc = split(line, room, argv);
    path_in(out, "out");
    empty_folder(out);
    int nopen = count_entries("/proc/self/fd");
    for (int i = 0; i < 2; i++) {
        if (ftruncate(captured[i], 0) != 0) exit(2);
        lseek(captured[i], 0, SEEK_SET);
        take(i + 1, captured[i]);
    }
    int64_t blocks = memory.blocks, mappings = memory.mappings;
    memory.count = 0;
    memory.fail_from = from ? from : UINT64_MAX;
    memory.fail_to = to;
    o.status = (int)rl_program(argc, argv);
    memory.fail_from = UINT64_MAX;
    o.count = memory.count;
    o.leaks = memory.blocks - blocks + (memory.mappings - mappings);
    fflush(stdout);
    take(1, terminal);
    take(2, terminal);
    o.nopen = count_entries("/proc/self/fd") - nopen;
    o.nfile = count_entries(out);
    o.files = hash_folder(out);
    read_captured(0, o.out, sizeof o.out);
    read_captured(1, o.err, sizeof o.err);
    return o;
}

/* ---- all failures of a command ---- */

/* What is wrong with a run in which something failed, or NULL. */
static const char *judge(const outcome *o, const outcome *whole) {
    if (o->leaks) return "memory was not given back";
    if (o->nopen) return "a file stayed open";
    bool same = whole->files ? o->files == whole->files : o->nfile == whole->nfile;
    if (o->status == whole->status) return same ? NULL : "succeeded with other files";
    if (o->status != RL_ENOMEM) return "another status";
    if (o->out[0]) return "failed, but printed a result";
    if (o->nfile) return "failed, but left a file";
    const char *end = strchr(o->err, '\n');
    if (!end || end[1] || !strstr(o->err, "out of memory")) return "the message is not one line that says so";
    return NULL;
}

static void sweep(const char *line, uint64_t most) {
    outcome whole = run(line, 0, 0);
    if (run(line, 0, 0).files != whole.files) whole.files = 0; /* they tell times */
    uint64_t step = most && whole.count > most ? whole.count / most : 1, nrun = 0, nsurvived = 0;
    if (whole.status != 0 || whole.leaks || whole.nopen) fprintf(stderr, "%s: status %d, %lld leaks: %s", line, whole.status, (long long)whole.leaks, whole.err);
    CHECK(whole.status == 0 && !whole.leaks && !whole.nopen);
    /* The first fifty always, which set up, and the last, after which there is a result. */
    for (uint64_t k = 1; k <= whole.count && check_failed < 10; k += k < ENDS || k + ENDS > whole.count ? 1 : RL_MIN(step, whole.count - ENDS - k + 1))
        for (int all = 0; all < 2; all++) {
            outcome o = run(line, k, all ? UINT64_MAX - 1 : k);
            const char *why = judge(&o, &whole);
            if (why) fprintf(stderr, "%s, allocation %llu%s: %s (status %d, %lld leaks, %d files, %d open): %.200s\n", line, (unsigned long long)k,
                             all ? " and all after it" : "", why, o.status, (long long)o.leaks, o.nfile, o.nopen, o.err);
            CHECK(!why);
            nrun++;
            nsurvived += o.status == whole.status;
        }
    printf("%-60s %7llu allocations, %6llu failures, done without %llu\n", line, (unsigned long long)whole.count, (unsigned long long)nrun,
           (unsigned long long)nsurvived);
}

static int capture(void) {
    char name[MAXPATH];
    path_in(name, "captured-XXXXXX");
    int fd = mkstemp(name);
    unlink(name);
    return fd;
}

int main(int argc, char **argv) {
    static const char *const commands[] = {
        "optimize @channels_last_cnn.onnx -o %out/x.onnx",
        "optimize @attention_block.onnx -o %out/x.onnx --target onnx --proof %out/proof --json %out/report",
        "optimize @channels_last_cnn.onnx -o %out/x.onnx --target onnx --input-layout image=free",
        "optimize @channels_last_cnn.onnx -o %out/x.onnx --target onnx --check",
        "stats @channels_last_cnn.onnx",
        "explain @attention_block.onnx",
        "print @attention_block.onnx --after lower",
        "check-proof %made/proof @attention_block.onnx %made/x.onnx --target onnx",
        "run @channels_last_cnn.onnx --threads 2 --output-dir %out",
        "verify @attention_block.onnx %made/x.onnx",
        "bench @attention_block.onnx --runs 1 --json %out/report",
        "profile @channels_last_cnn.onnx --table --plan %out/plan -o %out/x.onnx --json %out/report --proof %out/proof --runs 1",
    };
    char path[MAXPATH];
    if (argc < 3 || argc > 4) return 2;
    models = argv[1];
    folder = argv[2];
    const char *const dirs[] = {"", "out", "made"};
    for (size_t i = 0; i < RL_LEN(dirs); i++) {
        path_in(path, dirs[i]);
        mkdir(path, 0777);
    }
    terminal = dup(2);
    for (int i = 0; i < 2; i++) captured[i] = capture();
    setvbuf(stdout, NULL, _IOLBF, 0);
    outcome made = run("optimize @attention_block.onnx -o %made/x.onnx --target onnx --proof %made/proof", 0, 0);
    CHECK(made.status == 0);
    for (size_t i = 0; i < RL_LEN(commands); i++) sweep(commands[i], argc == 4 ? strtoull(argv[3], NULL, 10) : 0);
    return check_done();
}
