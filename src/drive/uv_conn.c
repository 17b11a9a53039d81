/* uv_conn.c - the connections of a server. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "drive/listen.h"
#include "drive/run.h"

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
    struct server_conn *engine; /* NULL: closing */
    struct address *address;    /* NULL: not counted */
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } socket;
    bool reading;
    bool writing;
};

/* What the kernel did not take at once. */
struct rest {
    uv_write_t req;
    struct conn *conn;
    char bytes[];
};

/* ---- counting by address ------------------------------------------------------------------ */

static bool same_address(const struct map_node *node, const void *key)
{
    const struct address *a = (const void *)node; /* its first member */
    const struct peer_addr *p = key;
    return a->family == p->family && memcmp(a->ip, p->ip, sizeof a->ip) == 0;
}

/* false: it has as many as it may have. *out NULL: it is not counted. */
static bool count_in(struct server_run *r, const struct peer_addr *peer, struct address **out)
{
    *out = NULL;
    if (r->max_per_address == 0 || peer->family == 0)
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
    if (a->count >= r->max_per_address)
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

/* ---- closing --------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *h)
{
    struct conn *c = h->data;
    struct server_run *r = c->run;
    list_remove(&c->link);
    free(c);
    clave__run_count(r);
}

static void close_conn(struct conn *c)
{
    if (c->engine)
        clave__server_conn_closed(c->engine);
    c->engine = NULL;
    count_out(c->run, c->address);
    c->address = NULL;
    if (!uv_is_closing(&c->socket.handle))
        uv_close(&c->socket.handle, on_closed);
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

static void on_written(uv_write_t *req, int status)
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

/* The engine's bytes move with the next call into it, so what has to wait is copied. */
static int write_later(struct conn *c, const void *p, size_t n)
{
    n = n < RUN_INPUT_SIZE ? n : RUN_INPUT_SIZE;
    struct rest *rest = malloc(sizeof *rest + n);
    if (!rest)
        return UV_ENOMEM;
    rest->conn = c;
    rest->req.data = rest;
    memcpy(rest->bytes, p, n);
    uv_buf_t buf = uv_buf_init(rest->bytes, (unsigned)n);
    int err = uv_write(&rest->req, &c->socket.stream, &buf, 1, on_written);
    if (err != 0) {
        free(rest);
        return err;
    }
    c->writing = true;
    return (int)n;
}

/* false: the connection is gone. */
static bool flush(struct conn *c)
{
    const void *p;
    size_t n;
    while (!c->writing && (n = clave__server_conn_output(c->engine, &p)) > 0) {
        uv_buf_t buf = uv_buf_init((char *)(uintptr_t)p, (unsigned)(n < 1 << 30 ? n : 1 << 30));
        int done = uv_try_write(&c->socket.stream, &buf, 1);
        if (done == UV_EAGAIN)
            done = write_later(c, p, n);
        if (done < 0) {
            close_conn(c);
            return false;
        }
        clave__server_conn_sent(c->engine, (size_t)done);
    }
    return true;
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    struct conn *c = h->data;
    (void)suggested;
    *buf = uv_buf_init(c->run->input, sizeof c->run->input);
}

static void set_reading(struct conn *c);

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct conn *c = stream->data;
    if (!c->engine || n == 0)
        return;
    clave__run_tick(c->run);
    if (n < 0) {
        close_conn(c);
        return;
    }
    clave__server_conn_input(c->engine, buf->base, (size_t)n);
    set_reading(c); /* now, or libuv goes on reading */
}

static void set_reading(struct conn *c)
{
    bool wanted = c->run->phase != RUN_STOPPING && clave__server_conn_wants_read(c->engine);
    if (wanted == c->reading)
        return;
    c->reading = wanted;
    if (wanted)
        uv_read_start(&c->socket.stream, on_alloc, on_read);
    else
        uv_read_stop(&c->socket.stream);
}

void clave__conn_serve(struct server_conn *engine)
{
    struct conn *c = clave__server_conn_user(engine);
    if (!flush(c))
        return;
    if (!c->writing && clave__server_conn_wants_close(engine))
        close_conn(c);
    else
        set_reading(c);
}

/* ---- accepting
 * ----------------------------------------------------------------------------------- */

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
    out->port = ntohs(v4->sin_port); /* sin6_port stands there too */
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
    clave__run_count(r);
    if (uv_accept(from, &c->socket.stream) != 0) {
        close_conn(c);
        return c;
    }
    if (!is_unix)
        uv_tcp_nodelay(&c->socket.tcp, 1);
    return c;
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
        clave__run_fail(r, CLAVE_ENOMEM, "out of memory at a new connection");
        return;
    }
    if (uv_is_closing(&c->socket.handle))
        return;
    clave__run_tick(r);
    name_peer(c, is_unix, &peer);
    if (!count_in(r, &peer, &c->address)) {
        clave__log(&r->log, CLAVE_LOG_WARN,
                   "turned away %s: %u connections from its address, as many as are allowed",
                   peer.text, r->max_per_address);
        close_conn(c);
        return;
    }
    c->engine = clave__server_accept(r->server, &peer, c);
    if (c->engine)
        clave__conn_serve(c->engine);
    else
        close_conn(c);
}
