/* base_utf8_test.c - what is a character, and what may go to a terminal. */
#include "base/utf8.h"
#include "lib/unit.h"

TEST(characters)
{
    static const struct {
        const char *bytes;
        size_t decoded, len, printable;
        uint32_t code;
    } cases[] = {
        {"a", 1, 1, 1, 'a'},
        {"\x1b[31m", 1, 1, 0, 0x1b},
        {"\x7f", 1, 1, 0, 0x7f},
        {"\xc2\x80", 2, 2, 0, 0x80},
        {"\xc2\x9f", 2, 2, 0, 0x9f},
        {"\xc2\xa0", 2, 2, 2, 0xa0},
        {"\xe2\x82\xac!", 3, 3, 3, 0x20ac},
        {"\xe2\x80\xa7", 3, 3, 3, 0x2027},
        {"\xe2\x80\xa8", 3, 3, 0, 0x2028},
        {"\xe2\x80\xae", 3, 3, 0, 0x202e},
        {"\xe2\x80\xaf", 3, 3, 3, 0x202f},
        {"\xe2\x81\xa5", 3, 3, 3, 0x2065},
        {"\xe2\x81\xa6", 3, 3, 0, 0x2066},
        {"\xe2\x81\xa9", 3, 3, 0, 0x2069},
        {"\xd7\x90", 2, 2, 2, 0x5d0}, /* from right to left by itself */
        {"\xf0\x9f\x98\x80", 4, 4, 4, 0x1f600},
        {"\xed\xa0\x80", 3, 0, 0, 0xd800},
        {"\xf4\x90\x80\x80", 4, 0, 0, 0x110000},
        {"\xc0\x9b", 0, 0, 0, 0}, /* overlong ESC */
        {"\xe0\x80\x9b", 0, 0, 0, 0},
        {"\xf0\x80\x80\x9b", 0, 0, 0, 0},
        {"\x80", 0, 0, 0, 0},
        {"\xff", 0, 0, 0, 0},
        {"\xe2\x82", 0, 0, 0, 0}, /* cut */
        {"\xe2\x82/", 0, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = strlen(cases[i].bytes);
        uint32_t code = 0;
        assert_int_equal(clave__utf8_decode(cases[i].bytes, n, &code), cases[i].decoded);
        assert_int_equal(code, cases[i].code);
        assert_int_equal(clave__utf8_len(cases[i].bytes, n), cases[i].len);
        assert_int_equal(clave__utf8_printable(cases[i].bytes, n), cases[i].printable);
    }
}
