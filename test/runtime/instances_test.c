/* instances_test.c - the instances of a service for threads: waits that end, queries while nothing
 * is known for certain, and the client closed under them. Each test closes its client at the end,
 * since the next one forks. */
#include "rig.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { SHORT = 50, JSON_CAP = 256 };

static void put(clave_client *s, const char *id, int32_t port)
{
    char json[JSON_CAP], path[64];
    const clave_instance i = {.name = "web", .id = id, .address = "h", .port = port};
    clave_create_options o = CLAVE_CREATE_OPTIONS_INIT;
    o.flags = CLAVE_CREATE_PARENTS;
    snprintf(path, sizeof path, "/services/web/%s", id);
    size_t n = clave_instance_format(&i, json, sizeof json);
    assert_int_equal(clave_create(s, path, json, n, &o, RIG_PATIENCE_MS, NULL), CLAVE_OK);
}

static clave_instances *follow(clave_client *s, clave_async_instances_cb *cb, void *arg)
{
    const clave_instances_options o = {.size = sizeof o, .service = "web"};
    clave_instances *d;
    assert_int_equal(clave_instances_new(&d, s, &o, cb, arg), CLAVE_OK);
    return d;
}

static bool list(const clave_instances_entry *e, void *arg)
{
    char *out = arg;
    snprintf(out + strlen(out), JSON_CAP - strlen(out), "%s:%d ", strrchr(e->path, '/') + 1,
             e->instance ? (int)e->instance->port : -1);
    return true;
}

static void lists(clave_instances *d, const char *expected)
{
    char text[JSON_CAP] = "";
    assert_int_equal(clave_instances_walk(d, list, text), CLAVE_OK);
    assert_string_equal(text, expected);
}

TEST(without_a_server_a_wait_ends_in_time)
{
    clave_client *s;
    assert_int_equal(clave_client_open(&s, NULL, rig_unix(), NULL), CLAVE_OK);
    clave_instances *d = follow(s, NULL, NULL);
    assert_int_equal(clave_instances_wait(d, SHORT), CLAVE_EUNREACHABLE);
    assert_int_equal(clave_instances_wait(d, 0), CLAVE_EUNREACHABLE);
    lists(d, "");
    assert_int_equal(clave_instances_pick(d, CLAVE_PICK_RANDOM, list, ""), CLAVE_ENONODE);
    clave_instances_free(d);
    clave_client_close(s, 0);
}

/* A server that hangs: what was known stays, and what is new is waited for. */
TEST(a_wait_for_a_server_that_hangs_ends_in_time)
{
    struct rig_process server;
    rig_fork(&server, rig_dir(), NULL);
    clave_client *s = rig_session(server.connect);
    put(s, "a", 1);
    clave_instances *known = follow(s, NULL, NULL);
    assert_int_equal(clave_instances_wait(known, RIG_PATIENCE_MS), CLAVE_OK);
    rig_freeze(&server);
    clave_instances *later = follow(s, NULL, NULL);
    assert_int_equal(clave_instances_wait(later, SHORT), CLAVE_ETIMEDOUT);
    lists(later, "");
    lists(known, "a:1 ");
    kill(server.pid, SIGCONT);
    assert_int_equal(clave_instances_wait(later, RIG_PATIENCE_MS), CLAVE_OK);
    lists(later, "a:1 ");
    clave_instances_free(later);
    clave_instances_free(known);
    clave_client_close(s, RIG_PATIENCE_MS);
    rig_kill(&server, SIGTERM);
}

/* ---- the end of the session ------------------------------------------------------------------ */

static void *wait_for_ever(void *arg)
{
    return (void *)(intptr_t)clave_instances_wait(arg, -1);
}

TEST(a_close_ends_a_wait)
{
    struct rig_process server;
    pthread_t waits;
    void *err;
    char none[JSON_CAP] = "";
    rig_fork(&server, rig_dir(), NULL);
    clave_client *s = rig_session(server.connect);
    rig_freeze(&server);
    clave_instances *d = follow(s, NULL, NULL);
    assert_int_equal(pthread_create(&waits, NULL, wait_for_ever, d), 0);
    assert_int_equal(clave_instances_wait(d, SHORT), CLAVE_ETIMEDOUT);
    clave_client_close(s, 0);
    pthread_join(waits, &err);
    assert_int_equal((intptr_t)err, CLAVE_ECLOSED);
    assert_int_equal(clave_instances_wait(d, -1), CLAVE_ECLOSED);
    assert_int_equal(clave_instances_walk(d, list, none), CLAVE_ECLOSED);
    assert_int_equal(clave_instances_pick(d, CLAVE_PICK_RANDOM, list, none), CLAVE_ECLOSED);
    assert_int_equal(clave_instances_note_error(d, "/services/web/a"), CLAVE_ECLOSED);
    assert_string_equal(none, "");
    clave_instances_free(d);
    kill(server.pid, SIGCONT);
    rig_kill(&server, SIGTERM);
}

/* ---- callbacks, and a connection that is lost ------------------------------------------------ */

struct seen {
    clave_instances *_Atomic d;
    atomic_int ups, stales, resynced, refused;
    bool frees; /* at the next instance that is up */
};

static void on_event(clave_async_instances *followed, const clave_instances_event *ev, void *arg)
{
    struct seen *s = arg;
    clave_instances *d = atomic_load(&s->d);
    (void)followed;
    atomic_fetch_add(&s->stales, ev->type == CLAVE_INSTANCES_STALE);
    atomic_fetch_add(&s->resynced, ev->type == CLAVE_INSTANCES_RESYNCED);
    if (d && clave_instances_wait(d, -1) == CLAVE_ELOOPTHREAD)
        atomic_fetch_add(&s->refused, 1);
    if (d && s->frees && ev->type == CLAVE_INSTANCES_UP) {
        clave_instances_free(d);
        atomic_store(&s->d, NULL);
    }
    atomic_fetch_add(&s->ups, ev->type == CLAVE_INSTANCES_UP);
}

TEST(they_are_stale_while_the_connection_is_lost)
{
    const char *data = rig_dir(), *address = rig_unix();
    struct rig *r = rig_start(data, address);
    clave_client *s = rig_session(address);
    struct seen seen = {.frees = false};
    put(s, "a", 1);
    clave_instances *d = follow(s, on_event, &seen);
    assert_int_equal(clave_instances_wait(d, RIG_PATIENCE_MS), CLAVE_OK);
    atomic_store(&seen.d, d);
    rig_stop(r);
    while (atomic_load(&seen.stales) == 0)
        sched_yield();
    assert_int_equal(clave_instances_wait(d, SHORT), CLAVE_ETIMEDOUT);
    lists(d, "a:1 ");
    r = rig_start(data, address);
    assert_int_equal(clave_instances_wait(d, RIG_PATIENCE_MS), CLAVE_OK);
    lists(d, "a:1 ");
    put(s, "b", 2);
    while (atomic_load(&seen.ups) < 2)
        sched_yield();
    lists(d, "a:1 b:2 ");
    assert_true(atomic_load(&seen.refused) >= 2); /* a wait on the loop's thread */
    clave_instances_free(d);
    clave_client_close(s, RIG_PATIENCE_MS);
    rig_stop(r);
}

TEST(they_may_be_freed_in_an_event)
{
    struct rig *r = rig_start(rig_dir(), NULL);
    clave_client *s = rig_session(r->connect);
    struct seen seen = {.frees = true};
    atomic_store(&seen.d, follow(s, on_event, &seen));
    assert_int_equal(clave_instances_wait(atomic_load(&seen.d), RIG_PATIENCE_MS), CLAVE_OK);
    put(s, "a", 1);
    put(s, "b", 2);
    while (atomic_load(&seen.d))
        sched_yield();
    assert_int_equal(clave_exists(s, "/", RIG_PATIENCE_MS, NULL), CLAVE_OK);
    assert_int_equal(atomic_load(&seen.ups), 1);
    clave_client_close(s, RIG_PATIENCE_MS);
    rig_stop(r);
}
