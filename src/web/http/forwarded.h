/* forwarded.h - whom a request is from that a proxy has passed on.
 *
 * A proxy that is named in the configuration is believed what X-Forwarded-For says: the last
 * address in it that is not such a proxy's is the client's. Nobody else is believed; but a request
 * with such a header is from no program of this machine: neither "loopback" nor a user of a Unix
 * socket. */
#ifndef CLAVE_WEB_HTTP_FORWARDED_H
#define CLAVE_WEB_HTTP_FORWARDED_H

#include <stdbool.h>
#include <stddef.h>

struct ip_range;
struct web_access;
struct web_exchange;
struct web_peer;

/* "ADDRESS", "ADDRESS:PORT" or "[ADDRESS]:PORT". false: it is none. */
bool clave__forwarded_parse(struct ip_range *out, const char *text, size_t n);
/* The connection is one of a proxy that is named. */
bool clave__forwarded_is_proxy(const struct web_access *a, const struct web_peer *peer);
/* Sets x->peer, from the connection's peer and the headers. */
void clave__web_find_peer(struct web_exchange *x);
/* What clients put before a path of the gate, which begins with '/': the prefix behind a proxy, and
 * "" for a request that came straight here without it. */
const char *clave__web_prefix(const struct web_exchange *x);

#endif
