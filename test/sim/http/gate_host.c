#include "http/gate_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/http_told.h"
#include "web/http/jansson.h"

static const struct jansson linked = {JANSSON_LINKED};

enum { GATE_LATE_US = 200 };

static int64_t gate_clock(const struct gate *g)
{
    return clock_ms(&g->clock, g->w->now);
}

void gate_wake(struct gate *g)
{
    if (g->web && !g->paused && g->step == GATE_CLOCK)
        world_set_earlier(g->w, &g->run, g->w->now + world_between(g->w, 0, GATE_LATE_US));
}

int64_t gate_delay(struct gate *g)
{
    int64_t us = world_between(g->w, 20, g->delay_us);
    return g->w->now < g->late_to ? us + world_between(g->w, 0, g->late_us) : us;
}

/* ---- what the engine asks -------------------------------------------------------------------- */

static void on_gate_socket(void *owner)
{
    struct gate_client *c = owner;
    gate_wake(c->gate);
}

static clave_err gate_client_open(void *arg, const clave_client_options *o,
                                  clave_async_client **out)
{
    struct gate *g = arg;
    for (size_t i = 0; i < GATE_CLIENTS; i++) {
        struct gate_client *c = &g->clients[i];
        if (c->c)
            continue;
        clave_err err = clave_async_client_new(&c->c, o);
        if (err != CLAVE_OK)
            return err;
        clave_async_client_start(c->c, gate_clock(g));
        *out = c->c;
        return CLAVE_OK;
    }
    return CLAVE_EUNREACHABLE; /* no more connections, as maxClientCnxns */
}

static void gate_client_free(void *arg, clave_async_client *client)
{
    struct gate *g = arg;
    for (size_t i = 0; i < GATE_CLIENTS; i++)
        if (g->clients[i].c == client)
            g->clients[i].doomed = g->reaps = true;
}

static void gate_client_flush(void *arg, clave_async_client *client)
{
    struct gate *g = arg;
    (void)client;
    g->restless = true;
}

static void gate_answered(void *arg, struct web_exchange *x, void *transport)
{
    struct gate *g = arg;
    struct http_call *c = transport;
    world_must(!c->answered);
    (void)x;
    c->answered = true;
    g->restless = true;
}

static void gate_woken(void *arg, struct web_exchange *x, void *transport)
{
    struct gate *g = arg;
    (void)x;
    (void)transport;
    g->restless = true;
}

/* Right after the callback in which the engine asked for it. */
static void gate_reap(struct gate *g)
{
    bool reaps = g->reaps; /* this is asked at each step */
    g->reaps = false;
    for (size_t i = 0; i < GATE_CLIENTS && reaps; i++) {
        struct gate_client *c = &g->clients[i];
        if (!c->doomed)
            continue;
        clave_async_client *client = c->c;
        if (c->socket)
            net_close(c->socket);
        *c = (struct gate_client){.gate = g};
        clave_async_client_free(client);
    }
}

/* ---- a client of it -------------------------------------------------------------------------- */

static void gate_feed(struct gate *g, struct gate_client *c)
{
    const void *p;
    if (!c->socket)
        return;
    if (c->socket->state == NET_OPEN && !c->told_open) {
        c->told_open = true;
        clave_async_client_connected(c->c, g->now);
        g->restless = true;
        return;
    }
    size_t n = net_peek(c->socket, &p);
    if (n > 0 && (clave_async_client_wants(c->c) & CLAVE_WANT_READ)) {
        struct net_socket *s = c->socket;
        uint8_t *bytes = world_alloc(n);
        memcpy(bytes, p, n);
        net_read(s, n);
        clave_async_client_input(c->c, g->now, bytes, n);
        free(bytes);
        g->restless = true;
    } else if (net_is_over(c->socket)) {
        net_close(c->socket);
        c->socket = NULL;
        clave_async_client_disconnected(c->c, g->now);
        g->restless = true;
    }
}

static void gate_obey(struct gate *g, struct gate_client *c)
{
    unsigned wants = clave_async_client_wants(c->c);
    if (wants & CLAVE_WANT_HANGUP) {
        if (c->socket)
            net_close(c->socket);
        c->socket = NULL;
        clave_async_client_disconnected(c->c, g->now);
        g->restless = true;
    } else if ((wants & CLAVE_WANT_DIAL) && !c->socket) {
        clave_target t = clave_async_client_target(c->c);
        c->told_open = false;
        c->socket = net_dial(g->net, g->servers[(unsigned)(t.port - 1) % g->nservers], &g->route,
                             (struct net_callback){on_gate_socket, c});
    }
}

static void gate_write(struct gate *g, struct gate_client *c)
{
    const void *p;
    size_t n = clave_async_client_output(c->c, &p);
    c->wrote = 0;
    if (n == 0 || !c->socket || c->socket->state != NET_OPEN)
        return;
    net_write(c->socket, p, n);
    c->wrote = n;
    g->now = gate_clock(g);
}

static void gate_next_client(struct gate *g)
{
    do
        g->at++;
    while (g->at < GATE_CLIENTS && !g->clients[g->at].c);
    g->step = g->at < GATE_CLIENTS ? GATE_CLIENT_LOOK : GATE_TAKE;
}

static void gate_step_client(struct gate *g)
{
    struct gate_client *c = &g->clients[g->at];
    if (g->step == GATE_CLIENT_LOOK) {
        g->now = gate_clock(g);
        g->step = GATE_CLIENT_FEED;
    } else if (g->step == GATE_CLIENT_FEED) {
        if (clave_async_client_deadline(c->c) <= g->now)
            clave_async_client_tick(c->c, g->now);
        if (!c->doomed)
            gate_feed(g, c);
        g->step = GATE_CLIENT_OBEY;
    } else if (g->step == GATE_CLIENT_OBEY) {
        gate_obey(g, c);
        g->step = GATE_CLIENT_WRITE;
    } else if (g->step == GATE_CLIENT_WRITE) {
        gate_write(g, c);
        g->step = GATE_CLIENT_SENT;
    } else {
        if (c->wrote && c->socket)
            clave_async_client_sent(c->c, g->now, c->wrote);
        gate_next_client(g);
    }
    gate_reap(g);
    if (g->step != GATE_TAKE && !g->clients[g->at].c)
        gate_next_client(g);
}

/* ---- requests -------------------------------------------------------------------------------- */

void gate_take(struct gate *g, struct http_call *c)
{
    if (!g->web) {
        c->status = 0;
        http_call_end(c, gate_delay(g)); /* refused */
        return;
    }
    list_push_back(&g->calls, &c->in_gate);
    gate_wake(g);
}

static struct http_call *gate_next_call(const struct gate *g)
{
    for (struct list *l = g->calls.next; l != &g->calls; l = l->next) {
        struct http_call *c = LIST_ENTRY(l, struct http_call, in_gate);
        if (!c->begun)
            return c;
    }
    return NULL;
}

static void gate_begin(struct gate *g)
{
    struct http_call *c = g->taken;
    g->taken = NULL;
    c->begun = true;
    world_must(clave__web_begin(g->web, g->now, &c->q, c, &c->x) == CLAVE_OK);
    if (!c->q.body_length || clave__web_take_body(c->x, g->now, c->body, (size_t)c->q.body_length))
        clave__web_body_done(c->x, g->now);
}

/* What there is of a stream by now. true: that was the last. */
static bool gate_stream(struct gate *g, struct http_call *c)
{
    struct web_answer *a = clave__web_exchange_answer(c->x);
    bool done = false;
    c->streams = true;
    while (!done) {
        if (a->more(a->arg, &a->body, &done) != CLAVE_OK)
            return true;
        if (clave__buf_len(&a->body) == 0)
            break;
        http_told_piece(c, clave__buf_bytes(&a->body), clave__buf_len(&a->body));
        http_call_piece(c, clave__buf_bytes(&a->body), clave__buf_len(&a->body), gate_delay(g));
        clave__buf_consume(&a->body, clave__buf_len(&a->body));
    }
    return done;
}

/* An answer that a balancer loses is the end of the connection, or silence. */
static void gate_return(struct gate *g, struct http_call *c)
{
    bool lost = world_chance(g->w, g->w->now < g->late_to ? 100 : 0);
    if (c->loss > 0 && world_chance(g->w, c->loss)) {
        lost = world_chance(g->w, 500);
        c->status = 0;
    }
    http_call_end(c, lost ? -1 : gate_delay(g));
}

/* Sends what is ready; whoever has hung up is forgotten. */
static void gate_answer(struct gate *g)
{
    for (struct list *l = g->calls.next, *next; l != &g->calls; l = next) {
        struct http_call *c = LIST_ENTRY(l, struct http_call, in_gate);
        next = l->next;
        if (!c->begun || (!c->answered && !c->hung_up))
            continue;
        if (c->answered) {
            const struct web_answer *a = clave__web_exchange_answer(c->x);
            if (a->more && !gate_stream(g, c) && !c->hung_up)
                continue;
            c->status = a->status;
            snprintf(c->answer, sizeof c->answer, "%.*s", (int)clave__buf_len(&a->body),
                     clave__buf_len(&a->body) ? (const char *)clave__buf_bytes(&a->body) : "");
            http_told_answer(c);
        }
        clave__web_end(c->x, g->now);
        c->x = NULL;
        gate_return(g, c);
        g->restless = true;
    }
}

/* ---- the steps ------------------------------------------------------------------------------- */

static void gate_take_step(struct gate *g)
{
    switch (g->step) {
    case GATE_CLOCK:
        g->now = gate_clock(g);
        g->restless = false;
        g->step = GATE_TICK;
        break;
    case GATE_TICK:
        clave__web_tick(g->web, g->now);
        if (g->closing)
            clave__web_close(g->web, g->now); /* once: the second time it does nothing */
        if (g->rereads)
            clave__web_set_access(g->web, http_roles_read(g->roles, g->w->now, g->may));
        g->rereads = false;
        gate_reap(g);
        g->at = (size_t)-1;
        gate_next_client(g);
        break;
    case GATE_TAKE:
        g->taken = gate_next_call(g);
        g->step = g->taken ? GATE_STAMP : GATE_ANSWER;
        break;
    case GATE_STAMP:
        g->now = gate_clock(g);
        g->taken->begun_at = g->w->now;
        g->step = GATE_BEGIN;
        break;
    case GATE_BEGIN:
        gate_begin(g);
        gate_reap(g);
        g->step = GATE_TAKE;
        break;
    case GATE_ANSWER:
        gate_answer(g);
        gate_reap(g);
        g->step = GATE_CLOCK;
        break;
    case GATE_CLIENT_LOOK:
    case GATE_CLIENT_FEED:
    case GATE_CLIENT_OBEY:
    case GATE_CLIENT_WRITE:
    case GATE_CLIENT_SENT:
        gate_step_client(g);
        break;
    }
}

static bool gate_client_wants_more(const struct gate_client *c)
{
    const void *p;
    if (!c->c)
        return false;
    unsigned wants = clave_async_client_wants(c->c);
    bool readable = c->socket && ((wants & CLAVE_WANT_READ) || c->socket->state == NET_ENDED) &&
                    (net_peek(c->socket, &p) > 0 || net_is_over(c->socket));
    bool opened = c->socket && c->socket->state == NET_OPEN && !c->told_open;
    bool writable = c->socket && c->socket->state == NET_OPEN && (wants & CLAVE_WANT_WRITE);
    return readable || writable || opened || (wants & CLAVE_WANT_HANGUP) ||
           ((wants & CLAVE_WANT_DIAL) && !c->socket);
}

static void gate_sleep(struct gate *g)
{
    int64_t at = clave__web_deadline(g->web);
    bool more = g->restless;
    for (size_t i = 0; i < GATE_CLIENTS; i++) {
        if (!g->clients[i].c)
            continue;
        int64_t deadline = clave_async_client_deadline(g->clients[i].c);
        at = deadline < at ? deadline : at;
        more |= gate_client_wants_more(&g->clients[i]);
    }
    if (more || at <= gate_clock(g))
        gate_wake(g);
    world_clear(g->w, &g->timer);
    if (at != CLAVE_NEVER)
        world_set(g->w, &g->timer, clock_when(&g->clock, at));
}

static void gate_end_process(struct gate *g);

static void gate_pass(struct gate *g)
{
    if (!g->web || g->paused)
        return;
    do {
        if (g->stop_in > 0 && --g->stop_in == 0) {
            world_log(g->w, g->name, "is paused for %lld ms", (long long)(g->stop_us / MS));
            g->paused = true;
            world_clear(g->w, &g->run);
            world_clear(g->w, &g->timer);
            world_set(g->w, &g->resume, g->w->now + g->stop_us);
            return;
        }
        gate_take_step(g);
    } while (g->step != GATE_CLOCK);
    if (!g->closing || !clave__web_is_closed(g->web)) {
        gate_sleep(g);
        return;
    }
    gate_end_process(g);
    if (g->back_us > 0)
        world_set(g->w, &g->back, g->w->now + g->back_us);
}

static void gate_pass_with_own_dice(struct gate *g)
{
    struct rand_state *before = world_use_rng(g->w, &g->rng);
    gate_pass(g);
    world_use_rng(g->w, before);
}

static void on_gate_run(struct alarm *a)
{
    gate_pass_with_own_dice(LIST_ENTRY(a, struct gate, run));
}

static void on_gate_timer(struct alarm *a)
{
    gate_pass_with_own_dice(LIST_ENTRY(a, struct gate, timer));
}

static void on_gate_resume(struct alarm *a)
{
    struct gate *g = LIST_ENTRY(a, struct gate, resume);
    world_log(g->w, g->name, "goes on");
    g->paused = false;
    gate_pass_with_own_dice(g);
}

void gate_pause_at(struct gate *g, unsigned step, int64_t us)
{
    if (!g->web || g->paused)
        return;
    g->stop_in = step;
    g->stop_us = us;
    gate_wake(g);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void gate_end_calls(struct gate *g)
{
    while (!list_empty(&g->calls)) {
        struct http_call *c = LIST_ENTRY(g->calls.next, struct http_call, in_gate);
        if (c->x)
            clave__web_end(c->x, gate_clock(g));
        c->x = NULL;
        c->status = 0;
        http_call_end(c, world_chance(g->w, 700) ? gate_delay(g) : -1);
    }
}

static void gate_end_process(struct gate *g)
{
    gate_end_calls(g);
    clave__web_free(g->web);
    gate_reap(g);
    g->web = NULL;
    g->taken = NULL;
    g->paused = g->closing = false;
    g->stop_in = 0;
    g->step = GATE_CLOCK;
    world_clear(g->w, &g->run);
    world_clear(g->w, &g->timer);
    world_clear(g->w, &g->resume);
    for (size_t i = 0; i < GATE_CLIENTS; i++)
        world_must(g->clients[i].c == NULL);
    if (g->allocator.blocks != 0)
        world_break(g->w, "no leak", "%s leaves %zu blocks of memory", g->name,
                    g->allocator.blocks);
}

static void on_gate_log(void *arg, int level, const char *msg)
{
    const struct gate *g = arg;
    (void)level;
    world_log_unhashed(g->w, g->name, msg);
}

void gate_start(struct gate *g)
{
    g->life++;
    world_log(g->w, g->name, "starts, life %u", g->life);
    struct web_options o = {.mem = &g->allocator.mem,
                            .seed = world_u64(g->w) | 1,
                            .log = {on_gate_log, g},
                            .env = &g->env,
                            .hosts = g->hosts,
                            .session_key = g->draws_key ? NULL : g->key,
                            .key_is_shared = !g->draws_key,
                            .access = g->may ? http_roles_read(g->roles, g->w->now, g->may) : NULL,
                            .max_waiting = g->most_waiting,
                            .jansson = &linked};
    world_must(clave__web_new(&g->web, &o) == CLAVE_OK);
    gate_wake(g);
}

static void on_gate_back(struct alarm *a)
{
    gate_start(LIST_ENTRY(a, struct gate, back));
}

void gate_close(struct gate *g, int64_t back_us)
{
    if (back_us == 0)
        world_clear(g->w, &g->back);
    g->back_us = back_us;
    if (!g->web || g->closing)
        return;
    world_log(g->w, g->name, "is stopped");
    g->closing = true; /* which it sees when it runs */
    gate_wake(g);
}

void gate_kill(struct gate *g, int64_t back_us)
{
    if (!g->web)
        return;
    world_log(g->w, g->name, "is killed");
    gate_end_process(g);
    if (back_us > 0)
        world_set(g->w, &g->back, g->w->now + back_us);
}

void gate_cut(struct gate *g, bool silently)
{
    size_t i = (size_t)world_between(g->w, 0, GATE_CLIENTS - 1);
    for (size_t n = 0; n < GATE_CLIENTS; n++, i = (i + 1) % GATE_CLIENTS) {
        struct net_socket *s = g->clients[i].socket;
        if (!s || s->state != NET_OPEN)
            continue;
        world_log(g->w, g->name, "a connection is cut%s", silently ? " silently" : "");
        if (silently)
            net_forget(s);
        else
            net_reset(s);
        return;
    }
}

void gate_cut_off(struct gate *g, int64_t us)
{
    world_log(g->w, g->name, "is cut off for %lld ms", (long long)(us / MS));
    g->route.refuse_to = g->w->now + us;
    for (size_t i = 0; i < GATE_CLIENTS; i++)
        if (g->clients[i].socket && g->clients[i].socket->state == NET_OPEN)
            net_reset(g->clients[i].socket);
}

void gate_stall(struct gate *g, int64_t us)
{
    int64_t ways = world_between(g->w, 1, 3);
    world_log(g->w, g->name, "is half-open %s for %lld ms",
              ways == 1   ? "to the servers"
              : ways == 2 ? "from the servers"
                          : "both ways",
              (long long)(us / MS));
    for (int way = NET_UP; way <= NET_DOWN; way++)
        if (ways & (1 << way))
            g->route.stall_to[way] = g->w->now + us;
}

void gate_heal(struct gate *g)
{
    g->late_to = g->route.refuse_to = 0;
    g->route.stall_to[NET_UP] = g->route.stall_to[NET_DOWN] = 0;
}

void gate_init(struct gate *g, struct world *w, struct net *n, unsigned number)
{
    memset(g, 0, sizeof *g);
    g->w = w;
    g->net = n;
    g->number = number;
    snprintf(g->name, sizeof g->name, "gate%u", number);
    allocator_init(&g->allocator);
    clave__rand_seed(&g->rng, world_u64(w));
    list_init(&g->calls);
    for (size_t i = 0; i < GATE_CLIENTS; i++)
        g->clients[i].gate = g;
    memcpy(g->key, "the gates of this world", 23);
    g->env = (struct web_env){.arg = g,
                              .client_open = gate_client_open,
                              .client_free = gate_client_free,
                              .client_flush = gate_client_flush,
                              .answered = gate_answered,
                              .wake = gate_woken};
    g->run.fire = on_gate_run;
    g->timer.fire = on_gate_timer;
    g->resume.fire = on_gate_resume;
    g->back.fire = on_gate_back;
}

void gate_fini(struct gate *g)
{
    world_clear(g->w, &g->back);
    if (g->web)
        gate_end_process(g);
}
