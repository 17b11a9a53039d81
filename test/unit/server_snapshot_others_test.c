/* server_snapshot_others_test.c - snapshots as others write them, made by hand: of each release,
 * taken while writes went on, and such that nobody can have written. */
#include "base/memory.h"
#include "lib/memserver.h"
#include "lib/unit.h"

/* ---- writing by hand ------------------------------------------------------------------------- */

struct writer {
    struct clave_mem mem;
    struct buf b;
    struct jwriter w;
};

struct by_hand {
    const char *path; /* "": the root; NULL ends a table of them */
    const char *data;
    int64_t acl; /* 1: open, 2: readers only */
    int64_t owner;
    int64_t zxid;
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

static void put_seal(struct writer *s)
{
    clave__jput_long(&s->w, adler(s->b.data, s->b.tail));
    clave__jput_str(&s->w, "/");
}

static void put_node(struct writer *s, const struct by_hand *n)
{
    clave__jput_str(&s->w, n->path);
    clave__jput_str(&s->w, n->data);
    clave__jput_long(&s->w, n->acl);
    clave__jput_long(&s->w, n->zxid); /* czxid */
    clave__jput_long(&s->w, n->zxid); /* mzxid */
    clave__jput_long(&s->w, 1000);
    clave__jput_long(&s->w, 1000);
    for (int i = 0; i < 3; i++)
        clave__jput_int(&s->w, 0);
    clave__jput_long(&s->w, n->owner);
    clave__jput_long(&s->w, n->zxid); /* pzxid */
}

/* Up to the first seal: session 77, two lists, and the nodes. */
static void write_nodes(struct writer *s, const struct by_hand *nodes)
{
    s->mem = clave__mem_or_default(NULL);
    clave__buf_init(&s->b, &s->mem, SIZE_MAX / 4);
    s->w = clave__jwriter(&s->b);
    clave__buf_append(&s->b, "ZKSN\0\0\0\2", 8);
    clave__jput_long(&s->w, -1);
    clave__jput_int(&s->w, 1);
    clave__jput_long(&s->w, 77);
    clave__jput_int(&s->w, 20000);
    clave__jput_int(&s->w, 2);
    clave__jput_long(&s->w, 1);
    clave__jput_vec(&s->w, memserver_acl(PERM_ALL, "world", "anyone"));
    clave__jput_long(&s->w, 2);
    clave__jput_vec(&s->w, memserver_acl(PERM_READ, "world", "anyone"));
    for (; nodes->path; nodes++)
        put_node(s, nodes);
    clave__jput_str(&s->w, "/");
    put_seal(s);
    assert_int_equal(s->w.err, CLAVE_OK);
}

static const struct by_hand few[] = {
    {"", "", -1, 0, 0},       {"/zookeeper", "", -1, 0, 0}, {"/a", "data", 1, 0, 5},
    {"/a/b", NULL, 2, 77, 6}, {NULL, NULL, 0, 0, 0},
};

static clave_err load(struct memserver *d, const struct writer *s, char fault[200])
{
    assert_int_equal(memserver_open_bare(d, NULL), CLAVE_OK);
    fault[0] = '\0';
    return clave__server_load_snapshot(d->s, s->b.data, s->b.tail, fault, 200);
}

/* ---- of each release ------------------------------------------------------------------------- */

enum parts { PART_DIGEST = 1, PART_ZXID = 2 };

TEST(the_parts_of_each_release)
{
    static const unsigned parts[] = {0, PART_DIGEST, PART_DIGEST | PART_ZXID, PART_ZXID};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct writer s;
        struct memserver d;
        char fault[200];
        write_nodes(&s, few);
        if (parts[i] & PART_DIGEST) {
            clave__jput_long(&s.w, 6);
            clave__jput_int(&s.w, 2);
            clave__jput_long(&s.w, 12345); /* not the tree's */
            put_seal(&s);
        }
        if (parts[i] & PART_ZXID) {
            clave__jput_long(&s.w, 9); /* what came last has left no trace in the nodes */
            put_seal(&s);
        }
        assert_int_equal(load(&d, &s, fault), CLAVE_OK);
        assert_int_equal(memserver_stats(&d).nodes, 4);
        assert_int_equal(memserver_stats(&d).ephemerals, 1);
        assert_int_equal(memserver_stats(&d).sessions, 1);
        assert_int_equal(memserver_stats(&d).last_zxid, parts[i] & PART_ZXID ? 9 : 6);
        bool told = strstr(d.lines, "differs from the one of the snapshot, at zxid 0x6") != NULL;
        assert_int_equal(told, parts[i] == PART_DIGEST);
        memserver_close(&d);
        clave__buf_fini(&s.b);
    }
}

/* Apache's first snapshot says digest 0: it is not known, and no other than the tree's. */
TEST(the_digest_of_an_untouched_tree)
{
    static const struct by_hand root[] = {{"", "", -1, 0, 0}, {NULL, NULL, 0, 0, 0}};
    struct writer s;
    struct memserver d;
    char fault[200];
    write_nodes(&s, root);
    clave__jput_long(&s.w, 0);
    clave__jput_int(&s.w, 2);
    clave__jput_long(&s.w, 0);
    put_seal(&s);
    assert_int_equal(load(&d, &s, fault), CLAVE_OK);
    assert_int_equal(memserver_stats(&d).digest_mismatches, 0);
    memserver_close(&d);
    clave__buf_fini(&s.b);
}

/* Also a seal that is right for what is in front of it has to be the last but for known parts. */
TEST(what_stands_behind_the_seals)
{
    for (size_t more = 1; more < 80; more++) {
        struct writer s;
        struct memserver d;
        char fault[200];
        write_nodes(&s, few);
        for (size_t i = 0; i < more; i++)
            clave__jput_byte(&s.w, 0);
        assert_int_equal(load(&d, &s, fault), CLAVE_ECORRUPT);
        memserver_close(&d);
        clave__buf_fini(&s.b);
    }
}

/* ---- such that nobody can have written ------------------------------------------------------- */

TEST(nodes_that_cannot_be)
{
    static const struct {
        struct by_hand nodes[5];
        const char *says;
    } cases[] = {
        {{{"", "", -1, 0, 0}, {"/a", "", 1, 0, 1}, {"/a", "", 1, 0, 1}}, "a node twice"},
        {{{"", "", -1, 0, 0}, {"/a/b", "", 1, 0, 1}, {"/a", "", 1, 0, 1}},
         "a node without a parent"},
        {{{"", "", -1, 0, 0}, {"a", "", 1, 0, 1}}, "a node without a parent"},
        {{{"", "", -1, 77, 0}, {"/a", "", 1, 0, 1}}, "the root has an owner"},
        {{{"", "", -1, 0, 0}, {"/a", "", 1, 0, INT64_MAX}}, "the largest possible zxid"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct writer s;
        struct memserver d;
        char fault[200];
        write_nodes(&s, cases[i].nodes);
        assert_int_equal(load(&d, &s, fault), CLAVE_ECORRUPT);
        if (!strstr(fault, cases[i].says) || !strstr(fault, ", at offset "))
            fail_msg("case %zu: %s", i, fault);
        memserver_close(&d);
        clave__buf_fini(&s.b);
    }
}

TEST(counts_that_cannot_be)
{
    static const struct {
        size_t at; /* of the four bytes */
        const char *says;
    } cases[] = {
        {16, "the sessions are cut short"},
        {20 + 12, "the access lists are cut short"},
        {24 + 12 + 8, "the access lists are not well formed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct writer s;
        struct memserver d;
        char fault[200];
        write_nodes(&s, few);
        clave__jput_int_at(&s.w, cases[i].at, INT32_MAX);
        assert_int_equal(load(&d, &s, fault), CLAVE_ECORRUPT);
        if (!strstr(fault, cases[i].says))
            fail_msg("case %zu: %s", i, fault);
        memserver_close(&d);
        clave__buf_fini(&s.b);
    }
}

TEST(keys_that_cannot_be)
{
    static const int64_t keys[] = {0, -1, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct writer s;
        struct memserver d;
        char fault[200];
        write_nodes(&s, few);
        clave__jput_int_at(&s.w, 36, (int32_t)(keys[i] >> 32));
        clave__jput_int_at(&s.w, 40, (int32_t)(uint32_t)keys[i]);
        assert_int_equal(load(&d, &s, fault), CLAVE_ECORRUPT);
        memserver_close(&d);
        clave__buf_fini(&s.b);
    }
}

/* ---- taken while writes went on -------------------------------------------------------------- */

/* Apache writes the lists first: a node that came meanwhile refers to one that is not there.
 * Nobody may do anything with it until the log, which has its creation, is replayed. */
TEST(a_node_whose_list_is_missing)
{
    struct memserver d, e;
    struct memserver_conn c;
    struct writer s;
    struct log_replay r;
    char fault[200];
    union wire_body b = memserver_create_body("/new", "", MODE_PERSISTENT);
    memserver_open(&d, NULL);
    memserver_connect(&c, &d, 10000);
    b.create.acl = memserver_acl(PERM_READ | PERM_WRITE, "world", "anyone");
    assert_int_equal(memserver_call(&c, OP_CREATE, &b, NULL), CLAVE_OK);
    memserver_hang_up(&c);
    const struct by_hand nodes[] = {{"", "", -1, 0, 2},
                                    {"/zookeeper", "", -1, 0, 0},
                                    {"/new", "", 3, 0, 2}, /* list 3 is missing */
                                    {NULL, NULL, 0, 0, 0}};
    for (int replayed = 0; replayed < 2; replayed++) {
        write_nodes(&s, nodes);
        assert_int_equal(memserver_open_bare(&e, NULL), CLAVE_OK);
        clave__server_snapshot_named(e.s, 0);
        assert_int_equal(clave__server_load_snapshot(e.s, s.b.data, s.b.tail, fault, sizeof fault),
                         CLAVE_OK);
        if (replayed)
            assert_int_equal(clave__server_replay_log(e.s, d.log.data, d.log.tail, &r), CLAVE_OK);
        memserver_start(&e);
        memserver_connect(&c, &e, 10000);
        assert_int_equal(memserver_set(&c, "/new", "", -1), replayed ? CLAVE_OK : CLAVE_ENOAUTH);
        memserver_hang_up(&c);
        memserver_close(&e);
        clave__buf_fini(&s.b);
    }
    memserver_close(&d);
}

/* The timeout on the disk is the one of createSession, also when a shorter one was agreed on since.
 */
TEST(the_timeout_of_the_beginning)
{
    CLOSED_BY(memserver_close) struct memserver d, e;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c, again;
    struct wire_connect_request q = {.timeout_ms = 4000};
    struct wire_connect_response resp;
    CLOSED_BY(clave__buf_fini) struct buf b;
    char fault[200];
    int64_t zxid;
    memserver_open(&d, NULL);
    memserver_connect(&c, &d, 10000);
    memserver_dial(&again, &d);
    q.session_id = c.session;
    q.passwd = clave__jbytes_n(c.passwd, sizeof c.passwd);
    assert_true(memserver_handshake(&again, &q, &resp) && resp.timeout_ms == 4000);
    clave__buf_init(&b, &d.mem, SIZE_MAX / 4);
    assert_int_equal(clave__server_save_snapshot(d.s, &b, &zxid), CLAVE_OK);
    assert_int_equal(memserver_open_bare(&e, NULL), CLAVE_OK);
    assert_int_equal(clave__server_load_snapshot(e.s, b.data, b.tail, fault, sizeof fault),
                     CLAVE_OK);
    memserver_start(&e);
    memserver_advance(&e, 6000);
    assert_int_equal(memserver_stats(&e).sessions, 1);
    memserver_advance(&e, 6000);
    assert_int_equal(memserver_stats(&e).sessions, 0);
    assert_int_equal(memserver_stats(&d).sessions, 1);
}
