/* resolve.h - from a target to an address, off the loop's thread.
 *
 * A lookup cannot be interrupted (getaddrinfo may take as long as the resolver's own timeouts), so
 * it has its own memory: a caller that gives up abandons it, and it frees itself when it ends. */
#ifndef CLAVE_RUNTIME_CLIENT_RESOLVE_H
#define CLAVE_RUNTIME_CLIENT_RESOLVE_H

#include <uv.h>

#include "clave/async/client.h"

struct resolve; /* opaque */

/* One of: a fault (text not empty), a connected descriptor (fd >= 0, now the callback's), or an
 * address. */
struct resolve_result {
    const char *fault;
    bool for_good; /* a fault that another attempt will meet again */
    int fd;
    const struct sockaddr *addr; /* valid during the callback */
    unsigned addresses;          /* how many addresses the name has */
};
typedef void resolve_cb(void *arg, const struct resolve_result *res);

/* true when the host is an address already, or the path of a Unix socket (port 0) that fits into
 * one: no lookup is needed. */
bool clave__resolve_literal(const clave_target *t, struct sockaddr_storage *out);

/* Resolves the host's name; "local:" (port 0) connects to the local server, starting it if need be.
 * cb runs later on the loop's thread, once, unless abandoned. 0, or an errno: there is no thread or
 * memory for it. */
int clave__resolve_start(struct resolve **out, uv_loop_t *loop, const clave_target *t,
                         resolve_cb *cb, void *arg);
void clave__resolve_abandon(struct resolve *l);

#endif
