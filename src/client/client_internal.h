/* client_internal.h - the inside of a clave_async_client, shared by the files of this folder.
 *
 *   client.c             new and free, options, queries, watches as their users see them
 *   driver_calls.c       what the driver calls: bytes, time, connections; the handshake
 *   deliveries.c         entering and leaving the client; callbacks run on leaving
 *   client_connection.c  which host is dialled and when; the states that users see
 *   request/client_create.c, request/guaranteed_delete.c
 *                        operations that are made of several requests
 *   hold/heartbeat.c     what is held, pings, and confirmed heartbeats
 *   pipeline.c           the public requests, from their submission to their answer
 *   request/client_request.c
 *                        one request and its answer, as bytes and as structs
 *   client_watch.c       the registry of watches, and setWatches on a new connection
 *   client_auth.c        identities
 *   handed_session.c     the session of another process, and what it held
 *   hosts.c              the servers, in order; the chroot
 *   errmsg.c             clave_async_client_errmsg
 *   backoff.c            retry policies
 *   timer.c              deadlines in a heap
 *   hold/hold_deadline.c the arithmetic of the hold deadline
 *   client_metrics.c     counters
 *
 * Calls go down this list. What a request or a heartbeat finds out about the connection or the
 * session is reported upwards with clave__link_report, and acted upon before the next callback
 * runs. Recipes include client_for_recipes.h, not this file. */
#ifndef CLAVE_CLIENT_CLIENT_INTERNAL_H
#define CLAVE_CLIENT_CLIENT_INTERNAL_H

#include "base/buf.h"
#include "base/map.h"
#include "client/client_for_recipes.h"
#include "client/client_metrics.h"
#include "client/client_watch.h"
#include "client/handed_session.h"
#include "client/hold/hold_deadline.h"
#include "client/hosts.h"
#include "client/request/client_request.h"
#include "wire/frame.h"

/* ---- link ------------------------------------------------------------------------------------
 *
 * One transport connection after another; client_connection.c implements it.
 *
 *   IDLE ──▶ DIALLING ──▶ (SECURING) ──▶ HANDSHAKE ──▶ OPEN
 *    ▲  ▲_______│_____________│_____________│____________│   gone
 *    │_______ HANGUP ◀────────┴─────────────┴────────────┘   given up; waiting for _disconnected
 *
 * SECURING: TCP is connected, TLS is not, or waits for its turn at the server. */
enum link_phase { LINK_IDLE, LINK_DIALLING, LINK_SECURING, LINK_HANDSHAKE, LINK_OPEN, LINK_HANGUP };

/* What a request or a heartbeat has found out about the connection or the session, for
 * client_connection.c to act upon. If there are several, the gravest is kept. */
enum verdict_kind {
    VERDICT_NONE,
    VERDICT_DROP,    /* the connection is useless */
    VERDICT_REFUSED, /* the server refuses something that the client itself needs:
                        clave__link_refused */
    VERDICT_LOST,    /* the session is lost */
    VERDICT_ENDED,   /* the session has ended, and no other follows */
};
struct verdict {
    enum verdict_kind kind;
    clave_err err;
    const char *what; /* for REFUSED */
};

struct link {
    enum link_phase phase;
    int64_t until;          /* IDLE: when to dial; DIALLING to HANDSHAKE: when to give up */
    int64_t heard;          /* when the newest bytes of this connection arrived */
    int64_t handshake_sent; /* when the handshake was sent */
    uint64_t connections;   /* number of successful dials */
    int32_t rounds;         /* how often all hosts were tried without one that served */
    int64_t failing_since;  /* when the first of these rounds began */
    bool answered;          /* the present connection has given an answer */
    bool denied; /* according to the newest answer, the server wants an identity that we do not have
                  */
    bool resting; /* no new dial begins: see clave__client_rest */
    struct frame_reader in;
    struct buf out;
    uint64_t out_begin; /* position of the first byte of `out` in the stream of the connection */
    int64_t wrote;      /* when `out` was last written to */
    struct verdict verdict;
    size_t cut; /* what clave__pipeline_cut returned when the server closed the newest connection */
};

/* In LINK_IDLE: dials the host whose turn it is. */
void clave__link_dial(clave_async_client *c);
/* Gives the connection up. */
void clave__link_drop(clave_async_client *c, clave_err why);
/* The server answered with an error to something that the client itself asks for on every
 * connection (`what`, such as "a ping"): the host counts as failed. EEXPIRED: the session is
 * lost. */
void clave__link_refused(clave_async_client *c, clave_err err, const char *what);
void clave__link_tick(clave_async_client *c);
int64_t clave__link_deadline(const clave_async_client *c);

/* Changes the phase; nothing else does. */
void clave__link_enter(clave_async_client *c, enum link_phase to, int64_t until);
/* The longest that an attempt, or the TLS handshake, may take, so that several attempts fit into a
 * session. */
int64_t clave__link_attempt_timeout(const clave_async_client *c);
int64_t clave__link_securing_timeout(const clave_async_client *c);
/* The present host has been useful so far, so when the connection ends, the next attempt may begin
 * without a pause. */
void clave__link_is_of_use(clave_async_client *c);
/* Called after a connection or an attempt has ended: dials the next host, or ends the client. */
void clave__link_gone(clave_async_client *c, bool failed);
/* Writes the name of the present host, for messages. Returns `out`. */
const char *clave__link_host(const clave_async_client *c, char *out, size_t cap);

static inline bool clave__link_is_open(const struct link *l)
{
    return l->phase == LINK_OPEN;
}

/* Writes a request that the pipeline does not track: its answer is recognised by its xid. ENOMEM:
 * nothing was written. */
clave_err clave__unqueued_request_put(clave_async_client *c, const struct wire_request *q);

/* ---- session: what users see ----------------------------------------------------------------- */

struct session {
    clave_state state;
    int64_t id; /* 0: none */
    uint8_t passwd[16];
    int32_t timeout_ms; /* negotiated; 0: not yet */
    int32_t told_ms;    /* the timeout that the user expects: the one requested, or the one reported
                           since; 0: the default */
    int64_t last_zxid;  /* from the newest answer */
    int64_t event_zxid; /* the zxid of the newest event, from servers that send it (3.9); further
                           events of that transaction may still be missing */
    bool was_connected; /* CONNECTED was reported: next time it will be RECONNECTED */
    bool known;     /* this session was reported, or was given in the options; so it can be lost */
    bool read_only; /* attached to a read-only server */
    bool binding;   /* a hold depends on the hold deadline */
    bool closing;
    int64_t reported_deadline; /* the hold deadline that was last reported to recipes */
    int64_t close_by; /* while closing: by then the server has ended the session on its own */
    bool may_be_over; /* while closing: the server may have closed it already */
    bool is_over;     /* a server has said so */
};

/* A session was made (its id is new) or re-attached by a handshake that was sent at `sent`. */
void clave__session_attached(clave_async_client *c, const struct wire_connect_response *r,
                             int64_t sent);
/* The server has accepted an identity. Once all identities of the options are accepted, the state
 * is reported. */
void clave__session_admitted(clave_async_client *c);
/* The connection was lost. */
void clave__session_detached(clave_async_client *c, clave_err why);
/* The session has ended or must be assumed to have; another one follows. */
void clave__session_lose(clave_async_client *c, clave_err why);
/* The session has ended, and no other follows. */
void clave__session_end(clave_async_client *c, clave_err why);
/* Acts upon the verdict. Returns true if there was one. */
bool clave__connection_settle(clave_async_client *c);
/* Reports LOST once the session's deadline has passed. */
void clave__session_tick(clave_async_client *c);
int64_t clave__session_deadline(const clave_async_client *c);

/* ---- pipeline: requests between submission and answer ---------------------------------------- */

struct pipeline {
    struct list unsent;
    struct list sent;   /* ordered by xid */
    struct list paused; /* reads waiting to be sent again */
    int32_t xid;        /* xid of the newest request */
    bool close_sent;
    uint64_t counts[CLIENT_OPCODES];
};

/* Takes over the request, which will be answered exactly once. */
void clave__pipeline_submit(clave_async_client *c, struct request *r);
/* Moves unsent requests into the link's output, as many as fit. */
void clave__pipeline_fill(clave_async_client *c);
/* True if a write that was answered with this error in its reply header has nevertheless passed the
 * leader. */
bool clave__pipeline_was_committed(clave_err err);
/* Handles a reply whose xid is not a reserved one. Returns false if it is not the reply expected
 * next. */
bool clave__pipeline_reply(clave_async_client *c, const struct wire_reply_header *h,
                           struct jreader *body);
/* The next reply is longer than the client accepts. The read that asked for it is not sent again,
 * because its reply would end every later connection as well. */
void clave__pipeline_reply_too_big(clave_async_client *c);
/* The server has closed the connection. Returns the size of the largest unanswered request that has
 * left at least in part, or 0. Call it before _detached. */
size_t clave__pipeline_cut(clave_async_client *c);
/* The connection was lost: requests that may be sent again wait, all others fail. */
void clave__pipeline_detached(clave_async_client *c);
/* Answers one request in deliveries.failed. Returns false if there is none. */
bool clave__pipeline_deliver_failed(clave_async_client *c);
/* Writes whose callback has this argument are not sent, if they have not left (client_for_gate.h).
 */
void clave__pipeline_withdraw(clave_async_client *c, const void *arg);
/* Fails every request: unsent ones with the first error, sent ones with the second. */
void clave__pipeline_fail(clave_async_client *c, clave_err unsent, clave_err sent);

/* Requests as the composed ones make them (client_create.c, guaranteed_delete.c). Each of these
 * functions sets clave_async_client_errmsg when it fails. */
struct submit_create {
    const char *path;
    const void *data;
    size_t len;
    clave_create_mode mode;
    int64_t ttl_ms;
    const clave_acl *acls;
    size_t nacls;
    enum request_again again;
    bool quiet;
    bool raw;
    enum create_place place;
};
/* These check only that the path fits. */
clave_err clave__submit_create(clave_async_client *c, const struct submit_create *s,
                               clave_result_cb *cb, void *arg);
clave_err clave__submit_delete(clave_async_client *c, const char *path, int32_t version,
                               clave_result_cb *cb, void *arg);
/* Submits a read of the spec's path, with its watch. */
clave_err clave__submit_read(clave_async_client *c, int32_t op, struct request_spec *spec);
/* Submits a request whose body is just a path, with the spec's op and path. */
clave_err clave__submit_path(clave_async_client *c, const struct request_spec *spec);
/* Submits a multi of the spec's operations. */
clave_err clave__submit_multi(clave_async_client *c, struct request_spec *spec);

/* ---- deliveries: callbacks wait until the engine is consistent ------------------------------- */

enum { DELIVERY_STATES = 16 };
struct deliveries {
    unsigned depth; /* how deeply entries into the engine are nested; the outermost one delivers */
    struct {
        clave_state state;
        clave_err why;
    } states[DELIVERY_STATES];
    size_t first_state, nstates;
    struct list failed; /* struct request */
    struct list lost;   /* watches whose session has ended */
    bool deadline_moved;
    struct list client_tasks;
};

/* True if something waits for the next entry, which is then due at once. */
bool clave__deliveries_wait(const clave_async_client *c);
/* These enclose every call that may run callbacks (clave/async/client.h and
 * docs/guide/event-loop.md list them). */
void clave__engine_enter(clave_async_client *c, int64_t now);
void clave__engine_leave(clave_async_client *c);
/* Runs the waiting callbacks; only the outermost entry calls it. */
void clave__engine_deliver(clave_async_client *c);

/* ---- heartbeat ------------------------------------------------------------------------------- */

enum { HEARTBEAT_HOLDS = 16 }; /* how many holds a single heartbeat checks */

struct heartbeat {
    bool ping_out;
    int64_t ping_sent;
    bool confirming; /* a confirmed heartbeat is under way */
    int64_t asked;   /* when the confirmed heartbeat was sent */
    bool wanted;     /* another one has been asked for */
    int64_t answered;
    int64_t took; /* of the last heartbeat confirmed on this connection, in ms; 0: there was none */
    int64_t confirmed, before; /* when the last one was answered, and the one before it */
    struct hold *checked[HEARTBEAT_HOLDS]; /* the holds that it checks; NULL: gone since */
};

/* The session was re-attached with holds, perhaps to a member that lags behind the previous one,
 * whose leader may moreover be deposed. So something is committed before anything else is
 * requested. */
void clave__heartbeat_catch_up(clave_async_client *c);
void clave__heartbeat_detached(clave_async_client *c);
void clave__heartbeat_tick(clave_async_client *c);
int64_t clave__heartbeat_deadline(const clave_async_client *c);
void clave__heartbeat_ping_answered(clave_async_client *c, clave_err err);

/* Asks the server of this connection whether it is standalone. */
void clave__standalone_server_ask(clave_async_client *c);

/* ---- auth ------------------------------------------------------------------------------------ */

struct auths {
    struct list list;
};

void clave__auth_fini(clave_async_client *c);
/* Adds copies of the identities in the options. ETOOBIG, ENOMEM. */
clave_err clave__auth_need(clave_async_client *c, const clave_auth *auths, size_t n);
/* True if the server of this connection has accepted all identities of the options. */
bool clave__auth_is_settled(clave_async_client *c);
void clave__auth_detached(clave_async_client *c);
/* Appends the identities that have not been sent on this connection to the link's output. */
clave_err clave__auth_fill(clave_async_client *c);
/* The identity that the next answer belongs to; NULL: none is outstanding. */
struct auth *clave__auth_asked(clave_async_client *c);
void clave__auth_accepted(clave_async_client *c, struct auth *a);
/* Sets the fault. Returns true if the client cannot do without this identity; otherwise it will be
 * forgotten. */
bool clave__auth_refused(clave_async_client *c, const struct auth *a);
void clave__auth_forget(clave_async_client *c, struct auth *a);
/* Adds an identity, which clave__pipeline_fill will send. ETOOBIG, ENOMEM. */
clave_err clave__auth_add(clave_async_client *c, const clave_auth *q, clave_result_cb *cb,
                          void *arg);
/* No session follows: fails the identities that were added. */
void clave__auth_end(clave_async_client *c);

/* ---- composed requests ----------------------------------------------------------------------- */

/* There is a new session: creates that were waiting for one will be sent in it. */
void clave__creations_session_made(clave_async_client *c, int64_t id);
/* No session follows: creates that are merely pausing end with ECLOSED. */
void clave__creations_end(clave_async_client *c);
void clave__creations_withdraw(clave_async_client *c, const void *arg); /* as _pipeline_withdraw */
void clave__cleanups_end(clave_async_client *c);

/* ---- a session that another process has handed over ------------------------------------------ */

/* Takes the session of this text (NULL: there is none). EINVAL: it was used below another chroot,
 * as the log says. ENOMEM. */
clave_err clave__client_resume(clave_async_client *c, const char *text);
/* The client starts. From here on, and from each connection on, the session must be claimed within
 * its timeout; otherwise the session is given up, because another process that had the same
 * text may keep it for itself. */
void clave__handed_begin(clave_async_client *c);
void clave__handed_attached(clave_async_client *c);
/* The session has ended, and with it whatever was handed over. `ending`: the client has ended
 * too. */
void clave__handed_over(clave_async_client *c, bool ending);

/* ---- the client ------------------------------------------------------------------------------ */

struct clave_async_client {
    struct client_base base; /* must be first: see client_base.h */
    unsigned refs; /* one for the user, and one for each object of the API made on the client */
    bool freed;    /* the user has freed it: only objects made on it still need it */
    struct rand_state rand;
    clave_state_cb *state_cb;
    void *state_arg;

    int32_t asked_timeout_ms;
    int32_t margin_ms; /* 0: an eighth of the timeout */
    int32_t relay_ms;  /* 0: a quarter of the timeout */
    bool read_only;
    bool keep_order;
    size_t max_frame;
    clave_retry reconnect;
    bool reconnect_is_users; /* set by the user; the default policy hurries when the session is
                                about to end */
    clave_retry reads;

    struct list holds;
    struct list confirms; /* of struct confirm_waiter */

    struct hosts hosts;
    struct link link;
    struct session session;
    struct hold_deadline hold_deadline;
    struct pipeline pipeline;
    struct watches watches;
    struct heartbeat heartbeat;
    struct auths auths;
    struct list creations; /* composed creates under way */
    struct list cleanups;  /* guaranteed deletes under way */
    struct deliveries deliveries;
    struct handed_session handed;
    struct client_metrics metrics;

    struct buf encode;   /* the request being made */
    struct buf path;     /* the full path being encoded */
    struct buf acls;     /* the ACL being encoded */
    struct buf multi;    /* the operations of the multi being encoded */
    struct buf decoded;  /* whatever a result points to that is not in its frame */
    bool no_containers;  /* the server does not support containers */
    bool no_ephemerals;  /* the server cannot list the ephemeral nodes of a session */
    char *grant_warning; /* to be logged at the first grant; NULL: nothing, or already logged */
    struct client_fault fault;
    bool fault_is_news; /* set since the present dial began */
};

/* True if the client resumes a session and has not claimed it yet. */
static inline bool clave__handed_is_unclaimed(const clave_async_client *c)
{
    return c->handed.id != 0 && !c->handed.claimed;
}

/* What is wrong with a retry policy in the options. */
enum retry_fault {
    RETRY_FAULT_NONE,
    RETRY_FAULT_KIND,
    RETRY_FAULT_NO_KIND,
    RETRY_FAULT_NEGATIVE,
    RETRY_FAULT_NO_PAUSE,
    RETRY_FAULT_NO_TIME,
    RETRY_FAULTS,
};
enum retry_fault clave__retry_fault(const clave_retry *r);

/* The connection has served the session: it has carried a heartbeat, or has ended without anything
 * being refused. Hosts that failed before no longer count as failed. (An answer alone is not
 * enough: members that answer but refuse every heartbeat would be dialled again without a
 * pause.) */
static inline void clave__link_has_served(clave_async_client *c)
{
    c->link.rounds = 0;
    clave__hosts_served(&c->hosts);
}

/* Call it when the hold deadline has moved, or a hold was added or removed. */
static inline void clave__session_hold_moved(clave_async_client *c)
{
    struct session *s = &c->session;
    int64_t deadline = clave__hold_deadline_get(&c->hold_deadline);
    if (s->binding && deadline > s->reported_deadline)
        clave__histogram_note(&c->metrics.slack_ms, s->reported_deadline > c->base.now
                                                        ? s->reported_deadline - c->base.now
                                                        : 0);
    if (list_empty(&c->holds))
        s->binding = false;
    else if (deadline > c->base.now)
        s->binding = true; /* from the first grant that could rely on the deadline */
    if (deadline > s->reported_deadline)
        c->deliveries.deadline_moved = true;
    s->reported_deadline = deadline;
}

static inline bool clave__client_watches_are_owed(const clave_async_client *c)
{
    return !list_empty(&c->watches.owed) || !list_empty(&c->watches.owed_persistent);
}

/* True if the server of this connection has accepted all watches that were armed before. */
static inline bool clave__client_watches_settled(const clave_async_client *c)
{
    return !clave__client_watches_are_owed(c) && c->watches.unanswered == 0;
}

/* Reports a verdict. For the files that client_connection.c itself calls. It is acted upon before
 * any callback runs: in the present entry into the client or, outside of one, in the next. */
static inline void clave__link_report(clave_async_client *c, enum verdict_kind kind, clave_err err,
                                      const char *what)
{
    if (kind > c->link.verdict.kind)
        c->link.verdict = (struct verdict){kind, err, what};
}

/* For calls that run no callbacks: only notes the time, which never goes backwards. The effects of
 * such a call are delivered by the next entry; until then clave_async_client_deadline is due at
 * once. */
static inline void clave__engine_note(clave_async_client *c, int64_t now)
{
    if (now > c->base.now)
        c->base.now = now;
}

#endif
