/* Several locks as one: their order, all or nothing, and what happens when one of them goes.
 * Curator's tests bear their names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "clave/async/multilock.h"
#include "lib/failmem.h"
#include "lib/mutex_owner.h"

enum { TIMEOUT = 6000 };

/* One owner at a multi-lock of its own. */
struct ring {
    struct pair *p;
    clave_async_multilock *ml;
    unsigned answers, departures, lost;
    clave_err err, left, why;
    char failed[64], lost_path[64];
};

static struct pair *world(size_t clients)
{
    return pair_new(&(struct pair_options){.clients = clients, .timeout_ms = TIMEOUT});
}

static void assert_no_leftovers(struct pair *p)
{
    struct server_stats stats = pair_stats(p);
    assert_int_equal(stats.watches, 0);
    assert_int_equal(stats.ephemerals, 0);
}

static void on_event(clave_async_multilock *ml, const clave_multilock_event *ev, void *arg)
{
    struct ring *r = arg;
    assert_ptr_equal(ml, r->ml);
    r->lost++;
    r->why = ev->why;
    snprintf(r->lost_path, sizeof r->lost_path, "%s", ev->path);
}

static clave_err ring_new(struct ring *r, struct pair *p, size_t client,
                          const clave_multilock_part *parts, size_t n)
{
    clave_multilock_options o = {.size = sizeof o, .event_cb = on_event, .event_arg = r};
    *r = (struct ring){.p = p};
    return clave_async_multilock_new(&r->ml, p->end[client].c, parts, n, &o);
}

static void ring_open(struct ring *r, struct pair *p, size_t client, const char *a, const char *b,
                      const char *c)
{
    const clave_multilock_part parts[] = {{.path = a}, {.path = b}, {.path = c}};
    assert_int_equal(ring_new(r, p, client, parts, c ? 3 : 2), CLAVE_OK);
}

static void ring_close(struct ring *r)
{
    clave_async_multilock_free(r->ml);
    r->ml = NULL;
    pair_settle(r->p);
}

static void on_answer(clave_async_multilock *ml, uint64_t owner, clave_err err, const char *failed,
                      void *arg)
{
    (void)ml;
    (void)owner;
    struct ring *r = arg;
    r->answers++;
    r->err = err;
    snprintf(r->failed, sizeof r->failed, "%s", failed ? failed : "");
}

static void on_departure(clave_async_multilock *ml, uint64_t owner, clave_err err,
                         const char *failed, void *arg)
{
    (void)ml;
    (void)owner;
    struct ring *r = arg;
    r->departures++;
    r->left = err;
    snprintf(r->failed, sizeof r->failed, "%s", failed ? failed : "");
}

static clave_err ring_acquire_as(struct ring *r, uint64_t owner, int64_t within_ms)
{
    int64_t deadline = within_ms == SEAT_TRY    ? CLAVE_TRY
                       : within_ms == SEAT_EVER ? CLAVE_NEVER
                                                : r->p->now + within_ms;
    clave_err err = clave_async_multilock_acquire(r->ml, owner, deadline, on_answer, r);
    pair_settle(r->p);
    return err;
}

static clave_err ring_acquire(struct ring *r, int64_t within_ms)
{
    return ring_acquire_as(r, 0, within_ms);
}

static clave_err ring_release(struct ring *r)
{
    clave_err err = clave_async_multilock_release(r->ml, 0, NULL, NULL);
    pair_settle(r->p);
    return err;
}

static bool ring_holds(const struct ring *r)
{
    return clave_async_multilock_valid_for(r->ml, 0, r->p->now, 0);
}

/* ---- order ----------------------------------------------------------------------------- */

/* Named in opposite orders, they take turns: Curator's wait for each other for ever. */
static void two_named_in_opposite_orders_do_not_deadlock(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct ring a, b;
    ring_open(&a, p, 0, "/a", "/b", NULL);
    ring_open(&b, p, 1, "/b", "/a", NULL);
    for (int i = 0; i < 20; i++) {
        unsigned before = b.answers;
        clave_async_multilock_acquire(a.ml, 0, CLAVE_NEVER, on_answer, &a);
        clave_async_multilock_acquire(b.ml, 0, CLAVE_NEVER, on_answer, &b);
        pair_settle(p);
        assert_true(ring_holds(&a) != ring_holds(&b));
        struct ring *first = ring_holds(&a) ? &a : &b, *second = first == &a ? &b : &a;
        assert_int_equal(ring_release(first), CLAVE_OK);
        assert_true(ring_holds(second));
        assert_true(clave_async_multilock_deadline(first->ml, 0) == INT64_MIN);
        int64_t deadline = clave_async_multilock_deadline(second->ml, 0);
        assert_true(clave_async_multilock_valid_for(second->ml, 0, deadline, 0));
        assert_false(clave_async_multilock_valid_for(second->ml, 0, deadline, 1));
        assert_int_equal(ring_release(second), CLAVE_OK);
        assert_int_equal(b.answers, before + 1);
    }
    ring_close(&a);
    ring_close(&b);
    assert_no_leftovers(p);
    pair_free(p);
}

static void testReentrant(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct ring a;
    ring_open(&a, p, 0, "/a", "/b", "/c");
    assert_int_equal(ring_release(&a), CLAVE_ENOTHELD);
    assert_int_equal(ring_acquire(&a, SEAT_EVER), CLAVE_OK);
    assert_int_equal(ring_acquire(&a, SEAT_TRY), CLAVE_OK);
    assert_int_equal(a.answers, 2);
    assert_int_equal(ring_release(&a), CLAVE_OK);
    assert_true(ring_holds(&a));
    /* testReentrant2Threads */
    ring_acquire_as(&a, 7, SEAT_TRY);
    assert_int_equal(a.err, CLAVE_EBUSY);
    assert_string_equal(a.failed, "/a");
    assert_int_equal(ring_release(&a), CLAVE_OK);
    assert_false(ring_holds(&a));
    assert_int_equal(ring_release(&a), CLAVE_ENOTHELD);
    ring_close(&a);
    assert_no_leftovers(p);
    pair_free(p);
}

/* ---- all or nothing --------------------------------------------------------------------- */

/* testSomeLocksFailToLock: the one in the middle is taken; nothing of the others stays, and
 * the path that failed is named. One deadline is for all. */
static void testSomeLocksFailToLock(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct ring a;
    struct seat other;
    ring_open(&a, p, 0, "/c", "/b", "/a");
    seat_open(&other, p, 1, "/b", NULL);
    seat_acquire(&other, SEAT_EVER);
    ring_acquire(&a, SEAT_TRY);
    assert_int_equal(a.err, CLAVE_EBUSY);
    assert_string_equal(a.failed, "/b");
    ring_acquire(&a, 1000);
    pair_advance(p, 999);
    assert_int_equal(a.answers, 1);
    assert_int_equal(seat_list(p, 1, "/a", NULL, 0), 1); /* it waits behind what it has */
    pair_advance(p, 1);
    assert_int_equal(a.answers, 2);
    assert_string_equal(a.failed, "/b");
    assert_int_equal(seat_list(p, 1, "/a", NULL, 0), 0);
    assert_int_equal(seat_list(p, 1, "/b", NULL, 0), 1);
    assert_false(ring_holds(&a));
    seat_release(&other);
    ring_acquire(&a, 1000);
    assert_true(ring_holds(&a));
    ring_close(&a);
    seat_close(&other);
    assert_no_leftovers(p);
    pair_free(p);
}

static void cancel_gives_back_what_it_has(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct ring a;
    struct seat other;
    ring_open(&a, p, 0, "/a", "/b", NULL);
    seat_open(&other, p, 1, "/b", NULL);
    seat_acquire(&other, SEAT_EVER);
    ring_acquire(&a, SEAT_EVER);
    assert_int_equal(clave_async_multilock_acquire(a.ml, 0, CLAVE_NEVER, on_answer, &a),
                     CLAVE_EINVAL);
    assert_int_equal(clave_async_multilock_cancel(a.ml, 0), CLAVE_OK);
    assert_int_equal(a.answers, 0);
    pair_settle(p);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.err, CLAVE_ECANCELED);
    assert_int_equal(clave_async_multilock_cancel(a.ml, 0), CLAVE_ENOTHELD);
    assert_int_equal(seat_list(p, 1, "/a", NULL, 0), 0);
    ring_close(&a);
    seat_close(&other);
    assert_no_leftovers(p);
    pair_free(p);
}

static void freeing_it_ends_all(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct ring a;
    struct seat other;
    ring_open(&a, p, 0, "/a", "/b", NULL);
    seat_open(&other, p, 1, "/b", NULL);
    ring_acquire(&a, SEAT_EVER);
    seat_acquire(&other, SEAT_EVER);
    ring_acquire_as(&a, 7, SEAT_EVER); /* waits for its own first owner */
    ring_close(&a);
    assert_int_equal(a.answers, 2);
    assert_int_equal(a.err, CLAVE_ECANCELED);
    assert_int_equal(a.lost, 0);
    assert_true(seat_holds(&other));
    seat_close(&other);
    assert_no_leftovers(p);
    pair_free(p);
}

/* ---- losing ---------------------------------------------------------------------------- */

static void remove_node_of(struct ring *r, size_t by, const char *path)
{
    clave_grant g;
    char node[160];
    assert_true(clave_async_mutex_grant(clave_async_multilock_at(r->ml, path), 0, &g));
    snprintf(node, sizeof node, "%s", g.node);
    assert_int_equal(seat_remove(r->p, by, node), CLAVE_OK);
}

/* testSomeReleasesFail: the others are released, and the error is told with its path. */
static void testSomeReleasesFail(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct ring a;
    ring_open(&a, p, 0, "/a", "/b", "/c");
    ring_acquire(&a, SEAT_EVER);
    pair_advance(p, 8000);
    remove_node_of(&a, 1, "/b");
    assert_int_equal(a.lost, 1);
    assert_string_equal(a.lost_path, "/b");
    assert_int_equal(a.why, CLAVE_ENONODE);
    assert_false(ring_holds(&a));
    assert_null(clave_async_multilock_at(a.ml, "/x"));
    assert_int_equal(clave_async_multilock_acquire(a.ml, 0, CLAVE_NEVER, on_answer, &a), CLAVE_OK);
    pair_settle(p);
    assert_int_equal(a.err, CLAVE_ELOST);
    assert_string_equal(a.failed, "/b");
    assert_int_equal(clave_async_multilock_release(a.ml, 0, on_departure, &a), CLAVE_OK);
    assert_int_equal(a.departures, 0);
    pair_settle(p);
    assert_int_equal(a.departures, 1);
    assert_int_equal(a.left, CLAVE_ELOST);
    assert_string_equal(a.failed, "/b");
    assert_no_leftovers(p);
    ring_acquire(&a, SEAT_EVER);
    assert_true(ring_holds(&a));
    ring_close(&a);
    pair_free(p);
}

static void a_release_is_confirmed_when_all_nodes_are_gone(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct ring a;
    ring_open(&a, p, 0, "/a", "/b", NULL);
    ring_acquire(&a, SEAT_EVER);
    ring_acquire(&a, SEAT_EVER);
    assert_int_equal(clave_async_multilock_release(a.ml, 0, on_departure, &a), CLAVE_OK);
    pair_settle(p);
    assert_int_equal(a.departures, 1); /* an inner one */
    assert_int_equal(pair_stats(p).ephemerals, 2);
    pair_rule(p, (struct pair_rule){0, PAIR_REPLY, OP_DELETE, PAIR_HOLD, 1});
    assert_int_equal(clave_async_multilock_release(a.ml, 0, on_departure, &a), CLAVE_OK);
    pair_settle(p);
    assert_int_equal(a.departures, 1);
    pair_clear(p);
    pair_settle(p);
    assert_int_equal(a.departures, 2);
    assert_int_equal(a.left, CLAVE_OK);
    ring_close(&a);
    assert_no_leftovers(p);
    pair_free(p);
}

/* The first lock is lost while the second is waited for: it begins anew, and never says that
 * it holds what it does not. */
static void one_that_goes_while_others_are_waited_for(void **state)
{
    (void)state;
    struct pair *p = world(3);
    struct ring a;
    struct seat b, c;
    ring_open(&a, p, 0, "/a", "/b", NULL);
    seat_open(&b, p, 1, "/b", NULL);
    seat_open(&c, p, 2, "/a", NULL);
    seat_acquire(&b, SEAT_EVER);
    ring_acquire(&a, SEAT_EVER);
    seat_acquire(&c, SEAT_EVER);
    pair_advance(p, 8000);
    remove_node_of(&a, 1, "/a");
    assert_true(seat_holds(&c));
    pair_advance(p, 500);
    seat_release(&b);
    assert_int_equal(a.answers, 0);
    seat_release(&c);
    assert_int_equal(a.answers, 1);
    assert_true(ring_holds(&a));
    assert_int_equal(a.lost, 0);
    ring_close(&a);
    seat_close(&b);
    seat_close(&c);
    assert_no_leftovers(p);
    pair_free(p);
}

static void testKilledSession(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct ring a, b;
    ring_open(&a, p, 0, "/a", "/b", NULL);
    ring_open(&b, p, 0, "/b", "/c", NULL);
    ring_acquire(&a, SEAT_EVER);
    ring_acquire(&b, SEAT_EVER);
    pair_kill_session(p, 0);
    pair_advance(p, 5000);
    assert_int_equal(a.lost, 2);
    assert_int_equal(a.why, CLAVE_EEXPIRED);
    assert_true(ring_holds(&b));
    assert_int_equal(b.answers, 1);
    assert_int_equal(ring_release(&a), CLAVE_ELOST);
    ring_close(&a);
    ring_close(&b);
    assert_no_leftovers(p);
    pair_free(p);
}

static void closing_the_client_ends_all(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct ring a;
    struct seat other;
    ring_open(&a, p, 0, "/a", "/b", NULL);
    seat_open(&other, p, 1, "/b", NULL);
    seat_acquire(&other, SEAT_EVER);
    ring_acquire(&a, SEAT_EVER);
    clave_async_client_close(p->end[0].c, p->now);
    pair_settle(p);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.err, CLAVE_ECLOSED);
    assert_int_equal(clave_async_multilock_acquire(a.ml, 0, CLAVE_NEVER, on_answer, &a),
                     CLAVE_ECLOSED);
    ring_close(&a);
    seat_close(&other);
    assert_no_leftovers(p);
    pair_free(p);
}

/* ---- other kinds ----------------------------------------------------------------------- */

static void read_and_write_locks_can_be_parts(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct ring a;
    struct seats rw;
    const clave_multilock_part parts[] = {{"/rw", CLAVE_MULTILOCK_READ}, {.path = "/a"}};
    assert_int_equal(ring_new(&a, p, 0, parts, 2), CLAVE_OK);
    seats_open(&rw, p, 1, "/rw", NULL);
    seat_acquire(&rw.read, SEAT_EVER);
    ring_acquire(&a, SEAT_TRY);
    assert_true(ring_holds(&a));
    ring_release(&a);
    seat_release(&rw.read);
    seat_acquire(&rw.write, SEAT_EVER);
    ring_acquire(&a, SEAT_TRY);
    assert_int_equal(a.err, CLAVE_EBUSY);
    assert_string_equal(a.failed, "/rw");
    ring_close(&a);
    seats_close(&rw);
    assert_no_leftovers(p);
    pair_free(p);
}

static void arguments_are_checked(void **state)
{
    (void)state;
    struct pair *p = world(1);
    clave_async_client *c = p->end[0].c;
    clave_async_multilock *ml;
    const clave_multilock_part twice[] = {{.path = "/a"}, {.path = "/b"}, {.path = "/a"}};
    const clave_multilock_part odd[] = {{"/a", (clave_multilock_kind)9}};
    const clave_multilock_part bad[] = {{.path = "/a"}, {.path = "b"}};
    assert_int_equal(clave_async_multilock_new(&ml, c, twice, 0, NULL), CLAVE_EINVAL);
    assert_int_equal(clave_async_multilock_new(&ml, c, twice, 3, NULL), CLAVE_EINVAL);
    assert_int_equal(clave_async_multilock_new(&ml, c, odd, 1, NULL), CLAVE_EINVAL);
    assert_int_equal(clave_async_multilock_new(&ml, c, bad, 2, NULL), CLAVE_EPATH);
    clave_multilock_options o = {.size = 1};
    assert_int_equal(clave_async_multilock_new(&ml, c, twice, 2, &o), CLAVE_EINVAL);
    assert_null(ml);
    clave_async_multilock_free(NULL);
    pair_free(p);
}

/* ---- faults ---------------------------------------------------------------------------- */

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
    for (size_t i = 0; i < sizeof ops / sizeof *ops * 4 * 2 * 4; i++) {
        struct pair *p = world(2);
        struct ring a, b;
        ring_open(&a, p, 0, "/a", "/b", NULL);
        ring_open(&b, p, 1, "/c", "/b", "/a");
        pair_rule(p, (struct pair_rule){i % 2, ways[i / 2 % 4].way, ops[i / 32],
                                        ways[i / 2 % 4].fate, (unsigned)(i / 8 % 4)});
        ring_acquire(&a, SEAT_EVER);
        pair_advance(p, 3000);
        ring_acquire(&b, SEAT_EVER);
        pair_advance(p, 3000);
        assert_true(ring_holds(&a));
        assert_false(ring_holds(&b));
        assert_int_equal(ring_release(&a), CLAVE_OK);
        pair_advance(p, 3000);
        assert_true(ring_holds(&b));
        assert_int_equal(ring_release(&b), CLAVE_OK);
        pair_advance(p, 3000);
        assert_int_equal(a.answers + b.answers, 2);
        assert_int_equal(a.lost + b.lost, 0);
        assert_no_leftovers(p);
        ring_close(&a);
        ring_close(&b);
        pair_free(p);
    }
}

static bool one_allocation_fails(size_t which)
{
    struct failmem mem;
    failmem_init(&mem);
    struct pair *p =
        pair_new(&(struct pair_options){.clients = 1, .timeout_ms = TIMEOUT, .mem = &mem.mem});
    struct ring a;
    const clave_multilock_part parts[] = {{.path = "/b"}, {.path = "/a"}};
    failmem_arm(&mem, which, 1);
    clave_err err = ring_new(&a, p, 0, parts, 2);
    assert_true(err == CLAVE_OK || err == CLAVE_ENOMEM);
    if (err == CLAVE_OK) {
        err = ring_acquire(&a, 5000);
        pair_advance(p, 6000);
        assert_true(err == CLAVE_OK || err == CLAVE_ENOMEM);
        assert_int_equal(a.answers, err == CLAVE_OK);
        assert_int_equal(ring_holds(&a), a.answers && a.err == CLAVE_OK);
        if (ring_holds(&a)) {
            err = clave_async_multilock_release(a.ml, 0, on_departure, &a);
            pair_advance(p, 3000);
            assert_int_equal(a.departures, err == CLAVE_OK);
        }
        ring_close(&a);
    }
    pair_advance(p, 3000);
    bool failed = mem.failed;
    failmem_arm(&mem, 0, 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_named_in_opposite_orders_do_not_deadlock),
        cmocka_unit_test(testReentrant),
        cmocka_unit_test(testSomeLocksFailToLock),
        cmocka_unit_test(cancel_gives_back_what_it_has),
        cmocka_unit_test(freeing_it_ends_all),
        cmocka_unit_test(testSomeReleasesFail),
        cmocka_unit_test(a_release_is_confirmed_when_all_nodes_are_gone),
        cmocka_unit_test(one_that_goes_while_others_are_waited_for),
        cmocka_unit_test(testKilledSession),
        cmocka_unit_test(closing_the_client_ends_all),
        cmocka_unit_test(read_and_write_locks_can_be_parts),
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(any_message_may_be_lost_once),
        cmocka_unit_test(every_allocation_may_fail_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
