/* test_with_server.c - testing a program that uses a lock, with a server inside the test that
 * does what networks and pauses do, on command.
 *
 *   cc test_with_server.c $(pkg-config --cflags --libs clave) -lpthread && ./a.out
 *
 * Any test framework will do; here it is a function that ends the program. */
#include <clave/clave.h>
#include <clave/testserver.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static void check(bool fine, const char *what)
{
    printf("%s: %s\n", fine ? "ok" : "FAILED", what);
    if (!fine)
        exit(EXIT_FAILURE);
}

/* ---- the program under test: works while it holds the lock, and stops when it does not ---- */

struct worker {
    const char *connect;
    clave_client *session;
    atomic_int steps;
    clave_err ended; /* CLAVE_ELOST: it saw that the lock was gone */
};

static clave_err work(struct worker *w, clave_grant *grant)
{
    clave_err err = CLAVE_OK;
    while (err == CLAVE_OK && clave_grant_valid_for(grant, 100)) {
        err = clave_grant_set(grant, "/progress", "x", 1, -1, 5000);
        /* The answer was lost: done or not, it may be repeated. */
        if (clave_err_classify(err) == CLAVE_CLASS_UNKNOWN)
            err = CLAVE_OK;
        if (err == CLAVE_OK)
            atomic_fetch_add(&w->steps, 1);
    }
    return err == CLAVE_OK ? CLAVE_ELOST : err;
}

static void *run(void *arg)
{
    struct worker *w = arg;
    clave_mutex *lock;
    clave_grant *grant = NULL;
    w->ended = clave_mutex_new(&lock, w->session, "/jobs/worker", NULL);
    if (w->ended != CLAVE_OK)
        return NULL;
    w->ended = clave_mutex_acquire(lock, 10000);
    if (w->ended == CLAVE_OK)
        w->ended = clave_mutex_grant(lock, &grant);
    if (w->ended == CLAVE_OK)
        w->ended = work(w, grant);
    clave_grant_free(grant);
    clave_mutex_free(lock);
    return NULL;
}

/* ---- the test ---------------------------------------------------------------------------- */

static void wait_for_steps(struct worker *w, int more)
{
    int until = atomic_load(&w->steps) + more;
    while (atomic_load(&w->steps) < until)
        clave_sync(w->session, "/", 10000);
    check(true, "it works");
}

int main(void)
{
    clave_test_server *server;
    struct worker w = {.steps = 0};
    pthread_t thread;

    check(clave_test_server_new(&server, NULL) == CLAVE_OK, "a server, empty, on a free port");
    w.connect = clave_test_server_connect_string(server);
    check(clave_client_open(&w.session, NULL, w.connect, NULL) == CLAVE_OK, "a session");
    check(clave_create(w.session, "/progress", "", 0, NULL, 10000, NULL) == CLAVE_OK,
          "something to work on");
    check(pthread_create(&thread, NULL, run, &w) == 0, "the worker runs");
    wait_for_steps(&w, 10);

    /* A write is done and its reply is lost: the worker has to cope with that. */
    clave_test_fault lost = {.size = sizeof lost, .action = CLAVE_TEST_LOSE_REPLY, .times = 1};
    lost.kind = CLAVE_TEST_MULTI; /* what a guarded write is */
    check(clave_test_server_inject(server, &lost) == CLAVE_OK, "the reply to its next write...");
    check(clave_test_server_await_strikes(server, 1, 10000) == CLAVE_OK, "...is lost");
    wait_for_steps(&w, 10);

    /* The server dies, and comes back: the session lives on, and the lock with it. */
    check(clave_test_server_kill(server) == CLAVE_OK, "kill -9");
    check(clave_test_server_start(server) == CLAVE_OK, "and again");
    wait_for_steps(&w, 10);

    /* The session expires, as after a pause that was too long: now the worker must stop. */
    check(clave_test_server_expire(server, clave_client_id(w.session)) == CLAVE_OK,
          "the session expires");
    pthread_join(thread, NULL);
    check(w.ended == CLAVE_ELOST, "the worker has seen that its lock is lost, and stopped");

    clave_client_close(w.session, 10000);
    clave_test_server_free(server); /* with its data */
    return EXIT_SUCCESS;
}
