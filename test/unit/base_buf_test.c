/* base_buf_test.c - the byte queue against a plain one, and its limits. */
#include "base/buf.h"
#include "base/rand.h"
#include "lib/failmem.h"
#include "lib/unit.h"

enum { MAX = 3000 };

static void check(const struct buf *b, const uint8_t *want, size_t n)
{
    assert_true(b->head <= b->tail && b->tail <= b->cap && b->cap <= b->max);
    assert_int_equal(clave__buf_len(b), n);
    if (n > 0)
        assert_memory_equal(clave__buf_bytes(b), want, n);
}

/* Thousands of steps in any order; the model is an array whose front moves. */
TEST(does_as_a_plain_queue)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        static uint8_t model[MAX];
        uint8_t piece[700];
        size_t n = 0;
        struct failmem mem;
        struct rand_state rand;
        struct buf b;
        failmem_init(&mem);
        clave__rand_seed(&rand, seed);
        clave__buf_init(&b, &mem.mem, MAX);
        for (int turn = 0; turn < 3000; turn++) {
            size_t k = (size_t)clave__rand_below(&rand, sizeof piece);
            switch (clave__rand_below(&rand, 20)) {
            case 0:
                clave__buf_clear(&b);
                n = 0;
                break;
            case 1:
                clave__buf_trim(&b, k);
                break;
            case 2:
                assert_int_equal(clave__buf_reserve(&b, MAX - n + 1), CLAVE_ETOOBIG);
                assert_int_equal(clave__buf_reserve(&b, k % (MAX - n + 1)), CLAVE_OK);
                break;
            case 3:
            case 4:
            case 5:
            case 6:
            case 7:
            case 8:
                k = k > n ? n : k;
                clave__buf_consume(&b, k);
                memmove(model, model + k, n - k);
                n -= k;
                break;
            default:
                k /= 2;
                memset(piece, turn & 0xff, k);
                if (n + k > MAX) {
                    assert_int_equal(clave__buf_append(&b, piece, k), CLAVE_ETOOBIG);
                    break;
                }
                assert_int_equal(clave__buf_append(&b, piece, k), CLAVE_OK);
                memcpy(model + n, piece, k);
                n += k;
                break;
            }
            check(&b, model, n);
        }
        clave__buf_fini(&b);
        assert_int_equal(mem.live, 0);
    }
}

/* Not a byte more than the maximum is ever taken of the allocator. */
TEST(the_maximum_is_kept)
{
    static const size_t maxima[] = {0, 1, 2, 10, 255, 256, 257, 300, 1000, 1025};
    for (size_t i = 0; i < sizeof maxima / sizeof *maxima; i++) {
        struct failmem mem;
        struct buf b;
        failmem_init(&mem);
        clave__buf_init(&b, &mem.mem, maxima[i]);
        for (size_t n = 0; n < maxima[i]; n++) {
            assert_int_equal(clave__buf_append(&b, "x", 1), CLAVE_OK);
            assert_true(b.cap <= b.max);
        }
        assert_int_equal(clave__buf_append(&b, "x", 1), CLAVE_ETOOBIG);
        assert_int_equal(clave__buf_append(&b, NULL, 0), CLAVE_OK);
        assert_int_equal(clave__buf_reserve(&b, SIZE_MAX), CLAVE_ETOOBIG);
        assert_int_equal(clave__buf_len(&b), maxima[i]);
        clave__buf_fini(&b);
        assert_int_equal(mem.live, 0);
    }
}

/* A queue that is read as fast as it is written stays in one place. */
TEST(a_queue_that_is_read_does_not_grow)
{
    struct failmem mem;
    CLOSED_BY(clave__buf_fini) struct buf b;
    uint8_t piece[100] = {0};
    failmem_init(&mem);
    clave__buf_init(&b, &mem.mem, 1 << 20);
    assert_int_equal(clave__buf_append(&b, piece, 50), CLAVE_OK);
    for (int i = 0; i < 100000; i++) {
        assert_int_equal(clave__buf_append(&b, piece, sizeof piece), CLAVE_OK);
        clave__buf_consume(&b, sizeof piece);
    }
    assert_true(b.cap <= 512);
    assert_true(mem.asked <= 2);
}

/* Without memory the content stays as it was. */
TEST(without_memory)
{
    struct failmem mem;
    struct buf b;
    static uint8_t piece[1000];
    failmem_init(&mem);
    clave__buf_init(&b, &mem.mem, 10000);
    failmem_arm(&mem, 1, 1);
    assert_int_equal(clave__buf_append(&b, "abc", 3), CLAVE_ENOMEM);
    assert_true(clave__buf_len(&b) == 0 && clave__buf_bytes(&b) == NULL);
    assert_int_equal(clave__buf_append(&b, "abc", 3), CLAVE_OK);
    failmem_arm(&mem, 1, 1);
    assert_int_equal(clave__buf_append(&b, piece, sizeof piece), CLAVE_ENOMEM);
    check(&b, (const uint8_t *)"abc", 3);
    assert_int_equal(clave__buf_append(&b, piece, sizeof piece), CLAVE_OK);
    clave__buf_fini(&b);
    clave__buf_fini(&b); /* twice does no harm */
    assert_int_equal(mem.live, 0);
}

TEST(an_empty_one_gives_back_what_is_too_much)
{
    struct failmem mem;
    CLOSED_BY(clave__buf_fini) struct buf b;
    static uint8_t piece[1000];
    failmem_init(&mem);
    clave__buf_init(&b, &mem.mem, 10000);
    assert_int_equal(clave__buf_append(&b, piece, sizeof piece), CLAVE_OK);
    clave__buf_trim(&b, 0);
    assert_int_equal(clave__buf_len(&b), sizeof piece); /* it is not empty */
    clave__buf_consume(&b, sizeof piece);
    clave__buf_trim(&b, 2000);
    assert_int_equal(mem.live, 1);
    clave__buf_trim(&b, 500);
    assert_int_equal(mem.live, 0);
    assert_int_equal(clave__buf_append(&b, "abc", 3), CLAVE_OK);
    check(&b, (const uint8_t *)"abc", 3);
}
