/* gate_server_stats.h - passes the health of the server in the same process from the server's
 * threads to the gate's, for the page. */
#ifndef CLAVE_RUNTIME_GATE_GATE_SERVER_STATS_H
#define CLAVE_RUNTIME_GATE_GATE_SERVER_STATS_H

#include <uv.h>

#include "base/memory.h"
#include "clave/err.h"
#include "server/server.h"

struct gate_server_stats; /* opaque */
struct web;

/* `told` is woken when there are new figures; it must outlive _free, as must `mem`. ENOMEM. */
clave_err gate_server_stats_new(struct gate_server_stats **out, const struct clave_mem *mem,
                                uv_async_t *told);
/* Any thread. Only the newest figures count. */
void gate_server_stats_put(struct gate_server_stats *f, const struct server_health *health);
/* On the gate's thread: tells the engine. */
void gate_server_stats_pass_on(struct gate_server_stats *f, struct web *w);
/* NULL is ignored. */
void gate_server_stats_free(struct gate_server_stats *f);

#endif
