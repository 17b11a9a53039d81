/* workload.h - what the processes do: actors that acquire, hold, write guarded and give
 * back, in every way the API has. An actor is one owner of one mutex in one process. */
#ifndef CLAVE_SIM_WORKLOAD_H
#define CLAVE_SIM_WORKLOAD_H

#include "clave/mutex.h"
#include "host.h"

struct checker;

enum { ACTORS = 3, LOCKS = 2, PATH_SIZE = 96 };

enum actor_state {
    ACTOR_DONE, /* the process does not run, or the day is over */
    ACTOR_RESTING,
    ACTOR_WAITING,
    ACTOR_HOLDING,
    ACTOR_READING, /* the counter, while it holds */
    ACTOR_WRITING,
    ACTOR_LEAVING, /* a confirmed release */
};

struct actor {
    struct host *host;
    struct workload *load;
    clave_mutex *mutex; /* shared by the actors of a process at one lock */
    unsigned lock;
    uint64_t owner;
    char name[STORY_WHO];
    enum actor_state state;
    struct alarm alarm; /* of the process: seen when it runs */
    bool due;
    int64_t deadline; /* of the acquire, by its process's clock */
    bool canceled;
    bool calling; /* inside a call into the mutex */

    unsigned writes_left;
    bool has_value;
    int64_t value;      /* of the counter, as read */
    unsigned calls_out; /* callbacks that have to come */
    int64_t started;    /* true time of the acquire */

    /* While it believes to hold: from the grant to the release or LOST. */
    bool believes;
    bool lost; /* LOST was heard, the hold is to be given back */
    int64_t token;
    int64_t granted_ms; /* by its process's clock */
    int64_t session;
    char node[PATH_SIZE];

    /* While it waits, for the order of the queue. */
    int64_t queued_at; /* true time when it knew; -1: it does not */
    int64_t queued_session;
    bool disturbed; /* somebody has deleted nodes of the queue meanwhile */
    bool overtaken;
    int64_t overtaker; /* token */
};

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

/* It holds, and by its clock it does so rightly. */
bool actor_is_valid(const struct actor *a);

#endif
