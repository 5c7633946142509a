/* Files of models: mapped to read, replaced whole to write, and external data found without leaving the model's folder.
 *
 * A file is written without a name (where the file system can; else under another name in the same folder), flushed to disk, and then
 * takes the place of the old one: at any moment the path names the old file or the whole new one, and after a failure nothing is left.
 * A run that is killed leaves nothing either, but for the moment between the two calls that replace an old file.  What is no regular file (a pipe, a device) is written
 * directly, and so is what is open already (/dev/stdout, /dev/fd/3), whatever that is.
 *
 * External data (`strict`, the default): the location is relative, without "..", each folder on the way and the file itself
 * are opened without following symbolic links, the file is regular and has one hard link.  So a hostile model reads nothing
 * that is not beneath its own folder, also while somebody swaps folders for links.
 *
 * What lies in a mapped file and is large is copied from that file by the kernel (onnx_copy.c), not through the mapping.
 *
 * No arena memory is allocated while a file is open, because a failed allocation does not return. */
#define _GNU_SOURCE /* O_TMPFILE, renameat2 */
#include "onnx_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 512 /* spans per writev */, LARGE = 1 << 20 /* bytes worth a system call of their own */ };

/* ---- reading ---- */

/* Of what has just failed: no room to map a file is no fault of the file's. */
static rl_status status_of(int error) {
    return error == ENOMEM ? RL_ENOMEM : RL_EIO;
}

/* Maps an open file and closes it; NULL, or why not, and the errno, if any. */
static const char *map_fd(int fd, bool one_link, rl_span *out, rl_fileid *id) {
    struct stat st;
    const char *why = NULL;
    *out = (rl_span){0};
    errno = 0;
    if (fstat(fd, &st) != 0) why = strerror(errno);
    else if (S_ISDIR(st.st_mode)) why = "is a directory";
    else if (!S_ISREG(st.st_mode)) why = "not a regular file";
    else if (one_link && st.st_nlink > 1) why = "has more than one hard link: put a copy of it in its place";
    else if (st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED) why = strerror(errno);
        else *out = (rl_span){p, (size_t)st.st_size};
    }
    if (!why && id) *id = (rl_fileid){st.st_dev, st.st_ino};
    int e = errno;
    close(fd);
    errno = e;
    return why;
}

rl_status rl_file_map(rl_ctx *ctx, const char *path, uint64_t max, rl_span *out, rl_fileid *id) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return rl_fail(ctx, status_of(errno), "%.400s: cannot read: %s", path, strerror(errno));
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size > max) {
        close(fd);
        return rl_fail(ctx, RL_ELIMIT, "%.400s: has %lld bytes, over the limit of %llu", path, (long long)st.st_size,
                       (unsigned long long)max);
    }
    const char *why = map_fd(fd, false, out, id);
    return why ? rl_fail(ctx, status_of(errno), "%.400s: cannot read: %s", path, why) : RL_OK;
}

void rl_file_unmap(rl_span s) {
    if (s.p && s.n) munmap((void *)(uintptr_t)s.p, s.n);
}

void rl_file_forget(rl_span s) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = ((uintptr_t)s.p + page - 1) / page * page, to = ((uintptr_t)s.p + s.n) / page * page;
    if (from < to) madvise((void *)from, to - from, MADV_DONTNEED);
}

/* The next part of a path, without empty ones and "."; its length is 0 at the end. */
static size_t next_part(const char **s) {
    for (;;) {
        while (**s == '/') (*s)++;
        size_t n = strcspn(*s, "/");
        if (n != 1 || **s != '.') return n;
        (*s)++;
    }
}

bool rl_file_is_beneath(const char *location) {
    if (*location == '/') return false;
    bool any = false;
    for (const char *s = location; *s;) {
        size_t n = next_part(&s);
        if (n == 2 && rl_same_bytes(s, "..", 2)) return false;
        any |= n > 0;
        s += n;
    }
    return any;
}

/* Opens dir/location part by part, following no symbolic link; -1 and errno. */
static int open_beneath(const char *dir, const char *location) {
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *s = location;
    size_t n = next_part(&s);
    while (fd >= 0 && n) {
        char part[NAME_MAX + 1];
        if (n > NAME_MAX) {
            close(fd);
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(part, s, n);
        part[n] = 0;
        s += n;
        n = next_part(&s);
        int how = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | (n ? O_DIRECTORY : O_NONBLOCK | O_NOCTTY);
        int next = openat(fd, part, how), e = errno;
        struct stat st;
        /* O_DIRECTORY hides that it was a link. */
        if (next < 0 && e == ENOTDIR && fstatat(fd, part, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
            e = ELOOP;
        close(fd);
        errno = e;
        fd = next;
    }
    return fd;
}

static bool join(char *out, size_t size, const char *dir, const char *location) {
    int n = snprintf(out, size, "%s%s", *location == '/' ? "" : dir, location);
    return n >= 0 && (size_t)n < size;
}

rl_status rl_file_map_beneath(rl_ctx *ctx, const char *dir, const char *location, bool any, rl_span *out, rl_fileid *id) {
    char path[PATH_MAX];
    if (!any && !rl_file_is_beneath(location))
        return rl_fail(ctx, RL_EMODEL, "external data '%.200s' lies outside the model's folder", location);
    int fd;
    if (!any) fd = open_beneath(dir, location);
    else if (join(path, sizeof path, dir, location)) fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    else fd = -1, errno = ENAMETOOLONG;
    if (fd < 0) {
        const char *why = errno == ELOOP ? "is a symbolic link, and none is followed: put a copy of the file in its place" : strerror(errno);
        return rl_fail(ctx, RL_EIO, "external data '%.200s': %s", location, why);
    }
    const char *why = map_fd(fd, !any, out, id);
    return why ? rl_fail(ctx, status_of(errno), "external data '%.200s': %s", location, why) : RL_OK;
}

/* ---- writing ---- */

/* Writes all spans; false and errno. */
static bool write_spans(int fd, const rl_span *s, size_t n) {
    struct iovec v[BATCH];
    size_t i = 0, done = 0; /* done: bytes of s[i] already written */
    while (i < n) {
        int k = 0;
        for (size_t j = i; j < n && k < BATCH; j++) {
            size_t skip = j == i ? done : 0;
            if (s[j].n > skip) v[k++] = (struct iovec){(void *)(uintptr_t)(s[j].p + skip), s[j].n - skip};
            else if (!k) i++, done = 0;
        }
        if (!k) break;
        ssize_t w = writev(fd, v, k);
        if (w < 0 && errno == EINTR) continue;
        if (w < 0) return false;
        for (size_t left = (size_t)w; left;) {
            size_t step = RL_MIN(left, s[i].n - done);
            left -= step;
            done += step;
            if (done == s[i].n) i++, done = 0;
        }
    }
    return true;
}

static const rl_onnx_source *source_of(const rl_sources *from, rl_span s) {
    for (uint32_t i = 0; from && s.n >= LARGE && i < from->n; i++) {
        rl_span f = from->p[i].bytes;
        if (f.p && s.p >= f.p && s.p + s.n <= f.p + f.n) return &from->p[i];
    }
    return NULL;
}

/* Writes all spans to a new file, those of a source by the kernel; false and errno. */
static bool write_new(int fd, const rl_span *s, size_t n, const rl_sources *from) {
    for (size_t i = 0, k; i < n; i = k) {
        for (k = i; k < n && !source_of(from, s[k]);) k++;
        if (k > i && !write_spans(fd, s + i, k - i)) return false;
        if (k == n) break;
        const rl_onnx_source *f = source_of(from, s[k]);
        size_t done = rl_file_copy(fd, f, (size_t)(s[k].p - f->bytes.p), s[k].n);
        if (!write_spans(fd, &(rl_span){s[k].p + done, s[k].n - done}, 1)) return false;
        k++;
    }
    return ftruncate(fd, lseek(fd, 0, SEEK_CUR)) == 0; /* it may end in a hole */
}

/* The part of a path up to its last /, as length. */
static size_t dir_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

bool rl_file_put_dir(const char *path, char *dir, size_t size) {
    size_t n = dir_length(path);
    if (n + sizeof "./" > size) return errno = ENAMETOOLONG, false;
    memcpy(dir, n ? path : "./", n ? n : 2);
    dir[n ? n : 2] = 0;
    return true;
}

rl_str rl_file_dir(rl_ctx *ctx, const char *path) {
    size_t n = dir_length(path);
    return n ? rl_intern(ctx, path, n) : rl_internz(ctx, "./");
}

bool rl_file_same_dir(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool rl_file_same_place(const char *a, const char *b) {
    struct stat x, y;
    char dir[2][PATH_MAX];
    bool there = stat(a, &x) == 0, other = stat(b, &y) == 0;
    if (there && other) return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
    if (there || other || strcmp(a + dir_length(a), b + dir_length(b)) != 0) return false;
    return rl_file_put_dir(a, dir[0], sizeof dir[0]) && rl_file_put_dir(b, dir[1], sizeof dir[1]) && rl_file_same_dir(dir[0], dir[1]);
}

/* The k-th of some names in the folder of target that no other program and no other run makes at the same time. False: too long. */
static bool temp_name(const char *target, uint64_t k, char *temp, size_t size) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t x = ((uint64_t)t.tv_nsec ^ (uint64_t)t.tv_sec << 20 ^ (uint64_t)getpid() << 40) + k;
    x = x * 6364136223846793005u + 1442695040888963407u;
    int n = snprintf(temp, size, "%.*s.relayout-%08x.tmp", (int)dir_length(target), target, (unsigned)(x >> 32));
    if (n >= 0 && (size_t)n < size) return true;
    errno = ENAMETOOLONG;
    return false;
}

/* A new file in the folder of target; its name goes to temp. -1 and errno. */
static int open_temp(const char *target, char *temp, size_t size) {
    for (uint64_t k = 0; k < 100 && temp_name(target, k, temp, size); k++) {
        int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

/* The same without a name, where the file system has such files: what becomes of it when the program is killed is for the kernel. */
static int open_unnamed(const char *target) {
    char dir[PATH_MAX];
    return rl_file_put_dir(target, dir, sizeof dir) ? open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666) : -1;
}

/* Gives a file without a name that of target: directly where there is none yet, else by way of a temporary name, as only rename replaces. */
static bool name_file(int fd, const char *target, bool fresh) {
    char self[64], temp[PATH_MAX];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, self, AT_FDCWD, target, AT_SYMLINK_FOLLOW) == 0) return true;
    if (fresh) return false;
    for (uint64_t k = 0; k < 100 && errno == EEXIST && temp_name(target, k, temp, sizeof temp); k++) {
        if (linkat(AT_FDCWD, self, AT_FDCWD, temp, AT_SYMLINK_FOLLOW) != 0) continue;
        if (rename(temp, target) == 0) return true;
        int e = errno;
        unlink(temp);
        errno = e;
        return false;
    }
    return false;
}

static void sync_dir(const char *target) {
    char dir[PATH_MAX];
    int fd = rl_file_put_dir(target, dir, sizeof dir) ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd < 0) return;
    fsync(fd); /* some file systems cannot; the data is safe, and the name in their hands */
    close(fd);
}

/* Closes fd, keeping the errno of what failed before. */
static bool close_after(int fd, bool ok) {
    int e = errno;
    if (close(fd) != 0 && ok) return false;
    errno = e;
    return ok;
}

static bool fill(int fd, const struct stat *old, const rl_span *s, size_t n, const rl_sources *from) {
    return write_new(fd, s, n, from) && (!old || fchmod(fd, old->st_mode & 0777) == 0) && fsync(fd) == 0;
}

/* Not over what is there, but where a file system has neither way to say so. */
static bool rename_new(const char *temp, const char *target) {
    struct stat st;
    if (renameat2(AT_FDCWD, temp, AT_FDCWD, target, RENAME_NOREPLACE) == 0) return true;
    if (errno != EINVAL && errno != ENOSYS) return false;
    if (link(temp, target) == 0) return unlink(temp) == 0;
    if (errno == EEXIST || lstat(target, &st) == 0) {
        errno = EEXIST;
        return false;
    }
    return rename(temp, target) == 0;
}

static bool write_named(const char *target, const struct stat *old, bool fresh, const rl_span *s, size_t n, const rl_sources *from) {
    char temp[PATH_MAX];
    int fd = open_temp(target, temp, sizeof temp);
    if (fd < 0) return false;
    if (close_after(fd, fill(fd, old, s, n, from)) && (fresh ? rename_new(temp, target) : rename(temp, target) == 0)) return true;
    int e = errno;
    unlink(temp);
    errno = e;
    return false;
}

/* Through a temporary file; old: the file it replaces, or NULL; fresh: EEXIST where there is one meanwhile. False and errno. */
static bool write_regular(const char *target, const struct stat *old, bool fresh, const rl_span *s, size_t n, const rl_sources *from) {
    if (old && access(target, W_OK) != 0) return false;
    int fd = open_unnamed(target);
    bool filled = fd >= 0 && fill(fd, old, s, n, from), ok = filled && name_file(fd, target, fresh), taken = filled && !ok && fresh && errno == EEXIST;
    if (fd >= 0) close_after(fd, ok); /* what a close could find, fsync has found */
    if (!ok && !taken && (fd < 0 || filled)) ok = write_named(target, old, fresh, s, n, from); /* no such files here, or no /proc to name them by */
    if (ok) sync_dir(target);
    return ok;
}

static bool write_directly(const char *path, const rl_span *s, size_t n) {
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return false;
    bool ok = write_spans(fd, s, n);
    int e = errno;
    if (close(fd) != 0 && ok) {
        ok = false;
        e = errno;
    }
    errno = e;
    return ok;
}

int rl_file_descriptor(const char *path) {
    static const char *const name[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"}, *const dir[] = {"/dev/fd/", "/proc/self/fd/"};
    for (int i = 0; i < (int)RL_LEN(name); i++)
        if (strcmp(path, name[i]) == 0) return i;
    for (size_t i = 0; i < RL_LEN(dir); i++) {
        const char *s = path + strlen(dir[i]);
        if (strncmp(path, dir[i], strlen(dir[i])) != 0) continue;
        size_t n = strspn(s, "0123456789");
        if (n && n < 9 && !s[n]) return atoi(s);
    }
    return -1;
}

rl_status rl_file_write_spans(rl_ctx *ctx, const char *path, const rl_span *s, size_t n, const rl_sources *from) {
    char target[PATH_MAX];
    struct stat st;
    int fd = rl_file_descriptor(path);
    if (fd >= 0) return write_spans(fd, s, n) ? RL_OK : rl_fail(ctx, RL_EIO, "%.400s: cannot write: %s", path, strerror(errno));
    /* A link stays a link; what it names is replaced. One that leads nowhere names nothing that could be. */
    bool exists = stat(path, &st) == 0, ok;
    int why = errno;
    if (!exists && lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
        return rl_fail(ctx, RL_EIO, "%.400s: cannot write: a link that leads to no file: %s", path, strerror(why));
    if (exists && S_ISDIR(st.st_mode)) {
        ok = false;
        errno = EISDIR;
    } else if (exists && !S_ISREG(st.st_mode)) {
        ok = write_directly(path, s, n);
    } else if (exists) {
        ok = realpath(path, target) && write_regular(target, &st, false, s, n, from);
    } else {
        ok = write_regular(path, NULL, false, s, n, from);
    }
    return ok ? RL_OK : rl_fail(ctx, RL_EIO, "%.400s: cannot write: %s", path, strerror(errno));
}

rl_status rl_file_write(rl_ctx *ctx, const char *path, const void *p, size_t n) {
    return rl_file_write_spans(ctx, path, &(rl_span){p, n}, 1, NULL);
}

/* ---- external data beside a written model ---- */

/* Makes the folders on the way to path below its first nbase bytes. */
static bool make_dirs(char *path, size_t nbase) {
    for (char *s = path + nbase; (s = strchr(s, '/')); s++) {
        *s = 0;
        bool ok = mkdir(path, 0777) == 0 || errno == EEXIST;
        *s = '/';
        if (!ok) return false;
    }
    return true;
}

static bool same_bytes(const char *path, const rl_span *s, size_t n) {
    rl_span have;
    size_t at = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || map_fd(fd, false, &have, NULL)) return false;
    bool same = true;
    for (size_t i = 0; i < n && same; at += s[i++].n) same = s[i].n <= have.n - at && rl_same_bytes(have.p + at, s[i].p, s[i].n);
    same &= at == have.n;
    rl_file_unmap(have);
    return same;
}

static rl_status put_at(rl_ctx *ctx, const char *dir, char *path, const rl_span *s, size_t n, const rl_sources *from, bool *made) {
    struct stat st;
    if (lstat(path, &st) != 0) {
        *made = make_dirs(path, strlen(dir)) && write_regular(path, NULL, true, s, n, from);
        if (*made) return RL_OK;
        if (errno != EEXIST) return rl_fail(ctx, RL_EIO, "%.400s: cannot write: %s", path, strerror(errno));
    }
    if (same_bytes(path, s, n)) return RL_OK;
    return rl_fail(ctx, RL_EIO, "%.400s: the model's external data goes here, but a file with other contents is in its place", path);
}

rl_status rl_file_put_beneath(rl_ctx *ctx, const char *dir, const char *location, rl_span bytes, const rl_sources *from, bool *made) {
    char path[PATH_MAX];
    *made = false;
    if (!join(path, sizeof path, dir, location)) return rl_fail(ctx, RL_EIO, "external data '%.200s': the path is too long", location);
    return put_at(ctx, dir, path, &bytes, 1, from, made);
}

rl_status rl_file_write_beneath(rl_ctx *ctx, const char *dir, const char *location, bool replaces, const rl_span *s, size_t n,
                                const rl_sources *from, bool *made) {
    char path[PATH_MAX];
    struct stat st;
    *made = false;
    if (!join(path, sizeof path, dir, location)) return rl_fail(ctx, RL_EIO, "external data '%.200s': the path is too long", location);
    bool was = lstat(path, &st) == 0;
    for (uint32_t i = 0; was && from && i < from->n; i++)
        if (st.st_dev == from->p[i].id.dev && st.st_ino == from->p[i].id.ino)
            return rl_fail(ctx, RL_EUSAGE, "external data '%.200s': that is a file of the input, which stays as it is", location);
    if (!was || !replaces) return put_at(ctx, dir, path, s, n, from, made);
    return rl_file_write_spans(ctx, path, s, n, from);
}

void rl_file_drop_beneath(const char *dir, const char *location) {
    char path[PATH_MAX];
    if (join(path, sizeof path, dir, location)) unlink(path);
}

int rl_file_lock_dir(const char *dir) {
    enum { TRIES = 6000 };
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; fd >= 0 && i < TRIES && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    return fd;
}

void rl_file_unlock_dir(int fd) {
    if (fd >= 0) close(fd);
}
