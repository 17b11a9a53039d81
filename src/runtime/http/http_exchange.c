/* http_exchange.c - one request of an HTTP server and its answer. http_connection.c passes in the
 * bytes of the request, and fetches those of the answer as the client takes them: its head, and a
 * body of known length, or pieces in chunks. So nothing is made for a client that does not read.
 *
 * What must stay true: for each exchange that has begun, the owner is told exactly once that it is
 * over. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/http_reason.h"
#include "base/memory.h"
#include "runtime/http/http_internal.h"

/* ---- the answer as bytes --------------------------------------------------------------------- */

/* A body of up to this many bytes is sent together with its head. The size of a chunk has eight
 * digits. */
enum { COPIED_BODY = 16 * 1024, CHUNK_HEAD = 10 };

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
    bool is_pressed = x->answer->status == 401 && c->share.standing != HTTP_KNOWN &&
                      !clave__http_evict_is_exempt(&c->share) &&
                      h->nconnections > h->o.max_connections / 2;
    return x->is_faulty || !x->is_whole || !x->parse.keeps_alive || h->o.one_request ||
           is_pressed || (x->answer->more && !x->parse.is_1_1 && !http_output_is(x, "HEAD"));
}

static void http_output_fields(struct http_exchange *x)
{
    const struct web_answer *a = x->answer;
    for (size_t i = 0; i < a->nheaders; i++) {
        if (strcasecmp(a->headers[i].name, "Connection") == 0)
            x->closes = true; /* this is all it has to say */
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
    x->is_put_off = x->has_made_piece || (h->o.piece_a_turn && h->has_made_piece) ||
                    clave__http_turn_is_over(h);
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

size_t clave__http_output(struct http_exchange *x, const void **p)
{
    if (x->answer && !x->has_head)
        http_output_begin(x);
    if (x->answer && !x->is_done && clave__buf_len(&x->out) == 0)
        http_output_piece(x);
    const struct buf *from = clave__buf_len(&x->out) > 0 || !x->answer ? &x->out : &x->answer->body;
    *p = clave__buf_bytes(from);
    return x->is_broken ? 0 : clave__buf_len(from);
}

void clave__http_output_sent(struct http_exchange *x, size_t n)
{
    struct buf *from = clave__buf_len(&x->out) > 0 || !x->answer ? &x->out : &x->answer->body;
    clave__buf_consume(from, n);
}

/* Tells the client to send the body of the request. */
static void http_output_continue(struct http_exchange *x)
{
    http_output_text(x, "HTTP/1.1 100 Continue\r\n\r\n");
}

enum { MAX_HEAD = 32 * 1024, MAX_PIECE = 64 * 1024 * 1024 };

/* ---- making and freeing ---------------------------------------------------------------------- */

static void http_exchange_on_body(void *exchange, const void *p, size_t n);

struct http_exchange *clave__http_exchange_new(struct http_connection *c)
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

void clave__http_exchange_free(struct http_exchange *x)
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

bool clave__http_exchange_reads(const struct http_exchange *x)
{
    return !x->is_whole && !x->is_faulty && !x->is_due;
}

bool clave__http_exchange_is_sent(const struct http_exchange *x)
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
    clave__http_connection_enter(x->of, HTTP_WAITING);
    if (!x->answer && o->body_done)
        o->body_done(o->arg, x->user);
}

void clave__http_exchange_begin(struct http_exchange *x)
{
    assert(!x->is_begun && !x->is_over);
    struct http_connection *c = x->of;
    struct http *h = c->http;
    x->is_due = false;
    http_exchange_describe(x);
    c->in_call = true;
    x->is_begun = true;
    h->o.begin(h->o.arg, &x->q, x, &x->user);
    bool may_be = c->share.standing != HTTP_KNOWN && !clave__http_evict_is_exempt(&c->share);
    bool known = may_be && h->o.is_known && x->user && h->o.is_known(h->o.arg, x->user, &c->kept);
    clave__http_evict_set(&h->shares, &c->share, known ? HTTP_KNOWN : HTTP_ASKING);
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

size_t clave__http_exchange_read(struct http_exchange *x, const void *p, size_t n)
{
    assert(clave__http_exchange_reads(x));
    enum http_parsed what;
    size_t used = clave__http_parse(&x->parse, p, n, &what);
    if (what == HTTP_PARSED_HEAD) {
        x->is_due = true;
        clave__http_connection_enter(x->of, HTTP_BODY);
        if (!clave__http_turn_is_over(x->of->http))
            clave__http_exchange_begin(x);
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
        clave__http_ready(x->of);
}
