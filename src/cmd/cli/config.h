/* config.h - the environment and the configuration files, the user's and the machine's: they fill
 * in what the flags left open (runtime/client/client_settings.h). */
#ifndef CLAVE_CMD_CLI_CONFIG_H
#define CLAVE_CMD_CLI_CONFIG_H

#include "cmd/cli/cmd_options.h"

/* false after a message with file and line. */
bool config_apply(struct options *o);

#endif
