/* workload.h - what one process does: its actors, the locks they share, and the callbacks of
 * its host. */
#ifndef CLAVE_SIM_WORKLOAD_H
#define CLAVE_SIM_WORKLOAD_H

#include "actor.h"
#include "promise.h"
#include "znode_client.h"

struct checker;

enum { ACTORS = 3 };

struct workload_options {
    unsigned locks;
    struct lock_layout layouts[LOCKS];
    unsigned actors; /* a process */
    int64_t hold_us; /* mean */
    int64_t rest_us;
    unsigned writes;    /* at most, a hold */
    unsigned forever;   /* permille of the acquires */
    unsigned timed;     /* permille; the rest are tries */
    unsigned impatient; /* permille of waits that are cancelled */
    unsigned restless;  /* permille: the lock's object is freed, and made anew */
    bool strict;
    unsigned sleepy; /* permille of the holds that last `sleep_us` */
    int64_t sleep_us;
    int64_t max_hold_ms; /* 0: none */
    int64_t patience_ms; /* mean of timed acquires */
    bool revocable;
    unsigned stubborn;     /* permille of the holds that last until they are asked for */
    unsigned readers;      /* permille of the acquires of a read-write lock */
    unsigned bundled;      /* permille of the acquires that are of all locks at once */
    unsigned selecting;    /* permille of the acquires of a mutex that are of a selector */
    unsigned unguarded;    /* permille of the increments, where one holds at a time */
    unsigned careless;     /* permille of them: written whatever the lock says, also later */
    unsigned with_command; /* permille of the holds that a command runs under */
    bool fences;           /* before a command, whoever may still act is fenced */
    unsigned depending;    /* permille of the holds that depend on their work */
    int64_t promise_ms;    /* mean of the silences that it may keep */
    bool watchdogs;        /* a command may be stuck, and machines have watchdogs */
    unsigned transfers;    /* permille of the ends of a leadership */
    bool session_policy;
    unsigned most_leases; /* in one acquire */
    unsigned znode_calls; /* a process, of znodes without locks */
    int64_t znode_rest_us;
    bool caching;        /* each process has a cache of a tree */
    uint32_t slot_limit; /* at most; 0: there are no slots */
    int64_t slot_rest_us;
    int64_t keeper_rest_us;   /* 0: nobody keeps nodes */
    int64_t tally_rest_us;    /* 0: nobody counts */
    int64_t register_rest_us; /* 0: nobody is an instance of a service */
    bool register_stays;      /* nobody leaves it, or deletes the node of another */
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
    uint64_t asked;       /* holders who heard that they are asked to let go */
    uint64_t silent;      /* lost for want of a sign of life */
    uint64_t transferred; /* leaderships */
    uint64_t downgraded;
    uint64_t exhausted; /* acquires refused for a used-up counter */
    uint64_t unguarded; /* writes without a guard, acknowledged or not */
    uint64_t late;      /* of them asked for without a valid hold */
    uint64_t updates_lost;
    uint64_t commands;
    uint64_t ended;        /* of them, before their time, by their guardians */
    uint64_t unhealthy;    /* since their work was ill */
    uint64_t swept;        /* by their holders */
    uint64_t fences;       /* attempts */
    uint64_t resets;       /* of machines, by their watchdogs */
    uint64_t out_of_hands; /* with both dead or stopped at a time */
    uint64_t znode_calls;
    uint64_t slots_taken;
    uint64_t slots_given;
    uint64_t undecided; /* histories of a znode whose check was cut short */
};

/* What one process does. */
struct workload {
    struct host *host;
    struct checker *checker;
    const struct workload_options *o;
    struct actor actors[ACTORS];
    struct recipe_objects objects[LOCKS];
    clave_async_multilock
        *bundles[2]; /* of all sites: with the reads of those that have reads; not */
    struct leader_watcher *leader_watchers[LOCKS];
    struct cache_user *cache;           /* NULL: none */
    struct slot_user *slots;            /* likewise */
    struct keeper_user *keeper;         /* likewise */
    struct tally_user *tally;           /* likewise */
    struct registrant_user *registrant; /* likewise */
    struct znode_client znodes;
    struct silences silences;
    struct runner *runners; /* those of processes before this one too */
    struct alarm boot;      /* the machine is up again after its watchdog has reset it */
    bool day_is_over;       /* what waits is served, and then no more */
    bool unsure;            /* a write of unknown outcome may have been done */
    bool ending;            /* the process is being torn down */
    unsigned listings_out;
    struct workload_stats stats;
};

/* Becomes the user's code of the host. */
void workload_init(struct workload *l, struct host *h, struct checker *c,
                   const struct workload_options *o);
/* The machine was reset: the process is gone, and starts again after a while. */
void workload_reset(struct workload *l);
/* Nothing new from here on. */
void workload_finish(struct workload *l);
/* Nobody waits or holds, and every callback has come. */
bool workload_is_done(const struct workload *l);
/* Frees the locks, when all is done. */
void workload_put_away(struct workload *l);

const struct lock_layout *workload_layout(const struct workload *l, unsigned lock);
/* Frees what the actor asked, with whoever waits for it or holds it. */
void workload_discard(struct workload *l, struct actor *a);
/* The actor looks who stands in the queue. */
void workload_list(struct workload *l, struct actor *a);
/* Asks whoever stands in the queue for the lock of the actor, unless an earlier request of the
 * actor is unanswered: they would pile up at a member that lags, each for every node. */
void workload_revoke(struct workload *l, struct actor *a);

#endif
