/* recipe_rwlock.c - the two sides of a read-write lock, and what goes between them: a write that
 * becomes a read, and a read that may not become a write. */
#include <string.h>

#include "checker.h"

/* The side the nth hold is of: the second is the read behind a write that is given up. */
static clave_async_mutex *side_of(const struct actor *a, unsigned nth)
{
    bool reads = a->shared || nth > 0;
    return reads ? clave_async_rwlock_read(a->object) : clave_async_rwlock_write(a->object);
}

static void on_event(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    struct actor *a = &((struct workload *)arg)->actors[ev->owner];
    switch (ev->kind) {
    case CLAVE_MUTEX_QUEUED:
        if (a->state == ACTOR_WAITING)
            actor_queued(a, ev->ahead);
        break;
    case CLAVE_MUTEX_NEXT:
    case CLAVE_MUTEX_HELD:
        break;
    case CLAVE_MUTEX_ASKED:
        actor_heard_asked(a);
        break;
    case CLAVE_MUTEX_LOST:
        actor_lost(a, m == side_of(a, 0) ? 0 : 1, ev->why);
        break;
    }
}

static clave_async_rwlock *find(struct actor *a)
{
    struct workload *l = a->load;
    clave_async_rwlock **rw = &l->objects[a->lock].rwlock;
    clave_mutex_options o = {
        .size = sizeof o,
        .data = l->host->name,
        .len = strlen(l->host->name),
        .max_hold_ms = l->o->max_hold_ms,
        .strict = l->o->strict,
        .revocable = l->o->revocable,
        .event_cb = on_event,
        .event_arg = l,
    };
    if (!*rw)
        (void)clave_async_rwlock_new(rw, l->host->client, workload_layout(l, a->lock)->path, &o);
    return *rw;
}

static void on_acquired(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    (void)m, (void)owner;
    actor_acquired(arg, err);
}

static clave_err acquire(struct actor *a)
{
    clave_async_rwlock *rw = find(a);
    a->object = rw;
    a->nholds = 1;
    a->holds[0] = (struct hold){.lock = a->lock, .shared = a->shared};
    if (!rw)
        return CLAVE_ENOMEM;
    return clave_async_mutex_acquire(side_of(a, 0), a->owner, a->deadline, on_acquired, a);
}

static clave_err cancel(struct actor *a)
{
    return clave_async_mutex_cancel(side_of(a, 0), a->owner);
}

static void on_released(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    (void)m, (void)owner;
    actor_left(arg, err);
}

static clave_err release(struct actor *a, bool sure)
{
    clave_err first = CLAVE_OK;
    for (unsigned i = 0; i < a->nholds; i++) {
        clave_err err = clave_async_mutex_release(side_of(a, i), a->owner,
                                                  sure ? on_released : NULL, sure ? a : NULL);
        if (sure && err == CLAVE_OK)
            actor_owe(a);
        first = first == CLAVE_OK ? err : first;
    }
    return first;
}

static bool held(const struct actor *a, unsigned nth, struct grant_facts *out)
{
    return clave__mutex_held(side_of(a, nth), a->owner, out);
}

static clave_err grant(const struct actor *a, unsigned nth, clave_async_grant **out)
{
    return clave_async_mutex_grant(side_of(a, nth), a->owner, out);
}

/* ---- from side to side --------------------------------------------------------------- */

/* The read has the write's place: the write is given back, and the hold is a read's. */
static void give_write_back(struct actor *a)
{
    clave_err err = clave_async_mutex_release(side_of(a, 0), a->owner, NULL, NULL);
    if (err != CLAVE_OK && !actor_had_lost(a, err))
        actor_unexpected(a, "release of the write", err);
    if (a->holds[0].believed)
        checker_ended(a->load->checker, a, 0);
    a->holds[0] = a->holds[1];
    a->nholds = 1;
    a->shared = true;
    a->lost = !a->holds[0].believed;
    a->load->stats.downgraded++;
    world_log(a->host->w, a->name, "reads on");
}

static void on_downgraded(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct actor *a = arg;
    (void)m, (void)owner;
    actor_answered(a, "downgrade");
    if (err != CLAVE_OK && !actor_is_late(err) && err != CLAVE_ECLOSED && err != CLAVE_ECANCELED &&
        !checker_counter_ended(err))
        actor_unexpected(a, "downgrade", err);
    if (actor_is_late(err) && host_clock(a->host) < a->deadline)
        actor_unexpected(a, "downgrade before its deadline", err);
    if (err == CLAVE_OK && a->state != ACTOR_LEAVING && !a->load->ending) {
        a->nholds = 2;
        a->holds[1] = (struct hold){.lock = a->lock, .shared = true};
        if (!actor_hold_believe(a, 1))
            actor_unexpected(a, "grant of a downgrade", CLAVE_ENOTHELD);
        else if (world_chance(a->host->w, 800))
            give_write_back(a);
    }
    actor_hold_go_on(a);
}

static bool downgrade(struct actor *a)
{
    bool forever = world_chance(a->host->w, 500);
    a->deadline = forever ? CLAVE_NEVER : host_clock(a->host) + a->load->o->patience_ms;
    actor_call(a);
    world_log(a->host->w, a->name, "wants to read on");
    clave_err err = clave_async_mutex_acquire(clave_async_rwlock_read(a->object), a->owner,
                                              a->deadline, on_downgraded, a);
    if (!actor_started(a, err, "downgrade"))
        return false;
    a->state = ACTOR_READING;
    return true;
}

static bool change_sides(struct actor *a)
{
    if (a->nholds > 1)
        return false;
    if (!a->shared)
        return downgrade(a);
    actor_call(a);
    clave_err err = clave_async_mutex_acquire(clave_async_rwlock_write(a->object), a->owner,
                                              CLAVE_NEVER, on_downgraded, a);
    a->calling = false;
    if (err != CLAVE_EUPGRADE)
        actor_unexpected(a, "upgrade", err);
    return false;
}

/* ---- the rest ------------------------------------------------------------------------ */

static void discard(struct actor *a)
{
    clave_async_rwlock *rw = a->load->objects[a->lock].rwlock;
    a->load->objects[a->lock].rwlock = NULL;
    clave_async_rwlock_free(rw);
}

static clave_err list(struct actor *a, clave_async_participants_cb *cb, void *arg)
{
    return clave_async_rwlock_participants(
        a->host->client, workload_layout(a->load, a->lock)->queue, CLAVE_RWLOCK_BOTH, cb, arg);
}

const struct recipe recipe_rwlock = {
    .name = "read-write lock",
    .in_order = true,
    .acquire = acquire,
    .cancel = cancel,
    .release = release,
    .held = held,
    .grant = grant,
    .dally = change_sides,
    .discard = discard,
    .list = list,
};
