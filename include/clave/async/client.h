/* async/client.h - the ZooKeeper client as an engine without I/O: bytes in, bytes out, time in. The
 * asynchronous API on your own loop (clave/uv.h) and the blocking API (clave/client.h) are thin
 * layers over it.
 *
 * Times      int64_t milliseconds of a clock that never steps and continues while the
 *            machine sleeps (CLOCK_BOOTTIME), supplied by the caller.
 * Paths      NUL-terminated UTF-8, relative to the chroot of the host list.
 * Threads    one client belongs to one thread at a time; two clients share nothing.
 * Callbacks  run inside _start, _input, _tick, _connected, _disconnected, _close, _abandon
 *            and _free, one at a time, after the engine is consistent; never inside the call
 *            that started the request. They may call anything on their client except _free
 *            and the transport's calls; a _tick there only sets the time. What a result
 *            points to is valid during the callback only. */
#ifndef CLAVE_ASYNC_CLIENT_H
#define CLAVE_ASYNC_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clave/err.h"
#include "clave/mem.h"
#include "clave/options.h"
#include "clave/retry.h"
#include "clave/version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_async_client clave_async_client; /* opaque */
typedef struct clave_async_watch clave_async_watch;   /* opaque */

#define CLAVE_NEVER INT64_MAX

/* ---- options ------------------------------------------------------------------ */

/* Connection states, in the order and with the meaning of Curator's: CONNECTED once; then
 * SUSPENDED, RECONNECTED or SUSPENDED, LOST, RECONNECTED. LOST is reported by the client's own
 * clock, before the server can have deleted the session's nodes; a new session follows
 * automatically. */
typedef enum clave_state {
    CLAVE_STATE_LATENT, /* not started, or never connected yet */
    CLAVE_STATE_CONNECTED,
    CLAVE_STATE_SUSPENDED,
    CLAVE_STATE_RECONNECTED,
    CLAVE_STATE_LOST,
    CLAVE_STATE_READ_ONLY,
    CLAVE_STATE_CLOSED,
} clave_state;

/* The state's name, "SUSPENDED" for instance. A static string. Any thread. */
CLAVE_EXPORT const char *clave_state_name(clave_state state);

/* `why`: CLAVE_OK, or what caused SUSPENDED or LOST (ECONNLOSS, EEXPIRED, EREPLACED, ETIMEDOUT,
 * EPROTO, EAUTHFAILED, ETOOBIG, ENOTREADONLY, ENOMEM; or the server's error, if it refused to
 * register the session's watches again). */
typedef void clave_state_cb(clave_async_client *c, clave_state state, clave_err why, void *arg);

/* An identity of the client, for access lists: scheme "digest", `auth` "user:password". */
typedef struct clave_auth {
    const char *scheme;
    const void *auth;
    size_t len;
} clave_auth;

typedef struct clave_client_options {
    size_t size;                /* CLAVE_CLIENT_OPTIONS_INIT sets it: clave/options.h */
    const char *hosts;          /* "h1:2181,h2,[::1]:2183/chroot" or "unix:/path"; copied. With TLS:
                                   "tls:h1:2281,h2/chroot", see clave/tls.h. There may be spaces after
                                   commas, and "zk://" in front. The chroot is given once, at the end, and
                                   applies to all hosts */
    int32_t session_timeout_ms; /* requested; 0: 10000. If a server grants another one, a warning in
                                   `log` says so */
    int32_t margin_ms;          /* subtracted from the hold deadline; 0: an eighth of the timeout;
                                   at most half of what the server grants */
    int32_t relay_interval_ms;  /* how late a member may report a session's activity to its leader:
                                   half a tick of the ensemble; 0: a quarter of the session
                                   timeout; not used with a standalone server. Together with
                                   the margin less than the session timeout */
    uint64_t seed;              /* for host order, back-off jitter and protected names. Not 0, and
                                   different in each process: clave_random_seed() of uv.h, or
                                   getrandom(). clave_client_open replaces 0 by a random one */
    bool read_only;             /* accept a server that is read-only */
    bool keep_order;            /* do not shuffle the hosts */
    size_t max_frame;           /* 0: 1048575, as the server's jute.maxbuffer */
    clave_retry reconnect; /* back-off between attempts; zeros: exponential without end, from 50 ms
                              to 2 s but at most a quarter of the time that the session has left
                              (after ESASLREQUIRED: to 2 s) */
    clave_retry reads;     /* for repeating a read whose answer was lost; zeros: 3 times */
    int64_t resume_session_id; /* attach to this session; 0: begin a new one */
    uint8_t resume_passwd[16];
    const clave_mem *mem;     /* copied; NULL: libc */
    clave_state_cb *state_cb; /* may be NULL */
    void *state_arg;
    clave_log_cb *log; /* may be NULL */
    void *log_arg;
    struct clave_tls *tls;   /* for hosts with "tls:", used by uv.h and client.h, which keep a
                                reference; NULL: TLS as the environment says */
    const clave_auth *auths; /* identities that precede everything else on each connection, as a
                                server with --require-auth demands; copied. CONNECTED and
                                RECONNECTED are reported once the server has accepted them. If it
                                refuses one, the client is closed: CLOSED, EAUTHFAILED */
    size_t nauths;
    const char *resume;      /* the session that another process has handed over, as the text of
                                clave_async_client_hand_over; copied. NULL: begin a new one, or see
                                resume_file and resume_session_id */
    const char *resume_file; /* the file of clave_client_hand_over, for clave_client_open, which
                                removes it. The other functions ignore it */
} clave_client_options;
#define CLAVE_CLIENT_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_client_options)

/* ---- life --------------------------------------------------------------------- */

/* Makes a client, which is not started yet. On CLAVE_OK *out belongs to the caller, who frees it
 * with clave_async_client_free; on an error it is NULL. EHOST: the host list is not valid
 * (clave_async_client_host_fault says why, and so does the log). EINVAL: an option is out of range,
 * or the seed is 0 (clave_async_client_options_fault says which, and so does the log). ETOOBIG: an
 * identity is longer than half of max_frame. ENOMEM. */
CLAVE_METHOD clave_err clave_async_client_new(clave_async_client **out,
                                              const clave_client_options *o);

/* Says why a host list is not valid; NULL: it is valid. A static string. Any thread. */
CLAVE_EXPORT const char *clave_async_client_host_fault(const char *hosts);

/* Says which option clave_async_client_new refuses with EINVAL, and why; NULL: none (the host list
 * has a function of its own). A static string. Any thread. */
CLAVE_EXPORT const char *clave_async_client_options_fault(const clave_client_options *o);

/* Replaces the host list by another list of the same servers, or of the servers that have their
 * data now (Curator's EnsembleProvider); the session continues. The connection is kept if its host
 * is in the list. Otherwise it is closed and a new host is tried at once: _wants says HANGUP when
 * this returns, and the state SUSPENDED is reported later, in a callback. May be called at any
 * time, also in callbacks. EHOST: the list is not valid. EINVAL: another chroot, or TLS where there
 * was none. ENOMEM. */
CLAVE_METHOD clave_err clave_async_client_set_hosts(clave_async_client *c, const char *hosts,
                                                    int64_t now);

/* Completes everything pending with ECLOSED, then frees. It does not end the session at the server:
 * use _close first for that. Watches, mutexes, read-write locks, multilocks, semaphores, latches,
 * leader watches, persistent nodes, counters, onces and delays made on it may be freed before or
 * after it. After it they hold nothing, get no more callbacks, and refuse requests with ECLOSED (a
 * latch, being closed, with EINVAL; the release of a lost hold with ELOST), and their _free frees
 * them. They stay on the client's thread, and the client's memory and memory hooks remain in use
 * until the last of them is freed. NULL is ignored. */
CLAVE_EXPORT void clave_async_client_free(clave_async_client *c);

/* Starts the client: it begins to connect. `now` is the caller's clock, as in all calls below. */
CLAVE_METHOD void clave_async_client_start(clave_async_client *c, int64_t now);

/* Ends the session: pending requests are sent and answered first (FIFO), then closeSession, then
 * the state becomes CLOSED. If the client is not connected, or the server refuses (a read-only one
 * cannot end a session), it keeps trying until the session must have expired. New requests fail
 * with ECLOSED. */
CLAVE_METHOD void clave_async_client_close(clave_async_client *c, int64_t now);

/* Drops the connection without a message to the server: the state is CLOSED at once, and the server
 * expires the session. For tests; to let another process go on with the session, see
 * clave_async_client_hand_over. */
CLAVE_METHOD void clave_async_client_abandon(clave_async_client *c, int64_t now);

/* `session` is a text, which is valid during the callback only; NULL after an error. */
typedef void clave_hand_over_cb(clave_async_client *c, clave_err err, const char *session,
                                void *arg);
/* Hands the session over to another process, with what is held: locks, each side of read-write
 * locks, multilocks, and leaderships. For a program that is replaced while it runs, by an upgrade
 * for instance, and is to keep its holds.
 *
 * What waits in a queue gives up its place and ends with ECLOSED (a candidate that does not lead is
 * closed), and nothing new may queue. Once no request is under way, the client abandons the
 * connection: its state is CLOSED, every grant is over, as clave_async_grant_valid_for says, and
 * then `cb` gets the session as a text. From that moment on another process may go on with it, with
 * clave_client_options.resume: its acquire of the same path, or its candidate, takes up the node
 * that is there, with its token, and counts on it once the servers have confirmed that to it. What
 * nobody takes up within a session timeout after it has connected is given back. If no process
 * resumes the session, the servers expire it, and the next in the queue follows. Other ephemeral
 * nodes of the session stay until it ends.
 *
 * The text is a secret: it is all that is needed to act as this session. It is good for one
 * process. Before anything else, the process writes to the nodes of what was handed over; until
 * that is answered, its other requests wait, and closing it leaves the session as it is. A second
 * one with the same text finds that the nodes were written to and is closed, CLOSED by EREPLACED,
 * without having held or requested anything. If nothing is left of what was handed over, if its
 * nodes may not be read and written, or if no server answers in that session for a session timeout,
 * the process begins a session of its own. (A program that gives its locks data of its own has no
 * room for a mark there. If the answer to that write is lost, it cannot tell whose it was, and is
 * closed as well.)
 *
 * The text does not contain how long the hold is valid, since only an answer to the new process can
 * say that. An end by max_hold_ms is in it, as CLOCK_BOOTTIME of this machine: it cannot be made
 * later by resuming.
 *
 * At once, without cb: ENOTHELD: nothing is held. EINVAL: something is held that cannot be handed
 * over: a lease of a semaphore, leadership in an unfair election (CLAVE_LATCH_UNFAIR), a lock with
 * simple_prefix; or another hand-over is under way. ECLOSED. ENOMEM.
 * In the callback, when nothing was handed over and the client goes on with what it holds:
 * ETIMEDOUT: requests were still unanswered at `deadline` (the caller's clock). ENOTHELD: nothing
 * is held any more. ENOAUTH: the node of a hold may not be read. ELOST: the session has ended
 * meanwhile. ENOMEM. ECLOSED: the client was closed. */
CLAVE_METHOD clave_err clave_async_client_hand_over(clave_async_client *c, int64_t deadline,
                                                    clave_hand_over_cb *cb, void *arg);

/* ---- transport: call one of these, then obey _wants ----------------------------- */

enum {
    CLAVE_WANT_DIAL =
        1, /* connect to clave_async_client_target, then _connected or _disconnected */
    CLAVE_WANT_READ = 2,
    CLAVE_WANT_WRITE = 4,  /* _output has bytes */
    CLAVE_WANT_HANGUP = 8, /* close the transport, then call _disconnected */
};
/* Returns what the transport must do next, as CLAVE_WANT_* flags. */
CLAVE_METHOD unsigned clave_async_client_wants(const clave_async_client *c);

typedef struct clave_target {
    const char *host; /* name, address without brackets, or the path of a Unix socket */
    uint16_t port;    /* 0: `host` is the path of a Unix socket */
    unsigned attempt; /* counts up: if the name has n addresses, use number attempt mod n */
    bool tls;         /* send nothing before TLS has proved that the server is this host */
} clave_target;
/* Where to connect to; valid until the next call on c. */
CLAVE_METHOD clave_target clave_async_client_target(const clave_async_client *c);

/* TCP is connected and the TLS handshake begins. It has a time limit of its own, since the server
 * may have thousands of others to do first. _connected or _disconnected follows. */
CLAVE_METHOD void clave_async_client_securing(clave_async_client *c, int64_t now);
/* The transport is connected. */
CLAVE_METHOD void clave_async_client_connected(clave_async_client *c, int64_t now);
/* The connect failed, the peer closed the connection, or a requested hang-up is done. */
CLAVE_METHOD void clave_async_client_disconnected(clave_async_client *c, int64_t now);
/* The transport has read these n bytes. */
CLAVE_METHOD void clave_async_client_input(clave_async_client *c, int64_t now, const void *p,
                                           size_t n);
/* Points *p at bytes to send, valid until the next call on c; returns how many. */
CLAVE_METHOD size_t clave_async_client_output(clave_async_client *c, const void **p);
/* The transport has taken the first n of these bytes. Call it before any other call: bytes that
 * were not reported count as never sent, and a write that was never sent will be sent again. */
CLAVE_METHOD void clave_async_client_sent(clave_async_client *c, int64_t now, size_t n);
/* Sets the time and runs timers. Call it when clave_async_client_deadline has come, and, after a
 * wait, before code that uses the client, so that its `now` is up to date. */
CLAVE_METHOD void clave_async_client_tick(clave_async_client *c, int64_t now);
/* When to call clave_async_client_tick next; CLAVE_NEVER: there is no timer. */
CLAVE_METHOD int64_t clave_async_client_deadline(const clave_async_client *c);

/* ---- queries --------------------------------------------------------------------------------- */

/* The state of the connection. */
CLAVE_METHOD clave_state clave_async_client_state(const clave_async_client *c);
/* True while a connection is open and the session is attached to it. */
CLAVE_METHOD bool clave_async_client_is_connected(const clave_async_client *c);
/* The session's id; 0: there is none. */
CLAVE_METHOD int64_t clave_async_client_session_id(const clave_async_client *c);
/* The 16 bytes that prove the session, for clave_client_options.resume_passwd. */
CLAVE_METHOD const uint8_t *clave_async_client_session_passwd(const clave_async_client *c);
/* The session timeout that was negotiated, in milliseconds. */
CLAVE_METHOD int32_t clave_async_client_session_timeout(const clave_async_client *c);
/* The hold deadline: the time until which nobody else can own what this session holds, derived from
 * answers that passed the leader. INT64_MIN: there is no session, or its end was requested. */
CLAVE_METHOD int64_t clave_async_client_hold_deadline(const clave_async_client *c);
/* The text of the latest fault: what was tried, on which path or host, what to do. Never NULL;
 * valid until the next call on c. */
CLAVE_METHOD const char *clave_async_client_errmsg(const clave_async_client *c);
/* ---- requests ---------------------------------------------------------------------
 * A call that returns CLAVE_OK runs `cb` exactly once, later; otherwise never. Requests may be
 * submitted in any state but CLOSED: they wait for the connection, and fail with ENOTSENT when the
 * session is lost before they were sent. A write whose answer was lost completes with ECONNLOSS and
 * is never sent twice. Each call can return EPATH (clave_async_client_errmsg says what is wrong),
 * ETOOBIG (more than max_frame), ENOMEM and ECLOSED; each result can also be ENOAUTH. A result is
 * ETOOBIG, and nothing was done, when the answer to a read is longer than four times max_frame, or
 * when the server, three times, closed the connection before it had read a request of 64 KiB or
 * more; EBADARGS, when a bound of the server is reached; EQUOTA, when a quota is; EMARSHALLING,
 * when the answer to a read is longer than the server sends. The text of clave_async_client_errmsg
 * names the bounds that it can be, with their flags of `clave serve`. */

typedef struct clave_stat {
    int64_t czxid, mzxid, ctime, mtime;
    int32_t version, cversion, aversion;
    int64_t ephemeral_owner;
    int32_t data_length, num_children;
    int64_t pzxid;
} clave_stat;

typedef struct clave_acl {
    int32_t perms; /* CLAVE_PERM_* */
    const char *scheme;
    const char *id;
} clave_acl;
enum {
    CLAVE_PERM_READ = 1,
    CLAVE_PERM_WRITE = 2,
    CLAVE_PERM_CREATE = 4,
    CLAVE_PERM_DELETE = 8,
    CLAVE_PERM_ADMIN = 16,
    CLAVE_PERM_ALL = 31,
};

typedef struct clave_op_result {
    clave_err err;
    const char *path;       /* for a create */
    const clave_stat *stat; /* for a create and a set; NULL if the server sent none */
} clave_op_result;

typedef struct clave_result {
    clave_err err;
    int64_t zxid;     /* from the reply; 0 if there was none */
    const char *path; /* for a create: the final path; for others: the path that was requested */
    const void *data; /* for a get: the bytes; NULL if the node's data is null */
    size_t len;
    const clave_stat *stat;   /* NULL if the reply has none */
    const char *const *names; /* for children: NUL-terminated names */
    size_t nnames;
    const clave_acl *acls;
    size_t nacls;
    const clave_op_result *ops; /* for a multi */
    size_t nops;
} clave_result;
typedef void clave_result_cb(clave_async_client *c, const clave_result *res, void *arg);

typedef enum clave_create_mode {
    CLAVE_PERSISTENT = 0,
    CLAVE_EPHEMERAL = 1,
    CLAVE_PERSISTENT_SEQUENTIAL = 2,
    CLAVE_EPHEMERAL_SEQUENTIAL = 3,
    CLAVE_CONTAINER = 4,
    CLAVE_PERSISTENT_TTL = 5,
    CLAVE_PERSISTENT_SEQUENTIAL_TTL = 6,
} clave_create_mode;

enum {
    /* Creates missing ancestors as containers (or as persistent nodes if the server has no
     * containers), like Curator's creatingParentContainersIfNeeded. */
    CLAVE_CREATE_PARENTS = 1,
    /* Gives the name Curator's prefix _c_<uuid>-. If the answer is lost, the parent is searched for
     * that name after the reconnect, so that the outcome becomes known. A node that is found and
     * belongs to this session means success; one of the older session in which the create was sent
     * is deleted, never adopted; if there is none, it is created again. An ephemeral node of any
     * other session is not touched, whatever its name is. See clave_create_options.with_names. */
    CLAVE_CREATE_PROTECTED = 2,
    /* The same for ephemeral nodes whose names must stay as they are. If the answer is lost, the
     * node is searched for among those of the current session by its czxid, which lies between what
     * was answered before the create was sent and the creates sent after it. So other creates of
     * the session in the same place and with the same name must be CERTAIN as well. EINVAL: the
     * node is not ephemeral, or the name is protected. */
    CLAVE_CREATE_CERTAIN = 4,
};

typedef struct clave_create_options {
    size_t size; /* CLAVE_CREATE_OPTIONS_INIT sets it: clave/options.h */
    clave_create_mode mode;
    unsigned flags;        /* CLAVE_CREATE_* */
    int64_t ttl_ms;        /* for modes with a TTL only */
    const clave_acl *acls; /* NULL: world:anyone:ALL */
    size_t nacls;
    bool with_names; /* list the parent right after the create, without waiting for its answer, and
                        put the names into the result; if only the listing fails, names is NULL and
                        err is still CLAVE_OK */
} clave_create_options;
#define CLAVE_CREATE_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_create_options)

/* Creates a node; res.path is its final path, res.stat its Stat. `o` may be NULL:
 * persistent, open ACL. ENONODE no parent; ENODEEXISTS; ENOAUTH; EINVALIDACL; ENOCHILDREN. */
CLAVE_METHOD clave_err clave_async_create(clave_async_client *c, const char *path, const void *data,
                                          size_t len, const clave_create_options *o,
                                          clave_result_cb *cb, void *arg);
/* Deletes a node; version -1: any. ENONODE. EBADVERSION. ENOTEMPTY: it has children. */
CLAVE_METHOD clave_err clave_async_delete(clave_async_client *c, const char *path, int32_t version,
                                          clave_result_cb *cb, void *arg);
/* Deletes an ephemeral node of the current session, repeating the delete after every lost answer
 * until the node is certainly gone (ENONODE counts as success) or the session has ended: Curator's
 * guaranteed delete. `cb` may be NULL. */
CLAVE_METHOD clave_err clave_async_delete_guaranteed(clave_async_client *c, const char *path,
                                                     clave_result_cb *cb, void *arg);
/* Reads a node's stat. `watch` (may be NULL, here and in the next two calls) is armed, here even if
 * the node is missing. ENONODE. At once: EINVAL: the watch is in use, or its event has not been
 * delivered yet. */
CLAVE_METHOD clave_err clave_async_exists(clave_async_client *c, const char *path,
                                          clave_async_watch *watch, clave_result_cb *cb, void *arg);
/* Reads a node's data and stat. ENONODE. EINVAL as above. */
CLAVE_METHOD clave_err clave_async_get(clave_async_client *c, const char *path,
                                       clave_async_watch *watch, clave_result_cb *cb, void *arg);
/* Lists the names of a node's children, in no order, and reads its stat. ENONODE. EINVAL as above.
 */
CLAVE_METHOD clave_err clave_async_children(clave_async_client *c, const char *path,
                                            clave_async_watch *watch, clave_result_cb *cb,
                                            void *arg);
/* Writes a node's data; version -1: any. ENONODE. EBADVERSION. */
CLAVE_METHOD clave_err clave_async_set(clave_async_client *c, const char *path, const void *data,
                                       size_t len, int32_t version, clave_result_cb *cb, void *arg);
/* Reads a node's ACL and stat. ENONODE. */
CLAVE_METHOD clave_err clave_async_get_acl(clave_async_client *c, const char *path,
                                           clave_result_cb *cb, void *arg);
/* Sets a node's ACL; `version` is that of the ACL (stat.aversion), -1: any. ENONODE. EBADVERSION.
 * EINVALIDACL. */
CLAVE_METHOD clave_err clave_async_set_acl(clave_async_client *c, const char *path,
                                           const clave_acl *acls, size_t nacls, int32_t version,
                                           clave_result_cb *cb, void *arg);
/* Completes after the server has caught up with everything that the leader had committed before. */
CLAVE_METHOD clave_err clave_async_sync(clave_async_client *c, const char *path,
                                        clave_result_cb *cb, void *arg);
/* Adds credentials to this and every later connection: `scheme` "digest", `auth` "user:password".
 * EAUTHFAILED: refused; the session continues without them. Credentials that are known before the
 * start belong in clave_client_options.auths. */
CLAVE_METHOD clave_err clave_async_add_auth(clave_async_client *c, const char *scheme,
                                            const void *auth, size_t len, clave_result_cb *cb,
                                            void *arg);

typedef enum clave_op_kind {
    CLAVE_OP_CREATE,
    CLAVE_OP_DELETE,
    CLAVE_OP_SET,
    CLAVE_OP_CHECK,
} clave_op_kind;
typedef struct clave_op {
    clave_op_kind kind;
    const char *path;
    const void *data; /* for a create and a set */
    size_t len;
    int32_t version;        /* for a delete, set and check; -1: any */
    clave_create_mode mode; /* for a create; containers need a server of 3.5 or later, a TTL needs
                               extended types */
    const clave_acl *acls;  /* for a create; NULL: open */
    size_t nacls;
    int64_t ttl_ms; /* for a create in a mode with a TTL, which needs it */
} clave_op;
/* Does all operations in one transaction, or none. res.err is the error of the first operation that
 * failed; res.ops has each. */
CLAVE_METHOD clave_err clave_async_multi(clave_async_client *c, const clave_op *ops, size_t nops,
                                         clave_result_cb *cb, void *arg);

/* ---- watches ------------------------------------------------------------------------ */

typedef enum clave_event_type {
    CLAVE_EVENT_CREATED = 1,
    CLAVE_EVENT_DELETED = 2,
    CLAVE_EVENT_CHANGED = 3,
    CLAVE_EVENT_CHILDREN = 4,
    CLAVE_EVENT_LOST = 100, /* the watch is gone: the session has ended, or the watch is persistent
                               and the present server has no persistent watches (before 3.6) */
} clave_event_type;

typedef struct clave_event {
    clave_event_type type;
    const char *path;
    uint64_t connection; /* the connection it arrived on, see clave_async_client_connection */
} clave_event;
typedef void clave_watch_cb(clave_async_client *c, clave_async_watch *w, const clave_event *ev,
                            void *arg);

/* Makes a watch. Pass it to one request; after its event it may be used again. It survives
 * reconnects: setWatches registers it again, and if a server refuses that, the client moves on to
 * the next server, with a fault in clave_async_client_errmsg. A request that fails leaves it idle,
 * without an event. On CLAVE_OK *out belongs to the caller, who frees it with
 * clave_async_watch_free. ENOMEM. */
CLAVE_MAKING clave_err clave_async_watch_new(clave_async_watch **out, clave_async_client *c,
                                             clave_watch_cb *cb, void *arg);
/* Frees the watch; no callback follows. It is removed at the server, too, unless another watch of
 * this client is on the path. NULL is ignored. */
CLAVE_EXPORT void clave_async_watch_free(clave_async_watch *w);
/* True when it is armed at the server, or about to be. */
CLAVE_METHOD bool clave_async_watch_is_armed(const clave_async_watch *w);
/* Makes an armed watch idle, as clave_async_watch_free, but keeps the handle. */
CLAVE_METHOD void clave_async_watch_disarm(clave_async_watch *w);

typedef enum clave_watch_mode {
    CLAVE_WATCH_PERSISTENT = 0, /* the node: CREATED, CHANGED, DELETED, and CHILDREN */
    /* The node and all below it, each with CREATED, CHANGED and DELETED under its own path. */
    CLAVE_WATCH_PERSISTENT_RECURSIVE = 1,
} clave_watch_mode;

/* Arms `watch` so that it stays armed after an event, until it is disarmed or freed or gets
 * CLAVE_EVENT_LOST. The node need not exist. After a reconnect it is registered again before any
 * other request, but a change meanwhile has no event. To learn of it, read the nodes anew, as
 * clave/async/cache.h does. A server before 3.9 has one watch for a path and session: do not set
 * one-shot watches on this very path. EUNIMPLEMENTED: a server before 3.6, which hangs up as well.
 * At once: EINVAL: no watch, it is in use, or the mode. */
CLAVE_METHOD clave_err clave_async_add_watch(clave_async_client *c, const char *path,
                                             clave_watch_mode mode, clave_async_watch *watch,
                                             clave_result_cb *cb, void *arg);

/* The number of the current TCP connection of this client. Two watch events are in the server's
 * order only if they arrived on the same connection. */
CLAVE_METHOD uint64_t clave_async_client_connection(const clave_async_client *c);

#ifdef __cplusplus
}
#endif
#endif
