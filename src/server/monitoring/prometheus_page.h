/* prometheus_page.h - the page that Prometheus reads. */
#ifndef CLAVE_SERVER_MONITORING_PROMETHEUS_PAGE_H
#define CLAVE_SERVER_MONITORING_PROMETHEUS_PAGE_H

#include "base/prometheus/prometheus.h"
#include "server/server.h"

/* Appends all metrics. ETOOBIG, ENOMEM: discard them. */
clave_err clave__metrics(const struct server *s, enum prometheus_format format, struct buf *out);

#endif
