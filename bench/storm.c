/* storm.c - many sessions that lose their server together; bench/storm runs several of these.
 *
 *   storm CONNECT N TIMEOUT_MS     N sessions on one loop
 *
 * Prints "ready" when all are connected, and again, for every line on its standard input, when all
 * have lost the connection and are back: {"back_ms": [...], "lost": ...}: when each was back, by
 * CLOCK_BOOTTIME, and how many had lost their session. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clave/clave.h"
#include "clave/uv.h"

struct user {
    clave_client *client;
    int64_t back_ms; /* 0: not connected */
};

static struct user *users;
static int count, connected, lost;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_connected = PTHREAD_COND_INITIALIZER;

static void check(clave_err err, const char *what)
{
    if (err == CLAVE_OK)
        return;
    fprintf(stderr, "storm: %s: %s\n", what, clave_strerror(err));
    exit(1);
}

static void on_state(clave_async_client *c, clave_state state, clave_err why, void *arg)
{
    struct user *u = arg;
    bool up = state == CLAVE_STATE_CONNECTED || state == CLAVE_STATE_RECONNECTED;
    (void)c, (void)why;
    pthread_mutex_lock(&lock);
    connected += (up ? 1 : 0) - (u->back_ms ? 1 : 0);
    u->back_ms = up ? clave_now() : 0;
    lost += state == CLAVE_STATE_LOST;
    if (connected == count)
        pthread_cond_signal(&all_connected);
    pthread_mutex_unlock(&lock);
}

static void wait_for_all(void)
{
    pthread_mutex_lock(&lock);
    while (connected < count)
        pthread_cond_wait(&all_connected, &lock);
    pthread_mutex_unlock(&lock);
}

static void report(void)
{
    printf("{\"back_ms\": [");
    for (int i = 0; i < count; i++)
        printf("%s%lld", i ? ", " : "", (long long)users[i].back_ms);
    printf("], \"lost\": %d}\n", lost);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char line[16];
    clave_loop *loop;
    clave_client_options o = CLAVE_CLIENT_OPTIONS_INIT;
    count = argc == 4 ? atoi(argv[2]) : 0;
    users = count > 0 ? calloc((size_t)count, sizeof *users) : NULL;
    if (!users) {
        fprintf(stderr, "usage: storm CONNECT N TIMEOUT_MS\n");
        return 64;
    }
    o.session_timeout_ms = atoi(argv[3]);
    o.state_cb = on_state;
    if (strncmp(argv[1], "tls:", 4) == 0)
        check(clave_tls_new(&o.tls, NULL, NULL, 0), "TLS");
    check(clave_loop_new(&loop), "loop");
    for (int i = 0; i < count; i++) {
        o.state_arg = &users[i];
        check(clave_client_open(&users[i].client, loop, argv[1], &o), "open");
    }
    wait_for_all();
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) { /* the server has been killed */
        wait_for_all();
        report();
    }
    _Exit(0);
}
