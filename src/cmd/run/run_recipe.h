/* run_recipe.h - what the command runs under: a held lock or lease, or a leadership. The runner
 * treats them alike: each is waited for, granted, and perhaps lost. */
#ifndef CLAVE_CMD_RUN_RUN_RECIPE_H
#define CLAVE_CMD_RUN_RUN_RECIPE_H

#include "clave/async/leader.h"
#include "clave/async/rwlock.h"
#include "clave/async/semaphore.h"
#include "cmd/run/run_flags.h"
#include "recipe/grant_held.h"

/* All run on the loop's thread, from the client's callbacks. */
struct acquisition_events {
    /* Waiting: `ahead` participants are before us in the queue. `predecessor` is the path of the
     * node right before ours, "" when it is not known; `left_over` is as of clave_mutex_event. */
    void (*moved)(void *arg, size_t ahead, const char *predecessor, const char *left_over);
    void (*next)(void *arg);                   /* only the holder is before us */
    void (*verdict)(void *arg, clave_err err); /* once: OK: granted; EBUSY: not in time; ... */
    void (*lost)(void *arg, clave_err why);    /* once, after OK */
    /* after OK: another participant asks us to release */
    void (*asked)(void *arg);
};

struct acquisition {
    const struct acquisition_events *events;
    void *arg;
    clave_async_mutex *mutex; /* one of these three; perhaps a side of `rw` */
    clave_async_semaphore *semaphore;
    clave_async_latch *latch;
    clave_async_rwlock *rw;
    clave_async_lease *lease; /* once it is held */
    bool tries;               /* the latch is left unless it leads at once */
};

struct acquisition_terms {
    int64_t deadline;     /* CLAVE_TRY, CLAVE_NEVER, or when to stop waiting */
    int64_t min_valid_ms; /* as in clave_mutex_options */
};

/* With --acl parent, the two nodes in a semaphore's that its leases and its queue are in. The
 * recipe would make them open to all, and who may delete in them can end a lease. */
struct acquisition_dirs {
    void (*made)(void *arg, clave_err err); /* once, later: both are there, or the first error */
    void *arg;
    size_t left; /* not answered yet */
    clave_err err;
};

/* Creates those that are missing, with the list of the plan; `made` and `arg` are set. At once:
 * ENOMEM and the other errors of clave_async_create; then `made` does not run. */
clave_err acquisition_dirs_make(struct acquisition_dirs *d, clave_async_client *client,
                                const struct run_plan *plan);

/* How this process describes itself to other participants. */
enum { PROCESS_IDENTITY_COMMAND_CAP = 1024 };

struct participant_identity {
    char host[256];
    char command[PROCESS_IDENTITY_COMMAND_CAP]; /* its arguments, as far as they fit */
    clave_identity identity;                    /* points into this struct and into the plan */
};

/* The host, the pid, the name and the command of the plan. */
void participant_identity_describe(struct participant_identity *s, const struct run_plan *plan);

/* Starts what the plan asks for. Free it after an error too. */
clave_err acquisition_begin(struct acquisition *a, clave_async_client *client,
                            const struct run_plan *plan, const struct acquisition_terms *terms);
/* Says what is held; false: not held, or no longer held. Answers from memory, without the server.
 */
bool acquisition_held(const struct acquisition *a, struct grant_facts *out);
/* The grant itself, as clave_async_mutex_grant. */
clave_err acquisition_grant(const struct acquisition *a, clave_async_grant **out);
/* true: nobody can get a lease, because the node that holds the number of leases has none, or has
 * not been read yet. */
bool acquisition_limit_missing(const struct acquisition *a);
/* The cycle behind a verdict of EDEADLOCK; may be NULL. */
const char *acquisition_deadlock(const struct acquisition *a);
/* For a leader: publishes the value to everyone who follows the election. */
clave_err acquisition_publish(struct acquisition *a, const char *value);
/* No event after this. */
void acquisition_free(struct acquisition *a);

#endif
