/* server_client_limits_test.c - the limits on what one client may have the server keep or send:
 * what is refused, with which code, and that it is counted and logged once a second. */
#include "lib/memserver.h"
#include "lib/unit.h"

struct bounded {
    struct memserver d;
    struct memserver_conn c;
};

static void bounded_open(struct bounded *b, enum server_limit limit, size_t most)
{
    struct server_options o = {.max_session_ms = 40000};
    o.client_limits[limit] = most;
    memserver_open(&b->d, &o);
    memserver_connect(&b->c, &b->d, 40000);
}

static void bounded_close(struct bounded *b)
{
    memserver_hang_up(&b->c);
    memserver_close(&b->d);
}

static uint64_t refused(struct bounded *b, enum server_limit limit)
{
    return memserver_stats(&b->d).refused[limit];
}

static clave_err create(struct bounded *b, const char *path)
{
    return memserver_create(&b->c, path, "", MODE_PERSISTENT);
}

static clave_err ask(struct memserver_conn *c, int32_t op, const char *path, bool watch)
{
    union wire_body body = {.read = {clave__jbytes(path), watch}};
    return memserver_call(c, op, &body, NULL);
}

static clave_err add_watch(struct memserver_conn *c, const char *path)
{
    union wire_body body = {.typed = {clave__jbytes(path), ADD_WATCH_PERSISTENT}};
    return memserver_call(c, OP_ADD_WATCH, &body, NULL);
}

/* ---- watches --------------------------------------------------------------------------------- */

TEST(watches_of_a_connection)
{
    CLOSED_BY(bounded_close) struct bounded b;
    bounded_open(&b, LIMIT_CONNECTION_WATCHES, 2);
    assert_int_equal(ask(&b.c, OP_EXISTS, "/a", true), CLAVE_ENONODE);
    assert_int_equal(ask(&b.c, OP_GET_CHILDREN, "/", true), CLAVE_OK);
    /* Not the answer without the watch: the client would wait for an event for ever. */
    assert_int_equal(ask(&b.c, OP_EXISTS, "/b", true), CLAVE_EBADARGS);
    assert_int_equal(add_watch(&b.c, "/"), CLAVE_EBADARGS);
    assert_int_equal(refused(&b, LIMIT_CONNECTION_WATCHES), 2);
    assert_non_null(strstr(b.d.lines, "3 watches of its connection, the limit is 2 "
                                      "(--max-connection-watches; 1 refused since"));
    /* One that is set already, none at all, and those of another connection. */
    assert_int_equal(ask(&b.c, OP_GET_CHILDREN, "/", true), CLAVE_OK);
    assert_int_equal(ask(&b.c, OP_EXISTS, "/b", false), CLAVE_ENONODE);
    CLOSED_BY(memserver_hang_up) struct memserver_conn other;
    memserver_connect(&other, &b.d, 4000);
    assert_int_equal(ask(&other, OP_EXISTS, "/b", true), CLAVE_ENONODE);
    /* An event makes room. */
    assert_int_equal(memserver_create(&other, "/a", "", 0), CLAVE_OK);
    assert_string_equal(memserver_events(&b.c), "CREATED /a, CHILDREN /");
    assert_int_equal(ask(&b.c, OP_EXISTS, "/c", true), CLAVE_ENONODE);
}

TEST(watches_of_all_connections)
{
    CLOSED_BY(bounded_close) struct bounded b;
    struct memserver_conn other;
    bounded_open(&b, LIMIT_WATCHES, 2);
    memserver_connect(&other, &b.d, 4000);
    assert_int_equal(ask(&b.c, OP_EXISTS, "/a", true), CLAVE_ENONODE);
    assert_int_equal(add_watch(&other, "/a"), CLAVE_OK);
    assert_int_equal(ask(&b.c, OP_EXISTS, "/b", true), CLAVE_EBADARGS);
    memserver_hang_up(&other);
    assert_int_equal(ask(&b.c, OP_EXISTS, "/b", true), CLAVE_ENONODE);
    assert_int_equal(refused(&b, LIMIT_WATCHES), 1);
}

/* setWatches: its client would not see the error, and miss events. */
TEST(watches_that_come_back_are_all_or_a_disconnect)
{
    CLOSED_BY(bounded_close) struct bounded b;
    union wire_body body;
    CLOSED_BY(clave__buf_fini) struct buf paths;
    bounded_open(&b, LIMIT_CONNECTION_WATCHES, 1);
    clave__buf_init(&paths, &b.d.mem, 1024);
    struct jwriter w = clave__jwriter(&paths);
    clave__jput_bytes(&w, clave__jbytes("/a"));
    clave__jput_bytes(&w, clave__jbytes("/b"));
    memset(&body, 0, sizeof body);
    body.watches.exist = (struct jvec){2, clave__buf_bytes(&paths), clave__buf_len(&paths)};
    assert_int_equal(memserver_call(&b.c, OP_SET_WATCHES, &body, NULL), CLAVE_ECONNLOSS);
    assert_int_equal(memserver_stats(&b.d).sessions, 1);
}

TEST(a_watched_path_is_bounded)
{
    CLOSED_BY(bounded_close) struct bounded b;
    bounded_open(&b, LIMIT_PATH, 8);
    assert_int_equal(ask(&b.c, OP_EXISTS, "/3456789", true), CLAVE_ENONODE);
    assert_int_equal(ask(&b.c, OP_EXISTS, "/34567890", true), CLAVE_EBADARGS);
    assert_int_equal(ask(&b.c, OP_EXISTS, "/34567890", false), CLAVE_ENONODE);
}

/* ---- sessions -------------------------------------------------------------------------------- */

TEST(sessions_are_bounded)
{
    CLOSED_BY(bounded_close) struct bounded b;
    struct memserver_conn late;
    struct wire_connect_request q = {.timeout_ms = 4000};
    struct wire_connect_response r;
    bounded_open(&b, LIMIT_SESSIONS, 1);
    memserver_dial(&late, &b.d);
    assert_false(memserver_handshake(&late, &q, &r));
    memserver_hang_up(&late);
    /* The one there is comes back all the same. */
    memserver_hang_up(&b.c);
    assert_true(memserver_resume(&late, &b.c));
    assert_int_equal(refused(&b, LIMIT_SESSIONS), 1);
    memserver_hang_up(&late);
}

/* ---- sessions without a connection ----------------------------------------------------------- */

static bool new_session(struct bounded *b, struct memserver_conn *c, uint8_t last_of_ip)
{
    struct wire_connect_request q = {.timeout_ms = 4000};
    struct wire_connect_response r;
    memserver_dial_from(c, &b->d, last_of_ip);
    return memserver_handshake(c, &q, &r);
}

static void leave_session(struct bounded *b, uint8_t last_of_ip)
{
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    assert_true(new_session(b, &c, last_of_ip));
}

static void assert_refused(struct bounded *b, uint8_t last_of_ip, uint64_t so_often)
{
    struct memserver_conn c;
    assert_false(new_session(b, &c, last_of_ip));
    memserver_hang_up(&c);
    assert_int_equal(refused(b, LIMIT_DISCONNECTED), so_often);
}

TEST(disconnected_sessions_of_an_address_are_bounded)
{
    CLOSED_BY(bounded_close) struct bounded b;
    struct memserver_conn left, back, local;
    bounded_open(&b, LIMIT_DISCONNECTED, 2);
    leave_session(&b, 7);
    assert_true(new_session(&b, &left, 7));
    memserver_hang_up(&left);
    assert_refused(&b, 7, 1);
    assert_non_null(strstr(b.d.lines, "3 sessions of its address without a connection, the limit "
                                      "is 2 (--max-disconnected; 1 refused since"));
    /* Other addresses, and Unix sockets. */
    leave_session(&b, 8);
    for (int i = 0; i < 4; i++) {
        memserver_connect_local(&local, &b.d, 1000);
        memserver_hang_up(&local);
    }
    /* One comes back, from elsewhere: it counts neither there nor here, until it is left again. */
    assert_true(memserver_resume(&back, &left));
    leave_session(&b, 7);
    assert_refused(&b, 7, 2);
    memserver_hang_up(&back);
    leave_session(&b, 1);
    assert_refused(&b, 1, 3);
    /* A session that is closed, or expires, makes room. */
    memserver_advance(&b.d, 8000);
    struct memserver_conn c;
    for (int i = 0; i < 3; i++) {
        assert_true(new_session(&b, &c, 7));
        assert_int_equal(memserver_call(&c, OP_CLOSE_SESSION, NULL, NULL), CLAVE_OK);
        memserver_hang_up(&c);
    }
    assert_int_equal(refused(&b, LIMIT_DISCONNECTED), 3);
}

/* A host with IPv6 has a network of 64 bits to itself. */
TEST(addresses_of_one_network_count_as_one)
{
    static const struct {
        struct peer_addr first, second;
        bool same;
    } cases[] = {
        {{.family = 6, .ip = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}},
         {.family = 6, .ip = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 9, 9, 9, 9, 9, 9, 9, 9}},
         true},
        {{.family = 6, .ip = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 1}},
         {.family = 6, .ip = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 2}},
         false},
        {{.family = 4, .ip = {10, 0, 0, 1}}, {.family = 4, .ip = {10, 0, 0, 1}}, true},
        {{.family = 4, .ip = {10, 0, 0, 1}}, {.family = 4, .ip = {10, 0, 0, 2}}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(bounded_close) struct bounded b;
        struct memserver_conn left, late;
        struct wire_connect_request q = {.timeout_ms = 4000};
        struct wire_connect_response r;
        bounded_open(&b, LIMIT_DISCONNECTED, 1);
        memserver_dial_peer(&left, &b.d, &cases[i].first);
        assert_true(memserver_handshake(&left, &q, &r));
        memserver_hang_up(&left);
        memserver_dial_peer(&late, &b.d, &cases[i].second);
        assert_int_equal(memserver_handshake(&late, &q, &r), !cases[i].same);
        memserver_hang_up(&late);
    }
}

/* It counts for the connection that it had last, and not while it has one. */
TEST(a_session_that_moves_is_counted_once)
{
    CLOSED_BY(bounded_close) struct bounded b;
    struct memserver_conn moves, there, wrong, thief;
    bounded_open(&b, LIMIT_DISCONNECTED, 1);
    assert_true(new_session(&b, &moves, 7));
    assert_true(memserver_resume(&there, &moves));
    leave_session(&b, 7);
    assert_refused(&b, 7, 1);
    /* As in Apache, its connection ends even if the password turns out to be wrong. */
    wrong = there;
    wrong.passwd[0] ^= 1;
    assert_false(memserver_resume(&thief, &wrong));
    assert_refused(&b, 1, 2);
    memserver_hang_up(&moves);
    memserver_hang_up(&there);
    memserver_hang_up(&thief);
}

/* The log has no addresses: nobody is refused for what others have left. */
TEST(sessions_of_before_a_restart_do_not_count)
{
    CLOSED_BY(bounded_close) struct bounded b, next;
    struct memserver_conn left, back;
    struct log_replay replay;
    bounded_open(&b, LIMIT_DISCONNECTED, 1);
    assert_true(new_session(&b, &left, 7));
    memserver_hang_up(&left);
    assert_refused(&b, 7, 1);
    assert_int_equal(memserver_open_bare(&next.d, &b.d.o), CLAVE_OK);
    assert_int_equal(clave__server_replay_log(next.d.s, b.d.log.data, b.d.log.tail, &replay),
                     CLAVE_OK);
    memserver_start(&next.d);
    memserver_connect(&next.c, &next.d, 4000);
    left.d = &next.d;
    assert_true(memserver_resume(&back, &left));
    memserver_hang_up(&back);
    assert_refused(&next, 1, 1);
}

/* ---- paths ----------------------------------------------------------------------------------- */

TEST(new_paths_are_bounded)
{
    static const struct {
        enum server_limit limit;
        size_t most;
        const char *fits, *beyond;
    } cases[] = {
        {LIMIT_NAME, 4, "/a/1234", "/a/12345"},
        {LIMIT_PATH, 9, "/a/123456", "/a/1234567"},
        {LIMIT_DEPTH, 2, "/a/1", "/a/1/2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(bounded_close) struct bounded b;
        bounded_open(&b, cases[i].limit, cases[i].most);
        assert_int_equal(create(&b, "/a"), CLAVE_OK);
        assert_int_equal(create(&b, cases[i].fits), CLAVE_OK);
        assert_int_equal(create(&b, cases[i].beyond), CLAVE_EBADARGS);
        assert_int_equal(refused(&b, cases[i].limit), 1);
        assert_int_equal(memserver_stats(&b.d).nodes, 6); /* with / and ZooKeeper's own */
    }
}

/* The digits of a sequential name count, too. */
TEST(a_sequential_name_is_bounded)
{
    CLOSED_BY(bounded_close) struct bounded b;
    bounded_open(&b, LIMIT_NAME, 12);
    assert_int_equal(memserver_create(&b.c, "/ab", "", MODE_PERSISTENT_SEQUENTIAL), CLAVE_OK);
    assert_int_equal(memserver_create(&b.c, "/abc", "", MODE_PERSISTENT_SEQUENTIAL),
                     CLAVE_EBADARGS);
}

TEST(a_request_is_bounded)
{
    enum { MOST = 100 };
    struct server_options o = {.max_frame = MOST};
    CLOSED_BY(bounded_close) struct bounded b;
    char data[MOST] = "";
    memserver_open(&b.d, &o);
    memserver_connect(&b.c, &b.d, 40000);
    memset(data, 'x', sizeof data - 1);
    assert_int_equal(create(&b, "/a"), CLAVE_OK);
    assert_int_equal(refused(&b, LIMIT_REQUEST), 0);
    assert_int_equal(memserver_create(&b.c, "/b", data, MODE_PERSISTENT), CLAVE_ECONNLOSS);
    assert_null(b.c.c);
    assert_int_equal(refused(&b, LIMIT_REQUEST), 1);
    assert_non_null(strstr(b.d.lines, "bytes of a request, the limit is 100 (--max-request; 1"));
}

/* No number is given out twice: two nodes with one number would both hold a lock. */
TEST(sequence_numbers_end)
{
    CLOSED_BY(bounded_close) struct bounded b;
    bounded_open(&b, LIMIT_SEQUENCE, 2);
    assert_int_equal(create(&b, "/q"), CLAVE_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(memserver_create(&b.c, "/q/x-", "", MODE_EPHEMERAL_SEQUENTIAL), CLAVE_OK);
    assert_int_equal(memserver_create(&b.c, "/q/y-", "", MODE_EPHEMERAL_SEQUENTIAL),
                     CLAVE_EBADARGS);
    assert_int_equal(create(&b, "/q/plain"), CLAVE_OK);
    assert_int_equal(memserver_delete(&b.c, "/q/x-0000000001", -1), CLAVE_OK);
    assert_int_equal(memserver_create(&b.c, "/q/y-", "", MODE_EPHEMERAL_SEQUENTIAL),
                     CLAVE_EBADARGS);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* The same node, so often that the answers together are beyond the bound. */
static void many_reads_are_one_answer(struct bounded *b)
{
    CLOSED_BY(clave__buf_fini) struct buf ops;
    struct wire_op op = {.op = OP_GET_CHILDREN, .body.read = {clave__jbytes("/"), false}};
    clave__buf_init(&ops, &b->d.mem, 4096);
    struct jwriter w = clave__jwriter(&ops);
    for (int i = 0; i < 40; i++)
        clave__wire_put_op(&w, &op);
    clave__wire_put_ops_end(&w);
    union wire_body body = {.multi = {40, clave__buf_bytes(&ops), clave__buf_len(&ops)}};
    assert_int_equal(memserver_call(&b->c, OP_MULTI_READ, &body, NULL), CLAVE_EMARSHALLING);
    assert_int_equal(refused(b, LIMIT_ANSWER), 3);
}

TEST(an_answer_is_bounded)
{
    CLOSED_BY(bounded_close) struct bounded b;
    char path[64];
    bounded_open(&b, LIMIT_ANSWER, 1024);
    assert_int_equal(create(&b, "/d"), CLAVE_OK);
    for (int i = 0; i < 20; i++) {
        snprintf(path, sizeof path, "/d/a-name-of-forty-bytes-with-its-number-%02d", i);
        assert_int_equal(create(&b, path), CLAVE_OK);
    }
    assert_int_equal(ask(&b.c, OP_GET_CHILDREN, "/d", false), CLAVE_OK);
    for (int i = 20; i < 40; i++) {
        snprintf(path, sizeof path, "/d/a-name-of-forty-bytes-with-its-number-%02d", i);
        assert_int_equal(memserver_create(&b.c, path, "", MODE_EPHEMERAL), CLAVE_OK);
    }
    assert_int_equal(ask(&b.c, OP_GET_CHILDREN, "/d", false), CLAVE_EMARSHALLING);
    assert_int_equal(ask(&b.c, OP_GET_CHILDREN2, "/d", false), CLAVE_EMARSHALLING);
    union wire_body prefix = {.path = clave__jbytes("/d/a-name-of-forty-bytes-with-its-number-2")};
    assert_int_equal(memserver_call(&b.c, OP_GET_EPHEMERALS, &prefix, NULL), CLAVE_OK);
    prefix.path = clave__jbytes("/");
    assert_int_equal(memserver_call(&b.c, OP_GET_EPHEMERALS, &prefix, NULL), CLAVE_OK);
    assert_int_equal(refused(&b, LIMIT_ANSWER), 2);
    many_reads_are_one_answer(&b);
    /* The connection goes on. */
    assert_int_equal(ask(&b.c, OP_EXISTS, "/d", false), CLAVE_OK);
}

/* A million names would take their time, and 16 MiB: they are not written before it is refused. */
TEST(what_is_beyond_the_bound_is_not_written)
{
    enum { MANY = 20000, WITHIN = 16 * 1024 };
    static const int32_t ops[] = {OP_GET_CHILDREN, OP_GET_CHILDREN2, OP_GET_EPHEMERALS,
                                  OP_MULTI_READ};
    CLOSED_BY(bounded_close) struct bounded b;
    CLOSED_BY(clave__buf_fini) struct buf reads;
    struct wire_op part = {.op = OP_GET_CHILDREN, .body.read = {clave__jbytes("/d"), false}};
    char path[64];
    bounded_open(&b, LIMIT_ANSWER, 4096);
    assert_int_equal(create(&b, "/d"), CLAVE_OK);
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof path, "/d/a-name-of-forty-bytes-with-its-number-%05d", i);
        assert_int_equal(memserver_create(&b.c, path, "", MODE_EPHEMERAL), CLAVE_OK);
    }
    clave__buf_init(&reads, &b.d.mem, 4096);
    struct jwriter w = clave__jwriter(&reads);
    clave__wire_put_op(&w, &part);
    clave__wire_put_ops_end(&w);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        union wire_body body = {.read = {clave__jbytes("/d"), false}};
        if (ops[i] == OP_GET_EPHEMERALS)
            body = (union wire_body){.path = clave__jbytes("/d")};
        if (ops[i] == OP_MULTI_READ)
            body =
                (union wire_body){.multi = {1, clave__buf_bytes(&reads), clave__buf_len(&reads)}};
        b.c.deaf = true; /* the memory of the answer stays */
        memserver_request(&b.c, ops[i], &body);
        assert_in_range(memserver_stats(&b.d).undelivered, 1, WITHIN);
        assert_int_equal(refused(&b, LIMIT_ANSWER), i + 1);
        memserver_take_output(&b.c);
        struct wire_reply_header h;
        struct jreader rest;
        assert_true(memserver_next(&b.c, &h, &rest));
        assert_int_equal(h.err, CLAVE_EMARSHALLING);
        assert_int_equal(rest.n, 0);
    }
}

/* ---- the log, and changes -------------------------------------------------------------------- */

static size_t lines_with(const struct memserver *d, const char *text)
{
    size_t n = 0;
    for (const char *at = d->lines; (at = strstr(at, text)); at++)
        n++;
    return n;
}

TEST(refusals_are_logged_once_a_second)
{
    CLOSED_BY(bounded_close) struct bounded b;
    bounded_open(&b, LIMIT_DEPTH, 1);
    assert_int_equal(create(&b, "/a"), CLAVE_OK);
    for (int i = 0; i < 5; i++)
        assert_int_equal(create(&b, "/a/b"), CLAVE_EBADARGS);
    assert_int_equal(lines_with(&b.d, "--max-depth"), 1);
    memserver_advance(&b.d, 1000);
    assert_int_equal(create(&b, "/a/b"), CLAVE_EBADARGS);
    assert_int_equal(lines_with(&b.d, "--max-depth"), 2);
    assert_non_null(strstr(b.d.lines, "--max-depth; 5 refused since the last message"));
    /* While it serves, a limit may change. */
    struct server_options o = {.max_session_ms = 40000};
    assert_int_equal(clave__server_change(b.d.s, &o), CLAVE_OK);
    assert_int_equal(create(&b, "/a/b"), CLAVE_OK);
}
