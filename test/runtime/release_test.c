/* release_test.c - giving a lock back: not awaited, confirmed, and when nobody answers. */
#include "rig.h"

#include <stdatomic.h>

#include "clave/testserver.h"
#include "lib/grants.h"

static clave_mutex *new_lock(clave_client *s, const char *path)
{
    clave_mutex *l;
    assert_int_equal(clave_mutex_new(&l, s, path, NULL), CLAVE_OK);
    return l;
}

/* Somebody else gets the lock at the first look. */
static void assert_free(clave_client *other, const char *path)
{
    clave_mutex *l = new_lock(other, path);
    assert_int_equal(clave_mutex_acquire(l, 0), CLAVE_OK);
    clave_mutex_free(l);
}

TEST_WITH(a_confirmed_release_is_seen_by_all, rig_start_group, rig_stop_group)
{
    clave_client *s = rig_session(rig->connect), *other = rig_session(rig->connect);
    clave_mutex *l = new_lock(s, "/locks/confirmed");
    assert_int_equal(clave_mutex_release_confirmed(l, -1), CLAVE_ENOTHELD);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(clave_mutex_acquire(l, -1), CLAVE_OK);
        assert_int_equal(clave_mutex_release_confirmed(l, -1), CLAVE_OK);
        assert_free(other, "/locks/confirmed");
    }
    clave_mutex_free(l);
    clave_client_close(s, 5000);
    clave_client_close(other, 5000);
}

TEST_WITH(free_waits_for_releases, rig_start_group, rig_stop_group)
{
    clave_client *s = rig_session(rig->connect), *other = rig_session(rig->connect);
    for (int i = 0; i < 20; i++) {
        clave_mutex *l = new_lock(s, "/locks/freed");
        assert_int_equal(clave_mutex_acquire(l, -1), CLAVE_OK);
        assert_int_equal(clave_mutex_release(l), CLAVE_OK);
        assert_int_equal(token_held(by_mutex(l)), 0);
        clave_mutex_free(l);
        assert_free(other, "/locks/freed");
    }
    clave_client_close(s, 5000);
    clave_client_close(other, 5000);
}

/* By the order of a session's requests the delete is done before the create. */
TEST_WITH(release_and_acquire_follow_each_other, rig_start_group, rig_stop_group)
{
    int64_t newest = 0;
    clave_client *s = rig_session(rig->connect);
    clave_mutex *l = new_lock(s, "/locks/follow");
    for (int i = 0; i < 100; i++) {
        assert_int_equal(clave_mutex_acquire(l, 0), CLAVE_OK);
        assert_true(token_held(by_mutex(l)) > newest);
        newest = token_held(by_mutex(l));
        assert_int_equal(clave_mutex_release(l), CLAVE_OK);
    }
    clave_mutex_free(l);
    clave_client_close(s, 5000);
}

TEST_WITH(only_the_last_hold_is_confirmed, rig_start_group, rig_stop_group)
{
    clave_client *s = rig_session(rig->connect), *other = rig_session(rig->connect);
    clave_mutex *l = new_lock(s, "/locks/inner"), *theirs = new_lock(other, "/locks/inner");
    for (int i = 0; i < 3; i++)
        assert_int_equal(clave_mutex_acquire(l, -1), CLAVE_OK);
    assert_int_equal(clave_mutex_release_confirmed(l, -1), CLAVE_OK);
    assert_int_equal(clave_mutex_release(l), CLAVE_OK);
    assert_true(held_for(by_mutex(l), 1));
    assert_int_equal(clave_mutex_acquire(theirs, 0), CLAVE_EBUSY);
    assert_int_equal(clave_mutex_release_confirmed(l, -1), CLAVE_OK);
    assert_int_equal(clave_mutex_acquire(theirs, 0), CLAVE_OK);
    clave_mutex_free(l);
    clave_mutex_free(theirs);
    clave_client_close(s, 5000);
    clave_client_close(other, 5000);
}

/* ---- one owner, many threads ------------------------------------------------------------- */

enum { THREADS = 4, TURNS = 50, OWNER = 7 };

struct crew {
    clave_mutex *lock;
    atomic_int faults;
};

static void *enter_and_leave(void *arg)
{
    struct crew *x = arg;
    for (int i = 0; i < TURNS; i++) {
        clave_err entered = clave_mutex_acquire_as(x->lock, OWNER, -1);
        clave_err left = i % 3 == 0 ? clave_mutex_release_confirmed_as(x->lock, OWNER, -1)
                                    : clave_mutex_release_as(x->lock, OWNER);
        if (entered != CLAVE_OK || left != CLAVE_OK)
            atomic_fetch_add(&x->faults, 1);
    }
    return NULL;
}

TEST_WITH(threads_share_an_owner, rig_start_group, rig_stop_group)
{
    pthread_t threads[THREADS];
    clave_client *s = rig_session(rig->connect);
    struct crew x = {.lock = new_lock(s, "/locks/shared")};
    assert_int_equal(clave_mutex_acquire_as(x.lock, OWNER, -1), CLAVE_OK);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, enter_and_leave, &x), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(x.faults, 0);
    assert_int_equal(clave_mutex_release_confirmed_as(x.lock, OWNER, -1), CLAVE_OK);
    assert_int_equal(clave_mutex_release_as(x.lock, OWNER), CLAVE_ENOTHELD);
    clave_mutex_free(x.lock);
    clave_client_close(s, 5000);
}

/* ---- a callback, a silent server ------------------------------------------------------------ */

struct attempt {
    clave_mutex *lock;
    clave_err release, confirmed;
};

static void release_here(clave_async_client *c, void *arg)
{
    struct attempt *a = arg;
    (void)c;
    a->release = clave_mutex_release_as(a->lock, OWNER);
    a->confirmed = clave_mutex_release_confirmed_as(a->lock, OWNER, -1);
}

TEST_WITH(no_release_in_a_callback, rig_start_group, rig_stop_group)
{
    clave_client *s = rig_session(rig->connect);
    clave_mutex *l = new_lock(s, "/locks/callback");
    struct attempt a = {.lock = l};
    assert_int_equal(clave_mutex_acquire_as(l, OWNER, -1), CLAVE_OK);
    assert_int_equal(clave_client_run(s, release_here, &a), CLAVE_OK);
    assert_int_equal(a.release, CLAVE_ELOOPTHREAD);
    assert_int_equal(a.confirmed, CLAVE_ELOOPTHREAD);
    assert_int_equal(clave_mutex_release_as(l, OWNER), CLAVE_OK);
    clave_mutex_free(l);
    clave_client_close(s, 5000);
}

TEST(a_silent_server_holds_up_only_the_confirmed)
{
    const clave_test_fault silence = {.size = sizeof silence, .action = CLAVE_TEST_SILENCE};
    clave_test_server *server;
    assert_int_equal(clave_test_server_new(&server, NULL), CLAVE_OK);
    const char *connect = clave_test_server_connect_string(server);
    clave_client *s = rig_session(connect), *other = rig_session(connect);
    clave_mutex *a = new_lock(s, "/locks/a"), *b = new_lock(s, "/locks/b");
    assert_int_equal(clave_mutex_acquire(a, -1), CLAVE_OK);
    assert_int_equal(clave_mutex_acquire(b, -1), CLAVE_OK);
    assert_int_equal(clave_test_server_inject(server, &silence), CLAVE_OK);
    assert_int_equal(clave_mutex_release(a), CLAVE_OK);
    assert_int_equal(clave_mutex_release(a), CLAVE_ENOTHELD);
    assert_int_equal(clave_mutex_release_confirmed(b, 20), CLAVE_ETIMEDOUT);
    assert_int_equal(clave_mutex_release_confirmed(b, RIG_PATIENCE_MS), CLAVE_ENOTHELD);
    assert_int_equal(clave_test_server_heal(server), CLAVE_OK);
    clave_mutex_free(a);
    clave_mutex_free(b);
    clave_mutex *their_a = new_lock(other, "/locks/a"), *their_b = new_lock(other, "/locks/b");
    assert_int_equal(clave_mutex_acquire(their_a, RIG_PATIENCE_MS), CLAVE_OK);
    assert_int_equal(clave_mutex_acquire(their_b, RIG_PATIENCE_MS), CLAVE_OK);
    clave_mutex_free(their_a);
    clave_mutex_free(their_b);
    clave_client_close(s, 5000);
    clave_client_close(other, 5000);
    clave_test_server_free(server);
}

/* The locks are freed while the server is silent: what is under way frees itself later. */
TEST(freed_before_the_answer)
{
    const clave_test_fault silence = {.size = sizeof silence, .action = CLAVE_TEST_SILENCE};
    clave_test_server *server;
    assert_int_equal(clave_test_server_new(&server, NULL), CLAVE_OK);
    clave_client *s = rig_session(clave_test_server_connect_string(server));
    clave_mutex *a = new_lock(s, "/locks/a"), *b = new_lock(s, "/locks/b");
    assert_int_equal(clave_mutex_acquire(a, -1), CLAVE_OK);
    assert_int_equal(clave_mutex_acquire(b, -1), CLAVE_OK);
    assert_int_equal(clave_test_server_inject(server, &silence), CLAVE_OK);
    assert_int_equal(clave_mutex_release(a), CLAVE_OK);
    assert_int_equal(clave_mutex_release_confirmed(b, 1), CLAVE_ETIMEDOUT);
    clave_mutex_free(a);
    clave_mutex_free(b);
    clave_client_close(s, 1); /* nobody answers this either */
    clave_test_server_free(server);
}
