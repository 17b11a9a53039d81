/* Owners of one mutex that share a place in the queue: handed over without the network, in
 * order, bounded, and with nothing lost when the place is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/failmem.h"
#include "lib/mutex_owner.h"

enum { TIMEOUT = 6000, OWNERS = 6 };

static const clave_mutex_options shared = {.size = sizeof shared, .share_turns = 3};

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

/* Owners 0 to OWNERS - 1 of one mutex; the first hears the events of all. */
static void open_all(struct seat s[OWNERS], struct pair *p, const clave_mutex_options *o)
{
    assert_int_equal(seat_open(&s[0], p, 0, "/l", o), CLAVE_OK);
    for (uint64_t i = 1; i < OWNERS; i++)
        seat_share(&s[i], &s[0], i);
}

static int holder(const struct seat s[OWNERS])
{
    int found = -1;
    for (int i = 0; i < OWNERS; i++)
        if (seat_holds(&s[i])) {
            assert_int_equal(found, -1);
            found = i;
        }
    return found;
}

/* ---- handing over ---------------------------------------------------------------------- */

static void a_hand_over_costs_nothing(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct seat s[OWNERS];
    open_all(s, p, &shared);
    for (int i = 0; i < 4; i++)
        seat_acquire(&s[i], SEAT_EVER);
    assert_int_equal(seat_list(p, 0, "/l", NULL, 0), 1);
    int64_t token = seat_grant(&s[0]).token;
    pair_reset_counts(p);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(holder(s), i);
        assert_int_equal(clave_async_mutex_release(s[i].m, s[i].owner, NULL, NULL), CLAVE_OK);
        assert_int_equal(s[i + 1].answers, 0); /* never inside the call */
        pair_settle(p);
        assert_int_equal(s[i + 1].answers, 1);
        assert_int_equal(s[i + 1].err, CLAVE_OK);
        assert_int_equal(seat_grant(&s[i + 1]).token, token);
    }
    assert_int_equal(pair_requests(p, 0), 0);
    assert_int_equal(s[0].held, 4);
    assert_int_equal(seat_release(&s[3]), CLAVE_OK);
    assert_no_leftovers(p);
    seat_close(&s[0]);
    pair_free(p);
}

/* After so many turns another process is let in, and who waits here comes behind it. */
static void other_processes_are_not_kept_out(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seat s[OWNERS], other;
    open_all(s, p, &shared);
    seat_open(&other, p, 1, "/l", NULL);
    for (int i = 0; i < OWNERS; i++)
        seat_acquire(&s[i], SEAT_EVER);
    seat_acquire(&other, SEAT_EVER);
    for (int i = 0; i < 4; i++) { /* the first, and three more turns */
        assert_int_equal(holder(s), i);
        assert_false(seat_holds(&other));
        seat_release(&s[i]);
    }
    assert_int_equal(holder(s), -1);
    assert_true(seat_holds(&other));
    int64_t token = seat_grant(&other).token;
    seat_release(&other);
    assert_int_equal(holder(s), 4);
    assert_true(seat_grant(&s[4]).token > token);
    seat_release(&s[4]);
    assert_int_equal(holder(s), 5);
    seat_close(&s[0]);
    seat_close(&other);
    assert_no_leftovers(p);
    pair_free(p);
}

static void it_is_reentrant_for_each_owner(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct seat s[OWNERS];
    open_all(s, p, &shared);
    seat_acquire(&s[0], SEAT_EVER);
    seat_acquire(&s[0], SEAT_EVER);
    seat_acquire(&s[1], SEAT_EVER);
    assert_int_equal(seat_ask(&s[1], SEAT_EVER), CLAVE_EINVAL);
    seat_release(&s[0]);
    assert_int_equal(holder(s), 0);
    /* With a callback: the hold is over, though the node stands. */
    assert_int_equal(clave_async_mutex_release(s[0].m, 0, NULL, NULL), CLAVE_OK);
    /* It holds, but is not told yet: nothing to give back, and too late to cancel. */
    assert_int_equal(clave_async_mutex_release(s[1].m, 1, NULL, NULL), CLAVE_ENOTHELD);
    assert_int_equal(clave_async_mutex_cancel(s[1].m, 1), CLAVE_OK);
    assert_int_equal(seat_ask(&s[1], SEAT_EVER), CLAVE_EINVAL);
    pair_settle(p);
    assert_int_equal(seat_acquire(&s[1], SEAT_EVER), CLAVE_OK);
    assert_int_equal(seat_grant(&s[1]).count, 2);
    seat_acquire(&s[0], SEAT_EVER);
    seat_release(&s[1]);
    assert_int_equal(seat_release_sure(&s[1]), CLAVE_OK);
    assert_int_equal(s[1].departures, 1);
    assert_int_equal(s[1].left, CLAVE_OK);
    assert_int_equal(holder(s), 0);
    seat_close(&s[0]);
    assert_no_leftovers(p);
    pair_free(p);
}

/* ---- giving up --------------------------------------------------------------------------- */

static void each_has_its_own_deadline(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seat s[OWNERS], other;
    open_all(s, p, &shared);
    seat_open(&other, p, 1, "/l", NULL);
    seat_acquire(&other, SEAT_EVER);
    seat_acquire(&s[0], 1000); /* the host of the place */
    seat_acquire(&s[1], 500);
    seat_acquire(&s[2], SEAT_EVER);
    seat_acquire(&s[3], SEAT_TRY);
    assert_int_equal(s[3].err, CLAVE_EBUSY);
    pair_advance(p, 500);
    assert_int_equal(s[1].err, CLAVE_EBUSY);
    assert_int_equal(s[1].answers, 1);
    assert_int_equal(s[0].answers, 0);
    pair_reset_counts(p);
    pair_advance(p, 500);
    assert_int_equal(s[0].answers, 1);
    assert_int_equal(s[0].err, CLAVE_EBUSY);
    /* The place stands, for the next. */
    assert_int_equal(p->end[0].requests[OP_DELETE], 0);
    assert_int_equal(seat_list(p, 1, "/l", NULL, 0), 2);
    seat_release(&other);
    assert_int_equal(holder(s), 2);
    seat_release(&s[2]);
    /* The last one that gives up takes the place with it. */
    seat_acquire(&other, SEAT_EVER);
    seat_acquire(&s[0], 100);
    pair_advance(p, 100);
    assert_int_equal(seat_list(p, 1, "/l", NULL, 0), 1);
    seat_close(&s[0]);
    seat_close(&other);
    assert_no_leftovers(p);
    pair_free(p);
}

static void cancel_passes_the_place_on(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seat s[OWNERS], other;
    open_all(s, p, &shared);
    seat_open(&other, p, 1, "/l", NULL);
    seat_acquire(&other, SEAT_EVER);
    for (int i = 0; i < 3; i++)
        seat_acquire(&s[i], SEAT_EVER);
    assert_int_equal(clave_async_mutex_cancel(s[1].m, 1), CLAVE_OK); /* in line */
    assert_int_equal(clave_async_mutex_cancel(s[0].m, 0), CLAVE_OK); /* the host */
    pair_settle(p);
    assert_int_equal(s[0].err, CLAVE_ECANCELED);
    assert_int_equal(s[1].err, CLAVE_ECANCELED);
    assert_int_equal(seat_list(p, 1, "/l", NULL, 0), 2);
    seat_release(&other);
    assert_int_equal(holder(s), 2);
    seat_close(&s[0]);
    seat_close(&other);
    assert_no_leftovers(p);
    pair_free(p);
}

static void freeing_it_ends_all(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct seat s[OWNERS];
    open_all(s, p, &shared);
    for (int i = 0; i < 4; i++)
        seat_acquire(&s[i], SEAT_EVER);
    /* One that was handed the lock and not told of it, two in line. */
    assert_int_equal(clave_async_mutex_release(s[0].m, 0, NULL, NULL), CLAVE_OK);
    clave_async_mutex_free(s[0].m);
    pair_settle(p);
    for (int i = 1; i < 4; i++) {
        assert_int_equal(s[i].answers, 1);
        assert_int_equal(s[i].err, CLAVE_ECANCELED);
    }
    assert_no_leftovers(p);
    pair_free(p);
}

/* ---- losing ---------------------------------------------------------------------------- */

static void the_next_takes_a_place_when_the_place_is_lost(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seat s[OWNERS];
    open_all(s, p, &shared);
    for (int i = 0; i < 3; i++)
        seat_acquire(&s[i], SEAT_EVER);
    pair_kill_session(p, 0);
    pair_advance(p, 5000);
    assert_int_equal(s[0].lost, 1); /* told to the holder only */
    assert_int_equal(holder(s), 1);
    assert_int_equal(seat_release(&s[0]), CLAVE_ELOST);
    assert_int_equal(seat_grant(&s[1]).session_id, clave_async_client_session_id(p->end[0].c));
    /* So it is when a stranger deletes the node. */
    char node[160];
    snprintf(node, sizeof node, "%s", seat_grant(&s[1]).node);
    pair_advance(p, 8000); /* watched from then on */
    assert_int_equal(seat_remove(p, 1, node), CLAVE_OK);
    assert_int_equal(s[0].lost, 2);
    assert_int_equal(holder(s), 2);
    seat_close(&s[0]);
    assert_no_leftovers(p);
    pair_free(p);
}

static void closing_the_client_ends_all(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct seat s[OWNERS];
    open_all(s, p, &shared);
    for (int i = 0; i < 3; i++)
        seat_acquire(&s[i], SEAT_EVER);
    clave_async_client_close(p->end[0].c, p->now);
    pair_settle(p);
    assert_int_equal(s[0].lost, 1);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(s[i].answers, 1);
        assert_int_equal(s[i].err, CLAVE_ECLOSED);
    }
    seat_close(&s[0]);
    assert_no_leftovers(p);
    pair_free(p);
}

/* Handed over and gone before the callback has told of it: it never held. */
static void a_grant_not_told_of_is_not_lost_but_not_had(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct seat s[OWNERS];
    open_all(s, p, &shared);
    for (int i = 0; i < 3; i++)
        seat_acquire(&s[i], SEAT_EVER);
    assert_int_equal(clave_async_mutex_release(s[0].m, 0, NULL, NULL), CLAVE_OK);
    clave_async_client_abandon(p->end[0].c, p->now);
    pair_settle(p);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(s[i].answers, 1);
        assert_int_equal(s[i].err, CLAVE_ECLOSED);
    }
    assert_int_equal(s[0].lost, 0);
    clave_async_mutex_free(s[0].m);
    pair_free(p);
}

static void max_hold_is_each_owners(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct seat s[OWNERS];
    clave_mutex_options o = shared;
    o.max_hold_ms = 2000;
    open_all(s, p, &o);
    for (int i = 0; i < 3; i++)
        seat_acquire(&s[i], SEAT_EVER);
    pair_advance(p, 1500);
    seat_release(&s[0]);
    pair_advance(p, 1500);
    assert_int_equal(holder(s), 1);
    pair_advance(p, 500);
    assert_int_equal(s[0].why, CLAVE_EMAXHOLD);
    assert_int_equal(seat_release(&s[1]), CLAVE_EMAXHOLD);
    assert_int_equal(holder(s), 2);
    seat_close(&s[0]);
    assert_no_leftovers(p);
    pair_free(p);
}

/* Readers share the lock itself, not a place. */
static void readers_have_places_of_their_own(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct seats a, b;
    seats_open(&a, p, 0, "/rw", &shared);
    seats_share(&b, &a, 7);
    seat_acquire(&a.read, SEAT_EVER);
    seat_acquire(&b.read, SEAT_TRY);
    assert_true(seat_holds(&a.read) && seat_holds(&b.read));
    seats_close(&a);
    assert_no_leftovers(p);
    pair_free(p);
}

/* A write with a read beside it is not handed over: the next writer waits for that read. */
static void a_downgrade_keeps_the_next_writer_out(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct seats a, b;
    seats_open(&a, p, 0, "/rw", &shared);
    seats_share(&b, &a, 7);
    seat_acquire(&a.write, SEAT_EVER);
    seat_acquire(&b.write, SEAT_EVER);
    seat_acquire(&a.read, SEAT_EVER);
    seat_release(&a.write);
    assert_true(seat_holds(&a.read));
    assert_false(seat_holds(&b.write));
    seat_release(&a.read);
    assert_true(seat_holds(&b.write));
    seats_close(&a);
    assert_no_leftovers(p);
    pair_free(p);
}

/* ---- faults ---------------------------------------------------------------------------- */

static void any_message_may_be_lost_once(void **state)
{
    (void)state;
    static const int ops[] = {OP_CREATE2,      OP_GET_CHILDREN2, OP_GET_DATA, OP_DELETE,
                              OP_NOTIFICATION, OP_MULTI,         OP_PING,     PAIR_HANDSHAKE};
    static const struct {
        enum pair_way way;
        enum pair_fate fate;
    } ways[] = {{PAIR_REQUEST, PAIR_LOSE},
                {PAIR_REQUEST, PAIR_PASS_CUT},
                {PAIR_REPLY, PAIR_LOSE},
                {PAIR_REPLY, PAIR_PASS_CUT}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops * 4 * 2 * 3; i++) {
        struct pair *p = world(2);
        struct seat s[OWNERS], other;
        open_all(s, p, &shared);
        seat_open(&other, p, 1, "/l", NULL);
        pair_rule(p, (struct pair_rule){i % 2, ways[i / 2 % 4].way, ops[i / 24],
                                        ways[i / 2 % 4].fate, (unsigned)(i / 8 % 3)});
        for (int k = 0; k < OWNERS; k++)
            seat_acquire(&s[k], SEAT_EVER);
        pair_advance(p, 3000);
        seat_acquire(&other, SEAT_EVER);
        for (int turn = 0; turn < OWNERS + 1; turn++) {
            pair_advance(p, 3000);
            int at = holder(s);
            assert_true((at >= 0) != seat_holds(&other));
            assert_int_equal(seat_release(at >= 0 ? &s[at] : &other), CLAVE_OK);
        }
        pair_advance(p, 3000);
        for (int k = 0; k < OWNERS; k++)
            assert_int_equal(s[k].answers, 1);
        assert_int_equal(other.answers, 1);
        assert_int_equal(s[0].lost, 0);
        assert_no_leftovers(p);
        seat_close(&s[0]);
        seat_close(&other);
        pair_free(p);
    }
}

static bool one_allocation_fails(size_t which)
{
    struct failmem mem;
    failmem_init(&mem);
    struct pair *p =
        pair_new(&(struct pair_options){.clients = 1, .timeout_ms = TIMEOUT, .mem = &mem.mem});
    struct seat s[OWNERS];
    clave_mutex_options o = shared;
    o.share_turns = 1;
    failmem_arm(&mem, which, 1);
    clave_err err = seat_open(&s[0], p, 0, "/l", &o);
    assert_true(err == CLAVE_OK || err == CLAVE_ENOMEM);
    if (err == CLAVE_OK) {
        unsigned asked = 0, answered = 0;
        for (uint64_t i = 0; i < OWNERS; i++) {
            if (i > 0)
                seat_share(&s[i], &s[0], i);
            asked += seat_acquire(&s[i], SEAT_EVER) == CLAVE_OK;
        }
        pair_advance(p, 3000);
        for (int at; (at = holder(s)) >= 0; pair_advance(p, 3000))
            assert_int_equal(seat_release(&s[at]), CLAVE_OK);
        for (int i = 0; i < OWNERS; i++)
            answered += s[i].answers;
        assert_int_equal(answered, asked);
        seat_close(&s[0]);
    }
    pair_advance(p, 3000);
    bool failed = mem.failed;
    failmem_arm(&mem, 0, 0);
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

/* The one that has the shared place only tries, and is cancelled: who takes the place over
 * wanted to wait. (Seed 294, docs/simulation.md.) */
static void an_owner_that_takes_over_from_a_try_waits_on(void **state)
{
    (void)state;
    clave_mutex_options o = {.size = sizeof o, .share_turns = 4};
    struct pair *p = world(2);
    struct seat tries, waits, other;
    seat_open(&other, p, 1, "/l", NULL);
    seat_acquire(&other, SEAT_EVER);
    seat_open(&tries, p, 0, "/l", &o);
    seat_share(&waits, &tries, 1);
    pair_rule(p, (struct pair_rule){0, PAIR_REPLY, OP_CREATE2, PAIR_HOLD, 0});
    seat_acquire(&tries, SEAT_TRY);
    seat_acquire(&waits, SEAT_EVER);
    assert_int_equal(clave_async_mutex_cancel(tries.m, 0), CLAVE_OK);
    pair_clear(p);
    pair_settle(p);
    assert_int_equal(tries.err, CLAVE_ECANCELED);
    assert_int_equal(waits.answers, 0);
    seat_release(&other);
    assert_true(seat_holds(&waits));
    seat_close(&tries);
    seat_close(&other);
    pair_free(p);
}

struct diary {
    clave_async_mutex *m;
    char lines[16]; /* of owner 1: 'g' its acquire is granted, 'a' it is asked for */
};

static void write_down(struct diary *d, char c)
{
    size_t n = strlen(d->lines);
    assert_true(n + 1 < sizeof d->lines);
    d->lines[n] = c;
}

static void on_event(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    (void)m;
    if (ev->owner == 1 && ev->kind == CLAVE_MUTEX_ASKED)
        write_down(arg, 'a');
}

static void on_granted(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    (void)m;
    assert_int_equal(err, CLAVE_OK);
    if (owner == 1)
        write_down(arg, 'g');
}

static void release_then(clave_async_client *c, const clave_result *res, void *arg)
{
    struct diary *d = arg;
    (void)c;
    assert_int_equal(res->err, CLAVE_OK);
    assert_int_equal(clave_async_mutex_release(d->m, 0, NULL, NULL), CLAVE_OK);
}

/* The place is handed over in a reply's callback, and the next bytes say that somebody has asked.
 * (Seed 1913, docs/simulation.md.) */
static void an_owner_is_asked_after_it_was_told_that_it_holds(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct diary d = {0};
    clave_mutex_options o = {.size = sizeof o,
                             .share_turns = 4,
                             .revocable = true,
                             .event_cb = on_event,
                             .event_arg = &d};
    clave_grant g;
    assert_int_equal(clave_async_mutex_new(&d.m, p->end[0].c, "/l", &o), CLAVE_OK);
    for (uint64_t owner = 0; owner < 2; owner++)
        assert_int_equal(clave_async_mutex_acquire(d.m, owner, CLAVE_NEVER, on_granted, &d),
                         CLAVE_OK);
    pair_settle(p);
    assert_true(clave_async_mutex_grant(d.m, 0, &g));
    seat_make(p, 1, "/data");
    pair_rule(p, (struct pair_rule){0, PAIR_REQUEST, OP_MULTI, PAIR_HOLD, 0});
    assert_int_equal(clave_async_mutex_set(d.m, 0, "/data", "x", 1, -1, release_then, &d),
                     CLAVE_OK);
    pair_settle(p);
    seat_scribble(p, 1, g.node, "__REVOKE__"); /* looked at after the write */
    pair_clear(p);
    pair_rule(p, (struct pair_rule){0, PAIR_REPLY, OP_MULTI, PAIR_HOLD, 0});
    pair_settle(p);
    pair_feed_at_once(p, 0);
    pair_clear(p);
    pair_advance(p, 1);
    assert_string_equal(d.lines, "ga");
    clave_async_mutex_free(d.m);
    pair_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hand_over_costs_nothing),
        cmocka_unit_test(other_processes_are_not_kept_out),
        cmocka_unit_test(it_is_reentrant_for_each_owner),
        cmocka_unit_test(each_has_its_own_deadline),
        cmocka_unit_test(cancel_passes_the_place_on),
        cmocka_unit_test(freeing_it_ends_all),
        cmocka_unit_test(the_next_takes_a_place_when_the_place_is_lost),
        cmocka_unit_test(closing_the_client_ends_all),
        cmocka_unit_test(a_grant_not_told_of_is_not_lost_but_not_had),
        cmocka_unit_test(max_hold_is_each_owners),
        cmocka_unit_test(readers_have_places_of_their_own),
        cmocka_unit_test(a_downgrade_keeps_the_next_writer_out),
        cmocka_unit_test(any_message_may_be_lost_once),
        cmocka_unit_test(every_allocation_may_fail_once),
        cmocka_unit_test(an_owner_that_takes_over_from_a_try_waits_on),
        cmocka_unit_test(an_owner_is_asked_after_it_was_told_that_it_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
