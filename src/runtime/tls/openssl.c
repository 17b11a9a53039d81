/* openssl.c - see openssl.h. The table of functions is written once, and used only if every
 * function was found. What has to be reported about a rejected certificate is kept during the
 * handshake, because OpenSSL has dropped it by the time of the report. */
#include "runtime/tls/openssl.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "runtime/load_library.h"

/* ---- the functions --------------------------------------------------------------------------- */

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define LIBSSL "libssl.so." TEXT(OPENSSL_SHLIB_VERSION)
LOADS_LIBRARY(LIBSSL, "recommended", "tls", "TLS between clients and servers");

/* Written once, under `once`. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct openssl functions;
static char fault[256];

static void openssl_load(void)
{
    static const struct load_row wanted[] = {
#define OPENSSL_ROW(name) {#name, offsetof(struct openssl, name)},
        OPENSSL_FUNCTIONS(OPENSSL_ROW)
#undef OPENSSL_ROW
    };
    const char *why;
    void *lib = clave__load(LIBSSL, &why); /* never unloaded, because it has thread-local data */
    if (!lib) {
        snprintf(fault, sizeof fault, "cannot load OpenSSL: %s", why);
        return;
    }
    /* Some are in libcrypto, which libssl loads. */
    const char *missing =
        clave__load_functions(lib, wanted, sizeof wanted / sizeof *wanted, &functions);
    if (missing) {
        snprintf(fault, sizeof fault, "%s has no function %s", LIBSSL, missing);
        return;
    }
    /* The program may exit while the thread of a loop is inside OpenSSL. */
    functions.OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
}

const struct openssl *clave__openssl(const char **why)
{
    pthread_once(&once, openssl_load);
    *why = fault;
    return fault[0] ? NULL : &functions;
}

/* For functions that OpenSSL calls: it must have been loaded. */
static const struct openssl *openssl_loaded(void)
{
    return &functions;
}

/* ---- its view of a socket -------------------------------------------------------------------- */

static int bio_read(BIO *bio, char *to, int cap)
{
    const struct openssl *lib = openssl_loaded();
    struct tls_bytes *b = lib->BIO_get_data(bio);
    size_t n = b->in_len < (size_t)cap ? b->in_len : (size_t)cap;
    lib->BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    if (n == 0) {
        lib->BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
        return -1;
    }
    memcpy(to, b->in, n);
    b->in += n;
    b->in_len -= n;
    return (int)n;
}

/* An error is final: there is no memory, or the other side keeps asking and never reads. */
static int bio_write(BIO *bio, const char *p, int n)
{
    const struct openssl *lib = openssl_loaded();
    struct tls_bytes *b = lib->BIO_get_data(bio);
    lib->BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    return clave__buf_append(&b->out, p, (size_t)n) == CLAVE_OK ? n : -1;
}

static long bio_ctrl(BIO *bio, int what, long number, void *arg)
{
    (void)bio;
    (void)number;
    (void)arg;
    return what == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO_METHOD *clave__tls_bytes_method(const struct openssl *lib)
{
    BIO_METHOD *m = lib->BIO_meth_new(BIO_TYPE_SOURCE_SINK, "clave");
    if (!m)
        return NULL;
    lib->BIO_meth_set_read(m, bio_read);
    lib->BIO_meth_set_write(m, bio_write);
    lib->BIO_meth_set_ctrl(m, bio_ctrl);
    return m;
}

/* ---- the certificate for which a handshake failed -------------------------------------------- */

/* Where a refusal is kept in the data of its SSL (OpenSSL's SSL_get_app_data). */
enum { REFUSAL_DATA = 0 };

void clave__tls_refusal_attach(const struct openssl *lib, SSL *ssl, struct tls_refusal *r)
{
    lib->SSL_set_ex_data(ssl, REFUSAL_DATA, r);
}

/* Writes "DNS:zk1, IP Address:10.0.0.1", leaving out bytes that are not text, since this goes into
 * a log. */
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

bool clave__tls_bears_issuers_subject(const struct openssl *lib, X509 *cert)
{
    if (lib->X509_NAME_cmp(lib->X509_get_subject_name(cert), lib->X509_get_issuer_name(cert)) != 0)
        return false;
    lib->ERR_set_mark(); /* a signature that does not fit is an error to OpenSSL */
    int is_own = lib->X509_self_signed(cert, 1);
    lib->ERR_pop_to_mark();
    return is_own == 0;
}

/* Keeps what to report about the certificate, which is gone once the handshake has failed. */
int clave__tls_refusal_on_verified(int fine, X509_STORE_CTX *found)
{
    const struct openssl *lib = openssl_loaded();
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
        r->shown->bears_issuers_subject = clave__tls_bears_issuers_subject(lib, cert);
    }
    return fine;
}
