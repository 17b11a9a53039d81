/* server_snapshot_piece_test.c - snapshots taken a piece at a time while clients write: how much
 * one piece can be, in which order nodes come, and that writers who outrun the disk wait for it. */
#include "lib/memserver.h"
#include "lib/unit.h"

enum { BIG = 100 * 1000, NODES = 40, ELEMENT_BYTES = 256 };

static char big[BIG];

struct taken {
    struct memserver d;
    struct memserver_conn c;
    struct buf file;
    struct server_stats at; /* when it began */
    int64_t zxid;
    size_t longest; /* piece, in bytes */
};

/* A server with a tree of nodes of so many bytes, one in another. */
static void open_with_nodes(struct taken *t, int32_t piece, size_t bytes)
{
    const struct server_options o = {.snapshot_piece = piece};
    char path[8 * NODES] = "";
    memset(t, 0, sizeof *t);
    memserver_open(&t->d, &o);
    memserver_connect(&t->c, &t->d, 10000);
    memset(big, 'x', sizeof big);
    for (int i = 0; i < NODES; i++) {
        snprintf(path + strlen(path), sizeof path - strlen(path), "/n%d", i);
        union wire_body b = memserver_create_body(path, NULL, MODE_PERSISTENT);
        b.create.data = clave__jbytes_n(big, bytes);
        assert_int_equal(memserver_call(&t->c, OP_CREATE, &b, NULL), CLAVE_OK);
    }
    clave__buf_init(&t->file, &t->d.mem, SIZE_MAX / 4);
}

static void begin(struct taken *t)
{
    t->at = memserver_stats(&t->d);
    t->zxid = clave__server_snapshot_begin(t->d.s);
}

static bool step(struct taken *t)
{
    size_t before = clave__buf_len(&t->file);
    bool done;
    assert_int_equal(clave__server_snapshot_step(t->d.s, &t->file, &done), CLAVE_OK);
    size_t n = clave__buf_len(&t->file) - before;
    t->longest = n > t->longest ? n : t->longest;
    return done;
}

static void set(struct memserver_conn *c, const char *path)
{
    const union wire_body b = {.set = {clave__jbytes(path), clave__jbytes("short"), -1}};
    memserver_request(c, OP_SET_DATA, &b);
}

/* All nodes, without waiting for answers, from the deepest on: it has all above it written first.
 * Returns how many requests were taken. */
static uint64_t overwrite(struct taken *t)
{
    char path[8 * NODES] = "";
    for (int i = 0; i < NODES; i++)
        snprintf(path + strlen(path), sizeof path - strlen(path), "/n%d", i);
    for (; *path; *strrchr(path, '/') = '\0')
        set(&t->c, path);
    return memserver_stats(&t->d).requests[OP_SET_DATA];
}

/* What was taken shows the tree as it was, and no node is before its parent. */
static void assert_exact(struct taken *t)
{
    CLOSED_BY(memserver_close) struct memserver e;
    char fault[200] = "";
    assert_int_equal(memserver_open_bare(&e, NULL), CLAVE_OK);
    clave_err err = clave__server_load_snapshot(e.s, clave__buf_bytes(&t->file),
                                                clave__buf_len(&t->file), fault, sizeof fault);
    assert_string_equal(fault, "");
    assert_int_equal(err, CLAVE_OK);
    struct server_stats got = memserver_stats(&e);
    assert_true(got.digest == t->at.digest);
    assert_int_equal(got.nodes, t->at.nodes);
    assert_int_equal(got.last_zxid, t->zxid);
}

static void close_all(struct taken *t)
{
    clave__buf_fini(&t->file);
    memserver_hang_up(&t->c);
    memserver_close(&t->d);
}

/* Also when 4 MB were written ahead of it in one turn. */
TEST(a_piece_is_small)
{
    enum { PIECE = 1000 };
    CLOSED_BY(close_all) struct taken t;
    open_with_nodes(&t, PIECE, BIG);
    begin(&t);
    overwrite(&t);
    while (!step(&t))
        assert_true(clave__buf_len(&t.file) < 2 * NODES * BIG);
    assert_true(clave__buf_len(&t.file) > NODES * BIG);
    assert_in_range(t.longest, BIG, PIECE * ELEMENT_BYTES + BIG + 1000);
    assert_exact(&t);
}

static size_t count(const struct buf *b, size_t from, const char *what)
{
    size_t found = 0, n = strlen(what);
    for (size_t i = from; i + n <= clave__buf_len(b); i++)
        found += memcmp(clave__buf_bytes(b) + i, what, n) == 0;
    return found;
}

/* However many there are, in one turn the loop looks at snapshot_piece of them. */
TEST(a_piece_has_few_nodes)
{
    enum { PIECE = 50, MANY = 1000 };
    CLOSED_BY(close_all) struct taken t;
    char path[16];
    size_t pieces = 0;
    open_with_nodes(&t, PIECE, 10);
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof path, "/many-%04d", i);
        assert_int_equal(memserver_create(&t.c, path, "", MODE_PERSISTENT), CLAVE_OK);
    }
    begin(&t);
    for (bool done = false; !done; pieces++) {
        size_t from = clave__buf_len(&t.file);
        done = step(&t);
        assert_true(count(&t.file, from, "/many-") <= PIECE);
    }
    assert_true(pieces >= MANY / PIECE);
    assert_int_equal(count(&t.file, 0, "/many-"), MANY);
    assert_exact(&t);
}

/* A piece ends in the middle of what was written ahead, and of one node. */
TEST(parents_come_first)
{
    for (int32_t piece = 1; piece <= 6; piece++) {
        CLOSED_BY(close_all) struct taken t;
        open_with_nodes(&t, piece, 300);
        begin(&t);
        overwrite(&t);
        while (!step(&t)) {
            memserver_settle(&t.d);
            set(&t.c, "/zookeeper");
        }
        assert_exact(&t);
    }
}

static bool is_answered(struct memserver_conn *c)
{
    struct wire_reply_header h;
    struct jreader rest;
    return memserver_next(c, &h, &rest);
}

/* The copies of the nodes that wait for the disk would be another tree in memory. Who does not
 * write goes on, and so does the snapshot; nobody waits for ever. */
TEST(writers_wait_for_a_snapshot_that_is_behind)
{
    CLOSED_BY(close_all) struct taken t;
    CLOSED_BY(memserver_hang_up) struct memserver_conn one, reader;
    union wire_body none = {0};
    struct wire_stat st;
    open_with_nodes(&t, 1, 300);
    memserver_connect(&one, &t.d, 10000);
    memserver_connect(&reader, &t.d, 10000);
    begin(&t);
    assert_false(clave__server_log_waits(t.d.s));
    assert_int_equal(overwrite(&t), 1); /* with all nodes above it, 40 times 300 bytes */
    assert_true(clave__server_log_waits(t.d.s));
    set(&one, "/n0");
    assert_false(is_answered(&one));
    assert_int_equal(memserver_call(&reader, OP_PING, &none, NULL), CLAVE_OK);
    assert_int_equal(memserver_stat(&reader, "/zookeeper", &st), CLAVE_OK);
    while (clave__server_log_waits(t.d.s))
        assert_false(step(&t));
    memserver_settle(&t.d);
    assert_true(is_answered(&one));
    assert_int_equal(memserver_stats(&t.d).requests[OP_SET_DATA], NODES + 1);
    while (!step(&t))
        memserver_settle(&t.d);
    assert_exact(&t);
}

/* Not even between the end of the wait and the batch that then goes to the disk: what they sent has
 * not been read yet. */
TEST(who_waits_for_a_snapshot_does_not_expire)
{
    CLOSED_BY(close_all) struct taken t;
    open_with_nodes(&t, 1, 300);
    begin(&t);
    assert_int_equal(overwrite(&t), 1);
    memserver_advance(&t.d, 30000);
    while (clave__server_log_waits(t.d.s))
        assert_false(step(&t));
    memserver_advance(&t.d, 3000);
    assert_int_equal(memserver_stats(&t.d).requests[OP_SET_DATA], NODES);
    assert_true(is_answered(&t.c));
    while (!step(&t))
        memserver_settle(&t.d);
    assert_exact(&t);
}
