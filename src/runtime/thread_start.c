/* thread_start.c - see thread_start.h. Whatever libuv would abort for is tried before libuv needs
 * it. */
#include "runtime/thread_start.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_FILES = 16 };
/* The first loop of a process needs six descriptors; later ones need four. */
enum { LOOP_FILES = 6 };
/* libuv aborts if its table of descriptors cannot grow; with this much memory free, that is far
 * away. */
enum { LOOP_BYTES = 256 * 1024 };

int clave__thread_start(pthread_t *out, const char *name, void *(*run)(void *arg), void *arg)
{
    assert(strlen(name) <= 15); /* longer names would be rejected */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(out, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err == 0)
        pthread_setname_np(*out, name);
    return err;
}

static void *thread_start_do_nothing(void *arg)
{
    return arg;
}

int clave__thread_check(void)
{
    pthread_t thread;
    int err = clave__thread_start(&thread, "clave-check", thread_start_do_nothing, NULL);
    if (err == 0)
        pthread_join(thread, NULL);
    return err;
}

int clave__files_check(int n)
{
    int fds[MOST_FILES], opened = 0;
    assert(n <= MOST_FILES);
    while (opened < n && (fds[opened] = eventfd(0, EFD_CLOEXEC)) >= 0)
        opened++;
    int err = opened < n ? errno : 0;
    while (opened > 0)
        close(fds[--opened]);
    return err;
}

/* Tests by reserving address space, which is what runs short first; memory that is not touched
 * costs nothing. */
int clave__memory_check(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return errno;
    munmap(p, bytes);
    return 0;
}

/* libuv delivers signals through a pipe. */
static int thread_start_check_pipe(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    close(ends[0]);
    close(ends[1]);
    return 0;
}

int clave__loop_init(uv_loop_t *loop)
{
    int err = clave__files_check(LOOP_FILES);
    if (err == 0)
        err = thread_start_check_pipe();
    if (err == 0)
        err = clave__memory_check(LOOP_BYTES);
    return err == 0 ? -uv_loop_init(loop) : err;
}
