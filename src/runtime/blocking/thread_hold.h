/* thread_hold.h - what threads know of their holds of a clave_mutex, and how they give them back.
 *
 * What a thread asks about its hold is answered from a tenure: a copy of the grant that the
 * loop's thread keeps up to date after every pass, and that the asking thread judges by its
 * own reading of the clock. So a thread that was stopped past the deadline is told the truth
 * at once, whatever the loop has had time to learn.
 *
 *   HELD ──▶ GIVEN ──▶ LEAVING ──▶ freed
 *   count    given      (no hold left: until the server knows, or the session has ended)  */
#ifndef CLAVE_RUNTIME_BLOCKING_THREAD_HOLD_H
#define CLAVE_RUNTIME_BLOCKING_THREAD_HOLD_H

#include "clave/mutex.h"
#include "runtime/blocking/call.h"

/* Changed under the mutex, by the loop's thread only but for `count` and `given`; so that
 * thread reads the rest without. */
struct thread_hold {
    struct list link;  /* in the lock's tenures, then in its leaving */
    struct task task;  /* has the loop's thread look at `given` */
    clave_mutex *lock; /* NULL: the lock was freed, nobody asks any more */
    uint64_t owner;
    unsigned count;    /* of holds not yet given back, lost ones too */
    unsigned given;    /* given back, and not yet seen by the loop's thread */
    int64_t token;     /* 0: lost */
    int64_t deadline;  /* INT64_MIN: lost */
    struct call *call; /* the loop's thread only: waits for the server; may be NULL */
};

struct clave_mutex {
    clave_client *session;
    clave_async_mutex *mutex; /* the loop's thread only */
    struct observer observer;
    clave_mutex_event_cb *event_cb; /* the user's */
    void *event_arg;
    struct list thread_holds; /* under the loop's mutex, as all that follows */
    struct list leaving;
    struct cell emptied; /* there is none leaving any more */
};

/* clave_mutex_new in a queue of another rule. (mutex.c) */
struct order_rule;
clave_err clave__lock_new(clave_mutex **out, clave_client *s, const char *path,
                          const clave_mutex_options *o, const struct order_rule *rule);

/* Any thread: made before the acquire begins, since a grant cannot fail. free() it when it was
 * not taken. */
struct thread_hold *clave__thread_hold_new(clave_mutex *l, uint64_t owner);

/* On the loop's thread. A hold was granted: takes *fresh when it is the owner's first. */
void clave__thread_hold_add_hold(clave_mutex *l, struct thread_hold **fresh);
void clave__thread_hold_lose(clave_mutex *l, uint64_t owner);
/* Copies all grants anew. */
void clave__thread_holds_refresh(clave_mutex *l);
/* Gives every hold back. */
void clave__thread_holds_give_back(clave_mutex *l);
/* The lock goes: those that are leaving free themselves. */
void clave__thread_holds_orphan(clave_mutex *l);

/* On any thread. A copy of the owner's tenure; false: it holds nothing. */
bool clave__thread_hold_look(clave_mutex *l, uint64_t owner, struct thread_hold *out);
/* Until the server knows that nothing is held any more, or the deadline. */
void clave__thread_holds_await_left(clave_mutex *l, int64_t deadline);

#endif
