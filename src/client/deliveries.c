/* deliveries.c - entering and leaving the engine, and running callbacks: one at a time, only when
 * the engine is consistent, and in the order that recipes rely on. First the verdict on the
 * connection is acted upon (client_connection.c); then come state changes, lost watches, failed
 * requests, and moves of the hold deadline. Deferred tasks (clave__client_later) run last, at the
 * end of an entry. Every public call that may run callbacks is enclosed in clave__engine_enter and
 * clave__engine_leave. */
#include <assert.h>

#include "client/client_internal.h"

enum { KEEP_OUT = 64 * 1024 };
/* How much room for messages is kept. A process may have a thousand clients that each listed the
 * same long queue once. */
enum { KEEP_ROOM = 4 * 1024 };

bool clave__deliveries_wait(const clave_async_client *c)
{
    const struct deliveries *d = &c->deliveries;
    return c->link.verdict.kind != VERDICT_NONE || d->nstates > 0 || d->deadline_moved ||
           !list_empty(&d->failed) || !list_empty(&d->lost) || !list_empty(&d->client_tasks);
}

void clave__client_later(clave_async_client *c, struct client_task *e)
{
    list_push_back(&c->deliveries.client_tasks, &e->link);
}

static bool deliver_state(clave_async_client *c)
{
    struct deliveries *d = &c->deliveries;
    struct list round, *l;
    if (d->nstates == 0)
        return false;
    clave_state state = d->states[d->first_state].state;
    clave_err why = d->states[d->first_state].why;
    d->first_state = (d->first_state + 1) % DELIVERY_STATES;
    d->nstates--;
    /* each listener that is there now is called once, even if some are added or removed meanwhile
     */
    list_init(&round);
    list_splice(&round, &c->base.listeners);
    while ((l = list_pop_front(&round))) {
        struct listener *listener = LIST_ENTRY(l, struct listener, link);
        list_push_back(&c->base.listeners, l);
        listener->on_state(listener, state, why);
    }
    if (c->state_cb)
        c->state_cb(c, state, why, c->state_arg);
    if (state == CLAVE_STATE_CLOSED) {
        clave__auth_end(c);
        clave__creations_end(c);
        clave__cleanups_end(c);
    }
    return true;
}

/* Calls one confirm_waiter, which removes itself from the list when done; one that is added
 * meanwhile waits for the next move. Returns false if there is none. */
static bool deliver_deadline(clave_async_client *c)
{
    struct list round;
    struct list *l;
    if (!c->deliveries.deadline_moved)
        return false;
    c->deliveries.deadline_moved = false;
    list_init(&round);
    list_splice(&round, &c->confirms);
    while ((l = list_pop_front(&round))) {
        struct confirm_waiter *w = LIST_ENTRY(l, struct confirm_waiter, link);
        list_push_back(&c->confirms, l);
        w->on_confirmed(w);
    }
    return true;
}

void clave__engine_deliver(clave_async_client *c)
{
    assert(c->deliveries.depth > 0);
    if (c->deliveries.depth > 1)
        return;
    while (clave__connection_settle(c) || deliver_state(c) ||
           clave__client_watches_deliver_lost(c) || clave__pipeline_deliver_failed(c) ||
           deliver_deadline(c))
        continue;
}

void clave__engine_enter(clave_async_client *c, int64_t now)
{
    c->deliveries.depth++;
    clave__engine_note(c, now);
    /* This comes first, so that input that arrives too late does not count as a sign of life. */
    clave__session_tick(c);
}

/* Runs the tasks that are there now. Those added meanwhile wait for the next entry, so that a
 * caller that always retries at once does not keep the client in here forever. A closed client
 * accepts nothing new and may have no next entry, so all of its tasks run. */
static void deliver_run_tasks(clave_async_client *c)
{
    struct list round;
    struct list *l;
    list_init(&round);
    do {
        list_splice(&round, &c->deliveries.client_tasks);
        while ((l = list_pop_front(&round))) {
            struct client_task *e = LIST_ENTRY(l, struct client_task, link);
            e->run(e);
            clave__engine_deliver(c);
        }
    } while (c->session.state == CLAVE_STATE_CLOSED && !list_empty(&c->deliveries.client_tasks));
}

/* Frees memory that an unusually large message needed. */
static void deliver_trim(clave_async_client *c)
{
    struct buf *scratch[] = {&c->encode, &c->multi, &c->path, &c->acls, &c->decoded};
    for (size_t i = 0; i < sizeof scratch / sizeof *scratch; i++) {
        clave__buf_clear(scratch[i]);
        clave__buf_trim(scratch[i], KEEP_ROOM);
    }
    clave__buf_trim(&c->link.out, KEEP_OUT);
    clave__buf_trim(&c->link.in.held, KEEP_ROOM);
}

void clave__engine_leave(clave_async_client *c)
{
    assert(c->deliveries.depth > 0);
    clave__engine_deliver(c);
    if (c->deliveries.depth == 1) {
        deliver_run_tasks(c);
        if (c->base.on_settled) {
            c->base.on_settled->run(c->base.on_settled);
            clave__engine_deliver(c);
            deliver_run_tasks(c);
        }
        deliver_trim(c);
    }
    c->deliveries.depth--;
}
