/* server_throttle_test.c - what all connections have together is bounded: replies that wait for the
 * disk, and answers that clients do not read. And the options that change while it serves. */
#include <malloc.h>

#include "lib/memserver.h"
#include "lib/unit.h"

enum { READERS = 40, BIG = 200 * 1024, BOUND = 1024 * 1024 };

static void ask_for(struct memserver_conn *c, const char *path)
{
    union wire_body body = {0};
    body.read.path = clave__jbytes(path);
    memserver_request(c, OP_GET_DATA, &body);
}

static void make_big(struct memserver *d, const char *path)
{
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    static char data[BIG + 1];
    memset(data, 'x', BIG);
    memserver_connect(&c, d, 30000);
    assert_int_equal(memserver_create(&c, path, data, 0), CLAVE_OK);
}

static void add(struct memserver_conn *c)
{
    union wire_body body = memserver_create_body("/n-", "", 2);
    memserver_request(c, OP_CREATE, &body);
}

/* Beyond the bound a connection that waits for the disk is not read; others get one request each.
 */
TEST(writes_that_wait_for_the_disk)
{
    struct server_options o = {.max_outstanding = 10};
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn a, b;
    memserver_open(&d, &o);
    memserver_connect(&a, &d, 30000);
    memserver_connect(&b, &d, 30000);
    d.disk_stands = true;
    for (int i = 0; i < 20; i++) {
        add(&a);
        assert_int_equal(clave__server_conn_wants_read(a.c), i < 9);
    }
    assert_true(clave__server_conn_wants_read(b.c));
    add(&b);
    assert_false(clave__server_conn_wants_read(b.c));
    struct server_stats st = memserver_stats(&d);
    assert_int_equal(st.requests[OP_CREATE], 11);
    /* What it could not take comes to its turn. */
    for (int i = 0; i < 4; i++)
        memserver_flush(&d);
    d.disk_stands = false;
    memserver_settle(&d);
    assert_int_equal(memserver_stats(&d).requests[OP_CREATE], 21);
    assert_true(clave__server_conn_wants_read(a.c) && clave__server_conn_wants_read(b.c));
}

/* Clients that do not read: beyond the bound each has one answer at most, and clients that read are
 * served; at twice the bound the longest deaf lose their connection. */
TEST(answers_that_are_not_read)
{
    struct server_options o = {.max_undelivered = BOUND, .max_session_ms = 1000000};
    CLOSED_BY(memserver_close) struct memserver d;
    struct memserver_conn deaf[READERS], good;
    size_t cut = 0;
    memserver_open(&d, &o);
    make_big(&d, "/big");
    memserver_connect(&good, &d, 1000000);
    for (int i = 0; i < READERS; i++)
        memserver_connect(&deaf[i], &d, 1000000);
    for (int i = 0; i < READERS; i++) {
        deaf[i].deaf = true;
        for (int turn = 0; turn < 3; turn++)
            ask_for(&deaf[i], "/big");
        assert_true(memserver_stats(&d).undelivered < 2 * BOUND + 2 * BIG);
        memserver_advance(&d, 1500);
        struct wire_stat stat;
        assert_int_equal(memserver_stat(&good, "/big", &stat), CLAVE_OK);
    }
    for (int i = 0; i < READERS; i++)
        cut += !deaf[i].c || clave__server_conn_wants_close(deaf[i].c);
    assert_true(cut > READERS / 2 && cut < READERS);
    assert_true(!deaf[0].c || clave__server_conn_wants_close(deaf[0].c));
    assert_non_null(strstr(d.lines, "is disconnected: it does not read its output"));
    /* The last ones still have their turn when they read. */
    struct memserver_conn *last = &deaf[READERS - 1];
    const void *p;
    size_t n = clave__server_conn_output(last->c, &p);
    assert_int_equal(clave__buf_append(&last->in, p, n), CLAVE_OK);
    last->deaf = false;
    clave__server_conn_sent(last->c, n);
    memserver_settle(&d);
    struct wire_reply_header h;
    struct jreader rest;
    for (int turn = 0; turn < 3; turn++)
        assert_true(memserver_next(last, &h, &rest));
    for (int i = 0; i < READERS; i++)
        memserver_hang_up(&deaf[i]);
    memserver_hang_up(&good);
    assert_int_equal(memserver_stats(&d).undelivered, 0);
}

/* A turn of the driver's loop takes as little as is left of it: many long answers are no one turn.
 */
TEST_SERVER(a_long_answer_counts_as_many)
{
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    struct wire_stat stat;
    make_big(d, "/big");
    memserver_connect(&c, d, 30000);
    uint64_t before = clave__server_taken(d->s);
    assert_int_equal(memserver_stat(&c, "/big", &stat), CLAVE_OK);
    assert_int_equal(clave__server_taken(d->s), before + 1);
    ask_for(&c, "/big");
    assert_in_range(clave__server_taken(d->s), before + 2 + BIG / 1024, before + 3 + BIG / 1024);
}

/* A peer that has not shown that it is a client gets no memory for long messages. */
TEST_SERVER(a_stranger_has_a_short_frame)
{
    struct memserver_conn c;
    static const uint8_t head[] = {0, 0x0f, 0xff, 0xff};
    memserver_dial(&c, d);
    memserver_send(&c, head, sizeof head);
    assert_true(!c.c || clave__server_conn_wants_close(c.c));
    memserver_hang_up(&c);
    memserver_connect(&c, d, 30000);
    memserver_send(&c, head, sizeof head);
    assert_true(clave__server_conn_wants_read(c.c));
    memserver_hang_up(&c);
}

TEST_SERVER(options_change)
{
    CLOSED_BY(memserver_hang_up) struct memserver_conn a, b;
    memserver_connect(&a, d, 1);
    assert_int_equal(a.timeout_ms, 4000);
    struct server_options o = {.min_session_ms = 6000, .max_connections = 2};
    assert_int_equal(clave__server_change(d->s, &o), CLAVE_OK);
    memserver_connect(&b, d, 1);
    assert_int_equal(b.timeout_ms, 6000);
    struct peer_addr peer = {.family = 0};
    assert_null(clave__server_accept(d->s, &peer, NULL));
    /* The session there is goes on as it was. */
    memserver_advance(d, 3000);
    assert_int_equal(memserver_create(&a, "/a", "", 0), CLAVE_OK);
}

/* A connection without a session, whose time may change while the server serves. */
TEST(time_without_a_session)
{
    struct server_options o = {.sessionless_ms = 3000};
    CLOSED_BY(memserver_close) struct memserver d;
    struct memserver_conn c;
    memserver_open(&d, &o);
    memserver_dial(&c, &d);
    memserver_advance(&d, 2999);
    assert_non_null(c.c);
    memserver_advance(&d, 1);
    assert_int_equal(memserver_stats(&d).connections, 0);
    memserver_hang_up(&c);
    o.sessionless_ms = 500;
    assert_int_equal(clave__server_change(d.s, &o), CLAVE_OK);
    memserver_dial(&c, &d);
    memserver_advance(&d, 500);
    assert_int_equal(memserver_stats(&d).connections, 0);
    memserver_hang_up(&c);
}

/* ---- many that never say who they are ------------------------------------------------------- */

enum { HALF_OPEN = 100000, HALF_OPEN_BYTES = 1024, STRANGER_MS = 10000 };

static void *counted_alloc(void *arg, size_t size)
{
    void *p = malloc(size);
    *(size_t *)arg += p ? malloc_usable_size(p) : 0;
    return p;
}

static void counted_free(void *arg, void *p)
{
    *(size_t *)arg -= p ? malloc_usable_size(p) : 0;
    free(p);
}

static void *counted_realloc(void *arg, void *p, size_t size)
{
    size_t before = p ? malloc_usable_size(p) : 0;
    void *to = realloc(p, size);
    if (to)
        *(size_t *)arg += malloc_usable_size(to) - before;
    return to;
}

/* More than this machine may lend files to: each costs a KiB at most, others are served, and each
 * is closed when it has said nothing for ten seconds. */
TEST(a_hundred_thousand_half_open)
{
    size_t live = 0;
    const clave_mem mem = {counted_alloc, counted_realloc, counted_free, &live};
    const struct server_options o = {.mem = &mem};
    struct memserver_conn *half = calloc(HALF_OPEN, sizeof *half), good;
    struct memserver d;
    assert_non_null(half);
    memserver_open(&d, &o);
    memserver_connect(&good, &d, 30000);
    size_t before = live;
    for (size_t i = 0; i < HALF_OPEN; i++) {
        memserver_dial(&half[i], &d);
        if (i % 2)
            memserver_send(&half[i], "\0\0\0", 3); /* the beginning of a length */
    }
    assert_true(live - before < (size_t)HALF_OPEN * HALF_OPEN_BYTES);
    assert_int_equal(memserver_create(&good, "/a", "", 0), CLAVE_OK);
    assert_int_equal(memserver_stats(&d).connections, HALF_OPEN + 1);
    memserver_advance(&d, STRANGER_MS + 2000);
    assert_int_equal(memserver_stats(&d).connections, 1);
    assert_int_equal(memserver_create(&good, "/b", "", 0), CLAVE_OK);
    for (size_t i = 0; i < HALF_OPEN; i++)
        memserver_hang_up(&half[i]);
    memserver_hang_up(&good);
    memserver_close(&d);
    free(half);
}
