/* ip_range.c - see ip_range.h. Called for access lists of the scheme ip, and for the addresses of
 * proxies. */
#include "base/ip_range.h"

#include <assert.h>
#include <string.h>

/* Reads a decimal number up to `max` at *p, before `end`. */
static bool ip_read_number(const char **p, const char *end, unsigned max, unsigned *out)
{
    const char *from = *p;
    unsigned v = 0;
    while (*p < end && **p >= '0' && **p <= '9' && *p - from < 4)
        v = v * 10 + (unsigned)(*(*p)++ - '0');
    *out = v;
    return *p > from && v <= max;
}

static bool ip_read_v4(const char **p, const char *end, uint8_t ip[16])
{
    unsigned v;
    for (int i = 0; i < 4; i++) {
        if (i > 0 && (*p == end || *(*p)++ != '.'))
            return false;
        if (!ip_read_number(p, end, 255, &v))
            return false;
        ip[i] = (uint8_t)v;
    }
    return true;
}

/* Up to four hexadecimal digits. */
static bool ip_read_group(const char **p, const char *end, uint8_t out[2])
{
    static const char digits[] = "0123456789abcdef";
    const char *from = *p;
    unsigned v = 0;
    for (; *p < end && *p - from < 4; ++*p) {
        char lower = **p >= 'A' && **p <= 'F' ? (char)(**p + 'a' - 'A') : **p;
        const char *at = lower ? strchr(digits, lower) : NULL;
        if (!at)
            break;
        v = v << 4 | (unsigned)(at - digits);
    }
    out[0] = (uint8_t)(v >> 8);
    out[1] = (uint8_t)v;
    return *p > from;
}

static bool ip_skip(const char **p, const char *end, const char *text)
{
    size_t n = strlen(text);
    if ((size_t)(end - *p) < n || memcmp(*p, text, n) != 0)
        return false;
    *p += n;
    return true;
}

/* Eight groups, or fewer around one "::". */
static bool ip_read_v6(const char **p, const char *end, uint8_t ip[16])
{
    enum { GROUPS = 8, NO_GAP = -1 };
    uint8_t groups[2 * GROUPS];
    int n = 0, gap = ip_skip(p, end, "::") ? 0 : NO_GAP;
    bool more = gap == NO_GAP || (*p < end && **p != '/');
    while (more) {
        if (n == GROUPS || !ip_read_group(p, end, groups + 2 * n++))
            return false;
        bool again = ip_skip(p, end, "::");
        if (again && gap != NO_GAP)
            return false;
        gap = again ? n : gap;
        more = again ? *p < end && **p != '/' : ip_skip(p, end, ":");
    }
    if (gap == NO_GAP ? n != GROUPS : n == GROUPS)
        return false;
    gap = gap == NO_GAP ? n : gap;
    memcpy(ip, groups, (size_t)gap * 2);
    memcpy(ip + 2 * (GROUPS - n + gap), groups + 2 * gap, (size_t)(n - gap) * 2);
    return true;
}

bool clave__ip_range_parse(struct ip_range *r, const char *text, size_t n)
{
    const char *p = text, *end = text + n;
    bool is_v6 = n > 0 && memchr(text, ':', n) != NULL;
    unsigned most = is_v6 ? 128 : 32;
    *r = (struct ip_range){.family = is_v6 ? 6 : 4, .bits = most};
    if (is_v6 ? !ip_read_v6(&p, end, r->ip) : !ip_read_v4(&p, end, r->ip))
        return false;
    return p == end || (*p++ == '/' && ip_read_number(&p, end, most, &r->bits) && p == end);
}

bool clave__ip_range_has(const struct ip_range *r, const struct ip_range *part)
{
    assert(r->bits <= (r->family == 6 ? 128 : 32));
    unsigned whole = r->bits / 8, rest = r->bits % 8;
    if (r->family != part->family || r->bits > part->bits || memcmp(r->ip, part->ip, whole) != 0)
        return false;
    return rest == 0 || (r->ip[whole] ^ part->ip[whole]) >> (8 - rest) == 0;
}
