/* metrics.h - what the clients of this process have done, as metrics for Prometheus. There is no
 * HTTP server: put them on a page of your own, or into a file for the node exporter's textfile
 * collector. docs/operate/monitoring.md lists the names, all of which begin with "clave_client_".
 *
 * They cover all clients that clave_client_open has made in this process, including closed ones, so
 * counters never decrease. A forked process starts from zero. Clients on a loop of your own
 * (clave/uv.h, clave/async/client.h) are not included.
 *
 * Any thread may call anything here except the thread of a loop (in a callback), where the calls
 * return ELOOPTHREAD, since they ask each loop and wait for its answer. */
#ifndef CLAVE_METRICS_H
#define CLAVE_METRICS_H

#include <stddef.h>

#include "clave/err.h"
#include "clave/version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum clave_metrics_format {
    CLAVE_METRICS_TEXT,        /* Prometheus's text format 0.0.4 */
    CLAVE_METRICS_OPENMETRICS, /* OpenMetrics 1.0: counters' families are named without "_total" */
} clave_metrics_format;

/* The Content-Type of a page in this format. */
CLAVE_EXPORT const char *clave_metrics_content_type(clave_metrics_format format);
/* The format for a request with this Accept header; NULL: it has none. */
CLAVE_EXPORT clave_metrics_format clave_metrics_accepted(const char *accept);

/* Receives the page, in one or several pieces, on the calling thread. Returning an error stops the
 * writing. */
typedef clave_err clave_metrics_cb(void *arg, const char *text, size_t n);

/* Writes a page of all metrics. ENOMEM; ELOOPTHREAD; or whatever `write` returned. */
CLAVE_EXPORT clave_err clave_metrics_write(clave_metrics_format format, clave_metrics_cb *write,
                                           void *arg);
/* Writes the page and a NUL to buf, which has room for cap bytes. *len is set to the length of the
 * page without the NUL, also on ETOOBIG, which means that buf is too small; buf is then an empty
 * string. ENOMEM; ELOOPTHREAD. */
CLAVE_EXPORT clave_err clave_metrics_copy(clave_metrics_format format, char *buf, size_t cap,
                                          size_t *len);

#ifdef __cplusplus
}
#endif
#endif
