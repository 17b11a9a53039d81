/* config.h - the environment and the configuration files, the user's and the machine's: what flags
 * left open. */
#ifndef CLAVE_CMD_CLI_CONFIG_H
#define CLAVE_CMD_CLI_CONFIG_H

#include "cmd/cli/options.h"

/* Fills in what is unset, from CLAVE_CONNECT, CLAVE_SESSION_TIMEOUT, CLAVE_TIMEOUT,
 * CLAVE_AUTH and so on, then from the user's file, then from the machine's. false: told what is
 * wrong, with file and line. */
bool config_apply(struct options *o);
/* Whether "local:" may never be used, and who says so; nothing else is read, and no fault told. */
void config_find_never(struct options *o);
/* The text of the file `path`: it is cut into pieces, which the options point into. */
bool config_read(struct options *o, char *text, const char *path);

enum { CONFIG_SCHEME_CAP = 64 }; /* with the NUL */
/* "digest:user:password", and nothing that would only fail at the server. */
bool config_auth_ok(const char *auth, const char **fault);

#endif
