/* http_evict.h - which connection goes when there is no room for another.
 *
 * A sender is known once a request of the connection was admitted with an identity (a token, a
 * session's secret, a user, a certificate), while it has no more than four fifths of all places by
 * that. A connection of a known sender never has to go. When
 * all places are taken, a new connection takes the place of one of the address (IPv4 address, or
 * IPv6 network of 64 bits; all users of a Unix socket are one each) with the most connections of
 * unknown senders, to within a factor of two: one that was answered 401 if there is one, else the
 * one that has been without a request for the longest, else the one whose request is the oldest.
 * Exempt addresses (proxies, which speak for many) have no share: their connections stay, but when
 * there is no other to go, the one of them that was answered and has been idle for the longest
 * goes. A proxy opens another one when it needs it.
 *
 * So with N places a holder's new connection stays while its address has fewer than half of the
 * unknown connections of another one; among addresses that have as many each (a flood from
 * many), until R new ones a second have gone through all N: it has N/R seconds for its handshake
 * and the head of its request, whatever the number of addresses. 20000 places and a flood of 5000 a
 * second leave 4 s. */
#ifndef CLAVE_RUNTIME_HTTP_HTTP_EVICT_H
#define CLAVE_RUNTIME_HTTP_HTTP_EVICT_H

#include <stdbool.h>

#include "base/ip_range.h"
#include "base/list.h"
#include "base/map.h"
#include "clave/mem.h"

enum { HTTP_SHARE_BUCKETS = 32 };

/* The first ones go first. */
enum http_standing { HTTP_TURNED_AWAY, HTTP_UNASKED, HTTP_ASKING, HTTP_KNOWN, HTTP_STANDINGS };

struct http_shares {
    const struct clave_mem *mem;
    struct map by_address;
    struct list with[HTTP_SHARE_BUCKETS]; /* addresses, by the logarithm of their unknown ones */
    struct list idle; /* connections of exempt addresses that were answered, the oldest first */
};

struct http_address; /* opaque */

/* Part of a connection. */
struct http_evict {
    struct list link;
    struct http_address *of; /* NULL: in none */
    enum http_standing standing;
};

clave_err clave__http_shares_init(struct http_shares *all, const struct clave_mem *mem,
                                  uint64_t seed);
/* Every share has been left. */
void clave__http_shares_fini(struct http_shares *all);
/* A connection of this peer has come. ENOMEM. */
clave_err clave__http_evict_join(struct http_shares *all, struct http_evict *s,
                                 const struct peer_addr *peer, bool is_exempt);
/* Its sender is that of each request: a connection of an exempt address is never HTTP_KNOWN. */
bool clave__http_evict_is_exempt(const struct http_evict *s);
/* HTTP_KNOWN stays so. HTTP_UNASKED: it was answered, and is idle. */
void clave__http_evict_set(struct http_shares *all, struct http_evict *s, enum http_standing to);
void clave__http_evict_leave(struct http_shares *all, struct http_evict *s);
/* The one that is to go; NULL: none. */
struct http_evict *clave__http_shares_victim(struct http_shares *all);

#endif
