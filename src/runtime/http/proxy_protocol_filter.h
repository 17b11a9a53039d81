/* proxy_protocol_filter.h - the filter of a channel that reads a PROXY header (proxy_protocol.h)
 * before anything else, TLS included, and then lets everything pass. */
#ifndef CLAVE_RUNTIME_HTTP_PROXY_PROTOCOL_FILTER_H
#define CLAVE_RUNTIME_HTTP_PROXY_PROTOCOL_FILTER_H

#include "runtime/channel.h"
#include "runtime/http/proxy_protocol.h"

struct http_proxy_events {
    /* The header has come. `named`: who the client is; NULL: the proxy itself. false: close it. */
    bool (*named)(struct channel *ch, const struct peer_addr *named);
    /* What came is no such header; the channel is closed. */
    void (*failed)(struct channel *ch);
};

/* To a channel that is SECURING, before any other filter. false: out of memory. */
bool clave__http_proxy_add_filter(struct channel *ch, const struct http_proxy_events *events);

#endif
