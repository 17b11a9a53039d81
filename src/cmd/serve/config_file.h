/* config_file.h - the configuration file of `clave serve`, in two forms: clave's own, whose keys
 * are the names of the flags, and Apache ZooKeeper's zoo.cfg unchanged. A file with the key
 * dataDir, which every zoo.cfg has, is taken for the latter. */
#ifndef CLAVE_CMD_SERVE_CONFIG_FILE_H
#define CLAVE_CMD_SERVE_CONFIG_FILE_H

#include "cmd/serve/settings.h"

/* Reads the whole file. EINVAL, ENOMEM: the log says what and where, for each line at fault, and v
 * is half filled; not at all if the file could not be read. Logs a line for each key that is
 * ignored. */
clave_err serve_config_load(struct serve_settings *v, const char *path, const struct log *log,
                            bool *is_read);
/* Reads the text of the file `path`, which is cut into pieces. */
clave_err serve_config_read(struct serve_settings *v, char *text, const char *path,
                            const struct log *log);

/* zoocfg.c: cuts the text into pieces. */
clave_err serve_zoocfg_load(struct serve_settings *v, char *text, const char *path,
                            const struct log *log);

#endif
