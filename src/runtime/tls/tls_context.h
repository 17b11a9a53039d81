/* tls_context.h - what one side of TLS connections trusts and presents, read from its files: a
 * client's clave_tls, or a server's.
 *
 * Map of src/runtime/tls: openssl loads the library; tls_context has the certificates and keys; a
 * tls_filter is one connection. */
#ifndef CLAVE_RUNTIME_TLS_TLS_CONTEXT_H
#define CLAVE_RUNTIME_TLS_TLS_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/log_line.h"
#include "clave/tls.h"
#include "runtime/start_error.h"
#include "runtime/tls/openssl.h"

/* ZooKeeper's ssl.clientAuth: must clients present a certificate? One that is presented is always
 * verified. */
enum tls_clients { TLS_CLIENTS_NEED, TLS_CLIENTS_WANT, TLS_CLIENTS_NONE };

enum tls_file { TLS_CA, TLS_CERT, TLS_KEY, TLS_FILES };

struct clave_tls {
    atomic_uint refs;
    const struct openssl *lib;
    BIO_METHOD *bytes; /* how a connection passes bytes to OpenSSL (openssl.h) */
    bool serves;
    enum tls_clients clients;
    const char *alpn, *to_foreign; /* as in tls_server_options */
    bool any_name;
    char *server_name;      /* NULL: the system's list */
    char *files[TLS_FILES]; /* NULL: none */
    pthread_mutex_t mutex;
    SSL_CTX *context; /* under the mutex, as is everything below */
    struct stat read[TLS_FILES];
};

struct tls_server_options {
    const char *ca_file; /* NULL: only with TLS_CLIENTS_NONE */
    const char *cert_file;
    const char *key_file; /* NULL: in cert_file */
    enum tls_clients clients;
    /* Static texts. The only protocol that clients may agree on, if they name any; NULL: there is
     * nothing to agree on. */
    const char *alpn;
    const char *to_foreign; /* the answer to who does not speak TLS; NULL: TLS's own */
};

/* ETLS, EIO, ENOMEM, as clave_tls_new. */
clave_err clave__tls_context_serve(clave_tls **out, const struct tls_server_options *o,
                                   const struct fault *f);
/* The context that the environment names, for clients that were given none: they share it while the
 * variables stay the same, because the system's list of authorities alone takes megabytes. */
clave_err clave__tls_context_of_environment(clave_tls **out, const struct fault *f);
clave_tls *clave__tls_context_ref(clave_tls *t);
/* Reloads the files; open connections are unchanged. After an error the previous ones stay in use.
 */
clave_err clave__tls_context_reload(clave_tls *t, const struct fault *f);
/* Likewise, if one of them has changed since. */
clave_err clave__tls_context_refresh(clave_tls *t, const struct fault *f);
/* true: the certificate that it presents is valid now, or it presents none. */
bool clave__tls_context_in_date(clave_tls *t);
/* A server's: warns if it is not. It is used all the same: holders of locks over open connections
 * must not lose them. */
void clave__tls_context_tell_date(clave_tls *t, const struct log *log);
/* A server's, at SIGHUP: _reload. false: it failed, and the log says why. From any thread. */
bool clave__tls_context_renew(clave_tls *t, const struct log *log);
/* For one connection; NULL: out of memory. */
SSL *clave__tls_context_begin(clave_tls *t);

#endif
