/* The read-write lock: who waits for whom, downgrade and upgrade, and what happens to both
 * when messages, sessions and memory fail. Curator's tests bear their names. */
#include "lib/async_grants.h"
#include "lib/each_fault.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

enum { TIMEOUT = 6000 };

static const char *number_of(const char *node)
{
    return node + strlen(node) - 10;
}

/* ---- who waits for whom ---------------------------------------------------------------- */

/* Strict order of arrival: readers together, writers alone, and readers behind a waiting
 * writer wait. */
TEST(readers_share_and_writers_do_not)
{
    enum { N = 6 };
    CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(N, TIMEOUT);
    struct rwlock_owner s[N];
    /* r r w r w r */
    struct mutex_owner *in[N];
    static const bool writes[N] = {false, false, true, false, true, false};
    for (size_t i = 0; i < N; i++) {
        rwlock_owner_open(&s[i], p, i, "/rw", NULL);
        in[i] = writes[i] ? &s[i].write : &s[i].read;
        owner_acquire(in[i], OWNER_FOREVER);
    }
    assert_true(owner_holds(in[0]) && owner_holds(in[1]));
    for (size_t i = 2; i < N; i++)
        assert_false(owner_holds(in[i]));
    /* A write counts all before it, a read the writes. */
    assert_int_equal(in[2]->ahead, 2);
    assert_int_equal(in[3]->ahead, 1);
    assert_int_equal(in[4]->ahead, 4);
    assert_int_equal(in[5]->ahead, 2);
    owner_release(in[0]);
    assert_false(owner_holds(in[2]));
    owner_release(in[1]);
    assert_true(owner_holds(in[2]));
    assert_false(owner_holds(in[3]));
    int64_t token = owner_grant(in[2]).token;
    owner_release(in[2]);
    assert_true(owner_holds(in[3]));
    assert_false(owner_holds(in[4]) || owner_holds(in[5]));
    assert_true(owner_grant(in[3]).token > token);
    owner_release(in[3]);
    assert_true(owner_holds(in[4]));
    owner_release(in[4]);
    assert_true(owner_holds(in[5]));
    for (size_t i = 0; i < N; i++)
        rwlock_owner_close(&s[i]);
}

/* P10: all readers watch the nearest write before them, and the end of any other node wakes
 * none of them. At its end they are granted without a trip (P3). */
TEST(a_reader_watches_the_nearest_write_before_it)
{
    enum { READERS = 5, N = READERS + 3 };
    CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(N, TIMEOUT);
    struct rwlock_owner s[N];
    for (size_t i = 0; i < N; i++)
        rwlock_owner_open(&s[i], p, i, "/rw", NULL);
    owner_acquire(&s[0].read, OWNER_FOREVER);
    owner_acquire(&s[1].write, OWNER_FOREVER);
    for (size_t i = 2; i < N; i++)
        owner_acquire(i == N - 1 ? &s[i].write : &s[i].read, OWNER_FOREVER);
    memnet_reset_counts(p);
    owner_release(&s[0].read); /* the reader before the write */
    assert_true(owner_holds(&s[1].write));
    for (size_t i = 2; i < N; i++) {
        assert_int_equal(memnet_requests(p, i), 0);
        assert_int_equal(p->clients[i].events, 0);
    }
    owner_release(&s[1].write);
    for (size_t i = 2; i < N - 1; i++) {
        assert_true(owner_holds(&s[i].read));
        assert_int_equal(memnet_requests(p, i), 0);
    }
    assert_false(owner_holds(&s[N - 1].write));
    for (size_t i = 0; i < N; i++)
        rwlock_owner_close(&s[i]);
}

/* The nearest write gives up: the one before it is the one to wait for. */
TEST_CLEAN_NET(a_write_that_gives_up_does_not_let_readers_in, 3, TIMEOUT)
{
    struct rwlock_owner s[3];
    for (size_t i = 0; i < 3; i++)
        rwlock_owner_open(&s[i], p, i, "/rw", NULL);
    owner_acquire(&s[0].write, OWNER_FOREVER);
    owner_acquire(&s[1].write, OWNER_FOREVER);
    owner_acquire(&s[2].read, OWNER_FOREVER);
    assert_int_equal(s[2].read.ahead, 2);
    clave_async_mutex_cancel(s[1].write.m, 0);
    memnet_settle(p);
    assert_false(owner_holds(&s[2].read));
    assert_int_equal(s[2].read.ahead, 1);
    assert_int_equal(s[2].read.next, 1);
    owner_release(&s[0].write);
    assert_true(owner_holds(&s[2].read));
    for (size_t i = 0; i < 3; i++)
        rwlock_owner_close(&s[i]);
}

/* A random mix: a writer alone, readers together. */
TEST(testBasic)
{
    enum { N = 8 };
    CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(N, TIMEOUT);
    struct rwlock_owner s[N];
    bool asked[N] = {false}, writes[N] = {false};
    unsigned most_readers = 0, grants = 0;
    srand(42);
    for (size_t i = 0; i < N; i++)
        rwlock_owner_open(&s[i], p, i, "/rw", NULL);
    for (int step = 0; step < 2000; step++) {
        size_t i = (size_t)rand() % N;
        struct mutex_owner *in = writes[i] ? &s[i].write : &s[i].read;
        if (asked[i] && owner_holds(in)) {
            assert_int_equal(owner_release(in), CLAVE_OK);
            asked[i] = false;
            grants++;
        } else if (!asked[i]) {
            writes[i] = rand() % 4 == 0;
            owner_acquire(writes[i] ? &s[i].write : &s[i].read, OWNER_FOREVER);
            asked[i] = true;
        }
        unsigned readers = 0, writers = 0;
        for (size_t k = 0; k < N; k++) {
            readers += owner_holds(&s[k].read);
            writers += owner_holds(&s[k].write);
        }
        assert_true(writers == 0 || (writers == 1 && readers == 0));
        assert_true(writers + readers > 0 || !asked[i]);
        most_readers = readers > most_readers ? readers : most_readers;
    }
    assert_true(most_readers > 2);
    assert_true(grants > 300);
    for (size_t i = 0; i < N; i++)
        rwlock_owner_close(&s[i]);
}

TEST_CLEAN_NET(a_try_of_either_side_leaves_nothing, 2, TIMEOUT)
{
    CLOSED_BY(rwlock_owner_close) struct rwlock_owner a, b;
    rwlock_owner_open(&a, p, 0, "/rw", NULL);
    rwlock_owner_open(&b, p, 1, "/rw", NULL);
    owner_acquire(&a.read, OWNER_TRY);
    owner_acquire(&b.read, OWNER_TRY);
    assert_true(owner_holds(&a.read) && owner_holds(&b.read));
    owner_release(&b.read);
    owner_acquire(&b.write, OWNER_TRY);
    assert_int_equal(b.write.err, CLAVE_EBUSY);
    assert_int_equal(memnet_list(p, 0, "/rw", NULL, 0), 1);
    owner_release(&a.read);
    owner_acquire(&b.write, OWNER_TRY);
    assert_true(owner_holds(&b.write));
    owner_acquire(&a.read, OWNER_TRY);
    assert_int_equal(a.read.err, CLAVE_EBUSY);
}

/* A node of a try, though it be refused, is one that readers wait for. */
TEST_CLEAN_NET(a_refused_try_to_write_makes_no_node, 3, TIMEOUT)
{
    CLOSED_BY(rwlock_owner_close) struct rwlock_owner a, b, c;
    rwlock_owner_open(&a, p, 0, "/rw", NULL);
    rwlock_owner_open(&b, p, 1, "/rw", NULL);
    rwlock_owner_open(&c, p, 2, "/rw", NULL);
    owner_acquire(&a.read, OWNER_FOREVER);
    memnet_reset_counts(p);
    owner_begin_acquire(&b.write, OWNER_TRY);
    owner_begin_acquire(&c.read, OWNER_TRY);
    memnet_settle(p);
    assert_int_equal(b.write.err, CLAVE_EBUSY);
    assert_true(owner_holds(&c.read));
    assert_int_equal(memnet_requests(p, 1), 2); /* in one flight */
    assert_string_equal(number_of(owner_grant(&c.read).node), "0000000001");
    owner_release(&a.read);
    owner_release(&c.read);
    memnet_reset_counts(p);
    owner_acquire(&b.write, OWNER_TRY);
    assert_true(owner_holds(&b.write));
    assert_string_equal(number_of(owner_grant(&b.write).node), "0000000002");
    owner_acquire(&a.write, OWNER_TRY); /* a try of the other kind, and a try that waits for none */
    assert_int_equal(a.write.err, CLAVE_EBUSY);
    owner_release(&b.write);
}

/* What looked free was taken before the node was there: the node decides. */
TEST_CLEAN_NET(a_try_to_write_that_was_overtaken_is_refused, 2, TIMEOUT)
{
    CLOSED_BY(rwlock_owner_close) struct rwlock_owner a, b;
    rwlock_owner_open(&a, p, 0, "/rw", NULL);
    rwlock_owner_open(&b, p, 1, "/rw", NULL);
    memnet_rule(p, (struct memnet_rule){1, MEMNET_REPLY, OP_GET_CHILDREN2, MEMNET_HOLD, 0});
    owner_begin_acquire(&b.write, OWNER_TRY);
    memnet_settle(p);
    owner_acquire(&a.read, OWNER_FOREVER);
    assert_true(owner_holds(&a.read));
    memnet_clear(p);
    memnet_settle(p);
    assert_int_equal(b.write.err, CLAVE_EBUSY);
    assert_true(owner_holds(&a.read));
}

/* Each message of a try is lost, then the connection cut after it: it ends at once, is never said
 * to be busy when it is free, and leaves nothing. */
TEST(a_try_to_write_ends_with_its_connection)
{
    static const int ops[] = {OP_SYNC, OP_GET_CHILDREN2, OP_CREATE2};
    for (size_t i = 0; i < 12; i++) {
        CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(2, TIMEOUT);
        CLOSED_BY(rwlock_owner_close) struct rwlock_owner a, b;
        rwlock_owner_open(&a, p, 0, "/rw", NULL);
        rwlock_owner_open(&b, p, 1, "/rw", NULL);
        owner_acquire(&a.read, OWNER_TRY); /* it makes the path */
        owner_release(&a.read);
        memnet_rule(p, (struct memnet_rule){1, i & 1 ? MEMNET_REPLY : MEMNET_REQUEST, ops[i / 4],
                                            i & 2 ? MEMNET_PASS_CUT : MEMNET_LOSE, 0});
        owner_begin_acquire(&b.write, OWNER_TRY);
        memnet_settle(p);
        bool granted = owner_holds(&b.write);
        assert_true(granted || b.write.err == CLAVE_EUNREACHABLE);
        memnet_clear(p);
        memnet_advance(p, TIMEOUT);
        if (!granted) {
            owner_acquire(&b.write, OWNER_TRY);
            assert_true(owner_holds(&b.write));
        }
    }
}

TEST_CLEAN_NET(a_try_to_write_is_given_up_while_it_looks, 1, TIMEOUT)
{
    struct rwlock_owner a;
    rwlock_owner_open(&a, p, 0, "/rw", NULL);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_SYNC, MEMNET_HOLD, 0});
    owner_begin_acquire(&a.write, OWNER_TRY);
    memnet_settle(p);
    rwlock_owner_close(&a);
    memnet_clear(p);
    memnet_settle(p);
}

/* ---- downgrade ------------------------------------------------------------------------- */

TEST_CLEAN_NET(testDowngrading, 2, TIMEOUT)
{
    CLOSED_BY(rwlock_owner_close) struct rwlock_owner a, b;
    rwlock_owner_open(&a, p, 0, "/rw", NULL);
    rwlock_owner_open(&b, p, 1, "/rw", NULL);
    owner_acquire(&a.write, OWNER_FOREVER);
    memnet_reset_counts(p);
    owner_acquire(&a.read, OWNER_TRY);
    assert_true(owner_holds(&a.read) && owner_holds(&a.write));
    /* One flight; the write's own number, and its token. */
    assert_int_equal(memnet_requests(p, 0), 1);
    char write[160];
    snprintf(write, sizeof write, "%s", owner_grant(&a.write).node);
    struct grant_facts read = owner_grant(&a.read);
    assert_string_equal(number_of(read.node), number_of(write));
    assert_non_null(strstr(read.node, "-__READ__"));
    assert_int_equal(read.token, owner_grant(&a.write).token);
    owner_acquire(&b.read, OWNER_FOREVER);
    assert_false(owner_holds(&b.read));
    owner_release(&a.write);
    assert_true(owner_holds(&a.read) && owner_holds(&b.read));
}

/* CURATOR-621: a writer that waited before the downgrade stays behind it. */
TEST_CLEAN_NET(testContendingDowngrading, 3, TIMEOUT)
{
    CLOSED_BY(rwlock_owner_close) struct rwlock_owner a, b, c;
    rwlock_owner_open(&a, p, 0, "/rw", NULL);
    rwlock_owner_open(&b, p, 1, "/rw", NULL);
    rwlock_owner_open(&c, p, 2, "/rw", NULL);
    owner_acquire(&a.write, OWNER_FOREVER);
    owner_acquire(&b.write, OWNER_FOREVER);
    owner_acquire(&c.read, OWNER_FOREVER);
    owner_acquire(&a.read, OWNER_FOREVER);
    assert_true(owner_holds(&a.read));
    owner_release(&a.write);
    assert_false(owner_holds(&b.write));
    assert_false(owner_holds(&c.read)); /* the order of arrival otherwise */
    owner_release(&a.read);
    assert_true(owner_holds(&b.write));
    owner_release(&b.write);
    assert_true(owner_holds(&c.read));
}

/* The read is asked for and the write given back in one flight. */
TEST_CLEAN_NET(a_downgrade_need_not_be_awaited, 2, TIMEOUT)
{
    struct rwlock_owner a, b;
    rwlock_owner_open(&a, p, 0, "/rw", NULL);
    rwlock_owner_open(&b, p, 1, "/rw", NULL);
    owner_acquire(&a.write, OWNER_FOREVER);
    owner_acquire(&b.write, OWNER_FOREVER);
    owner_begin_acquire(&a.read, OWNER_FOREVER);
    owner_release(&a.write);
    assert_true(owner_holds(&a.read));
    assert_false(owner_holds(&b.write));
    rwlock_owner_close(&a);
    assert_true(owner_holds(&b.write));
    rwlock_owner_close(&b);
}

/* Another owner's read does not ride on my write. */
TEST_NET(testThatDowngradingRespectsThreads, 1, TIMEOUT)
{
    struct rwlock_owner a, b;
    rwlock_owner_open(&a, p, 0, "/rw", NULL);
    rwlock_owner_share(&b, &a, 7);
    owner_acquire(&a.write, OWNER_FOREVER);
    owner_acquire(&b.read, OWNER_TRY);
    assert_int_equal(b.read.err, CLAVE_EBUSY);
    assert_false(owner_holds(&b.read));
    rwlock_owner_close(&a);
}

/* Beside Curator 5.4's form of the downgrade: a read behind the write with a number of its
 * own. Whoever comes after it, waits for it. */
TEST_NET(a_downgrade_of_curator_5_4_is_waited_for, 2, TIMEOUT)
{
    CLOSED_BY(rwlock_owner_close) struct rwlock_owner a;
    static const char read[] = "/rw/_c_00000000-0000-0000-0000-000000000002-__READ__0000000001";
    rwlock_owner_open(&a, p, 0, "/rw", NULL);
    memnet_create(p, 1, "/rw");
    assert_int_equal(
        memnet_create(p, 1, "/rw/_c_00000000-0000-0000-0000-000000000001-__WRIT__0000000000"),
        CLAVE_OK);
    assert_int_equal(memnet_create(p, 1, read), CLAVE_OK);
    owner_acquire(&a.write, OWNER_FOREVER);
    assert_int_equal(a.write.ahead, 2);
    memnet_delete(p, 1, "/rw/_c_00000000-0000-0000-0000-000000000001-__WRIT__0000000000");
    assert_false(owner_holds(&a.write));
    memnet_delete(p, 1, read);
    assert_true(owner_holds(&a.write));
}

/* The write node goes before the read stands: the read has no claim to its place. */
TEST_CLEAN_NET(a_downgrade_of_a_write_that_is_gone_queues_as_any_read, 3, TIMEOUT)
{
    CLOSED_BY(rwlock_owner_close) struct rwlock_owner a, b;
    char node[160];
    rwlock_owner_open(&a, p, 0, "/rw", NULL);
    rwlock_owner_open(&b, p, 1, "/rw", NULL);
    owner_acquire(&a.write, OWNER_FOREVER);
    owner_acquire(&b.write, OWNER_FOREVER);
    snprintf(node, sizeof node, "%s", owner_grant(&a.write).node);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REQUEST, OP_MULTI, MEMNET_HOLD, 0});
    owner_begin_acquire(&a.read, OWNER_FOREVER);
    memnet_settle(p);
    assert_int_equal(memnet_delete(p, 2, node), CLAVE_OK);
    assert_true(owner_holds(&b.write));
    memnet_clear(p);
    memnet_advance(p, 100); /* what failed is tried again after a pause */
    assert_true(owner_holds(&b.write));
    assert_false(owner_holds(&a.read));
    owner_release(&b.write);
    assert_true(owner_holds(&a.read));
    assert_int_equal(a.read.answers, 1);
}

/* The answer to the downgrade's create is lost, or the request itself: it is found out. */
TEST(a_downgrade_survives_lost_messages)
{
    for (size_t way = 0; way < LOSSES; way++) {
        CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(2, TIMEOUT);
        CLOSED_BY(rwlock_owner_close) struct rwlock_owner a, b;
        rwlock_owner_open(&a, p, 0, "/rw", NULL);
        rwlock_owner_open(&b, p, 1, "/rw", NULL);
        owner_acquire(&a.write, OWNER_FOREVER);
        owner_acquire(&b.write, OWNER_FOREVER);
        memnet_rule(p, loss_of(way, OP_MULTI));
        owner_acquire(&a.read, OWNER_FOREVER);
        memnet_advance(p, 2000);
        assert_true(owner_holds(&a.read));
        assert_int_equal(a.read.answers, 1);
        assert_int_equal(memnet_list(p, 1, "/rw", NULL, 0), 3);
        assert_string_equal(number_of(owner_grant(&a.read).node), "0000000000");
        assert_int_equal(owner_grant(&a.read).token, owner_grant(&a.write).token);
        owner_release(&a.write);
        memnet_advance(p, 1000);
        assert_false(owner_holds(&b.write));
        owner_release(&a.read);
        assert_true(owner_holds(&b.write));
    }
}

/* Cancelled, or the session killed, with the downgrade's answer still to come. */
TEST(a_downgrade_given_up_leaves_nothing)
{
    for (int way = 0; way < 4; way++) {
        CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(2, TIMEOUT);
        CLOSED_BY(rwlock_owner_close) struct rwlock_owner a, b;
        rwlock_owner_open(&a, p, 0, "/rw", NULL);
        rwlock_owner_open(&b, p, 1, "/rw", NULL);
        owner_acquire(&a.write, OWNER_FOREVER);
        memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_MULTI,
                                            way % 2 ? MEMNET_LOSE : MEMNET_HOLD, 0});
        owner_begin_acquire(&a.read, OWNER_FOREVER);
        if (way < 2)
            assert_int_equal(clave_async_mutex_cancel(a.read.m, 0), CLAVE_OK);
        memnet_settle(p);
        if (way >= 2)
            memnet_kill_session(p, 0);
        memnet_clear(p);
        memnet_advance(p, 3 * TIMEOUT);
        assert_int_equal(a.read.answers, 1);
        assert_int_equal(a.read.err, way < 2 ? CLAVE_ECANCELED : CLAVE_OK);
        assert_int_equal(a.write.lost, way < 2 ? 0 : 1);
        assert_int_equal(owner_holds(&a.write), way < 2);
        assert_int_equal(owner_release(&a.write), way < 2 ? CLAVE_OK : CLAVE_ELOST);
        if (way >= 2)
            assert_int_equal(owner_release(&a.read), owner_holds(&a.read) ? CLAVE_OK : CLAVE_ELOST);
        owner_acquire(&b.write, OWNER_FOREVER);
        assert_true(owner_holds(&b.write));
    }
}

/* ---- upgrade --------------------------------------------------------------------------- */

TEST_CLEAN_NET(testThatUpgradingIsDisallowed, 2, TIMEOUT)
{
    CLOSED_BY(rwlock_owner_close) struct rwlock_owner a, b;
    rwlock_owner_open(&a, p, 0, "/rw", NULL);
    rwlock_owner_open(&b, p, 1, "/rw", NULL);
    owner_acquire(&a.read, OWNER_FOREVER);
    memnet_reset_counts(p);
    assert_int_equal(owner_begin_acquire(&a.write, OWNER_FOREVER), CLAVE_EUPGRADE);
    assert_int_equal(owner_begin_acquire(&a.write, 1000), CLAVE_EUPGRADE);
    assert_int_equal(memnet_requests(p, 0), 0);
    /* Nor while the read still waits. */
    owner_release(&a.read);
    owner_acquire(&b.write, OWNER_FOREVER);
    owner_acquire(&a.read, OWNER_FOREVER);
    assert_int_equal(owner_begin_acquire(&a.write, OWNER_FOREVER), CLAVE_EUPGRADE);
    owner_release(&b.write);
    assert_true(owner_holds(&a.read));
    /* A write held already may be held again, read or no read. */
    owner_release(&a.read);
    owner_acquire(&a.write, OWNER_FOREVER);
    owner_acquire(&a.read, OWNER_FOREVER);
    assert_int_equal(owner_acquire(&a.write, OWNER_FOREVER), CLAVE_OK);
    assert_int_equal(owner_grant(&a.write).count, 2);
    owner_release(&a.write);
    owner_release(&a.write);
    assert_int_equal(owner_begin_acquire(&a.write, OWNER_FOREVER), CLAVE_EUPGRADE);
}

TEST_NET(a_read_behind_my_own_waiting_write_is_refused, 2, TIMEOUT)
{
    struct rwlock_owner a, b;
    rwlock_owner_open(&a, p, 0, "/rw", NULL);
    rwlock_owner_open(&b, p, 1, "/rw", NULL);
    owner_acquire(&a.read, OWNER_FOREVER);
    owner_acquire(&b.write, OWNER_FOREVER);
    assert_int_equal(owner_begin_acquire(&b.read, OWNER_FOREVER), CLAVE_EINVAL);
    rwlock_owner_close(&a);
    assert_true(owner_holds(&b.write));
    rwlock_owner_close(&b);
}

/* ---- the rest of Curator's list --------------------------------------------------------- */

struct count {
    unsigned answers;
    size_t n;
};

static void on_participants(clave_async_client *c, clave_err err, const clave_participant *list,
                            size_t n, void *arg)
{
    (void)c;
    struct count *count = arg;
    assert_int_equal(err, CLAVE_OK);
    for (size_t i = 1; i < n; i++)
        assert_true(strcmp(number_of(list[i - 1].node), number_of(list[i].node)) < 0);
    count->answers++;
    count->n = n;
}

static size_t participants(struct memnet *p, clave_rwlock_kind kind)
{
    struct count count = {0};
    assert_int_equal(
        clave_async_rwlock_participants(p->clients[0].c, "/rw", kind, on_participants, &count),
        CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(count.answers, 1);
    return count.n;
}

TEST(testGetParticipantNodes)
{
    enum { READERS = 20, WRITERS = 8 };
    CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(READERS + WRITERS, TIMEOUT);
    struct rwlock_owner s[READERS + WRITERS];
    assert_int_equal(participants(p, CLAVE_RWLOCK_BOTH), 0);
    for (size_t i = 0; i < READERS + WRITERS; i++) {
        rwlock_owner_open(&s[i], p, i, "/rw", NULL);
        owner_acquire(i < READERS ? &s[i].read : &s[i].write, OWNER_FOREVER);
    }
    assert_int_equal(participants(p, CLAVE_RWLOCK_READ), READERS);
    assert_int_equal(participants(p, CLAVE_RWLOCK_WRITE), WRITERS);
    assert_int_equal(participants(p, CLAVE_RWLOCK_BOTH), READERS + WRITERS);
    for (size_t i = 0; i < READERS + WRITERS; i++)
        rwlock_owner_close(&s[i]);
}

static void on_data(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    assert_int_equal(res->err, CLAVE_OK);
    snprintf(arg, 16, "%.*s", (int)res->len, (const char *)res->data);
}

/* The data is copied at construction. A downgrade carries it too. */
TEST_NET(testSetNodeData, 1, TIMEOUT)
{
    CLOSED_BY(rwlock_owner_close) struct rwlock_owner a;
    char data[] = "here";
    clave_mutex_options o = {.size = sizeof o, .data = data, .len = 4};
    rwlock_owner_open(&a, p, 0, "/rw", &o);
    data[0] = 't';
    owner_acquire(&a.write, OWNER_FOREVER);
    owner_acquire(&a.read, OWNER_FOREVER);
    for (int i = 0; i < 2; i++) {
        char found[16] = "";
        const char *node = owner_grant(i ? &a.read : &a.write).node;
        clave_async_get(p->clients[0].c, node, NULL, on_data, found);
        memnet_settle(p);
        assert_string_equal(found, "here");
    }
}

/* The path of a killed session's write lock is gone when another gets the lock. */
TEST_CLEAN_NET(testLockPath, 2, TIMEOUT)
{
    CLOSED_BY(rwlock_owner_close) struct rwlock_owner a, b;
    char node[160], names[4][96];
    rwlock_owner_open(&a, p, 0, "/rw", NULL);
    rwlock_owner_open(&b, p, 1, "/rw", NULL);
    owner_acquire(&a.write, OWNER_FOREVER);
    snprintf(node, sizeof node, "%s", owner_grant(&a.write).node);
    owner_acquire(&b.write, OWNER_FOREVER);
    memnet_kill_session(p, 0);
    memnet_advance(p, 3000);
    assert_true(owner_holds(&b.write));
    assert_int_equal(a.write.lost, 1);
    assert_int_equal(memnet_list(p, 1, "/rw", names, 4), 1);
    assert_null(strstr(node, names[0]));
}

/* ---- sessions and faults ---------------------------------------------------------------- */

/* Both grants of a downgrade go with the session, each told once. */
TEST_CLEAN_NET(a_session_that_ends_takes_both_sides, 2, TIMEOUT)
{
    CLOSED_BY(rwlock_owner_close) struct rwlock_owner a;
    rwlock_owner_open(&a, p, 0, "/rw", NULL);
    owner_acquire(&a.write, OWNER_FOREVER);
    owner_acquire(&a.read, OWNER_FOREVER);
    memnet_kill_session(p, 0);
    memnet_advance(p, 3000);
    assert_int_equal(a.write.lost, 1);
    assert_int_equal(a.read.lost, 1);
    assert_int_equal(owner_begin_acquire(&a.read, OWNER_FOREVER), CLAVE_ELOST);
    assert_int_equal(owner_release(&a.read), CLAVE_ELOST);
    /* The write is lost and not yet given back. */
    assert_int_equal(owner_begin_acquire(&a.read, OWNER_FOREVER), CLAVE_ELOST);
    assert_int_equal(owner_release(&a.write), CLAVE_ELOST);
    assert_int_equal(owner_acquire(&a.read, OWNER_FOREVER), CLAVE_OK);
    assert_true(owner_holds(&a.read));
}

TEST_CLEAN_NET(a_waiting_reader_keeps_its_place_over_a_reconnect, 3, TIMEOUT)
{
    struct rwlock_owner s[3];
    for (size_t i = 0; i < 3; i++)
        rwlock_owner_open(&s[i], p, i, "/rw", NULL);
    owner_acquire(&s[0].write, OWNER_FOREVER);
    owner_acquire(&s[1].read, OWNER_FOREVER);
    owner_acquire(&s[2].write, OWNER_FOREVER);
    memnet_reset_counts(p);
    memnet_cut(p, 1);
    memnet_advance(p, 1000);
    assert_int_equal(p->clients[1].requests[OP_CREATE2], 0);
    owner_release(&s[0].write);
    assert_true(owner_holds(&s[1].read));
    assert_false(owner_holds(&s[2].write));
    for (size_t i = 0; i < 3; i++)
        rwlock_owner_close(&s[i]);
}

/* A writes and downgrades, B reads, C writes; one message of one of them is lost, in any
 * way. Nobody ever holds beside a writer, all get their turn, and nothing is left. */
static void play(struct memnet *p, struct rwlock_owner *a, struct rwlock_owner *b,
                 struct rwlock_owner *c)
{
    owner_acquire(&a->write, OWNER_FOREVER);
    memnet_advance(p, 3000);
    owner_acquire(&b->read, OWNER_FOREVER);
    memnet_advance(p, 3000);
    owner_acquire(&c->write, OWNER_FOREVER);
    memnet_advance(p, 3000);
    assert_true(owner_holds(&a->write));
    assert_false(owner_holds(&b->read) || owner_holds(&c->write));
    owner_acquire(&a->read, OWNER_FOREVER);
    memnet_advance(p, 3000);
    assert_int_equal(owner_release(&a->write), CLAVE_OK);
    memnet_advance(p, 3000);
    assert_true(owner_holds(&a->read) && owner_holds(&b->read));
    assert_false(owner_holds(&c->write));
    assert_int_equal(owner_release(&a->read), CLAVE_OK);
    assert_int_equal(owner_release(&b->read), CLAVE_OK);
    memnet_advance(p, 3000);
    assert_true(owner_holds(&c->write));
    assert_int_equal(owner_release(&c->write), CLAVE_OK);
    memnet_advance(p, 3000);
    assert_int_equal(a->write.answers + a->read.answers, 2);
    assert_int_equal(b->read.answers + c->write.answers, 2);
}

TEST_EACH_LOSS(any_message_may_be_lost_once, 3, TIMEOUT, 3)
{
    struct rwlock_owner s[3];
    for (size_t k = 0; k < 3; k++)
        rwlock_owner_open(&s[k], p, k, "/x/rw", NULL);
    memnet_rule(p, loss);
    play(p, &s[0], &s[1], &s[2]);
    memnet_assert_no_leftovers(p);
    for (size_t k = 0; k < 3; k++)
        rwlock_owner_close(&s[k]);
}

/* Each allocation of a downgrade's whole life fails once: an error that is told, or an attempt
 * that is made up for; never a grant that is not one, and nothing is left. */
TEST_EACH_ALLOCATION(every_allocation_may_fail_once, 30)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_on(mem, 1, TIMEOUT);
    struct rwlock_owner a;
    failmem_arm(mem, which, 1);
    if (rwlock_owner_open(&a, p, 0, "/rw", NULL) == CLAVE_OK) {
        clave_err write = owner_acquire(&a.write, OWNER_FOREVER);
        memnet_advance(p, 3000);
        assert_true(write == CLAVE_OK || write == CLAVE_ENOMEM);
        assert_int_equal(a.write.answers, write == CLAVE_OK);
        assert_int_equal(owner_holds(&a.write), a.write.answers && a.write.err == CLAVE_OK);
        clave_err read = owner_acquire(&a.read, OWNER_FOREVER);
        memnet_advance(p, 3000);
        assert_true(read == CLAVE_OK || read == CLAVE_ENOMEM);
        assert_int_equal(a.read.answers, read == CLAVE_OK);
        assert_int_equal(owner_holds(&a.read), a.read.answers && a.read.err == CLAVE_OK);
        if (owner_holds(&a.write))
            assert_int_equal(owner_release(&a.write), CLAVE_OK);
        if (owner_holds(&a.read))
            assert_int_equal(owner_release(&a.read), CLAVE_OK);
        memnet_advance(p, 3000);
        a.write.answers = 0;
        clave_err tried = owner_acquire(&a.write, OWNER_TRY);
        memnet_advance(p, 3000);
        assert_true(tried == CLAVE_OK || tried == CLAVE_ENOMEM || tried == CLAVE_ELOST);
        if (tried == CLAVE_OK && owner_holds(&a.write))
            assert_int_equal(owner_release(&a.write), CLAVE_OK);
        memnet_advance(p, 3000);
        rwlock_owner_close(&a);
    }
    memnet_advance(p, 3000);
    failmem_disarm(mem);
    memnet_assert_no_leftovers(p);
}

/* A writer that waits behind a write that becomes a read is granted after the read: its token
 * has to be the greater. (Seed 10, docs/evidence/simulation.md.) */
TEST_NET(tokens_grow_past_a_downgrade, 2, TIMEOUT)
{
    CLOSED_BY(rwlock_owner_close) struct rwlock_owner a, b;
    rwlock_owner_open(&a, p, 0, "/rw", NULL);
    rwlock_owner_open(&b, p, 1, "/rw", NULL);
    owner_acquire(&a.write, OWNER_FOREVER);
    owner_acquire(&b.write, OWNER_FOREVER);
    owner_acquire(&a.read, OWNER_FOREVER);
    int64_t token = owner_grant(&a.read).token;
    owner_release(&a.write);
    assert_int_equal(owner_grant(&a.read).token, token);
    owner_release(&a.read);
    assert_true(owner_holds(&b.write));
    assert_true(owner_grant(&b.write).token > token);
}

/* Of a read lock the readers own, a writer that waits is before the next reader. */
TEST(a_refused_try_says_who_is_in_the_way)
{
    enum { READERS = 3, WRITER = 3, LATE = 4, OTHER = 5, ALL };
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_of(ALL, TIMEOUT);
    struct rwlock_owner u[ALL];
    const clave_async_client *late = p->clients[LATE].c;
    for (size_t i = 0; i < ALL; i++)
        rwlock_owner_open(&u[i], p, i, "/rw", NULL);
    for (size_t i = 0; i < READERS; i++)
        owner_acquire(&u[i].read, OWNER_FOREVER);
    owner_acquire(&u[LATE].write, OWNER_TRY);
    assert_int_equal(u[LATE].write.err, CLAVE_EBUSY);
    assert_string_equal(clave_async_client_errmsg(late),
                        "/rw was not acquired: 3 owners, 0 before it");
    owner_acquire(&u[WRITER].write, OWNER_FOREVER);
    owner_acquire(&u[LATE].read, OWNER_TRY);
    assert_int_equal(u[LATE].read.err, CLAVE_EBUSY);
    assert_string_equal(clave_async_client_errmsg(late),
                        "/rw was not acquired: 3 owners, 1 before it");
    for (size_t i = 0; i < READERS; i++)
        owner_release(&u[i].read);
    assert_true(owner_holds(&u[WRITER].write));
    owner_acquire(&u[OTHER].read, OWNER_FOREVER); /* it waits */
    owner_acquire(&u[LATE].write, OWNER_TRY);
    assert_string_equal(clave_async_client_errmsg(late),
                        "/rw was not acquired: 1 owner, 1 before it");
    for (size_t i = 0; i < ALL; i++)
        rwlock_owner_close(&u[i]);
}
