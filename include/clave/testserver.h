/* testserver.h - a ZooKeeper server inside your test, with the faults of networks, machines and
 * time on command: what Curator's TestingServer and KillSession are for Java.
 *
 * It is the server of `clave serve`, durable, on a thread of its own. Anything that speaks the
 * protocol can be its client: sessions of this library or of others, other processes. Time and
 * faults are the server's own: neither the clients nor the machine's clock are touched, so a
 * program is tested as it is.
 *
 * Threads  any thread may call anything here but _free, one call at a time for each server;
 *          a call returns when its effect has happened. In the log callback nothing may be
 *          called: ELOOPTHREAD. SIGPIPE is blocked in the server's thread; the rest of the
 *          process is yours.
 * Errors   besides those named below: ECLOSED: the server does not run (it was stopped, or
 *          its disk failed). ELOOPTHREAD: see above. clave_test_server_errmsg has the text. */
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
    clave_log_cb *log;      /* the server's log, called from several threads; NULL: none */
    void *log_arg;
} clave_test_server_options;
#define CLAVE_TEST_SERVER_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_test_server_options)

/* ---- life --------------------------------------------------------------------------- */

/* Starts a server; it serves when this returns. On CLAVE_OK *out belongs to the caller, who frees
 * it with clave_test_server_free; on an error it is NULL, and the log callback has received the
 * reason. `o` may be NULL. EINUSE: another process uses the port or the data directory. ECORRUPT,
 * EIO, EFULL: the data directory is damaged, cannot be used, or is full. EINVAL: an option is out
 * of range. ENOMEM. ETHREAD, EFILES: the system has no thread, or no file descriptor, for it. */
CLAVE_METHOD clave_err clave_test_server_new(clave_test_server **out,
                                             const clave_test_server_options *o);
/* Stops the server like clave_test_server_kill if it is running, and removes the data directory if
 * the server created it. No thread may be in a call. NULL is ignored. */
CLAVE_EXPORT void clave_test_server_free(clave_test_server *t);

/* The address to connect to, such as "127.0.0.1:41233", for clave_client_open and any other client.
 * It never changes: the port stays reserved while the server is stopped. Valid until _free. */
CLAVE_METHOD const char *clave_test_server_connect_string(const clave_test_server *t);
/* The TCP port of 127.0.0.1. It never changes. */
CLAVE_METHOD uint16_t clave_test_server_port(const clave_test_server *t);
/* The data directory; `clave data` shows its contents. Valid until _free. */
CLAVE_METHOD const char *clave_test_server_data_dir(const clave_test_server *t);
/* Copies the text of the latest fault into buf, cut to cap bytes, and returns buf. */
CLAVE_METHOD const char *clave_test_server_errmsg(clave_test_server *t, char *buf, size_t cap);

/* Stops it cleanly: requests that it has read are made durable and answered, which may take up to a
 * second, then every connection is closed. Sessions stay in the data, and continue with their full
 * timeout when the server is started again. EIO, EFULL: the disk had failed; nothing acknowledged
 * is lost. */
CLAVE_METHOD clave_err clave_test_server_stop(clave_test_server *t);
/* Stops it as `kill -9` does: at once, whatever it is doing. Everything that was acknowledged is in
 * the data; of the rest, any part may be there. */
CLAVE_METHOD clave_err clave_test_server_kill(clave_test_server *t);
/* Starts it again, with the same port, data, faults and time. EINVAL: it is running. Otherwise as
 * _new. */
CLAVE_METHOD clave_err clave_test_server_start(clave_test_server *t);
/* clave_test_server_stop if it is running, then clave_test_server_start. */
CLAVE_METHOD clave_err clave_test_server_restart(clave_test_server *t);

/* ---- sessions and time -------------------------------------------------------------- */

/* Expires a session: its ephemeral nodes are deleted, watches on them fire, and its connection is
 * closed without a message, so its client learns about it when it reconnects. For a session of this
 * library: clave_client_id(client). EUNKNOWNSESSION: there is no such session. */
CLAVE_METHOD clave_err clave_test_server_expire(clave_test_server *t, int64_t session_id);
/* Closes the connection of a session, or, with 0, every connection. The sessions remain, and their
 * clients may reconnect at once. EUNKNOWNSESSION: there is no such session. ECONNLOSS: it has no
 * connection. */
CLAVE_METHOD clave_err clave_test_server_drop(clave_test_server *t, int64_t session_id);
/* Moves the server's clocks forward by `ms` milliseconds: every session with a shorter timeout
 * expires without anybody having to wait, and empty containers and nodes past their time to live
 * are deleted. Clients' clocks do not move: to the server a client looks as if it had been paused
 * for that long. EINVAL: ms is negative. */
CLAVE_METHOD clave_err clave_test_server_skip_time(clave_test_server *t, int64_t ms);

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
    CLAVE_TEST_EVENT, /* a watch has fired; not a request */
    CLAVE_TEST_KINDS  /* the number of kinds */
} clave_test_kind;

typedef enum clave_test_action {
    CLAVE_TEST_LOSE_REQUEST, /* the request is not executed; the connection is closed */
    CLAVE_TEST_LOSE_REPLY,  /* the request is executed and durable; the connection is closed without
                               a reply */
    CLAVE_TEST_CUT_REPLY,   /* the same, after the first `bytes` bytes of the reply */
    CLAVE_TEST_DELAY_REPLY, /* the reply is sent delay_ms later, and nothing that follows it is sent
                               earlier */
    CLAVE_TEST_SILENCE,     /* from then on nothing is sent on this connection, which stays open and
                               is read: a cut wire, a paused server. With CONNECT: accepts and does
                               not answer */
} clave_test_action;

typedef struct clave_test_fault {
    size_t size; /* CLAVE_TEST_FAULT_INIT sets it: clave/options.h */
    clave_test_action action;
    clave_test_kind kind;
    int64_t session;  /* 0: of any session. A connection belongs to a session once its connect has
                         been answered */
    unsigned after;   /* let this many messages pass first */
    unsigned times;   /* affect this many messages; 0: all until _heal */
    int64_t delay_ms; /* for DELAY_REPLY */
    size_t bytes;     /* for CUT_REPLY; a reply has at least 20 bytes, including its length (4) */
} clave_test_fault;
#define CLAVE_TEST_FAULT_INIT CLAVE_OPTIONS_INIT(clave_test_fault)

/* Injects a fault from now on; *f is copied. If several match a message, the one that was injected
 * first applies. A connection that is closed loses everything in flight on it. May be called while
 * the server is stopped. EINVAL: an unknown action or kind, LOSE_REQUEST of an EVENT, a negative
 * delay, or the size. ENOMEM. */
CLAVE_METHOD clave_err clave_test_server_inject(clave_test_server *t, const clave_test_fault *f);
/* Removes all faults; whatever they are delaying is sent now. May be called while the server is
 * stopped. */
CLAVE_METHOD clave_err clave_test_server_heal(clave_test_server *t);
/* Waits until faults have affected this many messages since _new. ETIMEDOUT: that did not happen
 * within timeout_ms (milliseconds; negative: no limit). */
CLAVE_METHOD clave_err clave_test_server_await_strikes(clave_test_server *t, uint64_t strikes,
                                                       int64_t timeout_ms);

/* ---- what the server has seen ---------------------------------------------------------------- */

typedef struct clave_test_stats {
    size_t size; /* CLAVE_TEST_STATS_INIT sets it, and the call keeps it: a shorter struct is filled
                    as far as it goes; in a longer one the fields that the library does not know are
                    set to 0 */
    /* Since _new, restarts included. [ANY] counts all requests, [EVENT] the events that were due to
     * be sent. */
    uint64_t requests[CLAVE_TEST_KINDS];
    uint64_t strikes; /* messages affected by a fault */
    /* At this moment; 0 while the server is stopped. */
    size_t connections;
    size_t sessions;
    size_t watches;
    size_t ephemerals;
    size_t nodes;
    int64_t zxid; /* of the newest transaction */
} clave_test_stats;
#define CLAVE_TEST_STATS_INIT CLAVE_OPTIONS_INIT(clave_test_stats)

/* Fills *out. May be called while the server is stopped. EINVAL: the size (clave/options.h). */
CLAVE_METHOD clave_err clave_test_server_stats(clave_test_server *t, clave_test_stats *out);

#ifdef __cplusplus
}
#endif
#endif
