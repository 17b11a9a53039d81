/* server_slow_requests_test.c - slow_ms: which requests are logged, with what, and that few are at
 * a time.
 */
#include "lib/memserver.h"
#include "lib/unit.h"

static int lines_of(const struct memserver *d, const char *text)
{
    int n = 0;
    for (const char *at = d->lines; (at = strstr(at, text)); at += strlen(text))
        n++;
    return n;
}

TEST(the_line)
{
    struct server_options o = {.slow_ms = 50};
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c, other;
    char line[200];
    memserver_open(&d, &o);
    memserver_connect(&c, &d, 30000);
    memserver_connect(&other, &d, 30000);
    d.disk_stands = true;
    union wire_body create = memserver_create_body("/a\nb", "12345", 0);
    union wire_body read = {.read.path = clave__jbytes("/")};
    memserver_request(&c, OP_CREATE, &create);
    memserver_advance(&d, 30);
    memserver_request(&other, OP_GET_DATA, &read); /* waits as well, but not so long */
    memserver_request(&c, OP_PING, NULL);
    memserver_advance(&d, 30);
    assert_int_equal(lines_of(&d, "slow request"), 0); /* said when it is known */
    memserver_flush(&d);
    memserver_settle(&d);
    snprintf(line, sizeof line,
             "slow request: create /a?b took 60 ms (0 unread, 0 in its turn, 60 for the disk), 56 "
             "bytes, session 0x%llx of 127.0.0.1:42100",
             (unsigned long long)c.session);
    assert_non_null(strstr(d.lines, line));
    assert_int_equal(lines_of(&d, "slow request"), 1);
}

TEST(few_lines_and_a_count)
{
    struct server_options o = {.slow_ms = 10};
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    memserver_open(&d, &o);
    memserver_connect(&c, &d, 30000);
    d.disk_stands = true;
    union wire_body create = memserver_create_body("/n-", "", 2);
    for (int i = 0; i < 35; i++)
        memserver_request(&c, OP_CREATE, &create);
    memserver_advance(&d, 10);
    memserver_flush(&d);
    memserver_settle(&d);
    assert_int_equal(lines_of(&d, "slow request: create /n- took"), 10);
    assert_null(strstr(d.lines, "more slow requests"));
    d.disk_stands = false;
    memserver_advance(&d, 1000);
    assert_non_null(strstr(d.lines, "25 more slow requests in a second"));
    memserver_advance(&d, 1000);
    assert_int_equal(lines_of(&d, "more slow requests"), 1);
}

/* What waits when its client goes, or when the limit is taken away, is nobody's business. */
TEST(what_ends_before)
{
    struct server_options o = {.slow_ms = 10};
    CLOSED_BY(memserver_close) struct memserver d;
    struct memserver_conn c, other;
    memserver_open(&d, &o);
    memserver_connect(&c, &d, 30000);
    memserver_connect(&other, &d, 30000);
    d.disk_stands = true;
    union wire_body create = memserver_create_body("/n-", "", 2);
    memserver_request(&c, OP_CREATE, &create);
    memserver_request(&other, OP_CREATE, &create);
    memserver_advance(&d, 20);
    memserver_hang_up(&c);
    struct server_options off = d.o;
    off.slow_ms = 0;
    assert_int_equal(clave__server_change(d.s, &off), CLAVE_OK);
    memserver_flush(&d);
    memserver_settle(&d);
    assert_null(strstr(d.lines, "slow"));
    memserver_hang_up(&other);
}

/* ---- without the disk ------------------------------------------------------------------------ */

static void slow_open(struct memserver *d, struct memserver_conn *c)
{
    struct server_options o = {.slow_ms = 50};
    memserver_open(d, &o);
    memserver_connect(c, d, 30000);
}

static void end_turn(struct memserver *d, int64_t ms)
{
    d->now += ms;
    clave__server_end_turn(d->s, d->now);
}

static void begin_turn(struct memserver *d, int64_t pause_ms)
{
    d->now += pause_ms;
    clave__server_tick(d->s, d->now, memserver_wall(d));
}

static void list_of(struct memserver_conn *c, const char *path)
{
    union wire_body body = {.read.path = clave__jbytes(path)};
    memserver_request(c, OP_GET_CHILDREN, &body);
}

/* The turn of a long answer, the next one, whose requests have come meanwhile, and one after a
 * pause, whose requests nobody has kept waiting. */
TEST(a_turn_that_takes_long)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    slow_open(&d, &c);
    begin_turn(&d, 100);
    list_of(&c, "/");
    end_turn(&d, 60);
    assert_non_null(strstr(d.lines, "slow request: getChildren / took 60 ms (0 unread, 60 in its "
                                    "turn, 0 for the disk), 14 bytes, session 0x"));
    begin_turn(&d, 0);
    list_of(&c, "/zookeeper");
    end_turn(&d, 2);
    assert_non_null(strstr(d.lines, "getChildren /zookeeper took 62 ms (60 unread, 2 in its turn, "
                                    "0 for the disk)"));
    begin_turn(&d, 0);
    list_of(&c, "/");
    end_turn(&d, 2);
    begin_turn(&d, 100);
    list_of(&c, "/");
    end_turn(&d, 49);
    begin_turn(&d, 100);
    memserver_request(&c, OP_PING, NULL);
    end_turn(&d, 60);
    assert_int_equal(lines_of(&d, "slow request"), 2);
}

/* Of many in one turn those with most work are named first, wherever they came: they are why the
 * others have waited. */
TEST(the_cause_is_among_the_lines)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    char path[32];
    slow_open(&d, &c);
    assert_int_equal(memserver_create(&c, "/list", "", 0), CLAVE_OK);
    for (int i = 0; i < 100; i++) {
        snprintf(path, sizeof path, "/list/%05d", i);
        assert_int_equal(memserver_create(&c, path, "", 0), CLAVE_OK);
    }
    begin_turn(&d, 100);
    for (int i = 0; i < 30; i++)
        list_of(&c, "/zookeeper");
    list_of(&c, "/list");
    for (int i = 0; i < 30; i++)
        list_of(&c, "/zookeeper");
    end_turn(&d, 60);
    const char *first = strstr(d.lines, "slow request: getChildren /list took");
    const char *others = strstr(d.lines, "slow request: getChildren /zookeeper took");
    assert_true(first && others && first < others);
    assert_int_equal(lines_of(&d, "slow request:"), 10);
    begin_turn(&d, 1000);
    assert_non_null(strstr(d.lines, "51 more slow requests in a second"));
    end_turn(&d, 0);
}

/* A write whose turn took long, and then the disk; and a client that is gone by then. */
TEST(a_long_turn_and_the_disk)
{
    CLOSED_BY(memserver_close) struct memserver d;
    struct memserver_conn c, gone;
    slow_open(&d, &c);
    memserver_connect(&gone, &d, 30000);
    begin_turn(&d, 100);
    d.disk_stands = true;
    union wire_body create = memserver_create_body("/n", "", 0);
    memserver_request(&c, OP_CREATE, &create);
    end_turn(&d, 70);
    begin_turn(&d, 30);
    memserver_flush(&d);
    memserver_settle(&d);
    assert_non_null(strstr(d.lines, "create /n took 100 ms (0 unread, 70 in its turn, 30 for the "
                                    "disk)"));
    list_of(&gone, "/zookeeper");
    memserver_hang_up(&gone);
    end_turn(&d, 60);
    assert_non_null(strstr(d.lines, " of a client that is gone"));
    memserver_hang_up(&c);
}

/* What a turn declines to read, and what waits in the server until there is room for its reply. */
TEST(the_time_before_it_is_read)
{
    struct server_options o = {.slow_ms = 50, .max_outstanding = 1};
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    memserver_open(&d, &o);
    memserver_connect(&c, &d, 30000);
    begin_turn(&d, 100);
    clave__server_conn_left_unread(c.c);
    end_turn(&d, 1);
    begin_turn(&d, 79);
    clave__server_conn_left_unread(c.c);
    end_turn(&d, 0);
    begin_turn(&d, 0);
    list_of(&c, "/");
    end_turn(&d, 0);
    assert_non_null(strstr(d.lines, "getChildren / took 80 ms (80 unread, 0 in its turn"));
    begin_turn(&d, 100);
    list_of(&c, "/");
    assert_int_equal(lines_of(&d, "slow request"), 1);
    d.disk_stands = true;
    union wire_body create = memserver_create_body("/n", "", 0);
    memserver_request(&c, OP_CREATE, &create);
    list_of(&c, "/zookeeper");
    end_turn(&d, 0);
    begin_turn(&d, 60);
    memserver_flush(&d);
    memserver_settle(&d);
    end_turn(&d, 0);
    assert_non_null(strstr(d.lines, "create /n took 60 ms (0 unread, 0 in its turn, 60 for the"));
    assert_non_null(strstr(d.lines, "getChildren /zookeeper took 60 ms (60 unread, 0 in its"));
    begin_turn(&d, 100);
    list_of(&c, "/");
    end_turn(&d, 0);
    assert_int_equal(lines_of(&d, "slow request"), 3);
}

TEST(what_comes_later_does_not_make_it_younger)
{
    struct server_options o = {.slow_ms = 50, .max_outstanding = 1};
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    memserver_open(&d, &o);
    memserver_connect(&c, &d, 30000);
    d.disk_stands = true;
    begin_turn(&d, 1);
    union wire_body create = memserver_create_body("/n", "", 0);
    memserver_request(&c, OP_CREATE, &create);
    list_of(&c, "/zookeeper");
    end_turn(&d, 0);
    begin_turn(&d, 60);
    list_of(&c, "/");
    memserver_flush(&d);
    memserver_settle(&d);
    end_turn(&d, 0);
    assert_non_null(strstr(d.lines, "getChildren /zookeeper took 60 ms (60 unread, 0 in its"));
}

/* What it asks before it has its session again, and the end of one, are requests like others. */
TEST(a_request_without_a_session)
{
    struct server_options o = {.slow_ms = 50, .require_auth = "digest"};
    CLOSED_BY(memserver_close) struct memserver d;
    struct memserver_conn c, back;
    union wire_body auth = {.auth = {0, clave__jbytes("digest"), clave__jbytes("joe:secret")}};
    memserver_open(&d, &o);
    memserver_connect(&c, &d, 30000);
    memserver_hang_up(&c);
    begin_turn(&d, 100);
    assert_true(memserver_resume(&back, &c));
    memserver_request(&back, OP_AUTH, &auth);
    end_turn(&d, 60);
    assert_non_null(strstr(d.lines, "slow request: auth - took 60 ms"));
    begin_turn(&d, 100);
    d.disk_stands = true;
    memserver_request(&back, OP_CLOSE_SESSION, NULL);
    begin_turn(&d, 70);
    memserver_flush(&d);
    memserver_settle(&d);
    assert_non_null(strstr(d.lines, "slow request: closeSession - took 70 ms"));
    memserver_hang_up(&back);
}

TEST(the_limit_changes_in_a_turn)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    slow_open(&d, &c);
    struct server_options off = d.o;
    off.slow_ms = 0;
    begin_turn(&d, 100);
    list_of(&c, "/");
    assert_int_equal(clave__server_change(d.s, &off), CLAVE_OK);
    end_turn(&d, 60);
    begin_turn(&d, 2000);
    end_turn(&d, 0);
    assert_null(strstr(d.lines, "slow"));
}
