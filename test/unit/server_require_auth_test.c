/* server_require_auth_test.c - require_auth: what a client may do before it has authenticated, what
 * it gets for the rest, and that every scheme named will do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/memserver.h"

static clave_err authenticate(struct memserver_conn *c)
{
    union wire_body body = {.auth = {0, clave__jbytes("digest"), clave__jbytes("joe:secret")}};
    return memserver_call(c, OP_AUTH, &body, NULL);
}

static void before_and_after(void **state)
{
    (void)state;
    struct server_options o = {.require_auth = "x509,digest"};
    struct memserver d;
    struct memserver_conn c;
    union wire_body none = {0};
    memserver_open(&d, &o);
    memserver_connect(&c, &d, 30000);
    assert_int_equal(memserver_call(&c, OP_PING, &none, NULL), CLAVE_OK);
    assert_int_equal(authenticate(&c), CLAVE_OK);
    assert_int_equal(memserver_create(&c, "/a", "", 0), CLAVE_OK);
    memserver_hang_up(&c);
    memserver_connect(&c, &d, 30000);
    assert_int_equal(memserver_call(&c, OP_CLOSE_SESSION, &none, NULL), CLAVE_OK);
    memserver_hang_up(&c);
    memserver_close(&d);
}

/* Reads and writes alike, and a read that shows nothing of the tree. */
static void refused(void **state)
{
    (void)state;
    static const int32_t ops[] = {OP_GET_DATA, OP_CREATE, OP_SYNC, OP_WHO_AM_I, OP_SET_WATCHES};
    struct server_options o = {.require_auth = "digest"};
    struct memserver d;
    memserver_open(&d, &o);
    size_t nodes = memserver_stats(&d).nodes;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        struct memserver_conn c;
        struct wire_reply_header h;
        struct jreader rest;
        union wire_body body = {.read.path = clave__jbytes("/")};
        if (ops[i] == OP_CREATE)
            body = memserver_create_body("/a", "", 0);
        if (ops[i] == OP_SET_WATCHES)
            memset(&body, 0, sizeof body);
        memserver_connect(&c, &d, 30000);
        int32_t xid = memserver_request(&c, ops[i], &body);
        memserver_request(&c, OP_PING, &body); /* unanswered */
        assert_true(memserver_next(&c, &h, &rest));
        assert_int_equal(h.xid, xid);
        assert_int_equal(h.zxid, 0);
        assert_int_equal(h.err, CLAVE_ESASLREQUIRED);
        assert_false(memserver_next(&c, &h, &rest));
        assert_null(c.c);
        memserver_hang_up(&c);
    }
    assert_int_equal(memserver_stats(&d).nodes, nodes);
    assert_non_null(strstr(d.lines, "it has not authenticated (--require-auth digest)"));
    memserver_close(&d);
}

static void a_user_of_the_machine(void **state)
{
    (void)state;
    struct server_options o = {.require_auth = "uid"};
    struct memserver d;
    struct memserver_conn local, remote;
    memserver_open(&d, &o);
    memserver_connect_local(&local, &d, 1000);
    assert_int_equal(memserver_create(&local, "/a", "", 0), CLAVE_OK);
    memserver_connect(&remote, &d, 30000);
    assert_int_equal(authenticate(&remote), CLAVE_OK); /* which is not what is asked for */
    assert_int_equal(memserver_create(&remote, "/b", "", 0), CLAVE_ESASLREQUIRED);
    memserver_hang_up(&local);
    memserver_hang_up(&remote);
    memserver_close(&d);
}

/* Connections from before meet it with their next request. */
static void while_it_serves(void **state)
{
    (void)state;
    struct memserver d;
    struct memserver_conn c;
    memserver_open(&d, NULL);
    memserver_connect(&c, &d, 30000);
    assert_int_equal(memserver_create(&c, "/a", "", 0), CLAVE_OK);
    struct server_options o = d.o;
    o.require_auth = "digest";
    assert_int_equal(clave__server_change(d.s, &o), CLAVE_OK);
    assert_int_equal(memserver_create(&c, "/b", "", 0), CLAVE_ESASLREQUIRED);
    memserver_hang_up(&c);
    memserver_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_and_after),
        cmocka_unit_test(refused),
        cmocka_unit_test(a_user_of_the_machine),
        cmocka_unit_test(while_it_serves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
