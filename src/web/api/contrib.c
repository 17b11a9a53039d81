/* contrib.c - /znodes/v1 and /sessions/v1 as Apache's contrib REST gateway has them (SPEC, version
 * 2), for programs that were written for it; others are better served by /v1. A session of this
 * gateway is known by a UUID, which is the only proof that its client has, and ends when it was not
 * used for the time that its maker gave. It is an HTTP session whose client counts as present all
 * the time. Answers are JSON, JSON in a function call, XML or bytes, as the Accept header asks. */
#include "web/api/api.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"

/* ==== formats ================================================================================= */

enum rest_format { REST_JSON, REST_JAVASCRIPT, REST_XML, REST_OCTETS };

struct rest_field {
    const char *name;
    const char *text; /* NULL: the number */
    int64_t number;
};
struct rest_document {
    const char *root; /* of XML */
    struct rest_field fields[16];
    size_t nfields;
    const char *const *children; /* "children"; NULL: it has none */
    size_t nchildren;
};

__attribute__((format(printf, 3, 4))) static void rest_fault(struct web_exchange *x,
                                                             unsigned status, const char *fmt, ...);

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

/* The name of the function that the answer calls as a script; "": none. NULL: the argument is not a
 * name, and must be in no answer, not even in the one that refuses it. */
static const char *rest_callback(const struct web_exchange *x)
{
    static const char fine[] = "_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const char *callback = clave__web_query(x, "callback");
    if (!callback)
        return "";
    return callback[strspn(callback, fine)] == '\0' ? callback : NULL;
}

static bool rest_format(struct web_exchange *x, enum rest_format *out)
{
    if (!rest_accepted(clave__web_header(x, "Accept"), out))
        return clave__web_refuse(
            x, 406, CLAVE_EINVAL, NULL,
            "there are application/json, application/javascript, application/xml "
            "and application/octet-stream");
    if (rest_callback(x))
        return true;
    rest_fault(x, 400, "a callback has letters, digits and _ only");
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

static void rest_add_text(struct rest_document *d, const char *name, const char *text)
{
    assert(d->nfields < sizeof d->fields / sizeof *d->fields);
    d->fields[d->nfields++] = (struct rest_field){.name = name, .text = text};
}

static void rest_add_number(struct rest_document *d, const char *name, int64_t number)
{
    assert(d->nfields < sizeof d->fields / sizeof *d->fields);
    d->fields[d->nfields++] = (struct rest_field){.name = name, .number = number};
}

static void rest_answer(struct web_exchange *x, enum rest_format f, unsigned status,
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

static void rest_fault(struct web_exchange *x, unsigned status, const char *fmt, ...)
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
    rest_add_text(&d, "request", request ? request : "");
    rest_add_text(&d, "message", message);
    if (f != REST_OCTETS) {
        rest_answer(x, f, status, &d);
        return;
    }
    rest_put(x, request ? request : "");
    rest_put(x, ": ");
    rest_put(x, message);
    clave__web_answer_text(x, status, rest_types[f]);
}

static void rest_fault_err(struct web_exchange *x, clave_err err, const char *path, bool creates)
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
    rest_fault(x, status, "%s: %s", path, clave_strerror(err));
}

static const char *rest_uri(struct web_exchange *x)
{
    const struct web_access *a = x->web->o.access;
    const char *host = clave__web_header(x, "Host"), *prefix = clave__web_prefix(x);
    if (x->is_passed_on && a && a->norigins > 0)
        return clave__web_sprintf(x, "%s%s%s", a->origins[0], prefix, x->target.path);
    return clave__web_sprintf(x, "%s://%s%s%s", x->peer.is_tls ? "https" : "http",
                              host ? host : "localhost", prefix, x->target.path);
}

/* ==== sessions ================================================================================ */

struct contrib_rest_session {
    struct list link; /* of struct web.rest_sessions */
    struct web *web;
    struct http_session *s;
    char uuid[CLAVE_UUID_TEXT + 1];
    int32_t expire_ms;
    struct timer timer; /* ends the session */
    struct session_wait wait;
    bool closing;
    struct web_exchange *x; /* the request that makes it or, while `closing`, ends it; NULL: none
                             * that waits for an answer */
};

static void rest_answer_made(struct web_exchange *x, struct contrib_rest_session *r, clave_err err);

static void contrib_rest_session_free(struct contrib_rest_session *r)
{
    clave__web_timer_clear(r->web, &r->timer);
    list_remove(&r->link);
    clave__mem_free(&r->web->mem, r);
}

/* The session was made, or could not be made: answers the request. */
static void contrib_rest_session_tell(struct contrib_rest_session *r, clave_err err)
{
    struct web_exchange *x = r->x;
    r->x = NULL;
    if (!x)
        return;
    clave__web_disown(x);
    rest_answer_made(x, r, err);
}

static void contrib_rest_session_use(struct contrib_rest_session *r)
{
    clave__web_timer_set(r->web, &r->timer, r->web->now + r->expire_ms);
}

static void on_rest_session_closed(struct session_wait *w, clave_err err)
{
    struct contrib_rest_session *r = LIST_ENTRY(w, struct contrib_rest_session, wait);
    struct web_exchange *x = r->x;
    clave__http_session_leave(r->s);
    contrib_rest_session_free(r);
    if (!x)
        return;
    clave__web_disown(x);
    if (err == CLAVE_ETIMEDOUT) /* no server has said that it is over */
        rest_fault_err(x, CLAVE_ECONNLOSS, "session", false);
    else
        clave__web_answer_empty(x, 204);
}

static void on_rest_session_open(struct session_wait *w, clave_err err)
{
    struct contrib_rest_session *r = LIST_ENTRY(w, struct contrib_rest_session, wait);
    if (err == CLAVE_OK) {
        contrib_rest_session_use(r);
        contrib_rest_session_tell(r, CLAVE_OK);
        return;
    }
    clave__http_session_leave(r->s);
    contrib_rest_session_tell(r, err);
    contrib_rest_session_free(r);
}

/* Ends the session for this request, which is answered then (NULL: for no request). */
static void contrib_rest_session_close(struct contrib_rest_session *r, struct web_exchange *x)
{
    assert(!r->closing);
    r->closing = true;
    r->x = x;
    clave__web_timer_clear(r->web, &r->timer);
    clave__session_wait_cancel(&r->wait); /* the session may still be opening */
    r->wait.done = on_rest_session_closed;
    clave__http_session_close(r->s, &r->wait);
}

static void on_rest_session_expired(struct timer *t, int64_t now)
{
    (void)now;
    contrib_rest_session_close(LIST_ENTRY(t, struct contrib_rest_session, timer), NULL);
}

/* Makes a session for this request, which is answered then. */
static clave_err contrib_rest_session_open(struct web_exchange *x, const struct session_terms *t)
{
    struct web *w = x->web;
    struct contrib_rest_session *r = clave__mem_zalloc(&w->mem, sizeof *r);
    clave_err err = r ? clave__http_session_open(w->sessions, t, &r->s) : CLAVE_ENOMEM;
    if (err != CLAVE_OK) {
        clave__mem_free(&w->mem, r);
        return err;
    }
    x->state = r;
    r->web = w;
    r->x = x;
    r->expire_ms = t->ttl_ms;
    r->wait.done = on_rest_session_open;
    clave__rand_uuid(&w->rand, r->uuid);
    clave__seal_uuid(&w->sessions->key, r->uuid); /* other random numbers of this generator are
                                                   * visible to clients */
    clave__timer_init(&r->timer, on_rest_session_expired);
    list_push_back(&w->rest_sessions, &r->link);
    clave__http_session_await(r->s, &r->wait);
    return CLAVE_OK;
}

static struct contrib_rest_session *contrib_rest_session_find(struct web *w, const char *uuid)
{
    for (struct list *l = w->rest_sessions.next; l != &w->rest_sessions; l = l->next) {
        struct contrib_rest_session *r = LIST_ENTRY(l, struct contrib_rest_session, link);
        if (strcmp(r->uuid, uuid) != 0)
            continue;
        if (r->closing || !clave__http_session_is_live(r->s))
            return NULL;
        contrib_rest_session_use(r);
        return r;
    }
    return NULL;
}

void clave__rest_sessions_free(struct web *w)
{
    while (!list_empty(&w->rest_sessions)) {
        struct contrib_rest_session *r =
            LIST_ENTRY(w->rest_sessions.next, struct contrib_rest_session, link);
        clave__session_wait_cancel(&r->wait);
        contrib_rest_session_free(r);
    }
}

/* ==== /znodes/v1 ============================================================================== */

struct rest_call;
typedef void rest_done(struct web_exchange *x, const struct rest_call *k, const clave_result *res);

struct rest_call {
    enum rest_format format;
    rest_done *done; /* answers with the servers' result */
    bool creates;
    const char *path, *uri;
    const void *data; /* NULL: no data, which is not the same as empty data */
    size_t len;
    clave_create_mode mode;
    int32_t version;
};

static bool rest_flag(const struct web_exchange *x, const char *name)
{
    const char *value = clave__web_query(x, name);
    return value && strcmp(value, "true") == 0;
}

/* ---- documents ------------------------------------------------------------------------------ */

static void rest_put_stat(struct rest_document *d, const struct rest_call *k, const clave_stat *st)
{
    rest_add_text(d, "path", k->path);
    rest_add_text(d, "uri", k->uri);
    rest_add_number(d, "czxid", st->czxid);
    rest_add_number(d, "mzxid", st->mzxid);
    rest_add_number(d, "ctime", st->ctime);
    rest_add_number(d, "mtime", st->mtime);
    rest_add_number(d, "version", st->version);
    rest_add_number(d, "cversion", st->cversion);
    rest_add_number(d, "aversion", st->aversion);
    rest_add_number(d, "ephemeralOwner", st->ephemeral_owner);
    rest_add_number(d, "dataLength", st->data_length);
    rest_add_number(d, "numChildren", st->num_children);
    rest_add_number(d, "pzxid", st->pzxid);
}

/* Adds "data64", or "dataUtf8" if that was requested; neither if the node has no data. */
static bool rest_put_data(struct web_exchange *x, struct rest_document *d, const clave_result *res)
{
    const char *format = clave__web_query(x, "dataformat");
    bool utf8 = format && strcmp(format, "utf8") == 0;
    char *text;
    if (!res->data)
        return true;
    if (utf8) {
        text = clave__web_strndup(x, res->data, res->len);
    } else {
        text = clave__web_alloc(x, BASE64_LEN(res->len) + 1);
        if (text)
            clave__base64(res->data, res->len, text);
    }
    if (text)
        rest_add_text(d, utf8 ? "dataUtf8" : "data64", text);
    return text != NULL;
}

/* ---- requests ------------------------------------------------------------------------------- */

static void on_rest_done(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    (void)c;
    if (!clave__web_expected(x))
        return;
    const struct rest_call *k = x->state;
    if (res->err == CLAVE_OK)
        k->done(x, k, res);
    else
        rest_fault_err(x, res->err, k->path, k->creates);
}

static void rest_submitted(struct web_exchange *x, clave_err err)
{
    const struct rest_call *k = x->state;
    if (err == CLAVE_OK) {
        clave__web_expect(x);
        return;
    }
    rest_fault_err(x, err, k->path, false);
}

static bool rest_read_version(struct web_exchange *x, struct rest_call *k)
{
    const char *text = clave__web_query(x, "version");
    int64_t n = -1;
    if (text && (!clave__web_parse_int(text, &n) || n < -1 || n > INT32_MAX)) {
        rest_fault(x, 400, "%s bad version %.64s", k->path, text);
        return false;
    }
    k->version = (int32_t)n;
    return true;
}

/* NULL: it has answered. */
static struct rest_call *rest_call_new(struct web_exchange *x, rest_done *done)
{
    struct rest_call *k = clave__web_alloc(x, sizeof *k);
    const char *uri = rest_uri(x);
    if (!k || !uri) {
        rest_fault_err(x, CLAVE_ENOMEM, x->params[0], false);
        return NULL;
    }
    bool null = rest_flag(x, "null");
    *k = (struct rest_call){.done = done,
                            .path = x->params[0],
                            .uri = uri,
                            .data = null ? NULL : clave__web_body_bytes(x),
                            .len = null ? 0 : clave__web_body_len(x)};
    x->state = k;
    if (!rest_format(x, &k->format))
        return NULL;
    if (clave__web_body_len(x) > 0 && clave__web_header(x, "Content-Type") &&
        !clave__web_has_type(x, "application/octet-stream")) {
        rest_fault(x, 415, "the Content-Type must be application/octet-stream");
        return NULL;
    }
    return rest_read_version(x, k) ? k : NULL;
}

/* Runs the request with the client of the session that it names, or with the engine's own. */
static void rest_run(struct web_exchange *x, request_client *go)
{
    const char *uuid = clave__web_query(x, "session");
    struct contrib_rest_session *r =
        uuid && uuid[0] ? contrib_rest_session_find(x->web, uuid) : NULL;
    if (!uuid || !uuid[0]) {
        clave__request_client(x, go);
    } else if (!r) {
        rest_fault(x, 401, "session %.64s not found", uuid);
    } else if (clave__web_may_call(x)) {
        go(x, r->s->client);
        clave__http_session_flush(r->s);
    }
}

/* ---- GET, HEAD ------------------------------------------------------------------------------ */

static void rest_data(struct web_exchange *x, const struct rest_call *k, const clave_result *res)
{
    struct rest_document d = {.root = "stat"};
    if (k->format == REST_OCTETS && (!res->data || clave__web_is_method(x, "HEAD"))) {
        clave__web_answer_empty(x, 204);
    } else if (k->format == REST_OCTETS) {
        clave__web_answer_bytes(x, 200, "application/octet-stream", res->data, res->len);
    } else {
        rest_put_stat(&d, k, res->stat);
        if (rest_put_data(x, &d, res))
            rest_answer(x, k->format, 200, &d);
        else
            rest_fault_err(x, CLAVE_ENOMEM, k->path, false);
    }
}

static void rest_children(struct web_exchange *x, const struct rest_call *k,
                          const clave_result *res)
{
    static const char *const none[] = {NULL};
    struct rest_document d = {.root = "child"};
    size_t n = strlen(k->uri);
    const char *slash = n > 0 && k->uri[n - 1] == '/' ? "" : "/";
    const char *template = clave__web_sprintf(x, "%s%s{child}", k->uri, slash);
    rest_add_text(&d, "path", k->path);
    rest_add_text(&d, "uri", k->uri);
    rest_add_text(&d, "child_uri_template", template ? template : "");
    d.children = res->nnames ? res->names : none;
    d.nchildren = res->nnames;
    rest_answer(x, k->format, 200, &d);
}

static void rest_go_get(struct web_exchange *x, clave_async_client *c)
{
    const struct rest_call *k = x->state;
    rest_submitted(x, k->done == rest_children
                          ? clave_async_children(c, k->path, NULL, on_rest_done, x)
                          : clave_async_get(c, k->path, NULL, on_rest_done, x));
}

void clave__web_rest_get(struct web_exchange *x)
{
    struct rest_call *k = rest_call_new(x, rest_data);
    const char *view = clave__web_query(x, "view");
    if (!k)
        return;
    if (view && strcmp(view, "children") == 0 && k->format != REST_OCTETS)
        k->done = rest_children;
    rest_run(x, rest_go_get);
}

/* ---- PUT ------------------------------------------------------------------------------------ */

static void rest_set(struct web_exchange *x, const struct rest_call *k, const clave_result *res)
{
    struct rest_document d = {.root = "stat"};
    if (k->format == REST_OCTETS) {
        clave__web_answer_empty(x, 204);
        return;
    }
    rest_put_stat(&d, k, res->stat);
    rest_answer(x, k->format, 200, &d);
}

static void rest_go_set(struct web_exchange *x, clave_async_client *c)
{
    const struct rest_call *k = x->state;
    rest_submitted(x, clave_async_set(c, k->path, k->data, k->len, k->version, on_rest_done, x));
}

void clave__web_rest_put(struct web_exchange *x)
{
    if (rest_call_new(x, rest_set))
        rest_run(x, rest_go_set);
}

/* ---- POST ----------------------------------------------------------------------------------- */

static void rest_created(struct web_exchange *x, const struct rest_call *k, const clave_result *res)
{
    struct rest_document d = {.root = "path"};
    char *encoded = clave__web_alloc(x, 3 * strlen(res->path) + 1);
    if (encoded) {
        clave__percent_encode(encoded, res->path);
        clave__web_set_header(x, "Location", "%s/znodes/v1%s", clave__web_prefix(x), encoded);
    }
    if (k->format == REST_OCTETS) {
        clave__web_answer_bytes(x, 201, "application/octet-stream", res->path, strlen(res->path));
        return;
    }
    rest_add_text(&d, "path", res->path);
    rest_add_text(&d, "uri", k->uri);
    rest_answer(x, k->format, 201, &d);
}

static void rest_go_create(struct web_exchange *x, clave_async_client *c)
{
    const struct rest_call *k = x->state;
    clave_create_options o = CLAVE_CREATE_OPTIONS_INIT;
    o.mode = k->mode;
    rest_submitted(x, clave_async_create(c, k->path, k->data, k->len, &o, on_rest_done, x));
}

void clave__web_rest_post(struct web_exchange *x)
{
    const char *op = clave__web_query(x, "op"), *name = clave__web_query(x, "name");
    struct rest_call *k = rest_call_new(x, rest_created);
    if (!k)
        return;
    k->creates = true;
    bool ephemeral = rest_flag(x, "ephemeral"), sequence = rest_flag(x, "sequence");
    const char *session = clave__web_query(x, "session");
    k->mode = ephemeral  ? sequence ? CLAVE_EPHEMERAL_SEQUENTIAL : CLAVE_EPHEMERAL
              : sequence ? CLAVE_PERSISTENT_SEQUENTIAL
                         : CLAVE_PERSISTENT;
    char *path = clave__web_child(x, k->path, name ? name : "");
    if (op && strcmp(op, "create") != 0)
        rest_fault(x, 400, "%s bad operation %.64s", k->path, op);
    else if (!name || strchr(name, '/'))
        rest_fault(x, 400, "%s: \"name\" must be the name of a child", k->path);
    else if (ephemeral && !(session && session[0]))
        rest_fault(x, 400, "%s: an ephemeral node needs a session", k->path);
    else if (!path)
        rest_fault_err(x, CLAVE_ENOMEM, k->path, true);
    else {
        k->path = path;
        rest_run(x, rest_go_create);
    }
}

/* ---- DELETE --------------------------------------------------------------------------------- */

static void rest_deleted(struct web_exchange *x, const struct rest_call *k, const clave_result *res)
{
    (void)k;
    (void)res;
    clave__web_answer_empty(x, 204);
}

static void rest_go_delete(struct web_exchange *x, clave_async_client *c)
{
    const struct rest_call *k = x->state;
    rest_submitted(x, clave_async_delete(c, k->path, k->version, on_rest_done, x));
}

void clave__web_rest_delete(struct web_exchange *x)
{
    if (rest_call_new(x, rest_deleted))
        rest_run(x, rest_go_delete);
}

/* ==== /sessions/v1 ============================================================================ */

enum { EXPIRE_S = 30, MOST_EXPIRE_S = 3600 };

static void rest_answer_session(struct web_exchange *x, unsigned status, const char *id,
                                const char *uri)
{
    enum rest_format f;
    struct rest_document d = {.root = "session"};
    if (!rest_format(x, &f))
        return;
    rest_add_text(&d, "id", id);
    rest_add_text(&d, "uri", uri);
    rest_answer(x, f == REST_OCTETS ? REST_JSON : f, status, &d);
}

/* ---- POST ----------------------------------------------------------------------------------- */

/* The request that makes the session has hung up, so nobody knows its UUID. */
static void on_rest_maker_gone(struct web_exchange *x)
{
    if (x->state)
        contrib_rest_session_close(x->state, NULL);
}

static void rest_answer_made(struct web_exchange *x, struct contrib_rest_session *r, clave_err err)
{
    const char *uri = rest_uri(x);
    if (err != CLAVE_OK) {
        rest_fault_err(x, err, "session", false);
        return;
    }
    uri = uri ? clave__web_sprintf(x, "%s/%s", uri, r->uuid) : NULL;
    const char *id = clave__web_strndup(x, r->uuid, strlen(r->uuid));
    if (!uri || !id) {
        contrib_rest_session_close(r, NULL);
        rest_fault_err(x, CLAVE_ENOMEM, "session", false);
        return;
    }
    clave__web_set_header(x, "Location", "%s", uri);
    rest_answer_session(x, 201, id, uri);
}

void clave__web_rest_post_session(struct web_exchange *x)
{
    const char *op = clave__web_query(x, "op"), *expire = clave__web_query(x, "expire");
    int64_t s = EXPIRE_S;
    enum rest_format f;
    if (!rest_format(x, &f))
        return;
    if (op && strcmp(op, "create") != 0) {
        rest_fault(x, 400, "bad operation %.64s", op);
        return;
    }
    if (expire && (!clave__web_parse_int(expire, &s) || s < 1 || s > MOST_EXPIRE_S)) {
        rest_fault(x, 400, "expire must be 1 to %d seconds", (int)MOST_EXPIRE_S);
        return;
    }
    if (!clave__web_may_make_session(x))
        return;
    const struct session_terms terms = {
        .name = "contrib REST", .ttl_ms = (int32_t)s * 1000, .sender = clave__web_sender(x)};
    static const struct exchange_owner maker = {.hung_up = on_rest_maker_gone};
    clave__web_own(x, &maker, NULL);
    clave_err err = contrib_rest_session_open(x, &terms);
    if (err != CLAVE_OK)
        rest_fault_err(x, err, "session", false);
}

/* ---- PUT, DELETE ---------------------------------------------------------------------------- */

static struct contrib_rest_session *rest_find(struct web_exchange *x)
{
    struct contrib_rest_session *r = contrib_rest_session_find(x->web, x->params[0]);
    if (!r)
        rest_fault(x, 404, "session %.64s not found", x->params[0]);
    return r;
}

void clave__web_rest_put_session(struct web_exchange *x)
{
    struct contrib_rest_session *r = rest_find(x);
    const char *uri = r ? rest_uri(x) : NULL;
    if (r && uri)
        rest_answer_session(x, 200, x->params[0], uri);
    else if (r)
        rest_fault_err(x, CLAVE_ENOMEM, "session", false);
}

static void on_rest_ender_gone(struct web_exchange *x)
{
    ((struct contrib_rest_session *)x->state)->x = NULL;
}

void clave__web_rest_delete_session(struct web_exchange *x)
{
    struct contrib_rest_session *r = rest_find(x);
    if (!r)
        return;
    x->state = r;
    static const struct exchange_owner ender = {.hung_up = on_rest_ender_gone};
    clave__web_own(x, &ender, NULL);
    x->begun = true;
    contrib_rest_session_close(r, x);
}
