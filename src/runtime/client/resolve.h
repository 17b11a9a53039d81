/* resolve.h - resolves a target to an address, off the loop's thread.
 *
 * A lookup cannot be interrupted (getaddrinfo may take as long as the resolver's own timeouts). So
 * it has memory of its own: a caller that gives up abandons it, and it frees itself when it
 * ends. */
#ifndef CLAVE_RUNTIME_CLIENT_RESOLVE_H
#define CLAVE_RUNTIME_CLIENT_RESOLVE_H

#include <uv.h>

#include "clave/async/client.h"

struct resolve; /* opaque */

/* One of: a fault (text is not empty), a connected descriptor (fd >= 0, which now belongs to the
 * callback), or an address. */
struct resolve_result {
    const char *fault;
    bool for_good; /* the fault is one that another attempt will meet again */
    int fd;
    const struct sockaddr *addr; /* valid during the callback */
    unsigned addresses;          /* how many addresses the name has */
};
typedef void resolve_cb(void *arg, const struct resolve_result *res);

/* Returns true if no lookup is needed: the host is already an address, or (port 0) the path of a
 * Unix socket that fits. */
bool clave__resolve_literal(const clave_target *t, struct sockaddr_storage *out);

/* Resolves the host's name; "local:" (port 0) connects to the local server, starting it if
 * necessary. cb runs once, later, on the loop's thread, unless the lookup is abandoned. Returns 0,
 * or an errno if there is no thread or memory for it. */
int clave__resolve_start(struct resolve **out, uv_loop_t *loop, const clave_target *t,
                         resolve_cb *cb, void *arg);
void clave__resolve_abandon(struct resolve *l);

#endif
