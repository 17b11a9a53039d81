/* The mutex when memory runs out: an error that is told or an attempt that is made up for, never
 * a grant that is none, and nothing left. */
#include "lib/each_fault.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

enum { TIMEOUT = 6000 };

/* The client's memory fails while an owner acquires, twice, and another waits after it. */
static void acquire_and_wait(struct memnet *p, struct mutex_owner *a, struct mutex_owner *b)
{
    clave_err first = owner_acquire(a, 10000);
    memnet_advance(p, 3000);
    assert_true(first == CLAVE_OK || first == CLAVE_ENOMEM);
    assert_int_equal(a->answers, first == CLAVE_OK);
    assert_int_equal(owner_holds(a), a->answers && a->err == CLAVE_OK);
    clave_err behind = owner_acquire(b, 10000);
    memnet_advance(p, 1000);
    assert_true(behind == CLAVE_OK || behind == CLAVE_ENOMEM);
    assert_false(owner_holds(a) && owner_holds(b));
    if (owner_holds(a)) {
        bool again = owner_acquire(a, 1000) == CLAVE_OK;
        if (again)
            assert_int_equal(owner_release_confirmed(a) == CLAVE_OK || owner_release(a) == CLAVE_OK,
                             true);
        assert_int_equal(owner_release(a), CLAVE_OK);
    }
    memnet_advance(p, 12000);
    assert_int_equal(b->answers, behind == CLAVE_OK);
    assert_int_equal(owner_holds(b), b->answers && b->err == CLAVE_OK);
}

TEST_EACH_ALLOCATION(every_allocation_may_fail_once, 40)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_on(mem, 1, TIMEOUT);
    struct mutex_owner a, b;
    clave_mutex_options o = {.size = sizeof o, .data = "x", .len = 1, .revocable = true};
    failmem_arm(mem, which, 1);
    clave_err err = owner_open(&a, p, 0, "/x/l", &o);
    assert_true(err == CLAVE_OK || err == CLAVE_ENOMEM);
    if (err == CLAVE_OK) {
        owner_share(&b, &a, 7);
        acquire_and_wait(p, &a, &b);
        owner_close(&a);
    }
    memnet_advance(p, 3000);
    failmem_disarm(mem);
    /* A watch may stay: to have the server forget it takes memory as well. */
    assert_int_equal(memnet_stats(p).ephemerals, 0);
}
