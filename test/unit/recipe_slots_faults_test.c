/* Slots when sessions, servers, messages and memory go: never above the limit, every callback once,
 * what was taken is said to be, and nobody waits who has gone. */
#include "lib/each_fault.h"
#include "lib/slot_user.h"
#include "lib/unit.h"

enum { TIMEOUT = 6000 };

/* The nodes are there, and b owns the only slot if it is full. */
static void open_two(struct memnet *p, struct slot_user *a, struct slot_user *b, bool full)
{
    slot_user_open(a, p, 0, 1);
    slot_user_open(b, p, 1, 1);
    slot_user_take(b, "b", OWNER_FOREVER);
    assert_true(b->taken);
    if (!full)
        slot_user_give(b, "b", 0);
}

static void close_two(struct slot_user *a, struct slot_user *b)
{
    slot_user_close(a);
    slot_user_close(b);
    memnet_assert_no_leftovers(a->p);
    memnet_free(a->p);
}

static struct memnet_rule rule(enum memnet_direction way, int op, enum memnet_action fate)
{
    return (struct memnet_rule){.client = 0, .way = way, .op = op, .fate = fate};
}

/* ---- deadlines and cancels ---------------------------------------------------------------------
 */

TEST(a_deadline_ends_the_wait)
{
    struct memnet *p = memnet_of(3, TIMEOUT);
    struct slot_user a, b, c;
    open_two(p, &a, &b, true);
    slot_user_open(&c, p, 2, 1);
    slot_user_take(&a, "a", 2000); /* first, and full */
    slot_user_take(&c, "c", 1000); /* behind it */
    memnet_advance(p, 1000);
    assert_int_equal(c.answers, 1);
    assert_int_equal(c.err, CLAVE_EBUSY);
    assert_int_equal(a.answers, 0);
    memnet_advance(p, 1000);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.err, CLAVE_EBUSY);
    slot_user_give(&b, "b", 0);
    memnet_advance(p, 1000);
    assert_int_equal(slot_user_owned(p), 0);
    slot_user_close(&c);
    close_two(&a, &b);
}

TEST(a_deadline_while_there_is_no_server)
{
    struct memnet *p = memnet_of(2, TIMEOUT);
    struct slot_user a, b;
    open_two(p, &a, &b, false);
    memnet_refuse(p, 0, true);
    memnet_settle(p);
    slot_user_take(&a, "a", 2000);
    memnet_advance(p, 2000);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.err, CLAVE_EUNREACHABLE);
    memnet_refuse(p, 0, false);
    memnet_advance(p, 2 * TIMEOUT);
    assert_int_equal(slot_user_owned(p), 0);
    close_two(&a, &b);
}

/* The transaction was sent: its answer decides, though it comes after the deadline. */
TEST(a_deadline_while_the_transaction_is_under_way)
{
    struct memnet *p = memnet_of(2, TIMEOUT);
    struct slot_user a, b;
    open_two(p, &a, &b, false);
    memnet_rule(p, rule(MEMNET_REPLY, OP_MULTI, MEMNET_HOLD));
    slot_user_take(&a, "a", 500);
    memnet_advance(p, 1000);
    assert_int_equal(a.answers, 0);
    assert_int_equal(slot_user_owned(p), 1);
    memnet_clear(p);
    memnet_settle(p);
    assert_int_equal(a.answers, 1);
    assert_true(a.taken);
    close_two(&a, &b);
}

/* The deadline has passed and the answer is lost: it may have been taken, and no more time is taken
 * to find out. */
TEST(a_doubt_after_the_deadline_is_told)
{
    for (int applied = 0; applied < 2; applied++) {
        struct memnet *p = memnet_of(2, TIMEOUT);
        struct slot_user a, b;
        open_two(p, &a, &b, false);
        memnet_rule(p, rule(applied ? MEMNET_REPLY : MEMNET_REQUEST, OP_MULTI, MEMNET_HOLD));
        slot_user_take(&a, "a", 500);
        memnet_advance(p, 1000);
        memnet_refuse(p, 0, true);
        memnet_settle(p);
        assert_int_equal(a.answers, 1);
        assert_int_equal(clave_err_classify(a.err), CLAVE_CLASS_UNKNOWN);
        memnet_clear(p);
        memnet_refuse(p, 0, false);
        memnet_advance(p, 3000);
        assert_int_equal(slot_user_owned(p), applied);
        assert_int_equal(a.answers, 1);
        close_two(&a, &b);
    }
}

/* The same with a doubt that is not resolved before the deadline, and one of a try. */
TEST(a_doubt_at_the_deadline_is_told)
{
    for (int trying = 0; trying < 2; trying++) {
        struct memnet *p = memnet_of(2, TIMEOUT);
        struct slot_user a, b;
        open_two(p, &a, &b, false);
        memnet_rule(p, rule(MEMNET_REPLY, OP_MULTI, MEMNET_HOLD));
        slot_user_take(&a, "a", trying ? OWNER_TRY : 1000);
        memnet_refuse(p, 0, true);
        memnet_settle(p);
        assert_int_equal(a.answers, trying);
        memnet_advance(p, 1000);
        assert_int_equal(a.answers, 1);
        assert_int_equal(a.err, CLAVE_ECONNLOSS);
        memnet_clear(p);
        memnet_refuse(p, 0, false);
        memnet_advance(p, 3000);
        assert_int_equal(slot_user_owned(p), 1);
        close_two(&a, &b);
    }
}

/* With any request of the take held back: it ends at once, but for the transaction. */
TEST(a_take_is_cancelled_wherever_it_stands)
{
    static const struct {
        int op;
        bool full, first_time;
    } at[] = {
        {OP_SYNC, false, false},    {OP_GET_DATA, false, false}, {OP_GET_CHILDREN2, false, false},
        {OP_CREATE2, false, false}, {OP_MULTI, false, false},    {MEMNET_NONE, true, false},
        {OP_CREATE2, false, true},  {OP_GET_DATA, true, false},
    };
    for (size_t i = 0; i < 2 * sizeof at / sizeof *at; i++) {
        struct memnet *p = memnet_of(2, TIMEOUT);
        struct slot_user a, b;
        enum memnet_direction way = i % 2 ? MEMNET_REPLY : MEMNET_REQUEST;
        if (at[i / 2].first_time) {
            slot_user_open(&a, p, 0, 1);
            slot_user_open(&b, p, 1, 1);
        } else {
            open_two(p, &a, &b, at[i / 2].full);
        }
        memnet_rule(p, rule(way, at[i / 2].op, MEMNET_HOLD));
        slot_user_take(&a, "a", OWNER_FOREVER);
        assert_int_equal(a.answers, 0);
        assert_int_equal(clave_async_slots_cancel(a.s, 0), CLAVE_OK);
        assert_int_equal(a.answers, 0); /* not inside the call */
        memnet_settle(p);
        bool sent = at[i / 2].op == OP_MULTI;
        assert_int_equal(a.answers, !sent);
        memnet_clear(p);
        memnet_advance(p, 2000);
        assert_int_equal(a.answers, 1);
        assert_int_equal(a.err, sent ? CLAVE_OK : CLAVE_ECANCELED);
        assert_int_equal(slot_user_owned(p), at[i / 2].full || sent);
        assert_int_equal(clave_async_slots_cancel(a.s, 0), CLAVE_ENOTHELD);
        close_two(&a, &b);
    }
}

TEST(a_cancelled_one_lets_the_next_take)
{
    struct memnet *p = memnet_of(3, TIMEOUT);
    struct slot_user a, b, c;
    open_two(p, &a, &b, true);
    slot_user_open(&c, p, 2, 1);
    slot_user_take(&a, "a", OWNER_FOREVER);
    slot_user_take(&c, "c", OWNER_FOREVER);
    clave_async_slots_cancel(a.s, 0);
    memnet_settle(p);
    slot_user_give(&b, "b", 0);
    assert_true(c.taken);
    slot_user_close(&c);
    close_two(&a, &b);
}

/* ---- lost answers ------------------------------------------------------------------------------
 */

TEST(a_lost_answer_is_looked_up)
{
    for (int applied = 0; applied < 2; applied++) {
        struct memnet *p = memnet_of(2, TIMEOUT);
        struct slot_user a, b;
        open_two(p, &a, &b, false);
        memnet_rule(p, rule(applied ? MEMNET_REPLY : MEMNET_REQUEST, OP_MULTI, MEMNET_LOSE));
        slot_user_take(&a, "a", OWNER_FOREVER);
        memnet_advance(p, 3000);
        assert_int_equal(a.answers, 1);
        assert_true(a.taken);
        assert_string_equal(a.host, "host0");
        assert_true(a.since > 0);
        assert_int_equal(slot_user_owned(p), 1);
        assert_int_equal(slot_user_give(&a, "a", a.token), CLAVE_OK);
        assert_int_equal(a.given, a.token);
        close_two(&a, &b);
    }
}

/* The session ends in between, and its place: what was sent before does nothing afterwards. */
TEST(a_session_that_ends_is_survived)
{
    for (int applied = 0; applied < 2; applied++) {
        struct memnet *p = memnet_of(2, TIMEOUT);
        struct slot_user a, b;
        open_two(p, &a, &b, false);
        memnet_rule(p, rule(applied ? MEMNET_REPLY : MEMNET_REQUEST, OP_MULTI, MEMNET_HOLD));
        slot_user_take(&a, "a", OWNER_FOREVER);
        memnet_kill_session(p, 0);
        memnet_clear(p);
        memnet_advance(p, 2 * TIMEOUT);
        assert_int_equal(a.answers, 1);
        assert_int_equal(a.err, CLAVE_OK);
        assert_true(a.taken);
        assert_int_equal(slot_user_owned(p), 1);
        close_two(&a, &b);
    }
}

TEST(waiting_goes_on_in_a_new_session)
{
    struct memnet *p = memnet_of(3, TIMEOUT);
    struct slot_user a, b, c;
    open_two(p, &a, &b, true);
    slot_user_open(&c, p, 2, 1);
    slot_user_take(&a, "a", OWNER_FOREVER);
    slot_user_take(&c, "c", OWNER_FOREVER);
    memnet_kill_session(p, 0);
    memnet_advance(p, 2 * TIMEOUT);
    memnet_kill_session(p, 2);
    memnet_advance(p, 2 * TIMEOUT);
    assert_int_equal(a.answers + c.answers, 0);
    memnet_stop_server(p);
    memnet_advance(p, 1000);
    memnet_start_server(p);
    memnet_advance(p, 3000);
    slot_user_give(&b, "b", 0);
    assert_true(a.taken);
    slot_user_give(&b, "a", 0);
    assert_true(c.taken);
    slot_user_close(&c);
    close_two(&a, &b);
}

/* One round trip of this client alone; stops before a request of this kind. */
static void trip(struct memnet *p, size_t client, int stop)
{
    int next;
    while ((next = memnet_next(p, client, MEMNET_REQUEST)) != MEMNET_NONE && next != stop)
        memnet_pass(p, client, MEMNET_REQUEST);
    while (memnet_next(p, client, MEMNET_REPLY) != MEMNET_NONE)
        memnet_pass(p, client, MEMNET_REPLY);
}

/* A's place is made anew in another session, with the queue, and its answer overtakes those of a
 * count, which then says nothing about the places before it: C's is there, and about to take. */
TEST(a_new_place_waits_for_those_before_it)
{
    struct memnet *p = memnet_of(3, TIMEOUT);
    struct slot_user a, b, c;
    open_two(p, &c, &b, true);
    slot_user_open(&a, p, 2, 1);
    slot_user_take(&c, "c", OWNER_FOREVER);
    slot_user_take(&a, "a", OWNER_FOREVER);
    memnet_freeze(p, 2, true);
    memnet_expire(p, 2);
    assert_int_equal(clave_async_slots_cancel(c.s, 0), CLAVE_OK);
    slot_user_give(&b, "b", 0);
    assert_int_equal(memnet_delete(p, 1, "/s/queue"), CLAVE_OK);
    memnet_freeze(p, 2, false);
    memnet_sever(p, 2);
    memnet_connect(p, 2);
    trip(p, 2, MEMNET_NONE);
    slot_user_begin_take(&c, 0, "c", OWNER_FOREVER);
    for (int i = 0; i < 10; i++)
        trip(p, 0, OP_MULTI);
    assert_int_equal(memnet_next(p, 0, MEMNET_REQUEST), OP_MULTI);
    for (int i = 0; i < 10; i++)
        trip(p, 2, MEMNET_NONE);
    assert_int_equal(a.answers, 0);
    memnet_settle(p);
    assert_true(c.taken);
    memnet_advance(p, 1000);
    assert_int_equal(a.answers, 0);
    slot_user_close(&a);
    close_two(&c, &b);
}

/* Somebody deletes the place of the first one, and so ends its take. */
TEST(a_place_that_is_deleted_ends_its_take)
{
    struct memnet *p = memnet_of(2, TIMEOUT);
    struct slot_user a, b;
    char names[2][96], path[128];
    open_two(p, &a, &b, true);
    slot_user_take(&a, "a", OWNER_FOREVER);
    memnet_advance(p, 2 * TIMEOUT); /* it looks at its place now and then */
    assert_int_equal(memnet_list(p, 1, "/s/queue", names, 2), 1);
    snprintf(path, sizeof path, "/s/queue/%s", names[0]);
    assert_int_equal(memnet_delete(p, 1, path), CLAVE_OK);
    memnet_advance(p, 1000);
    assert_int_equal(memnet_list(p, 1, "/s/queue", names, 2), 0);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.err, CLAVE_ECANCELED);
    close_two(&a, &b);
}

/* Nothing is done on the strength of an old reading: the version of the owners says so. */
TEST(two_takes_of_one_reading_are_one)
{
    struct memnet *p = memnet_of(2, TIMEOUT);
    struct slot_user a, b;
    open_two(p, &a, &b, false);
    memnet_rule(p, rule(MEMNET_REQUEST, OP_MULTI, MEMNET_HOLD));
    slot_user_take(&a, "a", OWNER_FOREVER);
    /* As another client would whose place was before. */
    assert_int_equal(memnet_create(p, 1, "/s/owners/x"), CLAVE_OK);
    assert_int_equal(memnet_set(p, 1, "/s/owners", ""), CLAVE_OK);
    memnet_clear(p);
    memnet_settle(p);
    assert_int_equal(a.answers, 0);
    assert_int_equal(slot_user_owned(p), 1);
    assert_int_equal(memnet_delete(p, 1, "/s/owners/x"), CLAVE_OK);
    assert_true(a.taken);
    close_two(&a, &b);
}

TEST(a_limit_that_changes_under_the_transaction_counts)
{
    struct memnet *p = memnet_of(2, TIMEOUT);
    struct slot_user a, b;
    open_two(p, &a, &b, false);
    memnet_rule(p, rule(MEMNET_REQUEST, OP_MULTI, MEMNET_HOLD));
    slot_user_take(&a, "a", OWNER_FOREVER);
    slot_user_set_limit(&b, 0);
    memnet_clear(p);
    memnet_settle(p);
    assert_int_equal(a.answers, 0);
    assert_int_equal(slot_user_owned(p), 0);
    slot_user_set_limit(&b, 1);
    assert_true(a.taken);
    close_two(&a, &b);
}

/* Meanwhile the id gives elsewhere and takes again. What it took is not given back, as that may be
 * newer than the give. Nor does a give without a token say that it gave all that the id owned: its
 * delete may have failed, and what it meant is then what the id owns now. */
TEST(a_give_whose_answer_is_lost_is_repeated)
{
    static const struct {
        bool applied, elsewhere, by_token;
        clave_err err;
        bool stays;
    } rows[] = {
        {false, false, false, CLAVE_OK, false},      {true, false, false, CLAVE_OK, false},
        {true, true, true, CLAVE_OK, true},          {true, true, false, CLAVE_ECONNLOSS, true},
        {false, true, false, CLAVE_ECONNLOSS, true}, {false, true, true, CLAVE_OK, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct memnet *p = memnet_of(2, TIMEOUT);
        struct slot_user a, b;
        open_two(p, &a, &b, false);
        slot_user_take(&a, "a", OWNER_FOREVER);
        int64_t token = a.token;
        memnet_rule(p,
                    rule(rows[i].applied ? MEMNET_REPLY : MEMNET_REQUEST, OP_MULTI, MEMNET_LOSE));
        slot_user_give(&a, "a", rows[i].by_token ? token : 0);
        assert_int_equal(slot_user_owned(p), !rows[i].applied);
        if (rows[i].elsewhere) {
            slot_user_give(&b, "a", 0);
            slot_user_take(&b, "a", OWNER_FOREVER);
        }
        memnet_advance(p, 3000);
        assert_int_equal(a.gives, 1);
        assert_int_equal(a.give_err, rows[i].err);
        assert_int_equal(a.given, rows[i].err == CLAVE_OK ? token : 0);
        assert_int_equal(slot_user_owned(p), rows[i].stays);
        close_two(&a, &b);
    }
}

/* Any message of A's or B's, or its answer, is lost once. */
TEST_EACH_LOSS(any_message_may_be_lost_once, 2, TIMEOUT, 5)
{
    struct slot_user a, b;
    slot_user_open(&a, p, 0, 1);
    slot_user_open(&b, p, 1, 1);
    memnet_rule(p, loss);
    slot_user_take(&a, "a", OWNER_FOREVER);
    memnet_advance(p, 3000);
    assert_true(a.taken);
    slot_user_take(&b, "b", OWNER_FOREVER);
    memnet_advance(p, 3000);
    assert_int_equal(b.answers, 0);
    slot_user_give(&a, "a", a.token);
    memnet_advance(p, 3000);
    assert_int_equal(a.gives, 1);
    assert_int_equal(a.give_err, CLAVE_OK);
    assert_int_equal(b.answers, 1);
    assert_true(b.taken);
    assert_int_equal(slot_user_owned(p), 1);
    slot_user_close(&a);
    slot_user_close(&b);
    memnet_assert_no_leftovers(p);
}

/* ---- ends --------------------------------------------------------------------------------------
 */

TEST(free_cancels_what_is_pending)
{
    static const int ops[] = {OP_SYNC, OP_GET_DATA, OP_CREATE2, OP_MULTI, MEMNET_NONE};
    for (size_t i = 0; i < 2 * sizeof ops / sizeof *ops; i++) {
        struct memnet *p = memnet_of(2, TIMEOUT);
        struct slot_user a, b;
        open_two(p, &a, &b, ops[i / 2] == MEMNET_NONE);
        memnet_rule(p, rule(i % 2 ? MEMNET_REPLY : MEMNET_REQUEST, ops[i / 2], MEMNET_HOLD));
        slot_user_take(&a, "a", OWNER_FOREVER);
        slot_user_begin_take(&a, 1, "c", OWNER_FOREVER);
        clave_async_slots_free(a.s);
        a.s = NULL;
        assert_int_equal(a.answers, 0);
        memnet_settle(p);
        assert_int_equal(a.answers, 2);
        assert_int_equal(a.err, CLAVE_ECANCELED);
        memnet_clear(p);
        memnet_advance(p, 2000);
        close_two(&a, &b);
    }
}

/* The client is closed, or freed: everything pending is told so. */
TEST(a_client_that_ends_ends_all)
{
    static const int ops[] = {OP_SYNC, OP_GET_DATA, OP_CREATE2, OP_MULTI, MEMNET_NONE};
    for (size_t i = 0; i < 4 * sizeof ops / sizeof *ops; i++) {
        CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(2, TIMEOUT);
        struct slot_user a, b;
        int op = ops[i / 4];
        open_two(p, &a, &b, op == MEMNET_NONE);
        memnet_rule(p, rule(i % 2 ? MEMNET_REPLY : MEMNET_REQUEST, op, MEMNET_HOLD));
        slot_user_take(&a, "a", OWNER_FOREVER);
        slot_user_begin_take(&a, 1, "c", OWNER_FOREVER);
        slot_user_give(&a, "x", 0);
        slot_user_set_limit(&a, 1);
        if (i % 4 < 2) {
            clave_async_client_abandon(p->clients[0].c, p->now);
            memnet_settle(p);
            assert_int_equal(slot_user_begin_take(&a, 2, "a", OWNER_TRY), CLAVE_ECLOSED);
            assert_int_equal(slot_user_give(&a, "a", 0), CLAVE_ECLOSED);
            assert_int_equal(slot_user_set_limit(&a, 2), CLAVE_ECLOSED);
        } else {
            memnet_close(p, 0);
        }
        assert_int_equal(a.answers, 2);
        assert_true(a.err == CLAVE_ECLOSED || op == OP_MULTI);
        assert_int_equal(a.gives, 1);
        assert_int_equal(a.limits, 1);
        memnet_clear(p);
        slot_user_close(&a);
        slot_user_close(&b);
        memnet_advance(p, 2 * TIMEOUT);
    }
}

/* Closed after the answer to a give was lost, before it is repeated. */
TEST(a_give_that_pauses_is_told_of_the_end)
{
    struct memnet *p = memnet_of(2, TIMEOUT);
    struct slot_user a, b;
    open_two(p, &a, &b, false);
    slot_user_take(&a, "a", OWNER_FOREVER);
    memnet_rule(p, rule(MEMNET_REPLY, OP_MULTI, MEMNET_LOSE));
    slot_user_give(&a, "a", 0);
    assert_int_equal(a.gives, 0);
    clave_async_client_close(p->clients[0].c, p->now);
    memnet_settle(p);
    assert_int_equal(a.gives, 1);
    assert_int_equal(a.give_err, CLAVE_ECONNLOSS);
    close_two(&a, &b);
}

/* Freed while a give whose delete may have been done proves what it read: the outcome is unknown,
 * and no slot comes with it. */
TEST(an_unknown_give_names_no_slot)
{
    struct memnet *p = memnet_of(2, TIMEOUT);
    struct slot_user a, b;
    open_two(p, &a, &b, false);
    slot_user_take(&a, "a", OWNER_FOREVER);
    memnet_rule(p, rule(MEMNET_REPLY, OP_MULTI, MEMNET_LOSE));
    slot_user_give(&a, "a", 0);
    memnet_rule(p, rule(MEMNET_REPLY, OP_SYNC, MEMNET_HOLD));
    memnet_advance(p, 3000);
    assert_int_equal(a.gives, 0);
    assert_int_equal(slot_user_owned(p), 0);
    clave_async_slots_free(a.s);
    a.s = NULL;
    memnet_settle(p);
    assert_int_equal(a.gives, 1);
    assert_int_equal(a.give_err, CLAVE_ECONNLOSS);
    assert_int_equal(a.given, 0);
    memnet_clear(p);
    memnet_advance(p, 2000);
    close_two(&a, &b);
}

/* ---- memory ------------------------------------------------------------------------------------
 */

static void on_list(clave_async_client *c, clave_err err, const clave_slots_view *view, void *arg)
{
    (void)c;
    assert_int_equal(err == CLAVE_OK, view != NULL);
    ++*(unsigned *)arg;
}

/* All calls, one after the other; each that was accepted answers once. */
static void use_all(struct memnet *p, struct slot_user *a)
{
    unsigned lists = 0, gives = 0, limits = 0, takes = 0;
    static const char *const ids[] = {"a", "b", "b"};
    limits += slot_user_set_limit(a, 1) == CLAVE_OK;
    memnet_advance(p, 1000);
    for (size_t i = 0; i < 3; i++) { /* owned, not in time, owned already or taken */
        clave_err err = slot_user_take(a, ids[i], 3000);
        assert_true(err == CLAVE_OK || err == CLAVE_ENOMEM);
        takes += err == CLAVE_OK;
        memnet_advance(p, 4000);
        if (i == 1)
            gives += slot_user_give(a, "a", 0) == CLAVE_OK;
        memnet_advance(p, 5000);
    }
    bool owns = takes > 0 && a->err == CLAVE_OK;
    a->give_err = CLAVE_ENOMEM; /* unless it is begun */
    bool lists_ok = clave_async_slots_list(p->clients[0].c, "/s", on_list, &lists) == CLAVE_OK;
    gives += clave_async_slots_break(a->s, &(clave_slot){.id = "b", .by = "op", .reason = "why"},
                                     CLAVE_NEVER, slot_user_on_gone, a) == CLAVE_OK;
    memnet_advance(p, 5000);
    assert_int_equal(lists, lists_ok);
    assert_int_equal(a->answers, takes);
    assert_int_equal(a->gives, gives);
    assert_int_equal(a->limits, limits);
    /* What was said to be owned was. */
    if (owns && strcmp(a->id, "b") == 0 && a->give_err == CLAVE_OK)
        assert_int_equal(a->given, a->token);
}

TEST_EACH_ALLOCATION(every_allocation_may_fail_once, 100)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_on(mem, 2, TIMEOUT);
    struct slot_user a = {.p = p};
    memnet_settle(p);
    failmem_arm(mem, which, 1);
    const clave_slots_options o = {.size = sizeof o, .limit = 1};
    clave_err err = clave_async_slots_new(&a.s, p->clients[0].c, "/s", &o);
    assert_true(err == CLAVE_OK || err == CLAVE_ENOMEM);
    if (err == CLAVE_OK) {
        use_all(p, &a);
        slot_user_close(&a);
    }
    memnet_advance(p, 3000);
    failmem_disarm(mem);
    assert_int_equal(memnet_stats(p).ephemerals, 0);
}
