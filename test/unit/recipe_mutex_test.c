/* The mutex when nothing fails: what it costs, who gets it, and what is told. The tests
 * of Curator's acceptance list bear their names. */
#include "lib/async_grants.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"
#include "server/server_internal.h"

static struct memnet *world(size_t clients)
{
    return memnet_new(&(struct memnet_options){.clients = clients, .container_check_ms = 1000});
}

/* ---- costs ----------------------------------------------------------------------------- */

TEST(acquire_costs_one_flight_and_release_one_delete)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world(1);
    struct mutex_owner a;
    owner_open(&a, p, 0, "/l", NULL);
    assert_int_equal(owner_acquire(&a, OWNER_FOREVER), CLAVE_OK); /* makes the parent */
    owner_release(&a);

    memnet_reset_counts(p);
    /* Both requests reach the server before any reply is back. */
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
    owner_acquire(&a, OWNER_FOREVER);
    assert_int_equal(p->clients[0].requests[OP_CREATE2], 1);
    assert_int_equal(p->clients[0].requests[OP_GET_CHILDREN2], 1);
    assert_false(owner_holds(&a));
    memnet_clear(p);
    memnet_settle(p);
    assert_true(owner_holds(&a));
    assert_int_equal(memnet_requests(p, 0), 2);

    owner_release(&a);
    assert_int_equal(p->clients[0].requests[OP_DELETE], 1);
    assert_int_equal(memnet_requests(p, 0), 3);
    memnet_assert_no_leftovers(p);
    owner_close(&a);
    assert_int_equal(memnet_requests(p, 0), 3);
}

/* P7: the create that fails, then one flight: containers, create, listing. */
TEST(missing_parents_cost_two_flights)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world(1);
    CLOSED_BY(owner_close) struct mutex_owner a;
    owner_open(&a, p, 0, "/a/b/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    assert_true(owner_holds(&a));
    assert_int_equal(p->clients[0].requests[OP_CREATE2], 2);
    assert_int_equal(p->clients[0].requests[OP_CREATE_CONTAINER], 3);
}

TEST(release_is_sent_and_not_awaited)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(1);
    CLOSED_BY(owner_close) struct mutex_owner a;
    owner_open(&a, p, 0, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
    assert_int_equal(owner_release(&a), CLAVE_OK);
    assert_false(owner_holds(&a));
    /* The next acquire does not wait for the answer either (P5 and P1). */
    assert_int_equal(owner_acquire(&a, OWNER_FOREVER), CLAVE_OK);
    assert_int_equal(p->clients[0].requests[OP_DELETE], 1);
    assert_int_equal(memnet_stats(p).ephemerals, 1);
    memnet_clear(p);
    memnet_settle(p);
    assert_true(owner_holds(&a));
}

TEST(release_with_a_callback_runs_it_when_the_node_is_gone)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world(1);
    CLOSED_BY(owner_close) struct mutex_owner a;
    owner_open(&a, p, 0, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&a, OWNER_FOREVER);
    assert_int_equal(owner_release_confirmed(&a), CLAVE_OK);
    assert_int_equal(a.departures, 1); /* an inner one */
    assert_int_equal(memnet_stats(p).ephemerals, 1);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_DELETE, MEMNET_HOLD, 0});
    assert_int_equal(owner_release_confirmed(&a), CLAVE_OK);
    assert_int_equal(a.departures, 1);
    memnet_clear(p);
    memnet_settle(p);
    assert_int_equal(a.departures, 2);
    assert_int_equal(a.left, CLAVE_OK);
}

TEST(hand_over_costs_no_round_trip)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(2);
    CLOSED_BY(owner_close) struct mutex_owner a, b;
    owner_open(&a, p, 0, "/l", NULL);
    owner_open(&b, p, 1, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&b, OWNER_FOREVER);
    assert_int_equal(b.queued, 1);
    assert_int_equal(b.next, 1);
    assert_int_equal(b.ahead, 1);
    assert_string_equal(b.predecessor, owner_grant(&a).node);
    memnet_reset_counts(p);
    owner_release(&a);
    assert_true(owner_holds(&b));
    assert_int_equal(b.answers, 1);
    assert_int_equal(b.held, 1);
    assert_int_equal(memnet_requests(p, 1), 0);
    assert_int_equal(p->clients[1].events, 1);
    assert_true(owner_grant(&b).token > 0);
}

/* P4: with waiters behind waiters every hand-over is free of trips, since the one behind
 * the next has listed while that one held. */
TEST(a_long_queue_hands_over_without_trips)
{
    enum { N = 6 };
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(N);
    struct mutex_owner s[N];
    for (size_t i = 0; i < N; i++) {
        owner_open(&s[i], p, i, "/l", NULL);
        owner_acquire(&s[i], OWNER_FOREVER);
    }
    for (size_t i = 0; i + 1 < N; i++) {
        int64_t token = owner_grant(&s[i]).token;
        memnet_reset_counts(p);
        owner_release(&s[i]);
        assert_true(owner_holds(&s[i + 1]));
        assert_true(owner_grant(&s[i + 1]).token > token);
        assert_int_equal(memnet_requests(p, i + 1), 0);
        /* No herd: only the one after the next one refreshes what it knows. */
        for (size_t j = i + 3; j < N; j++)
            assert_int_equal(memnet_requests(p, j), 0);
        if (i + 2 < N) {
            assert_int_equal(p->clients[i + 2].requests[OP_GET_CHILDREN2], 1);
            assert_int_equal(memnet_requests(p, i + 2), 1);
            assert_int_equal(s[i + 2].next, 1);
        }
    }
    for (size_t i = 0; i < N; i++)
        owner_close(&s[i]);
}

/* A server on a restored directory gives nobody a place until the sessions from before have
 * expired.
 */
TEST(nobody_hammers_a_server_that_gives_no_place)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(2);
    CLOSED_BY(owner_close) struct mutex_owner a, b;
    struct session *quiet;
    clave_err err =
        clave__sessions_add(&p->server->sessions, SESSION_OF_RESTORE, INT32_MAX, &quiet);
    assert_int_equal(err, CLAVE_OK);
    owner_open(&a, p, 0, "/l", NULL);
    owner_open(&b, p, 1, "/l", NULL);
    owner_acquire(&a, OWNER_TRY);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.err, CLAVE_EUNREACHABLE);
    owner_acquire(&b, OWNER_FOREVER);
    memnet_reset_counts(p);
    memnet_advance(p, 1000);
    assert_in_range(p->clients[1].requests[OP_CREATE2], 8, 10);
    owner_acquire(&a, 500);
    memnet_advance(p, 500);
    assert_int_equal(a.answers, 2);
    assert_int_equal(a.err, CLAVE_EUNREACHABLE);
    assert_int_equal(b.answers, 0);
    clave__sessions_remove(&p->server->sessions, quiet);
    memnet_advance(p, 200);
    assert_true(owner_holds(&b));
    owner_acquire(&a, OWNER_TRY);
    assert_int_equal(a.answers, 3);
    assert_int_equal(a.err, CLAVE_EBUSY);
}

TEST(a_try_that_fails_costs_one_round_trip)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world(2);
    CLOSED_BY(owner_close) struct mutex_owner a, b;
    owner_open(&a, p, 0, "/l", NULL);
    owner_open(&b, p, 1, "/l", NULL);
    owner_acquire(&a, OWNER_TRY);
    assert_true(owner_holds(&a));
    owner_acquire(&b, OWNER_TRY);
    owner_release(&a); /* the path is known to both from here on */
    owner_acquire(&a, OWNER_TRY);
    memnet_reset_counts(p);
    b.answers = 0;
    memnet_rule(p, (struct memnet_rule){1, MEMNET_REPLY, OP_DELETE, MEMNET_HOLD, 0});
    owner_acquire(&b, OWNER_TRY);
    assert_int_equal(b.answers, 1);
    assert_int_equal(b.err, CLAVE_EBUSY);
    memnet_clear(p);
    memnet_settle(p);
    assert_int_equal(p->clients[1].requests[OP_CREATE2], 1);
    assert_int_equal(p->clients[1].requests[OP_GET_CHILDREN2], 1);
    assert_int_equal(p->clients[1].requests[OP_DELETE], 1);
    assert_int_equal(memnet_requests(p, 1), 3);
    assert_int_equal(memnet_stats(p).ephemerals, 1);
    assert_int_equal(memnet_stats(p).watches, 0);
}

/* ---- Curator's list -------------------------------------------------------------------- */

/* testLocker: acquired in scope, a timeout outside. */
TEST(testLocker)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(2);
    struct mutex_owner a, b;
    owner_open(&a, p, 0, "/l", NULL);
    owner_open(&b, p, 1, "/l", NULL);
    owner_acquire(&a, 1000);
    owner_acquire(&b, 1000);
    memnet_advance(p, 999);
    assert_int_equal(b.answers, 0);
    memnet_advance(p, 1);
    assert_int_equal(b.answers, 1);
    assert_int_equal(b.err, CLAVE_EBUSY);
    owner_close(&a);
    owner_acquire(&b, 1000);
    assert_true(owner_holds(&b));
    owner_close(&b);
}

TEST(testContainerCleanup)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world(1);
    CLOSED_BY(owner_close) struct mutex_owner a;
    owner_open(&a, p, 0, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    owner_release(&a);
    memnet_advance(p, 5000);
    assert_int_equal(memnet_create(p, 0, "/l/x"), CLAVE_ENONODE);
    /* And it comes back. */
    owner_acquire(&a, OWNER_FOREVER);
    assert_true(owner_holds(&a));
}

TEST(testWithNamespace)
{
    CLOSED_BY(memnet_freed)
    struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2, .chroot = "/name/space"});
    CLOSED_BY(owner_close) struct mutex_owner a, b;
    owner_open(&a, p, 0, "/l", NULL);
    owner_open(&b, p, 1, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    assert_true(owner_holds(&a));
    assert_memory_equal(owner_grant(&a).node, "/l/_c_", 6);
    owner_acquire(&b, OWNER_FOREVER);
    owner_release(&a);
    assert_true(owner_holds(&b));
}

/* testReentrantSingleLock, testReentrant2Threads: owners of one mutex exclude each other
 * as processes do. */
TEST(testReentrant2Threads)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(1);
    struct mutex_owner a, b;
    owner_open(&a, p, 0, "/l", NULL);
    owner_share(&b, &a, 7);
    for (int i = 0; i < 3; i++)
        owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&b, OWNER_FOREVER);
    for (int i = 0; i < 3; i++) {
        assert_true(owner_holds(&a));
        assert_false(owner_holds(&b));
        assert_int_equal(owner_release(&a), CLAVE_OK);
    }
    assert_true(owner_holds(&b));
    assert_int_equal(owner_release(&b), CLAVE_OK);
    owner_close(&a);
}

TEST(testReentrant)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world(1);
    CLOSED_BY(owner_close) struct mutex_owner a;
    owner_open(&a, p, 0, "/l", NULL);
    assert_int_equal(owner_release(&a), CLAVE_ENOTHELD);
    owner_acquire(&a, OWNER_FOREVER);
    int64_t token = owner_grant(&a).token;
    memnet_reset_counts(p);
    assert_int_equal(owner_begin_acquire(&a, OWNER_TRY), CLAVE_OK);
    assert_int_equal(a.answers, 1); /* never inside the call */
    memnet_settle(p);
    assert_int_equal(a.answers, 2);
    assert_int_equal(a.err, CLAVE_OK);
    assert_int_equal(owner_grant(&a).count, 2);
    assert_int_equal(owner_grant(&a).token, token);
    assert_int_equal(memnet_requests(p, 0), 0);
    assert_int_equal(owner_release(&a), CLAVE_OK);
    assert_true(owner_holds(&a));
    assert_int_equal(owner_release(&a), CLAVE_OK);
    assert_false(owner_holds(&a));
    assert_int_equal(owner_release(&a), CLAVE_ENOTHELD);
}

TEST(test2Clients)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(2);
    struct mutex_owner s[2];
    owner_open(&s[0], p, 0, "/l", NULL);
    owner_open(&s[1], p, 1, "/l", NULL);
    owner_acquire(&s[0], OWNER_FOREVER);
    for (int i = 0; i < 20; i++) {
        struct mutex_owner *in = &s[i & 1], *out = &s[!(i & 1)];
        owner_acquire(out, OWNER_FOREVER);
        assert_true(owner_holds(in));
        assert_false(owner_holds(out));
        owner_release(in);
        assert_true(owner_holds(out));
    }
    owner_close(&s[0]);
    owner_close(&s[1]);
}

static void on_acl(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    assert_int_equal(res->err, CLAVE_OK);
    *(int32_t *)arg = res->nacls == 1 ? res->acls[0].perms : -1;
}

/* testLockACLs, for the node; testWithSchema: it is ephemeral and sequential. */
TEST(testLockACLs)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world(1);
    clave_acl acl = {CLAVE_PERM_READ | CLAVE_PERM_DELETE, "world", "anyone"};
    clave_mutex_options o = {.size = sizeof o, .acls = &acl, .nacls = 1};
    CLOSED_BY(owner_close) struct mutex_owner a;
    owner_open(&a, p, 0, "/l", &o);
    acl.perms = 0; /* it was copied */
    owner_acquire(&a, OWNER_FOREVER);
    int32_t perms = 0;
    const char *node = owner_grant(&a).node;
    assert_int_equal(clave_async_get_acl(p->clients[0].c, node, on_acl, &perms), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(perms, CLAVE_PERM_READ | CLAVE_PERM_DELETE);
    assert_string_equal(node + strlen(node) - 10, "0000000000");
    assert_int_equal(strlen(node), strlen("/l/") + 40 + strlen("lock-") + 10);
    assert_int_equal(memnet_create(p, 0, "/l/x"), CLAVE_OK);
}

/* ---- waiting --------------------------------------------------------------------------- */

TEST(cancel_answers_once_and_leaves_nothing)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world(2);
    CLOSED_BY(owner_close) struct mutex_owner a, b;
    owner_open(&a, p, 0, "/l", NULL);
    owner_open(&b, p, 1, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&b, OWNER_FOREVER);
    assert_int_equal(owner_begin_acquire(&b, OWNER_FOREVER), CLAVE_EINVAL);
    assert_int_equal(clave_async_mutex_cancel(b.m, 0), CLAVE_OK);
    assert_int_equal(b.answers, 0); /* never inside the call */
    memnet_settle(p);
    assert_int_equal(b.answers, 1);
    assert_int_equal(b.err, CLAVE_ECANCELED);
    assert_int_equal(clave_async_mutex_cancel(b.m, 0), CLAVE_ENOTHELD);
    assert_int_equal(memnet_list(p, 0, "/l", NULL, 0), 1);
    assert_int_equal(memnet_stats(p).watches, 0);
}

TEST(free_cancels_what_waits_and_releases_what_is_held)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(1);
    struct mutex_owner a, b, c;
    owner_open(&a, p, 0, "/l", NULL);
    owner_share(&b, &a, 1);
    owner_share(&c, &a, 2);
    owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&b, OWNER_FOREVER);
    owner_begin_acquire(&c, OWNER_FOREVER); /* its create is under way */
    clave_async_mutex_free(a.m);
    assert_int_equal(b.answers + c.answers, 0);
    memnet_settle(p);
    assert_int_equal(b.answers, 1);
    assert_int_equal(b.err, CLAVE_ECANCELED);
    assert_int_equal(c.answers, 1);
    assert_int_equal(c.err, CLAVE_ECANCELED);
    assert_int_equal(a.lost, 0);
}

TEST(a_cancelled_create_is_cleaned_up)
{
    struct memnet *p = world(1);
    struct mutex_owner a;
    owner_open(&a, p, 0, "/l", NULL);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_CREATE2, MEMNET_HOLD, 1});
    owner_acquire(&a, 500);
    assert_int_equal(memnet_stats(p).ephemerals, 1);
    memnet_advance(p, 500);
    assert_int_equal(a.err, CLAVE_EUNREACHABLE);
    memnet_clear(p);
    memnet_settle(p);
    assert_int_equal(a.answers, 1);
    memnet_assert_no_leftovers(p);
    owner_close(&a);
    memnet_free(p);
}

/* The grant's event and the cancel meet: one callback, and no node stays. */
TEST(a_grant_that_races_a_cancel_answers_once)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world(2);
    CLOSED_BY(owner_close) struct mutex_owner a, b;
    owner_open(&a, p, 0, "/l", NULL);
    owner_open(&b, p, 1, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&b, OWNER_FOREVER);
    memnet_rule(p, (struct memnet_rule){1, MEMNET_REPLY, OP_NOTIFICATION, MEMNET_HOLD, 0});
    owner_release(&a);
    assert_int_equal(clave_async_mutex_cancel(b.m, 0), CLAVE_OK);
    memnet_clear(p);
    memnet_settle(p);
    assert_int_equal(b.answers, 1);
    assert_int_equal(b.err, CLAVE_ECANCELED);
    assert_int_equal(b.held, 0);
    memnet_assert_no_leftovers(p);
    /* Granted first: the cancel comes too late. */
    owner_acquire(&b, OWNER_FOREVER);
    assert_int_equal(clave_async_mutex_cancel(b.m, 0), CLAVE_ENOTHELD);
    assert_true(owner_holds(&b));
}

TEST(a_waiter_that_gives_up_does_not_let_its_follower_in)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(3);
    struct mutex_owner s[3];
    for (size_t i = 0; i < 3; i++) {
        owner_open(&s[i], p, i, "/l", NULL);
        owner_acquire(&s[i], OWNER_FOREVER);
    }
    assert_int_equal(s[2].ahead, 2);
    assert_int_equal(s[2].next, 0);
    clave_async_mutex_cancel(s[1].m, 0);
    memnet_settle(p);
    assert_false(owner_holds(&s[2]));
    assert_int_equal(s[2].ahead, 1);
    assert_int_equal(s[2].next, 1);
    owner_release(&s[0]);
    assert_true(owner_holds(&s[2]));
    for (size_t i = 0; i < 3; i++)
        owner_close(&s[i]);
}

TEST(ten_thousand_timeouts_leave_nothing)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(2);
    CLOSED_BY(owner_close) struct mutex_owner a, b;
    owner_open(&a, p, 0, "/l", NULL);
    owner_open(&b, p, 1, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    for (int i = 0; i < 5000; i++) {
        owner_acquire(&b, 1);
        memnet_advance(p, 1);
        owner_acquire(&b, OWNER_TRY);
    }
    assert_int_equal(b.answers, 10000);
    assert_int_equal(memnet_list(p, 0, "/l", NULL, 0), 1);
    assert_true(memnet_stats(p).watches <= 1); /* the holder's own */
}

/* ---- holding --------------------------------------------------------------------------- */

TEST(a_holder_whose_node_is_deleted_is_told)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(2);
    CLOSED_BY(owner_close) struct mutex_owner a, b;
    char node[160];
    owner_open(&a, p, 0, "/l", NULL);
    owner_open(&b, p, 1, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    assert_int_equal(memnet_stats(p).watches, 0);
    memnet_advance(p, 8000); /* a heartbeat interval and more: settled, and watched */
    assert_int_equal(memnet_stats(p).watches, 1);
    assert_true(owner_holds(&a));
    snprintf(node, sizeof node, "%s", owner_grant(&a).node);
    assert_int_equal(memnet_delete(p, 1, node), CLAVE_OK);
    assert_int_equal(a.lost, 1);
    assert_int_equal(a.why, CLAVE_ENONODE);
    assert_false(owner_holds(&a));
    assert_int_equal(owner_begin_acquire(&a, OWNER_FOREVER), CLAVE_ELOST);
    assert_int_equal(owner_release(&a), CLAVE_ELOST);
    assert_int_equal(owner_release(&a), CLAVE_ENOTHELD);
    owner_acquire(&a, OWNER_FOREVER);
    assert_true(owner_holds(&a));
}

/* A hold that never settled is checked by its heartbeats. */
TEST(a_short_hold_notices_a_deleted_node_by_its_heartbeat)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(2);
    CLOSED_BY(owner_close) struct mutex_owner a;
    char node[160];
    owner_open(&a, p, 0, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    snprintf(node, sizeof node, "%s", owner_grant(&a).node);
    assert_int_equal(memnet_delete(p, 1, node), CLAVE_OK);
    assert_true(owner_holds(&a));
    memnet_advance(p, 10000);
    assert_int_equal(a.lost, 1);
    assert_int_equal(a.why, CLAVE_ENONODE);
}

TEST(max_hold_ends_the_hold_at_the_server_too)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(2);
    clave_mutex_options o = {.size = sizeof o, .max_hold_ms = 3000};
    CLOSED_BY(owner_close) struct mutex_owner a, b;
    owner_open(&a, p, 0, "/l", &o);
    owner_open(&b, p, 1, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    assert_int_equal(owner_grant(&a).deadline, p->now + 3000);
    assert_true(mutex_valid_for(a.m, 0, p->now, 3000));
    assert_false(mutex_valid_for(a.m, 0, p->now, 3001));
    owner_acquire(&b, OWNER_FOREVER);
    owner_acquire(&a, OWNER_FOREVER);
    memnet_advance(p, 2999);
    assert_true(owner_holds(&a));
    memnet_advance(p, 1);
    assert_false(owner_holds(&a));
    assert_int_equal(a.lost, 1);
    assert_int_equal(a.why, CLAVE_EMAXHOLD);
    assert_true(owner_holds(&b));
    assert_int_equal(owner_release(&a), CLAVE_EMAXHOLD);
    assert_int_equal(owner_release(&a), CLAVE_EMAXHOLD);
    assert_int_equal(owner_release(&a), CLAVE_ENOTHELD);
}

TEST(a_grant_is_valid_up_to_the_hold_deadline)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world(1);
    CLOSED_BY(owner_close) struct mutex_owner a;
    owner_open(&a, p, 0, "/l", NULL);
    assert_false(mutex_valid_for(a.m, 0, p->now, 0));
    owner_acquire(&a, OWNER_FOREVER);
    struct grant_facts g = owner_grant(&a);
    assert_int_equal(g.deadline, clave_async_client_hold_deadline(p->clients[0].c));
    assert_int_equal(g.session_id, clave_async_client_session_id(p->clients[0].c));
    assert_true(mutex_valid_for(a.m, 0, g.deadline - 10, 10));
    assert_false(mutex_valid_for(a.m, 0, g.deadline - 10, 11));
    assert_false(mutex_valid_for(a.m, 0, g.deadline + 1, INT64_MIN));
    /* It is kept fresh while it is held, for as long as one likes. */
    memnet_advance(p, 120000);
    assert_true(owner_holds(&a));
    assert_true(mutex_valid_for(a.m, 0, p->now, 3000));
}

TEST(options_are_checked)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world(1);
    clave_async_client *c = p->clients[0].c;
    clave_async_mutex *m;
    static const clave_mutex_options bad[] = {
        {.size = 1},
        {.size = sizeof(clave_mutex_options), .max_hold_ms = -1},
        {.size = sizeof(clave_mutex_options), .min_valid_ms = -1},
        {.size = sizeof(clave_mutex_options), .len = 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(clave_async_mutex_new(&m, c, "/l", &bad[i]), CLAVE_EINVAL);
        assert_null(m);
    }
    assert_int_equal(clave_async_mutex_new(&m, c, "l", NULL), CLAVE_EPATH);
    assert_int_equal(clave_async_mutex_new(&m, c, "/a//b", NULL), CLAVE_EPATH);
    assert_int_equal(clave_async_mutex_new(&m, c, "/l", NULL), CLAVE_OK);
    assert_int_equal(clave_async_mutex_acquire(m, 0, CLAVE_TRY, NULL, NULL), CLAVE_EINVAL);
    clave_async_mutex_free(m);
    clave_async_mutex_free(NULL);
}

static void on_roll(clave_async_client *c, clave_err err, const clave_participant *list, size_t n,
                    void *arg)
{
    char *roll = arg;
    (void)c;
    assert_int_equal(err, CLAVE_OK);
    for (size_t i = 0; i < n; i++)
        roll[i] = list[i].left_over ? '!' : '.';
}

/* A copy of a place, which is persistent: it is told to the one behind it, at no further request,
 * and stays there until somebody deletes it. One further back hears of it when it is next. */
TEST(a_place_that_no_session_owns_is_told_and_left_alone)
{
    static const char copy[] = "/l/_c_01234567-89ab-4def-8123-456789abcdef-lock-0000000000";
    CLOSED_BY(memnet_freed) struct memnet *p = world(3);
    struct mutex_owner a, b;
    char roll[4] = "";
    memnet_settle(p);
    assert_int_equal(memnet_create(p, 2, "/l"), CLAVE_OK);
    assert_int_equal(memnet_create(p, 2, copy), CLAVE_OK);
    assert_int_equal(memnet_create(p, 2, "/l/lock-a"), CLAVE_OK); /* of no queue; counts up */
    owner_open(&a, p, 0, "/l", NULL);
    owner_open(&b, p, 1, "/l", NULL);
    memnet_reset_counts(p);
    owner_acquire(&a, OWNER_FOREVER);
    assert_int_equal(a.queued, 2); /* its place; then whose the one before it is */
    assert_string_equal(a.left_over, copy);
    assert_int_equal(p->clients[0].requests[OP_GET_CHILDREN2], 1);
    assert_int_equal(p->clients[0].requests[OP_EXISTS], 0);
    owner_acquire(&b, OWNER_FOREVER);
    assert_string_equal(b.left_over, "");
    clave_async_participants(p->clients[2].c, "/l", on_roll, roll);
    memnet_settle(p);
    assert_string_equal(roll, "!..");
    owner_close(&a);
    memnet_settle(p);
    assert_string_equal(b.left_over, copy);
    assert_false(owner_holds(&b));
    assert_int_equal(clave_async_delete(p->clients[2].c, copy, -1, NULL, NULL), CLAVE_OK);
    memnet_settle(p);
    assert_true(owner_holds(&b));
    owner_close(&b);
}

/* Held, asked for once more, and freed before the callback of that has run: it is not held. */
TEST(freeing_a_lock_held_again_cancels_the_second_hold)
{
    const struct memnet_options o = {.clients = 1};
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&o);
    struct mutex_owner a;
    memnet_settle(p);
    owner_open(&a, p, 0, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.err, CLAVE_OK);
    assert_int_equal(owner_begin_acquire(&a, OWNER_FOREVER), CLAVE_OK);
    owner_close(&a);
    assert_int_equal(a.answers, 2);
    assert_int_equal(a.err, CLAVE_ECANCELED);
}
