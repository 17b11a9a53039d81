/* tls_filter.h - TLS between a socket and the bytes of an engine, for clients and servers: as a
 * filter of a channel, or on its own, without I/O.
 *
 *   socket ──_feed──▶ [TLS] ──_read──▶ engine        SHAKING ──▶ OPEN ──▶ ENDED
 *   socket ◀─_output─ [TLS] ◀─_write── engine           └──────────┴────▶ FAILED
 *
 * Input stays in the caller's memory until _read has used it up, so an idle connection has no
 * buffer. Output is encrypted at once, and more is taken only once that has gone to the socket. */
#ifndef CLAVE_RUNTIME_TLS_TLS_FILTER_H
#define CLAVE_RUNTIME_TLS_TLS_FILTER_H

#include "runtime/channel.h"
#include "runtime/tls/tls_context.h"

enum tls_state { TLS_SHAKING, TLS_OPEN, TLS_ENDED, TLS_FAILED };

struct tls; /* opaque */

/* A client begins the handshake at once, with the server of that name or address; for a server,
 * `host` is NULL. Returns NULL if there is no memory. */
struct tls *clave__tls_new(clave_tls *side, const struct clave_mem *mem, const char *host);
void clave__tls_free(struct tls *t); /* NULL is ignored */
enum tls_state clave__tls_state(const struct tls *t);

/* Passes in bytes from the socket. The memory must stay valid until _read and _shake have returned
 * 0. */
void clave__tls_feed(struct tls *t, const void *p, size_t n);
/* Continues the handshake; returns true when it is complete. */
bool clave__tls_shake(struct tls *t);
/* Reads at most cap decrypted bytes. 0: there are none at the moment; see the state. */
size_t clave__tls_read(struct tls *t, void *buf, size_t cap);

/* Takes bytes to send. 0: try again when _output is empty and the state is OPEN. */
size_t clave__tls_write(struct tls *t, const void *p, size_t n);
/* Announces that nothing will follow what was written. */
void clave__tls_end(struct tls *t);
/* The bytes for the socket; valid until the next call. */
size_t clave__tls_output(const struct tls *t, const void **p);
void clave__tls_sent(struct tls *t, size_t n);

/* The subject of the certificate that the other side presented and that was verified: a Name in
 * DER, valid as long as t. 0: none was presented. */
size_t clave__tls_subject(const struct tls *t, const void **der);
/* Writes why it FAILED, worded to follow the other side's name: "its certificate has expired". */
void clave__tls_fault(const struct tls *t, char *text, size_t cap);

/* True if it FAILED for a reason that lasts as long as the files of both sides stay the same. */
bool clave__tls_is_final(const struct tls *t);
/* True if it FAILED because what arrived is not TLS at all. */
bool clave__tls_is_foreign(const struct tls *t);

/* How the owner of a channel is told about its filter. */
struct tls_events {
    /* The handshake is complete and the channel is OPEN. Return false to close it. */
    bool (*opened)(struct channel *ch, struct tls *t);
    /* The handshake has failed. Return true to leave the channel SECURING, lingering so that the
     * other side can read why; false closes it. */
    bool (*failed)(struct channel *ch, struct tls *t);
};

/* Adds TLS to a channel that is SECURING; `host` is as in _new. false: no memory. */
bool clave__tls_add_filter(struct channel *ch, clave_tls *side, const char *host,
                           const struct tls_events *events);

#endif
