#include "http/http_world.h"

#include <stdio.h>
#include <string.h>

#include "inspector.h"

enum { HTTP_SHARE = 250, HTTP_TEAM = 350, HTTP_FLEET = 400, HTTP_GROUP = 400 };

const struct http_site *http_site(const struct http_world *h, unsigned site)
{
    return &h->sites[site];
}

/* ---- what must hold -------------------------------------------------------------------------- */

static void http_look_at(struct http_world *h, struct http_user *u)
{
    const struct lock_layout *at = &h->sites[u->site].layout;
    int64_t zxid = inspector_zxid(h->server);
    if (u->seen_zxid == zxid && u->seen_start == h->server->stats.starts)
        return;
    u->seen_zxid = zxid;
    u->seen_start = h->server->stats.starts;
    int64_t session = u->state == USER_STREAMING ? 0 : u->sender.session; /* that one is not told */
    bool stands = inspector_has_node(h->server, u->node, session);
    bool rightly = stands && layout_has_turn(h->server, at, u->node);
    if (!rightly && !checker_is_beyond(h->checker))
        world_break(h->w, "a valid hold over HTTP is the first of its queue",
                    "%s holds %s by %s, %s, for %lld ms more", u->name, at->path, u->node,
                    stands ? "whose turn it is not" : "which is not there",
                    (long long)(u->deadline - clock_ms(&u->clock, h->w->now)));
}

void http_world_look(struct http_world *h)
{
    unsigned held[HTTP_SITES] = {0};
    if (h->nusers > 0 && h->server->server) {
        http_places_look(h);
        http_signs_look(h);
        http_told_look(h);
        http_fleet_look(&h->fleet);
        http_group_look(&h->group);
    }
    for (size_t i = 0; i < h->nusers; i++) {
        struct http_user *u = &h->users[i];
        if (!http_user_believes(u))
            continue;
        const struct lock_layout *at = &h->sites[u->site].layout;
        held[u->site]++;
        if (held[u->site] > at->limit && !checker_is_beyond(h->checker))
            world_break(h->w, "no two valid holds over HTTP at once",
                        "%s (token %lld) is one of %u of %s", u->name, (long long)u->token,
                        held[u->site], at->path);
        if (h->server->server)
            http_look_at(h, u);
    }
}

void http_world_granted(struct http_world *h, struct http_user *u)
{
    struct http_site *s = &h->sites[u->site];
    if (!http_user_believes(u) || !s->grows)
        return;
    if (u->token <= s->last_token && !checker_is_beyond(h->checker))
        world_break(h->w, "tokens over HTTP grow", "%s is granted %s with token %lld, after %lld",
                    u->name, s->layout.path, (long long)u->token, (long long)s->last_token);
    s->last_token = u->token;
}

/* ---- what goes wrong ------------------------------------------------------------------------- */

static void http_fault(struct http_world *h)
{
    struct world *w = h->w;
    int64_t us = world_between(w, 1, 2 * h->timeout_us);
    struct gate *g = &h->gates[world_between(w, 0, (int64_t)h->ngates - 1)];
    struct http_user *u = &h->users[world_between(w, 0, (int64_t)h->nusers - 1)];
    h->count++;
    switch (world_between(w, 0, 9)) {
    case 0:
        gate_pause_at(g, (unsigned)world_between(w, 1, 60), us);
        break;
    case 1:
        if (world_chance(w, 500))
            gate_kill(g, us);
        else
            gate_close(g, us);
        break;
    case 2:
        gate_cut(g, false);
        break;
    case 3:
        gate_cut(g, true);
        break;
    case 4:
        world_log(w, g->name, "is far away for %lld ms", (long long)(us / MS));
        g->late_to = w->now + us;
        g->late_us = world_chance(w, 500) ? h->timeout_us : h->timeout_us / 20;
        break;
    case 5:
        gate_cut_off(g, us);
        break;
    case 6:
        gate_stall(g, world_chance(w, 500) ? us : 4 * us);
        break;
    default:
        http_user_pause(u, us);
        break;
    }
}

static void on_http_fault(struct alarm *a)
{
    struct http_world *h = LIST_ENTRY(a, struct http_world, fault);
    struct rand_state *before = world_use_rng(h->w, &h->rng);
    http_fault(h);
    world_set(h->w, a, h->w->now + world_wait(h->w, h->fault_us));
    world_use_rng(h->w, before);
}

/* A role of the team is taken away, or given back; each gate hears of it in its time. */
static void on_http_role(struct alarm *a)
{
    struct http_world *h = LIST_ENTRY(a, struct http_world, role);
    struct rand_state *before = world_use_rng(h->w, &h->rng);
    unsigned site = (unsigned)world_between(h->w, 0, HTTP_SITES - 1);
    bool all = h->may[0] && h->may[1];
    h->may[0] = h->may[1] = true;
    if (all)
        h->may[site] = false;
    world_log(h->w, "roles", all ? "the team may not lock %s" : "the team may lock all again",
              h->sites[site].layout.path);
    for (size_t i = 0; i < h->ngates; i++) {
        h->gates[i].rereads = true;
        gate_wake(&h->gates[i]);
    }
    world_set(h->w, a, h->w->now + world_wait(h->w, 3 * h->timeout_us));
    world_use_rng(h->w, before);
}

void http_tell(const struct world *w, const char *name, const struct http_call *c, const char *what,
               const char *more)
{
    char text[LOG_TEXT];
    if (!w->aloud)
        return;
    snprintf(text, sizeof text, "%s %s: %s %s %u%.60s", what, c->gate->name, c->q.method, c->target,
             c->status, more);
    world_log_unhashed(w, name, text);
}

int64_t http_team_stay_us(const struct http_world *h)
{
    return 8 * h->timeout_us;
}

/* ---- drawing --------------------------------------------------------------------------------- */

static struct clock http_clock(struct world *w)
{
    struct clock c = world_clock(w);
    c.ppm = world_between(w, -HTTP_PPM, HTTP_PPM);
    return c;
}

static void http_draw_site(struct http_world *h, unsigned i)
{
    static const char *const paths[HTTP_SITES] = {"/http/a", "/http/b"};
    static const char *const leases[HTTP_SITES] = {"/http/a/leases", "/http/b/leases"};
    static const char *const kinds[LOCK_KINDS] = {"lock", "write", "semaphore", "election"};
    struct world *w = h->w;
    struct http_site *s = &h->sites[i];
    int64_t dice = world_between(w, 0, 9);
    enum lock_kind kind = dice < 5   ? LOCK_MUTEX
                          : dice < 6 ? LOCK_RWLOCK
                          : dice < 8 ? LOCK_SEMAPHORE
                                     : LOCK_LATCH;
    s->layout = (struct lock_layout){.kind = kind, .path = paths[i], .queue = paths[i], .limit = 1};
    int n = snprintf(s->body, sizeof s->body, "{\"path\": \"%s\", \"kind\": \"%s\"", paths[i],
                     kinds[kind]);
    if (kind == LOCK_SEMAPHORE) {
        s->layout.queue = leases[i];
        s->layout.limit = (unsigned)world_between(w, 1, 3);
        n += snprintf(s->body + n, sizeof s->body - (size_t)n, ", \"limit\": %u", s->layout.limit);
    }
    if (world_chance(w, 300)) {
        s->max_hold_ms = world_between(w, 20, 2 * h->timeout_us / MS);
        n += snprintf(s->body + n, sizeof s->body - (size_t)n, ", \"max_hold_ms\": %lld",
                      (long long)s->max_hold_ms);
    }
    if (world_chance(w, 300))
        n += snprintf(s->body + n, sizeof s->body - (size_t)n, ", \"revocable\": true");
    snprintf(s->body + n, sizeof s->body - (size_t)n, "}");
    s->grows = kind != LOCK_SEMAPHORE;
}

/* With numbers of its own, so that the others draw the same ones as without it. */
static void http_draw_depend(struct http_site *s, struct http_world *h, struct rand_state *rng)
{
    struct world *w = h->w;
    size_t n = strlen(s->body) - 1;
    struct rand_state *before = world_use_rng(w, rng);
    if (world_chance(w, 300)) {
        s->depend_ms = world_between(w, h->timeout_us / MS / 16, 2 * h->timeout_us / MS);
        snprintf(s->body + n, sizeof s->body - n, ", \"depend_ms\": %lld}",
                 (long long)s->depend_ms);
    }
    world_use_rng(w, before);
}

static void http_draw_gate(struct http_world *h, unsigned i, struct net *n,
                           struct ensemble *ensemble)
{
    struct gate *g = &h->gates[i];
    size_t at = 0;
    gate_init(g, h->w, n, i);
    g->draws_key = h->ngates == 1 && world_chance(h->w, 300);
    g->nservers = ensemble ? ensemble->n : 1;
    for (unsigned k = 0; k < g->nservers; k++) {
        g->servers[k] = ensemble ? &ensemble->members[k].listener : &h->server->listener;
        at +=
            (size_t)snprintf(g->hosts + at, sizeof g->hosts - at, "%ssim:%u", k ? "," : "", k + 1);
    }
    g->clock = http_clock(h->w);
    g->route.delay_us = world_between(h->w, 20, 2 * MS);
    g->route.jitter_us = world_between(h->w, 0, 2 * g->route.delay_us);
    g->delay_us = world_between(h->w, 40, world_chance(h->w, 200) ? h->timeout_us / 50 : 4 * MS);
}

static void http_draw_user(struct http_world *h, unsigned i)
{
    struct http_user *u = &h->users[i];
    struct world *w = h->w;
    http_user_init(u, h, i);
    u->clock = http_clock(w);
    u->timeout_ms = h->timeout_us / MS;
    u->hold_us =
        world_between(w, 1 * MS, world_chance(w, 300) ? 2 * h->timeout_us : h->timeout_us / 8);
    u->rest_us = world_between(w, h->timeout_us / 100, h->timeout_us / 4);
    u->ngates = h->ngates;
    for (size_t k = 0; k < h->ngates; k++)
        u->gates[k] = &h->gates[k];
    u->gate = (size_t)world_between(w, 0, (int64_t)h->ngates - 1);
}

/* Then there are tokens, and roles that may change. */
static void http_draw_access(struct http_world *h)
{
    for (size_t i = 0; i < h->nusers; i++)
        h->users[i].sender.token = "Bearer of-the-users-0001";
    for (size_t i = 0; i < h->ngates; i++) {
        h->gates[i].may = h->may;
        h->gates[i].most_waiting = world_chance(h->w, 400) ? (size_t)world_between(h->w, 1, 5) : 0;
        h->gates[i].roles = &h->roles[i];
        h->roles[i].took_at[0] = h->roles[i].took_at[1] = HTTP_NEVER;
    }
}

/* With numbers of its own, so that the others draw the same ones as without it. */
static void http_draw_group(struct http_world *h)
{
    struct rand_state rng;
    clave__rand_seed(&rng, h->w->seed ^ 0x67726f);
    struct rand_state *before = world_use_rng(h->w, &rng);
    if (h->nusers > 0 && world_chance(h->w, HTTP_GROUP))
        http_group_draw(&h->group, h);
    world_use_rng(h->w, before);
}

void http_world_draw(struct http_world *h, struct checker *c, struct net *n,
                     struct ensemble *ensemble, int64_t timeout_us)
{
    struct world *w = c->w;
    *h = (struct http_world){.w = w, .server = c->server, .checker = c, .timeout_us = timeout_us};
    struct rand_state signs;
    list_init(&h->calls);
    clave__rand_seed(&h->rng, w->seed ^ 0x68747470);
    h->fault.fire = on_http_fault;
    h->role.fire = on_http_role;
    h->may[0] = h->may[1] = true;
    struct rand_state *before = world_use_rng(w, &h->rng);
    if (world_chance(w, HTTP_SHARE)) {
        h->ngates = (size_t)world_between(w, 1, HTTP_GATES);
        h->nusers = (size_t)world_between(w, 1, HTTP_USERS);
        h->fault_us = world_between(w, timeout_us / 4, 4 * timeout_us);
        h->faults = world_chance(w, 850);
    }
    clave__rand_seed(&signs, w->seed ^ 0x7369676e);
    for (unsigned i = 0; i < HTTP_SITES && h->nusers > 0; i++) {
        http_draw_site(h, i);
        http_draw_depend(&h->sites[i], h, &signs);
    }
    for (unsigned i = 0; i < h->ngates; i++)
        http_draw_gate(h, i, n, ensemble);
    for (unsigned i = 0; i < h->nusers; i++)
        http_draw_user(h, i);
    h->has_team = h->nusers > 0 && world_chance(w, HTTP_TEAM);
    if (h->has_team) {
        http_team_init(&h->team, h);
        h->team.clock = http_clock(w);
    }
    if (h->nusers > 0 && world_chance(w, HTTP_FLEET))
        http_fleet_init(&h->fleet, h);
    http_draw_group(h);
    if (h->has_team || h->fleet.n + h->group.n > 0)
        http_draw_access(h);
    http_balancer_init(&h->balancer, h);
    world_use_rng(w, before);
}

/* ---- a day ----------------------------------------------------------------------------------- */

void http_world_start(struct http_world *h)
{
    struct rand_state *before = world_use_rng(h->w, &h->rng);
    for (size_t i = 0; i < h->ngates; i++)
        gate_start(&h->gates[i]);
    for (size_t i = 0; i < h->nusers; i++)
        http_user_start(&h->users[i]);
    if (h->has_team)
        http_team_start(&h->team);
    http_fleet_start(&h->fleet);
    http_group_start(&h->group);
    http_balancer_start(&h->balancer);
    if (h->has_team && world_chance(h->w, 500))
        world_set(h->w, &h->role, h->w->now + world_wait(h->w, 3 * h->timeout_us));
    if (h->nusers > 0 && h->faults)
        world_set(h->w, &h->fault, h->w->now + world_wait(h->w, h->fault_us));
    world_use_rng(h->w, before);
}

void http_world_evening(struct http_world *h)
{
    struct rand_state *before = world_use_rng(h->w, &h->rng);
    world_clear(h->w, &h->fault);
    world_clear(h->w, &h->role);
    for (size_t i = 0; i < h->ngates; i++)
        gate_heal(&h->gates[i]);
    if (h->has_team)
        http_team_finish(&h->team, world_chance(h->w, 300));
    http_fleet_finish(&h->fleet);
    http_group_finish(&h->group);
    http_balancer_finish(&h->balancer);
    for (size_t i = 0; i < h->nusers; i++)
        http_user_finish(&h->users[i], world_chance(h->w, 400));
    world_use_rng(h->w, before);
}

static bool http_site_is_empty(const struct http_world *h, const struct http_site *s)
{
    const struct node *n = inspector_child(h->server, s->layout.path, 0);
    char path[PATH_SIZE];
    if (!n)
        return true;
    if (s->layout.kind != LOCK_SEMAPHORE)
        return false;
    snprintf(path, sizeof path, "%s/locks", s->layout.path);
    return !inspector_child(h->server, s->layout.queue, 0) && !inspector_child(h->server, path, 0);
}

bool http_world_is_quiet(const struct http_world *h)
{
    for (size_t i = 0; i < h->nusers; i++)
        if (h->users[i].state != USER_GONE)
            return false;
    if (h->has_team && !h->team.gone)
        return false;
    if (h->fleet.n > 0 && (!h->server->server || !http_fleet_is_quiet(&h->fleet)))
        return false;
    if (h->group.n > 0 && (!h->server->server || !http_group_is_quiet(&h->group)))
        return false;
    for (size_t i = 0; i < HTTP_SITES && h->nusers > 0; i++)
        if (!h->server->server || !http_site_is_empty(h, &h->sites[i]))
            return false;
    return true;
}

void http_world_close(struct http_world *h)
{
    for (size_t i = 0; i < h->ngates; i++)
        gate_close(&h->gates[i], 0);
}

bool http_world_is_closed(const struct http_world *h)
{
    for (size_t i = 0; i < h->ngates; i++)
        if (h->gates[i].web)
            return false;
    return true;
}

void http_world_fini(struct http_world *h)
{
    for (size_t i = 0; i < h->nusers; i++)
        http_user_fini(&h->users[i]);
    if (h->has_team)
        http_team_fini(&h->team);
    http_fleet_fini(&h->fleet);
    http_group_fini(&h->group);
    http_balancer_fini(&h->balancer);
    for (size_t i = 0; i < h->ngates; i++)
        gate_fini(&h->gates[i]);
    http_calls_free(&h->calls);
}
