/* semaphore_user.h - one process at a semaphore in a paired world, and the leases it has. */
#ifndef CLAVE_TEST_SEMAPHORE_USER_H
#define CLAVE_TEST_SEMAPHORE_USER_H

#include "clave/async/semaphore.h"
#include "lib/mutex_owner.h"

enum { PARTY_LEASES = 40 };

struct party {
    struct pair *p;
    size_t client;
    clave_async_semaphore *s;
    clave_async_lease *held[PARTY_LEASES]; /* in the order given */
    size_t n;
    /* Callbacks: how often, and the last. */
    unsigned answers, queued, lost, asked, departures;
    size_t ahead;
    clave_err err, why, left;
};

/* At /s. The size and the event callback are the party's. */
clave_err party_open_with(struct party *a, struct pair *p, size_t client,
                          clave_semaphore_options o);
void party_open(struct party *a, struct pair *p, size_t client, uint32_t limit);
void party_close(struct party *a);

/* `within_ms` as of seat_acquire, and the same without letting anything happen. */
clave_err party_acquire(struct party *a, size_t n, int64_t within_ms);
clave_err party_ask(struct party *a, uint64_t request, size_t n, int64_t within_ms);
/* The oldest lease. */
clave_err party_release(struct party *a);
clave_err party_release_sure(struct party *a);

size_t party_leases_at_server(struct pair *p);
/* No ephemeral node and no watch. */
void party_assert_no_leftovers(struct pair *p);

#endif
