#include "http/http_fleet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "http/http_world.h"
#include "inspector.h"
#include "server/server_internal.h"

#define FLEET_SLOTS FLEET_PATH "/" FLEET_GROUP

/* ---- what stands at the servers -------------------------------------------------------------- */

static struct machine_slot *machine_newest(struct machine *m)
{
    return m->npast > 0 ? &m->past[(m->npast - 1) % MACHINE_PAST] : NULL;
}

static struct machine_slot *machine_find(struct machine *m, int64_t token)
{
    for (size_t i = 0; i < MACHINE_PAST; i++)
        if (m->past[i].token == token && token != 0)
            return &m->past[i];
    return NULL;
}

/* It owned one at a moment from then on. */
static bool machine_owned_since(const struct machine *m, int64_t at)
{
    for (size_t i = 0; i < MACHINE_PAST; i++)
        if (m->past[i].token != 0 && m->past[i].gone >= at)
            return true;
    return false;
}

/* What it owns; 0: nothing. */
static int64_t machine_owns(struct machine *m)
{
    const struct machine_slot *s = machine_newest(m);
    return s && s->gone == HTTP_NEVER ? s->token : 0;
}

static void machine_judge_certain(struct machine *m)
{
    int64_t owns = machine_owns(m);
    if (!m->certain || owns == m->token)
        return;
    if (m->token != 0 && owns == 0)
        http_rule_broken(m->fleet->w, RULE_SLOT_STAYS,
                         "%s owned slot %lld, and nobody gave it back", m->id, (long long)m->token);
    else
        http_rule_broken(m->fleet->w, RULE_SLOT_OVER,
                         "%s has slot %lld by what was asked for before", m->id, (long long)owns);
}

static void machine_note(struct machine *m, int64_t token)
{
    struct machine_slot *s = machine_newest(m);
    if (s && s->gone == HTTP_NEVER && s->token != token)
        s->gone = m->fleet->w->now;
    if (token == 0 || (s && s->token == token && s->gone == HTTP_NEVER))
        return;
    s = machine_find(m, token);
    if (!s) { /* else it is back after a crash of the server */
        if (machine_newest(m) && token < machine_newest(m)->token)
            http_rule_broken(m->fleet->w, RULE_SLOT_TOKENS, "%s has slot %lld after %lld", m->id,
                             (long long)token, (long long)machine_newest(m)->token);
        s = &m->past[m->npast++ % MACHINE_PAST];
        *s = (struct machine_slot){.token = token};
    }
    s->gone = HTTP_NEVER;
}

static const struct node *fleet_find(const struct http_fleet *f, const char *path)
{
    return clave__tree_find(&f->of->server->server->tree, clave__jbytes(path));
}

/* As Curator's SharedCount: four bytes, the highest first. */
static int64_t fleet_limit(const struct node *n)
{
    struct jbytes data = clave__node_data(n);
    int64_t limit = 0;
    for (int i = 0; data.n == 4 && i < 4; i++)
        limit = limit << 8 | (uint8_t)data.p[i];
    return limit;
}

/* Each slot that was taken since the limit was set had room. */
static void fleet_judge_room(struct http_fleet *f)
{
    const struct node *limit = fleet_find(f, FLEET_SLOTS "/limit");
    int64_t tokens[FLEET_MACHINES] = {0};
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) {
        tokens[n] = machine_owns(&f->machines[i]);
        n += tokens[n] != 0;
    }
    for (size_t i = 0; i < n && limit; i++) {
        int64_t before = 0;
        for (size_t k = 0; k < n; k++)
            before += tokens[k] < tokens[i];
        if (tokens[i] > limit->stat.mzxid && before >= fleet_limit(limit))
            http_rule_broken(f->w, RULE_SLOT_ROOM, "slot %lld is number %lld of %lld",
                             (long long)tokens[i], (long long)before + 1,
                             (long long)fleet_limit(limit));
    }
}

void http_fleet_look(struct http_fleet *f)
{
    if (f->n == 0)
        return;
    int64_t zxid = inspector_zxid(f->of->server);
    if (zxid == f->seen_zxid && f->seen_start == f->of->server->stats.starts)
        return;
    f->seen_zxid = zxid;
    f->seen_start = f->of->server->stats.starts;
    for (size_t i = 0; i < f->n; i++) {
        char path[PATH_SIZE];
        snprintf(path, sizeof path, FLEET_SLOTS "/owners/slot-%s", f->machines[i].id);
        const struct node *n = fleet_find(f, path);
        machine_note(&f->machines[i], n ? n->stat.czxid : 0);
        machine_judge_certain(&f->machines[i]);
    }
    fleet_judge_room(f);
}

/* ---- what the gates tell --------------------------------------------------------------------- */

static bool machine_call_takes(const struct http_call *c)
{
    return http_call_is(c, "POST", "/v1/pre-reboot") || http_call_is(c, "POST", "/v1/claims");
}

static bool machine_call_gives(const struct http_call *c)
{
    return http_call_is(c, "POST", "/v1/steady-state") || http_call_is(c, "DELETE", "/v1/claims/");
}

/* "held", or 200 to a take of FleetLock, which knows no tokens. */
static void machine_told_owned(struct machine *m, const struct http_call *c)
{
    int64_t token = http_json_int(c->answer, "token");
    struct machine_slot *s = token > 0 ? machine_find(m, token) : machine_newest(m);
    if (token > 0 ? !s || s->gone < c->sent_at : !machine_owned_since(m, c->sent_at))
        http_rule_broken(m->fleet->w, RULE_HELD_IS_TRUE, "%s tells %s (%s) that it owns slot %lld",
                         c->gate->name, m->id, c->target, (long long)token);
    if (token > 0 && token < (int64_t)c->number)
        http_rule_broken(m->fleet->w, RULE_SLOT_TOKENS, "%s is told of slot %lld, after %lld",
                         m->id, (long long)token, (long long)c->number);
    if (s && s->told_at == 0)
        s->told_at = m->fleet->w->now;
}

/* A gate hears within the time of its own session that another one took the slot for which it
 * waits. */
enum { FLEET_NEWS_US = 12 * SECOND };

/* Given back, or not owned, or there is no room for it: not so if it stood all the time. */
static void machine_told_none(struct machine *m, const struct http_call *c, const char *what,
                              int64_t news_us)
{
    const struct machine_slot *s = machine_newest(m);
    if (s && s->gone == HTTP_NEVER && s->told_at > 0 && s->told_at + news_us <= c->sent_at)
        http_rule_broken(m->fleet->w, RULE_OVER_IS_TRUE,
                         "%s tells %s (%s) that it %s, and it owns %lld", c->gate->name, m->id,
                         c->target, what, (long long)s->token);
}

static void machine_told_given(struct machine *m, const struct http_call *c)
{
    const char *at = strstr(c->target, "?token=");
    int64_t token = at ? atoll(at + strlen("?token=")) : http_json_int(c->answer, "token");
    const struct machine_slot *s = token > 0 ? machine_find(m, token) : NULL;
    if (s && s->gone == HTTP_NEVER)
        http_rule_broken(m->fleet->w, RULE_OVER_IS_TRUE, "%s tells %s that it has given %lld back",
                         c->gate->name, m->id, (long long)token);
    if (!at)
        machine_told_none(m, c, "owns nothing", 0);
}

static void on_machine_told(struct http_sender *s, struct http_call *c)
{
    struct machine *m = LIST_ENTRY(s, struct machine, sender);
    struct http_world *h = m->fleet->of;
    char state[16] = "";
    if (!h->server->server || checker_is_beyond(h->checker))
        return;
    http_fleet_look(m->fleet);
    http_json(c->answer, "state", state, sizeof state);
    if (machine_call_gives(c) && c->status == 200)
        machine_told_given(m, c);
    else if (c->status == 200 || c->status == 201)
        machine_told_owned(m, c);
    else if (c->status == 409 && machine_call_takes(c) && strstr(c->answer, "EBUSY"))
        machine_told_none(m, c, "has to wait", 0);
    else if (c->status == 404 && http_call_is(c, "GET", ""))
        machine_told_none(m, c, "owns nothing", 0);
    else if (strcmp(state, "waiting") == 0)
        machine_told_none(m, c, "waits", FLEET_NEWS_US);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void machine_wake_in(struct machine *m, int64_t us)
{
    world_set(m->fleet->w, &m->alarm, m->fleet->w->now + us);
}

static struct gate *fleet_gate(struct http_fleet *f)
{
    return &f->of->gates[world_between(f->w, 0, (int64_t)f->of->ngates - 1)];
}

static struct http_call *machine_fleetlock(struct machine *m)
{
    struct http_call *c = http_call_new(&m->sender, fleet_gate(m->fleet), "POST");
    snprintf(c->target, sizeof c->target, "/v1/%s",
             m->task == MACHINE_TAKES ? "pre-reboot" : "steady-state");
    http_call_header(c, "fleet-lock-protocol", "true");
    snprintf(c->body, sizeof c->body,
             "{\"client_params\": {\"group\": \"" FLEET_GROUP "\", \"id\": \"%s\"}}", m->id);
    return c;
}

static void machine_prefer(struct machine *m, struct http_call *c)
{
    struct world *w = m->fleet->w;
    char text[32];
    int64_t dice = world_between(w, 0, 9);
    if (dice > 6)
        return;
    snprintf(text, sizeof text, "wait=%lld", (long long)(dice < 4 ? 0 : world_between(w, 1, 6)));
    http_call_header(c, "Prefer", text);
    m->limit_us += atoll(text + strlen("wait=")) * SECOND;
}

static struct http_call *machine_claim(struct machine *m)
{
    static const char *const methods[] = {"POST", "DELETE", "GET"};
    struct http_call *c = http_call_new(&m->sender, fleet_gate(m->fleet), methods[m->task]);
    const struct machine_slot *s = machine_newest(m);
    http_call_header(c, "Clave-Owner", m->id);
    snprintf(c->target, sizeof c->target, "/v1/claims/%s", m->claim);
    if (m->task == MACHINE_TAKES) {
        snprintf(c->target, sizeof c->target, "/v1/claims");
        snprintf(c->body, sizeof c->body,
                 "{\"kind\": \"slot\", \"path\": \"" FLEET_SLOTS "\", \"limit\": 1}");
        http_call_header(c, "Content-Type", "application/json");
    } else if (m->task == MACHINE_GIVES && s && world_chance(m->fleet->w, 500)) {
        m->of_before = m->npast > 1 && !m->fleet->leaves && world_chance(m->fleet->w, 200);
        s = m->of_before ? &m->past[(m->npast - 2) % MACHINE_PAST] : s;
        snprintf(c->target, sizeof c->target, "/v1/claims/%s?token=%lld", m->claim,
                 (long long)s->token);
        m->by_token = true;
    }
    if (m->task != MACHINE_GIVES)
        machine_prefer(m, c);
    return c;
}

/* A half-open connection: the request arrives late or never, and the gate does not hear that it was
 * given up. */
static void machine_send(struct machine *m)
{
    struct http_fleet *f = m->fleet;
    struct world *w = f->w;
    m->by_claim = m->claims && (!m->fleetlock || world_chance(w, 500));
    m->by_token = m->of_before = false;
    if (m->task == MACHINE_LOOKS && !m->by_claim)
        m->task = m->certain && m->token == 0 ? MACHINE_GIVES : MACHINE_TAKES;
    m->limit_us = w->now + world_between(w, f->patience_us / 4, f->patience_us);
    m->alone = m->sender.open == 0;
    struct http_call *c = m->by_claim ? machine_claim(m) : machine_fleetlock(m);
    if (m->task == MACHINE_TAKES) {
        m->certain &= m->token != 0; /* a slot that it owns stays */
        m->took = true;
    } else if (m->task == MACHINE_GIVES && !m->of_before) {
        m->certain &= m->token == 0;
    }
    m->call = c;
    c->number = 0;
    for (size_t i = 0; i < MACHINE_PAST; i++)
        if (m->past[i].told_at > 0 && m->past[i].token > (int64_t)c->number)
            c->number = (uint64_t)m->past[i].token;
    http_tell(w, m->id, c, "asks", "");
    int64_t us = gate_delay(c->gate);
    if (!f->leaves && world_chance(w, f->half_open))
        us = world_chance(w, 300) ? -1 : us + world_between(w, 0, f->patience_us);
    c->loss = f->leaves ? 0 : f->half_open;
    http_call_send(c, us);
    world_set(w, &m->alarm, m->limit_us);
}

/* What was asked is asked again, undone, or looked at. */
static void machine_choose(struct machine *m)
{
    struct http_fleet *f = m->fleet;
    int64_t dice = world_between(f->w, 0, 99);
    if (f->leaves)
        m->task = m->served ? MACHINE_GIVES : MACHINE_TAKES;
    else if (dice < 15)
        m->task = MACHINE_LOOKS;
    else if (!m->certain && dice < 65 && m->task != MACHINE_LOOKS)
        return; /* once more */
    else if (!m->certain)
        m->task = dice < 82 ? MACHINE_TAKES : MACHINE_GIVES;
    else
        m->task = dice < (m->token != 0 ? f->loyal : 90) ? MACHINE_TAKES : MACHINE_GIVES;
}

/* ---- what it hears --------------------------------------------------------------------------- */

static void machine_is_certain(struct machine *m, int64_t token)
{
    struct http_world *h = m->fleet->of;
    m->certain = m->alone && !checker_is_beyond(h->checker);
    m->token = token;
    if (h->server->server)
        http_fleet_look(m->fleet);
    if (m->certain && token < 0) /* FleetLock knows no tokens: the one that it has */
        m->token = machine_newest(m) ? machine_newest(m)->token : 0;
    if (h->server->server)
        machine_judge_certain(m);
    if (m->certain)
        m->took = false;
}

static void machine_heard(struct machine *m, const struct http_call *c)
{
    char state[16] = "";
    http_json(c->answer, "state", state, sizeof state);
    bool fine = c->status == 200 || c->status == 201;
    if (m->task == MACHINE_GIVES && fine) {
        if (!m->of_before && (!m->by_token || !m->took)) {
            machine_is_certain(m, 0);
            m->gone = m->fleet->leaves && m->served && m->alone;
        }
    } else if (fine) {
        m->served |= m->fleet->leaves;
        m->owned++;
        machine_is_certain(m, m->by_claim ? http_json_int(c->answer, "token") : -1);
    }
}

static void machine_rest(struct machine *m)
{
    struct http_fleet *f = m->fleet;
    bool owns = m->certain && m->token != 0;
    int64_t mean = owns ? f->hold_us : f->rest_us;
    if (f->leaves)
        mean = 20 * MS;
    machine_wake_in(m, world_wait(f->w, mean));
}

static void machine_run(struct machine *m)
{
    struct http_fleet *f = m->fleet;
    struct http_call *c = m->call;
    if (!c) {
        machine_choose(m);
        machine_send(m);
        return;
    }
    if (m->has_answer) {
        m->call = NULL;
        m->has_answer = false;
        http_tell(f->w, m->id, c, "is answered by", c->answer);
        machine_heard(m, c);
        http_call_drop(c);
    } else if (f->w->now >= m->limit_us) {
        m->call = NULL;
        http_tell(f->w, m->id, c, "gives up", "");
        bool half_open = !f->leaves && world_chance(f->w, 3 * f->half_open);
        http_call_give_up(c, half_open ? f->patience_us : gate_delay(c->gate));
    } else {
        return;
    }
    if (!m->gone)
        machine_rest(m);
}

static void on_machine(struct alarm *a)
{
    struct machine *m = LIST_ENTRY(a, struct machine, alarm);
    struct rand_state *before = world_use_rng(m->fleet->w, &m->rng);
    machine_run(m);
    world_use_rng(m->fleet->w, before);
}

static void on_machine_hears(struct http_sender *s, struct http_call *c)
{
    struct machine *m = LIST_ENTRY(s, struct machine, sender);
    if (c != m->call)
        return;
    m->has_answer = true;
    machine_wake_in(m, 0);
}

/* ---- the limit ------------------------------------------------------------------------------- */

static void on_fleet_hears(struct http_sender *s, struct http_call *c)
{
    struct http_fleet *f = LIST_ENTRY(s, struct http_fleet, operator);
    f->set |= c == f->setting;
}

static void on_fleet_rules(struct alarm *a)
{
    struct http_fleet *f = LIST_ENTRY(a, struct http_fleet, rules);
    struct rand_state *before = world_use_rng(f->w, &f->of->rng);
    if (f->setting && f->set)
        http_call_drop(f->setting);
    else if (f->setting)
        http_call_give_up(f->setting, gate_delay(f->setting->gate));
    f->set = false;
    f->setting = http_call_new(&f->operator, fleet_gate(f), "PUT");
    snprintf(f->setting->target, sizeof f->setting->target, "/v1/slots" FLEET_SLOTS);
    snprintf(f->setting->body, sizeof f->setting->body, "{\"limit\": %lld}",
             (long long)world_between(f->w, f->leaves ? 1 : 0, FLEET_MACHINES - 1));
    http_call_header(f->setting, "Content-Type", "application/json");
    http_call_send(f->setting, gate_delay(f->setting->gate));
    world_set(f->w, a, f->w->now + (f->leaves ? 2 * SECOND : world_wait(f->w, 20 * f->rest_us)));
    world_use_rng(f->w, before);
}

/* ---- its life -------------------------------------------------------------------------------- */

void http_fleet_finish(struct http_fleet *f)
{
    f->leaves = true;
    if (f->n > 0)
        world_set(f->w, &f->rules, f->w->now);
    for (size_t i = 0; i < f->n; i++)
        if (!f->machines[i].call)
            machine_wake_in(&f->machines[i], 0);
}

bool http_fleet_is_quiet(const struct http_fleet *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (!f->machines[i].gone)
            return false;
    return !inspector_child(f->of->server, FLEET_SLOTS "/owners", 0) &&
           !inspector_child(f->of->server, FLEET_SLOTS "/queue", 0);
}

void http_fleet_start(struct http_fleet *f)
{
    for (size_t i = 0; i < f->n; i++)
        machine_wake_in(&f->machines[i], world_wait(f->w, f->rest_us));
    if (f->n > 0 && world_chance(f->w, 700))
        world_set(f->w, &f->rules, f->w->now + world_wait(f->w, f->rest_us));
}

static void machine_init(struct machine *m, struct http_fleet *f, unsigned number)
{
    struct world *w = f->w;
    char both[64];
    m->fleet = f;
    snprintf(m->id, sizeof m->id, "m%u", number);
    int n = snprintf(both, sizeof both, FLEET_SLOTS "\n%s", m->id);
    strcpy(m->claim, "slot.");
    clave__base64url(both, (size_t)n, m->claim + strlen("slot."));
    clave__rand_seed(&m->rng, world_u64(w));
    m->sender = (struct http_sender){.of = f->of,
                                     .name = m->id,
                                     .clock = &f->clock,
                                     .token = "Bearer of-the-fleet-0001",
                                     .hears = on_machine_hears,
                                     .told = on_machine_told};
    m->alarm.fire = on_machine;
    m->claims = world_chance(w, 600);
    m->fleetlock = !m->claims || world_chance(w, 300);
    m->certain = true;
}

void http_fleet_init(struct http_fleet *f, struct http_world *of)
{
    struct world *w = of->w;
    *f = (struct http_fleet){.w = w, .of = of};
    f->n = (size_t)world_between(w, 1, FLEET_MACHINES);
    f->clock = world_clock(w);
    f->patience_us = world_between(w, SECOND, 8 * SECOND);
    f->half_open = (unsigned)(world_chance(w, 300) ? 0 : world_between(w, 1, 150));
    f->rest_us = world_between(w, 10 * MS, SECOND);
    f->loyal = world_chance(w, 200) ? 95 : world_between(w, 20, 40);
    f->hold_us = world_between(w, 10 * MS, world_chance(w, 300) ? 4 * SECOND : SECOND / 4);
    f->rules.fire = on_fleet_rules;
    f->operator=(struct http_sender){.of = of,
                                     .name = "operator",
                                     .clock = &f->clock,
                                     .token = "Bearer of-the-fleet-0001",
                                     .hears = on_fleet_hears};
    for (size_t i = 0; i < f->n; i++)
        machine_init(&f->machines[i], f, (unsigned)i);
}

void http_fleet_fini(struct http_fleet *f)
{
    if (f->n == 0)
        return;
    world_clear(f->w, &f->rules);
    if (f->setting)
        http_call_give_up(f->setting, -1);
    f->setting = NULL;
    for (size_t i = 0; i < f->n; i++) {
        world_clear(f->w, &f->machines[i].alarm);
        if (f->machines[i].call)
            http_call_give_up(f->machines[i].call, -1);
        f->machines[i].call = NULL;
    }
}
