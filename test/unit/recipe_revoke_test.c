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

static struct memnet *world(size_t clients)
{
    return memnet_new(&(struct memnet_options){.clients = clients});
}

static void on_asked_for(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    *(clave_err *)arg = res->err;
}

static clave_err revoke(struct memnet *p, size_t by, const char *node)
{
    clave_err done = CLAVE_ETIMEDOUT;
    clave_err err = clave_async_revoke(p->clients[by].c, node, on_asked_for, &done);
    memnet_settle(p);
    return err == CLAVE_OK ? done : err;
}

/* The Revoker wakes the holder's listener; when that lets go, the second lock acquires. */
static void testRevoking(void **state)
{
    (void)state;
    struct memnet *p = world(2);
    struct mutex_owner a, b;
    char node[160];
    owner_open(&a, p, 0, "/l", &revocable);
    owner_open(&b, p, 1, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&b, OWNER_FOREVER);
    assert_int_equal(a.asked, 0);
    snprintf(node, sizeof node, "%s", owner_grant(&a).node);
    assert_int_equal(revoke(p, 1, node), CLAVE_OK);
    assert_int_equal(a.asked, 1);
    assert_true(owner_holds(&a)); /* it is only asked */
    assert_int_equal(a.lost, 0);
    memnet_advance(p, 60000);
    assert_int_equal(a.asked, 1);
    assert_int_equal(revoke(p, 1, node), CLAVE_OK);
    assert_int_equal(a.asked, 2);
    assert_int_equal(owner_release(&a), CLAVE_OK);
    assert_true(owner_holds(&b));
    assert_int_equal(revoke(p, 1, node), CLAVE_ENONODE);
    owner_close(&a);
    owner_close(&b);
    semaphore_user_assert_no_leftovers(p);
    memnet_free(p);
}

static void one_that_is_not_revocable_hears_nothing(void **state)
{
    (void)state;
    struct memnet *p = world(2);
    struct mutex_owner a;
    owner_open(&a, p, 0, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    assert_int_equal(revoke(p, 1, owner_grant(&a).node), CLAVE_OK);
    memnet_advance(p, 60000);
    assert_int_equal(a.asked, 0);
    assert_true(owner_holds(&a));
    owner_close(&a);
    memnet_free(p);
}

/* Asked for while it waits: told when it holds, since only then can it let go. */
static void one_that_waits_hears_of_it_when_it_holds(void **state)
{
    (void)state;
    struct memnet *p = world(2);
    struct mutex_owner a, b;
    char names[2][96], node[128];
    owner_open(&a, p, 0, "/l", NULL);
    owner_open(&b, p, 1, "/l", &revocable);
    owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&b, OWNER_FOREVER);
    assert_int_equal(memnet_list(p, 0, "/l", names, 2), 2);
    snprintf(node, sizeof node, "/l/%s",
             strstr(owner_grant(&a).node, names[0]) ? names[1] : names[0]);
    assert_int_equal(revoke(p, 0, node), CLAVE_OK);
    assert_int_equal(b.asked, 0);
    owner_release(&a);
    assert_true(owner_holds(&b));
    assert_int_equal(b.asked, 1);
    owner_close(&a);
    owner_close(&b);
    semaphore_user_assert_no_leftovers(p);
    memnet_free(p);
}

static void both_sides_of_a_read_write_lock_can_be_asked(void **state)
{
    (void)state;
    struct memnet *p = world(2);
    struct rwlock_owner a;
    rwlock_owner_open(&a, p, 0, "/rw", &revocable);
    owner_acquire(&a.write, OWNER_FOREVER);
    owner_acquire(&a.read, OWNER_FOREVER);
    assert_int_equal(revoke(p, 1, owner_grant(&a.read).node), CLAVE_OK);
    assert_int_equal(a.read.asked, 1);
    assert_int_equal(a.write.asked, 0);
    assert_int_equal(revoke(p, 1, owner_grant(&a.write).node), CLAVE_OK);
    assert_int_equal(a.write.asked, 1);
    rwlock_owner_close(&a);
    semaphore_user_assert_no_leftovers(p);
    memnet_free(p);
}

static void a_lease_can_be_asked_for(void **state)
{
    (void)state;
    struct memnet *p = world(2);
    struct semaphore_user a, b;
    clave_grant g;
    clave_semaphore_options o = {.limit = 2, .revocable = true};
    assert_int_equal(semaphore_user_open_with(&a, p, 0, o), CLAVE_OK);
    semaphore_user_open(&b, p, 1, 2);
    semaphore_user_acquire(&a, 2, OWNER_FOREVER);
    semaphore_user_acquire(&b, 1, OWNER_FOREVER);
    assert_true(clave_async_lease_grant(a.held[0], &g));
    assert_int_equal(revoke(p, 1, g.node), CLAVE_OK);
    assert_int_equal(a.asked, 1);
    assert_int_equal(semaphore_user_release(&a), CLAVE_OK);
    assert_int_equal(b.n, 1);
    semaphore_user_close(&a);
    semaphore_user_close(&b);
    semaphore_user_assert_no_leftovers(p);
    memnet_free(p);
}

/* The word comes while the holder is cut off: it is heard of after the reconnect. */
static void a_request_is_heard_of_after_a_reconnect(void **state)
{
    (void)state;
    struct memnet *p = world(2);
    struct mutex_owner a;
    char node[160];
    owner_open(&a, p, 0, "/l", &revocable);
    owner_acquire(&a, OWNER_FOREVER);
    snprintf(node, sizeof node, "%s", owner_grant(&a).node);
    memnet_refuse(p, 0, true);
    assert_int_equal(revoke(p, 1, node), CLAVE_OK);
    memnet_advance(p, 1000);
    assert_int_equal(a.asked, 0);
    memnet_refuse(p, 0, false);
    memnet_advance(p, 3000);
    assert_true(owner_holds(&a));
    assert_int_equal(a.asked, 1);
    owner_close(&a);
    semaphore_user_assert_no_leftovers(p);
    memnet_free(p);
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
