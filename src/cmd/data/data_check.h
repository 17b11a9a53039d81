/* data_check.h - `clave data check` and `clave data digest`. Both return the exit code. */
#ifndef CLAVE_CMD_DATA_DATA_CHECK_H
#define CLAVE_CMD_DATA_DATA_CHECK_H

#include "cmd/data/data_files.h"

/* Names each fault with its file and offset; EXIT_IO when there is one. */
int data_check(struct data_files *f);
/* The zxid and the digest of the tree that a server would begin with. */
int data_digest(struct data_files *f);

#endif
