/* address_limit.h - limits how many connections one address may have, and how many of them without
 * a session. An IPv6 network of 64 bits counts as one address; Unix sockets are not counted. */
#ifndef CLAVE_RUNTIME_SERVER_ADDRESS_LIMIT_H
#define CLAVE_RUNTIME_SERVER_ADDRESS_LIMIT_H

#include <stdbool.h>

#include "base/ip_range.h"
#include "base/map.h"
#include "clave/err.h"
#include "clave/mem.h"

struct address_limit {
    struct map addresses;     /* the addresses that have connections */
    unsigned max_connections; /* 0: no limit */
    unsigned max_sessionless; /* of these, those without a session; 0: no limit */
};
struct address;

/* ENOMEM. */
clave_err clave__address_limit_init(struct address_limit *l, const struct clave_mem *mem);
/* Call it when no connection is counted any more. */
void clave__address_limit_fini(struct address_limit *l);
/* Sets the limits as in struct server_run_options. Existing connections stay. */
void clave__address_limit_set(struct address_limit *l, int max_per_address, int max_sessionless);

/* Counts a new connection. Returns NULL if it may stay; *out is then its address, or NULL for a
 * Unix socket, which is not counted. Otherwise returns why it is turned away. */
const char *clave__address_limit_enter(struct address_limit *l, const struct peer_addr *peer,
                                       struct address **out);
/* One of the address's connections now has a session, or is gone. `a` may be NULL. */
void clave__address_limit_note_session(struct address *a);
void clave__address_limit_leave(struct address_limit *l, struct address *a, bool has_session);

#endif
