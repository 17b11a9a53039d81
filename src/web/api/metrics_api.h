/* metrics_api.h - GET /metrics: locks, elections and the gate's own requests, for Prometheus. */
#ifndef CLAVE_WEB_API_METRICS_API_H
#define CLAVE_WEB_API_METRICS_API_H

#include "web/http/exchange.h"

web_handler clave__web_get_metrics;

#endif
