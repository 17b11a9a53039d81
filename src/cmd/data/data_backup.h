/* data_backup.h - `clave data backup`. */
#ifndef CLAVE_CMD_DATA_DATA_BACKUP_H
#define CLAVE_CMD_DATA_DATA_BACKUP_H

#include "cmd/data/data_files.h"

/* The new directory `to` gets what the opened one leads to, at one zxid; with `history` also what
 * led to it, as far back as there are logs. Returns the exit code. */
int data_backup(struct data_files *f, const char *to, bool history);

#endif
