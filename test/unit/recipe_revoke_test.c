/* Asking for a lock that another holds: Curator's Revoker, for every kind of lock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/semaphore_user.h"

static const clave_mutex_options revocable = {.size = sizeof revocable, .revocable = true};

static struct pair *world(size_t clients)
{
    return pair_new(&(struct pair_options){.clients = clients});
}

static void on_asked_for(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    *(clave_err *)arg = res->err;
}

static clave_err revoke(struct pair *p, size_t by, const char *node)
{
    clave_err done = CLAVE_ETIMEDOUT;
    clave_err err = clave_async_revoke(p->end[by].c, node, on_asked_for, &done);
    pair_settle(p);
    return err == CLAVE_OK ? done : err;
}

/* The Revoker wakes the holder's listener; when that lets go, the second lock acquires. */
static void testRevoking(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seat a, b;
    char node[160];
    seat_open(&a, p, 0, "/l", &revocable);
    seat_open(&b, p, 1, "/l", NULL);
    seat_acquire(&a, SEAT_EVER);
    seat_acquire(&b, SEAT_EVER);
    assert_int_equal(a.asked, 0);
    snprintf(node, sizeof node, "%s", seat_grant(&a).node);
    assert_int_equal(revoke(p, 1, node), CLAVE_OK);
    assert_int_equal(a.asked, 1);
    assert_true(seat_holds(&a)); /* it is only asked */
    assert_int_equal(a.lost, 0);
    pair_advance(p, 60000);
    assert_int_equal(a.asked, 1);
    assert_int_equal(revoke(p, 1, node), CLAVE_OK);
    assert_int_equal(a.asked, 2);
    assert_int_equal(seat_release(&a), CLAVE_OK);
    assert_true(seat_holds(&b));
    assert_int_equal(revoke(p, 1, node), CLAVE_ENONODE);
    seat_close(&a);
    seat_close(&b);
    party_assert_no_leftovers(p);
    pair_free(p);
}

static void one_that_is_not_revocable_hears_nothing(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seat a;
    seat_open(&a, p, 0, "/l", NULL);
    seat_acquire(&a, SEAT_EVER);
    assert_int_equal(revoke(p, 1, seat_grant(&a).node), CLAVE_OK);
    pair_advance(p, 60000);
    assert_int_equal(a.asked, 0);
    assert_true(seat_holds(&a));
    seat_close(&a);
    pair_free(p);
}

/* Asked for while it waits: told when it holds, since only then can it let go. */
static void one_that_waits_hears_of_it_when_it_holds(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seat a, b;
    char names[2][96], node[128];
    seat_open(&a, p, 0, "/l", NULL);
    seat_open(&b, p, 1, "/l", &revocable);
    seat_acquire(&a, SEAT_EVER);
    seat_acquire(&b, SEAT_EVER);
    assert_int_equal(seat_list(p, 0, "/l", names, 2), 2);
    snprintf(node, sizeof node, "/l/%s",
             strstr(seat_grant(&a).node, names[0]) ? names[1] : names[0]);
    assert_int_equal(revoke(p, 0, node), CLAVE_OK);
    assert_int_equal(b.asked, 0);
    seat_release(&a);
    assert_true(seat_holds(&b));
    assert_int_equal(b.asked, 1);
    seat_close(&a);
    seat_close(&b);
    party_assert_no_leftovers(p);
    pair_free(p);
}

static void both_sides_of_a_read_write_lock_can_be_asked(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seats a;
    seats_open(&a, p, 0, "/rw", &revocable);
    seat_acquire(&a.write, SEAT_EVER);
    seat_acquire(&a.read, SEAT_EVER);
    assert_int_equal(revoke(p, 1, seat_grant(&a.read).node), CLAVE_OK);
    assert_int_equal(a.read.asked, 1);
    assert_int_equal(a.write.asked, 0);
    assert_int_equal(revoke(p, 1, seat_grant(&a.write).node), CLAVE_OK);
    assert_int_equal(a.write.asked, 1);
    seats_close(&a);
    party_assert_no_leftovers(p);
    pair_free(p);
}

static void a_lease_can_be_asked_for(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct party a, b;
    clave_grant g;
    clave_semaphore_options o = {.limit = 2, .revocable = true};
    assert_int_equal(party_open_with(&a, p, 0, o), CLAVE_OK);
    party_open(&b, p, 1, 2);
    party_acquire(&a, 2, SEAT_EVER);
    party_acquire(&b, 1, SEAT_EVER);
    assert_true(clave_async_lease_grant(a.held[0], &g));
    assert_int_equal(revoke(p, 1, g.node), CLAVE_OK);
    assert_int_equal(a.asked, 1);
    assert_int_equal(party_release(&a), CLAVE_OK);
    assert_int_equal(b.n, 1);
    party_close(&a);
    party_close(&b);
    party_assert_no_leftovers(p);
    pair_free(p);
}

/* The word comes while the holder is cut off: it is heard of after the reconnect. */
static void a_request_is_heard_of_after_a_reconnect(void **state)
{
    (void)state;
    struct pair *p = world(2);
    struct seat a;
    char node[160];
    seat_open(&a, p, 0, "/l", &revocable);
    seat_acquire(&a, SEAT_EVER);
    snprintf(node, sizeof node, "%s", seat_grant(&a).node);
    pair_refuse(p, 0, true);
    assert_int_equal(revoke(p, 1, node), CLAVE_OK);
    pair_advance(p, 1000);
    assert_int_equal(a.asked, 0);
    pair_refuse(p, 0, false);
    pair_advance(p, 3000);
    assert_true(seat_holds(&a));
    assert_int_equal(a.asked, 1);
    seat_close(&a);
    party_assert_no_leftovers(p);
    pair_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(testRevoking),
        cmocka_unit_test(one_that_is_not_revocable_hears_nothing),
        cmocka_unit_test(one_that_waits_hears_of_it_when_it_holds),
        cmocka_unit_test(both_sides_of_a_read_write_lock_can_be_asked),
        cmocka_unit_test(a_lease_can_be_asked_for),
        cmocka_unit_test(a_request_is_heard_of_after_a_reconnect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
