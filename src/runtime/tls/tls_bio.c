/* tls_bio.c - OpenSSL's view of the socket. */
#include "runtime/tls/tls_bio.h"

#include <string.h>

static int bio_read(BIO *bio, char *to, int cap)
{
    const struct openssl *lib = clave__openssl_loaded();
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

/* An error is final: out of memory, or the other side keeps asking and never reads. */
static int bio_write(BIO *bio, const char *p, int n)
{
    const struct openssl *lib = clave__openssl_loaded();
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
