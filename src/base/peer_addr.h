/* peer_addr.h - the client at the other end of a connection. */
#ifndef CLAVE_BASE_PEER_ADDR_H
#define CLAVE_BASE_PEER_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
