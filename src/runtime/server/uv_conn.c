/* uv_conn.c - the connections of a server (uv_server_internal.h): accepting and limits. Each is a
 * channel (channel.h) with the engine above it. The engine's bytes are never kept over a call into
 * it. */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/channel.h"
#include "runtime/server/uv_server_internal.h"
#include "runtime/tls/tls_filter.h"

/* The most that may wait in the kernel for a slow client. */
enum { UNSENT_SIZE = 128 * 1024 };
/* Of one turn of the loop: closing a socket takes the kernel some 15 us, accepting one likewise. */
enum { ACCEPTED_A_TURN = 64, CLOSED_A_TURN = 64 };
/* What one turn reads: some two milliseconds' work. A request, and a read, cost as much as so many
 * bytes. */
enum { READ_A_TURN = 512 * 1024, REQUEST_COST = 512, READ_COST = 2048, LEAST_READ = 4096 };
/* Of the connections that a turn has declined. The others are not even looked at: with more than
 * 1024 that have input libuv asks for all of them again and again in one turn. */
enum { RESUMED_AT_ONCE = 128 };

/* All connections of one address, or of one IPv6 network of 64 bits. */
struct address {
    struct map_node node;
    uint8_t family;
    uint8_t ip[16];
    unsigned count;
    unsigned sessionless; /* of these */
};

struct conn {
    struct list link;
    struct list in_handshakes; /* it is not read before its turn to shake hands */
    struct list in_hung_up;
    int why; /* its client hung up */
    struct list in_declined;
    uint64_t read_in;           /* that turn, the last time */
    bool had_some;              /* of the turn that declined it: it may have no more to read */
    bool is_overdue;            /* it was declined, and this turn has not read it yet */
    struct server_conn *engine; /* NULL: not accepted yet, or closing */
    struct address *address;    /* NULL: not counted */
    bool has_session;           /* or had */
    struct channel channel;
};

static struct conn *uv_conn_of(struct channel *ch)
{
    return LIST_ENTRY(ch, struct conn, channel);
}

/* The server on whose loop it is. */
static struct server_run *uv_conn_run(struct channel *ch)
{
    return LIST_ENTRY(ch->socket.handle.loop, struct server_run, loop);
}

/* ---- counting by address -------------------------------------------------------------------- */

static bool uv_conn_same_address(const struct map_node *node, const void *key)
{
    const struct address *a = (const void *)node; /* its first member */
    const struct peer_addr *p = key;
    return a->family == p->family && memcmp(a->ip, p->ip, clave__peer_counted(p)) == 0;
}

/* NULL, or why it is turned away. *out NULL: not counted. */
static const char *uv_conn_count_in(struct server_run *r, const struct peer_addr *peer,
                                    struct address **out)
{
    *out = NULL;
    if (peer->family == 0)
        return NULL;
    uint32_t hash = clave__map_hash_bytes(&r->addresses, peer->ip, clave__peer_counted(peer));
    struct map_node *node = clave__map_find(&r->addresses, hash, uv_conn_same_address, peer);
    struct address *a = node ? MAP_ENTRY(node, struct address, node) : calloc(1, sizeof *a);
    if (!a)
        return "out of memory";
    if (!node) {
        a->family = peer->family;
        memcpy(a->ip, peer->ip, sizeof a->ip);
        clave__map_insert(&r->addresses, &a->node, hash);
    }
    if (r->max_per_address > 0 && a->count >= r->max_per_address)
        return "too many connections from its address, or its IPv6 /64 (--max-connections)";
    if (r->max_sessionless > 0 && a->sessionless >= r->max_sessionless)
        return "too many connections without a session from its address, or its IPv6 /64 "
               "(--max-sessionless)";
    a->count++;
    a->sessionless++;
    *out = a;
    return NULL;
}

static void uv_conn_count_out(struct server_run *r, struct conn *c)
{
    struct address *a = c->address;
    c->address = NULL;
    if (!a)
        return;
    assert(a->count > 0 && (c->has_session || a->sessionless > 0));
    a->sessionless -= c->has_session ? 0 : 1;
    if (--a->count > 0)
        return;
    clave__map_remove(&r->addresses, &a->node);
    free(a);
}

static void uv_conn_note_session(struct conn *c)
{
    assert(c->engine);
    if (c->has_session || !clave__server_conn_has_session(c->engine))
        return;
    c->has_session = true;
    if (c->address)
        c->address->sessionless--;
}

static void uv_conn_set_overdue(struct conn *c, bool is_overdue)
{
    struct server_run *r = uv_conn_run(&c->channel);
    assert(!c->is_overdue || r->overdue > 0);
    r->overdue += (size_t)is_overdue - (size_t)c->is_overdue;
    c->is_overdue = is_overdue;
}

/* ---- closing -------------------------------------------------------------------------------- */

/* Thousands that go at once are closed a few in each turn. */
static void uv_conn_hung_up(struct channel *ch, int why)
{
    struct conn *c = uv_conn_of(ch);
    struct server_run *r = uv_conn_run(ch);
    if (r->closed < CLOSED_A_TURN) {
        clave__channel_close(ch, why);
        return;
    }
    c->why = why;
    list_push_back(&r->hung_up, &c->in_hung_up);
    clave__channel_set_reading(ch, false);
}

static void uv_conn_on_closing(struct channel *ch, enum channel_state was, int why)
{
    struct conn *c = uv_conn_of(ch);
    (void)was;
    list_remove(&c->in_hung_up);
    list_remove(&c->in_declined);
    uv_conn_set_overdue(c, false);
    uv_conn_run(ch)->closed++;
    if (why != 0)
        clave__run_tick(uv_conn_run(ch));
    if (c->engine)
        clave__server_conn_closed(c->engine);
    c->engine = NULL;
    uv_conn_count_out(uv_conn_run(ch), c);
    list_remove(&c->in_handshakes);
}

static void uv_conn_on_closed(struct channel *ch)
{
    struct conn *c = uv_conn_of(ch);
    struct server_run *r = uv_conn_run(ch);
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

/* Of this turn. Requests that had been read before, and were taken in this turn, count as well. */
static size_t uv_conn_left_to_read(const struct server_run *r)
{
    uint64_t taken = clave__server_taken(r->server) - r->taken_before;
    uint64_t cost = r->read + taken * REQUEST_COST;
    return cost < READ_A_TURN ? (size_t)(READ_A_TURN - cost) : 0;
}

/* Those that an earlier turn has declined come first. */
static uv_buf_t uv_conn_buffer(struct channel *ch)
{
    struct conn *c = uv_conn_of(ch);
    struct server_run *r = uv_conn_run(ch);
    assert(c->engine && list_empty(&c->in_declined));
    size_t left = uv_conn_left_to_read(r);
    if (c->is_overdue && left < LEAST_READ) /* however long the answers to others were */
        left = LEAST_READ;
    bool must_wait = left < LEAST_READ || (r->overdue > 0 && !c->is_overdue);
    uv_conn_set_overdue(c, false);
    if (must_wait) {
        c->had_some = c->read_in == r->turn;
        clave__server_conn_left_unread(c->engine);
        list_push_back(c->had_some ? &r->had_some : &r->declined, &c->in_declined);
        return uv_buf_init(NULL, 0);
    }
    c->read_in = r->turn;
    return uv_buf_init(r->input, (unsigned)(left < RUN_INPUT_SIZE ? left : RUN_INPUT_SIZE));
}

static bool uv_conn_input(struct channel *ch, const void *p, size_t n)
{
    assert(uv_conn_of(ch)->engine);
    struct server_run *r = uv_conn_run(ch);
    clave__run_tick(r);
    clave__server_conn_input(uv_conn_of(ch)->engine, p, n);
    r->read += n + READ_COST;
    uv_conn_note_session(uv_conn_of(ch));
    return true;
}

static size_t uv_conn_output(struct channel *ch, const void **p)
{
    return clave__server_conn_output(uv_conn_of(ch)->engine, p);
}

static void uv_conn_sent(struct channel *ch, size_t n)
{
    uv_conn_run(ch)->sent += n;
    clave__server_conn_sent(uv_conn_of(ch)->engine, n);
}

static bool uv_conn_is_done(struct channel *ch)
{
    return clave__server_conn_wants_close(uv_conn_of(ch)->engine);
}

static void uv_conn_set_reading(struct conn *c)
{
    assert(c->engine);
    bool serving = uv_conn_run(&c->channel)->phase != RUN_STOPPING &&
                   list_empty(&c->in_handshakes) && list_empty(&c->in_hung_up) &&
                   list_empty(&c->in_declined);
    bool wanted = serving && clave__server_conn_wants_read(c->engine);
    if (!wanted)
        uv_conn_set_overdue(c, false);
    clave__channel_set_reading(&c->channel, wanted);
}

void clave__conn_serve(struct server_conn *engine)
{
    struct conn *c = clave__server_conn_user(engine);
    while (clave__channel_write(&c->channel))
        continue;
    if (clave__channel_is_live(&c->channel))
        uv_conn_set_reading(c);
}

static void uv_conn_drained(struct channel *ch)
{
    clave__run_tick(uv_conn_run(ch));
    clave__conn_serve(uv_conn_of(ch)->engine);
}

/* What the engine answers is sent at the end of the pass. A filter's own messages are none of the
 * engine's. */
static void uv_conn_received(struct channel *ch)
{
    if (ch->filter)
        uv_conn_drained(ch);
    else
        uv_conn_set_reading(uv_conn_of(ch)); /* now, or libuv keeps reading */
}

static const struct channel_ops uv_conn_channel = {
    .buffer = uv_conn_buffer,
    .input = uv_conn_input,
    .output = uv_conn_output,
    .sent = uv_conn_sent,
    .is_done = uv_conn_is_done,
    .received = uv_conn_received,
    .drained = uv_conn_drained,
    .hung_up = uv_conn_hung_up,
    .closing = uv_conn_on_closing,
    .closed = uv_conn_on_closed,
};

/* ---- TLS ------------------------------------------------------------------------------------ */

static bool uv_conn_secured(struct channel *ch, struct tls *t)
{
    const void *der;
    size_t n = clave__tls_subject(t, &der);
    return n == 0 || clave__server_conn_certify(uv_conn_of(ch)->engine, der, n) == CLAVE_OK;
}

/* A client whose handshake has failed may take long to read why, and would not find it any more if
 * the socket were closed with unread bytes of its own. It has as long as every connection without a
 * session. */
static bool uv_conn_tls_failed(struct channel *ch, struct tls *t)
{
    bool turned_away = ch->state == CHANNEL_SECURING;
    struct peer_addr peer;
    char why[600];
    uv_os_fd_t fd = -1;
    clave__tls_fault(t, why, sizeof why);
    uv_fileno(&ch->socket.handle, &fd);
    clave__listen_name_peer(fd, false, &peer);
    clave__log_about(&uv_conn_run(ch)->log, CLAVE_LOG_WARN,
                     &(struct log_about){.connection = peer.text}, "%s is %s: %s", peer.text,
                     turned_away ? "turned away" : "closed", why);
    return turned_away && !clave__tls_is_foreign(t);
}

/* ---- accepting ------------------------------------------------------------------------------ */

/* The kernel would buffer megabytes for a client that does not read: more than the documented limit
 * for all, and slow to take. */
static void uv_conn_set_options(int fd)
{
#ifdef TCP_NOTSENT_LOWAT
    const int most = UNSENT_SIZE;
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most, sizeof most);
#endif
}

/* A client that connects too often must not fill the log as well. */
static bool uv_conn_may_tell(struct server_run *r)
{
    return clave__log_may_tell(&r->may_tell_at, uv_now(&r->loop));
}

static void uv_conn_note_turned_away(struct server_run *r, const struct peer_addr *peer,
                                     const char *why)
{
    clave__server_note_rejected(r->server);
    r->turned_away++;
    if (!uv_conn_may_tell(r))
        return;
    clave__log_about(&r->log, CLAVE_LOG_WARN, &(struct log_about){.connection = peer->text},
                     "turned away %s: %s (%zu turned away since the last message)", peer->text, why,
                     r->turned_away);
    r->turned_away = 0;
}

/* ---- the queue of handshakes ---------------------------------------------------------------- */

/* A TLS connection is not read before its turn to shake hands, and has no filter: thousands that
 * wait take no memory for it. Then it is read like the others: the later steps cost little, and a
 * client must not wait in the queue twice. */
static void uv_conn_await_turn(struct conn *c)
{
    assert(list_empty(&c->in_handshakes));
    struct server_run *r = uv_conn_run(&c->channel);
    list_push_back(&r->handshakes, &c->in_handshakes);
    clave__server_conn_set_waiting(c->engine, true);
    uv_idle_start(&r->handshake_turn, clave__conn_on_handshake_turn);
}

/* Its client has waited too long, and has gone: a handshake with it would only make the others wait
 * too long as well. */
static bool uv_conn_is_abandoned(const struct conn *c)
{
    struct pollfd p = {.fd = -1, .events = POLLRDHUP};
    uv_fileno(&c->channel.socket.handle, &p.fd);
    return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

static void uv_conn_begin_handshake(struct conn *c)
{
    assert(c->engine && !c->channel.filter);
    static const struct tls_events events = {uv_conn_secured, uv_conn_tls_failed};
    struct server_run *r = uv_conn_run(&c->channel);
    if (!clave__tls_add_filter(&c->channel, r->tls, NULL, &events)) {
        clave__channel_close(&c->channel, UV_ENOMEM);
        return;
    }
    clave__run_tick(r);
    clave__server_conn_set_waiting(c->engine, false);
    uv_conn_set_reading(c);
}

void clave__conn_on_handshake_turn(uv_idle_t *turn)
{
    enum { HANDSHAKES_A_TURN = 4, ABANDONED_A_TURN = 64 };
    struct server_run *r = turn->data;
    struct list *e;
    int begun = 0, abandoned = 0;
    while (begun < HANDSHAKES_A_TURN && abandoned < ABANDONED_A_TURN &&
           (e = list_pop_front(&r->handshakes))) {
        struct conn *c = LIST_ENTRY(e, struct conn, in_handshakes);
        if (uv_conn_is_abandoned(c)) {
            abandoned++;
            clave__channel_close(&c->channel, 0);
        } else {
            begun++;
            uv_conn_begin_handshake(c);
        }
    }
    if (list_empty(&r->handshakes))
        uv_idle_stop(turn);
}

/* ---- taking one in -------------------------------------------------------------------------- */

/* false: out of memory. */
static bool uv_conn_begin(struct conn *c, const struct peer_addr *peer)
{
    struct server_run *r = uv_conn_run(&c->channel);
    c->engine = clave__server_accept(r->server, peer, c);
    if (!c->engine || (r->add_filter && !r->add_filter(r->filter_arg, &c->channel, c->engine)))
        return false;
    if (peer->secure)
        uv_conn_await_turn(c);
    else
        clave__channel_opened(&c->channel);
    clave__conn_serve(c->engine);
    return true;
}

/* Takes the socket, and `a`'s count. NULL: out of memory. It may be closing already. */
static struct conn *uv_conn_new(struct server_run *r, int fd, bool is_unix, struct address *a)
{
    struct conn none = {.address = a}, *c = calloc(1, sizeof *c);
    if (!c) {
        uv_conn_count_out(r, &none);
        close(fd);
        return NULL;
    }
    c->address = a;
    list_init(&c->in_handshakes);
    list_init(&c->in_hung_up);
    list_init(&c->in_declined);
    clave__channel_init(&c->channel, &uv_conn_channel, &r->mem);
    if (clave__channel_adopt(&c->channel, &r->loop, fd, !is_unix) != 0) {
        uv_conn_count_out(r, c);
        free(c);
        return NULL;
    }
    list_push_back(&r->conns, &c->link);
    r->nconns++;
    clave__run_count(r);
    return c;
}

/* A client that is turned away needs no memory here. */
static void uv_conn_take(struct server_run *r, const struct listener *l, int fd)
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
    const char *why =
        r->nconns >= r->max_conns ? "no more connections: the limit of open files is reached"
        : clave__server_is_full(r->server) ? "too many connections (--max-all-connections)"
                                           : uv_conn_count_in(r, &peer, &a);
    if (why) {
        uv_conn_note_turned_away(r, &peer, why);
        close(fd);
        return;
    }
    if (!l->is_unix)
        uv_conn_set_options(fd);
    struct conn *c = uv_conn_new(r, fd, l->is_unix, a);
    if (c && (!clave__channel_is_live(&c->channel) || uv_conn_begin(c, &peer)))
        return;
    uv_conn_note_turned_away(r, &peer, "out of memory");
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
        uv_conn_take(r, l, fd);
    if (fd < 0 && fd != -EAGAIN && uv_conn_may_tell(r))
        clave__log(&r->log, CLAVE_LOG_WARN, "cannot accept a connection: %s", uv_strerror(fd));
}

/* Who had some of the turn comes after those that it declined, and before those declined later. The
 * others are not kept waiting for it: a read that has filled its buffer may have been the last. */
static void uv_conn_resume_declined(struct server_run *r)
{
    struct list *e;
    if (list_empty(&r->declined))
        list_splice(&r->declined, &r->had_some);
    for (int left = RESUMED_AT_ONCE; left > 0 && (e = list_pop_front(&r->declined)); left--) {
        struct conn *c = LIST_ENTRY(e, struct conn, in_declined);
        uv_conn_set_overdue(c, !c->had_some);
        uv_conn_set_reading(c);
    }
    list_splice(&r->declined, &r->had_some);
}

bool clave__conns_go_on(struct server_run *r)
{
    while (!list_empty(&r->hung_up) && r->closed < CLOSED_A_TURN) {
        struct conn *c = LIST_ENTRY(r->hung_up.next, struct conn, in_hung_up);
        clave__channel_close(&c->channel, c->why);
    }
    r->closed = 0;
    r->read = 0;
    r->taken_before = clave__server_taken(r->server);
    r->turn++;
    if (r->overdue == 0)
        uv_conn_resume_declined(r);
    return !list_empty(&r->hung_up) || !list_empty(&r->declined) || !list_empty(&r->had_some);
}
