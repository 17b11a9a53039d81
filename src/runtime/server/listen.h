/* listen.h - the addresses a server listens on. */
#ifndef CLAVE_RUNTIME_SERVER_LISTEN_H
#define CLAVE_RUNTIME_SERVER_LISTEN_H

#include <stdbool.h>
#include <sys/un.h>
#include <uv.h>

#include "base/list.h"
#include "runtime/start_error.h"

struct listener {
    struct list link;
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } socket;
    bool is_unix;
    bool tls;
    bool waits; /* it has a connection that nobody has accepted, and libuv looks for no more */
    char path[sizeof((struct sockaddr_un *)0)->sun_path]; /* Unix: removed at the end */
    char text[160];                                       /* as bound */
};

/* Binds and listens on every address that `spec` stands for, and appends a listener for each to
 * `out`; "tls:" before a TCP address makes listeners for TLS. A Unix socket is for this user only
 * unless "?mode=0660&group=NAME" follows its path. After an error those bound before it
 * are in `out` too. EINUSE: the fault names the address. */
clave_err clave__listen(uv_loop_t *loop, const char *spec, uv_connection_cb cb, void *data,
                        struct list *out, const struct fault *f);
/* Whether `spec` stands for an address, without binding it: EINVAL, with the fault of
 * clave__listen.
 */
clave_err clave__listen_check(const char *spec, const struct fault *f);
/* Stops accepting, removes the socket's file, and frees the listener later. */
void clave__listener_close(struct listener *l);

#endif
