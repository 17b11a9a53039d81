/* queue_holder.c - one holder in the queue of queue_test.py, with clave's lock.
 *
 *   queue_holder CONNECT PATH LOG NAME STOP SESSION_MS
 *
 * Until the file STOP exists: acquire, append "+ NAME TOKEN" to LOG, hold for a moment, append
 * "- NAME TOKEN", release. Each line is one write with O_APPEND. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../lib/grants.h"
#include "clave/clave.h"

static void check(clave_err err, const char *what)
{
    if (err == CLAVE_OK)
        return;
    fprintf(stderr, "queue_holder: %s: %s\n", what, clave_strerror(err));
    exit(1);
}

static void append(int fd, char sign, const char *name, int64_t token)
{
    char line[128];
    int n = snprintf(line, sizeof line, "%c %s %lld\n", sign, name, (long long)token);
    if (write(fd, line, (size_t)n) != n)
        exit(1);
}

static void hold_once(clave_mutex *l, int fd, const char *name)
{
    struct timespec moment = {.tv_nsec = rand() % 3 * 1000000L};
    check(clave_mutex_acquire(l, -1), "acquire");
    int64_t token = token_held(by_mutex(l));
    append(fd, '+', name, token);
    nanosleep(&moment, NULL);
    append(fd, '-', name, token);
    check(clave_mutex_release(l), "release");
}

int main(int argc, char **argv)
{
    clave_client *s = NULL;
    clave_mutex *l = NULL;
    clave_client_options o = {.size = sizeof o};
    if (argc != 7)
        return 64;
    const char *name = argv[4], *stop = argv[5];
    o.session_timeout_ms = atoi(argv[6]);
    srand((unsigned)getpid());
    int fd = open(argv[3], O_WRONLY | O_APPEND | O_CREAT, 0644);
    if (fd < 0)
        return 74;
    check(clave_client_open(&s, NULL, argv[1], &o), "open");
    check(clave_client_wait(s, 30000), "connect");
    check(clave_mutex_new(&l, s, argv[2], NULL), "lock");
    while (access(stop, F_OK) != 0)
        hold_once(l, fd, name);
    clave_mutex_free(l);
    clave_client_close(s, 1000);
    return 0;
}
