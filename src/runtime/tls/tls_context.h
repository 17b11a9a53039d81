/* tls_context.h - what one side of TLS connections trusts and shows, read from its files: a
 * client's clave_tls, or the one of a server. */
#ifndef CLAVE_RUNTIME_TLS_TLS_CONTEXT_H
#define CLAVE_RUNTIME_TLS_TLS_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "clave/tls.h"
#include "runtime/start_error.h"
#include "runtime/tls/openssl.h"

/* ZooKeeper's ssl.clientAuth: whether clients have to show a certificate. One that is shown has
 * to be good. */
enum tls_clients { TLS_CLIENTS_NEED, TLS_CLIENTS_WANT, TLS_CLIENTS_NONE };

enum tls_file { TLS_CA, TLS_CERT, TLS_KEY, TLS_FILES };

struct clave_tls {
    atomic_uint refs;
    const struct openssl *lib;
    BIO_METHOD *bytes; /* how a channel gives and takes them (tls_channel.c) */
    bool serves;
    enum tls_clients clients;
    bool any_name;
    char *server_name;      /* NULL: the host's own */
    char *files[TLS_FILES]; /* NULL: none */
    pthread_mutex_t mutex;
    SSL_CTX *context; /* under the mutex, as what follows */
    struct stat read[TLS_FILES];
};

struct tls_server_options {
    const char *ca_file; /* NULL: only with TLS_CLIENTS_NONE */
    const char *cert_file;
    const char *key_file; /* NULL: in cert_file */
    enum tls_clients clients;
};

/* ETLS, EIO, ENOMEM, as clave_tls_new. */
clave_err clave__tls_context_serve(clave_tls **out, const struct tls_server_options *o,
                                   const struct fault *f);
/* What the environment names, for clients that were given none: they share it while that stays the
 * same, for the system's list of authorities alone takes megabytes. */
clave_err clave__tls_context_of_environment(clave_tls **out, const struct fault *f);
clave_tls *clave__tls_context_ref(clave_tls *t);
/* Reads the files again; connections that are open stay as they are. On an error what was read
 * before stays. */
clave_err clave__tls_context_reload(clave_tls *t, const struct fault *f);
/* Likewise, when one of them has changed since. */
clave_err clave__tls_context_refresh(clave_tls *t, const struct fault *f);
/* Whether now is a time that the certificate it shows is for; true: it shows none. */
bool clave__tls_context_in_date(clave_tls *t);
/* For one connection; NULL: out of memory. */
SSL *clave__tls_context_begin(clave_tls *t);

#endif
