/* server_durable_test.c - what waits for the disk, and what does not: a reply waits for the newest
 * transaction that it can show, and for the replies before it. */
#include "base/memory.h"
#include "lib/memserver.h"
#include "lib/unit.h"
#include "server/server_internal.h"

enum { SESSION_MS = 10000 };

/* A writer whose write the disk has not confirmed, and somebody else. */
struct stall {
    struct memserver d;
    struct memserver_conn writer, other;
    int64_t durable; /* the newest zxid on the disk */
    int64_t applied;
};

static void stall_open(struct stall *s, const char *const *paths)
{
    memserver_open(&s->d, NULL);
    memserver_connect(&s->writer, &s->d, SESSION_MS);
    memserver_connect(&s->other, &s->d, SESSION_MS);
    for (; *paths; paths++)
        assert_int_equal(memserver_create(&s->writer, *paths, "", MODE_PERSISTENT), CLAVE_OK);
    s->durable = memserver_stats(&s->d).last_zxid;
    s->d.disk_stands = true;
}

/* The writer's request is applied, and not answered. */
static void stall_write(struct stall *s, int32_t op, const union wire_body *body)
{
    struct wire_reply_header h;
    struct jreader r;
    memserver_request(&s->writer, op, body);
    assert_false(memserver_next(&s->writer, &h, &r));
    s->applied = memserver_stats(&s->d).last_zxid;
    assert_true(s->applied > s->durable);
    assert_int_equal(memserver_stats(&s->d).durable_zxid, s->durable);
}

static void stall_close(struct stall *s)
{
    memserver_hang_up(&s->writer);
    memserver_hang_up(&s->other);
    memserver_close(&s->d);
}

/* The disk goes on: the reply that has waited comes. */
static struct wire_reply_header stall_end(struct stall *s)
{
    struct wire_reply_header h;
    struct jreader r;
    memserver_flush(&s->d);
    memserver_settle(&s->d);
    assert_true(memserver_next(&s->other, &h, &r));
    return h;
}

/* Asked by the other client; true: the answer is there, with the zxid on the disk. */
static bool is_answered(struct stall *s, int32_t op, const union wire_body *body)
{
    struct wire_reply_header h;
    struct jreader r;
    memserver_request(&s->other, op, body);
    if (!memserver_next(&s->other, &h, &r))
        return false;
    assert_int_equal(h.zxid, s->durable);
    return true;
}

/* The answer comes when the disk has what it shows, and says so. */
static void assert_waits(struct stall *s, int32_t op, const union wire_body *body, int32_t err)
{
    assert_false(is_answered(s, op, body));
    struct wire_reply_header h = stall_end(s);
    assert_int_equal(h.err, err);
    assert_int_equal(h.zxid, s->applied);
}

static union wire_body read_of(const char *path)
{
    return (union wire_body){.read = {clave__jbytes(path), false}};
}

static union wire_body set_of(const char *path)
{
    return (union wire_body){.set = {clave__jbytes(path), clave__jbytes("new"), -1}};
}

static union wire_body delete_of(const char *path)
{
    return (union wire_body){.check = {clave__jbytes(path), -1}};
}

static const int32_t node_reads[] = {OP_EXISTS, OP_GET_DATA, OP_GET_CHILDREN, OP_GET_CHILDREN2,
                                     OP_GET_ACL};
enum { NODE_READS = sizeof node_reads / sizeof *node_reads };

static const char *const some_nodes[] = {"/a", "/b", "/b/c", "/b/c/d", NULL};

/* ---- what waits for nobody ------------------------------------------------------------------- */

TEST(pings_and_reads_of_what_is_durable_do_not_wait)
{
    CLOSED_BY(stall_close) struct stall s;
    stall_open(&s, some_nodes);
    union wire_body set = set_of("/a"), read = read_of("/b"), absent = read_of("/b/none");
    stall_write(&s, OP_SET_DATA, &set);
    assert_true(is_answered(&s, OP_PING, NULL));
    assert_true(is_answered(&s, OP_WHO_AM_I, NULL));
    for (size_t i = 0; i < NODE_READS; i++)
        assert_true(is_answered(&s, node_reads[i], &read));
    assert_true(is_answered(&s, OP_EXISTS, &absent));
    union wire_body typed = {.typed = {clave__jbytes("/b"), ADD_WATCH_PERSISTENT}};
    assert_true(is_answered(&s, OP_ADD_WATCH, &typed));
    assert_int_equal(memserver_stats(&s.d).durable_zxid, s.durable);
    assert_int_equal(s.d.s->counts.outstanding, 1); /* the write */
}

/* It knew its session, which needs no disk to go on; and sets its watches again. */
TEST(a_client_that_comes_back_does_not_wait)
{
    CLOSED_BY(stall_close) struct stall s;
    stall_open(&s, some_nodes);
    union wire_body set = set_of("/a");
    stall_write(&s, OP_SET_DATA, &set);
    struct memserver_conn before = s.other;
    memserver_hang_up(&s.other);
    assert_true(memserver_resume(&s.other, &before));
    static const uint8_t b[] = {0, 0, 0, 2, '/', 'b'};
    union wire_body watches = {.watches = {.relative_zxid = s.durable, .data = {1, b, sizeof b}}};
    assert_true(is_answered(&s, OP_SET_WATCHES, &watches));
}

/* ---- what waits ------------------------------------------------------------------------------ */

TEST(a_read_waits_for_what_it_shows)
{
    const struct {
        int32_t op;
        union wire_body write;
        const char *shown_at;
    } writes[] = {{OP_SET_DATA, set_of("/a"), "/a"}, {OP_DELETE, delete_of("/b/c/d"), "/b/c"}};
    for (size_t i = 0; i < 2 * NODE_READS; i++) {
        CLOSED_BY(stall_close) struct stall s;
        stall_open(&s, some_nodes);
        stall_write(&s, writes[i % 2].op, &writes[i % 2].write);
        union wire_body read = read_of(writes[i % 2].shown_at);
        assert_waits(&s, node_reads[i / 2], &read, CLAVE_OK);
    }
}

/* A deletion is left in the parent's pzxid; that of the parent, in its parent's. */
TEST(absence_waits_for_the_deletion)
{
    CLOSED_BY(stall_close) struct stall s;
    stall_open(&s, some_nodes);
    union wire_body d = delete_of("/b/c/d"), c = delete_of("/b/c"), read = read_of("/b/c/d");
    stall_write(&s, OP_DELETE, &d);
    stall_write(&s, OP_DELETE, &c);
    assert_waits(&s, OP_EXISTS, &read, CLAVE_ENONODE);
}

TEST(absence_far_below_what_lives_waits_for_everything)
{
    CLOSED_BY(stall_close) struct stall s;
    stall_open(&s, some_nodes);
    union wire_body set = set_of("/a"), near = read_of("/1/2/3/4/5/6/7"),
                    far = read_of("/1/2/3/4/5/6/7/8/9");
    stall_write(&s, OP_SET_DATA, &set);
    assert_true(is_answered(&s, OP_EXISTS, &near));
    assert_waits(&s, OP_EXISTS, &far, CLAVE_ENONODE);
}

/* setACL leaves no zxid in its node: a read of any node waits for the newest one. */
TEST(reads_wait_for_a_set_acl)
{
    static const struct {
        const char *path;
        int32_t perms;
        int32_t err;
    } cases[] = {
        {"/a", PERM_READ, CLAVE_OK}, {"/a", PERM_WRITE, CLAVE_ENOAUTH}, {"/b", 0, CLAVE_OK}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(stall_close) struct stall s;
        stall_open(&s, some_nodes);
        union wire_body acl = {
            .set_acl = {clave__jbytes("/a"), memserver_acl(cases[i].perms, "world", "anyone"), -1}};
        stall_write(&s, OP_SET_ACL, &acl);
        union wire_body read = read_of(cases[i].path);
        assert_true(is_answered(&s, OP_PING, NULL));
        assert_waits(&s, OP_GET_DATA, &read, cases[i].err);
    }
}

TEST(aggregates_wait_for_everything)
{
    static const int32_t ops[] = {OP_GET_ALL_CHILDREN_NUMBER, OP_GET_EPHEMERALS, OP_SYNC};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        CLOSED_BY(stall_close) struct stall s;
        stall_open(&s, some_nodes);
        union wire_body set = set_of("/a"), path = {.path = clave__jbytes("/b")};
        stall_write(&s, OP_SET_DATA, &set);
        assert_waits(&s, ops[i], &path, CLAVE_OK);
    }
}

/* The server counts by itself, and leaves no zxid in the node with the figures. */
TEST(figures_of_quotas_wait_for_everything)
{
    static const char *const nodes[] = {"/a", "/zookeeper/quota/a",
                                        "/zookeeper/quota/a/zookeeper_limits",
                                        "/zookeeper/quota/a/zookeeper_stats", NULL};
    CLOSED_BY(stall_close) struct stall s;
    stall_open(&s, nodes);
    union wire_body set = set_of("/a"), read = read_of("/zookeeper/quota/a/zookeeper_stats");
    stall_write(&s, OP_SET_DATA, &set);
    assert_waits(&s, OP_GET_DATA, &read, CLAVE_OK);
}

/* One of its reads waits, so all do. */
TEST(a_multi_read_waits_for_the_newest_of_its_reads)
{
    const char *second[] = {"/b", "/a"};
    for (size_t i = 0; i < 2; i++) {
        CLOSED_BY(stall_close) struct stall s;
        CLOSED_BY(clave__buf_fini) struct buf b;
        struct clave_mem mem = clave__mem_or_default(NULL);
        stall_open(&s, some_nodes);
        union wire_body set = set_of("/a");
        stall_write(&s, OP_SET_DATA, &set);
        clave__buf_init(&b, &mem, 4096);
        struct jwriter w = clave__jwriter(&b);
        const char *paths[] = {"/b/c", second[i], "/b/c/d"};
        for (size_t k = 0; k < 3; k++) {
            struct wire_op op = {OP_GET_DATA, read_of(paths[k])};
            clave__wire_put_op(&w, &op);
        }
        clave__wire_put_ops_end(&w);
        union wire_body body = {.multi = {3, b.data, b.tail}};
        if (i == 0)
            assert_true(is_answered(&s, OP_MULTI_READ, &body));
        else
            assert_waits(&s, OP_MULTI_READ, &body, CLAVE_OK);
    }
}

/* ---- order ----------------------------------------------------------------------------------- */

/* A read and a ping after a write of the same client come after its answer, with its zxid. */
TEST(replies_keep_their_order)
{
    CLOSED_BY(stall_close) struct stall s;
    struct wire_reply_header h;
    struct jreader r;
    stall_open(&s, some_nodes);
    union wire_body set = set_of("/a"), read = read_of("/b");
    stall_write(&s, OP_SET_DATA, &set);
    int32_t xid = memserver_request(&s.writer, OP_GET_DATA, &read);
    memserver_request(&s.writer, OP_PING, NULL);
    assert_false(memserver_next(&s.writer, &h, &r));
    memserver_flush(&s.d);
    memserver_settle(&s.d);
    const int32_t xids[] = {xid - 1, xid, XID_PING};
    for (size_t i = 0; i < 3; i++) {
        assert_true(memserver_next(&s.writer, &h, &r));
        assert_int_equal(h.xid, xids[i]);
        assert_int_equal(h.zxid, s.applied);
    }
}

/* What a client sees after an event is not answered before it. */
TEST(replies_wait_for_the_event_before_them)
{
    CLOSED_BY(stall_close) struct stall s;
    struct wire_reply_header h;
    struct jreader r;
    stall_open(&s, some_nodes);
    assert_int_equal(memserver_watch(&s.other, OP_GET_DATA, "/a"), CLAVE_OK);
    union wire_body set = set_of("/a"), read = read_of("/b");
    stall_write(&s, OP_SET_DATA, &set);
    assert_false(is_answered(&s, OP_GET_DATA, &read));
    memserver_flush(&s.d);
    memserver_settle(&s.d);
    assert_string_equal(memserver_events(&s.other), "DATA /a");
    assert_true(memserver_next(&s.other, &h, &r));
    assert_int_equal(h.zxid, s.applied);
}

/* A client that comes back is told what it missed when that is durable. */
TEST(missed_events_wait)
{
    CLOSED_BY(stall_close) struct stall s;
    struct wire_reply_header h;
    struct jreader r;
    stall_open(&s, some_nodes);
    union wire_body gone = delete_of("/b/c/d");
    stall_write(&s, OP_DELETE, &gone);
    static const uint8_t d[] = {0, 0, 0, 6, '/', 'b', '/', 'c', '/', 'd'};
    union wire_body watches = {.watches = {.relative_zxid = s.durable, .data = {1, d, sizeof d}}};
    memserver_request(&s.other, OP_SET_WATCHES, &watches);
    assert_false(memserver_next(&s.other, &h, &r));
    memserver_flush(&s.d);
    memserver_settle(&s.d);
    assert_string_equal(memserver_events(&s.other), "DELETED /b/c/d");
    assert_true(memserver_next(&s.other, &h, &r));
}

/* It was undone: what waits for it waits for the error that was logged in its place. */
TEST(a_set_acl_that_was_undone_holds_nobody_up)
{
    CLOSED_BY(stall_close) struct stall s;
    stall_open(&s, some_nodes);
    /* setACL in a multi that fails: it is undone, and its zxid is that of the error. */
    struct buf b;
    struct clave_mem mem = clave__mem_or_default(NULL);
    clave__buf_init(&b, &mem, 4096);
    struct jwriter w = clave__jwriter(&b);
    struct wire_op acl = {
        OP_SET_ACL,
        {.set_acl = {clave__jbytes("/a"), memserver_acl(PERM_READ, "world", "anyone"), -1}}};
    struct wire_op check = {OP_CHECK, {.check = {clave__jbytes("/none"), 7}}};
    clave__wire_put_op(&w, &acl);
    clave__wire_put_op(&w, &check);
    clave__wire_put_ops_end(&w);
    union wire_body body = {.multi = {2, b.data, b.tail}}, read = read_of("/b");
    s.d.disk_stands = false;
    assert_int_equal(memserver_call(&s.writer, OP_MULTI, &body, NULL), CLAVE_OK);
    s.durable = memserver_stats(&s.d).last_zxid;
    s.d.disk_stands = true;
    clave__buf_fini(&b);
    union wire_body set = set_of("/a");
    stall_write(&s, OP_SET_DATA, &set);
    assert_true(is_answered(&s, OP_GET_DATA, &read));
}
