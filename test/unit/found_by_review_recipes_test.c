/* What reading has found in the recipes, each as a short timeline of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "clave/async/latch.h"
#include "lib/failmem.h"
#include "lib/script.h"
#include "lib/seat.h"
#include "recipe/contender/fenced_write.h"

/* Between close and CLOSED nothing can be deleted any more: the release was done within its
 * own call, callback and all. */
static void a_release_while_the_client_closes_is_answered_later(void **state)
{
    (void)state;
    struct pair *p = pair_new(&(struct pair_options){.clients = 1});
    struct seat a;
    seat_open(&a, p, 0, "/l", NULL);
    seat_acquire(&a, SEAT_EVER);
    assert_true(seat_holds(&a));
    pair_advance(p, 5000); /* whatever the hold began has ended */
    pair_rule(p, (struct pair_rule){0, PAIR_REQUEST, OP_CLOSE_SESSION, PAIR_HOLD, 0});
    clave_async_client_close(p->end[0].c, p->now);
    assert_int_equal(clave_async_mutex_release(a.m, 0, seat_departed, &a), CLAVE_OK);
    assert_int_equal(a.departures, 0);
    pair_settle(p);
    assert_int_equal(a.departures, 1);
    assert_int_equal(a.left, CLAVE_ECLOSED);
    seat_close(&a);
    pair_free(p);
}

struct pair_of_owners {
    clave_async_mutex *m;
    unsigned lost, answers;
    clave_err err;
};

static void on_answer(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct pair_of_owners *both = arg;
    (void)m;
    both->answers += owner == 2;
    both->err = err;
}

static void on_lost(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    struct pair_of_owners *both = arg;
    if (ev->kind != CLAVE_MUTEX_LOST)
        return;
    both->lost++;
    assert_int_equal(clave_async_mutex_cancel(m, 2), CLAVE_OK);
}

/* The client closes: the holder is told, and cancels another owner's acquire there. Its
 * answer was left to a tick that a closed client has no more. */
static void what_is_cancelled_by_the_last_events_is_answered(void **state)
{
    (void)state;
    struct pair_of_owners both = {0};
    clave_mutex_options o = {.size = sizeof o, .event_cb = on_lost, .event_arg = &both};
    struct pair *p = pair_new(&(struct pair_options){.clients = 1});
    clave_async_client *c = p->end[0].c;
    assert_int_equal(clave_async_mutex_new(&both.m, c, "/l", &o), CLAVE_OK);
    for (uint64_t owner = 1; owner <= 2; owner++)
        assert_int_equal(clave_async_mutex_acquire(both.m, owner, CLAVE_NEVER, on_answer, &both),
                         CLAVE_OK);
    pair_settle(p);
    assert_int_equal(both.err, CLAVE_OK);
    clave_async_client_abandon(c, p->now);
    assert_int_equal(both.lost, 1);
    assert_int_equal(both.answers, 1);
    assert_int_equal(both.err, CLAVE_ECANCELED);
    clave_async_mutex_free(both.m);
    pair_free(p);
}

/* A margin beyond what the server grants left nothing to hold: the first in the queue asked
 * for confirmations for ever, and kept all others out. */
static void a_margin_that_leaves_nothing_is_cut(void **state)
{
    (void)state;
    struct pair *p =
        pair_new(&(struct pair_options){.clients = 1, .timeout_ms = 100000, .margin_ms = 50000});
    struct seat a;
    int32_t timeout = clave_async_client_session_timeout(p->end[0].c);
    assert_true(timeout < 50000);
    for (int64_t least = 0; least <= 100000; least += 50000) {
        clave_mutex_options o = {.size = sizeof o, .min_valid_ms = least};
        seat_open(&a, p, 0, "/l", &o);
        seat_acquire(&a, 1000);
        assert_true(seat_holds(&a));
        assert_true(seat_grant(&a).deadline <= p->now + timeout / 2);
        seat_close(&a);
    }
    pair_free(p);
}

/* The watch on a holder's node fires for a write, and there is no memory to look again. On a
 * standalone server nothing else would tell that the node is deleted. */
static void a_holder_looks_again_when_it_could_not(void **state)
{
    (void)state;
    struct failmem mem;
    failmem_init(&mem);
    struct pair *p = pair_new(&(struct pair_options){.clients = 2, .mem = &mem.mem});
    struct seat a;
    char node[160];
    seat_open(&a, p, 0, "/l", NULL);
    seat_acquire(&a, SEAT_EVER);
    pair_advance(p, 9000); /* it is watched by now */
    snprintf(node, sizeof node, "%s", seat_grant(&a).node);
    pair_rule(p, (struct pair_rule){0, PAIR_REPLY, OP_NOTIFICATION, PAIR_HOLD, 0});
    assert_int_equal(seat_scribble(p, 1, node, "x"), CLAVE_OK);
    failmem_arm(&mem, 1, 1);
    pair_clear(p);
    pair_settle(p);
    assert_true(mem.failed);
    pair_advance(p, 9000);
    assert_int_equal(seat_remove(p, 1, node), CLAVE_OK);
    assert_int_equal(a.lost, 1);
    assert_int_equal(a.why, CLAVE_ENONODE);
    seat_close(&a);
    pair_free(p);
    assert_int_equal(mem.live, 0);
}

/* The same of a latch: of two candidates of one client the leader hears of the end first, and
 * withdraws the other, or what waits for it. */
struct candidates {
    clave_async_latch *leader, *other;
    unsigned answers, losses;
    clave_err err;
};

static void on_leadership(clave_async_latch *l, clave_err err, void *arg)
{
    struct candidates *both = arg;
    (void)l;
    both->answers++;
    both->err = err;
}

static void on_latch_event(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    struct candidates *both = arg;
    if (l != both->leader || ev->kind != CLAVE_LATCH_NOT_LEADER)
        return;
    both->losses++;
    assert_int_equal(clave_async_latch_cancel(both->other, on_leadership, both), CLAVE_OK);
}

static void what_a_latch_is_asked_by_the_last_events_is_answered(void **state)
{
    (void)state;
    struct candidates both = {0};
    struct failmem mem;
    failmem_init(&mem);
    clave_latch_options o = {.size = sizeof o, .event_cb = on_latch_event, .event_arg = &both};
    struct pair *p = pair_new(&(struct pair_options){.clients = 1, .mem = &mem.mem});
    clave_async_client *c = p->end[0].c;
    assert_int_equal(clave_async_latch_new(&both.other, c, "/l", &o), CLAVE_OK);
    assert_int_equal(clave_async_latch_new(&both.leader, c, "/l", &o), CLAVE_OK);
    assert_int_equal(clave_async_latch_start(both.leader), CLAVE_OK);
    pair_settle(p);
    assert_true(clave_async_latch_has_leadership(both.leader, p->now));
    assert_int_equal(clave_async_latch_start(both.other), CLAVE_OK);
    assert_int_equal(clave_async_latch_await(both.other, CLAVE_NEVER, on_leadership, &both),
                     CLAVE_OK);
    pair_settle(p);
    clave_async_client_abandon(c, p->now);
    assert_int_equal(both.losses, 1);
    assert_int_equal(both.answers, 1);
    assert_int_equal(both.err, CLAVE_ECANCELED);
    clave_async_latch_free(both.leader);
    clave_async_latch_free(both.other);
    pair_free(p);
    assert_int_equal(mem.live, 0);
}

static void on_guarded(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    *(clave_err *)arg = res->err;
}

/* The server says that the session is over: the grant is as well, and nothing was done. */
static void a_guarded_write_of_an_expired_session_is_lost(void **state)
{
    (void)state;
    struct script s;
    clave_err err = CLAVE_OK;
    clave_op op = {.kind = CLAVE_OP_SET, .path = "/x", .version = -1};
    script_open(&s, NULL);
    script_connect(&s, true);
    assert_int_equal(clave__fenced_write_one(s.c, "/l/a", &op, on_guarded, &err), CLAVE_OK);
    script_expect(&s, OP_MULTI);
    script_answer(&s, CLAVE_EEXPIRED, NULL);
    assert_int_equal(err, CLAVE_ELOST);
    script_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_release_while_the_client_closes_is_answered_later),
        cmocka_unit_test(what_is_cancelled_by_the_last_events_is_answered),
        cmocka_unit_test(a_margin_that_leaves_nothing_is_cut),
        cmocka_unit_test(a_holder_looks_again_when_it_could_not),
        cmocka_unit_test(what_a_latch_is_asked_by_the_last_events_is_answered),
        cmocka_unit_test(a_guarded_write_of_an_expired_session_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
