/* utf8.c - see utf8.h. Called by path.c, json_writer.c and whoever prints what others wrote. Every
 * overlong form is refused, so that no check for a character can be evaded by another spelling of
 * it. */
#include "base/utf8.h"

#include <stdbool.h>

/* By the first byte of a character; 0: none begins so. */
static size_t utf8_len_by(uint8_t lead)
{
    if (lead < 0x80)
        return 1;
    if ((lead & 0xe0) == 0xc0)
        return 2;
    if ((lead & 0xf0) == 0xe0)
        return 3;
    return (lead & 0xf8) == 0xf0 ? 4 : 0;
}

size_t clave__utf8_decode(const void *bytes, size_t n, uint32_t *out)
{
    const uint8_t *p = bytes;
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = utf8_len_by(p[0]);
    if (len == 0 || len > n)
        return 0;
    uint32_t c = len == 1 ? p[0] : p[0] & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = (c << 6) | (p[i] & 0x3fu);
    }
    if (c < least[len])
        return 0;
    *out = c;
    return len;
}

static size_t utf8_character(const void *p, size_t n, uint32_t *out)
{
    size_t len = clave__utf8_decode(p, n, out);
    return len > 0 && *out <= 0x10ffff && (*out < 0xd800 || *out > 0xdfff) ? len : 0;
}

size_t clave__utf8_len(const void *p, size_t n)
{
    uint32_t c;
    return utf8_character(p, n, &c);
}

/* The separators of lines and paragraphs, and the embeddings, overrides and isolates by which a
 * text shows itself, and what follows it, in another order: U+202E turns "gpj.exe" round. */
static bool utf8_reorders(uint32_t c)
{
    return (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

size_t clave__utf8_printable(const void *p, size_t n)
{
    uint32_t c;
    size_t len = utf8_character(p, n, &c);
    return len > 0 && c >= 0x20 && (c < 0x7f || c > 0x9f) && !utf8_reorders(c) ? len : 0;
}

size_t clave__utf8_whole(const void *p, size_t n)
{
    const uint8_t *at = p;
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        uint8_t byte = at[n - back];
        if (byte >= 0xc0)
            return clave__utf8_len(at + n - back, back) ? n : n - back;
        if (byte < 0x80)
            break;
    }
    return n;
}
