/* open_file_limit.h - the limit of open files, and the connections that it leaves room for. */
#ifndef CLAVE_RUNTIME_SERVER_OPEN_FILE_LIMIT_H
#define CLAVE_RUNTIME_SERVER_OPEN_FILE_LIMIT_H

#include <stddef.h>

#include "runtime/start_error.h"

struct server_run_options;

/* A log that cannot be opened for lack of descriptors would stop the server. */
size_t clave__open_files_for_connections(const struct server_run_options *o);
/* EFILES. */
clave_err clave__open_files_check(const struct fault *f);
/* A connection is an open file, and the soft limit exists for programs that use select(). */
void clave__open_files_raise_limit(void);

#endif
