/* ip_range.h - IP addresses and ranges of them as text: "10.0.0.7", "10.0.0.0/8", "fd00::/8". */
#ifndef CLAVE_BASE_IP_RANGE_H
#define CLAVE_BASE_IP_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The addresses that begin with the first `bits` of `ip`. One address is a range of all its bits.
 */
struct ip_range {
    uint8_t family; /* 4 or 6 */
    uint8_t ip[16]; /* an IPv4 address is in the first four bytes */
    unsigned bits;
};

/* An address of IPv4 or IPv6, without brackets, port and zone, and optionally "/bits". */
bool clave__ip_range_parse(struct ip_range *r, const char *text, size_t n);
/* Every address of `part` is in `r`. */
bool clave__ip_range_has(const struct ip_range *r, const struct ip_range *part);

/* ---- the client at the other end of a connection --------------------------------------------- */

struct peer_addr {
    uint8_t family; /* 4, 6, or 0 for a Unix socket */
    uint8_t ip[16];
    uint16_t port;
    char text[64]; /* as cons shows it: "127.0.0.1:42100", "local" */
    bool secure;   /* over TLS */
    bool has_uid;  /* the system says who the client is: on Unix sockets only */
    bool is_gate;  /* HTTP of this process, which has its own rules of who may come in */
    uint32_t uid;  /* an identity of the scheme uid */
};
/* Of `ip`: the bytes by which the bounds on one address count. A host with IPv6 has the 2^64
 * addresses of a network to itself; of an IPv4 address all bytes count, mapped to IPv6 or not. */
static inline size_t clave__peer_counted(const struct peer_addr *p)
{
    return p->family == 6 ? 8 : sizeof p->ip;
}

#endif
