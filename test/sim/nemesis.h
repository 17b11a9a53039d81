/* nemesis.h - what goes wrong, how often, and its end. Each seed has its own mixture. */
#ifndef CLAVE_SIM_NEMESIS_H
#define CLAVE_SIM_NEMESIS_H

#include "checker.h"
#include "ensemble.h"
#include "host.h"
#include "server_host.h"
#include "subset.h"

enum fault {
    FAULT_CUT,          /* a connection, now */
    FAULT_CUT_LATER,    /* after any byte of either direction */
    FAULT_MESSAGE,      /* a chosen message or its reply is lost, or a pause follows it */
    FAULT_HALF_OPEN,    /* nothing arrives any more and nobody is told */
    FAULT_REFUSE,       /* dials fail for a while */
    FAULT_DIAL_TIMEOUT, /* dials are not answered for a while */
    FAULT_STALL,        /* what is sent one way or both arrives late, by up to two timeouts */
    FAULT_PAUSE,        /* a process is stopped, for up to two timeouts */
    FAULT_PAUSE_STEP,   /* the same, between two steps of its loop */
    FAULT_KILL,         /* a process is killed and started again */
    FAULT_KILL_STEP,    /* the same, between two steps of its loop */
    FAULT_MACHINE_LOST, /* the same, and its peer is not told */
    FAULT_NO_MEMORY,    /* an allocation of a client fails */
    FAULT_STOP_SERVER,  /* it is asked to stop, and started again */
    FAULT_KILL_SERVER,
    FAULT_POWER_SERVER,  /* unsynced writes are lost, from any byte on */
    FAULT_POWER_AT_SYNC, /* the same, while an fsync is under way */
    FAULT_DISK_FULL,     /* in the middle of a write: the server ends */
    FAULT_SYNC_FAILS,    /* the same, and nobody knows what of it was written */
    FAULT_PAUSE_SERVER,
    FAULT_SLOW_DISK,      /* every fsync takes long, for a while */
    FAULT_STALL_DISK,     /* none ends, for a while */
    FAULT_SWAP_SESSION,   /* a client that comes back is given another session */
    FAULT_REFUSE_WATCHES, /* the watches of one that comes back are refused */
    /* Of an ensemble. */
    FAULT_CUT_MEMBER,    /* off from its leader, and answering on */
    FAULT_LATE_THEN_CUT, /* requests reach it late, and then it is cut off */
    FAULT_KILL_MEMBER,
    FAULT_LAG_MEMBER,   /* what was committed is late in its tree */
    FAULT_CUT_LEADER,   /* off from the quorum: there is another one, and it does not know */
    FAULT_PAUSE_LEADER, /* the same, stopped for a while */
    FAULT_KILL_LEADER,
    FAULT_END_SESSION,     /* an operator closes a client's session */
    FAULT_REMOVE_NODE,     /* an operator deletes a node of the queue */
    FAULT_WRITE_NODE,      /* an operator writes to a node of the queue */
    FAULT_FOREIGN_NODE,    /* a node of another kind of client stands in the queue for a while */
    FAULT_EXHAUST_COUNTER, /* the sequence counter of a queue is near its end */
    FAULT_WALL_CLOCK,      /* that of the server is set */
    /* Of runners of commands. */
    FAULT_STOP_GUARDIAN, /* for up to two timeouts */
    FAULT_KILL_GUARDIAN,
    FAULT_SLEEP, /* a machine, with all that is on it */
    /* Of a server that has a backup. */
    FAULT_RESTORE, /* its directory is backed up, or lost and restored from the backup */
    /* Of a server that serves only clients that authenticate. */
    FAULT_INTRUDE, /* one that does not asks for a client's session, and to end it */
    FAULTS,
};

const char *fault_name(enum fault f);

/* One fault of the plan. */
struct planned_fault {
    int64_t at;
    enum fault kind;
    unsigned number; /* in the plan of the whole day */
    uint64_t seed;   /* of its random numbers */
    bool happened;   /* it found a victim */
};

struct nemesis_return {
    struct alarm alarm;
    struct nemesis *of;
    struct host *host; /* to be started again */
};

struct nemesis {
    struct world *w;
    struct net *net;
    struct server_host *server;
    struct ensemble *ensemble; /* NULL: the server stands alone */
    struct checker *checker;
    struct host *hosts;
    size_t nhosts;
    int64_t timeout_us;            /* the sessions': how long things take is drawn from it */
    int64_t mean_us[FAULTS];       /* between two; 0: never */
    struct rand_state rng;         /* of the plan, which depends on nothing else */
    struct planned_fault *planned; /* in the order of time */
    size_t nplanned, planned_cap;
    size_t next;
    bool runs_commands;          /* commands are run */
    const struct subset *subset; /* which of them */
    struct fault_list *happened; /* as they happen: a process may die of one */
    uint64_t count[FAULTS];
    struct alarm alarm; /* the next */
    struct nemesis_return host_back[CHECKED_HOSTS];
    struct nemesis_return machine_back[CHECKED_HOSTS];
    struct alarm server_back;
    struct alarm server_resume;
    struct alarm power;
    struct alarm cut;
    struct host *cut_host; /* of whose member */
    struct alarm change;
    const struct lock_layout *change_at; /* whose limit */
    bool closed;                         /* it is 0 */
    struct alarm disk_better;
    int64_t disk_sync_us;
};

/* `ensemble`, `checker`, `runs_commands`, `subset` and `happened` are set after it. */
void nemesis_init(struct nemesis *n, struct server_host *server, struct host *hosts, size_t nhosts);
/* Draws which faults this seed has, and how often, and seeds the plan. */
void nemesis_draw(struct nemesis *n);
/* Plans the day that begins now. */
void nemesis_begin(struct nemesis *n, int64_t day_us);
/* No more faults; everything works and runs again. */
void nemesis_end(struct nemesis *n);
void nemesis_fini(struct nemesis *n);

#endif
