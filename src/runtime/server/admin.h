/* admin.h - a running server over HTTP: which page is at which path. */
#ifndef CLAVE_RUNTIME_SERVER_ADMIN_H
#define CLAVE_RUNTIME_SERVER_ADMIN_H

#include "runtime/server/server_run_internal.h"

/* The number of connections at a time; further ones wait in the kernel's queue. An open file each.
 */
enum { ADMIN_MAX_CONNECTIONS = 16 };

/* Serves on the addresses of the options, if any. EINUSE, EINVAL, EIO, ENOMEM, ETHREAD, EFILES;
 * after an error clave__run_stop_http frees what was started. */
clave_err clave__admin_start(struct server_run *r, const struct server_run_options *o,
                             const struct fault *f);

#endif
