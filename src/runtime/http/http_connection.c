/* http_connection.c - one connection of an HTTP server: its bytes, its peer, TLS; when it goes on,
 * how long each of its states may last, and which connection makes room for another; its requests
 * and their answers, one after the other. Bytes that arrive are parsed as requests. The bytes of an
 * answer are fetched as the socket takes them: its head, then a body of known length, or pieces in
 * chunks. So no piece is made for a client that does not read.
 *
 * All connections share the time of a turn of the loop with each other and with the loop's other
 * work; connections that have more to do are in `ready`, and continue in a later turn. A connection
 * ends when its state has lasted too long, because a client that trickles bytes or does not read
 * must not keep its place; every state except HTTP_WAITING has a limit.
 *
 * What must stay true: until its channel is closing, a connection is in the list of its state,
 * ordered by `until`, and counts for its address; finding the one that makes room takes the same
 * time, however many connections there are. For each exchange that has begun, the owner's `ended`
 * is called exactly once. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/http_reason.h"
#include "base/log_line.h"
#include "base/memory.h"
#include "runtime/http/http_internal.h"
#include "runtime/http/proxy_protocol.h"
#include "runtime/listen.h"
#include "runtime/tls/tls_context.h"
#include "runtime/tls/tls_filter.h"
#include "wire/x509_name.h"

/* MOST_LEFT: how many bytes may follow a request that is not answered yet, before reading stops.
 * WRITES_A_TURN: how often the socket is written to before others have a turn. MOST_THROWN_*:
 * bodies of refused requests are still read, for the sake of simple clients that send the whole
 * body first and would otherwise find the connection reset. They are read as long as the bytes per
 * second over all connections are within their bound, and beyond that up to a bound per
 * connection. */
enum {
    MOST_LEFT = 16 * 1024,
    WRITES_A_TURN = 8,
    MOST_THROWN_AWAY = 64 * 1024,
    MOST_THROWN_A_SECOND = 16 * 1024 * 1024,
    MAX_SUBJECT = 8192,
    RESUMED_A_TURN = 128
};
/* After this time no further request is begun in a turn of the loop, and no further piece made. The
 * time counts from the first request or piece of the turn, so every turn does at least one. */
enum { TURN_NS = 2000000 };

struct http_exchange {
    struct http_connection *of;
    struct http_head head;
    struct http_parse parse;
    struct web_request q;
    struct web_answer *answer; /* NULL: none yet */
    struct web_answer *own;    /* NULL: the answer, if there is one, is the owner's */
    void *user;
    uint64_t taken_at;        /* when everything sent before had been taken, by the loop's clock */
    struct buf out;           /* what is to be sent next */
    bool is_due;              /* waiting to begin, in a turn that has time for it */
    bool is_begun, is_over;   /* whether `begin` and `ended` of the owner were called */
    bool is_whole;            /* all of the request has arrived */
    bool is_faulty;           /* the bytes that follow cannot be understood */
    bool has_head;            /* the head of the answer was made */
    bool is_chunked, is_done; /* the answer is chunked; its last piece was made */
    bool has_made_piece;      /* others should have their turn now */
    bool is_put_off;          /* it has more to send, in another turn */
    bool is_broken;           /* its answer ends prematurely */
    bool closes;              /* the connection closes after the answer */
};

static struct http_connection *http_connection_of(struct channel *ch)
{
    return LIST_ENTRY(ch, struct http_connection, channel);
}

void clave__http_connection_close(struct http_connection *c)
{
    clave__channel_close(&c->channel, 0);
}

/* ==== which connection makes room ============================================================= */

struct http_address_key {
    uint8_t family;
    uint8_t bytes[16];
};

struct http_address {
    struct map_node node;
    struct http_address_key key;
    bool is_exempt;
    struct list link;               /* in `with`, if the address has unknown connections */
    struct list of[HTTP_STANDINGS]; /* oldest first */
    size_t n, nunknown;
};

static bool http_address_is(const struct map_node *node, const void *key)
{
    const struct http_address *a =
        (const void *)((const char *)node - offsetof(struct http_address, node));
    return memcmp(&a->key, key, sizeof a->key) == 0;
}

/* For a Unix socket, the user counts. */
static struct http_address_key http_address_key(const struct peer_addr *peer)
{
    struct http_address_key key = {.family = peer->family};
    if (peer->family == 0)
        memcpy(key.bytes, &peer->uid, sizeof peer->uid);
    else
        memcpy(key.bytes, peer->ip, clave__peer_counted(peer));
    return key;
}

static struct http_address *http_address_get(struct http *h, const struct peer_addr *peer)
{
    struct http_address_key key = http_address_key(peer);
    uint32_t hash = clave__map_hash_bytes(&h->shares.by_address, &key, sizeof key);
    struct map_node *node = clave__map_find(&h->shares.by_address, hash, http_address_is, &key);
    if (node)
        return MAP_ENTRY(node, struct http_address, node);
    struct http_address *a = clave__mem_zalloc(h->o.mem, sizeof *a);
    if (!a)
        return NULL;
    a->key = key;
    list_init(&a->link);
    for (int i = 0; i < HTTP_STANDINGS; i++)
        list_init(&a->of[i]);
    clave__map_insert(&h->shares.by_address, &a->node, hash);
    return a;
}

static unsigned http_address_bucket(size_t n)
{
    unsigned bucket = 0;
    while (n > 1 && bucket + 1 < HTTP_SHARE_BUCKETS) {
        n /= 2;
        bucket++;
    }
    return bucket;
}

/* Counts one more unknown connection of the address, or one fewer. */
static void http_address_count(struct http *h, struct http_address *a, bool more)
{
    assert(more || a->nunknown > 0);
    unsigned was = http_address_bucket(a->nunknown);
    a->nunknown += more ? 1 : (size_t)-1;
    unsigned is = http_address_bucket(a->nunknown);
    if (a->is_exempt || (!list_empty(&a->link) && a->nunknown > 0 && was == is))
        return;
    list_remove(&a->link);
    if (a->nunknown > 0)
        list_push_back(&h->shares.with[is], &a->link);
}

clave_err clave__http_shares_init(struct http *h, uint64_t seed)
{
    struct http_shares *all = &h->shares;
    list_init(&all->idle);
    for (int i = 0; i < HTTP_SHARE_BUCKETS; i++)
        list_init(&all->with[i]);
    return clave__map_init(&all->by_address, h->o.mem, seed);
}

static void http_shares_fini(struct http *h)
{
    assert(h->shares.by_address.count == 0);
    clave__map_fini(&h->shares.by_address);
}

/* Counts the connection for the address of its peer. Returns false if there is no memory. */
static bool http_connection_join(struct http_connection *c)
{
    struct http *h = c->http;
    assert(!c->from);
    struct http_address *a = http_address_get(h, &c->peer);
    bool is_exempt = !h->o.is_known || (h->o.is_exempt && h->o.is_exempt(h->o.arg, &c->peer));
    if (!a)
        return false;
    if (a->is_exempt != is_exempt) /* the settings were reloaded in between */
        list_remove(&a->link);
    a->is_exempt = is_exempt;
    a->n++;
    c->from = a;
    c->standing = HTTP_UNASKED;
    list_push_back(&a->of[HTTP_UNASKED], &c->in_standing);
    http_address_count(h, a, true);
    return true;
}

static void http_connection_leave(struct http_connection *c)
{
    struct http *h = c->http;
    struct http_address *a = c->from;
    if (!a)
        return;
    list_remove(&c->in_standing);
    if (c->standing != HTTP_KNOWN)
        http_address_count(h, a, false);
    c->from = NULL;
    assert(a->n > 0);
    if (--a->n > 0)
        return;
    clave__map_remove(&h->shares.by_address, &a->node);
    clave__mem_free(h->o.mem, a);
}

/* True if the connection comes from an exempt address. Its requests may come from different
 * senders, so it is never HTTP_KNOWN. */
static bool http_connection_is_exempt(const struct http_connection *c)
{
    return c->from && c->from->is_exempt;
}

/* Changes the standing; HTTP_KNOWN never changes. HTTP_UNASKED: the connection was answered, and is
 * idle. */
static void http_connection_stands(struct http_connection *c, enum http_standing to)
{
    if (!c->from || c->standing == HTTP_KNOWN || c->standing == to)
        return;
    bool is_idle = c->from->is_exempt && to == HTTP_UNASKED;
    c->standing = to;
    list_remove(&c->in_standing);
    list_push_back(is_idle ? &c->http->shares.idle : &c->from->of[to], &c->in_standing);
    if (to == HTTP_KNOWN)
        http_address_count(c->http, c->from, false);
}

static struct http_connection *http_connection_in(struct list *standing)
{
    return list_empty(standing) ? NULL
                                : LIST_ENTRY(standing->next, struct http_connection, in_standing);
}

struct http_connection *clave__http_victim(struct http *h)
{
    for (int i = HTTP_SHARE_BUCKETS - 1; i >= 0; i--) {
        if (list_empty(&h->shares.with[i]))
            continue;
        struct http_address *a = LIST_ENTRY(h->shares.with[i].next, struct http_address, link);
        for (int standing = 0; standing < HTTP_KNOWN; standing++)
            if (!list_empty(&a->of[standing]))
                return http_connection_in(&a->of[standing]);
    }
    return http_connection_in(&h->shares.idle);
}

/* ==== its states, and how long they may last ================================================== */

static void http_turn_arm(struct http *h, uint64_t until);

/* How long a refused client has to read the refusal. */
enum { LINGERING_MS = 2000 };

/* A client that connects too often must not fill the log. */
static void http_connection_warn(struct http_connection *c, const char *what, const char *why)
{
    struct http *h = c->http;
    if (clave__log_may_tell(&h->turned_at, uv_now(h->o.loop)))
        clave__log_about(&h->o.log, CLAVE_LOG_WARN, &(struct log_about){.connection = c->peer.text},
                         "%s is %s: %s", c->peer.text, what, why);
}

static uint64_t http_connection_limit(const struct http_connection *c, enum http_state state)
{
    const struct http_options *o = &c->http->o;
    const struct web_answer *a = c->exchange ? c->exchange->answer : NULL;
    if (state == HTTP_LINGERING)
        return LINGERING_MS;
    if (state == HTTP_SENDING && a && a->sending_ms > 0)
        return (uint64_t)a->sending_ms;
    if (o->silent_s > 0 && state != HTTP_WAITING)
        return (uint64_t)o->silent_s * 1000;
    return o->ms[state];
}

/* Inserts the connection behind those that are disconnected before it, which usually means at the
 * end. */
static void http_connection_sort(struct http_connection *c)
{
    struct list *all = &c->http->in_state[c->state], *at = all->prev;
    while (at != all && LIST_ENTRY(at, struct http_connection, link)->until > c->until)
        at = at->prev;
    list_remove(&c->link);
    list_push_front(at, &c->link);
}

/* Changes the state; nothing else does. */
static void http_connection_enter(struct http_connection *c, enum http_state to)
{
    struct http *h = c->http;
    assert(c->state != HTTP_SHAKING || to == HTTP_SHAKING || h->nshaking > 0);
    uint64_t ms = http_connection_limit(c, to);
    h->nshaking += (size_t)(to == HTTP_SHAKING);
    h->nshaking -= (size_t)(c->state == HTTP_SHAKING);
    c->state = to;
    c->until = ms > 0 ? uv_now(h->o.loop) + ms : UINT64_MAX;
    list_remove(&c->link);
    http_connection_sort(c);
    http_turn_arm(h, c->until);
}

static void http_connection_give_up(struct http_connection *c)
{
    if (c->state == HTTP_SHAKING && c->channel.state == CHANNEL_SECURING)
        http_connection_warn(c, "turned away",
                             c->is_tls ? "its TLS handshake takes too long"
                                       : "no header of the PROXY protocol arrives");
    clave__channel_close(&c->channel, 0);
}

/* Disconnects the connections that have taken too long. Returns when the next one will have. */
static uint64_t http_connections_expire(struct http *h)
{
    uint64_t now = uv_now(h->o.loop), least = UINT64_MAX;
    for (int state = 0; state < HTTP_STATES; state++)
        while (!list_empty(&h->in_state[state])) {
            struct http_connection *c =
                LIST_ENTRY(h->in_state[state].next, struct http_connection, link);
            if (c->until > now) {
                least = c->until < least ? c->until : least;
                break;
            }
            http_connection_give_up(c);
        }
    while (h->o.total_ms > 0 && !list_empty(&h->all)) {
        struct http_connection *c = LIST_ENTRY(h->all.next, struct http_connection, by_age);
        if (c->born + h->o.total_ms > now)
            return c->born + h->o.total_ms < least ? c->born + h->o.total_ms : least;
        clave__channel_close(&c->channel, 0);
    }
    return least;
}

/* ==== turns of the loop ======================================================================= */

static void http_connection_go_on(struct http_connection *c);

/* Connections that are not done in this turn continue in the next one. */
static void http_turn_on_idle(uv_idle_t *turn)
{
    struct http *h = turn->data;
    struct list now;
    struct list *e;
    list_init(&now);
    list_splice(&now, &h->ready);
    for (int left = RESUMED_A_TURN; left > 0 && (e = list_pop_front(&now)); left--)
        http_connection_go_on(LIST_ENTRY(e, struct http_connection, in_ready));
    list_splice(&now, &h->ready);
    list_splice(&h->ready, &now);
    if (list_empty(&h->ready))
        uv_idle_stop(turn);
}

static void http_turn_want(struct http *h)
{
    if (!h->is_stopped)
        uv_idle_start(&h->turn, http_turn_on_idle);
}

/* The connection continues in the next turn. */
static void http_ready(struct http_connection *c)
{
    if (list_empty(&c->in_ready))
        list_push_back(&c->http->ready, &c->in_ready);
    http_turn_want(c->http);
}

/* True if other connections, and other work of the loop, should come first now. */
static bool http_turn_is_over(struct http *h)
{
    uint64_t now = uv_hrtime();
    if (h->turn_ends == 0)
        h->turn_ends = now + TURN_NS;
    return now >= h->turn_ends;
}

static void http_turn_on_check(uv_check_t *check)
{
    struct http *h = check->data;
    h->has_made_piece = false;
    h->turn_ends = 0;
}

static void http_turn_on_timer(uv_timer_t *t)
{
    struct http *h = t->data;
    h->armed = UINT64_MAX;
    http_turn_arm(h, http_connections_expire(h));
}

/* Makes sure that the timer runs by then. A timer that runs too early finds out when to run next,
 * which costs less than moving it each time. */
static void http_turn_arm(struct http *h, uint64_t until)
{
    uint64_t now = uv_now(h->o.loop);
    if (h->is_stopped || until >= h->armed)
        return;
    h->armed = until;
    uv_timer_start(&h->timer, http_turn_on_timer, until > now ? until - now : 0, 0);
}

void clave__http_gone(struct http *h)
{
    if (!h->accept_pending || h->is_quiet)
        return;
    h->accept_pending = false;
    for (struct list *e = h->listeners.next; e != &h->listeners; e = e->next)
        clave__listener_watch(LIST_ENTRY(e, struct listener, link), true);
}

static void http_release(struct http *h)
{
    assert(h->handles > 0);
    if (--h->handles > 0)
        return;
    http_shares_fini(h);
    clave_tls_free(h->o.tls);
    free(h);
}

void clave__http_turns_begin(struct http *h)
{
    assert(h->handles == 0);
    uv_timer_init(h->o.loop, &h->timer);
    uv_idle_init(h->o.loop, &h->turn);
    uv_check_init(h->o.loop, &h->new_turn);
    h->timer.data = h->turn.data = h->new_turn.data = h;
    h->handles = 3;
    h->armed = UINT64_MAX;
    uv_check_start(&h->new_turn, http_turn_on_check);
    uv_unref((uv_handle_t *)&h->new_turn);
}

static void http_turn_on_closed(uv_handle_t *handle)
{
    http_release(handle->data);
}

void clave__http_turns_end(struct http *h)
{
    h->is_stopped = true;
    uv_close((uv_handle_t *)&h->timer, http_turn_on_closed);
    uv_close((uv_handle_t *)&h->turn, http_turn_on_closed);
    uv_close((uv_handle_t *)&h->new_turn, http_turn_on_closed);
}

/* ==== an answer as bytes ====================================================================== */

/* A body of up to this many bytes is sent together with its head. The size of a chunk has eight
 * digits. */
enum {
    COPIED_BODY = 16 * 1024,
    CHUNK_HEAD = 10,
    MAX_HEAD = 32 * 1024,
    MAX_PIECE = 64 * 1024 * 1024
};

static bool http_output_is(const struct http_exchange *x, const char *method)
{
    return x->q.method && strcmp(x->q.method, method) == 0;
}

static void http_output_put(struct http_exchange *x, const void *p, size_t n)
{
    if (clave__buf_append(&x->out, p, n) != CLAVE_OK)
        x->is_broken = true;
}

static void http_output_text(struct http_exchange *x, const char *text)
{
    http_output_put(x, text, strlen(text));
}

static void http_output_field(struct http_exchange *x, const char *name, const char *value)
{
    http_output_text(x, name);
    http_output_put(x, ": ", 2);
    http_output_text(x, value);
    http_output_put(x, "\r\n", 2);
}

/* ---- the answer: its head -------------------------------------------------------------------- */

/* The date, made once a second. Its names are those of RFC 9110 in any locale. */
static const char *http_output_date(struct http *h)
{
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t now = time(NULL);
    struct tm t;
    if (now == h->date_at || !gmtime_r(&now, &t))
        return h->date;
    h->date_at = now;
    snprintf(h->date, sizeof h->date, "%s, %02u %s %04u %02u:%02u:%02u GMT", days[t.tm_wday],
             (unsigned)t.tm_mday % 100, months[t.tm_mon], (unsigned)(t.tm_year + 1900) % 10000,
             (unsigned)t.tm_hour % 100, (unsigned)t.tm_min % 100, (unsigned)t.tm_sec % 100);
    return h->date;
}

/* True if the connection closes after the answer. That is so if the sender is turned away while
 * half of the places are taken, so that its place becomes free, unless the connection belongs to a
 * proxy, which has other senders. */
static bool http_output_closes(const struct http_exchange *x)
{
    const struct http_connection *c = x->of;
    const struct http *h = c->http;
    bool is_pressed = x->answer->status == 401 && c->standing != HTTP_KNOWN &&
                      !http_connection_is_exempt(c) && h->nconnections > h->o.max_connections / 2;
    return x->is_faulty || !x->is_whole || !x->parse.keeps_alive || h->o.one_request ||
           is_pressed || (x->answer->more && !x->parse.is_1_1 && !http_output_is(x, "HEAD"));
}

static void http_output_fields(struct http_exchange *x)
{
    const struct web_answer *a = x->answer;
    for (size_t i = 0; i < a->nheaders; i++) {
        if (strcasecmp(a->headers[i].name, "Connection") == 0)
            x->closes = true; /* answers have this header only to say "close" */
        else
            http_output_field(x, a->headers[i].name, a->headers[i].value);
    }
    if (x->closes)
        http_output_text(x, "Connection: close\r\n");
    else if (!x->parse.is_1_1)
        http_output_text(x, "Connection: keep-alive\r\n");
}

static void http_output_length(struct http_exchange *x)
{
    const struct web_answer *a = x->answer;
    char text[64];
    if (x->is_chunked) {
        http_output_text(x, "Transfer-Encoding: chunked\r\n");
    } else if (!a->more && a->status >= 200 && a->status != 204 && a->status != 304) {
        snprintf(text, sizeof text, "Content-Length: %zu\r\n", clave__buf_len(&a->body));
        http_output_text(x, text);
    }
}

static void http_output_put_chunk(struct http_exchange *x, struct buf *from);

static void http_output_begin_body(struct http_exchange *x)
{
    struct web_answer *a = x->answer;
    size_t n = clave__buf_len(&a->body);
    if (http_output_is(x, "HEAD")) {
        clave__buf_consume(&a->body, n);
        x->is_done = true;
    } else if (a->more) {
        http_output_put_chunk(x, &a->body);
    } else {
        x->is_done = true;
        if (n > COPIED_BODY)
            return;
        http_output_put(x, clave__buf_bytes(&a->body), n);
        clave__buf_consume(&a->body, n);
    }
}

static void http_output_begin(struct http_exchange *x)
{
    assert(!x->is_done);
    assert(x->answer);
    const struct web_answer *a = x->answer;
    const char *reason = clave__http_reason(a->status);
    char line[100];
    x->has_head = true;
    x->taken_at = uv_now(x->of->http->o.loop);
    x->is_chunked = a->more && x->parse.is_1_1;
    x->closes = http_output_closes(x);
    snprintf(line, sizeof line, "HTTP/1.1 %u %s\r\n", a->status, reason);
    http_output_text(x, line);
    http_output_field(x, "Date", http_output_date(x->of->http));
    http_output_fields(x);
    http_output_length(x);
    http_output_put(x, "\r\n", 2);
    http_output_begin_body(x);
}

/* ---- the answer: pieces ---------------------------------------------------------------------- */

/* Leaves room at the end of `out` for the size of a chunk. */
static void http_output_open_chunk(struct http_exchange *x)
{
    if (x->is_chunked)
        http_output_put(x, "00000000\r\n", CHUNK_HEAD);
}

/* Fills in the size of the chunk that began at this length of `out`. A chunk without bytes is
 * removed, since it would end the answer. */
static void http_output_close_chunk(struct http_exchange *x, size_t at)
{
    char size[9];
    if (!x->is_chunked || x->is_broken)
        return;
    assert(clave__buf_len(&x->out) >= at + CHUNK_HEAD);
    size_t n = clave__buf_len(&x->out) - at - CHUNK_HEAD;
    if (n == 0) {
        x->out.tail -= CHUNK_HEAD;
        return;
    }
    snprintf(size, sizeof size, "%08x", (unsigned)n); /* fits because `out` is bounded */
    memcpy(clave__buf_bytes(&x->out) + at, size, 8);
    http_output_put(x, "\r\n", 2);
}

static void http_output_put_chunk(struct http_exchange *x, struct buf *from)
{
    size_t at = clave__buf_len(&x->out), n = clave__buf_len(from);
    http_output_open_chunk(x);
    http_output_put(x, clave__buf_bytes(from), n);
    clave__buf_consume(from, n);
    http_output_close_chunk(x, at);
}

/* True if the client has taken nothing for as long as an answer may be stuck. The kernel accepts
 * many short pieces on behalf of a client that reads nothing, so what counts is what the other
 * side's kernel has taken. */
static bool http_output_is_stuck(struct http_exchange *x)
{
    uint64_t now = uv_now(x->of->http->o.loop);
    int32_t most = x->answer->sending_ms;
    if (most <= 0 || clave__channel_unsent(&x->of->channel) == 0)
        x->taken_at = now;
    return now - x->taken_at >= (uint64_t)most && most > 0;
}

static void http_output_piece(struct http_exchange *x)
{
    assert(x->answer->more && x->has_head);
    struct http *h = x->of->http;
    size_t at = clave__buf_len(&x->out);
    x->is_put_off =
        x->has_made_piece || (h->o.piece_a_turn && h->has_made_piece) || http_turn_is_over(h);
    if (x->is_put_off)
        return;
    x->has_made_piece = h->has_made_piece = true;
    http_output_open_chunk(x);
    if (http_output_is_stuck(x) || x->is_broken ||
        x->answer->more(x->answer->arg, &x->out, &x->is_done) != CLAVE_OK) {
        x->is_broken = true;
        return;
    }
    http_output_close_chunk(x, at);
    x->is_put_off = h->o.piece_a_turn && !x->is_done && clave__buf_len(&x->out) == 0;
    if (x->is_done && x->is_chunked)
        http_output_text(x, "0\r\n\r\n");
}

/* ---- the answer: what the connection fetches ------------------------------------------------- */

/* The next bytes of the answer. 0: none at the moment, or it is_broken. */
static size_t http_output(struct http_exchange *x, const void **p)
{
    if (x->answer && !x->has_head)
        http_output_begin(x);
    if (x->answer && !x->is_done && clave__buf_len(&x->out) == 0)
        http_output_piece(x);
    const struct buf *from = clave__buf_len(&x->out) > 0 || !x->answer ? &x->out : &x->answer->body;
    *p = clave__buf_bytes(from);
    return x->is_broken ? 0 : clave__buf_len(from);
}

static void http_output_sent(struct http_exchange *x, size_t n)
{
    struct buf *from = clave__buf_len(&x->out) > 0 || !x->answer ? &x->out : &x->answer->body;
    clave__buf_consume(from, n);
}

/* Tells the client to send the body of the request. */
static void http_output_continue(struct http_exchange *x)
{
    http_output_text(x, "HTTP/1.1 100 Continue\r\n\r\n");
}

/* ==== a request =============================================================================== */

/* ---- making and freeing ---------------------------------------------------------------------- */

static void http_exchange_on_body(void *exchange, const void *p, size_t n);

static struct http_exchange *http_exchange_new(struct http_connection *c)
{
    assert(!c->exchange);
    const struct http_options *o = &c->http->o;
    struct http_exchange *x = clave__mem_zalloc(o->mem, sizeof *x);
    if (!x)
        return NULL;
    x->of = c;
    clave__http_head_init(&x->head, o->mem, o->max_head > 0 ? o->max_head : MAX_HEAD);
    clave__http_parse_begin(&x->parse, c->http->library, &x->head, http_exchange_on_body, x);
    clave__buf_init(&x->out, o->mem, MAX_PIECE);
    return x;
}

/* Calls the owner's `ended` if its `begin` was called. */
static void http_exchange_free(struct http_exchange *x)
{
    assert(!x->is_over);
    const struct http_options *o = &x->of->http->o;
    x->is_over = true;
    if (x->is_begun && o->ended)
        o->ended(o->arg, x->user);
    if (x->own)
        clave__buf_fini(&x->own->body);
    clave__mem_free(o->mem, x->own);
    clave__http_head_fini(&x->head);
    clave__buf_fini(&x->out);
    clave__mem_free(o->mem, x);
}

/* True if more of the request should be read. */
static bool http_exchange_reads(const struct http_exchange *x)
{
    return !x->is_whole && !x->is_faulty && !x->is_due;
}

/* True if nothing more has to be sent or made. */
static bool http_exchange_is_sent(const struct http_exchange *x)
{
    assert(x->answer);
    return x->has_head && x->is_done && clave__buf_len(&x->out) == 0 &&
           clave__buf_len(&x->answer->body) == 0;
}

/* ---- refusals ------------------------------------------------------------------------------- */

static const char *http_exchange_code(unsigned status)
{
    if (status == 503)
        return "ENOMEM";
    return status == 414 || status == 431 ? "ETOOBIG" : "EINVAL";
}

/* Refuses the request because of something that the owner does not see, or cannot answer. */
static void http_exchange_refuse(struct http_exchange *x, unsigned status, const char *why)
{
    assert(!x->answer && !x->own);
    assert(status >= 400 && status <= 599);
    const struct clave_mem *mem = x->of->http->o.mem;
    struct web_answer *a = x->own = clave__mem_zalloc(mem, sizeof *a);
    char text[300];
    if (!a) {
        x->is_broken = true;
        return;
    }
    int n = snprintf(text, sizeof text,
                     "{\"title\":\"%s\",\"status\":%u,\"detail\":\"%s\",\"code\":\"%s\","
                     "\"class\":\"%s\"}\n",
                     clave__http_reason(status), status, why, http_exchange_code(status),
                     status == 503 ? "retry" : "final");
    a->status = status;
    a->headers[a->nheaders++] = (struct web_header){"Content-Type", "application/problem+json"};
    a->headers[a->nheaders++] = (struct web_header){"Cache-Control", "no-store"};
    if (status == 503)
        a->headers[a->nheaders++] = (struct web_header){"Retry-After", "1"};
    clave__buf_init(&a->body, mem, sizeof text);
    x->is_broken = clave__buf_append(&a->body, text, (size_t)n) != CLAVE_OK;
    x->answer = a;
}

/* ---- the request ---------------------------------------------------------------------------- */

static bool http_exchange_is_loopback(const struct peer_addr *peer)
{
    static const uint8_t v6[16] = {[15] = 1};
    return peer->family == 4 ? peer->ip[0] == 127
                             : peer->family == 6 && memcmp(peer->ip, v6, sizeof v6) == 0;
}

static void http_exchange_describe(struct http_exchange *x)
{
    const struct http_connection *c = x->of;
    const struct peer_addr *peer = &c->peer;
    x->q = (struct web_request){
        .method = clave__http_parse_method(&x->parse),
        .target = x->head.target,
        .headers = x->head.fields,
        .nheaders = x->head.nfields,
        .body_length = x->parse.body_length,
        .must_have_host = x->parse.is_1_1,
        .peer = {.is_unix = peer->family == 0,
                 .is_loopback = !c->is_passed_on && http_exchange_is_loopback(peer),
                 .is_tls = peer->secure,
                 .uid = peer->has_uid ? (int64_t)peer->uid : -1,
                 .address = peer->text,
                 .tls_subject = c->tls_subject},
    };
}

static void http_exchange_end_request(struct http_exchange *x)
{
    assert(!x->is_whole);
    const struct http_options *o = &x->of->http->o;
    x->is_whole = true;
    http_connection_enter(x->of, HTTP_WAITING);
    if (!x->answer && o->body_done)
        o->body_done(o->arg, x->user);
}

/* The head of the request is complete: calls the owner's `begin`. */
static void http_exchange_begin(struct http_exchange *x)
{
    assert(!x->is_begun && !x->is_over);
    struct http_connection *c = x->of;
    struct http *h = c->http;
    x->is_due = false;
    http_exchange_describe(x);
    c->in_call = true;
    x->is_begun = true;
    h->o.begin(h->o.arg, &x->q, x, &x->user);
    bool may_be = c->standing != HTTP_KNOWN && !http_connection_is_exempt(c);
    bool known = may_be && h->o.is_known && x->user && h->o.is_known(h->o.arg, x->user, &c->kept);
    http_connection_stands(c, known ? HTTP_KNOWN : HTTP_ASKING);
    if (x->parse.body_length == 0)
        http_exchange_end_request(x);
    else if (!x->answer && x->parse.expects_continue) /* its head was accepted */
        http_output_continue(x);
    c->in_call = false;
}

/* Takes a piece of the body, which is of no use once the request has been answered. */
static void http_exchange_on_body(void *exchange, const void *p, size_t n)
{
    struct http_exchange *x = exchange;
    const struct http_options *o = &x->of->http->o;
    if (x->answer || !o->take_body)
        return;
    x->of->in_call = true;
    o->take_body(o->arg, x->user, p, n);
    x->of->in_call = false;
}

/* Reads bytes of the request; returns how many were used up. */
static size_t http_exchange_read(struct http_exchange *x, const void *p, size_t n)
{
    assert(http_exchange_reads(x));
    enum http_parsed what;
    size_t used = clave__http_parse(&x->parse, p, n, &what);
    if (what == HTTP_PARSED_HEAD) {
        x->is_due = true;
        http_connection_enter(x->of, HTTP_BODY);
        if (!http_turn_is_over(x->of->http))
            http_exchange_begin(x);
    } else if (what == HTTP_PARSED_END) {
        x->of->in_call = true;
        http_exchange_end_request(x);
        x->of->in_call = false;
    } else if (what == HTTP_PARSED_FAULT) {
        x->is_faulty = true;
        if (!x->answer)
            http_exchange_refuse(x, x->parse.refused, x->parse.why);
        return n;
    }
    return used;
}

/* ==== its bytes =============================================================================== */

/* ---- reading -------------------------------------------------------------------------------- */

/* Returns how many of the bytes belong to the present request. */
static size_t http_connection_read(struct http_connection *c, const char *p, size_t n)
{
    size_t used = 0;
    while (used < n) {
        if (!c->exchange)
            c->exchange = http_exchange_new(c);
        if (!c->exchange || !http_exchange_reads(c->exchange))
            break;
        used += http_exchange_read(c->exchange, p + used, n - used);
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

/* ---- sending -------------------------------------------------------------------------------- */

/* The connection was answered, and may now have to make room for another one. */
static void http_connection_rest(struct http_connection *c, unsigned status)
{
    struct http *h = c->http;
    bool is_exempt = http_connection_is_exempt(c);
    if (!h->o.is_known) /* nobody has to make room */
        return;
    http_connection_stands(c, status == 401 && !is_exempt ? HTTP_TURNED_AWAY : HTTP_UNASKED);
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
    http_exchange_free(x);
    http_connection_rest(c, status);
    if (!closes) {
        http_connection_enter(c, HTTP_IDLE);
        return true;
    }
    if (lingers && !c->hung_up) {
        clave__channel_finish(&c->channel);
        clave__channel_set_reading(&c->channel, true);
        http_connection_enter(c, HTTP_LINGERING);
    } else {
        clave__http_connection_close(c);
    }
    return false;
}

/* There is nothing to send at the moment. There is no waiting for a client that has hung up. */
static void http_connection_pause(struct http_connection *c)
{
    enum { KEEP = 1024 };
    struct http_exchange *x = c->exchange;
    if (x && (x->is_put_off || x->is_due)) {
        http_ready(c);
    } else if (c->hung_up) {
        clave__http_connection_close(c);
        return;
    } else if (x && x->answer) {
        clave__buf_trim(&x->out, KEEP);
        clave__buf_trim(&x->answer->body, KEEP);
        if (c->state != HTTP_WAITING)
            http_connection_enter(c, HTTP_WAITING);
    } else if (c->state == HTTP_SENDING) {
        http_connection_enter(c, HTTP_BODY); /* the client was just asked for the body */
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
            http_connection_enter(c, HTTP_SENDING);
        http_connection_watch(c);
        return false;
    }
    if (writes == WRITES_A_TURN) {
        http_ready(c);
        return false;
    }
    if (c->exchange && c->exchange->answer && http_exchange_is_sent(c->exchange))
        return http_connection_next(c);
    http_connection_pause(c);
    return false;
}

static void http_connection_go_on(struct http_connection *c)
{
    bool goes_on = c->channel.state == CHANNEL_OPEN;
    while (goes_on) {
        if (c->exchange && c->exchange->is_due && !http_turn_is_over(c->http))
            http_exchange_begin(c->exchange);
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
        http_connection_enter(c, c->state);
    return used == n || (c->exchange &&
                         clave__buf_append(&c->left, (const char *)p + used, n - used) == CLAVE_OK);
}

static size_t http_connection_output(struct channel *ch, const void **p)
{
    struct http_exchange *x = http_connection_of(ch)->exchange;
    return x ? http_output(x, p) : 0;
}

static void http_connection_sent(struct channel *ch, size_t n)
{
    struct http_connection *c = http_connection_of(ch);
    assert(c->exchange);
    http_output_sent(c->exchange, n);
    if (c->state == HTTP_SENDING)
        http_connection_enter(c, HTTP_SENDING);
}

static bool http_connection_is_done(struct channel *ch)
{
    const struct http_exchange *x = http_connection_of(ch)->exchange;
    return x && x->is_broken;
}

/* The handshake continues. If it has failed, sends what tells the client why, then ends the
 * output. */
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
        http_connection_go_on(c);
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
        http_connection_go_on(c);
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
    http_connection_leave(c);
    if (c->exchange)
        http_exchange_free(c->exchange);
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
    http_release(h);
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
        http_connection_warn(c, "turned away", "its certificate's subject is too long");
    http_connection_enter(c, HTTP_IDLE);
    return is_named;
}

static bool http_connection_failed(struct channel *ch, struct tls *t)
{
    struct http_connection *c = http_connection_of(ch);
    bool turned_away = ch->state == CHANNEL_SECURING;
    char why[600];
    clave__tls_fault(t, why, sizeof why);
    http_connection_warn(c, turned_away ? "turned away" : "closed", why);
    return turned_away;
}

/* ---- behind a proxy -------------------------------------------------------------------------- */

/* The proxy names its client. A client of a proxy on this machine does not count as local, whatever
 * the proxy says, nor as the user who runs the proxy. */
static bool http_connection_named(struct channel *ch, const struct peer_addr *named)
{
    struct http_connection *c = http_connection_of(ch);
    c->is_passed_on = true;
    c->peer.has_uid = false;
    if (named) {
        http_connection_leave(c);
        c->peer = *named;
        c->peer.secure = c->is_tls;
        if (!http_connection_join(c))
            return false;
    }
    if (!c->is_tls) {
        clave__channel_opened(ch);
        http_connection_enter(c, HTTP_IDLE);
    }
    return true;
}

static void http_connection_unnamed(struct channel *ch)
{
    http_connection_warn(http_connection_of(ch), "closed",
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
    http_connection_enter(c, shakes ? HTTP_SHAKING : HTTP_IDLE);
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

/* ---- the interface --------------------------------------------------------------------------- */

const char *clave__http_path(const struct http_exchange *x)
{
    return x->head.path;
}

const char *clave__http_header(const struct http_exchange *x, const char *name)
{
    return clave__http_head_find(&x->head, name);
}

void clave__http_answer(struct http_exchange *x, struct web_answer *a)
{
    if (x->answer) /* the rest of its body could not be understood, and is refused */
        return;
    if (a)
        x->answer = a;
    else
        http_exchange_refuse(x, 503, "out of memory");
    clave__http_wake(x);
}

void clave__http_wake(struct http_exchange *x)
{
    if (!x->of->in_call)
        http_ready(x->of);
}
