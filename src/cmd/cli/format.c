/* format.c - see format.h. */
#include "cmd/cli/format.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"
#include "cmd/cli/participant_text.h"
#include "runtime/clock.h"

void format_stat(FILE *out, const clave_stat *st)
{
    char created[TIME_TEXT_CAP], modified[TIME_TEXT_CAP];
    fprintf(out,
            "czxid 0x%" PRIx64 "\nmzxid 0x%" PRIx64 "\npzxid 0x%" PRIx64 "\nctime %s\nmtime %s\n",
            (uint64_t)st->czxid, (uint64_t)st->mzxid, (uint64_t)st->pzxid,
            time_text(st->ctime, created), time_text(st->mtime, modified));
    fprintf(out,
            "version %d\ncversion %d\naversion %d\nephemeral-owner 0x%" PRIx64
            "\ndata-length %d\nnum-children %d\n",
            (int)st->version, (int)st->cversion, (int)st->aversion, (uint64_t)st->ephemeral_owner,
            (int)st->data_length, (int)st->num_children);
}

const char *format_kind(const clave_stat *st)
{
    return st->ephemeral_owner == 0 ? "persistent" : "ephemeral";
}

void format_bytes(FILE *out, const void *p, size_t n)
{
    const unsigned char *c = p;
    for (size_t i = 0; i < n; i++) {
        if (c[i] == '\\')
            fputs("\\\\", out);
        else if (c[i] == '\n')
            fputs("\\n", out);
        else if (c[i] == '\t')
            fputs("\\t", out);
        else if (c[i] < 0x20 || c[i] >= 0x7f)
            fprintf(out, "\\x%02x", c[i]);
        else
            fputc(c[i], out);
    }
}

void format_text(FILE *out, const char *text)
{
    while (*text) {
        size_t n = clave__utf8_printable(text, strnlen(text, 4));
        fwrite(n > 0 ? text : "?", 1, n > 0 ? n : 1, out);
        text += n > 0 ? n : 1;
    }
}

static void format_show_known(struct json *j, const char *key, bool known, int64_t n)
{
    if (known)
        clave__json_int(j, key, n);
    else
        clave__json_string(j, key, NULL);
}

void format_place(struct json *j, const char *node, const clave_stat *st)
{
    bool known = participant_text_is_known(st);
    format_show_known(j, "token", known, st->czxid);
    clave__json_string(j, "node", node);
    if (known)
        json_hex(j, "session", st->ephemeral_owner);
    else
        clave__json_string(j, "session", NULL);
    format_show_known(j, "since_ms", known, st->ctime);
}

void format_age(struct json *j, const clave_stat *st)
{
    format_show_known(j, "age_ms", participant_text_is_known(st), clave__clock_wall() - st->ctime);
}

void format_identity(struct json *j, const clave_identity *id)
{
    clave__json_string(j, "host", id->host);
    clave__json_int(j, "pid", id->pid);
    clave__json_string(j, "name", id->name);
    clave__json_string(j, "command", id->command);
    clave__json_string(j, "text", id->text);
    clave__json_string(j, "traceparent", id->traceparent);
}

void format_revocable(struct json *j, const clave_identity *id)
{
    if (id->revocable)
        clave__json_bool(j, "revocable", id->revocable > 0);
    else
        clave__json_string(j, "revocable", NULL);
}
