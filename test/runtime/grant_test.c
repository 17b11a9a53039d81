/* grant_test.c - grants for threads: who may write under them, when they are over, and what they
 * may outlive. */
#include "rig.h"

#include <semaphore.h>

#include "clave/clave.h"
#include "clave/testserver.h"
#include "clave/uv.h"

enum { PATIENCE = 10000 };

static void assert_over(clave_grant *g, clave_err err)
{
    const clave_op op = {.kind = CLAVE_OP_CHECK, .path = "/", .version = -1};
    assert_false(clave_grant_valid_for(g, 0));
    assert_true(clave_grant_deadline(g) == INT64_MIN);
    assert_int_equal(clave_grant_create(g, "/y", "", 0, CLAVE_PERSISTENT, PATIENCE, NULL), err);
    assert_int_equal(clave_grant_set(g, "/", "", 0, -1, PATIENCE), err);
    assert_int_equal(clave_grant_delete(g, "/y", -1, PATIENCE), err);
    assert_int_equal(clave_grant_multi(&g, 1, &op, 1, PATIENCE, NULL), err);
}

static void *write_elsewhere(void *arg)
{
    clave_grant *g = arg;
    bool fine = clave_grant_valid_for(g, 1) &&
                clave_grant_create(g, "/by-", "", 0, CLAVE_EPHEMERAL_SEQUENTIAL, PATIENCE, NULL) ==
                    CLAVE_OK;
    clave_grant_free(g);
    return fine ? arg : NULL;
}

/* The grant is not its thread's: what has it, writes. */
TEST(any_thread_writes_under_it)
{
    clave_client *s = rig_session(rig->connect);
    clave_mutex *l;
    clave_grant *g;
    pthread_t thread;
    void *fine;
    assert_int_equal(clave_mutex_new(&l, s, "/grants/thread", NULL), CLAVE_OK);
    assert_int_equal(clave_mutex_grant(l, &g), CLAVE_ENOTHELD);
    assert_null(g);
    assert_int_equal(clave_mutex_acquire(l, PATIENCE), CLAVE_OK);
    assert_int_equal(clave_mutex_grant(l, &g), CLAVE_OK);
    assert_true(clave_grant_token(g) > 0);
    assert_true(clave_grant_session_id(g) == clave_client_id(s));
    assert_memory_equal(clave_grant_node(g), "/grants/thread/_c_", 18);
    assert_true(clave_grant_deadline(g) > clave_now());
    assert_int_equal(pthread_create(&thread, NULL, write_elsewhere, clave_grant_ref(g)), 0);
    assert_int_equal(pthread_join(thread, &fine), 0);
    assert_non_null(fine);
    clave_grant_free(g);
    clave_grant_free(NULL);
    assert_int_equal(clave_mutex_release(l), CLAVE_OK);
    clave_mutex_free(l);
    clave_client_close(s, PATIENCE);
}

TEST(no_copy_writes_after_a_release)
{
    clave_client *s = rig_session(rig->connect);
    clave_mutex *l;
    clave_grant *first, *second;
    assert_int_equal(clave_mutex_new(&l, s, "/grants/release", NULL), CLAVE_OK);
    assert_int_equal(clave_mutex_acquire(l, PATIENCE), CLAVE_OK);
    assert_int_equal(clave_mutex_grant(l, &first), CLAVE_OK);
    assert_int_equal(clave_mutex_release(l), CLAVE_OK);
    /* The loop's thread may not have seen the release yet: the write stands behind it. */
    assert_int_equal(clave_grant_set(first, "/", "", 0, -1, PATIENCE), CLAVE_ELOST);
    assert_over(first, CLAVE_ELOST);
    assert_int_equal(clave_mutex_acquire(l, PATIENCE), CLAVE_OK);
    assert_int_equal(clave_mutex_grant(l, &second), CLAVE_OK);
    assert_true(clave_grant_token(second) > clave_grant_token(first));
    assert_over(first, CLAVE_ELOST);
    assert_int_equal(clave_mutex_release_confirmed(l, PATIENCE), CLAVE_OK);
    assert_over(second, CLAVE_ELOST);
    clave_mutex_free(l);
    assert_over(second, CLAVE_ELOST);
    clave_grant_free(first);
    clave_grant_free(second);
    clave_client_close(s, PATIENCE);
}

TEST(it_may_outlive_the_session)
{
    clave_client *s = rig_session(rig->connect);
    const clave_semaphore_options o = {.size = sizeof o, .limit = 1};
    clave_semaphore *permits;
    clave_lease *lease;
    clave_grant *of_lease, *of_latch;
    clave_latch *latch;
    assert_int_equal(clave_semaphore_new(&permits, s, "/grants/s", &o), CLAVE_OK);
    assert_int_equal(clave_semaphore_acquire(permits, 1, PATIENCE, &lease), CLAVE_OK);
    assert_int_equal(clave_lease_grant(lease, &of_lease), CLAVE_OK);
    assert_int_equal(clave_latch_new(&latch, s, "/grants/e", NULL), CLAVE_OK);
    assert_int_equal(clave_latch_grant(latch, &of_latch), CLAVE_ENOTHELD);
    assert_int_equal(clave_latch_start(latch), CLAVE_OK);
    assert_int_equal(clave_latch_await(latch, PATIENCE), CLAVE_OK);
    assert_int_equal(clave_latch_grant(latch, &of_latch), CLAVE_OK);
    assert_true(clave_grant_valid_for(of_lease, 1) && clave_grant_valid_for(of_latch, 1));
    clave_client_close(s, PATIENCE);
    assert_over(of_lease, CLAVE_ECLOSED);
    assert_over(of_latch, CLAVE_ECLOSED);
    clave_grant *none;
    assert_int_equal(clave_latch_grant(latch, &none), CLAVE_ECLOSED);
    assert_int_equal(clave_lease_grant(lease, &none), CLAVE_ECLOSED);
    clave_latch_free(latch);
    clave_semaphore_free(permits);
    assert_over(of_lease, CLAVE_ECLOSED);
    clave_grant_free(of_lease);
    clave_grant_free(of_latch);
}

TEST(several_guard_one_write)
{
    clave_client *s = rig_session(rig->connect), *other = rig_session(rig->connect);
    const clave_multilock_part parts[] = {{.path = "/grants/a"}, {.path = "/grants/b"}};
    const clave_op make = {.kind = CLAVE_OP_CREATE, .path = "/grants/made"};
    clave_multilock *both;
    clave_mutex *l;
    clave_grant *g[2], *mixed[2];
    clave_reply *r;
    assert_int_equal(clave_multilock_new(&both, s, parts, 2, NULL), CLAVE_OK);
    assert_int_equal(clave_multilock_acquire(both, PATIENCE, NULL), CLAVE_OK);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(clave_mutex_grant(clave_multilock_at(both, parts[i].path), &g[i]),
                         CLAVE_OK);
    assert_int_equal(clave_grant_multi(g, 2, &make, 1, PATIENCE, &r), CLAVE_OK);
    assert_int_equal(r->nops, 1);
    clave_reply_free(r);
    assert_int_equal(clave_grant_multi(g, 0, &make, 1, PATIENCE, &r), CLAVE_EINVAL);
    assert_null(r);
    assert_int_equal(clave_mutex_new(&l, other, "/grants/c", NULL), CLAVE_OK);
    assert_int_equal(clave_mutex_acquire(l, PATIENCE), CLAVE_OK);
    mixed[0] = g[0];
    assert_int_equal(clave_mutex_grant(l, &mixed[1]), CLAVE_OK);
    assert_int_equal(clave_grant_multi(mixed, 2, &make, 1, PATIENCE, NULL), CLAVE_EINVAL);
    assert_int_equal(clave_delete(s, clave_grant_node(g[1]), -1, PATIENCE), CLAVE_OK);
    assert_int_equal(clave_grant_multi(g, 2, &make, 1, PATIENCE, NULL), CLAVE_ELOST);
    clave_grant_free(g[0]);
    clave_grant_free(g[1]);
    clave_grant_free(mixed[1]);
    clave_mutex_free(l);
    clave_multilock_free(both);
    clave_client_close(s, PATIENCE);
    clave_client_close(other, PATIENCE);
}

/* A thread that hangs after its first sign of life, until it is `woken`. */
struct hanging {
    clave_grant *grant;
    sem_t signed_once, woken;
    clave_err alive, write;
    bool valid;
};

static void sem_await(sem_t *s)
{
    while (sem_wait(s) != 0)
        continue;
}

static void *hang(void *arg)
{
    struct hanging *h = arg;
    h->alive = clave_grant_alive(h->grant);
    sem_post(&h->signed_once);
    sem_await(&h->woken);
    h->valid = clave_grant_valid_for(h->grant, 0);
    h->alive = clave_grant_alive(h->grant);
    h->write = clave_grant_set(h->grant, "/", "", 0, -1, PATIENCE);
    return NULL;
}

/* The next owner holds it while the thread hangs, and the session lives on. */
TEST(a_thread_that_hangs_loses_its_lock)
{
    clave_client *s = rig_session(rig->connect), *other = rig_session(rig->connect);
    clave_mutex *l, *next;
    struct hanging h = {.valid = true};
    pthread_t thread;
    assert_int_equal(sem_init(&h.signed_once, 0, 0), 0);
    assert_int_equal(sem_init(&h.woken, 0, 0), 0);
    assert_int_equal(clave_mutex_new(&l, s, "/grants/hangs", NULL), CLAVE_OK);
    assert_int_equal(clave_mutex_new(&next, other, "/grants/hangs", NULL), CLAVE_OK);
    assert_int_equal(clave_mutex_acquire(l, PATIENCE), CLAVE_OK);
    assert_int_equal(clave_mutex_grant(l, &h.grant), CLAVE_OK);
    assert_int_equal(clave_grant_depend(h.grant, -1), CLAVE_EINVAL);
    assert_int_equal(clave_grant_depend(h.grant, PATIENCE), CLAVE_OK);
    assert_true(clave_grant_deadline(h.grant) <= clave_now() + PATIENCE);
    assert_int_equal(pthread_create(&thread, NULL, hang, &h), 0);
    sem_await(&h.signed_once);
    assert_int_equal(h.alive, CLAVE_OK);
    int64_t promised = clave_now() + 200;
    assert_int_equal(clave_grant_depend(h.grant, 200), CLAVE_OK);
    assert_int_equal(clave_mutex_acquire(next, PATIENCE), CLAVE_OK);
    assert_true(clave_now() > promised); /* and a reserve later */
    assert_int_equal(sem_post(&h.woken), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(h.valid);
    assert_int_equal(h.alive, CLAVE_ELOST);
    assert_int_equal(h.write, CLAVE_ELOST);
    assert_int_equal(clave_client_state(s), CLAVE_STATE_CONNECTED);
    assert_int_equal(clave_mutex_release(l), CLAVE_ESILENT);
    assert_int_equal(clave_mutex_release(next), CLAVE_OK);
    assert_int_equal(sem_destroy(&h.signed_once), 0);
    assert_int_equal(sem_destroy(&h.woken), 0);
    clave_grant_free(h.grant);
    clave_mutex_free(l);
    clave_mutex_free(next);
    clave_client_close(s, PATIENCE);
    clave_client_close(other, PATIENCE);
}

/* What the program does after an answer that was lost: clave/err.h. */
TEST(after_a_lost_answer_it_syncs_and_reads)
{
    clave_test_server *server;
    clave_test_fault lost = {.size = sizeof lost, .action = CLAVE_TEST_LOSE_REPLY, .times = 1};
    clave_mutex *l;
    clave_grant *g;
    clave_reply *r;
    lost.kind = CLAVE_TEST_MULTI;
    assert_int_equal(clave_test_server_new(&server, NULL), CLAVE_OK);
    clave_client *s = rig_session(clave_test_server_connect_string(server));
    assert_int_equal(clave_create(s, "/x", "", 0, NULL, PATIENCE, NULL), CLAVE_OK);
    assert_int_equal(clave_mutex_new(&l, s, "/l", NULL), CLAVE_OK);
    assert_int_equal(clave_mutex_acquire(l, PATIENCE), CLAVE_OK);
    assert_int_equal(clave_mutex_grant(l, &g), CLAVE_OK);
    assert_int_equal(clave_test_server_inject(server, &lost), CLAVE_OK);
    clave_err err = clave_grant_set(g, "/x", "new", 3, -1, PATIENCE);
    assert_int_equal(clave_err_classify(err), CLAVE_CLASS_UNKNOWN);
    assert_int_equal(clave_sync(s, "/x", PATIENCE), CLAVE_OK);
    assert_int_equal(clave_get(s, "/x", PATIENCE, &r), CLAVE_OK);
    assert_int_equal(r->stat.version, 1); /* it was done, once */
    clave_reply_free(r);
    assert_int_equal(clave_grant_set(g, "/x", "newer", 5, 1, PATIENCE), CLAVE_OK);
    clave_grant_free(g);
    clave_mutex_free(l);
    clave_client_close(s, PATIENCE);
    clave_test_server_free(server);
}

TEST_GROUP(rig_start_group, rig_stop_group)
