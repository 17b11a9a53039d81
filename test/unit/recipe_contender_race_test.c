/* The unfair election (CLAVE_LATCH_UNFAIR): one node with a fixed name. Never two leaders,
 * whose node it is is never mistaken, and a former leader deletes and writes nothing of the next.
 */
#include "base/rand.h"
#include "clave/async/leader.h"
#include "lib/async_grants.h"
#include "lib/candidate.h"
#include "lib/each_fault.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

enum { TIMEOUT = 6000, CROWD = 4 };

static const char node[] = "/app/leader";

static void enter_race(struct candidate *s, struct memnet *p, size_t client,
                       const clave_latch_options *o)
{
    assert_int_equal(candidate_open_plain(s, p, client, node, NULL, o), CLAVE_OK);
    candidate_start(s);
}

static void close_all(struct candidate *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        candidate_close(&s[i]);
}

static struct candidate *leader_of(struct candidate *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (candidate_leads(&s[i]))
            return &s[i];
    return NULL;
}

/* ---- who leads --------------------------------------------------------------------------- */

TEST_CLEAN_NET(who_creates_the_node_leads_and_the_others_watch_it, 2, TIMEOUT)
{
    struct candidate s[2];
    char names[2][96];
    clave_latch_options o = {.size = sizeof o, .id = "host-a:80"};
    enter_race(&s[0], p, 0, &o);
    enter_race(&s[1], p, 1, NULL);
    assert_true(candidate_leads(&s[0]));
    assert_string_equal(candidate_grant(&s[0]).node, node);
    assert_int_equal(memnet_list(p, 1, "/app", names, 2), 1);
    assert_string_equal(names[0], "leader");
    assert_true(candidate_was_told(&s[1], "qx"));
    int64_t token = candidate_grant(&s[0]).token;
    candidate_leave(&s[0], CLAVE_CLOSE_SILENT);
    assert_true(candidate_leads(&s[1]));
    assert_true(candidate_grant(&s[1]).token > token);
    close_all(s, 2);
}

/* The herd, counted: all of those who are left ask for the node, and all but one of them watch it
 * anew. */
TEST(a_failover_costs_more_with_each_candidate)
{
    for (size_t n = 3; n <= 24; n += 7) {
        CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(n, TIMEOUT);
        struct candidate s[24];
        for (size_t i = 0; i < n; i++)
            enter_race(&s[i], p, i, NULL);
        memnet_reset_counts(p);
        candidate_leave(&s[0], CLAVE_CLOSE_SILENT);
        assert_int_equal(candidate_count_leaders(s, n), 1);
        uint64_t requests = 0, events = 0;
        for (size_t i = 0; i < n; i++) {
            requests += memnet_requests(p, i);
            events += p->clients[i].events;
        }
        /* The delete; a create each; a look at the new one each, the new leader's included. The
         * leader's own watch fires as well. */
        assert_int_equal(requests, 1 + 2 * (n - 1));
        assert_int_equal(events, n);
        close_all(s, n);
    }
}

TEST_CLEAN_NET(two_of_one_session_are_two, 1, TIMEOUT)
{
    struct candidate s[2];
    enter_race(&s[0], p, 0, NULL);
    enter_race(&s[1], p, 0, NULL);
    assert_int_equal(candidate_count_leaders(s, 2), 1);
    candidate_resign(leader_of(s, 2));
    memnet_advance(p, 1000);
    assert_int_equal(candidate_count_leaders(s, 2), 1);
    close_all(s, 2);
}

/* A leader that resigns is not the first to try again; but it leads again when nobody else wants
 * to. */
TEST_CLEAN_NET(who_resigns_lets_others_come_first, 2, TIMEOUT)
{
    struct candidate s[2];
    enter_race(&s[0], p, 0, NULL);
    candidate_resign(&s[0]);
    assert_false(candidate_leads(&s[0]));
    memnet_advance(p, 200);
    assert_true(candidate_leads(&s[0]));
    enter_race(&s[1], p, 1, NULL);
    for (int i = 0; i < 10; i++) {
        candidate_resign(&s[i % 2]);
        assert_true(candidate_leads(&s[(i + 1) % 2]));
        memnet_advance(p, 500);
        assert_true(candidate_leads(&s[(i + 1) % 2]));
    }
    candidate_resign(&s[0]);
    candidate_close(&s[0]); /* while it lets others come */
    candidate_close(&s[1]);
}

/* ---- what is lost ------------------------------------------------------------------------- */

/* Every kind of message of standing, leading and resigning, at the first or at the others. */
TEST(any_message_may_be_lost_once)
{
    static const int ops[] = {OP_CREATE2, OP_CREATE_CONTAINER, OP_GET_DATA, OP_DELETE,
                              OP_MULTI,   OP_NOTIFICATION,     OP_EXISTS,   MEMNET_HANDSHAKE};
    static const enum memnet_action fates[] = {MEMNET_LOSE, MEMNET_PASS_CUT};
    for (unsigned i = 0; i < sizeof ops / sizeof *ops * 4 * 2 * 3; i++) {
        CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(3, TIMEOUT);
        struct candidate s[3];
        for (size_t n = 0; n < 3; n++)
            assert_int_equal(candidate_open_plain(&s[n], p, n, node, NULL, NULL), CLAVE_OK);
        memnet_rule(p, (struct memnet_rule){.client = i % 2,
                                            .way = i / 2 % 2 ? MEMNET_REPLY : MEMNET_REQUEST,
                                            .op = ops[i / 24],
                                            .fate = fates[i / 4 % 2],
                                            .skip = i / 8 % 3});
        for (size_t n = 0; n < 3; n++)
            candidate_start(&s[n]);
        for (unsigned turns = 0; turns < 6; turns++) {
            memnet_advance(p, 3000);
            assert_int_equal(candidate_count_leaders(s, 3), 1);
            candidate_resign(leader_of(s, 3));
            assert_true(candidate_count_leaders(s, 3) <= 1);
        }
        close_all(s, 3);
        memnet_advance(p, 3000);
    }
}

/* The delete was applied, its answer was lost, and before the former leader is back another has
 * made the node: it is not deleted a second time. */
TEST(a_delete_that_is_repeated_meets_only_its_own_node)
{
    for (int way = MEMNET_REQUEST; way <= MEMNET_REPLY; way++) {
        CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(2, TIMEOUT);
        struct candidate s[2];
        enter_race(&s[0], p, 0, NULL);
        enter_race(&s[1], p, 1, NULL);
        memnet_rule(p, (struct memnet_rule){0, way, OP_DELETE, MEMNET_LOSE, 0});
        memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, MEMNET_HANDSHAKE, MEMNET_HOLD, 0});
        candidate_leave(&s[0], CLAVE_CLOSE_SILENT);
        assert_int_equal(candidate_leads(&s[1]), way == MEMNET_REPLY);
        memnet_clear(p);
        memnet_advance(p, 3000);
        assert_true(candidate_leads(&s[1]));
        assert_int_equal(s[1].not_leader, 0);
        assert_int_equal(s[0].departures, 1);
        assert_int_equal(s[0].left, CLAVE_OK);
        close_all(s, 2);
    }
}

TEST(a_candidate_that_goes_while_its_create_is_in_doubt_leaves_nothing)
{
    for (int way = MEMNET_REQUEST; way <= MEMNET_REPLY; way++) {
        CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(2, TIMEOUT);
        struct candidate s[2];
        memnet_settle(p);
        assert_int_equal(memnet_create(p, 1, "/app"), CLAVE_OK);
        memnet_rule(p, (struct memnet_rule){0, way, OP_CREATE2, MEMNET_LOSE, 0});
        memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, MEMNET_HANDSHAKE, MEMNET_HOLD, 0});
        enter_race(&s[0], p, 0, NULL);
        candidate_leave(&s[0], CLAVE_CLOSE_SILENT);
        enter_race(&s[1], p, 1, NULL);
        memnet_clear(p);
        memnet_advance(p, 3000);
        assert_int_equal(s[0].departures, 1);
        assert_true(candidate_leads(&s[1]));
        assert_int_equal(s[1].not_leader, 0);
        close_all(s, 2);
    }
}

/* ---- what others do ------------------------------------------------------------------------ */

/* An operator deletes the node, and another takes the name: the leader is told, at once, and by
 * either policy does not lead again on a node that is not its own. */
TEST(a_node_that_is_anothers_is_not_led_by)
{
    for (int cut = 0; cut < 2; cut++) {
        CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(3, TIMEOUT);
        struct candidate s[2];
        enter_race(&s[0], p, 0, NULL);
        enter_race(&s[1], p, 1, NULL);
        if (cut) {
            memnet_cut(p, 0);
            memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, MEMNET_HANDSHAKE, MEMNET_HOLD, 0});
            memnet_settle(p);
        }
        assert_int_equal(memnet_delete(p, 2, node), CLAVE_OK);
        memnet_clear(p);
        for (int i = 0; i < 40; i++) {
            memnet_advance(p, 100);
            assert_true(candidate_count_leaders(s, 2) <= 1);
        }
        assert_int_equal(candidate_count_leaders(s, 2), 1);
        assert_int_equal(s[0].not_leader, 1);
        assert_int_equal(s[0].leader, candidate_leads(&s[0]) ? 2 : 1);
        close_all(s, 2);
    }
}

TEST_CLEAN_NET(a_node_that_is_written_to_is_led_by_as_before, 3, TIMEOUT)
{
    struct candidate s[2];
    enter_race(&s[0], p, 0, NULL);
    enter_race(&s[1], p, 1, NULL);
    assert_int_equal(memnet_set(p, 2, node, "hello"), CLAVE_OK);
    assert_true(candidate_leads(&s[0]));
    memnet_cut(p, 0);
    memnet_cut(p, 1);
    assert_int_equal(memnet_set(p, 2, node, "again"), CLAVE_OK);
    memnet_advance(p, 3000);
    assert_true(candidate_leads(&s[0]));
    assert_int_equal(s[0].leader, 1);
    candidate_leave(&s[0], CLAVE_CLOSE_SILENT);
    assert_true(candidate_leads(&s[1]));
    close_all(s, 2);
}

TEST_CLEAN_NET(guarded_writes_are_done_only_while_it_leads, 2, TIMEOUT)
{
    struct candidate s[2];
    enter_race(&s[0], p, 0, NULL);
    enter_race(&s[1], p, 1, NULL);
    assert_int_equal(memnet_create(p, 1, "/data"), CLAVE_OK);
    assert_int_equal(candidate_write(&s[0], "/data", "x"), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(s[0].written, CLAVE_OK);
    assert_int_equal(candidate_write(&s[1], "/data", "y"), CLAVE_ENOTHELD);
    /* Stopped beyond its session, it wakes in the middle of its work. */
    memnet_freeze(p, 0, true);
    memnet_advance(p, 3 * TIMEOUT);
    assert_true(candidate_leads(&s[1]));
    assert_false(latch_valid_for(s[0].l, p->now, 0));
    assert_int_equal(candidate_write(&s[0], "/data", "z"), CLAVE_OK);
    memnet_freeze(p, 0, false);
    memnet_advance(p, 5000);
    assert_int_equal(s[0].written, CLAVE_ELOST);
    assert_int_equal(s[0].not_leader, 1);
    assert_true(candidate_leads(&s[1]));
    assert_int_equal(clave_async_latch_publish(s[1].l, "v", 1, NULL, NULL), CLAVE_EINVAL);
    close_all(s, 2);
}

TEST_CLEAN_NET(a_term_ends_and_the_next_begins, 2, TIMEOUT)
{
    struct candidate s[2];
    clave_latch_options o = {.size = sizeof o, .max_term_ms = 400};
    enter_race(&s[0], p, 0, &o);
    enter_race(&s[1], p, 1, NULL);
    memnet_advance(p, 400);
    assert_int_equal(s[0].not_leader, 1);
    assert_true(candidate_leads(&s[1]));
    candidate_resign(&s[1]);
    assert_int_equal(candidate_count_leaders(s, 2), 0);
    memnet_advance(p, 200); /* both have had it, and both let the other come first */
    assert_int_equal(candidate_count_leaders(s, 2), 1);
    close_all(s, 2);
}

TEST_CLEAN_NET(nodes_are_checked, 1, TIMEOUT)
{
    const clave_latch_options o = {.size = sizeof o, .layout = CLAVE_LATCH_UNFAIR};
    clave_async_latch *l;
    clave_async_client *c = p->clients[0].c;
    assert_int_equal(clave_async_latch_new(&l, c, "/", &o), CLAVE_EPATH);
    assert_int_equal(clave_async_latch_new(&l, c, "leader", &o), CLAVE_EPATH);
    assert_int_equal(clave_async_latch_new(&l, c, "/leader/", &o), CLAVE_EPATH);
    assert_null(l);
    /* One below the root is fine. */
    CLOSED_BY(candidate_close) struct candidate s;
    assert_int_equal(candidate_open_plain(&s, p, 0, "/leader", NULL, NULL), CLAVE_OK);
    memnet_settle(p);
    candidate_start(&s);
    assert_true(candidate_leads(&s));
    assert_string_equal(candidate_grant(&s).node, "/leader");
}

/* ---- all at once --------------------------------------------------------------------------- */

static void harm(struct memnet *p, struct rand_state *rng, struct candidate *s)
{
    size_t c = clave__rand_below(rng, CROWD);
    switch (clave__rand_below(rng, 8)) {
    case 0:
        memnet_cut(p, c);
        break;
    case 1:
        memnet_refuse(p, c, clave__rand_below(rng, 2));
        break;
    case 2:
        memnet_freeze(p, c, clave__rand_below(rng, 2));
        break;
    case 3:
        if (p->nrules == MEMNET_RULES)
            memnet_clear(p);
        memnet_rule(
            p, (struct memnet_rule){c, clave__rand_below(rng, 2) ? MEMNET_REPLY : MEMNET_REQUEST,
                                    MEMNET_ANY, MEMNET_LOSE, 0});
        break;
    case 4:
        memnet_clear(p);
        break;
    case 5:
        if (!p->clients[c].frozen)
            candidate_resign(&s[c]);
        break;
    case 6:
        if (p->server)
            memnet_stop_server(p);
        else
            memnet_start_server(p);
        break;
    default:
        break;
    }
}

TEST(never_two_leaders_whatever_happens)
{
    const clave_latch_options standard = {.size = sizeof standard, .policy = CLAVE_POLICY_STANDARD};
    unsigned terms = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(CROWD, TIMEOUT);
        struct rand_state rng;
        struct candidate s[CROWD];
        clave__rand_seed(&rng, seed);
        for (size_t i = 0; i < CROWD; i++)
            enter_race(&s[i], p, i, i % 2 ? &standard : NULL);
        for (int step = 0; step < 300; step++) {
            harm(p, &rng, s);
            memnet_advance(p, (int64_t)clave__rand_below(&rng, 400));
            if (candidate_count_leaders(s, CROWD) > 1)
                fail_msg("two leaders, seed %llu step %d", (unsigned long long)seed, step);
        }
        memnet_clear(p);
        if (!p->server)
            memnet_start_server(p);
        for (size_t i = 0; i < CROWD; i++) {
            memnet_refuse(p, i, false);
            memnet_freeze(p, i, false);
        }
        memnet_advance(p, 6 * TIMEOUT);
        assert_int_equal(candidate_count_leaders(s, CROWD), 1);
        for (size_t i = 0; i < CROWD; i++) {
            terms += s[i].leader;
            assert_true(s[i].leader - s[i].not_leader <= 1);
        }
        close_all(s, CROWD);
        memnet_advance(p, 3000);
    }
    assert_true(terms > 60 * 3);
}

TEST_EACH_ALLOCATION(every_allocation_may_fail_once, 40)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_on(mem, 1, TIMEOUT);
    struct candidate s[2] = {{0}};
    memnet_settle(p);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_CREATE2, MEMNET_LOSE, 1});
    failmem_arm(mem, which, 1);
    size_t n = 0;
    while (n < 2 && candidate_open_plain(&s[n], p, 0, node, NULL, NULL) == CLAVE_OK)
        candidate_start(&s[n++]);
    memnet_advance(p, 3000);
    for (size_t i = 0; i < n; i++)
        if (clave_async_latch_state_of(s[i].l) == CLAVE_LATCH_STARTED)
            candidate_resign(&s[i]);
    memnet_advance(p, 3000);
    failmem_disarm(mem);
    memnet_advance(p, 3000);
    assert_true(candidate_count_leaders(s, n) <= 1);
    for (size_t i = 0; i < n; i++) {
        if (clave_async_latch_state_of(s[i].l) == CLAVE_LATCH_LATENT)
            candidate_start(&s[i]);
        if (s[i].failed)
            candidate_resign(&s[i]);
    }
    memnet_advance(p, 3000);
    assert_int_equal(candidate_count_leaders(s, n), n > 0);
    close_all(s, n);
    memnet_advance(p, 3000);
    assert_int_equal(memnet_stats(p).ephemerals, 0);
}
