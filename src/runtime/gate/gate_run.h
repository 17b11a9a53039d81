/* gate_run.h - a running gate: the engine of src/web on a loop of its own, with its HTTP addresses
 * and its ZooKeeper clients. For `clave gate` on the main thread, for `clave serve --http` on a
 * thread beside the server's, so that HTTP never delays the protocol.
 *
 * Map of src/runtime/gate:
 *   gate_run           the loop, its start and its end; limits, HTTP, the engine, changed settings
 *   gate_clients       the clients that the engine asks for
 *   gate_access_file   the file of tokens, and the gate's names
 *   gate_key           the file of the key that seals the secrets of sessions
 *   secret_file        whether others can read a file with secrets
 *   gate_audit         the file of who changed what
 *   gate_replay        what happened to the locks earlier, from the server's logs
 *   gate_jansson       the library that parses bodies
 * The verb is src/cmd/serve/gate.c. */
#ifndef CLAVE_RUNTIME_GATE_GATE_RUN_H
#define CLAVE_RUNTIME_GATE_GATE_RUN_H

#include <uv.h>

#include "runtime/gate/gate_access_file.h"
#include "runtime/start_error.h"
#include "runtime/tls/tls_context.h"
#include "server/server.h"
#include "web/web.h"

struct gate; /* opaque */

enum { GATE_MAX_ADDRESSES = 16 };

/* The default number of connections, and the largest that can be set. */
enum { GATE_CONNECTIONS = 20000, GATE_MOST_CONNECTIONS = 1000000 };

/* Settings that may change while it runs. */
struct gate_limits {
    /* 0: as many as the limit of open files allows, up to GATE_CONNECTIONS. */
    size_t max_connections;
    size_t max_waiting;         /* 0: three quarters of the connections */
    size_t max_sender_sessions; /* 0: as gate_default_sender_sessions says */
};

struct gate_options {
    const char *hosts;     /* of the ZooKeeper servers */
    const char *connect;   /* what other clients should connect to; NULL: hosts */
    struct clave_tls *tls; /* for hosts with "tls:"; NULL: as the environment says */
    /* For the gate's own session, not for its clients; used by _new only. */
    const clave_auth *auths;
    size_t nauths;
    int32_t session_timeout_ms; /* for that session; 0: 10000 */
    const char *const *http;    /* addresses, as clave__listen takes them */
    size_t nhttp;
    struct tls_server_options http_tls; /* for those with "tls:" */
    struct log log;                     /* called on the gate's thread */
    struct gate_access *access;         /* belongs to the gate if _new succeeds */
    struct gate_limits limits;
    size_t max_body;  /* 0: WEB_MAX_BODY */
    bool in_server;   /* it is in a server, which has the same limit of files: HTTP takes at most a
                         quarter of them */
    int64_t grace_ms; /* how long sessions have to end when the gate stops */
    const char *metric_paths; /* "/a,/b": used as labels of metrics; NULL: none */
    const char *audit;        /* a file; "-": standard output; NULL: none */
    const char *data_dir; /* of the server that the gate is in, to find out what happened before;
                             NULL: none */
    const char *key;      /* a file, see gate_key.h; NULL: a key is drawn for this gate alone */
};

/* Checks whether _new could be called with these options beside a running gate. Faults as _new. */
clave_err gate_check(const struct gate_options *o, const struct fault *f);
/* Binds the addresses. EINUSE, EINVAL, EIO (the library for HTTP or jansson is not installed),
 * EHOST, ENOMEM; ETHREAD, EFILES: the system has no thread, or too few files, for it. */
clave_err gate_new(struct gate **out, const struct gate_options *o, const struct fault *f);
/* For timers and signals of the owner, who must close them after _run. */
uv_loop_t *gate_loop(struct gate *g);
/* The i-th address as it was bound; NULL after the last. */
const char *gate_address(const struct gate *g, size_t i);
/* Serves on the calling thread until gate_stop is called. */
void gate_run(struct gate *g);
/* Any thread. Requests that are waiting get their answers; see clave__web_close. */
void gate_stop(struct gate *g);
/* Any thread. Both apply to requests that arrive from shortly afterwards on. `access` belongs to
 * the gate from now on. */
void gate_change(struct gate *g, struct gate_access *access, const struct gate_limits *limits);
/* Any thread, for SIGHUP: opens the audit log again by its name and reads the TLS files again.
 * Connections continue. Returns true if there are TLS files and the new ones are in use; if they
 * could not be read, the log says why. */
bool gate_reopen(struct gate *g);
/* Any thread, if in_server: passes on how the server is now. */
void gate_server_health(struct gate *g, const struct server_health *health);
/* Any thread, if in_server: an ephemeral node is gone. */
void gate_node_gone(struct gate *g, int64_t czxid, enum server_gone how);
/* Must not be called while it runs. NULL is ignored. */
void gate_free(struct gate *g);

#endif
