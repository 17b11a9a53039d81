/* The counting semaphore when leases, sessions, servers, messages and memory go: never above
 * the limit, every callback once, nothing left. Curator's tests bear their names. */
#include "lib/async_grants.h"
#include "lib/each_fault.h"
#include "lib/failmem.h"
#include "lib/fake_server.h"
#include "lib/semaphore_user.h"
#include "lib/unit.h"
#include "recipe/reattach.h"

enum { TIMEOUT = 6000 };

/* ---- ending, losing, failing ------------------------------------------------------------ */

TEST_CLEAN_NET(release_with_a_callback_runs_it_when_the_node_is_gone, 1, TIMEOUT)
{
    CLOSED_BY(semaphore_user_close) struct semaphore_user a;
    semaphore_user_open(&a, p, 0, 2);
    semaphore_user_acquire(&a, 1, OWNER_FOREVER);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_DELETE, MEMNET_HOLD, 0});
    assert_int_equal(semaphore_user_release_confirmed(&a), CLAVE_OK);
    assert_int_equal(a.departures, 0);
    memnet_clear(p);
    memnet_settle(p);
    assert_int_equal(a.departures, 1);
    assert_int_equal(a.left, CLAVE_OK);
}

/* CURATOR-462, testInterruptAcquire: given up wherever it stands. */
TEST_CLEAN_NET(testInterruptAcquire, 3, TIMEOUT)
{
    CLOSED_BY(semaphore_user_close) struct semaphore_user a, b, c;
    semaphore_user_open(&a, p, 0, 1);
    semaphore_user_open(&b, p, 1, 1);
    semaphore_user_open(&c, p, 2, 1);
    semaphore_user_acquire(&a, 1, OWNER_FOREVER);
    semaphore_user_acquire(&b, 1, OWNER_FOREVER); /* at the gate */
    semaphore_user_acquire(&c, 1, OWNER_FOREVER); /* before it */
    assert_int_equal(semaphore_user_begin_acquire(&c, 0, 1, OWNER_FOREVER), CLAVE_EINVAL);
    assert_int_equal(clave_async_semaphore_cancel(c.s, 5), CLAVE_ENOTHELD);
    assert_int_equal(clave_async_semaphore_cancel(c.s, 0), CLAVE_OK);
    assert_int_equal(c.answers, 0); /* never inside the call */
    memnet_settle(p);
    assert_int_equal(c.err, CLAVE_ECANCELED);
    semaphore_user_acquire(&c, 1, OWNER_FOREVER);
    assert_int_equal(clave_async_semaphore_cancel(b.s, 0), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(b.err, CLAVE_ECANCELED);
    assert_int_equal(semaphore_user_leases_at_server(p), 2); /* a's, and c's that waits for room */
    semaphore_user_release(&a);
    assert_int_equal(c.n, 1);
    assert_int_equal(c.answers, 2);
}

/* Half of what was asked for is there when time is up: none of it stays. */
TEST_CLEAN_NET(all_or_nothing_when_time_is_up, 2, TIMEOUT)
{
    CLOSED_BY(semaphore_user_close) struct semaphore_user a, b;
    semaphore_user_open(&a, p, 0, 4);
    semaphore_user_open(&b, p, 1, 4);
    semaphore_user_acquire(&a, 2, OWNER_FOREVER);
    semaphore_user_acquire(&b, 4, 1500);
    assert_int_equal(semaphore_user_leases_at_server(p), 5); /* at most one above the limit */
    memnet_advance(p, 1500);
    assert_int_equal(b.answers, 1);
    assert_int_equal(b.err, CLAVE_EBUSY);
    assert_int_equal(semaphore_user_leases_at_server(p), 2);
    assert_int_equal(b.lost, 0);
    assert_int_equal(semaphore_user_begin_acquire(&b, 0, 5, OWNER_FOREVER), CLAVE_EINVAL);
    assert_int_equal(semaphore_user_begin_acquire(&b, 0, 0, OWNER_FOREVER), CLAVE_EINVAL);
}

/* The waiter's lease node is deleted under it: it is made again, and nothing is left over. */
TEST_CLEAN_NET(testNoOrphanedNodes, 2, TIMEOUT)
{
    CLOSED_BY(semaphore_user_close) struct semaphore_user a, b;
    char names[4][96], path[128];
    semaphore_user_open(&a, p, 0, 1);
    semaphore_user_open(&b, p, 1, 1);
    semaphore_user_acquire(&a, 1, OWNER_FOREVER);
    semaphore_user_acquire(&b, 1, OWNER_FOREVER);
    struct grant_facts g;
    assert_true(clave__lease_held(a.held[0], &g));
    assert_int_equal(memnet_list(p, 0, "/s/leases", names, 4), 2);
    snprintf(path, sizeof path, "/s/leases/%s", strstr(g.node, names[0]) ? names[1] : names[0]);
    assert_int_equal(memnet_delete(p, 0, path), CLAVE_OK);
    memnet_advance(p, 500);
    assert_int_equal(b.answers, 0);
    assert_int_equal(semaphore_user_leases_at_server(p), 2);
    semaphore_user_release(&a);
    assert_int_equal(b.n, 1);
    assert_int_equal(semaphore_user_leases_at_server(p), 1);
}

/* The same with the place in the queue: another may get in meanwhile, never beside it. */
TEST_CLEAN_NET(a_gate_that_is_deleted_sends_the_acquire_back, 3, TIMEOUT)
{
    CLOSED_BY(semaphore_user_close) struct semaphore_user a, b, c;
    char names[4][96], path[128];
    semaphore_user_open(&a, p, 0, 1);
    semaphore_user_open(&b, p, 1, 1);
    semaphore_user_open(&c, p, 2, 1);
    semaphore_user_acquire(&a, 1, OWNER_FOREVER);
    semaphore_user_acquire(&b, 1, OWNER_FOREVER);
    assert_int_equal(memnet_list(p, 0, "/s/locks", names, 4), 1);
    semaphore_user_acquire(&c, 1, OWNER_FOREVER);
    memnet_advance(p, 8000);
    snprintf(path, sizeof path, "/s/locks/%s", names[0]);
    assert_int_equal(memnet_delete(p, 0, path), CLAVE_OK);
    memnet_advance(p, 3000);
    semaphore_user_release(&a);
    assert_int_equal(c.n, 1);
    assert_int_equal(b.n, 0);
    semaphore_user_release(&c);
    assert_int_equal(b.n, 1);
    assert_int_equal(b.answers, 1);
}

/* The answer to the create of a lease is lost, and another process with the session goes on with
 * the acquire meanwhile: it has the lease, and has left the place in the queue. */
TEST_CLEAN_NET(a_lease_by_a_name_of_the_users_is_kept_without_the_gate, 2, TIMEOUT)
{
    struct queue_place place = {.uuid = "01234567-89ab-4def-8123-456789abcdef"};
    CLOSED_BY(semaphore_user_close) struct semaphore_user a;
    char names[2][96], path[128];
    assert_int_equal(memnet_create(p, 1, "/s"), CLAVE_OK);
    assert_int_equal(memnet_create(p, 1, "/s/locks"), CLAVE_OK);
    assert_int_equal(memnet_create(p, 1, "/s/leases"), CLAVE_OK);
    semaphore_user_open(&a, p, 0, 1);
    clave__semaphore_set_place(a.s, &place);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_CREATE2, MEMNET_HOLD, 1});
    assert_int_equal(semaphore_user_begin_acquire(&a, 0, 1, OWNER_FOREVER), CLAVE_OK);
    memnet_settle(p);
    memnet_refuse(p, 0, true);
    memnet_clear(p);
    assert_int_equal(memnet_list(p, 1, "/s/locks", names, 2), 1);
    snprintf(path, sizeof path, "/s/locks/%s", names[0]);
    assert_int_equal(memnet_delete(p, 1, path), CLAVE_OK);
    assert_int_equal(memnet_list(p, 1, "/s/leases", names, 2), 1);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_GET_CHILDREN2, MEMNET_LOSE, 0});
    memnet_refuse(p, 0, false);
    memnet_advance(p, 1000);
    memnet_clear(p);
    memnet_advance(p, 1000);
    struct grant_facts g;
    assert_int_equal(a.n, 1);
    assert_true(clave__lease_held(a.held[0], &g));
    assert_non_null(strstr(g.node, names[0]));
    assert_int_equal(semaphore_user_leases_at_server(p), 1);
}

TEST_CLEAN_NET(testClientClose, 2, TIMEOUT)
{
    CLOSED_BY(semaphore_user_close) struct semaphore_user a, b;
    semaphore_user_open(&a, p, 0, 2);
    semaphore_user_open(&b, p, 1, 2);
    semaphore_user_acquire(&a, 2, OWNER_FOREVER);
    semaphore_user_acquire(&b, 1, OWNER_FOREVER);
    semaphore_user_begin_acquire(&a, 9, 1, OWNER_FOREVER);
    clave_async_client_close(p->clients[0].c, p->now);
    memnet_settle(p);
    assert_int_equal(b.n, 1);
    assert_int_equal(a.lost, 2);
    assert_int_equal(a.why, CLAVE_ECLOSED);
    assert_int_equal(a.err, CLAVE_ECLOSED);
    assert_int_equal(a.answers, 2);
    assert_int_equal(semaphore_user_begin_acquire(&a, 0, 1, OWNER_FOREVER), CLAVE_ECLOSED);
    assert_int_equal(semaphore_user_release(&a), CLAVE_ELOST);
}

/* CURATOR-335: the server goes with ten clients waiting, after a lease was made; all resume,
 * and no lease is orphaned. */
TEST(testAcquireAfterLostServer)
{
    enum { N = 10 };
    CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(N, TIMEOUT);
    struct semaphore_user a[N];
    for (size_t i = 0; i < N; i++) {
        semaphore_user_open(&a[i], p, i, 1);
        semaphore_user_acquire(&a[i], 1, OWNER_FOREVER);
    }
    memnet_stop_server(p);
    memnet_advance(p, 1500);
    memnet_start_server(p);
    memnet_advance(p, 5000);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(a[i].n, 1);
        assert_int_equal(a[i].answers, 1);
        assert_int_equal(a[i].lost, 0);
        semaphore_user_release(&a[i]);
        memnet_advance(p, 100);
    }
    assert_int_equal(semaphore_user_leases_at_server(p), 0);
    for (size_t i = 0; i < N; i++)
        semaphore_user_close(&a[i]);
}

/* The session ends: leases given out are lost, each reported once; a waiter begins anew. */
TEST_CLEAN_NET(a_session_that_ends_takes_its_leases, 2, TIMEOUT)
{
    CLOSED_BY(semaphore_user_close) struct semaphore_user a, b;
    semaphore_user_open(&a, p, 0, 2);
    semaphore_user_open(&b, p, 1, 2);
    semaphore_user_acquire(&a, 2, OWNER_FOREVER);
    semaphore_user_begin_acquire(&a, 1, 2, OWNER_FOREVER);
    memnet_settle(p);
    memnet_kill_session(p, 0);
    memnet_advance(p, 5000);
    assert_int_equal(a.lost, 2);
    assert_int_equal(a.why, CLAVE_EEXPIRED);
    assert_int_equal(a.answers, 2);
    assert_int_equal(a.err, CLAVE_OK);
    assert_int_equal(a.n, 4);
    assert_int_equal(semaphore_user_leases_at_server(p), 2);
    assert_int_equal(semaphore_user_release(&a), CLAVE_ELOST);
    assert_int_equal(semaphore_user_release(&a), CLAVE_ELOST);
    struct grant_facts g;
    assert_true(clave__lease_held(a.held[0], &g));
    assert_int_equal(g.session_id, clave_async_client_session_id(p->clients[0].c));
}

static void on_written(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    *(clave_err *)arg = res->err;
}

/* Stopped beyond its session: its guarded writes fail, and nothing of it is valid. */
TEST_CLEAN_NET(a_holder_that_was_stopped_does_no_harm, 2, TIMEOUT)
{
    CLOSED_BY(semaphore_user_close) struct semaphore_user a, b;
    semaphore_user_open(&a, p, 0, 1);
    semaphore_user_open(&b, p, 1, 1);
    assert_int_equal(memnet_create(p, 1, "/data"), CLAVE_OK);
    semaphore_user_acquire(&a, 1, OWNER_FOREVER);
    semaphore_user_acquire(&b, 1, OWNER_FOREVER);
    clave_op op = {.kind = CLAVE_OP_SET, .path = "/data", .data = "x", .len = 1, .version = -1};
    clave_err written = CLAVE_ETIMEDOUT;
    assert_int_equal(guarded_multi(of_lease(a.held[0]), &op, 1, on_written, &written), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(written, CLAVE_OK);
    memnet_freeze(p, 0, true);
    memnet_advance(p, 3 * TIMEOUT);
    assert_int_equal(b.n, 1);
    assert_false(lease_valid_for(a.held[0], p->now, 0));
    assert_int_equal(guarded_multi(of_lease(a.held[0]), &op, 1, on_written, &written), CLAVE_OK);
    memnet_freeze(p, 0, false);
    memnet_advance(p, 5000);
    assert_int_equal(written, CLAVE_ELOST);
    assert_int_equal(a.lost, 1);
    assert_int_equal(guarded_multi(of_lease(a.held[0]), &op, 1, on_written, &written), CLAVE_ELOST);
}

TEST_CLEAN_NET(max_hold_ends_a_lease, 2, TIMEOUT)
{
    CLOSED_BY(semaphore_user_close) struct semaphore_user a, b;
    assert_int_equal(semaphore_user_open_with(
                         &a, p, 0, (clave_semaphore_options){.limit = 1, .max_hold_ms = 2000}),
                     CLAVE_OK);
    semaphore_user_open(&b, p, 1, 1);
    semaphore_user_acquire(&a, 1, OWNER_FOREVER);
    semaphore_user_acquire(&b, 1, OWNER_FOREVER);
    memnet_advance(p, 2000);
    assert_int_equal(a.why, CLAVE_EMAXHOLD);
    assert_int_equal(b.n, 1);
    assert_int_equal(semaphore_user_release(&a), CLAVE_EMAXHOLD);
}

TEST_CLEAN_NET(ten_thousand_failed_acquires_leave_nothing, 2, TIMEOUT)
{
    CLOSED_BY(semaphore_user_close) struct semaphore_user a, b;
    semaphore_user_open(&a, p, 0, 1);
    semaphore_user_open(&b, p, 1, 1);
    semaphore_user_acquire(&a, 1, OWNER_FOREVER);
    for (int i = 0; i < 5000; i++) {
        semaphore_user_acquire(&b, 1, 1);
        memnet_advance(p, 1);
        semaphore_user_acquire(&b, 1, OWNER_TRY);
    }
    assert_int_equal(b.answers, 10000);
    assert_int_equal(semaphore_user_leases_at_server(p), 1);
    assert_int_equal(memnet_list(p, 0, "/s/locks", NULL, 0), 0);
    assert_true(memnet_stats(p).watches <= 1); /* the holder's own */
}

TEST_CLEAN_NET(free_cancels_what_waits_and_releases_what_is_held, 1, TIMEOUT)
{
    struct semaphore_user a;
    semaphore_user_open(&a, p, 0, 2);
    semaphore_user_acquire(&a, 2, OWNER_FOREVER);
    semaphore_user_begin_acquire(&a, 1, 1, OWNER_FOREVER);
    memnet_settle(p);
    semaphore_user_begin_acquire(&a, 2, 1, OWNER_FOREVER); /* its create is under way */
    clave_async_semaphore_free(a.s);
    assert_int_equal(a.answers, 1);
    memnet_settle(p);
    assert_int_equal(a.answers, 3);
    assert_int_equal(a.err, CLAVE_ECANCELED);
    assert_int_equal(a.lost, 0);
}

/* Any message of A's or B's, or its answer, is lost once: both get their leases in turn. */
TEST_EACH_LOSS(any_message_may_be_lost_once, 2, TIMEOUT, 5)
{
    struct semaphore_user a, b;
    semaphore_user_open(&a, p, 0, 2);
    semaphore_user_open(&b, p, 1, 2);
    memnet_rule(p, loss);
    semaphore_user_acquire(&a, 2, OWNER_FOREVER);
    memnet_advance(p, 3000);
    semaphore_user_acquire(&b, 2, OWNER_FOREVER);
    memnet_advance(p, 3000);
    assert_int_equal(a.n, 2);
    assert_int_equal(b.n, 0);
    semaphore_user_release(&a);
    memnet_advance(p, 3000);
    assert_int_equal(b.n, 0);
    semaphore_user_release(&a);
    memnet_advance(p, 3000);
    assert_int_equal(b.n, 2);
    assert_int_equal(a.answers + b.answers, 2);
    assert_int_equal(a.lost + b.lost, 0);
    semaphore_user_release(&b);
    semaphore_user_release(&b);
    memnet_advance(p, 3000);
    memnet_assert_no_leftovers(p);
    semaphore_user_close(&a);
    semaphore_user_close(&b);
}

TEST_EACH_ALLOCATION(every_allocation_may_fail_once, 40)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_on(mem, 1, TIMEOUT);
    struct semaphore_user a;
    failmem_arm(mem, which, 1);
    clave_err err = semaphore_user_open_with(
        &a, p, 0, (clave_semaphore_options){.limit = 2, .limit_path = "/n", .data = "x", .len = 1});
    assert_true(err == CLAVE_OK || err == CLAVE_ENOMEM);
    if (err == CLAVE_OK) {
        memnet_advance(p, 1000);
        err = semaphore_user_acquire(&a, 2, 5000);
        memnet_advance(p, 6000);
        assert_true(err == CLAVE_OK || err == CLAVE_ENOMEM);
        assert_int_equal(a.answers, err == CLAVE_OK);
        assert_int_equal(a.n, a.answers && a.err == CLAVE_OK ? 2 : 0);
        while (a.n > 0)
            assert_int_equal(semaphore_user_release(&a), CLAVE_OK);
        memnet_advance(p, 3000);
        semaphore_user_close(&a);
    }
    memnet_advance(p, 3000);
    failmem_disarm(mem);
    /* A watch may stay: to have the server forget it takes memory as well. */
    assert_int_equal(memnet_stats(p).ephemerals, 0);
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
    struct memnet *p =
        memnet_new(&(struct memnet_options){.clients = 2, .timeout_ms = TIMEOUT, .mem = &mem.mem});
    struct semaphore_user a;
    clave_err written = CLAVE_ETIMEDOUT;
    memnet_settle(p);
    const clave_semaphore_options o = {.limit = 1, .limit_path = "/n"};
    assert_int_equal(semaphore_user_open_with(&a, p, 0, o), CLAVE_OK);
    memnet_settle(p);
    clave_async_set(p->clients[1].c, "/n", "\0\0\0\0", 4, -1, on_limit_written, &written);
    memnet_settle(p);
    assert_int_equal(semaphore_user_acquire(&a, 1, OWNER_FOREVER), CLAVE_OK);
    assert_int_equal(a.answers, 0);
    if (while_cut)
        memnet_cut(p, 0);
    clave_async_set(p->clients[1].c, "/n", "\0\0\0\3", 4, -1, on_limit_written, &written);
    failmem_arm(&mem, first, 1);
    memnet_settle(p);
    memnet_advance(p, 3000);
    bool failed = mem.failed;
    failmem_arm(&mem, 0, 0);
    assert_int_equal(written, CLAVE_OK);
    assert_int_equal(clave_async_semaphore_limit(a.s), 3);
    assert_int_equal(a.answers, 1);
    assert_true(a.err == CLAVE_OK || a.err == CLAVE_ENOMEM);
    semaphore_user_close(&a);
    memnet_free(p);
    assert_int_equal(mem.live, 0);
    return failed;
}

/* To look at the limit once more there was no memory, and it was never looked at again: those who
 * waited for room waited for ever. (Seed 321253, docs/evidence/simulation.md.) */
TEST(a_limit_is_followed_though_memory_was_short)
{
    for (int cut = 0; cut < 2; cut++) {
        size_t first = 1;
        while (raise_a_limit(first, cut))
            first++;
        assert_true(first > 2);
    }
}

/* Two leases are wanted, and the second is given back too late for the longest hold of the
 * first: its time begins when both are given out. (Seed 5261, docs/evidence/simulation.md.) */
TEST_NET(the_longest_hold_begins_with_the_last_lease, 2, TIMEOUT)
{
    CLOSED_BY(semaphore_user_close) struct semaphore_user a, b;
    semaphore_user_open_with(&a, p, 0, (clave_semaphore_options){.limit = 2, .max_hold_ms = 1000});
    semaphore_user_open(&b, p, 1, 2);
    assert_int_equal(semaphore_user_acquire(&b, 1, OWNER_FOREVER), CLAVE_OK);
    semaphore_user_acquire(&a, 2, OWNER_FOREVER);
    memnet_advance(p, 3500);
    assert_int_equal(a.answers, 0);
    assert_int_equal(semaphore_user_leases_at_server(p), 3);
    semaphore_user_release(&b);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.n, 2);
    memnet_advance(p, 900);
    assert_int_equal(a.lost, 0);
    memnet_advance(p, 200);
    assert_int_equal(a.lost, 2);
    assert_int_equal(a.why, CLAVE_EMAXHOLD);
}

/* A process is stopped beyond the deadline, and learns first that it is its turn: it asks for
 * no lease any more. (Seed 6792, docs/evidence/simulation.md.) */
TEST_NET(no_lease_is_asked_for_after_the_deadline, 3, TIMEOUT)
{
    CLOSED_BY(semaphore_user_close) struct semaphore_user a, b, c;
    semaphore_user_open(&a, p, 0, 1);
    semaphore_user_open(&b, p, 1, 1);
    semaphore_user_open(&c, p, 2, 1);
    assert_int_equal(semaphore_user_acquire(&c, 1, OWNER_FOREVER), CLAVE_OK);
    semaphore_user_acquire(&b, 1, OWNER_FOREVER);
    semaphore_user_acquire(&a, 1, 2000);
    memnet_freeze(p, 0, true);
    semaphore_user_release(&c);
    assert_int_equal(b.n, 1);
    memnet_advance(p, 3000);
    /* It has looked at its clock before it was stopped. */
    memnet_feed_at_once(p, 0);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.err, CLAVE_EBUSY);
    memnet_freeze(p, 0, false);
}

/* Nothing but a reconnect would have made it look again, and a server that puts requests off keeps
 * the connection. */
TEST(a_limit_is_read_again_by_a_server_that_puts_it_off)
{
    CLOSED_BY(fake_close) struct fake_server f;
    clave_async_semaphore *s;
    clave_semaphore_options o = CLAVE_SEMAPHORE_OPTIONS_INIT;
    o.limit_path = "/n";
    fake_open(&f, NULL);
    fake_connect(&f, true);
    assert_int_equal(clave_async_semaphore_new(&s, f.c, "/a", &o), CLAVE_OK);
    for (int i = 0; i < 3; i++) {
        fake_expect(&f, OP_GET_DATA);
        fake_answer(&f, CLAVE_ETHROTTLED, NULL);
        fake_advance_to(&f, f.now + 999);
        assert_true(fake_is_quiet(&f));
        fake_advance_to(&f, f.now + 1);
    }
    fake_expect(&f, OP_GET_DATA);
    fake_answer(&f, CLAVE_OK,
                &(struct wire_reply){.data = clave__jbytes_n("\0\0\0\3", 4), .stat = {.mzxid = 9}});
    assert_int_equal(clave_async_semaphore_limit(s), 3);
    clave_async_semaphore_free(s);
}
