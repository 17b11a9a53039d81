/* json_writer.c - the JSON writer of json_writer.h, for the program's --json output and the
 * server's admin lists. The first error sticks: after it every call does nothing. */
#include "base/json_writer.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* ---- characters ------------------------------------------------------------------------------ */

size_t clave__json_escape(const void *bytes, size_t n, char out[JSON_ESCAPE_CAP], size_t *taken)
{
    const unsigned char *p = bytes;
    size_t len = clave__utf8_len(p, n);
    *taken = len > 0 ? len : 1;
    if (len == 0)
        return (size_t)snprintf(out, JSON_ESCAPE_CAP, "\\ufffd");
    if (*p == '"' || *p == '\\')
        return (size_t)snprintf(out, JSON_ESCAPE_CAP, "\\%c", *p);
    if (*p == '\n')
        return (size_t)snprintf(out, JSON_ESCAPE_CAP, "\\n");
    if (*p < 0x20 || *p == 0x7f)
        return (size_t)snprintf(out, JSON_ESCAPE_CAP, "\\u%04x", *p);
    memcpy(out, p, len);
    return len;
}

enum { JSON_DIGITS = 24 };

/* Returns where the number begins: snprintf takes ten times as long. */
static const char *json_writer_digits(int64_t n, char room[JSON_DIGITS])
{
    uint64_t rest = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    char *at = room + JSON_DIGITS - 1;
    *at = '\0';
    do
        *--at = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (n < 0)
        *--at = '-';
    return at;
}

/* ---- values ---------------------------------------------------------------------------------- */

static clave_err json_writer_append(void *to, const void *p, size_t n)
{
    return clave__buf_append(to, p, n);
}

struct json clave__json_to(struct buf *out)
{
    return (struct json){.put = json_writer_append, .to = out};
}

static void json_writer_put(struct json *j, const void *p, size_t n)
{
    if (j->err == CLAVE_OK)
        j->err = j->put(j->to, p, n);
}

static void json_writer_put_text(struct json *j, const char *text)
{
    json_writer_put(j, text, strlen(text));
}

/* How many characters the text begins with that stand for themselves: printable ASCII, but for the
 * quotation mark and the backslash. */
static size_t json_writer_plain(const unsigned char *p, size_t n)
{
    size_t i = 0;
    while (i < n && p[i] >= 0x20 && p[i] < 0x7f && p[i] != '"' && p[i] != '\\')
        i++;
    return i;
}

static void json_writer_put_string(struct json *j, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    char piece[JSON_ESCAPE_CAP];
    size_t taken;
    json_writer_put_text(j, "\"");
    for (size_t i = 0; i < n && j->err == CLAVE_OK; i += taken) {
        taken = json_writer_plain(p + i, n - i);
        if (taken > 0)
            json_writer_put(j, p + i, taken);
        else
            json_writer_put(j, piece, clave__json_escape(p + i, n - i, piece, &taken));
    }
    json_writer_put_text(j, "\"");
}

static void json_writer_begin(struct json *j, const char *key)
{
    if (key)
        clave__json_key(j, key, strlen(key));
    else if (j->comma)
        json_writer_put_text(j, ", ");
    j->comma = true;
}

void clave__json_key(struct json *j, const void *p, size_t n)
{
    if (j->comma)
        json_writer_put_text(j, ", ");
    json_writer_put_string(j, p, n);
    json_writer_put_text(j, ": ");
    j->comma = false; /* its value follows */
}

void clave__json_int_key(struct json *j, int64_t n)
{
    char room[JSON_DIGITS];
    const char *digits = json_writer_digits(n, room);
    clave__json_key(j, digits, strlen(digits));
}

void clave__json_open(struct json *j, const char *key, char bracket)
{
    assert(bracket == '{' || bracket == '[');
    json_writer_begin(j, key);
    json_writer_put(j, &bracket, 1);
    j->comma = false;
}

void clave__json_close(struct json *j, char bracket)
{
    assert(bracket == '}' || bracket == ']');
    json_writer_put(j, &bracket, 1);
    j->comma = true;
}

void clave__json_bytes(struct json *j, const char *key, const void *p, size_t n)
{
    json_writer_begin(j, key);
    json_writer_put_string(j, p, n);
}

void clave__json_number(struct json *j, const char *key, const char *digits)
{
    json_writer_begin(j, key);
    json_writer_put_text(j, digits);
}

void clave__json_string(struct json *j, const char *key, const char *text)
{
    if (text)
        clave__json_bytes(j, key, text, strlen(text));
    else
        clave__json_number(j, key, "null");
}

void clave__json_int(struct json *j, const char *key, int64_t n)
{
    char room[JSON_DIGITS];
    clave__json_number(j, key, json_writer_digits(n, room));
}

void clave__json_int64(struct json *j, const char *key, int64_t n)
{
    char room[JSON_DIGITS];
    clave__json_string(j, key, json_writer_digits(n, room));
}

void clave__json_bool(struct json *j, const char *key, bool b)
{
    clave__json_number(j, key, b ? "true" : "false");
}
