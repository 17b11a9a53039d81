/* recipe_multilock.c - all locks of the world at once; of those that have them, the reads or the
 * writes. */
#include <string.h>

#include "checker.h"

static void on_event(clave_async_multilock *ml, const clave_multilock_event *ev, void *arg)
{
    struct workload *l = arg;
    (void)ml;
    for (unsigned i = 0; i < l->o->locks; i++)
        if (strcmp(ev->path, workload_layout(l, i)->path) == 0)
            actor_lost(&l->actors[ev->owner], i, ev->why);
}

static clave_multilock_kind kind_of(const struct lock_layout *s, bool reads)
{
    return s->kind == LOCK_MUTEX ? CLAVE_MULTILOCK_MUTEX
           : reads               ? CLAVE_MULTILOCK_READ
                                 : CLAVE_MULTILOCK_WRITE;
}

static clave_async_multilock *find(struct actor *a)
{
    struct workload *l = a->load;
    clave_async_multilock **ml = &l->bundles[a->shared];
    clave_multilock_part parts[LOCKS];
    clave_mutex_options each = {
        .size = sizeof each,
        .data = l->host->name,
        .len = strlen(l->host->name),
        .max_hold_ms = l->o->max_hold_ms,
        .strict = l->o->strict,
    };
    clave_multilock_options o = {
        .size = sizeof o, .each = &each, .event_cb = on_event, .event_arg = l};
    /* Named in either order. */
    bool turned = l->host->index % 2;
    for (unsigned i = 0; i < l->o->locks; i++) {
        const struct lock_layout *s = workload_layout(l, turned ? l->o->locks - 1 - i : i);
        parts[i] = (clave_multilock_part){s->path, kind_of(s, a->shared)};
    }
    if (!*ml)
        (void)clave_async_multilock_new(ml, l->host->client, parts, l->o->locks, &o);
    return *ml;
}

static void on_acquired(clave_async_multilock *ml, uint64_t owner, clave_err err,
                        const char *failed, void *arg)
{
    struct actor *a = arg;
    bool says_which = err != CLAVE_OK && err != CLAVE_ECANCELED;
    (void)ml, (void)owner;
    if (says_which != (failed != NULL))
        actor_unexpected(a, "multi-lock without a name of what failed", err);
    actor_acquired(a, err);
}

static clave_err acquire(struct actor *a)
{
    clave_async_multilock *ml = find(a);
    a->object = ml;
    a->nholds = a->load->o->locks;
    for (unsigned i = 0; i < a->nholds; i++)
        a->holds[i] = (struct hold){
            .lock = i,
            .shared = a->shared && workload_layout(a->load, i)->kind == LOCK_RWLOCK,
        };
    if (!ml)
        return CLAVE_ENOMEM;
    return clave_async_multilock_acquire(ml, a->owner, a->deadline, on_acquired, a);
}

static clave_err cancel(struct actor *a)
{
    return clave_async_multilock_cancel(a->object, a->owner);
}

static void on_released(clave_async_multilock *ml, uint64_t owner, clave_err err,
                        const char *failed, void *arg)
{
    (void)ml, (void)owner, (void)failed;
    actor_left(arg, err);
}

static clave_err release(struct actor *a, bool sure)
{
    clave_err err =
        clave_async_multilock_release(a->object, a->owner, sure ? on_released : NULL, a);
    if (sure && err == CLAVE_OK)
        actor_owe(a);
    return err;
}

static clave_async_mutex *part_of(const struct actor *a, unsigned nth)
{
    return clave_async_multilock_at(a->object, workload_layout(a->load, nth)->path);
}

static bool held(const struct actor *a, unsigned nth, struct grant_facts *out)
{
    return clave__mutex_held(part_of(a, nth), a->owner, out);
}

static clave_err grant(const struct actor *a, unsigned nth, clave_async_grant **out)
{
    return clave_async_mutex_grant(part_of(a, nth), a->owner, out);
}

static void discard(struct actor *a)
{
    clave_async_multilock *ml = a->object;
    struct workload *l = a->load;
    l->bundles[ml == l->bundles[1]] = NULL;
    clave_async_multilock_free(ml);
}

static clave_err list(struct actor *a, clave_async_participants_cb *cb, void *arg)
{
    const struct lock_layout *s = workload_layout(a->load, a->lock);
    if (s->kind == LOCK_RWLOCK)
        return clave_async_rwlock_participants(a->host->client, s->queue, CLAVE_RWLOCK_BOTH, cb,
                                               arg);
    return clave_async_participants(a->host->client, s->queue, cb, arg);
}

const struct recipe recipe_multilock = {
    .name = "multi-lock with",
    .acquire = acquire,
    .cancel = cancel,
    .release = release,
    .held = held,
    .grant = grant,
    .discard = discard,
    .list = list,
};
