/* server_quantiles_test.c - quantiles against a sorted list, and what is forgotten. */
#include "base/rand.h"
#include "lib/unit.h"
#include "server/monitoring/quantiles.h"

enum { VALUES = 2000 };

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

TEST(within_an_eighth)
{
    static int64_t values[VALUES];
    struct rand_state r;
    clave__rand_seed(&r, 7);
    for (unsigned bits = 1; bits <= 32; bits++) {
        struct quantiles q = {0};
        for (size_t i = 0; i < VALUES; i++) {
            values[i] = (int64_t)(clave__rand_u64(&r) >> (64 - bits));
            clave__quantiles_note(&q, 1000, values[i], 1);
        }
        qsort(values, VALUES, sizeof *values, by_value);
        for (unsigned t = 1; t <= 1000; t += 37) {
            int64_t is = values[(VALUES * t + 999) / 1000 - 1];
            int64_t told = clave__quantiles_at(&q, 1000, t);
            assert_true(told >= is && told <= is + is / 8);
        }
        assert_int_equal(q.count, VALUES);
    }
}

TEST(small_values_are_exact)
{
    struct quantiles q = {0};
    assert_int_equal(clave__quantiles_at(&q, 0, 500), -1);
    clave__quantiles_note(&q, 0, 3, 99);
    clave__quantiles_note(&q, 0, 15, 1);
    assert_int_equal(clave__quantiles_at(&q, 0, 500), 3);
    assert_int_equal(clave__quantiles_at(&q, 0, 990), 3);
    assert_int_equal(clave__quantiles_at(&q, 0, 991), 15);
    assert_int_equal(q.sum, 3 * 99 + 15);
    clave__quantiles_note(&q, 0, (int64_t)1 << 40, 1000); /* beyond all ranges: in the last one */
    assert_int_equal(clave__quantiles_at(&q, 0, 500), UINT32_MAX);
}

TEST(old_values_are_forgotten)
{
    struct quantiles q = {0};
    clave__quantiles_note(&q, 5, 1, 1);
    clave__quantiles_note(&q, 59999, 7, 1); /* the same window */
    clave__quantiles_note(&q, 60005, 2, 1); /* the next one: both count */
    assert_int_equal(clave__quantiles_at(&q, 60005, 1000), 7);
    assert_int_equal(clave__quantiles_at(&q, 120005, 1000), 2); /* nobody noted anything since */
    assert_int_equal(clave__quantiles_at(&q, 180005, 1000), -1);
    clave__quantiles_note(&q, 500000, 4, 1); /* after a long silence, neither counts */
    assert_int_equal(clave__quantiles_at(&q, 500000, 1), 4);
    assert_int_equal(q.count, 4);
}
