/* workload.h - what one process does: its actors, the mutexes they share, and the callbacks of
 * its host. */
#ifndef CLAVE_SIM_WORKLOAD_H
#define CLAVE_SIM_WORKLOAD_H

#include "actor.h"

struct checker;

enum { ACTORS = 3, LOCKS = 2 };

struct workload_options {
    unsigned locks;
    unsigned actors; /* a process */
    int64_t hold_us; /* mean */
    int64_t rest_us;
    unsigned writes;    /* at most, a hold */
    unsigned forever;   /* permille of the acquires */
    unsigned timed;     /* permille; the rest are tries */
    unsigned impatient; /* permille of waits that are cancelled */
    unsigned restless;  /* permille: the mutex is freed, and made anew */
    bool strict;
    unsigned sleepy; /* permille of the holds that last `sleep_us` */
    int64_t sleep_us;
    int64_t max_hold_ms; /* 0: none */
    int64_t patience_ms; /* mean of timed acquires */
};

struct workload_stats {
    uint64_t acquires;
    uint64_t grants;
    uint64_t busy;
    uint64_t canceled;
    uint64_t losses;
    uint64_t writes;  /* acknowledged */
    uint64_t refused; /* by the guard */
    uint64_t unknown;
};

/* What one process does. */
struct workload {
    struct host *host;
    struct checker *checker;
    const struct workload_options *o;
    struct actor actors[ACTORS];
    clave_mutex *mutexes[LOCKS];
    bool day_is_over; /* what waits is served, and then no more */
    bool ending;      /* the process is being torn down */
    unsigned listings_out;
    struct workload_stats stats;
};

/* Becomes the user's code of the host. */
void workload_init(struct workload *l, struct host *h, struct checker *c,
                   const struct workload_options *o);
/* Nothing new from here on. */
void workload_finish(struct workload *l);
/* Nobody waits or holds, and every callback has come. */
bool workload_is_done(const struct workload *l);
/* Frees the mutexes, when all is done. */
void workload_put_away(struct workload *l);

/* "/locks/a", "/counters/a" */
const char *workload_lock_path(unsigned lock);
const char *workload_counter_path(unsigned lock);

/* The mutex of this process for a lock; NULL: no memory. */
clave_mutex *workload_mutex(struct workload *l, unsigned lock);
/* Frees it, with whoever waits or holds. */
void workload_free_mutex(struct workload *l, unsigned lock);
/* Somebody looks who stands in the queue. */
void workload_list(struct workload *l, unsigned lock);

#endif
