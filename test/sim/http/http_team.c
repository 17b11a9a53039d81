#include "http/http_team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rand.h"
#include "http/http_world.h"

static int64_t team_clock(const struct http_team *t)
{
    return clock_ms(&t->clock, t->w->now);
}

/* ---- the balancer ---------------------------------------------------------------------------- */

static struct gate *team_gate(struct http_team *t)
{
    if (t->of->ngates > 1 && !world_chance(t->w, t->sticky))
        t->gate = (size_t)world_between(t->w, 0, (int64_t)t->of->ngates - 1);
    return &t->of->gates[t->gate];
}

static void team_route(struct http_team *t, struct http_call *c)
{
    struct world *w = t->w;
    int64_t us = gate_delay(c->gate);
    if (world_chance(w, t->late))
        us += world_between(w, 0, t->ttl_ms * MS);
    c->loss = t->loss;
    http_call_send(c, world_chance(w, t->loss) ? -1 : us);
    if (world_chance(w, t->twice))
        http_call_repeat(c, team_gate(t), us + world_wait(w, t->ttl_ms * MS / 4));
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void worker_wake_in(struct team_worker *k, int64_t us)
{
    world_set(k->team->w, &k->alarm, k->team->w->now + us);
}

static void worker_body(struct team_worker *k, struct http_call *c)
{
    struct http_team *t = k->team;
    if (strcmp(k->target, "/v1/sessions") == 0) {
        snprintf(c->body, sizeof c->body, "{\"ttl_ms\": %lld, \"name\": \"%s\"}",
                 (long long)t->ttl_ms, t->name);
    } else if (strcmp(k->target, "/v1/claims") == 0) {
        const char *body = http_site(t->of, k->site)->body;
        c->number = ++t->of->told.requests;
        snprintf(c->body, sizeof c->body, "{\"name\": \"rq%llu\", %s",
                 (unsigned long long)c->number, body + 1);
    }
    if (c->body[0])
        http_call_header(c, "Content-Type", "application/json");
}

static int64_t worker_limit(const struct team_worker *k)
{
    const char *wait = strchr(k->prefer, '=');
    return k->team->ttl_ms + (wait ? atoll(wait + 1) * 1000 : 0);
}

static void worker_send(struct team_worker *k)
{
    struct http_team *t = k->team;
    struct http_call *c = http_call_new(&t->sender, team_gate(t), k->method);
    snprintf(c->target, sizeof c->target, "%s", k->target);
    if (t->secret[0])
        http_call_header(c, "Clave-Session", t->secret);
    if (k->key[0])
        http_call_header(c, "Idempotency-Key", k->key);
    if (k->prefer[0])
        http_call_header(c, "Prefer", k->prefer);
    if (k->guard[0]) {
        const char *token = strchr(k->guard, '=');
        c->number = http_told_write(t->of, k->site, atoll(token + 1));
        snprintf(c->target, sizeof c->target, "/v1/znodes" HTTP_WRITES_PATH "/w%llu?mode=ephemeral",
                 (unsigned long long)c->number);
        http_call_header(c, "Clave-Guard", k->guard);
    }
    worker_body(k, c);
    c->sent_ms = team_clock(t);
    k->call = c;
    k->again = false;
    k->limit_ms = c->sent_ms + worker_limit(k);
    t->asked++;
    http_tell(t->w, t->name, c, "asks", "");
    team_route(t, c);
    world_set(t->w, &k->alarm, clock_when(&t->clock, k->limit_ms));
}

static void worker_ask(struct team_worker *k, const char *method, const char *where,
                       const char *what)
{
    k->method = method;
    k->key[0] = k->prefer[0] = k->guard[0] = '\0';
    snprintf(k->target, sizeof k->target, "%s%s", where, what);
}

/* The first worker does not wait for long: it keeps the session. */
static void worker_prefer(struct team_worker *k)
{
    struct world *w = k->team->w;
    bool brief = k == &k->team->workers[0];
    int64_t dice = world_between(w, 0, 9);
    if (dice < 3)
        snprintf(k->prefer, sizeof k->prefer, "wait=0");
    else if (dice < 7 && !brief)
        snprintf(k->prefer, sizeof k->prefer, "wait=%lld",
                 (long long)world_between(w, 1, 1 + 2 * k->team->ttl_ms / 1000));
}

/* Of no owner, or of one of two, whose places are beside each other. */
static void key_own(struct world *w, char *key)
{
    bool owned = world_chance(w, 200);
    key[14] = owned ? '8' : '4';
    if (owned)
        snprintf(key + 24, 13, "00000000000%d", (int)world_between(w, 0, 1));
}

/* With the key of before, with another one, or with none. */
static void worker_claim(struct team_worker *k)
{
    struct http_team *t = k->team;
    char *key = t->keys[k->site];
    int64_t dice = world_between(t->w, 0, 99);
    worker_ask(k, "POST", "/v1/claims", "");
    worker_prefer(k);
    if (dice < 15)
        return;
    if (key[0] == '\0' || dice < 30) {
        clave__rand_uuid(&t->rng, key);
        key_own(t->w, key);
    }
    snprintf(k->key, sizeof k->key, "%s", key);
}

static void worker_release(struct team_worker *k)
{
    char *key = k->team->keys[k->site];
    worker_ask(k, "DELETE", "/v1/claims/", key);
    if (world_chance(k->team->w, 800))
        key[0] = '\0';
}

/* Of anybody who stands there or has gone, so that it is a waiter's now and then. */
static int64_t worker_token(struct team_worker *k)
{
    const struct http_places *s = &k->team->of->places;
    if (s->nstanding > 0 && world_chance(k->team->w, 800)) {
        const struct http_place *p =
            s->standing[world_between(k->team->w, 0, (int64_t)s->nstanding - 1)];
        k->site = p->site;
        return p->token;
    }
    return s->newest;
}

static void worker_write(struct team_worker *k)
{
    int64_t token = worker_token(k);
    if (world_chance(k->team->w, 50) || token == 0) {
        worker_ask(k, "POST", "/v1/znodes", HTTP_WRITES_PATH);
        return;
    }
    worker_ask(k, "POST", "/v1/znodes", HTTP_WRITES_PATH);
    snprintf(k->guard, sizeof k->guard, "%s;token=%lld",
             http_site(k->team->of, k->site)->layout.path, (long long)token);
}

static void worker_ask_token(struct team_worker *k)
{
    char what[96];
    int64_t token = worker_token(k);
    snprintf(what, sizeof what, "%s?token=%lld", http_site(k->team->of, k->site)->layout.path,
             (long long)(token ? token : 1));
    worker_ask(k, "GET", "/v1/locks", what);
}

/* Who holds it, or all: from the gate's copy, or after the servers were asked. */
static void worker_look(struct team_worker *k)
{
    const struct lock_layout *at = &http_site(k->team->of, k->site)->layout;
    bool election = at->kind == LOCK_LATCH;
    bool list = world_chance(k->team->w, 300), fresh = world_chance(k->team->w, 300);
    worker_ask(k, "GET", election ? "/v1/elections" : "/v1/locks",
               list ? "?prefix=/http" : at->path);
    if (fresh && list)
        strcat(k->target, "&fresh");
    else if (fresh)
        strcat(k->target, "?fresh");
}

static void worker_renew(struct team_worker *k)
{
    char what[48];
    snprintf(what, sizeof what, "%s/renew", k->team->session);
    worker_ask(k, "POST", "/v1/sessions/", what);
}

static void worker_sign(struct team_worker *k)
{
    char what[64];
    snprintf(what, sizeof what, "%s/alive", k->team->keys[k->site]);
    worker_ask(k, "POST", "/v1/claims/", what);
}

static void worker_choose(struct team_worker *k)
{
    struct http_team *t = k->team;
    int64_t dice = world_between(t->w, 0, 99);
    k->site = (unsigned)world_between(t->w, 0, HTTP_SITES - 1);
    bool known = t->keys[k->site][0] != '\0';
    if (known && http_site(t->of, k->site)->depend_ms > 0 && world_chance(t->w, 400)) {
        worker_sign(k);
        return;
    }
    if (dice < 10 || team_clock(t) >= t->renew_at)
        worker_renew(k);
    else if (dice < 20)
        worker_ask(k, "GET", "/v1/sessions/", t->session);
    else if (dice < 50 || (dice < 78 && !known))
        worker_claim(k);
    else if (dice < 68) {
        worker_ask(k, "GET", "/v1/claims/", t->keys[k->site]);
        worker_prefer(k);
    } else if (dice < 78)
        worker_release(k);
    else if (dice < 79)
        worker_ask(k, "DELETE", "/v1/sessions/", t->session);
    else if (dice < 84)
        worker_ask_token(k);
    else if (dice < 90)
        worker_look(k);
    else
        worker_write(k);
}

/* ---- its evening ----------------------------------------------------------------------------- */

/* It renews all the time: what it may hold no longer must have gone all the same. But for a place
 * that no gate knows any more: nobody looks for it as long as its session lives. */
static void team_look_for_barred(struct http_team *t)
{
    const struct http_places *s = &t->of->places;
    int64_t since = t->stays_to - http_team_stay_us(t->of);
    for (size_t i = 0; i < s->nstanding; i++) {
        const struct http_place *p = s->standing[i];
        bool all = p->session == t->sender.session && p->session != 0 &&
                   p->named_at > (since + t->stays_to) / 2;
        for (size_t k = 0; k < t->of->ngates; k++)
            all &= t->of->roles[k].took_at[p->site] <= since &&
                   p->told_at < t->of->roles[k].took_at[p->site];
        if (all)
            http_rule_broken(t->w, RULE_ROLE_LEAVES, "%s stands, renewed for %lld ms since",
                             p->node, (long long)((t->w->now - since) / MS));
    }
}

static void team_leave(struct team_worker *k)
{
    struct http_team *t = k->team;
    if (k != &t->workers[0])
        return;
    if (t->secret[0] && t->w->now < t->stays_to) {
        worker_renew(k);
        worker_send(k);
        return;
    }
    if (t->stays_to > 0 && t->secret[0])
        team_look_for_barred(t);
    t->stays_to = 0;
    t->gone = t->secret[0] == '\0';
    if (t->gone)
        return;
    worker_ask(k, "DELETE", "/v1/sessions/", t->session);
    worker_send(k);
}

/* ---- what it hears --------------------------------------------------------------------------- */

static void team_out(struct http_team *t, const struct http_call *c)
{
    if (c->session != t->sender.session || !t->secret[0])
        return;
    world_log(t->w, t->name, "has no session any more");
    t->secret[0] = '\0';
    t->sender.session = 0;
    memset(t->keys, 0, sizeof t->keys);
}

static void team_enter(struct http_team *t, const struct http_call *c)
{
    if (t->secret[0])
        return; /* a worker that was quicker made one: this one ends by silence */
    http_json(c->answer, "id", t->session, sizeof t->session);
    http_json(c->answer, "secret", t->secret, sizeof t->secret);
    t->ttl_ms = http_json_int(c->answer, "ttl_ms");
    t->sender.session = atoll(t->session);
    t->renew_at = c->sent_ms + t->ttl_ms / 3;
    world_log(t->w, t->name, "has session 0x%llx", (unsigned long long)t->sender.session);
}

static void worker_heard(struct team_worker *k, const struct http_call *c)
{
    struct http_team *t = k->team;
    bool ended = http_call_has_no_session(c);
    if (c->status == 201 && http_call_is(c, "POST", "/v1/sessions"))
        team_enter(t, c);
    else if (ended || (c->status == 204 && http_call_is(c, "DELETE", "/v1/sessions/")))
        team_out(t, c);
    else if (c->status == 200 && http_call_is(c, "POST", "/v1/sessions/"))
        t->renew_at = c->sent_ms + t->ttl_ms / 3;
    else if (c->status < 300 && strcmp(c->target, "/v1/claims") == 0 &&
             c->session == t->sender.session)
        http_json(c->answer, "id", t->keys[k->site], sizeof t->keys[k->site]);
    k->again = (c->status == 0 || c->status >= 500) && world_chance(t->w, 700);
}

/* ---- the loop of a worker -------------------------------------------------------------------- */

static void worker_next(struct team_worker *k)
{
    struct http_team *t = k->team;
    if (t->leaves) {
        team_leave(k);
        return;
    }
    if (!t->secret[0]) {
        if (k != &t->workers[0]) {
            worker_wake_in(k, world_wait(t->w, t->rest_us));
            return;
        }
        worker_ask(k, "POST", "/v1/sessions", "");
    } else if (!k->again || strcmp(k->target, "/v1/sessions") == 0) {
        worker_choose(k);
    }
    worker_send(k);
}

static void worker_run(struct team_worker *k)
{
    struct http_team *t = k->team;
    struct http_call *c = k->call;
    if (!c) {
        worker_next(k);
        return;
    }
    if (k->has_answer) {
        k->call = NULL;
        k->has_answer = false;
        http_tell(t->w, t->name, c, "is answered by", c->answer);
        worker_heard(k, c);
        http_call_drop(c);
    } else if (team_clock(t) >= k->limit_ms) {
        k->call = NULL;
        http_call_give_up(c, world_chance(t->w, 700) ? gate_delay(c->gate) : t->ttl_ms * MS);
        k->again = world_chance(t->w, 700);
    } else {
        return;
    }
    if (!t->gone)
        worker_wake_in(k, world_wait(t->w, t->rest_us));
}

static void on_worker(struct alarm *a)
{
    struct team_worker *k = LIST_ENTRY(a, struct team_worker, alarm);
    struct rand_state *before = world_use_rng(k->team->w, &k->team->rng);
    worker_run(k);
    world_use_rng(k->team->w, before);
}

static void on_team_hears(struct http_sender *s, struct http_call *c)
{
    struct http_team *t = LIST_ENTRY(s, struct http_team, sender);
    for (size_t i = 0; i < TEAM_WORKERS; i++)
        if (t->workers[i].call == c) {
            t->workers[i].has_answer = true;
            worker_wake_in(&t->workers[i], 0);
        }
}

/* ---- its life -------------------------------------------------------------------------------- */

static void team_hang_up(struct http_team *t)
{
    for (size_t i = 0; i < TEAM_WORKERS; i++) {
        struct team_worker *k = &t->workers[i];
        world_clear(t->w, &k->alarm);
        if (k->call)
            http_call_give_up(k->call, gate_delay(k->call->gate));
        k->call = NULL;
    }
}

void http_team_finish(struct http_team *t, bool vanish)
{
    t->leaves = true;
    t->loss = t->late = t->twice = 0;
    t->gone = vanish;
    if (vanish) {
        world_log(t->w, t->name, "vanishes");
        team_hang_up(t);
        return;
    }
    t->stays_to = t->w->now + http_team_stay_us(t->of);
    if (!t->workers[0].call)
        worker_wake_in(&t->workers[0], 0);
}

void http_team_start(struct http_team *t)
{
    for (size_t i = 0; i < TEAM_WORKERS; i++)
        worker_wake_in(&t->workers[i], world_wait(t->w, t->rest_us));
}

void http_team_init(struct http_team *t, struct http_world *of)
{
    struct world *w = of->w;
    *t = (struct http_team){.w = w, .of = of};
    snprintf(t->name, sizeof t->name, "team");
    clave__rand_seed(&t->rng, world_u64(w));
    t->sender = (struct http_sender){.of = of,
                                     .name = t->name,
                                     .clock = &t->clock,
                                     .token = "Bearer of-the-team-00001",
                                     .hears = on_team_hears};
    for (size_t i = 0; i < TEAM_WORKERS; i++) {
        t->workers[i].team = t;
        t->workers[i].alarm.fire = on_worker;
    }
    t->sticky = world_chance(w, 500) ? 0 : 950;
    t->loss = (unsigned)(world_chance(w, 300) ? 0 : world_between(w, 1, 100));
    t->twice = (unsigned)(world_chance(w, 300) ? 0 : world_between(w, 1, 80));
    t->late = (unsigned)(world_chance(w, 300) ? 0 : world_between(w, 1, 80));
    t->ttl_ms = world_between(w, of->timeout_us / MS / 2, 2 * of->timeout_us / MS);
    t->rest_us = world_between(w, of->timeout_us / 100, of->timeout_us / 8);
}

void http_team_fini(struct http_team *t)
{
    for (size_t i = 0; i < TEAM_WORKERS; i++) {
        world_clear(t->w, &t->workers[i].alarm);
        if (t->workers[i].call)
            http_call_give_up(t->workers[i].call, -1);
        t->workers[i].call = NULL;
    }
}
