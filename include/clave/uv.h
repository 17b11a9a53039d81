/* uv.h - drives a clave_async_client on your own libuv loop. Everything runs on the loop's thread,
 * and may be called only there, except where it says otherwise. The host list may also be "local:",
 * the server of this user on this machine (see clave/client.h). Names are resolved by getaddrinfo
 * in a thread of clave's, again for every attempt; libuv's pool is not used. As in every program
 * with libuv, SIGPIPE must be ignored. <uv.h> needs POSIX: -std=gnu11, not -std=c11. */
#ifndef CLAVE_UV_H
#define CLAVE_UV_H

#include <uv.h>

#include "clave/async/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_uv clave_uv; /* opaque: the link between one client and one loop */

/* The clock by which every clave_async_client of this process must be driven: milliseconds of
 * CLOCK_BOOTTIME. Any thread. */
CLAVE_EXPORT int64_t clave_now(void);
/* 64 random bits from the kernel, never 0, for clave_client_options.seed: clave_async_client_new
 * does not generate a seed by itself. Any thread. */
CLAVE_EXPORT uint64_t clave_random_seed(void);

/* Starts `c` and drives it on `loop` from now on. The client remains the caller's; *out is freed by
 * clave_uv_stop and is NULL on an error. ENOMEM. With hosts of "tls:" also the errors of
 * clave_tls_new, which clave_async_client_errmsg explains. */
CLAVE_METHOD clave_err clave_uv_start(clave_uv **out, uv_loop_t *loop, clave_async_client *c);
/* Sends the requests that were made outside a callback of the client; call it after making some.
 * Otherwise they are sent at the next event. */
CLAVE_METHOD void clave_uv_flush(clave_uv *u);
/* Closes the socket and the timer, frees `u`, and then calls `closed` (later, on the loop), after
 * which the client may be freed. Call it once. */
CLAVE_METHOD void clave_uv_stop(clave_uv *u, void (*closed)(void *arg), void *arg);

#ifdef __cplusplus
}
#endif
#endif
