/* mutex_hold.h - what threads hold of a clave_mutex, and how they release it.
 *
 * A release that need not be awaited is decided from a struct thread_hold: its deadline is a copy,
 * which the loop's thread updates after every pass.
 *
 *   HELD ──▶ GIVEN ──▶ LEAVING ──▶ freed
 *   count    given      (no hold left: until the server knows, or the session has ended) */
#ifndef CLAVE_RUNTIME_BLOCKING_MUTEX_HOLD_H
#define CLAVE_RUNTIME_BLOCKING_MUTEX_HOLD_H

#include "clave/mutex.h"
#include "runtime/blocking/call.h"

/* Changed under the mutex, and except for `count` and `given` by the loop's thread only, which
 * therefore reads the rest without it. */
struct thread_hold {
    struct list link;  /* in the mutex's thread_holds, then in its leaving */
    struct task task;  /* makes the loop's thread look at `given` */
    clave_mutex *lock; /* NULL: the mutex was freed, and nothing waits any more */
    uint64_t owner;
    unsigned count;    /* holds not yet released, lost ones included */
    unsigned released; /* released, and not yet seen by the loop's thread */
    int64_t deadline;  /* INT64_MIN: lost */
    /* the loop's thread only: the release that waits for the server; may be NULL */
    struct call *call;
};

struct clave_mutex {
    clave_client *client;
    clave_async_mutex *mutex; /* the loop's thread only */
    struct observer observer;
    clave_mutex_event_cb *event_cb; /* the user's */
    void *event_arg;
    struct list thread_holds; /* under the loop's mutex, as is everything below */
    struct list leaving;
    struct cell all_left; /* no hold is LEAVING any more */
};

/* As clave_mutex_new, for a queue with another rule; NULL: as the options say. (mutex.c) */
struct queue_order_rule;
clave_err clave__blocking_mutex_new(clave_mutex **out, clave_client *c, const char *path,
                                    const clave_mutex_options *o,
                                    const struct queue_order_rule *rule);

/* Any thread: allocated before the acquire begins, since a grant cannot fail. Free it if it was not
 * taken. */
struct thread_hold *clave__thread_hold_new(clave_mutex *m, uint64_t owner);

/* On the loop's thread. A hold was granted: takes *fresh if it is the owner's first. */
void clave__thread_hold_add_hold(clave_mutex *m, struct thread_hold **fresh);
void clave__thread_hold_lose(clave_mutex *m, uint64_t owner);
/* Copies all deadlines again. */
void clave__thread_holds_refresh(clave_mutex *m);
/* Releases every hold. */
void clave__thread_holds_give_back(clave_mutex *m);
/* The mutex is being freed: holds that are LEAVING free themselves. */
void clave__thread_holds_orphan(clave_mutex *m);

/* Any thread. The owner holds it, and no loss of it is known. */
bool clave__thread_hold_is_good(clave_mutex *m, uint64_t owner);
/* Waits until the server knows that nothing is held any more, or until the deadline. */
void clave__thread_holds_await_left(clave_mutex *m, int64_t deadline);

#endif
