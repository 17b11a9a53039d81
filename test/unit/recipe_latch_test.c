/* The latch: who leads, and what is told. The tests of Curator's acceptance list
 * (TestLeaderLatch) bear their names; the published double leaders are in
 * recipe_timelines_test. */
#include "lib/async_grants.h"
#include "lib/candidate.h"
#include "lib/failmem.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

enum { TIMEOUT = 6000 };

static clave_latch_options by(clave_latch_policy policy)
{
    return (clave_latch_options){.size = sizeof(clave_latch_options), .policy = policy};
}

/* ---- costs and layout ------------------------------------------------------------------ */

static void on_data(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    assert_int_equal(res->err, CLAVE_OK);
    snprintf(arg, 64, "%.*s", (int)res->len, res->data ? (const char *)res->data : "");
}

TEST_CLEAN_NET(the_node_is_curators, 1, TIMEOUT)
{
    clave_latch_options o = by(CLAVE_POLICY_STANDARD);
    CLOSED_BY(candidate_close) struct candidate a;
    char data[64] = "";
    o.id = "n\xc3\xbc";
    candidate_open(&a, p, 0, "/e", &o);
    assert_null(clave_async_latch_own_path(a.l));
    assert_int_equal(clave_async_latch_state_of(a.l), CLAVE_LATCH_LATENT);
    candidate_start(&a);
    assert_int_equal(clave_async_latch_state_of(a.l), CLAVE_LATCH_STARTED);
    const char *node = clave_async_latch_own_path(a.l);
    assert_memory_equal(node, "/e/_c_", 6);
    assert_int_equal(strlen(node), strlen("/e/") + 40 + strlen("latch-") + 10);
    assert_memory_equal(node + 43, "latch-", 6);
    clave_async_get(p->clients[0].c, node, NULL, on_data, data);
    memnet_settle(p);
    assert_string_equal(data, "n\xc3\xbc");
}

TEST_CLEAN_NET(standing_costs_one_flight_and_a_failover_none, 3, TIMEOUT)
{
    struct candidate s[3];
    for (size_t i = 0; i < 3; i++)
        candidate_enter(&s[i], p, i, "/e", NULL);
    assert_true(candidate_was_told(&s[0], "L"));
    assert_true(candidate_was_told(&s[1], "qx"));
    assert_true(candidate_was_told(&s[2], "q"));
    memnet_reset_counts(p);
    candidate_close(&s[0]);
    assert_true(candidate_was_told(&s[1], "L"));
    assert_int_equal(memnet_requests(p, 1), 0);
    assert_int_equal(memnet_requests(p, 2), 1); /* off the critical path */
    assert_true(candidate_was_told(&s[2], "qx"));
    candidate_close(&s[1]);
    candidate_close(&s[2]);
}

/* Among 500 candidates a failover is the delete and one listing, whoever leads next. */
TEST(a_failover_among_500_costs_two_requests)
{
    enum { CLIENTS = 25, N = 500, FAILOVERS = 20 };
    static struct candidate s[N];
    CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(CLIENTS, TIMEOUT);
    for (size_t i = 0; i < N; i++)
        candidate_enter(&s[i], p, i % CLIENTS, "/e", NULL);
    assert_int_equal(candidate_count_leaders(s, N), 1);
    for (size_t i = 0; i < FAILOVERS; i++) {
        uint64_t requests = 0;
        memnet_reset_counts(p);
        candidate_close(&s[i]);
        assert_true(candidate_leads(&s[i + 1]));
        for (size_t c = 0; c < CLIENTS; c++)
            requests += memnet_requests(p, c);
        assert_true(requests <= 2);
    }
    for (size_t i = N; i-- > FAILOVERS;)
        candidate_close(&s[i]);
}

/* ---- Curator's list -------------------------------------------------------------------- */

/* testBasic, testBasicAlt, testWaiting: one leader at a time, and everybody has a turn. */
TEST(testBasic)
{
    enum { N = 10 };
    CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(N, TIMEOUT);
    struct candidate s[N];
    int64_t token = 0;
    for (size_t i = 0; i < N; i++) {
        candidate_enter(&s[i], p, i, "/e", NULL);
        candidate_await(&s[i], -1);
    }
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(candidate_count_leaders(&s[i], N - i), 1);
        assert_true(candidate_leads(&s[i]));
        assert_int_equal(s[i].answers, 1);
        assert_int_equal(s[i].err, CLAVE_OK);
        assert_true(candidate_grant(&s[i]).token > token);
        token = candidate_grant(&s[i]).token;
        candidate_close(&s[i]);
    }
}

/* await with a deadline, cancelled, and of a closed latch. */
TEST_CLEAN_NET(testWaiting, 2, TIMEOUT)
{
    CLOSED_BY(candidate_close) struct candidate a, b;
    candidate_enter(&a, p, 0, "/e", NULL);
    candidate_await(&a, 0);
    assert_int_equal(a.answers, 1); /* it leads */
    assert_int_equal(a.err, CLAVE_OK);
    candidate_enter(&b, p, 1, "/e", NULL);
    candidate_await(&b, 1000);
    memnet_advance(p, 999);
    assert_int_equal(b.answers, 0);
    memnet_advance(p, 1);
    assert_int_equal(b.answers, 1);
    assert_int_equal(b.err, CLAVE_EBUSY);
    candidate_await(&b, -1);
    candidate_await(&b, -1);
    candidate_leave(&b, CLAVE_CLOSE_SILENT);
    assert_int_equal(b.answers, 3);
    assert_int_equal(b.departures, 1);
    candidate_await(&b, -1);
    assert_int_equal(b.err, CLAVE_ECLOSED);
    assert_int_equal(b.answers, 3);
}

static void on_ignored(clave_async_latch *l, clave_err err, void *arg)
{
    (void)l;
    *(clave_err *)arg = err;
}

TEST_NET(a_cancelled_await_answers_once, 2, TIMEOUT)
{
    struct candidate a, b;
    clave_err one = CLAVE_ETIMEDOUT, other = CLAVE_ETIMEDOUT;
    candidate_enter(&a, p, 0, "/e", NULL);
    candidate_enter(&b, p, 1, "/e", NULL);
    clave_async_latch_await(b.l, CLAVE_NEVER, on_ignored, &one);
    clave_async_latch_await(b.l, CLAVE_NEVER, on_ignored, &other);
    assert_int_equal(clave_async_latch_cancel(b.l, on_ignored, &one), CLAVE_OK);
    assert_int_equal(one, CLAVE_ETIMEDOUT); /* never inside the call */
    memnet_settle(p);
    assert_int_equal(one, CLAVE_ECANCELED);
    assert_int_equal(other, CLAVE_ETIMEDOUT);
    assert_int_equal(clave_async_latch_cancel(b.l, on_ignored, &one), CLAVE_ENOTHELD);
    /* A leader's, too, which is not yet told that it leads. */
    clave_async_latch_await(a.l, CLAVE_NEVER, on_ignored, &one);
    assert_int_equal(clave_async_latch_cancel(a.l, on_ignored, &one), CLAVE_OK);
    one = CLAVE_ETIMEDOUT;
    memnet_settle(p);
    assert_int_equal(one, CLAVE_ECANCELED);
    candidate_close(&a);
    assert_int_equal(other, CLAVE_OK);
    candidate_close(&b);
}

/* A participant in the middle closes: its follower does not lead. */
TEST_NET(testCorrectWatching, 3, TIMEOUT)
{
    struct candidate s[3];
    for (size_t i = 0; i < 3; i++)
        candidate_enter(&s[i], p, i, "/e", NULL);
    candidate_close(&s[1]);
    assert_true(candidate_leads(&s[0]));
    assert_false(candidate_leads(&s[2]));
    assert_true(candidate_was_told(&s[2], "qqx"));
    candidate_close(&s[0]);
    assert_true(candidate_leads(&s[2]));
    candidate_close(&s[2]);
}

/* testCallbackSanity, testCallbackNotifyLeader, testCallbackDontNotify. */
TEST_NET(testCallbackSanity, 3, TIMEOUT)
{
    struct candidate s[3];
    for (size_t i = 0; i < 3; i++)
        candidate_enter(&s[i], p, i, "/e", NULL);
    candidate_leave(&s[0], CLAVE_CLOSE_NOTIFY_LEADER);
    assert_true(candidate_was_told(&s[0], "Ln"));
    assert_int_equal(s[0].why, CLAVE_OK);
    candidate_leave(&s[1], CLAVE_CLOSE_SILENT);
    assert_true(candidate_was_told(&s[1], "qxL"));
    candidate_leave(&s[2], CLAVE_CLOSE_NOTIFY_LEADER);
    assert_true(candidate_was_told(&s[2], "qqxLn"));
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(s[i].departures, 1);
        assert_int_equal(s[i].left, CLAVE_OK);
        assert_int_equal(clave_async_latch_state_of(s[i].l), CLAVE_LATCH_CLOSED);
        assert_int_equal(clave_async_latch_start(s[i].l), CLAVE_EINVAL);
        assert_int_equal(clave_async_latch_close(s[i].l, CLAVE_CLOSE_SILENT, NULL, NULL),
                         CLAVE_EINVAL);
    }
    memnet_assert_no_leftovers(p);
    for (size_t i = 0; i < 3; i++)
        candidate_close(&s[i]);
}

/* CURATOR-110: started without a server, elected once when there is one. */
TEST_NET(testNoServerAtStart, 1, TIMEOUT)
{
    CLOSED_BY(candidate_close) struct candidate a;
    memnet_stop_server(p);
    candidate_enter(&a, p, 0, "/e", NULL);
    memnet_advance(p, 3000);
    assert_int_equal(a.leader, 0);
    memnet_start_server(p);
    memnet_advance(p, 12000);
    assert_true(candidate_leads(&a));
    assert_int_equal(a.leader, 1);
    assert_int_equal(memnet_list(p, 0, "/e", NULL, 0), 1);
}

/* Closed before the first connection: nothing stands afterwards. */
TEST_CLEAN_NET(testProperCloseWithoutConnectionEstablished, 2, TIMEOUT)
{
    CLOSED_BY(candidate_close) struct candidate a;
    memnet_refuse(p, 0, true);
    memnet_advance(p, TIMEOUT * 2);
    candidate_enter(&a, p, 0, "/e", NULL);
    candidate_leave(&a, CLAVE_CLOSE_SILENT);
    memnet_refuse(p, 0, false);
    memnet_advance(p, 5000);
    assert_int_equal(a.leader, 0);
    assert_int_equal(a.departures, 1);
    assert_int_equal(memnet_list(p, 1, "/e", NULL, 0), 0);
}

/* CURATOR-3, two resets: here two resignations at once leave one node. */
TEST_CLEAN_NET(testResetRace, 1, TIMEOUT)
{
    CLOSED_BY(candidate_close) struct candidate a;
    candidate_enter(&a, p, 0, "/e", NULL);
    assert_int_equal(clave_async_latch_resign(a.l), CLAVE_OK);
    assert_int_equal(clave_async_latch_resign(a.l), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(memnet_list(p, 0, "/e", NULL, 0), 1);
    assert_true(candidate_leads(&a));
    /* The first one stands yet when the second lists. */
    assert_true(candidate_was_told(&a, "LnqxL"));
}

/* Closed while the create is under way: no node is left. */
TEST(testCreateDeleteRace)
{
    struct memnet *p = memnet_of(1, TIMEOUT);
    struct candidate a;
    candidate_open(&a, p, 0, "/e", NULL);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_CREATE2, MEMNET_HOLD, 1});
    candidate_start(&a);
    assert_int_equal(memnet_stats(p).ephemerals, 1);
    candidate_leave(&a, CLAVE_CLOSE_SILENT);
    assert_int_equal(a.departures, 0);
    memnet_clear(p);
    memnet_settle(p);
    assert_int_equal(a.departures, 1);
    assert_int_equal(a.leader, 0);
    memnet_assert_no_leftovers(p);
    candidate_close(&a);
    memnet_free(p);
}

/* No leaders while the server is down, one afterwards. */
TEST_CLEAN_NET(testLostConnection, 4, TIMEOUT)
{
    clave_latch_options o = by(CLAVE_POLICY_STANDARD);
    struct candidate s[4];
    for (size_t i = 0; i < 4; i++)
        candidate_enter(&s[i], p, i, "/e", &o);
    memnet_stop_server(p);
    memnet_advance(p, 100);
    assert_int_equal(candidate_count_leaders(s, 4), 0);
    assert_int_equal(s[0].not_leader, 1);
    assert_int_equal(s[0].why, CLAVE_ECONNLOSS);
    memnet_advance(p, TIMEOUT * 2);
    assert_int_equal(candidate_count_leaders(s, 4), 0);
    memnet_start_server(p);
    memnet_advance(p, TIMEOUT * 3);
    assert_int_equal(candidate_count_leaders(s, 4), 1);
    assert_int_equal(memnet_list(p, 0, "/e", NULL, 0), 4);
    for (size_t i = 0; i < 4; i++)
        candidate_close(&s[i]);
}

/* The standard policy: false with SUSPENDED. Its node goes at the deadline that the term had then,
 * and not before; the next candidate leads; each term has a larger token than the one before. */
TEST_CLEAN_NET(testErrorPolicies, 2, TIMEOUT)
{
    clave_latch_options o = by(CLAVE_POLICY_STANDARD);
    struct candidate s[2];
    candidate_enter(&s[0], p, 0, "/e", &o);
    candidate_enter(&s[1], p, 1, "/e", &o);
    for (size_t i = 0; i < 4; i++) {
        struct candidate *leader = &s[i % 2], *next = &s[1 - i % 2];
        struct grant_facts term = candidate_grant(leader);
        char node[128];
        snprintf(node, sizeof node, "%s", clave_async_latch_own_path(leader->l));
        int64_t deadline = term.deadline;
        memnet_refuse(p, i % 2, true);
        memnet_advance(p, 1000);
        assert_false(candidate_leads(leader));
        assert_int_equal(leader->why, CLAVE_ECONNLOSS);
        assert_int_equal(guarded_set(of_latch(leader->l), "/x", "", 0, -1, NULL, NULL),
                         CLAVE_ENOTHELD);
        memnet_refuse(p, i % 2, false);
        memnet_advance(p, deadline - 1 - p->now);
        assert_int_equal(candidate_count_leaders(s, 2), 0);
        assert_string_equal(clave_async_latch_own_path(leader->l), node);
        memnet_advance(p, 50);
        assert_true(candidate_leads(next));
        assert_true(candidate_grant(next).token > term.token);
        assert_string_not_equal(clave_async_latch_own_path(leader->l), node);
        assert_int_equal(memnet_list(p, 0, "/e", NULL, 0), 2);
    }
    for (size_t i = 0; i < 2; i++)
        candidate_close(&s[i]);
}

/* A candidate that is alone leads again, with a larger token. */
TEST_CLEAN_NET(a_lost_connection_ends_the_term_of_a_lone_candidate, 1, TIMEOUT)
{
    clave_latch_options o = by(CLAVE_POLICY_STANDARD);
    CLOSED_BY(candidate_close) struct candidate a;
    candidate_enter(&a, p, 0, "/e", &o);
    int64_t token = candidate_grant(&a).token;
    memnet_cut(p, 0);
    memnet_advance(p, TIMEOUT);
    assert_true(candidate_was_told(&a, "LnL"));
    assert_true(candidate_grant(&a).token > token);
}

/* Its work has stopped: the next one leads as soon as the connection is back. */
TEST_CLEAN_NET(one_that_resigns_after_a_lost_connection_is_not_waited_for, 2, TIMEOUT)
{
    clave_latch_options o = by(CLAVE_POLICY_STANDARD);
    CLOSED_BY(candidate_close) struct candidate a, b;
    candidate_enter(&a, p, 0, "/e", &o);
    candidate_enter(&b, p, 1, "/e", &o);
    memnet_cut(p, 0);
    candidate_resign(&a);
    memnet_advance(p, 100);
    assert_true(candidate_leads(&b));
    assert_true(candidate_was_told(&a, "Lnqx"));
}

/* Closing it deletes its node, even while the deadline of the ended term is waited for. */
TEST_CLEAN_NET(one_that_closes_after_a_lost_connection_leaves_nothing, 2, TIMEOUT)
{
    clave_latch_options o = by(CLAVE_POLICY_STANDARD);
    CLOSED_BY(candidate_close) struct candidate a, b;
    candidate_enter(&a, p, 0, "/e", &o);
    candidate_enter(&b, p, 1, "/e", &o);
    memnet_cut(p, 0);
    candidate_leave(&a, CLAVE_CLOSE_NOTIFY_LEADER);
    memnet_advance(p, 100);
    assert_int_equal(a.departures, 1);
    assert_int_equal(a.left, CLAVE_OK);
    assert_true(candidate_leads(&b));
    assert_int_equal(memnet_list(p, 1, "/e", NULL, 0), 1);
}

/* The node goes and the new one comes in one flight, any message of which may be lost: applied or
 * not, one node each is left, and tokens grow. */
TEST(any_message_of_a_replacement_may_be_lost)
{
    static const int32_t ops[] = {OP_DELETE, OP_CREATE2, OP_GET_CHILDREN2};
    for (unsigned way = 0; way < 6; way++) {
        CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(2, TIMEOUT);
        clave_latch_options o = by(CLAVE_POLICY_STANDARD);
        CLOSED_BY(candidate_close) struct candidate a, b;
        candidate_enter(&a, p, 0, "/e", &o);
        candidate_enter(&b, p, 1, "/e", &o);
        struct grant_facts term = candidate_grant(&a);
        memnet_cut(p, 0);
        memnet_advance(p, 100);
        memnet_rule(p, (struct memnet_rule){0, way % 2 ? MEMNET_REPLY : MEMNET_REQUEST,
                                            ops[way / 2], MEMNET_LOSE, 1});
        memnet_advance(p, 4 * TIMEOUT);
        assert_true(candidate_leads(&b));
        int64_t second = candidate_grant(&b).token;
        assert_true(second > term.token);
        assert_int_equal(memnet_list(p, 1, "/e", NULL, 0), 2);
        assert_false(candidate_leads(&a));
        candidate_resign(&b);
        memnet_advance(p, 100);
        assert_true(candidate_grant(&a).token > second);
    }
}

/* The node of the ended term may be gone already, by an operator or with the session: the candidate
 * stands again once, and is told nothing more. */
TEST(the_node_of_an_ended_term_may_be_gone)
{
    for (unsigned way = 0; way < 2; way++) {
        CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(2, TIMEOUT);
        clave_latch_options o = by(CLAVE_POLICY_STANDARD);
        CLOSED_BY(candidate_close) struct candidate a, b;
        candidate_enter(&a, p, 0, "/e", &o);
        candidate_enter(&b, p, 1, "/e", &o);
        memnet_refuse(p, 0, true);
        if (way == 0)
            assert_int_equal(memnet_delete(p, 1, clave_async_latch_own_path(a.l)), CLAVE_OK);
        memnet_advance(p, way == 0 ? 100 : 3 * TIMEOUT);
        memnet_refuse(p, 0, false);
        memnet_advance(p, 3 * TIMEOUT);
        assert_true(candidate_leads(&b));
        assert_true(candidate_was_told(&a, "Lnqx"));
        assert_int_equal(memnet_list(p, 1, "/e", NULL, 0), 2);
    }
}

/* A connection that is lost for a second, a hundred times, always the leader's: how often another
 * candidate leads. */
TEST(leader_changes_of_a_hundred_blips)
{
    static const struct {
        clave_latch_policy policy;
        unsigned changes;
    } rows[] = {{CLAVE_POLICY_SESSION, 0}, {CLAVE_POLICY_STANDARD, 100}};
    for (size_t k = 0; k < 2; k++) {
        CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(3, TIMEOUT);
        clave_latch_options o = by(rows[k].policy);
        struct candidate s[3];
        unsigned changes = 0;
        int64_t token = 0;
        size_t last = 0;
        for (size_t i = 0; i < 3; i++)
            candidate_enter(&s[i], p, i, "/e", &o);
        for (int blip = 0; blip <= 100; blip++) {
            assert_int_equal(candidate_count_leaders(s, 3), 1);
            size_t leader = 0;
            while (!candidate_leads(&s[leader]))
                leader++;
            int64_t now = candidate_grant(&s[leader]).token;
            changes += leader != last;
            assert_int_equal(now != token, blip == 0 || rows[k].changes > 0);
            assert_true(now >= token);
            token = now;
            last = leader;
            memnet_refuse(p, leader, true);
            memnet_advance(p, 1000);
            memnet_refuse(p, leader, false);
            memnet_advance(p, 2 * TIMEOUT);
        }
        assert_int_equal(changes, rows[k].changes);
        for (size_t i = 0; i < 3; i++)
            candidate_close(&s[i]);
    }
}

/* The session policy: no event at all, and LOST ends it. */
TEST_CLEAN_NET(testSessionErrorPolicy, 2, TIMEOUT)
{
    clave_latch_options o = by(CLAVE_POLICY_SESSION);
    CLOSED_BY(candidate_close) struct candidate a, b;
    candidate_enter(&a, p, 0, "/e", &o);
    candidate_enter(&b, p, 1, "/e", &o);
    memnet_refuse(p, 0, true);
    memnet_advance(p, 1000);
    assert_true(candidate_leads(&a));
    memnet_refuse(p, 0, false);
    memnet_advance(p, 3000);
    assert_true(candidate_leads(&a));
    assert_true(candidate_was_told(&a, "L"));
    assert_true(candidate_was_told(&b, "qx"));
    memnet_refuse(p, 0, true);
    for (int i = 0; i < 2 * TIMEOUT; i += 10) {
        memnet_advance(p, 10);
        assert_true(!candidate_leads(&a) || !candidate_leads(&b));
    }
    assert_true(candidate_leads(&b));
    assert_true(candidate_was_told(&a, "n"));
    memnet_refuse(p, 0, false);
    memnet_advance(p, 5000);
    assert_false(candidate_leads(&a));
    assert_true(candidate_was_told(&a, "qx"));
}

/* testWithCircuitBreaker: repeated outages end in one leader with one node. */
TEST_CLEAN_NET(testWithCircuitBreaker, 2, TIMEOUT)
{
    struct candidate s[2];
    candidate_enter(&s[0], p, 0, "/e", NULL);
    candidate_enter(&s[1], p, 1, "/e", NULL);
    for (int i = 0; i < 5; i++) {
        memnet_stop_server(p);
        memnet_advance(p, 700);
        memnet_start_server(p);
        memnet_advance(p, 700);
    }
    memnet_advance(p, TIMEOUT * 3); /* what was left of lost sessions goes */
    assert_int_equal(candidate_count_leaders(s, 2), 1);
    assert_int_equal(memnet_list(p, 0, "/e", NULL, 0), 2);
    assert_int_equal(s[0].leader + s[1].leader, s[0].not_leader + s[1].not_leader + 1);
    candidate_close(&s[0]);
    candidate_close(&s[1]);
}

TEST_NET(testRelativePath, 1, TIMEOUT)
{
    clave_async_latch *l;
    assert_int_equal(clave_async_latch_new(&l, p->clients[0].c, "e", NULL), CLAVE_EPATH);
    assert_null(l);
    assert_int_equal(clave_async_latch_new(&l, p->clients[0].c, "/e/", NULL), CLAVE_EPATH);
    clave_latch_options bad = by(CLAVE_POLICY_STANDARD);
    bad.max_term_ms = -1;
    assert_int_equal(clave_async_latch_new(&l, p->clients[0].c, "/e", &bad), CLAVE_EINVAL);
    bad = by((clave_latch_policy)7);
    assert_int_equal(clave_async_latch_new(&l, p->clients[0].c, "/e", &bad), CLAVE_EINVAL);
    clave_async_latch_free(NULL);
}

/* CURATOR-365: what forbids standing is told, and the latch rests until it is asked again. */
TEST_CLEAN_NET(testAclErrorWithLeader, 1, TIMEOUT)
{
    clave_latch_options o = by(CLAVE_POLICY_STANDARD);
    clave_acl acl = {CLAVE_PERM_ALL, "auth", ""}; /* nobody is authenticated here */
    CLOSED_BY(candidate_close) struct candidate a;
    o.acls = &acl;
    o.nacls = 1;
    candidate_open(&a, p, 0, "/e", &o);
    candidate_await(&a, -1);
    candidate_start(&a);
    assert_true(candidate_was_told(&a, "f"));
    assert_int_equal(a.why, CLAVE_EINVALIDACL);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.err, CLAVE_EINVALIDACL);
    memnet_advance(p, 30000);
    assert_true(candidate_was_told(&a, ""));
    candidate_resign(&a);
    assert_true(candidate_was_told(&a, "f"));
    candidate_leave(&a, CLAVE_CLOSE_SILENT);
    assert_int_equal(a.departures, 1);
}

/* ---- beyond Curator -------------------------------------------------------------------- */

TEST_CLEAN_NET(a_leader_that_resigns_goes_to_the_end, 3, TIMEOUT)
{
    struct candidate s[3];
    for (size_t i = 0; i < 3; i++)
        candidate_enter(&s[i], p, i, "/e", NULL);
    for (size_t i = 0; i < 6; i++) {
        int64_t token = candidate_grant(&s[i % 3]).token;
        candidate_resign(&s[i % 3]);
        assert_false(candidate_leads(&s[i % 3]));
        assert_true(candidate_leads(&s[(i + 1) % 3]));
        assert_true(candidate_grant(&s[(i + 1) % 3]).token > token);
        assert_int_equal(candidate_count_leaders(s, 3), 1);
    }
    assert_int_equal(s[0].leader, 3);
    assert_int_equal(s[0].not_leader, 2);
    for (size_t i = 0; i < 3; i++)
        candidate_close(&s[i]);
}

/* The loss by our own call is told before whatever follows, though later than the call. */
TEST_NET(a_resignation_is_told_in_order, 1, TIMEOUT)
{
    CLOSED_BY(candidate_close) struct candidate a;
    candidate_enter(&a, p, 0, "/e", NULL);
    int64_t token = candidate_grant(&a).token;
    assert_int_equal(clave_async_latch_resign(a.l), CLAVE_OK);
    assert_true(candidate_was_told(&a, "L"));
    assert_false(candidate_leads(&a));
    memnet_settle(p);
    assert_true(candidate_was_told(&a, "nL"));
    assert_true(candidate_grant(&a).token > token);
}

TEST_NET(a_term_ends, 2, TIMEOUT)
{
    clave_latch_options o = by(CLAVE_POLICY_STANDARD);
    struct candidate a, b;
    o.max_term_ms = 2000;
    candidate_enter(&a, p, 0, "/e", &o);
    candidate_enter(&b, p, 1, "/e", NULL);
    assert_int_equal(candidate_grant(&a).deadline, p->now + 2000);
    assert_true(latch_valid_for(a.l, p->now, 2000));
    assert_false(latch_valid_for(a.l, p->now, 2001));
    memnet_advance(p, 2000);
    assert_true(candidate_leads(&b));
    assert_true(candidate_was_told(&a, "Lnqx"));
    candidate_close(&b);
    assert_true(candidate_leads(&a));
    candidate_close(&a);
}

TEST_NET(guarded_writes_are_done_only_while_it_leads, 2, TIMEOUT)
{
    CLOSED_BY(candidate_close) struct candidate a, b;
    assert_int_equal(memnet_create(p, 0, "/x"), CLAVE_OK);
    candidate_enter(&a, p, 0, "/e", NULL);
    candidate_enter(&b, p, 1, "/e", NULL);
    assert_int_equal(candidate_write(&b, "/x", "b"), CLAVE_ENOTHELD);
    assert_int_equal(candidate_write(&a, "/x", "a"), CLAVE_OK);
    assert_int_equal(a.written, CLAVE_OK);
    char node[128];
    snprintf(node, sizeof node, "%s", clave_async_latch_own_path(a.l));
    /* It does not know yet that somebody has deleted its node. */
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_NOTIFICATION, MEMNET_HOLD, 0});
    assert_int_equal(memnet_delete(p, 1, node), CLAVE_OK);
    assert_true(candidate_leads(&b));
    memnet_clear(p);
    assert_int_equal(candidate_write(&a, "/x", "late"), CLAVE_OK);
    assert_int_equal(a.writes, 2);
    assert_int_equal(a.written, CLAVE_ELOST);
    assert_int_equal(candidate_write(&b, "/x", "b"), CLAVE_OK);
    assert_int_equal(b.written, CLAVE_OK);
}

/* Whatever Curator makes of them (CURATOR-43). */
TEST(other_children_stop_no_election)
{
    static const char *const names[] = {"/e/zzz", "/e/000", "/e/_c_0-latch--3", "/e/latch-"};
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_of(2, TIMEOUT);
    CLOSED_BY(candidate_close) struct candidate a;
    assert_int_equal(memnet_create(p, 1, "/e"), CLAVE_OK);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(memnet_create(p, 1, names[i]), CLAVE_OK);
    candidate_enter(&a, p, 0, "/e", NULL);
    assert_true(candidate_leads(&a));
}

/* The callbacks may do what they like with their latch. */
static void resign_at_once(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    unsigned *left = arg;
    if (ev->kind == CLAVE_LATCH_LEADER && *left > 0) {
        --*left;
        assert_int_equal(clave_async_latch_resign(l), CLAVE_OK);
        assert_false(clave__latch_held(l, &(struct grant_facts){0}));
    }
}

static void free_at_once(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    unsigned *times = arg;
    if (ev->kind == CLAVE_LATCH_LEADER) {
        ++*times;
        clave_async_latch_free(l);
    }
}

TEST_CLEAN_NET(a_callback_may_resign_or_free, 1, TIMEOUT)
{
    clave_latch_options o = by(CLAVE_POLICY_STANDARD);
    clave_async_latch *l;
    unsigned n = 3;
    o.event_cb = resign_at_once;
    o.event_arg = &n;
    assert_int_equal(clave_async_latch_new(&l, p->clients[0].c, "/e", &o), CLAVE_OK);
    clave_async_latch_start(l);
    memnet_settle(p);
    assert_int_equal(n, 0);
    assert_true(clave_async_latch_has_leadership(l, p->now));
    assert_int_equal(memnet_list(p, 0, "/e", NULL, 0), 1);
    clave_async_latch_free(l);
    memnet_settle(p);
    o.event_cb = free_at_once;
    assert_int_equal(clave_async_latch_new(&l, p->clients[0].c, "/e", &o), CLAVE_OK);
    clave_async_latch_start(l);
    memnet_settle(p);
    assert_int_equal(n, 1);
}

TEST_NET(the_clients_end_is_told, 2, TIMEOUT)
{
    struct candidate a, b;
    candidate_enter(&a, p, 0, "/e", NULL);
    candidate_enter(&b, p, 1, "/e", NULL);
    candidate_await(&b, -1);
    clave_async_client_abandon(p->clients[0].c, p->now);
    clave_async_client_abandon(p->clients[1].c, p->now);
    assert_true(candidate_was_told(&a, "Ln"));
    assert_int_equal(a.why, CLAVE_ECLOSED);
    assert_int_equal(b.answers, 1);
    assert_int_equal(b.err, CLAVE_ECLOSED);
    assert_int_equal(clave_async_latch_state_of(a.l), CLAVE_LATCH_CLOSED);
    assert_int_equal(clave_async_latch_state_of(b.l), CLAVE_LATCH_CLOSED);
    clave_async_latch_free(a.l);
    clave_async_latch_free(b.l);
}

/* The client closes. Of two candidates of one client the leader hears of the end first, and
 * withdraws what waits for the other: that is answered, though a closed client has no more ticks.
 */
struct candidates {
    clave_async_latch *leader, *other;
    unsigned answers, losses;
    clave_err err;
};

static void on_leadership(clave_async_latch *l, clave_err err, void *arg)
{
    struct candidates *both = arg;
    (void)l;
    both->answers++;
    both->err = err;
}

static void on_latch_event(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    struct candidates *both = arg;
    if (l != both->leader || ev->kind != CLAVE_LATCH_NOT_LEADER)
        return;
    both->losses++;
    assert_int_equal(clave_async_latch_cancel(both->other, on_leadership, both), CLAVE_OK);
}

TEST(what_a_latch_is_asked_by_the_last_events_is_answered)
{
    struct candidates both = {0};
    struct failmem mem;
    failmem_init(&mem);
    clave_latch_options o = {.size = sizeof o, .event_cb = on_latch_event, .event_arg = &both};
    struct memnet *p = memnet_new(&(struct memnet_options){.clients = 1, .mem = &mem.mem});
    clave_async_client *c = p->clients[0].c;
    assert_int_equal(clave_async_latch_new(&both.other, c, "/l", &o), CLAVE_OK);
    assert_int_equal(clave_async_latch_new(&both.leader, c, "/l", &o), CLAVE_OK);
    assert_int_equal(clave_async_latch_start(both.leader), CLAVE_OK);
    memnet_settle(p);
    assert_true(clave_async_latch_has_leadership(both.leader, p->now));
    assert_int_equal(clave_async_latch_start(both.other), CLAVE_OK);
    assert_int_equal(clave_async_latch_await(both.other, CLAVE_NEVER, on_leadership, &both),
                     CLAVE_OK);
    memnet_settle(p);
    clave_async_client_abandon(c, p->now);
    assert_int_equal(both.losses, 1);
    assert_int_equal(both.answers, 1);
    assert_int_equal(both.err, CLAVE_ECANCELED);
    clave_async_latch_free(both.leader);
    clave_async_latch_free(both.other);
    memnet_free(p);
    assert_int_equal(mem.live, 0);
}

/* A leader waits for leadership, is stopped before it is told that it has it, and hears first
 * that it has lost it: it waits on. (Seed 215586, docs/evidence/simulation.md.) */
TEST_NET(a_former_leader_is_not_told_that_it_leads, 1, TIMEOUT)
{
    const clave_latch_options o = by(CLAVE_POLICY_SESSION);
    CLOSED_BY(candidate_close) struct candidate a;
    candidate_enter(&a, p, 0, "/e", &o);
    assert_true(candidate_was_told(&a, "L"));
    memnet_freeze(p, 0, true);
    candidate_await(&a, -1);
    memnet_refuse(p, 0, true);
    memnet_advance(p, 2 * TIMEOUT);
    memnet_freeze(p, 0, false);
    memnet_advance(p, 1);
    assert_true(candidate_was_told(&a, "n"));
    assert_int_equal(a.answers, 0);
    memnet_refuse(p, 0, false);
    memnet_advance(p, 2 * TIMEOUT);
    assert_true(candidate_leads(&a));
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.err, CLAVE_OK);
}
