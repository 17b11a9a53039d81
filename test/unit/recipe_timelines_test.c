/* The double leaders and double holders that Curator's users have published, step by step, as
 * golden traces: each names the ticket, and what clave does instead. */
#include "base/rand.h"
#include "lib/async_grants.h"
#include "lib/candidate.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

enum { TIMEOUT = 6000, STEP = 10 };

static const clave_latch_options session_policy = {.size = sizeof session_policy,
                                                   .policy = CLAVE_POLICY_SESSION};

/* Lets time pass and asks both after every step. */
static void advance_with_one_leader(struct candidate *s, size_t n, int64_t ms)
{
    for (int64_t t = 0; t < ms; t += STEP) {
        memnet_advance(s->p, STEP);
        assert_true(candidate_count_leaders(s, n) <= 1);
    }
}

static void end(struct candidate *s, size_t n)
{
    CLOSED_BY(memnet_freed) struct memnet *p = s->p;
    for (size_t i = 0; i < n; i++)
        candidate_close(&s[i]);
    assert_int_equal(memnet_stats(p).ephemerals, 0);
    assert_int_equal(memnet_stats(p).watches, 0);
}

/* Under the session policy LOST came a whole session timeout after the disconnect was noticed;
 * the server had counted from the last contact, which is earlier, and the next one led. Here
 * the packets to the leader vanish without a sign: it is told by the hold deadline. */
TEST(CURATOR_460)
{
    struct candidate s[2];
    struct memnet *p = memnet_of(2, TIMEOUT);
    candidate_enter(&s[0], p, 0, "/e", &session_policy);
    candidate_enter(&s[1], p, 1, "/e", &session_policy);
    memnet_advance(p, 1900); /* the last contact is a while ago */
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REQUEST, MEMNET_ANY, MEMNET_HOLD, 0});
    int64_t deadline = candidate_grant(&s[0]).deadline;
    advance_with_one_leader(s, 2, 2 * TIMEOUT);
    assert_true(candidate_leads(&s[1]));
    assert_true(candidate_was_told(&s[1], "qxL"));
    assert_true(candidate_was_told(&s[0], "Ln"));
    assert_true(deadline < p->now);
    memnet_clear(p);
    memnet_settle(p);
    end(s, 2);
}

/* The create's answer is lost, and the session with it: the protected search finds the node of
 * the old session, about to vanish, and takes it for its own. */
TEST(CURATOR_498)
{
    struct candidate s[2];
    struct memnet *p = memnet_of(2, TIMEOUT);
    candidate_enter(&s[1], p, 1, "/e", NULL);
    candidate_close(&s[1]); /* the path is there */
    candidate_open(&s[0], p, 0, "/e", NULL);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_CREATE2, MEMNET_LOSE, 0});
    memnet_refuse(p, 0, false);
    candidate_start(&s[0]);
    assert_int_equal(memnet_stats(p).ephemerals, 1);
    memnet_kill_session(p, 0);
    candidate_enter(&s[1], p, 1, "/e", NULL);
    advance_with_one_leader(s, 2, 10000);
    assert_int_equal(candidate_count_leaders(s, 2), 1);
    assert_int_equal(memnet_list(p, 1, "/e", NULL, 0), 2);
    end(s, 2);
}

/* The same with the predecessor deleted during the reconnect
 * (testWatchedNodeDeletedOnReconnect): one node, and it comes to lead. */
TEST(testWatchedNodeDeletedOnReconnect)
{
    struct candidate s[2];
    struct memnet *p = memnet_of(2, TIMEOUT);
    candidate_enter(&s[0], p, 0, "/e", NULL);
    candidate_enter(&s[1], p, 1, "/e", NULL);
    memnet_refuse(p, 1, true);
    memnet_advance(p, 500);
    candidate_close(&s[0]);
    memnet_refuse(p, 1, false);
    memnet_advance(p, 3000);
    assert_true(candidate_leads(&s[1]));
    assert_int_equal(memnet_list(p, 0, "/e", NULL, 0), 1);
    end(&s[1], 1);
}

/* After a reconnect, resets that race left "can't find our node" for ever, and nobody led
 * (504, 644); two latches that reset each other went round and round (645). Here nobody resets:
 * each keeps its node, whatever the connections do. */
TEST(CURATOR_504_644)
{
    enum { N = 3 };
    struct candidate s[N];
    char node[N][128];
    struct memnet *p = memnet_of(N, TIMEOUT);
    for (size_t i = 0; i < N; i++) {
        candidate_enter(&s[i], p, i, "/e", NULL);
        snprintf(node[i], sizeof node[i], "%s", clave_async_latch_own_path(s[i].l));
    }
    for (int round = 0; round < 6; round++) {
        for (size_t i = 0; i < N; i++)
            if (round % 3 != (int)i)
                memnet_cut(p, i);
        advance_with_one_leader(s, N, 2500);
        assert_true(candidate_leads(&s[0]));
        for (size_t i = 0; i < N; i++)
            assert_string_equal(clave_async_latch_own_path(s[i].l), node[i]);
    }
    assert_int_equal(s[1].leader + s[2].leader, 0);
    assert_int_equal(memnet_list(p, 0, "/e", NULL, 0), N);
    end(s, N);
}

/* testLeadershipElectionWhenNodeDisappearsAfterChildrenAreRetrieved: the predecessor goes
 * between the listing and the watch on it. */
TEST(CURATOR_645)
{
    struct candidate s[2];
    struct memnet *p = memnet_of(2, TIMEOUT);
    candidate_enter(&s[0], p, 0, "/e", NULL);
    memnet_rule(p, (struct memnet_rule){1, MEMNET_REQUEST, OP_GET_DATA, MEMNET_HOLD, 0});
    candidate_enter(&s[1], p, 1, "/e", NULL);
    char node[128];
    snprintf(node, sizeof node, "%s", clave_async_latch_own_path(s[1].l));
    memnet_reset_counts(p);
    candidate_close(&s[0]);
    memnet_clear(p);
    memnet_settle(p);
    assert_true(candidate_leads(&s[1]));
    assert_string_equal(clave_async_latch_own_path(s[1].l), node);
    assert_int_equal(p->clients[1].requests[OP_CREATE2], 0);
    assert_int_equal(memnet_list(p, 0, "/e", NULL, 0), 1);
    end(&s[1], 1);
}

/* testResettingOfLeadershipAfterConcurrentLeadershipChange: both lose their nodes at once, by
 * an operator; they settle on one leader with one node each. */
TEST(testResettingOfLeadershipAfterConcurrentLeadershipChange)
{
    struct candidate s[2];
    struct memnet *p = memnet_of(3, TIMEOUT);
    candidate_enter(&s[0], p, 0, "/e", NULL);
    candidate_enter(&s[1], p, 1, "/e", NULL);
    for (int round = 0; round < 3; round++) {
        char node[2][128];
        for (size_t i = 0; i < 2; i++)
            snprintf(node[i], sizeof node[i], "%s", clave_async_latch_own_path(s[i].l));
        for (size_t i = 0; i < 2; i++)
            assert_int_equal(memnet_delete(p, 2, node[i]), CLAVE_OK);
        memnet_advance(p, TIMEOUT); /* a young leader learns of it from its heartbeat */
        assert_int_equal(candidate_count_leaders(s, 2), 1);
        assert_int_equal(memnet_list(p, 2, "/e", NULL, 0), 2);
    }
    end(s, 2);
}

/* The create's answer comes after the session it was made in is gone: the listing shows the
 * old session's node as the first, and it is taken for a grant (open in Curator). */
TEST(CURATOR_604)
{
    struct memnet *p = memnet_of(2, TIMEOUT);
    struct candidate s[2];
    struct mutex_owner held[2];
    candidate_enter(&s[1], p, 1, "/e", NULL);
    candidate_close(&s[1]);
    candidate_open(&s[0], p, 0, "/e", NULL);
    owner_open(&held[0], p, 0, "/l", NULL);
    owner_open(&held[1], p, 1, "/l", NULL);
    owner_acquire(&held[1], OWNER_FOREVER);
    owner_release(&held[1]);
    /* Their creates reach the server, no listing does, and the session changes. */
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REQUEST, OP_GET_CHILDREN2, MEMNET_LOSE, 0});
    candidate_start(&s[0]);
    memnet_refuse(p, 0, true);
    memnet_advance(p, TIMEOUT - 500); /* LOST by its own clock; not yet at the server */
    assert_true(memnet_saw(p, 0, CLAVE_STATE_LOST));
    assert_int_equal(memnet_stats(p).ephemerals, 1);
    owner_begin_acquire(&held[0], OWNER_FOREVER);
    memnet_refuse(p, 0, false);
    memnet_advance(p, 200);
    /* The search for the node found the old session's, and deleted it. */
    assert_true(!candidate_leads(&s[0]) || candidate_grant(&s[0]).session_id ==
                                               clave_async_client_session_id(p->clients[0].c));
    candidate_enter(&s[1], p, 1, "/e", NULL);
    advance_with_one_leader(s, 2, TIMEOUT);
    assert_int_equal(candidate_count_leaders(s, 2), 1);
    assert_int_equal(memnet_list(p, 1, "/e", NULL, 0), 2);
    assert_true(owner_holds(&held[0]));
    owner_close(&held[0]);
    owner_close(&held[1]);
    end(s, 2);
}

/* Two RECONNECTED in quick succession: the delete of a reset came after the leadership that the
 * other reset had brought. */
TEST(CURATOR_620)
{
    struct candidate s[2];
    struct memnet *p = memnet_of(2, TIMEOUT);
    candidate_enter(&s[0], p, 0, "/e", NULL);
    candidate_enter(&s[1], p, 1, "/e", NULL);
    for (int i = 0; i < 4; i++) {
        memnet_cut(p, 0);
        memnet_advance(p, 60); /* reconnected, and cut again before anything is answered */
        memnet_cut(p, 0);
        advance_with_one_leader(s, 2, 3000);
        assert_int_equal(candidate_count_leaders(s, 2), 1);
    }
    assert_true(candidate_leads(&s[0]));
    assert_int_equal(s[0].leader, s[0].not_leader + 1);
    assert_int_equal(memnet_list(p, 1, "/e", NULL, 0), 2);
    end(s, 2);
}

/* All are suspended while the ensemble elects; afterwards each reset itself, saw the other's
 * node vanish, and both led (652 is the same). */
TEST(CURATOR_653)
{
    struct candidate s[2];
    struct memnet *p = memnet_of(2, TIMEOUT);
    candidate_enter(&s[1], p, 1, "/e", NULL);
    candidate_enter(&s[0], p, 0, "/e", NULL);
    int64_t token = candidate_grant(&s[1]).token;
    memnet_stop_server(p);
    memnet_advance(p, 1000);
    assert_true(candidate_leads(&s[1])); /* by its deadline: nobody else can */
    memnet_start_server(p);
    advance_with_one_leader(s, 2, 3 * TIMEOUT);
    assert_true(candidate_leads(&s[1]));
    assert_int_equal(candidate_grant(&s[1]).token, token);
    assert_true(candidate_was_told(&s[1], "L"));
    assert_true(candidate_was_told(&s[0], "qx"));
    end(s, 2);
}

/* A release meets a lost connection: the node stayed, the holder forgot it, and every later
 * acquire waited for it. For a latch: the close, and the resignation. */
TEST(CURATOR_678)
{
    struct memnet *p = memnet_of(2, TIMEOUT);
    struct candidate s[2];
    struct mutex_owner held;
    candidate_enter(&s[0], p, 0, "/e", NULL);
    candidate_enter(&s[1], p, 1, "/e", NULL);
    owner_open(&held, p, 0, "/l", NULL);
    owner_acquire(&held, OWNER_FOREVER);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REQUEST, OP_DELETE, MEMNET_LOSE, 0});
    assert_int_equal(owner_release(&held), CLAVE_OK);
    candidate_resign(&s[0]);
    memnet_advance(p, 3000);
    assert_true(candidate_leads(&s[1]));
    owner_acquire(&held, OWNER_FOREVER);
    assert_true(owner_holds(&held));
    memnet_rule(p, (struct memnet_rule){1, MEMNET_REQUEST, OP_DELETE, MEMNET_LOSE, 0});
    candidate_leave(&s[1], CLAVE_CLOSE_SILENT);
    memnet_advance(p, 3000);
    assert_int_equal(s[1].departures, 1);
    assert_int_equal(s[1].left, CLAVE_OK);
    assert_true(candidate_leads(&s[0]));
    assert_int_equal(memnet_list(p, 0, "/e", NULL, 0), 1);
    owner_close(&held);
    end(s, 2);
}

/* testSessionInterruptionDoNotCauseBrainSplit: the servers are away until the leader's session
 * must have ended, and come back before they have ended it. The leader reconnects, finds its
 * node first, and leads by it; then the server deletes the node. */
TEST(CURATOR_696)
{
    static const clave_latch_policy policies[] = {CLAVE_POLICY_STANDARD, CLAVE_POLICY_SESSION};
    for (size_t i = 0; i < 2; i++) {
        clave_latch_options o = {.size = sizeof o, .policy = policies[i]};
        struct candidate s[2];
        struct memnet *p = memnet_of(2, TIMEOUT);
        candidate_enter(&s[0], p, 0, "/e", &o);
        int64_t session = candidate_grant(&s[0]).session_id;
        memnet_stop_server(p);
        memnet_advance(p, TIMEOUT + 1000);
        assert_false(candidate_leads(&s[0]));
        memnet_start_server(p); /* with its sessions, and their whole time before them */
        memnet_advance(p, 2500);
        candidate_enter(&s[1], p, 1, "/e", &o);
        advance_with_one_leader(s, 2, 2 * TIMEOUT);
        assert_int_equal(candidate_count_leaders(s, 2), 1);
        assert_true(clave_async_client_session_id(p->clients[0].c) != session);
        assert_int_equal(memnet_list(p, 1, "/e", NULL, 0), 2);
        end(s, 2);
    }
}

/* testGetChildrenHitsNoNode: the path vanishes under all of them (an ensemble recreated empty,
 * an operator). They stand again, and one leads. */
TEST(CURATOR_724)
{
    struct candidate s[2];
    struct memnet *p = memnet_of(3, TIMEOUT);
    candidate_enter(&s[0], p, 0, "/e", NULL);
    memnet_rule(p, (struct memnet_rule){1, MEMNET_REQUEST, OP_GET_CHILDREN2, MEMNET_HOLD, 0});
    candidate_enter(&s[1], p, 1, "/e", NULL); /* its listing is yet to come */
    char names[2][96], path[128];
    assert_int_equal(memnet_list(p, 2, "/e", names, 2), 2);
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "/e/%s", names[i]);
        assert_int_equal(memnet_delete(p, 2, path), CLAVE_OK);
    }
    (void)memnet_delete(p, 2, "/e");
    memnet_clear(p);
    memnet_advance(p, 2 * TIMEOUT);
    assert_int_equal(candidate_count_leaders(s, 2), 1);
    assert_int_equal(memnet_list(p, 2, "/e", NULL, 0), 2);
    end(s, 2);
}

/* A leader that is stopped (SIGSTOP, a long pause) and wakes after another was elected: it knows
 * at once, by its own clock, and hears so exactly once. */
TEST(a_leader_that_was_stopped_wakes_as_none)
{
    struct candidate s[2];
    struct memnet *p = memnet_of(2, TIMEOUT);
    assert_int_equal(memnet_create(p, 0, "/x"), CLAVE_OK);
    candidate_enter(&s[0], p, 0, "/e", &session_policy);
    candidate_enter(&s[1], p, 1, "/e", &session_policy);
    memnet_freeze(p, 0, true);
    memnet_advance(p, 2 * TIMEOUT);
    assert_true(candidate_leads(&s[1]));
    /* Before it has read a byte or ticked. */
    assert_false(latch_valid_for(s[0].l, p->now, 0));
    assert_int_equal(s[0].not_leader, 0);
    assert_int_equal(guarded_set(of_latch(s[0].l), "/x", "late", 4, -1, NULL, NULL), CLAVE_OK);
    memnet_freeze(p, 0, false);
    advance_with_one_leader(s, 2, 5000);
    assert_true(candidate_was_told(&s[0], "Lnqx"));
    end(s, 2);
}

/* ---- and any other ---------------------------------------------------------------------- */

enum { CROWD = 4, STEPS = 60 };

static void disturb(struct candidate *s, struct rand_state *rng)
{
    size_t who = (size_t)clave__rand_below(rng, CROWD);
    struct memnet *p = s->p;
    switch (clave__rand_below(rng, 8)) {
    case 0:
        memnet_cut(p, who);
        break;
    case 1:
        memnet_refuse(p, who, true);
        break;
    case 2:
        memnet_refuse(p, who, false);
        break;
    case 3:
        memnet_freeze(p, who, true);
        break;
    case 4:
        memnet_freeze(p, who, false);
        break;
    case 5:
        if (!p->clients[who].frozen)
            candidate_resign(&s[who]);
        break;
    case 6:
        if (p->server)
            memnet_stop_server(p);
        else
            memnet_start_server(p);
        break;
    default: {
        static const int ops[] = {OP_CREATE2, OP_DELETE, OP_GET_CHILDREN2, OP_MULTI, MEMNET_ANY};
        memnet_rule(p, (struct memnet_rule){who, MEMNET_REPLY, ops[clave__rand_below(rng, 5)],
                                            MEMNET_LOSE, (unsigned)clave__rand_below(rng, 3)});
        if (p->nrules == MEMNET_RULES)
            memnet_clear(p);
        break;
    }
    }
}

/* Connections cut and refused, processes stopped, servers restarted, answers lost, leaders that
 * resign: never two leaders, those that are stopped included, and one in the end. */
TEST(never_two_leaders_whatever_happens)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct rand_state rng;
        struct candidate s[CROWD];
        struct memnet *p = memnet_of(CROWD, TIMEOUT);
        clave__rand_seed(&rng, seed);
        for (size_t i = 0; i < CROWD; i++)
            candidate_enter(&s[i], p, i, "/e", i % 2 ? &session_policy : NULL);
        for (int step = 0; step < STEPS; step++) {
            disturb(s, &rng);
            advance_with_one_leader(s, CROWD, (int64_t)clave__rand_below(&rng, 80) * STEP);
        }
        memnet_clear(p);
        if (!p->server)
            memnet_start_server(p);
        for (size_t i = 0; i < CROWD; i++) {
            memnet_freeze(p, i, false);
            memnet_refuse(p, i, false);
        }
        advance_with_one_leader(s, CROWD, 5 * TIMEOUT);
        if (candidate_count_leaders(s, CROWD) != 1)
            fail_msg("seed %llu: nobody leads", (unsigned long long)seed);
        assert_int_equal(memnet_list(p, 0, "/e", NULL, 0), CROWD);
        for (size_t i = 0; i < CROWD; i++)
            assert_true(s[i].leader - s[i].not_leader == (candidate_leads(&s[i]) ? 1 : 0));
        end(s, CROWD);
    }
}
