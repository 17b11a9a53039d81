/* server_internal.h - the state of a server, as the files of this folder share it.
 *
 *   server.c       new and free, options, time, durability
 *   version.c      the version text
 *   connection/    a client's bytes in, replies and events out: conn (input, flow control),
 * conn_output (messages, when they may leave, closing), client_limits, slow_requests, fair_schedule
 * (how much of whose input a turn takes) request/       what is asked for; request.h has its map
 *   access/        auth (who a client is), acl (what it may do)
 *   tree/          tree (znodes by path), watch (the watches)
 *   store/         txn (one transaction), txn_record (its bytes, and its changes made again),
 *                  txn_log, snapshot_save (when, and a piece at a time), snapshot_load,
 *                  recovery_plan (which files, in which order), restore (going on from a backup):
 *                  Apache's file formats, in memory only
 *   monitoring/    what monitoring reads; server_metrics.h has its map
 * Embedders include server.h, not this file. */
#ifndef CLAVE_SERVER_SERVER_INTERNAL_H
#define CLAVE_SERVER_SERVER_INTERNAL_H

#include "base/list.h"
#include "base/log_line.h"
#include "base/rand.h"
#include "server/monitoring/quantiles.h"
#include "server/request/session_tracker.h"
#include "server/server.h"
#include "server/store/snapshot.h"
#include "server/store/txn.h"
#include "server/tree/watch.h"

/* The cost of what the server does is estimated in looks: one look reads something anywhere in
 * memory, which takes about 0.2 us. LOOKS_A_TURN bounds what a turn of the loop spends on expiring
 * sessions, and again on sweeping nodes. What it spends on requests is bounded by work_a_turn. */
enum { LOOKS_A_TURN = 3000, LOOKS_AN_EVENT = 2 };
enum { LOOKS_A_READ = 3, LOOKS_A_CHANGE = 10, LOOKS_A_KIB = 10 };

/* Connections that have cost little recently, and all others; see connection/conn.h. */
enum turn_class { TURN_LIGHT, TURN_HEAVY, TURN_CLASSES };

/* Times from reading a request until its reply may be sent, in ms. */
struct latency {
    int64_t min;
    int64_t max;
    int64_t sum;
    uint64_t count;
};

static inline void clave__latency_note(struct latency *l, int64_t ms, uint64_t count)
{
    l->min = l->count == 0 || ms < l->min ? ms : l->min;
    l->max = ms > l->max ? ms : l->max;
    l->sum += ms * (int64_t)count;
    l->count += count;
}

/* Counts refused clients. They keep coming back, perhaps thousands of them, so only some refusals
 * are logged. */
struct refusals {
    uint64_t count;
    int64_t told_at;
};

/* Counts a refusal. Returns true if it should be logged, at most once in ten seconds. */
static inline bool clave__refusals_note(struct refusals *r, int64_t now)
{
    enum { PAUSE_MS = 10000 };
    bool told = r->count++ == 0 || now - r->told_at >= PAUSE_MS;
    if (told)
        r->told_at = now;
    return told;
}

/* The state of one of the limits on clients; see connection/conn.h. */
struct limit_state {
    size_t most;
    uint64_t refused;
    uint64_t told;   /* of these, those reported in the log so far */
    int64_t told_at; /* when the last message was logged */
};

/* The operator's settings with their defaults filled in; written by server.c. Those after the blank
 * line may change while the server is serving. */
struct server_limits {
    size_t max_frame;
    size_t max_output;
    int32_t tick_ms;
    int32_t snapshot_piece;

    int32_t min_session_ms;
    int32_t max_session_ms;
    int32_t sessionless_ms;
    int32_t slow_ms; /* 0: no request is slow */
    int32_t snap_count;
    int32_t container_check_ms;
    int32_t container_rate;
    int64_t never_used_ms;
    bool extended_types;
    bool enforce_quota;
    size_t max_connections; /* SIZE_MAX: unlimited */
    size_t max_outstanding;
    size_t max_undelivered;
};

/* Who has special rights, and what every client needs; written by server.c. An empty string means
 * that nobody has the right, or that nothing is needed. */
struct server_access {
    char *super_digest;
    char *x509_super;
    char *super_uid;
    char *require_auth; /* schemes, of which a client needs one */
    char *words;        /* the four-letter words allowed: "*", or names separated by commas */
};

/* What the driver has told about itself and the machine, and a callback to it. */
struct server_driver {
    struct driver_info info;
    struct driver_stats stats;
    server_gone_cb *node_gone; /* may be NULL */
    void *node_gone_arg;
};

/* The audit log; see request/request.h. */
struct server_audit {
    server_audit_cb *write; /* NULL: there is no audit log */
    void *arg;
    const char *user;
    struct buf line;
    bool torn; /* the line is incomplete, because memory ran out */
};

/* Refusals, by cause. */
struct server_refused {
    struct refusals newer;   /* clients that have seen a zxid newer than ours */
    struct refusals strange; /* clients that have not authenticated */
    struct limit_state limits[SERVER_LIMITS];
};

/* Log records on their way to the disk; see store/txn_log.c. */
struct server_txn_log {
    struct buf pending; /* records that the driver has not taken yet */
    int64_t pending_first;
    int64_t durable_zxid; /* everything up to here is on the disk */
};

/* The state of recovery, while snapshot and log are read; see store/recovery_plan.h. */
struct server_replay {
    int64_t until;      /* the newest zxid to replay; INT64_MAX: the whole log */
    int64_t named_zxid; /* the zxid in the name of the snapshot to be loaded; -1: unknown */
    int64_t fuzzy_zxid; /* digests in the log up to this zxid need not match the tree */
    uint64_t fuzzy_digest;
    bool has_fuzzy_digest;
    uint64_t digest_mismatches;
};

/* The snapshot being written, and what decides when the next one is due; see
 * store/snapshot_save.c. */
struct server_snapshot {
    struct snapshot_save save;
    int64_t txns_since;
    int64_t bytes_since; /* bytes of log written since the last snapshot */
    int64_t share;       /* how much of its limits may be used up before the next one, in 1024ths */
};

/* Removal of empty containers and expired nodes; see request/container_ttl.c. */
struct server_sweep {
    /* During a sweep, a marker in tree.swept: everything in front of it is still to be looked at.
     */
    struct list end;
    int64_t next; /* when the next sweep, or the next part of the present one, is due; INT64_MAX:
                     there is nothing to sweep */
    bool orphans; /* nodes are left whose sessions no longer exist */
};

/* The connections, in lists by what they are waiting for; see connection/conn.h. */
struct server_conns {
    struct list all;
    size_t n;
    struct list gone;        /* closed, but with watches still to be dropped */
    struct list sessionless; /* those without a session, oldest first */
    struct list ready[TURN_CLASSES];
    int light_in_a_row;      /* how many light ones were returned since the last heavy one */
    struct list waiting;     /* those with messages that are not durable yet */
    struct list with_output; /* those with output; the one that took some last is at the end */
    struct list paused;      /* not read, because all connections together have too much output */
    size_t undelivered;      /* memory of the output of all connections */
    struct list cursors;     /* cursors that are walking `all` */
};

/* The lists that answer four-letter words piece by piece; see monitoring/listing.h. */
struct server_listings {
    struct list ready; /* lists whose next piece may be made */
    struct list
        all; /* all lists; the one whose client has gone longest without taking a piece is first */
    size_t n;
};

/* Buffers that are kept and reused. */
struct server_scratch {
    struct buf request; /* a request */
    struct buf name;    /* for a create: the path with its sequence number */
    struct buf results; /* the results of a multi */
    struct buf quota_path;
};

/* A turn of the driver's loop, from _tick to _end_turn; see connection/conn.h. */
struct server_turn {
    size_t looks;              /* what the requests of this turn have cost so far */
    size_t most_looks;         /* what they may cost; SIZE_MAX: unlimited */
    size_t most[TURN_CLASSES]; /* up to which cost each class may take requests at the moment */
    struct list left[TURN_CLASSES]; /* connections whose input is left over, in order */
    enum turn_class class; /* the class whose left-over input is being taken, at the beginning of a
                              turn */
    int classes;       /* how many classes are still to be gone through before new input is read */
    bool heavy_waited; /* the last turn ended before heavy connections had any of it */
    int64_t began;
    int64_t ended;       /* when the last complete turn ended */
    int64_t input_since; /* input read in this turn may have been waiting since then */
};

/* Slow requests, and how many of them were logged; see connection/conn.h. */
struct server_slow {
    struct slow_turn *turn; /* NULL: slow_ms has never been set */
    int64_t turn_at;        /* when the last slow turn began */
    int64_t turn_ms;
    int64_t second; /* when the current second began */
    uint32_t told;  /* slow requests logged in the current second; `untold` were left out */
    uint64_t untold;
};

/* Counters and times for monitoring. */
struct server_counts {
    struct latency latency;
    struct quantiles read_ms;  /* as latency, for requests that are not logged */
    struct quantiles write_ms; /* as latency, for requests that are */
    struct quantiles fsync_us;
    struct quantiles snapshot_ms;
    int64_t started_zxid;   /* the newest zxid when the server began to serve */
    uint64_t bytes_written; /* sent to clients */
    uint64_t bytes_received;
    uint64_t outstanding; /* replies waiting for the disk */
    uint64_t connections_rejected;
    uint64_t connections_dropped; /* closed by their clients without closing the session */
    uint64_t connect_requests;
    uint64_t sessionless_expired;
    uint64_t sessions_expired;
    uint64_t taken; /* frames, plus KiB of answers; not reset by srst */
    uint64_t packets_received;
    uint64_t packets_sent;
    uint64_t requests[128];
};

struct server {
    struct clave_mem mem;
    struct log log;
    struct rand_state rand;
    uint64_t hash_seed; /* keys the hash maps whose keys clients choose */
    bool x509;          /* the driver checks client certificates */

    bool serving;
    int64_t now;
    int64_t wall;
    int64_t started_at;

    struct tree tree;
    struct sessions sessions;
    struct watches watches;
    struct txn txn;
    int64_t last_zxid; /* the newest transaction applied to the tree */
    uint64_t event_number;

    struct server_limits limits;
    struct server_access access;
    struct server_driver driver;
    struct server_audit audit;
    struct server_refused refused;
    struct server_txn_log txn_log;
    struct server_replay replay;
    struct server_snapshot snapshot;
    struct server_sweep sweep;
    struct server_conns conns;
    struct server_listings listings;
    struct server_scratch scratch;
    struct server_turn turn;
    struct server_slow slow;
    struct server_counts counts;
};

/* ---- store/txn_log.c ------------------------------------------------------------------------- */

/* Appends s->txn, with the next zxid, to the pending records. The record of a failed request has no
 * digest. */
clave_err clave__txn_log_append(struct server *s);
/* Compares the tree with the digest at the end of the snapshot, once the log has been replayed up
 * to that digest's zxid. */
void clave__txn_log_check_fuzzy_digest(struct server *s);

/* ---- store/snapshot_save.c ------------------------------------------------------------------- */

/* Starts counting transactions towards the next snapshot. */
void clave__snapshot_schedule(struct server *s);
/* Counts a transaction that was logged or replayed, and the bytes of its record. */
void clave__snapshot_count(struct server *s, size_t bytes);

/* ---- request/container_ttl.c ----------------------------------------------------------------- */

/* Removes some of the containers that have become empty and of the nodes whose time to live has
 * passed, and sets sweep.next to when to continue. */
void clave__sweep(struct server *s);

#endif
