/* A counter: each change exactly once, whatever is lost. Curator's tests of DistributedAtomicLong
 * bear their names. */
#include "base/rand.h"
#include "clave/async/counter.h"
#include "lib/each_fault.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

enum { TIMEOUT = 8000, A = 0, B = 1, CONTENDERS = 20 };

struct tally {
    struct memnet *p;
    clave_async_counter *n;
    unsigned answers, unknown, refused;
    clave_err err;
    int64_t before, after;
};

static void on_done(clave_async_counter *n, clave_err err, int64_t before, int64_t after, void *arg)
{
    struct tally *t = arg;
    (void)n;
    t->answers++;
    t->err = err;
    t->before = before;
    t->after = after;
    t->unknown += err == CLAVE_ECONNLOSS;
    t->refused += err != CLAVE_OK && err != CLAVE_ECONNLOSS;
}

static void open_counter(struct tally *t, struct memnet *p, size_t client)
{
    *t = (struct tally){.p = p};
    assert_int_equal(clave_async_counter_new(&t->n, p->clients[client].c, "/c/n"), CLAVE_OK);
}

static struct memnet *world(struct tally *a, struct tally *b)
{
    struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2, .timeout_ms = TIMEOUT});
    memnet_settle(p);
    open_counter(a, p, A);
    open_counter(b, p, B);
    return p;
}

static void leave(struct tally *a, struct tally *b)
{
    CLOSED_BY(memnet_freed) struct memnet *p = a->p;
    clave_async_counter_free(a->n);
    clave_async_counter_free(b->n);
    memnet_settle(p);
    memnet_advance(p, 2000);
    assert_int_equal(memnet_stats(p).ephemerals, 0); /* no marker is left */
}

/* Settles, and expects an answer. */
static clave_err add(struct tally *t, int64_t delta)
{
    unsigned before = t->answers;
    assert_int_equal(clave_async_counter_add(t->n, delta, on_done, t), CLAVE_OK);
    assert_int_equal(t->answers, before);
    memnet_settle(t->p);
    for (int i = 0; i < 200 && t->answers == before; i++)
        memnet_advance(t->p, 100);
    assert_int_equal(t->answers, before + 1);
    return t->err;
}

static int64_t get(struct tally *t)
{
    assert_int_equal(clave_async_counter_get(t->n, on_done, t), CLAVE_OK);
    memnet_settle(t->p);
    assert_int_equal(t->err, CLAVE_OK);
    return t->after;
}

TEST(testBasic)
{
    struct tally a, b;
    struct memnet *p = world(&a, &b);
    assert_int_equal(get(&a), 0);
    assert_int_equal(add(&a, 1), CLAVE_OK);
    assert_int_equal(add(&b, 9), CLAVE_OK);
    assert_int_equal(b.before, 1);
    assert_int_equal(b.after, 10);
    assert_int_equal(add(&a, -30), CLAVE_OK);
    assert_int_equal(get(&b), -20);
    for (int i = 0; i < 5; i++) /* in order, one after another */
        assert_int_equal(clave_async_counter_add(a.n, 2, on_done, &a), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(a.after, -10);
    assert_int_equal(a.before, -12);
    leave(&a, &b);
}

TEST(testForceSet_and_testCompareAndSet)
{
    struct tally a, b;
    struct memnet *p = world(&a, &b);
    /* testCompareAndSetWithFreshInstance */
    assert_int_equal(clave_async_counter_compare_and_set(a.n, 0, 1, on_done, &a), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(a.err, CLAVE_ENONODE);
    assert_int_equal(clave_async_counter_set(a.n, INT64_MAX, on_done, &a), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(a.err, CLAVE_OK);
    assert_int_equal(add(&b, 1), CLAVE_EINVAL); /* more than 64 bits */
    assert_int_equal(clave_async_counter_compare_and_set(b.n, 3, 1, on_done, &b), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(b.err, CLAVE_EBADVERSION);
    assert_int_equal(clave_async_counter_compare_and_set(b.n, INT64_MAX, INT64_MIN, on_done, &b),
                     CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(b.err, CLAVE_OK);
    assert_int_equal(get(&a), INT64_MIN);
    leave(&a, &b);
}

TEST(testCorruptedValue)
{
    struct tally a, b;
    struct memnet *p = world(&a, &b);
    assert_int_equal(memnet_create(p, B, "/c"), CLAVE_OK);
    assert_int_equal(memnet_create(p, B, "/c/n"), CLAVE_OK);
    assert_int_equal(memnet_set(p, B, "/c/n", "four"), CLAVE_OK);
    assert_int_equal(add(&a, 1), CLAVE_EINVAL);
    assert_non_null(strstr(clave_async_client_errmsg(p->clients[A].c), "4 bytes"));
    assert_int_equal(memnet_set(p, B, "/c/n", ""), CLAVE_OK);
    assert_int_equal(add(&a, 1), CLAVE_OK);
    assert_int_equal(a.after, 1);
    leave(&a, &b);
}

/* The test that Curator lacks: its counter counts twice. `warm`: there is a marker already.
 * `overtaken`: another one counts before the client is back. */
TEST(a_lost_answer_counts_once)
{
    for (int i = 0; i < 8; i++) {
        bool reply = i & 1, warm = i & 2, overtaken = i & 4;
        struct tally a, b;
        struct memnet *p = world(&a, &b);
        int64_t sum = 1;
        assert_int_equal(add(&b, 1), CLAVE_OK);
        if (warm) {
            assert_int_equal(add(&a, 10), CLAVE_OK);
            sum += 10;
        } else { /* so that the container is there */
            assert_int_equal(memnet_create(p, A, "/c/warm"), CLAVE_OK);
        }
        memnet_rule(p, (struct memnet_rule){.client = A,
                                            .way = reply ? MEMNET_REPLY : MEMNET_REQUEST,
                                            .op = OP_MULTI,
                                            .fate = MEMNET_LOSE});
        assert_int_equal(clave_async_counter_add(a.n, 100, on_done, &a), CLAVE_OK);
        if (overtaken) {
            memnet_rule(p, (struct memnet_rule){
                               .client = A, .way = MEMNET_REQUEST, .op = OP_MULTI, .skip = 1});
            memnet_settle(p);
            assert_int_equal(add(&b, 1000), CLAVE_OK);
            sum += 1000;
            memnet_clear(p);
        }
        memnet_settle(p);
        memnet_advance(p, 3000);
        assert_int_equal(a.err, CLAVE_OK);
        assert_int_equal(a.answers, warm ? 2 : 1);
        assert_int_equal(a.after - a.before, 100);
        assert_int_equal(get(&b), sum + 100);
        leave(&a, &b);
    }
}

TEST(the_session_is_lost_with_the_answer)
{
    for (int reply = 0; reply < 2; reply++) {
        struct tally a, b;
        struct memnet *p = world(&a, &b);
        assert_int_equal(add(&a, 1), CLAVE_OK);
        memnet_rule(p, (struct memnet_rule){.client = A,
                                            .way = reply ? MEMNET_REPLY : MEMNET_REQUEST,
                                            .op = OP_MULTI});
        assert_int_equal(clave_async_counter_add(a.n, 1, on_done, &a), CLAVE_OK);
        memnet_settle(p);
        memnet_refuse(p, A, true);
        memnet_clear(p);
        memnet_advance(p, 3 * TIMEOUT);
        assert_int_equal(a.answers, 2);
        assert_int_equal(a.err, CLAVE_ECONNLOSS);
        memnet_refuse(p, A, false);
        memnet_advance(p, 3000);
        assert_int_equal(get(&b), reply ? 2 : 1);
        assert_int_equal(add(&a, 1), CLAVE_OK); /* with a marker of the new session */
        assert_int_equal(get(&b), reply ? 3 : 2);
        leave(&a, &b);
    }
}

/* The session ends while the next attempt pauses: in the next one the same transaction would be
 * done once more. */
TEST(a_doubt_ends_with_its_session)
{
    struct tally a, b;
    struct memnet *p = world(&a, &b);
    assert_int_equal(add(&b, 1), CLAVE_OK);
    for (unsigned lost = 0; lost < 2; lost++)
        memnet_rule(p, (struct memnet_rule){.client = A,
                                            .way = lost ? MEMNET_REQUEST : MEMNET_REPLY,
                                            .op = OP_MULTI,
                                            .fate = MEMNET_LOSE,
                                            .skip = lost});
    memnet_rule(p, (struct memnet_rule){
                       .client = A, .way = MEMNET_REQUEST, .op = MEMNET_HANDSHAKE, .skip = 1});
    assert_int_equal(clave_async_counter_add(a.n, 100, on_done, &a), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(a.answers, 0);
    memnet_kill_session(p, A);
    memnet_clear(p);
    memnet_settle(p);
    memnet_advance(p, 3000);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.err, CLAVE_ECONNLOSS);
    assert_int_equal(get(&b), 101);
    assert_int_equal(add(&a, 1), CLAVE_OK);
    leave(&a, &b);
}

/* What has not left when its user gives up is not sent by a later connection. */
TEST(a_counter_that_is_freed_without_a_connection_counts_no_more)
{
    for (int begun = 0; begun < 2; begun++) {
        struct tally a, b;
        struct memnet *p = world(&a, &b);
        assert_int_equal(add(&a, 1), CLAVE_OK);
        memnet_rule(p, (struct memnet_rule){.client = A, .way = MEMNET_REQUEST, .op = OP_MULTI});
        if (begun)
            assert_int_equal(clave_async_counter_add(a.n, 10, on_done, &a), CLAVE_OK);
        memnet_settle(p);
        memnet_refuse(p, A, true);
        memnet_clear(p);
        if (!begun)
            assert_int_equal(clave_async_counter_add(a.n, 10, on_done, &a), CLAVE_OK);
        memnet_advance(p, 200);
        assert_int_equal(a.answers, 1);
        clave_async_counter_free(a.n);
        memnet_refuse(p, A, false);
        memnet_advance(p, 3000);
        assert_int_equal(get(&b), 1);
        open_counter(&a, p, A);
        leave(&a, &b);
    }
}

/* Whoever deletes markers makes the outcome unknown, or is not noticed. */
TEST(a_marker_that_is_gone)
{
    struct tally a, b;
    char names[2][96], path[128];
    struct memnet *p = world(&a, &b);
    assert_int_equal(add(&a, 1), CLAVE_OK);
    assert_int_equal(memnet_list(p, B, "/c/n-markers", names, 2), 1);
    snprintf(path, sizeof path, "/c/n-markers/%s", names[0]);
    assert_int_equal(memnet_delete(p, B, path), CLAVE_OK);
    assert_int_equal(add(&a, 1), CLAVE_OK);
    assert_int_equal(a.after, 2);
    assert_int_equal(memnet_list(p, B, "/c/n-markers", names, 2), 1);
    snprintf(path, sizeof path, "/c/n-markers/%s", names[0]);
    memnet_rule(p, (struct memnet_rule){.client = A, .way = MEMNET_REPLY, .op = OP_MULTI});
    assert_int_equal(clave_async_counter_add(a.n, 1, on_done, &a), CLAVE_OK);
    memnet_settle(p);
    memnet_refuse(p, A, true);
    memnet_clear(p);
    assert_int_equal(memnet_delete(p, B, path), CLAVE_OK);
    memnet_refuse(p, A, false);
    memnet_advance(p, 3000);
    assert_int_equal(a.answers, 3);
    assert_int_equal(a.err, CLAVE_ECONNLOSS);
    assert_int_equal(get(&b), 3);
    leave(&a, &b);
}

/* testSimulation, and what it lacks: connections that break anywhere, sessions that end, a server
 * that is killed. The sum is what was acknowledged, and at most what is unknown beside it. */
TEST(twenty_contenders_and_a_server_that_is_killed)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct rand_state rng;
        struct tally all[CONTENDERS];
        clave__rand_seed(&rng, seed);
        struct memnet *p =
            memnet_new(&(struct memnet_options){.clients = CONTENDERS, .timeout_ms = TIMEOUT});
        memnet_settle(p);
        for (size_t i = 0; i < CONTENDERS; i++)
            open_counter(&all[i], p, i);
        unsigned asked = 0, answers = 0, unknown = 0, refused = 0;
        for (int round = 0; round < 60; round++) {
            size_t who = clave__rand_u64(&rng) % CONTENDERS;
            uint64_t what = clave__rand_u64(&rng) % 16;
            for (size_t i = 0; i < CONTENDERS; i++, asked++)
                assert_int_equal(clave_async_counter_add(all[i].n, 1, on_done, &all[i]), CLAVE_OK);
            if (what < 8)
                memnet_rule(p, (struct memnet_rule){.client = who,
                                                    .way = what & 1,
                                                    .op = OP_MULTI,
                                                    .skip = (unsigned)what & 2,
                                                    .fate = MEMNET_LOSE});
            else if (what < 10)
                memnet_refuse(p, who, true);
            else if (what == 10)
                memnet_stop_server(p);
            memnet_settle(p);
            memnet_advance(p, what == 9 ? 2 * TIMEOUT : 200);
            memnet_clear(p);
            memnet_refuse(p, who, false);
            if (what == 10)
                memnet_start_server(p);
            memnet_advance(p, 300);
        }
        memnet_advance(p, 3 * TIMEOUT);
        for (size_t i = 0; i < CONTENDERS; i++) {
            answers += all[i].answers;
            unknown += all[i].unknown;
            refused += all[i].refused;
        }
        assert_int_equal(answers, asked);
        assert_int_equal(refused, 0);
        assert_in_range(get(&all[0]), asked - unknown, asked);
        assert_true(unknown < asked / 20);
        for (size_t i = 0; i < CONTENDERS; i++)
            clave_async_counter_free(all[i].n);
        memnet_settle(p);
        memnet_advance(p, 3 * TIMEOUT);
        assert_int_equal(memnet_stats(p).ephemerals, 0);
        memnet_free(p);
    }
}

TEST_EACH_ALLOCATION(any_allocation_may_fail, 8)
{
    struct tally t = {0};
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_on(mem, 2, TIMEOUT);
    memnet_settle(p);
    t.p = p;
    failmem_arm(mem, which, 1);
    clave_err err = clave_async_counter_new(&t.n, p->clients[A].c, "/c/n");
    assert_int_equal(err == CLAVE_OK, t.n != NULL);
    if (err == CLAVE_OK)
        err = clave_async_counter_add(t.n, 1, on_done, &t);
    memnet_settle(p);
    memnet_advance(p, 3000);
    failmem_disarm(mem);
    if (err == CLAVE_OK) {
        assert_int_equal(t.answers, 1);
        assert_int_equal(t.err, CLAVE_OK);
        assert_int_equal(get(&t), 1);
    }
    clave_async_counter_free(t.n);
    memnet_settle(p);
}

TEST(an_end_is_told)
{
    struct tally a, b;
    CLOSED_BY(memnet_freed) struct memnet *p = world(&a, &b);
    clave_async_counter *n;
    assert_int_equal(clave_async_counter_new(&n, p->clients[A].c, "c"), CLAVE_EPATH);
    assert_int_equal(clave_async_counter_new(&n, p->clients[A].c, "/"), CLAVE_EPATH);
    assert_null(n);
    clave_async_counter_free(NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(clave_async_counter_add(a.n, 1, on_done, &a), CLAVE_OK);
    clave_async_client_abandon(p->clients[A].c, p->now);
    memnet_settle(p);
    assert_int_equal(a.answers, 3);
    assert_int_equal(a.err, CLAVE_ECLOSED);
    assert_int_equal(clave_async_counter_add(a.n, 1, on_done, &a), CLAVE_ECLOSED);
    clave_async_counter_free(a.n);
    clave_async_counter_free(b.n);
}
