/* base_path_test.c - the rules for paths, and their parts. */
#include "base/path.h"
#include "lib/unit.h"

enum verdict { FINE, BAD, FINE_IF_SEQUENTIAL };

TEST(paths_one_by_one)
{
    static const struct {
        const char *path;
        enum verdict verdict;
    } cases[] = {
        {"/", FINE},
        {"/a", FINE},
        {"/a/b/c", FINE},
        {"/...", FINE},
        {"/.a", FINE},
        {"/a.", FINE},
        {"/..a/b", FINE},
        {"/a b", FINE},
        {"/~", FINE},
        {"", BAD},
        {"a", BAD},
        {"a/b", BAD},
        {"//", BAD},
        {"//a", BAD},
        {"/a//b", BAD},
        {"/a/", FINE_IF_SEQUENTIAL},
        {"/a//", BAD},
        {"/.", FINE_IF_SEQUENTIAL},
        {"/..", FINE_IF_SEQUENTIAL},
        {"/a/.", FINE_IF_SEQUENTIAL},
        {"/a/..", FINE_IF_SEQUENTIAL},
        {"/./a", BAD},
        {"/../a", BAD},
        {"/a/./b", BAD},
        {"/a/../b", BAD},
        {"/a/./", BAD},
        {"/\x01", BAD},
        {"/\x1f", BAD},
        {"/\x20", FINE},
        {"/\x7e", FINE},
        {"/\x7f", BAD},
        {"/\xc2\x80", BAD},         /* U+0080 */
        {"/\xc2\x9f", BAD},         /* U+009F */
        {"/\xc2\xa0", FINE},        /* U+00A0 */
        {"/\xc3\xbc", FINE},        /* U+00FC */
        {"/\xed\x9f\xbf", FINE},    /* U+D7FF */
        {"/\xed\xa0\x80", BAD},     /* U+D800 */
        {"/\xed\xbf\xbf", BAD},     /* U+DFFF */
        {"/\xee\x80\x80", BAD},     /* U+E000 */
        {"/\xef\xa3\xbf", BAD},     /* U+F8FF */
        {"/\xef\xa4\x80", FINE},    /* U+F900 */
        {"/\xef\xbf\xaf", FINE},    /* U+FFEF */
        {"/\xef\xbf\xb0", BAD},     /* U+FFF0 */
        {"/\xef\xbf\xbf", BAD},     /* U+FFFF */
        {"/\xf0\x90\x80\x80", BAD}, /* U+10000 */
        {"/\xf4\x8f\xbf\xbf", BAD}, /* U+10FFFF */
        {"/\x80", BAD},             /* no first byte */
        {"/\xff", BAD},
        {"/\xc0\xaf", BAD},     /* a '/' in two bytes */
        {"/\xe0\x80\xaf", BAD}, /* and in three */
        {"/\xc1\xbf", BAD},
        {"/\xe0\x9f\xbf", BAD}, /* U+07FF in three */
        {"/\xc3", BAD},         /* cut */
        {"/\xe2\x82", BAD},
        {"/\xe2\x82/a", BAD},
        {"/a\xe2\x82\xac/\xe2\x82\xac", FINE}, /* euro signs */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int sequential = 0; sequential < 2; sequential++) {
            size_t n = strlen(cases[i].path);
            char *copy = malloc(n ? n : 1); /* of its own size, without a NUL */
            assert_non_null(copy);
            memcpy(copy, cases[i].path, n);
            const char *fault = clave__path_fault(copy, n, sequential);
            bool fine =
                cases[i].verdict == FINE || (cases[i].verdict == FINE_IF_SEQUENTIAL && sequential);
            if ((fault == NULL) != fine)
                fail_msg("'%s', sequential %d: %s", cases[i].path, sequential,
                         fault ? fault : "taken");
            free(copy);
        }
    }
    assert_non_null(clave__path_fault("/a\0b", 4, false));
}

/* Every character of the plane, in a path of its own. */
TEST(every_character)
{
    for (uint32_t c = 1; c < 0x10000; c++) {
        char path[5] = "/";
        size_t n;
        if (c < 0x80) {
            path[1] = (char)c;
            n = 2;
        } else if (c < 0x800) {
            path[1] = (char)(0xc0 | c >> 6);
            path[2] = (char)(0x80 | (c & 0x3f));
            n = 3;
        } else {
            path[1] = (char)(0xe0 | c >> 12);
            path[2] = (char)(0x80 | (c >> 6 & 0x3f));
            path[3] = (char)(0x80 | (c & 0x3f));
            n = 4;
        }
        bool refused = c < 0x20 || (c >= 0x7f && c <= 0x9f) || (c >= 0xd800 && c <= 0xf8ff) ||
                       c >= 0xfff0 || c == '/' || c == '.';
        if ((clave__path_fault(path, n, false) != NULL) != refused)
            fail_msg("U+%04X", (unsigned)c);
    }
}

TEST(parents_and_names)
{
    static const struct {
        const char *path;
        size_t parent_len;
        const char *name;
    } cases[] = {
        {"/", 0, ""},       {"/a", 1, "a"},     {"/a/b", 2, "b"},
        {"/a/b/c", 4, "c"}, {"/abc/d", 4, "d"}, {"/a/", 2, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(clave__path_parent_len(cases[i].path, strlen(cases[i].path)),
                         cases[i].parent_len);
        assert_string_equal(clave__path_name(cases[i].path), cases[i].name);
    }
    assert_int_equal(clave__path_parent_len("", 0), 0);
    assert_string_equal(clave__path_name("plain"), "plain");
}

TEST(children)
{
    static const struct {
        const char *dir, *name, *path;
    } cases[] = {
        {"/", "a", "/a"},  {"/a", "b", "/a/b"}, {"/a/b", "lock-0000000001", "/a/b/lock-0000000001"},
        {"/a", "", "/a/"}, {"/", "", "/"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *dir = cases[i].dir, *name = cases[i].name, *path = cases[i].path;
        size_t cap = strlen(dir) + strlen(name) + 2;
        char *out = malloc(cap), *made = clave__path_child(NULL, dir, name);
        assert_non_null(out);
        assert_int_equal(clave__path_put_child(out, dir, name), strlen(path));
        assert_string_equal(out, path);
        assert_string_equal(made, path);
        assert_true(clave__path_is_child(path, dir, name));
        free(out);
        free(made);
    }
    assert_false(clave__path_is_child("/a/b", "/a", "c"));
    assert_false(clave__path_is_child("/a/b", "/a", "bc"));
    assert_false(clave__path_is_child("/a/b/c", "/a", "b"));
    assert_false(clave__path_is_child("/ab", "/a", "b"));
    assert_false(clave__path_is_child("", "/", "a"));
}
