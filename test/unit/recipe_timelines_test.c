/* The double leaders and double holders that Curator's users have published, step by step, as
 * golden traces: each names the ticket, and what clave does instead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rand.h"
#include "lib/candidate.h"
#include "lib/mutex_owner.h"

enum { TIMEOUT = 6000, STEP = 10 };

static struct pair *world(size_t clients)
{
    return pair_new(&(struct pair_options){.clients = clients, .timeout_ms = TIMEOUT});
}

static const clave_latch_options session_policy = {.size = sizeof session_policy,
                                                   .policy = CLAVE_POLICY_SESSION};

/* Lets time pass and asks both after every step. */
static void advance_with_one_leader(struct stand *s, size_t n, int64_t ms)
{
    for (int64_t t = 0; t < ms; t += STEP) {
        pair_advance(s->p, STEP);
        assert_true(stand_leaders(s, n) <= 1);
    }
}

static void end(struct stand *s, size_t n)
{
    struct pair *p = s->p;
    for (size_t i = 0; i < n; i++)
        stand_close(&s[i]);
    assert_int_equal(pair_stats(p).ephemerals, 0);
    assert_int_equal(pair_stats(p).watches, 0);
    pair_free(p);
}

/* Under the session policy LOST came a whole session timeout after the disconnect was noticed;
 * the server had counted from the last contact, which is earlier, and the next one led. Here
 * the packets to the leader vanish without a sign: it is told by the hold deadline. */
static void CURATOR_460(void **state)
{
    (void)state;
    struct stand s[2];
    struct pair *p = world(2);
    stand_up(&s[0], p, 0, "/e", &session_policy);
    stand_up(&s[1], p, 1, "/e", &session_policy);
    pair_advance(p, 1900); /* the last contact is a while ago */
    pair_rule(p, (struct pair_rule){0, PAIR_REPLY, PAIR_ANY, PAIR_HOLD, 0});
    pair_rule(p, (struct pair_rule){0, PAIR_REQUEST, PAIR_ANY, PAIR_HOLD, 0});
    int64_t deadline = stand_grant(&s[0]).deadline;
    advance_with_one_leader(s, 2, 2 * TIMEOUT);
    assert_true(stand_leads(&s[1]));
    assert_true(stand_heard(&s[1], "qxL"));
    assert_true(stand_heard(&s[0], "Ln"));
    assert_true(deadline < p->now);
    pair_clear(p);
    pair_settle(p);
    end(s, 2);
}

/* The create's answer is lost, and the session with it: the protected search finds the node of
 * the old session, about to vanish, and takes it for its own. */
static void CURATOR_498(void **state)
{
    (void)state;
    struct stand s[2];
    struct pair *p = world(2);
    stand_up(&s[1], p, 1, "/e", NULL);
    stand_close(&s[1]); /* the path is there */
    stand_open(&s[0], p, 0, "/e", NULL);
    pair_rule(p, (struct pair_rule){0, PAIR_REPLY, OP_CREATE2, PAIR_LOSE, 0});
    pair_refuse(p, 0, false);
    stand_start(&s[0]);
    assert_int_equal(pair_stats(p).ephemerals, 1);
    pair_kill_session(p, 0);
    stand_up(&s[1], p, 1, "/e", NULL);
    advance_with_one_leader(s, 2, 10000);
    assert_int_equal(stand_leaders(s, 2), 1);
    assert_int_equal(seat_list(p, 1, "/e", NULL, 0), 2);
    end(s, 2);
}

/* The same with the predecessor deleted during the reconnect
 * (testWatchedNodeDeletedOnReconnect): one node, and it comes to lead. */
static void testWatchedNodeDeletedOnReconnect(void **state)
{
    (void)state;
    struct stand s[2];
    struct pair *p = world(2);
    stand_up(&s[0], p, 0, "/e", NULL);
    stand_up(&s[1], p, 1, "/e", NULL);
    pair_refuse(p, 1, true);
    pair_advance(p, 500);
    stand_close(&s[0]);
    pair_refuse(p, 1, false);
    pair_advance(p, 3000);
    assert_true(stand_leads(&s[1]));
    assert_int_equal(seat_list(p, 0, "/e", NULL, 0), 1);
    end(&s[1], 1);
}

/* After a reconnect, resets that race left "can't find our node" for ever, and nobody led
 * (504, 644); two latches that reset each other went round and round (645). Here nobody resets:
 * each keeps its node, whatever the connections do. */
static void CURATOR_504_644(void **state)
{
    (void)state;
    enum { N = 3 };
    struct stand s[N];
    char node[N][128];
    struct pair *p = world(N);
    for (size_t i = 0; i < N; i++) {
        stand_up(&s[i], p, i, "/e", NULL);
        snprintf(node[i], sizeof node[i], "%s", clave_async_latch_own_path(s[i].l));
    }
    for (int round = 0; round < 6; round++) {
        for (size_t i = 0; i < N; i++)
            if (round % 3 != (int)i)
                pair_cut(p, i);
        advance_with_one_leader(s, N, 2500);
        assert_true(stand_leads(&s[0]));
        for (size_t i = 0; i < N; i++)
            assert_string_equal(clave_async_latch_own_path(s[i].l), node[i]);
    }
    assert_int_equal(s[1].leader + s[2].leader, 0);
    assert_int_equal(seat_list(p, 0, "/e", NULL, 0), N);
    end(s, N);
}

/* testLeadershipElectionWhenNodeDisappearsAfterChildrenAreRetrieved: the predecessor goes
 * between the listing and the watch on it. */
static void CURATOR_645(void **state)
{
    (void)state;
    struct stand s[2];
    struct pair *p = world(2);
    stand_up(&s[0], p, 0, "/e", NULL);
    pair_rule(p, (struct pair_rule){1, PAIR_REQUEST, OP_GET_DATA, PAIR_HOLD, 0});
    stand_up(&s[1], p, 1, "/e", NULL);
    char node[128];
    snprintf(node, sizeof node, "%s", clave_async_latch_own_path(s[1].l));
    pair_reset_counts(p);
    stand_close(&s[0]);
    pair_clear(p);
    pair_settle(p);
    assert_true(stand_leads(&s[1]));
    assert_string_equal(clave_async_latch_own_path(s[1].l), node);
    assert_int_equal(p->end[1].requests[OP_CREATE2], 0);
    assert_int_equal(seat_list(p, 0, "/e", NULL, 0), 1);
    end(&s[1], 1);
}

/* testResettingOfLeadershipAfterConcurrentLeadershipChange: both lose their nodes at once, by
 * an operator; they settle on one leader with one node each. */
static void testResettingOfLeadershipAfterConcurrentLeadershipChange(void **state)
{
    (void)state;
    struct stand s[2];
    struct pair *p = world(3);
    stand_up(&s[0], p, 0, "/e", NULL);
    stand_up(&s[1], p, 1, "/e", NULL);
    for (int round = 0; round < 3; round++) {
        char node[2][128];
        for (size_t i = 0; i < 2; i++)
            snprintf(node[i], sizeof node[i], "%s", clave_async_latch_own_path(s[i].l));
        for (size_t i = 0; i < 2; i++)
            assert_int_equal(seat_remove(p, 2, node[i]), CLAVE_OK);
        pair_advance(p, TIMEOUT); /* a young leader learns of it from its heartbeat */
        assert_int_equal(stand_leaders(s, 2), 1);
        assert_int_equal(seat_list(p, 2, "/e", NULL, 0), 2);
    }
    end(s, 2);
}

/* The create's answer comes after the session it was made in is gone: the listing shows the
 * old session's node as the first, and it is taken for a grant (open in Curator). */
static void CURATOR_604(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct stand s[2];
    struct seat held[2];
    stand_up(&s[1], p, 1, "/e", NULL);
    stand_close(&s[1]);
    stand_open(&s[0], p, 0, "/e", NULL);
    seat_open(&held[0], p, 0, "/l", NULL);
    seat_open(&held[1], p, 1, "/l", NULL);
    seat_acquire(&held[1], SEAT_EVER);
    seat_release(&held[1]);
    /* Their creates reach the server, no listing does, and the session changes. */
    pair_rule(p, (struct pair_rule){0, PAIR_REQUEST, OP_GET_CHILDREN2, PAIR_LOSE, 0});
    stand_start(&s[0]);
    pair_refuse(p, 0, true);
    pair_advance(p, TIMEOUT - 500); /* LOST by its own clock; not yet at the server */
    assert_true(pair_saw(p, 0, CLAVE_STATE_LOST));
    assert_int_equal(pair_stats(p).ephemerals, 1);
    seat_ask(&held[0], SEAT_EVER);
    pair_refuse(p, 0, false);
    pair_advance(p, 200);
    /* The search for the node found the old session's, and deleted it. */
    assert_true(!stand_leads(&s[0]) ||
                stand_grant(&s[0]).session_id == clave_async_client_session_id(p->end[0].c));
    stand_up(&s[1], p, 1, "/e", NULL);
    advance_with_one_leader(s, 2, TIMEOUT);
    assert_int_equal(stand_leaders(s, 2), 1);
    assert_int_equal(seat_list(p, 1, "/e", NULL, 0), 2);
    assert_true(seat_holds(&held[0]));
    seat_close(&held[0]);
    seat_close(&held[1]);
    end(s, 2);
}

/* Two RECONNECTED in quick succession: the delete of a reset came after the leadership that the
 * other reset had brought. */
static void CURATOR_620(void **state)
{
    (void)state;
    struct stand s[2];
    struct pair *p = world(2);
    stand_up(&s[0], p, 0, "/e", NULL);
    stand_up(&s[1], p, 1, "/e", NULL);
    for (int i = 0; i < 4; i++) {
        pair_cut(p, 0);
        pair_advance(p, 60); /* reconnected, and cut again before anything is answered */
        pair_cut(p, 0);
        advance_with_one_leader(s, 2, 3000);
        assert_int_equal(stand_leaders(s, 2), 1);
    }
    assert_true(stand_leads(&s[0]));
    assert_int_equal(s[0].leader, s[0].not_leader + 1);
    assert_int_equal(seat_list(p, 1, "/e", NULL, 0), 2);
    end(s, 2);
}

/* All are suspended while the ensemble elects; afterwards each reset itself, saw the other's
 * node vanish, and both led (652 is the same). */
static void CURATOR_653(void **state)
{
    (void)state;
    struct stand s[2];
    struct pair *p = world(2);
    stand_up(&s[1], p, 1, "/e", NULL);
    stand_up(&s[0], p, 0, "/e", NULL);
    int64_t token = stand_grant(&s[1]).token;
    pair_stop_server(p);
    pair_advance(p, 1000);
    assert_int_equal(stand_leaders(s, 2), 0);
    pair_start_server(p);
    advance_with_one_leader(s, 2, 3 * TIMEOUT);
    assert_true(stand_leads(&s[1]));
    assert_int_equal(stand_grant(&s[1]).token, token);
    assert_true(stand_heard(&s[1], "LnL"));
    assert_true(stand_heard(&s[0], "qx"));
    end(s, 2);
}

/* A release meets a lost connection: the node stayed, the holder forgot it, and every later
 * acquire waited for it. For a latch: the close, and the resignation. */
static void CURATOR_678(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct stand s[2];
    struct seat held;
    stand_up(&s[0], p, 0, "/e", NULL);
    stand_up(&s[1], p, 1, "/e", NULL);
    seat_open(&held, p, 0, "/l", NULL);
    seat_acquire(&held, SEAT_EVER);
    pair_rule(p, (struct pair_rule){0, PAIR_REQUEST, OP_DELETE, PAIR_LOSE, 0});
    assert_int_equal(seat_release(&held), CLAVE_OK);
    stand_resign(&s[0]);
    pair_advance(p, 3000);
    assert_true(stand_leads(&s[1]));
    seat_acquire(&held, SEAT_EVER);
    assert_true(seat_holds(&held));
    pair_rule(p, (struct pair_rule){1, PAIR_REQUEST, OP_DELETE, PAIR_LOSE, 0});
    stand_quit(&s[1], CLAVE_CLOSE_SILENT);
    pair_advance(p, 3000);
    assert_int_equal(s[1].departures, 1);
    assert_int_equal(s[1].left, CLAVE_OK);
    assert_true(stand_leads(&s[0]));
    assert_int_equal(seat_list(p, 0, "/e", NULL, 0), 1);
    seat_close(&held);
    end(s, 2);
}

/* testSessionInterruptionDoNotCauseBrainSplit: the servers are away until the leader's session
 * must have ended, and come back before they have ended it. The leader reconnects, finds its
 * node first, and leads by it; then the server deletes the node. */
static void CURATOR_696(void **state)
{
    (void)state;
    static const clave_latch_policy policies[] = {CLAVE_POLICY_STANDARD, CLAVE_POLICY_SESSION};
    for (size_t i = 0; i < 2; i++) {
        clave_latch_options o = {.size = sizeof o, .policy = policies[i]};
        struct stand s[2];
        struct pair *p = world(2);
        stand_up(&s[0], p, 0, "/e", &o);
        int64_t session = stand_grant(&s[0]).session_id;
        pair_stop_server(p);
        pair_advance(p, TIMEOUT + 1000);
        assert_false(stand_leads(&s[0]));
        pair_start_server(p); /* with its sessions, and their whole time before them */
        pair_advance(p, 2500);
        stand_up(&s[1], p, 1, "/e", &o);
        advance_with_one_leader(s, 2, 2 * TIMEOUT);
        assert_int_equal(stand_leaders(s, 2), 1);
        assert_true(clave_async_client_session_id(p->end[0].c) != session);
        assert_int_equal(seat_list(p, 1, "/e", NULL, 0), 2);
        end(s, 2);
    }
}

/* testGetChildrenHitsNoNode: the path vanishes under all of them (an ensemble recreated empty,
 * an operator). They stand again, and one leads. */
static void CURATOR_724(void **state)
{
    (void)state;
    struct stand s[2];
    struct pair *p = world(3);
    stand_up(&s[0], p, 0, "/e", NULL);
    pair_rule(p, (struct pair_rule){1, PAIR_REQUEST, OP_GET_CHILDREN2, PAIR_HOLD, 0});
    stand_up(&s[1], p, 1, "/e", NULL); /* its listing is yet to come */
    char names[2][96], path[128];
    assert_int_equal(seat_list(p, 2, "/e", names, 2), 2);
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "/e/%s", names[i]);
        assert_int_equal(seat_remove(p, 2, path), CLAVE_OK);
    }
    (void)seat_remove(p, 2, "/e");
    pair_clear(p);
    pair_advance(p, 2 * TIMEOUT);
    assert_int_equal(stand_leaders(s, 2), 1);
    assert_int_equal(seat_list(p, 2, "/e", NULL, 0), 2);
    end(s, 2);
}

/* A leader that is stopped (SIGSTOP, a long pause) and wakes after another was elected: it knows
 * at once, by its own clock, and hears so exactly once. */
static void a_leader_that_was_stopped_wakes_as_none(void **state)
{
    (void)state;
    struct stand s[2];
    struct pair *p = world(2);
    assert_int_equal(seat_make(p, 0, "/x"), CLAVE_OK);
    stand_up(&s[0], p, 0, "/e", &session_policy);
    stand_up(&s[1], p, 1, "/e", &session_policy);
    pair_freeze(p, 0, true);
    pair_advance(p, 2 * TIMEOUT);
    assert_true(stand_leads(&s[1]));
    /* Before it has read a byte or ticked. */
    assert_false(clave_async_latch_valid_for(s[0].l, p->now, 0));
    assert_int_equal(s[0].not_leader, 0);
    assert_int_equal(clave_async_latch_set(s[0].l, "/x", "late", 4, -1, NULL, NULL), CLAVE_OK);
    pair_freeze(p, 0, false);
    advance_with_one_leader(s, 2, 5000);
    assert_true(stand_heard(&s[0], "Lnqx"));
    end(s, 2);
}

/* ---- and any other ---------------------------------------------------------------------- */

enum { CROWD = 4, STEPS = 60 };

static void disturb(struct stand *s, struct rand_state *dice)
{
    size_t who = (size_t)clave__rand_below(dice, CROWD);
    struct pair *p = s->p;
    switch (clave__rand_below(dice, 8)) {
    case 0:
        pair_cut(p, who);
        break;
    case 1:
        pair_refuse(p, who, true);
        break;
    case 2:
        pair_refuse(p, who, false);
        break;
    case 3:
        pair_freeze(p, who, true);
        break;
    case 4:
        pair_freeze(p, who, false);
        break;
    case 5:
        if (!p->end[who].frozen)
            stand_resign(&s[who]);
        break;
    case 6:
        if (p->server)
            pair_stop_server(p);
        else
            pair_start_server(p);
        break;
    default: {
        static const int ops[] = {OP_CREATE2, OP_DELETE, OP_GET_CHILDREN2, OP_MULTI, PAIR_ANY};
        pair_rule(p, (struct pair_rule){who, PAIR_REPLY, ops[clave__rand_below(dice, 5)], PAIR_LOSE,
                                        (unsigned)clave__rand_below(dice, 3)});
        if (p->nrules == PAIR_RULES)
            pair_clear(p);
        break;
    }
    }
}

/* Connections cut and refused, processes stopped, servers restarted, answers lost, leaders that
 * resign: never two leaders, those that are stopped included, and one in the end. */
static void never_two_leaders_whatever_happens(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct rand_state dice;
        struct stand s[CROWD];
        struct pair *p = world(CROWD);
        clave__rand_seed(&dice, seed);
        for (size_t i = 0; i < CROWD; i++)
            stand_up(&s[i], p, i, "/e", i % 2 ? &session_policy : NULL);
        for (int step = 0; step < STEPS; step++) {
            disturb(s, &dice);
            advance_with_one_leader(s, CROWD, (int64_t)clave__rand_below(&dice, 80) * STEP);
        }
        pair_clear(p);
        if (!p->server)
            pair_start_server(p);
        for (size_t i = 0; i < CROWD; i++) {
            pair_freeze(p, i, false);
            pair_refuse(p, i, false);
        }
        advance_with_one_leader(s, CROWD, 5 * TIMEOUT);
        if (stand_leaders(s, CROWD) != 1)
            fail_msg("seed %llu: nobody leads", (unsigned long long)seed);
        assert_int_equal(seat_list(p, 0, "/e", NULL, 0), CROWD);
        for (size_t i = 0; i < CROWD; i++)
            assert_true(s[i].leader - s[i].not_leader == (stand_leads(&s[i]) ? 1 : 0));
        end(s, CROWD);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(CURATOR_460),
        cmocka_unit_test(CURATOR_498),
        cmocka_unit_test(testWatchedNodeDeletedOnReconnect),
        cmocka_unit_test(CURATOR_504_644),
        cmocka_unit_test(CURATOR_645),
        cmocka_unit_test(testResettingOfLeadershipAfterConcurrentLeadershipChange),
        cmocka_unit_test(CURATOR_604),
        cmocka_unit_test(CURATOR_620),
        cmocka_unit_test(CURATOR_653),
        cmocka_unit_test(CURATOR_678),
        cmocka_unit_test(CURATOR_696),
        cmocka_unit_test(CURATOR_724),
        cmocka_unit_test(a_leader_that_was_stopped_wakes_as_none),
        cmocka_unit_test(never_two_leaders_whatever_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
