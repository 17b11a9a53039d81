/* http_tls.h - TLS in front of an HTTP server. libmicrohttpd, which has none here, is given one end
 * of a socket pair for each connection; the bytes go through OpenSSL on their way to the other:
 *
 *   client ══TCP══ [channel + TLS] ── this file ── inner ══socket pair══ libmicrohttpd
 *
 *   SHAKING ──handshake──▶ OPEN ◀──▶ STUCK        each ──▶ closed
 *
 * SHAKING and STUCK, when the client takes nothing of what is to be sent, last a limited time. What
 * one side does not take is not read from the other. The end of either side is passed on: the
 * client's, unless it is an error, after all that it has sent before. http_server.c calls it;
 * everything belongs to the loop's thread. */
#ifndef CLAVE_RUNTIME_HTTP_HTTP_TLS_H
#define CLAVE_RUNTIME_HTTP_HTTP_TLS_H

#include "base/log.h"
#include "runtime/tls/tls_context.h"
#include "server/server.h"

#include <uv.h>

struct http_tls; /* opaque: all TLS connections of a server */

struct http_tls_options {
    uv_loop_t *loop;
    const struct clave_mem *mem; /* outlives it, as `log` does */
    const struct log *log;
    struct clave_tls *side;        /* a reference is taken */
    size_t max_shaking;            /* beyond: the oldest handshake is given up */
    uint64_t shaking_ms, stuck_ms; /* 0: no limit */
    /* A handshake is complete. `fd` has what the client says, in the clear, and takes what it is
     * told; the owner closes it. `subject`: of its certificate, as X.509 identities are written;
     * NULL: none was presented. */
    void (*secured)(void *arg, int fd, const struct peer_addr *peer, const char *subject);
    /* A connection is gone, which _waiting may have counted. */
    void (*gone)(void *arg);
    /* After _free, when nothing calls any more. */
    void (*freed)(void *arg);
    void *arg;
};

/* ENOMEM. */
clave_err clave__http_tls_new(struct http_tls **out, const struct http_tls_options *o);
void clave__http_tls_set_max_shaking(struct http_tls *s, size_t most);
/* Takes the socket of a TCP connection. */
void clave__http_tls_take(struct http_tls *s, int fd, const struct peer_addr *peer);
/* Connections that `secured` has not been told of, or whose `fd` was closed by the owner. */
size_t clave__http_tls_waiting(const struct http_tls *s);
/* Something has been answered that its client has not taken. */
bool clave__http_tls_is_stuck(const struct http_tls *s);
/* Sends what there is, as far as that goes at once, and closes all. NULL is ignored. */
void clave__http_tls_free(struct http_tls *s);

#endif
