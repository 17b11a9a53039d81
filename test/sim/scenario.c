#include "scenario.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cache_user.h"
#include "heirs.h"
#include "http/http_world.h"
#include "inspector.h"
#include "observer.h"
#include "runner.h"
#include "witness.h"

enum { MAX_HOSTS = 6, MAX_WITNESSES = 2, LOG_SHOWN = 60 };

struct scenario {
    const struct subset *subset; /* of what is drawn */
    struct world w;
    struct net net;
    struct server_host server;
    struct ensemble ensemble;
    bool has_ensemble; /* and the server is its leader */
    struct checker checker;
    struct nemesis nemesis;
    struct observer observer;
    struct host hosts[MAX_HOSTS];
    struct workload loads[MAX_HOSTS];
    struct workload_options work;
    size_t nhosts;
    struct tree_past past;
    struct witness witnesses[MAX_WITNESSES];
    size_t nwitnesses;
    struct http_world http;
    struct heirs heirs;
    bool unhurried; /* as in production: long timeouts, seconds between requests */
    bool alike;     /* all clients have one seed, a constant of their program */
    int64_t timeout_us;
    int32_t relay_ms; /* as users set it who know the tick; 0: they do not */
    int64_t morning_us;
    int64_t day_us;
    int64_t planned_us; /* as long as it was drawn */
    char settings[200];
};

/* ---- drawing ------------------------------------------------------------------------- */

static void draw_server(struct scenario *s)
{
    static const int32_t ticks[] = {200, 500, 1000, 2000};
    struct world *w = &s->w;
    int32_t tick = s->unhurried ? 2000 : ticks[world_between(w, 0, 3)];
    struct server_options o = {
        .tick_ms = tick,
        .snap_count = (int32_t)world_between(w, 20, 400),
        .snapshot_piece = (int32_t)world_between(w, 1, 40),
        .container_check_ms = (int32_t)world_between(w, 50, world_chance(w, 500) ? 500 : 20000),
    };
    if (w->seed % 4 == 3) /* not drawn: the other seeds stay as they are */
        o.work_a_turn = 1 + w->seed / 4 % 60;
    s->has_ensemble = world_chance(w, 350);
    s->timeout_us = tick * world_between(w, 2, s->unhurried ? 20 : 6) * MS;
    if (s->has_ensemble)
        o = ensemble_options(o);
    server_host_init(&s->server, w, &s->net, &o);
    s->server.clock = world_clock(w);
    s->server.disk.sync_us = world_between(w, 20, 3000);
    if (s->has_ensemble)
        ensemble_init(&s->ensemble, &s->server);
    s->ensemble.timeout_ms = (int32_t)(s->timeout_us / MS);
    s->relay_ms = world_chance(w, 400) ? tick / 2 : 0;
}

/* What kind of lock each is; the mutex most of the time, on which the others stand. */
static void draw_sites(struct scenario *s)
{
    struct world *w = &s->w;
    for (unsigned i = 0; i < LOCKS; i++) {
        int64_t rng = world_between(w, 0, 99);
        enum lock_kind kind = rng < 40   ? LOCK_MUTEX
                              : rng < 60 ? LOCK_RWLOCK
                              : rng < 80 ? LOCK_SEMAPHORE
                                         : LOCK_LATCH;
        struct lock_layout *at = &s->work.layouts[i];
        *at = layout_make(i, kind);
        if (kind == LOCK_SEMAPHORE)
            at->limit = (unsigned)world_between(w, 1, 4);
        if (kind == LOCK_SEMAPHORE && world_chance(w, 300))
            at->limit_path = i ? "/limits/b" : "/limit-a";
    }
}

/* Several leases at a time, where there are as many and none can be taken off the limit. */
static unsigned draw_leases(struct scenario *s)
{
    unsigned most = HOLDS;
    for (unsigned i = 0; i < s->work.locks; i++) {
        const struct lock_layout *at = &s->work.layouts[i];
        if (at->kind == LOCK_SEMAPHORE)
            most = at->limit_path ? 1 : at->limit < most ? at->limit : most;
    }
    return (unsigned)world_between(&s->w, 1, most);
}

static bool all_are_mutexes(const struct workload_options *o)
{
    for (unsigned i = 0; i < o->locks; i++)
        if (o->layouts[i].kind > LOCK_RWLOCK)
            return false;
    return true;
}

static void draw_habits(struct scenario *s)
{
    struct world *w = &s->w;
    struct workload_options *o = &s->work;
    o->most_leases = draw_leases(s);
    o->readers = (unsigned)world_between(w, 200, 800);
    o->bundled = all_are_mutexes(o) && world_chance(w, 300) ? 400 : 0;
    o->session_policy = world_chance(w, 500);
    o->transfers = world_chance(w, 300) ? 400 : 0;
    o->revocable = world_chance(w, 250);
    if (o->revocable && !o->bundled && world_chance(w, 500))
        o->stubborn = 300;
}

static void draw_work(struct scenario *s)
{
    struct world *w = &s->w;
    int64_t pace = s->unhurried ? 50 : 1;
    s->work = (struct workload_options){
        .locks = world_chance(w, 300) ? 2 : 1,
        .actors = (unsigned)world_between(w, 1, world_chance(w, 300) ? ACTORS : 2),
        .hold_us =
            world_between(w, 1 * MS, world_chance(w, 200) ? 2 * s->timeout_us : pace * 60 * MS),
        .rest_us = world_between(w, 1 * MS, world_chance(w, 200) ? s->timeout_us : pace * 100 * MS),
        .writes = (unsigned)world_between(w, 0, 4),
        .forever = (unsigned)world_between(w, 300, 1000),
        .timed = (unsigned)world_between(w, 0, 500),
        .impatient = world_chance(w, 300) ? 150 : 0,
        .restless = world_chance(w, 200) ? 60 : 0,
        .strict = world_chance(w, 150),
        .sleepy = world_chance(w, 200) ? 50 : 0,
        .sleep_us = 4 * s->timeout_us,
        .max_hold_ms = world_chance(w, 150) ? world_between(w, 5, s->timeout_us / MS) : 0,
        .patience_ms = world_between(w, 5, s->timeout_us / MS * 2),
    };
    draw_sites(s);
    draw_habits(s);
    /* Counted from the first of several locks, it has to be long enough to get the last. */
    int64_t least = s->timeout_us / MS / 2;
    if (s->work.bundled > 0 && s->work.max_hold_ms > 0 && s->work.max_hold_ms < least)
        s->work.max_hold_ms = least;
}

/* With random numbers of their own: they change no seed that goes without them. */
static void draw_extras(struct scenario *s)
{
    struct rand_state rng;
    struct workload_options *o = &s->work;
    clave__rand_seed(&rng, ~s->w.seed);
    struct rand_state *before = world_use_rng(&s->w, &rng);
    /* A function ends when it likes: a selector knows no longest hold. */
    if (world_chance(&s->w, 200) && o->max_hold_ms == 0)
        o->selecting = (unsigned)world_between(&s->w, 200, 1000);
    if (world_chance(&s->w, 200)) {
        o->unguarded = (unsigned)world_between(&s->w, 300, 1000);
        o->careless = world_chance(&s->w, 600) ? 400 : 0;
    }
    if (world_chance(&s->w, 150)) {
        o->with_command = (unsigned)world_between(&s->w, 100, 900);
        o->restless = 0; /* who runs a command keeps its lock */
    }
    s->alike = world_chance(&s->w, 150);
    if (!s->has_ensemble && world_chance(&s->w, 300)) {
        o->znode_calls = (unsigned)world_between(&s->w, 10, 80);
        o->znode_rest_us = 6 * s->timeout_us / o->znode_calls;
    }
    o->fences = o->with_command > 0 && world_chance(&s->w, 700);
    o->watchdogs = o->with_command > 0 && world_chance(&s->w, 500);
    world_use_rng(&s->w, before);
}

/* Likewise. Not where a backup is restored: what they saw may be gone then. */
static void draw_witnesses(struct scenario *s)
{
    struct rand_state rng;
    clave__rand_seed(&rng, s->w.seed ^ 0x77697473);
    struct rand_state *before = world_use_rng(&s->w, &rng);
    if (!s->has_ensemble && world_chance(&s->w, 400))
        s->nwitnesses = (size_t)world_between(&s->w, 1, MAX_WITNESSES);
    if (s->nwitnesses > 0)
        tree_past_init(&s->past, &s->server);
    for (size_t i = 0; i < s->nwitnesses; i++)
        witness_init(&s->witnesses[i], &s->server, &s->past, (unsigned)i,
                     (int32_t)(s->timeout_us / MS));
    world_use_rng(&s->w, before);
}

/* Likewise. */
static void draw_caches(struct scenario *s)
{
    struct rand_state rng;
    clave__rand_seed(&rng, s->w.seed ^ 0x63616368);
    struct rand_state *before = world_use_rng(&s->w, &rng);
    s->work.caching = world_chance(&s->w, 250);
    world_use_rng(&s->w, before);
}

/* Likewise. */
static void draw_slots(struct scenario *s)
{
    struct rand_state rng;
    clave__rand_seed(&rng, s->w.seed ^ 0x736c6f74);
    struct rand_state *before = world_use_rng(&s->w, &rng);
    if (world_chance(&s->w, 300)) {
        s->work.slot_limit = (uint32_t)world_between(&s->w, 1, 4);
        s->work.slot_rest_us = world_between(&s->w, 2 * MS, s->timeout_us / 8);
    }
    world_use_rng(&s->w, before);
}

/* Likewise. */
static void draw_keepers(struct scenario *s)
{
    struct rand_state rng;
    clave__rand_seed(&rng, s->w.seed ^ 0x6b656570);
    struct rand_state *before = world_use_rng(&s->w, &rng);
    if (world_chance(&s->w, 250))
        s->work.keeper_rest_us = world_between(&s->w, 2 * MS, s->timeout_us / 8);
    world_use_rng(&s->w, before);
}

/* Likewise. */
static void draw_tally(struct scenario *s)
{
    struct rand_state rng;
    clave__rand_seed(&rng, s->w.seed ^ 0x74616c6c);
    struct rand_state *before = world_use_rng(&s->w, &rng);
    if (world_chance(&s->w, 250))
        s->work.tally_rest_us = world_between(&s->w, 2 * MS, s->timeout_us / 8);
    world_use_rng(&s->w, before);
}

/* Likewise. */
static void draw_registrants(struct scenario *s)
{
    struct rand_state rng;
    clave__rand_seed(&rng, s->w.seed ^ 0x72656769);
    struct rand_state *before = world_use_rng(&s->w, &rng);
    if (world_chance(&s->w, 250))
        s->work.register_rest_us = world_between(&s->w, 2 * MS, s->timeout_us / 8);
    s->work.register_stays = world_chance(&s->w, 500);
    world_use_rng(&s->w, before);
}

/* Likewise. */
static void draw_promises(struct scenario *s)
{
    struct rand_state rng;
    clave__rand_seed(&rng, s->w.seed ^ 0x68616e67);
    struct rand_state *before = world_use_rng(&s->w, &rng);
    if (world_chance(&s->w, 150)) {
        s->work.depending = (unsigned)world_between(&s->w, 200, 1000);
        s->work.promise_ms = world_between(&s->w, 2, s->timeout_us / MS);
    }
    world_use_rng(&s->w, before);
}

static void draw_others(struct scenario *s)
{
    draw_slots(s);
    draw_keepers(s);
    draw_tally(s);
    draw_registrants(s);
    draw_witnesses(s);
    http_world_draw(&s->http, &s->checker, &s->net, s->has_ensemble ? &s->ensemble : NULL,
                    s->timeout_us);
    heirs_draw(&s->heirs, &s->checker, &s->hosts[0], s->timeout_us);
}

static void draw_host(struct scenario *s, size_t i)
{
    struct world *w = &s->w;
    struct host *h = &s->hosts[i];
    host_init(h, w, &s->net, (unsigned)i);
    h->servers[0] = &s->server.listener;
    for (unsigned k = 0; s->has_ensemble && k < s->ensemble.n; k++)
        h->servers[k] = &s->ensemble.members[k].listener;
    h->options = (struct host_options){
        .session_timeout_ms = (int32_t)(s->timeout_us / MS),
        .relay_interval_ms = s->relay_ms,
        .servers = s->has_ensemble ? s->ensemble.n : 1,
        .slice_us = world_chance(w, 500) ? 0 : 1500,
        .look_us =
            world_chance(w, 250) ? world_between(w, s->timeout_us / 40, s->timeout_us / 4) : 0,
        .seed = s->alike ? 1 : 0,
    };
    h->clock = world_clock(w);
    /* Sessions of a few round trips keep nobody busy but themselves. */
    h->route.delay_us = world_between(w, 20, world_chance(w, 200) ? s->timeout_us / 100 : 2 * MS);
    h->route.jitter_us = world_between(w, 0, 2 * h->route.delay_us);
    h->route.pieces = world_chance(w, 400);
    workload_init(&s->loads[i], h, &s->checker, &s->work);
    s->checker.loads[s->checker.nloads++] = &s->loads[i];
}

/* Likewise. Witnesses and users of HTTP do not authenticate. */
static void draw_rule(struct scenario *s)
{
    struct rand_state rng;
    clave__rand_seed(&rng, s->w.seed ^ 0x61757468);
    struct rand_state *before = world_use_rng(&s->w, &rng);
    if (world_chance(&s->w, 300) && !s->has_ensemble && s->nwitnesses + s->http.nusers == 0) {
        s->server.options.require_auth = "digest,uid";
        for (size_t i = 0; i < s->nhosts; i++)
            s->hosts[i].options.identified = true;
        s->nemesis.mean_us[FAULT_INTRUDE] =
            world_between(&s->w, s->timeout_us / 8, s->timeout_us * 2);
    }
    world_use_rng(&s->w, before);
}

static uint64_t at_most(uint64_t drawn, uint64_t limit)
{
    return limit > 0 && limit < drawn ? limit : drawn;
}

/* Whoever is left out was drawn, too: so the others are who they were. */
static void leave_out(struct scenario *s)
{
    const uint64_t *most = s->subset->sizes;
    s->nhosts = (size_t)at_most(s->nhosts, most[SIZE_CLIENTS]);
    s->checker.nloads = s->nhosts;
    s->work.actors = (unsigned)at_most(s->work.actors, most[SIZE_ACTORS]);
    s->work.locks = (unsigned)at_most(s->work.locks, most[SIZE_LOCKS]);
    s->day_us = (int64_t)at_most((uint64_t)(s->day_us / MS), most[SIZE_DAY_MS]) * MS;
}

static void tell_sizes(const struct scenario *s, uint64_t *sizes)
{
    sizes[SIZE_CLIENTS] = s->nhosts;
    sizes[SIZE_ACTORS] = s->work.actors;
    sizes[SIZE_LOCKS] = s->work.locks;
    sizes[SIZE_DAY_MS] = (uint64_t)(s->day_us / MS);
}

/* Everything that is not drawn yet, and no part of the plan, comes otherwise. */
static void shake(struct scenario *s)
{
    struct world *w = &s->w;
    clave__rand_seed(&w->rand, w->seed + (s->subset->salt << 32));
    for (size_t i = 0; i < s->nhosts; i++)
        clave__rand_seed(&s->hosts[i].rng, world_u64(w));
}

static void draw(struct scenario *s)
{
    struct world *w = &s->w;
    s->unhurried = w->seed % 10 >= 7;
    net_init(&s->net, w);
    draw_server(s);
    draw_work(s);
    draw_extras(s);
    draw_caches(s);
    draw_promises(s);
    checker_init(&s->checker, w, &s->server);
    s->checker.grace_us = 2 * s->timeout_us;
    s->checker.slots.may_be_old = s->has_ensemble;
    s->nhosts = (size_t)world_between(w, 2, MAX_HOSTS);
    for (size_t i = 0; i < s->nhosts; i++)
        draw_host(s, i);
    s->planned_us = s->day_us = s->timeout_us * world_between(w, 4, 12);
    s->morning_us = world_between(w, 0, SECOND);
    leave_out(s);
    nemesis_init(&s->nemesis, &s->server, s->hosts, s->nhosts);
    s->nemesis.subset = s->subset;
    s->nemesis.ensemble = s->has_ensemble ? &s->ensemble : NULL;
    s->nemesis.checker = &s->checker;
    s->nemesis.timeout_us = s->timeout_us;
    s->nemesis.runs_commands = s->work.with_command > 0;
    nemesis_draw(&s->nemesis);
    s->checker.restores = s->nemesis.mean_us[FAULT_RESTORE] > 0;
    if (s->checker.restores) /* no longer than its sessions need */
        s->server.options.max_session_ms = (int32_t)(s->timeout_us / MS);
    else
        draw_others(s);
    draw_rule(s);
    if (s->subset->salt > 0)
        shake(s);
    snprintf(
        s->settings, sizeof s->settings,
        "%s, %zu clients%s with %u actors, %s%s%s, tick %d ms, timeout %lld ms, day of %lld ms",
        s->has_ensemble ? "ensemble" : "one server", s->nhosts, s->alike ? " of one seed" : "",
        s->work.actors, lock_kind_name(s->work.layouts[0].kind), s->work.locks > 1 ? " and " : "",
        s->work.locks > 1 ? lock_kind_name(s->work.layouts[1].kind) : "",
        (int)s->server.options.tick_ms, (long long)(s->timeout_us / MS),
        (long long)(s->day_us / MS));
    world_log(w, "scenario", "%s", s->settings);
}

/* ---- running ------------------------------------------------------------------------- */

static void look(struct scenario *s)
{
    checker_look(&s->checker);
    http_world_look(&s->http);
    heirs_look(&s->heirs);
    if (s->observer.record)
        observer_look(&s->observer);
}

static void run_to(struct scenario *s, int64_t end)
{
    while (!s->w.broken && world_step(&s->w, end))
        look(s);
}

/* Until `is_done`, which has to be before `limit` has passed. */
static void run_until(struct scenario *s, bool (*is_done)(const struct scenario *s), int64_t limit,
                      const char *invariant)
{
    int64_t end = s->w.now + limit;
    while (!s->w.broken && !is_done(s)) {
        if (s->w.now >= end) {
            world_break(&s->w, invariant, "it is not so %lld ms after the last fault",
                        (long long)(limit / MS));
            return;
        }
        if (world_step(&s->w, end))
            look(s);
    }
}

/* What an actor may need for one hold once nothing fails. */
static int64_t longest_hold(const struct scenario *s)
{
    int64_t pieces = 6 * (s->work.hold_us + s->work.rest_us);
    int64_t sleep = s->work.sleepy ? 6 * s->work.sleep_us : 0;
    int64_t waits = s->work.stubborn ? 12 * s->work.patience_ms * MS : 0;
    int64_t command = s->work.with_command ? 24 * s->work.hold_us + 8 * s->timeout_us : 0;
    int64_t hangs = s->work.depending ? 24 * s->work.promise_ms * MS + s->timeout_us : 0;
    int64_t dozes = s->work.careless ? 6 * s->timeout_us * s->work.writes : 0;
    return dozes + hangs + command + sleep + waits + pieces * (s->work.writes + 3) + 200 * MS;
}

/* After a restore nothing is granted for as long as a session lasts at most. */
static int64_t restore_quiet(const struct scenario *s)
{
    return s->nemesis.mean_us[FAULT_RESTORE] > 0 ? 2 * s->timeout_us : 0;
}

static bool all_served(const struct scenario *s)
{
    for (size_t i = 0; i < s->nhosts; i++)
        if (!workload_is_done(&s->loads[i]))
            return false;
    return true;
}

static bool all_ended(const struct scenario *s)
{
    for (size_t i = 0; i < s->nhosts; i++)
        if (s->hosts[i].client)
            return false;
    return heirs_are_closed(&s->heirs);
}

static bool nothing_is_left(const struct scenario *s)
{
    struct server_stats st = inspector_stats(&s->server);
    return st.sessions == 0 && st.connections == 0 && st.ephemerals == 0;
}

/* Values that nobody could take back, whose leaders lost their nodes: they go with the session. */
static size_t stale_values(const struct scenario *s)
{
    size_t n = 0;
    for (unsigned i = 0; i < s->work.locks; i++) {
        char path[PATH_SIZE];
        snprintf(path, sizeof path, "%s-value", s->work.layouts[i].path);
        n += s->work.layouts[i].kind == LOCK_LATCH && inspector_has_node(&s->server, path, 0);
    }
    return n;
}

static bool all_caches_are_right(const struct scenario *s)
{
    for (size_t i = 0; i < s->nhosts; i++)
        if (!cache_user_is_right(&s->loads[i]))
            return false;
    return true;
}

static bool all_instances_are_right(const struct scenario *s)
{
    char why[200] = "";
    for (size_t i = 0; i < s->nhosts && !why[0]; i++)
        registrant_tell(&s->loads[i], why, sizeof why);
    return why[0] == '\0';
}

static void tell_caches(struct scenario *s)
{
    char why[200];
    for (size_t i = 0; i < s->nhosts; i++) {
        cache_user_tell(&s->loads[i], why, sizeof why);
        if (why[0])
            world_log(&s->w, s->hosts[i].name, "its cache: %s", why);
        registrant_tell(&s->loads[i], why, sizeof why);
        if (why[0])
            world_log(&s->w, s->hosts[i].name, "instances: %s", why);
    }
}

/* For want of memory a server is not told to forget a watch, which stays until its event; and one
 * on a shared limit, or on the value of an election, may have none. */
static size_t stale_watches(const struct scenario *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->nhosts; i++)
        for (unsigned k = 0; k < s->work.locks && s->hosts[i].allocator.refused > 0; k++)
            n += s->work.layouts[k].limit_path || s->work.layouts[k].kind == LOCK_LATCH ||
                 s->work.caching || s->work.slot_limit > 0 || s->work.keeper_rest_us > 0 ||
                 s->work.register_rest_us > 0;
    return n;
}

static bool no_node_is_left(const struct scenario *s)
{
    struct server_stats st = inspector_stats(&s->server);
    size_t watches = s->has_ensemble ? ensemble_watches(&s->ensemble) : st.watches;
    return st.ephemerals == stale_values(s) && watches <= stale_watches(s);
}

static bool heirs_are_served(const struct scenario *s)
{
    return heirs_are_done(&s->heirs);
}

static bool http_is_quiet(const struct scenario *s)
{
    return http_world_is_quiet(&s->http);
}

static bool http_is_closed(const struct scenario *s)
{
    return http_world_is_closed(&s->http);
}

static void morning(struct scenario *s)
{
    if (s->has_ensemble)
        ensemble_start(&s->ensemble);
    else
        server_host_start(&s->server);
    for (size_t i = 0; i < s->nhosts; i++)
        host_start(&s->hosts[i]);
    for (size_t i = 0; i < s->nwitnesses; i++)
        witness_start(&s->witnesses[i]);
    if (s->http.nusers > 0)
        http_world_start(&s->http);
    heirs_start(&s->heirs);
    run_to(s, s->w.now + s->morning_us);
    if (!s->w.broken)
        nemesis_begin(&s->nemesis, s->planned_us);
}

static void evening(struct scenario *s)
{
    nemesis_end(&s->nemesis);
    s->checker.calm_from = s->w.now + s->checker.grace_us;
    for (size_t i = 0; i < s->nhosts; i++)
        workload_finish(&s->loads[i]);
    for (size_t i = 0; i < s->nwitnesses; i++)
        witness_leave(&s->witnesses[i]);
    if (s->http.nusers > 0)
        http_world_evening(&s->http);
    heirs_evening(&s->heirs);
    int64_t expiry = 4 * s->timeout_us + 4 * SECOND + restore_quiet(s);
    int64_t patience = 12 * s->work.patience_ms * MS;
    int64_t turns = (int64_t)(s->nhosts * s->work.actors) * longest_hold(s);
    run_until(s, all_served, 2 * expiry + patience + turns, "everyone is served in the end");
    run_until(s, heirs_are_served, 4 * expiry, "everyone is served in the end");
    run_until(s, all_caches_are_right, 2 * expiry, "a cache equals the tree in the end");
    run_until(s, all_instances_are_right, 2 * expiry,
              "after quiet, instances = living registrants");
    if (s->w.broken)
        tell_caches(s);
    for (size_t i = 0; i < s->nhosts && !s->w.broken; i++) {
        workload_put_away(&s->loads[i]);
        host_wake(&s->hosts[i]);
    }
    if (!s->w.broken)
        heirs_put_away(&s->heirs);
    run_until(s, http_is_quiet, 8 * expiry, "what a silent client held is given back");
    http_world_close(&s->http);
    run_until(s, http_is_closed, 2 * expiry, "a gate that closes ends");
    run_until(s, no_node_is_left, 2 * expiry, "no node and no watch is left");
}

static void night(struct scenario *s)
{
    for (size_t i = 0; i < s->nhosts; i++)
        host_close(&s->hosts[i]);
    heirs_close(&s->heirs);
    int64_t expiry = 4 * s->timeout_us + 12 * SECOND + restore_quiet(s);
    run_until(s, all_ended, expiry, "a client that closes ends");
    run_until(s, nothing_is_left, expiry, "no session and no connection is left");
    if (!s->w.broken)
        checker_count(&s->checker);
}

/* ---- the end ------------------------------------------------------------------------- */

static void count(struct scenario *s, struct totals *t)
{
    t->seeds = 1;
    t->traces = s->w.trace;
    t->virtual_ms = (uint64_t)(s->w.now / MS);
    t->steps = s->w.steps;
    t->requests = s->server.stats.requests;
    t->starts = s->server.stats.starts;
    t->torn_tails = s->server.stats.torn_tails;
    t->overlaps = s->checker.overlaps;
    for (size_t i = 0; i < s->nwitnesses; i++) {
        t->witnessed_answers += s->witnesses[i].answers;
        t->witnessed_events += s->witnesses[i].events;
    }
    for (size_t i = 0; i < s->nhosts; i++) {
        const uint64_t *from = (const uint64_t *)&s->loads[i].stats;
        for (size_t k = 0; k < sizeof t->work / sizeof *from; k++)
            ((uint64_t *)&t->work)[k] += from[k];
    }
    for (int i = 0; i < FAULTS; i++)
        t->faults[i] = s->nemesis.count[i];
    for (size_t i = 0; i < s->nhosts; i++) {
        t->faults[FAULT_MESSAGE] += s->hosts[i].triggered;
        t->faults[FAULT_REFUSE_WATCHES] += s->hosts[i].refused;
        t->faults[FAULT_NO_MEMORY] += s->hosts[i].allocator.refused_ever;
    }
}

static void tell_violation(const struct scenario *s, bool aloud)
{
    const struct world *w = &s->w;
    printf("\nseed %" PRIu64 " BREAKS: %s\n    %s\n", w->seed, w->broken, w->why);
    printf("    %s\n", s->settings);
    if (!aloud) {
        printf("the last of %zu events (ms, who, what):\n", w->nlog);
        world_print_log(w, LOG_SHOWN);
    }
    printf("replay: ");
    subset_print_command(w->seed, w->drift_ppm, s->subset);
    printf(" --trace\n\n");
}

static void clean_up(struct scenario *s)
{
    for (size_t i = 0; i < s->nhosts; i++) {
        host_fini(&s->hosts[i]);
        runners_fini(&s->loads[i]);
    }
    for (size_t i = 0; i < s->nwitnesses; i++)
        witness_fini(&s->witnesses[i]);
    heirs_fini(&s->heirs);
    if (s->nwitnesses > 0)
        tree_past_fini(&s->past);
    if (s->http.nusers > 0)
        http_world_fini(&s->http);
    if (s->has_ensemble)
        ensemble_fini(&s->ensemble);
    server_host_fini(&s->server);
    net_fini(&s->net);
    checker_fini(&s->checker);
    nemesis_fini(&s->nemesis);
    world_fini(&s->w);
}

static void observe(struct scenario *s, struct recording *r)
{
    s->observer = (struct observer){.record = r,
                                    .w = &s->w,
                                    .server = &s->server,
                                    .ensemble = s->has_ensemble ? &s->ensemble : NULL,
                                    .hosts = s->hosts,
                                    .nhosts = s->nhosts};
    r->timeout_us = s->timeout_us;
    snprintf(r->settings, sizeof r->settings, "%s", s->settings);
    observer_begin(&s->observer);
}

static void live_through(struct scenario *s)
{
    morning(s);
    run_to(s, s->w.now + s->day_us);
    if (!s->w.broken)
        evening(s);
    if (!s->w.broken)
        night(s);
    if (!s->w.broken)
        server_host_end(&s->server, SERVER_STOPPED);
}

void scenario_play(const struct play *p, struct outcome *out)
{
    static const struct subset all;
    static struct scenario s;
    memset(&s, 0, sizeof s);
    s.subset = p->subset ? p->subset : &all;
    memset(out, 0, sizeof *out);
    world_init(&s.w, p->seed);
    s.w.aloud = p->aloud;
    s.w.drift_ppm = p->drift_ppm;
    draw(&s);
    tell_sizes(&s, out->sizes);
    s.nemesis.happened = &out->happened;
    if (p->record)
        observe(&s, p->record);
    live_through(&s);
    out->broken = s.w.broken;
    if (out->broken && !p->quiet)
        tell_violation(&s, p->aloud);
    if (p->record)
        observer_end(&s.observer, &s.nemesis);
    out->trace = s.w.trace;
    count(&s, &out->totals);
    clean_up(&s);
}

/* ---- totals -------------------------------------------------------------------------- */

void totals_add(struct totals *t, const struct totals *more)
{
    uint64_t *to = (uint64_t *)t;
    const uint64_t *from = (const uint64_t *)more;
    for (size_t i = 0; i < sizeof *t / sizeof *to; i++)
        to[i] += from[i];
}

void totals_print(const struct totals *t)
{
    const struct workload_stats *k = &t->work;
    printf("%" PRIu64 " seeds (trace %016" PRIx64 "), %.1f simulated hours, %" PRIu64
           " requests at the server\n",
           t->seeds, t->traces, (double)t->virtual_ms / 3600e3, t->requests);
    printf("%" PRIu64 " acquires: %" PRIu64 " granted, %" PRIu64 " not in time, %" PRIu64
           " cancelled; %" PRIu64 " grants lost, %" PRIu64 " of them by silence\n",
           k->acquires, k->grants, k->busy, k->canceled, k->losses, k->silent);
    printf("guarded writes: %" PRIu64 " done, %" PRIu64 " refused, %" PRIu64 " unknown\n",
           k->writes, k->refused, k->unknown);
    printf("%" PRIu64 " asked to let go, %" PRIu64 " leaderships transferred, %" PRIu64
           " writes turned into reads, %" PRIu64 " refused for want of numbers\n",
           k->asked, k->transferred, k->downgraded, k->exhausted);
    printf("unguarded writes: %" PRIu64 ", %" PRIu64 " of them late; %" PRIu64 " updates lost\n",
           k->unguarded, k->late, k->updates_lost);
    printf("%" PRIu64 " commands: %" PRIu64 " ended by their guardians, %" PRIu64
           " by their holders, %" PRIu64 " out of the hands of both, %" PRIu64
           " given up since their work was ill or silent; %" PRIu64 " fences; %" PRIu64
           " machines reset by their watchdogs\n",
           k->commands, k->ended, k->swept, k->out_of_hands, k->unhealthy, k->fences, k->resets);
    printf("%" PRIu64 " calls of znodes; %" PRIu64 " histories too long to be decided\n",
           k->znode_calls, k->undecided);
    printf("slots: %" PRIu64 " taken, %" PRIu64 " given or broken\n", k->slots_taken,
           k->slots_given);
    printf("witnesses: %" PRIu64 " answers, %" PRIu64 " events\n", t->witnessed_answers,
           t->witnessed_events);
    if (t->overlaps > 0)
        printf("%" PRIu64 " looks at holds that were valid by their clocks only\n", t->overlaps);
    printf("faults:");
    for (int i = 0; i < FAULTS; i++)
        printf("%s %" PRIu64 " %s", i ? "," : "", t->faults[i], fault_name((enum fault)i));
    printf("; %" PRIu64 " torn log tails at %" PRIu64 " recoveries\n", t->torn_tails,
           t->starts - t->seeds);
}
