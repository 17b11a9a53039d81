/* config.h - the environment and the configuration files, the user's and the machine's: they fill
 * in what the flags left open. */
#ifndef CLAVE_CMD_CLI_CONFIG_H
#define CLAVE_CMD_CLI_CONFIG_H

#include "cmd/cli/cmd_options.h"

/* Fills in what is unset, from CLAVE_CONNECT, CLAVE_SESSION_TIMEOUT, CLAVE_TIMEOUT, CLAVE_AUTH and
 * so on, then from the user's file, then from the machine's. false after a message with file and
 * line. */
bool config_apply(struct options *o);
/* Reads only whether "local:" is forbidden, and where; reports no other faults. */
void config_find_never(struct options *o);
/* Parses the text of the file `path`. The text is cut into pieces that the options point into. */
bool config_read(struct options *o, char *text, const char *path);

/* Adds the identity "digest:user:password", whose bytes stay the caller's. false: *fault says what
 * would only fail at the server. */
bool config_add_auth(struct options *o, const char *auth, const char **fault);

#endif
