/* recipe_mutex.c - a mutex, with a place in the queue for each owner or one for all. */
#include <string.h>

#include "checker.h"

static void on_event(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    struct actor *a = &((struct workload *)arg)->actors[ev->owner];
    (void)m;
    switch (ev->kind) {
    case CLAVE_MUTEX_QUEUED:
        actor_queued(a, ev->ahead);
        break;
    case CLAVE_MUTEX_NEXT:
    case CLAVE_MUTEX_HELD:
        break;
    case CLAVE_MUTEX_ASKED:
        actor_heard_asked(a);
        break;
    case CLAVE_MUTEX_LOST:
        actor_lost(a, 0, ev->why);
        break;
    }
}

static clave_async_mutex *find(struct actor *a)
{
    struct workload *l = a->load;
    clave_async_mutex **m = &l->objects[a->lock].mutex;
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
    if (!*m)
        (void)clave_async_mutex_new(m, l->host->client, workload_layout(l, a->lock)->path, &o);
    return *m;
}

static void on_acquired(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    (void)m, (void)owner;
    actor_acquired(arg, err);
}

static clave_err acquire(struct actor *a)
{
    clave_async_mutex *m = find(a);
    a->object = m;
    a->nholds = 1;
    a->holds[0] = (struct hold){.lock = a->lock};
    return m ? clave_async_mutex_acquire(m, a->owner, a->deadline, on_acquired, a) : CLAVE_ENOMEM;
}

static clave_err cancel(struct actor *a)
{
    return clave_async_mutex_cancel(a->object, a->owner);
}

static void on_released(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    (void)m, (void)owner;
    actor_left(arg, err);
}

static clave_err release(struct actor *a, bool sure)
{
    clave_err err =
        clave_async_mutex_release(a->object, a->owner, sure ? on_released : NULL, sure ? a : NULL);
    if (sure && err == CLAVE_OK)
        actor_owe(a);
    return err;
}

static bool held(const struct actor *a, unsigned nth, struct grant_facts *out)
{
    (void)nth;
    return clave__mutex_held(a->object, a->owner, out);
}

static clave_err grant(const struct actor *a, unsigned nth, clave_async_grant **out)
{
    (void)nth;
    return clave_async_mutex_grant(a->object, a->owner, out);
}

/* Reentrant: once more, and that one given back at once. */
static void on_nested(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct actor *a = arg;
    actor_answered(a, "nested acquire");
    if (err != CLAVE_OK && err != CLAVE_ECLOSED && err != CLAVE_ECANCELED)
        actor_unexpected(a, "nested acquire", err);
    if (a->state != ACTOR_LEAVING && !a->load->ending)
        (void)clave_async_mutex_release(m, owner, NULL, NULL);
    actor_hold_go_on(a);
}

static bool nest(struct actor *a)
{
    actor_call(a);
    clave_err err = clave_async_mutex_acquire(a->object, a->owner, CLAVE_TRY, on_nested, a);
    if (!actor_started(a, err, "nested acquire"))
        return false;
    a->state = ACTOR_READING;
    return true;
}

static void discard(struct actor *a)
{
    clave_async_mutex *m = a->load->objects[a->lock].mutex;
    a->load->objects[a->lock].mutex = NULL;
    clave_async_mutex_free(m);
}

static clave_err list(struct actor *a, clave_async_participants_cb *cb, void *arg)
{
    return clave_async_participants(a->host->client, workload_layout(a->load, a->lock)->queue, cb,
                                    arg);
}

const struct recipe recipe_mutex = {
    .name = "mutex",
    .in_order = true,
    .acquire = acquire,
    .cancel = cancel,
    .release = release,
    .held = held,
    .grant = grant,
    .dally = nest,
    .discard = discard,
    .list = list,
};
