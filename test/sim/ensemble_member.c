#include "ensemble_member.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ensemble.h"
#include "server/server_internal.h"

static void wake(struct ensemble_member *m)
{
    int64_t at = m->w->now + world_between(m->w, 0, 50);
    world_set_earlier(m->w, &m->run, at > m->frozen_to ? at : m->frozen_to);
}

static void on_socket_event(void *owner)
{
    wake(owner);
}

static bool leads(const struct ensemble_member *m)
{
    return m->mode == MEMBER_FOLLOWS && m->of->leading == m->index;
}

static int64_t road_delay(struct ensemble_member *m)
{
    return m->route.delay_us + world_between(m->w, 0, m->route.jitter_us);
}

/* ---- active sessions ----------------------------------------------------------------- */

/* A leader's tracker hears of its own clients at once. */
void member_note_active(struct ensemble_member *m, int64_t session)
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

/* A connection that is half open ends at the member, too, whoever has its session now. */
static void close_silent(struct ensemble_member *m)
{
    for (struct list *at = m->conns.next, *next; at != &m->conns; at = next) {
        struct member_conn *r = LIST_ENTRY(at, struct member_conn, link);
        next = at->next;
        if (member_conn_is_silent(r))
            member_conn_free(r);
    }
}

/* The leader's ping is answered with who was active since the one before. */
static void on_ping(struct alarm *a)
{
    struct ensemble_member *m = LIST_ENTRY(a, struct ensemble_member, ping);
    if (m->mode != MEMBER_FOLLOWS)
        return;
    if (m->frozen_to <= m->w->now)
        close_silent(m);
    if (!alarm_is_set(&m->answer)) {
        m->told = m->touched;
        m->touched.n = 0;
        world_set(m->w, &m->answer, m->w->now + road_delay(m));
    }
    world_set(m->w, a, m->w->now + ensemble_ping_interval(m->of));
}

static void on_answer(struct alarm *a)
{
    struct ensemble_member *m = LIST_ENTRY(a, struct ensemble_member, answer);
    if (m->mode != MEMBER_FOLLOWS)
        return;
    for (size_t i = 0; i < m->told.n; i++)
        ensemble_touch(m->of, m->told.sessions[i], 0, m->w->now);
}

/* ---- what was committed -------------------------------------------------------------- */

static void apply_to(struct ensemble_member *m, size_t entries)
{
    const struct ensemble *e = m->of;
    for (; m->applied < entries; m->applied++) {
        const struct log_entry *entry = &e->entries[m->applied];
        replica_apply(&m->replica, entry, clave__buf_bytes(&e->log) + entry->at);
    }
}

static void arm_commit(struct ensemble_member *m)
{
    if (m->narrivals == 0)
        world_clear(m->w, &m->commit);
    else
        world_set(m->w, &m->commit, m->arrivals[0].at);
}

static void on_commit(struct alarm *a)
{
    struct ensemble_member *m = LIST_ENTRY(a, struct ensemble_member, commit);
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

void member_commit(struct ensemble_member *m, size_t entries)
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

static void forget_arrivals(struct ensemble_member *m)
{
    m->narrivals = 0;
    arm_commit(m);
}

/* ---- its clients --------------------------------------------------------------------- */

struct net_socket *member_dial_leader(struct ensemble_member *m)
{
    return net_dial(m->of->net, &m->of->leader->listener, &m->route,
                    (struct net_callback){on_socket_event, m});
}

static void accept_all(struct ensemble_member *m)
{
    struct net_socket *s;
    while ((s = net_accept(m->of->net, &m->listener, (struct net_callback){on_socket_event, m})))
        list_push_back(&m->conns, &member_conn_new(m, s)->link);
}

static void on_run(struct alarm *a)
{
    struct ensemble_member *m = LIST_ENTRY(a, struct ensemble_member, run);
    if (m->frozen_to > m->w->now) {
        wake(m);
        return;
    }
    accept_all(m);
    for (struct list *at = m->conns.next, *next; at != &m->conns; at = next) {
        struct member_conn *r = LIST_ENTRY(at, struct member_conn, link);
        next = at->next;
        if (!member_conn_serve(r))
            member_conn_free(r);
    }
}

static void close_all(struct ensemble_member *m)
{
    net_stop_listening(m->of->net, &m->listener);
    while (!list_empty(&m->conns))
        member_conn_free(LIST_ENTRY(m->conns.next, struct member_conn, link));
    m->touched.n = m->told.n = 0;
    world_clear(m->w, &m->ping);
    world_clear(m->w, &m->answer);
}

/* ---- the leader goes and comes ------------------------------------------------------- */

static void start_process(struct ensemble_member *m)
{
    m->applied = 0;
    replica_start(&m->replica, &m->of->leader->options, ENSEMBLE_CONFIG);
}

void member_join(struct ensemble_member *m)
{
    struct ensemble *e = m->of;
    close_all(m);
    forget_arrivals(m);
    if (!m->replica.server)
        start_process(m);
    apply_to(m, e->committed);
    replica_enter(&m->replica, e->epoch);
    m->mode = MEMBER_FOLLOWS;
    m->route.delay_us = leads(m) ? 5 : m->route_us;
    m->route.jitter_us = leads(m) ? 5 : m->route_us;
    m->listener.open = true;
    world_clear(m->w, &m->next);
    world_set(m->w, &m->ping, m->w->now + world_between(m->w, 0, e->tick_ms * MS / 2));
    world_log(m->w, m->name, "%s in epoch %lld", leads(m) ? "leads" : "follows the leader",
              (long long)e->epoch);
}

/* It has noticed that there is no leader. */
static void leave(struct ensemble_member *m)
{
    world_log(m->w, m->name, "has no leader, and closes every connection");
    close_all(m);
    forget_arrivals(m);
    m->mode = MEMBER_DOWN;
    m->frozen_to = 0;
    world_set(m->w, &m->next, m->w->now + world_between(m->w, 1 * MS, m->of->tick_ms * MS));
}

static void hear_again(struct ensemble_member *m)
{
    world_log(m->w, m->name, "is connected to its leader again");
    m->mode = MEMBER_FOLLOWS;
    member_commit(m, m->of->committed);
    world_set(m->w, &m->ping, m->w->now + road_delay(m));
    wake(m);
}

static void on_next(struct alarm *a)
{
    struct ensemble_member *m = LIST_ENTRY(a, struct ensemble_member, next);
    if (m->mode == MEMBER_CUT && m->heals)
        hear_again(m);
    else if (m->mode != MEMBER_DOWN)
        leave(m);
    else if (m->of->leader->server)
        member_join(m);
    else /* the election is not over */
        world_set(m->w, a, m->w->now + m->of->tick_ms * MS / 2);
}

void member_cut(struct ensemble_member *m, int64_t us, bool heals)
{
    world_log(m->w, m->name, "is cut off from the leader for %lld ms", (long long)(us / MS));
    m->mode = MEMBER_CUT;
    m->heals = heals;
    forget_arrivals(m);
    world_clear(m->w, &m->ping);
    world_clear(m->w, &m->answer);
    world_set(m->w, &m->next, m->w->now + us);
}

void member_depose(struct ensemble_member *m, int64_t us)
{
    world_log(m->w, m->name, "is on a deposed leader's side for %lld ms", (long long)(us / MS));
    apply_to(m, leads(m) ? m->of->committed : m->applied);
    m->mode = MEMBER_DEPOSED;
    forget_arrivals(m);
    world_clear(m->w, &m->ping);
    world_clear(m->w, &m->answer);
    world_set(m->w, &m->next, m->w->now + us);
}

void member_kill(struct ensemble_member *m, int64_t us)
{
    world_log(m->w, m->name, "is killed");
    close_all(m);
    forget_arrivals(m);
    replica_end(&m->replica);
    m->mode = MEMBER_DOWN;
    m->frozen_to = m->lag_to = 0;
    world_set(m->w, &m->next, m->w->now + us);
}

void member_freeze(struct ensemble_member *m, int64_t us)
{
    world_log(m->w, m->name, "is paused for %lld ms", (long long)(us / MS));
    m->frozen_to = m->w->now + us;
    if (alarm_is_set(&m->run))
        world_set(m->w, &m->run, m->frozen_to);
}

void member_lag(struct ensemble_member *m, int64_t us)
{
    world_log(m->w, m->name, "lags by up to %lld ms", (long long)(us / MS));
    m->lag_to = m->w->now + us;
}

void member_heal(struct ensemble_member *m)
{
    m->frozen_to = m->lag_to = 0;
    if (m->mode != MEMBER_FOLLOWS)
        member_join(m);
    for (size_t i = 0; i < m->narrivals; i++)
        m->arrivals[i].at = m->w->now;
    arm_commit(m);
}

/* ---- life ---------------------------------------------------------------------------- */

void member_init(struct ensemble_member *m, struct ensemble *e, unsigned index)
{
    struct world *w = e->w;
    memset(m, 0, sizeof *m);
    m->of = e;
    m->w = w;
    m->index = index;
    snprintf(m->name, sizeof m->name, "member%u", index % 10);
    replica_init(&m->replica, w);
    list_init(&m->conns);
    net_listener_init(&m->listener, (struct net_callback){on_socket_event, m});
    m->route_us = world_between(w, 20, 2 * MS);
    m->clock = world_clock(w);
    m->run.fire = on_run;
    m->commit.fire = on_commit;
    m->ping.fire = on_ping;
    m->answer.fire = on_answer;
    m->next.fire = on_next;
}

void member_fini(struct ensemble_member *m)
{
    close_all(m);
    forget_arrivals(m);
    world_clear(m->w, &m->run);
    world_clear(m->w, &m->next);
    replica_end(&m->replica);
    free(m->arrivals);
}
