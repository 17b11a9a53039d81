/* tls_channel.h - a TLS channel: stands between a socket and the bytes of an engine, on either
 * side, and has no I/O of its own.
 *
 *   socket ──_feed──▶ [channel] ──_read──▶ engine        SHAKING ──▶ OPEN ──▶ ENDED
 *   socket ◀─_output─ [channel] ◀─_write── engine           └──────────┴────▶ FAILED
 *
 * What is fed is the caller's memory, and is used up by _read, so that an idle channel has no
 * buffer; what is written is in records of TLS at once, and more is taken only when these have
 * gone to the socket. */
#ifndef CLAVE_RUNTIME_TLS_TLS_CHANNEL_H
#define CLAVE_RUNTIME_TLS_TLS_CHANNEL_H

#include "base/buf.h"
#include "runtime/tls/tls_context.h"

enum tls_state { TLS_SHAKING, TLS_OPEN, TLS_ENDED, TLS_FAILED };

struct tls; /* opaque */

/* A client's begins to speak at once, to the server of that name or address; a server's has NULL
 * for it. NULL: out of memory. */
struct tls *clave__tls_new(clave_tls *side, const struct clave_mem *mem, const char *host);
void clave__tls_free(struct tls *t); /* NULL is ignored */
enum tls_state clave__tls_state(const struct tls *t);

/* Bytes from the socket, which stay where they are until _read and _shake have returned 0. */
void clave__tls_feed(struct tls *t, const void *p, size_t n);
/* Goes on with the handshake; true when it is over and done. */
bool clave__tls_shake(struct tls *t);
/* What was said, at most cap bytes of it. 0: that is all for now; see the state. */
size_t clave__tls_read(struct tls *t, void *buf, size_t cap);

/* Takes bytes to be sent. 0: later, when _output is empty and the channel is open. */
size_t clave__tls_write(struct tls *t, const void *p, size_t n);
/* Says that nothing more will come, behind what was written. */
void clave__tls_end(struct tls *t);
/* Bytes for the socket; valid until the next call. */
size_t clave__tls_output(const struct tls *t, const void **p);
void clave__tls_sent(struct tls *t, size_t n);

/* Of the certificate the other side has shown, and that was found to be good: a Name in DER, valid
 * as long as the channel. 0: it has shown none. */
size_t clave__tls_subject(const struct tls *t, const void **der);
/* Why it FAILED, in words that go on from the other side's name: "its certificate has expired". */
void clave__tls_fault(const struct tls *t, char *text, size_t cap);

/* Whether it FAILED for a reason that stays as long as the files of both sides are what they are.
 */
bool clave__tls_is_final(const struct tls *t);
/* Whether it FAILED because what came is no TLS at all. */
bool clave__tls_is_foreign(const struct tls *t);

/* For tls_context.c: how OpenSSL reaches a channel's bytes (NULL: out of memory), and how it tells
 * what it finds of a certificate. */
BIO_METHOD *clave__tls_method(const struct openssl *lib);
int clave__tls_on_verified(int fine, X509_STORE_CTX *found);

#endif
