/* semaphore_acquire.c - acquiring leases: first in the queue of those who acquire, then one lease
 * after the other, each of which waits for room. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>

#include "recipe/semaphore/semaphore_internal.h"

/* ---- giving up and answering ----------------------------------------------------------- */

static const struct contender_events semaphore_lease_events;

/* The leases first: the next holder of the mutex then finds room. */
static void leave_all(struct semaphore_acquire *k)
{
    for (size_t i = 0; i < k->n; i++) {
        struct contender *place = k->leases[i]->place;
        k->leases[i]->place = NULL;
        if (place)
            clave__contender_leave(place, NULL, NULL);
    }
    struct contender *mutex = k->mutex;
    k->mutex = NULL;
    if (mutex)
        clave__contender_leave(mutex, NULL, NULL);
    k->got = 0;
}

static void free_acquire(struct semaphore_acquire *k)
{
    clave_async_semaphore *s = k->s;
    for (size_t i = 0; i < k->n && k->leases[i]; i++)
        clave__mem_free(s->mem, k->leases[i]);
    clave__mem_free(s->mem, k);
}

/* Nothing refers to the acquire any more when its callback runs. */
static void semaphore_acquire_answer(struct semaphore_acquire *k, clave_err err)
{
    clave_async_semaphore *s = k->s;
    list_remove(&k->link);
    list_remove(&k->due.link);
    if (err == CLAVE_OK) {
        k->cb(s, CLAVE_OK, k->leases, k->n, k->arg);
        k->n = 0; /* they belong to the caller */
    } else {
        k->cb(s, err, NULL, 0, k->arg);
    }
    free_acquire(k);
    clave__semaphore_drop(s);
}

static void semaphore_acquire_on_due(struct client_task *t)
{
    struct semaphore_acquire *k = LIST_ENTRY(t, struct semaphore_acquire, due);
    semaphore_acquire_answer(k, k->verdict);
}

void clave__semaphore_acquire_fail(struct semaphore_acquire *k, clave_err err)
{
    leave_all(k);
    semaphore_acquire_answer(k, err);
}

/* ---- taking ---------------------------------------------------------------------------- */

/* Writes whose place it is, and what a search for deadlocks needs to know of the semaphore. */
static clave_err semaphore_acquire_add_identity(struct contender *place,
                                                const struct semaphore_acquire *k)
{
    const clave_async_semaphore *s = k->s;
    char task[24];
    snprintf(task, sizeof task, "%llx", (unsigned long long)k->task);
    clave_identity more = {.task = k->task ? task : NULL,
                           .limit = s->shared_count ? 0 : (uint32_t)s->lease_config.spec.limit,
                           .yields = s->detector.delay_ms > 0};
    return clave__contender_add_identity(place, &more);
}

static clave_err semaphore_acquire_take(struct contender **place, struct semaphore_acquire *k,
                                        int64_t deadline, const struct contender_config *config,
                                        const struct contender_events *events, void *owner)
{
    clave_err err = clave__contender_new(place, k->s->client, &config->spec, events, owner);
    if (err == CLAVE_OK) {
        (*place)->nth = k->got;
        err = semaphore_acquire_add_identity(*place, k);
    }
    if (err == CLAVE_OK)
        err = clave__contender_join(*place, deadline);
    if (err != CLAVE_OK)
        *place = NULL;
    return err;
}

/* By a name of the user's, another process with this session may have made leases already. They
 * are looked for, and deleted. */
static void semaphore_acquire_find_leases(struct semaphore_acquire *k)
{
    struct contender_config *config = &k->s->lease_config;
    if (!config->spec.place || !config->spec.place->search)
        return;
    config->spec.only_found = true;
    for (k->got = 0; k->got < k->n; k->got++) {
        clave_async_lease *l = k->leases[k->got];
        if (!l->place) /* on an error it goes with the session */
            (void)semaphore_acquire_take(&l->place, k, CLAVE_NEVER, config, &semaphore_lease_events,
                                         l);
    }
}

void clave__semaphore_acquire_cancel(struct semaphore_acquire *k, clave_err err)
{
    semaphore_acquire_find_leases(k);
    leave_all(k);
    list_remove(&k->link);
    k->verdict = err;
    clave__client_later(k->s->client, &k->due);
}

/* The deadline may have passed unnoticed in a stopped process: a lease acquired now would be a try.
 */
static void take_next_lease(struct semaphore_acquire *k)
{
    assert(k->got < k->n && !k->leases[k->got]->place);
    clave_async_lease *l = k->leases[k->got];
    bool late = !k->trying && k->deadline <= clave__client_now(k->s->client);
    clave_err err = late ? CLAVE_EBUSY
                         : semaphore_acquire_take(&l->place, k, k->deadline, &k->s->lease_config,
                                                  &semaphore_lease_events, l);
    if (err != CLAVE_OK)
        clave__semaphore_acquire_fail(k, err);
}

static void grant(struct semaphore_acquire *k)
{
    assert(k->got == k->n);
    struct contender *mutex = k->mutex;
    k->mutex = NULL;
    /* Sent after the creates and not awaited: the next acquire gets the mutex as soon as possible.
     */
    if (mutex) /* not when the lease was found */
        clave__contender_leave(mutex, NULL, NULL);
    for (size_t i = 0; i < k->n; i++) {
        k->leases[i]->semaphore_acquire = NULL;
        clave__contender_limit(k->leases[i]->place, k->s->max_hold_ms);
        list_push_back(&k->s->leases, &k->leases[i]->link);
    }
    semaphore_acquire_answer(k, CLAVE_OK);
}

static void semaphore_acquire_lease_held(struct semaphore_acquire *k)
{
    if (++k->got < k->n)
        take_next_lease(k);
    else
        grant(k);
}

static clave_err semaphore_acquire_look(struct semaphore_acquire *k);

static void semaphore_acquire_start_over(struct semaphore_acquire *k, clave_err why)
{
    leave_all(k);
    bool late = k->trying || k->deadline <= clave__client_now(k->s->client);
    clave_err err = why == CLAVE_ECLOSED ? why
                    : late               ? clave__client_not_in_time(k->s->client, k->trying)
                                         : semaphore_acquire_look(k);
    if (err != CLAVE_OK)
        semaphore_acquire_answer(k, err);
}

static void semaphore_acquire_lease_lost(struct semaphore_acquire *k, clave_err why)
{
    semaphore_acquire_start_over(k, why);
}

/* ---- the gate -------------------------------------------------------------------------- */

static void tell_queued(struct semaphore_acquire *k, size_t ahead)
{
    clave_lease_event ev = {.kind = CLAVE_LEASE_QUEUED, .request = k->request, .ahead = ahead};
    clave__semaphore_tell(k->s, &ev);
}

static void semaphore_acquire_lease_waits(struct semaphore_acquire *k)
{
    tell_queued(k, 0);
}

static void on_mutex_moved(void *owner)
{
    struct semaphore_acquire *k = owner;
    tell_queued(k, k->mutex->ahead);
}

static void on_mutex_held(void *owner)
{
    take_next_lease(owner);
}

/* There is none to be found. */
static bool semaphore_acquire_found_none(const struct contender_config *config, clave_err err)
{
    return config->spec.only_found && err == CLAVE_ENONODE;
}

/* It has gone on elsewhere to its lease, or was given up there. */
static bool semaphore_acquire_is_final(const struct semaphore_acquire *k, clave_err err)
{
    const struct queue_place *place = k->s->mutex_config.spec.place;
    return place && place->final && err == CLAVE_ENONODE;
}

static void on_mutex_ended(void *owner, clave_err err)
{
    struct semaphore_acquire *k = owner;
    clave__semaphore_keep_text(k->s, err, k->mutex);
    k->mutex = NULL;
    if (!semaphore_acquire_found_none(&k->s->mutex_config, err) &&
        !semaphore_acquire_is_final(k, err)) {
        clave__semaphore_acquire_fail(k, err);
        return;
    }
    k->s->lease_config.spec.only_found = true;
    take_next_lease(k);
}

/* By a name of the user's, another process with this session may have gone on: the lease under way
 * may be its own, and held. So it is not given up, and waits as one that was found. */
static void on_mutex_lost(void *owner, clave_err why)
{
    struct semaphore_acquire *k = owner;
    k->mutex = NULL;
    if (k->s->lease_config.spec.place && why == CLAVE_ENONODE)
        k->s->lease_config.spec.only_found = true;
    else
        semaphore_acquire_start_over(k, why);
}

static const struct contender_events mutex_events = {
    .moved = on_mutex_moved,
    .held = on_mutex_held,
    .ended = on_mutex_ended,
    .lost = on_mutex_lost,
};

static clave_err take_mutex(struct semaphore_acquire *k)
{
    assert(!k->mutex);
    return semaphore_acquire_take(&k->mutex, k, k->deadline, &k->s->mutex_config, &mutex_events, k);
}

/* Another process with this session may have begun: its place among those who acquire is looked for
 * first, then its leases. Who has a lease alone must not queue: those before it wait for that
 * lease.
 */
static clave_err semaphore_acquire_look(struct semaphore_acquire *k)
{
    const struct queue_place *place = k->s->mutex_config.spec.place;
    k->s->mutex_config.spec.only_found = place && place->search;
    k->s->lease_config.spec.only_found = false;
    return take_mutex(k);
}

static void semaphore_acquire_lease_ended(struct semaphore_acquire *k, clave_err err)
{
    if (semaphore_acquire_found_none(&k->s->lease_config, err) &&
        !semaphore_acquire_is_final(k, err)) {
        leave_all(k); /* a part of them is as good as none, and others may wait for it */
        k->s->mutex_config.spec.only_found = k->s->lease_config.spec.only_found = false;
        err = take_mutex(k);
    }
    if (err != CLAVE_OK)
        clave__semaphore_acquire_fail(k, err);
}

bool clave__semaphore_acquire_recount(struct semaphore_acquire *k)
{
    assert(k->got < k->n);
    struct contender *waits = k->leases[k->got]->place;
    if (waits)
        clave__contender_recount(waits);
    return waits != NULL;
}

/* ---- life ------------------------------------------------------------------------------ */

clave_err clave__semaphore_acquire_new(struct semaphore_acquire **out, clave_async_semaphore *s,
                                       size_t n)
{
    *out = NULL;
    if (n > (SIZE_MAX - sizeof **out) / sizeof(clave_async_lease *))
        return CLAVE_ENOMEM;
    struct semaphore_acquire *k = clave__mem_zalloc(s->mem, sizeof *k + n * sizeof *k->leases);
    if (!k)
        return CLAVE_ENOMEM;
    k->s = s;
    k->n = n;
    k->task = s->task;
    list_init(&k->link);
    list_init(&k->due.link);
    k->due.run = semaphore_acquire_on_due;
    for (size_t i = 0; i < n; i++) {
        k->leases[i] = clave__mem_zalloc(s->mem, sizeof **k->leases);
        if (!k->leases[i]) {
            free_acquire(k);
            return CLAVE_ENOMEM;
        }
        clave__semaphore_lease_init(k->leases[i], s, k);
    }
    *out = k;
    return CLAVE_OK;
}

clave_err clave__semaphore_acquire_start(struct semaphore_acquire *k)
{
    clave_async_semaphore *s = k->s;
    k->trying = k->deadline <= clave__client_now(s->client);
    /* A try never waits, not even for a connection. */
    bool in_vain = k->trying && !clave_async_client_is_connected(s->client);
    clave_err err = in_vain ? CLAVE_OK : semaphore_acquire_look(k);
    if (err != CLAVE_OK) {
        free_acquire(k);
        return err;
    }
    clave__semaphore_hold(s);
    list_push_back(&s->acquires, &k->link);
    if (in_vain)
        clave__semaphore_acquire_cancel(k, clave__client_not_in_time(s->client, k->trying));
    return CLAVE_OK;
}

/* ---- what happens to the node of a lease ----------------------------------------------- */

static void semaphore_acquire_on_lease_moved(void *owner)
{
    clave_async_lease *l = owner;
    assert(l->semaphore_acquire);
    semaphore_acquire_lease_waits(l->semaphore_acquire);
}

static void semaphore_acquire_on_lease_held(void *owner)
{
    clave_async_lease *l = owner;
    assert(l->semaphore_acquire);
    semaphore_acquire_lease_held(l->semaphore_acquire);
}

static void semaphore_acquire_on_lease_ended(void *owner, clave_err err)
{
    clave_async_lease *l = owner;
    assert(l->semaphore_acquire);
    clave__semaphore_keep_text(l->s, err, l->place);
    l->place = NULL;
    semaphore_acquire_lease_ended(l->semaphore_acquire, err);
}

static void semaphore_acquire_on_lease_lost(void *owner, clave_err why)
{
    clave_async_lease *l = owner;
    l->place = NULL;
    if (l->semaphore_acquire) {
        semaphore_acquire_lease_lost(l->semaphore_acquire, why);
        return;
    }
    l->lost = why;
    clave__semaphore_lease_tell(l, CLAVE_LEASE_LOST, why);
}

/* A lease that is held while its acquire waits for others belongs to nobody who could release it.
 */
static void semaphore_acquire_on_lease_asked(void *owner)
{
    clave_async_lease *l = owner;
    if (!l->semaphore_acquire)
        clave__semaphore_lease_tell(l, CLAVE_LEASE_ASKED, CLAVE_OK);
}

static const struct contender_events semaphore_lease_events = {
    .moved = semaphore_acquire_on_lease_moved,
    .held = semaphore_acquire_on_lease_held,
    .ended = semaphore_acquire_on_lease_ended,
    .lost = semaphore_acquire_on_lease_lost,
    .asked = semaphore_acquire_on_lease_asked,
};
