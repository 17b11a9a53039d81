/* java_properties.c - java.util.Properties.load (see java_properties.h). zoocfg.c calls it. It
 * works in place, since decoding never makes the text longer. */
#include "cmd/serve/java_properties.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static bool java_properties_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\f';
}

static bool java_properties_is_end(char c)
{
    return c == '\n' || c == '\r' || c == '\0';
}

struct reader {
    char *at;
    unsigned line;
};

static void java_properties_skip_blanks(struct reader *r)
{
    while (java_properties_is_blank(*r->at))
        r->at++;
}

static void java_properties_skip_end(struct reader *r)
{
    if (r->at[0] == '\r' && r->at[1] == '\n')
        r->at++;
    if (*r->at != '\0')
        r->at++;
    r->line++;
}

/* Writes one UTF-16 code unit as UTF-8: at most three bytes, in place of the six bytes of the
 * escape. */
static char *java_properties_put_unit(char *out, unsigned unit)
{
    if (unit < 0x80) {
        *out++ = (char)unit;
    } else if (unit < 0x800) {
        *out++ = (char)(0xc0 | unit >> 6);
        *out++ = (char)(0x80 | (unit & 0x3f));
    } else {
        *out++ = (char)(0xe0 | unit >> 12);
        *out++ = (char)(0x80 | (unit >> 6 & 0x3f));
        *out++ = (char)(0x80 | (unit & 0x3f));
    }
    return out;
}

/* Decodes what follows a backslash. NULL: a malformed \uXXXX. */
static char *java_properties_unescape(struct reader *r, char *out)
{
    static const char from[] = "tnrf", to[] = "\t\n\r\f";
    char digits[5] = "";
    char c = *r->at;
    if (c == '\0')
        return out;
    if (java_properties_is_end(
            c)) { /* a backslash at the end of the line: the next line continues this one */
        java_properties_skip_end(r);
        java_properties_skip_blanks(r);
        return out;
    }
    r->at++;
    if (c != 'u') {
        const char *known = strchr(from, c);
        *out++ = known ? to[known - from] : c;
        return out;
    }
    strncpy(digits, r->at, 4);
    if (strspn(digits, "0123456789abcdefABCDEF") != 4)
        return NULL;
    r->at += 4;
    return java_properties_put_unit(out, (unsigned)strtoul(digits, NULL, 16));
}

/* Reads to the end of the logical line or, with `key`, to the end of the key. Returns the end of
 * what was read, where the caller puts the terminating zero; NULL: a malformed \uXXXX. */
static char *java_properties_read_part(struct reader *r, char *out, bool key)
{
    while (out && !java_properties_is_end(*r->at)) {
        char c = *r->at;
        if (key && (java_properties_is_blank(c) || c == '=' || c == ':'))
            break;
        r->at++;
        if (c == '\\')
            out = java_properties_unescape(r, out);
        else
            *out++ = c;
    }
    return out;
}

static char *java_properties_trim(char *from, char *to)
{
    while (from < to && (unsigned char)*from <= ' ')
        from++;
    while (to > from && (unsigned char)to[-1] <= ' ')
        to--;
    *to = '\0';
    return from;
}

bool java_properties_each(char *text,
                          bool (*take)(void *arg, unsigned line, const char *key,
                                       const char *value),
                          void *arg, unsigned *bad_line)
{
    struct reader r = {text, 1};
    *bad_line = 0;
    while (*r.at != '\0') {
        java_properties_skip_blanks(&r);
        unsigned line = r.line;
        if (*r.at == '#' || *r.at == '!')
            r.at += strcspn(r.at, "\r\n");
        if (java_properties_is_end(*r.at)) {
            java_properties_skip_end(&r);
            continue;
        }
        char *key = r.at, *key_end = java_properties_read_part(&r, key, true);
        java_properties_skip_blanks(&r);
        if (key_end && (*r.at == '=' || *r.at == ':'))
            r.at++;
        java_properties_skip_blanks(&r);
        char *value = r.at,
             *value_end = key_end ? java_properties_read_part(&r, value, false) : NULL;
        if (!value_end) {
            *bad_line = line;
            return false;
        }
        if (*r.at != '\0')
            java_properties_skip_end(&r); /* before the terminating zero overwrites it */
        *key_end = '\0';
        value = java_properties_trim(value, value_end);
        if (!take(arg, line, key, value))
            return false;
    }
    return true;
}
