/* Several locks as one: their order, all or nothing, and what happens when one of them goes.
 * Curator's tests bear their names. */
#include "clave/async/multilock.h"
#include "lib/async_grants.h"
#include "lib/each_fault.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

enum { TIMEOUT = 6000 };

/* One owner at a multi-lock of its own. */
struct multilock_owner {
    struct memnet *p;
    clave_async_multilock *ml;
    const char *paths[3];
    size_t npaths;
    unsigned answers, departures, lost;
    clave_err err, left, why;
    char failed[64], lost_path[64];
};

static void on_event(clave_async_multilock *ml, const clave_multilock_event *ev, void *arg)
{
    struct multilock_owner *r = arg;
    assert_ptr_equal(ml, r->ml);
    r->lost++;
    r->why = ev->why;
    snprintf(r->lost_path, sizeof r->lost_path, "%s", ev->path);
}

static clave_err multilock_owner_new(struct multilock_owner *r, struct memnet *p, size_t client,
                                     const clave_multilock_part *parts, size_t n)
{
    clave_multilock_options o = {.size = sizeof o, .event_cb = on_event, .event_arg = r};
    *r = (struct multilock_owner){.p = p, .npaths = n};
    for (size_t i = 0; i < n && i < 3; i++)
        r->paths[i] = parts[i].path;
    return clave_async_multilock_new(&r->ml, p->clients[client].c, parts, n, &o);
}

static void cycle_open(struct multilock_owner *r, struct memnet *p, size_t client, const char *a,
                       const char *b, const char *c)
{
    const clave_multilock_part parts[] = {{.path = a}, {.path = b}, {.path = c}};
    assert_int_equal(multilock_owner_new(r, p, client, parts, c ? 3 : 2), CLAVE_OK);
}

static void cycle_close(struct multilock_owner *r)
{
    clave_async_multilock_free(r->ml);
    r->ml = NULL;
    memnet_settle(r->p);
}

static void on_answer(clave_async_multilock *ml, uint64_t owner, clave_err err, const char *failed,
                      void *arg)
{
    (void)ml;
    (void)owner;
    struct multilock_owner *r = arg;
    r->answers++;
    r->err = err;
    snprintf(r->failed, sizeof r->failed, "%s", failed ? failed : "");
}

static void on_departure(clave_async_multilock *ml, uint64_t owner, clave_err err,
                         const char *failed, void *arg)
{
    (void)ml;
    (void)owner;
    struct multilock_owner *r = arg;
    r->departures++;
    r->left = err;
    snprintf(r->failed, sizeof r->failed, "%s", failed ? failed : "");
}

static clave_err multilock_owner_acquire_as(struct multilock_owner *r, uint64_t owner,
                                            int64_t within_ms)
{
    int64_t deadline = within_ms == OWNER_TRY       ? CLAVE_TRY
                       : within_ms == OWNER_FOREVER ? CLAVE_NEVER
                                                    : r->p->now + within_ms;
    clave_err err = clave_async_multilock_acquire(r->ml, owner, deadline, on_answer, r);
    memnet_settle(r->p);
    return err;
}

static clave_err multilock_owner_acquire(struct multilock_owner *r, int64_t within_ms)
{
    return multilock_owner_acquire_as(r, 0, within_ms);
}

static clave_err multilock_owner_release(struct multilock_owner *r)
{
    clave_err err = clave_async_multilock_release(r->ml, 0, NULL, NULL);
    memnet_settle(r->p);
    return err;
}

/* The earliest of its locks'; INT64_MIN: it does not hold all of them. */
static int64_t multilock_owner_deadline(const struct multilock_owner *r)
{
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < r->npaths; i++) {
        struct grant_facts f;
        bool held = clave__mutex_held(clave_async_multilock_at(r->ml, r->paths[i]), 0, &f);
        first = deadline_earlier(first, held ? f.deadline : INT64_MIN);
    }
    return first;
}

static bool multilock_owner_holds(const struct multilock_owner *r)
{
    return multilock_owner_deadline(r) >= r->p->now;
}

/* ---- order ----------------------------------------------------------------------------- */

/* Named in opposite orders, they take turns: Curator's wait for each other for ever. */
TEST_CLEAN_NET(two_named_in_opposite_orders_do_not_deadlock, 2, TIMEOUT)
{
    CLOSED_BY(cycle_close) struct multilock_owner a, b;
    cycle_open(&a, p, 0, "/a", "/b", NULL);
    cycle_open(&b, p, 1, "/b", "/a", NULL);
    for (int i = 0; i < 20; i++) {
        unsigned before = b.answers;
        clave_async_multilock_acquire(a.ml, 0, CLAVE_NEVER, on_answer, &a);
        clave_async_multilock_acquire(b.ml, 0, CLAVE_NEVER, on_answer, &b);
        memnet_settle(p);
        assert_true(multilock_owner_holds(&a) != multilock_owner_holds(&b));
        struct multilock_owner *first = multilock_owner_holds(&a) ? &a : &b,
                               *second = first == &a ? &b : &a;
        assert_int_equal(multilock_owner_release(first), CLAVE_OK);
        assert_true(multilock_owner_holds(second));
        assert_true(multilock_owner_deadline(first) == INT64_MIN);
        assert_true(multilock_owner_deadline(second) > p->now);
        assert_int_equal(multilock_owner_release(second), CLAVE_OK);
        assert_int_equal(b.answers, before + 1);
    }
}

TEST_CLEAN_NET(testReentrant, 1, TIMEOUT)
{
    CLOSED_BY(cycle_close) struct multilock_owner a;
    cycle_open(&a, p, 0, "/a", "/b", "/c");
    assert_int_equal(multilock_owner_release(&a), CLAVE_ENOTHELD);
    assert_int_equal(multilock_owner_acquire(&a, OWNER_FOREVER), CLAVE_OK);
    assert_int_equal(multilock_owner_acquire(&a, OWNER_TRY), CLAVE_OK);
    assert_int_equal(a.answers, 2);
    assert_int_equal(multilock_owner_release(&a), CLAVE_OK);
    assert_true(multilock_owner_holds(&a));
    /* testReentrant2Threads */
    multilock_owner_acquire_as(&a, 7, OWNER_TRY);
    assert_int_equal(a.err, CLAVE_EBUSY);
    assert_string_equal(a.failed, "/a");
    assert_int_equal(multilock_owner_release(&a), CLAVE_OK);
    assert_false(multilock_owner_holds(&a));
    assert_int_equal(multilock_owner_release(&a), CLAVE_ENOTHELD);
}

/* ---- all or nothing --------------------------------------------------------------------- */

/* testSomeLocksFailToLock: the one in the middle is taken; nothing of the others stays, and
 * the path that failed is named. One deadline is for all. */
TEST_CLEAN_NET(testSomeLocksFailToLock, 2, TIMEOUT)
{
    CLOSED_BY(cycle_close) struct multilock_owner a;
    CLOSED_BY(owner_close) struct mutex_owner other;
    cycle_open(&a, p, 0, "/c", "/b", "/a");
    owner_open(&other, p, 1, "/b", NULL);
    owner_acquire(&other, OWNER_FOREVER);
    multilock_owner_acquire(&a, OWNER_TRY);
    assert_int_equal(a.err, CLAVE_EBUSY);
    assert_string_equal(a.failed, "/b");
    multilock_owner_acquire(&a, 1000);
    memnet_advance(p, 999);
    assert_int_equal(a.answers, 1);
    assert_int_equal(memnet_list(p, 1, "/a", NULL, 0), 1); /* it waits after what it has */
    memnet_advance(p, 1);
    assert_int_equal(a.answers, 2);
    assert_string_equal(a.failed, "/b");
    assert_int_equal(memnet_list(p, 1, "/a", NULL, 0), 0);
    assert_int_equal(memnet_list(p, 1, "/b", NULL, 0), 1);
    assert_false(multilock_owner_holds(&a));
    owner_release(&other);
    multilock_owner_acquire(&a, 1000);
    assert_true(multilock_owner_holds(&a));
}

TEST_CLEAN_NET(cancel_gives_back_what_it_has, 2, TIMEOUT)
{
    CLOSED_BY(cycle_close) struct multilock_owner a;
    CLOSED_BY(owner_close) struct mutex_owner other;
    cycle_open(&a, p, 0, "/a", "/b", NULL);
    owner_open(&other, p, 1, "/b", NULL);
    owner_acquire(&other, OWNER_FOREVER);
    multilock_owner_acquire(&a, OWNER_FOREVER);
    assert_int_equal(clave_async_multilock_acquire(a.ml, 0, CLAVE_NEVER, on_answer, &a),
                     CLAVE_EINVAL);
    assert_int_equal(clave_async_multilock_cancel(a.ml, 0), CLAVE_OK);
    assert_int_equal(a.answers, 0);
    memnet_settle(p);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.err, CLAVE_ECANCELED);
    assert_int_equal(clave_async_multilock_cancel(a.ml, 0), CLAVE_ENOTHELD);
    assert_int_equal(memnet_list(p, 1, "/a", NULL, 0), 0);
}

TEST_CLEAN_NET(freeing_it_ends_all, 2, TIMEOUT)
{
    struct multilock_owner a;
    CLOSED_BY(owner_close) struct mutex_owner other;
    cycle_open(&a, p, 0, "/a", "/b", NULL);
    owner_open(&other, p, 1, "/b", NULL);
    multilock_owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&other, OWNER_FOREVER);
    multilock_owner_acquire_as(&a, 7, OWNER_FOREVER); /* waits for its own first owner */
    cycle_close(&a);
    assert_int_equal(a.answers, 2);
    assert_int_equal(a.err, CLAVE_ECANCELED);
    assert_int_equal(a.lost, 0);
    assert_true(owner_holds(&other));
}

/* ---- losing ---------------------------------------------------------------------------- */

static void remove_node_of(struct multilock_owner *r, size_t by, const char *path)
{
    struct grant_facts g;
    char node[160];
    assert_true(clave__mutex_held(clave_async_multilock_at(r->ml, path), 0, &g));
    snprintf(node, sizeof node, "%s", g.node);
    assert_int_equal(memnet_delete(r->p, by, node), CLAVE_OK);
}

/* testSomeReleasesFail: the others are released, and the error is told with its path. */
TEST_NET(testSomeReleasesFail, 2, TIMEOUT)
{
    CLOSED_BY(cycle_close) struct multilock_owner a;
    cycle_open(&a, p, 0, "/a", "/b", "/c");
    multilock_owner_acquire(&a, OWNER_FOREVER);
    memnet_advance(p, 8000);
    remove_node_of(&a, 1, "/b");
    assert_int_equal(a.lost, 1);
    assert_string_equal(a.lost_path, "/b");
    assert_int_equal(a.why, CLAVE_ENONODE);
    assert_false(multilock_owner_holds(&a));
    assert_null(clave_async_multilock_at(a.ml, "/x"));
    assert_int_equal(clave_async_multilock_acquire(a.ml, 0, CLAVE_NEVER, on_answer, &a), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(a.err, CLAVE_ELOST);
    assert_string_equal(a.failed, "/b");
    assert_int_equal(clave_async_multilock_release(a.ml, 0, on_departure, &a), CLAVE_OK);
    assert_int_equal(a.departures, 0);
    memnet_settle(p);
    assert_int_equal(a.departures, 1);
    assert_int_equal(a.left, CLAVE_ELOST);
    assert_string_equal(a.failed, "/b");
    memnet_assert_no_leftovers(p);
    multilock_owner_acquire(&a, OWNER_FOREVER);
    assert_true(multilock_owner_holds(&a));
}

TEST_CLEAN_NET(a_release_is_confirmed_when_all_nodes_are_gone, 1, TIMEOUT)
{
    CLOSED_BY(cycle_close) struct multilock_owner a;
    cycle_open(&a, p, 0, "/a", "/b", NULL);
    multilock_owner_acquire(&a, OWNER_FOREVER);
    multilock_owner_acquire(&a, OWNER_FOREVER);
    assert_int_equal(clave_async_multilock_release(a.ml, 0, on_departure, &a), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(a.departures, 1); /* an inner one */
    assert_int_equal(memnet_stats(p).ephemerals, 2);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_DELETE, MEMNET_HOLD, 1});
    assert_int_equal(clave_async_multilock_release(a.ml, 0, on_departure, &a), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(a.departures, 1);
    memnet_clear(p);
    memnet_settle(p);
    assert_int_equal(a.departures, 2);
    assert_int_equal(a.left, CLAVE_OK);
}

/* The first lock is lost while the second is waited for: it begins anew, and never says that
 * it holds what it does not. */
TEST_CLEAN_NET(one_that_goes_while_others_are_waited_for, 3, TIMEOUT)
{
    CLOSED_BY(cycle_close) struct multilock_owner a;
    CLOSED_BY(owner_close) struct mutex_owner b, c;
    cycle_open(&a, p, 0, "/a", "/b", NULL);
    owner_open(&b, p, 1, "/b", NULL);
    owner_open(&c, p, 2, "/a", NULL);
    owner_acquire(&b, OWNER_FOREVER);
    multilock_owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&c, OWNER_FOREVER);
    memnet_advance(p, 8000);
    remove_node_of(&a, 1, "/a");
    assert_true(owner_holds(&c));
    memnet_advance(p, 500);
    owner_release(&b);
    assert_int_equal(a.answers, 0);
    owner_release(&c);
    assert_int_equal(a.answers, 1);
    assert_true(multilock_owner_holds(&a));
    assert_int_equal(a.lost, 0);
}

TEST_CLEAN_NET(testKilledSession, 1, TIMEOUT)
{
    CLOSED_BY(cycle_close) struct multilock_owner a, b;
    cycle_open(&a, p, 0, "/a", "/b", NULL);
    cycle_open(&b, p, 0, "/b", "/c", NULL);
    multilock_owner_acquire(&a, OWNER_FOREVER);
    multilock_owner_acquire(&b, OWNER_FOREVER);
    memnet_kill_session(p, 0);
    memnet_advance(p, 5000);
    assert_int_equal(a.lost, 2);
    assert_int_equal(a.why, CLAVE_EEXPIRED);
    assert_true(multilock_owner_holds(&b));
    assert_int_equal(b.answers, 1);
    assert_int_equal(multilock_owner_release(&a), CLAVE_ELOST);
}

TEST_CLEAN_NET(closing_the_client_ends_all, 2, TIMEOUT)
{
    CLOSED_BY(cycle_close) struct multilock_owner a;
    CLOSED_BY(owner_close) struct mutex_owner other;
    cycle_open(&a, p, 0, "/a", "/b", NULL);
    owner_open(&other, p, 1, "/b", NULL);
    owner_acquire(&other, OWNER_FOREVER);
    multilock_owner_acquire(&a, OWNER_FOREVER);
    clave_async_client_close(p->clients[0].c, p->now);
    memnet_settle(p);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.err, CLAVE_ECLOSED);
    assert_int_equal(clave_async_multilock_acquire(a.ml, 0, CLAVE_NEVER, on_answer, &a),
                     CLAVE_ECLOSED);
}

/* ---- other kinds ----------------------------------------------------------------------- */

TEST_CLEAN_NET(read_and_write_locks_can_be_parts, 2, TIMEOUT)
{
    CLOSED_BY(cycle_close) struct multilock_owner a;
    CLOSED_BY(rwlock_owner_close) struct rwlock_owner rw;
    const clave_multilock_part parts[] = {{"/rw", CLAVE_MULTILOCK_READ}, {.path = "/a"}};
    assert_int_equal(multilock_owner_new(&a, p, 0, parts, 2), CLAVE_OK);
    rwlock_owner_open(&rw, p, 1, "/rw", NULL);
    owner_acquire(&rw.read, OWNER_FOREVER);
    multilock_owner_acquire(&a, OWNER_TRY);
    assert_true(multilock_owner_holds(&a));
    multilock_owner_release(&a);
    owner_release(&rw.read);
    owner_acquire(&rw.write, OWNER_FOREVER);
    multilock_owner_acquire(&a, OWNER_TRY);
    assert_int_equal(a.err, CLAVE_EBUSY);
    assert_string_equal(a.failed, "/rw");
}

TEST_NET(arguments_are_checked, 1, TIMEOUT)
{
    clave_async_client *c = p->clients[0].c;
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
}

/* ---- faults ---------------------------------------------------------------------------- */

TEST_EACH_LOSS(any_message_may_be_lost_once, 2, TIMEOUT, 4)
{
    struct multilock_owner a, b;
    cycle_open(&a, p, 0, "/a", "/b", NULL);
    cycle_open(&b, p, 1, "/c", "/b", "/a");
    memnet_rule(p, loss);
    multilock_owner_acquire(&a, OWNER_FOREVER);
    memnet_advance(p, 3000);
    multilock_owner_acquire(&b, OWNER_FOREVER);
    memnet_advance(p, 3000);
    assert_true(multilock_owner_holds(&a));
    assert_false(multilock_owner_holds(&b));
    assert_int_equal(multilock_owner_release(&a), CLAVE_OK);
    memnet_advance(p, 3000);
    assert_true(multilock_owner_holds(&b));
    assert_int_equal(multilock_owner_release(&b), CLAVE_OK);
    memnet_advance(p, 3000);
    assert_int_equal(a.answers + b.answers, 2);
    assert_int_equal(a.lost + b.lost, 0);
    memnet_assert_no_leftovers(p);
    cycle_close(&a);
    cycle_close(&b);
}

TEST_EACH_ALLOCATION(every_allocation_may_fail_once, 40)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_on(mem, 1, TIMEOUT);
    struct multilock_owner a;
    const clave_multilock_part parts[] = {{.path = "/b"}, {.path = "/a"}};
    failmem_arm(mem, which, 1);
    clave_err err = multilock_owner_new(&a, p, 0, parts, 2);
    assert_true(err == CLAVE_OK || err == CLAVE_ENOMEM);
    if (err == CLAVE_OK) {
        err = multilock_owner_acquire(&a, 5000);
        memnet_advance(p, 6000);
        assert_true(err == CLAVE_OK || err == CLAVE_ENOMEM);
        assert_int_equal(a.answers, err == CLAVE_OK);
        assert_int_equal(multilock_owner_holds(&a), a.answers && a.err == CLAVE_OK);
        if (multilock_owner_holds(&a)) {
            err = clave_async_multilock_release(a.ml, 0, on_departure, &a);
            memnet_advance(p, 3000);
            assert_int_equal(a.departures, err == CLAVE_OK);
        }
        cycle_close(&a);
    }
    memnet_advance(p, 3000);
    failmem_disarm(mem);
    assert_int_equal(memnet_stats(p).ephemerals, 0);
}
