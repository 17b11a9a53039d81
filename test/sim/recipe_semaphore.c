/* recipe_semaphore.c - one lease or several of a semaphore, whose limit may be shared. */
#include <string.h>

#include "checker.h"

static unsigned hold_of(const struct actor *a, const clave_async_lease *lease)
{
    unsigned i = 0;
    while (i < a->nholds && a->leases[i] != lease)
        i++;
    return i;
}

static void on_event(clave_async_semaphore *s, const clave_lease_event *ev, void *arg)
{
    struct workload *l = arg;
    (void)s;
    if (ev->kind == CLAVE_LEASE_QUEUED) {
        actor_queued(&l->actors[ev->request], ev->ahead);
        return;
    }
    for (unsigned i = 0; i < l->o->actors; i++) {
        struct actor *a = &l->actors[i];
        unsigned nth = a->recipe == &recipe_semaphore ? hold_of(a, ev->lease) : a->nholds;
        if (nth == a->nholds)
            continue;
        if (ev->kind == CLAVE_LEASE_LOST)
            actor_lost(a, nth, ev->why);
        else
            actor_heard_asked(a);
        return;
    }
    world_break(l->host->w, "LOST comes once for a hold", "nobody has this lease");
}

static clave_async_semaphore *find(struct actor *a)
{
    struct workload *l = a->load;
    const struct lock_layout *at = workload_layout(l, a->lock);
    clave_async_semaphore **s = &l->objects[a->lock].semaphore;
    clave_semaphore_options o = {
        .size = sizeof o,
        .limit = at->limit,
        .limit_path = at->limit_path,
        .data = l->host->name,
        .len = strlen(l->host->name),
        .max_hold_ms = l->o->max_hold_ms,
        .revocable = l->o->revocable,
        .event_cb = on_event,
        .event_arg = l,
    };
    if (!*s)
        (void)clave_async_semaphore_new(s, l->host->client, at->path, &o);
    return *s;
}

static void on_acquired(clave_async_semaphore *s, clave_err err, clave_async_lease *const *leases,
                        size_t n, void *arg)
{
    struct actor *a = arg;
    (void)s;
    a->nholds = err == CLAVE_OK ? (unsigned)n : 0;
    for (unsigned i = 0; i < a->nholds; i++) {
        a->leases[i] = leases[i];
        a->holds[i] = (struct hold){.lock = a->lock};
    }
    actor_acquired(a, err);
}

static void on_limit(clave_async_client *c, const clave_result *res, void *arg)
{
    struct workload *l = arg;
    (void)c;
    l->listings_out--;
    world_log(l->host->w, l->host->name, "its limit: %s", clave_err_name(res->err));
}

/* An operator of the limit. */
static void change_limit(struct actor *a, clave_async_semaphore *s)
{
    const struct lock_layout *at = workload_layout(a->load, a->lock);
    uint32_t limit = (uint32_t)world_between(a->host->w, 1, (int64_t)at->limit);
    if (clave_async_semaphore_set_limit(s, limit, on_limit, a->load) == CLAVE_OK) {
        a->load->listings_out++;
        world_log(a->host->w, a->name, "changes the limit to %u", (unsigned)limit);
    }
}

static clave_err acquire(struct actor *a)
{
    clave_async_semaphore *s = find(a);
    a->object = s;
    a->nholds = 0;
    if (!s)
        return CLAVE_ENOMEM;
    bool may_change = workload_layout(a->load, a->lock)->limit_path && !a->load->day_is_over;
    if (may_change && world_chance(a->host->w, 50))
        change_limit(a, s);
    return clave_async_semaphore_acquire(s, a->owner, a->wants, a->deadline, on_acquired, a);
}

static clave_err cancel(struct actor *a)
{
    return clave_async_semaphore_cancel(a->object, a->owner);
}

static void on_released(clave_async_semaphore *s, clave_err err, void *arg)
{
    (void)s;
    actor_left(arg, err);
}

static clave_err release(struct actor *a, bool sure)
{
    clave_err first = CLAVE_OK;
    for (unsigned i = 0; i < a->nholds; i++) {
        clave_err err = clave_async_lease_release(a->leases[i], sure ? on_released : NULL, a);
        a->leases[i] = NULL;
        if (sure && err == CLAVE_OK)
            actor_owe(a);
        first = first == CLAVE_OK ? err : first;
    }
    return first;
}

static bool held(const struct actor *a, unsigned nth, struct grant_facts *out)
{
    return clave__lease_held(a->leases[nth], out);
}

static clave_err grant(const struct actor *a, unsigned nth, clave_async_grant **out)
{
    return clave_async_lease_grant(a->leases[nth], out);
}

static void discard(struct actor *a)
{
    clave_async_semaphore *s = a->load->objects[a->lock].semaphore;
    a->load->objects[a->lock].semaphore = NULL;
    clave_async_semaphore_free(s);
}

static clave_err list(struct actor *a, clave_async_participants_cb *cb, void *arg)
{
    return clave_async_semaphore_participants(a->host->client,
                                              workload_layout(a->load, a->lock)->path, cb, arg);
}

const struct recipe recipe_semaphore = {
    .name = "semaphore",
    .in_order = true,
    .acquire = acquire,
    .cancel = cancel,
    .release = release,
    .held = held,
    .grant = grant,
    .discard = discard,
    .list = list,
};
