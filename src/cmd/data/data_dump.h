/* data_dump.h - `clave data dump`. */
#ifndef CLAVE_CMD_DATA_DATA_DUMP_H
#define CLAVE_CMD_DATA_DATA_DUMP_H

#include "cmd/data/data_files.h"

/* Prints every file, or the one of the name `only` when it is not NULL. Returns the exit code. */
int data_dump(struct data_files *f, const char *only);

#endif
