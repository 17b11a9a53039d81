/* uv_conn.c - the connections of a server (uv_server_internal.h): accepting, limits, TLS, reading
 * and writing for the engine. The engine's bytes are never kept over a call into it. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "clave/uv.h"
#include "runtime/server/listen.h"
#include "runtime/server/uv_server_internal.h"
#include "runtime/testing/fault_injector.h"
#include "runtime/tls/tls_filter.h"

enum {
    PLAIN_SIZE = 16 * 1024,  /* the maximum size of a TLS record */
    UNSENT_SIZE = 128 * 1024 /* the most that may wait in the kernel for a slow client */
};

/* All connections of one address. */
struct address {
    struct map_node node;
    uint8_t family;
    uint8_t ip[16];
    unsigned count;
};

struct conn {
    struct list link;
    struct server_run *run;
    struct server_conn *engine;            /* NULL: closing */
    struct address *address;               /* NULL: not counted */
    struct fault_injector *fault_injector; /* NULL: not of a test server */
    struct tls *tls;                       /* outermost; NULL: without TLS */
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } socket;
    bool reading;
    bool writing;
    bool refused; /* its handshake failed: it has been notified, and is expected to hang up */
};

/* What the kernel did not take at once. */
struct rest {
    uv_write_t req;
    struct conn *conn;
    char bytes[];
};

/* ---- counting by address -------------------------------------------------------------------- */

static bool same_address(const struct map_node *node, const void *key)
{
    const struct address *a = (const void *)node; /* its first member */
    const struct peer_addr *p = key;
    return a->family == p->family && memcmp(a->ip, p->ip, sizeof a->ip) == 0;
}

/* false: the address has as many as it may have. *out NULL: not counted. */
static bool count_in(struct server_run *r, const struct peer_addr *peer, struct address **out)
{
    *out = NULL;
    if (peer->family == 0)
        return true;
    uint32_t hash = clave__map_hash_bytes(peer->ip, sizeof peer->ip);
    struct map_node *node = clave__map_find(&r->addresses, hash, same_address, peer);
    struct address *a = node ? MAP_ENTRY(node, struct address, node) : calloc(1, sizeof *a);
    if (!a)
        return false;
    if (!node) {
        a->family = peer->family;
        memcpy(a->ip, peer->ip, sizeof a->ip);
        clave__map_insert(&r->addresses, &a->node, hash);
    }
    if (r->max_per_address > 0 && a->count >= r->max_per_address)
        return false;
    a->count++;
    *out = a;
    return true;
}

static void count_out(struct server_run *r, struct address *a)
{
    if (!a || --a->count > 0)
        return;
    clave__map_remove(&r->addresses, &a->node);
    free(a);
}

/* ---- closing -------------------------------------------------------------------------------- */

static void uv_conn_on_closed(uv_handle_t *h)
{
    struct conn *c = h->data;
    struct server_run *r = c->run;
    list_remove(&c->link);
    r->nconns--;
    free(c);
    clave__run_count(r);
}

/* Sends the TLS end, if it can be sent at once. */
static void uv_conn_say_farewell(struct conn *c)
{
    const void *p;
    clave__tls_end(c->tls);
    size_t n = clave__tls_output(c->tls, &p);
    uv_buf_t buf = uv_buf_init((char *)(uintptr_t)p, (unsigned)n);
    if (n > 0 && !c->writing && !uv_is_closing(&c->socket.handle))
        uv_try_write(&c->socket.stream, &buf, 1);
}

static void close_conn(struct conn *c)
{
    if (c->tls)
        uv_conn_say_farewell(c);
    clave__tls_free(c->tls);
    c->tls = NULL;
    clave__fault_injector_free(c->fault_injector);
    c->fault_injector = NULL;
    if (c->engine)
        clave__server_conn_closed(c->engine);
    c->engine = NULL;
    count_out(c->run, c->address);
    c->address = NULL;
    if (!uv_is_closing(&c->socket.handle))
        uv_close(&c->socket.handle, uv_conn_on_closed);
}

void clave__conn_drop(struct server_conn *engine)
{
    close_conn(clave__server_conn_user(engine));
}

void clave__conn_close_quiet(struct server_run *r, bool all)
{
    struct list *e = r->conns.next;
    while (e != &r->conns) {
        struct conn *c = LIST_ENTRY(e, struct conn, link);
        e = e->next;
        if (all || !c->writing)
            close_conn(c);
    }
}

/* ---- bytes ------------------------------------------------------------------------------------
 */

static void uv_conn_on_written(uv_write_t *req, int status)
{
    struct rest *rest = req->data;
    struct conn *c = rest->conn;
    free(rest);
    if (!c->engine)
        return;
    c->writing = false;
    clave__run_tick(c->run);
    if (status < 0)
        close_conn(c);
    else
        clave__conn_serve(c->engine);
}

/* The engine's bytes move with the next call into it, so those that have to wait are copied. */
static int uv_conn_write_later(struct conn *c, const void *p, size_t n)
{
    n = n < RUN_INPUT_SIZE ? n : RUN_INPUT_SIZE;
    struct rest *rest = malloc(sizeof *rest + n);
    if (!rest)
        return UV_ENOMEM;
    rest->conn = c;
    rest->req.data = rest;
    memcpy(rest->bytes, p, n);
    uv_buf_t buf = uv_buf_init(rest->bytes, (unsigned)n);
    int err = uv_write(&rest->req, &c->socket.stream, &buf, 1, uv_conn_on_written);
    if (err != 0) {
        free(rest);
        return err;
    }
    c->writing = true;
    return (int)n;
}

static size_t output(struct conn *c, const void **p)
{
    return c->fault_injector ? clave__fault_injector_output(c->fault_injector, clave_now(), p)
                             : clave__server_conn_output(c->engine, p);
}

static void sent(struct conn *c, size_t n)
{
    if (c->fault_injector)
        clave__fault_injector_sent(c->fault_injector, n);
    else
        clave__server_conn_sent(c->engine, n);
}

static bool wants_close(const struct conn *c)
{
    return c->fault_injector ? clave__fault_injector_wants_close(c->fault_injector)
                             : clave__server_conn_wants_close(c->engine);
}

/* The bytes for the socket: the engine's, or with TLS their encrypted form. */
static size_t next_output(struct conn *c, const void **p)
{
    size_t n = c->tls ? clave__tls_output(c->tls, p) : output(c, p);
    if (n > 0 || !c->tls || clave__tls_state(c->tls) != TLS_OPEN)
        return n;
    n = output(c, p);
    n = clave__tls_write(c->tls, *p, n);
    if (n > 0)
        sent(c, n);
    return clave__tls_output(c->tls, p);
}

/* false: the connection is gone. */
static bool uv_conn_flush(struct conn *c)
{
    const void *p;
    size_t n;
    while (!c->writing && (n = next_output(c, &p)) > 0) {
        uv_buf_t buf = uv_buf_init((char *)(uintptr_t)p, (unsigned)(n < 1 << 30 ? n : 1 << 30));
        int done = uv_try_write(&c->socket.stream, &buf, 1);
        if (done == UV_EAGAIN)
            done = uv_conn_write_later(c, p, n);
        if (done < 0) {
            close_conn(c);
            return false;
        }
        if (c->tls)
            clave__tls_sent(c->tls, (size_t)done);
        else
            sent(c, (size_t)done);
    }
    return true;
}

static void uv_conn_on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    struct conn *c = h->data;
    (void)suggested;
    *buf = uv_buf_init(c->run->input, sizeof c->run->input);
}

static void uv_conn_set_reading(struct conn *c);

/* false: close it. */
static bool uv_conn_take_input(struct conn *c, const void *p, size_t n)
{
    size_t taken = c->fault_injector ? clave__fault_injector_input(c->fault_injector, p, n) : n;
    clave__server_conn_input(c->engine, p, taken);
    return taken == n;
}

static void name_peer(struct conn *c, bool is_unix, struct peer_addr *out)
{
    struct sockaddr_storage ss;
    int len = sizeof ss;
    char ip[INET6_ADDRSTRLEN];
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    memset(out, 0, sizeof *out);
    strcpy(out->text, "local");
    if (is_unix || uv_tcp_getpeername(&c->socket.tcp, (struct sockaddr *)&ss, &len) != 0)
        return;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&ss;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&ss;
    out->port = ntohs(v4->sin_port); /* sin6_port has the same offset */
    if (ss.ss_family == AF_INET) {
        out->family = 4;
        memcpy(out->ip, &v4->sin_addr, 4);
    } else if (memcmp(&v6->sin6_addr, mapped, sizeof mapped) == 0) {
        out->family = 4;
        memcpy(out->ip, (const uint8_t *)&v6->sin6_addr + 12, 4);
    } else {
        out->family = 6;
        memcpy(out->ip, &v6->sin6_addr, 16);
    }
    uv_inet_ntop(out->family == 4 ? AF_INET : AF_INET6, out->ip, ip, sizeof ip);
    snprintf(out->text, sizeof out->text, out->family == 4 ? "%s:%u" : "[%s]:%u", ip,
             (unsigned)out->port);
}

/* A client whose handshake has failed may take long to read why, and would not find it any more if
 * the socket were closed with unread bytes of its own. It has as long as every connection without a
 * session. */
static bool uv_conn_refuse(struct conn *c, bool shaking)
{
    struct peer_addr peer;
    char why[600];
    clave__tls_fault(c->tls, why, sizeof why);
    name_peer(c, false, &peer);
    clave__log(&c->run->log, CLAVE_LOG_WARN, "%s is %s: %s", peer.text,
               shaking ? "turned away" : "closed", why);
    c->refused = shaking && !clave__tls_is_foreign(c->tls);
    return c->refused;
}

/* Likewise, through TLS. */
static bool unseal(struct conn *c, const void *p, size_t n)
{
    char plain[PLAIN_SIZE];
    size_t got;
    const void *der;
    bool fine = true, shaking = clave__tls_state(c->tls) == TLS_SHAKING;
    if (c->refused)
        return true;
    clave__tls_feed(c->tls, p, n);
    if (clave__tls_shake(c->tls) && (got = clave__tls_subject(c->tls, &der)) > 0)
        fine = clave__server_conn_certify(c->engine, der, got) == CLAVE_OK;
    while (fine && (got = clave__tls_read(c->tls, plain, sizeof plain)) > 0)
        fine = uv_conn_take_input(c, plain, got);
    if (clave__tls_state(c->tls) == TLS_FAILED)
        return uv_conn_refuse(c, shaking);
    return fine && clave__tls_state(c->tls) != TLS_ENDED;
}

static void uv_conn_on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct conn *c = stream->data;
    if (!c->engine || n == 0)
        return;
    clave__run_tick(c->run);
    if (n < 0) {
        close_conn(c);
        return;
    }
    bool goes_on =
        c->tls ? unseal(c, buf->base, (size_t)n) : uv_conn_take_input(c, buf->base, (size_t)n);
    if (!goes_on)
        close_conn(c);
    else if (c->tls)
        clave__conn_serve(c->engine); /* the channel's own messages are not the engine's */
    else
        uv_conn_set_reading(c); /* now, or libuv keeps reading */
}

static void uv_conn_set_reading(struct conn *c)
{
    bool wanted = c->run->phase != RUN_STOPPING && clave__server_conn_wants_read(c->engine);
    if (wanted == c->reading)
        return;
    c->reading = wanted;
    if (wanted)
        uv_read_start(&c->socket.stream, uv_conn_on_alloc, uv_conn_on_read);
    else
        uv_read_stop(&c->socket.stream);
}

void clave__conn_serve(struct server_conn *engine)
{
    struct conn *c = clave__server_conn_user(engine);
    if (!uv_conn_flush(c))
        return;
    if (!c->writing && wants_close(c))
        close_conn(c);
    else
        uv_conn_set_reading(c);
}

/* ---- accepting ------------------------------------------------------------------------------ */

/* The kernel would buffer megabytes for a client that does not read: more than the documented limit
 * for all, and slow to take. */
static void set_options(struct conn *c)
{
    uv_tcp_nodelay(&c->socket.tcp, 1);
#ifdef TCP_NOTSENT_LOWAT
    const int most = UNSENT_SIZE;
    uv_os_fd_t fd;
    if (uv_fileno(&c->socket.handle, &fd) == 0)
        setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most, sizeof most);
#endif
}

static struct conn *accept_conn(struct server_run *r, uv_stream_t *from, bool is_unix)
{
    struct conn *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->run = r;
    if (is_unix)
        uv_pipe_init(&r->loop, &c->socket.pipe, 0);
    else
        uv_tcp_init(&r->loop, &c->socket.tcp);
    c->socket.handle.data = c;
    list_push_back(&r->conns, &c->link);
    r->nconns++;
    clave__run_count(r);
    if (uv_accept(from, &c->socket.stream) != 0) {
        close_conn(c);
        return c;
    }
    if (!is_unix)
        set_options(c);
    return c;
}

/* A client that connects too often must not fill the log as well: a line a second. */
static void turn_away(struct conn *c, const struct peer_addr *peer, const char *why)
{
    enum { PAUSE_MS = 1000 };
    struct server_run *r = c->run;
    uint64_t now = uv_now(&r->loop);
    r->turned_away++;
    if (now >= r->may_tell_at) {
        clave__log(&r->log, CLAVE_LOG_WARN,
                   "turned away %s: %s (%zu turned away since the last message)", peer->text, why,
                   r->turned_away);
        r->turned_away = 0;
        r->may_tell_at = now + PAUSE_MS;
    }
    close_conn(c);
}

void clave__conn_on_connection(uv_stream_t *from, int status)
{
    struct server_run *r = from->data;
    struct peer_addr peer;
    if (status < 0) {
        clave__log(&r->log, CLAVE_LOG_WARN, "cannot accept a connection: %s", uv_strerror(status));
        return;
    }
    bool is_unix = from->type == UV_NAMED_PIPE;
    struct conn *c = accept_conn(r, from, is_unix);
    if (!c) {
        /* libuv offers no way to turn one connection away without a handle for it. */
        clave__run_fail(r, CLAVE_ENOMEM, "out of memory for a new connection");
        return;
    }
    if (uv_is_closing(&c->socket.handle))
        return;
    if (LIST_ENTRY(from, struct listener, socket)->tls) {
        c->tls = clave__tls_new(r->tls, &r->mem, NULL);
        if (!c->tls) {
            close_conn(c);
            return;
        }
    }
    clave__run_tick(r);
    name_peer(c, is_unix, &peer);
    peer.secure = c->tls != NULL;
    const char *why = NULL;
    if (r->nconns > r->max_conns)
        why = "no more connections: the limit of open files is reached";
    else if (!count_in(r, &peer, &c->address))
        why = "too many connections from its address (--max-connections)";
    if (why) {
        turn_away(c, &peer, why);
        return;
    }
    c->engine = clave__server_accept(r->server, &peer, c);
    if (c->engine && r->fault_injectors)
        c->fault_injector = clave__fault_injector_new(r->fault_injectors, c->engine);
    if (c->engine && (c->fault_injector || !r->fault_injectors))
        clave__conn_serve(c->engine);
    else
        close_conn(c);
}
