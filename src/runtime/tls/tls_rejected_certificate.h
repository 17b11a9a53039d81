/* tls_rejected_certificate.h - the certificate that a handshake failed for. What to report of it is
 * kept: OpenSSL has dropped the certificate by the time of the report. */
#ifndef CLAVE_RUNTIME_TLS_TLS_REJECTED_CERTIFICATE_H
#define CLAVE_RUNTIME_TLS_TLS_REJECTED_CERTIFICATE_H

#include "clave/mem.h"
#include "runtime/tls/openssl.h"

struct tls_shown {
    char subject[160];
    char names[200];
};

struct tls_refusal {
    const struct clave_mem *mem;
    struct tls_shown *shown; /* of `mem`; NULL: none was rejected, or out of memory to keep it */
};

/* What this SSL rejects is kept in r, which must outlive it. */
void clave__tls_refusal_attach(const struct openssl *lib, SSL *ssl, struct tls_refusal *r);
/* The verify callback of a context, all SSLs of which have a refusal attached. */
int clave__tls_refusal_on_verified(int fine, X509_STORE_CTX *found);

#endif
