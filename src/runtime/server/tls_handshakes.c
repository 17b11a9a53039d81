/* tls_handshakes.c - the queue of TLS connections that wait for their turn to shake hands, and what
 * follows from a handshake: a certificate, or a failure. */
#include <assert.h>
#include <poll.h>

#include "runtime/server/uv_conn.h"
#include "runtime/tls/tls_filter.h"

static bool handshake_secured(struct channel *ch, struct tls *t)
{
    const void *der;
    size_t n = clave__tls_subject(t, &der);
    return n == 0 || clave__server_conn_certify(clave__conn_of(ch)->engine, der, n) == CLAVE_OK;
}

/* A client whose handshake has failed may take long to read why, and would not find it any more if
 * the socket were closed with unread bytes of its own. It has as long as every connection without a
 * session. */
static bool handshake_failed(struct channel *ch, struct tls *t)
{
    bool turned_away = ch->state == CHANNEL_SECURING;
    struct peer_addr peer;
    char why[600];
    uv_os_fd_t fd = -1;
    clave__tls_fault(t, why, sizeof why);
    uv_fileno(&ch->socket.handle, &fd);
    clave__listen_name_peer(fd, false, &peer);
    clave__log_about(&clave__conn_run(ch)->log, CLAVE_LOG_WARN,
                     &(struct log_about){.connection = peer.text}, "%s is %s: %s", peer.text,
                     turned_away ? "turned away" : "closed", why);
    return turned_away && !clave__tls_is_foreign(t);
}

/* Its client has waited too long, and has gone: a handshake with it would only make the others wait
 * too long as well. */
static bool handshake_is_abandoned(const struct conn *c)
{
    struct pollfd p = {.fd = -1, .events = POLLRDHUP};
    uv_fileno(&c->channel.socket.handle, &p.fd);
    return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

static void handshake_begin(struct conn *c)
{
    assert(c->engine && !c->channel.filter);
    static const struct tls_events events = {handshake_secured, handshake_failed};
    struct server_run *r = clave__conn_run(&c->channel);
    if (!clave__tls_add_filter(&c->channel, r->tls, NULL, &events)) {
        clave__channel_close(&c->channel, UV_ENOMEM);
        return;
    }
    clave__run_tick(r);
    clave__server_conn_set_waiting(c->engine, false);
    clave__conn_set_reading(c);
}

/* Lets some go on: each costs the CPU up to a millisecond, and many of them in one turn would hold
 * up the clients that are served. */
static void handshake_on_turn(uv_idle_t *turn)
{
    enum { HANDSHAKES_A_TURN = 4, ABANDONED_A_TURN = 64 };
    struct server_run *r = turn->data;
    struct list *e;
    int begun = 0, abandoned = 0;
    while (begun < HANDSHAKES_A_TURN && abandoned < ABANDONED_A_TURN &&
           (e = list_pop_front(&r->handshakes))) {
        struct conn *c = LIST_ENTRY(e, struct conn, in_handshakes);
        if (handshake_is_abandoned(c)) {
            abandoned++;
            clave__channel_close(&c->channel, 0);
        } else {
            begun++;
            handshake_begin(c);
        }
    }
    if (list_empty(&r->handshakes))
        uv_idle_stop(turn);
}

/* A TLS connection is not read before its turn to shake hands, and has no filter: thousands that
 * wait take no memory for it. Then it is read like the others: the later steps cost little, and a
 * client must not wait in the queue twice. */
void clave__conn_await_handshake(struct conn *c)
{
    assert(list_empty(&c->in_handshakes));
    struct server_run *r = clave__conn_run(&c->channel);
    list_push_back(&r->handshakes, &c->in_handshakes);
    clave__server_conn_set_waiting(c->engine, true);
    uv_idle_start(&r->handshake_turn, handshake_on_turn);
}

void clave__run_init_handshakes(struct server_run *r)
{
    list_init(&r->handshakes);
    uv_idle_init(&r->loop, &r->handshake_turn);
    r->handshake_turn.data = r;
}
