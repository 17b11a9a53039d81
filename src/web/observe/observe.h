/* observe.h - what people and dashboards see of the tree, behind one face: fed with the nodes that
 * come and go (observe_feed.c), read by the endpoints. Map of the folder:
 *
 *   observe       the locks, elections and history of src/observe, and requests that wait for a
 *                 change of them
 *   observe_feed  feeds it from a cache of the tree
 *   event_ring    events with numbers
 *   lock_metrics  all locks and elections as a page for Prometheus
 *
 * Everything here is of one thread, as struct web. Changes are collected for FLUSH_MS, so that a
 * busy lock makes few events; then those who read are woken. */
#ifndef CLAVE_WEB_OBSERVE_OBSERVE_H
#define CLAVE_WEB_OBSERVE_OBSERVE_H

#include "observe/election_terms.h"
#include "observe/lock_deadlocks.h"
#include "observe/lock_history.h"
#include "observe/lock_model.h"
#include "web/observe/event_ring.h"
#include "web/web_internal.h"

struct clave_async_cache;
struct web_exchange;
struct observe_feed;

/* A copy that has heard nothing from its server for longer than this is not current. It is one tick
 * of ZooKeeper's default configuration; the feed asks for something four times as often. */
enum { OBSERVE_CURRENT_MS = 2000 };

/* A stream that is woken when there may be more to write, or a request that waits for the first
 * load, or for what happened before it. Embedded in its owner, which removes it from its list when
 * it ends. */
struct observe_reader {
    struct list link;
    struct web_exchange *x;
};

struct observe {
    struct web *web;
    struct lock_model model;
    struct event_ring ring;
    struct history history;
    struct lock_end_causes ends;
    int64_t taken; /* the token of the slot whose wait was recorded most recently */
    struct election_model elections;
    struct lock_deadlocks waits;
    struct lock_counters metrics;
    struct list streams; /* of observe_reader */
    struct list waiting; /* the same: requests that wait for the first load */
    size_t nwaiting;
    size_t probes;         /* that requests have sent, and the servers have not answered */
    struct timer patience; /* answers those that wait if no server is connected */
    struct map polls;      /* those that wait for a change, by path */
    struct list woken;     /* those whose path has changed */
    struct timer poll_turn;
    struct timer flush;
    struct timer look;   /* for deadlocks */
    struct timer settle; /* of the ends whose cause is not known yet */
    struct observe_feed *feed;
    const struct clave_async_cache *copy; /* what the feed reads; NULL: none, or it has ended */
    uint64_t copies;                      /* how many there have been */
    int64_t as_of;      /* of the copy that has ended, by the engine's clock; INT64_MIN: of none */
    uint64_t gone;      /* nodes that were seen to go, but for places in queues */
    int64_t gone_at;    /* the last of them */
    int64_t wall;       /* wall clock less the engine's clock */
    int64_t zxid;       /* the newest that is known */
    size_t unreadable;  /* nodes, other than places, that the gate may not read: locks may be below
                         * them */
    int64_t replayed;   /* the driver supplies the history up to this zxid */
    bool waits_changed; /* since the last look */
    bool loaded;        /* the first load is complete */
    bool current;       /* and changes are seen as they happen, as long as the servers answer */
    bool partial;       /* nodes were left out for want of memory */
    bool begun;         /* there was a first load, with which the history begins */
    bool replays;       /* the driver will supply what happened before the first load */
};

/* Makes w->observe. ENOMEM. */
clave_err clave__observe_new(struct web *w);
void clave__observe_free(struct web *w);

/* Sets the wall clock as an offset from the engine's clock. Called from time to time, since the
 * clocks drift apart. */
void clave__observe_set_wall(struct observe *o, int64_t wall);
int64_t clave__observe_now(const struct observe *o);

/* True if no node was left out, as far as is known. */
bool clave__observe_is_complete(const struct observe *o);

/* The greatest possible age of the copy, in ms: everything that the gate's server knew that long
 * ago is in the copy. -1: unknown. */
int64_t clave__observe_age(const struct observe *o);
/* True if a node that has gone from the copy may have been replaced in the same transaction: the
 * server announces both, but the new node has to be read. It is settled by the next answer. */
bool clave__observe_is_settling(const struct observe *o);
/* True if the copy is no older than OBSERVE_CURRENT_MS and not known to be out of date. */
bool clave__observe_is_current(const struct observe *o);

/* For how long this engine has seen the leader lead, in ms, by its own clock; a leader that led
 * before the first look counts from then on. 0: there was no memory to note it. */
int64_t clave__observe_led_ms(const struct observe *o, const struct lock_node *leader);

/* True if `path` is `prefix` or below it. */
bool clave__observe_is_below(const char *path, const char *prefix);

/* ---- what the tree does ---------------------------------------------------------------------- */

struct observe_node {
    const char *path;
    const clave_stat *stat;
    const void *data;
    size_t len;
};
void clave__observe_node(struct observe *o, const struct observe_node *n);
void clave__observe_gone(struct observe *o, const char *path);
/* The whole tree has been reported, as of this zxid: for the first time, or again after a lost
 * connection. */
void clave__observe_loaded(struct observe *o, int64_t zxid);
/* What happened before the first load (clave__web_take_replay). */
void clave__observe_take_replay(struct observe *o, struct lock_replay *r);
/* The request waits until the first load is over or, after that, until clave__observe_probed; it is
 * answered 503 if no server is connected. */
void clave__observe_wait(struct observe *o, struct observe_reader *waiting);
/* A request has its answer of the servers, for which others may wait: they are handled again. */
void clave__observe_probed(struct observe *o);
/* The tree cannot be read at present. Requests that wait for the first load are answered with this
 * error. */
void clave__observe_failed(struct observe *o, clave_err err);
/* The tree will be reported again from the beginning. Readers of events start afresh. */
void clave__observe_clear(struct observe *o);
/* The connection is lost, so the copy may be out of date. */
void clave__observe_stale(struct observe *o);

/* Looks for deadlocks now, if there may be others than at the last look. Without this call they are
 * looked for shortly after a client has begun to wait. */
void clave__observe_look_for_deadlocks(struct observe *o);

/* ---- what other parts of the engine tell ----------------------------------------------------- */

/* The node with this token is about to be deleted, or was deleted just now, for this reason. */
void clave__observe_cause(struct observe *o, int64_t token, enum lock_cause cause);
/* The sender of this request has asked the owner of the place with this token (LOCK_ASKED), or has
 * deleted its node (LOCK_ENDED), for the reason in x->deed. */
void clave__observe_deed(const struct web_exchange *x, int64_t token, enum lock_change what);
/* The same from a driver that sees how nodes go (clave__web_tell_cause); what the engine knows
 * counts more. */
void clave__observe_suppose_cause(struct observe *o, int64_t token, enum lock_cause cause);
/* An event for the streams of a session (`session`: its public id), or for all (NULL). */
void clave__observe_event(struct observe *o, const struct event_text *e);

/* ==== observe_feed.c: the cache of the whole tree that feeds it =============================== */

/* The cache uses the engine's own client. It is started with the engine (struct web_options:
 * observe) or by the first request that needs it; _start does nothing if it runs already, and if
 * there is no memory, the next request tries again. */
void clave__observe_feed_start(struct observe *o);
/* Cuts `path` to the nearest known node at or above it, and returns it if that node may not be
 * read, so that nothing below it is known. NULL: the node may be read. */
const char *clave__observe_feed_unreadable(const struct observe_feed *f, char *path);
/* Before the engine's own client is freed. NULL is ignored. */
void clave__observe_feed_stop(struct observe *o);

/* ==== long polls ============================================================================== */

/* Requests that wait until the lock or election at a path changes, or a list of the nodes below it.
 * A request that is woken is handled again, and may then wait again. */
enum long_poll_of {
    POLL_AT,           /* the lock or election */
    POLL_CHILDREN,     /* the list of the path's children */
    POLL_GRANDCHILDREN /* the list of their children */
};

struct lock_long_poll {
    struct list link; /* in the list of its path, or of those that were woken */
    struct lock_long_poll_path *at;
    struct web_exchange *x;
    struct timer timer;
};

/* Handles the exchange again when the path has changed, or at `until`; until then the poll owns the
 * exchange. `p` must last as long as the exchange. false: no memory. */
bool clave__lock_long_poll_enter(struct lock_long_poll *p, struct web_exchange *x,
                                 enum long_poll_of of, const char *path, int64_t until);

/* The lock or election at this path, or at any path, may have changed: the requests that wait for
 * it are handled again in the next turns of the loop. */
void clave__lock_long_poll_changed(struct observe *o, const char *path);
void clave__lock_long_poll_all_changed(struct observe *o);
/* This node was created, changed or deleted: wakes the requests that wait for a list in which it
 * is, 20 ms later, so that a burst of changes is one answer. */
void clave__lock_long_poll_node_changed(struct observe *o, const char *path);
/* The callback of observe.poll_turn. */
void clave__lock_long_poll_turn(struct timer *t, int64_t now);

#endif
