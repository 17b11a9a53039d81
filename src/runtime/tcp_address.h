/* tcp_address.h - the text of an address to listen on: "host:port", "[v6]:port", "host" alone for
 * the standard port, "*:port" or ":port" for every address of the machine. */
#ifndef CLAVE_RUNTIME_TCP_ADDRESS_H
#define CLAVE_RUNTIME_TCP_ADDRESS_H

#include "runtime/start_error.h"

struct tcp_address {
    char host[256]; /* without brackets; "" or "*": every address */
    char port[8];
};
/* EINVAL: the fault says what to write instead. */
clave_err clave__tcp_address_parse(const char *spec, int standard_port, struct tcp_address *out,
                                   const struct fault *f);

#endif
