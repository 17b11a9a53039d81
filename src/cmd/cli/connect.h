/* connect.h - opens the session a verb works with. */
#ifndef CLAVE_CMD_CLI_CONNECT_H
#define CLAVE_CMD_CLI_CONNECT_H

#include "clave/async/client.h"
#include "clave/client.h"
#include "cmd/cli/cmd_options.h"

/* Fills in what the options say about a client: its session timeout, the identities of
 * --auth, and its log with -v. */
void connect_client_options(struct options *o, clave_client_options *co);
/* The servers to use; NULL after a message: the list is invalid, or TLS cannot be set up. Call it
 * before connect_client_options. */
const char *connect_dial(struct options *o);
/* Opens the session (`co` as filled in above, perhaps changed since; NULL: the defaults) and waits
 * until it is connected, at most options_left_ms(). EXIT_OK, or the exit code after a message. */
int connect_open(struct options *o, const clave_client_options *co, clave_client **out);
/* With -v: the session. */
void connect_note_session(const struct options *o, int64_t id, int32_t got_ms);
/* The server as --connect takes it: "zk1:2181", "tls:[::1]:2281", "unix:/run/clave/sock", "local:".
 * Returns `out`; "" for none. */
enum { ADDRESS_CAP = 300 };
const char *connect_address(const clave_target *t, char out[ADDRESS_CAP]);
/* NULL is ignored. */
void connect_close(clave_client *c);

/* true: the path is valid and may be sent to the server. Otherwise reports what is wrong with it.
 */
bool connect_path_ok(struct options *o, const char *path);

#endif
