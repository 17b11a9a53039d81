/* shell_command.h - commands of clave for use in messages, which can be pasted into a shell as they
 * are. */
#ifndef CLAVE_CMD_CLI_SHELL_COMMAND_H
#define CLAVE_CMD_CLI_SHELL_COMMAND_H

#include "cmd/cli/cmd_options.h"

/* "clave WORD...", quoted for a shell. Includes the flags that named the server on our own command
 * line; what came from the environment or a file applies to the new command anyway. Identities are
 * left out, since they are secret. `words` ends with NULL. The text is cut if it does not fit.
 * Returns out. */
enum { HINT_CAP = 2048 };
const char *hint_command(const struct options *o, const char *const *words, char out[HINT_CAP]);
/* One word, quoted if a shell would need it. Returns out. */
const char *hint_word(const char *word, char out[HINT_CAP]);

#endif
