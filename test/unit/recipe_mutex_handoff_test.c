/* Owners of one mutex that share a place in the queue: handed over without the network, in
 * order, bounded, and with nothing lost when the place is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/async_grants.h"
#include "lib/failmem.h"
#include "lib/mutex_owner.h"
#include "server/server_internal.h"

enum { TIMEOUT = 6000, OWNERS = 6 };

static const clave_mutex_options shared = {.size = sizeof shared, .share_turns = 3};

static struct memnet *world(size_t clients)
{
    return memnet_new(&(struct memnet_options){.clients = clients, .timeout_ms = TIMEOUT});
}

static void assert_no_leftovers(struct memnet *p)
{
    struct server_stats stats = memnet_stats(p);
    assert_int_equal(stats.watches, 0);
    assert_int_equal(stats.ephemerals, 0);
}

/* Owners 0 to OWNERS - 1 of one mutex; the first hears the events of all. */
static void open_all(struct mutex_owner s[OWNERS], struct memnet *p, const clave_mutex_options *o)
{
    assert_int_equal(owner_open(&s[0], p, 0, "/l", o), CLAVE_OK);
    for (uint64_t i = 1; i < OWNERS; i++)
        owner_share(&s[i], &s[0], i);
}

static int holder(const struct mutex_owner s[OWNERS])
{
    int found = -1;
    for (int i = 0; i < OWNERS; i++)
        if (owner_holds(&s[i])) {
            assert_int_equal(found, -1);
            found = i;
        }
    return found;
}

/* ---- handing over ---------------------------------------------------------------------- */

static void a_hand_over_costs_nothing(void **state)
{
    (void)state;
    struct memnet *p = world(1);
    struct mutex_owner s[OWNERS];
    open_all(s, p, &shared);
    for (int i = 0; i < 4; i++)
        owner_acquire(&s[i], OWNER_FOREVER);
    assert_int_equal(memnet_list(p, 0, "/l", NULL, 0), 1);
    int64_t token = owner_grant(&s[0]).token;
    memnet_reset_counts(p);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(holder(s), i);
        assert_int_equal(clave_async_mutex_release(s[i].m, s[i].owner, NULL, NULL), CLAVE_OK);
        assert_int_equal(s[i + 1].answers, 0); /* never inside the call */
        memnet_settle(p);
        assert_int_equal(s[i + 1].answers, 1);
        assert_int_equal(s[i + 1].err, CLAVE_OK);
        assert_int_equal(owner_grant(&s[i + 1]).token, token);
    }
    assert_int_equal(memnet_requests(p, 0), 0);
    assert_int_equal(s[0].held, 4);
    assert_int_equal(owner_release(&s[3]), CLAVE_OK);
    assert_no_leftovers(p);
    owner_close(&s[0]);
    memnet_free(p);
}

/* After so many turns another process is let in, and the owners that wait here come after it. */
static void other_processes_are_not_kept_out(void **state)
{
    (void)state;
    struct memnet *p = world(2);
    struct mutex_owner s[OWNERS], other;
    open_all(s, p, &shared);
    owner_open(&other, p, 1, "/l", NULL);
    for (int i = 0; i < OWNERS; i++)
        owner_acquire(&s[i], OWNER_FOREVER);
    owner_acquire(&other, OWNER_FOREVER);
    for (int i = 0; i < 4; i++) { /* the first, and three more turns */
        assert_int_equal(holder(s), i);
        assert_false(owner_holds(&other));
        owner_release(&s[i]);
    }
    assert_int_equal(holder(s), -1);
    assert_true(owner_holds(&other));
    int64_t token = owner_grant(&other).token;
    owner_release(&other);
    assert_int_equal(holder(s), 4);
    assert_true(owner_grant(&s[4]).token > token);
    owner_release(&s[4]);
    assert_int_equal(holder(s), 5);
    owner_close(&s[0]);
    owner_close(&other);
    assert_no_leftovers(p);
    memnet_free(p);
}

static void it_is_reentrant_for_each_owner(void **state)
{
    (void)state;
    struct memnet *p = world(1);
    struct mutex_owner s[OWNERS];
    open_all(s, p, &shared);
    owner_acquire(&s[0], OWNER_FOREVER);
    owner_acquire(&s[0], OWNER_FOREVER);
    owner_acquire(&s[1], OWNER_FOREVER);
    assert_int_equal(owner_begin_acquire(&s[1], OWNER_FOREVER), CLAVE_EINVAL);
    owner_release(&s[0]);
    assert_int_equal(holder(s), 0);
    /* With a callback: the hold is over, though the node stands. */
    assert_int_equal(clave_async_mutex_release(s[0].m, 0, NULL, NULL), CLAVE_OK);
    /* It holds, but is not told yet: nothing to give back, and too late to cancel. */
    assert_int_equal(clave_async_mutex_release(s[1].m, 1, NULL, NULL), CLAVE_ENOTHELD);
    assert_int_equal(clave_async_mutex_cancel(s[1].m, 1), CLAVE_OK);
    assert_int_equal(owner_begin_acquire(&s[1], OWNER_FOREVER), CLAVE_EINVAL);
    memnet_settle(p);
    assert_int_equal(owner_acquire(&s[1], OWNER_FOREVER), CLAVE_OK);
    assert_int_equal(owner_grant(&s[1]).count, 2);
    owner_acquire(&s[0], OWNER_FOREVER);
    owner_release(&s[1]);
    assert_int_equal(owner_release_confirmed(&s[1]), CLAVE_OK);
    assert_int_equal(s[1].departures, 1);
    assert_int_equal(s[1].left, CLAVE_OK);
    assert_int_equal(holder(s), 0);
    owner_close(&s[0]);
    assert_no_leftovers(p);
    memnet_free(p);
}

/* ---- giving up --------------------------------------------------------------------------- */

static void each_has_its_own_deadline(void **state)
{
    (void)state;
    struct memnet *p = world(2);
    struct mutex_owner s[OWNERS], other;
    open_all(s, p, &shared);
    owner_open(&other, p, 1, "/l", NULL);
    owner_acquire(&other, OWNER_FOREVER);
    owner_acquire(&s[0], 1000); /* the host of the place */
    owner_acquire(&s[1], 500);
    owner_acquire(&s[2], OWNER_FOREVER);
    owner_acquire(&s[3], OWNER_TRY);
    assert_int_equal(s[3].err, CLAVE_EBUSY);
    memnet_advance(p, 500);
    assert_int_equal(s[1].err, CLAVE_EBUSY);
    assert_int_equal(s[1].answers, 1);
    assert_int_equal(s[0].answers, 0);
    memnet_reset_counts(p);
    memnet_advance(p, 500);
    assert_int_equal(s[0].answers, 1);
    assert_int_equal(s[0].err, CLAVE_EBUSY);
    /* The place stands, for the next. */
    assert_int_equal(p->clients[0].requests[OP_DELETE], 0);
    assert_int_equal(memnet_list(p, 1, "/l", NULL, 0), 2);
    owner_release(&other);
    assert_int_equal(holder(s), 2);
    owner_release(&s[2]);
    /* The last one that gives up takes the place with it. */
    owner_acquire(&other, OWNER_FOREVER);
    owner_acquire(&s[0], 100);
    memnet_advance(p, 100);
    assert_int_equal(memnet_list(p, 1, "/l", NULL, 0), 1);
    owner_close(&s[0]);
    owner_close(&other);
    assert_no_leftovers(p);
    memnet_free(p);
}

static void cancel_passes_the_place_on(void **state)
{
    (void)state;
    struct memnet *p = world(2);
    struct mutex_owner s[OWNERS], other;
    open_all(s, p, &shared);
    owner_open(&other, p, 1, "/l", NULL);
    owner_acquire(&other, OWNER_FOREVER);
    for (int i = 0; i < 3; i++)
        owner_acquire(&s[i], OWNER_FOREVER);
    assert_int_equal(clave_async_mutex_cancel(s[1].m, 1), CLAVE_OK); /* in line */
    assert_int_equal(clave_async_mutex_cancel(s[0].m, 0), CLAVE_OK); /* the host */
    memnet_settle(p);
    assert_int_equal(s[0].err, CLAVE_ECANCELED);
    assert_int_equal(s[1].err, CLAVE_ECANCELED);
    assert_int_equal(memnet_list(p, 1, "/l", NULL, 0), 2);
    owner_release(&other);
    assert_int_equal(holder(s), 2);
    owner_close(&s[0]);
    owner_close(&other);
    assert_no_leftovers(p);
    memnet_free(p);
}

static void freeing_it_ends_all(void **state)
{
    (void)state;
    struct memnet *p = world(1);
    struct mutex_owner s[OWNERS];
    open_all(s, p, &shared);
    for (int i = 0; i < 4; i++)
        owner_acquire(&s[i], OWNER_FOREVER);
    /* One that was handed the lock and not told of it, two in line. */
    assert_int_equal(clave_async_mutex_release(s[0].m, 0, NULL, NULL), CLAVE_OK);
    clave_async_mutex_free(s[0].m);
    memnet_settle(p);
    for (int i = 1; i < 4; i++) {
        assert_int_equal(s[i].answers, 1);
        assert_int_equal(s[i].err, CLAVE_ECANCELED);
    }
    assert_no_leftovers(p);
    memnet_free(p);
}

/* ---- losing ---------------------------------------------------------------------------- */

static void the_next_takes_a_place_when_the_place_is_lost(void **state)
{
    (void)state;
    struct memnet *p = world(2);
    struct mutex_owner s[OWNERS];
    open_all(s, p, &shared);
    for (int i = 0; i < 3; i++)
        owner_acquire(&s[i], OWNER_FOREVER);
    memnet_kill_session(p, 0);
    memnet_advance(p, 5000);
    assert_int_equal(s[0].lost, 1); /* told to the holder only */
    assert_int_equal(holder(s), 1);
    assert_int_equal(owner_release(&s[0]), CLAVE_ELOST);
    assert_int_equal(owner_grant(&s[1]).session_id, clave_async_client_session_id(p->clients[0].c));
    /* So it is when a stranger deletes the node. */
    char node[160];
    snprintf(node, sizeof node, "%s", owner_grant(&s[1]).node);
    memnet_advance(p, 8000); /* watched from then on */
    assert_int_equal(memnet_delete(p, 1, node), CLAVE_OK);
    assert_int_equal(s[0].lost, 2);
    assert_int_equal(holder(s), 2);
    owner_close(&s[0]);
    assert_no_leftovers(p);
    memnet_free(p);
}

static void closing_the_client_ends_all(void **state)
{
    (void)state;
    struct memnet *p = world(1);
    struct mutex_owner s[OWNERS];
    open_all(s, p, &shared);
    for (int i = 0; i < 3; i++)
        owner_acquire(&s[i], OWNER_FOREVER);
    clave_async_client_close(p->clients[0].c, p->now);
    memnet_settle(p);
    assert_int_equal(s[0].lost, 1);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(s[i].answers, 1);
        assert_int_equal(s[i].err, CLAVE_ECLOSED);
    }
    owner_close(&s[0]);
    assert_no_leftovers(p);
    memnet_free(p);
}

/* Handed over and gone before the callback has told of it: it never held. */
static void a_grant_not_told_of_is_not_lost_but_not_had(void **state)
{
    (void)state;
    struct memnet *p = world(1);
    struct mutex_owner s[OWNERS];
    open_all(s, p, &shared);
    for (int i = 0; i < 3; i++)
        owner_acquire(&s[i], OWNER_FOREVER);
    assert_int_equal(clave_async_mutex_release(s[0].m, 0, NULL, NULL), CLAVE_OK);
    clave_async_client_abandon(p->clients[0].c, p->now);
    memnet_settle(p);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(s[i].answers, 1);
        assert_int_equal(s[i].err, CLAVE_ECLOSED);
    }
    assert_int_equal(s[0].lost, 0);
    clave_async_mutex_free(s[0].m);
    memnet_free(p);
}

static void max_hold_is_each_owners(void **state)
{
    (void)state;
    struct memnet *p = world(1);
    struct mutex_owner s[OWNERS];
    clave_mutex_options o = shared;
    o.max_hold_ms = 2000;
    open_all(s, p, &o);
    for (int i = 0; i < 3; i++)
        owner_acquire(&s[i], OWNER_FOREVER);
    memnet_advance(p, 1500);
    owner_release(&s[0]);
    memnet_advance(p, 1500);
    assert_int_equal(holder(s), 1);
    memnet_advance(p, 500);
    assert_int_equal(s[0].why, CLAVE_EMAXHOLD);
    assert_int_equal(owner_release(&s[1]), CLAVE_EMAXHOLD);
    assert_int_equal(holder(s), 2);
    owner_close(&s[0]);
    assert_no_leftovers(p);
    memnet_free(p);
}

/* Readers share the lock itself, not a place. */
static void readers_have_places_of_their_own(void **state)
{
    (void)state;
    struct memnet *p = world(1);
    struct rwlock_owner a, b;
    rwlock_owner_open(&a, p, 0, "/rw", &shared);
    rwlock_owner_share(&b, &a, 7);
    owner_acquire(&a.read, OWNER_FOREVER);
    owner_acquire(&b.read, OWNER_TRY);
    assert_true(owner_holds(&a.read) && owner_holds(&b.read));
    rwlock_owner_close(&a);
    assert_no_leftovers(p);
    memnet_free(p);
}

/* A write with a read beside it is not handed over: the next writer waits for that read. */
static void a_downgrade_keeps_the_next_writer_out(void **state)
{
    (void)state;
    struct memnet *p = world(1);
    struct rwlock_owner a, b;
    rwlock_owner_open(&a, p, 0, "/rw", &shared);
    rwlock_owner_share(&b, &a, 7);
    owner_acquire(&a.write, OWNER_FOREVER);
    owner_acquire(&b.write, OWNER_FOREVER);
    owner_acquire(&a.read, OWNER_FOREVER);
    owner_release(&a.write);
    assert_true(owner_holds(&a.read));
    assert_false(owner_holds(&b.write));
    owner_release(&a.read);
    assert_true(owner_holds(&b.write));
    rwlock_owner_close(&a);
    assert_no_leftovers(p);
    memnet_free(p);
}

/* ---- faults ---------------------------------------------------------------------------- */

static void any_message_may_be_lost_once(void **state)
{
    (void)state;
    static const int ops[] = {OP_CREATE2,      OP_GET_CHILDREN2, OP_GET_DATA, OP_DELETE,
                              OP_NOTIFICATION, OP_MULTI,         OP_PING,     MEMNET_HANDSHAKE};
    static const struct {
        enum memnet_direction way;
        enum memnet_action fate;
    } ways[] = {{MEMNET_REQUEST, MEMNET_LOSE},
                {MEMNET_REQUEST, MEMNET_PASS_CUT},
                {MEMNET_REPLY, MEMNET_LOSE},
                {MEMNET_REPLY, MEMNET_PASS_CUT}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops * 4 * 2 * 3; i++) {
        struct memnet *p = world(2);
        struct mutex_owner s[OWNERS], other;
        open_all(s, p, &shared);
        owner_open(&other, p, 1, "/l", NULL);
        memnet_rule(p, (struct memnet_rule){i % 2, ways[i / 2 % 4].way, ops[i / 24],
                                            ways[i / 2 % 4].fate, (unsigned)(i / 8 % 3)});
        for (int k = 0; k < OWNERS; k++)
            owner_acquire(&s[k], OWNER_FOREVER);
        memnet_advance(p, 3000);
        owner_acquire(&other, OWNER_FOREVER);
        for (int turn = 0; turn < OWNERS + 1; turn++) {
            memnet_advance(p, 3000);
            int at = holder(s);
            assert_true((at >= 0) != owner_holds(&other));
            assert_int_equal(owner_release(at >= 0 ? &s[at] : &other), CLAVE_OK);
        }
        memnet_advance(p, 3000);
        for (int k = 0; k < OWNERS; k++)
            assert_int_equal(s[k].answers, 1);
        assert_int_equal(other.answers, 1);
        assert_int_equal(s[0].lost, 0);
        assert_no_leftovers(p);
        owner_close(&s[0]);
        owner_close(&other);
        memnet_free(p);
    }
}

static bool one_allocation_fails(size_t which)
{
    struct failmem mem;
    failmem_init(&mem);
    struct memnet *p =
        memnet_new(&(struct memnet_options){.clients = 1, .timeout_ms = TIMEOUT, .mem = &mem.mem});
    struct mutex_owner s[OWNERS];
    clave_mutex_options o = shared;
    o.share_turns = 1;
    failmem_arm(&mem, which, 1);
    clave_err err = owner_open(&s[0], p, 0, "/l", &o);
    assert_true(err == CLAVE_OK || err == CLAVE_ENOMEM);
    if (err == CLAVE_OK) {
        unsigned asked = 0, answered = 0;
        for (uint64_t i = 0; i < OWNERS; i++) {
            if (i > 0)
                owner_share(&s[i], &s[0], i);
            asked += owner_acquire(&s[i], OWNER_FOREVER) == CLAVE_OK;
        }
        memnet_advance(p, 3000);
        for (int at; (at = holder(s)) >= 0; memnet_advance(p, 3000))
            assert_int_equal(owner_release(&s[at]), CLAVE_OK);
        for (int i = 0; i < OWNERS; i++)
            answered += s[i].answers;
        assert_int_equal(answered, asked);
        owner_close(&s[0]);
    }
    memnet_advance(p, 3000);
    bool failed = mem.failed;
    failmem_arm(&mem, 0, 0);
    assert_int_equal(memnet_stats(p).ephemerals, 0);
    memnet_free(p);
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

/* `tries` has the shared place, and is cancelled before it knows that it has a node; `waits` takes
 * the place over. */
static void cancel_a_try(struct memnet *p, struct mutex_owner *tries, struct mutex_owner *waits)
{
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_CREATE2, MEMNET_HOLD, 0});
    owner_acquire(tries, OWNER_TRY);
    owner_acquire(waits, OWNER_FOREVER);
    assert_int_equal(clave_async_mutex_cancel(tries->m, 0), CLAVE_OK);
    memnet_clear(p);
    memnet_settle(p);
    assert_int_equal(tries->err, CLAVE_ECANCELED);
}

/* The one that has the shared place only tries, and is cancelled: the one that takes the place over
 * wanted to wait. (Seed 294, docs/evidence/simulation.md.) */
static void an_owner_that_takes_over_from_a_try_waits_on(void **state)
{
    (void)state;
    clave_mutex_options o = {.size = sizeof o, .share_turns = 4};
    struct memnet *p = world(2);
    struct mutex_owner tries, waits, other;
    owner_open(&other, p, 1, "/l", NULL);
    owner_acquire(&other, OWNER_FOREVER);
    owner_open(&tries, p, 0, "/l", &o);
    owner_share(&waits, &tries, 1);
    cancel_a_try(p, &tries, &waits);
    assert_int_equal(waits.answers, 0);
    owner_release(&other);
    assert_true(owner_holds(&waits));
    owner_close(&tries);
    owner_close(&other);
    memnet_free(p);
}

/* The same on a server that gives nobody a place, since it was restored from a backup. */
static void an_owner_that_takes_over_from_a_try_waits_out_a_restore(void **state)
{
    (void)state;
    struct memnet *p = world(1);
    struct mutex_owner tries, waits;
    struct session *quiet;
    assert_int_equal(
        clave__sessions_add(&p->server->sessions, SESSION_OF_RESTORE, INT32_MAX, &quiet), CLAVE_OK);
    owner_open(&tries, p, 0, "/l", &shared);
    owner_share(&waits, &tries, 1);
    cancel_a_try(p, &tries, &waits);
    memnet_advance(p, 500);
    assert_int_equal(waits.answers, 0);
    clave__sessions_remove(&p->server->sessions, quiet);
    memnet_advance(p, 500);
    assert_true(owner_holds(&waits));
    owner_close(&tries);
    memnet_free(p);
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
 * (Seed 1913, docs/evidence/simulation.md.) */
static void an_owner_is_asked_after_it_was_told_that_it_holds(void **state)
{
    (void)state;
    struct memnet *p = world(2);
    struct diary d = {0};
    clave_mutex_options o = {.size = sizeof o,
                             .share_turns = 4,
                             .revocable = true,
                             .event_cb = on_event,
                             .event_arg = &d};
    struct grant_facts g;
    assert_int_equal(clave_async_mutex_new(&d.m, p->clients[0].c, "/l", &o), CLAVE_OK);
    for (uint64_t owner = 0; owner < 2; owner++)
        assert_int_equal(clave_async_mutex_acquire(d.m, owner, CLAVE_NEVER, on_granted, &d),
                         CLAVE_OK);
    memnet_settle(p);
    assert_true(clave__mutex_held(d.m, 0, &g));
    memnet_create(p, 1, "/data");
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REQUEST, OP_MULTI, MEMNET_HOLD, 0});
    assert_int_equal(guarded_set(of_mutex(d.m, 0), "/data", "x", 1, -1, release_then, &d),
                     CLAVE_OK);
    memnet_settle(p);
    memnet_set(p, 1, g.node, "__REVOKE__"); /* looked at after the write */
    memnet_clear(p);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_MULTI, MEMNET_HOLD, 0});
    memnet_settle(p);
    memnet_feed_at_once(p, 0);
    memnet_clear(p);
    memnet_advance(p, 1);
    assert_string_equal(d.lines, "ga");
    clave_async_mutex_free(d.m);
    memnet_free(p);
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
        cmocka_unit_test(an_owner_that_takes_over_from_a_try_waits_out_a_restore),
        cmocka_unit_test(an_owner_is_asked_after_it_was_told_that_it_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
