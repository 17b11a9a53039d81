/* http.c - libmicrohttpd on a libuv loop (http.h).
 *
 * The listening sockets are libuv's, so that addresses mean the same as for clients, and so that
 * more than HTTP_MAX_CONNECTIONS connections wait where they cost nothing. Accepted ones are handed
 * to the library, which has all of its sockets in one epoll descriptor that the loop watches. */
#include "runtime/server/http.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/server/listen.h"
#include "runtime/server/microhttpd.h"

/* A client silent for this long is disconnected, and every client after this long in total: one
 * that trickles bytes must not keep a place. */
enum { IDLE_S = 5, TOTAL_MS = 20000 };
/* Memory for answers that clients have not read. */
enum { MAX_UNREAD = 128 * 1024 * 1024, MAX_PAGE = 64 * 1024 * 1024, MOST_BLOCK = 32 * 1024 };

struct http_connection {
    struct list link;
    int fd;         /* owned by the library */
    uint64_t until; /* by the loop's clock; UINT64_MAX: disconnected */
};

struct body {
    struct http *h;
    struct http_page page;
    bool done; /* there are no more pieces */
};

struct http {
    const struct microhttpd *lib;
    struct http_options o;
    struct MHD_Daemon *daemon; /* NULL: none (any more) */
    uv_poll_t poll;
    uv_timer_t timer;
    int handles; /* open ones: the last one frees it */
    struct list listeners;
    struct list connections; /* ordered by when they are disconnected */
    size_t nconnections;
    struct http_connection *starting; /* given to the library, which has not reported it */
    bool accept_pending;              /* a connection may be waiting to be accepted */
    size_t unread;                    /* memory of answers */
    bool has_made_piece;              /* in this turn */
};

/* ---- an answer ------------------------------------------------------------------------------ */

static void http_free_body(void *arg)
{
    struct body *b = arg;
    if (b->page.end)
        b->page.end(b->page.arg);
    b->h->unread -= b->page.body.cap;
    clave__buf_fini(&b->page.body);
    free(b);
}

/* The next bytes of an answer in pieces. 0: the library asks again in the next turn. One piece a
 * turn is made, for whichever connection comes first, so that no turn takes long. */
static ssize_t http_read_body(void *arg, uint64_t pos, char *out, size_t max)
{
    struct body *b = arg;
    struct buf *bytes = &b->page.body;
    (void)pos;
    if (clave__buf_len(bytes) == 0 && !b->done && !b->h->has_made_piece) {
        b->h->has_made_piece = true;
        b->h->unread -= bytes->cap;
        clave_err err = b->page.more(b->page.arg, bytes, &b->done);
        b->h->unread += bytes->cap;
        if (err != CLAVE_OK)
            return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    size_t n = clave__buf_len(bytes) < max ? clave__buf_len(bytes) : max;
    if (n == 0)
        return b->done ? MHD_CONTENT_READER_END_OF_STREAM : 0;
    memcpy(out, clave__buf_bytes(bytes), n);
    clave__buf_consume(bytes, n);
    return (ssize_t)n;
}

static void http_put_error(struct http_page *page, unsigned status, const char *text)
{
    clave__buf_clear(&page->body);
    page->status = status;
    page->type = "text/plain; charset=utf-8";
    clave__buf_append(&page->body, text, strlen(text));
}

static void http_make_page(struct http *h, const char *method, const char *path,
                           struct http_page *page)
{
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        http_put_error(page, MHD_HTTP_METHOD_NOT_ALLOWED, "GET or HEAD only\n");
        return;
    }
    page->status = MHD_HTTP_OK;
    h->o.answer(h->o.arg, path, page);
    if (page->err == CLAVE_OK && h->unread + page->body.cap > MAX_UNREAD)
        page->err = CLAVE_ENOMEM;
    if (page->err != CLAVE_OK) {
        clave__log(&h->o.log, CLAVE_LOG_WARN, "cannot answer an HTTP request: %s",
                   clave_strerror(page->err));
        if (page->end)
            page->end(page->arg);
        page->more = NULL;
        page->end = NULL;
        clave__buf_fini(&page->body);
        http_put_error(page, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
    }
}

static enum MHD_Result http_send_page(struct http *h, struct MHD_Connection *c,
                                      const struct http_page *page, struct body *b)
{
    const struct microhttpd *lib = h->lib;
    *b = (struct body){.h = h, .page = *page};
    h->unread += page->body.cap;
    struct MHD_Response *r =
        page->more
            ? lib->MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, MOST_BLOCK, http_read_body,
                                                     b, http_free_body)
            : lib->MHD_create_response_from_buffer_with_free_callback_cls(
                  clave__buf_len(&page->body), clave__buf_bytes(&b->page.body), http_free_body, b);
    if (!r) {
        http_free_body(b);
        return MHD_NO;
    }
    lib->MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, page->type);
    lib->MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
    lib->MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (page->status == MHD_HTTP_METHOD_NOT_ALLOWED)
        lib->MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    enum MHD_Result queued = lib->MHD_queue_response(c, page->status, r);
    lib->MHD_destroy_response(r);
    return queued;
}

/* Called when the headers are complete: a body is not waited for. MHD_NO: closes the connection. */
static enum MHD_Result on_http_request(void *arg, struct MHD_Connection *c, const char *path,
                                       const char *method, const char *version, const char *upload,
                                       size_t *upload_size, void **unused)
{
    struct http *h = arg;
    struct http_page page = {.type = "text/plain"};
    struct body *b = malloc(sizeof *b);
    (void)version;
    (void)upload;
    (void)upload_size;
    (void)unused;
    if (!b)
        return MHD_NO;
    clave__buf_init(&page.body, h->o.mem, MAX_PAGE);
    http_make_page(h, method, path, &page);
    return http_send_page(h, c, &page, b);
}

/* ---- connections ---------------------------------------------------------------------------- */

static void http_on_connection(void *arg, struct MHD_Connection *c, void **socket_arg,
                               enum MHD_ConnectionNotificationCode code)
{
    struct http *h = arg;
    struct http_connection *g = *socket_arg;
    (void)c;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *socket_arg = h->starting;
        h->starting = NULL;
    } else if (g) {
        list_remove(&g->link);
        h->nconnections--;
        free(g);
    }
}

static void http_hand_over(struct http *h, int fd)
{
    struct sockaddr_storage peer = {0};
    socklen_t n = sizeof peer;
    struct http_connection *g = malloc(sizeof *g);
    if (!g || getpeername(fd, (struct sockaddr *)&peer, &n) != 0) { /* it has gone already */
        free(g);
        close(fd);
        return;
    }
    *g = (struct http_connection){.fd = fd, .until = uv_now(h->o.loop) + TOTAL_MS};
    list_push_back(&h->connections, &g->link);
    h->nconnections++;
    h->starting = g;
    h->lib->MHD_add_connection(h->daemon, fd, (struct sockaddr *)&peer, n); /* or closes it */
    if (h->starting == g) {
        h->starting = NULL;
        list_remove(&g->link);
        h->nconnections--;
        free(g);
    }
}

static void http_accept_waiting(struct http *h)
{
    if (!h->accept_pending)
        return;
    for (struct list *e = h->listeners.next; e != &h->listeners; e = e->next) {
        struct listener *l = LIST_ENTRY(e, struct listener, link);
        int fd = 0;
        while (h->nconnections < HTTP_MAX_CONNECTIONS && (fd = clave__listener_accept(l)) >= 0)
            http_hand_over(h, fd);
        if (fd < 0 && fd != -EAGAIN)
            clave__log(&h->o.log, CLAVE_LOG_WARN, "cannot accept an HTTP connection: %s",
                       uv_strerror(fd));
        clave__listener_watch(l, h->nconnections < HTTP_MAX_CONNECTIONS);
    }
    h->accept_pending = h->nconnections == HTTP_MAX_CONNECTIONS;
}

static void http_disconnect_late(struct http *h)
{
    uint64_t now = uv_now(h->o.loop);
    while (!list_empty(&h->connections)) {
        struct http_connection *g = LIST_ENTRY(h->connections.next, struct http_connection, link);
        if (g->until > now)
            return;
        shutdown(g->fd, SHUT_RDWR); /* the library sees the end of the stream and closes it */
        g->until = UINT64_MAX;
        list_remove(&g->link);
        list_push_back(&h->connections, &g->link);
    }
}

/* ---- the loop ------------------------------------------------------------------------------- */

static void http_run(struct http *h);

static void http_on_timer(uv_timer_t *t)
{
    http_run(t->data);
}

static void http_arm(struct http *h)
{
    uint64_t now = uv_now(h->o.loop), wait = UINT64_MAX;
    MHD_UNSIGNED_LONG_LONG ms;
    if (h->lib->MHD_get_timeout(h->daemon, &ms) == MHD_YES)
        wait = ms;
    if (!list_empty(&h->connections)) {
        uint64_t until = LIST_ENTRY(h->connections.next, struct http_connection, link)->until;
        uint64_t left = until == UINT64_MAX ? until : until > now ? until - now : 0;
        wait = left < wait ? left : wait;
    }
    if (wait == UINT64_MAX)
        uv_timer_stop(&h->timer);
    else
        uv_timer_start(&h->timer, http_on_timer, wait, 0);
}

static void http_run(struct http *h)
{
    http_disconnect_late(h);
    h->has_made_piece = false;
    h->lib->MHD_run(h->daemon);
    http_accept_waiting(h);
    http_arm(h);
}

static void on_readable(uv_poll_t *p, int status, int events)
{
    (void)status;
    (void)events;
    http_run(p->data);
}

static void on_connection(struct listener *l)
{
    struct http *h = l->data;
    h->accept_pending = true;
    http_run(h);
}

/* ---- life ----------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 0))) static void on_log(void *arg, const char *fmt, va_list ap)
{
    const struct http *h = arg;
    char text[256];
    vsnprintf(text, sizeof text, fmt, ap);
    text[strcspn(text, "\n")] = '\0';
    clave__log(&h->o.log, CLAVE_LOG_DEBUG, "http: %s", text);
}

static clave_err http_start_daemon(struct http *h, const struct fault *f)
{
    static const unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG;
    h->daemon = h->lib->MHD_start_daemon(
        flags, 0, NULL, NULL, on_http_request, h, MHD_OPTION_EXTERNAL_LOGGER, on_log, h,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_MAX_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_S, MHD_OPTION_NOTIFY_CONNECTION, http_on_connection, h, MHD_OPTION_END);
    const union MHD_DaemonInfo *info =
        h->daemon ? h->lib->MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (!info || uv_poll_init(h->o.loop, &h->poll, info->epoll_fd) != 0)
        return clave__start_error(f, CLAVE_EIO,
                                  "libmicrohttpd does not start: no epoll, or out of memory");
    uv_timer_init(h->o.loop, &h->timer);
    h->poll.data = h->timer.data = h;
    h->handles = 2;
    return uv_poll_start(&h->poll, UV_READABLE, on_readable) == 0 ? CLAVE_OK : CLAVE_EIO;
}

clave_err clave__http_check(const char *address, const struct fault *f)
{
    const char *why;
    if (!clave__microhttpd(&why))
        return clave__start_error(f, CLAVE_EIO, "%s", why);
    return clave__listen_check(address, f);
}

clave_err clave__http_start(struct http **out, const char *spec, const struct http_options *o,
                            const struct fault *f)
{
    const char *why;
    const struct microhttpd *lib = clave__microhttpd(&why);
    *out = NULL;
    if (!lib)
        return clave__start_error(f, CLAVE_EIO, "%s", why);
    struct http *h = calloc(1, sizeof *h);
    if (!h)
        return CLAVE_ENOMEM;
    h->lib = lib;
    h->o = *o;
    list_init(&h->listeners);
    list_init(&h->connections);
    clave_err err = http_start_daemon(h, f);
    if (err == CLAVE_OK)
        err = clave__listen(o->loop, spec, on_connection, h, &h->listeners, f);
    if (err == CLAVE_OK)
        *out = h;
    else
        clave__http_stop(h);
    return err;
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct http *h = handle->data;
    if (--h->handles == 0)
        free(h);
}

void clave__http_stop(struct http *h)
{
    if (!h)
        return;
    bool opened = h->handles > 0;
    while (!list_empty(&h->listeners))
        clave__listener_close(LIST_ENTRY(h->listeners.next, struct listener, link));
    if (opened)
        uv_poll_stop(&h->poll); /* before the library closes what it watches */
    if (h->daemon)
        h->lib->MHD_stop_daemon(h->daemon);
    if (!opened) {
        free(h);
        return;
    }
    uv_close((uv_handle_t *)&h->poll, on_handle_closed);
    uv_close((uv_handle_t *)&h->timer, on_handle_closed);
}

const char *clave__http_address(const struct http *h)
{
    return LIST_ENTRY(h->listeners.next, struct listener, link)->text;
}
