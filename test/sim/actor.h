/* actor.h - one owner of one mutex in one process: rests, acquires in every way the API has,
 * holds, writes guarded, gives back or loses. */
#ifndef CLAVE_SIM_ACTOR_H
#define CLAVE_SIM_ACTOR_H

#include "clave/mutex.h"
#include "host.h"

struct workload;

enum { PATH_SIZE = 96 };

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

void actor_init(struct actor *a, struct workload *l, unsigned index);
/* Its time has come: what next? */
void actor_decide(struct actor *a);
void actor_rest(struct actor *a);
/* Its mutex is freed under it. */
void actor_abandon(struct actor *a);
void actor_on_event(struct actor *a, const clave_mutex_event *ev);
/* It holds, and by its clock it does so rightly. */
bool actor_is_valid(const struct actor *a);

/* ---- between actor.c and increment.c ------------------------------------------------- */

/* A callback has come. */
void actor_answered(struct actor *a, const char *what);
/* A call into the library has returned; true when a callback will come. */
bool actor_started(struct actor *a, clave_err err, const char *what);
void actor_unexpected(struct actor *a, const char *what, clave_err err);
/* A request of the hold has been answered, or was not even sent. */
void actor_hold_on(struct actor *a);
void actor_release(struct actor *a);

/* The counter that the lock protects: read, and in a while written, guarded. */
void increment_read(struct actor *a);
void increment_write(struct actor *a);

#endif
