/* grant_held.h - what is held at this moment, as three recipes report it from memory. Code that
 * holds through them needs no grant (clave/async/grant.h) to find out. */
#ifndef CLAVE_RECIPE_GRANT_HELD_H
#define CLAVE_RECIPE_GRANT_HELD_H

#include "clave/async/latch.h"
#include "clave/async/mutex.h"
#include "clave/async/semaphore.h"

struct contender;

struct grant_facts {
    int64_t token; /* czxid of the node; a downgraded read has that of its write */
    int64_t session_id;
    int64_t deadline;        /* until when nobody else can own it, by the client's clock */
    const char *node;        /* full path; valid until the next call on the holder */
    unsigned count;          /* how many times the owner holds it */
    bool resumed;            /* it goes on with the hold that another process has handed over */
    struct contender *place; /* valid until the next call on the holder */
};

/* Returns false if the owner does not hold the lock, or has lost it. */
bool clave__mutex_held(const clave_async_mutex *m, uint64_t owner, struct grant_facts *out);
/* Returns false if the lease was lost. */
bool clave__lease_held(const clave_async_lease *l, struct grant_facts *out);
/* Returns false if the candidate does not lead. */
bool clave__latch_held(const clave_async_latch *l, struct grant_facts *out);

#endif
