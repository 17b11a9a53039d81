/* uv_client.h - what src/runtime uses of a clave_uv beyond clave/uv.h. */
#ifndef CLAVE_RUNTIME_CLIENT_UV_CLIENT_H
#define CLAVE_RUNTIME_CLIENT_UV_CLIENT_H

#include "clave/uv.h"
#include "runtime/suspend_resume.h"

/* As clave_uv_start, on a loop that has one wakeup for all its clients. */
clave_err clave__uv_start(clave_uv **out, uv_loop_t *loop, struct wakeup *wakeup,
                          clave_async_client *c);

/* `settled` is called at the end of every pass over the client, when all callbacks have returned
 * and the engine is consistent: that is the place to publish what other threads read. Not after
 * _stop. */
void clave__uv_on_settled(clave_uv *u, void (*settled)(void *arg), void *arg);

/* Returns an error if every host refuses permanently: because of certificates (ETLS), because the
 * local server cannot start (ELOCAL), or because threads are forbidden (ETHREAD). *text says why,
 * and is valid until the next pass. The client keeps trying, since the fault may be corrected.
 * CLAVE_OK: at least one host may still be reached. */
clave_err clave__uv_refusal(const clave_uv *u, const char **text);

#endif
