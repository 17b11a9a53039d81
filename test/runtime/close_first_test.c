/* close_first_test.c - the session is closed before what was made on it is freed: every call says
 * ECLOSED then, and _free frees. For ASan and TSan. */
#include "lib/grants.h"
#include "rig.h"

#include <stdatomic.h>

enum { PATIENCE = RIG_PATIENCE_MS, THREADS = 6 };

/* ---- a session that ends in one of the ways ------------------------------------------------ */

/* On a loop of its own; on one that goes on; on one that is freed, too, before the children. */
enum way { OWN_LOOP, LOOP_STAYS, LOOP_GOES, WAYS };

struct end {
    enum way way;
    clave_loop *loop;
    clave_client *session;
};

static clave_client *open_session(struct end *e, enum way way)
{
    *e = (struct end){.way = way};
    if (way != OWN_LOOP)
        assert_int_equal(clave_loop_new(&e->loop), CLAVE_OK);
    assert_int_equal(clave_client_open(&e->session, e->loop, rig->connect, NULL), CLAVE_OK);
    assert_int_equal(clave_client_wait(e->session, PATIENCE), CLAVE_OK);
    return e->session;
}

static void close_session(struct end *e)
{
    clave_client_close(e->session, PATIENCE);
    if (e->way == LOOP_GOES)
        clave_loop_free(e->loop);
}

/* Behind the children's _free. */
static void free_loop(struct end *e)
{
    if (e->way == LOOP_STAYS)
        clave_loop_free(e->loop);
}

/* ---- each kind of child -------------------------------------------------------------------- */

static void expect_closed_lock(clave_mutex *l)
{
    const clave_op op = {.kind = CLAVE_OP_CHECK, .path = "/", .version = -1};
    char text[64];
    assert_false(held_for(by_mutex(l), 0));
    assert_int_equal(token_held(by_mutex(l)), 0);
    assert_int_equal(clave_mutex_acquire(l, PATIENCE), CLAVE_ECLOSED);
    assert_int_equal(clave_mutex_acquire(l, 0), CLAVE_ECLOSED);
    assert_int_equal(clave_mutex_release(l), CLAVE_ECLOSED);
    assert_int_equal(clave_mutex_release_confirmed(l, PATIENCE), CLAVE_ECLOSED);
    assert_int_equal(clave_mutex_cancel_as(l, 1), CLAVE_ECLOSED);
    assert_int_equal(create_held(by_mutex(l), "/x", NULL, 0, CLAVE_PERSISTENT, PATIENCE, NULL),
                     CLAVE_ECLOSED);
    assert_int_equal(set_held(by_mutex(l), "/x", NULL, 0, -1, PATIENCE), CLAVE_ECLOSED);
    assert_int_equal(delete_held(by_mutex(l), "/x", -1, PATIENCE), CLAVE_ECLOSED);
    assert_int_equal(multi_held(by_mutex(l), &op, 1, PATIENCE, NULL), CLAVE_ECLOSED);
    assert_string_equal(clave_mutex_deadlock(l, text, sizeof text), "");
}

TEST(a_lock_may_be_freed_behind_its_session)
{
    for (enum way way = OWN_LOOP; way < WAYS; way++) {
        CLOSED_BY(free_loop) struct end e;
        clave_mutex *held, *idle, *read, *write;
        clave_client *s = open_session(&e, way);
        assert_int_equal(clave_mutex_new(&held, s, "/close/l", NULL), CLAVE_OK);
        assert_int_equal(clave_mutex_new(&idle, s, "/close/m", NULL), CLAVE_OK);
        assert_int_equal(clave_rwlock_new(&read, &write, s, "/close/rw", NULL, NULL), CLAVE_OK);
        assert_int_equal(clave_mutex_acquire(held, PATIENCE), CLAVE_OK);
        assert_int_equal(clave_mutex_acquire(held, PATIENCE), CLAVE_OK); /* twice */
        assert_int_equal(clave_mutex_acquire(write, PATIENCE), CLAVE_OK);
        assert_int_equal(clave_mutex_acquire(read, PATIENCE), CLAVE_OK);
        assert_int_equal(clave_mutex_acquire(idle, PATIENCE), CLAVE_OK);
        assert_int_equal(clave_mutex_release(idle), CLAVE_OK);
        close_session(&e);
        clave_mutex *all[] = {held, idle, read, write};
        for (size_t i = 0; i < 4; i++) {
            expect_closed_lock(all[i]);
            clave_mutex_free(all[i]);
        }
    }
}

TEST(a_lockset_may_be_freed_behind_its_session)
{
    static const clave_multilock_part parts[] = {{"/close/a", CLAVE_MULTILOCK_MUTEX},
                                                 {"/close/b", CLAVE_MULTILOCK_WRITE}};
    for (enum way way = OWN_LOOP; way < WAYS; way++) {
        CLOSED_BY(free_loop) struct end e;
        clave_multilock *l;
        clave_client *s = open_session(&e, way);
        assert_int_equal(clave_multilock_new(&l, s, parts, 2, NULL), CLAVE_OK);
        assert_int_equal(clave_multilock_acquire(l, PATIENCE, NULL), CLAVE_OK);
        close_session(&e);
        assert_false(held_for(by_mutex(clave_multilock_at(l, "/close/a")), 0));
        assert_int_equal(clave_multilock_acquire(l, PATIENCE, NULL), CLAVE_ECLOSED);
        assert_int_equal(clave_multilock_release(l, NULL), CLAVE_ECLOSED);
        clave_multilock_free(l);
    }
}

TEST(permits_may_be_freed_behind_their_session)
{
    const clave_semaphore_options o = {.size = sizeof o, .limit = 3};
    for (enum way way = OWN_LOOP; way < WAYS; way++) {
        CLOSED_BY(free_loop) struct end e;
        clave_semaphore *p;
        clave_lease *q[3], *none;
        char text[64];
        clave_client *s = open_session(&e, way);
        assert_int_equal(clave_semaphore_new(&p, s, "/close/s", &o), CLAVE_OK);
        assert_int_equal(clave_semaphore_acquire(p, 3, PATIENCE, q), CLAVE_OK);
        close_session(&e);
        assert_false(held_for(by_lease(q[0]), 0));
        assert_int_equal(token_held(by_lease(q[0])), 0);
        assert_int_equal(multi_held(by_lease(q[0]), NULL, 0, PATIENCE, NULL), CLAVE_ECLOSED);
        assert_int_equal(clave_lease_release(q[0]), CLAVE_ECLOSED); /* the handle is gone */
        assert_int_equal(clave_lease_release_confirmed(q[1], PATIENCE), CLAVE_ECLOSED);
        assert_int_equal(clave_semaphore_acquire(p, 1, PATIENCE, &none), CLAVE_ECLOSED);
        assert_null(none);
        clave_semaphore_cancel(p);
        assert_string_equal(clave_semaphore_deadlock(p, text, sizeof text), "");
        clave_semaphore_free(p); /* and q[2] with it */
    }
}

TEST(a_candidate_may_be_freed_behind_its_session)
{
    for (enum way way = OWN_LOOP; way < WAYS; way++) {
        CLOSED_BY(free_loop) struct end e;
        clave_latch *c[3];
        clave_client *s = open_session(&e, way);
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(clave_latch_new(&c[i], s, "/close/e", NULL), CLAVE_OK);
        assert_int_equal(clave_latch_start(c[0]), CLAVE_OK);
        assert_int_equal(clave_latch_await(c[0], PATIENCE), CLAVE_OK);
        assert_int_equal(clave_latch_start(c[1]), CLAVE_OK);
        close_session(&e);
        for (size_t i = 0; i < 3; i++) {
            assert_false(clave_latch_has_leadership(c[i]));
            assert_int_equal(token_held(by_latch(c[i])), 0);
            assert_int_equal(clave_latch_start(c[i]), CLAVE_ECLOSED);
            assert_int_equal(clave_latch_resign(c[i]), CLAVE_ECLOSED);
            assert_int_equal(clave_latch_await(c[i], PATIENCE), CLAVE_ECLOSED);
            assert_int_equal(clave_latch_await_loss(c[i], PATIENCE), CLAVE_ECLOSED);
            assert_int_equal(clave_latch_publish(c[i], "v", 1, PATIENCE), CLAVE_ECLOSED);
            assert_int_equal(clave_latch_transfer(c[i], "x", PATIENCE), CLAVE_ECLOSED);
            assert_int_equal(multi_held(by_latch(c[i]), NULL, 0, PATIENCE, NULL), CLAVE_ECLOSED);
            assert_int_equal(clave_latch_close(c[i], CLAVE_CLOSE_SILENT, PATIENCE), CLAVE_ECLOSED);
            clave_latch_free(c[i]);
        }
    }
}

static void lead_until_interrupted(clave_selector *s, void *arg)
{
    atomic_int *led = arg;
    atomic_fetch_add(led, 1);
    while (clave_selector_pause(s, 1000))
        continue;
    atomic_fetch_add(led, 1);
}

TEST(a_selector_may_be_freed_behind_its_session)
{
    for (enum way way = OWN_LOOP; way < WAYS; way++) {
        CLOSED_BY(free_loop) struct end e;
        atomic_int led = 0;
        const clave_selector_options o = {.size = sizeof o,
                                          .take = lead_until_interrupted,
                                          .take_arg = &led,
                                          .auto_requeue = true};
        clave_selector *leads, *waits, *idle;
        clave_client *s = open_session(&e, way);
        assert_int_equal(clave_selector_new(&leads, s, "/close/x", &o), CLAVE_OK);
        assert_int_equal(clave_selector_new(&waits, s, "/close/x", &o), CLAVE_OK);
        assert_int_equal(clave_selector_new(&idle, s, "/close/x", &o), CLAVE_OK);
        assert_int_equal(clave_selector_start(leads), CLAVE_OK);
        while (!clave_selector_has_leadership(leads))
            assert_int_equal(clave_sync(s, "/", PATIENCE), CLAVE_OK);
        assert_int_equal(clave_selector_start(waits), CLAVE_OK);
        close_session(&e);
        clave_selector *all[] = {leads, waits, idle};
        for (size_t i = 0; i < 3; i++) {
            assert_false(held_for(by_selector(all[i]), 0));
            assert_true(clave_selector_is_interrupted(all[i]));
            assert_int_equal(clave_selector_start(all[i]), CLAVE_ECLOSED);
            assert_int_equal(clave_selector_requeue(all[i]), CLAVE_ECLOSED);
            assert_int_equal(clave_selector_interrupt(all[i]), CLAVE_ECLOSED);
            assert_int_equal(multi_held(by_selector(all[i]), NULL, 0, PATIENCE, NULL),
                             CLAVE_ECLOSED);
            clave_selector_close(all[i]);
        }
        for (size_t i = 0; i < 3; i++)
            clave_selector_free(all[i]);
        assert_int_equal(led, 2); /* once, and it was interrupted */
    }
}

TEST(a_job_may_be_freed_behind_its_session)
{
    static const char *const paths[WAYS] = {"/close-once-0", "/close-once-1", "/close-once-2"};
    for (enum way way = OWN_LOOP; way < WAYS; way++) {
        CLOSED_BY(free_loop) struct end e;
        clave_mutex *l;
        clave_grant *g;
        clave_once *ended, *freed, *none;
        clave_client *s = open_session(&e, way);
        clave_once_options o = {.size = sizeof o, .path = paths[way], .period_ms = 3600000};
        assert_int_equal(clave_mutex_new(&l, s, "/close/j", NULL), CLAVE_OK);
        assert_int_equal(clave_mutex_acquire(l, PATIENCE), CLAVE_OK);
        assert_int_equal(clave_mutex_grant(l, &g), CLAVE_OK);
        assert_int_equal(clave_once_begin(&ended, g, &o, PATIENCE, NULL), CLAVE_OK);
        assert_int_equal(clave_once_begin(&freed, g, &o, PATIENCE, NULL), CLAVE_OK);
        close_session(&e);
        assert_int_equal(clave_once_begin(&none, g, &o, PATIENCE, NULL), CLAVE_ECLOSED);
        assert_null(none);
        clave_mutex_free(l); /* before the jobs */
        clave_grant_free(g);
        assert_int_equal(clave_once_end(ended, true, PATIENCE), CLAVE_ECLOSED);
        clave_once_free(freed);
    }
}

static bool never_visited(const clave_cache_node *node, void *arg)
{
    (void)node;
    *(bool *)arg = true;
    return true;
}

TEST(a_cache_may_be_freed_behind_its_session)
{
    for (enum way way = OWN_LOOP; way < WAYS; way++) {
        CLOSED_BY(free_loop) struct end e;
        clave_cache *loaded, *fresh;
        clave_reply *r;
        bool visited = false;
        clave_client *s = open_session(&e, way);
        assert_int_equal(clave_cache_new(&loaded, s, "/", NULL, NULL, NULL), CLAVE_OK);
        assert_int_equal(clave_cache_wait(loaded, PATIENCE), CLAVE_OK);
        assert_true(clave_cache_status_of(loaded).count > 0);
        assert_int_equal(clave_cache_new(&fresh, s, "/", NULL, NULL, NULL), CLAVE_OK);
        close_session(&e);
        assert_int_equal(clave_cache_wait(loaded, PATIENCE), CLAVE_ECLOSED);
        assert_int_equal(clave_cache_get(loaded, "/", &r), CLAVE_ECLOSED);
        assert_null(r);
        assert_int_equal(clave_cache_children(loaded, "/", &r), CLAVE_ECLOSED);
        assert_null(r);
        assert_int_equal(clave_cache_walk(loaded, "/", never_visited, &visited), CLAVE_ECLOSED);
        assert_false(visited);
        assert_int_equal(clave_cache_status_of(loaded).count, 0);
        assert_int_equal(clave_cache_status_of(loaded).bytes, 0);
        assert_int_equal(clave_cache_status_of(loaded).zxid, 0);
        assert_false(clave_cache_status_of(loaded).current);
        assert_false(clave_cache_status_of(loaded).complete);
        assert_int_equal(clave_cache_wait(fresh, -1), CLAVE_ECLOSED);
        clave_cache_free(loaded);
        clave_cache_free(fresh);
    }
}

/* What is made for callbacks, on the client of a session. */
static void make_mutex(clave_async_client *c, void *arg)
{
    assert_int_equal(clave_async_mutex_new(arg, c, "/close/async", NULL), CLAVE_OK);
}

TEST(a_mutex_of_its_client_may_be_freed_behind_a_session)
{
    for (enum way way = OWN_LOOP; way < WAYS; way++) {
        CLOSED_BY(free_loop) struct end e;
        clave_async_mutex *m;
        clave_client *s = open_session(&e, way);
        assert_int_equal(clave_client_run(s, make_mutex, &m), CLAVE_OK);
        close_session(&e);
        clave_async_mutex_free(m);
    }
}

/* ---- threads --------------------------------------------------------------------------------- */

struct waiter_thread {
    pthread_t thread;
    clave_mutex *lock;
    clave_semaphore *permits;
    clave_latch *candidate;
    clave_err err;
};

static void *wait_for_ever(void *arg)
{
    struct waiter_thread *w = arg;
    clave_lease *q;
    w->err = w->lock      ? clave_mutex_acquire(w->lock, -1)
             : w->permits ? clave_semaphore_acquire(w->permits, 1, -1, &q)
                          : clave_latch_await(w->candidate, -1);
    return NULL;
}

/* A close ends every wait; what was waited in is freed after it. */
TEST(a_wait_ends_with_its_session)
{
    const clave_semaphore_options o = {.size = sizeof o, .limit = 1};
    for (enum way way = OWN_LOOP; way < WAYS; way++) {
        struct end e, other;
        struct waiter_thread w[3] = {0};
        clave_mutex *held;
        clave_semaphore *taken;
        clave_lease *permit;
        clave_latch *leader;
        clave_client *holder = open_session(&other, OWN_LOOP);
        assert_int_equal(clave_mutex_new(&held, holder, "/wait/l", NULL), CLAVE_OK);
        assert_int_equal(clave_semaphore_new(&taken, holder, "/wait/s", &o), CLAVE_OK);
        assert_int_equal(clave_latch_new(&leader, holder, "/wait/e", NULL), CLAVE_OK);
        assert_int_equal(clave_mutex_acquire(held, PATIENCE), CLAVE_OK);
        assert_int_equal(clave_semaphore_acquire(taken, 1, PATIENCE, &permit), CLAVE_OK);
        assert_int_equal(clave_latch_start(leader), CLAVE_OK);
        assert_int_equal(clave_latch_await(leader, PATIENCE), CLAVE_OK);

        clave_client *s = open_session(&e, way);
        assert_int_equal(clave_mutex_new(&w[0].lock, s, "/wait/l", NULL), CLAVE_OK);
        assert_int_equal(clave_semaphore_new(&w[1].permits, s, "/wait/s", &o), CLAVE_OK);
        assert_int_equal(clave_latch_new(&w[2].candidate, s, "/wait/e", NULL), CLAVE_OK);
        assert_int_equal(clave_latch_start(w[2].candidate), CLAVE_OK);
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(pthread_create(&w[i].thread, NULL, wait_for_ever, &w[i]), 0);
        close_session(&e); /* at whatever point they are */
        for (size_t i = 0; i < 3; i++) {
            pthread_join(w[i].thread, NULL);
            assert_int_equal(w[i].err, CLAVE_ECLOSED);
        }
        clave_mutex_free(w[0].lock);
        clave_semaphore_free(w[1].permits);
        clave_latch_free(w[2].candidate);
        free_loop(&e);
        close_session(&other);
        clave_latch_free(leader);
        clave_semaphore_free(taken);
        clave_mutex_free(held);
    }
}

struct user_thread {
    pthread_t thread;
    clave_mutex *lock;
    atomic_uint *rounds;
    unsigned odd; /* answers that are none of those expected */
};

static void *use_until_closed(void *arg)
{
    struct user_thread *u = arg;
    clave_err err = CLAVE_OK;
    while (err != CLAVE_ECLOSED) {
        err = clave_mutex_acquire(u->lock, PATIENCE);
        (void)held_for(by_mutex(u->lock), 0);
        if (err == CLAVE_OK) {
            (void)token_held(by_mutex(u->lock));
            err = set_held(by_mutex(u->lock), "/use", "x", 1, -1, PATIENCE);
            clave_err released = clave_mutex_release(u->lock);
            u->odd += released != CLAVE_OK && released != CLAVE_ELOST && released != CLAVE_ECLOSED;
        }
        u->odd += err != CLAVE_OK && err != CLAVE_ECLOSED && err != CLAVE_ELOST &&
                  err != CLAVE_ENONODE && err != CLAVE_ENOTHELD && err != CLAVE_ECONNLOSS;
        atomic_fetch_add(u->rounds, 1);
    }
    clave_mutex_free(u->lock); /* perhaps while the session is still closing */
    return NULL;
}

TEST(a_session_may_close_under_threads_that_use_and_free)
{
    for (unsigned round = 0; round < 4 * WAYS; round++) {
        CLOSED_BY(free_loop) struct end e;
        struct user_thread u[THREADS];
        atomic_uint rounds = 0;
        clave_client *s = open_session(&e, (enum way)(round % WAYS));
        for (size_t i = 0; i < THREADS; i++) {
            u[i] = (struct user_thread){.rounds = &rounds};
            assert_int_equal(clave_mutex_new(&u[i].lock, s, i % 2 ? "/use/a" : "/use/b", NULL),
                             CLAVE_OK);
            assert_int_equal(pthread_create(&u[i].thread, NULL, use_until_closed, &u[i]), 0);
        }
        while (atomic_load(&rounds) < 4 * round)
            assert_int_equal(clave_sync(s, "/", PATIENCE), CLAVE_OK);
        close_session(&e);
        for (size_t i = 0; i < THREADS; i++) {
            pthread_join(u[i].thread, NULL);
            assert_int_equal(u[i].odd, 0);
        }
    }
}

/* ---- callbacks ---------------------------------------------------------------------------------
 */

struct in_callback {
    clave_mutex *lock;
    clave_err acquire, cancel;
    unsigned calls;
};

/* A request that the end of the session answers: by then the locks are out of the engine. */
static void free_lock_inside(clave_async_client *c, const clave_result *res, void *arg)
{
    struct in_callback *x = arg;
    (void)c;
    assert_int_equal(res->err, CLAVE_ECLOSED);
    x->acquire = clave_mutex_acquire(x->lock, 1000);
    x->cancel = clave_mutex_cancel_as(x->lock, 1);
    clave_mutex_free(x->lock);
    x->calls++;
}

static void ask_for_ever(clave_async_client *c, void *arg)
{
    assert_int_equal(clave_async_get(c, "/", NULL, free_lock_inside, arg), CLAVE_OK);
}

TEST(a_callback_may_free_while_the_session_closes)
{
    for (enum way way = OWN_LOOP; way < WAYS; way++) {
        CLOSED_BY(free_loop) struct end e = {.way = way};
        struct in_callback x = {0};
        if (way != OWN_LOOP)
            assert_int_equal(clave_loop_new(&e.loop), CLAVE_OK);
        /* Nobody listens there: the request waits for its connection until the end. */
        assert_int_equal(clave_client_open(&e.session, e.loop, "127.0.0.1:1", NULL), CLAVE_OK);
        assert_int_equal(clave_mutex_new(&x.lock, e.session, "/close/l", NULL), CLAVE_OK);
        assert_int_equal(clave_client_run(e.session, ask_for_ever, &x), CLAVE_OK);
        close_session(&e);
        assert_int_equal(x.calls, 1);
        assert_true(x.acquire == CLAVE_ELOOPTHREAD || x.acquire == CLAVE_ECLOSED);
        assert_true(x.cancel == CLAVE_ENOTHELD || x.cancel == CLAVE_ECLOSED);
    }
}

TEST_GROUP(rig_start_group, rig_stop_group)
