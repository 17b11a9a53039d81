#include "cmd/json.h"

#include <inttypes.h>

#include "base/json.h"

static bool is_utf8(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t len = clave__utf8_len(p + i, n - i);
        if (len == 0)
            return false;
        i += len;
    }
    return true;
}

/* A string without its quotes; a byte that is no UTF-8 becomes U+FFFD. */
static void put_string(FILE *out, const unsigned char *p, size_t n)
{
    char piece[JSON_ESCAPE_CAP];
    size_t taken;
    for (size_t i = 0; i < n; i += taken) {
        size_t len = clave__json_escape(p + i, n - i, piece, &taken);
        fwrite(piece, 1, len, out);
    }
}

static void put_base64(FILE *out, const unsigned char *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)p[i] << 16;
        if (i + 1 < n)
            v |= (uint32_t)p[i + 1] << 8;
        if (i + 2 < n)
            v |= p[i + 2];
        fputc(digits[v >> 18], out);
        fputc(digits[v >> 12 & 63], out);
        fputc(i + 1 < n ? digits[v >> 6 & 63] : '=', out);
        fputc(i + 2 < n ? digits[v & 63] : '=', out);
    }
}

static void put_key(struct json *j, const char *key)
{
    if (j->comma)
        fputs(", ", j->out);
    if (key)
        fprintf(j->out, "\"%s\": ", key);
    j->comma = true;
}

void json_begin(struct json *j, FILE *out)
{
    *j = (struct json){.out = out};
    fputc('{', out);
}

void json_end(struct json *j)
{
    fputs("}\n", j->out);
    fflush(j->out);
}

void json_open(struct json *j, const char *key, char bracket)
{
    put_key(j, key);
    fputc(bracket, j->out);
    j->comma = false;
}

void json_close(struct json *j, char bracket)
{
    fputc(bracket, j->out);
    j->comma = true;
}

void json_text(struct json *j, const char *key, const char *text)
{
    put_key(j, key);
    if (!text) {
        fputs("null", j->out);
        return;
    }
    size_t n = 0;
    while (text[n] != '\0')
        n++;
    fputc('"', j->out);
    put_string(j->out, (const unsigned char *)text, n);
    fputc('"', j->out);
}

void json_int(struct json *j, const char *key, int64_t n)
{
    put_key(j, key);
    fprintf(j->out, "%" PRId64, n);
}

void json_hex(struct json *j, const char *key, int64_t n)
{
    put_key(j, key);
    fprintf(j->out, "\"0x%" PRIx64 "\"", (uint64_t)n);
}

void json_bool(struct json *j, const char *key, bool b)
{
    put_key(j, key);
    fputs(b ? "true" : "false", j->out);
}

void json_bytes(struct json *j, const char *key, const void *p, size_t n)
{
    bool text = !p || is_utf8(p, n);
    if (text) {
        put_key(j, key);
    } else {
        put_key(j, NULL);
        fprintf(j->out, "\"%s_base64\": ", key);
    }
    if (!p) {
        fputs("null", j->out);
        return;
    }
    fputc('"', j->out);
    if (text)
        put_string(j->out, p, n);
    else
        put_base64(j->out, p, n);
    fputc('"', j->out);
}

void json_stat(struct json *j, const char *key, const clave_stat *st)
{
    json_open(j, key, '{');
    json_hex(j, "czxid", st->czxid);
    json_hex(j, "mzxid", st->mzxid);
    json_hex(j, "pzxid", st->pzxid);
    json_int(j, "ctime_ms", st->ctime);
    json_int(j, "mtime_ms", st->mtime);
    json_int(j, "version", st->version);
    json_int(j, "cversion", st->cversion);
    json_int(j, "aversion", st->aversion);
    json_hex(j, "ephemeral_owner", st->ephemeral_owner);
    json_int(j, "data_length", st->data_length);
    json_int(j, "num_children", st->num_children);
    json_close(j, '}');
}
