/* breeder.c - processes that are hard to end, for lock_offspring_test.py:
 *
 *     breeder chain SECONDS   each starts the next in a session of its own, twice, and ends
 *     breeder bomb SECONDS    all that live start others, in sessions of their own, up to MOST
 *
 * None hears SIGTERM or SIGHUP. All keep standard output open: it ends when the last of them does.
 * They end by themselves after SECONDS, whatever becomes of the test. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 150 };

static time_t end;

static _Noreturn void chain(void)
{
    for (;;) {
        pid_t next = fork();
        if (next > 0 || time(NULL) > end)
            _exit(0);
        if (next == 0)
            setsid();
    }
}

/* One that has no room ends its own now and then, so that they come and go. */
static _Noreturn void bomb(void)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    int *alive =
        mmap(NULL, sizeof *alive, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (alive == MAP_FAILED)
        _exit(1);
    *alive = 1;
    while (time(NULL) <= end) {
        if (__atomic_add_fetch(alive, 1, __ATOMIC_SEQ_CST) > MOST) {
            __atomic_sub_fetch(alive, 1, __ATOMIC_SEQ_CST);
            nanosleep(&moment, NULL);
            if (getpid() % 7 == 0) {
                __atomic_sub_fetch(alive, 1, __ATOMIC_SEQ_CST);
                _exit(0);
            }
        } else if (fork() == 0) {
            setsid();
        }
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    if (argc != 3)
        return 64;
    end = time(NULL) + atoi(argv[2]);
    if (strcmp(argv[1], "chain") == 0)
        chain();
    bomb();
}
