/* The watch on a contender's own node: what makes it look again. On a standalone server nothing
 * else tells a holder that its node was deleted. */
#include "lib/failmem.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

/* Time for another attempt, and little beside the shortest session. (Seed 207514, as below.) */
enum { SOON_MS = 50 };

/* The watch on a holder's node fires for a write, and there is no memory to look again:
 * it looks soon after. */
TEST(a_holder_looks_again_when_it_could_not)
{
    struct failmem mem;
    failmem_init(&mem);
    struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2, .mem = &mem.mem});
    struct mutex_owner a;
    char node[160];
    owner_open(&a, p, 0, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    memnet_advance(p, 9000); /* it is watched by now */
    snprintf(node, sizeof node, "%s", owner_grant(&a).node);
    for (int i = 0; i < 8; i++) { /* each time as soon */
        memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_NOTIFICATION, MEMNET_HOLD, 0});
        assert_int_equal(memnet_set(p, 1, node, "x"), CLAVE_OK);
        failmem_arm(&mem, 1, 1);
        memnet_clear(p);
        memnet_settle(p);
        assert_true(mem.failed);
        memnet_advance(p, SOON_MS);
    }
    assert_int_equal(memnet_delete(p, 1, node), CLAVE_OK);
    assert_int_equal(a.lost, 1);
    assert_int_equal(a.why, CLAVE_ENONODE);
    owner_close(&a);
    memnet_free(p);
    assert_int_equal(mem.live, 0);
}

/* A waiter is asked for the lock; when it holds it, there is no memory to look at its node. */
TEST(who_was_asked_while_it_waited_is_told_when_it_could_not_look)
{
    struct failmem mem;
    failmem_init(&mem);
    clave_mutex_options o = {.size = sizeof o, .revocable = true};
    struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2, .mem = &mem.mem});
    struct mutex_owner a, b;
    char names[2][96], node[160];
    owner_open(&b, p, 1, "/l", NULL);
    owner_open(&a, p, 0, "/l", &o);
    owner_acquire(&b, OWNER_FOREVER);
    owner_acquire(&a, OWNER_FOREVER);
    memnet_advance(p, 9000); /* its watch is no longer a matter of a long hold */
    assert_int_equal(memnet_list(p, 1, "/l", names, 2), 2);
    bool second = strcmp(strrchr(names[0], '-'), strrchr(names[1], '-')) < 0;
    snprintf(node, sizeof node, "/l/%s", names[second]);
    assert_int_equal(memnet_set(p, 1, node, "__REVOKE__"), CLAVE_OK);
    assert_int_equal(a.asked, 0);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_NOTIFICATION, MEMNET_HOLD, 0});
    owner_release(&b);
    failmem_arm(&mem, 1, 1);
    memnet_clear(p);
    memnet_settle(p);
    assert_true(mem.failed);
    assert_true(owner_holds(&a));
    memnet_advance(p, SOON_MS);
    assert_int_equal(a.asked, 1);
    owner_close(&a);
    owner_close(&b);
    memnet_free(p);
    assert_int_equal(mem.live, 0);
}

/* A holder looks at its node, whose watch is armed already; somebody writes to it before the
 * look arrives, and the watch is gone. It has to be set again. (Seed 4047,
 * docs/evidence/simulation.md.) */
TEST(a_watch_that_fires_under_a_look_is_set_again)
{
    clave_mutex_options o = {.size = sizeof o, .revocable = true};
    CLOSED_BY(memnet_freed)
    struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2, .timeout_ms = 6000});
    CLOSED_BY(owner_close) struct mutex_owner a, b;
    owner_open(&a, p, 0, "/l", &o);
    owner_open(&b, p, 1, "/l", NULL);
    owner_acquire(&b, OWNER_FOREVER);
    owner_acquire(&a, OWNER_FOREVER);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REQUEST, OP_GET_DATA, MEMNET_HOLD, 0});
    owner_release(&b);
    assert_true(owner_holds(&a));
    memnet_set(p, 1, owner_grant(&a).node, "__REVOKE__");
    memnet_clear(p);
    memnet_settle(p);
    assert_int_equal(a.asked, 1);
    memnet_delete(p, 1, owner_grant(&a).node);
    assert_int_equal(a.lost, 1);
    assert_int_equal(a.why, CLAVE_ENONODE);
}
