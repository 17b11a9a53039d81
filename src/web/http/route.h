/* route.h - an endpoint: method, pattern, role, arguments, handler. The table of all is routes.c;
 * head_checks.c finds the one that a request is for: the first whose pattern and method match. */
#ifndef CLAVE_WEB_HTTP_ROUTE_H
#define CLAVE_WEB_HTTP_ROUTE_H

#include "web/http/exchange.h"

struct route {
    const char *method; /* a route of GET answers HEAD too */
    /* Literal text, {id} for one segment, {path} for all segments up to the end or to the
     * literal text after it: a znode's path, which begins with '/' as a parameter. */
    const char *pattern;
    /* What is needed, on {path} when the pattern has one; when it has none, anywhere: the handler
     * asks clave__web_may about the paths of the body then. */
    enum web_role role;
    web_handler *handle;
    const char *query; /* the arguments it knows: "limit after"; NULL: none; "*": any */
    enum {
        ROUTE_QUIET = 1,   /* no line in the audit: it changes nothing that lasts */
        ROUTE_GUARDED = 2, /* it takes Clave-Guard, which others refuse */
        ROUTE_OWN = 4, /* a renewal, a release, a look at one's own session or claim: needs nothing
                          of what all senders share (sender.h), and its body is small */
        ROUTE_FLEETLOCK = 8,    /* it is there with web_access.fleetlock only, and may be open to
                                    some addresses (web_access.fleets) */
        ROUTE_CONDITIONAL = 16, /* it judges If-Match and If-None-Match, which others refuse */
        ROUTE_KEYED = 32,       /* it judges Idempotency-Key, which other POSTs refuse */
    } flags;
};

struct route_table {
    const struct route *at;
    size_t n;
};

#endif
