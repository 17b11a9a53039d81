/* guard.h - Clave-Guard: PATH;token=T. A write is done only while the lock at PATH is held with the
 * fencing token T: the node whose creation the token is must be there, in the same transaction. */
#ifndef CLAVE_WEB_API_GUARD_H
#define CLAVE_WEB_API_GUARD_H

#include "web/http/exchange.h"

struct guard {
    const char *path; /* NULL: the request has none */
    int64_t token;
};

/* false: it has answered 400, 401 or 403. */
bool clave__guard_read(struct web_exchange *x, struct guard *out);

/* The node's path, valid as long as the exchange. */
typedef void guard_found(struct web_exchange *x, clave_async_client *c, const char *node);
/* Looks for the node among the children of the path, and of its "leases" (a semaphore's), after a
 * sync; calls `found`, or answers 410. The transaction's check decides, not this look. */
void clave__guard_find(struct web_exchange *x, clave_async_client *c, const struct guard *g,
                       guard_found *found);
/* 410. */
void clave__guard_answer_lost(struct web_exchange *x, const struct guard *g);

#endif
