/* guarded_write.h - writes that only an owner may do, for threads: under a mutex, a lease or a
 * leadership. The server does them only while the owner's node exists. */
#ifndef CLAVE_RUNTIME_BLOCKING_GUARDED_WRITE_H
#define CLAVE_RUNTIME_BLOCKING_GUARDED_WRITE_H

#include "runtime/blocking/call.h"

struct guard {
    clave_client *session;
    void *holder; /* of whatever type find_node expects */
    uint64_t owner;
    /* On the loop's thread: the path of the owner's node. ENOTHELD, ELOST. */
    clave_err (*find_node)(const struct guard *g, const char **node);
};

/* One create, set or delete. `out` may be NULL. */
clave_err clave__guarded_write(const struct guard *g, const clave_op *op, int64_t timeout_ms,
                               clave_reply **out);
clave_err clave__guarded_multi(const struct guard *g, const clave_op *ops, size_t nops,
                               int64_t timeout_ms, clave_reply **out);

#endif
