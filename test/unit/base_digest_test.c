/* base_digest_test.c - SHA-1 and base64 against the vectors of their standards. */
#include "base/base64.h"
#include "base/hash/sha1.h"
#include "lib/unit.h"

static const char *hex_of(const void *p, size_t n)
{
    static char hex[2 * SHA1_LEN + 1];
    uint8_t sum[SHA1_LEN];
    clave__sha1(p, n, sum);
    for (size_t i = 0; i < SHA1_LEN; i++)
        snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    return hex;
}

/* FIPS 180's own, and lengths around the ends of a block. */
TEST(sha1)
{
    static const struct {
        size_t n; /* of the bytes 0, 7, 14, ... */
        const char *hex;
    } cases[] = {
        {0, "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
        {1, "5ba93c9db0cff93f52b521d7420e43f6eda2784f"},
        {55, "aecd1643c9903b9bae8cb94f53c50f8a4e18605b"},
        {56, "f5d65c621c02cc8e785159feff8088e3072da1bc"},
        {63, "4952f0fe097e4d6410ae9eab4855aa836caf3bff"},
        {64, "1e17ae1fc093e5daca033553c97a5192ca164486"},
        {65, "ac44f5dbe3e9b5d2733fc9537fcad715c3c20bc3"},
        {119, "b4a4e69060d0b1e7e8ebbf7041a4211c63438b57"},
        {120, "b651390c2996406336a3f6647e4b590c18cdd6f8"},
        {1000, "38f3aa587f4aa04965a359f9151092759b3a4c2a"},
    };
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    static char million[1000000];
    assert_string_equal(hex_of("abc", 3), "a9993e364706816aba3e25717850c26c9cd0d89d");
    assert_string_equal(hex_of(two_blocks, 56), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    memset(million, 'a', sizeof million);
    assert_string_equal(hex_of(million, sizeof million),
                        "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t *bytes = malloc(cases[i].n ? cases[i].n : 1);
        assert_non_null(bytes);
        for (size_t k = 0; k < cases[i].n; k++)
            bytes[k] = (uint8_t)(k * 7);
        assert_string_equal(hex_of(bytes, cases[i].n), cases[i].hex);
        free(bytes);
    }
}

/* RFC 4648, 10. */
TEST(base64)
{
    static const struct {
        const char *plain, *text;
    } cases[] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
        {"\xfb\xff\xbf", "+/+/"},
        {"\xff\xff\xff", "////"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = strlen(cases[i].plain);
        char *out = malloc(BASE64_LEN(n) + 1);
        assert_non_null(out);
        clave__base64(cases[i].plain, n, out);
        assert_string_equal(out, cases[i].text);
        assert_int_equal(strlen(out), BASE64_LEN(n));
        free(out);
    }
}

/* ZooKeeper's digest of "super:test", as in everybody's configuration. */
TEST(together)
{
    uint8_t sum[SHA1_LEN];
    char text[BASE64_LEN(SHA1_LEN) + 1];
    clave__sha1("super:test", 10, sum);
    clave__base64(sum, sizeof sum, text);
    assert_string_equal(text, "D/InIHSb7yEEbrWz8b9l71RjZJU=");
}

TEST(base64_is_decoded_as_it_was_encoded)
{
    static const char *const bad[] = {"A",    "AA",   "AAA",   "AA=A", "A===", "====",
                                      "AB==", "AAB=", "AA\n=", "AAA*", "=AAA", "AA==AAAA"};
    static const char *const bad_in_urls[] = {"A", "AAAAA", "AA==", "AB", "AAB", "A+AA", "A/AA"};
    char text[64], bytes[64], out[64];
    size_t n;
    for (size_t len = 0; len < 40; len++) {
        for (size_t i = 0; i < len; i++)
            bytes[i] = (char)(len * 37 + i * 101);
        clave__base64(bytes, len, text);
        assert_true(clave__base64_decode(text, strlen(text), out, &n));
        assert_int_equal(n, len);
        assert_memory_equal(out, bytes, len);
        clave__base64url(bytes, len, text);
        assert_null(strpbrk(text, "+/="));
        assert_true(clave__base64url_decode(text, strlen(text), out, &n));
        assert_int_equal(n, len);
        assert_memory_equal(out, bytes, len);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(clave__base64_decode(bad[i], strlen(bad[i]), out, &n));
    for (size_t i = 0; i < sizeof bad_in_urls / sizeof *bad_in_urls; i++)
        assert_false(clave__base64url_decode(bad_in_urls[i], strlen(bad_in_urls[i]), out, &n));
}
