/* zoocfg_dirs.h - zoo.cfg's dataLogDir: Apache keeps its logs there, clave in dataDir.
 * zoocfg_load.c asks whether it may be passed over. */
#ifndef CLAVE_CMD_SERVE_ZOOCFG_DIRS_H
#define CLAVE_CMD_SERVE_ZOOCFG_DIRS_H

#include <stdbool.h>

#include "runtime/start_error.h"

/* Are they one directory, however it is written? */
bool zoocfg_dirs_same(const char *a, const char *b);

/* EINVAL, with the fault: without what is in log_dir, or should be, a start from data_dir would
 * lose transactions. */
clave_err zoocfg_dirs_check(const char *data_dir, const char *log_dir, const struct fault *f);

#endif
