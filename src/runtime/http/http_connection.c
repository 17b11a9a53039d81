/* http_connection.c - one connection of an HTTP server: its bytes, its peer, TLS. Bytes that arrive
 * are parsed as requests; the bytes of an answer are fetched as the socket takes them. */
#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "runtime/http/http_internal.h"
#include "runtime/http/proxy_protocol.h"
#include "runtime/tls/tls_filter.h"
#include "wire/x509_name.h"

/* MOST_LEFT: how many bytes may follow a request that is not answered yet, before reading stops.
 * WRITES_A_TURN: how often the socket is written to before others have a turn. MOST_THROWN_*:
 * bodies of refused requests are still read, for the sake of simple clients that send all of it
 * first and would otherwise find the connection reset: as long as the bytes per second over all
 * connections are within their bound, and beyond that up to a bound per connection. */
enum {
    MOST_LEFT = 16 * 1024,
    WRITES_A_TURN = 8,
    MOST_THROWN_AWAY = 64 * 1024,
    MOST_THROWN_A_SECOND = 16 * 1024 * 1024,
    MAX_SUBJECT = 8192
};

static struct http_connection *http_connection_of(struct channel *ch)
{
    return LIST_ENTRY(ch, struct http_connection, channel);
}

void clave__http_connection_close(struct http_connection *c)
{
    clave__channel_close(&c->channel, 0);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Returns how many of the bytes belong to the present request. */
static size_t http_connection_read(struct http_connection *c, const char *p, size_t n)
{
    size_t used = 0;
    while (used < n) {
        if (!c->exchange)
            c->exchange = clave__http_exchange_new(c);
        if (!c->exchange || !clave__http_exchange_reads(c->exchange))
            break;
        used += clave__http_exchange_read(c->exchange, p + used, n - used);
    }
    return used;
}

static void http_connection_read_left(struct http_connection *c)
{
    size_t n = clave__buf_len(&c->left);
    if (n > 0)
        clave__buf_consume(&c->left,
                           http_connection_read(c, (const char *)clave__buf_bytes(&c->left), n));
    clave__buf_trim(&c->left, 0);
}

/* Sets whether to read. After a request was refused, nothing is read until the client has the
 * answer. */
static void http_connection_watch(struct http_connection *c)
{
    const struct http_exchange *x = c->exchange;
    bool is_refused = x && x->answer && !x->is_whole && c->state == HTTP_SENDING;
    clave__channel_set_reading(&c->channel,
                               !c->hung_up && !is_refused && clave__buf_len(&c->left) < MOST_LEFT);
}

/* True if more of a refused body may be read. */
static bool http_connection_throws_away(struct http_connection *c)
{
    struct http *h = c->http;
    uint64_t second = uv_now(h->o.loop) / 1000;
    if (h->second != second)
        h->thrown_away = 0;
    h->second = second;
    h->thrown_away += c->channel.thrown_away - c->thrown_away;
    c->thrown_away = c->channel.thrown_away;
    return c->thrown_away <= MOST_THROWN_AWAY || h->thrown_away <= MOST_THROWN_A_SECOND;
}

/* Returns false if there is no memory. */
static bool http_connection_join(struct http_connection *c)
{
    struct http *h = c->http;
    bool is_exempt = !h->o.is_known || (h->o.is_exempt && h->o.is_exempt(h->o.arg, &c->peer));
    return clave__http_evict_join(&h->shares, &c->share, &c->peer, is_exempt) == CLAVE_OK;
}

/* ---- sending -------------------------------------------------------------------------------- */

/* The connection was answered, and may now have to make room for another one. */
static void http_connection_rest(struct http_connection *c, unsigned status)
{
    struct http *h = c->http;
    bool is_exempt = clave__http_evict_is_exempt(&c->share);
    if (!h->o.is_known) /* nobody has to make room */
        return;
    clave__http_evict_set(&h->shares, &c->share,
                          status == 401 && !is_exempt ? HTTP_TURNED_AWAY : HTTP_UNASKED);
    if (is_exempt)
        clave__http_gone(h);
}

/* The answer was sent. Returns true if another request may follow. */
static bool http_connection_next(struct http_connection *c)
{
    assert(c->exchange && c->exchange->answer);
    struct http_exchange *x = c->exchange;
    bool closes = x->closes, lingers = !x->is_whole || clave__buf_len(&c->left) > 0;
    unsigned status = x->answer->status;
    c->exchange = NULL;
    clave__http_exchange_free(x);
    http_connection_rest(c, status);
    if (!closes) {
        clave__http_connection_enter(c, HTTP_IDLE);
        return true;
    }
    if (lingers && !c->hung_up) {
        clave__channel_finish(&c->channel);
        clave__channel_set_reading(&c->channel, true);
        clave__http_connection_enter(c, HTTP_LINGERING);
    } else {
        clave__http_connection_close(c);
    }
    return false;
}

/* There is nothing to send at the moment. A client that has hung up is not waited for. */
static void http_connection_pause(struct http_connection *c)
{
    enum { KEEP = 1024 };
    struct http_exchange *x = c->exchange;
    if (x && (x->is_put_off || x->is_due)) {
        clave__http_ready(c);
    } else if (c->hung_up) {
        clave__http_connection_close(c);
        return;
    } else if (x && x->answer) {
        clave__buf_trim(&x->out, KEEP);
        clave__buf_trim(&x->answer->body, KEEP);
        if (c->state != HTTP_WAITING)
            clave__http_connection_enter(c, HTTP_WAITING);
    } else if (c->state == HTTP_SENDING) {
        clave__http_connection_enter(c, HTTP_BODY); /* the client was just asked for the body */
    }
    http_connection_watch(c);
}

/* Returns true if an answer was sent and another request may follow. */
static bool http_connection_send(struct http_connection *c)
{
    int writes = 0;
    if (c->exchange)
        c->exchange->has_made_piece = false;
    while (writes < WRITES_A_TURN && clave__channel_write(&c->channel))
        writes++;
    if (!clave__channel_is_live(&c->channel))
        return false;
    if (c->channel.writing) {
        if (c->state != HTTP_SENDING)
            clave__http_connection_enter(c, HTTP_SENDING);
        http_connection_watch(c);
        return false;
    }
    if (writes == WRITES_A_TURN) {
        clave__http_ready(c);
        return false;
    }
    if (c->exchange && c->exchange->answer && clave__http_exchange_is_sent(c->exchange))
        return http_connection_next(c);
    http_connection_pause(c);
    return false;
}

void clave__http_connection_go_on(struct http_connection *c)
{
    bool goes_on = c->channel.state == CHANNEL_OPEN;
    while (goes_on) {
        if (c->exchange && c->exchange->is_due && !clave__http_turn_is_over(c->http))
            clave__http_exchange_begin(c->exchange);
        http_connection_read_left(c);
        goes_on = http_connection_send(c);
    }
}

void clave__http_connection_flush(struct http_connection *c)
{
    while (clave__channel_write(&c->channel)) {
    }
}

/* ---- the channel ---------------------------------------------------------------------------- */

static uv_buf_t http_connection_buffer(struct channel *ch)
{
    return uv_buf_init(http_connection_of(ch)->http->read, HTTP_READ_SIZE);
}

static bool http_connection_input(struct channel *ch, const void *p, size_t n)
{
    struct http_connection *c = http_connection_of(ch);
    size_t used = clave__buf_len(&c->left) > 0 ? 0 : http_connection_read(c, p, n);
    if (c->http->o.silent_s > 0 && c->state != HTTP_WAITING)
        clave__http_connection_enter(c, c->state);
    return used == n || (c->exchange &&
                         clave__buf_append(&c->left, (const char *)p + used, n - used) == CLAVE_OK);
}

static size_t http_connection_output(struct channel *ch, const void **p)
{
    struct http_exchange *x = http_connection_of(ch)->exchange;
    return x ? clave__http_output(x, p) : 0;
}

static void http_connection_sent(struct channel *ch, size_t n)
{
    struct http_connection *c = http_connection_of(ch);
    assert(c->exchange);
    clave__http_output_sent(c->exchange, n);
    if (c->state == HTTP_SENDING)
        clave__http_connection_enter(c, HTTP_SENDING);
}

static bool http_connection_is_done(struct channel *ch)
{
    const struct http_exchange *x = http_connection_of(ch)->exchange;
    return x && x->is_broken;
}

/* The handshake continues, or has failed: then the client is told why, and that nothing follows. */
static void http_connection_shake(struct http_connection *c)
{
    clave__http_connection_flush(c);
    if (c->channel.state == CHANNEL_LINGERING && !c->channel.writing)
        clave__channel_finish(&c->channel);
}

/* A read has been passed up, or output that was waiting has been sent. */
static void http_connection_on_progress(struct channel *ch)
{
    struct http_connection *c = http_connection_of(ch);
    if (c->state == HTTP_SHAKING)
        http_connection_shake(c);
    else if (c->state == HTTP_LINGERING && !http_connection_throws_away(c))
        clave__http_connection_close(c);
    else
        clave__http_connection_go_on(c);
}

static void http_connection_hung_up(struct channel *ch, int why)
{
    struct http_connection *c = http_connection_of(ch);
    if (ch->state != CHANNEL_OPEN || why != UV_EOF) {
        clave__channel_close(ch, why);
        return;
    }
    c->hung_up = true;
    clave__channel_set_reading(ch, false);
    if (!ch->writing)
        clave__http_connection_go_on(c);
}

static void http_connection_closing(struct channel *ch, enum channel_state was, int why)
{
    struct http_connection *c = http_connection_of(ch);
    struct http *h = c->http;
    assert(h->nconnections > 0);
    (void)was;
    (void)why;
    h->nconnections--;
    assert(c->state != HTTP_SHAKING || h->nshaking > 0);
    h->nshaking -= (size_t)(c->state == HTTP_SHAKING);
    list_remove(&c->link);
    list_remove(&c->by_age);
    list_remove(&c->in_ready);
    clave__http_evict_leave(&h->shares, &c->share);
    if (c->exchange)
        clave__http_exchange_free(c->exchange);
    c->exchange = NULL;
    if (c->kept && h->o.kept_gone)
        h->o.kept_gone(h->o.arg, c->kept);
    clave__http_gone(h);
}

static void http_connection_free(struct http_connection *c)
{
    assert(!c->exchange);
    struct http *h = c->http;
    clave__buf_fini(&c->left);
    clave__mem_free(h->o.mem, c->tls_subject);
    clave__mem_free(h->o.mem, c);
    clave__http_release(h);
}

static void http_connection_closed(struct channel *ch)
{
    http_connection_free(http_connection_of(ch));
}

/* ---- TLS ------------------------------------------------------------------------------------ */

/* Returns false if there is no memory, or the subject is too long. */
static bool http_connection_name(struct http_connection *c, const struct tls *t)
{
    struct buf subject;
    const void *der;
    size_t n = clave__tls_subject(t, &der);
    clave__buf_init(&subject, c->http->o.mem, MAX_SUBJECT);
    bool is_named = n == 0 || (clave__x509_name_put(&subject, der, n) == CLAVE_OK &&
                               clave__buf_append(&subject, "", 1) == CLAVE_OK);
    if (n > 0 && is_named)
        c->tls_subject = clave__mem_strdup(c->http->o.mem, clave__buf_text(&subject));
    clave__buf_fini(&subject);
    return is_named && (n == 0 || c->tls_subject);
}

static bool http_connection_secured(struct channel *ch, struct tls *t)
{
    struct http_connection *c = http_connection_of(ch);
    bool is_named = http_connection_name(c, t);
    if (!is_named)
        clave__http_connection_warn(c, "turned away", "its certificate's subject is too long");
    clave__http_connection_enter(c, HTTP_IDLE);
    return is_named;
}

static bool http_connection_failed(struct channel *ch, struct tls *t)
{
    struct http_connection *c = http_connection_of(ch);
    bool turned_away = ch->state == CHANNEL_SECURING;
    char why[600];
    clave__tls_fault(t, why, sizeof why);
    clave__http_connection_warn(c, turned_away ? "turned away" : "closed", why);
    return turned_away;
}

/* ---- behind a proxy -------------------------------------------------------------------------- */

/* The proxy names its client. A client of a proxy on this machine does not count as local, whatever
 * the proxy says, nor as the user who runs the proxy. */
static bool http_connection_named(struct channel *ch, const struct peer_addr *named)
{
    struct http_connection *c = http_connection_of(ch);
    struct http *h = c->http;
    c->is_passed_on = true;
    c->peer.has_uid = false;
    if (named) {
        clave__http_evict_leave(&h->shares, &c->share);
        c->peer = *named;
        c->peer.secure = c->is_tls;
        if (!http_connection_join(c))
            return false;
    }
    if (!c->is_tls) {
        clave__channel_opened(ch);
        clave__http_connection_enter(c, HTTP_IDLE);
    }
    return true;
}

static void http_connection_unnamed(struct channel *ch)
{
    clave__http_connection_warn(http_connection_of(ch), "closed",
                                "it does not begin with a header of the PROXY protocol");
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Returns false if there is no memory. */
static bool http_connection_open(struct http_connection *c, bool is_proxied)
{
    static const struct tls_events events = {http_connection_secured, http_connection_failed};
    static const struct http_proxy_events proxy = {http_connection_named, http_connection_unnamed};
    bool shakes = is_proxied || c->is_tls;
    if ((is_proxied && !clave__http_proxy_add_filter(&c->channel, &proxy)) ||
        (c->is_tls && !clave__tls_add_filter(&c->channel, c->http->o.tls, NULL, &events)))
        return false;
    clave__http_connection_enter(c, shakes ? HTTP_SHAKING : HTTP_IDLE);
    if (!shakes)
        clave__channel_opened(&c->channel);
    clave__channel_set_reading(&c->channel, true);
    return true;
}

static struct http_connection *http_connection_new(struct http *h, const struct peer_addr *peer,
                                                   bool is_tls)
{
    static const struct channel_ops ops = {
        .buffer = http_connection_buffer,
        .input = http_connection_input,
        .output = http_connection_output,
        .sent = http_connection_sent,
        .is_done = http_connection_is_done,
        .received = http_connection_on_progress,
        .drained = http_connection_on_progress,
        .hung_up = http_connection_hung_up,
        .closing = http_connection_closing,
        .closed = http_connection_closed,
    };
    struct http_connection *c = clave__mem_zalloc(h->o.mem, sizeof *c);
    if (!c)
        return NULL;
    c->http = h;
    c->peer = *peer;
    c->peer.secure = c->is_tls = is_tls;
    c->born = uv_now(h->o.loop);
    list_init(&c->link);
    list_init(&c->in_ready);
    clave__buf_init(&c->left, h->o.mem, MOST_LEFT + HTTP_READ_SIZE);
    clave__channel_init(&c->channel, &ops, h->o.mem);
    return c;
}

void clave__http_connection_take(struct http *h, int fd, const struct peer_addr *peer, bool is_tls,
                                 bool is_proxied)
{
    struct http_connection *c = http_connection_new(h, peer, is_tls);
    if (!c || !http_connection_join(c)) {
        clave__mem_free(h->o.mem, c);
        close(fd);
        return;
    }
    list_push_back(&h->all, &c->by_age);
    h->nconnections++;
    h->handles++;
    if (clave__channel_adopt(&c->channel, h->o.loop, fd, peer->family != 0) != 0) {
        http_connection_closing(&c->channel, CHANNEL_CLOSED, 0);
        http_connection_free(c);
    } else if (clave__channel_is_live(&c->channel) && !http_connection_open(c, is_proxied)) {
        clave__http_connection_close(c);
    }
}
