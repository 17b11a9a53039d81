/* What real faults on real servers (test/real) have found, each as a short timeline of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/seat.h"

enum { TIMEOUT = 4000, STEP = 10 };

/* make real-cutoff, "leader". A leader that is cut off from its followers does not know for ten
 * seconds that it is none any more. It commits nothing, but by itself it answers reads, and the
 * handshake of a session it knows, as often as a client comes back. The client took that for a
 * proof: it held for three session timeouts, while the new leader was about to expire it. */
static void a_handshake_with_a_deposed_leader_proves_nothing(void **state)
{
    (void)state;
    struct seat a;
    struct pair *p =
        pair_new(&(struct pair_options){.clients = 1, .timeout_ms = TIMEOUT, .ensemble = true});
    seat_open(&a, p, 0, "/l", NULL);
    seat_acquire(&a, SEAT_EVER);
    assert_true(seat_holds(&a));
    pair_advance(p, 2 * TIMEOUT);
    assert_true(seat_holds(&a));
    pair_rule(p, (struct pair_rule){0, PAIR_REQUEST, OP_MULTI, PAIR_HOLD, 0});
    int64_t last = p->now + TIMEOUT; /* no proof is newer than this, and none will come */
    while (p->now < last + TIMEOUT) {
        pair_advance(p, STEP);
        assert_true(!seat_holds(&a) || seat_grant(&a).deadline < last);
        assert_true(!seat_holds(&a) || p->now < last);
    }
    assert_true(pair_saw(p, 0, CLAVE_STATE_RECONNECTED));
    assert_int_equal(a.lost, 1);
    pair_clear(p);
    pair_settle(p);
    seat_close(&a);
    pair_free(p);
}

/* The other side of it: a holder that comes back to a leader which is one holds on, and for longer
 * than the deadline it came with. */
static void a_holder_that_comes_back_holds_on(void **state)
{
    (void)state;
    struct seat a;
    struct pair *p =
        pair_new(&(struct pair_options){.clients = 1, .timeout_ms = TIMEOUT, .ensemble = true});
    seat_open(&a, p, 0, "/l", NULL);
    seat_acquire(&a, SEAT_EVER);
    for (int i = 0; i < 10; i++) {
        pair_cut(p, 0);
        pair_advance(p, TIMEOUT / 4);
        assert_int_equal(clave_async_client_state(p->end[0].c), CLAVE_STATE_RECONNECTED);
        assert_true(seat_grant(&a).deadline > p->now + TIMEOUT / 2);
    }
    assert_int_equal(a.lost, 0);
    seat_close(&a);
    pair_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handshake_with_a_deposed_leader_proves_nothing),
        cmocka_unit_test(a_holder_that_comes_back_holds_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
