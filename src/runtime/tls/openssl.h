/* openssl.h - OpenSSL: its functions, loaded on first use; a BIO for the bytes of a connection in
 * place of a socket; and the certificate that it rejected. Linked in the usual way, its libraries
 * would cost every run of the program without TLS 0.7 ms, and every process 1.6 MB. */
#ifndef CLAVE_RUNTIME_TLS_OPENSSL_H
#define CLAVE_RUNTIME_TLS_OPENSSL_H

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdbool.h>

#include "base/buf.h"
#include "clave/mem.h"

/* ---- the functions --------------------------------------------------------------------------- */

#define OPENSSL_FUNCTIONS(X)                                                                       \
    X(OPENSSL_init_ssl)                                                                            \
    X(TLS_client_method)                                                                           \
    X(TLS_server_method)                                                                           \
    X(SSL_CTX_new)                                                                                 \
    X(SSL_CTX_free)                                                                                \
    X(SSL_CTX_ctrl)                                                                                \
    X(SSL_CTX_set_options)                                                                         \
    X(SSL_CTX_set_num_tickets)                                                                     \
    X(SSL_CTX_set_default_passwd_cb)                                                               \
    X(SSL_CTX_set_default_passwd_cb_userdata)                                                      \
    X(SSL_CTX_use_certificate_chain_file)                                                          \
    X(SSL_CTX_use_PrivateKey_file)                                                                 \
    X(SSL_CTX_load_verify_file)                                                                    \
    X(SSL_CTX_set_default_verify_paths)                                                            \
    X(SSL_CTX_set_client_CA_list)                                                                  \
    X(SSL_CTX_set_alpn_select_cb)                                                                  \
    X(SSL_CTX_set_verify)                                                                          \
    X(SSL_CTX_get0_certificate)                                                                    \
    X(SSL_load_client_CA_file)                                                                     \
    X(SSL_new)                                                                                     \
    X(SSL_free)                                                                                    \
    X(SSL_ctrl)                                                                                    \
    X(SSL_set_bio)                                                                                 \
    X(SSL_set_accept_state)                                                                        \
    X(SSL_set_connect_state)                                                                       \
    X(SSL_set_hostflags)                                                                           \
    X(SSL_set1_host)                                                                               \
    X(SSL_get0_param)                                                                              \
    X(SSL_do_handshake)                                                                            \
    X(SSL_read)                                                                                    \
    X(SSL_write)                                                                                   \
    X(SSL_shutdown)                                                                                \
    X(SSL_get_error)                                                                               \
    X(SSL_get_verify_result)                                                                       \
    X(SSL_get_ex_data_X509_STORE_CTX_idx)                                                          \
    X(SSL_set_ex_data)                                                                             \
    X(SSL_get_ex_data)                                                                             \
    X(SSL_get0_peer_certificate)                                                                   \
    X(SSL_get_certificate)                                                                         \
    X(X509_STORE_CTX_get_ex_data)                                                                  \
    X(X509_STORE_CTX_get0_cert)                                                                    \
    X(X509_get_subject_name)                                                                       \
    X(X509_get_issuer_name)                                                                        \
    X(X509_self_signed)                                                                            \
    X(X509_NAME_cmp)                                                                               \
    X(X509_get0_notBefore)                                                                         \
    X(X509_get0_notAfter)                                                                          \
    X(X509_cmp_current_time)                                                                       \
    X(X509_NAME_get0_der)                                                                          \
    X(X509_NAME_oneline)                                                                           \
    X(X509_get_ext_by_NID)                                                                         \
    X(X509_get_ext)                                                                                \
    X(X509V3_EXT_print)                                                                            \
    X(X509_VERIFY_PARAM_set1_ip_asc)                                                               \
    X(X509_verify_cert_error_string)                                                               \
    X(BIO_meth_new)                                                                                \
    X(BIO_meth_free)                                                                               \
    X(BIO_meth_set_read)                                                                           \
    X(BIO_meth_set_write)                                                                          \
    X(BIO_meth_set_ctrl)                                                                           \
    X(BIO_new)                                                                                     \
    X(BIO_free)                                                                                    \
    X(BIO_s_mem)                                                                                   \
    X(BIO_read)                                                                                    \
    X(BIO_set_data)                                                                                \
    X(BIO_get_data)                                                                                \
    X(BIO_set_init)                                                                                \
    X(BIO_set_flags)                                                                               \
    X(BIO_clear_flags)                                                                             \
    X(ERR_clear_error)                                                                             \
    X(ERR_set_mark)                                                                                \
    X(ERR_pop_to_mark)                                                                             \
    X(ERR_get_error)                                                                               \
    X(ERR_reason_error_string)

struct openssl {
#define OPENSSL_MEMBER(name) __typeof__(name) *name;
    OPENSSL_FUNCTIONS(OPENSSL_MEMBER)
#undef OPENSSL_MEMBER
};

/* Any thread. NULL: it is not installed; *why says what is missing. */
const struct openssl *clave__openssl(const char **why);

/* ---- bytes in place of a socket -------------------------------------------------------------- */

/* The data of a BIO of this method. */
struct tls_bytes {
    const uint8_t *in; /* the caller's bytes that were not taken yet */
    size_t in_len;
    struct buf out; /* bytes for the socket */
};

/* NULL: no memory. */
BIO_METHOD *clave__tls_bytes_method(const struct openssl *lib);

/* ---- the certificate for which a handshake failed -------------------------------------------- */

struct tls_shown {
    char subject[160];
    char names[200];
    bool bears_issuers_subject;
};

/* A certificate whose subject is that of the authority that signed it: it is taken for one that is
 * signed by itself, so that nobody can verify it. */
bool clave__tls_bears_issuers_subject(const struct openssl *lib, X509 *cert);

struct tls_refusal {
    const struct clave_mem *mem;
    struct tls_shown *shown; /* allocated with `mem`; NULL: none was rejected, or there was no
                                memory to keep it */
};

/* Makes this SSL keep what it rejects in r, which must outlive it. */
void clave__tls_refusal_attach(const struct openssl *lib, SSL *ssl, struct tls_refusal *r);
/* The verify callback of a context all of whose SSLs have a refusal attached. */
int clave__tls_refusal_on_verified(int fine, X509_STORE_CTX *found);

#endif
