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

/* A copy that has heard nothing for longer is not current: a tick of ZooKeeper's servers, as they
 * come. The feed sees to it that there is something to hear four times as often. */
enum { OBSERVE_CURRENT_MS = 2000 };

/* Somebody who is told: a stream, when there may be more for it; a request, when the first load is
 * over, or what was before it is known. Embedded in its owner, which takes it out of its list when
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
    int64_t taken; /* the token of the slot whose wait was noted last */
    struct election_model elections;
    struct lock_deadlocks waits;
    struct lock_counters metrics;
    struct list streams; /* of observe_reader */
    struct list waiting; /* the same: requests that wait for the first load */
    size_t nwaiting;
    struct timer patience; /* of them, while no server answers */
    struct map polls;      /* those that wait for a change, by path */
    struct list woken;     /* those of them for which there is one */
    struct timer poll_turn;
    struct timer flush;
    struct timer look;   /* for deadlocks */
    struct timer settle; /* of the ends whose cause is not known yet */
    struct observe_feed *feed;
    const struct clave_async_cache *copy; /* what the feed reads; NULL: none, or it has ended */
    uint64_t copies;                      /* how many there have been */
    int64_t as_of;      /* of the copy that has ended, by the engine's clock; INT64_MIN: of none */
    int64_t wall;       /* wall clock less the engine's clock */
    int64_t zxid;       /* the newest that is known */
    size_t unreadable;  /* nodes that may not be read and are no places: below them may be locks */
    int64_t replayed;   /* up to this zxid the driver will say, or has said, what was */
    bool waits_changed; /* since the last look */
    bool loaded;        /* what is told is all there was */
    bool current;       /* and changes are seen as they happen, while the servers answer */
    bool partial;       /* there are nodes that there was no room for */
    bool begun;         /* the history has: there was a first load */
    bool replays;       /* the driver will say what was before it */
};

/* Makes w->observe. ENOMEM. */
clave_err clave__observe_new(struct web *w);
void clave__observe_free(struct web *w);

/* The wall clock, as the engine's clock plus this; from time to time, since both drift. */
void clave__observe_set_wall(struct observe *o, int64_t wall);
int64_t clave__observe_now(const struct observe *o);

/* Nothing is left out, as far as is known. */
bool clave__observe_is_complete(const struct observe *o);

/* How old what is known may be at most, in ms: what had happened that long ago, as the server that
 * the gate is connected to knew it, is in it. -1: that is not known. */
int64_t clave__observe_age(const struct observe *o);
/* It is no older than OBSERVE_CURRENT_MS, nor known to be out of date. */
bool clave__observe_is_current(const struct observe *o);

/* Is it this path, or below it? */
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
/* All that is there has been told, as of this zxid: at first, or again after a lost connection. */
void clave__observe_loaded(struct observe *o, int64_t zxid);
/* What was before the first load, as web.h has it. */
void clave__observe_take_replay(struct observe *o, struct lock_replay *r);
/* Takes the request in, until the first load is over; 503 when there is no server by then. */
void clave__observe_wait(struct observe *o, struct observe_reader *waiting);
/* It cannot be told, and will be tried again: those who wait for the first load are answered so. */
void clave__observe_failed(struct observe *o, clave_err err);
/* Everything will be told from the beginning. Readers of events start afresh. */
void clave__observe_clear(struct observe *o);
/* The connection is lost: what is known may be out of date. */
void clave__observe_stale(struct observe *o);

/* At once, if there may be others than at the last look. Otherwise they are looked for shortly
 * after somebody has begun to wait. */
void clave__observe_look_for_deadlocks(struct observe *o);

/* ---- what other parts of the engine tell ----------------------------------------------------- */

/* The node with this token is gone or will be for this reason: said before it is deleted, or at
 * once after that. */
void clave__observe_cause(struct observe *o, int64_t token, enum lock_cause cause);
/* The sender of this request has asked the owner of the place with this token (LOCK_ASKED), or has
 * deleted its node (LOCK_ENDED), for the reason in x->deed. */
void clave__observe_deed(const struct web_exchange *x, int64_t token, enum lock_change what);
/* The same of a driver that sees how nodes go (clave__web_tell_cause). */
void clave__observe_suppose_cause(struct observe *o, int64_t token, enum lock_cause cause);
/* An event for the streams of a session (`session`: its public id), or for all (NULL). */
void clave__observe_event(struct observe *o, const struct event_text *e);

/* ==== observe_feed.c: the cache of the whole tree that feeds it ================================
 */

/* It is on the engine's own client, and starts with the engine (struct web_options: observe), or
 * with the first request that needs it. _start does nothing if it runs. Without memory it tries
 * again later. */
void clave__observe_feed_start(struct observe *o);
/* The node at `path` or next above it that is known, if it may not be read: what is below it is not
 * known. Cuts `path` there, and returns it; NULL: the node may be read. */
const char *clave__observe_feed_unreadable(const struct observe_feed *f, char *path);
/* Before the engine's own client is freed. NULL is ignored. */
void clave__observe_feed_stop(struct observe *o);

/* ==== long polls ============================================================================== */

/* Requests that wait until what is at a path changes: long polls for a lock or
 * an election. A request that is woken is handled again, and may wait again. */

struct lock_long_poll {
    struct list link; /* of those at its path, or of those that are woken */
    struct lock_long_poll_path *at;
    struct web_exchange *x;
    struct timer timer;
};

/* Handles the exchange again when the path has changed, or at `until`; its `cancel` and `pending`
 * are the poll's meanwhile. Of memory that lasts as long as the exchange. false: no memory. */
bool clave__lock_long_poll_enter(struct lock_long_poll *p, struct web_exchange *x, const char *path,
                                 int64_t until);

/* What is at this path, or at any, may have changed: in the next turns those that wait for it are
 * handled again. */
void clave__lock_long_poll_changed(struct observe *o, const char *path);
void clave__lock_long_poll_all_changed(struct observe *o);
/* What observe.poll_turn fires. */
void clave__lock_long_poll_turn(struct timer *t, int64_t now);

#endif
