/* clave_sessions.c - what sessions cost the process that has them.
 *
 *   clave_sessions CONNECT N     N sessions on one loop, each holding a lock of its own
 *
 * Prints {"one_kb": ..., "each_kb": ..., "threads": ...}: the resident memory after the first
 * session, what every further one adds, and the threads beside the main one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clave/clave.h"
#include "measure.h"

static void check(clave_err err, const char *what)
{
    if (err == CLAVE_OK)
        return;
    fprintf(stderr, "clave_sessions: %s: %s\n", what, clave_strerror(err));
    exit(1);
}

struct user {
    clave_client *session;
    clave_mutex *lock;
};

static void begin(struct user *u, clave_loop *loop, const char *connect, int number)
{
    char path[64];
    snprintf(path, sizeof path, "/bench/sessions/%d", number);
    check(clave_client_open(&u->session, loop, connect, NULL), "open");
    check(clave_mutex_new(&u->lock, u->session, path, NULL), "lock");
    check(clave_mutex_acquire(u->lock, 10000), "acquire");
}

int main(int argc, char **argv)
{
    int n = argc == 3 ? atoi(argv[2]) : 0;
    struct user *users = n > 1 ? calloc((size_t)n, sizeof *users) : NULL;
    clave_loop *loop = NULL;
    if (!users) {
        fprintf(stderr, "usage: clave_sessions CONNECT N\n");
        return 64;
    }
    check(clave_loop_new(&loop), "loop");
    begin(&users[0], loop, argv[1], 0);
    long one = own_status("VmRSS:");
    for (int i = 1; i < n; i++)
        begin(&users[i], loop, argv[1], i);
    printf("{\"one_kb\": %ld, \"each_kb\": %.1f, \"threads\": %ld}\n", one,
           (double)(own_status("VmRSS:") - one) / (n - 1), own_status("Threads:") - 1);
    for (int i = 0; i < n; i++) {
        clave_mutex_free(users[i].lock);
        clave_client_close(users[i].session, 1000);
    }
    clave_loop_free(loop);
    free(users);
    return 0;
}
