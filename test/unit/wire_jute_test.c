/* wire_jute_test.c - the primitive encodings: their bytes, their bounds, and the error that sticks.
 */
#include "lib/failmem.h"
#include "lib/unit.h"
#include "wire/jute.h"

enum kind { BYTE, BOOL, INT, LONG, BYTES };

/* A value of any kind and its bytes. */
struct sample {
    enum kind kind;
    int64_t number;
    const char *text; /* BYTES */
    const char *wire;
    size_t n;
};

static const struct sample samples[] = {
    {BYTE, 0, NULL, "\0", 1},
    {BYTE, 255, NULL, "\xff", 1},
    {BOOL, 0, NULL, "\0", 1},
    {BOOL, 1, NULL, "\1", 1},
    {INT, 0, NULL, "\0\0\0\0", 4},
    {INT, 1, NULL, "\0\0\0\1", 4},
    {INT, -1, NULL, "\xff\xff\xff\xff", 4},
    {INT, 0x12345678, NULL, "\x12\x34\x56\x78", 4},
    {INT, INT32_MAX, NULL, "\x7f\xff\xff\xff", 4},
    {INT, INT32_MIN, NULL, "\x80\0\0\0", 4},
    {LONG, 0, NULL, "\0\0\0\0\0\0\0\0", 8},
    {LONG, -2, NULL, "\xff\xff\xff\xff\xff\xff\xff\xfe", 8},
    {LONG, 0x0123456789abcdef, NULL, "\x01\x23\x45\x67\x89\xab\xcd\xef", 8},
    {LONG, INT64_MAX, NULL, "\x7f\xff\xff\xff\xff\xff\xff\xff", 8},
    {LONG, INT64_MIN, NULL, "\x80\0\0\0\0\0\0\0", 8},
    {BYTES, 0, NULL, "\xff\xff\xff\xff", 4},
    {BYTES, 0, "", "\0\0\0\0", 4},
    {BYTES, 0, "/a", "\0\0\0\2/a", 6},
};

static void put(struct jwriter *w, const struct sample *s)
{
    switch (s->kind) {
    case BYTE:
        clave__jput_byte(w, (uint8_t)s->number);
        break;
    case BOOL:
        clave__jput_bool(w, s->number != 0);
        break;
    case INT:
        clave__jput_int(w, (int32_t)s->number);
        break;
    case LONG:
        clave__jput_long(w, s->number);
        break;
    case BYTES:
        clave__jput_str(w, s->text);
        break;
    }
}

/* What is read in place of a sample; bytes come as their length, -1 for null. */
static int64_t get(struct jreader *r, enum kind kind, struct jbytes *bytes)
{
    switch (kind) {
    case BYTE:
        return clave__jget_byte(r);
    case BOOL:
        return clave__jget_bool(r);
    case INT:
        return clave__jget_int(r);
    case LONG:
        return clave__jget_long(r);
    case BYTES:
        *bytes = clave__jget_bytes(r);
        return bytes->n;
    }
    return 0;
}

static int64_t number_of(const struct sample *s)
{
    if (s->kind != BYTES)
        return s->number;
    return s->text ? (int64_t)strlen(s->text) : -1;
}

TEST(every_primitive_both_ways)
{
    struct failmem mem;
    failmem_init(&mem);
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const struct sample *s = &samples[i];
        struct jbytes bytes = JBYTES_NULL;
        CLOSED_BY(clave__buf_fini) struct buf b;
        clave__buf_init(&b, &mem.mem, 64);
        struct jwriter w = clave__jwriter(&b);
        put(&w, s);
        assert_int_equal(w.err, CLAVE_OK);
        assert_int_equal(b.tail, s->n);
        assert_memory_equal(b.data, s->wire, s->n);
        struct jreader r = clave__jreader(s->wire, s->n);
        assert_true(get(&r, s->kind, &bytes) == number_of(s));
        if (s->text)
            assert_memory_equal(bytes.p, s->text, (size_t)bytes.n);
        assert_false(r.bad);
        assert_int_equal(r.n, 0);
    }
    assert_int_equal(mem.live, 0);
}

/* Cut anywhere, it is bad and yields nothing, and so does every read after it. */
TEST(every_primitive_cut_at_every_byte)
{
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        for (size_t n = 0; n < samples[i].n; n++) {
            struct jbytes bytes = {"", 0};
            struct jreader r = clave__jreader(samples[i].wire, n);
            bool is_bytes = samples[i].kind == BYTES;
            assert_true(get(&r, samples[i].kind, &bytes) == (is_bytes ? -1 : 0));
            assert_true(r.bad);
            assert_true(!is_bytes || bytes.p == NULL);
            size_t left = r.n;
            for (int kind = BYTE; kind <= BYTES; kind++)
                assert_true(get(&r, (enum kind)kind, &bytes) == (kind == BYTES ? -1 : 0));
            assert_int_equal(clave__jget_count(&r, 1), 0);
            assert_int_equal(clave__jget_strings(&r).count, 0);
            assert_true(r.bad);
            assert_int_equal(r.n, left); /* nothing moves any more */
        }
    }
}

TEST(any_byte_but_zero_is_true)
{
    for (int i = 0; i < 256; i++) {
        uint8_t byte = (uint8_t)i;
        struct jreader r = clave__jreader(&byte, 1);
        assert_int_equal(clave__jget_bool(&r), i != 0);
    }
}

TEST(lengths_are_held_against_the_frame)
{
    static const struct {
        const char *wire;
        size_t n;
        int32_t len; /* -2: bad */
    } cases[] = {
        {"\0\0\0\3abc", 7, 3},
        {"\0\0\0\3abcd", 8, 3},
        {"\0\0\0\4abc", 7, -2},
        {"\xff\xff\xff\xff", 4, -1},
        {"\xff\xff\xff\xfe", 4, -2},
        {"\x80\0\0\0", 4, -2},
        {"\x7f\xff\xff\xff"
         "abc",
         7, -2},
        {"\0\0\0\1", 4, -2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct jreader r = clave__jreader(cases[i].wire, cases[i].n);
        struct jbytes b = clave__jget_bytes(&r);
        assert_int_equal(r.bad, cases[i].len == -2);
        assert_int_equal(b.n, cases[i].len == -2 ? -1 : cases[i].len);
    }
}

/* A count that the rest of the frame cannot hold is refused before anything is made of it. */
TEST(counts_are_held_against_the_frame)
{
    static const struct {
        const char *wire;
        size_t n, each;
        int32_t count; /* -2: bad */
    } cases[] = {
        {"\0\0\0\0", 4, 4, 0},
        {"\xff\xff\xff\xff", 4, 4, -1},
        {"\xff\xff\xff\xfe", 4, 4, -2},
        {"\0\0\0\1\0\0\0\0", 8, 4, 1},
        {"\0\0\0\2\0\0\0\0", 8, 4, -2},
        {"\0\0\0\1\0\0\0", 7, 4, -2},
        {"\0\0\0\4abcd", 8, 1, 4},
        {"\x7f\xff\xff\xff\0\0\0\0", 8, 1, -2},
        {"\x40\0\0\0\0\0\0\0", 8, 12, -2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct jreader r = clave__jreader(cases[i].wire, cases[i].n);
        int32_t count = clave__jget_count(&r, cases[i].each);
        assert_int_equal(r.bad, cases[i].count == -2);
        assert_int_equal(count, cases[i].count == -2 ? 0 : cases[i].count);
    }
}

TEST(vectors_of_strings)
{
    static const char wire[] = "\0\0\0\3\0\0\0\2/a\xff\xff\xff\xff\0\0\0\0rest";
    struct jreader r = clave__jreader(wire, sizeof wire - 1);
    struct jvec v = clave__jget_strings(&r);
    assert_false(r.bad);
    assert_int_equal(v.count, 3);
    assert_int_equal(v.n, 14);
    assert_int_equal(r.n, 4);
    struct jreader each = clave__jvec_reader(v);
    assert_true(clave__jbytes_eq(clave__jget_bytes(&each), clave__jbytes("/a")));
    assert_int_equal(clave__jget_bytes(&each).n, -1);
    assert_int_equal(clave__jget_bytes(&each).n, 0);
    assert_int_equal(each.n, 0);
    for (size_t n = 0; n < 18; n++) {
        r = clave__jreader(wire, n);
        v = clave__jget_strings(&r);
        assert_true(r.bad && v.count == 0 && v.n == 0);
    }
}

TEST(null_is_not_empty)
{
    struct jbytes empty = clave__jbytes(""), null = clave__jbytes(NULL);
    assert_int_equal(null.n, -1);
    assert_false(clave__jbytes_eq(empty, null));
    assert_true(clave__jbytes_eq(null, JBYTES_NULL));
    assert_true(clave__jbytes_eq(empty, clave__jbytes_n("x", 0)));
    assert_false(clave__jbytes_eq(clave__jbytes("a"), clave__jbytes("b")));
    assert_false(clave__jbytes_eq(clave__jbytes("a"), clave__jbytes("ab")));
    assert_true(clave__jbytes_eq(clave__jbytes_n("a\0b", 3), clave__jbytes_n("a\0b", 3)));
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Beyond the maximum nothing is written, and nothing after it either. */
TEST(a_writer_stops_at_the_maximum)
{
    struct failmem mem;
    failmem_init(&mem);
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        for (size_t max = 0; max < samples[i].n; max++) {
            CLOSED_BY(clave__buf_fini) struct buf b;
            clave__buf_init(&b, &mem.mem, max);
            struct jwriter w = clave__jwriter(&b);
            put(&w, &samples[i]);
            assert_int_equal(w.err, CLAVE_ETOOBIG);
            size_t written = clave__buf_len(&b);
            assert_true(written <= max);
            clave__jput_byte(&w, 1);
            clave__jput_int_at(&w, 0, 1);
            clave__jput_vec(&w, (struct jvec){0, NULL, 0});
            assert_int_equal(w.err, CLAVE_ETOOBIG);
            assert_int_equal(clave__buf_len(&b), written);
        }
    }
    assert_int_equal(mem.live, 0);
}

TEST(a_writer_without_memory)
{
    struct failmem mem;
    struct buf b;
    failmem_init(&mem);
    failmem_arm(&mem, 1, 1);
    clave__buf_init(&b, &mem.mem, 100);
    struct jwriter w = clave__jwriter(&b);
    clave__jput_long(&w, 1);
    assert_int_equal(w.err, CLAVE_ENOMEM);
    clave__jput_long(&w, 1); /* there is memory again, but a part is missing */
    assert_int_equal(w.err, CLAVE_ENOMEM);
    assert_int_equal(clave__buf_len(&b), 0);
    clave__buf_fini(&b);
    assert_int_equal(mem.live, 0);
}

TEST(a_vector_as_it_was_read)
{
    static const char wire[] = "\0\0\0\2\0\0\0\1x\0\0\0\1y";
    struct failmem mem;
    CLOSED_BY(clave__buf_fini) struct buf b;
    failmem_init(&mem);
    clave__buf_init(&b, &mem.mem, 100);
    struct jreader r = clave__jreader(wire, sizeof wire - 1);
    struct jwriter w = clave__jwriter(&b);
    clave__jput_vec(&w, clave__jget_strings(&r));
    clave__jput_vec(&w, (struct jvec){-1, NULL, 0});
    clave__jput_vec(&w, (struct jvec){0, NULL, 0});
    assert_int_equal(w.err, CLAVE_OK);
    assert_int_equal(b.tail, sizeof wire - 1 + 8);
    assert_memory_equal(b.data, wire, sizeof wire - 1);
    assert_memory_equal(b.data + sizeof wire - 1, "\xff\xff\xff\xff\0\0\0\0", 8);
}

/* Offsets count from the head of the content, wherever it is in the buffer. */
TEST(an_int_is_filled_in)
{
    struct failmem mem;
    CLOSED_BY(clave__buf_fini) struct buf b;
    failmem_init(&mem);
    clave__buf_init(&b, &mem.mem, 100);
    struct jwriter w = clave__jwriter(&b);
    clave__jput_long(&w, -1);
    clave__buf_consume(&b, 3);
    clave__jput_int_at(&w, 1, 0x01020304);
    assert_memory_equal(clave__buf_bytes(&b), "\xff\x01\x02\x03\x04", 5);
}
