/* The mutex when connections, sessions, servers and nodes go: never two holders, never a
 * left-over, every callback once. The tests of Curator's acceptance list bear their names. */
#include "lib/async_grants.h"
#include "lib/each_fault.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

enum { TIMEOUT = 6000 };

/* ---- Curator's list -------------------------------------------------------------------- */

/* Server stopped while one holds and one waits; after the restart both finish. */
TEST_CLEAN_NET(testWaitingProcessKilledServer, 2, TIMEOUT)
{
    CLOSED_BY(owner_close) struct mutex_owner a, b;
    owner_open(&a, p, 0, "/l", NULL);
    owner_open(&b, p, 1, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&b, OWNER_FOREVER);
    memnet_stop_server(p);
    memnet_advance(p, 1000);
    assert_true(owner_holds(&a)); /* the session still has its time */
    memnet_start_server(p);
    memnet_advance(p, 3000);
    assert_true(owner_holds(&a));
    assert_int_equal(a.lost, 0);
    assert_int_equal(owner_release(&a), CLAVE_OK);
    assert_true(owner_holds(&b));
    assert_int_equal(b.answers, 1);
}

/* Session killed while A holds and B waits on the same client; B acquires afterwards. */
TEST_CLEAN_NET(testKilledSession, 1, TIMEOUT)
{
    CLOSED_BY(owner_close) struct mutex_owner a, b;
    owner_open(&a, p, 0, "/l", NULL);
    owner_open(&b, p, 0, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&b, OWNER_FOREVER);
    int64_t session = owner_grant(&a).session_id;
    memnet_kill_session(p, 0);
    memnet_advance(p, 5000);
    assert_int_equal(a.lost, 1);
    assert_int_equal(a.why, CLAVE_EEXPIRED);
    assert_false(owner_holds(&a));
    assert_true(owner_holds(&b));
    assert_true(owner_grant(&b).session_id != session);
    assert_int_equal(b.answers, 1);
    assert_int_equal(b.lost, 0);
    assert_int_equal(owner_release(&a), CLAVE_ELOST);
}

/* The listing finds no parent (here: an operator deletes node and parent under us): no
 * node is left, and the attempt goes on. */
TEST_CLEAN_NET(testNodeDeletedCleanlyWithFaults, 2, TIMEOUT)
{
    CLOSED_BY(owner_close) struct mutex_owner a, b;
    char names[2][96], path[128];
    owner_open(&a, p, 0, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    owner_release(&a);
    /* The create passes; the listing after it is held. */
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REQUEST, OP_GET_CHILDREN2, MEMNET_HOLD, 0});
    owner_acquire(&a, OWNER_FOREVER);
    assert_int_equal(memnet_list(p, 1, "/l", names, 2), 1);
    snprintf(path, sizeof path, "/l/%s", names[0]);
    assert_int_equal(memnet_delete(p, 1, path), CLAVE_OK);
    assert_int_equal(memnet_delete(p, 1, "/l"), CLAVE_OK);
    memnet_clear(p);
    memnet_settle(p);
    assert_true(owner_holds(&a));
    assert_int_equal(a.answers, 2);
    assert_int_equal(memnet_list(p, 1, "/l", NULL, 0), 1);

    /* The same with a waiter. */
    owner_open(&b, p, 1, "/l", NULL);
    memnet_rule(p, (struct memnet_rule){1, MEMNET_REQUEST, OP_GET_DATA, MEMNET_HOLD, 0});
    owner_acquire(&b, OWNER_FOREVER);
    assert_int_equal(memnet_list(p, 0, "/l", names, 2), 2);
    const char *mine = strstr(owner_grant(&a).node, names[0]) ? names[1] : names[0];
    snprintf(path, sizeof path, "/l/%s", mine);
    assert_int_equal(memnet_delete(p, 0, path), CLAVE_OK);
    memnet_clear(p);
    memnet_advance(p, 100);
    assert_int_equal(b.answers, 0);
    assert_int_equal(memnet_list(p, 0, "/l", NULL, 0), 2);
    owner_release(&a);
    assert_true(owner_holds(&b));
}

/* CURATOR-41: the first error is the one that is told, also when the clean-up meets
 * another. */
TEST_CLEAN_NET(testAttemptLockFailedException, 2, TIMEOUT)
{
    /* Nobody may read it: the contenders after it cannot watch it. */
    clave_acl acl = {CLAVE_PERM_DELETE, "world", "anyone"};
    clave_mutex_options o = {.size = sizeof o, .acls = &acl, .nacls = 1};
    CLOSED_BY(owner_close) struct mutex_owner a, b;
    owner_open(&a, p, 0, "/l", &o);
    owner_open(&b, p, 1, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    memnet_rule(p, (struct memnet_rule){1, MEMNET_REPLY, OP_DELETE, MEMNET_LOSE, 0});
    owner_acquire(&b, OWNER_FOREVER);
    assert_int_equal(b.answers, 1);
    assert_int_equal(b.err, CLAVE_ENOAUTH);
    memnet_advance(p, 3000);
    assert_int_equal(b.answers, 1);
    assert_int_equal(memnet_stats(p).ephemerals, 1);
}

/* ---- sessions -------------------------------------------------------------------------- */

/* CURATOR-604: the reply to the create is lost, the client gives the session up, and the
 * search of the new session finds the old one's node, which the server has not reaped
 * yet. Curator takes it for its own and holds a lock that is about to vanish. */
TEST_CLEAN_NET(a_node_of_the_old_session_is_never_adopted, 2, TIMEOUT)
{
    CLOSED_BY(owner_close) struct mutex_owner a;
    char names[4][96];
    owner_open(&a, p, 0, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    owner_release(&a);
    a.answers = 0;
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_CREATE2, MEMNET_LOSE, 0});
    p->clients[0].refused = true; /* it cannot come back before its session is over */
    owner_begin_acquire(&a, OWNER_FOREVER);
    memnet_settle(p);
    int64_t old = clave_async_client_session_id(p->clients[0].c);
    while (!memnet_saw(p, 0, CLAVE_STATE_LOST))
        memnet_advance(p, 10);
    /* The client swaps its session while the old one's node stands. */
    assert_int_equal(memnet_list(p, 1, "/l", names, 4), 1);
    p->clients[0].refused = false;
    memnet_advance(p, 3000);
    assert_true(clave_async_client_session_id(p->clients[0].c) != old);
    assert_true(owner_holds(&a));
    assert_int_equal(a.answers, 1);
    assert_int_equal(owner_grant(&a).session_id, clave_async_client_session_id(p->clients[0].c));
    assert_int_equal(memnet_list(p, 1, "/l", names, 4), 1);
    assert_non_null(strstr(owner_grant(&a).node, names[0]));
}

/* The holder stops first: LOST comes by its own clock, before the server expires it and
 * the next one is let in. */
TEST_CLEAN_NET(a_holder_that_is_cut_off_loses_before_another_holds, 2, TIMEOUT)
{
    CLOSED_BY(owner_close) struct mutex_owner a, b;
    owner_open(&a, p, 0, "/l", NULL);
    owner_open(&b, p, 1, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&b, OWNER_FOREVER);
    memnet_advance(p, 10000);
    memnet_refuse(p, 0, true);
    int64_t deadline = owner_grant(&a).deadline;
    assert_true(deadline > p->now);
    while (!owner_holds(&b)) {
        memnet_advance(p, 50);
        if (p->now < deadline)
            assert_true(owner_holds(&a));
        assert_false(owner_holds(&a) && owner_holds(&b));
        assert_true(p->now < deadline + 2 * TIMEOUT);
    }
    assert_int_equal(a.lost, 1);
    assert_true(p->now > deadline);
    memnet_refuse(p, 0, false);
    memnet_advance(p, 5000);
    assert_int_equal(a.lost, 1);
    assert_false(owner_holds(&a));
}

/* SIGSTOP beyond the session: valid_for is false from memory at once, a guarded write
 * fails. */
TEST_CLEAN_NET(a_holder_that_was_stopped_does_no_harm, 2, TIMEOUT)
{
    CLOSED_BY(owner_close) struct mutex_owner a, b;
    owner_open(&a, p, 0, "/l", NULL);
    owner_open(&b, p, 1, "/l", NULL);
    assert_int_equal(memnet_create(p, 1, "/data"), CLAVE_OK);
    owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&b, OWNER_FOREVER);
    memnet_freeze(p, 0, true);
    memnet_advance(p, 3 * TIMEOUT);
    assert_true(owner_holds(&b));
    assert_false(mutex_valid_for(a.m, 0, p->now, 0));
    /* It wakes up in the middle of its work: the write is asked for before any tick. */
    assert_int_equal(owner_write(&a, "/data", "x"), CLAVE_OK);
    memnet_freeze(p, 0, false);
    memnet_advance(p, 5000);
    assert_int_equal(a.lost, 1);
    assert_int_equal(a.writes, 1);
    assert_int_equal(a.written, CLAVE_ELOST);
    assert_int_equal(owner_write(&a, "/data", "x"), CLAVE_ELOST);
    assert_true(owner_holds(&b));
}

TEST_CLEAN_NET(a_waiter_whose_session_ends_goes_to_the_end_of_the_queue, 3, TIMEOUT)
{
    CLOSED_BY(owner_close) struct mutex_owner a, b, c;
    owner_open(&a, p, 0, "/l", NULL);
    owner_open(&b, p, 1, "/l", NULL);
    owner_open(&c, p, 2, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&b, 60000);
    owner_acquire(&c, OWNER_FOREVER);
    memnet_kill_session(p, 1);
    memnet_advance(p, 5000);
    assert_true(memnet_saw(p, 1, CLAVE_STATE_LOST));
    assert_int_equal(b.answers, 0);
    assert_int_equal(b.ahead, 2);
    assert_int_equal(c.next, 1);
    owner_release(&a);
    assert_true(owner_holds(&c));
    assert_false(owner_holds(&b));
    /* The deadline is the old one. */
    memnet_advance(p, 60000);
    assert_int_equal(b.answers, 1);
    assert_int_equal(b.err, CLAVE_EBUSY);
}

TEST_CLEAN_NET(a_waiter_keeps_its_place_over_a_reconnect, 3, TIMEOUT)
{
    struct mutex_owner s[3];
    for (size_t i = 0; i < 3; i++) {
        owner_open(&s[i], p, i, "/l", NULL);
        owner_acquire(&s[i], OWNER_FOREVER);
    }
    memnet_reset_counts(p);
    memnet_cut(p, 1);
    memnet_cut(p, 2);
    memnet_advance(p, 3000);
    for (size_t i = 1; i < 3; i++) {
        /* Verified in one flight, and nothing else (but what kind of server it is). */
        assert_int_equal(p->clients[i].requests[OP_CREATE2], 0);
        assert_int_equal(p->clients[i].requests[OP_GET_CHILDREN2], 1);
        assert_int_equal(p->clients[i].requests[OP_GET_DATA], 1 + 1);
    }
    owner_release(&s[0]);
    assert_true(owner_holds(&s[1]));
    assert_false(owner_holds(&s[2]));
    for (size_t i = 0; i < 3; i++)
        owner_close(&s[i]);
}

TEST_CLEAN_NET(closing_the_client_ends_all, 2, TIMEOUT)
{
    CLOSED_BY(owner_close) struct mutex_owner a, b, c;
    owner_open(&a, p, 0, "/l", NULL);
    owner_open(&b, p, 1, "/l", NULL);
    owner_open(&c, p, 1, "/m", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&b, OWNER_FOREVER);
    owner_acquire(&c, OWNER_FOREVER);
    clave_async_client_close(p->clients[1].c, p->now);
    memnet_settle(p);
    assert_int_equal(b.answers, 1);
    assert_int_equal(b.err, CLAVE_ECLOSED);
    assert_int_equal(c.lost, 1);
    assert_int_equal(c.why, CLAVE_ECLOSED);
    assert_int_equal(owner_begin_acquire(&b, OWNER_FOREVER), CLAVE_ECLOSED);
    assert_int_equal(memnet_list(p, 0, "/l", NULL, 0), 1);
}

/* The client is freed with requests, timers and a half-made cancel in the air. */
TEST_NET(freeing_the_client_right_behind_the_mutex_answers_all, 1, TIMEOUT)
{
    struct mutex_owner a, b, c;
    owner_open(&a, p, 0, "/l", NULL);
    owner_share(&b, &a, 1);
    owner_share(&c, &a, 2);
    owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&b, OWNER_FOREVER);
    owner_begin_acquire(&c, 50);
    owner_begin_acquire(&a, OWNER_FOREVER);
    clave_async_mutex_free(a.m);
    clave_async_client_free(p->clients[0].c);
    p->o.clients = 0;
    assert_int_equal(a.answers, 2);
    assert_int_equal(b.answers, 1);
    assert_int_equal(c.answers, 1);
    assert_int_equal(b.err, CLAVE_ECANCELED);
    assert_int_equal(c.err, CLAVE_ECANCELED);
}

/* ---- no connection --------------------------------------------------------------------- */

TEST(a_deadline_that_passes_while_not_connected_ends_at_once)
{
    struct memnet *p = memnet_of(1, TIMEOUT);
    struct mutex_owner a;
    owner_open(&a, p, 0, "/l", NULL);
    memnet_refuse(p, 0, true);
    memnet_settle(p);
    owner_acquire(&a, 700);
    memnet_advance(p, 699);
    assert_int_equal(a.answers, 0);
    memnet_advance(p, 1);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.err, CLAVE_EUNREACHABLE);
    /* A try waits for nothing at all. */
    assert_int_equal(owner_begin_acquire(&a, OWNER_TRY), CLAVE_OK);
    assert_int_equal(a.answers, 1);
    memnet_settle(p);
    assert_int_equal(a.answers, 2);
    assert_int_equal(a.err, CLAVE_EUNREACHABLE);
    memnet_refuse(p, 0, false);
    memnet_advance(p, 5000);
    assert_int_equal(a.answers, 2);
    memnet_assert_no_leftovers(p);
    owner_close(&a);
    memnet_free(p);
}

TEST(a_try_whose_connection_goes_says_so)
{
    struct memnet *p = memnet_of(1, TIMEOUT);
    struct mutex_owner a;
    owner_open(&a, p, 0, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    owner_release(&a);
    a.answers = 0;
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_CREATE2, MEMNET_LOSE, 0});
    owner_acquire(&a, OWNER_TRY);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.err, CLAVE_EUNREACHABLE);
    memnet_advance(p, 5000);
    assert_int_equal(a.answers, 1);
    memnet_assert_no_leftovers(p);
    owner_close(&a);
    memnet_free(p);
}

/* SUSPENDED during release, then an acquire at once: the old node goes, the new one gets
 * the lock. */
TEST_CLEAN_NET(a_release_over_a_lost_connection_is_made_up_for, 2, TIMEOUT)
{
    CLOSED_BY(owner_close) struct mutex_owner a, b;
    owner_open(&a, p, 0, "/l", NULL);
    owner_open(&b, p, 1, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&b, OWNER_FOREVER);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REQUEST, OP_DELETE, MEMNET_LOSE, 0});
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, MEMNET_HANDSHAKE, MEMNET_HOLD, 0});
    assert_int_equal(owner_release_confirmed(&a), CLAVE_OK);
    assert_int_equal(a.departures, 0);
    assert_int_equal(owner_acquire(&a, OWNER_FOREVER), CLAVE_OK);
    memnet_clear(p);
    memnet_advance(p, 3000);
    assert_int_equal(a.departures, 1);
    assert_int_equal(a.left, CLAVE_OK);
    assert_true(owner_holds(&b));
    owner_release(&b);
    assert_true(owner_holds(&a));
}

/* Every kind of message of a contended acquire and release, lost or its reply lost, at A
 * or at B: both hold once, in turn, and nothing is left. */
TEST_EACH_LOSS(any_message_may_be_lost_once, 2, TIMEOUT, 3)
{
    struct mutex_owner a, b;
    owner_open(&a, p, 0, "/x/l", NULL);
    owner_open(&b, p, 1, "/x/l", NULL);
    memnet_rule(p, loss);
    owner_acquire(&a, OWNER_FOREVER);
    memnet_advance(p, 3000);
    owner_acquire(&b, OWNER_FOREVER);
    memnet_advance(p, 3000);
    assert_true(owner_holds(&a));
    assert_false(owner_holds(&b));
    assert_int_equal(owner_release(&a), CLAVE_OK);
    memnet_advance(p, 3000);
    assert_true(owner_holds(&b));
    assert_int_equal(a.answers, 1);
    assert_int_equal(b.answers, 1);
    assert_int_equal(owner_release(&b), CLAVE_OK);
    memnet_advance(p, 3000);
    memnet_assert_no_leftovers(p);
    owner_close(&a);
    owner_close(&b);
}

/* ---- freshness ------------------------------------------------------------------------- */

/* A waiter of an hour is granted only with time on the deadline. */
TEST_NET(a_grant_has_time_left, 2, TIMEOUT)
{
    CLOSED_BY(owner_close) struct mutex_owner a, b;
    clave_mutex_options o = {.size = sizeof o, .min_valid_ms = TIMEOUT / 3};
    owner_open(&a, p, 0, "/l", NULL);
    owner_open(&b, p, 1, "/l", &o);
    owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&b, OWNER_FOREVER);
    memnet_advance(p, 3600 * 1000);
    assert_true(owner_holds(&a));
    owner_release(&a);
    assert_true(owner_holds(&b));
    assert_true(mutex_valid_for(b.m, 0, p->now, TIMEOUT / 3));
}

/* Between close and CLOSED nothing can be deleted any more: the release was done within its
 * own call, callback and all. */
TEST(a_release_while_the_client_closes_is_answered_later)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 1});
    CLOSED_BY(owner_close) struct mutex_owner a;
    owner_open(&a, p, 0, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    assert_true(owner_holds(&a));
    memnet_advance(p, 5000); /* whatever the hold began has ended */
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REQUEST, OP_CLOSE_SESSION, MEMNET_HOLD, 0});
    clave_async_client_close(p->clients[0].c, p->now);
    assert_int_equal(clave_async_mutex_release(a.m, 0, owner_on_released, &a), CLAVE_OK);
    assert_int_equal(a.departures, 0);
    memnet_settle(p);
    assert_int_equal(a.departures, 1);
    assert_int_equal(a.left, CLAVE_ECLOSED);
}

/* Each connection ended before a heartbeat was due, and moved the deadline: the holder of a node
 * that was deleted went on for as long as connections did so. */
TEST_CLEAN_NET(a_holder_with_short_connections_hears_of_its_end, 2, TIMEOUT)
{
    CLOSED_BY(owner_close) struct mutex_owner a;
    char path[128];
    owner_open(&a, p, 0, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    assert_true(owner_holds(&a));
    memnet_cut(p, 0);
    snprintf(path, sizeof path, "%s", owner_grant(&a).node);
    assert_int_equal(memnet_delete(p, 1, path), CLAVE_OK);
    while (!memnet_saw(p, 0, CLAVE_STATE_RECONNECTED))
        memnet_advance(p, 1);
    memnet_advance(p, 10); /* a heartbeat is due after 2500 ms */
    assert_false(owner_holds(&a));
}

struct two_owners {
    clave_async_mutex *m;
    unsigned lost, answers;
    clave_err err;
};

static void on_answer(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct two_owners *both = arg;
    (void)m;
    both->answers += owner == 2;
    both->err = err;
}

static void on_lost(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    struct two_owners *both = arg;
    if (ev->kind != CLAVE_MUTEX_LOST)
        return;
    both->lost++;
    assert_int_equal(clave_async_mutex_cancel(m, 2), CLAVE_OK);
}

/* The client closes: the holder is told, and cancels another owner's acquire there. Its
 * answer was left to a tick that a closed client has no more. */
TEST(what_is_cancelled_by_the_last_events_is_answered)
{
    struct two_owners both = {0};
    clave_mutex_options o = {.size = sizeof o, .event_cb = on_lost, .event_arg = &both};
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 1});
    clave_async_client *c = p->clients[0].c;
    assert_int_equal(clave_async_mutex_new(&both.m, c, "/l", &o), CLAVE_OK);
    for (uint64_t owner = 1; owner <= 2; owner++)
        assert_int_equal(clave_async_mutex_acquire(both.m, owner, CLAVE_NEVER, on_answer, &both),
                         CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(both.err, CLAVE_OK);
    clave_async_client_abandon(c, p->now);
    assert_int_equal(both.lost, 1);
    assert_int_equal(both.answers, 1);
    assert_int_equal(both.err, CLAVE_ECANCELED);
    clave_async_mutex_free(both.m);
}

/* A margin beyond what the server grants left nothing to hold: the first in the queue asked
 * for confirmations for ever, and kept all others out. */
TEST(a_margin_beyond_the_session_timeout_is_cut)
{
    CLOSED_BY(memnet_freed)
    struct memnet *p = memnet_new(
        &(struct memnet_options){.clients = 1, .timeout_ms = 100000, .margin_ms = 50000});
    struct mutex_owner a;
    int32_t timeout = clave_async_client_session_timeout(p->clients[0].c);
    assert_true(timeout < 50000);
    for (int64_t least = 0; least <= 100000; least += 50000) {
        clave_mutex_options o = {.size = sizeof o, .min_valid_ms = least};
        owner_open(&a, p, 0, "/l", &o);
        owner_acquire(&a, 1000);
        assert_true(owner_holds(&a));
        assert_true(owner_grant(&a).deadline <= p->now + timeout / 2);
        owner_close(&a);
    }
}
