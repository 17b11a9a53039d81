/* semaphore_ref.c - what acquires and leases need of their semaphore: that it stays in memory as
 * long as they exist, and that its user is told of events. */
#include <assert.h>

#include "recipe/semaphore/semaphore_internal.h"

void clave__semaphore_hold(clave_async_semaphore *s)
{
    s->refs++;
}

void clave__semaphore_drop(clave_async_semaphore *s)
{
    assert(s->refs > 0);
    if (--s->refs > 0)
        return;
    clave__shared_count_free(s->shared_count);
    clave__contender_config_fini(&s->mutex_config);
    clave__contender_config_fini(&s->lease_config);
    clave__deadlock_terms_fini(&s->deadlock_terms);
    clave__mem_free(s->mem, s->deadlock);
    clave__mem_free(s->mem, s);
}

void clave__semaphore_keep_text(clave_async_semaphore *s, clave_err err,
                                const struct contender *place)
{
    if (err == CLAVE_EDEADLOCK)
        clave__deadlock_keep_text(s->mem, &s->deadlock, place->deadlock);
}

void clave__semaphore_tell(clave_async_semaphore *s, const clave_lease_event *ev)
{
    clave__semaphore_hold(s);
    if (s->event_cb)
        s->event_cb(s, ev, s->event_arg);
    clave__semaphore_drop(s);
}
