/* gate_clients.h - the ZooKeeper clients of a gate's engine, on the gate's loop. The engine must
 * not be called back inside its own calls, so what it asks for is done in the next turn of the
 * loop, which then does not sleep first. */
#ifndef CLAVE_RUNTIME_GATE_GATE_CLIENTS_H
#define CLAVE_RUNTIME_GATE_GATE_CLIENTS_H

#include <uv.h>

#include "base/list.h"
#include "base/map.h"
#include "base/memory.h"
#include "clave/async/client.h"
#include "runtime/suspend_resume.h"

struct gate_clients {
    uv_loop_t *loop;
    const struct clave_mem *mem;
    struct map by_client;
    struct list changed; /* those to be started, flushed or freed in the next turn */
    uv_idle_t turn;      /* runs while there are any */
    struct wakeup wakeup;
    size_t running;
    bool is_ending;
};

/* `mem` must outlive it. ENOMEM. */
clave_err gate_clients_init(struct gate_clients *g, uv_loop_t *loop, const struct clave_mem *mem);
/* Call it only when none is running any more; handles close later, on the loop. Frees the clients
 * that are left. */
void gate_clients_fini(struct gate_clients *g);

/* As in struct web_env. */
clave_err gate_clients_open(struct gate_clients *g, const clave_client_options *o,
                            clave_async_client **out);
void gate_clients_free(struct gate_clients *g, clave_async_client *c);
void gate_clients_flush(struct gate_clients *g, clave_async_client *c);

/* Disconnects all clients; `running` becomes 0 later, on the loop. From now on _free frees at
 * once. */
void gate_clients_stop(struct gate_clients *g);

#endif
