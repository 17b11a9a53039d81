/* http_exchange.c - one request of an HTTP server and its answer: libmicrohttpd's callbacks, as
 * http_server.c names them to the library. The library calls the handler for the head, for pieces
 * of the body, at its end, and again when a suspended connection was resumed. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "runtime/http/http_internal.h"

/* An answer that is longer is handed over in blocks, so that its progress is seen. A stream keeps
 * the library's block, which it needs for a client of HTTP/1.0 only, as long as it lasts. */
enum {
    MOST_AT_ONCE = 64 * 1024,
    MOST_BLOCK = 32 * 1024,
    STREAM_BLOCK = 2048,
    MOST_PIECE = 64 * 1024 * 1024
};
/* After that no further request is begun in a turn, and no piece made. */
enum { TURN_NS = 2000000 };

/* Other connections, and the loop's other work, come first. The time begins with the first request
 * or piece, of which there is one in any turn: with many connections the library may take longer
 * than that before it. */
static bool http_turn_is_over(struct http *h)
{
    uint64_t now = uv_hrtime();
    if (h->turn_ends == 0)
        h->turn_ends = now + TURN_NS;
    return now >= h->turn_ends;
}

/* ---- life ----------------------------------------------------------------------------------- */

/* Called with the request line, before the library decodes it in place. */
void *clave__http_exchange_on_uri(void *http, const char *uri, struct MHD_Connection *c)
{
    struct http *h = http;
    size_t n = strlen(uri) + 1;
    struct http_exchange *x = calloc(1, sizeof *x + n);
    if (!x)
        return NULL;
    x->http = h;
    x->connection = c;
    x->refs = 1;
    list_init(&x->in_ready);
    clave__buf_init(&x->body, h->o.mem, h->o.max_body + 1);
    clave__buf_init(&x->out, h->o.mem, MOST_PIECE);
    memcpy(x->target, uri, n);
    const union MHD_ConnectionInfo *info =
        h->lib->MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    x->of = info->socket_context;
    x->of->exchange = x;
    return x;
}

/* Bytes of a buffer count while they are held. */
static void http_exchange_count(struct http_exchange *x, size_t before, const struct buf *now)
{
    x->http->held = x->http->held - before + now->cap;
}

static void http_exchange_end(struct http_exchange *x)
{
    struct http *h = x->http;
    bool was_begun = x->q.method != NULL;
    if (x->is_over)
        return;
    x->is_over = true;
    if (x->answer)
        h->held -= x->answer->body.cap;
    x->answer = NULL;
    if (was_begun && h->o.ended)
        h->o.ended(h->o.arg, x->user);
}

static void http_exchange_release(struct http_exchange *x)
{
    if (--x->refs > 0)
        return;
    http_exchange_end(x);
    list_remove(&x->in_ready);
    x->http->held -= x->body.cap + x->out.cap;
    clave__buf_fini(&x->body);
    clave__buf_fini(&x->out);
    free(x->headers);
    free(x);
}

void clave__http_exchange_on_completed(void *http, struct MHD_Connection *c, void **exchange,
                                       enum MHD_RequestTerminationCode why)
{
    struct http_exchange *x = *exchange;
    (void)http;
    (void)c;
    (void)why;
    *exchange = NULL;
    if (!x)
        return;
    x->of->exchange = NULL;
    clave__http_connection_enter(x->of, HTTP_IDLE);
    http_exchange_release(x);
}

/* ---- waiting -------------------------------------------------------------------------------- */

static void http_exchange_suspend(struct http_exchange *x)
{
    x->is_suspended = true;
    x->http->lib->MHD_suspend_connection(x->connection);
    clave__http_connection_enter(x->of, HTTP_WAITING);
    if (x->of->hung_up) /* before it could be noticed */
        clave__http_exchange_give_up(x);
}

/* The library walks all suspended ones for a resume: they are collected, for one walk a turn. */
static void http_exchange_go_on(struct http_exchange *x)
{
    x->is_woken = true;
    if (!x->is_suspended || !list_empty(&x->in_ready))
        return;
    list_push_back(&x->http->ready, &x->in_ready);
    uv_idle_start(&x->http->turn, x->http->on_turn);
}

void clave__http_answer(struct http_exchange *x, struct web_answer *a)
{
    x->answer = a;
    x->http->held += a ? a->body.cap : 0;
    /* Of another method something may have been done: that is told in any case. */
    bool reads = strcmp(x->q.method, MHD_HTTP_METHOD_GET) == 0;
    x->is_refused = !a || (reads && x->http->held > x->http->o.max_held);
    http_exchange_go_on(x);
}

const char *clave__http_path(const struct http_exchange *x)
{
    return x->path;
}

void clave__http_wake(struct http_exchange *x)
{
    http_exchange_go_on(x);
}

void clave__http_exchange_give_up(struct http_exchange *x)
{
    if (!x->is_suspended)
        return; /* the library sees for itself */
    http_exchange_end(x);
    http_exchange_go_on(x);
}

void clave__http_exchanges_resume(struct http *h, size_t most)
{
    struct list *e;
    for (; most > 0 && (e = list_pop_front(&h->ready)); most--) {
        struct http_exchange *x = LIST_ENTRY(e, struct http_exchange, in_ready);
        x->is_suspended = false;
        clave__http_connection_enter(x->of, HTTP_SENDING);
        h->lib->MHD_resume_connection(x->connection);
    }
}

/* ---- the answer ----------------------------------------------------------------------------- */

static void http_exchange_on_freed(void *exchange)
{
    http_exchange_release(exchange);
}

static clave_err http_exchange_make_piece(struct http_exchange *x)
{
    struct http *h = x->http;
    size_t before = x->out.cap;
    h->has_made_piece = true;
    x->is_woken = false;
    clave_err err = x->answer->more(x->answer->arg, &x->out, &x->is_done);
    http_exchange_count(x, before, &x->out);
    return err;
}

/* All of it was sent, and it may be long until there is more. */
static void http_exchange_trim(struct http_exchange *x)
{
    enum { KEEP = 1024 };
    size_t body = x->answer->body.cap, out = x->out.cap;
    clave__buf_trim(&x->answer->body, KEEP);
    http_exchange_count(x, body, &x->answer->body);
    clave__buf_trim(&x->out, KEEP);
    http_exchange_count(x, out, &x->out);
}

/* The next bytes of an answer. 0: there are none for now. */
static ssize_t http_exchange_on_read(void *exchange, uint64_t pos, char *out, size_t max)
{
    struct http_exchange *x = exchange;
    struct http *h = x->http;
    (void)pos;
    if (x->is_over) /* given up */
        return MHD_CONTENT_READER_END_WITH_ERROR;
    clave__http_connection_enter(x->of, HTTP_SENDING);
    struct buf *bytes = clave__buf_len(&x->answer->body) > 0 ? &x->answer->body : &x->out;
    bool wants_piece = clave__buf_len(bytes) == 0 && !x->is_done;
    if (wants_piece && ((h->o.piece_a_turn && h->has_made_piece) || http_turn_is_over(h)))
        return 0; /* the library asks again in the next turn */
    if (wants_piece && http_exchange_make_piece(x) != CLAVE_OK)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    size_t n = clave__buf_len(bytes) < max ? clave__buf_len(bytes) : max;
    if (n == 0 && x->is_done)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (n == 0 && !h->o.piece_a_turn) {
        http_exchange_trim(x);
        http_exchange_suspend(x);
    }
    if (n == 0 && x->is_woken) /* by its piece: in the next turn */
        http_exchange_go_on(x);
    if (n == 0)
        return 0;
    memcpy(out, clave__buf_bytes(bytes), n);
    clave__buf_consume(bytes, n);
    return (ssize_t)n;
}

static struct MHD_Response *http_exchange_respond(struct http_exchange *x)
{
    const struct microhttpd *lib = x->http->lib;
    const struct web_answer *a = x->answer;
    size_t n = clave__buf_len(&a->body);
    x->is_done = !a->more;
    if (!a->more && n <= MOST_AT_ONCE)
        return lib->MHD_create_response_from_buffer_with_free_callback_cls(
            n, clave__buf_bytes(&x->answer->body), http_exchange_on_freed, x);
    return lib->MHD_create_response_from_callback(a->more ? MHD_SIZE_UNKNOWN : n,
                                                  a->more ? STREAM_BLOCK : MOST_BLOCK,
                                                  http_exchange_on_read, x, http_exchange_on_freed);
}

/* Bodies and answers take too much memory together. */
static enum MHD_Result http_exchange_refuse(struct http_exchange *x)
{
    static char text[] =
        "{\"title\": \"Service Unavailable\", \"status\": 503, \"detail\": \"bodies and "
        "answers of all clients take too much memory together\", "
        "\"code\": \"ENOMEM\", \"class\": \"retry\"}";
    const struct microhttpd *lib = x->http->lib;
    struct MHD_Response *r = lib->MHD_create_response_from_buffer_with_free_callback_cls(
        sizeof text - 1, text, NULL, NULL);
    clave__log(&x->http->o.log, CLAVE_LOG_WARN, "cannot answer an HTTP request: out of memory");
    if (!r)
        return MHD_NO;
    lib->MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "application/problem+json");
    lib->MHD_add_response_header(r, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    lib->MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
    clave__http_connection_enter(x->of, HTTP_SENDING);
    enum MHD_Result queued =
        lib->MHD_queue_response(x->connection, MHD_HTTP_SERVICE_UNAVAILABLE, r);
    lib->MHD_destroy_response(r);
    return queued;
}

static enum MHD_Result http_exchange_send(struct http_exchange *x)
{
    struct http *h = x->http;
    const struct web_answer *a = x->answer;
    struct MHD_Response *r = http_exchange_respond(x);
    if (!r)
        return MHD_NO;
    x->refs++;
    for (size_t i = 0; i < a->nheaders; i++)
        h->lib->MHD_add_response_header(r, a->headers[i].name, a->headers[i].value);
    /* A stream is sent in chunks, of which the library sends the last one even after HEAD. */
    if (a->more && strcmp(x->q.method, MHD_HTTP_METHOD_HEAD) == 0)
        h->lib->MHD_set_response_options(r, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
    if (h->o.one_request)
        h->lib->MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
    clave__http_connection_enter(x->of, HTTP_SENDING);
    enum MHD_Result queued = h->lib->MHD_queue_response(x->connection, a->status, r);
    h->lib->MHD_destroy_response(r);
    return queued;
}

/* ---- the request ---------------------------------------------------------------------------- */

static enum MHD_Result http_exchange_add_header(void *exchange, enum MHD_ValueKind kind,
                                                const char *name, const char *value)
{
    struct http_exchange *x = exchange;
    (void)kind;
    x->headers[x->q.nheaders++] = (struct web_header){name, value ? value : ""};
    return MHD_YES;
}

static bool http_exchange_take_headers(struct http_exchange *x)
{
    const struct microhttpd *lib = x->http->lib;
    int n = lib->MHD_get_connection_values(x->connection, MHD_HEADER_KIND, NULL, NULL);
    x->headers = malloc((size_t)(n > 0 ? n : 1) * sizeof *x->headers);
    if (!x->headers)
        return false;
    lib->MHD_get_connection_values(x->connection, MHD_HEADER_KIND, http_exchange_add_header, x);
    x->q.headers = x->headers;
    return true;
}

const char *clave__http_header(const struct http_exchange *x, const char *name)
{
    for (size_t i = 0; i < x->q.nheaders; i++)
        if (strcasecmp(x->headers[i].name, name) == 0)
            return x->headers[i].value;
    return NULL;
}

/* The library has checked that it is a number. */
static size_t http_exchange_length(const struct http_exchange *x)
{
    const char *text = clave__http_header(x, MHD_HTTP_HEADER_CONTENT_LENGTH);
    unsigned long long n = text ? strtoull(text, NULL, 10) : 0;
    return n < SIZE_MAX ? (size_t)n : SIZE_MAX;
}

/* Where it ends is known: by its length, or by its chunks. The owner refuses one that is too long,
 * or of another coding, which the library would read up to the end of the connection. */
static bool http_exchange_reads_body(const struct http_exchange *x)
{
    const char *coding = clave__http_header(x, MHD_HTTP_HEADER_TRANSFER_ENCODING);
    size_t most = x->http->o.max_body;
    return most > 0 && http_exchange_length(x) <= most &&
           (!coding || strcasecmp(coding, "chunked") == 0);
}

/* More than max_body + 1 bytes are not kept: the length says that it is too long. */
static void http_exchange_take_body(struct http_exchange *x, const char *bytes, size_t n)
{
    size_t room = x->body.max - clave__buf_len(&x->body), before = x->body.cap;
    n = n < room ? n : room;
    if (x->is_refused)
        return;
    x->is_refused = x->http->held + n > x->http->o.max_held ||
                    clave__buf_append(&x->body, bytes, n) != CLAVE_OK;
    http_exchange_count(x, before, &x->body);
}

static bool http_exchange_is_loopback(const struct peer_addr *peer)
{
    static const uint8_t v6[16] = {[15] = 1};
    return peer->family == 4 ? peer->ip[0] == 127
                             : peer->family == 6 && memcmp(peer->ip, v6, sizeof v6) == 0;
}

static void http_exchange_begin(struct http_exchange *x, const char *method, const char *path)
{
    struct http *h = x->http;
    const struct peer_addr *peer = &x->of->peer;
    size_t declared = http_exchange_length(x);
    x->q.method = method;
    x->q.target = x->target;
    x->q.peer = (struct web_peer){.is_unix = peer->family == 0,
                                  .is_loopback = http_exchange_is_loopback(peer),
                                  .is_tls = peer->secure,
                                  .uid = peer->has_uid ? (int64_t)peer->uid : -1,
                                  .address = peer->text,
                                  .tls_subject = x->of->tls_subject[0] ? x->of->tls_subject : NULL};
    x->q.body = clave__buf_bytes(&x->body);
    x->q.len = clave__buf_len(&x->body);
    x->q.body_length = clave__http_header(x, MHD_HTTP_HEADER_TRANSFER_ENCODING) ? -1
                       : declared < INT64_MAX                                   ? (int64_t)declared
                                                                                : INT64_MAX;
    if (h->o.max_body > 0 && declared > h->o.max_body) {
        x->q.body = NULL;
        x->q.len = declared;
    }
    x->path = path;
    h->o.begin(h->o.arg, &x->q, x, &x->user);
}

/* MHD_NO: closes the connection. */
static enum MHD_Result on_http_request(void *http, struct MHD_Connection *c, const char *path,
                                       const char *method, const char *version, const char *upload,
                                       size_t *upload_size, void **exchange)
{
    struct http *h = http;
    struct http_exchange *x = *exchange;
    (void)c;
    if (!x || x->is_over)
        return MHD_NO;
    if (*upload_size > 0) {
        http_exchange_take_body(x, upload, *upload_size);
        *upload_size = 0;
        return MHD_YES;
    }
    if (!x->headers) { /* the head */
        clave__http_connection_enter(x->of, HTTP_BODY);
        x->q.must_have_host = strcmp(version, MHD_HTTP_VERSION_1_0) != 0;
        if (!http_exchange_take_headers(x))
            return MHD_NO;
        if (http_exchange_reads_body(x))
            return MHD_YES;
    }
    if (!x->q.method && !x->is_refused && http_turn_is_over(h)) {
        http_exchange_suspend(x);
        http_exchange_go_on(x);
        return MHD_YES;
    }
    if (!x->q.method && !x->is_refused)
        http_exchange_begin(x, method, path);
    if (x->is_refused)
        return http_exchange_refuse(x);
    if (x->answer)
        return http_exchange_send(x);
    http_exchange_suspend(x);
    return MHD_YES;
}

MHD_AccessHandlerCallback clave__http_exchange_handler(void)
{
    return on_http_request;
}
