/* slot_name.c - writes and reads the names of slots. Called by the folder and by src/observe.
 * Invariant: the id that is parsed from a name is the one that the name was formatted from. */
#include "recipe/slots/slot_name.h"

#include <string.h>

#include "base/utf8.h"

static const char slot_name_hex[] = "0123456789ABCDEF";

static bool slot_name_is_text(const char *text, size_t max)
{
    size_t n = strlen(text);
    size_t len = 1;
    for (size_t i = 0; i < n && len > 0; i += len)
        len = clave__utf8_printable(text + i, n - i);
    return n <= max && len > 0;
}

bool clave__slot_id_is_valid(const char *id)
{
    return id && *id && slot_name_is_text(id, CLAVE_SLOT_ID_MAX);
}

bool clave__slot_text_is_valid(const char *text)
{
    return !text || slot_name_is_text(text, CLAVE_SLOT_TEXT_MAX);
}

static bool slot_name_is_plain(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
           (ch && strchr("._~@:+-", ch));
}

void clave__slot_name_escape(char out[SLOT_NAME_CAP], const char *id)
{
    char *to = out;
    for (; *id; id++) {
        unsigned char ch = (unsigned char)*id;
        if (slot_name_is_plain(*id)) {
            *to++ = *id;
            continue;
        }
        *to++ = '%';
        *to++ = slot_name_hex[ch >> 4];
        *to++ = slot_name_hex[ch & 15];
    }
    *to = '\0';
}

void clave__slot_name_format(char out[SLOT_NAME_CAP], const char *id, const char *uuid)
{
    clave__slot_name_escape(out, id);
    char *to = out + strlen(out);
    *to++ = '-';
    memcpy(to, uuid, CLAVE_UUID_TEXT + 1);
}

static int slot_name_digit(char ch)
{
    const char *at = ch ? strchr(slot_name_hex, ch) : NULL;
    return at ? (int)(at - slot_name_hex) : -1;
}

/* One character of an id, which ends at `end`; NULL: the name is not one that we make. */
static const char *slot_name_next(const char *from, const char *end, char *out)
{
    if (slot_name_is_plain(*from)) {
        *out = *from;
        return from + 1;
    }
    int high = *from == '%' && end - from > 2 ? slot_name_digit(from[1]) : -1;
    int low = high >= 0 ? slot_name_digit(from[2]) : -1;
    if (low < 0)
        return NULL;
    *out = (char)(high << 4 | low);
    return slot_name_is_plain(*out) ? NULL : from + 3;
}

bool clave__slot_name_parse(const char *name, char id[CLAVE_SLOT_ID_MAX + 1])
{
    size_t len = strlen(name);
    if (len < CLAVE_UUID_TEXT + 2 || len >= SLOT_NAME_CAP)
        return false;
    const char *end = name + len - CLAVE_UUID_TEXT - 1;
    if (*end != '-' || strspn(end + 1, "0123456789abcdef-") != CLAVE_UUID_TEXT)
        return false;
    size_t n = 0;
    for (const char *from = name; from && from < end && n < CLAVE_SLOT_ID_MAX;) {
        from = slot_name_next(from, end, &id[n++]);
        if (!from)
            return false;
        if (from == end) {
            id[n] = '\0';
            return clave__slot_id_is_valid(id);
        }
    }
    return false;
}
