/* semaphore_lease.c - a lease, from its node's create to its release. Called by semaphore_acquire.c
 * and the public API. Invariant: LOST is reported once, and only for a lease that was handed out.
 */
#include "recipe/contender/place_grant.h"
#include "recipe/semaphore/semaphore_internal.h"

/* ---- what happens to its node ---------------------------------------------------------- */

static void semaphore_lease_on_moved(void *owner)
{
    clave_async_lease *l = owner;
    clave__semaphore_acquire_lease_waits(l->semaphore_acquire);
}

static void semaphore_lease_on_held(void *owner)
{
    clave_async_lease *l = owner;
    clave__semaphore_acquire_lease_held(l->semaphore_acquire);
}

static void semaphore_lease_on_ended(void *owner, clave_err err)
{
    clave_async_lease *l = owner;
    clave__semaphore_keep_text(l->s, err, l->place);
    l->place = NULL;
    clave__semaphore_acquire_lease_ended(l->semaphore_acquire, err);
}

static void semaphore_lease_tell(clave_async_lease *l, clave_lease_event_kind kind, clave_err why)
{
    clave_lease_event ev = {.kind = kind, .lease = l, .why = why};
    clave__semaphore_tell(l->s, &ev);
}

static void semaphore_lease_on_lost(void *owner, clave_err why)
{
    clave_async_lease *l = owner;
    l->place = NULL;
    if (l->semaphore_acquire) {
        clave__semaphore_acquire_lease_lost(l->semaphore_acquire, why);
        return;
    }
    l->lost = why;
    semaphore_lease_tell(l, CLAVE_LEASE_LOST, why);
}

/* A lease that is held while its acquire waits for others belongs to nobody who could release it.
 */
static void semaphore_lease_on_asked(void *owner)
{
    clave_async_lease *l = owner;
    if (!l->semaphore_acquire)
        semaphore_lease_tell(l, CLAVE_LEASE_ASKED, CLAVE_OK);
}

const struct contender_events clave__semaphore_lease_events = {
    .moved = semaphore_lease_on_moved,
    .held = semaphore_lease_on_held,
    .ended = semaphore_lease_on_ended,
    .lost = semaphore_lease_on_lost,
    .asked = semaphore_lease_on_asked,
};

/* ---- giving back ----------------------------------------------------------------------- */

static void free_lease(clave_async_lease *l)
{
    clave__mem_free(l->s->mem, l);
}

static void semaphore_lease_on_due(struct client_task *t)
{
    clave_async_lease *l = LIST_ENTRY(t, clave_async_lease, left);
    clave_async_semaphore *s = l->s;
    clave_async_lease_left_cb *cb = l->cb;
    void *arg = l->arg;
    clave_err err = l->left_err;
    free_lease(l);
    cb(s, err, arg);
    clave__semaphore_drop(s);
}

static void semaphore_lease_on_left(void *arg, clave_err err)
{
    clave_async_lease *l = arg;
    l->left_err = err;
    clave__client_later(l->s->client, &l->left);
}

void clave__semaphore_lease_init(clave_async_lease *l, clave_async_semaphore *s,
                                 struct semaphore_acquire *k)
{
    l->s = s;
    l->semaphore_acquire = k;
    list_init(&l->link);
    list_init(&l->left.link);
    l->left.run = semaphore_lease_on_due;
}

clave_err clave_async_lease_release(clave_async_lease *l, clave_async_lease_left_cb *cb, void *arg)
{
    struct contender *place = l->place;
    list_remove(&l->link);
    if (!place) {
        clave_err verdict = l->lost == CLAVE_EMAXHOLD ? CLAVE_EMAXHOLD : CLAVE_ELOST;
        free_lease(l);
        return verdict;
    }
    l->cb = cb;
    l->arg = arg;
    if (cb) {
        clave__semaphore_hold(l->s);
        clave__contender_leave(place, semaphore_lease_on_left, l);
    } else {
        free_lease(l);
        clave__contender_leave(place, NULL, NULL);
    }
    return CLAVE_OK;
}

/* ---- what is known --------------------------------------------------------------------- */

bool clave__lease_held(const clave_async_lease *l, struct grant_facts *out)
{
    if (!l->place)
        return false;
    *out = clave__contender_facts(l->place);
    return true;
}

clave_err clave_async_lease_grant(const clave_async_lease *l, clave_async_grant **out)
{
    struct grant_facts f;
    *out = NULL;
    return clave__lease_held(l, &f) ? clave__grant_new(out, &f) : CLAVE_ELOST;
}
