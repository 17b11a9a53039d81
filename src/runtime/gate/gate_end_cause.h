/* gate_end_cause.h - why nodes ended, as the server in the same process tells it: the tree shows
 * only that they are gone. From the server's threads to the gate's. */
#ifndef CLAVE_RUNTIME_GATE_GATE_END_CAUSE_H
#define CLAVE_RUNTIME_GATE_GATE_END_CAUSE_H

#include <uv.h>

#include "base/memory.h"
#include "clave/err.h"
#include "server/server.h"

struct gate_end_causes; /* opaque */
struct web;

/* `told` is woken when there is something to pass on; it outlives _free, as `mem` does. ENOMEM. */
clave_err gate_end_cause_new(struct gate_end_causes **out, const struct clave_mem *mem,
                             uv_async_t *told);
/* From any thread. What is more than the gate takes in time is forgotten: its cause stays unknown.
 */
void gate_end_cause_put(struct gate_end_causes *e, int64_t czxid, enum server_gone how);
/* On the gate's thread: tells the engine. */
void gate_end_cause_pass_on(struct gate_end_causes *e, struct web *w);
/* NULL is ignored. */
void gate_end_cause_free(struct gate_end_causes *e);

#endif
