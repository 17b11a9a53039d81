/* server_run.h - the server's driver: sockets, threads, disk, clock and signals around the engine
 * of server/server.h.
 *
 * Map of src/runtime/server:
 *   server_run      starts a server and frees it: directory, addresses, threads, open files
 *   server_loop     its connections, the turns of its loop, its disk, changed settings, its end
 *   address_limit   how many one address may have
 *   fair_reading    how much a turn reads of each
 *   server_figures  what conf, the admin commands and the metrics show of disk and process
 *   admin           pages over HTTP, on src/runtime/http
 *   audit_log       writes the audit log, on a thread of its own */
#ifndef CLAVE_RUNTIME_SERVER_SERVER_RUN_H
#define CLAVE_RUNTIME_SERVER_SERVER_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clave/err.h"
#include "runtime/start_error.h"
#include "runtime/tls/tls_context.h"
#include "server/server.h"

struct server_run; /* opaque: one process, one data directory */

enum { ADMIN_URL_CAP = 128 };
#define ADMIN_COMMANDS "/commands" /* the default */
enum { SERVER_PER_ADDRESS = 60 };

struct server_run_options {
    const char *data_dir; /* created if it is missing */
    /* "host:port", "[v6]:port", "*:port" or "unix:/path?mode=0660&group=NAME"; port 0: any free
     * one; with "tls:" in front of a TCP address: TLS */
    const char *const *listen;
    size_t nlisten;
    /* "unix:/path" for the gate in this process, whose clients have no uid and are exempt from
     * --require-auth. Not among the addresses of _address. NULL: none */
    const char *gate;
    const char *admin;     /* an address for HTTP, with commands and metrics; NULL: none */
    const char *metrics;   /* the same for the metrics only */
    const char *audit;     /* the file of the audit log; "-": standard output; NULL: none */
    const char *admin_url; /* the path of the commands in URLs; NULL: ADMIN_COMMANDS */
    /* Further names of this machine, separated by commas, under which the commands may be
     * requested; NULL: none. Must stay valid until the next _change */
    const char *admin_hosts;
    const struct tls_server_options *tls; /* for the addresses with "tls:"; NULL: there are none */
    struct server_options engine;         /* mem and seed may be zero; the log is used for both */
    int64_t idle_exit_ms;                 /* stop after this long without a connection; 0: never */
    /* connections from one address; 0: SERVER_PER_ADDRESS, negative: no limit. Unix sockets are not
     * counted */
    int max_per_address;
    int max_sessionless; /* of these, without a session; 0: no limit */
    bool signals;        /* SIGTERM and SIGINT stop the server, a second one at once */
    /* Called on the loop's thread at this interval while the loop turns (0: not), and when it
     * begins to stop. */
    int64_t notify_ms;
    void (*notify)(void *arg, bool stopping);
    void *notify_arg;
    /* Called on the loop's thread every 2 s with the server's health; may be NULL */
    void (*measured)(void *arg, const struct server_health *health);
    void *measured_arg;
    /* Called on the loop's thread when SIGHUP has come, if `signals` is set. The audit log has been
     * opened again by its name, and the TLS files have been read again. If they could not be read,
     * the log says why and `tls_renewed` is false, as it is without TLS. May be NULL. */
    void (*hangup)(void *arg, bool tls_renewed);
    void *hangup_arg;
};

/* Locks the data directory, recovers and listens. Clients that connect from now on, over HTTP too,
 * are served by _loop. `fault` (cap bytes) says what is wrong and what to do: EINUSE (directory or
 * address), ECORRUPT, EFULL, EIO, EINVAL, ENOMEM. */
clave_err clave__server_run_new(struct server_run **out, const struct server_run_options *o,
                                char *fault, size_t cap);
/* Checks what _new would, as far as that is possible beside a running server: the addresses and the
 * TLS files, but neither the ports nor the data directory. Errors and faults as _new. */
clave_err clave__server_run_check(const struct server_run_options *o, char *fault, size_t cap);
/* Serves until stopped, on the calling thread and a second one that take turns. CLAVE_OK: it was
 * stopped, and everything that was accepted is on the disk. EFULL, EIO: the disk failed; nothing
 * that was acknowledged is lost, and nothing has been acknowledged since. */
clave_err clave__server_run_loop(struct server_run *r, char *fault, size_t cap);
/* On the loop's thread: like clave__server_change; also sets max_per_address, idle_exit_ms and
 * admin_hosts. Existing connections stay. ENOMEM. */
clave_err clave__server_run_change(struct server_run *r, const struct server_run_options *o);
/* May be called on any thread, while _loop runs or before. */
void clave__server_run_stop(struct server_run *r);
/* Must not be called while _loop runs. NULL is ignored. */
void clave__server_run_free(struct server_run *r);

/* The i-th address as it was bound ("127.0.0.1:41233", "unix:/path"); NULL after the last. */
const char *clave__server_run_address(const struct server_run *r, size_t i);
/* The HTTP addresses as they were bound; NULL: there are none. Not after _loop. */
const char *clave__server_run_admin(const struct server_run *r);
const char *clave__server_run_metrics(const struct server_run *r);
/* The engine's statistics; call it on the loop's thread, or while _loop does not run. */
void clave__server_run_stats(const struct server_run *r, struct server_stats *out);

/* ---- the limit of open files ----------------------------------------------------------------- */

/* Raises the soft limit of open files: each connection is an open file, and that limit exists for
 * the sake of programs that use select(). */
void clave__open_files_raise_limit(void);

#endif
