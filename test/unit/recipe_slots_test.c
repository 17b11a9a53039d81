/* Slots when nothing fails: never above the limit, in the order of arrival, one slot an id, kept
 * without a session until they are given back or broken. */
#include "lib/slot_user.h"
#include "lib/unit.h"

enum { TIMEOUT = 6000 };

/* ---- take ------------------------------------------------------------------------------------ */

TEST_NET(a_free_slot_is_taken, 2, TIMEOUT)
{
    struct slot_user a;
    slot_user_open(&a, p, 0, 1);
    assert_int_equal(slot_user_take(&a, "web/1", OWNER_FOREVER), CLAVE_OK);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.err, CLAVE_OK);
    assert_true(a.taken);
    assert_string_equal(a.id, "web/1");
    assert_string_equal(a.host, "host0");
    assert_string_equal(a.reason, "test");
    assert_non_null(strstr(a.node, "/s/owners/slot-web%2F1/take-"));
    assert_true(a.token > 0);
    assert_true(a.since > 0);
    memnet_assert_no_leftovers(p);
    /* It outlives the session. */
    slot_user_close(&a);
    memnet_kill_session(p, 0);
    memnet_advance(p, 2 * TIMEOUT);
    assert_int_equal(slot_user_owned(p), 1);
}

/* Two readings and the place together, the transaction; and nothing afterwards. */
TEST_CLEAN_NET(a_take_costs_few_requests, 1, TIMEOUT)
{
    CLOSED_BY(slot_user_close) struct slot_user a;
    slot_user_open(&a, p, 0, 9);
    slot_user_take(&a, "1", OWNER_FOREVER); /* makes the nodes */
    memnet_reset_counts(p);
    slot_user_take(&a, "2", OWNER_FOREVER);
    assert_true(a.taken);
    assert_int_equal(p->clients[0].requests[OP_MULTI], 1);
    assert_int_equal(p->clients[0].requests[OP_CREATE2], 1);
    assert_int_equal(p->clients[0].requests[OP_DELETE], 0);
    assert_int_equal(memnet_requests(p, 0), 6); /* sync, limit, owners, place, its queue, multi */
}

TEST(the_others_wait_in_order)
{
    enum { N = 5, LIMIT = 2 };
    CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(N, TIMEOUT);
    struct slot_user a[N];
    char id[N][8];
    for (size_t i = 0; i < N; i++) {
        slot_user_open(&a[i], p, i, LIMIT);
        snprintf(id[i], sizeof id[i], "m%zu", i);
        slot_user_take(&a[i], id[i], OWNER_FOREVER);
        assert_int_equal(a[i].answers, i < LIMIT);
    }
    assert_int_equal(a[2].ahead, 0);
    assert_int_equal(a[3].ahead, 1);
    assert_int_equal(a[4].ahead, 2);
    for (size_t i = LIMIT; i < N; i++) {
        slot_user_give(&a[0], id[i - LIMIT], 0);
        assert_int_equal(a[i].answers, 1);
        assert_true(a[i].taken);
        assert_true(a[i].token > a[i - 1].token);
        assert_int_equal(slot_user_owned(p), LIMIT);
    }
    for (size_t i = 0; i < N; i++)
        slot_user_close(&a[i]);
}

/* A give is one event for the first one; it tells the next one by its place. The others hear
 * nothing, and ask nothing. */
TEST(a_hand_over_is_no_herd)
{
    enum { N = 8 };
    CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(N, TIMEOUT);
    struct slot_user a[N];
    char id[8];
    for (size_t i = 0; i < N; i++) {
        slot_user_open(&a[i], p, i, 1);
        snprintf(id, sizeof id, "m%zu", i);
        slot_user_take(&a[i], id, OWNER_FOREVER);
    }
    memnet_reset_counts(p);
    for (size_t i = 0; i < N; i++)
        p->clients[i].events = 0;
    slot_user_give(&a[0], "m0", 0);
    assert_true(a[1].taken);
    assert_int_equal(p->clients[1].events, 2); /* the give, and its own slot */
    /* The limit, the owners, the transaction; and the watch of the limit is given up. */
    assert_int_equal(memnet_requests(p, 1), 4);
    for (size_t i = 4; i < N; i++) {
        assert_int_equal(p->clients[i].events, 0);
        assert_int_equal(memnet_requests(p, i), 0);
    }
    for (size_t i = 0; i < N; i++)
        slot_user_close(&a[i]);
}

TEST_NET(a_try_does_not_wait, 2, TIMEOUT)
{
    CLOSED_BY(slot_user_close) struct slot_user a, b;
    slot_user_open(&a, p, 0, 1);
    slot_user_open(&b, p, 1, 1);
    slot_user_take(&a, "a", OWNER_TRY);
    assert_true(a.taken);
    slot_user_take(&b, "b", OWNER_TRY);
    assert_int_equal(b.answers, 1);
    assert_int_equal(b.err, CLAVE_EBUSY);
    assert_int_equal(b.queued, 0);
    slot_user_give(&a, "a", 0);
    slot_user_take(&b, "b", OWNER_TRY);
    assert_true(b.taken);
    memnet_refuse(p, 0, true);
    memnet_settle(p);
    slot_user_take(&a, "a", OWNER_TRY);
    assert_int_equal(a.answers, 2);
    assert_int_equal(a.err, CLAVE_EUNREACHABLE);
}

/* It is refused only if owners and places before it fill the limit, and is told which of both. */
TEST(a_try_takes_what_those_before_it_leave)
{
    for (uint32_t limit = 1; limit <= 2; limit++) {
        CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(2, TIMEOUT);
        CLOSED_BY(slot_user_close) struct slot_user a, b;
        slot_user_open(&a, p, 0, limit);
        slot_user_open(&b, p, 1, limit);
        slot_user_take(&a, "a", OWNER_FOREVER); /* makes the nodes */
        slot_user_give(&a, "a", 0);
        memnet_rule(p, (struct memnet_rule){0, MEMNET_REQUEST, OP_MULTI, MEMNET_HOLD, 0});
        slot_user_take(&a, "a", OWNER_FOREVER);
        slot_user_take(&b, "b", OWNER_TRY);
        assert_int_equal(b.err, limit == 1 ? CLAVE_EBUSY : CLAVE_OK);
        assert_int_equal(b.refused, limit == 1);
        if (limit == 1)
            assert_true(b.ahead == 1 && b.owned == 0 && b.limit == 1);
        memnet_clear(p);
        memnet_settle(p);
        assert_true(a.taken);
        assert_int_equal(slot_user_owned(p), limit);
    }
}

/* All at once, while there is room for all: none is refused. */
TEST(tries_do_not_refuse_each_other)
{
    enum { N = 12 };
    CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(N, TIMEOUT);
    struct slot_user a[N];
    char id[N][8];
    for (size_t i = 0; i < N; i++)
        slot_user_open(&a[i], p, i, N);
    for (int round = 0; round < 2; round++) { /* the first one makes the nodes */
        for (size_t i = 0; i < N; i++) {
            snprintf(id[i], sizeof id[i], "m%zu", i);
            slot_user_begin_take(&a[i], 0, id[i], OWNER_TRY);
        }
        memnet_settle(p);
        for (size_t i = 0; i < N; i++) {
            assert_int_equal(a[i].err, CLAVE_OK);
            slot_user_give(&a[i], id[i], 0);
        }
    }
    for (size_t i = 0; i < N; i++)
        slot_user_close(&a[i]);
}

/* What an id owns already it gets again, from whatever client, also when no slot is free. */
TEST_CLEAN_NET(an_id_owns_one_slot, 3, TIMEOUT)
{
    CLOSED_BY(slot_user_close) struct slot_user a, b;
    slot_user_open(&a, p, 0, 2);
    slot_user_open(&b, p, 1, 2);
    slot_user_take(&a, "x", OWNER_FOREVER);
    slot_user_take(&b, "x", OWNER_TRY);
    assert_int_equal(b.err, CLAVE_OK);
    assert_false(b.taken);
    assert_int_equal(b.token, a.token);
    assert_int_equal(b.since, a.since);
    assert_string_equal(b.node, a.node);
    assert_string_equal(b.host, "host0");
    slot_user_set_limit(&a, 0);
    slot_user_take(&b, "x", OWNER_FOREVER);
    assert_int_equal(b.answers, 2);
    assert_false(b.taken);
    assert_int_equal(slot_user_owned(p), 1);
    /* Two that wait as one id get one. */
    slot_user_take(&a, "y", OWNER_FOREVER);
    slot_user_take(&b, "y", OWNER_FOREVER);
    slot_user_set_limit(&a, 5);
    assert_int_equal(a.answers, 2);
    assert_int_equal(b.answers, 3);
    assert_true(a.taken);
    assert_false(b.taken);
    assert_int_equal(a.token, b.token);
    assert_int_equal(slot_user_owned(p), 2);
}

/* ---- give and break ---------------------------------------------------------------------------
 */

TEST_NET(a_give_is_repeated_without_harm, 2, TIMEOUT)
{
    CLOSED_BY(slot_user_close) struct slot_user a;
    slot_user_open(&a, p, 0, 1);
    slot_user_give(&a, "x", 0); /* no node is there */
    assert_int_equal(a.give_err, CLAVE_OK);
    assert_int_equal(a.given, 0);
    slot_user_take(&a, "x", OWNER_FOREVER);
    int64_t old = a.token;
    slot_user_give(&a, "x", old);
    assert_int_equal(a.given, old);
    slot_user_give(&a, "x", 0);
    assert_int_equal(a.give_err, CLAVE_OK);
    assert_int_equal(a.given, 0);
    slot_user_take(&a, "x", OWNER_FOREVER);
    assert_true(a.token > old);
    slot_user_give(&a, "x", old);
    assert_int_equal(a.gives, 4);
    assert_int_equal(a.give_err, CLAVE_OK);
    assert_int_equal(a.given, 0);
    assert_int_equal(slot_user_owned(p), 1);
    slot_user_give(&a, "x", 0);
    assert_int_equal(a.given, a.token);
    assert_int_equal(slot_user_owned(p), 0);
    assert_int_equal(slot_user_give(&a, "", 0), CLAVE_EINVAL);
    assert_int_equal(slot_user_give(&a, "x", -1), CLAVE_EINVAL);
    assert_int_equal(a.gives, 5);
}

/* At whatever client they wait: their owner has said that it needs none. */
TEST_CLEAN_NET(a_give_ends_the_takes_of_its_id, 3, TIMEOUT)
{
    CLOSED_BY(slot_user_close) struct slot_user a, b, c;
    slot_user_open(&a, p, 0, 1);
    slot_user_open(&b, p, 1, 1);
    slot_user_open(&c, p, 2, 1);
    slot_user_take(&a, "z", OWNER_FOREVER);
    int64_t token = a.token;
    slot_user_take(&b, "y", OWNER_FOREVER);
    slot_user_take(&c, "y", OWNER_FOREVER);
    slot_user_give(&a, "y", token); /* begun after the take of this token */
    assert_int_equal(b.answers + c.answers, 0);
    slot_user_give(&a, "y", INT64_MAX);
    assert_int_equal(a.given, 0);
    memnet_advance(p, 2 * TIMEOUT); /* the first one looks at its place now and then */
    assert_int_equal(b.err, CLAVE_ECANCELED);
    assert_int_equal(c.err, CLAVE_ECANCELED);
    slot_user_give(&a, "z", 0);
    assert_int_equal(slot_user_owned(p), 0);
}

/* What a leader says that was deposed unawares is old: it can commit nothing. So a give is certain
 * when something was committed after its readings, on the same connection. */
TEST_CLEAN_NET(a_give_that_finds_nothing_is_proved_by_a_commit, 2, TIMEOUT)
{
    CLOSED_BY(slot_user_close) struct slot_user a, b;
    slot_user_open(&a, p, 0, 1);
    slot_user_open(&b, p, 1, 1);
    slot_user_give(&b, "b", 0); /* nor are there any slots */
    assert_int_equal(b.give_err, CLAVE_OK);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REQUEST, OP_MULTI, MEMNET_HOLD, 0});
    slot_user_give(&a, "b", 0);
    assert_int_equal(a.gives, 0);
    slot_user_take(&b, "b", OWNER_FOREVER);
    memnet_clear(p);
    memnet_cut(p, 0); /* it was not answered, and what has been read is worth nothing */
    memnet_advance(p, 2000);
    assert_int_equal(a.gives, 1);
    assert_int_equal(a.give_err, CLAVE_OK);
    assert_int_equal(a.given, b.token);
    assert_int_equal(slot_user_owned(p), 0);
}

/* A take was given up, and its id has given since: its transaction, on its way all the time, does
 * nothing. */
TEST_CLEAN_NET(a_take_of_before_a_give_takes_nothing_after_it, 2, TIMEOUT)
{
    struct slot_user a, b;
    slot_user_open(&a, p, 0, 1);
    slot_user_open(&b, p, 1, 1);
    slot_user_take(&b, "b", OWNER_FOREVER);
    slot_user_give(&b, "b", 0);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REQUEST, OP_MULTI, MEMNET_HOLD, 0});
    slot_user_take(&a, "m9", OWNER_FOREVER);
    slot_user_close(&a);
    assert_int_equal(a.err, CLAVE_ECONNLOSS);
    slot_user_give(&b, "m9", 0);
    assert_int_equal(b.give_err, CLAVE_OK);
    memnet_clear(p);
    memnet_advance(p, 2 * TIMEOUT);
    assert_int_equal(slot_user_owned(p), 0);
    slot_user_close(&b);
}

/* A give ends at its deadline; what it has sent then ends no slot that its id has been told since
 * that it owns, be it the same one. */
TEST(a_give_that_is_late_ends_nothing)
{
    for (int again = 0; again < 2; again++) {
        CLOSED_BY(memnet_freed) struct memnet *p = memnet_of(2, TIMEOUT);
        CLOSED_BY(slot_user_close) struct slot_user a, b;
        slot_user_open(&a, p, 0, 1);
        slot_user_open(&b, p, 1, 1);
        slot_user_take(&b, "m1", OWNER_FOREVER);
        memnet_rule(p, (struct memnet_rule){0, MEMNET_REQUEST, OP_MULTI, MEMNET_HOLD, 0});
        slot_user_give_by(&a, "m1", 1000);
        assert_int_equal(a.gives, 0);
        memnet_advance(p, 1000);
        assert_int_equal(a.gives, 1);
        assert_int_equal(clave_err_classify(a.give_err), CLAVE_CLASS_UNKNOWN);
        if (again)
            slot_user_give(&b, "m1", 0);
        slot_user_take(&b, "m1", OWNER_FOREVER);
        assert_int_equal(b.taken, again);
        memnet_clear(p);
        memnet_advance(p, 2 * TIMEOUT);
        assert_int_equal(slot_user_owned(p), 1);
        assert_int_equal(a.gives, 1);
    }
}

/* Likewise one whose deadline comes before it has found what to delete. */
TEST_NET(a_give_that_is_over_looks_for_nothing, 2, TIMEOUT)
{
    CLOSED_BY(slot_user_close) struct slot_user a, b;
    slot_user_open(&a, p, 0, 1);
    slot_user_open(&b, p, 1, 1);
    slot_user_take(&b, "m1", OWNER_FOREVER);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REQUEST, OP_SYNC, MEMNET_HOLD, 0});
    slot_user_give_by(&a, "m1", 1000);
    memnet_advance(p, 1000);
    assert_int_equal(a.give_err, CLAVE_ETIMEDOUT);
    memnet_clear(p);
    memnet_advance(p, 2 * TIMEOUT);
    assert_int_equal(slot_user_owned(p), 1);
}

/* Another process has taken for the id: it need not wait until it is the first. */
TEST_CLEAN_NET(a_take_that_waits_hears_that_its_id_owns, 4, TIMEOUT)
{
    CLOSED_BY(slot_user_close) struct slot_user z, w, y;
    slot_user_open(&z, p, 0, 1);
    slot_user_open(&w, p, 1, 1);
    slot_user_open(&y, p, 2, 1);
    slot_user_take(&z, "z", OWNER_FOREVER);
    slot_user_take(&w, "w", OWNER_FOREVER);
    slot_user_take(&y, "y", OWNER_FOREVER);
    memnet_reset_counts(p);
    assert_int_equal(memnet_create(p, 3, "/s/owners/slot-x"), CLAVE_OK);
    assert_int_equal(memnet_requests(p, 2), 0); /* of no other's */
    assert_int_equal(memnet_create(p, 3, "/s/owners/slot-y"), CLAVE_OK);
    assert_int_equal(y.answers, 1);
    assert_int_equal(y.err, CLAVE_OK);
    assert_false(y.taken);
    assert_int_equal(w.answers, 0);
    slot_user_give(&y, "y", y.token);
    assert_int_equal(y.given, y.token);
}

TEST_CLEAN_NET(a_break_is_recorded, 2, TIMEOUT)
{
    CLOSED_BY(slot_user_close) struct slot_user a, b;
    slot_user_open(&a, p, 0, 1);
    slot_user_open(&b, p, 1, 1);
    slot_user_take(&a, "x", OWNER_FOREVER);
    slot_user_take(&b, "y", OWNER_FOREVER);
    assert_int_equal(clave_async_slots_break(a.s, &(clave_slot){.id = "x", .reason = ""},
                                             CLAVE_NEVER, slot_user_on_gone, &a),
                     CLAVE_EINVAL);
    assert_int_equal(clave_async_slots_break(a.s,
                                             &(clave_slot){.id = "x", .by = "a\n", .reason = "b"},
                                             CLAVE_NEVER, slot_user_on_gone, &a),
                     CLAVE_EINVAL);
    int64_t token = a.token;
    for (int i = 0; i < 2; i++) { /* the node of the record is made, then set */
        assert_int_equal(
            clave_async_slots_break(
                a.s, &(clave_slot){.id = i ? "y" : "x", .by = i ? NULL : "op", .reason = "dead"},
                CLAVE_NEVER, slot_user_on_gone, &a),
            CLAVE_OK);
        memnet_settle(p);
        assert_int_equal(a.give_err, CLAVE_OK);
        assert_int_equal(a.given, i ? b.token : token);
        struct slot_view v = slot_user_list(p);
        assert_string_equal(v.broken, i ? "y host1 - dead" : "x host0 op dead");
        assert_int_equal(v.broken_token, a.given);
        assert_true(v.broken_since > 0);
    }
    assert_true(b.taken);
    /* An id that owns nothing: nothing is recorded. */
    clave_async_slots_break(a.s, &(clave_slot){.id = "x", .by = "op", .reason = "again"},
                            CLAVE_NEVER, slot_user_on_gone, &a);
    memnet_settle(p);
    assert_int_equal(a.given, 0);
    assert_string_equal(slot_user_list(p).broken, "y host1 - dead");
}

/* It takes room, is told to those who wait, and an operator may break it by its name. */
TEST_CLEAN_NET(what_is_no_slot_is_told_and_broken, 2, TIMEOUT)
{
    CLOSED_BY(slot_user_close) struct slot_user a;
    slot_user_open(&a, p, 0, 1);
    slot_user_set_limit(&a, 1);
    assert_int_equal(memnet_create(p, 1, "/s/owners/foo"), CLAVE_OK);
    assert_int_equal(memnet_create(p, 1, "/s/owners/foo/below"), CLAVE_OK);
    slot_user_take(&a, "a", OWNER_TRY);
    assert_int_equal(a.err, CLAVE_EBUSY);
    assert_string_equal(a.strange, "/s/owners/foo");
    slot_user_take(&a, "a", OWNER_FOREVER);
    assert_int_equal(a.answers, 1);
    slot_user_give(&a, "foo", 0); /* it is no slot of this id */
    assert_int_equal(a.given, 0);
    for (int empty = 0; empty < 2; empty++) {
        const clave_slot foo = {.id = "foo", .reason = "gone"};
        assert_int_equal(clave_async_slots_break(a.s, &foo, CLAVE_NEVER, slot_user_on_gone, &a),
                         CLAVE_OK);
        memnet_settle(p);
        assert_int_equal(a.give_err, empty ? CLAVE_OK : CLAVE_ENOTEMPTY);
        assert_int_equal(a.given != 0, empty);
        if (!empty)
            assert_int_equal(memnet_delete(p, 1, "/s/owners/foo/below"), CLAVE_OK);
    }
    assert_true(a.taken);
    assert_string_equal(slot_user_list(p).broken, "foo - - gone");
}

/* ---- the limit --------------------------------------------------------------------------------
 */

/* Neither text nor a number below 0 is a limit; four digits would be a number, and are text. */
TEST(a_limit_that_is_no_number_lets_nobody_in)
{
    static const char *const bad[] = {"3", "", "5000", "\xff\xff\xff\xff", "12345"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CLOSED_BY(memnet_freed) struct memnet *p = memnet_of(2, TIMEOUT);
        CLOSED_BY(slot_user_close) struct slot_user a;
        slot_user_open(&a, p, 0, 1);
        slot_user_set_limit(&a, 1);
        assert_int_equal(memnet_set(p, 1, "/s/limit", bad[i]), CLAVE_OK);
        slot_user_take(&a, "a", OWNER_TRY);
        assert_int_equal(a.err, CLAVE_EBUSY);
        assert_int_equal(a.limit, CLAVE_SLOTS_LIMIT_BAD);
        assert_int_equal(slot_user_list(p).limit, CLAVE_SLOTS_LIMIT_BAD);
        slot_user_take(&a, "a", OWNER_FOREVER);
        assert_int_equal(a.answers, 1);
        slot_user_set_limit(&a, 1);
        assert_true(a.taken);
    }
}

TEST(the_limit_is_followed)
{
    enum { N = 4 };
    CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(N, TIMEOUT);
    struct slot_user a[N];
    char id[8];
    for (size_t i = 0; i < N; i++)
        slot_user_open(&a[i], p, i, 0);
    slot_user_take(&a[0], "m0", OWNER_FOREVER);
    assert_int_equal(a[0].err, CLAVE_ENONODE); /* no limit is set */
    assert_int_equal(slot_user_set_limit(&a[0], (uint32_t)INT32_MAX + 1), CLAVE_EINVAL);
    assert_int_equal(slot_user_set_limit(&a[0], 0), CLAVE_OK);
    assert_int_equal(a[0].limit_err, CLAVE_OK);
    for (size_t i = 0; i < N; i++) {
        snprintf(id, sizeof id, "m%zu", i);
        slot_user_take(&a[i], id, OWNER_FOREVER);
    }
    assert_int_equal(slot_user_owned(p), 0);
    slot_user_set_limit(&a[3], 3);
    assert_true(a[0].taken && a[1].taken && a[2].taken && !a[3].taken);
    slot_user_set_limit(&a[0], 1);
    assert_int_equal(slot_user_owned(p), 3);
    slot_user_give(&a[0], "m0", 0);
    slot_user_give(&a[0], "m1", 0);
    assert_false(a[3].taken);
    assert_int_equal(slot_user_list(p).limit, 1);
    slot_user_give(&a[0], "m2", 0);
    assert_true(a[3].taken);
    for (size_t i = 0; i < N; i++)
        slot_user_close(&a[i]);
}

TEST_NET(a_missing_limit_is_made_of_the_seed, 2, TIMEOUT)
{
    CLOSED_BY(slot_user_close) struct slot_user a, b;
    slot_user_open(&a, p, 0, 3);
    slot_user_open(&b, p, 1, 5);
    struct slot_view none = slot_user_list(p);
    assert_int_equal(none.limit, -1);
    assert_int_equal(none.n, 0);
    slot_user_take(&a, "x", OWNER_FOREVER);
    slot_user_take(&b, "y", OWNER_FOREVER);
    assert_int_equal(slot_user_list(p).limit, 3);
    assert_int_equal(memnet_delete(p, 1, "/s/limit"), CLAVE_OK); /* made again */
    slot_user_take(&b, "z", OWNER_FOREVER);
    assert_true(b.taken);
    assert_int_equal(slot_user_list(p).limit, 5);
}

/* Nobody takes on the strength of a limit that is no longer there. */
TEST_CLEAN_NET(a_limit_that_goes_while_they_wait, 2, TIMEOUT)
{
    CLOSED_BY(slot_user_close) struct slot_user a;
    slot_user_open(&a, p, 0, 0);
    slot_user_set_limit(&a, 0);
    slot_user_take(&a, "x", OWNER_FOREVER);
    assert_int_equal(a.answers, 0);
    assert_int_equal(memnet_delete(p, 1, "/s/limit"), CLAVE_OK);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.err, CLAVE_ENONODE);
}

/* ---- the list ---------------------------------------------------------------------------------
 */

static void on_participants(clave_async_client *c, clave_err err, const clave_participant *list,
                            size_t n, void *arg)
{
    char *names = arg;
    (void)c;
    assert_int_equal(err, CLAVE_OK);
    for (size_t i = 0; i < n; i++)
        snprintf(names + strlen(names), 64 - strlen(names), "name=%s ", list[i].identity.name);
}

TEST_NET(the_list_has_owners_and_the_queue_those_who_wait, 2, TIMEOUT)
{
    CLOSED_BY(slot_user_close) struct slot_user a;
    char names[64] = "";
    slot_user_open(&a, p, 0, 2);
    slot_user_take(&a, "a", OWNER_FOREVER);
    slot_user_take(&a, "b", OWNER_FOREVER);
    assert_int_equal(slot_user_begin_take(&a, 7, "c", OWNER_FOREVER), CLAVE_OK);
    memnet_settle(p);
    assert_string_equal(slot_user_list(p).text, "a host0 test;b host0 test;");
    clave_async_participants(p->clients[1].c, "/s/queue", on_participants, names);
    memnet_settle(p);
    assert_non_null(strstr(names, "name=c"));
    /* What others put there takes room. */
    assert_int_equal(memnet_create(p, 1, "/s/owners/stranger"), CLAVE_OK);
    assert_string_equal(slot_user_list(p).text, "a host0 test;b host0 test;- - -;");
    slot_user_give(&a, "a", 0);
    assert_int_equal(a.answers, 2);
    slot_user_give(&a, "b", 0);
    assert_int_equal(a.answers, 3);
    struct slot_view v;
    assert_int_equal(clave_async_slots_list(p->clients[0].c, "s", slot_user_on_list, &v),
                     CLAVE_EPATH);
}

/* ---- grants -----------------------------------------------------------------------------------
 */

static void on_written(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    *(clave_err *)arg = res->err;
}

static clave_err write_x(struct memnet *p, clave_async_grant *g)
{
    clave_err err = CLAVE_EPROTO;
    assert_int_equal(clave_async_grant_set(g, "/x", "1", 1, -1, on_written, &err), CLAVE_OK);
    memnet_settle(p);
    memnet_advance(p, TIMEOUT);
    return err;
}

static clave_async_grant *grant_of(const struct slot_user *a)
{
    clave_async_grant *g;
    const clave_slot slot = {.node = a->node, .token = a->token};
    assert_int_equal(clave_async_slots_grant(a->s, &slot, &g), CLAVE_OK);
    return g;
}

TEST_NET(a_grant_writes_while_the_slot_is_owned, 2, TIMEOUT)
{
    struct slot_user a;
    clave_async_grant *none;
    assert_int_equal(memnet_create(p, 1, "/x"), CLAVE_OK);
    slot_user_open(&a, p, 0, 1);
    const clave_slot bad[] = {{0}, {.node = "/s/owners"}, {.node = "/s/queue/a"}, {.node = "x"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(clave_async_slots_grant(a.s, &bad[i], &none), CLAVE_EINVAL);
        assert_null(none);
    }
    slot_user_take(&a, "x", OWNER_FOREVER);
    clave_async_grant *g = grant_of(&a);
    assert_int_equal(clave_async_grant_token(g), a.token);
    assert_int_equal(clave_async_grant_session_id(g), 0);
    assert_int_equal(clave_async_grant_deadline(g), CLAVE_NEVER);
    assert_true(clave_async_grant_valid_for(g, p->now, 1000000));
    /* It has no deadline, so it cannot depend on its work. */
    assert_int_equal(clave_async_grant_depend(g, p->now, 1000), CLAVE_EINVAL);
    assert_int_equal(clave_async_grant_alive(g, p->now), CLAVE_OK);
    assert_int_equal(write_x(p, g), CLAVE_OK);
    /* A session that ends is no end of it: the outcome of the write is that of any other. */
    clave_err err = CLAVE_EPROTO;
    memnet_refuse(p, 0, true);
    memnet_settle(p);
    assert_int_equal(clave_async_grant_set(g, "/x", "2", 1, -1, on_written, &err), CLAVE_OK);
    memnet_advance(p, 4 * TIMEOUT);
    memnet_refuse(p, 0, false);
    memnet_advance(p, 2 * TIMEOUT);
    assert_int_not_equal(err, CLAVE_ELOST);
    assert_int_not_equal(err, CLAVE_EPROTO);
    assert_int_equal(write_x(p, g), CLAVE_OK);
    slot_user_give(&a, "x", 0);
    assert_int_equal(write_x(p, g), CLAVE_ELOST);
    slot_user_take(&a, "x", OWNER_FOREVER); /* a later one is not its own */
    assert_int_equal(write_x(p, g), CLAVE_ELOST);
    clave_async_grant *later = grant_of(&a);
    assert_int_equal(write_x(p, later), CLAVE_OK);
    slot_user_close(&a);
    assert_int_equal(write_x(p, later), CLAVE_OK); /* it outlives the object */
    clave_async_grant_free(g);
    clave_async_grant_free(later);
}

TEST_NET(options_are_checked, 1, TIMEOUT)
{
    clave_async_client *c = p->clients[0].c;
    clave_async_slots *s;
    static const clave_acl acl = {CLAVE_PERM_ALL, "world", "anyone"};
    enum { SIZE = sizeof(clave_slots_options) };
    static const clave_slots_options bad[] = {
        {.size = 1},
        {.size = SIZE, .limit = UINT32_MAX},
        {.size = SIZE, .acls = &acl},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(clave_async_slots_new(&s, c, "/s", &bad[i]), CLAVE_EINVAL);
        assert_null(s);
    }
    assert_int_equal(clave_async_slots_new(&s, c, "s", NULL), CLAVE_EPATH);
    struct slot_user a;
    slot_user_open(&a, p, 0, 1);
    assert_int_equal(slot_user_begin_take(&a, 1, "", OWNER_TRY), CLAVE_EINVAL);
    assert_int_equal(slot_user_begin_take(&a, 1, "a", OWNER_FOREVER), CLAVE_OK);
    assert_int_equal(slot_user_begin_take(&a, 1, "b", OWNER_FOREVER), CLAVE_EINVAL);
    assert_int_equal(clave_async_slots_cancel(a.s, 2), CLAVE_ENOTHELD);
    slot_user_close(&a);
    clave_async_slots_free(NULL);
}
