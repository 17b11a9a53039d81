/* tls_refusal.h - the certificate that a handshake was refused for: what is to be said of it is
 * kept, since OpenSSL has dropped it by the time that somebody asks. */
#ifndef CLAVE_RUNTIME_TLS_TLS_REFUSAL_H
#define CLAVE_RUNTIME_TLS_TLS_REFUSAL_H

#include "clave/mem.h"
#include "runtime/tls/openssl.h"

struct tls_shown {
    char subject[160];
    char names[200];
};

struct tls_refusal {
    const struct clave_mem *mem;
    struct tls_shown *shown; /* of `mem`; NULL: none was refused, or there was no memory for it */
};

/* What the SSL refuses is noted there. */
void clave__tls_refusal_attach(const struct openssl *lib, SSL *ssl, struct tls_refusal *r);
/* The verify callback of a context, all SSLs of which have a refusal attached. */
int clave__tls_refusal_on_verified(int fine, X509_STORE_CTX *found);

#endif
