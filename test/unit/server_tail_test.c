/* server_tail_test.c - what a power cut may leave of the newest batch of a log, block by block, and
 * what only damage leaves: the one is an end, the other is refused. */
#include "base/memory.h"
#include "lib/log_records.h"
#include "lib/memserver.h"
#include "lib/unit.h"
#include "server/store/adler32.h"
#include "server/store/txn_log.h"
#include "wire/frame.h"

enum { BLOCK = 512, CREATES = 12, DATA = 300 };

/* A log of several batches: a session, a node, then CREATES nodes at once. */
struct story {
    struct memserver d;
    struct memserver_conn c;
    size_t begin; /* of the newest batch */
    size_t end;
    int64_t before; /* zxid of the newest record in front of it */
};

static void put_create(struct jwriter *w, int32_t xid, const char *path)
{
    char data[DATA];
    memset(data, 'x', sizeof data - 1);
    data[sizeof data - 1] = '\0';
    size_t frame = clave__frame_begin(w);
    struct wire_request q = {.xid = xid, .op = OP_CREATE};
    q.body = memserver_create_body(path, data, MODE_PERSISTENT);
    clave__wire_put_request(w, &q);
    assert_int_equal(clave__frame_end(w, frame), CLAVE_OK);
}

/* In one packet, so in one batch. */
static void batch(struct story *s, const char *prefix)
{
    CLOSED_BY(clave__buf_fini) struct buf b;
    struct wire_reply_header h;
    struct jreader rest;
    char path[32];
    clave__buf_init(&b, &s->d.mem, SIZE_MAX / 4);
    struct jwriter w = clave__jwriter(&b);
    for (int i = 0; i < CREATES; i++) {
        snprintf(path, sizeof path, "%s%d", prefix, i);
        put_create(&w, ++s->c.xid, path);
    }
    s->begin = s->d.log.tail;
    s->before = memserver_stats(&s->d).last_zxid;
    memserver_send(&s->c, clave__buf_bytes(&b), clave__buf_len(&b));
    for (int i = 0; i < CREATES; i++)
        assert_true(memserver_next(&s->c, &h, &rest));
    s->end = s->d.log.tail;
    assert_true(memserver_stats(&s->d).last_zxid == s->before + CREATES);
}

static void story_open(struct story *s)
{
    memserver_open(&s->d, NULL);
    memserver_connect(&s->c, &s->d, 10000);
    assert_int_equal(memserver_create(&s->c, "/first", "data", MODE_PERSISTENT), CLAVE_OK);
    batch(s, "/n");
}

static void story_close(struct story *s)
{
    memserver_hang_up(&s->c);
    memserver_close(&s->d);
}

static clave_err replay(const uint8_t *p, size_t n, struct log_replay *out, struct server_stats *st)
{
    struct memserver e;
    assert_int_equal(memserver_open_bare(&e, NULL), CLAVE_OK);
    clave_err err = clave__server_replay_log(e.s, p, n, out);
    *st = memserver_stats(&e);
    memserver_close(&e);
    return err;
}

/* The file without the blocks [from, to) of the newest batch. */
static uint8_t *without(const struct story *s, size_t from, size_t to, size_t padding)
{
    uint8_t *p = calloc(1, s->end + padding);
    assert_non_null(p);
    memcpy(p, s->d.log.data, s->end);
    size_t begin = from * BLOCK > s->begin ? from * BLOCK : s->begin;
    size_t end = to * BLOCK < s->end ? to * BLOCK : s->end;
    if (begin < end)
        memset(p + begin, 0, end - begin);
    return p;
}

/* Of the newest batch any run of blocks may be missing, with or without padding after it. What
 * comes before it is there, and nothing from the first missing byte on. */
TEST(any_blocks_of_the_newest_batch)
{
    CLOSED_BY(story_close) struct story s;
    struct log_replay r;
    struct server_stats st;
    story_open(&s);
    size_t first = s.begin / BLOCK, end = (s.end + BLOCK - 1) / BLOCK;
    assert_true(end - first > 6);
    for (size_t from = first; from < end; from++) {
        for (size_t to = from + 1; to <= end; to++) {
            for (size_t padding = 0; padding < 5000; padding += 4000) {
                uint8_t *p = without(&s, from, to, padding);
                if (replay(p, s.end + padding, &r, &st) != CLAVE_OK)
                    fail_msg("blocks %zu to %zu: %s", from, to, r.fault);
                assert_true(r.torn && !r.lost_tail);
                assert_true(r.valid_len >= s.begin && r.last_zxid >= s.before);
                assert_true(r.valid_len <= (from * BLOCK > s.begin ? from * BLOCK : s.begin));
                assert_true(st.last_zxid == r.last_zxid);
                free(p);
            }
        }
    }
}

/* What a start writes again: the newest batch, or all of a log that does not show where it begins.
 */
TEST(where_the_newest_batch_begins)
{
    CLOSED_BY(story_close) struct story s;
    struct log_replay r;
    struct server_stats st;
    story_open(&s);
    uint8_t *p = without(&s, 0, 0, 4000);
    assert_int_equal(replay(p, s.end + 4000, &r, &st), CLAVE_OK);
    assert_int_equal(r.last_batch, s.begin);
    assert_int_equal(replay(p, SERVER_LOG_HEADER, &r, &st), CLAVE_OK);
    assert_int_equal(r.last_batch, 0);
    memset(p + 8, 0, 8); /* Apache's */
    assert_int_equal(replay(p, s.end + 4000, &r, &st), CLAVE_OK);
    assert_int_equal(r.last_batch, 0);
    free(p);
}

/* The same under a batch that was written later, which is only done when all before it is durable:
 * that is damage, and its place is reported. */
TEST(any_blocks_of_an_older_batch)
{
    CLOSED_BY(story_close) struct story s;
    struct log_replay r;
    struct server_stats st;
    story_open(&s);
    assert_int_equal(memserver_create(&s.c, "/later", "", MODE_PERSISTENT), CLAVE_OK);
    size_t n = s.d.log.tail;
    for (size_t from = s.begin / BLOCK; from * BLOCK < s.end; from++) {
        uint8_t *p = malloc(n);
        uint8_t *holed = without(&s, from, from + 1, 0);
        char where[40];
        assert_non_null(p);
        memcpy(p, s.d.log.data, n);
        memcpy(p, holed, s.end);
        assert_int_equal(replay(p, n, &r, &st), CLAVE_ECORRUPT);
        assert_true(r.lost_tail);
        snprintf(where, sizeof where, "offset %zu", r.valid_len);
        assert_non_null(strstr(r.fault, where));
        assert_true(r.valid_len >= s.begin && st.last_zxid == r.last_zxid);
        free(holed);
        free(p);
    }
}

/* No disk flips a bit when the power goes. */
TEST(flipped_bits_of_the_newest_batch)
{
    CLOSED_BY(story_close) struct story s;
    struct log_replay r;
    struct server_stats st;
    story_open(&s);
    for (size_t at = s.begin; at < s.end; at = record_end(&s.d.log, at)) {
        for (size_t i = at + RECORD_HEAD; i < record_end(&s.d.log, at) - 1; i += 7) {
            s.d.log.data[i] ^= 4;
            assert_int_equal(replay(s.d.log.data, s.end, &r, &st), CLAVE_ECORRUPT);
            assert_true(r.lost_tail && r.valid_len == at);
            s.d.log.data[i] ^= 4;
        }
    }
}

/* Nor in what surrounds a payload: a length or an end mark that is no more what it was does not
 * make an end of the newest record, whatever padding follows. */
TEST(flipped_bits_around_the_newest_payloads)
{
    CLOSED_BY(story_close) struct story s;
    struct log_replay r;
    struct server_stats st;
    story_open(&s);
    size_t n = s.end + 5000;
    uint8_t *p = calloc(1, n);
    assert_non_null(p);
    memcpy(p, s.d.log.data, s.end);
    for (size_t at = s.begin; at < s.end; at = record_end(&s.d.log, at)) {
        for (size_t i = at; i < record_end(&s.d.log, at); i++) {
            if (i == at + RECORD_HEAD)
                i = record_end(&s.d.log, at) - 1;
            for (unsigned bit = 0; bit < 16; bit++) {
                p[i] ^= (uint8_t)(1u << bit / 2);
                if (replay(p, bit % 2 ? n : s.end, &r, &st) != CLAVE_ECORRUPT)
                    fail_msg("bit %u of byte %zu of the record at %zu", bit / 2, i - at, at);
                assert_true(r.lost_tail && r.valid_len == at);
                p[i] ^= (uint8_t)(1u << bit / 2);
            }
        }
    }
    free(p);
}

/* A block with something else in it, old bytes for example, is none that was not written. */
static void assert_strange_blocks_are_damage(const struct story *s)
{
    static const uint8_t fills[] = {0x01, 0x5a, 0xff};
    struct log_replay r;
    struct server_stats st;
    for (size_t block = s->begin / BLOCK; block * BLOCK < s->end; block++) {
        for (size_t i = 0; i < 2 * sizeof fills; i++) {
            size_t n = s->end + (i % 2) * 5000;
            uint8_t *p = without(s, block, block + 1, n - s->end);
            size_t from = block * BLOCK > s->begin ? block * BLOCK : s->begin;
            size_t to = (block + 1) * BLOCK < n ? (block + 1) * BLOCK : n;
            memset(p + from, fills[i / 2], to - from);
            if (replay(p, n, &r, &st) != CLAVE_ECORRUPT)
                fail_msg("block %zu of %x", block - s->begin / BLOCK, fills[i / 2]);
            assert_true(r.lost_tail && r.valid_len >= s->begin);
            free(p);
        }
    }
}

TEST(strange_blocks_in_the_newest_batch)
{
    CLOSED_BY(story_close) struct story s;
    story_open(&s);
    assert_strange_blocks_are_damage(&s);
    s.begin = s.d.log.tail;
    assert_int_equal(memserver_create(&s.c, "/later", "", MODE_PERSISTENT), CLAVE_OK);
    s.end = s.d.log.tail;
    assert_strange_blocks_are_damage(&s);
}

/* In one record that is longer than a block the middle may be missing, and its end be there. */
TEST(a_long_record_without_its_middle)
{
    CLOSED_BY(story_close) struct story s;
    struct log_replay r;
    struct server_stats st;
    static char data[20 * BLOCK];
    story_open(&s);
    s.begin = s.d.log.tail;
    memset(data, 'y', sizeof data - 1);
    assert_int_equal(memserver_create(&s.c, "/long", data, MODE_PERSISTENT), CLAVE_OK);
    s.end = s.d.log.tail;
    for (size_t from = s.begin / BLOCK; from * BLOCK < s.end; from++) {
        uint8_t *p = without(&s, from, from + 1, 0);
        assert_int_equal(replay(p, s.end, &r, &st), CLAVE_OK);
        assert_true(r.torn && r.valid_len == s.begin);
        free(p);
    }
}

/* Apache marks no batches: what follows a hole may have been acknowledged. */
TEST(a_hole_in_an_unmarked_log)
{
    CLOSED_BY(story_close) struct story s;
    struct log_replay r;
    struct server_stats st;
    story_open(&s);
    memset(s.d.log.data + 8, 0, 8); /* Apache's dbid */
    for (size_t from = s.begin / BLOCK; (from + 2) * BLOCK < s.end; from++) {
        uint8_t *p = without(&s, from, from + 1, 0);
        assert_int_equal(replay(p, s.end, &r, &st), CLAVE_ECORRUPT);
        assert_true(r.lost_tail);
        free(p);
    }
    /* A prefix is an end in every log. */
    for (size_t cut = s.begin; cut <= s.end; cut += 11)
        assert_int_equal(replay(s.d.log.data, cut, &r, &st), CLAVE_OK);
}

/* The record of a failed request has no digest for its mark to follow. */
TEST(a_failed_request_begins_a_batch)
{
    CLOSED_BY(story_close) struct story s;
    struct log_replay r;
    struct server_stats st;
    story_open(&s);
    assert_int_equal(memserver_create(&s.c, "/first", "", MODE_PERSISTENT), CLAVE_ENODEEXISTS);
    size_t n = s.d.log.tail;
    uint8_t *p = malloc(n);
    assert_non_null(p);
    memcpy(p, s.d.log.data, n);
    memset(p + (s.begin / BLOCK + 1) * BLOCK, 0, BLOCK);
    assert_int_equal(replay(p, n, &r, &st), CLAVE_ECORRUPT);
    assert_true(r.lost_tail);
    memcpy(p, s.d.log.data, n);
    assert_int_equal(replay(p, n, &r, &st), CLAVE_OK);
    assert_false(r.torn);
    assert_int_equal(st.digest_mismatches, 0);
    free(p);
}

/* No write could follow; found by test/fuzz. */
TEST(the_last_zxid_there_is)
{
    CLOSED_BY(story_close) struct story s;
    struct log_replay r;
    struct log_walk w;
    struct txn_log_entry e;
    struct server_stats st;
    enum { ZXID_AT = 8 + 4 };
    story_open(&s);
    size_t at = record_newest(&s.d.log), n = (size_t)record_int(&s.d.log, at + 8);
    uint8_t *p = s.d.log.data;
    memset(p + at + RECORD_HEAD + ZXID_AT, 0xff, 8);
    p[at + RECORD_HEAD + ZXID_AT] = 0x7f;
    uint32_t sum = clave__checksum(CHECKSUM_START, p + at + RECORD_HEAD, n);
    for (size_t i = 0; i < 4; i++)
        p[at + 4 + i] = (uint8_t)(sum >> (24 - 8 * i));
    assert_int_equal(replay(p, s.d.log.tail, &r, &st), CLAVE_ECORRUPT);
    assert_non_null(strstr(r.fault, "the largest possible zxid"));
    assert_true(clave__txn_log_walk(&w, p, s.d.log.tail));
    while (clave__txn_log_next_entry(&w, &e) == LOG_STEP_RECORD)
        assert_true(e.txn.head.zxid != INT64_MAX);
    assert_non_null(strstr(w.fault, "the largest possible zxid"));
}
