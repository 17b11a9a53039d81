/* json.c - json.h on top of base's JSON writer. Write errors are detected by finish_stdout, not
 * here. */
#include "cmd/cli/json.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/base64.h"
#include "base/utf8.h"

static bool json_is_utf8(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t len = clave__utf8_len(p + i, n - i);
        if (len == 0)
            return false;
        i += len;
    }
    return true;
}

static clave_err json_write_out(void *to, const void *p, size_t n)
{
    fwrite(p, 1, n, to); /* finish_stdout checks for errors at the end */
    return CLAVE_OK;
}

struct json json_to(FILE *out)
{
    return (struct json){.put = json_write_out, .to = out};
}

void json_begin(struct json *j, FILE *out)
{
    *j = json_to(out);
    clave__json_open(j, NULL, '{');
}

void json_end(struct json *j)
{
    clave__json_close(j, '}');
    fputc('\n', j->to);
    fflush(j->to);
}

void json_hex(struct json *j, const char *key, int64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "0x%" PRIx64, (uint64_t)n);
    clave__json_string(j, key, text);
}

/* Writes a value whose key has been written. */
static void json_put_base64(struct json *j, const unsigned char *p, size_t n)
{
    assert(!j->comma); /* the key has been written */
    char four[BASE64_LEN(3) + 1];
    j->put(j->to, "\"", 1);
    for (size_t i = 0; i < n; i += 3) {
        clave__base64(p + i, n - i < 3 ? n - i : 3, four);
        j->put(j->to, four, sizeof four - 1);
    }
    j->put(j->to, "\"", 1);
    j->comma = true;
}

void json_bytes(struct json *j, const char *key, const void *p, size_t n)
{
    char name[64];
    if (!p) {
        clave__json_string(j, key, NULL);
    } else if (json_is_utf8(p, n)) {
        clave__json_bytes(j, key, p, n);
    } else {
        snprintf(name, sizeof name, "%s_base64", key);
        clave__json_key(j, name, strlen(name));
        json_put_base64(j, p, n);
    }
}

void json_stat(struct json *j, const char *key, const clave_stat *st)
{
    clave__json_open(j, key, '{');
    json_hex(j, "czxid", st->czxid);
    json_hex(j, "mzxid", st->mzxid);
    json_hex(j, "pzxid", st->pzxid);
    clave__json_int(j, "ctime_ms", st->ctime);
    clave__json_int(j, "mtime_ms", st->mtime);
    clave__json_int(j, "version", st->version);
    clave__json_int(j, "cversion", st->cversion);
    clave__json_int(j, "aversion", st->aversion);
    json_hex(j, "ephemeral_owner", st->ephemeral_owner);
    clave__json_int(j, "data_length", st->data_length);
    clave__json_int(j, "num_children", st->num_children);
    clave__json_close(j, '}');
}
