// Records what a process does to the files below a folder, in the order in which it happens. Loaded with LD_PRELOAD.
//
// RECORD_FOLDER is the folder, RECORD_LOG the file to append to. Each record is appended by one write: a header, the path,
// a second path, and the data. A change is recorded after it was made, a sync before it begins and after it has ended, so
// everything that a sync covers is recorded before its begin.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CREATED = 1, WRITTEN, TRUNCATED, SYNC_BEGUN, SYNC_ENDED, RENAMED, LINKED, UNLINKED, FOLDER_CREATED };

struct header {
  uint32_t kind, path_length, other_length, data_length;
  uint64_t inode, offset;
};

#define MAX_FILES 65536
static char tracked[MAX_FILES];
static int log_file = -1;
static const char *folder;
static size_t folder_length;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void start(void) {
  folder = getenv("RECORD_FOLDER");
  const char *log = getenv("RECORD_LOG");
  if (!folder || !log) return;
  folder_length = strlen(folder);
  // Out of the way of the descriptors of the program.
  int file = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
  log_file = fcntl(file, F_DUPFD_CLOEXEC, 900);
  syscall(SYS_close, file);
}

/** Makes a path absolute. Returns whether it is recorded: not outside of the folder, and not SQLite's shared memory. */
static int resolve(const char *path, char *absolute) {
  if (log_file < 0 || !path) return 0;
  if (path[0] == '/') snprintf(absolute, PATH_MAX, "%s", path);
  else {
    char current[PATH_MAX];
    if (!getcwd(current, sizeof current)) return 0;
    snprintf(absolute, PATH_MAX, "%s/%s", current, path);
  }
  size_t length = strlen(absolute);
  if (strncmp(absolute, folder, folder_length) != 0) return 0;
  return length < 4 || strcmp(absolute + length - 4, "-shm") != 0;
}

static void record(uint32_t kind, uint64_t inode, const char *path, const char *other, const void *data, size_t size,
                   uint64_t offset) {
  int saved = errno;
  struct header header = {kind, path ? strlen(path) : 0, other ? strlen(other) : 0, size, inode, offset};
  struct iovec parts[] = {{&header, sizeof header},
                          {(void *)path, header.path_length},
                          {(void *)other, header.other_length},
                          {(void *)data, size}};
  syscall(SYS_writev, log_file, parts, 4);
  errno = saved;
}

static uint64_t inode_of(int file) {
  struct stat found;
  return fstat(file, &found) == 0 ? found.st_ino : 0;
}

static int is_tracked(int file) { return log_file >= 0 && file >= 0 && file < MAX_FILES && tracked[file]; }

// On 64-bit systems, calls with large offsets are the same.
#define ALIAS(name) __attribute__((alias(name)))

int open(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  char absolute[PATH_MAX];
  int matters = resolve(path, absolute);
  int existed = matters && access(absolute, F_OK) == 0;
  int file = REAL(open)(path, flags, mode);
  if (!matters || file < 0 || file >= MAX_FILES) return file;
  tracked[file] = 1;
  if (!existed) record(CREATED, inode_of(file), absolute, NULL, NULL, 0, 0);
  else if (flags & O_TRUNC) record(TRUNCATED, inode_of(file), NULL, NULL, NULL, 0, 0);
  return file;
}
int open64(const char *path, int flags, ...) ALIAS("open");

int close(int file) {
  if (file >= 0 && file < MAX_FILES) tracked[file] = 0;
  return REAL(close)(file);
}

static void written(int file, const void *data, ssize_t size, uint64_t offset) {
  if (size > 0) record(WRITTEN, inode_of(file), NULL, NULL, data, size, offset);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t offset) {
  ssize_t done = REAL(pwrite)(file, data, size, offset);
  if (is_tracked(file)) written(file, data, done, offset);
  return done;
}
ssize_t pwrite64(int file, const void *data, size_t size, off64_t offset) ALIAS("pwrite");

ssize_t write(int file, const void *data, size_t size) {
  ssize_t done = REAL(write)(file, data, size);
  if (is_tracked(file) && done > 0) written(file, data, done, lseek(file, 0, SEEK_CUR) - done);
  return done;
}

int ftruncate(int file, off_t size) {
  int result = REAL(ftruncate)(file, size);
  if (result == 0 && is_tracked(file)) record(TRUNCATED, inode_of(file), NULL, NULL, NULL, 0, size);
  return result;
}
int ftruncate64(int file, off64_t size) ALIAS("ftruncate");

#define SYNC(name)                                                     \
  int name(int file) {                                                 \
    int matters = is_tracked(file);                                    \
    uint64_t inode = matters ? inode_of(file) : 0;                     \
    /* Tells concurrent syncs apart. */                                \
    uint64_t number = ((uint64_t)getpid() << 32) | (uint32_t)gettid(); \
    if (matters) record(SYNC_BEGUN, inode, NULL, NULL, NULL, 0, number); \
    int result = REAL(name)(file);                                     \
    if (matters && result == 0) record(SYNC_ENDED, inode, NULL, NULL, NULL, 0, number); \
    return result;                                                     \
  }
SYNC(fsync)
SYNC(fdatasync)

#define TWO_PATHS(name, kind)                                                            \
  int name(const char *from, const char *to) {                                           \
    char absolute[PATH_MAX], other[PATH_MAX];                                            \
    int matters = resolve(from, absolute) & resolve(to, other);                          \
    int result = REAL(name)(from, to);                                                   \
    if (result == 0 && matters) record(kind, 0, absolute, other, NULL, 0, 0);            \
    return result;                                                                       \
  }
TWO_PATHS(rename, RENAMED)
TWO_PATHS(link, LINKED)

int unlink(const char *path) {
  char absolute[PATH_MAX];
  int matters = resolve(path, absolute);
  int result = REAL(unlink)(path);
  if (result == 0 && matters) record(UNLINKED, 0, absolute, NULL, NULL, 0, 0);
  return result;
}

int mkdir(const char *path, mode_t mode) {
  char absolute[PATH_MAX];
  int matters = resolve(path, absolute);
  int result = REAL(mkdir)(path, mode);
  if (result == 0 && matters) {
    struct stat found;
    record(FOLDER_CREATED, stat(absolute, &found) == 0 ? found.st_ino : 0, absolute, NULL, NULL, 0, 0);
  }
  return result;
}
