/* http_server.c - see http_server.h: addresses, accepting, starting and stopping.
 *
 * The listening sockets are those of listen.c, so addresses mean the same as they do for ZooKeeper
 * clients. */
#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log_line.h"
#include "base/memory.h"
#include "clave/uv.h"
#include "runtime/http/http_internal.h"
#include "runtime/listen.h"
#include "runtime/thread_start.h"
#include "runtime/tls/tls_context.h"

enum { ACCEPTED_A_TURN = 128, HANDSHAKES_A_TURN = 4 };
/* How long it takes to notice that a client cannot be reached, if nothing else shows it. */
enum { SILENT_S = 10, PROBE_S = 5, PROBES = 2, UNCONFIRMED_MS = 20000 };

const char clave__http_alpn[] = "http/1.1";
const char clave__http_to_foreign[] =
    "HTTP/1.1 400 Bad Request\r\n"
    "Content-Type: application/problem+json\r\nConnection: close\r\n\r\n"
    "{\"title\":\"Bad Request\",\"status\":400,\"detail\":\"this address speaks TLS: use https\","
    "\"code\":\"EINVAL\",\"class\":\"final\"}\n";

/* ---- accepting ------------------------------------------------------------------------------ */

/* Makes the kernel probe the client. A client that has lost its power or its network sends nothing,
 * while a lock may be held for it. */
static void http_probe(int fd)
{
    static const int yes = 1, silent = SILENT_S, probe = PROBE_S, probes = PROBES;
    static const unsigned unconfirmed = UNCONFIRMED_MS;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &silent, sizeof silent);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &probe, sizeof probe);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unconfirmed, sizeof unconfirmed);
}

static void http_take(struct http *h, const struct listener *l, int fd)
{
    struct peer_addr peer;
    clave__listen_name_peer(fd, l->is_unix, &peer);
    if (!l->is_unix)
        http_probe(fd);
    if (!l->is_unix && peer.family == 0) /* the client is gone already */
        close(fd);
    else
        clave__http_connection_take(h, fd, &peer, l->tls, l->is_proxied);
}

static size_t http_max_shaking(const struct http *h)
{
    return h->o.max_connections / 4 + 1;
}

/* The connection that has to make room for a new one; NULL: none, so the new one waits. */
static struct http_connection *http_victim(struct http *h, bool shakes)
{
    if (h->nconnections >= h->o.max_connections)
        return clave__http_victim(h);
    if (shakes &&
        h->nshaking >= http_max_shaking(h)) /* the one that has been shaking hands for longest */
        return LIST_ENTRY(h->in_state[HTTP_SHAKING].next, struct http_connection, link);
    return NULL;
}

/* Returns a descriptor or a negated errno; -EAGAIN: none is waiting, or there is no room. */
static int http_accept(struct http *h, struct listener *l)
{
    struct http_connection *victim = http_victim(h, l->tls || l->is_proxied);
    if (!victim && h->nconnections >= h->o.max_connections) {
        h->accept_pending = true;
        clave__listener_watch(l, false);
        return -EAGAIN;
    }
    int fd = clave__listener_accept(l);
    if (fd < 0)
        return fd;
    if (victim)
        clave__http_connection_close(victim);
    http_take(h, l, fd);
    return fd;
}

static void http_on_listener(struct listener *l)
{
    struct http *h = l->data;
    int fd = 0;
    for (int left = l->tls ? HANDSHAKES_A_TURN : ACCEPTED_A_TURN; left > 0 && fd >= 0; left--)
        fd = http_accept(h, l);
    if (fd < 0 && fd != -EAGAIN && clave__log_may_tell(&h->may_tell_at, uv_now(h->o.loop)))
        clave__log(&h->o.log, CLAVE_LOG_WARN, "cannot accept an HTTP connection: %s",
                   uv_strerror(fd));
}

/* ---- starting and stopping ------------------------------------------------------------------- */

static const char proxied[] = "proxy:";

static bool http_is_proxied(const char *spec)
{
    return strncmp(spec, proxied, sizeof proxied - 1) == 0;
}

/* The address without its prefix, as clave__listen expects it. */
static const char *http_plain(const char *spec)
{
    return http_is_proxied(spec) ? spec + sizeof proxied - 1 : spec;
}

bool clave__http_is_tls(const char *spec)
{
    return strncmp(http_plain(spec), "tls:", 4) == 0;
}

clave_err clave__http_server_check(const char *address, const struct fault *f)
{
    const char *why;
    if (!clave__http_library(&why))
        return clave__start_error(f, CLAVE_EIO, "%s", why);
    return clave__listen_check(http_plain(address), f);
}

void clave__http_server_set_max_connections(struct http *h, unsigned most)
{
    h->o.max_connections = most < h->o.ever_connections ? most : h->o.ever_connections;
    clave__http_gone(h);
}

clave_err clave__http_server_listen(struct http *h, const char *spec, const struct fault *f)
{
    if (clave__http_is_tls(spec) && !h->o.tls)
        return clave__start_error(f, CLAVE_EINVAL, "%s needs a certificate", spec);
    struct list *last = h->listeners.prev;
    clave_err err =
        clave__listen(h->o.loop, http_plain(spec), http_on_listener, h, &h->listeners, f);
    for (struct list *e = last->next; e != &h->listeners; e = e->next)
        LIST_ENTRY(e, struct listener, link)->is_proxied = http_is_proxied(spec);
    return err;
}

static clave_err http_init(struct http *h, const struct http_options *o)
{
    assert(o->begin && o->max_connections > 0);
    h->o = *o;
    if (h->o.ever_connections < h->o.max_connections)
        h->o.ever_connections = h->o.max_connections;
    list_init(&h->listeners);
    list_init(&h->all);
    list_init(&h->ready);
    for (int state = 0; state < HTTP_STATES; state++)
        list_init(&h->in_state[state]);
    clave_err err = clave__http_shares_init(h, clave_random_seed());
    if (err != CLAVE_OK)
        return err;
    if (o->tls)
        clave__tls_context_ref(o->tls);
    clave__http_turns_begin(h);
    return CLAVE_OK;
}

clave_err clave__http_server_start(struct http **out, const char *spec,
                                   const struct http_options *o, const struct fault *f)
{
    const char *why;
    *out = NULL;
    const struct http_library *library = clave__http_library(&why);
    if (!library)
        return clave__start_error(f, CLAVE_EIO, "%s", why);
    struct http *h = calloc(1, sizeof *h);
    clave_err err = h ? http_init(h, o) : CLAVE_ENOMEM;
    if (err != CLAVE_OK) {
        free(h);
        return err;
    }
    h->library = library;
    err = clave__http_server_listen(h, spec, f);
    if (err == CLAVE_OK)
        *out = h;
    else
        clave__http_server_stop(h);
    return err;
}

void clave__http_server_quiet(struct http *h)
{
    h->is_quiet = true;
    while (!list_empty(&h->listeners))
        clave__listener_close(LIST_ENTRY(h->listeners.next, struct listener, link));
}

void clave__http_server_stop(struct http *h)
{
    if (!h)
        return;
    assert(!h->is_stopped);
    clave__http_server_quiet(h);
    h->is_stopped = true; /* from now on, connections that close make room for nobody */
    while (!list_empty(&h->all)) {
        struct http_connection *c = LIST_ENTRY(h->all.next, struct http_connection, by_age);
        clave__http_connection_flush(c);
        clave__http_connection_close(c); /* unless it is already closing */
    }
    clave__http_turns_end(h);
}

const char *clave__http_server_address(const struct http *h, size_t i)
{
    struct list *e = h->listeners.next;
    while (i-- > 0 && e != &h->listeners)
        e = e->next;
    return e != &h->listeners ? LIST_ENTRY(e, struct listener, link)->text : NULL;
}

bool clave__http_server_is_answered(const struct http *h)
{
    return list_empty(&h->in_state[HTTP_BODY]) && list_empty(&h->in_state[HTTP_WAITING]) &&
           list_empty(&h->in_state[HTTP_SENDING]);
}

size_t clave__http_server_connections(const struct http *h)
{
    return h->nconnections;
}
