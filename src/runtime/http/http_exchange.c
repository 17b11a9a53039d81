/* http_exchange.c - one request of an HTTP server and its answer; http_connection.c gives it the
 * bytes. Invariant: the owner is told of each begun exchange that it is over, once. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/http_reason.h"
#include "base/memory.h"
#include "runtime/http/http_internal.h"

enum { MAX_HEAD = 32 * 1024, MAX_PIECE = 64 * 1024 * 1024 };

/* ---- life ----------------------------------------------------------------------------------- */

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
    return status == 503 ? "ENOMEM" : status == 414 || status == 431 ? "ETOOBIG" : "EINVAL";
}

/* By what the owner does not see, or cannot answer. */
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
    else if (!x->answer && x->parse.expects_continue) /* its head was admitted */
        clave__http_output_continue(x);
    c->in_call = false;
}

/* Nothing of a request that has been answered is of any use. */
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

/* ---- to the owner --------------------------------------------------------------------------- */

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
    if (x->answer) /* its body was not readable to the end, and is refused */
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
