/* stalls.c - preloaded into a server by bench/stalls and bench/http: the CPU time of each turn of a
 * loop on epoll, from the return of one epoll_wait to the next call on the same descriptor (the
 * first of the thread: others are looked at within a turn). A thread that writes the log meanwhile
 * holds nobody up: its turn ends with the pwrite, and the next begins after the fdatasync. The
 * longest, in nanoseconds, stands in the first 8 bytes of the file $STALLS_TURNS, where the reader
 * may set it to 0. The next 8 bytes are a moment of the monotonic clock, in nanoseconds: before it
 * no sync of a file ends. The longest turn of the thread clave-http stands in the 8 bytes after
 * that, not in the first. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef int wait_fn(int, struct epoll_event *, int, int, const sigset_t *);

typedef ssize_t write_fn(int, const void *, size_t, off_t);

static wait_fn *real;
static int (*real_fsync)(int), (*real_fdatasync)(int);
static volatile int64_t *longest, *disk_stands_to;
static write_fn *real_write;
static _Thread_local int64_t began_at; /* 0: it is not in a turn */
static _Thread_local int loop_fd = -1;

__attribute__((constructor)) static void begin(void)
{
    const char *name = getenv("STALLS_TURNS");
    int fd = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
    void *p = fd >= 0 ? mmap(NULL, 24, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    real = (wait_fn *)dlsym(RTLD_NEXT, "epoll_pwait");
    real_write = (write_fn *)dlsym(RTLD_NEXT, "pwrite");
    real_fsync = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    longest = p == MAP_FAILED ? NULL : p;
    disk_stands_to = longest ? longest + 1 : NULL;
    if (fd >= 0)
        close(fd);
}

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void end_turn(void)
{
    int64_t used = began_at > 0 ? cpu_ns() - began_at : 0;
    char name[16] = "";
    began_at = 0;
    if (!longest || (used <= longest[0] && used <= longest[2]))
        return;
    pthread_getname_np(pthread_self(), name, sizeof name);
    volatile int64_t *most = &longest[strcmp(name, "clave-http") == 0 ? 2 : 0];
    if (used > *most)
        *most = used;
}

int epoll_pwait(int fd, struct epoll_event *events, int n, int ms, const sigset_t *mask)
{
    if (loop_fd < 0)
        loop_fd = fd;
    if (fd != loop_fd)
        return real(fd, events, n, ms, mask);
    end_turn();
    int got = real(fd, events, n, ms, mask);
    began_at = cpu_ns();
    return got;
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    end_turn();
    return real_write(fd, p, n, at);
}

int epoll_wait(int fd, struct epoll_event *events, int n, int ms)
{
    return epoll_pwait(fd, events, n, ms, NULL);
}

static void wait_for_disk(void)
{
    struct timespec t;
    while (disk_stands_to && clock_gettime(CLOCK_MONOTONIC, &t) == 0 &&
           (int64_t)t.tv_sec * 1000000000 + t.tv_nsec < *disk_stands_to)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

int fsync(int fd)
{
    wait_for_disk();
    return real_fsync(fd);
}

int fdatasync(int fd)
{
    wait_for_disk();
    int err = real_fdatasync(fd);
    began_at = cpu_ns();
    return err;
}
