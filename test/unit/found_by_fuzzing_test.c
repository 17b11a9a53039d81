/* found_by_fuzzing_test.c - what test/fuzz has found in the client; what it found in the server is
 * in the server's tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/script.h"
#include "lib/seat.h"

/* A node has no children: the result has names all the same, none of them. */
static void an_empty_list_is_a_list(void **state)
{
    (void)state;
    struct script s;
    struct outcome out = {0};
    struct wire_reply none = {.names = {0, NULL, 0}};
    script_open(&s, NULL);
    script_connect(&s, true);
    assert_int_equal(clave_async_children(s.c, "/a", NULL, script_outcome, &out), CLAVE_OK);
    script_expect(&s, OP_GET_CHILDREN2);
    script_answer(&s, CLAVE_OK, &none);
    assert_int_equal(out.times, 1);
    assert_int_equal(out.err, CLAVE_OK);
    assert_true(out.has_names);
    assert_int_equal(out.nnames, 0);
    script_close(&s);
}

/* Asked for before there was a session, and not done when the client closes and its session is
 * refused: it is told once. */
static void a_guaranteed_delete_is_told_when_the_client_closes(void **state)
{
    (void)state;
    struct script s;
    struct outcome out = {0};
    script_open(&s, NULL);
    assert_int_equal(clave_async_delete_guaranteed(s.c, "/l", script_outcome, &out), CLAVE_OK);
    script_dial(&s);
    script_shake(&s, SCRIPT_SESSION, SCRIPT_TIMEOUT, false);
    clave_async_client_close(s.c, s.now);
    script_hang_up(&s); /* the request has not left: it will be sent again */
    script_at(&s, s.now + 1000);
    script_dial(&s);
    script_shake(&s, 0, 0, false);
    assert_int_equal(clave_async_client_state(s.c), CLAVE_STATE_CLOSED);
    assert_int_equal(out.times, 1);
    assert_int_equal(out.err, CLAVE_ECLOSED);
    script_close(&s);
    assert_int_equal(out.times, 1);
}

/* Held, asked for once more, and freed before the callback of that has run: it is not held. */
static void freeing_a_lock_held_again_cancels_the_second_hold(void **state)
{
    (void)state;
    const struct pair_options o = {.clients = 1};
    struct pair *p = pair_new(&o);
    struct seat a;
    pair_settle(p);
    seat_open(&a, p, 0, "/l", NULL);
    seat_acquire(&a, SEAT_EVER);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.err, CLAVE_OK);
    assert_int_equal(seat_ask(&a, SEAT_EVER), CLAVE_OK);
    seat_close(&a);
    assert_int_equal(a.answers, 2);
    assert_int_equal(a.err, CLAVE_ECANCELED);
    pair_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_list_is_a_list),
        cmocka_unit_test(a_guaranteed_delete_is_told_when_the_client_closes),
        cmocka_unit_test(freeing_a_lock_held_again_cancels_the_second_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
