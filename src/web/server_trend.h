/* server_trend.h - how the server and the gate have been doing in the last hour: what the page
 * shows of them first. The gate's own figures are taken here, the server's come of the driver
 * (web.h), if it is in the same process. A sample every SAMPLE_MS, the newest SAMPLES of them. */
#ifndef CLAVE_WEB_SERVER_STATS_H
#define CLAVE_WEB_SERVER_STATS_H

#include "base/json_writer.h"
#include "web/web_internal.h"

struct server_trend;

/* Makes w->figures. ENOMEM. */
clave_err clave__server_trend_new(struct web *w);
void clave__server_trend_free(struct web *w);

void clave__server_trend_take(struct server_trend *f, const int64_t figures[WEB_FIGURES]);

/* "gate" and "server": the newest; "server" is null when nothing is known of it, or not `all` may
 * be told. */
void clave__server_trend_json(struct json *j, const struct web *w, bool all);
/* "samples": the last hour, the oldest first. */
void clave__server_trend_samples_json(struct json *j, const struct web *w);

#endif
