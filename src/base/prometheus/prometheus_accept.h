/* prometheus_accept.h - the choice between the two formats of prometheus.h. */
#ifndef CLAVE_BASE_PROMETHEUS_PROMETHEUS_ACCEPT_H
#define CLAVE_BASE_PROMETHEUS_PROMETHEUS_ACCEPT_H

#include "base/prometheus/prometheus.h"

/* The format for an Accept header (NULL: none): OpenMetrics if it is named there, and the text
 * format is not preferred to it. */
enum prometheus_format clave__prometheus_accepted(const char *accept);

#endif
