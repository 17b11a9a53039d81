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

#endif
