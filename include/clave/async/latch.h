/* async/latch.h - a candidate of a leader election, with the layout of Curator's LeaderLatch:
 * <path>/_c_<uuid>-latch-<10 digits>, ephemeral sequential, in a container, data = the candidate's
 * id. It shares one queue with Curator (docs/guide/elections.md has the differences).
 *
 * A latch is one candidate. It takes part from _start to _close: whenever it loses its place or its
 * leadership, it automatically enters again at the end of the queue. The first in the queue leads
 * for as long as its session is certainly alive; each leadership has a token of its own, larger
 * than those of all before it.
 *
 * Asynchronous, on a clave_async_client and under its thread and callback rules. The blocking form
 * is clave/latch.h. */
#ifndef CLAVE_ASYNC_LATCH_H
#define CLAVE_ASYNC_LATCH_H

#include "clave/async/mutex.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_async_latch clave_async_latch; /* opaque */

typedef enum clave_latch_state {
    CLAVE_LATCH_LATENT, /* not started */
    CLAVE_LATCH_STARTED,
    CLAVE_LATCH_CLOSED, /* by _close, or with its client */
} clave_latch_state;

typedef enum clave_latch_event_kind {
    CLAVE_LATCH_QUEUED, /* waiting, or the position changed: `ahead` nodes are before it */
    CLAVE_LATCH_NEXT,   /* only the leader is before it: a chance to warm up */
    CLAVE_LATCH_LEADER,
    CLAVE_LATCH_NOT_LEADER, /* after LEADER, once for each; `why` below */
    CLAVE_LATCH_ASKED,      /* a revocable leader is asked to resign (clave_async_leader_transfer);
                               once for each leadership. Nothing happens by itself */
    CLAVE_LATCH_FAILED,     /* it cannot enter: `why` is ENOAUTH, EINVALIDACL, ESEQUENCE, ..., or it
                               does not, by ESILENT. It stays out until clave_async_latch_resign or
                               _close */
} clave_latch_event_kind;

/* `why` of NOT_LEADER: CLAVE_OK: resigned, closed or handed over. ECONNLOSS or another cause of
 * SUSPENDED: by the standard policy. EEXPIRED or another cause of the session's loss. ENONODE:
 * somebody deleted the node. EMAXHOLD: max_term_ms was over. ESILENT: its work was silent for
 * too long (clave_async_grant_depend); FAILED follows. ECLOSED: the client was closed. */
typedef struct clave_latch_event {
    clave_latch_event_kind kind;
    size_t ahead;
    const char *predecessor; /* for QUEUED and NEXT: full path of the node just before ours */
    clave_err why;
    /* For QUEUED and NEXT: full path of the node just before ours if no session owns that (see
     * left_over in clave_participant), so that it will never go away by itself. NULL: a session
     * owns it, or that is not known yet; once it is known, the event is repeated. */
    const char *left_over;
} clave_latch_event;
typedef void clave_latch_event_cb(clave_async_latch *l, const clave_latch_event *ev, void *arg);

/* Curator's error policies: what ends leadership. With SESSION, the default here, only LOST does,
 * which the client's own clock reports before somebody else can lead; a connection that comes back
 * before then changes nothing. With STANDARD, Curator's default, SUSPENDED does, and therefore
 * every loss of the connection.
 *
 * A term that STANDARD has ended is not resumed, as it is in Curator, because two terms would then
 * have the same token. The candidate's node is replaced by one at the end of the queue, so the next
 * candidate leads. That happens at the deadline of the term that is over, because work that relied
 * on it may still be under way; until then nobody leads. If your work has stopped, call
 * clave_async_latch_resign, and the next candidate leads at once. */
typedef enum clave_latch_policy {
    CLAVE_POLICY_SESSION,
    CLAVE_POLICY_STANDARD,
} clave_latch_policy;

/* The layout of the candidates' nodes. FAIR and UNFAIR are for joining programs written by hand,
 * and for learning. Their data is the id, byte for byte. If the answer to a create is lost, the
 * node is found by its session and its czxid (CLAVE_CREATE_CERTAIN), so the same session must not
 * create nodes with such names in any other way. They cannot have a priority, which would have to
 * be in the name.
 *
 * UNFAIR: `path` is the only node, shared by all: its creator leads, the others watch it, and all
 * of them try to create it when it is deleted. Each change of leaders costs the server two requests
 * and an event for each candidate (`clave bench herd` counts them), and no candidate is certain
 * ever to lead. A candidate that has resigned, or whose term is over, begins to try a tenth of a
 * second later than the others. Waiting candidates get QUEUED and NEXT, with 1 ahead: the leader.
 * The node's name does not say whose it is. If an operator deletes the leader's node and another
 * candidate creates it, the server accepts a guarded write of the former leader until that leader
 * is notified, which is at once; a leader that resigns in that moment deletes the other's node, and
 * the other gets NOT_LEADER; and nothing can be published (EINVAL). */
typedef enum clave_latch_layout {
    CLAVE_LATCH_CURATOR, /* <path>/_c_<uuid>-latch-<10 digits>: the first leads */
    CLAVE_LATCH_FAIR,    /* <path>/<prefix><10 digits>: likewise */
    CLAVE_LATCH_UNFAIR,  /* <path>: its creator leads */
} clave_latch_layout;

typedef struct clave_latch_options {
    size_t size;           /* CLAVE_LATCH_OPTIONS_INIT sets it: clave/options.h */
    const char *id;        /* what participants see; UTF-8; NULL: ""; copied */
    const clave_acl *acls; /* of the candidate's node; NULL: open; copied */
    size_t nacls;
    clave_latch_policy policy;
    int64_t max_term_ms;  /* 0: no limit. When it is over: NOT_LEADER(EMAXHOLD), then the end of the
                             queue */
    int64_t min_valid_ms; /* as in clave_mutex_options, and so is strict */
    bool strict;
    bool revocable; /* gets the event ASKED; costs a leader one request at the beginning */
    /* Above 0, the candidate with the highest priority leads next, as far as clave's candidates
     * with a priority can decide that: a candidate whose turn comes lists the others (one round
     * trip) and hands over to one with a higher priority before it has led. The priority is part of
     * the node's name. A candidate that has resigned has no priority for one session timeout. */
    int32_t priority;
    /* Derives the priority from path and id, so that with many elections among the same candidates
     * each candidate leads about as many: give each candidate an id of its own, and no priority. */
    bool spread;
    /* While it waits behind a leader with a lower priority, it asks that leader to resign, like
     * clave_async_leader_transfer: a revocable leader gets ASKED. Needs a priority. */
    bool preempt;
    clave_latch_event_cb *event_cb; /* may be NULL */
    void *event_arg;
    clave_latch_layout layout;
    const char *prefix; /* FAIR: as simple_prefix in clave_mutex_options; copied */
} clave_latch_options;
#define CLAVE_LATCH_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_latch_options)

/* Makes a candidate, which is not started yet; does not contact the server. On CLAVE_OK *out
 * belongs to the caller, who frees it with clave_async_latch_free; on an error it is NULL. `o` may
 * be NULL. EPATH: the path is not valid, or it is the root and the layout UNFAIR. EINVAL: a
 * negative number, spread without an id or with a priority, preempt without either, a layout with a
 * priority or without its prefix. ENOMEM. ECLOSED. */
CLAVE_MAKING clave_err clave_async_latch_new(clave_async_latch **out, clave_async_client *c,
                                             const char *path, const clave_latch_options *o);
/* Closes it without an event if it takes part. Pending awaits end with ECLOSED, and a pending close
 * runs its callback, both later. NULL is ignored. */
CLAVE_EXPORT void clave_async_latch_free(clave_async_latch *l);

/* Enters the election; may be called before the first connection. EINVAL: it was started before.
 * ETOOBIG: the id is too long. ENOMEM. ECLOSED. */
CLAVE_METHOD clave_err clave_async_latch_start(clave_async_latch *l);

typedef void clave_async_latch_cb(clave_async_latch *l, clave_err err, void *arg);

typedef enum clave_latch_close_mode {
    CLAVE_CLOSE_SILENT,        /* no more events */
    CLAVE_CLOSE_NOTIFY_LEADER, /* a leader gets NOT_LEADER, later */
} clave_latch_close_mode;
/* Leaves the election for good: leadership ends now, and the node is deleted. cb (may be NULL) runs
 * once the node is certainly gone. EINVAL: it is not STARTED. ENOMEM, with cb: nothing was done. */
CLAVE_METHOD clave_err clave_async_latch_close(clave_async_latch *l, clave_latch_close_mode mode,
                                               clave_async_latch_cb *cb, void *arg);
/* Gives up leadership or the place and enters again at the end of the queue; a candidate that is
 * alone leads again, with a new token. EINVAL: it is not STARTED. ENOMEM: nothing was done. */
CLAVE_METHOD clave_err clave_async_latch_resign(clave_async_latch *l);

/* Waits for leadership until `deadline` (the client's clock, or CLAVE_NEVER). Any number may wait.
 * cb runs once, later: CLAVE_OK: it leads (perhaps it did already). EBUSY, EUNREACHABLE: it did not
 * lead in time, with the same distinction as in clave_async_mutex_acquire. ECANCELED. ECLOSED. The
 * `why` of FAILED. At once: EINVAL: no cb. ENOMEM. ECLOSED. */
CLAVE_METHOD clave_err clave_async_latch_await(clave_async_latch *l, int64_t deadline,
                                               clave_async_latch_cb *cb, void *arg);
/* Ends the awaits that have this cb and arg, with ECANCELED, later. ENOTHELD: there is none. */
CLAVE_METHOD clave_err clave_async_latch_cancel(clave_async_latch *l, clave_async_latch_cb *cb,
                                                void *arg);

/* ---- queries, answered from memory ----------------------------------------------------------- */

/* True if it leads, and certainly did at `now` (the client's clock). */
CLAVE_METHOD bool clave_async_latch_has_leadership(const clave_async_latch *l, int64_t now);
/* The grant of the leadership, as clave_async_mutex_grant. Its token is the term, which grows with
 * every LEADER event of any candidate. ENOTHELD: it does not lead. ENOMEM. */
CLAVE_METHOD clave_err clave_async_latch_grant(const clave_async_latch *l, clave_async_grant **out);
/* LATENT, STARTED or CLOSED. */
CLAVE_METHOD clave_latch_state clave_async_latch_state_of(const clave_async_latch *l);
/* The full path of its node; NULL while none is known to exist. Valid until the next call on l. */
CLAVE_METHOD const char *clave_async_latch_own_path(const clave_async_latch *l);

#ifdef __cplusplus
}
#endif
#endif
