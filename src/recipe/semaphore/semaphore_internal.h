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
    struct contender_config mutex_config; /* <path>/locks */
    struct contender_config lease_config; /* <path>/leases; its spec has the limit */
    struct deadlock_terms deadlock_terms;
    char *deadlock;      /* the cycle that ended the latest request; may be NULL */
    uint64_t task;       /* the owner of the requests to come; 0: none in particular */
    int64_t max_hold_ms; /* of a lease, from when it is given out */
    struct shared_count *shared_count;
    clave_err limit_err; /* the latest; OK once a value was read */
    clave_lease_event_cb *event_cb;
    void *event_arg;
    struct list acquires; /* that wait */
    struct list leases;   /* given out, lost ones included */
    unsigned refs;        /* the user, answers to come, calls that run */
};

enum { SEMAPHORE_LIMIT_MAX = INT32_MAX };
/* The limit is that of the node at `path`; a missing one is made with `limit`, and waited for if
 * that is 0. ENOMEM, EPATH, ECLOSED. */
clave_err clave__semaphore_limit_share(clave_async_semaphore *s, const char *path, uint32_t limit);
/* Will the limit be known? After a failure it is read once more. */
clave_err clave__semaphore_limit_check(clave_async_semaphore *s);

void clave__semaphore_hold(clave_async_semaphore *s);
void clave__semaphore_drop(clave_async_semaphore *s);
/* The requests from now on are this owner's, a number as of clave_async_mutex_acquire. */
void clave__semaphore_set_task(clave_async_semaphore *s, uint64_t task);
/* Keeps the text of a deadlock that ended a request, which had this place. */
void clave__semaphore_keep_text(clave_async_semaphore *s, clave_err err,
                                const struct contender *place);
void clave__semaphore_tell(clave_async_semaphore *s, const clave_lease_event *ev);

/* One lease: being taken (an acquire, and a place from when it is its turn), given out (a place),
 * lost (neither), or being released (a callback at most). */
struct semaphore_acquire;
struct clave_async_lease {
    struct list link; /* in the semaphore's, once given out */
    clave_async_semaphore *s;
    struct semaphore_acquire *semaphore_acquire;
    struct contender *place;
    clave_err lost; /* why; OK while it is not */
    struct client_task left;
    clave_err left_err;
    clave_async_lease_left_cb *cb;
    void *arg;
};

/* One acquire. It starts over when its mutex, or a lease before it has all of them, is lost: either
 * was of a session that is over, or was deleted. */
struct semaphore_acquire {
    struct client_task due;
    struct list link;
    clave_async_semaphore *s;
    uint64_t request;
    size_t n, got; /* leases[got] is being taken */
    int64_t deadline;
    bool trying;
    uint64_t task;
    char uuid[CLAVE_UUID_TEXT + 1]; /* of the names of its place and its first lease */
    struct contender *mutex;
    struct semaphore_count *count; /* of a try: the reading under way; NULL: none */
    bool count_again;              /* the last one came before its leases were made */
    unsigned counts;               /* how often it has begun with one */
    char last_place[16];           /* the number of the last place that it found */
    clave_err verdict;
    clave_async_lease_cb *cb;
    void *arg;
    clave_async_lease *leases[];
};

clave_err clave__semaphore_acquire_new(struct semaphore_acquire **out, clave_async_semaphore *s,
                                       size_t n);
/* Takes its place in the queue. When it fails, the acquire is freed. */
clave_err clave__semaphore_acquire_start(struct semaphore_acquire *a);
/* Ends it: the callback is told `err`. */
void clave__semaphore_acquire_fail(struct semaphore_acquire *a, clave_err err);
/* The same, after this call. */
void clave__semaphore_acquire_cancel(struct semaphore_acquire *a, clave_err err);
/* The limit has changed. false: it does not wait for room. */
bool clave__semaphore_acquire_recount(struct semaphore_acquire *a);

void clave__semaphore_lease_init(clave_async_lease *l, clave_async_semaphore *s,
                                 struct semaphore_acquire *a);
void clave__semaphore_lease_tell(clave_async_lease *l, clave_lease_event_kind kind, clave_err why);

#endif
