#include "ensemble_member.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ensemble.h"
#include "server/server_internal.h"

static void wake(struct member *m)
{
    int64_t at = m->w->now + world_between(m->w, 0, 50);
    world_set_earlier(m->w, &m->run, at > m->frozen_to ? at : m->frozen_to);
}

static void on_news(void *owner)
{
    wake(owner);
}

static bool leads(const struct member *m)
{
    return m->mode == MEMBER_FOLLOWS && m->of->leading == m->index;
}

static int64_t road_delay(struct member *m)
{
    return m->road.delay_us + world_between(m->w, 0, m->road.jitter_us);
}

/* ---- who was active ------------------------------------------------------------------ */

/* A leader's tracker hears of its own clients at once. */
void member_note_active(struct member *m, int64_t session)
{
    struct active_list *l = &m->touched;
    if (leads(m)) {
        ensemble_touch(m->of, session, 0, m->w->now);
        return;
    }
    for (size_t i = 0; i < l->n; i++)
        if (l->sessions[i] == session)
            return;
    if (l->n < MEMBER_TOUCHED)
        l->sessions[l->n++] = session;
}

/* The leader's ping is answered with who was active since the one before. */
static void on_ping(struct alarm *a)
{
    struct member *m = LIST_ENTRY(a, struct member, ping);
    if (m->mode != MEMBER_FOLLOWS)
        return;
    if (!alarm_is_set(&m->answer)) {
        m->told = m->touched;
        m->touched.n = 0;
        world_set(m->w, &m->answer, m->w->now + road_delay(m));
    }
    world_set(m->w, a, m->w->now + ensemble_ping_interval(m->of));
}

static void on_answer(struct alarm *a)
{
    struct member *m = LIST_ENTRY(a, struct member, answer);
    if (m->mode != MEMBER_FOLLOWS)
        return;
    for (size_t i = 0; i < m->told.n; i++)
        ensemble_touch(m->of, m->told.sessions[i], 0, m->w->now);
}

/* ---- what was committed -------------------------------------------------------------- */

static void apply_to(struct member *m, size_t entries)
{
    const struct ensemble *e = m->of;
    for (; m->applied < entries; m->applied++) {
        const struct log_entry *entry = &e->entries[m->applied];
        replica_apply(&m->replica, entry, clave__buf_bytes(&e->log) + entry->at);
    }
}

static void arm_commit(struct member *m)
{
    if (m->narrivals == 0)
        world_clear(m->w, &m->commit);
    else
        world_set(m->w, &m->commit, m->arrivals[0].at);
}

static void on_commit(struct alarm *a)
{
    struct member *m = LIST_ENTRY(a, struct member, commit);
    size_t due = 0;
    if (m->frozen_to > m->w->now) {
        world_set(m->w, a, m->frozen_to);
        return;
    }
    while (due < m->narrivals && m->arrivals[due].at <= m->w->now)
        apply_to(m, m->arrivals[due++].entries);
    m->narrivals -= due;
    memmove(m->arrivals, m->arrivals + due, m->narrivals * sizeof *m->arrivals);
    arm_commit(m);
    wake(m);
}

void member_commit(struct member *m, size_t entries)
{
    if (m->mode != MEMBER_FOLLOWS)
        return;
    int64_t at = m->w->now + road_delay(m);
    at = at > m->lag_to ? at : m->lag_to;
    if (m->narrivals > 0 && m->arrivals[m->narrivals - 1].at > at)
        at = m->arrivals[m->narrivals - 1].at;
    if (m->narrivals == m->arrivals_cap) {
        m->arrivals_cap = m->arrivals_cap ? 2 * m->arrivals_cap : 16;
        m->arrivals = world_grow(m->arrivals, m->arrivals_cap * sizeof *m->arrivals);
    }
    m->arrivals[m->narrivals++] = (struct arrival){at, entries};
    arm_commit(m);
}

static void forget_arrivals(struct member *m)
{
    m->narrivals = 0;
    arm_commit(m);
}

/* ---- its clients --------------------------------------------------------------------- */

struct net_socket *member_dial_leader(struct member *m)
{
    return net_dial(m->of->net, &m->of->leader->listener, &m->road, (struct net_news){on_news, m});
}

static void accept_all(struct member *m)
{
    struct net_socket *s;
    while ((s = net_accept(m->of->net, &m->listener, (struct net_news){on_news, m})))
        list_push_back(&m->relays, &relay_new(m, s)->link);
}

static void on_run(struct alarm *a)
{
    struct member *m = LIST_ENTRY(a, struct member, run);
    if (m->frozen_to > m->w->now) {
        wake(m);
        return;
    }
    accept_all(m);
    for (struct list *at = m->relays.next, *next; at != &m->relays; at = next) {
        struct relay *r = LIST_ENTRY(at, struct relay, link);
        next = at->next;
        if (!relay_serve(r))
            relay_free(r);
    }
}

static void close_all(struct member *m)
{
    net_stop_listening(m->of->net, &m->listener);
    while (!list_empty(&m->relays))
        relay_free(LIST_ENTRY(m->relays.next, struct relay, link));
    m->touched.n = m->told.n = 0;
    world_clear(m->w, &m->ping);
    world_clear(m->w, &m->answer);
}

/* ---- the leader goes and comes ------------------------------------------------------- */

static void start_process(struct member *m)
{
    m->applied = 0;
    replica_start(&m->replica, &m->of->leader->options, ENSEMBLE_CONFIG);
}

void member_join(struct member *m)
{
    struct ensemble *e = m->of;
    close_all(m);
    forget_arrivals(m);
    if (!m->replica.server)
        start_process(m);
    apply_to(m, e->committed);
    replica_enter(&m->replica, e->epoch);
    m->mode = MEMBER_FOLLOWS;
    m->road.delay_us = leads(m) ? 5 : m->road_us;
    m->road.jitter_us = leads(m) ? 5 : m->road_us;
    m->listener.open = true;
    world_clear(m->w, &m->next);
    world_set(m->w, &m->ping, m->w->now + world_between(m->w, 0, e->tick_ms * MS / 2));
    world_tell(m->w, m->name, "%s in epoch %lld", leads(m) ? "leads" : "follows the leader",
               (long long)e->epoch);
}

/* It has noticed that there is no leader. */
static void leave(struct member *m)
{
    world_tell(m->w, m->name, "has no leader, and closes every connection");
    close_all(m);
    forget_arrivals(m);
    m->mode = MEMBER_DOWN;
    m->frozen_to = 0;
    world_set(m->w, &m->next, m->w->now + world_between(m->w, 1 * MS, m->of->tick_ms * MS));
}

static void hear_again(struct member *m)
{
    world_tell(m->w, m->name, "hears of its leader again");
    m->mode = MEMBER_FOLLOWS;
    member_commit(m, m->of->committed);
    world_set(m->w, &m->ping, m->w->now + road_delay(m));
    wake(m);
}

static void on_next(struct alarm *a)
{
    struct member *m = LIST_ENTRY(a, struct member, next);
    if (m->mode == MEMBER_CUT && m->heals)
        hear_again(m);
    else if (m->mode != MEMBER_DOWN)
        leave(m);
    else if (m->of->leader->server)
        member_join(m);
    else /* the election is not over */
        world_set(m->w, a, m->w->now + m->of->tick_ms * MS / 2);
}

void member_cut(struct member *m, int64_t us, bool heals)
{
    world_tell(m->w, m->name, "is cut off from the leader for %lld ms", (long long)(us / MS));
    m->mode = MEMBER_CUT;
    m->heals = heals;
    forget_arrivals(m);
    world_clear(m->w, &m->ping);
    world_clear(m->w, &m->answer);
    world_set(m->w, &m->next, m->w->now + us);
}

void member_depose(struct member *m, int64_t us)
{
    world_tell(m->w, m->name, "is on a deposed leader's side for %lld ms", (long long)(us / MS));
    apply_to(m, leads(m) ? m->of->committed : m->applied);
    m->mode = MEMBER_DEPOSED;
    forget_arrivals(m);
    world_clear(m->w, &m->ping);
    world_clear(m->w, &m->answer);
    world_set(m->w, &m->next, m->w->now + us);
}

void member_kill(struct member *m, int64_t us)
{
    world_tell(m->w, m->name, "is killed");
    close_all(m);
    forget_arrivals(m);
    replica_end(&m->replica);
    m->mode = MEMBER_DOWN;
    m->frozen_to = m->lag_to = 0;
    world_set(m->w, &m->next, m->w->now + us);
}

void member_freeze(struct member *m, int64_t us)
{
    world_tell(m->w, m->name, "is paused for %lld ms", (long long)(us / MS));
    m->frozen_to = m->w->now + us;
    if (alarm_is_set(&m->run))
        world_set(m->w, &m->run, m->frozen_to);
}

void member_lag(struct member *m, int64_t us)
{
    world_tell(m->w, m->name, "lags by up to %lld ms", (long long)(us / MS));
    m->lag_to = m->w->now + us;
}

void member_heal(struct member *m)
{
    m->frozen_to = m->lag_to = 0;
    if (m->mode != MEMBER_FOLLOWS)
        member_join(m);
    for (size_t i = 0; i < m->narrivals; i++)
        m->arrivals[i].at = m->w->now;
    arm_commit(m);
}

/* ---- life ---------------------------------------------------------------------------- */

void member_init(struct member *m, struct ensemble *e, unsigned index)
{
    struct world *w = e->w;
    memset(m, 0, sizeof *m);
    m->of = e;
    m->w = w;
    m->index = index;
    snprintf(m->name, sizeof m->name, "member%u", index % 10);
    replica_init(&m->replica, w);
    list_init(&m->relays);
    net_listener_init(&m->listener, (struct net_news){on_news, m});
    m->road_us = world_between(w, 20, 2 * MS);
    m->clock = world_clock(w);
    m->run.ring = on_run;
    m->commit.ring = on_commit;
    m->ping.ring = on_ping;
    m->answer.ring = on_answer;
    m->next.ring = on_next;
}

void member_fini(struct member *m)
{
    close_all(m);
    forget_arrivals(m);
    world_clear(m->w, &m->run);
    world_clear(m->w, &m->next);
    replica_end(&m->replica);
    free(m->arrivals);
}
