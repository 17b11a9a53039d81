/* mutex_release.c - release of a mutex, and cancel of an acquire. Called by the public API.
 * Invariant: what ends an owner's interest takes it out of the map at once; only its answer lives
 * on. */
#include <assert.h>

#include "recipe/lock/mutex_internal.h"

/* Gives the last hold back: deletes the node. With a callback the entry lives until the node is
 * certainly gone. */
static void mutex_release_place(struct owner_entry *e, clave_async_mutex_cb *cb, void *arg)
{
    clave_async_mutex *m = e->answer.m;
    struct contender *place = e->place;
    clave__map_remove(&m->owner_entries, &e->node);
    if (cb) {
        clave__mutex_answer_init(&e->answer, m, e->answer.owner, cb, arg);
        clave__contender_leave(place, clave__owner_entry_left, e);
    } else {
        clave__mem_free(m->mem, e);
        clave__contender_leave(place, NULL, NULL);
    }
}

static clave_err mutex_release_lost(struct owner_entry *e)
{
    assert(!e->place && e->count > 0 && e->lost != CLAVE_OK);
    clave_err verdict = e->lost == CLAVE_EMAXHOLD ? CLAVE_EMAXHOLD : CLAVE_ELOST;
    if (--e->count == 0) {
        clave__map_remove(&e->answer.m->owner_entries, &e->node);
        clave__mem_free(e->answer.m->mem, e);
    }
    return verdict;
}

clave_err clave_async_mutex_release(clave_async_mutex *m, uint64_t owner, clave_async_mutex_cb *cb,
                                    void *arg)
{
    struct owner_entry *e = clave__mutex_find(m, owner);
    if (!e || e->count == 0)
        return CLAVE_ENOTHELD;
    if (!e->place)
        return mutex_release_lost(e);
    if (e->count == 1) {
        mutex_release_place(e, cb, arg);
        return CLAVE_OK;
    }
    clave_err err = cb ? clave__mutex_answer_post_new(m, owner, false, cb, arg) : CLAVE_OK;
    if (err == CLAVE_OK)
        e->count--;
    return err;
}

clave_err clave_async_mutex_cancel(clave_async_mutex *m, uint64_t owner)
{
    struct owner_entry *e = clave__mutex_find(m, owner);
    if (!e || e->count > 0)
        return CLAVE_ENOTHELD;
    clave__owner_entry_remove(m, e);
    return CLAVE_OK;
}
