/* acquisition.h - what the command runs under: a held lock or lease, or a leadership. To the
 * wrapper they are one: waited for, granted, perhaps lost. */
#ifndef CLAVE_CMD_RUN_ACQUISITION_H
#define CLAVE_CMD_RUN_ACQUISITION_H

#include "clave/async/leader.h"
#include "clave/async/rwlock.h"
#include "clave/async/semaphore.h"
#include "cmd/run/lock_flags.h"

/* All on the loop's thread, from the client's callbacks. */
struct acquisition_events {
    /* Waiting: so many stand before us, the last of them (its path; "" when not known) right
     * before. */
    void (*moved)(void *arg, size_t ahead, const char *predecessor);
    void (*next)(void *arg);                   /* only the holder stands before us */
    void (*verdict)(void *arg, clave_err err); /* once: OK granted; EBUSY not in time; ... */
    void (*lost)(void *arg, clave_err why);    /* once, after OK */
    void (*asked)(void *arg);                  /* after OK: somebody wants us to let go */
};

struct acquisition {
    const struct acquisition_events *events;
    void *arg;
    clave_async_mutex *mutex; /* one of these three; perhaps a side of `rw` */
    clave_async_semaphore *semaphore;
    clave_async_latch *latch;
    clave_async_rwlock *rw;
    clave_async_lease *lease; /* once it is held */
};

struct acquisition_terms {
    int64_t deadline;     /* CLAVE_TRY, CLAVE_NEVER, or until when it is waited for */
    int64_t min_valid_ms; /* as in clave_mutex_options */
};

/* As the plan says. What fails is to be freed all the same. */
clave_err acquisition_begin(struct acquisition *c, clave_async_client *client,
                            const struct lock_plan *plan, const struct acquisition_terms *terms);
/* false: not held (any more). From memory. */
bool acquisition_grant(const struct acquisition *c, clave_grant *out);
/* true: nobody gets a lease, since the node that has their number has none (or is not read yet). */
bool acquisition_lacks_limit(const struct acquisition *c);
/* What a verdict of EDEADLOCK was about; may be NULL. */
const char *acquisition_deadlock(const struct acquisition *c);
/* Leaders: shows the value to who follows the election. */
clave_err acquisition_publish(struct acquisition *c, const char *value);
/* No event after this. */
void acquisition_free(struct acquisition *c);

#endif
