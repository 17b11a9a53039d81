/* connect.h - opens the session that a verb works with. */
#ifndef CLAVE_CMD_CLI_CONNECT_H
#define CLAVE_CMD_CLI_CONNECT_H

#include "clave/async/client.h"
#include "clave/client.h"
#include "cmd/cli/cmd_options.h"

/* Fills in the options of a client: session timeout, identities of --auth, TLS, and its log with
 * -v. */
void connect_client_options(struct options *o, clave_client_options *co);
/* The servers to connect to. NULL, after a message: the list is invalid, or TLS cannot be set up.
 * Call this before connect_client_options. */
const char *connect_dial(struct options *o);
/* Opens a session and waits until it is connected, for options_left_ms() at most. `co` comes from
 * connect_client_options, perhaps changed since; NULL uses those defaults. Returns EXIT_OK, or an
 * exit code after a message. */
int connect_open(struct options *o, const clave_client_options *co, clave_client **out);
/* With -v, prints the session's id and timeout. */
void connect_note_session(const struct options *o, int64_t id, int32_t got_ms);
/* Formats a server as --connect takes it: "zk1:2181", "tls:[::1]:2281", "unix:/run/clave/sock" or
 * "local:"; "" for no server. Returns out. */
enum { ADDRESS_CAP = 300 };
const char *connect_address(const clave_target *t, char out[ADDRESS_CAP]);
/* Closes the session. NULL is ignored. */
void connect_close(clave_client *c);

/* Whether the path is valid and may be sent to a server. false: it is not, and a message has been
 * printed. */
bool connect_path_ok(struct options *o, const char *path);

#endif
