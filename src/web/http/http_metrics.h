/* http_metrics.h - how the engine's own requests went, as metrics. */
#ifndef CLAVE_WEB_HTTP_HTTP_METRICS_H
#define CLAVE_WEB_HTTP_HTTP_METRICS_H

#include "base/prometheus.h"
#include "web/http/exchange.h"

struct http_metrics;

/* Reasons of refusals that share their status with others: numbers that are no status. */
enum { HTTP_REFUSED_WAITING = 1, HTTP_REFUSED_MEMORY, HTTP_REFUSED_SESSIONS };

/* Makes w->http_metrics. ENOMEM. */
clave_err clave__http_metrics_new(struct web *w);
void clave__http_metrics_free(struct web *w);

/* The exchange is answered with this status. */
void clave__http_metrics_note(const struct web_exchange *x, unsigned status);
/* clave_http_requests_total{route,code}, _request_seconds, _waiting{how}, _refused_total{reason}.
 */
void clave__http_metrics_put(const struct web *w, struct prometheus *p);
/* Requests that were answered, of all routes. */
uint64_t clave__http_metrics_answered(const struct web *w);

#endif
