/* semaphore_user.h - one process at a semaphore in a memnet, the leases it has, and what its
 * callbacks reported. */
#ifndef CLAVE_TEST_SEMAPHORE_USER_H
#define CLAVE_TEST_SEMAPHORE_USER_H

#include "clave/async/semaphore.h"
#include "lib/mutex_owner.h"

enum { SEMAPHORE_USER_LEASES = 40 };

struct semaphore_user {
    struct memnet *p;
    size_t client;
    clave_async_semaphore *s;
    clave_async_lease *held[SEMAPHORE_USER_LEASES]; /* in the order given */
    size_t n;
    /* Callbacks: how often, and the last. */
    unsigned answers, queued, lost, asked, departures;
    size_t ahead;
    clave_err err, why, left;
};

/* At /s. The size and the event callback are set here. */
clave_err semaphore_user_open_with(struct semaphore_user *a, struct memnet *p, size_t client,
                                   clave_semaphore_options o);
void semaphore_user_open(struct semaphore_user *a, struct memnet *p, size_t client, uint32_t limit);
void semaphore_user_close(struct semaphore_user *a);

/* `within_ms` as of owner_acquire, and the same without letting anything happen. */
clave_err semaphore_user_acquire(struct semaphore_user *a, size_t n, int64_t within_ms);
clave_err semaphore_user_begin_acquire(struct semaphore_user *a, uint64_t request, size_t n,
                                       int64_t within_ms);
/* The oldest lease. */
clave_err semaphore_user_release(struct semaphore_user *a);
clave_err semaphore_user_release_confirmed(struct semaphore_user *a);

size_t semaphore_user_leases_at_server(struct memnet *p);

#endif
