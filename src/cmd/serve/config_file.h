/* config_file.h - the configuration file of `clave serve`, in two forms: clave's own, whose keys
 * are the names of the flags, and Apache ZooKeeper's zoo.cfg unchanged. A file with the key
 * dataDir, which every zoo.cfg has, is taken for the latter. */
#ifndef CLAVE_CMD_SERVE_CONFIG_FILE_H
#define CLAVE_CMD_SERVE_CONFIG_FILE_H

#include "cmd/serve/settings.h"

/* Reads the whole file. EINVAL or ENOMEM: each line with an error has been logged with its number
 * and what is wrong, and `v` is partly filled in; *is_read is false if the file itself could not be
 * read. Also logs each key that is ignored. */
clave_err serve_config_load(struct serve_settings *v, const char *path, const struct log *log,
                            bool *is_read);
/* The same for a text that has been read already; `path` is used in messages. Modifies the text. */
clave_err serve_config_read(struct serve_settings *v, char *text, const char *path,
                            const struct log *log);

/* Reads a zoo.cfg (zoocfg.c). Modifies the text. */
clave_err serve_zoocfg_load(struct serve_settings *v, char *text, const char *path,
                            const struct log *log);

#endif
