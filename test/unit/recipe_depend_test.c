/* A hold that depends on its work: signs of life, their end, and the node's end a reserve later. */
#include "clave/async/multilock.h"
#include "lib/candidate.h"
#include "lib/mutex_owner.h"
#include "lib/semaphore_user.h"
#include "lib/unit.h"

enum { TIMEOUT = 8000, RESERVE = TIMEOUT / 8, EVERY = 500 };

static clave_async_grant *grant_of(const struct mutex_owner *s)
{
    clave_async_grant *g;
    assert_int_equal(clave_async_mutex_grant(s->m, s->owner, &g), CLAVE_OK);
    return g;
}

/* A holder, with its grant, that depends on its work. */
static clave_async_grant *hold(struct mutex_owner *a, struct memnet *p, size_t client,
                               const clave_mutex_options *o)
{
    assert_int_equal(owner_open(a, p, client, "/l", o), CLAVE_OK);
    owner_acquire(a, OWNER_FOREVER);
    assert_int_equal(a->err, CLAVE_OK);
    clave_async_grant *g = grant_of(a);
    assert_int_equal(clave_async_grant_depend(g, p->now, EVERY), CLAVE_OK);
    return g;
}

static void assert_over(clave_async_grant *g, const struct memnet *p)
{
    assert_int_equal(clave_async_grant_alive(g, p->now), CLAVE_ELOST);
    assert_int_equal(clave_async_grant_depend(g, p->now, EVERY), CLAVE_ELOST);
    assert_true(clave_async_grant_deadline(g) == INT64_MIN);
    assert_false(clave_async_grant_valid_for(g, p->now, 0));
    assert_int_equal(clave_async_grant_set(g, "/l", "", 0, -1, NULL, NULL), CLAVE_ELOST);
}

static size_t nodes(struct memnet *p, size_t client)
{
    return memnet_list(p, client, "/l", NULL, 0);
}

TEST(it_lasts_as_long_as_its_work_gives_signs_of_life)
{
    struct memnet *p = memnet_of(1, TIMEOUT);
    struct mutex_owner a;
    clave_async_grant *g = hold(&a, p, 0, NULL);
    clave_async_grant *same = grant_of(&a);
    for (int i = 0; i < 40; i++) {
        memnet_advance(p, EVERY - 1);
        assert_true(clave_async_grant_deadline(g) <= p->now + 1);
        assert_int_equal(clave_async_grant_alive(i % 2 ? g : same, p->now), CLAVE_OK);
        assert_true(clave_async_grant_valid_for(g, p->now, EVERY));
        assert_false(clave_async_grant_valid_for(same, p->now, EVERY + 1));
        assert_true(owner_grant(&a).deadline == p->now + EVERY);
    }
    /* It may promise more, or nothing any more: then its session alone counts. */
    assert_int_equal(clave_async_grant_depend(g, p->now, INT64_MAX), CLAVE_OK);
    assert_true(clave_async_grant_deadline(g) > p->now + EVERY);
    assert_int_equal(clave_async_grant_depend(g, p->now, 1), CLAVE_OK);
    assert_int_equal(clave_async_grant_depend(g, p->now, 0), CLAVE_OK);
    memnet_advance(p, 3 * TIMEOUT);
    assert_int_equal(clave_async_grant_alive(g, p->now), CLAVE_OK);
    assert_true(clave_async_grant_valid_for(g, p->now, EVERY + 1));
    assert_int_equal(a.lost, 0);
    assert_int_equal(clave_async_grant_depend(g, p->now, -1), CLAVE_EINVAL);
    assert_non_null(strstr(clave_async_client_errmsg(p->clients[0].c), "every -1 ms"));
    clave_async_grant_free(g);
    clave_async_grant_free(same);
    owner_close(&a);
    memnet_free(p);
}

/* Its heartbeats go on, and vouch for nothing. The next owner comes after the reserve. */
TEST(silence_ends_it_and_its_node_a_reserve_later)
{
    struct memnet *p = memnet_of(2, TIMEOUT);
    struct mutex_owner a, b;
    clave_async_grant *g = hold(&a, p, 0, NULL);
    owner_open(&b, p, 1, "/l", NULL);
    owner_begin_acquire(&b, OWNER_FOREVER);
    memnet_settle(p);
    int64_t promised = p->now + EVERY;
    assert_false(clave_async_grant_valid_for(g, promised + 1, 0)); /* whatever the loop has seen */
    assert_int_equal(clave_async_grant_alive(g, promised + 1), CLAVE_ELOST);
    memnet_advance(p, EVERY);
    assert_int_equal(a.lost, 1);
    assert_int_equal(a.why, CLAVE_ESILENT);
    assert_over(g, p);
    memnet_advance(p, RESERVE - 1);
    assert_int_equal(nodes(p, 1), 2);
    assert_false(owner_holds(&b));
    memnet_advance(p, 1);
    assert_true(owner_holds(&b));
    assert_int_equal(nodes(p, 1), 1);
    assert_int_equal(owner_release(&a), CLAVE_ESILENT);
    assert_int_equal(owner_release(&a), CLAVE_ENOTHELD);
    assert_over(g, p);
    clave_async_grant_free(g);
    owner_close(&a);
    owner_close(&b);
    memnet_free(p);
}

TEST(the_reserve_is_the_margin_of_the_session)
{
    struct memnet *p = memnet_new(
        &(struct memnet_options){.clients = 1, .timeout_ms = TIMEOUT, .margin_ms = 2 * RESERVE});
    struct mutex_owner a;
    clave_async_grant *g = hold(&a, p, 0, NULL);
    memnet_advance(p, EVERY + 2 * RESERVE - 1);
    assert_int_equal(a.lost, 1);
    assert_int_equal(nodes(p, 0), 1);
    memnet_advance(p, 1);
    assert_int_equal(nodes(p, 0), 0);
    clave_async_grant_free(g);
    owner_close(&a);
    memnet_free(p);
}

TEST(the_maximum_hold_counts_too)
{
    for (int sooner = 0; sooner < 2; sooner++) {
        struct memnet *p = memnet_of(1, TIMEOUT);
        struct mutex_owner a;
        clave_mutex_options o = {.size = sizeof o, .max_hold_ms = sooner ? EVERY / 2 : 2 * EVERY};
        clave_async_grant *g = hold(&a, p, 0, &o);
        assert_true(clave_async_grant_deadline(g) == p->now + (sooner ? EVERY / 2 : EVERY));
        memnet_advance(p, EVERY / 2);
        if (!sooner)
            assert_int_equal(clave_async_grant_alive(g, p->now), CLAVE_OK);
        memnet_advance(p, EVERY);
        assert_int_equal(a.why, sooner ? CLAVE_EMAXHOLD : CLAVE_ESILENT);
        assert_int_equal(nodes(p, 0), sooner ? 0 : 1);
        assert_int_equal(owner_release(&a), a.why);
        clave_async_grant_free(g);
        owner_close(&a);
        memnet_free(p);
    }
}

/* The answer to the delete is lost: the node is deleted, and nobody is told anything again. */
TEST(a_delete_that_is_in_doubt_is_done)
{
    static const enum memnet_action fates[] = {MEMNET_LOSE, MEMNET_PASS_CUT};
    for (size_t i = 0; i < 4; i++) {
        struct memnet *p = memnet_of(1, TIMEOUT);
        struct mutex_owner a;
        clave_async_grant *g = hold(&a, p, 0, NULL);
        memnet_rule(p, (struct memnet_rule){.way = i < 2 ? MEMNET_REQUEST : MEMNET_REPLY,
                                            .op = OP_DELETE,
                                            .fate = fates[i % 2]});
        memnet_advance(p, EVERY + RESERVE);
        memnet_advance(p, TIMEOUT);
        assert_int_equal(nodes(p, 0), 0);
        assert_int_equal(a.lost, 1);
        clave_async_grant_free(g);
        owner_close(&a);
        assert_int_equal(memnet_stats(p).ephemerals, 0);
        memnet_free(p);
    }
}

/* During the reserve: the connection is away, the session ends, the lock is freed. */
TEST(the_reserve_passes_whatever_else_happens)
{
    for (int what = 0; what < 4; what++) {
        struct memnet *p = memnet_of(2, TIMEOUT);
        struct mutex_owner a;
        clave_async_grant *g = hold(&a, p, 0, NULL);
        memnet_advance(p, EVERY);
        assert_int_equal(a.lost, 1);
        if (what == 0)
            memnet_refuse(p, 0, true);
        else if (what == 1)
            memnet_kill_session(p, 0);
        else if (what == 2)
            owner_close(&a);
        else
            memnet_cut(p, 0);
        memnet_advance(p, RESERVE - 1);
        assert_int_equal(nodes(p, 1), what == 1 ? 0 : 1);
        memnet_refuse(p, 0, false);
        memnet_advance(p, TIMEOUT / 2);
        assert_int_equal(nodes(p, 1), 0);
        clave_async_grant_free(g);
        if (what != 2)
            owner_close(&a);
        memnet_free(p);
    }
}

TEST(both_sides_of_a_read_write_lock_can_depend)
{
    struct memnet *p = memnet_of(1, TIMEOUT);
    struct rwlock_owner a;
    clave_async_grant *write, *read;
    rwlock_owner_open(&a, p, 0, "/l", NULL);
    owner_acquire(&a.write, OWNER_FOREVER);
    write = grant_of(&a.write);
    assert_int_equal(clave_async_grant_depend(write, p->now, EVERY), CLAVE_OK);
    owner_acquire(&a.read, OWNER_FOREVER); /* a downgrade: another hold */
    read = grant_of(&a.read);
    assert_int_equal(owner_release(&a.write), CLAVE_OK);
    memnet_advance(p, 2 * EVERY);
    assert_true(clave_async_grant_valid_for(read, p->now, EVERY + 1));
    assert_int_equal(clave_async_grant_depend(read, p->now, EVERY), CLAVE_OK);
    memnet_advance(p, EVERY);
    assert_int_equal(a.read.why, CLAVE_ESILENT);
    assert_over(read, p);
    memnet_advance(p, RESERVE);
    assert_int_equal(nodes(p, 0), 0);
    clave_async_grant_free(write);
    clave_async_grant_free(read);
    rwlock_owner_close(&a);
    memnet_free(p);
}

TEST(each_lease_depends_by_itself)
{
    struct memnet *p = memnet_of(1, TIMEOUT);
    struct semaphore_user a;
    clave_async_grant *g[2];
    semaphore_user_open(&a, p, 0, 2);
    semaphore_user_acquire(&a, 2, OWNER_FOREVER);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(clave_async_lease_grant(a.held[i], &g[i]), CLAVE_OK);
        assert_int_equal(clave_async_grant_depend(g[i], p->now, EVERY), CLAVE_OK);
    }
    memnet_advance(p, EVERY - 1);
    assert_int_equal(clave_async_grant_alive(g[1], p->now), CLAVE_OK);
    memnet_advance(p, 1);
    assert_int_equal(a.lost, 1);
    assert_int_equal(a.why, CLAVE_ESILENT);
    assert_over(g[0], p);
    assert_int_equal(semaphore_user_release(&a), CLAVE_ESILENT);
    assert_int_equal(semaphore_user_leases_at_server(p), 2);
    assert_int_equal(clave_async_grant_depend(g[1], p->now, 0), CLAVE_OK);
    memnet_advance(p, RESERVE);
    assert_int_equal(semaphore_user_leases_at_server(p), 1);
    assert_true(clave_async_grant_valid_for(g[1], p->now, 1));
    for (int i = 0; i < 2; i++)
        clave_async_grant_free(g[i]);
    semaphore_user_close(&a);
    memnet_assert_no_leftovers(p);
    memnet_free(p);
}

/* Led on, it would lead with work that hangs, so it waits for a resign. */
TEST(a_candidate_whose_work_is_silent_stays_out)
{
    struct memnet *p = memnet_of(2, TIMEOUT);
    struct candidate a, b;
    clave_async_grant *g;
    candidate_enter(&a, p, 0, "/e", NULL);
    candidate_enter(&b, p, 1, "/e", NULL);
    assert_true(candidate_was_told(&a, "L"));
    assert_int_equal(clave_async_latch_grant(a.l, &g), CLAVE_OK);
    assert_int_equal(clave_async_grant_depend(g, p->now, EVERY), CLAVE_OK);
    memnet_advance(p, EVERY);
    assert_true(candidate_was_told(&a, "nf"));
    assert_int_equal(a.why, CLAVE_ESILENT);
    assert_over(g, p);
    candidate_await(&a, -1); /* in vain, and it says so */
    assert_int_equal(a.err, CLAVE_ESILENT);
    assert_false(candidate_leads(&b));
    memnet_advance(p, RESERVE);
    assert_true(candidate_leads(&b));
    candidate_resign(&b); /* it is alone */
    memnet_advance(p, TIMEOUT);
    assert_true(candidate_leads(&b));
    candidate_resign(&a);
    candidate_resign(&b);
    memnet_advance(p, TIMEOUT);
    assert_true(candidate_leads(&a)); /* a new term, which depends on nothing */
    clave_async_grant_free(g);
    candidate_close(&a);
    candidate_close(&b);
    memnet_free(p);
}

/* The term is over, and its work told so: it gives no more signs, and that is no silence. */
TEST(a_term_that_is_over_does_not_fall_silent)
{
    struct memnet *p = memnet_of(1, TIMEOUT);
    clave_latch_options o = {.size = sizeof o, .policy = CLAVE_POLICY_STANDARD};
    struct candidate a;
    clave_async_grant *g;
    candidate_enter(&a, p, 0, "/e", &o);
    assert_int_equal(clave_async_latch_grant(a.l, &g), CLAVE_OK);
    assert_int_equal(clave_async_grant_depend(g, p->now, EVERY), CLAVE_OK);
    memnet_cut(p, 0);
    assert_true(candidate_was_told(&a, "Ln"));
    int64_t promised = p->now + EVERY;
    memnet_advance(p, EVERY + RESERVE - 1);
    assert_false(candidate_leads(&a)); /* its node stands for the reserve */
    assert_true(p->now >= promised);
    memnet_advance(p, TIMEOUT);
    assert_true(candidate_leads(&a));
    assert_int_equal(a.failed, 0);
    clave_async_grant_free(g);
    candidate_close(&a);
    memnet_free(p);
}

TEST(a_candidate_may_resign_when_it_is_told)
{
    struct memnet *p = memnet_of(1, TIMEOUT);
    struct candidate a;
    clave_async_grant *g;
    candidate_enter(&a, p, 0, "/e", NULL);
    assert_int_equal(clave_async_latch_grant(a.l, &g), CLAVE_OK);
    assert_int_equal(clave_async_grant_depend(g, p->now, EVERY), CLAVE_OK);
    memnet_advance(p, EVERY);
    candidate_resign(&a);
    assert_false(candidate_leads(&a)); /* its old node is before the new one */
    memnet_advance(p, RESERVE + TIMEOUT);
    assert_true(candidate_leads(&a));
    clave_async_grant_free(g);
    candidate_close(&a);
    memnet_free(p);
}

struct bundle {
    unsigned lost, answers;
    clave_err why;
};

static void on_bundle_event(clave_async_multilock *m, const clave_multilock_event *ev, void *arg)
{
    struct bundle *b = arg;
    (void)m;
    b->lost++;
    b->why = ev->why;
}

static void on_bundle_answer(clave_async_multilock *m, uint64_t owner, clave_err err,
                             const char *failed, void *arg)
{
    struct bundle *b = arg;
    (void)m, (void)owner, (void)failed;
    assert_int_equal(err, CLAVE_OK);
    b->answers++;
}

TEST(a_lock_of_several_can_depend)
{
    struct memnet *p = memnet_of(1, TIMEOUT);
    struct bundle b = {0};
    const clave_multilock_part parts[] = {{.path = "/l"}, {.path = "/m"}};
    clave_multilock_options o = {.size = sizeof o, .event_cb = on_bundle_event, .event_arg = &b};
    clave_async_multilock *m;
    clave_async_grant *g;
    assert_int_equal(clave_async_multilock_new(&m, p->clients[0].c, parts, 2, &o), CLAVE_OK);
    assert_int_equal(clave_async_multilock_acquire(m, 0, CLAVE_NEVER, on_bundle_answer, &b),
                     CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(b.answers, 1);
    assert_int_equal(clave_async_mutex_grant(clave_async_multilock_at(m, "/l"), 0, &g), CLAVE_OK);
    assert_int_equal(clave_async_grant_depend(g, p->now, EVERY), CLAVE_OK);
    memnet_advance(p, EVERY);
    assert_int_equal(b.lost, 1);
    assert_int_equal(b.why, CLAVE_ESILENT);
    assert_over(g, p);
    clave_async_grant_free(g);
    clave_async_multilock_free(m);
    memnet_free(p);
}

/* The same hold, once with a promise that is kept and once without: the same requests. */
TEST(it_costs_no_request)
{
    uint64_t requests[2], pings[2];
    for (int depends = 0; depends < 2; depends++) {
        struct memnet *p = memnet_new(
            &(struct memnet_options){.clients = 1, .timeout_ms = TIMEOUT, .ensemble = true});
        struct mutex_owner a;
        owner_open(&a, p, 0, "/l", NULL);
        owner_acquire(&a, OWNER_FOREVER);
        clave_async_grant *g = grant_of(&a);
        memnet_reset_counts(p);
        if (depends)
            assert_int_equal(clave_async_grant_depend(g, p->now, EVERY), CLAVE_OK);
        for (int i = 0; i < 10 * TIMEOUT / EVERY; i++) {
            memnet_advance(p, EVERY - 1);
            if (depends)
                assert_int_equal(clave_async_grant_alive(g, p->now), CLAVE_OK);
        }
        assert_int_equal(owner_release(&a), CLAVE_OK);
        requests[depends] = memnet_requests(p, 0);
        pings[depends] = p->clients[0].requests[OP_PING];
        clave_async_grant_free(g);
        owner_close(&a);
        memnet_free(p);
    }
    assert_true(requests[0] > 10); /* heartbeats that pass the leader */
    assert_int_equal(requests[1], requests[0]);
    assert_int_equal(pings[1], pings[0]);
}
