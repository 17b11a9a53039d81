#include "lib/webrig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json_writer.h"
#include "base/memory.h"
#include "web/http/jansson.h"

static const struct jansson linked = {JANSSON_LINKED};

/* As assert, but also in a build without asserts. */
static void webrig_must(bool fine)
{
    if (!fine)
        abort();
}

/* ---- the driver's side ---------------------------------------------------------------------- */

static clave_err rig_client_open(void *arg, const clave_client_options *o, clave_async_client **out)
{
    struct webrig *r = arg;
    size_t i = memnet_open(r->net, o);
    *out = r->net->clients[i].c;
    return CLAVE_OK;
}

static void rig_client_free(void *arg, clave_async_client *c)
{
    struct webrig *r = arg;
    webrig_must(r->ndoomed < MEMNET_CLIENTS);
    r->doomed[r->ndoomed++] = c;
}

static void rig_free_doomed(struct webrig *r)
{
    while (r->ndoomed > 0) {
        clave_async_client *c = r->doomed[--r->ndoomed];
        for (size_t i = 0; i < r->net->o.clients; i++)
            if (r->net->clients[i].c == c)
                memnet_close(r->net, i);
    }
}

/* memnet looks at every client at each step. */
static void rig_client_flush(void *arg, clave_async_client *c)
{
    (void)arg;
    (void)c;
}

static void rig_pull(struct webrig_call *c)
{
    struct web_answer *a = clave__web_exchange_answer(c->x);
    struct buf *from = &a->body;
    for (;;) {
        webrig_must(clave__buf_append(&c->body, clave__buf_bytes(from), clave__buf_len(from)) ==
                    CLAVE_OK);
        clave__buf_consume(from, clave__buf_len(from));
        if (c->done || !a->more || c->stop_reading)
            break;
        unsigned wakes = c->wakes;
        if (a->more(a->arg, from, &c->done) != CLAVE_OK)
            c->done = true;
        if (clave__buf_len(from) == 0 && !c->done && c->wakes == wakes)
            break;
    }
    c->done = c->done || !a->more;
    webrig_must(clave__buf_append(&c->body, "", 1) == CLAVE_OK);
    c->body.tail--;
}

static void rig_answered(void *arg, struct web_exchange *x, void *transport)
{
    struct webrig_call *c = transport;
    (void)arg;
    webrig_must(!c->answered && (!c->x || c->x == x));
    c->answered = true;
    c->status = clave__web_exchange_answer(x)->status;
}

static void rig_wake(void *arg, struct web_exchange *x, void *transport)
{
    struct webrig_call *c = transport;
    (void)arg;
    webrig_must(c->answered && c->x == x);
    c->wakes++;
}

static void rig_audit(void *arg, const struct web_audit *a)
{
    struct webrig *r = arg;
    if (r->naudits < WEBRIG_AUDITS)
        snprintf(r->audits[r->naudits++], sizeof r->audits[0], "%s %s %s %u%s%s%s%s%s%s", a->user,
                 a->method, a->target, a->status, a->session ? " session" : "", a->path ? " " : "",
                 a->path ? a->path : "", a->what ? " (" : "", a->what ? a->what : "",
                 a->what ? ")" : "");
}

/* ---- life ----------------------------------------------------------------------------------- */

struct webrig *webrig_new(const struct webrig_options *o)
{
    static const struct webrig_options none = {0};
    struct webrig *r = calloc(1, sizeof *r);
    webrig_must(r != NULL);
    o = o ? o : &none;
    r->mem = clave__mem_or_default(NULL);
    r->net = memnet_new(&o->net);
    r->peer = (struct web_peer){.is_loopback = true, .uid = -1, .address = "127.0.0.1:4711"};
    r->env = (struct web_env){.arg = r,
                              .client_open = rig_client_open,
                              .client_free = rig_client_free,
                              .client_flush = rig_client_flush,
                              .answered = rig_answered,
                              .wake = rig_wake,
                              .audit = rig_audit};
    r->options = (struct web_options){.mem = o->mem,
                                      .seed = 4711,
                                      .log = o->log,
                                      .env = &r->env,
                                      .hosts = o->hosts ? o->hosts : "pair:1",
                                      .session_key = o->session_key,
                                      .key_is_shared = o->session_key != NULL,
                                      .jansson = &linked,
                                      .access = o->access,
                                      .assets = o->assets,
                                      .nassets = o->nassets,
                                      .max_body = o->max_body,
                                      .max_waiting = o->max_waiting,
                                      .max_held = o->max_held,
                                      .max_sessions = o->max_sessions,
                                      .auths = o->auths,
                                      .nauths = o->nauths,
                                      .metric_paths = o->metric_paths,
                                      .nmetric_paths = o->nmetric_paths};
    webrig_must(clave__web_new(&r->web, &r->options) == CLAVE_OK);
    webrig_settle(r);
    return r;
}

void webrig_second(struct webrig *r)
{
    webrig_must(!r->first);
    r->first = r->web;
    r->options.seed++;
    webrig_must(clave__web_new(&r->web, &r->options) == CLAVE_OK);
    webrig_settle(r);
}

void webrig_other(struct webrig *r)
{
    struct web *other = r->first;
    webrig_must(other != NULL);
    r->first = r->web;
    r->web = other;
}

static void rig_close(struct webrig *r, struct web *w)
{
    if (!w)
        return;
    clave__web_close(w, r->net->now);
    webrig_settle(r);
    for (int s = 0; s < 60 && !clave__web_is_closed(w); s++)
        webrig_advance(r, 1000);
    webrig_must(clave__web_is_closed(w));
    clave__web_free(w);
}

void webrig_free(struct webrig *r)
{
    for (size_t i = 0; i < WEBRIG_CALLS; i++)
        webrig_end(r->calls[i]);
    rig_close(r, r->first);
    r->first = NULL;
    rig_close(r, r->web);
    rig_free_doomed(r);
    memnet_free(r->net);
    free(r);
}

void webrig_freed(struct webrig **r)
{
    webrig_free(*r);
}

/* ---- time ----------------------------------------------------------------------------------- */

static void rig_read(struct webrig *r)
{
    for (size_t i = 0; i < WEBRIG_CALLS; i++)
        if (r->calls[i] && r->calls[i]->answered && !r->calls[i]->done)
            rig_pull(r->calls[i]);
}

static int64_t rig_deadline(const struct webrig *r)
{
    int64_t at = clave__web_deadline(r->web);
    int64_t other = r->first ? clave__web_deadline(r->first) : CLAVE_NEVER;
    return other < at ? other : at;
}

void webrig_advance(struct webrig *r, int64_t ms)
{
    int64_t target = r->net->now + ms;
    for (int64_t at; (at = rig_deadline(r)) <= target;) {
        memnet_advance(r->net, at > r->net->now ? at - r->net->now : 0);
        if (r->first)
            clave__web_tick(r->first, r->net->now);
        clave__web_tick(r->web, r->net->now);
        rig_free_doomed(r);
        rig_read(r);
    }
    memnet_advance(r->net, target - r->net->now);
    rig_free_doomed(r);
    rig_read(r);
}

void webrig_settle(struct webrig *r)
{
    webrig_advance(r, 0);
}

/* ---- records -------------------------------------------------------------------------------- */

static void rig_put_headers(struct json *j, const struct webrig_call *c)
{
    const struct web_answer *a = clave__web_exchange_answer(c->x);
    clave__json_open(j, "headers", '{');
    for (size_t i = 0; i < a->nheaders; i++)
        clave__json_string(j, a->headers[i].name, a->headers[i].value);
    clave__json_close(j, '}');
}

/* One line of JSON an answer; the first one of a process begins the file. */
static void rig_record(const struct webrig_call *c)
{
    static bool began;
    const char *path = getenv("WEBRIG_RECORD");
    FILE *f = path && c->x && c->done ? fopen(path, began ? "a" : "w") : NULL;
    struct buf line;
    if (!f)
        return;
    began = true;
    clave__buf_init(&line, &c->rig->mem, SIZE_MAX / 4);
    struct json j = clave__json_to(&line);
    clave__json_open(&j, NULL, '{');
    clave__json_string(&j, "method", c->q.method);
    clave__json_string(&j, "target", c->q.target);
    clave__json_bytes(&j, "request", c->sent, c->nsent);
    clave__json_int(&j, "status", c->status);
    rig_put_headers(&j, c);
    clave__json_bytes(&j, "body", clave__buf_bytes(&c->body), clave__buf_len(&c->body));
    clave__json_close(&j, '}');
    fprintf(f, "%.*s\n", (int)clave__buf_len(&line), (const char *)clave__buf_bytes(&line));
    fclose(f);
    clave__buf_fini(&line);
}

/* ---- requests ------------------------------------------------------------------------------- */

static void rig_add_header(struct webrig_call *c, const char *name, const char *value)
{
    webrig_must(c->q.nheaders < sizeof c->headers / sizeof *c->headers);
    c->headers[c->q.nheaders++] = (struct web_header){name, value};
}

/* "Name: value\nName: value", which is taken apart. */
static void rig_add_headers(struct webrig_call *c, char *text)
{
    for (char *next; text && *text; text = next) {
        next = strchr(text, '\n');
        if (next)
            *next++ = '\0';
        char *colon = strstr(text, ": ");
        webrig_must(colon != NULL);
        *colon = '\0';
        rig_add_header(c, text, colon + 2);
    }
}

static bool rig_has(const struct webrig_call *c, const char *name)
{
    for (size_t i = 0; i < c->q.nheaders; i++)
        if (strcasecmp(c->headers[i].name, name) == 0)
            return true;
    return false;
}

static char *rig_copy(char **at, const void *p, size_t n)
{
    char *to = *at;
    memcpy(to, p, n);
    to[n] = '\0';
    *at += n + 1;
    return to;
}

/* In two pieces, as it may come. */
static void rig_send_body(struct webrig_call *c, size_t n)
{
    int64_t now = c->rig->net->now;
    size_t first = n / 2;
    if ((first == 0 || clave__web_take_body(c->x, now, c->sent, first)) &&
        (n == 0 || clave__web_take_body(c->x, now, c->sent + first, n - first)))
        clave__web_body_done(c->x, now);
}

/* As webrig_request_bytes, but only the head has come. */
static struct webrig_call *rig_begin(struct webrig *r, const char *method, const char *target,
                                     const char *headers, const void *body, size_t n)
{
    struct webrig_call *c = calloc(1, sizeof *c);
    size_t i = 0;
    headers = headers ? headers : "";
    webrig_must(c != NULL);
    c->rig = r;
    c->text = malloc(strlen(method) + strlen(target) + strlen(headers) + n + 4);
    webrig_must(c->text != NULL);
    char *at = c->text;
    c->q = (struct web_request){.method = rig_copy(&at, method, strlen(method)),
                                .target = rig_copy(&at, target, strlen(target)),
                                .headers = c->headers,
                                .peer = r->peer};
    rig_add_headers(c, rig_copy(&at, headers, strlen(headers)));
    c->sent = rig_copy(&at, n ? body : "", n);
    c->nsent = n;
    if (!rig_has(c, "Host"))
        rig_add_header(c, "Host", "localhost:8080");
    if (n > 0 && !rig_has(c, "Content-Type"))
        rig_add_header(c, "Content-Type", "application/json");
    c->q.body_length = rig_has(c, "Transfer-Encoding") ? -1 : (int64_t)n;
    if (r->announced > 0)
        c->q.body_length = r->announced;
    clave__buf_init(&c->body, &r->mem, SIZE_MAX / 4);
    while (i < WEBRIG_CALLS && r->calls[i])
        i++;
    webrig_must(i < WEBRIG_CALLS);
    r->calls[i] = c;
    if (clave__web_begin(r->web, r->net->now, &c->q, c, &c->x) != CLAVE_OK) {
        c->answered = c->done = true;
        c->status = 503;
    }
    return c;
}

struct webrig_call *webrig_request_bytes(struct webrig *r, const char *method, const char *target,
                                         const char *headers, const void *body, size_t n)
{
    struct webrig_call *c = rig_begin(r, method, target, headers, body, n);
    if (c->x)
        rig_send_body(c, n);
    webrig_settle(r);
    return c;
}

struct webrig_call *webrig_head(struct webrig *r, const char *method, const char *target,
                                const char *headers, int64_t body_length)
{
    char with[512];
    snprintf(with, sizeof with, "%s%s%s", headers ? headers : "", headers ? "\n" : "",
             body_length < 0 ? "Transfer-Encoding: chunked" : "X-No: chunks");
    r->announced = body_length;
    struct webrig_call *c = rig_begin(r, method, target, with, NULL, 0);
    r->announced = 0;
    webrig_settle(r);
    return c;
}

bool webrig_piece(struct webrig_call *c, const void *p, size_t n)
{
    bool more = clave__web_take_body(c->x, c->rig->net->now, p, n);
    webrig_settle(c->rig);
    return more;
}

void webrig_last_piece(struct webrig_call *c)
{
    clave__web_body_done(c->x, c->rig->net->now);
    webrig_settle(c->rig);
}

struct webrig_call *webrig_request(struct webrig *r, const char *method, const char *target,
                                   const char *headers, const char *body)
{
    return webrig_request_bytes(r, method, target, headers, body, body ? strlen(body) : 0);
}

void webrig_end(struct webrig_call *c)
{
    if (!c)
        return;
    rig_record(c);
    clave__web_end(c->x, c->rig->net->now);
    for (size_t i = 0; i < WEBRIG_CALLS; i++)
        if (c->rig->calls[i] == c)
            c->rig->calls[i] = NULL;
    webrig_settle(c->rig);
    clave__buf_fini(&c->body);
    free(c->text);
    free(c);
}

void webrig_ended(struct webrig_call **c)
{
    webrig_end(*c);
}

/* ---- answers -------------------------------------------------------------------------------- */

const char *webrig_header(const struct webrig_call *c, const char *name)
{
    const struct web_answer *a = c->x && c->answered ? clave__web_exchange_answer(c->x) : NULL;
    for (size_t i = 0; a && i < a->nheaders; i++)
        if (strcasecmp(a->headers[i].name, name) == 0)
            return a->headers[i].value;
    return NULL;
}

const char *webrig_body(const struct webrig_call *c)
{
    return clave__buf_bytes(&c->body) ? (const char *)clave__buf_bytes(&c->body) : "";
}

const char *webrig_member(const struct webrig_call *c, const char *key)
{
    static char out[512];
    char wanted[80];
    snprintf(wanted, sizeof wanted, "\"%s\": ", key);
    const char *at = strstr(webrig_body(c), wanted);
    if (!at)
        return NULL;
    at += strlen(wanted);
    size_t n = *at == '"' ? strcspn(++at, "\"") : strcspn(at, ",]}");
    snprintf(out, sizeof out, "%.*s", (int)n, at);
    return out;
}
