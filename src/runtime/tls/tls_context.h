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

/* ZooKeeper's ssl.clientAuth: whether clients have to present a certificate. One that is presented
 * is always verified. */
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
    char *server_name;      /* NULL: the name in the host list */
    char *files[TLS_FILES]; /* NULL: none */
    pthread_mutex_t mutex;
    SSL_CTX *context; /* under the mutex, as is everything below */
    struct stat read[TLS_FILES];
};

struct tls_server_options {
    const char *ca_file; /* NULL only with TLS_CLIENTS_NONE */
    const char *cert_file;
    const char *key_file; /* NULL: in cert_file */
    enum tls_clients clients;
    /* Static texts. The only protocol that clients may agree on, if they name any; NULL: there is
     * nothing to agree on. */
    const char *alpn;
    const char *to_foreign; /* sent to clients that do not speak TLS; NULL: TLS's own answer */
};

/* ETLS, EIO, ENOMEM, as clave_tls_new. */
clave_err clave__tls_context_serve(clave_tls **out, const struct tls_server_options *o,
                                   const struct fault *f);
/* The context that the environment names, for clients that were given none. They share it as long
 * as the variables stay the same, because the system's list of authorities alone takes
 * megabytes. */
clave_err clave__tls_context_of_environment(clave_tls **out, const struct fault *f);
clave_tls *clave__tls_context_ref(clave_tls *t);
/* Reads the files again; open connections are unaffected. After an error the previous files remain
 * in use. */
clave_err clave__tls_context_reload(clave_tls *t, const struct fault *f);
/* The same, but only if one of the files has changed. */
clave_err clave__tls_context_refresh(clave_tls *t, const struct fault *f);
/* True if the certificate that it presents is valid now, or if it presents none. */
bool clave__tls_context_in_date(clave_tls *t);
/* For a server's context: logs a warning if it is not. The certificate is used all the same,
 * because holders of locks over open connections must not lose them. */
void clave__tls_context_tell_date(clave_tls *t, const struct log *log);
/* For a server's context, at SIGHUP: _reload. Returns false if that failed; the log says why. Any
 * thread. */
bool clave__tls_context_renew(clave_tls *t, const struct log *log);
/* Makes an SSL for one connection. NULL: no memory. */
SSL *clave__tls_context_begin(clave_tls *t);

#endif
