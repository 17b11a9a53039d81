/* gate_http.c - the gate's HTTP: its addresses, and requests on their way to the engine. */
#include "clave/uv.h"
#include "runtime/gate/gate_internal.h"
#include "runtime/tls/tls_context.h"
#include "web/http/authorization.h"

/* The longest head of a request. */
enum { MAX_HEAD = 8192 };
/* How long to wait for the next request and its head; for a TLS handshake; for a body; and for a
 * client to read. */
enum { IDLE_MS = 60000, HANDSHAKE_MS = 10000, BODY_MS = 20000, SENDING_MS = 30000 };

/* ---- requests -------------------------------------------------------------------------------- */

static void gate_on_request(void *arg, const struct web_request *q, struct http_exchange *x,
                            void **user)
{
    struct gate *g = arg;
    struct web_exchange *made;
    if (clave__web_begin(g->web, clave_now(), q, x, &made) != CLAVE_OK)
        clave__http_answer(x, NULL);
    *user = made;
}

static bool gate_on_body(void *arg, void *user, const void *p, size_t n)
{
    (void)arg;
    return clave__web_take_body(user, clave_now(), p, n);
}

static void gate_on_body_done(void *arg, void *user)
{
    (void)arg;
    clave__web_body_done(user, clave_now());
}

static bool gate_is_known(void *arg, void *user, void **kept)
{
    (void)arg;
    *kept = clave__web_keep(user);
    return *kept != NULL;
}

static void gate_kept_gone(void *arg, void *kept)
{
    const struct gate *g = arg;
    clave__web_keep_no_more(g->web, kept);
}

static bool gate_is_exempt(void *arg, const struct peer_addr *peer)
{
    const struct gate *g = arg;
    const struct web_peer as_engine = {.is_unix = peer->family == 0, .address = peer->text};
    return clave__forwarded_is_proxy(gate_access_of(g->access), &as_engine);
}

static void gate_on_ended(void *arg, void *user)
{
    (void)arg;
    clave__web_end(user, clave_now());
}

/* ---- addresses ------------------------------------------------------------------------------- */

static bool gate_has_tls(const struct gate_options *o)
{
    for (size_t i = 0; i < o->nhttp; i++)
        if (clave__http_is_tls(o->http[i]))
            return true;
    return false;
}

clave_err gate_make_tls(clave_tls **out, const struct gate_options *o, const struct fault *f)
{
    struct tls_server_options t = o->http_tls;
    t.alpn = clave__http_alpn;
    t.to_foreign = clave__http_to_foreign;
    *out = NULL;
    return gate_has_tls(o) ? clave__tls_context_serve(out, &t, f) : CLAVE_OK;
}

clave_err gate_listen(struct gate *g, const struct gate_options *o, const struct fault *f)
{
    clave_err err = gate_make_tls(&g->http_tls, o, f);
    if (err != CLAVE_OK)
        return err;
    const struct http_options http = {
        .tls = g->http_tls,
        .loop = &g->loop,
        .mem = &g->mem,
        .log = g->log,
        .begin = gate_on_request,
        .take_body = gate_on_body,
        .body_done = gate_on_body_done,
        .ended = gate_on_ended,
        .is_known = gate_is_known,
        .kept_gone = gate_kept_gone,
        .is_exempt = gate_is_exempt,
        .arg = g,
        .max_connections = gate_max_connections(g, &o->limits),
        .ever_connections = (unsigned)g->file_connections,
        .max_head = MAX_HEAD,
        .ms = {[HTTP_IDLE] = IDLE_MS,
               [HTTP_BODY] = BODY_MS,
               [HTTP_SENDING] = SENDING_MS,
               [HTTP_SHAKING] = HANDSHAKE_MS},
    };
    err = clave__http_server_start(&g->http, o->http[0], &http, f);
    for (size_t i = 1; i < o->nhttp && err == CLAVE_OK; i++)
        err = clave__http_server_listen(g->http, o->http[i], f);
    if (err == CLAVE_OK && g->http_tls)
        clave__tls_context_tell_date(g->http_tls, &g->log);
    return err;
}
