/* settings_check.h - whether settings that are valid each by itself go together. */
#ifndef CLAVE_CMD_SERVE_SETTINGS_CHECK_H
#define CLAVE_CMD_SERVE_SETTINGS_CHECK_H

#include "cmd/serve/settings_table.h"

/* Checks that the settings are consistent, and fills in the defaults that depend on others. EINVAL:
 * with a line for each thing that is wrong. */
clave_err settings_check(struct serve_settings *v, const struct fault *f);
/* Warns of settings that have no effect beside the others. */
void settings_tell_useless(const struct serve_settings *v, const struct log *log);

#endif
