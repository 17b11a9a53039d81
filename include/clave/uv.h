/* uv.h - a clave_async_client on your own libuv loop. Everything runs on the loop's thread. As a
 * host it knows "local:" too, the server of this user on this machine (see client.h).
 * Names are resolved by uv_getaddrinfo (in a thread), anew for every attempt. As in every
 * program with libuv, SIGPIPE has to be ignored. <uv.h> needs POSIX: -std=gnu11, not -std=c11. */
#ifndef CLAVE_UV_H
#define CLAVE_UV_H

#include <uv.h>

#include "clave/async/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_uv clave_uv; /* opaque: the link between one client and one loop */

/* The clock every clave_async_client of this process must be driven with: milliseconds of
 * CLOCK_BOOTTIME. Any thread. */
CLAVE_EXPORT int64_t clave_now(void);
/* 64 bits from the kernel, never 0, for clave_client_options.seed, which clave_async_client_new
 * does not draw by itself. Any thread. */
CLAVE_EXPORT uint64_t clave_random_seed(void);

/* Drives `c` on `loop` from now on and starts it. The client stays the caller's. ENOMEM; with hosts
 * of "tls:" the errors of clave_tls_new, which clave_async_client_errmsg explains. */
CLAVE_EXPORT clave_err clave_uv_start(clave_uv **out, uv_loop_t *loop, clave_async_client *c);
/* Call after every clave_* request made outside a callback of the client, so that it is
 * sent now. */
CLAVE_EXPORT void clave_uv_flush(clave_uv *u);
/* Closes the socket and the timer, then calls `closed` (later, on the loop), after which
 * the client may be freed. `u` is freed by then. */
CLAVE_EXPORT void clave_uv_stop(clave_uv *u, void (*closed)(void *arg), void *arg);

#ifdef __cplusplus
}
#endif
#endif
