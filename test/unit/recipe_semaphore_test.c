/* The counting semaphore when nothing fails: never above the limit, in the order of arrival,
 * all or nothing, and a limit that changes. Curator's tests of InterProcessSemaphoreV2 and
 * InterProcessSemaphoreMutex bear their names. */
#include "lib/async_grants.h"
#include "lib/semaphore_user.h"
#include "lib/unit.h"

static struct memnet *world(size_t clients)
{
    return memnet_new(&(struct memnet_options){.clients = clients});
}

/* ---- the limit ------------------------------------------------------------------------- */

TEST(testSimple)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(1);
    CLOSED_BY(semaphore_user_close) struct semaphore_user a;
    semaphore_user_open(&a, p, 0, 1);
    semaphore_user_acquire(&a, 1, OWNER_FOREVER);
    assert_int_equal(a.n, 1);
    semaphore_user_acquire(&a, 1, 2000);
    memnet_advance(p, 2000);
    assert_int_equal(a.answers, 2);
    assert_int_equal(a.err, CLAVE_EBUSY);
    assert_int_equal(semaphore_user_leases_at_server(p), 1);
    assert_int_equal(memnet_list(p, 0, "/s/locks", NULL, 0), 0);
    assert_int_equal(semaphore_user_release(&a), CLAVE_OK);
}

TEST(testSimple2)
{
    enum { MAX = 3 };
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(1);
    CLOSED_BY(semaphore_user_close) struct semaphore_user a;
    semaphore_user_open(&a, p, 0, MAX);
    for (int i = 0; i < MAX; i++)
        semaphore_user_acquire(&a, 1, 5000);
    assert_int_equal(a.n, MAX);
    semaphore_user_acquire(&a, 1, OWNER_TRY);
    assert_int_equal(a.err, CLAVE_EBUSY);
    semaphore_user_release(&a);
    semaphore_user_acquire(&a, 1, OWNER_TRY);
    assert_int_equal(a.err, CLAVE_OK);
    assert_int_equal(a.n, MAX);
}

/* Two flights, and the gate is left without waiting. */
TEST(acquire_costs_two_flights)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(1);
    CLOSED_BY(semaphore_user_close) struct semaphore_user a;
    semaphore_user_open(&a, p, 0, 2);
    semaphore_user_acquire(&a, 1, OWNER_FOREVER); /* makes the parents */
    memnet_reset_counts(p);
    semaphore_user_acquire(&a, 1, OWNER_FOREVER);
    assert_int_equal(a.n, 2);
    assert_int_equal(p->clients[0].requests[OP_CREATE2], 2);
    assert_int_equal(p->clients[0].requests[OP_GET_CHILDREN2], 2);
    assert_int_equal(p->clients[0].requests[OP_DELETE], 1);
    assert_int_equal(memnet_requests(p, 0), 5);
}

/* testThreads, testMaxPerSession: a random mix never stands above the limit, and whoever
 * comes first is served first. */
TEST(testThreads)
{
    enum { N = 6, MAX = 3 };
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(N);
    struct semaphore_user a[N];
    unsigned granted = 0;
    srand(7);
    for (size_t i = 0; i < N; i++)
        semaphore_user_open(&a[i], p, i, MAX);
    unsigned asked[N] = {0};
    for (int step = 0; step < 1500; step++) {
        size_t i = (size_t)rand() % N;
        if (asked[i] == a[i].answers && a[i].n == 0) {
            semaphore_user_acquire(&a[i], 1 + (size_t)rand() % MAX, OWNER_FOREVER);
            asked[i]++;
        } else if (a[i].n > 0) {
            semaphore_user_release(&a[i]);
        }
        size_t held = 0;
        for (size_t k = 0; k < N; k++)
            held += a[k].n;
        assert_true(held <= MAX);
        assert_true(semaphore_user_leases_at_server(p) <= MAX + 1);
    }
    for (size_t i = 0; i < N; i++)
        granted += a[i].answers;
    assert_true(granted > 100);
    for (size_t i = 0; i < N; i++)
        semaphore_user_close(&a[i]);
}

TEST(the_order_of_arrival_decides)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(4);
    struct semaphore_user a[4];
    for (size_t i = 0; i < 4; i++)
        semaphore_user_open(&a[i], p, i, 2);
    semaphore_user_acquire(&a[0], 2, OWNER_FOREVER);
    semaphore_user_acquire(&a[1], 2, OWNER_FOREVER); /* wants more than there will be at first */
    semaphore_user_acquire(&a[2], 1, OWNER_FOREVER);
    semaphore_user_acquire(&a[3], 1, OWNER_FOREVER);
    assert_int_equal(a[0].queued, 0);
    assert_int_equal(a[1].ahead, 0); /* at the gate */
    assert_int_equal(a[2].ahead, 1);
    assert_int_equal(a[3].ahead, 2);
    semaphore_user_release(&a[0]);
    assert_int_equal(a[1].n + a[2].n + a[3].n, 0); /* all or nothing, and nobody overtakes */
    semaphore_user_release(&a[0]);
    assert_int_equal(a[1].n, 2);
    semaphore_user_release(&a[1]);
    assert_int_equal(a[2].n, 1);
    assert_int_equal(a[3].n, 0);
    semaphore_user_release(&a[2]);
    assert_int_equal(a[3].n, 1);
    for (size_t i = 0; i < 4; i++)
        semaphore_user_close(&a[i]);
}

/* Only the one at the gate hears of leases that go. */
TEST(waiting_is_no_herd)
{
    enum { N = 8 };
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(N);
    struct semaphore_user a[N];
    for (size_t i = 0; i < N; i++) {
        semaphore_user_open(&a[i], p, i, 1);
        semaphore_user_acquire(&a[i], 1, OWNER_FOREVER);
    }
    memnet_reset_counts(p);
    for (size_t i = 0; i < N; i++)
        p->clients[i].events = 0;
    semaphore_user_release(&a[0]);
    assert_int_equal(a[1].n, 1);
    for (size_t i = 4; i < N; i++) {
        assert_int_equal(p->clients[i].events, 0);
        assert_int_equal(memnet_requests(p, i), 0);
    }
    for (size_t i = 0; i < N; i++)
        semaphore_user_close(&a[i]);
}

TEST(testReleaseInChunks)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(2);
    CLOSED_BY(semaphore_user_close) struct semaphore_user a, b;
    semaphore_user_open(&a, p, 0, 11);
    semaphore_user_open(&b, p, 1, 11);
    semaphore_user_acquire(&a, 10, OWNER_FOREVER);
    assert_int_equal(a.n, 10);
    semaphore_user_acquire(&b, 5, OWNER_FOREVER);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(b.n, 0);
        semaphore_user_release(&a);
    }
    assert_int_equal(b.n, 5);
    assert_int_equal(a.n, 6);
    /* testRelease1AtATime */
    while (a.n > 0)
        assert_int_equal(semaphore_user_release(&a), CLAVE_OK);
    while (b.n > 0)
        assert_int_equal(semaphore_user_release(&b), CLAVE_OK);
    assert_int_equal(semaphore_user_leases_at_server(p), 0);
}

/* TestInterProcessSemaphoreMutex: not reentrant, and whoever has the lease may release it. */
TEST(a_semaphore_of_one_is_a_mutex_that_is_not_reentrant)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world(2);
    CLOSED_BY(semaphore_user_close) struct semaphore_user a, b;
    semaphore_user_open(&a, p, 0, 1);
    semaphore_user_open(&b, p, 1, 1);
    semaphore_user_acquire(&a, 1, OWNER_FOREVER);
    semaphore_user_acquire(&a, 1, OWNER_TRY);
    assert_int_equal(a.err, CLAVE_EBUSY);
    semaphore_user_acquire(&b, 1, OWNER_FOREVER);
    assert_int_equal(b.n, 0);
    struct grant_facts first, second;
    assert_true(clave__lease_held(a.held[0], &first));
    semaphore_user_release(&a);
    assert_int_equal(b.n, 1);
    assert_true(clave__lease_held(b.held[0], &second));
    assert_true(second.token > first.token);
    assert_true(lease_valid_for(b.held[0], p->now, 1000));
    assert_false(lease_valid_for(b.held[0], second.deadline, 1));
}

static void on_count(clave_async_client *c, clave_err err, const clave_participant *list, size_t n,
                     void *arg)
{
    (void)c;
    assert_int_equal(err, CLAVE_OK);
    if (n > 0)
        assert_non_null(strstr(list[0].node, "-lease-"));
    *(size_t *)arg = n;
}

TEST(testGetParticipantNodes)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world(1);
    CLOSED_BY(semaphore_user_close) struct semaphore_user a;
    size_t n = 99;
    semaphore_user_open(&a, p, 0, 10);
    for (size_t held = 0; held <= 4; held += 4) {
        assert_int_equal(clave_async_semaphore_participants(p->clients[0].c, "/s", on_count, &n),
                         CLAVE_OK);
        memnet_settle(p);
        assert_int_equal(n, held);
        semaphore_user_acquire(&a, 4, OWNER_FOREVER);
    }
}

/* ---- tries ----------------------------------------------------------------------------- */

/* `n` processes try at once, of which `waiting` wait instead; returns how many were refused. */
static size_t try_at_once(size_t n, size_t waiting, uint32_t limit)
{
    struct semaphore_user u[MEMNET_CLIENTS];
    struct memnet *p = world(n);
    size_t refused = 0, held = 0;
    memnet_settle(p);
    for (size_t i = 0; i < n; i++)
        semaphore_user_open(&u[i], p, i, limit);
    for (size_t i = 0; i < n; i++)
        semaphore_user_begin_acquire(&u[i], 1, 1, i < waiting ? 5000 : OWNER_TRY);
    memnet_settle(p);
    for (size_t i = 0; i < n; i++) {
        refused += u[i].err == CLAVE_EBUSY;
        held += u[i].n;
    }
    assert_int_equal(semaphore_user_leases_at_server(p), held);
    assert_true(held <= limit);
    for (size_t i = 0; i < n; i++)
        semaphore_user_close(&u[i]);
    memnet_assert_no_leftovers(p);
    memnet_free(p);
    return refused;
}

TEST(tries_do_not_refuse_each_other_while_there_is_room)
{
    assert_int_equal(try_at_once(20, 0, 20), 0);
    assert_int_equal(try_at_once(21, 0, 20), 1);
    assert_int_equal(try_at_once(20, 10, 20), 0);
    assert_int_equal(try_at_once(20, 19, 20), 0);
    assert_int_equal(try_at_once(2, 0, 1), 1);
}

static const char *why(const struct semaphore_user *u)
{
    return clave_async_client_errmsg(u->p->clients[u->client].c);
}

/* A place whose owner never goes on takes no more than its own. */
TEST(a_dead_waiter_keeps_no_try_from_what_is_free)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(2);
    CLOSED_BY(semaphore_user_close) struct semaphore_user dead, a;
    semaphore_user_open(&dead, p, 0, 3);
    semaphore_user_open(&a, p, 1, 3);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_CREATE2, MEMNET_HOLD, 1});
    semaphore_user_acquire(&dead, 1, OWNER_FOREVER);
    assert_int_equal(memnet_list(p, 1, "/s/locks", NULL, 0), 1);
    semaphore_user_acquire(&a, 1, OWNER_TRY);
    semaphore_user_acquire(&a, 1, OWNER_TRY);
    assert_int_equal(a.n, 2);
    assert_int_equal(memnet_list(p, 1, "/s/leases", NULL, 0), 2);
    semaphore_user_acquire(&a, 1, OWNER_TRY);
    assert_int_equal(a.err, CLAVE_EBUSY);
    assert_string_equal(why(&a), "/s was not acquired: 2 owners, 1 before it");
    memnet_clear(p);
    memnet_settle(p);
    assert_int_equal(dead.n, 1);
}

/* The first waiter has a lease beyond the limit beside its place, and is counted once. */
TEST(a_refused_try_says_who_is_in_the_way)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(4);
    struct semaphore_user u[4];
    for (size_t i = 0; i < 4; i++)
        semaphore_user_open(&u[i], p, i, 3);
    semaphore_user_acquire(&u[0], 3, OWNER_FOREVER);
    semaphore_user_acquire(&u[1], 2, OWNER_FOREVER);
    semaphore_user_acquire(&u[2], 1, OWNER_FOREVER);
    semaphore_user_acquire(&u[3], 1, OWNER_TRY);
    assert_int_equal(u[3].err, CLAVE_EBUSY);
    assert_string_equal(why(&u[3]), "/s was not acquired: 3 owners, 2 before it");
    /* It made nothing at the server. */
    assert_int_equal(p->clients[3].requests[OP_CREATE2], 0);
    for (size_t i = 0; i < 4; i++)
        semaphore_user_close(&u[i]);
}

/* What it asked for is still to be answered. */
TEST(a_try_may_be_given_up_while_it_counts)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(1);
    struct semaphore_user a;
    semaphore_user_open(&a, p, 0, 1);
    memnet_settle(p);
    semaphore_user_begin_acquire(&a, 1, 1, OWNER_TRY);
    assert_int_equal(clave_async_semaphore_cancel(a.s, 1), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.err, CLAVE_ECANCELED);
    semaphore_user_begin_acquire(&a, 1, 1, OWNER_TRY);
    semaphore_user_close(&a);
    assert_int_equal(a.answers, 2);
    assert_int_equal(semaphore_user_leases_at_server(p), 0);
}

/* A lease made between the count and the try's own. */
TEST(a_try_counts_again_when_it_was_overtaken)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(2);
    CLOSED_BY(semaphore_user_close) struct semaphore_user a, b;
    semaphore_user_open(&a, p, 0, 1);
    semaphore_user_open(&b, p, 1, 1);
    memnet_settle(p);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REQUEST, OP_CREATE2, MEMNET_HOLD, 0});
    semaphore_user_acquire(&a, 1, OWNER_TRY);
    assert_int_equal(a.answers, 0);
    semaphore_user_acquire(&b, 1, OWNER_TRY);
    assert_int_equal(b.n, 1);
    memnet_clear(p);
    memnet_settle(p);
    assert_int_equal(a.err, CLAVE_EBUSY);
    assert_string_equal(why(&a), "/s was not acquired: 1 owner, 0 before it");
    assert_int_equal(semaphore_user_leases_at_server(p), 1);
}

/* ---- the limit changes ------------------------------------------------------------------ */

static void on_set(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    *(clave_err *)arg = res->err;
}

/* CURATOR-75: raising the shared count wakes the waiter. */
TEST(testThreadedLeaseIncrease)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(3);
    CLOSED_BY(semaphore_user_close) struct semaphore_user a, b;
    clave_semaphore_options o = {.limit = 1, .limit_path = "/config/count"};
    assert_int_equal(semaphore_user_open_with(&a, p, 0, o), CLAVE_OK);
    memnet_settle(p);
    o.limit = 7; /* it exists already: what it holds counts */
    assert_int_equal(semaphore_user_open_with(&b, p, 1, o), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(clave_async_semaphore_limit(a.s), 1);
    assert_int_equal(clave_async_semaphore_limit(b.s), 1);
    semaphore_user_acquire(&a, 1, OWNER_FOREVER);
    semaphore_user_acquire(&b, 2, OWNER_FOREVER);
    assert_int_equal(b.n, 0);
    clave_err err = CLAVE_ETIMEDOUT;
    assert_int_equal(clave_async_semaphore_set_limit(a.s, 3, on_set, &err), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(err, CLAVE_OK);
    assert_int_equal(clave_async_semaphore_limit(b.s), 3);
    assert_int_equal(b.n, 2);
    /* Lowered, it takes nothing away. */
    clave_async_semaphore_set_limit(b.s, 1, NULL, NULL);
    memnet_settle(p);
    assert_int_equal(a.n + b.n, 3);
    assert_int_equal(a.lost + b.lost, 0);
    semaphore_user_acquire(&a, 1, OWNER_TRY);
    assert_int_equal(a.err, CLAVE_EBUSY);
}

/* Its lease had no parent yet, so it counts a second time; the new limit comes before that count.
 */
TEST(a_limit_may_change_while_a_try_counts_again)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(3);
    CLOSED_BY(semaphore_user_close) struct semaphore_user dead, a, other;
    clave_semaphore_options o = {.limit = 2, .limit_path = "/config/count"};
    assert_int_equal(semaphore_user_open_with(&dead, p, 0, o), CLAVE_OK);
    assert_int_equal(semaphore_user_open_with(&a, p, 1, o), CLAVE_OK);
    assert_int_equal(semaphore_user_open_with(&other, p, 2, o), CLAVE_OK);
    memnet_settle(p);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_CREATE2, MEMNET_HOLD, 1});
    semaphore_user_acquire(&dead, 1, OWNER_FOREVER);
    assert_int_equal(memnet_list(p, 2, "/s/locks", NULL, 0), 1);
    memnet_rule(p, (struct memnet_rule){1, MEMNET_REQUEST, OP_CREATE2, MEMNET_HOLD, 1});
    semaphore_user_acquire(&a, 1, OWNER_TRY);
    assert_int_equal(a.answers, 0);
    assert_int_equal(memnet_list(p, 2, "/s/leases", NULL, 0), 0);
    clave_async_semaphore_set_limit(other.s, 3, NULL, NULL);
    memnet_settle(p);
    memnet_clear(p);
    memnet_settle(p);
    assert_int_equal(a.n, 1);
    assert_int_equal(clave_async_semaphore_limit(a.s), 3);
}

/* As Curator's SharedCount writes it: four bytes, and whoever is to make it may be late. */
TEST(a_shared_limit_is_waited_for_and_followed)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(2);
    CLOSED_BY(semaphore_user_close) struct semaphore_user a;
    clave_semaphore_options o = {.limit_path = "/count"};
    assert_int_equal(semaphore_user_open_with(&a, p, 0, o), CLAVE_OK);
    semaphore_user_acquire(&a, 1, OWNER_FOREVER);
    assert_int_equal(a.answers, 0);
    assert_int_equal(clave_async_semaphore_limit(a.s), 0);
    assert_int_equal(memnet_create(p, 1, "/count"), CLAVE_OK); /* empty: lets nobody in */
    assert_int_equal(a.answers, 0);
    clave_err err;
    clave_async_set(p->clients[1].c, "/count", "\0\0\1\2", 4, -1, on_set, &err);
    memnet_settle(p);
    assert_int_equal(clave_async_semaphore_limit(a.s), 258);
    assert_int_equal(a.n, 1);
    /* Over a lost connection and a lost session. */
    memnet_cut(p, 0);
    clave_async_set(p->clients[1].c, "/count", "\0\0\0\3", 4, -1, on_set, &err);
    memnet_advance(p, 2000);
    assert_int_equal(clave_async_semaphore_limit(a.s), 3);
    memnet_kill_session(p, 0);
    clave_async_set(p->clients[1].c, "/count", "\0\0\0\4", 4, -1, on_set, &err);
    memnet_advance(p, 5000);
    assert_int_equal(clave_async_semaphore_limit(a.s), 4);
    clave_async_set(p->clients[1].c, "/count", "\0\0\0\5", 4, -1, on_set, &err);
    memnet_settle(p);
    assert_int_equal(clave_async_semaphore_limit(a.s), 5);
}

TEST(a_limit_of_its_own_can_be_raised_too)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(1);
    CLOSED_BY(semaphore_user_close) struct semaphore_user a;
    semaphore_user_open(&a, p, 0, 1);
    semaphore_user_acquire(&a, 1, OWNER_FOREVER);
    semaphore_user_begin_acquire(&a, 1, 1, OWNER_FOREVER);
    semaphore_user_begin_acquire(&a, 2, 1, OWNER_FOREVER);
    memnet_settle(p);
    assert_int_equal(a.n, 1);
    assert_int_equal(clave_async_semaphore_set_limit(a.s, 0, NULL, NULL), CLAVE_EINVAL);
    assert_int_equal(clave_async_semaphore_set_limit(a.s, 2, on_set, NULL), CLAVE_EINVAL);
    assert_int_equal(clave_async_semaphore_set_limit(a.s, 2, NULL, NULL), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(a.n, 2);
    clave_async_semaphore_set_limit(a.s, 3, NULL, NULL);
    memnet_settle(p);
    assert_int_equal(a.n, 3);
}

TEST(options_are_checked)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world(1);
    clave_async_client *c = p->clients[0].c;
    clave_async_semaphore *s;
    enum { SIZE = sizeof(clave_semaphore_options) };
    static const clave_semaphore_options bad[] = {
        {.size = 1, .limit = 1},
        {.size = SIZE},
        {.size = SIZE, .limit = UINT32_MAX},
        {.size = SIZE, .limit = 1, .max_hold_ms = -1},
        {.size = SIZE, .limit = 1, .len = 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(clave_async_semaphore_new(&s, c, "/s", &bad[i]), CLAVE_EINVAL);
        assert_null(s);
    }
    assert_int_equal(clave_async_semaphore_new(&s, c, "/s", NULL), CLAVE_EINVAL);
    clave_semaphore_options o = {.size = SIZE, .limit = 1};
    assert_int_equal(clave_async_semaphore_new(&s, c, "s", &o), CLAVE_EPATH);
    o.limit_path = "x";
    assert_int_equal(clave_async_semaphore_new(&s, c, "/s", &o), CLAVE_EPATH);
    clave_async_semaphore_free(NULL);
}

/* What does not queue below `locks` stops nobody there. Below `leases` every child takes room, as
 * with Curator: a lease of kazoo's semaphore is a bare UUID. */
TEST(other_children_take_room_but_stop_no_queue)
{
    static const char *const names[] = {
        "/s",           "/s/locks",
        "/s/locks/000", "/s/locks/_c_0-lock--3",
        "/s/leases",    "/s/leases/0f3c5d8e7b6a4c1d9e2f3a4b5c6d7e8f"};
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(2);
    CLOSED_BY(semaphore_user_close) struct semaphore_user a;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(memnet_create(p, 1, names[i]), CLAVE_OK);
    semaphore_user_open(&a, p, 0, 2);
    semaphore_user_acquire(&a, 1, OWNER_FOREVER);
    assert_int_equal(a.n, 1);
    semaphore_user_acquire(&a, 1, OWNER_FOREVER);
    assert_int_equal(a.n, 1);
    assert_int_equal(memnet_delete(p, 1, names[5]), CLAVE_OK);
    assert_int_equal(a.n, 2);
}
