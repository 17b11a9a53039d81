/* Slots: never more owners than the limit, in the order of arrival; a slot outlives the session
 * that took it; whatever is lost, an id has one slot or none, and its taker learns which. */
#include "lib/slot_user.h"
#include "lib/unit.h"

enum { USERS = 3 };

struct slots_world {
    struct memnet *p;
    struct slot_user u[USERS];
};

static void slots_world_open(struct slots_world *w, uint32_t limit)
{
    w->p = memnet_new(&(struct memnet_options){.clients = USERS + 1});
    memnet_settle(w->p);
    for (size_t i = 0; i < USERS; i++)
        slot_user_open(&w->u[i], w->p, i, limit);
}

static void slots_world_close(struct slots_world *w)
{
    for (size_t i = 0; i < USERS; i++)
        slot_user_close(&w->u[i]);
    memnet_assert_no_leftovers(w->p);
    memnet_free(w->p);
}

#define TEST_SLOTS(name, limit)                                                                    \
    static void name##_in(struct slots_world *w);                                                  \
    TEST(name)                                                                                     \
    {                                                                                              \
        CLOSED_BY(slots_world_close) struct slots_world w;                                         \
        slots_world_open(&w, limit);                                                               \
        name##_in(&w);                                                                             \
    }                                                                                              \
    static void name##_in(struct slots_world *w)

/* ---- taking and giving ----------------------------------------------------------------------- */

TEST_SLOTS(an_id_owns_a_slot_until_it_gives_it_back, 1)
{
    slot_user_take(&w->u[0], "a", OWNER_FOREVER);
    assert_int_equal(w->u[0].err, CLAVE_OK);
    assert_true(w->u[0].taken);
    memnet_kill_session(w->p, 0);
    memnet_settle(w->p);
    slot_user_take(&w->u[1], "b", OWNER_TRY);
    assert_int_equal(w->u[1].err, CLAVE_EBUSY);
    slot_user_give(&w->u[2], "a", 0); /* by anybody who knows the id */
    assert_true(w->u[2].given > 0);
    slot_user_take(&w->u[1], "b", OWNER_TRY);
    assert_int_equal(w->u[1].err, CLAVE_OK);
    assert_true(w->u[1].token > w->u[0].token);
}

TEST_SLOTS(taking_what_is_owned_is_success_and_says_so, 1)
{
    slot_user_take(&w->u[0], "a", OWNER_FOREVER);
    slot_user_take(&w->u[1], "a", OWNER_TRY);
    assert_int_equal(w->u[1].err, CLAVE_OK);
    assert_false(w->u[1].taken);
    assert_int_equal(w->u[1].token, w->u[0].token);
    assert_int_equal(w->u[1].since, w->u[0].since);
}

TEST_SLOTS(giving_what_is_not_owned_is_success_and_says_so, 1)
{
    slot_user_give(&w->u[0], "a", 0); /* there is no path yet */
    assert_int_equal(w->u[0].give_err, CLAVE_OK);
    assert_int_equal(w->u[0].given, 0);
    slot_user_take(&w->u[0], "a", OWNER_FOREVER);
    slot_user_give(&w->u[0], "a", 0);
    assert_true(w->u[0].given > 0);
    slot_user_give(&w->u[0], "a", 0);
    assert_int_equal(w->u[0].give_err, CLAVE_OK);
    assert_int_equal(w->u[0].given, 0);
}

TEST_SLOTS(a_give_by_token_never_gives_a_later_take, 1)
{
    slot_user_take(&w->u[0], "a", OWNER_FOREVER);
    int64_t first = w->u[0].token;
    slot_user_give(&w->u[0], "a", first);
    slot_user_take(&w->u[0], "a", OWNER_FOREVER);
    assert_true(w->u[0].taken && w->u[0].token > first);
    slot_user_give(&w->u[0], "a", first);
    assert_int_equal(w->u[0].give_err, CLAVE_OK);
    assert_int_equal(w->u[0].given, 0);
    assert_int_equal(slot_user_list(w->p).n, 1);
}

/* The place, the transaction, the give: three commits. */
TEST_SLOTS(a_take_is_two_commits_and_a_give_one, 2)
{
    slot_user_take(&w->u[0], "a", OWNER_FOREVER); /* makes the nodes */
    memnet_reset_counts(w->p);
    slot_user_take(&w->u[0], "b", OWNER_FOREVER);
    const uint64_t *requests = w->p->clients[0].requests;
    assert_int_equal(requests[OP_CREATE2] + requests[OP_MULTI] + requests[OP_DELETE], 2);
    assert_int_equal(memnet_requests(w->p, 0), 6); /* a sync, and three reads */
    slot_user_give(&w->u[0], "b", 0);
    assert_int_equal(requests[OP_CREATE2] + requests[OP_MULTI] + requests[OP_DELETE], 3);
}

/* ---- waiting --------------------------------------------------------------------------------- */

TEST_SLOTS(those_who_wait_come_in_their_order, 1)
{
    slot_user_take(&w->u[0], "a", OWNER_FOREVER);
    slot_user_take(&w->u[1], "b", OWNER_FOREVER);
    slot_user_take(&w->u[2], "c", OWNER_FOREVER);
    assert_int_equal(w->u[1].answers + w->u[2].answers, 0);
    assert_int_equal(w->u[1].ahead, 0);
    assert_int_equal(w->u[2].ahead, 1);
    slot_user_give(&w->u[0], "a", 0);
    assert_int_equal(w->u[1].err, CLAVE_OK);
    assert_true(w->u[1].taken);
    assert_int_equal(w->u[2].answers, 0);
    slot_user_give(&w->u[0], "b", 0);
    assert_true(w->u[2].answers == 1 && w->u[2].taken);
}

/* One event a hand-over, and nobody but the first asks anything. */
TEST_SLOTS(a_hand_over_is_no_herd, 1)
{
    slot_user_take(&w->u[0], "a", OWNER_FOREVER);
    slot_user_take(&w->u[1], "b", OWNER_FOREVER);
    slot_user_take(&w->u[2], "c", OWNER_FOREVER);
    memnet_reset_counts(w->p);
    uint64_t events = w->p->clients[1].events, others = w->p->clients[2].events;
    memnet_rule(w->p, (struct memnet_rule){1, MEMNET_REQUEST, OP_MULTI, MEMNET_HOLD, 0});
    slot_user_give(&w->u[0], "a", 0);
    assert_int_equal(w->p->clients[1].events - events, 1);
    assert_int_equal(w->p->clients[2].events - others, 0);
    assert_int_equal(memnet_requests(w->p, 2), 0);
    memnet_clear(w->p);
    memnet_settle(w->p);
    assert_true(w->u[1].taken);
}

TEST_SLOTS(it_waits_until_its_deadline, 1)
{
    slot_user_take(&w->u[0], "a", OWNER_FOREVER);
    slot_user_take(&w->u[1], "b", 3000); /* first, and it is full */
    slot_user_take(&w->u[2], "c", 2000); /* behind it */
    memnet_advance(w->p, 2000);
    assert_int_equal(w->u[2].err, CLAVE_EBUSY);
    assert_int_equal(w->u[1].answers, 0);
    memnet_advance(w->p, 1000);
    assert_int_equal(w->u[1].err, CLAVE_EBUSY);
    assert_int_equal(memnet_list(w->p, USERS, "/s/queue", NULL, 0), 0);
}

TEST_SLOTS(a_try_never_waits, 1)
{
    memnet_refuse(w->p, 1, true);
    slot_user_take(&w->u[1], "b", OWNER_TRY);
    memnet_advance(w->p, 100);
    assert_int_equal(w->u[1].answers, 1);
    assert_int_equal(clave_err_classify(w->u[1].err), CLAVE_CLASS_RETRY);
    memnet_refuse(w->p, 1, false);
    memnet_advance(w->p, 3000);
    slot_user_take(&w->u[0], "a", OWNER_TRY);
    assert_true(w->u[0].taken);
    slot_user_take(&w->u[1], "b", OWNER_TRY);
    assert_int_equal(w->u[1].err, CLAVE_EBUSY);
}

TEST_SLOTS(a_cancelled_take_leaves_the_queue, 1)
{
    slot_user_take(&w->u[0], "a", OWNER_FOREVER);
    slot_user_take(&w->u[1], "b", OWNER_FOREVER);
    slot_user_take(&w->u[2], "c", OWNER_FOREVER);
    assert_int_equal(clave_async_slots_cancel(w->u[1].s, 0), CLAVE_OK);
    assert_int_equal(clave_async_slots_cancel(w->u[1].s, 0), CLAVE_ENOTHELD);
    memnet_settle(w->p);
    assert_int_equal(w->u[1].err, CLAVE_ECANCELED);
    slot_user_give(&w->u[0], "a", 0);
    assert_true(w->u[2].taken);
}

TEST_SLOTS(a_cancel_is_too_late_for_a_transaction_that_was_sent, 1)
{
    memnet_rule(w->p, (struct memnet_rule){0, MEMNET_REPLY, OP_MULTI, MEMNET_HOLD, 0});
    slot_user_take(&w->u[0], "a", OWNER_FOREVER);
    assert_int_equal(clave_async_slots_cancel(w->u[0].s, 0), CLAVE_OK);
    memnet_settle(w->p);
    assert_int_equal(w->u[0].answers, 0);
    memnet_clear(w->p);
    memnet_settle(w->p);
    assert_int_equal(w->u[0].err, CLAVE_OK);
}

/* ---- the limit ------------------------------------------------------------------------------- */

TEST_SLOTS(without_a_limit_nobody_takes, 0)
{
    slot_user_take(&w->u[0], "a", OWNER_FOREVER);
    assert_int_equal(w->u[0].err, CLAVE_ENONODE);
    assert_int_equal(slot_user_list(w->p).limit, -1);
    slot_user_set_limit(&w->u[0], 2);
    assert_int_equal(w->u[0].limit_err, CLAVE_OK);
    slot_user_take(&w->u[0], "a", OWNER_FOREVER);
    assert_int_equal(w->u[0].err, CLAVE_OK);
    assert_int_equal(slot_user_list(w->p).limit, 2);
}

TEST_SLOTS(a_limit_that_rises_admits_those_who_wait, 1)
{
    slot_user_set_limit(&w->u[0], 0);
    slot_user_take(&w->u[0], "a", OWNER_FOREVER);
    slot_user_take(&w->u[1], "b", OWNER_FOREVER);
    slot_user_take(&w->u[2], "c", OWNER_FOREVER);
    assert_int_equal(w->u[0].answers, 0);
    slot_user_set_limit(&w->u[0], 2);
    assert_true(w->u[0].taken && w->u[1].taken);
    assert_int_equal(w->u[2].answers, 0);
}

TEST_SLOTS(a_limit_that_falls_takes_nobodys_slot, 2)
{
    slot_user_take(&w->u[0], "a", OWNER_FOREVER);
    slot_user_take(&w->u[1], "b", OWNER_FOREVER);
    slot_user_set_limit(&w->u[0], 1);
    assert_int_equal(slot_user_list(w->p).n, 2);
    slot_user_take(&w->u[2], "c", OWNER_FOREVER);
    slot_user_give(&w->u[0], "a", 0);
    assert_int_equal(w->u[2].answers, 0); /* one is owned, and one is the limit */
    slot_user_give(&w->u[0], "b", 0);
    assert_true(w->u[2].taken);
}

/* The limit falls between the count and the transaction. */
TEST_SLOTS(a_take_counts_again_when_the_limit_has_changed, 1)
{
    slot_user_set_limit(&w->u[2], 1);
    memnet_rule(w->p, (struct memnet_rule){0, MEMNET_REQUEST, OP_MULTI, MEMNET_HOLD, 0});
    slot_user_take(&w->u[0], "a", 1000);
    slot_user_set_limit(&w->u[2], 0);
    memnet_clear(w->p);
    memnet_settle(w->p);
    assert_int_equal(w->u[0].answers, 0);
    memnet_advance(w->p, 1000);
    assert_int_equal(w->u[0].err, CLAVE_EBUSY);
}

/* ---- breaking -------------------------------------------------------------------------------- */

TEST_SLOTS(a_break_is_recorded, 1)
{
    slot_user_take(&w->u[0], "host 1/ü", OWNER_FOREVER);
    slot_user_take(&w->u[1], "b", OWNER_FOREVER);
    slot_user_break(&w->u[2], "host 1/ü", "its disk burned: 100%");
    assert_int_equal(w->u[2].give_err, CLAVE_OK);
    assert_true(w->u[2].given > 0);
    assert_true(w->u[1].taken);
    assert_int_equal(slot_user_list(w->p).n, 1);
    assert_string_equal(slot_user_list(w->p).broken, "host 1/ü host0 op its disk burned: 100%");
    slot_user_break(&w->u[2], "nobody", "x");
    assert_int_equal(w->u[2].give_err, CLAVE_OK);
    assert_int_equal(w->u[2].given, 0);
}

/* ---- what is lost ---------------------------------------------------------------------------- */

/* The transaction is done, and its answer lost. */
TEST_SLOTS(a_lost_answer_is_found_out, 1)
{
    memnet_rule(w->p, (struct memnet_rule){0, MEMNET_REPLY, OP_MULTI, MEMNET_LOSE, 0});
    slot_user_take(&w->u[0], "a", OWNER_FOREVER);
    memnet_advance(w->p, 3000);
    assert_int_equal(w->u[0].err, CLAVE_OK);
    assert_true(w->u[0].taken);
    assert_int_equal(slot_user_list(w->p).n, 1);
    assert_int_equal(slot_user_list(w->p).newest, w->u[0].token);
}

/* It never arrived. */
TEST_SLOTS(a_lost_transaction_is_repeated, 1)
{
    memnet_rule(w->p, (struct memnet_rule){0, MEMNET_REQUEST, OP_MULTI, MEMNET_LOSE, 0});
    slot_user_take(&w->u[0], "a", OWNER_FOREVER);
    memnet_advance(w->p, 3000);
    assert_int_equal(w->u[0].err, CLAVE_OK);
    assert_true(w->u[0].taken);
    assert_int_equal(slot_user_list(w->p).n, 1);
}

/* Nobody can know: the deadline passes while there is no connection. */
TEST_SLOTS(an_outcome_that_stays_unknown_is_said, 1)
{
    memnet_rule(w->p, (struct memnet_rule){0, MEMNET_REPLY, OP_MULTI, MEMNET_HOLD, 0});
    slot_user_take(&w->u[0], "a", 2000);
    memnet_refuse(w->p, 0, true);
    memnet_clear(w->p);
    memnet_advance(w->p, 2500);
    assert_int_equal(w->u[0].answers, 1);
    assert_int_equal(clave_err_classify(w->u[0].err), CLAVE_CLASS_UNKNOWN);
    assert_int_equal(slot_user_list(w->p).n, 1); /* it was taken */
    memnet_refuse(w->p, 0, false);
    memnet_advance(w->p, 3000);
}

/* The session ends while the transaction is on its way: it dies with the place. */
TEST_SLOTS(a_late_transaction_does_nothing, 1)
{
    memnet_rule(w->p, (struct memnet_rule){0, MEMNET_REQUEST, OP_MULTI, MEMNET_HOLD, 0});
    slot_user_take(&w->u[0], "a", OWNER_FOREVER);
    slot_user_take(&w->u[1], "b", OWNER_FOREVER);
    char names[2][96];
    assert_int_equal(memnet_list(w->p, USERS, "/s/queue", names, 2), 2);
    for (size_t i = 0; i < 2; i++) { /* as an operator does, or the end of the session */
        char path[128];
        snprintf(path, sizeof path, "/s/queue/%s", names[i]);
        if (strcmp(names[i] + strlen(names[i]) - 10, names[1 - i] + strlen(names[1 - i]) - 10) < 0)
            assert_int_equal(memnet_delete(w->p, USERS, path), CLAVE_OK);
    }
    assert_true(w->u[1].taken);
    memnet_clear(w->p);
    memnet_settle(w->p);
    assert_int_equal(slot_user_list(w->p).n, 1);
    assert_string_equal(slot_user_list(w->p).text, "b host1 test;");
    memnet_advance(w->p, 20000); /* it looks at its place now and then */
    assert_int_equal(w->u[0].answers, 1);
    assert_int_equal(w->u[0].err, CLAVE_ECANCELED);
    slot_user_give(&w->u[2], "b", 0);
    memnet_advance(w->p, 1000);
    assert_int_equal(slot_user_list(w->p).n, 0);
}

TEST_SLOTS(a_session_that_ends_in_the_queue_stands_in_line_again, 1)
{
    slot_user_take(&w->u[0], "a", OWNER_FOREVER);
    slot_user_take(&w->u[1], "b", OWNER_FOREVER);
    slot_user_take(&w->u[2], "c", OWNER_FOREVER);
    memnet_kill_session(w->p, 1);
    memnet_advance(w->p, 3000);
    slot_user_give(&w->u[0], "a", 0);
    assert_true(w->u[2].taken); /* it was first by then */
    slot_user_give(&w->u[0], "c", 0);
    memnet_advance(w->p, 1000);
    assert_true(w->u[1].taken);
}

TEST(a_give_whose_answer_is_lost_is_repeated)
{
    for (int reply = 0; reply < 2; reply++) {
        CLOSED_BY(slots_world_close) struct slots_world w;
        slots_world_open(&w, 1);
        slot_user_take(&w.u[0], "a", OWNER_FOREVER);
        memnet_rule(w.p, (struct memnet_rule){0, reply ? MEMNET_REPLY : MEMNET_REQUEST, OP_MULTI,
                                              MEMNET_LOSE, 0});
        slot_user_give(&w.u[0], "a", 0);
        memnet_advance(w.p, 3000);
        assert_int_equal(w.u[0].give_err, CLAVE_OK);
        assert_true(w.u[0].given > 0);
        assert_int_equal(slot_user_list(w.p).n, 0);
    }
}

TEST_SLOTS(slots_outlive_the_server, 1)
{
    slot_user_take(&w->u[0], "a", OWNER_FOREVER);
    slot_user_take(&w->u[1], "b", OWNER_FOREVER);
    memnet_stop_server(w->p);
    memnet_advance(w->p, 1000);
    memnet_start_server(w->p);
    memnet_advance(w->p, 5000);
    assert_int_equal(w->u[1].answers, 0);
    slot_user_give(&w->u[2], "a", w->u[0].token);
    memnet_advance(w->p, 1000);
    assert_true(w->u[1].taken && w->u[1].token > w->u[0].token);
}

/* ---- arguments, and the end -------------------------------------------------------------------
 */

TEST(what_is_not_valid_is_refused)
{
    struct slots_world w;
    slots_world_open(&w, 1);
    char longest[CLAVE_SLOT_ID_MAX + 2];
    memset(longest, 'x', sizeof longest);
    longest[CLAVE_SLOT_ID_MAX + 1] = '\0';
    const char *bad[] = {"", "a\nb", "\xff", longest};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(slot_user_begin_take(&w.u[0], 0, bad[i], 0), CLAVE_EINVAL);
        assert_int_equal(clave_async_slots_give(w.u[0].s, bad[i], 0, CLAVE_NEVER, NULL, NULL),
                         CLAVE_EINVAL);
    }
    assert_int_equal(clave_async_slots_break(w.u[0].s, &(clave_slot){.id = "a", .reason = ""},
                                             CLAVE_NEVER, NULL, NULL),
                     CLAVE_EINVAL);
    assert_int_equal(clave_async_slots_set_limit(w.u[0].s, UINT32_MAX, NULL, NULL), CLAVE_EINVAL);
    clave_async_slots *s;
    clave_slots_options o = CLAVE_SLOTS_OPTIONS_INIT;
    assert_int_equal(clave_async_slots_new(&s, w.p->clients[0].c, "s", &o), CLAVE_EPATH);
    slot_user_take(&w.u[0], longest + 1, OWNER_FOREVER);
    assert_int_equal(w.u[0].err, CLAVE_OK);
    assert_int_equal(slot_user_begin_take(&w.u[1], 5, "b", OWNER_FOREVER), CLAVE_OK);
    assert_int_equal(slot_user_begin_take(&w.u[1], 5, "c", OWNER_FOREVER), CLAVE_EINVAL);
    slots_world_close(&w);
    assert_int_equal(w.u[1].err, CLAVE_ECANCELED);
}

/* In each of its steps: the callback runs once, and nothing is left behind. */
TEST(freed_in_any_step_it_leaves_nothing)
{
    const int ops[] = {OP_SYNC, OP_GET_DATA, OP_GET_CHILDREN2, OP_CREATE2, OP_MULTI, OP_EXISTS};
    for (size_t i = 0; i < 2 * sizeof ops / sizeof *ops; i++) {
        CLOSED_BY(slots_world_close) struct slots_world w;
        slots_world_open(&w, 1);
        memnet_rule(w.p, (struct memnet_rule){0, i % 2 ? MEMNET_REPLY : MEMNET_REQUEST, ops[i / 2],
                                              MEMNET_HOLD, 0});
        slot_user_take(&w.u[0], "a", OWNER_FOREVER);
        bool pending = w.u[0].answers == 0;
        slot_user_close(&w.u[0]);
        memnet_clear(w.p);
        memnet_settle(w.p);
        assert_int_equal(w.u[0].answers, 1);
        clave_err gone = ops[i / 2] == OP_MULTI ? CLAVE_ECONNLOSS : CLAVE_ECANCELED;
        assert_int_equal(w.u[0].err, pending ? gone : CLAVE_OK); /* what was sent may be done */
    }
}

TEST_SLOTS(a_closed_client_answers_each_take, 1)
{
    slot_user_take(&w->u[0], "a", OWNER_FOREVER);
    slot_user_take(&w->u[1], "b", OWNER_FOREVER);
    slot_user_take(&w->u[2], "c", OWNER_FOREVER);
    for (size_t i = 1; i < USERS; i++)
        clave_async_client_close(w->p->clients[i].c, w->p->now);
    memnet_advance(w->p, 100);
    for (size_t i = 1; i < USERS; i++) {
        assert_int_equal(w->u[i].answers, 1);
        assert_int_equal(w->u[i].err, CLAVE_ECLOSED);
        assert_int_equal(slot_user_begin_take(&w->u[i], 0, "x", OWNER_FOREVER), CLAVE_ECLOSED);
    }
}

/* A random mix: the limit holds at every step, and the order of arrival is kept. */
TEST_SLOTS(a_random_mix_keeps_the_limit, 2)
{
    srand(11);
    const char *ids[] = {"a", "b", "c", "d", "e"};
    unsigned asked[USERS] = {0};
    unsigned taken = 0;
    for (int step = 0; step < 1200; step++) {
        size_t i = (size_t)rand() % USERS;
        const char *id = ids[(size_t)rand() % 5];
        if (rand() % 50 == 0) {
            memnet_cut(w->p, i);
        } else if (rand() % 2 && w->u[i].answers == asked[i]) {
            slot_user_take(&w->u[i], id, rand() % 2 ? OWNER_TRY : 500);
            asked[i]++;
        } else {
            slot_user_give(&w->u[i], id, 0);
        }
        memnet_advance(w->p, rand() % 200);
        taken += w->u[i].taken;
        assert_true(memnet_list(w->p, USERS, "/s/owners", NULL, 0) <= 2);
    }
    assert_true(taken > 100);
}
