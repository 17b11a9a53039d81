/* nemesis.h - what goes wrong, how often, and its end. Each seed has its own mixture. */
#ifndef CLAVE_SIM_NEMESIS_H
#define CLAVE_SIM_NEMESIS_H

#include "checker.h"
#include "ensemble.h"
#include "host.h"
#include "server_host.h"

enum fault {
    FAULT_CUT,         /* a connection, now */
    FAULT_CUT_LATER,   /* behind any byte of either direction */
    FAULT_AMBUSH,      /* a chosen message or its reply is lost, or a pause follows it */
    FAULT_HALF_OPEN,   /* nothing arrives any more and nobody is told */
    FAULT_REFUSE,      /* dials fail for a while */
    FAULT_SWALLOW,     /* dials are not answered for a while */
    FAULT_STALL,       /* what is sent one way or both arrives late, by up to two timeouts */
    FAULT_PAUSE,       /* a process is stopped, for up to two timeouts */
    FAULT_PAUSE_STEP,  /* the same, between two steps of its loop */
    FAULT_KILL,        /* a process is killed and started again */
    FAULT_KILL_STEP,   /* the same, between two steps of its loop */
    FAULT_POWER,       /* the same, and its peer is not told */
    FAULT_NO_MEMORY,   /* an allocation of a client fails */
    FAULT_STOP_SERVER, /* it is asked to stop, and started again */
    FAULT_KILL_SERVER,
    FAULT_POWER_SERVER,  /* unsynced writes are lost, from any byte on */
    FAULT_POWER_AT_SYNC, /* the same, while an fsync is under way */
    FAULT_PAUSE_SERVER,
    FAULT_SLOW_DISK,   /* every fsync takes long, for a while */
    FAULT_STALL_DISK,  /* none ends, for a while */
    FAULT_CUT_MEMBER,  /* of an ensemble: cut off from its leader, and answering on */
    FAULT_END_SESSION, /* an operator closes a client's session */
    FAULT_REMOVE_NODE, /* an operator deletes a node of the queue */
    FAULT_SCRIBBLE,    /* an operator writes to a node of the queue */
    FAULT_STRANGER,    /* a node of another kind of client stands in the queue for a while */
    FAULTS,
};

const char *fault_name(enum fault f);

struct nemesis_fault {
    struct alarm alarm;
    struct nemesis *of;
    enum fault kind;
    int64_t mean_us; /* between two; 0: never */
    uint64_t count;
};

struct nemesis_return {
    struct alarm alarm;
    struct nemesis *of;
    struct host *host; /* to be started again; NULL: the server */
};

struct nemesis {
    struct world *w;
    struct net *net;
    struct server_host *server;
    struct ensemble *ensemble; /* NULL: the server stands alone */
    struct checker *checker;
    struct host *hosts;
    size_t nhosts;
    int64_t timeout_us; /* the sessions': how long things take is drawn from it */
    struct nemesis_fault faults[FAULTS];
    struct nemesis_return host_back[CHECKED_HOSTS];
    struct nemesis_return server_back;
    struct alarm server_resume;
    struct alarm power;
    struct alarm disk_better;
    int64_t disk_sync_us;
};

/* `ensemble` and `checker` are set behind it. */
void nemesis_init(struct nemesis *n, struct server_host *server, struct host *hosts, size_t nhosts);
/* Draws which faults this seed has, and how often. */
void nemesis_draw(struct nemesis *n);
void nemesis_begin(struct nemesis *n);
/* No more faults; everything works and runs again. */
void nemesis_end(struct nemesis *n);

#endif
