/* semaphore_internal.h - a semaphore, its acquires and its leases. The folder:
 *
 *   semaphore.c          its life, its acquires
 *   semaphore_limit.c    how many leases there may be
 *   semaphore_acquire.c  one acquire: first in <path>/locks, then one lease after the other; a try
 *   semaphore_lease.c    one lease: its release, what is known of it
 *   semaphore_ref.c      what both need of the semaphore
 *   shared_count.c       the limit that processes share in a node */
#ifndef CLAVE_RECIPE_SEMAPHORE_SEMAPHORE_INTERNAL_H
#define CLAVE_RECIPE_SEMAPHORE_SEMAPHORE_INTERNAL_H

#include "base/list.h"
#include "clave/async/semaphore.h"
#include "recipe/contender/contender_config.h"
#include "recipe/semaphore/shared_count.h"

struct clave_async_semaphore {
    clave_async_client *client;
    const struct clave_mem *mem;
    struct contender_config mutex_config; /* for places in <path>/locks */
    struct contender_config lease_config; /* for leases in <path>/leases; its spec has the limit */
    struct deadlock_terms deadlock_terms;
    char *deadlock;      /* text of the deadlock that ended the latest request; may be NULL */
    uint64_t task;       /* the owner of coming requests; 0: unspecified */
    int64_t max_hold_ms; /* how long a lease may be held once it is given out */
    struct shared_count *shared_count;
    clave_err limit_err; /* the latest error; CLAVE_OK once a value was read */
    clave_lease_event_cb *event_cb;
    void *event_arg;
    struct list acquires; /* acquires that are waiting */
    struct list leases;   /* leases given out, including lost ones */
    unsigned refs;        /* the user, answers still to come, and running calls */
};

enum { SEMAPHORE_LIMIT_MAX = INT32_MAX };
/* Makes the limit that of the node at `path`. If the node is missing it is created with `limit`, or
 * waited for if that is 0. ENOMEM, EPATH, ECLOSED. */
clave_err clave__semaphore_limit_share(clave_async_semaphore *s, const char *path, uint32_t limit);
/* Checks that the limit is known or will be. After a failure, it is read once more. */
clave_err clave__semaphore_limit_check(clave_async_semaphore *s);

void clave__semaphore_hold(clave_async_semaphore *s);
void clave__semaphore_drop(clave_async_semaphore *s);
/* From now on requests are made for this owner, a number as in clave_async_mutex_acquire. */
void clave__semaphore_set_task(clave_async_semaphore *s, uint64_t task);
/* Keeps the text of a deadlock that ended a request with this place. */
void clave__semaphore_keep_text(clave_async_semaphore *s, clave_err err,
                                const struct contender *place);
void clave__semaphore_tell(clave_async_semaphore *s, const clave_lease_event *ev);

/* A lease. It is being taken (it has an acquire, and a place once its turn has come), given out (it
 * has a place), lost (it has neither), or being released (it has at most a callback). */
struct semaphore_acquire;
struct clave_async_lease {
    struct list link; /* in the semaphore's list, once given out */
    clave_async_semaphore *s;
    struct semaphore_acquire *semaphore_acquire;
    struct contender *place;
    clave_err lost; /* why it was lost; CLAVE_OK: it is not */
    struct client_task left;
    clave_err left_err;
    clave_async_lease_left_cb *cb;
    void *arg;
};

/* An acquire. It starts over if its mutex is lost, or a lease before it has all of them: either the
 * session ended, or somebody deleted the node. */
struct semaphore_acquire {
    struct client_task due;
    struct list link;
    clave_async_semaphore *s;
    uint64_t request;
    size_t n, got; /* leases[got] is being taken */
    int64_t deadline;
    bool trying;
    uint64_t task;
    char uuid[CLAVE_UUID_TEXT + 1]; /* in the names of its place and its first lease */
    struct contender *mutex;
    struct semaphore_count *count; /* for a try: the count under way; NULL: none */
    bool count_again;              /* the last count was made before its leases */
    unsigned counts;               /* how often it has begun with a count */
    char last_place[16];           /* the number of the last place that the count found */
    clave_err verdict;
    clave_async_lease_cb *cb;
    void *arg;
    clave_async_lease *leases[];
};

clave_err clave__semaphore_acquire_new(struct semaphore_acquire **out, clave_async_semaphore *s,
                                       size_t n);
/* Queues. If this fails, the acquire is freed. */
clave_err clave__semaphore_acquire_start(struct semaphore_acquire *a);
/* Ends the acquire: the callback is called with `err`. */
void clave__semaphore_acquire_fail(struct semaphore_acquire *a, clave_err err);
/* The same, but later. */
void clave__semaphore_acquire_cancel(struct semaphore_acquire *a, clave_err err);
/* The limit has changed. Returns false if the acquire does not wait for room. */
bool clave__semaphore_acquire_recount(struct semaphore_acquire *a);

void clave__semaphore_lease_init(clave_async_lease *l, clave_async_semaphore *s,
                                 struct semaphore_acquire *a);
void clave__semaphore_lease_tell(clave_async_lease *l, clave_lease_event_kind kind, clave_err why);

#endif
