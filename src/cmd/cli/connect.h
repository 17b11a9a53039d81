/* connect.h - the session a verb works with. */
#ifndef CLAVE_CMD_CLI_CONNECT_H
#define CLAVE_CMD_CLI_CONNECT_H

#include "clave/client.h"
#include "cmd/cli/options.h"

/* What the options say about a client: its session timeout, and its log with -v. */
void connect_client_options(struct options *o, clave_client_options *co);
/* The servers to use; NULL: they cannot be understood, or there is no TLS for them, told. Before
 * link_client_options. */
const char *connect_dial(struct options *o);
/* Opens the session (`co` as above, perhaps changed since; NULL: just that), waits until it
 * is connected, at most options_left_ms(), and gives it the --auth identities. EXIT_OK, or
 * the exit code, having told why. */
int connect_open(struct options *o, const clave_client_options *co, clave_client **out);
/* With -v: what the server made of the session timeout that was asked for. */
void connect_note_session(const struct options *o, int64_t id, int32_t got_ms);
/* NULL is ignored. */
void connect_close(clave_client *s);

/* true when the server may be asked about the path. Else tells what is wrong with it. */
bool connect_path_ok(struct options *o, const char *path);

#endif
