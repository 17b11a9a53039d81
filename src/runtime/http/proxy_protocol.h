/* proxy_protocol.h - what a proxy says of a connection before anything else: HAProxy's PROXY
 * protocol, versions 1 and 2 (doc/proxy-protocol.txt of HAProxy). A filter of the channel reads the
 * header, before TLS too, and then lets everything pass. */
#ifndef CLAVE_RUNTIME_HTTP_PROXY_PROTOCOL_H
#define CLAVE_RUNTIME_HTTP_PROXY_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/ip_range.h"
#include "runtime/channel.h"

/* A header that is longer is refused; version 1 has 107 bytes, of version 2 most are extensions. */
enum { PROXY_MAX_HEADER = 4096 };

enum proxy_parsed { PROXY_MORE, PROXY_DONE, PROXY_FAULT };

/* PROXY_MORE: so far it is the beginning of a header. PROXY_DONE: *used bytes are the header.
 * *is_named: it names the client, whose address is in `out`, with the text; else (UNKNOWN, LOCAL, a
 * kind of address that is no IP) the connection is the proxy's own. */
enum proxy_parsed clave__proxy_parse(const void *p, size_t n, size_t *used, bool *is_named,
                                     struct peer_addr *out);

/* ---- the filter ------------------------------------------------------------------------------ */

struct http_proxy_events {
    /* The header has come. `named`: who the client is; NULL: the proxy itself. false: close it. */
    bool (*named)(struct channel *ch, const struct peer_addr *named);
    /* What came is no such header; the channel is closed. */
    void (*failed)(struct channel *ch);
};

/* To a channel that is SECURING, before any other filter. false: out of memory. */
bool clave__http_proxy_add_filter(struct channel *ch, const struct http_proxy_events *events);

#endif
