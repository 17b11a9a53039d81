/* run_recipe.h - what the command runs under: a lock, a lease, or a leadership. The runner treats
 * them alike: each is waited for, granted, and perhaps lost. */
#ifndef CLAVE_CMD_RUN_RUN_RECIPE_H
#define CLAVE_CMD_RUN_RUN_RECIPE_H

#include "clave/async/leader.h"
#include "clave/async/rwlock.h"
#include "clave/async/semaphore.h"
#include "cmd/run/run_flags.h"
#include "recipe/grant_held.h"

/* The callbacks run on the loop's thread, called from the client's callbacks. */
struct acquisition_events {
    /* We wait, with `ahead` participants before us in the queue. `predecessor` is the path of the
     * node right before ours, "" if it is not known; `left_over` is as in clave_mutex_event. */
    void (*moved)(void *arg, size_t ahead, const char *predecessor, const char *left_over);
    void (*next)(void *arg); /* only the holder is before us */
    /* Called once. OK: granted; EBUSY: not granted in time; or another error. */
    void (*verdict)(void *arg, clave_err err);
    void (*lost)(void *arg, clave_err why); /* at most once, after OK */
    /* After OK: another participant asks us to release the lock. */
    void (*asked)(void *arg);
};

struct acquisition {
    const struct acquisition_events *events;
    void *arg;
    clave_async_mutex *mutex; /* one of these three is set; with `rw`, this is one of its sides */
    clave_async_semaphore *semaphore;
    clave_async_latch *latch;
    clave_async_rwlock *rw;
    clave_async_lease *lease; /* set once it is held */
    bool tries;               /* leave the latch unless it leads at once */
};

struct acquisition_terms {
    int64_t deadline;     /* CLAVE_TRY, CLAVE_NEVER, or the time to stop waiting */
    int64_t min_valid_ms; /* as in clave_mutex_options */
};

/* For --acl parent: the two nodes below a semaphore's node that are the parents of its leases and
 * of its queue. The recipe would create them open to all, and whoever may delete their children can
 * end a lease. */
struct acquisition_dirs {
    void (*made)(void *arg,
                 clave_err err); /* called once, later: both nodes exist, or the first error */
    void *arg;
    size_t left; /* requests not answered yet */
    clave_err err;
};

/* Creates those of the two nodes that are missing, with the access list of the plan. Set `made` and
 * `arg` first. May fail at once with ENOMEM or an error of clave_async_create; then `made` is not
 * called. */
clave_err acquisition_dirs_make(struct acquisition_dirs *d, clave_async_client *client,
                                const struct run_plan *plan);

/* How this process describes itself to other participants. */
enum { PROCESS_IDENTITY_COMMAND_CAP = 1024 };

struct participant_identity {
    char host[256];
    char command[PROCESS_IDENTITY_COMMAND_CAP]; /* its arguments, cut off if they do not fit */
    clave_identity identity;                    /* points into this struct and into the plan */
};

/* Fills in the host, the pid, and the name and command of the plan. */
void participant_identity_describe(struct participant_identity *s, const struct run_plan *plan);

/* Starts what the plan asks for. Call acquisition_free after an error too. */
clave_err acquisition_begin(struct acquisition *a, clave_async_client *client,
                            const struct run_plan *plan, const struct acquisition_terms *terms);
/* Describes what is held, from memory, without asking the server. false: nothing is held, or no
 * longer. */
bool acquisition_held(const struct acquisition *a, struct grant_facts *out);
/* The grant as an object that other recipes accept; see clave_async_mutex_grant. */
clave_err acquisition_grant(const struct acquisition *a, clave_async_grant **out);
/* true: nobody can get a lease, because the node that should contain the number of leases does not
 * contain one, or has not been read yet. */
bool acquisition_limit_missing(const struct acquisition *a);
/* The cycle that led to a verdict of EDEADLOCK, as text; may be NULL. */
const char *acquisition_deadlock(const struct acquisition *a);
/* For a leader: publishes the value to everyone who follows the election. */
clave_err acquisition_publish(struct acquisition *a, const char *value);
/* Gives up a place that is waited in: the verdict follows, ECANCELED, EBUSY or, if it was granted
 * by then, OK. */
void acquisition_cancel(struct acquisition *a);
/* Releases what is held. No callback is called after this. */
void acquisition_free(struct acquisition *a);

#endif
