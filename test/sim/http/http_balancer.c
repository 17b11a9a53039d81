#include "http/http_balancer.h"

#include <stdio.h>
#include <string.h>

#include "base/rand.h"
#include "http/http_world.h"

/* Clocks of gates are off by less than 1 in BALANCER_CLOCKS. */
enum { BALANCER_CLOCKS = 64 };

/* ---- what the gates answer ------------------------------------------------------------------- */

static void balancer_judge_term(struct http_balancer *b, const struct http_call *c, int64_t term)
{
    const struct world *w = b->of->w;
    int64_t *of = &b->last[c->gate->number].term, *at = &b->last[c->gate->number].at;
    int64_t least = b->min_term_ms * (MS - MS / BALANCER_CLOCKS);
    if (*of != 0 && *of != term && w->now - *at < least)
        http_rule_broken(b->of->w, RULE_MIN_TERM, "%s says that %lld leads, %lld ms after %lld",
                         c->gate->name, (long long)term, (long long)((w->now - *at) / MS),
                         (long long)*of);
    *of = term;
    *at = c->sent_at;
}

/* That of an ensemble follows one member, which may be behind. */
static void balancer_judge_copy(struct http_balancer *b, const struct http_call *c, int64_t term)
{
    struct http_world *h = b->of;
    const struct http_place *p = http_place_find(h, b->site, term);
    int64_t from =
        c->sent_at - http_json_int(c->answer, "age_ms") * MS - 2 * MS - h->timeout_us / 32;
    if (!strstr(c->answer, "\"current\": true"))
        http_rule_broken(h->w, RULE_COPY_IS_TRUE, "%s says who leads by an old copy",
                         c->gate->name);
    if (c->gate->nservers == 1 && p && !http_place_held_since(p, from))
        http_rule_broken(h->w, RULE_COPY_IS_TRUE, "%s says that %s leads, %lld ms after its end",
                         c->gate->name, p->node, (long long)((from - p->gone) / MS));
}

static void on_balancer_told(struct http_sender *s, struct http_call *c)
{
    struct http_balancer *b = LIST_ENTRY(s, struct http_balancer, sender);
    int64_t term = http_json_int(c->answer, "term");
    if (c->status != 200 || !b->of->server->server || checker_is_beyond(b->of->checker))
        return;
    b->of->told.leads++;
    balancer_judge_term(b, c, term);
    balancer_judge_copy(b, c, term);
}

/* ---- its loop -------------------------------------------------------------------------------- */

static void balancer_rest(struct http_balancer *b)
{
    if (!b->leaves)
        world_set(b->of->w, &b->alarm, b->of->w->now + world_wait(b->of->w, b->rest_us));
}

/* One of those who stand there, by the id of its claim. false: there is none. */
static bool balancer_choose(struct http_balancer *b, char id[CLAVE_UUID_TEXT + 1])
{
    const struct http_places *s = &b->of->places;
    const struct http_place *p = NULL;
    for (size_t i = 0, n = 0; i < s->nstanding; i++)
        if (s->standing[i]->site == b->site && world_between(b->of->w, 0, (int64_t)n++) == 0)
            p = s->standing[i];
    const char *at = p ? strstr(p->node, "_c_") : NULL;
    snprintf(id, CLAVE_UUID_TEXT + 1, "%s", at ? at + 3 : "");
    return at != NULL;
}

static void balancer_ask(struct http_balancer *b)
{
    struct http_world *h = b->of;
    char id[CLAVE_UUID_TEXT + 1];
    const char *path = http_site(h, b->site)->layout.path;
    bool alias = world_chance(h->w, 500);
    if (!balancer_choose(b, id)) {
        balancer_rest(b);
        return;
    }
    struct gate *g = &h->gates[world_between(h->w, 0, (int64_t)h->ngates - 1)];
    struct http_call *c = http_call_new(&b->sender, g, "GET");
    snprintf(c->target, sizeof c->target, "/v1/%s%s?%s=%s&min_term=%lldms",
             alias ? "leader" : "elections", path, alias ? "id" : "leads", id,
             (long long)b->min_term_ms);
    b->call = c;
    http_tell(h->w, b->sender.name, c, "asks", "");
    http_call_send(c, gate_delay(g));
    world_set(h->w, &b->alarm, h->w->now + h->timeout_us / 2); /* no longer than that it waits */
}

static void balancer_run(struct http_balancer *b)
{
    struct http_call *c = b->call;
    b->call = NULL;
    if (!c) {
        balancer_ask(b);
        return;
    }
    if (b->has_answer) {
        http_tell(b->of->w, b->sender.name, c, "is answered by", c->answer);
        http_call_drop(c);
    } else {
        http_call_give_up(c, gate_delay(c->gate));
    }
    balancer_rest(b);
}

static void on_balancer(struct alarm *a)
{
    struct http_balancer *b = LIST_ENTRY(a, struct http_balancer, alarm);
    struct rand_state *before = world_use_rng(b->of->w, &b->rng);
    balancer_run(b);
    b->has_answer = false;
    world_use_rng(b->of->w, before);
}

static void on_balancer_hears(struct http_sender *s, struct http_call *c)
{
    struct http_balancer *b = LIST_ENTRY(s, struct http_balancer, sender);
    if (c != b->call)
        return;
    b->has_answer = true;
    world_set(b->of->w, &b->alarm, b->of->w->now);
}

/* ---- its life -------------------------------------------------------------------------------- */

void http_balancer_init(struct http_balancer *b, struct http_world *of)
{
    struct world *w = of->w;
    *b = (struct http_balancer){0};
    for (unsigned i = 0; i < HTTP_SITES && of->nusers > 0; i++)
        if (of->sites[i].layout.kind == LOCK_LATCH) {
            b->of = of;
            b->site = i;
        }
    if (!b->of)
        return;
    /* Numbers of its own, so that the others of the world draw the same ones as without it. */
    clave__rand_seed(&b->rng, w->seed ^ 0x62616c);
    struct rand_state *before = world_use_rng(w, &b->rng);
    b->sender = (struct http_sender){.of = of,
                                     .name = "balancer",
                                     .clock = &b->clock,
                                     .token = of->users[0].sender.token,
                                     .hears = on_balancer_hears,
                                     .told = on_balancer_told};
    b->alarm.fire = on_balancer;
    b->clock = world_clock(w);
    b->min_term_ms = world_between(w, 1, 2 * of->timeout_us / MS);
    b->rest_us = world_between(w, of->timeout_us / 100, of->timeout_us / 4);
    world_use_rng(w, before);
}

void http_balancer_start(struct http_balancer *b)
{
    if (b->of)
        world_set(b->of->w, &b->alarm, b->of->w->now + b->rest_us);
}

void http_balancer_finish(struct http_balancer *b)
{
    b->leaves = true;
    if (b->of && !b->call)
        world_clear(b->of->w, &b->alarm);
}

void http_balancer_fini(struct http_balancer *b)
{
    if (!b->of)
        return;
    world_clear(b->of->w, &b->alarm);
    if (b->call)
        http_call_give_up(b->call, -1);
    b->call = NULL;
}
