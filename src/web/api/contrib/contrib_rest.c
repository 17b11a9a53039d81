/* contrib_rest.c - /znodes/v1; see contrib_rest.h. Called by the table of routes. */
#include "web/api/contrib/contrib_rest.h"

#include <string.h>

#include "base/base64.h"
#include "web/api/contrib/contrib_rest_format.h"
#include "web/api/request_client.h"
#include "web/http/answer.h"
#include "web/http/body.h"
#include "web/http/forwarded.h"
#include "web/http/request_args.h"
#include "web/http/request_limits.h"
#include "web/session/contrib_rest_session.h"

struct rest_call;
typedef void rest_done(struct web_exchange *x, const struct rest_call *k, const clave_result *res);

struct rest_call {
    enum rest_format format;
    rest_done *done; /* answers with what the servers say */
    bool creates;
    const char *path, *uri;
    const void *data; /* NULL: none, as ZooKeeper has it */
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
    clave__rest_add_text(d, "path", k->path);
    clave__rest_add_text(d, "uri", k->uri);
    clave__rest_add_number(d, "czxid", st->czxid);
    clave__rest_add_number(d, "mzxid", st->mzxid);
    clave__rest_add_number(d, "ctime", st->ctime);
    clave__rest_add_number(d, "mtime", st->mtime);
    clave__rest_add_number(d, "version", st->version);
    clave__rest_add_number(d, "cversion", st->cversion);
    clave__rest_add_number(d, "aversion", st->aversion);
    clave__rest_add_number(d, "ephemeralOwner", st->ephemeral_owner);
    clave__rest_add_number(d, "dataLength", st->data_length);
    clave__rest_add_number(d, "numChildren", st->num_children);
    clave__rest_add_number(d, "pzxid", st->pzxid);
}

/* "data64", or "dataUtf8" when that was asked for; neither when the node has no data. */
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
        clave__rest_add_text(d, utf8 ? "dataUtf8" : "data64", text);
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
        clave__rest_fault_err(x, res->err, k->path, k->creates);
}

static void rest_submitted(struct web_exchange *x, clave_err err)
{
    const struct rest_call *k = x->state;
    if (err == CLAVE_OK) {
        clave__web_expect(x);
        return;
    }
    clave__rest_fault_err(x, err, k->path, false);
}

static bool rest_read_version(struct web_exchange *x, struct rest_call *k)
{
    const char *text = clave__web_query(x, "version");
    int64_t n = -1;
    if (text && (!clave__web_parse_int(text, &n) || n < -1 || n > INT32_MAX)) {
        clave__rest_fault(x, 400, "%s bad version %.64s", k->path, text);
        return false;
    }
    k->version = (int32_t)n;
    return true;
}

/* NULL: it has answered. */
static struct rest_call *rest_call_new(struct web_exchange *x, rest_done *done)
{
    struct rest_call *k = clave__web_alloc(x, sizeof *k);
    const char *uri = clave__rest_uri(x);
    if (!k || !uri) {
        clave__rest_fault_err(x, CLAVE_ENOMEM, x->params[0], false);
        return NULL;
    }
    bool null = rest_flag(x, "null");
    *k = (struct rest_call){.done = done,
                            .path = x->params[0],
                            .uri = uri,
                            .data = null ? NULL : clave__web_body_bytes(x),
                            .len = null ? 0 : clave__web_body_len(x)};
    x->state = k;
    if (!clave__rest_format(x, &k->format))
        return NULL;
    if (clave__web_body_len(x) > 0 && clave__web_header(x, "Content-Type") &&
        !clave__web_has_type(x, "application/octet-stream")) {
        clave__rest_fault(x, 415, "the Content-Type must be application/octet-stream");
        return NULL;
    }
    return rest_read_version(x, k) ? k : NULL;
}

/* With the client of the session that it names, or the engine's own. */
static void rest_run(struct web_exchange *x, request_client *go)
{
    const char *uuid = clave__web_query(x, "session");
    struct contrib_rest_session *r =
        uuid && uuid[0] ? clave__contrib_rest_session_find(x->web, uuid) : NULL;
    if (!uuid || !uuid[0]) {
        clave__request_client(x, go);
    } else if (!r) {
        clave__rest_fault(x, 401, "session %.64s not found", uuid);
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
            clave__rest_answer(x, k->format, 200, &d);
        else
            clave__rest_fault_err(x, CLAVE_ENOMEM, k->path, false);
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
    clave__rest_add_text(&d, "path", k->path);
    clave__rest_add_text(&d, "uri", k->uri);
    clave__rest_add_text(&d, "child_uri_template", template ? template : "");
    d.children = res->nnames ? res->names : none;
    d.nchildren = res->nnames;
    clave__rest_answer(x, k->format, 200, &d);
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
    clave__rest_answer(x, k->format, 200, &d);
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
    clave__rest_add_text(&d, "path", res->path);
    clave__rest_add_text(&d, "uri", k->uri);
    clave__rest_answer(x, k->format, 201, &d);
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
        clave__rest_fault(x, 400, "%s bad operation %.64s", k->path, op);
    else if (!name || strchr(name, '/'))
        clave__rest_fault(x, 400, "%s: \"name\" must be the name of a child", k->path);
    else if (ephemeral && !(session && session[0]))
        clave__rest_fault(x, 400, "%s: an ephemeral node needs a session", k->path);
    else if (!path)
        clave__rest_fault_err(x, CLAVE_ENOMEM, k->path, true);
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
