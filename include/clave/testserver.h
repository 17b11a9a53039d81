/* testserver.h - a ZooKeeper server inside your test, and what a network, a machine and time can
 * do to your program, on command. What Curator's TestingServer and KillSession are for Java.
 *
 * It is the server of `clave serve`, durable, on a thread of its own; its clients are whatever
 * speaks the protocol: sessions of this library, of others, other processes. Time and faults are
 * its own: neither the clients nor the machine's clock are touched, so that a program is tested
 * as it is.
 *
 * Threads  any thread may call anything here but _free, one call of a server after the other; each
 *          returns when it has happened. In the log callback nothing may be called: ELOOPTHREAD.
 *          SIGPIPE is blocked in the server's thread; the rest of the process is yours.
 * Errors   beside those that are named: ECLOSED, the server does not run (it was stopped, or its
 *          disk failed); ELOOPTHREAD, as above. clave_test_server_errmsg has the text. */
#ifndef CLAVE_TESTSERVER_H
#define CLAVE_TESTSERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clave/err.h"
#include "clave/mem.h"
#include "clave/options.h"
#include "clave/version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_test_server clave_test_server; /* opaque */

typedef struct clave_test_server_options {
    size_t size;            /* CLAVE_TEST_SERVER_OPTIONS_INIT sets it: clave/options.h */
    const char *data_dir;   /* kept, and created when missing; NULL: a new directory below $TMPDIR,
                               or /tmp, removed by _free */
    uint16_t port;          /* of 127.0.0.1; 0: any that is free */
    int32_t tick_ms;        /* the unit of session timeouts; 0: 100 */
    int32_t min_session_ms; /* what sessions may ask for; 0: two ticks */
    int32_t max_session_ms; /* 0: 60000 */
    bool extended_types;    /* nodes with a time to live may be made */
    clave_log_cb *log;      /* the server's log, from several threads; NULL: none */
    void *log_arg;
} clave_test_server_options;
#define CLAVE_TEST_SERVER_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_test_server_options)

/* ---- life --------------------------------------------------------------------------- */

/* Starts it; it serves when this returns. `o` may be NULL. EINUSE: the port or the data directory
 * is another's. ECORRUPT, EIO, EFULL: the data directory cannot be used. EINVAL: an option.
 * ENOMEM. On an error *out is NULL, and the log callback was told why. */
CLAVE_EXPORT clave_err clave_test_server_new(clave_test_server **out,
                                             const clave_test_server_options *o);
/* Stops it as _kill does when it runs, and removes the directory if it made it. Nobody may be in
 * a call. NULL is ignored. */
CLAVE_EXPORT void clave_test_server_free(clave_test_server *t);

/* "127.0.0.1:41233", for clave_client_open and every other client. The same for its whole life:
 * the port stays its own while it is stopped. Valid until _free. Any thread. */
CLAVE_EXPORT const char *clave_test_server_connect_string(const clave_test_server *t);
CLAVE_EXPORT uint16_t clave_test_server_port(const clave_test_server *t);
/* The data directory; `clave data` shows what is in it. Valid until _free. */
CLAVE_EXPORT const char *clave_test_server_data_dir(const clave_test_server *t);
/* Copies the newest fault's text into buf (cut to cap) and returns buf. */
CLAVE_EXPORT const char *clave_test_server_errmsg(clave_test_server *t, char *buf, size_t cap);

/* Ends it well: what it has read is made durable and answered, for a second at most, then every
 * connection is closed. Sessions live on in the data, and go on with their full timeout when it
 * is started again. EIO, EFULL: the disk had failed; nothing acknowledged is lost. */
CLAVE_EXPORT clave_err clave_test_server_stop(clave_test_server *t);
/* Ends it as `kill -9` does: at once, in the middle of whatever it does. What was acknowledged is
 * in the data, and of the rest anything may be. */
CLAVE_EXPORT clave_err clave_test_server_kill(clave_test_server *t);
/* Starts it again, with the same port, data, faults and time. EINVAL: it runs. Else as _new. */
CLAVE_EXPORT clave_err clave_test_server_start(clave_test_server *t);
/* _stop if it runs, then _start. */
CLAVE_EXPORT clave_err clave_test_server_restart(clave_test_server *t);

/* ---- sessions and time -------------------------------------------------------------- */

/* Ends a session as if its time were over: its ephemeral nodes go, watches on them fire, and its
 * connection is closed without a word. Its client hears of it when it comes back. For a session of
 * this library: clave_client_id(session). EUNKNOWNSESSION. */
CLAVE_EXPORT clave_err clave_test_server_expire(clave_test_server *t, int64_t session_id);
/* Closes the connection of a session, or, with 0, every connection; the sessions live on, and
 * their clients may come back at once. EUNKNOWNSESSION; ECONNLOSS: it has no connection. */
CLAVE_EXPORT clave_err clave_test_server_drop(clave_test_server *t, int64_t session_id);
/* The server's clocks leap ahead: every session that asked for less expires without anybody having
 * waited, empty containers and nodes whose time to live is over go. Clients' clocks do not leap:
 * theirs is the part of a client that was paused for so long. EINVAL: ms is negative. */
CLAVE_EXPORT clave_err clave_test_server_skip_time(clave_test_server *t, int64_t ms);

/* ---- faults ------------------------------------------------------------------------- */

/* What a message is about: a request with its reply, or an event. */
typedef enum clave_test_kind {
    CLAVE_TEST_ANY, /* everything, pings and events included */
    CLAVE_TEST_CONNECT,
    CLAVE_TEST_CREATE, /* of every mode */
    CLAVE_TEST_DELETE,
    CLAVE_TEST_EXISTS,
    CLAVE_TEST_GET,
    CLAVE_TEST_SET,
    CLAVE_TEST_CHILDREN,
    CLAVE_TEST_MULTI,
    CLAVE_TEST_SYNC,
    CLAVE_TEST_WATCHES, /* adding, removing and re-establishing them */
    CLAVE_TEST_PING,
    CLAVE_TEST_CLOSE, /* of the session */
    CLAVE_TEST_OTHER,
    CLAVE_TEST_EVENT, /* a watch has fired: no request */
    CLAVE_TEST_KINDS  /* how many there are */
} clave_test_kind;

typedef enum clave_test_action {
    CLAVE_TEST_LOSE_REQUEST, /* not done; the connection is closed */
    CLAVE_TEST_LOSE_REPLY,   /* done, and durable; the connection is closed without its reply */
    CLAVE_TEST_CUT_REPLY,    /* the same, behind the first `bytes` bytes of the reply */
    CLAVE_TEST_DELAY_REPLY,  /* it leaves delay_ms later, and what follows not before it */
    CLAVE_TEST_SILENCE,      /* from it on nothing leaves the server on this connection, which stays
                                open and is read: a cut wire, a paused server. With CONNECT: accepts
                                and does not answer */
} clave_test_action;

typedef struct clave_test_fault {
    size_t size; /* CLAVE_TEST_FAULT_INIT sets it: clave/options.h */
    clave_test_action action;
    clave_test_kind kind;
    int64_t session;  /* 0: of any session. A connection is a session's from the reply to its
                         connect on */
    unsigned after;   /* lets so many pass first */
    unsigned times;   /* strikes so many; 0: until _heal */
    int64_t delay_ms; /* DELAY_REPLY */
    size_t bytes;     /* CUT_REPLY; a reply has 20 at least, its length (4) included */
} clave_test_fault;
#define CLAVE_TEST_FAULT_INIT CLAVE_OPTIONS_INIT(clave_test_fault)

/* From now on; of several that fit a message the one that was injected first strikes. A connection
 * that is closed loses everything that was under way on it. EINVAL: an action or kind that there
 * is not, LOSE_REQUEST of an EVENT, a negative delay. ENOMEM. Also while the server does not run.
 */
CLAVE_EXPORT clave_err clave_test_server_inject(clave_test_server *t, const clave_test_fault *f);
/* Takes all faults back; what they hold up leaves now. Also while the server does not run. */
CLAVE_EXPORT clave_err clave_test_server_heal(clave_test_server *t);
/* Waits until faults have struck so many messages since _new. ETIMEDOUT: not within the time
 * (negative: for ever). */
CLAVE_EXPORT clave_err clave_test_server_await_strikes(clave_test_server *t, uint64_t strikes,
                                                       int64_t timeout_ms);

/* ---- what it has seen --------------------------------------------------------------- */

typedef struct clave_test_stats {
    size_t size; /* CLAVE_TEST_STATS_INIT sets it, and it stays: a shorter one is filled as far as
                    it goes, what a longer one has more is 0 */
    /* Since _new, restarts included. [ANY]: all requests; [EVENT]: events that were to be sent. */
    uint64_t requests[CLAVE_TEST_KINDS];
    uint64_t strikes; /* messages that a fault has struck */
    /* Of this moment; 0 while it does not run. */
    size_t connections;
    size_t sessions;
    size_t watches;
    size_t ephemerals;
    size_t nodes;
    int64_t zxid; /* of the newest transaction */
} clave_test_stats;
#define CLAVE_TEST_STATS_INIT CLAVE_OPTIONS_INIT(clave_test_stats)

/* Also while the server does not run. EINVAL: the size (clave/options.h). */
CLAVE_EXPORT clave_err clave_test_server_stats(clave_test_server *t, clave_test_stats *out);

#ifdef __cplusplus
}
#endif
#endif
