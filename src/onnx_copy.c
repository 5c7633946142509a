/* Copies parts of files inside the kernel (onnx_internal.h): what did not change of a large model is not read into this process, and
 * where the source is sparse, so is the copy.  A file system that cannot leaves the rest to the caller. */
#define _GNU_SOURCE /* copy_file_range, SEEK_DATA */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "onnx_internal.h"

static int open_source(const rl_onnx_source *s) {
    struct stat st;
    int fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return -1;
    bool same = fstat(fd, &st) == 0 && st.st_dev == s->id.dev && st.st_ino == s->id.ino && (uint64_t)st.st_size == s->bytes.n;
    if (same) return fd;
    close(fd); /* another file is there now */
    return -1;
}

/* Where the data that begins at `at` or later begins; end: only a hole is left. */
static off_t skip_hole(int from, off_t at, off_t end) {
    off_t data = lseek(from, at, SEEK_DATA);
    if (data < 0) return errno == ENXIO ? end : at;
    return RL_MIN(data, end);
}

static off_t end_of_data(int from, off_t at, off_t end) {
    off_t hole = lseek(from, at, SEEK_HOLE);
    return hole < 0 ? end : RL_MIN(hole, end);
}

size_t rl_file_copy(int to, const rl_onnx_source *s, size_t offset, size_t n) {
    int from = open_source(s);
    off_t start = (off_t)offset, at = start, end = start + (off_t)n;
    while (from >= 0 && at < end) {
        off_t data = skip_hole(from, at, end);
        if (data > at) {
            if (lseek(to, data - at, SEEK_CUR) < 0) break;
            at = data;
            continue;
        }
        ssize_t done = copy_file_range(from, &at, to, NULL, (size_t)(end_of_data(from, at, end) - at), 0);
        if (done <= 0 && !(done < 0 && errno == EINTR)) break;
    }
    if (from >= 0) close(from);
    return (size_t)(at - start);
}
