/* http_tls.c - see http_tls.h. Invariant: a connection is in one of the lists of struct http_tls
 * until its channel is closing, and has an inner socket from the end of its handshake until then.
 */
#include "runtime/http/http_tls.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/list.h"
#include "base/memory.h"
#include "runtime/channel.h"
#include "runtime/tls/tls_filter.h"
#include "server/request/x509_name.h"

/* One read of a client; one record of TLS, and how many of them go out before others have a turn;
 * what one read of a client may become. */
enum { READ_SIZE = 32 * 1024, RECORD = 16 * 1024, RECORDS_A_TURN = 8, MOST_IN = 64 * 1024 };
enum { MOST_SUBJECT = 8192 };

enum tls_phase { TLS_CONN_SHAKING, TLS_CONN_OPEN, TLS_CONN_STUCK, TLS_CONN_PHASES };

struct http_tls {
    struct http_tls_options o;
    uv_timer_t timer;
    struct list in_phase[TLS_CONN_PHASES]; /* each by its `until` */
    size_t nshaking, nleft; /* handshakes; and those whose inner socket the owner has closed */
    size_t handles;         /* of libuv: the last one frees it */
    bool is_ending;
    uint64_t may_tell_at;
    char read[READ_SIZE], record[RECORD];
};

struct tls_conn {
    struct channel channel;
    struct http_tls *all;
    struct list link; /* in_phase */
    enum tls_phase phase;
    uint64_t until; /* by the loop's clock */
    uv_poll_t poll; /* of the inner socket */
    int inner;      /* -1: none */
    bool hung_up;   /* the client sends no more */
    bool is_left;   /* the owner has closed its end of the inner socket */
    struct buf in;  /* what the inner socket did not take */
    struct peer_addr peer;
};

static struct tls_conn *tls_conn_of(struct channel *ch)
{
    return LIST_ENTRY(ch, struct tls_conn, channel);
}

/* A client that connects too often must not fill the log. */
static void tls_conn_warn(struct tls_conn *c, const char *what, const char *why)
{
    struct http_tls *s = c->all;
    if (clave__log_may_tell(&s->may_tell_at, uv_now(s->o.loop)))
        clave__log(s->o.log, CLAVE_LOG_WARN, "%s is %s: %s", c->peer.text, what, why);
}

/* ---- phases --------------------------------------------------------------------------------- */

static void http_tls_on_timer(uv_timer_t *t);

/* The one that is over first; NULL: the phase has none. */
static struct tls_conn *http_tls_first(const struct http_tls *s, enum tls_phase phase)
{
    const struct list *in = &s->in_phase[phase];
    return list_empty(in) ? NULL : LIST_ENTRY(in->next, struct tls_conn, link);
}

static void http_tls_arm(struct http_tls *s)
{
    uint64_t now = uv_now(s->o.loop), until = UINT64_MAX;
    for (int phase = 0; phase < TLS_CONN_PHASES; phase++) {
        const struct tls_conn *c = http_tls_first(s, phase);
        until = c && c->until < until ? c->until : until;
    }
    if (until == UINT64_MAX)
        uv_timer_stop(&s->timer);
    else
        uv_timer_start(&s->timer, http_tls_on_timer, until > now ? until - now : 0, 0);
}

/* The one function that changes the phase; TLS_CONN_PHASES: it has none any more. */
static void tls_conn_enter(struct tls_conn *c, enum tls_phase to)
{
    struct http_tls *s = c->all;
    uint64_t ms = to == TLS_CONN_SHAKING ? s->o.shaking_ms
                  : to == TLS_CONN_STUCK ? s->o.stuck_ms
                                         : 0;
    s->nshaking += (size_t)(to == TLS_CONN_SHAKING);
    s->nshaking -= (size_t)(c->phase == TLS_CONN_SHAKING);
    c->phase = to;
    list_remove(&c->link);
    if (to == TLS_CONN_PHASES)
        return;
    c->until = ms > 0 ? uv_now(s->o.loop) + ms : UINT64_MAX;
    list_push_back(&s->in_phase[to], &c->link);
    if (to != TLS_CONN_OPEN) /* its time may be over before all others */
        http_tls_arm(s);
}

static void http_tls_on_timer(uv_timer_t *t)
{
    struct http_tls *s = t->data;
    struct tls_conn *c;
    while ((c = http_tls_first(s, TLS_CONN_SHAKING)) && c->until <= uv_now(s->o.loop)) {
        if (c->channel.state == CHANNEL_SECURING)
            tls_conn_warn(c, "turned away", "its TLS handshake takes too long");
        clave__channel_close(&c->channel, 0);
    }
    while ((c = http_tls_first(s, TLS_CONN_STUCK)) && c->until <= uv_now(s->o.loop))
        clave__channel_close(&c->channel, 0);
    http_tls_arm(s);
}

/* ---- the inner socket ----------------------------------------------------------------------- */

static void tls_conn_on_inner(uv_poll_t *poll, int status, int events);

/* The client is heard while the inner socket takes it; the inner socket while the client does. */
static void tls_conn_watch(struct tls_conn *c)
{
    int events =
        (c->channel.writing ? 0 : UV_READABLE) | (clave__buf_len(&c->in) > 0 ? UV_WRITABLE : 0);
    if (!clave__channel_is_live(&c->channel) || c->inner < 0)
        return;
    if (events)
        uv_poll_start(&c->poll, events, tls_conn_on_inner);
    else
        uv_poll_stop(&c->poll);
    clave__channel_set_reading(&c->channel, !c->hung_up && clave__buf_len(&c->in) == 0);
}

/* How many bytes the inner socket takes now. All, if its owner hears no more. */
static size_t tls_conn_give(struct tls_conn *c, const void *p, size_t n)
{
    ssize_t sent = send(c->inner, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
        return n;
    return sent > 0 ? (size_t)sent : 0;
}

static void tls_conn_give_waiting(struct tls_conn *c)
{
    if (clave__buf_len(&c->in) > 0)
        clave__buf_consume(&c->in,
                           tls_conn_give(c, clave__buf_bytes(&c->in), clave__buf_len(&c->in)));
    clave__buf_trim(&c->in, 0);
    if (c->hung_up && clave__buf_len(&c->in) == 0)
        shutdown(c->inner, SHUT_WR);
}

/* Sends what there is. It may be closing then. */
static void tls_conn_send(struct tls_conn *c)
{
    struct channel *ch = &c->channel;
    for (int i = 0; i < RECORDS_A_TURN && clave__channel_write(ch); i++) {
    }
    if (ch->state != CHANNEL_OPEN)
        return;
    enum tls_phase to = ch->writing ? TLS_CONN_STUCK : TLS_CONN_OPEN;
    if (c->phase != to)
        tls_conn_enter(c, to);
    tls_conn_watch(c);
}

static void tls_conn_on_inner(uv_poll_t *poll, int status, int events)
{
    struct tls_conn *c = poll->data;
    if (status < 0) {
        clave__channel_close(&c->channel, status);
        return;
    }
    if (events & UV_WRITABLE)
        tls_conn_give_waiting(c);
    tls_conn_send(c);
}

/* ---- the channel ---------------------------------------------------------------------------- */

static uv_buf_t tls_conn_buffer(struct channel *ch)
{
    return uv_buf_init(tls_conn_of(ch)->all->read, READ_SIZE);
}

static bool tls_conn_input(struct channel *ch, const void *p, size_t n)
{
    struct tls_conn *c = tls_conn_of(ch);
    size_t given = clave__buf_len(&c->in) > 0 ? 0 : tls_conn_give(c, p, n);
    return given == n || clave__buf_append(&c->in, (const char *)p + given, n - given) == CLAVE_OK;
}

/* What is fetched here is encrypted, all of it, before the next call: the filter asks only when it
 * has nothing left to send. */
static size_t tls_conn_output(struct channel *ch, const void **p)
{
    struct tls_conn *c = tls_conn_of(ch);
    struct http_tls *s = c->all;
    if (c->inner < 0 || c->is_left)
        return 0;
    ssize_t n = recv(c->inner, s->record, sizeof s->record, MSG_DONTWAIT);
    *p = s->record;
    if (n > 0)
        return (size_t)n;
    c->is_left = n == 0 || (errno != EAGAIN && errno != EINTR);
    s->nleft += (size_t)c->is_left;
    return 0;
}

static void tls_conn_sent(struct channel *ch, size_t n)
{
    (void)ch;
    (void)n;
}

static bool tls_conn_is_done(struct channel *ch)
{
    return tls_conn_of(ch)->is_left;
}

/* Who was refused is told so, and that nothing more follows. It has the time of the handshake to
 * read that: a socket that is closed with unread bytes of the client's would not let it. */
static void tls_conn_linger(struct tls_conn *c)
{
    uv_os_fd_t fd;
    tls_conn_send(c);
    if (c->channel.state == CHANNEL_LINGERING && !c->channel.writing &&
        uv_fileno(&c->channel.socket.handle, &fd) == 0)
        shutdown(fd, SHUT_WR);
}

static void tls_conn_received(struct channel *ch)
{
    struct tls_conn *c = tls_conn_of(ch);
    if (ch->state == CHANNEL_LINGERING)
        tls_conn_linger(c);
    else
        tls_conn_send(c);
}

static void tls_conn_drained(struct channel *ch)
{
    struct tls_conn *c = tls_conn_of(ch);
    if (c->phase == TLS_CONN_STUCK)
        tls_conn_enter(c, TLS_CONN_OPEN);
    tls_conn_received(ch);
}

static void tls_conn_hung_up(struct channel *ch, int why)
{
    struct tls_conn *c = tls_conn_of(ch);
    if (ch->state != CHANNEL_OPEN || why != UV_EOF) {
        clave__channel_close(ch, why);
        return;
    }
    c->hung_up = true;
    tls_conn_give_waiting(c);
    tls_conn_watch(c);
}

static void http_tls_release(struct http_tls *s)
{
    if (--s->handles > 0)
        return;
    clave_tls_free(s->o.side);
    if (s->o.freed)
        s->o.freed(s->o.arg);
    free(s);
}

static void tls_conn_free(struct tls_conn *c)
{
    struct http_tls *s = c->all;
    s->nleft -= (size_t)c->is_left;
    clave__buf_fini(&c->in);
    free(c);
    if (!s->is_ending)
        s->o.gone(s->o.arg);
    http_tls_release(s);
}

static void tls_conn_on_poll_closed(uv_handle_t *h)
{
    tls_conn_free(h->data);
}

static void tls_conn_closing(struct channel *ch, enum channel_state was, int why)
{
    struct tls_conn *c = tls_conn_of(ch);
    (void)was;
    (void)why;
    tls_conn_enter(c, TLS_CONN_PHASES);
    if (c->inner >= 0)
        uv_poll_stop(&c->poll);
}

static void tls_conn_closed(struct channel *ch)
{
    struct tls_conn *c = tls_conn_of(ch);
    if (c->inner < 0) {
        tls_conn_free(c);
        return;
    }
    uv_close((uv_handle_t *)&c->poll, tls_conn_on_poll_closed);
    close(c->inner);
}

/* ---- the handshake -------------------------------------------------------------------------- */

/* The text is the caller's to free. false: out of memory, or no name at all. */
static bool tls_conn_name(struct tls_conn *c, const struct tls *t, struct buf *out)
{
    const void *der;
    size_t n = clave__tls_subject(t, &der);
    clave__buf_init(out, c->all->o.mem, MOST_SUBJECT);
    return n == 0 || (clave__x509_name_put(out, der, n) == CLAVE_OK &&
                      clave__buf_append(out, "", 1) == CLAVE_OK);
}

static bool tls_conn_pair(struct tls_conn *c, int ends[2])
{
    const struct http_tls *s = c->all;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    if (uv_poll_init(s->o.loop, &c->poll, ends[0]) == 0)
        return true;
    close(ends[0]);
    close(ends[1]);
    return false;
}

static bool tls_conn_secured(struct channel *ch, struct tls *t)
{
    struct tls_conn *c = tls_conn_of(ch);
    struct http_tls *s = c->all;
    struct buf subject;
    int ends[2];
    bool is_named = tls_conn_name(c, t, &subject);
    if (is_named && tls_conn_pair(c, ends)) {
        c->inner = ends[0];
        c->poll.data = c;
        tls_conn_enter(c, TLS_CONN_OPEN);
        s->o.secured(s->o.arg, ends[1], &c->peer,
                     clave__buf_len(&subject) > 0 ? clave__buf_text(&subject) : NULL);
    } else {
        tls_conn_warn(c, "turned away",
                      is_named ? strerror(errno) : "its certificate's subject is too long");
    }
    clave__buf_fini(&subject);
    return c->inner >= 0;
}

static bool tls_conn_failed(struct channel *ch, struct tls *t)
{
    struct tls_conn *c = tls_conn_of(ch);
    bool turned_away = ch->state == CHANNEL_SECURING;
    char why[600];
    clave__tls_fault(t, why, sizeof why);
    tls_conn_warn(c, turned_away ? "turned away" : "closed", why);
    return turned_away;
}

/* false: out of memory. */
static bool tls_conn_begin(struct tls_conn *c, int fd)
{
    static const struct channel_ops ops = {
        .buffer = tls_conn_buffer,
        .input = tls_conn_input,
        .output = tls_conn_output,
        .sent = tls_conn_sent,
        .is_done = tls_conn_is_done,
        .received = tls_conn_received,
        .drained = tls_conn_drained,
        .hung_up = tls_conn_hung_up,
        .closing = tls_conn_closing,
        .closed = tls_conn_closed,
    };
    static const struct tls_events events = {tls_conn_secured, tls_conn_failed};
    struct http_tls *s = c->all;
    clave__channel_init(&c->channel, &ops, s->o.mem);
    if (clave__channel_adopt(&c->channel, s->o.loop, fd, true) != 0)
        return false;
    s->handles++;
    if (!clave__channel_is_live(&c->channel))
        return true; /* it is closing */
    tls_conn_enter(c, TLS_CONN_SHAKING);
    if (clave__tls_add_filter(&c->channel, s->o.side, NULL, &events))
        clave__channel_set_reading(&c->channel, true);
    else
        clave__channel_close(&c->channel, UV_ENOMEM);
    return true;
}

void clave__http_tls_set_max_shaking(struct http_tls *s, size_t most)
{
    s->o.max_shaking = most;
}

void clave__http_tls_take(struct http_tls *s, int fd, const struct peer_addr *peer)
{
    struct tls_conn *c = calloc(1, sizeof *c);
    if (!c) {
        close(fd);
        return;
    }
    if (s->nshaking >= s->o.max_shaking)
        clave__channel_close(&http_tls_first(s, TLS_CONN_SHAKING)->channel, 0);
    c->all = s;
    c->inner = -1;
    c->phase = TLS_CONN_PHASES;
    c->peer = *peer;
    c->peer.secure = true;
    list_init(&c->link);
    clave__buf_init(&c->in, s->o.mem, MOST_IN);
    if (!tls_conn_begin(c, fd))
        free(c);
}

/* ---- all of them ---------------------------------------------------------------------------- */

size_t clave__http_tls_waiting(const struct http_tls *s)
{
    return s->nshaking + s->nleft;
}

bool clave__http_tls_is_stuck(const struct http_tls *s)
{
    return !list_empty(&s->in_phase[TLS_CONN_STUCK]);
}

clave_err clave__http_tls_new(struct http_tls **out, const struct http_tls_options *o)
{
    struct http_tls *s = *out = calloc(1, sizeof *s);
    if (!s)
        return CLAVE_ENOMEM;
    s->o = *o;
    clave__tls_context_ref(o->side);
    for (int phase = 0; phase < TLS_CONN_PHASES; phase++)
        list_init(&s->in_phase[phase]);
    uv_timer_init(o->loop, &s->timer);
    s->timer.data = s;
    s->handles = 1;
    return CLAVE_OK;
}

static void http_tls_on_timer_closed(uv_handle_t *h)
{
    http_tls_release(h->data);
}

void clave__http_tls_free(struct http_tls *s)
{
    struct tls_conn *c;
    if (!s)
        return;
    s->is_ending = true;
    for (int phase = 0; phase < TLS_CONN_PHASES; phase++)
        while ((c = http_tls_first(s, phase))) {
            while (clave__channel_write(&c->channel)) {
            }
            clave__channel_close(&c->channel, 0);
        }
    uv_close((uv_handle_t *)&s->timer, http_tls_on_timer_closed);
}
