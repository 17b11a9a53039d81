/* data_until.h - the moment that a restore goes back to. */
#ifndef CLAVE_CMD_DATA_DATA_UNTIL_H
#define CLAVE_CMD_DATA_DATA_UNTIL_H

#include "cmd/data/data_files.h"

/* "0x1f": that zxid. "2026-11-23T05:55:00Z", or with an offset: the last transaction before the
 * first that the logs have of a later time. EXIT_OK, or the exit code after a message. */
int data_until(struct data_files *f, const char *text, int64_t *zxid);

#endif
