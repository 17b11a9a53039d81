/* web.h - HTTP's engine without I/O: requests and time in, answers out. `clave gate` and `clave
 * serve --http` drive it on a thread of their own (src/runtime), tests and the simulated world in
 * theirs. It is a client of the ZooKeeper servers like any other, and no part of libclave.
 *
 *   web.c         the engine: a request comes in, is checked, finds its route; timers; its end
 *   web_internal  what every part of it shares: struct web
 *   routes        the one table of all endpoints
 *   own_client    the ZooKeeper session of requests that have none of their own
 *   http/         a request and its answer: exchange; request: what it says; admission: whom it is
 *                 from, and whether it may; sender: what each sender may have; answer
 *   session/      HTTP sessions and what they hold
 *   observe/      src/observe fed from a cache of the tree; its events and metrics
 *   api/          the endpoints, one file a family: thin (api.h)
 *
 * A request comes as its head (_begin), its body (_take_body) and the end of that (_body_done).
 * Invariant: each exchange that _begin made is answered exactly once, and lives until _end.
 * One thread at a time; two engines share nothing. */
#ifndef CLAVE_WEB_WEB_H
#define CLAVE_WEB_WEB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/log_line.h"
#include "clave/async/client.h"

struct jansson;
struct lock_replay;
struct sender;
struct web;
struct web_access;
struct web_exchange; /* one request and its answer */

struct web_header {
    const char *name, *value;
};

/* The sender of a request, as far as the transport knows it. */
struct web_peer {
    bool is_unix, is_loopback, is_tls;
    int64_t uid;             /* of a Unix socket's client; -1: not known */
    const char *address;     /* as text, for logs and the audit */
    const char *tls_subject; /* NULL: no client certificate */
};

/* The head of a request, which stays valid until the exchange is ended. */
struct web_request {
    const char *method;
    const char *target; /* path and query as received, not decoded */
    const struct web_header *headers;
    size_t nheaders;
    int64_t
        body_length; /* as announced by Content-Length; -1: sent in chunks; 0: there is no body */
    bool must_have_host; /* HTTP/1.1 */
    struct web_peer peer;
};

enum { WEB_MAX_HEADERS = 20 };

struct web_answer {
    unsigned status;
    struct web_header headers[WEB_MAX_HEADERS]; /* values owned by the exchange */
    size_t nheaders;
    /* The whole body or, if there is `more`, its beginning. For HEAD a driver sends the length but
     * no body. */
    struct buf body;
    /* Appends the next piece to `out`, when the client has room for it. If it appends nothing and
     * leaves *done false, there is nothing to send at present: env.wake follows, or was called
     * inside already, and then it is called again in another turn. An error ends the answer where
     * it is. NULL: `body` is the whole answer. */
    clave_err (*more)(void *arg, struct buf *out, bool *done);
    void (*end)(void *arg); /* the answer was sent, or is given up; NULL: nothing to do */
    void *arg;
    int32_t sending_ms; /* how long its reader may accept nothing, in ms; 0: the driver's default */
};

/* A line of the audit: a change that was requested, and its result. Texts are valid during the
 * call. */
struct web_audit {
    const char *user; /* "" when nobody is known */
    const char *address, *method, *target;
    int64_t session;  /* that it is of; 0: none */
    const char *path; /* of the node, if the target does not name it; NULL: none */
    const char *what; /* the kind of a claim, the operations of a transaction; NULL: nothing */
    unsigned status;
    const char *reason; /* that the sender gave; NULL: none */
};

/* What the engine needs from its driver. None of these functions may call the engine. */
struct web_env {
    void *arg;
    /* Makes a client with these options, starts it and drives it. */
    clave_err (*client_open)(void *arg, const clave_client_options *o, clave_async_client **out);
    /* Frees it after the present call of the engine or of that client: the engine has abandoned it
     * (clave_async_client_abandon), so no callback comes after that call. */
    void (*client_free)(void *arg, clave_async_client *c);
    /* Requests were made on it outside its callbacks, and have to be sent. */
    void (*client_flush)(void *arg, clave_async_client *c);
    /* The answer of the exchange with this transport is ready. May be called inside _begin. */
    void (*answered)(void *arg, struct web_exchange *x, void *transport);
    /* There may be more of the body of its answer. May be called inside `more`. */
    void (*wake)(void *arg, struct web_exchange *x, void *transport);
    /* NULL: no audit. Called for every request that changes something or is refused. */
    void (*audit)(void *arg, const struct web_audit *a);
    /* Called once: the engine sees what happens to locks from this zxid on. The driver finds out
     * what happened before it and passes that to clave__web_take_replay, for which requests for
     * history wait. NULL: earlier history is not available. */
    void (*loaded)(void *arg, int64_t zxid);
};

/* A file of the page below /ui/. */
struct web_asset {
    const char *path; /* "index.html" */
    const char *type; /* "text/html; charset=utf-8" */
    const char *etag; /* with its quotes */
    const void *gzip;
    size_t len;
};

enum { WEB_MAX_BODY = 2 << 20 }; /* bytes of a body, without a limit of its own */

struct web_options {
    const struct clave_mem *mem; /* NULL: libc */
    uint64_t seed;               /* not 0 */
    struct log log;
    const struct web_env *env; /* borrowed */
    const char *hosts;         /* of the ZooKeeper servers; copied */
    const char *connect;       /* what other clients connect to; copied. NULL: hosts */
    struct clave_tls *tls;     /* for hosts with "tls:"; borrowed */
    const uint8_t
        *session_key; /* of 32 bytes: gates that share it know each other's sessions. NULL: derived
                         from the seed; only for tests, since later draws reveal it */
    bool key_is_shared; /* other gates may have the key, so what this one remembers of a session is
                           proved before it is reported */
    const struct jansson *jansson;   /* borrowed */
    const struct web_access *access; /* borrowed until another is set; NULL: see http/admission.h */
    const struct web_asset *assets;  /* borrowed */
    size_t nassets;
    int32_t session_timeout_ms; /* of the engine's own session; 0: 10000 */
    const clave_auth *auths;    /* its identities; borrowed during _new */
    size_t nauths;
    size_t max_body;            /* 0: WEB_MAX_BODY */
    size_t max_answer;          /* 0: 64 MiB */
    size_t max_sessions;        /* alive at a time; further ones are refused with 429. 0: 10000 */
    size_t max_sender_sessions; /* of one sender; 0: 4 of 5 of those */
    size_t max_connections;     /* that the driver has room for; 0: any number */
    size_t max_held; /* bytes of bodies and answers together, without small ones: an eighth is for
                        senders who may do nothing, half of the rest for one; further ones are
                        refused with 503, and with 429 those of one sender. 0: 256 MiB */
    size_t max_waiting; /* long polls and streams at a time, further ones are refused with 503; with
                           429, 4 of 5 of them of one sender. 0: 15000 */
    bool observe;       /* follows the locks of the tree from the start, so that events, history and
                           metrics are complete; false: from the first request about locks on */
    /* Paths of locks below these are labels of metrics, of at most so many locks (0: 1000); all
     * others are one "other". Borrowed. None: no path is a label. */
    const char *const *metric_paths;
    size_t nmetric_paths, max_metric_paths;
};

/* ENOMEM; EHOST, EINVAL: as clave_async_client_new. */
clave_err clave__web_new(struct web **out, const struct web_options *o);
/* From now on these tokens, hosts and roles apply, also to requests in progress: those that are no
 * longer permitted are answered 401 or 403, and their streams end. The previous access may be
 * freed. */
void clave__web_set_access(struct web *w, const struct web_access *access);
/* Like the options of these names. Requests and sessions that exceed a lower limit go on. */
void clave__web_set_max_waiting(struct web *w, size_t most);
void clave__web_set_max_sender_sessions(struct web *w, size_t most);
void clave__web_set_max_connections(struct web *w, size_t most);

/* Sets the offset of the wall clock from the engine's clock, in ms. Called after _new, and whenever
 * it has changed; times and ages in answers depend on it. */
void clave__web_set_wall(struct web *w, int64_t wall);

/* What happened to locks up to the zxid of env.loaded (observe/lock_replay.h), allocated with the
 * engine's memory hooks and owned by it from now on; NULL: unknown. Called once, after env.loaded
 * or inside it. */
void clave__web_take_replay(struct web *w, int64_t now, struct lock_replay *r);
/* What an operator asks about the server in the driver's process first. A negative figure is
 * unknown. */
enum web_figure {
    WEB_UPTIME_MS,
    WEB_SESSIONS,
    WEB_CONNECTIONS,
    WEB_REQUESTS, /* since its start */
    WEB_OUTSTANDING,
    WEB_ZNODES,
    WEB_WATCHES,
    WEB_DATA_BYTES,
    WEB_READ_MS, /* the 99th of 100, of the last minute or two; as the next two */
    WEB_WRITE_MS,
    WEB_FSYNC_US,
    WEB_FILES_BYTES, /* snapshots and logs */
    WEB_FREE_BYTES,
    WEB_DISK_BYTES,
    WEB_MEMORY_BYTES,
    WEB_SNAPSHOT_SECONDS, /* the newest: since 1970 */
    WEB_SNAPSHOT_BEHIND,  /* transactions since then */
    WEB_QUIET_MS,         /* it was restored, and grants no lock for so long */
    WEB_FIGURES
};
/* Called from time to time. Without these calls nothing is reported about the server. */
void clave__web_take_figures(struct web *w, int64_t now, const int64_t figures[WEB_FIGURES]);
/* The node with this czxid is gone, or will be soon, for this reason (enum lock_cause of
 * observe/lock_history.h), which a driver may learn from the server. What the engine knows by
 * itself takes precedence. */
void clave__web_tell_cause(struct web *w, int64_t czxid, int cause);

/* The head of a request has arrived; this decides whether the request is admitted. env.answered may
 * be called inside, after *out is set, or at any time later. If the answer comes before the end of
 * the body, the rest of the body is not wanted. ENOMEM: there is no exchange. */
clave_err clave__web_begin(struct web *w, int64_t now, const struct web_request *q, void *transport,
                           struct web_exchange **out);
/* A piece of the body, which the engine keeps. false: it has answered and wants no more of it. */
bool clave__web_take_body(struct web_exchange *x, int64_t now, const void *p, size_t n);
/* The body is complete, or there is none: executes the request, unless it was answered already. */
void clave__web_body_done(struct web_exchange *x, int64_t now);
/* True if the sender has an identity: by a token, by a certificate, as a user of the machine, or by
 * the secret of a session. A sender that is admitted only because of its address is not known. */
bool clave__web_is_known(const struct web_exchange *x);
/* Asks to keep the connection when others need room. Granted to a known sender that has fewer than
 * 4 in 5 of max_connections kept in this way; to be given back with _keep_no_more when the
 * connection is closed. NULL: not granted. */
struct sender *clave__web_keep(struct web_exchange *x);
void clave__web_keep_no_more(struct web *w, struct sender *s);
/* Valid from env.answered until _end. The driver may consume `body`, and calls `more`; it calls
 * neither `end` nor frees the body. */
struct web_answer *clave__web_exchange_answer(struct web_exchange *x);
/* The answer was sent, or the client has hung up: the driver is done with the exchange. NULL is
 * ignored. */
void clave__web_end(struct web_exchange *x, int64_t now);

/* When _tick is due, by the clock of the clients; CLAVE_NEVER: no timer is set. May change in any
 * call, and in callbacks of the clients. */
int64_t clave__web_deadline(const struct web *w);
void clave__web_tick(struct web *w, int64_t now);

/* Begins to stop. Requests that wait are answered: a claim with 202 and its place, if another gate
 * can go on with it; any other change that may have been made with 504; everything else, and every
 * later request, with 503. Sessions that a client may rely on are left alone: another gate with the
 * key may attach to them, or they expire. All other sessions are closed. */
void clave__web_close(struct web *w, int64_t now);
/* True if the servers have confirmed everything that _close has ended, or cannot. */
bool clave__web_is_closed(const struct web *w);
/* Every exchange must have been ended. NULL is ignored. */
void clave__web_free(struct web *w);

#endif
