/* format.c - see format.h. */
#include "cmd/cli/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/utf8.h"

const char *time_text(int64_t ms, char buf[TIME_TEXT_CAP])
{
    char day[32];
    time_t s = (time_t)(ms / 1000);
    struct tm tm;
    if (ms < 0 || !gmtime_r(&s, &tm) || strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        snprintf(buf, TIME_TEXT_CAP, "%" PRId64 "ms", ms);
    else
        snprintf(buf, TIME_TEXT_CAP, "%s.%03dZ", day, (int)(ms % 1000));
    return buf;
}

const char *age_format(int64_t ms, char out[AGE_CAP])
{
    long long s = ms > 0 ? ms / 1000 : 0;
    if (s == 0)
        snprintf(out, AGE_CAP, "%dms", ms > 0 ? (int)ms : 0);
    else if (s < 60)
        snprintf(out, AGE_CAP, "%llds", s);
    else if (s < 3600)
        snprintf(out, AGE_CAP, "%lldm%02llds", s / 60, s % 60);
    else if (s < 86400)
        snprintf(out, AGE_CAP, "%lldh%02lldm", s / 3600, s / 60 % 60);
    else
        snprintf(out, AGE_CAP, "%lldd%02lldh", s / 86400, s / 3600 % 24);
    return out;
}

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

void format_name(FILE *out, const char *name)
{
    if (isatty(fileno(out)))
        format_text(out, name);
    else
        fputs(name, out);
}

void format_text(FILE *out, const char *text)
{
    while (*text) {
        size_t n = clave__utf8_printable(text, strnlen(text, 4));
        fwrite(n > 0 ? text : "?", 1, n > 0 ? n : 1, out);
        text += n > 0 ? n : 1;
        while (n == 0 && (*text & 0xc0) == 0x80) /* the rest of the same character */
            text++;
    }
}
