/* tls_channel.h - TLS: whom a client trusts, and what it shows of itself. It is used with every
 * host list that begins with "tls:" ("tls:zk1:2281,zk2:2281/chroot"), and with no other.
 *
 * A server's certificate has to come from a trusted authority, to be in date, and to have the
 * host's name (or address) as the list has it; that is checked before a byte is sent. TLS 1.2 is
 * the oldest that is spoken. The files are looked at again before every attempt to connect, so
 * that a renewed certificate is taken up; while the new ones cannot be used, the old ones are.
 * libssl is loaded with the first clave_tls: a program that makes none does without it. It takes
 * its memory from libc, whatever the hooks of a client are. */
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
    size_t size;             /* CLAVE_TLS_OPTIONS_INIT sets it: clave/options.h */
    const char *ca_file;     /* PEM: the authorities that are trusted; NULL: the system's */
    const char *cert_file;   /* PEM: what is shown to servers that ask for it: the certificate
                                first, then those up to the authority; NULL: nothing */
    const char *key_file;    /* PEM, without a password; NULL: it is in cert_file */
    const char *server_name; /* the name that the servers' certificates have, and that is asked
                                for; NULL: each its own in the host list */
    bool any_name; /* every certificate that comes from a trusted authority will do: each of its
                      other servers can then pass for one of these */
} clave_tls_options;
#define CLAVE_TLS_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_tls_options)

/* Reads the files. `o` NULL: those that the environment names (CLAVE_TLS_CA, CLAVE_TLS_CERT,
 * CLAVE_TLS_KEY, CLAVE_TLS_NAME), which is also what a client has without a clave_tls of its own.
 * `fault` (cap bytes; may be NULL when cap is 0) tells which file, and what is wrong with it:
 * ETLS (no libssl, which a program linked with -static never has; or a file is not what it should
 * be), EIO (a file cannot be read), EINVAL (the options' size, see clave/options.h), ENOMEM. */
CLAVE_EXPORT clave_err clave_tls_new(clave_tls **out, const clave_tls_options *o, char *fault,
                                     size_t cap);
/* Clients that have it go on with it. NULL is ignored. */
CLAVE_EXPORT void clave_tls_free(clave_tls *t);

#ifdef __cplusplus
}
#endif
#endif
