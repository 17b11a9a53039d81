/* The counting semaphore when leases, sessions, servers, messages and memory go: never above
 * the limit, every callback once, nothing left. Curator's tests bear their names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/failmem.h"
#include "lib/semaphore_user.h"

enum { TIMEOUT = 6000 };

static struct pair *world(size_t clients)
{
    return pair_new(&(struct pair_options){.clients = clients, .timeout_ms = TIMEOUT});
}

/* ---- ending, losing, failing ------------------------------------------------------------ */

static void release_with_a_callback_runs_it_when_the_node_is_gone(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct party a;
    party_open(&a, p, 0, 2);
    party_acquire(&a, 1, SEAT_EVER);
    pair_rule(p, (struct pair_rule){0, PAIR_REPLY, OP_DELETE, PAIR_HOLD, 0});
    assert_int_equal(party_release_sure(&a), CLAVE_OK);
    assert_int_equal(a.departures, 0);
    pair_clear(p);
    pair_settle(p);
    assert_int_equal(a.departures, 1);
    assert_int_equal(a.left, CLAVE_OK);
    party_close(&a);
    party_assert_no_leftovers(p);
    pair_free(p);
}

/* CURATOR-462, testInterruptAcquire: given up wherever it stands. */
static void testInterruptAcquire(void **state)
{
    (void)state;
    struct pair *p = world(3);
    struct party a, b, c;
    party_open(&a, p, 0, 1);
    party_open(&b, p, 1, 1);
    party_open(&c, p, 2, 1);
    party_acquire(&a, 1, SEAT_EVER);
    party_acquire(&b, 1, SEAT_EVER); /* at the gate */
    party_acquire(&c, 1, SEAT_EVER); /* before it */
    assert_int_equal(party_ask(&c, 0, 1, SEAT_EVER), CLAVE_EINVAL);
    assert_int_equal(clave_async_semaphore_cancel(c.s, 5), CLAVE_ENOTHELD);
    assert_int_equal(clave_async_semaphore_cancel(c.s, 0), CLAVE_OK);
    assert_int_equal(c.answers, 0); /* never inside the call */
    pair_settle(p);
    assert_int_equal(c.err, CLAVE_ECANCELED);
    party_acquire(&c, 1, SEAT_EVER);
    assert_int_equal(clave_async_semaphore_cancel(b.s, 0), CLAVE_OK);
    pair_settle(p);
    assert_int_equal(b.err, CLAVE_ECANCELED);
    assert_int_equal(party_leases_at_server(p), 2); /* a's, and c's that waits for room */
    party_release(&a);
    assert_int_equal(c.n, 1);
    assert_int_equal(c.answers, 2);
    party_close(&a);
    party_close(&b);
    party_close(&c);
    party_assert_no_leftovers(p);
    pair_free(p);
}

/* Half of what was asked for is there when time is up: none of it stays. */
static void all_or_nothing_when_time_is_up(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct party a, b;
    party_open(&a, p, 0, 4);
    party_open(&b, p, 1, 4);
    party_acquire(&a, 2, SEAT_EVER);
    party_acquire(&b, 4, 1500);
    assert_int_equal(party_leases_at_server(p), 5); /* at most one above the limit */
    pair_advance(p, 1500);
    assert_int_equal(b.answers, 1);
    assert_int_equal(b.err, CLAVE_EBUSY);
    assert_int_equal(party_leases_at_server(p), 2);
    assert_int_equal(b.lost, 0);
    assert_int_equal(party_ask(&b, 0, 5, SEAT_EVER), CLAVE_EINVAL);
    assert_int_equal(party_ask(&b, 0, 0, SEAT_EVER), CLAVE_EINVAL);
    party_close(&a);
    party_close(&b);
    party_assert_no_leftovers(p);
    pair_free(p);
}

/* The waiter's lease node is deleted under it: it is made again, and nothing is left over. */
static void testNoOrphanedNodes(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct party a, b;
    char names[4][96], path[128];
    party_open(&a, p, 0, 1);
    party_open(&b, p, 1, 1);
    party_acquire(&a, 1, SEAT_EVER);
    party_acquire(&b, 1, SEAT_EVER);
    clave_grant g;
    assert_true(clave_async_lease_grant(a.held[0], &g));
    assert_int_equal(seat_list(p, 0, "/s/leases", names, 4), 2);
    snprintf(path, sizeof path, "/s/leases/%s", strstr(g.node, names[0]) ? names[1] : names[0]);
    assert_int_equal(seat_remove(p, 0, path), CLAVE_OK);
    pair_advance(p, 500);
    assert_int_equal(b.answers, 0);
    assert_int_equal(party_leases_at_server(p), 2);
    party_release(&a);
    assert_int_equal(b.n, 1);
    assert_int_equal(party_leases_at_server(p), 1);
    party_close(&a);
    party_close(&b);
    party_assert_no_leftovers(p);
    pair_free(p);
}

/* The same with the place in the queue: another may get in meanwhile, never beside it. */
static void a_gate_that_is_deleted_sends_the_acquire_back(void **state)
{
    (void)state;
    struct pair *p = world(3);
    struct party a, b, c;
    char names[4][96], path[128];
    party_open(&a, p, 0, 1);
    party_open(&b, p, 1, 1);
    party_open(&c, p, 2, 1);
    party_acquire(&a, 1, SEAT_EVER);
    party_acquire(&b, 1, SEAT_EVER);
    assert_int_equal(seat_list(p, 0, "/s/locks", names, 4), 1);
    party_acquire(&c, 1, SEAT_EVER);
    pair_advance(p, 8000);
    snprintf(path, sizeof path, "/s/locks/%s", names[0]);
    assert_int_equal(seat_remove(p, 0, path), CLAVE_OK);
    pair_advance(p, 3000);
    party_release(&a);
    assert_int_equal(c.n, 1);
    assert_int_equal(b.n, 0);
    party_release(&c);
    assert_int_equal(b.n, 1);
    assert_int_equal(b.answers, 1);
    party_close(&a);
    party_close(&b);
    party_close(&c);
    party_assert_no_leftovers(p);
    pair_free(p);
}

static void testClientClose(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct party a, b;
    party_open(&a, p, 0, 2);
    party_open(&b, p, 1, 2);
    party_acquire(&a, 2, SEAT_EVER);
    party_acquire(&b, 1, SEAT_EVER);
    party_ask(&a, 9, 1, SEAT_EVER);
    clave_async_client_close(p->end[0].c, p->now);
    pair_settle(p);
    assert_int_equal(b.n, 1);
    assert_int_equal(a.lost, 2);
    assert_int_equal(a.why, CLAVE_ECLOSED);
    assert_int_equal(a.err, CLAVE_ECLOSED);
    assert_int_equal(a.answers, 2);
    assert_int_equal(party_ask(&a, 0, 1, SEAT_EVER), CLAVE_ECLOSED);
    assert_int_equal(party_release(&a), CLAVE_ELOST);
    party_close(&a);
    party_close(&b);
    party_assert_no_leftovers(p);
    pair_free(p);
}

/* CURATOR-335: the server goes with ten clients waiting, after a lease was made; all resume,
 * and no lease is orphaned. */
static void testAcquireAfterLostServer(void **state)
{
    (void)state;
    enum { N = 10 };
    struct pair *p = world(N);
    struct party a[N];
    for (size_t i = 0; i < N; i++) {
        party_open(&a[i], p, i, 1);
        party_acquire(&a[i], 1, SEAT_EVER);
    }
    pair_stop_server(p);
    pair_advance(p, 1500);
    pair_start_server(p);
    pair_advance(p, 5000);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(a[i].n, 1);
        assert_int_equal(a[i].answers, 1);
        assert_int_equal(a[i].lost, 0);
        party_release(&a[i]);
        pair_advance(p, 100);
    }
    assert_int_equal(party_leases_at_server(p), 0);
    for (size_t i = 0; i < N; i++)
        party_close(&a[i]);
    party_assert_no_leftovers(p);
    pair_free(p);
}

/* The session ends: leases given out are lost, each told once; who waits begins anew. */
static void a_session_that_ends_takes_its_leases(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct party a, b;
    party_open(&a, p, 0, 2);
    party_open(&b, p, 1, 2);
    party_acquire(&a, 2, SEAT_EVER);
    party_ask(&a, 1, 2, SEAT_EVER);
    pair_settle(p);
    pair_kill_session(p, 0);
    pair_advance(p, 5000);
    assert_int_equal(a.lost, 2);
    assert_int_equal(a.why, CLAVE_EEXPIRED);
    assert_int_equal(a.answers, 2);
    assert_int_equal(a.err, CLAVE_OK);
    assert_int_equal(a.n, 4);
    assert_int_equal(party_leases_at_server(p), 2);
    assert_int_equal(party_release(&a), CLAVE_ELOST);
    assert_int_equal(party_release(&a), CLAVE_ELOST);
    clave_grant g;
    assert_true(clave_async_lease_grant(a.held[0], &g));
    assert_int_equal(g.session_id, clave_async_client_session_id(p->end[0].c));
    party_close(&a);
    party_close(&b);
    party_assert_no_leftovers(p);
    pair_free(p);
}

static void on_written(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    *(clave_err *)arg = res->err;
}

/* Stopped beyond its session: its guarded writes fail, and nothing of it is valid. */
static void a_holder_that_was_stopped_does_no_harm(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct party a, b;
    party_open(&a, p, 0, 1);
    party_open(&b, p, 1, 1);
    assert_int_equal(seat_make(p, 1, "/data"), CLAVE_OK);
    party_acquire(&a, 1, SEAT_EVER);
    party_acquire(&b, 1, SEAT_EVER);
    clave_op op = {.kind = CLAVE_OP_SET, .path = "/data", .data = "x", .len = 1, .version = -1};
    clave_err written = CLAVE_ETIMEDOUT;
    assert_int_equal(clave_async_lease_multi(a.held[0], &op, 1, on_written, &written), CLAVE_OK);
    pair_settle(p);
    assert_int_equal(written, CLAVE_OK);
    pair_freeze(p, 0, true);
    pair_advance(p, 3 * TIMEOUT);
    assert_int_equal(b.n, 1);
    assert_false(clave_async_lease_valid_for(a.held[0], p->now, 0));
    assert_int_equal(clave_async_lease_multi(a.held[0], &op, 1, on_written, &written), CLAVE_OK);
    pair_freeze(p, 0, false);
    pair_advance(p, 5000);
    assert_int_equal(written, CLAVE_ELOST);
    assert_int_equal(a.lost, 1);
    assert_int_equal(clave_async_lease_multi(a.held[0], &op, 1, on_written, &written), CLAVE_ELOST);
    party_close(&a);
    party_close(&b);
    party_assert_no_leftovers(p);
    pair_free(p);
}

static void max_hold_ends_a_lease(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct party a, b;
    assert_int_equal(
        party_open_with(&a, p, 0, (clave_semaphore_options){.limit = 1, .max_hold_ms = 2000}),
        CLAVE_OK);
    party_open(&b, p, 1, 1);
    party_acquire(&a, 1, SEAT_EVER);
    party_acquire(&b, 1, SEAT_EVER);
    pair_advance(p, 2000);
    assert_int_equal(a.why, CLAVE_EMAXHOLD);
    assert_int_equal(b.n, 1);
    assert_int_equal(party_release(&a), CLAVE_EMAXHOLD);
    party_close(&a);
    party_close(&b);
    party_assert_no_leftovers(p);
    pair_free(p);
}

static void ten_thousand_failed_acquires_leave_nothing(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct party a, b;
    party_open(&a, p, 0, 1);
    party_open(&b, p, 1, 1);
    party_acquire(&a, 1, SEAT_EVER);
    for (int i = 0; i < 5000; i++) {
        party_acquire(&b, 1, 1);
        pair_advance(p, 1);
        party_acquire(&b, 1, SEAT_TRY);
    }
    assert_int_equal(b.answers, 10000);
    assert_int_equal(party_leases_at_server(p), 1);
    assert_int_equal(seat_list(p, 0, "/s/locks", NULL, 0), 0);
    assert_true(pair_stats(p).watches <= 1); /* the holder's own */
    party_close(&a);
    party_close(&b);
    party_assert_no_leftovers(p);
    pair_free(p);
}

static void free_cancels_what_waits_and_releases_what_is_held(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct party a;
    party_open(&a, p, 0, 2);
    party_acquire(&a, 2, SEAT_EVER);
    party_ask(&a, 1, 1, SEAT_EVER);
    pair_settle(p);
    party_ask(&a, 2, 1, SEAT_EVER); /* its create is under way */
    clave_async_semaphore_free(a.s);
    assert_int_equal(a.answers, 1);
    pair_settle(p);
    assert_int_equal(a.answers, 3);
    assert_int_equal(a.err, CLAVE_ECANCELED);
    assert_int_equal(a.lost, 0);
    party_assert_no_leftovers(p);
    pair_free(p);
}

/* Any message of A's or B's, or its answer, is lost once: both get their leases in turn. */
static void any_message_may_be_lost_once(void **state)
{
    (void)state;
    static const int ops[] = {OP_CREATE2, OP_CREATE_CONTAINER, OP_GET_CHILDREN2, OP_GET_DATA,
                              OP_DELETE,  OP_NOTIFICATION,     OP_MULTI,         OP_SYNC,
                              OP_PING,    PAIR_HANDSHAKE};
    static const struct {
        enum pair_way way;
        enum pair_fate fate;
    } ways[] = {{PAIR_REQUEST, PAIR_LOSE},
                {PAIR_REQUEST, PAIR_PASS_CUT},
                {PAIR_REPLY, PAIR_LOSE},
                {PAIR_REPLY, PAIR_PASS_CUT}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops * 4 * 2 * 5; i++) {
        struct pair *p = world(2);
        struct party a, b;
        party_open(&a, p, 0, 2);
        party_open(&b, p, 1, 2);
        pair_rule(p, (struct pair_rule){i % 2, ways[i / 2 % 4].way, ops[i / 40],
                                        ways[i / 2 % 4].fate, (unsigned)(i / 8 % 5)});
        party_acquire(&a, 2, SEAT_EVER);
        pair_advance(p, 3000);
        party_acquire(&b, 2, SEAT_EVER);
        pair_advance(p, 3000);
        assert_int_equal(a.n, 2);
        assert_int_equal(b.n, 0);
        party_release(&a);
        pair_advance(p, 3000);
        assert_int_equal(b.n, 0);
        party_release(&a);
        pair_advance(p, 3000);
        assert_int_equal(b.n, 2);
        assert_int_equal(a.answers + b.answers, 2);
        assert_int_equal(a.lost + b.lost, 0);
        party_release(&b);
        party_release(&b);
        pair_advance(p, 3000);
        party_assert_no_leftovers(p);
        party_close(&a);
        party_close(&b);
        pair_free(p);
    }
}

static bool one_allocation_fails(size_t which)
{
    struct failmem mem;
    failmem_init(&mem);
    struct pair *p =
        pair_new(&(struct pair_options){.clients = 1, .timeout_ms = TIMEOUT, .mem = &mem.mem});
    struct party a;
    failmem_arm(&mem, which, 1);
    clave_err err = party_open_with(
        &a, p, 0, (clave_semaphore_options){.limit = 2, .limit_path = "/n", .data = "x", .len = 1});
    assert_true(err == CLAVE_OK || err == CLAVE_ENOMEM);
    if (err == CLAVE_OK) {
        pair_advance(p, 1000);
        err = party_acquire(&a, 2, 5000);
        pair_advance(p, 6000);
        assert_true(err == CLAVE_OK || err == CLAVE_ENOMEM);
        assert_int_equal(a.answers, err == CLAVE_OK);
        assert_int_equal(a.n, a.answers && a.err == CLAVE_OK ? 2 : 0);
        while (a.n > 0)
            assert_int_equal(party_release(&a), CLAVE_OK);
        pair_advance(p, 3000);
        party_close(&a);
    }
    pair_advance(p, 3000);
    bool failed = mem.failed;
    failmem_arm(&mem, 0, 0);
    /* A watch may stay: to have the server forget it takes memory as well. */
    assert_int_equal(pair_stats(p).ephemerals, 0);
    pair_free(p);
    assert_int_equal(mem.live, 0);
    return failed;
}

static void every_allocation_may_fail_once(void **state)
{
    (void)state;
    size_t which = 1;
    while (one_allocation_fails(which))
        which++;
    assert_true(which > 40);
}

static void on_limit_written(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    *(clave_err *)arg = res->err;
}

/* A limit of nothing is raised while memory is short; false: it was not short any more. */
static bool raise_a_limit(size_t first, bool while_cut)
{
    struct failmem mem;
    failmem_init(&mem);
    struct pair *p =
        pair_new(&(struct pair_options){.clients = 2, .timeout_ms = TIMEOUT, .mem = &mem.mem});
    struct party a;
    clave_err written = CLAVE_ETIMEDOUT;
    pair_settle(p);
    const clave_semaphore_options o = {.limit = 1, .limit_path = "/n"};
    assert_int_equal(party_open_with(&a, p, 0, o), CLAVE_OK);
    pair_settle(p);
    clave_async_set(p->end[1].c, "/n", "\0\0\0\0", 4, -1, on_limit_written, &written);
    pair_settle(p);
    assert_int_equal(party_acquire(&a, 1, SEAT_EVER), CLAVE_OK);
    assert_int_equal(a.answers, 0);
    if (while_cut)
        pair_cut(p, 0);
    clave_async_set(p->end[1].c, "/n", "\0\0\0\3", 4, -1, on_limit_written, &written);
    failmem_arm(&mem, first, 1);
    pair_settle(p);
    pair_advance(p, 3000);
    bool failed = mem.failed;
    failmem_arm(&mem, 0, 0);
    assert_int_equal(written, CLAVE_OK);
    assert_int_equal(clave_async_semaphore_limit(a.s), 3);
    assert_int_equal(a.answers, 1);
    assert_true(a.err == CLAVE_OK || a.err == CLAVE_ENOMEM);
    party_close(&a);
    pair_free(p);
    assert_int_equal(mem.live, 0);
    return failed;
}

/* To look at the limit once more there was no memory, and it was never looked at again: those who
 * waited for room waited for ever. (Seed 321253, docs/simulation.md.) */
static void a_limit_is_followed_though_memory_was_short(void **state)
{
    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        size_t first = 1;
        while (raise_a_limit(first, cut))
            first++;
        assert_true(first > 2);
    }
}

/* Two leases are wanted, and the second is given back too late for the longest hold of the
 * first: its time begins when both are given out. (Seed 5261, docs/simulation.md.) */
static void the_longest_hold_begins_with_the_last_lease(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct party a, b;
    party_open_with(&a, p, 0, (clave_semaphore_options){.limit = 2, .max_hold_ms = 1000});
    party_open(&b, p, 1, 2);
    assert_int_equal(party_acquire(&b, 1, SEAT_EVER), CLAVE_OK);
    party_acquire(&a, 2, SEAT_EVER);
    pair_advance(p, 3500);
    assert_int_equal(a.answers, 0);
    assert_int_equal(party_leases_at_server(p), 3);
    party_release(&b);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.n, 2);
    pair_advance(p, 900);
    assert_int_equal(a.lost, 0);
    pair_advance(p, 200);
    assert_int_equal(a.lost, 2);
    assert_int_equal(a.why, CLAVE_EMAXHOLD);
    party_close(&a);
    party_close(&b);
    pair_free(p);
}

/* A process is stopped beyond the deadline, and learns first that it is its turn: it asks for
 * no lease any more. (Seed 6792, docs/simulation.md.) */
static void no_lease_is_asked_for_after_the_deadline(void **state)
{
    (void)state;
    struct pair *p = world(3);
    struct party a, b, c;
    party_open(&a, p, 0, 1);
    party_open(&b, p, 1, 1);
    party_open(&c, p, 2, 1);
    assert_int_equal(party_acquire(&c, 1, SEAT_EVER), CLAVE_OK);
    party_acquire(&b, 1, SEAT_EVER);
    party_acquire(&a, 1, 2000);
    pair_freeze(p, 0, true);
    party_release(&c);
    assert_int_equal(b.n, 1);
    pair_advance(p, 3000);
    /* It has looked at its clock before it was stopped. */
    pair_feed_at_once(p, 0);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.err, CLAVE_EBUSY);
    pair_freeze(p, 0, false);
    party_close(&a);
    party_close(&b);
    party_close(&c);
    pair_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(release_with_a_callback_runs_it_when_the_node_is_gone),
        cmocka_unit_test(testInterruptAcquire),
        cmocka_unit_test(all_or_nothing_when_time_is_up),
        cmocka_unit_test(testNoOrphanedNodes),
        cmocka_unit_test(a_gate_that_is_deleted_sends_the_acquire_back),
        cmocka_unit_test(testClientClose),
        cmocka_unit_test(testAcquireAfterLostServer),
        cmocka_unit_test(a_session_that_ends_takes_its_leases),
        cmocka_unit_test(a_holder_that_was_stopped_does_no_harm),
        cmocka_unit_test(max_hold_ends_a_lease),
        cmocka_unit_test(ten_thousand_failed_acquires_leave_nothing),
        cmocka_unit_test(free_cancels_what_waits_and_releases_what_is_held),
        cmocka_unit_test(any_message_may_be_lost_once),
        cmocka_unit_test(every_allocation_may_fail_once),
        cmocka_unit_test(a_limit_is_followed_though_memory_was_short),
        cmocka_unit_test(the_longest_hold_begins_with_the_last_lease),
        cmocka_unit_test(no_lease_is_asked_for_after_the_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
