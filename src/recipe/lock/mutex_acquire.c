/* mutex_acquire.c - acquire of a mutex. Called by the public API. Invariant: an owner has at most
 * one pending acquire. */
#include <stdio.h>

#include "recipe/lock/mutex_internal.h"

static clave_err mutex_acquire_again(struct owner_entry *e, clave_async_mutex_cb *cb, void *arg)
{
    if (e->count == 0)
        return CLAVE_EINVAL; /* one is pending */
    if (e->lost != CLAVE_OK)
        return CLAVE_ELOST;
    clave_err err = clave__mutex_answer_post_new(e->answer.m, e->answer.owner, true, cb, arg);
    if (err == CLAVE_OK)
        e->count++;
    return err;
}

/* Writes whose place it is. */
static clave_err recipe_mutex_add_identity(const struct owner_entry *e)
{
    const clave_async_mutex *m = e->answer.m;
    char task[24];
    snprintf(task, sizeof task, "%llx", (unsigned long long)e->answer.owner);
    clave_identity more = {.task = e->answer.owner == 0 ? NULL : task,
                           .yields = m->deadlock_terms.delay_ms > 0};
    return clave__contender_add_identity(e->place, &more);
}

/* Takes a place in the queue; its owner is notified. `downgrade`: the node to take over, may be
 * NULL.
 */
static clave_err mutex_take_place(struct owner_entry *e, int64_t deadline, const char *downgrade)
{
    clave_async_mutex *m = e->answer.m;
    clave_err err =
        clave__contender_new(&e->place, m->client, &m->config.spec, &clave__owner_entry_events, e);
    if (err == CLAVE_OK)
        err = recipe_mutex_add_identity(e);
    if (err == CLAVE_OK && downgrade)
        err = clave__contender_downgrade(e->place, downgrade);
    if (err == CLAVE_OK)
        err = clave__contender_join(e->place, deadline);
    if (err != CLAVE_OK)
        e->place = NULL;
    return err;
}

clave_err clave_async_mutex_acquire(clave_async_mutex *m, uint64_t owner, int64_t deadline,
                                    clave_async_mutex_cb *cb, void *arg)
{
    if (!cb)
        return CLAVE_EINVAL;
    struct owner_entry *e = clave__mutex_find(m, owner);
    if (e)
        return mutex_acquire_again(e, cb, arg);
    if (clave_async_client_state(m->client) == CLAVE_STATE_CLOSED)
        return CLAVE_ECLOSED;
    const struct contender *downgrade;
    clave_err err = clave__rwlock_upgrade_check(m, owner, &downgrade);
    if (err != CLAVE_OK)
        return err;
    e = clave__mem_zalloc(m->mem, sizeof *e);
    if (!e)
        return CLAVE_ENOMEM;
    clave__mutex_answer_init(&e->answer, m, owner, cb, arg);
    e->downgrade_token = downgrade ? downgrade->node.token : 0;
    bool trying = deadline <= clave__client_now(m->client);
    if (trying && !clave_async_client_is_connected(m->client)) { /* a try does not wait for it */
        clave__mutex_answer_post(&e->answer, clave__client_not_in_time(m->client, 0));
        return CLAVE_OK;
    }
    err = mutex_take_place(e, deadline, downgrade ? downgrade->node.watch.path : NULL);
    if (err != CLAVE_OK) {
        clave__mem_free(m->mem, e);
        clave__mutex_unref(m);
        return err;
    }
    clave__map_insert(&m->owner_entries, &e->node, clave__map_hash_u64(owner));
    return CLAVE_OK;
}
