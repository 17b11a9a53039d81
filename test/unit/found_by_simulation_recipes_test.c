/* What the simulated world (test/sim) has found in the recipes, each as a short timeline of its
 * own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "clave/async/leader.h"
#include "lib/failmem.h"
#include "lib/party.h"
#include "lib/seat.h"
#include "lib/stand.h"

enum { TIMEOUT = 6000 };

static struct pair *world(size_t clients)
{
    return pair_new(&(struct pair_options){.clients = clients, .timeout_ms = TIMEOUT});
}

/* A process that goes on with all that its socket has, and looks at its clock behind it. */
static void feed_at_once(struct pair *p, size_t client)
{
    struct buf *down = &p->end[client].down;
    clave_async_client_input(p->end[client].c, p->now, clave__buf_bytes(down),
                             clave__buf_len(down));
    clave__buf_clear(down);
}

/* Seed 4047. A holder looks at its node, whose watch is armed already; somebody writes to it
 * before the look arrives, and the watch is gone. It has to be set again: on a standalone server
 * nothing else tells of the node's end. */
static void a_watch_that_fires_under_a_look_is_set_again(void **state)
{
    (void)state;
    clave_mutex_options o = {.size = sizeof o, .revocable = true};
    struct pair *p = world(2);
    struct seat a, b;
    seat_open(&a, p, 0, "/l", &o);
    seat_open(&b, p, 1, "/l", NULL);
    seat_acquire(&b, SEAT_EVER);
    seat_acquire(&a, SEAT_EVER);
    pair_rule(p, (struct pair_rule){0, PAIR_REQUEST, OP_GET_DATA, PAIR_HOLD, 0});
    seat_release(&b);
    assert_true(seat_holds(&a));
    seat_scribble(p, 1, seat_grant(&a).node, "__REVOKE__");
    pair_clear(p);
    pair_settle(p);
    assert_int_equal(a.asked, 1);
    seat_remove(p, 1, seat_grant(&a).node);
    assert_int_equal(a.lost, 1);
    assert_int_equal(a.why, CLAVE_ENONODE);
    seat_close(&a);
    seat_close(&b);
    pair_free(p);
}

/* Seed 10. A writer that waits behind a write that becomes a read is granted behind the read:
 * its token has to be the greater. */
static void tokens_grow_past_a_downgrade(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seats a, b;
    seats_open(&a, p, 0, "/rw", NULL);
    seats_open(&b, p, 1, "/rw", NULL);
    seat_acquire(&a.write, SEAT_EVER);
    seat_acquire(&b.write, SEAT_EVER);
    seat_acquire(&a.read, SEAT_EVER);
    int64_t token = seat_grant(&a.read).token;
    seat_release(&a.write);
    assert_int_equal(seat_grant(&a.read).token, token);
    seat_release(&a.read);
    assert_true(seat_holds(&b.write));
    assert_true(seat_grant(&b.write).token > token);
    seats_close(&a);
    seats_close(&b);
    pair_free(p);
}

/* Seed 294. The one that has the shared place only tries, and is cancelled: who takes the place
 * over wanted to wait. */
static void who_takes_over_from_a_try_waits_on(void **state)
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

/* ---- seed 1913: asked for a lock it does not know to have ---------------------------------- */

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
 */
static void an_owner_is_asked_behind_being_told_that_it_holds(void **state)
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
    seat_scribble(p, 1, g.node, "__REVOKE__"); /* looked at behind the write */
    pair_clear(p);
    pair_rule(p, (struct pair_rule){0, PAIR_REPLY, OP_MULTI, PAIR_HOLD, 0});
    pair_settle(p);
    feed_at_once(p, 0);
    pair_clear(p);
    pair_advance(p, 1);
    assert_string_equal(d.lines, "ga");
    clave_async_mutex_free(d.m);
    pair_free(p);
}

/* ---- elections ------------------------------------------------------------------------------ */

struct follower {
    char id[16];
    char value[16];
};

static void on_news(clave_async_leader_watch *w, const clave_leader_news *news, void *arg)
{
    struct follower *f = arg;
    (void)w;
    memset(f, 0, sizeof *f);
    if (news->leader)
        strncpy(f->id, news->leader->identity.text, sizeof f->id - 1);
    if (news->value)
        memcpy(f->value, news->value, news->len);
}

static void stand_as(struct stand *s, struct pair *p, size_t client, const char *id)
{
    clave_latch_options o = {.size = sizeof o, .id = id, .policy = CLAVE_POLICY_SESSION};
    stand_up(s, p, client, "/e", &o);
}

/* Memory is short while a follower reads who leads now; before it tries again, the leader
 * publishes. */
static void follow_with_a_failure(size_t first)
{
    struct failmem mem;
    failmem_init(&mem);
    struct pair *p =
        pair_new(&(struct pair_options){.clients = 3, .timeout_ms = TIMEOUT, .mem = &mem.mem});
    struct stand a, b;
    struct follower f;
    clave_async_leader_watch *w;
    pair_settle(p);
    stand_as(&a, p, 0, "a");
    stand_as(&b, p, 1, "b");
    assert_int_equal(clave_async_leader_watch_new(&w, p->end[2].c, "/e", on_news, &f), CLAVE_OK);
    pair_settle(p);
    assert_string_equal(f.id, "a");
    pair_rule(p, (struct pair_rule){2, PAIR_REPLY, OP_GET_CHILDREN2, PAIR_HOLD, 0});
    stand_close(&a);
    assert_true(stand_leads(&b));
    failmem_arm(&mem, first, 1);
    pair_clear(p);
    pair_settle(p);
    failmem_arm(&mem, 0, 0);
    assert_int_equal(clave_async_latch_publish(b.l, "v", 1, NULL, NULL), CLAVE_OK);
    pair_advance(p, 3000);
    assert_string_equal(f.id, "b");
    assert_string_equal(f.value, "v");
    clave_async_leader_watch_free(w);
    stand_close(&b);
    pair_free(p);
    assert_int_equal(mem.live, 0);
}

static void on_written(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    *(clave_err *)arg = res->err;
}

/* A limit of nothing is raised while memory is short; false: it was not short any more. */
static bool raise_a_limit(size_t first, bool while_cut)
{
    struct failmem mem;
    failmem_init(&mem);
    struct pair *p =
        pair_new(&(struct pair_options){.clients = 2, .timeout_ms = TIMEOUT, .mem = &mem.mem});
    struct party a;
    clave_err written = CLAVE_ETIMEDOUT;
    pair_settle(p);
    const clave_semaphore_options o = {.limit = 1, .limit_path = "/n"};
    assert_int_equal(party_open_with(&a, p, 0, o), CLAVE_OK);
    pair_settle(p);
    clave_async_set(p->end[1].c, "/n", "\0\0\0\0", 4, -1, on_written, &written);
    pair_settle(p);
    assert_int_equal(party_acquire(&a, 1, SEAT_EVER), CLAVE_OK);
    assert_int_equal(a.answers, 0);
    if (while_cut)
        pair_cut(p, 0);
    clave_async_set(p->end[1].c, "/n", "\0\0\0\3", 4, -1, on_written, &written);
    failmem_arm(&mem, first, 1);
    pair_settle(p);
    pair_advance(p, 3000);
    bool failed = mem.failed;
    failmem_arm(&mem, 0, 0);
    assert_int_equal(written, CLAVE_OK);
    assert_int_equal(clave_async_semaphore_limit(a.s), 3);
    assert_int_equal(a.answers, 1);
    assert_true(a.err == CLAVE_OK || a.err == CLAVE_ENOMEM);
    party_close(&a);
    pair_free(p);
    assert_int_equal(mem.live, 0);
    return failed;
}

/* Seed 321253. To look at the limit once more there was no memory, and it was never looked at
 * again: who waited for room waited for ever. */
static void a_limit_is_followed_though_memory_was_short(void **state)
{
    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        size_t first = 1;
        while (raise_a_limit(first, cut))
            first++;
        assert_true(first > 2);
    }
}

/* Seed 89. It went on with the value of the leader it knew, and never read the list again. */
static void a_reading_that_failed_is_begun_again(void **state)
{
    (void)state;
    for (size_t first = 1; first <= 6; first++)
        follow_with_a_failure(first);
}

/* Seed 3362. The path was missing in the list and is there when it is to be watched for: that watch
 * is not one of its children. */
static void a_path_that_is_made_meanwhile_is_watched(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct stand a;
    struct follower f;
    clave_async_leader_watch *w;
    pair_settle(p);
    pair_rule(p, (struct pair_rule){1, PAIR_REQUEST, OP_EXISTS, PAIR_HOLD, 0});
    assert_int_equal(clave_async_leader_watch_new(&w, p->end[1].c, "/e", on_news, &f), CLAVE_OK);
    pair_settle(p);
    assert_int_equal(seat_make(p, 0, "/e"), CLAVE_OK);
    pair_clear(p);
    pair_settle(p);
    stand_as(&a, p, 0, "a");
    assert_string_equal(f.id, "a");
    clave_async_leader_watch_free(w);
    stand_close(&a);
    assert_int_equal(pair_stats(p).watches, 0);
    pair_free(p);
}

/* Seed 478. The answer to the publication is lost, and the leader resigns: the value goes. */
static void a_value_that_may_be_there_is_taken_back(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct stand a;
    stand_as(&a, p, 0, "a");
    pair_rule(p, (struct pair_rule){0, PAIR_REPLY, OP_MULTI, PAIR_LOSE, 0});
    assert_int_equal(clave_async_latch_publish(a.l, "v", 1, NULL, NULL), CLAVE_OK);
    pair_settle(p);
    pair_advance(p, 1000);
    assert_true(stand_leads(&a));
    assert_int_equal(pair_stats(p).ephemerals, 2);
    stand_close(&a);
    assert_int_equal(pair_stats(p).ephemerals, 0);
    pair_free(p);
}

/* ---- semaphores ----------------------------------------------------------------------------- */

/* Seed 5261. Two leases are wanted, and the second is given back too late for the longest hold of
 * the first: its time begins when both are given out. */
static void the_longest_hold_begins_with_the_last_lease(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct party a, b;
    party_open_with(&a, p, 0, (clave_semaphore_options){.limit = 2, .max_hold_ms = 1000});
    party_open(&b, p, 1, 2);
    assert_int_equal(party_acquire(&b, 1, SEAT_EVER), CLAVE_OK);
    party_acquire(&a, 2, SEAT_EVER);
    pair_advance(p, 3500);
    assert_int_equal(a.answers, 0);
    assert_int_equal(party_leases_at_server(p), 3);
    party_release(&b);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.n, 2);
    pair_advance(p, 900);
    assert_int_equal(a.lost, 0);
    pair_advance(p, 200);
    assert_int_equal(a.lost, 2);
    assert_int_equal(a.why, CLAVE_EMAXHOLD);
    party_close(&a);
    party_close(&b);
    pair_free(p);
}

/* Seed 6792. A process is stopped beyond the deadline, and learns first that it is its turn: it
 * asks for no lease any more. */
static void no_lease_is_asked_for_behind_the_deadline(void **state)
{
    (void)state;
    struct pair *p = world(3);
    struct party a, b, c;
    party_open(&a, p, 0, 1);
    party_open(&b, p, 1, 1);
    party_open(&c, p, 2, 1);
    assert_int_equal(party_acquire(&c, 1, SEAT_EVER), CLAVE_OK);
    party_acquire(&b, 1, SEAT_EVER);
    party_acquire(&a, 1, 2000);
    pair_freeze(p, 0, true);
    party_release(&c);
    assert_int_equal(b.n, 1);
    pair_advance(p, 3000);
    /* It has looked at its clock before it was stopped. */
    feed_at_once(p, 0);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.err, CLAVE_EBUSY);
    pair_freeze(p, 0, false);
    party_close(&a);
    party_close(&b);
    party_close(&c);
    pair_free(p);
}

/* Seed 215586. A leader waits for leadership, is stopped before it is told that it has it, and
 * hears first that it has lost it: it waits on. */
static void who_leads_no_more_is_not_told_that_it_does(void **state)
{
    (void)state;
    struct pair *p = world(1);
    struct stand a;
    stand_as(&a, p, 0, "a");
    assert_true(stand_heard(&a, "L"));
    pair_freeze(p, 0, true);
    stand_await(&a, -1);
    pair_refuse(p, 0, true);
    pair_advance(p, 2 * TIMEOUT);
    pair_freeze(p, 0, false);
    pair_advance(p, 1);
    assert_true(stand_heard(&a, "n"));
    assert_int_equal(a.answers, 0);
    pair_refuse(p, 0, false);
    pair_advance(p, 2 * TIMEOUT);
    assert_true(stand_leads(&a));
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.err, CLAVE_OK);
    stand_close(&a);
    pair_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_watch_that_fires_under_a_look_is_set_again),
        cmocka_unit_test(tokens_grow_past_a_downgrade),
        cmocka_unit_test(who_takes_over_from_a_try_waits_on),
        cmocka_unit_test(an_owner_is_asked_behind_being_told_that_it_holds),
        cmocka_unit_test(a_reading_that_failed_is_begun_again),
        cmocka_unit_test(a_limit_is_followed_though_memory_was_short),
        cmocka_unit_test(a_path_that_is_made_meanwhile_is_watched),
        cmocka_unit_test(a_value_that_may_be_there_is_taken_back),
        cmocka_unit_test(the_longest_hold_begins_with_the_last_lease),
        cmocka_unit_test(no_lease_is_asked_for_behind_the_deadline),
        cmocka_unit_test(who_leads_no_more_is_not_told_that_it_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
