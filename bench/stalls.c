/* stalls.c - preloaded into a server by bench/stalls and bench/http: the CPU time of each turn of a
 * loop on epoll, from the return of one epoll_wait to the next call on the same descriptor (the
 * first of the thread: others are looked at within a turn). A thread that writes the log meanwhile
 * holds nobody up: its turn ends with the pwrite, and the next begins after the fdatasync. The
 * file $STALLS_TURNS is a struct shared: the reader may set a turn to 0. The turns of the thread
 * clave-http have a place of their own. */
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
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

typedef int wait_fn(int, struct epoll_event *, int, int, const sigset_t *);

typedef ssize_t write_fn(int, const void *, size_t, off_t);

/* In nanoseconds; of the longest turn, also the pages of memory that it was the first to touch. */
struct shared {
    int64_t longest;
    int64_t disk_stands_to; /* a moment of the monotonic clock: before it no sync of a file ends */
    int64_t longest_http;
    int64_t longest_pages;
};

struct moment {
    int64_t cpu; /* 0: it is not in a turn */
    int64_t pages;
};

static wait_fn *real;
static int (*real_fsync)(int), (*real_fdatasync)(int);
static volatile struct shared *shared; /* NULL: there is no such file */
static write_fn *real_write;
static _Thread_local struct moment began;
static _Thread_local int loop_fd = -1;

__attribute__((constructor)) static void begin(void)
{
    const char *name = getenv("STALLS_TURNS");
    int fd = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
    void *p = fd >= 0 ? mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                      : MAP_FAILED;
    real = (wait_fn *)dlsym(RTLD_NEXT, "epoll_pwait");
    real_write = (write_fn *)dlsym(RTLD_NEXT, "pwrite");
    real_fsync = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    shared = p == MAP_FAILED ? NULL : p;
    if (fd >= 0)
        close(fd);
}

static int64_t now_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct moment this_moment(void)
{
    struct rusage used;
    getrusage(RUSAGE_THREAD, &used);
    return (struct moment){now_of(CLOCK_THREAD_CPUTIME_ID), used.ru_minflt};
}

static void end_turn(void)
{
    const struct moment was = began;
    char name[16] = "";
    began.cpu = 0;
    if (was.cpu == 0 || !shared)
        return;
    const struct moment now = this_moment();
    const int64_t used = now.cpu - was.cpu;
    if (used <= shared->longest && used <= shared->longest_http)
        return;
    pthread_getname_np(pthread_self(), name, sizeof name);
    if (strcmp(name, "clave-http") == 0) {
        shared->longest_http = used > shared->longest_http ? used : shared->longest_http;
    } else if (used > shared->longest) {
        shared->longest = used;
        shared->longest_pages = now.pages - was.pages;
    }
}

int epoll_pwait(int fd, struct epoll_event *events, int n, int ms, const sigset_t *mask)
{
    if (loop_fd < 0)
        loop_fd = fd;
    if (fd != loop_fd)
        return real(fd, events, n, ms, mask);
    end_turn();
    int got = real(fd, events, n, ms, mask);
    began = this_moment();
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
    while (shared && now_of(CLOCK_MONOTONIC) < shared->disk_stands_to)
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
    began = this_moment();
    return err;
}
