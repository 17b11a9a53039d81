/* The watch on a contender's own node: what makes it look again. On a standalone server nothing
 * else tells a holder that its node was deleted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "lib/failmem.h"
#include "lib/mutex_owner.h"

/* The watch on a holder's node fires for a write, and there is no memory to look again:
 * it looks later. */
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

/* A holder looks at its node, whose watch is armed already; somebody writes to it before the
 * look arrives, and the watch is gone. It has to be set again. (Seed 4047, docs/simulation.md.) */
static void a_watch_that_fires_under_a_look_is_set_again(void **state)
{
    (void)state;
    clave_mutex_options o = {.size = sizeof o, .revocable = true};
    struct pair *p = pair_new(&(struct pair_options){.clients = 2, .timeout_ms = 6000});
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_holder_looks_again_when_it_could_not),
        cmocka_unit_test(a_watch_that_fires_under_a_look_is_set_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
