/* http_output.c - an answer as bytes: its head, its body of a known length, or pieces in chunks;
 * http_connection.c fetches them as the client takes them, so nothing is made for a client that
 * does not read. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/http_reason.h"
#include "base/memory.h"
#include "runtime/http/http_internal.h"

/* A body of at most so many bytes goes out with its head. The size of a chunk has eight digits. */
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

/* ---- the head ------------------------------------------------------------------------------- */

/* Made once a second. The names are those of RFC 9110 in any locale. */
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

/* The answer of a sender that is turned away frees its place when half of them are taken, unless
 * the connection is a proxy's, which has other senders. */
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
            x->closes = true; /* the only thing it says */
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

/* ---- pieces --------------------------------------------------------------------------------- */

/* Room for the size of a chunk, at the end of `out`. */
static void http_output_open_chunk(struct http_exchange *x)
{
    if (x->is_chunked)
        http_output_put(x, "00000000\r\n", CHUNK_HEAD);
}

/* The chunk began at this length of `out`; one without bytes would end the answer. */
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
    snprintf(size, sizeof size, "%08x", (unsigned)n); /* `out` is bounded */
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

/* The kernel takes a lot of short pieces, for a reader that takes none: what the other side's has
 * not taken for as long as the answer may be stuck is not waited for. */
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

/* ---- bytes ---------------------------------------------------------------------------------- */

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

void clave__http_output_continue(struct http_exchange *x)
{
    http_output_text(x, "HTTP/1.1 100 Continue\r\n\r\n");
}
