/* tls_context.c - reads certificates, keys and authorities into OpenSSL contexts (tls_context.h). A
 * context is replaced as a whole or not at all. */
#include "runtime/tls/tls_context.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sized_options.h"
#include "runtime/tls/openssl.h"

/* ---- files ---------------------------------------------------------------------------------- */

static const char *tls_context_key_file(const clave_tls *t)
{
    return t->files[TLS_KEY] ? t->files[TLS_KEY] : t->files[TLS_CERT];
}

/* Reports OpenSSL's error of the last call, and empties its error queue. */
static clave_err tls_context_refused(const clave_tls *t, const struct fault *f, const char *what,
                                     const char *file)
{
    const char *why = t->lib->ERR_reason_error_string(t->lib->ERR_get_error());
    t->lib->ERR_clear_error();
    return clave__start_error(f, CLAVE_ETLS, "%s %s: %s", what, file, why ? why : "not usable");
}

/* Keeps OpenSSL from asking for a key's password at the terminal; *arg notes that there is one. */
static int tls_context_no_password(char *buf, int size, int writes, void *arg)
{
    (void)buf;
    (void)size;
    (void)writes;
    if (arg)
        *(bool *)arg = true;
    return -1;
}

static clave_err tls_context_look_at_files(const clave_tls *t, struct stat seen[TLS_FILES],
                                           const struct fault *f)
{
    memset(seen, 0, TLS_FILES * sizeof *seen);
    for (size_t i = 0; i < TLS_FILES; i++) {
        const char *file = t->files[i];
        int fd = file ? open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
        if (!file)
            continue;
        int fault = fd < 0 || fstat(fd, &seen[i]) != 0 ? errno : 0;
        if (fd >= 0)
            close(fd);
        if (fault == 0 && !S_ISREG(seen[i].st_mode))
            fault = EISDIR;
        if (fault != 0)
            return clave__start_error(f, CLAVE_EIO, "cannot read %s: %s", file, strerror(fault));
    }
    return CLAVE_OK;
}

static bool tls_context_same_files(const struct stat *a, const struct stat *b)
{
    for (size_t i = 0; i < TLS_FILES; i++)
        if (a[i].st_ino != b[i].st_ino || a[i].st_dev != b[i].st_dev ||
            a[i].st_size != b[i].st_size || a[i].st_mtim.tv_sec != b[i].st_mtim.tv_sec ||
            a[i].st_mtim.tv_nsec != b[i].st_mtim.tv_nsec)
            return false;
    return true;
}

/* ---- contexts ------------------------------------------------------------------------------- */

/* Sessions are not resumed: a certificate that is no longer valid must not live on in one, and
 * connections last for hours anyway. */
static void tls_context_set_rules(const struct openssl *lib, SSL_CTX *context)
{
    lib->SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL);
    lib->SSL_CTX_set_options(context,
                             SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
    lib->SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
    lib->SSL_CTX_set_num_tickets(context, 0);
    lib->SSL_CTX_ctrl(context, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS, NULL);
    lib->SSL_CTX_set_default_passwd_cb(context, tls_context_no_password);
}

static clave_err tls_context_load_own(const clave_tls *t, SSL_CTX *context, const struct fault *f)
{
    const char *cert = t->files[TLS_CERT], *key = tls_context_key_file(t);
    bool locked = false;
    if (!cert)
        return CLAVE_OK;
    if (t->lib->SSL_CTX_use_certificate_chain_file(context, cert) != 1)
        return tls_context_refused(t, f, "no certificate can be read from", cert);
    t->lib->SSL_CTX_set_default_passwd_cb_userdata(context, &locked);
    bool loaded = t->lib->SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1;
    t->lib->SSL_CTX_set_default_passwd_cb_userdata(context, NULL);
    if (loaded)
        return CLAVE_OK;
    if (!locked)
        return tls_context_refused(
            t, f,
            key == cert ? "no key file is named, and no key for the certificate can be read from"
                        : "no key for the certificate can be read from",
            key);
    t->lib->ERR_clear_error();
    return clave__start_error(
        f, CLAVE_ETLS,
        "no key for the certificate can be read from %s: it has a password, and "
        "clave reads keys without one",
        key);
}

static clave_err tls_context_load_trusted(const clave_tls *t, SSL_CTX *context,
                                          const struct fault *f)
{
    const char *ca = t->files[TLS_CA];
    if (!ca) {
        t->lib->SSL_CTX_set_default_verify_paths(context);
        return CLAVE_OK;
    }
    if (t->lib->SSL_CTX_load_verify_file(context, ca) != 1)
        return tls_context_refused(t, f, "no certificate of an authority can be read from", ca);
    if (t->serves) /* clients choose their certificate by these names */
        t->lib->SSL_CTX_set_client_CA_list(context, t->lib->SSL_load_client_CA_file(ca));
    return CLAVE_OK;
}

/* Called during a handshake. A client that names only other protocols is told so, and leaves. */
static int tls_context_on_alpn(SSL *ssl, const unsigned char **out, unsigned char *len,
                               const unsigned char *offered, unsigned n, void *wanted)
{
    size_t of_wanted = strlen(wanted);
    (void)ssl;
    for (unsigned at = 0; at < n && offered[at] < n - at; at += 1u + offered[at])
        if (offered[at] == of_wanted && memcmp(offered + at + 1, wanted, of_wanted) == 0) {
            *out = offered + at + 1;
            *len = offered[at];
            return SSL_TLSEXT_ERR_OK;
        }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static int tls_context_what_to_verify(const clave_tls *t)
{
    if (!t->serves)
        return SSL_VERIFY_PEER;
    switch (t->clients) {
    case TLS_CLIENTS_NEED:
        return SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    case TLS_CLIENTS_WANT:
        return SSL_VERIFY_PEER;
    case TLS_CLIENTS_NONE:
        break;
    }
    return SSL_VERIFY_NONE;
}

static clave_err new_context(const clave_tls *t, SSL_CTX **out, const struct fault *f)
{
    const struct openssl *lib = t->lib;
    int verify = tls_context_what_to_verify(t);
    lib->ERR_clear_error();
    SSL_CTX *context =
        lib->SSL_CTX_new(t->serves ? lib->TLS_server_method() : lib->TLS_client_method());
    if (!context)
        return CLAVE_ENOMEM;
    tls_context_set_rules(lib, context);
    lib->SSL_CTX_set_verify(context, verify, clave__tls_refusal_on_verified);
    if (t->alpn)
        lib->SSL_CTX_set_alpn_select_cb(context, tls_context_on_alpn, (void *)(uintptr_t)t->alpn);
    clave_err err = tls_context_load_own(t, context, f);
    if (err == CLAVE_OK && verify != SSL_VERIFY_NONE)
        err = tls_context_load_trusted(t, context, f);
    if (err == CLAVE_OK)
        *out = context;
    else
        lib->SSL_CTX_free(context);
    return err;
}

static clave_err tls_context_load(clave_tls *t, bool always, const struct fault *f)
{
    struct stat seen[TLS_FILES];
    SSL_CTX *context = NULL;
    clave_err err = tls_context_look_at_files(t, seen, f);
    pthread_mutex_lock(&t->mutex);
    if (err == CLAVE_OK && (always || !tls_context_same_files(seen, t->read)))
        err = new_context(t, &context, f);
    if (context) {
        t->lib->SSL_CTX_free(t->context); /* connections have references of their own */
        t->context = context;
        memcpy(t->read, seen, sizeof seen);
    }
    pthread_mutex_unlock(&t->mutex);
    return err;
}

clave_err clave__tls_context_reload(clave_tls *t, const struct fault *f)
{
    return tls_context_load(t, true, f);
}

clave_err clave__tls_context_refresh(clave_tls *t, const struct fault *f)
{
    return tls_context_load(t, false, f);
}

bool clave__tls_context_in_date(clave_tls *t)
{
    pthread_mutex_lock(&t->mutex);
    const X509 *own = t->lib->SSL_CTX_get0_certificate(t->context);
    bool in_date = !own || (t->lib->X509_cmp_current_time(t->lib->X509_get0_notBefore(own)) < 0 &&
                            t->lib->X509_cmp_current_time(t->lib->X509_get0_notAfter(own)) > 0);
    pthread_mutex_unlock(&t->mutex);
    return in_date;
}

void clave__tls_context_tell_date(clave_tls *t, const struct log *log)
{
    if (!clave__tls_context_in_date(t))
        clave__log(log, CLAVE_LOG_WARN,
                   "the server's certificate is not valid now: no client will accept it");
}

bool clave__tls_context_renew(clave_tls *t, const struct log *log)
{
    char text[400] = "";
    const struct fault f = {text, sizeof text};
    bool renewed = clave__tls_context_reload(t, &f) == CLAVE_OK;
    if (!renewed)
        clave__log(log, CLAVE_LOG_ERROR, "%s (the previous files stay in use)",
                   text[0] ? text : "out of memory");
    clave__tls_context_tell_date(t, log);
    return renewed;
}

SSL *clave__tls_context_begin(clave_tls *t)
{
    pthread_mutex_lock(&t->mutex);
    assert(t->context);
    SSL *ssl = t->lib->SSL_new(t->context);
    pthread_mutex_unlock(&t->mutex);
    return ssl;
}

/* ---- life ----------------------------------------------------------------------------------- */

static bool tls_context_copy(char **to, const char *text)
{
    if (text && *text)
        *to = strdup(text);
    return !text || !*text || *to;
}

static clave_err tls_context_new_side(clave_tls **out, const struct fault *f)
{
    const char *why;
    const struct openssl *lib = clave__openssl(&why);
    *out = NULL;
    if (!lib) {
        (void)clave__start_error(f, CLAVE_ETLS, "%s", why);
        return CLAVE_ETLS; /* an optimizing compiler must see that *out is not set */
    }
    clave_tls *t = calloc(1, sizeof *t);
    if (!t)
        return CLAVE_ENOMEM;
    t->lib = lib;
    atomic_init(&t->refs, 1);
    pthread_mutex_init(&t->mutex, NULL);
    t->bytes = clave__tls_bytes_method(lib);
    *out = t;
    return t->bytes ? CLAVE_OK : CLAVE_ENOMEM;
}

/* Takes the context as built so far, and returns it if it is complete. */
static clave_err tls_context_finish(clave_tls **out, clave_tls *t, clave_err err,
                                    const struct fault *f)
{
    if (err == CLAVE_OK)
        err = clave__tls_context_reload(t, f);
    if (err == CLAVE_OK)
        *out = t;
    else
        clave_tls_free(t);
    return err;
}

clave_err clave__tls_context_serve(clave_tls **out, const struct tls_server_options *o,
                                   const struct fault *f)
{
    clave_tls *t;
    *out = NULL;
    clave_err err = tls_context_new_side(&t, f);
    if (err == CLAVE_OK) {
        t->serves = true;
        t->clients = o->clients;
        t->alpn = o->alpn;
        t->to_foreign = o->to_foreign;
        if (!tls_context_copy(&t->files[TLS_CA],
                              o->clients == TLS_CLIENTS_NONE ? NULL : o->ca_file) ||
            !tls_context_copy(&t->files[TLS_CERT], o->cert_file) ||
            !tls_context_copy(&t->files[TLS_KEY], o->key_file))
            err = CLAVE_ENOMEM;
    }
    return tls_context_finish(out, t, err, f);
}

static clave_tls_options tls_context_of_environment(void)
{
    return (clave_tls_options){.size = sizeof(clave_tls_options),
                               .ca_file = secure_getenv("CLAVE_TLS_CA"),
                               .cert_file = secure_getenv("CLAVE_TLS_CERT"),
                               .key_file = secure_getenv("CLAVE_TLS_KEY"),
                               .server_name = secure_getenv("CLAVE_TLS_NAME")};
}

clave_err clave_tls_new(clave_tls **out, const clave_tls_options *given, char *fault, size_t cap)
{
    const struct fault f = {fault, cap};
    clave_tls_options o = tls_context_of_environment();
    clave_tls *t;
    *out = NULL;
    if (cap > 0)
        fault[0] = '\0';
    const char *wrong = clave__options_fault(sizeof o, given);
    if (wrong)
        return clave__start_error(&f, CLAVE_EINVAL, "clave_tls_options %s", wrong);
    if (given)
        (void)clave__options_take(&o, sizeof o, given);
    clave_err err = tls_context_new_side(&t, &f);
    if (err == CLAVE_OK) {
        t->any_name = o.any_name;
        if (!tls_context_copy(&t->files[TLS_CA], o.ca_file) ||
            !tls_context_copy(&t->files[TLS_CERT], o.cert_file) ||
            !tls_context_copy(&t->files[TLS_KEY], o.key_file) ||
            !tls_context_copy(&t->server_name, o.server_name))
            err = CLAVE_ENOMEM;
        else if (t->files[TLS_KEY] && !t->files[TLS_CERT])
            err = clave__start_error(
                &f, CLAVE_ETLS,
                "there is a key, %s, but no certificate for it: name one as well (--tls-cert, "
                "CLAVE_TLS_CERT)",
                t->files[TLS_KEY]);
    }
    return tls_context_finish(out, t, err, &f);
}

static bool tls_context_same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool tls_context_is_of(const clave_tls *t, const clave_tls_options *o)
{
    return tls_context_same_text(t->files[TLS_CA], o->ca_file) &&
           tls_context_same_text(t->files[TLS_CERT], o->cert_file) &&
           tls_context_same_text(t->files[TLS_KEY], o->key_file) &&
           tls_context_same_text(t->server_name, o->server_name);
}

clave_err clave__tls_context_of_environment(clave_tls **out, const struct fault *f)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static clave_tls *shared; /* the latest one; kept until the process ends */
    const clave_tls_options o = tls_context_of_environment();
    clave_err err = CLAVE_OK;
    pthread_mutex_lock(&mutex);
    if (!shared || !tls_context_is_of(shared, &o)) {
        clave_tls_free(shared);
        err = clave_tls_new(&shared, &o, f->text, f->cap);
    }
    *out = err == CLAVE_OK ? clave__tls_context_ref(shared) : NULL;
    pthread_mutex_unlock(&mutex);
    return err;
}

clave_tls *clave__tls_context_ref(clave_tls *t)
{
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

void clave_tls_free(clave_tls *t)
{
    if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) > 1)
        return;
    assert(atomic_load_explicit(&t->refs, memory_order_relaxed) == 0);
    t->lib->SSL_CTX_free(t->context);
    t->lib->BIO_meth_free(t->bytes);
    for (size_t i = 0; i < TLS_FILES; i++)
        free(t->files[i]);
    free(t->server_name);
    pthread_mutex_destroy(&t->mutex);
    free(t);
}
