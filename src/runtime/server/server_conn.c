/* server_conn.c - the connections of a server, each of which is a channel (channel.h) with the
 * engine above it. They are accepted or turned away here, take turns to shake hands if they use TLS
 * and to be read (fair_reading.h), are written to, and are closed.
 *
 * Whatever may happen to thousands of connections at once is done for a few of them in each turn of
 * the loop: accepting, TLS handshakes, closing. A TLS connection that waits for its handshake is
 * not read and has no filter yet, so it takes no memory for that.
 *
 * What must stay true: the engine's bytes are never kept across a call into the engine. A
 * connection that was counted for its address is uncounted exactly once, when it begins to
 * close. */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log_line.h"
#include "runtime/server/server_run_internal.h"
#include "runtime/tls/tls_filter.h"

struct conn {
    struct list link;
    struct list in_handshakes; /* waiting for its turn to shake hands; it is not read before */
    struct list in_hung_up;
    int why; /* why its client hung up */
    struct fair_reader reader;
    struct server_conn *engine; /* NULL: not accepted yet, or closing */
    struct address *address;    /* NULL: not counted */
    bool has_session;           /* it has, or had, a session */
    struct channel channel;
};

static struct conn *conn_of(struct channel *ch)
{
    return LIST_ENTRY(ch, struct conn, channel);
}

/* The server whose loop the channel is on. */
static struct server_run *conn_run(struct channel *ch)
{
    return LIST_ENTRY(ch->socket.handle.loop, struct server_run, loop);
}

/* How many are closed in one turn of the loop; closing a socket takes the kernel about 15 us. */
enum { CLOSED_A_TURN = 64 };

static void conn_note_session(struct conn *c)
{
    assert(c->engine);
    if (c->has_session || !clave__server_conn_has_session(c->engine))
        return;
    c->has_session = true;
    clave__address_limit_note_session(c->address);
}

/* ---- closing -------------------------------------------------------------------------------- */

/* The client has hung up. If thousands do so at once, they are closed a few per turn. */
static void conn_hung_up(struct channel *ch, int why)
{
    struct conn *c = conn_of(ch);
    struct server_run *r = conn_run(ch);
    if (r->closed < CLOSED_A_TURN) {
        clave__channel_close(ch, why);
        return;
    }
    c->why = why;
    list_push_back(&r->hung_up, &c->in_hung_up);
    clave__channel_set_reading(ch, false);
}

static void conn_on_closing(struct channel *ch, enum channel_state was, int why)
{
    struct conn *c = conn_of(ch);
    struct server_run *r = conn_run(ch);
    (void)was;
    list_remove(&c->in_hung_up);
    clave__fair_reading_leave(&r->reading, &c->reader);
    r->closed++;
    if (why != 0)
        clave__run_tick(r);
    if (c->engine)
        clave__server_conn_closed(c->engine);
    c->engine = NULL;
    clave__address_limit_leave(&r->address_limit, c->address, c->has_session);
    c->address = NULL;
    list_remove(&c->in_handshakes);
}

static void conn_on_closed(struct channel *ch)
{
    struct conn *c = conn_of(ch);
    struct server_run *r = conn_run(ch);
    assert(!c->engine && !c->address && r->nconns > 0);
    list_remove(&c->link);
    r->nconns--;
    free(c);
    clave__run_count(r);
}

void clave__conn_drop(struct server_conn *engine)
{
    struct conn *c = clave__server_conn_user(engine);
    clave__channel_close(&c->channel, 0);
}

void clave__conn_close_quiet(struct server_run *r, bool all)
{
    struct list *e = r->conns.next;
    while (e != &r->conns) {
        struct conn *c = LIST_ENTRY(e, struct conn, link);
        e = e->next;
        if (all || !c->channel.writing)
            clave__channel_close(&c->channel, 0);
    }
}

/* ---- bytes ---------------------------------------------------------------------------------- */

static uv_buf_t conn_buffer(struct channel *ch)
{
    struct conn *c = conn_of(ch);
    struct server_run *r = conn_run(ch);
    assert(c->engine);
    size_t n = clave__fair_reading_share(&r->reading, &c->reader, clave__server_taken(r->server));
    if (n == 0) {
        clave__server_conn_left_unread(c->engine);
        return uv_buf_init(NULL, 0);
    }
    return uv_buf_init(r->input, (unsigned)(n < RUN_INPUT_SIZE ? n : RUN_INPUT_SIZE));
}

static bool conn_input(struct channel *ch, const void *p, size_t n)
{
    assert(conn_of(ch)->engine);
    struct server_run *r = conn_run(ch);
    clave__run_tick(r);
    clave__server_conn_input(conn_of(ch)->engine, p, n);
    clave__fair_reading_count(&r->reading, n);
    conn_note_session(conn_of(ch));
    return true;
}

static size_t conn_output(struct channel *ch, const void **p)
{
    return clave__server_conn_output(conn_of(ch)->engine, p);
}

static void conn_sent(struct channel *ch, size_t n)
{
    conn_run(ch)->sent += n;
    clave__server_conn_sent(conn_of(ch)->engine, n);
}

static bool conn_is_done(struct channel *ch)
{
    return clave__server_conn_wants_close(conn_of(ch)->engine);
}

static void conn_set_reading(struct conn *c)
{
    assert(c->engine);
    bool serving = conn_run(&c->channel)->phase != RUN_STOPPING && list_empty(&c->in_handshakes) &&
                   list_empty(&c->in_hung_up) && !clave__fair_reader_is_declined(&c->reader);
    bool wanted = serving && clave__server_conn_wants_read(c->engine);
    if (!wanted)
        clave__fair_reading_pass(&conn_run(&c->channel)->reading, &c->reader);
    clave__channel_set_reading(&c->channel, wanted);
}

void clave__conn_serve(struct server_conn *engine)
{
    struct conn *c = clave__server_conn_user(engine);
    while (clave__channel_write(&c->channel))
        continue;
    if (clave__channel_is_live(&c->channel))
        conn_set_reading(c);
}

static void conn_drained(struct channel *ch)
{
    clave__run_tick(conn_run(ch));
    clave__conn_serve(conn_of(ch)->engine);
}

/* The engine's answers are sent at the end of the pass, but messages of a filter (TLS) must be sent
 * here. */
static void conn_received(struct channel *ch)
{
    if (ch->filter)
        conn_drained(ch);
    else
        conn_set_reading(conn_of(ch)); /* now, or libuv keeps reading */
}

static const struct channel_ops conn_channel = {
    .buffer = conn_buffer,
    .input = conn_input,
    .output = conn_output,
    .sent = conn_sent,
    .is_done = conn_is_done,
    .received = conn_received,
    .drained = conn_drained,
    .hung_up = conn_hung_up,
    .closing = conn_on_closing,
    .closed = conn_on_closed,
};

/* ---- a new one, and turns of the loop -------------------------------------------------------- */

static struct conn *conn_new(struct server_run *r, int fd, bool is_unix, struct address *a)
{
    struct conn *c = calloc(1, sizeof *c);
    if (!c) {
        clave__address_limit_leave(&r->address_limit, a, false);
        close(fd);
        return NULL;
    }
    c->address = a;
    list_init(&c->in_handshakes);
    list_init(&c->in_hung_up);
    clave__fair_reader_init(&c->reader);
    clave__channel_init(&c->channel, &conn_channel, &r->mem);
    if (clave__channel_adopt(&c->channel, &r->loop, fd, !is_unix) != 0) {
        clave__address_limit_leave(&r->address_limit, a, false);
        free(c);
        return NULL;
    }
    list_push_back(&r->conns, &c->link);
    r->nconns++;
    clave__run_count(r);
    return c;
}

static void conn_resume(struct fair_reader *reader)
{
    conn_set_reading(LIST_ENTRY(reader, struct conn, reader));
}

bool clave__conns_go_on(struct server_run *r)
{
    while (!list_empty(&r->hung_up) && r->closed < CLOSED_A_TURN) {
        struct conn *c = LIST_ENTRY(r->hung_up.next, struct conn, in_hung_up);
        clave__channel_close(&c->channel, c->why);
    }
    r->closed = 0;
    clave__fair_reading_begin_turn(&r->reading, clave__server_taken(r->server), conn_resume);
    return !list_empty(&r->hung_up) || clave__fair_reading_has_more(&r->reading);
}

/* ---- TLS handshakes, by turns ---------------------------------------------------------------- */

static bool handshake_secured(struct channel *ch, struct tls *t)
{
    const void *der;
    size_t n = clave__tls_subject(t, &der);
    return n == 0 || clave__server_conn_certify(conn_of(ch)->engine, der, n) == CLAVE_OK;
}

/* The handshake has failed. The client may need some time to read why, and could not read it at all
 * if the socket were closed while it has unread bytes from the client. So it gets as long as any
 * connection without a session. */
static bool handshake_failed(struct channel *ch, struct tls *t)
{
    bool turned_away = ch->state == CHANNEL_SECURING;
    struct peer_addr peer;
    char why[600];
    uv_os_fd_t fd = -1;
    clave__tls_fault(t, why, sizeof why);
    uv_fileno(&ch->socket.handle, &fd);
    clave__listen_name_peer(fd, false, &peer);
    clave__log_about(&conn_run(ch)->log, CLAVE_LOG_WARN,
                     &(struct log_about){.connection = peer.text}, "%s is %s: %s", peer.text,
                     turned_away ? "turned away" : "closed", why);
    return turned_away && !clave__tls_is_foreign(t);
}

/* True if the client has waited too long and is gone: a handshake with it would only make the
 * others wait too long as well. */
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
    struct server_run *r = conn_run(&c->channel);
    if (!clave__tls_add_filter(&c->channel, r->tls, NULL, &events)) {
        clave__channel_close(&c->channel, UV_ENOMEM);
        return;
    }
    clave__run_tick(r);
    clave__server_conn_set_waiting(c->engine, false);
    conn_set_reading(c);
}

/* Lets some connections shake hands. Each handshake costs up to a millisecond of CPU time, so many
 * of them in one turn would delay the clients that are being served. */
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

/* Makes a TLS connection wait for its turn to shake hands. Until then it is not read and has no
 * filter, so that thousands can wait without taking memory. Afterwards it is read like the others:
 * the later steps cost little, and a client should not have to queue twice. */
static void conn_await_handshake(struct conn *c)
{
    assert(list_empty(&c->in_handshakes));
    struct server_run *r = conn_run(&c->channel);
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

/* ---- accepting connections, or turning them away --------------------------------------------- */

/* The most that may be buffered in the kernel for a slow client. */
enum { UNSENT_SIZE = 128 * 1024 };
/* How many are accepted in one turn of the loop; accepting one takes the kernel about 15 us. */
enum { ACCEPTED_A_TURN = 64 };

/* Limits the kernel's buffers. Otherwise the kernel would buffer megabytes for a client that does
 * not read, which is more than the documented limit for all clients, and slow to send. */
static void accept_set_options(int fd)
{
#ifdef TCP_NOTSENT_LOWAT
    const int most = UNSENT_SIZE;
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most, sizeof most);
#endif
}

/* True if a refusal may be logged: a client that connects too often must not fill the log as
 * well. */
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

/* Returns false if there is no memory. */
static bool accept_begin(struct conn *c, const struct peer_addr *peer)
{
    struct server_run *r = conn_run(&c->channel);
    c->engine = clave__server_accept(r->server, peer, c);
    if (!c->engine || (r->add_filter && !r->add_filter(r->filter_arg, &c->channel, c->engine)))
        return false;
    if (peer->secure)
        conn_await_handshake(c);
    else
        clave__channel_opened(&c->channel);
    clave__conn_serve(c->engine);
    return true;
}

/* Returns NULL if there is room, having counted the connection for *a; otherwise why it is turned
 * away. */
static const char *accept_fault(struct server_run *r, const struct peer_addr *peer,
                                struct address **a)
{
    if (r->nconns >= r->max_conns)
        return "no more connections: the limit of open files allows no more (ulimit -n, "
               "LimitNOFILE=)";
    if (clave__server_is_full(r->server))
        return "too many connections (--max-all-connections)";
    return clave__address_limit_enter(&r->address_limit, peer, a);
}

/* Accepts one connection. A client that is turned away takes no memory. */
static void accept_one(struct server_run *r, const struct listener *l, int fd)
{
    struct address *a;
    struct peer_addr peer;
    clave__listen_name_peer(fd, l->is_unix, &peer);
    peer.secure = l->tls;
    if (l->is_gate) {
        peer.has_uid = false; /* otherwise every user of HTTP would be this user */
        peer.is_gate = true;
        strcpy(peer.text, "gate");
    }
    const char *why = accept_fault(r, &peer, &a);
    if (why) {
        accept_note_turned_away(r, &peer, why);
        close(fd);
        return;
    }
    if (!l->is_unix)
        accept_set_options(fd);
    struct conn *c = conn_new(r, fd, l->is_unix, a);
    if (c && (!clave__channel_is_live(&c->channel) || accept_begin(c, &peer)))
        return;
    accept_note_turned_away(r, &peer, "out of memory");
    if (c)
        clave__channel_close(&c->channel, 0);
}

/* Accepts a few at a time, since existing connections have to wait meanwhile. */
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
