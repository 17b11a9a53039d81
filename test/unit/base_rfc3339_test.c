/* Moments as text, against the C library's calendar. */
#include <time.h>

#include "base/rand.h"
#include "base/time_format.h"
#include "lib/unit.h"

TEST(moments_are_those_of_the_library)
{
    struct rand_state rand;
    char text[RFC3339_CAP], expected[RFC3339_CAP];
    clave__rand_seed(&rand, 1);
    for (int i = 0; i < 100000; i++) {
        int64_t ms = (int64_t)clave__rand_below(&rand, INT64_C(315360000000000)) -
                     INT64_C(62135596800000),
                back;
        time_t seconds = (time_t)((ms + INT64_C(62135596800000)) / 1000 - INT64_C(62135596800));
        struct tm *tm = gmtime(&seconds);
        strftime(expected, sizeof expected, "-%m-%dT%H:%M:%S.", tm);
        clave__rfc3339_format(ms, text);
        assert_memory_equal(text + 4, expected, strlen(expected));
        assert_true(clave__rfc3339_parse(text, &back));
        assert_int_equal(back, ms);
    }
    assert_string_equal(clave__rfc3339_format(0, text), "1970-01-01T00:00:00.000Z");
    assert_string_equal(clave__rfc3339_format(INT64_C(951782400120), text),
                        "2000-02-29T00:00:00.120Z");
    assert_string_equal(clave__rfc3339_format(INT64_MAX, text), "9999-12-31T23:59:59.999Z");
    assert_string_equal(clave__rfc3339_format(INT64_MIN, text), "0001-01-01T00:00:00.000Z");
}

TEST(other_texts_are_no_moments)
{
    static const char *const bad[] = {"",
                                      "2026",
                                      "2026-11-23",
                                      "2026-11-23T09:35:19",
                                      "2026-11-23T09:35:19+01:00",
                                      "2026-13-23T09:35:19Z",
                                      "2026-11-23T24:35:19Z",
                                      "2026-11-23T09:35:19.1Z",
                                      "2026-11-00T09:35:19Z",
                                      "2026-11-23T09:35:19Zx",
                                      "-026-11-23T09:35:19Z"};
    int64_t ms;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(clave__rfc3339_parse(bad[i], &ms));
    assert_true(clave__rfc3339_parse("2026-11-23T09:35:19Z", &ms));
    assert_int_equal(ms, INT64_C(1795426519000));
}
