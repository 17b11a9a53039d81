/* The unfair election (clave/async/plain_layouts.h): one node with a fixed name. Never two leaders,
 * whose node it is is never mistaken, and a former leader deletes and writes nothing of the next.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rand.h"
#include "clave/async/leader.h"
#include "lib/candidate.h"
#include "lib/failmem.h"
#include "lib/mutex_owner.h"

enum { TIMEOUT = 6000, CROWD = 4 };

static const char node[] = "/app/leader";

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

static void stand_for(struct stand *s, struct pair *p, size_t client, const clave_latch_options *o)
{
    assert_int_equal(stand_open_elementary(s, p, client, node, NULL, o), CLAVE_OK);
    stand_start(s);
}

static void close_all(struct stand *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        stand_close(&s[i]);
}

static struct stand *leader_of(struct stand *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (stand_leads(&s[i]))
            return &s[i];
    return NULL;
}

/* ---- who leads --------------------------------------------------------------------------- */

static void who_creates_the_node_leads_and_the_others_watch_it(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct stand s[2];
    char names[2][96];
    clave_latch_options o = {.size = sizeof o, .id = "host-a:80"};
    stand_for(&s[0], p, 0, &o);
    stand_for(&s[1], p, 1, NULL);
    assert_true(stand_leads(&s[0]));
    assert_string_equal(stand_grant(&s[0]).node, node);
    assert_int_equal(seat_list(p, 1, "/app", names, 2), 1);
    assert_string_equal(names[0], "leader");
    assert_true(stand_heard(&s[1], "qx"));
    int64_t token = stand_grant(&s[0]).token;
    stand_quit(&s[0], CLAVE_CLOSE_SILENT);
    assert_true(stand_leads(&s[1]));
    assert_true(stand_grant(&s[1]).token > token);
    close_all(s, 2);
    assert_no_leftovers(p);
    pair_free(p);
}

/* The herd, counted: all of those who are left ask for the node, and all but one of them watch it
 * anew. */
static void a_failover_costs_more_with_each_candidate(void **state)
{
    (void)state;
    for (size_t n = 3; n <= 24; n += 7) {
        struct pair *p = world(n);
        struct stand s[24];
        for (size_t i = 0; i < n; i++)
            stand_for(&s[i], p, i, NULL);
        pair_reset_counts(p);
        stand_quit(&s[0], CLAVE_CLOSE_SILENT);
        assert_int_equal(stand_leaders(s, n), 1);
        uint64_t requests = 0, events = 0;
        for (size_t i = 0; i < n; i++) {
            requests += pair_requests(p, i);
            events += p->end[i].events;
        }
        /* The delete; a create each; a look at the new one each, the new leader's included. The
         * leader's own watch fires as well. */
        assert_int_equal(requests, 1 + 2 * (n - 1));
        assert_int_equal(events, n);
        close_all(s, n);
        assert_no_leftovers(p);
        pair_free(p);
    }
}

static void two_of_one_session_are_two(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct stand s[2];
    stand_for(&s[0], p, 0, NULL);
    stand_for(&s[1], p, 0, NULL);
    assert_int_equal(stand_leaders(s, 2), 1);
    stand_resign(leader_of(s, 2));
    pair_advance(p, 1000);
    assert_int_equal(stand_leaders(s, 2), 1);
    close_all(s, 2);
    assert_no_leftovers(p);
    pair_free(p);
}

/* Who resigns is not the first to try again; but it leads again when nobody else wants to. */
static void who_resigns_lets_others_come_first(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct stand s[2];
    stand_for(&s[0], p, 0, NULL);
    stand_resign(&s[0]);
    assert_false(stand_leads(&s[0]));
    pair_advance(p, 200);
    assert_true(stand_leads(&s[0]));
    stand_for(&s[1], p, 1, NULL);
    for (int i = 0; i < 10; i++) {
        stand_resign(&s[i % 2]);
        assert_true(stand_leads(&s[(i + 1) % 2]));
        pair_advance(p, 500);
        assert_true(stand_leads(&s[(i + 1) % 2]));
    }
    stand_resign(&s[0]);
    stand_close(&s[0]); /* while it lets others come */
    stand_close(&s[1]);
    assert_no_leftovers(p);
    pair_free(p);
}

/* ---- what is lost ------------------------------------------------------------------------- */

/* Every kind of message of standing, leading and resigning, at the first or at the others. */
static void any_message_may_be_lost_once(void **state)
{
    (void)state;
    static const int ops[] = {OP_CREATE2, OP_CREATE_CONTAINER, OP_GET_DATA, OP_DELETE,
                              OP_MULTI,   OP_NOTIFICATION,     OP_EXISTS,   PAIR_HANDSHAKE};
    static const enum pair_fate fates[] = {PAIR_LOSE, PAIR_PASS_CUT};
    for (unsigned i = 0; i < sizeof ops / sizeof *ops * 4 * 2 * 3; i++) {
        struct pair *p = world(3);
        struct stand s[3];
        for (size_t n = 0; n < 3; n++)
            assert_int_equal(stand_open_elementary(&s[n], p, n, node, NULL, NULL), CLAVE_OK);
        pair_rule(p, (struct pair_rule){.client = i % 2,
                                        .way = i / 2 % 2 ? PAIR_REPLY : PAIR_REQUEST,
                                        .op = ops[i / 24],
                                        .fate = fates[i / 4 % 2],
                                        .skip = i / 8 % 3});
        for (size_t n = 0; n < 3; n++)
            stand_start(&s[n]);
        for (unsigned turns = 0; turns < 6; turns++) {
            pair_advance(p, 3000);
            assert_int_equal(stand_leaders(s, 3), 1);
            stand_resign(leader_of(s, 3));
            assert_true(stand_leaders(s, 3) <= 1);
        }
        close_all(s, 3);
        pair_advance(p, 3000);
        assert_no_leftovers(p);
        pair_free(p);
    }
}

/* The delete was applied, its answer was lost, and before the former leader is back another has
 * made the node: it is not deleted a second time. */
static void a_delete_that_is_repeated_meets_only_its_own_node(void **state)
{
    (void)state;
    for (int way = PAIR_REQUEST; way <= PAIR_REPLY; way++) {
        struct pair *p = world(2);
        struct stand s[2];
        stand_for(&s[0], p, 0, NULL);
        stand_for(&s[1], p, 1, NULL);
        pair_rule(p, (struct pair_rule){0, way, OP_DELETE, PAIR_LOSE, 0});
        pair_rule(p, (struct pair_rule){0, PAIR_REPLY, PAIR_HANDSHAKE, PAIR_HOLD, 0});
        stand_quit(&s[0], CLAVE_CLOSE_SILENT);
        assert_int_equal(stand_leads(&s[1]), way == PAIR_REPLY);
        pair_clear(p);
        pair_advance(p, 3000);
        assert_true(stand_leads(&s[1]));
        assert_int_equal(s[1].not_leader, 0);
        assert_int_equal(s[0].departures, 1);
        assert_int_equal(s[0].left, CLAVE_OK);
        close_all(s, 2);
        assert_no_leftovers(p);
        pair_free(p);
    }
}

static void a_candidate_that_goes_while_its_create_is_in_doubt_leaves_nothing(void **state)
{
    (void)state;
    for (int way = PAIR_REQUEST; way <= PAIR_REPLY; way++) {
        struct pair *p = world(2);
        struct stand s[2];
        pair_settle(p);
        assert_int_equal(seat_make(p, 1, "/app"), CLAVE_OK);
        pair_rule(p, (struct pair_rule){0, way, OP_CREATE2, PAIR_LOSE, 0});
        pair_rule(p, (struct pair_rule){0, PAIR_REPLY, PAIR_HANDSHAKE, PAIR_HOLD, 0});
        stand_for(&s[0], p, 0, NULL);
        stand_quit(&s[0], CLAVE_CLOSE_SILENT);
        stand_for(&s[1], p, 1, NULL);
        pair_clear(p);
        pair_advance(p, 3000);
        assert_int_equal(s[0].departures, 1);
        assert_true(stand_leads(&s[1]));
        assert_int_equal(s[1].not_leader, 0);
        close_all(s, 2);
        assert_no_leftovers(p);
        pair_free(p);
    }
}

/* ---- what others do ------------------------------------------------------------------------ */

/* An operator deletes the node, and another takes the name: the leader is told, at once, and by
 * either policy does not lead again on a node that is not its own. */
static void a_node_that_is_anothers_is_not_led_by(void **state)
{
    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        struct pair *p = world(3);
        struct stand s[2];
        stand_for(&s[0], p, 0, NULL);
        stand_for(&s[1], p, 1, NULL);
        if (cut) {
            pair_cut(p, 0);
            pair_rule(p, (struct pair_rule){0, PAIR_REPLY, PAIR_HANDSHAKE, PAIR_HOLD, 0});
            pair_settle(p);
        }
        assert_int_equal(seat_remove(p, 2, node), CLAVE_OK);
        pair_clear(p);
        for (int i = 0; i < 40; i++) {
            pair_advance(p, 100);
            assert_true(stand_leaders(s, 2) <= 1);
        }
        assert_int_equal(stand_leaders(s, 2), 1);
        assert_int_equal(s[0].not_leader, 1);
        assert_int_equal(s[0].leader, stand_leads(&s[0]) ? 2 : 1);
        close_all(s, 2);
        assert_no_leftovers(p);
        pair_free(p);
    }
}

static void a_node_that_is_written_to_is_led_by_as_before(void **state)
{
    (void)state;
    struct pair *p = world(3);
    struct stand s[2];
    stand_for(&s[0], p, 0, NULL);
    stand_for(&s[1], p, 1, NULL);
    assert_int_equal(seat_scribble(p, 2, node, "hello"), CLAVE_OK);
    assert_true(stand_leads(&s[0]));
    pair_cut(p, 0);
    pair_cut(p, 1);
    assert_int_equal(seat_scribble(p, 2, node, "again"), CLAVE_OK);
    pair_advance(p, 3000);
    assert_true(stand_leads(&s[0]));
    assert_int_equal(s[0].leader, 2); /* by the standard policy, once behind the reconnect */
    stand_quit(&s[0], CLAVE_CLOSE_SILENT);
    assert_true(stand_leads(&s[1]));
    close_all(s, 2);
    assert_no_leftovers(p);
    pair_free(p);
}

static void guarded_writes_are_done_only_while_it_leads(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct stand s[2];
    stand_for(&s[0], p, 0, NULL);
    stand_for(&s[1], p, 1, NULL);
    assert_int_equal(seat_make(p, 1, "/data"), CLAVE_OK);
    assert_int_equal(stand_write(&s[0], "/data", "x"), CLAVE_OK);
    pair_settle(p);
    assert_int_equal(s[0].written, CLAVE_OK);
    assert_int_equal(stand_write(&s[1], "/data", "y"), CLAVE_ENOTHELD);
    /* Stopped beyond its session, it wakes in the middle of its work. */
    pair_freeze(p, 0, true);
    pair_advance(p, 3 * TIMEOUT);
    assert_true(stand_leads(&s[1]));
    assert_false(clave_async_latch_valid_for(s[0].l, p->now, 0));
    assert_int_equal(stand_write(&s[0], "/data", "z"), CLAVE_OK);
    pair_freeze(p, 0, false);
    pair_advance(p, 5000);
    assert_int_equal(s[0].written, CLAVE_ELOST);
    assert_int_equal(s[0].not_leader, 1);
    assert_true(stand_leads(&s[1]));
    assert_int_equal(clave_async_latch_publish(s[1].l, "v", 1, NULL, NULL), CLAVE_EINVAL);
    close_all(s, 2);
    assert_no_leftovers(p);
    pair_free(p);
}

static void a_term_ends_and_the_next_begins(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct stand s[2];
    clave_latch_options o = {.size = sizeof o, .max_term_ms = 400};
    stand_for(&s[0], p, 0, &o);
    stand_for(&s[1], p, 1, NULL);
    pair_advance(p, 400);
    assert_int_equal(s[0].not_leader, 1);
    assert_true(stand_leads(&s[1]));
    stand_resign(&s[1]);
    assert_int_equal(stand_leaders(s, 2), 0);
    pair_advance(p, 200); /* both have had it, and both let the other come first */
    assert_int_equal(stand_leaders(s, 2), 1);
    close_all(s, 2);
    assert_no_leftovers(p);
    pair_free(p);
}

static void nodes_are_checked(void **state)
{
    (void)state;
    struct pair *p = world(1);
    clave_async_latch *l;
    clave_async_client *c = p->end[0].c;
    assert_int_equal(clave_async_latch_new_unfair(&l, c, "/", NULL), CLAVE_EPATH);
    assert_int_equal(clave_async_latch_new_unfair(&l, c, "leader", NULL), CLAVE_EPATH);
    assert_int_equal(clave_async_latch_new_unfair(&l, c, "/leader/", NULL), CLAVE_EPATH);
    assert_null(l);
    /* One below the root is fine. */
    struct stand s;
    assert_int_equal(stand_open_elementary(&s, p, 0, "/leader", NULL, NULL), CLAVE_OK);
    pair_settle(p);
    stand_start(&s);
    assert_true(stand_leads(&s));
    assert_string_equal(stand_grant(&s).node, "/leader");
    stand_close(&s);
    assert_no_leftovers(p);
    pair_free(p);
}

/* ---- all at once --------------------------------------------------------------------------- */

static void harm(struct pair *p, struct rand_state *dice, struct stand *s)
{
    size_t c = clave__rand_below(dice, CROWD);
    switch (clave__rand_below(dice, 8)) {
    case 0:
        pair_cut(p, c);
        break;
    case 1:
        pair_refuse(p, c, clave__rand_below(dice, 2));
        break;
    case 2:
        pair_freeze(p, c, clave__rand_below(dice, 2));
        break;
    case 3:
        if (p->nrules == PAIR_RULES)
            pair_clear(p);
        pair_rule(p, (struct pair_rule){c, clave__rand_below(dice, 2) ? PAIR_REPLY : PAIR_REQUEST,
                                        PAIR_ANY, PAIR_LOSE, 0});
        break;
    case 4:
        pair_clear(p);
        break;
    case 5:
        if (!p->end[c].frozen)
            stand_resign(&s[c]);
        break;
    case 6:
        if (p->server)
            pair_stop_server(p);
        else
            pair_start_server(p);
        break;
    default:
        break;
    }
}

static void never_two_leaders_whatever_happens(void **state)
{
    (void)state;
    unsigned terms = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct pair *p = world(CROWD);
        struct rand_state dice;
        struct stand s[CROWD];
        clave__rand_seed(&dice, seed);
        for (size_t i = 0; i < CROWD; i++)
            stand_for(&s[i], p, i, NULL);
        for (int step = 0; step < 300; step++) {
            harm(p, &dice, s);
            pair_advance(p, (int64_t)clave__rand_below(&dice, 400));
            if (stand_leaders(s, CROWD) > 1)
                fail_msg("two leaders, seed %llu step %d", (unsigned long long)seed, step);
        }
        pair_clear(p);
        if (!p->server)
            pair_start_server(p);
        for (size_t i = 0; i < CROWD; i++) {
            pair_refuse(p, i, false);
            pair_freeze(p, i, false);
        }
        pair_advance(p, 6 * TIMEOUT);
        assert_int_equal(stand_leaders(s, CROWD), 1);
        for (size_t i = 0; i < CROWD; i++) {
            terms += s[i].leader;
            assert_true(s[i].leader - s[i].not_leader <= 1);
        }
        close_all(s, CROWD);
        pair_advance(p, 3000);
        assert_no_leftovers(p);
        pair_free(p);
    }
    assert_true(terms > 60 * CROWD);
}

static bool one_allocation_fails(size_t which)
{
    struct failmem mem;
    failmem_init(&mem);
    struct pair *p =
        pair_new(&(struct pair_options){.clients = 1, .timeout_ms = TIMEOUT, .mem = &mem.mem});
    struct stand s[2] = {{0}};
    pair_settle(p);
    pair_rule(p, (struct pair_rule){0, PAIR_REPLY, OP_CREATE2, PAIR_LOSE, 1});
    failmem_arm(&mem, which, 1);
    size_t n = 0;
    while (n < 2 && stand_open_elementary(&s[n], p, 0, node, NULL, NULL) == CLAVE_OK)
        stand_start(&s[n++]);
    pair_advance(p, 3000);
    for (size_t i = 0; i < n; i++)
        if (clave_async_latch_state_of(s[i].l) == CLAVE_LATCH_STARTED)
            stand_resign(&s[i]);
    pair_advance(p, 3000);
    bool failed = mem.failed;
    failmem_arm(&mem, 0, 0);
    pair_advance(p, 3000);
    assert_true(stand_leaders(s, n) <= 1);
    for (size_t i = 0; i < n; i++) {
        if (clave_async_latch_state_of(s[i].l) == CLAVE_LATCH_LATENT)
            stand_start(&s[i]);
        if (s[i].failed)
            stand_resign(&s[i]);
    }
    pair_advance(p, 3000);
    assert_int_equal(stand_leaders(s, n), n > 0);
    close_all(s, n);
    pair_advance(p, 3000);
    assert_int_equal(pair_stats(p).ephemerals, 0);
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
    assert_true(which > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_creates_the_node_leads_and_the_others_watch_it),
        cmocka_unit_test(a_failover_costs_more_with_each_candidate),
        cmocka_unit_test(two_of_one_session_are_two),
        cmocka_unit_test(who_resigns_lets_others_come_first),
        cmocka_unit_test(any_message_may_be_lost_once),
        cmocka_unit_test(a_delete_that_is_repeated_meets_only_its_own_node),
        cmocka_unit_test(a_candidate_that_goes_while_its_create_is_in_doubt_leaves_nothing),
        cmocka_unit_test(a_node_that_is_anothers_is_not_led_by),
        cmocka_unit_test(a_node_that_is_written_to_is_led_by_as_before),
        cmocka_unit_test(guarded_writes_are_done_only_while_it_leads),
        cmocka_unit_test(a_term_ends_and_the_next_begins),
        cmocka_unit_test(nodes_are_checked),
        cmocka_unit_test(never_two_leaders_whatever_happens),
        cmocka_unit_test(every_allocation_may_fail_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
