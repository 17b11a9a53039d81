/* tls.h - TLS: which servers a client trusts, and what certificate it presents. It is used with
 * every host list that begins with "tls:" ("tls:zk1:2281,zk2:2281/chroot"), and with no other.
 *
 * A server's certificate must be issued by a trusted authority, be within its dates, and have the
 * host's name (or address) as the list has it; this is checked before any request is sent. TLS 1.2
 * is the oldest version accepted. The files are checked again before every attempt to connect, so
 * that a renewed certificate is picked up; if the new files cannot be used, the old ones remain in
 * use. libssl is loaded with the first clave_tls, so a program that makes none does not need it.
 * libssl allocates with libc, whatever allocator hooks a client has.
 *
 * Any thread may call anything here. */
#ifndef CLAVE_TLS_H
#define CLAVE_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include "clave/err.h"
#include "clave/options.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_tls clave_tls; /* opaque; any thread, any number of clients at a time */

typedef struct clave_tls_options {
    size_t size;           /* CLAVE_TLS_OPTIONS_INIT sets it: clave/options.h */
    const char *ca_file;   /* PEM: the authorities to trust; NULL: the system's */
    const char *cert_file; /* PEM: the certificate to present to servers that ask for one, followed
                              by those up to the authority; NULL: none */
    const char *key_file;  /* PEM, without a password; NULL: it is in cert_file */
    const char *server_name; /* the name that the servers' certificates have, and that is sent as
                                SNI; NULL: each server's own in the host list */
    bool any_name; /* accept every certificate of a trusted authority; any other server that has one
                      can then impersonate yours */
} clave_tls_options;
#define CLAVE_TLS_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_tls_options)

/* Reads the files. On CLAVE_OK *out belongs to the caller, who frees it with clave_tls_free; on an
 * error it is NULL. `o` NULL: the files that the environment names (CLAVE_TLS_CA, CLAVE_TLS_CERT,
 * CLAVE_TLS_KEY, CLAVE_TLS_NAME), which a client without a clave_tls of its own uses, too. On an
 * error `fault` (cap bytes; may be NULL when cap is 0) says which file is wrong, and how. ETLS:
 * there is no libssl (a program linked with -static never has it), or a file's contents are wrong.
 * EIO: a file cannot be read. EINVAL: the options' size, see clave/options.h. ENOMEM. */
CLAVE_METHOD clave_err clave_tls_new(clave_tls **out, const clave_tls_options *o, char *fault,
                                     size_t cap);
/* Gives up the caller's reference; clients that use the context keep it. NULL is ignored. */
CLAVE_EXPORT void clave_tls_free(clave_tls *t);

#ifdef __cplusplus
}
#endif
#endif
