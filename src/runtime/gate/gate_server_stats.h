/* gate_server_stats.h - how the server in the same process is, for the page: from the server's
 * threads to the gate's. */
#ifndef CLAVE_RUNTIME_GATE_GATE_SERVER_STATS_H
#define CLAVE_RUNTIME_GATE_GATE_SERVER_STATS_H

#include <uv.h>

#include "base/memory.h"
#include "clave/err.h"
#include "server/server.h"

struct gate_figures; /* opaque */
struct web;

/* `told` is woken when there are new ones; it outlives _free, as `mem` does. ENOMEM. */
clave_err gate_figures_new(struct gate_figures **out, const struct clave_mem *mem,
                           uv_async_t *told);
/* From any thread. The newest count. */
void gate_figures_put(struct gate_figures *f, const struct server_health *health);
/* On the gate's thread: tells the engine. */
void gate_figures_pass_on(struct gate_figures *f, struct web *w);
/* NULL is ignored. */
void gate_figures_free(struct gate_figures *f);

#endif
