/* mutex_internal.h - a mutex and its owners, as its files share them. The folder:
 *
 *   mutex.c                owners, events
 *   mutex_acquire.c        acquire
 *   mutex_release.c        release, cancel
 *   mutex_answer.c         answers to owners
 *   mutex_local_handoff.c  owners that share one place
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
    /* Shared places (mutex_local_handoff.c): */
    struct list link; /* in the mutex's `waiters`, while another owner has the place */
    int64_t deadline; /* of its acquire */
    struct timer limit;
    bool callback_due; /* holds, but its acquire's callback is still to come */
    bool asked;        /* and ASKED after that */
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
    unsigned share_turns;            /* as in the options; 0: no sharing */
    unsigned turns;                  /* how often the present grant was handed over */
    struct owner_entry *place_owner; /* the owner that has the shared place; NULL: none */
    struct list waiters;             /* owners that wait for it, first come, first served */
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
/* It holds: its acquire's callback, then the event. */
void clave__owner_entry_tell_held(struct owner_entry *e);
/* Out of the map, and its callback told, later. */
void clave__owner_entry_dismiss(struct owner_entry *e, clave_err verdict);
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

/* ---- mutex_acquire.c ------------------------------------------------------------------------ */

/* Takes a place of its own in the queue; its owner is notified. `downgrade`: the node to take over,
 * may be NULL. */
clave_err clave__owner_entry_take_place(struct owner_entry *e, int64_t deadline,
                                        const char *downgrade);

/* ---- rwlock_upgrade.c ----------------------------------------------------------------------- */

/* What the owner has on the other side of a read-write lock: the place that a read takes over, NULL
 * if there is none; or an error if it must not acquire: EUPGRADE, ELOST, EINVAL. */
clave_err clave__rwlock_upgrade_check(const clave_async_mutex *m, uint64_t owner,
                                      const struct contender **downgrade);

/* ---- mutex_local_handoff.c ------------------------------------------------------------------ */

void clave__handoff_init(struct owner_entry *e);
/* Takes a place, or waits for the existing one, which a try must not do. */
clave_err clave__handoff_acquire(struct owner_entry *e, int64_t deadline);
/* The owner of the place gives its last hold back. true: another owner has the place now. */
bool clave__handoff_hand_over(struct owner_entry *e);
/* The place is gone: the next waiter takes one. */
void clave__handoff_promote(clave_async_mutex *m);
/* Its acquire has ended, in whatever way. */
void clave__handoff_end_wait(struct owner_entry *e);
/* The grant is gone. false: its owner had not been told of the grant yet, and waits again. */
bool clave__handoff_lose(struct owner_entry *e);
/* Why a wait for the shared place ends now, at its deadline: EBUSY, EUNREACHABLE. */
clave_err clave__handoff_not_in_time(const clave_async_mutex *m);
/* Gives up waiting: if it has the place, the next waiter gets it. */
void clave__handoff_step_down(struct owner_entry *e);

#endif
