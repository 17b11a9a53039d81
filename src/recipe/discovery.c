/* discovery.c - services and their instances: clave/async/instances.h. Layout and JSON are those of
 * Curator's x-discovery; a server set's are Twitter's.
 *
 * The instances are followed by a cache of the service's node, or of the parent of all services.
 * Each node at the depth of an instance is an entry: its data, read once when it arrives, or the
 * reason why it could not be read.
 *
 * A registrant that comes back with another session replaces its node in one transaction, but
 * watches tell of a deletion and a creation, and the new node has still to be read. So an entry
 * whose node is deleted is not DOWN yet, but leaving: it stays as it was until the server has
 * answered a request that was sent later, and the cache waits for nothing that may bring it back.
 * If a node comes meanwhile, the instance has CHANGED.
 *
 * What must stay true: the entries are exactly the nodes that the cache has at that depth and those
 * that are leaving, even after an instance could not be read. The one exception is running out of
 * memory, which ends the whole object. The struct lives until the outermost callback has returned,
 * even if the user frees it there. */
#include "clave/async/instances.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/ordered_set.h"
#include "base/path.h"
#include "base/utf8.h"
#include "clave/async/cache.h"
#include "client/client_for_recipes.h"
#include "recipe/cache/cache_progress.h"
#include "recipe/discovery.h"

#define DEFAULT_BASE "/services"

enum { DOWN_ERRORS = 2, DOWN_MS = 30000, JSON_DEPTH = 64 };
enum { PAUSE_MS = 100, PAUSE_MAX_MS = 5000 };

static const char *const type_names[] = {
    [CLAVE_SERVICE_DYNAMIC] = "DYNAMIC",
    [CLAVE_SERVICE_STATIC] = "STATIC",
    [CLAVE_SERVICE_PERMANENT] = "PERMANENT",
    [CLAVE_SERVICE_DYNAMIC_SEQUENTIAL] = "DYNAMIC_SEQUENTIAL",
    [CLAVE_SERVICE_SERVERSET] = "SERVERSET",
};
enum { TYPES = sizeof type_names / sizeof *type_names };

const char *clave_service_type_name(clave_service_type type)
{
    return (unsigned)type < TYPES ? type_names[type] : "unknown";
}

bool clave_service_type_parse(const char *name, clave_service_type *out)
{
    for (unsigned i = 0; i < TYPES; i++)
        if (strcmp(name, type_names[i]) == 0) {
            *out = (clave_service_type)i;
            return true;
        }
    return false;
}

/* ==== reading JSON ============================================================================ */

/* A text that is being read, from `at` on. `fault` is the first reason why it is not what it should
 * be; after a fault, nothing more is read. */
struct json_reader {
    const char *at, *end;
    const char *fault;
};

static const char not_json[] = "is not JSON";

static bool reader_fail(struct json_reader *r, const char *fault)
{
    if (!r->fault)
        r->fault = fault;
    r->at = r->end;
    return false;
}

static void reader_skip_blanks(struct json_reader *r)
{
    while (r->at < r->end && strchr(" \t\r\n", *r->at) && *r->at)
        r->at++;
}

/* The next character that is not blank; 0: there is none. */
static char reader_peek(struct json_reader *r)
{
    reader_skip_blanks(r);
    return r->at < r->end ? *r->at : '\0';
}

static bool reader_take(struct json_reader *r, char ch)
{
    bool is_there = reader_peek(r) == ch && ch;
    r->at += is_there;
    return is_there;
}

static bool reader_word(struct json_reader *r, const char *word)
{
    size_t n = strlen(word);
    reader_skip_blanks(r);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
        return false;
    r->at += n;
    return true;
}

/* The four hexadecimal digits of an escape. */
static bool reader_hex(struct json_reader *r, uint32_t *out)
{
    *out = 0;
    if (r->end - r->at < 4)
        return reader_fail(r, not_json);
    for (int i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdef";
        char ch = *r->at++;
        const char *digit = strchr(digits, ch >= 'A' && ch <= 'F' ? ch - 'A' + 'a' : ch);
        if (!ch || !digit)
            return reader_fail(r, not_json);
        *out = *out << 4 | (uint32_t)(digit - digits);
    }
    return true;
}

/* Writes a character that is not half a surrogate pair; returns its length. */
static size_t reader_put_utf8(char *to, uint32_t c)
{
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t n = 1 + (size_t)(c >= 0x80) + (size_t)(c >= 0x800) + (size_t)(c >= 0x10000);
    for (size_t i = n; n > 1 && i-- > 1; c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(n > 1 ? lead[n] | c : c);
    return n;
}

/* What follows a backslash, as UTF-8; 0 after a fault. */
static size_t reader_escape(struct json_reader *r, char out[4])
{
    static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    char ch = r->at < r->end ? *r->at++ : '\0';
    const char *known = ch ? strchr(escapes, ch) : NULL;
    uint32_t c = 0, low = 0;
    if (known) {
        out[0] = meant[known - escapes];
        return 1;
    }
    if (ch != 'u' || !reader_hex(r, &c))
        return reader_fail(r, not_json);
    if (c == 0)
        return reader_fail(r, "has a NUL in a text");
    if (c < 0xd800 || c >= 0xe000)
        return reader_put_utf8(out, c);
    if (c >= 0xdc00 || r->end - r->at < 2 || memcmp(r->at, "\\u", 2) != 0)
        return reader_fail(r, "has half a surrogate pair in a text");
    r->at += 2;
    if (!reader_hex(r, &low) || low < 0xdc00 || low >= 0xe000)
        return reader_fail(r, "has half a surrogate pair in a text");
    return reader_put_utf8(out, 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00));
}

/* The next character of a text, as UTF-8; 0 after a fault. */
static size_t reader_character(struct json_reader *r, char out[4])
{
    size_t n = clave__utf8_len(r->at, (size_t)(r->end - r->at));
    if (n == 0 || (unsigned char)*r->at < 0x20)
        return reader_fail(r, "is not JSON in UTF-8");
    memcpy(out, r->at, n);
    r->at += n;
    return out[0] == '\\' ? reader_escape(r, out) : n;
}

/* Reads a text, and writes it with a NUL to `to`, which has as much room as the JSON (NULL: it is
 * not written). Returns the end of what was written. */
static char *reader_text(struct json_reader *r, char *to)
{
    char character[4];
    if (!reader_take(r, '"'))
        reader_fail(r, not_json);
    while (r->at < r->end && *r->at != '"') {
        size_t n = reader_character(r, character);
        if (to) {
            memcpy(to, character, n);
            to += n;
        }
    }
    if (r->at == r->end)
        reader_fail(r, not_json);
    else
        r->at++;
    if (to)
        *to++ = '\0';
    return to;
}

static size_t reader_digits(struct json_reader *r)
{
    const char *begin = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        r->at++;
    return (size_t)(r->at - begin);
}

static bool reader_is_at(const struct json_reader *r, const char *any)
{
    return r->at < r->end && *r->at && strchr(any, *r->at);
}

/* Reads a number; *whole tells whether it is an integer. */
static bool reader_number(struct json_reader *r, bool *whole)
{
    *whole = true;
    r->at += reader_is_at(r, "-");
    bool zero = reader_is_at(r, "0");
    size_t n = reader_digits(r);
    if (n == 0 || (zero && n > 1))
        return reader_fail(r, not_json);
    if (reader_is_at(r, ".")) {
        *whole = false;
        r->at++;
        if (reader_digits(r) == 0)
            return reader_fail(r, not_json);
    }
    if (reader_is_at(r, "eE")) {
        *whole = false;
        r->at++;
        r->at += reader_is_at(r, "+-");
        if (reader_digits(r) == 0)
            return reader_fail(r, not_json);
    }
    return true;
}

/* Passes over a value of any kind. */
static bool reader_skip(struct json_reader *r, unsigned depth)
{
    char first = reader_peek(r);
    bool whole;
    if (depth > JSON_DEPTH)
        return reader_fail(r, "has more than 64 levels of JSON");
    if (first == '"') {
        reader_text(r, NULL);
        return !r->fault;
    }
    if (first == '-' || (first >= '0' && first <= '9'))
        return reader_number(r, &whole);
    if (first != '{' && first != '[')
        return reader_word(r, "true") || reader_word(r, "false") || reader_word(r, "null") ||
               reader_fail(r, not_json);
    char last = first == '{' ? '}' : ']';
    r->at++;
    if (reader_take(r, last))
        return true;
    do {
        if (first == '{') {
            reader_text(r, NULL);
            if (!reader_take(r, ':'))
                return reader_fail(r, not_json);
        }
        if (!reader_skip(r, depth + 1))
            return false;
    } while (reader_take(r, ','));
    return reader_take(r, last) || reader_fail(r, not_json);
}

/* Passes over the value. Returns NULL for null; for any other value its text on one line, which is
 * written to *to with a NUL. */
static const char *reader_raw(struct json_reader *r, char **to)
{
    if (reader_word(r, "null"))
        return NULL;
    char *begin = *to;
    reader_skip_blanks(r);
    const char *from = r->at;
    if (!reader_skip(r, 0))
        return NULL;
    size_t n = (size_t)(r->at - from);
    for (size_t i = 0; i < n; i++) /* line breaks are between values: a text has none */
        begin[i] = strchr("\t\r\n", from[i]) && from[i] ? ' ' : from[i];
    begin[n] = '\0';
    *to = begin + n + 1;
    return begin;
}

static const char *reader_text_or_null(struct json_reader *r, char **to, const char *fault)
{
    char *begin = *to;
    if (reader_word(r, "null"))
        return NULL;
    if (reader_peek(r) != '"')
        reader_fail(r, fault);
    *to = reader_text(r, *to);
    return r->fault ? NULL : begin;
}

/* Reads an integer from `min` to `max`; null counts as 0. */
static int64_t reader_int(struct json_reader *r, int64_t min, int64_t max, const char *fault)
{
    bool whole = true, negative;
    int64_t n = 0;
    if (reader_word(r, "null"))
        return 0;
    negative = reader_peek(r) == '-';
    const char *from = r->at;
    if (!reader_is_at(r, "-0123456789") || (reader_number(r, &whole) && !whole))
        reader_fail(r, fault);
    for (const char *p = from + negative; p < r->at && !r->fault; p++) {
        if (n > (INT64_MAX - 9) / 10)
            reader_fail(r, fault);
        else
            n = n * 10 + (*p - '0');
    }
    n = negative ? -n : n;
    if (n < min || n > max)
        reader_fail(r, fault);
    return n;
}

/* ==== an instance ============================================================================= */

/* What clave_instance_parse returns; its texts are behind the struct. */
struct parsed_instance {
    clave_instance i;
    struct clave_mem mem;
    char text[];
};

/* The state while the members of an object are read. */
struct instance_reader {
    struct json_reader r;
    clave_instance *i;
    char *to; /* where the next text goes */
    bool is_serverset;
    const char *status; /* the key of a member that only server sets have; NULL: there is none */
    bool is_stopped;    /* according to that member */
    const char *unknown;
};

static const char bad_port[] = "has a port that is no number from 0 to 65535";

typedef void member_reader(struct instance_reader *d, const char *key);

/* An object, each of whose members is read by `member`. */
static void instance_read_object(struct instance_reader *d, member_reader *member)
{
    struct json_reader *r = &d->r;
    if (!reader_take(r, '{')) {
        reader_fail(r, "is not a JSON object");
        return;
    }
    if (reader_take(r, '}'))
        return;
    do {
        char *key = d->to;
        d->to = reader_text(r, key);
        if (r->fault || !reader_take(r, ':'))
            reader_fail(r, not_json);
        else
            member(d, key);
    } while (!r->fault && reader_take(r, ','));
    if (!r->fault && !reader_take(r, '}'))
        reader_fail(r, not_json);
}

static void serverset_read_endpoint(struct instance_reader *d, const char *key)
{
    struct json_reader *r = &d->r;
    if (strcmp(key, "host") == 0)
        d->i->address = reader_text_or_null(r, &d->to, "has a host that is no text");
    else if (strcmp(key, "port") == 0)
        d->i->port = (int32_t)reader_int(r, 0, UINT16_MAX, bad_port);
    else
        reader_skip(r, 0);
}

static void instance_read_type(struct instance_reader *d)
{
    static const char fault[] = "has a serviceType that is none of DYNAMIC, STATIC, PERMANENT, "
                                "DYNAMIC_SEQUENTIAL";
    const char *name = reader_text_or_null(&d->r, &d->to, fault);
    if (name &&
        (!clave_service_type_parse(name, &d->i->type) || d->i->type == CLAVE_SERVICE_SERVERSET))
        reader_fail(&d->r, fault);
}

static void instance_read_member(struct instance_reader *d, const char *key)
{
    struct json_reader *r = &d->r;
    clave_instance *i = d->i;
    if (strcmp(key, "name") == 0)
        i->name = reader_text_or_null(r, &d->to, "has a name that is no text");
    else if (strcmp(key, "id") == 0)
        i->id = reader_text_or_null(r, &d->to, "has an id that is no text");
    else if (strcmp(key, "address") == 0)
        i->address = reader_text_or_null(r, &d->to, "has an address that is no text");
    else if (strcmp(key, "port") == 0)
        i->port = (int32_t)reader_int(r, 0, UINT16_MAX, bad_port);
    else if (strcmp(key, "sslPort") == 0)
        i->ssl_port = (int32_t)reader_int(r, 0, UINT16_MAX, bad_port);
    else if (strcmp(key, "payload") == 0)
        i->payload = reader_raw(r, &d->to);
    else if (strcmp(key, "registrationTimeUTC") == 0)
        i->registered = reader_int(r, INT64_MIN, INT64_MAX,
                                   "has a registrationTimeUTC that is no number of milliseconds");
    else if (strcmp(key, "serviceType") == 0)
        instance_read_type(d);
    else if (strcmp(key, "uriSpec") == 0)
        i->uri_spec = reader_raw(r, &d->to);
    else if (strcmp(key, "enabled") == 0) {
        i->disabled = reader_word(r, "false");
        if (!i->disabled && !reader_word(r, "true"))
            reader_fail(r, "has an \"enabled\" that is neither true nor false");
    } else if (strcmp(key, "serviceEndpoint") == 0) {
        d->is_serverset = true;
        instance_read_object(d, serverset_read_endpoint);
    } else if (strcmp(key, "status") == 0) {
        const char *status = reader_raw(r, &d->to);
        d->status = key;
        d->is_stopped = status && strcmp(status, "\"ALIVE\"") != 0;
    } else {
        d->unknown = d->unknown ? d->unknown : key;
        reader_skip(r, 0);
    }
}

/* Returns what is missing in an object that was read; NULL: nothing. */
static const char *instance_lacks(const struct instance_reader *d)
{
    if (d->is_serverset)
        return d->i->address && d->i->port > 0 ? NULL
                                               : "has a serviceEndpoint without host or port";
    if (!d->i->name)
        return "has no name";
    return d->i->id ? NULL : "has no id";
}

static clave_err instance_read(struct instance_reader *d)
{
    instance_read_object(d, instance_read_member);
    if (!d->r.fault && reader_peek(&d->r))
        reader_fail(&d->r, not_json);
    if (!d->r.fault && instance_lacks(d))
        reader_fail(&d->r, instance_lacks(d));
    if (d->is_serverset) {
        d->i->type = CLAVE_SERVICE_SERVERSET;
        d->i->disabled = d->is_stopped;
    } else if (!d->unknown) {
        d->unknown = d->status;
    }
    return d->r.fault ? CLAVE_EINVAL : CLAVE_OK;
}

clave_err clave__instance_parse(clave_instance **out, const void *data, size_t len,
                                const clave_mem *given, const char **fault, const char **unknown)
{
    struct clave_mem mem = clave__mem_or_default(given);
    struct instance_reader d = {.r = {.at = data, .end = (const char *)data + len}};
    *out = NULL;
    /* Texts take no more room than their JSON: the NUL takes the place of a quote, or of the colon
     * before a raw value. */
    struct parsed_instance *p = clave__mem_zalloc(&mem, sizeof *p + len + 1);
    if (!p)
        return CLAVE_ENOMEM;
    p->mem = mem;
    d.i = &p->i;
    d.to = p->text;
    if (len == 0)
        reader_fail(&d.r, "is empty");
    clave_err err = instance_read(&d);
    if (fault)
        *fault = d.r.fault;
    *unknown = NULL;
    if (err == CLAVE_OK) {
        *out = &p->i;
        *unknown = d.unknown;
    } else {
        clave_instance_free(&p->i);
    }
    return err;
}

clave_err clave_instance_parse(clave_instance **out, const void *data, size_t len,
                               const clave_mem *given, const char **fault)
{
    const char *unknown;
    return clave__instance_parse(out, data, len, given, fault, &unknown);
}

void clave_instance_free(clave_instance *i)
{
    if (!i)
        return;
    struct parsed_instance *p = LIST_ENTRY(i, struct parsed_instance, i);
    struct clave_mem mem = p->mem;
    clave__mem_free(&mem, p);
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool is_json_value(const char *text)
{
    struct json_reader r = {.at = text, .end = text + strlen(text)};
    return reader_skip(&r, 0) && !reader_peek(&r) && !r.fault;
}

static bool is_utf8(const char *text)
{
    size_t n = strlen(text);
    for (size_t len; n > 0; text += len, n -= len)
        if ((len = clave__utf8_len(text, n)) == 0)
            return false;
    return true;
}

/* A segment of a path. */
static bool is_segment(const char *text)
{
    enum { CAP = 1024 };
    char path[CAP];
    int n = snprintf(path, sizeof path, "/%s", text);
    return n > 1 && n < CAP && !strchr(text, '/') && !clave__path_fault(path, (size_t)n, false);
}

static bool is_port(int32_t port)
{
    return port >= 0 && port <= UINT16_MAX;
}

const char *clave_instance_fault(const clave_instance *i)
{
    if ((unsigned)i->type >= TYPES)
        return "has no type that there is";
    if (!i->name || !is_segment(i->name))
        return "has no name that can be part of a path";
    if (!is_port(i->port) || !is_port(i->ssl_port))
        return bad_port;
    if (i->type == CLAVE_SERVICE_SERVERSET) {
        if (!i->address || i->port == 0)
            return "has no address or no port, which a member of a server set needs";
        if (i->payload || i->uri_spec || i->ssl_port)
            return "has what a member of a server set cannot have: payload, URI or SSL port";
    } else if (!i->id || !is_segment(i->id)) {
        return "has no id that can be part of a path";
    }
    if (i->address && !is_utf8(i->address))
        return "has an address that is not UTF-8";
    if (i->payload && !is_json_value(i->payload))
        return "has a payload that is not JSON";
    if (i->uri_spec && !is_json_value(i->uri_spec))
        return "has a URI that is not JSON";
    return NULL;
}

/* Counts everything that is written to it, and keeps what fits. */
struct instance_writer {
    char *out;
    size_t cap, len;
};

static void writer_put(struct instance_writer *w, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++, w->len++)
        if (w->len + 1 < w->cap)
            w->out[w->len] = p[i];
}

static void writer_put_raw(struct instance_writer *w, const char *key, const char *value)
{
    writer_put(w, key, strlen(key));
    value = value ? value : "null";
    writer_put(w, value, strlen(value));
}

static void writer_put_int(struct instance_writer *w, const char *key, int64_t n, bool is_null)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)n);
    writer_put_raw(w, key, is_null ? NULL : digits);
}

static void writer_put_text(struct instance_writer *w, const char *key, const char *text)
{
    char piece[JSON_ESCAPE_CAP];
    if (!text) {
        writer_put_raw(w, key, NULL);
        return;
    }
    writer_put_raw(w, key, "\"");
    size_t n = strlen(text);
    for (size_t i = 0, taken; i < n; i += taken) {
        size_t len = clave__json_escape(text + i, n - i, piece, &taken);
        writer_put(w, piece, len);
    }
    writer_put(w, "\"", 1);
}

static size_t writer_end(struct instance_writer *w)
{
    if (w->cap)
        w->out[w->len < w->cap ? w->len : w->cap - 1] = '\0';
    return w->len;
}

size_t clave_instance_format(const clave_instance *i, char *out, size_t cap)
{
    struct instance_writer w = {out, cap, 0};
    assert(!clave_instance_fault(i));
    if (i->type == CLAVE_SERVICE_SERVERSET) {
        writer_put_text(&w, "{\"serviceEndpoint\":{\"host\":", i->address);
        writer_put_int(&w, ",\"port\":", i->port, false);
        writer_put_text(
            &w, "},\"additionalEndpoints\":{},\"status\":", i->disabled ? "STOPPED" : "ALIVE");
        writer_put_raw(&w, "}", "");
    } else {
        writer_put_text(&w, "{\"name\":", i->name);
        writer_put_text(&w, ",\"id\":", i->id);
        writer_put_text(&w, ",\"address\":", i->address);
        writer_put_int(&w, ",\"port\":", i->port, i->port == 0);
        writer_put_int(&w, ",\"sslPort\":", i->ssl_port, i->ssl_port == 0);
        writer_put_raw(&w, ",\"payload\":", i->payload);
        writer_put_int(&w, ",\"registrationTimeUTC\":", i->registered, false);
        writer_put_text(&w, ",\"serviceType\":", type_names[i->type]);
        writer_put_raw(&w, ",\"uriSpec\":", i->uri_spec);
        writer_put_raw(&w, i->disabled ? ",\"enabled\":false}" : "}", "");
    }
    return writer_end(&w);
}

/* ---- its URI --------------------------------------------------------------------------------- */

/* One part of a spec, as it is read. */
struct uri_part {
    struct json_reader value; /* at the text; .at NULL: none was given */
    bool is_variable;
};

static void uri_put_text(struct instance_writer *w, const char *text)
{
    if (text)
        writer_put(w, text, strlen(text));
}

static void uri_put_variable(struct instance_writer *w, const clave_instance *i, const char *name)
{
    if (strcmp(name, "scheme") == 0)
        uri_put_text(w, i->ssl_port > 0 ? "https" : "http");
    else if (strcmp(name, "name") == 0)
        uri_put_text(w, i->name);
    else if (strcmp(name, "id") == 0)
        uri_put_text(w, i->id);
    else if (strcmp(name, "address") == 0)
        uri_put_text(w, i->address);
    else if (strcmp(name, "port") == 0 && i->port > 0)
        writer_put_int(w, "", i->port, false);
    else if (strcmp(name, "ssl-port") == 0 && i->ssl_port > 0)
        writer_put_int(w, "", i->ssl_port, false);
    else if (strcmp(name, "registration-time-utc") == 0)
        writer_put_int(w, "", i->registered, false);
    else if (strcmp(name, "service-type") == 0)
        for (const char *p = type_names[i->type]; *p; p++)
            writer_put(w, &(char){*p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p}, 1);
    else if (strcmp(name, "[") == 0)
        uri_put_text(w, "{");
    else if (strcmp(name, "]") == 0)
        uri_put_text(w, "}");
}

/* The text has been read once without a fault. */
static void uri_put_part(struct instance_writer *w, const clave_instance *i, struct uri_part *p)
{
    char name[32] = "", character[4];
    size_t len = 0, n;
    (void)reader_take(&p->value, '"');
    for (; *p->value.at != '"'; len += n) {
        n = reader_character(&p->value, character);
        if (!p->is_variable)
            writer_put(w, character, n);
        else if (len + n < sizeof name)
            memcpy(name + len, character, n);
    }
    if (p->is_variable && len < sizeof name)
        uri_put_variable(w, i, name);
}

static void uri_read_key(struct json_reader *r, char key[16])
{
    size_t n = 0;
    reader_skip_blanks(r);
    struct json_reader text = *r;
    reader_text(r, NULL);
    for (text.at++; !r->fault && text.at + 1 < r->at && n < 15; text.at++)
        key[n++] = *text.at;
    key[n] = '\0';
    if (!reader_take(r, ':'))
        reader_fail(r, not_json);
}

static void uri_read_part(struct json_reader *r, struct uri_part *p)
{
    char key[16];
    *p = (struct uri_part){.is_variable = false};
    if (!reader_take(r, '{'))
        reader_fail(r, not_json);
    do {
        uri_read_key(r, key);
        if (strcmp(key, "value") == 0 && reader_peek(r) == '"')
            p->value = *r;
        if (strcmp(key, "variable") == 0)
            p->is_variable = reader_peek(r) == 't';
        reader_skip(r, 0);
    } while (!r->fault && reader_take(r, ','));
    if (!reader_take(r, '}') || !p->value.at)
        reader_fail(r, not_json);
}

static void uri_read_parts(struct json_reader *r, struct instance_writer *w,
                           const clave_instance *i)
{
    struct uri_part p;
    if (!reader_take(r, '['))
        reader_fail(r, not_json);
    if (r->fault || reader_take(r, ']'))
        return;
    do {
        uri_read_part(r, &p);
        if (!r->fault)
            uri_put_part(w, i, &p);
    } while (!r->fault && reader_take(r, ','));
    if (!reader_take(r, ']'))
        reader_fail(r, not_json);
}

size_t clave_instance_uri(const clave_instance *i, char *out, size_t cap)
{
    struct instance_writer w = {out, cap, 0};
    const char *spec = i->uri_spec ? i->uri_spec : "";
    struct json_reader r = {.at = spec, .end = spec + strlen(spec)};
    char key[16];
    if (!reader_take(&r, '{'))
        return writer_end(&w);
    do {
        uri_read_key(&r, key);
        if (strcmp(key, "parts") == 0)
            uri_read_parts(&r, &w, i);
        else
            reader_skip(&r, 0);
    } while (!r.fault && reader_take(&r, ','));
    if (r.fault || !reader_take(&r, '}'))
        w.len = 0;
    return writer_end(&w);
}

const char *clave_uri_spec_fault(const char *text)
{
    bool inside = false;
    if (!is_utf8(text))
        return "is not UTF-8";
    for (; *text; text++) {
        if (*text == '{' && inside)
            return "has a { within braces: write {[} for one";
        if (*text == '}' && !inside)
            return "has a } without {: write {]} for one";
        if (*text == '{' || *text == '}')
            inside = *text == '{';
    }
    return inside ? "has a { without }" : NULL;
}

/* Writes the part that ends at `end`, without the blanks around the name of a variable. */
static void uri_spec_put(struct instance_writer *w, const char *at, const char *end,
                         bool is_variable, bool is_first)
{
    char piece[JSON_ESCAPE_CAP];
    while (is_variable && at < end && *at == ' ')
        at++;
    while (is_variable && at < end && end[-1] == ' ')
        end--;
    if (at == end)
        return;
    writer_put_raw(w, is_first ? "" : ",", "{\"value\":\"");
    for (size_t taken; at < end; at += taken) {
        size_t n = clave__json_escape(at, (size_t)(end - at), piece, &taken);
        writer_put(w, piece, n);
    }
    writer_put_raw(w, "\",\"variable\":", is_variable ? "true}" : "false}");
}

size_t clave_uri_spec_format(const char *text, char *out, size_t cap)
{
    static const char begin[] = "{\"parts\":[";
    struct instance_writer w = {out, cap, 0};
    assert(!clave_uri_spec_fault(text));
    writer_put(&w, begin, sizeof begin - 1);
    while (*text) {
        bool is_variable = *text == '{';
        size_t n = strcspn(text += is_variable, "{}");
        uri_spec_put(&w, text, text + n, is_variable, w.len == sizeof begin - 1);
        text += n + is_variable;
    }
    writer_put(&w, "]}", 2);
    return writer_end(&w);
}

/* ==== the instances that there are ============================================================ */

struct entry {
    struct ordered_node node;
    struct list leaving; /* in the instances' list of that name, or alone */
    bool asked;          /* leaving since before the request under way was sent */
    clave_instances_entry shown;
    clave_instance *parsed; /* NULL: it cannot be read */
    uint32_t errors;        /* how many were reported since `since` */
    int64_t since;          /* when the first of these errors was reported */
    char *service;
    char path[];
};

struct clave_async_instances {
    clave_async_client *client;
    struct clave_mem mem;
    clave_async_cache *cache;
    clave_async_instances_cb *cb;
    void *arg;
    struct ordered entries; /* by path */
    char *top;              /* the path of the cache */
    unsigned depth;         /* of an instance's node, below `top` */
    uint32_t down_errors, down_ms;
    char *picked; /* the path of the last pick; NULL: none yet */
    struct rand_state rand;
    struct list leaving; /* of struct entry; those that the request under way covers come first */
    bool asking;         /* a request is under way; it owns a reference */
    struct timer pause;  /* before the next request; `failures` have failed in a row */
    int32_t failures;
    bool late; /* RESYNCED will be reported when no entry is leaving any more */
    unsigned refs;
    bool freed;
};

static struct entry *entry_of(const struct ordered_node *node)
{
    return node ? ORDERED_ENTRY(node, struct entry, node) : NULL;
}

static int entry_compare(const void *key, const struct ordered_node *node)
{
    return strcmp(key, ORDERED_ENTRY(node, const struct entry, node)->path);
}

static void entry_free(struct clave_async_instances *d, struct entry *e)
{
    if (!e)
        return;
    list_remove(&e->leaving);
    clave_instance_free(e->parsed);
    clave__mem_free(&d->mem, e);
}

/* How far below `top` the path is; 0: it is `top`. */
static unsigned instances_depth(const char *top, const char *path)
{
    unsigned depth = 0;
    for (const char *p = path + (top[1] ? strlen(top) : 0); *p; p++)
        depth += *p == '/' && p[1];
    return depth;
}

static clave_cache_take instances_takes(const char *path, void *arg)
{
    const clave_async_instances *d = arg;
    return instances_depth(d->top, path) == d->depth ? CLAVE_CACHE_TAKE_NODE
                                                     : CLAVE_CACHE_TAKE_TREE;
}

/* An entry for the node, not in the set. NULL: out of memory. */
static struct entry *entry_new(clave_async_instances *d, const clave_cache_node *n)
{
    size_t len = strlen(n->path), parent = clave__path_parent_len(n->path, len);
    struct entry *e = clave__mem_zalloc(&d->mem, sizeof *e + 2 * (len + 1));
    if (!e)
        return NULL;
    list_init(&e->leaving);
    memcpy(e->path, n->path, len + 1);
    e->service = e->path + len + 1;
    memcpy(e->service, n->path, parent);
    const char *name = clave__path_name(e->service);
    e->shown =
        (clave_instances_entry){.path = e->path, .service = name, .stat = n->stat, .fault = NULL};
    clave_err err = CLAVE_OK;
    if (n->unreadable)
        e->shown.fault = "may not be read";
    else if (!n->has_data)
        e->shown.fault = "could not be read";
    else
        err = clave_instance_parse(&e->parsed, n->data, n->len, &d->mem, &e->shown.fault);
    if (err == CLAVE_ENOMEM) {
        entry_free(d, e);
        return NULL;
    }
    e->shown.instance = e->parsed;
    return e;
}

/* ---- telling --------------------------------------------------------------------------------- */

static void instances_drop(clave_async_instances *d)
{
    assert(d->refs > 0);
    if (--d->refs > 0)
        return;
    for (struct ordered_node *n; (n = clave__ordered_first(&d->entries, ORDERED_ANY));) {
        clave__ordered_remove(&d->entries, entry_of(n)->path);
        entry_free(d, entry_of(n));
    }
    clave_async_client *c = d->client;
    struct clave_mem mem = d->mem;
    clave__mem_free(&mem, d->top);
    clave__mem_free(&mem, d->picked);
    clave__mem_free(&mem, d);
    clave__client_unref(c);
}

static void instances_tell(clave_async_instances *d, const clave_instances_event *ev)
{
    if (d->cb && !d->freed)
        d->cb(d, ev, d->arg);
}

static void instances_end(clave_async_instances *d, clave_err err)
{
    clave_async_cache *cache = d->cache;
    if (!cache)
        return;
    d->cache = NULL;
    clave__client_timer_clear(d->client, &d->pause);
    clave_async_cache_free(cache);
    instances_tell(d, &(clave_instances_event){.type = CLAVE_INSTANCES_ENDED, .err = err});
}

/* The node is there, and has been read. */
static void instances_on_node(clave_async_instances *d, const clave_cache_node *now)
{
    struct entry *was = entry_of(clave__ordered_find(&d->entries, now->path));
    struct entry *e = entry_new(d, now);
    if (!e) {
        instances_end(d, CLAVE_ENOMEM);
        return;
    }
    if (was)
        clave__ordered_remove(&d->entries, was->path);
    clave__ordered_insert(&d->entries, &e->node, e->path, 0);
    instances_tell(
        d, &(clave_instances_event){.type = was ? CLAVE_INSTANCES_CHANGED : CLAVE_INSTANCES_UP,
                                    .now = &e->shown,
                                    .was = was ? &was->shown : NULL});
    entry_free(d, was);
}

/* ---- leaving --------------------------------------------------------------------------------- */

static void instances_ask(clave_async_instances *d);

static void instances_on_down(clave_async_instances *d, struct entry *e)
{
    clave__ordered_remove(&d->entries, e->path);
    instances_tell(d, &(clave_instances_event){.type = CLAVE_INSTANCES_DOWN, .was = &e->shown});
    entry_free(d, e);
}

/* The leaving entries that the request covered are gone, except those of which the cache may still
 * hear. `all`: every leaving entry is gone. */
static void instances_settle(clave_async_instances *d, bool all)
{
    struct list settled;
    list_init(&settled);
    for (struct list *l = d->leaving.next, *next; l != &d->leaving; l = next) {
        struct entry *e = LIST_ENTRY(l, struct entry, leaving);
        next = l->next;
        bool is_gone = all || (e->asked && !clave__cache_awaits(d->cache, e->path));
        e->asked = false;
        if (is_gone) {
            list_remove(l);
            list_push_back(&settled, l);
        }
    }
    for (struct list *l; (l = list_pop_front(&settled));)
        instances_on_down(d, LIST_ENTRY(l, struct entry, leaving));
}

static void instances_catch_up(clave_async_instances *d)
{
    if (!d->late || !list_empty(&d->leaving))
        return;
    d->late = false;
    instances_tell(d, &(clave_instances_event){.type = CLAVE_INSTANCES_RESYNCED});
}

/* Asks again after a pause that grows; at once after a lost connection, since the request waits for
 * the next one. */
static void instances_ask_again(clave_async_instances *d, clave_err why)
{
    int64_t ms = PAUSE_MS;
    if (why == CLAVE_OK || why == CLAVE_ENONODE || why == CLAVE_ECONNLOSS) {
        instances_ask(d);
        return;
    }
    for (int32_t i = 0; i < d->failures && ms < PAUSE_MAX_MS; i++)
        ms *= 2;
    d->failures++;
    clave__client_timer_set(d->client, &d->pause, clave__client_now(d->client) + ms);
}

static void instances_on_pause(struct timer *t, int64_t now)
{
    clave_async_instances *d = LIST_ENTRY(t, struct clave_async_instances, pause);
    (void)now;
    d->refs++;
    instances_ask(d);
    instances_drop(d);
}

static void instances_on_answer(clave_async_client *c, const clave_result *res, void *arg)
{
    clave_async_instances *d = arg;
    bool answered = res->err == CLAVE_OK || res->err == CLAVE_ENONODE;
    (void)c;
    d->asking = false;
    if (answered)
        d->failures = 0;
    if (d->cache && answered)
        instances_settle(d, false);
    instances_catch_up(d);
    if (d->cache && res->err != CLAVE_ECLOSED && !list_empty(&d->leaving))
        instances_ask_again(d, res->err);
    instances_drop(d);
}

/* Sends a request whose answer follows all events that the server has sent before it. Without a
 * connection it waits for one. */
static void instances_ask(clave_async_instances *d)
{
    if (d->asking || d->pause.armed)
        return;
    clave_err err = clave_async_exists(d->client, d->top, NULL, instances_on_answer, d);
    if (err == CLAVE_ENOMEM) {
        instances_settle(d, true);
        instances_catch_up(d);
    }
    if (err != CLAVE_OK)
        return;
    d->asking = true;
    d->refs++;
    for (struct list *l = d->leaving.next; l != &d->leaving; l = l->next)
        LIST_ENTRY(l, struct entry, leaving)->asked = true;
}

static void instances_on_deleted(clave_async_instances *d, const char *path)
{
    struct entry *e = entry_of(clave__ordered_find(&d->entries, path));
    if (!e)
        return;
    list_remove(&e->leaving);
    list_push_back(&d->leaving, &e->leaving);
    e->asked = false;
    instances_ask(d);
}

static void instances_on_event(clave_async_cache *cache, const clave_cache_event *ev, void *arg)
{
    clave_async_instances *d = arg;
    (void)cache;
    d->refs++;
    switch (ev->type) {
    case CLAVE_CACHE_CREATED:
    case CLAVE_CACHE_CHANGED:
        if (instances_depth(d->top, ev->path) == d->depth)
            instances_on_node(d, ev->now);
        break;
    case CLAVE_CACHE_DELETED:
        if (instances_depth(d->top, ev->path) == d->depth)
            instances_on_deleted(d, ev->path);
        break;
    case CLAVE_CACHE_INITIALIZED:
        instances_tell(d, &(clave_instances_event){.type = CLAVE_INSTANCES_INITIALIZED});
        break;
    case CLAVE_CACHE_STALE:
        if (!d->late) /* otherwise STALE was reported and RESYNCED was not, so the user knows */
            instances_tell(d, &(clave_instances_event){.type = CLAVE_INSTANCES_STALE});
        d->late = false;
        break;
    case CLAVE_CACHE_RESYNCED:
        d->late = true;
        instances_catch_up(d);
        break;
    case CLAVE_CACHE_FULL: /* no bound was set, but a list of children may be too long */
        instances_end(d, CLAVE_ETOOBIG);
        break;
    case CLAVE_CACHE_ENDED:
        instances_end(d, ev->err);
        break;
    }
    instances_drop(d);
}

/* ---- making and freeing ---------------------------------------------------------------------- */

static clave_err instances_begin(clave_async_instances *d, const clave_instances_options *o)
{
    const char *base = o->base ? o->base : DEFAULT_BASE;
    d->depth = o->service ? 1 : 2;
    d->down_errors = o->down_errors ? o->down_errors : DOWN_ERRORS;
    d->down_ms = o->down_ms ? o->down_ms : DOWN_MS;
    uint64_t seed = clave__client_hash_seed(d->client);
    clave__rand_seed(&d->rand, seed);
    clave__ordered_init(&d->entries, entry_compare, seed);
    if (o->service && !is_segment(o->service)) {
        clave__client_fault(
            d->client, "\"%s\" is not the name of a service: it is one part of a path", o->service);
        return CLAVE_EPATH;
    }
    d->top = o->service ? clave__path_child(&d->mem, base, o->service)
                        : clave__mem_strdup(&d->mem, base);
    if (!d->top)
        return CLAVE_ENOMEM;
    clave_cache_options co = CLAVE_CACHE_OPTIONS_INIT;
    co.filter = instances_takes;
    co.filter_arg = d;
    return clave_async_cache_new(&d->cache, d->client, d->top, &co, instances_on_event, d);
}

clave_err clave_async_instances_new(clave_async_instances **out, clave_async_client *c,
                                    const clave_instances_options *given,
                                    clave_async_instances_cb *cb, void *arg)
{
    clave_instances_options o;
    *out = NULL;
    clave_err err = clave__client_take_options(c, &o, sizeof o, given, "clave_instances_options");
    if (err != CLAVE_OK)
        return err;
    clave_async_instances *d = clave__mem_zalloc(clave__client_mem(c), sizeof *d);
    if (!d)
        return CLAVE_ENOMEM;
    *d = (clave_async_instances){
        .client = c, .mem = *clave__client_mem(c), .cb = cb, .arg = arg, .refs = 1};
    list_init(&d->leaving);
    clave__timer_init(&d->pause, instances_on_pause);
    clave__client_ref(c);
    err = instances_begin(d, &o);
    if (err == CLAVE_OK)
        *out = d;
    else
        clave_async_instances_free(d);
    return err;
}

void clave_async_instances_free(clave_async_instances *d)
{
    if (!d)
        return;
    clave_async_cache *cache = d->cache;
    d->freed = true;
    d->cache = NULL;
    clave__client_timer_clear(d->client, &d->pause);
    clave_async_cache_free(cache);
    instances_drop(d);
}

/* ---- queries --------------------------------------------------------------------------------- */

bool clave_async_instances_is_current(const clave_async_instances *d)
{
    return d->cache && !d->late && clave_async_cache_status_of(d->cache).current;
}

void clave_async_instances_walk(const clave_async_instances *d, clave_instances_visit_cb *visit,
                                void *arg)
{
    struct entry *e = entry_of(clave__ordered_first(&d->entries, ORDERED_ANY));
    while (e && visit(&e->shown, arg))
        e = entry_of(clave__ordered_after(&d->entries, e->path, ORDERED_ANY));
}

static bool entry_is_down(const clave_async_instances *d, struct entry *e)
{
    if (e->errors > 0 && clave__client_now(d->client) - e->since >= (int64_t)d->down_ms)
        e->errors = 0;
    return e->errors >= d->down_errors;
}

static bool entry_can_be_picked(const clave_async_instances *d, struct entry *e)
{
    return e->parsed && !e->parsed->disabled && !entry_is_down(d, e);
}

/* The first instance after the path (NULL: the first of all) that can be picked; NULL: none of them
 * can. */
static struct entry *instances_next(const clave_async_instances *d, const char *after)
{
    struct ordered_node *n = after ? clave__ordered_after(&d->entries, after, ORDERED_ANY)
                                   : clave__ordered_first(&d->entries, ORDERED_ANY);
    while (n && !entry_can_be_picked(d, entry_of(n)))
        n = clave__ordered_after(&d->entries, entry_of(n)->path, ORDERED_ANY);
    return entry_of(n);
}

static struct entry *instances_any(clave_async_instances *d)
{
    size_t count = 0;
    struct entry *e = NULL;
    while ((e = instances_next(d, e ? e->path : NULL)))
        count++;
    if (count == 0)
        return NULL;
    size_t n = clave__rand_below(&d->rand, count);
    e = instances_next(d, NULL);
    for (; n > 0; n--)
        e = instances_next(d, e->path);
    return e;
}

static struct entry *instances_choose(clave_async_instances *d, clave_pick how)
{
    struct entry *e = NULL;
    if (how == CLAVE_PICK_RANDOM)
        return instances_any(d);
    if (how == CLAVE_PICK_STICKY) {
        e = d->picked ? entry_of(clave__ordered_find(&d->entries, d->picked)) : NULL;
        return e && entry_can_be_picked(d, e) ? e : instances_any(d);
    }
    e = d->picked ? instances_next(d, d->picked) : NULL;
    return e ? e : instances_next(d, NULL);
}

clave_err clave_async_instances_pick(clave_async_instances *d, clave_pick how,
                                     clave_instances_entry *out)
{
    if (d->depth != 1 || (unsigned)how > CLAVE_PICK_STICKY)
        return CLAVE_EINVAL;
    struct entry *e = instances_choose(d, how);
    if (!e)
        return CLAVE_ENONODE;
    char *picked = clave__mem_strdup(&d->mem, e->path);
    if (picked) { /* without memory the same one may be picked again */
        clave__mem_free(&d->mem, d->picked);
        d->picked = picked;
    }
    *out = e->shown;
    return CLAVE_OK;
}

clave_err clave_async_instances_note_error(clave_async_instances *d, const char *path)
{
    struct entry *e = entry_of(clave__ordered_find(&d->entries, path));
    if (!e)
        return CLAVE_ENONODE;
    (void)entry_is_down(d, e); /* forgets errors that are too old to count */
    if (e->errors == 0)
        e->since = clave__client_now(d->client);
    e->errors += e->errors < UINT32_MAX;
    return CLAVE_OK;
}
