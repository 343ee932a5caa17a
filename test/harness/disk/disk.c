// Decides how the write-ahead logs of a process are synced. Loaded with LD_PRELOAD.
//
// While the file DISK_STATE contains "hold", syncs wait; while it contains "fail", they fail. Each sync adds a byte to the
// file DISK_SYNCS after it has read the state, so that one that waits is counted after the state became "hold".
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define POLL_US 1000

static int is_log(int file) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path);
  return length > 4 && strncmp(path + length - 4, "-wal", 4) == 0;
}

static char state(void) {
  char first = 0;
  int file = syscall(SYS_openat, AT_FDCWD, getenv("DISK_STATE"), O_RDONLY | O_CLOEXEC, 0);
  if (file >= 0 && syscall(SYS_read, file, &first, 1) != 1) first = 0;
  if (file >= 0) syscall(SYS_close, file);
  return first;
}

static void count(void) {
  int file = syscall(SYS_openat, AT_FDCWD, getenv("DISK_SYNCS"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  syscall(SYS_write, file, ".", 1);
  syscall(SYS_close, file);
}

static int sync_log(int file, int (*real)(int)) {
  if (!is_log(file)) return real(file);
  char now = state();
  count();
  while (now == 'h') {
    usleep(POLL_US);
    now = state();
  }
  if (now != 'f') return real(file);
  errno = EIO;
  return -1;
}

int fsync(int file) { return sync_log(file, REAL(fsync)); }
int fdatasync(int file) { return sync_log(file, REAL(fdatasync)); }
