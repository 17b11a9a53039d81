#include "http/http_balancer.h"

#include <stdio.h>
#include <string.h>

#include "http/http_copy.h"
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
    int64_t from = http_copy_from(c, false);
    if (from < 0)
        http_rule_broken(h->w, RULE_COPY_IS_TRUE, "%s says who leads by an old copy",
                         c->gate->name);
    if (c->gate->nservers == 1 && p && !http_place_held_since(p, from))
        http_rule_broken(h->w, RULE_COPY_IS_TRUE, "%s says that %s leads, %lld ms after its end",
                         c->gate->name, p->node, (long long)((from - p->gone) / MS));
}

/* A replica stood there at a moment, and did not lead all the time. */
static void balancer_judge_replica(const struct http_balancer *b, const struct http_call *c)
{
    const struct http_places *s = &b->of->places;
    const char *id = strstr(c->target, "?id=") + strlen("?id=");
    int64_t from = http_copy_from(c, false);
    bool stood = false;
    for (size_t i = 0; i < HTTP_PLACES && c->gate->nservers == 1; i++) {
        const struct http_place *p = &s->list[i];
        stood |= p->token != 0 && p->site == b->site && p->gone >= from && p->holds > from &&
                 strstr(p->node, id);
    }
    if (from < 0 || (c->gate->nservers == 1 && !stood))
        http_rule_broken(b->of->w, RULE_COPY_IS_TRUE, "%s says that %s follows the leader, %s",
                         c->gate->name, id, from < 0 ? "by an old copy" : "which it did not");
}

static void on_balancer_told(struct http_sender *s, struct http_call *c)
{
    struct http_balancer *b = LIST_ENTRY(s, struct http_balancer, sender);
    int64_t term = http_json_int(c->answer, "term");
    if (c->status != 200 || !b->of->server->server || checker_is_beyond(b->of->checker))
        return;
    if (http_call_is(c, "GET", "/v1/replica")) {
        balancer_judge_replica(b, c);
        return;
    }
    b->of->told.leads++;
    balancer_judge_term(b, c, term);
    balancer_judge_copy(b, c, term);
}

/* ---- who is in ------------------------------------------------------------------------------- */

/* At one gate, or on a server that stands alone: copies of an ensemble may lag by any time. */
static bool balancer_may_judge(const struct http_balancer *b)
{
    return (b->way == BALANCER_ONE_GATE || b->of->gates[0].nservers == 1) &&
           !checker_is_beyond(b->of->checker);
}

static void server_enters(struct balancer_server *s)
{
    struct http_balancer *b = s->of;
    s->in = true;
    b->ins++;
    world_log(b->of->w, "balancer", "takes %s in", s->id);
    for (size_t i = 0; i < BALANCER_SERVERS; i++)
        if (&b->servers[i] != s && b->servers[i].in && balancer_may_judge(b))
            http_rule_broken(b->of->w, RULE_ONE_IS_IN,
                             "%s is in beside %s, with a min_term of %lld", s->id, b->servers[i].id,
                             (long long)b->min_term_ms);
}

/* One candidate is checked as a replica, which nothing is sent to. */
static bool server_is_replica(const struct balancer_server *s)
{
    return s == &s->of->servers[BALANCER_SERVERS - 1];
}

static void server_checked(struct balancer_server *s, bool fine)
{
    s->passed = fine ? s->passed + 1 : 0;
    s->failed = fine ? 0 : s->failed + 1;
    if (!s->in && s->passed >= s->of->rise && !server_is_replica(s))
        server_enters(s);
    if (s->in && s->failed >= s->of->fall) {
        world_log(s->of->of->w, "balancer", "takes %s out", s->id);
        s->in = false;
    }
}

/* ---- its loop -------------------------------------------------------------------------------- */

static bool balancer_has(const struct http_balancer *b, const char *id)
{
    for (size_t i = 0; i < BALANCER_SERVERS; i++)
        if (strcmp(b->servers[i].id, id) == 0)
            return true;
    return false;
}

/* Whoever is out and does not stand there any more makes room for another one. */
static void server_choose(struct balancer_server *s)
{
    struct http_balancer *b = s->of;
    const struct http_places *places = &b->of->places;
    char other[CLAVE_UUID_TEXT + 1] = "";
    bool stands = false;
    for (size_t i = 0; i < places->nstanding; i++) {
        const char *at = strstr(places->standing[i]->node, "_c_");
        char id[CLAVE_UUID_TEXT + 1] = "";
        if (places->standing[i]->site != b->site || !at)
            continue;
        snprintf(id, sizeof id, "%s", at + strlen("_c_"));
        stands |= strcmp(id, s->id) == 0;
        if (!balancer_has(b, id))
            memcpy(other, id, sizeof other);
    }
    if (!s->in && !stands) {
        memcpy(s->id, other, sizeof s->id);
        s->passed = s->failed = 0;
    }
}

static struct gate *server_gate(const struct balancer_server *s)
{
    const struct http_balancer *b = s->of;
    struct http_world *h = b->of;
    if (b->way == BALANCER_ANY_GATE)
        return &h->gates[world_between(h->w, 0, (int64_t)h->ngates - 1)];
    return &h->gates[b->way == BALANCER_ONE_GATE ? 0 : (size_t)(s - b->servers) % h->ngates];
}

static void server_check(struct balancer_server *s)
{
    struct http_balancer *b = s->of;
    struct http_world *h = b->of;
    const char *path = http_site(h, b->site)->layout.path;
    bool alias = server_is_replica(s) || world_chance(h->w, 500);
    server_choose(s);
    s->checked_at = h->w->now;
    if (!s->id[0]) {
        if (!b->leaves)
            world_set(h->w, &s->alarm, h->w->now + b->inter_us);
        return;
    }
    struct http_call *c = http_call_new(&b->sender, server_gate(s), "GET");
    int n = snprintf(c->target, sizeof c->target, "/v1/%s%s?%s=%s",
                     server_is_replica(s) ? "replica"
                     : alias              ? "leader"
                                          : "elections",
                     path, alias ? "id" : "leads", s->id);
    if (!server_is_replica(s))
        snprintf(c->target + n, sizeof c->target - (size_t)n, "&min_term=%lldms",
                 (long long)b->min_term_ms);
    s->call = c;
    http_tell(h->w, b->sender.name, c, "asks", "");
    http_call_send(c, gate_delay(c->gate));
    world_set(h->w, &s->alarm, h->w->now + b->check_us); /* no longer than that it waits */
}

static void server_run(struct balancer_server *s)
{
    struct http_balancer *b = s->of;
    struct http_call *c = s->call;
    s->call = NULL;
    if (!c) {
        server_check(s);
        return;
    }
    server_checked(s, s->has_answer && c->status == 200);
    if (s->has_answer) {
        http_tell(b->of->w, b->sender.name, c, "is answered by", c->answer);
        http_call_drop(c);
    } else {
        http_call_give_up(c, gate_delay(c->gate));
    }
    if (!b->leaves)
        world_set(b->of->w, &s->alarm, s->checked_at + b->inter_us);
}

static void on_server(struct alarm *a)
{
    struct balancer_server *s = LIST_ENTRY(a, struct balancer_server, alarm);
    struct rand_state *before = world_use_rng(s->of->of->w, &s->of->rng);
    server_run(s);
    s->has_answer = false;
    world_use_rng(s->of->of->w, before);
}

static void on_balancer_hears(struct http_sender *sender, struct http_call *c)
{
    struct http_balancer *b = LIST_ENTRY(sender, struct http_balancer, sender);
    for (size_t i = 0; i < BALANCER_SERVERS; i++)
        if (b->servers[i].call == c) {
            b->servers[i].has_answer = true;
            world_set(b->of->w, &b->servers[i].alarm, b->of->w->now);
        }
}

/* ---- its life -------------------------------------------------------------------------------- */

/* docs/guide/elections.md, "min_term keeps the balancer from having two up at once". */
static int64_t balancer_min_term_us(const struct http_balancer *b)
{
    int64_t longest = b->inter_us > b->check_us ? b->inter_us : b->check_us;
    int64_t out = b->fall * longest + b->check_us;
    int64_t in = (b->rise - 1) * b->inter_us - b->check_us;
    int64_t least = out - (in > 0 ? in : 0);
    if (b->way != BALANCER_ONE_GATE)
        least += 2 * SECOND;
    return (least > 0 ? least : 0) * (BALANCER_CLOCKS + 1) / BALANCER_CLOCKS + MS;
}

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
    b->clock = world_clock(w);
    b->way = (enum balancer_way)world_between(w, 0, of->ngates > 1 ? BALANCER_WAYS - 1 : 0);
    b->inter_us = world_between(w, of->timeout_us / 200, of->timeout_us / 16);
    b->check_us = world_between(w, of->timeout_us / 200, of->timeout_us / 16);
    b->rise = (unsigned)world_between(w, 1, 3);
    b->fall = (unsigned)world_between(w, 1, 3);
    b->min_term_ms = balancer_min_term_us(b) / MS + 1;
    for (size_t i = 0; i < BALANCER_SERVERS; i++) {
        b->servers[i].of = b;
        b->servers[i].alarm.fire = on_server;
    }
    world_use_rng(w, before);
}

void http_balancer_start(struct http_balancer *b)
{
    for (size_t i = 0; i < BALANCER_SERVERS && b->of; i++)
        world_set(b->of->w, &b->servers[i].alarm,
                  b->of->w->now + b->inter_us * (int64_t)(i + 1) / BALANCER_SERVERS);
}

void http_balancer_finish(struct http_balancer *b)
{
    b->leaves = true;
    for (size_t i = 0; i < BALANCER_SERVERS && b->of; i++)
        if (!b->servers[i].call)
            world_clear(b->of->w, &b->servers[i].alarm);
}

void http_balancer_fini(struct http_balancer *b)
{
    for (size_t i = 0; i < BALANCER_SERVERS && b->of; i++) {
        world_clear(b->of->w, &b->servers[i].alarm);
        if (b->servers[i].call)
            http_call_give_up(b->servers[i].call, -1);
        b->servers[i].call = NULL;
    }
}
