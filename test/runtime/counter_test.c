/* counter_test.c - a counter for threads: what a call says when the server hangs, goes and comes
 * back, and when the client is closed under it. Each test begins with a fork, so it closes its
 * client at the end. */
#include "rig.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { SHORT = 50 };

static clave_counter *counter(clave_client *s, const char *path)
{
    clave_counter *n;
    assert_int_equal(clave_counter_new(&n, s, path), CLAVE_OK);
    return n;
}

static int64_t value(clave_counter *n)
{
    int64_t v = -1;
    assert_int_equal(clave_counter_get(n, RIG_PATIENCE_MS, &v), CLAVE_OK);
    return v;
}

/* A call of another thread. */
struct adder {
    clave_counter *n;
    pthread_t thread;
    int times;
    atomic_int done;
    clave_err err; /* of the last one */
};

static void *adder_run(void *arg)
{
    struct adder *a = arg;
    for (int i = 0; i < a->times && a->err == CLAVE_OK; i++) {
        a->err = clave_counter_add(a->n, 1, -1, NULL);
        atomic_fetch_add(&a->done, a->err == CLAVE_OK);
    }
    return NULL;
}

static void adder_start(struct adder *a, clave_counter *n, int times)
{
    *a = (struct adder){.n = n, .times = times};
    assert_int_equal(pthread_create(&a->thread, NULL, adder_run, a), 0);
}

/* It was said that the change may be made later, and it is, once. */
TEST(a_call_that_is_given_up_is_done_once)
{
    struct rig_process server;
    clave_counter_change change;
    rig_fork(&server, rig_dir(), NULL);
    clave_client *s = rig_session(server.connect);
    clave_counter *n = counter(s, "/count/a");
    int64_t v = 77;
    assert_int_equal(clave_counter_add(n, 5, RIG_PATIENCE_MS, &change), CLAVE_OK);
    assert_int_equal(change.before, 0);
    assert_int_equal(change.after, 5);
    rig_freeze(&server);
    assert_int_equal(clave_counter_get(n, SHORT, &v), CLAVE_ETIMEDOUT);
    assert_int_equal(clave_counter_add(n, 1, SHORT, &change), CLAVE_ETIMEDOUT);
    assert_int_equal(clave_counter_set(n, 50, 0, NULL), CLAVE_ETIMEDOUT); /* was not begun */
    assert_int_equal(v, 77);
    assert_int_equal(change.after, 5);
    kill(server.pid, SIGCONT);
    assert_int_equal(value(n), 6);
    assert_int_equal(clave_counter_compare_and_set(n, 5, 9, RIG_PATIENCE_MS, NULL),
                     CLAVE_EBADVERSION);
    clave_counter_free(n);
    clave_client_close(s, RIG_PATIENCE_MS);
    rig_kill(&server, SIGTERM);
}

TEST(a_close_ends_a_wait)
{
    struct rig_process server;
    struct adder waits;
    rig_fork(&server, rig_dir(), NULL);
    clave_client *s = rig_session(server.connect);
    clave_counter *n = counter(s, "/count/b");
    assert_int_equal(clave_counter_add(n, 1, RIG_PATIENCE_MS, NULL), CLAVE_OK);
    rig_freeze(&server);
    adder_start(&waits, n, 1);
    assert_int_equal(clave_counter_get(n, SHORT, &(int64_t){0}), CLAVE_ETIMEDOUT);
    clave_client_close(s, 0);
    pthread_join(waits.thread, NULL);
    assert_int_equal(waits.err, CLAVE_ECLOSED);
    assert_int_equal(clave_counter_add(n, 1, RIG_PATIENCE_MS, NULL), CLAVE_ECLOSED);
    clave_counter_free(n);
    kill(server.pid, SIGCONT);
    rig_kill(&server, SIGTERM);
}

/* Four threads add while the server goes and comes back: each addition is there, once. */
TEST(threads_count_exactly_over_a_lost_connection)
{
    enum { THREADS = 4, TIMES = 60, STOPS = 3 };
    const char *data = rig_dir(), *address = rig_unix();
    struct rig *r = rig_start(data, address);
    clave_client *s = rig_session(address);
    clave_counter *n = counter(s, "/count/c");
    struct adder adders[THREADS];
    for (int i = 0; i < THREADS; i++)
        adder_start(&adders[i], n, TIMES);
    for (int stop = 1; stop <= STOPS; stop++) {
        while (atomic_load(&adders[0].done) < stop * TIMES / (STOPS + 1))
            sched_yield();
        rig_stop(r);
        r = rig_start(data, address);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(adders[i].thread, NULL);
        assert_int_equal(adders[i].err, CLAVE_OK);
    }
    assert_int_equal(value(n), THREADS * TIMES);
    clave_counter_free(n);
    clave_client_close(s, RIG_PATIENCE_MS);
    rig_stop(r);
}

/* ---- in a callback --------------------------------------------------------------------------- */

static void on_state(clave_async_client *c, clave_state state, clave_err why, void *arg)
{
    clave_counter *_Atomic *n = arg;
    clave_counter *known = atomic_load(n);
    (void)c;
    (void)state;
    (void)why;
    if (known && clave_counter_add(known, 1, -1, NULL) == CLAVE_ELOOPTHREAD)
        atomic_store(n, NULL);
}

TEST(a_call_in_a_callback_is_refused)
{
    const char *data = rig_dir(), *address = rig_unix();
    struct rig *r = rig_start(data, address);
    clave_counter *_Atomic seen = NULL;
    clave_client_options o = CLAVE_CLIENT_OPTIONS_INIT;
    clave_client *s;
    o.state_cb = on_state;
    o.state_arg = &seen;
    assert_int_equal(clave_client_open(&s, NULL, address, &o), CLAVE_OK);
    assert_int_equal(clave_client_wait(s, RIG_PATIENCE_MS), CLAVE_OK);
    clave_counter *n = counter(s, "/count/d");
    assert_int_equal(clave_counter_add(n, 1, RIG_PATIENCE_MS, NULL), CLAVE_OK);
    atomic_store(&seen, n);
    rig_stop(r); /* and so the state changes */
    while (atomic_load(&seen))
        sched_yield();
    r = rig_start(data, address);
    assert_int_equal(value(n), 1);
    clave_counter_free(n);
    clave_client_close(s, RIG_PATIENCE_MS);
    rig_stop(r);
}
