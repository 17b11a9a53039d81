/* contrib_rest_format.c - see contrib_rest_format.h. Called by contrib_rest.c and
 * contrib_rest_sessions_api.c. */
#include "web/api/contrib/contrib_rest_format.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "web/http/answer.h"
#include "web/http/forwarded.h"
#include "web/http/problem.h"

/* ---- which one ------------------------------------------------------------------------------ */

static const char *const rest_types[] = {[REST_JSON] = "application/json",
                                         [REST_JAVASCRIPT] = "application/javascript",
                                         [REST_XML] = "application/xml",
                                         [REST_OCTETS] = "application/octet-stream"};

static bool type_format(const char *type, size_t n, enum rest_format *out)
{
    for (int f = REST_JSON; f <= REST_OCTETS; f++) {
        if (strlen(rest_types[f]) == n && strncmp(rest_types[f], type, n) == 0) {
            *out = (enum rest_format)f;
            return true;
        }
    }
    *out = REST_JSON;
    return (n == 3 && strncmp(type, "*/*", n) == 0) ||
           (n == 13 && strncmp(type, "application/*", n) == 0);
}

static bool rest_accepted(const char *accept, enum rest_format *out)
{
    *out = REST_JSON;
    for (const char *at = accept; at && *at;) {
        at += strspn(at, " ,");
        if (type_format(at, strcspn(at, " ,;"), out))
            return true;
        at += strcspn(at, ",");
    }
    return !accept;
}

/* The function that a script of the answer calls; "": none. NULL: it is not a name, and stands in
 * no answer, not even in one that says so. */
static const char *rest_callback(const struct web_exchange *x)
{
    static const char fine[] = "_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const char *callback = clave__web_query(x, "callback");
    if (!callback)
        return "";
    return callback[strspn(callback, fine)] == '\0' ? callback : NULL;
}

bool clave__rest_format(struct web_exchange *x, enum rest_format *out)
{
    if (!rest_accepted(clave__web_header(x, "Accept"), out)) {
        clave__web_problem(x, &(struct problem){.status = 406, .err = CLAVE_EINVAL},
                           "there are application/json, application/javascript, application/xml "
                           "and application/octet-stream");
        return false;
    }
    if (rest_callback(x))
        return true;
    clave__rest_fault(x, 400, "a callback has letters, digits and _ only");
    return false;
}

/* ---- JSON and XML --------------------------------------------------------------------------- */

static void rest_put(struct web_exchange *x, const char *text)
{
    if (x->json.err == CLAVE_OK)
        x->json.err = clave__buf_append(&x->answer.body, text, strlen(text));
}

static void rest_put_escaped(struct web_exchange *x, const char *text)
{
    for (; *text; text++) {
        const char one[2] = {*text, '\0'};
        rest_put(x, *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : *text == '&' ? "&amp;" : one);
    }
}

static void rest_put_element(struct web_exchange *x, const char *name, const char *text)
{
    rest_put(x, "<");
    rest_put(x, name);
    rest_put(x, ">");
    rest_put_escaped(x, text);
    rest_put(x, "</");
    rest_put(x, name);
    rest_put(x, ">");
}

static void rest_put_xml(struct web_exchange *x, const struct rest_document *d)
{
    rest_put(x, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<");
    rest_put(x, d->root);
    rest_put(x, ">");
    for (size_t i = 0; i < d->nfields; i++) {
        char digits[24];
        snprintf(digits, sizeof digits, "%" PRId64, d->fields[i].number);
        rest_put_element(x, d->fields[i].name, d->fields[i].text ? d->fields[i].text : digits);
    }
    if (d->children) {
        rest_put(x, "<children>");
        for (size_t i = 0; i < d->nchildren; i++)
            rest_put_element(x, "child", d->children[i]);
        rest_put(x, "</children>");
    }
    rest_put(x, "</");
    rest_put(x, d->root);
    rest_put(x, ">\n");
}

static void rest_put_json(struct web_exchange *x, const struct rest_document *d)
{
    struct json *j = &x->json;
    clave__json_open(j, NULL, '{');
    for (size_t i = 0; i < d->nfields; i++) {
        if (d->fields[i].text)
            clave__json_string(j, d->fields[i].name, d->fields[i].text);
        else
            clave__json_int(j, d->fields[i].name, d->fields[i].number);
    }
    if (d->children) {
        clave__json_open(j, "children", '[');
        for (size_t i = 0; i < d->nchildren; i++)
            clave__json_string(j, NULL, d->children[i]);
        clave__json_close(j, ']');
    }
    clave__json_close(j, '}');
}

void clave__rest_add_text(struct rest_document *d, const char *name, const char *text)
{
    assert(d->nfields < sizeof d->fields / sizeof *d->fields);
    d->fields[d->nfields++] = (struct rest_field){.name = name, .text = text};
}

void clave__rest_add_number(struct rest_document *d, const char *name, int64_t number)
{
    assert(d->nfields < sizeof d->fields / sizeof *d->fields);
    d->fields[d->nfields++] = (struct rest_field){.name = name, .number = number};
}

void clave__rest_answer(struct web_exchange *x, enum rest_format f, unsigned status,
                        const struct rest_document *d)
{
    assert(f != REST_OCTETS);
    const char *callback = rest_callback(x);
    if (f == REST_XML) {
        rest_put_xml(x, d);
    } else if (f == REST_JAVASCRIPT && callback && *callback) {
        rest_put(x, callback);
        rest_put(x, "(");
        rest_put_json(x, d);
        rest_put(x, ")");
    } else {
        rest_put_json(x, d);
    }
    clave__web_answer_text(x, status, rest_types[f]);
}

/* ---- what went wrong ------------------------------------------------------------------------ */

void clave__rest_fault(struct web_exchange *x, unsigned status, const char *fmt, ...)
{
    enum rest_format f;
    char message[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    rest_accepted(clave__web_header(x, "Accept"), &f);
    const char *request = clave__web_sprintf(x, "%s %s", x->q->method, x->target.path);
    struct rest_document d = {.root = "error"};
    clave__rest_add_text(&d, "request", request ? request : "");
    clave__rest_add_text(&d, "message", message);
    if (f != REST_OCTETS) {
        clave__rest_answer(x, f, status, &d);
        return;
    }
    rest_put(x, request ? request : "");
    rest_put(x, ": ");
    rest_put(x, message);
    clave__web_answer_text(x, status, rest_types[f]);
}

void clave__rest_fault_err(struct web_exchange *x, clave_err err, const char *path, bool creates)
{
    static const struct {
        clave_err err;
        unsigned status;
    } table[] = {
        {CLAVE_ENONODE, 404},     {CLAVE_ENODEEXISTS, 409}, {CLAVE_ENOTEMPTY, 409},
        {CLAVE_EBADVERSION, 412}, {CLAVE_EINVALIDACL, 400}, {CLAVE_EBADARGS, 400},
        {CLAVE_EPATH, 400},       {CLAVE_EINVAL, 400},      {CLAVE_EAUTHFAILED, 401},
        {CLAVE_ETOOBIG, 413},     {CLAVE_ECONNLOSS, 503},   {CLAVE_EEXPIRED, 503},
        {CLAVE_ENOTSENT, 503},    {CLAVE_ECLOSED, 503},     {CLAVE_EUNREACHABLE, 503},
        {CLAVE_ENOMEM, 503},      {CLAVE_EOPTIMEOUT, 504},
    };
    unsigned status = 502;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        status = table[i].err == err ? table[i].status : status;
    if (err == CLAVE_ENONODE && creates)
        status = 409;
    clave__rest_fault(x, status, "%s: %s", path, clave_strerror(err));
}

const char *clave__rest_uri(struct web_exchange *x)
{
    const struct web_access *a = x->web->o.access;
    const char *host = clave__web_header(x, "Host"), *prefix = clave__web_prefix(x);
    if (x->is_passed_on && a && a->norigins > 0)
        return clave__web_sprintf(x, "%s%s%s", a->origins[0], prefix, x->target.path);
    return clave__web_sprintf(x, "%s://%s%s%s", x->peer.is_tls ? "https" : "http",
                              host ? host : "localhost", prefix, x->target.path);
}
