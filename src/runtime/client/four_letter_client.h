/* four_letter_client.h - asks a ZooKeeper server a four-letter word: "srvr", "ruok", ...
 *
 * Map of src/runtime/client, the client's sockets:
 *   uv_client           an asynchronous client on a libuv loop
 *   resolve             name lookups off the loop's thread
 *   local_paths         the directory and socket of "local:"; local_serve: serving it
 *   local_start         connecting to "local:", starting its server if need be
 *   client_settings     what a client connects to and how, from environment and files
 *   four_letter_client  one word and its answer, without a session
 * TLS is in src/runtime/tls, the API for threads in src/runtime/blocking. */
#ifndef CLAVE_RUNTIME_CLIENT_FOUR_LETTER_CLIENT_H
#define CLAVE_RUNTIME_CLIENT_FOUR_LETTER_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "clave/tls.h"

struct four_letter_server {
    const char *host; /* a name, an address or, if port is 0, the path of a Unix socket */
    uint16_t port;
    clave_tls *tls; /* NULL: no TLS */
};

/* Asks the server, and puts its answer into buf, cut to cap and NUL-terminated. Blocks for at most
 * timeout_ms. EUNREACHABLE, ETIMEDOUT, EIO, ETLS, ENOMEM. A server that has the word disabled says
 * so in its answer. */
clave_err clave__four_letter_ask(const struct four_letter_server *s, const char *word, char *buf,
                                 size_t cap, int timeout_ms);

#endif
