/* server_snapshot_test.c - the whole state as one file: Apache's layout, there and back, cut at
 * every byte, damaged, and taken while writes went on. */
#include "lib/memserver.h"
#include "lib/unit.h"

/* Behind the nodes: "/", a seal, the digest's part and its seal, the last zxid and its seal. */
enum { END = 5, SEAL = 8 + 5, DIGEST = 8 + 4 + 8, LAST_ZXID = 8 };

static void save(const struct memserver *d, struct buf *out)
{
    int64_t zxid;
    clave__buf_init(out, &d->mem, SIZE_MAX / 4);
    assert_int_equal(clave__server_save_snapshot(d->s, out, &zxid), CLAVE_OK);
    assert_int_equal(zxid, memserver_stats(d).last_zxid);
}

/* What `d` held, in a server that is not serving yet. */
static clave_err load(struct memserver *d, const void *p, size_t n, char fault[200])
{
    assert_int_equal(memserver_open_bare(d, NULL), CLAVE_OK);
    fault[0] = '\0';
    return clave__server_load_snapshot(d->s, p, n, fault, 200);
}

/* The digest is over all nodes; the order of sessions and lists is the hash table's. */
static void assert_same_tree(const struct buf *x, const struct buf *y)
{
    size_t at = x->tail - SEAL - LAST_ZXID - SEAL - DIGEST;
    assert_int_equal(x->tail, y->tail);
    assert_memory_equal(x->data + at, y->data + at, DIGEST);
}

/* A bit of everything. */
static void furnish(struct memserver *d, struct memserver_conn *c)
{
    union wire_body acl = {.set_acl = {clave__jbytes("/a"), {0, NULL, 0}, -1}};
    static char big[1000];
    union wire_body b = memserver_create_body("/big", NULL, MODE_PERSISTENT);
    memserver_open(d, NULL);
    memserver_connect(c, d, 10000);
    memset(big, 'x', sizeof big);
    b.create.data = clave__jbytes_n(big, sizeof big);
    assert_int_equal(memserver_create(c, "/a", "data", MODE_PERSISTENT), CLAVE_OK);
    assert_int_equal(memserver_create(c, "/a/b", NULL, MODE_PERSISTENT), CLAVE_OK);
    assert_int_equal(memserver_create(c, "/a/b/c-", "", MODE_EPHEMERAL_SEQUENTIAL), CLAVE_OK);
    assert_int_equal(memserver_create(c, "/box", "", MODE_CONTAINER), CLAVE_OK);
    assert_int_equal(memserver_call(c, OP_CREATE, &b, NULL), CLAVE_OK);
    assert_int_equal(memserver_set(c, "/", "root", -1), CLAVE_OK);
    assert_int_equal(memserver_set(c, "/a", "more", -1), CLAVE_OK);
    acl.set_acl.acl = memserver_acl(PERM_READ, "digest", "u:p");
    assert_int_equal(memserver_call(c, OP_SET_ACL, &acl, NULL), CLAVE_OK);
}

/* Measured on a fresh Apache 3.8.0, and the part that came with 3.9. */
TEST(the_first_snapshot_is_apaches)
{
    static const uint8_t begin[] = {
        'Z', 'K', 'S', 'N', 0,   0,   0,   2,  255, 255, 255, 255, 255, 255, 255, 255, /* dbid */
        0,   0,   0,   0,                                                            /* sessions */
        0,   0,   0,   1,   0,   0,   0,   0,  0,   0,   0,   1,   0,   0,   0,   1, /* lists */
        0,   0,   0,   1,   0,   0,   0,   5,  'w', 'o', 'r', 'l', 'd', 0,   0,   0,
        6,   'a', 'n', 'y', 'o', 'n', 'e', 0,  0,   0,   0,   0,   0,   0,   0, /* the root: no
                                                                                   path, no data */
        255, 255, 255, 255, 255, 255, 255, 255};
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(clave__buf_fini) struct buf b;
    memserver_open(&d, NULL);
    save(&d, &b);
    assert_int_equal(clave__buf_len(&b), 457 + LAST_ZXID + SEAL);
    assert_memory_equal(b.data, begin, sizeof begin);
    struct jreader r = clave__jreader(b.data + 457 - SEAL - DIGEST, DIGEST);
    assert_int_equal(clave__jget_long(&r), 0);
    assert_int_equal(clave__jget_int(&r), 2);
    assert_int_equal(clave__jget_long(&r), 1371985504);
}

TEST(there_and_back)
{
    CLOSED_BY(memserver_close) struct memserver d, e;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c, again;
    CLOSED_BY(clave__buf_fini) struct buf b, second;
    char fault[200];
    struct wire_stat x, y;
    static const char *const paths[] = {"/", "/a", "/a/b", "/a/b/c-0000000000", "/box", "/big"};
    furnish(&d, &c);
    save(&d, &b);
    assert_int_equal(load(&e, b.data, b.tail, fault), CLAVE_OK);
    struct server_stats p = memserver_stats(&d), q = memserver_stats(&e);
    assert_int_equal(p.last_zxid, q.last_zxid);
    assert_int_equal(p.nodes, q.nodes);
    assert_int_equal(p.sessions, q.sessions);
    assert_int_equal(p.ephemerals, q.ephemerals);
    assert_int_equal(p.data_bytes, q.data_bytes);
    save(&e, &second);
    assert_same_tree(&b, &second);
    assert_string_equal(e.lines, ""); /* no digest differed */
    memserver_start(&e);
    struct memserver_conn of = c;
    of.d = &e;
    assert_true(memserver_resume(&again, &of)); /* the session too */
    for (size_t i = 1; i < sizeof paths / sizeof *paths; i++) {
        clave_err err = memserver_stat(&c, paths[i], &x);
        assert_int_equal(memserver_stat(&again, paths[i], &y), err);
        if (err == CLAVE_OK)
            assert_memory_equal(&x, &y, sizeof x);
    }
    assert_int_equal(memserver_create(&again, "/next", "", MODE_PERSISTENT), CLAVE_OK);
    assert_int_equal(memserver_stats(&e).last_zxid, p.last_zxid + 1);
}

/* 3.5 wrote the first part, 3.6 the digest as well, 3.9 the last zxid; without digests, 3.9 wrote
 * the first and the last. */
TEST(snapshots_of_older_releases)
{
    struct memserver d, e;
    struct memserver_conn c;
    struct buf b;
    char fault[200];
    furnish(&d, &c);
    save(&d, &b);
    size_t third = LAST_ZXID + SEAL, second = DIGEST + SEAL;
    assert_int_equal(load(&e, b.data, b.tail - third, fault), CLAVE_OK);
    assert_int_equal(memserver_stats(&e).last_zxid, memserver_stats(&d).last_zxid);
    memserver_close(&e);
    assert_int_equal(load(&e, b.data, b.tail - third - second, fault), CLAVE_OK);
    assert_int_equal(memserver_stats(&e).nodes, memserver_stats(&d).nodes);
    memserver_close(&e);
    clave__buf_fini(&b);
    memserver_hang_up(&c);
    memserver_close(&d);
}

/* The log that has the session is purged, and the clock was set back: whoever comes back with the
 * ended session must not get another client's. */
TEST(an_ended_session_leaves_its_id)
{
    CLOSED_BY(memserver_close) struct memserver d, e;
    struct memserver_conn c, next, late;
    struct buf b, second;
    char fault[200];
    memserver_open(&d, NULL);
    memserver_connect(&c, &d, 4000);
    memserver_hang_up(&c);
    memserver_advance(&d, 20000);
    assert_int_equal(memserver_stats(&d).sessions, 0);
    save(&d, &b);
    assert_int_equal(load(&e, b.data, b.tail, fault), CLAVE_OK);
    assert_int_equal(memserver_stats(&e).sessions, 0);
    assert_true(memserver_wall(&e) < memserver_wall(&d));
    save(&e, &second); /* nobody came */
    assert_int_equal(second.tail, b.tail);
    memserver_start(&e);
    memserver_connect(&next, &e, 4000);
    assert_true(next.session == c.session + 1);
    c.d = &e;
    assert_false(memserver_resume(&late, &c));
    clave__buf_fini(&second);
    clave__buf_fini(&b);
    memserver_hang_up(&late);
    memserver_hang_up(&next);
}

/* The smallest number has none before it. (Found by fuzzing.) */
TEST(a_next_id_that_is_none)
{
    enum { FIRST_SESSION = 16 + 4, ID = 8, TIMEOUT = 4 };
    CLOSED_BY(memserver_close) struct memserver d, e;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    CLOSED_BY(clave__buf_fini) struct buf b;
    char fault[200];
    memserver_open(&d, NULL);
    memserver_connect(&c, &d, 4000);
    save(&d, &b);
    memset(b.data + FIRST_SESSION, 0, ID + TIMEOUT);
    b.data[FIRST_SESSION] = 0x80;
    assert_int_equal(load(&e, b.data, b.tail, fault), CLAVE_ECORRUPT);
    assert_non_null(strstr(fault, "checksum"));
}

/* A server that refused a file is as a new one: the next may be tried. */
static void assert_refused(const uint8_t *p, size_t n, const uint8_t *good, size_t good_len)
{
    CLOSED_BY(memserver_close) struct memserver e;
    char fault[200];
    assert_int_equal(load(&e, p, n, fault), CLAVE_ECORRUPT);
    assert_true(strlen(fault) > 0);
    assert_int_equal(memserver_stats(&e).nodes, 4);
    assert_int_equal(memserver_stats(&e).sessions, 0);
    assert_int_equal(memserver_stats(&e).last_zxid, 0);
    assert_int_equal(clave__server_load_snapshot(e.s, good, good_len, fault, sizeof fault),
                     CLAVE_OK);
}

TEST(a_snapshot_cut_at_every_byte)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    CLOSED_BY(clave__buf_fini) struct buf b;
    furnish(&d, &c);
    save(&d, &b);
    size_t third = LAST_ZXID + SEAL, second = DIGEST + SEAL;
    for (size_t n = 0; n < b.tail; n++)
        if (n != b.tail - third && n != b.tail - third - second)
            assert_refused(b.data, n, b.data, b.tail);
}

TEST(every_flipped_bit_is_found)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    CLOSED_BY(clave__buf_fini) struct buf b, good;
    furnish(&d, &c);
    save(&d, &b);
    save(&d, &good);
    for (size_t i = 0; i < b.tail; i++) {
        b.data[i] ^= 0x40;
        assert_refused(b.data, b.tail, good.data, good.tail);
        b.data[i] ^= 0x40;
    }
}

/* Apache saves while writes go on: its file has the older zxid in its name and shows some of what
 * came after. The log is replayed from the name, over what is there already. */
TEST(one_that_was_taken_while_writes_went_on)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    CLOSED_BY(clave__buf_fini) struct buf late;
    furnish(&d, &c);
    save(&d, &late);
    for (int64_t named = 0; named <= memserver_stats(&d).last_zxid; named++) {
        CLOSED_BY(memserver_close) struct memserver e;
        struct log_replay r;
        CLOSED_BY(clave__buf_fini) struct buf x, y;
        char fault[200];
        assert_int_equal(memserver_open_bare(&e, NULL), CLAVE_OK);
        clave__server_snapshot_named(e.s, named);
        assert_int_equal(
            clave__server_load_snapshot(e.s, late.data, late.tail, fault, sizeof fault), CLAVE_OK);
        assert_int_equal(memserver_stats(&e).last_zxid, named);
        assert_int_equal(clave__server_replay_log(e.s, d.log.data, d.log.tail, &r), CLAVE_OK);
        assert_int_equal(memserver_stats(&e).last_zxid, memserver_stats(&d).last_zxid);
        save(&d, &x);
        save(&e, &y);
        assert_same_tree(&x, &y);
        assert_string_equal(e.lines, "");
    }
}

TEST(a_snapshot_is_wanted_after_so_many)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct server_options o = {.snap_count = 20, .seed = seed};
        CLOSED_BY(memserver_close) struct memserver d;
        CLOSED_BY(memserver_hang_up) struct memserver_conn c;
        struct buf b;
        memserver_open(&d, &o);
        memserver_connect(&c, &d, 10000);
        for (int round = 0; round < 3; round++) {
            int n = 0;
            while (!clave__server_wants_snapshot(d.s) && n <= 30) {
                memserver_set(&c, "/", "", -1);
                n++;
            }
            assert_true(n >= 10 && n <= 21);
            save(&d, &b);
            clave__buf_fini(&b);
            assert_false(clave__server_wants_snapshot(d.s));
        }
    }
}

TEST(a_large_tree_is_written_as_seldom_as_it_is_large)
{
    enum { NODES = 150000 };
    struct server_options o = {.seed = 3}; /* draws late */
    struct server_stats before, after;
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    struct buf b;
    char path[32];
    memserver_open(&d, &o);
    memserver_connect(&c, &d, 10000);
    for (int i = 0; i < NODES; i++) {
        snprintf(path, sizeof path, "/%d", i);
        memserver_create(&c, path, "", 0);
    }
    assert_true(clave__server_wants_snapshot(d.s));
    save(&d, &b);
    clave__buf_fini(&b);
    clave__server_stats(d.s, &before);
    while (!clave__server_wants_snapshot(d.s))
        memserver_set(&c, "/", "", -1);
    clave__server_stats(d.s, &after);
    assert_in_range(after.last_zxid - before.last_zxid, 110000, NODES * 3 / 2);
}

enum { LARGE = 500 << 10, LARGE_NODES = 200 };

static void open_with_large_nodes(struct memserver *d, struct memserver_conn *c)
{
    struct server_options o = {.seed = 3};
    struct buf b;
    char path[32], *data = calloc(1, LARGE + 1);
    memserver_open(d, &o);
    memserver_connect(c, d, 10000);
    memset(data, 'x', LARGE);
    for (int i = 0; i < LARGE_NODES; i++) {
        snprintf(path, sizeof path, "/%d", i);
        memserver_create(c, path, data, 0);
    }
    free(data);
    save(d, &b);
    clave__buf_fini(&b);
    assert_false(clave__server_wants_snapshot(d->s));
}

TEST(a_tree_of_large_nodes_is_not_written_for_a_short_log)
{
    enum { COUNT = 101000 }; /* some 80 bytes each, and the tree has 100 MB */
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    open_with_large_nodes(&d, &c);
    for (int i = 0; i < COUNT; i++)
        memserver_set(&c, "/", "", -1);
    assert_false(clave__server_wants_snapshot(d.s));
}

/* However large the tree is: each would have to be replayed. By bytes it would take 1.2 million. */
TEST(many_short_transactions_are_enough)
{
    struct server_stats before, after;
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    open_with_large_nodes(&d, &c);
    clave__server_stats(d.s, &before);
    do
        memserver_set(&c, "/", "", -1);
    while (!clave__server_wants_snapshot(d.s));
    clave__server_stats(d.s, &after);
    assert_in_range(after.last_zxid - before.last_zxid, 500000, 1000001);
}

TEST(large_transactions_do_not_make_a_log_of_any_length)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    char *data = calloc(1, LARGE + 1);
    int n = 0;
    memset(data, 'y', LARGE);
    open_with_large_nodes(&d, &c);
    for (; n <= 600 && !clave__server_wants_snapshot(d.s); n++)
        memserver_set(&c, "/7", data, -1);
    assert_in_range(n, 256, 525); /* 128 to 256 MiB */
    free(data);
}
