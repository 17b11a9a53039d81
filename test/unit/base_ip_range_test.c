/* base_ip_range_test.c - addresses and ranges as text, and which is in which. */
#include "base/ip_range.h"
#include "lib/unit.h"

static bool parse(struct ip_range *r, const char *text)
{
    return clave__ip_range_parse(r, text, strlen(text));
}

TEST(texts_that_are_none)
{
    static const char *const bad[] = {
        "",      "1.2.3",    "1.2.3.4.5", "1.2.3.256", "1.2.3.4/33", "1.2.3.4/",   "a.b.c.d",
        ":",     ":::",      "1::2::3",   "1:2:3",     "12345::",    "::1/129",    "[::1]",
        "::1%1", "1.2.3.4 ", " 1.2.3.4",  "1.2.3.4:5", "unix",       "1.2.3.4/08x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct ip_range r;
        if (parse(&r, bad[i]))
            print_error("%s\n", bad[i]);
        assert_false(parse(&r, bad[i]));
    }
}

TEST(which_is_in_which)
{
    static const struct {
        const char *range, *part;
        bool has;
    } rows[] = {
        {"10.0.0.0/8", "10.1.2.3", true},
        {"10.0.0.0/8", "11.0.0.0", false},
        {"10.0.0.0/8", "10.1.0.0/16", true},
        {"10.1.0.0/16", "10.0.0.0/8", false},
        {"10.0.0.7", "10.0.0.7", true},
        {"10.0.0.7", "10.0.0.8", false},
        {"10.0.0.6/31", "10.0.0.7", true},
        {"10.0.0.6/31", "10.0.0.8", false},
        {"0.0.0.0/0", "255.255.255.255", true},
        {"0.0.0.0/0", "::1", false},
        {"fd00::/8", "fd12:3456::1", true},
        {"fd00::/8", "fe80::1", false},
        {"::1", "0:0:0:0:0:0:0:1", true},
        {"::/0", "1.2.3.4", false},
        {"2001:db8::/33", "2001:db8:7fff::1", true},
        {"2001:db8::/33", "2001:db8:8000::1", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ip_range range, part;
        assert_true(parse(&range, rows[i].range));
        assert_true(parse(&part, rows[i].part));
        if (clave__ip_range_has(&range, &part) != rows[i].has)
            print_error("%s and %s\n", rows[i].range, rows[i].part);
        assert_int_equal(clave__ip_range_has(&range, &part), rows[i].has);
    }
}
