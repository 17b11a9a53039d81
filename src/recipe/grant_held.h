/* grant_held.h - what is held at this moment, as three recipes say it from memory. Those who hold
 * through them need no grant (clave/async/grant.h) to know it. */
#ifndef CLAVE_RECIPE_GRANT_HELD_H
#define CLAVE_RECIPE_GRANT_HELD_H

#include "clave/async/latch.h"
#include "clave/async/mutex.h"
#include "clave/async/semaphore.h"

struct contender;

struct grant_facts {
    int64_t token; /* czxid of the node; a downgraded read has its write's */
    int64_t session_id;
    int64_t deadline;        /* until when nobody else can own it, by the client's clock */
    const char *node;        /* full path; valid until the next call on the holder */
    unsigned count;          /* how many holds the owner has */
    struct contender *place; /* likewise */
};

/* false: the owner does not hold it, or has lost it. */
bool clave__mutex_held(const clave_async_mutex *m, uint64_t owner, struct grant_facts *out);
/* false: the lease was lost. */
bool clave__lease_held(const clave_async_lease *l, struct grant_facts *out);
/* false: it does not lead. */
bool clave__latch_held(const clave_async_latch *l, struct grant_facts *out);

#endif
