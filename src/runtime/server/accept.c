/* accept.c - takes connections in, or turns them away. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log_rate.h"
#include "runtime/server/uv_conn.h"

/* The most that may wait in the kernel for a slow client. */
enum { UNSENT_SIZE = 128 * 1024 };
/* Of one turn of the loop: accepting one takes the kernel some 15 us. */
enum { ACCEPTED_A_TURN = 64 };

/* The kernel would buffer megabytes for a client that does not read: more than the documented limit
 * for all, and slow to take. */
static void accept_set_options(int fd)
{
#ifdef TCP_NOTSENT_LOWAT
    const int most = UNSENT_SIZE;
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most, sizeof most);
#endif
}

/* A client that connects too often must not fill the log as well. */
static bool accept_may_tell(struct server_run *r)
{
    return clave__log_may_tell(&r->may_tell_at, uv_now(&r->loop));
}

static void accept_note_turned_away(struct server_run *r, const struct peer_addr *peer,
                                    const char *why)
{
    clave__server_note_rejected(r->server);
    r->turned_away++;
    if (!accept_may_tell(r))
        return;
    clave__log_about(&r->log, CLAVE_LOG_WARN, &(struct log_about){.connection = peer->text},
                     "turned away %s: %s (%zu turned away since the last message)", peer->text, why,
                     r->turned_away);
    r->turned_away = 0;
}

/* false: out of memory. */
static bool accept_begin(struct conn *c, const struct peer_addr *peer)
{
    struct server_run *r = clave__conn_run(&c->channel);
    c->engine = clave__server_accept(r->server, peer, c);
    if (!c->engine || (r->add_filter && !r->add_filter(r->filter_arg, &c->channel, c->engine)))
        return false;
    if (peer->secure)
        clave__conn_await_handshake(c);
    else
        clave__channel_opened(&c->channel);
    clave__conn_serve(c->engine);
    return true;
}

/* A client that is turned away needs no memory here. */
static void accept_one(struct server_run *r, const struct listener *l, int fd)
{
    struct address *a;
    struct peer_addr peer;
    clave__listen_name_peer(fd, l->is_unix, &peer);
    peer.secure = l->tls;
    if (l->is_gate) {
        peer.has_uid = false; /* every user of HTTP would be this one */
        peer.is_gate = true;
        strcpy(peer.text, "gate");
    }
    const char *why = r->nconns >= r->max_conns
                          ? "no more connections: the limit of open files is reached"
                      : clave__server_is_full(r->server)
                          ? "too many connections (--max-all-connections)"
                          : clave__address_limit_enter(&r->address_limit, &peer, &a);
    if (why) {
        accept_note_turned_away(r, &peer, why);
        close(fd);
        return;
    }
    if (!l->is_unix)
        accept_set_options(fd);
    struct conn *c = clave__conn_new(r, fd, l->is_unix, a);
    if (c && (!clave__channel_is_live(&c->channel) || accept_begin(c, &peer)))
        return;
    accept_note_turned_away(r, &peer, "out of memory");
    if (c)
        clave__channel_close(&c->channel, 0);
}

/* Some at a time: the connections that there are wait meanwhile. */
void clave__conn_on_connection(struct listener *l)
{
    struct server_run *r = l->data;
    int fd = 0;
    clave__run_tick(r);
    for (int i = 0; i < ACCEPTED_A_TURN && (fd = clave__listener_accept(l)) >= 0; i++)
        accept_one(r, l, fd);
    if (fd < 0 && fd != -EAGAIN && accept_may_tell(r))
        clave__log(&r->log, CLAVE_LOG_WARN, "cannot accept a connection: %s", uv_strerror(fd));
}
