/* server_log_test.c - what is logged and when it may be seen; what recovery makes of logs,
 * whole, cut at every byte, and damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "lib/desk.h"

/* ---- the records --------------------------------------------------------------------------- */

static int64_t long_at(const uint8_t *p)
{
    struct jreader r = clave__jreader(p, 8);
    return clave__jget_long(&r);
}

static int32_t int_at(const uint8_t *p)
{
    struct jreader r = clave__jreader(p, 4);
    return clave__jget_int(&r);
}

/* The end of the record at an offset. */
static size_t end_of(const struct desk *d, size_t at)
{
    return at + 12 + (size_t)int_at(d->log.data + at + 8) + 1;
}

static size_t count_records(const struct desk *d)
{
    size_t n = 0;
    for (size_t at = SERVER_LOG_HEADER; at < d->log.tail; at = end_of(d, at))
        n++;
    return n;
}

/* The newest record's payload. */
static struct jbytes newest(const struct desk *d)
{
    size_t at = SERVER_LOG_HEADER;
    while (end_of(d, at) < d->log.tail)
        at = end_of(d, at);
    return clave__jbytes_n(d->log.data + at + 12, (size_t)int_at(d->log.data + at + 8));
}

/* Its hexadecimal text behind the TxnHeader's zxid and time. */
static const char *newest_hex(const struct desk *d)
{
    static char hex[1024];
    struct jbytes p = newest(d);
    assert_true((size_t)p.n * 2 < sizeof hex);
    for (int32_t i = 28; i < p.n; i++)
        snprintf(hex + 2 * (i - 28), 3, "%02x", (uint8_t)p.p[i]);
    return hex;
}

/* Measured on a fresh Apache 3.8.0: all but the id, the time and the checksum over them. */
static void the_first_record_is_apaches(void **state)
{
    (void)state;
    struct desk d;
    struct desk_conn c;
    desk_open(&d, NULL);
    desk_connect(&c, &d, 10000);
    assert_int_equal(d.log.tail, 16 + 61);
    assert_memory_equal(d.log.data, "ZKLG\0\0\0\2\0\0\0\0\0\0\0\0", 16);
    const uint8_t *p = d.log.data + 16;
    assert_int_equal(int_at(p), 0);
    assert_int_equal(int_at(p + 8), 0x30);
    assert_true(long_at(p + 12) == c.session);
    assert_int_equal(int_at(p + 20), 0);
    assert_int_equal(long_at(p + 24), 1);
    assert_true(long_at(p + 32) == desk_wall(&d));
    assert_string_equal(newest_hex(&d), "fffffff6"
                                        "00002710"
                                        "00000002"
                                        "0000000051c6d660");
    assert_int_equal(p[60], 'B');
    desk_hang_up(&c);
    desk_close(&d);
}

static void every_write_is_logged_also_one_that_fails(void **state)
{
    (void)state;
    struct desk d;
    struct desk_conn c;
    struct wire_stat st;
    union wire_body sequential = desk_create_body("/s-", "", MODE_EPHEMERAL_SEQUENTIAL);
    union wire_body ttl = desk_create_body("/t", "", MODE_PERSISTENT_TTL);
    union wire_body reconfig = {.reconfig = {JBYTES_NULL, JBYTES_NULL, JBYTES_NULL, -1}};
    ttl.create.ttl_ms = 1000;
    desk_open(&d, NULL);
    desk_connect(&c, &d, 10000);
    const struct {
        clave_err err, got;
    } all[] = {
        {CLAVE_OK, desk_create(&c, "/a", "x", MODE_PERSISTENT)},
        {CLAVE_ENODEEXISTS, desk_create(&c, "/a", "x", MODE_PERSISTENT)},
        {CLAVE_OK, desk_create(&c, "/a/c", "x", MODE_CONTAINER)},
        {CLAVE_OK, desk_call(&c, OP_CREATE2, &sequential, NULL)},
        {CLAVE_EUNIMPLEMENTED, desk_call(&c, OP_CREATE_TTL, &ttl, NULL)},
        {CLAVE_ERECONFIGDISABLED, desk_call(&c, OP_RECONFIG, &reconfig, NULL)},
        {CLAVE_OK, desk_set(&c, "/a", "y", 0)},
        {CLAVE_EBADVERSION, desk_set(&c, "/a", "y", 0)},
        {CLAVE_OK, desk_delete(&c, "/a/c", -1)},
        {CLAVE_ENONODE, desk_delete(&c, "/a/c", -1)},
        {CLAVE_OK, desk_stat(&c, "/a", &st)}, /* no write */
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal(all[i].got, all[i].err);
    assert_int_equal(count_records(&d), 11); /* with the session's */
    int64_t zxid = 0;
    for (size_t at = SERVER_LOG_HEADER; at < d.log.tail; at = end_of(&d, at))
        assert_int_equal(long_at(d.log.data + at + 24), ++zxid);
    assert_int_equal(desk_stats(&d).last_zxid, zxid);
    /* A failed one: type -1, the code, no digest. */
    assert_string_equal(newest_hex(&d), "ffffffff"
                                        "ffffff9b");
    desk_request(&c, OP_CLOSE_SESSION, NULL);
    const char *hex = newest_hex(&d);
    assert_memory_equal(hex,
                        "fffffff5"
                        "00000001"
                        "0000000d"
                        "2f732d30303030303030303031",
                        8 + 8 + 8 + 26);
    desk_hang_up(&c);
    desk_close(&d);
}

/* create2 in a multi is on the disk as create; one that failed keeps what came before. */
static void multis_on_the_disk(void **state)
{
    (void)state;
    struct desk d;
    struct desk_conn c;
    struct clave_mem *mem = &d.mem;
    desk_open(&d, NULL);
    desk_connect(&c, &d, 10000);
    for (int fails = 0; fails < 2; fails++) {
        struct wire_op ops[3] = {{OP_CREATE2, desk_create_body("/m", NULL, MODE_PERSISTENT)},
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
        assert_int_equal(desk_call(&c, OP_MULTI, &body, NULL), CLAVE_OK);
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
    desk_hang_up(&c);
    desk_close(&d);
}

/* ---- durability ------------------------------------------------------------------------------ */

static size_t arrived(const struct desk_conn *c)
{
    return clave__buf_len(&c->in);
}

static void nothing_leaves_before_it_is_durable(void **state)
{
    (void)state;
    struct desk d;
    struct desk_conn a, b;
    struct wire_reply_header h;
    struct jreader r;
    union wire_body create = desk_create_body("/n", "", MODE_PERSISTENT);
    union wire_body get = {.read = {clave__jbytes("/n"), false}};
    desk_open(&d, NULL);
    desk_connect(&a, &d, 10000);
    desk_connect(&b, &d, 10000);
    assert_int_equal(desk_watch(&b, OP_EXISTS, "/n"), CLAVE_ENONODE);
    d.disk_stands = true;
    desk_request(&a, OP_CREATE, &create);
    desk_request(&b, OP_GET_DATA, &get); /* sees it, so it waits for it */
    desk_request(&a, OP_PING, NULL);
    assert_int_equal(arrived(&a), 0);
    assert_int_equal(arrived(&b), 0);
    clave__server_durable(d.s, 2);
    desk_pump(&d);
    assert_int_equal(arrived(&a), 0);
    clave__server_durable(d.s, 3);
    desk_pump(&d);
    assert_true(desk_next(&a, &h, &r));
    assert_int_equal(h.zxid, 3);
    assert_true(desk_next(&a, &h, &r));
    assert_int_equal(h.xid, XID_PING);
    assert_string_equal(desk_events(&b), "CREATED /n"); /* before any reply that shows it */
    assert_true(desk_next(&b, &h, &r));
    assert_int_equal(h.zxid, 3);
    assert_int_equal(h.err, 0);
    desk_hang_up(&a);
    desk_hang_up(&b);
    desk_close(&d);
}

/* Each reply leaves with its own zxid, also when the disk is slower than the requests. */
static void replies_leave_as_the_disk_goes_on(void **state)
{
    (void)state;
    struct desk d;
    struct desk_conn c;
    struct wire_reply_header h;
    struct jreader r;
    desk_open(&d, NULL);
    desk_connect(&c, &d, 10000);
    d.disk_stands = true;
    for (int i = 0; i < 100; i++) {
        union wire_body b = desk_create_body("/s-", "", MODE_PERSISTENT_SEQUENTIAL);
        desk_request(&c, OP_CREATE, &b);
    }
    for (int64_t zxid = 2; zxid < 102; zxid++) {
        assert_false(desk_next(&c, &h, &r));
        clave__server_durable(d.s, zxid);
        desk_pump(&d);
        assert_true(desk_next(&c, &h, &r));
        assert_int_equal(h.zxid, zxid);
    }
    desk_hang_up(&c);
    desk_close(&d);
}

/* A refusal shows that the session is gone, the closing itself does not. */
static void a_refusal_waits_for_the_end_of_the_session(void **state)
{
    (void)state;
    struct desk d;
    struct desk_conn a, b;
    desk_open(&d, NULL);
    desk_connect(&a, &d, 4000);
    d.disk_stands = true;
    desk_advance(&d, 6000);
    assert_null(a.c);
    assert_false(desk_resume(&b, &a));
    assert_int_equal(arrived(&b), 0);
    assert_non_null(b.c);
    desk_flush(&d);
    desk_pump(&d);
    assert_int_equal(arrived(&b), 40);
    assert_null(b.c);
    desk_hang_up(&a);
    desk_hang_up(&b);
    desk_close(&d);
}

static void a_disk_that_stands_stops_the_reading(void **state)
{
    (void)state;
    struct desk d;
    struct desk_conn c;
    struct wire_reply_header h;
    struct jreader r;
    int32_t sent = 0, answered = 0;
    desk_open(&d, NULL);
    desk_connect(&c, &d, 10000);
    d.disk_stands = true;
    while (clave__server_conn_wants_read(c.c)) {
        union wire_body b = desk_create_body("/s-", "", MODE_PERSISTENT_SEQUENTIAL);
        desk_request(&c, OP_CREATE, &b);
        assert_true(++sent < 100000);
    }
    size_t nodes = desk_stats(&d).nodes;
    union wire_body b = desk_create_body("/late", "", MODE_PERSISTENT);
    desk_request(&c, OP_CREATE, &b); /* was on its way: it is kept */
    assert_int_equal(desk_stats(&d).nodes, nodes);
    desk_advance(&d, 60000);
    assert_int_equal(desk_stats(&d).sessions, 1); /* what it sent was not read: not silent */
    d.disk_stands = false;
    desk_flush(&d);
    desk_pump(&d);
    assert_int_equal(desk_stats(&d).nodes, nodes + 1);
    while (desk_next(&c, &h, &r))
        answered += h.err == 0;
    assert_int_equal(answered, sent + 1);
    assert_true(clave__server_conn_wants_read(c.c));
    desk_hang_up(&c);
    desk_close(&d);
}

static void a_client_that_does_not_read(void **state)
{
    (void)state;
    static char data[10000];
    struct server_options o = {.max_output = 20000};
    struct desk d;
    struct desk_conn c, other;
    union wire_body get = {.read = {clave__jbytes("/n"), false}};
    union wire_body b = desk_create_body("/n", NULL, MODE_PERSISTENT);
    uint8_t many[22 * 100];
    desk_open(&d, &o);
    desk_connect(&c, &d, 10000);
    desk_connect(&other, &d, 10000);
    b.create.data = clave__jbytes_n(data, sizeof data);
    assert_int_equal(desk_call(&c, OP_CREATE, &b, NULL), CLAVE_OK);
    c.deaf = true;
    for (size_t i = 0; i < 100; i++) {
        static const uint8_t one[] = {0, 0, 0, 15, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 2, '/', 'n', 0};
        memcpy(many + i * sizeof one, one, sizeof one);
    }
    desk_send(&c, many, 19 * 100); /* in one piece: most of it has to wait */
    assert_non_null(c.c);
    assert_false(clave__server_conn_wants_read(c.c));
    assert_int_equal(desk_stats(&d).requests[OP_GET_DATA], 2);
    c.deaf = false;
    desk_request(&c, OP_GET_DATA, &get);
    const void *p;
    assert_true(clave__server_conn_output(c.c, &p) > 0);
    clave__server_conn_sent(c.c, 1); /* the driver found room */
    clave__buf_append(&c.in, p, 0);
    while (desk_stats(&d).requests[OP_GET_DATA] < 101) {
        size_t n = clave__server_conn_output(c.c, &p);
        assert_true(n > 0);
        clave__server_conn_sent(c.c, n);
    }
    assert_true(clave__server_conn_wants_read(c.c) || clave__server_conn_output(c.c, &p) > 0);
    desk_hang_up(&c);
    desk_hang_up(&other);
    desk_close(&d);
}

/* Events are not asked for, so they are not held back: at 64 times the limit it is cut off. */
static void a_client_that_does_not_read_its_events(void **state)
{
    (void)state;
    struct server_options o = {.max_output = 1024};
    struct desk d;
    struct desk_conn c, writer;
    union wire_body add = {.typed = {clave__jbytes("/"), ADD_WATCH_PERSISTENT_RECURSIVE}};
    desk_open(&d, &o);
    desk_connect(&c, &d, 10000);
    desk_connect(&writer, &d, 10000);
    assert_int_equal(desk_call(&c, OP_ADD_WATCH, &add, NULL), CLAVE_OK);
    c.deaf = true;
    for (int i = 0; i < 3000 && c.c; i++)
        assert_int_equal(desk_create(&writer, "/s-", "", MODE_PERSISTENT_SEQUENTIAL), CLAVE_OK);
    assert_null(c.c);
    assert_int_equal(desk_stats(&d).watches, 0);
    desk_hang_up(&c);
    desk_hang_up(&writer);
    desk_close(&d);
}

/* ---- recovery ----------------------------------------------------------------------------------
 */

/* A bit of everything. */
static void scenario(struct desk *d)
{
    struct desk_conn a, b;
    union wire_body acl = {.set_acl = {clave__jbytes("/p"), {0, NULL, 0}, -1}};
    desk_connect(&a, d, 10000);
    desk_connect(&b, d, 20000);
    desk_create(&a, "/p", "data", MODE_PERSISTENT);
    desk_create(&a, "/p/e", "mine", MODE_EPHEMERAL);
    desk_create(&b, "/p/e2", NULL, MODE_EPHEMERAL_SEQUENTIAL);
    desk_create(&b, "/c", "", MODE_CONTAINER);
    desk_create(&b, "/c/x", "", MODE_PERSISTENT);
    desk_set(&b, "/p", "other", -1);
    desk_set(&b, "/", "root", -1);
    desk_delete(&b, "/nothing", -1);
    acl.set_acl.acl = desk_acl(PERM_READ, "digest", "u:p");
    desk_call(&b, OP_SET_ACL, &acl, NULL);
    desk_delete(&b, "/c/x", 0);
    desk_request(&a, OP_CLOSE_SESSION, NULL);
    desk_create(&b, "/last", "one", MODE_PERSISTENT);
    desk_hang_up(&a);
    desk_hang_up(&b);
}

/* Two servers are in the same state when they make the same snapshot. */
static void assert_same(const struct desk *a, const struct desk *b)
{
    struct buf x, y;
    int64_t zx, zy;
    clave__buf_init(&x, &a->mem, SIZE_MAX / 4);
    clave__buf_init(&y, &a->mem, SIZE_MAX / 4);
    assert_int_equal(clave__server_save_snapshot(a->s, &x, &zx), CLAVE_OK);
    assert_int_equal(clave__server_save_snapshot(b->s, &y, &zy), CLAVE_OK);
    assert_int_equal(zx, zy);
    /* The order of sessions and lists is the hash table's; the tree's digest is at the end. */
    assert_int_equal(x.tail, y.tail);
    assert_memory_equal(x.data + x.tail - 54, y.data + y.tail - 54, 20);
    clave__buf_fini(&x);
    clave__buf_fini(&y);
}

static clave_err replay(struct desk *to, const uint8_t *p, size_t n, struct log_replay *out)
{
    assert_int_equal(desk_open_bare(to, NULL), CLAVE_OK);
    return clave__server_replay_log(to->s, p, n, out);
}

static void a_log_brings_everything_back(void **state)
{
    (void)state;
    struct desk d, e;
    struct log_replay r;
    desk_open(&d, NULL);
    scenario(&d);
    assert_int_equal(replay(&e, d.log.data, d.log.tail, &r), CLAVE_OK);
    assert_int_equal(r.first_zxid, 1);
    assert_int_equal(r.last_zxid, desk_stats(&d).last_zxid);
    assert_int_equal(r.valid_len, d.log.tail);
    assert_false(r.torn);
    assert_same(&d, &e);
    struct server_stats x = desk_stats(&d), y = desk_stats(&e);
    assert_int_equal(x.sessions, y.sessions);
    assert_int_equal(x.ephemerals, y.ephemerals);
    assert_int_equal(x.nodes, y.nodes);
    assert_int_equal(x.data_bytes, y.data_bytes);
    assert_string_equal(e.lines, ""); /* no digest differed */
    desk_start(&e);
    desk_advance(&e, 22000);
    assert_int_equal(desk_stats(&e).sessions, 0);
    assert_int_equal(desk_stats(&e).ephemerals, 0);
    desk_close(&d);
    desk_close(&e);
}

static void the_log_in_pieces(void **state)
{
    (void)state;
    struct desk d;
    desk_open(&d, NULL);
    scenario(&d);
    for (size_t cut = SERVER_LOG_HEADER; cut < d.log.tail; cut = end_of(&d, cut)) {
        struct desk e;
        struct log_replay r;
        struct buf second;
        assert_int_equal(replay(&e, d.log.data, cut, &r), CLAVE_OK);
        clave__buf_init(&second, &d.mem, SIZE_MAX / 4);
        clave__buf_append(&second, d.log.data, SERVER_LOG_HEADER);
        clave__buf_append(&second, d.log.data + cut, d.log.tail - cut);
        assert_int_equal(clave__server_replay_log(e.s, second.data, second.tail, &r), CLAVE_OK);
        /* Once more, from the beginning: all of it is known. */
        assert_int_equal(clave__server_replay_log(e.s, d.log.data, d.log.tail, &r), CLAVE_OK);
        assert_int_equal(r.valid_len, d.log.tail);
        assert_same(&d, &e);
        clave__buf_fini(&second);
        desk_close(&e);
    }
    desk_close(&d);
}

static void a_log_cut_at_every_byte(void **state)
{
    (void)state;
    struct desk d;
    desk_open(&d, NULL);
    scenario(&d);
    size_t whole = SERVER_LOG_HEADER;
    int64_t zxid = 0;
    for (size_t cut = 0; cut <= d.log.tail; cut++) {
        struct desk e;
        struct log_replay r;
        if (cut > whole && cut == end_of(&d, whole)) {
            whole = cut;
            zxid++;
        }
        assert_int_equal(replay(&e, d.log.data, cut, &r), CLAVE_OK);
        assert_int_equal(r.last_zxid, zxid);
        assert_int_equal(desk_stats(&e).last_zxid, zxid);
        assert_int_equal(r.valid_len, cut < SERVER_LOG_HEADER ? 0 : whole);
        assert_int_equal(r.torn, cut != 0 && cut != whole);
        desk_close(&e);
    }
    desk_close(&d);
}

/* What a power cut may leave behind the last record: none of it was acknowledged. */
static void torn_tails(void **state)
{
    static const struct {
        const char *name;
        size_t from_end; /* so many bytes are overwritten with zeros, */
        size_t append;   /* so many zeros follow */
    } tails[] = {
        {"padding", 0, 70000},   {"end mark", 1, 0},           {"end mark, padding", 1, 5000},
        {"forty bytes", 40, 0},  {"forty, padding", 40, 9000}, {"one zero", 0, 1},
        {"a short head", 0, 11}, {"a head of zeros", 0, 12},
    };
    (void)state;
    struct desk d;
    desk_open(&d, NULL);
    scenario(&d);
    size_t last = SERVER_LOG_HEADER;
    while (end_of(&d, last) < d.log.tail)
        last = end_of(&d, last);
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        struct desk e;
        struct log_replay r;
        size_t n = d.log.tail + tails[i].append;
        uint8_t *copy = calloc(1, n);
        assert_non_null(copy);
        memcpy(copy, d.log.data, d.log.tail - tails[i].from_end);
        assert_int_equal(replay(&e, copy, n, &r), CLAVE_OK);
        assert_true(r.torn);
        assert_int_equal(r.valid_len, tails[i].from_end ? last : d.log.tail);
        free(copy);
        desk_close(&e);
    }
    desk_close(&d);
}

static void every_flipped_bit_in_a_payload_is_found(void **state)
{
    (void)state;
    struct desk d;
    desk_open(&d, NULL);
    scenario(&d);
    for (size_t at = SERVER_LOG_HEADER; at < d.log.tail; at = end_of(&d, at)) {
        for (size_t i = at + 12; i < end_of(&d, at) - 1; i++) {
            struct desk e;
            struct log_replay r;
            char offset[64];
            d.log.data[i] ^= 1;
            assert_int_equal(replay(&e, d.log.data, d.log.tail, &r), CLAVE_ECORRUPT);
            snprintf(offset, sizeof offset, "offset %zu ", at);
            assert_non_null(strstr(r.fault, offset));
            d.log.data[i] ^= 1;
            desk_close(&e);
        }
    }
    desk_close(&d);
}

/* Damage in the middle is never taken for an end. */
static void holes_are_refused(void **state)
{
    (void)state;
    struct desk d;
    desk_open(&d, NULL);
    scenario(&d);
    size_t first = SERVER_LOG_HEADER, second = end_of(&d, first);
    const struct {
        const char *name;
        size_t from, n;
        const char *says;
    } holes[] = {
        {"a whole record", first, second - first, "hole at offset 16"},
        {"a head", first, 12, "hole at offset 16"},
        {"a length", second + 8, 4, "hole at offset 77"},
        {"an end mark", second - 1, 1, "hole at offset 16"},
        {"two records", first, end_of(&d, second) - first, "hole at offset 16"},
        {"magic", 0, 4, "ZKLG"},
    };
    for (size_t i = 0; i < sizeof holes / sizeof *holes; i++) {
        struct desk e;
        struct log_replay r;
        uint8_t *copy = calloc(1, d.log.tail + 5000);
        assert_non_null(copy);
        memcpy(copy, d.log.data, d.log.tail);
        memset(copy + holes[i].from, 0, holes[i].n);
        if (replay(&e, copy, d.log.tail + 5000, &r) != CLAVE_ECORRUPT)
            fail_msg("%s: taken", holes[i].name);
        if (!strstr(r.fault, holes[i].says))
            fail_msg("%s: %s", holes[i].name, r.fault);
        free(copy);
        desk_close(&e);
    }
    desk_close(&d);
}

/* Leaves out, repeats or swaps whole records. */
static void zxids_have_to_follow(void **state)
{
    (void)state;
    struct desk d;
    desk_open(&d, NULL);
    scenario(&d);
    size_t a = SERVER_LOG_HEADER, b = end_of(&d, a), c = end_of(&d, b), end = d.log.tail;
    const struct {
        size_t from[3], to[3];
        const char *says;
    } orders[] = {
        {{a, c}, {b, end}, "zxid 0x3, behind 0x1"},
        {{b}, {end}, "zxid 0x2, but the newest known is 0x0"},
        {{a, a}, {b, end}, "zxid 0x1, behind 0x1"},
        {{a, b, b}, {b, c, end}, "zxid 0x2, behind 0x2"},
    };
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        struct desk e;
        struct log_replay r;
        struct buf log;
        clave__buf_init(&log, &d.mem, SIZE_MAX / 4);
        clave__buf_append(&log, d.log.data, SERVER_LOG_HEADER);
        for (size_t k = 0; k < 3 && orders[i].to[k]; k++)
            clave__buf_append(&log, d.log.data + orders[i].from[k],
                              orders[i].to[k] - orders[i].from[k]);
        assert_int_equal(replay(&e, log.data, log.tail, &r), CLAVE_ECORRUPT);
        if (!strstr(r.fault, orders[i].says))
            fail_msg("%s", r.fault);
        clave__buf_fini(&log);
        desk_close(&e);
    }
    desk_close(&d);
}

/* ---- logs of others
 * ------------------------------------------------------------------------------ */

struct writer {
    struct clave_mem mem;
    struct buf b;
    struct jwriter w;
    size_t record;
};

static uint32_t adler(const uint8_t *p, size_t n)
{
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < n; i++) {
        a = (a + p[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

static void begin_log(struct writer *l)
{
    uint8_t header[SERVER_LOG_HEADER];
    l->mem = clave__mem_or_default(NULL);
    clave__buf_init(&l->b, &l->mem, SIZE_MAX / 4);
    clave__server_log_header(header);
    header[7] = 9;  /* another version and */
    header[15] = 9; /* another dbid are not looked at */
    clave__buf_append(&l->b, header, sizeof header);
    l->w = clave__jwriter(&l->b);
}

static void begin_record(struct writer *l, int64_t client, int64_t zxid, int32_t type)
{
    l->record = l->b.tail;
    clave__jput_long(&l->w, 0);
    clave__jput_int(&l->w, 0);
    clave__jput_long(&l->w, client);
    clave__jput_int(&l->w, 0);
    clave__jput_long(&l->w, zxid);
    clave__jput_long(&l->w, 1234);
    clave__jput_int(&l->w, type);
}

static void end_record(struct writer *l)
{
    size_t payload = l->record + 12, n = l->b.tail - payload;
    clave__jput_int_at(&l->w, l->record + 4, (int32_t)adler(l->b.data + payload, n));
    clave__jput_int_at(&l->w, l->record + 8, (int32_t)n);
    clave__jput_byte(&l->w, 'B');
}

static void put_create(struct writer *l, const char *path, bool ephemeral, int32_t cversion)
{
    clave__jput_str(&l->w, path);
    clave__jput_bytes(&l->w, JBYTES_NULL);
    clave__jput_vec(&l->w, desk_acl(PERM_ALL, "world", "anyone"));
    clave__jput_bool(&l->w, ephemeral);
    clave__jput_int(&l->w, cversion);
}

static void begin_create(struct writer *l, int64_t client, int64_t zxid, const char *path,
                         bool ephemeral)
{
    begin_record(l, client, zxid, OP_CREATE);
    put_create(l, path, ephemeral, 1);
    end_record(l);
}

/* As ZooKeeper 3.5 wrote it: without digests, closeSession without a list. */
static void logs_without_digests(void **state)
{
    (void)state;
    struct writer l;
    struct desk e;
    struct log_replay r;
    begin_log(&l);
    begin_record(&l, 77, 1, OP_CREATE_SESSION);
    clave__jput_int(&l.w, 30000);
    end_record(&l);
    begin_create(&l, 77, 2, "/e", true);
    begin_create(&l, 77, 3, "/p", false);
    begin_record(&l, 77, 4, OP_CLOSE_SESSION);
    end_record(&l);
    assert_int_equal(replay(&e, l.b.data, l.b.tail, &r), CLAVE_OK);
    assert_int_equal(desk_stats(&e).ephemerals, 0);
    assert_int_equal(desk_stats(&e).nodes, 5);
    assert_int_equal(desk_stats(&e).sessions, 0);
    clave__buf_fini(&l.b);
    desk_close(&e);
}

/* An ensemble's: each leader counts anew, in the upper half. */
static void zxids_of_an_ensemble(void **state)
{
    (void)state;
    struct writer l;
    struct desk e;
    struct log_replay r;
    struct desk_conn c;
    begin_log(&l);
    begin_create(&l, 0, 0x100000001, "/a", false);
    begin_create(&l, 0, 0x100000002, "/b", false);
    begin_create(&l, 0, 0x400000001, "/c", false);
    assert_int_equal(replay(&e, l.b.data, l.b.tail, &r), CLAVE_OK);
    assert_true(r.last_zxid == 0x400000001);
    desk_start(&e);
    desk_connect(&c, &e, 10000);
    assert_true(desk_stats(&e).last_zxid == 0x400000002);
    desk_hang_up(&c);
    desk_close(&e);
    begin_create(&l, 0, 0x500000002, "/d", false); /* its first is missing */
    assert_int_equal(replay(&e, l.b.data, l.b.tail, &r), CLAVE_ECORRUPT);
    clave__buf_fini(&l.b);
    desk_close(&e);
}

/* A failed multi is on the disk with what it would have done. */
static void a_failed_multi_changes_nothing(void **state)
{
    (void)state;
    struct writer l;
    struct desk e;
    struct log_replay r;
    begin_log(&l);
    begin_record(&l, 0, 1, OP_MULTI);
    clave__jput_int(&l.w, 2);
    clave__jput_int(&l.w, OP_CREATE);
    size_t at = l.b.tail;
    clave__jput_int(&l.w, 0);
    put_create(&l, "/m", false, 1);
    clave__jput_int_at(&l.w, at, (int32_t)(l.b.tail - at - 4));
    clave__jput_int(&l.w, OP_ERROR);
    clave__jput_int(&l.w, 4);
    clave__jput_int(&l.w, CLAVE_EBADVERSION);
    end_record(&l);
    assert_int_equal(replay(&e, l.b.data, l.b.tail, &r), CLAVE_OK);
    assert_int_equal(desk_stats(&e).nodes, 4);
    assert_int_equal(desk_stats(&e).last_zxid, 1);
    clave__buf_fini(&l.b);
    desk_close(&e);
}

/* Sessions that are nowhere: their nodes go at the start, and the log says so. */
static void orphans_go_at_the_start(void **state)
{
    (void)state;
    struct writer l;
    struct desk e;
    struct log_replay r;
    begin_log(&l);
    begin_create(&l, 77, 1, "/e", true);
    begin_create(&l, 78, 2, "/f", true);
    assert_int_equal(replay(&e, l.b.data, l.b.tail, &r), CLAVE_OK);
    assert_int_equal(desk_stats(&e).ephemerals, 2);
    desk_start(&e);
    assert_int_equal(desk_stats(&e).ephemerals, 0);
    assert_int_equal(desk_stats(&e).last_zxid, 4);
    clave__buf_fini(&l.b);
    desk_close(&e);
}

static void a_digest_that_differs_is_told(void **state)
{
    (void)state;
    struct writer l;
    struct desk e;
    struct log_replay r;
    begin_log(&l);
    begin_record(&l, 77, 1, OP_CREATE_SESSION);
    clave__jput_int(&l.w, 30000);
    clave__jput_int(&l.w, 2);
    clave__jput_long(&l.w, 12345);
    end_record(&l);
    assert_int_equal(replay(&e, l.b.data, l.b.tail, &r), CLAVE_OK);
    assert_non_null(strstr(e.lines, "from zxid 0x1 on"));
    clave__buf_fini(&l.b);
    desk_close(&e);
}

/* Whole, with a right checksum, and yet nothing Apache or clave would write. */
static void impossible_records(void **state)
{
    static const struct {
        int32_t type;
        const char *body;
        size_t n;
    } bad[] = {
        {99, "", 0},
        {OP_GET_DATA, "", 0},
        {OP_CREATE, "\0\0\0\1/", 5},
        {OP_DELETE, "\0\0\0\1/", 5},
        {OP_DELETE, "\0\0\0\7/", 5},
        {OP_SET_DATA, "", 0},
        {OP_MULTI, "\0\0\1\0", 4},
        {OP_MULTI, "\0\0\0\1\0\0\0\x63\0\0\0\0", 12},
        {OP_CREATE_SESSION, "", 0},
        {OP_ERROR, "", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct writer l;
        struct desk e;
        struct log_replay r;
        begin_log(&l);
        begin_record(&l, 1, 1, bad[i].type);
        clave__buf_append(&l.b, bad[i].body, bad[i].n);
        end_record(&l);
        assert_int_equal(replay(&e, l.b.data, l.b.tail, &r), CLAVE_ECORRUPT);
        assert_non_null(strstr(r.fault, "at offset 16, zxid 0x1, is no transaction"));
        clave__buf_fini(&l.b);
        desk_close(&e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_record_is_apaches),
        cmocka_unit_test(every_write_is_logged_also_one_that_fails),
        cmocka_unit_test(multis_on_the_disk),
        cmocka_unit_test(nothing_leaves_before_it_is_durable),
        cmocka_unit_test(replies_leave_as_the_disk_goes_on),
        cmocka_unit_test(a_refusal_waits_for_the_end_of_the_session),
        cmocka_unit_test(a_disk_that_stands_stops_the_reading),
        cmocka_unit_test(a_client_that_does_not_read),
        cmocka_unit_test(a_client_that_does_not_read_its_events),
        cmocka_unit_test(a_log_brings_everything_back),
        cmocka_unit_test(the_log_in_pieces),
        cmocka_unit_test(a_log_cut_at_every_byte),
        cmocka_unit_test(torn_tails),
        cmocka_unit_test(every_flipped_bit_in_a_payload_is_found),
        cmocka_unit_test(holes_are_refused),
        cmocka_unit_test(zxids_have_to_follow),
        cmocka_unit_test(logs_without_digests),
        cmocka_unit_test(zxids_of_an_ensemble),
        cmocka_unit_test(a_failed_multi_changes_nothing),
        cmocka_unit_test(orphans_go_at_the_start),
        cmocka_unit_test(a_digest_that_differs_is_told),
        cmocka_unit_test(impossible_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
