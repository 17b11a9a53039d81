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

/* What the server does is counted in looks at something anywhere in memory: some 0.2 us each. For
 * what it does by itself, sessions that expire and nodes that are swept, a turn of the loop has so
 * many for either; for requests it has work_a_turn. */
enum { LOOKS_A_TURN = 3000, LOOKS_AN_EVENT = 2 };
enum { LOOKS_A_READ = 3, LOOKS_A_CHANGE = 10, LOOKS_A_KIB = 10 };

/* Connections that have cost little lately, and the others; see connection/conn.h. */
enum turn_class { TURN_LIGHT, TURN_HEAVY, TURN_CLASSES };

/* The time from reading a request until its reply may be sent, in ms. */
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

/* Clients that are refused come again and again, and so may thousands. */
struct refusals {
    uint64_t count;
    int64_t told_at;
};

/* Counts one. Whether it is told in the log: one in ten seconds is. */
static inline bool clave__refusals_note(struct refusals *r, int64_t now)
{
    enum { PAUSE_MS = 10000 };
    bool told = r->count++ == 0 || now - r->told_at >= PAUSE_MS;
    if (told)
        r->told_at = now;
    return told;
}

/* One of the limits on clients; see connection/conn.h. */
struct limit_state {
    size_t most;
    uint64_t refused;
    uint64_t told;   /* of these, up to the last message */
    int64_t told_at; /* when that was */
};

/* What the operator has set, with the defaults filled in; server.c writes it. Those of the second
 * half may change while it serves. */
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
    size_t max_connections; /* SIZE_MAX: any number */
    size_t max_outstanding;
    size_t max_undelivered;
};

/* The clients that may do more than others, and what any client needs; server.c writes it. "":
 * nobody, nothing. */
struct server_access {
    char *super_digest;
    char *x509_super;
    char *super_uid;
    char *require_auth; /* schemes, of which a client needs one; "": none is needed */
    char *words;        /* the four-letter words allowed: "*", or names separated by commas */
};

/* What is said of the program around it, and whom that asks. */
struct server_driver {
    struct driver_info info;
    struct driver_stats stats;
    server_gone_cb *node_gone; /* NULL: nobody wants to know */
    void *node_gone_arg;
};

/* The audit log; see request/request.h. */
struct server_audit {
    server_audit_cb *write; /* NULL: there is none */
    void *arg;
    const char *user;
    struct buf line;
    bool torn; /* there was no memory for all of it */
};

/* What was refused. */
struct server_refused {
    struct refusals newer;   /* clients that know a later zxid */
    struct refusals strange; /* clients that have not authenticated */
    struct limit_state limits[SERVER_LIMITS];
};

/* Records on their way to the disk; see store/txn_log.c. */
struct server_txn_log {
    struct buf pending; /* those that the driver has not taken */
    int64_t pending_first;
    int64_t durable_zxid; /* on the disk */
};

/* Of the start, while snapshot and log are read; see store/recovery_plan.h. */
struct server_replay {
    int64_t until;      /* the newest zxid to be replayed; INT64_MAX: all of the log */
    int64_t named_zxid; /* of the snapshot to be loaded; -1: not given */
    int64_t fuzzy_zxid; /* up to it the digests in the log need not match the tree */
    uint64_t fuzzy_digest;
    bool has_fuzzy_digest;
    uint64_t digest_mismatches;
};

/* The one that is being written, and when the next is due; see store/snapshot_save.c. */
struct server_snapshot {
    struct snapshot_save save;
    int64_t txns_since;
    int64_t bytes_since; /* of the log */
    int64_t share;       /* how much of its limits the next one uses, of 1024 */
};

/* The removal of containers and of nodes with a time to live; see request/container_ttl.c. */
struct server_sweep {
    /* While one goes on, in tree.swept: after what it has yet to look at. */
    struct list end;
    int64_t next; /* or the next turn of one; INT64_MAX: there is nothing to sweep */
    bool orphans; /* nodes of sessions that no longer exist */
};

/* The connections, by what they wait for; see connection/conn.h. */
struct server_conns {
    struct list all;
    size_t n;
    struct list gone;        /* closed, and have watches still */
    struct list sessionless; /* without a session, oldest first */
    struct list ready[TURN_CLASSES];
    int light_in_a_row;      /* of those that were ready */
    struct list waiting;     /* with messages that are not durable */
    struct list with_output; /* the one that took some last is at the end */
    struct list paused;      /* not read because all together have too much output */
    size_t undelivered;      /* memory of all output */
    struct list cursors;     /* those in `all` */
};

/* The lists that four-letter words make piece by piece; see monitoring/listing.h. */
struct server_listings {
    struct list ready; /* those whose next piece may be made */
    struct list all;   /* the one that waits longest for its client is first */
    size_t n;
};

/* Memory that is used again and again. */
struct server_scratch {
    struct buf request; /* of one request */
    struct buf name;    /* of one create: the path with its number */
    struct buf results; /* of one multi */
    struct buf quota_path;
};

/* A turn of the driver's loop, from _tick to _end_turn; see connection/conn.h. */
struct server_turn {
    size_t looks;                   /* what the requests of this turn have cost */
    size_t most_looks;              /* as many as that; SIZE_MAX: any number */
    size_t most[TURN_CLASSES];      /* of these, for requests of each class, now */
    struct list left[TURN_CLASSES]; /* connections with input that is left, in order */
    enum turn_class class;          /* whose turn it is, while a turn begins */
    int classes;                    /* of so many, before new input is read */
    bool heavy_waited;              /* the last turn began without the heavy ones */
    int64_t began;
    int64_t ended;       /* of the last one that has */
    int64_t input_since; /* what is read in this turn may have waited since */
};

/* What was slow, and how much of it is in the log; see connection/conn.h. */
struct server_slow {
    struct slow_turn *turn; /* NULL: slow_ms was never set */
    int64_t turn_at;        /* the last turn that was slow */
    int64_t turn_ms;
    int64_t second; /* when the present second began */
    uint32_t told;  /* lines in it, and requests beyond them */
    uint64_t untold;
};

/* What monitoring reads. */
struct server_counts {
    struct latency latency;
    struct quantiles read_ms;  /* the same times, of requests that are not logged */
    struct quantiles write_ms; /* of those that are */
    struct quantiles fsync_us;
    struct quantiles snapshot_ms;
    int64_t started_zxid;   /* the newest when it began to serve */
    uint64_t bytes_written; /* for clients */
    uint64_t bytes_received;
    uint64_t outstanding; /* replies waiting for the disk */
    uint64_t connections_rejected;
    uint64_t connections_dropped; /* by their clients, without closing a session */
    uint64_t connect_requests;
    uint64_t sessionless_expired;
    uint64_t sessions_expired;
    uint64_t taken; /* frames, and KiB of answers; srst does not reset it */
    uint64_t packets_received;
    uint64_t packets_sent;
    uint64_t requests[128];
};

struct server {
    struct clave_mem mem;
    struct log log;
    struct rand_state rand;
    uint64_t hash_seed; /* keys the maps of what clients choose */
    bool x509;          /* the driver checks certificates */

    bool serving;
    int64_t now;
    int64_t wall;
    int64_t started_at;

    struct tree tree;
    struct sessions sessions;
    struct watches watches;
    struct txn txn;
    int64_t last_zxid; /* applied */
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

/* Appends the record of s->txn to the pending ones; its zxid is the next one. The record of a
 * failed request has no digest. */
clave_err clave__txn_log_append(struct server *s);
/* Compares the tree with the digest at the end of the snapshot, once the log has been replayed up
 * to its zxid. */
void clave__txn_log_check_fuzzy_digest(struct server *s);

/* ---- store/snapshot_save.c ------------------------------------------------------------------- */

/* Starts counting transactions towards the next snapshot. */
void clave__snapshot_schedule(struct server *s);
/* One was logged, or replayed, with so many bytes. */
void clave__snapshot_count(struct server *s, size_t bytes);

/* ---- request/container_ttl.c ----------------------------------------------------------------- */

/* Removes containers that have become empty and nodes whose time to live has passed, or some of
 * them, and sets next_sweep. */
void clave__sweep(struct server *s);

#endif
