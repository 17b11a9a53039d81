/* The mutex when nothing fails: what it costs, who gets it, and what is told. The tests
 * of Curator's acceptance list bear their names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/mutex_owner.h"

static struct pair *world(size_t clients)
{
    return pair_new(&(struct pair_options){.clients = clients, .container_check_ms = 1000});
}

static void assert_no_leftovers(struct pair *p)
{
    struct server_stats stats = pair_stats(p);
    assert_int_equal(stats.watches, 0);
    assert_int_equal(stats.ephemerals, 0);
}

/* ---- costs ----------------------------------------------------------------------------- */

static void acquire_costs_one_flight_and_release_one_delete(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct seat a;
    seat_open(&a, p, 0, "/l", NULL);
    assert_int_equal(seat_acquire(&a, SEAT_EVER), CLAVE_OK); /* makes the parent */
    seat_release(&a);

    pair_reset_counts(p);
    /* Both requests reach the server before any reply is back. */
    pair_rule(p, (struct pair_rule){0, PAIR_REPLY, PAIR_ANY, PAIR_HOLD, 0});
    seat_acquire(&a, SEAT_EVER);
    assert_int_equal(p->end[0].requests[OP_CREATE2], 1);
    assert_int_equal(p->end[0].requests[OP_GET_CHILDREN2], 1);
    assert_false(seat_holds(&a));
    pair_clear(p);
    pair_settle(p);
    assert_true(seat_holds(&a));
    assert_int_equal(pair_requests(p, 0), 2);

    seat_release(&a);
    assert_int_equal(p->end[0].requests[OP_DELETE], 1);
    assert_int_equal(pair_requests(p, 0), 3);
    assert_no_leftovers(p);
    seat_close(&a);
    assert_int_equal(pair_requests(p, 0), 3);
    pair_free(p);
}

/* P7: the create that fails, then one flight: containers, create, listing. */
static void missing_parents_cost_two_flights(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct seat a;
    seat_open(&a, p, 0, "/a/b/l", NULL);
    seat_acquire(&a, SEAT_EVER);
    assert_true(seat_holds(&a));
    assert_int_equal(p->end[0].requests[OP_CREATE2], 2);
    assert_int_equal(p->end[0].requests[OP_CREATE_CONTAINER], 3);
    seat_close(&a);
    pair_free(p);
}

static void release_is_sent_and_not_awaited(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct seat a;
    seat_open(&a, p, 0, "/l", NULL);
    seat_acquire(&a, SEAT_EVER);
    pair_rule(p, (struct pair_rule){0, PAIR_REPLY, PAIR_ANY, PAIR_HOLD, 0});
    assert_int_equal(seat_release(&a), CLAVE_OK);
    assert_false(seat_holds(&a));
    /* The next acquire does not wait for the answer either (P5 and P1). */
    assert_int_equal(seat_acquire(&a, SEAT_EVER), CLAVE_OK);
    assert_int_equal(p->end[0].requests[OP_DELETE], 1);
    assert_int_equal(pair_stats(p).ephemerals, 1);
    pair_clear(p);
    pair_settle(p);
    assert_true(seat_holds(&a));
    seat_close(&a);
    assert_no_leftovers(p);
    pair_free(p);
}

static void release_with_a_callback_runs_it_when_the_node_is_gone(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct seat a;
    seat_open(&a, p, 0, "/l", NULL);
    seat_acquire(&a, SEAT_EVER);
    seat_acquire(&a, SEAT_EVER);
    assert_int_equal(seat_release_sure(&a), CLAVE_OK);
    assert_int_equal(a.departures, 1); /* an inner one */
    assert_int_equal(pair_stats(p).ephemerals, 1);
    pair_rule(p, (struct pair_rule){0, PAIR_REPLY, OP_DELETE, PAIR_HOLD, 0});
    assert_int_equal(seat_release_sure(&a), CLAVE_OK);
    assert_int_equal(a.departures, 1);
    pair_clear(p);
    pair_settle(p);
    assert_int_equal(a.departures, 2);
    assert_int_equal(a.left, CLAVE_OK);
    seat_close(&a);
    pair_free(p);
}

static void hand_over_costs_no_round_trip(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seat a, b;
    seat_open(&a, p, 0, "/l", NULL);
    seat_open(&b, p, 1, "/l", NULL);
    seat_acquire(&a, SEAT_EVER);
    seat_acquire(&b, SEAT_EVER);
    assert_int_equal(b.queued, 1);
    assert_int_equal(b.next, 1);
    assert_int_equal(b.ahead, 1);
    assert_string_equal(b.predecessor, seat_grant(&a).node);
    pair_reset_counts(p);
    seat_release(&a);
    assert_true(seat_holds(&b));
    assert_int_equal(b.answers, 1);
    assert_int_equal(b.held, 1);
    assert_int_equal(pair_requests(p, 1), 0);
    assert_int_equal(p->end[1].events, 1);
    assert_true(seat_grant(&b).token > 0);
    seat_close(&a);
    seat_close(&b);
    assert_no_leftovers(p);
    pair_free(p);
}

/* P4: with waiters behind waiters every hand-over is free of trips, since the one behind
 * the next has listed while that one held. */
static void a_long_queue_hands_over_without_trips(void **state)
{
    (void)state;
    enum { N = 6 };
    struct pair *p = world(N);
    struct seat s[N];
    for (size_t i = 0; i < N; i++) {
        seat_open(&s[i], p, i, "/l", NULL);
        seat_acquire(&s[i], SEAT_EVER);
    }
    for (size_t i = 0; i + 1 < N; i++) {
        int64_t token = seat_grant(&s[i]).token;
        pair_reset_counts(p);
        seat_release(&s[i]);
        assert_true(seat_holds(&s[i + 1]));
        assert_true(seat_grant(&s[i + 1]).token > token);
        assert_int_equal(pair_requests(p, i + 1), 0);
        /* No herd: only the one after the next one refreshes what it knows. */
        for (size_t j = i + 3; j < N; j++)
            assert_int_equal(pair_requests(p, j), 0);
        if (i + 2 < N) {
            assert_int_equal(p->end[i + 2].requests[OP_GET_CHILDREN2], 1);
            assert_int_equal(pair_requests(p, i + 2), 1);
            assert_int_equal(s[i + 2].next, 1);
        }
    }
    for (size_t i = 0; i < N; i++)
        seat_close(&s[i]);
    assert_no_leftovers(p);
    pair_free(p);
}

static void a_try_that_fails_costs_one_round_trip(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seat a, b;
    seat_open(&a, p, 0, "/l", NULL);
    seat_open(&b, p, 1, "/l", NULL);
    seat_acquire(&a, SEAT_TRY);
    assert_true(seat_holds(&a));
    seat_acquire(&b, SEAT_TRY);
    seat_release(&a); /* the path is known to both from here on */
    seat_acquire(&a, SEAT_TRY);
    pair_reset_counts(p);
    b.answers = 0;
    pair_rule(p, (struct pair_rule){1, PAIR_REPLY, OP_DELETE, PAIR_HOLD, 0});
    seat_acquire(&b, SEAT_TRY);
    assert_int_equal(b.answers, 1);
    assert_int_equal(b.err, CLAVE_EBUSY);
    pair_clear(p);
    pair_settle(p);
    assert_int_equal(p->end[1].requests[OP_CREATE2], 1);
    assert_int_equal(p->end[1].requests[OP_GET_CHILDREN2], 1);
    assert_int_equal(p->end[1].requests[OP_DELETE], 1);
    assert_int_equal(pair_requests(p, 1), 3);
    assert_int_equal(pair_stats(p).ephemerals, 1);
    assert_int_equal(pair_stats(p).watches, 0);
    seat_close(&a);
    seat_close(&b);
    pair_free(p);
}

/* ---- Curator's list -------------------------------------------------------------------- */

/* testLocker: acquired in scope, a timeout outside. */
static void testLocker(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seat a, b;
    seat_open(&a, p, 0, "/l", NULL);
    seat_open(&b, p, 1, "/l", NULL);
    seat_acquire(&a, 1000);
    seat_acquire(&b, 1000);
    pair_advance(p, 999);
    assert_int_equal(b.answers, 0);
    pair_advance(p, 1);
    assert_int_equal(b.answers, 1);
    assert_int_equal(b.err, CLAVE_EBUSY);
    seat_close(&a);
    seat_acquire(&b, 1000);
    assert_true(seat_holds(&b));
    seat_close(&b);
    assert_no_leftovers(p);
    pair_free(p);
}

static void testContainerCleanup(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct seat a;
    seat_open(&a, p, 0, "/l", NULL);
    seat_acquire(&a, SEAT_EVER);
    seat_release(&a);
    pair_advance(p, 5000);
    assert_int_equal(seat_make(p, 0, "/l/x"), CLAVE_ENONODE);
    /* And it comes back. */
    seat_acquire(&a, SEAT_EVER);
    assert_true(seat_holds(&a));
    seat_close(&a);
    pair_free(p);
}

static void testWithNamespace(void **state)
{
    (void)state;
    struct pair *p = pair_new(&(struct pair_options){.clients = 2, .chroot = "/name/space"});
    struct seat a, b;
    seat_open(&a, p, 0, "/l", NULL);
    seat_open(&b, p, 1, "/l", NULL);
    seat_acquire(&a, SEAT_EVER);
    assert_true(seat_holds(&a));
    assert_memory_equal(seat_grant(&a).node, "/l/_c_", 6);
    seat_acquire(&b, SEAT_EVER);
    seat_release(&a);
    assert_true(seat_holds(&b));
    seat_close(&a);
    seat_close(&b);
    pair_free(p);
}

/* testReentrantSingleLock, testReentrant2Threads: owners of one mutex exclude each other
 * as processes do. */
static void testReentrant2Threads(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct seat a, b;
    seat_open(&a, p, 0, "/l", NULL);
    seat_share(&b, &a, 7);
    for (int i = 0; i < 3; i++)
        seat_acquire(&a, SEAT_EVER);
    seat_acquire(&b, SEAT_EVER);
    for (int i = 0; i < 3; i++) {
        assert_true(seat_holds(&a));
        assert_false(seat_holds(&b));
        assert_int_equal(seat_release(&a), CLAVE_OK);
    }
    assert_true(seat_holds(&b));
    assert_int_equal(seat_release(&b), CLAVE_OK);
    seat_close(&a);
    assert_no_leftovers(p);
    pair_free(p);
}

static void testReentrant(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct seat a;
    seat_open(&a, p, 0, "/l", NULL);
    assert_int_equal(seat_release(&a), CLAVE_ENOTHELD);
    seat_acquire(&a, SEAT_EVER);
    int64_t token = seat_grant(&a).token;
    pair_reset_counts(p);
    assert_int_equal(seat_ask(&a, SEAT_TRY), CLAVE_OK);
    assert_int_equal(a.answers, 1); /* never inside the call */
    pair_settle(p);
    assert_int_equal(a.answers, 2);
    assert_int_equal(a.err, CLAVE_OK);
    assert_int_equal(seat_grant(&a).count, 2);
    assert_int_equal(seat_grant(&a).token, token);
    assert_int_equal(pair_requests(p, 0), 0);
    assert_int_equal(seat_release(&a), CLAVE_OK);
    assert_true(seat_holds(&a));
    assert_int_equal(seat_release(&a), CLAVE_OK);
    assert_false(seat_holds(&a));
    assert_int_equal(seat_release(&a), CLAVE_ENOTHELD);
    seat_close(&a);
    pair_free(p);
}

static void test2Clients(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seat s[2];
    seat_open(&s[0], p, 0, "/l", NULL);
    seat_open(&s[1], p, 1, "/l", NULL);
    seat_acquire(&s[0], SEAT_EVER);
    for (int i = 0; i < 20; i++) {
        struct seat *in = &s[i & 1], *out = &s[!(i & 1)];
        seat_acquire(out, SEAT_EVER);
        assert_true(seat_holds(in));
        assert_false(seat_holds(out));
        seat_release(in);
        assert_true(seat_holds(out));
    }
    seat_close(&s[0]);
    seat_close(&s[1]);
    assert_no_leftovers(p);
    pair_free(p);
}

static void on_acl(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    assert_int_equal(res->err, CLAVE_OK);
    *(int32_t *)arg = res->nacls == 1 ? res->acls[0].perms : -1;
}

/* testLockACLs, for the node; testWithSchema: it is ephemeral and sequential. */
static void testLockACLs(void **state)
{
    (void)state;
    struct pair *p = world(1);
    clave_acl acl = {CLAVE_PERM_READ | CLAVE_PERM_DELETE, "world", "anyone"};
    clave_mutex_options o = {.size = sizeof o, .acls = &acl, .nacls = 1};
    struct seat a;
    seat_open(&a, p, 0, "/l", &o);
    acl.perms = 0; /* it was copied */
    seat_acquire(&a, SEAT_EVER);
    int32_t perms = 0;
    const char *node = seat_grant(&a).node;
    assert_int_equal(clave_async_get_acl(p->end[0].c, node, on_acl, &perms), CLAVE_OK);
    pair_settle(p);
    assert_int_equal(perms, CLAVE_PERM_READ | CLAVE_PERM_DELETE);
    assert_string_equal(node + strlen(node) - 10, "0000000000");
    assert_int_equal(strlen(node), strlen("/l/") + 40 + strlen("lock-") + 10);
    assert_int_equal(seat_make(p, 0, "/l/x"), CLAVE_OK);
    seat_close(&a);
    pair_free(p);
}

/* ---- waiting --------------------------------------------------------------------------- */

static void cancel_answers_once_and_leaves_nothing(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seat a, b;
    seat_open(&a, p, 0, "/l", NULL);
    seat_open(&b, p, 1, "/l", NULL);
    seat_acquire(&a, SEAT_EVER);
    seat_acquire(&b, SEAT_EVER);
    assert_int_equal(seat_ask(&b, SEAT_EVER), CLAVE_EINVAL);
    assert_int_equal(clave_async_mutex_cancel(b.m, 0), CLAVE_OK);
    assert_int_equal(b.answers, 0); /* never inside the call */
    pair_settle(p);
    assert_int_equal(b.answers, 1);
    assert_int_equal(b.err, CLAVE_ECANCELED);
    assert_int_equal(clave_async_mutex_cancel(b.m, 0), CLAVE_ENOTHELD);
    assert_int_equal(seat_list(p, 0, "/l", NULL, 0), 1);
    assert_int_equal(pair_stats(p).watches, 0);
    seat_close(&a);
    seat_close(&b);
    pair_free(p);
}

static void free_cancels_what_waits_and_releases_what_is_held(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct seat a, b, c;
    seat_open(&a, p, 0, "/l", NULL);
    seat_share(&b, &a, 1);
    seat_share(&c, &a, 2);
    seat_acquire(&a, SEAT_EVER);
    seat_acquire(&b, SEAT_EVER);
    seat_ask(&c, SEAT_EVER); /* its create is under way */
    clave_async_mutex_free(a.m);
    assert_int_equal(b.answers + c.answers, 0);
    pair_settle(p);
    assert_int_equal(b.answers, 1);
    assert_int_equal(b.err, CLAVE_ECANCELED);
    assert_int_equal(c.answers, 1);
    assert_int_equal(c.err, CLAVE_ECANCELED);
    assert_int_equal(a.lost, 0);
    assert_no_leftovers(p);
    pair_free(p);
}

static void a_cancelled_create_is_cleaned_up(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct seat a;
    seat_open(&a, p, 0, "/l", NULL);
    pair_rule(p, (struct pair_rule){0, PAIR_REPLY, OP_CREATE2, PAIR_HOLD, 1});
    seat_acquire(&a, 500);
    assert_int_equal(pair_stats(p).ephemerals, 1);
    pair_advance(p, 500);
    assert_int_equal(a.err, CLAVE_EBUSY);
    pair_clear(p);
    pair_settle(p);
    assert_int_equal(a.answers, 1);
    assert_no_leftovers(p);
    seat_close(&a);
    pair_free(p);
}

/* The grant's event and the cancel meet: one callback, and no node stays. */
static void a_grant_that_races_a_cancel_answers_once(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seat a, b;
    seat_open(&a, p, 0, "/l", NULL);
    seat_open(&b, p, 1, "/l", NULL);
    seat_acquire(&a, SEAT_EVER);
    seat_acquire(&b, SEAT_EVER);
    pair_rule(p, (struct pair_rule){1, PAIR_REPLY, OP_NOTIFICATION, PAIR_HOLD, 0});
    seat_release(&a);
    assert_int_equal(clave_async_mutex_cancel(b.m, 0), CLAVE_OK);
    pair_clear(p);
    pair_settle(p);
    assert_int_equal(b.answers, 1);
    assert_int_equal(b.err, CLAVE_ECANCELED);
    assert_int_equal(b.held, 0);
    assert_no_leftovers(p);
    /* Granted first: the cancel comes too late. */
    seat_acquire(&b, SEAT_EVER);
    assert_int_equal(clave_async_mutex_cancel(b.m, 0), CLAVE_ENOTHELD);
    assert_true(seat_holds(&b));
    seat_close(&a);
    seat_close(&b);
    pair_free(p);
}

static void a_waiter_that_gives_up_does_not_let_its_follower_in(void **state)
{
    (void)state;
    struct pair *p = world(3);
    struct seat s[3];
    for (size_t i = 0; i < 3; i++) {
        seat_open(&s[i], p, i, "/l", NULL);
        seat_acquire(&s[i], SEAT_EVER);
    }
    assert_int_equal(s[2].ahead, 2);
    assert_int_equal(s[2].next, 0);
    clave_async_mutex_cancel(s[1].m, 0);
    pair_settle(p);
    assert_false(seat_holds(&s[2]));
    assert_int_equal(s[2].ahead, 1);
    assert_int_equal(s[2].next, 1);
    seat_release(&s[0]);
    assert_true(seat_holds(&s[2]));
    for (size_t i = 0; i < 3; i++)
        seat_close(&s[i]);
    assert_no_leftovers(p);
    pair_free(p);
}

static void ten_thousand_timeouts_leave_nothing(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seat a, b;
    seat_open(&a, p, 0, "/l", NULL);
    seat_open(&b, p, 1, "/l", NULL);
    seat_acquire(&a, SEAT_EVER);
    for (int i = 0; i < 5000; i++) {
        seat_acquire(&b, 1);
        pair_advance(p, 1);
        seat_acquire(&b, SEAT_TRY);
    }
    assert_int_equal(b.answers, 10000);
    assert_int_equal(seat_list(p, 0, "/l", NULL, 0), 1);
    assert_true(pair_stats(p).watches <= 1); /* the holder's own */
    seat_close(&a);
    seat_close(&b);
    assert_no_leftovers(p);
    pair_free(p);
}

/* ---- holding --------------------------------------------------------------------------- */

static void a_holder_whose_node_is_deleted_is_told(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seat a, b;
    char node[160];
    seat_open(&a, p, 0, "/l", NULL);
    seat_open(&b, p, 1, "/l", NULL);
    seat_acquire(&a, SEAT_EVER);
    assert_int_equal(pair_stats(p).watches, 0);
    pair_advance(p, 8000); /* a heartbeat interval and more: settled, and watched */
    assert_int_equal(pair_stats(p).watches, 1);
    assert_true(seat_holds(&a));
    snprintf(node, sizeof node, "%s", seat_grant(&a).node);
    assert_int_equal(seat_remove(p, 1, node), CLAVE_OK);
    assert_int_equal(a.lost, 1);
    assert_int_equal(a.why, CLAVE_ENONODE);
    assert_false(seat_holds(&a));
    assert_int_equal(seat_ask(&a, SEAT_EVER), CLAVE_ELOST);
    assert_int_equal(seat_release(&a), CLAVE_ELOST);
    assert_int_equal(seat_release(&a), CLAVE_ENOTHELD);
    seat_acquire(&a, SEAT_EVER);
    assert_true(seat_holds(&a));
    seat_close(&a);
    seat_close(&b);
    assert_no_leftovers(p);
    pair_free(p);
}

/* A hold that never settled is checked by its heartbeats. */
static void a_short_hold_notices_a_deleted_node_by_its_heartbeat(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seat a;
    char node[160];
    seat_open(&a, p, 0, "/l", NULL);
    seat_acquire(&a, SEAT_EVER);
    snprintf(node, sizeof node, "%s", seat_grant(&a).node);
    assert_int_equal(seat_remove(p, 1, node), CLAVE_OK);
    assert_true(seat_holds(&a));
    pair_advance(p, 10000);
    assert_int_equal(a.lost, 1);
    assert_int_equal(a.why, CLAVE_ENONODE);
    seat_close(&a);
    assert_no_leftovers(p);
    pair_free(p);
}

static void max_hold_ends_the_hold_at_the_server_too(void **state)
{
    (void)state;
    struct pair *p = world(2);
    clave_mutex_options o = {.size = sizeof o, .max_hold_ms = 3000};
    struct seat a, b;
    seat_open(&a, p, 0, "/l", &o);
    seat_open(&b, p, 1, "/l", NULL);
    seat_acquire(&a, SEAT_EVER);
    assert_int_equal(seat_grant(&a).deadline, p->now + 3000);
    assert_true(clave_async_mutex_valid_for(a.m, 0, p->now, 3000));
    assert_false(clave_async_mutex_valid_for(a.m, 0, p->now, 3001));
    seat_acquire(&b, SEAT_EVER);
    seat_acquire(&a, SEAT_EVER);
    pair_advance(p, 2999);
    assert_true(seat_holds(&a));
    pair_advance(p, 1);
    assert_false(seat_holds(&a));
    assert_int_equal(a.lost, 1);
    assert_int_equal(a.why, CLAVE_EMAXHOLD);
    assert_true(seat_holds(&b));
    assert_int_equal(seat_release(&a), CLAVE_EMAXHOLD);
    assert_int_equal(seat_release(&a), CLAVE_EMAXHOLD);
    assert_int_equal(seat_release(&a), CLAVE_ENOTHELD);
    seat_close(&a);
    seat_close(&b);
    assert_no_leftovers(p);
    pair_free(p);
}

static void a_grant_is_valid_up_to_the_hold_deadline(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct seat a;
    seat_open(&a, p, 0, "/l", NULL);
    assert_false(clave_async_mutex_valid_for(a.m, 0, p->now, 0));
    seat_acquire(&a, SEAT_EVER);
    clave_grant g = seat_grant(&a);
    assert_int_equal(g.deadline, clave_async_client_hold_deadline(p->end[0].c));
    assert_int_equal(g.session_id, clave_async_client_session_id(p->end[0].c));
    assert_true(clave_async_mutex_valid_for(a.m, 0, g.deadline - 10, 10));
    assert_false(clave_async_mutex_valid_for(a.m, 0, g.deadline - 10, 11));
    assert_false(clave_async_mutex_valid_for(a.m, 0, g.deadline + 1, INT64_MIN));
    /* It is kept fresh while it is held, for as long as one likes. */
    pair_advance(p, 120000);
    assert_true(seat_holds(&a));
    assert_true(clave_async_mutex_valid_for(a.m, 0, p->now, 3000));
    seat_close(&a);
    pair_free(p);
}

static void options_are_checked(void **state)
{
    (void)state;
    struct pair *p = world(1);
    clave_async_client *c = p->end[0].c;
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
    pair_free(p);
}

/* Held, asked for once more, and freed before the callback of that has run: it is not held. */
static void freeing_a_lock_held_again_cancels_the_second_hold(void **state)
{
    (void)state;
    const struct pair_options o = {.clients = 1};
    struct pair *p = pair_new(&o);
    struct seat a;
    pair_settle(p);
    seat_open(&a, p, 0, "/l", NULL);
    seat_acquire(&a, SEAT_EVER);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.err, CLAVE_OK);
    assert_int_equal(seat_ask(&a, SEAT_EVER), CLAVE_OK);
    seat_close(&a);
    assert_int_equal(a.answers, 2);
    assert_int_equal(a.err, CLAVE_ECANCELED);
    pair_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acquire_costs_one_flight_and_release_one_delete),
        cmocka_unit_test(missing_parents_cost_two_flights),
        cmocka_unit_test(release_is_sent_and_not_awaited),
        cmocka_unit_test(release_with_a_callback_runs_it_when_the_node_is_gone),
        cmocka_unit_test(hand_over_costs_no_round_trip),
        cmocka_unit_test(a_long_queue_hands_over_without_trips),
        cmocka_unit_test(a_try_that_fails_costs_one_round_trip),
        cmocka_unit_test(testLocker),
        cmocka_unit_test(testContainerCleanup),
        cmocka_unit_test(testWithNamespace),
        cmocka_unit_test(testReentrant2Threads),
        cmocka_unit_test(testReentrant),
        cmocka_unit_test(test2Clients),
        cmocka_unit_test(testLockACLs),
        cmocka_unit_test(cancel_answers_once_and_leaves_nothing),
        cmocka_unit_test(free_cancels_what_waits_and_releases_what_is_held),
        cmocka_unit_test(a_cancelled_create_is_cleaned_up),
        cmocka_unit_test(a_grant_that_races_a_cancel_answers_once),
        cmocka_unit_test(a_waiter_that_gives_up_does_not_let_its_follower_in),
        cmocka_unit_test(ten_thousand_timeouts_leave_nothing),
        cmocka_unit_test(a_holder_whose_node_is_deleted_is_told),
        cmocka_unit_test(a_short_hold_notices_a_deleted_node_by_its_heartbeat),
        cmocka_unit_test(max_hold_ends_the_hold_at_the_server_too),
        cmocka_unit_test(a_grant_is_valid_up_to_the_hold_deadline),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(freeing_a_lock_held_again_cancels_the_second_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
