/* The read-write lock: who waits for whom, downgrade and upgrade, and what happens to both
 * when messages, sessions and memory fail. Curator's tests bear their names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/failmem.h"
#include "lib/mutex_owner.h"

enum { TIMEOUT = 6000 };

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

static const char *number_of(const char *node)
{
    return node + strlen(node) - 10;
}

/* ---- who waits for whom ---------------------------------------------------------------- */

/* Strict order of arrival: readers together, writers alone, and readers behind a waiting
 * writer wait. */
static void readers_share_and_writers_do_not(void **state)
{
    (void)state;
    enum { N = 6 };
    struct pair *p = world(N);
    struct seats s[N];
    /* r r w r w r */
    struct seat *in[N];
    static const bool writes[N] = {false, false, true, false, true, false};
    for (size_t i = 0; i < N; i++) {
        seats_open(&s[i], p, i, "/rw", NULL);
        in[i] = writes[i] ? &s[i].write : &s[i].read;
        seat_acquire(in[i], SEAT_EVER);
    }
    assert_true(seat_holds(in[0]) && seat_holds(in[1]));
    for (size_t i = 2; i < N; i++)
        assert_false(seat_holds(in[i]));
    /* A write counts all before it, a read the writes. */
    assert_int_equal(in[2]->ahead, 2);
    assert_int_equal(in[3]->ahead, 1);
    assert_int_equal(in[4]->ahead, 4);
    assert_int_equal(in[5]->ahead, 2);
    seat_release(in[0]);
    assert_false(seat_holds(in[2]));
    seat_release(in[1]);
    assert_true(seat_holds(in[2]));
    assert_false(seat_holds(in[3]));
    int64_t token = seat_grant(in[2]).token;
    seat_release(in[2]);
    assert_true(seat_holds(in[3]));
    assert_false(seat_holds(in[4]) || seat_holds(in[5]));
    assert_true(seat_grant(in[3]).token > token);
    seat_release(in[3]);
    assert_true(seat_holds(in[4]));
    seat_release(in[4]);
    assert_true(seat_holds(in[5]));
    for (size_t i = 0; i < N; i++)
        seats_close(&s[i]);
    assert_no_leftovers(p);
    pair_free(p);
}

/* P10: all readers watch the nearest write before them, and the end of any other node wakes
 * none of them. At its end they are granted without a trip (P3). */
static void a_reader_watches_the_nearest_write_before_it(void **state)
{
    (void)state;
    enum { READERS = 5, N = READERS + 3 };
    struct pair *p = world(N);
    struct seats s[N];
    for (size_t i = 0; i < N; i++)
        seats_open(&s[i], p, i, "/rw", NULL);
    seat_acquire(&s[0].read, SEAT_EVER);
    seat_acquire(&s[1].write, SEAT_EVER);
    for (size_t i = 2; i < N; i++)
        seat_acquire(i == N - 1 ? &s[i].write : &s[i].read, SEAT_EVER);
    pair_reset_counts(p);
    seat_release(&s[0].read); /* the reader before the write */
    assert_true(seat_holds(&s[1].write));
    for (size_t i = 2; i < N; i++) {
        assert_int_equal(pair_requests(p, i), 0);
        assert_int_equal(p->end[i].events, 0);
    }
    seat_release(&s[1].write);
    for (size_t i = 2; i < N - 1; i++) {
        assert_true(seat_holds(&s[i].read));
        assert_int_equal(pair_requests(p, i), 0);
    }
    assert_false(seat_holds(&s[N - 1].write));
    for (size_t i = 0; i < N; i++)
        seats_close(&s[i]);
    assert_no_leftovers(p);
    pair_free(p);
}

/* The nearest write gives up: the one before it is the one to wait for. */
static void a_write_that_gives_up_does_not_let_readers_in(void **state)
{
    (void)state;
    struct pair *p = world(3);
    struct seats s[3];
    for (size_t i = 0; i < 3; i++)
        seats_open(&s[i], p, i, "/rw", NULL);
    seat_acquire(&s[0].write, SEAT_EVER);
    seat_acquire(&s[1].write, SEAT_EVER);
    seat_acquire(&s[2].read, SEAT_EVER);
    assert_int_equal(s[2].read.ahead, 2);
    clave_async_mutex_cancel(s[1].write.m, 0);
    pair_settle(p);
    assert_false(seat_holds(&s[2].read));
    assert_int_equal(s[2].read.ahead, 1);
    assert_int_equal(s[2].read.next, 1);
    seat_release(&s[0].write);
    assert_true(seat_holds(&s[2].read));
    for (size_t i = 0; i < 3; i++)
        seats_close(&s[i]);
    assert_no_leftovers(p);
    pair_free(p);
}

/* A random mix: a writer alone, readers together. */
static void testBasic(void **state)
{
    (void)state;
    enum { N = 8 };
    struct pair *p = world(N);
    struct seats s[N];
    bool asked[N] = {false}, writes[N] = {false};
    unsigned most_readers = 0, grants = 0;
    srand(42);
    for (size_t i = 0; i < N; i++)
        seats_open(&s[i], p, i, "/rw", NULL);
    for (int step = 0; step < 2000; step++) {
        size_t i = (size_t)rand() % N;
        struct seat *in = writes[i] ? &s[i].write : &s[i].read;
        if (asked[i] && seat_holds(in)) {
            assert_int_equal(seat_release(in), CLAVE_OK);
            asked[i] = false;
            grants++;
        } else if (!asked[i]) {
            writes[i] = rand() % 4 == 0;
            seat_acquire(writes[i] ? &s[i].write : &s[i].read, SEAT_EVER);
            asked[i] = true;
        }
        unsigned readers = 0, writers = 0;
        for (size_t k = 0; k < N; k++) {
            readers += seat_holds(&s[k].read);
            writers += seat_holds(&s[k].write);
        }
        assert_true(writers == 0 || (writers == 1 && readers == 0));
        assert_true(writers + readers > 0 || !asked[i]);
        most_readers = readers > most_readers ? readers : most_readers;
    }
    assert_true(most_readers > 2);
    assert_true(grants > 300);
    for (size_t i = 0; i < N; i++)
        seats_close(&s[i]);
    assert_no_leftovers(p);
    pair_free(p);
}

static void a_try_of_either_side_leaves_nothing(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seats a, b;
    seats_open(&a, p, 0, "/rw", NULL);
    seats_open(&b, p, 1, "/rw", NULL);
    seat_acquire(&a.read, SEAT_TRY);
    seat_acquire(&b.read, SEAT_TRY);
    assert_true(seat_holds(&a.read) && seat_holds(&b.read));
    seat_release(&b.read);
    seat_acquire(&b.write, SEAT_TRY);
    assert_int_equal(b.write.err, CLAVE_EBUSY);
    assert_int_equal(seat_list(p, 0, "/rw", NULL, 0), 1);
    seat_release(&a.read);
    seat_acquire(&b.write, SEAT_TRY);
    assert_true(seat_holds(&b.write));
    seat_acquire(&a.read, SEAT_TRY);
    assert_int_equal(a.read.err, CLAVE_EBUSY);
    seats_close(&a);
    seats_close(&b);
    assert_no_leftovers(p);
    pair_free(p);
}

/* ---- downgrade ------------------------------------------------------------------------- */

static void testDowngrading(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seats a, b;
    seats_open(&a, p, 0, "/rw", NULL);
    seats_open(&b, p, 1, "/rw", NULL);
    seat_acquire(&a.write, SEAT_EVER);
    pair_reset_counts(p);
    seat_acquire(&a.read, SEAT_TRY);
    assert_true(seat_holds(&a.read) && seat_holds(&a.write));
    /* One flight; the write's own number, and its token. */
    assert_int_equal(pair_requests(p, 0), 1);
    char write[160];
    snprintf(write, sizeof write, "%s", seat_grant(&a.write).node);
    clave_grant read = seat_grant(&a.read);
    assert_string_equal(number_of(read.node), number_of(write));
    assert_non_null(strstr(read.node, "-__READ__"));
    assert_int_equal(read.token, seat_grant(&a.write).token);
    seat_acquire(&b.read, SEAT_EVER);
    assert_false(seat_holds(&b.read));
    seat_release(&a.write);
    assert_true(seat_holds(&a.read) && seat_holds(&b.read));
    seats_close(&a);
    seats_close(&b);
    assert_no_leftovers(p);
    pair_free(p);
}

/* CURATOR-621: a writer that waited before the downgrade stays behind it. */
static void testContendingDowngrading(void **state)
{
    (void)state;
    struct pair *p = world(3);
    struct seats a, b, c;
    seats_open(&a, p, 0, "/rw", NULL);
    seats_open(&b, p, 1, "/rw", NULL);
    seats_open(&c, p, 2, "/rw", NULL);
    seat_acquire(&a.write, SEAT_EVER);
    seat_acquire(&b.write, SEAT_EVER);
    seat_acquire(&c.read, SEAT_EVER);
    seat_acquire(&a.read, SEAT_EVER);
    assert_true(seat_holds(&a.read));
    seat_release(&a.write);
    assert_false(seat_holds(&b.write));
    assert_false(seat_holds(&c.read)); /* the order of arrival otherwise */
    seat_release(&a.read);
    assert_true(seat_holds(&b.write));
    seat_release(&b.write);
    assert_true(seat_holds(&c.read));
    seats_close(&a);
    seats_close(&b);
    seats_close(&c);
    assert_no_leftovers(p);
    pair_free(p);
}

/* The read is asked for and the write given back in one flight. */
static void a_downgrade_need_not_be_awaited(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seats a, b;
    seats_open(&a, p, 0, "/rw", NULL);
    seats_open(&b, p, 1, "/rw", NULL);
    seat_acquire(&a.write, SEAT_EVER);
    seat_acquire(&b.write, SEAT_EVER);
    seat_ask(&a.read, SEAT_EVER);
    seat_release(&a.write);
    assert_true(seat_holds(&a.read));
    assert_false(seat_holds(&b.write));
    seats_close(&a);
    assert_true(seat_holds(&b.write));
    seats_close(&b);
    assert_no_leftovers(p);
    pair_free(p);
}

/* Another owner's read does not ride on my write. */
static void testThatDowngradingRespectsThreads(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct seats a, b;
    seats_open(&a, p, 0, "/rw", NULL);
    seats_share(&b, &a, 7);
    seat_acquire(&a.write, SEAT_EVER);
    seat_acquire(&b.read, SEAT_TRY);
    assert_int_equal(b.read.err, CLAVE_EBUSY);
    assert_false(seat_holds(&b.read));
    seats_close(&a);
    pair_free(p);
}

/* Beside Curator 5.4's form of the downgrade: a read behind the write with a number of its
 * own. Whoever comes after it, waits for it. */
static void a_downgrade_of_curator_5_4_is_waited_for(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seats a;
    static const char read[] = "/rw/_c_00000000-0000-0000-0000-000000000002-__READ__0000000001";
    seats_open(&a, p, 0, "/rw", NULL);
    seat_make(p, 1, "/rw");
    assert_int_equal(
        seat_make(p, 1, "/rw/_c_00000000-0000-0000-0000-000000000001-__WRIT__0000000000"),
        CLAVE_OK);
    assert_int_equal(seat_make(p, 1, read), CLAVE_OK);
    seat_acquire(&a.write, SEAT_EVER);
    assert_int_equal(a.write.ahead, 2);
    seat_remove(p, 1, "/rw/_c_00000000-0000-0000-0000-000000000001-__WRIT__0000000000");
    assert_false(seat_holds(&a.write));
    seat_remove(p, 1, read);
    assert_true(seat_holds(&a.write));
    seats_close(&a);
    pair_free(p);
}

/* The write node goes before the read stands: the read has no claim to its place. */
static void a_downgrade_of_a_write_that_is_gone_queues_as_any_read(void **state)
{
    (void)state;
    struct pair *p = world(3);
    struct seats a, b;
    char node[160];
    seats_open(&a, p, 0, "/rw", NULL);
    seats_open(&b, p, 1, "/rw", NULL);
    seat_acquire(&a.write, SEAT_EVER);
    seat_acquire(&b.write, SEAT_EVER);
    snprintf(node, sizeof node, "%s", seat_grant(&a.write).node);
    pair_rule(p, (struct pair_rule){0, PAIR_REQUEST, OP_MULTI, PAIR_HOLD, 0});
    seat_ask(&a.read, SEAT_EVER);
    pair_settle(p);
    assert_int_equal(seat_remove(p, 2, node), CLAVE_OK);
    assert_true(seat_holds(&b.write));
    pair_clear(p);
    pair_advance(p, 100); /* what failed is tried again after a pause */
    assert_true(seat_holds(&b.write));
    assert_false(seat_holds(&a.read));
    seat_release(&b.write);
    assert_true(seat_holds(&a.read));
    assert_int_equal(a.read.answers, 1);
    seats_close(&a);
    seats_close(&b);
    assert_no_leftovers(p);
    pair_free(p);
}

/* The answer to the downgrade's create is lost, or the request itself: it is found out. */
static void a_downgrade_survives_lost_messages(void **state)
{
    (void)state;
    static const struct {
        enum pair_way way;
        enum pair_fate fate;
    } cases[] = {{PAIR_REQUEST, PAIR_LOSE},
                 {PAIR_REQUEST, PAIR_PASS_CUT},
                 {PAIR_REPLY, PAIR_LOSE},
                 {PAIR_REPLY, PAIR_PASS_CUT}};
    for (size_t i = 0; i < 4; i++) {
        struct pair *p = world(2);
        struct seats a, b;
        seats_open(&a, p, 0, "/rw", NULL);
        seats_open(&b, p, 1, "/rw", NULL);
        seat_acquire(&a.write, SEAT_EVER);
        seat_acquire(&b.write, SEAT_EVER);
        pair_rule(p, (struct pair_rule){0, cases[i].way, OP_MULTI, cases[i].fate, 0});
        seat_acquire(&a.read, SEAT_EVER);
        pair_advance(p, 2000);
        assert_true(seat_holds(&a.read));
        assert_int_equal(a.read.answers, 1);
        assert_int_equal(seat_list(p, 1, "/rw", NULL, 0), 3);
        assert_string_equal(number_of(seat_grant(&a.read).node), "0000000000");
        assert_int_equal(seat_grant(&a.read).token, seat_grant(&a.write).token);
        seat_release(&a.write);
        pair_advance(p, 1000);
        assert_false(seat_holds(&b.write));
        seat_release(&a.read);
        assert_true(seat_holds(&b.write));
        seats_close(&a);
        seats_close(&b);
        assert_no_leftovers(p);
        pair_free(p);
    }
}

/* Cancelled, or the session killed, with the downgrade's answer still to come. */
static void a_downgrade_given_up_leaves_nothing(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        struct pair *p = world(2);
        struct seats a, b;
        seats_open(&a, p, 0, "/rw", NULL);
        seats_open(&b, p, 1, "/rw", NULL);
        seat_acquire(&a.write, SEAT_EVER);
        pair_rule(p,
                  (struct pair_rule){0, PAIR_REPLY, OP_MULTI, way % 2 ? PAIR_LOSE : PAIR_HOLD, 0});
        seat_ask(&a.read, SEAT_EVER);
        if (way < 2)
            assert_int_equal(clave_async_mutex_cancel(a.read.m, 0), CLAVE_OK);
        pair_settle(p);
        if (way >= 2)
            pair_kill_session(p, 0);
        pair_clear(p);
        pair_advance(p, 3 * TIMEOUT);
        assert_int_equal(a.read.answers, 1);
        assert_int_equal(a.read.err, way < 2 ? CLAVE_ECANCELED : CLAVE_OK);
        assert_int_equal(a.write.lost, way < 2 ? 0 : 1);
        assert_int_equal(seat_holds(&a.write), way < 2);
        assert_int_equal(seat_release(&a.write), way < 2 ? CLAVE_OK : CLAVE_ELOST);
        if (way >= 2)
            assert_int_equal(seat_release(&a.read), seat_holds(&a.read) ? CLAVE_OK : CLAVE_ELOST);
        seat_acquire(&b.write, SEAT_EVER);
        assert_true(seat_holds(&b.write));
        seats_close(&a);
        seats_close(&b);
        assert_no_leftovers(p);
        pair_free(p);
    }
}

/* ---- upgrade --------------------------------------------------------------------------- */

static void testThatUpgradingIsDisallowed(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seats a, b;
    seats_open(&a, p, 0, "/rw", NULL);
    seats_open(&b, p, 1, "/rw", NULL);
    seat_acquire(&a.read, SEAT_EVER);
    pair_reset_counts(p);
    assert_int_equal(seat_ask(&a.write, SEAT_EVER), CLAVE_EUPGRADE);
    assert_int_equal(seat_ask(&a.write, 1000), CLAVE_EUPGRADE);
    assert_int_equal(pair_requests(p, 0), 0);
    /* Nor while the read still waits. */
    seat_release(&a.read);
    seat_acquire(&b.write, SEAT_EVER);
    seat_acquire(&a.read, SEAT_EVER);
    assert_int_equal(seat_ask(&a.write, SEAT_EVER), CLAVE_EUPGRADE);
    seat_release(&b.write);
    assert_true(seat_holds(&a.read));
    /* A write held already may be held again, read or no read. */
    seat_release(&a.read);
    seat_acquire(&a.write, SEAT_EVER);
    seat_acquire(&a.read, SEAT_EVER);
    assert_int_equal(seat_acquire(&a.write, SEAT_EVER), CLAVE_OK);
    assert_int_equal(seat_grant(&a.write).count, 2);
    seat_release(&a.write);
    seat_release(&a.write);
    assert_int_equal(seat_ask(&a.write, SEAT_EVER), CLAVE_EUPGRADE);
    seats_close(&a);
    seats_close(&b);
    assert_no_leftovers(p);
    pair_free(p);
}

static void a_read_behind_my_own_waiting_write_is_refused(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seats a, b;
    seats_open(&a, p, 0, "/rw", NULL);
    seats_open(&b, p, 1, "/rw", NULL);
    seat_acquire(&a.read, SEAT_EVER);
    seat_acquire(&b.write, SEAT_EVER);
    assert_int_equal(seat_ask(&b.read, SEAT_EVER), CLAVE_EINVAL);
    seats_close(&a);
    assert_true(seat_holds(&b.write));
    seats_close(&b);
    pair_free(p);
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

static size_t participants(struct pair *p, clave_rwlock_kind kind)
{
    struct count count = {0};
    assert_int_equal(
        clave_async_rwlock_participants(p->end[0].c, "/rw", kind, on_participants, &count),
        CLAVE_OK);
    pair_settle(p);
    assert_int_equal(count.answers, 1);
    return count.n;
}

static void testGetParticipantNodes(void **state)
{
    (void)state;
    enum { READERS = 20, WRITERS = 8 };
    struct pair *p = world(READERS + WRITERS);
    struct seats s[READERS + WRITERS];
    assert_int_equal(participants(p, CLAVE_RWLOCK_BOTH), 0);
    for (size_t i = 0; i < READERS + WRITERS; i++) {
        seats_open(&s[i], p, i, "/rw", NULL);
        seat_acquire(i < READERS ? &s[i].read : &s[i].write, SEAT_EVER);
    }
    assert_int_equal(participants(p, CLAVE_RWLOCK_READ), READERS);
    assert_int_equal(participants(p, CLAVE_RWLOCK_WRITE), WRITERS);
    assert_int_equal(participants(p, CLAVE_RWLOCK_BOTH), READERS + WRITERS);
    for (size_t i = 0; i < READERS + WRITERS; i++)
        seats_close(&s[i]);
    assert_no_leftovers(p);
    pair_free(p);
}

static void on_data(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    assert_int_equal(res->err, CLAVE_OK);
    snprintf(arg, 16, "%.*s", (int)res->len, (const char *)res->data);
}

/* The data is copied at construction. A downgrade carries it too. */
static void testSetNodeData(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct seats a;
    char data[] = "here";
    clave_mutex_options o = {.size = sizeof o, .data = data, .len = 4};
    seats_open(&a, p, 0, "/rw", &o);
    data[0] = 't';
    seat_acquire(&a.write, SEAT_EVER);
    seat_acquire(&a.read, SEAT_EVER);
    for (int i = 0; i < 2; i++) {
        char found[16] = "";
        const char *node = seat_grant(i ? &a.read : &a.write).node;
        clave_async_get(p->end[0].c, node, NULL, on_data, found);
        pair_settle(p);
        assert_string_equal(found, "here");
    }
    seats_close(&a);
    pair_free(p);
}

/* The path of a killed session's write lock is gone when another gets the lock. */
static void testLockPath(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seats a, b;
    char node[160], names[4][96];
    seats_open(&a, p, 0, "/rw", NULL);
    seats_open(&b, p, 1, "/rw", NULL);
    seat_acquire(&a.write, SEAT_EVER);
    snprintf(node, sizeof node, "%s", seat_grant(&a.write).node);
    seat_acquire(&b.write, SEAT_EVER);
    pair_kill_session(p, 0);
    pair_advance(p, 3000);
    assert_true(seat_holds(&b.write));
    assert_int_equal(a.write.lost, 1);
    assert_int_equal(seat_list(p, 1, "/rw", names, 4), 1);
    assert_null(strstr(node, names[0]));
    seats_close(&a);
    seats_close(&b);
    assert_no_leftovers(p);
    pair_free(p);
}

/* ---- sessions and faults ---------------------------------------------------------------- */

/* Both grants of a downgrade go with the session, each told once. */
static void a_session_that_ends_takes_both_sides(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seats a;
    seats_open(&a, p, 0, "/rw", NULL);
    seat_acquire(&a.write, SEAT_EVER);
    seat_acquire(&a.read, SEAT_EVER);
    pair_kill_session(p, 0);
    pair_advance(p, 3000);
    assert_int_equal(a.write.lost, 1);
    assert_int_equal(a.read.lost, 1);
    assert_int_equal(seat_ask(&a.read, SEAT_EVER), CLAVE_ELOST);
    assert_int_equal(seat_release(&a.read), CLAVE_ELOST);
    /* The write is lost and not yet given back. */
    assert_int_equal(seat_ask(&a.read, SEAT_EVER), CLAVE_ELOST);
    assert_int_equal(seat_release(&a.write), CLAVE_ELOST);
    assert_int_equal(seat_acquire(&a.read, SEAT_EVER), CLAVE_OK);
    assert_true(seat_holds(&a.read));
    seats_close(&a);
    assert_no_leftovers(p);
    pair_free(p);
}

static void a_waiting_reader_keeps_its_place_over_a_reconnect(void **state)
{
    (void)state;
    struct pair *p = world(3);
    struct seats s[3];
    for (size_t i = 0; i < 3; i++)
        seats_open(&s[i], p, i, "/rw", NULL);
    seat_acquire(&s[0].write, SEAT_EVER);
    seat_acquire(&s[1].read, SEAT_EVER);
    seat_acquire(&s[2].write, SEAT_EVER);
    pair_reset_counts(p);
    pair_cut(p, 1);
    pair_advance(p, 1000);
    assert_int_equal(p->end[1].requests[OP_CREATE2], 0);
    seat_release(&s[0].write);
    assert_true(seat_holds(&s[1].read));
    assert_false(seat_holds(&s[2].write));
    for (size_t i = 0; i < 3; i++)
        seats_close(&s[i]);
    assert_no_leftovers(p);
    pair_free(p);
}

/* A writes and downgrades, B reads, C writes; one message of one of them is lost, in any
 * way. Nobody ever holds beside a writer, all get their turn, and nothing is left. */
static void play(struct pair *p, struct seats *a, struct seats *b, struct seats *c)
{
    seat_acquire(&a->write, SEAT_EVER);
    pair_advance(p, 3000);
    seat_acquire(&b->read, SEAT_EVER);
    pair_advance(p, 3000);
    seat_acquire(&c->write, SEAT_EVER);
    pair_advance(p, 3000);
    assert_true(seat_holds(&a->write));
    assert_false(seat_holds(&b->read) || seat_holds(&c->write));
    seat_acquire(&a->read, SEAT_EVER);
    pair_advance(p, 3000);
    assert_int_equal(seat_release(&a->write), CLAVE_OK);
    pair_advance(p, 3000);
    assert_true(seat_holds(&a->read) && seat_holds(&b->read));
    assert_false(seat_holds(&c->write));
    assert_int_equal(seat_release(&a->read), CLAVE_OK);
    assert_int_equal(seat_release(&b->read), CLAVE_OK);
    pair_advance(p, 3000);
    assert_true(seat_holds(&c->write));
    assert_int_equal(seat_release(&c->write), CLAVE_OK);
    pair_advance(p, 3000);
    assert_int_equal(a->write.answers + a->read.answers, 2);
    assert_int_equal(b->read.answers + c->write.answers, 2);
}

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
    for (size_t i = 0; i < sizeof ops / sizeof *ops * 4 * 3 * 3; i++) {
        struct pair *p = world(3);
        struct seats s[3];
        for (size_t k = 0; k < 3; k++)
            seats_open(&s[k], p, k, "/x/rw", NULL);
        pair_rule(p, (struct pair_rule){i % 3, ways[i / 3 % 4].way, ops[i / 36],
                                        ways[i / 3 % 4].fate, (unsigned)(i / 12 % 3)});
        play(p, &s[0], &s[1], &s[2]);
        assert_no_leftovers(p);
        for (size_t k = 0; k < 3; k++)
            seats_close(&s[k]);
        pair_free(p);
    }
}

/* Each allocation of a downgrade's whole life fails once: an error that is told, or an attempt
 * that is made up for; never a grant that is not one, and nothing is left. */
static bool one_allocation_fails(size_t which)
{
    struct failmem mem;
    failmem_init(&mem);
    struct pair *p =
        pair_new(&(struct pair_options){.clients = 1, .timeout_ms = TIMEOUT, .mem = &mem.mem});
    struct seats a;
    failmem_arm(&mem, which, 1);
    if (seats_open(&a, p, 0, "/rw", NULL) == CLAVE_OK) {
        clave_err write = seat_acquire(&a.write, SEAT_EVER);
        pair_advance(p, 3000);
        assert_true(write == CLAVE_OK || write == CLAVE_ENOMEM);
        assert_int_equal(a.write.answers, write == CLAVE_OK);
        assert_int_equal(seat_holds(&a.write), a.write.answers && a.write.err == CLAVE_OK);
        clave_err read = seat_acquire(&a.read, SEAT_EVER);
        pair_advance(p, 3000);
        assert_true(read == CLAVE_OK || read == CLAVE_ENOMEM);
        assert_int_equal(a.read.answers, read == CLAVE_OK);
        assert_int_equal(seat_holds(&a.read), a.read.answers && a.read.err == CLAVE_OK);
        if (seat_holds(&a.write))
            assert_int_equal(seat_release(&a.write), CLAVE_OK);
        if (seat_holds(&a.read))
            assert_int_equal(seat_release(&a.read), CLAVE_OK);
        pair_advance(p, 3000);
        seats_close(&a);
    }
    pair_advance(p, 3000);
    bool failed = mem.failed;
    failmem_arm(&mem, 0, 0);
    assert_no_leftovers(p);
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
    assert_true(which > 30);
}

/* A writer that waits behind a write that becomes a read is granted after the read: its token
 * has to be the greater. (Seed 10, docs/simulation.md.) */
static void tokens_grow_past_a_downgrade(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seats a, b;
    seats_open(&a, p, 0, "/rw", NULL);
    seats_open(&b, p, 1, "/rw", NULL);
    seat_acquire(&a.write, SEAT_EVER);
    seat_acquire(&b.write, SEAT_EVER);
    seat_acquire(&a.read, SEAT_EVER);
    int64_t token = seat_grant(&a.read).token;
    seat_release(&a.write);
    assert_int_equal(seat_grant(&a.read).token, token);
    seat_release(&a.read);
    assert_true(seat_holds(&b.write));
    assert_true(seat_grant(&b.write).token > token);
    seats_close(&a);
    seats_close(&b);
    pair_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_share_and_writers_do_not),
        cmocka_unit_test(a_reader_watches_the_nearest_write_before_it),
        cmocka_unit_test(a_write_that_gives_up_does_not_let_readers_in),
        cmocka_unit_test(testBasic),
        cmocka_unit_test(a_try_of_either_side_leaves_nothing),
        cmocka_unit_test(testDowngrading),
        cmocka_unit_test(testContendingDowngrading),
        cmocka_unit_test(a_downgrade_need_not_be_awaited),
        cmocka_unit_test(testThatDowngradingRespectsThreads),
        cmocka_unit_test(a_downgrade_of_curator_5_4_is_waited_for),
        cmocka_unit_test(a_downgrade_of_a_write_that_is_gone_queues_as_any_read),
        cmocka_unit_test(a_downgrade_survives_lost_messages),
        cmocka_unit_test(a_downgrade_given_up_leaves_nothing),
        cmocka_unit_test(testThatUpgradingIsDisallowed),
        cmocka_unit_test(a_read_behind_my_own_waiting_write_is_refused),
        cmocka_unit_test(testGetParticipantNodes),
        cmocka_unit_test(testSetNodeData),
        cmocka_unit_test(testLockPath),
        cmocka_unit_test(a_session_that_ends_takes_both_sides),
        cmocka_unit_test(a_waiting_reader_keeps_its_place_over_a_reconnect),
        cmocka_unit_test(any_message_may_be_lost_once),
        cmocka_unit_test(every_allocation_may_fail_once),
        cmocka_unit_test(tokens_grow_past_a_downgrade),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
