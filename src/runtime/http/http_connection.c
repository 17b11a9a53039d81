/* http_connection.c - one connection of an HTTP server: its peer, its state and how long that may
 * last; http_server.c and http_exchange.c call it. A client that trickles bytes, or does not read,
 * must not keep a place: every state but HTTP_WAITING ends. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/http/http_internal.h"

/* Edge-triggered: one event when the client hangs up, and the end of the socket removes it. */
static bool http_connection_watch(struct http_connection *g)
{
    struct epoll_event e = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = g};
    return epoll_ctl(g->http->hangup_fd, EPOLL_CTL_ADD, g->fd, &e) == 0;
}

struct http_connection *clave__http_connection_new(struct http *h, int fd,
                                                   const struct peer_addr *peer,
                                                   const char *subject)
{
    size_t n = subject ? strlen(subject) : 0;
    struct http_connection *g = calloc(1, sizeof *g + n + 1);
    if (!g) {
        close(fd);
        return NULL;
    }
    g->http = h;
    g->fd = fd;
    g->until = h->o.total_ms > 0 ? uv_now(h->o.loop) + h->o.total_ms : UINT64_MAX;
    list_push_back(&h->in_state[HTTP_IDLE], &g->link);
    h->nconnections++;
    g->peer = *peer;
    memcpy(g->tls_subject, subject ? subject : "", n);
    if (!http_connection_watch(g)) {
        clave__http_connection_free(g);
        close(fd);
        return NULL;
    }
    clave__http_connection_enter(g, HTTP_IDLE);
    return g;
}

void clave__http_connection_free(struct http_connection *g)
{
    list_remove(&g->link);
    g->http->nconnections--;
    free(g);
}

/* Which list it is in: HTTP_STATES when nothing more can come from it than what has come. */
static int http_connection_list(const struct http_connection *g)
{
    if (g->http->o.total_ms > 0)
        return HTTP_IDLE; /* one time for all, from the beginning */
    return g->hung_up && g->state <= HTTP_BODY ? (int)HTTP_STATES : (int)g->state;
}

void clave__http_connection_enter(struct http_connection *g, enum http_state to)
{
    enum { LEFT_MS = 1000 }; /* what came before the client hung up is still answered */
    struct http *h = g->http;
    g->state = to;
    if (h->o.total_ms > 0)
        return;
    int list = http_connection_list(g);
    uint64_t ms = list == HTTP_STATES ? LEFT_MS : h->o.ms[list];
    g->until = ms > 0 ? uv_now(h->o.loop) + ms : UINT64_MAX;
    list_remove(&g->link);
    list_push_back(&h->in_state[list], &g->link);
}

/* The library sees the end of the stream and closes it. */
static void http_connection_disconnect(struct http_connection *g)
{
    shutdown(g->fd, SHUT_RDWR);
    g->until = UINT64_MAX;
    list_remove(&g->link);
    list_push_back(&g->http->in_state[http_connection_list(g)], &g->link);
}

/* The one of a state that is disconnected first; NULL: none. */
static struct http_connection *http_connection_first(const struct http *h, int state)
{
    const struct list *in = &h->in_state[state];
    return list_empty(in) ? NULL : LIST_ENTRY(in->next, struct http_connection, link);
}

void clave__http_connections_expire(struct http *h)
{
    uint64_t now = uv_now(h->o.loop);
    struct http_connection *g;
    for (int state = 0; state <= HTTP_STATES; state++)
        while ((g = http_connection_first(h, state)) && g->until <= now)
            http_connection_disconnect(g);
}

uint64_t clave__http_connections_deadline(const struct http *h)
{
    uint64_t least = UINT64_MAX;
    for (int state = 0; state <= HTTP_STATES; state++) {
        const struct http_connection *g = http_connection_first(h, state);
        if (g && g->until < least)
            least = g->until;
    }
    return least;
}
