/* slot_node.c - see slot_node.h. What must stay true: parsing a name gives back exactly the id that
 * the name was formatted from. */
#include "recipe/slots/slot_node.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/utf8.h"
#include "recipe/queue/identity.h"
#include "recipe/semaphore/shared_count.h"

enum { TOKEN_TEXT = 24 };

/* ---- the limit ------------------------------------------------------------------------------- */

/* Data of four printable characters is taken for text: nobody has that many slots. */
int64_t clave__slot_limit_parse(const void *data, size_t n)
{
    const uint8_t *p = data;
    size_t printable = 0;
    if (n != SHARED_COUNT_SIZE || p[0] > 0x7f)
        return CLAVE_SLOTS_LIMIT_BAD;
    for (size_t i = 0; i < n; i++)
        printable += p[i] >= ' ' && p[i] <= '~';
    return printable == n ? CLAVE_SLOTS_LIMIT_BAD : (int64_t)clave__shared_count_decode(p, n);
}

/* ---- names ----------------------------------------------------------------------------------- */

static const char prefix[] = "slot-";
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

void clave__slot_name_escape(char *out, const char *id)
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

void clave__slot_name_format(char out[SLOT_NAME_CAP], const char *id)
{
    memcpy(out, prefix, sizeof prefix - 1);
    clave__slot_name_escape(out + sizeof prefix - 1, id);
}

static int slot_name_digit(char ch)
{
    const char *at = ch ? strchr(slot_name_hex, ch) : NULL;
    return at ? (int)(at - slot_name_hex) : -1;
}

/* Decodes one character of an id that ends at `end`. NULL: this is not a name as we write them. */
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
    size_t n = 0;
    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return false;
    const char *end = name + strlen(name);
    for (const char *from = name + sizeof prefix - 1; from < end;) {
        from = n < CLAVE_SLOT_ID_MAX ? slot_name_next(from, end, &id[n++]) : NULL;
        if (!from)
            return false;
    }
    id[n] = '\0';
    return clave__slot_id_is_valid(id);
}

/* ---- data ------------------------------------------------------------------------------------ */

static size_t slot_data_write(const clave_slot *slot, char *out, size_t cap)
{
    char token[TOKEN_TEXT];
    snprintf(token, sizeof token, "%lld", (long long)slot->token);
    size_t n =
        clave_identity_format(&(clave_identity){.host = slot->host, .name = slot->id}, out, cap);
    n = clave__identity_put_field(out, n, cap, "by", slot->by);
    n = clave__identity_put_field(out, n, cap, "reason", slot->reason);
    return clave__identity_put_field(out, n, cap, "token", slot->token ? token : NULL);
}

char *clave__slot_data_format(const struct clave_mem *mem, const clave_slot *slot, size_t *n)
{
    *n = slot_data_write(slot, NULL, 0);
    char *data = clave__mem_alloc(mem, *n + 1);
    if (data)
        slot_data_write(slot, data, *n + 1);
    return data;
}

/* Copies a value as text to `at`. NULL: there is none, and `at` is unchanged. */
static const char *slot_data_take(const clave_result *res, const char *key, char **at)
{
    char *text = *at;
    if (!clave__identity_get_field(res->data, res->len, key, text, res->len + 1))
        return NULL;
    *at += strlen(text) + 1;
    return text;
}

static int64_t slot_data_token(const clave_result *res)
{
    char text[TOKEN_TEXT];
    bool there = clave__identity_get_field(res->data, res->len, "token", text, sizeof text);
    return there ? strtoll(text, NULL, 10) : 0;
}

static struct slot_copy *slot_copy_new(const struct clave_mem *mem, const clave_result *res,
                                       const char *below, char **at)
{
    enum { FIELDS = 4 };
    size_t npath = strlen(res->path), nbelow = below ? strlen(below) + 1 : 0;
    size_t cap = npath + nbelow + 1 + CLAVE_SLOT_ID_MAX + 1 + FIELDS * (res->len + 1);
    struct slot_copy *copy = clave__mem_zalloc(mem, sizeof *copy + cap);
    if (!copy)
        return NULL;
    char *to = copy->texts;
    copy->slot.node = to;
    memcpy(to, res->path, npath + 1);
    if (below) {
        to[npath] = '/';
        memcpy(to + npath + 1, below, nbelow);
    }
    *at = to + npath + nbelow + 1;
    return copy;
}

static void slot_copy_take_texts(struct slot_copy *copy, const clave_result *res, char *at)
{
    copy->slot.host = slot_data_take(res, "host", &at);
    copy->slot.by = slot_data_take(res, "by", &at);
    copy->slot.reason = slot_data_take(res, "reason", &at);
}

struct slot_copy *clave__slot_data_parse(const struct clave_mem *mem, const clave_result *res,
                                         const char *below)
{
    char *at;
    struct slot_copy *copy = slot_copy_new(mem, res, below, &at);
    if (!copy)
        return NULL;
    if (clave__slot_name_parse(clave__path_name(res->path), at)) {
        copy->slot.id = at;
        at += strlen(at) + 1;
    }
    copy->slot.token = res->stat->czxid;
    copy->slot.since = res->stat->ctime;
    slot_copy_take_texts(copy, res, at);
    return copy;
}

struct slot_copy *clave__slot_data_parse_record(const struct clave_mem *mem,
                                                const clave_result *res)
{
    char *at;
    struct slot_copy *copy = slot_copy_new(mem, res, NULL, &at);
    if (!copy)
        return NULL;
    copy->slot.id = slot_data_take(res, "name", &at);
    copy->slot.token = slot_data_token(res);
    copy->slot.since = res->stat->mtime;
    slot_copy_take_texts(copy, res, at);
    return copy;
}
