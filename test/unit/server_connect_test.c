/* server_connect_test.c - the handshake and its refusals, passwords, expiry, words. */
#include "lib/memserver.h"
#include "lib/unit.h"
#include "server/request/session_tracker.h"

/* ---- passwords ------------------------------------------------------------------------------- */

/* Measured on Apache 3.8.0. */
TEST(passwords_are_apaches)
{
    static const struct {
        uint64_t id;
        const char *hex;
    } vectors[] = {
        {0x0100000bb2fc0001, "d90616c67b364d0209d019a8f0daec4b"},
        {0x0100000bb2fc0002, "a0a327c69b53af332a07e4257540afe4"},
        {0x01000010176f0004, "2f1fa802b44413d4ce0368bdecb6b565"},
        {0x01000010176f000a, "55619c02f4dbd15db989361493c8deff"},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        uint8_t passwd[WIRE_PASSWORD_LEN];
        char hex[2 * WIRE_PASSWORD_LEN + 1];
        clave__session_password((int64_t)vectors[i].id, passwd);
        for (size_t b = 0; b < sizeof passwd; b++)
            snprintf(hex + 2 * b, 3, "%02x", passwd[b]);
        assert_string_equal(hex, vectors[i].hex);
    }
}

/* ---- the handshake --------------------------------------------------------------------------- */

TEST_SERVER(timeouts_are_negotiated)
{
    static const int32_t asked[][2] = {{-1, 4000},     {0, 4000},         {3999, 4000},
                                       {4000, 4000},   {10000, 10000},    {40000, 40000},
                                       {40001, 40000}, {INT32_MAX, 40000}};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        CLOSED_BY(memserver_hang_up) struct memserver_conn c;
        memserver_connect(&c, d, asked[i][0]);
        assert_int_equal(c.timeout_ms, asked[i][1]);
    }
}

TEST_SERVER(read_only_is_answered_when_asked)
{
    for (int asked = 0; asked < 2; asked++) {
        struct wire_connect_request q = {.protocol_version = 99,
                                         .timeout_ms = 5000,
                                         .passwd = JBYTES_NULL,
                                         .read_only = true,
                                         .has_read_only = asked};
        struct wire_connect_response r;
        CLOSED_BY(memserver_hang_up) struct memserver_conn c;
        memserver_dial(&c, d);
        assert_true(memserver_handshake(&c, &q, &r));
        assert_int_equal(r.has_read_only, asked);
        assert_false(r.read_only);
        assert_int_equal(r.protocol_version, 0);
    }
}

TEST_SERVER(ids_come_from_the_wall_clock)
{
    CLOSED_BY(memserver_hang_up) struct memserver_conn a, b;
    uint64_t first = (uint64_t)memserver_wall(d) << 24 >> 8 | (uint64_t)1 << 56;
    memserver_connect(&a, d, 5000);
    memserver_connect(&b, d, 5000);
    assert_true((uint64_t)a.session == first);
    assert_true((uint64_t)b.session == first + 1);
}

static bool closed_in_silence(const struct memserver_conn *c)
{
    return !c->c && clave__buf_len(&c->in) == 0;
}

TEST_SERVER(a_client_from_the_future_is_closed)
{
    struct memserver_conn c;
    struct wire_connect_request q = {.timeout_ms = 5000, .passwd = JBYTES_NULL};
    struct wire_connect_response r;
    memserver_dial(&c, d);
    q.last_zxid_seen = 1;
    assert_false(memserver_handshake(&c, &q, &r));
    assert_true(closed_in_silence(&c));
    memserver_hang_up(&c);
    assert_int_equal(memserver_stats(d).last_zxid, 0);
    memserver_connect(&c, d, 5000);
    memserver_hang_up(&c);
    memserver_dial(&c, d);
    assert_true(memserver_handshake(&c, &q, &r)); /* by now there is a zxid 1 */
    memserver_hang_up(&c);
}

static void assert_refused(struct memserver *d, int64_t id, const uint8_t *passwd, size_t n)
{
    static const uint8_t zeros[WIRE_PASSWORD_LEN];
    struct wire_connect_request q = {.timeout_ms = 5000, .session_id = id, .has_read_only = true};
    struct wire_connect_response r;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    int64_t zxid = memserver_stats(d).last_zxid;
    q.passwd = clave__jbytes_n(passwd, n);
    memserver_dial(&c, d);
    assert_true(memserver_handshake(&c, &q, &r));
    assert_int_equal(r.timeout_ms, 0);
    assert_int_equal(r.session_id, 0);
    assert_memory_equal(r.passwd.p, zeros, sizeof zeros);
    assert_null(c.c);
    assert_int_equal(memserver_stats(d).last_zxid, zxid);
}

TEST_SERVER(wrong_sessions_are_refused)
{
    CLOSED_BY(memserver_hang_up) struct memserver_conn c, other;
    uint8_t bad[WIRE_PASSWORD_LEN];
    memserver_connect(&c, d, 5000);
    memcpy(bad, c.passwd, sizeof bad);
    bad[15] ^= 1;
    clave__session_password(c.session + 1, other.passwd);
    assert_refused(d, c.session + 1, other.passwd, sizeof other.passwd); /* unknown */
    assert_non_null(c.c);
    assert_refused(d, c.session, bad, sizeof bad);
    assert_null(c.c); /* as Apache: before it looks at the password */
    assert_refused(d, c.session, c.passwd, 15);
    assert_refused(d, c.session, c.passwd, 0);
    assert_true(memserver_resume(&other, &c)); /* and the session is none the worse */
}

TEST_SERVER(a_session_goes_on)
{
    CLOSED_BY(memserver_hang_up) struct memserver_conn a, b;
    struct wire_stat st;
    memserver_connect(&a, d, 5000);
    assert_int_equal(memserver_create(&a, "/e", "x", MODE_EPHEMERAL), CLAVE_OK);
    int64_t zxid = memserver_stats(d).last_zxid;
    assert_true(memserver_resume(&b, &a));
    assert_null(a.c);
    assert_int_equal(b.session, a.session);
    assert_memory_equal(b.passwd, a.passwd, sizeof a.passwd);
    assert_int_equal(memserver_stats(d).last_zxid, zxid); /* nothing is logged */
    assert_int_equal(memserver_stat(&b, "/e", &st), CLAVE_OK);
    assert_true(st.ephemeral_owner == a.session);
}

/* Handshake, create and read in one piece, and byte by byte: answered in order. */
TEST(pipelined_behind_the_handshake)
{
    static const uint8_t bytes[] = {0, 0, 0, 44, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x13,
                                    0x88, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0,
                                    0, 0, 0, 0, 0, 0, 0, 0, 0,
                                    /* ping */
                                    0, 0, 0, 8, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 11,
                                    /* exists "/", xid 1 */
                                    0, 0, 0, 14, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 1, '/', 0};
    for (size_t piece = 1; piece <= sizeof bytes; piece += sizeof bytes - 1) {
        CLOSED_BY(memserver_close) struct memserver d;
        CLOSED_BY(memserver_hang_up) struct memserver_conn c;
        struct wire_reply_header h;
        struct jreader r;
        memserver_open(&d, NULL);
        memserver_dial(&c, &d);
        for (size_t at = 0; at < sizeof bytes; at += piece)
            memserver_send(&c, bytes + at, piece);
        assert_int_equal(clave__buf_len(&c.in), 40 + 20 + 20 + 68);
        clave__buf_consume(&c.in, 40);
        assert_true(memserver_next(&c, &h, &r));
        assert_int_equal(h.xid, XID_PING);
        assert_int_equal(h.zxid, 1);
        assert_true(memserver_next(&c, &h, &r));
        assert_int_equal(h.xid, 1);
        assert_int_equal(h.err, 0);
    }
}

TEST_SERVER(bytes_that_are_not_the_protocol)
{
    static const struct {
        const char *name;
        const char *bytes;
        size_t n;
    } bad[] = {
        {"short",
         "\0\0\0\x2b"
         "1234567890123456789012345678901234567890123",
         47},
        {"empty", "\0\0\0\0", 4},
        {"negative", "\xff\xff\xff\xff", 4},
        {"too long", "\0\x10\0\0", 4},
        {"http", "GET / HTTP/1.1\r\n", 16},
        {"telnet", "\xff\xf4\xff\xfd", 4},
        {"lead", "lead", 4},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CLOSED_BY(memserver_hang_up) struct memserver_conn c;
        memserver_dial(&c, d);
        memserver_send(&c, bad[i].bytes, bad[i].n);
        if (!closed_in_silence(&c))
            fail_msg("%s: not closed", bad[i].name);
    }
    assert_int_equal(memserver_stats(d).last_zxid, 0);
}

TEST(a_frame_of_the_maximum_is_taken)
{
    static char data[WIRE_MAX_FRAME];
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    struct wire_reply r;
    union wire_body b = memserver_create_body("/big", NULL, MODE_PERSISTENT);
    union wire_body get = {.read = {clave__jbytes("/big"), false}};
    size_t rest = 8 + 4 + 4 + 4 + 4 + 23 + 4; /* header, path, data's length, list, flags */
    memserver_open(&d, NULL);
    memserver_connect(&c, &d, 5000);
    b.create.data = clave__jbytes_n(data, WIRE_MAX_FRAME - rest);
    assert_int_equal(memserver_call(&c, OP_CREATE, &b, NULL), CLAVE_OK);
    assert_int_equal(memserver_call(&c, OP_GET_DATA, &get, &r), CLAVE_OK);
    assert_int_equal(r.data.n, WIRE_MAX_FRAME - rest);
    b.create.data.n++;
    assert_int_equal(memserver_call(&c, OP_CREATE, &b, NULL), CLAVE_ECONNLOSS);
    assert_null(c.c);
}

TEST(nobody_is_accepted_before_the_start)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    assert_int_equal(memserver_open_bare(&d, NULL), CLAVE_OK);
    memserver_dial(&c, &d);
    assert_null(c.c);
    memserver_start(&d);
    memserver_dial(&c, &d);
    assert_non_null(c.c);
}

/* ---- time --------------------------------------------------------------------------------------
 */

/* A session ends with the tick its time runs out in: between its timeout and a tick more. */
TEST(sessions_expire_in_buckets)
{
    static const struct {
        int32_t tick, timeout, start;
    } cases[] = {{2000, 4000, 0},    {2000, 4000, 1},    {2000, 4000, 1999}, {2000, 5000, 700},
                 {3000, 6000, 2500}, {1000, 20000, 999}, {500, 3333, 123}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct server_options o = {.tick_ms = cases[i].tick};
        CLOSED_BY(memserver_close) struct memserver d;
        CLOSED_BY(memserver_hang_up) struct memserver_conn c;
        memserver_open(&d, &o);
        memserver_advance(&d, cases[i].tick - d.now % cases[i].tick + cases[i].start);
        memserver_connect(&c, &d, cases[i].timeout);
        int64_t begin = d.now;
        int64_t end = ((begin + cases[i].timeout) / cases[i].tick + 1) * cases[i].tick;
        memserver_advance(&d, end - begin - 1);
        assert_int_equal(memserver_stats(&d).sessions, 1);
        assert_non_null(c.c);
        memserver_advance(&d, 1);
        assert_int_equal(memserver_stats(&d).sessions, 0);
        assert_true(closed_in_silence(&c));
        assert_int_equal(memserver_stats(&d).last_zxid, 2);
    }
}

TEST(requests_keep_a_session_alive)
{
    CLOSED_BY(memserver_close) struct memserver d;
    struct memserver_conn pings, reads, auths, silent;
    union wire_body auth = {.auth = {0, clave__jbytes("digest"), clave__jbytes("a:b")}};
    struct wire_stat st;
    memserver_open(&d, NULL);
    memserver_connect(&pings, &d, 4000);
    memserver_connect(&reads, &d, 4000);
    memserver_connect(&auths, &d, 4000);
    memserver_connect(&silent, &d, 4000);
    for (int i = 0; i < 20; i++) {
        memserver_advance(&d, 1000);
        assert_int_equal(memserver_call(&pings, OP_PING, NULL, NULL), CLAVE_OK);
        assert_int_equal(memserver_stat(&reads, "/", &st), CLAVE_OK);
        if (auths.c)
            memserver_call(&auths, OP_AUTH, &auth, NULL);
    }
    assert_non_null(pings.c);
    assert_non_null(reads.c);
    assert_null(auths.c); /* auth packets do not count */
    assert_null(silent.c);
    memserver_hang_up(&pings);
    memserver_hang_up(&reads);
    memserver_hang_up(&auths);
    memserver_hang_up(&silent);
    assert_int_equal(memserver_stats(&d).sessions, 2); /* they go on without a connection */
    memserver_advance(&d, 7000);
    assert_int_equal(memserver_stats(&d).sessions, 0);
}

TEST_SERVER(a_resumed_session_has_its_time_anew)
{
    struct memserver_conn a, b;
    memserver_connect(&a, d, 4000);
    memserver_hang_up(&a);
    memserver_advance(d, 3000);
    assert_true(memserver_resume(&b, &a));
    memserver_hang_up(&b);
    memserver_advance(d, 3000);
    assert_int_equal(memserver_stats(d).sessions, 1);
    memserver_advance(d, 3000);
    assert_int_equal(memserver_stats(d).sessions, 0);
    assert_false(memserver_resume(&b, &a));
    memserver_hang_up(&b);
}

/* The clock jumps when a machine was suspended; nothing may loop or stay due. */
TEST_SESSION(a_long_pause, 40000)
{
    d->now += (int64_t)90 * 24 * 3600 * 1000;
    clave__server_tick(d->s, d->now, memserver_wall(d));
    memserver_settle(d);
    assert_null(c->c);
    assert_int_equal(memserver_stats(d).sessions, 0);
    assert_true(clave__server_deadline(d->s) == INT64_MAX);
}

TEST_SERVER(a_connection_needs_a_session_in_time)
{
    CLOSED_BY(memserver_hang_up) struct memserver_conn idle, slow;
    memserver_dial(&idle, d);
    memserver_dial(&slow, d);
    memserver_send(&slow, "\0\0", 2);
    memserver_advance(d, 9999);
    assert_non_null(idle.c);
    memserver_advance(d, 1);
    assert_true(closed_in_silence(&idle));
    assert_true(closed_in_silence(&slow));
}

TEST_SERVER(expiry_takes_the_ephemerals)
{
    CLOSED_BY(memserver_hang_up) struct memserver_conn a, b;
    struct wire_stat st;
    memserver_connect(&a, d, 4000);
    memserver_connect(&b, d, 40000);
    assert_int_equal(memserver_create(&a, "/one", "", MODE_EPHEMERAL), CLAVE_OK);
    assert_int_equal(memserver_create(&a, "/two", "", MODE_EPHEMERAL), CLAVE_OK);
    assert_int_equal(memserver_create(&a, "/stays", "", MODE_PERSISTENT), CLAVE_OK);
    assert_int_equal(memserver_watch(&b, OP_EXISTS, "/one"), CLAVE_OK);
    assert_int_equal(memserver_watch(&b, OP_GET_CHILDREN, "/"), CLAVE_OK);
    int64_t zxid = memserver_stats(d).last_zxid;
    memserver_advance(d, 6000);
    assert_null(a.c);
    assert_string_equal(memserver_events(&b), "DELETED /one, CHILDREN /");
    assert_int_equal(memserver_stats(d).last_zxid, zxid + 1); /* one for all */
    assert_int_equal(memserver_stats(d).ephemerals, 0);
    assert_int_equal(memserver_stat(&b, "/one", &st), CLAVE_ENONODE);
    assert_int_equal(memserver_stat(&b, "/two", &st), CLAVE_ENONODE);
    assert_int_equal(memserver_stat(&b, "/stays", &st), CLAVE_OK);
}

TEST_SERVER(closing_is_answered_then_closed)
{
    struct memserver_conn a, b;
    struct wire_reply_header h;
    struct jreader r;
    memserver_connect(&a, d, 4000);
    assert_int_equal(memserver_create(&a, "/e", "", MODE_EPHEMERAL), CLAVE_OK);
    assert_int_equal(memserver_watch(&a, OP_EXISTS, "/e"), CLAVE_OK);
    memserver_request(&a, OP_CLOSE_SESSION, NULL);
    assert_string_equal(memserver_events(&a), "DELETED /e"); /* its own event comes first */
    assert_true(memserver_next(&a, &h, &r));
    assert_int_equal(h.zxid, 3);
    assert_int_equal(h.err, 0);
    assert_null(a.c);
    assert_false(memserver_resume(&b, &a));
    memserver_hang_up(&a);
    memserver_hang_up(&b);
    assert_int_equal(memserver_stats(d).sessions, 0);
    assert_int_equal(memserver_stats(d).watches, 0);
}

/* ---- words --------------------------------------------------------------------------------------
 */

static const char *ask(struct memserver *d, const char *word)
{
    static char answer[4096];
    struct memserver_conn c;
    memserver_dial(&c, d);
    memserver_send(&c, word, 4);
    assert_null(c.c);
    size_t n = clave__buf_len(&c.in);
    assert_true(n < sizeof answer);
    memcpy(answer, clave__buf_bytes(&c.in) ? clave__buf_bytes(&c.in) : (const uint8_t *)"", n);
    answer[n] = '\0';
    memserver_hang_up(&c);
    return answer;
}

TEST_SERVER(words_are_answered)
{
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    char line[128];
    assert_string_equal(ask(d, "ruok"), "imok");
    assert_string_equal(ask(d, "isro"), "rw");
    assert_string_equal(ask(d, "dump"),
                        "dump is not executed because it is not in the whitelist.\n");
    assert_non_null(strstr(ask(d, "srvr"), "\nZxid: 0x0\nMode: standalone\nNode count: 5\n"));
    assert_non_null(strstr(ask(d, "srvr"), "\nLatency min/avg/max: 0/0.0/0\n"));
    memserver_connect(&c, d, 10000);
    memserver_call(&c, OP_PING, NULL, NULL);
    const char *cons = ask(d, "cons");
    snprintf(line, sizeof line,
             " /127.0.0.1:42100[1](queued=0,recved=2,sent=2,sid=0x%llx,lop=PING,",
             (unsigned long long)c.session);
    if (strncmp(cons, line, strlen(line)) != 0)
        fail_msg("%s", cons);
    assert_non_null(strstr(cons, ",to=10000,lcxid=0x0,lzxid=0x1,"));
    assert_non_null(strstr(ask(d, "stat"), "Clients:\n /127.0.0.1:42100[1](queued=0,"));
    const char *mntr = ask(d, "mntr");
    assert_non_null(strstr(mntr, "zk_server_state\tstandalone\n"));
    assert_non_null(strstr(mntr, "zk_num_alive_connections\t2\n"));
    assert_non_null(strstr(mntr, "zk_global_sessions\t1\n"));
    assert_non_null(
        strstr(ask(d, "conf"), "tickTime=2000\nmaxClientCnxns=0\nminSessionTimeout=4000\n"));
    assert_non_null(strstr(ask(d, "envi"), "Environment:\nzookeeper.version=3.9."));
}

/* Milliseconds from being read to being sendable: what waits for the disk counts. */
TEST_SESSION(latency_is_counted, 10000)
{
    for (int i = 0; i < 3; i++)
        assert_int_equal(memserver_call(c, OP_PING, NULL, NULL), CLAVE_OK);
    d->disk_stands = true;
    union wire_body b = memserver_create_body("/slow", "", MODE_PERSISTENT);
    memserver_request(c, OP_CREATE, &b);
    assert_string_equal(ask(d, "ruok"), "imok"); /* waits for nothing */
    assert_non_null(strstr(ask(d, "srvr"), "Outstanding: 1\nZxid: 0x1\n"));
    memserver_advance(d, 10);
    memserver_flush(d);
    d->disk_stands = false;
    memserver_settle(d);
    assert_non_null(strstr(ask(d, "srvr"), "Latency min/avg/max: 0/2.5/10\n"));
}
