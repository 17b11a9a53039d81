/* proxy_protocol.h - what a proxy says about a connection before anything else: HAProxy's PROXY
 * protocol, versions 1 and 2 (doc/proxy-protocol.txt in HAProxy). A filter of the channel reads the
 * header, even before TLS, and lets everything after it pass. */
#ifndef CLAVE_RUNTIME_HTTP_PROXY_PROTOCOL_H
#define CLAVE_RUNTIME_HTTP_PROXY_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/ip_range.h"
#include "runtime/channel.h"

/* Longer headers are refused. Version 1 has at most 107 bytes; most of a long header of version 2
 * are extensions. */
enum { PROXY_MAX_HEADER = 4096 };

enum proxy_parsed { PROXY_MORE, PROXY_DONE, PROXY_FAULT };

/* Parses a header. PROXY_MORE: so far, this is the beginning of one. PROXY_DONE: the first *used
 * bytes are the header. *is_named: it names the client, whose address is then in `out`, with its
 * text; otherwise (UNKNOWN, LOCAL, an address that is not IP) the connection is the proxy's own. */
enum proxy_parsed clave__proxy_parse(const void *p, size_t n, size_t *used, bool *is_named,
                                     struct peer_addr *out);

/* ---- the filter ------------------------------------------------------------------------------ */

struct http_proxy_events {
    /* The header has arrived. `named` is the client; NULL: the proxy itself. Return false to close
     * the connection. */
    bool (*named)(struct channel *ch, const struct peer_addr *named);
    /* What arrived is not such a header; the channel is closed. */
    void (*failed)(struct channel *ch);
};

/* Adds the filter to a channel that is SECURING, before any other filter. false: no memory. */
bool clave__http_proxy_add_filter(struct channel *ch, const struct http_proxy_events *events);

#endif
