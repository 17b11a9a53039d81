/* semaphore_lease.c - a lease after it was given out: its release, and queries about it. */
#include "recipe/contender/contender_grant.h"
#include "recipe/semaphore/semaphore_internal.h"

void clave__semaphore_lease_tell(clave_async_lease *l, clave_lease_event_kind kind, clave_err why)
{
    clave_lease_event ev = {.kind = kind, .lease = l, .why = why};
    clave__semaphore_tell(l->s, &ev);
}

/* ---- release --------------------------------------------------------------------------------- */

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
                                 struct semaphore_acquire *a)
{
    l->s = s;
    l->semaphore_acquire = a;
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

/* ---- queries --------------------------------------------------------------------------------- */

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
