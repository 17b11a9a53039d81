/* actor.h - one owner of locks in one process: rests, acquires in every way the API has, holds,
 * writes guarded, gives back or loses. actor.c asks and waits, actor_hold.c holds. */
#ifndef CLAVE_SIM_ACTOR_H
#define CLAVE_SIM_ACTOR_H

#include "hold.h"
#include "host.h"
#include "recipe.h"

enum actor_state {
    ACTOR_DONE, /* the process does not run, or the day is over */
    ACTOR_RESTING,
    ACTOR_WAITING,
    ACTOR_HOLDING,
    ACTOR_READING, /* the counter, while it holds; or something else that will be answered */
    ACTOR_WRITING,
    ACTOR_LEAVING,     /* a confirmed release */
    ACTOR_SUPERVISING, /* a command */
    ACTOR_DOZING,      /* with a value that it will write */
};

struct actor {
    struct host *host;
    struct workload *load;
    uint64_t owner;
    char name[LOG_WHO];
    enum actor_state state;
    struct alarm alarm; /* of the process: seen when it runs */
    bool due;

    /* What it asks for. */
    const struct recipe *recipe;
    void *object; /* of the recipe: shared by the actors of a process */
    unsigned lock;
    bool shared;      /* a read */
    unsigned wants;   /* leases */
    int64_t deadline; /* of the acquire, by its process's clock */
    bool canceled;
    bool calling;         /* inside a call into the library */
    unsigned calls_out;   /* callbacks that have to come */
    unsigned revokes_out; /* requests, by which it asks the holder to release */
    int64_t started;      /* true time of the acquire */

    /* What it has. */
    struct hold holds[HOLDS];
    unsigned nholds;
    bool lost;           /* LOST was heard of one of them: all are to be given back */
    bool asked;          /* ASKED was heard */
    int64_t asked_token; /* of the last hold that heard it: a hold hears it once */
    bool stays_out;      /* a candidate whose work was silent, until it resigns */
    bool stubborn;       /* holds until it is asked to let go */
    unsigned writes_left;
    bool has_value;
    int64_t value;           /* of the counter, as read */
    int32_t version;         /* of the counter, as read */
    bool unguarded;          /* it is the counter that is written without the guard */
    size_t write;            /* without a guard, under way */
    int64_t read_token;      /* of the hold that the value was asked for under */
    int64_t write_token;     /* of the hold that the write under way is guarded by */
    bool seen;               /* and in this hold already */
    clave_async_grant *kept; /* of its first hold, from its first guarded write on; else NULL */
    clave_async_lease *leases[HOLDS];
    clave_async_latch *latch;
    struct selector *selector;
    struct runner *runner; /* SUPERVISING */
    bool leads;            /* LEADER was heard, and no NOT_LEADER since */
    int64_t term;          /* the token of the newest LEADER; 0: it is being told */

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
/* What it asked is freed under it. */
void actor_abandon(struct actor *a);
bool actor_believes(const struct actor *a);
/* By its process's clock it holds rightly; the nth of its holds. */
bool actor_is_valid(const struct actor *a, unsigned nth);

/* ---- what the recipes tell ----------------------------------------------------------- */

/* A call into the library begins; a callback will come of it. */
void actor_call(struct actor *a);
void actor_owe(struct actor *a);
/* That callback. */
void actor_acquired(struct actor *a, clave_err err);
void actor_left(struct actor *a, clave_err err);
void actor_queued(struct actor *a, size_t ahead);
void actor_lost(struct actor *a, unsigned nth, clave_err why);
void actor_heard_asked(struct actor *a);

/* ---- between actor.c, actor_hold.c, increment.c and the recipes ----------------------------- */

void actor_later(struct actor *a, int64_t mean);
/* Now, in the callback, or in a while: both are what users do. */
void actor_go_on(struct actor *a, int64_t mean);
/* A callback has come. */
void actor_answered(struct actor *a, const char *what);
/* A call into the library has returned; true when a callback will come. */
bool actor_started(struct actor *a, clave_err err, const char *what);
/* Not in time: EBUSY, or, where nobody could know who holds it, EUNREACHABLE. */
static inline bool actor_is_late(clave_err err)
{
    return err == CLAVE_EBUSY || err == CLAVE_EUNREACHABLE;
}
/* What a release of a hold that was lost returns. */
static inline bool actor_had_lost(const struct actor *a, clave_err err)
{
    return a->lost && (err == CLAVE_ELOST || err == CLAVE_EMAXHOLD || err == CLAVE_ESILENT);
}
void actor_unexpected(struct actor *a, const char *what, clave_err err);

/* The acquire was granted; it is time to do something; a request of the hold has been answered,
 * or was not even sent. */
void actor_hold_begin(struct actor *a);
void actor_hold_decide(struct actor *a);
void actor_hold_go_on(struct actor *a);
/* From the grant; to the release or the loss. */
bool actor_hold_believe(struct actor *a, unsigned nth);
void actor_hold_forget(struct actor *a);
void actor_hold_release(struct actor *a);
/* Keeps a copy of the grant of its first hold, which is tried when the hold is over. */
void actor_hold_keep(struct actor *a, clave_async_grant *g);

/* A selector: the state of the connection; its function is to return. */
void selector_hears(struct actor *a, clave_state state);
bool selector_is_interrupted(const struct actor *a);

/* The counter that the lock protects: read, and in a while written, guarded. */
void increment_read(struct actor *a);
void increment_write(struct actor *a);

#endif
