/* serve_config.h - the configuration file of `clave serve`, of two forms: clave's own, with the
 * names of the flags, and Apache ZooKeeper's zoo.cfg as it is. A file with the key dataDir, which
 * no zoo.cfg does without, is taken for the latter. */
#ifndef CLAVE_CMD_SERVE_SERVE_CONFIG_H
#define CLAVE_CMD_SERVE_SERVE_CONFIG_H

#include "cmd/serve/serve_settings.h"

/* Takes all of the file. EINVAL, EIO, ENOMEM: the log says what and where; v is half filled. What
 * is passed over is told in the log, a line each. */
clave_err serve_config_load(struct serve_settings *v, const char *path, const struct log *log);
/* The text of the file `path`, which is cut into pieces. */
clave_err serve_config_read(struct serve_settings *v, char *text, const char *path,
                            const struct log *log);

/* serve_zoocfg.c: cuts the text into pieces. */
clave_err serve_zoocfg_load(struct serve_settings *v, char *text, const char *path,
                            const struct log *log);

#endif
