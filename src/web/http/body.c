/* body.c - see body.h. Called by web.c, head_checks.c and handlers. Invariant: of jansson only the
 * functions of the driver's table are used. */
#include "web/http/body.h"
#include "web/http/request_limits.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "web/http/problem.h"
#include "web/http/request_args.h"

static const struct problem bad_body = {.status = 400, .err = CLAVE_EINVAL};

/* ---- as it arrives -------------------------------------------------------------------------- */

bool clave__web_receive(struct web_exchange *x, const void *p, size_t n)
{
    size_t all = clave__web_body_len(x) + n;
    assert(!x->body); /* it is parsed when it is complete */
    if (!clave__web_may_receive(x, all < INT64_MAX ? (int64_t)all : INT64_MAX))
        return false;
    /* All at once where its length is known, so that it takes no more than that. */
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
    for (; given && *type; type++, given++) {
        char c = *given >= 'A' && *given <= 'Z' ? (char)(*given | 0x20) : *given;
        if (c != *type)
            return false;
    }
    return given && (*given == '\0' || *given == ';' || *given == ' ');
}

/* What jansson takes for it at most, by the characters that values begin with or follow. An empty
 * object has a table of 8 places. */
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
        clave__web_problem(x, &bad_body, "the body is not JSON: line %d, column %d: %s", fault.line,
                           fault.column, fault.text);
    else if (!json_is_object(x->body))
        clave__web_problem(x, &bad_body, "the body is not a JSON object");
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
        clave__web_problem(x, &(struct problem){.status = 415, .err = CLAVE_EINVAL},
                           "the body's Content-Type must be application/json");
        return NULL;
    }
    return body_parse(x, clave__web_body_bytes(x), clave__web_body_len(x));
}

json_t *clave__web_body_of_any_type(struct web_exchange *x)
{
    return x->body ? x->body : body_parse(x, clave__web_body_bytes(x), clave__web_body_len(x));
}

/* NULL: missing. */
static json_t *body_member(struct web_exchange *x, const json_t *o, const char *key)
{
    assert(json_is_object(o));
    json_t *v = body_lib(x)->json_object_get(o, key);
    return json_is_null(v) ? NULL : v;
}

bool clave__body_text(struct web_exchange *x, const json_t *o, const char *key, const char **out)
{
    json_t *v = body_member(x, o, key);
    if (!v)
        return true;
    if (!json_is_string(v)) {
        clave__web_problem(x, &bad_body, "\"%s\" must be a string", key);
        return false;
    }
    *out = body_lib(x)->json_string_value(v);
    return true;
}

bool clave__body_flag(struct web_exchange *x, const json_t *o, const char *key, bool *out)
{
    json_t *v = body_member(x, o, key);
    if (!v)
        return true;
    if (!json_is_boolean(v)) {
        clave__web_problem(x, &bad_body, "\"%s\" must be true or false", key);
        return false;
    }
    *out = json_is_true(v);
    return true;
}

/* false: it is no number of 64 bits. */
static bool body_number(struct web_exchange *x, const json_t *v, int64_t *out)
{
    if (json_is_integer(v)) {
        *out = body_lib(x)->json_integer_value(v);
        return true;
    }
    return json_is_string(v) && clave__web_parse_int(body_lib(x)->json_string_value(v), out);
}

bool clave__body_int(struct web_exchange *x, const json_t *o, const char *key,
                     const int64_t bounds[2], int64_t *out)
{
    assert(bounds[0] <= bounds[1]);
    json_t *v = body_member(x, o, key);
    int64_t n = 0;
    if (!v)
        return true;
    if (!body_number(x, v, &n) || n < bounds[0] || n > bounds[1]) {
        clave__web_problem(x, &bad_body,
                           "\"%s\" must be a whole number from %" PRId64 " to %" PRId64, key,
                           bounds[0], bounds[1]);
        return false;
    }
    *out = n;
    return true;
}

bool clave__body_array(struct web_exchange *x, const json_t *o, const char *key, const json_t **out)
{
    json_t *v = body_member(x, o, key);
    if (v && !json_is_array(v)) {
        clave__web_problem(x, &bad_body, "\"%s\" must be an array", key);
        return false;
    }
    *out = v;
    return true;
}

bool clave__body_only(struct web_exchange *x, json_t *o, const char *const *keys)
{
    const struct jansson *json = body_lib(x);
    for (void *at = json->json_object_iter(o); at; at = json->json_object_iter_next(o, at)) {
        const char *key = json->json_object_iter_key(at);
        size_t i = 0;
        while (keys[i] && strcmp(keys[i], key) != 0)
            i++;
        if (!keys[i]) {
            clave__web_problem(x, &bad_body, "unknown member \"%.64s\": see /v1/openapi.json", key);
            return false;
        }
    }
    return true;
}
