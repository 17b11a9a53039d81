/* data_restore.h - `clave data restore`. */
#ifndef CLAVE_CMD_DATA_DATA_RESTORE_H
#define CLAVE_CMD_DATA_DATA_RESTORE_H

#include "cmd/data/data_files.h"

struct restore_options {
    const char *until;       /* a zxid or a time; NULL: everything */
    int64_t epoch;           /* 0: by the clock */
    int64_t longest_session; /* ms; 0: not told */
};

/* The new directory `to` gets the state of the opened one. Returns the exit code. */
int data_restore(struct data_files *f, const char *to, const struct restore_options *o);

#endif
