/* wire_frame_test.c - frames on a stream that comes in any pieces, and what is no frame. */
#include "base/rand.h"
#include "lib/failmem.h"
#include "lib/unit.h"
#include "wire/frame.h"
#include "wire/jute.h"

enum { MAX = 100 };

/* Lengths of the frames of one stream; -1 ends them. Frame i is filled with its number. */
static size_t make_stream(struct buf *b, const int *lengths)
{
    struct jwriter w = clave__jwriter(b);
    size_t count = 0;
    for (; lengths[count] >= 0; count++) {
        size_t begin = clave__frame_begin(&w);
        for (int i = 0; i < lengths[count]; i++)
            clave__jput_byte(&w, (uint8_t)count);
        assert_int_equal(clave__frame_end(&w, begin), CLAVE_OK);
    }
    return count;
}

/* Takes what has come; `next` is the number of the frame that has to be next. */
static size_t take_all(struct frame_reader *f, const int *lengths, size_t next)
{
    const uint8_t *p;
    size_t n;
    int rc;
    while ((rc = clave__frame_next(f, &p, &n)) == 1) {
        assert_int_equal(n, lengths[next]);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(p[i], next);
        next++;
    }
    assert_int_equal(rc, 0);
    return next;
}

static const int mixed[] = {0, 1, 3, 100, 4, 0, 0, 99, 5, 100, 100, 2, -1};

/* Feeds copies of their own size, so that a read beyond the end is caught. */
static void feed_pieces(const struct buf *stream, const int *lengths, size_t piece)
{
    struct failmem mem;
    struct frame_reader f;
    size_t next = 0;
    failmem_init(&mem);
    clave__frame_reader_init(&f, &mem.mem, MAX);
    for (size_t at = 0; at < stream->tail; at += piece) {
        size_t n = stream->tail - at < piece ? stream->tail - at : piece;
        uint8_t *copy = malloc(n);
        assert_non_null(copy);
        memcpy(copy, stream->data + at, n);
        clave__frame_feed(&f, copy, n);
        next = take_all(&f, lengths, next);
        free(copy);
    }
    assert_int_equal(lengths[next], -1);
    clave__frame_reader_fini(&f);
    assert_int_equal(mem.live, 0);
}

TEST(frames_in_pieces_of_every_size)
{
    struct failmem mem;
    CLOSED_BY(clave__buf_fini) struct buf stream;
    failmem_init(&mem);
    clave__buf_init(&stream, &mem.mem, 10000);
    make_stream(&stream, mixed);
    for (size_t piece = 1; piece <= stream.tail; piece++)
        feed_pieces(&stream, mixed, piece);
}

TEST(frames_in_pieces_of_random_size)
{
    struct failmem mem;
    CLOSED_BY(clave__buf_fini) struct buf stream;
    struct rand_state rand;
    failmem_init(&mem);
    clave__buf_init(&stream, &mem.mem, 10000);
    make_stream(&stream, mixed);
    for (uint64_t seed = 1; seed <= 500; seed++) {
        CLOSED_BY(clave__frame_reader_fini) struct frame_reader f;
        size_t next = 0, n;
        clave__rand_seed(&rand, seed);
        clave__frame_reader_init(&f, &mem.mem, MAX);
        for (size_t at = 0; at < stream.tail; at += n) {
            n = (size_t)clave__rand_below(&rand, seed % 2 ? 8 : 150) + 1;
            n = n > stream.tail - at ? stream.tail - at : n;
            clave__frame_feed(&f, stream.data + at, n);
            next = take_all(&f, mixed, next);
        }
        assert_int_equal(mixed[next], -1);
    }
}

/* A frame that is whole in the feed is not copied. */
TEST(whole_frames_stay_where_they_are)
{
    static const uint8_t bytes[] = {0, 0, 0, 2, 'a', 'b', 0, 0, 0, 1, 'c', 0, 0};
    struct failmem mem;
    struct frame_reader f;
    const uint8_t *p;
    size_t n;
    failmem_init(&mem);
    clave__frame_reader_init(&f, &mem.mem, MAX);
    clave__frame_feed(&f, bytes, sizeof bytes);
    assert_int_equal(clave__frame_next(&f, &p, &n), 1);
    assert_ptr_equal(p, bytes + 4);
    assert_int_equal(clave__frame_next(&f, &p, &n), 1);
    assert_ptr_equal(p, bytes + 10);
    assert_int_equal(mem.asked, 0);
    assert_int_equal(clave__frame_next(&f, &p, &n), 0); /* two bytes are kept */
    assert_int_equal(mem.live, 1);
    clave__frame_reader_reset(&f); /* and forgotten */
    clave__frame_feed(&f, bytes, 6);
    assert_int_equal(clave__frame_next(&f, &p, &n), 1);
    assert_ptr_equal(p, bytes + 4);
    clave__frame_reader_fini(&f);
    assert_int_equal(mem.live, 0);
}

TEST(lengths_that_are_none)
{
    static const struct {
        uint8_t bytes[4];
        int rc;
        size_t n; /* ETOOBIG tells the length */
    } cases[] = {
        {{0, 0, 0, MAX + 1}, CLAVE_ETOOBIG, MAX + 1},
        {{'r', 'u', 'o', 'k'}, CLAVE_ETOOBIG, 0x72756f6b},
        {{0x7f, 0xff, 0xff, 0xff}, CLAVE_ETOOBIG, INT32_MAX},
        {{0xff, 0xff, 0xff, 0xff}, CLAVE_EPROTO, 0},
        {{0x80, 0, 0, 0}, CLAVE_EPROTO, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t piece = 1; piece <= 4; piece++) {
            struct failmem mem;
            struct frame_reader f;
            const uint8_t *p;
            size_t n = 0;
            int rc = 0;
            failmem_init(&mem);
            clave__frame_reader_init(&f, &mem.mem, MAX);
            for (size_t at = 0; at < 4 && rc == 0; at += piece) {
                clave__frame_feed(&f, cases[i].bytes + at, piece < 4 - at ? piece : 4 - at);
                rc = clave__frame_next(&f, &p, &n);
            }
            assert_int_equal(rc, cases[i].rc);
            if (rc == CLAVE_ETOOBIG)
                assert_int_equal(n, cases[i].n);
            clave__frame_reader_fini(&f);
            assert_int_equal(mem.live, 0);
        }
    }
}

/* However long a frame says it is: no more is held than one of the maximum. */
TEST(a_reader_holds_one_frame_at_most)
{
    struct failmem mem;
    CLOSED_BY(clave__frame_reader_fini) struct frame_reader f;
    const uint8_t *p;
    size_t n;
    uint8_t bytes[4 + MAX] = {0, 0, 0, MAX};
    failmem_init(&mem);
    clave__frame_reader_init(&f, &mem.mem, MAX);
    for (size_t i = 0; i < sizeof bytes - 1; i++) {
        clave__frame_feed(&f, bytes + i, 1);
        assert_int_equal(clave__frame_next(&f, &p, &n), 0);
    }
    assert_true(clave__buf_len(&f.held) <= f.held.max);
    assert_int_equal(f.held.max, MAX + 4);
    clave__frame_feed(&f, bytes + sizeof bytes - 1, 1);
    assert_int_equal(clave__frame_next(&f, &p, &n), 1);
    assert_int_equal(n, MAX);
    assert_int_equal(clave__frame_next(&f, &p, &n), 0);
    assert_int_equal(clave__buf_len(&f.held), 0);
}

TEST(a_reader_without_memory)
{
    struct failmem mem;
    struct frame_reader f;
    const uint8_t *p;
    size_t n;
    failmem_init(&mem);
    failmem_arm(&mem, 1, 1);
    clave__frame_reader_init(&f, &mem.mem, MAX);
    clave__frame_feed(&f, "\0\0", 2);
    assert_int_equal(clave__frame_next(&f, &p, &n), CLAVE_ENOMEM);
    clave__frame_reader_reset(&f);
    clave__frame_feed(&f, "\0\0\0\0", 4);
    assert_int_equal(clave__frame_next(&f, &p, &n), 1);
    assert_int_equal(n, 0);
    clave__frame_reader_fini(&f);
    assert_int_equal(mem.live, 0);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* A frame that does not fit is cut off again; what stood before it stays. */
TEST(a_frame_that_does_not_fit)
{
    struct failmem mem;
    struct buf b;
    failmem_init(&mem);
    for (size_t max = 0; max < 18; max++) {
        clave__buf_init(&b, &mem.mem, max + 6);
        struct jwriter w = clave__jwriter(&b);
        size_t begin = clave__frame_begin(&w);
        clave__jput_byte(&w, 1);
        clave__jput_byte(&w, 2);
        assert_int_equal(clave__frame_end(&w, begin), CLAVE_OK);
        assert_int_equal(begin, 0);
        begin = clave__frame_begin(&w);
        clave__jput_str(&w, "0123456789");
        assert_int_equal(clave__frame_end(&w, begin), CLAVE_ETOOBIG);
        assert_int_equal(clave__buf_len(&b), 6);
        assert_memory_equal(clave__buf_bytes(&b), "\0\0\0\2\1\2", 6);
        clave__buf_fini(&b);
    }
    assert_int_equal(mem.live, 0);
}
