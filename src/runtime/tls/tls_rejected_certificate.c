/* tls_rejected_certificate.c - keeps what to report of a rejected certificate. Called by OpenSSL in
 * a handshake.
 */
#include "runtime/tls/tls_rejected_certificate.h"

#include "base/memory.h"

/* The place of a refusal among what belongs to its SSL (OpenSSL's SSL_get_app_data). */
enum { REFUSAL_DATA = 0 };

void clave__tls_refusal_attach(const struct openssl *lib, SSL *ssl, struct tls_refusal *r)
{
    lib->SSL_set_ex_data(ssl, REFUSAL_DATA, r);
}

/* "DNS:zk1, IP Address:10.0.0.1"; bytes that are not text would go into a log. */
static void tls_rejected_certificate_put_names(const struct openssl *lib, X509 *cert, char *out,
                                               size_t cap)
{
    int at = lib->X509_get_ext_by_NID(cert, NID_subject_alt_name, -1), n = 0;
    BIO *bio = at >= 0 ? lib->BIO_new(lib->BIO_s_mem()) : NULL;
    if (bio && lib->X509V3_EXT_print(bio, lib->X509_get_ext(cert, at), 0, 0) == 1)
        n = lib->BIO_read(bio, out, (int)cap - 1);
    lib->BIO_free(bio);
    out[n > 0 ? n : 0] = '\0';
    for (; *out; out++)
        if (*out < ' ' || *out > '~')
            *out = '?';
}

/* The certificate is gone when the handshake has failed, so what to report of it is kept. */
int clave__tls_refusal_on_verified(int fine, X509_STORE_CTX *found)
{
    const struct openssl *lib = clave__openssl_loaded();
    SSL *ssl = lib->X509_STORE_CTX_get_ex_data(found, lib->SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls_refusal *r = lib->SSL_get_ex_data(ssl, REFUSAL_DATA);
    X509 *cert = lib->X509_STORE_CTX_get0_cert(found);
    if (fine || r->shown || !cert)
        return fine;
    r->shown = clave__mem_zalloc(r->mem, sizeof *r->shown);
    if (r->shown) {
        lib->X509_NAME_oneline(lib->X509_get_subject_name(cert), r->shown->subject,
                               sizeof r->shown->subject);
        tls_rejected_certificate_put_names(lib, cert, r->shown->names, sizeof r->shown->names);
    }
    return fine;
}
