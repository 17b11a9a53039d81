/* client_internal.h - the ZooKeeper client as an engine without I/O: bytes in, bytes out,
 * time in. The asynchronous API on your own loop and the blocking API (client.h)
 * are thin over it.
 *
 * Times      int64_t milliseconds of a clock that never steps and goes on while the
 *            machine sleeps (CLOCK_BOOTTIME), supplied by the caller.
 * Paths      NUL-terminated UTF-8, relative to the chroot of the host list.
 * Threads    one client belongs to one thread at a time; two clients share nothing.
 * Callbacks  run inside _start, _input, _tick, _connected, _disconnected, _close, _abandon
 *            and _free, one at a time, after the engine is consistent; never inside the
 *            call that started the request. They may call anything on their client but
 *            _free and the transport's calls; a _tick notes the time there and no more.
 *            What a result points to is valid for the callback only. */
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

/* Connection states, in the order and with the meaning of Curator's:
 * CONNECTED once; then SUSPENDED, RECONNECTED / SUSPENDED, LOST, RECONNECTED.
 * LOST is raised by the client's own clock, before the server can have given the
 * session's nodes away; a new session follows by itself. */
typedef enum clave_state {
    CLAVE_STATE_LATENT, /* not started, or never connected yet */
    CLAVE_STATE_CONNECTED,
    CLAVE_STATE_SUSPENDED,
    CLAVE_STATE_RECONNECTED,
    CLAVE_STATE_LOST,
    CLAVE_STATE_READ_ONLY,
    CLAVE_STATE_CLOSED,
} clave_state;

/* "SUSPENDED". Static. */
CLAVE_EXPORT const char *clave_state_name(clave_state state);

/* `why`: CLAVE_OK, or what caused SUSPENDED or LOST (ECONNLOSS, EEXPIRED, EREPLACED,
 * ETIMEDOUT, EPROTO, EAUTHFAILED, ETOOBIG, ENOTREADONLY, ENOMEM; or the server's own error, when it
 * refused to set the session's watches again). */
typedef void clave_state_cb(clave_async_client *c, clave_state state, clave_err why, void *arg);

typedef struct clave_client_options {
    size_t size;                /* CLAVE_CLIENT_OPTIONS_INIT sets it: clave/options.h */
    const char *hosts;          /* "h1:2181,h2,[::1]:2183/chroot", "unix:/path"; copied. With TLS:
                                   "tls:h1:2281,h2/chroot", see clave/tls.h */
    int32_t session_timeout_ms; /* asked for; 0: 10000 */
    int32_t margin_ms;          /* taken off the hold deadline; 0: an eighth of the timeout;
                                   at most half of what the server grants */
    int32_t relay_interval_ms;  /* design: half a tick of the ensemble; 0: a quarter of the
                                   session timeout; a standalone server needs none.
                                   With the margin less than the session timeout */
    uint64_t seed;              /* host order, back-off jitter, protected names. Not 0; another
                                   one in each process: clave_random_seed() of uv.h, or
                                   getrandom(). clave_client_open draws it when it is 0 */
    bool read_only;             /* accept a server that is read-only */
    bool keep_order;            /* do not shuffle the hosts */
    size_t max_frame;           /* 0: 1048575, as the server's jute.maxbuffer */
    clave_retry reconnect;      /* back-off between attempts; zeros: bounded exponential,
                                   for ever, 50 ms to 2 s, and to a quarter of the time
                                   that the session has left */
    clave_retry reads;          /* reads whose answer was lost are sent again by this
                                   policy; zeros: 3 times */
    int64_t resume_session_id;  /* attach to this session; 0: begin a new one */
    uint8_t resume_passwd[16];
    const clave_mem *mem;     /* copied; NULL: libc */
    clave_state_cb *state_cb; /* may be NULL */
    void *state_arg;
    clave_log_cb *log; /* may be NULL */
    void *log_arg;
    struct clave_tls *tls; /* for hosts with "tls:", in uv.h and client.h, which keep it; NULL:
                              that of the environment */
} clave_client_options;
#define CLAVE_CLIENT_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_client_options)

/* ---- life --------------------------------------------------------------------- */

/* On CLAVE_OK *out belongs to the caller, who must clave_async_client_free() it.
 * EHOST: the host list cannot be understood (clave_async_client_host_fault says why).
 * EINVAL: an option out of range, a seed of 0 among them (clave_async_client_options_fault says
 * which; a line of the log too). ENOMEM. On error *out is NULL. */
CLAVE_EXPORT clave_err clave_async_client_new(clave_async_client **out,
                                              const clave_client_options *o);

/* Why a host list is refused, or NULL when it is fine; static text. */
CLAVE_EXPORT const char *clave_async_client_host_fault(const char *hosts);

/* Which option clave_async_client_new refuses with EINVAL, and why; NULL when it takes them all
 * (the host list has a function of its own). Static text; any thread. */
CLAVE_EXPORT const char *clave_async_client_options_fault(const clave_client_options *o);

/* Another list of the same servers, or of those that have their data now (Curator's
 * EnsembleProvider): the session goes on. The connection stays when its host is in the list; else
 * it is given up, and one of the new ones is tried at once: _wants says HANGUP when this returns,
 * and SUSPENDED is told later, as every callback is. At any time, from callbacks too. EHOST;
 * EINVAL: another chroot, or TLS where there was none; ENOMEM. */
CLAVE_EXPORT clave_err clave_async_client_set_hosts(clave_async_client *c, const char *hosts,
                                                    int64_t now);

/* Completes whatever is pending with ECLOSED, then frees. NULL is ignored. Does not
 * end the session at the server: use _close first for that. Watches, mutexes, read-write locks,
 * multilocks, semaphores, latches, leader watches, onces and delays that were made on it may be
 * freed before or after it: after it they hold nothing, no callback comes any more, what can be
 * asked for is refused with ECLOSED (EINVAL of a latch, which is closed; ELOST where a lost hold is
 * given back), and their _free frees. They stay on the client's thread, and keep its memory, and
 * the need of its memory hooks, until the last of them is freed. */
CLAVE_EXPORT void clave_async_client_free(clave_async_client *c);

/* Begins dialling. */
CLAVE_EXPORT void clave_async_client_start(clave_async_client *c, int64_t now);

/* Ends the session: requests in the pipeline are sent and answered first (FIFO), then
 * closeSession, then the state is CLOSED. When not connected, or refused by the server (a
 * read-only one ends no session), it goes on trying until the session must have expired by
 * itself. New requests fail with ECLOSED. */
CLAVE_EXPORT void clave_async_client_close(clave_async_client *c, int64_t now);

/* Drops the connection and the session's future without a word to the server: state
 * CLOSED at once, the server expires the session. For tests and hand-over. */
CLAVE_EXPORT void clave_async_client_abandon(clave_async_client *c, int64_t now);

/* ---- transport: call one of these, then obey _wants ----------------------------- */

enum {
    CLAVE_WANT_DIAL =
        1, /* connect to clave_async_client_target, then _connected or _disconnected */
    CLAVE_WANT_READ = 2,
    CLAVE_WANT_WRITE = 4,  /* _output has bytes */
    CLAVE_WANT_HANGUP = 8, /* close the transport, then call _disconnected */
};
CLAVE_EXPORT unsigned clave_async_client_wants(const clave_async_client *c);

typedef struct clave_target {
    const char *host; /* name, address without brackets, or the path of a Unix socket */
    uint16_t port;    /* 0: `host` is the path of a Unix socket */
    unsigned attempt; /* counts up: when the name has n addresses, take number attempt mod n */
    bool tls;         /* not a byte without TLS, of a server that has proved to be this host */
} clave_target;
/* Where to dial; valid until the next call on c. */
CLAVE_EXPORT clave_target clave_async_client_target(const clave_async_client *c);

CLAVE_EXPORT void clave_async_client_connected(clave_async_client *c, int64_t now);
/* The dial failed, the peer hung up, or a hang-up that was wanted is done. */
CLAVE_EXPORT void clave_async_client_disconnected(clave_async_client *c, int64_t now);
CLAVE_EXPORT void clave_async_client_input(clave_async_client *c, int64_t now, const void *p,
                                           size_t n);
/* Points *p at bytes to send, valid until the next call on c; returns how many. */
CLAVE_EXPORT size_t clave_async_client_output(clave_async_client *c, const void **p);
/* The transport has taken the first n of them. Call it before any other call: what was not
 * told of counts as never sent, and a write that was never sent is sent again. */
CLAVE_EXPORT void clave_async_client_sent(clave_async_client *c, int64_t now, size_t n);
/* Timers. Call it when clave_async_client_deadline has come, and before user code that uses
 * the client after a wait, so that its `now` is fresh. */
CLAVE_EXPORT void clave_async_client_tick(clave_async_client *c, int64_t now);
CLAVE_EXPORT int64_t
clave_async_client_deadline(const clave_async_client *c); /* CLAVE_NEVER: none */

/* ---- what is known --------------------------------------------------------------- */

CLAVE_EXPORT clave_state clave_async_client_state(const clave_async_client *c);
CLAVE_EXPORT bool clave_async_client_is_connected(const clave_async_client *c);
CLAVE_EXPORT int64_t clave_async_client_session_id(const clave_async_client *c); /* 0: none */
/* The 16 bytes that prove the session, for clave_client_options.resume_passwd. */
CLAVE_EXPORT const uint8_t *clave_async_client_session_passwd(const clave_async_client *c);
CLAVE_EXPORT int32_t
clave_async_client_session_timeout(const clave_async_client *c); /* negotiated, ms */
/* The moment until which nobody else can own what this session holds, judged from
 * answers that passed the leader (design: the hold deadline). INT64_MIN: no session, or its
 * end was asked for. */
CLAVE_EXPORT int64_t clave_async_client_hold_deadline(const clave_async_client *c);
/* The text of the newest fault: what was tried, on what, what to do. Never NULL; valid
 * until the next call on c. */
CLAVE_EXPORT const char *clave_async_client_errmsg(const clave_async_client *c);
/* Requests sent since the start, by wire opcode (0..127); for tests and metrics. */
CLAVE_EXPORT uint64_t clave_async_client_requests_sent(const clave_async_client *c, int op);
/* Watch events received since the start; likewise. */
CLAVE_EXPORT uint64_t clave_async_client_events_received(const clave_async_client *c);

/* ---- requests ---------------------------------------------------------------------
 * A call that returns CLAVE_OK runs `cb` exactly once, later; otherwise never. Requests
 * may be submitted in any state but CLOSED: they wait for the connection, and fail with
 * ENOTSENT when the session is lost before they were sent. A write whose answer was lost
 * completes with ECONNLOSS and is never sent twice.
 * Each call: EPATH (clave_async_client_errmsg says what is wrong), ETOOBIG, ENOMEM, ECLOSED. */

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
    const char *path;       /* create */
    const clave_stat *stat; /* create, set; NULL when the server sent none */
} clave_op_result;

typedef struct clave_result {
    clave_err err;
    int64_t zxid;     /* of the reply; 0 when there was none */
    const char *path; /* create: the final path. Others: the path asked for */
    const void *data; /* get: the bytes; NULL when the node's data is null */
    size_t len;
    const clave_stat *stat;   /* NULL when the reply has none */
    const char *const *names; /* children: NUL-terminated names */
    size_t nnames;
    const clave_acl *acls;
    size_t nacls;
    const clave_op_result *ops; /* multi */
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
    /* Missing ancestors are created as containers (persistent nodes where the server
     * has none), as Curator's creatingParentContainersIfNeeded. */
    CLAVE_CREATE_PARENTS = 1,
    /* The name gets Curator's prefix _c_<uuid>-. When the answer is lost, the parent is
     * searched for it after the reconnect, so that the outcome becomes known: found and
     * of this session: success; of the older session that the create was sent in: deleted,
     * never adopted; missing: created again. An ephemeral node of any other session is not
     * touched, whatever its name. See clave_create_options.with_names. */
    CLAVE_CREATE_PROTECTED = 2,
    /* The same for ephemeral nodes whose names have to stay as they are: when the answer is
     * lost, the node is looked for among those of the present session by its czxid, which lies
     * between what was answered before the create was sent and the creates sent after it. So
     * other creates of the session in the same place and with the same name have to be CERTAIN as
     * well. EINVAL: not ephemeral, or protected. */
    CLAVE_CREATE_CERTAIN = 4,
};

typedef struct clave_create_options {
    size_t size; /* CLAVE_CREATE_OPTIONS_INIT sets it: clave/options.h */
    clave_create_mode mode;
    unsigned flags;        /* CLAVE_CREATE_* */
    int64_t ttl_ms;        /* TTL modes only */
    const clave_acl *acls; /* NULL: world:anyone:ALL */
    size_t nacls;
    bool with_names; /* list the parent in the same flight, right behind the create: the
                        result carries names; if only the listing failed, names is NULL and
                        err is still CLAVE_OK */
} clave_create_options;
#define CLAVE_CREATE_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_create_options)

/* Creates a node; res.path is its final path, res.stat its Stat. `o` may be NULL:
 * persistent, open ACL. ENONODE no parent; ENODEEXISTS; ENOAUTH; EINVALIDACL; ENOCHILDREN. */
CLAVE_EXPORT clave_err clave_async_create(clave_async_client *c, const char *path, const void *data,
                                          size_t len, const clave_create_options *o,
                                          clave_result_cb *cb, void *arg);
/* `version` -1: any. ENONODE, EBADVERSION, ENOTEMPTY, ENOAUTH. */
CLAVE_EXPORT clave_err clave_async_delete(clave_async_client *c, const char *path, int32_t version,
                                          clave_result_cb *cb, void *arg);
/* Deletes an ephemeral node of the present session, trying again after every lost answer
 * until it is certainly gone (ENONODE counts as done) or the session has ended. `cb` may
 * be NULL. Curator: guaranteed delete. */
CLAVE_EXPORT clave_err clave_async_delete_guaranteed(clave_async_client *c, const char *path,
                                                     clave_result_cb *cb, void *arg);
/* `watch` may be NULL in each of these. EINVAL: it is in use, or its event is still to be
 * told. exists: also armed when the node is missing. */
CLAVE_EXPORT clave_err clave_async_exists(clave_async_client *c, const char *path,
                                          clave_async_watch *watch, clave_result_cb *cb, void *arg);
CLAVE_EXPORT clave_err clave_async_get(clave_async_client *c, const char *path,
                                       clave_async_watch *watch, clave_result_cb *cb, void *arg);
CLAVE_EXPORT clave_err clave_async_children(clave_async_client *c, const char *path,
                                            clave_async_watch *watch, clave_result_cb *cb,
                                            void *arg);
CLAVE_EXPORT clave_err clave_async_set(clave_async_client *c, const char *path, const void *data,
                                       size_t len, int32_t version, clave_result_cb *cb, void *arg);
CLAVE_EXPORT clave_err clave_async_get_acl(clave_async_client *c, const char *path,
                                           clave_result_cb *cb, void *arg);
CLAVE_EXPORT clave_err clave_async_set_acl(clave_async_client *c, const char *path,
                                           const clave_acl *acls, size_t nacls, int32_t version,
                                           clave_result_cb *cb, void *arg);
/* Answered after everything the leader had committed before it. */
CLAVE_EXPORT clave_err clave_async_sync(clave_async_client *c, const char *path,
                                        clave_result_cb *cb, void *arg);
/* Sent on this and on every later connection. `scheme` "digest", `auth` "user:password". */
CLAVE_EXPORT clave_err clave_async_add_auth(clave_async_client *c, const char *scheme,
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
    const void *data; /* create, set */
    size_t len;
    int32_t version;        /* delete, set, check; -1: any */
    clave_create_mode mode; /* create: PERSISTENT .. EPHEMERAL_SEQUENTIAL */
    const clave_acl *acls;  /* create; NULL: open */
    size_t nacls;
} clave_op;
/* All or nothing. res.err is the error of the first op that failed; res.ops has each. */
CLAVE_EXPORT clave_err clave_async_multi(clave_async_client *c, const clave_op *ops, size_t nops,
                                         clave_result_cb *cb, void *arg);

/* ---- watches ------------------------------------------------------------------------ */

typedef enum clave_event_type {
    CLAVE_EVENT_CREATED = 1,
    CLAVE_EVENT_DELETED = 2,
    CLAVE_EVENT_CHANGED = 3,
    CLAVE_EVENT_CHILDREN = 4,
    CLAVE_EVENT_LOST = 100, /* the session ended: the watch is gone */
} clave_event_type;

typedef struct clave_event {
    clave_event_type type;
    const char *path;
    uint64_t connection; /* the connection it arrived on, see clave_async_client_connection */
} clave_event;
typedef void clave_watch_cb(clave_async_client *c, clave_async_watch *w, const clave_event *ev,
                            void *arg);

/* A one-shot watch: give it to one request; after its event it may be used again. It
 * survives reconnects (re-registered by setWatches; a server that refuses that is left, with a
 * fault in clave_async_client_errmsg, for the next one). A request that fails leaves it
 * idle, without an event. */
CLAVE_EXPORT clave_err clave_async_watch_new(clave_async_watch **out, clave_async_client *c,
                                             clave_watch_cb *cb, void *arg);
/* No callback after this. The server is told when nobody else watches the path. */
CLAVE_EXPORT void clave_async_watch_free(clave_async_watch *w);
/* Armed at the server, or about to be. */
CLAVE_EXPORT bool clave_async_watch_is_armed(const clave_async_watch *w);
/* Makes an armed watch idle, as _free but keeping the handle. */
CLAVE_EXPORT void clave_async_watch_disarm(clave_async_watch *w);

/* Counts TCP connections of this client; order between two watch events is the
 * server's only while it has not changed. */
CLAVE_EXPORT uint64_t clave_async_client_connection(const clave_async_client *c);

#ifdef __cplusplus
}
#endif
#endif
