/* server_log_test.c - what is logged, and when it may be seen. */
#include "lib/log_records.h"
#include "lib/memserver.h"
#include "lib/unit.h"

/* ---- the records ----------------------------------------------------------------------------- */

/* The newest record's payload after the TxnHeader's zxid and time, in hexadecimal. */
static const char *newest_hex(const struct memserver *d)
{
    static char hex[1024];
    size_t at = record_newest(&d->log);
    const uint8_t *payload = d->log.data + at + RECORD_HEAD;
    size_t n = record_end(&d->log, at) - 1 - at - RECORD_HEAD;
    assert_int_equal(payload[--n], 'S'); /* each is a batch here, and says so at its end */
    assert_true(n > 28 && n * 2 < sizeof hex);
    for (size_t i = 28; i < n; i++)
        snprintf(hex + 2 * (i - 28), 3, "%02x", payload[i]);
    return hex;
}

/* Measured on a fresh Apache 3.8.0: all but the id, the time and the checksum over them; and but
 * what Apache does not read: the dbid, which says that batches are marked, and the mark. */
TEST_SESSION(the_first_record_is_apaches, 10000)
{
    assert_int_equal(d->log.tail, 16 + 62);
    assert_memory_equal(d->log.data, "ZKLG\0\0\0\2clave\0\0\1", 16);
    const struct buf *log = &d->log;
    assert_int_equal(record_int(log, 16), 0);
    assert_int_equal(record_int(log, 16 + 8), 0x31);
    assert_true(record_long(log, 16 + 12) == c->session);
    assert_int_equal(record_int(log, 16 + 20), 0);
    assert_int_equal(record_long(log, 16 + 24), 1);
    assert_true(record_long(log, 16 + 32) == memserver_wall(d));
    assert_string_equal(newest_hex(d), "fffffff6"
                                       "00002710"
                                       "00000002"
                                       "0000000051c6d660");
    assert_int_equal(log->data[16 + 61], 'B');
}

TEST(every_write_is_logged_also_one_that_fails)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    struct wire_stat st;
    union wire_body sequential = memserver_create_body("/s-", "", MODE_EPHEMERAL_SEQUENTIAL);
    union wire_body ttl = memserver_create_body("/t", "", MODE_PERSISTENT_TTL);
    union wire_body reconfig = {.reconfig = {JBYTES_NULL, JBYTES_NULL, JBYTES_NULL, -1}};
    ttl.create.ttl_ms = 1000;
    memserver_open(&d, NULL);
    memserver_connect(&c, &d, 10000);
    const struct {
        clave_err err, got;
    } all[] = {
        {CLAVE_OK, memserver_create(&c, "/a", "x", MODE_PERSISTENT)},
        {CLAVE_ENODEEXISTS, memserver_create(&c, "/a", "x", MODE_PERSISTENT)},
        {CLAVE_OK, memserver_create(&c, "/a/c", "x", MODE_CONTAINER)},
        {CLAVE_OK, memserver_call(&c, OP_CREATE2, &sequential, NULL)},
        {CLAVE_EUNIMPLEMENTED, memserver_call(&c, OP_CREATE_TTL, &ttl, NULL)},
        {CLAVE_ERECONFIGDISABLED, memserver_call(&c, OP_RECONFIG, &reconfig, NULL)},
        {CLAVE_OK, memserver_set(&c, "/a", "y", 0)},
        {CLAVE_EBADVERSION, memserver_set(&c, "/a", "y", 0)},
        {CLAVE_OK, memserver_delete(&c, "/a/c", -1)},
        {CLAVE_ENONODE, memserver_delete(&c, "/a/c", -1)},
        {CLAVE_OK, memserver_stat(&c, "/a", &st)}, /* no write */
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal(all[i].got, all[i].err);
    assert_int_equal(record_count(&d.log), 11); /* with the session's */
    int64_t zxid = 0;
    for (size_t at = SERVER_LOG_HEADER; at < d.log.tail; at = record_end(&d.log, at))
        assert_int_equal(record_long(&d.log, at + 24), ++zxid);
    assert_int_equal(memserver_stats(&d).last_zxid, zxid);
    /* A failed one: type -1, the code, no digest. */
    assert_string_equal(newest_hex(&d), "ffffffff"
                                        "ffffff9b");
    memserver_request(&c, OP_CLOSE_SESSION, NULL);
    const char *hex = newest_hex(&d);
    assert_memory_equal(hex,
                        "fffffff5"
                        "00000001"
                        "0000000d"
                        "2f732d30303030303030303031",
                        8 + 8 + 8 + 26);
}

/* create2 in a multi is on the disk as create; one that failed keeps what came before. */
TEST(multis_on_the_disk)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    struct clave_mem *mem = &d.mem;
    memserver_open(&d, NULL);
    memserver_connect(&c, &d, 10000);
    for (int fails = 0; fails < 2; fails++) {
        struct wire_op ops[3] = {{OP_CREATE2, memserver_create_body("/m", NULL, MODE_PERSISTENT)},
                                 {OP_CHECK, {.check = {clave__jbytes("/"), fails}}},
                                 {OP_DELETE, {.check = {clave__jbytes("/m"), -1}}}};
        struct buf b;
        clave__buf_init(&b, mem, 4096);
        struct jwriter w = clave__jwriter(&b);
        for (size_t i = 0; i < 3; i++)
            clave__wire_put_op(&w, &ops[i]);
        union wire_body body = {.multi = {3, b.data, b.tail}};
        clave__wire_put_ops_end(&w);
        body.multi.n = b.tail;
        assert_int_equal(memserver_call(&c, OP_MULTI, &body, NULL), CLAVE_OK);
        clave__buf_fini(&b);
        const char *create = "0000000e"
                             "00000003"
                             "00000001"
                             "0000002a"
                             "000000022f6d"
                             "ffffffff"
                             "000000010000001f00000005776f726c6400000006616e796f6e65"
                             "00";
        const char *hex = newest_hex(&d);
        assert_memory_equal(hex, create, strlen(create));
        const char *rest = hex + strlen(create) + 8;
        if (fails)
            assert_memory_equal(rest, "ffffffff00000004ffffff99ffffffff00000004fffffffe", 48);
        else
            assert_memory_equal(rest, "0000000d00000009000000012f00000001", 34);
    }
}

/* ---- durability ------------------------------------------------------------------------------ */

static size_t arrived(const struct memserver_conn *c)
{
    return clave__buf_len(&c->in);
}

TEST(nothing_leaves_before_it_is_durable)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn a, b;
    struct wire_reply_header h;
    struct jreader r;
    union wire_body create = memserver_create_body("/n", "", MODE_PERSISTENT);
    union wire_body get = {.read = {clave__jbytes("/n"), false}};
    memserver_open(&d, NULL);
    memserver_connect(&a, &d, 10000);
    memserver_connect(&b, &d, 10000);
    assert_int_equal(memserver_watch(&b, OP_EXISTS, "/n"), CLAVE_ENONODE);
    d.disk_stands = true;
    memserver_request(&a, OP_CREATE, &create);
    memserver_request(&b, OP_GET_DATA, &get); /* sees it, so it waits for it */
    memserver_request(&a, OP_PING, NULL);
    assert_int_equal(arrived(&a), 0);
    assert_int_equal(arrived(&b), 0);
    clave__server_durable(d.s, 2);
    memserver_settle(&d);
    assert_int_equal(arrived(&a), 0);
    clave__server_durable(d.s, 3);
    memserver_settle(&d);
    assert_true(memserver_next(&a, &h, &r));
    assert_int_equal(h.zxid, 3);
    assert_true(memserver_next(&a, &h, &r));
    assert_int_equal(h.xid, XID_PING);
    assert_string_equal(memserver_events(&b), "CREATED /n"); /* before any reply that shows it */
    assert_true(memserver_next(&b, &h, &r));
    assert_int_equal(h.zxid, 3);
    assert_int_equal(h.err, 0);
}

/* Each reply leaves with its own zxid, also when the disk is slower than the requests. */
TEST_SESSION(replies_leave_as_the_disk_goes_on, 10000)
{
    struct wire_reply_header h;
    struct jreader r;
    d->disk_stands = true;
    for (int i = 0; i < 100; i++) {
        union wire_body b = memserver_create_body("/s-", "", MODE_PERSISTENT_SEQUENTIAL);
        memserver_request(c, OP_CREATE, &b);
    }
    for (int64_t zxid = 2; zxid < 102; zxid++) {
        assert_false(memserver_next(c, &h, &r));
        clave__server_durable(d->s, zxid);
        memserver_settle(d);
        assert_true(memserver_next(c, &h, &r));
        assert_int_equal(h.zxid, zxid);
    }
}

/* A refusal shows that the session is gone, the closing itself does not. */
TEST_SERVER(a_refusal_waits_for_the_end_of_the_session)
{
    CLOSED_BY(memserver_hang_up) struct memserver_conn a, b;
    memserver_connect(&a, d, 4000);
    d->disk_stands = true;
    memserver_advance(d, 6000);
    assert_null(a.c);
    assert_false(memserver_resume(&b, &a));
    assert_int_equal(arrived(&b), 0);
    assert_non_null(b.c);
    memserver_flush(d);
    memserver_settle(d);
    assert_int_equal(arrived(&b), 40);
    assert_null(b.c);
}

TEST_SESSION(a_disk_that_stands_stops_the_reading, 10000)
{
    struct wire_reply_header h;
    struct jreader r;
    int32_t sent = 0, answered = 0;
    d->disk_stands = true;
    while (clave__server_conn_wants_read(c->c)) {
        union wire_body b = memserver_create_body("/s-", "", MODE_PERSISTENT_SEQUENTIAL);
        memserver_request(c, OP_CREATE, &b);
        assert_true(++sent < 100000);
    }
    size_t nodes = memserver_stats(d).nodes;
    union wire_body b = memserver_create_body("/late", "", MODE_PERSISTENT);
    memserver_request(c, OP_CREATE, &b); /* was on its way: it is kept */
    assert_int_equal(memserver_stats(d).nodes, nodes);
    memserver_advance(d, 60000);
    assert_int_equal(memserver_stats(d).sessions, 1); /* what it sent was not read: not silent */
    d->disk_stands = false;
    memserver_flush(d);
    memserver_settle(d);
    assert_int_equal(memserver_stats(d).nodes, nodes + 1);
    while (memserver_next(c, &h, &r))
        answered += h.err == 0;
    assert_int_equal(answered, sent + 1);
    assert_true(clave__server_conn_wants_read(c->c));
}

TEST(a_client_that_does_not_read)
{
    static char data[10000];
    struct server_options o = {.max_output = 20000};
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c, other;
    union wire_body get = {.read = {clave__jbytes("/n"), false}};
    union wire_body b = memserver_create_body("/n", NULL, MODE_PERSISTENT);
    uint8_t many[22 * 100];
    memserver_open(&d, &o);
    memserver_connect(&c, &d, 10000);
    memserver_connect(&other, &d, 10000);
    b.create.data = clave__jbytes_n(data, sizeof data);
    assert_int_equal(memserver_call(&c, OP_CREATE, &b, NULL), CLAVE_OK);
    c.deaf = true;
    for (size_t i = 0; i < 100; i++) {
        static const uint8_t one[] = {0, 0, 0, 15, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 2, '/', 'n', 0};
        memcpy(many + i * sizeof one, one, sizeof one);
    }
    memserver_send(&c, many, 19 * 100); /* in one piece: most of it has to wait */
    assert_non_null(c.c);
    assert_false(clave__server_conn_wants_read(c.c));
    assert_int_equal(memserver_stats(&d).requests[OP_GET_DATA], 2);
    c.deaf = false;
    memserver_request(&c, OP_GET_DATA, &get);
    const void *p;
    assert_true(clave__server_conn_output(c.c, &p) > 0);
    clave__server_conn_sent(c.c, 1); /* the driver found room */
    clave__buf_append(&c.in, p, 0);
    while (memserver_stats(&d).requests[OP_GET_DATA] < 101) {
        size_t n = clave__server_conn_output(c.c, &p);
        assert_true(n > 0);
        clave__server_conn_sent(c.c, n);
    }
    assert_true(clave__server_conn_wants_read(c.c) || clave__server_conn_output(c.c, &p) > 0);
}

/* Events are not asked for, so they are not held back: at 512 times the limit it is cut off. */
TEST(a_client_that_does_not_read_its_events)
{
    struct server_options o = {.max_output = 1024};
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c, writer;
    union wire_body add = {.typed = {clave__jbytes("/"), ADD_WATCH_PERSISTENT_RECURSIVE}};
    memserver_open(&d, &o);
    memserver_connect(&c, &d, 10000);
    memserver_connect(&writer, &d, 10000);
    assert_int_equal(memserver_call(&c, OP_ADD_WATCH, &add, NULL), CLAVE_OK);
    c.deaf = true;
    for (int i = 0; i < 20000 && c.c; i++)
        assert_int_equal(memserver_create(&writer, "/s-", "", MODE_PERSISTENT_SEQUENTIAL),
                         CLAVE_OK);
    assert_null(c.c);
    assert_int_equal(memserver_stats(&d).watches, 0);
}
