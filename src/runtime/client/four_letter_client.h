/* four_letter_client.h - the four-letter words of a ZooKeeper server: "srvr", "ruok", ... */
#ifndef CLAVE_RUNTIME_CLIENT_FOUR_LETTER_CLIENT_H
#define CLAVE_RUNTIME_CLIENT_FOUR_LETTER_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "clave/tls.h"

struct four_letter_server {
    const char *host; /* a name, an address, or with port 0 the path of a Unix socket */
    uint16_t port;
    clave_tls *tls; /* NULL: in the clear */
};

/* Asks it, and puts its answer, cut to cap and terminated, into buf. Blocks for timeout_ms at
 * most. EUNREACHABLE, ETIMEDOUT, EIO, ETLS, ENOMEM. A server whose whitelist lacks the word says so
 * in text. */
clave_err clave__four_letter_ask(const struct four_letter_server *s, const char *word, char *buf,
                                 size_t cap, int timeout_ms);

#endif
