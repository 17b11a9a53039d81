/* participant.c - a client as shipped, with a lock and perhaps a place in an election. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crowd.h"

/* ---- what it reports --------------------------------------------------------------------------
 */

static size_t participant_index(const struct participant *p)
{
    return (size_t)(p - p->crowd->participants);
}

static void participant_set_connected(struct participant *p, bool connected)
{
    struct crowd *w = p->crowd;
    w->connected += (size_t)connected - (size_t)p->connected;
    p->connected = connected;
    crowd_look(w);
}

static void participant_set_holds(struct participant *p, bool holds)
{
    struct crowd *w = p->crowd;
    w->locks_held += (size_t)holds - (size_t)p->holds;
    p->holds = holds;
    crowd_look(w);
}

static void participant_set_leads(struct participant *p, bool leads)
{
    struct crowd *w = p->crowd;
    w->leaders += (size_t)leads - (size_t)p->leads;
    p->leads = leads;
    crowd_look(w);
}

static void participant_on_state(clave_async_client *c, clave_state state, clave_err why, void *arg)
{
    struct participant *p = arg;
    (void)c;
    (void)why;
    p->crowd->lost += state == CLAVE_STATE_LOST && !p->dead;
    participant_set_connected(p,
                              state == CLAVE_STATE_CONNECTED || state == CLAVE_STATE_RECONNECTED);
}

static void participant_acquire(struct participant *p);

static void participant_on_acquired(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct participant *p = arg;
    (void)m;
    (void)owner;
    if (err == CLAVE_ECLOSED || err == CLAVE_ECANCELED)
        return;
    crowd_require(err == CLAVE_OK);
    participant_set_holds(p, true);
    if (p->crowd->o.hold_ms > 0)
        crowd_put(p->crowd, p->crowd->now + p->crowd->o.hold_ms * 1000, EVENT_HOLD_OVER, p, 0);
}

static void participant_acquire(struct participant *p)
{
    crowd_require(clave_async_mutex_acquire(p->mutex, 0, CLAVE_NEVER, participant_on_acquired, p) ==
                  CLAVE_OK);
}

static void participant_on_lock(clave_async_mutex *m, const clave_mutex_event *e, void *arg)
{
    struct participant *p = arg;
    if (e->kind != CLAVE_MUTEX_LOST)
        return;
    participant_set_holds(p, false);
    crowd_require(clave_async_mutex_release(m, 0, NULL, NULL) == CLAVE_ELOST);
    participant_acquire(p);
}

void participant_release(struct crowd *w, struct participant *p, uint32_t detail)
{
    (void)w;
    (void)detail;
    if (p->dead || !p->holds)
        return;
    participant_set_holds(p, false);
    clave_async_client_tick(p->client, crowd_ms(p->crowd));
    crowd_require(clave_async_mutex_release(p->mutex, 0, NULL, NULL) == CLAVE_OK);
    participant_acquire(p);
    participant_pump(p);
}

static void participant_on_election(clave_async_latch *l, const clave_latch_event *e, void *arg)
{
    (void)l;
    if (e->kind == CLAVE_LATCH_LEADER || e->kind == CLAVE_LATCH_NOT_LEADER)
        participant_set_leads(arg, e->kind == CLAVE_LATCH_LEADER);
}

/* ---- its transport and its timer --------------------------------------------------------------
 */

static void participant_arm(struct participant *p)
{
    int64_t at = clave_async_client_deadline(p->client);
    if (at == CLAVE_NEVER)
        return;
    at = at * 1000 > p->crowd->now ? at * 1000 : p->crowd->now;
    if (at < p->armed) {
        p->armed = at;
        crowd_put(p->crowd, at, EVENT_TIMER, p, 0);
    }
}

void participant_pump(struct participant *p)
{
    for (bool more = !p->dead; more;) {
        unsigned wants = clave_async_client_wants(p->client);
        more = false;
        if (wants & CLAVE_WANT_HANGUP) {
            connection_reset(p);
            clave_async_client_disconnected(p->client, crowd_ms(p->crowd));
            more = true;
        } else if (wants & CLAVE_WANT_DIAL) {
            if (!p->conn.dialling)
                connection_dial(p->crowd, p);
        } else if (wants & CLAVE_WANT_WRITE) {
            more = connection_send(p->crowd, p);
        }
    }
    if (!p->dead)
        participant_arm(p);
}

void participant_timer(struct crowd *w, struct participant *p, uint32_t detail)
{
    (void)w;
    (void)detail;
    if (p->dead || p->crowd->now < p->armed)
        return;
    p->armed = INT64_MAX;
    clave_async_client_tick(p->client, crowd_ms(p->crowd));
    participant_pump(p);
}

/* ---- life -------------------------------------------------------------------------------------
 */

static void participant_hosts(const struct crowd *w, char *out, size_t cap)
{
    for (size_t i = 0, n = 0; i < w->cluster.size; i++)
        n += (size_t)snprintf(out + n, cap - n, "%sm%zu:2181", i ? "," : "", i);
}

static clave_retry participant_backoff(const struct crowd_options *o)
{
    if (o->pause_ms > 0)
        return (clave_retry){.kind = CLAVE_RETRY_FOREVER, .base_ms = (int32_t)o->pause_ms};
    if (o->backoff_ms > 0)
        return (clave_retry){.kind = CLAVE_RETRY_EXPONENTIAL,
                             .base_ms = (int32_t)o->backoff_ms,
                             .max_ms = (int32_t)o->backoff_max_ms};
    return (clave_retry){0};
}

void participant_begin(struct crowd *w, struct participant *p, uint32_t detail)
{
    (void)detail;
    size_t i = participant_index(p);
    char hosts[CROWD_MEMBERS * 12], path[40];
    clave_client_options o = CLAVE_CLIENT_OPTIONS_INIT;
    clave_mutex_options lock = CLAVE_MUTEX_OPTIONS_INIT;
    clave_latch_options election = CLAVE_LATCH_OPTIONS_INIT;
    participant_hosts(w, hosts, sizeof hosts);
    p->armed = INT64_MAX;
    o.hosts = hosts;
    o.session_timeout_ms = (int32_t)w->o.timeout_ms;
    o.reconnect = participant_backoff(&w->o);
    o.seed = clave__rand_u64(&w->rand) | 1;
    o.state_cb = participant_on_state;
    o.state_arg = p;
    crowd_require(clave_async_client_new(&p->client, &o) == CLAVE_OK);

    snprintf(path, sizeof path, "/locks/%zu", i % w->o.locks);
    lock.event_cb = participant_on_lock;
    lock.event_arg = p;
    crowd_require(clave_async_mutex_new(&p->mutex, p->client, path, &lock) == CLAVE_OK);
    clave_async_client_start(p->client, crowd_ms(w));
    participant_acquire(p);
    if (i < w->o.candidates) {
        election.event_cb = participant_on_election;
        election.event_arg = p;
        crowd_require(clave_async_latch_new(&p->latch, p->client, "/leader", &election) ==
                      CLAVE_OK);
        crowd_require(clave_async_latch_start(p->latch) == CLAVE_OK);
    }
    participant_pump(p);
}

void participant_kill(struct participant *p)
{
    struct crowd *w = p->crowd;
    connection_reset(p);
    participant_set_connected(p, false);
    participant_set_holds(p, false);
    participant_set_leads(p, false);
    p->dead = true;
    w->alive--;
    if (--w->lock_users[participant_index(p) % w->o.locks] == 0)
        w->locks_wanted--;
    crowd_look(w);
}

void participant_free(struct participant *p)
{
    p->dead = true;
    connection_reset(p);
    clave_async_latch_free(p->latch);
    clave_async_mutex_free(p->mutex);
    clave_async_client_free(p->client);
    connection_fini(&p->conn);
}
