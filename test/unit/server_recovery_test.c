/* server_recovery_test.c - what recovery makes of logs: whole, cut at every byte, damaged, and
 * those of others. */
#include "base/memory.h"
#include "lib/log_records.h"
#include "lib/memserver.h"
#include "lib/unit.h"

/* ---- recovery -------------------------------------------------------------------------------- */

/* A bit of everything. */
static void scenario(struct memserver *d)
{
    CLOSED_BY(memserver_hang_up) struct memserver_conn a, b;
    union wire_body acl = {.set_acl = {clave__jbytes("/p"), {0, NULL, 0}, -1}};
    memserver_connect(&a, d, 10000);
    memserver_connect(&b, d, 20000);
    memserver_create(&a, "/p", "data", MODE_PERSISTENT);
    memserver_create(&a, "/p/e", "mine", MODE_EPHEMERAL);
    memserver_create(&b, "/p/e2", NULL, MODE_EPHEMERAL_SEQUENTIAL);
    memserver_create(&b, "/c", "", MODE_CONTAINER);
    memserver_create(&b, "/c/x", "", MODE_PERSISTENT);
    memserver_set(&b, "/p", "other", -1);
    memserver_set(&b, "/", "root", -1);
    memserver_delete(&b, "/nothing", -1);
    acl.set_acl.acl = memserver_acl(PERM_READ, "digest", "u:p");
    memserver_call(&b, OP_SET_ACL, &acl, NULL);
    memserver_delete(&b, "/c/x", 0);
    memserver_request(&a, OP_CLOSE_SESSION, NULL);
    memserver_create(&b, "/last", "one", MODE_PERSISTENT);
}

/* Two servers are in the same state when they make the same snapshot. */
static void assert_same(const struct memserver *a, const struct memserver *b)
{
    CLOSED_BY(clave__buf_fini) struct buf x, y;
    int64_t zx, zy;
    clave__buf_init(&x, &a->mem, SIZE_MAX / 4);
    clave__buf_init(&y, &a->mem, SIZE_MAX / 4);
    assert_int_equal(clave__server_save_snapshot(a->s, &x, &zx), CLAVE_OK);
    assert_int_equal(clave__server_save_snapshot(b->s, &y, &zy), CLAVE_OK);
    assert_int_equal(zx, zy);
    /* The order of sessions and lists is the hash table's; the tree's digest is at the end. */
    assert_int_equal(x.tail, y.tail);
    assert_memory_equal(x.data + x.tail - 54, y.data + y.tail - 54, 20);
}

static clave_err replay(struct memserver *to, const uint8_t *p, size_t n, struct log_replay *out)
{
    assert_int_equal(memserver_open_bare(to, NULL), CLAVE_OK);
    return clave__server_replay_log(to->s, p, n, out);
}

TEST(a_log_brings_everything_back)
{
    CLOSED_BY(memserver_close) struct memserver d, e;
    struct log_replay r;
    memserver_open(&d, NULL);
    scenario(&d);
    assert_int_equal(replay(&e, d.log.data, d.log.tail, &r), CLAVE_OK);
    assert_int_equal(r.first_zxid, 1);
    assert_int_equal(r.last_zxid, memserver_stats(&d).last_zxid);
    assert_int_equal(r.valid_len, d.log.tail);
    assert_false(r.torn);
    assert_same(&d, &e);
    struct server_stats x = memserver_stats(&d), y = memserver_stats(&e);
    assert_int_equal(x.sessions, y.sessions);
    assert_int_equal(x.ephemerals, y.ephemerals);
    assert_int_equal(x.nodes, y.nodes);
    assert_int_equal(x.data_bytes, y.data_bytes);
    assert_string_equal(e.lines, ""); /* no digest differed */
    memserver_start(&e);
    memserver_advance(&e, 22000);
    assert_int_equal(memserver_stats(&e).sessions, 0);
    assert_int_equal(memserver_stats(&e).ephemerals, 0);
}

TEST_SERVER(the_log_in_pieces)
{
    scenario(d);
    for (size_t cut = SERVER_LOG_HEADER; cut < d->log.tail; cut = record_end(&d->log, cut)) {
        CLOSED_BY(memserver_close) struct memserver e;
        struct log_replay r;
        CLOSED_BY(clave__buf_fini) struct buf second;
        assert_int_equal(replay(&e, d->log.data, cut, &r), CLAVE_OK);
        clave__buf_init(&second, &d->mem, SIZE_MAX / 4);
        clave__buf_append(&second, d->log.data, SERVER_LOG_HEADER);
        clave__buf_append(&second, d->log.data + cut, d->log.tail - cut);
        assert_int_equal(clave__server_replay_log(e.s, second.data, second.tail, &r), CLAVE_OK);
        /* Once more, from the beginning: all of it is known. */
        assert_int_equal(clave__server_replay_log(e.s, d->log.data, d->log.tail, &r), CLAVE_OK);
        assert_int_equal(r.valid_len, d->log.tail);
        assert_same(d, &e);
    }
}

TEST_SERVER(a_log_cut_at_every_byte)
{
    scenario(d);
    size_t whole = SERVER_LOG_HEADER;
    int64_t zxid = 0;
    for (size_t cut = 0; cut <= d->log.tail; cut++) {
        CLOSED_BY(memserver_close) struct memserver e;
        struct log_replay r;
        if (cut > whole && cut == record_end(&d->log, whole)) {
            whole = cut;
            zxid++;
        }
        assert_int_equal(replay(&e, d->log.data, cut, &r), CLAVE_OK);
        assert_int_equal(r.last_zxid, zxid);
        assert_int_equal(memserver_stats(&e).last_zxid, zxid);
        assert_int_equal(r.valid_len, cut < SERVER_LOG_HEADER ? 0 : whole);
        assert_int_equal(r.torn, cut != 0 && cut != whole);
    }
}

/* What a power cut may leave after the last record: none of it was acknowledged. */
TEST_SERVER(torn_tails)
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
    scenario(d);
    size_t last = record_newest(&d->log);
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        CLOSED_BY(memserver_close) struct memserver e;
        struct log_replay r;
        size_t n = d->log.tail + tails[i].append;
        uint8_t *copy = calloc(1, n);
        assert_non_null(copy);
        memcpy(copy, d->log.data, d->log.tail - tails[i].from_end);
        assert_int_equal(replay(&e, copy, n, &r), CLAVE_OK);
        assert_true(r.torn);
        assert_int_equal(r.valid_len, tails[i].from_end ? last : d->log.tail);
        free(copy);
    }
}

TEST_SERVER(every_flipped_bit_in_a_payload_is_found)
{
    scenario(d);
    for (size_t at = SERVER_LOG_HEADER; at < d->log.tail; at = record_end(&d->log, at)) {
        for (size_t i = at + 12; i < record_end(&d->log, at) - 1; i++) {
            CLOSED_BY(memserver_close) struct memserver e;
            struct log_replay r;
            char offset[64];
            d->log.data[i] ^= 1;
            assert_int_equal(replay(&e, d->log.data, d->log.tail, &r), CLAVE_ECORRUPT);
            snprintf(offset, sizeof offset, "offset %zu,", at);
            assert_non_null(strstr(r.fault, offset));
            d->log.data[i] ^= 1;
        }
    }
}

/* Damage in the middle is never taken for an end. */
TEST_SERVER(holes_are_refused)
{
    scenario(d);
    size_t first = SERVER_LOG_HEADER, second = record_end(&d->log, first);
    const struct {
        const char *name;
        size_t from, n;
        const char *says;
    } holes[] = {
        {"a whole record", first, second - first, "hole at offset 16"},
        {"a head", first, 12, "hole at offset 16"},
        {"a length", second + 8, 4, "hole at offset 78"},
        {"an end mark", second - 1, 1, "hole at offset 16"},
        {"two records", first, record_end(&d->log, second) - first, "hole at offset 16"},
        {"magic", 0, 4, "ZKLG"},
    };
    for (size_t i = 0; i < sizeof holes / sizeof *holes; i++) {
        CLOSED_BY(memserver_close) struct memserver e;
        struct log_replay r;
        uint8_t *copy = calloc(1, d->log.tail + 5000);
        assert_non_null(copy);
        memcpy(copy, d->log.data, d->log.tail);
        memset(copy + holes[i].from, 0, holes[i].n);
        if (replay(&e, copy, d->log.tail + 5000, &r) != CLAVE_ECORRUPT)
            fail_msg("%s: taken", holes[i].name);
        if (!strstr(r.fault, holes[i].says))
            fail_msg("%s: %s", holes[i].name, r.fault);
        free(copy);
    }
}

/* Leaves out, repeats or swaps whole records. */
TEST_SERVER(zxids_have_to_follow)
{
    scenario(d);
    size_t a = SERVER_LOG_HEADER, b = record_end(&d->log, a), c = record_end(&d->log, b),
           create = record_end(&d->log, c), end = d->log.tail;
    const struct {
        size_t from[3], to[3];
        const char *says;
    } orders[] = {
        {{a, create}, {c, end}, "zxid 0x4, after 0x2"},
        {{b}, {end}, "zxid 0x2, but the newest known is 0x0"},
        {{a, a}, {b, end}, "zxid 0x1, after 0x1"},
        {{a, b, b}, {b, c, end}, "zxid 0x2, after 0x2"},
    };
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        CLOSED_BY(memserver_close) struct memserver e;
        struct log_replay r;
        CLOSED_BY(clave__buf_fini) struct buf log;
        clave__buf_init(&log, &d->mem, SIZE_MAX / 4);
        clave__buf_append(&log, d->log.data, SERVER_LOG_HEADER);
        for (size_t k = 0; k < 3 && orders[i].to[k]; k++)
            clave__buf_append(&log, d->log.data + orders[i].from[k],
                              orders[i].to[k] - orders[i].from[k]);
        assert_int_equal(replay(&e, log.data, log.tail, &r), CLAVE_ECORRUPT);
        if (!strstr(r.fault, orders[i].says))
            fail_msg("%s", r.fault);
    }
}

/* Apache takes a zxid for some requests that it does not log: nothing is missing, as the next
 * digest shows. */
TEST(a_zxid_that_was_never_logged)
{
    CLOSED_BY(memserver_close) struct memserver d, e;
    struct log_replay r;
    CLOSED_BY(clave__buf_fini) struct buf log;
    memserver_open(&d, NULL);
    scenario(&d);
    size_t second = record_end(&d.log, SERVER_LOG_HEADER), third = record_end(&d.log, second);
    clave__buf_init(&log, &d.mem, SIZE_MAX / 4);
    clave__buf_append(&log, d.log.data, second);
    clave__buf_append(&log, d.log.data + third, d.log.tail - third);
    assert_int_equal(replay(&e, log.data, log.tail, &r), CLAVE_OK);
    assert_int_equal(r.last_zxid, memserver_stats(&d).last_zxid);
    assert_int_equal(memserver_stats(&e).digest_mismatches, 0);
    assert_non_null(strstr(e.lines, "zxid 0x2 was never logged"));
}

/* ---- logs of others -------------------------------------------------------------------------- */

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
    clave__jput_vec(&l->w, memserver_acl(PERM_ALL, "world", "anyone"));
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
TEST(logs_without_digests)
{
    struct writer l;
    CLOSED_BY(memserver_close) struct memserver e;
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
    assert_int_equal(memserver_stats(&e).ephemerals, 0);
    assert_int_equal(memserver_stats(&e).nodes, 5);
    assert_int_equal(memserver_stats(&e).sessions, 0);
    clave__buf_fini(&l.b);
}

/* An ensemble's: each leader counts anew, in the upper half. */
TEST(zxids_of_an_ensemble)
{
    struct writer l;
    struct memserver e;
    struct log_replay r;
    struct memserver_conn c;
    begin_log(&l);
    begin_create(&l, 0, 0x100000001, "/a", false);
    begin_create(&l, 0, 0x100000002, "/b", false);
    begin_create(&l, 0, 0x400000001, "/c", false);
    assert_int_equal(replay(&e, l.b.data, l.b.tail, &r), CLAVE_OK);
    assert_true(r.last_zxid == 0x400000001);
    memserver_start(&e);
    memserver_connect(&c, &e, 10000);
    assert_true(memserver_stats(&e).last_zxid == 0x400000002);
    memserver_hang_up(&c);
    memserver_close(&e);
    begin_create(&l, 0, 0x500000002, "/d", false); /* its first is missing */
    assert_int_equal(replay(&e, l.b.data, l.b.tail, &r), CLAVE_ECORRUPT);
    clave__buf_fini(&l.b);
    memserver_close(&e);
}

/* A failed multi is on the disk with what it would have done. */
TEST(a_failed_multi_changes_nothing)
{
    struct writer l;
    CLOSED_BY(memserver_close) struct memserver e;
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
    assert_int_equal(memserver_stats(&e).nodes, 4);
    assert_int_equal(memserver_stats(&e).last_zxid, 1);
    clave__buf_fini(&l.b);
}

/* Sessions that are nowhere: their nodes go at the start, and the log says so. */
TEST(orphans_go_at_the_start)
{
    struct writer l;
    CLOSED_BY(memserver_close) struct memserver e;
    struct log_replay r;
    begin_log(&l);
    begin_create(&l, 77, 1, "/e", true);
    begin_create(&l, 78, 2, "/f", true);
    assert_int_equal(replay(&e, l.b.data, l.b.tail, &r), CLAVE_OK);
    assert_int_equal(memserver_stats(&e).ephemerals, 2);
    memserver_start(&e);
    assert_int_equal(memserver_stats(&e).ephemerals, 0);
    assert_int_equal(memserver_stats(&e).last_zxid, 4);
    clave__buf_fini(&l.b);
}

/* The end of a session changes each parent once, however many of its nodes it takes: that shows
 * neither in a Stat nor in a digest. */
TEST(the_end_of_one_that_owns_many)
{
    enum { MANY = 300, PARENTS = 3 };
    CLOSED_BY(memserver_close) struct memserver d, e;
    CLOSED_BY(memserver_hang_up) struct memserver_conn a, b;
    struct log_replay r;
    struct wire_stat st;
    char path[32];
    memserver_open(&d, NULL);
    memserver_connect(&a, &d, 4000);
    memserver_connect(&b, &d, 40000);
    for (int i = 0; i < PARENTS; i++) {
        snprintf(path, sizeof path, "/p%d", i);
        assert_int_equal(memserver_create(&b, path, "", MODE_PERSISTENT), CLAVE_OK);
    }
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof path, "/p%d/e-", i % PARENTS);
        assert_int_equal(memserver_create(&a, path, "", MODE_EPHEMERAL_SEQUENTIAL), CLAVE_OK);
        assert_int_equal(memserver_create(&b, path, "", MODE_EPHEMERAL_SEQUENTIAL), CLAVE_OK);
    }
    int64_t zxid = memserver_stats(&d).last_zxid;
    memserver_request(&a, OP_CLOSE_SESSION, NULL);
    assert_int_equal(memserver_stats(&d).last_zxid, zxid + 1);
    for (int i = 0; i < PARENTS; i++) {
        snprintf(path, sizeof path, "/p%d", i);
        assert_int_equal(memserver_stat(&b, path, &st), CLAVE_OK);
        assert_int_equal(st.pzxid, zxid + 1);
        assert_int_equal(st.num_children, MANY / PARENTS);
        assert_int_equal(st.cversion, 3 * MANY / PARENTS);
    }
    assert_int_equal(replay(&e, d.log.data, d.log.tail, &r), CLAVE_OK);
    assert_same(&d, &e);
    assert_int_equal(memserver_stats(&e).ephemerals, MANY);
    assert_string_equal(e.lines, ""); /* no digest differed */
}

/* No server makes a child below an ephemeral node, but the data of others may have one: Apache
 * before 3.5.4 wrote nodes with a time to live so. It goes with the node it is below. */
TEST(children_of_an_ephemeral_node_go_with_it)
{
    static const char *const paths[] = {"/e", "/e/a", "/e/a/b", "/e/c", "/f", "/f/a"};
    static const int64_t owners[] = {77, 78, 0, 77, 79, 77};
    for (int known = 0; known < 2; known++) {
        struct writer l;
        CLOSED_BY(memserver_close) struct memserver e, again;
        struct log_replay r;
        begin_log(&l);
        for (size_t i = 0; i < 6; i++)
            begin_create(&l, owners[i], (int64_t)i + 1, paths[i], owners[i] != 0);
        begin_record(&l, 77, 7, known ? OP_CREATE_SESSION : OP_ERROR);
        clave__jput_int(&l.w, 30000);
        end_record(&l);
        assert_int_equal(replay(&e, l.b.data, l.b.tail, &r), CLAVE_OK);
        assert_int_equal(memserver_stats(&e).ephemerals, 5);
        memserver_start(&e);
        assert_int_equal(memserver_stats(&e).ephemerals,
                         known ? 2 : 0); /* /f went, and /e/a with /e/a/b */
        memserver_advance(&e, 60000);
        assert_int_equal(memserver_stats(&e).ephemerals, 0);
        assert_int_equal(memserver_stats(&e).nodes, 4);
        clave__buf_append(&l.b, e.log.data + SERVER_LOG_HEADER, e.log.tail - SERVER_LOG_HEADER);
        assert_int_equal(replay(&again, l.b.data, l.b.tail, &r), CLAVE_OK);
        assert_same(&e, &again);
        assert_string_equal(again.lines, "");
        clave__buf_fini(&l.b);
    }
}

TEST(a_digest_that_differs_is_told)
{
    struct writer l;
    CLOSED_BY(memserver_close) struct memserver e;
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
}

/* Whole, with a right checksum, and yet nothing Apache or clave would write. */
TEST(impossible_records)
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
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct writer l;
        CLOSED_BY(memserver_close) struct memserver e;
        struct log_replay r;
        begin_log(&l);
        begin_record(&l, 1, 1, bad[i].type);
        clave__buf_append(&l.b, bad[i].body, bad[i].n);
        end_record(&l);
        assert_int_equal(replay(&e, l.b.data, l.b.tail, &r), CLAVE_ECORRUPT);
        assert_non_null(strstr(r.fault, "at offset 16, zxid 0x1, is not a transaction"));
        clave__buf_fini(&l.b);
    }
}

/* Power is lost when a new log has its size and not its first bytes: there is no record in it,
 * and the server starts. (Seed 12589, docs/evidence/simulation.md.) */
TEST(a_log_whose_header_is_torn_is_empty)
{
    enum { SIZE = 200 };
    uint8_t file[SIZE];
    for (size_t kept = 0; kept < SERVER_LOG_HEADER; kept++) {
        CLOSED_BY(memserver_close) struct memserver d;
        struct log_replay r;
        uint8_t header[SERVER_LOG_HEADER];
        clave__server_log_header(header);
        memset(file, 0, sizeof file);
        memcpy(file, header, kept);
        assert_int_equal(memserver_open_bare(&d, NULL), CLAVE_OK);
        assert_int_equal(clave__server_replay_log(d.s, file, sizeof file, &r), CLAVE_OK);
        assert_true(r.torn || kept >= 8); /* the header ends in zeros */
        assert_int_equal(r.first_zxid, 0);
    }
    /* What has bytes of something else is not taken for it. */
    CLOSED_BY(memserver_close) struct memserver d;
    struct log_replay r;
    memset(file, 0, sizeof file);
    file[SIZE - 1] = 'B';
    assert_int_equal(memserver_open_bare(&d, NULL), CLAVE_OK);
    assert_int_equal(clave__server_replay_log(d.s, file, sizeof file, &r), CLAVE_ECORRUPT);
}
