#include "http/http_caller.h"

#include "base/rand.h"
#include "http/http_world.h"

void http_caller_wake_in(struct http_caller *c, int64_t us)
{
    world_set(c->of->w, &c->alarm, c->of->w->now + us);
}

struct gate *http_caller_gate(struct http_caller *c)
{
    return &c->of->gates[world_between(c->of->w, 0, (int64_t)c->of->ngates - 1)];
}

static void caller_rest(struct http_caller *c)
{
    if (!c->gone)
        http_caller_wake_in(c, world_wait(c->of->w, c->rest_us));
}

static void caller_ask(struct http_caller *c)
{
    struct world *w = c->of->w;
    c->alone = c->sender.open == 0;
    struct http_call *call = c->kind->asks(c);
    if (!call) {
        caller_rest(c);
        return;
    }
    c->call = call;
    call->sent_ms = clock_ms(&c->clock, w->now);
    http_tell(w, c->name, call, "asks", call->body);
    int64_t us = gate_delay(call->gate);
    if (world_chance(w, c->half_open))
        us = world_chance(w, 300) ? -1 : us + world_between(w, 0, c->patience_us);
    call->loss = c->half_open;
    http_call_send(call, us);
    c->limit_us = w->now + world_between(w, c->patience_us / 4, c->patience_us);
    world_set(w, &c->alarm, c->limit_us);
}

static void caller_run(struct http_caller *c)
{
    struct world *w = c->of->w;
    struct http_call *call = c->call;
    if (!call) {
        caller_ask(c);
        return;
    }
    if (!c->has_answer && w->now < c->limit_us)
        return;
    c->call = NULL;
    if (c->has_answer) {
        c->has_answer = false;
        http_tell(w, c->name, call, "is answered by", call->answer);
        c->kind->hears(c, call);
        http_call_drop(call);
    } else {
        http_tell(w, c->name, call, "gives up", "");
        bool half_open = world_chance(w, 3 * c->half_open);
        http_call_give_up(call, half_open ? c->patience_us : gate_delay(call->gate));
    }
    caller_rest(c);
}

static void on_caller(struct alarm *a)
{
    struct http_caller *c = LIST_ENTRY(a, struct http_caller, alarm);
    struct rand_state *before = world_use_rng(c->of->w, &c->rng);
    caller_run(c);
    world_use_rng(c->of->w, before);
}

static void on_caller_hears(struct http_sender *s, struct http_call *call)
{
    struct http_caller *c = LIST_ENTRY(s, struct http_caller, sender);
    if (call != c->call)
        return;
    c->has_answer = true;
    http_caller_wake_in(c, 0);
}

static void on_caller_told(struct http_sender *s, struct http_call *call)
{
    struct http_caller *c = LIST_ENTRY(s, struct http_caller, sender);
    c->kind->told(c, call);
}

void http_caller_vanish(struct http_caller *c)
{
    c->gone = true;
    world_clear(c->of->w, &c->alarm);
    if (c->call)
        http_call_give_up(c->call, gate_delay(c->call->gate));
    c->call = NULL;
}

void http_caller_init(struct http_caller *c, struct http_world *of, uint64_t salt)
{
    c->of = of;
    clave__rand_seed(&c->rng, of->w->seed ^ salt);
    c->sender = (struct http_sender){.of = of,
                                     .name = c->name,
                                     .clock = &c->clock,
                                     .hears = on_caller_hears,
                                     .told = on_caller_told};
    c->alarm.fire = on_caller;
}

void http_caller_fini(struct http_caller *c)
{
    world_clear(c->of->w, &c->alarm);
    if (c->call)
        http_call_give_up(c->call, -1);
    c->call = NULL;
}
