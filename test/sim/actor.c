#include "actor.h"

#include <stdio.h>
#include <string.h>

#include "checker.h"
#include "inspector.h"

static struct world *world_of(const struct actor *a)
{
    return a->host->w;
}

bool actor_is_valid(const struct actor *a)
{
    return a->believes && clave_mutex_valid_for(a->mutex, a->owner, host_clock(a->host), 1);
}

/* ---- what an actor does next, and when ----------------------------------------------- */

static void later(struct actor *a, int64_t mean)
{
    a->due = false;
    world_set(world_of(a), &a->alarm, world_of(a)->now + world_wait(world_of(a), mean));
}

static void on_alarm(struct alarm *alarm)
{
    struct actor *a = LIST_ENTRY(alarm, struct actor, alarm);
    a->due = true;
    host_wake(a->host);
}

void actor_rest(struct actor *a)
{
    a->state = a->load->ending ? ACTOR_DONE : ACTOR_RESTING;
    if (!a->load->ending)
        later(a, a->load->o->rest_us);
}

/* Now, in the callback, or in a while: both are what users do. */
static void go_on(struct actor *a, int64_t mean)
{
    if (a->load->ending)
        actor_rest(a);
    else if (world_chance(world_of(a), 250))
        actor_decide(a);
    else
        later(a, mean);
}

void actor_answered(struct actor *a, const char *what)
{
    if (a->calling)
        world_break(world_of(a), "no callback inside the call that started it", "%s: %s", a->name,
                    what);
    if (a->calls_out == 0)
        world_break(world_of(a), "each request completes exactly once", "%s: %s again", a->name,
                    what);
    else
        a->calls_out--;
}

bool actor_started(struct actor *a, clave_err err, const char *what)
{
    a->calling = false;
    if (err == CLAVE_OK) {
        a->calls_out++;
        return true;
    }
    world_tell(world_of(a), a->name, "%s: %s", what, clave_err_name(err));
    return false;
}

void actor_unexpected(struct actor *a, const char *what, clave_err err)
{
    if (err == CLAVE_ENOMEM && a->host->purse.refused > 0)
        return;
    world_break(world_of(a), "each call ends as its header says", "%s: %s gives %s", a->name, what,
                clave_err_name(err));
}

void actor_hold_on(struct actor *a)
{
    bool given_up = a->state == ACTOR_LEAVING; /* the mutex was freed meanwhile */
    a->state = ACTOR_HOLDING;
    if (given_up || a->load->ending)
        actor_rest(a);
    else
        go_on(a, a->load->o->hold_us / 4);
}

/* ---- giving back --------------------------------------------------------------------- */

static void on_released(clave_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct actor *a = arg;
    (void)m;
    (void)owner;
    actor_answered(a, "release");
    if (err != CLAVE_OK && err != CLAVE_ECLOSED)
        actor_unexpected(a, "release", err);
    bool sure = err == CLAVE_OK && clave_client_is_connected(a->host->client) &&
                clave_client_session_id(a->host->client) == a->session;
    const struct server_host *server = a->load->checker->server;
    if (sure && server->server && inspector_has_node(server, a->node, a->session))
        world_break(world_of(a), "a confirmed release has removed the node", "%s: %s stands",
                    a->name, a->node);
    actor_rest(a);
}

static void release_lost(struct actor *a)
{
    a->lost = false;
    clave_err err = clave_mutex_release(a->mutex, a->owner, on_released, a);
    if (err != CLAVE_ELOST && err != CLAVE_EMAXHOLD)
        actor_unexpected(a, "release of what was lost", err);
    actor_rest(a);
}

void actor_release(struct actor *a)
{
    if (a->lost) {
        release_lost(a);
        return;
    }
    bool sure = world_chance(world_of(a), 400);
    world_tell(world_of(a), a->name, "releases%s", sure ? " and waits for it" : "");
    a->believes = false;
    a->calling = true;
    clave_err err =
        clave_mutex_release(a->mutex, a->owner, sure ? on_released : NULL, sure ? a : NULL);
    a->calling = false;
    if (err != CLAVE_OK)
        actor_unexpected(a, "release", err);
    if (err == CLAVE_OK && sure) {
        a->calls_out++;
        a->state = ACTOR_LEAVING;
        return;
    }
    actor_rest(a);
}

/* ---- holding ------------------------------------------------------------------------- */

/* Reentrant: once more, and that one given back at once. */
static void on_nested(clave_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct actor *a = arg;
    actor_answered(a, "nested acquire");
    if (err != CLAVE_OK && err != CLAVE_ECLOSED && err != CLAVE_ECANCELED)
        actor_unexpected(a, "nested acquire", err);
    if (a->state != ACTOR_LEAVING && !a->load->ending)
        (void)clave_mutex_release(m, owner, NULL, NULL);
    actor_hold_on(a);
}

static void nest(struct actor *a)
{
    a->calling = true;
    clave_err err = clave_mutex_acquire(a->mutex, a->owner, CLAVE_TRY, on_nested, a);
    if (actor_started(a, err, "nested acquire"))
        a->state = ACTOR_READING;
    else
        actor_release(a);
}

static void act_as_holder(struct actor *a)
{
    if (a->lost)
        actor_release(a);
    else if (a->has_value)
        increment_write(a);
    else if (a->writes_left > 0)
        increment_read(a);
    else if (world_chance(world_of(a), 30))
        nest(a);
    else
        actor_release(a);
}

static void granted(struct actor *a, clave_mutex *m)
{
    clave_grant g;
    if (!clave_mutex_grant(m, a->owner, &g)) {
        actor_unexpected(a, "grant after acquire", CLAVE_ENOTHELD);
        return;
    }
    a->load->stats.grants++;
    a->state = ACTOR_HOLDING;
    a->believes = true;
    a->lost = a->has_value = false;
    a->token = g.token;
    a->granted_ms = host_clock(a->host);
    a->session = g.session_id;
    snprintf(a->node, sizeof a->node, "%s", g.node);
    a->writes_left = (unsigned)world_between(world_of(a), 0, a->load->o->writes);
    world_tell(world_of(a), a->name, "holds %s, token %lld, for %lld ms",
               workload_lock_path(a->lock), (long long)g.token,
               (long long)(g.deadline - host_clock(a->host)));
    checker_granted(a->load->checker, a, &g);
    if (world_chance(world_of(a), a->load->o->sleepy))
        later(a, a->load->o->sleep_us);
    else
        go_on(a, a->load->o->hold_us);
}

/* ---- acquiring ----------------------------------------------------------------------- */

static void on_acquired(clave_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct actor *a = arg;
    (void)owner;
    actor_answered(a, "acquire");
    if (err == CLAVE_OK) {
        granted(a, m);
        return;
    }
    world_tell(world_of(a), a->name, "acquire: %s", clave_err_name(err));
    bool early = a->deadline != CLAVE_TRY && host_clock(a->host) < a->deadline;
    if (err == CLAVE_EBUSY && early)
        actor_unexpected(a, "acquire before its deadline", err);
    else if (err == CLAVE_ECANCELED && !a->canceled)
        actor_unexpected(a, "acquire that was not cancelled", err);
    else if (err != CLAVE_EBUSY && err != CLAVE_ECANCELED && err != CLAVE_ECLOSED)
        actor_unexpected(a, "acquire", err);
    a->load->stats.busy += err == CLAVE_EBUSY;
    a->load->stats.canceled += err == CLAVE_ECANCELED;
    actor_rest(a);
}

void actor_on_event(struct actor *a, const clave_mutex_event *ev)
{
    struct workload *l = a->load;
    switch (ev->kind) {
    case CLAVE_MUTEX_QUEUED:
        world_tell(world_of(a), a->name, "%zu before it", ev->ahead);
        checker_queued(l->checker, a);
        break;
    case CLAVE_MUTEX_NEXT:
    case CLAVE_MUTEX_HELD:
    case CLAVE_MUTEX_ASKED:
        break;
    case CLAVE_MUTEX_LOST:
        world_tell(world_of(a), a->name, "LOST %s by %s", workload_lock_path(a->lock),
                   clave_err_name(ev->why));
        if (!a->believes)
            world_break(world_of(a), "LOST comes once for a hold", "%s holds nothing", a->name);
        l->stats.losses++;
        a->believes = false;
        a->lost = true;
        if (a->state == ACTOR_HOLDING)
            go_on(a, l->o->rest_us / 4);
        break;
    }
}

static int64_t draw_deadline(struct actor *a)
{
    const struct workload_options *o = a->load->o;
    struct world *w = world_of(a);
    int64_t dice = world_between(w, 0, 999);
    if (dice < o->forever)
        return CLAVE_NEVER;
    if (dice < o->forever + o->timed)
        return host_clock(a->host) + 1 + world_wait(w, o->patience_ms);
    return CLAVE_TRY;
}

static void ask(struct actor *a)
{
    struct workload *l = a->load;
    a->lock = (unsigned)world_between(world_of(a), 0, (int64_t)l->o->locks - 1);
    a->mutex = workload_mutex(l, a->lock);
    if (!a->mutex) {
        actor_unexpected(a, "mutex", CLAVE_ENOMEM);
        actor_rest(a);
        return;
    }
    a->deadline = draw_deadline(a);
    a->canceled = false;
    l->stats.acquires++;
    checker_asked(l->checker, a);
    world_tell(world_of(a), a->name, "asks for %s%s", workload_lock_path(a->lock),
               a->deadline == CLAVE_NEVER ? ""
               : a->deadline == CLAVE_TRY ? ", if free"
                                          : ", in time");
    a->calling = true;
    clave_err err = clave_mutex_acquire(a->mutex, a->owner, a->deadline, on_acquired, a);
    if (!actor_started(a, err, "acquire")) {
        if (err != CLAVE_ECLOSED)
            actor_unexpected(a, "acquire", err);
        actor_rest(a);
        return;
    }
    a->state = ACTOR_WAITING;
    if (world_chance(world_of(a), l->o->impatient))
        later(a, l->o->patience_ms * MS);
}

static void cancel(struct actor *a)
{
    a->canceled = true;
    a->calling = true;
    world_tell(world_of(a), a->name, "cancels");
    clave_err err = clave_mutex_cancel(a->mutex, a->owner);
    a->calling = false;
    if (err != CLAVE_OK)
        actor_unexpected(a, "cancel", err);
}

/* ---- what next ----------------------------------------------------------------------- */

static void act_when_rested(struct actor *a)
{
    struct workload *l = a->load;
    if (l->day_is_over) {
        a->state = ACTOR_DONE;
        return;
    }
    if (l->mutexes[a->lock] && world_chance(world_of(a), l->o->restless)) {
        world_tell(world_of(a), a->name, "frees the mutex of %s", workload_lock_path(a->lock));
        workload_free_mutex(l, a->lock);
    }
    if (world_chance(world_of(a), 20))
        workload_list(l, a->lock);
    ask(a);
}

void actor_decide(struct actor *a)
{
    world_clear(world_of(a), &a->alarm);
    a->due = false;
    switch (a->state) {
    case ACTOR_RESTING:
        act_when_rested(a);
        break;
    case ACTOR_WAITING:
        if (!a->canceled)
            cancel(a);
        break;
    case ACTOR_HOLDING:
        act_as_holder(a);
        break;
    case ACTOR_DONE:
    case ACTOR_READING:
    case ACTOR_WRITING:
    case ACTOR_LEAVING:
        break;
    }
}

/* ---- life ---------------------------------------------------------------------------- */

void actor_abandon(struct actor *a)
{
    if (a->state == ACTOR_RESTING || a->state == ACTOR_DONE)
        return;
    a->canceled = true;
    a->believes = a->lost = false;
    if (a->state == ACTOR_WAITING || a->state == ACTOR_LEAVING)
        return;
    if (a->calls_out > 0)
        a->state = ACTOR_LEAVING;
    else
        actor_rest(a);
}

void actor_init(struct actor *a, struct workload *l, unsigned index)
{
    a->host = l->host;
    a->load = l;
    a->owner = index;
    a->alarm.ring = on_alarm;
    snprintf(a->name, sizeof a->name, "client%u.%u", l->host->index % 100, index % 100);
}
