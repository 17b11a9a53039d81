/* serve_gate.h - the gate inside a server: `clave serve --http`. It runs on a thread and a loop of
 * its own, so HTTP never delays the ZooKeeper protocol. It is a client of the server through a Unix
 * socket in the data directory, to which the limit on connections per address does not apply. */
#ifndef CLAVE_CMD_SERVE_SERVE_GATE_H
#define CLAVE_CMD_SERVE_SERVE_GATE_H

#include "cmd/serve/settings.h"
#include "runtime/gate/gate_access_file.h"

struct serve_gate;

/* Sets run.gate, the address of that socket. Call this before the server is started. EINVAL: the
 * path of the data directory is too long; ENOMEM. */
clave_err serve_gate_name(struct serve_settings *v, const struct fault *f);
/* Checks the addresses, the tokens and the libraries without starting anything, like
 * clave__server_run_check. */
clave_err serve_gate_check(const struct serve_settings *v, const struct fault *f);
/* Binds the addresses; connections wait until serve_gate_run. `connect` is the server's own
 * address, which is shown to users. Errors: those of gate_new and gate_access_load. */
clave_err serve_gate_new(struct serve_gate **out, const struct serve_settings *v,
                         const char *connect, const struct log *log, const struct fault *f);
/* An ephemeral node is gone. Called from the server's threads. */
void serve_gate_node_gone(struct serve_gate *g, int64_t czxid, enum server_gone how);
/* The present state of the server. Called from the server's threads. */
void serve_gate_server_health(struct serve_gate *g, const struct server_health *health);
/* Starts the gate's thread. ETHREAD: it cannot be started. */
clave_err serve_gate_run(struct serve_gate *g);
/* For SIGHUP. _load reads who may do what; _change applies it and takes ownership of `access`.
 * EINVAL, EIO, ENOMEM. */
clave_err serve_gate_load(struct gate_access **out, const struct serve_settings *wanted,
                          const struct fault *f);
void serve_gate_change(struct serve_gate *g, struct gate_access *access,
                       const struct serve_settings *wanted);
/* Reads the TLS files again; see gate_reopen. */
bool serve_gate_reopen(struct serve_gate *g);
/* Address number `i` as it was bound; NULL after the last. Call this before serve_gate_run. */
const char *serve_gate_address(const struct serve_gate *g, size_t i);
/* Ends the thread and frees the gate. NULL is ignored. */
void serve_gate_free(struct serve_gate *g);

#endif
