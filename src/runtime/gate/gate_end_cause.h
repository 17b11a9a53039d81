/* gate_end_cause.h - passes the reasons why nodes ended from the server's threads to the gate's, in
 * the same process. The tree itself only shows that they are gone. */
#ifndef CLAVE_RUNTIME_GATE_GATE_END_CAUSE_H
#define CLAVE_RUNTIME_GATE_GATE_END_CAUSE_H

#include <uv.h>

#include "base/memory.h"
#include "clave/err.h"
#include "server/server.h"

struct gate_end_causes; /* opaque */
struct web;

/* `told` is woken when there is something to pass on; it must outlive _free, as must `mem`.
 * ENOMEM. */
clave_err gate_end_cause_new(struct gate_end_causes **out, const struct clave_mem *mem,
                             uv_async_t *told);
/* Any thread. Causes that the gate does not take in time are forgotten, and remain unknown. */
void gate_end_cause_put(struct gate_end_causes *e, int64_t czxid, enum server_gone how);
/* On the gate's thread: tells the engine. */
void gate_end_cause_pass_on(struct gate_end_causes *e, struct web *w);
/* NULL is ignored. */
void gate_end_cause_free(struct gate_end_causes *e);

#endif
