/* tls_filter.c - OpenSSL without sockets, as a filter of a channel (tls_filter.h). uv_client.c and
 * server_loop.c add it to channels, four_letter_client.c uses it on its own. No call blocks, and
 * what waits for the socket is bounded. */
#include "runtime/tls/tls_filter.h"

#include <arpa/inet.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/list.h"
#include "base/memory.h"
#include "runtime/tls/openssl.h"

/* The size of one pass of writes, and how much may wait for the socket, which must have room for
 * the answers to everything that one read may bring. */
enum { MAX_WRITE = 64 * 1024, MAX_OUTPUT = 1024 * 1024, KEEP_OUTPUT = 0, MAX_RECORD = 16 * 1024 };
/* The first byte of a handshake record, and of the alert that refuses one. */
enum { RECORD_ALERT = 21, RECORD_HANDSHAKE = 22 };
/* Received alerts are reasons with this offset (OpenSSL's SSL_AD_REASON_OFFSET). */
enum { ALERT_REASONS = 1000 };

struct tls {
    struct filter filter;
    const struct tls_events *events;
    clave_tls *side;
    const struct openssl *lib;
    SSL *ssl;
    enum tls_state state;
    bool heard;        /* the other side has sent something */
    bool is_other;     /* what it sent is not TLS */
    unsigned long why; /* OpenSSL's error; 0: none */
    struct tls_refusal refusal;
    struct tls_bytes bytes;
};

/* ---- life ----------------------------------------------------------------------------------- */

static bool tls_filter_expect_name(struct tls *t, const char *host)
{
    const struct openssl *lib = t->lib;
    const char *name = t->side->server_name ? t->side->server_name : host;
    X509_VERIFY_PARAM *param = lib->SSL_get0_param(t->ssl);
    lib->SSL_set_connect_state(t->ssl);
    char literal[16];
    bool is_address =
        inet_pton(AF_INET, name, literal) == 1 || inet_pton(AF_INET6, name, literal) == 1;
    if (!is_address && lib->SSL_ctrl(t->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME,
                                     TLSEXT_NAMETYPE_host_name, (char *)(uintptr_t)name) != 1)
        return false;
    if (t->side->any_name)
        return true;
    if (is_address)
        return lib->X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1;
    lib->SSL_set_hostflags(t->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return lib->SSL_set1_host(t->ssl, name) == 1;
}

static bool tls_filter_begin(struct tls *t, const char *host)
{
    BIO *bio = t->lib->BIO_new(t->side->bytes);
    if (!bio)
        return false;
    t->lib->BIO_set_data(bio, &t->bytes);
    t->lib->BIO_set_init(bio, 1);
    t->ssl = clave__tls_context_begin(t->side);
    if (!t->ssl) {
        t->lib->BIO_free(bio);
        return false;
    }
    t->lib->SSL_set_bio(t->ssl, bio, bio); /* one reference serves for both directions */
    clave__tls_refusal_attach(t->lib, t->ssl, &t->refusal);
    if (host)
        return tls_filter_expect_name(t, host);
    t->lib->SSL_set_accept_state(t->ssl);
    return true;
}

struct tls *clave__tls_new(clave_tls *side, const struct clave_mem *mem, const char *host)
{
    struct tls *t = clave__mem_zalloc(mem, sizeof *t);
    if (!t)
        return NULL;
    t->side = clave__tls_context_ref(side);
    t->lib = side->lib;
    t->refusal.mem = mem;
    clave__buf_init(&t->bytes.out, mem, MAX_OUTPUT);
    if (!tls_filter_begin(t, host)) {
        clave__tls_free(t);
        return NULL;
    }
    if (host)
        clave__tls_shake(t);
    return t;
}

void clave__tls_free(struct tls *t)
{
    if (!t)
        return;
    const struct clave_mem *mem = t->refusal.mem;
    t->lib->SSL_free(t->ssl);
    clave__buf_fini(&t->bytes.out);
    clave__mem_free(mem, t->refusal.shown);
    clave_tls_free(t->side);
    clave__mem_free(mem, t);
}

enum tls_state clave__tls_state(const struct tls *t)
{
    return t->state;
}

/* ---- input ----------------------------------------------------------------------------------- */

/* Interprets the result of an OpenSSL call that has not done its work. */
static void tls_filter_judge(struct tls *t, int rc)
{
    switch (t->lib->SSL_get_error(t->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        break;
    case SSL_ERROR_ZERO_RETURN:
        t->state = TLS_ENDED;
        break;
    default:
        t->state = TLS_FAILED;
        t->why = t->lib->ERR_get_error();
        t->lib->ERR_clear_error();
    }
}

/* Refuses input that is not TLS. OpenSSL would wait for five bytes before it refuses, but a
 * four-letter word has only four. TLS's own answer is an alert, which every TLS client knows, and
 * which is not a valid length of a frame to a ZooKeeper client. */
static void tls_filter_refuse_foreign(struct tls *t)
{
    static const uint8_t protocol_version[] = {RECORD_ALERT,           3, 3, 0, 2, 2,
                                               SSL_AD_PROTOCOL_VERSION};
    const char *other = t->side->to_foreign;
    t->state = TLS_FAILED;
    if (t->side->serves)
        clave__buf_append(&t->bytes.out, other ? (const void *)other : protocol_version,
                          other ? strlen(other) : sizeof protocol_version);
}

bool clave__tls_is_foreign(const struct tls *t)
{
    return t->is_other;
}

void clave__tls_feed(struct tls *t, const void *p, size_t n)
{
    t->bytes.in = p;
    t->bytes.in_len = n;
    if (t->heard || n == 0)
        return;
    t->heard = true;
    t->is_other = t->bytes.in[0] != RECORD_HANDSHAKE && t->bytes.in[0] != RECORD_ALERT;
    if (t->is_other)
        tls_filter_refuse_foreign(t);
}

bool clave__tls_shake(struct tls *t)
{
    if (t->state != TLS_SHAKING)
        return false;
    t->lib->ERR_clear_error();
    int rc = t->lib->SSL_do_handshake(t->ssl);
    if (rc == 1)
        t->state = TLS_OPEN;
    else
        tls_filter_judge(t, rc);
    return rc == 1;
}

size_t clave__tls_read(struct tls *t, void *buf, size_t cap)
{
    if (t->state != TLS_OPEN)
        return 0;
    t->lib->ERR_clear_error();
    int rc = t->lib->SSL_read(t->ssl, buf, cap < INT_MAX ? (int)cap : INT_MAX);
    if (rc > 0)
        return (size_t)rc;
    tls_filter_judge(t, rc);
    return 0;
}

/* ---- output ---------------------------------------------------------------------------------- */

size_t clave__tls_write(struct tls *t, const void *p, size_t n)
{
    if (t->state != TLS_OPEN || n == 0 || clave__buf_len(&t->bytes.out) > 0)
        return 0;
    t->lib->ERR_clear_error();
    int rc = t->lib->SSL_write(t->ssl, p, n < MAX_WRITE ? (int)n : MAX_WRITE);
    if (rc > 0)
        return (size_t)rc;
    tls_filter_judge(t, rc);
    return 0;
}

void clave__tls_end(struct tls *t)
{
    if (t->state != TLS_OPEN)
        return;
    t->lib->ERR_clear_error();
    t->lib->SSL_shutdown(t->ssl);
    t->lib->ERR_clear_error();
    t->state = TLS_ENDED;
}

size_t clave__tls_output(const struct tls *t, const void **p)
{
    *p = clave__buf_bytes(&t->bytes.out);
    return clave__buf_len(&t->bytes.out);
}

void clave__tls_sent(struct tls *t, size_t n)
{
    clave__buf_consume(&t->bytes.out, n);
    clave__buf_trim(&t->bytes.out, KEEP_OUTPUT);
}

/* ---- why a handshake failed ------------------------------------------------------------------ */

size_t clave__tls_subject(const struct tls *t, const void **der)
{
    const unsigned char *p = NULL;
    size_t n = 0;
    X509 *cert = t->lib->SSL_get0_peer_certificate(t->ssl);
    if (cert && t->lib->SSL_get_verify_result(t->ssl) == X509_V_OK)
        t->lib->X509_NAME_get0_der(t->lib->X509_get_subject_name(cert), &p, &n);
    *der = p;
    return n;
}

/* Describes what we found wrong with the other side's certificate. */
static void tls_filter_bad_certificate(const struct tls *t, char *text, size_t cap)
{
    static const struct tls_shown nothing;
    const struct tls_shown *shown = t->refusal.shown ? t->refusal.shown : &nothing;
    long verdict = t->lib->SSL_get_verify_result(t->ssl);
    const char *why = t->lib->X509_verify_cert_error_string(verdict);
    const char *ca = t->side->files[TLS_CA];
    if (shown->bears_issuers_subject) {
        snprintf(text, cap,
                 "its certificate (%s) has the subject of the authority that signed it, so that it "
                 "counts as signed by itself: it needs another subject",
                 shown->subject);
        return;
    }
    switch (verdict) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        snprintf(text, cap, "its certificate (%s) is for another server: %s", shown->subject,
                 shown->names[0] ? shown->names : "it names none");
        break;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        snprintf(text, cap, "its certificate (%s) is signed by no authority in %s: %s",
                 shown->subject, ca ? ca : "the system's list", why);
        break;
    default:
        snprintf(text, cap, "its certificate (%s) is not valid: %s", shown->subject, why);
    }
}

static bool tls_filter_own_is_ambiguous(const struct tls *t)
{
    X509 *own = t->lib->SSL_get_certificate(t->ssl);
    return own && clave__tls_bears_issuers_subject(t->lib, own);
}

/* Describes what the other side found wrong with ours: those alerts of RFC 8446 that users can do
 * something about. If no certificate was presented, Java calls it a bad one. */
static const char *tls_filter_complaint(const struct tls *t, int alert)
{
    if (alert == SSL_AD_BAD_CERTIFICATE && !t->side->files[TLS_CERT])
        alert = SSL_AD_CERTIFICATE_REQUIRED;
    switch (alert) {
    case SSL_AD_HANDSHAKE_FAILURE:
        return "it refused the connection: it may require a certificate, or other ciphers";
    case SSL_AD_CERTIFICATE_REQUIRED:
    case SSL_AD_NO_CERTIFICATE:
        return "it requires a certificate, but none was presented";
    case SSL_AD_UNKNOWN_CA:
        if (tls_filter_own_is_ambiguous(t))
            return "our certificate has the subject of the authority that signed it, so that it "
                   "counts as signed by itself: it needs another subject";
        return "it does not know the authority that signed our certificate";
    case SSL_AD_CERTIFICATE_EXPIRED:
        return "it says that our certificate has expired or is not valid yet";
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
        return "it refuses our certificate";
    case SSL_AD_PROTOCOL_VERSION:
        return "it supports neither TLS 1.2 nor 1.3";
    default:
        return NULL;
    }
}

bool clave__tls_is_final(const struct tls *t)
{
    int reason = ERR_GET_REASON(t->why);
    if (t->state != TLS_FAILED || t->is_other)
        return false;
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
        long verdict = t->lib->SSL_get_verify_result(t->ssl);
        return verdict != X509_V_ERR_CERT_NOT_YET_VALID && verdict != X509_V_ERR_OUT_OF_MEM;
    }
    return reason > ALERT_REASONS && tls_filter_complaint(t, reason - ALERT_REASONS) != NULL;
}

void clave__tls_fault(const struct tls *t, char *text, size_t cap)
{
    int reason = ERR_GET_REASON(t->why);
    const char *why = t->lib->ERR_reason_error_string(t->why);
    const char *alert =
        reason > ALERT_REASONS ? tls_filter_complaint(t, reason - ALERT_REASONS) : NULL;
    if (t->is_other || reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST)
        snprintf(text, cap, "it does not speak TLS");
    else if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
        tls_filter_bad_certificate(t, text, cap);
    else if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
        snprintf(text, cap, "it presents no certificate");
    else if (alert)
        snprintf(text, cap, "%s", alert);
    else
        snprintf(text, cap, "%s", why ? why : "TLS has failed");
}

/* ---- as a filter ---------------------------------------------------------------------------- */

static struct tls *tls_filter_of(struct filter *f)
{
    return LIST_ENTRY(f, struct tls, filter);
}

static bool tls_filter_input(struct filter *f, const void *p, size_t n)
{
    struct tls *t = tls_filter_of(f);
    char plain[MAX_RECORD];
    bool goes_on = true;
    size_t got;
    clave__tls_feed(t, p, n);
    if (clave__tls_shake(t)) {
        clave__channel_opened(f->channel);
        goes_on = t->events->opened(f->channel, t);
    }
    while (goes_on && (got = clave__tls_read(t, plain, sizeof plain)) > 0)
        goes_on = clave__channel_input(f->channel, f->above, plain, got);
    clave__tls_feed(t, NULL, 0); /* the memory belongs to the caller again */
    if (t->state != TLS_FAILED)
        return goes_on && t->state != TLS_ENDED;
    goes_on = t->events->failed(f->channel, t);
    if (goes_on)
        clave__channel_linger(f->channel);
    return goes_on;
}

/* Sends encrypted bytes first. What is encrypted now counts as sent, because it is too late to take
 * it back. */
static size_t tls_filter_output(struct filter *f, const void **p)
{
    struct tls *t = tls_filter_of(f);
    size_t n = clave__tls_output(t, p);
    if (n > 0 || t->state != TLS_OPEN)
        return n;
    n = clave__channel_output(f->channel, f->above, p);
    n = clave__tls_write(t, *p, n);
    if (n > 0)
        clave__channel_sent(f->channel, f->above, n);
    return clave__tls_output(t, p);
}

static void tls_filter_sent(struct filter *f, size_t n)
{
    clave__tls_sent(tls_filter_of(f), n);
}

/* encryption may have failed for lack of memory */
static bool tls_filter_is_done(struct filter *f)
{
    if (tls_filter_of(f)->state >= TLS_ENDED && f->channel->state != CHANNEL_LINGERING)
        return true;
    return clave__channel_is_done(f->channel, f->above);
}

static size_t tls_filter_farewell(struct filter *f, const void **p)
{
    clave__tls_end(tls_filter_of(f));
    return clave__tls_output(tls_filter_of(f), p);
}

static void tls_filter_free(struct filter *f)
{
    clave__tls_free(tls_filter_of(f));
}

bool clave__tls_add_filter(struct channel *ch, clave_tls *side, const char *host,
                           const struct tls_events *events)
{
    static const struct filter_ops ops = {
        .input = tls_filter_input,
        .output = tls_filter_output,
        .sent = tls_filter_sent,
        .is_done = tls_filter_is_done,
        .farewell = tls_filter_farewell,
        .free = tls_filter_free,
    };
    struct tls *t = clave__tls_new(side, ch->mem, host);
    if (!t)
        return false;
    t->events = events;
    clave__channel_add_filter(ch, &t->filter, &ops);
    return true;
}
