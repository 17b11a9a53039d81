/* request.c - reading what a request says. Called by web.c and by handlers. Invariant: of jansson
 * only the functions of the driver's table are used. */
#include "web/http/exchange.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/http_host.h"
#include "base/path.h"

void *clave__web_must_alloc(struct web_exchange *x, size_t n)
{
    void *p = clave__web_alloc(x, n);
    if (p)
        memset(p, 0, n);
    else
        clave__web_refuse(x, 503, CLAVE_ENOMEM, NULL, "out of memory");
    return p;
}

/* ---- as it arrives -------------------------------------------------------------------------- */

bool clave__web_receive(struct web_exchange *x, const void *p, size_t n)
{
    size_t all = clave__web_body_len(x) + n;
    assert(!x->body); /* the body is parsed when it is complete */
    if (!clave__web_may_receive(x, all < INT64_MAX ? (int64_t)all : INT64_MAX))
        return false;
    /* If the length is known, reserves all of it at once, so that the body takes no more than
     * that. */
    int64_t whole = x->q->body_length;
    size_t room = whole > 0 && (uint64_t)whole >= all ? (size_t)whole - all + n : n;
    if (clave__buf_reserve(&x->received, room) == CLAVE_OK &&
        clave__buf_append(&x->received, p, n) == CLAVE_OK)
        return true;
    clave__web_problem_err(x, CLAVE_ENOMEM, "read the body", NULL);
    return false;
}

/* ---- as JSON -------------------------------------------------------------------------------- */

static const struct jansson *body_lib(const struct web_exchange *x)
{
    return x->web->o.jansson;
}

bool clave__web_has_type(const struct web_exchange *x, const char *type)
{
    const char *given = clave__web_header(x, "Content-Type");
    size_t n = strlen(type);
    return given && clave__http_begins(given, type, n) &&
           (given[n] == '\0' || given[n] == ';' || given[n] == ' ');
}

/* An upper bound of the memory that jansson needs for this text, estimated from the characters that
 * begin or precede values. Even an empty object has a table of 8 entries. */
static size_t body_tree(const char *text, size_t n)
{
    enum { OBJECT = 256, ARRAY = 128, VALUE = 64 };
    size_t bytes = n;
    for (size_t i = 0; i < n; i++)
        bytes += text[i] == '{'                     ? OBJECT
                 : text[i] == '['                   ? ARRAY
                 : text[i] == ',' || text[i] == ':' ? VALUE
                                                    : 0;
    return bytes;
}

static json_t *body_parse(struct web_exchange *x, const char *text, size_t n)
{
    json_error_t fault = {.text = "out of memory"};
    if (!clave__web_may_parse(x, body_tree(text, n)))
        return NULL;
    x->body = body_lib(x)->json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &fault);
    if (!x->body)
        clave__web_bad_request(x, "the body is not JSON: line %d, column %d: %s", fault.line,
                               fault.column, fault.text);
    else if (!json_is_object(x->body))
        clave__web_bad_request(x, "the body is not a JSON object");
    else
        return x->body;
    return NULL;
}

json_t *clave__web_body(struct web_exchange *x)
{
    if (x->body)
        return x->body;
    if (clave__web_body_len(x) == 0)
        return body_parse(x, "{}", 2);
    if (!clave__web_has_type(x, "application/json")) {
        clave__web_refuse(x, 415, CLAVE_EINVAL, NULL,
                          "the body's Content-Type must be application/json");
        return NULL;
    }
    return body_parse(x, clave__web_body_bytes(x), clave__web_body_len(x));
}

json_t *clave__web_body_of_any_type(struct web_exchange *x)
{
    return x->body ? x->body : body_parse(x, clave__web_body_bytes(x), clave__web_body_len(x));
}

/* ---- the members of an object ---- */

/* Returns false if the value is not a 64-bit number. */
static bool body_number(struct web_exchange *x, const json_t *v, int64_t *out)
{
    if (json_is_integer(v)) {
        *out = body_lib(x)->json_integer_value(v);
        return true;
    }
    return json_is_string(v) && clave__web_parse_int(body_lib(x)->json_string_value(v), out);
}

/* Returns false if the value is not of the member's type. */
static bool body_take(struct web_exchange *x, const struct body_member *m, json_t *v)
{
    int64_t n = 0;
    if (m->number) {
        if (!body_number(x, v, &n) || n < m->least || n > m->most)
            return false;
        *m->number = n;
    } else if (m->text) {
        if (!json_is_string(v))
            return false;
        *m->text = body_lib(x)->json_string_value(v);
    } else if (m->flag) {
        if (!json_is_boolean(v))
            return false;
        *m->flag = json_is_true(v);
    } else {
        if (!json_is_array(v))
            return false;
        *m->array = v;
    }
    return true;
}

static bool body_refuse(struct web_exchange *x, const struct body_member *m, const json_t *v)
{
    char given[80] = "";
    if (json_is_integer(v))
        snprintf(given, sizeof given, ", not %" PRId64,
                 (int64_t)body_lib(x)->json_integer_value(v));
    else if (json_is_string(v))
        snprintf(given, sizeof given, ", not \"%.64s\"", body_lib(x)->json_string_value(v));
    if (m->number)
        return clave__web_bad_request(
            x, "\"%s\" must be a whole number from %" PRId64 " to %" PRId64 "%s", m->name, m->least,
            m->most, given);
    const char *type = m->text ? "a string" : m->flag ? "true or false" : "an array";
    return clave__web_bad_request(x, "\"%s\" must be %s%s", m->name, type, given);
}

bool clave__web_read_object(struct web_exchange *x, json_t *o, const struct body_member *members,
                            size_t n)
{
    const struct jansson *json = body_lib(x);
    for (void *at = json->json_object_iter(o); at; at = json->json_object_iter_next(o, at)) {
        const char *key = json->json_object_iter_key(at);
        json_t *v = json->json_object_iter_value(at);
        size_t i = 0;
        while (i < n && strcmp(members[i].name, key) != 0)
            i++;
        if (i == n)
            return clave__web_bad_request(x, "unknown member \"%.64s\": see /v1/openapi.json", key);
        if (!json_is_null(v) && !body_take(x, &members[i], v))
            return body_refuse(x, &members[i], v);
    }
    return true;
}

bool clave__web_read_body(struct web_exchange *x, const struct body_member *members, size_t n)
{
    json_t *body = clave__web_body(x);
    return body && clave__web_read_object(x, body, members, n);
}

/* ==== the query, and paths of znodes ========================================================== */

bool clave__web_parse_int(const char *text, int64_t *out)
{
    size_t i = text[0] == '-' ? 1 : 0;
    int64_t n = 0;
    if (text[i] == '\0')
        return false;
    for (; text[i] >= '0' && text[i] <= '9'; i++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_sub_overflow(n, text[i] - '0', &n))
            return false;
    if (text[i] != '\0' || (text[0] != '-' && n == INT64_MIN))
        return false;
    *out = text[0] == '-' ? n : -n;
    return true;
}

bool clave__query_int(struct web_exchange *x, const char *name, int64_t least, int64_t most,
                      int64_t *out)
{
    assert(least <= most);
    const char *text = clave__web_query(x, name);
    int64_t n;
    if (!text)
        return true;
    if (!clave__web_parse_int(text, &n) || n < least || n > most)
        return clave__web_bad_request(x, "%s is a number from %" PRId64 " to %" PRId64, name, least,
                                      most);
    *out = n;
    return true;
}

static bool request_args_is_path(struct web_exchange *x, const char *what, const char *path)
{
    const char *fault = clave__path_fault(path, strlen(path), false);
    if (fault)
        clave__web_refuse(x, 400, CLAVE_EPATH, path, "%s is not the path of a znode: it %s", what,
                          fault);
    return !fault;
}

bool clave__query_path(struct web_exchange *x, const char *name)
{
    const char *path = clave__web_query(x, name);
    return !path || request_args_is_path(x, name, path);
}

bool clave__param_path(struct web_exchange *x)
{
    assert(x->params[0]); /* the route's pattern has it */
    return request_args_is_path(x, x->params[0], x->params[0]);
}

/* ==== Prefer ================================================================================== */

enum { MOST_S = 1000000 };

static const char blanks[] = " \t";

/* Returns the end of a token or quoted string. */
static const char *prefer_end_of_word(const char *at)
{
    if (*at != '"')
        return at + strcspn(at, " \t,;=\"\\");
    for (at++; *at && *at != '"'; at++)
        if (*at == '\\' && at[1])
            at++;
    return *at ? at + 1 : at;
}

/* NAME, NAME=VALUE; [value, end) has the quotes that it was written with. Returns what follows,
 * after blanks. */
static const char *prefer_part(const char *at, const char **value, const char **end)
{
    at = prefer_end_of_word(at);
    at += strspn(at, blanks);
    *value = *end = at;
    if (*at == '=') {
        *value = at + 1 + strspn(at + 1, blanks);
        at = *end = prefer_end_of_word(*value);
    }
    return at + strspn(at, blanks);
}

/* A number of seconds (delta-seconds), in ms; -1: it is not one. */
static int64_t prefer_seconds(const char *at, const char *end)
{
    int64_t s = 0;
    bool quoted = end - at >= 2 && *at == '"' && end[-1] == '"', any = false;
    for (at += quoted, end -= quoted; at < end; at++) {
        if (quoted && *at == '\\') /* "1\0" is 10 */
            at++;
        if (*at < '0' || *at > '9')
            return -1;
        s = s * 10 + (*at - '0');
        s = s < MOST_S ? s : MOST_S;
        any = true;
    }
    return any ? s * 1000 : -1;
}

bool clave__prefer_find_wait(const char *at, int64_t *ms)
{
    static const char wait[] = "wait";
    for (at += strspn(at, " \t,"); *at; at += strspn(at, " \t,")) {
        const char *name = at, *value, *end, *other;
        at = prefer_part(at, &value, &end);
        while (*at == ';') { /* parameters of the preference */
            at += 1 + strspn(at + 1, blanks);
            at = prefer_part(at, &other, &other);
        }
        bool is_whole = *at == ',' || *at == '\0';
        at += strcspn(at, ",");
        if (prefer_end_of_word(name) - name != sizeof wait - 1 ||
            !clave__http_begins(name, wait, sizeof wait - 1))
            continue;
        *ms = is_whole ? prefer_seconds(value, end) : -1;
        return true;
    }
    return false;
}

int64_t clave__web_prefer_wait(const struct web_exchange *x)
{
    const char *prefer;
    int64_t ms = -1;
    for (size_t i = 0; (prefer = clave__web_header_at(x, "Prefer", i)); i++)
        if (clave__prefer_find_wait(prefer, &ms))
            break;
    return ms;
}

/* ==== If-Match, If-None-Match ================================================================= */

/* "3-4294967301", or "3"; without the quotes it is easier to write in a shell. A write can be made
 * to depend on the version only. */
static bool conditional_version(const char *tag, int32_t *out)
{
    char digits[12];
    int64_t n = 0;
    size_t quote = tag[0] == '"', len = strcspn(tag + quote, "-\"");
    const char *rest = tag + quote + len;
    rest += *rest == '-' ? 1 + strspn(rest + 1, "0123456789") : 0;
    if (len >= sizeof digits || strcmp(rest, quote ? "\"" : "") != 0)
        return false;
    memcpy(digits, tag + quote, len);
    digits[len] = '\0';
    if (!clave__web_parse_int(digits, &n) || n < 0 || n > INT32_MAX)
        return false;
    *out = (int32_t)n;
    return true;
}

bool clave__condition_read(struct web_exchange *x, struct condition *out)
{
    const char *match = clave__web_header(x, "If-Match");
    const char *none = clave__web_header(x, "If-None-Match");
    *out = (struct condition){.version = -1};
    if (match && none)
        return clave__web_bad_request(x, "If-Match and If-None-Match exclude each other");
    if (match && strcmp(match, "*") != 0 && !conditional_version(match, &out->version))
        return clave__web_bad_request(x, "If-Match must be a version, \"3\", or *");
    if (none && strcmp(none, "*") != 0)
        return clave__web_bad_request(x, "If-None-Match must be *");
    out->must_exist = match != NULL;
    out->must_not_exist = none != NULL;
    return true;
}

bool clave__condition_failed(const struct condition *k, clave_err err)
{
    return (err == CLAVE_EBADVERSION) || (err == CLAVE_ENODEEXISTS && k->must_not_exist) ||
           (err == CLAVE_ENONODE && k->must_exist);
}

/* A list of tags is searched for as a whole: no tag has a quote in it. */
bool clave__condition_knows(const struct web_exchange *x, const char *etag, const char *none)
{
    assert(etag[0] == '"' && none[0] == '"');
    const char *given = clave__web_header(x, "If-None-Match");
    if (!given)
        return false;
    if (strcmp(given, "*") == 0)
        return strcmp(etag, none) != 0;
    return strstr(given, etag) != NULL;
}
