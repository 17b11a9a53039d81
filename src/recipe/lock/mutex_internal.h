/* mutex_internal.h - a mutex and its owners, as its files share them. The folder:
 *
 *   mutex.c                owners, events
 *   mutex_acquire.c        acquire
 *   mutex_release.c        release, cancel
 *   mutex_answer.c         answers to owners
 *   mutex_for_recipes.h    mutexes that other recipes are made of
 *   rwlock.c               two mutexes in one queue
 *   rwlock_upgrade.c       an owner of one side that acquires the other
 *   multilock.c            several locks as one
 *   once.c                 a job that runs once
 *   lock_delay.c           a pause after a lost holder
 *   record_node.c          the record node of both
 *   revoke.c               asks a holder to release */
#ifndef CLAVE_RECIPE_LOCK_MUTEX_INTERNAL_H
#define CLAVE_RECIPE_LOCK_MUTEX_INTERNAL_H

#include "base/list.h"
#include "base/map.h"
#include "clave/async/mutex.h"
#include "recipe/contender/contender_config.h"

/* What an acquire or a release will be told. */
struct answer {
    struct client_task due;
    clave_async_mutex *m;
    uint64_t owner;
    clave_async_mutex_cb *cb;
    void *arg;
    clave_err verdict;
};

/* What one owner has of a mutex: waiting (a place, no count), holding (both), or lost (a
 * count to give back, no place). When the owner's interest ends it leaves the map, and
 * its answer may live on. */
struct owner_entry {
    struct answer answer; /* first: freeing the answer frees the entry */
    struct map_node node;
    struct contender *place;
    unsigned count;
    clave_err lost;          /* why; OK while it is not */
    int64_t downgrade_token; /* of the write whose place a read takes over */
};

struct clave_async_mutex {
    clave_async_client *client;
    const struct clave_mem *mem;
    struct contender_config config;
    struct deadlock_terms deadlock_terms;
    char *deadlock;           /* of the newest acquire that it has ended; may be NULL */
    clave_async_mutex *other; /* side of a read-write lock; may be NULL */
    clave_mutex_event_cb *event_cb;
    void *event_arg;
    struct map owner_entries;
    bool freed;
    unsigned refs; /* the user, answers to come, calls that run */
};

/* ---- mutex.c ------------------------------------------------------------------------------- */

/* NULL: it neither has nor wants anything. */
struct owner_entry *clave__mutex_find(const clave_async_mutex *m, uint64_t owner);
/* What an owner's contender tells it. */
extern const struct contender_events clave__owner_entry_events;
/* Its node is gone after a release: `arg` is the entry. */
void clave__owner_entry_left(void *arg, clave_err err);
/* Takes an owner out of the map; its pending acquire ends with ECANCELED. */
void clave__owner_entry_remove(clave_async_mutex *m, struct owner_entry *e);

/* ---- mutex_answer.c ------------------------------------------------------------------------- */

void clave__mutex_ref(clave_async_mutex *m);
void clave__mutex_unref(clave_async_mutex *m);
void clave__mutex_answer_init(struct answer *a, clave_async_mutex *m, uint64_t owner,
                              clave_async_mutex_cb *cb, void *arg);
/* Frees the answer, then runs its callback: whatever that does finds us consistent. */
void clave__mutex_answer_deliver(struct answer *a, clave_err verdict);
/* The same, later. */
void clave__mutex_answer_post(struct answer *a, clave_err verdict);
/* The answer of a call that has nothing left to do: OK; `again`: held again, unless the mutex is
 * freed meanwhile. ENOMEM. */
clave_err clave__mutex_answer_post_new(clave_async_mutex *m, uint64_t owner, bool again,
                                       clave_async_mutex_cb *cb, void *arg);

/* ---- rwlock_upgrade.c ----------------------------------------------------------------------- */

/* What the owner has on the other side of a read-write lock: the place that a read takes over, NULL
 * if there is none; or an error if it must not acquire: EUPGRADE, ELOST, EINVAL. */
clave_err clave__rwlock_upgrade_check(const clave_async_mutex *m, uint64_t owner,
                                      const struct contender **downgrade);

#endif
