/* server_quota_test.c - quotas: what is counted, by whom, over a restart, and what hard limits
 * refuse. That Apache counts the same is in test/conform. */
#include "lib/memserver.h"
#include "lib/unit.h"

#define ROOT "/zookeeper/quota"

static void must_create(struct memserver_conn *c, const char *path, const char *data)
{
    clave_err err = memserver_create(c, path, data, MODE_PERSISTENT);
    if (err != CLAVE_OK)
        fail_msg("create %s: %s", path, clave_err_name(err));
}

static void open_place(struct memserver *d, struct memserver_conn *c, bool enforce)
{
    struct server_options o = {.enforce_quota = enforce};
    memserver_open(d, &o);
    memserver_connect(c, d, 10000);
    must_create(c, "/a", "123");
    must_create(c, ROOT "/a", "");
}

static void arm(struct memserver_conn *c, const char *limits)
{
    must_create(c, ROOT "/a/zookeeper_limits", limits);
    must_create(c, ROOT "/a/zookeeper_stats", "");
}

static void expect(struct memserver_conn *c, const char *text)
{
    struct wire_reply r;
    union wire_body get = {.read = {clave__jbytes(ROOT "/a/zookeeper_stats"), false}};
    assert_int_equal(memserver_call(c, OP_GET_DATA, &get, &r), CLAVE_OK);
    if (!clave__jbytes_eq(r.data, clave__jbytes(text)))
        fail_msg("%.*s, not %s", (int)r.data.n, r.data.p, text);
    assert_int_equal(r.stat.version, 0);
    assert_true(r.stat.mzxid == r.stat.czxid);
}

TEST(nodes_and_bytes_are_counted)
{
    CLOSED_BY(memserver_close) struct memserver d;
    struct memserver_conn c, other;
    open_place(&d, &c, false);
    arm(&c, "count=1,bytes=1");
    expect(&c, "count=1,bytes=3");
    must_create(&c, "/a/b", "12345"); /* beyond the limits, which are no hard ones */
    must_create(&c, "/ab", "not below");
    expect(&c, "count=2,bytes=8");
    assert_int_equal(memserver_set(&c, "/a/b", "1", -1), CLAVE_OK);
    expect(&c, "count=2,bytes=4");
    assert_int_equal(memserver_create(&c, "/a/b", "", MODE_PERSISTENT), CLAVE_ENODEEXISTS);
    expect(&c, "count=2,bytes=4");
    memserver_connect(&other, &d, 4000);
    assert_int_equal(memserver_create(&other, "/a/e", "12", MODE_EPHEMERAL), CLAVE_OK);
    expect(&c, "count=3,bytes=6");
    memserver_request(&other, OP_CLOSE_SESSION, NULL);
    memserver_hang_up(&other);
    expect(&c, "count=2,bytes=4");
    assert_int_equal(memserver_delete(&c, "/a/b", -1), CLAVE_OK);
    expect(&c, "count=1,bytes=3");
    memserver_hang_up(&c);
}

/* As in Apache, by whichever create the node of the figures was made. */
TEST(figures_in_a_container)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    union wire_body stats = memserver_create_body(ROOT "/a/zookeeper_stats", "", MODE_CONTAINER);
    open_place(&d, &c, false);
    must_create(&c, ROOT "/a/zookeeper_limits", "count=1,bytes=1");
    assert_int_equal(memserver_call(&c, OP_CREATE_CONTAINER, &stats, NULL), CLAVE_OK);
    expect(&c, "count=1,bytes=3");
}

TEST(without_limits_nothing_is_counted)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    open_place(&d, &c, false);
    arm(&c, "count=9,bytes=9");
    assert_int_equal(memserver_delete(&c, ROOT "/a/zookeeper_limits", -1), CLAVE_OK);
    must_create(&c, "/a/b", "12345");
    expect(&c, "count=1,bytes=3");
}

/* The figures are in no log: they are counted anew. */
TEST(a_restart)
{
    CLOSED_BY(memserver_close) struct memserver d, e;
    struct memserver_conn c;
    struct log_replay out;
    open_place(&d, &c, false);
    arm(&c, "count=9,bytes=9");
    must_create(&c, "/a/b", "12345");
    memserver_hang_up(&c);
    assert_int_equal(memserver_open_bare(&e, NULL), CLAVE_OK);
    assert_int_equal(
        clave__server_replay_log(e.s, clave__buf_bytes(&d.log), clave__buf_len(&d.log), &out),
        CLAVE_OK);
    memserver_start(&e);
    memserver_connect(&c, &e, 10000);
    expect(&c, "count=2,bytes=8");
    assert_int_equal(memserver_stats(&e).digest_mismatches, 0);
    memserver_hang_up(&c);
}

TEST(hard_limits)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    open_place(&d, &c, true);
    arm(&c, "count=1,bytes=1=;byteHardLimit=10;countHardLimit=3");
    must_create(&c, "/a/b", "1");
    assert_int_equal(memserver_create(&c, "/a/c", "1234567", MODE_PERSISTENT), CLAVE_EQUOTA);
    must_create(&c, "/a/c", "123456"); /* 10 bytes */
    expect(&c, "count=3,bytes=10");
    assert_int_equal(memserver_create(&c, "/a/d", "", MODE_PERSISTENT), CLAVE_EQUOTA);
    assert_int_equal(memserver_set(&c, "/a/c", "1234567", -1), CLAVE_EQUOTA);
    assert_int_equal(memserver_set(&c, "/a/c", "1", -1), CLAVE_OK);
    assert_int_equal(memserver_set(&c, "/a/b", "123456", -1), CLAVE_OK);
    assert_int_equal(memserver_delete(&c, "/a/b", -1), CLAVE_OK);
    must_create(&c, "/a/d", "");
    must_create(&c, "/elsewhere", "1234567890123");
}

static void must_set(struct memserver_conn *c, const char *path, struct jbytes data, clave_err want)
{
    union wire_body b = {.set = {clave__jbytes(path), data, -1}};
    assert_int_equal(memserver_call(c, OP_SET_DATA, &b, NULL), want);
}

/* Null data have no bytes, as empty data. */
TEST(null_data_have_no_bytes)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    open_place(&d, &c, true);
    must_set(&c, "/a", JBYTES_NULL, CLAVE_OK);
    arm(&c, "count=1,bytes=1=;byteHardLimit=13");
    expect(&c, "count=1,bytes=0");
    must_set(&c, "/a", clave__jbytes("12345678901234"), CLAVE_EQUOTA);
    must_set(&c, "/a", clave__jbytes("1234567890123"), CLAVE_OK);
    expect(&c, "count=1,bytes=13");
    must_set(&c, "/a", JBYTES_NULL, CLAVE_OK);
    must_set(&c, "/a", clave__jbytes(""), CLAVE_OK);
    expect(&c, "count=1,bytes=0");
}

/* Unlike in Apache, which refuses the second one: it is the way back below the limit. */
TEST(beyond_the_limit_data_may_shrink)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    open_place(&d, &c, true);
    must_set(&c, "/a", clave__jbytes("12345678901234567890"), CLAVE_OK);
    arm(&c, "count=1,bytes=1=;byteHardLimit=10");
    must_set(&c, "/a", clave__jbytes("abcdefghijabcdefghij"), CLAVE_OK);
    must_set(&c, "/a", clave__jbytes("123456789012345"), CLAVE_OK);
    must_set(&c, "/a", clave__jbytes("1234567890123456"), CLAVE_EQUOTA);
    expect(&c, "count=1,bytes=15");
}
