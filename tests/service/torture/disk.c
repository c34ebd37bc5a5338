/* A library for LD_PRELOAD: it logs changes of files in one folder, and lets writes and syncs fail.

   LARL_DISK_FOLDER  folder, ending with /; other files are not affected
   LARL_DISK_LOG     file to which a record of every change is appended, in the order in which they happened
   LARL_DISK_FAULT   file of three integers: which calls fail (1 write, 2 sync, 4 truncate), errno, how many (-1: all)
   LARL_DISK_NO_SYNC if set, syncs do nothing, as with PRAGMA synchronous=OFF

   A record: letter of the change, length of the name, length of the data, offset or size; then the name and the data. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

struct __attribute__((packed)) header {
    char change;
    int32_t name_length;
    int32_t data_length;
    int64_t offset;
};

static struct {
    int32_t calls, error, remaining;
} volatile *fault;
static const char *folder;
static int log_file = -1;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void start(void) {
    folder = getenv("LARL_DISK_FOLDER");
    if (getenv("LARL_DISK_LOG"))
        log_file = REAL(open)(getenv("LARL_DISK_LOG"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    int file = getenv("LARL_DISK_FAULT") ? REAL(open)(getenv("LARL_DISK_FAULT"), O_RDWR | O_CLOEXEC) : -1;
    void *memory = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *fault, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    fault = memory == MAP_FAILED ? NULL : memory;
}

static int is_inside(const char *name) { return folder && name && !strncmp(name, folder, strlen(folder)); }

static int find_name(int file, char *name) {
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, name, PATH_MAX - 2);
    if (length < 0) return 0;
    name[length] = 0;
    if (folder && strlen(folder) == (size_t)length + 1) strcat(name, "/"); /* the folder itself */
    return is_inside(name);
}

static void record(char change, const char *name, int64_t offset, const void *data, size_t length) {
    if (log_file < 0) return;
    struct header header = {change, (int32_t)strlen(name), (int32_t)length, offset};
    struct iovec parts[] = {{&header, sizeof header}, {(void *)name, strlen(name)}, {(void *)data, length}};
    if (writev(log_file, parts, 3) < 0) abort();
}

static int fails(int call) {
    if (!fault || !(fault->calls & call) || !fault->remaining) return 0;
    if (fault->remaining > 0) fault->remaining--;
    errno = fault->error;
    return 1;
}

static ssize_t write_at(int file, const void *data, size_t length, off64_t offset, int has_offset) {
    char name[PATH_MAX];
    if (!find_name(file, name))
        return has_offset ? REAL(pwrite64)(file, data, length, offset) : REAL(write)(file, data, length);
    pthread_mutex_lock(&mutex);
    if (!has_offset) offset = lseek64(file, 0, (fcntl(file, F_GETFL) & O_APPEND) ? SEEK_END : SEEK_CUR);
    int failed = fails(1), error = errno;
    if (failed && error == ENOSPC) length /= 2; /* a full disk takes the first half */
    ssize_t done = 0;
    if (!failed || error == ENOSPC)
        done = has_offset ? REAL(pwrite64)(file, data, length, offset) : REAL(write)(file, data, length);
    if (done > 0) record('W', name, offset, data, done);
    pthread_mutex_unlock(&mutex);
    if (failed) errno = error;
    return failed ? -1 : done;
}

ssize_t write(int file, const void *data, size_t length) { return write_at(file, data, length, 0, 0); }
ssize_t pwrite64(int file, const void *data, size_t length, off64_t offset) {
    return write_at(file, data, length, offset, 1);
}
ssize_t pwrite(int file, const void *data, size_t length, off_t offset) {
    return write_at(file, data, length, offset, 1);
}

int ftruncate64(int file, off64_t size) {
    char name[PATH_MAX];
    if (!find_name(file, name)) return REAL(ftruncate64)(file, size);
    pthread_mutex_lock(&mutex);
    int result = fails(4) ? -1 : REAL(ftruncate64)(file, size);
    if (!result) record('T', name, size, "", 0);
    pthread_mutex_unlock(&mutex);
    return result;
}
int ftruncate(int file, off_t size) { return ftruncate64(file, size); }

static int sync_file(int file, int (*call)(int)) {
    char name[PATH_MAX];
    if (!find_name(file, name)) return call(file);
    if (getenv("LARL_DISK_NO_SYNC")) return 0;
    pthread_mutex_lock(&mutex);
    int failed = fails(2), error = errno;
    int result = failed ? -1 : call(file);
    record(result ? 'F' : 'S', name, 0, "", 0);
    pthread_mutex_unlock(&mutex);
    if (failed) errno = error;
    return result;
}
int fsync(int file) { return sync_file(file, REAL(fsync)); }
int fdatasync(int file) { return sync_file(file, REAL(fdatasync)); }

static int opened(int file, int flags) {
    char name[PATH_MAX];
    int error = errno;
    if (file >= 0 && (flags & (O_CREAT | O_TRUNC)) && find_name(file, name)) {
        record('C', name, 0, "", 0);
        if (flags & O_TRUNC) record('T', name, 0, "", 0);
    }
    errno = error;
    return file;
}

static int mode_of(va_list more, int flags) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(more, int) : 0; }
int open(const char *name, int flags, ...) {
    va_list more;
    va_start(more, flags);
    int mode = mode_of(more, flags);
    va_end(more);
    return opened(REAL(open)(name, flags, mode), flags);
}
int open64(const char *name, int flags, ...) {
    va_list more;
    va_start(more, flags);
    int mode = mode_of(more, flags);
    va_end(more);
    return opened(REAL(open64)(name, flags, mode), flags);
}

int unlink(const char *name) {
    int result = REAL(unlink)(name);
    if (!result && is_inside(name)) record('U', name, 0, "", 0);
    return result;
}

int rename(const char *from, const char *to) {
    int result = REAL(rename)(from, to);
    if (!result && is_inside(from)) record('R', from, 0, to, strlen(to));
    return result;
}
