/* lookup.h - from a target to an address, off the loop's thread.
 *
 * A lookup cannot be interrupted (getaddrinfo may take as long as the resolver's own
 * timeouts), so it lives on its own memory: who gives up abandons it, and it frees itself
 * when it ends. */
#ifndef CLAVE_DRIVE_LOOKUP_H
#define CLAVE_DRIVE_LOOKUP_H

#include <uv.h>

#include "clave/client.h"

struct lookup; /* opaque */

/* One of: a fault (text not empty), a connected descriptor (fd >= 0, now the callee's), or
 * an address. */
struct lookup_result {
    const char *fault;
    bool for_good; /* a fault that another try will meet again */
    int fd;
    const struct sockaddr *addr; /* valid for the callback */
    unsigned addresses;          /* how many the name has */
};
typedef void lookup_cb(void *arg, const struct lookup_result *res);

/* true when the host is an address already: no lookup is needed. */
bool clave__lookup_literal(const char *host, uint16_t port, struct sockaddr_storage *out);

/* cb runs later on the loop's thread, once, unless abandoned. NULL: out of memory. */
struct lookup *clave__lookup_name(uv_loop_t *loop, const clave_target *t, lookup_cb *cb, void *arg);
/* Connects to the local server, starting it if need be. */
struct lookup *clave__lookup_local(uv_loop_t *loop, lookup_cb *cb, void *arg);
void clave__lookup_abandon(struct lookup *l);

#endif
