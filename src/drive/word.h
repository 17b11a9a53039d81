/* word.h - the four-letter words of a ZooKeeper server: "srvr", "ruok", ... */
#ifndef CLAVE_DRIVE_WORD_H
#define CLAVE_DRIVE_WORD_H

#include <stddef.h>
#include <stdint.h>

#include "clave/err.h"

/* Asks the server at host (a name, an address, or with port 0 the path of a Unix socket)
 * and puts its answer, cut to cap and terminated, into buf. Blocks for timeout_ms at most.
 * EUNREACHABLE, ETIMEDOUT, EIO. A server whose whitelist lacks the word says so in text. */
clave_err clave__word_ask(const char *host, uint16_t port, const char *word, char *buf, size_t cap,
                          int timeout_ms);

#endif
