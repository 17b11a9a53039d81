/* admin.h - what the server tells over HTTP: the commands of Apache's AdminServer as JSON, and its
 * figures for Prometheus. Bytes only: the transport is the driver's. As with the four-letter words,
 * nothing here waits for the disk. */
#ifndef CLAVE_SERVER_FIGURES_ADMIN_H
#define CLAVE_SERVER_FIGURES_ADMIN_H

#include "server/server.h"

/* What only the driver knows of the process; below 0: not known. */
struct server_vitals {
    int64_t open_files;
    int64_t max_files;
    int64_t resident_bytes;
    int64_t cpu_ms;
};

/* Appends the answer to a command, by one of its names, as Apache's fields: a JSON object with
 * "command" and "error". EINVAL: there is no such command, which the object says. ETOOBIG, ENOMEM:
 * what was appended is of no use. */
clave_err clave__admin_command(struct server *s, const char *name, const struct server_vitals *v,
                               struct buf *out);
/* The first name of command number i, by the alphabet; NULL behind the last. */
const char *clave__admin_name(size_t i);
/* Appends all figures in Prometheus' text format 0.0.4. ETOOBIG, ENOMEM. */
clave_err clave__admin_metrics(const struct server *s, const struct server_vitals *v,
                               struct buf *out);

#endif
