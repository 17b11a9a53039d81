/* local_warning.h - warnings about "local:", which is a server of one user on one machine, so a
 * lock on it does not exclude any other user. */
#ifndef CLAVE_CMD_CLI_LOCAL_WARNING_H
#define CLAVE_CMD_CLI_LOCAL_WARNING_H

#include "cmd/cli/cmd_options.h"

/* Whether the servers may be used: `connect` is not "local:", or "local:" is allowed. false: it is
 * not, and a message has been printed that says how to name another server. */
bool local_may_be_used(const struct options *o, const char *connect);
/* With -v, prints whose server it is and where; nothing for other servers. */
void local_note(const struct options *o);

/* A lock or leadership at `path` was acquired on "local:": warns about that once, with -v or,
 * unless "local = yes" is set, if standard error is not a terminal. With --json, local_put does
 * this. */
void local_tell_acquired(struct options *o, const char *path, bool elected, int64_t session_id);
struct json;
/* The same as a member "local" of the event; nothing for other servers. */
void local_put(const struct options *o, struct json *j);

#endif
