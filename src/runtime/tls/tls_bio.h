/* tls_bio.h - where OpenSSL finds the bytes of a connection, and where it puts them, in place of
 * a socket. */
#ifndef CLAVE_RUNTIME_TLS_TLS_BIO_H
#define CLAVE_RUNTIME_TLS_TLS_BIO_H

#include "base/buf.h"
#include "runtime/tls/openssl.h"

/* The data of a BIO of this method. */
struct tls_bytes {
    const uint8_t *in; /* the caller's: as much of it as was not taken yet */
    size_t in_len;
    struct buf out; /* for the socket */
};

/* NULL: out of memory. */
BIO_METHOD *clave__tls_bytes_method(const struct openssl *lib);

#endif
