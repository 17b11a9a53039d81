/* server_host.h - the process of a server: the engine, its disk, its connections, a clock
 * of its own. What src/runtime does with threads and sockets, in the same order. */
#ifndef CLAVE_SIM_SERVER_HOST_H
#define CLAVE_SIM_SERVER_HOST_H

#include "allocator.h"
#include "disk.h"
#include "net.h"
#include "server/server.h"

enum server_end {
    SERVER_STOPPED, /* asked to: all is durable first */
    SERVER_KILLED,  /* what was written stays in the page cache */
    SERVER_POWER_LOST,
    SERVER_DEPOSED, /* of an ensemble: what no quorum has acknowledged may be dropped */
};

struct server_stats_kept {
    uint64_t starts;
    uint64_t torn_tails; /* found at a start */
    uint64_t requests;
};

struct server_host {
    struct world *w;
    struct net *net;
    struct allocator allocator;
    struct server *server; /* NULL: the process is down */
    struct disk disk;
    struct clock clock;
    struct net_listener listener;
    struct list conns;
    struct server_options options;
    bool paused;
    int64_t wall_shift_ms; /* its wall clock was set by so much */
    bool new_log;
    bool counter_was_set;    /* by an operator: until its next change a node has not its digest */
    bool is_saving;          /* a snapshot, of which these are the pieces so far */
    struct alarm piece_done; /* the disk has taken the newest piece */
    struct buf snapshot;
    int64_t snapshot_zxid;
    int64_t synced_zxid;            /* the disk has reported */
    struct alarm run;               /* there is something to do */
    struct alarm timer;             /* the engine's deadline */
    struct foreign_client *foreign; /* which has a node in a queue: see operator.h */
    const char *config;             /* for /zookeeper/config; NULL: it stays empty */
    /* Records go to the disk; all up to a zxid is on it; a restart has found all up to a zxid. */
    void (*proposed)(void *arg, const struct disk_batch *b);
    void (*committed)(void *arg, int64_t zxid);
    void (*recovered)(void *arg, int64_t zxid);
    void *log_arg;
    void (*disk_failed)(void *arg); /* the process has to end */
    void *disk_failed_arg;
    int64_t oldest_session; /* after the newest restore: those of before have lesser ids */
    bool swaps_next;        /* the next client that comes back is given another session */
    struct server_stats_kept stats;
};

void server_host_init(struct server_host *h, struct world *w, struct net *n,
                      const struct server_options *o);
void server_host_fini(struct server_host *h);

/* Recovers from the disk; breaks the world's verdict when that is refused. */
void server_host_start(struct server_host *h);
void server_host_end(struct server_host *h, enum server_end how);
/* As `clave data restore`, while it is down: from the disk's backup, in place of its files. */
void server_host_restore(struct server_host *h);
/* Something was done to the engine from the side. */
void server_host_wake(struct server_host *h);
/* SIGSTOP and SIGCONT. */
void server_host_pause(struct server_host *h, bool pause);

#endif
