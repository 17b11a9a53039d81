/* metrics_page.h - the page that Prometheus reads. */
#ifndef CLAVE_SERVER_FIGURES_METRICS_PAGE_H
#define CLAVE_SERVER_FIGURES_METRICS_PAGE_H

#include "server/server.h"

/* Appends all metrics in Prometheus' text format 0.0.4. ETOOBIG, ENOMEM: discard them. */
clave_err clave__metrics(const struct server *s, struct buf *out);

#endif
