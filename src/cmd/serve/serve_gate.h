/* serve_gate.h - the gate in a server: `clave serve --http`. It has its own thread and loop, so
 * that HTTP never delays the protocol, and is a client of the server by a Unix socket in the data
 * directory, which no limit of connections from one address concerns. */
#ifndef CLAVE_CMD_SERVE_SERVE_GATE_H
#define CLAVE_CMD_SERVE_SERVE_GATE_H

#include "cmd/serve/settings.h"
#include "runtime/gate/gate_access_file.h"

struct serve_gate; /* opaque */

/* Fills in run.gate of the settings, before the server is started. EINVAL: the path of the data
 * directory is too long; ENOMEM. */
clave_err serve_gate_name(struct serve_settings *v, const struct fault *f);
/* As clave__server_run_check: the addresses, the tokens, the libraries. */
clave_err serve_gate_check(const struct serve_settings *v, const struct fault *f);
/* Binds the addresses: connections wait until _run. `connect` is the server's own address, for
 * people to connect to. The errors of gate_new, gate_access_load. */
clave_err serve_gate_new(struct serve_gate **out, const struct serve_settings *v,
                         const char *connect, const struct log *log, const struct fault *f);
/* From the server's threads: an ephemeral node is gone. */
void serve_gate_node_gone(struct serve_gate *g, int64_t czxid, enum server_gone how);
/* Likewise: how the server is now. */
void serve_gate_server_health(struct serve_gate *g, const struct server_health *health);
/* Starts the thread. ETHREAD. */
clave_err serve_gate_run(struct serve_gate *g);
/* SIGHUP: reads who may do what, and then changes it. The access is the gate's after _change.
 * EINVAL, EIO, ENOMEM. */
clave_err serve_gate_load(struct gate_access **out, const struct serve_settings *wanted,
                          const struct fault *f);
void serve_gate_change(struct serve_gate *g, struct gate_access *access,
                       const struct serve_settings *wanted);
/* As gate_reopen. */
bool serve_gate_reopen(struct serve_gate *g);
/* Address number i, as bound; NULL after the last. Before _run. */
const char *serve_gate_address(const struct serve_gate *g, size_t i);
/* Ends the thread. NULL is ignored. */
void serve_gate_free(struct serve_gate *g);

#endif
