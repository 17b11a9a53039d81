/* server_internal.h - the state of a server, as the files of this folder share it.
 *
 *   server.c       new and free, time, durability, the figures of clave__server_stats
 *   version.c      the version text
 *   request/       a client's bytes in, replies and events out: conn (one connection), connect,
 *                  request (dispatch), read, shown, write, multi, watch_ops, session, end_session,
 *                  auth, acl, quota, bounds, audit, slow, session_nodes, turn
 *                  (how much of whose input a turn takes)
 *   tree/          node, tree (znodes by path), watch (the watches), sweep (containers, TTLs)
 *   store/         txn (one transaction), txn_record (its bytes), log, log_read, snapshot_save,
 *                  snapshot_load, snapshot_schedule (when), recovery (which files, in which
 *                  order), restore (going on from a backup), checksum, inspect: Apache's file
 *                  formats, in memory only
 *   figures/       what monitoring reads: mntr_and_metrics.h has its map
 * Embedders include server.h, not this file. */
#ifndef CLAVE_SERVER_SERVER_INTERNAL_H
#define CLAVE_SERVER_SERVER_INTERNAL_H

#include "base/list.h"
#include "base/log.h"
#include "base/rand.h"
#include "server/figures/quantiles.h"
#include "server/request/session.h"
#include "server/server.h"
#include "server/store/snapshot_save.h"
#include "server/store/txn.h"
#include "server/tree/watch.h"

/* What the server does is counted in looks at something anywhere in memory: some 0.2 us each. For
 * what it does by itself, sessions that expire and nodes that are swept, a turn of the loop has so
 * many for either; for requests it has work_a_turn. */
enum { LOOKS_A_TURN = 3000, LOOKS_AN_EVENT = 2 };
enum { LOOKS_A_READ = 3, LOOKS_A_CHANGE = 10, LOOKS_A_KIB = 10 };

/* Connections that have cost little lately, and the others; see request/turn.h. */
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

/* One of the bounds; see request/bounds.h. */
struct bound_state {
    size_t most;
    uint64_t refused;
    uint64_t told;   /* of these, up to the last message */
    int64_t told_at; /* when that was */
};

struct server {
    struct clave_mem mem;
    struct log log;
    server_audit_cb *audit; /* NULL: no audit log */
    void *audit_arg;
    server_gone_cb *node_gone; /* NULL: nobody wants to know */
    void *node_gone_arg;
    const char *audit_user;
    size_t max_frame;
    size_t max_output;
    int32_t tick_ms;
    int32_t min_session_ms;
    int32_t max_session_ms;
    int32_t sessionless_ms;
    int32_t slow_ms; /* 0: no request is slow */
    int32_t snap_count;
    int32_t snapshot_piece;
    int32_t container_check_ms;
    int32_t container_rate;
    int64_t never_used_ms;
    struct refusals newer;   /* of clients that know a later zxid */
    struct refusals strange; /* of clients that have not authenticated */
    struct driver_info driver;
    struct driver_stats driver_stats;
    bool extended_types;
    bool enforce_quota;
    size_t max_connections; /* SIZE_MAX: any number */
    size_t max_outstanding;
    size_t max_undelivered;
    struct bound_state bounds[SERVER_BOUNDS];
    char *super_digest; /* "": nobody */
    bool x509;
    char *x509_super;   /* likewise */
    char *super_uid;    /* likewise */
    char *require_auth; /* schemes, of which a client needs one; "": none is needed */
    char *words;        /* the four-letter words allowed: "*", or names separated by commas */

    bool serving;
    int64_t now;
    int64_t wall;
    int64_t started_at;

    struct tree tree;
    struct sessions sessions;
    struct watches watches;
    struct txn txn;
    uint64_t event_number;

    int64_t last_zxid;    /* applied */
    int64_t durable_zxid; /* on the disk */
    struct buf pending;   /* records the driver has not taken */
    int64_t pending_first;

    int64_t replay_until; /* the newest zxid to be replayed; INT64_MAX: all of the log */
    int64_t named_zxid;   /* of the snapshot to be loaded; -1: not given */
    int64_t fuzzy_zxid;   /* up to it the digests in the log need not match the tree */
    uint64_t fuzzy_digest;
    bool has_fuzzy_digest;
    uint64_t digest_mismatches;
    uint64_t expired; /* sessions, since the start */

    struct snapshot_save save;
    int64_t txns_since_snapshot;
    int64_t bytes_since_snapshot; /* of the log */
    int64_t snapshot_share;       /* how much of its limits the next one uses, of 1024 */
    struct rand_state rand;
    uint64_t hash_seed; /* keys the maps of what clients choose */

    /* While a sweep goes on, in tree.swept: after what it has yet to look at. */
    struct list sweep_end;
    int64_t next_sweep; /* or the next turn of one; INT64_MAX: there is nothing to sweep */
    bool orphans;       /* nodes of sessions that no longer exist */

    struct list conns;
    struct list gone;        /* connections that are closed and have watches still */
    struct list sessionless; /* connections without a session, oldest first */
    struct list ready[TURN_CLASSES];
    int light_in_a_row;  /* of those that were ready */
    struct list waiting; /* connections with messages that are not durable */
    struct list
        with_output;    /* connections with output; the one that took some last is at the end */
    struct list paused; /* connections not read because all together have too much output */
    size_t undelivered; /* memory of all output */
    size_t nconns;
    struct list cursors;  /* those in `conns` */
    struct list listings; /* the lists of four-letter words whose next piece may be made */
    struct list lists;    /* all of them; the one that waits longest for its client is first */
    size_t nlists;

    struct buf scratch; /* of one request */
    struct buf name;    /* of one create: the path with its number */
    struct buf results; /* of one multi */
    struct buf quota_path;
    struct buf audit_line;
    bool audit_torn; /* there was no memory for all of it */

    /* A turn of the driver's loop, from _tick to _end_turn. */
    size_t looks;                        /* what the requests of this turn have cost */
    size_t work_a_turn;                  /* as many as that; SIZE_MAX: any number */
    size_t turn_most[TURN_CLASSES];      /* of these, for requests of each class, now */
    struct list turn_left[TURN_CLASSES]; /* connections with input that is left, in order */
    enum turn_class turn_class;          /* whose turn it is, while a turn begins */
    int turn_classes;                    /* of so many, before new input is read */
    bool heavy_waited;                   /* the last turn began without the heavy ones */
    int64_t turn_began;
    int64_t turn_ended;          /* of the last one that has */
    int64_t input_since;         /* what is read in this turn may have waited since */
    uint64_t work;               /* bytes written for clients */
    struct slow_turn *slow_turn; /* of slow.c; NULL: slow_ms was never set */
    int64_t slow_turn_at;        /* the last turn that was slow */
    int64_t slow_turn_ms;
    int64_t slow_second; /* when the present second of slow.c began */
    uint32_t slow_told;  /* lines in it, and requests beyond them */
    uint64_t slow_untold;

    struct latency latency;
    struct quantiles
        read_ms; /* the same times; those of requests that are logged are in write_ms */
    struct quantiles write_ms;
    struct quantiles append_us;
    struct quantiles snapshot_ms;
    int64_t started_zxid; /* the newest when it began to serve */
    uint64_t bytes_received;
    uint64_t outstanding; /* replies waiting for the disk */
    uint64_t connections_rejected;
    uint64_t connections_dropped; /* by their clients, without closing a session */
    uint64_t connect_requests;
    uint64_t sessionless_expired;
    uint64_t taken; /* frames, and KiB of answers; srst does not reset it */
    uint64_t packets_received;
    uint64_t packets_sent;
    uint64_t requests[128];
};

/* ---- txn_log.c
 * ----------------------------------------------------------------------------------- */

/* Appends the record of s->txn to the pending ones; its zxid is the next one. The record of a
 * failed request has no digest. */
clave_err clave__log_append(struct server *s);
/* Compares the tree with the digest at the end of the snapshot, once the log has been replayed up
 * to its zxid. */
void clave__log_check_fuzzy_digest(struct server *s);

/* ---- snapshot_schedule.c --------------------------------------------------------------------- */

/* Starts counting transactions towards the next snapshot. */
void clave__snapshot_schedule(struct server *s);
/* One was logged, or replayed, with so many bytes. */
void clave__snapshot_count(struct server *s, size_t bytes);

/* ---- sweep.c --------------------------------------------------------------------------------- */

/* Removes containers that have become empty and nodes whose time to live has passed, or some of
 * them, and sets next_sweep. */
void clave__sweep(struct server *s);

#endif
