/* admin.h - what the server answers over HTTP: the commands of Apache's AdminServer as JSON
 * (admin.c), and its figures for Prometheus (metrics.c). Bytes only: the driver has the transport.
 * As with the four-letter words, nothing here waits for the disk. */
#ifndef CLAVE_SERVER_FIGURES_ADMIN_H
#define CLAVE_SERVER_FIGURES_ADMIN_H

#include "server/server.h"

/* What only the driver knows about the process; below 0: not known. */
struct server_vitals {
    int64_t open_files;
    int64_t max_files;
    int64_t resident_bytes;
    int64_t cpu_ms;
};

/* Appends the answer to a command, by any of its names: a JSON object with Apache's fields,
 * "command" and "error" among them. EINVAL: there is no such command, and the object says so.
 * ETOOBIG, ENOMEM: discard what was appended. */
clave_err clave__admin_command(struct server *s, const char *name, const struct server_vitals *v,
                               struct buf *out);
/* The first name of command number i, in alphabetical order; NULL after the last. */
const char *clave__admin_name(size_t i);
/* Appends all figures in Prometheus' text format 0.0.4. ETOOBIG, ENOMEM. */
clave_err clave__admin_metrics(const struct server *s, const struct server_vitals *v,
                               struct buf *out);

#endif
