/* metrics.h - what the clients of this process have done, as metrics for Prometheus, without an
 * HTTP server: put them on your own page, or into a file for the node exporter's textfile
 * collector. docs/operate/monitoring.md lists the names, all of which begin with "clave_client_".
 *
 * They are of all clients that clave_client_open made in this process, closed ones included, so
 * counters never go back. A forked process begins anew. Clients on a loop of your own (clave/uv.h,
 * clave/async/client.h) are not among them.
 *
 * Any thread may call anything here, but a loop's (in a callback), where it returns ELOOPTHREAD: it
 * asks each loop, and waits for its answer. */
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

/* Receives the page, in one piece or several, on the calling thread. An error ends the writing. */
typedef clave_err clave_metrics_cb(void *arg, const char *text, size_t n);

/* Writes a page of all metrics. ENOMEM; ELOOPTHREAD; what `write` returned. */
CLAVE_EXPORT clave_err clave_metrics_write(clave_metrics_format format, clave_metrics_cb *write,
                                           void *arg);
/* Writes the page and a NUL to buf, which has room for cap bytes. *len is the length of the page
 * without the NUL, also on ETOOBIG: buf has no room for it, and is empty. ENOMEM; ELOOPTHREAD. */
CLAVE_EXPORT clave_err clave_metrics_copy(clave_metrics_format format, char *buf, size_t cap,
                                          size_t *len);

#ifdef __cplusplus
}
#endif
#endif
