/* pending_callbacks.c - what waits to be delivered: any file of the engine adds to it,
 * run_callbacks.c runs it. */
#include <assert.h>

#include "client/client_internal.h"

void clave__deliver_init(struct deliveries *d)
{
    list_init(&d->failed);
    list_init(&d->lost);
    list_init(&d->client_tasks);
}

bool clave__deliveries_wait(const struct deliveries *d)
{
    return d->nstates > 0 || d->deadline_moved || !list_empty(&d->failed) ||
           !list_empty(&d->lost) || !list_empty(&d->client_tasks);
}

void clave__engine_note(clave_async_client *c, int64_t now)
{
    if (now > c->now)
        c->now = now;
}

void clave__client_later(clave_async_client *c, struct client_task *e)
{
    list_push_back(&c->deliveries.client_tasks, &e->link);
}

void clave__deliver_state(clave_async_client *c, clave_state state, clave_err why)
{
    struct deliveries *d = &c->deliveries;
    assert(d->nstates < DELIVERY_STATES); /* one entry makes a few at most */
    size_t at = (d->first_state + d->nstates++) % DELIVERY_STATES;
    d->states[at].state = state;
    d->states[at].why = why;
}

void clave__deliver_failure(clave_async_client *c, struct request *r, clave_err err)
{
    assert(err != CLAVE_OK);
    assert(list_empty(&r->link));
    clave__timers_clear(&c->timers, &r->pause);
    r->err = err;
    list_push_back(&c->deliveries.failed, &r->link);
}
