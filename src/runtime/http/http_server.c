/* http_server.c - libmicrohttpd on a libuv loop (http_server.h): life, accepting, and what a turn
 * of the loop does.
 *
 * The listening sockets are libuv's, so that addresses mean the same as for clients, and so that
 * more than max_connections connections wait where they cost nothing. Accepted ones are handed to
 * the library, which has all of its sockets in one epoll descriptor that the loop watches. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/http/http_internal.h"
#include "runtime/resources.h"
#include "runtime/server/listen.h"

enum { ACCEPTED_A_TURN = 128, HANDSHAKES_A_TURN = 4, RESUMED_A_TURN = 128, HANGUPS_A_TURN = 256 };
/* Of the library and of what watches its connections. */
enum { HTTP_FILES = 3 };
/* How long a client may be out of reach until that is noticed, when nothing else tells. */
enum { SILENT_S = 30, PROBE_S = 10, PROBES = 3, UNCONFIRMED_MS = 60000 };

const char clave__http_alpn[] = "http/1.1";
const char clave__http_to_foreign[] =
    "HTTP/1.1 400 Bad Request\r\n"
    "Content-Type: application/problem+json\r\nConnection: close\r\n\r\n"
    "{\"title\":\"Bad Request\",\"status\":400,\"detail\":\"this address speaks TLS: use https\","
    "\"code\":\"EINVAL\",\"class\":\"final\"}\n";

/* ---- connections ---------------------------------------------------------------------------- */

static void http_on_connection(void *http, struct MHD_Connection *c, void **connection,
                               enum MHD_ConnectionNotificationCode code)
{
    struct http *h = http;
    struct http_connection *g = *connection;
    (void)c;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *connection = h->starting;
        h->starting = NULL;
    } else if (g) {
        clave__http_connection_free(g);
    }
}

static void http_hand_over(struct http *h, int fd, const struct peer_addr *peer,
                           const char *subject)
{
    /* All that the library asks of the address is whether TCP's options make sense. */
    const struct sockaddr_storage kind = {.ss_family = peer->family == 0 || peer->secure ? AF_UNIX
                                                                                         : AF_INET};
    struct http_connection *g = clave__http_connection_new(h, fd, peer, subject);
    if (!g)
        return;
    h->starting = g;
    h->lib->MHD_add_connection(h->daemon, fd, (const struct sockaddr *)&kind,
                               sizeof(struct sockaddr_in)); /* or closes it */
    if (h->starting == g) {
        h->starting = NULL;
        clave__http_connection_free(g);
    }
}

/* A client that has lost its power or its network says nothing, and a lock may be held for it. */
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
    if (!l->is_unix && peer.family == 0) /* it has gone already */
        close(fd);
    else if (l->tls)
        clave__http_tls_take(h->tls, fd, &peer);
    else
        http_hand_over(h, fd, &peer, NULL);
}

static bool http_has_room(const struct http *h)
{
    return h->nconnections + (h->tls ? clave__http_tls_waiting(h->tls) : 0) < h->o.max_connections;
}

static void http_accept_waiting(struct http *h)
{
    if (!h->accept_pending || h->is_quiet)
        return;
    for (struct list *e = h->listeners.next; e != &h->listeners; e = e->next) {
        struct listener *l = LIST_ENTRY(e, struct listener, link);
        int fd = 0;
        for (int left = l->tls ? HANDSHAKES_A_TURN : ACCEPTED_A_TURN; left > 0 && http_has_room(h);
             left--)
            if ((fd = clave__listener_accept(l)) >= 0)
                http_take(h, l, fd);
            else
                break;
        if (fd < 0 && fd != -EAGAIN && clave__log_may_tell(&h->may_tell_at, uv_now(h->o.loop)))
            clave__log(&h->o.log, CLAVE_LOG_WARN, "cannot accept an HTTP connection: %s",
                       uv_strerror(fd));
        clave__listener_watch(l, http_has_room(h));
    }
    h->accept_pending = !http_has_room(h);
}

/* Once a turn, however many things have happened, and in the next one without waiting before. A
 * timer of 0 ms that is set by a timer would run in the same turn, again and again: until a long
 * answer is all sent. */
static void http_want_turn(struct http *h)
{
    uv_idle_start(&h->turn, h->on_turn);
}

static void http_on_listener(struct listener *l)
{
    struct http *h = l->data;
    h->accept_pending = true;
    http_want_turn(h);
}

/* ---- the loop ------------------------------------------------------------------------------- */

static void http_on_timer(uv_timer_t *t)
{
    http_want_turn(t->data);
}

static void http_arm(struct http *h)
{
    uint64_t now = uv_now(h->o.loop), until = clave__http_connections_deadline(h);
    uint64_t wait = until == UINT64_MAX ? until : until > now ? until - now : 0;
    MHD_UNSIGNED_LONG_LONG ms;
    if (h->lib->MHD_get_timeout(h->daemon, &ms) == MHD_YES && ms < wait)
        wait = ms;
    if (wait == 0 || !list_empty(&h->ready))
        http_want_turn(h);
    if (wait == 0 || wait == UINT64_MAX)
        uv_timer_stop(&h->timer);
    else
        uv_timer_start(&h->timer, http_on_timer, wait, 0);
}

static void http_on_turn(uv_idle_t *turn)
{
    struct http *h = turn->data;
    uv_idle_stop(turn);
    h->has_made_piece = false;
    h->turn_ends = 0;
    clave__http_exchanges_resume(h, RESUMED_A_TURN);
    clave__http_connections_expire(h);
    h->lib->MHD_run(h->daemon);
    http_accept_waiting(h);
    http_arm(h);
}

static void http_on_readable(uv_poll_t *p, int status, int events)
{
    (void)status;
    (void)events;
    http_want_turn(p->data);
}

/* Those that are left come in the next turn. */
static void http_on_hangups(uv_poll_t *p, int status, int events)
{
    struct http *h = p->data;
    struct epoll_event found[HANGUPS_A_TURN];
    (void)status;
    (void)events;
    int n = epoll_wait(h->hangup_fd, found, HANGUPS_A_TURN, 0);
    for (int i = 0; i < n; i++) {
        struct http_connection *g = found[i].data.ptr;
        g->hung_up = true;
        clave__http_connection_enter(g, g->state);
        if (g->exchange)
            clave__http_exchange_give_up(g->exchange);
    }
    http_arm(h); /* some of them end soon */
}

/* ---- life ----------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 0))) static void http_on_log(void *arg, const char *fmt,
                                                              va_list ap)
{
    const struct http *h = arg;
    char text[256];
    vsnprintf(text, sizeof text, fmt, ap);
    text[strcspn(text, "\n")] = '\0';
    clave__log(&h->o.log, CLAVE_LOG_DEBUG, "http: %s", text);
}

static struct MHD_Daemon *http_start_daemon(struct http *h)
{
    static const unsigned flags =
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME;
    static const size_t standard = 32768;
    return h->lib->MHD_start_daemon(
        flags, 0, NULL, NULL, clave__http_exchange_handler(), h, MHD_OPTION_EXTERNAL_LOGGER,
        http_on_log, h, MHD_OPTION_CONNECTION_LIMIT, h->o.ever_connections,
        MHD_OPTION_CONNECTION_TIMEOUT, h->o.silent_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        h->o.connection_memory > 0 ? h->o.connection_memory : standard,
        MHD_OPTION_NOTIFY_CONNECTION, http_on_connection, h, MHD_OPTION_URI_LOG_CALLBACK,
        clave__http_exchange_on_uri, h, MHD_OPTION_NOTIFY_COMPLETED,
        clave__http_exchange_on_completed, h, MHD_OPTION_END);
}

static clave_err http_start(struct http *h, const struct fault *f)
{
    int lacking = clave__files_check(HTTP_FILES);
    if (lacking != 0)
        return clave__start_error(f, clave__err_of_errno(lacking), "cannot start to serve HTTP: %s",
                                  strerror(lacking));
    h->hangup_fd = epoll_create1(EPOLL_CLOEXEC);
    h->daemon = http_start_daemon(h);
    const union MHD_DaemonInfo *info =
        h->daemon ? h->lib->MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (!info || h->hangup_fd < 0 || uv_poll_init(h->o.loop, &h->hangups, h->hangup_fd) != 0)
        return clave__start_error(f, CLAVE_EIO,
                                  "libmicrohttpd does not start: no epoll, or out of memory");
    h->hangups.data = h;
    h->handles++;
    if (uv_poll_init(h->o.loop, &h->poll, info->epoll_fd) != 0)
        return CLAVE_EIO;
    uv_timer_init(h->o.loop, &h->timer);
    uv_idle_init(h->o.loop, &h->turn);
    h->poll.data = h->timer.data = h->turn.data = h;
    h->handles += 3;
    int fault = uv_poll_start(&h->hangups, UV_READABLE, http_on_hangups);
    if (fault == 0)
        fault = uv_poll_start(&h->poll, UV_READABLE, http_on_readable);
    return fault == 0 ? CLAVE_OK : CLAVE_EIO;
}

clave_err clave__http_server_check(const char *address, const struct fault *f)
{
    const char *why;
    if (!clave__microhttpd(&why))
        return clave__start_error(f, CLAVE_EIO, "%s", why);
    return clave__listen_check(address, f);
}

/* ---- TLS ------------------------------------------------------------------------------------ */

static void http_release(struct http *h)
{
    if (--h->handles == 0)
        free(h);
}

static void http_on_secured(void *http, int fd, const struct peer_addr *peer, const char *subject)
{
    http_hand_over(http, fd, peer, subject);
    http_arm(http); /* it may be silent from now on */
}

/* Another one may be accepted, in the next turn. */
static void http_on_tls_gone(void *http)
{
    struct http *h = http;
    if (h->accept_pending)
        http_want_turn(h);
}

static void http_on_tls_freed(void *http)
{
    http_release(http);
}

static size_t http_max_shaking(const struct http *h)
{
    return h->o.max_connections / 4 + 1;
}

void clave__http_server_set_max_connections(struct http *h, unsigned most)
{
    h->o.max_connections = most < h->o.ever_connections ? most : h->o.ever_connections;
    if (h->tls)
        clave__http_tls_set_max_shaking(h->tls, http_max_shaking(h));
    h->accept_pending = true;
    http_want_turn(h);
}

static clave_err http_start_tls(struct http *h, const char *spec, const struct fault *f)
{
    const struct http_tls_options o = {.loop = h->o.loop,
                                       .mem = h->o.mem,
                                       .log = &h->o.log,
                                       .side = h->o.tls,
                                       .max_shaking = http_max_shaking(h),
                                       .shaking_ms = h->o.handshake_ms,
                                       .stuck_ms = h->o.ms[HTTP_SENDING],
                                       .secured = http_on_secured,
                                       .gone = http_on_tls_gone,
                                       .freed = http_on_tls_freed,
                                       .arg = h};
    if (h->tls)
        return CLAVE_OK;
    if (!h->o.tls)
        return clave__start_error(f, CLAVE_EINVAL, "%s needs a certificate", spec);
    clave_err err = clave__http_tls_new(&h->tls, &o);
    if (err == CLAVE_OK)
        h->handles++;
    return err;
}

clave_err clave__http_server_listen(struct http *h, const char *spec, const struct fault *f)
{
    clave_err err = strncmp(spec, "tls:", 4) == 0 ? http_start_tls(h, spec, f) : CLAVE_OK;
    if (err != CLAVE_OK)
        return err;
    return clave__listen(h->o.loop, spec, http_on_listener, h, &h->listeners, f);
}

clave_err clave__http_server_start(struct http **out, const char *spec,
                                   const struct http_options *o, const struct fault *f)
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
    if (h->o.ever_connections < h->o.max_connections)
        h->o.ever_connections = h->o.max_connections;
    h->hangup_fd = -1;
    h->on_turn = http_on_turn;
    list_init(&h->listeners);
    list_init(&h->ready);
    for (int state = 0; state <= HTTP_STATES; state++)
        list_init(&h->in_state[state]);
    clave_err err = http_start(h, f);
    if (err == CLAVE_OK)
        err = clave__http_server_listen(h, spec, f);
    if (err == CLAVE_OK)
        *out = h;
    else
        clave__http_server_stop(h);
    return err;
}

static void http_on_handle_closed(uv_handle_t *handle)
{
    http_release(handle->data);
}

void clave__http_server_quiet(struct http *h)
{
    h->is_quiet = true;
    while (!list_empty(&h->listeners))
        clave__listener_close(LIST_ENTRY(h->listeners.next, struct listener, link));
}

/* The library insists that nothing is suspended when it ends. */
static void http_give_up_all(struct http *h)
{
    for (int state = 0; state <= HTTP_STATES; state++)
        for (struct list *e = h->in_state[state].next; e != &h->in_state[state]; e = e->next) {
            struct http_exchange *x = LIST_ENTRY(e, struct http_connection, link)->exchange;
            if (x)
                clave__http_exchange_give_up(x);
        }
    clave__http_exchanges_resume(h, SIZE_MAX);
}

void clave__http_server_stop(struct http *h)
{
    if (!h)
        return;
    uv_handle_t *const handles[] = {(uv_handle_t *)&h->hangups, (uv_handle_t *)&h->poll,
                                    (uv_handle_t *)&h->timer, (uv_handle_t *)&h->turn};
    int opened = h->handles - (h->tls ? 1 : 0);
    clave__http_server_quiet(h);
    if (opened > 1)
        uv_poll_stop(&h->poll); /* before the library closes what it watches */
    if (opened > 0)
        uv_poll_stop(&h->hangups);
    http_give_up_all(h);
    if (h->daemon)
        h->lib->MHD_stop_daemon(h->daemon);
    clave__http_tls_free(h->tls); /* after the library has closed its ends */
    if (h->hangup_fd >= 0)
        close(h->hangup_fd);
    if (opened == 0)
        free(h);
    for (int i = 0; i < opened; i++)
        uv_close(handles[i], http_on_handle_closed);
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
           list_empty(&h->in_state[HTTP_SENDING]) && !(h->tls && clave__http_tls_is_stuck(h->tls));
}

size_t clave__http_server_connections(const struct http *h)
{
    return h->nconnections + (h->tls ? clave__http_tls_waiting(h->tls) : 0);
}
