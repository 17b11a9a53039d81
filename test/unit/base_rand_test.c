/* base_rand_test.c - the numbers are the algorithm's own, uniform, and the same for a seed. */
#include "base/rand.h"
#include "lib/unit.h"

/* xoshiro256** as its authors' code gives it, its state set by hand and by splitmix64. */
TEST(the_reference)
{
    static const uint64_t by_hand[] = {11520, 0, 1509978240, 1215971899390074240};
    static const uint64_t by_seed[] = {0x99ec5f36cb75f2b4, 0xbf6e1f784956452a, 0x1a5f849d4933e6e0,
                                       0x6aa594f1262d2d2c};
    struct rand_state r = {{1, 2, 3, 4}};
    for (size_t i = 0; i < 4; i++)
        assert_true(clave__rand_u64(&r) == by_hand[i]);
    clave__rand_seed(&r, 0);
    assert_true(r.s[0] == 0xe220a8397b1dcdaf);
    for (size_t i = 0; i < 4; i++)
        assert_true(clave__rand_u64(&r) == by_seed[i]);
}

TEST(below)
{
    struct rand_state r;
    clave__rand_seed(&r, 1);
    assert_true(clave__rand_below(&r, 0) == 0);
    for (uint64_t n = 1; n < 50; n++) {
        uint64_t seen = 0;
        for (int i = 0; i < 2000; i++) {
            uint64_t v = clave__rand_below(&r, n);
            assert_true(v < n);
            seen |= (uint64_t)1 << v;
        }
        assert_true(seen == ((uint64_t)1 << n) - 1);
    }
    for (int i = 0; i < 1000; i++)
        assert_true(clave__rand_below(&r, ((uint64_t)1 << 63) + 1) <= (uint64_t)1 << 63);
}

/* Three quarters of the range: without throwing some away the lower half would come twice as
 * often as it should. */
TEST(below_is_even)
{
    const uint64_t n = UINT64_MAX / 4 * 3;
    struct rand_state r;
    int low = 0;
    clave__rand_seed(&r, 7);
    for (int i = 0; i < 30000; i++)
        low += clave__rand_below(&r, n) < n / 3;
    assert_true(low > 9500 && low < 10500);
}

TEST(uuids)
{
    struct rand_state r;
    char a[CLAVE_UUID_TEXT + 1], b[CLAVE_UUID_TEXT + 1];
    clave__rand_seed(&r, 1);
    clave__rand_uuid(&r, b);
    for (int i = 0; i < 1000; i++) {
        clave__rand_uuid(&r, a);
        assert_int_equal(strlen(a), CLAVE_UUID_TEXT);
        for (size_t k = 0; k < CLAVE_UUID_TEXT; k++) {
            bool dash = k == 8 || k == 13 || k == 18 || k == 23;
            assert_true(dash ? a[k] == '-' : strchr("0123456789abcdef", a[k]) != NULL);
        }
        assert_int_equal(a[14], '8');
        assert_non_null(strchr("89ab", a[19]));
        assert_string_not_equal(a, b);
        memcpy(b, a, sizeof b);
    }
    clave__rand_seed(&r, 1000);
    clave__rand_uuid(&r, a);
    clave__rand_seed(&r, 1000);
    clave__rand_uuid(&r, b);
    assert_string_equal(a, b);
}

TEST(mixed_uuids_differ_by_every_bit)
{
    static const char uuid[] = "b358faf7-4ef9-465a-875c-3d964f482cd2";
    char a[sizeof uuid], b[sizeof uuid];
    memcpy(a, uuid, sizeof a);
    clave__uuid_mix(a, 0, 0);
    assert_string_equal(a, uuid);
    for (int bit = 0; bit < 64 + 56; bit++) {
        uint64_t one = UINT64_C(1) << bit % 64;
        memcpy(a, uuid, sizeof a);
        clave__uuid_mix(a, bit < 64 ? one : 0, bit < 64 ? 0 : one);
        assert_int_equal(strlen(a), CLAVE_UUID_TEXT);
        assert_string_not_equal(a, uuid);
        assert_int_equal(a[14], '4');
        assert_int_equal(a[19], '8');
        memcpy(b, a, sizeof b);
        clave__uuid_mix(b, bit < 64 ? one : 0, bit < 64 ? 0 : one);
        assert_string_equal(b, uuid); /* so that no two results are equal */
    }
}
