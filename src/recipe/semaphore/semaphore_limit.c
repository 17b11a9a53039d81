/* semaphore_limit.c - how many leases there may be: a fixed number, or one that processes share in
 * a node. Lowering the limit takes back no lease, but nobody gets a new one until enough leases are
 * released. Called by semaphore.c and the public API. */
#include "recipe/semaphore/semaphore_internal.h"

static void semaphore_change_limit(clave_async_semaphore *s, uint32_t limit)
{
    s->lease_config.spec.limit = limit;
    /* Of all acquires, only the one that holds the mutex is waiting for room. */
    for (struct list *e = s->acquires.next; e != &s->acquires; e = e->next)
        if (clave__semaphore_acquire_recount(LIST_ENTRY(e, struct semaphore_acquire, link)))
            return;
}

static void semaphore_on_limit_changed(void *owner, uint32_t value)
{
    clave_async_semaphore *s = owner;
    s->limit_err = CLAVE_OK;
    semaphore_change_limit(s, value);
}

static void semaphore_on_limit_failed(void *owner, clave_err err)
{
    clave_async_semaphore *s = owner;
    s->limit_err = err;
    clave__semaphore_hold(s);
    while (!list_empty(&s->acquires) && s->lease_config.spec.limit == 0)
        clave__semaphore_acquire_fail(LIST_ENTRY(s->acquires.next, struct semaphore_acquire, link),
                                      err);
    clave__semaphore_drop(s);
}

static const struct shared_count_events shared_count_events = {
    .changed = semaphore_on_limit_changed,
    .failed = semaphore_on_limit_failed,
};

clave_err clave__semaphore_limit_share(clave_async_semaphore *s, const char *path, uint32_t limit)
{
    return clave__shared_count_new(&s->shared_count, s->client, path, limit, &shared_count_events,
                                   s);
}

/* Checks that the limit is known or will be. After a failure, it is read once more. */
clave_err clave__semaphore_limit_check(clave_async_semaphore *s)
{
    if (!s->shared_count)
        return CLAVE_OK;
    clave_err err = s->limit_err;
    clave_err asked = clave__shared_count_refresh(s->shared_count);
    return err != CLAVE_OK ? err : asked;
}

uint32_t clave_async_semaphore_limit(const clave_async_semaphore *s)
{
    return (uint32_t)s->lease_config.spec.limit;
}

clave_err clave_async_semaphore_set_limit(clave_async_semaphore *s, uint32_t limit,
                                          clave_result_cb *cb, void *arg)
{
    if (limit == 0 || limit > SEMAPHORE_LIMIT_MAX || (!s->shared_count && cb))
        return CLAVE_EINVAL;
    if (s->shared_count)
        return clave__shared_count_set(s->shared_count, limit, cb, arg);
    semaphore_change_limit(s, limit);
    return CLAVE_OK;
}
