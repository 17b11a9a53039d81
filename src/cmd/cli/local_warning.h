/* local_warning.h - warnings about "local:", a server of one user on one machine, which
 * excludes no other user. */
#ifndef CLAVE_CMD_CLI_LOCAL_WARNING_H
#define CLAVE_CMD_CLI_LOCAL_WARNING_H

#include "cmd/cli/cmd_options.h"

/* true: `connect` is not "local:", or "local:" is allowed. Otherwise reports it, with how to name
 * another server. */
bool local_may_be_used(const struct options *o, const char *connect);
/* With -v: whose server it is, and where; nothing for another server. */
void local_note(const struct options *o);

/* A lock or a leadership at `path` was acquired there: warns once when standard error is no
 * terminal, unless "local = yes"; and with -v. With --json, see local_put. */
void local_tell_acquired(struct options *o, const char *path, bool elected, int64_t session_id);
struct json;
/* The same as an object "local" of the event; nothing for another server. */
void local_put(const struct options *o, struct json *j);

#endif
