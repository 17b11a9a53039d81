/* semaphore_acquire.c - acquiring leases: first in the queue of those who acquire, then one lease
 * after the other, each of which waits for room. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>

#include "recipe/semaphore/semaphore_internal.h"

/* ---- giving up and answering ----------------------------------------------------------- */

static const struct contender_events semaphore_lease_events;

/* The leases first: the next holder of the mutex then finds room. */
static void semaphore_acquire_leave_all(struct semaphore_acquire *a)
{
    for (size_t i = 0; i < a->n; i++) {
        struct contender *place = a->leases[i]->place;
        a->leases[i]->place = NULL;
        if (place)
            clave__contender_leave(place, NULL, NULL);
    }
    struct contender *mutex = a->mutex;
    a->mutex = NULL;
    if (mutex)
        clave__contender_leave(mutex, NULL, NULL);
    a->got = 0;
}

static void free_acquire(struct semaphore_acquire *a)
{
    clave_async_semaphore *s = a->s;
    for (size_t i = 0; i < a->n && a->leases[i]; i++)
        clave__mem_free(s->mem, a->leases[i]);
    clave__mem_free(s->mem, a);
}

/* Nothing refers to the acquire any more when its callback runs. */
static void semaphore_acquire_answer(struct semaphore_acquire *a, clave_err err)
{
    clave_async_semaphore *s = a->s;
    list_remove(&a->link);
    list_remove(&a->due.link);
    if (err == CLAVE_OK) {
        a->cb(s, CLAVE_OK, a->leases, a->n, a->arg);
        a->n = 0; /* they belong to the caller */
    } else {
        a->cb(s, err, NULL, 0, a->arg);
    }
    free_acquire(a);
    clave__semaphore_drop(s);
}

static void semaphore_acquire_on_due(struct client_task *t)
{
    struct semaphore_acquire *a = LIST_ENTRY(t, struct semaphore_acquire, due);
    semaphore_acquire_answer(a, a->verdict);
}

void clave__semaphore_acquire_fail(struct semaphore_acquire *a, clave_err err)
{
    semaphore_acquire_leave_all(a);
    semaphore_acquire_answer(a, err);
}

/* ---- taking ---------------------------------------------------------------------------- */

/* Writes whose place it is, and what a search for deadlocks needs to know of the semaphore. */
static clave_err semaphore_acquire_add_identity(struct contender *place,
                                                const struct semaphore_acquire *a)
{
    const clave_async_semaphore *s = a->s;
    char task[24];
    snprintf(task, sizeof task, "%llx", (unsigned long long)a->task);
    clave_identity more = {.task = a->task ? task : NULL,
                           .limit = s->shared_count ? 0 : (uint32_t)s->lease_config.spec.limit,
                           .yields = s->deadlock_terms.delay_ms > 0};
    return clave__contender_add_identity(place, &more);
}

static clave_err semaphore_acquire_take(struct contender **place, struct semaphore_acquire *a,
                                        int64_t deadline, const struct contender_config *config,
                                        const struct contender_events *events, void *owner)
{
    clave_err err = clave__contender_new(place, a->s->client, &config->spec, events, owner);
    if (err == CLAVE_OK) {
        (*place)->nth = a->got;
        err = semaphore_acquire_add_identity(*place, a);
    }
    if (err == CLAVE_OK)
        err = clave__contender_join(*place, deadline);
    if (err != CLAVE_OK)
        *place = NULL;
    return err;
}

/* By a name of the user's, another process with this session may have made leases already. They
 * are looked for, and deleted. */
static void semaphore_acquire_find_leases(struct semaphore_acquire *a)
{
    struct contender_config *config = &a->s->lease_config;
    if (!config->spec.place || !config->spec.place->search)
        return;
    config->spec.only_found = true;
    for (a->got = 0; a->got < a->n; a->got++) {
        clave_async_lease *l = a->leases[a->got];
        if (!l->place) /* on an error it goes with the session */
            (void)semaphore_acquire_take(&l->place, a, CLAVE_NEVER, config, &semaphore_lease_events,
                                         l);
    }
}

void clave__semaphore_acquire_cancel(struct semaphore_acquire *a, clave_err err)
{
    semaphore_acquire_find_leases(a);
    semaphore_acquire_leave_all(a);
    list_remove(&a->link);
    a->verdict = err;
    clave__client_later(a->s->client, &a->due);
}

/* The deadline may have passed unnoticed in a stopped process: a lease acquired now would be a try.
 */
static void semaphore_acquire_take_next_lease(struct semaphore_acquire *a)
{
    assert(a->got < a->n && !a->leases[a->got]->place);
    clave_async_lease *l = a->leases[a->got];
    bool late = !a->trying && a->deadline <= clave__client_now(a->s->client);
    uint64_t others = a->mutex ? a->mutex->queue.others_seen_on : 0;
    clave_err err = late ? clave__client_not_in_time(a->s->client, others)
                         : semaphore_acquire_take(&l->place, a, a->deadline, &a->s->lease_config,
                                                  &semaphore_lease_events, l);
    if (err != CLAVE_OK)
        clave__semaphore_acquire_fail(a, err);
}

static void semaphore_acquire_grant(struct semaphore_acquire *a)
{
    assert(a->got == a->n);
    struct contender *mutex = a->mutex;
    a->mutex = NULL;
    /* Sent after the creates and not awaited: the next acquire gets the mutex as soon as possible.
     */
    if (mutex) /* not when the lease was found */
        clave__contender_leave(mutex, NULL, NULL);
    for (size_t i = 0; i < a->n; i++) {
        a->leases[i]->semaphore_acquire = NULL;
        clave__contender_limit(a->leases[i]->place, a->s->max_hold_ms);
        list_push_back(&a->s->leases, &a->leases[i]->link);
    }
    semaphore_acquire_answer(a, CLAVE_OK);
}

static void semaphore_acquire_lease_held(struct semaphore_acquire *a)
{
    if (++a->got < a->n)
        semaphore_acquire_take_next_lease(a);
    else
        semaphore_acquire_grant(a);
}

static clave_err semaphore_acquire_look(struct semaphore_acquire *a);

static void semaphore_acquire_start_over(struct semaphore_acquire *a, clave_err why)
{
    semaphore_acquire_leave_all(a);
    bool late = a->trying || a->deadline <= clave__client_now(a->s->client);
    clave_err err = why == CLAVE_ECLOSED ? why
                    : late               ? clave__client_not_in_time(a->s->client, 0)
                                         : semaphore_acquire_look(a);
    if (err != CLAVE_OK)
        semaphore_acquire_answer(a, err);
}

static void semaphore_acquire_lease_lost(struct semaphore_acquire *a, clave_err why)
{
    semaphore_acquire_start_over(a, why);
}

/* ---- the gate -------------------------------------------------------------------------- */

static void semaphore_acquire_tell_queued(struct semaphore_acquire *a, size_t ahead,
                                          const char *left_over)
{
    clave_lease_event ev = {
        .kind = CLAVE_LEASE_QUEUED, .request = a->request, .ahead = ahead, .left_over = left_over};
    clave__semaphore_tell(a->s, &ev);
}

static void semaphore_acquire_lease_waits(struct semaphore_acquire *a)
{
    semaphore_acquire_tell_queued(a, 0, NULL);
}

static void semaphore_acquire_on_mutex_moved(void *owner)
{
    struct semaphore_acquire *a = owner;
    semaphore_acquire_tell_queued(a, a->mutex->queue.ahead, clave__contender_left_over(a->mutex));
}

static void semaphore_acquire_on_mutex_held(void *owner)
{
    semaphore_acquire_take_next_lease(owner);
}

/* There is none to be found. */
static bool semaphore_acquire_found_none(const struct contender_config *config, clave_err err)
{
    return config->spec.only_found && err == CLAVE_ENONODE;
}

/* It has gone on elsewhere to its lease, or was given up there. */
static bool semaphore_acquire_is_final(const struct semaphore_acquire *a, clave_err err)
{
    const struct queue_place *place = a->s->mutex_config.spec.place;
    return place && place->final && err == CLAVE_ENONODE;
}

static void semaphore_acquire_on_mutex_ended(void *owner, clave_err err)
{
    struct semaphore_acquire *a = owner;
    clave__semaphore_keep_text(a->s, err, a->mutex);
    a->mutex = NULL;
    if (!semaphore_acquire_found_none(&a->s->mutex_config, err) &&
        !semaphore_acquire_is_final(a, err)) {
        clave__semaphore_acquire_fail(a, err);
        return;
    }
    a->s->lease_config.spec.only_found = true;
    semaphore_acquire_take_next_lease(a);
}

/* By a name of the user's, another process with this session may have gone on: the lease under way
 * may be its own, and held. So it is not given up, and waits as one that was found. */
static void semaphore_acquire_on_mutex_lost(void *owner, clave_err why)
{
    struct semaphore_acquire *a = owner;
    a->mutex = NULL;
    if (a->s->lease_config.spec.place && why == CLAVE_ENONODE)
        a->s->lease_config.spec.only_found = true;
    else
        semaphore_acquire_start_over(a, why);
}

static const struct contender_events mutex_events = {
    .moved = semaphore_acquire_on_mutex_moved,
    .held = semaphore_acquire_on_mutex_held,
    .ended = semaphore_acquire_on_mutex_ended,
    .lost = semaphore_acquire_on_mutex_lost,
};

static clave_err semaphore_acquire_take_mutex(struct semaphore_acquire *a)
{
    assert(!a->mutex);
    return semaphore_acquire_take(&a->mutex, a, a->deadline, &a->s->mutex_config, &mutex_events, a);
}

/* Another process with this session may have begun: its place among those who acquire is looked for
 * first, then its leases. Who has a lease alone must not queue: those before it wait for that
 * lease.
 */
static clave_err semaphore_acquire_look(struct semaphore_acquire *a)
{
    const struct queue_place *place = a->s->mutex_config.spec.place;
    a->s->mutex_config.spec.only_found = place && place->search;
    a->s->lease_config.spec.only_found = false;
    return semaphore_acquire_take_mutex(a);
}

static void semaphore_acquire_lease_ended(struct semaphore_acquire *a, clave_err err)
{
    if (semaphore_acquire_found_none(&a->s->lease_config, err) &&
        !semaphore_acquire_is_final(a, err)) {
        semaphore_acquire_leave_all(
            a); /* a part of them is as good as none, and others may wait for it */
        a->s->mutex_config.spec.only_found = a->s->lease_config.spec.only_found = false;
        err = semaphore_acquire_take_mutex(a);
    }
    if (err != CLAVE_OK)
        clave__semaphore_acquire_fail(a, err);
}

bool clave__semaphore_acquire_recount(struct semaphore_acquire *a)
{
    assert(a->got < a->n);
    struct contender *waits = a->leases[a->got]->place;
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
    struct semaphore_acquire *a = clave__mem_zalloc(s->mem, sizeof *a + n * sizeof *a->leases);
    if (!a)
        return CLAVE_ENOMEM;
    a->s = s;
    a->n = n;
    a->task = s->task;
    list_init(&a->link);
    list_init(&a->due.link);
    a->due.run = semaphore_acquire_on_due;
    for (size_t i = 0; i < n; i++) {
        a->leases[i] = clave__mem_zalloc(s->mem, sizeof **a->leases);
        if (!a->leases[i]) {
            free_acquire(a);
            return CLAVE_ENOMEM;
        }
        clave__semaphore_lease_init(a->leases[i], s, a);
    }
    *out = a;
    return CLAVE_OK;
}

clave_err clave__semaphore_acquire_start(struct semaphore_acquire *a)
{
    clave_async_semaphore *s = a->s;
    a->trying = a->deadline <= clave__client_now(s->client);
    /* A try never waits, not even for a connection. */
    bool in_vain = a->trying && !clave_async_client_is_connected(s->client);
    clave_err err = in_vain ? CLAVE_OK : semaphore_acquire_look(a);
    if (err != CLAVE_OK) {
        free_acquire(a);
        return err;
    }
    clave__semaphore_hold(s);
    list_push_back(&s->acquires, &a->link);
    if (in_vain)
        clave__semaphore_acquire_cancel(a, clave__client_not_in_time(s->client, 0));
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
