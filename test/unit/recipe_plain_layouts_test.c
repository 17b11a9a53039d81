/* The simple lock and the fair election of programs written by hand: in one queue with a program
 * written by hand, and with the promises of the mutex and the latch although the names say nothing.
 */
#include "lib/async_grants.h"
#include "lib/candidate.h"
#include "lib/each_fault.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

enum { TIMEOUT = 6000 };

static void open_lock(struct mutex_owner *s, struct memnet *p, size_t client)
{
    assert_int_equal(owner_open_simple(s, p, client, "/l", "lock_", NULL), CLAVE_OK);
}

static void open_candidate(struct candidate *s, struct memnet *p, size_t client)
{
    assert_int_equal(candidate_open_plain(s, p, client, "/election", "c_", NULL), CLAVE_OK);
    candidate_start(s);
}

/* What the hand-written program does: a plain create, and a delete. */
static void on_made(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    snprintf(arg, 64, "%s", res->err == CLAVE_OK ? res->path : "");
}

static void make_by_hand(struct memnet *p, size_t client, const char *path, char made[64])
{
    clave_create_options o = {.size = sizeof o, .mode = CLAVE_EPHEMERAL_SEQUENTIAL};
    made[0] = '\0';
    clave_async_create(p->clients[client].c, path, NULL, 0, &o, on_made, made);
    memnet_settle(p);
}

/* ---- the simple lock --------------------------------------------------------------------- */

TEST_CLEAN_NET(it_is_one_queue_with_a_program_written_by_hand, 3, TIMEOUT)
{
    CLOSED_BY(owner_close) struct mutex_owner a;
    char before[64], behind[64], names[4][96];
    open_lock(&a, p, 0);
    owner_acquire(&a, OWNER_FOREVER);
    assert_int_equal(memnet_list(p, 1, "/l", names, 4), 1);
    assert_string_equal(names[0], "lock_0000000000");
    owner_release(&a);
    make_by_hand(p, 1, "/l/lock_", before);
    assert_string_equal(before, "/l/lock_0000000001");
    owner_acquire(&a, OWNER_FOREVER);
    make_by_hand(p, 2, "/l/lock_", behind);
    assert_false(owner_holds(&a));
    assert_int_equal(a.ahead, 1);
    assert_string_equal(a.predecessor, before);
    assert_int_equal(memnet_delete(p, 1, before), CLAVE_OK);
    assert_true(owner_holds(&a));
    assert_string_equal(owner_grant(&a).node, "/l/lock_0000000002");
    assert_int_equal(memnet_delete(p, 2, behind), CLAVE_OK);
}

/* Every kind of message of acquires and releases by two owners of one lock, whose nodes nothing
 * but their order tells apart, and a third process. */
TEST_EACH_LOSS(any_message_may_be_lost_once, 2, TIMEOUT, 4)
{
    struct mutex_owner a[3];
    open_lock(&a[0], p, 0);
    owner_share(&a[1], &a[0], 1);
    open_lock(&a[2], p, 1);
    memnet_rule(p, loss);
    for (size_t n = 0; n < 3; n++)
        owner_begin_acquire(&a[n], OWNER_FOREVER);
    for (unsigned turns = 0; turns < 3; turns++) {
        memnet_advance(p, 3000);
        size_t holder = owner_holds(&a[0]) ? 0 : owner_holds(&a[1]) ? 1 : 2;
        assert_int_equal(owner_holds(&a[0]) + owner_holds(&a[1]) + owner_holds(&a[2]), 1);
        assert_int_equal(memnet_list(p, 1, "/l", NULL, 0), 3 - turns);
        owner_release(&a[holder]);
    }
    memnet_advance(p, 3000);
    for (size_t n = 0; n < 3; n++)
        assert_int_equal(a[n].answers, 1);
    memnet_assert_no_leftovers(p);
    owner_close(&a[0]);
    owner_close(&a[2]);
}

TEST_CLEAN_NET(a_node_of_the_old_session_is_never_adopted, 2, TIMEOUT)
{
    CLOSED_BY(owner_close) struct mutex_owner a;
    char names[4][96];
    open_lock(&a, p, 0);
    owner_acquire(&a, OWNER_FOREVER);
    owner_release(&a);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_CREATE2, MEMNET_LOSE, 0});
    p->clients[0].refused = true; /* it cannot come back before its session is over */
    owner_begin_acquire(&a, OWNER_FOREVER);
    memnet_settle(p);
    int64_t old = clave_async_client_session_id(p->clients[0].c);
    while (!memnet_saw(p, 0, CLAVE_STATE_LOST))
        memnet_advance(p, 10);
    assert_int_equal(memnet_list(p, 1, "/l", names, 4), 1); /* the old one's stands still */
    p->clients[0].refused = false;
    memnet_advance(p, 100);
    assert_false(owner_holds(&a));
    memnet_advance(p, 3 * TIMEOUT);
    assert_true(owner_holds(&a));
    assert_int_not_equal(owner_grant(&a).session_id, old);
    assert_int_equal(memnet_list(p, 1, "/l", names, 4), 1);
}

/* The queue's path was removed and made anew while we were away, and its numbers began anew: what
 * stands under our name is another client's. */
TEST_NET(a_node_of_our_name_that_is_anothers_is_left_alone, 3, TIMEOUT)
{
    CLOSED_BY(owner_close) struct mutex_owner a;
    char first[64], names[4][96];
    open_lock(&a, p, 0);
    assert_int_equal(memnet_create(p, 1, "/l"), CLAVE_OK);
    make_by_hand(p, 1, "/l/lock_", first);
    owner_acquire(&a, OWNER_FOREVER);
    memnet_refuse(p, 0, true);
    assert_int_equal(memnet_delete(p, 1, first), CLAVE_OK);
    assert_int_equal(memnet_delete(p, 1, "/l/lock_0000000001"), CLAVE_OK);
    assert_int_equal(memnet_delete(p, 1, "/l"), CLAVE_OK);
    assert_int_equal(memnet_create(p, 1, "/l"), CLAVE_OK);
    for (int i = 0; i < 2; i++)
        make_by_hand(p, 1 + (size_t)i, "/l/lock_", names[i]);
    assert_string_equal(names[1], "/l/lock_0000000001");
    memnet_refuse(p, 0, false);
    memnet_advance(p, 1000);
    assert_int_equal(memnet_list(p, 1, "/l", names, 4), 3);
    assert_false(owner_holds(&a));
    assert_int_equal(a.ahead, 2);
}

TEST_CLEAN_NET(max_hold_ends_the_hold_and_the_release_says_so, 2, TIMEOUT)
{
    CLOSED_BY(owner_close) struct mutex_owner a, b;
    clave_mutex_options o = {.size = sizeof o, .max_hold_ms = 500};
    assert_int_equal(owner_open_simple(&a, p, 0, "/l", "lock_", &o), CLAVE_OK);
    open_lock(&b, p, 1);
    owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&b, OWNER_FOREVER);
    memnet_advance(p, 499);
    assert_true(owner_holds(&a));
    memnet_advance(p, 1);
    assert_false(owner_holds(&a));
    assert_int_equal(a.lost, 1);
    assert_int_equal(a.why, CLAVE_EMAXHOLD);
    assert_true(owner_holds(&b));
    assert_int_equal(owner_release(&a), CLAVE_EMAXHOLD);
}

TEST_CLEAN_NET(a_holder_that_was_stopped_does_no_harm, 2, TIMEOUT)
{
    CLOSED_BY(owner_close) struct mutex_owner a, b;
    open_lock(&a, p, 0);
    open_lock(&b, p, 1);
    assert_int_equal(memnet_create(p, 1, "/data"), CLAVE_OK);
    owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&b, OWNER_FOREVER);
    memnet_freeze(p, 0, true);
    memnet_advance(p, 3 * TIMEOUT);
    assert_true(owner_holds(&b));
    assert_false(mutex_valid_for(a.m, 0, p->now, 0));
    assert_int_equal(owner_write(&a, "/data", "x"), CLAVE_OK);
    memnet_freeze(p, 0, false);
    memnet_advance(p, 5000);
    assert_int_equal(a.lost, 1);
    assert_int_equal(a.written, CLAVE_ELOST);
}

TEST_CLEAN_NET(acquires_that_are_given_up_leave_nothing, 2, TIMEOUT)
{
    CLOSED_BY(owner_close) struct mutex_owner a, b;
    open_lock(&a, p, 0);
    open_lock(&b, p, 1);
    owner_acquire(&a, OWNER_FOREVER);
    for (int i = 0; i < 1000; i++) {
        owner_acquire(&b, 1);
        memnet_advance(p, 1);
        owner_acquire(&b, OWNER_TRY);
        owner_begin_acquire(&b, OWNER_FOREVER);
        if (i % 2)
            memnet_settle(p);
        if (i % 10 == 0)
            memnet_cut(p, 1);
        assert_int_equal(clave_async_mutex_cancel(b.m, 0), CLAVE_OK);
        memnet_advance(p, i % 10 == 0 ? 1000 : 0);
    }
    assert_int_equal(b.answers, 3000);
    assert_int_equal(memnet_list(p, 0, "/l", NULL, 0), 1);
    assert_true(memnet_stats(p).watches <= 1); /* the holder's own */
}

TEST(prefixes_are_checked)
{
    static const char *const wrong[] = {"", "0", "12", "-1", "a/b"};
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_of(1, TIMEOUT);
    clave_async_client *c = p->clients[0].c;
    clave_async_mutex *m;
    clave_async_latch *l;
    clave_async_rwlock *rw;
    clave_mutex_options mo = {.size = sizeof mo};
    clave_latch_options lo = {.size = sizeof lo, .layout = CLAVE_LATCH_FAIR};
    assert_int_equal(clave_async_latch_new(&l, c, "/l", &lo), CLAVE_EINVAL); /* no prefix */
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mo.simple_prefix = lo.prefix = wrong[i];
        assert_int_equal(clave_async_mutex_new(&m, c, "/l", &mo), CLAVE_EINVAL);
        assert_null(m);
        assert_int_equal(clave_async_latch_new(&l, c, "/l", &lo), CLAVE_EINVAL);
        assert_null(l);
    }
    mo.simple_prefix = lo.prefix = "n";
    assert_int_equal(clave_async_mutex_new(&m, c, "l", &mo), CLAVE_EPATH);
    assert_int_equal(clave_async_rwlock_new(&rw, c, "/l", &mo), CLAVE_EINVAL);
    lo.id = "a";
    lo.priority = 1;
    assert_int_equal(clave_async_latch_new(&l, c, "/l", &lo), CLAVE_EINVAL);
    lo.priority = 0;
    lo.layout = CLAVE_LATCH_CURATOR; /* has none */
    assert_int_equal(clave_async_latch_new(&l, c, "/l", &lo), CLAVE_EINVAL);
}

/* ---- the fair election -------------------------------------------------------------------- */

TEST_CLEAN_NET(candidates_lead_in_turn_with_one_written_by_hand, 3, TIMEOUT)
{
    CLOSED_BY(candidate_close) struct candidate a, b;
    char hand[64];
    open_candidate(&a, p, 0);
    make_by_hand(p, 2, "/election/c_", hand);
    open_candidate(&b, p, 1);
    assert_true(candidate_leads(&a));
    assert_string_equal(candidate_grant(&a).node, "/election/c_0000000000");
    assert_int_equal(b.ahead, 2);
    candidate_leave(&a, CLAVE_CLOSE_SILENT);
    assert_false(candidate_leads(&b));
    assert_int_equal(b.ahead, 1);
    assert_int_equal(memnet_delete(p, 2, hand), CLAVE_OK);
    assert_true(candidate_leads(&b));
}

TEST(a_failover_costs_the_same_with_any_number)
{
    uint64_t cost[2];
    for (size_t n = 0; n < 2; n++) {
        size_t candidates = n ? 20 : 5;
        CLOSED_BY(memnet_left_clean) struct memnet *p = memnet_of(candidates, TIMEOUT);
        struct candidate s[20];
        for (size_t i = 0; i < candidates; i++)
            open_candidate(&s[i], p, i);
        memnet_reset_counts(p);
        candidate_leave(&s[0], CLAVE_CLOSE_SILENT);
        assert_true(candidate_leads(&s[1]));
        cost[n] = 0;
        for (size_t i = 0; i < candidates; i++)
            cost[n] += memnet_requests(p, i);
        for (size_t i = 0; i < candidates; i++)
            candidate_close(&s[i]);
    }
    assert_int_equal(cost[0], cost[1]);
    assert_true(cost[0] <= 4);
}

/* ---- memory ------------------------------------------------------------------------------ */

TEST_EACH_ALLOCATION(every_allocation_may_fail_once, 20)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_on(mem, 2, TIMEOUT);
    struct mutex_owner a = {0};
    memnet_settle(p);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_CREATE2, MEMNET_LOSE, 1});
    failmem_arm(mem, which, 1);
    clave_err err = owner_open_simple(&a, p, 0, "/l", "lock_", NULL);
    bool open = err == CLAVE_OK;
    if (open)
        err = owner_acquire(&a, 10000);
    assert_true(err == CLAVE_OK || err == CLAVE_ENOMEM);
    memnet_advance(p, 3000);
    failmem_disarm(mem);
    assert_int_equal(a.answers, err == CLAVE_OK);
    bool holds = open && owner_holds(&a);
    assert_int_equal(holds, a.answers && a.err == CLAVE_OK);
    assert_int_equal(memnet_list(p, 1, "/l", NULL, 0), holds);
    if (open)
        owner_close(&a);
    memnet_advance(p, 3000);
    assert_int_equal(memnet_stats(p).ephemerals, 0);
}
