/* locks_holder.c - one holder of locks_test.py, with clave's locks other than the mutex.
 *
 *   locks_holder CONNECT PATH LOG NAME STOP SESSION_MS rw|rw-stock|semaphore|semaphore-mutex
 *
 * Until the file STOP exists it holds something and lets go. Each hold is two lines in LOG,
 * "+ NAME KIND TOKEN" and "- NAME KIND TOKEN", each one write with O_APPEND; KIND is R, W or S.
 * The token of a read that was a write is 0: it has the write's place, not one of its own. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../lib/grants.h"
#include "clave/clave.h"

enum { LIMIT = 3 };

static int fd;
static const char *name;

static void check(clave_err err, const char *what)
{
    if (err == CLAVE_OK)
        return;
    fprintf(stderr, "locks_holder: %s: %s\n", what, clave_strerror(err));
    exit(1);
}

static void append(char sign, char kind, int64_t token)
{
    char line[128];
    int n = snprintf(line, sizeof line, "%c %s %c %lld\n", sign, name, kind, (long long)token);
    if (write(fd, line, (size_t)n) != n)
        exit(1);
}

static void rest(void)
{
    struct timespec moment = {.tv_nsec = rand() % 3 * 1000000L};
    nanosleep(&moment, NULL);
}

/* Half of the writes end as reads: the line says R from when the write is given back. */
static void read_or_write(clave_mutex *read, clave_mutex *write)
{
    bool writes = rand() % 3 == 0, downgrades = writes && rand() % 2 == 0;
    check(clave_mutex_acquire(writes ? write : read, -1), "acquire");
    int64_t token = token_held(by_mutex(writes ? write : read));
    append('+', writes ? 'W' : 'R', token);
    rest();
    if (downgrades) {
        check(clave_mutex_acquire(read, -1), "downgrade");
        append('-', 'W', token);
        token = 0;
        append('+', 'R', token);
        check(clave_mutex_release(write), "release");
        rest();
    }
    append('-', writes && !downgrades ? 'W' : 'R', token);
    check(clave_mutex_release(writes && !downgrades ? write : read), "release");
}

static void take_permits(clave_semaphore *p, size_t n)
{
    clave_lease *q[LIMIT];
    int64_t tokens[LIMIT];
    check(clave_semaphore_acquire(p, n, -1, q), "acquire");
    for (size_t i = 0; i < n; i++)
        append('+', 'S', tokens[i] = token_held(by_lease(q[i])));
    rest();
    for (size_t i = 0; i < n; i++)
        append('-', 'S', tokens[i]);
    for (size_t i = 0; i < n; i++)
        check(clave_lease_release(q[i]), "release");
}

int main(int argc, char **argv)
{
    clave_client *s = NULL;
    clave_mutex *read = NULL, *write = NULL;
    clave_semaphore *p = NULL;
    clave_client_options o = {.size = sizeof o};
    if (argc != 8)
        return 64;
    name = argv[4];
    const char *stop = argv[5];
    bool rw = strncmp(argv[7], "rw", 2) == 0, one = strcmp(argv[7], "semaphore-mutex") == 0;
    clave_semaphore_options so = {.size = sizeof so, .limit = one ? 1 : LIMIT};
    o.session_timeout_ms = atoi(argv[6]);
    srand((unsigned)getpid());
    fd = open(argv[3], O_WRONLY | O_APPEND | O_CREAT, 0644);
    if (fd < 0)
        return 74;
    check(clave_client_open(&s, NULL, argv[1], &o), "open");
    check(clave_client_wait(s, 30000), "connect");
    check(clave_rwlock_new(&read, &write, s, argv[2], NULL, NULL), "lock");
    check(clave_semaphore_new(&p, s, argv[2], &so), "semaphore");
    while (access(stop, F_OK) != 0)
        if (rw)
            read_or_write(read, write);
        else
            take_permits(p, one ? 1 : 1 + (size_t)rand() % LIMIT);
    clave_mutex_free(read);
    clave_mutex_free(write);
    clave_semaphore_free(p);
    clave_client_close(s, 1000);
    return 0;
}
