/* server_internal.h - the whole server, as its parts share it. */
#ifndef CLAVE_SERVER_SERVER_INTERNAL_H
#define CLAVE_SERVER_SERVER_INTERNAL_H

#include "base/list.h"
#include "base/log.h"
#include "base/rand.h"
#include "server/request/session.h"
#include "server/server.h"
#include "server/store/txn.h"
#include "server/tree/watch.h"

/* Requests from being read to their reply being sendable, in ms. */
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

struct server {
    struct clave_mem mem;
    struct log log;
    size_t max_frame;
    size_t max_output;
    int32_t tick_ms;
    int32_t min_session_ms;
    int32_t max_session_ms;
    int32_t snap_count;
    int32_t container_check_ms;
    struct server_place place;
    bool extended_types;
    bool enforce_quota;
    size_t max_connections; /* SIZE_MAX: any number */
    size_t max_outstanding;
    size_t max_undelivered;
    char *super_digest; /* "": nobody */
    bool x509;
    char *x509_super; /* likewise */
    char *words;      /* "*", or names with commas between */

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

    int64_t named_zxid; /* of the snapshot to be loaded; -1: not told */
    int64_t fuzzy_zxid; /* up to it the tree is not what the digests in the log are over */
    uint64_t fuzzy_digest;
    bool has_fuzzy_digest;
    uint64_t digest_mismatches;

    int64_t txns_since_snapshot;
    int64_t snapshot_after; /* as many */
    struct rand_state rand;

    int64_t next_sweep; /* INT64_MAX: there is nothing to sweep */
    bool orphans;       /* nodes of sessions that no longer exist */

    struct list conns;
    struct list strangers; /* connections without a session, oldest first */
    struct list ready;
    struct list waiting; /* connections with messages that are not durable */
    struct list owed;    /* connections with output; who has taken some last is the last */
    struct list choked;  /* connections that are not read for what all have undelivered */
    size_t undelivered;  /* memory of all output */
    size_t nconns;

    struct buf scratch; /* of one request */
    struct buf name;    /* of one create: the path with its number */
    struct buf results; /* of one multi */
    struct buf quota_path;

    struct latency latency;
    uint64_t outstanding; /* replies that wait for the disk */
    uint64_t packets_received;
    uint64_t packets_sent;
    uint64_t requests[128];
};

/* ---- log.c ----------------------------------------------------------------------------- */

/* The record of s->txn at the end of the pending ones; its zxid is the next one. A failed
 * request has no digest. */
clave_err clave__log_append(struct server *s);
/* Compares the tree with the digest a snapshot ends with, once it has been replayed so far. */
void clave__log_check_fuzzy_digest(struct server *s);

/* ---- snapshot.c ------------------------------------------------------------------------ */

/* Counts transactions towards the next one from here on. */
void clave__snapshot_schedule(struct server *s);

/* ---- sweep.c --------------------------------------------------------------------------- */

/* Removes containers that have become empty, and nodes whose time to live is over. */
void clave__sweep(struct server *s);

/* ---- server.c -------------------------------------------------------------------------- */

/* The state of a fresh server, or of one that is to be loaded (`bare`). */
clave_err clave__server_reset(struct server *s, bool bare);

#endif
