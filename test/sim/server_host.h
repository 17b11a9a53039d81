/* server_host.h - the process of a server: the engine, its disk, its connections, a clock
 * of its own. What src/drive does with threads and sockets, in the same order. */
#ifndef CLAVE_SIM_SERVER_HOST_H
#define CLAVE_SIM_SERVER_HOST_H

#include "disk.h"
#include "net.h"
#include "purse.h"
#include "server/server.h"

enum server_end {
    SERVER_STOPPED, /* asked to: all is durable first */
    SERVER_KILLED,  /* what was written stays in the page cache */
    SERVER_POWER_LOST,
};

struct server_stats_kept {
    uint64_t starts;
    uint64_t torn_tails; /* found at a start */
    uint64_t requests;
};

struct server_host {
    struct world *w;
    struct net *net;
    struct purse purse;
    struct server *server; /* NULL: the process is down */
    struct disk disk;
    struct clock clock;
    struct net_listener listener;
    struct list conns;
    struct server_options options;
    bool paused;
    bool new_log;
    int64_t synced_zxid;       /* the disk has reported */
    struct alarm run;          /* there is something to do */
    struct alarm timer;        /* the engine's deadline */
    struct stranger *stranger; /* whose node stands in a queue: see insider.h */
    struct server_stats_kept stats;
};

void server_host_init(struct server_host *h, struct world *w, struct net *n,
                      const struct server_options *o);
void server_host_fini(struct server_host *h);

/* Recovers from the disk; breaks the world's verdict when that is refused. */
void server_host_start(struct server_host *h);
void server_host_end(struct server_host *h, enum server_end how);
/* Something was done to the engine from the side. */
void server_host_wake(struct server_host *h);
/* SIGSTOP and SIGCONT. */
void server_host_pause(struct server_host *h, bool pause);

#endif
