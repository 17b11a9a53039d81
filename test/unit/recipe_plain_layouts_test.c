/* The simple lock and the fair election (clave/async/plain_layouts.h): in one queue with a program
 * written by hand, and with the promises of the mutex and the latch although the names say nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/candidate.h"
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

static void open_lock(struct seat *s, struct pair *p, size_t client)
{
    assert_int_equal(seat_open_simple(s, p, client, "/l", "lock_", NULL), CLAVE_OK);
}

static void open_candidate(struct stand *s, struct pair *p, size_t client)
{
    assert_int_equal(stand_open_elementary(s, p, client, "/election", "c_", NULL), CLAVE_OK);
    stand_start(s);
}

/* What the hand-written program does: a plain create, and a delete. */
static void on_made(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    snprintf(arg, 64, "%s", res->err == CLAVE_OK ? res->path : "");
}

static void make_by_hand(struct pair *p, size_t client, const char *path, char made[64])
{
    clave_create_options o = {.size = sizeof o, .mode = CLAVE_EPHEMERAL_SEQUENTIAL};
    made[0] = '\0';
    clave_async_create(p->end[client].c, path, NULL, 0, &o, on_made, made);
    pair_settle(p);
}

/* ---- the simple lock --------------------------------------------------------------------- */

static void it_is_one_queue_with_a_program_written_by_hand(void **state)
{
    (void)state;
    struct pair *p = world(3);
    struct seat a;
    char before[64], behind[64], names[4][96];
    open_lock(&a, p, 0);
    seat_acquire(&a, SEAT_EVER);
    assert_int_equal(seat_list(p, 1, "/l", names, 4), 1);
    assert_string_equal(names[0], "lock_0000000000");
    seat_release(&a);
    make_by_hand(p, 1, "/l/lock_", before);
    assert_string_equal(before, "/l/lock_0000000001");
    seat_acquire(&a, SEAT_EVER);
    make_by_hand(p, 2, "/l/lock_", behind);
    assert_false(seat_holds(&a));
    assert_int_equal(a.ahead, 1);
    assert_string_equal(a.predecessor, before);
    assert_int_equal(seat_remove(p, 1, before), CLAVE_OK);
    assert_true(seat_holds(&a));
    assert_string_equal(seat_grant(&a).node, "/l/lock_0000000002");
    assert_int_equal(seat_remove(p, 2, behind), CLAVE_OK);
    seat_close(&a);
    assert_no_leftovers(p);
    pair_free(p);
}

/* Every kind of message of acquires and releases by two owners of one lock, whose nodes nothing
 * but their order tells apart, and a third process. */
static void any_message_may_be_lost_once(void **state)
{
    (void)state;
    static const int ops[] = {OP_CREATE2, OP_CREATE_CONTAINER, OP_GET_CHILDREN2, OP_GET_DATA,
                              OP_DELETE,  OP_NOTIFICATION,     OP_MULTI,         PAIR_HANDSHAKE};
    static const enum pair_fate fates[] = {PAIR_LOSE, PAIR_PASS_CUT};
    for (unsigned i = 0; i < sizeof ops / sizeof *ops * 4 * 2 * 4; i++) {
        struct pair *p = world(2);
        struct seat a[3];
        open_lock(&a[0], p, 0);
        seat_share(&a[1], &a[0], 1);
        open_lock(&a[2], p, 1);
        pair_rule(p, (struct pair_rule){.client = i % 2,
                                        .way = i / 2 % 2 ? PAIR_REPLY : PAIR_REQUEST,
                                        .op = ops[i / 32],
                                        .fate = fates[i / 4 % 2],
                                        .skip = i / 8 % 4});
        for (size_t n = 0; n < 3; n++)
            seat_ask(&a[n], SEAT_EVER);
        for (unsigned turns = 0; turns < 3; turns++) {
            pair_advance(p, 3000);
            size_t holder = seat_holds(&a[0]) ? 0 : seat_holds(&a[1]) ? 1 : 2;
            assert_int_equal(seat_holds(&a[0]) + seat_holds(&a[1]) + seat_holds(&a[2]), 1);
            assert_int_equal(seat_list(p, 1, "/l", NULL, 0), 3 - turns);
            seat_release(&a[holder]);
        }
        pair_advance(p, 3000);
        for (size_t n = 0; n < 3; n++)
            assert_int_equal(a[n].answers, 1);
        assert_no_leftovers(p);
        seat_close(&a[0]);
        seat_close(&a[2]);
        pair_free(p);
    }
}

static void a_node_of_the_old_session_is_never_adopted(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seat a;
    char names[4][96];
    open_lock(&a, p, 0);
    seat_acquire(&a, SEAT_EVER);
    seat_release(&a);
    pair_rule(p, (struct pair_rule){0, PAIR_REPLY, OP_CREATE2, PAIR_LOSE, 0});
    p->end[0].refused = true; /* it cannot come back before its session is over */
    seat_ask(&a, SEAT_EVER);
    pair_settle(p);
    int64_t old = clave_async_client_session_id(p->end[0].c);
    while (!pair_saw(p, 0, CLAVE_STATE_LOST))
        pair_advance(p, 10);
    assert_int_equal(seat_list(p, 1, "/l", names, 4), 1); /* the old one's stands still */
    p->end[0].refused = false;
    pair_advance(p, 100);
    assert_false(seat_holds(&a));
    pair_advance(p, 3 * TIMEOUT);
    assert_true(seat_holds(&a));
    assert_int_not_equal(seat_grant(&a).session_id, old);
    assert_int_equal(seat_list(p, 1, "/l", names, 4), 1);
    seat_close(&a);
    assert_no_leftovers(p);
    pair_free(p);
}

/* The queue's path was removed and made anew while we were away, and its numbers began anew: what
 * stands under our name is another client's. */
static void a_node_of_our_name_that_is_anothers_is_left_alone(void **state)
{
    (void)state;
    struct pair *p = world(3);
    struct seat a;
    char first[64], names[4][96];
    open_lock(&a, p, 0);
    assert_int_equal(seat_make(p, 1, "/l"), CLAVE_OK);
    make_by_hand(p, 1, "/l/lock_", first);
    seat_acquire(&a, SEAT_EVER);
    pair_refuse(p, 0, true);
    assert_int_equal(seat_remove(p, 1, first), CLAVE_OK);
    assert_int_equal(seat_remove(p, 1, "/l/lock_0000000001"), CLAVE_OK);
    assert_int_equal(seat_remove(p, 1, "/l"), CLAVE_OK);
    assert_int_equal(seat_make(p, 1, "/l"), CLAVE_OK);
    for (int i = 0; i < 2; i++)
        make_by_hand(p, 1 + (size_t)i, "/l/lock_", names[i]);
    assert_string_equal(names[1], "/l/lock_0000000001");
    pair_refuse(p, 0, false);
    pair_advance(p, 1000);
    assert_int_equal(seat_list(p, 1, "/l", names, 4), 3);
    assert_false(seat_holds(&a));
    assert_int_equal(a.ahead, 2);
    seat_close(&a);
    pair_free(p);
}

static void max_hold_ends_the_hold_and_the_release_says_so(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seat a, b;
    clave_mutex_options o = {.size = sizeof o, .max_hold_ms = 500};
    assert_int_equal(seat_open_simple(&a, p, 0, "/l", "lock_", &o), CLAVE_OK);
    open_lock(&b, p, 1);
    seat_acquire(&a, SEAT_EVER);
    seat_acquire(&b, SEAT_EVER);
    pair_advance(p, 499);
    assert_true(seat_holds(&a));
    pair_advance(p, 1);
    assert_false(seat_holds(&a));
    assert_int_equal(a.lost, 1);
    assert_int_equal(a.why, CLAVE_EMAXHOLD);
    assert_true(seat_holds(&b));
    assert_int_equal(seat_release(&a), CLAVE_EMAXHOLD);
    seat_close(&a);
    seat_close(&b);
    assert_no_leftovers(p);
    pair_free(p);
}

static void a_holder_that_was_stopped_does_no_harm(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seat a, b;
    open_lock(&a, p, 0);
    open_lock(&b, p, 1);
    assert_int_equal(seat_make(p, 1, "/data"), CLAVE_OK);
    seat_acquire(&a, SEAT_EVER);
    seat_acquire(&b, SEAT_EVER);
    pair_freeze(p, 0, true);
    pair_advance(p, 3 * TIMEOUT);
    assert_true(seat_holds(&b));
    assert_false(clave_async_mutex_valid_for(a.m, 0, p->now, 0));
    assert_int_equal(seat_write(&a, "/data", "x"), CLAVE_OK);
    pair_freeze(p, 0, false);
    pair_advance(p, 5000);
    assert_int_equal(a.lost, 1);
    assert_int_equal(a.written, CLAVE_ELOST);
    seat_close(&a);
    seat_close(&b);
    assert_no_leftovers(p);
    pair_free(p);
}

static void acquires_that_are_given_up_leave_nothing(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seat a, b;
    open_lock(&a, p, 0);
    open_lock(&b, p, 1);
    seat_acquire(&a, SEAT_EVER);
    for (int i = 0; i < 1000; i++) {
        seat_acquire(&b, 1);
        pair_advance(p, 1);
        seat_acquire(&b, SEAT_TRY);
        seat_ask(&b, SEAT_EVER);
        if (i % 2)
            pair_settle(p);
        if (i % 10 == 0)
            pair_cut(p, 1);
        assert_int_equal(clave_async_mutex_cancel(b.m, 0), CLAVE_OK);
        pair_advance(p, i % 10 == 0 ? 1000 : 0);
    }
    assert_int_equal(b.answers, 3000);
    assert_int_equal(seat_list(p, 0, "/l", NULL, 0), 1);
    assert_true(pair_stats(p).watches <= 1); /* the holder's own */
    seat_close(&a);
    seat_close(&b);
    assert_no_leftovers(p);
    pair_free(p);
}

static void prefixes_are_checked(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "0", "12", "-1", "a/b", NULL};
    struct pair *p = world(1);
    clave_async_client *c = p->end[0].c;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        clave_async_mutex *m;
        clave_async_latch *l;
        assert_int_equal(clave_async_mutex_new_simple(&m, c, "/l", wrong[i], NULL), CLAVE_EINVAL);
        assert_null(m);
        assert_int_equal(clave_async_latch_new_fair(&l, c, "/l", wrong[i], NULL), CLAVE_EINVAL);
        assert_null(l);
    }
    clave_async_mutex *m;
    assert_int_equal(clave_async_mutex_new_simple(&m, c, "l", "n", NULL), CLAVE_EPATH);
    clave_async_latch *l;
    clave_latch_options o = {.size = sizeof o, .id = "a", .priority = 1};
    assert_int_equal(clave_async_latch_new_fair(&l, c, "/l", "n", &o), CLAVE_EINVAL);
    pair_free(p);
}

/* ---- the fair election -------------------------------------------------------------------- */

static void candidates_lead_in_turn_with_one_written_by_hand(void **state)
{
    (void)state;
    struct pair *p = world(3);
    struct stand a, b;
    char hand[64];
    open_candidate(&a, p, 0);
    make_by_hand(p, 2, "/election/c_", hand);
    open_candidate(&b, p, 1);
    assert_true(stand_leads(&a));
    assert_string_equal(stand_grant(&a).node, "/election/c_0000000000");
    assert_int_equal(b.ahead, 2);
    stand_quit(&a, CLAVE_CLOSE_SILENT);
    assert_false(stand_leads(&b));
    assert_int_equal(b.ahead, 1);
    assert_int_equal(seat_remove(p, 2, hand), CLAVE_OK);
    assert_true(stand_leads(&b));
    stand_close(&a);
    stand_close(&b);
    assert_no_leftovers(p);
    pair_free(p);
}

static void a_failover_costs_the_same_with_any_number(void **state)
{
    (void)state;
    uint64_t cost[2];
    for (size_t n = 0; n < 2; n++) {
        size_t candidates = n ? 20 : 5;
        struct pair *p = world(candidates);
        struct stand s[20];
        for (size_t i = 0; i < candidates; i++)
            open_candidate(&s[i], p, i);
        pair_reset_counts(p);
        stand_quit(&s[0], CLAVE_CLOSE_SILENT);
        assert_true(stand_leads(&s[1]));
        cost[n] = 0;
        for (size_t i = 0; i < candidates; i++)
            cost[n] += pair_requests(p, i);
        for (size_t i = 0; i < candidates; i++)
            stand_close(&s[i]);
        assert_no_leftovers(p);
        pair_free(p);
    }
    assert_int_equal(cost[0], cost[1]);
    assert_true(cost[0] <= 4);
}

/* ---- memory ------------------------------------------------------------------------------ */

static bool one_allocation_fails(size_t which)
{
    struct failmem mem;
    failmem_init(&mem);
    struct pair *p =
        pair_new(&(struct pair_options){.clients = 2, .timeout_ms = TIMEOUT, .mem = &mem.mem});
    struct seat a = {0};
    pair_settle(p);
    pair_rule(p, (struct pair_rule){0, PAIR_REPLY, OP_CREATE2, PAIR_LOSE, 1});
    failmem_arm(&mem, which, 1);
    clave_err err = seat_open_simple(&a, p, 0, "/l", "lock_", NULL);
    bool open = err == CLAVE_OK;
    if (open)
        err = seat_acquire(&a, 10000);
    assert_true(err == CLAVE_OK || err == CLAVE_ENOMEM);
    pair_advance(p, 3000);
    bool failed = mem.failed;
    failmem_arm(&mem, 0, 0);
    assert_int_equal(a.answers, err == CLAVE_OK);
    bool holds = open && seat_holds(&a);
    assert_int_equal(holds, a.answers && a.err == CLAVE_OK);
    assert_int_equal(seat_list(p, 1, "/l", NULL, 0), holds);
    if (open)
        seat_close(&a);
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
    assert_true(which > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_one_queue_with_a_program_written_by_hand),
        cmocka_unit_test(any_message_may_be_lost_once),
        cmocka_unit_test(a_node_of_the_old_session_is_never_adopted),
        cmocka_unit_test(a_node_of_our_name_that_is_anothers_is_left_alone),
        cmocka_unit_test(max_hold_ends_the_hold_and_the_release_says_so),
        cmocka_unit_test(a_holder_that_was_stopped_does_no_harm),
        cmocka_unit_test(acquires_that_are_given_up_leave_nothing),
        cmocka_unit_test(prefixes_are_checked),
        cmocka_unit_test(candidates_lead_in_turn_with_one_written_by_hand),
        cmocka_unit_test(a_failover_costs_the_same_with_any_number),
        cmocka_unit_test(every_allocation_may_fail_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
