#include "http/http_group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/http_copy.h"
#include "http/http_world.h"
#include "inspector.h"
#include "server/server_internal.h"

#define GROUP_MEMBERS GROUP_PATH "/m"
#define GROUP_BASE GROUP_PATH "/s"

/* Numbers are ports, too. */
enum { MOST_NUMBERS = 65535, DISABLED_EACH = 4 };

static bool seat_is_service(unsigned seat)
{
    return seat % 2 == 1;
}

/* An instance with this number says that it is disabled. */
static bool number_is_disabled(int64_t number)
{
    return number % DISABLED_EACH == 0;
}

/* ---- what stands at the servers -------------------------------------------------------------- */

static struct seat_state *seat_newest(struct group_seat *s)
{
    return s->npast > 0 ? &s->past[(s->npast - 1) % SEAT_STATES] : NULL;
}

/* What is there; NULL: nothing. */
static struct seat_state *seat_has(struct group_seat *s)
{
    struct seat_state *newest = seat_newest(s);
    return newest && newest->gone == HTTP_NEVER ? newest : NULL;
}

static bool seat_was_of(const struct group_seat *s, int64_t session, int64_t at)
{
    for (size_t i = 0; i < SEAT_STATES; i++)
        if (s->past[i].czxid != 0 && s->past[i].owner == session && s->past[i].gone >= at)
            return true;
    return false;
}

/* The number that a node's data name: "17", or "port":17. */
static int64_t node_number(const struct node *n)
{
    char text[256] = "";
    struct jbytes data = clave__node_data(n);
    if (data.n > 0)
        snprintf(text, sizeof text, "%.*s", (int)data.n, data.p);
    const char *port = strstr(text, "\"port\":");
    return atoll(port ? port + strlen("\"port\":") : text);
}

static void seat_look(struct http_group *g, struct group_seat *s)
{
    const struct node *n = clave__tree_find(&g->of->server->server->tree, clave__jbytes(s->path));
    struct seat_state *was = seat_has(s);
    int64_t number = n ? node_number(n) : 0;
    if (n && was && was->czxid == n->stat.czxid && was->owner == n->stat.owner &&
        was->number == number)
        return;
    if (was)
        was->gone = g->of->w->now;
    if (n)
        s->past[s->npast++ % SEAT_STATES] = (struct seat_state){.czxid = n->stat.czxid,
                                                                .owner = n->stat.owner,
                                                                .number = number,
                                                                .since = g->of->w->now,
                                                                .gone = HTTP_NEVER};
}

/* Another program may have changed or deleted the node rightly since then: it has asked for the
 * place, or its session had it when it asked for something else there. */
static bool place_is_disputed(const struct http_group *g, const struct group_program *p,
                              unsigned seat, int64_t since)
{
    for (size_t i = 0; i < g->n; i++) {
        const struct group_program *o = &g->programs[i];
        const struct group_place *at = &o->places[seat];
        if (o != p && at->asked > 0 && at->answered >= since &&
            (at->replaces || seat_was_of(&g->seats[seat], o->caller.sender.session, at->asked)))
            return true;
    }
    return since <= g->seats[seat].shaky_to;
}

/* `since`: it was as the program believes at a moment from then on. */
static void place_judge(struct http_group *g, struct group_program *p, unsigned seat, int64_t since)
{
    struct group_place *at = &p->places[seat];
    int64_t session = p->caller.sender.session;
    const struct seat_state *there = seat_has(&g->seats[seat]);
    bool own = there && there->owner == session;
    int64_t number = own ? there->number : 0;
    if (!at->certain || number == at->number || !inspector_has_session(g->of->server, session))
        return;
    if (at->number == 0)
        http_rule_broken(g->of->w, RULE_NODE_OVER, "%s of %s is made by what was asked for before",
                         g->seats[seat].path, p->caller.name);
    else if (!place_is_disputed(g, p, seat, since))
        http_rule_broken(g->of->w, RULE_NODE_STAYS, "%s of %s, which had %lld, %s",
                         g->seats[seat].path, p->caller.name, (long long)at->number,
                         own     ? "has other data"
                         : there ? "is another's"
                                 : "is gone");
    at->certain = false;
}

void http_group_look(struct http_group *g)
{
    if (g->n == 0)
        return;
    const struct server_host *server = g->of->server;
    int64_t zxid = inspector_zxid(server);
    if (zxid == g->zxid && server->stats.starts == g->start)
        return;
    if (zxid < g->zxid || server->stats.starts != g->start)
        g->went_back_at = g->of->w->now;
    g->zxid = zxid;
    g->start = server->stats.starts;
    http_count_look(&g->count);
    for (unsigned i = 0; i < 2 * g->n; i++)
        seat_look(g, &g->seats[i]);
    for (size_t i = 0; i < g->n; i++)
        for (unsigned k = 0; k < 2 * g->n && g->programs[i].secret[0]; k++)
            place_judge(g, &g->programs[i], k, g->of->w->now);
}

/* ---- what the gates tell --------------------------------------------------------------------- */

/* It was there, with these data and of this session (0: of any), at a moment from then on. */
static bool seat_had(const struct group_seat *s, int64_t session, int64_t number, int64_t from)
{
    for (size_t i = 0; i < SEAT_STATES; i++)
        if (s->past[i].czxid != 0 && s->past[i].number == number && s->past[i].gone >= from &&
            (session == 0 || s->past[i].owner == session))
            return true;
    return false;
}

static void group_judge_joined(struct http_group *g, const struct http_call *c)
{
    char path[48] = "";
    http_json(c->answer, "path", path, sizeof path);
    g->joined++;
    for (unsigned i = 0; i < 2 * g->n; i++)
        if (strcmp(g->seats[i].path, path) == 0 &&
            seat_had(&g->seats[i], c->session, (int64_t)c->number, c->sent_at))
            return;
    http_rule_broken(g->of->w, RULE_NODE_IS_TRUE, "%s says that %s has %s with %llu", c->gate->name,
                     c->from->name, path, (unsigned long long)c->number);
}

/* The next number after `mark` in the answer; 0: there is none. */
static int64_t list_next(const char **at, const char *mark)
{
    *at = strstr(*at, mark);
    if (!*at)
        return 0;
    *at += strlen(mark);
    return atoll(*at);
}

static bool group_listed_was_there(const struct http_group *g, bool services, int64_t number,
                                   int64_t from)
{
    for (unsigned i = services; i < 2 * g->n; i += 2)
        if (seat_had(&g->seats[i], 0, number, from))
            return true;
    return false;
}

static void group_judge_list(struct http_group *g, const struct http_call *c)
{
    bool services = http_call_is(c, "GET", "/v1/services"), prometheus = strstr(c->target, "sd");
    bool ready = prometheus || strstr(c->target, "?ready");
    bool none = c->status == 503 && strstr(c->answer, "ENONODE");
    const char *mark = prometheus ? "\"h:" : services ? "\"port\": " : "\"data\": \"";
    int64_t from = http_copy_from(c, prometheus || none), number;
    char text[24];
    if ((c->status != 200 && !none) || from < 0 || c->gate->nservers > 1 ||
        checker_is_beyond(g->of->checker))
        return;
    g->listed++;
    for (const char *at = c->answer; (number = list_next(&at, mark)) != 0;)
        if (!group_listed_was_there(g, services, number, from) ||
            (ready && number_is_disabled(number)))
            http_rule_broken(g->of->w, RULE_LIST_IS_TRUE, "%s lists %lld (%s), which was not %s",
                             c->gate->name, (long long)number, c->target, ready ? "up" : "there");
    for (unsigned i = services; i < 2 * g->n; i += 2) {
        const struct seat_state *s = seat_has(&g->seats[i]);
        if (!s || s->since > from || (ready && number_is_disabled(s->number)))
            continue;
        snprintf(text, sizeof text, "%s%lld", mark, (long long)s->number);
        if (none || !strstr(c->answer, text))
            http_rule_broken(g->of->w, RULE_LIST_IS_TRUE, "%s does not list %s (%s), for %lld ms",
                             c->gate->name, g->seats[i].path, c->target,
                             (long long)((g->of->w->now - s->since) / MS));
    }
}

static void on_program_told(struct http_caller *k, struct http_call *c)
{
    struct group_program *p = LIST_ENTRY(k, struct group_program, caller);
    struct http_group *g = p->group;
    if (strncmp(c->target, "/v1/counters", strlen("/v1/counters")) == 0) {
        http_count_told(&g->count, c);
        return;
    }
    if (!g->of->server->server)
        return;
    http_group_look(g);
    if (g->went_back_at >= c->sent_at)
        return;
    if (http_call_is(c, "PUT", "/v1/") && c->status < 300)
        group_judge_joined(g, c);
    else if (http_call_is(c, "GET", "/v1/members") || http_call_is(c, "GET", "/v1/services"))
        group_judge_list(g, c);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static struct http_call *program_call(struct group_program *p, const char *method,
                                      const char *target)
{
    struct http_call *c = http_call_new(&p->caller.sender, http_caller_gate(&p->caller), method);
    snprintf(c->target, sizeof c->target, "%s", target);
    return c;
}

/* The place is not certain from now on. */
static void place_touch(struct group_program *p)
{
    struct group_place *at = &p->places[p->seat];
    if (at->answered != HTTP_NEVER) {
        at->asked = p->group->of->w->now;
        at->replaces = false;
    }
    at->certain = false;
    at->answered = HTTP_NEVER;
    at->replaces |= p->task == GROUP_JOINS && (p->replaces || seat_is_service(p->seat));
}

static struct http_call *program_ask_seat(struct group_program *p)
{
    const struct group_seat *s = &p->group->seats[p->seat];
    bool joins = p->task == GROUP_JOINS, service = seat_is_service(p->seat);
    char target[128];
    if (service)
        snprintf(target, sizeof target, "/v1/services/web%s?base=" GROUP_BASE,
                 strrchr(s->path, '/'));
    else
        snprintf(target, sizeof target, "/v1/members%s%s", s->path,
                 joins && p->replaces ? "?replace" : "");
    struct http_call *c = program_call(p, joins ? "PUT" : "DELETE", target);
    place_touch(p);
    if (!joins)
        return c;
    c->number = (uint64_t)p->number;
    if (service)
        snprintf(c->body, sizeof c->body, "{\"address\": \"h\", \"port\": %lld, \"enabled\": %s}",
                 (long long)p->number, number_is_disabled(p->number) ? "false" : "true");
    else
        snprintf(c->body, sizeof c->body, "%lld", (long long)p->number);
    return c;
}

static struct http_call *program_ask_count(struct group_program *p)
{
    struct http_count *t = &p->group->count;
    struct world *w = p->group->of->w;
    if (p->task == GROUP_READS)
        return program_call(p, "GET", "/v1/counters" COUNT_PATH);
    struct http_call *c = program_call(p, "POST", "/v1/counters" COUNT_PATH);
    if (!p->again) {
        p->number = (int64_t)http_count_new(t, world_between(w, 1, (int64_t)1 << 40));
        p->expected = p->value;
    }
    int64_t amount = http_count_amount(t, (uint64_t)p->number);
    if (p->task == GROUP_ADDS)
        snprintf(c->body, sizeof c->body, "{\"add\": %lld}", (long long)amount);
    else
        snprintf(c->body, sizeof c->body, "{\"set\": %lld, \"expected\": \"%lld\"}",
                 (long long)(p->expected + amount), (long long)p->expected);
    c->number = (uint64_t)p->number;
    http_count_asked(t, c->number);
    return c;
}

static struct http_call *program_ask_list(struct group_program *p)
{
    static const char *const targets[] = {
        "/v1/members" GROUP_MEMBERS,
        "/v1/members" GROUP_MEMBERS "?fresh",
        "/v1/services/web?base=" GROUP_BASE,
        "/v1/services/web?ready&base=" GROUP_BASE,
        "/v1/services?base=" GROUP_BASE "&fresh",
        "/v1/services/web?format=http_sd&base=" GROUP_BASE,
    };
    return program_call(
        p, "GET", targets[world_between(p->group->of->w, 0, sizeof targets / sizeof *targets - 1)]);
}

static struct http_call *program_ask(struct group_program *p)
{
    char target[64];
    switch (p->task) {
    case GROUP_ENTERS:
        return program_call(p, "POST", "/v1/sessions");
    case GROUP_RENEWS:
    case GROUP_ENDS:
        snprintf(target, sizeof target, "/v1/sessions/%s%s", p->session,
                 p->task == GROUP_RENEWS ? "/renew" : "");
        return program_call(p, p->task == GROUP_RENEWS ? "POST" : "DELETE", target);
    case GROUP_JOINS:
    case GROUP_LEAVES:
        return program_ask_seat(p);
    case GROUP_LISTS:
        return program_ask_list(p);
    case GROUP_ADDS:
    case GROUP_SETS:
    case GROUP_READS:
        break;
    }
    return program_ask_count(p);
}

static unsigned program_own_seat(const struct group_program *p, bool service)
{
    return 2 * p->index + service;
}

/* In the evening: both nodes, and then the end. */
static void program_choose_last(struct group_program *p)
{
    p->replaces = true;
    for (int service = 0; service <= 1; service++) {
        const struct group_place *at = &p->places[program_own_seat(p, service)];
        p->seat = program_own_seat(p, service);
        if (!at->certain || at->number == 0) {
            p->task = GROUP_JOINS;
            return;
        }
    }
    p->task = GROUP_ENDS;
}

static void program_choose(struct group_program *p)
{
    struct http_group *g = p->group;
    struct world *w = g->of->w;
    int64_t dice = world_between(w, 0, 99);
    unsigned owner =
        world_chance(w, 800) ? p->index : (unsigned)world_between(w, 0, (int64_t)g->n - 1);
    p->seat = 2 * owner + world_chance(w, 500);
    p->replaces = world_chance(w, 300);
    if (!p->secret[0])
        p->task = GROUP_ENTERS;
    else if (w->now >= p->renew_at)
        p->task = GROUP_RENEWS;
    else if (g->leaves)
        program_choose_last(p);
    else if (dice < 35)
        p->task = GROUP_JOINS;
    else if (dice < 50)
        p->task = GROUP_LEAVES;
    else if (dice < 65)
        p->task = GROUP_LISTS;
    else if (dice < 78)
        p->task = GROUP_ADDS;
    else if (dice < 90)
        p->task = GROUP_SETS;
    else
        p->task = dice < 99 ? GROUP_READS : GROUP_ENDS;
}

static struct http_call *on_program_asks(struct http_caller *k)
{
    struct group_program *p = LIST_ENTRY(k, struct group_program, caller);
    struct http_group *g = p->group;
    struct world *w = g->of->w;
    bool counts = p->task >= GROUP_ADDS;
    p->again = p->again && p->secret[0] && w->now < p->renew_at && !g->leaves;
    if (!p->again) {
        program_choose(p);
        counts = p->task >= GROUP_ADDS;
        if (p->task == GROUP_JOINS)
            p->number = g->numbers++ % MOST_NUMBERS + 1;
    }
    struct http_call *c = program_ask(p);
    /* A counter needs no session. */
    if (p->secret[0] && (!counts || world_chance(w, 500)))
        http_call_header(c, "Clave-Session", p->secret);
    if (p->task == GROUP_ENTERS)
        snprintf(c->body, sizeof c->body, "{\"ttl_ms\": %lld}", (long long)g->ttl_ms);
    if (c->body[0])
        http_call_header(c, "Content-Type",
                         c->body[0] == '{' ? "application/json" : "application/octet-stream");
    return c;
}

/* ---- what it hears --------------------------------------------------------------------------- */

static void program_is_out(struct group_program *p)
{
    struct http_group *g = p->group;
    p->secret[0] = '\0';
    p->caller.sender.session = 0;
    for (unsigned i = 0; i < 2 * g->n; i++) {
        if (!p->places[i].certain)
            g->seats[i].shaky_to = g->of->w->now + 3 * g->of->timeout_us;
        p->places[i] = (struct group_place){.certain = true};
    }
}

static void program_enters(struct group_program *p, const struct http_call *c)
{
    http_json(c->answer, "id", p->session, sizeof p->session);
    http_json(c->answer, "secret", p->secret, sizeof p->secret);
    p->caller.sender.session = atoll(p->session);
    p->renew_at = c->sent_at + p->group->ttl_ms * MS / 3;
    world_log(p->group->of->w, p->caller.name, "has session 0x%llx",
              (unsigned long long)p->caller.sender.session);
}

/* Of the seat that it has asked about. `number` 0: its session has no node there. */
static void program_is_certain(struct group_program *p, int64_t number)
{
    struct http_group *g = p->group;
    if (!p->caller.alone)
        return;
    struct group_place *at = &p->places[p->seat];
    at->answered = g->of->w->now;
    if (!g->of->server->server) /* once there is one, another program may have it rightly */
        return;
    at->certain = true;
    at->number = number;
    http_group_look(g);
    place_judge(g, p, p->seat, at->asked);
}

static void on_program_hears(struct http_caller *k, const struct http_call *c)
{
    struct group_program *p = LIST_ENTRY(k, struct group_program, caller);
    struct http_group *g = p->group;
    bool fine = c->status >= 200 && c->status < 300;
    p->again = p->task != GROUP_ADDS && (c->status == 0 || c->status >= 500) &&
               world_chance(g->of->w, 600);
    if (http_call_has_no_session(c) || (p->task == GROUP_ENDS && fine))
        program_is_out(p);
    else if (p->task == GROUP_ENTERS && fine)
        program_enters(p, c);
    else if (p->task == GROUP_RENEWS && fine)
        p->renew_at = c->sent_at + g->ttl_ms * MS / 3;
    else if (p->task == GROUP_JOINS && fine)
        program_is_certain(p, p->number);
    else if ((p->task == GROUP_JOINS || p->task == GROUP_LEAVES) &&
             (fine || c->status == 404 || strstr(c->answer, "ENODEEXISTS")))
        program_is_certain(p, 0);
    else if (p->task >= GROUP_ADDS && (c->status == 200 || c->status == 409))
        p->value = http_json_int(c->answer, "value");
    p->caller.gone |= g->leaves && p->task == GROUP_ENDS && !p->secret[0];
}

/* ---- its life -------------------------------------------------------------------------------- */

void http_group_start(struct http_group *g)
{
    for (size_t i = 0; i < g->n; i++)
        http_caller_wake_in(&g->programs[i].caller,
                            world_wait(g->of->w, g->programs[i].caller.rest_us));
}

void http_group_finish(struct http_group *g)
{
    g->leaves = true;
    for (size_t i = 0; i < g->n; i++) {
        struct http_caller *k = &g->programs[i].caller;
        k->half_open = 0;
        if (world_chance(g->of->w, 300))
            http_caller_vanish(k);
        else if (!k->call)
            http_caller_wake_in(k, 0);
    }
}

bool http_group_is_quiet(const struct http_group *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (!g->programs[i].caller.gone)
            return false;
    return !inspector_child(g->of->server, GROUP_MEMBERS, 0) &&
           !inspector_child(g->of->server, GROUP_BASE "/web", 0) &&
           !inspector_child(g->of->server, COUNT_PATH "-markers", 0);
}

void http_group_draw(struct http_group *g, struct http_world *of)
{
    static const struct http_caller_kind kind = {on_program_asks, on_program_hears,
                                                 on_program_told};
    struct world *w = of->w;
    *g = (struct http_group){.of = of};
    g->n = (size_t)world_between(w, 1, GROUP_PROGRAMS);
    g->ttl_ms = world_between(w, of->timeout_us / MS / 2, 2 * of->timeout_us / MS);
    unsigned half_open = (unsigned)(world_chance(w, 300) ? 0 : world_between(w, 1, 150));
    int64_t rest_us = world_between(w, of->timeout_us / 100, of->timeout_us / 8);
    http_count_init(&g->count, of);
    for (unsigned i = 0; i < g->n; i++) {
        struct group_program *p = &g->programs[i];
        p->group = g;
        p->index = i;
        http_caller_init(&p->caller, of, 0x67726f7570 + i);
        p->caller.kind = &kind;
        snprintf(p->caller.name, sizeof p->caller.name, "p%u", i);
        p->caller.sender.token = "Bearer of-the-group-0001";
        p->caller.clock = world_clock(w);
        p->caller.half_open = half_open;
        p->caller.rest_us = rest_us;
        p->caller.patience_us = world_between(w, of->timeout_us / 4, 2 * of->timeout_us);
        for (unsigned k = 0; k < 2 * g->n; k++)
            p->places[k].certain = true;
        snprintf(g->seats[2 * i].path, sizeof g->seats[0].path, GROUP_MEMBERS "/p%u", i);
        snprintf(g->seats[2 * i + 1].path, sizeof g->seats[0].path, GROUP_BASE "/web/p%u", i);
    }
}

void http_group_fini(struct http_group *g)
{
    for (size_t i = 0; i < g->n; i++)
        http_caller_fini(&g->programs[i].caller);
}
