/* identity.c - writes and reads what lock nodes say about their owners. What must stay true: only
 * data in clave's form is split into fields; any other printable data is text. */
#include "recipe/queue/identity.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

static const char form[] = "clave/1\n";
static const char hex[] = "0123456789ABCDEF";

/* "VV-TRACE-SPAN-FF" in lower-case hexadecimal digits; versions after 00 may append more. */
bool clave__identity_is_traceparent(const char *text)
{
    enum { LEN = 55, MOST = 128 };
    static const char shape[] = "xx-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
    size_t n = strlen(text);
    if (n < LEN || n > MOST || strspn(text, "0123456789abcdef-") < n)
        return false;
    for (size_t i = 0; i < LEN; i++)
        if ((text[i] == '-') != (shape[i] == '-'))
            return false;
    bool ends = n == LEN || (text[LEN] == '-' && strncmp(text, "00", 2) != 0);
    bool has_trace = strspn(text + 3, "0") < 32;
    return ends && has_trace && strncmp(text, "ff", 2) != 0;
}

/* ---- format ---------------------------------------------------------------------------- */

/* Counts everything that is written to it, and keeps what fits. */
struct sink {
    char *out;
    size_t cap;
    size_t len;
};

static void identity_put(struct sink *s, char ch)
{
    if (s->len + 1 < s->cap)
        s->out[s->len] = ch;
    s->len++;
}

static void identity_put_text(struct sink *s, const char *text)
{
    for (; *text; text++)
        identity_put(s, *text);
}

static void identity_put_escaped(struct sink *s, const char *text)
{
    for (; *text; text++) {
        unsigned char ch = (unsigned char)*text;
        if (ch >= 0x20 && ch != 0x7f && ch != '%') {
            identity_put(s, *text);
            continue;
        }
        identity_put(s, '%');
        identity_put(s, hex[ch >> 4]);
        identity_put(s, hex[ch & 15]);
    }
}

static void identity_put_field(struct sink *s, const char *key, const char *value)
{
    if (!value)
        return;
    identity_put_text(s, key);
    identity_put(s, '=');
    identity_put_escaped(s, value);
    identity_put(s, '\n');
}

/* Fields that can be long come last, because readers may cut the data. */
static void identity_put_fields(struct sink *s, const clave_identity *id)
{
    char pid[24], limit[24];
    snprintf(pid, sizeof pid, "%lld", (long long)id->pid);
    snprintf(limit, sizeof limit, "%lu", (unsigned long)id->limit);
    identity_put_field(s, "owner", id->owner);
    identity_put_field(s, "task", id->task);
    identity_put_field(s, "limit", id->limit ? limit : NULL);
    identity_put_field(s, "yields", id->yields ? "1" : NULL);
    if (id->revocable)
        identity_put_field(s, "revocable", id->revocable > 0 ? "1" : "0");
    identity_put_field(s, "asked", id->asked ? "1" : NULL);
    identity_put_field(s, "host", id->host);
    identity_put_field(s, "pid", id->pid ? pid : NULL);
    if (id->traceparent && clave__identity_is_traceparent(id->traceparent))
        identity_put_field(s, "traceparent", id->traceparent);
    identity_put_field(s, "name", id->name);
    identity_put_field(s, "command", id->command);
    identity_put_field(s, "text", id->text);
}

static void identity_finish(struct sink *s)
{
    if (s->cap)
        s->out[s->len < s->cap ? s->len : s->cap - 1] = '\0';
}

size_t clave_identity_format(const clave_identity *id, char *out, size_t cap)
{
    struct sink s = {out, cap, 0};
    identity_put_text(&s, form);
    identity_put_fields(&s, id);
    identity_finish(&s);
    return s.len;
}

bool clave__identity_is_form(const void *data, size_t n)
{
    return n >= sizeof form - 1 && memcmp(data, form, sizeof form - 1) == 0;
}

bool clave__identity_is_request(const void *data, size_t n)
{
    return n == sizeof CLAVE_REVOKE_WORD - 1 && memcmp(data, CLAVE_REVOKE_WORD, n) == 0;
}

char *clave__identity_extend(const struct clave_mem *mem, const void *data, size_t n,
                             const clave_identity *more, size_t *out)
{
    struct sink s = {NULL, 0, 0};
    identity_put_fields(&s, more);
    s.cap = (n > 0 ? n : sizeof form) + 1 + s.len + 1;
    s.out = clave__mem_alloc(mem, s.cap);
    s.len = n;
    if (!s.out)
        return NULL;
    if (n == 0)
        identity_put_text(&s, form);
    else
        memcpy(s.out, data, n);
    if (s.out[s.len - 1] != '\n')
        identity_put(&s, '\n');
    identity_put_fields(&s, more);
    identity_finish(&s);
    *out = s.len;
    return s.out;
}

/* ---- parse ----------------------------------------------------------------------------- */

static int identity_hex_value(char ch)
{
    const char *at = ch ? strchr(hex, ch) : NULL;
    return at ? (int)(at - hex) : -1;
}

/* Decodes in place; a % that does not begin an escape is kept. */
static void identity_unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        int high = *from == '%' ? identity_hex_value(from[1]) : -1;
        int low = high >= 0 ? identity_hex_value(from[2]) : -1;
        if (low < 0) {
            *to++ = *from;
            continue;
        }
        *to++ = (char)(high << 4 | low);
        from += 2;
    }
    *to = '\0';
}

int64_t clave__identity_number(const char *text)
{
    int64_t n = 0;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || n > (INT64_MAX - 9) / 10)
            return 0;
        n = n * 10 + (*text - '0');
    }
    return n;
}

/* Ignores unknown keys, which a later version may write. */
static void identity_take_field(clave_identity *out, const char *key, char *value)
{
    identity_unescape(value);
    if (strcmp(key, "host") == 0)
        out->host = value;
    else if (strcmp(key, "pid") == 0)
        out->pid = clave__identity_number(value);
    else if (strcmp(key, "name") == 0)
        out->name = value;
    else if (strcmp(key, "command") == 0)
        out->command = value;
    else if (strcmp(key, "text") == 0)
        out->text = value;
    else if (strcmp(key, "traceparent") == 0)
        out->traceparent = clave__identity_is_traceparent(value) ? value : NULL;
    else if (strcmp(key, "owner") == 0)
        out->owner = value;
    else if (strcmp(key, "task") == 0)
        out->task = value;
    else if (strcmp(key, "limit") == 0)
        out->limit = clave__identity_number(value) <= INT32_MAX
                         ? (uint32_t)clave__identity_number(value)
                         : 0;
    else if (strcmp(key, "yields") == 0)
        out->yields = strcmp(value, "1") == 0;
    else if (strcmp(key, "revocable") == 0)
        out->revocable = (int8_t)((strcmp(value, "1") == 0) - (strcmp(value, "0") == 0));
    else if (strcmp(key, "asked") == 0)
        out->asked = strcmp(value, "1") == 0;
}

static void identity_take_line(clave_identity *out, char *line)
{
    char *equals = strchr(line, '=');
    if (!equals)
        return;
    *equals = '\0';
    identity_take_field(out, line, equals + 1);
}

static bool identity_is_printable(const char *data, size_t n)
{
    size_t len = 1;
    for (size_t i = 0; i < n && len > 0; i += len)
        len = clave__utf8_printable(data + i, n - i);
    return n > 0 && len > 0;
}

void clave__identity_parse(char *data, size_t n, clave_identity *out)
{
    *out = (clave_identity){0};
    size_t nform = sizeof form - 1;
    if (!clave__identity_is_form(data, n)) {
        out->asked = clave__identity_is_request(data, n);
        if (!out->asked && identity_is_printable(data, n))
            out->text = data;
        return;
    }
    if (memchr(data, '\0', n))
        return;
    for (char *line = data + nform; *line;) {
        size_t len = strcspn(line, "\n");
        char *next = line[len] ? line + len + 1 : line + len;
        line[len] = '\0';
        identity_take_line(out, line);
        line = next;
    }
}

/* ---- fields of some recipes ------------------------------------------------------------- */

size_t clave__identity_put_field(char *data, size_t n, size_t cap, const char *key,
                                 const char *value)
{
    struct sink s = {data, cap, n};
    identity_put_field(&s, key, value);
    identity_finish(&s);
    return s.len;
}

const char *clave__identity_find_value(const char *data, const char *end, const char *key)
{
    size_t n = strlen(key);
    for (const char *line = data; line && line < end;) {
        if ((size_t)(end - line) > n && memcmp(line, key, n) == 0 && line[n] == '=')
            return line + n + 1;
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        line = newline ? newline + 1 : NULL;
    }
    return NULL;
}

bool clave__identity_get_field(const void *data, size_t n, const char *key, char *out, size_t cap)
{
    out[0] = '\0';
    if (!clave__identity_is_form(data, n) || memchr(data, '\0', n))
        return false;
    const char *end = (const char *)data + n;
    const char *at = clave__identity_find_value(data, end, key);
    if (!at)
        return false;
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    size_t len = (size_t)((newline ? newline : end) - at);
    len = len < cap ? len : cap - 1;
    memcpy(out, at, len);
    out[len] = '\0';
    identity_unescape(out);
    return true;
}

/* ---- the time of the grant ------------------------------------------------------------------- */

int64_t clave__identity_granted(const void *data, size_t n, const clave_stat *stat, bool *promised)
{
    char text[24];
    *promised = false;
    if (clave__identity_get_field(data, n, CLAVE_GRANTED_AT, text, sizeof text))
        return clave__identity_number(text);
    clave__identity_get_field(data, n, "asked", text, sizeof text);
    if (strcmp(text, "1") == 0) /* the newest write was that request */
        return -1;
    clave__identity_get_field(data, n, "granted", text, sizeof text);
    if (strcmp(text, "mtime") == 0)
        return stat->mtime;
    *promised = strcmp(text, "ctime") == 0;
    return *promised ? stat->ctime : -1;
}

/* ---- writing again ----------------------------------------------------------------------------
 */

/* True if clave_identity_format writes this field, or the line tells the time of the grant. */
static bool identity_has_place(const char *line, size_t len, bool granted)
{
    static const char *const keys[] = {"owner",       "task",  "limit",   "yields",
                                       "revocable",   "asked", "host",    "pid",
                                       "traceparent", "name",  "command", "text"};
    static const char *const times[] = {"granted", CLAVE_GRANTED_AT};
    bool has = false;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        has |= clave__identity_find_value(line, line + len, keys[i]) == line + strlen(keys[i]) + 1;
    for (size_t i = 0; granted && i < sizeof times / sizeof *times; i++)
        has |=
            clave__identity_find_value(line, line + len, times[i]) == line + strlen(times[i]) + 1;
    return has;
}

char *clave__identity_rewrite(const struct clave_mem *mem, const clave_identity *id,
                              const void *base, size_t n, const clave_stat *stat, size_t *out)
{
    bool promised, form_too = clave__identity_is_form(base, n) && !memchr(base, '\0', n);
    int64_t granted = clave__identity_granted(base, n, stat, &promised);
    const char *end = (const char *)base + n, *line = form_too ? (const char *)base : end;
    char none[1], digits[24];
    size_t cap =
        clave_identity_format(id, none, 0) + n + sizeof CLAVE_GRANTED_AT + sizeof digits + 2;
    struct sink s = {clave__mem_alloc(mem, cap), cap, 0};
    if (!s.out)
        return NULL;
    identity_put_text(&s, form);
    if (granted >= 0 && !promised) {
        snprintf(digits, sizeof digits, "%lld", (long long)granted);
        identity_put_field(&s, CLAVE_GRANTED_AT, digits);
    }
    for (line += form_too ? sizeof form - 1 : 0; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        size_t len = (size_t)((newline ? newline : end) - line);
        if (!identity_has_place(line, len, granted >= 0 && !promised)) {
            memcpy(s.out + s.len, line, len);
            s.len += len;
            identity_put(&s, '\n');
        }
        line += len + (newline != NULL);
    }
    identity_put_fields(&s, id);
    identity_finish(&s);
    *out = s.len;
    return s.out;
}

/* ---- fields of a lock delay ------------------------------------------------------------------ */

static const char delays[] = "delays=1\n";

static bool lock_delay_has_value(const void *data, size_t n, const char *key, const char *value)
{
    if (!clave__identity_is_form(data, n))
        return false;
    const char *end = (const char *)data + n;
    const char *at = clave__identity_find_value(data, end, key);
    size_t len = strlen(value);
    return at && (size_t)(end - at) >= len && memcmp(at, value, len) == 0;
}

size_t clave__lock_delay_field_put(char *data, size_t n, size_t cap)
{
    if (n + sizeof delays > cap)
        return n;
    memcpy(data + n, delays, sizeof delays);
    return n + sizeof delays - 1;
}

bool clave__lock_delay_field_is_set(const void *data, size_t n)
{
    return lock_delay_has_value(data, n, "delays", "1\n");
}

int64_t clave__lock_delay_mark_token(const void *data, size_t n)
{
    enum { DIGITS = 20 };
    char text[DIGITS] = "";
    if (!lock_delay_has_value(data, n, "state", "held\n"))
        return 0;
    const char *end = (const char *)data + n;
    const char *at = clave__identity_find_value(data, end, "token");
    size_t i = 0;
    for (; at && at + i < end && at[i] != '\n' && i + 1 < sizeof text; i++)
        text[i] = at[i];
    return clave__identity_number(text);
}
