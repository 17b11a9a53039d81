/* address_limit_test.c - how many connections one address may have. */
#include "rig.h"

#include "base/memory.h"
#include "runtime/server/address_limit.h"

static struct clave_mem mem;
static struct address_limit limit;

static int set_up(void **state)
{
    (void)state;
    mem = clave__mem_or_default(NULL);
    return clave__address_limit_init(&limit, &mem) == CLAVE_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    clave__address_limit_fini(&limit); /* asserts that no connection is counted */
    return 0;
}

static struct peer_addr peer(uint8_t family, uint8_t net, uint8_t host)
{
    struct peer_addr p = {.family = family};
    p.ip[0] = net;
    p.ip[15] = host;
    return p;
}

/* NULL: it is turned away. */
static struct address *enter(struct peer_addr p)
{
    struct address *a;
    return clave__address_limit_enter(&limit, &p, &a) ? NULL : a;
}

static void leave(struct address *a)
{
    clave__address_limit_leave(&limit, a, false);
}

TEST_WITH(each_address_has_its_own, set_up, tear_down)
{
    clave__address_limit_set(&limit, 2, 0);
    struct address *a = enter(peer(4, 1, 1)), *b = enter(peer(4, 1, 1)), *c = enter(peer(4, 1, 2));
    assert_ptr_equal(a, b);
    assert_ptr_not_equal(a, c);
    assert_null(enter(peer(4, 1, 1)));
    leave(a);
    assert_non_null(enter(peer(4, 1, 1)));
    leave(a);
    leave(a);
    leave(c);
}

TEST_WITH(a_network_of_ipv6_is_one_address, set_up, tear_down)
{
    clave__address_limit_set(&limit, 1, 0);
    struct address *a = enter(peer(6, 1, 1)), *b = enter(peer(6, 2, 1));
    assert_non_null(a);
    assert_non_null(b);
    assert_null(enter(peer(6, 1, 2)));
    leave(a);
    leave(b);
}

TEST_WITH(a_session_makes_room_for_one_without, set_up, tear_down)
{
    clave__address_limit_set(&limit, 3, 1);
    struct address *a = enter(peer(4, 1, 1));
    assert_null(enter(peer(4, 1, 1)));
    clave__address_limit_note_session(a);
    assert_non_null(enter(peer(4, 1, 1)));
    clave__address_limit_leave(&limit, a, true);
    assert_null(enter(peer(4, 1, 1)));
    leave(a);
}

TEST_WITH(unix_sockets_are_not_counted, set_up, tear_down)
{
    struct address *a;
    const struct peer_addr local = peer(0, 0, 0);
    clave__address_limit_set(&limit, 1, 1);
    for (int i = 0; i < 3; i++) {
        assert_null(clave__address_limit_enter(&limit, &local, &a));
        assert_null(a);
    }
    clave__address_limit_note_session(NULL);
    leave(NULL);
}

TEST_WITH(the_default_is_sixty_and_a_negative_number_no_limit, set_up, tear_down)
{
    struct address *a = NULL;
    int n = 0;
    clave__address_limit_set(&limit, 0, 0);
    for (struct address *one; (one = enter(peer(4, 1, 1))); n++)
        a = one;
    assert_int_equal(n, 60);
    clave__address_limit_set(&limit, -1, 0);
    assert_non_null(enter(peer(4, 1, 1)));
    for (n++; n > 0; n--)
        leave(a);
}
