/* base_crc32_test.c - the sum is zlib's, whatever the length, the alignment and the pieces. */
#include <zlib.h>

#include "base/hash/crc32.h"
#include "base/rand.h"
#include "lib/unit.h"

enum { MOST = 700 };

static void assert_sums(const struct crc32 *t)
{
    struct rand_state r;
    uint8_t bytes[MOST + 8];
    clave__rand_seed(&r, 1);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)clave__rand_u64(&r);
    for (size_t n = 0; n <= MOST; n++) {
        const uint8_t *p = bytes + n % 8;
        size_t cut = (size_t)clave__rand_below(&r, n + 1);
        uint32_t first = clave__crc32(t, 0, p, cut);
        assert_int_equal(clave__crc32(t, 0, p, n), crc32(0, p, (uInt)n));
        assert_int_equal(clave__crc32(t, first, p + cut, n - cut), crc32(0, p, (uInt)n));
    }
    assert_int_equal(clave__crc32(t, 0, "123456789", 9), 0xcbf43926); /* its published check */
}

TEST(the_sum_is_zlibs)
{
    struct crc32 t;
    clave__crc32_init(&t);
    assert_sums(&t);
    t.folds = false; /* as on other processors */
    assert_sums(&t);
}
