#include "http/http_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/gate_host.h"
#include "http/http_told.h"
#include "http/http_world.h"

struct http_piece {
    struct list link;
    struct alarm alarm;
    struct http_call *c;
    char text[];
};

static void call_free(struct http_call *c)
{
    list_remove(&c->in_world);
    free(c);
}

static void call_free_if_unused(struct http_call *c)
{
    bool flies = alarm_is_set(&c->up) || alarm_is_set(&c->down) || alarm_is_set(&c->fin);
    if (c->user_done && c->gate_done && !flies && list_empty(&c->pieces))
        call_free(c);
}

/* No gate begins it any more, or goes on with it. */
static void call_leaves_gate(struct http_call *c)
{
    c->gate_done = true;
    c->from->open -= c->is_open;
    c->is_open = false;
}

static void piece_free(struct http_piece *p)
{
    list_remove(&p->link);
    free(p);
}

static void on_up(struct alarm *a)
{
    struct http_call *c = LIST_ENTRY(a, struct http_call, up);
    c->arrived = true;
    gate_take(c->gate, c);
}

static void on_down(struct alarm *a)
{
    struct http_call *c = LIST_ENTRY(a, struct http_call, down);
    if (!c->given_up)
        c->from->hears(c->from, c);
    call_free_if_unused(c);
}

static void on_fin(struct alarm *a)
{
    struct http_call *c = LIST_ENTRY(a, struct http_call, fin);
    c->hung_up = true;
    if (!c->arrived) {
        world_clear(c->w, &c->up); /* it died on the way */
        call_leaves_gate(c);
    }
    if (!c->gate_done)
        gate_wake(c->gate);
    call_free_if_unused(c);
}

struct http_call *http_call_new(struct http_sender *from, struct gate *g, const char *method)
{
    struct http_call *c = world_alloc(sizeof *c);
    *c = (struct http_call){.w = g->w, .gate = g, .from = from, .session = from->session};
    c->up.fire = on_up;
    c->down.fire = on_down;
    c->fin.fire = on_fin;
    list_init(&c->in_gate);
    list_init(&c->pieces);
    list_push_back(&from->of->calls, &c->in_world);
    c->q.method = method;
    c->q.target = c->target;
    c->q.headers = c->list;
    c->q.peer = (struct web_peer){.is_loopback = true, .uid = -1, .address = "127.0.0.1:1"};
    http_call_header(c, "Host", "localhost");
    if (from->token)
        http_call_header(c, "Authorization", from->token);
    return c;
}

void http_call_repeat(struct http_call *c, struct gate *g, int64_t us)
{
    struct http_call *twin = world_alloc(sizeof *twin);
    *twin = *c;
    twin->gate = g;
    twin->up.slot = twin->down.slot = twin->fin.slot = 0;
    list_init(&twin->in_gate);
    list_init(&twin->pieces);
    list_push_back(&c->from->of->calls, &twin->in_world);
    twin->q.target = twin->target;
    twin->q.headers = twin->list;
    for (size_t i = 0; i < twin->q.nheaders; i++)
        twin->list[i].value = twin->headers[i];
    twin->given_up = twin->user_done = true;
    twin->gate_done = twin->is_open = false;
    c->twice = twin->twice = true;
    http_call_send(twin, us);
}

void http_call_header(struct http_call *c, const char *name, const char *value)
{
    char *copy = c->headers[c->q.nheaders];
    world_must(c->q.nheaders < HTTP_HEADERS);
    snprintf(copy, sizeof c->headers[0], "%s", value);
    c->list[c->q.nheaders++] = (struct web_header){name, copy};
}

void http_call_send(struct http_call *c, int64_t us)
{
    http_told_sent(c);
    c->q.body_length = (int64_t)strlen(c->body);
    c->is_open = us >= 0;
    c->from->open += c->is_open;
    if (us >= 0)
        world_set(c->w, &c->up, c->w->now + us);
    else
        c->gate_done = true;
}

void http_call_end(struct http_call *c, int64_t us)
{
    list_remove(&c->in_gate);
    call_leaves_gate(c);
    int64_t at = c->w->now + us;
    if (us >= 0 && !c->given_up)
        world_set(c->w, &c->down, at > c->newest ? at : c->newest);
    call_free_if_unused(c);
}

void http_call_give_up(struct http_call *c, int64_t us)
{
    c->given_up = c->user_done = true;
    world_clear(c->w, &c->down);
    if (us >= 0 && !c->gate_done)
        world_set(c->w, &c->fin, c->w->now + us);
    call_free_if_unused(c);
}

void http_call_drop(struct http_call *c)
{
    c->given_up = c->user_done = true;
    call_free_if_unused(c);
}

static void on_piece(struct alarm *a)
{
    struct http_piece *p = LIST_ENTRY(a, struct http_piece, alarm);
    struct http_call *c = p->c;
    if (!c->given_up)
        c->from->reads(c->from, c, p->text);
    piece_free(p);
    call_free_if_unused(c);
}

void http_call_piece(struct http_call *c, const void *bytes, size_t n, int64_t us)
{
    struct http_piece *p = world_alloc(sizeof *p + n + 1);
    int64_t at = c->w->now + us;
    p->c = c;
    p->alarm.fire = on_piece;
    memcpy(p->text, bytes, n);
    c->newest = at > c->newest ? at : c->newest;
    list_push_back(&c->pieces, &p->link);
    world_set(c->w, &p->alarm, c->newest);
}

void http_calls_free(struct list *calls)
{
    while (!list_empty(calls)) {
        struct http_call *c = LIST_ENTRY(calls->next, struct http_call, in_world);
        world_clear(c->w, &c->up);
        world_clear(c->w, &c->down);
        world_clear(c->w, &c->fin);
        while (!list_empty(&c->pieces)) {
            struct http_piece *p = LIST_ENTRY(c->pieces.next, struct http_piece, link);
            world_clear(c->w, &p->alarm);
            piece_free(p);
        }
        call_free(c);
    }
}

bool http_call_has_no_session(const struct http_call *c)
{
    return (c->status == 410 && strstr(c->answer, "the session has ended")) ||
           (c->status == 403 && strstr(c->answer, "EOTHERKEY"));
}

bool http_json(const char *text, const char *key, char *out, size_t cap)
{
    char quoted[48];
    snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    const char *at = strstr(text, quoted);
    if (!at)
        return false;
    at += strlen(quoted);
    size_t n = *at == '"' ? strcspn(++at, "\"") : strcspn(at, ",}] ");
    snprintf(out, cap, "%.*s", (int)n, at);
    return true;
}

int64_t http_json_int(const char *text, const char *key)
{
    char digits[32];
    return http_json(text, key, digits, sizeof digits) ? atoll(digits) : -1;
}
